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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

SONAME = "libbpf.so.1"

_STRUCT_OPS_MAP = 26
_STRUCT_OPS_ATTACH = 44
_STRUCT_OPS_LINK = 9
_F_LINK = 1 << 13


def _pointer(result: int | None, *_: object) -> int:
    """The result of a function that returns a pointer; raises `OSError` if it is NULL."""
    if not result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def _status(result: int, *_: object) -> int:
    """The result of a function that returns a negative error number; raises `OSError` if it is."""
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


_SIGNATURES: dict[str, tuple[Any, list[Any], Any]] = {
    "libbpf_set_print": (c_void_p, [c_void_p], None),
    "bpf_object__open_file": (c_void_p, [c_char_p, c_void_p], _pointer),
    "bpf_object__load": (c_int, [c_void_p], _status),
    "bpf_object__close": (None, [c_void_p], None),
    "bpf_object__next_map": (c_void_p, [c_void_p, c_void_p], None),
    "bpf_map__type": (c_int, [c_void_p], None),
    "bpf_map__fd": (c_int, [c_void_p], None),
    "bpf_map__set_map_flags": (c_int, [c_void_p, c_uint32], _status),
    "bpf_map__attach_struct_ops": (c_void_p, [c_void_p], _pointer),
    "bpf_link__fd": (c_int, [c_void_p], None),
    "bpf_link__disconnect": (None, [c_void_p], None),
    "bpf_link__destroy": (c_int, [c_void_p], None),
    "bpf_link_create": (c_int, [c_int, c_int, c_int, c_void_p], _status),
    "bpf_link_get_next_id": (c_int, [c_uint32, c_void_p], None),
    "bpf_link_get_fd_by_id": (c_int, [c_uint32], None),
    "bpf_map_get_fd_by_id": (c_int, [c_uint32], None),
    "bpf_obj_get_info_by_fd": (c_int, [c_int, c_void_p, c_void_p], _status),
    "bpf_obj_pin": (c_int, [c_int, c_char_p], _status),
}
"""Result, arguments, and what checks the result."""


_said: list[str] = []
"""What libbpf warned of since `register` began."""


def _keep(level: int, form: bytes, arguments: int) -> int:
    """Keeps a warning; debug messages and information pass by."""
    if level == 0:
        text = ctypes.create_string_buffer(1 << 16)
        ctypes.CDLL(None).vsnprintf(text, len(text), form, c_void_p(arguments))
        _said.append(text.value.decode(errors="replace").strip().removeprefix("libbpf: "))
    return 0


_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)(_keep)


def reason() -> str:
    """Why libbpf or the kernel's verifier refused the last object, in a line; empty if unknown."""
    text = "\n".join(_said)
    log = text.partition("BEGIN PROG LOAD LOG --")[2].partition("-- END PROG LOAD LOG")[0]
    lines = [line.strip() for line in (log or text).splitlines()]
    told = [line for line in lines if line and not line.startswith("processed ")]
    return (told[-1] if log else told[0]) if told else ""


@cache
def library() -> Any:
    """The library, which is silent unless DUMBBELL_BPF_LOG is set; None where there is none."""
    try:
        libbpf = ctypes.CDLL(SONAME, use_errno=True)
        for name, (result, arguments, check) in _SIGNATURES.items():
            function = getattr(libbpf, name)
            function.restype, function.argtypes = result, arguments
            if check is not None:
                function.errcheck = check
    except (OSError, AttributeError):
        return None
    if not os.environ.get("DUMBBELL_BPF_LOG"):
        libbpf.libbpf_set_print(ctypes.cast(_PRINT, c_void_p))
    return libbpf


def register(path: Path) -> int:
    """Registers the congestion control of the object at `path`; `library` is there.

    Returns a descriptor of the link. Once that is closed, here and in every pin, the kernel forgets
    the algorithm; connections that use it go on. Raises `OSError` if the kernel, or libbpf, refuses
    it.
    """
    libbpf = library()
    _said.clear()
    loaded, ops = libbpf.bpf_object__open_file(os.fsencode(path), None), None
    try:
        while ops := libbpf.bpf_object__next_map(loaded, ops):
            if libbpf.bpf_map__type(ops) == _STRUCT_OPS_MAP:
                break
        else:
            raise OSError(0, "the object has no congestion control")
        libbpf.bpf_map__set_map_flags(ops, _F_LINK)
        libbpf.bpf_object__load(loaded)
        return _attach(libbpf, ops)
    finally:
        libbpf.bpf_object__close(loaded)


def find(name: str) -> int | None:
    """A descriptor of the link of a registered `struct tcp_congestion_ops`, by name, or None."""
    libbpf, number = library(), c_uint32(0)
    while libbpf.bpf_link_get_next_id(number, ctypes.byref(number)) == 0:
        link: int = libbpf.bpf_link_get_fd_by_id(number)
        if link < 0:
            continue
        # struct bpf_link_info: type, id, program, padding, map; struct bpf_map_info: six, the name.
        kind, *_, its_map = struct.unpack_from("5I", _info(libbpf, link))
        if kind == _STRUCT_OPS_LINK and _map_name(libbpf, its_map) == name:
            return link
        os.close(link)
    return None


def pin(link: int, path: Path) -> None:
    """Keeps the link beyond this process, in a file of a BPF file system; raises `OSError`."""
    library().bpf_obj_pin(link, os.fsencode(path))


def _attach(libbpf: Any, ops: int) -> int:
    link = libbpf.bpf_map__attach_struct_ops(ops)
    descriptor: int = libbpf.bpf_link__fd(link)
    if descriptor != libbpf.bpf_map__fd(ops):
        own = os.dup(descriptor)
        libbpf.bpf_link__destroy(link)
        return own
    # Before 1.2 libbpf knew no links of struct_ops: it only filled the map.
    libbpf.bpf_link__disconnect(link)
    libbpf.bpf_link__destroy(link)
    return int(libbpf.bpf_link_create(descriptor, 0, _STRUCT_OPS_ATTACH, None))


def _map_name(libbpf: Any, number: int) -> str | None:
    descriptor = libbpf.bpf_map_get_fd_by_id(number)
    if descriptor < 0:
        return None
    try:
        (name,) = struct.unpack_from("24x16s", _info(libbpf, descriptor))
    finally:
        os.close(descriptor)
    return str(name.rstrip(b"\0").decode())


def _info(libbpf: Any, descriptor: int) -> bytes:
    info = ctypes.create_string_buffer(256)
    size = c_uint32(len(info))
    libbpf.bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(size))
    return info.raw
