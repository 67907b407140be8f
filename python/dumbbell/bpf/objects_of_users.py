"""eBPF objects of users: the name of their algorithm, and copies with another name."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_BPF_MACHINE: Final = 247
"""EM_BPF of <elf.h>."""

_HOLDERS: Final = (".struct_ops", ".struct_ops.link")
"""The sections that hold a `struct tcp_congestion_ops`."""

_NAME: Final = re.compile(rb"[!-~]{1,15}\0")
"""The member `name`: the only text in such a section, as the functions' addresses are relocated."""

_COMPILE: Final = "compile it with clang -O2 -g -target bpf -c"


class ObjectError(ValueError):
    """What is wrong with an object, and what would be right."""


def name_in(content: bytes) -> str:
    """The `name` of the algorithm of an object.

    Raises:
        ObjectError: If it is no eBPF object, or has no algorithm or several.
    """
    return _place(content)[1]


def renamed(content: bytes, name: str) -> bytes:
    """A copy of an object whose algorithm has another name, of at most 15 characters."""
    at, _ = _place(content)
    return content[:at] + name.encode().ljust(16, b"\0") + content[at + 16 :]


def _place(content: bytes) -> tuple[int, str]:
    """Where the name stands, and the name."""
    try:
        found = [
            (start + match.start(), match.group()[:-1].decode())
            for name, start, end in _sections(content)
            if name in _HOLDERS
            for match in _NAME.finditer(content[start:end])
        ]
    except (struct.error, ValueError, IndexError):
        raise ObjectError(f"it is no eBPF object; {_COMPILE}") from None
    if len(found) != 1:
        has = "has no congestion control" if not found else "has several congestion controls"
        raise ObjectError(f"it {has}; one struct tcp_congestion_ops in .struct_ops is one")
    return found[0]


def _sections(content: bytes) -> Iterator[tuple[str, int, int]]:
    """Name, start and end of each section of a 64-bit ELF file for eBPF."""
    if content[:5] != b"\x7fELF\x02":
        raise ValueError
    order = "<" if content[5] == 1 else ">"
    (machine,) = struct.unpack_from(f"{order}H", content, 18)
    if machine != _BPF_MACHINE:
        raise ValueError
    (table,) = struct.unpack_from(f"{order}Q", content, 40)
    size, count, names = struct.unpack_from(f"{order}3H", content, 58)
    # name, type, flags, address, offset, size
    rows = [struct.unpack_from(f"{order}IIQQQQ", content, table + size * n) for n in range(count)]
    texts = rows[names][4]
    for name, _, _, _, start, length in rows:
        end = content.index(b"\0", texts + name)
        yield content[texts + name : end].decode(), start, start + length
