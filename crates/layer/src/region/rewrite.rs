//! Rewriting a run of sectors in its place, on a disk where a write cut short destroys what follows it (Cassuto 2010
//! §II.B). With a spare, the new content is durable there first:
//!
//! ```text
//!   barrier   the end of the rewrite before, for its spare is overwritten now
//!   write     the new content to the spare
//!   barrier
//!   note      begin: spare holds it
//!   barrier
//!   write     the new content in its place
//!   barrier
//!   note      end (the layer's own, with its mapping change)
//! ```
//!
//! A cut before the begin is durable leaves the old content whole; after it, repair copies the spare over. Without a
//! spare only the second write and the end remain: a cut during it loses what the write had yet to rewrite.
//!
//! Invariants:
//! 1. Between plans no rewrite is open, but between replay and repair.
//! 2. The spare is overwritten only when the end of the rewrite before is durable.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use crate::parameters::{ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Plan};

/// The parameter that says whether a spare is used: `power` or `paper`.
pub const SAFETY: ParameterInfo = ParameterInfo {
    key: "safety",
    kind: ParameterKind::Choice(&["power", "paper"]),
    default: "power",
    help: "power: what a rewrite endangers is made safe first; paper: the paper's steps, which a power cut can undo",
};

/// A run to rewrite in place: its logical sectors and where they live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// First logical sector.
    pub lba: Lba,
    /// How many.
    pub sectors: Sectors,
    /// First physical sector.
    pub home: Pba,
}

/// Rewrites in place, one at a time, with or without a spare.
#[derive(Clone, Debug)]
pub struct Rewriter {
    spare: Option<Extent>,
    begin_tag: u8,
    open: Option<Target>,
}

impl Rewriter {
    /// A rewriter whose begin records carry `begin_tag`; `spare` is where new content is made safe first.
    pub fn new(spare: Option<Extent>, begin_tag: u8) -> Rewriter {
        Rewriter { spare, begin_tag, open: None }
    }

    /// Plans the rewrite of `target` with what is staged: of it `host_sectors` from `host_lba` on behalf of the host, the
    /// rest as cleaning; then the record `end`.
    pub fn rewrite(&self, plan: &mut Plan, target: Target, host_lba: Lba, host_sectors: Sectors, end: Note) {
        debug_assert!(self.open.is_none(), "invariant 1: a rewrite is open: {:?}", self.open);
        if let Some(spare) = self.spare {
            assert!(target.sectors <= spare.sectors, "{target:?} does not fit into the spare {spare:?}");
            plan.barrier();
            plan.write(Cause::Backup, spare.start, target.lba, target.sectors);
            plan.barrier();
            plan.note(begin_note(self.begin_tag, target));
            plan.barrier();
        }
        let host_end = host_lba + host_sectors;
        let parts = [
            (Cause::Cleaning, target.lba, host_lba),
            (Cause::Host, host_lba, host_end),
            (Cause::Cleaning, host_end, target.lba + target.sectors),
        ];
        for (cause, from, to) in parts {
            if from < to {
                plan.write(cause, target.home + (from - target.lba), from, to - from);
            }
        }
        plan.barrier();
        plan.note(end);
    }

    /// Takes a begin record: that rewrite is open until [`Rewriter::ended`].
    pub fn replay_begin(&mut self, note: &Note, capacity: Sectors) -> Result<(), ReplayError> {
        let [lba, sectors, home, _] = note.fields;
        let fits = self.spare.is_some_and(|spare| sectors <= spare.sectors.0) && sectors > 0;
        if !fits || lba.checked_add(sectors).is_none_or(|end| end > capacity.0) {
            return Err(ReplayError { note: *note, reason: "no such rewrite fits this layer".into() });
        }
        self.open = Some(Target { lba: Lba(lba), sectors: Sectors(sectors), home: Pba(home) });
        Ok(())
    }

    /// The open rewrite is done.
    pub fn ended(&mut self) {
        self.open = None;
    }

    /// The rewrite that a cut left half done.
    pub fn open(&self) -> Option<Target> {
        self.open
    }

    /// The begin record of the open rewrite, for a checkpoint.
    pub fn open_note(&self) -> Option<Note> {
        self.open.map(|target| begin_note(self.begin_tag, target))
    }

    /// Plans the repair of the open rewrite, if any: the spare is copied over, then `end`.
    pub fn repair(&mut self, plan: &mut Plan, end: impl FnOnce(Target) -> Note) {
        let (Some(target), Some(spare)) = (self.open.take(), self.spare) else { return };
        plan.open(GroupKind::Recovery);
        plan.read(Cause::Recovery, spare.start, target.lba, target.sectors);
        plan.write(Cause::Recovery, target.home, target.lba, target.sectors);
        plan.barrier();
        plan.note(end(target));
    }
}

fn begin_note(tag: u8, target: Target) -> Note {
    Note::new(tag, &[target.lba.0, target.sectors.0, target.home.0])
}
