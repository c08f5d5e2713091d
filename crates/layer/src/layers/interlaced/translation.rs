//! The interface between a layer of an interlaced disk and the common parts: the placement of data, the choice of
//! moves, and the layer's records.

use imbrex_disk::{Lba, Pba};

use super::heat::HeatLog;
use super::home::Home;
use super::moves::Transfers;
use super::run::{Track, TrackRun};
use crate::layer::Cache;
use crate::plan::Plan;
use crate::plan::note::{Note, ReplayError};
use crate::violation::Violation;

/// The part in which the layers of an interlaced disk differ: the placement of data on tracks, and the choice of data
/// to move in the background. [`Interlaced`](super::driver::Interlaced) does the rest.
pub trait Translation: Send + 'static {
    /// The description of one background move: the data to move, and their new place.
    type Move: Copy + PartialEq + std::fmt::Debug + Send;

    /// Returns the layer's name in the registry.
    fn name(&self) -> &'static str;

    /// Returns whether no power cut during a background move can lose live sectors, which is the default: see
    /// [`Layer::is_power_safe`](crate::Layer::is_power_safe).
    fn is_power_safe(&self) -> bool {
        true
    }

    /// Returns the run of consecutive logical sectors that contains `lba` and lies in one piece on one track, at the
    /// present place of the data. The run may begin before `lba`.
    fn run_of(&self, home: &Home, lba: Lba) -> TrackRun;

    /// Returns the run of logical sectors that lies on `track` around its sector `sector`, counted on the track from 0.
    /// If no data lie there, returns the first run after that sector, or `None` if there is none up to the end of the
    /// track.
    fn run_at(&self, home: &Home, track: &Track, sector: u32) -> Option<TrackRun>;

    /// Returns the heat key under which a host write of `run` is counted: the number of a track or of a part of one, in
    /// a numbering that the layer defines. By default it is that of `run`; [`NO_HEAT`](super::NO_HEAT) if the write is
    /// not counted.
    #[inline]
    fn heat(&self, run: &TrackRun) -> u32 {
        run.heat
    }

    /// Returns whether waiting writes to one track may share an operation, which is the default.
    fn joins_writes(&self) -> bool {
        true
    }

    /// Returns whether the layer moves data in the background, which is the default. If not, host writes are not
    /// counted as heat.
    fn moves(&self) -> bool {
        true
    }

    /// Appends to `moves` the background moves to make after an interval of host writes, in the order in which they are
    /// to be made. `heat` holds the sorted counts of the interval. By default appends none.
    fn select(&mut self, _home: &Home, _heat: &HeatLog, _moves: &mut Vec<Self::Move>) {}

    /// Adds to `transfers` the runs to copy for the move `chosen`, and the tracks to lock. Returns `false` if the move
    /// must not be made, because an earlier move has changed the places of its data, for example. By default returns
    /// `false`.
    fn prepare(&self, _home: &Home, _chosen: Self::Move, _transfers: &mut Transfers) -> bool {
        false
    }

    /// Records the end of phase 2 of the move `chosen`: changes the map, and appends a journal record to `plan`. All
    /// runs are in their new places, except those with [`Timing::WrittenLate`](super::moves::Timing::WrittenLate).
    /// These lie only in the backup region, from the physical sector `backup` on.
    ///
    /// # Panics
    ///
    /// By default: a layer without late runs need not implement the method.
    fn displace(&mut self, _home: &Home, _chosen: Self::Move, _backup: Pba, _plan: &mut Plan) {
        unreachable!("only moves with late transfers displace data")
    }

    /// Records the end of the move `chosen`, whose runs are all in their new places: changes the map, and appends a
    /// journal record to `plan`. That record also says that the backup of the move is no longer needed.
    ///
    /// # Panics
    ///
    /// By default: a layer that moves no data need not implement the method.
    fn commit(&mut self, _home: &Home, _chosen: Self::Move, _plan: &mut Plan) {
        unreachable!("a layer that moves nothing has nothing to commit")
    }

    /// Replays a journal record of [`Translation::displace`], [`Translation::commit`] or [`Translation::checkpoint`].
    /// Returns whether the backup of the move is no longer needed after that record.
    ///
    /// # Errors
    ///
    /// The record is not one of this layer's, or has impossible values. By default every record is an error.
    fn replay(&mut self, _home: &Home, note: &Note) -> Result<bool, ReplayError> {
        Err(ReplayError { note: *note, reason: "this layer has no such record".into() })
    }

    /// Appends to `plan` the completion of a move that a power cut interrupted after [`Translation::displace`], in a
    /// recovery group of its own: data that lie only in the backup region are written to their new place. Returns
    /// whether there was such a move. By default there is none.
    fn finish_displaced(&mut self, _home: &Home, _plan: &mut Plan) -> bool {
        false
    }

    /// Appends to `notes` the journal records that rebuild the map in a new layer. A record of data that lie only in
    /// the backup region comes last. By default appends none.
    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    /// Calls `each` once with every cache of the layer; by default there is none.
    fn caches(&self, _home: &Home, _each: &mut dyn FnMut(Cache)) {}

    /// Checks the map against the numbered invariants in the header comment of the layer's file. By default checks
    /// nothing.
    ///
    /// # Errors
    ///
    /// The first broken invariant that the check finds.
    fn self_check(&self, _home: &Home) -> Result<(), Violation> {
        Ok(())
    }

    /// Returns whether the layer moves pseudo-tracks: pieces as long as a track, which need not begin at the start of
    /// one. By default returns `false`.
    fn moves_pseudo_tracks(&self) -> bool {
        false
    }

    /// Returns the bytes of memory that the map would take in a drive's controller, by the formula of the layer's
    /// paper, for a disk of `tracks` tracks. By default returns 0.
    fn formula_bytes(&self, _tracks: u64) -> u64 {
        0
    }

    /// Returns the bytes of memory that the map takes in this program now. By default returns 0.
    fn measured_bytes(&self) -> u64 {
        0
    }
}
