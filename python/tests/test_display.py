"""The display of tables in notebooks and terminals, and of progress.

Goal: tables are HTML with numbers to the right, in units for people, in the program's forms; hostile names stay text; progress
has a row for each piece of work and one line at the end. Method: the HTML is parsed with Python's own parser, numbers are
compared with the program's table, and a display with a clock of its own records the drawings of progress.
"""

import re
import sys
from html.parser import HTMLParser

import pytest
from conftest import DRIVES, WORDS

import imbrex
from imbrex import _cells, _progress

HOSTILE = 'a<b onclick=x>&"q"'
NUMBER = re.compile(r"[+±-]?\d[\d,.]*( (ns|µs|ms|s|min|h|[KMGTPE]i?B|B|%))?( ± .*)?")
WORDS_OF_UNITS = ("ns", "µs", "ms", " s", "min", "h")


class Tables(HTMLParser):
    """Reads tables: a list of (heading cells, rows of cells), each cell with its text and its style."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.cell, self.styles = [], set(), None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.add(tag)
        assert not [name for name in attributes if name.startswith("on")], attributes
        if tag in ("table", "th", "td", "tr"):
            self.styles.append(attributes.get("style", ""))
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("th", "td"):
            self.cell = ["", attributes.get("style", "")]
            self.tables[-1][-1].append(self.cell)

    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.cell = None


def table_of(text, number=0):
    """Returns the headings, the rows as texts, and the alignment of each column of a table. All its cells must agree."""
    parsed = Tables(text)
    head, *rows = parsed.tables[number]
    assert all(len(row) == len(head) for row in rows)
    alignments = []
    for column in zip(head, *rows):
        (alignment,) = {re.search(r"text-align:(\w+)", style)[1] for _, style in column}
        alignments.append(alignment)
    assert "tabular-nums" in parsed.styles[0]
    for style in parsed.styles:
        colours = re.search(r"color|background|#[0-9a-fA-F]{3}|rgb", style)
        assert not colours, f"a colour of its own, which does not suit every theme: {style}"
    return [text for text, _ in head], [[text for text, _ in row] for row in rows], alignments


def numbers_stand_to_the_right(headings, rows, alignments):
    for heading, alignment, *cells in zip(headings, alignments, *rows):
        cells = [cell for cell in cells if cell not in ("–", "")]
        is_numeric = bool(cells) and all(NUMBER.fullmatch(cell) for cell in cells)
        assert not cells or (alignment == "right") == is_numeric, (heading, alignment, cells)


@pytest.fixture(scope="module")
def results():
    return imbrex.simulate(WORDS, DRIVES, per_io=True, explain=3)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / f"{HOSTILE}.toml"
    path.write_text('name = "mine"\nbase = "cmr-7200"\n')
    return path


def test_results_are_a_table_with_baselines_first_and_ratios_beside_values(results):
    headings, rows, alignments = table_of(results._repr_html_())
    assert alignments == ["left"] + ["right"] * (len(headings) - 1)
    numbers_stand_to_the_right(headings, rows, alignments)
    is_baseline = [row[0].endswith(" (baseline)") for row in rows]
    assert is_baseline == [True, False, True, False], rows
    at = headings.index("write mean")
    assert headings[at + 1] == "(×)" and [row[at + 1] == "" for row in rows] == is_baseline
    for row in rows:
        drive = results[row[0].removesuffix(" (baseline)")]
        assert row[at] == _cells.duration(drive["latency_ns"]["write"]["mean"])
        assert row[at + 1] in ("", _cells.ratio(drive["latency_ratio"]["write"]["mean"]))


def test_numbers_have_the_forms_of_the_programs_table(results):
    headings, rows, _ = table_of(results._repr_html_())
    printed = str(results)
    forms = {
        "done": (_cells.count, "completed"),
        "longest stall": (_cells.duration, "longest_stall_ns"),
        "time": (_cells.duration, "duration_ns"),
        "write ampl.": (_cells.ratio, "write_amplification"),
        "overload": (_cells.ratio, "write_overloading"),
        "map": (_cells.size, "map_bytes"),
        "capacity": (_cells.gain, "capacity_gain"),
    }
    for row in rows:
        drive = results[row[0].removesuffix(" (baseline)")]
        (line,) = (line for line in printed.splitlines() if line.strip().startswith(f"{row[0]}  "))
        for heading, (form, name) in forms.items():
            text = row[headings.index(heading)]
            assert form(drive[name]) == text and text in line, (heading, line)
            assert _cells.shown(name, drive[name]) == (text if name != "completed" else f"{drive[name]:,}")


@pytest.mark.parametrize(
    ("form", "number", "text"),
    [
        (_cells.duration, 0, "0 ns"), (_cells.duration, 999, "999 ns"), (_cells.duration, 1250, "1.2 µs"),
        (_cells.duration, 12_500_000, "12.50 ms"), (_cells.duration, 599_999_999_999, "600.00 s"),
        (_cells.duration, 600 * 10**9, "10.0 min"), (_cells.duration, 9_000 * 10**9, "2.5 h"), (_cells.duration, 0.5, "1 ns"),
        (_cells.size, 0, "0 B"), (_cells.size, 4096, "4 KiB"), (_cells.size, 20_000_000_000, "18.6 GiB"),
        (_cells.size, 2**20 - 1, "1.0 MiB"), (_cells.size, int(99.97 * 2**20), "100 MiB"), (_cells.size, 2**63, "8 EiB"),
        (_cells.ratio, 1, "1.00"), (_cells.ratio, 38.12, "38.1"), (_cells.ratio, 117.4, "117"),
        (_cells.ratio, 12_344.5, "12,345"),
        (_cells.gain, 1.238, "+23.8 %"), (_cells.gain, 1.0004, "±0 %"), (_cells.gain, 0.9, "-10.0 %"),
        (_cells.count, 2**63 - 1, "9,223,372,036,854,775,807"), (_cells.count, 0.000_123_45, "0.0001234"),
        (_cells.share, 0.229, "22.9 %"),
    ],
)  # fmt: skip
def test_numbers_read_well(form, number, text):
    assert form(number) == text


@pytest.mark.parametrize("name", ["latency", "timeline", "ios", "explain"])
def test_tables_have_numbers_to_the_right_in_units_for_people(results, name):
    table = results.explain() if name == "explain" else getattr(results, name)
    headings, rows, alignments = table_of(table._repr_html_())
    numbers_stand_to_the_right(headings, rows, alignments)
    data = table.to_dict()
    assert len(headings) == len(data) and 0 < len(rows) <= 10
    for column, (heading, alignment) in zip(data, zip(headings, alignments)):
        cells = [row[headings.index(heading)] for row in rows]
        values = data[column][: len(rows)]
        assert cells == [_cells.shown(column, value) for value in values], column
        if column.endswith("_ns"):
            assert alignment == "right" and not heading.endswith("ns")
            assert all(cell == "–" or cell.endswith(WORDS_OF_UNITS) for cell in cells), cells
        if column.endswith("_bytes"):
            assert alignment == "right" and heading.endswith("bytes") and all(cell.endswith("B") for cell in cells)
        assert not any(isinstance(value, str) for value in values) or alignment == "left", "the data stay numbers"
    assert all(column in table._repr_html_() for column in data), "the names that `table[NAME]` takes are shown"


def test_a_table_without_rows_has_headings(results):
    table = results.explain(worst=0)
    headings, rows, _ = table_of(table._repr_html_())
    assert headings[0] == "drive" and rows == [] and "0 rows" in repr(table)


def test_a_sweep_is_a_table_with_ratios_and_intervals(tmp_path):
    grid = {"bs": ["4k", "16k"]}
    words = "rw=randwrite,bs={bs},size=1GiB,number_ios=300"
    swept = imbrex.sweep(words, DRIVES[0], grid, out=tmp_path, seeds=2, baseline="cmr-7200")
    headings, rows, alignments = table_of(swept._repr_html_())
    assert headings == ["workload", "drive", "bs", "seeds", "write mean", "(×)", "write ampl."]
    assert alignments == ["left"] * 2 + ["right"] * 5
    assert [row[2] for row in rows] == ["4k", "16k"]
    means, ratios = swept.table["write_mean_ns"], swept.table["write_mean_ratio"]
    assert [row[4] for row in rows] == [_cells.duration(mean) for mean in means]
    assert [row[5] for row in rows] == [_cells.ratio(ratio) for ratio in ratios]
    halves = swept.table["write_amplification_half_width_95"]
    assert [row[6].split(" ± ")[1] for row in rows] == [_cells.ratio(half) for half in halves]
    lines = repr(swept).splitlines()
    assert "bs 16k" in repr(swept) and lines[-1].startswith("2 points, 0 failed, in ")
    assert table_of(swept.table._repr_html_())[0][0] == "key", "the table of all columns can be displayed, too"


def test_a_long_sweep_says_how_many_points_are_left_out(tmp_path):
    swept = imbrex.sweep("rw=write,bs=4k,size=1GiB,number_ios=5", DRIVES[0], {"interval": "1..70/1"}, out=tmp_path)
    assert len(table_of(swept._repr_html_())[1]) == 60
    assert "the first 60 are shown, and the table has 10 more" in swept._repr_html_()


def test_hostile_names_stay_text(hostile, tmp_path):
    results = imbrex.simulate("rw=randwrite,bs=4k,size=1GiB,number_ios=20", hostile, no_baseline=True, per_io=True)
    words = {"<script>alert(1)</script>": {"time_ns": [0], "op": ["write"], "lba": [0], "sectors": [8]}}
    with pytest.warns(UserWarning, match="1 of 2 points failed"):
        swept = imbrex.sweep(words, [str(hostile), "imr-1t+track-map:interval=<img>"], out=tmp_path / "<i>")
    pages = [results._repr_html_(), results.latency._repr_html_(), results.ios._repr_html_(), swept._repr_html_()]
    pages += [swept.table._repr_html_()]
    for page in pages:
        parsed = Tables(page)
        assert not parsed.tags & {"b onclick=x", "script", "img", "i"}, parsed.tags
        texts = [text for table in parsed.tables for row in table for text, _ in row]
        assert any(HOSTILE in text for text in texts), texts
    headings, rows, alignments = table_of(pages[3])
    assert (headings[-1], alignments[-1]) == ("error", "left") and rows[0][-1] == "" and "<img>" in rows[1][-1]
    drawing = Drawn()
    drawing([(HOSTILE, 1, 2)])
    assert Tables(drawing.shown[0]).tables[0][0][0][0] == HOSTILE and "<b" not in drawing.shown[0]


def test_statistics_of_a_trace_are_tables_and_a_dictionary():
    info = imbrex.Trace("cloudphysics-w106", limit=3000).info()
    assert isinstance(info, dict) and info["write_size_bytes"]["p50"] == 4096
    headings, rows, alignments = table_of(info._repr_html_())
    assert (headings, alignments) == (["figure", "value"], ["left", "right"])
    figures = dict(rows)
    assert figures["requests"] == "3,000" and figures["reaches to"] == _cells.size(info["lba_end"] * 512)
    assert figures["working set: read bytes"] == _cells.size(info["working_set"]["read_bytes"])
    assert figures["sequential: read share"].endswith(" %") and "schema" not in figures
    headings, rows, alignments = table_of(info._repr_html_(), 1)
    assert headings[:3] == ["distribution", "mean", "min"] and alignments == ["left"] + ["right"] * (len(headings) - 1)
    assert [row[0] for row in rows] == ["inter arrival", "read size", "write size"]
    assert rows[2][headings.index("p50")] == "4 KiB" and rows[0][1].endswith("ms")
    assert "made up" in info._repr_html_() and "made up" in repr(info)


def test_devices_of_a_trace_have_a_table():
    columns = {"time_ns": [0, 1, 2], "op": [1, 1, 0], "lba": [0, 8, 16], "sectors": [8, 8, 8], "device": [0, 0, 1]}
    info = imbrex.Trace(columns).info()
    assert len(info["devices"]) == 2
    headings, rows, alignments = table_of(info._repr_html_(), -1)
    assert headings[0] == "device" and alignments[0] == "left" and set(alignments[1:]) == {"right"}
    assert rows[0][headings.index("write bytes")] == "8 KiB"


def test_lists_of_what_there_is_are_tables():
    for listed in (imbrex.drives(), imbrex.layers(), imbrex.formats(), imbrex.generators()):
        assert isinstance(listed, list)
        headings, rows, _ = table_of(listed._repr_html_())
        assert [row[0] for row in rows] == [next(iter(entry.values())) for entry in listed]
        assert "parameters" not in headings
    headings, _, alignments = table_of(imbrex.drives()._repr_html_())
    assert alignments[headings.index("raw size")] == "right"


@pytest.mark.parametrize("width", ["80", "300"])
def test_a_terminal_gets_lines_that_fit(results, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", width)
    for table in (results, results.latency, results.timeline, imbrex.Trace(WORDS).info()):
        lines = [line for line in repr(table).splitlines() if not line.startswith(("the first", "(×)"))]
        assert max(map(len, lines)) <= int(width)
    head, *lines, note = repr(results.latency).splitlines()
    end = head.index("count") + len("count")
    assert all(len(line) == end and line[end - 1].isdigit() for line in lines), "the right edges of numbers agree"
    assert note.startswith("the first 10 of ") and note.endswith("columns: drive, operation, upper_edge_ns, count")


class Drawn(_progress.Drawing):
    """A drawing on a display that keeps what it is given, with a clock that is set."""

    def __init__(self):
        self.time_s, self.shown, self.texts = 0.0, [], []
        super().__init__(self.keep, lambda: self.time_s)

    def keep(self, drawing, text):
        self.shown.append(drawing)
        self.texts.append(text)

    def cells(self):
        """The cells of the last drawing, without bars."""
        return [[text for text, _ in row] for row in Tables(self.shown[-1]).tables[0]]


def test_progress_has_a_row_for_each_piece_of_work():
    drawn = Drawn()
    drawn([("reading the trace", 1000, None)])
    drawn.time_s = 2.0
    drawn([("one", 0, 300_000), ("other", 30, 300_000)])
    drawn.time_s = 64.0
    drawn([("one", 251_234, 300_000), ("other", 3000, 300_000)])
    assert drawn.cells() == [
        ["reading the trace", "", "", "1,000", "0:02", ""],
        ["one", "", "83.7 %", "251,234 of 300,000 requests", "1:02", "0:12 left"],
        ["other", "", "1.00 %", "3,000 of 300,000 requests", "1:02", "1:42:18 left"],
    ]
    assert re.findall(r'<progress [^>]*value="([\d.]+)" max="1"', drawn.shown[-1]) == ["0.8374", "0.0100"]
    drawn.time_s = 70.0
    drawn([("other", 6000, 300_000)])
    assert drawn.cells()[1] == ["one", "", "100 %", "300,000 of 300,000 requests", "1:08", ""], "it has ended"
    lines = drawn.texts[-1].splitlines()
    assert len(lines) == 3 and "=" * 20 in lines[1] and "2.00 %" in lines[2]


def test_work_of_one_name_may_be_under_way_twice_and_again():
    drawn = Drawn()
    drawn([("same", 10, 100), ("same", 20, 100)])
    assert [row[2] for row in drawn.cells()] == ["10.0 %", "20.0 %"]
    drawn.time_s = 1.0
    drawn([])
    assert [row[2] for row in drawn.cells()] == ["100 %", "100 %"]
    drawn.time_s = 5.0
    drawn([("same", 5, 100)])
    assert [row[2:5] for row in drawn.cells()] == [
        ["5.00 %", "5 of 100 requests", "0:00"],
        ["100 %", "100 of 100 requests", "0:01"],
    ]


def test_points_are_counted_as_points():
    seen = []
    drive = DRIVES[0]
    imbrex.sweep("rw=randwrite,bs=4k,size=1GiB,number_ios=3000", drive, {"interval": "1..300/1"}, progress=seen.append)
    names = {name for told in seen for name, _, _ in told}
    assert "sweep" in names
    for name in names:
        assert _progress.UNITS.get(name) == "points", f"the unit of '{name}'"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.000 %"), (0.000_123_4, "0.012 %"), (0.001_234, "0.123 %"), (0.012_34, "1.23 %"), (0.29, "29.0 %"),
     (0.9999, "99.9 %"), (1, "100 %")],
)  # fmt: skip
def test_percentages_have_three_digits_and_do_not_end_early(share, text):
    assert _progress.percent(share) == text


def test_progress_is_drawn_ten_times_a_second_at_most():
    drawn = Drawn()
    for step in range(1000):
        drawn.time_s = step / 1000
        drawn([("work", step, 1000)])
    assert 9 <= len(drawn.shown) <= 10


def shown_by(monkeypatch, work, is_stopped=False):
    """Calls `work` with progress in a notebook whose display is a fake. Returns what was displayed."""
    displays = []

    class Display:
        def __init__(self):
            self.shown = []
            displays.append(self)

        def __call__(self, drawing, text):
            self.shown.append((drawing, text))

    monkeypatch.setattr(_progress, "NotebookDisplay", Display)
    monkeypatch.setattr(_progress, "in_notebook", lambda: True)
    showing = _progress.Showing(None)
    try:
        with showing as shown:
            showing.is_stopped = is_stopped
            work(shown)
    finally:
        (display,) = displays
        texts = [text for _, text in display.shown]
        assert not any("<progress" in drawing for drawing, _ in display.shown[-1:]), "the rows are gone at the end"
        work.texts = texts
    return texts


@pytest.mark.parametrize(
    ("error", "is_stopped", "outcome"),
    [
        (None, False, "done in "),
        (None, True, "interrupted after "),
        (KeyboardInterrupt, False, "interrupted after "),
        (ZeroDivisionError, False, "failed after "),
    ],
)
def test_the_rows_end_as_one_line(monkeypatch, error, is_stopped, outcome):
    def work(shown):
        shown([("work", 1, 2)])
        if error is not None:
            raise error

    if error is None:
        shown_by(monkeypatch, work, is_stopped)
    else:
        with pytest.raises(error):
            shown_by(monkeypatch, work)
    assert len(work.texts) == 2 and "50.0 %" in work.texts[0]
    assert re.fullmatch(re.escape(outcome) + r"[\d.]+ (ns|µs|ms|s)", work.texts[1]), work.texts


def test_short_work_shows_nothing(monkeypatch):
    assert shown_by(monkeypatch, type("Work", (), {"__call__": lambda self, shown: shown([])})()) == []


def test_a_call_shows_its_progress_and_its_end(monkeypatch):
    def work(shown):
        words = "rw=randwrite,bs=4k,size=10GiB,number_ios=400000"
        results = imbrex.simulate(words, DRIVES[0], no_baseline=True, progress=shown)
        assert results[DRIVES[0]]["completed"] == 400_000

    *drawings, end = shown_by(monkeypatch, work)
    assert drawings and all(DRIVES[0] in text and "of 400,000 requests" in text for text in drawings)
    assert end.startswith("done in ")


def test_an_invalid_call_in_a_notebook_leaves_no_rows(monkeypatch):
    def work(shown):
        imbrex.simulate(WORDS, "no-such-drive", progress=shown)

    with pytest.raises(ValueError, match="no profile"):
        shown_by(monkeypatch, work)
    assert work.texts == []


@pytest.mark.parametrize(("asked", "is_terminal", "shown"), [
    (None, True, True), (None, False, False), (True, False, True), (False, True, False),
])  # fmt: skip
def test_a_terminal_has_the_bars_of_the_native_half(monkeypatch, asked, is_terminal, shown):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with _progress.Showing(asked) as given:
        assert given is shown
    call = [].append
    with _progress.Showing(call) as given:
        assert given is call


def test_points_on_a_cluster_are_drawn_on_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with _progress.Showing(None, is_native=False) as shown:
        shown([("sweep", 1, 4)])
    said = capsys.readouterr().err
    assert "25.0 %  1 of 4 points" in said
    assert said.splitlines()[-1].startswith("\x1b[1F\x1b[Jdone in "), "the line replaces the row"
