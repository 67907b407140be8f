"""The tables of a run as bytes, for the run store and between processes."""

from __future__ import annotations

import io
import json
from typing import IO, TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping


def encode(tables: Mapping[str, pl.DataFrame], facts: Mapping[str, Any]) -> bytes:
    """A line of JSON with the ``facts`` and the sizes of the ``tables``, which follow (Arrow)."""
    parts = {}
    for name, table in tables.items():
        table.write_ipc(buffer := io.BytesIO(), compression="zstd")
        parts[name] = buffer.getvalue()
    sizes = {name: len(part) for name, part in parts.items()}
    header = json.dumps({"tables": sizes, "facts": facts}).encode()
    return b"".join([header, b"\n", *parts.values()])


def read_tables(sizes: Mapping[str, int], file: IO[bytes]) -> dict[str, Any]:
    """The tables that follow the line of JSON that has their sizes."""
    return {name: pl.read_ipc(io.BytesIO(file.read(size))) for name, size in sizes.items()}
