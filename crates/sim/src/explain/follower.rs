//! Follows the operations of a run: the host's writes fill the stores of the layer, and the layer's own work relieves them.

use imbrex_disk::Command;
use imbrex_layer::{Cause, GroupKind, Kind, Layer, Reason, Step, StepOp};

use super::fills::{Fills, RANGES, Written};
use crate::operation::Operation;

/// The request that wrote a command's sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    pub request: u64,
    pub device: u32,
}

/// A phase of the layer's own work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnPhase {
    /// Index of the phase in the plan.
    pub phase: u32,
    /// Number of the piece of work that the phase belongs to, counted from 1.
    pub event: u64,
    pub reason: Option<Reason>,
    /// Number of the fill that made the work necessary.
    pub fill: Option<u64>,
}

/// The stores of a layer, and the last piece of its own work.
#[derive(Debug)]
pub(crate) struct Follower {
    fills: Fills,
    events: u64,
    last_fill: Option<u64>,
    /// Length of one of the [`RANGES`] parts of the address space.
    range_sectors: u64,
}

impl Follower {
    /// Creates a follower of a run on a drive with this layer. `addressed_sectors` is the part of the drive, from the first
    /// sector on, that is divided into [`RANGES`] parts.
    pub(crate) fn new(layer: &dyn Layer, addressed_sectors: u64) -> Follower {
        let range_sectors = addressed_sectors.div_ceil(RANGES as u64).max(1);
        Follower { fills: Fills::new(layer), events: 0, last_fill: None, range_sectors }
    }

    pub(crate) fn range_sectors(&self) -> u64 {
        self.range_sectors
    }

    pub(crate) fn fills(&self) -> &Fills {
        &self.fills
    }

    /// Returns the part of the address space in which a sector lies.
    pub(crate) fn range_of(&self, lba: imbrex_disk::Lba) -> usize {
        ((lba.0 / self.range_sectors) as usize).min(RANGES - 1)
    }

    /// Takes the phases of an operation in order. `writer_of` returns the writer of the command with an index, and
    /// `own_work` receives each phase of the layer's own work.
    pub(crate) fn take(
        &mut self,
        operation: &Operation<'_>,
        writer_of: impl Fn(usize) -> Option<Writer>,
        mut own_work: impl FnMut(OwnPhase, &Fills),
    ) {
        let plan = operation.plan;
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.kind == GroupKind::Host {
                if self.fills.is_idle() {
                    continue;
                }
                for step in plan.steps_of(index) {
                    if step.op == StepOp::Write && step.kind == Kind::Data && step.cause == Cause::Host {
                        self.fill(operation.commands, step, &writer_of);
                    }
                }
                continue;
            }
            if phase.opens_group {
                self.events += 1;
                self.last_fill = self.fills.relieve(phase.reason.and_then(|reason| reason.store));
            }
            let (event, reason, fill) = (self.events, phase.reason, self.last_fill);
            own_work(OwnPhase { phase: index as u32, event, reason, fill }, &self.fills);
        }
    }

    fn fill(&mut self, commands: &[Command], step: &Step, writer_of: impl Fn(usize) -> Option<Writer>) {
        let covers = |command: &Command| command.lba <= step.lba && step.lba < command.end();
        let Some(writer) = writer_of(commands.iter().position(covers).unwrap_or(0)) else { return };
        let (range, sectors) = (self.range_of(step.lba), u64::from(step.sectors));
        let written = Written { request: writer.request, device: writer.device, range, lba: step.lba, sectors };
        self.fills.write(step.medium, step.pba, &written);
    }
}
