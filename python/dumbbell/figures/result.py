"""Figures of a result, by name: what ``dumbbell plot`` draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from dumbbell import figures, metrics
from dumbbell.errors import DumbbellError, unknown
from dumbbell.figures import FAINT, INK
from dumbbell.figures.timeline import legend_columns, states_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from dumbbell.metrics import SampledRuns

    Panel = tuple[str, str | None]
    """A kind of panel, and the link, or the internal, that it shows if it is one of such."""

FIGURES: Final = {
    "overview": "windows, throughputs, states, round-trips and queues, one above the other",
    "windows": "congestion windows over time",
    "throughputs": "throughputs in windows of 1 s, or a 50th of a shorter run",
    "states": "the states of the flows of BBR and C4",
    "round-trips": "smoothed round-trip times",
    "queues": "the bytes in the queue of every link",
    "internals": "what algorithms show of themselves; the name of one internal draws it alone",
    "frame-delays": "of flows of media, the delay of each frame, below the throughputs",
    "video": "of video clients, the rates of segments and the buffers, below the throughputs",
    "completion-times": "of flows of many transfers, the share of transfers that took no longer",
    "links": "the capacity of every link behind the throughput in it, above its queueing delay",
}
"""The figures of a result: name and what it shows."""

MOST_FLOWS: Final = 12  # more flows than this cannot be told apart: the first ones are drawn
_OVERVIEW: Final = ("windows", "throughputs", "states", "round-trips", "queues")


def draw(
    result: SampledRuns,
    name: str = "overview",
    *,
    width: float = figures.PAGE,
    seed: int | None = None,
    beside: Mapping[str, SampledRuns] | None = None,
    label: str = "",
    make: Callable[..., Figure] = Figure,
) -> Figure:
    """Draws a figure of one seed of a result, the first valid one if not given.

    The panels share their time axis. If all seeds are invalid, the figure says so; if there are
    several, it says which it shows. Another result of the same flows, with its name in the legend,
    may lie `beside` it: wide and pale, behind its lines; if it has other algorithms, the legend has
    its flows. It has the same seed; if that is not valid there, the legend names the other one.
    Completion times may be beside those of several results; `label` then names those of
    this one. `make` makes an empty figure.
    """
    run, rows = _choose(result, name, seed)
    others = dict(_choose_beside(run, *one) for one in (beside or {}).items())
    if len(others) > 1 and name != "completion-times":
        problem = f"{', '.join(others)} are several results; leave all but one out"
        raise DumbbellError(f"beside: {problem}, or draw completion-times")
    heights = [_height(run, part, width, alone=len(rows) == 1) for part, _ in rows]
    figure, grid = figures.panels(
        len(rows),
        width=width,
        height=sum(heights) / len(heights),
        share_x=True,
        row_heights=heights,
        make=make,
    )
    _draw_panels([axes for [axes] in grid], rows, result, {label: run} | others)
    return figure


def plot(
    result: SampledRuns, kind: str, *, axes: Axes | None = None, seed: int | None = None
) -> Axes | list[Axes]:
    """Draws a figure of a result on some axes, or on those of a new figure; see `Result.plot`."""
    if axes is None:
        make = figures.pyplot_figure()
        with figures.styled():
            panels = draw(result, kind, seed=seed, make=make).axes
        return panels[0] if len(panels) == 1 else panels
    run, rows = _choose(result, kind, seed)
    if len(rows) > 1:
        problem = f'"{kind}" has {len(rows)} panels, and ax is one'
        raise DumbbellError(f"{problem}; leave ax out, or draw one: {', '.join(_OVERVIEW)}")
    with figures.styled():
        _draw_panels([axes], rows, result, {"": run})
    return axes


def _choose(
    result: SampledRuns, name: str, seed: int | None
) -> tuple[SampledRuns, Sequence[Panel]]:
    """The run to draw, and the panels of a figure from top to bottom."""
    internals = result.internals["name"].unique(maintain_order=True).cast(pl.String).to_list()
    if name not in FIGURES and name not in internals:
        raise DumbbellError(unknown("figure", name, [*FIGURES, *internals]))
    if seed is not None and seed not in result.seeds:
        known = ", ".join(map(str, result.seeds[:20])) + (", ..." if len(result.seeds) > 20 else "")
        raise DumbbellError(f"there is no seed {seed}; choose from {known}")
    run = result.of_seed(result.valid().seeds[0] if seed is None else seed)
    links = run.links["link"].unique(maintain_order=True).to_list()
    limited = {link.name for link in run.experiment.links if link.rate or link.rates or link.trace}
    rows: list[Panel] = []
    for part in _OVERVIEW if name == "overview" else (name,):
        if part == "queues":
            rows += [(part, link) for link in links]
        elif part == "links":
            rows += [(kind, link) for link in links if link in limited for kind in _OF_LINK]
        elif part == "completion-times":
            rows += [(part, None)] if run.transfers.width else []
        elif part == "video":
            panels = ("throughputs", "bitrates", "buffers")
            rows += [(panel, None) for panel in panels] if run.segments.width else []
        elif part == "frame-delays":
            rows += [("throughputs", None), (part, None)] if run.frames.width else []
        elif part == "internals":
            all_states = run.internals.filter(pl.col("name") == "state")
            has_others = states_in(all_states).height < all_states.height
            rows += [("internal", one) for one in internals if one != "state" or has_others]
        elif part not in FIGURES:
            rows.append(("internal", part))
        elif part != "states" or _states(run).height:
            rows.append((part, None))
    if not rows:
        lacks = {
            "states": "flow of this result shows states, only those of BBR and C4 do",
            "internals": "algorithm of this result shows any; `internals = true` records them",
            "video": "flow of this result has a video client",
            "frame-delays": "flow of this result has media",
            "completion-times": "flow of this result consists of many transfers",
        }
        why = lacks.get(name, "link of this result has a rate, a queue and samples")
        raise DumbbellError(f'figure "{name}": no {why}')
    return run, rows


def _choose_beside(run: SampledRuns, label: str, beside: SampledRuns) -> tuple[str, SampledRuns]:
    """The run of another result that is drawn behind a run, and what it is called."""
    if beside.flow_names != run.flow_names:
        theirs, ours = (", ".join(one.flow_names[:MOST_FLOWS]) for one in (beside, run))
        problem = f"has the flows {theirs}, and the other result has {ours}"
        raise DumbbellError(f"beside: {problem}; draw results of the same flows")
    [seed], valid = run.seeds, beside.valid().seeds
    if seed in valid:
        return label, beside.of_seed(seed)
    return f"{label}, seed {valid[0]}", beside.of_seed(valid[0])


_OF_LINK: Final = ("capacity", "delay")  # the panels of each link in the figure of links


def _height(run: SampledRuns, part: str, width: float, *, alone: bool) -> float:
    """Height of a panel, inches; states have a band for each flow, and lines of a legend."""
    if part != "states":
        return 1.1 if part == "delay" else 2.1 if alone else 1.2 if part == "internal" else 1.7
    bands = _states(run)
    count = bands["state"].n_unique()
    lines = -(-count // legend_columns(count, width))
    return 0.3 + 0.14 * bands["flow"].n_unique() + 0.17 * (lines - 1) + (0.35 if alone else 0.0)


def _draw_panels(
    panels: Sequence[Axes],
    rows: Sequence[Panel],
    result: SampledRuns,
    runs: Mapping[str, SampledRuns],
) -> None:
    """Draws each panel, the legend above the first, the seed below the last.

    The first of `runs` is of the result, the others are beside it.
    """
    (_, run), *others = runs.items()
    several_links = run.links["link"].n_unique() > 1
    for axes, (part, link) in zip(panels, rows, strict=True):
        if part == "completion-times":
            _draw_completion_times(axes, runs)
            continue
        for label, other in others:
            if part != "states":
                _draw_panel(axes, other, part, link)
                _pale(axes, label, each=_algorithms(other) != _algorithms(run))
        _draw_panel(axes, run, part, link)
        axes.set_xlabel("")
        _shade_warmup(axes, run, named=axes is panels[0])
        if link is not None and several_links and part != "internal":
            axes.set_ylabel(f"{figures.named(link)}\n{axes.get_ylabel()}")
    first, last = panels[0], panels[-1]
    if rows[0][0] != "completion-times":
        first.set_xlim(left=0)
        last.set_xlabel("time (s)")
    if rows[0][0] not in {"states", "queues"}:
        figures.legend(first, of=panels)
    if len(result.seeds) > 1:
        count, seed = len(result.seeds), run.seeds[0]
        of = f"of {count}" if result.seeds == [*range(1, count + 1)] else f"(of {count} seeds)"
        last.set_xlabel(f"{last.get_xlabel()}, seed {seed} {of}")
    if run.invalid_runs:
        first.annotate(
            "invalid",
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            color="#d55e00",
            fontweight="bold",
        )


def _shade_warmup(axes: Axes, run: SampledRuns, *, named: bool) -> None:
    """Shades the time that does not count, and says what it is."""
    warmup = float(run.warmups["since"].item())
    if warmup:
        axes.axvspan(0, warmup, facecolor=FAINT, alpha=0.2, linewidth=0, zorder=0)
    if warmup and named:
        where = axes.get_xaxis_transform()
        axes.text(warmup / 2, 0.97, "warm-up", transform=where, size="small", ha="center", va="top")


def _algorithms(run: SampledRuns) -> list[tuple[str, str]]:
    """The flows and their algorithms."""
    return run.flows.select(pl.col("flow", "cc").cast(pl.String)).unique().sort("flow").rows()


def _pale(axes: Axes, label: str, *, each: bool) -> None:
    """Makes lines wide and pale, with an entry in the legend for `each`, or one for all of them."""
    label = figures.named(label)
    for line in axes.lines:
        own = str(line.get_label())
        shown = f"{label}: {own}" if each and not own.startswith("_") else "_nolegend_"
        line.set(alpha=0.3, linewidth=3.0, linestyle="-", marker="", label=shown)
    if not each:
        axes.plot([], [], color=INK, alpha=0.3, linewidth=3.0, label=label)


def _draw_panel(axes: Axes, run: SampledRuns, part: str, link: str | None) -> None:
    if part == "windows":
        figures.windows(axes, _flows(run, run.series))
    elif part == "throughputs":
        _draw_throughputs(axes, run)
    elif part == "states":
        figures.states(axes, _states(run))
    elif part == "round-trips":
        figures.flows(axes, _flows(run, run.series), "srtt", scale=1e3)
        axes.set_ylabel("RTT (ms)")
    elif part == "internal":
        _draw_internal(axes, run, str(link))
    elif part == "frame-delays":
        _draw_frame_delays(axes, run)
    elif part in {"bitrates", "buffers"}:
        _draw_video(axes, run, part)
    elif part == "queues":
        t, queue = run.links.filter(link=link).select("t", "queue_bytes").to_numpy().T
        axes.plot(t, queue / 1e3, color=FAINT, linewidth=0.7)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("queue (kB)")
    elif part == "delay":
        t, drain = metrics.drain_times(run).filter(link=link).select("t", "drain").to_numpy().T
        axes.fill_between(t, drain * 1e3, color=FAINT, linewidth=0)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("queueing\ndelay (ms)")
    else:
        _draw_capacity(axes, run, link)
        whole = run.by_subflow()
        _draw_throughputs(axes, whole, _flows_of_link(whole, link)[:MOST_FLOWS])


def _draw_capacity(axes: Axes, run: SampledRuns, link: str | None) -> None:
    """Draws the capacity of a link as an area, and what it sent as a dotted line."""
    rates = metrics.link_windows(run, width=metrics.window_width(run)).filter(link=link)
    steps = pl.concat([rates.head(1).with_columns(t="begin"), rates])
    t, capacity, sent = steps.select("t", pl.col("capacity", "sent") / 1e6).to_numpy().T
    axes.fill_between(t, capacity, color=FAINT, alpha=0.25, linewidth=0, label="capacity")
    axes.plot(t, sent, color=INK, linewidth=0.8, linestyle=(0, (1, 1.2)), label="sent by the link")


def _draw_completion_times(axes: Axes, runs: Mapping[str, SampledRuns]) -> None:
    """Draws the distribution of completion times of each flow that consists of many transfers.

    It does not reach 1 if the longest are not complete.
    """
    tables = []
    for label, run in runs.items():
        times = metrics.completion_times(run).sort("elapsed", pl.col("took").is_null())
        share = 1 - metrics.survival(pl.col("elapsed")).over("flow")
        shown = times.with_columns(t=pl.col("took") * 1e3, share=share).drop_nulls("took")
        named = _flows(run, shown).cast({"flow": pl.String, "cc": pl.String})
        if len(runs) > 1:
            is_one = named["flow"].n_unique() == 1
            both = pl.lit(label) if is_one else pl.format("{}: {}", pl.lit(label), "name")
            named = named.with_columns(name=both)
        tables.append(named)
    figures.flows(axes, pl.concat(tables), "share", scale=1.0)
    for line in axes.lines:
        line.set_markevery(0.15)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    axes.set_ylim(0, 1)
    axes.set_xlabel("completion time (ms)")
    axes.set_ylabel("share of transfers\nthat took no longer")


def _draw_internal(axes: Axes, run: SampledRuns, name: str) -> None:
    """Draws an internal of the flows whose algorithms show it, in its own unit."""
    shown = run.internals.filter(pl.col("name").cast(pl.String) == name).drop("name")
    figures.flows(axes, _flows(run, shown), "value")
    if shown["value"].is_finite().any() and shown.filter(pl.col("value") < 0).height:
        axes.set_ylim(auto=True)
        axes.autoscale(axis="y")
    axes.set_ylabel(figures.named(name))


def _draw_frame_delays(axes: Axes, run: SampledRuns) -> None:
    """Draws the delay of every frame of media by its capture."""
    delays = metrics.frame_delays(run).drop_nulls("delay").rename({"start": "t"})
    figures.flows(axes, _flows(run, delays), "delay", scale=1e3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("frame delay (ms)")


def _draw_video(axes: Axes, run: SampledRuns, part: str) -> None:
    """Draws the rates of the segments of video, or the clients' buffers, as segments arrive."""
    arrived = run.segments.drop_nulls("completed").rename({"completed": "t"})
    column, scale, label = {
        "bitrates": ("rate", 1e-6, "bitrate (Mbit/s)"),
        "buffers": ("buffer", 1.0, "buffer (s)"),
    }[part]
    figures.flows(axes, _flows(run, arrived), column, scale=scale)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(label)


def _draw_throughputs(axes: Axes, run: SampledRuns, only: Sequence[str] | None = None) -> None:
    """Draws the first flows, or `only` some, which look as in every other panel of the run."""
    width = metrics.window_width(run)
    names = None if only is None else run.flow_names
    shown = _flows(run, metrics.windows(run, width=width), names)
    figures.flows(axes, shown, "throughput", scale=1e-6, only=only)
    axes.set_ylabel(f"throughput (Mbit/s)\nin windows of {width:.3g} s")


def _flows_of_link(run: SampledRuns, link: str | None) -> list[str]:
    """The flows, and subflows of multipath flows, whose data cross a link."""
    experiment, found = run.experiment, []
    for flow, names in zip(experiment.flows, experiment.flow_names(), strict=True):
        for at, path in enumerate(experiment.flow_paths(flow), 1):
            ending = "" if flow.paths is None else f"/{at}"
            found += [f"{name}{ending}" for name in names if link in path]
    return found


def _states(run: SampledRuns) -> pl.DataFrame:
    """The states of the flows of BBR and C4: columns flow, cc, t, state."""
    return _flows(run, states_in(run.internals)).drop("name")


def _flows(
    run: SampledRuns, table: pl.DataFrame, names: Sequence[str] | None = None
) -> pl.DataFrame:
    """Rows of the flows that are drawn, in the order of the file, named as legends have them."""
    chosen = run.flow_names[:MOST_FLOWS] if names is None else names
    flow = pl.col("flow").cast(pl.String)
    shown = table.filter(flow.is_in(chosen)).sort("flow", maintain_order=True)
    if "cc" not in shown.columns:
        return shown
    cc = pl.col("cc").cast(pl.String)
    labels = {cc: figures.style_of(cc).label for cc in run.flows["cc"].unique()}
    named = pl.format("{}, {}", flow, cc.replace_strict(labels, return_dtype=pl.String))
    says_it = flow.str.to_lowercase().str.contains(cc, literal=True)
    return shown.with_columns(name=pl.when(says_it).then(flow).otherwise(named))
