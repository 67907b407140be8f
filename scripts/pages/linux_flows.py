"""Flows measured on Linux, kept in ``linux/`` (see its README), and the simulator beside them.

Measured flows are results like the simulator's, so that the same functions measure and draw both.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import polars as pl

from dumbbell import figures
from dumbbell.engine.runner import run_all
from dumbbell.experiment.model import Experiment
from dumbbell.papers import folder_of
from dumbbell.papers.helpers import grid
from dumbbell.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from dumbbell.display import Table

ALGORITHMS: Final = ("reno", "cubic", "bbr")
KERNEL: Final = "6.18"
QUEUES: Final = (0.5, 1.0, 2.0)
"""The queues of the runs with one flow, BDP."""

TOLERANCES: Final = {
    "throughput": 0.10,
    "rtt": 0.10,
    "retransmitted": 0.25,
    "slow_start_exit": 0.10,
}
"""How far the simulator may be from the kernel, as a share of the kernel's value."""

MSS: Final = 1448
_FOLDER: Final = Path(__file__).parent / "linux"
_PAIR: Final = folder_of("staggered-start") / "pair.toml"
_SINGLE: Final = _FOLDER / "single.toml"


def measured_pair(cc: str) -> Result:
    """Three runs of the paper's scenario, 120 s; the number of a run is its seed."""
    changes = ["link.bottleneck.queue=624 kB", "duration=120 s", "seeds=3"]
    return _measured("pair", cc, _PAIR, changes)


def measured_single(cc: str, queue: float) -> Result:
    """One run of a single flow, 60 s, with a queue of `queue` BDP."""
    return _measured(f"single-{queue:g}", cc, _SINGLE, ["seeds=1"])


def _measured(scenario: str, cc: str, file: Path, changes: list[str]) -> Result:
    experiment = Experiment.load(file, overrides=[f"flow.*.cc={cc}", *changes])
    names = [name for names in experiment.flow_names() for name in names]
    flow = pl.col("flow").replace_strict(dict(enumerate(names)), return_dtype=pl.Enum(names))
    rows = _flows().filter(pl.col("scenario") == scenario, pl.col("cc") == cc)
    if rows.is_empty():
        raise ValueError(f"no flow of {cc} was measured in scenario {scenario}")
    # The last sample that all flows of a run have: a mean over nothing would be no number.
    ends = pl.col("tick").max().over("run", "flow").min().over("run")
    series = rows.filter(pl.col("tick") <= ends).select(
        seed=pl.col("run").cast(pl.UInt64),
        flow=flow,
        cc=pl.col("cc"),
        t=pl.col("tick") / 10,
        cwnd=pl.col("cwnd").cast(pl.Float32),
        ssthresh=pl.col("ssthresh").cast(pl.Float32).fill_null(float("inf")),
        srtt=(pl.col("srtt_us") / 1e6).cast(pl.Float32),
        retransmitted=pl.col("retransmitted").cast(pl.UInt64),
        delivered=pl.col("delivered").cast(pl.UInt64) * MSS,
        received=pl.col("bytes_acked"),
        ca_state=pl.col("phase"),
    )
    starts = {name: 30.0 * i for i, name in enumerate(names)}
    flows = series.group_by("seed", "flow", "cc", maintain_order=True).agg(
        start=pl.col("flow").first().cast(pl.String).replace_strict(starts),
        begin=pl.col("flow").first().cast(pl.String).replace_strict(starts),
        end=pl.col("t").last(),
        completed=pl.lit(None, pl.Float64),
        retransmitted=pl.col("retransmitted").last(),
        delivered=pl.col("delivered").last(),
        received=pl.col("received").last(),
    )
    meta = {"kernel": KERNEL, "seeds": series["seed"].unique(maintain_order=True).to_list()}
    absent = pl.DataFrame(schema={"seed": pl.UInt64})
    return Result(experiment, meta, flows, series, links=absent, internals=absent)


@cache
def _flows() -> pl.DataFrame:
    return pl.read_parquet(_FOLDER / "flows.parquet")


def simulate(seeds: int | None = None) -> dict[str, Result]:
    """Simulates the measured scenarios: ``pair-CC`` and ``single-CC-QUEUE``."""
    few = [] if seeds is None else [f"seeds={seeds}"]
    pair = ["duration=120 s", "start_jitter=5 ms", "seeds=12", *few]
    experiments = {}
    for cc in ALGORITHMS:
        flow = f"flow.*.cc={cc}"
        experiments[f"pair-{cc}"] = Experiment.load(_PAIR, overrides=[flow, *pair])
        for queue in QUEUES:
            changes = [flow, f"link.bottleneck.queue={queue:g} BDP", *few]
            experiments[f"single-{cc}-{queue:g}"] = Experiment.load(_SINGLE, overrides=changes)
    return dict(zip(experiments, run_all(list(experiments.values())), strict=True))


def compare(simulated: Mapping[str, Result]) -> pl.DataFrame:
    """All measured scenarios, flow by flow and quantity by quantity.

    Returns:
        Columns scenario, cc, flow, quantity (a key of `TOLERANCES`); linux, simulated (means over
        the measured runs and over the seeds), each with low and high; ratio (simulated over linux,
        null if linux is 0); verdict: ``"within"`` the tolerance; ``"chaotic"`` if it is not, but
        the range of the measured runs is wider than the tolerance; or ``"off"``.
    """
    rows = []
    for cc in ALGORITHMS:
        rows.append(_compared("pair", cc, simulated[f"pair-{cc}"], measured_pair(cc)))
        rows += [
            _compared(
                f"single, {q:g} BDP", cc, simulated[f"single-{cc}-{q:g}"], measured_single(cc, q)
            )
            for q in QUEUES
        ]
    return pl.concat(rows)


def per_flow(result: Result) -> pl.DataFrame:
    """The quantities of `TOLERANCES` for every seed and flow: bit/s, s, packets, packets.

    Throughput is of acknowledged data, RTT the mean of smoothed samples, and ``slow_start_exit``
    the first ``ssthresh`` of a flow that begins alone.
    """
    starts = result.flows.select("seed", "flow", "start")
    since = pl.col("t") - pl.col("start")
    left = pl.col("ssthresh").is_finite() & (pl.col("start") < 1.0)
    there = result.series.filter(pl.col("delivered") > 0).join(starts, on=["seed", "flow"])
    return there.group_by("seed", "flow", maintain_order=True).agg(
        throughput=8.0 * pl.col("delivered").last() / since.last(),
        rtt=pl.col("srtt").mean().cast(pl.Float64),
        retransmitted=pl.col("retransmitted").last().cast(pl.Float64),
        slow_start_exit=pl.col("ssthresh").filter(left).first().cast(pl.Float64),
    )


def _compared(scenario: str, cc: str, simulated: Result, measured: Result) -> pl.DataFrame:
    ours = _spread(simulated).rename({"mean": "simulated"})
    theirs = _spread(measured).rename({"mean": "linux", "low": "linux_low", "high": "linux_high"})
    both = theirs.join(ours, on=["flow", "quantity"], maintain_order="left")
    share = pl.col("quantity").replace_strict(TOLERANCES, return_dtype=pl.Float64)
    tolerance = share * pl.col("linux")
    near = (pl.col("simulated") - pl.col("linux")).abs() <= tolerance
    chaotic = pl.col("linux_high") - pl.col("linux_low") > tolerance
    verdict = pl.when(near).then(pl.lit("within")).when(chaotic).then(pl.lit("chaotic"))
    return both.select(
        pl.lit(scenario).alias("scenario"),
        pl.lit(cc).alias("cc"),
        pl.all(),
        ratio=pl.when(pl.col("linux") > 0).then(pl.col("simulated") / pl.col("linux")),
        verdict=verdict.otherwise(pl.lit("off")),
    )


def _spread(result: Result) -> pl.DataFrame:
    long = per_flow(result).unpivot(index=["seed", "flow"], variable_name="quantity").drop_nulls()
    named = long.with_columns(pl.col("flow").cast(pl.String))
    value = pl.col("value")
    return named.group_by("flow", "quantity", maintain_order=True).agg(
        mean=value.mean(), low=value.min(), high=value.max()
    )


def fidelity_table(simulated: Mapping[str, Result]) -> Table:
    """A row for every measured flow: the simulator, Linux, and the ratio of the two."""
    scale = {"throughput": 1e-6, "rtt": 1e3, "retransmitted": 1.0, "slow_start_exit": 1.0}
    compared = compare(simulated)
    rows = {}
    for group in compared.partition_by("scenario", "cc", "flow", maintain_order=True):
        scenario, cc, flow = group.select("scenario", "cc", "flow").row(0)
        cells = dict.fromkeys(scale, "—")
        for one in group.iter_rows(named=True):
            unit = scale[one["quantity"]]
            ours, theirs = one["simulated"] * unit, one["linux"] * unit
            digits = [0 if value >= 200 or value == 0 else 1 for value in (ours, theirs)]
            ratio = "" if one["ratio"] is None else f" ({one['ratio']:.2f})"
            mark = {"within": "", "chaotic": " ~", "off": " ✗"}[one["verdict"]]
            shown = f"{ours:,.{digits[0]}f} / {theirs:,.{digits[1]}f}{ratio}{mark}"
            cells[one["quantity"]] = shown
        label = figures.style_of(cc).label
        rows[", ".join((label, scenario, flow)).removesuffix(", alone")] = [*cells.values()]
    near = compared.filter(pl.col("verdict") == "within").height
    note = (
        "Simulator / Linux (ratio): means over the seeds and over the measured runs. "
        f"{near} of {compared.height} are within 10 % (25 % for retransmitted packets) "
        "of Linux. ~ is not, but Linux's own runs differ by more than that; ✗ is off."
    )
    titles = ["Throughput, Mbit/s", "Mean RTT, ms", "Retransmitted", "First ssthresh"]
    return grid("Flow", titles, rows, note)


def draw_pairs(simulated: Mapping[str, Result]) -> Figure:
    """Windows of the paper's scenario: the simulator on the left, the kernel on the right."""
    drawn, rows = figures.panels(
        len(ALGORITHMS), 2, width=figures.PAGE, height=1.75, share_x=True, share_y=True
    )
    for cc, line in zip(ALGORITHMS, rows, strict=True):
        results = {"simulator": simulated[f"pair-{cc}"], f"Linux {KERNEL}": measured_pair(cc)}
        for axes, (title, result) in zip(line, results.items(), strict=True):
            series = result.of_seed(result.seeds[0]).series
            name = pl.col("flow").cast(pl.String) + pl.lit(" flow")
            figures.windows(axes, series.with_columns(pl.col("cc").cast(pl.String), name=name))
            axes.set_title(f"{figures.style_of(cc).label}, {title}")
            axes.set_xlim(0, 120)
            axes.set_xlabel("time (s)" if line is rows[-1] else "")
        line[1].set_ylabel("")
    figures.legend(rows[0][1])
    return drawn


def draw_singles(simulated: Mapping[str, Result]) -> Figure:
    """Windows of one flow alone, three queues: the simulator over the kernel."""
    drawn, rows = figures.panels(3, 3, width=figures.PAGE, height=1.7, share_x=True)
    for cc, line in zip(ALGORITHMS, rows, strict=True):
        for queue, axes in zip(QUEUES, line, strict=True):
            result = simulated[f"single-{cc}-{queue:g}"]
            ours, theirs = result.of_seed(result.seeds[0]).series, measured_single(cc, queue).series
            axes.plot(ours["t"], ours["cwnd"], color=figures.style_of(cc).colour, linewidth=2.4)
            axes.plot(theirs["t"], theirs["cwnd"], color=figures.INK, linewidth=0.7)
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, 60)
            axes.set_title(f"{figures.style_of(cc).label}, {queue:g} BDP")
            axes.set_xlabel("time (s)" if line is rows[-1] else "")
        line[0].set_ylabel("cwnd (packets)")
    return drawn
