//! Regions: runs of physical sectors that can be written without harm to each other, because a guard follows each
//! (Cassuto 2010 §II.B). Carved from any geometry and recording: the recording says how far a write reaches.
//!
//! What a whole write of a region destroys usually lies right behind it; at the end of a stroke of a horizontal layout
//! it may lie far away, before it or behind. Both are left out of every region.
//!
//! Invariants:
//! 1. Regions are disjoint, ordered by PBA, and lie on the disk.
//! 2. Writing all of one region destroys no sector of another.
//! 3. LBAs run through the regions in order, without gaps.

use imbrex_disk::{Disk, Extent, Lba, Pba, Sectors};

use crate::context::Context;
use crate::map::run_map::RunMap;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};

/// The parameter that sizes regions in bytes.
pub const REGION_SIZE: ParameterInfo = ParameterInfo {
    key: "region_size",
    kind: ParameterKind::Bytes,
    default: "25.6MB",
    help: "size of a shingled region, its guard not counted; rounded down to whole sectors",
};

/// The parameter that sizes regions in tracks.
pub const REGION_TRACKS: ParameterInfo = ParameterInfo {
    key: "region_tracks",
    kind: ParameterKind::Count,
    default: "0",
    help: "size of a region in whole tracks, instead of region_size; 0: use region_size",
};

/// Regions of a disk at most: laying out more takes seconds, and their maps gigabytes.
const REGIONS_MAX: u64 = 1 << 24;

/// Refuses a size of regions that cuts the disk into more of them than memory has room for.
pub fn check_count(disk: &Disk, key: &str, sectors: Sectors) -> Result<(), ConfigError> {
    let count = disk.geometry.sectors().0 / sectors.0.max(1);
    if count <= REGIONS_MAX {
        return Ok(());
    }
    let bytes = sectors.0 * u64::from(disk.sector_bytes);
    Err(ConfigError(format!("{key}={bytes} cuts this disk into {count}, more than {REGIONS_MAX}: make it larger")))
}

/// How large regions are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegionSize {
    /// This many sectors.
    Sectors(Sectors),
    /// This many whole tracks, in the order of their PBAs.
    Tracks(u32),
}

/// Where on the disk a block of regions lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// At the outer diameter.
    Outer,
    /// In the middle.
    Middle,
    /// At the inner diameter.
    Inner,
}

impl Position {
    /// The words that [`Position::named`] takes.
    pub const WORDS: &'static [&'static str] = &["od", "md", "id"];

    /// `od`, `md` or `id`.
    pub fn named(word: &str) -> Option<Position> {
        match word {
            "od" => Some(Position::Outer),
            "md" => Some(Position::Middle),
            "id" => Some(Position::Inner),
            _ => None,
        }
    }
}

/// A region and a place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionOffset {
    /// The index of the region.
    pub region: usize,
    /// Sectors from its first.
    pub offset: Sectors,
}

/// Regions in the order of their PBAs, with the LBAs laid through them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Regions {
    /// First PBAs.
    starts: Vec<u64>,
    /// Sectors of every region, where all are alike: the fast path.
    uniform: Option<u64>,
    /// First LBAs, and the capacity at the end; empty where `uniform`.
    first_lbas: Vec<u64>,
    /// The region that begins or contains every 2^`index_shift`th LBA, so that a look-up need not search among them all.
    index: Vec<u32>,
    index_shift: u32,
}

impl Regions {
    /// The regions that fit on `disk`.
    pub fn carve(disk: &Disk, size: RegionSize) -> Regions {
        Regions::from_extents(&Carver::new(disk, size).carve())
    }

    /// The regions that the parameters [`REGION_SIZE`] and [`REGION_TRACKS`] ask for.
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

    /// Regions at these places, ordered by PBA.
    pub fn from_extents(extents: &[Extent]) -> Regions {
        let starts = extents.iter().map(|extent| extent.start.0).collect();
        let first = extents.first().map_or(0, |extent| extent.sectors.0);
        if extents.iter().all(|extent| extent.sectors.0 == first) {
            return Regions { starts, uniform: Some(first), ..Regions::default() };
        }
        let mut first_lbas = vec![0];
        for extent in extents {
            first_lbas.push(first_lbas[first_lbas.len() - 1] + extent.sectors.0);
        }
        let capacity = first_lbas[extents.len()];
        let index_shift = (capacity / extents.len() as u64).max(1).ilog2();
        let mut region = 0;
        let region_at = |lba| {
            while first_lbas[region + 1] <= lba {
                region += 1;
            }
            region as u32
        };
        let index = (0..capacity).step_by(1 << index_shift).map(region_at).collect();
        Regions { starts, uniform: None, first_lbas, index, index_shift }
    }

    /// How many regions there are.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Sectors of all regions.
    pub fn capacity(&self) -> Sectors {
        self.first_lba(self.len()) - Lba(0)
    }

    /// Where region `index` lies.
    pub fn extent(&self, index: usize) -> Extent {
        Extent::new(Pba(self.starts[index]), self.sectors(index))
    }

    /// Sectors of region `index`.
    pub fn sectors(&self, index: usize) -> Sectors {
        Sectors(self.uniform.unwrap_or_else(|| self.first_lbas[index + 1] - self.first_lbas[index]))
    }

    /// Sectors of the largest region.
    pub fn sectors_max(&self) -> Sectors {
        (0..self.len()).map(|index| self.sectors(index)).max().unwrap_or(Sectors::ZERO)
    }

    /// The first LBA of region `index`; the capacity for the one past the last.
    pub fn first_lba(&self, index: usize) -> Lba {
        Lba(match self.uniform {
            Some(sectors) => index as u64 * sectors,
            None => self.first_lbas[index],
        })
    }

    /// The region and offset of `lba`.
    #[inline]
    pub fn locate(&self, lba: Lba) -> RegionOffset {
        let region = match self.uniform {
            Some(sectors) => (lba.0 / sectors) as usize,
            None => {
                let mut region = self.index[(lba.0 >> self.index_shift) as usize] as usize;
                while self.first_lbas[region + 1] <= lba.0 {
                    region += 1;
                }
                region
            }
        };
        debug_assert!(region < self.len(), "{lba} lies past the {} regions", self.len());
        RegionOffset { region, offset: lba - self.first_lba(region) }
    }

    /// The native place of `lba`.
    #[inline]
    pub fn native(&self, lba: Lba) -> Pba {
        let at = self.locate(lba);
        Pba(self.starts[at.region]) + at.offset
    }

    /// The LBA whose native place `pba` is, if it lies in a region.
    pub fn lba_at(&self, pba: Pba) -> Option<Lba> {
        let region = self.starts.partition_point(|&start| start <= pba.0).checked_sub(1)?;
        let extent = self.extent(region);
        extent.contains(pba).then(|| self.first_lba(region) + (pba - extent.start))
    }

    /// The regions that share a sector with `extent`, which is not empty.
    pub fn overlapping(&self, extent: Extent) -> std::ops::Range<usize> {
        let after = self.starts.partition_point(|&start| start <= extent.start.0);
        let reaches_in = after > 0 && self.extent(after - 1).end() > extent.start;
        let further = self.starts[after..].iter().take_while(|&&start| start < extent.end().0).count();
        after - usize::from(reaches_in)..after + further
    }

    /// Calls `visit` with the parts of a run that lie in one region each: region, first LBA, sectors.
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

    /// Takes `count` neighbouring regions out at `position`: (those taken, the rest).
    pub fn take(&self, disk: &Disk, count: usize, position: Position) -> (Regions, Regions) {
        let block = self.block(disk, count, position);
        let outside = (0..block.start).chain(block.end..self.len());
        let rest: Vec<Extent> = outside.map(|index| self.extent(index)).collect();
        let taken: Vec<Extent> = block.map(|index| self.extent(index)).collect();
        (Regions::from_extents(&taken), Regions::from_extents(&rest))
    }

    /// Which regions are the `count` neighbouring ones at `position`.
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

    /// Takes out a spare that every other region fits into: of the largest regions, the one nearest to the middle.
    pub fn take_spare(&self, disk: &Disk) -> Result<(Option<Extent>, Regions), ConfigError> {
        let largest = self.sectors_max();
        let middle = self.middle(disk);
        let spare = (0..self.len())
            .filter(|&index| self.sectors(index) == largest)
            .min_by_key(|&index| index.abs_diff(middle))
            .ok_or_else(|| ConfigError("no region is left for a spare: make region_size smaller".into()))?;
        let rest: Vec<_> = (0..self.len()).filter(|&index| index != spare).map(|index| self.extent(index)).collect();
        Ok((Some(self.extent(spare)), Regions::from_extents(&rest)))
    }

    /// The first region at the middle diameter or further in.
    fn middle(&self, disk: &Disk) -> usize {
        let middle = disk.geometry.radial_tracks() / 2;
        self.starts.partition_point(|&start| disk.geometry.locate(Pba(start)).radial_track < middle)
    }

    /// Bytes of memory that it takes now.
    pub fn measured_bytes(&self) -> u64 {
        (self.starts.len() + self.first_lbas.len()) as u64 * 8 + self.index.len() as u64 * 4
    }
}

/// A carving under way.
struct Carver<'a> {
    disk: &'a Disk,
    size: RegionSize,
    /// Places that a later region would destroy: no region may lie there, in any pass.
    barred: RunMap<()>,
    destroyed: Vec<Extent>,
}

/// Passes after which regions still hit by a later one are given up: each pass bars what the one before it found.
const PASSES_MAX: u32 = 4;

impl<'a> Carver<'a> {
    fn new(disk: &'a Disk, size: RegionSize) -> Carver<'a> {
        Carver { disk, size, barred: RunMap::default(), destroyed: Vec::new() }
    }

    fn carve(mut self) -> Vec<Extent> {
        for _ in 1..PASSES_MAX {
            let (regions, is_safe) = self.pass();
            if is_safe {
                return regions;
            }
        }
        let (regions, _) = self.pass();
        let barred = &self.barred;
        regions.into_iter().filter(|region| barred.first_overlap(region.start.0, region.sectors.0).is_none()).collect()
    }

    /// Lays regions from the first sector to the last; whether none of them destroys an earlier one.
    fn pass(&mut self) -> (Vec<Extent>, bool) {
        // Regions come in the order of their sectors, so what lies behind the next one is of no interest any more.
        let mut taken = self.barred.clone();
        let mut regions: Vec<Extent> = Vec::new();
        let mut is_safe = true;
        let mut next = Pba(0);
        while let Some(region) = self.region_at(next) {
            taken.forget_before(region.start.0);
            if let Some((_, end)) = taken.first().filter(|&(start, _)| start < region.end().0) {
                next = Pba(end);
                continue;
            }
            next = region.end();
            self.destroyed.clear();
            self.disk.recording.destroys(&self.disk.geometry, region, &mut self.destroyed);
            for extent in &self.destroyed {
                // A guard right behind the region is passed over; one further on bars what comes there.
                if extent.start <= next {
                    next = next.max(extent.end());
                } else {
                    taken.insert(extent.start.0, extent.sectors.0, ());
                }
                if extent.start < region.start && hits_any(&regions, *extent) {
                    self.barred.insert(extent.start.0, extent.sectors.0, ());
                    is_safe = false;
                }
            }
            regions.push(region);
            next = self.repeat(&mut regions, next, &taken);
        }
        (regions, is_safe)
    }

    /// Lays the regions that follow the last one in its stroke, where all that each destroys is what lies right behind it, and
    /// is the same for all; `next` is what comes behind that. Returns where to go on.
    fn repeat(&self, regions: &mut Vec<Extent>, next: Pba, taken: &RunMap<()>) -> Pba {
        let (geometry, last) = (&self.disk.geometry, regions[regions.len() - 1]);
        let is_behind = self.destroyed.iter().all(|lost| lost.start >= last.end() && lost.end() <= next);
        let (RegionSize::Tracks(_), true) = (self.size, is_behind) else { return next };
        let Some((left, track)) = geometry.stroke_from(last.start) else { return next };
        let (step, end) = (next - last.start, last.start + Sectors(left * track.0));
        let is_free = taken.first().is_none_or(|(start, _)| start >= end.0);
        if !step.0.is_multiple_of(track.0) || !is_free || !self.disk.recording.is_alike_in_stroke(geometry, last.start)
        {
            return next;
        }
        let mut next = next;
        while next + step <= end {
            regions.push(Extent::new(next, last.sectors));
            next += step;
        }
        next
    }

    /// The region that begins at `start`, or at the next track where regions are whole tracks.
    fn region_at(&self, start: Pba) -> Option<Extent> {
        let end = Pba(self.disk.geometry.sectors().0);
        match self.size {
            RegionSize::Sectors(sectors) => {
                (start.0 + sectors.0 <= end.0 && !sectors.is_zero()).then(|| Extent::new(start, sectors))
            }
            RegionSize::Tracks(tracks) => {
                if start >= end || tracks == 0 {
                    return None;
                }
                let track = self.disk.geometry.track_of(start);
                let first = if track.start == start { start } else { track.end() };
                if let Some((left, sectors)) = self.disk.geometry.stroke_from(first)
                    && left >= tracks as u64
                {
                    return Some(Extent::new(first, Sectors(sectors.0 * tracks as u64)));
                }
                let mut last = first;
                for _ in 0..tracks {
                    if last >= end {
                        return None;
                    }
                    last = self.disk.geometry.track_of(last).end();
                }
                Some(Extent::between(first, last))
            }
        }
    }
}

/// Whether `extent` shares a sector with one of `regions`, which are ordered.
fn hits_any(regions: &[Extent], extent: Extent) -> bool {
    let after = regions.partition_point(|region| region.end() <= extent.start);
    regions.get(after).is_some_and(|region| region.intersection(extent).is_some())
}

#[cfg(test)]
mod tests {
    //! Goal: regions never harm each other, on any toy. Method: a whole write of each region is held against all others;
    //! addresses are held against a list of sectors.

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

    /// The same carving with every guard kept in one map, and looked up for each region.
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
            // At most a region at each of the six ends of strokes, and one at the end of the disk.
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
