"""How numbers and tables are shown: on the terminal, in Markdown, in HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Table:
    """A table; cells are text as it shall stand."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def markdown(self) -> str:
        """The table and its note, as Markdown."""
        head = "| " + " | ".join(column.title for column in self.columns) + " |"
        rule = "|" + "|".join("---:" if column.number else "---" for column in self.columns) + "|"
        rows = ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([head, rule, *rows, "", self.note])

    def html(self) -> Markup:
        """The table and its note, as HTML; cells that are Markup stand as they are."""
        kinds = [Markup(' class="number"' if column.number else "") for column in self.columns]
        head = Markup().join(
            Markup('<th scope="col"{}>{}</th>').format(kind, column.title)
            for column, kind in zip(self.columns, kinds, strict=True)
        )
        rows = Markup("\n").join(
            Markup("<tr>{}</tr>").format(
                Markup().join(
                    Markup("<td{}>{}</td>").format(kind, text)
                    for text, kind in zip(row, kinds, strict=True)
                )
            )
            for row in self.rows
        )
        note = Markup('\n<p class="small soft">{}</p>').format(self.note) if self.note else ""
        return _HTML.format(head, rows) + note


_HTML: Final = Markup("""\
<div class="scroll compact" tabindex="0">
<table>
<thead><tr>{}</tr></thead>
<tbody>
{}
</tbody>
</table>
</div>""")


def format_significant(value: float | None) -> str:
    """A value with three significant digits, and none lost in front of the point."""
    if value is None or not math.isfinite(value):
        return "—"
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
