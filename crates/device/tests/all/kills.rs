//! Goal: the next opening recovers from a kill at any instruction. The check has no findings before and after the
//! opening. After that, damage to any one copy of metadata does not prevent the opening or change the contents.
//! Method: the test records all writes to the medium of a new drive, from its first opening to its shutdown. It
//! repeats these writes piece by piece, as one thread writes, and takes an image after every piece, as a kill would
//! leave it. Some of these images are checked and opened, among them each with a half-assigned slot. In some of them,
//! every copy of metadata is damaged in turn.

use imbrex_device::check::{Finding, check_image};
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::Use;
use imbrex_device::media::memory::Memory;
use imbrex_device::verify::recorder::{Event, Recorder};
use imbrex_device::{EmulatedDrive, Media, Store};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::is_long;
use crate::common::recorded::{Host, flip, open, used};
use crate::common::{Shared, Subject};

const ACTIONS: u32 = 40;
const SECTOR: usize = 512;
/// Bytes of an entry of the directory.
const ENTRY_BYTES: usize = 16;
/// Smallest part of a write call, in bytes, that a kill leaves either written or not.
const PAGE: usize = 4096;

fn findings(image: &Memory, what: &str) -> Vec<Finding> {
    let checked = check_image(image.clone(), "image", &mut |_, _| {});
    checked.unwrap_or_else(|error| panic!("{what}: the check fails: {error}")).findings
}

/// Returns the contents of every sector of the drive, `None` for an unreadable one.
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

/// Returns a new image, and the operations on its medium while the drive is opened, works, is killed once, and is
/// shut down.
fn events_of(subject: &Subject, seed: u64, bounds: Bounds) -> (Memory, Vec<Event>) {
    let drive = subject.header.drive().expect("it was assembled before");
    let (_, store) =
        Store::create_bounded(Memory::new(), subject.header.clone(), drive, bounds).expect("memory takes it");
    let made = store.into_media();
    let medium = Shared::new(Recorder::new(made.clone()));
    let mut drive = open(medium.clone(), bounds).expect("it is new");
    let mut host = Host::new(&drive, seed);
    drive = host.work(drive, ACTIONS / 2);
    drop(drive);
    let mut drive = open(medium.clone(), bounds).expect("it was killed");
    drive = host.work(drive, ACTIONS / 2);
    drive.shut_down().expect("memory takes it");
    (made, medium.with(Recorder::take_events))
}

/// Opens the image left by a kill, and checks it.
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
            // Before the opening, the damaged copy may be the only one of a record that was not acknowledged.
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
            // A kill that cuts a page of contents apart is covered by the power-loss tests.
            for (page, part) in bytes.chunks(PAGE).enumerate() {
                image.write_at(offset + (page * PAGE) as u64, part).expect("memory takes it");
                // Slot assignments are rare, so every image between the two writes of an assignment is examined.
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
        // By turns, or both in the long form.
        let both = [Bounds::default(), Bounds::SMALLEST];
        let bounds = if is_long() { both.to_vec() } else { vec![both[layers.len() % 2]] };
        for bounds in bounds {
            let (killed, spoilt) = is_mended_after_every_act(&subject, number as u64, bounds);
            (kills, flipped) = (kills + killed, flipped + spoilt);
        }
    }
    println!("{kills} kills on {} layers, all witnesses spoilt one by one after {flipped} of them", layers.len());
    assert!(kills > 1000 || std::env::var("IMBREX_LAYER").is_ok(), "{kills} kills");
}
