//! Angles: the sectors of one track that lie beside a run of sectors of another track. The tracks may hold different
//! numbers of sectors and start at different angles.
//!
//! Invariants:
//! 1. Exact: positions are compared as fractions of a rotation with the tracks' common denominator. So a boundary that
//!    two tracks share stays shared, and no sector is added by rounding.
//! 2. A run as long as a rotation lies beside the whole other track.

use crate::geometry::Place;
use crate::units::{Extent, Pba, Sectors};

/// A track as it passes the head: its start and its division into sectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    start: Pba,
    sectors: u64,
    /// Time after the index mark at which the first sector passes, in nanoseconds.
    angle_ns: u64,
}

impl Ring {
    /// Returns the ring that a track forms, given the place of its first sector.
    pub(super) fn of(first: &Place) -> Ring {
        assert!(first.sector == 0, "a ring begins with a track's first sector, not with sector {}", first.sector);
        let (sectors, angle_ns) = (u64::from(first.track_sectors), u64::from(first.angle_ns));
        Ring { start: first.track_start, sectors, angle_ns }
    }
}

/// Distance by which a write reaches beyond its own angles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Margin {
    /// Margin towards the sectors that pass the head before the written ones, in nanoseconds.
    pub(super) earlier_ns: u64,
    /// Margin towards the sectors that pass the head after the written ones, in nanoseconds.
    pub(super) later_ns: u64,
    /// Margin on both sides in whole sectors of the other track, added to the margins in time.
    pub(super) sectors: u64,
}

/// Returns the sectors of `ring` at the angles of `run`, widened by `margin`; `run` lies on `own`. The result is one
/// extent, or two where the sectors run over the end of the track.
pub(super) fn facing(own: Ring, run: Extent, ring: Ring, margin: Margin, rotation_ns: u32) -> [Option<Extent>; 2] {
    // One nanosecond is `nanosecond` units, a sector of `own` is `rotation × ring.sectors` units, and a sector of
    // `ring` is `rotation × own.sectors` units. All are whole numbers, below 2^63 for tracks of a million sectors.
    let rotation = u64::from(rotation_ns);
    let nanosecond = own.sectors * ring.sectors;
    let circle = rotation * nanosecond;
    let width = run.sectors.0 * rotation * ring.sectors + (margin.earlier_ns + margin.later_ns) * nanosecond;
    if width >= circle {
        return [Some(Extent::new(ring.start, Sectors(ring.sectors))), None];
    }
    let start = own.angle_ns * nanosecond + (run.start - own.start).0 * rotation * ring.sectors;
    let behind = (ring.angle_ns + margin.earlier_ns) * nanosecond % circle;
    let start = (start + circle - behind) % circle;
    let sector = rotation * own.sectors;
    let first = start / sector;
    let count = (start + width).div_ceil(sector) - first + 2 * margin.sectors;
    let first = (first + ring.sectors - margin.sectors % ring.sectors) % ring.sectors;
    wrapped(ring, first, count)
}

/// Returns the `count` sectors of `ring` from the one numbered `first`, continued at its start where they run over its
/// end.
fn wrapped(ring: Ring, first: u64, count: u64) -> [Option<Extent>; 2] {
    if count >= ring.sectors {
        return [Some(Extent::new(ring.start, Sectors(ring.sectors))), None];
    }
    let head = count.min(ring.sectors - first);
    let tail = count - head;
    let extent = |first: u64, count: u64| Extent::new(ring.start + Sectors(first), Sectors(count));
    [Some(extent(first, head)), (tail > 0).then(|| extent(0, tail))]
}

#[cfg(test)]
mod tests {
    //! Goal: the closed form gives the sectors that overlap. Method: comparison of every sector with the run, as
    //! intervals on a circle.

    use super::*;
    use proptest::prelude::*;

    fn ring(sectors: u64, angle_ns: u64) -> Ring {
        Ring { start: Pba(1000), sectors, angle_ns }
    }

    fn extent(start: u64, sectors: u64) -> Extent {
        Extent::new(Pba(start), Sectors(sectors))
    }

    #[test]
    fn like_tracks_face_sector_by_sector_whatever_the_rounding() {
        let own = Ring { start: Pba(0), sectors: 3600, angle_ns: 0 };
        for sector in 0..3600 {
            let faced = facing(own, extent(sector, 1), ring(3600, 0), Margin::default(), 10_000_000);
            assert_eq!(faced, [Some(extent(1000 + sector, 1)), None]);
        }
    }

    #[test]
    fn a_skewed_track_is_hit_over_its_end() {
        // The other track starts a quarter of a rotation later, so sectors 0 … 3 of ten lie at its 7.5 … 10.5.
        let own = Ring { start: Pba(0), sectors: 10, angle_ns: 0 };
        let faced = facing(own, extent(0, 3), ring(10, 250), Margin::default(), 1000);
        assert_eq!(faced, [Some(extent(1007, 3)), Some(extent(1000, 1))]);
    }

    #[test]
    fn a_margin_in_sectors_widens_both_sides() {
        let own = Ring { start: Pba(0), sectors: 10, angle_ns: 0 };
        let margin = Margin { sectors: 2, ..Margin::default() };
        assert_eq!(facing(own, extent(5, 1), ring(10, 0), margin, 1000), [Some(extent(1003, 5)), None]);
        assert_eq!(
            facing(own, extent(1, 1), ring(10, 0), margin, 1000),
            [Some(extent(1009, 1)), Some(extent(1000, 4))]
        );
    }

    proptest! {
        #[test]
        fn agrees_with_every_sector_compared(
            (own_sectors, first, sectors) in (1..30u64).prop_flat_map(|n| (Just(n), 0..n, 1..=n)),
            (other_sectors, own_angle, other_angle) in (1..30u64, 0..1000u64, 0..1000u64),
            (earlier_ns, later_ns) in (0..300u64, 0..300u64),
        ) {
            let sectors = sectors.min(own_sectors - first);
            let own = Ring { start: Pba(0), sectors: own_sectors, angle_ns: own_angle };
            let margin = Margin { earlier_ns, later_ns, sectors: 0 };
            let other = ring(other_sectors, other_angle);
            let faced = facing(own, extent(first, sectors), other, margin, 1000);
            // In units of a nanosecond over the product of the sector counts.
            let unit = own_sectors as i64 * other_sectors as i64;
            let circle = 1000 * unit;
            let run_start = (own_angle as i64 - earlier_ns as i64) * unit + (first * 1000 * other_sectors) as i64;
            let run_width = (sectors * 1000 * other_sectors) as i64 + (earlier_ns + later_ns) as i64 * unit;
            for sector in 0..other_sectors {
                let start = other_angle as i64 * unit + (sector * 1000 * own_sectors) as i64;
                let width = (1000 * own_sectors) as i64;
                let overlaps = (start - run_start).rem_euclid(circle) < run_width
                    || (run_start - start).rem_euclid(circle) < width;
                let named = faced.iter().flatten().any(|extent| extent.contains(Pba(1000 + sector)));
                prop_assert_eq!(named, overlaps, "sector {} of {}", sector, other_sectors);
            }
        }
    }
}
