//! A naive medium with one cell for each sector. It executes a plan step by step, as the plan's definition says, and a
//! write destroys the cells after it. The test fails if a destroyed cell is read, or if one LBA is staged from
//! another's cell.

use std::collections::BTreeMap;

use crate::plan::note::Note;
use crate::plan::{GroupKind, Plan, Step, StepOp};

/// Contents of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    /// Never written.
    Never,
    /// A version of an LBA.
    Holds { lba: u64, version: u64 },
    /// Zeros, written where an LBA was trimmed.
    Zeros,
    /// Destroyed by a write.
    Destroyed,
}

/// The medium and its journal.
#[derive(Clone)]
pub(super) struct Medium {
    pub cells: Vec<Cell>,
    interference: u64,
    staged: BTreeMap<u64, Cell>,
    pub durable: Vec<Note>,
    pub pending: Vec<Note>,
}

impl Medium {
    pub(super) fn new(sectors: u64, interference: u64) -> Medium {
        let cells = vec![Cell::Never; sectors as usize];
        Medium { cells, interference, staged: BTreeMap::new(), durable: Vec::new(), pending: Vec::new() }
    }

    /// Executes `plan`, in which the host writes `version` of the LBAs `host`. Calls `between` before each step, with
    /// the medium and that step.
    pub(super) fn run(&mut self, plan: &Plan, host: &[u64], version: u64, mut between: impl FnMut(&Medium, &Step)) {
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.opens_group {
                self.staged.clear();
            }
            for step in plan.steps_of(index) {
                between(self, step);
                self.step(plan, phase.kind, step, host, version);
            }
        }
    }

    fn step(&mut self, plan: &Plan, kind: GroupKind, step: &Step, host: &[u64], version: u64) {
        match step.op {
            StepOp::Read => self.read(step),
            StepOp::Write => self.write(step, kind, host, version),
            StepOp::Drop => (0..step.sectors as u64).for_each(|i| {
                self.staged.insert(step.lba.0 + i, Cell::Zeros);
            }),
            StepOp::Note => self.pending.push(*plan.note_of(step)),
            StepOp::Barrier => self.durable.append(&mut self.pending),
        }
    }

    fn read(&mut self, step: &Step) {
        for i in 0..step.sectors as u64 {
            let (lba, cell) = (step.lba.0 + i, self.cells[(step.pba.0 + i) as usize]);
            assert_ne!(cell, Cell::Destroyed, "{step:?} reads a destroyed sector");
            if let Cell::Holds { lba: held, .. } = cell {
                assert_eq!(held, lba, "{step:?} reads another LBA");
            }
            self.staged.insert(lba, cell);
        }
    }

    fn write(&mut self, step: &Step, kind: GroupKind, host: &[u64], version: u64) {
        for i in 0..step.sectors as u64 {
            let lba = step.lba.0 + i;
            let ours = kind == GroupKind::Host && host.contains(&lba);
            let staged = || self.staged.get(&lba).copied().unwrap_or(Cell::Zeros);
            self.cells[(step.pba.0 + i) as usize] = if ours { Cell::Holds { lba, version } } else { staged() };
        }
        self.destroy(step.pba.0 + step.sectors as u64, self.interference);
    }

    /// Returns the worst medium that a power cut in the middle of `step` can leave: the sectors that the step writes,
    /// and those that the write destroys, are lost.
    pub(super) fn torn(&self, step: &Step) -> Medium {
        let mut torn = self.clone();
        if step.op == StepOp::Write {
            torn.destroy(step.pba.0, step.sectors as u64 + self.interference);
        }
        torn
    }

    fn destroy(&mut self, from: u64, sectors: u64) {
        for cell in self.cells.iter_mut().skip(from as usize).take(sectors as usize) {
            *cell = Cell::Destroyed;
        }
    }
}
