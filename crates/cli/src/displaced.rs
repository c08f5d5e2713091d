//! Warnings about a served file that has lost its path or whose disk is full. A file loses its path when it is removed,
//! renamed, or replaced by another file. Clients notice nothing until the server ends; after that their writes may be
//! gone.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::{HostFile, Placement};

/// Interval at which a file is checked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval at which a warning is repeated.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// State of the warnings about one file: time of the last check, and the last warning with its time.
#[derive(Default)]
pub(crate) struct Displaced {
    looked: Cell<Option<Instant>>,
    said: Cell<Option<(Placement, Instant)>>,
    /// Time of the last warning that the file's disk is full; `None` while the disk has space.
    said_full: Cell<Option<Instant>>,
}

impl Displaced {
    /// Prints a warning with `advice` on standard error if `file` has lost its path, and a message once the file is
    /// back. Checks at most once a second.
    pub(crate) fn tell(&self, file: &HostFile, advice: &dyn Fn() -> String) {
        if self.looked.get().is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return;
        }
        self.looked.set(Some(Instant::now()));
        self.tell_full_disk(file);
        let (placement, said) = (file.placement(), self.said.get());
        if !is_due(placement, said.map(|(placement, at)| (placement, at.elapsed()))) {
            return;
        }
        match placement.warning(file.path()) {
            Some(words) => {
                message!("{words}{}", advice());
                self.said.set(Some((placement, Instant::now())));
            }
            None => {
                message!("{} is back in its place", file.path().display());
                self.said.set(None);
            }
        }
    }

    /// Prints that the disk of `file` is full, once a minute, and once when the disk has space again.
    fn tell_full_disk(&self, file: &HostFile) {
        match (file.full_disk_warning(), self.said_full.get()) {
            (Some(words), said) if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) => {
                message!("{words}");
                self.said_full.set(Some(Instant::now()));
            }
            (None, Some(_)) => {
                message!("the disk of {} has room again", file.path().display());
                self.said_full.set(None);
            }
            _ => {}
        }
    }
}

/// A file, and the state of the warnings about it.
type Told = (Weak<HostFile>, Displaced);

/// The files of a server that has several devices; usable from any thread. The list holds weak references and keeps no
/// file open.
#[derive(Clone, Default)]
pub(crate) struct Watched(Arc<Mutex<Vec<Told>>>);

impl Watched {
    /// Adds `file` to the list, if there is one.
    pub(crate) fn add(&self, file: Option<Arc<HostFile>>) {
        self.lock().extend(file.map(|file| (Arc::downgrade(&file), Displaced::default())));
    }

    /// Prints the warnings about every file on standard error, with `advice`.
    pub(crate) fn tell(&self, advice: &str) {
        for (file, displaced) in self.lock().iter() {
            if let Some(file) = file.upgrade() {
                displaced.tell(&file, &|| advice.into());
            }
        }
    }

    /// Returns the path and placement of every file that is not in its place.
    pub(crate) fn displaced(&self) -> Vec<(PathBuf, Placement)> {
        let files: Vec<Arc<HostFile>> = self.lock().iter().filter_map(|(file, _)| file.upgrade()).collect();
        let placed = files.into_iter().map(|file| (file.path().to_path_buf(), file.placement()));
        placed.filter(|(_, placement)| *placement != Placement::InPlace).collect()
    }

    /// Returns the paths of the files whose disk is full.
    pub(crate) fn on_full_disks(&self) -> Vec<PathBuf> {
        let files: Vec<Arc<HostFile>> = self.lock().iter().filter_map(|(file, _)| file.upgrade()).collect();
        files.iter().filter(|file| file.is_disk_full()).map(|file| file.path().to_path_buf()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Told>> {
        self.0.lock().expect("no thread panics while it holds the list")
    }
}

/// Returns whether a message about `placement` is due, given the placement in the last message and the time since then.
fn is_due(placement: Placement, said: Option<(Placement, Duration)>) -> bool {
    match said {
        None => placement != Placement::InPlace,
        Some((said, ago)) => said != placement || ago >= SAY_EVERY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_said_at_once_and_the_same_once_a_minute() {
        use Placement::{InPlace, Removed, Replaced};
        let seconds = Duration::from_secs;
        for (placement, said, expected) in [
            (InPlace, None, false),
            (Removed, None, true),
            (Removed, Some((Removed, seconds(59))), false),
            (Removed, Some((Removed, seconds(60))), true),
            (Replaced, Some((Removed, seconds(1))), true),
            (InPlace, Some((Removed, seconds(1))), true),
        ] {
            assert_eq!(is_due(placement, said), expected, "{placement:?} after {said:?}");
        }
    }
}
