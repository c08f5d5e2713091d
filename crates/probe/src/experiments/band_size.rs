//! Tests 9 and 10: how large is a band, and does it move when it is cleaned? Blocks a mebibyte apart are written in random
//! order, and cleaning is made to run a little at a time; the blocks that leave the cache together are a band's (Aghayev
//! 2015 §4.7), and finer ones around its ends tell its size. If each then takes as long to read as before it was written,
//! it is in its place again: the mapping is static; if not, the band has moved (§4.8).
//!
//! A drive that cleans when idle is left alone for as long as one band takes. One that does not is written to in one place
//! until it has no room and one write waits for cleaning.

use super::{only_for_cached, Experiment};
use crate::bench::{Bench, BLOCK_BYTES, DEPTH, MIB};
use crate::marks::{same, Marks, Times};
use crate::statistics::{best_run, change, median};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value, Verdict};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "band-size",
    question: "how large is a band, and is the mapping static or dynamic?",
    source: "Aghayev 2015 tests 9, 10",
    writes: true,
    needs: &["rotation", "type", "cleaning", "cleaning-order"],
    tells: &["band_bytes_od", "band_bytes_md", "band_bytes_id", "mapping"],
    about_s: 900,
    is_idle,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let is_known = verdict.word("cleaning").is_some();
    only_for_cached(verdict).or((!is_known).then_some("whether it cleans when idle is not known"))
}

/// Blocks of the region, a mebibyte apart.
const BLOCKS: u64 = 256;
/// Blocks around each end of a band, and how many fit into the band.
const FINE: u64 = 40;
const FINE_OF_BAND: u64 = 200;
/// Where the bands are measured, as shares of the drive.
const PLACES: [(f64, &str, &str); 3] = [
    (0.01, "band_bytes_od", "blocks cleaned together, outer"),
    (0.5, "band_bytes_md", "blocks cleaned together, middle"),
    (0.985, "band_bytes_id", "blocks cleaned together, inner"),
];
/// Times that cleaning is made to run.
const STEPS: usize = 24;
/// A block that is elsewhere has moved; one that seems to be where it was may lie at the same angle by chance.
const CERTAIN: i32 = 3;
/// Bands seen whole before one is measured.
const BANDS: usize = 3;
/// A write waits for cleaning if it takes so many rotations: as long as reading and writing a few tracks.
const STALL_ROTATIONS: f64 = 14.0;
/// What is written in one place at most until a write waits, and between a block and those that must be younger.
const FILL_BYTES_MAX: u64 = 8 << 30;
const APART_BYTES: u64 = 96 * MIB;
const FILLER_BYTES: u64 = 508 << 10;

/// Blocks, where they were read before they were written, and after.
struct Region {
    marks: Marks,
    native: Times,
    cached: Times,
    moved: Vec<bool>,
}

/// Blocks that were cleaned, and how many of them are where they were before they were written.
#[derive(Default)]
struct Returned {
    cleaned: usize,
    in_place: usize,
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    if bench.cleans_when_idle() && !bench.can_wait_for_cleaning() {
        let because = "it waits too long before it cleans".to_string();
        bench.verdict.conclude("band_bytes_md", Value::CannotTell, "B", Confidence::Low, because, &[]);
        return Ok(());
    }
    let mut returned = Returned::default();
    let span = BLOCKS * MIB;
    for (share, name, series) in PLACES {
        let offset = bench.at_share(share).min(bench.last_offset(span + 2 * MIB));
        let size = measure(bench, offset, series, &mut returned)?;
        let (value, sure, because) = match size {
            Some((bytes, bands)) => (
                Value::Number(bytes as f64),
                Confidence::High,
                format!("blocks over {:.2} MiB left the cache together; {bands} bands seen", bytes as f64 / MIB as f64),
            ),
            None => (Value::CannotTell, Confidence::Low, "no blocks left the cache together".to_string()),
        };
        bench.verdict.conclude(name, value, "B", sure, because, &[series]);
        bench.drain(2 * BLOCKS / 8)?;
    }
    conclude_mapping(bench, &returned);
    Ok(())
}

fn conclude_mapping(bench: &mut Bench<'_>, returned: &Returned) {
    let evidence = PLACES.map(|(_, _, series)| series);
    let share = returned.in_place as f64 / returned.cleaned.max(1) as f64;
    let because = format!(
        "{:.0} % of {} cleaned blocks are read as they were before they were written",
        share * 100.0,
        returned.cleaned
    );
    let (value, sure) = match share {
        _ if returned.cleaned < 8 => (Value::CannotTell, Confidence::Low),
        share if share > 0.8 => (Value::Word("static"), Confidence::High),
        share if share < 0.6 => (Value::Word("dynamic"), Confidence::High),
        _ => (Value::CannotTell, Confidence::Low),
    };
    bench.verdict.conclude("mapping", value, "", sure, because, &evidence);
}

/// The size of a band near `offset`, and how many were seen.
fn measure(
    bench: &mut Bench<'_>,
    offset: u64,
    series: &'static str,
    returned: &mut Returned,
) -> Result<Option<(u64, usize)>, TargetError> {
    let blocks = (0..BLOCKS).map(|index| offset + index * MIB).collect();
    let mut region = Region::prepare(bench, blocks, &[])?;
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    let mut pause = first_pause(bench);
    let mut points = Vec::new();
    for step in 0..STEPS {
        let newly = region.clean_a_little(bench, pause)?;
        let scores: Vec<i32> = newly.iter().map(|&newly| if newly { CERTAIN } else { -1 }).collect();
        let run = best_run(&scores);
        if run.len() < 2 {
            pause *= 1.3;
            continue;
        }
        points.extend(
            newly.iter().enumerate().filter(|(_, newly)| **newly).map(|(index, _)| (index as f64, step as f64)),
        );
        if run.start > 0 && run.end < newly.len() {
            found.push(run);
        }
        if found.len() == BANDS || !bench.cleans_when_idle() {
            break;
        }
    }
    bench.keep_points(series, "MiB", "step", points);
    region.note_returned(bench, returned)?;
    let Some(run) = single_band(&found) else { return Ok(None) };
    let size = refine(bench, offset, &run)?;
    Ok(size.map(|bytes| (bytes, found.len())))
}

/// The run that most others are as long as; of several such, the shortest: two bands may leave in one step.
fn single_band(found: &[std::ops::Range<usize>]) -> Option<std::ops::Range<usize>> {
    let alike =
        |run: &std::ops::Range<usize>| found.iter().filter(|other| other.len().abs_diff(run.len()) <= 2).count();
    found.iter().max_by_key(|run| (alike(run), std::cmp::Reverse(run.len()))).cloned()
}

/// How long cleaning runs at first, nanoseconds: less than a band takes.
fn first_pause(bench: &Bench<'_>) -> f64 {
    bench.verdict.number("cleaning_time").map_or(1e8, |seconds| seconds * 0.5e9)
}

/// The size of the band over the blocks `run` of the region at `offset`, by finer blocks around its ends.
fn refine(bench: &mut Bench<'_>, offset: u64, run: &std::ops::Range<usize>) -> Result<Option<u64>, TargetError> {
    let step = (run.len() as u64 * MIB / FINE_OF_BAND / BLOCK_BYTES).max(1) * BLOCK_BYTES;
    // The end lies in the mebibyte before the first block, or after the last.
    let fine = FINE.max((MIB + MIB / 2) / step);
    let (first, last) = (offset + run.start as u64 * MIB, offset + (run.end as u64 - 1) * MIB);
    let ends: Vec<u64> = [first.saturating_sub(MIB + 2 * step), last.saturating_sub(2 * step)]
        .into_iter()
        .flat_map(|from| (0..fine).map(move |index| from + index * step + BLOCK_BYTES))
        .collect();
    let middle = (first + last) / 2 / MIB * MIB + 2 * BLOCK_BYTES;
    let side = fine as usize;
    for attempt in 0..2 {
        let mut region = Region::prepare(bench, ends.clone(), &[middle])?;
        let mut pause = first_pause(bench) / (1 + attempt) as f64;
        for _ in 0..STEPS {
            let newly = region.clean_a_little(bench, pause)?;
            let (left, right) = newly.split_at(side);
            let right: Vec<bool> = right.iter().map(|newly| !newly).collect();
            let ((begin, doubts_left), (end, doubts_right)) = (change(left, true), change(&right, false));
            let is_within = (1..side).contains(&begin) && (1..side).contains(&end);
            if is_within && doubts_left.max(doubts_right) <= side / 8 {
                return Ok(Some(region.marks.blocks[side + end] - region.marks.blocks[begin]));
            }
            if newly.iter().filter(|newly| **newly).count() < 2 {
                pause *= 1.3;
            }
        }
        bench.drain(4)?;
    }
    Ok(Some(run.len() as u64 * MIB))
}

impl Region {
    /// Reads `blocks`, writes `first` and then them, in random order, and reads them again.
    fn prepare(bench: &mut Bench<'_>, blocks: Vec<u64>, first: &[u64]) -> Result<Region, TargetError> {
        let marks = Marks::new(bench, blocks);
        let native = marks.read(bench)?;
        let mut order = marks.blocks.clone();
        bench.shuffle(&mut order);
        if !bench.cleans_when_idle() {
            // What is left in the cache from before goes first; then one block, and all others much later, so that cleaning
            // what is oldest then takes the band of that one alone.
            let at = marks.middle();
            fill_until_stall(bench, at, FILL_BYTES_MAX)?;
            bench.write_blocks(1, &[at + 100 * BLOCK_BYTES])?;
            fill(bench, at, APART_BYTES)?;
        }
        bench.write_blocks(DEPTH, first)?;
        bench.write_blocks(DEPTH, &order)?;
        let cached = marks.read(bench)?;
        let moved = vec![false; cached.len()];
        Ok(Region { marks, native, cached, moved })
    }

    /// Once all cleaning is over: how many of the blocks that left the cache are where they were before they were written.
    /// Until then a band may lie where it is kept safe while it is rewritten.
    fn note_returned(&self, bench: &mut Bench<'_>, returned: &mut Returned) -> Result<(), TargetError> {
        bench.drain(2 * BLOCKS / 8)?;
        let moved: Vec<usize> = (0..self.moved.len()).filter(|&index| self.moved[index]).collect();
        let times = self.marks.read_some(bench, &moved)?;
        let native: Vec<u64> = moved.iter().map(|&index| self.native[index]).collect();
        returned.cleaned += moved.len();
        returned.in_place += same(bench, &native, &times).iter().filter(|same| **same).count();
        Ok(())
    }

    /// Makes cleaning run, for `pause_ns` where it runs when idle; which blocks have left the cache since the last time.
    fn clean_a_little(&mut self, bench: &mut Bench<'_>, pause_ns: f64) -> Result<Vec<bool>, TargetError> {
        if bench.cleans_when_idle() {
            bench.target.sleep((bench.trigger_ns() + pause_ns) as u64)?;
        } else {
            fill_until_stall(bench, self.marks.middle(), FILL_BYTES_MAX)?;
        }
        let times = self.marks.read(bench)?;
        let stays = same(bench, &self.cached, &times);
        let newly: Vec<bool> = stays.iter().zip(&self.moved).map(|(stays, moved)| !stays && !moved).collect();
        for (index, _) in newly.iter().enumerate().filter(|(_, newly)| **newly) {
            self.moved[index] = true;
        }
        Ok(newly)
    }
}

impl Marks {
    /// A place between the blocks, near the middle one.
    fn middle(&self) -> u64 {
        let (first, last) = (self.blocks[0], self.blocks[self.blocks.len() - 1]);
        (first + last) / 2 / MIB * MIB + 128 * BLOCK_BYTES
    }
}

/// Writes over a few pieces at `at`, so many bytes in all.
fn fill(bench: &mut Bench<'_>, at: u64, bytes: u64) -> Result<(), TargetError> {
    let writes: Vec<_> = (0..bytes / FILLER_BYTES).map(|index| filler(at, index)).collect();
    bench.one_by_one(&writes).map(|_| ())
}

/// Two pieces in turn that do not touch, so that no stream is seen in them.
fn filler(at: u64, index: u64) -> Operation {
    Operation::write(at + index % 2 * (FILLER_BYTES + BLOCK_BYTES), FILLER_BYTES)
}

/// Writes there until a write waits for cleaning; whether one did.
fn fill_until_stall(bench: &mut Bench<'_>, at: u64, bytes_max: u64) -> Result<bool, TargetError> {
    let limit = STALL_ROTATIONS * bench.rotation_ns();
    let (mut index, mut stalled, mut usual) = (0, false, Vec::new());
    let mut next = || {
        index += 1;
        (index * FILLER_BYTES < bytes_max).then(|| filler(at, index))
    };
    bench.target.perform(1, &mut next, &mut |timed| {
        let latency = timed.latency_ns();
        if usual.len() < 16 {
            usual.push(latency);
        }
        stalled = latency as f64 > limit.max(4.0 * median(&usual) as f64);
        !stalled
    })?;
    Ok(stalled)
}
