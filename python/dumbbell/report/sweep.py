"""What a page tells of a sweep: its points for heat maps, and tables of means."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import polars as pl
from matplotlib.colors import to_hex

from dumbbell import metrics
from dumbbell.display import Cell, Column, Table, format_settings
from dumbbell.figures import labelled, style_of
from dumbbell.figures.heat import SHADES, ink_on
from dumbbell.report.series import pack, short
from dumbbell.results.summary import MEANS, means
from dumbbell.sweeps.chart import holds_algorithms, share_column
from dumbbell.sweeps.plan import measured
from dumbbell.sweeps.work import SERIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dumbbell.sweeps.dataset import Dataset

_MOST_ROWS: Final = 200  # more points than this are in the heat map, and not in a table too


def sweep_page(dataset: Dataset) -> dict[str, Any]:
    """What the template ``sweep.html.j2`` shows of a sweep.

    ``incomplete`` says how many of the planned runs there are if not all are; ``packed`` has the
    points, for the script; the table ``by_point`` is there only if these are few.
    """
    runs = dataset.table("runs")
    toml, said = dataset.toml
    points = runs["point"].n_unique()
    return {
        "title": str(said.get("title") or dataset.folder.resolve().name),
        "runs": runs.height,
        "points": points,
        "seeds": runs["seed"].n_unique(),
        "incomplete": dataset.incomplete,
        "packed": pack(_points(dataset, runs)),
        "by_algorithm": _by_algorithm(dataset),
        "by_point": _by_point(dataset, runs) if points <= _MOST_ROWS else None,
        "toml": toml,
        "commands": _commands(dataset),
    }


def command_of(dataset: Dataset) -> str:
    """The command that runs a sweep again, or what is missing of it."""
    folder, seeds = shlex.quote(str(dataset.folder)), sorted(set(dataset.plan["seed"]))
    again = f"dumbbell sweep {folder}/sweep.toml --out {folder}"
    # Others than those that a count stands for are in the file.
    again += f" --seeds {len(seeds)}" if seeds == list(range(1, len(seeds) + 1)) else ""
    again += " --backend linux" if dataset.backend == "linux" else ""
    return again + (" --series" if set(SERIES) & set(dataset.tables) else "")


def _commands(dataset: Dataset) -> list[tuple[str, str]]:
    folder = shlex.quote(str(dataset.folder))
    return [
        ("Run it again, or what is missing of it", command_of(dataset)),
        ("Open its first point in the laboratory", f"dumbbell lab --open {folder}/sweep.toml"),
        ("A figure of it", f"dumbbell plot {folder}{'' if len(dataset.axes) < 3 else ' boxes'}"),
        ("Its rows", f"dumbbell query 'from runs' {folder} --csv"),
    ]


def _shares(dataset: Dataset) -> pl.DataFrame:
    """The share of each algorithm in the data that the flows of a run delivered."""
    by, delivered = ["point", "seed"], pl.col("delivered").sum()
    flows = dataset.table("flows").group_by(*by, "cc", maintain_order=True)
    share = pl.col("delivered") / delivered.over(by)
    return flows.agg(delivered).select(*by, "cc", share=share)


def _points(dataset: Dataset, runs: pl.DataFrame) -> dict[str, Any]:
    """The mean of every metric at every point, and where on the axes that is."""
    known = [name for name in measured(runs) if runs[name].count()]
    shown: dict[str, Column] = {name: Column.of(name) for name in known}
    shares = _shares(dataset)
    if shares.height > runs.height:  # several algorithms in a run
        for (cc,), table in shares.group_by("cc", maintain_order=True):
            name = f"share of {cc}"
            shown[name] = share_column(str(cc))
            its = table.select("point", "seed", pl.col("share").alias(name))
            runs = runs.join(its, on=["point", "seed"], how="left", maintain_order="left")
    names = [name for name in dataset.axes if name in runs.columns]
    found = runs.group_by("point", maintain_order=True).agg(
        pl.col(names).first(), pl.col(list(shown)).mean()
    )
    shades = [mpl.colormaps[SHADES](step / 31) for step in range(32)]
    return {
        "axes": {name: _axis(found[name], dataset.axes[name]) for name in names},
        "metrics": [
            {"name": name, "label": column.heading, "decimals": column.decimals}
            for name, column in shown.items()
        ],
        "points": {name: _packed(found[name] * one.scale) for name, one in shown.items()},
        "shades": [to_hex(shade) for shade in shades],
        "inks": [ink_on(shade) for shade in shades],
    }


def _packed(means: pl.Series) -> list[float | str | None]:
    """Means as a page has them: "Infinity" is one that some run is too short for."""
    values = means.to_numpy()
    return [
        "Infinity" if value == math.inf else few
        for value, few in zip(values, short(values), strict=True)
    ]


def _axis(column: pl.Series, axis: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an axis, as text and as numbers, and which of them each point has."""
    unit = axis["unit"]
    values = column.unique(maintain_order=True)
    values = values if unit is None else values.sort()
    return {
        "names": _named(axis, values.to_list()),
        "numbers": None if unit is None else values.to_list(),
        "at": column.replace_strict(values, range(len(values))).to_list(),
    }


_SHOWN: Final = ("throughput", "utilisation", "queue_delay_mean", "queue_delay_p95", "jain")
_OF_ALGORITHMS: Final = (
    *("throughput", "share", "queue_delay_mean", "queue_delay_p95", "retransmission_share"),
)


def _by_point(dataset: Dataset, runs: pl.DataFrame) -> Table:
    axes, runs = dataset.axes, metrics.with_least(runs, dataset.table("flows"), "run")
    columns = [Column(name, number=said["unit"] is not None) for name, said in axes.items()]
    places = runs.group_by("point", maintain_order=True).agg(pl.col(list(axes)).first())
    settings = [_named(axes[name], places[name].to_list()) for name in axes]
    rows = [
        [*place, *found]
        for *place, (_, *found) in zip(*settings, means(runs, ["point"], _SHOWN), strict=True)
    ]
    return Table([*columns, *map(Column.of, _SHOWN)], rows, MEANS)


def _named(axis: Mapping[str, Any], values: Sequence[Any]) -> list[str]:
    """What values on an axis are called; algorithms as in figures."""
    if holds_algorithms(axis):
        return [style_of(str(value)).label for value in values]
    return format_settings(values, axis["unit"])


def _by_algorithm(dataset: Dataset) -> Table:
    """What the flows of an algorithm achieved together, and their share, over the whole sweep."""
    by = ["point", "seed", "cc"]
    runs = metrics.over_flows(dataset.table("flows"), by)
    runs = runs.join(_shares(dataset), on=by, maintain_order="left")
    found = runs.group_by("cc", maintain_order=True).agg(pl.col(_OF_ALGORITHMS).mean())
    rows: list[list[Cell]] = [
        [labelled(str(cc), found["cc"].cast(pl.String)), *cells] for cc, *cells in found.iter_rows()
    ]
    note = (
        "Of an algorithm's flows together; share is their part of all data delivered. Means over "
        "all points and seeds, which differ by design: without intervals."
    )
    return Table([Column("Algorithm"), *map(Column.of, _OF_ALGORITHMS)], rows, note)
