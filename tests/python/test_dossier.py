"""`dumbbell evaluate`: dossiers by RFC 9743."""

from __future__ import annotations

import hashlib
import html
import json
import math
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from command import complaint_of, dumbbell
from polars.testing import assert_frame_equal
from test_report import Page
from typer.testing import CliRunner

from dumbbell import DumbbellError, Experiment, ExperimentError, OverwriteError
from dumbbell.cli.app import app
from dumbbell.cli.evaluate import QUICK_PATHS
from dumbbell.dossier import Dossier, bench, evaluate, evaluation, real
from dumbbell.dossier.clauses import Measure, choose, clauses, needs_series, untested
from dumbbell.dossier.evaluation import REFERENCES
from dumbbell.dossier.gate import Gate, write_junit
from dumbbell.dossier.measures import KINDS, Runs, values, with_enough_flows
from dumbbell.dossier.outcome import Evidence, Finding, Options
from dumbbell.dossier.packs import Pack, Packed
from dumbbell.dossier.page import again, write_side_by_side
from dumbbell.dossier.scenarios import FOLDER, Scenario
from dumbbell.dossier.search import Search
from dumbbell.dossier.verdict import FEWEST, Pair, Share, bounds, combined, together
from dumbbell.dossier.words import heading, too_few
from dumbbell.engine.runner import run_all, run_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from dumbbell.dossier.search import Worst
    from dumbbell.engine.backend import Backend
    from dumbbell.engine.progress import Progress
    from dumbbell.results.result import Result

SCENARIOS = sorted(file.stem for file in FOLDER.glob("*.toml"))

QUICK: Any = {"clauses": ["retransmitted-constrained"], "paths": 1, "search": 0}

RAISES = """\
from dumbbell.cc import WindowRule


class Raises(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        raise ArithmeticError("no window")

    def decrease(self, cwnd, path, event):
        return cwnd / 2
"""

FAILS = """\
from dumbbell.cc import WindowRule


class Fails(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        if cwnd > 60:
            {what}
        return acked / cwnd

    def decrease(self, cwnd, path, event):
        return cwnd / 2
"""

HANGS = """\
from dumbbell.cc import WindowRule


class Hangs(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        while True:
            pass

    def decrease(self, cwnd, path, event):
        return cwnd / 2
"""

STAYS = """\
from dumbbell.cc import WindowRule


class Stays(WindowRule):
    def increase(self, cwnd, acked, path, ack):
        return 2 - cwnd

    def decrease(self, cwnd, path, event):
        return 2
"""


@pytest.mark.parametrize(
    ("beyond", "paths", "low", "high"),
    [
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_shares_have_the_exact_intervals_of_newcombe_s_table(
    beyond: int, paths: int, low: float, high: float
) -> None:
    """Newcombe, Statistics in Medicine 17 (1998), table I, method 5: 2.5 % on either side."""
    assert bounds(beyond, paths, 0.025) == pytest.approx((low, high), abs=5e-5)


def test_a_verdict_is_wrong_in_at_most_5_of_100_draws_for_any_paths() -> None:
    """The probabilities of the counts that give one where a tenth of all paths is beyond."""
    for paths in range(1, 121):
        chance = [
            math.comb(paths, beyond) * 0.1**beyond * 0.9 ** (paths - beyond)
            for beyond in range(paths + 1)
        ]
        verdicts = [Share(beyond, paths).verdict for beyond in range(paths + 1)]
        for verdict, fewest in (("for", 29), ("against", 2)):
            wrong = [p for p, one in zip(chance, verdicts, strict=True) if one == verdict]
            assert sum(wrong) <= 0.05
            assert bool(wrong) == (paths >= fewest)


def test_a_share_surely_below_or_above_a_tenth_is_evidence() -> None:
    found = [Share(beyond, 100).verdict for beyond in (0, 4, 5, 15, 16, 100)]
    assert found == ["for", "for", "inconclusive", "inconclusive", "against", "against"]
    assert Share.of([0.1, None, 0.3], 0.2) == Share(2, 3)
    assert Share(0, 0).verdict == "not tested"


def test_a_dossier_of_few_paths_says_that_none_can_be_for(tmp_path: Path) -> None:
    assert Share(0, FEWEST).verdict == "for"
    assert Share(0, FEWEST - 1).verdict == "inconclusive"
    of = Dossier("bbr", [], [], [], 6, 0, tmp_path)
    assert too_few(of).startswith("With 6 paths no clause can have evidence for")
    assert too_few(replace(of, paths=FEWEST)) == ""


def test_a_measure_of_few_paths_of_many_is_named(tmp_path: Path) -> None:
    [clause] = choose(["loss-own"], {})
    few = Evidence(clause.measures[0], pl.DataFrame(), {"bbr": Share(0, 28)}, pl.DataFrame())
    of = Dossier("bbr", [], [Finding(clause, [few])], [], 36, 0, tmp_path)
    assert too_few(of) == "Evidence for takes 29 paths; fewer have loss-own (28 paths)."


def test_quick_evaluations_have_enough_paths_for_every_measure() -> None:
    for measure in (one for clause in clauses() for one in clause.measures):
        paths = Scenario(measure.scenario).first(QUICK_PATHS)
        flows = [path.get("flow.proposed.repeat", measure.kind.least_flows) for path in paths]
        enough = sum(count >= measure.kind.least_flows for count in flows)
        assert enough >= FEWEST, measure.id


def test_the_chances_of_for_in_the_guide_are_those_of_100_paths() -> None:
    def chance(share: float) -> float:
        return sum(
            math.comb(100, beyond) * share**beyond * (1 - share) ** (100 - beyond)
            for beyond in range(101)
            if Share(beyond, 100).verdict == "for"
        )

    found = [chance(0.02), chance(0.05), chance(0.02) ** 8, chance(0.05) ** 8]
    assert [round(100 * one) for one in found] == [95, 44, 66, 0]


def test_the_chances_of_against_in_the_reference_are_those_of_100_paths() -> None:
    def chance(share: float) -> float:
        return sum(
            math.comb(100, beyond) * share**beyond * (1 - share) ** (100 - beyond)
            for beyond in range(101)
            if Share(beyond, 100).verdict == "against"
        )

    assert max(len(clause.measures) for clause in clauses()) == 14
    found = [100 * (1 - (1 - chance(share)) ** 14) for share in (0.1, 0.08, 0.05)]
    assert [f"{one:.1g}" for one in found[1:]] == ["8", "0.05"]
    assert round(found[0]) == 43


def test_one_measure_against_an_algorithm_is_a_verdict_on_the_clause() -> None:
    assert together(["for", "against", "inconclusive"]) == "against"
    assert together(["for", "inconclusive"]) == "inconclusive"
    assert together(["for", "for"]) == "for"
    assert together(["reference", "inconclusive"]) == "inconclusive"
    assert together(["reference"]) == "reference"


def test_a_clause_shows_the_largest_share_that_has_its_verdict() -> None:
    clause = next(one for one in clauses() if one.section == "5.1.5")
    (measure,) = clause.measures

    def finding(*beyond: int) -> Finding:
        shares = [{"reno": Share(one, 100), "cubic": Share(0, 100)} for one in beyond]
        none = pl.DataFrame()
        return Finding(clause, [Evidence(measure, none, its, none) for its in shares])

    assert finding(20, 48, 9).mark("reno") == "against 48 %"
    assert finding(0, 9).mark("reno") == "open 9 %"
    assert finding(0, 3).mark("reno") == "for 3 %"
    assert finding(0, 3).mark("cubic") == "reference"  # CUBIC's is the time of comparison
    assert finding(0, 3).mark("bbr") == "—"


def test_six_paths_of_one_kind_and_none_of_the_other_are_a_difference() -> None:
    """An exact two-sided sign test at 5 %: p is 2/32 with five paths, 2/64 with six."""
    beyond, within = 2.0, 0.5
    five = Pair.of([beyond] * 6 + [within], [within] * 5 + [beyond, within], 1.0)
    assert (five.worse, five.better, five.p, five.comparison()) == (5, 0, 2 / 32, "open")
    six = [None, beyond, beyond, beyond, beyond, beyond]
    assert Pair.of(six, [within] * 6, 1.0).comparison() == "worse"
    assert Pair.of([within] * 6, six, 1.0).comparison() == "better"
    assert Pair.of(six, six, 1.0).p == 1.0


def test_a_path_that_one_of_the_two_lacks_is_not_compared() -> None:
    rows = [(0, "bbr", 0.5), (1, "bbr", 0.5), (1, "cubic", 0.0), (2, "bbr", 0.0)]
    table = pl.DataFrame(rows, schema=["path", "cc", "value"], orient="row")
    [measure] = choose(["loss-own"], {})[0].measures
    shares = {cc: Share(0, 1) for cc in ("bbr", "cubic")}
    assert Evidence(measure, table, shares, table).beside("bbr") == Pair(1, 0)


def test_a_clause_is_better_by_one_measure_and_none_that_is_worse() -> None:
    better, worse, alike = Pair(0, 20), Pair(20, 0), Pair(10, 10)
    assert combined([better, alike]) == "better"
    assert combined([worse, better, alike]) == "both"
    assert combined([alike]) == combined([]) == "open"


def test_of_many_measures_each_has_to_differ_more_clearly() -> None:
    six = Pair(6, 0)  # p is 0.03
    assert combined([six]) == "worse"
    assert combined([six, Pair(3, 3)]) == "open"


def test_an_algorithm_is_not_judged_by_a_comparison_with_itself() -> None:
    [harm] = choose(["harm-aqm-beside"], {})[0].measures
    [both] = choose(["harm-existing"], {})[0].measures
    [ratio] = choose(["loss-ratio-overload"], {})[0].measures
    assert (harm.reference, both.reference, ratio.reference) == ("cubic", "", "reno")


def test_every_measure_has_a_scenario_and_every_scenario_a_measure() -> None:
    used = {measure.scenario for clause in clauses() for measure in clause.measures}
    assert sorted(used) == SCENARIOS
    ids = [measure.id for clause in clauses() for measure in clause.measures]
    assert len(ids) == len(set(ids))


def test_what_is_said_of_the_flows_beside_is_what_scenarios_have() -> None:
    beside = {cc for scenario in map(Scenario, SCENARIOS) for cc in scenario.beside}
    assert beside == {"reno", "cubic", "bbr", "bbr3"}
    [said] = [one.reason for one in untested() if one.section == "5.2.1"]
    assert said == "Of them BBRv1 and BBRv3 are beside the algorithm, and no other."


def test_a_changed_limit_has_not_the_reason_of_the_first() -> None:
    name = "sustained-loss-own"
    [clause] = choose([name], {name: 2.0})
    [measure] = clause.measures
    assert measure.limit == 2.0
    assert measure.reason == "The author of this dossier changed it from 2 % to 200 %."
    [same] = choose([name], {name: 0.02})
    assert "BBRv3 uses" in same.measures[0].reason


def test_a_measure_in_seconds_says_so_in_json() -> None:
    findings = [
        Finding(clause, [Evidence.lacking(one, "not run") for one in clause.measures])
        for clause in choose(["time-bursts", "delay-own", "loss-own"], {})
    ]
    said = Dossier("bbr", ["reno"], findings, [], 3, 0, FOLDER).to_json()
    units = {one["id"]: one["unit"] for clause in said["clauses"] for one in clause["measures"]}
    assert units == {"time-bursts": "s", "delay-own": "s", "loss-own": "1"}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_search_begins_on_the_paths_of_the_design(name: str) -> None:
    scenario = Scenario(name)
    points = list(scenario.design(["cubic", "reno"], 4).points())
    places = scenario.places(len(points) // 2)
    drawn = scenario.at([scenario.settings(place) for place in places], ["cubic", "reno"])
    assert [point.scenario for point in drawn.points()] == [point.scenario for point in points]


def test_paths_in_several_spellings_are_one_and_each_has_its_value(tmp_path: Path) -> None:
    [clause] = choose(["retransmitted-constrained"], {})
    search = Search(bench.Bench(tmp_path), clause.measures[0], "reno", ["cubic"])
    first, other = search.scenario.first(2)
    paths = [first | {"flow.*.rtt": rtt} for rtt in ("1000 ms", "1 s")]
    assert search._bad([paths[0], other, paths[1]], -1.0) == [True, True, True]
    found = search._measure([paths[0], other, paths[1]], ["reno"])
    assert found[0] == found[2] == search._measure(paths[1:], ["reno"])[0]
    assert found[1] == search._measure([other], ["reno"])[0]


@pytest.fixture(scope="module")
def dossier(folder: Path) -> Dossier:
    sections = ["5.1.1", "5.1.2", "5.1.3", "harm-existing", "5.2.3"]
    return evaluate("bbr", folder / "bbr", clauses=sections, paths=12, search=20)


def test_a_path_has_its_own_seed_with_all_algorithms_and_in_its_file() -> None:
    scenario = Scenario("existing")
    assert scenario.grid
    points = list(scenario.design(["reno", "cubic"], 3).points())
    size = len(points) // 3
    seeds = [scenario.seed_of(point.values) for point in points]
    assert all(seeds[at] == seeds[at - at % size] for at in range(len(seeds)))
    assert len(set(seeds)) == 3
    for number, settings in enumerate(scenario.first(len(points) // 2)):
        assert scenario.experiment(settings, "bbr").seeds == [seeds[2 * number]]


def evidence_of(dossier: Dossier, measure: str) -> pl.DataFrame:
    return next(
        one.values
        for finding in dossier.findings
        for one in finding.evidence
        if one.measure.id == measure
    )


def worst_of(dossier: Dossier, measure: str) -> Worst:
    worst = next(
        one.worst
        for finding in dossier.findings
        for one in finding.evidence
        if one.measure.id == measure
    )
    assert worst is not None
    return worst


@pytest.mark.slow
def test_an_algorithm_beside_itself_does_no_harm_and_is_as_fast(dossier: Dossier) -> None:
    [harm] = [
        one.every
        for finding in dossier.findings
        for one in finding.evidence
        if one.measure.id == "harm-existing"
    ]
    harm = harm.filter(pl.col("cc") == pl.col("existing"))
    assert harm.height == 2 * 12
    assert harm["value"].unique().to_list() == [0.0]
    # Beside Reno and beside CUBIC a path counts once.
    assert evidence_of(dossier, "harm-existing").filter(cc="bbr").height == 12
    usual = evidence_of(dossier, "slowdown-short").filter(cc="cubic")
    assert usual["value"].unique().to_list() == [1.0]


@pytest.mark.slow
def test_timeouts_of_a_dead_path_double_from_the_retransmission_timeout(dossier: Dossier) -> None:
    """RFC 6298: the n-th retransmission is after (2^n - 1) timeouts, of 200 ms and the RTT."""
    for rtt, value in evidence_of(dossier, "persistence-outage").select("rtt", "value").rows():
        most = math.log2(60 / (0.2 + rtt) + 1)
        # A tail loss probe may come before them (RFC 8985, section 7).
        assert math.floor(most) - 1 <= value <= math.floor(most) + 1


@pytest.mark.slow
def test_bbrv1_s_worst_losses_are_found_in_shallow_queues(dossier: Dossier) -> None:
    """Hock, Bless, Zitterbart (ICNP 2017): sustained losses below 1.5 BDP; RFC 9743, 5.1.3."""
    found = worst_of(dossier, "loss-own")
    for path in (found.worst, found.simplest):
        assert float(path.settings["link.bottleneck.queue"].removesuffix(" BDP")) < 1.5
    values = {cc: value for cc, value in found.simplest.values.items() if value is not None}
    assert values["bbr"] > max(0.1, 1.5 * values["reno"], 1.5 * values["cubic"])


@pytest.mark.slow
def test_bbrv1_loses_more_the_shallower_the_queue(dossier: Dossier) -> None:
    """The same paper: with 1.5 BDP and more its losses are small."""
    [evidence] = [one for one in dossier.evidence if one.measure.id == "sustained-loss-own"]
    depths = evidence.by_depth()
    assert sum(shares["bbr"].paths for _, _, shares in depths) == 12
    shallow = [shares["bbr"].value for _, high, shares in depths if high <= 1]
    deep = [shares["bbr"].value for low, _, shares in depths if low >= 1.5]
    assert min(shallow) > max(deep)
    assert "By the depth of the queue" in (dossier.folder / "index.html").read_text()


@pytest.mark.parametrize(
    ("own", "others", "missing"),
    [
        ([20], [20, 20, 20, 20], 0.0),
        ([10], [22.5, 22.5, 22.5, 22.5], 0.5),
        ([5, 5, 5, 5], [80], 0.75),
        ([50, 50], [0, 0], -1.0),
    ],
)
def test_a_fair_share_is_in_proportion_to_the_number_of_flows(
    own: list[float], others: list[float], missing: float
) -> None:
    runs = Runs.__new__(Runs)
    rows = [(f"proposed-{n}", rate) for n, rate in enumerate(own)]
    rows += [(f"existing-{n}", rate) for n, rate in enumerate(others)]
    table = pl.DataFrame(rows, schema=["flow", "throughput"], orient="row")
    runs.flows = table.with_columns(run=pl.lit("a"), throughput=pl.col("throughput").cast(float))
    found = KINDS["starvation"].measure(runs)["value"].to_list()
    assert found == pytest.approx([missing])


def test_a_single_flow_is_no_evidence_of_fairness() -> None:
    flows = [("alone", "proposed"), ("two", "proposed-1"), ("two", "proposed-2")]
    runs = Runs.of(
        pl.DataFrame({"run": ["alone", "two"]}),
        pl.DataFrame(flows, schema=["run", "flow"], orient="row"),
        [],
    )
    found = pl.DataFrame({"run": ["alone", "two"], "value": [0.0, 0.0]})
    assert with_enough_flows(runs, found, KINDS["least_share"])["run"].to_list() == ["two"]
    assert with_enough_flows(runs, found, KINDS["loss"]).height == 2


def test_of_lost_packets_neither_drops_nor_sent_ones_of_the_warmup_count(tmp_path: Path) -> None:
    scenario = Scenario("fall")
    sweep = scenario.at(scenario.first(1), ["cubic"])
    runs = bench.Bench(tmp_path).run(sweep, "fall")
    sent = runs.flows["sent"].sum()
    assert runs.runs["data_packets"].item() > 3 * sent  # at ten times the rate until 10 s
    found = values(runs, KINDS["loss"])["value"].item()
    assert found == pytest.approx(runs.runs["dropped"].item() / sent)


def test_the_delay_of_a_longer_route_is_no_queueing(tmp_path: Path) -> None:
    scenario = Scenario("delay")
    path = {"link.bottleneck.rate": "50 Mbit/s", "flow.*.rtt": "50 ms"}
    path |= {"link.bottleneck.queue": "200 packets"}
    sweep = scenario.at([path], ["vegas", "cubic"])
    runs = bench.Bench(tmp_path).run(sweep, "delay", series=True)
    calm, full = values(runs, KINDS["queueing"])["value"]
    assert calm < 0.005 < full < 200 * 1500 * 8 / 50e6
    # The six routes are 32.5 ms longer than the shortest one on average.
    assert runs.runs["queue_delay_mean"].min() > 0.02  # type: ignore[operator]


def test_a_constant_load_leaves_less_capacity_to_be_used() -> None:
    flows = [
        ("a", "proposed", "cubic", 60),
        ("a", "media", "none", 20),
        ("b", "proposed", "bbr", 8),
    ]
    runs = Runs.of(
        pl.DataFrame({"run": ["a", "b"], "utilisation": [0.8, 0.8]}),
        pl.DataFrame(flows, schema=["run", "flow", "cc", "received"], orient="row"),
        [],
    )
    assert KINDS["idle"].measure(runs)["value"].to_list() == pytest.approx([0.25, 0.2])


def test_a_path_that_loses_more_than_5_of_100_frames_has_no_delay() -> None:
    runs = {"run": ["a", "b"], "frame_delay_p95": [0.1, 0.1], "frames_lost": [0.05, 0.06]}
    found = KINDS["frames"].measure(Runs.of(pl.DataFrame(runs), pl.DataFrame(), []))
    assert found["value"].to_list() == [0.1, None]


def test_a_path_whose_reference_run_is_missing_is_left_out() -> None:
    rows = [("a", "bbr", 1, 4), ("b", "reno", 1, 2), ("c", "bbr", 2, 9), ("d", "reno", 3, 5)]
    columns = ["run", "proposed", "seed", "dropped"]
    runs = pl.DataFrame(rows, schema=columns, orient="row")
    flows = pl.DataFrame({"run": list("abcd"), "flow": "proposed", "sent": 10})
    found = values(Runs.of(runs, flows, []), KINDS["loss_ratio"])
    assert found.select("run", "value").rows() == [("a", 2.0), ("b", 1.0), ("d", 1.0)]


def of_series(flows: dict[str, list[int]], dropped: list[int]) -> Runs:
    """A run of which each second has what its flows have sent and delivered so far."""
    rows = [
        ("a", name, float(t), count, count)
        for name, counts in flows.items()
        for t, count in enumerate(counts)
    ]
    columns = ["run", "flow", "t", "sent", "delivered"]
    starts = [("a", name, float(counts.count(0) - 1)) for name, counts in flows.items()]
    links = [("a", "bottleneck", float(t), count) for t, count in enumerate(dropped)]
    return Runs.of(
        pl.DataFrame({"run": ["a"]}),
        pl.DataFrame(starts, schema=["run", "flow", "start"], orient="row"),
        [],
        [
            pl.DataFrame(rows, schema=columns, orient="row"),
            pl.DataFrame(links, schema=["run", "link", "t", "dropped"], orient="row"),
        ],
    )


def test_a_late_flow_shares_what_both_have_since_it_started() -> None:
    # In the last three seconds 30 and 10: a quarter, where half would be fair.
    runs = of_series({"proposed": [0, 50, 60, 70, 80], "proposed-late": [0, 0, 2, 6, 10]}, [0] * 5)
    assert KINDS["latecomer"].measure(runs)["value"].to_list() == pytest.approx([0.5])


def test_losses_of_a_first_slow_start_are_not_sustained() -> None:
    flows = {"proposed": [0, 100, 200, 300]}
    once = of_series(flows, [0, 50, 50, 50])
    assert KINDS["sustained_loss"].measure(once)["value"].to_list() == [0.0]
    always = of_series(flows, [0, 10, 20, 30])
    assert KINDS["sustained_loss"].measure(always)["value"].to_list() == pytest.approx([0.1])


@pytest.mark.slow
def test_the_simplest_path_is_beyond_the_limit_and_its_file_shows_it(dossier: Dossier) -> None:
    simplest = worst_of(dossier, "loss-own").simplest
    file = dossier.folder / "scenarios/loss-own-simplest.toml"
    [result] = run_all([Experiment.load(file)])
    dropped, sent = result.links["dropped"].to_list()[-1], sum(result.flows["sent"].to_list())
    value = dropped / sent
    assert value == simplest.values["bbr"]
    assert value > 0.02
    plain = Scenario("own").plain()
    assert sum(simplest.settings[key] == value for key, value in plain.items()) >= 2


@pytest.mark.slow
def test_a_dossier_is_made_once_and_has_the_same_bytes(dossier: Dossier, folder: Path) -> None:
    before = (folder / "bbr/dossier.json").read_bytes()
    sections = [one.measure.id for one in dossier.evidence]
    made: list[str] = []
    again = evaluate(
        "bbr",
        folder / "bbr",
        clauses=sections,
        paths=12,
        search=20,
        progress=lambda step, _: made.append(step),
    )
    assert not [step for step in made if re.search(r"\d runs$", step)]
    assert again.runs == dossier.runs
    assert (folder / "bbr/dossier.json").read_bytes() == before


@pytest.mark.slow
def test_the_page_shows_each_clause_and_its_files_are_there(dossier: Dossier) -> None:
    text = (dossier.folder / "index.html").read_text()
    page = Page(text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    for finding in dossier.findings:
        assert finding.clause.question in text
    files = [link.split("#")[0] for link in page.links if not link.startswith("#")]
    assert "lab.html" in files
    assert files
    assert [file for file in files if not (dossier.folder / file).is_file()] == []
    assert (
        "## 5.1.3 Protection against high packet loss"
        in (dossier.folder / "dossier.md").read_text()
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cc", "measure", "queues"),
    [
        ("cubic", "delay-own", (3, math.inf)),  # Gettys and Nichols, ACM Queue 2011
        ("vegas", "starvation-existing", None),  # Mo et al., INFOCOM 1999
        ("bbr2", "starvation-existing", (0.7, math.inf)),  # F-BBRv2's figure 8: fair at 0.7 BDP
        ("copa", "starvation-existing", (3, math.inf)),  # its switch of modes, Arun and others 2021
        ("reno", "idle-attack", (0, 3)),  # Kuzmanovic and Knightly, SIGCOMM 2003
    ],
)
def test_known_weaknesses_are_found_by_the_search(
    folder: Path, cc: str, measure: str, queues: tuple[float, float] | None
) -> None:
    found = evaluate(cc, folder / cc, clauses=[measure], paths=12, search=100)
    worst = worst_of(found, measure).worst
    value = worst.values[cc]
    assert value is not None
    if queues is not None:
        least, most = queues
        queue = float(worst.settings["link.bottleneck.queue"].removesuffix(" BDP"))
        assert least < queue <= most
    assert value > {"delay-own": 0.3, "idle-attack": 0.5}.get(measure, 0.7)


def test_an_algorithm_that_raises_yields_a_dossier_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(RAISES)
    cc = f"{tmp_path / 'raises.py'}:Raises"
    found = evaluate(cc, tmp_path / "out", clauses=["5.1.3"], paths=2, search=0)
    [failure] = found.failures
    assert failure.startswith("it raised ArithmeticError: no window")
    assert found.findings[0].verdict(cc) == "not tested"
    assert "no window" in (tmp_path / "out/index.html").read_text()
    assert json.loads((tmp_path / "out/dossier.json").read_text())["failures"] == [failure]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("return float('nan')", "it failed: fails.py:Fails: the increase is nan after increase"),
        ("return None", "it failed: fails.py:Fails: the increase is None after increase"),
        ("raise ArithmeticError('no window')", "it raised ArithmeticError: no window, in fails.py"),
    ],
)
def test_a_failing_algorithm_exits_with_1_and_its_path_fails_again(
    tmp_path: Path, what: str, said: str
) -> None:
    (tmp_path / "fails.py").write_text(FAILS.format(what=what))
    options = ["--clauses", "5.1.3", "--paths", "3", "--search", "0"]
    done = dumbbell("evaluate", "fails.py:Fails", "--out", "out", *options, cwd=tmp_path)
    assert done.returncode == 1
    assert f"Runs could not be made: {said}" in " ".join(done.stdout.split())
    [failure] = json.loads((tmp_path / "out/dossier.json").read_text())["failures"]
    assert failure.endswith("; the path is scenarios/failed-own.toml")
    again = dumbbell("run", "out/scenarios/failed-own.toml", cwd=tmp_path)
    assert again.returncode == 1
    (tmp_path / "fails.py").write_text(FAILS.format(what="pass"))
    assert dumbbell("evaluate", "fails.py:Fails", "--out", "out", *options, cwd=tmp_path)
    assert not (tmp_path / "out/scenarios/failed-own.toml").exists()


def test_a_dossier_has_the_method_and_runs_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    source = tmp_path / "src/stays.py"
    source.write_text(STAYS)
    options = ["--clauses", "loss-own", "--paths", "1", "--search", "1"]
    done = dumbbell("evaluate", "src/stays.py:Stays", "--out", "out", *options, cwd=tmp_path)
    assert done.returncode == 0
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    content = json.loads((tmp_path / "out/dossier.json").read_text())["method"]
    assert content["source"] == {"file": "stays.py", "sha256": digest}
    [scenario] = content["scenarios"]
    assert (scenario["name"], scenario["seed"], content["searched"]) == ("own", 1, 1)
    text = (tmp_path / "out/dossier.md").read_text()
    assert f"`src/stays.py:Stays` of stays.py, SHA-256 {digest}." in text
    assert "Scenario `own`: Flows of one algorithm on a tail-drop link. 30 s; seed 1" in text
    assert "rate 5 Mbit/s to 500 Mbit/s" in text
    source.unlink()
    again = dumbbell("run", "scenarios/loss-own-worst.toml", "--out", "w", cwd=tmp_path / "out")
    assert again.returncode == 0


def test_a_class_that_imports_other_files_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("LEAST = 2\n")
    (tmp_path / "needs.py").write_text("from helper import LEAST\n" + STAYS)
    cc = f"{tmp_path / 'needs.py'}:Stays"
    evaluate(cc, tmp_path / "out", clauses=["loss-own"], paths=1, search=1)
    assert not (tmp_path / "out/scenarios/needs.py").exists()
    [flow] = tomllib.loads((tmp_path / "out/scenarios/loss-own-worst.toml").read_text())["flow"]
    assert flow["cc"] == cc


def test_an_algorithm_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PATIENCE", 1.0)
    (tmp_path / "hangs.py").write_text(HANGS)
    cc = f"{tmp_path / 'hangs.py'}:Hangs"
    found = evaluate(cc, tmp_path / "out", clauses=["5.1.3"], paths=2, search=0)
    file = "scenarios/failed-own.toml"
    assert found.failures == [f"its simulation did not advance for 1 s; the path is {file}"]
    assert "hangs.py:Hangs" in (tmp_path / "out" / file).read_text()


def test_an_algorithm_that_hardly_sends_leaves_the_path_unused(tmp_path: Path) -> None:
    (tmp_path / "stays.py").write_text(STAYS)
    cc = f"{tmp_path / 'stays.py'}:Stays"
    found = evaluate(cc, tmp_path / "out", clauses=["6.1"], paths=4, search=0)
    values = evidence_of(found, "idle-own").filter(cc=cc)["value"].to_list()
    assert found.findings[0].evidence[0].shares[cc].beyond >= 3
    assert max(values) > 0.9


def test_a_gate_exits_with_1_and_writes_junit(tmp_path: Path) -> None:
    gate, junit = tmp_path / "gate.toml", tmp_path / "junit.xml"
    gate.write_text('[limits]\n"loss-own" = 0.0\n[share]\n"loss-own" = 0.0\n"idle-own" = 1.0\n')
    out = str(tmp_path / "out")
    arguments = ["evaluate", "bbr", "--out", out, "--clauses", "5.1.3,idle-own", "--paths", "4"]
    arguments += ["--search", "0", "--gate", str(gate), "--junit", str(junit)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 1
    assert "Allowed: 0 %" in done.output
    [suite] = ElementTree.parse(junit).getroot()
    counts = {"tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert {name: suite.get(name) for name in counts} == counts
    gate.write_text('[share]\n"loss-own" = 1.0\n')
    assert CliRunner().invoke(app, arguments).exit_code == 0


@pytest.mark.parametrize(
    ("backend", "found"),
    [
        ("simulator", {"loss-own": "error", "idle-own": "error"}),
        ("linux", {"loss-own": "error", "idle-own": "skipped"}),
    ],
)
def test_a_measure_that_could_not_be_run_does_not_pass_in_junit(
    tmp_path: Path, backend: Backend, found: dict[str, str]
) -> None:
    findings = [
        Finding(clause, [Evidence.lacking(one, "it hangs") for one in clause.measures])
        for clause in choose(["loss-own", "idle-own"], {})
    ]
    dossier = Dossier("bbr", ["reno"], findings, [], 3, 0, tmp_path, backend=backend)
    gate = Gate(share={"loss-own": 1.0})
    write_junit(tmp_path / "junit.xml", gate, [(dossier, gate.broken(dossier))])
    [suite] = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert {case.get("name"): case[0].tag for case in suite} == found
    assert all(case[0].get("message") == "it hangs" for case in suite)
    assert suite.get("errors") == str([*found.values()].count("error"))


@pytest.mark.parametrize(
    ("options", "more"),
    [(["--clauses", "5.1.2"], "5.1.2,loss-own"), (["--pack", "tcpeval"], "loss-own")],
)
def test_a_gate_on_a_measure_that_is_not_run_is_refused(
    tmp_path: Path, options: list[str], more: str
) -> None:
    (tmp_path / "gate.toml").write_text('[share]\n"loss-own" = 0.0\n')
    said = complaint_of(
        "evaluate", "reno", "--out", "a", *options, "--gate", "gate.toml", cwd=tmp_path
    )
    assert said == f"--gate: share.loss-own: this measure is not run; write --clauses {more}"


def test_lines_of_the_same_measure_name_their_scenarios(tmp_path: Path) -> None:
    names = ["loss-own", "harm-existing", "harm-one-of-five"]
    evaluate("reno", tmp_path, clauses=names, paths=1, search=0)
    text = (tmp_path / "dossier.md").read_text()
    assert "- Packets dropped above 10 %: Reno on" in text
    for limit, scenario in ((50, "existing"), (25, "one-of-five")):
        said = f"- Throughput taken from standard flows above {limit} % (scenario {scenario}): "
        assert said in text


def test_several_algorithms_stand_side_by_side(tmp_path: Path) -> None:
    arguments = ["evaluate", "reno,cubic", "--out", str(tmp_path), "--clauses", "5.1.3"]
    done = CliRunner().invoke(app, [*arguments, "--paths", "2", "--search", "0"])
    assert done.exit_code == 0
    page = Page((tmp_path / "index.html").read_text())
    assert {"./reno/index.html", "./cubic/index.html"} <= set(page.links)
    assert page.open == []


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("share = 1", "share is not a table; write [share]"),
        ("[shares]", 'no table is called "shares"'),
        ('[share]\n"loss-owm" = 0.1', 'did you mean "loss-own"?'),
        ('[share]\n"loss-own" = "x"', "share.loss-own: 'x' is not a number of at least 0"),
        ('[limits]\n"loss-own" = inf', "limits: loss-own: inf is not finite"),
        ('[share]\n"loss-own" = 2', "share.loss-own: 2 is not between 0 and 1"),
        ("[share", "is not TOML"),
    ],
)
def test_a_mistake_in_a_gate_is_told(tmp_path: Path, gate: str, said: str) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(gate)
    arguments = ["evaluate", "bbr", "--out", str(tmp_path / "out"), "--gate", str(file)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2 or isinstance(done.exception, DumbbellError)
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cubid"], 'did you mean "cubic"?'),
        (["absent.py:Mine"], "absent.py"),
        (["bbr", "--clauses", "5.9"], 'no clause is called "5.9"'),
    ],
)
def test_a_mistake_in_the_command_is_told(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["evaluate", *arguments, "--out", str(tmp_path / "out")])
    assert said in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        ({"clauses": ["5.9"]}, ["--clauses", "5.9"], 'clauses: no clause is called "5.9"'),
        ({"packs": ["tcp"]}, ["--pack", "tcp"], 'pack{}: no pack is called "tcp"'),
        (
            {"backend": "linux", "search": 5},
            ["--backend", "linux", "--search", "5"],
            "backend: lin",
        ),
    ],
)
def test_a_mistake_names_the_argument_and_in_the_command_the_option(
    tmp_path: Path, arguments: dict[str, Any], options: list[str], problem: str
) -> None:
    with pytest.raises(ExperimentError) as error:
        evaluate("bbr", tmp_path / "out", **arguments)
    assert str(error.value).startswith(problem.format("s"))
    said = complaint_of("evaluate", "bbr", "--out", "out", *options, cwd=tmp_path)
    assert said.startswith(f"--{problem.format('')}")
    assert complaint_of("evaluate", "cubid", "--out", "out", cwd=tmp_path).startswith("CC: no al")


def test_what_is_no_dossier_on_the_algorithm_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    with pytest.raises(
        OverwriteError, match="is no dossier, and a dossier needs a folder of its own"
    ):
        evaluate("bbr", tmp_path, clauses=["5.1.3"], paths=2, search=0)
    evaluate("reno", tmp_path / "out", clauses=["5.1.3"], paths=2, search=0)
    with pytest.raises(OverwriteError, match="holds a dossier on reno"):
        evaluate("bbr", tmp_path / "out", clauses=["5.1.3"], paths=2, search=0)


def test_a_folder_that_is_refused_is_told_without_overwrite(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    said = complaint_of("evaluate", "bbr", "--out", ".", cwd=tmp_path)
    assert said == (
        ".: is no dossier, and a dossier needs a folder of its own; name another path with --out"
    )


def command_again(page: str) -> list[str]:
    found = re.search("<pre>(dumbbell evaluate .*)</pre>", page)
    assert found
    return shlex.split(html.unescape(found[1]))[1:]


@pytest.mark.parametrize(
    "options",
    [
        ["--clauses", "5.1.2,loss-own", "--paths", "2", "--search", "1"],
        ["--clauses", "5.1.2", "--paths", "2", "--search", "0", "--gate", "gate.toml"],
    ],
)
def test_the_command_of_a_dossier_makes_the_same_one(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "gate.toml").write_text('[limits]\n"delay-own" = 0.015\n')
    assert dumbbell("evaluate", "reno", "--out", "a b", *options, cwd=tmp_path).returncode == 0
    folder = tmp_path / "a b"
    before = (folder / "dossier.json").read_bytes(), (folder / "dossier.md").read_bytes()
    command = command_again((folder / "index.html").read_text())
    (folder / "dossier.json").unlink()
    (tmp_path / "gate.toml").unlink()
    assert dumbbell(*command, cwd=tmp_path).returncode == 0
    assert ((folder / "dossier.json").read_bytes(), (folder / "dossier.md").read_bytes()) == before


@pytest.mark.parametrize("sections", [[], None])
def test_the_command_of_a_dossier_names_packs_and_quick(sections: list[str] | None) -> None:
    suite = Packed(Pack.load("tcpeval"), [], 1, {})
    options = Options(sections, seeds=1)
    said = again(Dossier("reno", [], [], [], 36, 0, FOLDER, [suite], "simulator", options))
    every = " --clauses all" if sections is None else ""
    assert said == f"dumbbell evaluate reno --out {FOLDER} --pack tcpeval --quick{every}"


def test_real_packets_have_no_search_and_no_packs(tmp_path: Path) -> None:
    for more in (["--search", "5"], ["--pack", "tcpeval"]):
        arguments = [
            "evaluate",
            "reno",
            "--out",
            str(tmp_path / "out"),
            "--backend",
            "linux",
            *more,
        ]
        done = CliRunner().invoke(app, arguments)
        assert "runs neither packs nor a search" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_real_packets_have_jobs_and_no_dask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ExperimentError, match="dask: is for the simulator"):
        evaluate("reno", tmp_path / "out", backend="linux", dask="tcp://nowhere:1")
    assert not (tmp_path / "out").exists()
    given = []

    def runs(experiments: list[Experiment], **options: Any) -> Iterator[Result]:
        given.append((len(experiments), options["backend"], options["jobs"]))
        return run_each(experiments)

    monkeypatch.setattr(real, "run_each", runs)
    monkeypatch.setattr(evaluation, "run_all", lambda *_, **__: [])
    evaluate("reno", tmp_path / "out", clauses=["loss-own"], paths=2, backend="linux", jobs=2)
    assert given == [(4, "linux", 2)]


def test_a_class_is_refused_for_real_packets_before_any_run(tmp_path: Path) -> None:
    (tmp_path / "stays.py").write_text(STAYS)
    cc, out = f"{tmp_path / 'stays.py'}:Stays", tmp_path / "out"
    with pytest.raises(ExperimentError, match=r"cc: .* classes run in the simulator only"):
        evaluate(cc, out, paths=1, search=0, backend="linux")
    assert not out.exists()


def test_what_real_packets_cannot_have_is_not_tested_on_three_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, **options: object) -> None:
        assert options["backend"] == "linux"
        raise ExperimentError("has options that no kernel has", key="flow[1].cc")

    monkeypatch.setattr(real, "run_each", refuse)
    found = evaluate("reno", tmp_path / "out", clauses=["media-loss-media"], backend="linux")
    assert (found.paths, found.options.search) == (3, 0)
    [failure] = found.failures
    assert "real packets cannot show it: flow[1].cc: has options" in failure
    assert found.findings[0].verdict("reno") == "not tested"
    with pytest.raises(OverwriteError, match="made with linux"):
        evaluate("reno", tmp_path / "out", clauses=["5.1.3"], paths=1, search=0)


@pytest.mark.parametrize("name", ["harm-existing", "latecomer-late", "frames-call"])
def test_runs_one_by_one_have_the_values_of_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Real packets are measured as the simulator's: here it runs in the kernel's place."""
    monkeypatch.setattr(real, "run_each", lambda experiments, **_: run_each(experiments))
    [clause] = choose([name], {})
    [one] = clause.measures
    scenario, algorithms = Scenario(one.scenario), ["bbr", "cubic", "reno"]
    its = bench.Bench(tmp_path)
    series = needs_series(one.scenario)
    swept = its.run(scenario.design(algorithms, 1), one.scenario, scenario.grid, series=series)
    paths = scenario.first(swept.runs.height // 3)
    found = real.measure(its, scenario, paths, algorithms)
    expected = values(swept, one.kind).drop("run").sort("path", "cc")
    same = values(found, one.kind).drop("run").sort("path", "cc")
    assert_frame_equal(same, expected, check_dtypes=False)


def test_an_algorithm_that_fails_in_the_search_has_no_evidence_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Worst:
        raise bench.FailedRunError("it raised ArithmeticError: no window")

    monkeypatch.setattr(Search, "worst", fail)
    found = evaluate("reno", tmp_path / "out", clauses=["loss-own"], paths=29, search=1)
    assert [one.verdict("reno") for one in found.evidence] == ["not tested"]
    [breach] = Gate(share={"loss-own": 1.0}).broken(found)
    assert "because it raised ArithmeticError" in breach.sentence


@pytest.mark.parametrize("disturbed", ["bbr", "cubic", "reno"])
def test_an_algorithm_whose_runs_are_all_disturbed_is_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disturbed: str
) -> None:
    def runs(experiments: list[Experiment], **_: Any) -> list[Result]:
        found = zip(experiments, run_each(experiments), strict=True)
        return [
            replace(result, meta=result.meta | {"invalid": {str(result.seeds[0]): ["late"]}})
            if experiment.flows[0].cc == disturbed
            else result
            for experiment, result in found
        ]

    monkeypatch.setattr(real, "run_each", runs)
    monkeypatch.setattr(evaluation, "run_all", lambda *_, **__: [])
    asked = ["delay-datacentre", "loss-aqm"]
    found = evaluate("bbr", tmp_path / "out", clauses=asked, paths=1, backend="linux")
    text = (tmp_path / "out/dossier.md").read_text()
    for one in found.evidence:
        assert disturbed not in one.shares
        assert one.verdict(disturbed) == "not tested"
        assert ("disturbed all runs" in one.failure) == (disturbed == "bbr")
    assert ("disturbed all runs" in text) == (disturbed == "bbr")


def test_an_algorithm_of_a_quic_stack_is_evaluated_over_quic(tmp_path: Path) -> None:
    dossier = evaluate(
        "quinn:cubic", tmp_path, clauses=["retransmitted-constrained"], paths=2, search=1
    )
    [finding] = dossier.findings
    assert not any(one.failure for one in finding.evidence)
    file = next((tmp_path / "scenarios").glob("retransmitted-*.toml"))
    [worst] = tomllib.loads(file.read_text())["flow"]
    assert (worst["cc"], worst["transport"]) == ("quinn:cubic", "quic")
    assert heading(dossier).startswith("quinn's CUBIC beside Reno and CUBIC")
    titles = [column.title for column in dossier.table().columns]
    assert titles[1:] == ["quinn's CUBIC", "Reno", "CUBIC", "Beside CUBIC"]


def test_references_are_standards_track_algorithms() -> None:
    assert REFERENCES == ("reno", "cubic")  # RFC 5681, RFC 9438


def test_paths_with_queue_management_are_counted_by_the_aqm_and_ecn(tmp_path: Path) -> None:
    of = evaluate("prague", tmp_path / "prague", clauses=["7.1"], paths=6, search=0)
    for one in of.evidence:
        counted = one.by_setting("link.bottleneck.aqm").values()
        assert sum(its["prague"].paths for its in counted) == one.shares["prague"].paths
    text = (of.folder / "dossier.md").read_text()
    assert "## By the queue management and ECN" in text
    assert "Prague's packets are ECT(1), with accurate feedback, on every path" in text
    said = json.loads((of.folder / "dossier.json").read_text())
    (measure, *_) = said["clauses"][0]["measures"]
    assert set(measure["by_setting"]) == {"aqm", "ecn"}
    assert said["method"]["engine"].startswith("0.1.0-")


def test_the_worst_fairness_has_as_many_flows_as_the_measure_needs(tmp_path: Path) -> None:
    """Jain's index of a single flow is null, which is not the worst that there can be."""
    measure = Measure(KINDS["unfairness"], "constrained", 0.2, "")
    of = evaluation.Evaluation("reno", [], bench.Bench(tmp_path), 8, "simulator")
    evidence = of.evidence(measure)
    assert evidence.every.filter(flows=1)["value"].null_count() > 0
    worst = of.with_worst(evidence, 20).worst
    assert worst is not None
    for path in (worst.worst, worst.simplest):
        assert path.settings["flow.proposed.repeat"] >= 2
        assert path.values["reno"] is not None
    known = evidence.values["value"].max()
    assert worst.worst.values["reno"] >= known  # type: ignore[operator]


@pytest.mark.parametrize("budget", [1, 19, 20])
def test_a_search_runs_as_many_paths_as_asked_and_counts_simpler_ones(
    tmp_path: Path, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    [measure] = choose(["retransmitted-constrained"], {})[0].measures
    search = Search(bench.Bench(tmp_path), measure, "reno", [])
    start = [(place, 0.2) for place in search.scenario.places(12)]
    run: list[int] = []

    def measured(settings: list[dict[str, Any]], *_: Any) -> list[dict[str, float]]:
        run.append(len(settings))
        return [{"reno": 0.3} for _ in settings]

    monkeypatch.setattr(search, "_measure", measured)
    simple = search._simple

    def searched(*arguments: Any) -> dict[str, Any]:
        assert sum(run) == budget
        return simple(*arguments)

    monkeypatch.setattr(search, "_simple", searched)
    found = search.worst(start, budget)
    assert sum(run[:-1]) > budget  # the last are the worst and the simplest, run before
    assert found.tried == 12 + sum(run[:-1])


def test_a_class_that_is_edited_during_its_evaluation_ends_it(tmp_path: Path) -> None:
    source = tmp_path / "stays.py"
    source.write_text(STAYS)

    def edit(step: str, _: float) -> None:
        assert step.startswith("own: ")
        source.write_text(STAYS + "# edited\n")

    cc, out = f"{source}:Stays", tmp_path / "out"
    with pytest.raises(DumbbellError, match="its source was changed during the evaluation"):
        evaluate(cc, out, clauses=["5.1.3"], paths=2, search=0, progress=edit)
    assert not (out / "dossier.json").exists()
    found = evaluate(cc, out, clauses=["5.1.3"], paths=2, search=0)
    assert not found.failures


@pytest.mark.parametrize(("dask", "is_watched"), [(None, True), ("tcp://nowhere:1", False)])
def test_only_runs_in_threads_are_taken_for_hanging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dask: str | None, is_watched: bool
) -> None:
    def slow(*_: Any, progress: Progress, **__: Any) -> None:
        for _step in range(2):
            progress("2 runs", 0.0)
        raise LookupError("it went on")

    monkeypatch.setattr(bench, "PATIENCE", -1.0)
    monkeypatch.setattr(bench, "run_sweep", slow)
    design = Scenario("own").design(["reno"], 1)
    its = bench.Bench(tmp_path, dask=dask)
    with pytest.raises(bench.FailedRunError if is_watched else LookupError):
        its.run(design, "own")


def test_one_starved_standard_flow_of_several_is_seen() -> None:
    runs = pl.DataFrame(
        [("a", "bbr", "reno", 1), ("b", "reno", "reno", 1)],
        schema=["run", "proposed", "existing", "seed"],
        orient="row",
    )
    rates = {"a": [30.0, 28.0, 2.0], "b": [22.0, 20.0, 20.0]}
    rows = [
        (run, f"existing-{n}", rate) for run, its in rates.items() for n, rate in enumerate(its)
    ]
    flows = pl.DataFrame(rows, schema=["run", "flow", "throughput"], orient="row")
    of = Runs.of(runs, flows, ["proposed", "existing"])
    sums = dict(KINDS["harm"].measure(of).rows())
    least = dict(KINDS["harm_least"].measure(of).rows())
    assert sums["a"] < 0.05
    assert (least["a"], least["b"]) == (pytest.approx(0.9), 0.0)
    none = Runs.of(runs, flows.with_columns(throughput=0.0), ["proposed", "existing"])
    assert KINDS["harm_least"].measure(none)["value"].to_list() == [0.0, 0.0]


def test_an_algorithm_has_strong_evidence_beside_the_other_standard_one(tmp_path: Path) -> None:
    [clause] = choose(["loss-own"], {})
    shares = {"reno": Share(0, 100), "cubic": Share(50, 100)}
    one = Evidence(clause.measures[0], pl.DataFrame(), shares, pl.DataFrame())
    of = Dossier("reno", ["reno", "cubic"], [Finding(clause, [one])], [], 100, 0, tmp_path)
    assert of.extremes() == ([one], [])
    assert replace(of, cc="cubic").extremes() == ([], [one])


def test_a_comparison_of_thousands_of_paths_has_its_p() -> None:
    assert Pair(1000, 1000).p == 1.0
    assert 0 < Pair(600, 500).p < 0.01


def test_folders_of_algorithms_are_linked_whatever_their_names(tmp_path: Path) -> None:
    names = {"quinn:cubic": "./quinn%3Acubic", "a b#c.py:Mine": "./a%20b%23c.py%3AMine"}
    write_side_by_side([Dossier(cc, [], [], [], 1, 0, tmp_path / cc) for cc in names], tmp_path)
    links = Page((tmp_path / "index.html").read_text()).links
    assert {f"{link}/index.html" for link in names.values()} <= set(links)


def test_suites_that_fail_are_errors_in_junit(tmp_path: Path) -> None:
    packed = Packed(Pack.load("tcpeval"), [], 1, {"Data center": "it hangs"})
    dossier = Dossier("bbr", ["reno"], [], [], 3, 0, tmp_path, [packed])
    write_junit(tmp_path / "junit.xml", Gate(), [(dossier, [])])
    [suite] = ElementTree.parse(tmp_path / "junit.xml").getroot()
    [case] = suite
    assert (case.get("name"), case[0].tag) == ("tcpeval: Data center", "error")
    assert case[0].get("message") == "it hangs"
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_an_interrupted_dossier_is_resumed_and_other_data_are_not(tmp_path: Path) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate("reno", tmp_path / "out", progress=interrupt, **QUICK)
    assert not (tmp_path / "out/dossier.json").exists()
    with pytest.raises(OverwriteError, match="holds a dossier on reno"):
        evaluate("bbr", tmp_path / "out", **QUICK)
    evaluate("reno", tmp_path / "out", **QUICK)
    (tmp_path / "mine/data").mkdir(parents=True)
    with pytest.raises(OverwriteError, match="is no dossier"):
        evaluate("reno", tmp_path / "mine", **QUICK)


def test_a_dossier_that_is_a_list_is_refused(tmp_path: Path) -> None:
    (tmp_path / "dossier.json").write_text("[]")
    with pytest.raises(OverwriteError, match="nothing that can be read"):
        evaluate("reno", tmp_path, **QUICK)


def test_a_page_is_not_overwritten_by_one_of_several_algorithms(tmp_path: Path) -> None:
    options = ["--clauses", "retransmitted-constrained", "--paths", "1", "--search", "0"]
    evaluate("reno", tmp_path / "one", **QUICK)
    said = complaint_of("evaluate", "reno,bbr", "--out", "one", *options, cwd=tmp_path)
    assert "one: holds a dossier on reno, and a dossier needs" in said
    (tmp_path / "index.html").write_text("mine")
    said = complaint_of("evaluate", "reno,bbr", "--out", ".", *options, cwd=tmp_path)
    assert "has a page that is not of several dossiers" in said
    assert (tmp_path / "index.html").read_text() == "mine"
    for _ in range(2):
        done = dumbbell("evaluate", "reno,bbr", "--out", "both", *options, cwd=tmp_path)
        assert done.returncode == 0
    said = complaint_of("evaluate", "reno", "--out", "both", *options, cwd=tmp_path)
    assert "both: holds several dossiers" in said


def test_another_seed_has_other_paths_and_stands_in_the_command(tmp_path: Path) -> None:
    one = evaluate("reno", tmp_path / "1", **QUICK)
    other = evaluate("reno", tmp_path / "2", path_seed=2, **QUICK | {"search": 1})
    assert one.evidence[0].values["rtt"][0] != other.evidence[0].values["rtt"][0]
    assert other.method()["scenarios"][0]["seed"] == 2
    assert again(other).endswith("--paths 1 --search 1 --path-seed 2")
    assert "--path-seed" not in again(one)
    done = dumbbell(*shlex.split(again(other))[1:], cwd=tmp_path)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (["400", "bbr3"], "has 100 paths: evaluate as many, or all algorithms"),
        (["100", "bbr3x"], "no algorithm of this page and no scenario: bbr3x"),
    ],
)
def test_the_page_of_all_algorithms_refuses_other_paths_and_names(
    tmp_path: Path, rest: list[str], said: str
) -> None:
    docs = tmp_path / "docs/explanation"
    docs.mkdir(parents=True)
    (docs / "dossiers.json").write_text('{"paths": 100, "algorithms": {}}')
    script = Path(__file__).parents[2] / "scripts/pages/dossiers_page.py"
    command = [sys.executable, str(script), "docs", *rest]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().endswith(said)
