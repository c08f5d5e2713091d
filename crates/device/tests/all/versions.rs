//! Goal: images of earlier versions remain usable. Those of an older format open read-only, and an upgrade changes only
//! the version; those of version 0.1 open for writing as they are. Method: images as written by the program of that
//! version or release, with known contents.
//!
//! Each was made with `imbrex serve IMAGE --time none` and `qemu-io`, in this order: `write -P 0x11 0 64k`, `write -P
//! 0x22 1M 128k`, `write -P 0x33 3M 8k`, `write -P 0x44 1088k 4k`, `write -P 0x55 200M 4k`, `discard 3M 4k`, `flush`.
//! The killed ones continue with `write -P 0x66 0 4k`, `write -P 0x77 400M 8k`, `flush`, `write -f -P 0x12 64k 4k`,
//! then SIGKILL.

use std::path::{Path, PathBuf};

use imbrex_device::check::check_image;
use imbrex_device::image::Header;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::media::overlay::Overlay;
use imbrex_device::snapshot::adopt;
use imbrex_device::upgrade::upgrade_file;
use imbrex_device::{DeviceError, EmulatedDrive};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Name of each image, whether it was killed, and whether its layer keeps trims.
const FIXTURES: [(&str, bool, bool); 4] = [
    ("version-2-media-cache", false, true),
    ("version-2-media-cache-killed", true, true),
    ("version-2-imr", true, false),
    ("version-2-flash", false, false),
];

/// Images of version 0.1 of the program, which have version 3 of the format: name, killed, keeps trims.
const OF_RELEASE_0_1: [(&str, bool, bool); 5] = [
    ("release-0.1-media-cache", false, true),
    ("release-0.1-media-cache-killed", true, true),
    ("release-0.1-imr", true, false),
    ("release-0.1-set-associative", true, true),
    ("release-0.1-flash", false, false),
];

/// Returns the runs of known bytes: offset, length, value.
fn known(was_killed: bool, trims: bool) -> Vec<(u64, u64, u8)> {
    let mut known = vec![
        (4 * KIB, 60 * KIB, 0x11),
        (MIB, 64 * KIB, 0x22),
        (1088 * KIB, 4 * KIB, 0x44),
        (1092 * KIB, 60 * KIB, 0x22),
        (3 * MIB, 4 * KIB, if trims { 0 } else { 0x33 }),
        (3 * MIB + 4 * KIB, 4 * KIB, 0x33),
        (200 * MIB, 4 * KIB, 0x55),
        (300 * MIB, 4 * KIB, 0),
    ];
    match was_killed {
        true => known.extend([(0, 4 * KIB, 0x66), (400 * MIB, 8 * KIB, 0x77), (64 * KIB, 4 * KIB, 0x12)]),
        false => known.extend([(0, 4 * KIB, 0x11), (64 * KIB, 4 * KIB, 0)]),
    }
    known
}

fn unpacked(folder: &Path, name: &str) -> PathBuf {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.img.zst"));
    let bytes = zstd::decode_all(std::fs::File::open(packed).expect("it is kept here")).expect("it is whole");
    let path = folder.join("drive.img");
    std::fs::write(&path, bytes).expect("there is room");
    path
}

fn is_as_written(drive: &mut EmulatedDrive, (name, was_killed, trims): (&str, bool, bool)) {
    for (offset, length, value) in known(was_killed, trims) {
        let mut bytes = vec![1; length as usize];
        drive.read(offset, &mut bytes).unwrap_or_else(|error| panic!("{name}, at {offset}: {error}"));
        assert!(bytes.iter().all(|byte| *byte == value), "{name}, at {offset}: {} and not {value}", bytes[0]);
    }
}

/// Checks that nothing in the image is damaged, and that it keeps its contents and a further write.
fn is_sound_and_takes_writes(path: &Path, fixture: (&str, bool, bool)) {
    let (name, ..) = fixture;
    let media = Overlay::new(FileMedium::open(path, Mode::Read, false).expect("it opens"));
    let checked = check_image(media, "image", &mut |_, _| {}).expect("it opens");
    assert_eq!(checked.findings, [], "{name}");
    let mut drive = EmulatedDrive::open_file(path, false).expect("it is worked on");
    is_as_written(&mut drive, fixture);
    drive.write(5 * MIB, &[9; 8192], true).expect("it takes writes");
    drive.shut_down().expect("it ends");
    drop(drive);
    let mut drive = EmulatedDrive::open_file(path, false).expect("it opens again");
    is_as_written(&mut drive, fixture);
    let mut bytes = [0; 8192];
    drive.read(5 * MIB, &mut bytes).expect("it reads");
    assert_eq!(bytes, [9; 8192], "{name}");
}

fn version(path: &Path) -> u32 {
    let mut medium = FileMedium::open(path, Mode::Read, false).expect("it opens");
    Header::read(&mut medium, "image").expect("it has a header").version
}

#[test]
fn an_older_image_opens_read_only_and_stays_as_it_is() {
    for fixture in FIXTURES {
        let (name, ..) = fixture;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = unpacked(folder.path(), name);
        let before = std::fs::read(&path).expect("it is there");
        let mut drive = EmulatedDrive::open_file_to_look(&path).expect("it opens");
        is_as_written(&mut drive, fixture);
        drop(drive);
        let refused = EmulatedDrive::open_file(&path, false).map(drop).expect_err("it is only read").to_string();
        assert!(refused.contains("version 2") && refused.contains("imbrex drive upgrade"), "{refused}");
        assert!(std::fs::read(&path).expect("it is there") == before, "{name} was written");
    }
}

#[test]
fn an_upgrade_keeps_contents_identity_and_room() {
    for fixture in FIXTURES {
        let (name, ..) = fixture;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = unpacked(folder.path(), name);
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("it is ours");
        let mut told = (0, 0);
        let upgraded = upgrade_file(&path, |done, all| told = (done, all)).expect("it is converted");
        assert_eq!((upgraded.from, upgraded.to, version(&path)), (2, 3, 3), "{name}");
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).expect("it is there").permissions());
        assert_eq!(mode & 0o777, 0o600, "{name}: nobody else may read it now");
        assert!(told.0 == told.1 && told.1 > 0, "{told:?}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1, "nothing else is left");
        is_sound_and_takes_writes(&path, fixture);
        let again = upgrade_file(&path, |_, _| ()).expect_err("it is of this version").to_string();
        assert!(again.contains("version 3 already"), "{again}");
    }
}

#[test]
fn an_image_of_release_0_1_is_sound_and_takes_writes() {
    for fixture in OF_RELEASE_0_1 {
        let (name, ..) = fixture;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = unpacked(folder.path(), name);
        adopt(&path).expect("the copy becomes an image of its own");
        is_as_written(&mut EmulatedDrive::open_file_to_look(&path).expect("it opens"), fixture);
        is_sound_and_takes_writes(&path, fixture);
    }
}

#[test]
fn an_upgrade_that_fails_leaves_the_old_image_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = unpacked(folder.path(), "version-2-imr");
    let before = std::fs::read(&path).expect("it is there");
    let holder = FileMedium::open(&path, Mode::Read, false).expect("it opens");
    let refused = upgrade_file(&path, |_, _| ()).expect_err("somebody reads it").to_string();
    assert!(refused.contains("in use by another process"), "{refused}");
    drop(holder);
    // The temporary name of the new image is already taken.
    let hidden = folder.path().join(".drive.img.unfinished");
    std::fs::write(&hidden, "somebody's own").expect("written");
    assert!(matches!(upgrade_file(&path, |_, _| ()), Err(DeviceError::Medium { .. })));
    assert_eq!(std::fs::read(&hidden).expect("it is still there"), b"somebody's own");
    assert!(std::fs::read(&path).expect("it is there") == before, "it was written");
}
