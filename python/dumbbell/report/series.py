"""Time series as a page holds them: few numbers, no peak lost, compressed.

A page draws a run from one packed text: JSON, gzip, Base64. A series that has more samples than the
page has room for is cut into intervals, and of each its least and its greatest value are kept, in
their order: what stands out in the samples stands out in the page.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from dumbbell import metrics
from dumbbell.experiment.quantities import TIME
from dumbbell.figures import line_styles
from dumbbell.figures.result import MOST_FLOWS
from dumbbell.figures.timeline import state_spans, states_in, states_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dumbbell.experiment.model import Experiment
    from dumbbell.results.result import Result

    Numbers = NDArray[np.float64]

_MOST_LINKS: Final = 6
_DIGITS: Final = 4
_EXACT: Final = 22  # the greatest power of ten that a double has exactly


def pack(content: object) -> str:
    """JSON, gzip, Base64; the same content gives the same text."""
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def lines(experiment: Experiment) -> int:
    """How many series `charts` has of a run of this experiment, at most."""
    flows = sum(flow.repeat * len(experiment.flow_paths(flow)) for flow in experiment.flows)
    return 4 * min(flows, MOST_FLOWS) + min(len(experiment.links), _MOST_LINKS)


def charts(result: Result, seed: int, most: int) -> dict[str, Any]:
    """What the page draws of one run: panels with one time axis, `most` points a series.

    These are ``end`` (s), ``flows`` (name, cc, and the stroke of each), ``panels`` (title, unit,
    ``x``: the number of its times, and a series ``y`` for each flow, subflow or link, null where
    there is none), ``times`` (lists of microseconds, each but the first the difference from the one
    before), ``every`` (how many samples an interval has, by list of times), ``states``.
    """
    run = result.of_seed(seed).by_subflow()
    names = run.flow_names[:MOST_FLOWS]
    series = run.series.filter(pl.col("flow").is_in(names))
    width = metrics.window_width(run)
    unit = f"Mbit/s in windows of {width:.3g} s"
    drawn = [
        ("Congestion window", "packets", series, "cwnd", 1.0, names),
        ("Throughput", unit, metrics.windows(run, width=width), "throughput", 1e-6, names),
        ("Round-trip time, smoothed", "ms", series, "srtt", 1e3, names),
    ]
    if series["pacing_rate"].count():
        drawn.append(("Pacing rate", "Mbit/s", series, "pacing_rate", 1e-6, names))
    links = run.links["link"].unique(maintain_order=True).to_list()
    for link in links[:_MOST_LINKS]:
        title = f"Queue of {link}" if len(links) > 1 else "Queue"
        queue = run.links.filter(pl.col("link") == link).rename({"link": "flow"})
        drawn.append((title, "kB", queue, "queue_bytes", 1e-3, [link]))
    panels, times, every = [], list[list[int]](), []
    for title, unit, table, column, scale, shown in drawn:
        t, columns, step = downsampled(*_sampled(table, column, scale, shown), most)
        steps = np.diff(t, prepend=0).astype(np.int64).tolist()
        if steps not in times:
            times.append(steps)
            every.append(step)
        panel = {
            "title": title,
            "unit": unit,
            "x": times.index(steps),
            "link": column == "queue_bytes",
        }
        panels.append(panel | {"y": [short(values) for values in columns]})
    return {
        "seed": seed,
        "end": TIME.parse(run.experiment.duration) / 1e9,
        "flows": _flows(run, names),
        "panels": panels,
        "times": times,
        "every": every,
        "states": _states(run, names),
    }


def _sampled(
    table: pl.DataFrame, column: str, scale: float, names: Sequence[str]
) -> tuple[Numbers, list[Numbers]]:
    """All times of a table, microseconds, and the values of flows or links at these times.

    Between two samples of one lie those of others; before its first and after its last is NaN.
    """
    samples = table.select(
        t=(pl.col("t") * 1e6).round(0),
        flow=pl.col("flow").cast(pl.String),
        y=pl.col(column).cast(pl.Float64) * scale,
    )
    t = samples["t"].unique().sort().to_numpy()
    columns = []
    for name in names:
        at, y = samples.filter(flow=name).select("t", "y").to_numpy().T
        none = np.full(len(t), np.nan)
        columns.append(np.interp(t, at, y, left=np.nan, right=np.nan) if len(at) else none)
    return t, columns


def downsampled(
    t: Numbers, columns: Sequence[Numbers], most: int
) -> tuple[Numbers, list[Numbers], int]:
    """At most about `most` points: of each interval the least and the greatest, in their order.

    Returns times, columns (NaN is none), and how many samples an interval has; 1 if all were kept.
    """
    every = -(-2 * len(t) // max(most, 2))
    if len(t) <= most:
        return t, list(columns), 1
    starts = np.arange(0, len(t), every)
    places = np.minimum(np.stack([starts, starts + every // 2], axis=1), len(t) - 1).ravel()
    return t[places], [_extremes(column, every) for column in columns], every


def _extremes(column: Numbers, every: int) -> Numbers:
    padded = np.full(-(-len(column) // every) * every, np.nan)
    padded[: len(column)] = column
    cut = padded.reshape(-1, every)
    none = np.isnan(cut)
    low = np.where(none, np.inf, cut).argmin(axis=1)
    high = np.where(none, -np.inf, cut).argmax(axis=1)
    order = np.sort(np.stack([low, high], axis=1), axis=1)
    return np.asarray(np.take_along_axis(cut, order, axis=1).ravel())


def short(values: Numbers) -> list[float | None]:
    """Values with four significant digits; None for what is not finite."""
    finite = np.isfinite(values)
    sizes = np.abs(np.where(finite & (values != 0), values, 1.0))
    places = np.clip(_DIGITS - 1 - np.floor(np.log10(sizes)), -_EXACT, _EXACT)
    # Such powers of ten are exact and divisions rounded right, so what comes out has few digits.
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    rounded = (np.rint(np.where(finite, values, 0.0) * up / down) / up * down).tolist()
    return [value if is_there else None for value, is_there in zip(rounded, finite, strict=True)]


def _flows(run: Result, names: Sequence[str]) -> list[dict[str, Any]]:
    algorithms = dict(run.flows.select(pl.col("flow", "cc").cast(pl.String)).iter_rows())
    lines = zip(names, line_styles([algorithms[name] for name in names]), strict=True)
    return [{"name": name, "cc": algorithms[name]} | vars(line) for name, line in lines]


def _states(run: Result, names: Sequence[str]) -> list[dict[str, Any]]:
    """The states of the flows of BBR and C4, as spans ``[begin, end, name]`` in s."""
    shown = states_in(run.internals).filter(pl.col("flow").cast(pl.String).is_in(names))
    states = []
    for (name, cc), flow in shown.group_by("flow", "cc", maintain_order=True):
        known = states_of(str(cc))
        spans = [
            [round(begin, 3), round(end, 3), known.get(state, ("", ""))[0]]
            for begin, end, state in state_spans(flow)
        ]
        states.append({"flow": str(name), "spans": spans})
    return states
