//! The trait of every translation layer.
//!
//! A layer updates its map while it plans: it assumes that the plan will be executed. A power cut destroys the layer in
//! memory. A new layer is then built with the same parameters and is given the durable records in order
//! ([`Layer::replay`]). Finally the new layer is asked for a plan that completes or undoes the work that the cut
//! interrupted ([`Layer::repair`]).
//!
//! Invariants that hold for every layer, each with a test that runs over the whole registry:
//! 1. At every barrier each live sector is intact where recovery would find it. Layers with `safety=paper` are
//!    excepted, and say so. For a host-managed layer, sectors that a command of the host destroyed are excepted.
//! 2. Acknowledged writes survive. A sector with a write in flight reads as the old or the new value, never as a third.
//! 3. [`Layer::lookup`] covers exactly the requested sectors, in order, without overlap.
//! 4. A layer that keeps trims reads trimmed sectors as absent; a layer that does not keeps their old contents.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Pba, Sectors, SimDuration};

use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::Area;
use crate::plan::{Medium, Plan};
use crate::violation::Violation;
use crate::zones::Zones;

/// A run of consecutive logical sectors that are also consecutive on a medium, or are all absent (trimmed, or never
/// written).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Piece {
    /// First logical sector of the run.
    pub lba: Lba,
    /// Number of logical sectors of the run.
    pub sectors: Sectors,
    /// The medium, and the physical sector of `lba`; the other sectors follow it in order. `None` if the sectors are
    /// absent: trimmed, or never written.
    pub at: Option<(Medium, Pba)>,
}

/// A run of physical sectors of a store. Host writes that go there take space of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreExtent {
    /// The store, as the reasons of phases name it.
    pub area: Area,
    /// The medium that the run is on.
    pub medium: Medium,
    /// First sector of the run.
    pub start: Pba,
    /// One past the last sector of the run.
    pub end: Pba,
}

/// The memory that a layer's map needs, in bytes: on a real controller, and in this program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MapMemory {
    /// Bytes of memory that a drive's controller would need for the map, by the formula of the paper that describes the
    /// layer. 0 if the layer has no map.
    pub formula_bytes: u64,
    /// Bytes of memory that the layer's map and other tables take in this program now.
    pub measured_bytes: u64,
}

/// A run of physical sectors in which a layer keeps data temporarily, before it writes them to their final place: a
/// part of a cache region, a journal or a buffer. A layer may have several. The live page and `imbrex drive info` show
/// all caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// The medium that the cache is on.
    pub medium: Medium,
    /// First sector of the cache.
    pub start: Pba,
    /// One past the last sector of the cache.
    pub end: Pba,
    /// Number of sectors of the cache that were written and not freed yet, whether their data are live or not.
    pub used: Sectors,
    /// Maximum number of sectors in use at a time: less than the length of the cache where guards or headers take a
    /// part.
    pub size: Sectors,
}

/// How soon the layer will have to plan the command that a hint ([`Layer::prefetch`]) announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefetchHint {
    /// The command is the next one that the layer plans, so the memory that it needs should be prefetched now.
    Next,
    /// The layer plans other commands first. Following a pointer that is not in the processor's cache yet would cost a
    /// wait now. So a layer should only prefetch the memory of that pointer. The memory to which the pointer leads can
    /// be prefetched when the command is the next one.
    Later,
}

/// The times at which a layer does background work while the host is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Background {
    /// Time without host commands before the next phase of background work starts. If the drive sets a longer idle
    /// threshold, that one applies.
    pub idle_after: SimDuration,
    /// Time between the end of one phase of background work and the start of the next, once background work has
    /// started.
    pub rest: SimDuration,
}

/// A translation layer: it maps logical sectors to physical ones, and plans the reads and writes on the medium for
/// every command.
///
/// A layer keeps a map and makes [`Plan`]s; it knows neither time nor bytes. The engine times the plans, and the store
/// of an image executes them. In tests a checker verifies that they lose no data.
pub trait Layer: Send {
    /// Returns the layer's name in the registry, such as `media-cache`.
    fn name(&self) -> &'static str;

    /// Returns the layer's capacity: the number of logical sectors that the host can use.
    fn capacity(&self) -> Sectors;

    /// Appends to `plan` the steps that serve `commands`, and updates the map as if the plan were executed. `commands`
    /// holds one command, or several that [`Layer::joins`] accepted, in order of arrival. All of them must lie within
    /// the capacity. The layer may also append background work that cannot wait, such as cleaning of a full cache, in
    /// groups of its own.
    fn plan(&mut self, commands: &[Command], plan: &mut Plan);

    /// Takes the hint that a command which begins at `lba` will be planned soon: as the next one or later, as `_coming`
    /// says. `lba` may lie past the capacity. A layer may make the processor prefetch the part of the map that the
    /// command will need ([`crate::map::prefetch`]). The hint changes no plan. By default it has no effect.
    fn prefetch(&self, _lba: Lba, _coming: PrefetchHint) {}

    /// Returns whether the waiting command `candidate` may be served by one call of [`Layer::plan`] together with the
    /// commands `chosen`, which is not empty. By default no commands are joined.
    fn joins(&self, _chosen: &[Command], _candidate: &Command) -> bool {
        false
    }

    /// Returns a range of LBAs (exclusive end) that contains the first sector of every command that may join `first`.
    /// An empty range means that no command can join, which is the default. A command in the range can join only if
    /// [`Layer::joins`] accepts it. The range spares the caller asking about every waiting command.
    fn joinable(&self, _first: &Command) -> Range<Lba> {
        Lba(0)..Lba(0)
    }

    /// Returns the LBA at which a write-back of the volatile cache should stop, for sequential dirty sectors from
    /// `first` up to, not including, `end`. The sectors from the returned LBA on stay in the cache, because they are
    /// cheaper to write together with sectors that may follow. The returned LBA lies between `first` and `end`, and
    /// equals neither. `None`, the default, means that all sectors should be written now.
    fn stream_cut(&self, _first: Lba, _end: Lba) -> Option<Lba> {
        None
    }

    /// Returns whether the layer migrates data in pseudo-tracks (pieces as long as a track, which need not begin at the
    /// start of one). The `half` rotation model then adds half a rotation to each pseudo-track (Hajkazemi 2019 §2.4).
    /// By default returns `false`.
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Returns the times at which the engine should call [`Layer::idle`]. `None`, the default, means that the layer
    /// never does background work.
    fn background(&self) -> Option<Background> {
        None
    }

    /// Appends the next phase of background work to the plan, and returns `true`. Returns `false`, and appends nothing,
    /// if there is no background work to do now.
    fn idle(&mut self, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends to `pieces` the places at which a read would find the `sectors` from `lba` on, which lie within the
    /// capacity. The pieces are in order of LBA and cover exactly these sectors; absent sectors (trimmed, or never
    /// written) have a piece without a place.
    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>);

    /// Returns whether the layer is host-managed: a write may destroy other sectors, and the host has to avoid writes
    /// that destroy data which it still needs. The drive reports the rule to the host. A sector that a write of the
    /// host destroyed reads as an error. By default returns `false`: no write of the host destroys other live sectors.
    fn is_host_managed(&self) -> bool {
        false
    }

    /// Returns whether no power cut can lose live sectors, which is the default. Some layers return `false` if they are
    /// built with `safety=paper`, because then they take only the steps of their paper.
    fn is_power_safe(&self) -> bool {
        true
    }

    /// Returns the layer's zones with their write pointers, or `None` if the layer does not have the zones of a
    /// host-managed drive.
    fn zones(&self) -> Option<&Zones> {
        None
    }

    /// Returns the layer's zones for a change, so that the host can open, close, finish and reset them. Returns `None`
    /// if [`Layer::zones`] does.
    fn zones_mut(&mut self) -> Option<&mut Zones> {
        None
    }

    /// Returns whether the layer remembers which sectors are trimmed, so that they read as zeros. If `false`, a trim
    /// has no effect, and trimmed sectors keep their contents.
    fn keeps_trims(&self) -> bool;

    /// Checks the layer's structures in memory against the numbered invariants in the header comment of the layer's
    /// file.
    ///
    /// # Errors
    ///
    /// The first broken invariant that the check finds.
    fn self_check(&self) -> Result<(), Violation>;

    /// Returns the memory that the layer's map needs, in bytes: on a drive's controller, by the formula of the layer's
    /// paper, and in this program now.
    fn memory(&self) -> MapMemory;

    /// Calls `each` once with every cache of the layer, so that the fill level of each cache can be shown. By default
    /// the layer has no caches.
    fn caches(&self, _each: &mut dyn FnMut(Cache)) {}

    /// Calls `each` with the runs of physical sectors of every store: every part of the drive that fills up with host
    /// writes and is then relieved by the layer's own work, as the reasons of its phases name them. The runs do not
    /// change during a run of the drive, and a store may have several. By default the layer has no stores.
    fn stores(&self, _each: &mut dyn FnMut(StoreExtent)) {}

    /// Appends to `notes` journal records that rebuild the present map when they are replayed, in order, into a new
    /// layer with the same parameters. They can replace all earlier records of the journal.
    fn checkpoint(&self, notes: &mut Vec<Note>);

    /// Applies one record of the journal to a new layer after a restart. The caller passes every durable record once,
    /// in the order in which the records were written.
    ///
    /// # Errors
    ///
    /// The record is not one of this layer's, has impossible values, or cannot follow the records before it.
    fn replay(&mut self, note: &Note) -> Result<(), ReplayError>;

    /// Appends to the plan the steps that complete or undo the work that a power cut interrupted. The caller calls it
    /// once, after the last record was replayed, and executes the plan before any command. By default appends nothing.
    fn repair(&mut self, _plan: &mut Plan) {}
}
