//! A loop device: a file as a block device of this machine.

use std::process::{Command, Output};

/// A loop device, detached when dropped.
pub struct LoopDevice(pub String);

impl LoopDevice {
    /// Attaches one to the file `path`. Where this machine has none, or this user may have none, says so aloud.
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
        // A device that cannot be detached stays until it is let go of.
        let _ = losetup(&["--detach", &self.0]);
    }
}

fn losetup(words: &[&str]) -> std::io::Result<Output> {
    let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    Command::new("losetup").env("PATH", search).args(words).output()
}
