//! Places the rings of a shape on a disk: one after the other, each followed by a guard as long as a write reaches.
//!
//! A stroke is a stretch of tracks that the arm passes in one direction. In a horizontal layout a write at the end of a
//! stroke destroys sectors far away, before or behind. A ring that held the end of a stroke would have to leave out the
//! sectors destroyed from there, wherever they are. So each ring lies within a stroke, and the few tracks at the end of
//! each stroke stay unused.
//!
//! Invariants:
//! 1. Rings and the guards after them are disjoint, and lie on the disk.
//! 2. A write anywhere in a ring destroys only sectors of that ring ahead of the write, and sectors of the guard that
//!    follows.

use imbrex_disk::{Disk, Extent, Pba, Sectors};

use super::ring::Ring;
use super::shape::Shape;
use crate::region::alike_tracks;

/// The first physical sectors of the two rings of a section: the S-block buffer and the cache buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RingStarts {
    pub sblocks: Pba,
    pub cache: Pba,
}

impl RingStarts {
    /// Returns two empty rings at these places: first the S-block buffer, then the cache buffer.
    pub(super) fn rings(&self, shape: &Shape) -> (Ring, Ring) {
        let guard = Sectors(shape.guard_sectors);
        let sblocks = Ring::new(self.sblocks, Sectors(shape.sblock_payload()), guard);
        (sblocks, Ring::new(self.cache, Sectors(shape.cache_sectors), guard))
    }
}

/// The reason for which the rings of a [`Shape`] cannot be placed on a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Misfit {
    /// The disk has too few sectors for the rings and their guards; about this many are missing.
    Short { sectors: u64 },
    /// A write destroys this many sectors past its end, which is more than the shape assumes, so the guards must be
    /// longer.
    Reach { sectors: u64 },
}

/// Returns the places of the rings of all sections of `shape` on `disk`, in order of section.
///
/// # Errors
///
/// The disk has too few sectors, or a write destroys more sectors past its end than `shape` assumes.
pub(super) fn place(disk: &Disk, shape: &Shape) -> Result<Vec<RingStarts>, Misfit> {
    let mut placer = Placer { disk, guard: shape.interference_sectors, next: 0, destroyed: Vec::new() };
    let mut starts = Vec::with_capacity(shape.sections as usize);
    for section in 0..shape.sections {
        let missing = |short: Misfit| match short {
            Misfit::Short { sectors } => {
                Misfit::Short { sectors: sectors + (shape.sections - 1 - section) * shape.physical_sectors() }
            }
            reach => reach,
        };
        let sblocks = placer.ring(shape.sblock_payload() + shape.guard_sectors).map_err(missing)?;
        let cache = placer.ring(shape.cache_sectors + shape.guard_sectors).map_err(missing)?;
        starts.push(RingStarts { sblocks, cache });
    }
    Ok(starts)
}

struct Placer<'a> {
    disk: &'a Disk,
    guard: u64,
    next: u64,
    destroyed: Vec<Extent>,
}

impl Placer<'_> {
    /// Returns the next place for a ring of `length` sectors.
    fn ring(&mut self, length: u64) -> Result<Pba, Misfit> {
        let end = self.disk.geometry.sectors().0;
        loop {
            let after = self.next + length + self.guard;
            if after > end {
                return Err(Misfit::Short { sectors: after - end });
            }
            let ring = Extent::new(Pba(self.next), Sectors(length));
            match self.first_stray(ring)? {
                Some(track_end) => self.next = track_end.0,
                None => {
                    self.next = after;
                    return Ok(ring.start);
                }
            }
        }
    }

    /// Returns the end of the first track of `ring` whose writing destroys sectors far away.
    fn first_stray(&mut self, ring: Extent) -> Result<Option<Pba>, Misfit> {
        if self.disk.recording.is_harmless() {
            return Ok(None);
        }
        let mut track = self.disk.geometry.track_of(ring.start);
        loop {
            let part = track.intersection(ring).expect("a track that begins in the ring, or holds its start");
            if self.strays(part)? {
                return Ok(Some(part.end()));
            }
            // Tracks that lie alike destroy at the same distances, so one check of a whole track is enough for all of
            // them.
            let whole = if part == track { (ring.end() - track.start).0 / track.sectors.0 } else { 1 };
            let alike = if whole > 1 { alike_tracks(self.disk, track.start).min(whole) } else { 1 };
            let next = part.end() + Sectors((alike - 1) * track.sectors.0);
            if next == ring.end() {
                return Ok(None);
            }
            track = self.disk.geometry.track_of(next);
        }
    }

    /// Returns whether writing `part` destroys sectors before it or past its guard.
    ///
    /// # Errors
    ///
    /// [`Misfit::Reach`] if the destroyed sectors begin within the guard but extend past it.
    fn strays(&mut self, part: Extent) -> Result<bool, Misfit> {
        self.destroyed.clear();
        self.disk.recording.destroys(&self.disk.geometry, part, &mut self.destroyed);
        let guard_end = part.end() + Sectors(self.guard);
        for extent in &self.destroyed {
            if extent.start < part.start || extent.start > guard_end {
                return Ok(true);
            }
            if extent.end() > guard_end {
                return Err(Misfit::Reach { sectors: (extent.end() - part.end()).0 });
            }
        }
        Ok(false)
    }
}
