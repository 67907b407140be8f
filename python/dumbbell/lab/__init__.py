"""The laboratory as a page: the simulator in a browser, scenarios as links.

``lab.html`` is built from ``web/`` and ``crates/wasm`` by ``make lab``. It makes no request, so it
opens from a disk as well as from a server.
"""

from __future__ import annotations

from dumbbell.lab.link import Shared, fragment_of, is_link, read_link, to_fragment
from dumbbell.lab.page import NAME, page_with
from dumbbell.lab.server import serve

__all__ = [
    "NAME",
    "Shared",
    "fragment_of",
    "is_link",
    "page_with",
    "read_link",
    "serve",
    "to_fragment",
]
