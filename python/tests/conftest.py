"""What the tests share: the program to compare with, a small trace, the drives."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

DRIVES = ["imr-1t+track-map", "cassuto-307g+s-blocks"]
WORDS = "rw=randrw,bs=4k,size=1GiB,number_ios=2000,seed=7"


def program() -> str:
    """The `imbrex` program of this checkout, or the one that IMBREX names."""
    root = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    found = [os.environ.get("IMBREX"), target / "debug/imbrex", target / "release/imbrex", shutil.which("imbrex")]
    for path in found:
        if path and Path(path).exists():
            return str(path)
    pytest.fail("no imbrex program to compare with: build it (cargo build), or name it in IMBREX")


@pytest.fixture(scope="session")
def imbrex_program() -> str:
    return program()


@pytest.fixture(scope="session")
def run_program(imbrex_program):
    def run(*words: str, code: int = 0) -> str:
        done = subprocess.run([imbrex_program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def rows(count: int = 3000):
    """Requests as columns of NumPy: reads and writes all over a gibibyte, a flush now and then."""
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(5)
    op = random.integers(0, 2, count).astype("uint8")
    op[::100] = 2
    lba = random.integers(0, 2**18, count).astype("uint64") * 8
    sectors = numpy.full(count, 8, dtype="uint32")
    lba[::100], sectors[::100] = 0, 0
    time_ns = (numpy.arange(count) * 2_000_000 + 77).astype("uint64")
    return {"time_ns": time_ns, "op": op, "lba": lba, "sectors": sectors}


@pytest.fixture(scope="session")
def columns():
    return rows()


@pytest.fixture(scope="session")
def trace_file(tmp_path_factory, columns):
    """The same requests as a file of ours."""
    import imbrex

    path = tmp_path_factory.mktemp("trace") / "trace.parquet"
    imbrex.Trace(columns).convert(path)
    return path
