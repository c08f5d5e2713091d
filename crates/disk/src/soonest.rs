//! Places that the head is wanted at, and which of them it can begin soonest: what a scheduler by positioning time asks for
//! each command that it serves.
//!
//! The places are kept by track, and are looked at from the head outwards on both sides. The seek to a place is known at
//! least by its distance, from a small table; what is left until its sector passes follows. Where even that is later than the
//! best so far, the place needs no closer look, and where the seek alone is, none that lies farther does.
//!
//! Invariants:
//! 1. What is found is what [`Actuator::positioning_time`] is least for, whatever the seek model; of equals the oldest.
//! 2. The table says no more of any distance than a seek over it, or over any farther, takes.

use crate::actuator::Actuator;
use crate::geometry::Place;
use crate::mechanics::{Mechanics, Rotation, exact};
use crate::units::SimTime;
use crate::{Direction, Disk};

/// Distances of the table, at most.
const DISTANCES: u32 = 1024;

/// The least time that the arm needs to a distance, and to all beyond it.
#[derive(Clone, Debug)]
struct LeastSeeks {
    /// For the distances from `index << shift` on, nanoseconds.
    least_ns: Vec<u64>,
    shift: u32,
}

impl LeastSeeks {
    fn new(mechanics: &Mechanics, tracks: u32) -> LeastSeeks {
        let shift = (0..32).find(|shift| tracks >> shift < DISTANCES).expect("32 bits shifted by 31 are few");
        let mut least_ns = vec![u64::MAX; (tracks >> shift) as usize + 1];
        for distance in (0..tracks).rev() {
            let seek_ns = mechanics.seek(distance).0;
            let entry = (distance >> shift) as usize;
            let beyond = least_ns.get(entry + 1).copied().unwrap_or(u64::MAX);
            least_ns[entry] = least_ns[entry].min(seek_ns).min(beyond);
        }
        LeastSeeks { least_ns, shift }
    }
}

/// A place, by what the search needs of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wanted {
    radial_track: u32,
    name: u32,
    angle_ns: u32,
    surface: u8,
    direction: Direction,
}

/// Places that the head is wanted at.
#[derive(Clone, Debug)]
pub struct Soonest {
    /// By track.
    wanted: Vec<Wanted>,
    /// Of each name when its place came: those that came before have a lower number.
    ages: Vec<u64>,
    seeks: LeastSeeks,
    came: u64,
}

impl Soonest {
    /// For places on `disk`; none where its rotation is not exact, since there a seek says too little of the rest.
    pub fn new(disk: &Disk) -> Option<Soonest> {
        let is_exact = disk.mechanics.rotation() == Rotation::Exact;
        let seeks = is_exact.then(|| LeastSeeks::new(&disk.mechanics, disk.geometry.radial_tracks()))?;
        Some(Soonest { wanted: Vec::new(), ages: Vec::new(), seeks, came: 0 })
    }

    /// Adds the place of what the caller calls `name`, younger than all before it. Names are small numbers, none of two places.
    #[inline]
    pub fn add(&mut self, name: u32, place: &Place, direction: Direction) {
        let &Place { radial_track, surface, angle_ns, .. } = place;
        let index = self.wanted.partition_point(|wanted| wanted.radial_track < radial_track);
        self.wanted.insert(index, Wanted { radial_track, name, angle_ns, surface, direction });
        if self.ages.len() <= name as usize {
            self.ages.resize(name as usize + 1, 0);
        }
        self.ages[name as usize] = self.came;
        self.came += 1;
    }

    /// Takes away what the caller calls `name`, at `place`. Panics where it was not added.
    #[inline]
    pub fn remove(&mut self, name: u32, place: &Place) {
        let first = self.wanted.partition_point(|wanted| wanted.radial_track < place.radial_track);
        let beside = self.wanted[first..].iter().position(|wanted| wanted.name == name);
        self.wanted.remove(first + beside.expect("a place that is removed was added"));
    }

    /// The name of the place that the head of `actuator` can begin soonest, at `now`.
    #[inline]
    pub fn find(&self, actuator: &Actuator, now: SimTime) -> Option<u32> {
        let head = actuator.radial_track();
        let start = self.wanted.partition_point(|wanted| wanted.radial_track < head);
        let mut search = Search { actuator, now, ages: &self.ages, best: None };
        let (mut below, mut above) = (start, start);
        loop {
            let down = below.checked_sub(1).map(|index| head - self.wanted[index].radial_track);
            let up = self.wanted.get(above).map(|wanted| wanted.radial_track - head);
            let (distance, index) = match (down, up) {
                (Some(down), up) if up.is_none_or(|up| down < up) => {
                    below -= 1;
                    (down, below)
                }
                (_, Some(up)) => {
                    above += 1;
                    (up, above - 1)
                }
                (_, None) => break,
            };
            let seek_ns = self.seeks.least_ns[(distance >> self.seeks.shift) as usize];
            if search.is_too_late(seek_ns) {
                break;
            }
            search.see(&self.wanted[index], distance >> self.seeks.shift > 0, seek_ns);
        }
        search.best.map(|(_, name)| name)
    }
}

/// The soonest so far: when it begins, and its name.
struct Search<'a> {
    actuator: &'a Actuator,
    now: SimTime,
    ages: &'a [u64],
    best: Option<(u64, u32)>,
}

impl Search<'_> {
    #[inline]
    fn is_too_late(&self, ns: u64) -> bool {
        self.best.is_some_and(|(best, _)| ns > best)
    }

    #[inline]
    fn see(&mut self, wanted: &Wanted, is_far: bool, seek_ns: u64) {
        let disk = self.actuator.disk();
        let wait_ns = |move_ns| exact::wait_ns(&disk.geometry, self.now.0 + move_ns, wanted.angle_ns);
        // A pass is caught no sooner by an arm that comes later. Near the head a change of heads may be all there is.
        if is_far && self.is_too_late(seek_ns + wait_ns(seek_ns)) {
            return;
        }
        let distance = wanted.radial_track.abs_diff(self.actuator.radial_track());
        let changes_surface = wanted.surface != self.actuator.surface();
        let move_ns = disk.mechanics.move_ns(distance, changes_surface, wanted.direction);
        let found = move_ns + wait_ns(move_ns);
        let is_older = |name: u32| self.ages[wanted.name as usize] < self.ages[name as usize];
        if self.best.is_none_or(|(best, name)| found < best || found == best && is_older(name)) {
            self.best = Some((found, wanted.name));
        }
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

    proptest! {
        #[test]
        fn finds_what_a_plain_minimum_finds(
            picks in prop::collection::vec((0.0f64..1.0, any::<bool>(), 0u32..4), 1..96),
            near in any::<bool>(),
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
            for (name, (share, is_read, leaves)) in picks.into_iter().enumerate() {
                let place = disk.geometry.locate(Pba((share * (sectors - 1) as f64) as u64));
                let direction = if is_read { Direction::Read } else { Direction::Write };
                soonest.add(name as u32, &place, direction);
                waiting.push((name as u32, place, direction));
                let times = waiting.iter().map(|(name, place, direction)| (actuator.positioning_time(now, place, *direction), *name));
                let least: Option<(SimDuration, u32)> = times.min();
                prop_assert_eq!(soonest.find(&actuator, now), least.map(|(_, name)| name));
                if leaves == 0 {
                    let (name, place, _) = waiting.remove(waiting.len() / 2);
                    soonest.remove(name, &place);
                }
            }
        }
    }
}
