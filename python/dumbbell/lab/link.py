"""A scenario as a link: compressed into the fragment of an address, which no server sees."""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dumbbell import _core
from dumbbell.errors import DumbbellError

if TYPE_CHECKING:
    from dumbbell.experiment.model import Experiment, Flow

MOST_BYTES: Final = 2_000_000
"""The size of the largest scenario in a link."""

_MARK: Final = "lab=1."
"""What stands before the packed scenario; the number is the version of the format."""

_SHAPE: Final = "copy the whole link from the laboratory's Share, and put it in single quotes"


@dataclass(frozen=True)
class Shared:
    """What a link holds.

    Attributes:
        toml: The text of the experiment file.
        code: Algorithms in JavaScript; only the laboratory runs them.
        traces: The texts of trace files by their names.
        beside: The text of the experiment file that it is compared with.
    """

    toml: str
    code: str = ""
    traces: dict[str, str] = field(default_factory=dict)
    beside: str = ""


_TRANSPORTS: Final = {"tcp", "udt", "udp", "rtp"}
"""The transports that the page has."""

_LONG: Final = 4000
"""A longer fragment than this, such as one with a trace, is not put into reports."""


def fragment_of(experiment: Experiment) -> str:
    """The fragment of an experiment with its first seed, so that the page has a result soon.

    Empty if the page cannot run it, because an algorithm is in Python or it lacks a flow's
    algorithm or transport, or if it would be long.
    """
    if not all(map(_has, experiment.flows)):
        return ""
    seeds = experiment.seeds
    first = experiment.replace(seeds=1 if isinstance(seeds, int) else seeds[:1])
    fragment = to_fragment(Shared(first.to_toml()))
    return fragment if len(fragment) <= _LONG else ""


def _has(flow: Flow) -> bool:
    """Whether the page has the algorithm and the transport of a flow."""
    name = flow.cc.partition("(")[0].strip()
    is_there = ":" not in flow.cc and name not in _core.algorithms_not_in_page()
    return is_there and flow.transport in _TRANSPORTS


def is_link(text: str) -> bool:
    """Whether a text is a link, not the name of a file."""
    return "#lab=" in text


def to_fragment(shared: Shared) -> str:
    """The fragment of a scenario, without the ``#``."""
    content: dict[str, Any] = {"toml": shared.toml}
    content |= {"code": shared.code} if shared.code.strip() else {}
    content |= {"traces": shared.traces} if shared.traces else {}
    content |= {"beside": shared.beside} if shared.beside else {}
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(text.encode()) + packer.flush()
    return _MARK + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def read_link(link: str) -> Shared:
    """The scenario of a link.

    Raises:
        DumbbellError: If the link is damaged, too large, or of another version.
    """
    fragment = link.partition("#")[2]
    if not fragment.startswith(_MARK):
        raise DumbbellError(f"the link is of another version of the laboratory; {_SHAPE}")
    text = re.match(r"[\w-]*", fragment.removeprefix(_MARK), re.ASCII)
    content = _unpack(text.group() if text else "")
    toml: Any = content.get("toml")
    code = content.get("code", "")
    traces, beside = content.get("traces", {}), content.get("beside", "")
    texts = [toml, code, beside, *(traces.values() if isinstance(traces, dict) else [None])]
    if not all(isinstance(text, str) for text in texts):
        raise DumbbellError(f"the link holds no scenario; {_SHAPE}")
    return Shared(toml, code, traces, beside)


def _unpack(text: str) -> dict[str, Any]:
    damaged = DumbbellError(f"the link is damaged: a part is missing or was changed; {_SHAPE}")
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        data = unpacker.decompress(packed, MOST_BYTES + 1)
    except (binascii.Error, zlib.error):
        raise damaged from None
    if len(data) > MOST_BYTES:
        most = f"{MOST_BYTES // 10**6} MB, the most that a scenario may have"
        raise DumbbellError(f"the link holds more than {most}; save it as a file instead")
    try:
        content = json.loads(data.decode()) if unpacker.eof else None
    except (ValueError, RecursionError):
        raise damaged from None
    if content is None:
        raise damaged
    return content if isinstance(content, dict) else {}
