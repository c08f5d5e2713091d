//! Goal: a medium that changes while a drive works never causes wrong bytes to be returned. If another process
//! truncates the file, this is detected before the drive is shut down as valid. Method: images with known contents
//! are opened and used, and damaged meanwhile.

use std::path::{Path, PathBuf};

use imbrex_device::image::Bounds;
use imbrex_device::image::regions::Use;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::{DeviceError, EmulatedDrive, Media};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::Shared;
use crate::common::damage::Damage;
use crate::common::recorded::{Host, Recorded, bytes_of, open, read_all, recorded, used};

#[test]
fn a_medium_that_changes_under_a_drive_brings_errors_and_never_other_bytes() {
    let mut errors = 0;
    for (number, subject) in common::subjects().iter().enumerate() {
        let bounds = if number % 2 == 0 { Bounds::SMALLEST } else { Bounds::default() };
        let Recorded { image, right } = recorded(subject, number as u64, 80, bounds);
        let (pieces, whole) = (used(&image), bytes_of(image.clone()));
        let mut random = Xoshiro256StarStar::seed_from_u64(number as u64);
        for (turn, what) in [Use::SectorTable, Use::Contents, Use::Contents].into_iter().cycle().take(6).enumerate() {
            let damage = Damage::draw(&mut random, &pieces, what, turn as u64);
            let place = format!("{}, {damage:?}", subject.what);
            let medium = Shared::new(image.clone());
            let mut drive = open(medium.clone(), bounds).expect("it is whole");
            // In half of the cases the sector tables are already in memory.
            if turn % 2 == 0 {
                assert!(read_all(&mut drive, &right).errors.is_empty(), "{place}");
            }
            medium.with(|medium| *medium = damage.applied(&whole));
            let readings = read_all(&mut drive, &right);
            assert!(readings.wrong.is_empty(), "{place}: {:?}", readings.wrong);
            errors += readings.errors.len();
            // Later writes either succeed with correct contents or fail.
            let mut host = Host::of(right.clone(), 5);
            if let Ok(mut drive) = host.write_all(drive) {
                let readings = read_all(&mut drive, &host.right);
                assert!(readings.wrong.is_empty(), "{place}: {:?}", readings.wrong);
            }
        }
    }
    assert!(errors > 50, "{errors} sectors were errors: the damage did nothing");
}

/// Returns a drive with known contents in a file.
fn in_file(layer: &str) -> (tempfile::TempDir, PathBuf, Recorded, u64) {
    let recorded = recorded(&common::first_subject_of(layer), 11, 90, Bounds::default());
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("drive.imbrex");
    std::fs::write(&path, bytes_of(recorded.image.clone())).expect("there is room");
    let slots = used(&recorded.image).into_iter().filter(|used| used.what == Use::SlotHeader);
    let middle: Vec<u64> = slots.map(|used| used.offset).collect();
    let cut_at = middle[middle.len() / 2];
    (folder, path, recorded, cut_at)
}

fn cut(path: &Path, bytes: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("it is there");
    file.set_len(bytes).expect("a file can be cut");
}

#[test]
fn a_file_cut_short_under_a_drive_is_found_out() {
    for layer in ["conventional", "region-rmw", "track-flip", "set-associative", "log-structured"] {
        let (_folder, path, Recorded { right, .. }, cut_at) = in_file(layer);
        let mut drive = EmulatedDrive::open_file(&path, false).expect("it is whole");
        cut(&path, cut_at);
        let readings = read_all(&mut drive, &right);
        assert!(readings.wrong.is_empty() && !readings.errors.is_empty(), "{layer}: {:?}", readings.wrong);
        let error = drive.shut_down().expect_err("it lost its end").to_string();
        assert!(error.contains("was cut short while in use") && error.contains("--repair"), "{layer}: {error}");
        // A drive that writes first does not lengthen the file to its old size, and also gets the error.
        let (_folder, path, recorded, cut_at) = in_file(layer);
        let drive = EmulatedDrive::open_file(&path, false).expect("it is whole");
        cut(&path, cut_at);
        let mut host = Host::of(recorded.right, 2);
        let outcome = host.write_all(drive).and_then(|mut drive| drive.shut_down());
        let error = outcome.expect_err("it lost its end").to_string();
        assert!(error.contains("was cut short while in use"), "{layer}: {error}");
    }
}

#[test]
fn a_file_medium_never_gives_zeros_for_what_was_cut_away() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("bytes");
    std::fs::File::create_new(&path).expect("there is room");
    let mut medium = FileMedium::open(&path, Mode::Write, false).expect("it is free");
    medium.write_at(0, &[7; 10_000]).expect("there is room");
    let mut bytes = [1; 100];
    medium.read_at(10_000, &mut bytes).expect("past the end of all that was written");
    assert_eq!(bytes, [0; 100]);
    cut(&path, 5000);
    for at in [4950, 5000, 9900] {
        let error = medium.read_at(at, &mut bytes).expect_err("it was cut away").to_string();
        assert!(error.contains("5000 bytes of 10000"), "{error}");
    }
    medium.read_at(4900, &mut bytes).expect("it is there");
    assert!(medium.flush().is_err(), "a flush would promise what is not there");
    assert!(medium.write_at(9900, &[1; 100]).is_err() && medium.write_at(20_000, &[1]).is_err(), "it would hide it");
    medium.write_at(0, &[8; 100]).expect("it is there");
    assert!(matches!(DeviceError::medium("x", medium.flush().expect_err("still")), DeviceError::Medium { .. }));
}
