//! `caveat`: the identity on a caveat disk (Singh 2014 §3.2). Every logical sector lies at the physical sector of the same
//! number; what a write damages is the business of the host, who was told DID and DNOR.
//!
//! Does not model: a translation, spare sectors. A TRIM is accepted and forgotten.
//!
//! Invariants:
//! 1. LBA n is PBA n.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};

use crate::layer::{Layer, MapMemory, Piece, Violation};
use crate::note::{Note, ReplayError};
use crate::parameters::ConfigError;
use crate::plan::{Cause, GroupKind, Medium, Plan};
use crate::registry::{Context, LayerInfo};

/// Its line in the registry.
pub const INFO: LayerInfo = LayerInfo {
    name: "caveat",
    summary: "identity mapping: the host keeps clear of what a write damages, by DID and DNOR",
    recordings: &["caveat"],
    host_managed: true,
    mapping_unit: "none",
    source: "Singh 2014 §3.2, §4.2",
    parameters: &[],
    toys: &[""],
    build,
};

/// The identity layer of a caveat disk.
struct Caveat {
    capacity: Sectors,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    Ok(Box::new(Caveat { capacity: context.disk.geometry.sectors() }))
}

impl Layer for Caveat {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn capacity(&self) -> Sectors {
        self.capacity
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        plan.open(GroupKind::Host);
        for command in commands {
            let sectors = Sectors(command.sectors as u64);
            match command.operation {
                Operation::Read => plan.read(Cause::Host, Pba(command.lba.0), command.lba, sectors),
                Operation::Write => plan.write(Cause::Host, Pba(command.lba.0), command.lba, sectors),
                Operation::Flush => plan.barrier(),
                Operation::Trim => {}
            }
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        pieces.push(Piece { lba, sectors, at: Some((Medium::Disk, Pba(lba.0))) });
    }

    fn is_host_managed(&self) -> bool {
        true
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
