"""Tables in text: each is read as an independent reader reads it, or refused with the field named.

The tables are made at random from a seed: separators, quoting, forms of numbers, words for operations, headers, line ends. They
are written by hand, by Python's `csv` and by pandas. The independent reader below knows how a table was written (its delimiter
and its decimal mark), which Imbrex has to find out. `IMBREX_TABLES` is the number of tables, `IMBREX_TABLES_SEED` the first seed.
"""

from __future__ import annotations

import csv
import datetime
import io
import os
import random
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

import pandas
import pyarrow
import pytest

import imbrex

TABLES = int(os.environ.get("IMBREX_TABLES", "400"))
SEED = int(os.environ.get("IMBREX_TABLES_SEED", "0"))

READ, WRITE, FLUSH, TRIM, FUA = 0, 1, 2, 3, 128
WORDS = {
    READ: ["R", "r", "read", "Read", "READ", "rd", "RA", "RS", "RSM", "28", "0x88"],
    WRITE: ["W", "w", "write", "Write", "wr", "WS", "WSM", "2a", "0x8A"],
    WRITE | FUA: ["WF", "WFS", "write-fua"],
    FLUSH: ["F", "flush", "Flush", "sync", "fsync", "fdatasync", "FF", "35"],
    TRIM: ["T", "D", "trim", "discard", "unmap", "U", "DS"],
}
MEANINGS = {word.lower(): [code] for code, words in WORDS.items() for word in words}
MEANINGS["fwfs"] = [FLUSH, WRITE | FUA]
# Words that must not be taken for an operation by their first letter.
FOREIGN = ["DiskRead", "DiskWrite", "False", "True", "N", "0", "1", "reading", "wait", "user", "done", "", "true", "x", "8"]
BAD_NUMBERS = ["NaN", "nan", "inf", "-inf", "Infinity", "-5", "-0.5", "", "x", "1e400", "0x", "1,2,3", "12 34", "∞", "4_096"]
UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "100ns": 100, "ns": 1}
SIZES = {"B": 1, "sectors": 512, "KiB": 1024, "pages": 4096}


@dataclass
class Table:
    """A table and all that its writer knew."""

    columns: list[str]
    time_unit: str
    offset_unit: str
    size_unit: str
    delimiter: str
    comma: bool
    rows: list[list[str]] = field(default_factory=list)
    text: bytes = b""
    options: dict[str, Any] = field(default_factory=dict)
    is_bad: bool = False


def grouped(digits: str, mark: str) -> str:
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", mark, digits)


def written(chance: random.Random, value: Decimal, comma: bool, style: str) -> str:
    """`value` as a program writes it."""
    is_whole = value == value.to_integral_value()
    if style == "hexadecimal" and is_whole:
        return hex(int(value))
    if style == "exponent":
        text = f"{value:e}"
    elif style == "decimals" and is_whole:
        text = f"{int(value)}.{'0' * chance.choice([1, 2, 3, 6])}"
    else:
        text = f"{value:f}"
    whole, point, rest = text.partition(".")
    if style == "grouped":
        whole = grouped(whole, "." if comma else ",")
    return whole + ("," if comma and point else point) + rest


def made(seed: int) -> Table:
    """The table number `seed`."""
    chance = random.Random(seed)
    columns = ["op", "offset", "size"] + (["time"] if chance.random() < 0.8 else [])
    columns += ["device"] if chance.random() < 0.2 else []
    columns += ["_"] * chance.choice([0, 0, 1, 2])
    chance.shuffle(columns)
    delimiter = chance.choice([",", ",", ",", ";", ";", "\t", "|", " "])
    table = Table(
        columns,
        chance.choice(list(UNITS)),
        chance.choice(["B", "B", "sectors", "KiB", "pages"]),
        chance.choice(["B", "B", "sectors", "KiB"]),
        delimiter,
        comma=delimiter in ";\t" and chance.random() < 0.4,
    )
    number_style = chance.choice(["plain", "plain", "plain", "decimals", "exponent", "hexadecimal", "grouped", "mixed"])
    time_style = chance.choice(["plain", "plain", "exponent", "iso", "iso zone", "grouped"])
    time_digits = chance.choice([0, 1, 3, 6, 9])
    foreign = chance.random() < 0.15
    bad = chance.random() < 0.15
    now = Decimal(chance.choice([0, 0, 1, 999, 1_700_000_000]))
    day = datetime.datetime(2026, 11, 27, 9, 35, 48, tzinfo=datetime.timezone.utc)
    count = chance.choice([1, 2, 5, 30])
    for _ in range(count):
        code = chance.choice([READ, READ, WRITE, WRITE, WRITE | FUA, FLUSH, TRIM])
        word = chance.choice(WORDS[code]) if chance.random() < 0.98 else "FWFS"
        now += Decimal(chance.randrange(10_000)) / 10**time_digits
        row = []
        for column in columns:
            style = chance.choice(["plain", "decimals", "exponent", "grouped"]) if number_style == "mixed" else number_style
            if column == "op":
                row.append(word)
            elif column == "time":
                if time_style.startswith("iso"):
                    stamp = day + datetime.timedelta(microseconds=int(now * 1000) % 10**12)
                    text = stamp.strftime("%Y-%m-%dT%H:%M:%S.%f")
                    row.append(text + (chance.choice(["Z", "+00:00"]) if time_style == "iso zone" else ""))
                else:
                    row.append(written(chance, now, table.comma, time_style))
            elif column in ("offset", "size"):
                unit = SIZES[table.offset_unit if column == "offset" else table.size_unit]
                sectors = chance.randrange(1, 256) if column == "size" else chance.choice([0, 8, 1000, 10**6, 2**40 // 512])
                value = Decimal(sectors * chance.choice([1, 8])) * 512 / unit
                row.append(written(chance, value, table.comma, style))
            elif column == "device":
                row.append("sda")
            else:
                row.append(chance.choice(["", "7", "a b", "x,y", 'say "so"', "two\nlines", "ü", "1.5", "1,5", "-3", "5\" disk"]))
        table.rows.append(row)
    if delimiter == " ":
        for row in table.rows:
            row[:] = [re.sub(r"[\s]", "·", text).replace('"', "") or "-" for text in row]
    if foreign:
        chance.choice(table.rows)[columns.index("op")] = chance.choice(FOREIGN)
    if bad:
        place = columns.index(chance.choice([name for name in ("offset", "size", "time") if name in columns]))
        chance.choice(table.rows)[place] = chance.choice(BAD_NUMBERS)
    table.text = rendered(chance, table)
    units = {"time": table.time_unit, "offset": table.offset_unit, "size": table.size_unit}
    table.options = {"columns": ",".join(columns), "units": ",".join(units.get(name, "") for name in columns)}
    if chance.random() < 0.2:
        table.options["decimal"] = "comma" if table.comma else "point"
    return table


def rendered(chance: random.Random, table: Table) -> bytes:
    """The bytes of the table's file."""
    end = chance.choice(["\n", "\n", "\r\n", "\r"])
    has_lines = any("\n" in text for row in table.rows for text in row)
    if has_lines and end == "\r":
        end = "\n"
    header = [f"c{index}x" for index in range(len(table.columns))]
    if chance.random() < 0.5:
        header = [name if name != "_" else "note" for name in table.columns]
    has_header = chance.random() < 0.4
    rows = ([header] if has_header else []) + table.rows
    by = chance.choice(["hand", "csv", "pandas"])
    if by == "pandas" and table.delimiter != " ":
        frame = pandas.DataFrame(table.rows, dtype="str")
        quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
        text = frame.to_csv(
            sep=table.delimiter, header=header if has_header else False, index=False, quoting=quoting, lineterminator=end
        )
    elif by == "csv" and table.delimiter != " ":
        out = io.StringIO()
        quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
        csv.writer(out, delimiter=table.delimiter, quoting=quoting, lineterminator=end).writerows(rows)
        text = out.getvalue()
    else:
        # By hand: fields that need quotation marks have them.
        def one(text: str) -> str:
            needs = any(mark in text for mark in (table.delimiter, '"', "\n", "\r")) and table.delimiter != " "
            pad = chance.choice(["", "", " "]) if not needs and table.delimiter in ",;|" else ""
            return '"' + text.replace('"', '""') + '"' if needs else pad + text

        text = "".join(table.delimiter.join(map(one, row)) + end for row in rows)
        if chance.random() < 0.2:
            text = f"# made by hand{end}{end}" + text
    if chance.random() < 0.2:
        text = text.removesuffix(end)
    return (b"\xef\xbb\xbf" if chance.random() < 0.2 else b"") + text.encode()


def number(text: str, comma: bool) -> Decimal:
    """The number that `text` writes where the decimal mark is known."""
    text = text.strip()
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return Decimal(int(text, 16))
    group, mark = (".", ",") if comma else (",", ".")
    match = re.fullmatch(r"\+?(?P<whole>[0-9%s]*)(?:%s(?P<rest>[0-9]*))?(?P<e>[eE][+-]?[0-9]+)?" % (re.escape(group), re.escape(mark)), text)
    if not match or not (match["whole"] or match["rest"]):
        raise ValueError(text)
    whole = match["whole"]
    if group in whole and not re.fullmatch(r"[1-9][0-9]{0,2}(%s[0-9]{3})+" % re.escape(group), whole):
        raise ValueError(text)
    try:
        return Decimal(f"{whole.replace(group, '') or '0'}.{match['rest'] or '0'}{match['e'] or ''}")
    except InvalidOperation:
        raise ValueError(text) from None


def expected(table: Table) -> list[tuple[int, int, int, int]]:
    """What the independent reader reads: (time_ns, op, lba, sectors)."""
    text = table.text.decode("utf-8-sig")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    if table.delimiter == " ":
        rows = [line.split() for line in text.splitlines()]
    else:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=table.delimiter, strict=True))
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) > len(table.rows):
        rows = rows[1:]
    requests, first, zoned = [], None, set()
    for row in rows:
        cells = dict(zip(table.columns, (cell.strip() for cell in row)))
        if len(row) != len(table.columns):
            raise ValueError(row)
        time_ns = 0
        if "time" in cells:
            if re.match(r"\d{4}-", cells["time"]):
                stamp = datetime.datetime.fromisoformat(cells["time"])
                zoned.add(stamp.tzinfo is None)
                stamp = stamp.replace(tzinfo=stamp.tzinfo or datetime.timezone.utc)
                since = stamp - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
                time_ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
            else:
                zoned.add("number")
                time_ns = int(number(cells["time"], table.comma) * UNITS[table.time_unit])
            if len(zoned) > 1 or time_ns >= 2**64:
                raise ValueError(cells["time"])
        first = time_ns if first is None else first
        for code in MEANINGS[cells["op"].lower()]:
            lba = sectors = 0
            if code != FLUSH:
                offset = number(cells["offset"], table.comma) * SIZES[table.offset_unit]
                size = number(cells["size"], table.comma) * SIZES[table.size_unit]
                if offset != int(offset) or size != int(size) or offset + size >= 2**64:
                    raise ValueError(row)
                lba = int(offset) // 512
                sectors = -(-int(offset + size) // 512) - lba if size else 0
                if sectors >= 2**32:
                    raise ValueError(row)
            requests.append((max(0, time_ns - first), code, lba, sectors))
    return requests


def test_tables_are_read_right_or_refused(tmp_path):
    read = refused = silent = 0
    for seed in range(SEED, SEED + TABLES):
        table = made(seed)
        path = tmp_path / "table"
        path.write_bytes(table.text)
        try:
            meant = expected(table)
        except (ValueError, KeyError):
            meant = None
        try:
            found = pyarrow.table(imbrex.Trace(path, **table.options))
        except (imbrex.ImbrexError, ValueError) as error:
            message = str(error)
            named = re.search(r"column \d+|columns|line \d+|quotation mark|no requests", message)
            assert named, f"seed {seed}: refused without a place: {message}"
            refused += 1
            continue
        read += 1
        rows = list(zip(*(found.column(name).to_pylist() for name in ("time_ns", "op", "lba", "sectors"))))
        if meant is None or rows != meant:
            silent += 1
            print(f"seed {seed}: {table.options}\n{table.text!r}\n  read  {rows}\n  meant {meant}")
    print(f"{TABLES} tables: {read} read, {refused} refused, {silent} silently different")
    assert silent == 0
    # Most tables are sound: a reader that refuses everything fails.
    assert read > TABLES * 0.55


@pytest.mark.parametrize("word", FOREIGN)
def test_a_foreign_word_is_refused_by_name(tmp_path, word):
    path = tmp_path / "table"
    path.write_text(f"1,read,512,512\n2,{word},512,512\n")
    with pytest.raises((imbrex.ImbrexError, ValueError), match=r"line 2: column 2 \(op\): found .* expected read, write"):
        imbrex.Trace(path, columns="time,op,offset,size")
