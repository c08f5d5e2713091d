//! The drive below a file system: from the number of its device through partitions, LVM and dm-crypt, by sysfs.

use std::fs;
use std::path::{Path, PathBuf};

/// A drive, and the way from a file system's device to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Below {
    /// Kernel name of the drive, such as `sda`.
    pub name: String,
    /// Folder of the drive in sysfs.
    pub folder: PathBuf,
    /// The devices in between, the uppermost first, such as `the LVM volume vg-home (dm-0)`.
    pub through: Vec<String>,
    /// Bytes from the start of the drive to the start of the file system; `None` if a mapping in between is not known.
    pub offset_bytes: Option<u64>,
}

/// Returns the table of a device-mapper device as `dmsetup table` prints it; `None` if it is not known.
pub(super) type Table<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Returns the drive below the device with this number. `sys` is the mount point of sysfs.
///
/// # Errors
///
/// The device is not a part of one drive; the text says what it is.
pub(super) fn drive_below(sys: &Path, (major, minor): (u32, u32), table: &Table<'_>) -> Result<Below, String> {
    let place = sys.join(format!("dev/block/{major}:{minor}"));
    let mut folder = fs::canonicalize(place).map_err(|_| "it is not on a block device".to_string())?;
    let (mut through, mut offset_bytes) = (Vec::new(), Some(0u64));
    let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    loop {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(file) = read(folder.join("loop/backing_file")) {
            return Err(format!("{name} is a loop device on the file {file}: make the file on that file system"));
        }
        if let Some(level) = read(folder.join("md/level")) {
            return Err(format!("{name} is a Linux RAID ({level}): probe its drives one by one"));
        }
        if ["zram", "ram", "pmem", "nbd", "rbd", "drbd", "bcache"].iter().any(|kind| name.starts_with(kind)) {
            return Err(format!("{name} is no drive of this machine"));
        }
        if folder.join("partition").exists() {
            let start = read(folder.join("start")).and_then(|text| text.parse::<u64>().ok());
            offset_bytes = offset_bytes.zip(start).map(|(offset, start)| offset + start * 512);
            through.push(format!("the partition {name}"));
            folder = folder.parent().ok_or("sysfs has no disk of the partition")?.to_path_buf();
            continue;
        }
        let Some(uuid) = read(folder.join("dm/uuid")) else {
            return Ok(Below { name, folder, through, offset_bytes });
        };
        let volume = read(folder.join("dm/name")).unwrap_or_default();
        let what = match uuid.split('-').next() {
            Some("LVM") => "LVM volume",
            Some("CRYPT") => "encrypted volume",
            _ => return Err(format!("{name} is the device-mapper device {volume}, which is neither LVM nor dm-crypt")),
        };
        let slaves: Vec<PathBuf> =
            fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        let [slave] = &slaves[..] else {
            return Err(format!("the {what} {volume} ({name}) lies on {} devices", slaves.len()));
        };
        let start = table(&volume).as_deref().and_then(start_of);
        offset_bytes = offset_bytes.zip(start).map(|(offset, start)| offset + start * 512);
        through.push(format!("the {what} {volume} ({name})"));
        folder = fs::canonicalize(slave).map_err(|error| format!("{name}: {error}"))?;
    }
}

/// Returns the first sector of a mapping of one piece on the device below, from its table: `0 LENGTH linear DEVICE START`, or
/// `0 LENGTH crypt CIPHER KEY IV DEVICE START`.
fn start_of(table: &str) -> Option<u64> {
    let mut lines = table.lines();
    let words: Vec<&str> = lines.next()?.split_whitespace().collect();
    if lines.next().is_some() || words.first() != Some(&"0") {
        return None;
    }
    match words.get(2) {
        Some(&"linear") => words.get(4)?.parse().ok(),
        Some(&"crypt") => words.get(7)?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A sysfs with devices by number.
    struct Sys(tempfile::TempDir);

    impl Sys {
        fn new() -> Sys {
            let folder = tempfile::tempdir().expect("a temporary folder");
            fs::create_dir_all(folder.path().join("dev/block")).expect("a folder");
            Sys(folder)
        }

        fn device(&self, path: &str, number: &str, files: &[(&str, &str)]) -> PathBuf {
            let folder = self.0.path().join("devices").join(path);
            fs::create_dir_all(&folder).expect("a folder");
            for (name, text) in files {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, text).expect("a file");
            }
            symlink(&folder, self.0.path().join("dev/block").join(number)).expect("a link");
            folder
        }

        fn slave(&self, of: &Path, slave: &Path) {
            fs::create_dir_all(of.join("slaves")).expect("a folder");
            symlink(slave, of.join("slaves").join(slave.file_name().expect("a name"))).expect("a link");
        }

        fn below(&self, number: (u32, u32)) -> Result<Below, String> {
            let table = |name: &str| match name {
                "vg-home" => Some("0 8192 linear 8:2 2048".to_string()),
                "secret" => Some("0 4096 crypt aes-xts-plain64 0000 0 253:0 32768 1 allow_discards".to_string()),
                "vg-two" => Some("0 10 linear 8:2 0\n10 10 linear 8:2 500".to_string()),
                _ => None,
            };
            drive_below(self.0.path(), number, &table)
        }
    }

    #[test]
    fn the_way_down_leads_through_partitions_volumes_and_encryption() {
        let sys = Sys::new();
        let disk = sys.device("sda", "8:0", &[]);
        let part = sys.device("sda/sda2", "8:2", &[("partition", "2"), ("start", "1000")]);
        let of = |uuid, name| [("dm/uuid", uuid), ("dm/name", name)];
        let home = sys.device("dm-0", "253:0", &of("LVM-x", "vg-home"));
        sys.slave(&home, &part);
        let secret = sys.device("dm-1", "253:1", &of("CRYPT-LUKS2-x", "secret"));
        sys.slave(&secret, &home);
        for (name, number, minor) in [("vg-two", "253:2", 2), ("vg-other", "253:3", 3)] {
            let volume = sys.device(&format!("dm-{minor}"), number, &of("LVM-y", name));
            sys.slave(&volume, &part);
        }
        let place = |sectors: u64| Some(sectors * 512);
        for (number, offset, ways) in [
            ((8, 0), place(0), 0),
            ((8, 2), place(1000), 1),
            ((253, 0), place(1000 + 2048), 2),
            ((253, 1), place(1000 + 2048 + 32_768), 3),
            ((253, 2), None, 2),
            ((253, 3), None, 2),
        ] {
            let below = sys.below(number).expect("one drive");
            assert_eq!(
                (below.name.as_str(), below.offset_bytes, below.through.len()),
                ("sda", offset, ways),
                "{number:?}"
            );
            assert_eq!(below.folder, fs::canonicalize(&disk).expect("it is there"));
        }
        assert_eq!(sys.below((253, 1)).expect("one drive").through[0], "the encrypted volume secret (dm-1)");
    }

    #[test]
    fn devices_that_are_not_one_drive_are_refused_with_the_reason() {
        let sys = Sys::new();
        let (one, other) = (sys.device("sda", "8:0", &[]), sys.device("sdb", "8:16", &[]));
        sys.device("loop0", "7:0", &[("loop/backing_file", "/home/image\n")]);
        sys.device("md0", "9:0", &[("md/level", "raid5\n")]);
        sys.device("nbd0", "43:0", &[]);
        let wide = sys.device("dm-0", "253:0", &[("dm/uuid", "LVM-x"), ("dm/name", "vg-wide")]);
        sys.slave(&wide, &one);
        sys.slave(&wide, &other);
        let paths = sys.device("dm-1", "253:1", &[("dm/uuid", "mpath-x"), ("dm/name", "paths")]);
        sys.slave(&paths, &one);
        for (number, says) in [
            ((7, 0), "a loop device on the file /home/image"),
            ((9, 0), "a Linux RAID (raid5)"),
            ((43, 0), "no drive of this machine"),
            ((253, 0), "lies on 2 devices"),
            ((253, 1), "neither LVM nor dm-crypt"),
            ((0, 55), "not on a block device"),
        ] {
            let refused = sys.below(number).expect_err("it is refused");
            assert!(refused.contains(says), "{number:?}: {refused}");
        }
    }
}
