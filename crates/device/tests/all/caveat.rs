//! Goal: a caveat disk damages exactly the sectors of Singh 2014 §3.2, and never forgets the damage, with a write cache
//! or without. Method: random writes are compared with a list of sectors that follows the paper's formula; the drive is
//! killed, its power is cut, and it is reopened.

use std::collections::BTreeSet;

use imbrex_device::caveat::{CaveatDevice, EmulatedCaveat};
use imbrex_device::drive::{Making, create_file, header_of};
use imbrex_device::image::Header;
use imbrex_device::media::crashing::Crashing;
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind, Media, Store};
use imbrex_disk::{Lba, Profile, Sectors, SimDuration, SimTime};
use imbrex_layer::verify::toy::below;
use imbrex_sim::{Drive, DriveSpec};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common::Shared;

const SECTOR: usize = 4096;

/// Sizes of the write cache to test: none, one that is full all the time and that long writes pass by, one that is never
/// full.
const CACHES: [u64; 3] = [0, 24 * SECTOR as u64, 8 << 20];
/// Pairs of DNOR and DID to test.
const DISTANCES: [(u64, u64); 5] = [(6, 16), (0, 5), (5, 5), (0, 0), (30, 200)];

/// Returns the header of a disk of 4 MiB with the given DNOR and DID, without a write cache.
fn header(no_overlap: u64, isolation: u64) -> Header {
    header_with_cache(no_overlap, isolation, 0)
}

fn header_with_cache(no_overlap: u64, isolation: u64, cache: u64) -> Header {
    let words = format!(
        "caveat-1g:geometry.tracks=4,recording.no_overlap_sectors={no_overlap},recording.isolation_sectors={isolation},\
         host.write_cache_bytes={cache}"
    );
    let spec = DriveSpec::parse(&words).expect("the words are right");
    let drive = Drive::build(&spec, &Profile::named("caveat-1g").expect("built in")).expect("it can be built");
    let making = Making { uuid: uuid::Uuid::from_u128(7), chunk_bytes: 65536, journal_bytes: 1 << 20 };
    header_of(&drive, &spec, &making).expect("it makes an image")
}

fn disk(no_overlap: u64, isolation: u64) -> EmulatedCaveat {
    let drive = EmulatedDrive::in_memory(header(no_overlap, isolation)).expect("memory takes it");
    EmulatedCaveat::new(drive).expect("it is a caveat disk")
}

/// A naive model: a stamp for every sector, or `None` for a maybe damaged one.
struct Naive {
    stamps: Vec<Option<u8>>,
    no_overlap: usize,
    isolation: usize,
}

impl Naive {
    /// Writes sectors i … j: "sectors from MAX(i + 1 + DNOR, j + 1) to j + DID might be damaged".
    fn write(&mut self, i: usize, j: usize, stamp: u8) {
        let last = (j + self.isolation).min(self.stamps.len() - 1);
        for sector in (i + 1 + self.no_overlap).max(j + 1)..=last {
            self.stamps[sector] = None;
        }
        self.stamps[i..=j].fill(Some(stamp));
    }
}

fn compare(device: &mut dyn CaveatDevice, naive: &Naive) {
    let mut bytes = vec![0; SECTOR];
    for (lba, stamp) in naive.stamps.iter().enumerate() {
        let outcome = device.read(Lba(lba as u64), &mut bytes);
        match stamp {
            Some(stamp) => assert!(outcome.is_ok() && bytes.iter().all(|byte| byte == stamp), "{lba}: {outcome:?}"),
            None => {
                let is_named = matches!(outcome, Err(DeviceError::Destroyed { lba: at, .. }) if at.0 == lba as u64);
                assert!(is_named, "sector {lba} is maybe damaged, and read {outcome:?}");
            }
        }
    }
    let dump = device.dump().expect("it can be dumped");
    let dumped: Vec<u64> = dump.damaged.iter().flat_map(|(lba, sectors)| lba.0..lba.0 + sectors.0).collect();
    let damaged = naive.stamps.iter().enumerate().filter(|(_, stamp)| stamp.is_none());
    assert_eq!(dumped, damaged.map(|(lba, _)| lba as u64).collect::<Vec<_>>());
}

#[test]
fn random_writes_damage_what_the_paper_says() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cases =
        CACHES.iter().flat_map(|&cache| DISTANCES.map(|(no_overlap, isolation)| (no_overlap, isolation, cache)));
    for (number, (no_overlap, isolation, cache)) in cases.enumerate() {
        let path = folder.path().join(format!("{number}.imbrex"));
        drop(create_file(&path, header_with_cache(no_overlap, isolation, cache)).expect("a file takes it"));
        let open = || {
            let drive = EmulatedDrive::open_file(&path, false).expect("it opens");
            EmulatedCaveat::new(drive).expect("it is a caveat disk")
        };
        let mut device = open();
        let sectors = device.mode_sense().sectors.0 as usize;
        let mut naive =
            Naive { stamps: vec![None; sectors], no_overlap: no_overlap as usize, isolation: isolation as usize };
        compare(&mut device, &naive);
        let mut random = Xoshiro256StarStar::seed_from_u64(number as u64);
        for stamp in 1..=120u8 {
            let length = 1 + below(&mut random, 48) as usize;
            let first = below(&mut random, (sectors - length + 1) as u64) as usize;
            device.write(Lba(first as u64), &vec![stamp; length * SECTOR]).expect("a caveat disk takes every write");
            naive.write(first, first + length - 1, stamp);
            assert_eq!(device.head_position(), Lba((first + length) as u64));
            if below(&mut random, 8) == 0 {
                let until = device.drive().now() + SimDuration::from_millis(below(&mut random, 60));
                device.drive_mut().advance(until);
            }
            if stamp % 20 == 0 {
                compare(&mut device, &naive);
                if cache > 0 {
                    device.flush().expect("a file takes it");
                }
                // A kill: nothing else is flushed, and nothing is closed.
                drop(device);
                device = open();
                compare(&mut device, &naive);
            }
        }
    }
}

#[test]
fn a_new_disk_is_maybe_damaged_throughout() {
    let mut device = disk(6, 16);
    let mode = device.mode_sense();
    assert_eq!((mode.sector_bytes, mode.sectors), (4096, Sectors(1024)));
    assert_eq!((mode.no_overlap, mode.isolation), (Sectors(6), Sectors(16)));
    assert_eq!(device.dump().expect("it can be dumped").damaged, [(Lba(0), Sectors(1024))]);
    device.write(Lba(10), &[1; 2 * SECTOR]).expect("a caveat disk takes every write");
    let outcome = device.read(Lba(9), &mut [0; 2 * SECTOR]);
    assert!(matches!(outcome, Err(DeviceError::Destroyed { lba: Lba(9), .. })), "{outcome:?}");
    assert!(device.read(Lba(1023), &mut [0; 2 * SECTOR]).is_err(), "past the end");
    assert!(device.write(Lba(0), &[0; 100]).is_err(), "not whole sectors");
}

#[test]
fn the_unshingled_area_can_be_rewritten_in_any_order() {
    // Singh 2014 §4.3.1: groups of DNOR + 1 used sectors and DID unused ones.
    let mut device = disk(6, 16);
    let mut random = Xoshiro256StarStar::seed_from_u64(1);
    let (used, unused) = (7, 16);
    let groups = device.mode_sense().sectors.0 / (used + unused);
    let mut stamps = vec![None; (groups * used) as usize];
    for number in 0..2000u64 {
        let (group, within) = (below(&mut random, groups), below(&mut random, used));
        let length = 1 + below(&mut random, used - within);
        let stamp = (number % 251) as u8;
        let lba = Lba(group * (used + unused) + within);
        device.write(lba, &vec![stamp; length as usize * SECTOR]).expect("a caveat disk takes every write");
        stamps[(group * used + within) as usize..][..length as usize].fill(Some(stamp));
    }
    for (index, stamp) in stamps.iter().enumerate() {
        let Some(stamp) = stamp else { continue };
        let lba = Lba(index as u64 / used * (used + unused) + index as u64 % used);
        let mut bytes = vec![0; SECTOR];
        device.read(lba, &mut bytes).unwrap_or_else(|error| panic!("{error}"));
        assert!(bytes.iter().all(|byte| byte == stamp), "{lba}");
    }
}

#[test]
fn other_drives_are_no_caveat_disks() {
    let spec = DriveSpec::parse("cmr-7200").expect("the words are right");
    let drive = Drive::build(&spec, &Profile::named("cmr-7200").expect("built in")).expect("it can be built");
    let header = header_of(&drive, &spec, &Making::default()).expect("it makes an image");
    let drive = EmulatedDrive::in_memory(header).expect("memory takes it");
    let refusal = EmulatedCaveat::new(drive).err().expect("it is none").to_string();
    assert!(refusal.contains("is no caveat disk"), "{refusal}");
}

/// Goal: a caveat disk takes time, and has one queue. Method: the clock of the view, and the same writes at a queue
/// depth of eight under a scheduler that would sort them.
#[test]
fn a_caveat_disk_keeps_the_order_of_its_writes_and_has_a_clock() {
    let mut header = header(6, 16);
    header.profile_overrides.push(("host.schedule".into(), "elevator".into()));
    let mut device =
        EmulatedCaveat::new(EmulatedDrive::in_memory(header).expect("memory takes it")).expect("it is one");
    device.write(Lba(500), &[1; SECTOR]).expect("a caveat disk takes every write");
    assert!(device.drive().now().0 > 1_000_000, "a write takes a seek and a turn");
    let drive = device.drive_mut();
    let at = drive.now();
    // From the last sector to the first: each write damages the sector written before it.
    for (number, lba) in (0..8u64).map(|number| 300 - 8 * number).enumerate() {
        let kind = IoKind::Write { fua: false };
        let buffer = vec![number as u8 + 1; SECTOR];
        let io = Io { kind, offset: lba * SECTOR as u64, length: SECTOR as u64, buffer };
        drive.submit(at, io).expect("a caveat disk takes every write");
    }
    drive.advance(SimTime(u64::MAX));
    assert!(drive.completions().all(|completion| completion.outcome.is_ok()));
    let whole: Vec<u64> = (0..8u64)
        .map(|number| 300 - 8 * number)
        .filter(|&lba| device.read(Lba(lba), &mut [0; SECTOR]).is_ok())
        .collect();
    assert_eq!(whole, [244], "but the last all were damaged by the next");
}

/// A sector of a disk whose power may fail.
#[derive(Clone)]
struct Sector {
    /// Stamp that is read while the power is on, or `None` if the sector is maybe damaged.
    now: Option<u8>,
    /// States in which a power cut may leave it.
    after_cut: BTreeSet<Option<u8>>,
}

/// The sectors of a disk, as its host knows them.
struct Record {
    sectors: Vec<Sector>,
    no_overlap: usize,
    isolation: usize,
}

impl Record {
    fn new(sectors: usize, no_overlap: u64, isolation: u64) -> Record {
        let sector = Sector { now: None, after_cut: BTreeSet::from([None]) };
        Record { sectors: vec![sector; sectors], no_overlap: no_overlap as usize, isolation: isolation as usize }
    }

    /// Records a write of sectors i … j. Once it is answered, the damage is durable; the data is durable with `fua`.
    fn write(&mut self, i: usize, j: usize, stamp: u8, fua: bool, is_answered: bool) {
        let last = (j + self.isolation).min(self.sectors.len() - 1);
        for sector in (i + 1 + self.no_overlap).max(j + 1)..=last {
            self.sectors[sector].now = None;
            if is_answered {
                self.sectors[sector].after_cut.clear();
            }
            self.sectors[sector].after_cut.insert(None);
        }
        for sector in i..=j {
            let Sector { now, after_cut } = &mut self.sectors[sector];
            *now = Some(stamp);
            if fua && is_answered {
                after_cut.clear();
            }
            after_cut.insert(Some(stamp));
            // A write that is cut short has damaged the sectors that it would have written next.
            let is_endangered = sector > i + self.no_overlap && self.isolation > self.no_overlap;
            if is_endangered && !(fua && is_answered) {
                after_cut.insert(None);
            }
        }
    }

    fn flushed(&mut self) {
        for sector in &mut self.sectors {
            sector.after_cut = BTreeSet::from([sector.now]);
        }
    }

    /// Compares the disk with the states that are allowed after a cut, and adopts the states found.
    fn compare_after_cut(&mut self, device: &mut EmulatedCaveat, what: &str) {
        let mut bytes = vec![0; SECTOR];
        for (lba, sector) in self.sectors.iter_mut().enumerate() {
            let found = match device.read(Lba(lba as u64), &mut bytes) {
                Ok(()) if bytes.iter().all(|&byte| byte == bytes[0]) => Some(bytes[0]),
                Err(DeviceError::Destroyed { lba: at, .. }) if at.0 == lba as u64 => None,
                outcome => panic!("{what}: sector {lba} reads {outcome:?}"),
            };
            let is_allowed = sector.after_cut.contains(&found);
            assert!(is_allowed, "{what}: sector {lba} reads {found:?}, allowed are {:?}", sector.after_cut);
            *sector = Sector { now: found, after_cut: BTreeSet::from([found]) };
        }
    }
}

/// Counts of a run with power cuts.
#[derive(Default)]
struct Cuts {
    with_dirty_data: u32,
    in_write_back: u32,
}

/// Cuts the power of a disk again and again, and compares it with its record.
fn cut_again_and_again(no_overlap: u64, isolation: u64, cache: u64, seed: u64, cuts: &mut Cuts) {
    let what = format!("DNOR {no_overlap}, DID {isolation}, cache of {cache} bytes, seed {seed}");
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let (_, store) =
        Store::create(Memory::new(), header_with_cache(no_overlap, isolation, cache)).expect("memory takes it");
    let mut image = store.space().media().clone();
    let mut record: Option<Record> = None;
    let mut stamp = 0u8;
    for life in 0..6 {
        let what = format!("{what}, life {life}");
        let medium = Crashing::new(image, 512);
        let medium = Shared::new(if life % 2 == 1 { medium.with_waiting_flushes() } else { medium });
        let boxed: Box<dyn Media> = Box::new(medium.clone());
        let drive = EmulatedDrive::new(Store::open(boxed, &what).unwrap_or_else(|error| panic!("{what}: {error}")));
        let mut device = EmulatedCaveat::new(drive).expect("it is a caveat disk");
        let sectors = device.mode_sense().sectors.0 as usize;
        let record = record.get_or_insert_with(|| Record::new(sectors, no_overlap, isolation));
        record.compare_after_cut(&mut device, &what);
        let mut draw = |random: &mut Xoshiro256StarStar| {
            stamp = stamp.wrapping_add(1).max(1);
            let length = 1 + below(random, 40) as usize;
            // A few places are hit again and again.
            let span = if below(random, 2) == 0 { 160 } else { sectors } - length;
            let first = below(random, span as u64 + 1) as usize;
            (first, first + length - 1, stamp)
        };
        for _ in 0..below(&mut random, 60) {
            match below(&mut random, 12) {
                0 => {
                    device.flush().expect("the medium is whole");
                    record.flushed();
                }
                1 => {
                    let until = device.drive().now() + SimDuration::from_millis(below(&mut random, 60));
                    device.drive_mut().advance(until);
                }
                kind => {
                    let ((first, last, stamp), fua) = (draw(&mut random), kind == 2);
                    let bytes = vec![stamp; (last + 1 - first) * SECTOR];
                    let outcome = device.drive_mut().write((first * SECTOR) as u64, &bytes, fua);
                    outcome.expect("a caveat disk takes every write");
                    record.write(first, last, stamp, fua || cache == 0, true);
                }
            }
        }
        // With the power on, every sector reads as its newest state, in the cache or not.
        let mut bytes = vec![0; SECTOR];
        for (lba, sector) in record.sectors.iter().enumerate() {
            let found = device.read(Lba(lba as u64), &mut bytes).is_ok().then_some(bytes[0]);
            assert_eq!(found, sector.now, "{what}: sector {lba} with the power on");
        }
        let run = record.sectors.iter().take_while(|sector| sector.now.is_some()).count();
        if run > 0 {
            let mut bytes = vec![0; run * SECTOR];
            device.read(Lba(0), &mut bytes).expect("no sector of the run is damaged");
            let found = bytes.chunks(SECTOR).map(|sector| Some(sector[0]));
            assert!(found.eq(record.sectors[..run].iter().map(|sector| sector.now)), "{what}: read at once");
        }
        // Some requests are in flight when the power fails.
        let mut drive = device.into_drive();
        for _ in 0..below(&mut random, 4) {
            let (first, last, stamp) = draw(&mut random);
            let (kind, bytes) = (IoKind::Write { fua: false }, vec![stamp; (last + 1 - first) * SECTOR]);
            let io = Io { kind, offset: (first * SECTOR) as u64, length: bytes.len() as u64, buffer: bytes };
            drive.submit(drive.now(), io).expect("a caveat disk takes every write");
            record.write(first, last, stamp, false, false);
        }
        for _ in 0..below(&mut random, 6) {
            drive.step(drive.now() + SimDuration::from_millis(40));
        }
        cuts.with_dirty_data += u32::from(!drive.dirty().is_zero());
        match below(&mut random, 3) {
            0 => drop(drive),
            1 => {
                cuts.in_write_back += u32::from(!drive.dirty().is_zero());
                let mut choices = Xoshiro256StarStar::seed_from_u64(seed);
                drive.power_cut_keeping(|_| below(&mut choices, 2) == 0).map(drop).expect("the medium is whole");
            }
            _ => {
                drive.power_cut();
            }
        }
        image = medium.with(|medium| match below(&mut random, 3) {
            0 => medium.whole().clone(),
            1 => medium.cut(|_, _| false),
            _ => medium.cut(|_, _| below(&mut random, 2) == 0),
        });
    }
}

/// Goal: the damage of an accepted write survives every power cut, and the cache loses no more than unflushed data.
/// Method: see `Record`. `IMBREX_SEEDS` sets the number of seeds.
#[test]
fn damage_is_durable_when_a_write_is_answered() {
    let seeds = std::env::var("IMBREX_SEEDS").map_or(4, |seeds| seeds.parse().expect("IMBREX_SEEDS is a number"));
    let mut cuts = Cuts::default();
    for (no_overlap, isolation) in DISTANCES {
        for cache in CACHES {
            for seed in 0..seeds {
                cut_again_and_again(no_overlap, isolation, cache, seed, &mut cuts);
            }
        }
    }
    assert!(cuts.with_dirty_data > 20 && cuts.in_write_back > 5, "the cache is never dirty at a cut");
}

/// Goal: the setting of the write cache is honoured. Method: writes are answered before the disk can have turned, and a
/// cut loses their data, yet not their damage.
#[test]
fn the_write_cache_of_a_caveat_disk_holds_data_and_no_damage() {
    let header = header_with_cache(6, 16, 1 << 20);
    let drive = EmulatedDrive::in_memory(header).expect("memory takes it");
    assert_eq!(drive.drive().host.write_cache_bytes, 1 << 20);
    let mut device = EmulatedCaveat::new(drive).expect("it is a caveat disk");
    device.write(Lba(110), &[7; 4 * SECTOR]).expect("a caveat disk takes every write");
    device.flush().expect("memory takes it");
    device.write(Lba(100), &[8; SECTOR]).expect("a caveat disk takes every write");
    assert_eq!(device.drive().dirty(), Sectors(1));
    assert!(device.read(Lba(110), &mut [0; SECTOR]).is_err(), "100 + 1 + 6 … 100 + 16 are maybe damaged");
    assert_eq!(device.first_damaged(Lba(100), Sectors(20)).expect("memory reads"), Some(Lba(101)));
    let store = Store::open(device.into_drive().power_cut(), "cut").expect("it opens");
    let mut device = EmulatedCaveat::new(EmulatedDrive::new(store)).expect("it is a caveat disk");
    assert!(device.read(Lba(100), &mut [0; SECTOR]).is_err(), "the data was in the cache only");
    assert!(device.read(Lba(110), &mut [0; SECTOR]).is_err(), "the damage is durable");
}
