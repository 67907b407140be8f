"""Writes ``explanation/bbr-questions.md``: the BBR draft's open questions, answered by runs.

    python scripts/pages/questions_page.py docs

It takes some minutes. Nothing in the answers' numbers is typed by hand.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import arguments

from dumbbell.dossier.questions import answer_questions, markdown, scenarios, untested
from dumbbell.experiment.files import write_text

_INTRODUCTION = """\
# Open questions of the BBR draft

draft-ietf-ccwg-bbr leaves questions open, and its editors ask for simulations. Here variants of
BBR run on the same 100 random paths and are compared path by path: a difference is the median
over the paths, with its 95 % interval. What is measured is the worse the larger it is. The last
word of a measure is its scenario, listed below. They draw rates, round-trip times and queues
from wide ranges, so that a median is about all of them together, shallow queues and deep ones.
A simulation is initial evidence; [validation](validation.md) says how far BBR here agrees with
the kernel's. The largest effect on delay is that of [a rate that falls](bbr-rate-falls.md).
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
    where = "\n".join(f"- `{name}`: {title}" for name, title in scenarios(answers).items())
    page = [_INTRODUCTION, markdown(answers), "## Scenarios", where]
    page += ["## Not answered", left] if left else []
    page += [_AGAIN]
    path = docs / "explanation/bbr-questions.md"
    write_text(path, "\n\n".join(part.strip() for part in page) + "\n")
    return path


if __name__ == "__main__":
    print(write(arguments.folder(__doc__)))
