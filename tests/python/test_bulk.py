"""Flows of SABUL, RBUDP and Tsunami, from files and from Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from command import dumbbell as command

import dumbbell
from dumbbell import Experiment, ExperimentError, Flow, Link, Result
from dumbbell.lab.link import fragment_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "bulk.toml"
LINK = Link(name="bottleneck", rate="20 Mbit/s", delay="10 ms")
PROTOCOLS = {"sabul": "initial_rate", "rbudp": "rate", "tsunami": "target_rate"}


def bulk(protocol: str, rate: str = "15 Mbit/s", **keys: Any) -> Flow:
    options: dict[str, bool | int | str] = {PROTOCOLS[protocol]: rate}
    return Flow(cc="none", transport=protocol, transport_options=options, **keys)


def run(*flows: Flow, **keys: Any) -> Result:
    given: dict[str, Any] = {"duration": "6 s", "links": [LINK], "flows": list(flows)}
    return dumbbell.run(Experiment(**given | keys))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_bulk_flow_has_the_columns_of_a_tcp_flow(protocol: str) -> None:
    result = run(bulk(protocol, name="bulk", bytes="2 MB"), Flow(cc="cubic", name="tcp"))
    of_bulk = result.flows.filter(flow="bulk")
    assert of_bulk["delivered"][0] == of_bulk["received"][0] == 2_000_000
    assert of_bulk["completed"][0] < 6
    assert set(result.series["flow"].unique()) == {"bulk", "tcp"}
    assert result.series.filter(flow="bulk")["pacing_rate"].drop_nans().len() > 0


def test_rbudp_beside_cubic_takes_the_rate_that_it_is_given() -> None:
    beside = run(bulk("rbudp", name="bulk"), Flow(cc="cubic", name="tcp"), duration="20 s")
    rates = dict(beside.summary().select("flow", "throughput").iter_rows())
    # 1460 * 8 / 778 us: whole microseconds of 15 Mbit/s.
    assert rates["bulk"] > 0.97 * 1460 * 8 / 778e-6
    assert rates["tcp"] < 20e6 - rates["bulk"]


def test_what_a_bulk_flow_cannot_have_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match='"rbudp" sets its rate itself; write "none"'):
        run(Flow(cc="cubic", transport="rbudp"))
    with pytest.raises(ExperimentError, match='no option of tsunami is called "rate"'):
        run(Flow(cc="none", transport="tsunami", transport_options={"rate": "1 Mbit/s"}))
    explained = command("explain", "tsunami.error_rate", cwd=tmp_path)
    assert "Default: 7500." in explained.stdout


def test_the_command_line_runs_the_example(tmp_path: Path) -> None:
    short = ("--set", "duration=12 s", "--set", "seeds=1", "--set", "flow.bulk.transport=tsunami")
    done = command("run", str(EXAMPLE), *short, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^bulk +none", done.stdout, flags=re.M)


def test_the_laboratory_has_no_link_for_a_bulk_flow() -> None:
    experiment = Experiment(duration="1 s", links=[LINK], flows=[bulk("sabul")])
    assert not fragment_of(experiment)
