//! Test 1: shingled, interlaced, or neither? Cache on disk or flash?
//!
//! Random writes to a conventional drive wait for their places to pass; a shingled drive logs them, at a fixed latency each
//! (Aghayev 2015 §4.3). A cache that is divided over the addresses shows its fixed latency only within one part, so the writes
//! are made in the first gibibyte, in 8 MiB, and in less. Whatever the latencies say, blocks are read before and after they
//! are written: those of a conventional drive lie where they lay. On an interlaced drive stretches of addresses are rewritten
//! in place (tops), and those between cost more or go elsewhere (bottoms, Hajkazemi 2019 §2.1): [`super::interlaced`].
//!
//! Invariants:
//! 1. No drive is called conventional of which a block that was written lies elsewhere, or a write took several rotations.

use super::experiment::Experiment;
use super::interlaced::{self, SEVERAL_ROTATIONS};
use super::lost::{HOST_MANAGED, NARROW, WIDE, read_after_writing, take_back_if_lost};
use crate::bench::{Bench, MIB};
use crate::marks::{Marks, by_chance, is_elsewhere, is_same};
use crate::statistics::{Mode, median, mode, quantile};
use crate::target::{Operation, TargetError, latencies};
use crate::verdict::{Confidence, Value};
use crate::words::turns;

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "type",
    question: "shingled, interlaced or neither? cache on disk or flash?",
    source: "Aghayev 2015 test 1",
    writes: true,
    needs: &["rotation"],
    tells: &["type", "cache_medium", "write_latency", "bottom_writes", "stretch_bytes"],
    about_s: 40,
    is_idle: |_| None,
    yields_to: |_| None,
    run,
};

/// More of the writes than this in a band of a tenth are a fixed latency. Waits that are spread over a rotation put a
/// tenth there, and twice that where seeks are added.
const FIXED_SHARE: f64 = 0.6;
/// Answers within this share of a rotation wait for no platter.
const FAST: f64 = 0.1;
/// Writes of a look, few because a small cache takes few; and how many more where no latency is fixed.
const WRITES: usize = 48;
const MORE_WRITES: usize = 400;
/// Blocks were put elsewhere if so many of them lie elsewhere than before, and some were if so many do and so many do not.
const MOST: f64 = 0.8;
const MIXED: f64 = 0.2;
/// Time in which a volatile cache writes back what it has.
const PAUSE_NS: u64 = 10_000_000_000;

/// Where blocks are written besides the first gibibyte, which may be the one place that takes them in any order.
const ELSEWHERE: [f64; 3] = [0.35, 0.65, 0.97];
const NARROW_BYTES: u64 = 8 * MIB;
/// Less than a part of any cache that is divided over the addresses.
const NARROWER_BYTES: [u64; 3] = [4 * MIB, MIB, MIB / 4];

const NARROWER: &str = "random writes in 4 MiB or less";
const FULL: &str = "random writes in 1 GiB that was filled in order";
const READ_BACK: &str = "reads of blocks just written";

/// What writing at random places showed.
struct Look {
    name: &'static str,
    offsets: Vec<u64>,
    /// Without the first, which also seeks.
    latencies: Vec<u64>,
    /// Of each block whether it lies elsewhere than before it was written.
    moved: Vec<bool>,
    /// Of each whether it lies where it lay; of one that is neither it is not clear.
    stayed: Vec<bool>,
}

impl Look {
    fn share_moved(&self) -> f64 {
        self.moved.iter().filter(|moved| **moved).count() as f64 / self.moved.len() as f64
    }

    /// Whether some blocks lie elsewhere and others in their place, more than seem to by chance where times vary.
    fn is_mixed(&self, bench: &Bench<'_>) -> bool {
        let stayed = self.stayed.iter().filter(|stayed| **stayed).count() as f64 / self.stayed.len() as f64;
        self.share_moved() >= MIXED && stayed >= MIXED + 2.0 * by_chance(bench)
    }
}

/// Writes `count` blocks in `bytes` from `from`, each of which is read before and after.
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
    // What is read faster than a platter turns is remembered somewhere, and tells nothing of where it lies.
    let turns = |time: u64| time as f64 > FAST * bench.rotation_ns();
    let moved =
        (before.iter().zip(&after)).map(|(&one, &other)| turns(one) && turns(other) && is_elsewhere(bench, one, other));
    let moved = moved.collect();
    let stayed = before.iter().zip(&after).map(|(&one, &other)| is_same(bench, one, other)).collect();
    Ok(Look { name, offsets, latencies: timed[1..].iter().map(|timed| timed.latency_ns()).collect(), moved, stayed })
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    match look(bench) {
        // A server or a drive that is gone answers no reads either.
        // It is concluded already where blocks just written could not be read.
        Err(TargetError::Failed { .. }) if is_open(bench) => Ok(()),
        Err(TargetError::Failed { reason, .. }) if bench.read_blocks(&[0]).is_ok() => {
            let because = format!("writes are refused, though reads are not ({reason}); {HOST_MANAGED}");
            bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE]);
            Ok(())
        }
        outcome => outcome,
    }
}

/// Whether it is concluded that the type cannot be told.
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
    if wide.share_moved() >= MOST {
        return conclude_moved(bench, &wide);
    }
    let offsets = bench.scattered(0, gib, MORE_WRITES);
    let timed = bench.write_blocks(1, &offsets)?;
    bench.keep(WIDE, &timed);
    let latencies: Vec<u64> = timed[1..].iter().map(|timed| timed.latency_ns()).collect();
    conclude_varying(bench, &latencies);
    match bench.verdict.word("type") {
        Some("conventional") => take_back_if_destroyed(bench, offsets)?,
        _ => return interlaced::conclude_rewriting(bench),
    }
    match bench.verdict.word("type") {
        Some("conventional") => take_back_if_full(bench, gib),
        _ => Ok(()),
    }
}

/// A drive that spares what holds nothing may take writes in place only while it is new: a stretch is filled in order, and
/// written at random places again.
fn take_back_if_full(bench: &mut Bench<'_>, gib: u64) -> Result<(), TargetError> {
    let fill: Vec<_> = (0..gib / MIB).map(|index| Operation::write(index * MIB, MIB)).collect();
    latencies(bench.target, 4, &fill)?;
    // A volatile cache that cannot be switched off is given the time to write it back.
    bench.target.sleep(PAUSE_NS)?;
    let full = look_at(bench, FULL, 0, gib, 2 * WRITES)?;
    if full.is_mixed(bench) {
        return interlaced::conclude_buffered(bench);
    }
    if full.share_moved() >= MOST {
        return conclude_moved(bench, &full);
    }
    let longest = quantile(&full.latencies, 0.95) as f64;
    if longest > SEVERAL_ROTATIONS * bench.rotation_ns() {
        conclude_varying(bench, &full.latencies);
        return interlaced::conclude_rewriting(bench);
    }
    Ok(())
}

/// Blocks lie elsewhere once they are written, though no latency is fixed over wide stretches: each of many parts of the
/// drive has a cache of its own. Within one part a latency may be fixed.
fn conclude_moved(bench: &mut Bench<'_>, wide: &Look) -> Result<(), TargetError> {
    let moved = wide.moved.iter().filter(|moved| **moved).count();
    let because = format!("{moved} of {} blocks lie elsewhere once they were written", wide.moved.len());
    let evidence = [wide.name];
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

/// A drive that leaves it to the host to write in order takes other writes as a conventional one does, or refuses them; what
/// it takes destroys what lies beside it. So blocks are written elsewhere too, and all are read back.
fn take_back_if_destroyed(bench: &mut Bench<'_>, mut written: Vec<u64>) -> Result<(), TargetError> {
    for share in ELSEWHERE {
        let area = bench.at_share(share).min(bench.last_offset(NARROW_BYTES));
        let offsets = bench.scattered(area, NARROW_BYTES, WRITES);
        bench.write_blocks(1, &offsets)?;
        written.extend(offsets);
    }
    take_back_if_lost(bench, &written)
}

/// The densest band of latencies: a tenth wide; where it is of answers that wait for no platter, a small part of a rotation,
/// which what passes them on varies by.
fn fixed(bench: &Bench<'_>, latencies: &[u64]) -> Mode {
    let found = mode(latencies, 0.1);
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
    // Flash answers in a small part of a rotation; a place on a disk that is written synchronously comes by once a
    // rotation, and what the drive adds to each packet makes it more.
    let is_fast = latency_ms < rotation_ms / 4.0;
    let is_kept = is_fast && keeps_what_is_written(bench, &look.offsets)?;
    let medium = if is_kept { "flash" } else { "disk" };
    // A log on the disk may be written at the rate of the platter; then its blocks lie elsewhere.
    if is_fast && !is_kept && look.share_moved() < MOST {
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
        turns(latency_ms / rotation_ms)
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

/// Whether blocks written a while ago are still read faster than a platter turns: a cache of flash has them.
fn keeps_what_is_written(bench: &mut Bench<'_>, offsets: &[u64]) -> Result<bool, TargetError> {
    bench.target.sleep(PAUSE_NS)?;
    let timed = bench.read_blocks(offsets)?;
    bench.keep(READ_BACK, &timed);
    let latencies: Vec<u64> = timed.iter().map(|timed| timed.latency_ns()).collect();
    Ok((median(&latencies) as f64) < bench.rotation_ns() / 4.0)
}

/// No fixed latency: conventional, if the waits are those of single places on a rotating disk.
fn conclude_varying(bench: &mut Bench<'_>, wide: &[u64]) {
    let spread = quantile(wide, 0.9).saturating_sub(quantile(wide, 0.1)) as f64 / 1e6;
    let longest = quantile(wide, 0.95) as f64 / 1e6;
    let (value, confidence, because) = match bench.verdict.number("rotation") {
        // A write that has to wait for its place takes at most a rotation and a short seek: a rewrite of what it endangers
        // takes several.
        Some(rotation) if longest > SEVERAL_ROTATIONS * rotation => (
            Value::CannotTell,
            Confidence::Low,
            format!(
                "writes take up to {longest:.1} ms, several turns of the platter: each rewrites more than was asked"
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
