//! Goal: drives as sold lose nothing while they clean, and end in the state that their layers promise. Method: each
//! drive shrunk to 64 MB with a cache that fills many times over, all under the checker; the expected end of a run is
//! counted from the workload.

use imbrex_disk::{Command, Lba, Profile, Sectors, SimDuration, SimTime};
use imbrex_layer::{Cause, Kind, Layer, Piece, Plan, StepOp};
use imbrex_sim::results::Integrity;
use imbrex_sim::schedule::Schedule;
use imbrex_sim::{Arrival, Drive, DriveSpec, Engine, Fit, Observer, Options, Outcome, Unobserved};
use imbrex_trace::generators::{Generator, WorkloadSpec};
use imbrex_trace::{Recorded, Request, Source, When};

/// Sectors of a track. The bands of the Seagate drives have 20 and 16 tracks.
const TRACK: u64 = 32;
const SMALL: &str = "geometry.tracks=4000,geometry.track_sectors_od=32,geometry.track_sectors_id=32";
/// Sectors of a band, and of the data of a zone, on the small Emulated-SMR-3.
const BAND: u64 = 320;
const ZONE: u64 = 16_384;

fn journal() -> String {
    format!(
        "seagate-st5000as0011:{SMALL},geometry.stroke_tracks_od=400,geometry.stroke_tracks_id=400,cache_size=2MiB,\
         half_track_payload=8KiB,large_payload=8KiB,large_write=8KiB,map_entries=300,map_merge_every=20,\
         map_merge_tracks=1,collect_per_block=4KiB,stream_size=16KiB"
    )
}

fn in_place(map_entries: u32) -> String {
    format!(
        "seagate-st8000as0022:{SMALL},geometry.stroke_tracks_od=60,geometry.stroke_tracks_id=60,cache_size=768KiB,\
         cache_block=16KiB,cache_zone=128KiB,map_entries={map_entries},map_merge_tracks=1,stream_size=16KiB,idle=1s,\
         band_tracks=16"
    )
}

fn emulated(number: u32, words: &str) -> String {
    format!("emulated-smr-{number}:{SMALL},recording.interference_sectors=32,{words}")
}

fn zones() -> String {
    emulated(3, "band_size=160KiB,zone_size=8MiB,log_bands=4")
}

fn build(words: &str) -> Drive {
    let spec = DriveSpec::parse(words).expect("is right");
    Drive::build(&spec, &Profile::named(&spec.profile).expect("is built in")).expect("can be built")
}

fn options(depth: u32, write_cache_bytes: u64) -> Options {
    Options {
        arrival: Arrival::Closed(depth),
        schedule: Schedule::Fifo,
        write_cache_bytes,
        read_ahead_bytes: 0,
        fit: Fit::Reject,
        warmup_requests: 0,
        window: SimDuration::from_secs(1),
        check: true,
    }
}

/// Returns how many times the drive cleaned for `workload`, after a check of its invariants.
fn cleanings(drive: &str, workload: &str, write_cache_bytes: u64) -> u64 {
    let built = build(drive);
    let spec = WorkloadSpec::parse(workload).expect("is right");
    let mut source = Generator::new(spec, built.capacity_bytes() / 512).expect("is right");
    let requests = source.expected_requests().expect("is counted");
    let outcome = Engine::new(built, options(8, write_cache_bytes), &mut source, &mut Unobserved)
        .run()
        .expect("a generator does not fail");
    assert_eq!(outcome.integrity, Integrity::ok(), "{drive}: {workload}");
    assert_eq!(outcome.requests, requests, "{drive}: {workload}");
    outcome.drive.layer.self_check().unwrap_or_else(|violation| panic!("{drive}: {workload}: {violation}"));
    outcome.timing.cleaning.events()
}

/// Runs the three workloads, with a volatile cache and without. Each must clean at least as often as given, except the
/// sequential one with the volatile cache.
fn clean_many_times(drive: &str, writes: u32, random: u64, sequential: u64) {
    let workloads = [
        (format!("rw=randrw,rwmixread=10,bs=4k,number_ios={writes}"), random),
        (format!("rw=randwrite,bssplit=4k/80:64k/20,number_ios={writes},random_distribution=zipf:1.1"), random),
        // Twice over the drive, so that every sector is written.
        ("rw=write,bs=16k,number_ios=8000".into(), sequential),
    ];
    for (workload, least) in workloads {
        for write_cache_bytes in [0, 1 << 20] {
            let events = cleanings(drive, &workload, write_cache_bytes);
            println!("{events} cleanings, {write_cache_bytes} bytes of volatile cache: {drive}: {workload}");
            let is_stream = workload.starts_with("rw=write") && write_cache_bytes > 0;
            assert!(is_stream || events >= least, "{events} cleanings of {drive}: {workload}");
        }
    }
}

#[test]
fn media_cache_as_a_journal_loses_nothing_through_many_cleanings() {
    // A write in the sequential run takes a packet of three tracks of 64 sectors; the 128 tracks of the ring are
    // emptied by bands.
    clean_many_times(&journal(), 3000, 500, 100);
}

#[test]
fn media_cache_in_place_loses_nothing_through_many_cleanings() {
    clean_many_times(&in_place(150), 3000, 500, 100);
    // Limited by space instead of the map.
    clean_many_times(&in_place(5000), 3000, 500, 100);
}

#[test]
fn set_associative_on_disk_and_in_flash_loses_nothing_through_many_cleanings() {
    for number in [1, 2] {
        clean_many_times(&emulated(number, "region_size=320KiB,cache_size=1280KiB"), 3000, 500, 100);
    }
}

#[test]
fn fully_associative_loses_nothing_through_many_cleanings() {
    // Sequential writes go to whole bands, and nothing has to be cleaned.
    clean_many_times(&zones(), 20_000, 500, 0);
}

#[test]
fn log_structured_loses_nothing_through_many_cleanings() {
    let words = format!(
        "emulated-smr-3+log-structured:{SMALL},recording.interference_sectors=32,zone_size=320KiB,reserve=7%,fill=full"
    );
    clean_many_times(&words, 40_000, 500, 0);
}

/// Returns requests: all writes, then a flush, then a read after a pause that is long enough to clean everything.
fn then_a_long_pause(writes: impl Iterator<Item = Command>) -> Vec<Request> {
    let free = |command| Request { when: When::Free(SimDuration::ZERO), device: 0, command };
    let drained =
        |seconds, command| Request { when: When::Drained(SimDuration::from_secs(seconds)), device: 0, command };
    let mut requests: Vec<Request> = writes.map(free).collect();
    requests.push(drained(0, Command::flush()));
    requests.push(drained(100_000, Command::read(0, 8)));
    requests
}

/// Data that cleaning in idle time wrote and read: first LBAs and numbers of sectors.
#[derive(Default)]
struct InIdleTime {
    written: Vec<(Lba, u64)>,
    read_sectors: u64,
}

impl Observer for InIdleTime {
    fn wants_plans(&self) -> bool {
        true
    }

    fn plan(&mut self, _now: SimTime, commands: &[Command], plan: &Plan) {
        let data = plan.steps.iter().filter(|step| step.kind == Kind::Data && step.cause == Cause::Cleaning);
        for step in data.filter(|_| commands.is_empty()) {
            match step.op {
                StepOp::Read => self.read_sectors += step.sectors as u64,
                StepOp::Write => self.written.push((step.lba, step.sectors as u64)),
                _ => {}
            }
        }
    }
}

fn run(drive: &str, requests: Vec<Request>) -> (Outcome, InIdleTime) {
    let mut seen = InIdleTime::default();
    let mut source = Recorded::new(requests);
    let outcome = Engine::new(build(drive), options(8, 1 << 20), &mut source, &mut seen).run().expect("nothing fails");
    assert_eq!(outcome.integrity, Integrity::ok(), "{drive}");
    (outcome, seen)
}

/// Returns in how many pieces the `sectors` from `first` on lie; pieces that follow each other on the medium are
/// joined.
fn pieces(layer: &dyn Layer, first: u64, sectors: u64) -> usize {
    let mut found: Vec<Piece> = Vec::new();
    layer.lookup(Lba(first), Sectors(sectors), &mut found);
    let follows = |pair: &&[Piece]| match (pair[0].at, pair[1].at) {
        (Some((a, pba)), Some((b, next))) => a == b && pba + pair[0].sectors == next,
        (before, after) => before.is_none() && after.is_none(),
    };
    found.len() - found.windows(2).filter(follows).count()
}

#[test]
fn a_stream_that_breaks_off_ends_in_a_read_modify_write() {
    // Aghayev 2015 §6: a stream goes to whole bands, and at its end one band is read, modified and written.
    for (drive, band_tracks) in [(journal(), 20), (in_place(150), 16)] {
        let band = band_tracks * TRACK;
        let stream = |tracks: u64| (0..tracks).map(|track| Command::write(track * TRACK, TRACK as u32));
        // Four bands, so that all their sectors are written; then one and a half of them again.
        let requests = then_a_long_pause(stream(4 * band_tracks).chain(stream(band_tracks * 3 / 2)));
        let (outcome, seen) = run(&drive, requests);
        assert_eq!(outcome.timing.cleaning.events(), 1, "{drive}");
        let first = seen.written.iter().map(|(lba, _)| lba.0).min();
        let written: u64 = seen.written.iter().map(|(_, sectors)| sectors).sum();
        assert_eq!((first, written), (Some(band), band), "the second band is written once: {drive}");
        // The whole band from its home, and half a band from the cache.
        assert_eq!(seen.read_sectors, band + band / 2, "{drive}");
        assert_eq!(pieces(outcome.drive.layer.as_ref(), band, band), 1, "{drive}");
    }
}

#[test]
fn caches_all_over_the_surface_drain_in_idle_time() {
    let drive = zones();
    let built = build(&drive);
    let zone_count = (built.capacity_bytes() / 512).div_ceil(ZONE);
    assert!(zone_count >= 5, "{zone_count} zones");
    let bands = built.capacity_bytes() / 512 / BAND;
    // A write into every third band.
    let dirty: Vec<u64> = (0..bands).step_by(3).collect();
    let before = dirty.iter().map(|band| Command::write(band * BAND + 16, 8));
    let (outcome, seen) = run(&drive, then_a_long_pause(before));
    let mut merged: Vec<u64> = seen.written.iter().map(|(lba, _)| lba.0 / BAND).collect();
    merged.dedup();
    merged.sort_unstable();
    assert_eq!(merged, dirty, "each dirty band is merged once, and no other");
    let is_whole = |band: &u64| pieces(outcome.drive.layer.as_ref(), band * BAND, BAND) == 1;
    assert!(dirty.iter().all(is_whole), "nothing is left in a log");
}
