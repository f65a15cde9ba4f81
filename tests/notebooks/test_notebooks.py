"""The notebooks run, and their two files are the same."""

import nbformat
import pytest

from scripts.notebooks import NOTEBOOKS, execute, paired, texts

# Jupyter's own, raised where its client meets this Python's event loop and sockets.
pytestmark = pytest.mark.filterwarnings("default")


def test_every_text_has_its_notebook_and_every_notebook_its_text():
    assert {text.stem for text in texts()} == {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert len(texts()) == 4


@pytest.mark.parametrize("text", texts(), ids=lambda text: text.stem)
def test_a_notebook_is_its_text_without_outputs(text):
    kept = text.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert kept == nbformat.writes(paired(text)) + "\n"
    for cell in nbformat.reads(kept, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("text", texts(), ids=lambda text: text.stem)
def test_a_notebook_runs(text):
    cells = [cell for cell in execute(text).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    shown = [output for cell in cells for output in cell.outputs]
    assert not [output for output in shown if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in shown)


def test_an_error_in_a_cell_is_an_error(tmp_path):
    from nbclient.exceptions import CellExecutionError

    (tmp_path / "broken.py").write_text("# %%\nraise ValueError('of this cell')\n")
    with pytest.raises(CellExecutionError, match="of this cell"):
        execute(tmp_path / "broken.py")
