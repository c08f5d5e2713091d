//! The fills of a layer's stores: the requests that wrote to a store since the layer's own work last relieved it.
//!
//! Invariants:
//! 1. A store collects from its first write after it was relieved to the next relief. Pieces of work between which nothing
//!    is written to the store have the same fill.
//! 2. The memory does not grow with the length of the run.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use imbrex_disk::{Lba, Pba, Sectors};
use imbrex_layer::{Area, AreaKind, Layer, Medium, StoreExtent};

/// Number of equal parts of the address space in which addresses are counted.
pub(crate) const RANGES: usize = 64;

/// Largest number of devices that are counted apart; the rest count together. Our own value.
const DEVICES_MAX: usize = 16;

/// Largest number of LBA ranges of a fill. Our own value.
const LBA_RANGES_MAX: usize = 16;

/// Largest number of fills kept for later. Our own value: they take some ten megabytes.
const FILLS_MAX: usize = 1 << 16;

/// A number of sectors or a time, counted apart for each device. Devices beyond the first 16 count together.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Devices {
    shares: Vec<(u32, u64)>,
    others: u64,
}

impl Devices {
    /// Adds `amount` to the share of `device`.
    pub fn add(&mut self, device: u32, amount: u64) {
        match self.shares.iter().position(|&(known, _)| known == device) {
            Some(index) => self.shares[index].1 += amount,
            None if self.shares.len() < DEVICES_MAX => self.shares.push((device, amount)),
            None => self.others += amount,
        }
    }

    /// Returns the devices with their shares, the greatest share first.
    pub fn shares(&self) -> Vec<(u32, u64)> {
        let mut shares = self.shares.clone();
        shares.sort_by_key(|&(device, share)| (std::cmp::Reverse(share), device));
        shares
    }

    /// Returns the sum of the shares of the devices that are not counted apart.
    pub fn others(&self) -> u64 {
        self.others
    }
}

/// The writes that filled a store since it was last relieved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fill {
    /// Numbers of the first and the last request that wrote to the store.
    pub requests: RangeInclusive<u64>,
    /// Number of writes to the store; a request whose sectors go to several places counts several times.
    pub writes: u64,
    /// Number of sectors that were written to the store.
    pub sectors: Sectors,
    /// Sectors written, by device of the trace.
    pub devices: Devices,
    /// Ranges of LBAs that contain all sectors written, in order of address, as first and last sector. At most 16: beyond
    /// that, the nearest range is extended.
    pub lbas: Vec<RangeInclusive<Lba>>,
    /// Sectors written in each of 64 equal parts of the address space.
    ranges: Box<[u64; RANGES]>,
}

impl Fill {
    /// Returns the number of sectors written in each part.
    pub(super) fn ranges(&self) -> &[u64; RANGES] {
        &self.ranges
    }
}

/// Adds the sectors from `first` to `last` to disjoint ranges in order, of which there are at most [`LBA_RANGES_MAX`].
fn include(ranges: &mut Vec<RangeInclusive<Lba>>, first: Lba, last: Lba) {
    // The ranges are few: to count them all is quicker than a search, whose branches nothing predicts.
    let from = ranges.iter().filter(|range| range.end().0 + 1 < first.0).count();
    let to = ranges.iter().filter(|range| range.start().0 <= last.0 + 1).count();
    if from < to {
        let whole = first.min(*ranges[from].start())..=last.max(*ranges[to - 1].end());
        ranges[from] = whole;
        ranges.drain(from + 1..to);
        return;
    }
    if ranges.len() < LBA_RANGES_MAX {
        return ranges.insert(from, first..=last);
    }
    let after = ranges.get(from).map(|next| next.start().0 - last.0);
    let before = from.checked_sub(1).map(|index| first.0 - ranges[index].end().0);
    match before.filter(|before| after.is_none_or(|after| *before <= after)) {
        Some(_) => ranges[from - 1] = *ranges[from - 1].start()..=last,
        None => ranges[from] = first..=*ranges[from].end(),
    }
}

/// A write of a request to a place on a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub request: u64,
    pub device: u32,
    /// Index of the part of the address space.
    pub range: usize,
    pub lba: Lba,
    pub sectors: u64,
}

/// The state of one store.
#[derive(Clone, Debug, Default)]
struct Filling {
    fill: Option<Fill>,
    /// Number of the fill, once the store was relieved and nothing was written since.
    relieved: Option<u64>,
}

impl Filling {
    fn add(&mut self, written: &Written) {
        if self.relieved.take().is_some() {
            self.fill = None;
        }
        let fill = self.fill.get_or_insert_with(|| Fill {
            requests: written.request..=written.request,
            writes: 0,
            sectors: Sectors::ZERO,
            devices: Devices::default(),
            lbas: Vec::new(),
            ranges: Box::new([0; RANGES]),
        });
        let (first, last) = (*fill.requests.start(), *fill.requests.end());
        fill.requests = first.min(written.request)..=last.max(written.request);
        fill.writes += 1;
        fill.sectors += Sectors(written.sectors);
        fill.devices.add(written.device, written.sectors);
        fill.ranges[written.range] += written.sectors;
        include(&mut fill.lbas, written.lba, Lba(written.lba.0 + written.sectors - 1));
    }
}

/// All stores of a layer, and the fills that relieved stores had.
#[derive(Debug)]
pub(crate) struct Fills {
    /// Runs of physical sectors of the stores, in order of medium and place, each with the number of its store.
    extents: Vec<(StoreExtent, u32)>,
    areas: Vec<Area>,
    stores: Vec<Filling>,
    /// All writes of the host, for a layer that has work of its own and no stores.
    all: Option<Filling>,
    kept: VecDeque<Fill>,
    /// Number of the first fill in `kept`.
    first_kept: u64,
}

impl Fills {
    pub(crate) fn new(layer: &dyn Layer) -> Fills {
        let mut found = Vec::new();
        layer.stores(&mut |extent| found.push(extent));
        found.sort_by_key(|extent| (extent.medium as u8, extent.start));
        // Neighbouring runs of one store are one run.
        found.dedup_by(|next, before| {
            let follows = (next.medium, next.area, next.start) == (before.medium, before.area, before.end);
            if follows {
                before.end = next.end;
            }
            follows
        });
        let mut areas: Vec<Area> = found.iter().map(|extent| extent.area).collect();
        areas.sort_unstable();
        areas.dedup();
        let number = |extent: &StoreExtent| areas.binary_search(&extent.area).expect("it is listed") as u32;
        let extents = found.iter().map(|extent| (*extent, number(extent))).collect();
        let all = (areas.is_empty() && layer.background().is_some()).then(Filling::default);
        let stores = vec![Filling::default(); areas.len()];
        Fills { extents, areas, stores, all, kept: VecDeque::new(), first_kept: 0 }
    }

    /// Returns whether no store is followed, so that no write needs to be passed to [`Fills::write`].
    pub(crate) fn is_idle(&self) -> bool {
        self.areas.is_empty() && self.all.is_none()
    }

    /// Counts a write of the host to `pba` of a medium.
    pub(crate) fn write(&mut self, medium: Medium, pba: Pba, written: &Written) {
        if let Some(all) = &mut self.all {
            all.add(written);
        }
        let place = (medium as u8, pba);
        let after = self.extents.partition_point(|(extent, _)| (extent.medium as u8, extent.start) <= place);
        let Some(&(extent, number)) = after.checked_sub(1).map(|index| &self.extents[index]) else { return };
        if extent.medium == medium && pba < extent.end {
            self.stores[number as usize].add(written);
        }
    }

    /// Records that a piece of work relieves `store`, or no store. Returns the number of the fill that made it necessary;
    /// `None` if nothing was written to the store yet.
    pub(crate) fn relieve(&mut self, store: Option<Area>) -> Option<u64> {
        let store = match (store, &self.areas[..]) {
            // The map has no place of its own. It fills with the writes to the only store, which is the cache.
            (Some(Area { kind: AreaKind::Map, .. }), [only]) => Some(*only),
            (store, _) => store,
        };
        let filling = match store.map(|store| self.areas.binary_search(&store)) {
            Some(Ok(number)) => &mut self.stores[number],
            _ => self.all.as_mut()?,
        };
        if filling.relieved.is_none() {
            let fill = filling.fill.as_ref()?;
            filling.relieved = Some(self.first_kept + self.kept.len() as u64);
            self.kept.push_back(fill.clone());
            if self.kept.len() > FILLS_MAX {
                self.kept.pop_front();
                self.first_kept += 1;
            }
        }
        filling.relieved
    }

    /// Returns the fill with this number, unless it is too old to be kept.
    pub(crate) fn get(&self, number: u64) -> Option<&Fill> {
        self.kept.get(number.checked_sub(self.first_kept)? as usize)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the ranges of a fill contain every sector written, and are few. Method: random writes.

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_contain_all_writes_and_begin_and_end_with_one(
            writes in prop::collection::vec((0u64..5000, 1u64..9), 1..80),
        ) {
            let mut ranges = Vec::new();
            let mut sectors = std::collections::BTreeSet::new();
            for (first, length) in writes {
                include(&mut ranges, Lba(first), Lba(first + length - 1));
                sectors.extend(first..first + length);
                prop_assert!(ranges.len() <= LBA_RANGES_MAX);
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end().0 + 1 < pair[1].start().0), "{:?}", ranges);
                let is_in_one = |sector: &u64| ranges.iter().any(|range| range.contains(&Lba(*sector)));
                prop_assert!(sectors.iter().all(is_in_one), "{:?}", ranges);
                let ends = ranges.iter().flat_map(|range| [range.start().0, range.end().0]);
                prop_assert!(ends.into_iter().all(|end| sectors.contains(&end)));
            }
        }
    }
}
