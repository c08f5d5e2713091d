//! `inside-out`: a layer whose addresses begin at the inner diameter, where a disk is slowest. Chunks of sectors lie
//! in reverse order; within a chunk the order is unchanged.
//!
//! Does not model: defects, spare sectors. A TRIM is accepted and has no effect.
//!
//! Invariants:
//! 1. LBA n of chunk c lies in chunk (last - c), at the same place in it.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};
use imbrex_layer::parameters::{ParameterInfo, ParameterKind};
use imbrex_layer::{
    Cause, ConfigError, Context, GroupKind, Layer, LayerInfo, MapMemory, Medium, Note, Piece, Plan, ReplayError,
    Violation,
};

/// Description of the layer, which the program registers.
pub const INFO: LayerInfo = LayerInfo {
    name: "inside-out",
    summary: "addresses begin at the inner diameter, chunk by chunk",
    recordings: &["conventional"],
    host_managed: false,
    mapping_unit: "none",
    source: "an example",
    parameters: &[ParameterInfo {
        key: "chunk_size",
        kind: ParameterKind::Bytes,
        default: "1MiB",
        help: "bytes that stay together",
    }],
    records: &[],
    toys: &["chunk_size=4KiB", "chunk_size=7KiB"],
    build,
};

struct InsideOut {
    chunks: u64,
    chunk_sectors: u64,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let sector_bytes = u64::from(context.disk.sector_bytes);
    let chunk_sectors = context.parameters.bytes("chunk_size") / sector_bytes;
    let chunks = context.disk.geometry.sectors().0.checked_div(chunk_sectors).unwrap_or(0);
    if chunks == 0 {
        return Err(ConfigError(format!(
            "chunk_size: a chunk has at least one sector ({sector_bytes} B) and fits the disk"
        )));
    }
    Ok(Box::new(InsideOut { chunks, chunk_sectors }))
}

impl InsideOut {
    /// Returns the parts of a run of LBAs, each within one chunk: (first LBA, first PBA, number of sectors).
    fn parts(&self, lba: Lba, sectors: u64) -> impl Iterator<Item = (Lba, Pba, Sectors)> + use<> {
        let (chunks, chunk_sectors, end) = (self.chunks, self.chunk_sectors, lba.0 + sectors);
        let mut next = lba.0;
        std::iter::from_fn(move || {
            let (chunk, within) = (next / chunk_sectors, next % chunk_sectors);
            let length = (chunk_sectors - within).min(end.saturating_sub(next));
            let part = (Lba(next), Pba((chunks - 1).saturating_sub(chunk) * chunk_sectors + within), Sectors(length));
            next += length;
            (length > 0).then_some(part)
        })
    }
}

impl Layer for InsideOut {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        Sectors(self.chunks * self.chunk_sectors)
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        plan.open(GroupKind::Host);
        for command in commands {
            for (lba, pba, sectors) in self.parts(command.lba, u64::from(command.sectors)) {
                match command.operation {
                    Operation::Read => plan.read(Cause::Host, pba, lba, sectors),
                    Operation::Write => plan.write(Cause::Host, pba, lba, sectors),
                    Operation::Flush | Operation::Trim => {}
                }
            }
            if command.operation == Operation::Flush {
                plan.barrier();
            }
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        let parts = self.parts(lba, sectors.0);
        pieces.extend(parts.map(|(lba, pba, sectors)| Piece { lba, sectors, at: Some((Medium::Disk, pba)) }));
    }

    fn keeps_trims(&self) -> bool {
        false
    }

    fn self_check(&self) -> Result<(), Violation> {
        Ok(())
    }

    fn memory(&self) -> MapMemory {
        MapMemory::default()
    }

    fn checkpoint(&self, _notes: &mut Vec<Note>) {}

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        Err(ReplayError { note: *note, reason: "this layer keeps no journal".into() })
    }
}
