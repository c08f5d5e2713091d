//! Goal: a power cut loses exactly the data in the drive's volatile cache at that simulated time. Data whose
//! write-back fails is not dropped. Method: the same requests go to an engine without bytes, which shows the dirty
//! sectors at each time. The power of the drive with bytes is cut at that time, and its image is read.

use imbrex_device::media::faulty::{Failure, Faulty, When as Fault};
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind, Media, Store};
use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_layer::verify::toy::below;
use imbrex_sim::{Engine, Inbox, Options, Stepped, Unobserved};
use imbrex_trace::{Request, When};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::Subject;

const SECTOR: usize = 512;

fn write(number: u64, lba: u64) -> Io {
    let buffer = vec![number as u8 + 1; SECTOR];
    Io { kind: IoKind::Write { fua: false }, offset: lba * 512, length: 512, buffer }
}

/// Returns up to a hundred places in random order, far enough apart that no writes join.
fn places(capacity_bytes: u64, seed: u64) -> Vec<u64> {
    let sectors = capacity_bytes / 512;
    let count = (sectors / 2).min(100);
    assert!(count >= 20, "the toy is too small");
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let mut places: Vec<u64> = (0..count).map(|number| number * (sectors / count)).collect();
    for last in (1..places.len()).rev() {
        places.swap(last, below(&mut random, last as u64 + 1) as usize);
    }
    places
}

fn subjects() -> Vec<Subject> {
    let subjects = common::drive_managed_subjects();
    subjects.iter().map(|subject| subject.with_cache(1 << 20)).collect()
}

/// Returns the subjects on which a host may write anywhere: drive-managed ones and caveat disks.
fn subjects_with_caveat() -> Vec<Subject> {
    let caveat = common::subjects_of("caveat");
    subjects().into_iter().chain(caveat.iter().map(|subject| subject.with_cache(1 << 20))).collect()
}

fn reopened(drive: EmulatedDrive, what: &str) -> EmulatedDrive {
    EmulatedDrive::new(Store::open(drive.power_cut(), what).unwrap_or_else(|error| panic!("{what}: {error}")))
}

/// Returns the numbers of the writes to `places` that survived.
fn survivors(drive: &mut EmulatedDrive, places: &[u64]) -> Vec<u64> {
    let mut read = vec![0; SECTOR];
    let mut is_there = |number: usize, lba: u64| {
        drive.read(lba * 512, &mut read).expect("it can be read");
        assert!(read.iter().all(|&byte| byte == read[0]), "LBA {lba} is mixed");
        assert!(read[0] == 0 || read[0] == number as u8 + 1, "LBA {lba} is another's");
        read[0] != 0
    };
    places.iter().enumerate().filter(|&(number, &lba)| is_there(number, lba)).map(|(_, &lba)| lba).collect()
}

#[test]
fn without_a_clock_nothing_is_written_back_between_requests() {
    for subject in subjects() {
        let what = &subject.what;
        let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
        let places = places(drive.capacity_bytes(), 1);
        for (number, &lba) in places.iter().enumerate() {
            let completion = drive.serve(write(number as u64, lba)).expect("it is whole");
            assert!(completion.outcome.is_ok(), "{what}: {completion:?}");
            assert_eq!(drive.host_time(), completion.end, "{what}: the next arrives when this one is answered");
        }
        assert_eq!(drive.dirty().0, places.len() as u64, "{what}: the host let no time pass in which to write back");
        assert!(drive.host_time() < SimTime::ZERO + SimDuration::from_secs(1), "{what}");
        let mut drive = reopened(drive, what);
        assert_eq!(survivors(&mut drive, &places), [0u64; 0], "{what}");
    }
}

#[test]
fn what_a_flush_covered_is_there() {
    for subject in subjects() {
        let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
        let places = places(drive.capacity_bytes(), 2);
        for (number, &lba) in places.iter().enumerate() {
            drive.serve(write(number as u64, lba)).expect("it is whole");
            if number == 9 {
                drive.flush().expect("it is whole");
            }
        }
        let mut drive = reopened(drive, &subject.what);
        assert_eq!(survivors(&mut drive, &places), places[..10], "{}", subject.what);
    }
}

#[test]
fn survivors_are_those_whose_destage_had_begun() {
    let (mut some_lost, mut some_kept) = (0, 0);
    for subject in subjects() {
        // Requests 100 µs apart, from 1 ms on. The power is cut at one of these times, in simulated milliseconds.
        for milliseconds in [3, 13, 40, 90, 200, 700] {
            let what = format!("{}, cut at {milliseconds} ms", subject.what);
            let until = SimTime(milliseconds * 1_000_000);
            let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
            let places = places(drive.capacity_bytes(), milliseconds);
            let plain = subject.header.drive().expect("it makes a drive");
            let options = Options::live(&plain);
            let mut engine = Engine::new(plain, options, Inbox::default(), Unobserved);
            for (number, &lba) in places.iter().enumerate() {
                let at = SimTime(1_000_000 + 100_000 * number as u64);
                if at > until {
                    break;
                }
                drive.submit(at, write(number as u64, lba)).expect("it is whole");
                let command = Command::write(lba, 1);
                engine.submit(Request { when: When::At(at), device: 0, command });
            }
            drive.advance(until);
            while engine.step(until).expect("an inbox does not fail") == Stepped::Worked {}
            let dirty: Vec<u64> = engine
                .dirty_ranges()
                .iter()
                .flat_map(|range| range.lba.0..range.lba.0 + u64::from(range.sectors))
                .collect();
            let own = drive.dirty_ranges();
            let own: Vec<u64> =
                own.iter().flat_map(|&(offset, length)| offset / 512..(offset + length) / 512).collect();
            assert_eq!(own, dirty, "{what}: the drive with bytes has another cache");
            let written = drive.completions().count();
            let mut drive = reopened(drive, &what);
            let kept = survivors(&mut drive, &places);
            let expected: Vec<u64> = places[..written].iter().copied().filter(|lba| !dirty.contains(lba)).collect();
            assert_eq!(kept, expected, "{what}");
            some_lost += dirty.len();
            some_kept += kept.len();
        }
    }
    assert!(some_lost > 100 && some_kept > 100, "{some_lost} lost, {some_kept} kept");
}

#[test]
fn a_trim_never_brings_an_older_value_back() {
    for subject in subjects() {
        let what = &subject.what;
        let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
        let keeps_trims = drive.drive().layer.keeps_trims();
        drive.write(64 * 512, &[1; 16 * SECTOR], true).expect("it is whole");
        drive.write(64 * 512, &[2; 16 * SECTOR], false).expect("it is whole");
        assert!(drive.dirty().0 > 0, "{what}: nothing is dirty");
        drive.trim(68 * 512, 4 * 512).expect("it is whole");
        let newest = if keeps_trims { 0 } else { 2 };
        let mut read = [9; 16 * SECTOR];
        for moment in ["at once", "once written back", "after a power cut"] {
            drive.read(64 * 512, &mut read).expect("it was written");
            let values: Vec<u8> = read.chunks(SECTOR).map(|sector| sector[0]).collect();
            let expected = [vec![2; 4], vec![newest; 4], vec![2; 8]].concat();
            assert_eq!(values, expected, "{what}, {moment}");
            drive.flush().expect("it is whole");
            if moment == "once written back" {
                drive = reopened(drive, what);
            }
        }
    }
}

#[test]
fn what_could_not_be_written_back_is_told() {
    for subject in subjects_with_caveat() {
        let what = &subject.what;
        let memory = {
            let (_, store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
            store.into_media()
        };
        let medium = common::Shared::new(Faulty::new(memory, 1));
        let boxed: Box<dyn Media> = Box::new(medium.clone());
        let mut drive = EmulatedDrive::new(Store::open(boxed, what).expect("nothing fails yet"));
        drive.write(64 * 512, &[1; SECTOR], false).expect("the cache takes it");
        medium.with(|medium| medium.plan(Failure::WriteError, Fault::From(0)));
        // This destage happens in idle time, without a waiting request, and fails.
        let later = drive.now() + SimDuration::from_secs(10);
        drive.advance(later);
        let flushed = drive.flush();
        assert!(
            matches!(&flushed, Err(DeviceError::Stopped(reason)) if reason.contains("planned")),
            "{what}: {flushed:?}"
        );
        let mut read = [0; SECTOR];
        drive.read(64 * 512, &mut read).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(read, [1; SECTOR], "{what}: what could not be written back is still there");
    }
}

/// Goal: a request has one number, which its completion carries. Method: requests are submitted to a running drive and
/// to a stopped one, with refused requests among them. The drive stops while requests are in flight.
#[test]
fn completions_carry_the_numbers_of_their_requests() {
    for subject in subjects() {
        let what = &subject.what;
        let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
        let read = |lba: u64| Io { kind: IoKind::Read, offset: lba * 512, length: 512, buffer: Vec::new() };
        let mut numbers = Vec::new();
        for round in 0..3 {
            for lba in [64, 8, 96, 32] {
                let now = drive.now();
                assert!(drive.submit(now, Io { length: 100, ..read(lba) }).is_err(), "{what}: a part of a sector");
                numbers.push((drive.submit(now, write(lba, lba)).expect("it is whole"), lba, round));
            }
            if round < 2 {
                drive.advance(SimTime(u64::MAX));
            }
        }
        assert!(drive.outstanding() > 0, "{what}: no request is in flight");
        drive.store_mut().stop("planned");
        let now = drive.now();
        for lba in [8, 64] {
            assert!(matches!(drive.submit(now, write(lba, lba)), Err(DeviceError::Stopped(_))), "{what}");
            numbers.push((drive.submit(now, read(lba)).expect("a stopped drive reads"), lba, 3));
        }
        assert_eq!(drive.outstanding(), 0, "{what}: a stopped drive answers at once");
        assert!(numbers.iter().map(|&(number, ..)| number).eq(0..14), "{what}: {numbers:?}");
        let mut completions: Vec<_> = drive.completions().collect();
        completions.sort_by_key(|completion| completion.number);
        for (completion, &(number, lba, round)) in completions.iter().zip(&numbers) {
            assert_eq!(completion.number, number, "{what}");
            assert_eq!(completion.outcome.is_ok(), round != 2, "{what}: {completion:?}");
            if round == 3 {
                assert_eq!(completion.buffer, [lba as u8 + 1; SECTOR], "{what}: {completion:?}");
            }
        }
        assert_eq!(completions.len(), numbers.len(), "{what}");
    }
}

/// Goal: every kind of drive has the write cache that its user asked for. Method: a write is acknowledged, and is dirty
/// with a cache only. Zoned drives and caveat disks included.
#[test]
fn every_kind_of_drive_has_the_write_cache_that_it_was_given() {
    for subject in common::subjects() {
        for (cache, dirty) in [(0, 0), (1 << 20, 1)] {
            let subject = subject.with_cache(cache);
            let mut drive = EmulatedDrive::in_memory(subject.header.clone()).expect("memory takes it");
            assert_eq!(drive.drive().host.write_cache_bytes, cache, "{}", subject.what);
            drive.write(0, &[1; SECTOR], false).unwrap_or_else(|error| panic!("{}: {error}", subject.what));
            assert_eq!(drive.dirty().0, dirty, "{}", subject.what);
            drive.flush().expect("memory takes it");
            drive.set_caches((1 << 20) - cache, 0);
            drive.write(SECTOR as u64, &[1; SECTOR], false).unwrap_or_else(|error| panic!("{}: {error}", subject.what));
            assert_eq!(drive.dirty().0, 1 - dirty, "{}, the other way round", subject.what);
        }
    }
}

/// Goal: damage on the medium under newer data in the cache is no error of a read. Method: a stored sector is changed
/// on the medium, then written into the cache, and read with its neighbours.
#[test]
fn newer_data_in_the_cache_hides_damage_on_the_medium() {
    for subject in subjects() {
        let what = &subject.what;
        let medium = common::Shared::new(Memory::new());
        let boxed: Box<dyn Media> = Box::new(medium.clone());
        let opened = Store::create(boxed, subject.header.clone()).expect("memory takes it");
        let mut drive = EmulatedDrive::new(opened);
        let contents: Vec<u8> = (0..16u8).flat_map(|sector| [0xa0 + sector; SECTOR]).collect();
        drive.write(64 * 512, &contents, true).expect("it is whole");
        medium.with(|medium| {
            let mut sector = [0; SECTOR];
            for at in (0..medium.len()).step_by(SECTOR) {
                medium.read_at(at, &mut sector).expect("memory reads");
                if sector == [0xa4; SECTOR] {
                    medium.write_at(at, &[0x5a; SECTOR]).expect("memory takes it");
                }
            }
        });
        let mut read = [0; 16 * SECTOR];
        let outcome = drive.read(64 * 512, &mut read);
        assert!(matches!(outcome, Err(DeviceError::Corrupt { .. })), "{what}: {outcome:?}");
        drive.write(68 * 512, &[0xa4; SECTOR], false).expect("it is whole");
        assert_eq!(drive.dirty().0, 1, "{what}");
        drive.read(64 * 512, &mut read).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(read == contents[..], "{what}");
    }
}
