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
from dataclasses import dataclass, field, replace
from typing import IO, Any, Final

import polars as pl

from dumbbell.engine.output import ALL_TABLES, TableOutput
from dumbbell.errors import DumbbellError, ExperimentError

_UNKNOWN: Final = ("recoveries", "spurious")
"""Columns that a kernel does not report of a flow; UDT, which is not the kernel's, does."""


class TestbedError(DumbbellError):
    """What this machine lacks for real packets, and what to do about it, in one paragraph."""

    __test__ = False


@dataclass
class RunMonitor:
    """Shows the progress of a run to another thread, and stops it; as `_core.RunMonitor`."""

    done: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    is_stopped: bool = False

    def stop(self) -> None:
        """Stops the run, which then raises InterruptedError."""
        self.is_stopped = True
        if self.process is not None:
            self.process.kill()


def run_scenario(scenario: str, monitor: RunMonitor) -> TableOutput:
    """Runs a scenario, as `Experiment.scenario` gives it, in real time.

    Raises:
        TestbedError: If the machine cannot.
        ExperimentError: If a kernel cannot run it.
        InterruptedError: If `monitor` was stopped.
    """
    request = {"parent": os.getpid(), "scenario": scenario, "tables": ALL_TABLES}
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "dumbbell.engine.kernel_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            problem = f"the testbed's process cannot be started: {sys.executable}: {error.strerror}"
            raise TestbedError(f"{problem}; give this user access to it") from None
        monitor.process = process
        output = None
        with process:
            try:
                assert process.stdin is not None, "it is a pipe"
                assert process.stdout is not None, "it is a pipe"
                if not monitor.is_stopped:
                    process.stdin.write(json.dumps(request).encode())
                    process.stdin.close()
                    output = _read_output(process.stdout, monitor)
            finally:
                process.kill()
        if output is not None:
            return _without_unknown(output, scenario)
        if monitor.is_stopped:
            raise InterruptedError("the run was stopped")
        errors.seek(0)
        last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
    raise TestbedError(f"the testbed ended without a result (status {process.returncode}): {last}")


def _read_output(pipe: IO[bytes], monitor: RunMonitor) -> TableOutput | None:
    """Reads the messages of a worker: progress, an error, or the tables. None if it died."""
    while line := pipe.readline():
        message = json.loads(line)
        if "done" in message:
            monitor.done = message["done"]
        elif "invalid" in message:
            raise ExperimentError(message["invalid"])
        elif "missing" in message:
            raise TestbedError(message["missing"])
        else:
            tables = {
                name: pl.read_ipc(io.BytesIO(pipe.read(size)))
                for name, size in message["tables"].items()
            }
            reasons = message["health"].pop("complaints")
            return TableOutput(
                **tables, meta=message["meta"], health=message["health"], invalid_reasons=reasons
            )
    return None


def _without_unknown(output: TableOutput, scenario: str) -> TableOutput:
    """The same with null for what a kernel does not report of its flows."""
    is_udt = [flow.get("udt") is not None for flow in json.loads(scenario)["flows"]]
    known: dict[str, Any] = {"flows": pl.Series(is_udt, dtype=pl.Boolean), "subflows": False}
    tables = {
        table: getattr(output, table).with_columns(
            pl.when(where).then(name).alias(name) for name in _UNKNOWN
        )
        for table, where in known.items()
    }
    return replace(output, **tables)
