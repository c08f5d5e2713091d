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
use crate::plan::note::Note;
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
pub struct Rewrite {
    /// First logical sector.
    pub lba: Lba,
    /// How many sectors.
    pub sectors: Sectors,
    /// First physical sector.
    pub home: Pba,
}

/// Rewrites in place, one at a time, with or without a spare.
#[derive(Clone, Debug)]
pub struct Rewriter {
    spare: Option<Extent>,
    /// The record of the layer that says that the spare holds a run.
    begin: fn(Rewrite) -> Note,
    open: Option<Rewrite>,
}

impl Rewriter {
    /// A rewriter that notes a rewrite, when its new content is safe in `spare`, by the layer's record `begin`.
    pub fn new(spare: Option<Extent>, begin: fn(Rewrite) -> Note) -> Rewriter {
        Rewriter { spare, begin, open: None }
    }

    /// Plans the rewrite of `target` with what is staged: of it `host_sectors` from `host_lba` on behalf of the host, the
    /// rest as cleaning; then the record `end`.
    pub fn rewrite(&self, plan: &mut Plan, target: Rewrite, host_lba: Lba, host_sectors: Sectors, end: Note) {
        assert!(self.open.is_none(), "invariant 1: a rewrite is open: {:?}", self.open);
        if let Some(spare) = self.spare {
            assert!(target.sectors <= spare.sectors, "{target:?} does not fit into the spare {spare:?}");
            plan.barrier();
            plan.write(Cause::Backup, spare.start, target.lba, target.sectors);
            plan.barrier();
            plan.note((self.begin)(target));
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

    /// Takes the begin record of `target`, on a layer of `capacity`: that rewrite is open until [`Rewriter::ended`]. An error
    /// says why no such rewrite can have begun.
    pub fn replay_begin(&mut self, target: Rewrite, capacity: Sectors) -> Result<(), String> {
        let Rewrite { lba, sectors, .. } = target;
        let Some(spare) = self.spare else { return Err("this layer has no spare to rewrite by".into()) };
        if sectors.is_zero() || sectors > spare.sectors {
            return Err(format!("{} sectors do not fit the spare of {}", sectors.0, spare.sectors.0));
        }
        if lba.0.checked_add(sectors.0).is_none_or(|end| end > capacity.0) {
            return Err(format!("{} sectors from {lba} lie past the capacity of {}", sectors.0, capacity.0));
        }
        self.open = Some(target);
        Ok(())
    }

    /// The open rewrite is done.
    pub fn ended(&mut self) {
        self.open = None;
    }

    /// The rewrite that a cut left half done.
    pub fn open(&self) -> Option<Rewrite> {
        self.open
    }

    /// The begin record of the open rewrite, for a checkpoint.
    pub fn open_note(&self) -> Option<Note> {
        self.open.map(self.begin)
    }

    /// Plans the repair of the open rewrite, if any: the spare is copied over, then `end`.
    pub fn repair(&mut self, plan: &mut Plan, end: impl FnOnce(Rewrite) -> Note) {
        let (Some(target), Some(spare)) = (self.open.take(), self.spare) else { return };
        plan.open(GroupKind::Recovery);
        plan.read(Cause::Recovery, spare.start, target.lba, target.sectors);
        plan.write(Cause::Recovery, target.home, target.lba, target.sectors);
        plan.barrier();
        plan.note(end(target));
    }
}
