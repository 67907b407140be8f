#!/usr/bin/env python3
"""Makes `.venv`, from which everything in this project runs, and builds the engine into it.

Needs Python 3.11 with its module `venv`, and nothing else. What the machine lacks is fetched:
Python packages as locked in `requirements.lock`, a Rust toolchain, a linker. A step whose inputs
have not changed since it last succeeded is skipped, so running this again costs nothing.

Nothing is written outside `.venv`, `target` and, by Rust and pip, `~/.cargo`, `~/.rustup` and pip's
cache. The one exception: run as root on Debian or Ubuntu, missing parts come from apt.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Version = tuple[int, ...]

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / "bin"

# The Rust that rustup installs if there is none that is new enough. All from `rust-version` in
# Cargo.toml on can build; the code passes the lints of this one.
RUST = "1.95.0"
RUST_NEEDED = ["cargo", "rustc"]
RUST_TOOLS = ["cargo", "rustc", "rustdoc", "rustfmt", "cargo-fmt", "cargo-clippy", "clippy-driver"]

# Replace a C compiler and an archiver. The names of targets that Rust's build scripts give are
# unknown to Zig; without one it builds for this machine.
ZIG = {
    "cc": """#!/bin/sh
for argument do
  shift
  case $argument in --target=*) ;; *) set -- "$@" "$argument" ;; esac
done
exec "{python}" -m ziglang cc "$@"
""",
    "ar": """#!/bin/sh
exec "{python}" -m ziglang ar "$@"
""",
}

# The variable is rustup's own and may name a mirror.
RUSTUP = os.environ.get("RUSTUP_UPDATE_ROOT", "https://static.rust-lang.org/rustup")


class SetupError(Exception):
    """Something that only the person at the machine can put right; the text says how."""


def say(text: str) -> None:
    """Prints what is being done."""
    print(f"setup: {text}", flush=True)


def run(*command: str | Path, stdout: int | None = None) -> None:
    """Runs a command in the project's folder, with the tools of `.venv` first on PATH."""
    subprocess.run(command, cwd=ROOT, env=tools_first(), stdout=stdout, check=True)


def tools_first() -> dict[str, str]:
    """The environment with the tools of `.venv` first on PATH."""
    return os.environ | {"PATH": os.pathsep.join([str(BIN), os.environ["PATH"]])}


def attempt(*command: str | Path, chatty: bool = True) -> bool:
    """Runs a command that may fail; returns whether it succeeded."""
    try:
        run(*command, stdout=None if chatty else subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        say(f"that did not work ({error})")
        return False
    return True


def answer_of(*command: str | Path) -> str | None:
    """What a command prints; None if it fails."""
    try:
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


@functools.cache
def apt_usable() -> bool:
    """Whether Debian packages can be installed: there is apt, we are root, its lists are fresh."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return False
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    return attempt("apt-get", "update", "-qq")


def apt_install(packages: Sequence[str]) -> bool:
    """Installs Debian packages if that is possible; returns whether it succeeded."""
    if not apt_usable():
        return False
    say(f"installing {' '.join(packages)} with apt")
    options = ["-qq", "--yes", "--no-install-recommends"]
    return attempt("apt-get", "install", *options, *packages, chatty=False)


class Step:
    """A step that is done when its inputs are what they were when it last succeeded."""

    def __init__(self, name: str, files: Iterable[Path], *facts: str) -> None:
        """The step of that name, which depends on the content of files and on facts."""
        digest = hashlib.sha256(repr(facts).encode())
        for file in sorted(files):
            digest.update(str(file.relative_to(ROOT)).encode() + b"\0")
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        self.stamp = VENV / f".{name}.stamp"
        self.digest = digest.hexdigest()

    def done(self) -> bool:
        """Whether there is nothing to do."""
        return self.stamp.is_file() and self.stamp.read_text() == self.digest

    def finish(self) -> None:
        """Notes that it succeeded."""
        self.stamp.write_text(self.digest)


def ensure_python() -> None:
    """Continues in a newer Python if this one is too old and there is another."""
    if sys.version_info >= (3, 11):  # noqa: UP036 (an older one may well be what runs this)
        return
    for minor in range(30, 10, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, *sys.argv])
    raise SetupError(
        f"Python 3.11 or newer is needed and this is {platform.python_version()}. Install one "
        "(any python3.11, python3.12, ... on PATH is found), then run the same command again."
    )


def make_venv() -> None:
    """An empty environment with pip, remade when the Python that it stands on has changed."""
    step = Step("venv", [], platform.python_version(), sys.base_prefix)
    if step.done() and (BIN / "python").exists():
        return
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Not sys.executable: that may be in the very environment that is about to be replaced.
    base = Path(sys.base_prefix) / "bin" / f"python{version}"
    python = base if base.exists() else Path(sys.executable)
    say(f"making {VENV.name} with Python {version}")

    # Debian keeps pip's installer out of its python3 package.
    if not importlib.util.find_spec("ensurepip"):
        apt_install([f"python{version}-venv"])
    if answer_of(python, "-c", "import ensurepip") is None:
        raise SetupError(
            "This Python has no ensurepip, so it cannot make an environment with pip. Install the "
            f"package python{version}-venv (as root: apt install python{version}-venv), then run "
            "the same command again."
        )
    run(python, "-m", "venv", "--clear", VENV)
    step.finish()


def pip_install(*arguments: str | Path) -> None:
    """Runs the pip of `.venv`."""
    options = ["--quiet", "--disable-pip-version-check"]
    run(BIN / "python", "-m", "pip", "install", *options, *arguments)


def install_packages(lock: Path) -> None:
    """The Python packages of a lock file, each checked against its hash."""
    step = Step(lock.stem, [lock], (VENV / ".venv.stamp").read_text())
    if step.done():
        return
    say(f"installing the Python packages of {lock.name}")
    pip_install("--no-deps", "--require-hashes", "-r", lock)
    step.finish()


def ensure_linker() -> None:
    """A C compiler named `cc`, which Rust calls to link."""
    if shutil.which("cc") or (BIN / "cc").exists():
        return
    if apt_install(["gcc", "libc6-dev"]) and shutil.which("cc"):
        return
    if sys.platform != "linux":
        raise SetupError(
            "Rust needs a C compiler to link with and there is no `cc` on PATH. On macOS, run "
            "`xcode-select --install`; then run the same command again."
        )
    # Zig's compiler is one Python package that links anywhere and needs no root.
    say("no C compiler on PATH: linking with Zig's")
    install_packages(ROOT / "requirements-linker.lock")
    for tool, script in ZIG.items():
        wrapper = BIN / tool
        wrapper.write_text(script.format(python=BIN / "python"))
        wrapper.chmod(0o755)


def version_in(text: str | None) -> Version:
    """The first version number in a text; () if there is none."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", text or "")
    return tuple(map(int, found.groups())) if found else ()


def cargo_home() -> Path:
    """Where rustup puts the commands."""
    return Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "bin"


def find_rust(least: Version) -> Path | None:
    """The first folder of PATH, then of rustup's, whose cargo and rustc are new enough."""
    for folder in [*map(Path, os.get_exec_path()), cargo_home()]:
        if folder == BIN or not (folder / "cargo").exists():
            continue
        versions = [version_in(answer_of(folder / tool, "--version")) for tool in RUST_NEEDED]
        if all(version >= least for version in versions):
            return folder
    return None


def find_rustup() -> str | None:
    """The command that manages toolchains, if there is one."""
    return shutil.which("rustup") or shutil.which("rustup", path=str(cargo_home()))


def install_rust(least: Version) -> Path | None:
    """Rust by rustup, else by apt."""
    say(f"installing Rust {RUST} with rustup")
    components = ["--profile", "minimal", "--component", "clippy", "--component", "rustfmt"]
    rustup = find_rustup()
    if rustup:
        # The default toolchain is too old: leave it, and use another in this folder only.
        if attempt(rustup, "toolchain", "install", RUST, "--no-self-update", *components):
            attempt(rustup, "override", "set", RUST, "--path", ROOT)
    else:
        url = f"{RUSTUP}/dist/{rust_target()}/rustup-init"
        with tempfile.TemporaryDirectory() as folder:
            installer = Path(folder) / "rustup-init"
            try:
                with urllib.request.urlopen(url, timeout=60) as source:
                    installer.write_bytes(source.read())
                installer.chmod(0o755)
                options = ["-y", "--no-modify-path", "--default-toolchain", RUST, *components]
                attempt(installer, *options)
            except OSError as error:
                say(f"could not fetch {url} ({error})")
    found = find_rust(least)
    if found:
        return found
    # Debian has a second, newer Rust that it keeps for building browsers.
    usual, browsers = ["cargo", "rustc", "rustfmt", "rust-clippy"], ["cargo-web", "rustfmt-web"]
    for packages in (usual, browsers):
        if apt_offers(packages[0], least) and apt_install(packages):
            return find_rust(least)
    return None


def rust_target() -> str:
    """Rust's name of this machine."""
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())
    if sys.platform == "darwin":
        return f"{machine}-apple-darwin"
    return f"{machine}-unknown-linux-{'gnu' if platform.libc_ver()[0] == 'glibc' else 'musl'}"


def apt_offers(package: str, least: Version) -> bool:
    """Whether apt would install that package in a version that is new enough."""
    if not apt_usable():
        return False
    policy = answer_of("apt-cache", "policy", package) or ""
    return version_in(policy.partition("Candidate:")[2]) >= least


def ensure_rust() -> None:
    """A Rust toolchain, linked into `.venv/bin` so that one folder holds every tool."""
    import tomllib

    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    required = manifest["workspace"]["package"]["rust-version"]
    least = tuple(map(int, required.split(".")))
    folder = find_rust(least) or install_rust(least)
    if not folder:
        raise SetupError(
            f"Rust {required} or newer is needed and was not found on PATH or in {cargo_home()}; "
            "rustup could not be fetched to install it, and apt has none that is new enough (or "
            "needs root). Install Rust from https://rustup.rs, or any package that brings cargo "
            f"{required} or newer, then run the same command again."
        )
    step = Step("rust", [], str(folder), answer_of(folder / "cargo", "--version") or "")
    if step.done():
        return
    for tool in RUST_TOOLS:
        link = BIN / tool
        link.unlink(missing_ok=True)
        if (folder / tool).exists():
            link.symlink_to(folder / tool)
    # Building and running need no linters, so their absence is no error.
    rustup = find_rustup()
    complete = all(answer_of(BIN / "cargo", tool, "--version") for tool in ("clippy", "fmt"))
    if rustup and not complete:
        attempt(rustup, "component", "add", "clippy", "rustfmt")
    step.finish()


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Compiles the engine meanwhile, if there is none yet; `build_engine` takes what is there."""
    if any((ROOT / "python/dumbbell").glob("_core*.so")):
        yield
        return
    command = [BIN / "cargo", "build", "--release", "--locked", "--package", "dumbbell-py"]
    # Without output: `build_engine` repeats what fails.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ROOT, env=tools_first(), **quiet) as process:
        try:
            yield
        except BaseException:
            process.terminate()
            raise


def build_engine() -> None:
    """The engine, compiled with optimisation and installed into `.venv`."""
    sources = [ROOT / "Cargo.toml", ROOT / "Cargo.lock", ROOT / "pyproject.toml"]
    sources += [file for file in (ROOT / "crates").rglob("*") if file.suffix in {".rs", ".toml"}]
    stamps = [(VENV / f".{name}.stamp").read_text() for name in ("requirements", "rust")]
    step = Step("engine", sources, *stamps)
    if step.done() and any((ROOT / "python/dumbbell").glob("_core*.so")):
        return
    say("building the engine (the first time takes a few minutes)")
    settings = ["--config-settings", "build-args=--locked"]
    pip_install("--no-deps", "--no-build-isolation", *settings, "--editable", ".")
    step.finish()


def offer_test_peers() -> None:
    """Programs of others that tests use; without them tests are skipped, with the reason."""
    if sys.platform != "linux":
        return
    if not Path("/usr/include/udt/udt.h").is_file():
        apt_install(["g++", "libudt-dev"])
    if not (shutil.which("clang") and Path("/usr/include/bpf/bpf_helpers.h").is_file()):
        apt_install(["clang", "llvm", "libbpf-dev"])
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        apt_install(["chromium"])


def main() -> int:
    """Does every step in turn; returns the exit status."""
    try:
        if "--test-peers" in sys.argv[1:]:
            offer_test_peers()
            return 0
        ensure_python()
        make_venv()
        ensure_linker()
        ensure_rust()
        with compiling():
            install_packages(ROOT / "requirements.lock")
        build_engine()
    except SetupError as error:
        print(f"\nsetup: {error}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"\nsetup: this command failed, see above: {command}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
