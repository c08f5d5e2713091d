//! Test 1: shingled or not? Random writes to a conventional drive wait for their places to pass; a shingled drive logs
//! them, at a fixed latency each (Aghayev 2015 §4.3). A cache that is divided over the addresses shows its fixed latency
//! only within one part, so the writes are made in the first gibibyte, and in 8 MiB.

use super::experiment::Experiment;
use crate::bench::{Bench, MIB};
use crate::statistics::{median, mode, quantile, Mode};
use crate::target::TargetError;
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "type",
    question: "shingled or not? cache on disk or flash?",
    source: "Aghayev 2015 test 1",
    writes: true,
    needs: &["rotation"],
    tells: &["type", "cache_medium", "write_latency"],
    about_s: 20,
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
/// Time in which a volatile cache writes back what it has.
const PAUSE_NS: u64 = 10_000_000_000;

/// Where blocks are written besides the first gibibyte, which may be the one place that takes them in any order.
const ELSEWHERE: [f64; 3] = [0.35, 0.65, 0.97];
const NARROW_BYTES: u64 = 8 * MIB;
const HOST_MANAGED: &str =
    "it may be a host-managed drive, which says itself what it is: ask the machine it is in (lsblk -o \
                            NAME,ZONED)";

const WIDE: &str = "random writes in 1 GiB";
const NARROW: &str = "random writes in 8 MiB";
const READ_BACK: &str = "reads of blocks just written";

/// Latencies of writes at random places, the first of which also seeks.
fn writes(bench: &mut Bench<'_>, name: &'static str, offsets: &[u64]) -> Result<Vec<u64>, TargetError> {
    let timed = bench.write_blocks(1, offsets)?;
    bench.keep(name, &timed);
    Ok(timed[1..].iter().map(|timed| timed.latency_ns()).collect())
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    match look(bench) {
        // A server or a drive that is gone answers no reads either.
        Err(TargetError::Failed { reason, .. }) if bench.read_blocks(&[0]).is_ok() => {
            let because = format!("writes are refused, though reads are not ({reason}); {HOST_MANAGED}");
            bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE]);
            Ok(())
        }
        outcome => outcome,
    }
}

fn look(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let gib = (1 << 30).min(bench.target.size_bytes() / 2);
    let narrow = NARROW_BYTES.min(gib);
    for (name, bytes) in [(WIDE, gib), (NARROW, narrow)] {
        let offsets = bench.scattered(0, bytes, WRITES);
        let latencies = writes(bench, name, &offsets)?;
        let found = fixed(bench, &latencies);
        if found.share >= FIXED_SHARE {
            return conclude_fixed(bench, name, found, &offsets);
        }
    }
    let offsets = bench.scattered(0, gib, MORE_WRITES);
    let latencies = writes(bench, WIDE, &offsets)?;
    conclude_varying(bench, &latencies);
    if bench.verdict.word("type") == Some("conventional") {
        take_back_if_destroyed(bench, offsets)?;
    }
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
    let mut lost = 0;
    for &offset in &written {
        match bench.read_blocks(&[offset]) {
            Err(TargetError::Failed { .. }) => lost += 1,
            outcome => drop(outcome?),
        }
    }
    if lost > 0 {
        let because = format!(
            "of {} blocks just written {lost} cannot be read any more: writes destroy what lies beside them; {HOST_MANAGED}",
            written.len()
        );
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[WIDE, NARROW]);
    }
    Ok(())
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

fn conclude_fixed(bench: &mut Bench<'_>, name: &'static str, fixed: Mode, offsets: &[u64]) -> Result<(), TargetError> {
    let evidence = [name, "re-read"];
    let Some(rotation_ms) = bench.verdict.number("rotation") else {
        let because = "writes take a fixed time, and nothing shows that a disk rotates behind it".to_string();
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &evidence);
        return Ok(());
    };
    let latency_ms = fixed.center as f64 / 1e6;
    // Flash answers in a small part of a rotation; a place on a disk that is written synchronously comes by once a
    // rotation, and what the drive adds to each packet makes it more.
    let medium = if latency_ms < rotation_ms / 4.0 { "flash" } else { "disk" };
    if medium == "flash" && !keeps_what_is_written(bench, offsets)? {
        let because = format!(
            "writes take {latency_ms:.2} ms, and are not read as fast {} s later: a volatile cache took them; switch it off",
            PAUSE_NS / 1_000_000_000
        );
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[name, READ_BACK]);
        return Ok(());
    }
    let because = format!(
        "{:.0} % of random writes take {latency_ms:.2} ms, {:.2} rotations",
        fixed.share * 100.0,
        latency_ms / rotation_ms
    );
    bench.verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, because.clone(), &evidence);
    let sure = if medium == "disk" { Confidence::High } else { Confidence::Medium };
    bench.verdict.conclude("cache_medium", Value::Word(medium), "", sure, because.clone(), &evidence);
    bench.verdict.conclude("write_latency", Value::Number(latency_ms), "ms", Confidence::High, because, &evidence);
    Ok(())
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
        Some(rotation) if longest > 2.5 * rotation => (
            Value::CannotTell,
            Confidence::Low,
            format!("writes take up to {longest:.1} ms, several rotations: each rewrites more than was asked"),
        ),
        Some(rotation) if (0.6..1.3).contains(&(spread / rotation)) => (
            Value::Word("conventional"),
            Confidence::High,
            format!("random writes take any part of a rotation ({spread:.1} ms between the tenth and the last)"),
        ),
        _ => (
            Value::CannotTell,
            Confidence::Low,
            format!("no latency is fixed (at most {:.0} % agree), nor do they follow a rotation", {
                mode(wide, 0.1).share * 100.0
            }),
        ),
    };
    bench.verdict.conclude("type", value, "", confidence, because, &[WIDE, NARROW]);
}
