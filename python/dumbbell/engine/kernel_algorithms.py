"""The algorithms of a kernel: its own, and those that eBPF adds."""

from __future__ import annotations

import json
import platform
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from dumbbell import bpf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_NAMES: Final = {"stcp": "scalable", "hstcp": "highspeed"}
"""Linux's names of algorithms if they differ from the simulator's."""

_KNOWN: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@contextmanager
def provided(algorithms: Iterable[str]) -> Iterator[dict[str, str]]:
    """Adds the algorithms that the kernel lacks by eBPF, and removes them at the end.

    Yields:
        The kernel's name of each. An algorithm that neither the kernel nor eBPF has keeps the name
        of the simulator's, and using it is an error.

    Raises:
        BpfError: If an algorithm is missing from the kernel and cannot be loaded by eBPF.
    """
    wanted = {cc.partition("(")[0].strip() for cc in algorithms}
    lacking = sorted(wanted & set(bpf.names()) - {name for name in wanted if _is_native(name)})
    names = {name: _NAMES.get(name, name) for name in wanted}
    names |= {name: bpf.kernel_name(name) for name in lacking}
    if not lacking:
        yield names
        return
    with bpf.load(lacking):
        yield names


def for_kernel(scenario: str, names: Mapping[str, str]) -> str:
    """A scenario with the kernel's names of the algorithms of TCP, and without logs."""
    said = json.loads(scenario)
    for flow in said["flows"]:
        flow["log"] = False
        if flow.get("udt") is None:
            flow["kernel_cc"] = names[flow["cc"].partition("(")[0].strip()]
    return json.dumps(said)


def _is_native(name: str) -> bool:
    """Whether the kernel has an algorithm, or a module for it."""
    kernels = _NAMES.get(name, name)
    try:
        known = _KNOWN.read_text(encoding="ascii").split()
    except OSError:
        return True
    modules = Path("/lib/modules") / platform.release() / "kernel" / "net" / "ipv4"
    return kernels in known or any(modules.glob(f"tcp_{kernels}.ko*"))
