"""Mistakes of the user: each is told in one paragraph that says what would be valid."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import polars as pl
import pytest
from command import EXPERIMENT, complaint_of, dumbbell, output_of, program

from dumbbell import _core

if TYPE_CHECKING:
    from pathlib import Path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert complaint_of("run", "no.toml", cwd=tmp_path) == "no.toml: there is no such file"


@pytest.mark.parametrize("command", ["run", "sweep", "check"])
def test_a_python_file_in_the_place_of_an_experiment_is_refused(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("class Mine: ...\n")
    said = complaint_of(command, "mine.py", cwd=tmp_path)
    assert said.startswith("mine.py: is a Python file; name a class of it in an experiment")


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_file_whose_name_is_no_text_is_refused(command: str, tmp_path: Path) -> None:
    name = os.fsdecode(b"bad\xff.toml")
    (tmp_path / name).write_text(EXPERIMENT)
    said = complaint_of(command, name, cwd=tmp_path)
    assert said == "bad\\udcff.toml: has a name that is not text in UTF-8; rename it"


def test_a_note_alone_makes_no_error_that_of_an_algorithm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explain(_topic: str) -> str:
        error = KeyError("ours")
        error.add_note("a note")
        raise error

    monkeypatch.setattr(_core, "explain", explain)
    with pytest.raises(KeyError):
        dumbbell("explain", "rate", cwd=tmp_path)


def test_a_directory_instead_of_a_file_is_named(file: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    said = complaint_of("run", "folder", cwd=tmp_path)
    assert said.startswith("folder: is a directory, not a file; an experiment file is TOML")
    output_of("run", file, "--out", "done", cwd=tmp_path)
    said = complaint_of("run", "done", cwd=tmp_path)
    assert said.endswith("to run it again, name done/experiment.toml")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\x7fELF\x02\x01\x80\x00", "is not text in UTF-8 (byte 6 is 0x80)"),
        (b'duration "10 s"', "bad.toml:1: is not valid TOML: key with no value, expected `=`"),
        (b"[[link]]\nname = ", "bad.toml:2: is not valid TOML: string values must be quoted"),
        (b"a = " + b"[" * 100_000, "is not valid TOML: cannot recurse further"),
        (b"\x00" * 100, "is not valid TOML"),
        (b"seeds = " + b"9" * 5000, "9... is too large a number; write less than 2^63"),
    ],
    ids=["empty", "blank", "binary", "syntax", "cut off", "nested", "zeros", "endless number"],
)
def test_a_file_that_is_no_experiment_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    assert said in complaint_of("run", "bad.toml", cwd=tmp_path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rate = '-1 Mbit/s'", 'link.bottleneck.rate: "-1 Mbit/s" is negative; write a rate as'),
        ("rate = '10'", 'link.bottleneck.rate: "10" lacks a unit; write a rate as'),
        ("rate = nan", 'link.bottleneck.rate: "nan" is not a finite number; write a rate as'),
        ("queue = '0 packets'", 'link.bottleneck.queue: "0 packets" is nothing; write more'),
        ("queue = 0", "link.bottleneck.queue: 0 lacks a unit; write a queue as"),
        ("quue = '1 BDP'", 'link.bottleneck.quue: there is no such key (did you mean "queue"?)'),
    ],
)
def test_a_bad_value_of_a_link_is_refused_with_file_and_key(
    line: str, said: str, tmp_path: Path
) -> None:
    kept = [x for x in EXPERIMENT.splitlines() if x.split(" ")[0] != line.split(" ", maxsplit=1)[0]]
    text = "\n".join(kept).replace("[[link]]", f"[[link]]\n{line}")
    (tmp_path / "bad.toml").write_text(text)
    assert complaint_of("run", "bad.toml", cwd=tmp_path).startswith(f"bad.toml:5: {said}")


def test_an_unknown_algorithm_is_answered_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(EXPERIMENT.replace("cubic", "cubik"))
    assert complaint_of("run", "bad.toml", cwd=tmp_path) == (
        'bad.toml:15: flow.second.cc: no algorithm is called "cubik" (did you mean "cubic"?); '
        "choose from " + ", ".join([*_core.algorithms(), "scream", "gcc"])
    )
    said = complaint_of("compare", "--cc", "reno,cubik", cwd=tmp_path)
    assert said.startswith('--cc: no algorithm is called "cubik" (did you mean "cubic"?)')


def test_a_flow_over_a_missing_link_is_answered_with_those_there_are(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(EXPERIMENT + 'path = ["bottleneck", "moon"]\n')
    said = 'bad.toml:17: flow.second.path[1]: no link is called "moon"; choose from bottleneck'
    assert complaint_of("run", "bad.toml", cwd=tmp_path) == said


@pytest.mark.slow
def test_ten_million_flows_are_refused_before_any_is_made(file: Path, tmp_path: Path) -> None:
    """With 4 GB of addresses, of which 10 million flows as objects would take more."""
    resource = pytest.importorskip("resource")
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (4 << 30, 4 << 30))
    refused = partial(complaint_of, cwd=tmp_path, run=partial(program, preexec_fn=limit))
    said = refused("run", file, "--set", "flow.first.repeat=10000000")
    assert said == f"{file}:9: flow: there are 10,000,001 flows; the maximum is 1,000,000"
    huge = tmp_path / "huge.toml"
    huge.write_bytes(EXPERIMENT.encode() + b'[[flow]]\ncc = "reno"\n' * 10_000_000)
    said = refused("run", "huge.toml")
    huge.unlink()
    assert said.startswith("huge.toml: holds 210 MB and 10,000,002 [[flow]] tables; the most")


def test_an_override_that_is_none_is_refused(file: Path, tmp_path: Path) -> None:
    assert complaint_of("run", file, "--set", "duration", cwd=tmp_path) == (
        f'{file}: "duration" is not an assignment; write KEY=VALUE'
    )


def test_seeds_and_jobs_must_be_positive(file: Path, tmp_path: Path) -> None:
    for option in ("--seeds", "--jobs"):
        for command in (("run", file), ("reproduce", "staggered-start"), ("compare",)):
            said = complaint_of(*command, option, "0", cwd=tmp_path)
            assert said.startswith(f"{option}: must be a whole number of at least 1; see ")
    assert complaint_of("run", file, "--seeds", "x", cwd=tmp_path) == (
        "--seeds: must be a whole number; see dumbbell run --help"
    )
    said = complaint_of("udt", "serve", "--clients", "10001", cwd=tmp_path)
    assert said.startswith("--clients: must be a whole number from 1 to 10000; see ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "a.toml", "--backend", "lin"], "--backend: 'lin' is not one of 'simulator', 'li"),
        (["compare", "--stack", "bsd"], "--stack: 'bsd' is not one of 'linux', 'linux-2.6.18', "),
        (
            ["compare", "--ecn", "on"],
            "--ecn: 'on' is not one of 'off', 'classic', 'accurate', 'l4s'",
        ),
        (["export", "r", "--format", "xls"], "--format: 'xls' is not one of 'csv', 'arrow', 'ql"),
        (["plot", "r", "--format", "gif"], "--format: 'gif' is not one of 'svg', 'png', 'pdf'; "),
        (["run"], "Missing argument 'FILE'; see dumbbell run --help"),
        (["run", "a.toml", "--sed", "1"], "No such option: --sed (Possible options: "),
        (["rum"], "No such command 'rum'. Did you mean 'run'? See dumbbell --help"),
        (["compare", "--scenarios", "papers"], "--scenarios: is now a command; write dumbbell be"),
        (["compare", "--beside", "bbr"], "--beside: is now --others of `benchmark`; write dumbbe"),
        (
            ["reproduce", "tein2", "--figure", "7", "--backend", "linux"],
            "--backend: linux has no effect beside --figure, which draws simulated runs; leave",
        ),
        (
            ["reproduce", "tein2", "--figure", "7", "--full"],
            "--full: has no effect beside --figure",
        ),
        (["reproduce", "tein2", "--figure", "7", "--overwrite"], "--overwrite: has no effect"),
        (["reproduce", "bbr-questions", "--full"], "--full: has no effect on bbr-questions; lea"),
        (["reproduce", "bbr-questions", "--seeds", "2"], "--seeds: has no effect on bbr-questions"),
        (["reproduce", "bbr-questions", "--figure", "x"], "--figure: has no effect on bbr-questio"),
        (["benchmark", "tein2", "--others", "foo"], '--others: no algorithm is called "foo"'),
        (["benchmark", "tein2", "--cc", "foo"], '--cc: no algorithm is called "foo"'),
        (["benchmark", "tein2", "--others", "udt"], '--others: "udt" is for UDT'),
        (["compare", "--cc", "linux:foo"], '--cc: "linux:foo" is for real packets only'),
        (["compare", "--against", "linux:foo"], '--against: "linux:foo" is for real packets only'),
        (["udt", "bench", "localhost", "--duration", "10"], '--duration: "10" lacks a unit'),
        (["udt", "ls", "localhost:99999"], "localhost:99999: the port is not a whole number from"),
        (["plot", "tein2", "4", "--seed", "3"], "--seed: is for figures of a result, which tein2"),
    ],
)
def test_a_mistake_in_options_is_told_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    assert complaint_of(*arguments, cwd=tmp_path).startswith(said)


def test_a_result_with_other_contents_is_refused_in_a_sentence(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    series = tmp_path / "r" / "series.parquet"
    pl.read_parquet(series).drop("cwnd").write_parquet(series)
    (tmp_path / "r" / "report.html").unlink(missing_ok=True)
    for command in ("report", "plot"):
        said = complaint_of(command, "r", cwd=tmp_path)
        assert said.startswith("r/series.parquet: lacks the column cwnd")
    (tmp_path / "r" / "meta.json").write_text("[1]")
    for command in ("report", "plot"):
        said = complaint_of(command, "r", cwd=tmp_path)
        assert said.startswith("r/meta.json: is not a JSON object")


def test_a_time_with_a_zone_is_refused_in_a_sentence(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    said = complaint_of("query", "select now()", "r", cwd=tmp_path)
    assert said == "times with a time zone cannot be read; cast them, as in now()::timestamp"


def test_an_unknown_paper_is_answered_with_those_there_are(tmp_path: Path) -> None:
    said = complaint_of("reproduce", "no-such-paper", cwd=tmp_path)
    assert "no-such-paper" in said
    assert "staggered-start" in said


def test_a_wrong_option_is_the_users_mistake(tmp_path: Path) -> None:
    done = dumbbell("run", "--no-such-option", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
