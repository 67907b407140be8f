"""The packets of a capture that dumbbell wrote (pcapng, draft-ietf-opsawg-pcapng), TCP's alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SECTION, _PACKET = 0x0A0D0D0A, 6
_TCP: Final = 6
_SACK: Final = 5
_SYN, _ACK = 0x02, 0x10
_WRAP: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Packet:
    """A TCP packet as an end of its flow saw it.

    Attributes:
        at: When, ns.
        flow: The number of its flow, in the order of the experiment.
        of_sender: Whether it goes from the sender of data to the receiver.
        size: Bytes, IP header included.
        payload: Bytes of data.
        first: The number of its first byte; 0 is that of the SYN.
        acknowledged: Up to where it acknowledges, on the same scale.
        blocks: What it acknowledges beyond (SACK), begin and end.
    """

    at: int
    flow: int
    of_sender: bool
    size: int
    payload: int
    first: int
    acknowledged: int
    blocks: tuple[tuple[int, int], ...]


def packets(path: Path) -> Iterator[Packet]:
    """The TCP packets of a capture, in order."""
    data = path.read_bytes()
    order, place = "<", 0
    numbers: dict[tuple[int, bool], _Unwrap] = {}
    while place + 12 <= len(data):
        if struct.unpack_from("<I", data, place)[0] == _SECTION:
            order = "<" if data[place + 8 : place + 12] == b"\x4d\x3c\x2b\x1a" else ">"
        kind, length = struct.unpack_from(f"{order}II", data, place)
        if kind == _PACKET:
            high, low, kept = struct.unpack_from(f"{order}III", data, place + 12)
            packet = data[place + 28 : place + 28 + kept]
            if packet[9] == _TCP:
                yield _packet((high << 32) | low, packet, numbers)
        place += length


class _Unwrap:
    """Sequence numbers of 32 bits as bytes since the first; neighbours are less than 2^31 apart."""

    def __init__(self, first: int) -> None:
        self.base = first
        self.last = 0

    def __call__(self, number: int) -> int:
        ahead = (number - self.base - self.last) % _WRAP
        found = self.last + (ahead if ahead < _WRAP // 2 else ahead - _WRAP)
        self.last = max(self.last, found)
        return found


def _packet(at: int, data: bytes, numbers: dict[tuple[int, bool], _Unwrap]) -> Packet:
    size = struct.unpack_from(">H", data, 2)[0]
    source, header = data[12:16], data[20:]
    of_sender = source[1] == 0  # senders are 10.0.n.n, receivers 10.1.n.n
    flow = int.from_bytes(source[2:4], "big")
    first, acked = struct.unpack_from(">II", header, 4)
    length, flags = (header[12] >> 4) * 4, header[13]
    if flags & _SYN:
        numbers[flow, of_sender] = _Unwrap(first)
    mine = numbers.setdefault((flow, of_sender), _Unwrap(first))
    theirs = numbers.setdefault((flow, not of_sender), _Unwrap(acked))
    return Packet(
        at,
        flow,
        of_sender,
        size,
        size - 20 - length,
        mine(first),
        theirs(acked) if flags & _ACK else 0,
        tuple((theirs(low), theirs(high)) for low, high in _blocks(header[20:length])),
    )


def _blocks(options: bytes) -> Iterator[tuple[int, int]]:
    place = 0
    while place < len(options) and options[place]:
        if options[place] == 1:
            place += 1
            continue
        length = options[place + 1]
        if options[place] == _SACK:
            yield from struct.iter_unpack(">II", options[place + 2 : place + length])
        place += length
