//! Says that a file that is served has lost its path (removed, renamed, or replaced by another file: until the server ends its
//! clients notice nothing, and after that what they wrote may be gone), or that its disk is full.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::{HostFile, Placement};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two warnings that say the same.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// When one file was last looked for, and the last warning about it: the place it had then, and when it was printed.
#[derive(Default)]
pub struct Displaced {
    looked: Cell<Option<Instant>>,
    said: Cell<Option<(Placement, Instant)>>,
    /// Time of the last warning that its disk is full, while it is.
    said_full: Cell<Option<Instant>>,
}

impl Displaced {
    /// Says on standard error what became of `file`, if it is time for that, and what to do: `advice`.
    pub fn tell(&self, file: &HostFile, advice: &dyn Fn() -> String) {
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
                eprintln!("{words}{}", advice());
                self.said.set(Some((placement, Instant::now())));
            }
            None => {
                eprintln!("{} stands in its place again", file.path().display());
                self.said.set(None);
            }
        }
    }

    /// Prints that the disk of `file` is full, once a minute, and when it has space again.
    fn tell_full_disk(&self, file: &HostFile) {
        match (file.full_disk_warning(), self.said_full.get()) {
            (Some(words), said) if said.is_none_or(|said| said.elapsed() >= SAY_EVERY) => {
                eprintln!("{words}");
                self.said_full.set(Some(Instant::now()));
            }
            (None, Some(_)) => {
                eprintln!("the disk of {} has room again", file.path().display());
                self.said_full.set(None);
            }
            _ => {}
        }
    }
}

/// A file, and what was said of it.
type Told = (Weak<HostFile>, Displaced);

/// The files of a server that has several, from any thread. It keeps none of them open.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<Vec<Told>>>);

impl Watched {
    /// Takes one in, if there is one.
    pub fn add(&self, file: Option<Arc<HostFile>>) {
        self.lock().extend(file.map(|file| (Arc::downgrade(&file), Displaced::default())));
    }

    /// Says on standard error what became of each, and what to do: `advice`.
    pub fn tell(&self, advice: &str) {
        for (file, displaced) in self.lock().iter() {
            if let Some(file) = file.upgrade() {
                displaced.tell(&file, &|| advice.into());
            }
        }
    }

    /// Those that are not in their place.
    pub fn displaced(&self) -> Vec<(PathBuf, Placement)> {
        let files: Vec<Arc<HostFile>> = self.lock().iter().filter_map(|(file, _)| file.upgrade()).collect();
        let placed = files.into_iter().map(|file| (file.path().to_path_buf(), file.placement()));
        placed.filter(|(_, placement)| *placement != Placement::InPlace).collect()
    }

    /// Returns the paths of the files whose disk is full.
    pub fn on_full_disks(&self) -> Vec<PathBuf> {
        let files: Vec<Arc<HostFile>> = self.lock().iter().filter_map(|(file, _)| file.upgrade()).collect();
        files.iter().filter(|file| file.is_disk_full()).map(|file| file.path().to_path_buf()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Told>> {
        self.0.lock().expect("no thread panics while it holds the list")
    }
}

/// Whether there is something to say of `placement`, when `said` was said last and so long ago.
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
