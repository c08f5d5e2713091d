//! Goal: an unusable image is refused with the reason, and left unchanged. Method: files that are cut short, damaged
//! bit by bit, foreign, of a newer version, or in use. Each refused file is compared byte by byte with its earlier
//! contents.

use std::path::{Path, PathBuf};

use imbrex_device::drive::create_file;
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::Use;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, EmulatedDrive, Store};
use tempfile::TempDir;

use crate::common;
use crate::common::recorded::{Recorded, bytes_of, flip, journal_places, killed, open, read_all, recorded, used};

/// Returns an image after some work and an orderly shutdown.
fn worked() -> Recorded {
    recorded(&common::first_subject_of("set-associative"), 1, 80, Bounds::default())
}

fn file_of(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("drive.imbrex");
    std::fs::write(&path, bytes).expect("there is room");
    (folder, path)
}

/// Opens `bytes` as a file, which must fail and leave the file unchanged. Returns the error.
fn refused(bytes: &[u8]) -> DeviceError {
    let (_folder, path) = file_of(bytes);
    let error = match EmulatedDrive::open_file(&path, false) {
        Err(error) => error,
        Ok(_) => panic!("it was opened"),
    };
    assert!(std::fs::read(&path).expect("it is there") == bytes, "a refused file was changed: {error}");
    assert!(error.to_string().starts_with(&path.display().to_string()), "no place: {error}");
    error
}

#[test]
fn foreign_files_are_refused() {
    for bytes in [b"".as_slice(), b"IMBREX", b"a letter to a friend", &[0; 100_000], &[0xff; 100_000]] {
        let error = refused(bytes);
        assert!(matches!(&error, DeviceError::Image { .. }), "{error}");
        assert!(error.to_string().contains("is not an Imbrex image"), "{error}");
    }
}

#[test]
fn a_newer_version_is_refused() {
    let image = worked().image;
    let copies: Vec<u64> =
        used(&image).iter().filter(|used| used.what == Use::Header).map(|used| used.offset).collect();
    assert_eq!(copies.len(), 3);
    let mut bytes = bytes_of(image);
    for copy in copies {
        bytes[copy as usize + 8..copy as usize + 12].copy_from_slice(&4u32.to_le_bytes());
    }
    let error = refused(&bytes).to_string();
    assert!(error.contains("version 4, this program reads versions 2 to 3; use the one that made it"), "{error}");
}

#[test]
fn files_cut_short_bring_errors_and_never_zeros() {
    // A drive whose journal lies in the first slots, and one without a journal.
    for layer in ["set-associative", "conventional"] {
        cut_everywhere(&recorded(&common::first_subject_of(layer), 1, 80, Bounds::default()));
    }
}

fn cut_everywhere(Recorded { image, right }: &Recorded) {
    let whole = bytes_of(image.clone());
    let (mut opened, mut shut) = (0, 0);
    for length in (0..whole.len()).step_by(997).chain([20, 100, 1000, whole.len() - 1]) {
        match open(Memory::with(&whole[..length]), Bounds::default()) {
            Err(error) => {
                assert!(matches!(error, DeviceError::Image { .. } | DeviceError::Damaged { .. }), "{length}: {error}");
                shut += 1;
            }
            Ok(mut drive) => {
                assert!(drive.store_mut().notices().iter().any(|notice| notice.contains("is cut short")), "{length}");
                assert!(read_all(&mut drive, right).wrong.is_empty(), "cut to {length} bytes of {}", whole.len());
                opened += 1;
            }
        }
    }
    assert!(opened > 0 && shut > 0, "{opened} opened, {shut} shut");
    for length in [20, 100, 1000, 70_000] {
        let error = refused(&whole[..length]);
        assert!(!matches!(error, DeviceError::Medium { .. }), "{length}: {error}");
    }
}

#[test]
fn a_record_whose_two_copies_are_spoilt_is_refused_wherever_it_is() {
    let image = worked().image;
    let places = journal_places(&image);
    assert!(places[0].len() > 20, "{} records", places[0].len());
    for number in 0..places[0].len() {
        for offset in [0, 5, 9, 16, 24, 40, 56, 63] {
            let mut spoilt = image.clone();
            places.iter().for_each(|copy| flip(&mut spoilt, copy[number] + offset));
            let error = Store::open_to_look(spoilt, "image").expect_err("a durable record is dropped").to_string();
            let says = format!("both copies of record {number} of its journal are spoilt, and {}", places[0].len());
            assert!(error.contains(&says) && error.contains("--repair"), "{error}");
        }
    }
    let mut spoilt = image;
    places.iter().for_each(|copy| flip(&mut spoilt, copy[3]));
    refused(&bytes_of(spoilt));
}

#[test]
fn a_killed_drive_opened_to_look_reads_all_that_was_acknowledged() {
    for layer in ["region-rmw", "track-flip", "track-cache", "set-associative"] {
        for (number, subject) in common::subjects_of(layer).iter().enumerate() {
            let Recorded { image, right } = killed(subject, number as u64, 120);
            let bytes = bytes_of(image);
            let (_folder, path) = file_of(&bytes);
            let mut drive = EmulatedDrive::open_file_to_look(&path).unwrap_or_else(|error| panic!("{error}"));
            let readings = read_all(&mut drive, &right);
            assert_eq!((readings.wrong, readings.errors), (vec![], vec![]), "{}", subject.what);
            drop(drive);
            assert!(std::fs::read(&path).expect("it is there") == bytes, "{}: the file was changed", subject.what);
        }
    }
}

fn made(path: &Path) -> Store<FileMedium> {
    let header = common::subjects_of("set-associative").swap_remove(0).header;
    create_file(path, header).expect("there is room").1
}

#[test]
fn one_image_is_open_once() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("drive.imbrex");
    let store = made(&path);
    let error = EmulatedDrive::open_file(&path, false).err().expect("it is in use").to_string();
    assert!(error.contains("is in use by another process"), "{error}");
    let error = FileMedium::open(&path, Mode::Read, false).expect_err("who looks would see it change").to_string();
    assert!(error.contains("which writes to it"), "{error}");
    drop(store);
    let first = FileMedium::open(&path, Mode::Read, false).expect("nobody works on it");
    FileMedium::open(&path, Mode::Read, false).expect("two may look");
    assert!(FileMedium::open(&path, Mode::Write, false).is_err());
    drop(first);
    FileMedium::open(&path, Mode::Write, false).expect("it is free");
    let error = create_file(&path, common::subjects().swap_remove(0).header).expect_err("there is one").to_string();
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn a_file_that_does_not_open_says_what_to_do() {
    let folder = tempfile::tempdir().expect("there is room");
    let said = |path: &Path| FileMedium::open(path, Mode::Write, false).expect_err("it does not open").to_string();
    let missing = said(&folder.path().join("none"));
    assert!(missing.contains("imbrex drive create"), "{missing}");
    assert!(said(folder.path()).contains("is a folder"));
}

#[test]
fn an_image_that_may_only_be_read_is_looked_at_but_not_worked_on() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("drive.imbrex");
    drop(made(&path));
    let before = std::fs::read(&path).expect("it is there");
    let mut permissions = std::fs::metadata(&path).expect("it is there").permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&path, permissions).expect("it is ours");
    match EmulatedDrive::open_file(&path, false) {
        Err(error) => assert!(error.to_string().contains("denied"), "{error}"),
        Ok(_) => eprintln!("skipped: this user may write to files that are read-only"),
    }
    let before = if std::fs::read(&path).expect("it is there") == before { before } else { Vec::new() };
    let look = || FileMedium::open(&path, Mode::Read, false).expect("it may be read");
    Store::open_to_look(look(), "image").expect("it is whole");
    let error = Store::open(look(), "image").expect_err("it cannot be mended").to_string();
    assert!(error.contains("the image is open read-only"), "{error}");
    assert!(before.is_empty() || std::fs::read(&path).expect("it is there") == before);
}

#[test]
fn a_making_that_is_cut_short_leaves_an_empty_drive_or_none() {
    use imbrex_device::media::crashing::Crashing;
    use imbrex_device::verify::recorder::Recorder;
    let header = common::subjects_of("set-associative").swap_remove(0).header;
    let (_, mut store) = Store::create(Recorder::new(Memory::new()), header).expect("memory takes it");
    let mut medium = Crashing::new(Memory::new(), 512);
    for event in store.space_mut().media_mut().take_events() {
        event.apply(&mut medium);
        let newest = medium.acts().checked_sub(1);
        for torn in 1..=newest.map_or(1, |newest| medium.blocks_of(newest)) {
            let image = medium.cut(|act, block| newest != Some(act) || block < torn);
            match Store::open_to_look(image, "image") {
                Ok((_, store)) => assert_eq!(store.journal().records(), 0),
                Err(error) => assert!(!matches!(error, DeviceError::Medium { .. }), "{error}"),
            }
        }
    }
    Store::open_to_look(medium.whole().clone(), "image").expect("the making ended");
}
