//! The places of an operation's first accesses, kept so that sectors are located only once. A read-modify-write writes
//! the sectors that it has read; and a scheduler by positioning time has located its choice before the operation
//! begins.
//!
//! Invariants:
//! 1. A remembered piece equals the result of [`Geometry::piece`] for the same sectors.

use crate::geometry::{Geometry, TrackPiece};
use crate::units::Extent;

/// Number of accesses that are remembered. A write of a bottom track reads from both neighbouring top tracks, each in
/// one extent, or two where the sectors run over the end of the track.
const REMEMBERED: usize = 4;

/// The first pieces of the first accesses of an operation, with the extents of those accesses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    pieces: [Option<(Extent, TrackPiece)>; REMEMBERED],
    len: usize,
    /// First piece that the next operation is likely to access.
    expected: Option<TrackPiece>,
}

impl Recent {
    /// Remembers `piece` as the likely first piece of the next operation. The operation may access others instead.
    #[inline]
    pub(super) fn expect(&mut self, piece: TrackPiece) {
        self.expected = Some(piece);
    }

    /// Begins a new operation: forgets the pieces of the operation before, and takes over the expected piece, if any.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.len = 0;
        if let Some(piece) = self.expected.take() {
            self.pieces[0] = Some((piece.extent(), piece));
            self.len = 1;
        }
    }

    /// Returns the first piece of `extent`: the remembered one, or else the one that `geometry` locates, which is
    /// remembered if there is room.
    #[inline]
    pub(super) fn piece(&mut self, geometry: &Geometry, extent: Extent) -> TrackPiece {
        let known = self.pieces[..self.len].iter().flatten().find(|(known, _)| *known == extent);
        if let Some((_, piece)) = known {
            return *piece;
        }
        let piece = geometry.piece(extent.start, extent.sectors);
        if let Some(free) = self.pieces.get_mut(self.len) {
            *free = Some((extent, piece));
            self.len += 1;
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{GeometryConfig, LayoutName};
    use crate::units::{Pba, Sectors};

    /// Checks invariant 1. Method: repeated extents, some of them shortened, more than are remembered, in several
    /// operations.
    #[test]
    fn what_is_remembered_is_what_the_geometry_says() {
        let config = GeometryConfig::listed(2, LayoutName::Cylinder, 10_000_000, &[(50, 100), (50, 80)]);
        let geometry = Geometry::new(&config).expect("it is a geometry");
        let mut recent = Recent::default();
        for expected in [None, Some((Pba(150), Sectors(8))), Some((Pba(90), Sectors(30)))] {
            if let Some((start, sectors)) = expected {
                recent.expect(geometry.piece(start, sectors));
            }
            recent.begin();
            assert_eq!(recent.len, usize::from(expected.is_some()));
            for start in [0, 150, 0, 90, 15_000, 150, 7, 0, 33, 33, 15_000] {
                for sectors in [8, 30] {
                    let extent = Extent::new(Pba(start), Sectors(sectors));
                    let piece = geometry.piece(extent.start, extent.sectors);
                    assert_eq!(recent.piece(&geometry, extent), piece, "{extent:?}");
                }
            }
            assert_eq!(recent.len, REMEMBERED);
        }
    }
}
