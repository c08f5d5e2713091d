"""Goal: whatever is put to the package, only documented exceptions come out, each with words, and the interpreter lives on.
Method: a hunt with a seed: thousands of calls over the whole public face, in which one argument or several are wrong; tables of
every type and shape; every parameter of every layer; the native half called past the package; several threads at one drive."""

import math
import random
import threading

import imbrex
import pytest
from imbrex import _imbrex

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

DOCUMENTED = (TypeError, ValueError, imbrex.ImbrexError)
"""What docs/python.md says that calls raise."""

NUMBERS = [-1, 0, 1, 7, 512, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, 10**30, 1.5, 1e300, math.nan, math.inf, -0.0]
TEXTS = ["", " ", "\0", "\ud800", "ü", "💥" * 9, "a" * 5000, "../..", "/dev/null", "1%", "-1", "nan", "1e99", "k", "0", "{bs}", ",=;:+", "1..2/0"]
THINGS = [None, True, False, b"", b"\xff", [], [1], ["a"], [None], (), {}, {"a": 1}, {1: "a"}, object(), print, Exception, range(3)]
WRONG = NUMBERS + TEXTS + THINGS

SMALL = "rw=randwrite,bs=4k,size=16MiB,number_ios=5"
QUICK = "caveat-1g"
FINE = {"progress": False, "no_baseline": True, "limit": 20}


def attempt(call, *given, allowed=DOCUMENTED, **named):
    """The exception that came out, if any did; it must be documented and say something."""
    try:
        call(*given, **named)
    except allowed as error:
        assert str(error).strip(), f"{call} {given!r} {named!r}: {type(error)} without words"
        assert "a bug of imbrex" not in str(error), f"{call} {given!r} {named!r}: {error}"
        return error
    except BaseException as error:
        raise AssertionError(f"{call} {given!r} {named!r} raised {type(error).__name__}: {error}") from error
    return None


def refused(errors):
    """How many of the calls were refused."""
    return sum(error is not None for error in errors)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Files that a call makes of a wrong word for one lie in a folder of the test."""
    folder = tmp_path / "some" / "where" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)


@pytest.fixture
def dice():
    return random.Random(20)


def test_simulate_and_sweep_and_trace_with_wrong_arguments(dice):
    options = [name.replace("-", "_") for name in _imbrex.option_names()]
    errors = []
    for _ in range(1500):
        given = {**FINE, **{dice.choice(options): dice.choice(WRONG) for _ in range(dice.choice([0, 1, 1, 2]))}}
        given.setdefault("limit", 20)
        workload = dice.choice([SMALL, SMALL, SMALL, dice.choice(WRONG)])
        drive = dice.choice([QUICK, QUICK, QUICK, dice.choice(WRONG)])
        call = dice.choice([imbrex.simulate, imbrex.simulate, imbrex.sweep])
        if call is imbrex.sweep:
            given.pop("no_baseline")
            given["out"] = "swept"
            parameters = dice.choice([None, {dice.choice(["bs", "", "interval", 3]): dice.choice(WRONG)}, dice.choice(WRONG)])
            if dice.random() < 0.3:
                given[dice.choice(["out", "jobs", "retry_failed", "client"])] = dice.choice(THINGS)
            errors.append(attempt(call, workload, drive, parameters, **given))
        elif drive is None or drive == [] or drive == ():
            continue  # one of every kind: a sound call, and a long one
        else:
            errors.append(attempt(call, workload, drive, **given))
    for _ in range(300):
        name, value = dice.choice(options), dice.choice(WRONG)
        errors.append(attempt(imbrex.Trace, dice.choice([SMALL, dice.choice(WRONG)]), **{"limit": 5, name: value}))
    trace, results = imbrex.Trace(SMALL), imbrex.simulate(SMALL, QUICK, **FINE)
    for value in WRONG:
        errors.append(attempt(trace.batches, value))
        errors.append(attempt(trace.convert, value))
        errors.append(attempt(trace.convert, "t.csv", value))
        errors.append(attempt(results.report, value))
        errors.append(attempt(lambda value=value: results[value], allowed=(*DOCUMENTED, KeyError)))
    assert refused(errors) > 1000, "most of it is wrong"


def test_words_of_workloads_and_of_every_parameter_of_every_layer(dice):
    words = ["", "0", "1", "-1", "3", str(2**32), str(2**63), str(2**64), "1e300", "nan", "0%", "100%", "101%", "1k", "1t", "16e", "x", "ü", "true", "1ns", "1e9s"]
    keys = ["rw", "bs", "size", "number_ios", "iodepth", "rwmixread", "offset", "thinktime", "seed", "runtime", "bssplit", "percentage_random", "random_distribution", "idle", "x"]
    errors = []
    for _ in range(400):
        text = SMALL + "".join(f"{dice.choice(',,,;')}{dice.choice(keys)}={dice.choice(words)}" for _ in range(dice.randrange(1, 4)))
        errors.append(attempt(imbrex.simulate, text, QUICK, **FINE))
    profiles = {profile["default_layer"]: profile["profile"] for profile in imbrex.drives()}
    for layer in imbrex.layers():
        for parameter in layer["parameters"]:
            for word in dice.sample(words, 5):
                profile = profiles.get(layer["layer"], "cassuto-307g")
                drive = f"{profile}+{layer['layer']}:{parameter['key']}={word}"
                errors.append(attempt(imbrex.simulate, SMALL, drive, **FINE))
    assert refused(errors) > 300


def arrays():
    """Columns of every type that a table may have."""
    pyarrow = pytest.importorskip("pyarrow")
    sound = pyarrow.array([0, 1, 1])
    yield from (sound.cast(kind) for kind in ("int8", "uint8", "int16", "uint32", "int64", "uint64", "float32", "float64", "string", "large_string", "bool"))
    yield from (pyarrow.array(values) for values in ([-1, 0, 1], [None, 1, 2], [None] * 3, [[1], [2], []], [b"a", b"", b"b"]))
    yield from (pyarrow.array(["read", "write", None]), pyarrow.array(["read", "ü", "\0"]), pyarrow.array([{"a": 1}] * 3))
    yield pyarrow.array([2**63, 2**64 - 1, 0], "uint64")
    yield from (sound.cast("timestamp[ns]"), sound.cast("duration[s]"), pyarrow.array([1.5, math.nan, math.inf]))
    yield pyarrow.array(["read", "write", "read"]).dictionary_encode()
    yield pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, None, 1], "int8"), pyarrow.array(["read", None]))
    yield pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 9, -3], "int8"), pyarrow.array(["read"]), safe=False)
    yield pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 1], "uint16"), pyarrow.array([1.5, 2.5]))
    yield pyarrow.RunEndEncodedArray.from_arrays([1, 3], ["read", "write"])
    yield pyarrow.array(["read", "write", "read"]).cast("string_view")


def test_tables_of_every_type_and_shape(dice):
    pyarrow = pytest.importorskip("pyarrow")
    sound = {"time_ns": pyarrow.array([0, 1, 2]), "op": pyarrow.array([0, 1, 1]), "lba": pyarrow.array([0, 8, 16]), "sectors": pyarrow.array([8] * 3)}
    errors = []
    for column in (*sound, "device", "", "ü"):
        for array in arrays():
            table = pyarrow.table({**sound, column: array})
            errors.append(attempt(imbrex.simulate, table, QUICK, **FINE))
            errors.append(attempt(imbrex.simulate, {**sound, column: array}, QUICK, **FINE))
            errors.append(attempt(imbrex.Trace, table.slice(0, dice.randrange(3))))
    for names in ([], ["lba"], ["lba", "lba"], ["time_ns", "op", "lba", "sectors", "op"]):
        table = pyarrow.Table.from_arrays([pyarrow.array([1, 2])] * len(names), names)
        errors.append(attempt(imbrex.simulate, table, QUICK, **FINE))
    for values in WRONG:
        errors.append(attempt(imbrex.simulate, {**{name: [0, 1] for name in sound}, dice.choice([*sound]): values}, QUICK, **FINE))
    consumed = pyarrow.table(sound).to_reader()
    consumed.read_all()
    errors.append(attempt(imbrex.simulate, consumed, QUICK, **FINE))
    for stream in (None, 3, "stream", object(), _imbrex.Columns):
        table = type("Table", (), {"__arrow_c_stream__": lambda self, schema=None, stream=stream: stream})()
        assert attempt(imbrex.simulate, table, QUICK, **FINE), "no capsule"
    assert refused(errors) > 200


CALLS = ("read", "write", "trim", "sleep", "power_cut", "fault", "reset_zone", "open_zone", "close_zone", "finish_zone", "flush")


def at_random(drive, dice):
    """One call on `drive`, most likely a wrong one."""
    name = dice.choice(CALLS)
    value = lambda: dice.choice([0, 512, 4096, dice.choice(WRONG)])  # noqa: E731
    data = lambda: dice.choice([bytes(4096), bytearray(512), memoryview(bytes(8192))[::2], dice.choice(WRONG)])  # noqa: E731
    kinds = ["unreadable", "slow", "zone-offline", "zone-read-only", "pointer", value()]
    keys = {key: value() for key in dice.sample(["offset", "length", "by", "zone", "to", "at", "after_requests", 'x"\n'], 3)}
    given = {
        "read": lambda: (value(), dice.choice([4096, 1 << 20, value()])),
        "write": lambda: (value(), data()),
        "trim": lambda: (value(), value()),
        "fault": lambda: (dice.choice(kinds),),
        "flush": lambda: (),
    }.get(name, lambda: (value(),))()
    return attempt(getattr(drive, name), *given, **(keys if name == "fault" else {}))


@pytest.mark.parametrize("text", ["cmr-7200", "hm-zoned", QUICK, "imr-1t+track-map", "cassuto-307g+s-blocks"])
def test_a_drive_lives_through_wrong_calls(dice, text):
    drive = imbrex.Drive.create(text, write_cache=1 << 20)
    errors = [at_random(drive, dice) for _ in range(500)]
    assert 100 < refused(errors) < 500
    assert drive.now_ns >= 0 and not any("drive is closed" in str(error) for error in errors)
    drive.close()
    assert all(at_random(drive, dice) for _ in range(50)), "a closed drive takes nothing"


def test_making_drives_and_asking_with_wrong_arguments(dice):
    errors = []
    for value in WRONG:
        errors += [
            attempt(imbrex.Drive.create, value),
            attempt(imbrex.Drive.create, QUICK, dice.choice(TEXTS) if value is None else value),
            attempt(imbrex.Drive.create, QUICK, write_cache=value),
            attempt(imbrex.Drive.create, QUICK, read_ahead=value),
            attempt(imbrex.Drive.open, value),
            attempt(imbrex.layer, value),
            attempt(imbrex.drive, value),
            attempt(imbrex.probe, value, progress=False),
            attempt(imbrex.probe, "/dev/null", tests=value, progress=False),
            attempt(imbrex.probe, "/dev/null", budget=value, progress=False),
            attempt(imbrex.probe, "/dev/null", seed=value, progress=False),
            attempt(imbrex.validate, value, QUICK, progress=False),
            attempt(imbrex.validate, "/dev/null", value, columns=value, units=value, device=value, progress=False),
            attempt(imbrex.fit, value, QUICK, progress=False),
            attempt(imbrex.fit, "/dev/null", value, progress=False),
        ]
    assert refused(errors) > 500


def test_the_native_half_past_the_package(dice):
    """What the package's modules never pass. Python's own errors of conversion may come out, and no panic."""
    sweep = _imbrex.Sweep([("w", SMALL)], [QUICK], [], [], "swept", False)
    shipped = _imbrex.Shipped(SMALL, [], b"")
    targets = [
        _imbrex.simulate, _imbrex.probed, _imbrex.validated, _imbrex.fitted, _imbrex.listed, _imbrex.one,
        _imbrex.Sweep, sweep.run, sweep.missing, sweep.payload, sweep.keep, sweep.write_page,
        _imbrex.Shipped, shipped.run, _imbrex.Trace, _imbrex.Trace(SMALL, [], False).batches,
        _imbrex.Columns.of_arrow, _imbrex.Columns.of_columns, _imbrex.Drive.create, _imbrex.Drive.open,
        _imbrex.Table, _imbrex.Batch, _imbrex.Batches, _imbrex.Simulated, _imbrex.Drive.create(QUICK).play_faults,
    ]  # fmt: skip
    errors = []
    for _ in range(2000):
        given = [dice.choice(WRONG) for _ in range(dice.randrange(6))]
        errors.append(attempt(dice.choice(targets), *given, allowed=(*DOCUMENTED, AttributeError, OverflowError, IndexError)))
    assert refused(errors) > 1000


def test_threads_at_one_drive_and_beside_it():
    drive, failed = imbrex.Drive.create(QUICK, write_cache=1 << 20), []

    def hunt(seed):
        dice = random.Random(seed)
        try:
            for _ in range(150):
                at_random(drive, dice)
                if dice.random() < 0.1:
                    attempt(imbrex.simulate, SMALL, dice.choice([QUICK, "x"]), **FINE)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=hunt, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]
