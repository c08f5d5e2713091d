//! Says that the image of a served drive has lost its path: removed, renamed, or replaced by another file. Until the server
//! ends its clients notice nothing, and after that what they wrote may be gone.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use imbrex_device::media::host_file::Placement;
use imbrex_serve::Front;

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the same is said.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// What was seen and said so far.
pub struct Displaced {
    control: Option<String>,
    looked: Cell<Option<Instant>>,
    said: Cell<Option<(Placement, Instant)>>,
}

impl Displaced {
    /// Nothing was seen yet; `control` is the server's control socket.
    pub fn new(control: Option<&Path>) -> Displaced {
        let control = control.map(|path| path.display().to_string());
        Displaced { control, looked: Cell::default(), said: Cell::default() }
    }

    /// Says on standard error what became of the image, if it is time for that.
    pub fn tell(&self, front: &Front) {
        let is_early = self.looked.get().is_some_and(|looked| looked.elapsed() < LOOK_EVERY);
        let Some(file) = front.host_file().filter(|_| !is_early) else { return };
        self.looked.set(Some(Instant::now()));
        let placement = file.placement();
        let said = self.said.get();
        if !is_due(placement, said.map(|(placement, at)| (placement, at.elapsed()))) {
            return;
        }
        let path = file.path().display();
        match placement.warning(file.path()) {
            Some(words) => {
                let copied = self.control.iter().map(|control| {
                    format!("; `imbrex drive snapshot {path} COPY --control {control}` copies it as it is now")
                });
                eprintln!("{words}{}", copied.collect::<String>());
                self.said.set(Some((placement, Instant::now())));
            }
            None => {
                eprintln!("{path} stands in its place again");
                self.said.set(None);
            }
        }
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
