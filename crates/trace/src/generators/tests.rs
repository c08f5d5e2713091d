//! Goal: words have their documented meaning, errors name their place, and the stream of requests matches the
//! description. Method: workloads and expectations written by hand; shares within five sigma of the binomial under
//! fixed seeds; random workloads for the round trip through text.

use std::collections::BTreeSet;

use imbrex_units::{Command, Operation, SimDuration, SimTime};
use proptest::prelude::*;

use super::*;
use crate::request::{Request, Source, When};

const DEVICE_SECTORS: u64 = 1 << 25;

fn spec(text: &str) -> WorkloadSpec {
    WorkloadSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn generator(text: &str) -> Generator {
    Generator::new(spec(text), DEVICE_SECTORS).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns all requests; the clock does not advance.
fn requests(text: &str) -> Vec<Request> {
    let mut source = generator(text);
    std::iter::from_fn(|| source.next(SimTime::ZERO).expect("generators do not fail")).collect()
}

fn commands(text: &str) -> Vec<Command> {
    requests(text).into_iter().map(|request| request.command).collect()
}

fn starts(text: &str) -> Vec<u64> {
    commands(text).iter().map(|command| command.lba.0).collect()
}

fn assert_share(hits: usize, of: usize, probability: f64) {
    let expected = probability * of as f64;
    let sigma = (expected * (1.0 - probability)).sqrt();
    assert!((hits as f64 - expected).abs() <= 5.0 * sigma, "{hits} of {of}, expected {expected:.0} ± {sigma:.0}");
}

fn refusal(text: &str) -> String {
    match WorkloadSpec::parse(text) {
        Ok(spec) => panic!("{text} was taken for {spec}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn sequential_requests_follow_each_other_once_through_the_region() {
    let expected: Vec<_> = (0..16).map(|i| Command::write(2048 + i * 128, 128)).collect();
    assert_eq!(commands("rw=write,bs=64k,size=1m,offset=1m"), expected);
    assert_eq!(starts("rw=read,bs=512k,size=1m,number_ios=5"), [0, 1024, 0, 1024, 0], "a count goes round");
    assert_eq!(starts("rw=read,bs=512k,size=1m,io_size=1536k"), [0, 1024, 0], "so do bytes");
    assert_eq!(starts("rw=read,bs=4k,size=10k"), [0, 8], "what is no whole block is left out");
    assert_eq!(starts("rw=trim,bs=8M,size=100%").len() as u64, DEVICE_SECTORS / 16384);
}

#[test]
fn a_stride_leaves_blocks_out() {
    assert_eq!(starts("rw=write:4k,bs=4k,size=32k"), [0, 16, 32, 48], "write a block, skip a block");
    assert_eq!(starts("rw=write:4k,bs=4k,size=32k,number_ios=6"), [0, 16, 32, 48, 0, 16]);
}

#[test]
fn random_runs_are_sequential_within() {
    let starts = starts("rw=randread:4,bs=4k,number_ios=4000");
    let is_next = |pair: &[u64]| pair[1] == pair[0] + 8;
    assert!(starts.chunks(4).all(|run| run.windows(2).all(is_next)));
    assert!(starts.chunks(4).collect::<Vec<_>>().windows(2).filter(|runs| runs[0][3] + 8 == runs[1][0]).count() < 3);
}

#[test]
fn percentage_random_is_the_share_of_jumps_for_each_operation() {
    let commands = commands("rw=randrw,bs=64k,16k,percentage_random=0,30,number_ios=40000,rwmixread=50");
    let of = |operation| commands.iter().filter(move |c| c.operation == operation).collect::<Vec<_>>();
    let (reads, writes) = (of(Operation::Read), of(Operation::Write));
    assert!(reads.iter().enumerate().all(|(i, read)| read.lba.0 == i as u64 * 128 && read.sectors == 128));
    let jumps = writes.windows(2).filter(|pair| pair[1].lba != pair[0].end()).count();
    assert_share(jumps, writes.len() - 1, 0.3);
}

#[test]
fn mixes_and_splits_have_their_shares() {
    let commands = commands("rw=randrw,rwmixread=30,bssplit=4k/60:64k/40,512/25:1k/:2k/,number_ios=100000");
    let reads: Vec<_> = commands.iter().filter(|c| c.operation == Operation::Read).collect();
    assert_share(reads.len(), commands.len(), 0.3);
    assert_share(reads.iter().filter(|c| c.sectors == 8).count(), reads.len(), 0.6);
    assert!(reads.iter().all(|c| c.sectors == 8 || c.sectors == 128));
    let writes: Vec<_> = commands.iter().filter(|c| c.operation == Operation::Write).collect();
    for (sectors, share) in [(1, 0.25), (2, 0.375), (4, 0.375)] {
        assert_share(writes.iter().filter(|c| c.sectors == sectors).count(), writes.len(), share);
    }
}

#[test]
fn random_places_are_aligned_and_inside() {
    for command in commands("rw=randwrite,bssplit=4k/50:64k/50,offset=1m,size=1000k,number_ios=20000") {
        assert!(command.lba.0 >= 2048 && command.end().0 <= 2048 + 2000);
        assert!(command.lba.0 % 8 == 0);
    }
    assert!(starts("rw=randwrite,bs=4k,blockalign=1m,number_ios=1000").iter().all(|start| start % 2048 == 0));
}

#[test]
fn the_random_map_covers_each_block_once_a_pass() {
    let starts = starts("rw=randwrite,bs=4k,size=4000k,randommap=on,number_ios=2000");
    let (first, second) = starts.split_at(1000);
    let all: BTreeSet<u64> = (0..1000).map(|block| block * 8).collect();
    assert_eq!(first.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_eq!(second.iter().copied().collect::<BTreeSet<_>>(), all);
    assert_ne!(first, second, "passes differ");
    assert_eq!(commands("rw=randrw,bs=4k,size=4000k,randommap").len(), 1000, "the region ends it after one pass");
}

#[test]
fn without_the_map_blocks_repeat() {
    let distinct = starts("rw=randwrite,bs=4k,size=4000k").into_iter().collect::<BTreeSet<_>>().len();
    // Of n draws from n blocks, a share of 1 - 1/e is distinct; the deviation is sqrt(n (1/e - 2/e²)) = 9.9.
    assert!((582..=682).contains(&distinct), "{distinct} distinct of 1000");
}

#[test]
fn a_flush_follows_every_nth_write() {
    let operations: Vec<_> = commands("rw=write,bs=4k,number_ios=5,fsync=2").iter().map(|c| c.operation).collect();
    use Operation::{Flush, Write};
    assert_eq!(operations, [Write, Write, Flush, Write, Write, Flush, Write]);
    assert_eq!(commands("rw=write,number_ios=4,fdatasync=4").last(), Some(&Command::flush()), "the last too");
    let forced = commands("rw=randrw,number_ios=100,fua");
    assert!(forced.iter().all(|c| c.fua == (c.operation == Operation::Write)));
}

#[test]
fn phases_come_in_order_and_inherit() {
    let found = requests("rw=write,bs=8k,number_ios=2; idle=2h ;idle=1s; rw=read,fsync=1; bs=4k,rw=trim,number_ios=1");
    let free = When::Free(SimDuration::ZERO);
    let expected = [
        (free, Command::write(0, 16)),
        (free, Command::write(16, 16)),
        (When::Drained(SimDuration::from_secs(7201)), Command::read(0, 16)),
        (free, Command::read(16, 16)),
        (free, Command::trim(0, 8)),
    ];
    let found: Vec<_> = found.into_iter().map(|request| (request.when, request.command)).collect();
    assert_eq!(found, expected);
}

#[test]
fn loops_repeat_all_phases_with_other_numbers() {
    let found = requests("rw=randwrite,number_ios=3,loops=2;idle=1s");
    assert_eq!(found.len(), 6);
    assert_eq!(
        found[3].when,
        When::Drained(SimDuration::from_secs(1)),
        "the idleness ends one loop and begins another"
    );
    let places = |requests: &[Request]| requests.iter().map(|r| r.command.lba).collect::<Vec<_>>();
    assert_ne!(places(&found[..3]), places(&found[3..]));
}

#[test]
fn thinktime_comes_before_every_nth_request() {
    let found = requests("rw=read,number_ios=5,thinktime=2ms,thinktime_blocks=2");
    let thinks: Vec<_> = found.iter().map(|r| r.when == When::Free(SimDuration::from_millis(2))).collect();
    assert_eq!(thinks, [false, false, true, false, true]);
    assert_eq!(requests("rw=read,number_ios=2,thinktime=7")[1].when, When::Free(SimDuration(7000)), "microseconds");
}

fn times(text: &str) -> Vec<u64> {
    let time = |request: Request| match request.when {
        When::At(time) => time.0,
        other => panic!("{other:?}"),
    };
    requests(text).into_iter().map(time).collect()
}

#[test]
fn a_rate_gives_times_without_drift_over_phases() {
    assert_eq!(times("rw=read,rate_iops=3,number_ios=4"), [0, 333_333_333, 666_666_666, 1_000_000_000]);
    assert_eq!(times("rw=read,rate_iops=0.5,runtime=5s"), [0, 2_000_000_000, 4_000_000_000]);
    let two = times("rw=read,rate_iops=10,number_ios=2;rw=read,rate_iops=100,runtime=15ms,number_ios=0;rw=write");
    assert_eq!(two, [0, 100_000_000, 200_000_000, 210_000_000, 215_000_000, 225_000_000]);
    assert_eq!(times("rw=write,rate_iops=10,number_ios=2,fsync=1"), [0, 0, 100_000_000, 100_000_000]);
}

#[test]
fn poisson_gaps_have_their_mean_and_memorylessness() {
    let times = times("rw=read,rate_iops=1000,rate_process=poisson,number_ios=100001");
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
    // The deviation of an exponential variable is its mean; the standard error of the mean of 100,000 is 3162 ns.
    assert!((mean - 1e6).abs() <= 5.0 * 3162.3, "mean gap {mean}");
    for multiple in [1.0f64, 2.0] {
        let longer = gaps.iter().filter(|&&gap| gap as f64 > multiple * 1e6).count();
        assert_share(longer, gaps.len(), (-multiple).exp());
    }
}

#[test]
fn a_timed_phase_after_a_pause_begins_when_that_is_over() {
    let mut source = generator("rw=read,rate_iops=10,number_ios=2;idle=1s;rw=read,number_ios=3");
    let mut next = |seconds: u64| source.next(SimTime(seconds * 1_000_000_000)).expect("no failure").map(|r| r.when);
    let at = |millis: u64| Some(When::At(SimTime(millis * 1_000_000)));
    assert_eq!((next(0), next(4)), (at(0), at(100)), "the drive does not slow it down");
    assert_eq!(next(5), Some(When::Drained(SimDuration::from_secs(1))));
    // The engine calls again at the end of the pause, here two seconds after its earliest end.
    assert_eq!(next(8), at(8100));
    assert_eq!(next(8), at(8200));
    assert_eq!(next(9), None);
    assert_eq!(next(9), None, "the end is final");
}

#[test]
fn runtime_is_counted_from_the_phases_beginning() {
    let mut source = generator("rw=read,runtime=2s;idle=10s;rw=write");
    let mut operation = |millis: u64| {
        let request = source.next(SimTime(millis * 1_000_000)).expect("no failure");
        request.map(|request| (request.command.operation, matches!(request.when, When::Drained(_))))
    };
    assert_eq!(operation(1000), Some((Operation::Read, false)), "the first call is the beginning");
    assert_eq!(operation(2999), Some((Operation::Read, false)));
    assert_eq!(operation(3000), Some((Operation::Write, true)));
    assert_eq!(operation(3000), Some((Operation::Write, false)), "a call too early does not count");
    assert_eq!(operation(14_999), Some((Operation::Write, false)), "the pause does not count");
    assert_eq!(operation(15_000), None);
}

#[test]
fn expected_requests_are_those_that_come() {
    for text in [
        "rw=write,bs=64k,size=1m",
        "rw=write:4k,bs=4k,size=33k",
        "rw=randwrite,bs=3k,size=10k,fsync=2",
        "rw=randrw,number_ios=7,loops=3;idle=1s",
        "rw=read,bs=4k,io_size=13k,number_ios=9;rw=randtrim",
        "rw=randrw,bs=4k,size=1m,randommap",
    ] {
        assert_eq!(generator(text).expected_requests(), Some(requests(text).len() as u64), "{text}");
    }
    for unknown in ["rw=read,runtime=1s", "rw=rw,number_ios=9,fsync=2", "rw=read,bssplit=4k/50:8k/50,io_size=1m"] {
        assert_eq!(generator(unknown).expected_requests(), None, "{unknown}");
    }
}

#[test]
fn one_seed_one_stream_and_another_another() {
    let text = "rw=randrw,number_ios=1000,bssplit=4k/50:8k/50,random_distribution=zipf:1.1";
    assert_eq!(requests(text), requests(text));
    assert_ne!(requests(text), requests(&format!("{text},seed=2")));
    let reseeded = Generator::new(spec(text).with_seed(2), DEVICE_SECTORS).expect("fits");
    assert_eq!(reseeded.spec().seed(), 2);
}

#[test]
fn phases_share_the_hot_set_but_not_the_draws() {
    let starts = starts("rw=randwrite,bs=4k,number_ios=5000,random_distribution=zipf:1.5;rw=randread");
    let hottest = |starts: &[u64]| {
        let mut counts = std::collections::BTreeMap::new();
        starts.iter().for_each(|start| *counts.entry(*start).or_insert(0) += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).expect("has requests").0
    };
    let (first, second) = starts.split_at(5000);
    assert_eq!(hottest(first), hottest(second));
    assert_ne!(first, second);
}

#[test]
fn canonical_text_says_what_differs() {
    for (text, canonical) in [
        ("number_ios=1_000", "rw=read,number_ios=1000"),
        ("rw=readwrite,rwmixwrite=30,size=10GiB,sync=1", "rw=rw,size=10G,rwmixread=70,fua=on"),
        ("bs=4096,65536,rw=randread,runtime=90", "rw=randread,bs=4k,64k,runtime=90s"),
        ("bssplit=4k/:64k/40,size=100%,fdatasync=3", "rw=read,bssplit=4k/60:64k/40,size=100%,fsync=3"),
        (
            "idle=120s;size=1m,bs=8k;rw=read,size=1m,seed=4;bs=4k",
            "idle=2m;rw=read,bs=8k,size=1M,seed=4;rw=read;rw=read,bs=4k",
        ),
        ("rw=write:8192,size=1m,norandommap;rw=randwrite:2", "rw=write:8k,size=1M;rw=randwrite:2"),
    ] {
        assert_eq!(spec(text).to_string(), canonical);
        assert_eq!(spec(canonical), spec(text));
    }
}

#[test]
fn arrival_follows_from_the_words() {
    assert_eq!(spec("rw=read,size=1m,iodepth=32").arrival(), Arrival::Closed { depth: 32 });
    assert_eq!(spec("rw=read,size=1m,rate_iops=5;rate_iops=7").arrival(), Arrival::AsTimed);
}

#[test]
fn toml_says_the_same() {
    let words =
        "rw=write,bs=64k,size=1m,seed=7;idle=2h;rw=randread,bs=4k,8k,number_ios=10,random_distribution=zipf:1.1,fua";
    let file = r#"
        seed = 7
        bs = "64k"
        [[phase]]
        rw = "write"
        size = "1m"
        [[phase]]
        idle = "2h"
        [[phase]]
        rw = "randread"
        bs = ["4k", 8192]
        number_ios = 10
        random_distribution = "zipf:1.1"
        fua = true
    "#;
    assert_eq!(WorkloadSpec::parse_toml(file).expect("is right"), spec(words));
    let table = WorkloadSpec::parse_toml("rw = 'read'\nnumber_ios = 1_0\nrate_iops = 2.5").expect("is right");
    assert_eq!(table, spec("rw=read,number_ios=10,rate_iops=2.5"));
}

#[test]
fn toml_errors_have_a_line() {
    let refusal = |text: &str| WorkloadSpec::parse_toml(text).expect_err("is wrong").to_string();
    assert!(refusal("size = '1m'\n  bs = '4q'").starts_with("line 2, column 3: 'bs=4q': '4q' is not a size; write"));
    assert!(refusal("size = \n").starts_with("line 1, column "));
    assert!(refusal("phase = 3").starts_with("line 1, column 9: phase is not a list of tables"));
    assert!(refusal("size='1m'\n[[phase]]\nrww = 'read'").starts_with("line 3, column 1: unknown word 'rww'"));
    assert!(refusal("idle = '2h'\n[[phase]]\nsize='1m'").starts_with("line 1, column 1: idle is a phase"));
    assert!(refusal("when = 2020-01-01").starts_with("line 1, column 1: not a value a word takes"));
}

#[test]
fn errors_say_where_and_what_to_do() {
    let mut others = Vec::new();
    for (text, start, remedy) in [
        ("rw=write,size=1m, bs=4q", "phase 1, character 19: 'bs=4q': '4q' is not a size", "64KiB"),
        ("rw=write,size=1m;rww=read", "phase 2, character 18: unknown word 'rww'", "rwmixread"),
        ("µ=1", "phase 1, character 1: unknown word 'µ'", "rw"),
        ("rw=write,size=1m,size=2m", "phase 1, character 18: 'size' beside 'size'", "give one"),
        ("bs=4k,bssplit=4k/100,size=1m", "phase 1, character 7: 'bssplit' beside 'bs'", "give one"),
        ("rw=write", "phase 1: it never ends", "number_ios=…, io_size=…, runtime=… or size=…"),
        ("rw=write,size=1m;number_ios=5,size", "phase 2, character 31: 'size' has no value", "size=SIZE"),
        ("rw=write,size=1m;;rw=read", "phase 2, character 18: a phase without words", "semicolon"),
        ("rw=write,,size=1m", "phase 1, character 10: nothing between two commas", "take one out"),
        ("size=1m,seed=2;seed=3", "phase 2, character 16: 'seed' holds for the whole", "one phase only"),
        ("size=1m;idle=2h,rw=read", "phase 2, character 17: 'rw' is in one phase with idle", "semicolon"),
        ("size=1m;idle=2h", "phase 2: no request follows this pause", "add a phase after it"),
        ("idle=2h,idle=2h", "phase 1, character 9: 'idle' is in one phase with idle", "semicolon"),
        ("idle=2h", "workload: it makes no requests", "rw="),
        ("rw=wrote,size=1m", "phase 1, character 1: 'rw=wrote': 'wrote' is no pattern", "randtrim"),
        ("rw=write:100,size=1m", "phase 1: a stride of 100 bytes", "512"),
        ("bs=1000,size=1m", "phase 1, character 1: 'bs=1000': 1000 is not whole sectors", "512"),
        ("bs=0,size=1m", "phase 1, character 1: 'bs=0': a block of 0", "512 to 1T"),
        (
            "bs=4k,4k,4k,4k,size=1m",
            "phase 1, character 1: 'bs=4k,4k,4k,4k': more than three",
            "reads, writes and trims",
        ),
        (
            "bssplit=4k/60:8k/30,size=1m",
            "phase 1, character 1: 'bssplit=4k/60:8k/30': the percentages",
            "leave one empty",
        ),
        ("size=1m;rw=read;rate_iops=5", "phase 3: rate_iops is set for some phases only", "each phase"),
        ("size=1m,rate_iops=5,thinktime=1ms", "phase 1: rate_iops and thinktime", "set the inherited one to 0"),
        (
            "rw=randread,size=1m,randommap,bs=4k,8k;rw=randrw",
            "phase 2: randommap=on writes each block once, but",
            "one bs",
        ),
        ("rw=randread,size=1m,randommap,random_distribution=zipf:1.1", "phase 1: randommap=on", "randommap=off"),
        ("size=1m,random_distribution=zipf:0", "phase 1, character 9: 'random_distribution=zipf:0'", "zipf:1.1"),
        ("size=1m,random_distribution=zoned:60/10:30/90", "phase 1, character 9: 'random_distribution=", "100 percent"),
        ("size=1m,rwmixread=101", "phase 1, character 9: 'rwmixread=101': '101' is not a percentage", "0 to 100"),
        ("size=1m,iodepth=0", "phase 1, character 9: 'iodepth=0': it cannot be 0", "1 or more"),
    ] {
        let message = refusal(text);
        if !message.starts_with(start) || !message.contains(remedy) {
            others.push(format!("{text}: {message}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

#[test]
fn words_of_fio_that_change_nothing_are_accepted() {
    let plain = spec("rw=randwrite,bs=4k,size=1g,runtime=60,iodepth=32");
    let pasted = "name=job1,readwrite=randwrite,blocksize=4k,size=1g,runtime=60,time_based,direct=1,ioengine=libaio,\
                  numjobs=1,iodepth=32,group_reporting,thread=1,randrepeat=1,invalidate=0,buffered=0";
    assert_eq!(spec(pasted), plain);
    assert_eq!(spec("size=1m,ioengine=psync"), spec("size=1m"));
    for (text, problem, remedy) in [
        ("size=1m,time_based", "'time_based' without a runtime", "runtime="),
        ("size=1m,runtime=5,time_based=0", "a phase with a runtime lasts that long", "leave it out"),
        ("size=1m,numjobs=4", "4 jobs at once cannot be honoured", "iodepth=4"),
        ("size=1m,direct=0", "there is no page cache", "leave it out"),
        ("size=1m,ioengine=mmap", "the engine 'mmap' has no meaning", "libaio"),
        (
            "size=1m,iodepth=8,ioengine=psync",
            "'ioengine=psync' has one request outstanding, and iodepth is 8",
            "iodepth=1",
        ),
        ("size=1m,randrepeat=0", "the same in each run", "leave it out"),
        ("size=20z", "'20z' counts zones", "write bytes"),
        ("size=1m,blocksize=4k,bs=8k", "'bs' beside 'blocksize'", "give one"),
    ] {
        let message = refusal(text);
        assert!(message.contains(problem) && message.contains(remedy), "{text}: {message}");
    }
}

#[test]
fn what_does_not_fit_the_drive_is_refused() {
    let refusal = |text: &str| Generator::new(spec(text), 1000).expect_err("does not fit").to_string();
    assert!(refusal("size=1m").starts_with("phase 1: its region of 2048 sectors from 0 on reaches past"));
    assert!(refusal("size=100k;offset=600k,size=1k,rw=read").starts_with("phase 2: offset=600k lies past"));
    assert!(refusal("size=1k").starts_with("phase 1: its region of 2 sectors does not hold a block of 8"));
    assert!(Generator::new(spec("size=100%"), 1000).is_ok());
}

#[test]
fn every_word_is_documented_and_its_default_is_its_default() {
    let plain = spec("size=1m");
    for word in words() {
        assert!(!word.help.is_empty() && word.help.len() < 240, "{}", word.key);
        if !word.default.is_empty() && !["size", "blockalign"].contains(&word.key) {
            let given = spec(&format!("size=1m,{}={}", word.key, word.default));
            assert_eq!(given, plain, "{}={} is the default", word.key, word.default);
        }
    }
}

/// Maximum number of requests of a workload that is read to its end here. Other tests count the larger stand-ins.
const LONG_REQUESTS: u64 = 2_000_000;

#[test]
fn every_built_in_opens_ends_and_repeats() {
    for entry in built_in() {
        assert!(std::ptr::eq(named(entry.name).expect("is listed"), entry), "{} is listed once", entry.name);
        assert_eq!(entry.is_stand_in, entry.note.is_some_and(|note| note.contains("stand-in")), "{}", entry.name);
        let count = |device_sectors, seed| {
            let mut source = entry.open(device_sectors, seed).unwrap_or_else(|e| panic!("{}: {e}", entry.name)).source;
            let end = entry.reach_sectors.unwrap_or(device_sectors);
            let expected = source.expected_requests();
            let mut sum = 0u64;
            let mut requests = 0u64;
            while let Some(request) = source.next(SimTime::ZERO).expect("no failure") {
                assert!(request.command.end().0 <= end, "{}: {request:?}", entry.name);
                sum = sum.wrapping_mul(31).wrapping_add(request.command.lba.0);
                requests += 1;
                if requests == LONG_REQUESTS {
                    return (requests, sum);
                }
            }
            assert!(expected.is_none_or(|expected| expected == requests), "{}", entry.name);
            (requests, sum)
        };
        assert_eq!(count(DEVICE_SECTORS, None), count(DEVICE_SECTORS, None), "{}", entry.name);
        assert!(count(40_000_000_000, Some(9)).0 >= 5000, "{}", entry.name);
    }
}

/// Goal: several drives can share the requests of one pass, because each drive would get equal requests by itself.
/// Method: every built-in workload, and words of every kind, called with constant times and with rising times.
#[test]
fn sources_that_heed_no_time_ask_the_same_whenever_they_are_called() {
    let take = |source: &mut dyn Source, step: u64| -> Vec<Request> {
        (0..3_000).map_while(|call| source.next(SimTime(call * step)).expect("no failure")).collect()
    };
    let mut free = 0;
    for entry in built_in() {
        let opened = || entry.open(DEVICE_SECTORS, None).unwrap_or_else(|e| panic!("{}: {e}", entry.name)).source;
        if !opened().heeds_time() {
            assert_eq!(take(&mut *opened(), 0), take(&mut *opened(), 50_000_000), "{}", entry.name);
            free += 1;
        }
    }
    assert!(free > 15, "{free} heed no time");
    for (words, heeds_time) in [
        ("rw=randread,bs=4k,number_ios=500", false),
        ("rw=randread,bs=4k,number_ios=500;idle=1s;rw=write,number_ios=100", false),
        ("rw=randread,bs=4k,runtime=3s", true),
        ("rw=randread,bs=4k,runtime=3s,rate_iops=100", false),
        ("rw=randread,bs=4k,number_ios=500,rate_iops=100;idle=2s;rw=write,number_ios=100", true),
    ] {
        let spec: WorkloadSpec = WorkloadSpec::parse(words).unwrap_or_else(|error| panic!("{words}: {error}"));
        let opened = || Generator::new(spec.clone(), DEVICE_SECTORS).expect("it fits");
        assert_eq!(opened().heeds_time(), heeds_time, "{words}");
        let differ = take(&mut opened(), 0) != take(&mut opened(), 50_000_000);
        assert_eq!(differ, heeds_time, "{words}");
    }
}

fn bytes() -> impl Strategy<Value = String> {
    (1u64..200, prop_oneof![Just(""), Just("k"), Just("MiB")])
        .prop_map(|(count, unit)| if unit.is_empty() { format!("{}", count * 512) } else { format!("{count}{unit}") })
}

fn percent() -> impl Strategy<Value = String> {
    (0u32..=1_000_000).prop_map(|millionths| format!("{}.{:04}", millionths / 10_000, millionths % 10_000))
}

fn a_distribution() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("random".to_string()),
        (1e-6f64..99.0).prop_map(|theta| format!("zipf:{theta}")),
        (1e-6f64..0.999).prop_map(|power| format!("pareto:{power}")),
        (1u32..100).prop_map(|deviation| format!("normal:{deviation}")),
        (1u32..100, 1u32..100).prop_map(|(a, b)| format!("zoned:{a}/{b}:{}/{}", 100 - a, 100 - b)),
    ]
}

fn word() -> impl Strategy<Value = String> {
    let keyed = |key: &'static str, value: BoxedStrategy<String>| value.prop_map(move |value| format!("{key}={value}"));
    let number = |low: u64, high: u64| (low..high).prop_map(|count| count.to_string()).boxed();
    let duration = || {
        (0u64..5000, prop_oneof![Just("ns"), Just("us"), Just("ms"), Just("s"), Just("m"), Just("h")])
            .prop_map(|(count, unit)| format!("{count}{unit}"))
            .boxed()
    };
    let list = |one: BoxedStrategy<String>| prop::collection::vec(one, 1..=3).prop_map(|list| list.join(",")).boxed();
    let patterns = ["read", "write", "rw", "trim", "randread:3", "randwrite", "randrw", "randtrim", "write:8k"];
    prop_oneof![
        keyed("rw", prop::sample::select(patterns.to_vec()).prop_map(String::from).boxed()),
        keyed("bs", list(bytes().boxed())),
        keyed("bssplit", list((bytes(), 1u32..100, bytes()).prop_map(|(a, p, b)| format!("{a}/{p}:{b}/")).boxed())),
        keyed("blockalign", bytes().boxed()),
        keyed("offset", percent().prop_map(|percent| format!("{percent}%")).boxed()),
        keyed("io_size", bytes().boxed()),
        keyed("number_ios", number(0, 1_000_000)),
        keyed("runtime", duration()),
        keyed("random_distribution", a_distribution().boxed()),
        keyed("percentage_random", list(percent().boxed())),
        keyed("rwmixread", percent().boxed()),
        keyed("thinktime", duration()),
        keyed("thinktime_blocks", number(1, 100)),
        keyed("rate_process", prop_oneof![Just("linear".to_string()), Just("poisson".to_string())].boxed()),
        keyed("fsync", number(0, 100)),
        keyed("fua", prop_oneof![Just("on".to_string()), Just("off".to_string())].boxed()),
    ]
}

/// Words of a phase, no two of which set the same field.
fn run_words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(word(), 0..8).prop_map(|words| {
        let mut keys = BTreeSet::new();
        let field = |word: &str| word.split('=').next().map(|key| key.replace("bssplit", "bs")).unwrap_or_default();
        words.into_iter().filter(|word| keys.insert(field(word))).collect()
    })
}

fn phase() -> impl Strategy<Value = String> {
    let run = run_words().prop_map(|words| [vec!["size=25%".to_string()], words].concat().join(","));
    prop_oneof![4 => run, 1 => (0u64..9).prop_map(|hours| format!("idle={hours}h"))]
}

proptest! {
    #[test]
    fn text_reads_back_as_printed(phases in prop::collection::vec(phase(), 0..5), seed: u32, depth in 1u32..99) {
        let text = [phases, vec![format!("rw=read,size=1m,seed={seed},iodepth={depth}")]].concat().join(";");
        let parsed = spec(&text);
        let printed = parsed.to_string();
        prop_assert_eq!(&spec(&printed), &parsed, "{}", printed);
        prop_assert_eq!(spec(&printed).to_string(), printed);
    }

    #[test]
    fn arbitrary_text_is_taken_or_refused_but_does_not_panic(text in "[a-z_=,;:/%0-9.k ]{0,60}") {
        let _ = WorkloadSpec::parse(&text);
        let _ = WorkloadSpec::parse_toml(&text);
    }

    #[test]
    fn every_request_lies_in_its_region(words in run_words(), seed: u32) {
        let ends = ["size", "offset", "number_ios", "io_size", "runtime"];
        let is_end = |word: &str| ends.iter().any(|end| word.starts_with(&format!("{end}=")));
        let kept: Vec<_> = words.into_iter().filter(|word| !is_end(word)).collect();
        let text = [kept, vec![format!("offset=50%,size=20%,number_ios=300,seed={seed}")]].concat().join(",");
        let (first, end) = (DEVICE_SECTORS / 2, DEVICE_SECTORS / 2 + DEVICE_SECTORS / 5);
        let transfers: Vec<_> = commands(&text).into_iter().filter(|c| c.operation != Operation::Flush).collect();
        prop_assert_eq!(transfers.len(), 300);
        for command in transfers {
            prop_assert!(command.sectors > 0 && command.lba.0 >= first && command.end().0 <= end, "{command:?}");
        }
    }
}
