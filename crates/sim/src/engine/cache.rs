//! The engine's use of the volatile cache: commands answered from the cache, writes taken into it, and write-back.
//!
//! Invariants:
//! 1. Writes enter the cache in order of entry, and never before an earlier change that they overlap. So a sequential
//!    stream leaves no holes in the cache and is destaged whole.

use std::ops::Range;

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration, SimTime};
use imbrex_trace::Source;

use super::service::{Answer, Span};
use super::{Engine, Job};
use crate::carrier::{Carrier, StepError};
use crate::observer::Observer;
use crate::operation::WriteBack;
use crate::queue::{Slot, Waiting};
use crate::schedule::Schedule;
use crate::timing::PlanTime;
use crate::write_cache::Gap;

/// Time for which an idle drive waits before it writes back, so that a sequential stream can continue. Our own value:
/// no paper gives one.
const DESTAGE_AFTER: SimDuration = SimDuration(1_000_000);

impl<S: Source, O: Observer, C: Carrier> Engine<S, O, C> {
    /// Answers the command from the volatile cache if possible: a write that fits, or a read of sectors that are all
    /// dirty. Returns whether the command was answered.
    pub(super) fn answer_from_cache(&mut self, waiting: &Waiting) -> bool {
        let command = &waiting.command;
        let mut outcome = Ok(());
        let overhead = match command.operation {
            Operation::Read if self.cache.holds(command) => {
                self.carrier.read_from_cache(waiting.sequence, command);
                SimDuration(self.drive.host.overhead_ns)
            }
            Operation::Write
                if !command.fua && self.cache.has_room(command, waiting.entry) && !self.overtakes(command) =>
            {
                outcome = self.take_into_cache(waiting);
                SimDuration(self.drive.host.write_cache_acknowledge_ns)
            }
            _ => return false,
        };
        self.metrics.parts.overhead += overhead.0;
        let end = waiting.entry + overhead;
        self.clock.hold(end, self.outstanding);
        let outcome = outcome.as_ref().copied();
        let answer = Answer { start: waiting.entry, end, time: &PlanTime::default(), from_cache: true };
        self.complete(waiting, &answer, waiting.cleaning_before, outcome);
        true
    }

    /// Takes a write into the cache, which has room. On a caveat disk, the sectors that it destroys are lost from now
    /// on.
    fn take_into_cache(&mut self, waiting: &Waiting) -> Result<(), C::Error> {
        let command = &waiting.command;
        self.carrier.absorb(waiting.sequence, command)?;
        self.discard_destroyed_by(command);
        self.cache.insert(command, waiting.sequence);
        Ok(())
    }

    /// Drops from the cache the sectors that the write `command` destroys, which only a caveat disk permits.
    pub(super) fn discard_destroyed_by(&mut self, command: &Command) {
        if let Some(caveat) = self.caveat {
            self.discard(&caveat.destroyed_by(&(command.lba..command.end())));
        }
    }

    /// Returns whether `command`, entering the cache now, would overtake a waiting change: one that overlaps the
    /// command, must stay in order with it, or waits for room in the cache. Streams that overtake each other leave
    /// holes in the cache, and cannot be destaged whole.
    fn overtakes(&self, command: &Command) -> bool {
        let is_overtaken = |earlier: &Command| {
            earlier.operation != Operation::Read
                && (earlier.overlaps(command) || self.is_cacheable(earlier) || self.queue.keeps_order(earlier, command))
        };
        self.queued_changes > 0 && self.queue.iter().any(|earlier| is_overtaken(&earlier.command))
    }

    /// Returns whether `command` goes through the volatile cache.
    pub(super) fn is_cacheable(&self, command: &Command) -> bool {
        command.operation == Operation::Write && !command.fua && self.cache.could_hold(command)
    }

    /// Returns the command to serve if the scheduler chose `slot`. For a write that waits to enter the cache the
    /// position of the head is irrelevant. So the oldest such write comes first, or a command that this write must not
    /// overtake.
    pub(super) fn in_order_of_entry(&self, slot: Slot) -> Slot {
        if !self.is_cacheable(&self.queue.get(slot).command) {
            return slot;
        }
        let oldest = self.queue.before(slot).find(|&earlier| self.is_cacheable(&self.queue.get(earlier).command));
        oldest.map_or(slot, |oldest| self.queue.hazard(oldest))
    }

    /// Takes the write in `slot` into the cache, which has room now.
    pub(super) fn absorb(&mut self, slot: Slot) {
        let waiting = self.take(slot);
        let outcome = self.take_into_cache(&waiting);
        let start = self.now.max(waiting.entry);
        let end = start.max(waiting.entry + SimDuration(self.drive.host.write_cache_acknowledge_ns));
        let outcome = outcome.as_ref().copied();
        let answer = Answer { start, end, time: &PlanTime::default(), from_cache: true };
        self.complete(&waiting, &answer, self.cleaning.at(end), outcome);
        self.leave(1, end);
    }

    /// Writes back the next dirty range, with the ranges that the layer lets join.
    pub(super) fn destage(&mut self, due: WriteBack) -> Result<(), StepError<C::Error>> {
        let first = match self.options.schedule {
            Schedule::Fifo => self.cache.take_oldest(),
            Schedule::Elevator(_) | Schedule::Sptf(_) => self.cache.take_next(),
        };
        let (first, gap) = first.expect("destaging is a job only while something is dirty");
        self.destage_with(first, gap, due)
    }

    /// Writes all dirty sectors of the volatile cache among `sectors` (exclusive end) back to the medium, beginning at
    /// `at` or as soon as the drive is free, whichever is later. Whole dirty ranges are written, so sectors beside
    /// `sectors` may be written too. So may ranges that must precede them or that the layer joins with them. Does
    /// nothing if none of `sectors` is dirty.
    ///
    /// # Errors
    ///
    /// Returns an error if the carrier fails, or the workload cannot be read.
    pub fn write_back(&mut self, sectors: &Range<Lba>, at: SimTime) -> Result<(), StepError<C::Error>> {
        while let Some((first, gap)) = self.cache.take_within(sectors) {
            self.now = self.now.max(at);
            self.destage_with(first, gap, WriteBack::Order)?;
        }
        Ok(())
    }

    /// Writes back `first`, which was taken out of the cache and left `gap` there, with the ranges that the layer lets
    /// join.
    fn destage_with(&mut self, first: Command, gap: Gap, due: WriteBack) -> Result<(), StepError<C::Error>> {
        self.commands.clear();
        self.commands.push(first);
        self.written_back.clear();
        self.written_back.push(self.cache.taken_sequence());
        if !self.drive.layer.joinable(&first).is_empty() {
            self.gather_dirty(gap);
            self.put_back_rest();
        }
        let start = self.now;
        self.make_plan();
        let carried = self.carrier.destage(&self.commands, &self.plan, self.drive.layer.as_ref());
        let time = self.carry_out_for_host(start);
        self.now = start + time.whole;
        let sectors = self.commands.iter().map(|command| command.sectors as u64).sum();
        self.cache.leave(Sectors(sectors), start, self.now);
        self.report(Span { begin: start, from: Some(start), host_end: self.now, end: self.now }, Some(due));
        self.admit(self.now)?;
        carried.map_err(StepError::Carrier)
    }

    /// Moves into the batch the dirty neighbours that may be written in the same operation.
    fn gather_dirty(&mut self, mut gap: Gap) {
        let (layer, commands, cache) = (self.drive.layer.as_ref(), &mut self.commands, &mut self.cache);
        while let Some(next) = cache.take_after(&mut gap, |next| layer.joins(commands, next)) {
            commands.push(next);
            self.written_back.push(cache.taken_sequence());
        }
        while let Some(previous) = cache.take_before(&mut gap, |previous| layer.joins(commands, previous)) {
            commands.push(previous);
            self.written_back.push(cache.taken_sequence());
        }
    }

    /// Puts the end of a stream back into the cache if the layer prefers to write it with sectors that may follow. The
    /// part put back counts as old, so that a flush waits for it.
    fn put_back_rest(&mut self) {
        let first = self.commands.iter().map(|command| command.lba).min().expect("a destage has a command");
        let end = self.commands.iter().map(Command::end).max().expect("a destage has a command");
        let sectors: u64 = self.commands.iter().map(|command| command.sectors as u64).sum();
        if (end - first).0 != sectors {
            return;
        }
        let Some(cut) = self.drive.layer.stream_cut(first, end) else { return };
        assert!(first < cut && cut < end, "a stream from {first} to {end} is cut at {cut}");
        let (cache, written_back) = (&mut self.cache, &mut self.written_back);
        let mut kept = 0;
        self.commands.retain_mut(|command| {
            if command.end() > cut {
                let rest = command.lba.max(cut);
                cache.insert(&Command::write(rest.0, (command.end() - rest).0 as u32), 0);
                command.sectors = (rest - command.lba).0 as u32;
            }
            if command.sectors == 0 {
                written_back.remove(kept);
                return false;
            }
            kept += 1;
            true
        });
    }

    /// Returns the sectors to write back before `command`, which bypasses the cache, if some of them are dirty: the run
    /// of `command` if writes stay in order, or the sectors whose write-back may destroy those of `command`.
    pub(super) fn dirty_before(&self, command: &Command) -> Option<Range<Lba>> {
        if command.operation != Operation::Write || self.cache.is_empty() {
            return None;
        }
        let sectors = match self.caveat {
            Some(caveat) => caveat.before(command.lba),
            None => self.queue.ordered()?.run_of(command.lba)?,
        };
        self.cache.holds_some_of(&sectors).then_some(sectors)
    }

    /// Drops the dirty sectors among `sectors` (exclusive end) from the volatile cache without writing them, because
    /// the host has trimmed them. Sectors that are not dirty are ignored.
    pub fn discard(&mut self, sectors: &Range<Lba>) {
        let mut next = sectors.start;
        while next < sectors.end {
            let part = (sectors.end - next).0.min(u64::from(u32::MAX)) as u32;
            let command = Command::trim(next.0, part);
            self.cache.discard(&command);
            self.carrier.discard(&command);
            next = command.end();
        }
    }

    /// Returns the dirty ranges of the volatile cache in order of address, each as a write command for its sectors.
    /// Ranges are disjoint; adjacent sectors may be in two ranges. Empty if nothing is dirty.
    pub fn dirty_ranges(&self) -> Vec<Command> {
        self.cache.ranges()
    }

    /// Returns the time at which dirty sectors would be written back if no request came.
    pub(super) fn destage_start(&self) -> Option<SimTime> {
        (!self.cache.is_empty()).then(|| self.now.max(self.clock.last_entry() + DESTAGE_AFTER))
    }

    pub(super) fn destage_from(&mut self, start: SimTime) -> Result<(), StepError<C::Error>> {
        self.now = start;
        self.perform(Job::Destage(WriteBack::Idle))
    }
}
