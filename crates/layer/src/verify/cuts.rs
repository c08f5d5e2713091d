//! Power-cut tests: plans are executed on a toy medium and cut after any step and inside writes; then a new layer
//! recovers.
//!
//! State after a cut: everything before the last barrier is on the medium. Of the writes after the barrier any subset
//! is on the medium, applied in order, and the last write may be torn after any of its sectors. Of the notes after the
//! barrier a prefix survives, because a journal is read up to its first gap. As in a drive, a barrier follows a command
//! with FUA and a flush.
//!
//! Expected result: every logical sector reads as its last durable value or as a value written since then, never as a
//! third. On a host-managed drive, a sector that a command of the host destroys may also read as lost, as if the host
//! had written that value. Repairs are cut as well, and recover again.

use imbrex_disk::{Command, Lba, Operation, SharedDisk};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

use super::harm;
use super::image::{Act, Execution, Image, LOST};
use super::toy::{Commands, below};
use crate::layer::{Layer, Piece};
use crate::plan::note::Note;
use crate::plan::{GroupKind, Plan};

/// The parameters of a power-cut test: random plans of a layer on a toy disk, with power cuts after their steps and
/// inside their writes.
pub struct PowerCutTest<'a> {
    /// The disk under the layer: a toy disk of about a thousand sectors.
    pub disk: &'a SharedDisk,
    /// Builds a new layer over the test's disk; every call must build an equal one.
    pub build: &'a dyn Fn() -> Box<dyn Layer>,
    /// Seed of the random commands and cuts: equal tests with equal seeds give equal runs.
    pub seed: u64,
    /// Number of plans that the test executes, those of background work included.
    pub plans: u32,
    /// Maximum number of sectors of a random command; the minimum is 1, but 0 for a flush.
    pub sectors_max: u32,
    /// Maximum number of images (possible states of the medium after a power cut) that are tried after each step. If
    /// there are more, a random selection is tried. If more than three earlier writes are not durable yet, not all
    /// their combinations are tried even without this limit. Cuts during a repair are not limited.
    pub images_per_step: usize,
}

/// Counts of the events in one run of a power-cut test.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    /// Number of recoveries: images (states of the medium after a power cut) from which a new layer was rebuilt, cuts
    /// during a repair included.
    pub images: u64,
    /// Number of recoveries in which the layer rebuilt after a power cut planned at least one repair step. Cuts during
    /// a repair are included.
    pub repairs: u64,
    /// Number of power cuts after which the run continued with the recovered layer and its medium. After other cuts the
    /// recovery is only checked.
    pub adopted: u64,
    /// Number of checkpoints that replaced the records of the layer's journal during the run.
    pub checkpoints: u64,
}

/// The error of a power-cut test that lost data or could not recover: the fault, with the seed, plan and step to
/// reproduce it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("seed {seed}, plan {plan}, step {step}: {what}\n{trail}")]
pub struct CutError {
    /// The seed of the test.
    pub seed: u64,
    /// Number of the plan, counted from 0.
    pub plan: u32,
    /// Index of the step in the plan, counted from 0: the step after which or inside which the power was cut, or the
    /// step that could not be executed. If a checkpoint after the plan failed, the number of steps of the plan.
    pub step: usize,
    /// Description of the fault.
    pub what: String,
    /// Text of the commands, the current plan and the journal records that were durable; of a failed checkpoint, only
    /// the journal records.
    pub trail: String,
}

/// The versions as which a logical sector may read.
#[derive(Clone, Debug, Default)]
struct Values {
    durable: u64,
    /// Versions written by plans that are done, but not known to be durable.
    done: Vec<u64>,
    /// Versions written by the current plan.
    flying: Vec<u64>,
}

impl Values {
    fn allow(&self, version: u64) -> bool {
        self.durable == version || self.done.contains(&version) || self.flying.contains(&version)
    }
}

/// The pending acts that are on the medium after a cut.
#[derive(Clone, Debug)]
struct Choice {
    /// Whether each pending act is on the medium, by index. Entries of notes are ignored: see `notes`.
    writes: Vec<bool>,
    /// Number of pending notes, from the first, that are on the medium.
    notes: usize,
    /// Number of sectors of the last act that are on the medium, if it is a torn write.
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

/// Executes the power-cut test `test`, and returns the counts of its cuts and recoveries.
///
/// # Errors
///
/// After a cut a sector reads as neither its last durable version nor a version written since, a record cannot be
/// replayed, a self-check fails, a plan reads wrong contents, or a checkpoint does not rebuild the map.
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
    /// Executes a plan and tries images after each step. At random, ends the plan with a cut and returns the recovered
    /// layer and image.
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

    /// Adds the versions that the commands of the next plan may leave in each sector.
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

    /// Makes the last version of all finished plans durable, at a barrier.
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

    /// Returns the images that the newest act adds. Images without it were tried when the act before it was new.
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

    /// Returns masks of `writes` bits. For a few writes these are all masks; for many they are all ones, all zeros and
    /// some random ones.
    fn masks(&mut self, writes: usize) -> Vec<u64> {
        if writes <= 3 {
            return (0..1 << writes).collect();
        }
        let drawn = (0..6).map(|_| self.random.next_u64());
        [0, u64::MAX].into_iter().chain(drawn).collect()
    }

    /// Cuts the power here: draws one image, recovers from it, and takes the recovered values as the durable ones.
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

    /// Builds a new layer, replays the journal, executes the repair and judges the result. If `cut_repair` is set, the
    /// repair is cut too.
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

    /// Makes all writes durable, replaces the journal by a checkpoint, and checks that a new layer has an equal map
    /// after replaying the checkpoint.
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

/// Replays a checkpoint of `layer` into `fresh`, a new layer with equal parameters, and checks that both find every
/// logical sector at the same place. Returns the records of the checkpoint.
///
/// # Errors
///
/// A record cannot be replayed, or a sector has another place in `fresh`. The error is a text for a message.
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
