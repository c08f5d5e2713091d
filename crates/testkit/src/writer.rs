//! The independent writer: sends seeded work to a served drive, remembers the allowed values of every sector, and
//! judges the data that it reads.
//!
//! Requests in flight do not overlap each other, so that the answers alone determine the allowed values of a sector.
//! The writer reads its own writes while it works, and everything that it ever wrote after every power cut.
//!
//! Invariants:
//! 1. A sector must hold its durable value or a later one; never a third value, never an error.
//! 2. While the drive is running, a sector must hold the value acknowledged last, or one in flight.
//! 3. All actions of the writer follow from the seed and the order of the answers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;

use crate::contents::{Contents, Value};
use crate::history::{Act, History};
use crate::nbd_client::{Answer, Client, FLUSH, FUA, READ, TRIM, WRITE, WRITE_ZEROES};
use crate::random::Random;
use crate::record::{Candidate, IN_FLIGHT, Record};

/// Maximum number of losses that are listed in a report; all are counted.
const LOSSES_TOLD: usize = 20;
/// Number of reads in flight when all sectors are read, and the maximum length of one in bytes.
const LOOKS_IN_FLIGHT: usize = 8;
const LOOK_BYTES: u64 = 1 << 20;
/// Maximum number of failed reads that are repeated in halves: if everything fails, that is enough.
const SPLITS_MAX: u32 = 2000;

/// The random work of the writer. A field whose name ends in `_in` is a share: each command is drawn at random, and on
/// average one in this many is of that kind. 0 means never.
#[derive(Clone, Debug)]
pub struct Work {
    /// Minimum and maximum number of sectors of a random command, both inclusive, before the length is rounded down to
    /// a multiple of `align_sectors`, but at least to one multiple.
    pub sectors: (u64, u64),
    /// On average, one command in this many, flushes aside, covers a whole place (a range of `place_sectors` sectors)
    /// instead of a random length; 0 for never.
    pub whole_in: u64,
    /// Alignment of the generated commands, in sectors: first sector and length are multiples of it. Only a command
    /// that covers a whole place has the length of the place. At least 1.
    pub align_sectors: u64,
    /// Number of ranges of `place_sectors` sectors each that the random commands read and write. They are spread evenly
    /// over the drive. At least 1.
    pub places: u64,
    /// Number of sectors of each of the ranges to which the random commands are confined; at least the maximum of
    /// `sectors`.
    pub place_sectors: u64,
    /// Maximum number of requests in flight at once.
    pub depth: usize,
    /// On average, one command in this many is a flush; 0 for never.
    pub flush_in: u64,
    /// On average, one write in this many has the flag FUA, which makes it durable when acknowledged; 0 for never.
    pub fua_in: u64,
    /// On average, one command in this many, flushes and reads aside, is a trim; 0 for never. Only for layers that keep
    /// trims: trimmed sectors must read as zeros.
    pub trim_in: u64,
    /// On average, one command in this many, flushes, reads and trims aside, writes zeros by WRITE_ZEROES; 0 for never.
    pub zeroes_in: u64,
    /// On average, one command in this many, flushes aside, is a read; 0 for never.
    pub read_in: u64,
    /// Whether the drive has a volatile cache, so that acknowledged writes are durable only after a flush.
    pub is_volatile: bool,
    /// Whether a write that a kill interrupts may leave its sectors unreadable, as on caveat disks. Then a read error
    /// is allowed for these sectors.
    pub cut_destroys: bool,
}

/// A request of the writer in flight.
#[derive(Clone, Debug)]
struct OnItsWay {
    command: u16,
    flags: u16,
    sectors: Range<u64>,
    value: Value,
    /// For a flush: the moment at which it was sent.
    moment: u64,
}

/// A run of sectors that do not hold an allowed value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// The sectors that do not hold an allowed value (exclusive end).
    pub sectors: Range<u64>,
    /// Values that each of the sectors was allowed to hold, oldest first.
    pub allowed: Vec<Value>,
    /// Description of the contents that were read, or of the read error.
    pub found: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed: Vec<_> = self.allowed.iter().map(Value::to_string).collect();
        let (first, last) = (self.sectors.start, self.sectors.end - 1);
        write!(f, "sectors {first} to {last} may hold {}, and held {}", allowed.join(" or "), self.found)
    }
}

/// Result of reading and judging sectors.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// Number of sectors that were read and judged, unreadable ones included.
    pub sectors: u64,
    /// Number of sectors that hold none of their allowed values, or gave a read error that is not allowed.
    pub lost: u64,
    /// Number of sectors that gave a read error that is not allowed; they are also counted in `lost`.
    pub unreadable: u64,
    /// The first runs of sectors that hold none of their allowed values, at most 20; `lost` counts the sectors of all.
    pub losses: Vec<Loss>,
    /// Number of sectors that hold an allowed value older than the one acknowledged last. That happens if a power cut
    /// empties a volatile cache.
    pub reverted: u64,
}

impl Verdict {
    fn lose(&mut self, loss: Loss) {
        self.lost += loss.sectors.end - loss.sectors.start;
        if self.losses.len() < LOSSES_TOLD {
            self.losses.push(loss);
        }
    }

    /// Adds the counts and losses of `other`. At most 20 losses are listed; all their sectors are counted.
    pub fn add(&mut self, other: Verdict) {
        self.sectors += other.sectors;
        self.reverted += other.reverted;
        self.lost += other.lost;
        self.unreadable += other.unreadable;
        let room = LOSSES_TOLD - self.losses.len();
        self.losses.extend(other.losses.into_iter().take(room));
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} sectors lost", self.lost, self.sectors)?;
        self.losses.iter().try_for_each(|loss| write!(f, "\n  {loss}"))
    }
}

/// The reason why the writer could not send a request or receive a successful answer.
#[derive(Debug)]
pub enum Ended {
    /// The connection to the server is closed.
    Gone(io::Error),
    /// A request was answered with an error.
    Refused {
        /// Number of the refused command in the NBD protocol, such as 1 for a write.
        command: u16,
        /// Sectors of the command (exclusive end).
        sectors: Range<u64>,
        /// Error number of the NBD protocol with which the server answered.
        error: u32,
        /// Number of writes, trims and WRITE_ZEROES that the writer had got acknowledged before.
        writes: u64,
    },
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Gone(error) => write!(f, "the server is gone: {error}"),
            Ended::Refused { command, sectors, error, writes } => {
                let (first, count) = (sectors.start, sectors.end - sectors.start);
                let command =
                    ["read", "write", "disconnect", "flush", "trim", "cache", "write-zeroes"][*command as usize];
                write!(f, "a {command} of {count} sectors at {first} got error {error} after {writes} answered writes")
            }
        }
    }
}

/// Counts of the writer's work so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of acknowledged commands that change sectors: writes, trims and WRITE_ZEROES.
    pub writes: u64,
    /// Number of bytes covered by the acknowledged writes, trims and WRITE_ZEROES; a byte counts once for each command.
    pub bytes: u64,
    /// Number of acknowledged flushes, those outside the random work included.
    pub flushes: u64,
    /// Number of reads answered without an error; those of [`Writer::look`] are not counted.
    pub reads: u64,
}

/// The independent writer: sends seeded random work to a served drive, remembers the allowed values of every sector,
/// and judges the data that it reads.
pub struct Writer {
    /// The rule by which the bytes of a written sector follow from the sector and the number of the write.
    pub contents: Contents,
    /// Sizes, places and shares of the random commands to send; may be changed between steps.
    pub work: Work,
    /// Values that every sector of the drive may hold, as derived from the acknowledgements received.
    pub record: Record,
    /// Counts of acknowledged commands and answered reads since the writer was created.
    pub tally: Tally,
    /// Sum of the verdicts on all reads since the writer was created. Reads by [`Writer::look`] are not included.
    pub live: Verdict,
    /// Commands that change sectors, their acknowledgements and those of flushes, since the writer was created, in the
    /// order of sending and receiving. Reads, the sending of flushes, and answers that are errors are not recorded.
    pub history: History,
    random: Random,
    next_version: u64,
    on_their_way: BTreeMap<u64, OnItsWay>,
    payload: Vec<u8>,
}

impl Writer {
    /// Returns a writer for a new drive, all of whose sectors hold zeros. Its random numbers follow from the seed of
    /// `contents`.
    ///
    /// # Panics
    ///
    /// Panics if the longest command does not fit into a place.
    pub fn new(contents: Contents, work: Work) -> Writer {
        assert!(work.place_sectors >= work.sectors.1, "a command fits into a place");
        Writer {
            contents,
            work,
            record: Record::new(),
            tally: Tally::default(),
            live: Verdict::default(),
            history: History::default(),
            random: Random::new(contents.seed),
            next_version: 1,
            on_their_way: BTreeMap::new(),
            payload: Vec::new(),
        }
    }

    fn sector_bytes(&self) -> u64 {
        u64::from(self.contents.sector_bytes)
    }

    /// Sends random requests until `work.depth` are in flight or the next would overlap one in flight, which is then
    /// not sent. Then receives and judges one answer.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed; [`Ended::Refused`] if the answer is an error.
    pub fn step(&mut self, client: &mut Client) -> Result<(), Ended> {
        while self.on_their_way.len() < self.work.depth {
            let Some(request) = self.next_request(client.capacity_bytes) else { break };
            self.submit(client, request).map_err(Ended::Gone)?;
        }
        self.take_answer(client)
    }

    /// Receives answers until no request is in flight.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed; [`Ended::Refused`] at the first answer that is an error.
    pub fn drain(&mut self, client: &mut Client) -> Result<(), Ended> {
        while !self.on_their_way.is_empty() {
            self.take_answer(client)?;
        }
        Ok(())
    }

    /// Sends a flush without waiting for earlier requests, and receives its answer and those of all requests in flight.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed; [`Ended::Refused`] at the first answer that is an error.
    pub fn flush(&mut self, client: &mut Client) -> Result<(), Ended> {
        self.send(client, FLUSH, 0, 0..0)?;
        self.drain(client)
    }

    /// Sends the NBD command `command` with the flags `flags` for `sectors` (exclusive end; `0..0` for a flush),
    /// without waiting for its answer. A write gets the next version number as its data.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed.
    ///
    /// # Panics
    ///
    /// Panics if a request in flight overlaps `sectors`.
    pub fn send(&mut self, client: &mut Client, command: u16, flags: u16, sectors: Range<u64>) -> Result<(), Ended> {
        assert!(!self.is_busy(&sectors), "requests on their way do not overlap");
        let value = if command == WRITE { self.new_version() } else { Value::Zeros };
        let moment = self.record.flush_begins();
        self.submit(client, OnItsWay { command, flags, sectors, value, moment }).map_err(Ended::Gone)
    }

    /// Returns whether a request in flight overlaps the sectors (exclusive end).
    pub fn is_busy(&self, sectors: &Range<u64>) -> bool {
        self.on_their_way.values().any(|other| other.sectors.start < sectors.end && sectors.start < other.sectors.end)
    }

    /// Returns the number of requests that were sent and not answered yet.
    pub fn in_flight(&self) -> usize {
        self.on_their_way.len()
    }

    fn new_version(&mut self) -> Value {
        self.next_version += 1;
        Value::Version(self.next_version - 1)
    }

    /// Returns the next request of the work; `None` if it would overlap a request in flight.
    fn next_request(&mut self, capacity_bytes: u64) -> Option<OnItsWay> {
        let random = &mut self.random;
        if random.one_in(self.work.flush_in) {
            let moment = self.record.flush_begins();
            return Some(OnItsWay { command: FLUSH, flags: 0, sectors: 0..0, value: Value::Zeros, moment });
        }
        let sectors = place(&self.work, capacity_bytes / u64::from(self.contents.sector_bytes), random);
        if self.is_busy(&sectors) {
            return None;
        }
        let random = &mut self.random;
        let (command, flags) = if random.one_in(self.work.read_in) {
            (READ, 0)
        } else if random.one_in(self.work.trim_in) {
            (TRIM, 0)
        } else if random.one_in(self.work.zeroes_in) {
            (WRITE_ZEROES, 0)
        } else {
            (WRITE, if random.one_in(self.work.fua_in) { FUA } else { 0 })
        };
        let value = if command == WRITE { self.new_version() } else { Value::Zeros };
        Some(OnItsWay { command, flags, sectors, value, moment: 0 })
    }

    fn submit(&mut self, client: &mut Client, request: OnItsWay) -> io::Result<()> {
        let (sectors, sector_bytes) = (request.sectors.clone(), self.sector_bytes());
        let (offset, bytes) = (sectors.start * sector_bytes, (sectors.end - sectors.start) * sector_bytes);
        self.payload.clear();
        if request.command == WRITE {
            self.payload.resize(bytes as usize, 0);
            self.contents.fill(&mut self.payload, sectors.start, request.value);
        }
        if matches!(request.command, WRITE | WRITE_ZEROES | TRIM) {
            if self.work.cut_destroys {
                self.note(Act::Begin { sectors: sectors.clone(), value: Value::Unreadable }, 0);
            }
            self.note(Act::Begin { sectors, value: request.value }, 0);
        }
        let cookie = client.submit(request.command, request.flags, offset, bytes as u32, &self.payload)?;
        self.on_their_way.insert(cookie, request);
        Ok(())
    }

    /// Receives the next answer, and records its acknowledgement or judges its data.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed; [`Ended::Refused`] if the answer is an error.
    pub fn take_answer(&mut self, client: &mut Client) -> Result<(), Ended> {
        let answer = client.next_answer().map_err(Ended::Gone)?;
        self.answered(answer, client.received_bytes)
    }

    /// Adds an act to the record and the history.
    fn note(&mut self, act: Act, received_bytes: u64) {
        act.apply(&mut self.record);
        self.history.push(act, received_bytes);
    }

    fn answered(&mut self, answer: Answer, received_bytes: u64) -> Result<(), Ended> {
        let request = self.on_their_way.remove(&answer.cookie).expect("an answered request was in flight");
        let OnItsWay { command, flags, sectors, value, moment } = request;
        if answer.error != 0 {
            return Err(Ended::Refused { command, sectors, error: answer.error, writes: self.tally.writes });
        }
        match command {
            READ => {
                self.tally.reads += 1;
                let verdict = judge(&self.record, &self.contents, sectors, &answer.data, Moment::Running, |_, _| {});
                self.live.add(verdict);
            }
            FLUSH => {
                self.tally.flushes += 1;
                self.note(Act::Flush { moment }, received_bytes);
            }
            _ => {
                self.tally.writes += 1;
                self.tally.bytes += (sectors.end - sectors.start) * self.sector_bytes();
                let is_durable = flags & FUA != 0 || !self.work.is_volatile;
                self.note(Act::Acknowledge { sectors, value, is_durable }, received_bytes);
            }
        }
        Ok(())
    }

    /// Receives the answers that a killed server had sent, until the connection ends, and drops the requests without an
    /// answer. Answers that are errors are ignored.
    pub fn after_kill(&mut self, client: &mut Client) {
        while let Ok(answer) = client.next_answer() {
            // The server may be ending, so an error tells no more than a missing answer.
            let _ = self.answered(answer, client.received_bytes);
        }
        self.on_their_way.clear();
    }

    /// Reads and judges all sectors that were ever written, trimmed or zeroed. Other sectors in gaps of less than 64
    /// KiB are read too, and must hold zeros. With [`Moment::AfterCut`], a value found becomes the only allowed value
    /// of its sector. A failed read is repeated in halves, to find the unreadable sectors. After 2,000 repetitions, a
    /// failed read counts as unreadable as a whole.
    ///
    /// # Errors
    ///
    /// [`Ended::Gone`] if the connection is closed. Read errors are part of the verdict.
    ///
    /// # Panics
    ///
    /// Panics if a request is in flight.
    pub fn look(&mut self, client: &mut Client, moment: Moment) -> Result<Verdict, Ended> {
        assert!(self.on_their_way.is_empty(), "nothing is on its way");
        let sector_bytes = self.sector_bytes();
        let mut looks: VecDeque<Range<u64>> = looks(&self.record, sector_bytes).into();
        let mut splits = SPLITS_MAX;
        let (mut verdict, mut asked, mut found) = (Verdict::default(), BTreeMap::new(), Vec::new());
        loop {
            while asked.len() < LOOKS_IN_FLIGHT {
                let Some(sectors) = looks.pop_front() else { break };
                let (offset, bytes) = (sectors.start * sector_bytes, (sectors.end - sectors.start) * sector_bytes);
                let cookie = client.submit(READ, 0, offset, bytes as u32, &[]).map_err(Ended::Gone)?;
                asked.insert(cookie, sectors);
            }
            if asked.is_empty() {
                break;
            }
            let answer = client.next_answer().map_err(Ended::Gone)?;
            let sectors: Range<u64> = asked.remove(&answer.cookie).expect("it was asked");
            if answer.error == 0 {
                let learn = |sectors, value| found.push((sectors, value));
                verdict.add(judge(&self.record, &self.contents, sectors, &answer.data, moment, learn));
            } else if sectors.end - sectors.start > 1 && splits > 0 {
                // Reading the halves shows which sectors are unreadable.
                splits -= 1;
                let middle = sectors.start.midpoint(sectors.end);
                looks.extend([sectors.start..middle, middle..sectors.end]);
            } else {
                let found = format!("error {}", answer.error);
                verdict.add(unreadable(&self.record, &sectors, &found));
            }
        }
        if moment == Moment::AfterCut {
            found.into_iter().for_each(|(sectors, value)| self.record.found(sectors, value));
            if verdict.lost == 0 {
                self.record.all_found();
            }
        }
        Ok(verdict)
    }
}

/// Reads all sectors of `record` that were ever written, trimmed or zeroed, by `read`, and judges them as after a power
/// cut ([`Moment::AfterCut`]). Other sectors in gaps of less than 64 KiB are read too, and must hold zeros. `read`
/// returns the bytes of the sectors that it is given, at most 1 MiB. A failed read is repeated in halves, to find the
/// unreadable sectors. After 2,000 repetitions, a failed read counts as unreadable as a whole. Errors are part of the
/// verdict. `record` is not changed.
pub fn look_by(
    record: &Record,
    contents: &Contents,
    mut read: impl FnMut(Range<u64>) -> Result<Vec<u8>, String>,
) -> Verdict {
    let (mut verdict, mut splits) = (Verdict::default(), SPLITS_MAX);
    let mut looks: VecDeque<Range<u64>> = looks(record, u64::from(contents.sector_bytes)).into();
    while let Some(sectors) = looks.pop_front() {
        match read(sectors.clone()) {
            Ok(bytes) => verdict.add(judge(record, contents, sectors, &bytes, Moment::AfterCut, |_, _| {})),
            Err(_) if sectors.end - sectors.start > 1 && splits > 0 => {
                splits -= 1;
                let middle = sectors.start.midpoint(sectors.end);
                looks.extend([sectors.start..middle, middle..sectors.end]);
            }
            Err(error) => verdict.add(unreadable(record, &sectors, &error)),
        }
    }
    verdict
}

/// Returns the ranges to read: all runs of the record, merged if the gap between them is small, in pieces of a bounded
/// size.
fn looks(record: &Record, sector_bytes: u64) -> Vec<Range<u64>> {
    let longest = LOOK_BYTES / sector_bytes;
    let mut looks: Vec<Range<u64>> = Vec::new();
    for (run, _) in record.runs() {
        let mut start = run.start;
        match looks.last_mut() {
            Some(last) if run.start - last.end < longest / 16 && run.end - last.start <= longest => {
                last.end = run.end;
                continue;
            }
            _ => {}
        }
        while start < run.end {
            let end = run.end.min(start + longest);
            looks.push(start..end);
            start = end;
        }
    }
    looks
}

/// Returns the verdict on a failed read: all its sectors are lost, except those that an interrupted write may have
/// destroyed.
fn unreadable(record: &Record, sectors: &Range<u64>, error: &str) -> Verdict {
    let mut verdict = Verdict { sectors: sectors.end - sectors.start, ..Verdict::default() };
    for (part, candidates) in record.within(sectors.clone()) {
        let allowed: Vec<Value> = candidates.iter().map(|candidate| candidate.value).collect();
        if allowed.contains(&Value::Unreadable) {
            continue;
        }
        let found = format!("{error} (read of {} to {})", sectors.start, sectors.end - 1);
        verdict.unreadable += part.end - part.start;
        verdict.lose(Loss { sectors: part, allowed, found });
    }
    verdict
}

/// The state of the drive when sectors are read, which decides on the allowed values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The drive has been running since the sectors were written: a sector holds the value acknowledged last, or one in
    /// flight.
    Running,
    /// The drive was restarted after a power cut, or after it was closed without a flush: a sector holds its durable
    /// value or any later one.
    AfterCut,
}

/// Compares `bytes`, read from `sectors`, with the allowed values. Calls `learn` with the values of sectors that had
/// several allowed ones.
fn judge(
    record: &Record,
    contents: &Contents,
    sectors: Range<u64>,
    bytes: &[u8],
    moment: Moment,
    mut learn: impl FnMut(Range<u64>, Value),
) -> Verdict {
    let mut verdict = Verdict { sectors: sectors.end - sectors.start, ..Verdict::default() };
    let sector_bytes = contents.sector_bytes as usize;
    for (part, candidates) in record.within(sectors.clone()) {
        let acknowledged = candidates.iter().rposition(|candidate| candidate.acknowledged != IN_FLIGHT).unwrap_or(0);
        let allowed: &[Candidate] = if moment == Moment::Running { &candidates[acknowledged..] } else { &candidates };
        let newest_acknowledged = acknowledged + allowed.len() - candidates.len();
        let mut learned: Option<(Range<u64>, Value)> = None;
        for sector in part {
            let at = (sector - sectors.start) as usize * sector_bytes;
            let found = &bytes[at..at + sector_bytes];
            let Some(which) = allowed.iter().rposition(|candidate| contents.is(found, sector, candidate.value)) else {
                let allowed = allowed.iter().map(|candidate| candidate.value).collect();
                verdict.lose(Loss { sectors: sector..sector + 1, allowed, found: contents.describe(found) });
                continue;
            };
            verdict.reverted += u64::from(which < newest_acknowledged);
            if candidates.len() == 1 {
                continue;
            }
            let value = allowed[which].value;
            match &mut learned {
                Some((run, of)) if run.end == sector && *of == value => run.end += 1,
                _ => {
                    if let Some((run, value)) = learned.replace((sector..sector + 1, value)) {
                        learn(run, value);
                    }
                }
            }
        }
        if let Some((run, value)) = learned {
            learn(run, value);
        }
    }
    verdict
}

/// Returns random sectors for the next command.
fn place(work: &Work, capacity_sectors: u64, random: &mut Random) -> Range<u64> {
    let align = work.align_sectors;
    let sectors = work.sectors.0 + random.below(work.sectors.1 - work.sectors.0 + 1);
    let sectors = if random.one_in(work.whole_in) { work.place_sectors } else { (sectors / align).max(1) * align };
    let room = u128::from(capacity_sectors - work.place_sectors);
    let begin = (u128::from(random.below(work.places)) * room / u128::from(work.places)) as u64 / align * align;
    let inside = random.below((work.place_sectors - sectors) / align + 1) * align;
    begin + inside..begin + inside + sectors
}
