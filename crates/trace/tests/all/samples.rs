//! Goal: the readers agree with the known figures of published traces. Method: count the requests of real samples if
//! they lie beside the repository. The expected counts come from the publishers or from other tools.

use std::fs::File;
use std::path::PathBuf;

use imbrex_trace::{Input, TraceOptions, When, open};
use imbrex_units::{Operation, SimTime};

/// Returns the number of reads and writes and the last time. Prints a message and returns `None` if the sample is
/// missing.
fn counted(name: &str, format: &str) -> Option<(u64, u64, SimTime)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces").join(name);
    let Ok(file) = File::open(&path) else {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    };
    let mut opened = open(Input::file(name, file), &TraceOptions::default()).expect("a sound trace");
    assert_eq!(opened.format.name, format);
    let (mut reads, mut writes, mut last) = (0, 0, SimTime::ZERO);
    while let Some(request) = opened.source.next(SimTime::ZERO).expect("a sound trace") {
        match request.command.operation {
            Operation::Read => reads += 1,
            Operation::Write => writes += 1,
            other => panic!("{name} has no {other:?}"),
        }
        let When::At(time) = request.when else { panic!("a trace has times") };
        last = last.max(time);
    }
    Some((reads, writes, last))
}

/// Returns whether the trace lasts about as long as its publisher says.
fn lasts(last: SimTime, seconds: std::ops::Range<u64>) -> bool {
    seconds.contains(&(last.0 / 1_000_000_000))
}

#[test]
fn cloudphysics_machine() {
    if let Some((reads, writes, last)) = counted("cloudPhysicsIO.vscsi", "vscsi1") {
        assert_eq!((reads, writes), (46_974, 66_898));
        assert!(lasts(last, 7000..7300), "about two hours, not {last:?}");
    }
}

#[test]
fn blkreplay_servers() {
    if let Some((reads, writes, last)) = counted("blkreplay-linux-mysql.load.gz", "blkreplay") {
        assert_eq!((reads, writes), (7_187, 73_607));
        assert!(lasts(last, 3500..3700), "about an hour, not {last:?}");
    }
    if let Some((reads, writes, last)) = counted("blkreplay-windows-mssql.load.gz", "blkreplay") {
        assert_eq!((reads, writes), (2_528, 40_448));
        assert!(lasts(last, 50 * 60..52 * 60), "51 minutes, not {last:?}");
    }
}

#[test]
fn msr_hardware_monitor() {
    if let Some((reads, writes, _)) = counted("msr-hm-first1000.csv", "msr") {
        assert_eq!((reads, writes), (508, 492));
    }
}

#[test]
fn systor_first_rows() {
    if let Some((reads, writes, _)) = counted("systor17-first1000.csv", "systor17") {
        assert_eq!(reads + writes, 999);
    }
}
