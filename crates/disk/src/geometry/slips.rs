//! Slipped sectors: a few tracks hold fewer sectors than their zone's others (Hajkazemi 2019 §2.2). What such a track
//! still holds is spread evenly over it, so that its length alone tells its angles, as on any other track.
//!
//! The layouts know nothing of it: they number *ideal* addresses, as if no track lacked a sector. The last addresses of a
//! slipped track are unused, and this table leads from PBAs to ideal addresses and back.
//!
//! Invariants:
//! 1. Entries are sorted by address; `missing_until[k]` is the sum of what tracks 0 … k lack.
//! 2. Both directions are O(log entries).

use std::collections::BTreeMap;

/// The slipped tracks of a disk.
#[derive(Clone, Debug)]
pub(super) struct Slips {
    /// Ideal address at which each slipped track starts.
    track_starts: Vec<u64>,
    /// Sectors it lacks.
    missing: Vec<u32>,
    /// Sectors that it and all before it lack.
    missing_until: Vec<u64>,
    /// PBA that follows its last sector.
    pba_ends: Vec<u64>,
}

impl Slips {
    /// The table of `tracks`: ideal start → (ideal length, sectors it lacks).
    pub(super) fn new(tracks: &BTreeMap<u64, (u32, u32)>) -> Slips {
        let empty = || Vec::with_capacity(tracks.len());
        let mut slips = Slips { track_starts: empty(), missing: Vec::new(), missing_until: empty(), pba_ends: empty() };
        let mut missing_until = 0;
        for (&start, &(length, missing)) in tracks {
            assert!(missing < length, "a slipped track keeps a sector: {missing} of {length} are missing");
            missing_until += missing as u64;
            slips.track_starts.push(start);
            slips.missing.push(missing);
            slips.missing_until.push(missing_until);
            slips.pba_ends.push(start + length as u64 - missing_until);
        }
        slips
    }

    /// Sectors that all tracks together lack.
    pub(super) fn missing_in_all(&self) -> u64 {
        self.missing_until.last().copied().unwrap_or(0)
    }

    /// The ideal address of a PBA.
    pub(super) fn ideal(&self, pba: u64) -> u64 {
        pba + self.missing_before(self.pba_ends.partition_point(|&end| end <= pba))
    }

    /// The PBA of the first sector of the track whose ideal start is given.
    pub(super) fn track_start(&self, ideal_start: u64) -> u64 {
        ideal_start - self.missing_before(self.track_starts.partition_point(|&start| start < ideal_start))
    }

    /// Sectors that the track at an ideal start lacks.
    pub(super) fn missing_on(&self, ideal_start: u64) -> u32 {
        self.track_starts.binary_search(&ideal_start).map_or(0, |index| self.missing[index])
    }

    fn missing_before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(0, |last| self.missing_until[last])
    }
}

/// Steele 2014's splitmix64: the draw of slipped tracks must not change with a library's version.
pub(super) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
