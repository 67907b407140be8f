"""Results made by hand, of which every metric can be told without a computer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from dumbbell import Experiment, Flow, Link, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    Schema = dict[str, pl.DataType | type[pl.DataType]]
    Curve = Callable[[float], float]


def zero(_t: float) -> float:
    """Nothing at any time."""
    return 0.0


def result(
    delivered: dict[str, Curve],
    *,
    starts: dict[str, float] | None = None,
    cwnd: dict[str, Curve] | None = None,
    duration: int = 10,
    step: float = 0.1,
) -> Result:
    """A result of seed 1 over a link of 8 Mbit/s.

    Args:
        delivered: For every flow the bytes delivered by a time.
        starts: When flows start, s; 0 for those not named.
        cwnd: For every flow the window at a time, packets.
        duration: How long the run lasts, s.
        step: The sample interval, s.
    """
    begins = {name: (starts or {}).get(name, 0.0) for name in delivered}
    names = pl.Enum(list(delivered))

    def total(name: str, t: float) -> int:
        return round(delivered[name](t)) if t >= begins[name] else 0

    def window(name: str, t: float) -> float:
        return (cwnd or {}).get(name, zero)(t)

    samples = [round(k * step, 9) for k in range(round(duration / step) + 1)]
    at = [(name, t) for t in samples for name in delivered if t >= begins[name]]
    flow: Schema = {"seed": pl.UInt64, "flow": names, "cc": pl.Enum(["reno"])}
    series = pl.DataFrame(
        [
            (1, name, "reno", t, window(name, t), float("inf"))
            + (total(name, t), total(name, t) // 2)
            for name, t in at
        ],
        schema=flow
        | {"t": pl.Float64, "cwnd": pl.Float32, "ssthresh": pl.Float32}
        | {"delivered": pl.UInt64, "received": pl.UInt64},
        orient="row",
    )
    flows = pl.DataFrame(
        [
            (1, name, "reno", begins[name], begins[name], float(duration), None)
            + (100, 25, total(name, duration), total(name, duration) // 2, 0.004, 0.01)
            for name in delivered
        ],
        schema=flow
        | dict.fromkeys(("start", "begin", "end", "completed"), pl.Float64)
        | dict.fromkeys(("sent", "retransmitted", "delivered", "received"), pl.UInt64)
        | dict.fromkeys(("queue_delay_mean", "queue_delay_p95"), pl.Float64),
        orient="row",
    )
    link: Schema = {"seed": pl.UInt64, "link": pl.Enum(["bottleneck"]), "t": pl.Float64}
    links = pl.DataFrame(
        [
            (1, "bottleneck", t, 1500, sum(total(name, t) for name in delivered), int(t), 0)
            for t in samples
        ],
        schema=link | dict.fromkeys(("queue_bytes", "sent_bytes", "dropped", "lost"), pl.UInt64),
        orient="row",
    )
    internals = pl.DataFrame(schema=flow | {"t": pl.Float64, "name": pl.String})
    experiment = Experiment(
        links=[Link(name="bottleneck", rate="8 Mbit/s", delay="5 ms")],
        flows=[Flow(name=name, cc="reno", start=f"{begins[name]} s") for name in delivered],
        duration=f"{duration} s",
        sample=f"{step} s",
    )
    meta = {"version": "0", "seeds": [1], "wall_s": 0.0, "data_packets": 100, "events": 1}
    return Result(experiment, meta, flows, series, links, internals)
