//! The built-in workloads, each with one entry in [`built_in`]. `imbrex list generators` and the tests of all workloads
//! iterate over these entries.
//!
//! Invariants:
//! 1. Every entry opens on any drive of 16 GiB or more, ends by itself, and repeats exactly under equal seeds. Entries
//!    with `reach_sectors` stay below that limit, others within the drive.
//! 2. A stand-in for a trace that is not available says so in its note, which is printed at every use.

use std::sync::LazyLock;

use super::applications;
use super::built_in::{Build, BuiltIn, Recipe};
use super::cloudphysics;
use super::pc_day;
use super::spec::Arrival;

/// Returns the entry of a workload described in fio's words.
const fn words(name: &'static str, summary: &'static str, text: &'static str) -> BuiltIn {
    BuiltIn {
        name,
        summary,
        is_stand_in: false,
        note: None,
        reach_sectors: None,
        targets: None,
        recipe: Recipe::Words(text),
    }
}

/// Returns the entry of an application's workload, which keeps `depth` requests outstanding.
const fn application(name: &'static str, summary: &'static str, build: Build, depth: u32) -> BuiltIn {
    BuiltIn {
        name,
        summary,
        is_stand_in: false,
        note: None,
        reach_sectors: None,
        targets: None,
        recipe: Recipe::Program { build, arrival: Arrival::Closed { depth } },
    }
}

const OTHERS: [BuiltIn; 10] = [
    words(
        "demo",
        "an hour in which drives differ: fill, scattered writes, rewrites, a hundred hot tracks, pauses, reads",
        "rw=write,bs=1M,io_size=2G,iodepth=4;\
         rw=randwrite,bs=256k,io_size=0,size=100%,number_ios=12000;\
         idle=10s;\
         rw=randrw,bssplit=4k/70:16k/20:64k/10,rwmixread=60,size=10%,random_distribution=zipf:1.1,fsync=64,\
         number_ios=10000;\
         idle=30s;\
         rw=randwrite,bs=64k,size=4GiB,random_distribution=zoned:60/5:40/95,number_ios=100000;\
         idle=30s;\
         rw=randread,bs=4k,size=10%,random_distribution=random,number_ios=3000;\
         rw=read,bs=1M,number_ios=1000",
    ),
    words(
        "random-4k",
        "half a million random 4 KiB writes all over the drive, 31 at a time: more than many disk caches hold",
        "rw=randwrite,bs=4k,number_ios=500000,iodepth=31",
    ),
    words(
        "sequential",
        "4 GiB written in order, then read in order, 1 MiB at a time",
        "rw=write,bs=1M,io_size=4G,iodepth=2;idle=0;rw=read",
    ),
    application(
        "mail-server",
        "mail delivered and marked, a flush each, and read while it is new, in half of the drive; eight at a time",
        applications::mail::build,
        8,
    ),
    application(
        "database",
        "70 % reads of hot 8 KiB pages in a tenth of the drive; commits forced to a log, pages written back; 16 at a time",
        applications::database::build,
        16,
    ),
    words(
        "resilver-source",
        "an array rebuild, on a disk that stays: reads in order, beside scattered writes of its users; four at a time",
        "rw=randrw,rwmixread=80,bs=512k,64k,percentage_random=0,100,number_ios=60000,iodepth=4",
    ),
    words(
        "resilver-target",
        "an array rebuild, on the new disk: 51 GiB written in order, beside scattered reads of its users; four at a time",
        "rw=randrw,rwmixread=15,bs=64k,1M,percentage_random=100,0,number_ios=60000,iodepth=4",
    ),
    words(
        "backup",
        "64 GiB of backup written in order, 1 MiB at a time, a flush every GiB (wraps on a smaller drive)",
        "rw=write,bs=1M,io_size=64G,fsync=1024,iodepth=2",
    ),
    words(
        "cassuto-random",
        "a million uniform 4 KiB writes without pauses, as in Cassuto 2010 §IV.C: more than caches hold",
        "rw=randwrite,bs=4k,number_ios=1000000",
    ),
    BuiltIn {
        name: "pc-day",
        summary: "24 hours of an office PC, 510,900 requests, 85 % reads, after the counts of Cassuto 2010 table I",
        is_stand_in: true,
        note: Some(
            "pc-day is a stand-in: its request counts, sizes and length are those of the 24-hour PC trace of Cassuto \
             2010 table I; its places and arrival times are made up",
        ),
        reach_sectors: None,
        targets: None,
        recipe: Recipe::Program { build: pc_day::build, arrival: Arrival::AsTimed },
    },
];

/// All built-in workloads; the stand-ins for traced machines come last.
static BUILT_IN: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| OTHERS.into_iter().chain(cloudphysics::ENTRIES).collect());

/// Returns all built-in workloads; the stand-ins for the CloudPhysics machines come last.
pub fn built_in() -> &'static [BuiltIn] {
    &BUILT_IN
}

/// Returns the built-in workload with exactly this name, or `None` if there is none.
pub fn named(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|entry| entry.name == name)
}
