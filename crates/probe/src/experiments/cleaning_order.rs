//! Tests 4 and 5: which cleaning algorithm does the drive use? Blocks of distant bands are written in random order,
//! then a few more beside the first of them. After a pause, some blocks have been cleaned. The set of these blocks
//! shows whether bands are cleaned in the order of writing, and whole (Aghayev 2015 §4.5.1). Their number shows the
//! time that a band takes.

use super::experiment::{Experiment, only_for_cached};
use crate::bench::{BLOCK_BYTES, Bench};
use crate::marks::{Marks, is_elsewhere, same};
use crate::target::TargetError;
use crate::verdict::{Confidence, Value, Verdict};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cleaning-order",
    question: "in which order does it clean, and how long does a band take?",
    source: "Aghayev 2015 tests 4, 5",
    writes: true,
    needs: &["rotation", "type", "cleaning"],
    properties: &["cleaning_order", "cleaning_unit", "cleaning_time"],
    about_s: 120,
    skip_reason: is_idle,
    run_after: |_| None,
    run,
};

fn is_idle(verdict: &Verdict) -> Option<&'static str> {
    let cleans = matches!(verdict.word("cleaning"), Some("aggressive" | "late"));
    only_for_cached(verdict).or((!cleans).then_some("it cleans only when it must, or that is not known"))
}

/// Number of bands with a written block, and of those with a second block written at the end.
const BANDS: usize = 36;
const LATE: usize = 9;
/// Number of pauses tried.
const PAUSES: usize = 16;
/// Length of the first pause beyond the idle time before cleaning, nanoseconds, and the factor from one pause to the
/// next.
const PAUSE_NS: f64 = 3e8;
const LONGER: f64 = 1.6;
/// Share of the cleaned bands that must be the first ones of an order for the drive to use that order.
const IN_ORDER: f64 = 0.8;

const SERIES: &str = "blocks moved, in the order of writing";

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    if !bench.can_wait_for_cleaning() {
        let because = "it waits too long before it cleans".to_string();
        bench.verdict.conclude("cleaning_order", Value::CannotTell, "", Confidence::Low, because, &[]);
        return Ok(());
    }
    let marks = scattered_marks(bench);
    bench.drain(64)?;
    let native = marks.read(bench)?;
    bench.write_blocks(1, &marks.blocks)?;
    let cached = marks.read(bench)?;
    // If a block lies in the cache at the angle of its home location, its read time does not change when it leaves the
    // cache.
    let shows: Vec<bool> = native.iter().zip(&cached).map(|(&one, &other)| is_elsewhere(bench, one, other)).collect();
    let (mut moved, mut before, mut pause) = (vec![false; marks.blocks.len()], 0, PAUSE_NS);
    let mut order_at = None;
    for _ in 0..PAUSES {
        bench.target.sleep((bench.trigger_ns() + pause) as u64)?;
        let times = marks.read(bench)?;
        moved = same(bench, &cached, &times).into_iter().map(|same| !same).collect();
        let cleaned = count(&moved[..BANDS]);
        if (4..BANDS * 3 / 4).contains(&cleaned) {
            order_at = Some(moved.clone());
        }
        if cleaned >= before + BANDS / 4 {
            conclude_time(bench, pause, cleaned - before, cleaned == BANDS);
            break;
        }
        before = cleaned;
        pause *= LONGER;
    }
    let points = order_at.as_ref().unwrap_or(&moved).iter().enumerate();
    let points = points.map(|(index, &moved)| (index as f64, f64::from(u8::from(moved)))).collect();
    bench.keep_points(SERIES, "block", "moved", points);
    conclude_order(bench, &marks, &shows, order_at.as_deref());
    bench.drain(BANDS as u64)
}

/// Returns a block in each of many bands, in random order, followed by late blocks beside the first of them.
fn scattered_marks(bench: &mut Bench<'_>) -> Marks {
    let stretch = bench.target.size_bytes() / (BANDS as u64 + 1);
    let mut blocks: Vec<u64> = (0..BANDS as u64)
        .map(|index| (index * stretch + bench.below(stretch / 2)) / BLOCK_BYTES * BLOCK_BYTES)
        .collect();
    bench.shuffle(&mut blocks);
    let late: Vec<u64> = blocks[..LATE].iter().map(|block| block + 4 * BLOCK_BYTES).collect();
    blocks.extend(late);
    Marks::new(bench, blocks)
}

fn count(flags: &[bool]) -> usize {
    flags.iter().filter(|flag| **flag).count()
}

fn conclude_time(bench: &mut Bench<'_>, pause_ns: f64, cleaned: usize, is_all: bool) {
    // The band that is being cleaned when the pause ends is half done on average.
    let seconds = pause_ns / 1e9 / (cleaned as f64 + 0.5);
    let because = format!("{cleaned} bands with one block each were cleaned in {:.1} s", pause_ns / 1e9);
    let sure = if is_all { Confidence::Low } else { Confidence::High };
    bench.verdict.conclude("cleaning_time", Value::Number(seconds), "s", sure, because, &[SERIES]);
}

fn conclude_order(bench: &mut Bench<'_>, marks: &Marks, shows: &[bool], moved: Option<&[bool]>) {
    let Some(moved) = moved else {
        let because = "no pause left some of the blocks cleaned and others not".to_string();
        bench.verdict.conclude("cleaning_order", Value::CannotTell, "", Confidence::Low, because, &[SERIES]);
        return;
    };
    let written: Vec<usize> = (0..BANDS).filter(|&index| shows[index]).collect();
    let cleaned = written.iter().filter(|&&index| moved[index]).count();
    if cleaned == 0 {
        let because = "no block lies at another angle in the cache than before".to_string();
        bench.verdict.conclude("cleaning_order", Value::CannotTell, "", Confidence::Low, because, &[SERIES]);
        return;
    }
    let share_of =
        |order: &[usize]| order[..cleaned].iter().filter(|&&index| moved[index]).count() as f64 / cleaned as f64;
    let mut by_address = written.clone();
    by_address.sort_by_key(|&index| marks.blocks[index]);
    let (first_written, lowest) = (share_of(&written), share_of(&by_address));
    let because = format!(
        "of the {cleaned} blocks cleaned {:.0} % are the first written, {:.0} % those of the lowest addresses",
        first_written * 100.0,
        lowest * 100.0
    );
    let (value, sure) = if first_written >= IN_ORDER && first_written > lowest + 0.15 {
        (Value::Word("fifo"), Confidence::High)
    } else if lowest >= IN_ORDER && lowest > first_written + 0.15 {
        (Value::Word("by address"), Confidence::High)
    } else {
        (Value::CannotTell, Confidence::Low)
    };
    bench.verdict.conclude("cleaning_order", value, "", sure, because, &[SERIES]);
    // A late block is cleaned with its band, before blocks of other bands that were written earlier.
    let late: Vec<usize> = (0..LATE).filter(|&index| shows[index] && shows[BANDS + index]).collect();
    let early = late.iter().filter(|&&index| moved[index]).count();
    let with_band = late.iter().filter(|&&index| moved[index] == moved[BANDS + index]).count();
    if early >= 2 {
        let late = late.len();
        let because = format!("of {late} blocks written last {with_band} are where the first of their band is");
        let word = if with_band + 1 >= late { Value::Word("band") } else { Value::Word("block") };
        bench.verdict.conclude("cleaning_unit", word, "", Confidence::High, because, &[SERIES]);
    }
}
