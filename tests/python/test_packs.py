"""Packs of `dumbbell evaluate`: the tests of published suites."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from test_report import Page
from typer.testing import CliRunner

from dumbbell import DumbbellError
from dumbbell.cli.app import app
from dumbbell.dossier import evaluate, evaluation, packs
from dumbbell.dossier.bench import Bench
from dumbbell.dossier.measures import KINDS
from dumbbell.dossier.packs import FOLDER, Pack, Packed, run_pack
from dumbbell.sweeps import drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(file.parent.name for file in FOLDER.glob("*/pack.toml"))

# draft-irtf-iccrg-tcpeval-01, table 1: round-trip times without the central link, ms.
TABLE_1 = {
    **{"1-4": 4, "1-5": 74, "1-6": 150, "2-4": 28, "2-5": 98, "2-6": 174},
    **{"3-4": 54, "3-5": 124, "3-6": 200},
}

TINY = """\
title = "A transfer"
duration = "2 s"
seeds = 2
start_jitter = "100 ms"

[[link]]
name = "link"
rate = "10 Mbit/s"

[[flow]]
name = "proposed"
cc = "cubic"
rtt = "20 ms"

[[sweep]]
"link.link.queue" = ["5 packets", "1 BDP"]
"""

TINY_PACK = """\
title = "A suite"
document = "RFC 0"
differs = ["It is shorter."]
missing = ["All the rest."]

[[test]]
section = "1"
title = "A transfer"
scenario = "tiny"
measures = ["idle", "loss"]
varied = [["shallow", "deep"]]
"""


def content_of(pack: str, scenario: str) -> dict[str, object]:
    tests = Pack.load(pack).tests
    return next(one.scenario.content for one in tests if one.scenario.name == scenario)


def some_of(pack: str, scenario: str, algorithms: list[str], folder: Path) -> Packed:
    """The results of a test with one seed."""
    whole = Pack.load(pack)
    tests = tuple(one for one in whole.tests if one.scenario.name == scenario)
    return run_pack(replace(whole, tests=tests), algorithms, Bench(folder), 1)


def value_of(packed: Packed, variant: str, kind: str, cc: str) -> float:
    [found] = [
        row.found[cc] for row in packed.rows if row.variant == variant and row.kind.name == kind
    ]
    assert found is not None
    assert found.value is not None
    return found.value


@pytest.mark.parametrize("name", NAMES)
def test_each_test_of_a_pack_names_all_points_of_its_scenario(name: str) -> None:
    pack = Pack.load(name)
    files = {file.stem for file in (FOLDER / name).glob("*.toml")} - {"pack"}
    assert {one.scenario.name for one in pack.tests} == files
    for one in pack.tests:
        points = list(one.scenario.every(["reno"]).points())
        assert len(points) == len(one.variants) == len(set(one.variants))


@pytest.mark.parametrize(
    ("scenario", "central"),
    [
        ("access-link", 2),
        ("trans-oceanic", 65),
        ("geostationary", 300),
        ("wireless-lan", 2),
        ("dial-up", 5),
        ("queue-size", 2),
    ],
)
def test_paths_of_the_tcp_suite_have_the_round_trip_times_of_table_1(
    scenario: str, central: int
) -> None:
    flows = content_of("tcpeval", scenario)["flow"]
    assert isinstance(flows, list)
    found = {flow["name"].removeprefix("proposed-"): flow["rtt"] for flow in flows}
    assert found == {pair: f"{rtt + 2 * central} ms" for pair, rtt in TABLE_1.items()}


@pytest.mark.parametrize(
    ("scenario", "reference", "ratios"),
    [
        ("variable-one", 1, {0: 1.0, 40: 2.5, 60: 0.6, 80: 1.0}),
        ("variable-two", 2, {0: 2.0, 25: 1.0, 50: 1.75, 75: 0.5, 100: 1.0}),
        ("feedback", 1, {0: 2.0, 20: 1.0, 40: 0.5, 60: 2.0}),
    ],
)
def test_capacities_follow_the_tables_of_rfc_8867(
    scenario: str, reference: float, ratios: dict[int, float]
) -> None:
    links = content_of("rmcat", scenario)["link"]
    assert isinstance(links, list)
    rates = {f"{t} s": f"{reference * ratio:g} Mbit/s" for t, ratio in ratios.items()}
    assert dict(links[0]["rates"]) == rates


@pytest.mark.slow
def test_standard_tcp_beside_itself_is_the_baseline_of_the_tcp_suite(folder: Path) -> None:
    """G and L of draft-irtf-iccrg-tcpeval-01, 6.1.3, are 1 if both camps are standard TCP."""
    packed = some_of("tcpeval", "standard-tcp", ["reno", "cubic"], folder)
    for load in ("50 % load", "100 % load"):
        assert value_of(packed, load, "harm", "reno") == 0
        assert value_of(packed, load, "cost", "reno") == 0
    # At half load there is room for both: whatever the algorithm, little is taken.
    assert abs(value_of(packed, "50 % load", "harm", "cubic")) < 0.1


@pytest.mark.slow
def test_an_access_link_carries_what_is_offered_below_its_capacity(folder: Path) -> None:
    packed = some_of("tcpeval", "access-link", ["cubic"], folder)
    for load, offered in (("60 % load", 0.6), ("85 % load", 0.85)):
        assert value_of(packed, load, "idle", "cubic") == pytest.approx(1 - offered, abs=0.08)
    assert value_of(packed, "110 % load", "idle", "cubic") < 0.02
    losses = [value_of(packed, one, "loss", "cubic") for one in packed.pack.tests[0].variants]
    assert losses == sorted(losses)


def test_flows_on_wi_fi_saturate_it_where_rfc_8869_says(folder: Path) -> None:
    """RFC 8869, 4.2.3: applications get about 20 Mbit/s, which 16 flows of 1.5 Mbit/s fill."""
    packed = some_of("rmcat", "wifi", ["cubic"], folder)
    carried = 52 * (1 - value_of(packed, "20 flows", "idle", "cubic"))
    assert 18 < carried < 28
    assert value_of(packed, "8 flows", "delay_p95", "cubic") < 0.05
    assert value_of(packed, "20 flows", "delay_p95", "cubic") > 0.1


def test_scream_queues_less_than_reno_that_carries_the_same_media(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 8298, section 4.1: SCReAM limits the queueing delay; Reno fills the queue of 300 ms."""
    # Runs with frames and runs without are kept together, whichever comes first.
    monkeypatch.setattr(drive, "_MOST_IN_CHUNK", 1)
    packed = some_of("rmcat", "variable-one", ["scream", "reno"], folder)
    for delay in ("50 ms", "100 ms"):
        reno = value_of(packed, delay, "delay_p95", "reno")
        assert value_of(packed, delay, "delay_p95", "scream") < reno
        assert reno > 0.25
        assert value_of(packed, delay, "frames", "scream") > 0
    [_, table] = packed.tables(["scream", "reno"])[0]
    assert "p95 delay of frames" in table.markdown()


def test_an_algorithm_for_media_has_packs_only(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match=r"controls media; .* give the pack rmcat alone"):
        evaluate("gcc", tmp_path / "out", packs=["rmcat"])
    assert not (tmp_path / "out").exists()
    evaluation.check_algorithm("gcc")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    suite = tmp_path / "packs/tiny"
    suite.mkdir(parents=True)
    (suite / "pack.toml").write_text(TINY_PACK)
    (suite / "tiny.toml").write_text(TINY)
    monkeypatch.setattr(packs, "FOLDER", tmp_path / "packs")
    return tmp_path / "out"


def test_a_pack_stands_in_the_dossier_beside_the_clauses(tiny: Path) -> None:
    found = evaluate("bbr", tiny, clauses=["5.1.3"], paths=2, search=0, packs=["tiny"])
    [packed] = found.packs
    assert [row.variant for row in packed.rows] == ["shallow", "shallow", "deep", "deep"]
    assert value_of(packed, "shallow", "loss", "bbr") > value_of(packed, "deep", "loss", "bbr")
    said = json.loads((tiny / "dossier.json").read_text())["packs"][0]
    assert said["rows"][0]["algorithms"].keys() == {"bbr", "reno", "cubic"}
    text = (tiny / "index.html").read_text()
    assert Page(text).open == []
    assert "It is shorter." in text
    assert "All the rest." in text
    assert "## A suite (RFC 0)" in (tiny / "dossier.md").read_text()


def test_a_pack_by_itself_runs_no_clauses(tiny: Path) -> None:
    arguments = ["evaluate", "reno", "--out", str(tiny), "--pack", "tiny", "--quick"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0
    assert "Reno beside CUBIC: RFC 0" in done.output
    assert json.loads((tiny / "dossier.json").read_text())["clauses"] == []


def test_an_unknown_pack_is_told(tmp_path: Path) -> None:
    with pytest.raises(DumbbellError, match='did you mean "tcpeval"') as error:
        evaluate("bbr", tmp_path / "out", packs=["tcpevaI"])
    assert "choose from rmcat, tcpeval" in str(error.value)
    assert not (tmp_path / "out").exists()


def test_no_interval_of_a_pack_is_beyond_what_its_measure_can_be() -> None:
    point = pl.DataFrame({"cc": ["reno"] * 3, "value": [0.0, 0.0, 0.06]})
    whole, part = (
        packs._by_algorithm(point, KINDS[name].column)["reno"] for name in ("cost", "loss")
    )
    assert whole is not None
    assert part is not None
    assert whole.low is not None
    assert whole.low < 0
    assert part.low == 0
