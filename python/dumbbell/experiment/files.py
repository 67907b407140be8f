"""Reading files of text, and writing files whole or not at all."""

from __future__ import annotations

import codecs
import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import TYPE_CHECKING, Final

from dumbbell.errors import ExperimentError, ResultError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_BYTES: Final = 64 * 10**6  # the size of the largest experiment file
_SHAPE: Final = "an experiment file is TOML with a duration, a [[link]] and a [[flow]] at least"


def read_text(path: Path) -> str:
    """The text of an experiment file."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ExperimentError("has a name that is not text in UTF-8; rename it") from None
    if path.suffix == ".py":
        problem = "is a Python file; name a class of it in an experiment"
        raise ExperimentError(f'{problem}: cc = "{path}:CLASS"')
    if path.is_dir():
        inside = path / "experiment.toml"
        hint = f"; to run it again, name {inside}" if inside.is_file() else f"; {_SHAPE}"
        raise ExperimentError(f"is a directory, not a file{hint}")
    if not path.exists():
        raise ExperimentError("there is no such file")
    if not path.is_file():
        raise ExperimentError(f"is not a regular file; {_SHAPE}")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ExperimentError(_too_large(path))
        data = path.read_bytes().removeprefix(codecs.BOM_UTF8)  # some editors begin with it
    except OSError as error:
        raise ExperimentError(f"cannot be read: {error.strerror}") from None
    if not data.strip():
        raise ExperimentError(f"is empty; {_SHAPE}")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise ExperimentError(f"is not text in UTF-8 ({at}); {_SHAPE}") from None


def _too_large(path: Path) -> str:
    flows = 0
    with path.open("rb") as file:
        while lines := file.readlines(2**20):
            flows += b"".join(lines).count(b"[[flow]]")
    size = f"holds {path.stat().st_size // 10**6:,} MB"
    holds = f"{size} and {flows:,} [[flow]] tables" if flows else size
    most = f"the most is {MOST_BYTES // 10**6} MB and 1,000,000 flows"
    return f"{holds}; {most}; write flows that are alike once, with repeat"


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Gives a temporary name for a file, which takes its place once it is written, or never.

    If it cannot be written, the `OSError` has the name of the file.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{get_ident()}.partial")
    try:
        with _disk_errors():
            yield temporary
        give_to_user(temporary)
        temporary.replace(path)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Makes a folder and those that it is in, as far as they are missing; see `give_to_user`."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if missing:
        give_to_user(missing[-1])


def give_to_user(made: Path) -> None:
    """Gives what root made by sudo in a folder of sudo's user to that user, with all that it holds.

    Links are not followed, and what does not belong to root stays as it is.
    """
    ids = [os.environ.get(name, "") for name in ("SUDO_UID", "SUDO_GID")]
    if os.geteuid() != 0 or not all(map(str.isdecimal, ids)):
        return
    user, group = map(int, ids)
    with suppress(OSError):  # a file system without owners, for example
        parent = os.open(made.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if os.fstat(parent).st_uid == user:
                _give(made.name, parent, user, group)
        finally:
            os.close(parent)


def _give(name: str, parent: int, user: int, group: int) -> None:
    """Gives a file or a folder to a user, whose folder it is only once all in it is given."""
    is_folder = stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    if is_folder:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    _give(entry.name, folder, user, group)
        finally:
            os.close(folder)
    if os.stat(name, dir_fd=parent, follow_symlinks=False).st_uid == 0:
        os.chown(name, user, group, dir_fd=parent, follow_symlinks=False)


@contextmanager
def locked(file: Path, problem: str) -> Iterator[None]:
    """Holds a lock file, which is removed at the end; a killed process leaves it unlocked.

    If another process holds it, that is a `ResultError` that says `problem`.
    """
    while True:
        lock = file.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ResultError(problem) from None
        if file.exists() and file.stat().st_ino == os.fstat(lock.fileno()).st_ino:
            break
        lock.close()  # its last holder removed the file meanwhile
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        lock.close()


def write_text(path: Path, text: str) -> None:
    """Writes a text file, whole or not at all, and the folder that it is in."""
    make_folder(path.parent)
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def writing(path: Path, note: str = "") -> Iterator[None]:
    """Turns what the system refuses into a `ResultError` that names a path."""
    try:
        with _disk_errors():
            yield
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise ResultError(f"{path}: {problem}{note}") from error


@contextmanager
def _disk_errors() -> Iterator[None]:
    """Turns what Polars raises on a full disk into the `OSError` that everything else raises."""
    try:
        yield
    except Exception as error:
        number = re.search(r"\(os error (\d+)\)", str(error))
        if number is None:
            raise
        code = int(number[1])
        raise OSError(code, os.strerror(code)) from error
