//! Service: commands leave the queue, the layer plans them, the mechanics time the plan, and the times are counted.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Operation, Pba, SimDuration, SimTime};
use imbrex_layer::{GroupKind, Medium, Plan, Step, StepOp};
use imbrex_trace::Source;

use super::Engine;
use crate::carrier::{Carrier, StepError};
use crate::metrics::run::HeadSample;
use crate::observer::{IoRecord, Observer};
use crate::operation::{self, Purpose, WriteBack, lay_out};
use crate::queue::{Slot, Waiting};
use crate::results::Integrity;
use crate::timing::PlanTime;

/// The times of an operation.
pub(super) struct Span {
    pub begin: SimTime,
    /// Time from which on the plan was carried out. `None` if the plan was not timed phase by phase.
    pub from: Option<SimTime>,
    pub host_end: SimTime,
    pub end: SimTime,
}

/// The answer to a request.
pub(super) struct Answer<'a> {
    pub start: SimTime,
    pub end: SimTime,
    pub time: &'a PlanTime,
    pub from_cache: bool,
}

impl<S: Source, O: Observer, C: Carrier> Engine<S, O, C> {
    pub(super) fn take(&mut self, slot: Slot) -> Waiting {
        let waiting = self.queue.take(slot);
        self.queued_changes -= usize::from(waiting.command.operation != Operation::Read);
        self.queued_for_cache -= usize::from(self.is_cacheable(&waiting.command));
        waiting
    }

    /// Serves the command in `slot`, with those that the layer lets join.
    pub(super) fn serve(&mut self, slot: Slot) -> Result<(), StepError<C::Error>> {
        self.batch.clear();
        self.commands.clear();
        let chosen = self.take(slot);
        self.commands.push(chosen.command);
        self.batch.push(chosen);
        let joinable = self.drive.layer.joinable(&self.commands[0]);
        if !joinable.is_empty() {
            self.gather(&joinable);
        }
        if self.cache.is_on() {
            self.discard_overtaken();
        }
        self.prefetch_next();
        if let Some(target) = &chosen.target {
            self.timing.actuator_mut().expect(*target);
        }
        let ready = self.batch.iter().map(|waiting| waiting.entry).max().expect("a batch is not empty")
            + SimDuration(self.drive.host.overhead_ns);
        let begin = self.now.max(self.batch[0].entry);
        let start = self.now.max(ready);
        if self.controller.is_none() {
            self.metrics.parts.overhead += start.since(begin).0;
        }
        self.make_plan();
        let outcome = self.carrier.serve(&self.batch, &self.plan, self.drive.layer.as_ref());
        if self.controller.is_some() {
            return self.serve_through_controller(begin, outcome.as_ref().copied());
        }
        // A read that the drive began by look-ahead is timed from that time on, and answered no sooner than now.
        let from = self.read_ahead.begun(&self.commands, &self.plan).map_or(start, |begun| begun.min(start));
        let time = self.carry_out_for_host(from);
        let end = (from + time.host).max(start);
        let free = (from + time.whole).max(end);
        self.report(Span { begin, from: Some(from), host_end: end, end: free }, None);
        self.admit(end)?;
        self.complete_batch(begin, end, &time, outcome.as_ref().copied());
        self.now = free;
        Ok(())
    }

    /// Drops from the cache the sectors that the batch writes, destroys or trims past it. If the layer keeps no trims,
    /// trimmed sectors keep their contents: then dirty sectors stay, because they are newer than those on the medium.
    fn discard_overtaken(&mut self) {
        let keeps_trims = self.drive.layer.keeps_trims();
        for index in 0..self.commands.len() {
            let command = self.commands[index];
            let overtakes = match command.operation {
                Operation::Write => true,
                Operation::Trim => keeps_trims,
                Operation::Read | Operation::Flush => false,
            };
            if overtakes {
                self.cache.discard(&command);
                self.carrier.discard(&command);
            }
            if command.operation == Operation::Write {
                self.discard_destroyed_by(&command);
            }
        }
    }

    /// Serves the batch, whose plan is made, through the detailed controller; the arm is free from now on.
    fn serve_through_controller(
        &mut self,
        begin: SimTime,
        outcome: Result<(), &C::Error>,
    ) -> Result<(), StepError<C::Error>> {
        let (command, entry, free) = (self.commands[0], self.batch[0].entry, self.now);
        let run = one_run(&self.commands, &self.plan);
        let controller = self.controller.as_mut().expect("called only where there is one");
        let mut timed_from = None;
        let (time, end, free) = if let Some(run) = run {
            let served = controller.serve(self.timing.actuator_mut(), &command, run, entry, free);
            self.timing.count(&self.plan);
            let begin = begin.min(served.answered);
            let (seek, rotation, transfer) = (served.seek, served.rotation, served.transfer);
            let host = served.answered.since(begin);
            let time =
                PlanTime { host, whole: served.free.since(begin), seek, rotation, transfer, ..PlanTime::default() };
            (time, served.answered, served.free)
        } else {
            let (from, after) = controller.pass_by(self.timing.actuator_mut(), &command, entry);
            let start = from.max(free);
            timed_from = Some(start);
            let time = self.timing.run(&self.plan, start);
            let end = start + time.host + after;
            (time, end, (start + time.whole).max(end))
        };
        let extra = if self.slow.is_empty() { SimDuration::ZERO } else { self.slow.extra(&self.commands) };
        let (end, free) = (end + extra, free + extra);
        self.account(begin.min(end), end, &time);
        self.look_at(begin, free);
        self.report(Span { begin, from: timed_from, host_end: end.max(begin), end: free.max(begin) }, None);
        self.admit(end)?;
        self.complete_batch(begin.min(end), end, &time, outcome);
        self.now = free.max(self.now);
        Ok(())
    }

    /// Passes the operation that was just carried out to the observer, if it wants operations. `due` is the reason of a
    /// write-back of the cache; otherwise the operation serves the batch.
    #[inline]
    pub(super) fn report(&mut self, span: Span, due: Option<WriteBack>) {
        if self.observer.wants_operations() {
            self.report_operation(&span, due);
        }
    }

    #[cold]
    fn report_operation(&mut self, span: &Span, due: Option<WriteBack>) {
        let purpose = match due {
            Some(due) => Purpose::WriteBack(due, &self.written_back),
            None if self.commands.is_empty() => Purpose::Background,
            None => Purpose::Serve(&self.batch),
        };
        let &Span { begin, from, host_end, end } = span;
        let segments = if from.is_some() { self.timing.segments() } else { &[] };
        lay_out(segments, begin, from.unwrap_or(begin), end, &mut self.stretches);
        let (commands, plan, stretches) = (&self.commands, &self.plan, &self.stretches);
        self.observer.operation(&operation::Operation { purpose, begin, host_end, end, commands, plan, stretches });
    }

    /// Counts the parts of a service from `begin` to `end`. Time used by neither arm nor platter is counted as overhead
    /// of controller and bus.
    fn account(&mut self, begin: SimTime, end: SimTime, time: &PlanTime) {
        let parts = &mut self.metrics.parts;
        parts.seek += time.seek.0;
        parts.rotation += time.rotation.0;
        parts.transfer += time.transfer.0;
        parts.cleaning += time.cleaning.0;
        let mechanical = time.seek + time.rotation + time.transfer + time.cleaning_before_host;
        parts.overhead += end.since(begin).saturating_sub(mechanical).0;
        self.spend_on_cleaning(begin, time.cleaning);
    }

    fn spend_on_cleaning(&mut self, from: SimTime, time: SimDuration) {
        self.cleaning.spend(from, time);
        if time.0 > 0 {
            self.metrics.own_work.spend(from, time);
        }
    }

    /// Returns the position of the head in the current plan, which ends at `end`: if the layer did work of its own, at the
    /// end of the last phase of that work.
    fn head_sample(&self, end: SimTime) -> HeadSample {
        let actuator = self.timing.actuator();
        let own = self.plan.phases.iter().enumerate().rev().find(|(_, phase)| phase.kind != GroupKind::Host);
        let kind = own.map_or(GroupKind::Host, |(_, phase)| phase.kind);
        let on_disk = |step: &&Step| step.is_access() && step.medium == Medium::Disk;
        let last = own.and_then(|(index, _)| self.plan.steps_of(index).iter().rev().find(on_disk));
        let radial_track = match last {
            Some(step) => self.drive.disk.geometry.locate(step.pba).radial_track,
            None => actuator.radial_track(),
        };
        HeadSample { at_ns: end.0, radial_track, kind }
    }

    /// Moves into the batch waiting commands that begin in the sectors `joinable` and may be served in the same
    /// operation.
    fn gather(&mut self, joinable: &Range<Lba>) {
        // Commands that enter the drive while the batch is assembled are too late for it, so one search is enough.
        let mut joining = std::mem::take(&mut self.joining);
        self.queue.beginning_within(joinable, &mut joining);
        for &slot in &joining {
            let candidate = self.queue.get(slot).command;
            if self.drive.layer.joins(&self.commands, &candidate) && self.queue.hazard(slot) == slot {
                let waiting = self.take(slot);
                self.commands.push(candidate);
                self.batch.push(waiting);
            }
        }
        self.joining = joining;
    }

    pub(super) fn make_plan(&mut self) {
        let capacity = self.drive.layer.capacity();
        for command in &self.commands {
            // Requests past the end of the drive are rejected at entry.
            assert!(command.end().0 <= capacity.0, "{command:?} reaches past the layer's {} sectors", capacity.0);
        }
        self.plan.clear();
        self.drive.layer.plan(&self.commands, &mut self.plan);
    }

    /// Carries out the current plan from `start` on, and counts the parts of its service.
    pub(super) fn carry_out_for_host(&mut self, start: SimTime) -> PlanTime {
        let time = self.carry_out(start);
        self.metrics.parts.seek += time.seek.0;
        self.metrics.parts.rotation += time.rotation.0;
        self.metrics.parts.transfer += time.transfer.0;
        time
    }

    /// Times and checks the current plan.
    pub(super) fn carry_out(&mut self, start: SimTime) -> PlanTime {
        let mut time = self.timing.run(&self.plan, start);
        if !self.slow.is_empty() {
            let extra = self.slow.extra(&self.commands);
            time.host += extra;
            time.whole += extra;
            self.metrics.parts.overhead += extra.0;
        }
        self.read_ahead.carried_out(&self.commands, &self.plan, start + time.whole);
        self.metrics.parts.cleaning += time.cleaning.0;
        self.spend_on_cleaning(start, time.cleaning);
        self.look_at(start, start + time.whole);
        time
    }

    /// Checks and reports the current plan, carried out from `start` to `end`.
    fn look_at(&mut self, start: SimTime, end: SimTime) {
        let sample = self.head_sample(end);
        self.metrics.head.see(sample);
        if let Some(checker) = &mut self.checker
            && let Err(error) = checker.check(&self.plan, &self.commands, self.drive.layer.as_ref())
        {
            self.integrity = Integrity::Violation { violation: error.to_string(), request: self.requests };
            self.checker = None;
        }
        if self.observer.wants_plans() {
            self.observer.plan(start, &self.commands, &self.plan);
        }
    }

    fn complete_batch(&mut self, start: SimTime, end: SimTime, time: &PlanTime, outcome: Result<(), &C::Error>) {
        let cleaning_so_far = self.cleaning.before + time.cleaning_before_host;
        let batch = std::mem::take(&mut self.batch);
        for (number, waiting) in batch.iter().enumerate() {
            let share = time.share(number, batch.len());
            let answer = Answer { start: start.max(waiting.entry), end, time: &share, from_cache: false };
            self.complete(waiting, &answer, cleaning_so_far, outcome);
        }
        self.leave(batch.len(), end);
        self.batch = batch;
    }

    /// Removes `count` requests, which left the queue at `end`, from the outstanding ones.
    pub(super) fn leave(&mut self, count: usize, end: SimTime) {
        if self.outstanding >= self.options.arrival.depth() {
            self.clock.place_freed(end);
        }
        self.outstanding -= count;
        if self.outstanding == 0 {
            self.clock.drained(end);
        }
    }

    pub(super) fn complete(
        &mut self,
        waiting: &Waiting,
        answer: &Answer<'_>,
        cleaning: SimDuration,
        outcome: Result<(), &C::Error>,
    ) {
        let &Answer { start, end, time, from_cache } = answer;
        self.carrier.complete(waiting.sequence, waiting.entry, end, outcome);
        let command = &waiting.command;
        self.metrics.complete(command.operation, command.sectors, waiting.entry, start, end);
        self.timing.cleaning.stall(cleaning.saturating_sub(waiting.cleaning_before));
        if self.observer.wants_ios() {
            self.observer.io(&IoRecord {
                sequence: waiting.sequence,
                command: *command,
                arrival: waiting.arrival,
                due: waiting.due,
                entry: waiting.entry,
                start,
                end,
                time: *time,
                from_cache,
                radial_track: self.timing.actuator().radial_track(),
            });
        }
        self.end_warmup_after(waiting.sequence, end);
    }

    /// Begins to measure at `at` if request number `sequence`, which is answered then, is the last of the warm-up.
    pub(super) fn end_warmup_after(&mut self, sequence: u64, at: SimTime) {
        if sequence + 1 != self.options.warmup_requests {
            return;
        }
        self.metrics = self.metrics.restarted(at);
        self.timing.counters = Default::default();
        self.timing.cleaning = Default::default();
    }
}

/// Returns the first sector on the platters of a single command's plan, if the plan is one run in the command's
/// direction.
fn one_run(commands: &[Command], plan: &Plan) -> Option<Pba> {
    let ([command], Some(first)) = (commands, plan.steps.first()) else { return None };
    let op = match command.operation {
        Operation::Read => StepOp::Read,
        Operation::Write => StepOp::Write,
        Operation::Flush | Operation::Trim => return None,
    };
    let mut end = first.pba;
    for step in plan.steps.iter().filter(|step| step.is_access()) {
        if step.op != op || step.medium != Medium::Disk || step.pba != end {
            return None;
        }
        end = Pba(end.0 + step.sectors as u64);
    }
    let whole = end.0 - first.pba.0 == command.sectors as u64 && command.sectors > 0;
    (whole && plan.steps.iter().all(|step| step.op != StepOp::Drop)).then_some(first.pba)
}
