"""``dumbbell query``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.cells import cell_len

from dumbbell.cli.output import print_json, print_records, print_table, rows, terminal_width
from dumbbell.display import Column, Table
from dumbbell.sweeps.query import query

if TYPE_CHECKING:
    from pathlib import Path


def answer(sql: str, folder: Path, *, json: bool, csv: bool) -> None:
    """Answers a query, as a table, as JSON or as CSV."""
    table = query(sql, folder)
    if json:
        print_json({"rows": rows(_plain(table, nested=True))})
    elif csv:
        sys.stdout.write(_plain(table, nested=False).write_csv())
    else:
        cells = [[_cell(cell) for cell in row] for row in table.iter_rows()]
        columns = [Column(name, number=number > 0) for number, name in enumerate(table.columns)]
        width = terminal_width() or 120
        shown = Table(columns, cells)
        if max(map(cell_len, shown.text().splitlines())) <= width:
            print_table("", shown)
        else:
            print_records(table.columns, cells)


def _plain(table: pl.DataFrame, *, nested: bool) -> pl.DataFrame:
    """The same with decimals as numbers, and as text what JSON, or CSV, has no values for."""
    simple = pl.selectors.numeric() | pl.selectors.boolean() | pl.selectors.string()
    known = simple | pl.selectors.nested() if nested else simple
    numbers = table.with_columns(pl.selectors.decimal().cast(pl.Float64))
    return numbers.with_columns(
        pl.Series(column.name, [None if value is None else str(value) for value in column])
        for column in numbers.select(~known).iter_columns()
        if column.dtype != pl.Null
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
