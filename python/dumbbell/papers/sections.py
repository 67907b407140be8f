"""The sections of a paper's report, from its ``report.md``.

A heading ``## Title`` begins a section; ``{extension}`` at its end leaves it out unless extensions
were run. A paragraph of ``{figure ID}`` or ``{table NAME}`` shows those. Within text ``{ID}`` is a
number as measured, ``{ID:published}`` as published, ``{NAME}`` what a function of ``paper.py``
says.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

from dumbbell.display import Column, Table, format_significant
from dumbbell.errors import DumbbellError
from dumbbell.papers.helpers import beside, grid, with_interval
from dumbbell.papers.outcome import Section
from dumbbell.papers.runs import NoFlowError, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dumbbell.papers.model import Case, Comparison, Paper, PublishedTable
    from dumbbell.papers.outcome import Measured
    from dumbbell.papers.runs import Runs
    from dumbbell.papers.study import Study

_SHOWN: Final = re.compile(r"\{(figure|table) (.+)\}")
_INSERTED: Final = re.compile(r"\{([^{}\n]+)\}")
_EXTENSION: Final = "{extension}"


def sections(study: Study, runs: Runs | None, measured: Measured) -> list[Section]:
    """Reads ``report.md`` and fills it in; without runs its placeholders are only checked.

    Raises:
        DumbbellError: If a placeholder names nothing.
    """
    file = study.paper.folder / "report.md"
    if not file.is_file():
        return []
    found = []
    for part in re.split(r"^## ", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        extension = title.strip().endswith(_EXTENSION)
        if extension and runs is not None and not runs.extensions:
            continue
        try:
            found.append(
                _section(study, title.replace(_EXTENSION, "").strip(), body, runs, measured)
            )
        except LookupError as error:
            raise DumbbellError(f"{file}: section {title.strip()}: {error.args[0]}") from None
    return found


def _section(study: Study, title: str, body: str, runs: Runs | None, measured: Measured) -> Section:
    text: list[str] = []
    tables: list[Table] = []
    figures: list[str] = []
    for block in filter(None, (block.strip() for block in body.split("\n\n"))):
        lines = block.splitlines()
        if not all(_SHOWN.fullmatch(line) for line in lines):
            text.append(_fill(study, " ".join(lines), runs, measured))
            continue
        for line in lines:
            kind, name = _SHOWN.fullmatch(line).groups()  # type: ignore[union-attr]
            if kind == "figure":
                _find("figure", name, [spec.id for spec in study.paper.figures])
                figures.append(name)
            else:
                tables += _tables(study, name, runs, measured)
    return Section(title, text, tables, figures)


def _tables(study: Study, name: str, runs: Runs | None, measured: Measured) -> Iterator[Table]:
    published = {table.id: table for table in study.paper.tables}
    comparisons = {one.id: one for one in study.paper.comparisons}
    own = study.functions.get("table", {})
    _find("table", name, [*published, *comparisons, *own])
    if runs is None:
        return
    if name in published:
        yield _beside(study.paper, published[name], measured)
    elif name in comparisons:
        yield _compared(comparisons[name], runs)
    else:
        yield own[name](runs)


def _compared(said: Comparison, runs: Runs) -> Table:
    rows = {
        row.label: row.cells or [_cell(said, row, column, runs) for column in said.columns]
        for row in said.rows
    }
    return grid(said.heading, [column.label for column in said.columns], rows, said.note)


def _cell(said: Comparison, row: Case, column: Case, runs: Runs) -> str:
    """The measure of a cell, or the paper's number for it."""
    assert runs.paper is not None
    settings = row.settings | column.settings
    name = (row.experiment or column.experiment or said.experiment).format(**settings)
    measure = (row.y or column.y or said.y).with_settings(settings)
    digits = next(one.digits for one in (row, column, said) if one.digits is not None)
    if row.published:
        of = [one for one in runs.paper.numbers if one.experiment == name]
        values = [one.published for one in of if measure.is_same(one.measure)]
        return f"{values[0]:.{digits}f}" if values else ""
    try:
        found = runs.of_measure(name, measure)
    except NoFlowError:
        return ""
    return with_interval(found, digits) if said.interval else f"{known(found):.{digits}f}"


def _beside(paper: Paper, said: PublishedTable, measured: Measured) -> Table:
    """A table of the paper, measured beside published."""
    numbers = iter(said.all())
    [[row, rows]], [[column, columns]] = said.rows.items(), said.columns.items()
    digits = 2 if said.unit == "1" else 0
    cells = []
    for at in rows:
        name = (said.row or f"{{{row}}}").format(**{row: paper.labels.get(at, at)})
        line = [next(numbers) for _ in columns]
        cells.append(
            [name, *(beside(known(measured[one.id]), one.published, digits) for one in line)]
        )
    titles = [
        (said.column or f"{{{column}}}").format(
            **{column: paper.label(at) if column == "cc" else paper.labels.get(at, at)}
        )
        for at in columns
    ]
    head = [Column(said.heading), *(Column(title, number=True) for title in titles)]
    return Table(head, cells, said.note)


def _fill(study: Study, text: str, runs: Runs | None, measured: Measured) -> str:
    """A paragraph with its placeholders filled in."""
    numbers = {number.id: number for number in study.paper.numbers}
    own = study.functions.get("text", {})

    def value(match: re.Match[str]) -> str:
        name, _, which = match[1].partition(":")
        _find("number or text", name, [*numbers, *own])
        if runs is None:
            return ""
        if name in own:
            return str(own[name](runs))
        return format_significant(numbers[name].published if which else known(measured[name]))

    return _INSERTED.sub(value, text)


def _find(kind: str, name: str, there: list[Any]) -> None:
    if name in there:
        return
    close = difflib.get_close_matches(name, there, n=1)
    hint = f' (did you mean "{close[0]}"?)' if close else ""
    raise LookupError(f'there is no {kind} "{name}"{hint}; there are {", ".join(there) or "none"}')
