//! Goal: a described controller takes the times of its description. Method: a small drive of whole numbers (rotations
//! of 10 ms, 100 sectors a track), single requests, and sums worked out by hand.

use imbrex_disk::{Command, Profile, SimDuration};
use imbrex_sim::{Arrival, Drive, Engine, IoRecord, Observer, Options};
use imbrex_trace::{Recorded, Request, When};

const PROFILE: &str = r#"
name = "toy"
summary = "a drive of whole numbers"
default_layer = "conventional"
[geometry]
layout = "cylinder"
surfaces = 1
rotation_ns = 10_000_000
zones = [{ tracks = 100, track_sectors = 100 }]
[mechanics]
write_settle_ns = 500_000
[mechanics.seek]
model = "linear"
min_ns = 2_000_000
max_ns = 2_000_000
[recording]
kind = "conventional"
[host.controller]
read_hit_after_read_ns = 50_000
read_hit_after_write_ns = 70_000
read_miss_after_read_ns = 300_000
read_miss_after_write_ns = 400_000
write_hit_after_read_ns = 600_000
write_hit_after_write_ns = 700_000
write_miss_after_read_ns = 800_000
write_miss_after_write_ns = 900_000
read_complete_ns = 10_000
write_complete_ns = 20_000
bus_read_sector_ns = 200_000
bus_write_sector_ns = 200_000
segments = 2
segment_sectors = 200
caches = true
hits_written = true
read_on = "segment"
read_on_max_sectors = 50
read_on_over_requested = true
partial_hit_at_once = true
immediate_report = "mixed"
"#;

struct Times(Vec<u64>);

impl Observer for Times {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.0.push(record.end.since(record.entry).0);
    }
}

/// Returns the service times in microseconds of requests that each begin `pause_us` after the answer before.
fn times(requests: &[(Command, u64)], overrides: &[(&str, &str)]) -> Vec<u64> {
    let overrides: Vec<_> = overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let profile = Profile::parse("toy.toml", PROFILE, &overrides).expect("is right");
    let drive = Drive::assemble("toy", profile, "conventional", &[]).expect("can be built");
    let request = |&(command, pause_us): &(Command, u64)| Request {
        when: When::Drained(SimDuration(pause_us * 1000)),
        device: 0,
        command,
    };
    let source = Recorded::new(requests.iter().map(request).collect::<Vec<_>>());
    let options = Options { arrival: Arrival::Closed(1), ..Options::live(&drive) };
    let mut times = Times(Vec::new());
    Engine::new(drive, options, source, &mut times).run().expect("nothing is read from outside");
    times.0.iter().map(|ns| ns / 1000).collect()
}

#[test]
fn a_miss_waits_for_arm_and_platter_and_a_hit_for_the_bus_alone() {
    // 0.3 at first, until sector 10 passes at 1.0 and has passed at 1.1; four sectors over the bus at 0.2; 0.01. The
    // drive reads on: 54 sectors by the time the next request arrives. A hit is 0.05 + 4 × 0.2 + 0.01.
    let requests = [(Command::read(10, 4), 0), (Command::read(14, 4), 8_000), (Command::read(60, 4), 8_000)];
    assert_eq!(times(&requests, &[])[..3], [1_100 + 800 + 10, 860, 860]);
}

#[test]
fn the_bus_waits_for_the_medium_where_it_is_the_faster() {
    let fast = [("host.controller.bus_read_sector_ns", "50000")];
    // Four sectors have passed at 1.4; the last then takes 0.05 over the bus.
    assert_eq!(times(&[(Command::read(10, 4), 0)], &fast), [1_400 + 50 + 10]);
}

#[test]
fn a_write_is_reported_from_the_buffer_and_what_follows_waits_for_the_medium() {
    // 0.6 + 2 × 0.2 + 0.02, whatever the medium does. The write is on track 1 after a seek of 2 and 0.5 of settling;
    // sector 50 passes at 5.0, and the write ends at 5.2. A read of another track, requested at once, then takes a seek
    // of 2: to 7.2, then to sector 20 at 12.0, which ends at 12.1; 0.2 over the bus, 0.01.
    let requests = [(Command::write(150, 2), 0), (Command::read(220, 1), 0)];
    let seen = times(&requests, &[]);
    assert_eq!(seen, [1_020, 12_100 + 200 + 10 - 1_020]);
    // A write that continues the last one joins it: 0.7 + 0.4 + 0.02.
    assert_eq!(times(&[(Command::write(150, 2), 0), (Command::write(152, 2), 0)], &[])[1], 1_120);
}

#[test]
fn a_write_that_is_not_reported_early_ends_on_the_medium() {
    let slow = [("host.controller.immediate_report", "never")];
    // 0.8, and the seek of 2.5: sector 150 passes at 5.0, two sectors by 5.2; 0.02.
    assert_eq!(times(&[(Command::write(150, 2), 0)], &slow), [5_200 + 20]);
    // A bus so slow that the second sector arrives after it should have passed costs a rotation.
    let slower = [slow[0], ("host.controller.bus_write_sector_ns", "2200000")];
    assert_eq!(times(&[(Command::write(150, 2), 0)], &slower), [15_200 + 20]);
    // A bus on which a sector takes 12: the first has arrived at 12.8 and passes at 15.0, the second at 24.8 and passes
    // at 25.1. The third has arrived at 36.8, when one more rotation would be too early: it has passed at 45.3.
    let slowest = [slow[0], ("host.controller.bus_write_sector_ns", "12000000")];
    assert_eq!(times(&[(Command::write(150, 3), 0)], &slowest), [45_300 + 20]);
}

#[test]
fn the_segment_that_was_used_longest_ago_goes_first() {
    let at = |lba: u64| (Command::read(lba, 2), 30_000);
    let seen =
        times(&[at(100), at(3_000), at(100), at(6_000), at(100), at(3_000)], &[("host.controller.read_on", "none")]);
    let is_hit: Vec<bool> = seen.iter().map(|&us| us == 460).collect();
    assert_eq!(is_hit, [false, false, true, false, true, false]);
}

/// Time in microseconds of a read of two sectors found in the buffer, after a read: 0.05, two sectors of 0.2, 0.01.
const HIT_US: u64 = 460;

#[test]
fn the_least_reading_on_stays_in_the_buffer() {
    // The read is answered at 1.91; the drive reads on to sector 43 until 4.4. The arm then moves to sector 5000, which
    // passes at 10.0. Sectors 40 and 41 have been in the buffer since.
    let least = [("host.controller.read_on_min_sectors", "30")];
    let requests = [(Command::read(10, 4), 0), (Command::read(5_000, 1), 0), (Command::read(40, 2), 8_000)];
    assert_eq!(times(&requests, &least), [1_910, 10_100 + 200 + 10 - 1_910, HIT_US]);
}

#[test]
fn sectors_that_pass_before_the_requested_ones_are_kept() {
    // The head is ready at 0.3 and waits until 5.0 for sector 50: sectors 3 to 49 pass.
    let before = [("host.controller.keeps_sectors_before", "true")];
    let requests = [(Command::read(50, 2), 0), (Command::read(3, 2), 8_000), (Command::read(2, 2), 8_000)];
    let seen = times(&requests, &before);
    assert_eq!((seen[0], seen[1]), (5_100 + 400 + 10, HIT_US));
    assert_ne!(seen[2], HIT_US, "sector 2 had passed");
}

#[test]
fn a_stream_of_writes_takes_one_segment() {
    // The segment of the first read is the only other one. A read hit after a write is processed in 0.07.
    let requests = [
        (Command::read(3_000, 2), 0),
        (Command::write(150, 2), 30_000),
        (Command::write(152, 2), 0),
        (Command::read(3_000, 2), 30_000),
    ];
    assert_eq!(times(&requests, &[("host.controller.read_on", "none")])[3], HIT_US + 20);
}

#[test]
fn a_segment_whose_sectors_no_read_may_find_is_taken_first() {
    let hidden = [("host.controller.read_on", "none"), ("host.controller.hits_written", "false")];
    let requests = [(Command::read(3_000, 2), 0), (Command::write(150, 2), 30_000), (Command::read(6_000, 2), 30_000)];
    let again = |lba: u64| (Command::read(lba, 2), 30_000);
    let seen = times(&[&requests[..], &[again(3_000), again(150)]].concat(), &hidden);
    assert_eq!(seen[3], HIT_US);
    assert_ne!(seen[4], HIT_US, "written data may not be found");
}

#[test]
fn a_read_found_in_part_takes_the_bus_at_once_if_its_watermark_is_reached() {
    let of = |whole| {
        [
            ("host.controller.partial_hit_at_once", "false"),
            ("host.controller.read_watermark", "0.1"),
            ("host.controller.watermark_of", whole),
        ]
    };
    // At 5.21 sectors 50 and 51 are in the buffer. A tenth of a segment is 20 sectors, more than the read has: it waits
    // until all ten have passed at 6.0; 2.0 on the bus, 0.01.
    let requests = |pause| [(Command::read(10, 4), 0), (Command::read(50, 10), pause)];
    assert_eq!(times(&requests(3_000), &of("\"segment\"")), [1_400 + 810, 6_000 + 2_010 - 5_210]);
    // A tenth of the read is one sector. From 5.26, after 0.05, two sectors go until 5.66, four until 6.46, and four.
    assert_eq!(times(&requests(3_300), &of("\"request\"")), [1_100 + 810, 7_260 + 10 - 5_210]);
}

#[test]
fn reading_on_to_the_end_of_a_track_does_not_move_the_arm() {
    let track = [("host.controller.read_on", "track"), ("host.controller.read_on_after_hit", "true")];
    let found = |requests: &[(Command, u64)]| *times(requests, &track).last().expect("requests") == HIT_US;
    let at = |lba: u64| (Command::read(lba, 2), 8_000);
    // The drive reads on to sector 61 at first, and to sector 71 after the read of sector 20, unless it has moved away.
    assert!(found(&[at(10), at(20), at(66)]));
    assert!(!found(&[at(10), at(5_000), at(20), at(66)]));
}
