"""``dumbbell query``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dumbbell.cli.output import fits, print_json, print_records, print_table, rows
from dumbbell.query import query

if TYPE_CHECKING:
    from pathlib import Path


def answer(sql: str, folder: Path, *, json: bool, csv: bool) -> None:
    """Answers a query, as a table, as JSON or as CSV."""
    table = query(sql, folder)
    if json:
        print_json({"rows": rows(table)})
    elif csv:
        sys.stdout.write(table.write_csv())
    else:
        cells = [[_cell(cell) for cell in row] for row in table.iter_rows()]
        if fits(table.columns, cells):
            print_table("", table.columns, cells)
        else:
            print_records(table.columns, cells)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
