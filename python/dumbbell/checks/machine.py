"""What this machine can do: `dumbbell doctor`."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from dumbbell import bpf
from dumbbell._core import __version__, measure_steal, simulate
from dumbbell.engine.kernel import RunMonitor, TestbedError, run_scenario
from dumbbell.errors import ExperimentError
from dumbbell.experiment.model import Experiment, Flow, Link

_MPTCP: Final = Path("/proc/sys/net/mptcp/enabled")


class Finding(NamedTuple):
    """One ability of the machine."""

    name: str
    ok: bool  # whether it is there
    found: str  # what was found or measured
    remedy: str = ""  # for what is missing; empty if nothing is


def examine() -> list[Finding]:
    """Tries everything that this machine may lack; takes about two seconds."""
    return [_simulator(), _testbed(), _bpf(), _mptcp(), _processor(), _dask()]


def _path(duration: str) -> Experiment:
    """One CUBIC flow over 100 Mbit/s and 20 ms."""
    link = Link(name="bottleneck", rate="100 Mbit/s", delay="10 ms", queue="1 BDP")
    return Experiment(links=[link], flows=[Flow(name="flow", cc="cubic")], duration=duration)


def _simulator() -> Finding:
    """The simulator, with its speed on this machine in simulated over real time."""
    duration = 60
    scenario = _path(f"{duration} s").resolve().scenario(1)
    start = time.perf_counter()
    simulate(scenario)
    speed = duration / (time.perf_counter() - start)
    python = ".".join(map(str, sys.version_info[:3]))
    found = f"dumbbell {__version__}, Python {python}; 100 Mbit/s in {speed:.0f} times real time"
    return Finding("simulator", True, found)


def _testbed() -> Finding:
    """Real packets, by sending some."""
    found = f"Linux {platform.release()}: namespaces and TUN devices work"
    try:
        run_scenario(_path("50 ms").resolve().scenario(1), RunMonitor())
    except (TestbedError, ExperimentError) as error:
        return Finding("real packets", False, "not possible", str(error))
    return Finding("real packets", True, found)


def _bpf() -> Finding:
    """Algorithms that Linux lacks."""
    missing = bpf.missing() or ""
    found = "not possible" if missing else ", ".join(bpf.names())
    return Finding("eBPF algorithms", not missing, found, missing)


def _mptcp() -> Finding:
    """Multipath TCP of the kernel."""
    if not _MPTCP.exists():
        remedy = "boot Linux 5.6 or later, built with CONFIG_MPTCP; the simulator has MPTCP too"
        return Finding("MPTCP", False, "the kernel has none", remedy)
    if _MPTCP.read_text().strip() == "0":
        return Finding("MPTCP", False, "switched off", "as root: sysctl net.mptcp.enabled=1")
    return Finding("MPTCP", True, "the kernel has it")


def _processor() -> Finding:
    """Processor time that a hypervisor takes; it spoils measurements in real time."""
    cores = f"{os.cpu_count()} cores"
    if (measured := measure_steal(500)) is None:
        return Finding("processor", True, cores)
    steal, limit = measured
    ok, what = steal <= limit, "runs with real packets may be invalid"
    remedy = "" if ok else f"{what}: use a machine that is not shared, or fewer jobs"
    found = f"{cores}, {100 * steal:.1f} % taken by the hypervisor"
    return Finding("processor", ok, found, remedy)


def _dask() -> Finding:
    """Sweeps on many machines."""
    if find_spec("distributed") is None:
        return Finding("Dask", False, "not installed", "pip install 'dumbbell[dask]'")
    return Finding("Dask", True, "installed")
