"""Writes ``explanation/linux-others.md``: the simulator beside Linux on paths that the plan lacks.

    sudo .venv/bin/python scripts/pages/linux_others_page.py measure FOLDER
    .venv/bin/python scripts/pages/linux_others_page.py docs [FOLDER]

`measure` runs every experiment with real packets, 90 minutes, and resumes. What was measured is
kept in ``linux/others.parquet``; with a FOLDER of it, that takes its place.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import arguments
import polars as pl

import dumbbell
from dumbbell import Experiment, Flow, Link, metrics
from dumbbell.checks.linux_grid import MEASURES
from dumbbell.display import Column, Table
from dumbbell.experiment.files import write_text
from dumbbell.experiment.quantities import TIME
from dumbbell.results.result import Result

_KEPT: Final = Path(__file__).parent / "linux/others.parquet"
_SIMULATED: Final = 12
"""How many seeds are simulated. Medians are of those that were measured, ranges of all."""

_VIDEO: Final = "mean rate of the video, Mbit/s"
_TOLERANCES: Final = {
    ", ".join(filter(None, (metric.title, metric.unit))): (
        metric.share,
        metric.least / metric.scale,
    )
    for metric in MEASURES.values()
} | {_VIDEO: (0.10, 0.0)}
"""By measure, how far medians may be apart: as a share of Linux's, or as a difference."""

_KEY: Final = ("family", "name", "cc")
"""What names an experiment."""


def link(rate: str = "40 Mbit/s", delay: str = "20 ms", queue: str = "1 BDP", **keys: Any) -> Link:
    """A link, the bottleneck unless it has another name."""
    return Link(**{"name": "bottleneck", "rate": rate, "delay": delay, "queue": queue} | keys)


def on(links: Link | list[Link], *flows: Flow, duration: str = "15 s", **keys: Any) -> Experiment:
    """Flows over links, which start within 20 ms."""
    links = links if isinstance(links, list) else [links]
    others = {"start_jitter": "20 ms", "duration": duration} | keys
    return Experiment(links=links, flows=list(flows), **others)


def of_stack(**options: Any) -> dict[str, Any]:
    """Options of the stack."""
    return {"stack_options": options}


def _of_each(cc: str) -> dict[str, dict[str, Experiment]]:
    """What is run with CUBIC and with BBRv1: by family and name."""
    one = Flow(cc=cc)
    path = {name: link(delay="5 ms", name=name) for name in "abc"}
    parking_lot = [
        Flow(name="long", cc=cc, path=["a", "b", "c"]),
        *(Flow(name=name, cc=cc, path=[name], rtt="30 ms") for name in path),
    ]
    ways = [link(), link(name="up")]
    down = Flow(name="down", cc=cc, path=["bottleneck"], return_path=["up"])
    up = Flow(name="upload", cc=cc, path=["up"], return_path=["bottleneck"])
    pauses = [
        *(["0 s", "40 Mbit/s"], ["3 s", "0 bit/s"], ["4 s", "40 Mbit/s"]),
        *(["7 s", "1 Mbit/s"], ["9 s", "60 Mbit/s"]),
    ]
    bits = [["0 s", "10 Mbit/s"], ["5 s", "25 Mbit/s"], ["9 s", "0 bit/s"], ["12 s", "30 Mbit/s"]]
    cross = Flow(name="cross", cc="none", transport="udp", app_rates=bits)
    tail = {"queue": "unlimited"}
    aqm = {name: link("50 Mbit/s", "15 ms", aqm=name, **tail) for name in _AQMS}
    marks = of_stack(ecn="classic")
    return {
        "kinds of path": {
            name: on(Link(name="bottleneck", template=name), one)
            for name in ("leo", "wifi", "lte", "5g", "cable")
        },
        "policer": {"policer": on(link("30 Mbit/s", "18 ms", "none", burst="60 kB"), one)},
        "AQMs": {
            name: on(at, Flow(cc=cc, repeat=3), **(marks if name in ("pie", "cake") else {}))
            for name, at in aqm.items()
        },
        "several flows": {
            "parking lot": on(list(path.values()), *parking_lot, duration="20 s"),
            "round-trip times": on(
                link("50 Mbit/s", "5 ms", "2 BDP"),
                Flow(name="near", cc=cc, rtt="20 ms", repeat=2),
                Flow(name="far", cc=cc, rtt="100 ms", repeat=2),
                duration="25 s",
            ),
            "both directions": on(ways, down, up, duration="20 s"),
            "40 flows": on(link("100 Mbit/s", queue="0.3 BDP"), Flow(cc=cc, repeat=40)),
            "beside UDP": on(link(), Flow(name="tcp", cc=cc), cross),
        },
        "applications": {
            "12 Mbit/s beside a bulk flow": on(
                link("30 Mbit/s"),
                Flow(name="limited", cc=cc, app_rate="12 Mbit/s"),
                Flow(name="greedy", cc=cc, start="2 s"),
            ),
            "pauses": on(link("30 Mbit/s", queue="0.5 BDP"), Flow(cc=cc, app_rates=pauses)),
        },
        "rates and losses": {
            "1 Mbit/s": on(link("1 Mbit/s", "40 ms", "20 packets"), one, duration="20 s"),
            "5 % lost": on(link("20 Mbit/s", "25 ms", loss=0.05), one, duration="20 s"),
            "15 % lost": on(link("20 Mbit/s", "25 ms", loss=0.15), one, duration="20 s"),
            "jitter of 8 ms": on(link("60 Mbit/s", "15 ms", jitter="8 ms"), one),
        },
        "stack": {
            "mss = 8948": on(link("300 Mbit/s", "10 ms"), one, **of_stack(mss=8948)),
            "mss = 536": on(link("20 Mbit/s", "15 ms"), one, **of_stack(mss=536)),
            "header = 40": on(link("60 Mbit/s", "12 ms", "0.7 BDP"), one, **of_stack(header=40)),
        },
    }


_AQMS: Final = ("pie", "red", "fq_pie", "cake")


def _of_one() -> dict[str, dict[str, Experiment]]:
    """What is run with one algorithm."""
    cubic = Flow(cc="cubic")
    short = link("100 Mbit/s", "15 ms", "0.2 BDP")
    lossy = link("100 Mbit/s", "15 ms", "0.2 BDP", loss=0.002)
    fast = link("100 Mbit/s", "30 ms", "0.3 BDP")
    web: dict[str, Any] = {"arrivals": "poisson(load=0.6)"}
    clicks: dict[str, Any] = {"app": "requests(think=200 ms)", "repeat": 4}
    clicks |= {"sizes": "exponential(mean=300 kB)"}
    return {
        "policer": {
            "policer": on(link("30 Mbit/s", "18 ms", "none", burst="60 kB"), Flow(cc="reno"))
        },
        "stack": {
            "pacing": on(short, cubic, **of_stack(pacing=True)),
            "tso = false": on(short, cubic, **of_stack(tso=False)),
            "delayed_ack = false": on(short, cubic, **of_stack(delayed_ack=False)),
            "sack_compression = false": on(lossy, cubic, **of_stack(sack_compression=False)),
            "receive_window = 900": on(
                link("300 Mbit/s", "60 ms"), cubic, **of_stack(receive_window=900)
            ),
            "initial_window = 40, 3 MB": on(
                fast,
                Flow(cc="cubic", bytes="3 MB"),
                duration="10 s",
                **of_stack(initial_window=40),
            ),
        },
        "applications": {
            "3 MB": on(fast, Flow(cc="bbr", bytes="3 MB"), duration="10 s"),
            "web search": on(
                link("50 Mbit/s"),
                Flow(cc="cubic", sizes="web-search", **web),
                duration="30 s",
            ),
            "transfers of 200 kB": on(
                link("50 Mbit/s"),
                Flow(cc="bbr", sizes="exponential(mean=200 kB)", **web),
                duration="30 s",
            ),
            "video beside a bulk flow": on(
                link("6 Mbit/s"),
                Flow(name="video", cc="cubic", app="video"),
                Flow(name="greedy", cc="cubic"),
                duration="30 s",
            ),
            "requests": on(link("20 Mbit/s"), Flow(cc="cubic", **clicks), duration="20 s"),
        },
        "several flows": {
            f"{count} BBRv1 beside {count} of {other}, {queue}": on(
                link("100 Mbit/s", "10 ms", queue),
                Flow(name="bbr", cc="bbr", repeat=count),
                Flow(name=other, cc=other, repeat=count),
                duration="60 s",
                start_jitter="2 s",
            )
            for count, other, queue in (
                (25, "reno", "1 BDP"),
                (25, "reno", "15 BDP"),
                (25, "cubic", "4 BDP"),
            )
        }
        | {
            f"BBRv1 beside {count} of CUBIC, {queue}": on(
                link("10 Mbit/s", "20 ms", queue),
                Flow(name="bbr", cc="bbr"),
                Flow(name="cubic", cc="cubic", repeat=count),
                duration=duration,
                start_jitter="2 s",
            )
            for count, queue, duration in ((4, "16 BDP", "120 s"), (1, "32 BDP", "240 s"))
        },
        "DCTCP, by eBPF": _dctcp(),
    }


def _dctcp() -> dict[str, Experiment]:
    """DCTCP with accurate ECN over queues that mark."""
    paths = {
        "1 flow, step at 20": ("100 Mbit/s", "5 ms", "step(threshold=20 packets)", 1),
        "2 flows, step at 20": ("100 Mbit/s", "5 ms", "step(threshold=20 packets)", 2),
        "8 flows, step at 30": ("200 Mbit/s", "3 ms", "step(threshold=30 packets)", 8),
        "2 fast flows, step at 60": ("600 Mbit/s", "2 ms", "step(threshold=60 packets)", 2),
        "6 flows, step at 5": ("50 Mbit/s", "2 ms", "step(threshold=5 packets)", 6),
        "2 flows, CoDel": ("100 Mbit/s", "10 ms", "codel(ce_threshold=1 ms)", 2),
        "2 flows, FQ-CoDel": ("100 Mbit/s", "10 ms", "fq_codel(ce_threshold=1 ms)", 2),
    }
    return {
        name: on(
            link(rate, delay, "unlimited", aqm=aqm),
            Flow(cc="dctcp", repeat=count),
            duration="12 s",
            **of_stack(ecn="accurate"),
        )
        for name, (rate, delay, aqm, count) in paths.items()
    }


@cache
def experiments() -> dict[tuple[str, str, str], Experiment]:
    """Every experiment by family, name and algorithm."""
    found = {}
    every = [(cc, _of_each(cc)) for cc in ("cubic", "bbr")] + [("", _of_one())]
    for cc, families in every:
        for family, named in families.items():
            for name, experiment in named.items():
                found[family, name, cc or experiment.flows[0].cc] = experiment
    return found


def values(result: Result) -> pl.DataFrame:
    """What is compared of a result: columns flow, measure, seed, value."""
    named = pl.col("flow").cast(pl.String).str.replace(r"-\d+$", "")
    flows = metrics.summary(result).with_columns(flow=named)
    transfers = metrics.transfer_summary(result) if len(result.transfers) else None
    by_flow = flows.group_by("flow", "seed", maintain_order=True).agg(
        pl.when(pl.col("sent") > 0).then(pl.col("goodput")).sum().alias("goodput, Mbit/s") / 1e6,
        pl.col("queue_delay_mean").mean().alias("mean queueing delay, ms") * 1e3,
        pl.col("retransmitted").sum().cast(pl.Float64).alias("retransmitted packets"),
    )
    tables = [by_flow.unpivot(index=["flow", "seed"], variable_name="measure")]
    if transfers is not None:
        median = transfers.select(
            "seed",
            flow=pl.lit(str(flows["flow"][0])),
            measure=pl.lit("median completion time, ms"),
            value=pl.col("completion_p50") * 1e3,
        )
        tables.append(median.select("flow", "seed", "measure", "value"))
    if len(result.segments):
        rates = result.segments.group_by("seed", maintain_order=True).agg(
            flow=pl.lit("video"),
            measure=pl.lit(_VIDEO),
            value=pl.col("rate").mean() / 1e6,
        )
        tables.append(rates.select("flow", "seed", "measure", "value"))
    return pl.concat(tables, how="vertical_relaxed").drop_nulls()


def measure(folder: Path) -> None:
    """Runs every experiment with real packets, except those that the folder has already."""
    os.environ["DUMBBELL_STORE"] = "off"
    for key, experiment in experiments().items():
        out = folder / _slug(key)
        if not out.exists():
            dumbbell.run(experiment, backend="linux", seeds=3, retry_invalid=3, out=out)
            sys.stdout.write(f"{out}\n")
            sys.stdout.flush()


def _slug(key: tuple[str, str, str]) -> str:
    return "-".join(key).replace(" ", "_").replace("/", "_")


def measured(folder: Path) -> pl.DataFrame:
    """The values of a folder of `measure`, with the mean lateness of the testbed's packets, us."""
    tables = []
    for key in experiments():
        if (folder / _slug(key)).exists():
            result = dumbbell.load(folder / _slug(key))
            assert isinstance(result, Result), "measure made it"
            tables.append(_named(key, in_time(result)))
    return pl.concat(tables)


def in_time(result: Result) -> pl.DataFrame:
    """The values of the runs that count, with the mean lateness of their packets, us."""
    late = {int(seed): run["late_mean_s"] * 1e6 for seed, run in result.meta["testbed"].items()}
    counted = [seed for seed in late if str(seed) not in result.meta["invalid"]]
    mean = sum(late[seed] for seed in counted) / max(len(counted), 1)
    return values(result).filter(pl.col("seed").is_in(counted)).with_columns(late=pl.lit(mean))


def _named(key: tuple[str, str, str], table: pl.DataFrame) -> pl.DataFrame:
    named = dict(zip(_KEY, key, strict=True))
    return table.select(*(pl.lit(value).alias(name) for name, value in named.items()), pl.all())


def simulated(kept: pl.DataFrame, *, late: bool = False) -> pl.DataFrame:
    """The same experiments simulated; if `late`, with the lateness of the testbed as jitter."""
    lateness = {tuple(key): late for *key, late in kept.select(*_KEY, "late").unique().iter_rows()}
    tables = []
    for key, experiment in experiments().items():
        if key not in lateness:
            continue
        run = experiment.resolve()
        if late:
            jitter = f"{2 * lateness[key]:.0f} us"
            links = [
                one.replace(jitter=jitter) if str(one.jitter).startswith("0 ") else one
                for one in run.links
            ]
            run = run.replace(links=links)
        tables.append(_named(key, values(dumbbell.run(run, seeds=_SIMULATED))))
    return pl.concat(tables)


def compared(kept: pl.DataFrame) -> pl.DataFrame:
    """A row for each value: medians and ranges of both sides, with jitter, and the verdict."""
    index = [*_KEY, "flow", "measure"]
    counted = kept.select(*_KEY, "seed").unique()

    def spread(table: pl.DataFrame, side: str) -> pl.DataFrame:
        value = pl.col("value")
        same = table.join(counted.with_columns(same=True), on=[*_KEY, "seed"], how="left")
        table = same.with_columns(pl.col("same").fill_null(value=False))
        middle = value.filter(pl.col("same")).median()
        ends = {"": middle, "_low": value.min(), "_high": value.max()}
        return table.group_by(index, maintain_order=True).agg(
            **{f"{side}{end}": expression for end, expression in ends.items()}
        )

    joined = spread(kept, "linux")
    for side, late in (("simulated", False), ("jittered", True)):
        other = spread(simulated(kept, late=late), side)
        joined = joined.join(other, on=index, maintain_order="left")
    lateness = kept.select(*_KEY, "late").unique()
    rows = joined.join(lateness, on=list(_KEY), maintain_order="left").to_dicts()
    return pl.DataFrame(rows).with_columns(
        verdict=pl.Series([_verdict(row, "simulated") for row in rows]),
        with_jitter=pl.Series([_verdict(row, "jittered") for row in rows]),
    )


def _verdict(row: dict[str, Any], side: str) -> str:
    """Whether medians are within the tolerance, else whether the ranges of the runs overlap."""
    share, least = _TOLERANCES[row["measure"]]
    if abs(row[side] - row["linux"]) <= max(share * abs(row["linux"]), least):
        return "agrees"
    overlap = row[f"{side}_low"] <= row["linux_high"] and row[f"{side}_high"] >= row["linux_low"]
    return "overlaps" if overlap else "differs"


_MARKS: Final = {"agrees": "{}", "overlaps": "*{}*", "differs": "**{}**"}


def page(found: pl.DataFrame) -> str:
    """The page."""
    parts = [_INTRODUCTION, _counts(found), _CAUSES, "## Values that differ\n", _off(found)]
    parts.append("## All values\n\n" + _LEGEND)
    for (family,), rows in found.group_by(["family"], maintain_order=True):
        parts += [f"### {str(family)[0].upper()}{str(family)[1:]}\n", _values(rows)]
    return "\n\n".join(map(str.strip, [*parts, _REPRODUCE])) + "\n"


def _counts(found: pl.DataFrame) -> str:
    rows = []
    for (measure,), values_ in found.group_by(["measure"], maintain_order=True):
        counts = [(values_["verdict"] == verdict).sum() for verdict in _MARKS]
        rows.append([str(measure), str(len(values_)), *map(str, counts)])
    names = ["compared", "values", "agree", "ranges overlap", "differ"]
    columns = [Column(name, number=at > 0) for at, name in enumerate(names)]
    return f"{Table(columns, rows).markdown()}\n"


def _off(found: pl.DataFrame) -> str:
    rows = []
    for row in found.filter(pl.col("verdict") == "differs").iter_rows(named=True):
        sides = [_range(row, side) for side in ("linux", "simulated", "jittered")]
        sides[-1] += f": {row['with_jitter']}"
        what = f"{row['family']}: {row['name']}"
        rows.append([what, _who(row), row["measure"], *sides, f"{row['late']:.0f}"])
    names = ["path", "flows", "value", "Linux", "simulated", "with jitter", "late, us"]
    columns = [Column(name, number=name == "late, us") for name in names]
    return f"{Table(columns, rows).markdown()}\n"


def _values(rows: pl.DataFrame) -> str:
    measures = [name for name in _TOLERANCES if name in rows["measure"].unique().to_list()]
    lines = []
    index = ["name", "cc", "flow"]
    for _, one in rows.group_by(index, maintain_order=True):
        by_measure = {row["measure"]: row for row in one.iter_rows(named=True)}
        first = next(iter(by_measure.values()))
        cells = []
        for name in measures:
            row = by_measure.get(name)
            text = f"{_number(row['linux'])} / {_number(row['simulated'])}" if row else ""
            cells.append(_MARKS[row["verdict"]].format(text) if row else "")
        lines.append([_path(first), _who(first), *cells])
    columns = [Column("path"), Column("flows"), *(Column(name) for name in measures)]
    return f"{Table(columns, lines).markdown()}\n"


def _path(row: dict[str, Any]) -> str:
    """The name of an experiment, with the rate and the round-trip time of its first link."""
    experiment = experiments()[row["family"], row["name"], row["cc"]]
    first = experiment.links[0]
    if first.template:
        return str(row["name"])
    rtt = "" if any(flow.rtt for flow in experiment.flows) else f", {2 * _ms(first.delay):g} ms"
    return f"{row['name']} ({first.rate}{rtt})"


def _ms(delay: str | None) -> float:
    return TIME.parse(delay or "0 s") / 1e6


def _who(row: dict[str, Any]) -> str:
    return row["cc"] if row["flow"] in ("flow", row["cc"]) else f"{row['cc']}, {row['flow']}"


def _range(row: dict[str, Any], side: str) -> str:
    low, high = row[f"{side}_low"], row[f"{side}_high"]
    return f"{_number(row[side])} ({_number(low)} to {_number(high)})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


_INTRODUCTION: Final = """# The simulator beside Linux on other paths

The cells of [the plan](linux-grid.md) have one link, tail drop or CoDel, and flows that mostly
have data. Here are 72 experiments with what the plan lacks: kinds of path, a policer, other AQMs,
flows of different round-trip times, over several links and in both directions, applications,
other settings of the stack, DCTCP. They were written down before they were run with Linux 6.18:
61 of them three times, six twice, five of 60 s or more once. A run that was [not in
time](../reference/testbed.md#whether-to-trust-a-run) was made again. (The machine also compiled
during some of them.)

Medians of the same seeds *agree* if goodput is within 3 %, delay within 10 % or 0.1 ms,
retransmissions within 25 % or 10 packets, completion times and rates of video within 10 %. If
not, the range of Linux's runs *overlaps* that of twelve simulated seeds, or the value *differs*.
To overlap is not to agree: of CUBIC over a link with jitter, Linux retransmits 23, 444 and 436
packets, and twelve simulated seeds 15 to 451. One to three runs do not show that two
distributions are the same, only that they are not far apart.
"""

_LEGEND: Final = """\
Medians, Linux / simulated. Where ranges only *overlap* they are in italics, where they **differ**
in bold.
"""

_CAUSES: Final = """## What was found

- **`delayed_ack = false`, mended.** At first the simulator had 82 Mbit/s, Linux 91. A receiver on
  a route with `quickack` acknowledges packets out of order one by one too
  (`tcp_in_quickack_mode`). The simulator's compressed these acknowledgements, so that a first
  recovery ended in a burst, and a second one followed. All tables here are of the mended receiver.
- **BBRv1's delay.** The latest acknowledgements raise its bandwidth, as in [the
  plan](linux-grid.md#cells-that-do-not-agree). Jitter of twice the mean lateness of the testbed's
  packets (*late*, in the table below) explains `pauses`. With 110 us, about twice the 99th
  percentile, `header = 40` has 3.6 to 3.8 ms, `mss = 8948` 3.8 and `mss = 536` 4.0 in three
  seeds; the least of Linux's three runs have 3.73, 3.82 and 4.28. What lifts its other runs is
  not known; a processor that stops for milliseconds does it in the simulator.
- **A policer** drops of a burst what is beyond 40 packets, so that it matters how fast a burst
  arrives. Simulated, a burst takes no time; in a capture, 10 packets take 61 us, those of one frame
  together, at the pace of this machine. That may be the cause of Reno's difference, but one pace
  does not explain both algorithms. Behind an access link of 2 Gbit/s Reno has 17.6 Mbit/s (none:
  13.9; Linux 17.8) and CUBIC 20.0 (none: 17.3; Linux 15.1); behind 3 Gbit/s they have 14.1 and
  15.7, behind 1 Gbit/s 19.4 and 20.6 (medians of twelve seeds).
- **Both directions.** In the 20 s of the table the two flows of CUBIC have 69 Mbit/s together in
  Linux, 66 simulated. In three runs of 60 s each they have 72 to 73 from 20 s on, on both sides.
- **DCTCP in FQ-CoDel** has 4 % less goodput in Linux. Why is not known.
- **BBRv1 beside many.** 25 flows of it have 90 % of the goodput beside 25 of Reno in a queue of
  1 BDP (simulated 90), 81 % beside 25 of CUBIC in 4 BDP (80) and 61 % beside 25 of Reno in 15
  BDP (61).
- **Quick acknowledgements after a gap, and what follows a late packet.** Reading Linux's source
  after these runs showed rules that the simulator lacked (`tcp_event_data_recv`,
  `tcp_try_undo_partial`). Without them BBRv1 beside 25 of CUBIC retransmitted 41,579 packets (now
  47,152; Linux 56,623), and CUBIC's flows of 100 ms beside others of 20 ms had 8.75 Mbit/s (now
  7.89; Linux 7.59).
- **CAKE's first signal** came 100 ms late, in the simulator as on the testbed, which has the same
  links. The two experiments with `cake` were run again after that was mended.
"""

_REPRODUCE: Final = """## Reproduce this page

<!-- not run: takes 90 minutes, as root, and rewrites this page -->
```sh
sudo .venv/bin/python scripts/pages/linux_others_page.py measure others # resumes
.venv/bin/python scripts/pages/linux_others_page.py docs others
.venv/bin/python scripts/pages/linux_others_page.py docs # beside the kept measurements
```
"""


def main() -> None:
    """Measures, or writes the page."""
    docs = arguments.folder(__doc__)
    if sys.argv[1] == "measure":
        return measure(Path(sys.argv[2]))
    if len(sys.argv) > 2:
        measured(Path(sys.argv[2])).write_parquet(_KEPT)
    found = compared(pl.read_parquet(_KEPT))
    write_text(docs / "explanation/linux-others.md", page(found))
    return None


if __name__ == "__main__":
    main()
