#!/usr/bin/env python3
"""Ages an empty file system to half full, makes a probe file of 4 GiB on it, and prints the extents of the probe file.

    age.py FOLDER FILE_SYSTEM LEVEL SEED [NOTE…]

FOLDER is the root of the mounted file system. FILE_SYSTEM and LEVEL name an entry of LEVELS. Each NOTE becomes a line of
the header. scripts/extents/make.sh calls this program, as root.

The files of the ageing are allocated with fallocate and hold no data. One seed decides all sizes, folders and deletions.
The probe file is allocated with one posix_fallocate, and then written once in order, with O_DIRECT and 1 MiB per write.

The output has one line per extent: `LOGICAL_BYTES PHYSICAL_BYTES LENGTH_BYTES`. Physical bytes count from the start of the
device that holds the file system.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
import sys
from collections import namedtuple

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BLOCK_BYTES = 4 * KIB
FILE_BYTES_MIN, FILE_BYTES_MAX = 64 * KIB, 512 * MIB
PROBE_BYTES = 4 * GIB
WRITE_BYTES = MIB
FOLDERS = 64
FILL_END = 0.50
# A round of the ageing ends after this many failed allocations, or when its share of the file system is used.
FAILURES_MAX = 20
# Deletions between two commits of the file system.
DELETIONS = 16

# rounds: how often the file system is filled to the share fill_max and emptied to the share fill_min.
# writers: files that grow at the same time. A random one of them grows by at most piece_bytes at a time.
# skew: above 1, small files are more frequent than the even spread of logarithms makes them.
Level = namedtuple("Level", "rounds fill_max fill_min writers piece_bytes skew")
# XFS takes the largest free extents first, so its levels need more ageing than those of ext4.
LEVELS = {
    ("ext4", "mild"): Level(rounds=2, fill_max=0.60, fill_min=0.45, writers=1, piece_bytes=FILE_BYTES_MAX, skew=1.0),
    ("ext4", "medium"): Level(rounds=4, fill_max=0.90, fill_min=0.60, writers=2, piece_bytes=64 * MIB, skew=1.0),
    ("ext4", "heavy"): Level(rounds=10, fill_max=0.97, fill_min=0.70, writers=8, piece_bytes=8 * MIB, skew=1.0),
    ("xfs", "mild"): Level(rounds=4, fill_max=0.90, fill_min=0.60, writers=2, piece_bytes=64 * MIB, skew=1.0),
    ("xfs", "medium"): Level(rounds=10, fill_max=0.97, fill_min=0.70, writers=16, piece_bytes=4 * MIB, skew=1.0),
    ("xfs", "heavy"): Level(rounds=10, fill_max=0.97, fill_min=0.70, writers=64, piece_bytes=512 * KIB, skew=1.5),
}

FS_IOC_FIEMAP = 0xC020660B
FIEMAP_FLAG_SYNC = 1
FIEMAP_EXTENT_LAST = 1
FIEMAP_HEADER = struct.Struct("=QQIIII")  # start, length, flags, mapped extents, room for extents, reserved
FIEMAP_EXTENT = struct.Struct("=QQQQQIIII")  # logical, physical, length, 2 reserved, flags, 3 reserved
EXTENTS_PER_CALL = 512

libc = ctypes.CDLL(None, use_errno=True)


def sync(folder):
    """Commits all changes, so that freed blocks can be allocated again. FIFREEZE also waits for work in the background."""
    handle = os.open(folder, os.O_RDONLY)
    if libc.syncfs(handle) != 0:
        raise OSError(ctypes.get_errno(), "syncfs")
    for request in (0xC0045877, 0xC0045878):  # FIFREEZE, FITHAW
        fcntl.ioctl(handle, request, 0)
    os.close(handle)


def fill(folder):
    """Returns the used share of the space that files of all users can take."""
    status = os.statvfs(folder)
    return 1 - status.f_bavail / (status.f_blocks - (status.f_bfree - status.f_bavail))


class Ageing:
    """The files of the ageing, and the random generator that decides their sizes, folders and deletions."""

    def __init__(self, folder, level, seed):
        self.folder, self.level, self.random = folder, level, random.Random(seed)
        self.files = []
        self.made = 0
        for number in range(FOLDERS):
            os.mkdir(f"{folder}/d{number:02}")

    def size_bytes(self):
        """Returns a size from FILE_BYTES_MIN to FILE_BYTES_MAX, whose logarithm is evenly spread if skew is 1."""
        share = self.random.random() ** self.level.skew
        blocks = int(FILE_BYTES_MIN * (FILE_BYTES_MAX / FILE_BYTES_MIN) ** share) // BLOCK_BYTES
        return blocks * BLOCK_BYTES

    def begin(self):
        """Creates an empty file and returns its path, its handle, its present size and its final size."""
        path = f"{self.folder}/d{self.random.randrange(FOLDERS):02}/f{self.made}"
        self.made += 1
        self.files.append(path)
        return [path, os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644), 0, self.size_bytes()]

    def grow(self, file):
        """Appends one piece to a file. Returns whether the file has its final size."""
        _, handle, present_bytes, end_bytes = file
        piece = min(end_bytes - present_bytes, self.level.piece_bytes)
        os.posix_fallocate(handle, present_bytes, piece)
        file[2] += piece
        return file[2] == end_bytes

    def fill_up(self, share):
        """Creates files until the used share of the file system is reached."""
        growing = []
        failures = 0
        while failures < FAILURES_MAX and fill(self.folder) < share:
            while len(growing) < self.level.writers:
                growing.append(self.begin())
            file = self.random.choice(growing)
            try:
                done = self.grow(file)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                failures += 1
                done = True
            if done:
                os.close(file[1])
                growing.remove(file)
        for file in growing:
            os.close(file[1])
        sync(self.folder)

    def empty(self, share):
        """Deletes random files until the used share of the file system is at most `share`."""
        while fill(self.folder) > share:
            for _ in range(DELETIONS):
                place = self.random.randrange(len(self.files))
                self.files[place], self.files[-1] = self.files[-1], self.files[place]
                os.unlink(self.files.pop())
            sync(self.folder)

    def run(self):
        """Ages the file system, and leaves it filled to FILL_END."""
        for _ in range(self.level.rounds):
            self.fill_up(self.level.fill_max)
            self.empty(self.level.fill_min)
        self.fill_up(self.level.fill_max)
        self.empty(FILL_END)


def make_probe_file(path):
    """Makes the probe file like `imbrex probe --file`: allocates all space, then writes each block once, in order."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_DIRECT, 0o600)
    os.posix_fallocate(handle, 0, PROBE_BYTES)
    os.fsync(handle)
    buffer = mmap.mmap(-1, WRITE_BYTES)
    buffer[:] = b"\xa5" * WRITE_BYTES
    for offset in range(0, PROBE_BYTES, WRITE_BYTES):
        if os.pwrite(handle, buffer, offset) != WRITE_BYTES:
            raise OSError(f"short write at byte {offset} of {path}")
    os.fsync(handle)
    return handle


def extents_of(handle):
    """Returns the extents of a file as FIEMAP reports them: logical, physical and length in bytes, and the flags."""
    found = []
    start = 0
    while True:
        room = bytearray(FIEMAP_HEADER.size + EXTENTS_PER_CALL * FIEMAP_EXTENT.size)
        FIEMAP_HEADER.pack_into(room, 0, start, (1 << 64) - 1 - start, FIEMAP_FLAG_SYNC, 0, EXTENTS_PER_CALL, 0)
        fcntl.ioctl(handle, FS_IOC_FIEMAP, room)
        mapped = FIEMAP_HEADER.unpack_from(room)[3]
        for number in range(mapped):
            fields = FIEMAP_EXTENT.unpack_from(room, FIEMAP_HEADER.size + number * FIEMAP_EXTENT.size)
            found.append((fields[0], fields[1], fields[2], fields[5]))
        if mapped == 0 or found[-1][3] & FIEMAP_EXTENT_LAST:
            return found
        start = found[-1][0] + found[-1][2]


def runs_of(extents):
    """Returns the number of physically contiguous runs. Extents that are neighbours on the device, in order, are one run."""
    ends = [None] + [physical + length for _, physical, length, _ in extents]
    return sum(physical != end for (_, physical, _, _), end in zip(extents, ends))


def main():
    if len(sys.argv) < 5 or tuple(sys.argv[2:4]) not in LEVELS:
        sys.exit("usage: age.py FOLDER ext4|xfs mild|medium|heavy SEED [NOTE…]")
    folder, file_system, name, seed, *notes = sys.argv[1:]
    level = LEVELS[file_system, name]
    # Some allocators keep a place per processor, so the program stays on one.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ageing = Ageing(folder, level, int(seed))
    ageing.run()
    used = fill(folder)
    print(f"{folder}: {ageing.made} files made, {len(ageing.files)} left, {used:.1%} full", file=sys.stderr)
    handle = make_probe_file(f"{folder}/d00/probe")
    extents = extents_of(handle)
    if sum(length for _, _, length, _ in extents) != PROBE_BYTES:
        raise ValueError(f"the extents of the probe file do not add up to {PROBE_BYTES} bytes")
    for note in notes:
        print(f"# {note}")
    print(f"# Ageing: {level}")
    print(f"# Seed: {seed}. Files made: {ageing.made}. Files left: {len(ageing.files)}.")
    print(f"# Used share of the file system before the probe file was made: {used:.1%}.")
    flags = sorted({flags for _, _, _, flags in extents})
    print(f"# Extents: {len(extents)}, in {runs_of(extents)} physically contiguous runs. Flags: {' '.join(map(hex, flags))}.")
    print("# LOGICAL_BYTES PHYSICAL_BYTES LENGTH_BYTES")
    for logical, physical, length, _ in extents:
        print(logical, physical, length)


if __name__ == "__main__":
    main()
