//! What lies where: a map from runs of physical sectors to the logical ones that they hold, the inverse of an
//! [`ExtentMap`]. It is one in which both sides have changed their roles.
//!
//! Invariants:
//! 1. Runs are disjoint.

use imbrex_disk::{Extent, Lba, Pba};

use super::extent_map::{ExtentMap, Mapped, MappedRun};

/// The map.
#[derive(Clone, Debug, Default)]
pub struct PlaceMap {
    inverse: ExtentMap,
}

impl PlaceMap {
    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.inverse.len()
    }

    /// Whether nothing lies anywhere.
    pub fn is_empty(&self) -> bool {
        self.inverse.is_empty()
    }

    /// The sectors from `lba` on lie at `place`, where nothing lay.
    #[inline]
    pub fn insert(&mut self, place: Extent, lba: Lba) {
        self.inverse.insert(Lba(place.start.0), place.sectors, Mapped::At(Pba(lba.0)), |run| {
            panic!("invariant 1: {:?} lies in {place:?}", held(run))
        });
    }

    /// Nothing lies at `place` any more.
    pub fn remove(&mut self, place: Extent) {
        self.inverse.remove(Lba(place.start.0), place.sectors, |_| {});
    }

    /// The first that lies at `place`, as far as it lies there, and where.
    pub fn first_in(&self, place: Extent) -> Option<(Extent, Lba)> {
        self.inverse.pieces(Lba(place.start.0), place.sectors).next().map(held)
    }

    /// All places and what they hold, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Extent, Lba)> + '_ {
        self.inverse.iter().map(held)
    }

    /// Bytes it takes.
    pub fn measured_bytes(&self) -> u64 {
        self.inverse.measured_bytes()
    }
}

/// The run of an inverse as what it stands for.
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
