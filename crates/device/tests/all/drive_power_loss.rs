//! Goal: durable acknowledged data survives the death of the process and a power cut, with a volatile cache or
//! without. A failed medium loses only data that was not acknowledged as durable. Method: random requests, several at
//! a time, on every layer. The drive is dropped at a random point, and its medium is cut and reopened. Every sector
//! is compared with the values written since the last flush that covers it.

use std::collections::BTreeMap;

use imbrex_device::image::{Bounds, Header};
use imbrex_device::media::crashing::Crashing;
use imbrex_device::media::faulty::{Failure, Faulty, Pages, When};
use imbrex_device::media::memory::Memory;
use imbrex_device::verify::values::{fill, version_in};
use imbrex_device::{Completion, DeviceError, EmulatedDrive, Io, IoKind, Media, Store};
use imbrex_disk::{SimDuration, SimTime};
use imbrex_layer::verify::toy::below;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::{Shared, Subject};

const SECTOR: usize = 512;

/// The values written to a sector, oldest first.
#[derive(Clone, Debug)]
struct History {
    given: Vec<u64>,
    /// Index of the newest acknowledged value.
    answered: usize,
    /// Index of the newest value that is certainly durable.
    durable: usize,
}

impl History {
    fn allows(&self, version: u64) -> bool {
        self.given[self.durable..].contains(&version)
    }
}

/// A request in flight.
#[derive(Clone, Debug)]
struct Flying {
    kind: IoKind,
    lba: u64,
    sectors: u64,
    /// For a flush: index of the newest value of each sector that the flush covers.
    covers: Vec<usize>,
}

/// A host that records the values written and the promises of the drive.
struct Host {
    random: Xoshiro256StarStar,
    sectors: Vec<History>,
    /// Requests in flight, by the drive's numbers.
    flying: BTreeMap<u64, Flying>,
    keeps_trims: bool,
    /// Whether acknowledged data becomes durable only through a flush or FUA.
    is_volatile: bool,
    /// Version that the next request writes.
    next_version: u64,
}

impl Host {
    fn new(drive: &EmulatedDrive, seed: u64) -> Host {
        let history = History { given: vec![0], answered: 0, durable: 0 };
        Host {
            random: Xoshiro256StarStar::seed_from_u64(seed),
            sectors: vec![history; drive.capacity_bytes() as usize / SECTOR],
            flying: BTreeMap::new(),
            keeps_trims: drive.drive().layer.keeps_trims(),
            is_volatile: drive.drive().host.write_cache_bytes > 0,
            next_version: 1,
        }
    }

    fn range(flying: &Flying) -> std::ops::Range<usize> {
        flying.lba as usize..(flying.lba + flying.sectors) as usize
    }

    /// Draws a request that overlaps no request in flight.
    fn draw(&mut self) -> Option<(Io, Flying)> {
        let sectors = 1 + below(&mut self.random, 20);
        let lba = below(&mut self.random, self.sectors.len() as u64 - sectors);
        let kind = match below(&mut self.random, 16) {
            0 => IoKind::Flush,
            1 => IoKind::Trim,
            2..=4 => IoKind::Read,
            5 => IoKind::Write { fua: true },
            _ => IoKind::Write { fua: false },
        };
        let is_free = |flying: &Flying| flying.lba + flying.sectors <= lba || lba + sectors <= flying.lba;
        if kind != IoKind::Flush && !self.flying.values().all(is_free) {
            return None;
        }
        let version = self.next_version;
        self.next_version += 1;
        let mut flying = Flying { kind, lba, sectors, covers: Vec::new() };
        let mut buffer = Vec::new();
        match kind {
            IoKind::Write { .. } => {
                buffer.resize(sectors as usize * SECTOR, 0);
                fill(&mut buffer, lba, version, SECTOR);
                self.sectors[Host::range(&flying)].iter_mut().for_each(|history| history.given.push(version));
            }
            IoKind::Trim if self.keeps_trims => {
                self.sectors[Host::range(&flying)].iter_mut().for_each(|history| history.given.push(0));
            }
            IoKind::Flush => {
                flying = Flying { lba: 0, sectors: 0, ..flying };
                flying.covers = self.sectors.iter().map(|history| history.answered).collect();
            }
            // A layer that does not keep trims still reads the latest value, from its cache or not.
            IoKind::Read | IoKind::Trim => {}
        }
        Some((Io { kind, offset: lba * SECTOR as u64, length: sectors * SECTOR as u64, buffer }, flying))
    }

    /// Records an answer, and returns whether it was an error.
    fn take(&mut self, completion: &Completion, what: &str) -> bool {
        let flying = self.flying.remove(&completion.number).expect("every request is answered once");
        if completion.outcome.is_err() {
            return true;
        }
        let range = Host::range(&flying);
        match flying.kind {
            IoKind::Read => {
                for (lba, bytes) in range.zip(completion.buffer.chunks_exact(SECTOR)) {
                    let version = version_in(bytes, lba as u64).unwrap_or_else(|error| panic!("{what}: {error}"));
                    let history = &self.sectors[lba];
                    let is_newest = history.given.last() == Some(&version);
                    assert!(is_newest, "{what}: LBA {lba} reads as {version}: {history:?}");
                }
            }
            kind @ (IoKind::Write { .. } | IoKind::Trim) => {
                for history in &mut self.sectors[range] {
                    history.answered = history.given.len() - 1;
                    if kind == (IoKind::Write { fua: true }) || !self.is_volatile {
                        history.durable = history.answered;
                    }
                }
            }
            IoKind::Flush => {
                for (history, covered) in self.sectors.iter_mut().zip(flying.covers) {
                    history.durable = history.durable.max(covered);
                }
            }
        }
        false
    }

    /// Submits requests and lets the drive work, for `rounds` rounds. Returns whether a request failed.
    fn work(&mut self, drive: &mut EmulatedDrive, rounds: u64, what: &str) -> bool {
        let mut failed = false;
        for _ in 0..rounds {
            for _ in 0..below(&mut self.random, 4) {
                if let Some((io, flying)) = self.draw() {
                    let Ok(number) = drive.submit(drive.now(), io) else { return true };
                    self.flying.insert(number, flying);
                }
            }
            if below(&mut self.random, 8) == 0 {
                // Idle time, for background work and write-back of the cache.
                drive.advance(SimTime(drive.now().0) + SimDuration::from_secs(1 + below(&mut self.random, 5)));
            } else {
                for _ in 0..below(&mut self.random, 6) {
                    drive.step(drive.now());
                }
            }
            let completions: Vec<Completion> = drive.completions().collect();
            for completion in &completions {
                failed |= self.take(completion, what);
            }
            if failed {
                return true;
            }
        }
        false
    }

    /// Reads all sectors and checks them. The values read become the known values.
    fn compare(&mut self, drive: &mut EmulatedDrive, what: &str) {
        self.flying.clear();
        let mut bytes = vec![0; self.sectors.len() * SECTOR];
        drive.read(0, &mut bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
        for (lba, (history, bytes)) in self.sectors.iter_mut().zip(bytes.chunks_exact(SECTOR)).enumerate() {
            let version = version_in(bytes, lba as u64).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(history.allows(version), "{what}: LBA {lba} reads as {version}: {history:?}");
            *history = History { given: vec![version], answered: 0, durable: 0 };
        }
    }
}

/// Returns the header of the subject's drive with a volatile cache of `bytes`.
fn with_cache(subject: &Subject, bytes: u64) -> Header {
    let mut header = subject.header.clone();
    header.profile_overrides.push(("host.write_cache_bytes".into(), bytes.to_string()));
    header
}

fn open(medium: impl Media + 'static, what: &str) -> Result<EmulatedDrive, DeviceError> {
    open_within(Bounds::default(), medium, what)
}

fn open_within(bounds: Bounds, medium: impl Media + 'static, what: &str) -> Result<EmulatedDrive, DeviceError> {
    let medium: Box<dyn Media> = Box::new(medium);
    Store::open_bounded(medium, what, bounds, |_| {}).map(EmulatedDrive::new)
}

fn image_of(header: Header) -> Memory {
    let (_, store) = Store::create(Memory::new(), header).expect("memory takes it");
    store.space().media().clone()
}

/// Returns the medium after a cut: all data, as when only the process died, or a random subset of the unflushed
/// blocks.
fn cut(medium: &Crashing, random: &mut impl RngCore) -> Memory {
    match below(random, 4) {
        0 => medium.whole().clone(),
        1 => medium.cut(|_, _| false),
        _ => {
            let eighths = [1, 4, 7][below(random, 3) as usize];
            medium.cut(|_, _| below(random, 8) < eighths)
        }
    }
}

fn seeds() -> u64 {
    std::env::var("IMBREX_SEEDS").map_or(1, |seeds| seeds.parse().expect("IMBREX_SEEDS is a number"))
}

/// Runs a drive on a medium whose power is cut repeatedly.
fn killed_again_and_again(subject: &Subject, seed: u64, cache_bytes: u64, bounds: Bounds) {
    let what = format!("{}, cache of {cache_bytes}, seed {seed}, {bounds:?}", subject.what);
    let mut random = Xoshiro256StarStar::seed_from_u64(seed ^ 0xd1e);
    let mut image = image_of(with_cache(subject, cache_bytes));
    let mut host: Option<Host> = None;
    for life in 0..8 {
        let medium = Crashing::new(image, SECTOR as u32);
        // In every other life, flushes wait for a disk.
        let medium = Shared::new(if life % 2 == 1 { medium.with_waiting_flushes() } else { medium });
        let opened = open_within(bounds, medium.clone(), &what);
        let mut drive = opened.unwrap_or_else(|error| panic!("{what}, life {life}: {error}"));
        let host = host.get_or_insert_with(|| Host::new(&drive, seed));
        host.compare(&mut drive, &format!("{what}, life {life}"));
        let failed = host.work(&mut drive, 1 + below(&mut random, 40), &what);
        assert!(!failed, "{what}, life {life}: a whole medium fails");
        drop(drive);
        image = medium.with(|medium| cut(medium, &mut random));
    }
}

#[test]
fn killed_drives_keep_what_they_promised() {
    for subject in common::drive_managed_subjects() {
        for seed in 0..seeds() {
            for (offset, bounds) in [(0, Bounds::default()), (2000, Bounds::SMALLEST)] {
                killed_again_and_again(&subject, seed + offset, 16 << 10, bounds);
                killed_again_and_again(&subject, seed + offset + 1000, 0, bounds);
            }
            // A volatile cache of one sector is always full.
            killed_again_and_again(&subject, seed + 4000, SECTOR as u64, Bounds::SMALLEST);
        }
    }
}

/// Goal: without a volatile cache every answer is durable, including that of a trim. Method: the power is cut after
/// every request, and no unflushed block survives.
#[test]
fn without_a_volatile_cache_each_answer_is_durable() {
    let mut trims_kept = 0;
    for subject in common::drive_managed_subjects() {
        let what = &subject.what;
        let mut image = image_of(with_cache(&subject, 0));
        let mut expected = vec![0u8; 64];
        for (step, (first, sectors, value)) in
            [(0, 64, Some(1)), (8, 16, None), (4, 8, Some(2)), (40, 1, None), (0, 64, None)].into_iter().enumerate()
        {
            let medium = Shared::new(Crashing::new(image, SECTOR as u32).with_waiting_flushes());
            let mut drive = open(medium.clone(), what).unwrap_or_else(|error| panic!("{what}: {error}"));
            let (offset, bytes) = ((first * SECTOR) as u64, sectors * SECTOR);
            match value {
                Some(value) => drive.write(offset, &vec![value; bytes], false),
                None => drive.trim(offset, bytes as u64),
            }
            .unwrap_or_else(|error| panic!("{what}, step {step}: {error}"));
            if value.is_some() || drive.drive().layer.keeps_trims() {
                expected[first..first + sectors].fill(value.unwrap_or(0));
                trims_kept += u32::from(value.is_none());
            }
            drop(drive);
            image = medium.with(|medium| medium.cut(|_, _| false));
            let mut read = vec![9; 64 * SECTOR];
            let mut drive = open(image.clone(), what).unwrap_or_else(|error| panic!("{what}, step {step}: {error}"));
            drive.read(0, &mut read).unwrap_or_else(|error| panic!("{what}, step {step}: {error}"));
            let found: Vec<u8> = read.chunks(SECTOR).map(|sector| sector[0]).collect();
            assert_eq!(found, expected, "{what}, step {step}");
        }
    }
    assert!(trims_kept > 0 || std::env::var("IMBREX_LAYER").is_ok(), "no layer keeps trims");
}

#[test]
fn a_flush_that_promises_nothing_is_caught() {
    // The record of the host is falsified: acknowledged values count as durable. Some cut must then lose one.
    let subject = common::subjects_of("set-associative").swap_remove(0);
    let lost = (0..50).any(|seed| {
        let medium = Shared::new(Crashing::new(image_of(with_cache(&subject, 16 << 10)), SECTOR as u32));
        let mut drive = open(medium.clone(), "falsified").expect("it is whole");
        let mut host = Host::new(&drive, seed);
        host.work(&mut drive, 30, "falsified");
        host.sectors.iter_mut().for_each(|history| history.durable = history.answered);
        drop(drive);
        let image = medium.with(|medium| medium.whole().clone());
        let mut drive = open(image, "falsified").expect("it is whole");
        let mut bytes = vec![0; host.sectors.len() * SECTOR];
        drive.read(0, &mut bytes).expect("memory reads");
        let allowed = |(history, bytes): (&History, &[u8])| {
            history.allows(u64::from_le_bytes(bytes[..8].try_into().expect("eight")))
        };
        !host.sectors.iter().zip(bytes.chunks_exact(SECTOR)).all(allowed)
    });
    assert!(lost, "the volatile cache never held anything");
}

#[test]
fn reads_see_what_the_cache_holds() {
    let subject = common::subjects_of("conventional").swap_remove(0);
    let medium = Shared::new(Crashing::new(image_of(with_cache(&subject, 16 << 10)), SECTOR as u32));
    let mut drive = open(medium.clone(), "cache").expect("it is whole");
    let now = drive.now();
    let write = IoKind::Write { fua: false };
    let write = Io { kind: write, offset: 8 * 512, length: 1024, buffer: vec![9; 1024] };
    let read = Io { kind: IoKind::Read, offset: 7 * 512, length: 2048, buffer: Vec::new() };
    drive.submit(now, write).expect("it fits");
    let number = drive.submit(now, read).expect("it fits");
    let (mut was_dirty, mut read) = (false, Vec::new());
    while read.is_empty() {
        drive.step(SimTime(u64::MAX));
        was_dirty |= drive.dirty().0 == 2;
        let completions: Vec<Completion> = drive.completions().collect();
        read =
            completions.into_iter().filter(|completion| completion.number == number).map(|read| read.buffer).collect();
    }
    assert!(was_dirty, "the write went to the medium at once");
    assert_eq!(read[0], [[0; 512].as_slice(), &[9; 1024], &[0; 512]].concat());
    drive.flush().expect("it is whole");
    assert_eq!(drive.dirty().0, 0);
    drop(drive);
    let mut drive = open(medium.with(|medium| medium.cut(|_, _| false)), "cache").expect("it is whole");
    let mut read = [0; 1024];
    drive.read(8 * 512, &mut read).expect("it is whole");
    assert_eq!(read, [9; 1024]);
}

#[test]
fn a_read_error_is_that_reads_alone() {
    for subject in common::drive_managed_subjects() {
        let what = &subject.what;
        let medium = Shared::new(Faulty::new(image_of(with_cache(&subject, 0)), 1));
        let mut drive = open(medium.clone(), what).expect("nothing fails yet");
        for lba in (0..64).step_by(8) {
            drive.write(lba * 512, &[lba as u8 + 1; 8 * 512], false).expect("nothing fails yet");
        }
        medium.with(|medium| medium.plan(Failure::ReadError, When::Operation(0)));
        let mut read = [0; 16 * 512];
        let error = drive.read(16 * 512, &mut read).expect_err("the medium fails").to_string();
        assert!(error.contains("reading ") && error.contains("planned read error"), "{what}: {error}");
        drive.read(16 * 512, &mut read).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(read[..8 * 512] == [17; 8 * 512] && read[8 * 512..] == [25; 8 * 512], "{what}");
        drive.write(0, &[77; 512], true).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
}

#[test]
fn a_failed_write_stops_the_drive_and_loses_nothing_promised() {
    let mut stopped = 0;
    for subject in common::drive_managed_subjects() {
        for (number, failure) in [Failure::WriteError, Failure::ShortWrite, Failure::NoSpace].into_iter().enumerate() {
            for at in [0, 7, 40, 150] {
                let what = format!("{}, {failure:?} at write {at}", subject.what);
                let disk = Shared::new(image_of(with_cache(&subject, if number == 1 { 0 } else { 16 << 10 })));
                let medium = Shared::new(Faulty::new(disk.clone(), 1));
                let mut drive = open(medium.clone(), &what).expect("nothing fails yet");
                let mut host = Host::new(&drive, at + number as u64);
                medium.with(|medium| medium.plan(failure, When::From(at)));
                if !host.work(&mut drive, 150, &what) && drive.store_mut().stopped().is_none() {
                    continue;
                }
                stopped += 1;
                let error = drive.flush().expect_err("it has stopped").to_string();
                assert!(error.starts_with("the drive has stopped: ") && error.contains("open its image"), "{error}");
                is_stopped_and_reads(&mut drive, &host, &what);
                drop(drive);
                let mut drive = open(disk, &what).unwrap_or_else(|error| panic!("{what}: {error}"));
                host.compare(&mut drive, &what);
            }
        }
    }
    assert!(stopped > 100 || std::env::var("IMBREX_LAYER").is_ok(), "only {stopped} drives stopped");
}

/// Checks that every request except a read is refused, and that reads return allowed values.
fn is_stopped_and_reads(drive: &mut EmulatedDrive, host: &Host, what: &str) {
    for kind in [IoKind::Write { fua: false }, IoKind::Write { fua: true }, IoKind::Trim, IoKind::Flush] {
        let (length, buffer) = match kind {
            IoKind::Flush => (0, Vec::new()),
            IoKind::Trim => (512, Vec::new()),
            _ => (512, vec![9; 512]),
        };
        let refused = drive.serve(Io { kind, offset: 0, length, buffer });
        assert!(matches!(refused, Err(DeviceError::Stopped(_))), "{what}: {kind:?}: {refused:?}");
    }
    let mut sector = [0; SECTOR];
    for (lba, history) in host.sectors.iter().enumerate() {
        drive.read((lba * SECTOR) as u64, &mut sector).unwrap_or_else(|error| panic!("{what}: LBA {lba}: {error}"));
        let version = version_in(&sector, lba as u64).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(history.allows(version), "{what}: LBA {lba} reads as {version}: {history:?}");
    }
    drive.advance(drive.now() + SimDuration::from_secs(5));
    let ended = drive.shut_down();
    assert!(matches!(ended, Err(DeviceError::Stopped(_))), "{what}: {ended:?}");
}

/// Makes a flush of the drive fail, reopens the drive, continues, and cuts the power repeatedly. Returns whether the
/// flush was reached.
fn survives_a_failed_flush(subject: &Subject, cache_bytes: u64, pages: Pages, at: u64) -> bool {
    let what = format!("{}, cache of {cache_bytes}, flush {at} fails, pages {pages:?}", subject.what);
    let disk = Shared::new(Faulty::new(image_of(with_cache(subject, cache_bytes)), at));
    let mut drive = open(disk.clone(), &what).expect("nothing fails yet");
    let mut host = Host::new(&drive, at);
    disk.with(|disk| disk.plan(Failure::FlushError(pages), When::Operation(at)));
    let failed = host.work(&mut drive, 150, &what);
    if !failed && drive.store_mut().stopped().is_none() {
        return false;
    }
    if at.is_multiple_of(2) {
        let writes = disk.with(|disk| disk.writes());
        is_stopped_and_reads(&mut drive, &host, &what);
        assert_eq!(disk.with(|disk| disk.writes()), writes, "{what}: something was written after the flush had failed");
    }
    drop(drive);
    let mut random = Xoshiro256StarStar::seed_from_u64(at);
    for life in 0..4 {
        let what = format!("{what}, life {life}");
        let mut drive = open(disk.clone(), &what).unwrap_or_else(|error| panic!("{what}: {error}"));
        host.compare(&mut drive, &what);
        // Data made durable only by the opening also counts.
        let rounds = if life == 0 { at % 3 * 10 } else { 20 };
        assert!(!host.work(&mut drive, rounds, &what), "{what}: a whole medium fails");
        drop(drive);
        let eighths = [0, 1, 4, 7][below(&mut random, 4) as usize];
        disk.with(|disk| disk.power_cut(|_| below(&mut random, 8) < eighths)).expect("memory takes it");
    }
    let mut drive = open(disk, &what).unwrap_or_else(|error| panic!("{what}, at the end: {error}"));
    host.compare(&mut drive, &what);
    true
}

#[test]
fn after_a_failed_flush_a_drive_reads_and_does_nothing_else() {
    let (mut stopped, mut went_well) = (0, 0);
    for subject in common::drive_managed_subjects() {
        for (pages, cache_bytes) in
            [(Pages::Kept, 0), (Pages::Dropped, 0), (Pages::Kept, 16 << 10), (Pages::Dropped, 16 << 10)]
        {
            for at in [0, 1, 6, 15, 40] {
                let came = survives_a_failed_flush(&subject, cache_bytes, pages, at);
                (stopped, went_well) = (stopped + u32::from(came), went_well + u32::from(!came));
            }
        }
    }
    println!("{stopped} drives whose flush failed, {went_well} that ended before");
    assert!(stopped > 200 || std::env::var("IMBREX_LAYER").is_ok(), "only {stopped} flushes failed");
}

#[test]
fn a_stopped_drive_whose_medium_cannot_be_read_is_asked_again() {
    let subject = common::first_subject_of("set-associative");
    let disk = Shared::new(Faulty::new(image_of(with_cache(&subject, 0)), 1));
    let mut drive = open(disk.clone(), "image").expect("nothing fails yet");
    drive.write(0, &[7; SECTOR], false).expect("nothing fails yet");
    disk.with(|disk| disk.plan(Failure::FlushError(Pages::Dropped), When::Operation(0)));
    drive.flush().expect_err("it was planned");
    disk.with(|disk| disk.plan(Failure::ReadError, When::Operation(0)));
    let mut read = [0; SECTOR];
    let error = drive.read(0, &mut read).expect_err("it was planned").to_string();
    assert!(error.contains("planned read error"), "{error}");
    drive.read(0, &mut read).expect("it can be read again");
    assert_eq!(read, [7; SECTOR]);
    // A power cut loses the data in memory, but keeps the medium.
    let mut drive = open(drive.power_cut(), "image").expect("it is whole");
    drive.read(0, &mut read).expect("it was durable");
    assert_eq!(read, [7; SECTOR]);
}
