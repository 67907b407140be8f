"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, get_args

import pytest
from command import EXPERIMENT, complaint_of, dumbbell, everything, output_of
from rich.console import Console

from dumbbell import Result, __version__, _core
from dumbbell.cli import compare, export
from dumbbell.cli.app import COMMANDS
from dumbbell.cli.options import split_algorithms
from dumbbell.cli.output import make_bars
from dumbbell.exports import FORMATS
from dumbbell.results.tables import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path


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


def test_json_of_a_comparison_has_the_intervals_of_its_table(tmp_path: Path) -> None:
    arguments = ["--cc", "cubic", "--flows", "2", "--duration", "4 s", "--rate", "20 Mbit/s"]
    arguments += ["--start-jitter", "2 s", "--seeds", "2", "--json"]
    printed: dict[str, Any] = json.loads(output_of("compare", *arguments, cwd=tmp_path))
    [row] = printed["algorithms"]
    assert row["intervals"]["jain"][0] == 0.5  # no Jain's index of two flows is less
    assert "jain_least" not in row


def test_compare_prints_one_json_object_if_asked_to(tmp_path: Path) -> None:
    arguments = ["--cc", "reno,cubic(beta=0.8)", "--flows", "3", "--duration", "5 s", "--json"]
    printed: dict[str, Any] = json.loads(output_of("compare", *arguments, cwd=tmp_path))
    assert [row["cc"] for row in printed["algorithms"]] == ["reno", "cubic(beta=0.8)"]
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


def test_an_aqm_is_compared_without_a_limit_of_its_queue(tmp_path: Path) -> None:
    arguments = ["compare", "--cc", "reno", "--flows", "1", "--rtt", "20 ms", "--duration", "10 s"]
    printed = output_of(*arguments, "--aqm", "cake", cwd=tmp_path)
    assert "queue unlimited with cake" in printed
    limited = dumbbell(*arguments, "--aqm", "cake", "--queue", "1 BDP", cwd=tmp_path)
    assert "leave out the link's queue" in limited.stderr
    printed = output_of(*arguments, "--aqm", "none", cwd=tmp_path)
    assert "queue 1 BDP: 1 flow" in printed


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


def test_the_choices_of_options_are_those_of_the_engine() -> None:
    assert get_args(compare.Stack) == tuple(_core.stacks())
    assert get_args(export.Format) == tuple(FORMATS)


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


def test_a_template_with_a_queue_of_packets_or_of_a_time_has_no_bdp(tmp_path: Path) -> None:
    for template in ("wifi", "cable"):
        text = f'duration = "1 s"\nlink = [{{ name = "l", template = "{template}" }}]\n'
        (tmp_path / "a.toml").write_text(f'{text}[[flow]]\ncc = "reno"\n')
        assert "BDP" not in output_of("run", "a.toml", "--overwrite", cwd=tmp_path)


@pytest.mark.parametrize(
    ("topic", "parts"),
    [
        ("goodput", ["goodput: Payload that", "(bit/s)", "RFC 2647", "Goodput (Mbit/s)"]),
        ("Jain's index", ["jain: Jain's fairness index", "DEC-TR-301"]),
        ("queueing delay", ["queue_delay_p95 (s)", "RFC 5166", "Queueing delay (ms)"]),
        ("retransmitted", ["retransmission_share: The share", "Retransmitted (%)"]),
        ("queue_delay_p95", ["queueing_delay: "]),
        ("bdp", ["BDP: The bandwidth-delay product", "bytes", "RFC 7323"]),
        ("mean RTT", ["RTT: The round-trip time", "rtt_mean"]),
        ("rtt", ["RTT: The round-trip time", "flow.rtt: the round-trip time", "latest round-tr"]),
        ("begin", ["begin: from when on the flow counts", "Unit: s. Tables: flows, subflows.\n"]),
        ("rtt_samples", ["rtt_samples: number of round-trip times", " Tables: flows, subflows.\n"]),
        (
            "sent",
            ["retransmissions included. Unit: packets. Tables: flows, ", "Tables: series, sub"],
        ),
    ],
)
def test_a_metric_a_term_or_a_column_is_explained_with_unit_and_source(
    topic: str, parts: list[str], tmp_path: Path
) -> None:
    said = output_of("explain", *topic.split(), cwd=tmp_path)
    assert all(part in said for part in parts), said
    assert "`" not in said
    assert "Args" not in said


@pytest.mark.parametrize(
    ("topic", "close"),
    [("goodputt", "goodput"), ("cubicc", "cubic"), ("queing delay", "queueing"), ("begn", "begin")],
)
def test_an_unknown_topic_names_a_close_metric_or_key(
    topic: str, close: str, tmp_path: Path
) -> None:
    said = complaint_of("explain", topic, cwd=tmp_path)
    assert f'no topic "{topic}" (did you mean "{close}' in said


def test_a_key_is_explained_without_its_table_and_an_option_alone(tmp_path: Path) -> None:
    assert output_of("explain", "queue", cwd=tmp_path).startswith("link.queue: ")
    assert output_of("explain", "cubic.beta", cwd=tmp_path) == (
        "cubic.beta: the share of the window that a loss leaves (RFC 9438: beta_cubic): "
        "0.1 to 0.99 (default 0.7)\n"
    )
    assert 'no topic "cubic.gamma"' in complaint_of("explain", "cubic.gamma", cwd=tmp_path)
    said = output_of("explain", "name", cwd=tmp_path)
    assert "link.name: the link's name" in said
    assert "flow.name: the flow's name" in said


def test_every_column_of_a_result_is_explained_and_no_other_metric(tmp_path: Path) -> None:
    for column in {name for columns in COLUMNS.values() for name in columns}:
        assert f"{column}: " in output_of("explain", column, cwd=tmp_path)
    said = output_of("explain", "start", cwd=tmp_path)
    assert "flow.start: when it starts" in said
    assert "crossing_time" not in said
