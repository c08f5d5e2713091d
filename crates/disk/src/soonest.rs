//! Places that the head is wanted at, and which of them it can begin soonest: what a scheduler by positioning time asks for
//! each command that it serves.
//!
//! A place can begin only as its angle passes, and only if the arm is there by then. So a rotation is cut into parts, and the
//! parts are looked at in the order in which they pass from now on: of each, the places that lie no farther from the head than
//! the arm comes until then. The first that it reaches in time is the soonest. Sets of places are words with a bit for each, so
//! that a part takes a few instructions, and a table of distances spares nearly all seeks the computing.
//!
//! Invariants:
//! 1. What is found is what [`Actuator::positioning_time`] is least for, whatever the seek model; of equals the oldest.
//! 2. A move over a distance takes no less and no more than the table says, and one over any farther distance no less.
//! 3. In a block the bit of each occupied seat is set in one part of the rotation and one of the radius, and nowhere else.

use crate::actuator::Actuator;
use crate::geometry::Place;
use crate::mechanics::{Mechanics, Rotation, exact};
use crate::units::SimTime;
use crate::{Direction, Disk};

/// Distances of the table, at most.
const DISTANCES: u32 = 1024;
/// Parts of the radius, at most.
const PARTS: usize = 64;
/// Parts of a rotation, at most.
const ANGLE_PARTS: usize = 32;
/// Seats of a block: one for each bit of a word.
const SEATS: usize = u64::BITS as usize;

/// How long a move takes at least and at most.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Over these distances, and over any farther.
    least_ns: u32,
    /// Over these distances, to another surface or not; as large as fits where it is more.
    most_ns: u32,
}

/// The bounds of moves by distance.
#[derive(Clone, Debug)]
struct Moves {
    /// Of reads and of writes, for the distances from `index << shift` on.
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
                // Where the head is there need be no move at all.
                least_ns: if entry == 0 { 0 } else { narrow(least.saturating_add(mechanics.settle_ns(direction))) },
                most_ns: narrow(most.max(mechanics.switch_ns(true)).saturating_add(mechanics.settle_ns(direction))),
            })
        };
        Moves { bounds: seeks.iter().enumerate().map(of).collect(), shift }
    }

    #[inline(always)]
    fn over(&self, distance: u32, direction: Direction) -> Bounds {
        let [read, write] = self.bounds[(distance >> self.shift) as usize];
        if direction == Direction::Read { read } else { write }
    }

    /// The farthest that the arm may come in a time.
    fn reach(&self, ns: u64) -> u32 {
        let is_reached = |of_both: &[Bounds; 2]| of_both.iter().any(|bounds| u64::from(bounds.least_ns) <= ns);
        let entry = self.bounds.iter().rposition(is_reached).unwrap_or(0) as u64;
        ((entry + 1) << self.shift).min(u32::MAX.into()) as u32 - 1
    }
}

/// A place, by what the search needs of it.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Those that came before have a lower number.
    came: u64,
    radial_track: u32,
    angle_ns: u32,
    /// What the caller calls it.
    name: u32,
    surface: u8,
    direction: Direction,
}

/// Seats for places, and which of them are taken by whom.
#[derive(Clone, Debug)]
struct Block {
    /// What stands on a free one means nothing.
    seats: [Wanted; SEATS],
    taken: u64,
    by_angle: [u64; ANGLE_PARTS],
    /// With parts that stay empty on either side, so that a reach needs no end.
    by_radius: [u64; 3 * PARTS],
}

impl Block {
    const FREE: Wanted =
        Wanted { came: 0, radial_track: 0, angle_ns: 0, name: 0, surface: 0, direction: Direction::Read };

    const EMPTY: Block =
        Block { seats: [Block::FREE; SEATS], taken: 0, by_angle: [0; ANGLE_PARTS], by_radius: [0; 3 * PARTS] };

    #[inline(always)]
    fn seat(&self, seat: u32) -> &Wanted {
        &self.seats[seat as usize % SEATS]
    }
}

/// Places that the head is wanted at.
#[derive(Clone, Debug)]
pub struct Soonest {
    /// Of 64 names each.
    blocks: Vec<Block>,
    /// An angle shifted by this is its part of a rotation.
    angle_shift: u32,
    /// Parts of a rotation.
    angle_parts: u32,
    /// A track shifted by this is its part of the radius.
    radius_shift: u32,
    /// How many parts of the radius away a place may be that is begun by the end of so many parts of a rotation and one.
    reach: [u8; ANGLE_PARTS + 1],
    moves: Moves,
    came: u64,
}

impl Soonest {
    /// For places on `disk`; none where its rotation is not exact, since there an angle says nothing.
    pub fn new(disk: &Disk) -> Option<Soonest> {
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
            // The head may be near the end of its own part.
            ((distance >> radius_shift) + 1).min(PARTS as u32) as u8
        });
        let angle_parts = (last_ns >> angle_shift) + 1;
        let blocks = Vec::new();
        Some(Soonest { blocks, angle_shift, angle_parts, radius_shift, reach, moves, came: 0 })
    }

    /// Adds the place of what the caller calls `name`, younger than all before it. Names are small numbers, none of two places.
    #[inline]
    pub fn add(&mut self, name: u32, place: &Place, direction: Direction) {
        let &Place { radial_track, surface, angle_ns, .. } = place;
        let (block, seat) = (name as usize / SEATS, name as usize % SEATS);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, Block::EMPTY);
        }
        let there = &mut self.blocks[block];
        assert!(there.taken >> seat & 1 == 0, "two places are called {name}");
        there.seats[seat] = Wanted { came: self.came, radial_track, angle_ns, name, surface, direction };
        there.taken |= 1 << seat;
        there.by_angle[(angle_ns >> self.angle_shift) as usize] |= 1 << seat;
        there.by_radius[PARTS + (radial_track >> self.radius_shift) as usize] |= 1 << seat;
        self.came += 1;
    }

    /// Takes away what the caller calls `name`. Panics where it was not added.
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

    /// The name of the place that the head of `actuator` can begin soonest, at `now`.
    #[inline]
    pub fn find(&self, actuator: &Actuator, now: SimTime) -> Option<u32> {
        let rotation = actuator.disk().geometry.rotation_divider();
        let (phase_ns, rotation_ns) = (rotation.remainder(now.0) as u32, rotation.divisor() as u32);
        let head = actuator.radial_track();
        let mut search = Search { places: self, actuator, now, head, phase_ns, rotation_ns, best: Best::NONE };
        self.blocks.iter().for_each(|block| search.look_in(block));
        // What was left out could not be reached as it passes first, but perhaps as it passes next.
        if search.best.begins_ns >= rotation_ns.into() {
            self.blocks.iter().for_each(|block| search.look_at(block, block.taken));
        }
        search.best.name()
    }
}

/// What can be begun soonest, as far as is known.
#[derive(Clone, Copy)]
struct Best {
    /// Counted from now.
    begins_ns: u64,
    came: u64,
    name: u32,
}

impl Best {
    /// Nothing is known.
    const NONE: Best = Best { begins_ns: u64::MAX, came: u64::MAX, name: 0 };

    fn name(&self) -> Option<u32> {
        (self.came != u64::MAX).then_some(self.name)
    }
}

/// A search of the blocks.
struct Search<'a> {
    places: &'a Soonest,
    actuator: &'a Actuator,
    now: SimTime,
    head: u32,
    phase_ns: u32,
    rotation_ns: u32,
    best: Best,
}

impl Search<'_> {
    /// Time until an angle passes, from now.
    #[inline(always)]
    fn until(&self, angle_ns: u32) -> u32 {
        let (until_ns, has_passed) = angle_ns.overflowing_sub(self.phase_ns);
        if has_passed { until_ns.wrapping_add(self.rotation_ns) } else { until_ns }
    }

    /// Looks at what passes within a rotation and may be reached by then. The part that passes now is looked at again in the
    /// end, for some of it has passed.
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

    /// How many parts of a rotation ahead something may begin as soon as the best; one more, for the last part of a rotation may
    /// be short.
    #[inline(always)]
    fn last_part(&self) -> usize {
        let places = self.places;
        let into_part_ns = u64::from(self.phase_ns & ((1 << places.angle_shift) - 1));
        let last = (self.best.begins_ns.saturating_add(into_part_ns) >> places.angle_shift) + 1;
        last.min(places.angle_parts.into()) as usize
    }

    /// Looks at the seats whose bits are set.
    #[inline(always)]
    fn look_at(&mut self, block: &Block, mut seats: u64) {
        while seats != 0 {
            self.see(block.seat(seats.trailing_zeros()));
            seats &= seats - 1;
        }
    }

    #[inline(always)]
    fn see(&mut self, wanted: &Wanted) {
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

    /// When a place can be begun, where the table does not tell.
    #[inline(never)]
    fn computed(&self, wanted: &Wanted, distance: u32) -> u64 {
        let disk = self.actuator.disk();
        let changes_surface = wanted.surface != self.actuator.surface();
        let move_ns = disk.mechanics.move_ns(distance, changes_surface, wanted.direction);
        move_ns + exact::wait_ns(&disk.geometry, self.now.0 + move_ns, wanted.angle_ns)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1. Method: random places on disks with every seek model, some of which fall, against a plain minimum,
    //! while places come and go.

    use super::*;
    use crate::profile::Profile;
    use crate::units::{Pba, SimDuration};
    use proptest::prelude::*;

    const SEEKS: [&str; 4] = [
        "model = \"curve\"\nshort_base_ns = 600000\nshort_root_ns = 18000\nknee_tracks = 3000\nlong_base_ns = 900000\nlong_thousand_tracks_ns = 44500",
        // Falls at the knee.
        "model = \"curve\"\nshort_base_ns = 600000\nshort_root_ns = 90000\nknee_tracks = 5000\nlong_base_ns = 100000\nlong_thousand_tracks_ns = 44500",
        "model = \"linear\"\nmin_ns = 400000\nmax_ns = 15000000",
        "model = \"table\"\npoints = [{ tracks = 1, seek_ns = 900000 }, { tracks = 900, seek_ns = 4000000 }, { tracks = 4000, seek_ns = 700000 }, { tracks = 39000, seek_ns = 9000000 }]",
    ];

    fn disk(seek: &str) -> crate::SharedDisk {
        let text = format!(
            "name = \"drawn\"\nsummary = \"drawn\"\ndefault_layer = \"conventional\"\n[geometry]\nlayout = \"cylinder\"\n\
             surfaces = 4\nrotation_ns = 8333333\ntracks = 40000\ntrack_sectors_od = 2000\ntrack_sectors_id = 1000\nzone_count = 4\n\
             [mechanics]\nsettle_ns = 100000\nwrite_settle_ns = 300000\nhead_switch_ns = 600000\n[mechanics.seek]\n{seek}\n\
             [recording]\nkind = \"conventional\"\n"
        );
        let profile = Profile::parse("drawn.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        profile.disk()
    }

    /// Places, by name, of which `soonest` is told; what it finds must be what a plain minimum finds, whenever it is asked.
    fn assert_finds(soonest: &Soonest, waiting: &[(u32, Place, Direction)], actuator: &Actuator, now: SimTime) {
        let time = |place, direction| actuator.positioning_time(now, place, direction);
        let least = waiting.iter().map(|(name, place, direction)| (time(place, *direction), *name)).min();
        assert_eq!(soonest.find(actuator, now), least.map(|(_, name)| name), "of {waiting:?} at {now:?}");
    }

    /// Goal: a place that has just passed comes last, but is not forgotten: in the same part of the rotation lies another that
    /// is near the head and passes a little later.
    #[test]
    fn what_has_just_passed_comes_a_rotation_later() {
        for seek in SEEKS {
            let disk = disk(seek);
            let (actuator, mut soonest) = (Actuator::new(disk.clone()), Soonest::new(&disk).expect("it is exact"));
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
        ) {
            let disk = disk(SEEKS[seek]);
            let sectors = if near { 3_000_000 } else { disk.geometry.sectors().0 };
            let mut actuator = Actuator::new(disk.clone());
            let extent = crate::Extent::new(Pba(sectors / 3), crate::Sectors(1));
            let purpose = crate::access::Purpose::InPlace;
            actuator.access(SimTime::ZERO, &crate::access::Access { direction: Direction::Read, extent, purpose });
            let (mut soonest, now) = (Soonest::new(&disk).expect("its rotation is exact"), SimTime(now));
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
