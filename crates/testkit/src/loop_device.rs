//! A loop device: a file as a block device of this machine.

use std::process::{Command, Output};

/// A loop device, by its path such as `/dev/loop3`; detached when dropped.
pub struct LoopDevice(pub String);

impl LoopDevice {
    /// Attaches a free loop device to the file `path`. Returns `None`, and prints that the test is skipped, if
    /// `losetup` is missing or fails.
    pub fn over(path: &str) -> Option<LoopDevice> {
        match losetup(&["--find", "--show", path]) {
            Ok(output) if output.status.success() => {
                Some(LoopDevice(String::from_utf8_lossy(&output.stdout).trim().to_string()))
            }
            Ok(output) => {
                eprintln!("skipped: a loop device ({})", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                eprintln!("skipped: a loop device (losetup: {error})");
                None
            }
        }
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // A device that cannot be detached now stays until its last user closes it.
        let _ = losetup(&["--detach", &self.0]);
    }
}

fn losetup(words: &[&str]) -> std::io::Result<Output> {
    let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    Command::new("losetup").env("PATH", search).args(words).output()
}
