"""Arrays and tables in memory: each is read as its values say, or refused with the column named.

They are made at random from a seed: every integer type in both byte orders, strides, masks and nulls, dates and durations of every
unit, in NumPy, pandas, polars and pyarrow. The values are chosen as Python integers first, so these are what must be read.
`IMBREX_TABLES` is the number of tables.
"""

from __future__ import annotations

import copy
import os
import pickle
import random
from typing import Any

import numpy
import pandas
import polars
import pyarrow
import pytest

import imbrex

TABLES = int(os.environ.get("IMBREX_TABLES", "400"))
WORDS = ["read", "write", "flush", "trim"]
NS = {"D": 86_400 * 10**9, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
INTEGERS = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8"]


def fits(values: list[int], kind: str) -> bool:
    bits = 8 * int(kind[1])
    most = 2**bits - 1 if kind[0] == "u" else 2 ** (bits - 1) - 1
    least = 0 if kind[0] == "u" else -(2 ** (bits - 1))
    return all(least <= value <= most for value in values)


def numbers(chance: random.Random, values: list[int]) -> Any:
    """`values` as an array of NumPy of some integer type, byte order and stride."""
    kind = chance.choice([kind for kind in INTEGERS if fits(values, kind)])
    array = numpy.array(values, dtype=chance.choice("<>=") + kind)
    form = chance.choice(["plain", "plain", "strided", "reversed", "column", "readonly"])
    if form == "strided":
        wide = numpy.zeros(3 * len(values), dtype=array.dtype)
        wide[::3] = array
        return wide[::3]
    if form == "reversed":
        return array[::-1].copy()[::-1]
    if form == "column":
        return numpy.stack([array, array], axis=1)[:, 1]
    if form == "readonly":
        array.flags.writeable = False
    return array


def times(chance: random.Random, count: int) -> tuple[list[int], Any, bool]:
    """Times in nanoseconds, the array that means them, and whether it has to be refused."""
    unit = chance.choice([*NS, *NS, "Y", "M", "W", "ps"])
    dates = chance.random() < 0.5
    steps = sorted(chance.randrange(0, 200) for _ in range(count))
    array = numpy.array(steps, dtype=f"{'datetime64' if dates else 'timedelta64'}[{unit}]")
    if chance.random() < 0.3:
        array = array.astype(array.dtype.newbyteorder(">"))
    if unit in NS:
        meant = [step * NS[unit] for step in steps]
    elif unit == "W":
        meant = [step * 7 * NS["D"] for step in steps]
    elif unit == "ps":
        meant = [step // 1000 for step in steps]
    elif dates:
        epoch = numpy.datetime64("1970-01-01")
        meant = [int((date - epoch).astype(int)) * NS["D"] for date in array.astype("datetime64[D]")]
    else:
        return [], array, True
    if meant[-1] >= 2**63:
        return meant, array, True
    if chance.random() < 0.15:
        array[chance.randrange(count)] = numpy.array("NaT", dtype=array.dtype)
        return meant, array, True
    return meant, array, False


def made(seed: int) -> tuple[Any, list[tuple[int, int, int, int]] | None]:
    """A table, and its requests; `None` if it has to be refused."""
    chance = random.Random(seed)
    count = chance.choice([1, 3, 40])
    op = [chance.randrange(4) for _ in range(count)]
    lba = [0 if code == 2 else chance.choice([0, 8, 100, 200, 40_000, 2**31, 2**40]) for code in op]
    sectors = [0 if code == 2 else chance.randrange(1, 120) for code in op]
    time_ns = sorted(chance.choice([0, 5, 100, 10**6, 10**12]) for _ in range(count))
    bad = False
    columns: dict[str, Any] = {"lba": numbers(chance, lba), "sectors": numbers(chance, sectors)}
    if chance.random() < 0.4:
        time_ns, columns["time_ns"], bad = times(chance, count)
    else:
        columns["time_ns"] = numbers(chance, time_ns)
    columns["op"] = numbers(chance, op) if chance.random() < 0.6 else numpy.array([WORDS[code] for code in op])
    if chance.random() < 0.2:
        columns["op"] = columns["op"].astype(object)
    form = chance.choice(["numpy", "numpy", "structured", "masked", "pandas", "series", "nullable", "polars", "pyarrow", "lists", "float"])
    meant = None if bad else [(at - time_ns[0], *rest) for at, *rest in zip(time_ns, op, lba, sectors)]
    if form in ("pandas", "series", "nullable", "polars", "pyarrow"):
        # These libraries have arrays of this machine's byte order alone, and their own units of time.
        columns = {name: values.astype(values.dtype.newbyteorder("=")) for name, values in columns.items()}
        unit = numpy.datetime_data(columns["time_ns"].dtype)[0] if columns["time_ns"].dtype.kind in "mM" else "ns"
        if unit not in (("ms", "us", "ns") if form == "polars" else ("s", "ms", "us", "ns")):
            form = "numpy"
    if form == "structured" and columns["op"].dtype.kind != "O":
        array = numpy.zeros(count, dtype=[(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            array[name] = values
        return array, meant
    if form == "masked":
        name = chance.choice(["lba", "sectors", "time_ns"])
        mask = [chance.random() < 0.2 for _ in range(count)]
        columns[name] = numpy.ma.masked_array(columns[name], mask=mask)
        return columns, None if any(mask) else meant
    if form == "pandas":
        return pandas.DataFrame(columns), meant
    if form == "series":
        return {name: pandas.Series(values) for name, values in columns.items()}, meant
    if form == "nullable":
        frame = pandas.DataFrame(columns).convert_dtypes()
        if chance.random() < 0.5:
            frame.loc[chance.randrange(count), chance.choice(["lba", "sectors"])] = pandas.NA
            return frame, None
        return frame, meant
    if form == "polars":
        frame = polars.DataFrame({name: polars.Series(values.tolist() if values.dtype.kind == "O" else values) for name, values in columns.items()})
        if chance.random() < 0.3:
            frame = frame.with_columns(polars.when(polars.arange(0, count) == 0).then(None).otherwise(polars.col("lba")).alias("lba"))
            return frame, None
        return frame, meant
    if form == "pyarrow":
        table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
        if count == 1 or meant is None:  # The row to be refused may be the first.
            return table, meant
        return table.slice(1), [(at - meant[1][0], *rest) for at, *rest in meant[1:]]
    if form == "lists":
        return {name: values.tolist() if values.dtype.kind in "iuUO" else values for name, values in columns.items()}, meant
    if form == "float":
        columns["lba"] = columns["lba"].astype(chance.choice(["f4", "f8", "?", "c8"]))
        return columns, None
    return columns, meant


def test_arrays_and_tables_are_read_right_or_refused():
    read = refused = needless = silent = 0
    for seed in range(TABLES):
        table, meant = made(seed)
        try:
            found = pyarrow.table(imbrex.Trace(table))
        except (imbrex.ImbrexError, ValueError, TypeError) as error:
            named = any(name in str(error) for name in ("time_ns", "'op'", "column", "lba", "sectors"))
            assert named, f"seed {seed}: refused without a name: {error}"
            refused += 1
            if meant is not None:
                needless += 1
                print(f"seed {seed}: refused: {error}\n{table}")
            continue
        read += 1
        rows = list(zip(*(found.column(name).to_pylist() for name in ("time_ns", "op", "lba", "sectors"))))
        if meant is None or rows != meant:
            silent += 1
            print(f"seed {seed}: {type(table)}\n{table}\n  read  {rows}\n  meant {meant}")
    print(f"{TABLES} tables: {read} read, {refused} refused ({needless} of them sound), {silent} silently different")
    assert (silent, needless) == (0, 0)
    assert read > TABLES / 2


def test_numbers_of_the_other_byte_order_are_the_same_numbers():
    columns = {"time_ns": [0, 1], "op": [1, 1], "lba": [8, 16], "sectors": [8, 8]}
    for order in "<>":
        arrays = {name: numpy.array(values, dtype=f"{order}u2") for name, values in columns.items()}
        assert pyarrow.table(imbrex.Trace(arrays)).column("lba").to_pylist() == [8, 16]
        array = numpy.array(list(zip(*columns.values())), dtype=[(name, f"{order}u4") for name in columns])
        assert pyarrow.table(imbrex.Trace(array)).column("sectors").to_pylist() == [8, 8]


@pytest.fixture(scope="module")
def results():
    return imbrex.simulate("rw=randwrite,bs=4k,size=1g,number_ios=200", ["cmr-7200", "imr-1t"], per_io=True, baseline=None)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda given: pickle.loads(pickle.dumps(given))])
def test_results_and_tables_can_be_copied(results, copied, tmp_path):
    twin = copied(copied(results))
    assert twin.summary == results.summary and str(twin) == str(results) and repr(twin) == repr(results)
    for name in ("latency", "timeline", "ios"):
        assert pyarrow.table(getattr(twin, name)).equals(pyarrow.table(getattr(results, name)))
    pages = [open(given.report(tmp_path / "page.html")).read() for given in (twin, results)]
    assert pages[0] == pages[1]
    assert pyarrow.table(copied(results.latency)).equals(pyarrow.table(results.latency))


def test_results_come_back_from_another_process():
    import concurrent.futures
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        there = pool.submit(imbrex.simulate, "rw=randwrite,bs=4k,size=1g,number_ios=100", "cmr-7200").result()
    here = imbrex.simulate("rw=randwrite,bs=4k,size=1g,number_ios=100", "cmr-7200")
    assert pyarrow.table(there.latency).equals(pyarrow.table(here.latency))


def test_tables_do_what_they_look_like(results):
    table = results.latency
    frame = table.to_pandas()
    assert list(frame.columns) == table.columns and len(frame) == len(table)
    assert pandas.DataFrame(table).equals(frame)
    assert polars.DataFrame(table).equals(table.to_polars())
    rows = list(table)
    assert len(rows) == len(table) and rows[0] == {name: table[name][0] for name in table.columns}
    assert "count" in table and "nothing" not in table and 3 not in table
    with pytest.raises(KeyError, match="no column 'nothing'; there are drive, operation"):
        table["nothing"]
    assert list(results) == [drive["drive"] for drive in results.drives]
    assert len(results) == len(results.drives) and "cmr-7200" in results and "nothing" not in results
    trace = imbrex.Trace("rw=randwrite,bs=4k,size=1g,number_ios=20,rate_iops=5")
    assert len(trace.to_pandas()) == len(trace.to_polars()) == 20


def test_an_interrupt_while_a_table_is_read_stays_one():
    columns = {"time_ns": [0], "op": [1], "lba": [0], "sectors": [8]}
    batch = pyarrow.record_batch(columns)

    def batches():
        yield batch
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        imbrex.Trace(pyarrow.RecordBatchReader.from_batches(batch.schema, batches()))


def test_requests_without_length_are_said_to_complete_nothing():
    columns = {"time_ns": [0, 1], "op": [1, 1], "lba": [0, 8], "sectors": [0, 0]}
    results = imbrex.simulate(columns, "cmr-7200")
    assert any("no drive completed any of its requests" in note for note in results.notes)
    assert any("no drive completed any of its requests" in warning for warning in results.summary["warnings"])
