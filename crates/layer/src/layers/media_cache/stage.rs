//! How far the cleaning of a band is: the states of [`super::cleaning`], with what it has found of the band.

use crate::map::extent_map::MappedRun;
use crate::plan::{GroupKind, Plan};

/// How far the cleaning of a band is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Reading the band: so many sectors done.
    Reading(u64),
    /// Reading the journal for the band's cached runs: so many sectors done.
    Scanning(u64),
    /// Reading those runs: so many done.
    Collecting(usize),
    /// Writing the merged band to the spare: so many sectors done.
    Persisting(u64),
    /// Writing it to its place: so many sectors done.
    Rewriting(u64),
    /// Writing the map.
    Noting,
}

/// The current cleaning.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Band and stage, if there is one.
    pub(super) now: Option<(usize, Stage)>,
    pub(super) is_open: bool,
    pub(super) runs: Vec<MappedRun>,
}

impl Cleaning {
    /// The band whose contents are the spare's.
    pub(super) fn rewriting(&self) -> Option<usize> {
        match self.now {
            Some((band, Stage::Rewriting(_))) => Some(band),
            _ => None,
        }
    }

    /// Whether no band is being cleaned.
    pub(super) fn is_resting(&self) -> bool {
        self.now.is_none()
    }

    /// Records say that the spare holds `band`, or no longer does.
    pub(super) fn set_rewriting(&mut self, band: Option<usize>) {
        self.now = band.map(|band| (band, Stage::Rewriting(0)));
    }

    pub(super) fn phase(&mut self, plan: &mut Plan) {
        if self.is_open {
            plan.next_phase(GroupKind::Cleaning);
        } else {
            plan.open(GroupKind::Cleaning);
            self.is_open = true;
        }
    }
}
