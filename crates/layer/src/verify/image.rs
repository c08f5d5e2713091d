//! A toy medium, stored sector by sector, and plans executed on it. It is the naive counterpart of the checker's
//! integrity maps; its writes can be torn.
//!
//! Invariants:
//! 1. Everything before the last barrier is durable. Later writes and notes are a list of acts, each of which may or
//!    may not be on the medium.
//! 2. Acts are applied in the order of their steps.

use std::collections::BTreeMap;

use imbrex_disk::{Command, Extent, Operation, Pba, Sectors, SharedDisk};

use crate::layer::Layer;
use crate::plan::note::Note;
use crate::plan::{Kind, Medium, Plan, Step, StepOp};

/// The contents of a physical sector of the toy medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    /// Zeros, as on a new medium.
    Never,
    /// A version of a logical sector; version 0 is zeros.
    Holds { lba: u64, version: u64 },
    /// Data that are not the host's: padding, map or journal.
    Other,
    /// No valid contents: a write next to the sector destroyed them.
    Destroyed,
}

/// The version as which a destroyed sector reads on a host-managed drive, because a write of the host may have
/// destroyed it.
pub(super) const LOST: u64 = u64::MAX;

/// The state of a toy medium at one time: the contents of every physical sector, and the records of the journal.
#[derive(Clone, Debug)]
pub(super) struct Image {
    cells: [Vec<Cell>; 2],
    is_host_managed: bool,
    pub(super) notes: Vec<Note>,
}

/// A change of the medium or its journal by one step of a plan.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Write { medium: Medium, start: Pba, cells: Vec<Cell> },
    Note(Note),
}

impl Image {
    /// Returns the state of a new disk with an empty journal. Every logical sector is zeros at the place where `layer`
    /// looks it up.
    pub(super) fn fresh(disk: &SharedDisk, layer: &dyn Layer) -> Image {
        let sectors = disk.geometry.sectors().0 as usize;
        let cells = [vec![Cell::Never; sectors], Vec::new()];
        let mut image = Image { cells, is_host_managed: layer.is_host_managed(), notes: Vec::new() };
        let mut pieces = Vec::new();
        layer.lookup(imbrex_disk::Lba(0), layer.capacity(), &mut pieces);
        for piece in pieces {
            let Some((medium, pba)) = piece.at else { continue };
            for offset in 0..piece.sectors.0 {
                image.set(medium, pba.0 + offset, Cell::Holds { lba: piece.lba.0 + offset, version: 0 });
            }
        }
        image
    }

    pub(super) fn get(&self, medium: Medium, pba: u64) -> Cell {
        self.cells[medium as usize].get(pba as usize).copied().unwrap_or(Cell::Never)
    }

    fn set(&mut self, medium: Medium, pba: u64, cell: Cell) {
        let cells = &mut self.cells[medium as usize];
        if pba as usize >= cells.len() {
            assert_eq!(medium, Medium::Flash, "PBA {pba} lies past the platters");
            cells.resize(pba as usize + 1, Cell::Never);
        }
        cells[pba as usize] = cell;
    }

    /// Applies `act` to the medium. Of a write, applies only the first `prefix` sectors, or all if it has fewer; they
    /// destroy the sectors that the recording says.
    pub(super) fn apply(&mut self, disk: &SharedDisk, act: &Act, prefix: usize) {
        match act {
            Act::Note(note) => self.notes.push(*note),
            Act::Write { medium, start, cells } => {
                let prefix = prefix.min(cells.len());
                if *medium == Medium::Disk && prefix > 0 {
                    let mut destroyed = Vec::new();
                    let written = Extent::new(*start, Sectors(prefix as u64));
                    disk.recording.destroys(&disk.geometry, written, &mut destroyed);
                    for extent in destroyed {
                        (extent.start.0..extent.end().0).for_each(|pba| self.set(*medium, pba, Cell::Destroyed));
                    }
                }
                for (offset, cell) in cells[..prefix].iter().enumerate() {
                    self.set(*medium, start.0 + offset as u64, *cell);
                }
            }
        }
    }

    /// Returns the version of the logical sector `lba` that a read at the place `at` returns. No place (`None`) reads
    /// as version 0, a destroyed sector of a host-managed drive as [`LOST`].
    ///
    /// # Errors
    ///
    /// The place holds something else than versions of `lba`. The error is a text for a message.
    pub(super) fn value(&self, lba: u64, at: Option<(Medium, Pba)>) -> Result<u64, String> {
        let Some((medium, pba)) = at else { return Ok(0) };
        match self.get(medium, pba.0) {
            Cell::Never => Ok(0),
            Cell::Holds { lba: held, version } if held == lba => Ok(version),
            Cell::Destroyed if self.is_host_managed => Ok(LOST),
            found => Err(format!("LBA {lba} is looked up at {medium:?} {pba}, where there is {found:?}")),
        }
    }
}

/// The execution of plans on a toy medium, step by step.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    disk: SharedDisk,
    keeps_trims: bool,
    /// The medium with all acts applied, as reads see it.
    pub(super) view: Image,
    /// The medium with only the acts before the last barrier, which are durable.
    pub(super) base: Image,
    /// The acts since the last barrier, in order, which a power cut may lose.
    pub(super) pending: Vec<Act>,
    staging: [BTreeMap<u64, u64>; 2],
    host: BTreeMap<u64, u64>,
}

impl Execution {
    pub(super) fn new(disk: &SharedDisk, keeps_trims: bool, image: Image) -> Execution {
        Execution {
            disk: disk.clone(),
            keeps_trims,
            view: image.clone(),
            base: image,
            pending: Vec::new(),
            staging: [BTreeMap::new(), BTreeMap::new()],
            host: BTreeMap::new(),
        }
    }

    /// Begins the execution of a plan that serves `commands`. The first write among them gets the version `version`,
    /// each later one the next version.
    pub(super) fn begin(&mut self, commands: &[Command], mut version: u64) {
        self.host.clear();
        for command in commands {
            let range = command.lba.0..command.end().0;
            match command.operation {
                Operation::Write => {
                    self.host.extend(range.map(|lba| (lba, version)));
                    version += 1;
                }
                Operation::Trim if self.keeps_trims => self.host.extend(range.map(|lba| (lba, 0))),
                Operation::Trim | Operation::Read | Operation::Flush => {}
            }
        }
    }

    pub(super) fn open_group(&mut self, host_group: bool) {
        self.staging[!host_group as usize].clear();
    }

    /// Executes one step of `plan`. Returns whether the step is a write, a note or a barrier.
    ///
    /// # Errors
    ///
    /// The step reads wrong contents. The error is a text for a message.
    pub(super) fn step(&mut self, plan: &Plan, step: &Step, host_group: bool) -> Result<bool, String> {
        match step.op {
            StepOp::Read if step.kind == Kind::Data => self.read(step, host_group)?,
            StepOp::Read => {}
            StepOp::Drop => {
                let range = step.lba.0..step.lba.0 + step.sectors as u64;
                self.staging[!host_group as usize].extend(range.map(|lba| (lba, 0)));
            }
            StepOp::Write => self.act(Act::Write {
                medium: step.medium,
                start: step.pba,
                cells: (0..step.sectors as u64).map(|offset| self.written(step, offset, host_group)).collect(),
            }),
            StepOp::Note => self.act(Act::Note(*plan.note_of(step))),
            StepOp::Barrier => self.barrier(),
        }
        Ok(matches!(step.op, StepOp::Write | StepOp::Note | StepOp::Barrier))
    }

    fn read(&mut self, step: &Step, host_group: bool) -> Result<(), String> {
        for offset in 0..step.sectors as u64 {
            let lba = step.lba.0 + offset;
            let at = Some((step.medium, Pba(step.pba.0 + offset)));
            let version = self.view.value(lba, at).map_err(|wrong| format!("{step:?}: {wrong}"))?;
            self.staging[!host_group as usize].insert(lba, version);
        }
        Ok(())
    }

    fn written(&self, step: &Step, offset: u64, host_group: bool) -> Cell {
        if step.kind != Kind::Data {
            return Cell::Other;
        }
        let lba = step.lba.0 + offset;
        let given = if host_group { self.host.get(&lba) } else { None };
        let staged = self.staging[!host_group as usize].get(&lba);
        Cell::Holds { lba, version: given.or(staged).copied().unwrap_or(0) }
    }

    fn act(&mut self, act: Act) {
        self.view.apply(&self.disk, &act, usize::MAX);
        self.pending.push(act);
    }

    /// Makes all pending acts durable, as a barrier does.
    pub(super) fn barrier(&mut self) {
        for act in std::mem::take(&mut self.pending) {
            self.base.apply(&self.disk, &act, usize::MAX);
        }
    }
}
