//! Goal: the write rule of zones holds for all requests to a host-managed drive, whatever its queue, scheduler and
//! volatile cache. Method: several requests at a time, at every queue depth, scheduler and cache size, are compared
//! with a naive list of pointers and values. Some writes are not at the pointer; these must be refused and destroy
//! nothing. Then the power is cut, and every zone must hold a prefix of its data.

use std::collections::BTreeMap;

use imbrex_device::zoned::{Condition, EmulatedZoned, Zone, ZoneAction, ZoneError, ZonedDevice, ZonedMode};
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind, Store};
use imbrex_disk::{Lba, Sectors, SimDuration, SimTime};
use imbrex_layer::verify::toy::below;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::Subject;

const SECTOR: u64 = 512;
/// Number of sequential zones that are written.
const ZONES_USED: u32 = 4;

/// Returns the contents of a sector, from the stamp of its write and its LBA.
fn sector(stamp: u64, lba: u64) -> Vec<u8> {
    [stamp.to_le_bytes(), lba.to_le_bytes()].concat().repeat(SECTOR as usize / 16)
}

/// Returns a request; the sectors of a write hold `stamp`.
fn io(stamp: u64, kind: IoKind, lba: u64, sectors: u64) -> Io {
    let buffer = match kind {
        IoKind::Write { .. } => (lba..lba + sectors).flat_map(|lba| sector(stamp, lba)).collect(),
        _ => Vec::new(),
    };
    Io { kind, offset: lba * SECTOR, length: sectors * SECTOR, buffer }
}

/// A naive model in order of submission: pointers, and a stamp for every sector.
struct Naive {
    mode: ZonedMode,
    pointers: BTreeMap<u32, u64>,
    stamps: BTreeMap<u64, u64>,
    refused: u64,
    reset: u64,
    ignored: u64,
}

impl Naive {
    fn new(mode: ZonedMode) -> Naive {
        let (pointers, stamps) = (BTreeMap::new(), BTreeMap::new());
        Naive { mode, pointers, stamps, refused: 0, reset: 0, ignored: 0 }
    }

    fn pointer(&self, zone: u32) -> u64 {
        self.pointers.get(&zone).copied().unwrap_or(0)
    }

    /// Returns whether a write is allowed; if so, applies it.
    fn write(&mut self, zone: u32, at: u64, sectors: u64, stamp: u64) -> bool {
        let is_right = at == self.pointer(zone) && at + sectors <= self.mode.zone_sectors.0;
        if !is_right {
            self.refused += 1;
            return false;
        }
        let first = self.mode.start(zone).0 + at;
        self.stamps.extend((first..first + sectors).map(|lba| (lba, stamp)));
        self.pointers.insert(zone, at + sectors);
        true
    }

    fn trim(&mut self, lba: u64, sectors: u64) {
        let (size, end) = (self.mode.zone_sectors.0, lba + sectors);
        let sequential = u64::from(self.mode.conventional_zones) * size;
        let mut is_partial = false;
        for zone in lba / size..end.div_ceil(size) {
            let (start, zone_end) = (zone * size, (zone + 1) * size);
            if start < sequential {
                continue;
            }
            if lba <= start && zone_end <= end {
                self.reset += u64::from(self.pointers.remove(&(zone as u32)).is_some_and(|pointer| pointer > 0));
                self.stamps.retain(|lba, _| !(start..zone_end).contains(lba));
            } else {
                is_partial = true;
            }
        }
        self.ignored += u64::from(is_partial);
    }

    fn bytes(&self, lba: u64, sectors: u64) -> Vec<u8> {
        let of = |lba| self.stamps.get(&lba).map_or(vec![0; SECTOR as usize], |&stamp| sector(stamp, lba));
        (lba..lba + sectors).flat_map(of).collect()
    }
}

fn drive(subject: &Subject) -> EmulatedDrive {
    EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it")
}

/// Returns zoned subjects without limits, so that only the pointer decides.
fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    let zoned = common::subjects_of("zoned").into_iter().filter(|subject| !subject.what.contains("open_zones"));
    for subject in zoned {
        for schedule in ["fifo", "elevator", "sptf"] {
            for cache_bytes in [0, 8 << 10, 1 << 20] {
                subjects.push(subject.with("host.schedule", schedule).with_cache(cache_bytes));
            }
        }
    }
    subjects
}

struct Run {
    drive: EmulatedDrive,
    naive: Naive,
    random: Xoshiro256StarStar,
    /// Bytes that each read in flight must return.
    expected: BTreeMap<u64, Vec<u8>>,
    stamp: u64,
    what: String,
}

impl Run {
    fn new(subject: &Subject, seed: u64) -> Run {
        let drive = drive(subject);
        let naive = Naive::new(drive.zoned_mode().expect("it has zones"));
        let random = Xoshiro256StarStar::seed_from_u64(seed);
        Run { drive, naive, random, expected: BTreeMap::new(), stamp: 1, what: subject.what.clone() }
    }

    fn take_answers(&mut self) {
        for completion in self.drive.completions() {
            let what = &self.what;
            assert!(completion.outcome.is_ok(), "{what}: {completion:?}");
            if let Some(expected) = self.expected.remove(&completion.number) {
                assert!(completion.buffer == expected, "{what}: request {} reads wrong bytes", completion.number);
            }
        }
    }

    fn any_zone(&mut self) -> u32 {
        self.naive.mode.conventional_zones + below(&mut self.random, u64::from(ZONES_USED)) as u32
    }

    fn request(&mut self) {
        let zone = self.any_zone();
        let (start, size) = (self.naive.mode.start(zone).0, self.naive.mode.zone_sectors.0);
        let stamp = self.stamp;
        self.stamp += 1;
        let now = self.drive.now();
        let sectors = 1 + below(&mut self.random, 12);
        match below(&mut self.random, 32) {
            drawn @ 0..=22 => {
                // A full zone has no pointer: a write to any of its sectors must be refused.
                let pointer = self.naive.pointer(zone).min(size - 1);
                // One write in five is not at the pointer.
                let at = if drawn > 17 { below(&mut self.random, size) } else { pointer };
                let kind = IoKind::Write { fua: drawn == 0 };
                let outcome = self.drive.submit(now, io(stamp, kind, start + at, sectors));
                let is_right = self.naive.write(zone, at, sectors, stamp);
                let is_refused = matches!(outcome, Err(DeviceError::Zone(_)));
                let is_as_expected = if is_right { outcome.is_ok() } else { is_refused };
                assert!(is_as_expected, "{}: right is {is_right}: {outcome:?}", self.what);
            }
            23..=27 => {
                // Earlier writes are in flight. The read might see later ones, so it must complete before any more
                // are submitted.
                let at = below(&mut self.random, size - sectors);
                let read = io(stamp, IoKind::Read, start + at, sectors);
                let number = self.drive.submit(now, read).expect("zones can be read");
                self.expected.insert(number, self.naive.bytes(start + at, sectors));
                self.finish();
            }
            28 => {
                self.drive.submit(now, io(stamp, IoKind::Flush, 0, 0)).expect("it is whole");
            }
            29 => {
                self.drive.submit(now, io(stamp, IoKind::Trim, start, size)).expect("it is whole");
                self.naive.trim(start, size);
            }
            30 => {
                let lba = start + below(&mut self.random, size);
                let sectors = 1 + below(&mut self.random, size);
                self.drive.submit(now, io(stamp, IoKind::Trim, lba, sectors)).expect("it is whole");
                self.naive.trim(lba, sectors);
            }
            _ => {
                self.drive.advance(now + SimDuration(below(&mut self.random, 40_000_000)));
            }
        }
    }

    fn work(&mut self, depth: usize, requests: u32) {
        for _ in 0..requests {
            self.request();
            while self.drive.outstanding() >= depth {
                self.drive.step(SimTime(u64::MAX));
            }
            self.take_answers();
        }
        self.finish();
    }

    fn finish(&mut self) {
        while self.drive.outstanding() > 0 {
            self.drive.step(SimTime(u64::MAX));
        }
        self.take_answers();
    }

    fn compare(&mut self) {
        let what = self.what.clone();
        for zone in self.naive.mode.conventional_zones..self.naive.mode.conventional_zones + ZONES_USED {
            let (start, size) = (self.naive.mode.start(zone).0, self.naive.mode.zone_sectors.0);
            let mut bytes = vec![9; (size * SECTOR) as usize];
            self.drive.read(start * SECTOR, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(bytes == self.naive.bytes(start, size), "{what}: zone {zone} differs");
            let mut reported: Vec<Zone> = Vec::new();
            self.drive.report_zones(zone, 1, &mut reported);
            assert_eq!(reported[0].pointer.0, self.naive.pointer(zone), "{what}: {:?}", reported[0]);
        }
        let counters = self.drive.zone_counters();
        let counted = (counters.zones_reset_by_trim, counters.trims_ignored);
        assert_eq!(counted, (self.naive.reset, self.naive.ignored), "{what}");
    }
}

#[test]
fn writes_meet_the_pointer_in_order_of_arrival() {
    let (mut refused, mut reset) = (0, 0);
    for (number, subject) in subjects().iter().enumerate() {
        for depth in [1, 8] {
            let mut run = Run::new(subject, number as u64);
            run.what = format!("{}, depth {depth}", subject.what);
            for _ in 0..4 {
                run.work(depth, 100);
                run.compare();
            }
            (refused, reset) = (refused + run.naive.refused, reset + run.naive.reset);
        }
    }
    assert!(refused > 1000 && reset > 100, "{refused} writes refused, {reset} zones reset");
}

#[test]
fn a_power_cut_leaves_a_prefix_of_each_zone() {
    let mut lost = 0;
    for (number, subject) in subjects().iter().enumerate() {
        let mut run = Run::new(subject, 100 + number as u64);
        run.work(8, 60);
        let Run { drive, naive, what, .. } = run;
        let medium = drive.power_cut();
        let mut drive =
            EmulatedDrive::new(Store::open(medium, &what).unwrap_or_else(|error| panic!("{what}: {error}")));
        for zone in naive.mode.conventional_zones..naive.mode.conventional_zones + ZONES_USED {
            let mut reported = Vec::new();
            drive.report_zones(zone, 1, &mut reported);
            let pointer = reported[0].pointer.0;
            assert!(pointer <= naive.pointer(zone), "{what}: {:?}", reported[0]);
            lost += naive.pointer(zone) - pointer;
            let start = naive.mode.start(zone).0;
            let mut bytes = vec![9; (naive.mode.zone_sectors.0 * SECTOR) as usize];
            drive.read(start * SECTOR, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (before, after) = bytes.split_at((pointer * SECTOR) as usize);
            assert!(before == naive.bytes(start, pointer), "{what}: zone {zone} is no prefix");
            assert!(after.iter().all(|&byte| byte == 0), "{what}: past the pointer of zone {zone} are no zeros");
        }
    }
    assert!(lost > 0, "nothing was ever volatile");
}

#[test]
fn a_write_off_the_pointer_destroys_nothing() {
    let subject = common::subjects_of("zoned").into_iter().find(|subject| subject.what.contains("shingled"));
    let mut drive = drive(&subject.unwrap_or_else(|| common::first_subject_of("zoned")));
    let zone_sectors = drive.zoned_mode().expect("it has zones").zone_sectors.0;
    let all: Vec<u8> = (0..zone_sectors).flat_map(|lba| sector(1, lba)).collect();
    drive.write(0, &all, true).expect("at the pointer");
    for lba in [0, 1, zone_sectors / 2, zone_sectors - 1] {
        let outcome = drive.write(lba * SECTOR, &sector(2, lba), false);
        let Err(DeviceError::Zone(error)) = outcome else { panic!("{outcome:?}") };
        assert!(error.to_string().starts_with("zone 0 is full"), "{error}");
    }
    let mut read = vec![0; all.len()];
    drive.read(0, &mut read).expect("it was written");
    assert!(read == all, "what was refused changed something");
    let over_the_end = drive.write((2 * zone_sectors - 1) * SECTOR, &[3; 1024], false);
    assert!(matches!(over_the_end, Err(DeviceError::Zone(ZoneError::NotAtPointer { .. }))), "{over_the_end:?}");
}

#[test]
fn conventional_zones_are_written_and_trimmed_as_usual() {
    let subjects = common::subjects_of("zoned");
    let subject = subjects.iter().find(|subject| subject.what.contains("conventional_zones")).expect("there is one");
    let mut drive = drive(&subject.with_cache(64 << 10));
    let mode = drive.zoned_mode().expect("it has zones");
    let border = mode.zone_sectors.0;
    for stamp in 1..4 {
        let bytes = [sector(stamp, border - 1), sector(stamp, border)].concat();
        drive.write((border - 1) * SECTOR, &bytes, false).expect("over the border of two conventional zones");
    }
    // All conventional zones, one sequential zone, and part of the next.
    let zones = u64::from(mode.conventional_zones) + 1;
    drive.trim(0, (zones * mode.zone_sectors.0 + 3) * SECTOR).expect("it is whole");
    let mut read = vec![0; 2 * SECTOR as usize];
    drive.read((border - 1) * SECTOR, &mut read).expect("it was written");
    assert_eq!(read, [sector(3, border - 1), sector(3, border)].concat(), "its layer keeps no trims");
    assert_eq!(drive.zone_counters().trims_ignored, 1);
}

/// Goal: management of a zone and writes to the zone do not interfere. Method: management commands while writes are
/// in flight and in the cache.
#[test]
fn zones_are_managed_after_what_is_on_its_way() {
    let subject = common::first_subject_of("zoned").with("host.schedule", "elevator").with_cache(64 << 10);
    let mut drive = drive(&subject);
    let now = drive.now();
    let write = |drive: &mut EmulatedDrive, stamp, lba, sectors| {
        drive.submit(now, io(stamp, IoKind::Write { fua: false }, lba, sectors)).expect("at the pointer");
    };
    write(&mut drive, 1, 0, 8);
    write(&mut drive, 2, 8, 8);
    drive.change_zone(ZoneAction::SetPointer(0, Sectors(12))).expect("it goes back");
    assert_eq!(drive.outstanding(), 0, "the writes were on their way first");
    write(&mut drive, 3, 12, 2);
    drive.change_zone(ZoneAction::Reset(0)).expect("it can be");
    write(&mut drive, 4, 0, 3);
    drive.change_zone(ZoneAction::Finish(0)).expect("it can be");
    drive.completions().for_each(|completion| assert!(completion.outcome.is_ok(), "{completion:?}"));
    let mut view = EmulatedZoned::new(drive).expect("it has zones");
    assert_eq!(view.zone(0).expect("it is there").condition, Condition::Full);
    let mut read = vec![9; 20 * SECTOR as usize];
    view.read(Lba(0), &mut read).expect("it is there");
    let expected: Vec<u8> = (0..3).flat_map(|lba| sector(4, lba)).chain(vec![0; 17 * SECTOR as usize]).collect();
    assert!(read == expected, "what was given up came back");
    // A finish is durable, and so is the data written before it.
    let medium = view.into_drive().power_cut();
    let mut drive = EmulatedDrive::new(Store::open(medium, "image").expect("it opens"));
    drive.read(0, &mut read).expect("it is there");
    assert!(read == expected, "a finish lost what it found");
    assert!(drive.now() > SimTime::ZERO);
}
