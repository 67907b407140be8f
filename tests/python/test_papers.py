"""Papers: every one that is available, and the numbers of a reproduction."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dumbbell import papers, run
from dumbbell.cli.plot import plot_folder
from dumbbell.engine.store import Store
from dumbbell.errors import DumbbellError, ResultError
from dumbbell.experiment.model import Experiment
from dumbbell.figures import save, styled
from dumbbell.metrics import intervals
from dumbbell.papers import Runs, Study, folder_of
from dumbbell.papers.helpers import minus
from dumbbell.papers.model import (
    ExperimentTemplate,
    PublishedClaim,
    PublishedNumber,
    PublishedTable,
)
from dumbbell.papers.numbers import DotPlot, near, rows
from dumbbell.papers.outcome import (
    Claim,
    Judgement,
    LinuxSource,
    Number,
    Reproduction,
    answer,
    headline,
)
from dumbbell.papers.registry import BY_NAME, PAPERS, ids_of_all
from dumbbell.papers.reproduction import PaperFolder, RunOptions
from dumbbell.papers.testbed import TestbedNumber

if TYPE_CHECKING:
    from dumbbell.papers.outcome import VerdictName
    from dumbbell.results.result import Result

EXAMPLE = Path(__file__).parents[2] / "examples" / "my-paper"

COUNTS = {
    "staggered-start": (9, 3),
    "tein2": (45, 6),
    "f-bbrv2": (15, 5),
    "ar-udt": (14, 8),
    "dbac": (5, 4),
    "bbrv3-promises": (0, 5),
    "bbrv3-hardware": (40, 9),
}
"""How many numbers and claims each built-in paper has."""

PRINTED: dict[str, dict[str, float]] = {
    "staggered-start": {"reno-crossing": 90, "cubic-fair": 40, "bbr3-crossing": 25},
    "tein2": {"throughput-10-reno": 590.03, "throughput-200-bic": 273.62, "ratio-6-stcp": 13.95},
    "f-bbrv2": {"alone-0.5-f-bbr2": 42.2, "gap-bbr2-4": 31.5, "jain-f-bbr2-4": 0.92},
    "ar-udt": {"throughput-1-tcp": 953, "throughput-200-ar-udt": 843, "gain-udt": 14},
    "dbac": {"lia-path-1": 95, "dbac-path-2": 21, "lia-greatest-window": 1300},
    "bbrv3-promises": {},
    "bbrv3-hardware": {"two-100-20-2": 1.20, "many-100-32-10": 4.32, "peak-bbr": 0.25},
}
"""Numbers as the papers print them."""

UNSPECIFIED: dict[tuple[str, str], set[str]] = {
    ("staggered-start", "pair.toml"): {"duration", "start_jitter", "stack"},
    ("tein2", "delay.toml"): {"duration", "link.host.rate", "link.host.queue"},
    ("tein2", "fairness.toml"): {"link.router", "link.host.jitter", "link.host.loss"},
    ("tein2", "friends.toml"): {"link.router", "link.host.queue", "link.host.jitter"},
    ("f-bbrv2", "alone.toml"): {"stack", "start_jitter"},
    ("f-bbrv2", "pair.toml"): {"stack", "start_jitter"},
    ("ar-udt", "tcp.toml"): {"link.bottleneck.queue", "stack_options"},
    ("ar-udt", "udt.toml"): {"link.bottleneck.queue", "flow.flow.transport_options"},
    ("dbac", "testbed.toml"): {"flow.single.cc", "stack_options.tso"},
    ("bbrv3-promises", "pair.toml"): {"duration", "link.bottleneck.rate", "flow.first.rtt"},
    ("bbrv3-hardware", "flows.toml"): {"stack", "start_jitter"},
    ("bbrv3-hardware", "pair.toml"): {"link.bottleneck.rate", "flow.first.rtt"},
}
"""Settings that a paper does not specify, by file."""


_QUICK = {
    "staggered-start": ["duration=45 s", "seeds=2"],
    "tein2": ["duration=3 s", "seeds=1"],
    "f-bbrv2": ["duration=20 s", "seeds=2"],
    "ar-udt": ["duration=17 s", "seeds=1", "link.bottleneck.rate=50 Mbit/s"],
    "dbac": ["duration=120 s", "sample=1 s", "seeds=1", "link.path-2.rate=2 Mbit/s"],
    "bbrv3-promises": ["duration=45 s", "seeds=2", "link.bottleneck.rate=5 Mbit/s"],
    "bbrv3-hardware": [
        "duration=32 s",
        "seeds=2",
        "internals=true",
        "link.bottleneck.rate=5 Mbit/s",
    ],
}
_QUICK_PATH_1 = {
    "failure.toml": ['link.path-1.rates=[["0 s", "5 Mbit/s"], ["50 s", "0 bit/s"]]'],
    "testbed.toml": ["link.path-1.rate=5 Mbit/s"],
    "rival.toml": ["link.path-1.rate=5 Mbit/s"],
}
"""Changes that make the runs of a paper quick, and those of dbac's files."""


@pytest.fixture(scope="module", params=[paper.id for paper in papers.available()])
def study(request: pytest.FixtureRequest) -> Study:
    return Study.load(folder_of(request.param))


def number(runs: list[float | None]) -> Number:
    said = PublishedNumber(
        id="x", experiment="reno", where="table 1", quantity="time", unit="s", published=90.0
    )
    return Number(said, intervals.median(runs, 120.0), "assumed")


def test_a_built_in_paper_has_the_numbers_that_it_prints(study: Study) -> None:
    paper = study.paper
    assert (len(paper.numbers), len(paper.claims)) == COUNTS[paper.id]
    printed = PRINTED[paper.id]
    assert {name: paper.published[name] for name in printed} == printed
    assert all(one.where for one in paper.numbers)
    assert all(one.where for one in paper.claims)


def test_every_experiment_of_every_paper_is_valid(study: Study) -> None:
    for template in study.paper.experiments:
        for spec in template.all():
            Experiment.load(study.paper.folder / spec.file, overrides=list(spec.changes))


def test_every_figure_of_every_paper_has_experiments(study: Study) -> None:
    names = {*study.paper.planned, *(one.id for one in study.paper.extensions)}
    for figure in study.figures:
        assert figure.experiments, figure.id
        assert set(figure.experiments) <= names, figure.id


def test_the_report_of_every_paper_shows_each_figure_once(study: Study) -> None:
    shown = [name for section in study.sections(None) for name in section.figures]
    assert sorted(shown) == sorted(figure.id for figure in study.figures)


@pytest.fixture(scope="module")
def quick_runs(study: Study) -> Runs:
    """Stand-ins: one quick run for all experiments of a template."""
    results: dict[str, Result] = {}
    for template in study.paper.experiments:
        if not template.extension:
            specs = list(template.all())
            changes = [*specs[0].changes, *_QUICK[study.paper.id]]
            changes += _QUICK_PATH_1.get(template.file, [])
            experiment = Experiment.load(study.paper.folder / template.file, overrides=changes)
            results |= dict.fromkeys((spec.id for spec in specs), run(experiment))
    return study.runs(results)


def test_quick_runs_give_every_number_claim_and_section(study: Study, quick_runs: Runs) -> None:
    numbers = study.measure(quick_runs)
    assert set(numbers) == {number.id for number in study.paper.numbers}
    for claim in study.paper.claims:
        assert study.judge(claim, quick_runs).evidence
    for section in study.sections(quick_runs, numbers):
        assert section.text or section.tables or section.figures
        for table in section.tables:
            assert table.rows
            assert all(len(row) == len(table.columns) for row in table.rows)


def test_quick_runs_give_every_figure_that_a_paper_draws_itself(
    study: Study, quick_runs: Runs
) -> None:
    own = {spec.id for spec in study.paper.figures if spec.kind is None}
    extensions = {one.id for one in study.paper.extensions}
    for figure in study.figures:
        if figure.id in own and not extensions & {*figure.experiments}:
            with styled():
                assert figure.draw(quick_runs).axes


def test_all_stands_for_five_papers_and_others_run_by_their_name() -> None:
    assert set(ids_of_all()) == {*PAPERS}
    assert len(PAPERS) == 5
    assert {paper.id for paper in papers.available()} == {*PAPERS, *BY_NAME}


@pytest.mark.parametrize(("paper", "file"), list(UNSPECIFIED))
def test_what_a_paper_does_not_specify_is_marked(paper: str, file: str) -> None:
    experiment = Experiment.load(folder_of(paper) / file)
    assert UNSPECIFIED[paper, file] <= {*experiment.assumed, *experiment.calibrated}


def test_the_example_paper_is_reproduced(tmp_path: Path) -> None:
    [done] = papers.reproduce([str(EXAMPLE)], tmp_path, jobs=2)
    assert [claim.simulated.verdict for claim in done.claims] == ["confirmed"]
    assert [figure.id for figure in done.figures] == ["1"]
    results = json.loads((tmp_path / "my-paper" / "results.json").read_text())
    assert [row["id"] for row in results["numbers"]] == ["cubic-10", "cubic-80"]
    found = results["numbers"][0]["measured"]
    page = (tmp_path / "my-paper" / "index.html").read_text()
    assert f"CUBIC has {found:.3g} Mbit/s at 10 ms; the paper says 20." in page
    assert "1 of 1 claim confirmed" in page


def test_a_paper_that_is_named_twice_is_reproduced_once(tmp_path: Path) -> None:
    twice = [str(EXAMPLE), f"{EXAMPLE}/../{EXAMPLE.name}"]
    done = papers.reproduce(twice, tmp_path, seeds=1, duration="3 s")
    assert [one.paper.id for one in done] == ["my-paper"]


def test_two_reproductions_do_not_write_into_one_folder(tmp_path: Path) -> None:
    folder = PaperFolder(Study.load(EXAMPLE), tmp_path / "new/my-paper")
    with folder.reserved():
        for make in (
            lambda: papers.reproduce(str(EXAMPLE), tmp_path / "new", seeds=1),
            lambda: papers.draw(str(EXAMPLE), ["1"], tmp_path / "new"),
        ):
            with pytest.raises(ResultError, match="my-paper: another reproduction is writing"):
                make()
    assert list(tmp_path.iterdir()) == []


def test_a_paper_that_publishes_a_zero_is_reproduced_without_its_ratio(tmp_path: Path) -> None:
    folder = changed(tmp_path, "paper.toml", "published = 20.0", "published = 0")
    [done] = papers.reproduce([str(folder)], tmp_path, seeds=1, duration="3 s")
    assert [row["ratio"] is None for row in done.as_json()["numbers"]] == [True, False]
    assert len(DotPlot.of(done.numbers).simulated) == 1
    assert near(done.numbers).startswith(("0 of 1", "1 of 1"))


def test_the_overview_keeps_the_papers_that_were_reproduced_before(tmp_path: Path) -> None:
    other = changed(tmp_path, "paper.toml", 'id = "my-paper"', 'id = "other"')
    for folder in (EXAMPLE, other):
        papers.reproduce([str(folder)], tmp_path, seeds=1, duration="3 s")
    index = (tmp_path / "index.html").read_text()
    assert all(f'href="{name}/index.html"' in index for name in ("my-paper", "other"))
    (tmp_path / "my-paper" / "results.json").write_text("{}")
    papers.reproduce([str(other)], tmp_path, seeds=1, duration="3 s")
    assert "my-paper/" not in (tmp_path / "index.html").read_text()


@pytest.mark.filterwarnings("ignore")
def test_a_paper_is_reproduced_on_a_dask_cluster_and_the_runs_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="needs dumbbell[dask]")
    for place in ("threads", "dask"):
        monkeypatch.setenv("DUMBBELL_STORE", str(tmp_path / f"store-{place}"))
        with distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=None, silence_logs=50
        ) as cluster:
            address = cluster.scheduler_address if place == "dask" else None
            [done] = papers.reproduce([str(EXAMPLE)], tmp_path / place, seeds=2, dask=address)
    results = [tmp_path / place / "my-paper" / "results.json" for place in ("threads", "dask")]
    assert results[0].read_bytes() == results[1].read_bytes()
    with pytest.raises(DumbbellError, match="there is no scheduler"):
        papers.reproduce([str(EXAMPLE)], tmp_path, seeds=3, dask="tcp://127.0.0.1:9")
    stored = [len(Store(tmp_path / f"store-{place}").entries()) for place in ("threads", "dask")]
    assert stored == [2 * len(done.views)] * 2


def changed(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """The example paper with a change in one file."""
    folder = tmp_path / "paper"
    folder.mkdir()
    for path in EXAMPLE.iterdir():
        if path.is_file():
            text = path.read_text()
            assert path.name != file or old in text
            (folder / path.name).write_text(text.replace(old, new) if path.name == file else text)
    return folder


EXTENSION = """
[[experiment]]
id = "long"
file = "pair.toml"
set = ["flow.*.rtt={rtt} ms"]
each = { rtt = ["20", "160"] }
extension = true

[[figure]]
id = "long"
heading = "Extension: a longer path"
kind = "curves"
experiment = "long"
x = "rtt"
y = { metric = "throughput", flow = "cubic", look = "cubic" }

[[experiment]]
"""
"""An extension of the example paper, and a figure of it."""


def test_a_figure_of_an_extension_is_drawn_again_from_the_folder(tmp_path: Path) -> None:
    folder = changed(tmp_path, "paper.toml", "[[experiment]]\n", EXTENSION.lstrip())
    short = RunOptions(seeds=1, duration="3 s", full=True)
    made = PaperFolder(Study.load(folder), tmp_path / "my-paper", short)
    assert [figure.id for figure in made.reproduce().figures] == ["1", "long"]
    again = PaperFolder.of(made.folder)
    with styled():
        [svg] = save(again.figure("long"), tmp_path / "again", ["svg"])
    assert svg.read_text() == (made.folder / "figure-long.svg").read_text()
    assert again.reopen().options["full"]
    plot_folder(made.folder, "long", out=tmp_path / "plotted.svg")
    assert (tmp_path / "plotted.svg").read_text() == svg.read_text()
    (made.folder / "long.parquet").unlink()
    with pytest.raises(DumbbellError, match=r"lacks runs of my-paper/long; `.* --figure long "):
        again.figure("long")


def test_an_interval_may_end_at_zero_on_a_logarithmic_axis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scales = 'kind = "curves"\nx_scale = "log"\ny_scale = "log"'
    logarithmic = EXTENSION.replace('kind = "curves"', scales)
    study = Study.load(changed(tmp_path, "paper.toml", "[[experiment]]\n", logarithmic.lstrip()))
    monkeypatch.setattr(Runs, "estimate", lambda *_: intervals.Estimate(5.0, 0.0, 60.0, (1.0, 9.0)))
    with styled():
        figure = study.figures[1].draw(study.runs({}))
        [_] = save(figure, tmp_path / "figure", ["svg"])
    [axes] = figure.axes
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    assert left < 20
    assert right > 160
    assert 0 < bottom < 5
    assert top > 60


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("paper.toml", "published = 20.0", 'published = "20"', "number[0].published: input should"),
        (
            "paper.toml",
            "quantity",
            "quantities",
            'called "quantities" (did you mean "quantity"?)',
        ),
        ("paper.toml", 'metric = "throughput"', 'metric = "speed"', 'no metric is called "speed"'),
        (
            "paper.toml",
            'flow = "cubic" }',
            'flows = "cubic" }',
            "unexpected keyword argument 'flows'; the options",
        ),
        ("paper.toml", 'unit = "Mbit/s"', 'unit = "s"', 'which "s" is no unit for'),
        ("paper.toml", '"pair-10"', '"pair-11"', 'no experiment is called "pair-11"'),
        (
            "paper.toml",
            '"pair-{rtt}"\nx',
            '"pairs"\nx',
            '[[experiment]] is called "pairs"',
        ),
        ("paper.toml", 'x = "rtt"', 'x = "delay"', 'no setting of pair-{rtt} is called "delay"'),
        ("paper.toml", 'look = "cubic"', 'sum = ["cubic-{rtt}"]', 'no number is called "cubic-40"'),
        ("paper.toml", 'id = "cubic-80"', 'id = "cubic-10"', "the id is used twice"),
        ("paper.toml", 'kind = "curves"', 'kind = "pie"', "figure[0].kind"),
        ("paper.toml", 'id = "long"', 'id = "longer"', "has no function for it; write one with @"),
        ("paper.toml", "[[claim]]", "[[claim]", "is not TOML"),
        ("paper.py", "Verdict(long", "Verdict((long", "paper.py"),
        (
            "report.md",
            "{cubic-10}",
            "{cubic-11}",
            'text is called "cubic-11" (did you mean',
        ),
        ("report.md", "{figure 1}", "{figure 2}", 'no figure is called "2"'),
    ],
)
def test_a_mistake_in_a_paper_is_named_with_its_file(
    tmp_path: Path, file: str, old: str, new: str, problem: str
) -> None:
    folder = changed(tmp_path, file, old, new)
    with pytest.raises(DumbbellError, match=re.escape(problem)) as caught:
        Study.load(folder)
    assert str(folder / file) in str(caught.value) or "paper.py" in str(caught.value)


COMPARISON = """
[[comparison]]
id = "gains"
heading = "Metric"
experiment = "pair-{rtt}"
beside = "pair-{rtt}"
y = { metric = "throughput", flow = "cubic" }
rows = [{ label = "CUBIC" }, { label = "Reno", y = { metric = "lowest" } }]
columns = [{ label = "{rtt} ms", rtt = ["10", "40"] }]

[[experiment]]
"""
"""A table of the example paper, with published numbers where there are any."""

TABLE = """
from dumbbell.papers import metric
import polars as pl

@metric("lowest", unit="1")
@metric("highest", unit="1")
def both(result):
    return pl.DataFrame({"highest": [7.0] * len(result.seeds), "lowest": [3.0] * len(result.seeds)})
"""
"""A function of a paper for two metrics."""


def test_a_comparison_has_published_numbers_beside_measured_ones(tmp_path: Path) -> None:
    folder = changed(tmp_path, "paper.toml", "[[experiment]]\n", COMPARISON.lstrip())
    with (folder / "paper.py").open("a") as file:
        file.write(TABLE)
    (folder / "report.md").write_text("## Gains\n\n{table gains}\n")
    study = Study.load(folder)
    pair = run(Experiment.load(folder / "pair.toml", overrides=["duration=3 s", "seeds=2"]))
    runs = study.runs({"pair-10": pair, "pair-40": pair})
    found = runs.value("pair-10", flow="cubic")
    [section] = study.sections(runs)
    [table] = section.tables
    assert list(table.rows) == [
        ["CUBIC", f"{found:.0f} / 20 ({found / 20:.2f})", f"{found:.0f}"],
        ["Reno", "3", "3"],
    ]


def test_a_mistake_in_a_function_is_named_with_file_and_line(tmp_path: Path) -> None:
    folder = changed(tmp_path, "paper.py", '"cubic")', '"vegas")')
    with pytest.raises(DumbbellError, match="no flow matches") as caught:
        papers.reproduce([str(folder)], tmp_path / "out", seeds=1, duration="2 s")
    assert f'{folder / "paper.py"}, line 8: @claim("long"): ' in str(caught.value)


def test_a_measure_without_a_number_of_its_own_has_the_sum_of_several() -> None:
    paper = Study.load(folder_of("dbac")).paper
    [figure] = (figure for figure in paper.figures if figure.id == "6")
    total = figure.measures[-1]
    said = [paper.published_as(f"testbed-{cc}", total, {"cc": cc}) for cc in ("lia", "dbac")]
    assert said == [115, 421]


def test_a_template_stands_for_every_combination_of_its_settings() -> None:
    each = {"cc": ["a", "b"], "q": ["1", "2"]}
    short = {"b": "b(c=1)"}
    template = ExperimentTemplate(
        id="{cc}-{q}", file="x.toml", set=["cc={cc}"], each=each, short=short
    )
    assert [(one.id, one.changes) for one in template.all()] == [
        ("a-1", ("cc=a",)),
        ("a-2", ("cc=a",)),
        ("b-1", ("cc=b(c=1)",)),
        ("b-2", ("cc=b(c=1)",)),
    ]


def test_a_table_stands_for_a_number_of_every_row_and_column() -> None:
    table = PublishedTable(
        id="x-{a}-{b}",
        experiment="e-{a}",
        where="table 9",
        quantity="{b} at {a}",
        unit="s",
        rows={"a": ["1", "2"]},
        columns={"b": ["c", "d"]},
        published=[[1.0, 2.0], [3.0, 4.0]],
    )
    assert [(n.id, n.experiment, n.quantity, n.published) for n in table.all()] == [
        ("x-1-c", "e-1", "c at 1", 1.0),
        ("x-1-d", "e-1", "d at 1", 2.0),
        ("x-2-c", "e-2", "c at 2", 3.0),
        ("x-2-d", "e-2", "d at 2", 4.0),
    ]
    with pytest.raises(ValueError, match="zip"):
        list(table.model_copy(update={"published": [[1.0], [2.0, 3.0]]}).all())


def test_a_number_has_exactly_the_keys_of_the_results_file() -> None:
    row = number([80.0, 90.0, 100.0]).as_json()
    assert list(row) == [
        *("id", "where", "quantity", "unit", "published", "measured", "low", "high"),
        *("ratio", "settings"),
    ]
    assert row["measured"] == 90.0
    assert row["ratio"] == 1.0
    assert row["quantity"] == "time (median of 3 runs)"


def test_a_number_says_how_many_runs_did_not_converge() -> None:
    one = number([80.0, 90.0, 100.0, None])
    assert one.as_json()["quantity"] == "time (median of 4 runs, 1 of 4 not within 120 s)"
    [row] = rows([one])
    assert row.measured == "95"
    assert row.interval == "80 to > 120"


def test_a_number_says_where_the_one_run_of_a_paper_would_stand() -> None:
    cases: list[list[float | None]] = [[80.0, 90.0, 100.0], [95.0, None], [80.0]]
    shown = [rows([number(runs)])[0] for runs in cases]
    assert [(row.runs, row.rank) for row in shown] == [
        ("runs 80.0 to 100.0", "≥ 2 of 3 runs"),
        ("runs 95 to > 120", "≥ 0 of 2 runs"),
        ("", ""),
    ]


def test_a_median_beyond_the_limit_is_null_in_json_and_above_it_in_words() -> None:
    one = number([80.0, None, None])
    row = one.as_json()
    assert (row["measured"], row["high"], row["ratio"]) == (None, None, None)
    assert rows([one])[0].measured == "> 120"
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_numbers_of_a_column_have_one_precision_and_a_minus_sign() -> None:
    values = (0.7, 21.0, 95.04, 412.3, -6.2)
    shown = ["0.7", "21.0", "95.0", "412.3", "−6.2"]  # noqa: RUF001
    assert [row.measured for row in rows([number([value]) for value in values])] == shown
    assert [rows([number([value])])[0].published for value in values] == ["90"] * len(values)


def test_a_difference_has_no_ratio_in_the_report() -> None:
    one = number([80.0])
    gap = replace(one, spec=one.spec.model_copy(update={"ratio": False}))
    assert [row.ratio for row in rows([one, gap])] == ["0.89", "—"]
    assert len(DotPlot.of([one, gap]).simulated) == 1


def test_dots_are_stacked_on_an_axis_of_measured_over_published() -> None:
    numbers = [number([value]) for value in (90.0, 90.5, 180.0, 9.0, 900.0, None)]
    dots = DotPlot.of(numbers).simulated
    assert [(dot.x, dot.rank, dot.end) for dot in dots] == [
        (0.5, 0, "at"),
        (0.5, 1, "at"),
        (0.75, 0, "at"),
        (0.0, 0, "below"),
        (1.0, 0, "above"),
        (pytest.approx(0.607, abs=0.01), 0, "above"),
    ]


def test_linux_at_a_tenth_of_the_rate_is_no_dot_beside_published_values() -> None:
    one, real = number([90.0]), number([80.0]).measured
    tenth = TestbedNumber(real.scaled(0.1), real.scaled(0.1), 1, 0)
    same = TestbedNumber(real, number([85.0]).measured, 1, 0)
    plot = DotPlot.of([replace(one, testbed=tenth), replace(one, testbed=same)])
    assert (len(plot.simulated), len(plot.linux)) == (2, 1)


def test_zero_has_no_sign_and_other_numbers_a_minus_sign() -> None:
    assert minus("-0.000, +0.0, -0.012, +0.5, 3 to -7, bbr-2") == (
        "0.000, 0.0, −0.012, +0.5, 3 to −7, bbr-2"  # noqa: RUF001
    )


def judged(simulated: VerdictName, linux: VerdictName = "not measured") -> Claim:
    spec = PublishedClaim(id="x", where="table 1", text="It is.", check="It is.")
    return Claim(spec, Judgement(simulated), Judgement(linux))


def test_verdicts_are_counted_in_words() -> None:
    claims = [
        judged("confirmed", "confirmed"),
        judged("not confirmed", "inconclusive"),
        judged("inconclusive"),
    ]
    assert headline(claims) == (
        "1 of 3 claims confirmed, 1 not confirmed, 1 inconclusive; Linux decides 1 of them, "
        "1 as the simulator does."
    )
    assert headline(claims[:1] * 2) == (
        "2 of 2 claims confirmed; Linux decides 2 of them, 2 as the simulator does."
    )
    assert headline(claims[1:2]) == (
        "0 of 1 claim confirmed, 1 not confirmed; the few runs on Linux decide none of the 1 that "
        "were measured."
    )


def test_an_answer_begins_with_what_simulator_and_linux_have_against_the_paper() -> None:
    paper = papers.Paper.load(EXAMPLE)
    claims = [judged("not confirmed", "not confirmed"), judged("confirmed")]
    of = Reproduction(
        paper, EXAMPLE, [], claims, [], linux=LinuxSource("6.18.44"), result="It is slow."
    )
    assert answer(of) == [
        "The simulator and Linux 6.18.44 agree with each other, and not with the paper, on 1 of 2 "
        "claims.",
        "It is slow.",
    ]
    assert answer(replace(of, claims=claims[1:])) == ["It is slow.", "1 of 1 claim confirmed."]


def test_an_unknown_paper_is_refused_with_the_list_of_papers(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match='no paper "nobody"; there are staggered-start'):
        papers.reproduce(["nobody"], tmp_path)
    with pytest.raises(DumbbellError, match=r"has no paper\.toml"):
        papers.reproduce([str(tmp_path)], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_figure_is_refused_with_the_list_of_figures(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match='no figure is called "9z"; choose from 2a, 2b, 3a, 3b'):
        papers.draw("staggered-start", ["9z"], tmp_path)
    assert list(tmp_path.iterdir()) == []
