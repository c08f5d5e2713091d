//! Reads fio's measurements: the log of latencies with offsets, and the distribution in json+.
//!
//! A line of the log (`--write_lat_log` with `--log_offset=1`): `milliseconds, nanoseconds, direction, bytes, offset[,
//! …]`. The time is that of completion, in whole milliseconds, and the latency is in nanoseconds (microseconds before
//! fio 3). At depth 1, the pauses between requests are too short for this clock, and count as 0.

use imbrex_disk::{Command, Lba, Operation, SimDuration, SimTime};
use imbrex_trace::TraceError;
use serde_json::Value;

use super::record::Reading;
use super::words::wrong;
use crate::distribution::Distribution;
use crate::measured::{Measured, MeasuredRequest};

/// Options of a job that determine its requests, beside `rw`.
const TAKEN_OVER: [&str; 9] = [
    "bs",
    "bssplit",
    "iodepth",
    "rwmixread",
    "random_distribution",
    "percentage_random",
    "offset",
    "size",
    "thinktime",
];

const EXPECTED: &str =
    "milliseconds, nanoseconds, 0 to 2, bytes, offset in bytes (fio --write_lat_log with --log_offset=1)";

/// Resolution of the log's clock, nanoseconds.
const TICK_NS: u64 = 1_000_000;

/// Returns whether the first line is one of a log with offsets.
pub(super) fn is_log(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| fields(line).is_some())
}

fn fields(line: &str) -> Option<(u64, u64, Operation, u64, u64)> {
    let words: Vec<&str> = line.split(',').map(str::trim).collect();
    if !(5..=8).contains(&words.len()) {
        return None;
    }
    let number = |index: usize| {
        let word: &str = words[index];
        let hexadecimal = word.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
        hexadecimal.unwrap_or_else(|| word.parse()).ok()
    };
    let operation = match number(2)? {
        0 => Operation::Read,
        1 => Operation::Write,
        2 => Operation::Trim,
        _ => return None,
    };
    Some((number(0)?, number(1)?, operation, number(3)?, number(4)?))
}

/// Reads a log.
pub(super) fn read(name: &str, text: &str) -> Result<Measured, TraceError> {
    let mut measured = Measured { format: "fio-lat-log".into(), ..Measured::default() };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let Some((ms, taken_ns, operation, bytes, offset)) = fields(line) else {
            return Err(wrong(name, index + 1, EXPECTED, line));
        };
        let sectors = u32::try_from(bytes.div_ceil(512)).ok().filter(|&sectors| sectors > 0 && offset % 512 == 0);
        let Some(sectors) = sectors else {
            return Err(wrong(name, index + 1, "whole sectors of 512 bytes", line));
        };
        let completed = ms.saturating_mul(TICK_NS);
        let command = Command { operation, fua: false, sectors, lba: Lba(offset / 512) };
        let issued = SimTime(completed.saturating_sub(taken_ns));
        measured.requests.push(MeasuredRequest { command, issued, taken: SimDuration(taken_ns), hit: None });
    }
    straighten(&mut measured);
    Ok(measured)
}

/// Sorts requests by their issue if some of them overlap. Overlaps that the log's clock cannot resolve do not count;
/// without others, each request is issued after the one before.
fn straighten(measured: &mut Measured) {
    let overlaps = |pair: &[MeasuredRequest]| pair[0].completed().0 > pair[1].issued.0 + 2 * TICK_NS;
    if measured.requests.windows(2).any(overlaps) {
        measured.requests.sort_by_key(|request| request.issued);
        measured.notes.push("requests overlap: they are issued at their times, known to a millisecond".into());
        return;
    }
    let mut before = SimTime::ZERO;
    for request in &mut measured.requests {
        let pause = request.issued.since(before);
        let pause = if pause.0 <= 2 * TICK_NS { SimDuration::ZERO } else { pause };
        request.issued = before + pause;
        before = request.completed();
    }
    measured
        .notes
        .push("one request at a time: pauses within the log's clock of a millisecond are taken as none".into());
}

/// Returns whether the text is fio's JSON.
pub(super) fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && text.contains("\"fio version\"")
}

/// Reads the distribution in fio's json+: the bins of total latency, or else of completion latency, over all jobs.
pub(super) fn distribution(name: &str, text: &str) -> Result<Reading, TraceError> {
    let refuse = |reason: &str| TraceError::new(name, reason);
    let document: Value = serde_json::from_str(text).map_err(|error| refuse(&format!("is no JSON: {error}")))?;
    let jobs = document["jobs"].as_array().ok_or_else(|| refuse("has no `jobs`"))?;
    let bins = |direction: &str| {
        let mut all = std::collections::BTreeMap::<u64, u64>::new();
        for job in jobs {
            let side = &job[direction];
            let bins = ["lat_ns", "clat_ns"].iter().find_map(|key| side[*key]["bins"].as_object());
            for (ns, count) in bins.into_iter().flatten() {
                if let (Ok(ns), Some(count)) = (ns.parse::<u64>(), count.as_u64()) {
                    *all.entry(ns).or_default() += count;
                }
            }
        }
        all.into_iter().collect::<Vec<_>>()
    };
    let (reads, writes) = (bins("read"), bins("write"));
    if reads.is_empty() && writes.is_empty() {
        return Err(refuse("has no bins of latencies: run fio with --output-format=json+"));
    }
    let count = reads.iter().chain(&writes).map(|(_, count)| count).sum();
    Ok(Reading::Distribution(Distribution { reads, writes, words: words(&document, count) }))
}

/// Returns the workload of the only job, with `count` requests, in the generator's syntax, which equals fio's. Returns
/// nothing if several jobs ran at once.
fn words(document: &Value, count: u64) -> Option<String> {
    let jobs = document["jobs"].as_array().filter(|jobs| jobs.len() == 1)?;
    let option = |key: &str| {
        let of = |options: &Value| options[key].as_str().map(String::from);
        of(&jobs[0]["job options"]).or_else(|| of(&document["global options"]))
    };
    if option("numjobs").is_some_and(|jobs| jobs != "1") {
        return None;
    }
    let mut words = vec![format!("rw={}", option("rw").or_else(|| option("readwrite"))?)];
    words.extend(TAKEN_OVER.iter().filter_map(|key| Some(format!("{key}={}", option(key)?))));
    words.push(format!("number_ios={count}"));
    Some(words.join(","))
}
