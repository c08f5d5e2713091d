//! Reads the validation traces of DiskSim: `R|W word block count service think`, with service and think time in
//! microseconds. The word tells the result in the drive's cache, if it was known. If all lines have one and the same
//! word, it tells nothing.

use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_trace::TraceError;

use super::words::{time_ns, wrong};
use crate::measured::{Measured, MeasuredRequest};

const EXPECTED: &str = "R or W, a word, first sector, sectors, service time and think time in µs";

/// Returns whether the first line is one of such a trace.
pub(super) fn is_one(text: &str) -> bool {
    text.lines().find(|line| !line.trim().is_empty()).is_some_and(|line| fields(line).is_some())
}

fn fields(line: &str) -> Option<(Command, &str, u64, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [kind, word, first, sectors, service, think] = words[..] else { return None };
    let (first, sectors) = (first.parse::<u64>().ok()?, sectors.parse::<u32>().ok().filter(|&sectors| sectors > 0)?);
    first.checked_add(sectors as u64)?;
    let command = match kind {
        "R" => Command::read(first, sectors),
        "W" => Command::write(first, sectors),
        _ => return None,
    };
    Some((command, word, time_ns(service, 1e3)?, time_ns(think, 1e3)?))
}

/// Reads a whole trace.
pub(super) fn read(name: &str, text: &str) -> Result<Measured, TraceError> {
    let mut measured = Measured { format: "disksim-validate".into(), ..Measured::default() };
    let mut words: Vec<String> = Vec::new();
    let mut issued = SimTime::ZERO;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let Some((command, word, service_ns, think_ns)) = fields(line) else {
            return Err(wrong(name, index + 1, EXPECTED, line));
        };
        let taken = SimDuration(service_ns);
        measured.requests.push(MeasuredRequest { command, issued, taken, hit: None });
        words.push(word.to_ascii_lowercase());
        issued = issued + taken + SimDuration(think_ns);
    }
    if words.iter().any(|word| *word != words[0]) {
        for (request, word) in measured.requests.iter_mut().zip(&words) {
            request.hit = match word.as_str() {
                "hit" => Some(true),
                _ => Some(false),
            };
        }
    } else {
        measured.notes.push("every line bears the same word for the cache: hit or miss is the model's".into());
    }
    Ok(measured)
}
