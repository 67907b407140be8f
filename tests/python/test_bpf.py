"""Algorithms for the kernel: shipped as built, and driving real connections where they may."""

from __future__ import annotations

import importlib.util
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_docs import ROOT, blocks, terms
from test_testbed import why_not

import dumbbell
from dumbbell import Experiment, Flow, Link, bpf
from dumbbell.bpf.objects_of_users import ObjectError, name_in, renamed
from dumbbell.experiment.linux_algorithms import digest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Server = tuple[tuple[str, int], Callable[[], bytes]]

DUMBBELL = Path(sys.executable).with_name("dumbbell")
DOCUMENT = ROOT / "docs/reference/bpf.md"
DATA = bytes(range(256)) * 8192

in_kernel = pytest.mark.skipif(
    not bpf.available(), reason=f"the kernel is not ours: {bpf.missing()}"
)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Where a server listens for one connection, and what it got until that was closed."""
    got = bytearray()
    protocol = getattr(request, "param", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve() -> None:
            with listener.accept()[0] as connection:
                while part := connection.recv(1 << 20):
                    got.extend(part)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()

        def received() -> bytes:
            thread.join()
            return bytes(got)

        yield listener.getsockname(), received


def known() -> str:
    return Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text()


@pytest.fixture(scope="module")
def build() -> Any:
    """The script that compiles the programs."""
    spec = importlib.util.spec_from_file_location("build_bpf", ROOT / "scripts/bpf.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.fixture(scope="module")
def rebuilt(build: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The objects, compiled from the sources that are here."""
    if missing := build.lacking():
        pytest.skip(f"{', '.join(missing)} not found, so the programs are not built again")
    folder = tmp_path_factory.mktemp("objects")
    build.build(folder)
    return folder


def drive(name: str, server: Server) -> None:
    """Sends over a connection that the algorithm controls."""
    address, received = server
    kernel_name = bpf.kernel_name(name)
    is_others = kernel_name in known().split()
    with bpf.load([name]), socket.socket() as connection:
        chosen = kernel_name.encode()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, chosen)
        connection.connect(address)
        connection.sendall(DATA)
        used = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert used.rstrip(b"\0") == chosen
    assert received() == DATA
    assert is_others or kernel_name not in known().split()


def test_the_objects_are_of_the_sources_that_are_here(build: Any) -> None:
    assert build.RECORD.read_text() == build.digests(), "run `make bpf`"
    sources = {path.name.removesuffix(".bpf.c") for path in build.SOURCES.glob("*.bpf.c")}
    assert set(bpf.names()) == sources


def test_objects_tell_nothing_of_the_machine_that_built_them() -> None:
    for path in bpf.OBJECTS.glob("*.bpf.o"):
        assert str(ROOT.parent).encode() not in path.read_bytes()
        assert b"/crates/bpf/" not in path.read_bytes()


def test_the_same_compiler_makes_the_same_objects_again(build: Any, rebuilt: Path) -> None:
    made = {path.name: path.read_bytes() for path in rebuilt.iterdir()}
    shipped = {path.name: path.read_bytes() for path in bpf.OBJECTS.glob("*.bpf.o")}
    assert made.keys() == shipped.keys()
    if build.compiler() == build.COMPILER.read_text():
        assert made == shipped


@in_kernel
@pytest.mark.parametrize("name", bpf.names())
def test_an_object_that_is_built_anew_drives_a_connection(
    name: str, rebuilt: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bpf, "OBJECTS", rebuilt)
    drive(name, server)


def test_every_algorithm_is_documented_and_no_other() -> None:
    rows = [line.split("|")[1].strip() for line in DOCUMENT.read_text().splitlines() if "|" in line]
    assert set(bpf.names()) <= set(rows)
    assert not terms(DOCUMENT.read_text())


def test_names_fit_the_kernel() -> None:
    assert all(len(bpf.kernel_name(name)) <= 15 for name in bpf.names())


def test_an_unknown_algorithm_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(bpf.BpfError, match=r'no eBPF algorithm is called "vegas"; there are .*lia'):
        bpf.load(["vegas"])


def test_what_is_not_loaded_cannot_be_unloaded() -> None:
    command = [str(DUMBBELL), "bpf", "unload", "stcp"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "dumbbell: stcp is not loaded\n"


@in_kernel
@pytest.mark.parametrize("name", bpf.names())
def test_an_algorithm_drives_a_connection_and_is_gone_afterwards(name: str, server: Server) -> None:
    drive(name, server)


@in_kernel
@pytest.mark.parametrize("server", [socket.IPPROTO_MPTCP], indirect=True)
def test_the_documented_program_sends_over_multipath_tcp(server: Server) -> None:
    (host, port), received = server
    (program,) = (block for block in blocks(DOCUMENT, "python") if "IPPROTO_MPTCP" in block)
    with bpf.load(["lia"]):
        exec(program, {"host": host, "port": port, "data": DATA})
    assert received() == DATA


@pytest.fixture(scope="module")
def own_object(build: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The object of the program in the documentation."""
    if missing := build.lacking():
        pytest.skip(f"{', '.join(missing)} not found")
    folder = tmp_path_factory.mktemp("own")
    (program,) = blocks(DOCUMENT, "c")
    (folder / "mine.bpf.c").write_text(program)
    command = [*build.COMPILE, "-c", "mine.bpf.c", "-o", "mine.o"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "mine.o"


@in_kernel
def test_an_object_of_the_user_drives_a_connection(own_object: Path, server: Server) -> None:
    address, received = server
    with bpf.load([str(own_object)]) as loaded, socket.socket() as connection:
        assert loaded.kernel_names == {str(own_object): "mine"}
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"mine")
        connection.connect(address)
        connection.sendall(DATA)
    assert received() == DATA
    assert "mine" not in known().split()


@in_kernel
@pytest.mark.slow
def test_an_object_of_the_user_stays_until_it_is_unloaded(own_object: Path) -> None:
    bpf.load([str(own_object)], keep=True).close()
    try:
        assert bpf.entries()[-1] == bpf.Entry("mine", "mine", loaded=True, kept=True)
        with pytest.raises(bpf.BpfError, match=r'its \.name is "mine", as of one that the kernel'):
            bpf.load([str(own_object)])
    finally:
        bpf.unload(["mine"])
    assert "mine" not in known().split()


@in_kernel
@pytest.mark.alone
def test_flows_run_an_object_and_an_algorithm_that_is_loaded(own_object: Path) -> None:
    """The object's threshold after a loss is 0.7 of the window, Reno's is a half."""
    if lacking := why_not():
        pytest.skip(lacking)
    named = {"mine": f"linux:{own_object}", "reno": "linux:reno"}
    flows = [Flow(name=name, cc=cc, path=[name]) for name, cc in named.items()]
    links = [Link(name=name, rate="20 Mbit/s", delay="10 ms", queue="1 BDP") for name in named]
    result = dumbbell.run(Experiment(links=links, flows=flows, duration="5 s"), backend="linux")
    assert result.flows["cc"].to_list() == [flow.cc for flow in flows]
    assert "mine" not in known().split()
    assert result.experiment.sources == {f"linux:{own_object}": digest_of(own_object)}
    if result.meta["invalid"]:
        pytest.skip(str(result.meta["invalid"]))
    windows = result.series.group_by("flow").agg(pl.col("cwnd").tail(25).max(), pl.last("ssthresh"))
    kept = {flow: ssthresh / cwnd for flow, cwnd, ssthresh in windows.iter_rows()}
    assert kept == pytest.approx({"mine": 0.7, "reno": 0.5}, abs=0.05)


@in_kernel
def test_two_builds_of_an_algorithm_run_side_by_side(own_object: Path, tmp_path: Path) -> None:
    (tmp_path / "cubic.o").write_bytes(renamed(own_object.read_bytes(), "cubic"))
    objects = [str(own_object), str(tmp_path / "cubic.o")]
    with bpf.load(objects, private=True) as loaded:
        names = list(loaded.kernel_names.values())
        assert re.fullmatch(r"mine_[0-9a-f]{4} cubic_[0-9a-f]{4}", " ".join(names))
        assert set(names) <= bpf.known()
    assert not set(names) & bpf.known()
    with pytest.raises(bpf.BpfError, match=r'its \.name is "cubic", as of one that the kernel has'):
        bpf.load(objects[1:])


@in_kernel
def test_what_the_verifier_refuses_has_its_reason(build: Any, tmp_path: Path) -> None:
    if missing := build.lacking():
        pytest.skip(f"{', '.join(missing)} not found")
    (program,) = blocks(DOCUMENT, "c")
    wrong = program.replace("return window > 2 ? window : 2;", "return *(u32 *)(u64)window;")
    (tmp_path / "wrong.c").write_text(wrong)
    command = [*build.COMPILE, "-c", "wrong.c", "-o", "wrong.o"]
    subprocess.run(command, cwd=tmp_path, check=True)
    with pytest.raises(bpf.BpfError, match=r"the kernel refuses it: .* invalid mem access"):
        bpf.load([f"{tmp_path}/wrong.o"])


def test_the_name_of_a_shipped_object_is_read_and_replaced() -> None:
    content = (bpf.OBJECTS / "lia.bpf.o").read_bytes()
    assert name_in(content) == "db_lia"
    other = renamed(content, "another")
    assert (name_in(other), len(other)) == ("another", len(content))


@given(st.binary(max_size=300), st.integers(0, 3000))
def test_no_object_crashes_the_reader(noise: bytes, at: int) -> None:
    content = (bpf.OBJECTS / "lia.bpf.o").read_bytes()
    for damaged in (
        noise,
        b"\x7fELF\x02" + noise,
        content[:at] + noise + content[at + len(noise) :],
    ):
        with suppress(ObjectError):
            assert name_in(damaged)


def test_an_object_without_an_algorithm_is_refused() -> None:
    content = (bpf.OBJECTS / "lia.bpf.o").read_bytes()
    with pytest.raises(ObjectError, match="it has no congestion control"):
        name_in(content.replace(b".struct_ops\0", b".struct_no!\0"))


def test_a_path_without_an_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.o"
    with pytest.raises(bpf.BpfError, match="there is no such file"):
        bpf.load([str(path)])
    path.write_text("text")
    with pytest.raises(bpf.BpfError, match=r"mine\.o cannot be loaded: "):
        bpf.load([str(path)])


@in_kernel
@pytest.mark.slow
def test_what_the_command_loads_stays_until_it_is_unloaded() -> None:
    def run(*arguments: str) -> str:
        command = [str(DUMBBELL), "bpf", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout

    try:
        assert run("load", "bic") == "bic loaded; choose it with TCP_CONGESTION db_bic\n"
        assert "db_bic" in known().split()
        assert "was loaded already" in run("load", "bic")
        assert "until unloaded" in run("list")
    finally:
        assert run("unload", "bic") == "bic unloaded\n"
    assert "db_bic" not in known().split()


@in_kernel
def test_an_algorithm_stays_until_the_last_who_loaded_it_lets_go() -> None:
    first = bpf.load(["stcp"])
    second = bpf.load(["stcp"])
    first.close()
    assert "db_stcp" in known().split()
    second.close()
    assert "db_stcp" not in known().split()


@in_kernel
def test_a_process_that_is_killed_leaves_nothing() -> None:
    program = (
        "import os, signal; from dumbbell import bpf; guard = bpf.load(['hstcp']); "
        "assert any(entry.name == 'hstcp' and entry.loaded for entry in bpf.entries()); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    assert "db_hstcp" not in known().split()
