"""The process that a run with real packets is: ``python -m dumbbell.engine.kernel_worker``.

It reads a request (JSON) from its input and answers on its output: lines of JSON, the last one
followed by tables (Arrow IPC). It has a process namespace, whose first process does the work and
takes with it whatever it has started. If whoever asked is gone, so is it.
"""

from __future__ import annotations

import io
import json
import os
import sys
from typing import IO, Any, Final

from dumbbell import _core

TABLES: Final = (
    "flows",
    "series",
    "links",
    "internals",
    "subflows",
    "subflow_series",
    "subflow_internals",
)
"""The tables of an answer, in its order."""


def main() -> int:
    """Answers one request; gives the exit status."""
    request = json.loads(sys.stdin.buffer.read())
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _core.isolate()
    except OSError as error:
        _tell(answer, missing=str(error))
        return 1
    _core.die_with_parent()
    if os.getppid() != request["parent"]:
        return 1
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _core.die_with_parent()
    _run(request["scenario"], answer)
    answer.flush()
    os._exit(0)


def _run(scenario: str, answer: IO[bytes]) -> None:
    try:
        outcome, health = _core.run_testbed(scenario, lambda done: _tell(answer, done=done))
    except ValueError as error:
        _tell(answer, invalid=str(error))
        return
    except OSError as error:
        _tell(answer, missing=str(error))
        return
    _send(answer, outcome, health)


def _tell(answer: IO[bytes], **message: Any) -> None:
    answer.write(json.dumps(message).encode() + b"\n")
    answer.flush()


def _send(answer: IO[bytes], outcome: _core.RunOutput, health: _core.Health) -> None:
    # Importing it starts threads, and a process of several cannot have a user namespace.
    import polars as pl

    tables = {}
    for name in TABLES:
        buffer = io.BytesIO()
        pl.DataFrame(getattr(outcome, name)).write_ipc(buffer)
        tables[name] = buffer.getvalue()
    sizes = {name: len(table) for name, table in tables.items()}
    _tell(answer, tables=sizes, meta=outcome.meta, health=health)
    for table in tables.values():
        answer.write(table)


if __name__ == "__main__":
    sys.exit(main())
