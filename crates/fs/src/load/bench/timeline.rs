//! A benchmark over time: the operations, the device time by cause, and the state of the file system, in windows of
//! time.
//!
//! The first windows are narrow. Whenever there are more than the maximum, they are merged in pairs, so the number of
//! windows is about equal for runs of any length. The state of the file system is read at the first event behind the
//! end of a window. Reading the state changes nothing, takes no time and delays no task, for it happens between two
//! steps of the executor.
//!
//! Invariants:
//! 1. The sums over all rows equal those of the whole run.
//! 2. A row ends where the state is known. Windows without any event are part of the next row.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Done, Kind};
use crate::device::{ByCause, Device};
use crate::executor::Source;
use crate::{Executor, Fs};

/// Number of buckets for each power of two. So a quantile is exact to a sixteenth.
const BUCKETS_PER_POWER: u32 = 16;

/// Number, bytes and durations of the operations of one kind, such as reads, that ended in a window of time.
#[derive(Clone, Default, Debug)]
pub struct Pace {
    /// Number of operations of the kind that ended in the window.
    pub count: u64,
    /// Number of bytes that the operations read or wrote; 0 for kinds other than reads and writes.
    pub bytes: u64,
    /// Sum of the durations of the operations that ended in the window, in nanoseconds.
    pub sum_ns: u64,
    /// Longest duration of an operation that ended in the window, in nanoseconds; 0 if there were no operations.
    pub max_ns: u64,
    /// Number of operations by bucket of their duration ([`bucket_of`]).
    buckets: BTreeMap<u32, u64>,
}

/// Returns the bucket of a duration. Buckets are exact below 16 ns, and at most a sixteenth wide above.
fn bucket_of(ns: u64) -> u32 {
    let power = (ns | 1).ilog2().max(BUCKETS_PER_POWER.ilog2());
    let step = power - BUCKETS_PER_POWER.ilog2();
    step * BUCKETS_PER_POWER + (ns >> step) as u32
}

/// Returns the longest duration in a bucket, in nanoseconds.
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

    /// Adds the operations of `other`, which are of the same kind and ended in another window.
    pub fn add(&mut self, other: &Pace) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        other.buckets.iter().for_each(|(bucket, count)| *self.buckets.entry(*bucket).or_default() += count);
    }

    /// Returns the mean duration of an operation in nanoseconds, rounded down; 0 if there were no operations.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns / self.count.max(1)
    }

    /// Returns the duration in nanoseconds that a share `quantile` of the operations, from 0 to 1, did not exceed. The
    /// result is never too small, and at most a sixteenth too large. It is 0 if there were no operations.
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

/// State of a file system at one moment. Counters of the file system begin at its mount, device times when the devices
/// were opened. Blocks have 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// Device time, in nanoseconds, and blocks read and written since the devices were opened, by cause, summed over
    /// all devices.
    pub spent: ByCause,
    /// Number of blocks of 4 KiB that file data could occupy, live and free ones together. Space kept back for the
    /// cleaner is not included.
    pub blocks: u64,
    /// Number of blocks of 4 KiB with live data at this moment. On a store that appends to zones, blocks being written
    /// count too.
    pub live: u64,
    /// Number of written blocks of 4 KiB that are not live at this moment and must be cleaned before they can be
    /// written: dead data, and on the store `log` also records and padding. 0 on a store without cleaning.
    pub dead: u64,
    /// Number of blocks of 4 KiB that the cleaner or a repairing scrub copied to another place since the mount.
    pub blocks_cleaned: u64,
    /// Number of zones or stripe groups that the cleaner emptied since the mount.
    pub zones_cleaned: u64,
    /// Sum of the times by which writers were slowed down for the cleaner since the mount, in nanoseconds.
    pub throttled_ns: u64,
    /// Sum of the times for which writers waited for space since the mount, in nanoseconds: until other writes were
    /// done, or a zone was empty.
    pub waited_ns: u64,
    /// Number of bytes of file data in memory that are not yet written to the devices, at this moment.
    pub staged_bytes: u64,
}

impl State {
    /// Returns the current state of `fs`, whose devices are `devices`.
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

/// Window of time of a run, or several windows merged into one.
#[derive(Clone, Default, Debug)]
pub struct Row {
    /// Beginning of the row's window of time, in nanoseconds since the beginning of the run.
    pub begin_ns: u64,
    /// End of the row's window of time, in nanoseconds since the beginning of the run.
    pub end_ns: u64,
    /// Number, bytes and durations of the operations that ended in the row's window of time, by kind. A kind without
    /// any operation is absent.
    pub done: BTreeMap<Kind, Pace>,
    /// State of the file system, read at the first event after the end of the row's window of time; `None` if it was
    /// not read.
    pub state: Option<State>,
}

impl Row {
    /// Adds `other`, the row that follows.
    fn merge(&mut self, other: Row) {
        self.end_ns = other.end_ns;
        self.state = other.state.or(self.state);
        for (kind, pace) in &other.done {
            self.done.entry(*kind).or_default().add(pace);
        }
    }
}

/// Resolution of a timeline: the width of its first windows, and the maximum number of windows. A run that needs more
/// windows merges them in pairs, which doubles their width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grain {
    /// Width of the first windows, in nanoseconds; 0 counts as 1. It doubles whenever windows are merged in pairs.
    pub first_ns: u64,
    /// Maximum number of windows; less than 2 counts as 2. If a run needs more, windows are merged in pairs.
    pub windows_max: usize,
}

impl Default for Grain {
    /// Returns windows of a millisecond, less than a rotation of a disk, and at most 256 of them.
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
    /// Returns the window that contains a time. Merges windows if there would be too many.
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

/// Timeline of a run in progress: its operations, and the states of the file system, in windows of time. A clone is
/// another handle of one timeline.
#[derive(Clone, Debug)]
pub struct Timeline(Arc<Mutex<Windows>>);

impl Timeline {
    /// Returns a timeline of a run that begins at the time `began_ns`, in nanoseconds of the file system's clock.
    pub fn new(began_ns: u64, grain: Grain) -> Timeline {
        let (width_ns, most) = (grain.first_ns.max(1), grain.windows_max.max(2));
        Timeline(Arc::new(Mutex::new(Windows { began_ns, width_ns, most, rows: Vec::new() })))
    }

    fn windows(&self) -> std::sync::MutexGuard<'_, Windows> {
        // A panic in another thread ends the run; the data are consistent at every moment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an operation to the window of time in which it ended. Windows are merged in pairs if there are too many.
    pub fn note(&self, done: &Done) {
        self.windows().at(done.ended_ns).done.entry(done.kind).or_default().note(done);
    }

    /// Reads the state of `fs` on `devices` at the first event after the end of each window, from now on until the
    /// returned registration is dropped.
    pub fn look_at(&self, executor: &Executor, fs: &Fs, devices: &[Device]) -> Looking {
        let (timeline, fs, devices) = (self.clone(), fs.clone(), devices.to_vec());
        let looker = Looker { timeline, fs, devices, next_ns: Cell::new(executor.now_ns()) };
        let source: Rc<dyn Source> = Rc::new(looker);
        executor.add_source(source.clone());
        Looking { executor: executor.clone(), source }
    }

    /// Returns the rows of a run that ended at `ended_ns`, in nanoseconds of the file system's clock, in order of time.
    /// `state` is the state of the file system at the end. If it is given, a window whose state was not read becomes
    /// part of the next row. The last row ends with the run.
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

    /// Enters the state at the end of the last complete window, when the clock has reached `now_ns`. Returns the end of
    /// the current window.
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

/// Event source that reads the state when the clock passes the end of a window. It causes no events itself.
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

/// Registration that [`Timeline::look_at`] returns. The state of the file system is read once in each window of time
/// until the registration is dropped.
pub struct Looking {
    executor: Executor,
    source: Rc<dyn Source>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        self.executor.drop_source(&self.source);
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
        // No event until 47: the operation that ended then took all that time.
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
            let estimate = pace.quantile_ns(quantile);
            assert!((exact..=exact + exact / 16).contains(&estimate), "{quantile}: {estimate}, exactly {exact}");
        }
        for ns in (0..300).chain([4095, 4096, 1 << 40, u64::MAX]) {
            let edge = upper_edge_ns(bucket_of(ns));
            assert!(edge >= ns && edge - ns <= ns / 16, "{ns} in a bucket up to {edge}");
        }
    }
}
