#!/usr/bin/env python3
"""Gives the program a thousand command lines and files that are wrong, and sees how it takes them.

Usage: scripts/bad-inputs.py [PROGRAM] [COUNT] [SEED]

A panic, an end by a signal, more than 20 seconds, or a failure that says nothing is a fault. Whether what it says, or the
table that it prints, makes sense is not looked at. Prints the faults and a count; ends with 1 if there is a fault.
"""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

TIME_MAX_S = 20
MEMORY_MAX_KIB = 4 * 1024 * 1024

DRIVES = [
    "cmr-7200", "imr-1t", "imr-1t+track-map", "emulated-smr-1", "emulated-smr-3", "cassuto-307g+s-blocks",
    "cmr-7200+region-rmw", "cmr-7200+log-structured", "imr-1t+top-buffer", "hm-zoned",
]
KEYS = [
    "geometry.surfaces", "geometry.rotation_ns", "geometry.tracks", "geometry.zones", "mechanics.seek.max_ms",
    "mechanics.seek.short_base_ns", "mechanics.settle_ns", "host.queue", "host.overhead_ns", "recording.kind",
    "region_size", "cache_share", "cache_size", "sections", "sblock_size", "zone_size", "interval", "idle", "band_tracks",
    "backup_regions", "hot_ratio", "buffer_share", "streams", "no_such_key", "geometry.", ".tracks", "",
]
VALUES = [
    "0", "-1", "1", "18446744073709551615", "18446744073709551616", "9223372036854775807", "1e308", "nan", "inf", "1%",
    "101%", "-5%", "0.0000001%", "4k", "512", "1", "7", "1PiB", "999999TiB", "on", "off", "od", "x", "", "'", '"', "\u20ac",
    "1..2", "1..9/0", "1%..9%/1%", "4k..1m/x2", "1|", "|", "1..5/x1", "{}", "[]", "../..", "a=b", "1s", "1000d", "ns",
]
WORKLOADS = [
    "rw=randwrite,bs=4k,number_ios={}", "rw={},bs=4k,number_ios=5", "rw=randrw,bs={},number_ios=5",
    "rw=randwrite,bs=4k,size={},number_ios=5", "rw=randread,bs=4k,number_ios=5,iodepth={}",
    "rw=randwrite,bs=4k,number_ios=5,random_distribution={}", "rw=randwrite,bs=4k,number_ios=5,seed={}",
    "rw=randwrite,bs=4k,number_ios=5,rwmixread={}", "rw=write,bs=4k,number_ios=5,thinktime={}", "{}", "{};{}",
    "rw=randrw,bssplit={},number_ios=5",
]
OPTIONS = [
    "--queue", "--arrival", "--schedule", "--write-cache", "--read-ahead", "--limit", "--warmup", "--window", "--jobs",
    "--format", "--baseline", "--fit", "--device", "--columns", "--units", "--time-unit", "--read-flag",
]
LINES = [
    "0.0 0 {} 8 0", "{} 0 8 8 0", "0.0 0 8 {} 0", "128166372003061629,hm,0,Read,{},4096,1", "{},hm,0,Write,0,4096,1",
    "0,{},8192,W,0.5", "0,1,{},W,0.5", "fio version 2 iolog", "/dev/sda write {} 4096", "BeginHeader", "EndHeader",
    "DiskRead, {}, System (   4), 1, 0x1, 0x{}, 0x200, 1, 0", "ELAPSED_USECS,CMD,LBA,NBLKS", "{},WR_IN,{},8",
    "version,time,op,size,lbn", "1,{},2a,4096,8", "1,2;R;4.096;{}", "{}", "\x00\x01\x02", "{{{}", "8,0 1 1 0.0 9 Q W {} + 8",
]


def pick(random_, these):
    return random_.choice(these)


def filled(random_, text):
    while "{}" in text:
        text = text.replace("{}", pick(random_, VALUES), 1)
    return text


def a_drive(random_):
    drive = pick(random_, DRIVES)
    if random_.random() < 0.15:
        drive = pick(random_, ["", "+", "no-such", "cmr-7200+no-such", drive + "+", drive + ":", "x.toml", "cmr-7200+track-map"])
    settings = [f"{pick(random_, KEYS)}={pick(random_, VALUES)}" for _ in range(random_.randint(0, 2))]
    return drive + (":" + ",".join(settings) if settings else "")


def a_file(random_, folder, number):
    path = folder / f"input-{number}"
    lines = [filled(random_, pick(random_, LINES)) for _ in range(random_.randint(0, 5))]
    contents = "\n".join(lines).encode() + pick(random_, [b"", b"\n", b"\n\n", b"\xff\xfe"])
    if random_.random() < 0.1:
        contents = pick(random_, [b"\x1f\x8b\x08", b"PAR1", b"BZh9", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00"]) + contents
    path.write_bytes(contents)
    return str(path)


def a_command(random_, folder, number):
    kind = random_.random()
    drive = a_drive(random_)
    if kind < 0.4:
        words = ["simulate", filled(random_, pick(random_, WORKLOADS)), "--drive", drive, "--limit", "50"]
    elif kind < 0.65:
        words = ["simulate", a_file(random_, folder, number), "--drive", drive, "--no-baseline", "--limit", "50"]
    elif kind < 0.8:
        words = ["trace", "info", a_file(random_, folder, number)]
    elif kind < 0.9:
        words = ["simulate", "rw=randwrite,bs=4k,number_ios=20", "--drive", "cmr-7200", "--no-baseline"]
        words += [pick(random_, OPTIONS), pick(random_, VALUES)]
    elif kind < 0.95:
        words = ["list", pick(random_, ["layers", "drives", "formats", "x"]), pick(random_, VALUES)]
    else:
        words = ["probe", pick(random_, [f"sim:{drive}", "sim:", "nbd://x", "/dev/null", "image"]), "--test", "rotation"]
    # What is taken as an option is no wrong value.
    return [word for word in words if "\x00" not in word]


def limited():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_KIB * 1024, MEMORY_MAX_KIB * 1024))


def fault_of(program, words):
    try:
        ran = subprocess.run([program, *words], capture_output=True, timeout=TIME_MAX_S, stdin=subprocess.DEVNULL, preexec_fn=limited)
    except subprocess.TimeoutExpired:
        return "hang"
    said = ran.stderr.decode(errors="replace")
    if "panicked" in said or ran.returncode == 101:
        return "panic: " + said.strip().splitlines()[0]
    if ran.returncode < 0 or ran.returncode > 3:
        return f"ended with {ran.returncode}: " + said.strip()[:160]
    if ran.returncode != 0 and not said.strip() and not ran.stdout.strip():
        return "failed without a word"
    return None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/imbrex"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    random_ = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            words = a_command(random_, Path(folder), number)
            fault = fault_of(program, words)
            if fault:
                faults += 1
                print(f"{number}: {words!r}\n    {fault}", flush=True)
    print(f"{count} bad inputs, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
