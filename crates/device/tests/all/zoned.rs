//! Goal: a zoned drive in an image behaves as a host expects, and its pointers survive. Method: random operations are
//! compared with a naive drive (`zoned::trial`), on files that are closed and reopened. After power cuts at any
//! moment, every pointer is compared with the flushed and the written data. The same test runs on a zoned block
//! device of the host if `IMBREX_ZONED_DEVICE` names one, and destroys its contents.

use std::path::Path;

use imbrex_device::drive::create_file;
use imbrex_device::media::crashing::Crashing;
use imbrex_device::media::faulty::{Failure, Faulty, Pages, When};
use imbrex_device::media::memory::Memory;
use imbrex_device::zoned::trial::{Reopening, run};
use imbrex_device::zoned::{Condition, EmulatedZoned, LinuxZoned, ZoneError, ZonedDevice};
use imbrex_device::{DeviceError, EmulatedDrive, Media, Store};
use imbrex_disk::{Lba, Sectors};
use imbrex_layer::verify::toy::below;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::{Shared, Subject};

const SECTOR: usize = 512;

fn open(path: &Path) -> Result<Box<dyn ZonedDevice>, DeviceError> {
    Ok(Box::new(EmulatedZoned::new(EmulatedDrive::open_file(path, false)?)?))
}

/// Returns the drive on `medium` as a zoned drive.
fn view(medium: impl Media + 'static, what: &str) -> Result<EmulatedZoned, DeviceError> {
    let medium: Box<dyn Media> = Box::new(medium);
    EmulatedZoned::new(EmulatedDrive::new(Store::open(medium, what)?))
}

/// Returns every toy with zones, without a volatile cache and with a small one.
fn subjects() -> Vec<Subject> {
    let mut subjects = common::subjects_of("zoned");
    for subject in common::subjects_of("zoned") {
        subjects.push(subject.with_cache(16 << 10));
    }
    subjects
}

#[test]
fn images_are_as_the_naive_drive() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (number, subject) in subjects().iter().enumerate() {
        let path = folder.path().join(format!("{number}.imbrex"));
        drop(create_file(&path, subject.header.clone()).expect("a file takes it"));
        // Dropping the drive is like killing its process: flushed data must be present afterwards.
        let mut reopen = |device: Box<dyn ZonedDevice>| {
            drop(device);
            open(&path)
        };
        let reopening = Reopening { reopen: &mut reopen, closes_zones: true };
        let device = open(&path).expect("it was made just now");
        let tally = run(device, 7 + number as u64, 3000, Some(reopening));
        let tally = tally.unwrap_or_else(|difference| panic!("{}: {difference}", subject.what));
        assert!(tally.written > 1000 && tally.refused > 100 && tally.reopened > 50 && tally.resets > 50, "{tally:?}");
    }
}

#[test]
fn zoned_block_devices_are_as_the_naive_drive() {
    let Ok(path) = std::env::var("IMBREX_ZONED_DEVICE") else {
        eprintln!("skipped: IMBREX_ZONED_DEVICE names no zoned block device");
        return;
    };
    let device = LinuxZoned::open(Path::new(&path)).unwrap_or_else(|error| panic!("{error}"));
    let mut reopen = |device: Box<dyn ZonedDevice>| {
        drop(device);
        LinuxZoned::open(Path::new(&path)).map(|device| Box::new(device) as Box<dyn ZonedDevice>)
    };
    let reopening = Reopening { reopen: &mut reopen, closes_zones: false };
    // An emulated kernel is slow, so fewer operations can be requested.
    let actions =
        std::env::var("IMBREX_ZONED_ACTIONS").map_or(3000, |actions| actions.parse().expect("a number of actions"));
    let tally = run(Box::new(device), 7, actions, Some(reopening)).unwrap_or_else(|difference| panic!("{difference}"));
    println!("{path}: {tally:?}");
}

/// Returns the contents of a sector, from the stamp of its write and its LBA.
fn sector(stamp: u64, lba: u64) -> Vec<u8> {
    [stamp.to_le_bytes(), lba.to_le_bytes()].concat().repeat(SECTOR / 16)
}

/// The states that a zone may have after a cut.
#[derive(Clone, Default)]
struct Owed {
    /// Pointer at the last flush, reset or finish; without a volatile cache at the last write.
    flushed: u64,
    /// Stamps of the sectors up to the pointer.
    written: Vec<u64>,
}

/// Opens the image left by a cut, and compares every zone with its allowed states.
fn judge(left: &Shared<Memory>, owed: &[Owed], what: &str) -> EmulatedZoned {
    let mut device = view(left.clone(), what).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mode = device.mode_sense();
    for index in mode.conventional_zones..mode.zones {
        let zone = device.zone(index).expect("it is there");
        let owed = &owed[index as usize];
        let (pointer, written) = (zone.pointer.0, owed.written.len() as u64);
        assert!((owed.flushed..=written).contains(&pointer), "{what}: {zone:?}, {} flushed, {written}", owed.flushed);
        for offset in 0..pointer {
            let mut bytes = vec![0; SECTOR];
            let lba = zone.start.0 + offset;
            device.read(Lba(lba), &mut bytes).unwrap_or_else(|error| panic!("{what}: {zone:?}: {error}"));
            assert!(bytes == sector(owed.written[offset as usize], lba), "{what}: LBA {lba} of {zone:?} differs");
        }
    }
    device
}

#[test]
fn pointers_survive_power_cuts() {
    for subject in subjects() {
        for seed in 0..4 {
            let mut random = Xoshiro256StarStar::seed_from_u64(seed);
            let (_, store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
            let mut memory = store.space().media().clone();
            let mut owed = vec![Owed::default(); 100];
            let mut stamp = 0;
            for cut in 0..12 {
                let medium = Shared::new(Crashing::new(memory, SECTOR as u32));
                let mut device = view(medium.clone(), "image").expect("it was judged");
                let mode = device.mode_sense();
                let is_volatile = device.drive().drive().host.write_cache_bytes > 0;
                for _ in 0..below(&mut random, 40) {
                    let index = mode.conventional_zones + below(&mut random, 5) as u32;
                    let zone = device.zone(index).expect("it is there");
                    match below(&mut random, 10) {
                        0 => {
                            device.reset(index).expect("a zone can be reset");
                            owed[index as usize] = Owed::default();
                        }
                        1 | 2 => {
                            device.flush().expect("memory takes it");
                            owed.iter_mut().for_each(|owed| owed.flushed = owed.written.len() as u64);
                        }
                        _ if zone.pointer < zone.sectors => {
                            let room = (zone.sectors - zone.pointer).0;
                            let sectors = 1 + below(&mut random, room.min(9));
                            stamp += 1;
                            let first = zone.start.0 + zone.pointer.0;
                            let bytes: Vec<u8> = (first..first + sectors).flat_map(|lba| sector(stamp, lba)).collect();
                            // A drive with limits may refuse, which changes nothing.
                            if device.write(Lba(first), &bytes).is_ok() {
                                let owed = &mut owed[index as usize];
                                owed.written.extend(std::iter::repeat_n(stamp, sectors as usize));
                                if !is_volatile {
                                    owed.flushed = owed.written.len() as u64;
                                }
                            }
                        }
                        _ => {}
                    }
                }
                drop(device);
                let left = medium.with(|medium| medium.cut(|_, _| below(&mut random, 2) == 0));
                let left = Shared::new(left);
                let what = format!("{}, seed {seed}, cut {cut}", subject.what);
                let mut device = judge(&left, &owed, &what);
                for index in mode.conventional_zones..mode.zones {
                    let pointer = device.zone(index).expect("it is there").pointer.0;
                    owed[index as usize].written.truncate(pointer as usize);
                    owed[index as usize].flushed = pointer;
                }
                drop(device);
                memory = left.with(|memory| memory.clone());
            }
        }
    }
}

/// Returns a drive in memory with zones of 16 sectors, of the first subject with a limit of open zones.
fn small() -> EmulatedZoned {
    let subjects = common::subjects_of("zoned");
    let subject = subjects.iter().find(|subject| subject.what.contains("open_zones")).expect("there is one");
    let drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
    EmulatedZoned::new(drive).expect("it has zones")
}

#[test]
fn writes_elsewhere_are_refused_and_change_nothing() {
    let mut device = small();
    let bytes = [sector(1, 0), sector(1, 1)].concat();
    device.write(Lba(0), &bytes).expect("at the pointer");
    for lba in [0, 1, 3] {
        let outcome = device.write(Lba(lba), &bytes);
        assert!(matches!(outcome, Err(DeviceError::Zone(ZoneError::NotAtPointer { .. }))), "{outcome:?}");
    }
    let mut read = vec![9; 4 * SECTOR];
    device.read(Lba(0), &mut read).expect("reads may go past the pointer");
    assert_eq!(read, [bytes, vec![0; 2 * SECTOR]].concat());
    assert!(device.write(Lba(2), &[1; 100]).is_err(), "not whole sectors");
    assert_eq!(device.append(0, &sector(2, 2)).expect("there is room"), Lba(2));
}

#[test]
fn a_pointer_is_set_back_and_never_ahead() {
    let mut device = small();
    let bytes: Vec<u8> = (0..8).flat_map(|lba| sector(1, lba)).collect();
    device.append(0, &bytes).expect("there is room");
    device.set_pointer(0, Sectors(3)).expect("it goes back");
    assert!(matches!(device.set_pointer(0, Sectors(5)), Err(DeviceError::Zone(ZoneError::PointerAhead { .. }))));
    let mut read = vec![9; 8 * SECTOR];
    device.read(Lba(0), &mut read).expect("it is there");
    assert_eq!(read[..3 * SECTOR], bytes[..3 * SECTOR]);
    assert!(read[3 * SECTOR..].iter().all(|&byte| byte == 0), "what lies past the pointer is given up");
    // The pointer is set back and the power is cut at once: the change is as durable as a reset. Without a volatile
    // cache, so is a later write.
    let mut device = view(device.into_drive().power_cut(), "image").expect("it opens");
    assert_eq!(device.append(0, &sector(2, 3)).expect("there is room"), Lba(3));
    let mut again = view(device.into_drive().power_cut(), "image").expect("it opens");
    assert_eq!(again.zone(0).expect("it is there").pointer, Sectors(4));
}

#[test]
fn failed_zones_stay_failed() {
    let mut device = small();
    device.append(0, &sector(1, 0)).expect("there is room");
    device.append(1, &sector(1, 16)).expect("there is room");
    device.fail_zone(0, Condition::ReadOnly).expect("any zone can fail");
    device.fail_zone(1, Condition::Offline).expect("any zone can fail");
    let mut device = view(device.into_drive().power_cut(), "image").expect("it opens");
    let mut read = vec![0; SECTOR];
    device.read(Lba(0), &mut read).expect("a read-only zone can be read");
    assert_eq!(read, sector(1, 0));
    assert!(device.read(Lba(16), &mut read).is_err(), "an offline zone cannot");
    assert!(device.append(0, &read).is_err() && device.reset(0).is_err() && device.reset(1).is_err());
    device.reset_all().expect("the others can be reset");
    assert_eq!(device.zone(0).expect("it is there").condition, Condition::ReadOnly);
}

/// Goal: after a failed flush no command changes a zone, and zones can be read as far as the medium has their data.
#[test]
fn after_a_failed_flush_zones_are_read_and_not_changed() {
    for subject in subjects() {
        let what = &subject.what;
        let (_, store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
        let disk = Shared::new(Faulty::new(store.into_media(), 1));
        let mut device = view(disk.clone(), what).expect("nothing fails yet");
        let zone = device.mode_sense().conventional_zones;
        let start = device.zone(zone).expect("it is there").start.0;
        let flushed = device.write(Lba(start), &[sector(1, start), sector(1, start + 1)].concat());
        flushed.and_then(|()| device.flush()).expect("nothing fails yet");
        disk.with(|disk| disk.plan(Failure::FlushError(Pages::Dropped), When::Operation(0)));
        let written = device.write(Lba(start + 2), &sector(2, start + 2));
        written.and_then(|()| device.flush()).expect_err("it was planned");
        let refused = [
            device.write(Lba(start + 2), &sector(3, start + 2)),
            device.append(zone, &sector(3, start + 3)).map(|_| ()),
            device.reset(zone),
            device.reset_all(),
            device.finish(zone),
            device.open(zone),
            device.close(zone),
            device.set_pointer(zone, Sectors(1)),
            device.fail_zone(zone, Condition::Offline),
            device.flush(),
        ];
        for (number, outcome) in refused.into_iter().enumerate() {
            assert!(matches!(outcome, Err(DeviceError::Stopped(_))), "{what}, {number}: {outcome:?}");
        }
        let mut read = vec![9; 2 * SECTOR];
        device.read(Lba(start), &mut read).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read, [sector(1, start), sector(1, start + 1)].concat(), "{what}");
        drop(device);
        let mut device = view(disk, what).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!((2..=3).contains(&device.zone(zone).expect("it is there").pointer.0), "{what}");
    }
}
