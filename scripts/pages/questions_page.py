"""Writes ``explanation/bbr-questions.md``: the BBR draft's open questions, answered by runs.

    python scripts/pages/questions_page.py docs

It takes some minutes. Nothing in the answers' numbers is typed by hand.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dumbbell.dossier.questions import answer_questions, markdown, untested
from dumbbell.experiment.files import write_text

_INTRODUCTION = """\
# Open questions of the BBR draft

draft-ietf-ccwg-bbr leaves questions open, and its editors ask for simulations. Here variants of
BBR run on the same 100 random paths and are compared path by path. A number is the median of
the differences with its 95 % interval over the paths; less is better. The scenarios draw rates
of 5 to 500 Mbit/s, round-trip times of 10 to 200 ms and queues of a quarter to ten times the
bandwidth-delay product, at random. What the kernel or other traffic would do differently, they
do not show.
"""

_AGAIN = """\
## The same again

<!-- not run: takes minutes -->
```sh
dumbbell reproduce bbr-questions --out answers # index.html with figures, questions.json, data/
.venv/bin/python scripts/pages/questions_page.py docs # this page
```
"""


def write(docs: Path) -> Path:
    """Runs the study and writes the page into `docs`."""
    with tempfile.TemporaryDirectory() as folder:
        answers = answer_questions(folder)
    left = "\n".join(f"- {one['title']}: {one['reason']}" for one in untested())
    page = [_INTRODUCTION, markdown(answers), "## Not answered", left, _AGAIN]
    path = docs / "explanation/bbr-questions.md"
    write_text(path, "\n\n".join(part.strip() for part in page) + "\n")
    return path


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
