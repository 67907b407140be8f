"""``dumbbell query``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import polars as pl

from dumbbell.cli.output import fits, print_json, print_records, print_table, rows
from dumbbell.query import query

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
        if fits(table.columns, cells):
            print_table("", table.columns, cells)
        else:
            print_records(table.columns, cells)


def _plain(table: pl.DataFrame, *, nested: bool) -> pl.DataFrame:
    """The same with decimals as numbers, and as text what JSON, or CSV, has no values for."""
    dtypes = pl.selectors.nested() if nested else pl.selectors.by_name()
    simple = pl.selectors.numeric() | pl.selectors.boolean() | pl.selectors.string() | dtypes
    others = table.select(~(simple - pl.selectors.decimal())).iter_columns()
    return table.with_columns(pl.selectors.decimal().cast(pl.Float64)).with_columns(
        column.map_elements(str, pl.String) for column in others if column.dtype != pl.Null
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
