//! Test 3: is cleaning aggressive or lazy? After a pause, a drive that cleans when idle has moved a fragmented run back
//! to its home location (Aghayev 2015 §4.5). The idle time before cleaning shows in the position of the head. A block
//! far from the cache is read before and after a pause. It is read at its next pass if the head stayed in place, and
//! later if the head has left to clean. Bisection between short and long pauses finds the idle time.

use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench, DEPTH, MIB};
use crate::marks::{Marks, same};
use crate::rest::has_moved;
use crate::target::TargetError;
use crate::verdict::{Confidence, Property, Value, Verdict};

/// The experiment's entry in the registry.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "cleaning",
    question: "does it clean when idle, and after how long?",
    source: "Aghayev 2015 test 3",
    writes: true,
    needs: &["rotation", "type"],
    properties: &["cleaning", "idle_trigger"],
    about_s: 900,
    skip_reason: only_for_cached,
    run_after: |_| None,
    run,
};

/// Pauses tried, seconds. The later ones take hours on a real drive: there, the budget ends the test before them.
const PAUSES_S: [u64; 4] = [5, 30, 120, 600];
/// A pause that is tried only in virtual time, seconds.
const LONG_PAUSE_S: u64 = 5 * 3600;
/// Number of blocks of the fragmented run, and their distance: they lie at all angles, so that few seem unmoved by
/// chance.
const RUN: u64 = 20;
const STRIDE_BYTES: u64 = 24 * BLOCK_BYTES;
/// Share of the blocks that must have moved for the run to count as cleaned.
const MOST: f64 = 0.6;
/// Relative difference between the longest pause without cleaning and the shortest with cleaning at which the search
/// ends. It also ends at a difference of this many rotations; in virtual time, it ends only there.
const EXACT: f64 = 0.015;
const EXACT_ROTATIONS: f64 = 1.2;
/// Shortest pause tried, nanoseconds.
const PAUSE_NS_MIN: f64 = 2e7;
/// Most trials of a pause, and the number of trials with a moved head that decide: first for exact measurements, then
/// for varying ones, in which some answers are late for other reasons.
const VOTES: [u32; 2] = [3, 14];
const DECIDE: [u32; 2] = [1, 3];

/// Most searches for the idle time, and the number of bands whose cleaning is awaited before the result is checked.
const SEARCHES: usize = 2;
const LEFT_BANDS: u64 = 64;
/// The pause of the check: the measured one times the first number, and this many rotations more.
const LONGER: f64 = 1.02;
const LONGER_ROTATIONS: f64 = 1.5;

const EVIDENCE: [&str; 2] = ["blocks moved after a pause", "head moved after a pause"];

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let pauses: Vec<u64> = PAUSES_S.into_iter().chain(bench.target.is_virtual().then_some(LONG_PAUSE_S)).collect();
    let mut points = Vec::new();
    for (index, &seconds) in pauses.iter().enumerate() {
        let offset = bench.at_share(0.5) + index as u64 * 80 * MIB;
        let blocks = (0..RUN).map(|index| offset + index * STRIDE_BYTES).collect();
        let marks = Marks::new(bench, blocks);
        bench.write_blocks(DEPTH, &marks.blocks)?;
        let cached = marks.read(bench)?;
        bench.target.sleep(seconds * 1_000_000_000)?;
        let after = marks.read(bench)?;
        let stayed = same(bench, &cached, &after).iter().filter(|same| **same).count() as f64 / RUN as f64;
        points.push((seconds as f64, 1.0 - stayed));
        if 1.0 - stayed < MOST {
            continue;
        }
        bench.keep_points(EVIDENCE[0], "pause_s", "share_moved", points);
        let because = format!(
            "after a pause of {seconds} s {:.0} % of the blocks written before it lie elsewhere",
            (1.0 - stayed) * 100.0
        );
        let word = if seconds <= 600 { "aggressive" } else { "late" };
        bench.verdict.conclude("cleaning", Value::Word(word), "", Confidence::High, because, &EVIDENCE[..1]);
        return find_trigger(bench, seconds as f64 * 1e9);
    }
    bench.keep_points(EVIDENCE[0], "pause_s", "share_moved", points);
    let (word, sure) =
        if bench.target.is_virtual() { ("lazy", Confidence::High) } else { ("lazy or late", Confidence::Medium) };
    let longest = pauses.last().map_or(0, |seconds| seconds / 60);
    let because = format!("blocks lie where they were written to, after {longest} minutes too");
    bench.verdict.conclude("cleaning", Value::Word(word), "", sure, because, &EVIDENCE[..1]);
    Ok(())
}

/// Lowers the confidence in lazy cleaning if no block was seen to leave a cache, and no write waited for cleaning. A
/// drive that is one log has no home locations, so its blocks stay where they were written, although no cleaning is
/// due. If the mapping was tested too, the kind of cleaning is withdrawn, and the drive is called shingled with medium
/// confidence at most: a conventional drive that writes everything to one log answers in the same way.
pub(crate) fn doubt_lazy(verdict: &mut Verdict) {
    let has_left = ["band_bytes_od", "band_bytes_md", "band_bytes_id", "cache_bytes"].map(|name| verdict.number(name));
    let is_seen = has_left.iter().any(Option::is_some) || verdict.word("mapping") == Some("static");
    let was_looked_for = verdict.property("mapping").is_some();
    let found = verdict.properties.iter_mut().find(|property| property.name == "cleaning");
    let Some(cleaning) = found.filter(|found| matches!(found.value, Value::Word("lazy" | "lazy or late"))) else {
        return;
    };
    if is_seen {
        return;
    }
    cleaning.confidence = Confidence::Medium;
    if was_looked_for {
        cleaning.because.push_str(", but nothing was seen to leave a cache: they may have no other place");
        (cleaning.value, cleaning.confidence) = (Value::CannotTell, Confidence::Low);
        let found = verdict.properties.iter_mut().find(|property| property.name == "type");
        let is_sure =
            |found: &&mut Property| found.value == Value::Word("shingled") && found.confidence == Confidence::High;
        if let Some(kind) = found.filter(is_sure) {
            kind.confidence = Confidence::Medium;
            kind.because.push_str("; but nothing was seen to leave a cache: a drive without overlap may keep one log");
        }
    }
}

/// Finds the idle time before cleaning; it is shorter than `high` nanoseconds, the pause after which blocks had been
/// cleaned.
fn find_trigger(bench: &mut Bench<'_>, high: f64) -> Result<(), TargetError> {
    for _ in 0..SEARCHES {
        let Some((low, high)) = search(bench, high)? else { return Ok(()) };
        let seconds = (low + high) / 2e9;
        let because = format!("the head rests for {:.3} s and has moved after {:.3} s", low / 1e9, high / 1e9);
        let value = Value::Number(seconds);
        bench.verdict.conclude("idle_trigger", value, "s", Confidence::High, because, &EVIDENCE[1..]);
        // Cleaning that earlier tests caused also moves the head. Once it is over, only the longer pause must do so.
        bench.drain(LEFT_BANDS)?;
        let longer = high * LONGER + LONGER_ROTATIONS * bench.rotation_ns();
        if has_begun(bench, longer, false, &mut Vec::new())? {
            return Ok(());
        }
        bench.verdict.properties.retain(|property| property.name != "idle_trigger");
    }
    let because = "the head moves after a pause, and rests in another of that length".to_string();
    bench.verdict.conclude("idle_trigger", Value::CannotTell, "s", Confidence::Low, because, &EVIDENCE[1..]);
    Ok(())
}

/// Searches the idle time before cleaning; it is shorter than `high` nanoseconds. Returns a pause, in nanoseconds,
/// after which the head had not moved, and one after which it had; concludes that the time is unknown if there are
/// none.
fn search(bench: &mut Bench<'_>, high: f64) -> Result<Option<(f64, f64)>, TargetError> {
    let mut points = Vec::new();
    let (mut low, mut high, cleaned) = (PAUSE_NS_MIN, high, high);
    let is_rested = !has_begun(bench, low, false, &mut points)?;
    let rotation = bench.rotation_ns();
    let most = if bench.target.is_virtual() { EXACT_ROTATIONS * rotation } else { f64::MAX };
    while is_rested && (high / low > 1.0 + EXACT || high - low > most) {
        // The geometric mean is used while the order of magnitude is unknown.
        let pause = if high / low > 4.0 { (high * low).sqrt() } else { (high + low) / 2.0 };
        // The pause ends shortly before the block passes: a head that stayed in place reads it in time, one that
        // returns cannot.
        let to_the_pass = ((pause / rotation).round() - 0.2) * rotation;
        let is_to_the_pass = bench.repeats == 1 && to_the_pass > low && to_the_pass < high;
        let pause = if is_to_the_pass { to_the_pass } else { pause };
        if has_begun(bench, pause, is_to_the_pass, &mut points)? {
            high = pause;
        } else {
            low = pause;
        }
        if high - low < 1.2 * rotation {
            break;
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    bench.keep_points(EVIDENCE[1], "pause_s", "head_moved", points);
    if !is_rested {
        let because = format!("the head moves after pauses of {:.3} s already", low / 1e9);
        bench.verdict.conclude("idle_trigger", Value::CannotTell, "s", Confidence::Low, because, &EVIDENCE[1..]);
        return Ok(None);
    }
    if high >= cleaned {
        let because =
            format!("blocks are cleaned within {:.1} s, and the head was never seen to move before", high / 1e9);
        bench.verdict.conclude("idle_trigger", Value::CannotTell, "s", Confidence::Low, because, &EVIDENCE[1..]);
        return Ok(None);
    }
    Ok(Some((low, high)))
}

/// Returns the shift of the pause in trial number `vote`, as a share of a rotation; shifts of varying measurements are
/// centred on 0.
fn shift(vote: u32, is_exact: bool) -> f64 {
    (0.31 * f64::from(vote)).fract() - if is_exact { 0.0 } else { 0.5 }
}

/// Returns whether the head moves during a pause while blocks wait for cleaning.
fn has_begun(
    bench: &mut Bench<'_>,
    pause_ns: f64,
    is_to_the_pass: bool,
    points: &mut Vec<(f64, f64)>,
) -> Result<bool, TargetError> {
    let (is_exact, rotation) = (bench.repeats == 1, bench.rotation_ns());
    let mut votes = [0u32; 2];
    let kind = usize::from(!is_exact);
    while votes[0] + votes[1] < VOTES[kind] && votes[1] < DECIDE[kind] {
        // Each trial has another phase: at a single phase, a head that moved only a little might always return in time.
        let pause_ns = pause_ns + if is_to_the_pass { 0.0 } else { shift(votes[0] + votes[1], is_exact) * rotation };
        let moved = head_has_moved(bench, pause_ns)?;
        points.push((pause_ns / 1e9, f64::from(u8::from(moved))));
        votes[usize::from(moved)] += 1;
        // A head that stayed in place reads the block at its next pass, unless the answer is late for another reason.
        if is_exact && (moved || is_to_the_pass) {
            break;
        }
    }
    Ok(votes[1] >= DECIDE[kind])
}

fn head_has_moved(bench: &mut Bench<'_>, pause_ns: f64) -> Result<bool, TargetError> {
    let area = bench.at_share(0.8);
    let dirty = bench.scattered(area, 256 * MIB, 4);
    bench.write_blocks(DEPTH, &dirty)?;
    // The block is far from the dirty blocks, to which the head goes first.
    let far = bench.at_share(0.05);
    has_moved(bench, far, pause_ns)
}
