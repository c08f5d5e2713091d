//! Users of a block device or a file: mounts, swap, stacked devices, loop devices, locks. Also the kernel's facts about
//! the device.
//!
//! Everything is read from `/proc` and `/sys`; tests replace these folders. Uses that are not visible there (a
//! container without `/sys`) are caught when the device is opened exclusively ([`super::survey::open_for_writing`]).

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Contents;

/// The mount points of procfs and sysfs: `/proc` and `/sys` by default, other folders in tests.
#[derive(Clone, Debug)]
pub struct Kernel {
    proc: PathBuf,
    sys: PathBuf,
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// A block device (whole disk or partition) that the running kernel lists in sysfs.
#[derive(Clone, Debug)]
pub struct Device {
    /// Kernel name of the device without `/dev/`, such as `sda1`.
    pub name: String,
    /// The device's folder in sysfs, with all links resolved.
    folder: PathBuf,
}

impl Device {
    /// Returns the block device with the device number `number` (`st_rdev` of its device file).
    ///
    /// # Errors
    ///
    /// `NotFound` if `/sys/dev/block` has no such device.
    pub fn of(number: u64) -> io::Result<Device> {
        Device::in_kernel(&Kernel::default(), number)
    }

    fn in_kernel(kernel: &Kernel, number: u64) -> io::Result<Device> {
        let (major, minor) = (libc::major(number), libc::minor(number));
        let folder = fs::canonicalize(kernel.sys.join(format!("dev/block/{major}:{minor}")))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Device { name, folder })
    }

    /// Returns whether the device is a partition of another device.
    pub fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// Returns the sysfs folder of the whole device: of a partition, the folder of its disk.
    pub fn whole_folder(&self) -> PathBuf {
        match self.folder.parent() {
            Some(parent) if self.is_partition() => parent.to_path_buf(),
            _ => self.folder.clone(),
        }
    }

    /// Returns the text of a file of the device in sysfs, such as `queue/rotational`; of a partition, that of its disk. `None` if
    /// the file does not exist or is empty.
    pub fn attribute(&self, file: &str) -> Option<String> {
        self.of_whole(file)
    }

    fn of_whole(&self, file: &str) -> Option<String> {
        let text = fs::read(self.whole_folder().join(file)).ok()?;
        let text =
            String::from_utf8_lossy(&text).trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_string();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the size of a logical sector in bytes; 512 if sysfs does not state the size.
    pub fn sector_bytes(&self) -> u32 {
        self.of_whole("queue/logical_block_size").and_then(|text| text.parse().ok()).unwrap_or(512)
    }

    /// Returns whether the device, or the disk of a partition, is a host-managed zoned device: sequential zones must be
    /// written at their write pointers.
    pub fn is_host_managed(&self) -> bool {
        self.of_whole("queue/zoned").is_some_and(|text| text == "host-managed")
    }

    /// Returns the path of the sysfs file `cache_type`, which turns the drive's volatile write cache on or off. Returns
    /// `None` for a device that is not a SCSI or SATA drive.
    pub fn cache_type_file(&self) -> Option<PathBuf> {
        let folder = self.whole_folder().join("device/scsi_disk");
        let entry = fs::read_dir(folder).ok()?.next()?.ok()?;
        Some(entry.path().join("cache_type"))
    }

    /// Returns facts for display, as pairs of name and value: model, serial number, firmware, zone model, caches, TRIM,
    /// rotation. An unknown model or serial number is "unknown", unknown TRIM is "not offered", and other unknown
    /// values are left out. A partition has the facts of its disk.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let model = [self.of_whole("device/vendor"), self.of_whole("device/model")];
        let model: Vec<String> = model.into_iter().flatten().collect();
        let model = if model.is_empty() { "unknown".to_string() } else { model.join(" ") };
        facts.push(("model", model));
        facts.push(("serial number", self.serial().unwrap_or_else(|| "unknown".into())));
        let mut tell = |name: &'static str, file: &str| {
            if let Some(value) = self.of_whole(file) {
                facts.push((name, value));
            }
        };
        tell("firmware", "device/rev");
        tell("firmware", "device/firmware_rev");
        tell("zones", "queue/zoned");
        tell("volatile cache", "queue/write_cache");
        tell("read-ahead of the kernel, KiB", "queue/read_ahead_kb");
        if let Some(words) = self.cache_type_file().and_then(|file| fs::read_to_string(file).ok()) {
            facts.push(("volatile cache of the drive", words.trim().to_string()));
        }
        let rotates = self.of_whole("queue/rotational").map(|text| if text == "0" { "no" } else { "yes" });
        let trims = self.of_whole("queue/discard_max_bytes").is_some_and(|bytes| bytes != "0");
        facts.push(("TRIM", if trims { "offered" } else { "not offered" }.into()));
        facts.extend(rotates.map(|word| ("rotates, as the drive says", word.to_string())));
        facts
    }

    /// Returns the serial number, if the kernel tells it.
    pub fn serial(&self) -> Option<String> {
        if let Some(serial) = self.of_whole("device/serial").or_else(|| self.of_whole("serial")) {
            return Some(serial);
        }
        // The SCSI page "unit serial number": a header of four bytes, then text.
        let page = fs::read(self.whole_folder().join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(page.get(4..)?).trim().to_string();
        (!text.is_empty()).then_some(text)
    }

    /// Returns the folders of the devices whose use is also a use of this one: the device itself, its partitions, and
    /// the whole device of a partition.
    fn relatives(&self) -> Vec<PathBuf> {
        let mut relatives = vec![self.folder.clone()];
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().join("partition").exists() {
                relatives.push(entry.path());
            }
        }
        if self.is_partition() {
            relatives.push(self.whole_folder());
        }
        relatives.sort();
        relatives
    }
}

/// Returns the uses of the file or block device open as `file`, one clause each; empty if there are none. A use of a
/// disk's partition, or of a partition's disk, counts. Locks of the calling process do not count. `contents` are the
/// signatures found on the target: an imported ZFS pool is recognised by the name of the pool in them.
///
/// # Errors
///
/// A failed `fstat`, or a block device that `/sys` does not list. Other unreadable files of `/proc` and `/sys` count as
/// empty.
pub fn users(file: &File, contents: &[Contents]) -> io::Result<Vec<String>> {
    users_in(&Kernel::default(), file, contents)
}

fn users_in(kernel: &Kernel, file: &File, contents: &[Contents]) -> io::Result<Vec<String>> {
    let facts = file.metadata()?;
    let mut users = Vec::new();
    if facts.file_type().is_block_device() {
        let device = Device::in_kernel(kernel, facts.rdev())?;
        device_users(kernel, &device, &mut users);
    } else {
        file_users(kernel, file, &facts, &mut users);
    }
    users.extend(imported_pools(kernel, contents));
    Ok(users)
}

fn device_users(kernel: &Kernel, device: &Device, users: &mut Vec<String>) {
    let mounts = mounts(kernel);
    let swaps = swaps(kernel);
    for part in device.relatives() {
        let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = fs::read_to_string(part.join("dev")).unwrap_or_default();
        for mount in &mounts {
            if mount.number == number.trim() || mount.source.strip_prefix("/dev/") == Some(&name) {
                users.push(format!("{name} is mounted at {}", mount.place));
            }
        }
        for place in multi_device_file_systems(kernel, &name) {
            users.push(format!("{name} is part of {place}"));
        }
        if swaps.iter().any(|swap| is_device(swap, &name, number.trim())) {
            users.push(format!("{name} is swap"));
        }
        for holder in fs::read_dir(part.join("holders")).into_iter().flatten().flatten() {
            users.push(format!("{name} is part of {}", holder_name(kernel, &holder.file_name().to_string_lossy())));
        }
    }
    users.dedup();
}

/// A mounted file system.
struct Mount {
    /// Number of the mount's device, as `MAJOR:MINOR`.
    number: String,
    source: String,
    place: String,
}

/// Returns the mounts of the mount namespaces of all visible processes.
fn mounts(kernel: &Kernel) -> Vec<Mount> {
    let mut namespaces = vec![fs::read_link(kernel.proc.join("self/ns/mnt")).unwrap_or_default()];
    let mut texts = vec![fs::read_to_string(kernel.proc.join("self/mountinfo")).unwrap_or_default()];
    for entry in fs::read_dir(&kernel.proc).into_iter().flatten().flatten() {
        let is_process = entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
        let Ok(namespace) = fs::read_link(entry.path().join("ns/mnt")) else { continue };
        if is_process && !namespaces.contains(&namespace) {
            namespaces.push(namespace);
            // The process may have ended in the meantime.
            texts.extend(fs::read_to_string(entry.path().join("mountinfo")));
        }
    }
    texts.iter().flat_map(|text| text.lines()).filter_map(mount).collect()
}

/// Parses a line of `mountinfo`.
fn mount(line: &str) -> Option<Mount> {
    let (first, last) = line.split_once(" - ")?;
    let mut words = first.split(' ').skip(2);
    let (number, place) = (words.next()?, words.nth(1)?);
    let source = last.split(' ').nth(1)?;
    Some(Mount { number: number.into(), source: unescape(source), place: unescape(place) })
}

/// Returns the files and devices that are in use as swap.
fn swaps(kernel: &Kernel) -> Vec<String> {
    let text = fs::read_to_string(kernel.proc.join("swaps")).unwrap_or_default();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(unescape).collect()
}

/// Replaces the octal escapes of the kernel, such as `\040` for a space.
fn unescape(text: &str) -> String {
    let mut parts = text.split('\\');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[3..]);
            }
            None => {
                bytes.push(b'\\');
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether `path` names the block device called `name` with the number `MAJOR:MINOR`.
fn is_device(path: &str, name: &str, number: &str) -> bool {
    let numbered = fs::metadata(path).ok().filter(|facts| facts.file_type().is_block_device());
    let numbered = numbered.map(|facts| format!("{}:{}", libc::major(facts.rdev()), libc::minor(facts.rdev())));
    path.strip_prefix("/dev/") == Some(name) || numbered.as_deref() == Some(number)
}

/// Returns the mounted file systems over several devices that contain the device called `name`. Their mounts show
/// another device number.
fn multi_device_file_systems(kernel: &Kernel, name: &str) -> Vec<String> {
    let mut places = Vec::new();
    for entry in fs::read_dir(kernel.sys.join("fs/btrfs")).into_iter().flatten().flatten() {
        if entry.path().join("devices").join(name).exists() {
            places.push(format!("the mounted Btrfs file system {}", entry.file_name().to_string_lossy()));
        }
    }
    places
}

/// Returns a description of a holder, which is a device stacked on another.
fn holder_name(kernel: &Kernel, holder: &str) -> String {
    let folder = kernel.sys.join("block").join(holder);
    let read = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|text| text.trim().to_string());
    match (read("dm/name"), read("dm/uuid"), read("md/level")) {
        (Some(name), Some(uuid), _) if uuid.starts_with("LVM-") => format!("the LVM volume {name} ({holder})"),
        (Some(name), ..) => format!("the device-mapper device {name} ({holder})"),
        (_, _, Some(level)) => format!("the Linux RAID {holder} ({level})"),
        _ => holder.to_string(),
    }
}

/// Returns the imported pools of which `contents` contain a member.
fn imported_pools(kernel: &Kernel, contents: &[Contents]) -> Vec<String> {
    let pools = contents.iter().filter(|one| one.what.contains("ZFS")).filter_map(|one| one.label.as_deref());
    let is_name = |pool: &&str| !pool.is_empty() && !pool.contains('/');
    let mut imported: Vec<String> = pools
        .filter(is_name)
        .filter(|pool| kernel.proc.join("spl/kstat/zfs").join(pool).is_dir())
        .map(|pool| format!("it is part of the imported ZFS pool {pool}"))
        .collect();
    imported.dedup();
    imported
}

fn file_users(kernel: &Kernel, file: &File, facts: &Metadata, users: &mut Vec<String>) {
    let shown = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_default();
    let is_it = |path: &str| {
        let other = fs::metadata(path).ok();
        let is_same = other.is_some_and(|other| (other.dev(), other.ino()) == (facts.dev(), facts.ino()));
        is_same || Path::new(path) == shown
    };
    for entry in fs::read_dir(kernel.sys.join("block")).into_iter().flatten().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if is_it(backing.trim_end()) {
            users.push(format!("it is behind /dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    if swaps(kernel).iter().any(|swap| is_it(swap)) {
        users.push("it is in use as swap".into());
    }
    users.extend(lock_holders(kernel, facts));
}

/// Returns the processes that hold a lock on the file, such as a virtual machine on its disk or a database on its
/// files.
fn lock_holders(kernel: &Kernel, facts: &Metadata) -> Vec<String> {
    let (major, minor) = (libc::major(facts.dev()), libc::minor(facts.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", facts.ino());
    let locks = fs::read_to_string(kernel.proc.join("locks")).unwrap_or_default();
    let mut holders = Vec::new();
    for line in locks.lines() {
        // A line looks like `1: POSIX  ADVISORY  WRITE 1234 08:02:131085 0 EOF`; a waiting lock has `->` after its
        // number.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, _, _, process, inode, ..] = words[..] else { continue };
        if inode != place || process == std::process::id().to_string() || !["POSIX", "OFDLCK", "FLOCK"].contains(&kind)
        {
            continue;
        }
        let name = fs::read_to_string(kernel.proc.join(process).join("comm")).unwrap_or_default();
        holders.push(match name.trim() {
            "" => "another process holds a lock on it".to_string(),
            name => format!("process {process} ({name}) holds a lock on it"),
        });
    }
    holders.dedup();
    holders
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the folders of a kernel with sda, which has two partitions, and sdb. Their numbers are 8:0, 8:1, 8:2 and
    /// 8:16.
    fn kernel(folder: &Path) -> Kernel {
        let kernel = Kernel { proc: folder.join("proc"), sys: folder.join("sys") };
        let write = |path: &str, text: &str| {
            let path = kernel.sys.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write("devices/sda/dev", "8:0\n");
        write("devices/sda/queue/logical_block_size", "4096\n");
        write("devices/sda/queue/zoned", "none\n");
        write("devices/sda/device/vendor", "ATA     \n");
        write("devices/sda/device/model", "ST5000AS0011    \n");
        write("devices/sda/device/vpd_pg80", "\0\u{1}\0\u{8}Z840WXYZ");
        write("devices/sda/device/scsi_disk/0:0:0:0/cache_type", "write back\n");
        write("devices/sda/sda1/dev", "8:1\n");
        write("devices/sda/sda1/partition", "1\n");
        write("devices/sda/sda2/dev", "8:2\n");
        write("devices/sda/sda2/partition", "2\n");
        write("devices/sda/sda2/holders/dm-0/x", "");
        write("devices/sdb/dev", "8:16\n");
        for (number, path) in [("8:0", "sda"), ("8:1", "sda/sda1"), ("8:2", "sda/sda2"), ("8:16", "sdb")] {
            fs::create_dir_all(kernel.sys.join("dev/block")).expect("made");
            let link = kernel.sys.join("dev/block").join(number);
            std::os::unix::fs::symlink(kernel.sys.join("devices").join(path), link).expect("linked");
        }
        fs::create_dir_all(kernel.proc.join("self")).expect("made");
        fs::write(
            kernel.proc.join("self/mountinfo"),
            "22 1 8:1 / /home rw,relatime shared:1 - ext4 /dev/sda1 rw\n23 1 0:40 / /tank rw - btrfs /dev/sdc rw\n",
        )
        .expect("written");
        let swaps = "Filename Type Size Used Priority\n/dev/sdb partition 1 0 -2\n";
        fs::write(kernel.proc.join("swaps"), swaps).expect("written");
        kernel
    }

    fn users_of(kernel: &Kernel, minor: u32) -> Vec<String> {
        let device = Device::in_kernel(kernel, libc::makedev(8, minor)).expect("it is there");
        let mut users = Vec::new();
        device_users(kernel, &device, &mut users);
        users
    }

    #[test]
    fn mounts_swap_and_holders_of_a_device_and_its_partitions_are_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        assert_eq!(users_of(&kernel, 0), ["sda1 is mounted at /home", "sda2 is part of dm-0"]);
        assert_eq!(users_of(&kernel, 1), ["sda1 is mounted at /home"]);
        assert_eq!(users_of(&kernel, 2), ["sda2 is part of dm-0"]);
        assert_eq!(users_of(&kernel, 16), ["sdb is swap"]);
    }

    #[test]
    fn a_mount_that_shows_another_number_is_known_by_its_source() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        let device = Device { name: "sdc".into(), folder: kernel.sys.join("devices/sdc") };
        let mut users = Vec::new();
        device_users(&kernel, &device, &mut users);
        assert_eq!(users, ["sdc is mounted at /tank"]);
    }

    #[test]
    fn model_serial_number_and_caches_are_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        for minor in [0, 1] {
            let device = Device::in_kernel(&kernel, libc::makedev(8, minor)).expect("it is there");
            assert_eq!(device.sector_bytes(), 4096, "a partition has the sectors of the whole");
            let facts = device.facts();
            assert!(facts.contains(&("model", "ATA ST5000AS0011".into())), "{facts:?}");
            assert!(facts.contains(&("serial number", "Z840WXYZ".into())), "{facts:?}");
            assert!(facts.contains(&("volatile cache of the drive", "write back".into())), "{facts:?}");
        }
    }

    #[test]
    fn a_file_behind_a_loop_device_is_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        let file = folder.path().join("disk.img");
        fs::write(&file, "x").expect("written");
        let users = |path: &Path| users_in(&kernel, &File::open(path).expect("it opens"), &[]).expect("it is told");
        assert_eq!(users(&file), Vec::<String>::new());
        let backing = kernel.sys.join("block/loop7/loop");
        fs::create_dir_all(&backing).expect("made");
        let canonical = fs::canonicalize(&file).expect("it is there");
        fs::write(backing.join("backing_file"), format!("{}\n", canonical.display())).expect("written");
        assert_eq!(users(&file), ["it is behind /dev/loop7"]);
        let other_name = folder.path().join("hard-link.img");
        fs::hard_link(&file, &other_name).expect("linked");
        assert_eq!(users(&other_name), ["it is behind /dev/loop7"], "under whatever name");
    }

    /// Adds a folder `name` with the files in `files` below the kernel's `block`, and makes it a holder of sdb.
    fn add_holder(kernel: &Kernel, name: &str, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = kernel.sys.join("block").join(name).join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        fs::create_dir_all(kernel.sys.join("devices/sdb/holders").join(name)).expect("made");
    }

    #[test]
    fn members_of_raids_volumes_and_mappings_are_told_by_name() {
        type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str);
        let cases: [Case; 4] = [
            ("md127", &[("md/level", "raid5\n")], "sdb is part of the Linux RAID md127 (raid5)"),
            (
                "dm-3",
                &[("dm/name", "vg-home\n"), ("dm/uuid", "LVM-9yQ\n")],
                "sdb is part of the LVM volume vg-home (dm-3)",
            ),
            (
                "dm-4",
                &[("dm/name", "secret\n"), ("dm/uuid", "CRYPT-LUKS2-1\n")],
                "sdb is part of the device-mapper device secret (dm-4)",
            ),
            ("bcache0", &[], "sdb is part of bcache0"),
        ];
        for (name, files, says) in cases {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let kernel = kernel(folder.path());
            add_holder(&kernel, name, files);
            assert_eq!(users_of(&kernel, 16), ["sdb is swap", says]);
        }
    }

    #[test]
    fn a_partition_is_in_use_where_its_whole_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        fs::create_dir_all(kernel.sys.join("devices/sda/holders/dm-9")).expect("made");
        assert_eq!(users_of(&kernel, 1), ["sda is part of dm-9", "sda1 is mounted at /home"]);
    }

    #[test]
    fn mounts_of_other_namespaces_count_and_escapes_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        for (process, namespace, text) in [
            ("self", "mnt:[1]", "22 1 8:1 / /home rw - ext4 /dev/sda1 rw\n"),
            ("17", "mnt:[1]", "22 1 8:1 / /home rw - ext4 /dev/sda1 rw\n"),
            ("18", "mnt:[2]", "22 1 8:16 / /in\\040a\\040box rw - xfs /dev/sdb rw\n"),
        ] {
            fs::create_dir_all(kernel.proc.join(process).join("ns")).expect("made");
            std::os::unix::fs::symlink(namespace, kernel.proc.join(process).join("ns/mnt")).expect("linked");
            fs::write(kernel.proc.join(process).join("mountinfo"), text).expect("written");
        }
        assert_eq!(users_of(&kernel, 16), ["sdb is mounted at /in a box", "sdb is swap"]);
        assert_eq!(users_of(&kernel, 1), ["sda1 is mounted at /home"], "once for one namespace");
    }

    #[test]
    fn a_second_device_of_a_btrfs_file_system_is_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        fs::create_dir_all(kernel.sys.join("fs/btrfs/5a3f/devices/sdb")).expect("made");
        assert_eq!(users_of(&kernel, 16), ["sdb is part of the mounted Btrfs file system 5a3f", "sdb is swap"]);
    }

    #[test]
    fn a_member_of_an_imported_pool_is_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        let member = |pool: &str| Contents {
            what: "a member of a ZFS pool".into(),
            label: Some(pool.into()),
            place: (0, 256 << 10),
        };
        fs::create_dir_all(kernel.proc.join("spl/kstat/zfs/tank")).expect("made");
        let of = |pool: &str| imported_pools(&kernel, &[member(pool), member(pool)]);
        assert_eq!(of("tank"), ["it is part of the imported ZFS pool tank"]);
        assert_eq!(of("vault"), Vec::<String>::new());
        assert_eq!(of("../zfs"), Vec::<String>::new(), "a name is no path");
    }

    #[test]
    fn a_file_that_another_process_has_locked_is_in_use() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let kernel = kernel(folder.path());
        let path = folder.path().join("vm.img");
        fs::write(&path, "x").expect("written");
        let facts = fs::metadata(&path).expect("it is there");
        let (major, minor) = (libc::major(facts.dev()), libc::minor(facts.dev()));
        let place = format!("{major:02x}:{minor:02x}:{}", facts.ino());
        let own = std::process::id();
        let locks = format!(
            "1: POSIX  ADVISORY  WRITE 999 {place} 100 101\n1: -> POSIX  ADVISORY  WRITE 998 {place} 100 101\n\
             2: OFDLCK ADVISORY  READ  -1 {place} 0 EOF\n3: FLOCK  ADVISORY  WRITE {own} {place} 0 EOF\n\
             4: LEASE  ACTIVE    READ  997 {place} 0 EOF\n5: POSIX  ADVISORY  WRITE 996 08:01:1 0 EOF\n"
        );
        fs::write(kernel.proc.join("locks"), locks).expect("written");
        fs::create_dir_all(kernel.proc.join("999")).expect("made");
        fs::write(kernel.proc.join("999/comm"), "qemu-system-x86\n").expect("written");
        let users = users_in(&kernel, &File::open(&path).expect("it opens"), &[]).expect("it is told");
        assert_eq!(users, ["process 999 (qemu-system-x86) holds a lock on it", "another process holds a lock on it"]);
    }
}
