//! Goal: a drive compared with itself has no difference; a wrong part is named; a fit finds a wrong value. Method: the
//! times of a simulated drive take the place of measured ones.

use imbrex_calibrate::compare::compare;
use imbrex_calibrate::fit::fit;
use imbrex_calibrate::measured::{Measured, MeasuredRequest};
use imbrex_calibrate::replay::replay;
use imbrex_calibrate::validate::validate;
use imbrex_disk::{Command, Profile, SimDuration, SimTime};
use imbrex_sim::Drive;

fn drive(overrides: &[(&str, &str)]) -> Profile {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    Profile::named("cmr-7200").expect("built in").with(&overrides).expect("is right")
}

fn simulated(profile: &Profile, measured: &Measured) -> Vec<imbrex_calibrate::replay::Simulated> {
    let drive = Drive::assemble("t", profile.clone(), "conventional", &[]).expect("can be built");
    replay(measured, drive).expect("nothing is read from outside")
}

/// Returns random requests, one at a time, four reads to one write, with the times that the unchanged drive takes.
fn measured() -> Measured {
    let (mut state, mut at) = (7u64, SimTime::ZERO);
    let mut measured = Measured::default();
    for index in 0..1500u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lba = (state >> 20) % 7_000_000_000 / 8 * 8;
        let command = if index % 5 == 0 { Command::write(lba, 8) } else { Command::read(lba, 8) };
        measured.requests.push(MeasuredRequest { command, issued: at, taken: SimDuration(1), hit: None });
        at += SimDuration(40_000_000 + (state >> 40) % 9_000_000);
    }
    // The simulated times become the measured ones, and the requests are moved so that the pauses between them stay.
    for _ in 0..2 {
        let times = simulated(&drive(&[]), &measured);
        let mut at = SimTime::ZERO;
        for (request, time) in measured.requests.iter_mut().zip(&times) {
            request.taken = time.taken;
            request.issued = at;
            at = at + time.taken + SimDuration(30_000_000);
        }
    }
    measured
}

#[test]
fn a_drive_held_against_itself_has_no_difference() {
    let measured = measured();
    let judged = validate(&measured, &simulated(&drive(&[]), &measured)).expect("requests were served");
    assert_eq!((judged.whole.rms_ns, judged.whole.requests), (0, 1500));
    assert_eq!(judged.suspect.part, "nothing");
    assert!(judged.classes.iter().all(|class| class.comparison.rms_ns == 0));
}

#[test]
fn what_is_wrong_is_pointed_at() {
    let measured = measured();
    let suspect = |overrides: &[(&str, &str)]| {
        let times = simulated(&drive(overrides), &measured);
        validate(&measured, &times).expect("requests were served").suspect.part
    };
    assert_eq!(
        suspect(&[("mechanics.seek.short_root_ns", "30000"), ("mechanics.seek.long_base_ns", "5700000")]),
        "seeks"
    );
    assert_eq!(suspect(&[("host.overhead_ns", "1600000")]), "overheads");
}

/// The curve begins 4 ms too high up to 100,000 tracks, and is correct beyond; most requests go beyond. The message
/// must name a range within, though the others deviate as much from the mean of all.
#[test]
fn the_stretch_of_the_curve_that_is_named_is_wrong_itself() {
    let measured = measured();
    let times = simulated(&drive(&[("mechanics.seek.short_base_ns", "4600000")]), &measured);
    let suspect = validate(&measured, &times).expect("requests were served").suspect;
    let from: u32 = suspect.because.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("over N to …");
    assert!(suspect.part == "seeks" && from < 100_000 && suspect.because.contains("longer"), "{}", suspect.because);
}

#[test]
fn the_figure_is_the_distance_between_distributions() {
    let same = compare(&mut [3, 1, 2], &mut [1, 2, 3]).expect("neither is empty");
    assert_eq!(same.rms_ns, 0, "order does not matter");
    let apart = compare(&mut [10, 20], &mut [13, 24]).expect("neither is empty");
    // (3² + 4²) / 2 = 12.5.
    assert_eq!((apart.rms_ns, apart.mean_measured_ns, apart.mean_simulated_ns), (4, 15, 18));
}

#[test]
fn a_fit_finds_the_overhead_that_was_put_wrong() {
    let measured = measured();
    let wrong = drive(&[]).table();
    let text = toml::to_string(&wrong).expect("a table").replace("overhead_ns = 100000", "overhead_ns = 900000");
    let wrong = Profile::parse("wrong.toml", &text, &[]).expect("is right");
    let found = fit(&measured, &wrong, "t", &mut |_, _| ()).expect("the requests fit the drive");
    assert!(found.second.1.rms_ns * 2 < found.second.0.rms_ns, "{:?}", found.second);
    assert!(found.toml.contains("# fitted"));
    Profile::parse("fitted.toml", &found.toml, &[]).expect("what is written is a profile");
}

/// The profile has 5,900 rpm, other seeks and other skews, and the drive 7,200 rpm.
#[test]
fn a_fit_finds_a_rotation_far_from_that_of_the_profile() {
    let profile = Profile::named("cmr-5900").expect("built in");
    let found = fit(&measured(), &profile, "t", &mut |_, _| ()).expect("the requests fit the drive");
    let rotation = found.fitted.iter().find(|value| value.key == "geometry.rotation_ns").expect("is fitted");
    let within = rotation.within.expect("random requests determine the rotation");
    assert!((rotation.after - 8_333_333.0).abs() <= within && within < 800_000.0, "{rotation:?}");
}

/// Pauses that do not preserve the position of the platter, as in many records: requests fall anywhere in a rotation,
/// and the distributions of two halves differ by chance alone.
#[test]
fn chance_is_not_fitted() {
    let mut measured = measured();
    let (mut state, mut late) = (11u64, 0);
    for request in &mut measured.requests {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        late += (state >> 33) % 8_333_333;
        request.issued += SimDuration(late);
    }
    let found = fit(&measured, &drive(&[]), "t", &mut |_, _| ()).expect("the requests fit the drive");
    let changed: Vec<_> = found.fitted.iter().filter(|value| value.before != value.after).collect();
    assert!(changed.len() <= 2, "the profile was right: {changed:?}");
    let (before, after) = found.second;
    assert!(after.rms_ns * 10 <= before.rms_ns * 11, "the judged half came from {before:?} to {after:?}");
}

/// Writes are reported later than the profile says. Only the comparison of single requests can distinguish that from a
/// slower arm, because the time lost at one end of a request is gained at the other.
#[test]
fn single_requests_tell_a_late_report_from_a_late_arm() {
    let controlled = |complete_ns: u64| {
        let mut table = drive(&[]).table();
        let host = table["host"].as_table_mut().expect("a section");
        host.retain(|key, _| !key.ends_with("_bytes"));
        let controller = format!("segments = 4\nsegment_sectors = 512\nwrite_complete_ns = {complete_ns}");
        host.insert("controller".into(), toml::Value::Table(controller.parse().expect("is right")));
        Profile::parse("t.toml", &toml::to_string(&table).expect("a table"), &[]).expect("is right")
    };
    let mut measured = measured();
    let times = simulated(&controlled(250_000), &measured);
    let mut at = SimTime::ZERO;
    for (request, time) in measured.requests.iter_mut().zip(&times) {
        (request.taken, request.issued) = (time.taken, at);
        at = at + time.taken + SimDuration(30_000_000);
    }
    let found = fit(&measured, &controlled(50_000), "t", &mut |_, _| ()).expect("the requests fit the drive");
    let after = |key: &str| found.fitted.iter().find(|value| value.key.ends_with(key)).expect("is fitted").after;
    // A delay that reads and writes share cannot be seen: the next request comes later by as much.
    let late = after("write_complete_ns") - after("read_complete_ns");
    assert!((late - 250_000.0).abs() < 10_000.0, "{:?}", found.fitted);
}
