"""The functions of libbpf that register a congestion control, under their C names.

libbpf reads an object, fits it to the running kernel by BTF and loads it. It comes with every
distribution's ``ip``, so nothing has to be built here. From 1.0 on its ABI is stable (``.so.1``).
"""

from __future__ import annotations

import ctypes
import os
import struct
from ctypes import c_char_p, c_int, c_uint32, c_void_p
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SONAME = "libbpf.so.1"

_STRUCT_OPS_MAP = 26
_STRUCT_OPS_ATTACH = 44
_STRUCT_OPS_LINK = 9
_F_LINK = 1 << 13

_SIGNATURES = {
    "libbpf_set_print": (c_void_p, [c_void_p]),
    "bpf_object__open_file": (c_void_p, [c_char_p, c_void_p]),
    "bpf_object__load": (c_int, [c_void_p]),
    "bpf_object__close": (None, [c_void_p]),
    "bpf_object__next_map": (c_void_p, [c_void_p, c_void_p]),
    "bpf_map__type": (c_int, [c_void_p]),
    "bpf_map__fd": (c_int, [c_void_p]),
    "bpf_map__set_map_flags": (c_int, [c_void_p, c_uint32]),
    "bpf_map__attach_struct_ops": (c_void_p, [c_void_p]),
    "bpf_link__fd": (c_int, [c_void_p]),
    "bpf_link__disconnect": (None, [c_void_p]),
    "bpf_link__destroy": (c_int, [c_void_p]),
    "bpf_link_create": (c_int, [c_int, c_int, c_int, c_void_p]),
    "bpf_link_get_next_id": (c_int, [c_uint32, c_void_p]),
    "bpf_link_get_fd_by_id": (c_int, [c_uint32]),
    "bpf_map_get_fd_by_id": (c_int, [c_uint32]),
    "bpf_obj_get_info_by_fd": (c_int, [c_int, c_void_p, c_void_p]),
    "bpf_obj_pin": (c_int, [c_int, c_char_p]),
}


@cache
def library() -> ctypes.CDLL | None:
    """The library, silenced unless DUMBBELL_BPF_LOG is set; None where there is none."""
    try:
        libbpf = ctypes.CDLL(SONAME, use_errno=True)
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(libbpf, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError):
        return None
    if not os.environ.get("DUMBBELL_BPF_LOG"):
        libbpf.libbpf_set_print(None)
    return libbpf


def register(path: Path) -> int:
    """Registers the congestion control of the object at `path`.

    Returns:
        A descriptor of the link. Once that is closed, here and in every pin, the kernel forgets the
        algorithm; connections that use it go on.

    Raises:
        OSError: If the kernel, or libbpf, refuses it.
    """
    libbpf = library()
    if libbpf is None:
        raise OSError(0, f"{SONAME} is missing")
    loaded = _checked(libbpf.bpf_object__open_file(os.fsencode(path), None))
    try:
        ops = _struct_ops(libbpf, loaded)
        _checked_status(libbpf.bpf_map__set_map_flags(ops, _F_LINK))
        _checked_status(libbpf.bpf_object__load(loaded))
        return _attach(libbpf, ops)
    finally:
        libbpf.bpf_object__close(loaded)


def find(name: str) -> int | None:
    """A descriptor of the link of a congestion control that is registered; None if there is none.

    Args:
        name: What its program calls its `struct tcp_congestion_ops`.
    """
    libbpf = library()
    assert libbpf is not None, "the caller has asked for what is missing"
    number = c_uint32(0)
    while libbpf.bpf_link_get_next_id(number, ctypes.byref(number)) == 0:
        link = libbpf.bpf_link_get_fd_by_id(number)
        if link < 0:
            continue
        # struct bpf_link_info: type, id, program, padding, map; struct bpf_map_info: six, the name.
        kind, *_, its_map = struct.unpack_from("5I", _info(libbpf, link))
        if kind == _STRUCT_OPS_LINK and _map_name(libbpf, its_map) == name:
            return int(link)
        os.close(link)
    return None


def pin(link: int, path: Path) -> None:
    """Keeps the link beyond this process, in a file of a BPF file system.

    Raises:
        OSError: If that cannot be.
    """
    libbpf = library()
    assert libbpf is not None, "a link comes from libbpf"
    _checked_status(libbpf.bpf_obj_pin(link, os.fsencode(path)))


def _attach(libbpf: ctypes.CDLL, ops: int) -> int:
    link = _checked(libbpf.bpf_map__attach_struct_ops(ops))
    descriptor: int = libbpf.bpf_link__fd(link)
    if descriptor != libbpf.bpf_map__fd(ops):
        own = os.dup(descriptor)
        libbpf.bpf_link__destroy(link)
        return own
    # Before 1.2 libbpf knew no links of struct_ops: it only filled the map.
    libbpf.bpf_link__disconnect(link)
    libbpf.bpf_link__destroy(link)
    return _checked_status(libbpf.bpf_link_create(descriptor, 0, _STRUCT_OPS_ATTACH, None))


def _struct_ops(libbpf: ctypes.CDLL, loaded: int) -> int:
    ops = None
    while ops := libbpf.bpf_object__next_map(loaded, ops):
        if libbpf.bpf_map__type(ops) == _STRUCT_OPS_MAP:
            return int(ops)
    raise OSError(0, "the object has no congestion control")


def _map_name(libbpf: ctypes.CDLL, number: int) -> str | None:
    descriptor = libbpf.bpf_map_get_fd_by_id(number)
    if descriptor < 0:
        return None
    try:
        (name,) = struct.unpack_from("24x16s", _info(libbpf, descriptor))
    finally:
        os.close(descriptor)
    return str(name.rstrip(b"\0").decode())


def _info(libbpf: ctypes.CDLL, descriptor: int) -> bytes:
    info = ctypes.create_string_buffer(256)
    size = c_uint32(len(info))
    _checked_status(libbpf.bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(size)))
    return info.raw


def _checked(pointer: int | None) -> int:
    if not pointer:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pointer


def _checked_status(status: int) -> int:
    if status < 0:
        raise OSError(-status, os.strerror(-status))
    return status
