//! Test 1: is the drive shingled, interlaced, or neither? Is its cache on disk or flash?
//!
//! Random writes to a conventional drive wait for their sectors to pass the head. A shingled drive logs them, each at a
//! fixed latency (Aghayev 2015 §4.3). A cache that is divided over the addresses shows its fixed latency only within
//! one part, so the test writes in the first gibibyte, in 8 MiB, and in less. Besides the latencies, the test compares
//! reads of the blocks before and after they are written: the blocks of a conventional drive stay in place. On an
//! interlaced drive, stretches of addresses that are rewritten in place (top tracks) alternate with stretches where
//! writes cost more or go elsewhere (bottom tracks, Hajkazemi 2019 §2.1): [`super::interlaced`].
//!
//! Invariants:
//! 1. A drive is not called conventional if a block lies elsewhere after it was written, or if a write took several
//!    rotations.

use super::experiment::Experiment;
use super::interlaced::{self, SEVERAL_ROTATIONS};
use super::lost::{HOST_MANAGED, NARROW, WIDE, read_after_writing, take_back_if_lost};
use crate::bench::{Bench, MIB};
use crate::marks::{Marks, by_chance, is_elsewhere, is_same, share_seen};
use crate::statistics::{Mode, median, mode, quantile};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value, Verdict};
use crate::words::rotations;

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "type",
    question: "shingled, interlaced or neither? cache on disk or flash?",
    source: "Aghayev 2015 test 1",
    writes: true,
    needs: &["rotation"],
    properties: &["type", "cache_medium", "write_latency", "bottom_writes", "stretch_bytes"],
    about_s: 40,
    skip_reason: |_| None,
    run_after: |_| None,
    run,
};

/// Share of the writes within a range of relative width 0.1 from which their latency counts as fixed. Waits that are
/// spread over a rotation put a tenth there, and twice that if seeks are added.
const FIXED_SHARE: f64 = 0.6;
/// Share of a rotation below which an answer cannot have waited for a platter.
const FAST: f64 = 0.1;
/// Number of writes at one place, few because a small cache holds few; and the number of further writes if no latency
/// is fixed.
const WRITES: usize = 48;
const MORE_WRITES: usize = 400;
/// Share of moved blocks from which all count as moved. If both the moved and the unmoved ones exceed the second share,
/// the drive moves some blocks and not others.
const MOST: f64 = 0.8;
const MIXED: f64 = 0.2;
/// Time in which a volatile cache writes its contents back, nanoseconds.
const PAUSE_NS: u64 = 10_000_000_000;

/// Other places where blocks are written, as shares of the drive: the first gibibyte may be the only one that accepts
/// writes in any order.
const ELSEWHERE: [f64; 3] = [0.35, 0.65, 0.97];
const NARROW_BYTES: u64 = 8 * MIB;
/// Ranges smaller than one part of any cache that is divided over the addresses, bytes.
const NARROWER_BYTES: [u64; 3] = [4 * MIB, MIB, MIB / 4];

const NARROWER: &str = "random writes in 4 MiB or less";
const FULL: &str = "random writes in 1 GiB that was filled in order";
const READ_BACK: &str = "reads of blocks just written";

/// Results of writes at random offsets.
struct Look {
    name: &'static str,
    offsets: Vec<u64>,
    /// Latencies without the first one, which includes a long seek, nanoseconds.
    latencies: Vec<u64>,
    /// Whether each block lies elsewhere than before it was written.
    moved: Vec<bool>,
    /// Whether each block lies where it lay before. A block that is neither moved nor stayed is unclear.
    stayed: Vec<bool>,
}

impl Look {
    fn share_moved(&self) -> f64 {
        self.moved.iter().filter(|moved| **moved).count() as f64 / self.moved.len() as f64
    }

    fn share_stayed(&self) -> f64 {
        self.stayed.iter().filter(|stayed| **stayed).count() as f64 / self.stayed.len() as f64
    }

    /// Returns whether so many blocks moved as if all had.
    fn have_most_moved(&self, bench: &Bench<'_>) -> bool {
        let most = if bench.repeats > 1 { MOST * share_seen(bench) } else { MOST };
        self.share_moved() >= most
    }

    /// Returns whether some blocks moved and others stayed, more than the variation of times explains.
    fn is_mixed(&self, bench: &Bench<'_>) -> bool {
        self.share_moved() >= MIXED && self.share_stayed() >= MIXED + 2.0 * by_chance(bench)
    }
}

/// Writes `count` blocks within `bytes` bytes from `from`; reads each block before and after.
fn look_at(
    bench: &mut Bench<'_>,
    name: &'static str,
    from: u64,
    bytes: u64,
    count: usize,
) -> Result<Look, TargetError> {
    let offsets = bench.scattered(from, bytes, count);
    let marks = Marks::new(bench, offsets.clone());
    let before = marks.read(bench)?;
    let timed = bench.write_blocks(1, &offsets)?;
    bench.keep(name, &timed);
    let after = read_after_writing(bench, &marks)?;
    // A read that takes less than a tenth of a rotation is served from memory, and does not show where the block lies.
    let turns = |time: u64| time as f64 > FAST * bench.rotation_ns();
    let moved =
        (before.iter().zip(&after)).map(|(&one, &other)| turns(one) && turns(other) && is_elsewhere(bench, one, other));
    let moved = moved.collect();
    let stayed = before.iter().zip(&after).map(|(&one, &other)| is_same(bench, one, other)).collect();
    Ok(Look { name, offsets, latencies: timed[1..].iter().map(|timed| timed.latency_ns()).collect(), moved, stayed })
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    match look(bench) {
        // If blocks just written could not be read, `look` has already concluded that the type is unknown. A drive or
        // server that is gone fails reads too, and then the error is returned.
        Err(TargetError::Failed { .. }) if is_open(bench) => Ok(()),
        Err(TargetError::Failed { reason, .. }) if bench.read_blocks(&[0]).is_ok() => {
            let because = format!("writes are refused, though reads are not ({reason}); {HOST_MANAGED}");
            bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE]);
            Ok(())
        }
        outcome => outcome,
    }
}

/// Returns whether the verdict says that the type cannot be determined.
fn is_open(bench: &Bench<'_>) -> bool {
    bench.verdict.property("type").is_some_and(|property| property.value == Value::CannotTell)
}

fn look(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let gib = (1 << 30).min(bench.target.size_bytes() / 2);
    let wide = look_at(bench, WIDE, 0, gib, WRITES)?;
    if wide.is_mixed(bench) {
        return interlaced::conclude_buffered(bench);
    }
    let found = fixed(bench, &wide.latencies);
    if found.share >= FIXED_SHARE {
        return conclude_fixed(bench, found, &wide);
    }
    let narrow = look_at(bench, NARROW, 0, NARROW_BYTES.min(gib), WRITES)?;
    let found = fixed(bench, &narrow.latencies);
    if found.share >= FIXED_SHARE {
        return conclude_fixed(bench, found, &narrow);
    }
    if wide.have_most_moved(bench) {
        return conclude_moved(bench, &wide);
    }
    let offsets = bench.scattered(0, gib, MORE_WRITES);
    let timed = bench.write_blocks(1, &offsets)?;
    bench.keep(WIDE, &timed);
    let latencies: Vec<u64> = timed[1..].iter().map(|timed| timed.latency_ns()).collect();
    conclude_varying(bench, &latencies, wide.share_stayed());
    match bench.verdict.word("type") {
        Some("conventional") => take_back_if_destroyed(bench, offsets)?,
        _ => return interlaced::conclude_rewriting(bench),
    }
    match bench.verdict.word("type") {
        Some("conventional") => take_back_if_full(bench, gib),
        _ => Ok(()),
    }
}

/// Fills a stretch in order, and writes it at random offsets again; withdraws the type "conventional" if the drive then
/// behaves otherwise. A drive that exploits unused sectors may write in place only while it is new.
fn take_back_if_full(bench: &mut Bench<'_>, gib: u64) -> Result<(), TargetError> {
    let fill: Vec<_> = (0..gib / MIB).map(|index| Operation::write(index * MIB, MIB)).collect();
    latencies(bench.target, 4, &fill)?;
    // A volatile cache that cannot be switched off needs time to write its contents back.
    bench.target.sleep(PAUSE_NS)?;
    let full = look_at(bench, FULL, 0, gib, 2 * WRITES)?;
    if full.is_mixed(bench) {
        return interlaced::conclude_buffered(bench);
    }
    if full.have_most_moved(bench) {
        return conclude_moved(bench, &full);
    }
    let longest = quantile(&full.latencies, 0.95) as f64;
    if longest > SEVERAL_ROTATIONS * bench.rotation_ns() {
        conclude_varying(bench, &full.latencies, full.share_stayed());
        return interlaced::conclude_rewriting(bench);
    }
    Ok(())
}

/// Concludes that the drive is shingled because blocks moved when they were written, although no latency is fixed over
/// a wide range: each of many parts of the drive has a cache of its own. Looks for a fixed latency within one part.
fn conclude_moved(bench: &mut Bench<'_>, wide: &Look) -> Result<(), TargetError> {
    let moved = wide.moved.iter().filter(|moved| **moved).count();
    let because = format!("{moved} of {} blocks lie elsewhere once they were written", wide.moved.len());
    let evidence = [wide.name];
    if bench.verdict.number("rotation").is_none() {
        // Times that vary by more than a part of a rotation look like moved blocks.
        let because = format!("{because}, as far as times show that vary too much to show the platter turn");
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &evidence);
        return Ok(());
    }
    bench.verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, because.clone(), &evidence);
    for bytes in NARROWER_BYTES {
        let look = look_at(bench, NARROWER, 0, bytes, WRITES / 2)?;
        let found = fixed(bench, &look.latencies);
        if found.share >= FIXED_SHARE {
            return conclude_fixed(bench, found, &look);
        }
    }
    let because = format!("{because}, and are not read faster than a platter turns");
    bench.verdict.conclude("cache_medium", Value::Word("disk"), "", Confidence::Medium, because, &evidence);
    Ok(())
}

/// Writes blocks at other places as well, and reads all `written` blocks back; withdraws the type if some cannot be
/// read. A host-managed drive serves writes in any order like a conventional one, or refuses them; the writes it
/// accepts destroy their neighbours.
fn take_back_if_destroyed(bench: &mut Bench<'_>, mut written: Vec<u64>) -> Result<(), TargetError> {
    for share in ELSEWHERE {
        let area = bench.at_share(share).min(bench.last_offset(NARROW_BYTES));
        let offsets = bench.scattered(area, NARROW_BYTES, WRITES);
        bench.write_blocks(1, &offsets)?;
        written.extend(offsets);
    }
    take_back_if_lost(bench, &written)
}

/// Relative width of the range in which latencies count as fixed.
const FIXED_WIDTH: f64 = 0.1;
/// Share of the spread of single measurements that the tolerance is.
const TOLERANCE_OF_SPREAD: f64 = 0.7;

/// Returns the range of relative width 0.1 that holds most latencies; if measurements vary more, it is as wide as they
/// vary. If most answers wait for no platter, the range is
/// a tenth of a rotation around the median: the latency of their transport varies by that much.
fn fixed(bench: &Bench<'_>, latencies: &[u64]) -> Mode {
    let varies = if bench.repeats > 1 { bench.tolerance / TOLERANCE_OF_SPREAD } else { 0.0 };
    let found = mode(latencies, FIXED_WIDTH.max(varies));
    let (near, rotation) = (median(latencies), bench.rotation_ns());
    if found.share >= FIXED_SHARE || near as f64 > FAST * rotation {
        return found;
    }
    let within = |latency: &&u64| latency.abs_diff(near) as f64 <= FAST * rotation / 2.0;
    Mode { center: near, share: latencies.iter().filter(within).count() as f64 / latencies.len() as f64 }
}

fn conclude_fixed(bench: &mut Bench<'_>, fixed: Mode, look: &Look) -> Result<(), TargetError> {
    let evidence = [look.name, "re-read"];
    let Some(rotation_ms) = bench.verdict.number("rotation") else {
        let because = "writes take a fixed time, and nothing shows that a disk rotates behind it".to_string();
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &evidence);
        return Ok(());
    };
    let latency_ms = fixed.center as f64 / 1e6;
    // Flash answers in a small part of a rotation. A place on a disk that is written synchronously passes the head once
    // in a rotation, and the records that the drive adds to each packet make the latency longer.
    let is_fast = latency_ms < rotation_ms / 4.0;
    let is_kept = is_fast && keeps_what_is_written(bench, &look.offsets)?;
    let medium = if is_kept { "flash" } else { "disk" };
    // A log on the disk may be written at the rate of the platter; then its blocks lie elsewhere.
    if is_fast && !is_kept && !look.have_most_moved(bench) {
        let because = format!(
            "writes take {latency_ms:.2} ms, and are not read as fast {} s later: a volatile cache took them; switch it off",
            PAUSE_NS / 1_000_000_000
        );
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[look.name, READ_BACK]);
        return Ok(());
    }
    let because = format!(
        "{:.0} % of random writes take {latency_ms:.2} ms, {}",
        fixed.share * 100.0,
        rotations(latency_ms / rotation_ms)
    );
    bench.verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, because.clone(), &evidence);
    let sure = if is_fast { Confidence::Medium } else { Confidence::High };
    bench.verdict.conclude("cache_medium", Value::Word(medium), "", sure, because.clone(), &evidence);
    bench.verdict.conclude("write_latency", Value::Number(latency_ms), "ms", Confidence::High, because, &evidence);
    match medium {
        "disk" => interlaced::take_back_if_some_stay(bench),
        _ => Ok(()),
    }
}

/// Shortest time in which flash takes a write. Writing a page takes 0.2 ms (Agrawal and others, *Design Tradeoffs for SSD
/// Performance*, USENIX ATC 2008, table 1); the half of that leaves room for faster chips.
const FLASH_MS: f64 = 0.1;

/// Lowers the confidence in a shingled drive with a flash cache unless the size of the cache confirms it, and either the
/// size of a band or the mapping. A drive with another cache, volatile or not, answers writes and reads as fast. If no
/// flash writes as fast, the type and the medium are taken back.
pub(crate) fn doubt_flash(verdict: &mut Verdict) {
    let is_sure = |name: &&str| {
        verdict
            .property(name)
            .is_some_and(|property| property.confidence == Confidence::High && property.value != Value::CannotTell)
    };
    let is_cleaned = ["band_bytes_od", "band_bytes_md", "band_bytes_id", "mapping"].iter().any(is_sure);
    if verdict.word("cache_medium") != Some("flash") || is_sure(&"cache_bytes") && is_cleaned {
        return;
    }
    let is_memory = verdict.number("write_latency").is_some_and(|latency_ms| latency_ms < FLASH_MS);
    for property in &mut verdict.properties {
        match property.name {
            "type" | "cache_medium" if is_memory => {
                property.value = Value::CannotTell;
                property.confidence = Confidence::Low;
            }
            "type" | "write_latency" if property.confidence == Confidence::High => {
                property.confidence = Confidence::Medium;
            }
            _ => continue,
        }
        property.because += "; a cache in front of any drive might answer as fast, and no bands were seen";
    }
}

/// Returns whether blocks, some seconds after they were written, are still read in less than a quarter of a rotation: a
/// flash cache holds them.
fn keeps_what_is_written(bench: &mut Bench<'_>, offsets: &[u64]) -> Result<bool, TargetError> {
    bench.target.sleep(PAUSE_NS)?;
    let timed = bench.read_blocks(offsets)?;
    bench.keep(READ_BACK, &timed);
    let latencies: Vec<u64> = timed.iter().map(|timed| timed.latency_ns()).collect();
    Ok((median(&latencies) as f64) < bench.rotation_ns() / 4.0)
}

/// Concludes the type if no latency is fixed: conventional, if the latencies are spread over a rotation, and the share
/// `stayed` of the blocks, most of them, lie where they lay before they were written.
fn conclude_varying(bench: &mut Bench<'_>, wide: &[u64], stayed: f64) {
    let spread = quantile(wide, 0.9).saturating_sub(quantile(wide, 0.1)) as f64 / 1e6;
    let longest = quantile(wide, 0.95) as f64 / 1e6;
    let (value, confidence, because) = match bench.verdict.number("rotation") {
        // A write in place takes at most a rotation and a short seek. Rewriting the tracks that a write would destroy
        // takes several rotations.
        Some(rotation) if longest > SEVERAL_ROTATIONS * rotation => (
            Value::CannotTell,
            Confidence::Low,
            format!("writes take up to {longest:.1} ms, several rotations: each rewrites more than was asked"),
        ),
        Some(_) if stayed < MOST => (
            Value::CannotTell,
            Confidence::Low,
            format!(
                "no latency is fixed, and only {:.0} % of the blocks are read where they were before",
                stayed * 100.0
            ),
        ),
        Some(rotation) if (0.6..1.3).contains(&(spread / rotation)) => (
            Value::Word("conventional"),
            Confidence::High,
            format!(
                "random writes take any part of a turn of the platter ({spread:.1} ms between the tenth and the last), and are read where \
                 they were before"
            ),
        ),
        _ => (
            Value::CannotTell,
            Confidence::Low,
            format!("no latency is fixed (at most {:.0} % agree), nor do they follow the turns of a platter", {
                mode(wide, 0.1).share * 100.0
            }),
        ),
    };
    bench.verdict.conclude("type", value, "", confidence, because, &[WIDE, NARROW]);
}
