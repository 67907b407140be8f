"""Results: the same however they come about, read by others, written whole or not at all."""

from __future__ import annotations

import ast
import inspect
import json
import pkgutil
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import dumbbell
from dumbbell import (
    DumbbellError,
    Experiment,
    ExperimentError,
    Flow,
    Link,
    Result,
    ResultError,
    figures,
    metrics,
    run,
    run_all,
)
from dumbbell.engine.runner import run_each
from dumbbell.errors import OverwriteError
from dumbbell.results.storage import reserve
from dumbbell.results.summary import side_by_side, summary_tables, unsettled
from dumbbell.results.tables import OPTIONAL, TABLES
from dumbbell.sweeps.query import query

EXPERIMENT = Experiment(
    title="Two flows",
    links=[Link(name="bottleneck", rate="10 Mbit/s", delay="10 ms", queue="1 BDP", loss=1e-3)],
    flows=[
        Flow(name="first", cc="cubic"),
        Flow(name="second", cc="reno", start="500 ms", bytes="100 kB"),
    ],
    duration="3 s",
    seeds=[5, 3],
    start_jitter="100 ms",
)


@pytest.fixture(scope="module")
def result() -> Result:
    return run(EXPERIMENT)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_tables_name_seeds_flows_and_algorithms(result: Result) -> None:
    assert result.flows.select("seed", "flow", "cc").rows() == [
        (5, "first", "cubic"),
        (5, "second", "reno"),
        (3, "first", "cubic"),
        (3, "second", "reno"),
    ]
    assert result.flows.schema["flow"] == pl.Enum(["first", "second"])
    assert result.series.columns[:4] == ["seed", "flow", "cc", "t"]
    assert result.links.columns[:3] == ["seed", "link", "t"]
    assert result.internals.columns == ["seed", "flow", "cc", "t", "name", "value"]
    assert result.seeds == [5, 3]


def test_a_flow_starts_within_the_jitter_and_ends_when_it_has_sent_all(result: Result) -> None:
    second = result.flows.filter(pl.col("flow") == "second")
    assert second["start"].is_between(0.5, 0.6).all()
    assert second["start"].n_unique() == 2
    assert second["end"].equals(second["completed"], check_names=False)
    assert second["received"].to_list() == [100_000, 100_000]
    assert result.flows.filter(pl.col("flow") == "first")["end"].to_list() == [3, 3]


def test_a_result_is_shown_as_the_table_of_its_flows(result: Result) -> None:
    lines = repr(result).splitlines()
    assert any(line.startswith("Flow ") for line in lines)
    first = next(line.split() for line in lines if line.startswith("first"))
    throughput = result.summary()["throughput"][0] / 1e6
    assert float(first[2]) == pytest.approx(throughput, abs=0.1)


def test_a_summary_has_the_means_of_flows_of_algorithms_and_of_the_run(result: Result) -> None:
    flows = metrics.summary(result)
    by_flow = result.summary()
    first = flows.filter(pl.col("flow") == "first")["throughput"].to_list()
    assert by_flow["flow"].to_list() == ["first", "second"]
    assert by_flow["throughput"][0] == metrics.mean(first).value
    by_run = result.summary("run", ci=True)
    together = metrics.mean(metrics.group_throughput(flows)["throughput"].to_list())
    found = by_run.select("throughput", "throughput_low", "throughput_high").row(0)
    assert found == (together.value, together.low, together.high)
    assert by_run["jain"].item() == result.jain()["jain"].mean()
    by_cc = result.summary("cc")
    assert by_cc["cc"].to_list() == result.flows["cc"].unique(maintain_order=True).to_list()
    assert result.throughput().equals(metrics.throughput(result))
    with pytest.raises(DumbbellError, match='no summary is called "link"'):
        result.summary("link")  # type: ignore[arg-type]


def test_throughputs_that_do_not_add_up_are_explained(result: Result) -> None:
    told = "each flow from its start to its end; together: over the whole run"
    assert told in summary_tables(result)[0].note
    assert told not in summary_tables(run(EXPERIMENT.override("flow.*.start=0 s")))[0].note


def test_rows_of_several_flows_are_headed_as_means() -> None:
    link = Link(name="bottleneck", rate="10 Mbit/s", delay="10 ms")
    flows = [Flow(name="web", cc="cubic", bytes="10 kB", repeat=21), Flow(name="bulk", cc="bbr")]
    many = summary_tables(run(Experiment(links=[link], flows=flows, duration="1 s")))[0]
    assert [column.title for column in many.columns][:2] == ["Flow or mean of flows", "Algorithm"]
    assert [row[0] for row in many.rows] == ["web-1 to web-21", "bulk"]
    few = summary_tables(run(Experiment(links=[link], flows=flows[1:], duration="1 s")))[0]
    assert few.columns[0].title == "Flow"


def test_a_narrow_table_keeps_the_completion_time_longest(result: Result) -> None:
    table = summary_tables(result, label=str)[0]
    heads = [table.text(width).partition("\n\n")[0] for width in range(100, 20, -1)]
    shown = {("Throughput" in head, "Completion" in head) for head in heads}
    assert (False, True) in shown
    assert (True, False) not in shown


def test_udp_flows_show_what_was_lost_in_place_of_retransmissions() -> None:
    link = Link(name="bottleneck", rate="1 Mbit/s", delay="10 ms", loss=0.1)
    flows = [
        Flow(name="tcp", cc="reno"),
        Flow(name="udp", transport="udp", cc="none", app_rate="200 kbit/s"),
    ]
    result = run(Experiment(links=[link], flows=flows, duration="10 s"))
    table = summary_tables(result)[0]
    names = [column.title for column in table.columns]
    found = {row[0]: dict(zip(names, row, strict=True)) for row in table.rows}
    assert (found["tcp"]["Lost"], found["udp"]["Retransmitted"]) == (None, None)
    sent, lost = result.flows.row(1, named=True)["sent"], result.flows["lost"][1]
    assert found["udp"]["Lost"].value == lost / sent > 0  # type: ignore[union-attr]
    (both,) = side_by_side([result, result])
    assert [row[-1] is None for row in both.rows] == [True, True, False, False]


def test_a_figure_is_drawn_on_the_axes_that_are_given(result: Result) -> None:
    figure, [[one, other]] = figures.panels(1, 2)
    assert result.plot("windows", ax=one, seed=3) is one
    assert result.plot("throughputs", ax=other) is other
    assert len(one.get_lines()) == 2
    assert one.get_xlabel() == "time (s), seed 3 (of 2 seeds)"
    assert figure.axes == [one, other]
    panels = result.plot()
    assert isinstance(panels, list)
    assert len(panels) == 4
    with pytest.raises(DumbbellError, match='"overview" has 4 panels, and ax is one'):
        result.plot(ax=one)
    with pytest.raises(DumbbellError, match="there is no seed 4; choose from 5, 3"):
        result.plot("windows", seed=4)


def test_a_link_has_a_capacity_and_an_unknown_one_is_refused(result: Result) -> None:
    name = result.experiment.links[0].name
    assert (result.capacity(name, 1, 2) or 0) * 2 == result.capacity(name, 1, 3)
    with pytest.raises(DumbbellError, match='no link is called "lonk"'):
        result.capacity("lonk", 0, 1)


def test_a_notebook_shows_a_result() -> None:
    named = EXPERIMENT.replace(title="<Two> flows").override("flow.first.name=a<b>c")
    result = run(named)
    html = result._repr_html_()
    assert type(html) is str
    for shown in ("&lt;Two&gt; flows", "a&lt;b&gt;c", "second", "bottleneck", "Utilisation (%)"):
        assert shown in html
    assert "<b>c" not in html
    with pytest.raises(DumbbellError, match='no figure is called "window"'):
        result.plot("window")


def test_what_there_is_to_use_is_found_by_its_name() -> None:
    there = dir(dumbbell)
    assert {*dumbbell.__all__, "metrics", "theory"} <= set(there)
    for name in there:
        assert getattr(dumbbell, name) is not None
    assert dumbbell.metrics.summary is metrics.summary
    with pytest.raises(AttributeError, match="has no attribute 'metric'"):
        dumbbell.metric  # noqa: B018


def test_type_checkers_see_the_names_that_the_facade_offers() -> None:
    """Those that it imports for them alone, from the modules that it has them from at their use."""
    facade = ast.parse(Path(dumbbell.__file__).read_text(encoding="utf-8"))
    seen = {
        name.name: str(node.module)
        for part in facade.body
        if isinstance(part, ast.If)
        for node in part.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    assert seen.keys() == set(dumbbell.__all__) - {"__version__"}
    assert seen == {name: f"dumbbell.{home}" for name, home in dumbbell._HOMES.items()}


def test_functions_of_the_facade_are_no_modules_and_its_errors_one_family() -> None:
    for module in pkgutil.walk_packages(dumbbell.__path__, "dumbbell."):
        if module.name.count(".") == 1:
            assert module.name.rpartition(".")[2] not in dumbbell.__all__
    for name in ("run", "compare", "sweep", "load", "reproduce", "query"):
        assert inspect.isfunction(getattr(dumbbell, name))
    errors = [name for name in dumbbell.__all__ if name.endswith("Error")]
    assert len(errors) >= 8
    assert all(issubclass(getattr(dumbbell, name), DumbbellError) for name in errors)
    assert issubclass(dumbbell.Interrupted, KeyboardInterrupt)


def test_functions_that_run_experiments_have_the_same_parameters() -> None:
    same = {"jobs", "backend", "retry_invalid", "dask", "progress"}
    for function in (dumbbell.run, dumbbell.run_all, dumbbell.compare, dumbbell.sweep):
        assert same <= inspect.signature(function).parameters.keys(), function
    with pytest.raises(ExperimentError, match="dask: is for the simulator"):
        run_all([EXPERIMENT], backend="linux", dask="tcp://127.0.0.1:9")


def test_everything_of_the_facade_has_a_docstring_and_is_on_the_page_of_the_api() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/python.md").read_text()
    shown = {line.rpartition(".")[2] for line in page.splitlines() if line.startswith("::: ")}
    assert shown == set(dumbbell.__all__) - {"__version__"}
    for name in shown:
        value = getattr(dumbbell, name)
        assert inspect.getdoc(value), name
        for member, method in inspect.getmembers(value, inspect.isfunction):
            ours = method.__module__.startswith("dumbbell.") and inspect.isclass(value)
            if ours and not member.startswith("_"):
                assert inspect.getdoc(method), f"{name}.{member}"


def test_the_meta_data_count_the_packets_of_all_seeds(result: Result) -> None:
    assert result.meta["data_packets"] == result.flows["sent"].sum()
    assert result.meta["seeds"] == [5, 3]
    assert result.meta["wall_s"] > 0
    assert set(result.meta) >= {"version", "machine", "events", "jobs"}


def test_the_number_of_jobs_changes_no_byte(tmp_path: Path) -> None:
    one, three = tmp_path / "one", tmp_path / "three"
    run(EXPERIMENT, seeds=3, jobs=1, out=one)
    run(EXPERIMENT, seeds=3, jobs=3, out=three)
    first, second = files(one), files(three)
    del first["meta.json"], second["meta.json"]
    assert first == second


def test_running_what_the_folder_says_gives_the_same_result(tmp_path: Path) -> None:
    run(EXPERIMENT, out=tmp_path / "a")
    run(tmp_path / "a" / "experiment.toml", out=tmp_path / "b")
    first, second = files(tmp_path / "a"), files(tmp_path / "b")
    del first["meta.json"], second["meta.json"]
    assert first == second


def test_what_is_saved_is_loaded_back_equal(result: Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "deep" / "result")
    loaded = Result.load(folder)
    assert loaded.experiment == result.experiment
    assert loaded.meta == result.meta
    for table in TABLES:
        assert_frame_equal(getattr(loaded, table), getattr(result, table))
    assert [path.name for path in folder.parent.iterdir()] == ["result"]


@pytest.mark.parametrize("name", ["r[u]n", "r*n", "r?n"])
def test_the_name_of_a_folder_is_no_pattern(result: Result, tmp_path: Path, name: str) -> None:
    result.of_seed(3).save(tmp_path / "run")
    folder = result.of_seed(5).save(tmp_path / name)
    assert Result.load(folder).flows["seed"].unique().to_list() == [5]
    assert query("select distinct seed from flows", folder).rows() == [(5,)]


def test_another_result_is_replaced_only_on_request(result: Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "r")
    before = files(folder)
    other = run(EXPERIMENT.replace(seeds=[9]))
    with pytest.raises(OverwriteError, match=r"r: holds this experiment with other seeds \(5, 3\)"):
        other.save(folder)
    with pytest.raises(OverwriteError, match="another result"):
        run(EXPERIMENT.replace(duration="1 s"), out=folder)
    assert files(folder) == before
    assert Result.load(other.save(folder, overwrite=True)).seeds == [9]
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_the_same_result_or_more_of_its_runs_may_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    run(EXPERIMENT, out=folder)
    (folder / "report.html").write_text("a report")
    run(EXPERIMENT, out=folder)
    assert (folder / "report.html").read_text() == "a report", "it is still about this result"
    run(EXPERIMENT, seeds=[3, 5, 7], out=folder)
    assert Result.load(folder).seeds == [3, 5, 7]
    assert not (folder / "report.html").exists()


def test_a_measurement_is_never_replaced_by_a_simulation(result: Result, tmp_path: Path) -> None:
    measured = {"backend": "linux", "kernel": "6.18", "testbed": {"3": {"late_max_s": 1e-4}}}
    folder = replace(result, meta=result.meta | measured).save(tmp_path / "r")
    for replacing in (lambda: run(EXPERIMENT, out=folder), lambda: result.save(folder)):
        with pytest.raises(OverwriteError, match=r"with real packets \(Linux 6.18, 2 runs\)"):
            replacing()
    again = replace(result, meta=result.meta | measured | {"testbed": {"3": {"late_max_s": 2e-4}}})
    with pytest.raises(OverwriteError, match="a measurement with real packets"):
        again.save(folder)
    assert Result.load(folder).save(folder) == folder, "the same measurement"


def test_a_folder_is_written_by_one_process_at_a_time(result: Result, tmp_path: Path) -> None:
    with reserve(tmp_path / "new" / "r") as place:
        with pytest.raises(ResultError, match="another process is making a result"):
            result.save(tmp_path / "new" / "r")
        result.write(place)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["r"]
    with pytest.raises(ZeroDivisionError), reserve(tmp_path / "deep" / "er" / "r"):
        raise ZeroDivisionError
    assert not (tmp_path / "deep").exists()


def test_a_link_to_a_folder_is_followed(result: Result, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    for name in ("disk", "new"):
        link = tmp_path / f"to-{name}"
        link.symlink_to(tmp_path / name)
        for _ in range(2):
            assert result.save(link) == link
        assert link.is_symlink()
        assert Result.load(tmp_path / name).meta == result.meta


def test_the_folder_that_one_is_in_is_not_replaced(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = result.save(tmp_path / "r")
    monkeypatch.chdir(inside)
    for name in (".", "../r", str(inside)):
        with pytest.raises(ResultError, match="which the folder that you are in cannot be"):
            result.save(name)
    assert result.save("deeper").is_dir()
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for _ in range(2):
        assert result.save(tmp_path / "r" / "deeper").is_dir()


def test_what_is_no_result_is_never_overwritten(result: Result, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultError, match=r'holds "thesis.tex"'):
        result.save(tmp_path)
    with pytest.raises(ResultError, match="is a file"):
        result.save(tmp_path / "thesis.tex")
    with pytest.raises(ResultError, match=r'holds "thesis.tex"'):
        run(EXPERIMENT, out=tmp_path)
    assert files(tmp_path) == {"thesis.tex": b"years of work"}


def test_a_result_that_cannot_be_written_whole_leaves_the_older_one(
    result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result.save(tmp_path / "r")
    before = files(tmp_path / "r")

    def no_space(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", no_space)
    for name in ("r", "new"):
        with pytest.raises(ResultError, match="No space left on device"):
            result.save(tmp_path / name)
    assert files(tmp_path / "r") == before
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


def test_a_folder_that_is_no_result_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="there is no such folder"):
        Result.load(tmp_path / "r")
    with pytest.raises(ResultError, match=r"it lacks experiment.toml, flows.parquet"):
        Result.load(tmp_path)


@pytest.mark.parametrize("name", ["series.parquet", "meta.json"])
def test_a_file_that_is_cut_is_named(result: Result, tmp_path: Path, name: str) -> None:
    file = result.save(tmp_path / "r") / name
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(ResultError, match=f"{name}: (cannot be read, a part of it|is not JSON)"):
        Result.load(tmp_path / "r")


def test_a_damaged_file_is_named_whoever_reads_it(result: Result, tmp_path: Path) -> None:
    folder = result.save(tmp_path / "r")
    for text in ('{"seeds": [', "[" * 100_000):
        (folder / "meta.json").write_text(text)
        for read in (Result.load, partial(query, "from links")):
            with pytest.raises(
                ResultError, match=r"meta.json: is not JSON: .*; run the experiment"
            ):
                read(folder)


@pytest.mark.parametrize(
    ("column", "kind", "said"),
    [("sent", pl.String, "numbers"), ("cc", pl.String, "a name")],
)
def test_a_column_that_holds_another_kind_of_values_is_named(
    result: Result, tmp_path: Path, column: str, kind: type[pl.DataType], said: str
) -> None:
    file = result.save(tmp_path / "r") / "flows.parquet"
    result.flows.with_columns(pl.lit(None, dtype=kind).alias(column)).write_parquet(file)
    with pytest.raises(ResultError, match=f"column {column} as .*, which is to be {said}.*; run"):
        Result.load(tmp_path / "r")


@pytest.mark.parametrize("table", OPTIONAL)
def test_names_in_tables_that_not_every_result_has_are_checked_too(
    result: Result, tmp_path: Path, table: str
) -> None:
    file = result.save(tmp_path / "r") / f"{table}.parquet"
    pl.DataFrame({"seed": [5], "flow": ["first"]}).write_parquet(file)
    with pytest.raises(ResultError, match=f"{table}.parquet: has the column flow as String, which"):
        Result.load(tmp_path / "r")


def test_a_backend_that_there_is_not_is_refused_everywhere(tmp_path: Path) -> None:
    wrong: Any = {"backend": "Linux", "out": tmp_path / "out"}
    for refused in (
        lambda: run(EXPERIMENT, **wrong),
        lambda: dumbbell.run_all([EXPERIMENT], backend=wrong["backend"]),
        lambda: dumbbell.compare("reno", **wrong),
        lambda: dumbbell.evaluate("reno", **wrong),
        lambda: dumbbell.sweep(EXPERIMENT, {"flow.*.cc": ["reno"]}, **wrong),
    ):
        with pytest.raises(ExperimentError, match=r'^backend: no backend is called "Linux"'):
            refused()
    assert not (tmp_path / "out").exists()


def test_meta_data_are_json_that_anybody_reads(result: Result, tmp_path: Path) -> None:
    meta = json.loads((result.save(tmp_path / "r") / "meta.json").read_text())
    assert meta["data_packets"] == result.meta["data_packets"]


@pytest.fixture(scope="module")
def one_seed() -> Result:
    return run(EXPERIMENT.replace(seeds=[1]))


def addresses(table: pa.Table, columns: list[str]) -> list[int]:
    return [table[column].chunk(0).buffers()[1].address for column in columns]


def own_addresses(frame: pl.DataFrame) -> list[int]:
    return [frame[column].to_numpy(allow_copy=False).ctypes.data for column in NUMBERS]


NUMBERS = ["t", "cwnd", "delivered", "ca_state"]


def test_pyarrow_reads_the_tables_without_copying(one_seed: Result) -> None:
    table = pa.table(one_seed.series)
    assert addresses(table, NUMBERS) == own_addresses(one_seed.series)
    assert table["flow"].to_pylist() == one_seed.series["flow"].to_list()


def test_pandas_reads_the_tables_without_copying(one_seed: Result) -> None:
    frame = one_seed.series.to_pandas(use_pyarrow_extension_array=True)
    theirs = [
        pa.chunked_array(pa.array(frame[column])).chunk(0).buffers()[1].address
        for column in NUMBERS
    ]
    assert theirs == own_addresses(one_seed.series)
    assert pd.DataFrame.from_arrow(one_seed.series)["cwnd"].max() == frame["cwnd"].max()


def rows(relation: duckdb.DuckDBPyRelation | None) -> list[tuple[object, ...]]:
    assert relation is not None
    return relation.fetchall()


def test_duckdb_reads_the_tables_in_memory_and_in_files(one_seed: Result, tmp_path: Path) -> None:
    series = one_seed.series
    query = "select flow::varchar, max(cwnd), count(*) from {} group by flow order by flow"
    expected = (
        series.group_by("flow", maintain_order=True)
        .agg(pl.col("cwnd").max(), n=pl.len())
        .with_columns(pl.col("flow").cast(pl.String))
        .rows()
    )
    assert rows(duckdb.sql(query.format("series"))) == expected
    one_seed.save(tmp_path / "r")
    assert rows(duckdb.sql(query.format(f"'{tmp_path}/r/series.parquet'"))) == expected


def test_experiments_run_side_by_side_give_what_they_give_alone() -> None:
    other = EXPERIMENT.replace(seeds=[8], links=[EXPERIMENT.links[0].replace(rate="5 Mbit/s")])
    together = run_all([EXPERIMENT, other])
    assert [one.seeds for one in together] == [[5, 3], [8]]
    for one, alone in zip(together, [run(EXPERIMENT), run(other)], strict=True):
        for table in TABLES:
            assert_frame_equal(getattr(one, table), getattr(alone, table), check_exact=True)


def test_results_are_told_in_their_order() -> None:
    long, short = (EXPERIMENT.replace(seeds=1, duration=text) for text in ("60 s", "1 s"))
    assert [one.experiment.duration for one in run_each([long, short])] == ["60 s", "1 s"]


def test_runs_whose_results_are_not_taken_are_stopped() -> None:
    before = set(threading.enumerate())
    runs = run_each([EXPERIMENT, EXPERIMENT.replace(duration="100000 s")], jobs=1)
    next(runs)
    runs.close()
    assert set(threading.enumerate()) <= before


def test_a_header_that_is_too_small_is_refused_with_its_key() -> None:
    flow = Flow(cc="reno", stack_options={"header": 10})
    link = Link(name="l", rate="10 Mbit/s", delay="10 ms")
    with pytest.raises(ExperimentError, match=r"flow\.flow-1\.stack_options\.header: 10 is not"):
        run(Experiment(links=[link], flows=[flow], duration="1 s"))


def test_progress_is_told_and_ends_at_no_more_than_one() -> None:
    told: list[float] = []
    run(
        EXPERIMENT.replace(duration="300 s"),
        seeds=2,
        jobs=1,
        progress=lambda _, done: told.append(done),
    )
    assert told == sorted(told)
    assert told
    assert 0 <= told[0] <= told[-1] <= 1


def test_the_packets_of_logged_flows_are_in_capture_files_beside_the_tables(tmp_path: Path) -> None:
    flows = [EXPERIMENT.flows[0].replace(log=True), EXPERIMENT.flows[1]]
    run(EXPERIMENT.replace(flows=flows), out=tmp_path / "out")
    captures = {
        f"packets-{seed}-{side}.pcapng" for seed in (3, 5) for side in ("sender", "receiver")
    }
    written = files(tmp_path / "out")
    assert {name for name in written if name.startswith("packets")} == captures
    section_header = bytes.fromhex("0a0d0d0a")
    assert all(written[name].startswith(section_header) for name in captures)
    run(EXPERIMENT, out=tmp_path / "out", overwrite=True)
    assert not captures & set(files(tmp_path / "out")), "a result replaces an older one whole"


@pytest.mark.parametrize(("queue", "is_settled"), [("1 BDP", True), ("8 BDP", False)])
def test_shares_that_still_change_are_told_of(queue: str, *, is_settled: bool) -> None:
    link = Link(name="bottleneck", rate="20 Mbit/s", delay="20 ms", queue=queue)
    flows = [Flow(cc=cc, path=["bottleneck"]) for cc in ("bbr", "cubic")]
    both = run(Experiment(links=[link], flows=flows, duration="60 s"))
    told = unsettled(both, of=["cubic"])
    assert [text.partition(" has ")[0] for text in told] == (
        [] if is_settled else ["Not settled: cubic"]
    )
    alone = run(Experiment(links=[link], flows=flows[:1], duration="60 s"))
    assert unsettled(alone) == []
