"""Where commands write: what is there is replaced only on request, and never what is not theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from command import complaint_of, output_of

from dumbbell.figures.result import FIGURES

if TYPE_CHECKING:
    from pathlib import Path


def test_an_output_folder_that_holds_something_else_is_left_alone(
    file: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    said = complaint_of("run", file, "--out", "mine", cwd=tmp_path)
    assert said.startswith('mine: holds "thesis.tex", which is no part of a result')
    assert "is a file" in complaint_of("run", file, "--out", file, cwd=tmp_path)


def test_a_result_with_any_of_its_figures_may_be_replaced(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    for name in ["figure", "both", "internal-W_max", *(set(FIGURES) - {"overview"})]:
        (tmp_path / "r" / f"{name}.svg").touch()
    output_of("run", file, "--out", "r", "--set", "duration=2 s", "--overwrite", cwd=tmp_path)


def test_an_output_folder_that_cannot_be_made_is_the_users_mistake(
    file: Path, tmp_path: Path
) -> None:
    assert "cannot be written" in complaint_of("run", file, "--out", f"{file}/x", cwd=tmp_path)


@pytest.mark.parametrize(
    "command",
    [("run", "a.toml"), ("compare",), ("reproduce",), ("plot", "r"), ("report", "r")],
    ids=lambda command: command[0],
)
def test_a_path_that_the_system_refuses_is_named_before_anything_is_run(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for out, why in (("one", "Too many levels of symbolic links"), ("a" * 300, "File name too lo")):
        said = complaint_of(*command, "--out", out, cwd=tmp_path)
        assert said.startswith(f"{out}: cannot be written: {why}")
        assert said.endswith("; name another path with --out")


def test_what_is_there_is_replaced_only_on_request(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    (tmp_path / "mine.svg").write_text("years of work")
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "main.tex").write_text("years of work")
    for command, out, other in (
        (("plot", "r"), "mine.svg", None),
        (("report", "r"), "mine.svg", "thesis: is a folder; name a file with --out"),
        (("export", "r"), "thesis", "mine.svg: is a file; name a folder with --out"),
        (("reproduce",), None, "mine.svg: is a file; name a folder with --out"),
    ):
        if out:
            said = complaint_of(*command, "--out", out, cwd=tmp_path)
            assert said.startswith(f"{out}: exists already; name another path with --out, or: dum")
            assert said.endswith("--overwrite")
        if other:
            path = other.partition(":")[0]
            assert complaint_of(*command, "--out", path, "--overwrite", cwd=tmp_path) == other
    output_of("plot", "r", "--out", "mine.svg", "--overwrite", cwd=tmp_path)
    assert "years" not in (tmp_path / "mine.svg").read_text()


def test_a_result_is_not_written_over_the_file_it_comes_from(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    said = complaint_of("run", "r/experiment.toml", "--out", "r", cwd=tmp_path)
    assert said.startswith("r: is where r/experiment.toml lies")


def test_a_starter_that_is_there_is_kept_and_no_option_named_in_vain(tmp_path: Path) -> None:
    output_of("init", "a.toml", cwd=tmp_path)
    said = complaint_of("init", "a.toml", cwd=tmp_path)
    assert said == (
        "a.toml: exists already; name another file, or: dumbbell init a.toml --overwrite"
    )
    output_of("init", "a.toml", "--overwrite", cwd=tmp_path)
    assert complaint_of("init", ".", cwd=tmp_path) == ".: is a folder; name a file"
