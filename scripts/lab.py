#!/usr/bin/env python3
"""Builds the laboratory, `web/` and `crates/wasm`, into one page that the Python package ships.

Needs npm, and Rust with the target wasm32-unknown-unknown (`rustup target add`). The command
wasm-bindgen is built once, into target/lab. Beside the page are the licences of what is in it and a
record of the sources that it was made of: a test compares them with those that are there.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "web"
BUILD = ROOT / "target/lab"
LAB = ROOT / "python/dumbbell/lab"
PAGE, RECORD, LICENCES = LAB / "lab.html", LAB / "sources.sha256", LAB / "lab.LICENSE"
TARGET = "wasm32-unknown-unknown"


def crates(of: str = "wasm") -> set[str]:
    """The folder of a crate, and of those of this project that are compiled into it."""
    manifest = tomllib.loads((ROOT / f"crates/{of}/Cargo.toml").read_text())
    needed = [name for name in manifest["dependencies"] if name.startswith("dumbbell-")]
    return {of}.union(*(crates(name.removeprefix("dumbbell-")) for name in needed))


PATTERNS = (
    "Cargo.toml",
    *(f"crates/{crate}/{part}" for crate in crates() for part in ("Cargo.toml", "src/**/*.*")),
    *("web/*.*", "web/src/**/*.*", "examples/*.toml", "python/dumbbell/papers/*/*.toml"),
    *(f"python/dumbbell/figures/{name}" for name in ("style.py", "styles.toml", "timeline.py")),
    *("python/dumbbell/display.toml", "docs/tutorials/lab.md"),
)
"""The sources of the page. Cargo.lock is not among them: most of its updates are of libraries that
the page does not have."""


def digests() -> str:
    """The SHA-256 of every source, as sha256sum prints them."""
    files = sorted({path for pattern in PATTERNS for path in ROOT.glob(pattern) if path.is_file()})
    return "".join(
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}\n"
        for path in files
    )


def build(page: Path) -> None:
    """Builds the page."""
    wasm = BUILD / "engine.wasm"
    compile_engine(wasm)
    write_made(BUILD / "made")
    run(["node", "build.mjs", str(wasm), str(page)], cwd=WEB)


def write_made(folder: Path) -> None:
    """Writes what the page takes from the package."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (("looks", looks()), ("metrics", metrics()), ("presets", presets())):
        (folder / f"{name}.json").write_text(json.dumps(content, indent=1))


def compile_engine(wasm: Path) -> None:
    """Compiles the engine for web pages, with its bindings beside it."""
    engine = BUILD / "engine"
    run(["cargo", "build", "--locked", "-p", "dumbbell-wasm", "--profile=wasm", "--target", TARGET])
    built = ROOT / "target" / TARGET / "wasm/dumbbell_wasm.wasm"
    options = ["--target=web", "--omit-default-module-path", "--out-name=engine"]
    run([str(bindgen()), str(built), "--out-dir", str(engine), *options])
    optimise = ["-O3", "--enable-bulk-memory", "--enable-nontrapping-float-to-int"]
    optimise += ["--enable-sign-ext", "--enable-mutable-globals", "--enable-reference-types"]
    optimise += ["--enable-multivalue", "--strip-debug", "--strip-producers"]
    command = [str(WEB / "node_modules/.bin/wasm-opt"), *optimise, "-o", str(wasm)]
    run([*command, str(engine / "engine_bg.wasm")])


def bindgen() -> Path:
    """The command wasm-bindgen, of the version that Cargo.lock has; built if it is missing."""
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    [version] = [one["version"] for one in lock["package"] if one["name"] == "wasm-bindgen"]
    command = BUILD / "bin/wasm-bindgen"
    known = (
        command.exists()
        and subprocess.run(
            [command, "--version"], check=True, capture_output=True, text=True
        ).stdout.split()[1:2]
    )
    if known != [version]:
        install = ["cargo", "install", "--quiet", "--root", str(BUILD), "--version", version]
        run([*install, "wasm-bindgen-cli"])
    return command


def looks() -> dict[str, object]:
    """The colours and names of `dumbbell.figures`."""
    from dumbbell import _core, figures
    from dumbbell.figures.timeline import BBR

    styles = {cc: vars(figures.style_of(cc)) for cc in _core.algorithms()}
    packets = list(dict.fromkeys(figures.style_of(cc).colour for cc in ("cubic", "reno", "bbr")))
    packets += [figures.style_of(cc).colour for cc in ("bbr3", "hstcp", "stcp", "htcp", "bic")]
    neutral = {"ink": figures.INK, "faint": figures.FAINT, "other": figures.FAINT}
    return {"styles": styles, "packets": packets, "states": BBR, **neutral}


def metrics() -> dict[str, dict[str, object]]:
    """How each metric is shown: title, unit, scale, fewest decimals."""
    from dumbbell import display

    shown = tomllib.loads(Path(display.__file__).with_suffix(".toml").read_text())
    usual = {"unit": "", "scale": 1, "decimals": 0}
    return {
        name: {key: said.get(key, usual.get(key)) for key in ("title", *usual)}
        for name, said in shown.items()
    }


ELSEWHERE = {"quic", "sabul", "rbudp", "tsunami"}
"""Transports that the page does not have."""


GROUPS = ("Basics", "Kinds of path", "Applications")
"""The groups of examples."""
APPLICATION = {"arrivals", "app", "app_rate", "app_rates"}
"""Keys of flows that are not simply downloads."""


def group_of(experiment: dict[str, Any]) -> str:
    """The group of an example: what it is about."""
    if any("template" in link for link in experiment.get("link", [])):
        return "Kinds of path"
    flows = experiment.get("flow", [])
    is_application = any(
        APPLICATION & set(flow) or flow.get("transport") == "rtp" for flow in flows
    )
    return "Applications" if is_application else "Basics"


def presets() -> list[dict[str, str]]:
    """The experiments of the exercises, the examples and the papers: group, name and text.

    Examples are grouped by what they are about, in the order of `GROUPS`.
    """
    exercises = (ROOT / "docs/tutorials/lab.md").read_text()
    blocks = re.findall(r"^```toml\n# [\w.-]+\n(.*?)^```", exercises, re.M | re.S)
    found = [
        {"group": "Exercises", "name": tomllib.loads(text)["title"], "text": text}
        for text in blocks
    ]
    examples = [
        (group_of(tomllib.loads(path.read_text())), path)
        for path in sorted((ROOT / "examples").glob("*.toml"))
    ]
    files = sorted(examples, key=lambda example: GROUPS.index(example[0]))
    papers = ROOT / "python/dumbbell/papers"
    for path in sorted(papers.glob("*/*.toml")):
        paper = tomllib.loads((path.parent / "paper.toml").read_text())
        files.append((f"Paper: {paper['title']}", path))
    for group, path in files:
        text = path.read_text()
        content = tomllib.loads(text)
        transports = {flow.get("transport") for flow in content.get("flow", [])}
        if transports and "sweep" not in content and not transports & ELSEWHERE:
            found.append({"group": group, "name": content.get("title", path.stem), "text": text})
    return found


def licences() -> str:
    """The licences of the libraries that are in the page."""
    lock = json.loads((WEB / "package-lock.json").read_text())
    names = [
        name
        for name, package in lock["packages"].items()
        if name and not package.get("dev") and not package.get("optional")
    ]
    texts = []
    for name in sorted(names):
        [file, *_] = sorted((WEB / name).glob("LICEN[CS]E*"))
        title = f"{name.removeprefix('node_modules/')} {lock['packages'][name]['version']}"
        texts.append(f"{title}\n\n{file.read_text().strip()}\n")
    return f"\n{'-' * 72}\n\n".join(texts)


def run(command: list[str], cwd: Path = ROOT) -> None:
    """Runs a command; its failure ends the script."""
    if subprocess.run(command, cwd=cwd, check=False).returncode:
        sys.exit(f"lab: failed: {' '.join(command)}")


def main() -> None:
    """Builds and records."""
    if missing := [tool for tool in ("node", "npm", "cargo") if shutil.which(tool) is None]:
        sys.exit(f"lab: {', '.join(missing)} not found; on Debian or Ubuntu: apt-get install npm")
    if shutil.which("rustup"):
        run(["rustup", "target", "add", TARGET])
    if not (WEB / "node_modules/.package-lock.json").exists():
        run(["npm", "ci", "--silent"], cwd=WEB)
    build(PAGE)
    LICENCES.write_text(licences())
    RECORD.write_text(digests())


if __name__ == "__main__":
    main()
