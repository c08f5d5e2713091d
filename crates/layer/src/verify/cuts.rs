//! Power cuts: plans carried out on a toy medium, cut after any step and inside writes; then a fresh layer recovers.
//!
//! What a cut leaves: all that the last barrier covered; of the writes after it any, in their order, the latest perhaps
//! torn after any of its sectors; of the notes after it any first few, for a journal is read up to its first gap. A
//! command with FUA, and a flush, are followed by a barrier, as a drive would.
//!
//! What must come out: every logical sector reads as its last durable value, or as one given since; never as a third.
//! Where the drive is host-managed, what a command of the host destroys is lost as if the host had given it that value.
//! Repairs are cut as well, and recover again.

use imbrex_disk::{Command, Lba, Operation, SharedDisk};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use super::harm;
use super::image::{Act, Execution, Image, LOST};
use super::toy::{Commands, below};
use crate::layer::{Layer, Piece};
use crate::plan::note::Note;
use crate::plan::{GroupKind, Plan};

/// A random run with cuts.
pub struct PowerCutTest<'a> {
    /// The toy disk.
    pub disk: &'a SharedDisk,
    /// Builds the layer, each time the same.
    pub build: &'a dyn Fn() -> Box<dyn Layer>,
    /// Seeds commands and cuts.
    pub seed: u64,
    /// How many plans are made.
    pub plans: u32,
    /// Sectors of the longest command.
    pub sectors_max: u32,
    /// Images tried after each step; where there are more they are drawn at random.
    pub images_per_step: usize,
}

/// What a run did.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    /// Images that a fresh layer recovered from.
    pub images: u64,
    /// Of them, those that needed a repair.
    pub repairs: u64,
    /// Cuts after which the run went on with the recovered layer.
    pub adopted: u64,
    /// Checkpoints that replaced the journal.
    pub checkpoints: u64,
}

/// A run that lost something: seed, plan and step to find it again, and what was lost.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("seed {seed}, plan {plan}, step {step}: {what}\n{trail}")]
pub struct CutError {
    /// The seed of the test.
    pub seed: u64,
    /// Plan, counted from 0.
    pub plan: u32,
    /// Step of the plan.
    pub step: usize,
    /// What came out wrong.
    pub what: String,
    /// The current plan, and the journal that was replayed.
    pub trail: String,
}

/// What a logical sector may read as.
#[derive(Clone, Debug, Default)]
struct Values {
    durable: u64,
    /// Given by plans that are done, but not known to be durable.
    done: Vec<u64>,
    /// Given by the current plan.
    flying: Vec<u64>,
}

impl Values {
    fn allow(&self, version: u64) -> bool {
        self.durable == version || self.done.contains(&version) || self.flying.contains(&version)
    }
}

/// Which of the pending acts are on the medium.
#[derive(Clone, Debug)]
struct Choice {
    /// By index among the pending acts; notes follow `notes`.
    writes: Vec<bool>,
    /// How many of the pending notes.
    notes: usize,
    /// How many sectors of the last act, if it is a write that is torn.
    torn: Option<usize>,
}

struct Runner<'a> {
    test: &'a PowerCutTest<'a>,
    random: Xoshiro256StarStar,
    keeps_trims: bool,
    values: Vec<Values>,
    tally: Tally,
    next_version: u64,
}

/// Runs a test.
pub fn run(test: &PowerCutTest<'_>) -> Result<Tally, CutError> {
    let mut layer = (test.build)();
    let mut runner = Runner {
        test,
        random: Xoshiro256StarStar::seed_from_u64(test.seed),
        keeps_trims: layer.keeps_trims(),
        values: vec![Values::default(); layer.capacity().0 as usize],
        tally: Tally::default(),
        next_version: 1,
    };
    let mut execution = Execution::new(test.disk, runner.keeps_trims, Image::fresh(test.disk, layer.as_ref()));
    let mut source = Commands::new(test.seed ^ 0x5eed, layer.capacity(), test.sectors_max);
    let mut plan = Plan::new();
    for number in 0..test.plans {
        let commands = source.plan(layer.as_mut(), &mut plan);
        runner.begin(&commands, layer.as_ref());
        let outcome = runner.carry_out(&mut execution, &plan, &commands);
        let adopted = outcome.map_err(|(step, what)| {
            let trail = format!("{commands:?}\n{plan:?}notes before: {:?}", execution.base.notes);
            CutError { seed: test.seed, plan: number, step, what, trail }
        })?;
        if let Some((recovered, image)) = adopted {
            layer = recovered;
            execution = Execution::new(test.disk, runner.keeps_trims, image);
        } else if below(&mut runner.random, 16) == 0 {
            runner.checkpoint(&mut execution, layer.as_ref()).map_err(|what| CutError {
                seed: test.seed,
                plan: number,
                step: plan.steps.len(),
                what,
                trail: format!("notes: {:?}", execution.base.notes),
            })?;
        }
    }
    Ok(runner.tally)
}

type Recovered = (Box<dyn Layer>, Image);

impl Runner<'_> {
    /// Carries out a plan, tries images after each step; perhaps cuts it for good and says what recovery made of it.
    fn carry_out(
        &mut self,
        execution: &mut Execution,
        plan: &Plan,
        commands: &[Command],
    ) -> Result<Option<Recovered>, (usize, String)> {
        execution.begin(commands, self.next_version);
        self.next_version += commands.iter().filter(|command| command.operation == Operation::Write).count() as u64;
        let cut_at = (below(&mut self.random, 6) == 0).then(|| below(&mut self.random, plan.steps.len() as u64 + 1));
        let mut number = 0;
        for (index, phase) in plan.phases.iter().enumerate() {
            let host_group = phase.kind == GroupKind::Host;
            if phase.opens_group {
                execution.open_group(host_group);
            }
            for step in plan.steps_of(index) {
                let acted = execution.step(plan, step, host_group).map_err(|what| (number, what))?;
                if acted {
                    self.try_images(execution).map_err(|what| (number, what))?;
                }
                if cut_at == Some(number as u64) {
                    return self.adopt(execution).map(Some).map_err(|what| (number, what));
                }
                number += 1;
            }
        }
        self.end(execution, commands);
        Ok(None)
    }

    /// Takes in what the commands of the next plan may leave in each sector.
    fn begin(&mut self, commands: &[Command], layer: &dyn Layer) {
        let mut version = self.next_version;
        for command in commands {
            let harm = harm::of(self.test.disk, layer, command);
            harm.endangered.iter().for_each(|&lba| self.values[lba as usize].flying.push(LOST));
            let given = match command.operation {
                Operation::Write => {
                    version += 1;
                    version - 1
                }
                Operation::Trim if self.keeps_trims => 0,
                Operation::Trim | Operation::Read | Operation::Flush => continue,
            };
            for lba in command.lba.0..command.end().0 {
                self.values[lba as usize].flying.push(given);
            }
            harm.lost.iter().for_each(|&lba| self.values[lba as usize].flying.push(LOST));
        }
    }

    fn end(&mut self, execution: &mut Execution, commands: &[Command]) {
        for values in &mut self.values {
            let flying = std::mem::take(&mut values.flying);
            values.done.extend(flying);
        }
        if commands.iter().any(|command| command.fua || command.operation == Operation::Flush) {
            execution.barrier();
        }
        if execution.pending.is_empty() {
            self.settle();
        }
    }

    /// A barrier: what earlier plans gave is durable.
    fn settle(&mut self) {
        for values in &mut self.values {
            if let Some(last) = values.done.pop() {
                values.durable = last;
                values.done.clear();
            }
        }
    }

    fn try_images(&mut self, execution: &Execution) -> Result<(), String> {
        if execution.pending.is_empty() {
            self.settle();
            return self.recover(execution.base.clone(), true).map(|_| ());
        }
        let mut choices = self.choices(&execution.pending);
        while choices.len() > self.test.images_per_step {
            let drawn = below(&mut self.random, choices.len() as u64) as usize;
            choices.swap_remove(drawn);
        }
        for choice in choices {
            let image = self.image(execution, &choice);
            self.recover(image, true).map_err(|what| format!("{choice:?}: {what}"))?;
        }
        Ok(())
    }

    fn image(&self, execution: &Execution, choice: &Choice) -> Image {
        let mut image = execution.base.clone();
        let (mut notes, last) = (0, execution.pending.len() - 1);
        for (index, act) in execution.pending.iter().enumerate() {
            let applied = match act {
                Act::Note(_) => {
                    notes += 1;
                    notes <= choice.notes
                }
                Act::Write { .. } => choice.writes[index],
            };
            if applied {
                let prefix = choice.torn.filter(|_| index == last).unwrap_or(usize::MAX);
                image.apply(self.test.disk, act, prefix);
            }
        }
        image
    }

    /// The images that the newest act makes possible: those without it were tried when the act before it was new.
    fn choices(&mut self, pending: &[Act]) -> Vec<Choice> {
        let last = pending.len() - 1;
        let notes_all = pending.iter().filter(|act| matches!(act, Act::Note(_))).count();
        let older: Vec<usize> = (0..last).filter(|&index| matches!(pending[index], Act::Write { .. })).collect();
        let mut choices = Vec::new();
        for mask in self.masks(older.len()) {
            let mut writes = vec![false; pending.len()];
            for (bit, &index) in older.iter().enumerate() {
                writes[index] = mask >> (bit % 64) & 1 == 1;
            }
            writes[last] = true;
            match &pending[last] {
                Act::Note(_) => choices.push(Choice { writes, notes: notes_all, torn: None }),
                Act::Write { cells, .. } => {
                    for notes in 0..=notes_all {
                        choices.push(Choice { writes: writes.clone(), notes, torn: None });
                    }
                    let notes = below(&mut self.random, notes_all as u64 + 1) as usize;
                    for torn in 1..cells.len() {
                        choices.push(Choice { writes: writes.clone(), notes, torn: Some(torn) });
                    }
                }
            }
        }
        choices
    }

    /// Every subset of a few writes; of many, all, none and some drawn at random.
    fn masks(&mut self, writes: usize) -> Vec<u64> {
        if writes <= 3 {
            return (0..1 << writes).collect();
        }
        let drawn = (0..6).map(|_| self.random.next_u64());
        [0, u64::MAX].into_iter().chain(drawn).collect()
    }

    /// Cuts here: draws one image, recovers from it and takes what came out as the durable truth.
    fn adopt(&mut self, execution: &Execution) -> Result<Recovered, String> {
        let image = if execution.pending.is_empty() {
            execution.base.clone()
        } else {
            let choices = self.choices(&execution.pending);
            let drawn = below(&mut self.random, choices.len() as u64 + 1) as usize;
            choices.get(drawn).map_or_else(|| execution.base.clone(), |choice| self.image(execution, choice))
        };
        let (layer, image) = self.recover(image, true)?;
        self.tally.adopted += 1;
        let mut pieces = Vec::new();
        layer.lookup(Lba(0), layer.capacity(), &mut pieces);
        for (lba, at) in sectors(&pieces) {
            self.values[lba as usize] = Values { durable: image.value(lba, at)?, ..Values::default() };
        }
        Ok((layer, image))
    }

    /// Builds a fresh layer, replays, repairs (cutting the repair too, unless this is such a cut) and judges.
    fn recover(&mut self, image: Image, cut_repair: bool) -> Result<Recovered, String> {
        self.tally.images += 1;
        let mut layer = (self.test.build)();
        for note in &image.notes {
            layer.replay(note).map_err(|error| error.to_string())?;
        }
        let mut plan = Plan::new();
        layer.repair(&mut plan);
        let mut execution = Execution::new(self.test.disk, self.keeps_trims, image);
        self.tally.repairs += !plan.is_empty() as u64;
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.opens_group {
                execution.open_group(false);
            }
            for step in plan.steps_of(index) {
                let acted = execution.step(&plan, step, false).map_err(|what| format!("repair: {what}"))?;
                if acted && cut_repair {
                    self.cut_repair(&execution).map_err(|what| format!("cut in repair {step:?}: {what}"))?;
                }
            }
        }
        layer.self_check().map_err(|violation| violation.to_string())?;
        execution.barrier();
        self.judge(layer.as_ref(), &execution.base)?;
        Ok((layer, execution.base))
    }

    fn cut_repair(&mut self, execution: &Execution) -> Result<(), String> {
        if execution.pending.is_empty() {
            return self.recover(execution.base.clone(), false).map(|_| ());
        }
        let choices = self.choices(&execution.pending);
        for _ in 0..2 {
            let drawn = below(&mut self.random, choices.len() as u64) as usize;
            let image = self.image(execution, &choices[drawn]);
            self.recover(image, false).map_err(|what| format!("{:?}: {what}", choices[drawn]))?;
        }
        Ok(())
    }

    fn judge(&self, layer: &dyn Layer, image: &Image) -> Result<(), String> {
        let mut pieces = Vec::new();
        layer.lookup(Lba(0), layer.capacity(), &mut pieces);
        let mut next = 0;
        for (lba, at) in sectors(&pieces) {
            if lba != next {
                return Err(format!("lookup goes from LBA {next} to {lba}"));
            }
            next += 1;
            let version = image.value(lba, at)?;
            let values = &self.values[lba as usize];
            if !values.allow(version) {
                return Err(format!("LBA {lba} reads as version {version} at {at:?}, where {values:?} are allowed"));
            }
        }
        if next != layer.capacity().0 {
            return Err(format!("lookup ends at LBA {next} of {}", layer.capacity().0));
        }
        Ok(())
    }

    /// Makes all durable, replaces the journal by a checkpoint, and compares what a fresh layer makes of it.
    fn checkpoint(&mut self, execution: &mut Execution, layer: &dyn Layer) -> Result<(), String> {
        execution.barrier();
        self.settle();
        let notes = compare_checkpoint(layer, (self.test.build)())?;
        execution.base.notes = notes.clone();
        execution.view.notes = notes;
        self.tally.checkpoints += 1;
        Ok(())
    }
}

/// Replays a checkpoint of `layer` into `fresh`: both must look up every sector alike. Returns the checkpoint.
pub fn compare_checkpoint(layer: &dyn Layer, mut fresh: Box<dyn Layer>) -> Result<Vec<Note>, String> {
    let mut notes = Vec::new();
    layer.checkpoint(&mut notes);
    for note in &notes {
        fresh.replay(note).map_err(|error| error.to_string())?;
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    layer.lookup(Lba(0), layer.capacity(), &mut ours);
    fresh.lookup(Lba(0), layer.capacity(), &mut theirs);
    let differing = sectors(&ours).zip(sectors(&theirs)).find(|(ours, theirs)| ours != theirs);
    match differing {
        Some((ours, theirs)) => Err(format!("after a checkpoint {ours:?} is looked up as {theirs:?}")),
        None => Ok(notes),
    }
}

fn sectors(pieces: &[Piece]) -> impl Iterator<Item = (u64, Option<(crate::Medium, imbrex_disk::Pba)>)> + '_ {
    pieces.iter().flat_map(|piece| {
        (0..piece.sectors.0).map(|offset| {
            let at = piece.at.map(|(medium, pba)| (medium, imbrex_disk::Pba(pba.0 + offset)));
            (piece.lba.0 + offset, at)
        })
    })
}
