//! Who uses a block device or a file: mounts, swap, devices stacked on it, loop devices; and what the kernel knows of
//! it.
//!
//! All is read from `/proc` and `/sys`, whose folders the tests replace.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the kernel tells of itself.
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

/// A block device, as the kernel has it.
#[derive(Clone, Debug)]
pub struct Device {
    /// Such as `sda1`.
    pub name: String,
    /// Its folder, with all links followed.
    folder: PathBuf,
}

impl Device {
    /// The device of this number.
    pub fn of(number: u64) -> io::Result<Device> {
        Device::in_kernel(&Kernel::default(), number)
    }

    fn in_kernel(kernel: &Kernel, number: u64) -> io::Result<Device> {
        let (major, minor) = (libc::major(number), libc::minor(number));
        let folder = fs::canonicalize(kernel.sys.join(format!("dev/block/{major}:{minor}")))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Device { name, folder })
    }

    /// Whether it is a partition of another.
    pub fn is_partition(&self) -> bool {
        self.folder.join("partition").exists()
    }

    /// The folder of the whole device.
    pub fn whole_folder(&self) -> PathBuf {
        match self.folder.parent() {
            Some(parent) if self.is_partition() => parent.to_path_buf(),
            _ => self.folder.clone(),
        }
    }

    fn of_whole(&self, file: &str) -> Option<String> {
        let text = fs::read(self.whole_folder().join(file)).ok()?;
        let text =
            String::from_utf8_lossy(&text).trim_matches(|c: char| c.is_whitespace() || c.is_control()).to_string();
        (!text.is_empty()).then_some(text)
    }

    /// Bytes of its sectors.
    pub fn sector_bytes(&self) -> u32 {
        self.of_whole("queue/logical_block_size").and_then(|text| text.parse().ok()).unwrap_or(512)
    }

    /// Whether its zones must be written in order.
    pub fn is_host_managed(&self) -> bool {
        self.of_whole("queue/zoned").is_some_and(|text| text == "host-managed")
    }

    /// The file by which the drive's volatile cache is switched, of a SCSI or SATA drive.
    pub fn cache_type_file(&self) -> Option<PathBuf> {
        let folder = self.whole_folder().join("device/scsi_disk");
        let entry = fs::read_dir(folder).ok()?.next()?.ok()?;
        Some(entry.path().join("cache_type"))
    }

    /// Model, serial number, caches.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        let model = [self.of_whole("device/vendor"), self.of_whole("device/model")];
        let model: Vec<String> = model.into_iter().flatten().collect();
        let model = if model.is_empty() { "not told".to_string() } else { model.join(" ") };
        facts.push(("model", model));
        facts.push(("serial number", self.serial().unwrap_or_else(|| "not told".into())));
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

    fn serial(&self) -> Option<String> {
        if let Some(serial) = self.of_whole("device/serial").or_else(|| self.of_whole("serial")) {
            return Some(serial);
        }
        // The page "unit serial number" of SCSI: four bytes of head, then text.
        let page = fs::read(self.whole_folder().join("device/vpd_pg80")).ok()?;
        let text = String::from_utf8_lossy(page.get(4..)?).trim().to_string();
        (!text.is_empty()).then_some(text)
    }

    /// It, and its partitions.
    fn parts(&self) -> Vec<PathBuf> {
        let mut parts = vec![self.folder.clone()];
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.path().join("partition").exists() {
                parts.push(entry.path());
            }
        }
        parts.sort();
        parts
    }
}

/// Who uses `path`, in words; nobody, if it is empty.
pub fn users(path: &Path) -> Vec<String> {
    users_in(&Kernel::default(), path)
}

fn users_in(kernel: &Kernel, path: &Path) -> Vec<String> {
    let Ok(facts) = fs::metadata(path) else { return Vec::new() };
    let mut users = Vec::new();
    if std::os::unix::fs::FileTypeExt::is_block_device(&facts.file_type()) {
        if let Ok(device) = Device::in_kernel(kernel, facts.rdev()) {
            device_users(kernel, &device, &mut users);
        }
    } else {
        file_users(kernel, path, &mut users);
    }
    users
}

fn device_users(kernel: &Kernel, device: &Device, users: &mut Vec<String>) {
    let mounts = fs::read_to_string(kernel.proc.join("self/mountinfo")).unwrap_or_default();
    let swaps = fs::read_to_string(kernel.proc.join("swaps")).unwrap_or_default();
    for part in device.parts() {
        let name = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = fs::read_to_string(part.join("dev")).unwrap_or_default();
        for (mounted_number, source, place) in mounts.lines().filter_map(mount) {
            if mounted_number == number.trim() || source.strip_prefix("/dev/") == Some(&name) {
                users.push(format!("{name} is mounted at {place}"));
            }
        }
        for line in swaps.lines().skip(1) {
            if line.split_whitespace().next().and_then(|path| path.strip_prefix("/dev/")) == Some(&name) {
                users.push(format!("{name} is swap"));
            }
        }
        for holder in fs::read_dir(part.join("holders")).into_iter().flatten().flatten() {
            users.push(format!("{name} is part of {}", holder.file_name().to_string_lossy()));
        }
    }
    users.dedup();
}

/// Number, source and place of a line of `mountinfo`.
fn mount(line: &str) -> Option<(&str, &str, &str)> {
    let (first, last) = line.split_once(" - ")?;
    let mut words = first.split(' ').skip(2);
    let (number, place) = (words.next()?, words.nth(1)?);
    Some((number, last.split(' ').nth(1)?, place))
}

fn file_users(kernel: &Kernel, path: &Path, users: &mut Vec<String>) {
    let Ok(path) = fs::canonicalize(path) else { return };
    let shown = path.display().to_string();
    for entry in fs::read_dir(kernel.sys.join("block")).into_iter().flatten().flatten() {
        let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
        if backing.trim_end() == shown {
            users.push(format!("it is behind /dev/{}", entry.file_name().to_string_lossy()));
        }
    }
    let swaps = fs::read_to_string(kernel.proc.join("swaps")).unwrap_or_default();
    if swaps.lines().skip(1).any(|line| line.split_whitespace().next() == Some(&shown)) {
        users.push("it is swap".into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with sda of two partitions and sdb, of numbers 8:0, 8:1, 8:2 and 8:16.
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
        for (number, path) in [("8:0", "sda"), ("8:1", "sda/sda1"), ("8:16", "sdb")] {
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
        assert_eq!(users_in(&kernel, &file), Vec::<String>::new());
        let backing = kernel.sys.join("block/loop7/loop");
        fs::create_dir_all(&backing).expect("made");
        let canonical = fs::canonicalize(&file).expect("it is there");
        fs::write(backing.join("backing_file"), format!("{}\n", canonical.display())).expect("written");
        assert_eq!(users_in(&kernel, &file), ["it is behind /dev/loop7"]);
    }
}
