//! The allowed values of every sector of a drive, derived from the acknowledgements that its host received: the memory
//! of the independent writer.
//!
//! A sector has one durable value, followed by the values written since, oldest first. An acknowledged write adds a
//! value. An acknowledged flush makes one value durable: the last one that was acknowledged before the flush was sent.
//! After a power cut a sector may hold the durable value or any later one.
//!
//! The record is stored by runs of sectors with equal histories. So its memory depends on the writes, not on the size
//! of the drive.
//!
//! Invariants:
//! 1. Runs do not overlap and are not empty. A sector outside of all runs was never written and holds zeros.
//! 2. A run has at least one candidate. The durable one is first, and candidates not yet acknowledged are last.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::contents::Value;

/// A value that a sector may hold, with the acknowledgement of its write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// Contents that the sector may hold: zeros, the bytes of a numbered write, or unreadable.
    pub value: Value,
    /// Number of the acknowledgement of the command that gave this value, counted from 1; 0 for the zeros of a new
    /// drive, and [`IN_FLIGHT`] until the command is acknowledged.
    pub acknowledged: u64,
}

/// Number of an acknowledgement that has not been received yet ([`Candidate::acknowledged`]); higher than all others.
pub const IN_FLIGHT: u64 = u64::MAX;

const UNTOUCHED: Candidate = Candidate { value: Value::Zeros, acknowledged: 0 };

#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    end: u64,
    candidates: Vec<Candidate>,
}

/// The allowed values of every sector of a drive, derived from the acknowledgements that its host received. A sector
/// has one durable value, followed by the values written since.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Runs by first sector.
    runs: BTreeMap<u64, Run>,
    /// Ranges with sectors that may have more values than the durable one.
    unsettled: Vec<Range<u64>>,
    acknowledgements: u64,
}

impl Record {
    /// Returns the record of a new drive, all of whose sectors hold zeros.
    pub fn new() -> Record {
        Record::default()
    }

    /// Records that a command was sent that will give `sectors` (exclusive end) the value `value`. From now on they may
    /// hold it, or the values allowed before.
    pub fn begin(&mut self, sectors: Range<u64>, value: Value) {
        self.for_each_run(sectors.clone(), |candidates| {
            candidates.push(Candidate { value, acknowledged: IN_FLIGHT });
        });
        self.unsettled.push(sectors);
    }

    /// Records that the command that gives `sectors` (exclusive end) the value `value` was acknowledged. With
    /// `is_durable`, older values are not allowed any more; otherwise they stay allowed until a flush.
    ///
    /// # Panics
    ///
    /// Panics unless the command was recorded by [`Record::begin`].
    pub fn acknowledge(&mut self, sectors: Range<u64>, value: Value, is_durable: bool) {
        self.acknowledgements += 1;
        let acknowledged = self.acknowledgements;
        self.for_each_run(sectors, |candidates| {
            let mine = candidates.iter_mut().rposition(|at| at.value == value && at.acknowledged == IN_FLIGHT);
            let mine = mine.expect("an acknowledged write was begun");
            candidates[mine].acknowledged = acknowledged;
            if is_durable {
                candidates.drain(..mine);
            }
        });
    }

    /// Returns the number of acknowledgements recorded so far: of writes, trims and WRITE_ZEROES. A writer calls this
    /// function when it sends a flush, and passes the result to [`Record::flushed`].
    pub fn flush_begins(&self) -> u64 {
        self.acknowledgements
    }

    /// Records that a flush was acknowledged: values acknowledged before the flush was sent are durable now. `moment`
    /// is the result of [`Record::flush_begins`] from when the flush was sent.
    pub fn flushed(&mut self, moment: u64) {
        let unsettled = std::mem::take(&mut self.unsettled);
        for sectors in unsettled {
            let mut is_settled = true;
            self.for_each_run(sectors.clone(), |candidates| {
                let durable = candidates.iter().rposition(|candidate| candidate.acknowledged <= moment);
                candidates.drain(..durable.unwrap_or(0));
                is_settled &= candidates.len() == 1;
            });
            if !is_settled {
                self.unsettled.push(sectors);
            }
        }
    }

    /// Records that `sectors` (exclusive end) were read after a power cut and hold `value`. It is now their only
    /// allowed value, and counts as acknowledged.
    pub fn found(&mut self, sectors: Range<u64>, value: Value) {
        let acknowledged = self.acknowledgements;
        self.for_each_run(sectors, |candidates| {
            *candidates = vec![Candidate { value, acknowledged }];
        });
    }

    /// Records that all sectors were read after a power cut and passed to [`Record::found`], so that no value waits for
    /// a flush any more.
    pub fn all_found(&mut self) {
        self.unsettled.clear();
    }

    /// Returns all sectors with a recorded command, in order, as runs of sectors with equal allowed values. Each run
    /// has its sectors (exclusive end) and the allowed values, oldest first: the durable one, then the later ones.
    pub fn runs(&self) -> impl Iterator<Item = (Range<u64>, &[Candidate])> {
        self.runs.iter().map(|(&start, run)| (start..run.end, run.candidates.as_slice()))
    }

    /// Returns the allowed values of `sectors` (exclusive end), in order, as runs of sectors with equal allowed values.
    /// The durable value is first. The only value of sectors without a recorded command is zeros. Runs do not reach
    /// beyond `sectors`.
    pub fn within(&self, sectors: Range<u64>) -> Vec<(Range<u64>, Vec<Candidate>)> {
        let (mut pieces, mut next) = (Vec::new(), sectors.start);
        let first = self.runs.range(..=sectors.start).next_back().map_or(sectors.start, |(&start, _)| start);
        for (&start, run) in self.runs.range(first..sectors.end) {
            let (start, end) = (start.max(sectors.start), run.end.min(sectors.end));
            if start >= end {
                continue;
            }
            if next < start {
                pieces.push((next..start, vec![UNTOUCHED]));
            }
            pieces.push((start..end, run.candidates.clone()));
            next = end;
        }
        if next < sectors.end {
            pieces.push((next..sectors.end, vec![UNTOUCHED]));
        }
        pieces
    }

    /// Returns the number of sectors with a recorded command: written, trimmed or zeroed, also if not yet acknowledged.
    pub fn sectors(&self) -> u64 {
        self.runs.iter().map(|(start, run)| run.end - start).sum()
    }

    /// Splits runs at the start and end of `sectors`, and calls `change` with the history of each run between.
    fn for_each_run(&mut self, sectors: Range<u64>, mut change: impl FnMut(&mut Vec<Candidate>)) {
        self.split(sectors.start);
        self.split(sectors.end);
        let mut gaps = Vec::new();
        let mut next = sectors.start;
        for (&start, run) in self.runs.range(sectors.clone()) {
            if next < start {
                gaps.push(next..start);
            }
            next = run.end;
        }
        if next < sectors.end {
            gaps.push(next..sectors.end);
        }
        for gap in gaps {
            self.runs.insert(gap.start, Run { end: gap.end, candidates: vec![UNTOUCHED] });
        }
        self.runs.range_mut(sectors.clone()).for_each(|(_, run)| change(&mut run.candidates));
        self.join(sectors);
    }

    /// Splits the run that contains `sector` at `sector`, unless the run begins there.
    fn split(&mut self, sector: u64) {
        let Some((_, run)) = self.runs.range_mut(..sector).next_back().filter(|(_, run)| run.end > sector) else {
            return;
        };
        let rest = run.clone();
        run.end = sector;
        self.runs.insert(sector, rest);
    }

    /// Merges neighbours with equal histories, from the run before `sectors` to the one after.
    fn join(&mut self, sectors: Range<u64>) {
        let first = self.runs.range(..sectors.start).next_back().map_or(sectors.start, |(&start, _)| start);
        let starts: Vec<u64> = self.runs.range(first..=sectors.end).map(|(&start, _)| start).collect();
        let mut kept: Option<u64> = None;
        for start in starts {
            let before = kept.and_then(|kept| self.runs.get(&kept));
            let run = &self.runs[&start];
            if before.is_some_and(|before| before.end == start && before.candidates == run.candidates) {
                let end = run.end;
                self.runs.remove(&start);
                self.runs.get_mut(&kept.expect("there is one before")).expect("it is kept").end = end;
            } else {
                kept = Some(start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: runs have the histories that a list of sectors has. Method: random commands applied to both, compared
    //! after each.

    use super::*;
    use crate::random::Random;

    const SECTORS: u64 = 60;

    /// A history for each sector.
    type Naive = Vec<Vec<Candidate>>;

    fn check(record: &Record, naive: &Naive, seed: u64) {
        for (sectors, candidates) in record.within(0..SECTORS) {
            for sector in sectors {
                assert_eq!(candidates, naive[sector as usize], "sector {sector}, seed {seed}");
            }
        }
        let neighbours = record.runs().zip(record.runs().skip(1));
        for ((left, before), (right, after)) in neighbours {
            assert!(left.end < right.start || before != after, "{left:?} and {right:?} are one, seed {seed}");
        }
    }

    #[test]
    fn runs_say_what_sectors_would() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut record, mut naive) = (Record::new(), vec![vec![UNTOUCHED]; SECTORS as usize]);
            let mut acknowledgements = 0;
            for version in 1..40 {
                let start = random.below(SECTORS);
                let sectors = start..start + 1 + random.below((SECTORS - start).min(12));
                let (value, is_durable) = (Value::Version(version), random.one_in(3));
                record.begin(sectors.clone(), value);
                let is_acknowledged = !random.one_in(4);
                for sector in sectors.clone() {
                    naive[sector as usize].push(Candidate { value, acknowledged: IN_FLIGHT });
                }
                if is_acknowledged {
                    record.acknowledge(sectors.clone(), value, is_durable);
                    acknowledgements += 1;
                    for sector in sectors {
                        let history = &mut naive[sector as usize];
                        history.last_mut().unwrap().acknowledged = acknowledgements;
                        if is_durable {
                            history.drain(..history.len() - 1);
                        }
                    }
                }
                if random.one_in(6) {
                    record.flushed(record.flush_begins());
                    for history in &mut naive {
                        let durable = history.iter().rposition(|at| at.acknowledged != IN_FLIGHT).unwrap_or(0);
                        history.drain(..durable);
                    }
                }
                check(&record, &naive, seed);
            }
        }
    }
}
