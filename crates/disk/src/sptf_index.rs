//! An index of places that commands wait for, which finds the place that the head can begin soonest. A scheduler by
//! positioning time queries it for each command that it serves.
//!
//! A place can begin only when its angle passes the head, and only if the arm has arrived by then. So a rotation is cut
//! into parts, and the search goes through the parts in the order in which they pass from now on. In each part it
//! considers the places no farther from the head than the arm can move until then. The first place that the arm reaches
//! in time is the soonest. A set of places is a word with a bit for each place, so a part takes a few instructions. A
//! table of distances makes it unnecessary to compute most seeks.
//!
//! Invariants:
//! 1. The place found has the least [`Actuator::positioning_time`] of all, whatever the seek model; of equal places it
//!    is the oldest.
//! 2. A move over a distance takes no less and no more than the bounds in the table. A move over a longer distance
//!    takes no less than the lower bound.
//! 3. In a block, the bit of each occupied seat is set in one part of the rotation and one part of the radius, and
//!    nowhere else.

use crate::actuator::Actuator;
use crate::geometry::Place;
use crate::mechanics::{Mechanics, Rotation, exact};
use crate::units::SimTime;
use crate::{Direction, Disk};

/// Maximum number of entries in the table of distances.
const DISTANCES: u32 = 1024;
/// Maximum number of parts of the radius.
const PARTS: usize = 64;
/// Maximum number of parts of a rotation.
const ANGLE_PARTS: usize = 32;
/// Number of seats of a block: one for each bit of a word.
const SEATS: usize = u64::BITS as usize;

/// Bounds on the time of a move over the distances of one table entry.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Minimum over the distances of the entry and all longer distances, in nanoseconds.
    least_ns: u32,
    /// Maximum over the distances of the entry, with or without a change of surface, in nanoseconds. `u32::MAX` stands
    /// for any larger value.
    most_ns: u32,
}

/// Table of bounds on the time of moves, by distance.
#[derive(Clone, Debug)]
struct Moves {
    /// For each entry, the bounds of reads and of writes. Entry `index` covers the distances from `index << shift` on.
    bounds: Vec<[Bounds; 2]>,
    shift: u32,
}

impl Moves {
    fn new(mechanics: &Mechanics, tracks: u32) -> Moves {
        let shift = (0..32).find(|shift| tracks >> shift < DISTANCES).expect("32 bits shifted by 31 are few");
        let mut seeks = vec![(u64::MAX, 0); (tracks >> shift) as usize + 1];
        for distance in (0..tracks).rev() {
            let seek_ns = mechanics.seek(distance).0;
            let entry = (distance >> shift) as usize;
            let (beyond, _) = seeks.get(entry + 1).copied().unwrap_or((u64::MAX, 0));
            let (least, most) = seeks[entry];
            seeks[entry] = (least.min(seek_ns).min(beyond), most.max(seek_ns));
        }
        let narrow = |ns: u64| ns.min(u32::MAX.into()) as u32;
        let of = |(entry, &(least, most)): (usize, &(u64, u64))| {
            [Direction::Read, Direction::Write].map(|direction| Bounds {
                // Entry 0 contains distance 0, which may need no move.
                least_ns: if entry == 0 {
                    0
                } else {
                    narrow(least.saturating_add_signed(mechanics.settle_ns(direction)))
                },
                most_ns: narrow(
                    most.max(mechanics.switch_ns(true)).saturating_add_signed(mechanics.settle_ns(direction)),
                ),
            })
        };
        Moves { bounds: seeks.iter().enumerate().map(of).collect(), shift }
    }

    #[inline(always)]
    fn over(&self, distance: u32, direction: Direction) -> Bounds {
        let [read, write] = self.bounds[(distance >> self.shift) as usize];
        if direction == Direction::Read { read } else { write }
    }

    /// Returns an upper bound on the distance that the arm covers in `ns` nanoseconds, in tracks.
    fn reach(&self, ns: u64) -> u32 {
        let is_reached = |of_both: &[Bounds; 2]| of_both.iter().any(|bounds| u64::from(bounds.least_ns) <= ns);
        let entry = self.bounds.iter().rposition(is_reached).unwrap_or(0) as u64;
        ((entry + 1) << self.shift).min(u32::MAX.into()) as u32 - 1
    }
}

/// A waiting place, reduced to the properties that the search needs.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Order of entry: older places have lower numbers.
    came: u64,
    radial_track: u32,
    angle_ns: u32,
    /// The caller's number for the place.
    name: u32,
    surface: u8,
    direction: Direction,
}

/// A fixed number of seats for places, with the sets of seats that are taken, by angle and by radius.
#[derive(Clone, Debug)]
struct Block {
    /// The place in each seat; undefined for a free seat.
    seats: [Target; SEATS],
    taken: u64,
    by_angle: [u64; ANGLE_PARTS],
    /// Seats by part of the radius, with empty parts added on either side, so that a search needs no bounds checks.
    by_radius: [u64; 3 * PARTS],
}

impl Block {
    const FREE: Target =
        Target { came: 0, radial_track: 0, angle_ns: 0, name: 0, surface: 0, direction: Direction::Read };

    const EMPTY: Block =
        Block { seats: [Block::FREE; SEATS], taken: 0, by_angle: [0; ANGLE_PARTS], by_radius: [0; 3 * PARTS] };

    #[inline(always)]
    fn seat(&self, seat: u32) -> &Target {
        &self.seats[seat as usize % SEATS]
    }
}

/// An index of the places that waiting commands access first. It finds the place with the shortest positioning time
/// (SPTF scheduling), the same as a comparison of all places would.
#[derive(Clone, Debug)]
pub struct SptfIndex {
    /// Blocks of 64 names each.
    blocks: Vec<Block>,
    /// Shift that turns an angle in nanoseconds into its part of a rotation.
    angle_shift: u32,
    /// Number of parts of a rotation.
    angle_parts: u32,
    /// Shift that turns a track into its part of the radius.
    radius_shift: u32,
    /// By number of parts of a rotation: how many parts of the radius away a place may lie so that the arm can reach it
    /// before one more part has passed.
    reach: [u8; ANGLE_PARTS + 1],
    moves: Moves,
    came: u64,
}

impl SptfIndex {
    /// Creates an empty index for places on `disk`. Returns `None` if the disk's rotation model is not `exact`, because
    /// the index searches by angle.
    pub fn new(disk: &Disk) -> Option<SptfIndex> {
        if disk.mechanics.rotation() != Rotation::Exact {
            return None;
        }
        let (tracks, last_ns) = (disk.geometry.radial_tracks(), disk.geometry.rotation_ns() - 1);
        let shift_for = |last: u32, parts: usize| {
            (0..32).find(|shift| ((last >> shift) as usize) < parts).expect("32 bits shifted by 31 are few")
        };
        let (angle_shift, radius_shift) = (shift_for(last_ns, ANGLE_PARTS), shift_for(tracks - 1, PARTS));
        let moves = Moves::new(&disk.mechanics, tracks);
        let reach = std::array::from_fn(|part| {
            let distance = moves.reach((part as u64 + 1) << angle_shift);
            // The head may be near the edge of its own part of the radius.
            ((distance >> radius_shift) + 1).min(PARTS as u32) as u8
        });
        let angle_parts = (last_ns >> angle_shift) + 1;
        let blocks = Vec::new();
        Some(SptfIndex { blocks, angle_shift, angle_parts, radius_shift, reach, moves, came: 0 })
    }

    /// Adds a place under the caller's number `name`, as the youngest: among equally near places, the one added first
    /// wins. Memory grows with the largest number, so numbers should be small.
    ///
    /// # Panics
    ///
    /// Panics if the index has a place of this number already.
    #[inline]
    pub fn add(&mut self, name: u32, place: &Place, direction: Direction) {
        let &Place { radial_track, surface, angle_ns, .. } = place;
        let (block, seat) = (name as usize / SEATS, name as usize % SEATS);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, Block::EMPTY);
        }
        let there = &mut self.blocks[block];
        assert!(there.taken >> seat & 1 == 0, "two places are called {name}");
        there.seats[seat] = Target { came: self.came, radial_track, angle_ns, name, surface, direction };
        there.taken |= 1 << seat;
        there.by_angle[(angle_ns >> self.angle_shift) as usize] |= 1 << seat;
        there.by_radius[PARTS + (radial_track >> self.radius_shift) as usize] |= 1 << seat;
        self.came += 1;
    }

    /// Removes the place that was added under the number `name`.
    ///
    /// # Panics
    ///
    /// Panics if the index has no place of this number.
    #[inline]
    pub fn remove(&mut self, name: u32) {
        let (block, seat) = (name as usize / SEATS, name as usize % SEATS);
        let there = &mut self.blocks[block];
        assert!(there.taken >> seat & 1 == 1, "no place is called {name}");
        let wanted = there.seats[seat];
        there.taken &= !(1 << seat);
        there.by_angle[(wanted.angle_ns >> self.angle_shift) as usize] &= !(1 << seat);
        there.by_radius[PARTS + (wanted.radial_track >> self.radius_shift) as usize] &= !(1 << seat);
    }

    /// Returns the number of the place at which a transfer can begin soonest if the head of `actuator` starts to move
    /// at `now`; of equal places, the one added first. Returns `None` if the index is empty.
    #[inline]
    pub fn find(&self, actuator: &Actuator, now: SimTime) -> Option<u32> {
        let rotation = actuator.disk().geometry.rotation_divider();
        let (phase_ns, rotation_ns) = (rotation.remainder(now.0) as u32, rotation.divisor() as u32);
        let head = actuator.radial_track();
        let mut search = Search { places: self, actuator, now, head, phase_ns, rotation_ns, best: Best::NONE };
        self.blocks.iter().for_each(|block| search.look_in(block));
        // No place can begin within a rotation. The places skipped above cannot be reached at their first pass, but
        // perhaps at their second.
        if search.best.begins_ns >= rotation_ns.into() {
            self.blocks.iter().for_each(|block| search.look_at(block, block.taken));
        }
        search.best.name()
    }
}

/// The place that can begin soonest of those considered so far.
#[derive(Clone, Copy)]
struct Best {
    /// Time from now until the place begins.
    begins_ns: u64,
    came: u64,
    name: u32,
}

impl Best {
    /// Value before any place is considered.
    const NONE: Best = Best { begins_ns: u64::MAX, came: u64::MAX, name: 0 };

    fn name(&self) -> Option<u32> {
        (self.came != u64::MAX).then_some(self.name)
    }
}

/// A search for the soonest place in all blocks.
struct Search<'a> {
    places: &'a SptfIndex,
    actuator: &'a Actuator,
    now: SimTime,
    head: u32,
    phase_ns: u32,
    rotation_ns: u32,
    best: Best,
}

impl Search<'_> {
    /// Returns the time from now until an angle passes, in nanoseconds.
    #[inline(always)]
    fn until(&self, angle_ns: u32) -> u32 {
        let (until_ns, has_passed) = angle_ns.overflowing_sub(self.phase_ns);
        if has_passed { until_ns.wrapping_add(self.rotation_ns) } else { until_ns }
    }

    /// Considers the places of `block` that pass within a rotation and that the arm may reach by then. The part of the
    /// rotation that passes now is considered a second time at the end, because some of its angles have already passed.
    #[inline(always)]
    fn look_in(&mut self, block: &Block) {
        let places = self.places;
        let head = PARTS + (self.head >> places.radius_shift) as usize;
        let (mut near, mut reach) = (block.by_radius[head], 0);
        let (mut part, mut ahead, mut last) = (self.phase_ns >> places.angle_shift, 0, self.last_part());
        while ahead <= last {
            while reach < places.reach[ahead] {
                reach += 1;
                near |= block.by_radius[head - reach as usize] | block.by_radius[head + reach as usize];
            }
            let seats = near & block.by_angle[part as usize];
            if seats != 0 {
                self.look_at(block, seats);
                last = self.last_part();
            }
            part = if part + 1 == places.angle_parts { 0 } else { part + 1 };
            ahead += 1;
        }
    }

    /// Returns the last part of a rotation, counted from the present one, in which a place may begin as soon as the
    /// best. This is one part more than the best place needs, because the last part of a rotation may be short.
    #[inline(always)]
    fn last_part(&self) -> usize {
        let places = self.places;
        let into_part_ns = u64::from(self.phase_ns & ((1 << places.angle_shift) - 1));
        let last = (self.best.begins_ns.saturating_add(into_part_ns) >> places.angle_shift) + 1;
        last.min(places.angle_parts.into()) as usize
    }

    /// Considers the places in the seats whose bits are set.
    #[inline(always)]
    fn look_at(&mut self, block: &Block, mut seats: u64) {
        while seats != 0 {
            self.consider(block.seat(seats.trailing_zeros()));
            seats &= seats - 1;
        }
    }

    #[inline(always)]
    fn consider(&mut self, wanted: &Target) {
        let (until_ns, distance) = (self.until(wanted.angle_ns), wanted.radial_track.abs_diff(self.head));
        let bounds = self.places.moves.over(distance, wanted.direction);
        let next_ns = u64::from(until_ns) + u64::from(self.rotation_ns);
        let begins_ns = if bounds.most_ns <= until_ns {
            until_ns.into()
        } else if bounds.least_ns > until_ns && u64::from(bounds.most_ns) <= next_ns && bounds.most_ns < u32::MAX {
            next_ns
        } else {
            self.computed(wanted, distance)
        };
        if (begins_ns, wanted.came) < (self.best.begins_ns, self.best.came) {
            self.best = Best { begins_ns, came: wanted.came, name: wanted.name };
        }
    }

    /// Computes when a place can begin, in nanoseconds from now, for places that the bounds of the table do not decide.
    #[inline(never)]
    fn computed(&self, wanted: &Target, distance: u32) -> u64 {
        let disk = self.actuator.disk();
        let changes_surface = wanted.surface != self.actuator.surface();
        let move_ns = disk.mechanics.move_ns(distance, changes_surface, wanted.direction);
        move_ns + exact::wait_ns(&disk.geometry, self.now.0 + move_ns, wanted.angle_ns)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: random places on disks with every seek model, including models whose times fall with
    //! distance, compared with a plain minimum while places are added and removed.

    use super::*;
    use crate::profile::Profile;
    use crate::units::{Pba, SimDuration};
    use proptest::prelude::*;

    const SEEKS: [&str; 4] = [
        "model = \"curve\"\nshort_base_ns = 600000\nshort_root_ns = 18000\nknee_tracks = 3000\nlong_base_ns = 900000\nlong_thousand_tracks_ns = 44500",
        // Time falls at the knee.
        "model = \"curve\"\nshort_base_ns = 600000\nshort_root_ns = 90000\nknee_tracks = 5000\nlong_base_ns = 100000\nlong_thousand_tracks_ns = 44500",
        "model = \"linear\"\nmin_ns = 400000\nmax_ns = 15000000",
        "model = \"table\"\npoints = [{ tracks = 1, seek_ns = 900000 }, { tracks = 900, seek_ns = 4000000 }, { tracks = 4000, seek_ns = 700000 }, { tracks = 39000, seek_ns = 9000000 }]",
    ];

    /// Settling times before a write: longer than before a read, and negative.
    const WRITE_SETTLES: [i64; 2] = [300_000, -300_000];

    fn disk(seek: &str, write_settle_ns: i64) -> crate::SharedDisk {
        let text = format!(
            "name = \"drawn\"\nsummary = \"drawn\"\ndefault_layer = \"conventional\"\n[geometry]\nlayout = \"cylinder\"\n\
             surfaces = 4\nrotation_ns = 8333333\ntracks = 40000\ntrack_sectors_od = 2000\ntrack_sectors_id = 1000\nzone_count = 4\n\
             [mechanics]\nsettle_ns = 100000\nwrite_settle_ns = {write_settle_ns}\nhead_switch_ns = 600000\n[mechanics.seek]\n{seek}\n\
             [recording]\nkind = \"conventional\"\n"
        );
        let profile = Profile::parse("drawn.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        profile.disk()
    }

    /// Asserts that `soonest`, which holds the places `waiting`, finds the place that a plain minimum over them finds.
    fn assert_finds(soonest: &SptfIndex, waiting: &[(u32, Place, Direction)], actuator: &Actuator, now: SimTime) {
        let time = |place, direction| actuator.positioning_time(now, place, direction);
        let least = waiting.iter().map(|(name, place, direction)| (time(place, *direction), *name)).min();
        assert_eq!(soonest.find(actuator, now), least.map(|(_, name)| name), "of {waiting:?} at {now:?}");
    }

    /// Checks that a place that has just passed is found last, and found nevertheless. In the same part of the rotation
    /// lies another place that is near the head and passes a little later.
    #[test]
    fn what_has_just_passed_comes_a_rotation_later() {
        for seek in SEEKS {
            let disk = disk(seek, WRITE_SETTLES[0]);
            let (actuator, mut soonest) = (Actuator::new(disk.clone()), SptfIndex::new(&disk).expect("it is exact"));
            let track_of = |track: u32, sector: u32| disk.geometry.locate(disk.geometry.pba(track, 0, sector));
            let near = track_of(1, 700);
            let far = (0..disk.geometry.track(20_000, 0).sectors.0 as u32)
                .map(|sector| track_of(20_000, sector))
                .filter(|place| place.angle_ns < near.angle_ns)
                .max_by_key(|place| place.angle_ns)
                .expect("a track has sectors at every angle");
            let waiting = [(0, near, Direction::Read), (1, far, Direction::Read)];
            waiting.iter().for_each(|(name, place, direction)| soonest.add(*name, place, *direction));
            for after in [1, 2, 1000, 100_000] {
                assert_finds(&soonest, &waiting, &actuator, SimTime(near.angle_ns as u64 + after));
            }
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_plain_minimum_finds(
            picks in prop::collection::vec((0.0f64..1.0, any::<bool>(), 0u32..6), 1..200),
            near in any::<bool>(),
            // Few different places, so that some begin at the same time.
            places in prop::sample::select(vec![3.0f64, 50.0, 1e12]),
            now in 0u64..30_000_000,
            seek in 0usize..4,
            write_settle_ns in prop::sample::select(WRITE_SETTLES.to_vec()),
        ) {
            let disk = disk(SEEKS[seek], write_settle_ns);
            let sectors = if near { 3_000_000 } else { disk.geometry.sectors().0 };
            let mut actuator = Actuator::new(disk.clone());
            let extent = crate::Extent::new(Pba(sectors / 3), crate::Sectors(1));
            let purpose = crate::access::Purpose::InPlace;
            actuator.access(SimTime::ZERO, &crate::access::Access { direction: Direction::Read, extent, purpose });
            let (mut soonest, now) = (SptfIndex::new(&disk).expect("its rotation is exact"), SimTime(now));
            let mut waiting: Vec<(u32, Place, Direction)> = Vec::new();
            for (number, (share, is_read, leaves)) in picks.into_iter().enumerate() {
                let name = number as u32 * 3;
                let share = (share * places).floor() / places;
                let place = disk.geometry.locate(Pba((share * (sectors - 1) as f64) as u64));
                let direction = if is_read { Direction::Read } else { Direction::Write };
                soonest.add(name, &place, direction);
                waiting.push((name, place, direction));
                for later in [0, 1, 1_234_567, 5_555_555] {
                    assert_finds(&soonest, &waiting, &actuator, now + SimDuration(later));
                }
                if leaves == 0 {
                    let (name, ..) = waiting.remove(waiting.len() / 2);
                    soonest.remove(name);
                }
            }
        }
    }
}
