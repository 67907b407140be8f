"""Congestion control algorithms that Linux lacks, put into the running kernel by eBPF.

Each is a program of ``crates/bpf``, compiled and shipped as an object, and registered with the
kernel as a congestion control. From then on any program may choose it by name for a TCP or MPTCP
socket, with the socket option ``TCP_CONGESTION``. Here an algorithm has the name that it has in the
simulator, ``lia``; in the kernel it is `kernel_name`'s, ``db_lia``.

Objects of the user are named by their paths, ``./mine.o``; the kernel calls such an algorithm as
its program does.

A registration holds for the whole machine, in all its network namespaces. It ends with the process
that made it, however that ends, unless it is kept; connections that use it go on until they close.
"""

from __future__ import annotations

import errno
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dumbbell.bpf import libbpf
from dumbbell.bpf.objects_of_users import ObjectError, name_in, renamed
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OBJECTS = Path(__file__).parent / "objects"

_PINS = Path("/sys/fs/bpf/dumbbell")
_KNOWN = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_BTF = Path("/sys/kernel/btf/vmlinux")
_SUFFIX = ".bpf.o"
_NAME = re.compile(r"\w+", re.ASCII)
# How long the kernel may take to forget an algorithm, in seconds; it does so in the background.
_FORGETS = 2.0
# From <linux/capability.h>.
_CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_PERFMON": 38, "CAP_BPF": 39}


class BpfError(DumbbellError):
    """The kernel cannot be given an algorithm; the text says what is missing."""


class Entry(NamedTuple):
    """One algorithm: whether the kernel has it at present, and whether it stays until `unload`."""

    name: str
    kernel_name: str
    loaded: bool
    kept: bool


def names() -> list[str]:
    """The algorithms that there are."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in OBJECTS.glob(f"*{_SUFFIX}"))


def kernel_name(name: str) -> str:
    """What the kernel calls the algorithm, for TCP_CONGESTION."""
    return f"db_{name.replace('-', '_')}"


def known() -> set[str]:
    """The algorithms that the kernel has at present, its own included; empty if it is not Linux."""
    try:
        return set(_KNOWN.read_text().split())
    except OSError:
        return set()


def missing() -> str | None:
    """What this machine or this user lacks, in a sentence with the remedy; None if nothing."""
    if sys.platform != "linux":
        return f"eBPF is Linux's; this is {platform.system()}"
    if libbpf.library() is None:
        return (
            f"the library {libbpf.SONAME} is missing: install the package libbpf1 (Debian, Ubuntu) "
            "or libbpf (Fedora, Arch)"
        )
    if not _BTF.exists():
        return (
            f"the kernel does not describe its types ({_BTF} is missing): boot one that is built "
            "with CONFIG_DEBUG_INFO_BTF, as those of the distributions are"
        )
    status = Path("/proc/self/status").read_text().splitlines()
    effective = next((int(line.split()[1], 16) for line in status if "CapEff:" in line), 0)
    lacking = [name for name, bit in _CAPABILITIES.items() if not effective >> bit & 1]
    if lacking:
        return f"putting an algorithm into the kernel takes {', '.join(lacking)}: run this as root"
    return None


def available() -> bool:
    """Whether algorithms can be put into this machine's kernel, by this user."""
    return missing() is None


def entries() -> list[Entry]:
    """All algorithms, and which of them the kernel has; those of the user only if they are kept."""
    there = known()
    ours = [(name, kernel_name(name)) for name in names()]
    users = [(name, name) for name in sorted(_kept() - {*names()})]
    return [Entry(*called, called[1] in there, called[0] in _kept()) for called in ours + users]


class Loaded(ExitStack):
    """What holds algorithms in the kernel until it is closed."""

    kernel_names: Mapping[str, str]
    """What the kernel calls each of them, by the names that `load` was given."""


def load(names: Iterable[str], *, keep: bool = False, private: bool = False) -> Loaded:
    """Puts algorithms into the kernel; with `keep` they stay until `unload` or the next boot.

    With `private` the kernel has objects under names of this process, so that several builds of an
    algorithm are there side by side.

    `names` are algorithms of dumbbell, such as ``lia``, and paths of objects, such as ``./mine.o``.

    Those that it has already, by this process or another, are shared: the kernel forgets them when
    the last process that loaded them ends or closes them. What is returned holds them until it is
    closed, as by a ``with`` statement, or the process ends. After an error none is left.
    """
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        _check_loadable(name)
    if problem := missing():
        raise BpfError(f"{', '.join(wanted) or 'nothing'} cannot be loaded: {problem}")
    if keep:
        _mount()
    kernel_names = {}
    with Loaded() as links, ExitStack() as pins:
        for name in wanted:
            obtained = _obtain_object(name, private=private) if _is_path(name) else _obtain(name)
            link, kernel_names[name] = obtained
            links.callback(os.close, link)
            pin = _PINS / (kernel_names[name] if _is_path(name) else name)
            if keep and not _is_kept(pin.name):
                try:
                    libbpf.pin(link, pin)
                except OSError as error:
                    problem = f"{name} cannot be kept in {pin}: {error.strerror}"
                    raise BpfError(problem) from None
                pins.callback(pin.unlink)
        pins.pop_all()
        held = links.pop_all()
        held.kernel_names = kernel_names
        return held


def unload(names: Iterable[str]) -> None:
    """Takes kept algorithms out of the kernel; those of the user have the kernel's names.

    Waits until the kernel has forgotten them, at most two seconds: where a running process has
    loaded one too, it stays until that process ends.
    """
    wanted = list(names)
    for name in wanted:
        if not _is_kept(name):
            _check_name(name)
        pin = _PINS / name
        try:
            pin.unlink()
        except FileNotFoundError:
            why = "is not loaded"
            if kernel_name(name) in known():
                why = "is not kept: a running process loaded it, with which it ends"
            raise BpfError(f"{name} {why}") from None
        except OSError as error:
            problem = f"{name} cannot be unloaded: removing {pin} failed: {error.strerror}"
            raise BpfError(f"{problem}; run this as root") from None
    deadline = time.monotonic() + _FORGETS
    called = _kernel_names(wanted)
    while called & known() and time.monotonic() < deadline:
        time.sleep(0.01)


def _kernel_names(kept: Iterable[str]) -> set[str]:
    """What the kernel calls kept algorithms, of dumbbell and of the user."""
    ours = names()
    return {kernel_name(name) if name in ours else name for name in kept}


def _check_name(name: str) -> None:
    if name not in names():
        there = ", ".join(sorted({*names(), *_kept()}))
        raise BpfError(f'no eBPF algorithm is called "{name}"; there are {there}')


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(".o")


def _check_loadable(name: str) -> None:
    if not _is_path(name):
        _check_name(name)
    elif not Path(name).is_file():
        raise BpfError(f"{name} cannot be loaded: there is no such file")


def _kept() -> set[str]:
    """The kept algorithms; none where the folder may not be looked at."""
    try:
        return {pin.name for pin in _PINS.iterdir()}
    except OSError:
        return set()


def _is_kept(name: str) -> bool:
    return name in _kept()


def _obtain(name: str) -> tuple[int, str]:
    """A link of the algorithm, the one that there is or else a new one; the kernel's name."""
    its_map, called = name.replace("-", "_"), kernel_name(name)
    try:
        if called in known() and (link := libbpf.find(its_map)) is not None:
            return link, called
        return libbpf.register(OBJECTS / f"{name}{_SUFFIX}"), called
    except OSError as error:
        if error.errno == errno.EEXIST and (link := libbpf.find(its_map)) is not None:
            return link, called
        raise _refusal(name, error) from None


def _obtain_object(path: str, *, private: bool) -> tuple[int, str]:
    """A link of the algorithm of an object, and the name that the kernel has it under."""
    try:
        content = Path(path).read_bytes()
        called = name_in(content)
    except OSError as error:
        raise BpfError(f"{path} cannot be read: {error.strerror}") from None
    except ObjectError as error:
        raise BpfError(f"{path} cannot be loaded: {error}") from None
    if private:
        called = f"{called[:10]}_{os.urandom(2).hex()}"
    elif not _NAME.fullmatch(called):
        valid = 'write letters, digits and "_"'
        raise BpfError(f'{path} cannot be loaded: its .name is "{called}"; {valid}')
    elif called in known() or called in names():
        owner = "one of dumbbell's" if called in names() else "one that the kernel has"
        why = f'its .name is "{called}", as of {owner}'
        raise BpfError(f"{path} cannot be loaded: {why}; choose another one")
    with tempfile.NamedTemporaryFile(suffix=".o") as copy:
        copy.write(renamed(content, called))
        copy.flush()
        try:
            return libbpf.register(Path(copy.name)), called
        except OSError as error:
            raise _refusal(path, error) from None


def _refusal(name: str, error: OSError) -> BpfError:
    why = (
        f"the kernel refuses it ({error.strerror}); it takes Linux 6.10 or newer with "
        f"CONFIG_BPF_JIT (struct_ops) and CONFIG_MPTCP, this is Linux {platform.release()}"
    )
    if said := libbpf.reason():
        why = f"the kernel refuses it: {said}; DUMBBELL_BPF_LOG=1 in the environment shows it all"
    if error.errno == errno.EPERM:
        why = f"the kernel does not permit it ({error.strerror}): run this as root, outside of "
        why += "containers and user namespaces"
    elif error.errno == errno.EEXIST:
        why = "the kernel has another algorithm of that name, or is being given it; try again"
    return BpfError(f"{name} cannot be loaded: {why}")


def _mount() -> None:
    """Makes the folder of pins, with a BPF file system below it, as bpftool does."""
    root = _PINS.parent
    if not os.path.ismount(root):
        mount = ["mount", "-t", "bpf", "bpf", str(root)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BpfError(
                f"algorithms are kept in a BPF file system at {root}, which is not mounted and "
                f"cannot be: {done.stderr.strip()}; mount it as root: {' '.join(mount)}"
            )
    try:
        _PINS.mkdir(exist_ok=True)
    except OSError as error:
        raise BpfError(f"{_PINS} cannot be made: {error.strerror}; run this as root") from None
