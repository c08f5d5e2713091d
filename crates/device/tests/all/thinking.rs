//! Goal: a host that pauses between synchronous writes loses a whole rotation if it pauses longer than the gap
//! between records allows, and nothing otherwise. So the effect that fio measures in real time is caused by the
//! drive. Method: the drive of Aghayev 2015 §4.3 in simulated time, each write submitted a fixed time after the
//! previous answer.

use imbrex_device::drive::{Making, header_of};
use imbrex_device::{EmulatedDrive, Io, IoKind};
use imbrex_disk::{Profile, SimTime};
use imbrex_sim::{Drive, DriveSpec};

const TURN_NS: u64 = 10_000_000;

fn drive() -> EmulatedDrive {
    let spec = DriveSpec::parse("seagate-st5000as0011").expect("it is a drive");
    let profile = Profile::named(&spec.profile).expect("it is built in");
    let drive = Drive::build(&spec, &profile).expect("it is built in");
    let header = header_of(&drive, &spec, &Making::default()).expect("its layer is safe");
    EmulatedDrive::in_memory_of(header, drive).expect("memory takes it")
}

/// Returns the nanoseconds from write to write for a host that pauses `think_ns` after each.
fn period_ns(drive: &mut EmulatedDrive, think_ns: u64) -> u64 {
    let mut ends = Vec::new();
    for number in 0..40u64 {
        let at = ends.last().map_or(drive.now(), |end: &SimTime| SimTime(end.0 + think_ns));
        let (kind, offset) = (IoKind::Write { fua: false }, number * 7919 * 4096 % (1 << 40));
        drive.submit(at, Io { kind, offset, length: 4096, buffer: vec![1; 4096] }).expect("it is whole");
        drive.advance(SimTime(at.0 + 1_000_000_000));
        ends.push(drive.completions().next().expect("a second is enough").end);
    }
    let mut periods: Vec<u64> = ends.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    periods.sort_unstable();
    periods[periods.len() / 2]
}

#[test]
fn thinking_longer_than_the_gap_costs_a_turn() {
    let mut drive = drive();
    let flat_out = period_ns(&mut drive, 0);
    assert!(flat_out.abs_diff(25_000_000) < 250_000, "{flat_out} ns: two and a half tracks (Aghayev 2015 §4.3)");
    assert_eq!(period_ns(&mut drive, 50_000), flat_out, "it is ready when the place comes by");
    assert_eq!(period_ns(&mut drive, 400_000), flat_out + TURN_NS, "the place has just gone by");
    assert_eq!(
        period_ns(&mut drive, 5_000_000),
        flat_out + TURN_NS,
        "and comes round once, however long within a turn"
    );
}
