"""Makes the one block of metadata that zonefs has. Its own tool is not in all distributions.

Usage: format.py DEVICE
The drive must be empty: all zones for writes in order at their start. The format is that of fs/zonefs/zonefs.h in Linux 6.12.
"""

import os
import struct
import sys
import zlib

BLOCK = 4096
LABEL_BYTES = 64
# Any number but 0: the same one each time, since runs are to be equal.
IDENTIFIER = bytes(range(16))


def crc(data):
    """The CRC-32 of the kernel, which does not invert its end."""
    return zlib.crc32(data) ^ 0xFFFFFFFF


magic = struct.pack("<I", 0x5A4F4653)
# Features, user, group and permissions of the files: the defaults of zonefs's own tool.
rest = (bytes(LABEL_BYTES) + IDENTIFIER + struct.pack("<QIII", 0, 0, 0, 0o640)).ljust(BLOCK - 8, b"\0")
device = os.open(sys.argv[1], os.O_WRONLY)
os.pwrite(device, magic + struct.pack("<I", crc(magic + bytes(4) + rest)) + rest, 0)
os.fsync(device)
os.close(device)
