//! Goal: explanations are those of the run that the simulation makes, and their text has one line for each cause. Method:
//! a trace whose stall is known: writes fill the only cache region of a small drive, and the next write has it cleaned.

use super::*;
use crate::simulation::Baseline;
use crate::workload::WorkloadOptions;

/// A drive of 1,024 sectors a region, whose cache has one region: a write that finds it full has it cleaned.
const DRIVE: &str = "cassuto-307g+set-associative:region_size=512KiB,cache_size=512KiB,safety=paper";

/// Sectors of a region.
const REGION: u64 = 1024;

/// Writes a trace of single writes of 64 sectors, one region apart, 10 s after each other, and runs it. Number 16 finds
/// the cache full, and number 17 arrives a millisecond later, while it is cleaned.
fn run(simulation: Simulation, settings: ExplainSettings) -> Result<Explanations, Failure> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("stall.spc");
    let line = |number: u64| {
        let seconds = if number == 17 { 160.001 } else { number as f64 * 10.0 };
        format!("0,{},{},w,{seconds:.6}\n", number * REGION, 64 * 512)
    };
    std::fs::write(&path, (0..20).map(line).collect::<String>()).expect("it is written");
    let progress = Progress::silent();
    let workload = Workload::find(path.to_str().expect("UTF-8"), &WorkloadOptions::default(), &progress)?;
    simulation.explain(&workload, &settings, &progress)
}

fn explained(settings: ExplainSettings) -> Explanations {
    run(Simulation::new().drive(DRIVE).expect("it is right"), settings).expect("it runs")
}

#[test]
fn a_stall_is_traced_to_the_writes_that_filled_the_cache() {
    let explained = explained(ExplainSettings { choice: Choice::Worst(2), replay: true });
    let drive = &explained.document.drives[0];
    let numbers: Vec<u64> = drive.requests.iter().map(|request| request.number).collect();
    assert_eq!(numbers, [16, 17], "the write that found the cache full, and the one behind it");
    for request in &drive.requests {
        assert_eq!(request.parts.iter().map(|part| part.duration_ns).sum::<u64>(), request.latency_ns);
        let cleanings: Vec<_> = request.parts.iter().filter(|part| part.cause == "cleaning").collect();
        assert_eq!(cleanings.len(), 16, "one for each region with cached sectors");
        for (region, part) in cleanings.iter().enumerate() {
            let target = part.of.target.as_ref().expect("it has a target");
            assert_eq!((target.kind.as_str(), part.of.due.as_deref()), ("region", Some("full")), "{region}");
            let filled = part.of.filled_by.as_ref().expect("it was filled");
            assert_eq!((filled.requests, filled.writes, filled.sectors), ((0, 15), 16, REGION));
            assert_eq!(filled.lba_ranges.len(), 16, "{:?}", filled.lba_ranges);
        }
        let replay = request.replay.as_ref().expect("it was asked for");
        assert_eq!(replay.blamed_ns, request.unconventional_ns);
        // The drive has no rotation, so all other times stay.
        assert_eq!(replay.without_blamed_time_ns, Some(request.latency_ns - request.unconventional_ns));
        assert_eq!(replay.writes_left_out, 16);
        // Without those writes the cache is not full.
        assert!(replay.without_blamed_writes_ns.expect("it completes") < request.latency_ns / 10, "{replay:?}");
        let baseline = request.baseline_latency_ns.expect("a conventional drive runs too");
        assert_eq!(request.excess_ns, Some(request.latency_ns as i64 - baseline as i64));
    }
    let behind = drive.requests[1].parts.iter().find(|part| part.cause == "requests").expect("it waits for number 16");
    assert_eq!(behind.of.requests, [(16, 16)]);
    let longest = drive.summary.shares.last().expect("there are groups");
    assert_eq!((longest.group.as_str(), longest.requests), ("longest", 1));
    assert_eq!(longest.latency_ns, drive.requests[0].latency_ns);
    let text = explained.text();
    for expected in [
        "request 16  write of 32 KiB at LBA 16,384",
        "behind cleaning of 16 regions (0, 1, 2, 3, …): since cache region 0 was full",
        "cache region 0, since it was last cleaned: 512 KiB of requests 0 to 15, LBA 0 to 15,423 in 16 ranges",
        "behind request 16",
        "the same request on cassuto-307g+conventional",
        "without the 16 writes from the first to the last that filled those stores",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
}

#[test]
fn a_request_is_chosen_by_its_number_or_by_a_percentile() {
    let one = explained(ExplainSettings { choice: Choice::Request(3), replay: false });
    let request = &one.document.drives[0].requests[0];
    assert_eq!(request.number, 3);
    assert!(request.parts.iter().all(|part| part.cause.starts_with("own_")), "{:?}", request.parts);
    // Of 20 requests, 19 are at or below the 95th percentile.
    for (percentile, number) in [(100.0, 16), (95.0, 17)] {
        let explained = explained(ExplainSettings { choice: Choice::Percentile(percentile), replay: false });
        let numbers: Vec<u64> = explained.document.drives[0].requests.iter().map(|request| request.number).collect();
        assert_eq!(numbers, [number], "{percentile}");
    }
}

#[test]
fn a_request_that_does_not_exist_is_an_error() {
    let settings = ExplainSettings { choice: Choice::Request(20), replay: false };
    let simulation = Simulation::new().drive(DRIVE).expect("it is right").baseline(Baseline::None);
    let failure = run(simulation, settings).err().expect("there is no such request");
    assert!(failure.message.contains("--request 20"), "{}", failure.message);
}
