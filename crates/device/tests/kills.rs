//! Goal: what a kill at any instruction leaves is mended by the next opening: a check says whole, before and after it, and then any one
//! witness may be spoilt without that the image fails to open or reads otherwise. Method: everything that random work does to the
//! medium, from the making of the image to its end, is done again piece by piece, as one thread writes; after every piece the image is
//! taken as a killed process would leave it. Some of these images, and each of those in which a slot is half given, are checked
//! and opened, and of some every witness is flipped.

mod common;

use common::recorded::{Host, flip, open, used};
use common::{Shared, Subject};
use imbrex_device::check::{Finding, check_image};
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::Use;
use imbrex_device::media::memory::Memory;
use imbrex_device::verify::recorder::{Event, Recorder};
use imbrex_device::{EmulatedDrive, Media, Store};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

const DEEDS: u32 = 40;
const SECTOR: usize = 512;
/// Bytes of an entry of the directory.
const ENTRY_BYTES: usize = 16;
/// What a kill leaves written or not of a call, at the least.
const PAGE: usize = 4096;

fn findings(image: &Memory, what: &str) -> Vec<Finding> {
    let checked = check_image(image.clone(), "image", &mut |_, _| {});
    checked.unwrap_or_else(|error| panic!("{what}: the check fails: {error}")).findings
}

/// Every sector of the drive, or that it cannot be read.
fn contents(drive: &mut EmulatedDrive) -> Vec<Option<Vec<u8>>> {
    let sectors = drive.capacity_bytes() as usize / SECTOR;
    let mut bytes = vec![0; sectors * SECTOR];
    if drive.read(0, &mut bytes).is_ok() {
        return bytes.chunks_exact(SECTOR).map(|sector| Some(sector.to_vec())).collect();
    }
    let mut one = |lba: usize| {
        let mut sector = vec![0; SECTOR];
        drive.read((lba * SECTOR) as u64, &mut sector).ok().map(|()| sector)
    };
    (0..sectors).map(&mut one).collect()
}

/// What was done to the medium of a drive that is made, works, and is switched off; the acts before the last of its making are left out.
fn events_of(subject: &Subject, seed: u64, bounds: Bounds) -> (Memory, Vec<Event>) {
    let drive = subject.header.drive().expect("it was assembled before");
    let (_, store) =
        Store::create_bounded(Memory::new(), subject.header.clone(), drive, bounds).expect("memory takes it");
    let made = store.into_media();
    let medium = Shared::new(Recorder::new(made.clone()));
    let mut drive = open(medium.clone(), bounds).expect("it is new");
    let mut host = Host::new(&drive, seed);
    drive = host.work(drive, DEEDS / 2);
    drop(drive);
    let mut drive = open(medium.clone(), bounds).expect("it was killed");
    drive = host.work(drive, DEEDS / 2);
    drive.shut_down().expect("memory takes it");
    (made, medium.with(Recorder::take_events))
}

/// Opens what a kill left, and judges it.
fn judge(image: &Memory, flips: bool, what: &str) {
    assert_eq!(findings(image, what), [], "{what}: before it is opened");
    let medium = Shared::new(image.clone());
    let mut drive = open(medium.clone(), Bounds::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(drive.store_mut().notices(), <[String; 0]>::default(), "{what}");
    let expected = contents(&mut drive);
    drop(drive);
    let mended = medium.with(|medium| medium.clone());
    assert_eq!(findings(&mended, what), [], "{what}: once it was opened");
    for (image, is_mended) in [(image, false), (&mended, true)].into_iter().filter(|_| flips) {
        for piece in used(image) {
            if matches!(piece.what, Use::SectorTable | Use::Contents) {
                continue;
            }
            let what = format!("{what}, {piece:?} is spoilt");
            let mut spoilt = image.clone();
            flip(&mut spoilt, piece.offset + piece.bytes / 2);
            let mut drive = open(spoilt, Bounds::default()).unwrap_or_else(|error| panic!("{what}: {error}"));
            // Before it is opened the only copy of a record that nobody was told of may be spoilt.
            assert!(!is_mended || contents(&mut drive) == expected, "{what}: other contents");
        }
    }
}

fn is_mended_after_every_act(subject: &Subject, seed: u64, bounds: Bounds) -> (u64, u64) {
    let (mut image, events) = events_of(subject, seed, bounds);
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let (mut kills, mut flipped) = (0, 0);
    for (number, event) in events.iter().enumerate() {
        let Event::Act(pieces) = event else { continue };
        for (offset, bytes) in pieces {
            // Pages of contents that a kill cuts apart are for the power-loss tests.
            for (page, part) in bytes.chunks(PAGE).enumerate() {
                image.write_at(offset + (page * PAGE) as u64, part).expect("memory takes it");
                // Slots are seldom given: always after the first of the two writes of that.
                let is_entry = bytes.len() == ENTRY_BYTES;
                if !is_entry && !random.next_u64().is_multiple_of(16) {
                    continue;
                }
                let flips = random.next_u64().is_multiple_of(if is_entry { 4 } else { 24 });
                let what =
                    format!("{}, {bounds:?}: killed after event {number}, byte {offset}, page {page}", subject.what);
                judge(&image, flips, &what);
                (kills, flipped) = (kills + 1, flipped + u64::from(flips));
            }
        }
    }
    (kills, flipped)
}

#[test]
fn a_killed_drive_is_whole_and_has_all_witnesses() {
    let (mut kills, mut flipped) = (0, 0);
    let mut layers: Vec<String> = Vec::new();
    for (number, subject) in common::subjects().into_iter().enumerate() {
        if layers.contains(&subject.header.layer) {
            continue;
        }
        layers.push(subject.header.layer.clone());
        for bounds in [Bounds::default(), Bounds::SMALLEST] {
            let (killed, spoilt) = is_mended_after_every_act(&subject, number as u64, bounds);
            (kills, flipped) = (kills + killed, flipped + spoilt);
        }
    }
    println!("{kills} kills on {} layers, all witnesses spoilt one by one after {flipped} of them", layers.len());
    assert!(kills > 1000 || std::env::var("IMBREX_LAYER").is_ok(), "{kills} kills");
}
