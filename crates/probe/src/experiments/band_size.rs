//! Tests 9 and 10: how large is a band, and does it move when it is cleaned? Blocks a mebibyte apart are written in
//! random order, and cleaning is made to run for a short time. The blocks that leave the cache together belong to one
//! band (Aghayev 2015 §4.7), and finer blocks around its ends show its size. If each block then takes as long to read
//! as before it was written, it is in its home location again, and the mapping is static; otherwise the band has moved,
//! and the mapping is dynamic (§4.8).
//!
//! A drive that cleans when idle is left idle for as long as one band takes. To make any other drive clean, the test
//! writes in one place until the cache is full and a write waits for cleaning.

use std::ops::Range;

use super::band_sizes::{Size, confidence};
use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::marks::{Marks, Times, is_elsewhere, same};
use crate::statistics::{change, median, runs};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value, Verdict};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "band-size",
    question: "how large is a band, and is the mapping static or dynamic?",
    source: "Aghayev 2015 tests 9, 10",
    writes: true,
    needs: &["rotation", "type", "cleaning", "cleaning-order"],
    properties: &["band_bytes_od", "band_bytes_md", "band_bytes_id", "mapping"],
    about_s: 900,
    skip_reason: is_idle,
    run_after: |_| None,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let is_known = verdict.word("cleaning").is_some();
    only_for_cached(verdict).or((!is_known).then_some("whether it cleans when idle is not known"))
}

/// Number of blocks of the region, a mebibyte apart.
const BLOCKS: u64 = 256;
/// Density of the finer blocks around the ends of a band: as many as would fit into the band.
const FINE_OF_BAND: u64 = 160;
/// Places where bands are measured, as shares of the drive, with the names of the property and of the series.
const PLACES: [(f64, &str, &str); 3] = [
    (0.01, "band_bytes_od", "blocks cleaned together, outer"),
    (0.5, "band_bytes_md", "blocks cleaned together, middle"),
    (0.997, "band_bytes_id", "blocks cleaned together, inner"),
];
/// Most times that cleaning is made to run.
const STEPS: usize = 40;
/// Distance to the next region that is tried if one showed nothing, bytes: a region may cover the end of a zone.
const NEXT_REGION: u64 = 1 << 30;
/// Most blocks in a row that may seem unmoved within a moved run, for exact and for varying measurements: a moved block
/// may lie at its old angle by chance.
const GAPS: [usize; 2] = [2, 5];
/// Number of bands that must be seen whole before one is measured.
const BANDS: usize = 3;
/// Most bytes written in one place until a write waits, and the number of stalls after which the data cached before is
/// gone.
const FILL_BYTES_MAX: u64 = 8 << 30;
const STALLS: usize = 4;
/// Bytes of the fine blocks around an end that lie within the band.
const WITHIN_BYTES: u64 = 3 * MIB / 2;
/// Most attempts to find the ends of a band.
const ATTEMPTS: u32 = 3;
/// Most rewrites of blocks whose read times do not differ from those in their home locations.
const REWRITES: usize = 3;
/// Distances in written data between blocks of different age that are tried, MiB.
const APART_MIB: [u64; 9] = [90, 66, 48, 40, 32, 26, 20, 15, 11];
const FILLER_BYTES: u64 = 508 << 10;

/// Most scattered blocks that may seem to have left the cache by chance.
const SCATTERED_MIN: usize = 4;
/// Reciprocal of the part of a band by which its ends may differ in a second measurement.
const AGAIN_PART: u64 = 64;
/// Blocks, with their read times before and after they were written.
struct Region {
    marks: Marks,
    native: Times,
    cached: Times,
    moved: Vec<bool>,
    filler: Filler,
}

/// Number of blocks that were cleaned, and of those that lie where they lay before they were written.
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
    let (mut returned, mut told) = (Returned::default(), Vec::new());
    let span = BLOCKS * MIB;
    for (share, _, series) in PLACES {
        let offset = bench.at_share(share).min(bench.last_offset(span + 2 * MIB));
        let mut size = None;
        for on in [0, NEXT_REGION, 2 * NEXT_REGION] {
            let region = if share > 0.9 { offset.saturating_sub(on) } else { offset + on };
            size = measure(bench, region, series, &mut returned)?;
            if size.is_some() {
                break;
            }
            bench.drain(2 * BLOCKS / 8)?;
        }
        told.push(size);
        conclude_sizes(bench, &told);
        bench.drain(2 * BLOCKS / 8)?;
    }
    conclude_mapping(bench, &returned);
    Ok(())
}

/// Concludes the band sizes from the places measured so far.
fn conclude_sizes(bench: &mut Bench<'_>, told: &[Option<Size>]) {
    for ((_, name, series), size) in PLACES.into_iter().zip(told) {
        let (value, because) = match size {
            Some(Size { bytes, bands }) => {
                let seen = if *bands == 1 { "band" } else { "bands" };
                let mib = *bytes as f64 / MIB as f64;
                let because = format!("blocks over {mib:.2} MiB left the cache together; {bands} {seen} seen");
                (Value::Number(*bytes as f64), because)
            }
            None => (Value::CannotTell, "no blocks left the cache together".to_string()),
        };
        let sure = size.map_or(Confidence::Low, |size| confidence(size, told, PLACES.len()));
        bench.verdict.conclude(name, value, "B", sure, because, &[series]);
    }
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
        // A static mapping returns every block. A dynamic one with two places for a band returns half of them.
        share if share > 0.65 => (Value::Word("static"), Confidence::Medium),
        share if share < 0.45 => (Value::Word("dynamic"), Confidence::High),
        share if share < 0.55 => (Value::Word("dynamic"), Confidence::Medium),
        _ => (Value::CannotTell, Confidence::Low),
    };
    bench.verdict.conclude("mapping", value, "", sure, because, &evidence);
}

/// Returns the size of a band near `offset`.
fn measure(
    bench: &mut Bench<'_>,
    offset: u64,
    series: &'static str,
    returned: &mut Returned,
) -> Result<Option<Size>, TargetError> {
    let blocks: Vec<u64> = (0..BLOCKS).map(|index| offset + index * MIB).collect();
    let (mut found, mut points) = (Vec::new(), Vec::new());
    for apart in apart_bytes(bench) {
        let mut region = Region::prepare(bench, blocks.clone(), &[], apart, 0)?;
        region.look(bench, &mut found, &mut points)?;
        region.note_returned(bench, returned)?;
        if let Some(run) = single_band(bench, &found) {
            bench.keep_points(series, "MiB", "step", points.clone());
            match refine(bench, offset, &run, apart, 0)? {
                Some(band) if !is_filled_in_place(bench) || leaves_again(bench, offset, &run, apart, &band)? => {
                    return Ok(Some(Size { bytes: band.end - band.start, bands: found.len() }));
                }
                Some(_) => found.clear(),
                None => return Ok(None),
            }
        }
    }
    bench.keep_points(series, "MiB", "step", points);
    Ok(None)
}

/// Returns whether cleaning is forced by repeated writes to one place, as [`Filler`] describes.
fn is_filled_in_place(bench: &Bench<'_>) -> bool {
    !bench.cleans_when_idle() && bench.verdict.word("cache_place") != Some("several")
}

/// Returns whether a second measurement, with the writes that force cleaning a quarter of the band aside, shows the
/// same band. If these writes lie across the border of two bands, both leave the cache together. A quarter of the
/// measured length aside, the writes lie in only one of them.
fn leaves_again(
    bench: &mut Bench<'_>,
    offset: u64,
    run: &Range<usize>,
    apart: u64,
    band: &Range<u64>,
) -> Result<bool, TargetError> {
    let bytes = band.end - band.start;
    // The writes cover 0.25 to 1.5 MiB behind their offset; this centres them.
    let again = refine(bench, offset, run, apart, -(bytes as i64 / 4) - 7 * MIB as i64 / 8)?;
    let off = |again: Range<u64>| again.start.abs_diff(band.start).max(again.end.abs_diff(band.end));
    Ok(again.is_some_and(|again| off(again) <= bytes / AGAIN_PART))
}

/// Returns the amounts to write between the oldest block and the younger ones, bytes, in the order of trial, where
/// cleaning has to be forced. An amount must exceed a band, so that the blocks lie in different bands of the cache, and
/// be less than the cache holds. Returns a single 0 for a drive that cleans when idle.
fn apart_bytes(bench: &Bench<'_>) -> Vec<u64> {
    if bench.cleans_when_idle() {
        return vec![0];
    }
    let most = bench.verdict.number("cache_bytes").map_or(u64::MAX, |bytes| bytes as u64);
    APART_MIB.iter().map(|mib| mib * MIB).filter(|&bytes| bytes < most).collect()
}

fn gap(bench: &Bench<'_>) -> usize {
    GAPS[usize::from(bench.repeats > 1)]
}

/// Returns the runs of blocks that moved together. Two bands have room for another between them; so runs with a smaller
/// gap are parts of one band, and are joined.
fn bands(newly: &[bool], gap: usize) -> Vec<Range<usize>> {
    let mut bands: Vec<Range<usize>> = Vec::new();
    for run in runs(newly, gap).into_iter().filter(|run| is_band(run, newly)) {
        match bands.last_mut() {
            Some(last) if 2 * (run.start - last.end) <= last.len().max(run.len()) => last.end = run.end,
            _ => bands.push(run),
        }
    }
    bands
}

/// Returns whether most blocks of a region left the cache at one time. Forced cleaning takes every band with a block
/// near the oldest block in the cache. A run of moved blocks may then be several bands side by side, and so may a run
/// of the others. Only runs of equal length are single bands then.
fn have_most_left(newly: &[bool]) -> bool {
    2 * newly.iter().filter(|newly| **newly).count() > newly.len()
}

/// Returns whether many blocks left in groups too small to be bands, given the distance of the blocks. Then bands are
/// that small, and a longer run is several of them side by side. Where times vary, single blocks that seem to have left
/// do not count.
fn are_scattered(newly: &[bool], bands: &[Range<usize>], is_exact: bool) -> bool {
    let has_beside = |index: usize| index > 0 && newly[index - 1] || newly.get(index + 1) == Some(&true);
    let counts = |index: &usize| newly[*index] && (is_exact || has_beside(*index));
    let left: Vec<usize> = (0..newly.len()).filter(counts).collect();
    let outside = left.iter().filter(|index| !bands.iter().any(|band| band.contains(index))).count();
    outside > SCATTERED_MIN && 4 * outside > left.len()
}

/// Returns whether the blocks of a run moved together, rather than seem to have by chance.
fn is_band(run: &Range<usize>, newly: &[bool]) -> bool {
    let moved = newly[run.clone()].iter().filter(|moved| **moved).count();
    moved > 3 && 5 * moved > 3 * run.len()
}

/// Returns the run with most others of its length; of several, the shortest, because two bands may leave in one step.
/// On a drive that cleans when idle, a run may be part of a band: if no two of several runs are alike, returns nothing.
fn single_band(bench: &Bench<'_>, found: &[Range<usize>]) -> Option<Range<usize>> {
    let run = found.iter().max_by_key(|run| (alike(run, found), std::cmp::Reverse(run.len())))?;
    (alike(run, found) > 1 || found.len() == 1 || !bench.cleans_when_idle()).then(|| run.clone())
}

/// Returns the number of runs of the same length, including this one.
fn alike(run: &Range<usize>, found: &[Range<usize>]) -> usize {
    found.iter().filter(|other| other.len().abs_diff(run.len()) <= 2).count()
}

/// Returns the duration of the first cleaning, nanoseconds: less than a band takes.
fn first_pause(bench: &Bench<'_>) -> f64 {
    bench.verdict.number("cleaning_time").map_or(1e8, |seconds| seconds * 0.5e9)
}

/// Returns the offset `aside` bytes from the middle of `first` and `last`; for 0, the whole mebibyte before the middle.
fn middle(first: u64, last: u64, aside: i64) -> u64 {
    let middle = (first + last) / 2;
    if aside == 0 { middle / MIB * MIB } else { middle.saturating_add_signed(aside) / BLOCK_BYTES * BLOCK_BYTES }
}

/// Returns the extent of the band that covers the blocks `run` of the region at `offset`, found by finer blocks around
/// its ends. The writes that make the band leave the cache are `aside` bytes from its middle.
fn refine(
    bench: &mut Bench<'_>,
    offset: u64,
    run: &Range<usize>,
    apart: u64,
    aside: i64,
) -> Result<Option<Range<u64>>, TargetError> {
    let step = (run.len() as u64 * MIB / FINE_OF_BAND / BLOCK_BYTES).max(1) * BLOCK_BYTES;
    // The end lies before the first moved block or after the last one, and beyond some that seem unmoved.
    let reach = (gap(bench) as u64 + 2) * MIB;
    let fine = (reach + WITHIN_BYTES) / step;
    let (first, last) = (offset + run.start as u64 * MIB, offset + (run.end as u64 - 1) * MIB);
    let ends: Vec<u64> = [first.saturating_sub(reach), last.saturating_sub(WITHIN_BYTES)]
        .into_iter()
        .flat_map(|from| (0..fine).map(move |index| from + index * step + BLOCK_BYTES))
        .collect();
    let middle = middle(first, last, aside) + 2 * BLOCK_BYTES;
    let side = fine as usize;
    let doubtful = if bench.repeats > 1 { 5 } else { 8 };
    for attempt in 0..ATTEMPTS {
        let mut region = Region::prepare(bench, ends.clone(), &[middle], apart, aside)?;
        let mut pause = first_pause(bench) / f64::from(1 + attempt);
        let mut steps = 0;
        while !region.is_in_vain(bench, steps) {
            steps += 1;
            let newly = region.clean_a_little(bench, pause)?;
            let (left, right) = newly.split_at(side);
            let right: Vec<bool> = right.iter().map(|newly| !newly).collect();
            let ((begin, doubts_left), (end, doubts_right)) = (change(left, true), change(&right, false));
            let is_within = (1..side).contains(&begin) && (1..side).contains(&end);
            let holds = is_within && is_band(&(begin..side), &newly) && is_band(&(side..side + end), &newly);
            if holds && doubts_left.max(doubts_right) <= side / doubtful {
                return Ok(Some(region.marks.blocks[begin]..region.marks.blocks[side + end]));
            }
            if newly.iter().filter(|newly| **newly).count() < 2 {
                pause *= 1.3;
            }
            if region.has_all_moved() && !newly.contains(&true) {
                break;
            }
        }
        bench.drain(4)?;
    }
    Ok(None)
}

impl Region {
    /// Reads `blocks`, writes `first`, then writes `blocks` in random order, and reads `blocks` again. The writes that
    /// fill the cache go `aside` bytes from the middle of `blocks`.
    fn prepare(
        bench: &mut Bench<'_>,
        blocks: Vec<u64>,
        first: &[u64],
        apart: u64,
        aside: i64,
    ) -> Result<Region, TargetError> {
        let marks = Marks::new(bench, blocks);
        let native = marks.read(bench)?;
        let mut order = marks.blocks.clone();
        bench.shuffle(&mut order);
        let mut filler = Filler::of(bench, marks.blocks[0], marks.blocks[marks.blocks.len() - 1], aside);
        if !bench.cleans_when_idle() {
            // First, the older contents of the cache are forced out. Then one block is written, and all others much
            // later, so that cleaning the oldest data takes only the band of that block.
            for _ in 0..STALLS {
                if !filler.fill_until_stall(bench)? {
                    break;
                }
            }
            let middle = middle(marks.blocks[0], marks.blocks[marks.blocks.len() - 1], aside);
            bench.write_blocks(1, &[middle + 64 * BLOCK_BYTES])?;
            filler.fill(bench, apart)?;
        }
        bench.write_blocks(DEPTH, first)?;
        bench.write_blocks(DEPTH, &order)?;
        let cached = marks.read(bench)?;
        let moved = vec![false; cached.len()];
        let mut region = Region { marks, native, cached, moved, filler };
        region.set_apart(bench)?;
        Ok(region)
    }

    /// Rewrites the blocks that lie in the cache at the angle of their home locations: their read times would not
    /// change when they leave the cache.
    fn set_apart(&mut self, bench: &mut Bench<'_>) -> Result<(), TargetError> {
        for _ in 0..REWRITES {
            let is_alike = |&index: &usize| !is_elsewhere(bench, self.native[index], self.cached[index]);
            let alike: Vec<usize> = (0..self.cached.len()).filter(is_alike).collect();
            let blocks: Vec<u64> = alike.iter().map(|&index| self.marks.blocks[index]).collect();
            bench.write_blocks(DEPTH, &blocks)?;
            for (index, time) in alike.iter().zip(self.marks.read_some(bench, &alike)?) {
                self.cached[*index] = time;
            }
        }
        Ok(())
    }

    /// Makes cleaning run until some bands have been seen whole; adds their runs to `found`, and every moved block to
    /// `points`.
    fn look(
        &mut self,
        bench: &mut Bench<'_>,
        found: &mut Vec<Range<usize>>,
        points: &mut Vec<(f64, f64)>,
    ) -> Result<(), TargetError> {
        let gap = gap(bench);
        let mut pause = first_pause(bench);
        let mut step = 0;
        while !self.is_in_vain(bench, step) {
            let newly = self.clean_a_little(bench, pause)?;
            let moved = (0..newly.len()).filter(|&index| newly[index]);
            points.extend(moved.map(|index| (index as f64, step as f64)));
            let bands = bands(&newly, gap);
            if bands.is_empty() {
                pause *= 1.3;
            }
            let is_crowded = !bench.cleans_when_idle() && have_most_left(&newly);
            // A run that reaches the end of the region may continue beyond it.
            let is_whole = |run: &&Range<usize>| run.start > gap && run.end + gap < newly.len();
            let is_sure = |run: &&Range<usize>| !is_crowded || alike(run, &bands) > 1;
            if !are_scattered(&newly, &bands, bench.repeats == 1) {
                found.extend(bands.iter().filter(is_whole).filter(is_sure).cloned());
            }
            if is_crowded {
                break;
            }
            let is_over = self.has_all_moved() && !newly.contains(&true);
            if is_over || found.len() >= BANDS && single_band(bench, found).is_some() {
                break;
            }
            if !bench.cleans_when_idle() && !found.is_empty() {
                break;
            }
            step += 1;
        }
        Ok(())
    }

    /// Returns whether `step` steps would have shown a band. Where cleaning has to be forced, also enough must have
    /// been written to force out all that this part of the cache held, or some gibibytes.
    fn is_in_vain(&self, bench: &Bench<'_>, step: usize) -> bool {
        let cache_bytes = bench.verdict.number("cache_bytes").unwrap_or(0.0) as u64;
        let is_spent = self.filler.pieces * FILLER_BYTES > cache_bytes.min(FILL_BYTES_MAX);
        step >= STEPS && (bench.cleans_when_idle() || is_spent)
    }

    /// Reads the blocks that seem to have moved once more: an answer that was late by chance is not late twice.
    fn look_again(&self, bench: &mut Bench<'_>, newly: &mut [bool]) -> Result<(), TargetError> {
        let seem: Vec<usize> = (0..newly.len()).filter(|&index| newly[index]).collect();
        let times = self.marks.read_some(bench, &seem)?;
        let cached: Vec<u64> = seem.iter().map(|&index| self.cached[index]).collect();
        for (index, stays) in seem.into_iter().zip(same(bench, &cached, &times)) {
            newly[index] = !stays;
        }
        Ok(())
    }

    /// Returns whether all blocks have moved, except for a tenth that may seem unmoved.
    fn has_all_moved(&self) -> bool {
        10 * self.moved.iter().filter(|moved| !**moved).count() <= self.moved.len()
    }

    /// Counts the cleaned blocks, and those that lie where they lay before they were written, once all cleaning is
    /// over. Until then, a band may lie in a safe copy while it is rewritten.
    fn note_returned(&self, bench: &mut Bench<'_>, returned: &mut Returned) -> Result<(), TargetError> {
        bench.drain(2 * BLOCKS / 8)?;
        let moved: Vec<usize> = (0..self.moved.len()).filter(|&index| self.moved[index]).collect();
        let times = self.marks.read_some(bench, &moved)?;
        let native: Vec<u64> = moved.iter().map(|&index| self.native[index]).collect();
        returned.cleaned += moved.len();
        returned.in_place += same(bench, &native, &times).iter().filter(|same| **same).count();
        Ok(())
    }

    /// Makes cleaning run, for `pause_ns` if the drive cleans when idle; returns which blocks have left the cache since
    /// the last call.
    fn clean_a_little(&mut self, bench: &mut Bench<'_>, pause_ns: f64) -> Result<Vec<bool>, TargetError> {
        if bench.cleans_when_idle() {
            bench.target.sleep((bench.trigger_ns() + pause_ns) as u64)?;
        } else {
            self.filler.fill_until_stall(bench)?;
        }
        let times = self.marks.read_quickly(bench)?;
        let stays = same(bench, &self.cached, &times);
        let mut newly: Vec<bool> = stays.iter().zip(&self.moved).map(|(stays, moved)| !stays && !moved).collect();
        if bench.repeats > 1 {
            self.look_again(bench, &mut newly)?;
        }
        for (index, _) in newly.iter().enumerate().filter(|(_, newly)| **newly) {
            self.moved[index] = true;
        }
        // While a band is rewritten, some of its blocks seem unmoved, and show only later that they left with the
        // others.
        for band in bands(&newly, gap(bench)) {
            self.moved[band].fill(true);
        }
        Ok(newly)
    }
}

/// Generator of writes that fill a cache, so that it must clean.
struct Filler {
    /// Offset of the first piece, and whether the next ones have descending offsets.
    at: u64,
    falls: bool,
    /// Whether every piece goes to a new place. A cache that a whole zone shares is filled only by data that is not
    /// overwritten. A cache region belongs to few bands, and is filled by repeated writes to one of them.
    is_new: bool,
    pieces: u64,
}

impl Filler {
    /// Returns a filler for the cache of the blocks from `first` to `last`, at `aside` bytes from their middle.
    fn of(bench: &Bench<'_>, first: u64, last: u64, aside: i64) -> Filler {
        let falls = last > bench.at_share(0.9);
        if !is_filled_in_place(bench) {
            let at = if falls { first - 8 * MIB } else { last + 8 * MIB };
            return Filler { at, falls, is_new: true, pieces: 0 };
        }
        let at = middle(first, last, aside) + 128 * BLOCK_BYTES;
        Filler { at, falls, is_new: false, pieces: 0 }
    }

    /// Returns the next piece. Pieces do not touch, so that the drive does not detect a sequential stream.
    fn next(&mut self) -> Operation {
        self.pieces += 1;
        let stride = FILLER_BYTES + BLOCK_BYTES;
        let offset = match (self.is_new, self.falls) {
            (false, _) => self.at + self.pieces % 2 * stride,
            (true, false) => self.at + self.pieces * stride,
            (true, true) => self.at - self.pieces * stride,
        };
        Operation::write(offset, FILLER_BYTES)
    }

    /// Writes `bytes` bytes.
    fn fill(&mut self, bench: &mut Bench<'_>, bytes: u64) -> Result<(), TargetError> {
        let writes: Vec<_> = (0..bytes / FILLER_BYTES).map(|_| self.next()).collect();
        bench.one_by_one(&writes).map(|_| ())
    }

    /// Writes until a write waits for cleaning; returns whether one did before the writes clearly exceeded the size of
    /// the cache.
    fn fill_until_stall(&mut self, bench: &mut Bench<'_>) -> Result<bool, TargetError> {
        let limit = bench.stall_ns();
        let most = bench.verdict.number("cache_bytes").map_or(FILL_BYTES_MAX, |bytes| (bytes * 1.2) as u64 + 64 * MIB);
        let (mut left, mut stalled, mut usual) = (most / FILLER_BYTES, false, Vec::new());
        let mut next = || {
            left = left.checked_sub(1)?;
            Some(self.next())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> Vec<bool> {
        text.chars().map(|left| left == '#').collect()
    }

    /// Checks that small bands that leave all over a region are not taken for larger bands where some lie side by side.
    #[test]
    fn bands_of_a_few_blocks_are_seen_to_be_scattered() {
        let one = left(".........########.................##...........................");
        assert!(!are_scattered(&one, &bands(&one, 2), true), "two may seem to have left by chance");
        let many = left("##......########......##......##......##......########......##.");
        assert_eq!(bands(&many, 2), [8..16, 46..54]);
        assert!(are_scattered(&many, &bands(&many, 2), true) && are_scattered(&many, &bands(&many, 2), false));
        let single = left("#...#.....########......#...#...#....#..####.####...#.....#.");
        assert!(are_scattered(&single, &bands(&single, 2), true) && !are_scattered(&single, &bands(&single, 2), false));
    }

    #[test]
    fn runs_that_are_as_long_as_others_are_alike() {
        assert!(have_most_left(&left("###.#")) && !have_most_left(&left("##.#...#.")));
        let found = [9..20, 31..41, 60..101];
        assert_eq!(found.iter().map(|run| alike(run, &found)).collect::<Vec<_>>(), [2, 2, 1]);
    }
}
