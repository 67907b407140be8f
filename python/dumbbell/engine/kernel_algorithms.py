"""Where a kernel's algorithms come from: it has them, or eBPF gives them to it."""

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
"""What Linux calls algorithms otherwise than we do."""

_KNOWN: Final = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@contextmanager
def provided(algorithms: Iterable[str]) -> Iterator[dict[str, str]]:
    """Gives the kernel what it lacks of some algorithms, and takes it back at the end.

    Yields:
        What the kernel calls each of them. What neither it has nor eBPF is called as we do, and
        whoever uses it is told so.

    Raises:
        BpfError: If eBPF has an algorithm that the kernel lacks, and cannot give it.
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
