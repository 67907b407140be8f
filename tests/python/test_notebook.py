"""The example notebook runs from beginning to end, and shows what it says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook.ipynb"


@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs_and_shows_tables_and_figures() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)  # nothing is stored
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [
        set(output["data"])
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "data" in output
    ]
    assert sum("text/html" in kinds for kinds in shown) == 3
    assert sum("image/png" in kinds for kinds in shown) == 2
