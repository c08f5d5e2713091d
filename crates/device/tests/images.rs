//! Goal: an image that cannot be used is refused with the reason, and left as it was. Method: files cut short, spoilt
//! bit by bit, foreign, newer, in use; what is refused is compared byte by byte with what it was before.

mod common;

use std::path::{Path, PathBuf};

use imbrex_device::drive::create_file;
use imbrex_device::image::header::HEADER_BYTES;
use imbrex_device::image::Region;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::media::memory::Memory;
use imbrex_device::{DeviceError, EmulatedDrive, Media, Store};
use tempfile::TempDir;

const STATE: u64 = HEADER_BYTES;

fn bytes_of(mut media: Memory) -> Vec<u8> {
    let mut bytes = vec![0; media.len() as usize];
    media.read_at(0, &mut bytes).expect("memory reads");
    bytes
}

/// An image after some work.
fn worked() -> Vec<u8> {
    let subject = common::subjects_of("set-associative").swap_remove(0);
    bytes_of(common::worked(&subject, 1, 80))
}

fn file_of(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("drive.imbrex");
    std::fs::write(&path, bytes).expect("there is room");
    (folder, path)
}

/// Opens `bytes` as a file; the error, and that the file is as it was.
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

/// The error of opening `bytes` in memory.
fn error_in_memory(bytes: &[u8]) -> Option<DeviceError> {
    Store::open_to_look(Memory::with(bytes), "image").err()
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
    let mut bytes = worked();
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    let error = refused(&bytes).to_string();
    assert!(error.contains("version 2, this program reads version 1; use the one that made it"), "{error}");
}

#[test]
fn files_cut_short_are_refused() {
    let whole = worked();
    for length in [20, 100, 1000, STATE, STATE + 20, STATE + 4096 + 20, STATE + 8192, STATE + 8192 + 100] {
        let error = refused(&whole[..length as usize]);
        assert!(!matches!(error, DeviceError::Medium { .. }), "{length}: {error}");
    }
    for length in (0..whole.len()).step_by(997).chain([whole.len() - 1]) {
        assert!(error_in_memory(&whole[..length]).is_some(), "{length} of {} bytes are opened", whole.len());
    }
    let slots = refused(&whole[..whole.len() - 5000]).to_string();
    assert!(slots.contains("is cut short") && slots.contains(&whole.len().to_string()), "{slots}");
}

#[test]
fn spoilt_headers_and_states_are_refused() {
    let whole = worked();
    let length = u32::from_le_bytes(whole[12..16].try_into().expect("four bytes")) as usize;
    let header = (0..24 + length).step_by(7).chain(0..24);
    let states = [0, 4096].into_iter().flat_map(|copy| (STATE as usize + copy..).take(48));
    let mut spoilt = whole.clone();
    for at in header.chain(states) {
        for bit in [0, 3, 7] {
            spoilt[at] ^= 1 << bit;
            assert!(error_in_memory(&spoilt).is_some(), "bit {bit} of byte {at} was flipped, and it was opened");
            spoilt[at] = whole[at];
        }
    }
    spoilt[STATE as usize + 8] ^= 1;
    assert!(refused(&spoilt).to_string().contains("of the two copies of its state one is spoilt"));
}

/// A worked image, how many journal records it has, and where each lies.
fn journal() -> (Vec<u8>, Vec<u64>) {
    let bytes = worked();
    let (_, mut store) = Store::open_to_look(Memory::with(&bytes), "image").expect("it is whole");
    let records = store.journal().records();
    let place = |number: u64| {
        let mut runs = Vec::new();
        store.space_mut().runs(Region::JournalA, number * 64, 64, false, &mut runs).expect("memory reads");
        runs[0].at.expect("it was written")
    };
    (bytes, (0..records).map(place).collect())
}

#[test]
fn a_spoilt_record_that_was_durable_is_refused() {
    let (whole, places) = journal();
    // The records since the barrier before the last have no witness: they may end the journal, and nothing else.
    let witnessed = {
        let last = *places.last().expect("there are records") as usize;
        u64::from_le_bytes(whole[last + 56..last + 64].try_into().expect("eight bytes")) as usize
    };
    assert!(witnessed > 20 && witnessed < places.len(), "{witnessed} of {}", places.len());
    let mut spoilt = whole.clone();
    for (number, &at) in places.iter().enumerate() {
        for offset in [0, 5, 9, 16, 24, 40, 56, 63] {
            spoilt[at as usize + offset] ^= 0x20;
            match Store::open_to_look(Memory::with(&spoilt), "image") {
                Err(error) => {
                    assert!(number < witnessed, "record {number}: {error}");
                    let expected = format!("record {number} of its journal is spoilt, and {witnessed} were durable");
                    assert!(error.to_string().contains(&expected), "{error}");
                }
                Ok((_, store)) => {
                    assert!(number >= witnessed, "record {number} of {witnessed} durable ones was dropped silently");
                    assert_eq!(store.journal().records(), number as u64);
                }
            }
            spoilt[at as usize + offset] = whole[at as usize + offset];
        }
    }
    spoilt[places[3] as usize] ^= 1;
    refused(&spoilt);
}

#[test]
fn after_a_shutdown_every_record_is_witnessed() {
    let (bytes, places) = journal();
    let opened = Store::open(Box::new(common::Shared::new(Memory::with(&bytes))) as Box<dyn Media>, "image");
    let (drive, store) = opened.expect("it is whole");
    let mut drive = EmulatedDrive::new((drive, store));
    drive.write(0, &[7; 512 * 16], false).expect("memory takes it");
    drive.shut_down().expect("memory takes it");
    let (records, bytes) = {
        let store = drive.store_mut();
        let records = store.journal().records();
        let media = store.space_mut().media_mut();
        let mut bytes = vec![0; media.len() as usize];
        media.read_at(0, &mut bytes).expect("memory reads");
        (records, bytes)
    };
    assert!(records > places.len() as u64, "the write left no record");
    let (_, mut store) = Store::open_to_look(Memory::with(&bytes), "image").expect("it is whole");
    let mut runs = Vec::new();
    store.space_mut().runs(Region::JournalA, (records - 1) * 64, 64, false, &mut runs).expect("memory reads");
    let mut spoilt = bytes;
    spoilt[runs[0].at.expect("it was written") as usize + 30] ^= 1;
    let error = error_in_memory(&spoilt).expect("the last record is missed");
    assert!(error.to_string().contains(&format!("record {} of its journal", records - 1)), "{error}");
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
    assert!(error.contains("exists"), "{error}");
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
    assert!(error.contains("to be looked at only"), "{error}");
    assert!(before.is_empty() || std::fs::read(&path).expect("it is there") == before);
}

#[test]
fn a_making_that_is_cut_short_leaves_an_empty_drive_or_none() {
    use imbrex_device::media::crashing::{Crashing, Survivors};
    use imbrex_device::verify::recorder::Recorder;
    let header = common::subjects_of("set-associative").swap_remove(0).header;
    let (_, mut store) = Store::create(Recorder::new(Memory::new()), header).expect("memory takes it");
    let mut medium = Crashing::new(Memory::new(), 512);
    for event in store.space_mut().media_mut().take_events() {
        event.apply(&mut medium);
        for torn in 1..=medium.last_sectors().max(1) {
            let kept = vec![true; medium.acts()];
            let image = medium.cut(&Survivors { kept, torn_sectors: (medium.acts() > 0).then_some(torn) });
            match Store::open_to_look(image, "image") {
                Ok((_, store)) => assert_eq!(store.journal().records(), 0),
                Err(error) => assert!(!matches!(error, DeviceError::Medium { .. }), "{error}"),
            }
        }
    }
    Store::open_to_look(medium.whole().clone(), "image").expect("the making ended");
}
