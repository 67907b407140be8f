#!/usr/bin/env python3
"""Makes the figures of the documentation again: those of examples, of papers, and screenshots.

    python scripts/figures.py [NAME...]

A figure of an example is what the page that shows it draws. Screenshots are of the reports that
these pages write, and need Chromium. `docs/gallery.md` lists all figures; those beside Linux, ns-3
and theory are made by the scripts in `pages`. Figures of real packets need root:
`docs/tutorials/real-packets.md` and `docs/how-to/kernel-algorithm.md` have their commands.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import documents
from PIL import Image

ROOT = documents.ROOT
FIGURES = ROOT / "docs/figures"

DRAWN = {
    "first-experiment.svg": ("tutorials/first-experiment.md", "windows.svg"),
    "own-algorithm.svg": ("tutorials/own-algorithm.md", "calm/figure.svg"),
    "sweep-share.svg": ("tutorials/sweep.md", "share.svg"),
    "sweep-loss.svg": ("tutorials/sweep.md", "loss.svg"),
    "howto-lines.svg": ("how-to/buffer-sizes.md", "lines.svg"),
    "howto-delay.svg": ("how-to/buffer-sizes.md", "delay.svg"),
    "howto-l4s.svg": ("how-to/l4s.md", "share.svg"),
    "howto-times.svg": ("how-to/short-flows.md", "times.svg"),
    "howto-media.svg": ("how-to/media.md", "frames.svg"),
    "howto-video.svg": ("how-to/video.md", "video.svg"),
    "howto-paths.svg": ("how-to/paths.md", "paths.svg"),
    "howto-links.svg": ("how-to/lte-trace.md", "links.svg"),
    "bbr-rate-falls.svg": ("explanation/bbr-rate-falls.md", "falls.svg"),
}
"""Each figure: the page whose examples draw it, and the file."""

SHOTS = {
    "report-run.png": ("tutorials/first-experiment.md", "results/second-flow/report.html", 1000),
    "report-sweep.png": ("tutorials/sweep.md", "fairness/report.html", 760),
    "report-paper.png": ("tutorials/paper.md", "results/papers/mypaper/index.html", 795),
}
"""Each screenshot: the page whose examples write the report, the report, the height in pixels."""

PAPERS = {
    "papers/tein2.svg": ("tein2", "7", "single"),
    "papers/ar-udt.svg": ("ar-udt", "13", "single"),
    "papers/f-bbrv2.svg": ("f-bbrv2", "8", "single"),
    "papers/dbac.svg": ("dbac", "6", "single"),
    "papers/staggered-start.svg": ("staggered-start", "convergence", "double"),
}
"""Each figure of a paper: the paper, the figure's name in it, the width."""


def draw(folders: Path, names: list[str]) -> None:
    """Makes the named figures; examples of a page run once, in a folder of `folders`."""
    for name in names:
        if name in PAPERS:
            draw_of_paper(*PAPERS[name], folders, FIGURES / name)
            continue
        page, file, *height = (DRAWN | SHOTS)[name]
        folder = folders / page.replace("/", "-")
        if not folder.exists():
            folder.mkdir()
            (folder / "examples").symlink_to(ROOT / "examples")
            documents.fresh((ROOT / "docs" / page).read_text(), folder)
        if height:
            shoot(folder / file, FIGURES / name, *height)
        else:
            shutil.copy(folder / file, FIGURES / name)


def draw_of_paper(paper: str, figure: str, width: str, folders: Path, image: Path) -> None:
    """Reproduces a paper and draws one of its figures."""
    subprocess.run(["dumbbell", "reproduce", paper, "--out", folders], check=True)
    plot = ["dumbbell", "plot", folders / paper, figure, "--width", width]
    subprocess.run([*plot, "--out", image, "--overwrite"], check=True)


def shoot(page: Path, image: Path, height: int) -> None:
    """Takes a picture of a page in Chromium, 880 pixels wide, in 256 colours."""
    options = (
        "--headless --no-sandbox --disable-gpu --hide-scrollbars --disable-background-networking"
    )
    with tempfile.TemporaryDirectory() as profile:
        size = [
            f"--user-data-dir={profile}",
            f"--window-size=880,{height}",
            f"--screenshot={image}",
        ]
        subprocess.run(
            [os.environ.get("CHROMIUM", "chromium"), *options.split(), *size, page.as_uri()],
            check=True,
            stderr=subprocess.DEVNULL,
        )
    picture = Image.open(image).convert("RGB")
    # The usual method, median cut, gives small areas, such as those of legends, other colours.
    picture.quantize(256, Image.Quantize.MAXCOVERAGE).save(image, optimize=True)


def main() -> None:
    """Makes the figures that are named, or all of them but those of papers."""
    with tempfile.TemporaryDirectory() as folders:
        # The same figure has the same bytes.
        settings = Path(folders, "matplotlibrc")
        settings.write_text("svg.hashsalt: dumbbell\n")
        os.environ |= {"MATPLOTLIBRC": str(settings), "SOURCE_DATE_EPOCH": "0"}
        draw(Path(folders), sys.argv[1:] or [*DRAWN, *SHOTS])


if __name__ == "__main__":
    main()
