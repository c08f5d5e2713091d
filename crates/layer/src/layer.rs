//! The trait of every translation layer.
//!
//! A layer updates its map when it plans: it takes for granted that the plan is carried out. After a power cut the
//! layer in memory is gone; a new one is built with the same parameters, given the durable records in order
//! ([`Layer::replay`]), and asked for the plan that mends what was half done ([`Layer::repair`]).
//!
//! Invariants that hold for every layer, each with a test that runs over the whole registry:
//! 1. At every barrier each live sector is intact where recovery would find it (`safety=paper` excepted, and said so; of
//!    a host-managed layer those sectors excepted that a command of the host destroyed).
//! 2. What a plan acknowledged survives; what was in flight reads as the old or the new value, never as a third.
//! 3. [`Layer::lookup`] covers exactly the sectors asked for, in order, without overlap.
//! 4. A layer that trims reads trimmed sectors as absent; one that does not keeps their old contents.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Pba, Sectors, SimDuration};

use crate::plan::note::{Note, ReplayError};
use crate::plan::{Medium, Plan};
use crate::violation::Violation;
use crate::zones::Zones;

/// Where a run of logical sectors lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// First logical sector.
    pub lba: Lba,
    /// How many.
    pub sectors: Sectors,
    /// Where, or nowhere if trimmed.
    pub at: Option<(Medium, Pba)>,
}

/// Bytes of mapping state.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemory {
    /// By the paper's formula: what a controller would need.
    pub formula_bytes: u64,
    /// As our structures have it now.
    pub measured_bytes: u64,
}

/// A place where a layer keeps what is to lie elsewhere in the end: a cache region, a journal, a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// On what.
    pub medium: Medium,
    /// Where it begins.
    pub start: Pba,
    /// Where it ends.
    pub end: Pba,
    /// Sectors in use, live or dead.
    pub used: Sectors,
    /// The most that can be in use.
    pub size: Sectors,
}

/// When background work may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Time without host commands before it starts.
    pub idle_after: SimDuration,
    /// How long it rests before its next phase, once it has started.
    pub rest: SimDuration,
}

/// A translation layer.
pub trait Layer: Send {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Logical sectors it offers.
    fn capacity(&self) -> Sectors;

    /// Appends to `plan` what serves `commands`: one, or several that [`Layer::joins`] accepted, in order of arrival.
    /// All lie within the capacity. Overdue background work may be part of it, in groups of its own.
    fn plan(&mut self, commands: &[Command], plan: &mut Plan);

    /// Whether `candidate`, waiting in the queue, may be served in one operation with `chosen`.
    fn joins(&self, _chosen: &[Command], _candidate: &Command) -> bool {
        false
    }

    /// Sectors in which a command lies that [`Layer::joins`] may say yes to where `first` is served first, empty if there
    /// are none: spares the engine asking of every command in the queue.
    fn joinable(&self, _first: &Command) -> Range<Lba> {
        Lba(0)..Lba(0)
    }

    /// Where a stream of writes from `first` to `end`, gathered in a volatile cache, is best cut: what lies behind is
    /// cheaper to write together with what may follow.
    fn stream_cut(&self, _first: Lba, _end: Lba) -> Option<Lba> {
        None
    }

    /// Whether what it migrates are pseudo-tracks, which need not begin where a track does: the accounting by half
    /// rotations then adds a half (Hajkazemi 2019 §2.4).
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// What it does in the background, if anything.
    fn background(&self) -> Option<Background> {
        None
    }

    /// Appends the next phase of background work; says whether there was any.
    fn idle(&mut self, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends the pieces that hold `sectors` from `lba`, in order: where a read would go now.
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>);

    /// Whether what writes destroy is the host's business: such a drive tells its host the rule, and the host alone knows
    /// what it still wants. Its layer destroys nothing of its own accord, and a sector that a command of the host destroyed
    /// reads as an error.
    fn is_host_managed(&self) -> bool {
        false
    }

    /// Its zones with their write pointers, if it has any.
    fn zones(&self) -> Option<&Zones> {
        None
    }

    /// The same, for whoever serves a host that knows them.
    fn zones_mut(&mut self) -> Option<&mut Zones> {
        None
    }

    /// Whether TRIM is kept; if not, trimmed sectors keep their contents.
    fn keeps_trims(&self) -> bool;

    /// Checks the numbered invariants of its file's header.
    fn self_check(&self) -> Result<(), Violation>;

    /// Bytes of mapping state.
    fn memory(&self) -> MapMemory;

    /// Calls `each` with its caches, for whoever shows how full they are.
    fn caches(&self, _each: &mut dyn FnMut(Cache)) {}

    /// Appends records that rebuild the present map when replayed into a fresh layer.
    fn checkpoint(&self, notes: &mut Vec<Note>);

    /// Takes one durable record, in the order written.
    fn replay(&mut self, note: &Note) -> Result<(), ReplayError>;

    /// After the last record: appends the plan that mends what was half done.
    fn repair(&mut self, _plan: &mut Plan) {}
}
