//! A circular buffer with a guard band (Cassuto 2010 definition 5): written at the head, freed at the tail.
//!
//! Positions count all sectors ever claimed, and never wrap. Only [`Ring::pieces`] takes them modulo the ring's length
//! M = payload + Λ, where Λ is the length of the guard band. A run across the end of the ring lies in two pieces, so no
//! sectors are left unused there.
//!
//! ```text
//!   start                                            start + M
//!     │ free │ tail ▒▒▒▒▒▒ used ▒▒▒▒▒▒ head │ guard Λ  … │ guard of the disk
//! ```
//!
//! Invariants:
//! 1. At rest head − tail ≤ payload, that is (tail − head) mod M ≥ Λ. Λ is at least the interference distance, so a
//!    write at the head destroys no sector in use.
//! 2. While live sectors are copied from the tail to the head, the head enters the guard by at most Λ − interference
//!    sectors: a copy does not destroy its own source.

use imbrex_disk::{Extent, Pba, Sectors};

use crate::layer::Cache;
use crate::plan::Medium;

/// A position in a ring: the number of sectors that were claimed before it, since the ring was made. Positions do not
/// wrap at the end of the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Position(pub u64);

impl Position {
    /// Value that stands for the position of trimmed sectors, which lie in no ring.
    pub(super) const NOWHERE: Position = Position(u64::MAX);

    /// Returns the position that lies `sectors` after this one.
    pub(super) fn plus(self, sectors: u64) -> Position {
        Position(self.0 + sectors)
    }
}

/// A circular buffer of physical sectors, written at its head and freed at its tail, with a guard band of unused
/// sectors between head and tail.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    start: Pba,
    length: u64,
    payload: u64,
    tail: Position,
    head: Position,
}

impl Ring {
    /// Returns an empty ring of `payload` + `guard` sectors from the physical sector `start` on.
    pub(super) fn new(start: Pba, payload: Sectors, guard: Sectors) -> Ring {
        Ring { start, length: payload.0 + guard.0, payload: payload.0, tail: Position(0), head: Position(0) }
    }

    /// Returns the position of the head, at which the next claimed sectors begin.
    pub(super) fn head(&self) -> Position {
        self.head
    }

    /// Returns the position of the tail: of the oldest sector in use, or of the head if none is in use.
    pub(super) fn tail(&self) -> Position {
        self.tail
    }

    /// Returns the number of sectors in use, from tail to head, live or dead.
    pub(super) fn used(&self) -> u64 {
        self.head.0 - self.tail.0
    }

    /// Returns the maximum number of sectors in use, except while sectors are copied: the length of the ring without
    /// the guard band.
    pub(super) fn payload(&self) -> u64 {
        self.payload
    }

    /// Returns a description of the ring as a [`Cache`]: its place on the disk and its fill level.
    pub(super) fn as_cache(&self) -> Cache {
        let (used, size) = (Sectors(self.used()), Sectors(self.payload));
        Cache { medium: Medium::Disk, start: self.start, end: self.start + Sectors(self.length), used, size }
    }

    /// Returns whether `sectors` more can be claimed so that the sectors in use do not exceed the payload.
    pub(super) fn fits(&self, sectors: u64) -> bool {
        self.used() + sectors <= self.payload
    }

    /// Returns whether `position` lies between tail (inclusive) and head (exclusive).
    pub(super) fn holds(&self, position: Position) -> bool {
        self.tail <= position && position < self.head
    }

    /// Claims `sectors` at the head: moves the head forward, if necessary into the guard band.
    ///
    /// # Errors
    ///
    /// The head would reach the tail. Planning never causes this; a damaged journal can.
    pub(super) fn claim(&mut self, sectors: u64) -> Result<(), &'static str> {
        if sectors >= self.length - self.used() {
            return Err("the head would run into the tail");
        }
        self.head.0 += sectors;
        Ok(())
    }

    /// Frees `sectors` at the tail: moves the tail forward.
    ///
    /// # Panics
    ///
    /// If fewer sectors are in use.
    pub(super) fn release(&mut self, sectors: u64) {
        assert!(sectors <= self.used(), "release of {sectors} sectors where {} are in use", self.used());
        self.tail.0 += sectors;
    }

    /// Empties the ring and sets head and tail to `position`. Only replay uses this.
    pub(super) fn restart(&mut self, position: Position) {
        self.tail = position;
        self.head = position;
    }

    /// Returns the physical sectors of the `sectors` from `position` on, each run with its offset from `position` in
    /// sectors. There is one run, or two if the sectors wrap at the end of the ring; none if `sectors` is 0.
    pub(super) fn pieces(&self, position: Position, sectors: u64) -> impl Iterator<Item = (u64, Extent)> {
        let offset = position.0 % self.length;
        let before_end = sectors.min(self.length - offset);
        let first = (0, Extent::new(Pba(self.start.0 + offset), Sectors(before_end)));
        let second = (before_end, Extent::new(self.start, Sectors(sectors - before_end)));
        [first, second].into_iter().filter(|(_, extent)| !extent.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_straddles_the_end_lies_in_two_pieces() {
        // M = 10 + 3 = 13: position 24 is offset 11, so two sectors lie before the end and three after the start.
        let ring = Ring::new(Pba(100), Sectors(10), Sectors(3));
        let pieces: Vec<_> = ring.pieces(Position(24), 5).collect();
        let expected = [(0, Extent::new(Pba(111), Sectors(2))), (2, Extent::new(Pba(100), Sectors(3)))];
        assert_eq!(pieces, expected);
        let whole: Vec<_> = ring.pieces(Position(21), 5).collect();
        assert_eq!(whole, [(0, Extent::new(Pba(108), Sectors(5)))]);
    }

    #[test]
    fn the_guard_is_never_counted_as_room() {
        let mut ring = Ring::new(Pba(0), Sectors(10), Sectors(3));
        ring.claim(8).expect("fits");
        assert!(ring.fits(2) && !ring.fits(3));
        ring.release(1);
        assert!(ring.fits(3));
        assert!(ring.claim(6).is_err());
    }
}
