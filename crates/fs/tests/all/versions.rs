//! Goal: stores of earlier formats remain usable. They can be mounted read-only unchanged, are written only after an
//! upgrade, and an upgrade changes nothing but the format. Stores of version 0.1, which have the format of today, are
//! mounted for writing as they are. Method: a store of each kind, kept as the program of that format or release left it,
//! with known files.
//!
//! Each was made with `imbrex fs mkfs` on an image of `strict-append`, on one of `caveat-1g`, and as `--store log
//! --parity 1` on three files of 48 MiB with two of `--meta-size 4MiB`. It was mounted with `-o time=none`, filled as
//! [`EXPECTED`] tells, unmounted, and mounted again. Then `folder/deep/gone` was removed, `edge` renamed to
//! `folder/moved`, 5,000 bytes of `large` from 15,000 on overwritten, and `late` made. After an fsync of these files
//! the server was killed, so records of the log lie behind the checkpoint.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use imbrex_device::EmulatedDrive;
use imbrex_device::snapshot::adopt;
use imbrex_fs::core::{MountOptions, Mounted};
use imbrex_fs::device::emulated::Emulated;
use imbrex_fs::device::file::FileBackend;
use imbrex_fs::format::superblock::FORMAT;
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Device, Executor, Fs, FsError};

/// The devices of each store.
const FIXTURES: [&[&str]; 3] = [
    &["format-8-strict-append"],
    &["format-8-caveat"],
    &["format-8-log-d0", "format-8-log-d1", "format-8-log-d2", "format-8-log-m0", "format-8-log-m1"],
];

/// The devices of each store of version 0.1 of the program.
const OF_RELEASE_0_1: [&[&str]; 3] = [
    &["release-0.1-strict-append"],
    &["release-0.1-caveat"],
    &["release-0.1-log-d0", "release-0.1-log-d1", "release-0.1-log-d2", "release-0.1-log-m0", "release-0.1-log-m1"],
];

/// Contents of a directory entry in the expected listing.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Entry {
    Folder,
    Link(&'static str),
    /// Permissions, number of links, and bytes as runs of one value.
    File(u32, u32, &'static [(u8, usize)]),
}

const EXPECTED: [(&str, Entry); 10] = [
    ("folder", Entry::Folder),
    ("folder/deep", Entry::Folder),
    ("folder/inner", Entry::File(0o644, 1, &[(b'd', 70_001)])),
    ("folder/moved", Entry::File(0o644, 1, &[(b'b', 4096)])),
    ("folder/twin", Entry::File(0o644, 2, &[(b'a', 100)])),
    ("holey", Entry::File(0o644, 1, &[(b'f', 4096), (0, 295_904)])),
    ("large", Entry::File(0o644, 1, &[(b'c', 15_000), (b'g', 5000), (b'c', 1_480_000)])),
    ("late", Entry::File(0o600, 1, &[(b'h', 20_000)])),
    ("link", Entry::Link("folder/inner")),
    ("small", Entry::File(0o644, 2, &[(b'a', 100)])),
];

fn unpacked(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    let unpack = |name: &&str| {
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format!("{name}.img.zst"));
        let path = folder.join(name);
        let bytes = zstd::decode_all(std::fs::File::open(packed).unwrap()).unwrap();
        // Blocks of zeros are left out, which is most of the file.
        let file = std::fs::File::create(&path).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        for (number, piece) in bytes.chunks(4096).enumerate().filter(|(_, piece)| piece.iter().any(|byte| *byte != 0)) {
            std::os::unix::fs::FileExt::write_all_at(&file, piece, number as u64 * 4096).unwrap();
        }
        if is_image(&path) {
            adopt(&path).unwrap();
        }
        path
    };
    names.iter().map(unpack).collect()
}

fn is_image(path: &Path) -> bool {
    std::fs::read(path).unwrap().starts_with(b"IMBREX")
}

fn opened(executor: &Executor, paths: &[PathBuf], is_writable: bool) -> Vec<Device> {
    let open = |path: &PathBuf| -> Device {
        let name = path.file_name().unwrap().to_str().unwrap();
        match (is_image(path), is_writable) {
            (true, true) => emulated(executor, name, EmulatedDrive::open_file(path, false).unwrap()),
            (true, false) => emulated(executor, name, EmulatedDrive::open_file_to_look(path).unwrap()),
            (false, _) => Device::new(executor, name, Box::new(FileBackend::open(path, is_writable).unwrap())),
        }
    };
    paths.iter().map(open).collect()
}

fn emulated(executor: &Executor, name: &str, drive: EmulatedDrive) -> Device {
    Device::new(executor, name, Box::new(Emulated::new(drive).unwrap()))
}

/// Mounts the devices at `paths`, and runs `work` on the file system.
fn with_mounted<T: 'static>(
    paths: &[PathBuf],
    options: MountOptions,
    work: impl AsyncFnOnce(Fs, Mounted) -> T + 'static,
) -> Result<T, FsError> {
    let executor = Executor::in_virtual_time();
    let devices = opened(&executor, paths, !options.read_only);
    let (own, inner) = (executor.clone(), devices.clone());
    let outcome = executor.run(async move {
        let (fs, mounted) = Fs::mount(&own, &inner, &options).await?;
        let done = work(fs.clone(), mounted).await;
        fs.unmount().await.map(|()| done)
    });
    executor.shut_down();
    devices.iter().for_each(|device| device.shut_down().unwrap());
    outcome.unwrap()
}

/// Returns every path with its mode, number of links, and bytes.
async fn read_all(fs: &Fs) -> BTreeMap<String, (u32, u32, Vec<u8>)> {
    let (mut found, mut left) = (BTreeMap::new(), vec![(String::new(), ROOT)]);
    while let Some((above, directory)) = left.pop() {
        for entry in fs.list(directory, 2, usize::MAX).unwrap() {
            let path = format!("{above}{}", String::from_utf8(entry.name.to_vec()).unwrap());
            let attributes = fs.attr(entry.inode).unwrap().attributes;
            let bytes = match attributes.mode & 0o170_000 {
                0o040_000 => {
                    left.push((format!("{path}/"), entry.inode));
                    Vec::new()
                }
                0o120_000 => fs.read_link(entry.inode).unwrap().to_vec(),
                _ => fs.read(entry.inode, 0, 1 << 24).await.unwrap(),
            };
            if path == "small" {
                assert_eq!(&fs.attribute(entry.inode, b"user.note").unwrap()[..], b"kept");
            }
            found.insert(path, (attributes.mode, attributes.links, bytes));
        }
    }
    found
}

fn assert_is_as_written(found: &BTreeMap<String, (u32, u32, Vec<u8>)>, what: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), EXPECTED.map(|(path, _)| path), "{what}");
    for (path, expected) in &EXPECTED {
        let (mode, links, bytes) = &found[*path];
        match expected {
            Entry::Folder => assert_eq!(mode & 0o170_000, 0o040_000, "{what}: {path}"),
            Entry::Link(target) => assert_eq!((mode & 0o170_000, &bytes[..]), (0o120_000, target.as_bytes()), "{what}"),
            Entry::File(permissions, names, runs) => {
                assert_eq!((*mode, links), (0o100_000 | permissions, names), "{what}: {path}");
                let expected: Vec<u8> = runs.iter().flat_map(|(value, count)| vec![*value; *count]).collect();
                assert!(*bytes == expected, "{what}: {path} holds other bytes");
            }
        }
    }
}

fn read_only() -> MountOptions {
    MountOptions { read_only: true, ..MountOptions::default() }
}

fn is_found_as_written(paths: &[PathBuf], format: u32) {
    let (found, of_format) =
        with_mounted(paths, read_only(), async |fs: Fs, _| (read_all(&fs).await, fs.superblock().format)).unwrap();
    assert_is_as_written(&found, paths[0].to_str().unwrap());
    assert_eq!(of_format, format);
}

#[test]
fn a_store_of_an_older_format_is_read_as_it_is_and_not_written() {
    for names in FIXTURES {
        let folder = tempfile::tempdir().unwrap();
        let paths = unpacked(folder.path(), names);
        is_found_as_written(&paths, 8);
        let before: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
        is_found_as_written(&paths, 8);
        let refused = with_mounted(&paths, MountOptions::default(), async |_, _| ()).unwrap_err().to_string();
        assert!(refused.contains("has format 8") && refused.contains("imbrex fs upgrade"), "{refused}");
        // An emulated drive that is opened for writing notes that in its image.
        for (path, before) in paths.iter().zip(before).filter(|(path, _)| !is_image(path)) {
            assert!(std::fs::read(path).unwrap() == before, "{} was written", path.display());
        }
        is_found_as_written(&paths, 8);
    }
}

#[test]
fn an_upgrade_changes_nothing_but_the_format() {
    for names in FIXTURES {
        let folder = tempfile::tempdir().unwrap();
        let paths = unpacked(folder.path(), names);
        let options = MountOptions { upgrades: true, ..MountOptions::default() };
        let found = with_mounted(&paths, options, async |fs: Fs, _| read_all(&fs).await).unwrap();
        assert_is_as_written(&found, names[0]);
        is_found_as_written(&paths, FORMAT);
        let look = async |_, mounted: Mounted| (mounted.records, mounted.lost_from, mounted.outdated_copies.len());
        let mounted = with_mounted(&paths, MountOptions::default(), look).unwrap();
        assert_eq!(mounted, (0, None, 0), "{}: the upgrade took a checkpoint", names[0]);
        is_found_as_written(&paths, FORMAT);
    }
}

#[test]
fn a_store_of_release_0_1_is_recovered_and_takes_writes() {
    for names in OF_RELEASE_0_1 {
        let folder = tempfile::tempdir().unwrap();
        let paths = unpacked(folder.path(), names);
        let find = async |fs: Fs, mounted: Mounted| (read_all(&fs).await, mounted.records, mounted.lost_from);
        let (found, records, lost_from) = with_mounted(&paths, read_only(), find).unwrap();
        assert_is_as_written(&found, names[0]);
        assert!(records > 0 && lost_from.is_none(), "{}: {records} records, lost from {lost_from:?}", names[0]);
        let write = async |fs: Fs, _| {
            let inode = fs.lookup(ROOT, b"late").unwrap().inode;
            fs.write(inode, 0, &[b'h'; 10_000]).await.unwrap();
            fs.fsync(inode).await.unwrap();
        };
        with_mounted(&paths, MountOptions::default(), write).unwrap();
        is_found_as_written(&paths, FORMAT);
    }
}
