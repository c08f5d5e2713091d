//! Entry: the requests of the workload enter the queue, each at its time, in the drive's sectors and within its
//! capacity.

use imbrex_disk::{Command, Lba, Operation, Sectors, SimTime, TrackPiece};
use imbrex_layer::{Medium, PrefetchHint};
use imbrex_trace::{Request, Source, TraceError, When};

use super::{Engine, Fit};
use crate::arrival::{Arrival, Entry};
use crate::carrier::Carrier;
use crate::observer::Observer;
use crate::queue::Waiting;

/// Number of requests between two calls of [`Observer::progress`].
const PROGRESS_EVERY: u64 = 8192;

impl<S: Source, O: Observer, C: Carrier> Engine<S, O, C> {
    /// Returns the next request of the workload. The request is read from the source at the first call, and kept until
    /// it enters.
    fn peek(&mut self) -> Result<Option<Request>, TraceError> {
        if self.peeked.is_none() && !self.source_ended {
            self.peeked = self.source.next(self.clock.place_free_since().max(self.now))?;
            self.source_ended = self.peeked.is_none();
            if self.peeked.is_some() {
                self.requests += 1;
                if self.requests.is_multiple_of(PROGRESS_EVERY) && !self.observer.progress(self.requests, self.now) {
                    // The request just read is the last.
                    self.source_ended = true;
                    self.interrupted = true;
                }
            }
        }
        Ok(self.peeked)
    }

    /// Returns the time at which the next request will enter, given that no request is outstanding.
    pub(super) fn next_entry(&mut self) -> Result<Option<SimTime>, TraceError> {
        let Some(request) = self.peek()? else { return Ok(None) };
        match self.clock.entry(request.when, self.outstanding == 0) {
            Entry::At(at) => Ok(Some(at)),
            Entry::AfterDrain => unreachable!("with nothing to do nothing is outstanding"),
        }
    }

    /// Admits every request that may enter by `until`.
    pub(super) fn admit(&mut self, until: SimTime) -> Result<(), TraceError> {
        let depth = self.options.arrival.depth();
        while self.outstanding < depth {
            let Some(request) = self.peek()? else { return Ok(()) };
            self.clock.free_a_place(self.outstanding);
            let Entry::At(at) = self.clock.entry(request.when, self.outstanding == 0) else { return Ok(()) };
            if at > until {
                return Ok(());
            }
            self.peeked = None;
            // Only records of requests have this time.
            let due = if self.observer.wants_ios() { self.clock.due(request.when).unwrap_or(at) } else { at };
            self.clock.entered(request.when, at);
            self.enter(&request, due, at);
        }
        Ok(())
    }

    fn enter(&mut self, request: &Request, due: SimTime, at: SimTime) {
        self.idle = None;
        let sequence = self.requests - 1;
        let command = match self.fitted(request.command) {
            Ok(command) => command,
            Err(reason) => {
                self.carrier.rejected(sequence, at, reason);
                self.metrics.reject(reason);
                return self.end_warmup_after(sequence, at);
            }
        };
        if let Some(checker) = &mut self.checker {
            checker.entered(&command, self.requests);
        }
        if let Some(rules) = &mut self.rules {
            rules.entered(&command, self.requests);
        }
        self.carrier.entered(sequence, &command);
        if self.observer.wants_operations() {
            self.observer.entered(sequence, request.device, &command);
        }
        let follows_times = matches!(self.options.arrival, Arrival::FixedQueue(_) | Arrival::Open);
        self.metrics.enter(at, arrival(request).filter(|_| follows_times));
        let cleaning_before = self.cleaning.at(at);
        let mut waiting =
            Waiting { command, arrival: arrival(request), due, entry: at, sequence, cleaning_before, target: None };
        if self.cache.is_on() && self.answer_from_cache(&waiting) {
            return;
        }
        if self.options.schedule.needs_targets() {
            waiting.target = self.target(&command);
        }
        self.queued_changes += usize::from(command.operation != Operation::Read);
        self.queued_for_cache += usize::from(self.is_cacheable(&command));
        if !self.queue.is_empty() {
            self.drive.layer.prefetch(command.lba, PrefetchHint::Later);
        }
        self.outstanding += 1;
        self.queue.push(waiting);
    }

    /// Passes the layer a hint about the operation that follows the one about to be served.
    pub(super) fn prefetch_next(&self) {
        if let Some(next) = self.queue.oldest() {
            return self.drive.layer.prefetch(self.queue.get(next).command.lba, PrefetchHint::Next);
        }
        let (first, rest) = match &self.peeked {
            Some(peeked) => (Some(peeked), self.source.upcoming().first()),
            None => (self.source.upcoming().first(), self.source.upcoming().get(1)),
        };
        for (request, coming) in first
            .map(|first| (first, PrefetchHint::Next))
            .into_iter()
            .chain(rest.map(|rest| (rest, PrefetchHint::Later)))
        {
            self.drive.layer.prefetch(Lba(request.command.lba.0 / self.sectors_per_unit), coming);
        }
    }

    /// Returns the command in the drive's sectors, within its capacity, or the reason to reject it.
    fn fitted(&self, command: Command) -> Result<Command, &'static str> {
        if command.operation == Operation::Flush {
            return Ok(command);
        }
        if command.sectors == 0 {
            return Err("zero length");
        }
        let unit = self.sectors_per_unit;
        let (mut start, mut end) = (command.lba.0 / unit, command.end().0.div_ceil(unit));
        let capacity = self.drive.layer.capacity().0;
        let length = end - start;
        match self.options.fit {
            Fit::Reject => {}
            Fit::Wrap if end > capacity => start = (start % capacity).min(capacity.saturating_sub(length)),
            Fit::Scale(extent) if extent > capacity * unit => {
                let scaled = (start as u128 * (capacity * unit) as u128 / extent as u128) as u64;
                start = scaled.min(capacity.saturating_sub(length));
            }
            Fit::Wrap | Fit::Scale(_) => {}
        }
        end = start + length;
        if end > capacity {
            return Err("beyond the end of the drive");
        }
        Ok(Command { lba: Lba(start), sectors: length as u32, ..command })
    }

    fn target(&mut self, command: &Command) -> Option<TrackPiece> {
        if command.sectors == 0 {
            return None;
        }
        self.pieces.clear();
        self.drive.layer.lookup(command.lba, Sectors(command.sectors.into()), &mut self.pieces);
        let first = self.pieces.first()?;
        let (medium, pba) = first.at?;
        (medium == Medium::Disk).then(|| self.drive.disk.geometry.piece(pba, first.sectors))
    }
}

fn arrival(request: &Request) -> Option<SimTime> {
    match request.when {
        When::At(at) => Some(at),
        When::Free(_) | When::Drained(_) => None,
    }
}
