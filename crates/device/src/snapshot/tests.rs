//! Goal: a snapshot of an image in use equals the image at one moment; a copy made by other means is refused. Method:
//! an image whose drive is written to while each piece is copied, and a copy made by the file system.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

use imbrex_disk::Profile;
use imbrex_sim::{Drive, DriveSpec};

use super::*;
use crate::check::check_image;
use crate::drive::{Making, create_file, header_of};
use crate::{EmulatedDrive, Store};

const SECTOR: u64 = 512;

/// Creates an image in a folder of its own.
fn image() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("image");
    let spec = DriveSpec::parse("cmr-7200:geometry.tracks=2000").expect("right words");
    let profile = Profile::named(&spec.profile).expect("it is built in");
    let drive = Drive::build(&spec, &profile).expect("it can be built");
    create_file(&path, header_of(&drive, &spec, &Making::default()).expect("it may hold data")).expect("there is room");
    (folder, path)
}

fn hosted(drive: &mut EmulatedDrive) -> std::sync::Arc<HostFile> {
    drive.store_mut().space().media().host_file().expect("it lies in a file")
}

/// Writes `byte` to sector `sector`, durably.
fn write(drive: &mut EmulatedDrive, sector: u64, byte: u8) {
    drive.write(sector * SECTOR, &[byte; SECTOR as usize], true).expect("the file takes it");
}

fn byte_of(drive: &mut EmulatedDrive, sector: u64) -> u8 {
    let mut bytes = [0; SECTOR as usize];
    drive.read(sector * SECTOR, &mut bytes).expect("it can be read");
    bytes[0]
}

/// Implementation of [`Hold`] for a drive to which the test itself writes.
struct Held<'a>(&'a RefCell<EmulatedDrive>);

impl Hold for Held<'_> {
    fn hold(&self, last_step: &mut dyn FnMut() -> Result<(), SnapshotError>) -> Result<Duration, SnapshotError> {
        write(&mut self.0.borrow_mut(), 7, 77);
        last_step().map(|()| Duration::from_nanos(1))
    }
}

#[test]
fn what_is_written_while_it_is_copied_is_in_the_copy() {
    let (folder, path) = image();
    let drive = RefCell::new(EmulatedDrive::open_file(&path, false).expect("it opens"));
    // More than one piece, so that writes occur both before and after the place that is copied.
    let bulk = vec![5; 1 << 20];
    (8..40).for_each(|at| drive.borrow_mut().write(at << 20, &bulk, true).expect("there is room"));
    let host = hosted(&mut drive.borrow_mut());
    let (copy, mut piece) = (folder.path().join("copy"), 0);
    let snapshot = of_host_file(&host, &copy, &Held(&drive), &mut |done, all| {
        assert!(done <= all, "{done} of {all}");
        let mut drive = drive.borrow_mut();
        if piece < 20 {
            write(&mut drive, 1000 + piece, piece as u8 + 1);
            write(&mut drive, (39 << 11) + piece, piece as u8 + 1);
            piece += 1;
        }
        true
    });
    let snapshot = snapshot.expect("there is room");
    assert!(piece > 4, "only {piece} pieces were copied");
    // Later writes are not in the copy.
    write(&mut drive.borrow_mut(), 1000, 99);
    let findings =
        check_image(FileMedium::open(&copy, Mode::Read, false).expect("it is there"), "copy", &mut |_, _| {});
    assert_eq!(findings.expect("it is an image").findings, []);
    let mut copied = EmulatedDrive::open_file(&copy, false).expect("it opens");
    for number in 0..piece {
        for sector in [1000 + number, (39 << 11) + number] {
            assert_eq!(byte_of(&mut copied, sector), number as u8 + 1, "sector {sector}");
        }
    }
    assert_eq!((byte_of(&mut copied, 7), byte_of(&mut copied, 20 << 11)), (77, 5));
    assert_eq!(byte_of(&mut drive.borrow_mut(), 1000), 99, "the image is as it was");
    let header = copied.store_mut().header().clone();
    assert_eq!((header.uuid, header.snapshot), (snapshot.uuid, Some(snapshot.snapshot)));
    assert_eq!(drive.borrow_mut().store_mut().header().snapshot, None);
}

#[test]
fn a_snapshot_that_is_stopped_leaves_nothing() {
    let (folder, path) = image();
    let stopped = of_file(&path, &folder.path().join("copy"), &mut |_, _| false);
    assert!(matches!(stopped, Err(SnapshotError::Interrupted)), "{stopped:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("it can be read").count(), 1);
}

/// Opens `path` in each way that gives access to data, and returns the results.
fn opened(path: &std::path::Path) -> [Result<(), DeviceError>; 4] {
    let read = || FileMedium::open(path, Mode::Read, false).expect("it can be read");
    let copy = path.with_extension("snapshot");
    let snapshot = match of_file(path, &copy, &mut |_, _| true) {
        Ok(_) => fs::remove_file(&copy).map_err(|cause| DeviceError::medium("removing", cause)),
        Err(SnapshotError::Image(error)) => Err(error),
        Err(error) => panic!("{error}"),
    };
    [
        EmulatedDrive::open_file_to_look(path).map(drop),
        check_image(read(), "image", &mut |_, _| {}).map(drop),
        snapshot,
        EmulatedDrive::open_file(path, false).map(drop),
    ]
}

#[test]
fn a_copy_of_an_image_that_was_not_closed_is_refused() {
    let (folder, path) = image();
    let at = |name: &str| folder.path().join(name);
    fs::copy(&path, at("new")).expect("there is room");
    opened(&at("new")).into_iter().for_each(|way| way.expect("it was never opened for work"));
    let mut drive = EmulatedDrive::open_file(&path, false).expect("it opens");
    write(&mut drive, 3, 3);
    fs::copy(&path, at("copied")).expect("there is room");
    for (way, outcome) in opened(&at("copied")).into_iter().enumerate() {
        let error = outcome.expect_err("it was copied while it was at work");
        assert!(matches!(error, DeviceError::CopiedUnclosed { .. }), "way {way}: {error}");
    }
    let repaired = crate::repair::repair_image(
        FileMedium::open(&at("copied"), Mode::Write, false).expect("nobody has it"),
        "copied",
        &mut |_, _| {},
    );
    assert!(matches!(repaired, Err(DeviceError::CopiedUnclosed { .. })));

    // The original opens after a kill and after a rename.
    drop(drive);
    fs::rename(&path, at("renamed")).expect("renamed");
    opened(&at("renamed")).into_iter().for_each(|way| way.expect("it is the same file"));
    // After it is adopted, the copy opens.
    assert!(adopt(&at("copied")).expect("nobody has it"));
    assert!(!adopt(&at("copied")).expect("nobody has it"), "there was nothing left to adopt");
    opened(&at("copied")).into_iter().for_each(|way| way.expect("it was adopted"));
    // A closed image can be copied by any program.
    EmulatedDrive::open_file(&at("renamed"), false).expect("it opens").shut_down().expect("it ends well");
    fs::copy(at("renamed"), at("closed")).expect("there is room");
    opened(&at("closed")).into_iter().for_each(|way| way.expect("its original was closed"));
}

#[test]
fn a_copy_that_was_begun_before_its_original_was_opened_is_refused_or_right() {
    // Writes in chunks that have slots, and in a new chunk.
    begun_before_it_was_opened(&[3, 4, 40_001]);
    begun_before_it_was_opened(&[3, 4, 40_001, 80_000]);
}

/// Simulates `cp` of an image that is closed when the copy begins. Before the copy ends, the image is opened, `second`
/// are written, and it is closed.
fn begun_before_it_was_opened(second: &[u64]) {
    let (folder, path) = image();
    let copy = folder.path().join("copy");
    let first = [3, 40_000];
    let write_all = |sectors: &[u64], byte: u8| {
        let mut drive = EmulatedDrive::open_file(&path, false).expect("it opens");
        sectors.iter().for_each(|&sector| write(&mut drive, sector, byte));
        drive.shut_down().expect("it ends well");
        fs::read(&path).expect("it can be read")
    };
    let (before, after) = (write_all(&first, 1), write_all(second, 2));
    // Contents of both images at the written sectors.
    let expected = |sector: u64, is_after: bool| match (is_after && second.contains(&sector), first.contains(&sector)) {
        (true, _) => 2,
        (false, true) => 1,
        (false, false) => 0,
    };
    let changed = (0..before.len())
        .step_by(4096)
        .filter(|&at| before[at..].iter().zip(&after[at..]).take(4096).any(|(one, other)| one != other));
    let (mut refused, mut right) = (0, 0);
    // `cp` reads from front to back: the bytes up to `cut` are of the first closed image, the rest of the second.
    for cut in changed.chain([after.len()]) {
        let mut bytes = before[..cut.min(before.len())].to_vec();
        bytes.resize(cut, 0);
        bytes.extend_from_slice(&after[cut..]);
        fs::write(&copy, &bytes).expect("there is room");
        let looked = EmulatedDrive::open_file_to_look(&copy).map(drop);
        let worked = EmulatedDrive::open_file(&copy, false);
        assert_eq!(looked.is_ok(), worked.is_ok(), "cut at {cut}: {looked:?}");
        match worked {
            Err(error) => {
                assert!(matches!(error, DeviceError::CopiedUnclosed { .. }), "cut at {cut}: {error}");
                assert!(adopt(&copy).expect("nobody has it"));
                EmulatedDrive::open_file(&copy, false).expect("it was adopted");
                refused += 1;
            }
            Ok(mut drive) => {
                let sectors = first.iter().chain(second);
                let read: Vec<(u64, u8)> = sectors.map(|&sector| (sector, byte_of(&mut drive, sector))).collect();
                let is_of = |is_after| read.iter().all(|&(sector, byte)| byte == expected(sector, is_after));
                assert!(is_of(false) || is_of(true), "cut at {cut}: {read:?}");
                right += 1;
            }
        }
    }
    assert!(refused > 3 && right > 1, "{refused} refused, {right} right");
}

#[test]
fn an_image_without_a_mark_opens_as_before() {
    let (folder, path) = image();
    let mut drive = EmulatedDrive::open_file(&path, false).expect("it opens");
    write(&mut drive, 3, 3);
    let at = drive.store_mut().space().layout().file_mark();
    let media = drive.store_mut().space_mut().media_mut();
    media.write_at(at, &[0; 24]).expect("the file takes it");
    fs::copy(&path, folder.path().join("copied")).expect("there is room");
    opened(&folder.path().join("copied")).into_iter().for_each(|way| way.expect("nothing speaks against it"));
}

#[test]
fn an_image_at_work_is_refused_by_its_path() {
    let (folder, path) = image();
    let drive = EmulatedDrive::open_file(&path, false).expect("it opens");
    let refused = of_file(&path, &folder.path().join("copy"), &mut |_, _| true);
    assert!(matches!(refused, Err(SnapshotError::Image(DeviceError::InUse { .. }))), "{refused:?}");
    drop(drive);
    let looking = Store::open_to_look(FileMedium::open(&path, Mode::Read, false).expect("it is there"), "image");
    of_file(&path, &folder.path().join("copy"), &mut |_, _| true).expect("one that only looks is no hindrance");
    drop(looking);
}
