//! Toys: disks of about a thousand sectors, one or more for each recording, and random commands for them.
//!
//! A toy is small enough to try every power cut, and irregular on purpose: tracks of different lengths, several
//! surfaces, and sizes that are no powers of two.

use imbrex_disk::{Command, Lba, Operation, Profile, Sectors, SharedDisk};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use crate::layer::Layer;
use crate::plan::Plan;

/// Returns a random number from 0 to `bound` − 1, nearly uniformly distributed. Returns 0 if `bound` is 0.
pub fn below(random: &mut impl RngCore, bound: u64) -> u64 {
    // The bias of the plain product is under 2⁻⁴⁰ for the bounds of toys.
    ((random.next_u64() as u128 * bound as u128) >> 64) as u64
}

/// A source of random commands. Some of them go to the first eighth of the sectors, some continue the command before.
#[derive(Clone, Debug)]
pub struct Commands {
    random: Xoshiro256StarStar,
    capacity: u64,
    sectors_max: u64,
    next_sequential: u64,
}

impl Commands {
    /// Returns a source of commands that lie below `capacity` and have 1 to `sectors_max` sectors each, or as many as
    /// `capacity` has. Equal arguments give equal commands.
    ///
    /// # Panics
    ///
    /// If `capacity` or `sectors_max` is 0.
    pub fn new(seed: u64, capacity: Sectors, sectors_max: u32) -> Commands {
        assert!(capacity.0 > 0 && sectors_max > 0, "no sectors to draw from");
        let sectors_max = (sectors_max as u64).min(capacity.0);
        Commands {
            random: Xoshiro256StarStar::seed_from_u64(seed),
            capacity: capacity.0,
            sectors_max,
            next_sequential: 0,
        }
    }

    /// Returns the next random command: most often a write (one in eight with FUA), else a read, a trim or a flush.
    pub fn draw(&mut self) -> Command {
        let sectors = 1 + below(&mut self.random, self.sectors_max);
        let last = self.capacity - sectors;
        let lba = match below(&mut self.random, 8) {
            0..=2 => below(&mut self.random, last / 8 + 1),
            3..=4 => self.next_sequential.min(last),
            _ => below(&mut self.random, last + 1),
        };
        self.next_sequential = if lba + sectors < self.capacity { lba + sectors } else { 0 };
        let operation = match below(&mut self.random, 16) {
            0..=1 => Operation::Read,
            2..=3 => Operation::Trim,
            4 => return Command::flush(),
            _ => Operation::Write,
        };
        let fua = operation == Operation::Write && below(&mut self.random, 8) == 0;
        Command { operation, fua, sectors: sectors as u32, lba: Lba(lba) }
    }

    /// Empties `plan`, makes `layer` plan a piece of work at random, and returns the commands that the plan serves. It
    /// serves no command if it is a phase of background work; otherwise one random command, or up to three that the
    /// layer joins.
    ///
    /// # Panics
    ///
    /// If the layer joins a command outside of the range that [`Layer::joinable`] returned.
    pub fn plan(&mut self, layer: &mut dyn Layer, plan: &mut Plan) -> Vec<Command> {
        plan.clear();
        if layer.background().is_some() && below(&mut self.random, 3) == 0 && layer.idle(plan) {
            return Vec::new();
        }
        let mut commands = vec![self.draw()];
        let joinable = layer.joinable(&commands[0]);
        if !joinable.is_empty() {
            for _ in 0..2 {
                let candidate = self.draw();
                if layer.joins(&commands, &candidate) {
                    assert!(joinable.contains(&candidate.lba), "{candidate:?} joins outside of {joinable:?}");
                    commands.push(candidate);
                }
            }
        }
        plan.clear();
        layer.plan(&commands, plan);
        commands
    }
}

/// A toy disk: a disk of about a thousand sectors, small enough to try every power cut.
#[derive(Clone, Debug)]
pub struct Toy {
    /// A name for messages, with the recording and the layout, such as `shingled strokes`.
    pub name: &'static str,
    /// The profile from which the disk is built. Its default layer is `conventional`.
    pub profile: Profile,
    /// The disk, built from the profile.
    pub disk: SharedDisk,
}

/// Returns the toy disks with a recording, which is given by its name in profiles, such as `shingled`.
///
/// # Panics
///
/// If there is no toy disk with that recording.
pub fn disks(recording: &str) -> impl Iterator<Item = Toy> {
    let of_recording: Vec<_> = TOYS.iter().filter(|(_, _, section)| kind(section) == recording).collect();
    assert!(!of_recording.is_empty(), "no toy disk for recording '{recording}'");
    of_recording.into_iter().map(|(name, geometry, section)| {
        let profile = profile(name, geometry, section);
        Toy { name, disk: profile.disk(), profile }
    })
}

/// Name, geometry and recording of every toy.
const TOYS: &[(&str, &str, &str)] = &[
    ("conventional cylinders", CYLINDERS, "kind = 'conventional'"),
    ("shingled cylinders", CYLINDERS, "kind = 'shingled'\nhead_tracks = 3\nwidening_sectors = 1"),
    ("shingled strokes", STROKES, "kind = 'shingled'\nhead_tracks = 2"),
    ("interfering blocks", CYLINDERS, "kind = 'block-interference'\ninterference_sectors = 6"),
    ("caveat cylinders", CYLINDERS, "kind = 'caveat'\nno_overlap_sectors = 5\nisolation_sectors = 12"),
    ("interlaced groups", GROUPS, "kind = 'interlaced'"),
    ("interlaced equal tracks", EQUAL_GROUPS, "kind = 'interlaced'"),
    ("interlaced surfaces, skewed and slipped", SLIPPED_GROUPS, "kind = 'interlaced'"),
];

const CYLINDERS: &str = "layout = 'cylinder'
surfaces = 2
rotation_ns = 1000
zones = [{ tracks = 24, track_sectors = 10 }, { tracks = 20, track_sectors = 9 }, { tracks = 22, track_sectors = 8 }]";

const STROKES: &str = "layout = 'horizontal'
surfaces = 2
rotation_ns = 1000
zones = [{ tracks = 24, track_sectors = 10 }, { tracks = 20, track_sectors = 9 }, { tracks = 22, track_sectors = 8 }]";

const GROUPS: &str = "layout = 'bottom-then-top'
surfaces = 1
rotation_ns = 1000
zones = [{ tracks = 48, track_sectors = 10 }, { tracks = 32, track_sectors = 8 }]
interlaced = { group_tracks = 6 }";

const EQUAL_GROUPS: &str = "layout = 'bottom-then-top'
surfaces = 1
rotation_ns = 1000
zones = [{ tracks = 64, track_sectors = 10 }]
interlaced = { group_tracks = 6, top_ratio = 1.0 }";

/// A geometry with skews and slips, which shift sectors against their neighbours.
const SLIPPED_GROUPS: &str = "layout = 'bottom-then-top'
surfaces = 2
rotation_ns = 1000
track_skew_ns = 230
head_skew_ns = 70
zones = [{ tracks = 36, track_sectors = 10 }]
interlaced = { group_tracks = 6, order = 'zig-zag' }
slips = { random_tracks = 12, random_sectors_max = 2, seed = 5 }";

fn kind(section: &str) -> &str {
    section.split('\'').nth(1).expect("a toy's recording begins with its kind in quotes")
}

/// Strokes of hundreds of tracks.
#[cfg(test)]
pub(crate) const LONG_STROKES: &str = "tracks = 2400
stroke_tracks_od = 300
stroke_tracks_id = 150
track_sectors_od = 60
track_sectors_id = 30";

/// Returns a disk in strokes that change direction half way to the inner diameter; `tracks` sets the lengths of strokes
/// and tracks.
#[cfg(test)]
pub(crate) fn in_strokes(tracks: &str, recording: &str) -> SharedDisk {
    let geometry =
        format!("layout = 'horizontal'\nsurfaces = 3\nrotation_ns = 10_000_000\nhorizontal.split = 0.5\n{tracks}");
    profile("in strokes", &geometry, recording).disk()
}

fn profile(name: &str, geometry: &str, recording: &str) -> Profile {
    let text = format!(
        "name = 'toy'
summary = '{name}'
default_layer = 'conventional'
flash = {{ read_ns = 1, write_ns = 1, bytes_per_second = 1_000_000 }}
[geometry]
{geometry}
[mechanics]
rotation = 'exact'
seek = {{ model = 'linear', min_ns = 10, max_ns = 100 }}
[recording]
{recording}"
    );
    match Profile::parse(name, &text, &[]) {
        Ok(profile) => profile,
        Err(error) => panic!("the toy '{name}' is refused: {error}"),
    }
}
