//! `log-structured`: every write is appended to an open zone, and a map of blocks gives the place of the newest copy.
//! Cleaning moves the live blocks out of a zone, which is then used again. This is the indirection of Cassuto 2010 §III
//! applied to the whole drive: the standard for comparison with other layers, at the price of the map.
//!
//! ```text
//!   free ──► open for a stream ──► closed ──► free   as soon as nothing in it is live
//!                 ▲                   │
//!                 └─── live blocks ───┘ cleaning: in the foreground when one zone is free, in idle time sooner
//! ```
//!
//! - Streams: host writes that replace recently written data (hot), other host writes, and blocks moved by cleaning,
//!   each in a zone of its own.
//! - Victims: the zone with the fewest live blocks (greedy), or the one that gains the most space for its cost,
//!   weighted by age (cost-benefit).
//! - TRIM: trimmed blocks are recorded as absent. If a block is written or trimmed in part, the rest of the block is
//!   read and the block is written.
//!
//! Nothing is overwritten in place, so a cut leaves old data whole, and there is nothing to repair.
//!
//! Does not model: the journal's own place on the medium; a map that does not fit into the controller's memory.
//!
//! Invariants:
//! 1. No two blocks share a place. A zone's live blocks are those that the map has in the zone.
//! 2. Every live block is in its zone's summary, at its place; the summary reaches as far as the zone is filled.
//! 3. A closed zone has live blocks; free zones are those listed; open ones are those of the streams, and not full.
//! 4. If at most one zone is free, some closed zone has a dead block, because the reserve has more zones than can be open.
//! 5. A replay of the records yields the map that planning had.

mod check;
mod checkpoint;
mod chunk;
mod cleaning;
mod host;
mod record;
mod state;
mod summary;
#[cfg(test)]
mod tests;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Background, Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind, Parameters};
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::{Area, AreaKind};
use crate::plan::{GroupKind, Medium, Plan};
use crate::region::{RegionSize, Regions, check_count};
use crate::violation::Violation;
use record::Record;
use state::{Placed, State, Stream};

/// Description of the layer `log-structured` for the registry: all writes are appended to open zones, and cleaning
/// moves live blocks out of old zones.
pub const INFO: LayerInfo = LayerInfo {
    name: "log-structured",
    summary: "all writes are appended to open zones; cleaning moves live blocks out of old zones",
    recordings: &["shingled", "block-interference", "conventional"],
    host_managed: false,
    mapping_unit: "block",
    source: "Cassuto 2010 §III, taken whole; cleaning policies as Rosenblum and Ousterhout 1992",
    parameters: PARAMETERS,
    records: &[Record::INFO],
    toys: &[
        "zone_size=16k,block=1k,reserve=20%,clean_step=2k",
        "zone_size=20k,block=2k,reserve=7%,cleaning=cost-benefit,streams=host-cleaned,fill=empty,clean_step=6k",
        "zone_size=8k,block=512,reserve=15%,streams=one,idle_free=100%,hot_age=2%,clean_step=64k",
    ],
    build,
};

const PARAMETERS: &[ParameterInfo] = &[
    ParameterInfo {
        key: "zone_size",
        kind: ParameterKind::Bytes,
        default: "256MiB",
        help: "size of a zone, its guard not counted; rounded down to whole blocks",
    },
    ParameterInfo {
        key: "block",
        kind: ParameterKind::Bytes,
        default: "4096",
        help: "block size of the map, a multiple of the sector size",
    },
    ParameterInfo {
        key: "reserve",
        kind: ParameterKind::Share,
        default: "7%",
        help: "share of the zones that the host does not see; two more than there are streams, at least",
    },
    ParameterInfo {
        key: "fill",
        kind: ParameterKind::Choice(&["full", "empty"]),
        default: "full",
        help: "contents of a new drive: every block, written in order, or none",
    },
    ParameterInfo {
        key: "cleaning",
        kind: ParameterKind::Choice(&["greedy", "cost-benefit"]),
        default: "greedy",
        help: "which zone is cleaned: the one with the fewest live blocks, or age weighs too",
    },
    ParameterInfo {
        key: "streams",
        kind: ParameterKind::Choice(&["one", "host-cleaned", "hot-cold"]),
        default: "hot-cold",
        help: "open zones: one, one each for the host and for cleaning, or also the host's hot and cold writes apart",
    },
    ParameterInfo {
        key: "hot_age",
        kind: ParameterKind::Share,
        default: "10%",
        help: "a write is hot if it hides a block written less than this share of the drive's blocks before",
    },
    ParameterInfo {
        key: "clean_step",
        kind: ParameterKind::Bytes,
        default: "4MiB",
        help: "bytes that cleaning moves at once; a host command waits for one such step at most in idle time",
    },
    ParameterInfo {
        key: "idle_free",
        kind: ParameterKind::Share,
        default: "50%",
        help: "idle cleaning goes on until this share of the reserve's zones is free; 0: none in idle time",
    },
    ParameterInfo {
        key: "idle_after",
        kind: ParameterKind::Duration,
        default: "1s",
        help: "time without host commands after which cleaning starts",
    },
];

/// Number of free zones that only cleaning may take.
const RESERVE_FOR_CLEANING: usize = 1;

/// Choice of the zone to clean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Policy {
    Greedy,
    CostBenefit,
}

/// The `log-structured` layer.
struct LogStructured {
    state: State,
    policy: Policy,
    /// Whether hot writes have a zone of their own.
    hot: bool,
    hot_blocks: u64,
    /// Stream of the blocks that cleaning moves.
    cleaned: Stream,
    step_blocks: u32,
    idle_zones: usize,
    idle_after: SimDuration,
    /// Records of appends that are planned and applied to the map. They enter the plan after a barrier that follows
    /// their data.
    appended: Vec<Note>,
    /// Blocks moved by a step of cleaning; empty between steps, and kept only to reuse its buffer.
    moves: Vec<Placed>,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = &context.parameters;
    let sector_bytes = context.disk.sector_bytes as u64;
    let block_bytes = parameters.bytes("block");
    if block_bytes == 0 || !block_bytes.is_multiple_of(sector_bytes) {
        return Err(ConfigError(format!("block={block_bytes}: expected a multiple of the sector of {sector_bytes} B")));
    }
    let zone_blocks = parameters.bytes("zone_size") / block_bytes;
    let zone_sectors = zone_blocks.saturating_mul(block_bytes / sector_bytes);
    if zone_blocks == 0 || zone_sectors > u32::MAX as u64 {
        return Err(ConfigError(format!(
            "zone_size: a zone of {zone_blocks} blocks; expected 1 or more, up to 2³² sectors"
        )));
    }
    check_count(&context.disk, "zone_size", Sectors(zone_sectors))?;
    let regions = Regions::carve(&context.disk, RegionSize::Sectors(Sectors(zone_sectors)));
    if regions.len() as u64 * zone_blocks > u32::MAX as u64 - 1 {
        return Err(ConfigError(format!("block={block_bytes}: more than 2³² blocks on this drive; make them larger")));
    }
    let (hot, cleaned, streams) = match parameters.choice("streams") {
        "one" => (false, Stream::Host, 1),
        "host-cleaned" => (false, Stream::Cleaned, 2),
        _ => (true, Stream::Cleaned, 3),
    };
    let reserve = reserve_zones(parameters, regions.len(), streams)?;
    let data_zones = regions.len() - reserve;
    let hot_blocks = (parameters.share("hot_age") * (data_zones as u64 * zone_blocks) as f64) as u64;
    let full = parameters.choice("fill") == "full";
    Ok(Box::new(LogStructured {
        // The clock begins at `hot_blocks`, so that no block written at the factory counts as hot.
        state: State::new(regions, block_bytes / sector_bytes, data_zones, full, hot_blocks),
        policy: if parameters.choice("cleaning") == "greedy" { Policy::Greedy } else { Policy::CostBenefit },
        hot,
        hot_blocks,
        cleaned,
        step_blocks: (parameters.bytes("clean_step") / block_bytes).clamp(1, zone_blocks) as u32,
        idle_zones: (parameters.share("idle_free") * reserve as f64).floor() as usize,
        idle_after: SimDuration(parameters.duration_ns("idle_after")),
        appended: Vec::new(),
        moves: Vec::new(),
    }))
}

/// Returns the number of zones that the host does not see. With a zone open for every stream, and one free for
/// cleaning, the reserve must have one zone more, so that cleaning can gain one.
///
/// # Errors
///
/// Fails if the reserve leaves no zone for data.
fn reserve_zones(parameters: &Parameters, zones: usize, streams: usize) -> Result<usize, ConfigError> {
    let share = parameters.share("reserve");
    let reserve = ((share * zones as f64).ceil() as usize).max(streams + 1 + RESERVE_FOR_CLEANING);
    if reserve >= zones {
        return Err(ConfigError(format!(
            "{reserve} zones in reserve out of {zones}: make zone_size or reserve smaller"
        )));
    }
    Ok(reserve)
}

impl LogStructured {
    /// Applies a record made by planning to the map.
    ///
    /// # Panics
    ///
    /// Panics if the record does not fit the map.
    fn apply(&mut self, record: Record) {
        self.state
            .apply(record)
            .unwrap_or_else(|reason| panic!("a planned record {record:?} does not fit the map: {reason}"));
    }
}

impl Layer for LogStructured {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.state.blocks as u64 * self.state.block_sectors)
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        for command in commands {
            match command.operation {
                Operation::Read => self.plan_read(command, plan),
                Operation::Write => self.plan_write(command, plan),
                Operation::Trim => self.plan_trim(command, plan),
                Operation::Flush => {
                    plan.open(GroupKind::Host);
                    plan.barrier();
                }
            }
            self.record_appends(plan);
        }
    }

    fn background(&self) -> Option<Background> {
        (self.idle_zones > 0).then_some(Background { idle_after: self.idle_after, rest: SimDuration::ZERO })
    }

    fn idle(&mut self, plan: &mut Plan) -> bool {
        self.clean_idly(plan)
    }

    fn prefetch(&self, lba: Lba, coming: PrefetchHint) {
        let (block, size) = (lba.0 / self.state.block_sectors, u64::from(chunk::CHUNK_BLOCKS));
        if block < u64::from(self.state.blocks)
            && let Some(chunk) = self.state.chunks.get((block / size) as usize)
        {
            chunk.prefetch((block % size) as u32, coming);
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.state.for_each_piece(lba, sectors, |lba, sectors, pba| {
            pieces.push(Piece { lba, sectors, at: pba.map(|pba| (Medium::Disk, pba)) });
        });
    }

    fn keeps_trims(&self) -> bool {
        true
    }

    fn self_check(&self) -> Result<(), Violation> {
        check::check(&self.state)
    }

    /// Returns the size of the map in bytes. The formula is ours: a place for each block of the host.
    fn memory(&self) -> MapMemory {
        let places = self.state.zones.len() as u64 * self.state.zone_blocks as u64;
        let bits = (64 - places.saturating_sub(1).leading_zeros()) as u64;
        let moves = self.moves.capacity() * std::mem::size_of::<Placed>();
        MapMemory {
            formula_bytes: (self.state.blocks as u64 * bits).div_ceil(8),
            measured_bytes: self.state.measured_bytes() + (moves + std::mem::size_of::<LogStructured>()) as u64,
        }
    }

    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        self.caches(&mut |Cache { medium, start, end, .. }| {
            each(StoreExtent { area: Area::new(AreaKind::Log, 0), medium, start, end });
        });
    }

    /// Calls `each` with every zone, because the whole drive is a log. A zone is in use as far as it was written since
    /// it was last free.
    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        let (regions, block_sectors) = (&self.state.regions, self.state.block_sectors);
        for (index, zone) in self.state.zones.iter().enumerate() {
            let (start, size) =
                (regions.extent(index).start, Sectors(u64::from(self.state.zone_blocks) * block_sectors));
            let used = Sectors(u64::from(zone.fill) * block_sectors);
            each(Cache { medium: Medium::Disk, start, end: start + size, used, size });
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.state.checkpoint(notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.state.apply(Record::decode(note)?).map_err(|reason| note.refuse(reason))
    }
}
