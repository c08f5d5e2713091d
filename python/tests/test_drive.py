"""Goal: a drive does what drives do to those who store things on them. Method: a small key-value store of the test's own, with
and without the mistake that drives punish; every kind of fault; the rules of zoned and caveat drives."""

import random

import imbrex
import pytest

BLOCK = 4096
CACHED = "cmr-7200"


class Store:
    """A key-value store: a record of one block for each key, whose commit is a counter in block 0."""

    def __init__(self, drive, flushes=True):
        self.drive, self.flushes = drive, flushes
        head = drive.read(0, BLOCK)
        self.records = int.from_bytes(head[:8], "little")

    def put(self, key, value):
        block = (self.records + 1) * BLOCK
        self.drive.write(block, f"{key}={value}".encode().ljust(BLOCK, b"\0"))
        if self.flushes:
            self.drive.flush()
        self.drive.write(0, (self.records + 1).to_bytes(8, "little").ljust(BLOCK, b"\0"), fua=True)
        self.records += 1

    def load(self):
        blocks = (self.drive.read((n + 1) * BLOCK, BLOCK).rstrip(b"\0").decode() for n in range(self.records))
        return dict(block.split("=") for block in blocks)


def survives(flushes):
    drive = imbrex.Drive.create(CACHED, write_cache=1 << 20)
    for n in range(20):
        Store(drive, flushes).put(f"key{n}", f"value{n}")
    drive.power_cut()
    return Store(drive).load() == {f"key{n}": f"value{n}" for n in range(20)}


def test_a_missing_flush_is_found():
    assert survives(flushes=True)
    with pytest.raises(ValueError, match="dictionary update sequence"):
        survives(flushes=False)


def test_a_cut_may_keep_any_of_what_was_not_flushed():
    seen = set()
    for seed in range(12):
        drive = imbrex.Drive.create(CACHED, write_cache=1 << 20)
        drive.write(0, b"a" * BLOCK)
        drive.flush()
        for block in range(3):
            drive.write(block * BLOCK, b"b" * BLOCK)
        assert drive.power_cut(seed)
        found = tuple(drive.read(block * BLOCK, BLOCK)[:1] for block in range(3))
        assert found[0] in (b"a", b"b") and set(found[1:]) <= {b"\0", b"b"}
        seen.add(found)
    assert len(seen) > 4, "seeds differ"


def test_time_is_simulated_and_goes_on_through_cuts():
    drive = imbrex.Drive.create(CACHED, write_cache=0)
    took = drive.write(10 << 30, b"x" * BLOCK)
    assert drive.latency_ns == took and 1_000_000 < took < 50_000_000, "a seek and a rotation"
    before = drive.now_ns
    assert before == took
    drive.read(0, BLOCK)
    assert drive.now_ns == before + drive.latency_ns
    drive.sleep(5_000_000_000)
    assert drive.now_ns >= before + 5_000_000_000
    now = drive.now_ns
    assert not drive.power_cut(), "nothing was unflushed"
    assert drive.now_ns == now and drive.read(10 << 30, BLOCK) == b"x" * BLOCK


def test_it_says_what_it_is():
    drive = imbrex.Drive.create(CACHED)
    drive.sleep(1_500)
    assert repr(drive) == f"<imbrex.Drive {CACHED} of {drive.capacity_bytes:,} bytes at 1,500 ns>"
    drive.close()
    assert repr(drive) == "<imbrex.Drive, closed>"
    with pytest.raises(ValueError, match="the drive is closed: Drive.open its image, or Drive.create another"):
        drive.power_cut()


def test_the_cache_holds_what_a_cut_loses():
    drive = imbrex.Drive.create(CACHED, write_cache=1 << 20)
    assert drive.write(0, bytearray(b"y" * BLOCK)) < 1_000_000
    assert drive.dirty_bytes == BLOCK
    drive.flush()
    assert drive.dirty_bytes == 0
    drive.write(BLOCK, memoryview(b"z" * BLOCK), fua=True)
    drive.power_cut()
    assert drive.read(0, 2 * BLOCK) == b"y" * BLOCK + b"z" * BLOCK
    assert drive.trim(0, BLOCK) == drive.latency_ns
    assert drive.read(0, BLOCK) in (bytes(BLOCK), b"y" * BLOCK), "a layer may keep trims or not"


def test_an_image_is_the_programs(tmp_path, run_program):
    path = tmp_path / "drive.img"
    with imbrex.Drive.create("imr-1t+track-map", path) as drive:
        drive.write(0, b"w" * BLOCK)
        with pytest.raises(imbrex.ImbrexError):
            imbrex.Drive.open(path)
    run_program("drive", "check", str(path))
    with imbrex.Drive.open(path) as drive:
        assert drive.read(0, BLOCK) == b"w" * BLOCK
    with pytest.raises(ValueError, match="closed"):
        drive.read(0, BLOCK)
    with pytest.raises(imbrex.ImbrexError, match="exists already.*try: "):
        imbrex.Drive.create("imr-1t+track-map", path)
    with pytest.raises(imbrex.ImbrexError, match="nowhere"):
        imbrex.Drive.open(tmp_path / "nowhere")


def test_a_layer_keeps_every_byte_through_cuts():
    drive, model, dice = imbrex.Drive.create("imr-1t+track-map", write_cache=1 << 20), {}, random.Random(3)
    for _ in range(300):
        block = dice.randrange(0, 5000) * BLOCK
        model[block] = bytes([dice.randrange(256)]) * BLOCK
        drive.write(block, model[block])
        if dice.random() < 0.05:
            drive.flush()
            drive.power_cut(dice.randrange(100))
    drive.flush()
    assert all(drive.read(block, BLOCK) == data for block, data in model.items())


def test_faults():
    drive = imbrex.Drive.create(CACHED, write_cache=0)
    drive.write(0, b"f" * BLOCK * 4)
    drive.fault("unreadable", offset=BLOCK, length=drive.sector_bytes)
    assert drive.read(0, BLOCK)
    with pytest.raises(imbrex.ImbrexError, match="unreadable until it is written"):
        drive.read(0, 4 * BLOCK)
    drive.write(BLOCK, b"g" * BLOCK)
    assert drive.read(0, 2 * BLOCK) == b"f" * BLOCK + b"g" * BLOCK
    drive.fault("slow", offset=0, length=BLOCK, by="2s")
    drive.read(0, BLOCK)
    assert drive.latency_ns >= 2_000_000_000
    drive.fault("slow", offset=8 * BLOCK, length=BLOCK, by=5_000_000_000)
    drive.read(8 * BLOCK, BLOCK)
    assert drive.latency_ns >= 5_000_000_000
    for kind, keys, said in [
        ("broken", {"offset": 1}, "expected one of unreadable, slow"),
        (3, {}, "expected one of unreadable, slow"),
        ("unreadable", {"offset": 0}, "takes offset and length, and needs length"),
        ("unreadable", {"offset": 0, "length": BLOCK, "by": "1s"}, "no by"),
        ("unreadable", {"offset": 1, "length": BLOCK}, "offset = 1: expected whole sectors of"),
        ("unreadable", {"offset": drive.capacity_bytes, "length": BLOCK}, "past"),
        ("zone-offline", {"zone": 0}, "zone"),
    ]:
        with pytest.raises(ValueError, match=said):
            drive.fault(kind, **keys)


def test_a_fault_takes_the_bytes_that_a_read_takes():
    """Expected: exactly the bytes of the fault cannot be read, whatever the size of a sector."""
    for text in (CACHED, "caveat-1g", "caveat-1g-512"):
        drive = imbrex.Drive.create(text, write_cache=0)
        drive.write(0, b"f" * BLOCK * 8)
        drive.fault("unreadable", offset=2 * BLOCK, length=3 * BLOCK)
        unread = []
        for offset in range(0, 8 * BLOCK, drive.sector_bytes):
            try:
                drive.read(offset, drive.sector_bytes)
            except imbrex.ImbrexError:
                unread.append(offset)
        assert unread == [*range(2 * BLOCK, 5 * BLOCK, drive.sector_bytes)], text


def test_a_pointer_moves_to_the_byte_that_zones_report():
    drive = imbrex.Drive.create("hm-zoned")
    zone = next(zone for zone in drive.zones() if zone.condition != "conventional")
    drive.write(zone.start, b"a" * 4 * BLOCK)
    drive.fault("pointer", zone=zone.index, to=BLOCK)
    assert drive.zones()[zone.index].pointer == BLOCK


def test_zones():
    drive = imbrex.Drive.create("hm-zoned")
    zone = next(zone for zone in drive.zones() if zone.condition != "conventional")
    drive.write(zone.start, b"a" * BLOCK)
    with pytest.raises(ValueError, match="takes its next write at"):
        drive.write(zone.start + 8 * BLOCK, b"b" * BLOCK)
    assert drive.zones()[zone.index].pointer == BLOCK
    drive.finish_zone(zone.index)
    assert drive.zones()[zone.index].condition == "full"
    drive.reset_zone(zone.index)
    assert drive.zones()[zone.index].pointer == 0 and drive.read(zone.start, BLOCK) == bytes(BLOCK)
    drive.open_zone(zone.index)
    drive.close_zone(zone.index)
    with pytest.raises(ValueError, match="no zone"):
        drive.reset_zone(10**6)
    drive.fault("zone-offline", zone=zone.index)
    with pytest.raises(ValueError, match="offline"):
        drive.read(zone.start, BLOCK)
    assert imbrex.Drive.create(CACHED).zones() == []


def test_a_caveat_disk_damages_what_follows():
    drive = imbrex.Drive.create("caveat-1g")
    told = drive.caveat
    sector = drive.sector_bytes
    drive.write(0, bytes(sector))
    far = told.isolation_bytes
    drive.write(far, bytes(sector))
    drive.write(far - told.no_overlap_bytes - sector, bytes(sector))
    with pytest.raises(imbrex.ImbrexError, match="destroyed"):
        drive.read(far, sector)
    assert imbrex.Drive.create(CACHED).caveat is None


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda drive: drive.read(0, 100), ValueError, "not whole sectors"),
        (lambda drive: drive.read(1 << 60, BLOCK), ValueError, "past the end"),
        (lambda drive: drive.read(-1, BLOCK), ValueError, "offset = -1: expected a whole number from 0"),
        (lambda drive: drive.read(0, 1 << 40), ValueError, "a request takes"),
        (lambda drive: drive.write(0, "text"), TypeError, "expected bytes"),
        (lambda drive: drive.write(0, b""), ValueError, "no bytes"),
        (lambda drive: imbrex.Drive.create(5), TypeError, "expected the text of a drive"),
        (lambda drive: imbrex.Drive.create("nothing"), ValueError, "no profile is called 'nothing'"),
        (lambda drive: drive.sleep(2**63), ValueError, "the clock ends"),
    ],
)
def test_what_cannot_be_is_an_exception_and_changes_nothing(call, error, said):
    drive = imbrex.Drive.create(CACHED)
    with pytest.raises(error, match=said):
        call(drive)
    assert drive.read(0, BLOCK) == bytes(BLOCK)
