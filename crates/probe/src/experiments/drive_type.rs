//! Test 1: shingled or not? Random writes to a conventional drive wait for their places to pass; a shingled drive logs
//! them, at a fixed latency each (Aghayev 2015 §4.3). A cache that is divided over the addresses shows its fixed latency
//! only within one part, so the writes are made in the first gibibyte, and in 8 MiB.

use super::{Bench, Experiment, BLOCK_BYTES};
use crate::statistics::{mode, quantile, Mode};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value};

/// Its line in the registry.
pub const EXPERIMENT: Experiment = Experiment {
    name: "type",
    question: "shingled or not? cache on disk or flash?",
    source: "Aghayev 2015 test 1",
    writes: true,
    tells: &["type", "cache_medium", "write_latency"],
    about_s: 40,
    is_idle: |_| None,
    run,
};

/// More of the writes than this in a band of a tenth are a fixed latency. Waits that are spread over a rotation put a
/// tenth there, and twice that where seeks are added.
const FIXED_SHARE: f64 = 0.6;

fn writes(bench: &mut Bench<'_>, name: &'static str, bytes: u64, count: usize) -> Result<Vec<u64>, TargetError> {
    let bytes = bytes.min(bench.target.size_bytes() / 2);
    let places = bench.scattered(0, bytes, count);
    let operations: Vec<_> = places.into_iter().map(|offset| Operation::write(offset, BLOCK_BYTES)).collect();
    bench.one_by_one(name, &operations)
}

fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let wide = writes(bench, "random writes in 1 GiB", 1 << 30, 800)?;
    let narrow = writes(bench, "random writes in 8 MiB", 8 << 20, 400)?;
    let evidence = ["random writes in 1 GiB", "random writes in 8 MiB"];
    let (wide_mode, narrow_mode) = (mode(&wide[1..], 0.1), mode(&narrow[1..], 0.1));
    let fixed = [wide_mode, narrow_mode].into_iter().find(|found| found.share >= FIXED_SHARE);
    let Some(fixed) = fixed else {
        return conclude_varying(bench, &wide, wide_mode, &evidence);
    };
    let Some(rotation_ms) = bench.verdict.number("rotation") else {
        let because = "writes take a fixed time, and nothing shows that a disk rotates behind it".to_string();
        bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &evidence);
        return Ok(());
    };
    let latency_ms = fixed.center as f64 / 1e6;
    // Flash answers in a small part of a rotation; a place on a disk that is written synchronously comes by once a
    // rotation, and what the drive adds to each packet makes it more.
    let medium = if latency_ms < rotation_ms / 4.0 { "flash" } else { "disk" };
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

/// No fixed latency: conventional, if the waits are those of single places on a rotating disk.
fn conclude_varying(
    bench: &mut Bench<'_>,
    wide: &[u64],
    found: Mode,
    evidence: &[&'static str],
) -> Result<(), TargetError> {
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
            format!("no latency is fixed (at most {:.0} % agree), nor do they follow a rotation", found.share * 100.0),
        ),
    };
    bench.verdict.conclude("type", value, "", confidence, because, evidence);
    Ok(())
}
