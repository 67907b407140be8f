"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from command import DUMBBELL, complaint_of, dumbbell, everything, output_of, program
from rich.console import Console

from dumbbell import Result, __version__, _core
from dumbbell.cli import compare, export
from dumbbell.cli.app import COMMANDS
from dumbbell.cli.options import split_algorithms
from dumbbell.cli.output import make_bars
from dumbbell.exports import FORMATS
from dumbbell.figures.result import FIGURES

EXPERIMENT = """
duration = "2 s"

[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"

[[flow]]
name = "first"
cc = "reno"

[[flow]]
name = "second"
cc = "cubic"
start = "100 ms"
"""


MARKS_ITS_FIRST_ACK = """
from pathlib import Path

from dumbbell.cc import WindowRule


class Marking(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        Path("first-ack").touch()
        return acked / cwnd

    def decrease(self, cwnd, path, event):
        return cwnd / 2

    def observe(self, path, ack):
        Path("first-ack").touch()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(EXPERIMENT)
    return path


def test_run_prints_a_table_and_writes_a_result_folder(file: Path, tmp_path: Path) -> None:
    printed = output_of("run", file, cwd=tmp_path)
    for word in ("first", "second", "reno", "cubic", "Mbit/s", "bottleneck", "Jain's index"):
        assert word in printed
    result = Result.load(tmp_path / "results" / "two")
    assert result.seeds == [1]
    assert result.flow_names == ["first", "second"]


def test_run_prints_a_title_and_names_as_the_file_has_them(file: Path, tmp_path: Path) -> None:
    title = 'title = "[red]Two[/red] \\u001b[31mflows"'
    file.write_text(f"{title}\n{EXPERIMENT.replace('first', '[b]first[/b]')}")
    printed = output_of("run", file, cwd=tmp_path)
    assert printed.startswith("[red]Two[/red] \\x1b[31mflows\n")
    assert "\n[b]first[/b]  reno " in printed


def test_progress_bars_show_a_name_in_brackets_as_it_is() -> None:
    shown = io.StringIO()
    with make_bars(Console(file=shown, width=80, force_terminal=True)) as bars:
        bars.add_task("[red]a[/red].toml: simulating", total=1.0)
    assert "[red]a[/red].toml: simulating" in shown.getvalue()


def test_run_takes_seeds_jobs_a_folder_and_overrides(file: Path, tmp_path: Path) -> None:
    options = ["--out", "here", "--seeds", "3", "--jobs", "2"]
    overrides = ["--set", "flow.*.cc=reno", "--set", "duration=1 s", "--set", "start_jitter=9 ms"]
    assert "mean of 3 seeds" in output_of("run", file, *options, *overrides, cwd=tmp_path)
    result = Result.load(tmp_path / "here")
    assert result.seeds == [1, 2, 3]
    assert {flow.cc for flow in result.experiment.flows} == {"reno"}
    assert result.experiment.duration == "1 s"


def test_run_prints_one_json_object_if_asked_to(file: Path, tmp_path: Path) -> None:
    printed: dict[str, Any] = json.loads(output_of("run", file, "--json", cwd=tmp_path))
    assert [flow["flow"] for flow in printed["flows"]] == ["first", "second"]
    assert all(flow["throughput"] > 1e6 for flow in printed["flows"])
    meta = printed["meta"]
    assert meta["data_packets"] == sum(flow["sent"] for flow in printed["flows"])
    assert meta["wall_s"] > 0
    assert (meta["seed"], meta["version"]) == (1, __version__)


def test_compare_answers_the_quick_question(tmp_path: Path) -> None:
    printed = output_of("compare", "--cc", "reno,cubic", "--duration", "5 s", cwd=tmp_path)
    for word in ("reno", "cubic", "Throughput", "Queueing", "Retransmitted", "Jain's", "Mbit/s"):
        assert word in printed
    assert everything(tmp_path) == set()


def test_compare_runs_the_algorithms_of_udt_over_udt(tmp_path: Path) -> None:
    arguments = ["--cc", "udt,cubic", "--flows", "1", "--duration", "20 s", "--json"]
    printed: dict[str, Any] = json.loads(output_of("compare", *arguments, cwd=tmp_path))
    assert all(row["utilisation"] > 0.5 for row in printed["algorithms"])


def test_compare_prints_one_json_object_if_asked_to(tmp_path: Path) -> None:
    arguments = ["--cc", "reno,cubic(hystart=off)", "--flows", "3", "--duration", "5 s", "--json"]
    printed: dict[str, Any] = json.loads(output_of("compare", *arguments, cwd=tmp_path))
    assert [row["cc"] for row in printed["algorithms"]] == ["reno", "cubic(hystart=off)"]
    assert len(printed["flows"]) == 6
    for row in printed["algorithms"]:
        assert 0.5 < row["utilisation"] <= 1
        assert 1 / 3 <= row["jain"] <= 1
    meta = printed["meta"]
    assert meta["data_packets"] == sum(flow["sent"] for flow in printed["flows"])
    assert set(meta) >= {"wall_s", "seed", "version"}


def test_compare_against_a_rival_tells_the_harm_done_to_it(tmp_path: Path) -> None:
    arguments = ["--cc", "reno,cubic", "--against", "reno", "--duration", "10 s", "--json"]
    printed: dict[str, Any] = json.loads(output_of("compare", *arguments, cwd=tmp_path))
    for row in printed["algorithms"]:
        assert 0 < row["harm"] < 1
        assert row["throughput"] + row["rival_throughput"] <= 100e6


def test_compare_draws_a_picture_and_keeps_results(tmp_path: Path) -> None:
    arguments = ["compare", "--cc", "reno,cubic", "--duration", "5 s"]
    printed = output_of(*arguments, "--out", "both", cwd=tmp_path)
    assert printed.endswith("The picture is both/comparison.svg\n")
    left = {path.name for path in (tmp_path / "both").iterdir()}
    assert left == {"reno", "cubic", "comparison.svg"}
    output_of("report", "both", cwd=tmp_path)
    output_of(*arguments, "--out", "only.png", cwd=tmp_path)
    assert (tmp_path / "only.png").read_bytes().startswith(b"\x89PNG")
    said = complaint_of(*arguments, "--rtt", "30 ms", "--out", "both", cwd=tmp_path)
    assert said.startswith("both/reno: holds another result")


def test_algorithms_are_split_at_commas_outside_parentheses() -> None:
    assert split_algorithms("reno, cubic(a=1, b=2),bbr") == ["reno", "cubic(a=1, b=2)", "bbr"]


def test_plot_draws_a_result_into_its_folder_or_elsewhere(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    assert output_of("plot", "r", cwd=tmp_path) == "r/figure.svg\nr/figure.png\n"
    assert "<svg" in (tmp_path / "r" / "figure.svg").read_text()
    assert (tmp_path / "r" / "figure.png").read_bytes().startswith(b"\x89PNG")
    output_of("plot", "r", "--out", "mine.svg", cwd=tmp_path)
    assert (tmp_path / "mine.svg").read_bytes() == (tmp_path / "r" / "figure.svg").read_bytes()
    output_of("run", file, "--out", "r", cwd=tmp_path)
    assert (tmp_path / "r" / "figure.svg").exists(), "it is of the same result"
    said = complaint_of(
        "run", file, "--seeds", "2", "--set", "duration=3 s", "--out", "r", cwd=tmp_path
    )
    again = f"dumbbell run {file} --seeds 2 --set 'duration=3 s' --out r --overwrite"
    assert said.endswith(f"; name another path with --out, or: {again}")
    output_of("run", file, "--set", "duration=3 s", "--out", "r", "--overwrite", cwd=tmp_path)
    assert not (tmp_path / "r" / "figure.svg").exists()


def test_a_figure_s_name_may_have_dots(file: Path, tmp_path: Path) -> None:
    dumbbell("run", file, "--out", "r", cwd=tmp_path)
    for name in ("rate-0.5", "rate-0.7"):
        said = output_of("plot", "r", "--out", name, cwd=tmp_path)
        assert said.split() == [f"{name}.svg", f"{name}.png"]
        assert (tmp_path / f"{name}.svg").is_file()
    assert output_of("plot", "r", "--out", "f.svg", cwd=tmp_path) == "f.svg\n"
    assert not (tmp_path / "f.png").exists()


def test_plot_of_what_is_no_result_is_refused(file: Path, tmp_path: Path) -> None:
    assert "is not a result folder" in complaint_of("plot", "nowhere", cwd=tmp_path)
    said = complaint_of("plot", file.name, cwd=file.parent)
    assert said.endswith(
        f"it is an experiment file; make the folder with: dumbbell run {file.name}"
    )
    output_of("run", file, "--out", "r", cwd=tmp_path)
    said = complaint_of("plot", "r", "--seed", "7", cwd=tmp_path)
    assert said == "r: has no seed 7; choose from 1"


def test_list_names_algorithms_stacks_papers_and_metrics(tmp_path: Path) -> None:
    printed = output_of("list", cwd=tmp_path)
    links = ("leo", "policer", "fq_pie", "dualpi2")
    for word in (*_core.algorithms(), *links, *_core.stacks(), "staggered-start", "jain", "harm"):
        assert word in printed
    assert set(json.loads(output_of("list", "--json", cwd=tmp_path))) == {
        *("algorithms", "templates", "aqms", "stacks", "quic_stacks", "bulk_transports"),
        *("media", "papers", "metrics"),
    }


def test_help_names_every_command(tmp_path: Path) -> None:
    printed = output_of("--help", cwd=tmp_path)
    for command in ("run", "compare", "plot", "report", "reproduce", "list"):
        assert command in printed
    assert output_of("--version", cwd=tmp_path) == f"dumbbell {__version__}\n"


def test_the_package_runs_as_a_module_too(tmp_path: Path) -> None:
    version = [sys.executable, "-m", "dumbbell", "--version"]
    assert subprocess.check_output(version, cwd=tmp_path, text=True) == f"dumbbell {__version__}\n"


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rep", ["report", "reproduce"]),
        ("reproduce f-", ["f-bbrv2"]),
        ("run a.toml --backend l", ["linux"]),
        ("compare --cc reno,udt", ["reno,udt"]),
        ("compare --stack n", ["ns-3"]),
        ("plot results/a thr", ["throughputs"]),
    ],
)
def test_a_shell_completes_commands_papers_and_choices(
    tmp_path: Path, typed: str, completed: list[str]
) -> None:
    asked = {
        "_DUMBBELL_COMPLETE": "complete_bash",
        "COMP_WORDS": f"dumbbell {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in asked.items():
            patch.setenv(name, value)
        assert output_of(cwd=tmp_path).split() == completed


def test_the_help_of_every_command_fits_and_shows_no_value_for_a_switch(tmp_path: Path) -> None:
    for name in COMMANDS:
        printed = output_of(name, "--help", cwd=tmp_path)
        assert "bool" not in printed
        assert max(map(len, printed.splitlines())) <= 80


def test_help_shows_words_in_brackets(tmp_path: Path) -> None:
    assert "the axes of its [sweep]" in output_of("--help", cwd=tmp_path)
    printed = output_of("sweep", "--help", cwd=tmp_path)
    assert "the axes of its [sweep]" in printed
    assert "Experiment with [sweep], a TOML file." in printed


def test_the_command_line_starts_without_the_libraries_that_take_long(tmp_path: Path) -> None:
    code = "import sys, dumbbell.cli; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    slow = {"polars", "pydantic", "numpy", "matplotlib", "pandas", "jinja2"}
    assert not slow & set(loaded.stdout.split())


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert complaint_of("run", "no.toml", cwd=tmp_path) == "no.toml: there is no such file"


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
    ],
)
def test_a_mistake_in_options_is_told_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    assert complaint_of(*arguments, cwd=tmp_path).startswith(said)


def test_the_choices_of_options_are_those_of_the_engine() -> None:
    assert get_args(compare.Stack) == tuple(_core.stacks())
    assert get_args(export.Format) == tuple(FORMATS)


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
    for name in ["figure", "both", *(set(FIGURES) - {"overview"})]:
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


def test_a_result_is_not_written_over_the_file_it_comes_from(file: Path, tmp_path: Path) -> None:
    output_of("run", file, "--out", "r", cwd=tmp_path)
    said = complaint_of("run", "r/experiment.toml", "--out", "r", cwd=tmp_path)
    assert said.startswith("r: is where r/experiment.toml lies")


def test_an_unknown_paper_is_answered_with_those_there_are(tmp_path: Path) -> None:
    said = complaint_of("reproduce", "no-such-paper", cwd=tmp_path)
    assert "no-such-paper" in said
    assert "staggered-start" in said


def test_a_wrong_option_is_the_users_mistake(tmp_path: Path) -> None:
    done = dumbbell("run", "--no-such-option", cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [("list",), ("run", "a.toml", "--json"), ("--help",)])
@pytest.mark.slow
def test_where_nothing_can_be_printed_one_line_says_so(
    file: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file.rename(tmp_path / "a.toml")
    with Path("/dev/full").open("w") as full:
        command = [str(DUMBBELL), *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    said = "dumbbell: what it prints cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, said)


@pytest.mark.slow
def test_names_that_the_terminal_cannot_show_are_told_in_its_own_letters(
    file: Path, tmp_path: Path
) -> None:
    file.write_text(EXPERIMENT.replace("first", "größt"))
    for arguments in ((), ("--json",)):
        command = [str(DUMBBELL), "run", str(file), "--out", "r", *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            check=True,
        )
        told = done.stdout.decode("ascii")
    assert json.loads(told)["flows"][0]["flow"] == "größt"


def test_a_reader_that_stops_reading_is_no_mistake(tmp_path: Path) -> None:
    command = f"{DUMBBELL} list | head -1"
    done = subprocess.run(
        command, cwd=tmp_path, shell=True, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("Algorithms")
    assert done.stderr == ""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on Unix")
@pytest.mark.slow
def test_an_interrupted_run_writes_nothing(file: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MARKS_ITS_FIRST_ACK)
    command: list[str | Path] = [
        DUMBBELL,
        "run",
        file,
        "--set",
        "duration=100000 s",
        "--set",
        "sample=1 s",
        "--set",
        "flow.second.cc=mine.py:Marking",
    ]
    running = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "first-ack").exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130
    assert "Traceback" not in said
    left = {path for path in everything(tmp_path) if "__pycache__" not in path.parts}
    assert left == {file, mine, tmp_path / "first-ack"}


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ('queue = "0.5 BDP"', "\n1 BDP is 50 kB (33 packets of 1,500 bytes)\n"),
        ("", "\n1 BDP is 50 kB (33 packets of 1,500 bytes)\n"),
        ('queue = "50 packets"', ""),
        ('queue = "unlimited"', ""),
    ],
)
def test_run_says_what_a_bdp_is(tmp_path: Path, queue: str, said: str) -> None:
    link = f'[[link]]\nname = "l"\nrate = "10 Mbit/s"\ndelay = "20 ms"\n{queue}\n'
    (tmp_path / "a.toml").write_text(f'duration = "1 s"\n{link}[[flow]]\ncc = "reno"\n')
    printed = output_of("run", "a.toml", cwd=tmp_path)
    assert said in printed
    assert bool(said) == ("BDP" in printed)


def test_a_key_is_explained_without_its_table_and_an_option_alone(tmp_path: Path) -> None:
    assert output_of("explain", "queue", cwd=tmp_path).startswith("link.queue: ")
    assert output_of("explain", "cubic.beta", cwd=tmp_path) == (
        "cubic.beta: 0.1 to 0.99 (default 0.7)\n"
    )
    assert 'no topic "cubic.gamma"' in complaint_of("explain", "cubic.gamma", cwd=tmp_path)
    said = complaint_of("explain", "name", cwd=tmp_path)
    assert said == '"name" is a key of several tables; write link.name or flow.name'


def test_a_starter_that_is_there_is_kept_and_no_option_named_in_vain(tmp_path: Path) -> None:
    output_of("init", "a.toml", cwd=tmp_path)
    said = complaint_of("init", "a.toml", cwd=tmp_path)
    assert said == (
        "a.toml: exists already; name another file, or: dumbbell init a.toml --overwrite"
    )
    output_of("init", "a.toml", "--overwrite", cwd=tmp_path)
    assert complaint_of("init", ".", cwd=tmp_path) == ".: is a folder; name a file"


def test_a_closed_pipe_has_the_status_of_sigpipe(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    process = subprocess.Popen([DUMBBELL, "list"], cwd=tmp_path, stdout=writes)
    os.close(writes)
    assert process.wait() == 141
