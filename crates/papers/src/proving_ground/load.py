"""The load of the proving ground: fills a file system, changes files, syncs small files. Prints one JSON object a phase.

Usage: load.py FOLDER SEED [cut | verify COUNT]
On zonefs, whose files are the zones, all that would be a file is appended to the zones in turn, and nothing is changed.
With `cut`, prints the number of small files after the sync of each, without end: the power will be cut. With `verify`, prints how
many of the first COUNT small files are missing or wrong.
"""

import errno
import json
import mmap
import os
import random
import sys
import time

FILE_BYTES = 1 << 20
SMALL_BYTES = 4096
FILL_PERCENT = 95
CHANGES = 300
SMALL_FILES = 1000

folder, seed = sys.argv[1], int(sys.argv[2])
chosen = random.Random(seed)
latencies = []
has_zones = os.path.isdir(os.path.join(folder, "seq"))
# The zone that is written next on zonefs.
next_zone = 0


def contents(number, size):
    """Bytes of file `number` that no other file has."""
    return (b"%012d" % number * (size // 12 + 1))[:size]


def append(number, size):
    """Appends to the first zone with room for it, and syncs it. zonefs allows only direct writes, from whole pages."""
    global next_zone
    buffer = mmap.mmap(-1, size)
    buffer.write(contents(number, size))
    while True:
        path = os.path.join(folder, "seq/%d" % next_zone)
        if not os.path.exists(path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        state = os.stat(path)
        # The blocks of a file of zonefs are those of its zone.
        if state.st_size + size <= state.st_blocks * 512:
            break
        next_zone += 1
    file = os.open(path, os.O_WRONLY | os.O_DIRECT)
    try:
        os.pwrite(file, buffer, state.st_size)
        os.fsync(file)
    finally:
        os.close(file)


def write(name, number, size):
    """Writes a file and syncs it; keeps the time that this took."""
    begun = time.monotonic_ns()
    if has_zones:
        append(number, size)
        latencies.append(time.monotonic_ns() - begun)
        return
    with open(os.path.join(folder, name), "wb", buffering=0) as file:
        file.write(contents(number, size))
        os.fsync(file.fileno())
    latencies.append(time.monotonic_ns() - begun)


def used_percent():
    """Share of the room for files that is used."""
    state = os.statvfs(folder)
    used = state.f_blocks - state.f_bfree
    return 100 * used / (used + state.f_bavail)


def phase(name, begun, operations, size, error=None):
    """Ends a phase: prints its figures."""
    os.sync()
    taken = time.monotonic_ns() - begun
    ordered = sorted(latencies) or [0]
    row = {"phase": name, "ns": taken, "operations": operations, "bytes": operations * size, "error": error,
           "p99_ns": ordered[len(ordered) * 99 // 100], "longest_ns": ordered[-1]}
    print(json.dumps(row), flush=True)
    latencies.clear()


def fill():
    """Writes files until the file system is full to the share above. Returns their number."""
    count, begun, error = 0, time.monotonic_ns(), None
    try:
        # The figures of some file systems lag behind: asked now and then, after a sync.
        while count % 16 or (os.sync() or used_percent()) < FILL_PERCENT:
            write("file%d" % count, count, FILE_BYTES)
            count += 1
    except OSError as failure:
        error = os.strerror(failure.errno)
    phase("fill", begun, count, FILE_BYTES, error)
    return count


def change(files):
    """Replaces files, chosen at random, by new ones."""
    begun, done, error = time.monotonic_ns(), 0, None
    if has_zones:
        phase("change", begun, 0, FILE_BYTES, "zones are not overwritten")
        return
    try:
        for number in range(CHANGES):
            name = "file%d" % chosen.randrange(files)
            os.unlink(os.path.join(folder, name))
            write(name, files + number, FILE_BYTES)
            done += 1
    except OSError as failure:
        error = os.strerror(failure.errno)
    phase("change", begun, done, FILE_BYTES, error)


def sync_small(says):
    """Writes small files, each synced."""
    begun, done, error = time.monotonic_ns(), 0, None
    if not has_zones:
        os.makedirs(os.path.join(folder, "small"), exist_ok=True)
    try:
        while says or done < SMALL_FILES:
            write("small/%d" % done, done, SMALL_BYTES)
            done += 1
            if says:
                print(done, flush=True)
    except OSError as failure:
        error = os.strerror(failure.errno)
    phase("small", begun, done, SMALL_BYTES, error)


def read_small(number):
    """Reads a small file."""
    if not has_zones:
        with open(os.path.join(folder, "small/%d" % number), "rb") as file:
            return file.read()
    per_zone = os.stat(os.path.join(folder, "seq/0")).st_blocks * 512 // SMALL_BYTES
    with open(os.path.join(folder, "seq/%d" % (number // per_zone)), "rb") as file:
        file.seek(number % per_zone * SMALL_BYTES)
        return file.read(SMALL_BYTES)


if sys.argv[3:] == ["cut"]:
    sync_small(says=True)
elif sys.argv[3:4] == ["verify"]:
    bad = 0
    for number in range(int(sys.argv[4])):
        try:
            bad += read_small(number) != contents(number, SMALL_BYTES)
        except OSError:
            bad += 1
    print(bad)
else:
    files = fill()
    if files:
        change(files)
    sync_small(says=False)
