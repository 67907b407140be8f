"""Real packets: runs of an experiment with the TCP of this machine's Linux.

A run is a process of its own (`dumbbell.engine.kernel_worker`), whose namespaces, devices and
programs have no names outside: when it ends they are gone, even if it was killed. This module
starts it and reads what it reports. Algorithms that the kernel lacks are added by eBPF.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

import polars as pl

from dumbbell import _core, bpf
from dumbbell.engine.output import read_tables
from dumbbell.errors import DumbbellError, ExperimentError
from dumbbell.experiment.linux_algorithms import object_of
from dumbbell.experiment.model import without_options
from dumbbell.results.tables import RunOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NAMES: Final = {"stcp": "scalable", "hstcp": "highspeed"}
"""Linux's names of algorithms if they differ from the simulator's."""

_UNKNOWN: Final = ("recoveries", "spurious")
"""Columns that a kernel counts by host: known of its flow if it has one only, besides programs,
which have hosts of their own. Flows over UDP, which are not its own, count them by flow."""


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


@dataclass(frozen=True)
class KernelCapture:
    """What the ends of logged flows sent and received, as pcapng files."""

    sender: bytes
    receiver: bytes

    def write(self, path: str | os.PathLike[str], side: Literal["sender", "receiver"]) -> None:
        """Writes the packets as the hosts of one side saw them."""
        Path(path).write_bytes(self.sender if side == "sender" else self.receiver)

    @property
    def logs(self) -> tuple[int, ...]:
        """None: only simulated stacks write logs of their own."""
        return ()

    def write_log(self, path: str | os.PathLike[str], flow: int) -> None:
        """Raises `ValueError`, as there are none."""
        raise ValueError(f"{path}: flow {flow} has no log")


def run_scenario(scenario: str, monitor: RunMonitor, *, at_once: int = 1) -> RunOutput:
    """Runs a scenario, as `Experiment.scenario` gives it, in real time.

    `at_once` is the number of runs that share the machine.

    Raises `TestbedError` if the machine cannot, `ExperimentError` if a kernel cannot run it, and
    `InterruptedError` if `monitor` was stopped.
    """
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
                    request = {"parent": os.getpid(), "scenario": scenario, "at_once": at_once}
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


def _read_output(pipe: IO[bytes], monitor: RunMonitor) -> RunOutput | None:
    """Reads the messages of a worker: progress, an error, or the tables. None if it died."""
    while line := pipe.readline():
        match json.loads(line):
            case {"done": done}:
                monitor.done = done
            case {"invalid": problem}:
                raise ExperimentError(problem)
            case {"missing": problem}:
                raise TestbedError(problem)
            case {"tables": sizes, "facts": {"meta": meta, "health": health, "captures": lengths}}:
                reasons = health.pop("complaints")
                tables = read_tables(sizes, pipe)
                captures = [pipe.read(length) for length in lengths]
                facts: dict[str, Any] = {"health": health, "invalid_reasons": reasons}
                capture = KernelCapture(*captures) if captures else None
                return RunOutput(**tables, meta=meta, capture=capture, **facts)
    return None


def _without_unknown(output: RunOutput, scenario: str) -> RunOutput:
    """The same with null for what a kernel does not report of its flows."""
    flows = json.loads(scenario)["flows"]
    # A program has hosts of its own.
    share = [is_kernels(flow) and flow.get("command") is None for flow in flows]
    is_known = [not one or sum(share) == 1 for one in share]

    def known(table: pl.DataFrame, where: pl.Series | bool) -> pl.DataFrame:
        return table.with_columns(pl.when(where).then(name).alias(name) for name in _UNKNOWN)

    of_flows = known(output.flows, pl.Series(is_known, dtype=pl.Boolean))
    return replace(output, flows=of_flows, subflows=known(output.subflows, False))


@contextmanager
def provided(algorithms: Iterable[str]) -> Iterator[dict[str, str]]:
    """Adds the algorithms that the kernel lacks by eBPF, and removes them at the end.

    Yields the kernel's name of each. An algorithm that neither the kernel nor eBPF has keeps the
    name of the simulator's, and using it is an error.
    """
    wanted = set(map(without_options, algorithms))
    names = {cc: _core.linux_algorithm(cc) or _NAMES.get(cc, cc) for cc in wanted}
    lacking = {name: name for name in wanted.intersection(bpf.names()) if not _has(names[name])}
    objects = {cc: str(file) for cc in wanted if (file := object_of(cc)) is not None}
    loading = dict(sorted((lacking | objects).items()))
    with bpf.load(loading.values(), private=True) if loading else nullcontext() as loaded:
        called = loaded.kernel_names if loaded else {}
        yield names | {cc: called[name] for cc, name in loading.items()}


def _has(name: str) -> bool:
    """Whether the kernel has an algorithm, or a module for it; true if it does not say."""
    known = bpf.known()
    modules = Path("/lib/modules") / platform.release() / "kernel" / "net" / "ipv4"
    return not known or name in known or any(modules.glob(f"tcp_{name}.ko*"))


def for_kernel(scenario: str, names: Mapping[str, str]) -> str:
    """A scenario with the kernel's names of TCP's algorithms and TLS for QUIC."""
    said: dict[str, Any] = json.loads(scenario)
    for flow in said["flows"]:
        if (external := flow.get("external")) and external["transport"] == "quic":
            external["options"]["crypto"] = "rustls"
        if is_kernels(flow):
            flow["kernel_cc"] = names[without_options(flow["cc"])]
    return json.dumps(said)


def is_kernels(flow: Mapping[str, Any]) -> bool:
    """Whether a flow of a scenario is over the kernel's own TCP."""
    return flow.get("udt") is None and flow.get("external") is None and not flow.get("udp")
