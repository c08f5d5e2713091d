//! The identity mapping, shared by the layers that translate nothing: `conventional`, and `caveat`, where the host is
//! responsible for the sectors that its writes destroy. Every logical sector lies at the physical sector of the same
//! number.
//!
//! Does not model: defects, spare sectors. A TRIM is accepted and has no effect, as on a drive that does not implement
//! TRIM.
//!
//! Invariants:
//! 1. LBA n is PBA n.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::{Layer, MapMemory, Piece};
use crate::plan::note::{Note, ReplayError};
use crate::plan::{Cause, GroupKind, Medium, Plan};
use crate::violation::Violation;

/// A layer that maps every logical sector to the physical sector with an equal number.
pub(super) struct Identity {
    info: &'static LayerInfo,
    capacity: Sectors,
}

impl Identity {
    /// Returns the identity layer with the name and the properties of `info`, over the disk of `context`. Its capacity
    /// is that of the whole disk.
    pub(super) fn new(info: &'static LayerInfo, context: &Context) -> Identity {
        Identity { info, capacity: context.disk.geometry.sectors() }
    }
}

impl Layer for Identity {
    fn name(&self) -> &'static str {
        self.info.name
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
        self.info.host_managed
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
