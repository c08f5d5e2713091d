//! Tests 9 and 10: how large is a band, and does it move when it is cleaned? Blocks a mebibyte apart are written in random
//! order, and cleaning is made to run a little at a time; the blocks that leave the cache together are a band's (Aghayev
//! 2015 §4.7), and finer ones around its ends tell its size. If each then takes as long to read as before it was written,
//! it is in its place again: the mapping is static; if not, the band has moved (§4.8).
//!
//! A drive that cleans when idle is left alone for as long as one band takes. One that does not is written to in one place
//! until it has no room and one write waits for cleaning.

use std::ops::Range;

use super::band_sizes::{Size, confidence};
use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::marks::{Marks, Times, is_elsewhere, same};
use crate::statistics::{change, median, runs};
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
    yields_to: |_| None,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let is_known = verdict.word("cleaning").is_some();
    only_for_cached(verdict).or((!is_known).then_some("whether it cleans when idle is not known"))
}

/// Blocks of the region, a mebibyte apart.
const BLOCKS: u64 = 256;
/// Finer blocks around the ends of a band: how many would fit into it.
const FINE_OF_BAND: u64 = 160;
/// Where the bands are measured, as shares of the drive.
const PLACES: [(f64, &str, &str); 3] = [
    (0.01, "band_bytes_od", "blocks cleaned together, outer"),
    (0.5, "band_bytes_md", "blocks cleaned together, middle"),
    (0.997, "band_bytes_id", "blocks cleaned together, inner"),
];
/// Times that cleaning is made to run.
const STEPS: usize = 40;
/// How far on another region is tried where one told nothing: it may lie over the end of a zone.
const NEXT_REGION: u64 = 1 << 30;
/// A block that is elsewhere has moved; one that seems to be where it was may lie at the same angle by chance, so many in a
/// row where measurements are exact, and where they vary.
const GAPS: [usize; 2] = [2, 5];
/// Bands seen whole before one is measured.
const BANDS: usize = 3;
/// A write waits for cleaning if it takes so many rotations: as long as reading and writing a few tracks.
const STALL_ROTATIONS: f64 = 14.0;
/// What is written in one place at most until a write waits, and how often until what was cached before has gone.
const FILL_BYTES_MAX: u64 = 8 << 30;
const STALLS: usize = 4;
/// Of the blocks around an end so many bytes lie within the band.
const WITHIN_BYTES: u64 = 3 * MIB / 2;
/// How often the ends of a band are looked at until what is seen fits.
const ATTEMPTS: u32 = 3;
/// How often blocks are written again that cannot be told from those in their place.
const REWRITES: usize = 3;
/// Tried for how much lies between blocks of different age.
const APART_MIB: [u64; 9] = [90, 66, 48, 40, 32, 26, 20, 15, 11];
const FILLER_BYTES: u64 = 508 << 10;

/// So many blocks seem to have left by chance.
const SCATTERED_MIN: usize = 4;
/// A band that is seen again begins and ends where it did, but for such a part of it.
const AGAIN_PART: u64 = 64;
/// Blocks, where they were read before they were written, and after.
struct Region {
    marks: Marks,
    native: Times,
    cached: Times,
    moved: Vec<bool>,
    filler: Filler,
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

/// What the places measured so far tell together.
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
        // Blocks that moved lie at the angle of their place by chance alone; in half of them no chance has a part.
        share if share > 0.5 => (Value::Word("static"), Confidence::Medium),
        share if share < 0.45 => (Value::Word("dynamic"), Confidence::High),
        _ => (Value::CannotTell, Confidence::Low),
    };
    bench.verdict.conclude("mapping", value, "", sure, because, &evidence);
}

/// The size of a band near `offset`.
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

/// Whether cleaning is forced by writing in one place over and over, as in [`Filler`].
fn is_filled_in_place(bench: &Bench<'_>) -> bool {
    !bench.cleans_when_idle() && bench.verdict.word("cache_place") != Some("several")
}

/// Whether this band is seen once more: two leave together where what is written lies over the end of one, but not from a
/// quarter of them.
fn leaves_again(
    bench: &mut Bench<'_>,
    offset: u64,
    run: &Range<usize>,
    apart: u64,
    band: &Range<u64>,
) -> Result<bool, TargetError> {
    let bytes = band.end - band.start;
    // What is written there reaches from a quarter to one and a half of a mebibyte on.
    let again = refine(bench, offset, run, apart, -(bytes as i64 / 4) - 7 * MIB as i64 / 8)?;
    let off = |again: Range<u64>| again.start.abs_diff(band.start).max(again.end.abs_diff(band.end));
    Ok(again.is_some_and(|again| off(again) <= bytes / AGAIN_PART))
}

/// How much is written between a block and those that must be younger, where cleaning has to be forced: more than a band,
/// so that they lie in different ones of the cache, and less than the cache takes. One, where it need not be.
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

/// The runs of blocks that moved together. Between two bands there is room for another, so that those with less between
/// them are parts of one.
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

/// Whether most blocks of a region left at one time. Where cleaning was forced, so that the band of the oldest block goes
/// alone, it took every band that had something beside that block in the cache: a run of blocks may then be as many bands as
/// happen to lie side by side, and so may what stays. Runs that are alike are single bands all the same.
fn have_most_left(newly: &[bool]) -> bool {
    2 * newly.iter().filter(|newly| **newly).count() > newly.len()
}

/// Whether many blocks left in groups too small to be bands of blocks a mebibyte apart: then so are the bands, and what seems
/// to be one are some that lie side by side. Where times vary single blocks seem to have left by chance, and do not count.
fn are_scattered(newly: &[bool], bands: &[Range<usize>], is_exact: bool) -> bool {
    let has_beside = |index: usize| index > 0 && newly[index - 1] || newly.get(index + 1) == Some(&true);
    let counts = |index: &usize| newly[*index] && (is_exact || has_beside(*index));
    let left: Vec<usize> = (0..newly.len()).filter(counts).collect();
    let outside = left.iter().filter(|index| !bands.iter().any(|band| band.contains(index))).count();
    outside > SCATTERED_MIN && 4 * outside > left.len()
}

/// Whether a run is one of blocks that moved together, and not of some that seem to have.
fn is_band(run: &Range<usize>, newly: &[bool]) -> bool {
    let moved = newly[run.clone()].iter().filter(|moved| **moved).count();
    moved > 3 && 5 * moved > 3 * run.len()
}

/// The run that most others are as long as; of several such, the shortest: two bands may leave in one step. Where cleaning
/// goes on by itself a part of a band may be seen, and one alone is none.
fn single_band(bench: &Bench<'_>, found: &[Range<usize>]) -> Option<Range<usize>> {
    let run = found.iter().max_by_key(|run| (alike(run, found), std::cmp::Reverse(run.len())))?;
    (alike(run, found) > 1 || found.len() == 1 || !bench.cleans_when_idle()).then(|| run.clone())
}

/// How many runs are as long as this one, itself among them.
fn alike(run: &Range<usize>, found: &[Range<usize>]) -> usize {
    found.iter().filter(|other| other.len().abs_diff(run.len()) <= 2).count()
}

/// How long cleaning runs at first, nanoseconds: less than a band takes.
fn first_pause(bench: &Bench<'_>) -> f64 {
    bench.verdict.number("cleaning_time").map_or(1e8, |seconds| seconds * 0.5e9)
}

/// So many bytes `aside` of the middle from `first` to `last`; in the middle at the whole mebibyte.
fn middle(first: u64, last: u64, aside: i64) -> u64 {
    let middle = (first + last) / 2;
    if aside == 0 { middle / MIB * MIB } else { middle.saturating_add_signed(aside) / BLOCK_BYTES * BLOCK_BYTES }
}

/// Where the band over the blocks `run` of the region at `offset` begins and ends, by finer blocks around its ends, with what makes it
/// leave so many bytes `aside` of its middle.
fn refine(
    bench: &mut Bench<'_>,
    offset: u64,
    run: &Range<usize>,
    apart: u64,
    aside: i64,
) -> Result<Option<Range<u64>>, TargetError> {
    let step = (run.len() as u64 * MIB / FINE_OF_BAND / BLOCK_BYTES).max(1) * BLOCK_BYTES;
    // The end lies before the first block that moved or after the last, and beyond some that seem not to have.
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
    /// Reads `blocks`, writes `first` and then them, in random order, and reads them again. What fills the cache goes so many
    /// bytes `aside` of their middle.
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
            // What is left in the cache from before goes first; then one block, and all others much later, so that cleaning
            // what is oldest then takes the band of that one alone.
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

    /// Writes those once more that lie in the cache at the angle of their place: it would not show that they left.
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

    /// Makes cleaning run until some bands have been seen whole; their runs of blocks, and every block that moved.
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
            // What reaches the end of the region may go on beyond it.
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

    /// Whether so many steps would have shown something: where cleaning has to be forced, until all that was in this part of
    /// the cache must have gone, if it is no more than some gibibytes.
    fn is_in_vain(&self, bench: &Bench<'_>, step: usize) -> bool {
        let cache_bytes = bench.verdict.number("cache_bytes").unwrap_or(0.0) as u64;
        let is_spent = self.filler.pieces * FILLER_BYTES > cache_bytes.min(FILL_BYTES_MAX);
        step >= STEPS && (bench.cleans_when_idle() || is_spent)
    }

    /// Reads those that seem to have moved once more: answers that came late by chance do not so twice.
    fn look_again(&self, bench: &mut Bench<'_>, newly: &mut [bool]) -> Result<(), TargetError> {
        let seem: Vec<usize> = (0..newly.len()).filter(|&index| newly[index]).collect();
        let times = self.marks.read_some(bench, &seem)?;
        let cached: Vec<u64> = seem.iter().map(|&index| self.cached[index]).collect();
        for (index, stays) in seem.into_iter().zip(same(bench, &cached, &times)) {
            newly[index] = !stays;
        }
        Ok(())
    }

    /// Whether all blocks have moved, but for some that seem not to have.
    fn has_all_moved(&self) -> bool {
        10 * self.moved.iter().filter(|moved| !**moved).count() <= self.moved.len()
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
        // Of a band that is being rewritten some seem to have stayed, and show only later that they left with the others.
        for band in bands(&newly, gap(bench)) {
            self.moved[band].fill(true);
        }
        Ok(newly)
    }
}

/// What fills a cache, so that it must clean.
struct Filler {
    /// Where the first piece goes, and whether the others go on downwards.
    at: u64,
    falls: bool,
    /// Whether every piece goes to a new place: a cache that is shared by a zone is full only of what is not overwritten. A
    /// cache region belongs to few bands, and is filled by what is written in one of them over and over.
    is_new: bool,
    pieces: u64,
}

impl Filler {
    /// What fills the cache of the blocks from `first` to `last`, so many bytes `aside` of the middle.
    fn of(bench: &Bench<'_>, first: u64, last: u64, aside: i64) -> Filler {
        let falls = last > bench.at_share(0.9);
        if !is_filled_in_place(bench) {
            let at = if falls { first - 8 * MIB } else { last + 8 * MIB };
            return Filler { at, falls, is_new: true, pieces: 0 };
        }
        let at = middle(first, last, aside) + 128 * BLOCK_BYTES;
        Filler { at, falls, is_new: false, pieces: 0 }
    }

    /// The next piece. Pieces do not touch, so that no stream is seen in them.
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

    /// Writes so many bytes.
    fn fill(&mut self, bench: &mut Bench<'_>, bytes: u64) -> Result<(), TargetError> {
        let writes: Vec<_> = (0..bytes / FILLER_BYTES).map(|_| self.next()).collect();
        bench.one_by_one(&writes).map(|_| ())
    }

    /// Writes until a write waits for cleaning; whether one did before much more was written than the cache takes.
    fn fill_until_stall(&mut self, bench: &mut Bench<'_>) -> Result<bool, TargetError> {
        let limit = STALL_ROTATIONS * bench.rotation_ns();
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

    /// Goal: small bands that leave all over a region are none of the size that some of them make up side by side.
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
