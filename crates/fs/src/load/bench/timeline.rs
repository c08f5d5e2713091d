//! A benchmark over time: what was done, what devices spent their time on, and how the file system stood, window by window.
//!
//! Windows begin narrow and are merged two by two whenever there are more than may be, so a run of any length has about as many.
//! The state is looked at when the clock comes to something behind the end of a window. Looking changes nothing and takes no
//! time, and keeps nobody waiting: it happens between two turns of the clock.
//!
//! Invariants:
//! 1. The sums over all rows are those of the whole run.
//! 2. A row ends where the state is known; windows in which nothing happened at all are part of the row behind them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Done, Kind};
use crate::clock::Source;
use crate::device::{ByCause, Device};
use crate::{Clock, Fs};

/// Buckets of each power of two, so that a quantile is told to a sixteenth.
const BUCKETS_PER_POWER: u32 = 16;

/// How long operations of one kind took in a window.
#[derive(Clone, Default, Debug)]
pub struct Pace {
    /// How many there were.
    pub count: u64,
    /// Bytes that were read or written.
    pub bytes: u64,
    /// All of them together.
    pub sum_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many took about so long, by [`bucket_of`].
    buckets: BTreeMap<u32, u64>,
}

/// The bucket of a time: exact below 16 ns, a sixteenth wide at most from there on.
fn bucket_of(ns: u64) -> u32 {
    let power = (ns | 1).ilog2().max(BUCKETS_PER_POWER.ilog2());
    let step = power - BUCKETS_PER_POWER.ilog2();
    step * BUCKETS_PER_POWER + (ns >> step) as u32
}

/// The longest time in a bucket.
fn upper_edge_ns(bucket: u32) -> u64 {
    let step = (bucket / BUCKETS_PER_POWER).saturating_sub(1);
    let kept = u64::from(bucket - step * BUCKETS_PER_POWER);
    (kept << step) + ((1 << step) - 1)
}

impl Pace {
    fn note(&mut self, done: &Done) {
        self.count += 1;
        self.bytes += done.bytes;
        self.sum_ns += done.took_ns;
        self.max_ns = self.max_ns.max(done.took_ns);
        *self.buckets.entry(bucket_of(done.took_ns)).or_default() += 1;
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Pace) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        other.buckets.iter().for_each(|(bucket, count)| *self.buckets.entry(*bucket).or_default() += count);
    }

    /// The mean, rounded down; zero where there were none.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns / self.count.max(1)
    }

    /// The time that a share `quantile` of them did not exceed: no less than it was, and no more than a sixteenth above.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let wanted = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let mut so_far = 0;
        let bucket = self.buckets.iter().find(|(_, count)| {
            so_far += **count;
            so_far >= wanted
        });
        bucket.map_or(0, |(bucket, _)| upper_edge_ns(*bucket).min(self.max_ns))
    }
}

/// How a file system stands. What is counted is counted since it was mounted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// What all its devices spent their time on.
    pub spent: ByCause,
    /// Blocks that files could lie in, those with live data, those with dead data.
    pub blocks: u64,
    /// See `blocks`.
    pub live: u64,
    /// See `blocks`.
    pub dead: u64,
    /// Blocks that the cleaner copied.
    pub blocks_cleaned: u64,
    /// Zones that it emptied.
    pub zones_cleaned: u64,
    /// How long writers were slowed down, all together.
    pub throttled_ns: u64,
    /// How long writers waited for a place to write to, all together: until others had written theirs, or a zone was empty.
    pub waited_ns: u64,
    /// Bytes that are not yet written.
    pub staged_bytes: u64,
}

impl State {
    /// How `fs` on `devices` stands now.
    pub fn of(fs: &Fs, devices: &[Device]) -> State {
        let status = fs.status();
        let (usage, counters) = (status.usage, status.counters);
        State {
            spent: devices.iter().fold(ByCause::default(), |sum, device| sum.and(&device.spent())),
            blocks: usage.blocks,
            live: usage.live,
            dead: usage.dead,
            blocks_cleaned: counters.blocks_cleaned,
            zones_cleaned: counters.zones_cleaned,
            throttled_ns: counters.throttled_ns,
            waited_ns: counters.waited_ns,
            staged_bytes: status.staged_bytes,
        }
    }
}

/// A part of a run.
#[derive(Clone, Default, Debug)]
pub struct Row {
    /// When it began, from the beginning of the run.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// What was done in it.
    pub done: BTreeMap<Kind, Pace>,
    /// How the file system stood at its end, where that was looked at.
    pub state: Option<State>,
}

impl Row {
    /// Takes `other`, which follows it, in.
    fn merge(&mut self, other: Row) {
        self.end_ns = other.end_ns;
        self.state = other.state.or(self.state);
        for (kind, pace) in &other.done {
            self.done.entry(*kind).or_default().add(pace);
        }
    }
}

/// How finely a run is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grain {
    /// How wide the first windows are.
    pub first_ns: u64,
    /// Windows at most; at least two.
    pub windows_max: usize,
}

impl Default for Grain {
    /// A millisecond, less than a disk turns in, and more windows than a chart has room for steps.
    fn default() -> Grain {
        Grain { first_ns: 1_000_000, windows_max: 256 }
    }
}

#[derive(Debug)]
struct Windows {
    began_ns: u64,
    width_ns: u64,
    most: usize,
    rows: Vec<Row>,
}

impl Windows {
    /// The window of a time.
    fn at(&mut self, now_ns: u64) -> &mut Row {
        let since_ns = now_ns.saturating_sub(self.began_ns);
        while since_ns / self.width_ns >= self.most as u64 {
            self.width_ns *= 2;
            let mut rows = std::mem::take(&mut self.rows).into_iter();
            while let Some(mut row) = rows.next() {
                rows.next().into_iter().for_each(|other| row.merge(other));
                row.end_ns = row.begin_ns + self.width_ns;
                self.rows.push(row);
            }
        }
        let index = (since_ns / self.width_ns) as usize;
        while self.rows.len() <= index {
            let begin_ns = self.rows.len() as u64 * self.width_ns;
            self.rows.push(Row { begin_ns, end_ns: begin_ns + self.width_ns, ..Row::default() });
        }
        &mut self.rows[index]
    }
}

/// A run over time, while it lasts. Cloning gives another handle of the same.
#[derive(Clone, Debug)]
pub struct Timeline(Arc<Mutex<Windows>>);

impl Timeline {
    /// Of a run that begins at `began_ns`.
    pub fn new(began_ns: u64, grain: Grain) -> Timeline {
        let (width_ns, most) = (grain.first_ns.max(1), grain.windows_max.max(2));
        Timeline(Arc::new(Mutex::new(Windows { began_ns, width_ns, most, rows: Vec::new() })))
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, Windows> {
        // A thread that panics ends the run, and what it left is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes down what was done.
    pub fn note(&self, done: &Done) {
        self.windows().at(done.ended_ns).done.entry(done.kind).or_default().note(done);
    }

    /// Looks at `fs` on `devices` from now on, at the end of every window.
    pub fn look_at(&self, clock: &Clock, fs: &Fs, devices: &[Device]) -> Looking {
        let (timeline, fs, devices) = (self.clone(), fs.clone(), devices.to_vec());
        let looker = Looker { timeline, fs, devices, next_ns: Cell::new(clock.now_ns()) };
        let source: Rc<dyn Source> = Rc::new(looker);
        clock.add_source(source.clone());
        Looking { clock: clock.clone(), source }
    }

    /// The rows of a run that ended at `ended_ns`, when the file system stood so, if that is known.
    pub fn rows(&self, ended_ns: u64, state: Option<State>) -> Vec<Row> {
        let mut windows = self.windows();
        windows.at(ended_ns).state = state;
        let ended_ns = ended_ns - windows.began_ns;
        let (mut rows, mut open): (Vec<Row>, Option<Row>) = (Vec::new(), None);
        let looks = state.is_some();
        for row in &windows.rows {
            let mut whole = open.take().unwrap_or(Row { begin_ns: row.begin_ns, ..Row::default() });
            whole.merge(row.clone());
            whole.end_ns = whole.end_ns.min(ended_ns);
            if looks && row.state.is_none() {
                open = Some(whole);
            } else {
                rows.push(whole);
            }
        }
        rows.extend(open);
        rows.retain(|row| row.end_ns > row.begin_ns || !row.done.is_empty());
        rows
    }

    /// The clock has come to `now_ns`: enters the state at the end of the window before. Returns when the next one ends.
    fn pass(&self, now_ns: u64, state: impl FnOnce() -> State) -> u64 {
        let mut windows = self.windows();
        windows.at(now_ns);
        let (began_ns, width_ns) = (windows.began_ns, windows.width_ns);
        let index = (now_ns - began_ns) / width_ns;
        if let Some(before) = index.checked_sub(1) {
            windows.rows[before as usize].state = Some(state());
        }
        began_ns + (index + 1) * width_ns
    }
}

/// Looks whenever the clock has come past the end of a window; it makes no events itself.
struct Looker {
    timeline: Timeline,
    fs: Fs,
    devices: Vec<Device>,
    next_ns: Cell<u64>,
}

impl Source for Looker {
    fn next_event_ns(&self, _now_ns: u64) -> Option<u64> {
        None
    }

    fn deliver(&self, now_ns: u64) {
        if now_ns >= self.next_ns.get() {
            self.next_ns.set(self.timeline.pass(now_ns, || State::of(&self.fs, &self.devices)));
        }
    }
}

/// Looks until it is dropped.
pub struct Looking {
    clock: Clock,
    source: Rc<dyn Source>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.clock.drop_source(&self.source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(ended_ns: u64, took_ns: u64) -> Done {
        Done { kind: Kind::Read, ended_ns, took_ns, bytes: 10 }
    }

    fn spans(rows: &[Row]) -> Vec<(u64, u64, u64)> {
        rows.iter().map(|row| (row.begin_ns, row.end_ns, row.done.values().map(|pace| pace.count).sum())).collect()
    }

    #[test]
    fn windows_are_merged_two_by_two_and_nothing_is_lost() {
        let timeline = Timeline::new(1000, Grain { first_ns: 10, windows_max: 4 });
        [1000, 1009, 1011, 1039].into_iter().for_each(|at| timeline.note(&done(at, 5)));
        assert_eq!(spans(&timeline.rows(1040, None)), [(0, 20, 3), (20, 40, 1)], "the end lies in a fifth window");
        timeline.note(&done(1158, 7));
        let rows = timeline.rows(1159, None);
        assert_eq!(spans(&rows), [(0, 40, 4), (40, 80, 0), (80, 120, 0), (120, 159, 1)]);
        let pace = &rows[0].done[&Kind::Read];
        assert_eq!((pace.bytes, pace.sum_ns, pace.max_ns, pace.mean_ns()), (40, 20, 5, 5));
    }

    #[test]
    fn a_row_ends_where_the_state_is_known() {
        let timeline = Timeline::new(0, Grain { first_ns: 10, windows_max: 100 });
        let state = |live| State { live, ..State::default() };
        assert_eq!(timeline.pass(3, || unreachable!("no window is over")), 10);
        timeline.note(&done(8, 1));
        assert_eq!(timeline.pass(12, || state(1)), 20);
        // Nothing happens until 47: what was done by then took all that time.
        assert_eq!(timeline.pass(47, || state(2)), 50);
        timeline.note(&done(47, 35));
        let rows = timeline.rows(49, Some(state(3)));
        assert_eq!(spans(&rows), [(0, 10, 1), (10, 40, 0), (40, 49, 1)]);
        let live: Vec<u64> = rows.iter().map(|row| row.state.expect("it is known").live).collect();
        assert_eq!(live, [1, 2, 3]);
    }

    #[test]
    fn a_quantile_is_no_less_than_it_was_and_no_more_than_a_sixteenth_above() {
        let mut pace = Pace::default();
        let times: Vec<u64> = (0..1000).map(|number: u64| number * number * 37).collect();
        times.iter().for_each(|ns| pace.note(&done(0, *ns)));
        for (quantile, exact) in [(0.001, times[0]), (0.5, times[499]), (0.99, times[989]), (1.0, times[999])] {
            let told = pace.quantile_ns(quantile);
            assert!((exact..=exact + exact / 16).contains(&told), "{quantile}: {told}, exactly {exact}");
        }
        for ns in (0..300).chain([4095, 4096, 1 << 40, u64::MAX]) {
            let edge = upper_edge_ns(bucket_of(ns));
            assert!(edge >= ns && edge - ns <= ns / 16, "{ns} in a bucket up to {edge}");
        }
    }
}
