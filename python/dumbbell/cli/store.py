"""``dumbbell store``: the runs that commands share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option, Typer

from dumbbell.cli import options
from dumbbell.cli.output import print_json, print_line
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from dumbbell.engine.store import Store

app = Typer(name="store", help="List and remove stored runs.", no_args_is_help=True)

_UNITS: Final = {"kB": 10**3, "MB": 10**6, "GB": 10**9}


@app.command("list")
def list_runs(
    most: Annotated[int, Option(min=0, help="How many, the last used ones.")] = 20,
    json: options.Json = False,
) -> None:
    """List the stored runs, the last used one first."""
    store = _store()
    entries = store.entries()[::-1][:most]
    if json:
        runs = [{"bytes": e.size, "used": e.used, "what": store.what(e)} for e in entries]
        print_json({"folder": str(store.folder), "runs": runs})
        return
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print_line(f"{used}  {_shown(entry.size):>8}  {store.what(entry)}")


@app.command()
def size(json: options.Json = False) -> None:
    """Show where the store is, how large it is, and its limit."""
    store = _store()
    entries = store.entries()
    used = sum(entry.size for entry in entries)
    if json:
        found = {"folder": str(store.folder), "entries": len(entries)}
        print_json(found | {"bytes": used, "limit": store.limit})
        return
    print_line(f"{store.folder}: {len(entries):,} entries, {_shown(used)} of {_shown(store.limit)}")


@app.command()
def prune(
    to: Annotated[str | None, Option(help="Such as '500 MB'; default: the limit.")] = None,
) -> None:
    """Remove the least recently used runs until the store is small enough."""
    from dumbbell.experiment.quantities import SIZE

    try:
        limit = None if to is None else SIZE.parse(to)
    except DumbbellError as error:
        raise DumbbellError(f"--to: {error}") from None
    print_line(f"{_store().prune(limit):,} entries removed")


@app.command()
def clear() -> None:
    """Remove all stored runs. Results in folders of their own stay."""
    print_line(f"{_store().clear():,} entries removed")


def _store() -> Store:
    from dumbbell.engine.store import Store

    store = Store.default()
    if store.folder is None:
        raise DumbbellError("DUMBBELL_STORE: is off, so there is no store; name a folder")
    return store


def _shown(count: int) -> str:
    unit = next((name for name in ("GB", "MB") if count >= _UNITS[name]), "kB")
    return f"{count / _UNITS[unit]:.1f} {unit}"
