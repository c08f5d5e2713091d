//! Requests to an emulated drive: submitted, in flight, and completed.
//!
//! Invariants:
//! 1. A request keeps its number from submission to completion. Numbers are those of the engine and increase by one.
//!    Every number is submitted once, enters once (or is rejected) with exactly the command submitted, and is
//!    completed once. A stopped drive answers requests without the engine; their numbers continue the sequence.

use std::collections::VecDeque;

use imbrex_disk::{Command, Operation, SimTime};

use crate::error::DeviceError;

/// Operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write {
        /// Force unit access: whether the bytes must be durable when the request completes.
        fua: bool,
    },
    /// Make all writes that were acknowledged before durable. Offset and length are ignored.
    Flush,
    /// Discard bytes that the host no longer needs. On a drive with zones, empties the zones that the bytes cover
    /// completely, and ignores the rest.
    Trim,
}

/// A request from the host to the drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Io {
    /// Operation of the request: read, write, flush or trim.
    pub kind: IoKind,
    /// Offset of the first byte from the start of the drive, in bytes; a multiple of the sector size. Ignored for a
    /// flush.
    pub offset: u64,
    /// Length in bytes: at least one sector, and a multiple of the sector size. Ignored for a flush.
    pub length: u64,
    /// For a write, the bytes to write, exactly `length` of them. For a read, any buffer: the drive resizes and fills
    /// it, so reuse saves an allocation. Ignored for a flush and a trim.
    pub buffer: Vec<u8>,
}

/// A completed request, successful or not.
#[derive(Debug)]
pub struct Completion {
    /// Number of the request, which [`EmulatedDrive::submit`](super::EmulatedDrive::submit) returned.
    pub number: u64,
    /// Operation of the request: read, write, flush or trim.
    pub kind: IoKind,
    /// Length of the request in bytes, as it was submitted.
    pub length: u64,
    /// Simulated time at which the request entered the drive.
    pub entry: SimTime,
    /// Simulated time at which the drive answered the request.
    pub end: SimTime,
    /// For a successful read, the bytes read. Otherwise a buffer with undefined contents, for reuse.
    pub buffer: Vec<u8>,
    /// `Ok` if the request succeeded, else its error.
    pub outcome: Result<(), DeviceError>,
}

impl Completion {
    /// Returns the completion of request `number`, `io`, which entered at `entry` and is answered at `end`.
    pub(crate) fn of(
        number: u64,
        io: Io,
        entry: SimTime,
        end: SimTime,
        outcome: Result<(), DeviceError>,
    ) -> Completion {
        let Io { kind, length, buffer, .. } = io;
        Completion { number, kind, length, entry, end, buffer, outcome }
    }
}

impl Io {
    /// Returns the engine's command for the request, in units of 512 bytes.
    pub(crate) fn command(&self) -> Command {
        let (lba, sectors) = (self.offset / 512, (self.length / 512) as u32);
        match self.kind {
            IoKind::Read => Command::read(lba, sectors),
            IoKind::Write { fua } => Command { fua, ..Command::write(lba, sectors) },
            IoKind::Flush => Command::flush(),
            IoKind::Trim => Command::trim(lba, sectors),
        }
    }

    fn operation(&self) -> Operation {
        match self.kind {
            IoKind::Read => Operation::Read,
            IoKind::Write { .. } => Operation::Write,
            IoKind::Flush => Operation::Flush,
            IoKind::Trim => Operation::Trim,
        }
    }

    /// Returns whether `command`, in sectors of `sector_bytes`, matches this request.
    fn is(&self, command: &Command, sector_bytes: u64) -> bool {
        let is_same_place =
            command.lba.0 * sector_bytes == self.offset && u64::from(command.sectors) * sector_bytes == self.length;
        command.operation == self.operation() && (is_same_place || self.kind == IoKind::Flush)
    }
}

/// Progress of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The engine has not fetched the request yet.
    Submitted,
    /// The request is in the engine's queue, or has been served and is about to be completed.
    Entered,
}

#[derive(Debug)]
struct Pending {
    io: Io,
    stage: Stage,
}

/// The requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// Number of the request in the first slot of `pending`.
    first: u64,
    pending: VecDeque<Option<Pending>>,
    count: usize,
}

impl Requests {
    /// Returns the number of requests in flight.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of the next request, which is the number of requests so far.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.pending.len() as u64
    }

    /// Returns the number of a request that is answered without the engine. No request may be in flight.
    pub(crate) fn take_number(&mut self) -> u64 {
        assert_eq!(self.count, 0, "requests are in flight in a drive that has stopped: invariant 1");
        let number = self.next_number();
        self.first += 1;
        number
    }

    /// Adds request `number`, which must follow the last number submitted.
    pub(crate) fn submit(&mut self, number: u64, io: Io) {
        assert_eq!(number, self.next_number(), "the engine's number and ours differ: invariant 1");
        self.pending.push_back(Some(Pending { io, stage: Stage::Submitted }));
        self.count += 1;
    }

    fn slot(&mut self, number: u64) -> &mut Option<Pending> {
        let index = number.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let slot = index.and_then(|index| self.pending.get_mut(index));
        slot.unwrap_or_else(|| panic!("request {number} was never submitted, or completed long ago: invariant 1"))
    }

    fn get(&mut self, number: u64) -> &mut Pending {
        let slot = self.slot(number).as_mut();
        slot.unwrap_or_else(|| panic!("request {number} is completed already: invariant 1"))
    }

    /// Records that request `number` enters the engine as `command`.
    pub(crate) fn enter(&mut self, number: u64, command: &Command, sector_bytes: u64) {
        let pending = self.get(number);
        assert_eq!(pending.stage, Stage::Submitted, "request {number} enters twice: invariant 1");
        assert!(pending.io.is(command, sector_bytes), "request {number} enters as another command: invariant 1");
        pending.stage = Stage::Entered;
    }

    /// Returns request `number`, which must have entered.
    pub(crate) fn entered(&mut self, number: u64) -> &mut Io {
        let pending = self.get(number);
        assert_eq!(pending.stage, Stage::Entered, "request {number} is served before it enters: invariant 1");
        &mut pending.io
    }

    /// Removes and returns request `number`, which has entered and is answered.
    pub(crate) fn complete(&mut self, number: u64) -> Io {
        self.take(number, Stage::Entered)
    }

    /// Removes and returns request `number`, which the engine rejected.
    pub(crate) fn reject(&mut self, number: u64) -> Io {
        self.take(number, Stage::Submitted)
    }

    /// Removes and returns all requests with their numbers, in order: the engine will complete none of them.
    pub(crate) fn take_all(&mut self) -> Vec<(u64, Io)> {
        let numbers = self.first..;
        self.first = self.next_number();
        self.count = 0;
        let with_number = |(number, pending): (u64, Option<Pending>)| Some((number, pending?.io));
        numbers.zip(self.pending.drain(..)).filter_map(with_number).collect()
    }

    fn take(&mut self, number: u64, stage: Stage) -> Io {
        let taken = self.slot(number).take();
        let pending = taken.unwrap_or_else(|| panic!("request {number} is answered twice: invariant 1"));
        assert_eq!(pending.stage, stage, "request {number} is answered in the wrong stage: invariant 1");
        self.count -= 1;
        while self.pending.front().is_some_and(Option::is_none) {
            self.pending.pop_front();
            self.first += 1;
        }
        pending.io
    }

    /// Returns whether any request in flight touches these bytes.
    pub(crate) fn touch(&self, bytes: &std::ops::Range<u64>) -> bool {
        let touches = |io: &Io| io.offset < bytes.end && bytes.start < io.offset + io.length;
        self.pending.iter().flatten().any(|pending| touches(&pending.io))
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a number that is used twice, or never, is detected. Method: each violation of invariant 1 is
    //! constructed.

    use super::*;

    fn one() -> Requests {
        let mut requests = Requests::default();
        requests.submit(0, io(IoKind::Read, 4096, 4096));
        requests
    }

    #[test]
    fn a_request_goes_its_way_once() {
        let mut requests = one();
        requests.enter(0, &Command::read(1, 1), 4096);
        assert!(requests.touch(&(8191..8192)) && !requests.touch(&(8192..9000)));
        assert_eq!(*requests.entered(0), io(IoKind::Read, 4096, 4096));
        assert_eq!((requests.complete(0), requests.len()), (io(IoKind::Read, 4096, 4096), 0));
    }

    fn io(kind: IoKind, offset: u64, length: u64) -> Io {
        Io { kind, offset, length, buffer: Vec::new() }
    }

    #[test]
    fn a_request_becomes_a_command_in_units_of_512_bytes() {
        assert_eq!(io(IoKind::Read, 8192, 1536).command(), Command::read(16, 3));
        assert_eq!(io(IoKind::Trim, 512, 512).command(), Command::trim(1, 1));
        assert_eq!(io(IoKind::Flush, 0, 0).command(), Command::flush());
        let write = |fua| io(IoKind::Write { fua }, 1024, 2048).command();
        assert_eq!(write(false), Command::write(2, 4));
        assert_eq!(write(true), Command { fua: true, ..Command::write(2, 4) });
    }

    #[test]
    fn a_command_is_known_by_what_it_does_and_where() {
        let read = io(IoKind::Read, 8192, 12_288);
        assert!(read.is(&Command::read(2, 3), 4096) && read.is(&Command::read(16, 24), 512));
        for other in [Command::read(3, 3), Command::read(2, 4), Command::read(1, 3), Command::trim(2, 3)] {
            assert!(!read.is(&other, 4096), "{other:?}");
        }
        assert!(!read.is(&Command::read(2, 3), 512));
        assert!(io(IoKind::Write { fua: true }, 4096, 4096).is(&Command::write(1, 1), 4096));
        // A flush applies to the whole drive, whatever its offset.
        let flush = io(IoKind::Flush, 4096, 512);
        assert!(flush.is(&Command::flush(), 4096) && !flush.is(&Command::trim(1, 1), 4096));
    }

    #[test]
    fn requests_are_answered_in_any_order() {
        let mut requests = Requests::default();
        for number in 0..4 {
            requests.submit(number, io(IoKind::Read, number * 512, 512));
            assert_eq!(requests.len() as u64, number + 1);
            requests.enter(number, &Command::read(number, 1), 512);
        }
        for (number, left) in [(2, 3), (0, 2), (1, 1), (3, 0)] {
            assert_eq!((requests.complete(number).offset, requests.len()), (number * 512, left));
        }
        requests.submit(4, io(IoKind::Flush, 0, 0));
        assert_eq!((requests.reject(4).kind, requests.len()), (IoKind::Flush, 0));
    }

    #[test]
    fn a_stopped_drive_continues_the_numbers() {
        let mut requests = Requests::default();
        for number in 0..4 {
            requests.submit(number, io(IoKind::Read, number * 512, 512));
            requests.enter(number, &Command::read(number, 1), 512);
        }
        requests.complete(2);
        requests.complete(0);
        let taken: Vec<_> = requests.take_all().into_iter().map(|(number, io)| (number, io.offset)).collect();
        assert_eq!(taken, [(1, 512), (3, 3 * 512)]);
        assert_eq!((requests.len(), requests.take_number(), requests.take_number()), (0, 4, 5));
        assert_eq!((requests.next_number(), requests.take_all()), (6, Vec::new()));
    }

    #[test]
    #[should_panic(expected = "requests are in flight")]
    fn a_number_without_the_engine_among_requests_in_flight_is_noticed() {
        one().take_number();
    }

    #[test]
    fn bytes_are_touched_by_requests_that_share_some() {
        let mut requests = Requests::default();
        requests.submit(0, io(IoKind::Read, 1000, 100));
        requests.submit(1, io(IoKind::Trim, 5000, 100));
        let cases = [(0, 1000, false), (0, 1001, true), (1099, 5000, true), (1100, 5000, false), (1100, 5001, true)];
        for (start, end, is_touched) in cases {
            assert_eq!(requests.touch(&(start..end)), is_touched, "{start}..{end}");
        }
        assert!(requests.touch(&(1040..1050)) && requests.touch(&(0..9000)) && !requests.touch(&(5100..9000)));
    }

    #[test]
    #[should_panic(expected = "enters as another command")]
    fn another_command_under_its_number_is_noticed() {
        one().enter(0, &Command::read(2, 1), 4096);
    }

    #[test]
    #[should_panic(expected = "completed long ago")]
    fn a_second_completion_is_noticed() {
        let mut requests = one();
        requests.enter(0, &Command::read(1, 1), 4096);
        requests.complete(0);
        requests.complete(0);
    }

    #[test]
    #[should_panic(expected = "in the wrong stage")]
    fn a_completion_before_the_entry_is_noticed() {
        one().complete(0);
    }

    #[test]
    #[should_panic(expected = "the engine's number and ours differ")]
    fn a_number_left_out_is_noticed() {
        one().submit(2, io(IoKind::Flush, 0, 0));
    }
}
