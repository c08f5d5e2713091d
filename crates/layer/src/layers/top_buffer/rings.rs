//! Rings of reserved top tracks, which hold the buffered sectors. Each ring serves the bottoms of a stretch of track
//! groups. A ring is written only at its head; the sectors between its tail and its head may hold data.
//!
//! ```text
//!   position  0 ········ tail ▓▓░▓▓▓░░▓▓▓▓ head ········ tail + sectors
//!                             └ oldest data  └ next append             place on the medium: position mod sectors
//! ```
//!
//! Invariants:
//! 1. Only tops are reserved: writing them destroys nothing.
//! 2. Positions never decrease; the positions in use span at most the ring's sectors.

use imbrex_disk::{Lba, Pba, Sectors};

use crate::layer::Cache;
use crate::layers::interlaced::finder::Finder;
use crate::layers::interlaced::groups::{Group, groups};
use crate::layers::interlaced::home::Planner;
use crate::layers::interlaced::{Track, TrackRun};
use crate::parameters::ConfigError;
use crate::plan::Medium;

/// A reserved track.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    track: Track,
    /// Ring that the track belongs to; `first` is the place of the track's first sector in that ring.
    ring: u32,
    first: u64,
}

/// A ring of reserved tracks.
#[derive(Clone, Copy, Debug)]
struct Ring {
    /// Range of the ring's tracks in `Rings::tracks`.
    tracks: (u32, u32),
    sectors: u64,
    /// Position of the next append.
    head: u64,
}

/// A run of consecutive sectors of a ring that lie on one reserved track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Position of the first sector of the run: the number of sectors of the ring that were written before it, since
    /// the ring was made. It never wraps; the place in the ring is the position modulo the ring's length.
    pub position: u64,
    /// Number of consecutive sectors of the run, which lie on one reserved track.
    pub sectors: u32,
    /// First physical sector of the run, on a reserved track.
    pub pba: Pba,
}

/// All rings (circular buffers) of reserved top tracks of a drive. A position in a ring is the number of sectors that
/// were written to the ring before it, and never decreases; its place is the position modulo the length of the ring.
#[derive(Clone, Debug)]
pub struct Rings {
    rings: Vec<Ring>,
    /// Reserved tracks, ordered by ring and then by place in the ring.
    tracks: Vec<Reserved>,
    /// Indices into `tracks`, ordered by physical sector.
    by_pba: Vec<u32>,
    /// First physical sector of the stretch of groups of each ring.
    stretches: Finder,
}

impl Rings {
    /// Divides the track groups of the disk into `count` stretches, at least 1 and at most one for each group. Reserves
    /// tracks for a ring (circular buffer) in each stretch: `share_millionths` millionths of its top tracks, rounded up
    /// and at least one, or fewer if fewer are free. A stretch without a free top track uses the ring before it;
    /// stretches before the first ring use that one.
    ///
    /// # Errors
    ///
    /// No top track is free in any stretch.
    pub fn set_aside(planner: &mut Planner<'_>, count: u64, share_millionths: u64) -> Result<Rings, ConfigError> {
        let groups: Vec<Group> = groups(planner.disk()).collect();
        let count = count.clamp(1, groups.len() as u64);
        let (mut rings, mut tracks, mut starts) = (Vec::new(), Vec::new(), Vec::new());
        for index in 0..count {
            let bound = |index: u64| (index * groups.len() as u64 / count) as usize;
            let stretch = &groups[bound(index)..bound(index + 1)];
            let first = stretch[0].bottoms.first().or(stretch[0].tops.first()).expect("a group has tracks");
            let ring = reserve(planner, stretch, share_millionths, rings.len() as u32, &mut tracks);
            // A stretch without a free top uses the ring before it.
            if let Some(ring) = ring {
                starts.push(if rings.is_empty() { 0 } else { first.start.0 });
                rings.push(ring);
            }
        }
        if rings.is_empty() {
            return Err(ConfigError("no top track is free for the buffer: make buffer_share larger".into()));
        }
        let mut by_pba: Vec<u32> = (0..tracks.len() as u32).collect();
        by_pba.sort_unstable_by_key(|&index| tracks[index as usize].track.start);
        let sectors = planner.disk().geometry.sectors().0;
        Ok(Rings { rings, tracks, by_pba, stretches: Finder::new(starts, sectors) })
    }

    /// Returns the number of rings (circular buffers of reserved tracks), which is at least 1.
    pub fn count(&self) -> u32 {
        self.rings.len() as u32
    }

    /// Returns the index, counted from 0, of the ring that buffers data whose home is the physical sector `pba`.
    #[inline]
    pub fn ring_of(&self, pba: Pba) -> u32 {
        self.stretches.before(pba.0) as u32 - 1
    }

    /// Returns the length of a ring: the number of sectors of its reserved tracks.
    ///
    /// # Panics
    ///
    /// If there is no ring with the index `ring`, counted from 0.
    pub fn sectors(&self, ring: u32) -> u64 {
        self.rings[ring as usize].sectors
    }

    /// Returns the number of sectors of the reserved tracks of all rings together: the size of the buffer.
    pub fn sectors_of_all(&self) -> u64 {
        self.rings.iter().map(|ring| ring.sectors).sum()
    }

    /// Returns the head of a ring: the position at which the next data are appended. A position is the number of
    /// sectors written to the ring before it, so the head of a new ring is 0.
    ///
    /// # Panics
    ///
    /// If there is no ring with the index `ring`, counted from 0.
    pub fn head(&self, ring: u32) -> u64 {
        self.rings[ring as usize].head
    }

    /// Moves the head of a ring (the position of the next append) to `head`, because all positions before it are
    /// written. Has no effect if the head is there or further already.
    pub fn advance(&mut self, ring: u32, head: u64) {
        let ring = &mut self.rings[ring as usize];
        ring.head = ring.head.max(head);
    }

    /// Calls `each` with every reserved track of a ring as a cache of its own, with the number of its sectors in use.
    /// The last `used` sectors before the ring's head are in use; `used` must be at most the length of the ring.
    pub fn caches(&self, ring: u32, used: u64, each: &mut dyn FnMut(Cache)) {
        let Ring { tracks, sectors, head } = self.rings[ring as usize];
        // The sectors in use begin at `tail`, counted from the start of the ring, and may wrap at its end.
        let tail = (head - used) % sectors;
        for Reserved { track, first, .. } in &self.tracks[tracks.0 as usize..tracks.1 as usize] {
            let end = first + u64::from(track.sectors);
            let overlap = |from: u64, to: u64| to.min(end).saturating_sub(from.max(*first));
            let used = overlap(tail, tail + used) + overlap(0, (tail + used).saturating_sub(sectors));
            let size = Sectors(u64::from(track.sectors));
            each(Cache {
                medium: Medium::Disk,
                start: track.start,
                end: track.start + size,
                used: Sectors(used),
                size,
            });
        }
    }

    /// Returns the sectors of a ring from `position` (number of sectors written before) on, as far as they lie on one
    /// track: `sectors` of them, or fewer if the track ends before.
    pub fn slice(&self, ring: u32, position: u64, sectors: u32) -> Slice {
        let (reserved, sector) = self.locate(ring, position);
        let sectors = sectors.min(reserved.track.sectors - sector);
        Slice { position, sectors, pba: reserved.track.start + Sectors(sector as u64) }
    }

    /// Returns the run of `sectors` logical sectors from `lba` on, if they lie in the ring from `position` (number of
    /// sectors written before) on. The caller ensures that they lie on one track.
    #[inline]
    pub fn run(&self, ring: u32, position: u64, sectors: u32, lba: Lba) -> TrackRun {
        let (reserved, sector) = self.locate(ring, position);
        TrackRun::on(&reserved.track, sector, sector + sectors, lba)
    }

    #[inline]
    fn locate(&self, ring: u32, position: u64) -> (&Reserved, u32) {
        let ring = &self.rings[ring as usize];
        let place = position % ring.sectors;
        let tracks = &self.tracks[ring.tracks.0 as usize..ring.tracks.1 as usize];
        let reserved = &tracks[tracks.partition_point(|track| track.first <= place) - 1];
        (reserved, (place - reserved.first) as u32)
    }

    /// Returns the index of the ring to which `track` belongs, and the position of the latest write to the sector
    /// `sector` of the track, counted from 0. A position is the number of sectors written to the ring before. Returns
    /// `None` if the track is not reserved, or if that sector was never written.
    #[inline]
    pub fn position_at(&self, track: &Track, sector: u32) -> Option<(u32, u64)> {
        let index = self.by_pba.binary_search_by_key(&track.start, |&index| self.tracks[index as usize].track.start);
        let reserved = &self.tracks[self.by_pba[index.ok()?] as usize];
        let ring = &self.rings[reserved.ring as usize];
        let place = reserved.first + sector as u64;
        let behind = (ring.head + ring.sectors - 1 - place) % ring.sectors;
        // A ring that has not wrapped has no position at this sector yet.
        let position = ring.head.checked_sub(1 + behind)?;
        Some((reserved.ring, position))
    }

    /// Returns the bytes of heap memory that the tables take now.
    pub fn measured_bytes(&self) -> u64 {
        let rings = self.rings.capacity() * size_of::<Ring>() + self.tracks.capacity() * size_of::<Reserved>();
        self.stretches.measured_bytes() + (rings + self.by_pba.capacity() * size_of::<u32>()) as u64
    }
}

/// Reserves the given share of a stretch's tops, from the middle of the stretch on, so that they are near all of its
/// bottoms.
fn reserve(
    planner: &mut Planner<'_>,
    stretch: &[Group],
    share_millionths: u64,
    ring: u32,
    tracks: &mut Vec<Reserved>,
) -> Option<Ring> {
    let tops: u64 = stretch.iter().map(|group| group.tops.count()).sum();
    let wanted = (tops * share_millionths).div_ceil(1_000_000).max(1) as usize;
    let middle = stretch.len() / 2;
    let begin = tracks.len();
    let mut sectors = 0;
    for top in stretch[middle..].iter().chain(&stretch[..middle]).flat_map(|group| group.tops.iter()) {
        if tracks.len() - begin == wanted {
            break;
        }
        if planner.set_aside_top(top) {
            let track = Track::of(&planner.disk().geometry.locate(top.start));
            tracks.push(Reserved { track, ring, first: sectors });
            sectors += top.sectors.0;
        }
    }
    (sectors > 0).then_some(Ring { tracks: (begin as u32, tracks.len() as u32), sectors, head: 0 })
}
