"""The source of an algorithm of the user: its hash, and a copy beside its paths."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dumbbell.experiment import user_code
from dumbbell.experiment.files import give_to_user, make_folder, write_text
from dumbbell.experiment.linux_algorithms import digest_of, named, object_of

if TYPE_CHECKING:
    from dumbbell.experiment.model import Experiment


def source_of(cc: str) -> dict[str, str] | None:
    """File, or module, and SHA-256 of an algorithm of the user; None for other algorithms.

    If it imports other files of the user's, the hash is of all of them.
    """
    if (file := object_of(cc)) is not None:
        return {"file": file.name, "sha256": digest_of(file)}
    if not user_code.is_custom(cc):
        return None
    name, digest = user_code.find(cc)
    return {"file": Path(name.rpartition(":")[0]).name, "sha256": digest}


def write_path(file: Path, experiment: Experiment) -> None:
    """Writes the experiment of a path, and beside it the files of algorithms, which it names.

    A class whose file imports other files of the user's is named as it is, and not copied.
    """
    flows = [flow.replace(cc=_copied(flow.cc, file.parent)) for flow in experiment.flows]
    write_text(file, experiment.replace(flows=flows).to_toml())


def _copied(cc: str, folder: Path) -> str:
    if (file := object_of(cc)) is not None:
        return named(_copy(file, folder))
    home, colon, rest = cc.partition(":")
    if not (user_code.is_custom(cc) and home.endswith(".py")):
        return cc
    if user_code.find(cc)[1] != digest_of(Path(home)):
        return cc
    return f"{_copy(Path(home), folder)}{colon}{rest}"


def _copy(file: Path, folder: Path) -> Path:
    """Copies a file into a folder; gives its path from there."""
    make_folder(folder)
    (folder / file.name).write_bytes(file.read_bytes())
    give_to_user(folder / file.name)
    return Path(file.name)
