//! A map from runs of physical sectors to the logical sectors that they hold: the inverse of an [`ExtentMap`]. It is
//! stored as an [`ExtentMap`] in which LBAs and PBAs are swapped.
//!
//! Invariants:
//! 1. Runs are disjoint.

use imbrex_disk::{Extent, Lba, Pba};

use super::extent_map::{ExtentMap, Mapped, MappedRun};

/// A map from runs of physical sectors to the logical sectors that they hold. No physical sector is mapped twice.
#[derive(Clone, Debug, Default)]
pub struct PlaceMap {
    inverse: ExtentMap,
}

impl PlaceMap {
    /// Returns the number of runs, not of sectors.
    pub fn len(&self) -> usize {
        self.inverse.len()
    }

    /// Returns whether no physical sector is mapped.
    pub fn is_empty(&self) -> bool {
        self.inverse.is_empty()
    }

    /// Maps the physical sectors of `place` to the logical sectors from `lba` on, as one run.
    ///
    /// # Panics
    ///
    /// If a sector of `place` is mapped already, or `place` is empty or has 2³² sectors or more.
    #[inline]
    pub fn insert(&mut self, place: Extent, lba: Lba) {
        self.inverse.insert(Lba(place.start.0), place.sectors, Mapped::At(Pba(lba.0)), |run| {
            panic!("invariant 1: {:?} lies in {place:?}", held(run))
        });
    }

    /// Unmaps all physical sectors of `place`. Sectors that are not mapped are ignored; runs that reach out of `place`
    /// keep their other sectors.
    pub fn remove(&mut self, place: Extent) {
        self.inverse.remove(Lba(place.start.0), place.sectors, |_| {});
    }

    /// Returns the mapped part of `place` with the lowest PBA, clipped to `place`, and the LBA of its first sector. The
    /// part lies in one run. Returns `None` if no sector of `place` is mapped.
    pub fn first_in(&self, place: Extent) -> Option<(Extent, Lba)> {
        self.inverse.pieces(Lba(place.start.0), place.sectors).next().map(held)
    }

    /// Returns all mapped runs in order of PBA, with the LBA of each run's first sector.
    pub fn iter(&self) -> impl Iterator<Item = (Extent, Lba)> + '_ {
        self.inverse.iter().map(held)
    }

    /// Returns the bytes of heap memory that the map takes now.
    pub fn measured_bytes(&self) -> u64 {
        self.inverse.measured_bytes()
    }
}

/// Converts a run of the inverse map to a physical extent and the LBA of its first sector.
fn held(run: MappedRun) -> (Extent, Lba) {
    let lba = run.place().expect("something lies at every place of the map");
    (Extent::new(Pba(run.lba.0), run.sectors), Lba(lba.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_disk::Sectors;

    #[test]
    fn what_is_cut_keeps_its_place() {
        let mut map = PlaceMap::default();
        map.insert(Extent::new(Pba(100), Sectors(10)), Lba(7));
        map.insert(Extent::new(Pba(110), Sectors(5)), Lba(50));
        map.remove(Extent::new(Pba(103), Sectors(8)));
        let left = [(Extent::new(Pba(100), Sectors(3)), Lba(7)), (Extent::new(Pba(111), Sectors(4)), Lba(51))];
        assert_eq!((map.iter().collect::<Vec<_>>(), map.len()), (left.to_vec(), 2));
        assert_eq!(map.first_in(Extent::new(Pba(102), Sectors(50))), Some((Extent::new(Pba(102), Sectors(1)), Lba(9))));
        assert_eq!(map.first_in(Extent::new(Pba(103), Sectors(8))), None);
    }

    #[test]
    #[should_panic(expected = "invariant 1")]
    fn a_place_holds_one_thing() {
        let mut map = PlaceMap::default();
        map.insert(Extent::new(Pba(100), Sectors(10)), Lba(7));
        map.insert(Extent::new(Pba(109), Sectors(1)), Lba(50));
    }
}
