"""The process that a run with real packets is: ``python -m dumbbell.engine.kernel_worker``.

It reads a request (JSON) from its input and answers on its output: lines of JSON, the last one
followed by tables and captures. It has a process namespace, whose first process does the work; all
that this one started ends with it. If the parent ends, so does the worker.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

from dumbbell import _core


def main() -> int:
    """Answers one request; gives the exit status."""
    request = json.loads(sys.stdin.buffer.read())
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        _core.isolate()
    except OSError as error:
        _write(answer, missing=str(error))
        return 1
    _core.die_with_parent()
    if os.getppid() != request["parent"]:
        return 1
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _core.die_with_parent()
    _run(request, answer)
    answer.flush()
    os._exit(0)


def _run(request: dict[str, Any], answer: IO[bytes]) -> None:
    try:
        output, health, captures = _core.run_testbed(
            request["scenario"], lambda done: _write(answer, done=done), request["at_once"]
        )
    except (ValueError, OSError) as error:
        _write(answer, **{"missing" if isinstance(error, OSError) else "invalid": str(error)})
        return
    # Importing Polars starts threads, and a process of several cannot have a user namespace.
    from dumbbell.engine.output import encode
    from dumbbell.results.tables import RunOutput

    facts = {"meta": output.meta, "health": health, "captures": [len(file) for file in captures]}
    answer.write(encode(RunOutput.of(output).tables, facts))
    answer.writelines(captures)


def _write(answer: IO[bytes], **message: Any) -> None:
    answer.write(json.dumps(message).encode() + b"\n")
    answer.flush()


if __name__ == "__main__":
    sys.exit(main())
