"""Real packets: runs of an experiment with the TCP of this machine's Linux.

A run is a process of its own (`dumbbell.engine.kernel_worker`), whose namespaces, devices and
programs have no names outside: when it ends they are gone, even if it was killed. This module
starts it and reads what it reports.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from typing import IO, Any, Final

import polars as pl

from dumbbell.engine.output import TableOutput
from dumbbell.errors import DumbbellError, ExperimentError

_UNKNOWN: Final = ("recoveries", "spurious")
"""What a kernel does not tell of a flow; UDT is ours, and tells it."""


class TestbedError(DumbbellError):
    """What this machine lacks for real packets, and what to do about it, in one paragraph."""

    __test__ = False


@dataclass
class Watch:
    """Lets another thread see how far a run is, and stop it."""

    done: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    is_stopped: bool = False

    def stop(self) -> None:
        """Stops the run, which then raises InterruptedError."""
        self.is_stopped = True
        if self.process is not None:
            self.process.kill()


@dataclass(frozen=True, eq=False)
class Outcome(TableOutput):
    """What came of a run: tables as the simulator gives them, and how the machine did.

    Attributes:
        health: Lateness of packets (``late_mean_s``, ``late_p99_s``, ``late_max_s``, and when the
            latest was due, ``late_max_at_s``), packets that devices dropped, the share of the
            processors that was stolen, whether they were kept from sleeping (``awake``),
            whether the kernel had too little memory for TCP (``short_of_memory``), and
            ``complaints``: why the run is invalid, if it is.
    """

    health: dict[str, Any]

    @property
    def invalid_reasons(self) -> list[str]:
        """Why the run is invalid; empty if it is not."""
        return list(self.health["complaints"])


def run_scenario(scenario: str, watch: Watch) -> Outcome:
    """Runs a scenario, as `Experiment.scenario` gives it, in real time.

    Raises:
        TestbedError: If the machine cannot.
        ExperimentError: If a kernel cannot do what it asks for.
        InterruptedError: If `watch` was stopped.
    """
    with tempfile.TemporaryFile() as words:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "dumbbell.engine.kernel_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=words,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"the testbed's process cannot be started: {sys.executable}: {error.strerror}"
            raise TestbedError(f"{problem}; give this user access to it") from None
        watch.process = process
        try:
            if watch.is_stopped:
                raise InterruptedError("the run was stopped")
            assert process.stdin is not None, "it is a pipe"
            assert process.stdout is not None, "it is a pipe"
            request = json.dumps({"parent": os.getpid(), "scenario": scenario})
            with process.stdin as pipe:
                pipe.write(request.encode())
            ours = [flow.get("udt") is not None for flow in json.loads(scenario)["flows"]]
            outcome = _listen(process.stdout, watch, pl.Series(ours, dtype=pl.Boolean))
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if outcome is not None:
            return outcome
        words.seek(0)
        said = words.read().decode(errors="replace").strip().rpartition("\n")[2]
    raise TestbedError(f"the testbed ended without a word (status {process.returncode}): {said}")


def _listen(pipe: IO[bytes], watch: Watch, ours: pl.Series) -> Outcome | None:
    """Hears a worker out: progress, an error, or the tables. None if it died.

    `ours` says of which flows the sender is ours and not the kernel's.
    """
    while line := pipe.readline():
        message = json.loads(line)
        if "done" in message:
            watch.done = message["done"]
        elif "invalid" in message:
            raise ExperimentError(message["invalid"])
        elif "missing" in message:
            raise TestbedError(message["missing"])
        else:
            tables = {
                name: pl.read_ipc(io.BytesIO(pipe.read(size)))
                for name, size in message["tables"].items()
            }
            for table, told in (("flows", ours), ("subflows", False)):
                tables[table] = tables[table].with_columns(
                    pl.when(told).then(name).alias(name) for name in _UNKNOWN
                )
            return Outcome(**tables, meta=message["meta"], health=message["health"])
    if watch.is_stopped:
        raise InterruptedError("the run was stopped")
    return None
