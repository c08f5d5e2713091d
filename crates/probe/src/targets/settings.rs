//! Changes settings of a device for the duration of a probe, and restores them afterwards.
//!
//! Invariants:
//! 1. Each changed setting is in [`CHANGED`] until it is restored, so that [`restore_all`] can restore it before the
//!    process ends.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Path and former text of each file that is changed now.
static CHANGED: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Restores all device settings, such as read-ahead and write cache, that open targets of this process have changed.
/// For use just before the process ends without running destructors. Errors are ignored.
pub fn restore_all() {
    for (path, former) in std::mem::take(&mut *lock()) {
        // If the file cannot be written any more, nothing else can be done.
        let _ = std::fs::write(path, former);
    }
}

fn lock() -> MutexGuard<'static, BTreeMap<PathBuf, String>> {
    CHANGED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Settings changed for one target; dropping this restores them.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// Path, former text and present text of each changed file.
    changed: Vec<(PathBuf, String, String)>,
}

impl Settings {
    /// Writes `text` into the file `path`, if the file exists, has another text, and accepts the write.
    pub(super) fn set(&mut self, path: &Path, text: &str) {
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

    /// Returns a description of each changed setting.
    pub(super) fn told(&self) -> Vec<String> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.changed.iter().map(|(path, former, now)| format!("{}: {now} (it was {former})", name(path))).collect()
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        for (path, ..) in self.changed.drain(..) {
            // The entry is removed first, so that no setting is restored twice.
            if let Some(former) = lock().remove(&path) {
                let _ = std::fs::write(path, former);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests everything in one function, because `CHANGED` is shared by the whole process.
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
        // The process ends before the destructors run.
        let mut settings = Settings::default();
        settings.set(&first, "0");
        restore_all();
        assert_eq!(read(&first), "128");
        std::fs::write(&first, "64").expect("written");
        drop(settings);
        assert_eq!(read(&first), "64", "a setting is put back once");
    }
}
