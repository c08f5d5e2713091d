#!/usr/bin/env python3
"""Asynchronous direct writes beside buffered reads of one file (xfstests generic/451, restated): after each completed write the file
must read as written. Usage: aio-beside-reads.py FILE [ROUNDS]. Prints how many rounds read old bytes; exit code 1 if any did."""
import ctypes
import mmap
import os
import platform
import struct
import sys
import threading

SETUP, SUBMIT, GETEVENTS = {"x86_64": (206, 209, 208), "aarch64": (0, 2, 4)}[platform.machine()]
BYTES = 1 << 20
PWRITE = 1
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def main():
    path, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 500
    direct = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o644)
    os.ftruncate(direct, BYTES)
    buffered = os.open(path, os.O_RDONLY)
    over = threading.Event()

    def read_on():
        while not over.is_set():
            for offset in range(0, BYTES, BYTES // 8):
                os.pread(buffered, 4096, offset)

    readers = [threading.Thread(target=read_on, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    buffer = mmap.mmap(-1, BYTES)
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    context = ctypes.c_ulong(0)
    call(SETUP, 1, ctypes.byref(context))
    stale = 0
    for number in range(rounds):
        pattern = bytes([number % 255 + 1])
        buffer[:] = pattern * BYTES
        # struct iocb: data, key, rw_flags, opcode, reqprio, fd, buf, nbytes, offset, reserved, flags, resfd.
        iocb = struct.pack("QIIHhIQQqQII", 0, 0, 0, PWRITE, 0, direct, address, BYTES, 0, 0, 0, 0)
        block = ctypes.create_string_buffer(iocb, len(iocb))
        pointers = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        call(SUBMIT, context, ctypes.c_long(1), pointers)
        event = ctypes.create_string_buffer(32)
        call(GETEVENTS, context, ctypes.c_long(1), ctypes.c_long(1), event, None)
        written = struct.unpack("QQqq", event.raw)[2]
        if written != BYTES:
            raise OSError(-written, "asynchronous write")
        stale += os.pread(buffered, BYTES, 0) != pattern * BYTES
    over.set()
    for reader in readers:
        reader.join()
    print(f"{path}: {stale} of {rounds} rounds read old bytes")
    sys.exit(1 if stale else 0)


main()
