#!/usr/bin/env python3
"""Gives the program a thousand command lines and files that are wrong, and sees how it takes them.

Usage: scripts/bad-inputs.py [PROGRAM] [COUNT] [SEED]

Faults are: a panic, an end by a signal, more than 20 seconds; a failure that says nothing, or leaves a file that it was to
write; and success that makes no sense: no requests, or not all of them, answered; no time taken, or hours for a request;
capacities and gains that no drive has; numbers that overflowed; addresses past 16 EiB; verdicts of no test; a trace that lost requests as it was converted; a drive or a file system just made that its own check refuses. Prints the faults,
how many commands were taken, and a count; ends with 1 if there is a fault.
"""

import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

TIME_MAX_S = 20
MEMORY_MAX_KIB = 4 * 1024 * 1024
# No request of these workloads takes as long on any drive.
LATENCY_MAX_NS = 6 * 3600 * 10**9

DRIVES = [
    "cmr-7200", "imr-1t", "imr-1t+track-map", "emulated-smr-1", "emulated-smr-3", "cassuto-307g+s-blocks",
    "cmr-7200+region-rmw", "cmr-7200+log-structured", "imr-1t+top-buffer", "hm-zoned", "seagate-st5000as0011",
    "cmr-7200+media-cache", "imr-1t+flip-cache", "imr-1t+block-swap", "imr-1t+write-buffer", "emulated-smr-2", "caveat-1g",
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
# By drive: keys of its profile and of its layer.
OWN_KEYS = {}
# Files in TOML: sweeps, faults, drives.
SWEEPS = [
    'workloads = ["rw=randwrite,bs=4k,number_ios=20"]\ndrives = ["{drive}"]\n[parameters]\n{key} = ["{}", "{}"]\n',
    'workloads = ["rw=randwrite,bs=4k,number_ios={}"]\ndrives = ["cmr-7200"]\n[options]\nqueue = [{}, 1]\n',
    'workloads = {}\ndrives = ["{drive}"]\n', 'drives = ["{drive}"]\n', "{}", "[parameters]\n{key} = {}\n",
    'workloads = ["{}"]\ndrives = ["{drive}"]\n[options]\n{} = [1]\n',
]
FAULTS = [
    '[[fault]]\nkind = "unreadable"\nlba = {}\nsectors = {}\n', '[[fault]]\nkind = "slow"\nlba = 0\nsectors = 1\nby = "{}"\n',
    '[[fault]]\nkind = "zone-offline"\nzone = {}\n', '[[fault]]\nkind = "{}"\n', "{}", "[fault]\n", "[[fault]]\n",
]
PROFILES = [
    'base = "{}"\n', 'base = "cmr-7200"\n[geometry]\n{key} = {}\n', 'base = "cmr-7200"\n{key} = {}\n',
    'base = "strict-append"\n[geometry]\nsurfaces = {}\n', 'base = "imr-1t"\n[mechanics]\nsettle_ns = {}\n', "{}", "[geometry]\n",
    'base = "seagate-st5000as0011"\nlayer = "{}"\n[parameters]\n{key} = {}\n',
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


def keys_of(program):
    """The keys of every drive and layer, as the program lists them."""
    listed = json.loads(run(program, ["list", "layers", "--json"]).stdout)["layers"]
    parameters = {layer["layer"]: [parameter["key"] for parameter in layer["parameters"]] for layer in listed}
    keys = {}
    for drive in DRIVES:
        profile, _, layer = drive.partition("+")
        table = tomllib.loads(run(program, ["list", "drives", profile]).stdout.decode())
        keys[drive] = parameters[layer or table["default_layer"]] + list(of_table(table, ""))
    return keys


def of_table(table, above):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from of_table(value, f"{above}{key}.")
        elif above and isinstance(value, int | float | str):
            yield above + key


def a_drive(random_):
    drive = pick(random_, DRIVES)
    if random_.random() < 0.4:
        return f"{drive}:{pick(random_, OWN_KEYS[drive])}={pick(random_, VALUES)}"
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


def toml(random_, folder, number, texts):
    path = folder / f"input-{number}.toml"
    text = pick(random_, texts).replace("{drive}", a_drive(random_).replace('"', "")).replace("{key}", pick(random_, KEYS))
    path.write_text(filled(random_, text))
    return str(path)


def a_damaged(random_, folder, number, name):
    """A copy of an image with bytes altered, cut off, or put behind it."""
    path = folder / f"image-{number}"
    subprocess.run(["cp", "--sparse=always", folder / name, path], check=True)
    size = path.stat().st_size
    kind = random_.randrange(4)
    with path.open("r+b") as file:
        for _ in range(random_.randint(1, 4)):
            place = random_.randrange(min(size, 1 << 16) if kind < 2 else size)
            if kind == 3:
                file.truncate(place)
                break
            file.seek(place)
            file.write(random_.randbytes(random_.choice([1, 8, 512])))
    return str(path)


def simulated(random_, folder, number):
    drive = a_drive(random_)
    if random_.random() < 0.2:
        drive = toml(random_, folder, number, PROFILES)
    if random_.random() < 0.6:
        return ["simulate", filled(random_, pick(random_, WORKLOADS)), "--drive", drive, "--limit", "50", "--json"]
    return ["simulate", a_file(random_, folder, number), "--drive", drive, "--no-baseline", "--limit", "50", "--json"]


def with_an_option(random_, _folder, _number):
    words = ["simulate", "rw=randwrite,bs=4k,number_ios=20", "--drive", "cmr-7200", "--no-baseline", "--json"]
    return [*words, pick(random_, OPTIONS), pick(random_, VALUES)]


def of_a_trace(random_, folder, number):
    trace = a_file(random_, folder, number)
    if random_.random() < 0.5:
        return ["trace", "info", trace, "--json"]
    words = ["trace", "convert", trace, str(folder / f"out-{number}{pick(random_, ['.csv', '.parquet', '.x', '.iolog', ''])}")]
    if random_.random() < 0.4:
        words += [pick(random_, ["--to", "--format", "--units", "--columns", "--limit", "--device"]), pick(random_, VALUES)]
    return words


def listed(random_, _folder, _number):
    return ["list", pick(random_, ["layers", "drives", "formats", "x"]), pick(random_, VALUES)]


def probed(random_, folder, _number):
    target = pick(random_, [f"sim:{a_drive(random_)}", "sim:", "nbd://x", "/dev/null", str(folder / "drive")])
    words = ["probe", target, "--test", pick(random_, ["rotation", "rotation", *VALUES])]
    if random_.random() < 0.3:
        words += [pick(random_, ["--budget", "--seed"]), pick(random_, VALUES)]
    return words


def of_a_drive(random_, folder, number):
    kind = random_.random()
    if kind < 0.3:
        return ["drive", "create", "--drive", a_drive(random_), str(folder / f"out-{number}")]
    if kind < 0.7:
        image = pick(random_, [a_damaged(random_, folder, number, "drive"), a_file(random_, folder, number), "/dev/null", str(folder)])
        return ["drive", pick(random_, ["check", "info", "dump"]), image]
    if kind < 0.8:
        return ["drive", "import", a_file(random_, folder, number), str(folder / f"out-{number}")]
    shutil.copy(folder / "drive", folder / f"image-{number}")
    return ["drive", "fault", str(folder / f"image-{number}"), "--schedule", toml(random_, folder, number, FAULTS)]


def served(random_, folder, number):
    image = a_damaged(random_, folder, number, "drive")
    # Each of these addresses is wrong, so no server may stay.
    address = pick(random_, ["", "x", "unix:", f"unix:{folder}", "tcp:", "tcp:0x", "tcp:65536", "tcp:-1", "unix:/no/such/place"])
    words = ["serve", image, "--nbd", address]
    if random_.random() < 0.5:
        words += [pick(random_, ["--time", "--sync", "--connections", "--window", "--payload-memory", "--tls-cert"]), pick(random_, VALUES)]
    return words


def of_files(random_, folder, number):
    kind = random_.random()
    if kind < 0.4:
        subprocess.run(["cp", "--sparse=always", folder / "drive", folder / f"image-{number}"], check=True)
        words = ["fs", "mkfs", "--force", str(folder / f"image-{number}")]
        for _ in range(random_.randint(1, 2)):
            options = ["--store", "--fit", "--cleaner", "--parity", "--meta", "--meta-size", "--hot", "--uuid", "--spare"]
            words += [pick(random_, options), pick(random_, [*VALUES, "log", "strict-append", "caveat", "best"])]
        # A file of such a name would lie where the command is given.
        return words if "--meta" not in words and "--spare" not in words else [*words, "--store", "no-such"]
    if kind < 0.75:
        image = pick(random_, [a_damaged(random_, folder, number, "files"), a_file(random_, folder, number), "/dev/null", str(folder)])
        return ["fs", pick(random_, ["check", "stat", "dump", "scrub"]), image]
    if kind < 0.85:
        return ["fs", "mount", a_damaged(random_, folder, number, "files"), str(folder / "no-such"), "-o", pick(random_, VALUES)]
    words = ["fs", "bench", pick(random_, ["createfiles", "varmail", "lfs", "x"]), str(folder / "files"), "--files", "5"]
    return [*words, pick(random_, ["--operations", "--threads", "--file-size", "--seed", "--page-cache"]), pick(random_, VALUES)]


def swept(random_, folder, number):
    return ["sweep", toml(random_, folder, number, SWEEPS), "--out", str(folder / f"out-{number}"), "--jobs", "1"]


def held_against(random_, folder, number):
    measured = a_file(random_, folder, number)
    if random_.random() < 0.5:
        return ["validate", measured, "--drive", a_drive(random_), "--report", str(folder / f"out-{number}")]
    return ["fit", measured, "--from", pick(random_, DRIVES), "--out", str(folder / f"out-{number}.toml")]


KINDS = [simulated] * 8 + [with_an_option] * 2 + [of_a_trace] * 4 + [listed, probed, probed, of_a_drive, of_a_drive, of_a_drive]
KINDS += [served, of_files, of_files, of_files, swept, swept, held_against]


def a_command(random_, folder, number):
    words = pick(random_, KINDS)(random_, folder, number)
    # What is taken as an option is no wrong value.
    return [word for word in words if "\x00" not in word]


def limited():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_KIB * 1024, MEMORY_MAX_KIB * 1024))


def run(program, words):
    return subprocess.run([program, *words], capture_output=True, timeout=TIME_MAX_S, stdin=subprocess.DEVNULL, preexec_fn=limited)


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from numbers_of(part)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def nonsense_of(program, words, folder, number, said):
    """Why what succeeded makes no sense."""
    made = folder / f"out-{number}"
    if words[0] == "simulate":
        result = json.loads(said)
        asked = result["workload"]["requests"]
        if any(not math.isfinite(value) or not 0 <= value < 1 << 63 for value in numbers_of(result["drives"])):
            return "numbers that overflowed"
        if asked == 0:
            return "no requests, and success"
        for drive in result["drives"]:
            answered = drive["completed"] + sum(drive["rejected"].values())
            # Those of a warm-up are not counted.
            if drive["completed"] == 0 or answered > asked or (answered < asked and "--warmup" not in words):
                return f"{drive['completed']} of {asked} requests answered"
            if drive["duration_ns"] == 0 or drive["capacity_bytes"] == 0:
                return "no time taken, or no room"
            if drive["latency_ns"]["all"]["max"] > LATENCY_MAX_NS:
                return "a request that took hours"
            if not -100 < drive["capacity_gain"] < 100 or drive["capacity_bytes"] >= 1 << 60:
                return "a capacity that no drive has"
    elif words[:2] == ["trace", "info"]:
        info = json.loads(said)
        if info["requests"] == 0:
            return "no requests, and success"
        if info["lba_end"] >= 1 << 55:
            return "an address that has no bytes"
    elif words[0] == "probe" and not any(line.startswith(b" property") for line in said.splitlines()):
        return "a verdict of no test"
    elif words[:2] == ["trace", "convert"]:
        again = run(program, ["trace", "info", words[3], "--json"])
        if again.returncode != 0:
            return "what was written is not read: " + again.stderr.decode(errors="replace")[:160]
    elif words[:2] == ["drive", "create"] and run(program, ["drive", "check", str(made)]).returncode != 0:
        return "the drive's own check refuses it"
    elif words[:2] == ["fs", "mkfs"] and run(program, ["fs", "check", words[3]]).returncode != 0:
        return "the file system's own check refuses it"
    return None


def fault_of(program, words, folder, number):
    """Why how it ended is a fault, and the code with which it ended."""
    try:
        ran = run(program, words)
        code = ran.returncode
        said = ran.stderr.decode(errors="replace")
        if "panicked" in said or code == 101:
            return "panic: " + said.strip().splitlines()[0], code
        if code < 0 or code > 3:
            return f"ended with {code}: " + said.strip()[:160], code
        if code == 0:
            return nonsense_of(program, words, folder, number, ran.stdout), code
        if not said.strip() and not ran.stdout.strip():
            return "failed without a word", code
        left = [path.name for path in folder.glob(f"out-{number}*") if path.is_file() and words[0] != "sweep"]
        return (f"failed, and left {left}: {said.strip()[:160]}" if left else None), code
    except subprocess.TimeoutExpired:
        return "hang", None


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/imbrex"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    random_ = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    faults, codes = 0, {}
    OWN_KEYS.update(keys_of(program))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for image in ["drive", "files"]:
            subprocess.run([program, "drive", "create", "-q", "--drive", "strict-append", folder / image], check=True, capture_output=True)
        subprocess.run([program, "fs", "mkfs", "-q", folder / "files"], check=True, capture_output=True)
        for number in range(count):
            words = a_command(random_, folder, number)
            fault, code = fault_of(program, words, folder, number)
            codes[code] = codes.get(code, 0) + 1
            if fault:
                faults += 1
                print(f"{number}: {words!r}\n    {fault}", flush=True)
            for path in [*folder.glob(f"image-{number}*"), *folder.glob(f"out-{number}*")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    ends = ", ".join(f"{many} with {code}" for code, many in sorted(codes.items(), key=str))
    print(f"{count} inputs ended: {ends}; {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
