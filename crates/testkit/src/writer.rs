//! The independent writer: drives a served drive with seeded work, remembers what every sector may hold, and judges what
//! is read back.
//!
//! It keeps requests on their way that do not overlap each other, so that what a sector may hold follows from the answers
//! alone. It reads its own writes while it works, and all that it ever touched after every power cut.
//!
//! Invariants:
//! 1. A sector must hold its durable value, or one given later; never a third, never an error.
//! 2. While the drive runs, a sector must hold the value acknowledged last, or one on its way.
//! 3. Everything it does follows from the seed and from the order of the answers.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;

use crate::contents::{Contents, Value};
use crate::history::{Act, History};
use crate::nbd_client::{Answer, Client, FLUSH, FUA, READ, TRIM, WRITE, WRITE_ZEROES};
use crate::random::Random;
use crate::record::{Candidate, IN_FLIGHT, Record};

/// Sectors lost or wrong that are told one by one; more are only counted.
const LOSSES_TOLD: usize = 20;
/// Reads on their way at once when all is looked at, and bytes of the longest.
const LOOKS_IN_FLIGHT: usize = 8;
const LOOK_BYTES: u64 = 1 << 20;
/// Reads that failed and were tried again in halves, at most: where all fails, that is enough.
const SPLITS_MAX: u32 = 2000;

/// What the writer does.
#[derive(Clone, Debug)]
pub struct Work {
    /// Sectors of a command, from and to, both included.
    pub sectors: (u64, u64),
    /// One command in so many takes a whole place instead; 0 for never.
    pub whole_in: u64,
    /// Commands begin at multiples of so many sectors.
    pub align_sectors: u64,
    /// It writes to so many places, spread evenly over the drive,
    pub places: u64,
    /// each of so many sectors.
    pub place_sectors: u64,
    /// Requests on their way at once.
    pub depth: usize,
    /// One command in so many is a flush; 0 for never. So are the others.
    pub flush_in: u64,
    /// Writes with FUA, of all writes.
    pub fua_in: u64,
    /// Trims; only for layers that keep them.
    pub trim_in: u64,
    /// Writes of zeros by WRITE_ZEROES.
    pub zeroes_in: u64,
    /// Reads.
    pub read_in: u64,
    /// Whether the drive has a volatile cache: what it answered is durable only when flushed.
    pub is_volatile: bool,
    /// Whether a write that a kill cut short may leave its sectors unreadable: on caveat disks.
    pub cut_destroys: bool,
}

/// A request of the writer on its way.
#[derive(Clone, Debug)]
struct OnItsWay {
    command: u16,
    flags: u16,
    sectors: Range<u64>,
    value: Value,
    /// Of a flush: when it was sent.
    moment: u64,
}

/// Sectors that do not hold what they must.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loss {
    /// Which.
    pub sectors: Range<u64>,
    /// What each may hold, the durable value first.
    pub allowed: Vec<Value>,
    /// What was read, in words.
    pub found: String,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed: Vec<_> = self.allowed.iter().map(Value::to_string).collect();
        let (first, last) = (self.sectors.start, self.sectors.end - 1);
        write!(f, "sectors {first} to {last} may hold {}, and held {}", allowed.join(" or "), self.found)
    }
}

/// What looking at sectors came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// Sectors compared.
    pub sectors: u64,
    /// Sectors wrong or unreadable.
    pub lost: u64,
    /// Those of them that gave an error.
    pub unreadable: u64,
    /// The first of them.
    pub losses: Vec<Loss>,
    /// Sectors that hold an older value than the one acknowledged last, as a volatile cache may leave them.
    pub reverted: u64,
}

impl Verdict {
    fn lose(&mut self, loss: Loss) {
        self.lost += loss.sectors.end - loss.sectors.start;
        if self.losses.len() < LOSSES_TOLD {
            self.losses.push(loss);
        }
    }

    /// Adds another.
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

/// How a step, or the waiting for answers, ended.
#[derive(Debug)]
pub enum Ended {
    /// The server is gone.
    Gone(io::Error),
    /// A request was answered with an error.
    Refused {
        /// Which command.
        command: u16,
        /// Its sectors.
        sectors: Range<u64>,
        /// The protocol's number.
        error: u32,
        /// Writes answered before.
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

/// What the writer has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Answered commands that change sectors.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Answered flushes.
    pub flushes: u64,
    /// Answered reads.
    pub reads: u64,
}

/// The writer.
pub struct Writer {
    /// How its sectors look.
    pub contents: Contents,
    /// What it does; may be changed between steps.
    pub work: Work,
    /// What every sector may hold.
    pub record: Record,
    /// What it has done.
    pub tally: Tally,
    /// What its reads between writes came to.
    pub live: Verdict,
    /// What was begun and acknowledged since the start, in order.
    pub history: History,
    random: Random,
    next_version: u64,
    on_their_way: BTreeMap<u64, OnItsWay>,
    payload: Vec<u8>,
}

impl Writer {
    /// A writer for a new drive.
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

    /// Sends requests until enough are on their way, and takes one answer.
    pub fn step(&mut self, client: &mut Client) -> Result<(), Ended> {
        while self.on_their_way.len() < self.work.depth {
            let Some(request) = self.next_request(client.capacity_bytes) else { break };
            self.submit(client, request).map_err(Ended::Gone)?;
        }
        self.take_answer(client)
    }

    /// Waits until all is answered.
    pub fn drain(&mut self, client: &mut Client) -> Result<(), Ended> {
        while !self.on_their_way.is_empty() {
            self.take_answer(client)?;
        }
        Ok(())
    }

    /// Sends a flush, and waits for its answer and all before it.
    pub fn flush(&mut self, client: &mut Client) -> Result<(), Ended> {
        self.send(client, FLUSH, 0, 0..0)?;
        self.drain(client)
    }

    /// Sends a command, to sectors where no other request is on its way.
    pub fn send(&mut self, client: &mut Client, command: u16, flags: u16, sectors: Range<u64>) -> Result<(), Ended> {
        assert!(!self.is_busy(&sectors), "requests on their way do not overlap");
        let value = if command == WRITE { self.new_version() } else { Value::Zeros };
        let moment = self.record.flush_begins();
        self.submit(client, OnItsWay { command, flags, sectors, value, moment }).map_err(Ended::Gone)
    }

    /// Whether something is on its way to some of the sectors.
    pub fn is_busy(&self, sectors: &Range<u64>) -> bool {
        self.on_their_way.values().any(|other| other.sectors.start < sectors.end && sectors.start < other.sectors.end)
    }

    /// Requests on their way.
    pub fn in_flight(&self) -> usize {
        self.on_their_way.len()
    }

    fn new_version(&mut self) -> Value {
        self.next_version += 1;
        Value::Version(self.next_version - 1)
    }

    /// What comes next; nothing, if it must wait for what is on its way.
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

    /// Takes the next answer.
    pub fn take_answer(&mut self, client: &mut Client) -> Result<(), Ended> {
        let answer = client.next_answer().map_err(Ended::Gone)?;
        self.answered(answer, client.received_bytes)
    }

    /// Enters an act into record and history.
    fn note(&mut self, act: Act, received_bytes: u64) {
        act.apply(&mut self.record);
        self.history.push(act, received_bytes);
    }

    fn answered(&mut self, answer: Answer, received_bytes: u64) -> Result<(), Ended> {
        let request = self.on_their_way.remove(&answer.cookie).expect("what is answered was on its way");
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

    /// The server was killed: takes what it had answered before, and forgets what it had not.
    pub fn after_kill(&mut self, client: &mut Client) {
        while let Ok(answer) = client.next_answer() {
            // An error that came with the end says no more than no answer.
            let _ = self.answered(answer, client.received_bytes);
        }
        self.on_their_way.clear();
    }

    /// Reads all that was ever touched, and gaps between, with nothing on its way. After a cut it learns what is there.
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
                // Which of them it is shows when they are read apart.
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

/// Reads all sectors that `record` knows, by `read`, after a power cut. A read that fails is tried again in halves.
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

/// What to read: all runs, joined where they are near each other, in pieces of a bounded size.
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

/// A read that failed: all its sectors are lost, but for those that a write cut short may have destroyed.
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

/// When sectors are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// The drive runs as it ran when they were written.
    Running,
    /// It came back from a power cut, or from being closed with data that was not flushed.
    AfterCut,
}

/// Compares what was read from `sectors` with what they may hold, and tells `learn` what several could hold.
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

/// Where the next command goes.
fn place(work: &Work, capacity_sectors: u64, random: &mut Random) -> Range<u64> {
    let align = work.align_sectors;
    let sectors = work.sectors.0 + random.below(work.sectors.1 - work.sectors.0 + 1);
    let sectors = if random.one_in(work.whole_in) { work.place_sectors } else { (sectors / align).max(1) * align };
    let room = u128::from(capacity_sectors - work.place_sectors);
    let begin = (u128::from(random.below(work.places)) * room / u128::from(work.places)) as u64 / align * align;
    let inside = random.below((work.place_sectors - sectors) / align + 1) * align;
    begin + inside..begin + inside + sectors
}
