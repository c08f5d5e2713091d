"""Goal: the notebooks run from the first cell to the last. Method: each in a kernel of its own."""

import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3")
    client.execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in shown if output.output_type == "error"]
    assert any("image/png" in output.get("data", {}) for output in shown), "something is drawn"


PROGRESS = """
import imbrex
from imbrex import _progress

drawn, html = [], _progress.Rows.html
_progress.Rows.html = lambda rows, now_s: drawn.append(html(rows, now_s)) or drawn[-1]
imbrex.simulate("rw=randwrite,bs=4k,size=10GiB,number_ios=300000", "imr-1t+track-map", no_baseline=True)
print(any("<progress" in one and "of 300,000" in one for one in drawn))
"""


def test_a_notebook_shows_progress_and_ends_it_with_one_line():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PROGRESS)])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    outputs = notebook.cells[0].outputs
    assert [output.text for output in outputs if output.output_type == "stream"] == ["True\n"]
    (shown,) = [output.data for output in outputs if output.output_type == "display_data"]
    assert re.fullmatch(r"done in [\d.]+ (ms|s)", shown["text/plain"]) and "<progress" not in shown["text/html"]


def test_there_are_three():
    assert len(NOTEBOOKS) == 3
