"""Goal: what the documentation shows runs, and it names all there is. Method: its blocks of Python, run as they stand."""

import re
from pathlib import Path

import imbrex
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGE = (DOCS / "python.md").read_text()


def blocks(page):
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_first_example_of_the_page_runs(tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("polars")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {}
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.close("all")
    exec(blocks(PAGE)[0], names)
    assert len(plt.gca().lines) == 3, "a line a drive"
    assert len(names["results"].drives) == 3 and len(names["swept"].table) == 3


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    (block,) = blocks((DOCS.parent / "README.md").read_text())
    names = {}
    exec(block, names)
    swept = names["swept"].table.to_dict()
    assert len(swept["key"]) == 4 and swept["error"] == [None] * 4
    assert swept["write_mean_ns"][0] > 10 * swept["write_mean_ns"][3], "the sweep has something to show"
    assert (tmp_path / "sweep/sweep.html").exists() and (tmp_path / "latency.png").stat().st_size > 5000


def test_the_page_names_all_there_is():
    for name in imbrex.__all__:
        is_type = name in ("Batch", "Caveat", "Results", "Sweep", "Table", "Zone", "__version__")
        assert is_type or name in PAGE, f"docs/python.md does not name {name}"
    for name in (*vars(imbrex.Results), *vars(imbrex.Drive)):
        assert name.startswith("_") or (getattr(imbrex.Drive, name, None) or getattr(imbrex.Results, name)).__doc__, name


def test_everything_has_words():
    for name in imbrex.__all__:
        assert name == "__version__" or getattr(imbrex, name).__doc__, name
