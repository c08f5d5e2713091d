//! Power cuts on bytes: random work on an image, whose medium is cut after every act and inside writes. Each cut
//! image is opened as after a power failure, and every sector is compared with its allowed values.
//!
//! ```text
//!   operation ─► Store over Recorder ─► events ─► Crashing, one event at a time ─► images ─► Store::open ─► compare
//!                                                                                    └── its events are cut as well
//! ```
//!
//! An *act* is one write call to the medium, possibly of several pieces. An *operation* is one step of the random work:
//! commands, a phase of idle work, or a checkpoint.
//!
//! After a cut, the data covered by the last flush remains. Of the blocks written since then, any subset remains,
//! from all acts however old ([`super::subsets`]). Alternatively the newest write is torn as on platters
//! ([`super::tear`]). The trial flushes the medium after a command with FUA and after a flush, as the drive does.
//!
//! Requirement: every sector reads as its last durable value, or as one written since. No sector reads as another
//! value or fails. Exception: sectors that a host command destroys on a host-managed drive may be lost, as if the
//! host had written that value. After a cut the work continues, sometimes on the cut image.
//!
//! Invariants:
//! 1. The run is the same for the same seed. The cuts tried in an operation do not depend on earlier operations, so
//!    operations can be left out of a failing run.

use imbrex_disk::{Command, Lba, Operation, SharedDisk};
use imbrex_layer::verify::harm;
use imbrex_layer::verify::toy::below;
use imbrex_layer::{Cause, GroupKind, Kind, Layer, Plan, StepOp};
use imbrex_sim::Drive;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::recorder::{Event, Recorder};
use super::subsets::{self, Survivors};
use super::tear;
use super::values::{LOST, Ledger, fill, version_in};
use super::workload::{Action, Work, draw};
use crate::check::check_image;
use crate::error::DeviceError;
use crate::image::{Bounds, Header};
use crate::media::crashing::Crashing;
use crate::media::memory::Memory;
use crate::store::{Data, Store, Transfer};

/// Bytes that the medium writes atomically.
const BLOCK_BYTES: u32 = 512;
/// Acts of an opening after which the power is cut.
const OPENING_ACTS: usize = 3;
/// Number of openings in a row that are cut, at most.
const OPENINGS: u32 = 3;
/// An opening after a cut opening is itself cut once in this many times.
const LATER_OPENINGS: u64 = 4;
/// Most runs used for shrinking.
const SHRINKING_RUNS: u32 = 400;

/// Parameters of a random test run with power cuts.
pub struct Trial<'a> {
    /// Header of the image of the drive under test.
    pub header: &'a Header,
    /// Called with the drive at every opening of an image; used to break a layer on purpose.
    pub prepare: &'a dyn Fn(&mut Drive),
    /// Seed of the random operations and cuts of the trial.
    pub seed: u64,
    /// Number of random operations: commands, phases of background work, and checkpoints.
    pub actions: u32,
    /// Largest number of sectors of a command.
    pub sectors_max: u32,
    /// Largest number of cut images (contents of the medium after a power cut) tried after each write or flush of the
    /// medium. If more are possible, a random choice is made.
    pub images_per_act: usize,
    /// Limits of the opened image on caches, buffers and batches, and on the length of its journal.
    pub bounds: Bounds,
    /// Whether about one in 16 cut images (contents of the medium after a power cut) is also checked before it is
    /// opened. The check must find nothing. Only for correct layers; without effect on host-managed drives.
    pub is_checked: bool,
}

/// Counts of a test run with power cuts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Number of writes and flushes of the medium by operations, without those by openings. The power was cut after
    /// each, except after a flush without writes before it.
    pub events: u64,
    /// Number of cut images (contents of the medium after a power cut) that were opened and compared, including those
    /// from a cut during the opening of another.
    pub images: u64,
    /// Number of cut images (contents of the medium after a power cut) in which not all of the writes since the last
    /// flush survived. Images from a cut during an opening do not count.
    pub torn: u64,
    /// Number of power cuts during the opening of an image that an earlier power cut had left.
    pub openings_cut: u64,
    /// Number of these cuts during an opening after another opening that was cut.
    pub later_openings_cut: u64,
    /// Number of power cuts after which the run continued with the recovered image. After all other cuts, the run
    /// continued as if there had been no cut.
    pub adopted: u64,
    /// Number of random operations of the kind "replace the journal by a checkpoint". Checkpoints for other reasons do
    /// not count.
    pub checkpoints: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.events += other.events;
        self.images += other.images;
        self.torn += other.torn;
        self.openings_cut += other.openings_cut;
        self.later_openings_cut += other.later_openings_cut;
        self.adopted += other.adopted;
        self.checkpoints += other.checkpoints;
    }
}

/// A failed test run: a sector had an impossible value or could not be read after a power cut, the image could not be
/// opened, a check found a fault, or an operation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("seed {seed}, actions {actions:?}, in action {action} after event {event}: {what}\n{trail}")]
pub struct Loss {
    /// Seed of the trial that failed.
    pub seed: u64,
    /// Numbers, from 0, of the operations that were executed in the failing run. After [`run`], this is the smallest
    /// failing selection that was found.
    pub actions: Vec<u32>,
    /// Number, from 0, of the operation during which the loss was found.
    pub action: u32,
    /// Number of writes and flushes of the medium in the operation `action`, up to the loss.
    pub event: usize,
    /// Description of the loss.
    pub what: String,
    /// The commands of the operation `action` and their plan, for debugging.
    pub trail: String,
}

/// Executes all operations of a trial, with power cuts after each write and flush of the medium.
///
/// # Errors
/// The first loss, after a search for a smaller selection of operations that still fails.
pub fn run(trial: &Trial<'_>) -> Result<Tally, Box<Loss>> {
    let all: Vec<u32> = (0..trial.actions).collect();
    run_actions(trial, &all).map_err(|loss| shrink(trial, loss))
}

/// Executes only the operations `actions` of a trial, numbered from 0; for example, those of a recorded [`Loss`].
///
/// # Errors
/// The first loss.
///
/// # Panics
/// If an operation number is not below [`Trial::actions`].
pub fn run_actions(trial: &Trial<'_>, actions: &[u32]) -> Result<Tally, Box<Loss>> {
    let mut runner = Runner::new(trial);
    let drawn = draw(trial.seed, runner.drive.layer.capacity(), trial.sectors_max, trial.actions);
    for &number in actions {
        runner.perform(&drawn[number as usize]).map_err(|what| {
            let trail = format!("{:?}\n{:?}", runner.commands, runner.plan);
            Box::new(Loss {
                seed: trial.seed,
                actions: actions.to_vec(),
                action: number,
                event: runner.event,
                what,
                trail,
            })
        })?;
    }
    Ok(runner.tally)
}

/// Leaves out operations, halves of the list first, as long as the run still fails.
fn shrink(trial: &Trial<'_>, mut loss: Box<Loss>) -> Box<Loss> {
    loss.actions.retain(|&action| action <= loss.action);
    let mut runs = 0;
    let mut size = loss.actions.len().div_ceil(2);
    while size > 0 && runs < SHRINKING_RUNS {
        let (mut start, mut is_smaller) = (0, false);
        while start < loss.actions.len() && runs < SHRINKING_RUNS {
            let mut fewer = loss.actions.clone();
            fewer.drain(start..(start + size).min(loss.actions.len()));
            runs += 1;
            match run_actions(trial, &fewer) {
                Err(smaller) => {
                    loss = smaller;
                    loss.actions.retain(|&action| action <= loss.action);
                    is_smaller = true;
                }
                Ok(_) => start += size,
            }
        }
        if !is_smaller || size > 1 {
            size /= 2;
        }
    }
    loss
}

/// Choice of the data that survives a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Choice {
    /// A subset of the blocks.
    Blocks(Survivors),
    /// All older acts, and this number of sectors of the newest one, torn as on platters.
    Platters(u64),
}

type Recovered = (Drive, Store<Recorder>, Vec<u64>);

struct Runner<'a> {
    trial: &'a Trial<'a>,
    disk: SharedDisk,
    drive: Drive,
    store: Store<Recorder>,
    /// The medium after the events processed so far.
    medium: Crashing,
    random: Xoshiro256StarStar,
    keeps_trims: bool,
    ledger: Ledger,
    tally: Tally,
    plan: Plan,
    commands: Vec<Command>,
    event: usize,
}

impl<'a> Runner<'a> {
    fn new(trial: &'a Trial<'a>) -> Runner<'a> {
        let (_, store) = Store::create(Memory::new(), trial.header.clone()).expect("memory takes a toy");
        let image = store.space().media().clone();
        // A medium on which flushes wait makes the image hold contents back; every other trial uses one.
        let medium = Recorder::new(image).with_flush_waits(trial.seed % 2 == 1);
        let opened = Store::open_bounded(medium, "new image", trial.bounds, trial.prepare);
        let (drive, mut store) = opened.expect("a new image opens");
        store.space_mut().media_mut().take_events();
        let capacity = drive.layer.capacity().0;
        let mut ledger = Ledger::new(capacity);
        if drive.disk.recording.leaves_damage_to_host() {
            ledger.adopt(&vec![LOST; capacity as usize]);
        }
        Runner {
            trial,
            disk: drive.disk.clone(),
            medium: Crashing::new(store.space().media().memory().clone(), BLOCK_BYTES),
            keeps_trims: drive.layer.keeps_trims(),
            ledger,
            drive,
            store,
            random: Xoshiro256StarStar::seed_from_u64(0),
            tally: Tally::default(),
            plan: Plan::new(),
            commands: Vec::new(),
            event: 0,
        }
    }

    fn perform(&mut self, action: &Action) -> Result<(), String> {
        self.random = Xoshiro256StarStar::seed_from_u64(action.salt);
        self.event = 0;
        let mut plan = std::mem::take(&mut self.plan);
        let planned = action.plan(self.drive.layer.as_mut(), &mut plan);
        self.plan = plan;
        self.commands = planned.clone().unwrap_or_default();
        let outcome = match (&action.work, planned) {
            (Work::Checkpoint, _) => self.store.checkpoint(self.drive.layer.as_ref()),
            (_, None) => return Ok(()),
            (_, Some(commands)) => self.execute(&commands),
        };
        outcome.map_err(|error| error.to_string())?;
        self.store.checkpoint_if_due(self.drive.layer.as_ref()).map_err(|error| error.to_string())?;
        self.tally.checkpoints += u64::from(action.work == Work::Checkpoint);
        let events = self.take_events();
        let cut_at = action.is_cut.then(|| below(&mut self.random, events.len() as u64 + 1) as usize);
        if self.watch(&events, cut_at)? {
            return Ok(());
        }
        self.ledger.answer();
        if self.commands.iter().any(|command| command.fua || command.operation == Operation::Flush) {
            self.store.flush().map_err(|error| error.to_string())?;
            let events = self.take_events();
            self.watch(&events, None)?;
            self.ledger.settle();
        }
        Ok(())
    }

    fn take_events(&mut self) -> Vec<Event> {
        self.store.space_mut().media_mut().take_events()
    }

    /// Executes the plan of an operation, and records in the ledger the values that its commands write.
    fn execute(&mut self, commands: &[Command]) -> Result<(), DeviceError> {
        let sector_bytes = self.disk.sector_bytes as usize;
        let mut buffers = Vec::with_capacity(commands.len());
        for command in commands {
            let mut buffer = vec![0; command.sectors as usize * sector_bytes];
            let sectors = u64::from(command.sectors);
            let harm = harm::of(&self.disk, self.drive.layer.as_ref(), command);
            harm.endangered.iter().for_each(|&lba| self.ledger.give(lba, 1, LOST));
            match command.operation {
                Operation::Write => {
                    let version = self.ledger.fresh_version();
                    fill(&mut buffer, command.lba.0, version, sector_bytes);
                    self.ledger.give(command.lba.0, sectors, version);
                }
                Operation::Trim if self.keeps_trims => self.ledger.give(command.lba.0, sectors, 0),
                Operation::Trim | Operation::Read | Operation::Flush => {}
            }
            harm.lost.iter().for_each(|&lba| self.ledger.give(lba, 1, LOST));
            buffers.push(buffer);
        }
        let mut transfers = Vec::with_capacity(commands.len());
        for (command, buffer) in commands.iter().zip(&mut buffers) {
            let data = match command.operation {
                Operation::Read => Data::Read(buffer),
                Operation::Write => Data::Write(buffer),
                Operation::Trim => Data::Trim(u64::from(command.sectors)),
                Operation::Flush => continue,
            };
            transfers.push(Transfer { lba: command.lba.0, data });
        }
        match self.store.execute(&self.plan, &mut transfers) {
            // The host gets an error for sectors that it destroyed itself. The checks after each cut verify these
            // sectors.
            Err(DeviceError::Destroyed { .. }) if self.drive.layer.is_host_managed() => Ok(()),
            outcome => outcome,
        }
    }

    /// Applies `events` to the medium one by one, and tries cut images after each. Returns whether the power failed
    /// for good, which happens after `cut_at` events.
    fn watch(&mut self, events: &[Event], cut_at: Option<usize>) -> Result<bool, String> {
        if cut_at == Some(0) {
            return self.adopt().map(|()| true);
        }
        for (number, event) in events.iter().enumerate() {
            let is_news = *event != Event::Flush || self.medium.acts() > 0;
            event.apply(&mut self.medium);
            self.event += 1;
            self.tally.events += 1;
            if is_news {
                self.try_images()?;
            }
            if cut_at == Some(number + 1) {
                return self.adopt().map(|()| true);
            }
        }
        Ok(false)
    }

    fn try_images(&mut self) -> Result<(), String> {
        if self.medium.acts() == 0 {
            return self.recover(self.medium.whole().clone(), OPENINGS).map(|_| ());
        }
        let mut choices = self.choices();
        while choices.len() > self.trial.images_per_act {
            let drawn = below(&mut self.random, choices.len() as u64) as usize;
            choices.swap_remove(drawn);
        }
        for choice in choices {
            let image = self.image(choice)?;
            self.recover(image, OPENINGS).map_err(|what| format!("{choice:?}: {what}"))?;
        }
        Ok(())
    }

    /// Returns the choices of surviving data for a cut now.
    fn choices(&mut self) -> Vec<Choice> {
        let mut choices: Vec<Choice> =
            subsets::of(&self.medium, &mut self.random).into_iter().map(Choice::Blocks).collect();
        choices.extend((1..tear::sectors(&self.platters(), self.disk.sector_bytes)).map(Choice::Platters));
        choices
    }

    /// Returns the sectors of platters that the newest act writes, if a torn write destroys other sectors than a
    /// complete one.
    fn platters(&self) -> Vec<tear::Run> {
        let act = self.medium.last_act().filter(|_| !self.disk.recording.is_harmless());
        act.map_or_else(Vec::new, |act| tear::runs(self.store.space(), act))
    }

    fn image(&mut self, choice: Choice) -> Result<Memory, String> {
        let last = self.medium.acts() - 1;
        match choice {
            Choice::Blocks(survivors) => {
                self.tally.torn += u64::from(!survivors.is_whole());
                Ok(survivors.cut(&self.medium))
            }
            Choice::Platters(sectors) => {
                self.tally.torn += 1;
                let without = self.medium.cut(|act, _| act < last);
                let torn = tear::torn(without, self.trial.header, &self.disk, &self.platters(), sectors);
                torn.map_err(|error| error.to_string())
            }
        }
    }

    /// Cuts the power for good: chooses one cut image at random, with which the run continues.
    fn adopt(&mut self) -> Result<(), String> {
        let drawn = if self.medium.acts() == 0 {
            None
        } else {
            let choices = self.choices();
            choices.get(below(&mut self.random, choices.len() as u64 + 1) as usize).copied()
        };
        let image = match drawn {
            Some(choice) => self.image(choice)?,
            None => self.medium.cut(|_, _| false),
        };
        let (drive, store, versions) =
            self.recover(image, OPENINGS).map_err(|what| format!("{drawn:?}, to go on: {what}"))?;
        self.medium = Crashing::new(store.space().media().memory().clone(), BLOCK_BYTES);
        self.ledger.adopt(&versions);
        (self.drive, self.store) = (drive, store);
        self.tally.adopted += 1;
        Ok(())
    }

    /// Opens an image as after a power failure, and checks every sector. Unless `cut_openings` is 0, also cuts the
    /// power during the opening, opens the image again, and so on, at most `cut_openings` openings deep.
    fn recover(&mut self, image: Memory, cut_openings: u32) -> Result<Recovered, String> {
        self.tally.images += 1;
        // On a host-managed drive the work itself destroys sectors, and the check reports them.
        let is_checked = self.trial.is_checked && !self.drive.layer.is_host_managed();
        if is_checked && below(&mut self.random, 16) == 0 {
            let checked = check_image(image.clone(), "cut image", &mut |_, _| {}).map_err(|error| error.to_string())?;
            if let Some(finding) = checked.findings.first() {
                return Err(format!("the check finds {}: {finding}", checked.findings.len()));
            }
        }
        let before = image.clone();
        let medium = Recorder::new(image).with_flush_waits(self.trial.seed % 2 == 1);
        let opened = Store::open_bounded(medium, "cut image", self.trial.bounds, self.trial.prepare);
        let (mut drive, mut store) = opened.map_err(|error| format!("opening fails: {error}"))?;
        drive.layer.self_check().map_err(|violation| violation.to_string())?;
        let versions = read_all(drive.layer.as_mut(), &mut store)?;
        if let Some(lba) = self.ledger.first_forbidden(&versions) {
            let (version, values) = (versions[lba as usize], self.ledger.of(lba));
            return Err(format!("LBA {lba} reads as version {version}, where {values:?} are allowed"));
        }
        let events = store.space_mut().media_mut().take_events();
        if cut_openings > 0 {
            let is_first = cut_openings == OPENINGS;
            if is_first || below(&mut self.random, LATER_OPENINGS) == 0 {
                let cut = self.cut_opening(before, &events, cut_openings);
                cut.map_err(|what| format!("the opening is cut: {what}"))?;
            }
        }
        Ok((drive, store, versions))
    }

    /// Cuts the power during an opening that did `events` to `image`: at several of its writes if it is the first
    /// opening after the work, else at one.
    fn cut_opening(&mut self, image: Memory, events: &[Event], cut_openings: u32) -> Result<(), String> {
        // If there is nothing to recover, an opening only writes the state, which is similar for all images.
        let acts = events.iter().filter(|event| **event != Event::Flush).count() as u64;
        if acts <= 1 && below(&mut self.random, 16) != 0 {
            return Ok(());
        }
        let wanted: Vec<u64> = (0..if cut_openings == OPENINGS { OPENING_ACTS } else { 1 })
            .map(|_| below(&mut self.random, acts))
            .collect();
        let mut medium = Crashing::new(image, BLOCK_BYTES);
        let mut act = 0;
        for event in events {
            event.apply(&mut medium);
            if *event == Event::Flush {
                continue;
            }
            if wanted.contains(&act) {
                let choices = subsets::of(&medium, &mut self.random);
                let choice = choices[below(&mut self.random, choices.len() as u64) as usize];
                self.tally.openings_cut += 1;
                self.tally.later_openings_cut += u64::from(cut_openings < OPENINGS);
                self.recover(choice.cut(&medium), cut_openings - 1).map_err(|what| format!("{choice:?}: {what}"))?;
            }
            act += 1;
        }
        Ok(())
    }
}

/// Returns the versions of all sectors, read from the places that the layer's lookup gives.
fn read_all(layer: &mut dyn Layer, store: &mut Store<Recorder>) -> Result<Vec<u64>, String> {
    let sector_bytes = store.header().sector_bytes as usize;
    let capacity = layer.capacity();
    let (mut pieces, mut plan, mut next) = (Vec::new(), Plan::new(), 0);
    layer.lookup(Lba(0), capacity, &mut pieces);
    plan.open(GroupKind::Host);
    for piece in &pieces {
        if piece.lba.0 != next {
            return Err(format!("lookup goes from LBA {next} to {}", piece.lba.0));
        }
        next += piece.sectors.0;
        if let Some((medium, pba)) = piece.at {
            plan.access(StepOp::Read, medium, Kind::Data, Cause::Host, pba, piece.lba, piece.sectors);
        }
    }
    if next != capacity.0 {
        return Err(format!("lookup ends at LBA {next} of {}", capacity.0));
    }
    if layer.is_host_managed() {
        return (0..capacity.0).map(|lba| read_one(layer, store, lba)).collect();
    }
    let mut bytes = vec![0; capacity.0 as usize * sector_bytes];
    let mut transfers = [Transfer { lba: 0, data: Data::Read(&mut bytes) }];
    store.execute(&plan, &mut transfers).map_err(|error| error.to_string())?;
    bytes.chunks_exact(sector_bytes).enumerate().map(|(lba, sector)| version_in(sector, lba as u64)).collect()
}

/// Returns the version of sector `lba` on a host-managed drive, or [`LOST`] if the sector was destroyed.
fn read_one(layer: &mut dyn Layer, store: &mut Store<Recorder>, lba: u64) -> Result<u64, String> {
    let mut plan = Plan::new();
    layer.plan(&[Command::read(lba, 1)], &mut plan);
    let mut sector = vec![0; store.header().sector_bytes as usize];
    match store.execute(&plan, &mut [Transfer { lba, data: Data::Read(&mut sector) }]) {
        Ok(()) => version_in(&sector, lba),
        Err(DeviceError::Destroyed { .. }) => Ok(LOST),
        Err(error) => Err(error.to_string()),
    }
}
