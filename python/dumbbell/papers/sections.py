"""The sections of a paper's report, from its ``report.md``.

A heading ``## Title`` begins a section; ``{full}`` at its end leaves it out unless all experiments
were run. Paragraphs, tables and their rows are left out too if they need one that was not.
A paragraph of ``{figure ID}`` or ``{table NAME}`` shows those. Within text ``{ID}`` is a number as
measured, ``{ID:published}`` as published, ``{NAME}`` what a function of ``paper.py`` says.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from dumbbell.display import Table, format_significant
from dumbbell.errors import DumbbellError
from dumbbell.papers.helpers import beside, grid, minus, with_interval
from dumbbell.papers.model import Case, Comparison, PublishedTable, combinations, require
from dumbbell.papers.outcome import Section
from dumbbell.papers.runs import NoFlowError, NotRunError, Runs, known

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dumbbell.papers.outcome import Measured
    from dumbbell.papers.study import Study

_PLACED: Final = re.compile(r"\{(figure|table) (.+)\}")
_INSERTED: Final = re.compile(r"\{([^{}\n]+)\}")
_FULL: Final = "{full}"


class Report:
    """The text of a report, whose placeholders are filled in; without runs they are only checked.

    A placeholder that names nothing is a `LookupError`.
    """

    def __init__(self, study: Study, runs: Runs | None, measured: Measured) -> None:
        """What the placeholders of a paper's texts stand for."""
        self.paper, self.runs, self.measured = study.paper, runs, measured
        self.numbers = {number.id: number for number in study.paper.numbers}
        self.texts = study.functions["text"]
        self.tables = {
            **{one.id: partial(self._beside, one) for one in study.paper.tables},
            **{one.id: partial(self._compared, one) for one in study.paper.comparisons},
            **study.functions["table"],
        }

    def sections(self) -> list[Section]:
        """The sections of ``report.md``."""
        file, found = self.paper.folder / "report.md", []
        text = file.read_text("utf-8") if file.is_file() else ""
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
            title, _, body = part.partition("\n")
            if _FULL in title and self.runs is not None and not self.runs.is_full:
                continue
            title = title.replace(_FULL, "").strip()
            try:
                found.append(self._section(title, body))
            except LookupError as error:
                raise DumbbellError(f"{file}: section {title}: {error.args[0]}") from None
        return found

    def _section(self, title: str, body: str) -> Section:
        section = Section(title, [], [], [])
        for block in filter(None, (block.strip() for block in body.split("\n\n"))):
            shown = [_PLACED.fullmatch(line) for line in block.splitlines()]
            if not all(shown):
                with self._where_run():
                    section.text.append(self.filled(block.replace("\n", " ")))
            for kind, name in (match.groups() for match in shown if match and all(shown)):
                if kind == "figure":
                    require("figure", name, (spec.id for spec in self.paper.figures))
                    section.figures.append(name)
                else:
                    require("table", name, self.tables)
                    with self._where_run():
                        section.tables.extend([self.tables[name](self.runs)] if self.runs else [])
        return section

    def filled(self, text: str) -> str:
        """A text with numbers and what functions say in the place of ``{NAME}``."""
        return _INSERTED.sub(self._inserted, text)

    @contextmanager
    def _where_run(self) -> Iterator[None]:
        """Leaves out what needs experiments that only the full reproduction runs."""
        try:
            yield
        except NotRunError:
            if self.runs is None or self.runs.is_full:
                raise

    def _inserted(self, match: re.Match[str]) -> str:
        """A number, or what a function says."""
        name, _, which = match[1].partition(":")
        require("number or text", name, [*self.numbers, *self.texts])
        if self.runs is None:
            return ""
        if name in self.texts:
            return str(self.texts[name](self.runs))
        if which:
            return format_significant(self.numbers[name].published)
        found = self.measured[name]
        if found.value is None and found.limit is not None:
            return f"more than {format_significant(found.limit)}"
        return minus(format_significant(known(found)))

    def _beside(self, said: PublishedTable, _runs: Runs) -> Table:
        """A table of the paper, measured beside published."""
        numbers = iter(said.all())
        [[row, rows]], [[column, columns]] = said.rows.items(), said.columns.items()
        digits = said.digits if said.digits is not None else 2 * (said.unit == "1")
        cells = {
            self.paper.named(said.row or f"{{{row}}}", {row: at}): [
                beside(known(self.measured[one.id]), one.published, digits)
                for one in (next(numbers) for _ in columns)
            ]
            for at in rows
        }
        titles = [self.paper.named(said.column or f"{{{column}}}", {column: at}) for at in columns]
        return grid(said.heading, titles, cells, said.note)

    def _compared(self, said: Comparison, runs: Runs) -> Table:
        columns = list(self._cases(said.columns))
        rows = {}
        for row in self._cases(said.rows):
            with self._where_run():
                cells = row.cells or [self._cell(said, row, column, runs) for column in columns]
                rows[row.label] = cells
        return grid(said.heading, [column.label for column in columns], rows, said.note)

    def _cases(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Every row or column: one for each combination where settings are lists."""
        for case in cases:
            lists = {name: value for name, value in case.others.items() if isinstance(value, list)}
            for chosen in combinations(lists):
                label = self.paper.named(case.label, chosen)
                yield case.model_copy(update={"label": label, **chosen})

    def _cell(self, said: Comparison, row: Case, column: Case, runs: Runs) -> str:
        """The measure of a cell, or the paper's number for it."""
        settings = row.others | column.others
        name = (row.experiment or column.experiment or said.experiment).format(**settings)
        measure = (row.y or column.y or said.y).with_settings(settings)
        digits = next(one.digits for one in (row, column, said) if one.digits is not None)
        if row.published:
            value = self.paper.published_as(name, measure)
            return "" if value is None else f"{value:.{digits}f}"
        try:
            found = runs.of_measure(name, measure)
        except NoFlowError:
            return ""
        of = said.beside.format(**settings)
        published = self.paper.published_as(of, measure) if of else None
        if published is not None:
            return beside(known(found), published, digits)
        return with_interval(found, digits) if said.interval else f"{known(found):.{digits}f}"
