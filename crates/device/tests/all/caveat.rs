//! Goal: a caveat disk damages exactly the sectors of Singh 2014 §3.2, and never forgets the damage. Method: random
//! writes are compared with a list of sectors that follows the paper's formula; the drive is killed and reopened.

use imbrex_device::caveat::{CaveatDevice, EmulatedCaveat};
use imbrex_device::drive::{Making, create_file, header_of};
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind};
use imbrex_disk::{Lba, Profile, Sectors, SimTime};
use imbrex_layer::verify::toy::below;
use imbrex_sim::{Drive, DriveSpec};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

const SECTOR: usize = 4096;

/// Returns the header of a disk of 4 MiB with the given DNOR and DID.
fn header(no_overlap: u64, isolation: u64) -> imbrex_device::image::Header {
    let words = format!(
        "caveat-1g:geometry.tracks=4,recording.no_overlap_sectors={no_overlap},recording.isolation_sectors={isolation}"
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
    for (number, (no_overlap, isolation)) in [(6, 16), (0, 5), (5, 5), (0, 0), (30, 200)].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.imbrex"));
        drop(create_file(&path, header(no_overlap, isolation)).expect("a file takes it"));
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
            if stamp % 20 == 0 {
                compare(&mut device, &naive);
                // A kill: nothing is flushed or closed.
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
    header.profile_overrides.push(("host.write_cache_bytes".into(), "4194304".into()));
    let mut device =
        EmulatedCaveat::new(EmulatedDrive::in_memory(header).expect("memory takes it")).expect("it is one");
    device.write(Lba(500), &[1; SECTOR]).expect("a caveat disk takes every write");
    assert!(device.drive().now().0 > 1_000_000, "a write takes a seek and a turn");
    assert_eq!(device.drive().dirty().0, 0, "a write that waits in a cache would hide what it damages");
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
