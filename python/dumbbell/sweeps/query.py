"""SQL over a result or a sweep: its tables as views, in DuckDB."""

from __future__ import annotations

import glob
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import polars as pl

from dumbbell.errors import DumbbellError, ResultError
from dumbbell.metrics import summary
from dumbbell.results.result import Result, invalid_runs
from dumbbell.results.storage import of_several, read_meta
from dumbbell.results.tables import OPTIONAL, TABLES
from dumbbell.sweeps.dataset import PLAN, Dataset, is_dataset

if TYPE_CHECKING:
    from collections.abc import Mapping


_BESIDE: Final = "beside"  # the schema of the other folder's tables


class QueryError(DumbbellError):
    """A query that cannot be answered."""


def query(
    sql: str,
    folder: str | Path,
    *,
    beside: str | Path | None = None,
    tables: Mapping[str, pl.DataFrame] | None = None,
) -> pl.DataFrame:
    """Answers an SQL query over the tables of a folder, in DuckDB; see ``dumbbell query``.

    Args:
        sql: The query, such as ``"select flow, avg(cwnd) from series group by all"``.
        folder: The folder of a result or of a sweep, whose tables are the views. The ``flows``
            of both have the columns of `metrics.summary`.
        beside: Another folder, whose tables are ``beside.runs`` and so on.
        tables: Tables that take the place of views of the same name.

    Raises:
        ResultError: If a folder is neither.
        QueryError: If the query is not valid, or gives no table.
    """
    views, made = _views(Path(folder), sql)
    made |= tables or {}
    if beside is not None:
        others = _views(Path(beside), sql)
        views |= {f"{_BESIDE}.{name}": text for name, text in others[0].items()}
        made |= {f"{_BESIDE}.{name}": table for name, table in others[1].items()}
    with (
        tempfile.TemporaryDirectory() as scratch,
        duckdb.connect(config={"python_enable_replacements": "false"}) as connection,
    ):
        for name, table in made.items():
            file = Path(scratch) / f"{name}.parquet"
            table.write_parquet(file)
            views[name] = f"from {_read([file])}"
        first = min(name for name in views if "." not in name)
        advice = f"the tables are {', '.join(views)}, and `from {first} limit 1` shows columns"
        try:
            connection.execute(f"create schema {_BESIDE}")
            for name, definition in views.items():
                connection.execute(f"create view {name} as {definition}")
            answer = connection.sql(sql)
            if answer is None:
                raise QueryError(f"the query gives no table; {advice}")
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
            raise QueryError(f"{said}; {advice}") from None


def _views(folder: Path, sql: str) -> tuple[dict[str, str], dict[str, pl.DataFrame]]:
    """The views of a folder as SQL over its files, and those that are computed."""
    if is_dataset(folder):
        return _sweep_views(Dataset(folder)), {}
    known = (*TABLES, *OPTIONAL)
    files = {name: folder / f"{name}.parquet" for name in known}
    views = {name: f"from {_read([file])}" for name, file in files.items() if file.is_file()}
    if not views:
        problem = "it holds no tables" if folder.is_dir() else "there is no such folder"
        problem = of_several(folder) or problem
        raise ResultError(f"{folder}: is neither a result nor a sweep: {problem}")
    made = {}
    said = read_meta(folder) if (folder / "meta.json").is_file() else {}
    if "invalid" in said:
        rows = [(seed, why) for seed, reasons in invalid_runs(said).items() for why in reasons]
        schema = {"seed": pl.UInt64, "why": pl.String}
        made["invalid"] = pl.DataFrame(rows, schema, orient="row")
    # Rates need the series, which may be large: only for queries that can show them.
    if {"flows", "series"} <= views.keys() and "flows" in sql.lower():
        made["flows"] = summary(Result.load(folder))
    return views, made


def _sweep_views(dataset: Dataset) -> dict[str, str]:
    plan = _read([dataset.folder / PLAN])
    views = {"plan": f"from {plan}"}
    for table in dataset.tables:
        files = dataset.files(table)
        columns = dataset.columns(table)
        axes = [quoted(axis) for axis in dataset.axes if axis not in columns]
        first = ", ".join(f"plan.{name}" for name in ("run", "point", "seed", *axes))
        order = ["plan.point", "plan.seed", *(n for n in ("flow", "link", "t") if n in columns)]
        views[table] = (
            f"select {first}, kept.* exclude (run) from {_read(files)} as kept "
            f"join {plan} as plan using (run) order by {', '.join(order)}"
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
