//! Regions: runs of physical sectors that can be written without destroying sectors of each other, because a guard
//! follows each (Cassuto 2010 §II.B). Regions can be laid out on any geometry and recording: the recording determines
//! the sectors that a write destroys.
//!
//! The sectors that a write of a whole region destroys usually lie right behind it. At the end of a stroke of a
//! horizontal layout they may lie far away, before or behind the region. No region contains destroyed sectors of either
//! kind.
//!
//! Invariants:
//! 1. Regions are disjoint, ordered by PBA, and lie on the disk.
//! 2. Writing all of one region destroys no sector of another.
//! 3. LBAs run through the regions in order, without gaps.

use imbrex_disk::{Disk, Extent, Lba, Pba, Sectors};

use super::carve::{Carver, RegionSize};
use super::footprint::Footprints;
use super::rows::{Guesses, Row, Rows};
use crate::context::Context;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};

/// The parameter `region_size`: the number of bytes of a region, the guard behind it not counted, rounded down to whole
/// sectors; 25.6 MB unless given. Ignored if the parameter `region_tracks` is not 0.
pub const REGION_SIZE: ParameterInfo = ParameterInfo {
    key: "region_size",
    kind: ParameterKind::Bytes,
    default: "25.6MB",
    help: "size of a shingled region, its guard not counted; rounded down to whole sectors",
};

/// The parameter `region_tracks`: the number of whole tracks of a region, the guard behind it not counted. 0, the
/// default, means that the parameter `region_size` applies.
pub const REGION_TRACKS: ParameterInfo = ParameterInfo {
    key: "region_tracks",
    kind: ParameterKind::Count,
    default: "0",
    help: "size of a region in whole tracks, instead of region_size; 0: use region_size",
};

/// Maximum number of regions of a disk: more would take long to lay out, and their tables would not fit into memory.
const REGIONS_MAX: u64 = 1 << 22;

/// Checks that the number of the disk's sectors divided by `sectors`, the size of a region, is at most 2²² (4,194,304);
/// guards are not counted. More regions would take too much memory and time. `key` is the name of the size parameter
/// for the error message.
///
/// # Errors
///
/// The disk holds more regions.
pub fn check_count(disk: &Disk, key: &str, sectors: Sectors) -> Result<(), ConfigError> {
    let count = disk.geometry.sectors().0 / sectors.0.max(1);
    if count <= REGIONS_MAX {
        return Ok(());
    }
    let bytes = sectors.0 * u64::from(disk.sector_bytes);
    Err(ConfigError(format!("{key}={bytes} cuts this disk into {count}, more than {REGIONS_MAX}: make it larger")))
}

/// The radial position on the disk at which neighbouring regions are set aside, for a cache, for example.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The first regions, at the outer diameter.
    Outer,
    /// The regions around the middle radial track.
    Middle,
    /// The last regions, at the inner diameter.
    Inner,
}

impl Position {
    /// The words that [`Position::named`] accepts: outer, middle and inner diameter.
    pub const WORDS: &'static [&'static str] = &["od", "md", "id"];

    /// Returns the position for the word `od` (outer), `md` (middle) or `id` (inner diameter). Returns `None` for any
    /// other word.
    pub fn named(word: &str) -> Option<Position> {
        match word {
            "od" => Some(Position::Outer),
            "md" => Some(Position::Middle),
            "id" => Some(Position::Inner),
            _ => None,
        }
    }
}

/// A sector, given as a region and an offset in that region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionOffset {
    /// The index of the region, counted from 0.
    pub region: usize,
    /// Number of sectors from the start of the region to the sector.
    pub offset: Sectors,
}

/// Disjoint runs of physical sectors (regions), in order of PBA and numbered from 0. LBAs run through the regions in
/// that order, without gaps: LBA 0 is the first sector of region 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Regions {
    rows: Rows,
    /// Sectors of every region if all are equal, for a faster look-up.
    uniform: Option<u64>,
    /// Index of the rows by region number, and by LBA.
    by_number: Guesses,
    by_lba: Guesses,
}

impl Regions {
    /// Lays out as many regions of this size on `disk` as fit, from the first sector of the disk to the last. Behind
    /// each region lies a guard, so that a write of one region destroys no sector of another. The result may be empty.
    pub fn carve(disk: &Disk, size: RegionSize) -> Regions {
        Regions::of(Carver::new(disk, size).carve())
    }

    /// Lays out as many regions as fit on the disk of `context`, each with a guard behind it, like [`Regions::carve`].
    /// Their size is the parameter `region_tracks` in whole tracks or, if that is 0, the parameter `region_size` in
    /// bytes, rounded down to whole sectors.
    ///
    /// # Errors
    ///
    /// The size is less than one sector, or it is 2³² sectors or tracks or more; the disk would hold more than 2²²
    /// regions of `region_size`, or no region fits on the disk.
    pub fn carve_for(context: &Context) -> Result<Regions, ConfigError> {
        let bytes = context.parameters.bytes(REGION_SIZE.key);
        let tracks = context.parameters.count(REGION_TRACKS.key);
        let sectors = Sectors(bytes / context.disk.sector_bytes as u64);
        if tracks > u32::MAX as u64 || sectors.0 > u32::MAX as u64 || (tracks == 0 && sectors.is_zero()) {
            let reason = "between one sector and 2³² of them, or up to 2³² tracks";
            return Err(ConfigError(format!("region_size={bytes}, region_tracks={tracks}: expected {reason}")));
        }
        if tracks == 0 {
            check_count(&context.disk, REGION_SIZE.key, sectors)?;
        }
        let size = if tracks > 0 { RegionSize::Tracks(tracks as u32) } else { RegionSize::Sectors(sectors) };
        let regions = Regions::carve(&context.disk, size);
        if regions.is_empty() {
            let disk_sectors = context.disk.geometry.sectors().0;
            return Err(ConfigError(format!("no region of {size:?} fits on a disk of {disk_sectors} sectors")));
        }
        Ok(regions)
    }

    /// Returns one region for each of `extents`, which must be disjoint and ordered by PBA. No guards are added.
    pub fn from_extents(extents: &[Extent]) -> Regions {
        let mut rows = Rows::default();
        extents.iter().for_each(|&extent| rows.push(extent));
        Regions::of(rows)
    }

    fn of(rows: Rows) -> Regions {
        let first = rows.rows().first().map_or(0, |row| row.sectors);
        let is_uniform = rows.rows().iter().all(|row| row.sectors == first);
        let by_number = Guesses::new(rows.rows(), rows.len() as u64, |row| u64::from(row.first));
        let by_lba = match is_uniform {
            true => Guesses::default(),
            false => Guesses::new(rows.rows(), rows.capacity(), |row| row.lba),
        };
        Regions { uniform: is_uniform.then_some(first), by_number, by_lba, rows }
    }

    #[inline]
    fn row(&self, index: usize) -> &Row {
        self.by_number.row(self.rows.rows(), index as u64, |row| u64::from(row.first))
    }

    /// Returns the number of regions.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no regions.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total number of sectors of all regions.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.rows.capacity())
    }

    /// Returns the physical sectors of region `index`, counted from 0.
    ///
    /// # Panics
    ///
    /// If there is no such region.
    #[inline]
    pub fn extent(&self, index: usize) -> Extent {
        assert!(index < self.len(), "region {index} of {}", self.len());
        let row = self.row(index);
        Extent::new(Pba(row.start(index as u64 - u64::from(row.first))), Sectors(row.sectors))
    }

    /// Returns the number of sectors of region `index`, counted from 0. The region must exist.
    #[inline]
    pub fn sectors(&self, index: usize) -> Sectors {
        Sectors(self.uniform.unwrap_or_else(|| self.row(index).sectors))
    }

    /// Returns the number of sectors of the largest region, or 0 if there are no regions.
    pub fn sectors_max(&self) -> Sectors {
        Sectors(self.rows.rows().iter().map(|row| row.sectors).max().unwrap_or(0))
    }

    /// Returns the number of sectors of the smallest region, or 0 if there are no regions.
    pub fn sectors_min(&self) -> Sectors {
        Sectors(self.rows.rows().iter().map(|row| row.sectors).min().unwrap_or(0))
    }

    /// Returns the first LBA of region `index`, counted from 0. For the index after the last region returns the LBA one
    /// past the last region. Larger indices are not allowed.
    #[inline]
    pub fn first_lba(&self, index: usize) -> Lba {
        Lba(match self.uniform {
            Some(sectors) => index as u64 * sectors,
            None if index == self.len() => self.rows.capacity(),
            None => {
                let row = self.row(index);
                row.lba + (index as u64 - u64::from(row.first)) * row.sectors
            }
        })
    }

    /// Returns the region that contains `lba`, and the offset of `lba` in that region. `lba` must lie below the
    /// capacity.
    #[inline]
    pub fn locate(&self, lba: Lba) -> RegionOffset {
        debug_assert!(lba.0 < self.rows.capacity(), "{lba} lies past the {} regions", self.len());
        if let Some(sectors) = self.uniform {
            return RegionOffset { region: (lba.0 / sectors) as usize, offset: Sectors(lba.0 % sectors) };
        }
        let row = self.by_lba.row(self.rows.rows(), lba.0, |row| row.lba);
        let (index, offset) = ((lba.0 - row.lba) / row.sectors, (lba.0 - row.lba) % row.sectors);
        RegionOffset { region: row.first as usize + index as usize, offset: Sectors(offset) }
    }

    /// Returns the native place of `lba`: the physical sector at the LBA's offset in its region. `lba` must lie below
    /// the capacity.
    #[inline]
    pub fn native(&self, lba: Lba) -> Pba {
        let at = self.locate(lba);
        self.extent(at.region).start + at.offset
    }

    /// Returns the LBA of the physical sector `pba`, if every logical sector lies at its own offset in its region.
    /// Returns `None` if no region contains `pba`, because it lies in a guard, for example.
    pub fn lba_at(&self, pba: Pba) -> Option<Lba> {
        let region = self.rows.upper_bound(pba.0).checked_sub(1)?;
        let extent = self.extent(region);
        extent.contains(pba).then(|| self.first_lba(region) + (pba - extent.start))
    }

    /// Returns the indices of the regions that share a sector with `extent`, which must not be empty. The range is
    /// empty if there are none.
    pub fn overlapping(&self, extent: Extent) -> std::ops::Range<usize> {
        self.rows.overlapping(extent)
    }

    /// Returns the regions whose indices lie in `range`. They are numbered from 0 again, and their LBAs begin at 0.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Regions {
        let mut rows = Rows::default();
        rows.push_slice(&self.rows, range);
        Regions::of(rows)
    }

    /// Returns the regions whose indices do not lie in `range`. They are numbered from 0 again, and their LBAs run
    /// without a gap.
    pub fn without(&self, range: std::ops::Range<usize>) -> Regions {
        let mut rows = Rows::default();
        rows.push_slice(&self.rows, 0..range.start);
        rows.push_slice(&self.rows, range.end..self.len());
        Regions::of(rows)
    }

    /// Returns the regions of which a write of all sectors at once destroys no sector of the region itself. They are
    /// numbered from 0 again.
    pub fn whole(&self, disk: &Disk) -> Regions {
        let (mut rows, mut footprints) = (Rows::default(), Footprints::new(disk));
        for row in self.rows.rows() {
            let (mut number, count) = (0, u64::from(row.count));
            while number < count {
                let first = Extent::new(Pba(row.start(number)), Sectors(row.sectors));
                let known = footprints.guarded(first, row.step(), count - number, |_| true);
                rows.push_many(first, row.step(), known);
                number += known;
                if known == 0 {
                    if footprints.of(first).iter().all(|lost| lost.intersection(first).is_none()) {
                        rows.push(first);
                    }
                    number += 1;
                }
            }
        }
        Regions::of(rows)
    }

    /// Splits the `sectors` from `lba` on at the boundaries of regions. Calls `visit` with the index of the region, the
    /// first LBA and the number of sectors of each part, in order of LBA. All sectors must lie below the capacity.
    pub fn split(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(usize, Lba, Sectors)) {
        let (mut next, end) = (lba, lba + sectors);
        let mut region = self.locate(lba).region;
        while next < end {
            let part_end = self.first_lba(region + 1).min(end);
            visit(region, next, part_end - next);
            next = part_end;
            region += 1;
        }
    }

    /// Splits the regions into `count` neighbouring ones at `position` (the outer, middle or inner part of the disk),
    /// which are returned first, and all others. Both are numbered from 0 again, and their LBAs begin at 0.
    ///
    /// # Panics
    ///
    /// If there are fewer than `count` regions.
    pub fn take(&self, disk: &Disk, count: usize, position: Position) -> (Regions, Regions) {
        let block = self.block(disk, count, position);
        (self.slice(block.clone()), self.without(block))
    }

    /// Returns the indices of the `count` neighbouring regions at `position`: the first ones, the last ones, or those
    /// around the middle radial track.
    ///
    /// # Panics
    ///
    /// If there are fewer than `count` regions.
    pub fn block(&self, disk: &Disk, count: usize, position: Position) -> std::ops::Range<usize> {
        assert!(count <= self.len(), "{count} regions out of {}", self.len());
        let last_start = self.len() - count;
        let first = match position {
            Position::Outer => 0,
            Position::Inner => last_start,
            Position::Middle => self.middle(disk).saturating_sub(count / 2).min(last_start),
        };
        first..first + count
    }

    /// Sets one region aside as a spare: of the largest regions, the one nearest to the middle radial track. Returns
    /// the physical sectors of the spare, which is never `None`, and the other regions, numbered from 0 again.
    ///
    /// # Errors
    ///
    /// There are no regions.
    pub fn take_spare(&self, disk: &Disk) -> Result<(Option<Extent>, Regions), ConfigError> {
        let (largest, middle) = (self.sectors_max(), self.middle(disk));
        let nearest = |row: &Row| middle.clamp(row.first as usize, row.end() - 1);
        let largest = self.rows.rows().iter().filter(|row| row.sectors == largest.0).map(nearest);
        let spare = largest
            .min_by_key(|&index| index.abs_diff(middle))
            .ok_or_else(|| ConfigError("no region is left for a spare: make region_size smaller".into()))?;
        Ok((Some(self.extent(spare)), self.without(spare..spare + 1)))
    }

    /// Returns the number of the first region at the middle diameter or further in.
    fn middle(&self, disk: &Disk) -> usize {
        let middle = disk.geometry.radial_tracks() / 2;
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let index = low + (high - low) / 2;
            match disk.geometry.locate(self.extent(index).start).radial_track < middle {
                true => low = index + 1,
                false => high = index,
            }
        }
        low
    }

    /// Returns the bytes of memory that the structures of the regions take now.
    pub fn measured_bytes(&self) -> u64 {
        self.rows.measured_bytes() + self.by_number.measured_bytes() + self.by_lba.measured_bytes()
    }
}

#[cfg(test)]
mod tests {
    //! Goal: regions never destroy sectors of each other, on any toy. Method: a whole write of each region is compared
    //! with all other regions; addresses are compared with a list of sectors.

    use super::super::carve::PASSES_MAX;
    use super::*;
    use crate::verify::toy;

    const RECORDINGS: [&str; 5] = ["conventional", "shingled", "block-interference", "caveat", "interlaced"];
    const SIZES: [RegionSize; 4] = [
        RegionSize::Sectors(Sectors(1)),
        RegionSize::Sectors(Sectors(33)),
        RegionSize::Tracks(1),
        RegionSize::Tracks(3),
    ];

    fn for_each_carving(test: impl Fn(&toy::Toy, RegionSize, &Regions)) {
        for toy in RECORDINGS.iter().flat_map(|recording| toy::disks(recording)) {
            for size in SIZES {
                test(&toy, size, &Regions::carve(&toy.disk, size));
            }
        }
    }

    /// Lays out regions in a naive way: every guard is kept in one map, and is looked up for each region.
    fn stupid(disk: &Disk, size: RegionSize) -> Vec<Extent> {
        let mut carver = Carver::new(disk, size);
        for pass in 1.. {
            let (mut taken, mut regions, mut next, mut hit) = (carver.barred.clone(), Vec::new(), Pba(0), Vec::new());
            while let Some(region) = carver.region_at(next) {
                if let Some((_, end)) = taken.first_overlap(region.start.0, region.sectors.0) {
                    next = Pba(end);
                    continue;
                }
                let mut destroyed = Vec::new();
                disk.recording.destroys(&disk.geometry, region, &mut destroyed);
                destroyed.iter().for_each(|extent| taken.insert(extent.start.0, extent.sectors.0, ()));
                hit.extend(destroyed.into_iter().filter(|extent| extent.start < region.start));
                regions.push(region);
                next = region.end();
            }
            hit.retain(|extent| regions.iter().any(|region| region.intersection(*extent).is_some()));
            hit.iter().for_each(|extent| carver.barred.insert(extent.start.0, extent.sectors.0, ()));
            let barred = &carver.barred;
            if hit.is_empty() || pass == PASSES_MAX {
                regions.retain(|region| barred.first_overlap(region.start.0, region.sectors.0).is_none());
                return regions;
            }
        }
        unreachable!("it ends with the last pass")
    }

    #[test]
    fn carving_equals_its_stupid_twin() {
        for_each_carving(|toy, size, regions| {
            let extents: Vec<_> = (0..regions.len()).map(|index| regions.extent(index)).collect();
            assert_eq!(extents, stupid(&toy.disk, size), "{}, {size:?}", toy.name);
        });
    }

    #[test]
    fn no_region_destroys_another() {
        for_each_carving(|toy, size, regions| {
            let mut destroyed = Vec::new();
            for index in 0..regions.len() {
                toy.disk.recording.destroys(&toy.disk.geometry, regions.extent(index), &mut destroyed);
            }
            for lost in destroyed {
                for index in 0..regions.len() {
                    let region = regions.extent(index);
                    assert_eq!(region.intersection(lost), None, "{}, {size:?}: {region:?} loses {lost:?}", toy.name);
                }
            }
        });
    }

    #[test]
    fn little_is_lost_beside_the_guards() {
        for_each_carving(|toy, size, regions| {
            if matches!(size, RegionSize::Tracks(_)) {
                return; // A guard of a few sectors then costs the rest of its track.
            }
            let mut used = regions.capacity().0;
            let mut destroyed = Vec::new();
            for index in 0..regions.len() {
                destroyed.clear();
                toy.disk.recording.destroys(&toy.disk.geometry, regions.extent(index), &mut destroyed);
                used += destroyed.iter().map(|extent| extent.sectors.0).sum::<u64>();
            }
            // At most one region is lost at each of the six ends of strokes, and one at the end of the disk.
            let total = toy.disk.geometry.sectors().0;
            let waste = 7 * regions.sectors_max().0;
            assert!(used + waste >= total, "{}, {size:?}: {used} of {total} sectors are used", toy.name);
        });
    }

    #[test]
    fn addresses_run_through_the_regions() {
        for_each_carving(|toy, size, regions| {
            let places: Vec<u64> = (0..regions.len())
                .flat_map(|index| regions.extent(index).start.0..regions.extent(index).end().0)
                .collect();
            assert_eq!(regions.capacity(), Sectors(places.len() as u64));
            let is_ordered = places.windows(2).all(|pair| pair[0] < pair[1]);
            assert!(is_ordered && places.last().is_none_or(|&last| last < toy.disk.geometry.sectors().0));
            for (lba, &pba) in places.iter().enumerate() {
                let lba = Lba(lba as u64);
                assert_eq!(regions.native(lba), Pba(pba), "{}, {size:?}", toy.name);
                assert_eq!(regions.lba_at(Pba(pba)), Some(lba));
                let at = regions.locate(lba);
                assert_eq!(regions.first_lba(at.region) + at.offset, lba);
            }
            let held = (0..toy.disk.geometry.sectors().0).filter(|&pba| regions.lba_at(Pba(pba)).is_some()).count();
            assert_eq!(held, places.len());
        });
    }

    #[test]
    fn interfering_blocks_leave_one_less_than_their_reach_between_regions() {
        // An interference of six blocks destroys the five after the last written (Cassuto 2010 definition 2).
        let toy = toy::disks("block-interference").next().expect("there is one");
        let regions = Regions::carve(&toy.disk, RegionSize::Sectors(Sectors(20)));
        assert_eq!(regions.extent(3), Extent::new(Pba(75), Sectors(20)));
        assert_eq!(regions.len(), (1192 + 5) / 25);
    }

    #[test]
    fn blocks_of_regions_are_taken_where_asked() {
        let toy = toy::disks("conventional").next().expect("there is one");
        let regions = Regions::carve(&toy.disk, RegionSize::Sectors(Sectors(100)));
        let starts = |position| {
            let (taken, rest) = regions.take(&toy.disk, 3, position);
            assert_eq!(taken.len() + rest.len(), 11);
            (0..3).map(|index| taken.extent(index).start.0).collect::<Vec<_>>()
        };
        assert_eq!(starts(Position::Outer), [0, 100, 200]);
        assert_eq!(starts(Position::Inner), [800, 900, 1000]);
        // Track 33 of 66 begins at 480 + 9 · 18 = 642; the first region from there on is the middle of the three.
        assert_eq!(starts(Position::Middle), [600, 700, 800]);
    }
}
