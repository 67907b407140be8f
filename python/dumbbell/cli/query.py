"""``dumbbell query``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from dumbbell.cli import options
from dumbbell.cli.output import (
    print_json,
    print_line,
    print_records,
    print_table,
    terminal_width,
    warn_of_missing_runs,
)

if TYPE_CHECKING:
    import polars as pl

    from dumbbell.sweeps.result import SweepResult


def answer_query(
    sql: Annotated[
        str,
        Argument(metavar="SQL", help="Query, such as 'select * from runs'; or a sweep's metric."),
    ],
    folder: Annotated[Path, Argument(metavar="FOLDER", help="Result or sweep.")],
    beside: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Another one; its tables are beside.runs and so on."),
    ] = None,
    csv: Annotated[bool, Option("--csv", help="Print CSV and nothing else.")] = False,
    latex: Annotated[
        bool, Option("--latex", help="Print a LaTeX table (booktabs) and nothing else.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Query a result or a sweep in SQL, as DuckDB has it.

    A result has the tables flows, series, links and internals, a sweep runs, flows and links. The
    query may write files: "copy (from runs) to 'runs.csv'". FOLDER's tables are views: a query
    changes them only if it writes over their files.

    A metric in the place of SQL, such as 'share of bbr3', gives its mean at each point of a sweep,
    with the 95 % interval (low, high) and the number of runs (n).
    """
    import polars as pl
    from rich.cells import cell_len

    from dumbbell.display import Column, Table
    from dumbbell.sweeps.query import query

    for one in (folder, beside) if beside else (folder,):
        warn_of_missing_runs(one)
    means = _sweep_of(sql, folder)
    table = means.means(sql) if means else query(sql, folder, beside=beside)
    table = table.with_columns(pl.selectors.decimal().cast(pl.Float64))
    if json:
        print_json({"rows": table.to_dicts()})
        return
    if csv:
        sys.stdout.write(_flat(table).write_csv())
        return
    cells = [[_cell(cell) for cell in row] for row in table.iter_rows()]
    columns = [Column(name, number=number > 0) for number, name in enumerate(table.columns)]
    shown = means.means_table(sql) if means else Table(columns, cells)
    if latex:
        print_line(shown.latex())
    elif max(map(cell_len, shown.text().splitlines())) <= (terminal_width() or 120):
        print_table("", shown)
    else:
        print_records(table.columns, cells)


def _sweep_of(text: str, folder: Path) -> SweepResult | None:
    """The sweep in a folder, if a text names a metric of it and is no SQL."""
    from dumbbell.errors import unknown
    from dumbbell.sweeps.dataset import Dataset, is_dataset
    from dumbbell.sweeps.plan import METRICS, OF_SOME, measured
    from dumbbell.sweeps.query import QueryError

    is_of_some = bool(OF_SOME.fullmatch(text))
    if not (is_of_some or text.isidentifier()):
        return None
    if not is_dataset(folder):
        if (not is_of_some and text not in METRICS) or not folder.exists():
            return None
        problem = f"{text} is a metric, which has a mean in a sweep, and {folder} is no sweep"
        raise QueryError(f"{problem}; ask in SQL, such as 'select * from flows'")
    dataset = Dataset(folder)
    known = measured(dataset.table("runs"))
    if not is_of_some and text not in known:  # nor is a single word SQL
        raise QueryError(unknown("metric of this sweep", text, [*known, "share of NAME"]))
    from dumbbell.sweeps.result import SweepResult

    return SweepResult(dataset)


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """The same with text for what CSV has no values for."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(
        pl.Series(column.name, [None if value is None else str(value) for value in column])
        for column in table.select(~(cs.numeric() | cs.boolean() | cs.string())).iter_columns()
        if column.dtype != pl.Null
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
