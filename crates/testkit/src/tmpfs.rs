//! A file system in memory that is so small that it is soon full.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A tmpfs mounted on a temporary folder; unmounted when dropped.
pub struct Tmpfs(TempDir);

impl Tmpfs {
    /// Mounts a tmpfs of `kib` KiB on a new temporary folder. Returns `None` if mounting fails, which takes root, and
    /// prints that the test `what` is skipped.
    pub fn mounted(kib: u32, what: &str) -> Option<Tmpfs> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let size = format!("size={kib}k");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        if !is_mounted {
            eprintln!("skipped: {what} (mounting a tmpfs takes root)");
        }
        is_mounted.then_some(Tmpfs(folder))
    }

    /// Changes the size of the tmpfs to `kib` KiB.
    ///
    /// # Panics
    ///
    /// Panics if the mount cannot be changed, for example because more space is in use.
    pub fn resize(&self, kib: u32) {
        let status = Command::new("mount").args(["-o", &format!("remount,size={kib}k")]).arg(self.0.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "a tmpfs cannot be made {kib} KiB large");
    }

    /// Returns the path of the folder on which the tmpfs is mounted.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).stderr(Stdio::null()).status();
    }
}
