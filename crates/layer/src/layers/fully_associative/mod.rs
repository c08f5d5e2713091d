//! `fully-associative`: zones with free bands. Writes to any logical band of a zone are logged in the zone's free
//! bands, and the mapping of logical bands to bands changes over time (Aghayev 2015 §3.1, its Emulated-SMR-3; a variant
//! of the S-blocks of Cassuto 2010 §V).
//!
//! - Write: appended to the zone's log band. A sector that is written again is appended again, and its older copy is dead.
//! - Streams write whole bands straight to a free band, which then becomes the home of the logical band; the old home
//!   is free. If a stream breaks off, the rest of its band is copied from the old home and the log.
//! - Cleaning: the logical bands with live sectors in the zone's oldest log band are merged one by one, each into a
//!   free band, which becomes its home. The old home is then free. A log band is free as soon as it has no live sector.
//! - Cleaning starts when no band beyond the reserve is free; with `cleaning=aggressive` also in idle time.
//! - TRIM: trimmed sectors are recorded as absent, which takes no log space, until a merge writes their logical band anew.
//!
//! Nothing is overwritten in place, so a cut leaves old data whole, and there is nothing to repair.
//!
//! Does not model: zones that lend each other bands; a merge that host commands interrupt.
//!
//! Invariants:
//! 1. Each band of a zone has exactly one use: home of a logical band, log band, band of a stream, or free.
//! 2. Runs are disjoint. Each lies in the filled part of one log band, where it shares no sector with another.
//! 3. The live sectors of a log band are the sum of its runs; a log band without live sectors is free.
//! 4. A logical band has at most one stream, which is neither empty nor full.
//! 5. No logical band before `next_merge` has a run in the oldest log band.
//! 6. A replay of the records yields the map that planning had.

mod check;
mod cleaning;
mod host;
mod record;
mod state;
#[cfg(test)]
mod tests;
mod zone;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Background, Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::{Area, AreaKind};
use crate::plan::{Medium, Plan};
use crate::violation::Violation;
use host::RecentChains;
use record::Record;
use state::State;
use zone::BandZone;

/// Description of the layer `fully-associative` for the registry: zones of bands, whose free bands take the writes to
/// any band of the zone until a merge moves a band to a free one.
pub const INFO: LayerInfo = LayerInfo {
    name: "fully-associative",
    summary: "zones whose free bands take writes of any of their bands; a merge moves a band to a free one",
    recordings: &["shingled", "block-interference", "conventional"],
    host_managed: false,
    mapping_unit: "band; extent of logged sectors",
    source: "Aghayev 2015 §3.1",
    parameters: PARAMETERS,
    records: &[Record::INFO],
    toys: &[
        "band_size=8k,zone_size=64k,log_bands=2",
        "band_size=5k,zone_size=60k,free_share=30%,reserve_bands=2,cleaning=lazy",
        "band_size=6k,zone_size=90k,log_bands=3,direct=off,idle_free=50%",
    ],
    build,
};

const PARAMETERS: &[ParameterInfo] = &[
    ParameterInfo {
        key: "band_size",
        kind: ParameterKind::Bytes,
        default: "20MiB",
        help: "size of a band, its guard not counted; rounded down to whole sectors",
    },
    ParameterInfo {
        key: "zone_size",
        kind: ParameterKind::Bytes,
        default: "40GiB",
        help: "data of a zone: the size of its logical bands; its free bands are additional",
    },
    ParameterInfo {
        key: "free_share",
        kind: ParameterKind::Share,
        default: "5%",
        help: "share of a zone's bands that begin free, for logs, streams and merges",
    },
    ParameterInfo {
        key: "log_bands",
        kind: ParameterKind::Count,
        default: "0",
        help: "free bands of a zone that logs and streams may take, the reserve beside them; 0: by free_share",
    },
    ParameterInfo {
        key: "reserve_bands",
        kind: ParameterKind::CountFrom(1),
        default: "1",
        help: "the threshold: cleaning starts where a log or stream would leave fewer bands free; at least one",
    },
    ParameterInfo {
        key: "direct",
        kind: ParameterKind::Switch,
        default: "on",
        help: "whether streams write whole bands directly",
    },
    ParameterInfo {
        key: "cleaning",
        kind: ParameterKind::Choice(&["aggressive", "lazy"]),
        default: "aggressive",
        help: "aggressive: in idle time too; lazy: only when no band is free but the reserve",
    },
    ParameterInfo {
        key: "idle_free",
        kind: ParameterKind::Share,
        default: "100%",
        help: "aggressive cleaning goes on until this share of a zone's free bands is free again",
    },
    ParameterInfo {
        key: "idle_after",
        kind: ParameterKind::Duration,
        default: "1s",
        help: "time without host commands after which aggressive cleaning starts",
    },
];

/// The `fully-associative` layer.
struct FullyAssociative {
    state: State,
    reserve: usize,
    direct: bool,
    aggressive: bool,
    idle_free: f64,
    idle_after: SimDuration,
    recent: RecentChains,
    /// Records of appends that are planned and applied to the map. They enter the plan after a barrier that follows
    /// their data.
    appended: Vec<Note>,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = &context.parameters;
    let reserve = state::reserve(parameters);
    if reserve == 0 || reserve > u32::MAX as u64 {
        return Err(ConfigError(format!("reserve_bands={reserve}: expected 1 or more, for merges")));
    }
    Ok(Box::new(FullyAssociative {
        state: State::new(&context.disk, parameters)?,
        reserve: reserve as usize,
        direct: parameters.switch("direct"),
        aggressive: parameters.choice("cleaning") == "aggressive",
        idle_free: parameters.share("idle_free"),
        idle_after: SimDuration(parameters.duration_ns("idle_after")),
        recent: RecentChains::default(),
        appended: Vec::new(),
    }))
}

impl FullyAssociative {
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

    /// Appends a record to the plan and applies the record to the map.
    fn note(&mut self, record: Record, plan: &mut Plan) {
        self.apply(record);
        plan.note(record.encode());
    }
}

impl Layer for FullyAssociative {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.state.capacity)
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        for command in commands {
            match command.operation {
                Operation::Read => self.plan_read(command, plan),
                Operation::Write => self.plan_write(command, plan),
                Operation::Trim => self.plan_trim(command, plan),
                Operation::Flush => {
                    Self::open_host(plan);
                    plan.barrier();
                }
            }
        }
    }

    fn background(&self) -> Option<Background> {
        self.aggressive.then_some(Background { idle_after: self.idle_after, rest: SimDuration::ZERO })
    }

    fn idle(&mut self, plan: &mut Plan) -> bool {
        self.aggressive && self.clean_idly(plan)
    }

    fn prefetch(&self, lba: Lba, coming: PrefetchHint) {
        if lba.0 < self.state.capacity {
            let part = self.state.part(lba.0, lba.0 + 1);
            self.state.zones[part.zone].runs[part.logical as usize].foresee(coming);
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
        self.state.zones.iter().enumerate().try_for_each(|(index, zone)| check::check_zone(index, zone))
    }

    /// Returns the size of the map in bytes. The paper gives no formula; ours has, for each logical band, its home, and
    /// for each block of 4 KiB of the log, the number of the zone's block that it holds.
    fn memory(&self) -> MapMemory {
        let sectors_per_block = (4096 / self.state.sector_bytes).max(1);
        let formula_bits = |zone: &BandZone| {
            let bands = zone.live.len() as u64;
            let data = zone.homes.len() as u64;
            let blocks = |bands: u64| bands * self.state.band_sectors / sectors_per_block;
            let log_bands = bands - data - self.reserve as u64;
            data * bits_for(bands) + blocks(log_bands) * bits_for(blocks(data))
        };
        let zones: u64 = self.state.zones.iter().map(BandZone::measured_bytes).sum();
        MapMemory {
            formula_bytes: self.state.zones.iter().map(formula_bits).sum::<u64>().div_ceil(8),
            measured_bytes: zones + self.state.bands.measured_bytes() + std::mem::size_of::<FullyAssociative>() as u64,
        }
    }

    /// Calls `each` with every band: any of them may be in the log of its zone, or free.
    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        let state = &self.state;
        for (index, zone) in state.zones.iter().enumerate() {
            for band in 0..zone.live.len() as u32 {
                let start = state.bands.extent(state.band_number(index, band) as usize).start;
                let (area, end) = (Area::new(AreaKind::Zone, index), start + Sectors(state.band_sectors));
                each(StoreExtent { area, medium: Medium::Disk, start, end });
            }
        }
    }

    /// Calls `each` with the log bands, and with the free bands, which may become log bands.
    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        let state = &self.state;
        let size = Sectors(state.band_sectors);
        for (index, zone) in state.zones.iter().enumerate() {
            let mut give = |band: u32, used: Sectors| {
                let start = state.bands.extent(state.band_number(index, band) as usize).start;
                each(Cache { medium: Medium::Disk, start, end: start + size, used, size });
            };
            for (age, &band) in zone.logs.iter().rev().enumerate() {
                give(band, if age == 0 { Sectors(u64::from(zone.head)) } else { size });
            }
            zone.free.iter().for_each(|&band| give(band, Sectors::ZERO));
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        self.state.checkpoint(notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.state.apply(Record::decode(note)?).map_err(|reason| note.refuse(reason))
    }
}

/// Returns the number of bits that distinguish `count` values.
fn bits_for(count: u64) -> u64 {
    (64 - count.saturating_sub(1).leading_zeros()) as u64
}
