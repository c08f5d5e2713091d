"""Goal: a call gives what the program gives, to the byte, and says what is wrong with what it cannot take.
Method: the program run beside it; tables of every library; options, types and names that there are not."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import imbrex
import pytest
from conftest import DRIVES, WORDS

NAMES = ["read", "write", "flush", "trim"]
WALL_CLOCK = ("wall_seconds", "requests_per_second")


def without_wall_clock(summary):
    for drive in summary["drives"]:
        for name in WALL_CLOCK:
            drive.pop(name)
    return summary


def of_requests(results):
    """What the drives did, without how the workload was called."""
    return without_wall_clock(json.loads(json.dumps(results.summary)))["drives"]


def test_files_and_summary_are_the_programs_to_the_byte(tmp_path, run_program):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    words = ["--queue", "8", "--write-cache", "1MiB", "--check", "--per-io"]
    drives = [word for drive in DRIVES for word in ("--drive", drive)]
    said = run_program("--quiet", "simulate", WORDS, *drives, *words, "--json", "--out", str(theirs))
    results = imbrex.simulate(WORDS, DRIVES, queue=8, write_cache="1MiB", check=True, per_io=True, out=ours)
    summary, program = without_wall_clock(results.summary), without_wall_clock(json.loads(said))
    assert summary["command"] == ["imbrex", "simulate", WORDS, *drives, *words, "--out", str(ours)]
    program["command"] = summary["command"]
    assert json.dumps(summary) == json.dumps(program), "the same fields in the same order"
    for name in ("latency.parquet", "timeline.parquet", "ios.parquet"):
        assert (ours / name).read_bytes() == (theirs / name).read_bytes(), name
    assert results.folder == str(ours)


def test_tables_hold_what_the_files_hold(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    results = imbrex.simulate(WORDS, DRIVES, per_io=True, out=tmp_path)
    for name in ("latency", "timeline", "ios"):
        table = getattr(results, name)
        read = parquet.read_table(tmp_path / f"{name}.parquet")
        taken = pyarrow.table(table)
        assert taken.to_pydict() == read.to_pydict() == table.to_dict(), name
        assert len(table) == taken.num_rows and table.columns == taken.column_names
    assert [str(pyarrow.table(results.ios).schema.field(name).type) for name in ("drive", "op", "lba")] == ["string", "string", "int64"]
    assert set(results.ios.to_dict()["op"]) == {"read", "write", "background"}
    again = imbrex.simulate(WORDS, DRIVES, per_io=True)
    ios = again.ios
    del again
    assert pyarrow.table(ios).equals(pyarrow.table(results.ios)), "rows outlive their results, in a temporary folder"


def test_every_library_takes_the_tables_and_gives_workloads(columns, trace_file):
    pandas, polars, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    numpy = pytest.importorskip("numpy")
    of_file = imbrex.simulate(trace_file, DRIVES[0])
    latency = polars.DataFrame(of_file.latency)
    assert latency.filter(polars.col("operation") == "all")["count"].sum() == 2 * 3000
    words = numpy.array(NAMES)[columns["op"]]
    twice = {name: numpy.concatenate([values, values]) for name, values in columns.items()}
    twice_words = pyarrow.array(["trim"] * 3000 + words.tolist())
    table = pyarrow.table(columns)
    structured = numpy.zeros(3000, dtype=[("lba", "i8"), ("op", "u1"), ("time_ns", "i8"), ("sectors", "i4")])
    for name, values in columns.items():
        structured[name] = values
    workloads = {
        "numpy": columns,
        "structured": structured,
        "words": {**columns, "op": words},
        "pyarrow": table,
        "chunks": pyarrow.concat_tables([table.slice(0, 999), table.slice(999, 1), table.slice(1000)]),
        "lists": {name: values.tolist() for name, values in {**columns, "op": words}.items()},
        "words of pyarrow": pyarrow.table({**columns, "op": words}),
        "dictionary of words": pyarrow.table({**columns, "op": pyarrow.array(words).dictionary_encode()}),
        "dictionary of numbers": pyarrow.table({**columns, "op": pyarrow.array(columns["op"]).dictionary_encode()}),
        "a slice of a dictionary": pyarrow.table({**twice, "op": twice_words.dictionary_encode()}).slice(3000),
        "categories of pandas": pandas.DataFrame({**columns, "op": pandas.Categorical(words)}),
        "a column of categories": {**columns, "op": pandas.Series(words, dtype="category")},
        "categories of polars": polars.DataFrame({**columns, "op": words.tolist()}).cast({"op": polars.Categorical}),
        "enumeration of polars": polars.DataFrame({**columns, "op": words.tolist()}).cast({"op": polars.Enum(NAMES)}),
        "pandas": pandas.DataFrame(columns),
        "polars": polars.DataFrame({**columns, "op": words.tolist()}),
        "trace": imbrex.Trace(trace_file),
    }
    for name, workload in workloads.items():
        assert of_requests(imbrex.simulate(workload, DRIVES[0])) == of_requests(of_file), name


def test_duckdb_takes_the_tables_and_gives_workloads(columns):
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    results = imbrex.simulate(columns, DRIVES[0])
    latency = results.latency  # noqa: F841 (the query names it)
    assert duckdb.sql("select sum(count) from latency where operation = 'all'").fetchall() == [(6000,)]
    requests = pyarrow.table(columns)  # noqa: F841
    of_query = duckdb.sql(
        "select time_ns, lba, sectors, (['read', 'write', 'flush'])[op + 1]::enum('flush', 'write', 'read') as op from requests"
    )
    assert of_requests(imbrex.simulate(of_query, DRIVES[0])) == of_requests(results)


def test_a_table_is_not_copied(columns):
    pyarrow = pytest.importorskip("pyarrow")
    numpy = pytest.importorskip("numpy")
    count = 20_000_000
    table = pyarrow.table({
        "time_ns": numpy.arange(count, dtype="uint64"),
        "op": numpy.zeros(count, dtype="uint8"),
        "lba": numpy.zeros(count, dtype="uint64"),
        "sectors": numpy.full(count, 8, dtype="uint32"),
    })
    before = resident_bytes()
    from imbrex import _imbrex

    held = _imbrex.Columns.of_arrow(table)
    assert len(held) == count
    assert resident_bytes() - before < table.nbytes / 20


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_report_and_notebook(tmp_path):
    results = imbrex.simulate(WORDS, DRIVES)
    page = Path(results.report(tmp_path / "r.html")).read_text()
    assert page.startswith("<!DOCTYPE html>") and DRIVES[0] in page
    piece = results._repr_html_()
    assert "<svg" in piece and DRIVES[1] in piece
    assert "longest stall" in str(results)
    assert results[DRIVES[0]]["completed"] == 2000
    with pytest.raises(KeyError, match="no drive 'x'"):
        results["x"]
    with pytest.raises(AttributeError, match="per_io=True"):
        results.ios
    shown = results.latency._repr_html_()
    assert shown.count("<tr>") == 11 and f"the first 10 of {len(results.latency):,} rows" in shown
    plans = imbrex.simulate("rw=write,bs=4k,size=1MiB,number_ios=3", DRIVES[0], plans=True, no_baseline=True)
    assert Path(plans.plans).read_text().count("\n") >= 1


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: imbrex.simulate("no-such-thing", DRIVES[0]), ValueError, "no file and no built-in workload.*try: "),
        (lambda: imbrex.simulate(WORDS, "no-such-drive"), ValueError, "no profile is called 'no-such-drive'.*try: "),
        (lambda: imbrex.simulate(WORDS, "imr-1t+track-map:intervl=3"), ValueError, "intervl"),
        (lambda: imbrex.simulate(WORDS, DRIVES[0], qeue=3), TypeError, "no option is called 'qeue'.*queue"),
        (lambda: imbrex.simulate(WORDS, drive=DRIVES[0]), TypeError, "no option is called 'drive'.*did you mean 'drives'"),
        (lambda: imbrex.simulate(WORDS, DRIVES[0], queue=0), ValueError, "queue = 0: expected a depth of 1 or more"),
        (lambda: imbrex.simulate(WORDS, DRIVES[0], queue=object()), TypeError, "queue = .*expected text, a number"),
        (lambda: imbrex.simulate(WORDS, DRIVES[0], write_cache="big"), ValueError, "write-cache = big: expected a size"),
        (lambda: imbrex.simulate(17, DRIVES[0]), TypeError, "a int is no workload: expected words"),
        (lambda: imbrex.simulate(WORDS, 3), TypeError, "drives = 3: expected the text of a drive"),
        (lambda: imbrex.simulate(WORDS, [None]), TypeError, "None is no text of a drive"),
        (lambda: imbrex.simulate(WORDS, DRIVES[0], out="/proc/nowhere"), imbrex.ImbrexError, "/proc/nowhere.*give --out"),
        (lambda: imbrex.simulate({"time_ns": [1.5]}, DRIVES[0]), TypeError, "column 'time_ns' is a list: expected whole numbers"),
        (lambda: imbrex.simulate({"time_ns": [1]}, DRIVES[0]), ValueError, "no column 'op': .*this one has time_ns"),
        (lambda: imbrex.simulate({}, DRIVES[0]), ValueError, "no columns: a table of requests has time_ns, op"),
        (lambda: imbrex.layer("x"), ValueError, "no layer is called 'x'.*one of"),
        (lambda: imbrex.drive(3), TypeError, "3 is no name"),
        (lambda: imbrex.Trace(WORDS).batches(0), ValueError, "rows = 0"),
        (lambda: imbrex.Trace(WORDS).batches("9"), TypeError, "rows = '9': expected a whole number, not str"),
    ],
)
def test_what_cannot_be_is_an_exception_with_what_where_and_what_to_do(call, error, said):
    with pytest.raises(error, match="(?s)" + said):
        call()


def test_wrong_tables_say_which_column_and_row(columns):
    pyarrow = pytest.importorskip("pyarrow")
    numpy = pytest.importorskip("numpy")

    def refused(change, error, said):
        with pytest.raises(error, match=said):
            imbrex.simulate(pyarrow.table({**columns, **change}), DRIVES[0])

    lba = columns["lba"].astype("int64").copy()
    lba[2500] = -8
    refused({"lba": lba}, imbrex.ImbrexError, "table, row 2500: expected a number from 0 on in column 'lba'")
    refused({"op": numpy.full(3000, 9, "uint8")}, imbrex.ImbrexError, "row 0: expected op 0 to 3")
    refused({"op": ["write"] * 2999 + ["erase"]}, imbrex.ImbrexError, "row 2999: .*found 'erase'")
    dictionary = pyarrow.DictionaryArray.from_arrays
    refused({"op": pyarrow.array(["write"] * 2999 + ["erase"]).dictionary_encode()}, imbrex.ImbrexError, "row 2999: .*found 'erase'")
    refused({"op": dictionary([0, None] * 1500, ["read"])}, imbrex.ImbrexError, "row 1: expected an operation in column 'op', found null")
    refused({"op": dictionary([0, 1] * 1500, ["read", None])}, imbrex.ImbrexError, "row 1: .*found null")
    past = dictionary(pyarrow.array([0, 7] * 1500, "int8"), pyarrow.array(["read"]), safe=False)
    refused({"op": past}, imbrex.ImbrexError, "row 1: expected an entry of its dictionary in column 'op', found none")
    refused({"op": dictionary([0] * 3000, [1.5])}, ValueError, "column 'op' has the type Float64: expected whole numbers")
    unused = pyarrow.table({**columns, "op": dictionary(columns["op"], ["read", "write", "flush", "erase"])})
    assert imbrex.simulate(unused, DRIVES[0]).drives[0]["completed"] == 3000, "an entry that no row has is nobody's fault"
    refused({"lba": pyarrow.array([None] + [8] * 2999)}, imbrex.ImbrexError, "row 0: .*'lba', found null")
    refused({"time_ns": numpy.zeros(3000, "float64")}, ValueError, "column 'time_ns' has the type Float64: expected whole")
    with pytest.raises(ValueError, match="no column 'sectors': .*this one has lba"):
        imbrex.simulate(pyarrow.table({"time_ns": [1], "op": [1], "lba": [1]}).select(["lba", "op", "time_ns"]), DRIVES[0])
    with pytest.raises(ValueError, match="has 3000, '.*' 7"):
        imbrex.simulate({**columns, "sectors": columns["sectors"][:7]}, DRIVES[0])
    with pytest.raises(ValueError, match="no rows"):
        imbrex.simulate(pyarrow.table(columns).slice(0, 0), DRIVES[0])
    skipped = imbrex.simulate(pyarrow.table({**columns, "lba": lba}), DRIVES[0], skip_malformed=True)
    assert skipped.summary["workload"]["rejected"] == {"malformed": 1}


def test_the_interpreter_is_free_and_progress_is_told():
    told, ticks, over = [], [], threading.Event()

    def tick():
        while not over.wait(0.02):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    imbrex.simulate("rw=randwrite,bs=4k,size=10GiB,number_ios=400000", DRIVES[0], progress=told.append)
    ended = time.monotonic()
    over.set()
    thread.join()
    assert sum(begun < tick < ended for tick in ticks) > 3, "another thread ran meanwhile"
    names = {name for step in told for name, _, _ in step}
    assert DRIVES[0] in names and all(done <= (of or done) for step in told for _, done, of in step)
    with pytest.raises(ZeroDivisionError):
        imbrex.simulate("rw=randwrite,bs=4k,size=10GiB,number_ios=400000", DRIVES[0], progress=lambda _: 1 / 0)


INTERRUPTED = """
import sys, warnings, imbrex
warnings.simplefilter("error", imbrex.InterruptedWarning)
warnings.simplefilter("always", imbrex.InterruptedWarning)
print("begun", flush=True)
results = imbrex.simulate("rw=randwrite,bs=4k,size=10GiB,number_ios=2000000000", "imr-1t+track-map", progress=False)
print(results.is_stopped, results.drives[0]["completed"] > 0, results.drives[0]["completed"] < 2000000000)
"""


def test_ctrl_c_gives_what_was_done():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=60)
    assert said.split() == ["True", "True", "True"], complained
    assert "InterruptedWarning: interrupted" in complained


def test_registries_say_what_the_program_lists(run_program):
    listed = json.loads(run_program("list", "--json"))
    assert imbrex.drives() == listed["profiles"] and imbrex.layers() == listed["layers"]
    assert imbrex.formats() == listed["formats"] and imbrex.generators() == listed["generators"]
    parameter = imbrex.layer("track-map")["parameters"][0]
    assert {"key", "type", "takes", "default", "help"} <= set(parameter)
    assert "rpm" in imbrex.drive("imr-1t")["toml"]


def test_traces_are_looked_at_iterated_and_written(tmp_path, trace_file, columns, run_program):
    pyarrow = pytest.importorskip("pyarrow")
    trace = imbrex.Trace(trace_file)
    assert trace.info() == json.loads(run_program("trace", "info", str(trace_file), "--json"))
    batches = [pyarrow.table(batch) for batch in trace.batches(1000)]
    assert repr(next(trace.batches(7))) == "<imbrex.Batch of 7 rows: time_ns, op, lba, sectors, device>"
    assert [batch.num_rows for batch in batches] == [1000] * 3
    whole = pyarrow.table(trace)
    assert pyarrow.concat_tables(batches).combine_chunks() == whole.combine_chunks()
    assert whole["lba"].to_pylist() == columns["lba"].tolist()
    assert whole["time_ns"].to_pylist() == (columns["time_ns"] - columns["time_ns"][0]).tolist()
    done = trace.convert(tmp_path / "t.csv", "msr")
    assert (done["requests"], sum(done["lost"].values()), done["to"]) == (2970, 30, "msr")
    assert imbrex.Trace(tmp_path / "t.csv").format == "msr"
    assert (trace.format, imbrex.Trace(columns).format, imbrex.Trace(WORDS).format) == ("imbrex", "table", "generator")
    with pytest.raises(ValueError, match="no format 'x' can be written"):
        trace.convert(tmp_path / "t", "x")
