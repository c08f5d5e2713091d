//! Toys: disks of a few hundred sectors, one or more for each recording, and random commands for them.
//!
//! Small enough that every cut can be tried, and awkward on purpose: tracks of different lengths, several surfaces, and
//! sizes that are no powers of two.

use imbrex_disk::{Command, Lba, Operation, Sectors, SharedDisk};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use crate::layer::Layer;
use crate::plan::Plan;

/// A uniform number below `bound`.
pub fn below(random: &mut impl RngCore, bound: u64) -> u64 {
    // The bias of the plain product is under 2⁻⁴⁰ for the bounds of toys.
    ((random.next_u64() as u128 * bound as u128) >> 64) as u64
}

/// Random commands, with hot places and sequential runs.
#[derive(Clone, Debug)]
pub struct Commands {
    random: Xoshiro256StarStar,
    capacity: u64,
    sectors_max: u64,
    next_sequential: u64,
}

impl Commands {
    /// Commands of up to `sectors_max` sectors below `capacity`.
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

    /// One command.
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

    /// Has `layer` plan something: a phase of background work (no commands), a command, or several that it joins.
    pub fn plan(&mut self, layer: &mut dyn Layer, plan: &mut Plan) -> Vec<Command> {
        plan.clear();
        if layer.background().is_some() && below(&mut self.random, 3) == 0 && layer.idle(plan) {
            return Vec::new();
        }
        let mut commands = vec![self.draw()];
        if layer.can_join() {
            for _ in 0..2 {
                let candidate = self.draw();
                if layer.joins(&commands, &candidate) {
                    commands.push(candidate);
                }
            }
        }
        plan.clear();
        layer.plan(&commands, plan);
        commands
    }
}

/// A toy disk.
#[derive(Clone, Debug)]
pub struct Toy {
    /// Recording and layout, for messages.
    pub name: &'static str,
    /// The disk.
    pub disk: SharedDisk,
}

/// The toy disks of a recording, by its name in profiles.
pub fn disks(recording: &str) -> impl Iterator<Item = Toy> {
    let texts: &'static [(&str, &str)] = match recording {
        "conventional" => &[("conventional cylinders", "kind = 'conventional'")],
        "shingled" => &[
            ("shingled cylinders", "kind = 'shingled'\nhead_tracks = 3\nwidening_sectors = 1"),
            ("shingled strokes", "kind = 'shingled'\nhead_tracks = 2"),
        ],
        "block-interference" => &[("interfering blocks", "kind = 'block-interference'\ninterference_sectors = 6")],
        "caveat" => &[("caveat cylinders", "kind = 'caveat'\ndid = 12\ndnor = 5")],
        "interlaced" => &[("interlaced groups", "kind = 'interlaced'")],
        other => panic!("no toy disk for recording '{other}'"),
    };
    texts.iter().map(|&(name, text)| Toy { name, disk: disk(name, text) })
}

/// The toy disk whose recording is the section `text`.
fn disk(name: &str, text: &str) -> SharedDisk {
    use imbrex_disk::geometry::{Geometry, GeometryConfig, LayoutName};
    use imbrex_disk::mechanics::{Mechanics, MechanicsConfig, Rotation, SeekConfig};
    let mut root = toml::de::DeTable::parse(text).expect("toy");
    let kind = root.get_mut().remove("kind").expect("toy").into_inner();
    let span = root.span();
    let kind = kind.as_str().expect("toy");
    let keys = toml::Spanned::new(span, toml::de::DeValue::Table(root.into_inner()));
    let recording = imbrex_disk::recording::build(kind, keys).expect("toy");
    let mut config = match kind {
        "interlaced" => GeometryConfig::listed(1, LayoutName::BottomThenTop, 1000, &[(48, 10), (32, 8)]),
        "shingled" if name.ends_with("strokes") => {
            GeometryConfig::listed(2, LayoutName::Horizontal, 1000, &[(24, 10), (20, 9), (22, 8)])
        }
        _ => GeometryConfig::listed(2, LayoutName::Cylinder, 1000, &[(24, 10), (20, 9), (22, 8)]),
    };
    if kind == "interlaced" {
        config.interlaced = Some(imbrex_disk::geometry::InterlacedConfig { group_tracks: 6, ..Default::default() });
    }
    let geometry = Geometry::new(&config).expect("toy");
    let seek = SeekConfig::Linear { min_ns: 10, max_ns: 100 };
    let mechanics = Mechanics::new(&MechanicsConfig::plain(seek, Rotation::Exact), &geometry).expect("toy");
    let flash = imbrex_disk::profile::Flash { read_ns: 1, write_ns: 1, bytes_per_second: 1_000_000 };
    std::sync::Arc::new(imbrex_disk::Disk { geometry, mechanics, recording, flash: Some(flash), sector_bytes: 512 })
}
