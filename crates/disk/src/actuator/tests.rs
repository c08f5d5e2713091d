//! Goal: the mechanics follow from first principles. Method: single accesses on a virtual clock, compared with closed
//! forms; and long accesses compared with the same sectors one by one.

use std::sync::Arc;

use proptest::prelude::*;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::Geometry;
use crate::access::Purpose;
use crate::geometry::{GeometryConfig, InterlacedConfig, LayoutName};
use crate::mechanics::{Mechanics, MechanicsConfig, SeekConfig};
use crate::recording::conventional::Conventional;
use crate::units::Sectors;
use crate::units::{Extent, Pba};

const ROTATION_NS: u64 = 10_000_000;

fn disk(geometry: &GeometryConfig, mechanics: &MechanicsConfig) -> SharedDisk {
    let geometry = Geometry::new(geometry).unwrap();
    let mechanics = Mechanics::new(mechanics, &geometry).unwrap();
    Arc::new(Disk { geometry, mechanics, recording: Box::new(Conventional {}), flash: None, sector_bytes: 512 })
}

fn linear(min_ns: u64, max_ns: u64, rotation: Rotation) -> MechanicsConfig {
    MechanicsConfig::plain(SeekConfig::Linear { min_ns, max_ns }, rotation)
}

fn cylinders(surfaces: u8, tracks: u32, track_sectors: u32) -> GeometryConfig {
    GeometryConfig::listed(surfaces, LayoutName::Cylinder, ROTATION_NS as u32, &[(tracks, track_sectors)])
}

/// An actuator with a clock that stands still between accesses.
struct Hand {
    actuator: Actuator,
    now: SimTime,
}

impl Hand {
    fn new(disk: SharedDisk) -> Hand {
        Hand { actuator: Actuator::new(disk), now: SimTime::ZERO }
    }

    fn perform(&mut self, direction: Direction, purpose: Purpose, start: Pba, sectors: u64) -> AccessTime {
        let extent = Extent::new(start, Sectors(sectors));
        let time = self.actuator.access(self.now, &Access { direction, extent, purpose });
        self.now += time.total();
        time
    }

    fn read(&mut self, start: u64, sectors: u64) -> AccessTime {
        self.perform(Direction::Read, Purpose::InPlace, Pba(start), sectors)
    }

    fn write(&mut self, start: u64, sectors: u64) -> AccessTime {
        self.perform(Direction::Write, Purpose::InPlace, Pba(start), sectors)
    }
}

mod exact {
    use super::*;

    /// Each track takes a rotation, each switch its skew, whatever part of the skew the switch itself takes: in one
    /// access, or in accesses that follow each other without a gap.
    #[test]
    fn a_sequential_read_runs_at_media_rate_within_the_skew() {
        let (surfaces, tracks, track_sectors) = (2u64, 50u64, 1000u64);
        let geometry = GeometryConfig {
            track_skew_ns: 1_000_000,
            head_skew_ns: 700_000,
            ..cylinders(surfaces as u8, tracks as u32, track_sectors as u32)
        };
        let mechanics = MechanicsConfig {
            settle_ns: 100_000,
            head_switch_ns: 600_000,
            ..linear(800_000, 849_000, Rotation::Exact)
        };
        let disk = disk(&geometry, &mechanics);
        let skews_ns = tracks * 700_000 + (tracks - 1) * 1_000_000;
        let expected = SimDuration(surfaces * tracks * ROTATION_NS + skews_ns);
        let all = surfaces * tracks * track_sectors;

        let time = Hand::new(disk.clone()).read(0, all);
        assert_eq!(time.total(), expected);
        assert_eq!(time.transfer, SimDuration(surfaces * tracks * ROTATION_NS));

        let mut hand = Hand::new(disk);
        for start in (0..all).step_by(64) {
            hand.read(start, 64.min(all - start));
        }
        assert_eq!(hand.now.since(SimTime::ZERO), expected);
    }

    /// A skew a nanosecond too short costs a whole rotation at each switch.
    #[test]
    fn a_skew_that_does_not_suffice_loses_a_rotation() {
        let expected = |skew_ns: u32| {
            let geometry = GeometryConfig { track_skew_ns: skew_ns, ..cylinders(1, 10, 100) };
            let disk = disk(&geometry, &linear(900_000, 900_000, Rotation::Exact));
            Hand::new(disk).read(0, 1000).total().0
        };
        assert_eq!(expected(900_000), 10 * ROTATION_NS + 9 * 900_000);
        assert_eq!(expected(899_999), 10 * ROTATION_NS + 9 * (899_999 + ROTATION_NS));
    }

    /// Mean over random single sectors: the mean seek between two uniformly drawn tracks, half a rotation, and the
    /// transfer of one sector. The mean seek is min + (max − min)/3, less the cases in which both tracks are the same.
    #[test]
    fn a_random_read_takes_mean_seek_and_half_a_rotation() {
        let (tracks, track_sectors, samples) = (10_000u64, 500u64, 100_000u64);
        let (min_ns, max_ns) = (2_000_000.0, 20_000_000.0);
        let geometry = cylinders(1, tracks as u32, track_sectors as u32);
        let mut hand = Hand::new(disk(&geometry, &linear(min_ns as u64, max_ns as u64, Rotation::Exact)));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut sums = AccessTime::default();
        for _ in 0..samples {
            let time = hand.read(random.next_u64() % (tracks * track_sectors), 1);
            sums.seek += time.seek;
            sums.rotation += time.rotation;
            sums.transfer += time.transfer;
        }
        let mean_ns = |sum: SimDuration| sum.0 as f64 / samples as f64;
        let within_a_hundredth = |mean: f64, expected: f64| (mean - expected).abs() < expected / 100.0;
        let mean_distance = (tracks * tracks - 1) as f64 / (3 * tracks) as f64;
        let moves = 1.0 - 1.0 / tracks as f64;
        let seek_ns = moves * min_ns + (max_ns - min_ns) * mean_distance / (tracks - 1) as f64;
        assert!(within_a_hundredth(mean_ns(sums.seek), seek_ns), "{} for {seek_ns}", mean_ns(sums.seek));
        let half_ns = ROTATION_NS as f64 / 2.0;
        assert!(within_a_hundredth(mean_ns(sums.rotation), half_ns), "{}", mean_ns(sums.rotation));
        assert_eq!(sums.transfer.0, samples * ROTATION_NS / track_sectors);
    }

    #[test]
    fn the_same_sector_comes_round_after_exactly_one_rotation() {
        let mut hand = Hand::new(disk(&cylinders(1, 10, 997), &linear(1, 1, Rotation::Exact)));
        hand.read(333, 1);
        assert_eq!(hand.read(333, 1).total(), SimDuration(ROTATION_NS));
        assert_eq!(hand.write(333, 1).total(), SimDuration(ROTATION_NS));
    }

    #[test]
    fn half_a_track_away_is_half_a_rotation_away() {
        let mut hand = Hand::new(disk(&cylinders(1, 10, 1000), &linear(1, 1, Rotation::Exact)));
        hand.read(100, 1);
        assert_eq!(hand.read(600, 1).total(), SimDuration(ROTATION_NS / 2));
        assert_eq!(hand.read(100, 1).total(), SimDuration(ROTATION_NS / 2));
    }

    /// Controller time between two sequential accesses costs a missed rotation.
    #[test]
    fn a_late_sequential_access_misses_its_sector() {
        let mut hand = Hand::new(disk(&cylinders(1, 10, 1000), &linear(1, 1, Rotation::Exact)));
        hand.read(0, 10);
        hand.now += SimDuration(1);
        assert_eq!(hand.read(10, 10).rotation, SimDuration(ROTATION_NS - 1));
    }

    /// An access of whole tracks begins at once on a zero-latency drive, and on no other; with one sector less it has
    /// to wait.
    #[test]
    fn whole_tracks_begin_at_any_sector_with_zero_latency() {
        let geometry = GeometryConfig { track_skew_ns: 5_000_000, ..cylinders(1, 100, 1000) };
        let read = |zero_latency, start, sectors| {
            let mechanics = MechanicsConfig { zero_latency, ..linear(1_000_000, 1_000_000, Rotation::Exact) };
            Hand::new(disk(&geometry, &mechanics)).read(start, sectors)
        };
        let two_tracks = read(true, 10_000, 2000);
        assert_eq!(two_tracks.rotation, SimDuration::ZERO);
        assert_eq!(two_tracks.total(), SimDuration(2 * 1_000_000 + 2 * ROTATION_NS));
        // Track 10 starts at angle 10 · T/2 = 0 and the head is there after 1 ms: 9 ms too late, then 4 ms of skew are left.
        assert_eq!(read(false, 10_000, 2000).rotation, SimDuration(9_000_000 + 4_000_000));
        assert_eq!(read(true, 10_000, 1999).rotation, SimDuration(9_000_000 + 4_000_000));
        assert_eq!(read(true, 10_001, 1999).rotation, SimDuration(9_010_000 + 4_000_000));
    }

    /// The read-modify-write of Hajkazemi 2019 §2.1 on a platter that has an angle. Once the first sector is reached,
    /// all steps together take 3 + k whole rotations and the last transfer, with k for the trip to the backup region
    /// and back.
    #[test]
    fn a_read_modify_write_takes_whole_rotations_by_itself() {
        let mut geometry = GeometryConfig::listed(1, LayoutName::BottomThenTop, ROTATION_NS as u32, &[(10_240, 4000)]);
        geometry.interlaced = Some(InterlacedConfig { top_ratio: 1.0, ..InterlacedConfig::default() });
        let disk = disk(&geometry, &linear(2_000_000, 20_000_000, Rotation::Exact));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
        let mut hand = Hand::new(disk.clone());
        for _ in 0..1000 {
            let track = 2 + 2 * (random.next_u64() % 5000) as u32;
            let sector = (random.next_u64() % 4000) as u32;
            let [below, home, above] = [track - 1, track, track + 1].map(|track| disk.geometry.pba(track, 0, sector).0);
            let backup = disk.geometry.pba(5120, 0, (random.next_u64() % 4000) as u32);
            let first = hand.read(below, 1);
            let begin = hand.now - first.transfer;
            hand.read(above, 1);
            let seek_ns = |from: u32| disk.mechanics.seek(5120u32.abs_diff(from)).0;
            let trip_ns = seek_ns(track + 1) + seek_ns(track);
            hand.perform(Direction::Write, Purpose::Backup, backup, 1);
            for start in [home, below, above] {
                hand.write(start, 1);
            }
            let time_ns = (hand.now - first.transfer).since(begin).0;
            assert_eq!(time_ns % ROTATION_NS, 0, "{time_ns} at track {track}, sector {sector}");
            let trip_rotations = time_ns / ROTATION_NS - 3;
            assert!(trip_rotations * ROTATION_NS > trip_ns, "{trip_rotations} rotations for {trip_ns} ns of seeks");
            assert!(trip_rotations <= trip_ns / ROTATION_NS + 2, "each end waits less than a rotation");
        }
    }

    proptest! {
        /// Goal: a long access takes as long as its sectors one by one, on any layout, and leaves the head at the same
        /// position.
        #[test]
        fn an_access_takes_what_its_sectors_take(
            layout in prop_oneof![Just(LayoutName::Cylinder), Just(LayoutName::Horizontal), Just(LayoutName::BottomThenTop)],
            zones in proptest::collection::vec((1u32..5, 2u32..30), 1..4),
            skews in (0u32..ROTATION_NS as u32, 0u32..ROTATION_NS as u32),
            now in 0u64..1 << 40,
            start in 0u64..10_000,
            sectors in 1u64..300,
        ) {
            let zones: Vec<_> = zones.iter().map(|&(tracks, length)| (2 * tracks, length)).collect();
            let geometry = GeometryConfig {
                track_skew_ns: skews.0,
                head_skew_ns: skews.1,
                ..GeometryConfig::listed(3, layout, ROTATION_NS as u32, &zones)
            };
            let mechanics = MechanicsConfig {
                settle_ns: 70_000,
                write_settle_ns: Some(310_000),
                head_switch_ns: 1_100_000,
                ..linear(900_000, 17_000_000, Rotation::Exact)
            };
            let disk = disk(&geometry, &mechanics);
            let start = start % disk.geometry.sectors().0;
            let sectors = sectors.min(disk.geometry.sectors().0 - start);
            let mut long = Hand { now: SimTime(now), ..Hand::new(disk.clone()) };
            let mut short = Hand { now: SimTime(now), ..Hand::new(disk) };
            let long_time = long.write(start, sectors);
            let mut sum = AccessTime::default();
            for sector in start..start + sectors {
                let time = short.write(sector, 1);
                sum.seek += time.seek;
                sum.rotation += time.rotation;
                sum.transfer += time.transfer;
            }
            prop_assert_eq!(long_time, sum);
            prop_assert_eq!(long.actuator.radial_track(), short.actuator.radial_track());
            prop_assert_eq!(long.actuator.surface(), short.actuator.surface());
        }
    }
}

/// Hajkazemi 2019 §2, step by step, on equal tracks of 4096 sectors.
mod half {
    use super::*;

    const TRACK: u64 = 4096;
    const SECTOR_NS: u64 = ROTATION_NS / TRACK;
    /// The backup tracks, far from everything else.
    const BACKUP_TRACK: u32 = 6000;

    fn disk_of_the_paper() -> SharedDisk {
        let interlaced = InterlacedConfig { top_ratio: 1.0, ..InterlacedConfig::default() };
        let zones = [(10_240, TRACK as u32)];
        let plain = GeometryConfig::listed(1, LayoutName::BottomThenTop, ROTATION_NS as u32, &zones);
        let geometry = GeometryConfig { interlaced: Some(interlaced), ..plain };
        disk(&geometry, &linear(2_000_000, 20_000_000, Rotation::Half))
    }

    impl Hand {
        fn at(&self, track: u32, sector: u64) -> u64 {
            self.actuator.disk().geometry.pba(track, 0, sector as u32).0
        }

        fn seek_ns(&self, from: u32, to: u32) -> u64 {
            self.actuator.disk().mechanics.seek(from.abs_diff(to)).0
        }

        /// Reads S(T−1) and S(T+1), backs both up, writes S(T), rewrites S(T−1) and S(T+1).
        fn read_modify_write(&mut self, track: u32, sector: u64, sectors: u64) -> SimDuration {
            let begin = self.now;
            self.actuator.begin_operation();
            let (below, above) = (self.at(track - 1, sector), self.at(track + 1, sector));
            let (home, backup) = (self.at(track, sector), self.at(BACKUP_TRACK, 0));
            self.read(below, sectors);
            self.read(above, sectors);
            self.perform(Direction::Write, Purpose::Backup, Pba(backup), 2 * sectors);
            self.write(home, sectors);
            self.write(below, sectors);
            self.write(above, sectors);
            self.now.since(begin)
        }
    }

    /// §2.1: t_seek + 5.5 t_rot, where a conventional drive takes t_seek + 0.5 t_rot. The transfer, which the paper
    /// calls negligible, is added once in either case, because a missed rotation contains the transfer before it.
    #[test]
    fn a_random_bottom_write_takes_a_seek_and_five_and_a_half_rotations() {
        for (sector, sectors) in [(0, 1), (1234, 1), (4095, 1), (100, 700)] {
            let mut hand = Hand::new(disk_of_the_paper());
            let seek_ns = hand.seek_ns(0, 4999);
            let expected = seek_ns + ROTATION_NS * 11 / 2;
            let time = hand.read_modify_write(5000, sector, sectors).0;
            assert!(time.abs_diff(expected + sectors * ROTATION_NS / TRACK) <= 1, "{time} for {expected} at {sector}");
            assert_eq!(hand.actuator.radial_track(), 5001);
        }
    }

    #[test]
    fn a_conventional_write_takes_a_seek_and_half_a_rotation() {
        let mut hand = Hand::new(disk_of_the_paper());
        let expected = AccessTime {
            seek: SimDuration(hand.seek_ns(0, 5000)),
            rotation: SimDuration(ROTATION_NS / 2),
            transfer: SimDuration(SECTOR_NS),
        };
        let home = hand.at(5000, 0);
        assert_eq!(hand.write(home, 1), expected);
    }

    /// §2.1: a write of the sector after the last one finds its angle just passed, so it takes 6 t_rot each time.
    #[test]
    fn a_sequential_bottom_write_takes_six_rotations() {
        let mut hand = Hand::new(disk_of_the_paper());
        hand.read_modify_write(5000, 7, 1);
        for sector in 8..20 {
            let time = hand.read_modify_write(5000, sector, 1).0;
            assert!(time.abs_diff(6 * ROTATION_NS + SECTOR_NS) <= 1, "{time} at sector {sector}");
        }
    }

    /// The controller's time between two writes passes while the platter turns, so it does not add to six rotations.
    #[test]
    fn time_between_operations_counts_towards_the_missed_rotation() {
        let mut hand = Hand::new(disk_of_the_paper());
        hand.read_modify_write(5000, 7, 1);
        let before = hand.now;
        hand.now += SimDuration::from_millis(1);
        hand.read_modify_write(5000, 8, 1);
        let time = hand.now.since(before).0;
        assert!(time.abs_diff(6 * ROTATION_NS + SECTOR_NS) <= 1, "{time}");
    }

    /// §2.2: 3 t_seek + 8 t_rot for a flip of T and T+1.
    #[test]
    fn a_flip_takes_three_seeks_and_eight_rotations() {
        let mut hand = Hand::new(disk_of_the_paper());
        let starts = [4999, 5000, 5001].map(|track| hand.at(track, 0));
        // Backup tracks are a run of bottoms, which follow each other in PBA order.
        let backup = hand.at(BACKUP_TRACK, 0);
        for start in starts {
            hand.read(start, TRACK);
        }
        hand.perform(Direction::Write, Purpose::Backup, Pba(backup), 2 * TRACK);
        for start in [starts[1], starts[2], starts[0]] {
            hand.write(start, TRACK);
        }
        let seeks_ns = hand.seek_ns(0, 4999) + hand.seek_ns(5001, BACKUP_TRACK) + hand.seek_ns(BACKUP_TRACK + 2, 5000);
        assert_eq!(hand.now.0, seeks_ns + 8 * ROTATION_NS);
    }

    /// §2.3: promotion 2 t_seek + 2 t_rot, eviction 4 t_seek + 8 t_rot.
    #[test]
    fn track_cache_moves_take_the_papers_rotations() {
        let mut hand = Hand::new(disk_of_the_paper());
        let (home, cache, backup) = (hand.at(5000, 0), hand.at(8000, 0), hand.at(BACKUP_TRACK, 0));
        let (below, above) = (hand.at(4999, 0), hand.at(5001, 0));
        hand.read(home, TRACK);
        hand.write(cache, TRACK);
        assert_eq!(hand.now.0, hand.seek_ns(0, 5000) + hand.seek_ns(5000, 8000) + 2 * ROTATION_NS);

        hand.read(0, TRACK);
        let begin = hand.now;
        hand.read(cache, TRACK);
        hand.read(below, TRACK);
        hand.read(above, TRACK);
        hand.perform(Direction::Write, Purpose::Backup, Pba(backup), 2 * TRACK);
        for start in [home, below, above] {
            hand.write(start, TRACK);
        }
        let seeks_ns = hand.seek_ns(0, 8000)
            + hand.seek_ns(8000, 4999)
            + hand.seek_ns(5001, BACKUP_TRACK)
            + hand.seek_ns(BACKUP_TRACK + 2, 5000);
        assert_eq!(hand.now.since(begin).0, seeks_ns + 8 * ROTATION_NS);
    }

    /// §2.4: 5 t_seek + 13 t_rot for a swap of pseudo-tracks, which in this case begin where tracks do.
    #[test]
    fn a_swap_of_pseudo_tracks_takes_five_seeks_and_thirteen_rotations() {
        let mut hand = Hand::new(disk_of_the_paper());
        let (below, hot, above) = (hand.at(4999, 0), hand.at(5000, 0), hand.at(5001, 0));
        let (cold, backup) = (hand.at(5101, 0), hand.at(BACKUP_TRACK, 0));
        let (read, write) = (Direction::Read, Direction::Write);
        let steps = [
            (read, Purpose::PseudoTrack, below, TRACK),
            (read, Purpose::PseudoTrack, hot, TRACK),
            (read, Purpose::PseudoTrack, above, TRACK),
            (write, Purpose::Backup, backup, 3 * TRACK),
            (read, Purpose::PseudoTrack, cold, TRACK),
            (write, Purpose::PseudoTrack, hot, TRACK),
            (write, Purpose::PseudoTrack, below, TRACK),
            (write, Purpose::PseudoTrack, above, TRACK),
            (write, Purpose::PseudoTrack, cold, TRACK),
        ];
        let mut seeks = Vec::new();
        let mut rotations = SimDuration::ZERO;
        for (direction, purpose, start, sectors) in steps {
            let time = hand.perform(direction, purpose, Pba(start), sectors);
            seeks.push(time.seek.0);
            rotations += time.rotation + time.transfer;
        }
        assert_eq!(seeks.iter().filter(|&&seek_ns| seek_ns > 0).count(), 5);
        assert_eq!(rotations.0, 13 * ROTATION_NS);
    }

    /// A track's length from the middle of a track: a seek, half a rotation, a rotation.
    #[test]
    fn a_track_from_the_middle_of_one_waits_half_a_rotation_after_a_seek() {
        let mut hand = Hand::new(disk_of_the_paper());
        let start = hand.at(5000, 10);
        let time = hand.read(start, TRACK);
        assert_eq!(time.seek.0, hand.seek_ns(0, 5000));
        assert_eq!((time.rotation + time.transfer).0, ROTATION_NS * 3 / 2);
    }

    /// A long run over bottoms, then back over their tops, is one transfer without a seek.
    #[test]
    fn going_on_costs_neither_seek_nor_rotation() {
        let mut hand = Hand::new(disk_of_the_paper());
        hand.read(5, 1);
        for sectors in [10, 200 * TRACK] {
            let start = hand.actuator.head.next().unwrap().0;
            let time = hand.read(start, sectors);
            assert_eq!((time.seek, time.rotation), (SimDuration::ZERO, SimDuration::ZERO));
        }
    }

    /// Two separate pieces of a backup are one trip; the next operation makes its own trip.
    #[test]
    fn a_trip_is_paid_once_an_operation() {
        let mut hand = Hand::new(disk_of_the_paper());
        let (home, backup) = (hand.at(5000, 0), hand.at(BACKUP_TRACK, 0));
        hand.read(home, 1);
        for expected_ns in [2 * ROTATION_NS - SECTOR_NS, 0] {
            let time = hand.perform(Direction::Write, Purpose::Backup, Pba(backup), 1);
            assert!(time.total().0.abs_diff(expected_ns) <= 1, "{time:?}");
        }
        hand.actuator.begin_operation();
        let time = hand.perform(Direction::Write, Purpose::Backup, Pba(backup), 1);
        assert_eq!(time.total().0, 2 * ROTATION_NS);
        assert_eq!(hand.actuator.radial_track(), 5000, "the head is back");
    }
}

mod none {
    use super::*;

    /// Cassuto 2010 §III.B: seek and transfer, nothing else; an access that continues the last one needs no seek.
    #[test]
    fn an_access_takes_seek_and_transfer() {
        let mechanics = MechanicsConfig {
            media_bytes_per_second: Some(512 * 200_000),
            ..linear(1_000_000, 10_000_000, Rotation::None)
        };
        let mut hand = Hand::new(disk(&cylinders(1, 1001, 100), &mechanics));
        let time = hand.read(50_000, 1000);
        let expected = AccessTime {
            seek: SimDuration(1_000_000 + 4_500_000),
            rotation: SimDuration::ZERO,
            transfer: SimDuration(5_000_000),
        };
        assert_eq!(time, expected);
        assert_eq!(hand.read(51_000, 1).total(), SimDuration(5_000));
        assert_eq!(hand.actuator.radial_track(), 510);
    }

    #[test]
    fn without_a_rate_tracks_pass_in_a_rotation() {
        let mut hand = Hand::new(disk(&cylinders(2, 10, 100), &linear(1_000_000, 2_000_000, Rotation::None)));
        assert_eq!(hand.read(0, 1050).total(), SimDuration(105 * ROTATION_NS / 10));
    }
}

proptest! {
    /// Goal: the positioning time given to schedulers equals seek and rotation of the access, under every rotation
    /// model.
    #[test]
    fn positioning_is_told_as_it_then_is(
        rotation in prop_oneof![Just(Rotation::Exact), Just(Rotation::Half), Just(Rotation::None)],
        targets in proptest::collection::vec((0u64..2 * 100 * 64, 0u64..20_000_000, any::<bool>(), any::<bool>()), 1..40),
    ) {
        let mechanics = MechanicsConfig { head_switch_ns: 500_000, ..linear(1_000_000, 9_000_000, rotation) };
        let mut hand = Hand::new(disk(&cylinders(2, 100, 64), &mechanics));
        for (target, pause_ns, writes, goes_on) in targets {
            hand.now += SimDuration(pause_ns);
            let next = hand.actuator.head.next().map_or(0, |next| next.0);
            let target = if goes_on { next % (2 * 100 * 64) } else { target };
            let direction = if writes { Direction::Write } else { Direction::Read };
            let place = hand.actuator.disk().geometry.locate(Pba(target));
            let told = hand.actuator.positioning_time(hand.now, &place, direction);
            let time = hand.perform(direction, Purpose::InPlace, Pba(target), 1);
            prop_assert_eq!(told, time.seek + time.rotation);
        }
    }
}

/// An access past the end of the disk panics.
#[test]
#[should_panic(expected = "an access lies on the disk of 100 sectors")]
fn an_access_past_the_disk_is_a_wrong_plan() {
    let config = cylinders(1, 10, 10);
    let mut actuator = Actuator::new(disk(&config, &linear(1, 2, Rotation::Exact)));
    let extent = Extent::new(Pba(99), Sectors(2));
    actuator.access(SimTime::ZERO, &Access { direction: Direction::Read, extent, purpose: Purpose::InPlace });
}

#[test]
fn the_head_log_follows_an_access_track_by_track() {
    let disk = disk(&cylinders(1, 10, 100), &linear(0, 0, Rotation::Exact));
    let mut actuator = Actuator::with_log(disk, HeadLog::new(16));
    let extent = Extent::new(Pba(300), Sectors(300));
    actuator.access(SimTime::ZERO, &Access { direction: Direction::Read, extent, purpose: Purpose::InPlace });
    let path: Vec<_> =
        actuator.head_log().unwrap().samples().iter().map(|sample| (sample.time.0, sample.radial_track)).collect();
    assert_eq!(path, [(0, 3), (ROTATION_NS, 4), (2 * ROTATION_NS, 5)]);
}
