"""Sweeps, queries and heat maps from the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from shutil import copytree
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from command import DUMBBELL, EXPERIMENT, complaint_of, dumbbell, output_of

from dumbbell import DumbbellError, Experiment, figures, metrics, run, sweep
from dumbbell.figures import room
from dumbbell.papers.registry import BY_NAME, PAPERS
from dumbbell.sweeps.dataset import Dataset
from dumbbell.sweeps.figures import draw
from dumbbell.sweeps.plan import Sweep

if TYPE_CHECKING:
    from pathlib import Path

SWEEP = """
title = "A small one"
duration = "2 s"
start_jitter = "50 ms"
seeds = 3
[[link]]
name = "bottleneck"
delay = "10 ms"
[[flow]]
cc = "reno"
repeat = 2
[sweep]
"link.bottleneck.rate" = ["2 Mbit/s", "4 Mbit/s"]
"flow.*.cc" = ["reno", "cubic"]
"link.bottleneck.queue" = { from = "1 BDP", to = "2 BDP", points = 2 }
"""
MIXED = """
duration = "2 s"
start_jitter = "50 ms"
seeds = 2
[[link]]
name = "bottleneck"
rate = "2 Mbit/s"
delay = "10 ms"
[[flow]]
cc = "reno"
repeat = 2
[[flow]]
cc = "cubic"
[sweep]
"link.bottleneck.queue" = ["0.5 BDP", "1 BDP", "2 BDP", "4 BDP"]
"link.bottleneck.aqm" = ["none", "fq_codel"]
"""
ONE_RATE = SWEEP.partition("[sweep]")[0].replace("delay", 'rate = "10 Mbit/s"\ndelay')


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sweep in it that was run."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "small.toml").write_text(SWEEP)
    said = output_of("sweep", "small.toml", "--out", "small", cwd=folder)
    assert "8 point(s) (mean of 3 seeds, below it its 95 % interval)" in said
    assert "24 runs, 0 of them there before" in said
    assert re.search(r"^2 Mbit/s +reno +1 BDP +1\.\d+ ", said, flags=re.M)
    return folder


def test_a_sweep_as_json_has_a_row_for_each_point(place: Path) -> None:
    said = json.loads(output_of("sweep", "small.toml", "--out", "small", "--json", cwd=place))
    assert said["meta"]["runs"] == 24
    assert said["meta"]["made"] == 0
    assert [row["rate"] for row in said["points"]] == [2e6] * 4 + [4e6] * 4
    assert {row["cc"] for row in said["points"]} == {"reno", "cubic"}
    assert all(0 < row["throughput"] < row["rate"] for row in said["points"])


def test_a_query_is_answered_as_a_table_as_csv_and_as_json(place: Path) -> None:
    sql = "select cc, count(*) as n from flows group by cc order by cc"
    assert output_of("query", sql, "small", cwd=place).split() == [
        "cc",
        "n",
        "cubic",
        "24",
        "reno",
        "24",
    ]
    assert output_of("query", sql, "small", "--csv", cwd=place) == "cc,n\ncubic,24\nreno,24\n"
    said = json.loads(output_of("query", sql, "small", "--json", cwd=place))
    assert said == {"rows": [{"cc": "cubic", "n": 24}, {"cc": "reno", "n": 24}]}


def test_a_query_may_write_a_file(place: Path, tmp_path: Path) -> None:
    sql = "copy (select count(*) as n from runs) to 'n.csv'"
    output_of("query", sql, place / "small", cwd=tmp_path)
    assert (tmp_path / "n.csv").read_text() == "n\n24\n"


def test_a_result_is_asked_like_a_sweep(tmp_path: Path) -> None:
    text = SWEEP.partition("[sweep]")[0].replace("seeds = 3", "")
    result = run(Experiment.parse(text).override("link.*.rate=2 Mbit/s"), out=tmp_path / "result")
    sql = "select max(cwnd) as most from series"
    said = json.loads(output_of("query", sql, "result", "--json", cwd=tmp_path))
    assert said["rows"][0]["most"] == pytest.approx(result.series["cwnd"].max())
    sql = "select throughput, goodput, retransmission_share from flows"
    said = json.loads(output_of("query", sql, "result", "--json", cwd=tmp_path))
    columns = ["throughput", "goodput", "retransmission_share"]
    assert said["rows"] == metrics.summary(result).select(columns).to_dicts()


def test_figures_tell_the_algorithms_of_a_run_apart(tmp_path: Path) -> None:
    axis = '"link.bottleneck.queue" = ["1 BDP", "2 BDP"]'
    text = SWEEP.replace("[sweep]", '[[flow]]\ncc = "cubic"\n[sweep]').partition("[sweep]")[0]
    text = text.replace('delay = "10 ms"', 'delay = "10 ms"\nrate = "2 Mbit/s"')
    (tmp_path / "two.toml").write_text(f"{text}[sweep]\n{axis}\n")
    output_of("sweep", "two.toml", "--out", "two", "--seeds", "2", cwd=tmp_path)
    chosen = ("--by", "cc", "--metric", "throughput")
    for name in ("lines", "cdf", "boxes", "delay"):
        output_of("plot", "two", name, *chosen[: 2 if name == "delay" else 4], cwd=tmp_path)
    with figures.styled():
        _, figure = draw(tmp_path / "two", "lines", x="queue", by="cc", metric="throughput")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["Reno", "CUBIC"]
    said = complaint_of("plot", "two", "lines", "--by", "cc", cwd=tmp_path)
    assert said.startswith('--metric: no metric of algorithms is called "jain"')


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep whose runs have two flows of Reno and one of CUBIC."""
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "mixed.toml").write_text(MIXED)
    output_of("sweep", "mixed.toml", "--out", "mixed", cwd=folder)
    return folder / "mixed"


def test_a_geometric_axis_is_logarithmic_and_has_every_tick(mixed: Path) -> None:
    with figures.styled():
        _, figure = draw(mixed, "lines", x="queue", by="aqm", width=figures.COLUMN)
    (panel,) = figure.axes
    assert panel.get_xscale() == "log"
    assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "1", "2", "4"]
    assert panel.get_xlabel() == "Queue (BDP)"
    legend = panel.get_legend()
    assert legend is not None
    assert legend.get_title().get_text() == "AQM"


def test_the_fair_share_is_that_of_the_flows(mixed: Path) -> None:
    with figures.styled():
        _, heat = draw(mixed, "heat", x="queue", y="aqm", metric="share of cubic")
        _, lines = draw(mixed, "lines", x="queue", by="aqm", metric="share of cubic")
    (image,) = heat.axes[0].images
    assert (image.norm.vmin + image.norm.vmax) / 2 == pytest.approx(100 / 3)  # type: ignore[operator]
    assert heat.axes[1].get_ylabel().endswith("\nwhite: the fair share, 33.3 %")
    (fair,) = (line for line in lines.axes[0].lines if line.get_label() == "fair share")
    assert fair.get_ydata() == pytest.approx([100 / 3] * 2)


def test_a_line_for_each_algorithm_says_what_it_takes_together(mixed: Path) -> None:
    lines = ("plot", mixed, "lines", "--x", "queue", "--by", "cc", "--where", "aqm = 'none'")
    said = complaint_of(*lines, "--metric", "share of cubic", cwd=mixed.parent)
    assert said.startswith('--by: "share of cubic" is of a run, the same for every algorithm')
    assert said.endswith("leave it out, or take another metric")
    with figures.styled():
        where = "aqm = 'none'"
        _, figure = draw(mixed, "lines", x="queue", by="cc", metric="throughput", where=where)
    assert "\nall flows of an algorithm together\n" in figure.axes[0].get_ylabel()


def test_boxes_and_distributions_tell_of_how_many_runs_they_are(mixed: Path) -> None:
    with figures.styled():
        _, boxes = draw(mixed, "boxes", by="aqm")
        _, cdf = draw(mixed, "cdf", by="aqm")
    assert boxes.axes[0].get_xlabel() == "AQM\n8 runs each, whiskers to 1.5 box lengths"
    assert cdf.axes[0].get_ylabel() == "share of the 8 runs of each"


def test_labels_of_delays_stay_inside_and_noise_looks_small(mixed: Path) -> None:
    with figures.styled():
        for width in (1.6, 2.5, figures.COLUMN, figures.PAGE):
            _, figure = draw(mixed, "delay", by="queue", width=width)
            (panel,) = figure.axes
            with room.laid_out(figure):
                assert not room.leave(panel.bbox, [t.get_window_extent() for t in panel.texts])
    low, high = panel.get_ylim()
    assert high - low >= 0.049 * high


def test_the_command_and_python_draw_the_same_lines(mixed: Path) -> None:
    where = "aqm = 'none'"
    with figures.styled():
        _, figure = draw(mixed, "lines", x="queue", by="cc", metric="throughput", where=where)
    (panel,) = figure.axes
    axes = {"link.bottleneck.queue": ["0.5 BDP", "1 BDP", "2 BDP", "4 BDP"]}
    text = MIXED.partition("[sweep]")[0]
    own = sweep(Experiment.parse(text), axes).plot("queue", by="cc")
    for of in ("get_xlabel", "get_ylabel", "get_xscale", "get_ylim"):
        assert getattr(panel, of)() == pytest.approx(getattr(own, of)())


def test_rows_that_are_too_wide_are_told_one_below_the_other(place: Path) -> None:
    sql = "select distinct on (seed) * from flows where point = 0 order by seed limit 2"
    first, second = output_of("query", sql, "small", cwd=place).split("\n\n")
    told = dict(line.split(maxsplit=1) for line in second.splitlines())
    assert (told["seed"], told["cc"]) == ("2", "reno")
    assert [line.split()[0] for line in first.splitlines()] == list(told)


def test_what_json_and_csv_have_no_values_for_is_text_and_decimals_are_numbers(place: Path) -> None:
    sql = "select 1.5::decimal(5,2) d, date '2026-11-22' t, [1, 2] l, null n"
    (row,) = json.loads(output_of("query", sql, "small", "--json", cwd=place))["rows"]
    assert row == {"d": 1.5, "t": "2026-11-22", "l": [1, 2], "n": None}
    header, line, *_ = output_of("query", sql, "small", "--csv", cwd=place).splitlines()
    assert (header, line.split(",")[:2]) == ("d,t,l,n", ["1.5", "2026-11-22"])


@pytest.mark.parametrize(
    ("sql", "folder", "said"),
    [
        ("selec 1", "small", "Parser Error: syntax error"),
        ("throughputt", "small", 'no metric of this sweep is called "throughputt" (did you mean'),
        ("select rat from runs", "small", 'Candidate bindings: "rate"'),
        ("from run", "small", "the tables are plan, runs, flows, links"),
        ("from views", "small", "Table with name views does not exist"),
        ("create table a as from runs; create table b as from runs", "small", ""),
        ("select 1 as a, 2 as a", "small", 'two columns of the answer are called "a"; give one'),
        ("from runs", "nowhere", "nowhere: is neither a result nor a sweep: there is no such"),
        ("from runs", ".", "is neither a result nor a sweep: it holds no tables"),
    ],
)
def test_a_query_that_cannot_be_answered_is_told_why(
    place: Path, sql: str, folder: str, said: str
) -> None:
    if said:
        assert said in complaint_of("query", sql, folder, cwd=place)
    else:
        output_of("query", sql, folder, cwd=place)


def test_a_metric_of_a_result_that_is_no_sweep_is_told_apart_from_sql(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(ONE_RATE)
    output_of("run", "one.toml", "--out", "one", cwd=tmp_path)
    for metric in ("share of reno", "throughput"):
        said = complaint_of("query", metric, "one", cwd=tmp_path)
        assert "one is no sweep; ask in SQL, such as 'select * from flows'" in said


def test_a_heat_map_is_drawn_over_the_axes_that_are_named(place: Path) -> None:
    heat = ("plot", "small", "heat", "--x", "rate", "--y", "cc")
    mixed = complaint_of(*heat, cwd=place)
    assert (
        'would mix the values of the axis "queue"; choose one, as with --where "queue = 1"' in mixed
    )
    said = output_of(*heat, "--where", "queue = 1", "--out", "map", cwd=place)
    assert said.split() == ["map.svg", "map.png"]
    assert (place / "map.svg").read_text().startswith("<?xml")
    # Figures in a sweep's folder do not keep it from being extended.
    metric = ("--metric", "queue_delay_p95 / queue")
    output_of("plot", "small", "heat", *metric, "--where", "queue = 1", cwd=place)
    output_of("sweep", "small.toml", "--out", "small", cwd=place)


@pytest.mark.parametrize("name", ["lines", "delay", "cdf", "boxes"])
def test_every_figure_of_a_sweep_is_drawn(place: Path, name: str) -> None:
    fixed = ("--where", "queue = (select min(queue) from runs)") if name == "lines" else ()
    stem = "small/delay" if name == "delay" else f"small/{name}-throughput"
    metric = () if name == "delay" else ("--metric", "throughput")
    said = output_of("plot", "small", name, *metric, *fixed, cwd=place)
    assert said.split() == [f"{stem}.svg", f"{stem}.png"]
    assert (place / f"{stem}.svg").stat().st_size > 1000


def test_the_file_of_a_figure_is_called_after_what_it_shows(tmp_path: Path) -> None:
    alone = EXPERIMENT.partition('[[flow]]\nname = "second"')[0]
    (tmp_path / "a.toml").write_text(f'{alone}[sweep]\n"link.*.rate" = ["1 Mbit/s", "2 Mbit/s"]\n')
    output_of("sweep", "a.toml", "--out", "alone", cwd=tmp_path)
    said = output_of("plot", "alone", cwd=tmp_path)
    assert said.split() == ["alone/lines-throughput.svg", "alone/lines-throughput.png"]


def test_a_figure_says_over_which_axes_it_pools_the_runs(place: Path) -> None:
    with figures.styled():
        _, figure = draw(place / "small", "delay", by="rate")
        _, one = draw(place / "small", "delay", by="rate", where="cc = 'cubic' and queue < 2")
    assert figure.axes[0].get_ylabel().endswith("\nover all values of cc, queue")
    assert one.axes[0].get_ylabel() == "Throughput (Mbit/s)"
    said = output_of("plot", "small", "delay", "--by", "rate", cwd=place)
    assert said.split()[0] == "small/delay-by-rate.svg"


@pytest.mark.parametrize(("power", "scale"), [(0, "linear"), (20, "log")])
def test_values_over_decades_have_logarithmic_shades(place: Path, power: int, scale: str) -> None:
    metric = f"pow(queue, {power})"
    with figures.styled():
        small, where = place / "small", "rate = 2e6"
        _, figure = draw(small, "heat", x="queue", y="cc", metric=metric, where=where)
    panel, bar = figure.axes
    assert bar.get_yscale() == scale
    assert bar.get_ylabel().endswith("\nlogarithmic scale") == (scale == "log")
    assert [label.get_text() for label in panel.get_yticklabels()] == ["Reno", "CUBIC"]


def test_the_share_of_an_algorithm_is_a_metric(place: Path) -> None:
    metric = ("--metric", "share of cubic")
    output_of("plot", "small", "heat", "--x", "rate", "--y", "queue", *metric, cwd=place)
    assert (place / "small/heat-share-of-cubic.svg").stat().st_size > 1000
    none = ("--metric", "share of vegas")
    said = complaint_of("plot", "small", "heat", "--x", "rate", "--y", "queue", *none, cwd=place)
    assert said.endswith('"vegas"; choose from reno, cubic, flow-1, flow-2')


def test_the_old_names_of_plot_are_errors_that_name_the_new_one(tmp_path: Path) -> None:
    for old in (("heat", "small", "--x", "rate"), ("figure", "windows", "r")):
        assert "write dumbbell plot FOLDER" in complaint_of(*old, cwd=tmp_path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--x", "rat"], '--x: no axis is called "rat" (did you mean "rate"?)'),
        (["--x", "cc", "--y", "cc"], "a heat map needs two different axes"),
        (
            ["--metric", "jane"],
            '--metric: no metric of a run is called "jane" (did you mean "jain"?)',
        ),
        (["--where", "rate > 1e9"], "no run matches --where; rate has 2e+06, 4e+06 (bit/s)"),
        (["--where", "rate = '2 Mbits'"], "rate is a number in bit/s: rate = 2e+06"),
        (["--by", "cc"], "--by: is for lines, delay, cdf and boxes; heat has --x, --y, --metric"),
        (["--metric", "1 / 0"], "no run there has a value of 1 / 0"),
        (["--metric", "seed"], '--metric: no metric of a run is called "seed"'),
        (["--metric", "'throughput'"], "--metric: 'throughput' is no number; name a column"),
    ],
)
def test_a_heat_map_that_cannot_be_drawn_is_told_why(
    place: Path, options: list[str], said: str
) -> None:
    assert said in complaint_of("plot", "small", "heat", *options, cwd=place)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--until-ci", "wide"], '--until-ci: "wide" is not a share of the mean'),
        (["--until-ci", "5%", "--metric", "speed"], '--metric: no metric is called "speed"'),
        (["--until-ci", "5%", "--max-seeds", "3"], "--max-seeds: 3 is not a number from 10"),
        (["--until-ci", "0%"], "--until-ci: 0 is not a share of the mean; write more than 0"),
        (["--until-ci", "5%", "--backend", "linux"], "--until-ci: is for the simulator; give a nu"),
        (["--metric", "jain"], "--metric: goes with --until-ci, such as 5%"),
        (["--max-seeds", "20"], "--max-seeds: goes with --until-ci, such as 5%"),
        (["--set", "flow.*.cc=bbrr"], 'sweep.flow.*.cc.values[0]: no algorithm is called "bbrr"'),
        (["--out", "."], 'holds "small", which is no part of a sweep'),
        (["--seeds", "0"], "--seeds: must be a whole number of at least 1"),
    ],
)
def test_a_sweep_that_cannot_be_run_is_told_why(place: Path, options: list[str], said: str) -> None:
    assert said in complaint_of("sweep", "small.toml", "--out", "new", *options, cwd=place)


def test_run_and_compare_name_the_option_of_a_wrong_metric(place: Path) -> None:
    said = '--metric: no metric is called "jane" (did you mean "jain"?)'
    (place / "one.toml").write_text(ONE_RATE)
    for command in (("run", "one.toml"), ("compare", "--cc", "reno")):
        wrong = ("--until-ci", "5%", "--metric", "jane")
        assert complaint_of(*command, *wrong, cwd=place).startswith(said)


def test_a_sweep_that_is_refused_leaves_no_folder(place: Path) -> None:
    said = complaint_of("sweep", "small.toml", "--out", "none", "--set", "sample=-1", cwd=place)
    assert "sample" in said
    assert not (place / "none").exists()


@pytest.mark.slow
def test_a_sweep_that_is_interrupted_keeps_what_it_has(place: Path, tmp_path: Path) -> None:
    command: list[str | Path] = ["sweep", place / "small.toml", "--out", "kept", "--seeds", "2000"]
    process = subprocess.Popen([DUMBBELL, *command], cwd=tmp_path, stderr=subprocess.PIPE)
    while not any((tmp_path / "kept/parts").glob("0*")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert 0 < Dataset(tmp_path / "kept").table("runs").height < 8 * 2000


def test_points_whose_intervals_stay_wide_are_listed(tmp_path: Path) -> None:
    queues = ", ".join(f'"{0.1 * place:.1f} BDP"' for place in range(1, 13))
    (tmp_path / "one.toml").write_text(f"{ONE_RATE}[sweep]\n'link.*.queue' = [{queues}]\n")
    options = ["--set", "duration=1 s", "--until-ci", "0.0001%", "--max-seeds", "10"]
    said = output_of("sweep", "one.toml", *options, cwd=tmp_path)
    assert re.search(r"^At 1[12] point\(s\) half .* \(--max-seeds\):$", said, flags=re.M)
    listed = [line for line in said.splitlines() if line.startswith("  queue ")]
    assert len(listed) == 10
    assert "  queue 0.3 BDP" in listed
    assert re.search(r"^  and [12] more$", said, flags=re.M)


def test_a_sweep_without_a_terminal_shows_none_if_colours_are_forced(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SWEEP)
    environment = os.environ | {"FORCE_COLOR": "1"}
    command = [str(DUMBBELL), "sweep", "small.toml", "--seeds", "1"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert done.stderr == b""


def test_runs_repeat_until_their_interval_is_tight(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(SWEEP.partition("[sweep]")[0])
    options = ["--set", "link.*.rate=2 Mbit/s", "--until-ci", "5%", "--max-seeds", "12"]
    said = output_of("run", "one.toml", "--out", "one", *options, cwd=tmp_path)
    seeds = pl.read_parquet(tmp_path / "one/flows.parquet")["seed"].n_unique()
    assert f"mean of {seeds} seeds, below it its 95 % interval" in said
    assert seeds in (10, 12)
    assert ("after 12 seeds, the maximum" in said) or seeds == 10


def test_a_number_in_the_options_of_algorithms_has_colours_of_numbers(tmp_path: Path) -> None:
    axis = (
        '"flow.*.cc" = { from = 0.5, to = 0.8, points = 4, as = "cubic(beta={})", name = "beta" }'
    )
    (tmp_path / "beta.toml").write_text(f"{ONE_RATE}[sweep]\n{axis}\n")
    output_of("sweep", "beta.toml", "--seeds", "1", "--out", "beta", cwd=tmp_path)
    with figures.styled():
        _, figure = draw(tmp_path / "beta", "cdf", by="beta")
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert len({line.get_color() for line in figure.axes[0].get_lines()}) == 4
    assert legend.get_title().get_text() == "beta"


def test_a_legend_has_as_many_columns_as_a_narrow_figure_has_room_for(place: Path) -> None:
    columns = []
    with figures.styled():
        for width in (1.6, figures.PAGE):
            _, figure = draw(place / "small", "cdf", by="rate", width=width)
            figure.draw_without_rendering()
            legend = figure.axes[0].get_legend()
            assert legend is not None
            columns.append(len({round(text.get_window_extent().x0) for text in legend.get_texts()}))
    assert columns == [1, 2]


def test_labels_of_delays_that_overlap_go_into_a_legend(place: Path) -> None:
    with figures.styled():
        _, wide = draw(place / "small", "delay", by="rate")
        _, narrow = draw(place / "small", "delay", by="cc", width=1.5)
    assert (len(wide.axes[0].texts), wide.axes[0].get_legend()) == (2, None)
    assert not narrow.axes[0].texts
    assert narrow.axes[0].get_legend() is not None


def test_a_narrow_figure_is_warned_of_only_if_words_overlap(place: Path) -> None:
    figure = ("plot", "small", "boxes", "--by", "cc", "--overwrite")
    output_of(*figure, "--width", "single", "--out", "boxes.png", cwd=place)
    long = ("--metric", " + ".join(["jain"] * 20))
    said = dumbbell(*figure, *long, "--width", "40mm", "--out", "boxes.png", cwd=place).stderr
    assert said == "dumbbell: boxes.png: words overlap at 40.0 mm; use --width double\n"


def test_a_logarithmic_axis_of_many_values_has_one_notation(tmp_path: Path) -> None:
    line = (
        '"link.bottleneck.queue" = { from = "0.2 BDP", to = "5 BDP", points = 10, scale = "log" }'
    )
    (tmp_path / "log.toml").write_text(f"{ONE_RATE}[sweep]\n{line}\n")
    output_of("sweep", "log.toml", "--seeds", "1", "--out", "log", cwd=tmp_path)
    with figures.styled():
        _, figure = draw(tmp_path / "log", "lines")
        figure.draw_without_rendering()
        axis = figure.axes[0].xaxis
        shown = [label.get_text() for label in axis.get_ticklabels(which="both")]
    assert {"0.2", "0.5", "1"} <= set(filter(None, shown))
    assert all(re.fullmatch(r"[\d.]*", text) for text in shown)
    assert axis.get_label_text() == "Queue (BDP)"


def test_the_share_of_an_algorithm_with_options_needs_no_options(tmp_path: Path) -> None:
    axis = '"flow.flow-1.cc" = { values = ["reno"], name = "first" }'
    text = f'{ONE_RATE}[[flow]]\ncc = "cubic(beta=0.8)"\n[sweep]\n{axis}\n'
    (tmp_path / "two.toml").write_text(text)
    output_of("sweep", "two.toml", "--seeds", "1", "--out", "two", cwd=tmp_path)
    for name in ("cubic", "cubic(beta=0.8)"):
        with figures.styled():
            _, figure = draw(tmp_path / "two", "cdf", metric=f"share of {name}")
        assert "CUBIC (beta=0.8)'s share" in figure.axes[0].get_xlabel()


def test_a_sweep_that_lacks_runs_is_shown_with_a_warning(place: Path, tmp_path: Path) -> None:
    copytree(place / "small", tmp_path / "part")
    for file in (tmp_path / "part/parts").glob("*/runs.parquet"):
        pl.read_parquet(file).head(8).write_parquet(file)
    heat = ["plot", "part", "--where", "queue = 1"]
    for command in (heat, ["report", "part"], ["query", "from runs", "part"]):
        said = dumbbell(*command, cwd=tmp_path).stderr
        rest = "dumbbell sweep part/sweep.toml --out part --seeds 3"
        assert said == f"dumbbell: part: has 8 of 24 planned runs; the rest: {rest}\n"
    assert "These are 8 of 24 planned runs." in (tmp_path / "part/report.html").read_text()


def test_a_sweep_of_another_experiment_is_not_laid_over_one(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(f'{ONE_RATE}[sweep]\n"flow.*.cc" = ["reno", "cubic"]\n')
    command = ("sweep", "one.toml", "--out", "one")
    output_of(*command, cwd=tmp_path)
    shorter = (*command, "--set", "duration=1 s", "--set", "link.bottleneck.loss=0.1")
    said = complaint_of(*shorter, cwd=tmp_path)
    assert 'duration is "2 s" there and "1 s" here; link.bottleneck.loss is not given' in said
    assert pl.read_parquet(tmp_path / "one/plan.parquet").height == 6
    fewer = dumbbell(*command, "--seeds", "2", "--set", "title=again", cwd=tmp_path)
    assert fewer.returncode == 0
    assert "one: 2 earlier run(s) stay and are in no table" in fewer.stderr
    more = dumbbell(*shorter, "--overwrite", cwd=tmp_path)
    assert (more.returncode, "one: 6 earlier run(s) stay" in more.stderr) == (0, True)


def test_a_sweep_whose_seeds_are_identical_is_warned_of_once(tmp_path: Path) -> None:
    text = ONE_RATE.replace('start_jitter = "50 ms"', "")
    (tmp_path / "same.toml").write_text(f'{text}[sweep]\nstart_jitter = ["0 s", "9 ms"]\n')
    said = dumbbell("sweep", "same.toml", "--out", "same", cwd=tmp_path).stderr
    assert said.startswith("dumbbell: all 3 seeds have the same result at 1 of 2 point(s): nothing")
    assert said.count("\n") == 1


def test_an_assignment_to_an_axis_gives_it_one_value(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SWEEP)
    rate, cc = ("--set", "link.bottleneck.rate=3 Mbit/s"), ("--set", "flow.*.cc=vegas")
    said = json.loads(output_of("sweep", "small.toml", *rate, *cc, "--json", cwd=tmp_path))
    assert [(row["rate"], row["cc"]) for row in said["points"]] == [(3e6, "vegas")] * 2
    loose = complaint_of("run", "small.toml", *rate, cwd=tmp_path)
    assert "small.toml: sweep: has several values of flow.*.cc, link.bottleneck.queue" in loose
    assert "--set 'flow.*.cc=reno' --set 'link.bottleneck.queue=1 BDP'" in loose
    queue = ("--set", "link.bottleneck.queue=2 BDP")
    out = ("--out", "one", "--json")
    one = json.loads(output_of("run", "small.toml", *rate, *cc, *queue, *out, cwd=tmp_path))
    mean = sum(row["throughput"] for row in one["runs"]) / 3
    assert mean == pytest.approx(said["points"][1]["throughput"])
    zipped = SWEEP.replace("[sweep]", '[sweep]\ncombine = "zip"')
    assert Sweep.parse(zipped, overrides=["flow.*.cc=vegas"]).count == 2


def test_a_metric_is_queried_as_means_in_text_csv_and_latex(place: Path) -> None:
    query = ("query", "share of cubic", "small")
    lines = output_of(*query, "--csv", cwd=place).splitlines()
    assert lines[0] == "rate,cc,queue,mean,low,high,n"
    assert lines[1] == "2000000.0,cubic,1.0,1.0,1.0,1.0,3"  # alone, as points of Reno have none
    assert re.search(r"^2 Mbit/s +cubic +1 BDP +100 +3$", output_of(*query, cwd=place), re.M)
    tex = output_of(*query, "--latex", cwd=place)
    assert r"rate & cc & queue & CUBIC's share of the data (\%) & Runs \\" in tex
    sql = output_of("query", "select 1 as a_b", "small", "--latex", cwd=place)
    assert "a\\_b \\\\\n\\midrule\n1 \\\\\n\\bottomrule" in sql
    signs = output_of("query", "select '^~' as a", "small", "--latex", cwd=place)
    assert r"\textasciicircum{}\textasciitilde{} \\" in signs


def test_a_folder_called_after_what_is_set_is_proposed(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(ONE_RATE)
    output_of("run", "one.toml", "--seeds", "1", cwd=tmp_path)
    queue = ("run", "one.toml", "--seeds", "1", "--set", "link.bottleneck.queue=2 BDP")
    said = complaint_of(*queue, cwd=tmp_path)
    command = "dumbbell run one.toml --seeds 1 --set 'link.bottleneck.queue=2 BDP'"
    proposed = f"{command} --out results/one-queue-2-BDP, or: {command} --overwrite"
    assert said.endswith(f"; name another path with --out: {proposed}")
    output_of(*queue, "--out", "results/one-queue-2-BDP", cwd=tmp_path)


def test_the_list_of_figures_names_papers_and_a_paper_has_its_own(tmp_path: Path) -> None:
    said = output_of("plot", "--list", cwd=tmp_path)
    assert said.startswith("Of a result, for dumbbell plot FOLDER NAME:\n  overview: ")
    names = "\n  ".join((*PAPERS, *BY_NAME))
    assert said.endswith(f"\nOf a paper, for dumbbell plot PAPER --list:\n  {names}\n")
    assert "tein2 7: Throughput over the round-trip" in output_of(
        "plot", "tein2", "--list", cwd=tmp_path
    )
    told = " ".join(output_of("reproduce", "--help", cwd=tmp_path).split())
    assert f"these are five papers: {', '.join(PAPERS[:-1])} and {PAPERS[-1]}." in told
    assert f"by their names alone: {' and '.join(BY_NAME)}." in told


def test_means_over_names_have_intervals_and_no_lines_between_them(place: Path) -> None:
    with figures.styled():
        _, figure = draw(place / "small", "lines", x="cc", by="rate", where="queue = 1")
    (panel,) = figure.axes
    assert {line.get_linestyle() for line in panel.get_lines()} == {"None"}
    assert len(panel.containers) == 2
    assert len({float(x) for line in panel.get_lines() for x in np.ravel(line.get_xdata())}) == 4


def test_the_figure_of_delays_has_the_delay_that_is_asked_for(place: Path) -> None:
    for metric, label in ((None, "Mean queueing delay"), ("queue_delay_p95", "p95 queueing delay")):
        with figures.styled():
            _, figure = draw(place / "small", "delay", metric=metric)
        assert figure.axes[0].get_xlabel() == f"{label} (ms), to the right is better"
    with pytest.raises(DumbbellError, match='no delay is called "jain"'):
        draw(place / "small", "delay", metric="jain")


def test_a_figure_of_one_run_says_how_to_run_a_point_of_a_sweep(place: Path) -> None:
    said = complaint_of("plot", "small", "windows", cwd=place)
    assert "windows is a figure of one run; run a point of the sweep" in said
    assert "dumbbell run FILE --set 'link.bottleneck.rate=...' --set 'flow.*.cc=...'" in said


def test_an_axis_of_the_only_flow_is_in_the_table_of_flows(tmp_path: Path) -> None:
    one = ONE_RATE.replace("repeat = 2", 'name = "f"') + '[sweep]\n"flow.f.cc" = ["reno", "bbr"]\n'
    two = one.replace("[sweep]", '[[flow]]\ncc = "cubic"\n[sweep]')
    for name, text, is_told in (("one", one, False), ("two", two, True)):
        (tmp_path / f"{name}.toml").write_text(text)
        said = dumbbell("sweep", f"{name}.toml", "--out", name, cwd=tmp_path).stderr
        assert ("is not in the table flows" in said) == is_told
