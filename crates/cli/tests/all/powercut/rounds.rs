//! Rounds: cuts of a story at random positions, each with surviving writes and perhaps a fault, judged and counted.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use imbrex_powercut::{Disk, Fault, Log, Replay, Survival};
use imbrex_testkit::{Random, Record};

use super::carriers::{CARRIERS, Carrier};
use super::judge::{Outcome, hit, judge, judge_by_program};
use super::recorded::{Story, record_opening, repeats_exactly};

/// Sizes of the host's blocks.
pub(crate) const BLOCK_BYTES: [u64; 2] = [512, 4096];
/// One cut of this many is judged by the built program too.
const BY_PROGRAM_IN: u64 = 150;
/// Number of openings of cut images that are cut in turn, for each recording and size of block.
const OPENINGS: u64 = 1;
/// Number of failed rounds that are printed one by one.
const TOLD: usize = 2;

/// Returns a number from the environment.
pub(crate) fn from_environment(name: &str) -> Option<u64> {
    let words = std::env::var(name).ok()?;
    Some(words.parse().unwrap_or_else(|_| panic!("{name}={words}: not a number")))
}

/// Returns the seed of the run.
pub(crate) fn seed() -> u64 {
    from_environment("IMBREX_POWERCUT_SEED").unwrap_or(1)
}

/// Returns the carriers that the environment names, or all.
pub(crate) fn wanted() -> impl Iterator<Item = Carrier> {
    let words = std::env::var("IMBREX_POWERCUT_CARRIERS").ok();
    let is_wanted =
        move |carrier: &&Carrier| words.as_ref().is_none_or(|words| words.split(',').any(|word| word == carrier.name));
    CARRIERS.iter().filter(is_wanted).copied()
}

/// A fault added to a cut, chosen by a seed.
pub(crate) type Faulty = fn(u64) -> Fault;

/// Counts of the outcomes of faults of one kind that hit one part of the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Hits {
    rounds: u64,
    /// Rounds in which the check reports damage.
    found: u64,
    /// Rounds in which a sector read as a value that it cannot hold.
    wrong: u64,
    /// Rounds with wrong sectors in which the check reports no damage.
    wrong_unfound: u64,
    /// Rounds in which nothing was lost, and the check reports no damage.
    silent: u64,
}

impl Hits {
    fn enter(&mut self, outcome: &Outcome) {
        let (is_found, is_wrong) = (!outcome.findings.is_empty(), outcome.wrong() > 0);
        let is_lost = outcome.refused.is_some() || outcome.verdict.lost > 0;
        self.rounds += 1;
        self.found += u64::from(is_found);
        self.wrong += u64::from(is_wrong);
        self.wrong_unfound += u64::from(is_wrong && !is_found);
        self.silent += u64::from(!is_found && !is_lost);
    }

    fn add(&mut self, other: Hits) {
        self.rounds += other.rounds;
        self.found += other.found;
        self.wrong += other.wrong;
        self.wrong_unfound += other.wrong_unfound;
        self.silent += other.silent;
    }
}

/// Counts of the outcomes of rounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    /// Rounds that were judged: all but those whose fault had nothing to hit, or whose cut was bad without the fault.
    pub rounds: u64,
    /// Rounds whose image does not open.
    pub refused: u64,
    /// Rounds in which acknowledged sectors give errors when read.
    pub unreadable: u64,
    /// Rounds in which a sector read as a value that it cannot hold.
    pub wrong: u64,
    /// Rounds in which nothing was lost, and the check reports damage.
    pub complaints: u64,
    /// Rounds in which something was lost or wrong, and the check reports no damage.
    pub unfound: u64,
    /// Rounds in which nothing was lost, and the check reports no damage.
    pub silent: u64,
    /// Rounds whose only faults are promises that are not kept yet, by the name of the promise.
    pub not_yet: BTreeMap<&'static str, u64>,
    /// Rounds with other faults.
    pub bad: u64,
    /// Sectors lost in all.
    pub sectors: u64,
    /// Sectors compared.
    pub compared: u64,
    /// Descriptions of the bad rounds, each with the command that repeats it.
    pub told: Vec<String>,
    /// Kinds of findings and errors, without their numbers.
    pub kinds: BTreeMap<String, u64>,
    /// Rounds with faults of the disk: outcomes by kind of fault and by the part of the image that was hit.
    pub hits: BTreeMap<String, Hits>,
}

impl Count {
    fn enter(&mut self, outcome: &Outcome) {
        self.rounds += 1;
        self.sectors += outcome.verdict.lost;
        self.compared += outcome.verdict.sectors;
        let is_lost = outcome.refused.is_some() || outcome.verdict.lost > 0;
        self.refused += u64::from(outcome.refused.is_some());
        self.unreadable += u64::from(outcome.verdict.unreadable > 0);
        self.wrong += u64::from(outcome.wrong() > 0);
        self.complaints += u64::from(!is_lost && !outcome.findings.is_empty());
        self.unfound += u64::from(is_lost && outcome.findings.is_empty());
        self.silent += u64::from(!is_lost && outcome.findings.is_empty());
        let words = outcome.refused.iter().chain(outcome.findings.first());
        let losses = outcome.verdict.losses.first().map(|loss| format!("held {}", loss.found));
        for words in words.chain(&losses) {
            let kind: String = words.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).take(90).collect();
            *self.kinds.entry(kind.replace("##", "#").replace("##", "#").replace("##", "#")).or_default() += 1;
        }
    }

    /// Adds other counts.
    pub(crate) fn add(&mut self, other: Count) {
        self.rounds += other.rounds;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.wrong += other.wrong;
        self.complaints += other.complaints;
        self.unfound += other.unfound;
        self.silent += other.silent;
        self.bad += other.bad;
        self.sectors += other.sectors;
        self.compared += other.compared;
        let room = TOLD.saturating_sub(self.told.len());
        self.told.extend(other.told.into_iter().take(room));
        for (name, hits) in other.hits {
            self.hits.entry(name).or_default().add(hits);
        }
        for (name, count) in other.not_yet {
            *self.not_yet.entry(name).or_default() += count;
        }
        for (kind, count) in other.kinds {
            *self.kinds.entry(kind).or_default() += count;
        }
    }

    /// Returns the row of the table.
    pub(crate) fn row(&self, name: impl Display) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {:?} | {} |",
            self.rounds,
            self.refused,
            self.unreadable,
            self.wrong,
            self.complaints,
            self.unfound,
            self.silent,
            self.sectors,
            self.not_yet,
            self.bad
        )
    }
}

/// The head of the table.
pub(crate) const HEAD: &str = "| carrier | rounds | refused | unreadable | wrong | complaints | unfound | silent | sectors | not yet | bad |\n\
                        |---|---|---|---|---|---|---|---|---|---|---|";

/// Grade of an outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Grade {
    /// The outcome is as required.
    Good,
    /// The outcome breaks a promise that is not kept yet; the names of those promises.
    NotYet(Vec<&'static str>),
    /// The outcome has another fault.
    Bad,
}

/// Counts of all carriers, printed at the end.
#[derive(Default)]
pub(crate) struct Table(BTreeMap<(String, u64), Count>);

impl Table {
    /// Adds counts of a carrier, one for each size of block.
    pub(crate) fn add(&mut self, carrier: Carrier, counts: Vec<Count>) {
        for (block_bytes, count) in BLOCK_BYTES.into_iter().zip(counts) {
            count.told.iter().for_each(|told| eprintln!("{}: {told}", carrier.name));
            self.0.entry((carrier.name.into(), block_bytes)).or_default().add(count);
        }
    }

    /// Prints the table; rounds that are neither good nor known are a failure.
    pub(crate) fn end(self, test: &str) {
        eprintln!("{test}\n{HEAD}");
        for ((name, block_bytes), count) in &self.0 {
            eprintln!("{}", count.row(format!("{name} at {block_bytes}")));
            count.kinds.iter().for_each(|(kind, rounds)| eprintln!("    {rounds} × {kind}"));
        }
        let mut hits = BTreeMap::<&String, Hits>::new();
        for (name, more) in self.0.values().flat_map(|count| &count.hits) {
            hits.entry(name).or_default().add(*more);
        }
        if !hits.is_empty() {
            eprintln!("| fault | rounds | found | wrong | wrong and not found | silent |\n|---|---|---|---|---|---|");
        }
        for (name, Hits { rounds, found, wrong, wrong_unfound, silent }) in hits {
            eprintln!("| {name} | {rounds} | {found} | {wrong} | {wrong_unfound} | {silent} |");
        }
        let bad: Vec<&str> =
            self.0.iter().filter(|(_, count)| count.bad > 0).map(|((name, _), _)| name.as_str()).collect();
        assert!(bad.is_empty(), "rounds of {bad:?} are bad: see above");
        assert!(self.0.values().any(|count| count.rounds > 0), "something was cut");
    }
}

/// Calls `once` with one seed after the other, for the time of one part of the long form. A carrier's time is divided
/// among this part and `others` other parts.
pub(crate) fn long(others: u64, mut once: impl FnMut(u64)) {
    let seconds = from_environment("IMBREX_POWERCUT_SECONDS").unwrap_or(3600);
    let lasts = Duration::from_secs(seconds / (1 + others));
    let begun = Instant::now();
    for seed in seed().. {
        once(seed);
        if begun.elapsed() >= lasts {
            break;
        }
    }
}

/// Rounds of one kind on one story.
pub(crate) struct Rounds<'a> {
    /// The test that makes the rounds, for the command that repeats one.
    pub test: &'static str,
    pub story: &'a Story,
    pub block_bytes: u64,
    /// Numbers of the rounds.
    pub rounds: Range<u64>,
    pub fault: Option<Faulty>,
    /// Whether openings of cut images are cut too.
    pub cuts_openings: bool,
    /// Positions of the log at which cuts are made.
    pub positions: RangeInclusive<usize>,
    /// Function that grades an outcome. The last argument names the part of the image that the fault hit, if there was
    /// a fault.
    pub grade: fn(&Rounds<'_>, &Outcome, Option<&str>) -> Grade,
}

/// Returns the image after a cut of `story`, and the contents that it may hold. The position and the surviving writes
/// follow from `seed`.
pub(crate) fn one_cut(story: &Story, block_bytes: u64, seed: u64) -> (Disk, Record) {
    let position = Random::new(seed).below(story.log.entries.len() as u64 + 1) as usize;
    let (mut replay, mut known) = (Replay::new(&story.log, block_bytes), story.known());
    replay.advance(position);
    known.advance(position);
    (replay.cut(Survival::seeded(seed, replay.pending().len()), None).0, known.record)
}

impl Rounds<'_> {
    /// Returns the command that repeats a round.
    fn command(&self, round: u64) -> String {
        let order = if repeats_exactly(self.story.seed) {
            ""
        } else {
            " (with several requests on their way: in another order)"
        };
        format!(
            "IMBREX_POWERCUT_CARRIERS={} IMBREX_POWERCUT_SEED={} IMBREX_POWERCUT_ROUND={round} IMBREX_POWERCUT_SECONDS=0 \
             cargo test -p imbrex-cli --test all -- {} --include-ignored --nocapture{}",
            self.story.carrier.name, self.story.seed, self.test, order
        )
    }

    /// Makes all rounds.
    pub(crate) fn run(&self) -> Count {
        let (log, mut count) = (&self.story.log, Count::default());
        assert!(*self.positions.end() <= log.entries.len(), "{:?} lie in the log", self.positions);
        let only = from_environment("IMBREX_POWERCUT_ROUND");
        let mut cuts: Vec<(usize, u64)> = self.rounds.clone().map(|round| (self.position(round), round)).collect();
        cuts.retain(|&(_, round)| only.is_none_or(|only| only == round));
        cuts.sort_unstable();
        let (mut replay, mut known) = (Replay::new(log, self.block_bytes), self.story.known());
        for (position, round) in cuts {
            replay.advance(position);
            known.advance(position);
            let survival = Survival::seeded(self.seed(round), replay.pending().len());
            let fault = self.fault.map(|fault| fault(self.seed(round)));
            let (disk, done) = replay.cut(survival, fault);
            if fault.is_some() && done.is_none() {
                continue;
            }
            let mut what = format!("cut at {position} of {}, {survival}", log.entries.len());
            if let (Some(fault), Some(done)) = (fault, done) {
                // If the cut without the fault is bad already, the round shows nothing about the fault.
                let whole = replay.cut(survival, None).0;
                if !judge(&whole, &known.record, &self.story.contents).is_good() {
                    continue;
                }
                let hit = hit(&whole, &done.offsets, self.block_bytes);
                what.push_str(&format!(", {done}: {hit}"));
                let outcome = self.judge(&disk, &known.record, round, &what, Some(&hit), &mut count);
                count.hits.entry(format!("{fault} of {hit}, {} B", self.block_bytes)).or_default().enter(&outcome);
                continue;
            }
            self.judge(&disk, &known.record, round, &what, None, &mut count);
            if self.cuts_openings && round < OPENINGS {
                self.cut_opening(&disk, &known.record, round, &mut count);
            }
        }
        count
    }

    fn seed(&self, round: u64) -> u64 {
        self.story.seed << 32 ^ self.block_bytes << 20 ^ round
    }

    /// Returns the position of a round's cut: any, or one right behind an answer, whose promise is then barely kept.
    fn position(&self, round: u64) -> usize {
        let entries = &self.story.log.entries;
        let mut random = Random::new(self.seed(round) ^ 0x9051);
        let (start, end) = (*self.positions.start(), *self.positions.end());
        let position = start + random.below((end - start) as u64 + 1) as usize;
        if random.one_in(2) {
            return position;
        }
        let is_sent = |entry: &imbrex_powercut::log::Entry| matches!(entry.event, imbrex_powercut::Event::Sent { .. });
        entries[position..].iter().position(is_sent).map_or(entries.len(), |more| position + more + 1)
    }

    fn judge(
        &self,
        disk: &Disk,
        record: &Record,
        round: u64,
        what: &str,
        hit: Option<&str>,
        count: &mut Count,
    ) -> Outcome {
        let mut outcome = judge(disk, record, &self.story.contents);
        if round % BY_PROGRAM_IN == BY_PROGRAM_IN - 1 {
            let by_program = judge_by_program(disk, record, &self.story.contents);
            let is_same = by_program.is_good() == outcome.is_good();
            assert!(is_same, "{}\nin this process {outcome}\nby the program {by_program}", self.command(round));
            outcome = by_program;
        }
        count.enter(&outcome);
        let is_bad = match (self.grade)(self, &outcome, hit) {
            Grade::Good => false,
            Grade::NotYet(names) => {
                names.into_iter().for_each(|name| *count.not_yet.entry(name).or_default() += 1);
                false
            }
            Grade::Bad => true,
        };
        count.bad += u64::from(is_bad);
        if is_bad && count.told.len() < TOLD {
            let kept = self.keep(disk, round);
            let command = self.command(round);
            let blocks = self.block_bytes;
            count
                .told
                .push(format!("blocks of {blocks} B, {what}\n  {outcome}\n  {command}\n  kept: {}", kept.display()));
        }
        outcome
    }

    /// Saves the image in the build folder.
    fn keep(&self, disk: &Disk, round: u64) -> PathBuf {
        let Story { carrier, seed, .. } = self.story;
        let test = self.test.rsplit("::").next().expect("a test has a name");
        let name = format!("powercut/{test}-{}-{seed}-{}-{round}", carrier.name, self.block_bytes);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).and_then(|()| disk.save(&folder)).expect("there is room for the image");
        folder
    }

    /// Opens a cut image by the built program, and cuts that opening.
    fn cut_opening(&self, disk: &Disk, record: &Record, round: u64, count: &mut Count) {
        let log: Log = match record_opening(disk) {
            Ok(log) => log,
            // The reason why the image does not open is judged already.
            Err(_) => return,
        };
        let mut replay = Replay::new(&log, self.block_bytes);
        let mut positions: Vec<usize> = (0..log.entries.len()).collect();
        positions.push(log.entries.len());
        for position in positions.into_iter().step_by(1 + log.entries.len() / 8) {
            replay.advance(position);
            let survival = Survival::seeded(self.seed(round) ^ position as u64, replay.pending().len());
            let what = format!("the opening after it cut at {position} of {}, {survival}", log.entries.len());
            self.judge(&replay.cut(survival, None).0, record, round, &what, None, count);
        }
    }
}
