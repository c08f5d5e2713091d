//! The plan: the reads, writes, journal records and barriers of a piece of work on the medium, as a list of small
//! values. Every layer produces plans.
//!
//! ```text
//!   Plan ─ groups ─ phases ─ steps
//!          │        │        └ Read · Write · Drop · Note · Barrier
//!          │        └ no host command enters a phase
//!          └ staging lives as long as a group; a background group's phases may be interrupted by host commands
//! ```
//!
//! Staging is keyed by LBA. A data step that reads stages the sectors under their LBAs, and a later read overlays an
//! earlier one. In a [`GroupKind::Host`] group the host's own data overlay both. `Drop` stages absence, so that a merge
//! does not restore trimmed data. A data step that writes takes the sectors that are staged under its LBAs; sectors
//! that are not staged are absent and read as zeros. So the merge of a band with its cached blocks is: read the band,
//! read the cached pieces, write the band.
//!
//! Invariants:
//! 1. Only [`Kind::Data`] steps hold logical sectors. The steps of other kinds are timed, and their bytes are made from
//!    the notes.
//! 2. A `Barrier` makes all steps before it durable before any step after it. A `Note` is durable at the first barrier
//!    after it, or sooner. A layer that needs "data before its note" puts a barrier between them.
//! 3. Steps that continue each other on the medium in one direction count as one access, whatever their LBAs.
//! 4. A plan reuses its buffers: [`Plan::clear`] keeps the capacity.

pub mod note;
pub mod record;

use std::fmt;

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use self::note::Note;

/// The operation of a step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum StepOp {
    /// Read `sectors` at `pba`, and stage them under `lba`.
    Read,
    /// Write `sectors` at `pba` from the data staged under `lba`.
    Write,
    /// Stage absence under `lba` (TRIM); touches no medium.
    Drop,
    /// Append a record to the journal: the one with index `pba` in [`Plan::notes`].
    Note,
    /// Make all steps before it durable before any step after it.
    Barrier,
}

/// The medium that a step is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Medium {
    /// The platters.
    Disk,
    /// The flash of a drive that has some beside its platters.
    Flash,
}

/// The contents of a step's sectors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Logical sectors.
    Data,
    /// Out-of-band records of a journal packet.
    OutOfBand,
    /// Filler: sectors that the head has to pass over, or that have to be overwritten.
    Padding,
    /// A piece of the mapping table.
    Map,
    /// A checkpoint of the mapping table.
    Checkpoint,
}

/// The reason for a step. Results split the sectors read and written by cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Cause {
    /// The host asked for these sectors.
    Host,
    /// Reclaims space or moves data home.
    Cleaning,
    /// Copies data to a safe place before a rewrite that endangers them.
    Backup,
    /// Moves data to a place where they are cheaper to write.
    Migration,
    /// Journal packets and map updates.
    Journal,
    /// Repair after a power cut.
    Recovery,
}

impl Cause {
    /// All causes, in declaration order.
    pub const ALL: [Cause; 6] =
        [Cause::Host, Cause::Cleaning, Cause::Backup, Cause::Migration, Cause::Journal, Cause::Recovery];

    /// Returns the name of the cause in results.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Host => "host",
            Cause::Cleaning => "cleaning",
            Cause::Backup => "backup",
            Cause::Migration => "migration",
            Cause::Journal => "journal",
            Cause::Recovery => "recovery",
        }
    }
}

/// One step of a plan. A step takes 24 bytes, because plans have millions of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The operation.
    pub op: StepOp,
    /// The medium of the step.
    pub medium: Medium,
    /// The contents of the sectors.
    pub kind: Kind,
    /// The reason for the step.
    pub cause: Cause,
    /// Number of sectors that the step reads, writes or drops; 0 for a note and a barrier.
    pub sectors: u32,
    /// First physical sector; for a note, its index in [`Plan::notes`].
    pub pba: Pba,
    /// First logical sector, for data.
    pub lba: Lba,
}

impl Step {
    /// Returns the physical sectors that the step reads or writes.
    pub fn extent(&self) -> Extent {
        Extent::new(self.pba, Sectors(self.sectors as u64))
    }

    /// Returns whether the step is a read or a write, which moves the head or uses the flash.
    pub fn is_access(&self) -> bool {
        matches!(self.op, StepOp::Read | StepOp::Write)
    }

    /// Returns whether the step begins where `earlier` ended, with the same operation on the same medium.
    pub fn continues(&self, earlier: &Step) -> bool {
        self.op == earlier.op && self.medium == earlier.medium && self.pba.0 == earlier.pba.0 + earlier.sectors as u64
    }
}

/// The purpose of a group of phases.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum GroupKind {
    /// Serves the commands given to [`crate::Layer::plan`]: the data of these commands overlay staged data.
    Host,
    /// Reclaims space; each group of this kind is one cleaning event. Holds no host data.
    Cleaning,
    /// Moves data to a better place. Holds no host data.
    Migration,
    /// Repairs after a power cut. Holds no host data.
    Recovery,
}

/// A run of steps that no host command interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Phase {
    /// The purpose of the phase's group.
    pub kind: GroupKind,
    /// Whether the phase opens a group, with empty staging. If not, the phase continues the previous group, perhaps of
    /// an earlier plan.
    pub opens_group: bool,
    /// Index of the phase's first step.
    pub first_step: u32,
}

/// A piece of work on the medium: steps, their phases, and journal records.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The phases; each ends where the next begins.
    pub phases: Vec<Phase>,
    /// Journal records, named by `Note` steps.
    pub notes: Vec<Note>,
}

impl Plan {
    /// Returns an empty plan.
    pub fn new() -> Plan {
        Plan::default()
    }

    /// Empties the plan and keeps its buffers.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.phases.clear();
        self.notes.clear();
    }

    /// Returns whether the plan has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Opens a group, with its first phase.
    #[inline]
    pub fn open(&mut self, kind: GroupKind) {
        self.push_phase(kind, true);
    }

    /// Begins the next phase of the group that was opened last, perhaps by an earlier plan.
    #[inline]
    pub fn next_phase(&mut self, kind: GroupKind) {
        self.push_phase(kind, false);
    }

    #[inline]
    fn push_phase(&mut self, kind: GroupKind, opens_group: bool) {
        self.phases.push(Phase { kind, opens_group, first_step: self.steps.len() as u32 });
    }

    /// Appends a read of data from the platters: `sectors` from `pba` on are staged under `lba`.
    #[inline]
    pub fn read(&mut self, cause: Cause, pba: Pba, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Read, Medium::Disk, Kind::Data, cause, pba, lba, sectors);
    }

    /// Appends a write of data to the platters: `sectors` that are staged under `lba` go to `pba`.
    #[inline]
    pub fn write(&mut self, cause: Cause, pba: Pba, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Write, Medium::Disk, Kind::Data, cause, pba, lba, sectors);
    }

    /// Appends a read or write with every field of the step given.
    #[inline]
    #[allow(clippy::too_many_arguments)] // a step has seven fields; the shorter forms above serve most callers
    pub fn access(
        &mut self,
        op: StepOp,
        medium: Medium,
        kind: Kind,
        cause: Cause,
        pba: Pba,
        lba: Lba,
        sectors: Sectors,
    ) {
        assert!(!self.phases.is_empty(), "a step needs a phase: open a group first");
        assert!(sectors.0 > 0 && sectors.0 <= u32::MAX as u64, "an access of {} sectors at {pba}, {lba}", sectors.0);
        self.steps.push(Step { op, medium, kind, cause, sectors: sectors.0 as u32, pba, lba });
    }

    /// Appends a drop: `sectors` from `lba` on are staged as absent.
    pub fn drop_sectors(&mut self, cause: Cause, lba: Lba, sectors: Sectors) {
        self.access(StepOp::Drop, Medium::Disk, Kind::Data, cause, Pba(0), lba, sectors);
    }

    /// Appends a record to the journal.
    #[inline]
    pub fn note(&mut self, note: Note) {
        let index = self.notes.len() as u64;
        self.notes.push(note);
        self.marker(StepOp::Note, Pba(index));
    }

    /// Appends a barrier: all steps before it, also those of earlier plans, become durable before any step after it. A
    /// barrier directly after another one is omitted.
    #[inline]
    pub fn barrier(&mut self) {
        if self.steps.last().is_none_or(|step| step.op != StepOp::Barrier) {
            self.marker(StepOp::Barrier, Pba(0));
        }
    }

    #[inline]
    fn marker(&mut self, op: StepOp, pba: Pba) {
        let step =
            Step { op, medium: Medium::Disk, kind: Kind::Map, cause: Cause::Journal, sectors: 0, pba, lba: Lba(0) };
        self.steps.push(step);
    }

    /// Returns the journal record of a `Note` step.
    pub fn note_of(&self, step: &Step) -> &Note {
        assert_eq!(step.op, StepOp::Note, "only note steps name a record");
        &self.notes[step.pba.0 as usize]
    }

    /// Returns the steps of phase number `index`.
    #[inline]
    pub fn steps_of(&self, index: usize) -> &[Step] {
        let first = self.phases[index].first_step as usize;
        let end = self.phases.get(index + 1).map_or(self.steps.len(), |next| next.first_step as usize);
        &self.steps[first..end]
    }
}

impl fmt::Debug for Step {
    /// Writes one line that a person can compare: `write cleaning data pba 0+50 lba 100`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cause.name();
        let flash = if self.medium == Medium::Flash { " flash" } else { "" };
        match (self.op, self.kind) {
            (StepOp::Barrier, _) => write!(f, "barrier"),
            (StepOp::Note, _) => write!(f, "note {}", self.pba.0),
            (StepOp::Drop, _) => write!(f, "drop {cause} lba {}+{}", self.lba.0, self.sectors),
            (op, Kind::Data) => {
                let verb = if op == StepOp::Read { "read" } else { "write" };
                write!(f, "{verb} {cause}{flash} pba {}+{} lba {}", self.pba.0, self.sectors, self.lba.0)
            }
            (op, kind) => {
                let verb = if op == StepOp::Read { "read" } else { "write" };
                write!(f, "{verb} {cause}{flash} {kind:?} pba {}+{}", self.pba.0, self.sectors)
            }
        }
    }
}

impl fmt::Debug for Plan {
    /// Writes the form that tests compare: a line for each phase and each step, with the journal records of notes
    /// written out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, phase) in self.phases.iter().enumerate() {
            let opens = if phase.opens_group { "group" } else { "phase" };
            writeln!(f, "{opens} {:?}", phase.kind)?;
            for step in self.steps_of(index) {
                match step.op {
                    StepOp::Note => writeln!(f, "  note {:?}", self.note_of(step))?,
                    _ => writeln!(f, "  {step:?}")?,
                }
            }
        }
        Ok(())
    }
}
