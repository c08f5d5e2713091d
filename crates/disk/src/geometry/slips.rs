//! Slipped sectors: a few tracks hold fewer sectors than the others of their zone (Hajkazemi 2019 §2.2). The remaining
//! sectors of such a track are spread evenly over it, so that its length alone gives the angles, as on any other track.
//!
//! The layouts do not know of slips: they number *ideal* addresses, as if no track lacked a sector. The last ideal
//! addresses of a slipped track are unused. This table converts PBAs to ideal addresses and back.
//!
//! Invariants:
//! 1. Entries are sorted by address; `missing_before[k]` is the number of sectors that slipped tracks 0 … k − 1 lack.
//! 2. Both directions take O(log entries) steps.

use std::collections::BTreeMap;

use super::finder::Finder;

/// The slipped tracks of a disk.
#[derive(Clone, Debug)]
pub(super) struct Slips {
    /// Ideal address at which each slipped track starts.
    track_starts: Vec<u64>,
    /// Number of sectors that each slipped track lacks.
    missing: Vec<u32>,
    /// For each slipped track, the number of sectors that all slipped tracks before it lack; then the sum over all
    /// tracks.
    missing_before: Vec<u64>,
    /// Index by PBA: 0, then the PBA that follows the last sector of each slipped track.
    by_pba: Finder,
    /// Index by ideal address: 0, then one past the start of each slipped track.
    by_track: Finder,
}

impl Slips {
    /// Creates the table of `tracks`, which maps ideal start to (ideal length, sectors lacking), on a disk of
    /// `ideal_sectors`.
    pub(super) fn new(tracks: &BTreeMap<u64, (u32, u32)>, ideal_sectors: u64) -> Slips {
        let (mut missing_before, mut pba_ends, mut starts) = (vec![0], vec![0], vec![0]);
        let mut missing_until = 0;
        for (&start, &(length, missing)) in tracks {
            assert!(missing < length, "a slipped track keeps a sector: {missing} of {length} are missing");
            missing_until += missing as u64;
            missing_before.push(missing_until);
            pba_ends.push(start + length as u64 - missing_until);
            starts.push(start + 1);
        }
        Slips {
            track_starts: tracks.keys().copied().collect(),
            missing: tracks.values().map(|&(_, missing)| missing).collect(),
            missing_before,
            by_pba: Finder::new(pba_ends, ideal_sectors),
            by_track: Finder::new(starts, ideal_sectors),
        }
    }

    /// Returns the number of sectors that all slipped tracks together lack.
    pub(super) fn missing_in_all(&self) -> u64 {
        self.missing_before(self.missing.len())
    }

    /// Returns the index of the first slipped track that ends after a PBA: all slipped tracks with a lower index lie
    /// before the track of the PBA.
    #[inline]
    pub(super) fn index_at_pba(&self, pba: u64) -> usize {
        self.by_pba.find(pba)
    }

    /// Returns the index of the first slipped track that starts at or after an ideal address.
    #[inline]
    pub(super) fn index_at_track(&self, ideal_start: u64) -> usize {
        self.by_track.find(ideal_start)
    }

    /// Returns the number of sectors that the slipped tracks before number `index` lack: the difference between ideal
    /// addresses and PBAs there.
    #[inline]
    pub(super) fn missing_before(&self, index: usize) -> u64 {
        self.missing_before[index]
    }

    /// Returns the number of sectors that the track at an ideal start lacks. `index` is the result of
    /// [`Slips::index_at_track`] for that track.
    #[inline]
    pub(super) fn missing_on(&self, index: usize, ideal_start: u64) -> u32 {
        if self.track_starts.get(index) == Some(&ideal_start) { self.missing[index] } else { 0 }
    }

    /// Returns the PBA of the first sector of the track at an ideal start.
    pub(super) fn track_start(&self, ideal_start: u64) -> u64 {
        ideal_start - self.missing_before(self.index_at_track(ideal_start))
    }
}

/// Returns the next number of Steele 2014's splitmix64. A generator of our own, because the draw of slipped tracks must
/// not change with the version of a library.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
