//! The checker: executes plans symbolically and checks every step against the sectors that writes destroy.
//!
//! Versions are numbers of host writes, from 1. Version 0 is zeros: the contents of a new drive, of a trimmed sector,
//! and of a sector that was written without being staged.
//!
//! Invariants proved of the layer (a [`Fault`] each):
//! 1. A data read finds its own logical sectors, not destroyed; a host read returns the newest version of every sector.
//! 2. After a plan, the place to which [`Layer::lookup`] points holds the newest version, intact. This is checked for
//!    every sector that the plan wrote or trimmed, and for every sector whose newest copy it overwrote or destroyed.
//! 3. At a barrier, every sector whose newest copy was overwritten or destroyed since the last barrier is intact
//!    somewhere (`power_safe` only): in its old place, in the place of its last copy, in the place before that, or
//!    where the layer points. For zeros copied of a trimmed sector, the place before that is the record of the trim.
//! 4. No step leaves the medium.
//!
//! On a host-managed drive, a sector that the host's own write destroys is no longer checked, and reading it is an
//! error of the host. Every other destruction is still the layer's fault.
//!
//! Cost: proportional to the number of runs that steps touch. Power cuts are not checked here but in [`super::cuts`].

use imbrex_disk::integrity::{Contents, IntegrityMap};
use imbrex_disk::{Command, Extent, Lba, Operation, Pba, Sectors, SharedDisk};

use super::fault::{CheckError, Fault, WriteNumber};
use super::rules::{RuleBreaks, Rules};
use crate::layer::{Layer, Piece};
use crate::map::run_map::{Along, RunMap};
use crate::plan::{GroupKind, Kind, Medium, Plan, Step, StepOp};

/// A place on a medium; within a run, the place advances with the sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct At {
    medium: Medium,
    pba: u64,
}

impl Along for At {
    fn along(self, offset: u64) -> At {
        At { pba: self.pba + offset, ..self }
    }
}

/// The place of a sector before it was copied, or the record of its trim if it had no place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    Place(At),
    Trimmed,
}

impl Along for Origin {
    fn along(self, offset: u64) -> Origin {
        match self {
            Origin::Place(at) => Origin::Place(at.along(offset)),
            Origin::Trimmed => Origin::Trimmed,
        }
    }
}

/// A run of logical sectors with a copy at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Copied {
    lba: u64,
    sectors: u64,
    at: At,
}

/// Checks the plans of one layer on one disk: executes them on a model of the medium, which knows the version of every
/// sector, and reports the first step that loses or destroys data. On a host-managed drive, it only counts the sectors
/// that the host's own writes destroy.
#[derive(Debug)]
pub struct Checker {
    disk: SharedDisk,
    power_safe: bool,
    /// Whether sectors that the host's own writes destroy are no longer checked.
    is_host_managed: bool,
    /// The rules that the host has to obey, if the drive is host-managed.
    rules: Option<Rules>,
    capacity: u64,
    keeps_trims: bool,
    /// Contents of the platters and of the flash.
    media: [IntegrityMap; 2],
    /// Newest version by LBA; sectors without an entry have version 0.
    truth: RunMap<u64>,
    /// Place to which the newest version of each sector was last written.
    home: RunMap<At>,
    /// Place of a sector before its last copy. If the layer abandons the copy, this original is the one that counts.
    origin: RunMap<Origin>,
    /// Sectors that are absent in the layer's map and have not been copied since. Recovery needs only the record of the
    /// trim, so older zeros on the medium may be overwritten.
    absent: RunMap<()>,
    /// Staging of the current host group, and of the current background group.
    staging: [RunMap<u64>; 2],
    /// Versions that the current commands write, by LBA.
    host: RunMap<u64>,
    /// Versions that host groups have read for the current commands.
    delivered: RunMap<u64>,
    /// Copies of newest versions that were overwritten or destroyed since the last barrier.
    endangered: Vec<Copied>,
    /// Logical sectors to look up at the end of the plan.
    touched: RunMap<()>,
    /// Data written by the current plan.
    copies: Vec<Copied>,
    /// Whether one of the current commands is a read.
    host_reads: bool,
    host_writes: u64,
    plans: u64,
    destroyed: Vec<Extent>,
    pieces: Vec<Piece>,
}

impl Checker {
    /// Returns a checker for the plans of `layer` on a new `disk`. At first every logical sector is zeros (version 0)
    /// at the place where the layer looks it up. If `power_safe` is set, the checker also tests at every barrier that a
    /// power cut loses no sector whose newest copy was overwritten or destroyed since the barrier before.
    pub fn new(disk: &SharedDisk, layer: &dyn Layer, power_safe: bool) -> Checker {
        let mut checker = Checker {
            disk: disk.clone(),
            power_safe,
            is_host_managed: layer.is_host_managed(),
            rules: layer.is_host_managed().then(|| Rules::of(layer)),
            capacity: layer.capacity().0,
            keeps_trims: layer.keeps_trims(),
            media: [IntegrityMap::new(), IntegrityMap::new()],
            truth: RunMap::default(),
            home: RunMap::default(),
            origin: RunMap::default(),
            absent: RunMap::default(),
            staging: [RunMap::default(), RunMap::default()],
            host: RunMap::default(),
            delivered: RunMap::default(),
            endangered: Vec::new(),
            touched: RunMap::default(),
            copies: Vec::new(),
            host_reads: false,
            host_writes: 0,
            plans: 0,
            destroyed: Vec::new(),
            pieces: Vec::new(),
        };
        checker.take_factory_contents(layer);
        checker
    }

    fn take_factory_contents(&mut self, layer: &dyn Layer) {
        layer.lookup(Lba(0), layer.capacity(), &mut self.pieces);
        for piece in self.pieces.drain(..) {
            if let Some((medium, pba)) = piece.at {
                let contents = Contents::Holds { lba: piece.lba, version: 0 };
                self.media[medium as usize].write(Extent::new(pba, piece.sectors), contents);
                self.home.insert(piece.lba.0, piece.sectors.0, At { medium, pba: pba.0 });
            }
        }
    }

    /// Executes `plan`, which `layer` made for `commands`, and checks it. `commands` is empty for background work. The
    /// plans of a layer must be passed in the order in which it made them, each before the layer makes the next one.
    ///
    /// # Errors
    ///
    /// The first fault that the checker finds, with the number of the plan and, if it was found at a step, the step.
    pub fn check(&mut self, plan: &Plan, commands: &[Command], layer: &dyn Layer) -> Result<(), CheckError> {
        self.plans += 1;
        self.begin(commands);
        let mut number = 0;
        for (index, phase) in plan.phases.iter().enumerate() {
            if phase.opens_group {
                self.staging[(phase.kind != GroupKind::Host) as usize].clear();
            }
            for step in plan.steps_of(index) {
                let judged = self.step(step, phase.kind == GroupKind::Host, number, layer);
                judged.map_err(|fault| CheckError { plan: self.plans, step: Some((number, *step)), fault })?;
                number += 1;
            }
        }
        self.finish(commands, layer).map_err(|fault| CheckError { plan: self.plans, step: None, fault })
    }

    /// Checks `command` of the host, which arrives at the drive as request number `request` (counted from 1), against
    /// the rules of the drive, and counts violations. Has no effect if the layer is not host-managed.
    pub fn entered(&mut self, command: &Command, request: u64) {
        if let Some(rules) = &mut self.rules {
            rules.entered(command, request);
        }
    }

    /// Returns the counts of the host's violations of the rules of a host-managed drive, and of the live sectors that
    /// its writes destroyed. Returns `None` if there are none, or if the layer is not host-managed.
    pub fn rule_breaks(&self) -> Option<&RuleBreaks> {
        self.rules.as_ref().and_then(Rules::breaks)
    }

    /// Returns the number of write commands in the plans checked so far. The last of them wrote the newest version.
    pub fn host_writes(&self) -> u64 {
        self.host_writes
    }

    fn begin(&mut self, commands: &[Command]) {
        self.host.clear();
        self.delivered.clear();
        self.endangered.clear();
        self.touched.clear();
        self.copies.clear();
        self.host_reads = commands.iter().any(|command| command.operation == Operation::Read);
        for command in commands {
            let (lba, sectors) = (command.lba.0, command.sectors as u64);
            match command.operation {
                Operation::Write => {
                    self.host_writes += 1;
                    self.host.insert(lba, sectors, self.host_writes);
                }
                Operation::Trim if self.keeps_trims => self.host.insert(lba, sectors, 0),
                Operation::Trim => self.rules.iter_mut().for_each(|rules| rules.trimmed(lba, sectors)),
                Operation::Read | Operation::Flush => {}
            }
        }
    }

    fn step(&mut self, step: &Step, host_group: bool, number: usize, layer: &dyn Layer) -> Result<(), Fault> {
        self.check_bounds(step)?;
        let by = WriteNumber::new(self.plans, number);
        match (step.op, step.kind) {
            (StepOp::Read, Kind::Data) => self.read(step, host_group),
            (StepOp::Drop, _) => {
                self.stage(host_group, step.lba.0, step.sectors as u64, 0);
                Ok(())
            }
            (StepOp::Write, kind) => {
                self.damage(step, host_group, by);
                match kind {
                    Kind::Data => self.write_data(step, host_group),
                    _ => self.media[step.medium as usize].write(step.extent(), Contents::Other),
                }
                Ok(())
            }
            (StepOp::Barrier, _) => self.barrier(layer),
            (StepOp::Read, _) | (StepOp::Note, _) => Ok(()),
        }
    }

    fn check_bounds(&self, step: &Step) -> Result<(), Fault> {
        let holds_data = step.kind == Kind::Data && matches!(step.op, StepOp::Read | StepOp::Write | StepOp::Drop);
        if holds_data && step.lba.0 + step.sectors as u64 > self.capacity {
            return Err(Fault::OutOfBounds);
        }
        if !step.is_access() {
            return Ok(());
        }
        match step.medium {
            Medium::Disk if step.extent().end().0 > self.disk.geometry.sectors().0 => Err(Fault::OutOfBounds),
            Medium::Flash if self.disk.flash.is_none() => Err(Fault::NoFlash),
            Medium::Disk | Medium::Flash => Ok(()),
        }
    }

    fn stage(&mut self, host_group: bool, lba: u64, sectors: u64, version: u64) {
        self.staging[!host_group as usize].insert(lba, sectors, version);
        if host_group && self.host_reads {
            self.delivered.insert(lba, sectors, version);
        }
    }

    fn read(&mut self, step: &Step, host_group: bool) -> Result<(), Fault> {
        let mut fault = None;
        let delivers = host_group && self.host_reads;
        let (truth, is_host_managed) = (&self.truth, self.is_host_managed);
        let (staging, delivered) = (&mut self.staging[!host_group as usize], &mut self.delivered);
        self.media[step.medium as usize].for_each(step.extent(), |run, contents| {
            let lba = step.lba + (run.start - step.pba);
            let version = match contents {
                Contents::Never => 0,
                Contents::Holds { lba: held, version } if held == lba => version,
                Contents::Destroyed { .. } if is_host_managed => {
                    // The host gets an error and no bytes, so it cannot take them for an older version.
                    truth.cover(lba.0, run.sectors.0, |start, length, newest| {
                        staging.insert(start, length, newest.unwrap_or(0));
                        if delivers {
                            delivered.insert(start, length, newest.unwrap_or(0));
                        }
                    });
                    return;
                }
                Contents::Destroyed { by } => {
                    fault.get_or_insert(Fault::ReadDestroyed { pba: run.start, by: WriteNumber(by) });
                    return;
                }
                found @ (Contents::Holds { .. } | Contents::Other) => {
                    fault.get_or_insert(Fault::ReadWrong { lba, pba: run.start, found });
                    return;
                }
            };
            staging.insert(lba.0, run.sectors.0, version);
            if delivers {
                delivered.insert(lba.0, run.sectors.0, version);
            }
        });
        fault.map_or(Ok(()), Err)
    }

    /// Records the newest copies that the write overwrites or destroys, and marks the destroyed sectors.
    fn damage(&mut self, step: &Step, host_group: bool, by: WriteNumber) {
        let mut destroyed = std::mem::take(&mut self.destroyed);
        destroyed.clear();
        if step.medium == Medium::Disk {
            self.disk.recording.destroys(&self.disk.geometry, step.extent(), &mut destroyed);
        }
        self.endanger(step.medium, step.extent());
        let is_given_up = self.is_host_managed && host_group;
        for extent in &destroyed {
            if is_given_up {
                self.give_up(step.medium, *extent);
            } else {
                self.endanger(step.medium, *extent);
            }
            self.media[step.medium as usize].destroy(*extent, by.0);
        }
        self.destroyed = destroyed;
    }

    /// Counts the live sectors of `extent`, which the host's own write is about to destroy.
    fn give_up(&mut self, medium: Medium, extent: Extent) {
        let Some(rules) = &mut self.rules else { return };
        self.media[medium as usize].for_each(extent, |run, contents| match contents {
            Contents::Holds { lba, version } if version > 0 => rules.destroyed(lba.0, run.sectors.0),
            _ => {}
        });
    }

    /// Records the newest copies in `extent`, which is about to be overwritten or destroyed.
    fn endanger(&mut self, medium: Medium, extent: Extent) {
        let (truth, host, absent) = (&self.truth, &self.host, &self.absent);
        let (endangered, touched) = (&mut self.endangered, &mut self.touched);
        self.media[medium as usize].for_each(extent, |run, contents| {
            let Contents::Holds { lba, version } = contents else { return };
            for_each_acceptable(truth, host, lba.0, run.sectors.0, version, |start, sectors, is_newest| {
                if !is_newest {
                    return;
                }
                absent.cover(start, sectors, |start, sectors, trimmed| {
                    if trimmed.is_none() {
                        let at = At { medium, pba: run.start.0 + (start - lba.0) };
                        endangered.push(Copied { lba: start, sectors, at });
                        touched.insert(start, sectors, ());
                    }
                });
            });
        });
    }

    fn write_data(&mut self, step: &Step, host_group: bool) {
        let (lba, sectors) = (step.lba.0, step.sectors as u64);
        self.rules.iter_mut().for_each(|rules| rules.written(lba, sectors));
        let (host, staging) = (&self.host, &self.staging[!host_group as usize]);
        let (media, home, truth) = (&mut self.media[step.medium as usize], &mut self.home, &self.truth);
        let (absent, origin) = (&mut self.absent, &mut self.origin);
        let at = |start: u64| At { medium: step.medium, pba: step.pba.0 + (start - lba) };
        let mut put = |start: u64, length: u64, version: u64| {
            let extent = Extent::new(Pba(at(start).pba), Sectors(length));
            media.write(extent, Contents::Holds { lba: Lba(start), version });
            for_each_acceptable(truth, host, start, length, version, |start, length, is_newest| {
                if is_newest {
                    home.cover(start, length, |start, length, old| {
                        if let Some(old) = old.filter(|old| *old != at(start)) {
                            origin.insert(start, length, Origin::Place(old));
                        }
                    });
                    absent.cover(start, length, |start, length, trimmed| {
                        if trimmed.is_some() {
                            origin.insert(start, length, Origin::Trimmed);
                        }
                    });
                    home.insert(start, length, at(start));
                    absent.remove(start, length);
                }
            });
        };
        staging.cover(lba, sectors, |start, length, version| put(start, length, version.unwrap_or(0)));
        if host_group {
            host.cover(lba, sectors, |start, length, version| {
                if let Some(version) = version {
                    put(start, length, version);
                }
            });
        }
        self.copies.push(Copied { lba, sectors, at: at(lba) });
    }

    fn barrier(&mut self, layer: &dyn Layer) -> Result<(), Fault> {
        let endangered = std::mem::take(&mut self.endangered);
        if self.power_safe {
            for copied in &endangered {
                self.find_intact(copied, layer)?;
            }
        }
        self.endangered = endangered;
        self.endangered.clear();
        Ok(())
    }

    /// Checks invariant 3 for one run. Tries its old place, the place of its last copy, the place before that, the
    /// place to which the layer points, and every place that this plan wrote.
    fn find_intact(&mut self, copied: &Copied, layer: &dyn Layer) -> Result<(), Fault> {
        let mut missing = Vec::new();
        self.not_intact(Some(copied.at), copied.lba, copied.sectors, &mut missing);
        if missing.is_empty() {
            return Ok(());
        }
        self.not_intact_in(&self.home, Some, &mut missing);
        let place = |origin| match origin {
            Origin::Place(at) => Some(at),
            Origin::Trimmed => None,
        };
        self.not_intact_in(&self.origin, place, &mut missing);
        let mut still = std::mem::take(&mut missing);
        for (lba, sectors) in still.drain(..) {
            self.look_up(lba, sectors, layer)?;
            for piece in &self.pieces {
                let at = piece.at.map(|(medium, pba)| At { medium, pba: pba.0 });
                self.not_intact(at, piece.lba.0, piece.sectors.0, &mut missing);
            }
        }
        match missing.into_iter().find(|&(lba, sectors)| !self.is_in_a_copy(lba, sectors)) {
            Some((lba, _)) => {
                let at = Pba(copied.at.pba + (lba - copied.lba));
                Err(Fault::Endangered { lba: Lba(lba), at: (copied.at.medium, at) })
            }
            None => Ok(()),
        }
    }

    /// Keeps in `missing` only the parts that are not intact at the place that `places` has for them. `place` returns
    /// `None` for a trimmed part.
    fn not_intact_in<P: Along>(
        &self,
        places: &RunMap<P>,
        place: impl Fn(P) -> Option<At>,
        missing: &mut Vec<(u64, u64)>,
    ) {
        for (lba, sectors) in std::mem::take(missing) {
            places.cover(lba, sectors, |start, length, at| match at {
                Some(at) => self.not_intact(place(at), start, length, missing),
                None => missing.push((start, length)),
            });
        }
    }

    fn is_in_a_copy(&self, lba: u64, sectors: u64) -> bool {
        let mut missing = vec![(lba, sectors)];
        for copied in self.copies.iter().rev() {
            let mut still = Vec::new();
            for (lba, sectors) in missing {
                let from = lba.max(copied.lba);
                let to = (lba + sectors).min(copied.lba + copied.sectors);
                if from >= to {
                    still.push((lba, sectors));
                    continue;
                }
                still.extend((lba < from).then(|| (lba, from - lba)));
                still.extend((to < lba + sectors).then(|| (to, lba + sectors - to)));
                self.not_intact(Some(copied.at.along(from - copied.lba)), from, to - from, &mut still);
            }
            missing = still;
        }
        missing.is_empty()
    }

    /// Appends the parts of a run that `at` does not hold in an acceptable version: the newest, or one in flight.
    fn not_intact(&self, at: Option<At>, lba: u64, sectors: u64, missing: &mut Vec<(u64, u64)>) {
        let (truth, host) = (&self.truth, &self.host);
        let mut judge = |start: u64, length: u64, version: u64| {
            for_each_acceptable(truth, host, start, length, version, |start, length, is_newest| {
                if !is_newest {
                    missing.push((start, length));
                }
            });
        };
        let Some(at) = at else {
            judge(lba, sectors, 0);
            return;
        };
        let mut elsewhere = Vec::new();
        self.media[at.medium as usize].for_each(Extent::new(Pba(at.pba), Sectors(sectors)), |run, contents| {
            let start = lba + (run.start.0 - at.pba);
            match contents {
                Contents::Never => judge(start, run.sectors.0, 0),
                Contents::Holds { lba: held, version } if held.0 == start => judge(start, run.sectors.0, version),
                Contents::Destroyed { .. } if self.is_host_managed => {}
                Contents::Holds { .. } | Contents::Other | Contents::Destroyed { .. } => {
                    elsewhere.push((start, run.sectors.0));
                }
            }
        });
        missing.append(&mut elsewhere);
    }

    /// Fills `self.pieces` with the layer's look-up, and checks that it covers exactly the requested sectors.
    fn look_up(&mut self, lba: u64, sectors: u64, layer: &dyn Layer) -> Result<(), Fault> {
        self.pieces.clear();
        layer.lookup(Lba(lba), Sectors(sectors), &mut self.pieces);
        let mut next = lba;
        for piece in &self.pieces {
            if piece.lba.0 != next || piece.sectors.is_zero() {
                return Err(Fault::BadLookup { lba: Lba(next) });
            }
            next += piece.sectors.0;
        }
        if next != lba + sectors {
            return Err(Fault::BadLookup { lba: Lba(next) });
        }
        Ok(())
    }

    fn finish(&mut self, commands: &[Command], layer: &dyn Layer) -> Result<(), Fault> {
        for command in commands.iter().filter(|command| command.operation == Operation::Read) {
            self.check_delivered(command)?;
        }
        for (start, length, version) in self.host.iter() {
            self.truth.insert(start, length, version);
            self.touched.insert(start, length, ());
        }
        self.host.clear();
        let touched = std::mem::take(&mut self.touched);
        for (lba, sectors, ()) in touched.iter() {
            self.check_at_lookup(lba, sectors, layer)?;
        }
        self.touched = touched;
        Ok(())
    }

    /// Checks invariant 1 for a host read. Sectors that a write joined with it gives may have the old or the new
    /// version.
    fn check_delivered(&self, command: &Command) -> Result<(), Fault> {
        let mut fault = None;
        self.delivered.cover(command.lba.0, command.sectors as u64, |start, length, found| {
            let found = found.unwrap_or(0);
            for_each_acceptable(&self.truth, &self.host, start, length, found, |lba, _, is_newest| {
                if !is_newest {
                    let expected = version_of(&self.truth, lba);
                    fault.get_or_insert(Fault::StaleRead { lba: Lba(lba), expected, found });
                }
            });
        });
        fault.map_or(Ok(()), Err)
    }

    /// Checks invariant 2 for a run.
    fn check_at_lookup(&mut self, lba: u64, sectors: u64, layer: &dyn Layer) -> Result<(), Fault> {
        self.look_up(lba, sectors, layer)?;
        let mut missing = Vec::new();
        for piece in &self.pieces {
            let at = piece.at.map(|(medium, pba)| At { medium, pba: pba.0 });
            self.not_intact(at, piece.lba.0, piece.sectors.0, &mut missing);
            if let Some(&(lba, _)) = missing.first() {
                let at = at.map(|at| at.along(lba - piece.lba.0));
                return Err(self.lost(Lba(lba), at));
            }
        }
        for piece in &self.pieces {
            match piece.at {
                None => self.absent.insert(piece.lba.0, piece.sectors.0, ()),
                Some(_) => self.absent.remove(piece.lba.0, piece.sectors.0),
            }
        }
        Ok(())
    }

    fn lost(&self, lba: Lba, at: Option<At>) -> Fault {
        let mut found = Contents::Never;
        if let Some(at) = at {
            let sector = Extent::new(Pba(at.pba), Sectors(1));
            self.media[at.medium as usize].for_each(sector, |_, contents| found = contents);
        }
        let expected = version_of(&self.truth, lba.0);
        Fault::Lost { lba, expected, at: at.map(|at| (at.medium, Pba(at.pba))), found }
    }
}

fn version_of(truth: &RunMap<u64>, lba: u64) -> u64 {
    let mut found = 0;
    truth.cover(lba, 1, |_, _, version| found = version.unwrap_or(0));
    found
}

/// Splits a run where the answer changes, and calls `visit` with each part and whether `version` is its newest or one
/// in flight.
fn for_each_acceptable(
    truth: &RunMap<u64>,
    host: &RunMap<u64>,
    lba: u64,
    sectors: u64,
    version: u64,
    mut visit: impl FnMut(u64, u64, bool),
) {
    truth.cover(lba, sectors, |start, length, newest| {
        if newest.unwrap_or(0) == version {
            visit(start, length, true);
            return;
        }
        if host.is_empty() {
            visit(start, length, false);
            return;
        }
        host.cover(start, length, |start, length, given| visit(start, length, given == Some(version)));
    });
}

#[cfg(test)]
mod tests;
