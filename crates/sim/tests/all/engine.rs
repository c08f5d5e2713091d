//! Goal: the engine keeps the clock like a queueing model on paper. Method: a toy drive whose service times have closed
//! forms, workloads of a few requests, and recursions written out beside.

use imbrex_disk::{Command, Lba, Pba, Profile, Sectors, SimDuration, SimTime};
use imbrex_layer::{Background, Cause, GroupKind, Layer, MapMemory, Medium, Note, Piece, Plan, ReplayError, Violation};
use imbrex_sim::results::Integrity;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveSpec, Engine, Fit, IoRecord, Observer, Options, Outcome, summarize};
use imbrex_trace::{Recorded, Request, When};

const ROTATION_NS: u64 = 10_000_000;
const TRACK_SECTORS: u64 = 1000;
const OVERHEAD_NS: u64 = 200_000;

/// One surface, 1000 tracks of 1000 sectors, 10 ms a rotation, no skew; each test sets the rotation model.
fn profile(rotation: &str) -> Profile {
    let text = format!(
        r#"
name = "toy"
summary = "a toy"
default_layer = "conventional"
[geometry]
layout = "cylinder"
surfaces = 1
tracks = 1000
track_sectors_od = {TRACK_SECTORS}
rotation_ns = {ROTATION_NS}
[mechanics]
rotation = "{rotation}"
[mechanics.seek]
model = "linear"
min_ns = 1_000_000
max_ns = 1_000_000
[recording]
kind = "conventional"
[host]
overhead_ns = {OVERHEAD_NS}
write_cache_acknowledge_ns = 50_000
"#
    );
    Profile::parse("toy.toml", &text, &[]).expect("the toy profile is right")
}

fn drive(rotation: &str) -> Drive {
    Drive::build(&DriveSpec::parse("toy").expect("a name"), &profile(rotation)).expect("the toy drive is right")
}

fn options(arrival: Arrival) -> Options {
    Options {
        arrival,
        schedule: Schedule::named("fifo", SimDuration::ZERO).expect("it is known"),
        write_cache_bytes: 0,
        read_ahead_bytes: 0,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: true,
    }
}

fn at(ns: u64, command: Command) -> Request {
    Request { when: When::At(SimTime(ns)), device: 0, command }
}

fn next(command: Command) -> Request {
    Request { when: When::Free(SimDuration::ZERO), device: 0, command }
}

#[derive(Default)]
struct Records(Vec<IoRecord>);

impl Observer for Records {
    fn wants_ios(&self) -> bool {
        true
    }

    fn io(&mut self, record: &IoRecord) {
        self.0.push(*record);
    }
}

fn run(drive: Drive, options: Options, requests: Vec<Request>) -> (Vec<IoRecord>, Outcome) {
    let mut source = Recorded::new(requests);
    let mut records = Records::default();
    let outcome =
        Engine::new(drive, options, &mut source, &mut records).run().expect("a recorded source does not fail");
    assert_eq!(outcome.integrity, Integrity::ok());
    (records.0, outcome)
}

#[test]
fn a_slow_sector_costs_overhead_and_holds_up_who_waits_behind_it() {
    let requests = || vec![at(0, Command::read(500, 1)), at(0, Command::read(100, 1))];
    let extra = SimDuration::from_millis(70);
    let outcome_with = |extra| {
        let mut source = Recorded::new(requests());
        let mut records = Records::default();
        let mut engine = Engine::new(drive("exact"), options(Arrival::Open), &mut source, &mut records);
        engine.slow_mut().set(Lba(500), Sectors(1), extra);
        let outcome = engine.run().expect("a recorded source does not fail");
        (records.0, outcome)
    };
    let ((as_new, before), (slowed, after)) = (outcome_with(SimDuration::ZERO), outcome_with(extra));
    assert_eq!(slowed[0].end, as_new[0].end + extra);
    // Seven rotations of 10 ms: the sector behind it passes at the same angle.
    assert_eq!(extra.0 % ROTATION_NS, 0);
    assert_eq!(slowed[1].end, as_new[1].end + extra);
    let parts = |outcome: &Outcome| outcome.metrics.parts;
    assert_eq!(parts(&after).overhead, parts(&before).overhead + extra.0);
    assert_eq!((parts(&after).seek, parts(&after).rotation), (parts(&before).seek, parts(&before).rotation));
}

#[test]
fn reading_one_sector_again_and_again_costs_a_rotation_each() {
    let (records, _) = run(drive("exact"), options(Arrival::Closed(1)), vec![next(Command::read(500, 1)); 10]);
    for pair in records.windows(2) {
        assert_eq!(pair[1].end - pair[0].end, SimDuration(ROTATION_NS));
    }
    // The first: sector 500 of 1000 begins half a rotation after time zero and takes a thousandth of one.
    assert_eq!(records[0].end, SimTime(ROTATION_NS / 2 + ROTATION_NS / 1000));
}

#[test]
fn open_arrivals_follow_the_recursion_of_a_single_server() {
    // Without rotation every access elsewhere takes one seek of 1 ms and its transfer: 8 sectors, 80 µs.
    let service = 1_000_000 + 8 * ROTATION_NS / TRACK_SECTORS;
    let mut requests = Vec::new();
    let mut arrival = 0;
    for i in 0..200u64 {
        arrival += (i * 7919) % 2_500_000;
        requests.push(at(arrival, Command::read((i % 2 * 500 + 100) * TRACK_SECTORS, 8)));
    }
    let (records, outcome) = run(drive("none"), options(Arrival::Open), requests.clone());
    let mut free = 0;
    for (record, request) in records.iter().zip(&requests) {
        let When::At(arrived) = request.when else { unreachable!() };
        // The controller's time passes during the service of earlier requests.
        free = free.max(arrived.0 + OVERHEAD_NS) + service;
        assert_eq!((record.entry, record.end), (arrived, SimTime(free)));
    }
    assert_eq!(outcome.requests, 200);
}

#[test]
fn a_fixed_queue_holds_no_more_than_its_depth_and_dilates_the_rest() {
    // All arrive at once, four at a time enter: request i enters when request i − 4 completes.
    let requests = (0..40).map(|i| at(0, Command::read(i % 2 * 500_000, 8))).collect();
    let (records, _) = run(drive("none"), options(Arrival::FixedQueue(4)), requests);
    for (i, record) in records.iter().enumerate().skip(4) {
        assert_eq!(record.entry, records[i - 4].end, "request {i}");
    }
}

#[test]
fn every_request_is_completed_or_rejected_with_a_reason() {
    let end = 1000 * TRACK_SECTORS;
    let commands = [Command::read(0, 8), Command::read(end - 4, 8), Command::write(7, 0), Command::flush()];
    let requests = commands.into_iter().chain([Command::trim(100, 8)]).map(next).collect();
    let (records, outcome) = run(drive("none"), options(Arrival::Closed(1)), requests);
    assert_eq!(records.len(), 3);
    let rejected: Vec<_> = outcome.metrics.rejected.iter().map(|(reason, count)| (*reason, *count)).collect();
    assert_eq!(rejected, [("beyond the end of the drive", 1), ("zero length", 1)]);
}

#[test]
fn a_rejected_request_ends_the_warmup_too() {
    let past = Command::read(1000 * TRACK_SECTORS, 8);
    for (last, completed) in [(Command::read(0, 8), 2), (past, 2)] {
        let requests = [Command::read(0, 8), last, Command::read(8, 8), Command::read(16, 8)].map(next).to_vec();
        let warm = Options { warmup_requests: 2, ..options(Arrival::Closed(1)) };
        let (_, outcome) = run(drive("none"), warm, requests);
        assert_eq!(outcome.metrics.completed(), completed, "{last:?} is the last of the warm-up");
    }
}

#[test]
fn a_workload_past_the_end_wraps_or_scales_when_asked() {
    let end = 1000 * TRACK_SECTORS;
    let wrapped = Options { fit: Fit::Wrap, ..options(Arrival::Closed(1)) };
    let (records, _) = run(drive("none"), wrapped, vec![next(Command::read(end + 24, 8))]);
    assert_eq!(records[0].command.lba, Lba(24));
    let scaled = Options { fit: Fit::Scale(4 * end), ..options(Arrival::Closed(1)) };
    let (records, _) = run(drive("none"), scaled, vec![next(Command::read(2 * end, 8))]);
    assert_eq!(records[0].command.lba, Lba(end / 2));
}

#[test]
fn the_volatile_cache_acknowledges_at_once_and_a_flush_waits_for_the_platter() {
    let cached = Options { write_cache_bytes: 64 * 512, ..options(Arrival::Closed(1)) };
    let requests = vec![next(Command::write(500_000, 8)), next(Command::write(100_000, 8)), next(Command::flush())];
    let (records, outcome) = run(drive("none"), cached, requests);
    let latency = |i: usize| records[i].end.since(records[i].entry).0;
    assert_eq!((latency(0), latency(1)), (50_000, 50_000));
    // Two destages of a seek and 80 µs each, begun when the flush came.
    let destaged = 2 * (1_000_000 + 80_000);
    assert!(records[2].end.0 >= destaged && records[2].end.0 <= destaged + 2 * OVERHEAD_NS, "{:?}", records[2]);
    assert_eq!(outcome.timing.counters.total.writes.blocks, 16);
}

#[test]
fn a_cached_write_keeps_its_place_in_the_loop_until_it_is_acknowledged() {
    for depth in [1, 4] {
        let cached = Options { write_cache_bytes: 1 << 20, ..options(Arrival::Closed(depth)) };
        let requests = (0..20).map(|i| next(Command::write(i * 1000, 8))).collect();
        let (records, _) = run(drive("none"), cached, requests);
        for (index, record) in records.iter().enumerate() {
            assert_eq!(record.entry.0, index as u64 / depth as u64 * 50_000, "request {index} at depth {depth}");
        }
    }
}

#[test]
fn a_full_cache_makes_writes_wait_for_a_destage() {
    let cached = Options { write_cache_bytes: 16 * 512, ..options(Arrival::Closed(1)) };
    let requests = (0..8).map(|i| next(Command::write(i % 2 * 500_000 + i * 1000, 8))).collect();
    let (records, _) = run(drive("none"), cached, requests);
    let slow = records.iter().filter(|record| record.end.since(record.entry).0 > 500_000).count();
    assert!(slow >= 5, "two fit, the others wait: {slow} waited");
}

#[test]
fn shortest_positioning_first_beats_fifo_and_loses_nothing() {
    let mut state = 1u64;
    let mut commands = Vec::new();
    for i in 0..2000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let lba = (state >> 33) % (TRACK_SECTORS * 1000 - 8);
        commands.push(next(if i % 3 == 0 { Command::write(lba, 8) } else { Command::read(lba, 8) }));
    }
    let mut durations = Vec::new();
    for name in Schedule::NAMES {
        let schedule = Schedule::named(name, SimDuration::from_secs(1)).expect("it is known");
        let (records, outcome) =
            run(drive("exact"), Options { schedule, ..options(Arrival::Closed(32)) }, commands.clone());
        assert_eq!(records.len(), 2000);
        durations.push((name, outcome.metrics.ended));
    }
    assert!(durations[2].1 < durations[0].1, "{durations:?}");
}

#[test]
fn two_runs_give_the_same_results() {
    let requests: Vec<_> = (0..500).map(|i| at(i * 300_000, Command::write(i * 7919 % 999_000, 8))).collect();
    let once = || {
        let options = options(Arrival::FixedQueue(8));
        let (_, outcome) = run(drive("exact"), options.clone(), requests.clone());
        summarize(&outcome, &options, 0.0).0
    };
    assert_eq!(once(), once());
}

/// A layer that reads and writes in place and, when idle, rewrites a track at a time in the background.
struct Restless {
    phases_left: u32,
    /// Threshold of the next phase in milliseconds, by the number of phases left.
    idle_after_ms: fn(u32) -> u64,
}

impl Layer for Restless {
    fn name(&self) -> &'static str {
        "restless"
    }

    fn capacity(&self) -> Sectors {
        Sectors(1000 * TRACK_SECTORS)
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        plan.open(GroupKind::Host);
        plan.read(Cause::Host, Pba(commands[0].lba.0), commands[0].lba, Sectors(commands[0].sectors as u64));
    }

    fn background(&self) -> Option<Background> {
        let idle_after = SimDuration::from_millis((self.idle_after_ms)(self.phases_left));
        Some(Background { idle_after, rest: SimDuration::ZERO })
    }

    fn idle(&mut self, plan: &mut Plan) -> bool {
        if self.phases_left == 0 {
            return false;
        }
        self.phases_left -= 1;
        plan.open(GroupKind::Cleaning);
        plan.read(Cause::Cleaning, Pba(0), Lba(0), Sectors(TRACK_SECTORS));
        plan.write(Cause::Cleaning, Pba(0), Lba(0), Sectors(TRACK_SECTORS));
        true
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        pieces.push(Piece { lba, sectors, at: Some((Medium::Disk, Pba(lba.0))) });
    }

    fn keeps_trims(&self) -> bool {
        false
    }

    fn self_check(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }

    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        Err(ReplayError { note: *note, reason: "none is written".into() })
    }
}

#[test]
fn idle_work_begins_after_the_threshold_and_a_request_waits_for_its_phase_alone() {
    let mut drive = drive("none");
    drive.layer = Box::new(Restless { phases_left: 100, idle_after_ms: |_| 5 });
    let requests = vec![at(0, Command::read(0, 8)), at(17_000_000, Command::read(8, 8))];
    let (records, outcome) = run(drive, options(Arrival::Open), requests);
    // A first read at the head's own track: the controller's 200 µs and 80 µs of transfer.
    let first_end = OVERHEAD_NS + 80_000;
    assert_eq!(records[0].end.0, first_end);
    // Idle from there. Work begins 5 ms later, in phases of a track read without a seek and a track write, 20 ms each.
    let phase_end = first_end + 5_000_000 + 20_000_000;
    assert_eq!(outcome.timing.cleaning.events(), 1);
    assert_eq!(records[1].start.0, phase_end);
    assert_eq!(outcome.timing.cleaning.longest_stall_ns(), phase_end - 17_000_000);
}

#[test]
fn the_threshold_of_a_later_phase_counts_from_the_last_command_too() {
    let mut drive = drive("none");
    drive.layer = Box::new(Restless { phases_left: 2, idle_after_ms: |left| if left == 2 { 5 } else { 100 } });
    let first_end = OVERHEAD_NS + 80_000;
    // The second phase begins 100 ms after the first read, and takes 20 ms.
    let second_begin = first_end + 100_000_000;
    let requests = vec![at(0, Command::read(0, 8)), at(second_begin + 1, Command::read(8, 8))];
    let (records, outcome) = run(drive, options(Arrival::Open), requests);
    assert_eq!(outcome.timing.cleaning.events(), 2);
    assert_eq!(records[1].start.0, second_begin + 20_000_000);
}

#[test]
fn sequential_reads_stream_with_look_ahead_and_lose_a_rotation_each_without() {
    let requests: Vec<_> = (0..50).map(|i| next(Command::read(i * 100, 100))).collect();
    let run_with = |read_ahead_bytes| {
        let (records, _) =
            run(drive("exact"), Options { read_ahead_bytes, ..options(Arrival::Closed(1)) }, requests.clone());
        records[49].end - records[0].end
    };
    // Without look-ahead each read comes 200 µs late and waits a whole rotation for its first sector, then reads for a
    // tenth of one; a track switch is a seek of 1 ms, within that rotation.
    assert_eq!(run_with(0), SimDuration(49 * (ROTATION_NS + ROTATION_NS / 10)));
    // With look-ahead the platter is the limit: a tenth of a rotation each. At four track switches a rotation is lost,
    // because the toy has no skew.
    assert_eq!(run_with(1 << 20), SimDuration(49 * ROTATION_NS / 10 + 4 * ROTATION_NS));
}

#[test]
fn a_write_in_between_ends_look_ahead() {
    let requests = [Command::read(0, 100), Command::write(5_000, 100), Command::read(100, 100)].map(next).to_vec();
    let ends = |read_ahead_bytes| {
        let options = Options { read_ahead_bytes, ..options(Arrival::Closed(1)) };
        let (records, _) = run(drive("exact"), options, requests.clone());
        records.iter().map(|record| record.end).collect::<Vec<_>>()
    };
    assert_eq!(ends(1 << 20), ends(0), "while it wrote the drive read nothing");
}

#[test]
fn a_stream_through_the_volatile_cache_is_written_band_by_band() {
    // Bands of 20 tracks of 32 sectors, and a cache of three bands and a bit: its sectors of a fourth band stay until
    // the rest has arrived. Only at the start of the stream, before anything was gathered, does a part of a band go to
    // the disk's cache.
    let words = "seagate-st5000as0011:geometry.tracks=4000,geometry.stroke_tracks_od=400,geometry.stroke_tracks_id=400,\
                 geometry.track_sectors_od=32,geometry.track_sectors_id=32,cache_size=2MiB,half_track_payload=8KiB,\
                 large_payload=8KiB,map_merge_every=0,map_merge_tracks=1,stream_size=16KiB";
    let spec = imbrex_sim::DriveSpec::parse(words).expect("is right");
    let profile = Profile::named(&spec.profile).expect("is built in");
    for depth in [1, 4, 31] {
        let drive = Drive::build(&spec, &profile).expect("can be built");
        let options = Options { write_cache_bytes: 1 << 20, ..options(Arrival::Closed(depth)) };
        let requests = (0..2000).map(|index| next(Command::write(index * 32, 32))).collect();
        let (_, outcome) = run(drive, options, requests);
        let written = outcome.timing.counters.total.writes.blocks as f64;
        // 64,000 sectors; at most two bands of them, 1280, in the disk's cache, at most fivefold there because of
        // out-of-band data.
        assert!(written <= 64_000.0 + 5.0 * 1280.0, "depth {depth}: {written} sectors written for 64,000");
    }
}

#[test]
fn a_drive_with_nothing_to_clean_waits_for_the_request_that_is_to_come() {
    // A new layer that cleans when idle: its idle time comes before the request's, and there is no work in it.
    let profile = imbrex_disk::Profile::named("emulated-smr-3").expect("it comes with the project");
    let drive = Drive::build(&imbrex_sim::DriveSpec::parse("emulated-smr-3").expect("is right"), &profile)
        .expect("it can be built");
    assert!(drive.layer.background().is_some(), "this test needs a layer that works when idle");
    let late = Request { when: When::At(SimTime(3_600_000_000_000)), device: 0, command: Command::read(0, 8) };
    let mut inbox = imbrex_sim::Inbox::default();
    inbox.push(late);
    let mut engine = Engine::new(drive, options(Arrival::Open), inbox, Records::default());
    let mut steps = 0;
    while engine.observer_mut().0.is_empty() {
        let stepped = engine.step(SimTime(u64::MAX)).expect("an inbox does not fail");
        assert_eq!(stepped, imbrex_sim::Stepped::Worked);
        steps += 1;
        assert!(steps < 10, "the request is never served");
    }
    assert_eq!(engine.step(SimTime(u64::MAX)).expect("an inbox does not fail"), imbrex_sim::Stepped::Idle);
}
