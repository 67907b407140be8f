"""The laboratory's tables have the numbers of `dumbbell run` and `dumbbell compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from lab_in_browser import MARKS, TWO, choose, click, numbers, open_lab, table, text

from dumbbell import Experiment, metrics, run
from dumbbell.display import alike
from dumbbell.engine.compare import achieved
from dumbbell.metrics.intervals import Estimate
from dumbbell.results.summary import Summary, summary_tables

if TYPE_CHECKING:
    from pathlib import Path

    from browser import Browser

    from dumbbell import Result

pytestmark = MARKS

LINK = """\
[[link]]
name = "bottleneck"
rate = "10 Mbit/s"
delay = "10 ms"
queue = "20 packets"
"""

MANY = f"""\
duration = "3 s"
seeds = 3
start_jitter = "500 ms"

{LINK}
[[flow]]
name = "some"
cc = "reno"
repeat = 20

[[flow]]
name = "other"
cc = "bbr"
repeat = 3
"""

LOSSY = f"""\
duration = "3 s"
{LINK}[[flow]]
name = "call"
cc = "none"
transport = "udp"
app_rate = "12 Mbit/s"
[[flow]]
name = "download"
cc = "reno"
"""


def flows_of(result: Result) -> dict[str, dict[str, Any]]:
    """The table of flows that `dumbbell run` prints: by row and heading."""
    [shown, *_] = summary_tables(result, Summary.of(result), str)
    heads = [column.heading for column in shown.columns]
    rows = [dict(zip(heads, row, strict=True)) for row in shown.rows]
    scales = {column.heading: column.scale for column in shown.columns}
    return {
        str(row[heads[0]]): {
            head: cell.scaled(scales[head]) if isinstance(cell, Estimate) else cell
            for head, cell in row.items()
        }
        for row in rows
    }


def assert_same_flows(browser: Browser, result: Result) -> None:
    """That the page's table of flows has the estimates of the command's."""
    here = flows_of(result)
    for row, there in table(browser, "[aria-label=Flows]").items():
        [name] = [name for name in here if row.startswith(f"{name} ")]
        for head, cell in there.items():
            estimate = here[name][head]
            value, *half = numbers(cell)
            if not isinstance(estimate, Estimate) or estimate.value is None:
                assert value is None, (name, head)
                continue
            assert value == pytest.approx(estimate.value, rel=0.01, abs=0.051), (name, head)
            if half and estimate.high is not None:
                width = estimate.high - estimate.value
                assert half == [pytest.approx(width, rel=0.02, abs=0.051)], (name, head)


def test_intervals_of_many_flows_are_over_seeds_as_the_command_s(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, MANY)
    rows = table(browser, "[aria-label=Flows]")
    assert [row.rpartition(" ")[0] for row in rows] == ["some-1 to some-20", "other-1 to other-3"]
    assert "±" in next(iter(rows.values()))["Throughput (Mbit/s)"]
    assert_same_flows(browser, run(Experiment.parse(MANY)))


def test_over_udp_packets_are_lost_and_none_is_retransmitted(
    browser: Browser, folder: Path
) -> None:
    open_lab(browser, folder, LOSSY)
    rows = {row.split()[0]: cells for row, cells in table(browser, "[aria-label=Flows]").items()}
    assert rows["call"]["Retransmitted (%)"] == "\N{EN DASH}"
    assert rows["download"]["Lost (%)"] == "\N{EN DASH}"
    assert (numbers(rows["call"]["Lost (%)"])[0] or 0) > 1
    assert_same_flows(browser, run(Experiment.parse(LOSSY)))


def test_small_numbers_have_the_decimals_of_the_command_s(browser: Browser, folder: Path) -> None:
    toml = LOSSY.replace("12 Mbit/s", "10 kbit/s").replace('"10 Mbit/s"', '"20 Mbit/s"')
    open_lab(browser, folder, toml)
    rates = metrics.summary(run(Experiment.parse(toml)))["throughput"] / 1e6
    rows = table(browser, "[aria-label=Flows]").values()
    shown = [cells["Throughput (Mbit/s)"] for cells in rows]
    assert shown == list(map(alike(rates), rates))
    assert "0.01" in shown


def test_flows_that_ended_in_the_warm_up_do_not_count_together(
    browser: Browser, folder: Path
) -> None:
    toml = TWO.replace('"6 s"', '"6 s"\nwarmup = "4 s"', 1)
    toml = toml.replace('"bbr3"', '"bbr3"\nbytes = "50 kB"')
    open_lab(browser, folder, toml)
    together = metrics.group_throughput(metrics.summary(run(Experiment.parse(toml))))
    said = text(browser, ".tables > p").removeprefix("All flows together ").split()[0]
    assert float(said) == pytest.approx(together["throughput"][0] / 1e6, abs=0.06)


def test_a_ranking_has_the_rates_of_groups_as_the_command_s(browser: Browser, folder: Path) -> None:
    early = '[[flow]]\nname = "early"\ncc = "reno"\nstop = "2 s"\n'
    late = '[[flow]]\nname = "late"\ncc = "reno"\nstart = "3 s"\n'
    toml = TWO.replace('start = "1 s"', 'stop = "5 s"') + early + late
    open_lab(browser, folder, toml)
    click(browser, "Compare")
    click(browser, "Algorithms on this path")
    choose(browser, "Flow", "1")
    browser.wait_for("document.querySelectorAll('.compare tbody tr').length === 8")
    result = run(Experiment.parse(toml))
    is_own = pl.col("flow").cast(pl.String) == "two"
    own, left = (achieved(result, one).row(0, named=True) for one in (is_own, ~is_own))
    there = table(browser, ".compare")["CUBIC"]
    for head, rate in (("Throughput", own["throughput"]), ("Throughput left", left["throughput"])):
        assert numbers(there[f"{head} (Mbit/s)"])[0] == pytest.approx(rate / 1e6, abs=0.06)
    share = numbers(there["Retransmitted (%)"])[0]
    assert share == pytest.approx(100 * own["retransmission_share"], abs=0.06)
