//! `s-blocks`: circular buffers with S-blocks (Cassuto 2010 §V). The LBA space is divided into sections. An S-block is
//! a unit of consecutive LBAs that moves as a whole.
//!
//! Each section has a cache buffer, to which host writes are appended, and a buffer of S-blocks. Both buffers are rings
//! with a guard band. Nothing is overwritten in place, so a power cut leaves the old data intact.
//!
//! ```text
//!  host write ─► head of the cache buffer          full? ─► group destage: an S-block and its cached sectors ─► head
//!                      ▲        │                                                          of the S-block buffer
//!                      └ defrag ┘ live sectors at the tail ─► head, until a dead run is passed
//!  stream that begins at an S-block's first LBA ─► straight to a new slot at the head of the S-block buffer
//! ```
//!
//! A read takes each sector from its S-block or from the cache. A trimmed range stays in the map as absent until its
//! S-block is next rewritten.
//!
//! Does not model: background cleaning (the paper has none: room is made when a write needs it), and sections that use
//! each other's free space.
//!
//! Λ is the length of a guard band, and M = payload + Λ the length of a ring, both in sectors.
//!
//! Invariants:
//! 1. In each ring head − tail ≤ payload, so (tail − head) mod M ≥ Λ.
//! 2. Every S-block has exactly one copy in use, in the S-block ring of its section; the slot of that copy names the
//!    S-block.
//! 3. Cached runs of an S-block are disjoint and in order. Each lies whole in one entry of its section's cache ring,
//!    and the entry holds the run's LBAs.
//! 4. The count of live sectors of a section is the sum over its cached runs, and fits in the cache ring.
//! 5. Slots cover the S-block ring, and entries cover the cache ring, from tail to head without a gap.
//! 6. At most one slot of a section is being filled by a stream. That slot is the newest, and is neither empty nor
//!    full.
//! 7. Replaying the records gives the map that planning had.

mod cached;
mod check;
mod cleaning;
mod entries;
mod fitting;
mod host;
mod journal;
mod live;
mod placement;
mod policy;
mod queue;
mod record;
mod ring;
mod shape;
mod slots;
mod state;
#[cfg(test)]
mod tests;

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{GroupKind, Medium, Plan};
use crate::violation::Violation;
use cleaning::Buffer;
use host::RecentEnds;
use placement::RingStarts;
use policy::Policy;
use record::Record;
use ring::{Position, Ring};
use shape::Shape;
use state::{EntryPiece, State};

/// Description of the layer `s-blocks` for the registry: sections of two circular buffers, one that caches writes and
/// one that holds S-blocks, which are moved as a whole.
pub const INFO: LayerInfo = LayerInfo {
    name: "s-blocks",
    summary: "sections of two circular buffers: a cache, and S-blocks that move as a whole",
    recordings: &["conventional", "shingled", "block-interference"],
    host_managed: false,
    mapping_unit: "S-block; cached run",
    source: "Cassuto 2010 §V",
    parameters: PARAMETERS,
    records: &[Record::INFO],
    toys: &[
        "sections=2,sblock_size=2k,sblock_share=20%,cache_share=20%",
        "sections=2,sblock_size=3k,sblock_share=20%,cache_share=20%,policy=most-cached-blocks,extra_destages=1,\
         direct=whole,guard=60k",
    ],
    build,
};

const PARAMETERS: &[ParameterInfo] = &[
    ParameterInfo {
        key: "size",
        kind: ParameterKind::Bytes,
        default: "0",
        help: "payload: native and spare S-blocks and caches, guards apart; 0 is all the disk holds",
    },
    ParameterInfo {
        key: "sblock_share",
        kind: ParameterKind::ShareAboveZero,
        default: "1%",
        help: "share of the payload that is spare S-blocks",
    },
    ParameterInfo {
        key: "cache_share",
        kind: ParameterKind::ShareAboveZero,
        default: "1%",
        help: "share of the payload that is cache buffers",
    },
    ParameterInfo {
        key: "sections",
        kind: ParameterKind::CountFrom(1),
        default: "1500",
        help: "sections: too few make long defrags, too many leave fewer than two spare S-blocks in each",
    },
    ParameterInfo {
        key: "sblock_size",
        kind: ParameterKind::Bytes,
        default: "1024000",
        help: "size of an S-block (2000 blocks of 512 B)",
    },
    ParameterInfo {
        key: "policy",
        kind: ParameterKind::Choice(Policy::NAMES),
        default: "closest-to-tail",
        help: "which S-block to destage",
    },
    ParameterInfo {
        key: "extra_destages",
        kind: ParameterKind::Count,
        default: "0",
        help: "S-blocks destaged before each cache defrag beyond the one that is needed when no sector is dead",
    },
    ParameterInfo {
        key: "direct",
        kind: ParameterKind::Choice(&["off", "whole", "stream"]),
        default: "stream",
        help: "writes that bypass the cache: none, whole S-blocks, or these and streams that reach an S-block's start",
    },
    ParameterInfo {
        key: "guard",
        kind: ParameterKind::Bytes,
        default: "0",
        help: "guard band of each ring; 0 is the least: the interference distance and one S-block",
    },
];

/// Which writes bypass the cache (Cassuto 2010 §V.E): none, whole S-blocks, or whole S-blocks and streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Direct {
    Off,
    Whole,
    Stream,
}

/// The `s-blocks` layer.
struct SBlocks {
    state: State,
    policy: Policy,
    direct: Direct,
    extra_destages: u64,
    recent: RecentEnds,
    /// Pieces that a cache defrag copies. The field is kept between defrags only to reuse its memory.
    copied: Vec<EntryPiece>,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = &context.parameters;
    let (shape, starts) = Shape::of(&context.disk, parameters)?;
    let direct = match parameters.choice("direct") {
        "off" => Direct::Off,
        "whole" => Direct::Whole,
        _ => Direct::Stream,
    };
    let policy = Policy::named(parameters.choice("policy"));
    Ok(Box::new(SBlocks::new(shape, &starts, policy, direct, parameters.count("extra_destages"))))
}

impl SBlocks {
    fn new(shape: Shape, starts: &[RingStarts], policy: Policy, direct: Direct, extra_destages: u64) -> SBlocks {
        let state = State::new(shape, starts);
        SBlocks { state, policy, direct, extra_destages, recent: RecentEnds::default(), copied: Vec::new() }
    }

    fn ring(&self, section: usize, buffer: Buffer) -> &Ring {
        match buffer {
            Buffer::Cache => &self.state.sections[section].cache_ring,
            Buffer::SBlocks => &self.state.sections[section].sblock_ring,
        }
    }

    /// Appends a record to the plan and applies it to the map.
    fn note(&mut self, record: Record, plan: &mut Plan) {
        plan.note(record.encode());
        self.state
            .apply(record)
            .unwrap_or_else(|reason| panic!("a planned record {record:?} does not fit the map: {reason}"));
    }

    /// Appends `record` between two barriers: the data written before are durable before the record, and the record is
    /// durable before later steps. Applies the record to the map.
    fn record(&mut self, record: Record, plan: &mut Plan) {
        plan.barrier();
        self.note(record, plan);
        plan.barrier();
    }

    /// Calls `visit` for each part of a run of LBAs, in order, with its first LBA, its length and its physical sector.
    /// A trimmed part has no physical sector (`None`).
    fn for_each_place(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Lba, Sectors, Option<Pba>)) {
        self.state.split(lba, sectors, |sblock, offset, part| {
            let first = self.state.first_lba(sblock);
            let section = self.state.section_of_sblock(sblock);
            let mut next = offset;
            for run in self.state.cached(section, sblock).within(offset, offset + part) {
                self.place_in_sblock(sblock, next, run.offset, &mut visit);
                let lba = first + run.offset as u64;
                if run.is_absent() {
                    visit(Lba(lba), Sectors(run.sectors as u64), None);
                } else {
                    self.place_in_ring(section, Buffer::Cache, run.position, lba, run.sectors as u64, &mut visit);
                }
                next = run.end();
            }
            self.place_in_sblock(sblock, next, offset + part, &mut visit);
        });
    }

    /// Calls `visit` for the sectors `from..to` of an S-block in its own copies, without the cache. While a stream
    /// fills a new copy, the filled part is read from that copy and the rest from the old one.
    fn place_in_sblock(&self, sblock: u64, from: u32, to: u32, visit: &mut impl FnMut(Lba, Sectors, Option<Pba>)) {
        let (from, to) = (from as u64, to as u64);
        let section = self.state.section_of_sblock(sblock);
        let open = self.state.sections[section].open.filter(|open| open.sblock == sblock);
        let filled = open.map_or(0, |open| open.filled).clamp(from, to.max(from));
        let first = self.state.first_lba(sblock);
        if from < filled {
            let position = self.state.open_position(section).plus(from);
            self.place_in_ring(section, Buffer::SBlocks, position, first + from, filled - from, visit);
        }
        if filled < to {
            let position = self.state.position(sblock).plus(filled);
            self.place_in_ring(section, Buffer::SBlocks, position, first + filled, to - filled, visit);
        }
    }

    fn place_in_ring(
        &self,
        section: usize,
        buffer: Buffer,
        position: Position,
        lba: u64,
        sectors: u64,
        visit: &mut impl FnMut(Lba, Sectors, Option<Pba>),
    ) {
        for (offset, extent) in self.ring(section, buffer).pieces(position, sectors) {
            visit(Lba(lba + offset), extent.sectors, Some(extent.start));
        }
    }
}

impl Layer for SBlocks {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        self.state.shape.capacity()
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
        }
    }

    fn prefetch(&self, lba: Lba, coming: PrefetchHint) {
        self.state.foresee(lba.0, coming);
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.for_each_place(lba, sectors, |lba, sectors, place| {
            pieces.push(Piece { lba, sectors, at: place.map(|pba| (Medium::Disk, pba)) });
        });
    }

    fn keeps_trims(&self) -> bool {
        true
    }

    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        for (number, section) in self.state.sections.iter().enumerate() {
            for (buffer, ring) in [(Buffer::Cache, &section.cache_ring), (Buffer::SBlocks, &section.sblock_ring)] {
                let Cache { medium, start, end, .. } = ring.as_cache();
                each(StoreExtent { area: buffer.area(number), medium, start, end });
            }
        }
    }

    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        self.state.sections.iter().for_each(|section| each(section.cache_ring.as_cache()));
    }

    fn self_check(&self) -> Result<(), Violation> {
        check::check(&self.state)
    }

    fn memory(&self) -> MapMemory {
        let copied = self.copied.capacity() * size_of::<EntryPiece>();
        let measured = self.state.measured_bytes() + copied as u64 + size_of::<SBlocks>() as u64;
        MapMemory { formula_bytes: self.state.shape.formula_bytes(), measured_bytes: measured }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        journal::checkpoint(&self.state, notes);
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        self.state.apply(Record::decode(note)?).map_err(|reason| note.refuse(reason))
    }
}
