//! Settings of a device, changed for the time of a probe and put back after it.
//!
//! Invariants:
//! 1. Whatever was set is in [`CHANGED`] until it is put back, so that the program's last moments can do it, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// File and former text of everything that is changed now.
static CHANGED: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Puts everything back: for the last moments of the program, when destructors will not run.
pub fn restore_all() {
    for (path, former) in std::mem::take(&mut *lock()) {
        // Nothing is left to be done about a file that cannot be written any more.
        let _ = std::fs::write(path, former);
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<PathBuf, String>> {
    CHANGED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What was changed for one target; dropped, it is put back.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// File, former text, text now.
    changed: Vec<(PathBuf, String, String)>,
}

impl Settings {
    /// Writes `text` into `path`, if it is there, says something else and takes it.
    pub fn set(&mut self, path: &Path, text: &str) {
        let Ok(former) = std::fs::read_to_string(path) else { return };
        let former = former.trim().to_string();
        if former == text {
            return;
        }
        lock().insert(path.to_path_buf(), former.clone());
        if std::fs::write(path, text).is_ok() {
            self.changed.push((path.to_path_buf(), former, text.to_string()));
        } else {
            lock().remove(path);
        }
    }

    /// What is changed, in words.
    pub fn told(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.changed.iter().map(|(path, former, now)| format!("{}: {now} (it was {former})", name(path))).collect()
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, ..) in self.changed.drain(..) {
            // Taken out once, so that nothing is put back twice.
            if let Some(former) = lock().remove(&path) {
                let _ = std::fs::write(path, former);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since what is changed is known to the whole process.
    #[test]
    fn what_was_set_is_put_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (first, second) = (folder.path().join("read_ahead_kb"), folder.path().join("cache_type"));
        std::fs::write(&first, "128\n").expect("written");
        std::fs::write(&second, "write back\n").expect("written");
        let read = |path: &Path| std::fs::read_to_string(path).expect("there");
        let mut settings = Settings::default();
        settings.set(&first, "0");
        settings.set(&second, "write through");
        settings.set(&folder.path().join("none"), "0");
        assert_eq!((read(&first).as_str(), read(&second).as_str()), ("0", "write through"));
        assert_eq!(settings.told(), ["read_ahead_kb: 0 (it was 128)", "cache_type: write through (it was write back)"]);
        drop(settings);
        assert_eq!((read(&first).as_str(), read(&second).as_str()), ("128", "write back"));
        // The program's last moments.
        let mut settings = Settings::default();
        settings.set(&first, "0");
        restore_all();
        assert_eq!(read(&first), "128");
        std::fs::write(&first, "64").expect("written");
        drop(settings);
        assert_eq!(read(&first), "64", "what was put back is not put back again");
    }
}
