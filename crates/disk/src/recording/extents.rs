//! Lists of extents that a write destroys: clipped to the disk, cut where sectors are spared, ordered and joined.

use crate::geometry::Geometry;
use crate::units::{Extent, Pba};

/// Returns the sectors from `start` up to `end` that lie on the disk, or `None` if there are none.
pub(super) fn clipped(geometry: &Geometry, start: Pba, end: Pba) -> Option<Extent> {
    let end = end.min(Pba(geometry.sectors().0));
    (start < end).then(|| Extent::between(start, end))
}

/// Appends the parts of `lost` outside `spared`.
pub(super) fn push_outside(lost: Extent, spared: Extent, destroyed: &mut Vec<Extent>) {
    let before = lost.end().min(spared.start);
    if lost.start < before {
        destroyed.push(Extent::between(lost.start, before));
    }
    let after = lost.start.max(spared.end());
    if after < lost.end() {
        destroyed.push(Extent::between(after, lost.end()));
    }
}

/// Orders and joins the extents from index `first` on: invariant 4 of the folder.
pub(super) fn normalize(destroyed: &mut Vec<Extent>, first: usize) {
    destroyed[first..].sort_unstable_by_key(|extent| extent.start);
    let mut kept = first;
    for index in first..destroyed.len() {
        let extent = destroyed[index];
        if kept > first && extent.start <= destroyed[kept - 1].end() {
            let last = &mut destroyed[kept - 1];
            *last = Extent::between(last.start, last.end().max(extent.end()));
        } else {
            destroyed[kept] = extent;
            kept += 1;
        }
    }
    destroyed.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Sectors;

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent::new(Pba(start), Sectors(sectors))
    }

    #[test]
    fn normalizing_leaves_what_was_there_before_alone() {
        let mut extents = vec![extent(50, 9), extent(7, 3), extent(1, 4), extent(10, 2), extent(2, 1)];
        normalize(&mut extents, 1);
        assert_eq!(extents, [extent(50, 9), extent(1, 4), extent(7, 5)]);
    }

    #[test]
    fn what_is_spared_is_not_lost() {
        let mut destroyed = Vec::new();
        push_outside(extent(10, 10), extent(13, 2), &mut destroyed);
        push_outside(extent(10, 10), extent(5, 15), &mut destroyed);
        push_outside(extent(10, 10), extent(20, 5), &mut destroyed);
        assert_eq!(destroyed, [extent(10, 3), extent(15, 5), extent(10, 10)]);
        // If sectors at one end are spared, not even an empty extent is left there.
        destroyed.clear();
        push_outside(extent(10, 10), extent(10, 4), &mut destroyed);
        push_outside(extent(10, 10), extent(16, 4), &mut destroyed);
        assert_eq!(destroyed, [extent(14, 6), extent(10, 6)]);
    }
}
