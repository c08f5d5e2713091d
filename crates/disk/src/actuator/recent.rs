//! The places of an operation's first accesses. A read-modify-write comes back to what it has read, and need not locate it again;
//! and a scheduler by positioning time has located what it chooses before the operation begins.
//!
//! Invariants:
//! 1. What is remembered is what [`Geometry::piece`] says of the same sectors.

use crate::geometry::{Geometry, TrackPiece};
use crate::units::Extent;

/// Accesses that are remembered: as many as what a write of a bottom track reads of the two tops beside it, each of which may wrap.
const REMEMBERED: usize = 4;

/// The first pieces of the first accesses of an operation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recent {
    pieces: [Option<(Extent, TrackPiece)>; REMEMBERED],
    len: usize,
    /// What the next operation is likely to access first.
    expected: Option<TrackPiece>,
}

impl Recent {
    /// The next operation is likely to access this first, and may.
    #[inline]
    pub(super) fn expect(&mut self, piece: TrackPiece) {
        self.expected = Some(piece);
    }

    /// A new operation begins: of the last one nothing is remembered.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.len = 0;
        if let Some(piece) = self.expected.take() {
            self.pieces[0] = Some((piece.extent(), piece));
            self.len = 1;
        }
    }

    /// The first piece of `extent`.
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

    /// Goal: invariant 1. Method: extents that come back, also cut short, more of them than are remembered, in two operations.
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
