"""Executes the notebooks and keeps each .py and its .ipynb the same. Run by ``make notebooks``, and by the tests.

The text is the .py file (jupytext's percent format); the .ipynb beside it holds the same cells, without outputs. What a
run shows goes to build/notebooks, which is not under version control.
"""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
OUT = ROOT / "build" / "notebooks"

LIMIT_S = 120
"""Of one cell: they take seconds, and a rented node may be busy."""


def texts() -> list[Path]:
    """Every notebook's text, by name."""
    return sorted(NOTEBOOKS.glob("*.py"))


def execute(text: Path) -> nbformat.NotebookNode:
    """Run a notebook from its text; an error in a cell is raised, with the cell.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
    """
    notebook = jupytext.read(text)
    folder = {"metadata": {"path": str(NOTEBOOKS)}}
    NotebookClient(notebook, timeout=LIMIT_S, kernel_name="python3", resources=folder).execute()
    return notebook


def paired(text: Path) -> nbformat.NotebookNode:
    """The .ipynb that belongs to a text: its cells, named by their place, without outputs."""
    notebook = jupytext.read(text)
    for place, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{place}"
    notebook.metadata = nbformat.from_dict(
        {
            "jupytext": {"formats": "ipynb,py:percent"},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        }
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def main() -> None:
    """Pair and execute every notebook."""
    OUT.mkdir(parents=True, exist_ok=True)
    for text in texts():
        nbformat.write(paired(text), text.with_suffix(".ipynb"))
    for text in texts():
        nbformat.write(execute(text), OUT / f"{text.stem}.ipynb")
        print(OUT / f"{text.stem}.ipynb", flush=True)


if __name__ == "__main__":
    main()
