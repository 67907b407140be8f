"""Sweeps: their axes, what they run, and that nothing kills them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import killing
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from dumbbell import Experiment, ExperimentError, ResultError, metrics, run
from dumbbell.metrics.intervals import Until
from dumbbell.results.tables import read_table
from dumbbell.sweeps.dataset import Dataset, Store, parts
from dumbbell.sweeps.drive import Swept, run_sweep
from dumbbell.sweeps.plan import Sweep
from dumbbell.sweeps.query import query
from dumbbell.sweeps.result import SweepResult

if TYPE_CHECKING:
    from pathlib import Path

    from dumbbell.sweeps.work import Tables

BASE = """
duration = "2 s"
start_jitter = "100 ms"
[[link]]
name = "bottleneck"
rate = "4 Mbit/s"
delay = "10 ms"
[[flow]]
name = "first"
cc = "reno"
[[flow]]
name = "second"
cc = "cubic"
"""

KILLS = int(os.environ.get("KILLS", "5"))


def sweep(axes: str) -> Sweep:
    return Sweep.parse(f"{BASE}[sweep]\n{axes}")


def columns(axes: str) -> list[tuple[float | str, ...]]:
    """The axes' columns at every point."""
    return [point.values for point in sweep(axes).points()]


def names(chosen: Sweep) -> list[str]:
    return [axis.name for axis in chosen.axes]


def test_a_grid_has_every_value_with_every_other_the_last_axis_changing_first() -> None:
    axes = '"flow.first.cc" = ["bbr", "reno"]\n"link.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]'
    assert columns(axes) == [("bbr", 1e6), ("bbr", 2e6), ("reno", 1e6), ("reno", 2e6)]


def test_keys_need_no_quotes_where_toml_needs_none() -> None:
    plain = sweep('link.bottleneck.rate = ["1 Mbit/s"]\nlink.bottleneck.delay = ["1 ms"]')
    assert [axis.key for axis in plain.axes] == ["link.bottleneck.rate", "link.bottleneck.delay"]


def test_tables_of_axes_multiply_and_zipped_axes_go_together() -> None:
    text = f"""{BASE}
[[sweep]]
combine = "zip"
"link.bottleneck.rate" = ["1 Mbit/s", "2 Mbit/s"]
"link.bottleneck.delay" = ["10 ms", "20 ms"]
[[sweep]]
"flow.*.cc" = ["bbr", "reno"]
"""
    assert repr(Sweep.parse(text)) == "<Sweep: 4 points along rate, delay, cc>"
    assert [point.values for point in Sweep.parse(text).points()] == [
        (1e6, 0.01, "bbr"),
        (1e6, 0.01, "reno"),
        (2e6, 0.02, "bbr"),
        (2e6, 0.02, "reno"),
    ]


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ('{ from = "10 ms", to = "30 ms", points = 3 }', [0.01, 0.02, 0.03]),
        ('{ from = "1 ms", to = "1 s", points = 4, scale = "log" }', [0.001, 0.01, 0.1, 1.0]),
        ('{ from = "0 s", to = "1 ms", points = 2 }', [0.0, 0.001]),
        ('["5 ms", "2 us"]', [0.005, 2e-6]),
    ],
)
def test_ranges_are_linear_or_logarithmic_and_columns_count_in_si_units(
    axis: str, values: list[float]
) -> None:
    found = columns(f'"link.bottleneck.delay" = {axis}\n"flow.*.rtt" = ["3 s"]')
    assert [delay for delay, _ in found] == pytest.approx(values)


def test_whole_ends_make_whole_values_as_numbers_of_flows_need() -> None:
    chosen = sweep('"flow.first.repeat" = { from = 1, to = 100, points = 3, scale = "log" }')
    assert [point.values for point in chosen.points()] == [(1.0,), (10.0,), (100.0,)]


def test_a_value_can_be_put_into_text_and_the_axis_be_named() -> None:
    chosen = sweep(
        '"flow.first.cc" = '
        '{ from = 0.5, to = 0.9, points = 3, as = "cubic(beta={})", name = "beta" }'
    )
    assert names(chosen) == ["beta"]
    assert [point.values for point in chosen.points()] == [(0.5,), (0.7,), (0.9,)]
    assert ["beta=0.7" in point.scenario for point in chosen.points()] == [False, True, False]


def test_an_axis_is_called_by_the_last_part_of_its_key_unless_two_would_be() -> None:
    assert names(sweep('"link.bottleneck.rate" = ["1 Mbit/s"]')) == ["rate"]
    both = sweep('"flow.first.cc" = ["bbr"]\n"flow.second.cc" = ["bbr"]')
    assert names(both) == ["flow.first.cc", "flow.second.cc"]
    alike = sweep(
        '"link.bottleneck.rate" = { values = ["1 Mbit/s"], name = "Rate" }\n'
        '"link.bottleneck.delay" = { values = ["1 ms"], name = "rate" }\n'
        '"link.bottleneck.queue" = { values = ["1 BDP"], name = "Jain" }'
    )
    assert names(alike) == [f"link.bottleneck.{key}" for key in ("rate", "delay", "queue")]


DRAWN = """
combine = "{}"
points = {}
"link.bottleneck.rate" = {{ from = "1 Mbit/s", to = "100 Mbit/s", scale = "log" }}
"link.bottleneck.queue" = {{ from = "1 BDP", to = "3 BDP" }}
"flow.first.cc" = ["reno", "bbr"]
"""


def test_random_points_lie_in_their_ranges_and_more_points_begin_with_the_same() -> None:
    some, more = columns(DRAWN.format("random", 20)), columns(DRAWN.format("random", 30))
    assert more[:20] == some
    for rate, queue, cc in some:
        assert isinstance(rate, float)
        assert isinstance(queue, float)
        assert 1e6 <= rate <= 1e8
        assert 1 <= queue <= 3
        assert cc in ("reno", "bbr")


def test_a_latin_hypercube_has_one_point_in_every_stratum_of_every_axis() -> None:
    drawn = columns(DRAWN.format("latin-hypercube", 16))
    queues = sorted(int((float(queue) - 1) / 2 * 16) for _, queue, _ in drawn)
    assert queues == list(range(16))
    assert [cc for *_, cc in drawn].count("bbr") == 8


@pytest.mark.parametrize(
    ("axes", "points"),
    [
        (
            'combine = "random"\npoints = 99\n'
            '"flow.first.cc" = ["bbr", "reno"]\n"flow.first.repeat" = { from = 1, to = 3 }',
            {(cc, count) for cc in ("bbr", "reno") for count in (1.0, 2.0, 3.0)},
        ),
        (
            'combine = "zip"\n"link.bottleneck.rate" = ["1 Gbit/s", "1000 Mbit/s", "1 Gbit/s"]\n'
            '"flow.*.cc" = ["bbr", "bbr", "reno"]',
            {(1e9, "bbr"), (1e9, "reno")},
        ),
    ],
)
def test_points_that_coincide_count_once(axes: str, points: set[tuple[float | str, ...]]) -> None:
    found = columns(axes)
    assert len(found) == sweep(axes).count == len(points)
    assert set(found) == points


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ("", "sweep: has no axis; write one"),
        ('"link.bottleneck.rate" = []', "sweep.link.bottleneck.rate: is empty; write a list of"),
        ('"link.bottleneck.rat" = ["1 bit/s"]', 'rat: there is no such key (did you mean "rate"?)'),
        ('"link.b.rate" = ["1 Mbit/s"]', 'sweep.link.b.rate: no link is called "b"'),
        ('"seeds" = [1, 2]', "sweep.seeds: cannot be an axis"),
        ('"link.bottleneck.rate" = "1 Mbit/s"', '"1 Mbit/s" is not an axis; write a list'),
        ('"link.bottleneck.rate" = ["1 Mbit/s", "1 Mbit/s"]', "is there twice; write every value"),
        ('"link.bottleneck.rate" = ["1 Gbit/s", "1000 Mbit/s"]', 'is "1 Gbit/s" in other words'),
        ('"link.bottleneck.rate" = ["1 Mbit/s", "5"]', "lacks a unit"),
        ('"flow.*.repeat" = { from = 1, to = 4, points = 7 }', "has 2 at several of its 7 points"),
        ('"flow.*.repeat" = { from = 1, to = 4, points = 1 }', "points: 1 is not a number from 2"),
        ('duration = { from = "1 s", to = "9 s" }', "sweep.duration: is a range without a number"),
        ('duration = { from = "9 s", to = "1 s", points = 2 }', '"9 s" is not less than "1 s"'),
        ('duration = { from = "9 s", to = "10 B", points = 2 }', "are not of one kind"),
        ('duration = { from = "0 s", to = "1 s", points = 2, scale = "log" }', "is not above 0"),
        ('duration = { from = "1 s", to = "2 s", step = 2 }', 'no key of an axis is called "step"'),
        ('duration = { to = "2 s", points = 2 }', "lacks from"),
        ('duration = { from = "1 s", to = "2 sec", points = 2 }', 'the unknown unit "sec"'),
        ('combine = "gird"\nduration = ["1 s"]', '"gird" (did you mean "grid"?)'),
        ('combine = "random"\nduration = ["1 s"]', "sweep.points: is missing; write how many"),
        ('points = 5\nduration = ["1 s"]', "sweep.points: is for points that are drawn"),
        (
            'combine = "zip"\nduration = ["1 s", "2 s"]\n"flow.*.cc" = ["bbr"]',
            "need as many values each, but duration has 2, flow.*.cc has 1",
        ),
        (
            'duration = { from = "1 s", to = "2 s", points = 2000 }\n'
            'sample = { from = "1 s", to = "2 s", points = 2000 }',
            "sweep: has 4,000,000 points; the most is 1,000,000",
        ),
        (
            '"link.bottleneck.queue" = ["1 BDP", "0.01 BDP"]',
            'sweep.link.bottleneck.queue[1]: "0.01 BDP" is 100 bytes at 4 Mbit/s',
        ),
        (
            '"link.bottleneck.delay" = ["10 ms", "0.1 ms"]',
            'not even a packet of 1500 bytes fits (at link.bottleneck.delay = "0.1 ms")',
        ),
    ],
)
def test_a_wrong_axis_is_told_with_its_key_and_what_would_be_valid(axes: str, said: str) -> None:
    with pytest.raises(ExperimentError, match=re.escape(said)):
        list(sweep(axes).points())


def test_all_errors_of_a_sweep_file_are_told_at_once_each_with_its_line(tmp_path: Path) -> None:
    text = BASE.replace('"4 Mbit/s"', '"4 Mbt/s"').replace('cc = "reno"', 'cc = "remo"')
    axes = """combine = "gird"
"link.bottleneck.queue" = [
    "1 BDP",
    "2 PDB",
]
"link.bottleneck.dealy" = ["1 ms"]
flow.second.rtt = { from = "100 ms", to = "1 sec", points = 3 }
"""
    (tmp_path / "a.toml").write_text(f"{text}\n[sweep]\n{axes}")
    with pytest.raises(ExperimentError) as error:
        Sweep.load(tmp_path / "a.toml")
    assert [(one.line, one.key) for one in error.value.errors] == [
        (6, "link.bottleneck.rate"),
        (10, "flow.first.cc"),
        (16, "sweep.combine"),
        (19, "sweep.link.bottleneck.queue[1]"),
        (21, "sweep.link.bottleneck.dealy"),
        (22, "sweep.flow.second.rtt"),
    ]
    assert {one.file for one in error.value.errors} == {str(tmp_path / "a.toml")}
    assert 'did you mean "delay"?' in str(error.value)


def test_more_runs_than_there_may_be_are_refused_before_any_is_planned() -> None:
    chosen = sweep('duration = { from = "1 s", to = "2 s", points = 1000 }')
    with pytest.raises(ExperimentError, match="would be 2,000,000 runs: 1,000 points with 2,000"):
        chosen.seeds(2000)


@pytest.mark.parametrize(
    ("assignment", "axis"),
    [
        ("flow.first.cc=bbr", "flow.*.cc"),
        ("flow[0].cc=bbr", "flow.*.cc"),
        ("link.*.delay=5 ms", "link.bottleneck.delay"),
        ("link[0].delay=5 ms", "link.bottleneck.delay"),
    ],
)
def test_an_assignment_that_an_axis_would_replace_is_refused(assignment: str, axis: str) -> None:
    axes = '"flow.*.cc" = ["cubic", "reno"]\n"link.bottleneck.delay" = ["1 ms", "2 ms"]'
    text = f"{BASE}[sweep]\n{axes}"
    told = f"the axis {axis} sets it at every point; assign {axis}, which"
    with pytest.raises(ExperimentError, match=re.escape(told)) as error:
        Sweep.parse(text, overrides=[assignment])
    assert error.value.key == assignment.partition("=")[0]
    assert Sweep.parse(text, overrides=["flow.*.cc=bbr"]).count == 2
    assert Sweep.parse(text, overrides=["flow.first.start=1 s"]).count == 4


def test_an_assignment_is_the_only_value_of_an_axis_and_else_of_a_key() -> None:
    text = f'{BASE}[sweep]\nduration = ["1 s", "3 s"]'
    pinned = Sweep.parse(text, overrides=["duration=2 s"])
    assert [point.values for point in pinned.points()] == [(2.0,)]
    for nested in ("duration.values = [1]", 'flow.first.cc = ["bbr"]\ncombine = "zip"'):
        pins = ["duration=2 s", "flow.first.cc=reno", "combine=grid"]
        with pytest.raises(ExperimentError, match="combine"):
            Sweep.parse(f"{BASE}[sweep]\n{nested}", overrides=pins)
        assert Sweep.parse(f"{BASE}[sweep]\n{nested}", overrides=pins[:2]).count == 1
    changed = Sweep.parse(text, overrides=["flow.*.cc=bbr"])
    flows = [json.loads(point.scenario)["flows"] for point in changed.points()]
    assert {flow["cc"] for among in flows for flow in among} == {"bbr"}


def test_a_link_called_to_may_be_assigned_as_others_may() -> None:
    text = f'{BASE.replace("bottleneck", "to")}[sweep]\nlink.to.rate = ["1 Mbit/s", "2 Mbit/s"]'
    chosen = Sweep.parse(text, overrides=["link.to.rate=3 Mbit/s"])
    assert [point.values for point in chosen.points()] == [(3e6,)]


def test_an_experiment_with_axes_is_told_to_be_swept() -> None:
    with pytest.raises(ExperimentError, match="sweep: has axes, along which `dumbbell sweep` runs"):
        Experiment.parse(f'{BASE}[sweep]\nduration = ["1 s"]')


GRID = '"link.bottleneck.queue" = ["0.5 BDP", "1 BDP"]\n"link.bottleneck.delay" = ["5 ms", "9 ms"]'


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    return run_sweep(sweep(GRID), tmp_path_factory.mktemp("sweeps") / "grid", seeds=3, jobs=2)


def test_a_sweep_gives_what_its_runs_give_one_by_one(swept: Swept) -> None:
    axes = ["link.bottleneck.queue=1 BDP", "link.bottleneck.delay=9 ms"]
    alone = run(Experiment.parse(BASE).override(*axes), seeds=3)
    rows = swept.dataset.table("runs").filter(queue=1.0, delay=0.009)
    expected = metrics.summary(alone)
    flows = swept.dataset.table("flows").filter(queue=1.0, delay=0.009)
    shared = expected.columns
    assert_frame_equal(flows.select(shared), expected.with_columns(pl.col("flow", "cc").cast(str)))
    assert rows["jain"].to_list() == metrics.fairness(alone)["jain"].to_list()
    links = swept.dataset.table("links").filter(queue=1.0, delay=0.009)
    assert_frame_equal(
        links.select(metrics.link_summary(alone).columns),
        metrics.link_summary(alone).with_columns(pl.col("link").cast(str)),
    )
    together = metrics.group_throughput(expected)["throughput"]
    assert rows["throughput"].to_list() == together.to_list()


PAUSES = "on-off(on=200 ms, off=200 ms)"


def pausing() -> str:
    """An experiment with a flow that pauses at random."""
    flow = f'[[flow]]\nname = "pausing"\ncc = "none"\ntransport = "udp"\napp = "{PAUSES}"\n'
    return f'{BASE}{flow}app_rate = "1 Mbit/s"\n'


def test_a_sweep_draws_pauses_as_its_runs_do_one_by_one(tmp_path: Path) -> None:
    axes = '[sweep]\n"link.bottleneck.queue" = ["1 BDP"]'
    swept = run_sweep(Sweep.parse(f"{pausing()}{axes}"), tmp_path / "sweep", seeds=3)
    alone = metrics.summary(run(Experiment.parse(pausing()), seeds=3))
    flows = swept.dataset.table("flows").select(alone.columns)
    assert_frame_equal(flows, alone.with_columns(pl.col("flow", "cc").cast(str)))
    assert flows.filter(flow="pausing")["sent"].n_unique() == 3


def test_runs_with_pauses_are_named_after_their_pauses() -> None:
    names = []
    for text in (pausing(), pausing().replace("off=200 ms", "off=201 ms"), BASE):
        (point,) = Sweep.parse(f'{text}[sweep]\n"link.bottleneck.queue" = ["1 BDP"]').points()
        assert (point.varied is None) == (text == BASE)
        names.append(point.run(1, series=False).name)
        assert point.scenario_of(7) == json.loads(Experiment.parse(text).scenario(7)) | {
            "internals": False
        }
    assert len(set(names)) == 3


def test_a_finished_sweep_is_not_run_again_and_an_extended_one_runs_the_rest(
    swept: Swept, tmp_path: Path
) -> None:
    first = run_sweep(sweep(GRID), tmp_path, seeds=3)
    assert (first.total, first.made) == (12, 12)
    assert run_sweep(sweep(GRID), tmp_path, seeds=3).made == 0
    wider = GRID.replace('"1 BDP"', '"1 BDP", "2 BDP"')
    assert run_sweep(sweep(wider), tmp_path, seeds=3).made == 6
    assert run_sweep(sweep(wider), tmp_path, seeds=4).made == 6
    # What the first sweep asked for can still be seen, and is what it was.
    assert run_sweep(sweep(GRID), tmp_path, seeds=3).made == 0
    assert_frame_equal(Dataset(tmp_path).table("runs"), swept.dataset.table("runs"))


def test_the_name_of_a_sweep_s_folder_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "s[w]eep"
    run_sweep(sweep('"link.*.delay" = ["5 ms"]'), folder)
    assert Dataset(folder).table("runs").height == query("from runs", folder).height == 1
    assert run_sweep(sweep('"link.*.delay" = ["5 ms"]'), folder).made == 0


def test_an_axis_whose_value_was_the_files_before_costs_nothing(tmp_path: Path) -> None:
    run_sweep(sweep('"link.bottleneck.queue" = ["1 BDP", "2 BDP"]'), tmp_path)
    both = '"link.bottleneck.queue" = ["1 BDP", "2 BDP"]\n"flow.first.cc" = ["reno", "bbr"]'
    assert run_sweep(sweep(both), tmp_path).made == 2


def test_points_that_come_to_the_same_are_run_once_and_are_all_there(tmp_path: Path) -> None:
    done = run_sweep(sweep('"title" = ["one", "two"]'), tmp_path)
    assert (done.total, done.made) == (2, 1)
    assert Dataset(tmp_path).table("runs")["title"].to_list() == ["one", "two"]


def test_a_sweep_is_the_same_bytes_however_many_work_on_it(swept: Swept, tmp_path: Path) -> None:
    run_sweep(sweep(GRID), tmp_path, seeds=3, jobs=1)
    ours, theirs = (parts(folder) for folder in (tmp_path, swept.dataset.folder))
    for table in ("runs", "flows", "links"):
        assert ours[0].file(table).read_bytes() == theirs[0].file(table).read_bytes()


def test_a_query_can_look_at_two_sweeps(swept: Swept, tmp_path: Path) -> None:
    other = run_sweep(sweep(GRID), tmp_path / "other", seeds=1).dataset
    sql = "select count(*) as n, bool_and(b.throughput = runs.throughput) as alike from runs"
    sql += " join beside.runs b using (point, seed)"
    answer = query(sql, swept.dataset.folder, beside=other.folder)
    assert answer.rows() == [(other.table("runs").height, True)]


def test_series_are_kept_if_they_are_asked_for(tmp_path: Path) -> None:
    run_sweep(sweep('"link.bottleneck.queue" = ["1 BDP"]'), tmp_path, series=True)
    alone = run(Experiment.parse(BASE))
    table = Dataset(tmp_path).table("series")
    columns = [name for name in alone.series.columns if name not in ("flow", "cc")]
    assert_frame_equal(table.select(columns), alone.series.select(columns))
    answer = query("select max(t) from link_series where queue = 1", tmp_path)
    assert answer.item() == 2.0


def test_what_stands_in_the_folder_of_a_sweep_runs_it_again(swept: Swept) -> None:
    again = Sweep.load(swept.dataset.folder / "sweep.toml")
    assert run_sweep(again, swept.dataset.folder, seeds=3).made == 0


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ResultError, match=r'holds "thesis.txt", which is no part of a sweep'):
        run_sweep(sweep(GRID), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_two_processes_do_not_write_one_sweep(tmp_path: Path) -> None:
    with Store(tmp_path), pytest.raises(ResultError, match="another process is writing this sweep"):
        run_sweep(sweep(GRID), tmp_path)


def test_an_axis_that_a_column_of_flows_hides_is_told(tmp_path: Path) -> None:
    (told,) = run_sweep(sweep('"flow.second.cc" = ["reno"]'), tmp_path / "a").warnings
    assert told.startswith(
        "flow.second.cc: the axis is not in the table flows, which has a column cc"
    )
    named = '"flow.second.cc" = { values = ["reno"], name = "opponent" }'
    assert not run_sweep(sweep(named), tmp_path / "b").warnings
    assert not run_sweep(sweep('"flow.*.cc" = ["reno"]'), tmp_path / "c").warnings


def test_seeds_are_added_until_the_share_of_a_flow_is_known(tmp_path: Path) -> None:
    until = Until(0.01, "share of second", 30)
    done = run_sweep(sweep('"link.bottleneck.queue" = ["1 BDP"]'), tmp_path, until=until)
    shares = SweepResult(done.dataset).means("share of second").row(0, named=True)
    assert 10 < shares["n"] <= 30
    assert done.loose == (shares["high"] - shares["low"] > 2 * 0.01 * shares["mean"])
    with pytest.raises(ExperimentError, match='no algorithm or flow is called "third"'):
        run_sweep(sweep(GRID), tmp_path / "other", until=Until(0.1, "share of third"))


def test_seeds_are_added_where_the_interval_is_wide_and_only_there(tmp_path: Path) -> None:
    until = Until(0.02, "jain", 20)
    axes = '"link.bottleneck.queue" = ["0.5 BDP", "1 BDP", "2 BDP"]\n"flow.second.cc" = ["reno"]'
    done = run_sweep(sweep(axes), tmp_path, until=until)
    points = Dataset(tmp_path).table("runs").group_by("point", maintain_order=True).agg("jain")
    values = points["jain"].to_list()
    assert all(until.is_satisfied_by(runs) or len(runs) == 20 for runs in values)
    assert done.loose == sum(not until.is_satisfied_by(runs) for runs in values)
    assert len({len(runs) for runs in values}) > 1
    assert all(len(runs) >= 10 for runs in values)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ResultError("full")])
def test_runs_are_written_once_if_keeping_them_is_interrupted(
    error: BaseException | type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Store.add

    def interrupted(store: Store, tables: Tables) -> None:
        add(store, tables)
        raise error

    monkeypatch.setenv("DUMBBELL_STORE", "off")
    with monkeypatch.context() as patched:
        patched.setattr(Store, "add", interrupted)
        with pytest.raises((KeyboardInterrupt, ResultError)):
            run_sweep(sweep(GRID), tmp_path, seeds=3)
    runs = [name for file in Dataset(tmp_path).files("runs") for name in read_table(file)["run"]]
    assert len(runs) == len(set(runs)) > 0
    assert run_sweep(sweep(GRID), tmp_path, seeds=3).before == len(runs)
    assert Dataset(tmp_path).table("runs").height == 12


def test_runs_that_were_written_twice_count_once(swept: Swept, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(swept.dataset.folder, folder)
    (part,) = parts(folder)
    shutil.copytree(part.folder, folder / "parts/90000000-90000000")
    for _ in range(2):
        for table in ("runs", "flows", "links"):
            assert_frame_equal(Dataset(folder).table(table), swept.dataset.table(table))
        with Store(folder) as store:
            store.merge()
    assert len(parts(folder)) == 1


def test_a_sweep_is_read_while_its_parts_are_merged(
    swept: Swept, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    shutil.copytree(swept.dataset.folder, folder)
    (part,) = parts(folder)
    shutil.copytree(part.folder, folder / "parts/90000000-90000000")

    def read_late(file: Path, columns: list[str] | None = None) -> pl.DataFrame:
        monkeypatch.undo()
        with Store(folder) as store:
            store.merge()
        return read_table(file, columns)

    monkeypatch.setattr("dumbbell.sweeps.dataset.read_table", read_late)
    assert_frame_equal(Dataset(folder).table("runs"), swept.dataset.table("runs"))


def test_rows_are_shown_as_they_come_but_not_after_every_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dumbbell.sweeps.drive._MOST_IN_CHUNK", 1)
    monkeypatch.setattr("dumbbell.sweeps.drive._SHOW_AFTER", 1e9)
    monkeypatch.setenv("DUMBBELL_STORE", "off")
    shown: list[pl.DataFrame] = []
    run_sweep(sweep(GRID), tmp_path, seeds=3, jobs=1, finished=shown.append)
    assert 1 <= len(shown) <= 2
    assert sum(rows.height for rows in shown) == 12
    assert shown[0].columns[:5] == ["run", "point", "seed", "queue", "delay"]


# Killing


def complete(folder: Path) -> dict[str, bytes]:
    """Finishes the sweep of `killing` in a process of its own; its tables, as bytes."""
    subprocess.run([sys.executable, killing.__file__, folder, "never", "0", "0"], check=True)
    (part,) = parts(folder)
    tables = {name: part.file(name).read_bytes() for name in ("runs", "flows", "links")}
    return tables | {"plan": (folder / "plan.parquet").read_bytes()}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return complete(tmp_path_factory.mktemp("untouched") / "sweep")


def kill(folder: Path, *arguments: object) -> int:
    command = [sys.executable, killing.__file__, str(folder), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


@pytest.mark.parametrize("first", [1, 10])
@pytest.mark.slow
def test_a_sweep_that_is_killed_before_or_after_a_rename_loses_nothing(
    first: int, untouched: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    assert kill(folder, "rename", first, first + 2) >= 1
    assert complete(folder) == untouched


@pytest.mark.slow
def test_a_sweep_that_is_killed_at_random_moments_loses_nothing(
    untouched: dict[str, bytes], tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    assert kill(folder, "random", KILLS, 1) == KILLS
    assert complete(folder) == untouched
