"""SQL over a result or a sweep: its tables as views, in DuckDB."""

from __future__ import annotations

import glob
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl

from dumbbell.errors import DumbbellError, ResultError
from dumbbell.metrics import summary
from dumbbell.results.result import Result, invalid_runs
from dumbbell.results.tables import SUBFLOW_TABLES, TABLES, columns_of
from dumbbell.sweeps.dataset import PLAN, Dataset, is_dataset, tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping


class QueryError(DumbbellError):
    """A query that cannot be answered."""


def query(
    sql: str, folder: str | Path, *, tables: Mapping[str, pl.DataFrame] | None = None
) -> pl.DataFrame:
    """Answers an SQL query over the tables of a folder, in DuckDB; see ``dumbbell query``.

    Args:
        sql: The query, such as ``"select flow, avg(cwnd) from series group by all"``.
        folder: The folder of a result or of a sweep, whose tables are the views. The ``flows``
            of both have the columns of `metrics.summary`.
        tables: Tables that take the place of views of the same name.

    Raises:
        ResultError: If `folder` is neither.
        QueryError: If the query is not valid, or gives no table.
    """
    with (
        tempfile.TemporaryDirectory() as scratch,
        duckdb.connect(config={"python_enable_replacements": "false"}) as connection,
    ):
        views = _views(Path(folder))
        made = dict(tables or {})
        # Rates need the series, which may be large: only for queries that can show them.
        is_result = not is_dataset(Path(folder)) and {"flows", "series"} <= views.keys()
        if is_result and "flows" in sql.lower():
            made["flows"] = summary(Result.load(folder))
        for name, table in made.items():
            file = Path(scratch) / f"{name}.parquet"
            table.write_parquet(file)
            views[name] = f"from {_read([file])}"
        try:
            for name, definition in views.items():
                connection.execute(f"create view {name} as {definition}")
            answer = connection.sql(sql)
            if answer is None:
                raise QueryError(f"the query gives no table; {_advice(views)}")
            twice = [name for name in answer.columns if answer.columns.count(name) > 1]
            if twice:
                problem = f'two columns of the answer are called "{twice[0]}"'
                raise QueryError(f"{problem}; give one of them another name with `as`")
            # By rows: handing over Arrow's needs pyarrow, or is told as a leak by DuckDB 2.0.
            return pl.DataFrame(
                answer.fetchall(), schema=answer.columns, orient="row", infer_schema_length=None
            )
        except duckdb.Error as error:
            if "pytz" in str(error):
                problem = "times with a time zone cannot be read"
                raise QueryError(f"{problem}; cast them, as in now()::timestamp") from None
            # Its own words name the place, on lines of their own.
            said = " ".join(str(error).partition("\n\n")[0].split())
            raise QueryError(f"{said}; {_advice(views)}") from None


def _advice(views: dict[str, str]) -> str:
    return f"the tables are {', '.join(views)}, and `from {min(views)} limit 1` shows columns"


def _views(folder: Path) -> dict[str, str]:
    if is_dataset(folder):
        return _sweep_views(Dataset(folder))
    known = (*TABLES, *SUBFLOW_TABLES.values())
    there = [name for name in known if (folder / f"{name}.parquet").is_file()]
    if not there:
        problem = "it holds no tables" if folder.is_dir() else "there is no such folder"
        raise ResultError(f"{folder}: is neither a result nor a sweep: {problem}")
    views = {name: f"from {_read([folder / f'{name}.parquet'])}" for name in there}
    return views | _invalid_view(folder)


def _invalid_view(folder: Path) -> dict[str, str]:
    """The runs that are invalid, as a table of its own, where runs can be."""
    meta = folder / "meta.json"
    said = json.loads(meta.read_text(encoding="utf-8")) if meta.is_file() else {}
    if "invalid" not in said:
        return {}
    none = "(null::ubigint, null::varchar)"
    rows = [
        f"({seed}, '{why.replace(chr(39), chr(39) * 2)}')"
        for seed, reasons in invalid_runs(said).items()
        for why in reasons
    ]
    table = f"(values {', '.join([none, *rows])}) as t(seed, why)"
    return {"invalid": f"from {table} where seed is not null"}


def _sweep_views(dataset: Dataset) -> dict[str, str]:
    parts = dataset.parts
    views = {"plan": f"from {_read([dataset.folder / PLAN])}"}
    axes = list(dataset.axes)
    for table in dataset.tables:
        files = tables_of(parts, table)
        columns = columns_of(files[0])
        shown = [quoted(axis) for axis in axes if axis not in columns]
        first = ", ".join(f"plan.{name}" for name in ("run", "point", "seed", *shown))
        named = ", ".join(name for name in ("flow", "link", "t") if name in columns)
        order = f"plan.point, plan.seed{', ' if named else ''}{named}"
        views[table] = (
            f"select {first}, kept.* exclude (run) from {_read(files)} as kept "
            f"join {_read([dataset.folder / PLAN])} as plan using (run) order by {order}"
        )
    return views


def _read(files: list[Path]) -> str:
    # DuckDB would read brackets in a path as a pattern.
    paths = (glob.escape(str(file)) for file in files)
    names = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{names}], union_by_name = true)"


def quoted(name: str) -> str:
    """A name as SQL has it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'
