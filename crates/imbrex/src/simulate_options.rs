//! Options of a simulation, beside its workload and its drives, under their command-line names. The command line, sweep
//! files and Python's keyword arguments all set their options here.
//!
//! Invariants:
//! 1. The names are those of `imbrex simulate`, without the leading dashes. A test of the program checks this.
//! 2. Setting an option twice replaces the first value.

use std::path::PathBuf;

use imbrex_disk::SimDuration;
use imbrex_units::quantity;

use crate::drives::FitChoice;
use crate::error::Failure;
use crate::options::SimulationOptions;
use crate::simulation::Baseline;
use crate::workload::WorkloadOptions;

/// All options of `imbrex simulate`, beside the workload and the drives themselves.
#[derive(Clone, Debug, Default)]
pub struct SimulateOptions {
    /// Options for reading the workload.
    pub workload: WorkloadOptions,
    /// Choice of the baseline that the drives are compared with.
    pub baseline: Baseline,
    /// The way in which requests reach the drives, and the results that are kept.
    pub simulation: SimulationOptions,
}

/// The error of [`SimulateOptions::set`]: an option does not accept the value, or has an unknown name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadWord {
    /// Name of the option, as given.
    pub name: String,
    /// Value for the option, as given.
    pub value: String,
    /// Description of the accepted values. If the option is unknown: the names of all options.
    pub expected: String,
}

impl BadWord {
    /// Returns a usage failure whose message shows the option as `name = value`.
    pub fn in_assignment(self) -> Failure {
        Failure::usage(format!("{} = {}: expected {}", self.name, self.value, self.expected))
    }
}

/// An option: its name, a description of the values it accepts (for error messages), and the function that sets it. The
/// function returns `None` if it does not accept the value.
type Settable = (&'static str, &'static str, fn(&mut SimulateOptions, &str) -> Option<()>);

const OPTIONS: &[Settable] = &[
    ("format", "the name of a trace format: see the list of formats", |asked, word| {
        asked.workload.trace.format = Some(imbrex_trace::formats::by_name(word)?.name.into());
        Some(())
    }),
    ("device", "the number or the name of a device of the trace", |asked, word| {
        asked.workload.trace.device = word.parse().ok();
        Some(())
    }),
    ("columns", "columns in order, such as time,op,offset,size", |asked, word| {
        asked.workload.trace.columns = Some(word.into());
        Some(())
    }),
    ("units", "units of the columns, such as us,,B,B", |asked, word| {
        asked.workload.trace.units = Some(word.into());
        Some(())
    }),
    ("action", "one letter: Q, D or C", |asked, word| {
        let mut letters = word.chars();
        set(&mut asked.workload.trace.action, letters.next().filter(|_| letters.as_str().is_empty()).map(Some))
    }),
    ("read-flag", "0 or 1", |asked, word| {
        asked.workload.trace.read_flag = Some(word.parse().ok().filter(|&flag| flag <= 1)?);
        Some(())
    }),
    ("time-unit", "a unit of time: s, ms, us, 100ns or ns", |asked, word| {
        asked.workload.trace.time_unit = Some(word.parse().ok()?);
        Some(())
    }),
    ("decimal", "point or comma", |asked, word| set(&mut asked.workload.trace.decimal, word.parse().ok().map(Some))),
    ("all", "reads or writes", |asked, word| {
        set(&mut asked.workload.trace.all, imbrex_trace::options::all_of(word).ok().map(Some))
    }),
    ("skip-malformed", "true, false or all", |asked, word| {
        set(&mut asked.workload.trace.skip_malformed, word.parse().ok())
    }),
    ("seed", "a whole number", |asked, word| set(&mut asked.workload.seed, word.parse().ok().map(Some))),
    ("seeds", "a number from 1 to 1000", |asked, word| {
        set(&mut asked.simulation.seeds, word.parse().ok().filter(|seeds| (1..=1000).contains(seeds)))
    }),
    ("limit", "a number of requests", |asked, word| set(&mut asked.workload.limit, word.parse().ok().map(Some))),
    ("baseline", "a drive", |asked, word| set(&mut asked.baseline, Some(Baseline::Drive(word.into())))),
    ("no-baseline", YES_OR_NO, |asked, word| {
        if yes_or_no(word)? {
            asked.baseline = Baseline::None;
        }
        Some(())
    }),
    ("fit", "grow, wrap, scale or error", |asked, word| set(&mut asked.simulation.fit, FitChoice::named(word))),
    ("arrival", "fixed-queue, closed, open or flat-out", |asked, word| {
        let known = ARRIVALS.contains(&word);
        set(&mut asked.simulation.arrival, known.then(|| Some(word.into())))
    }),
    ("queue", "a depth of 1 or more", |asked, word| {
        set(&mut asked.simulation.queue, word.parse().ok().filter(|&depth| depth > 0).map(Some))
    }),
    ("schedule", "fifo, elevator or sptf", |asked, word| {
        let known = SCHEDULES.contains(&word);
        set(&mut asked.simulation.schedule, known.then(|| Some(word.into())))
    }),
    ("write-cache", SIZE_OR_OFF, |asked, word| {
        set(&mut asked.simulation.write_cache_bytes, size_or_off(word).ok().map(Some))
    }),
    ("read-ahead", SIZE_OR_OFF, |asked, word| {
        set(&mut asked.simulation.read_ahead_bytes, size_or_off(word).ok().map(Some))
    }),
    ("warmup", "a number of requests", |asked, word| set(&mut asked.simulation.warmup_requests, word.parse().ok())),
    ("window", WINDOW, |asked, word| set(&mut asked.simulation.window, window(word).ok())),
    ("check", YES_OR_NO, |asked, word| set(&mut asked.simulation.check, yes_or_no(word))),
    ("out", "a folder", |asked, word| set(&mut asked.simulation.out, Some(Some(PathBuf::from(word))))),
    ("per-io", YES_OR_NO, |asked, word| set(&mut asked.simulation.per_io, yes_or_no(word))),
    ("plans", YES_OR_NO, |asked, word| set(&mut asked.simulation.plans, yes_or_no(word))),
    ("explain", "a number of requests from 0 to 1000", |asked, word| {
        set(&mut asked.simulation.explain, word.parse().ok().filter(|&requests| requests <= EXPLAINED_MAX))
    }),
    ("trace-events", "a file", |asked, word| set(&mut asked.simulation.trace_events, Some(Some(PathBuf::from(word))))),
    ("from", TIME, |asked, word| set(&mut asked.simulation.events_from, time(word).ok())),
    ("to", TIME, |asked, word| set(&mut asked.simulation.events_to, time(word).ok().map(Some))),
    ("trace-events-size", EVENTS_SIZE, |asked, word| {
        set(&mut asked.simulation.events_bytes_max, events_size(word).ok())
    }),
    ("jobs", "a number of 1 or more", |asked, word| {
        set(&mut asked.simulation.jobs, word.parse().ok().filter(|&jobs| jobs > 0).map(Some))
    }),
];

/// Names of the arrival processes.
pub(crate) const ARRIVALS: [&str; 4] = ["fixed-queue", "closed", "open", "flat-out"];
/// Names of the schedulers.
pub(crate) const SCHEDULES: [&str; 3] = ["fifo", "elevator", "sptf"];

const YES_OR_NO: &str = "true or false";
const SIZE_OR_OFF: &str = "a size such as 64MiB, or off";
const WINDOW: &str = "a time such as 1s or 100ms";
const TIME: &str = "a simulated time such as 90s or 2h";
const EVENTS_SIZE: &str = "a size of 64KiB or more, such as 1GiB";

/// Largest number of requests that are explained.
const EXPLAINED_MAX: usize = 1000;
/// Smallest size of a file of events.
const EVENTS_BYTES_MIN: u64 = 64 << 10;

/// Stores `value` in `place`. Returns `None`, and leaves `place` unchanged, if there is no value.
fn set<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn yes_or_no(word: &str) -> Option<bool> {
    match word {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Parses a size such as `64MiB` and returns it in bytes; returns 0 for `off`.
///
/// # Errors
///
/// A message for the user if `word` is neither a size nor `off`.
pub fn size_or_off(word: &str) -> Result<u64, String> {
    match word {
        "off" => Ok(0),
        _ => quantity::bytes(word).ok_or_else(|| format!("expected {SIZE_OR_OFF}")),
    }
}

/// Parses a duration such as `100ms`; a bare number is seconds.
///
/// # Errors
///
/// A message for the user if `word` is not a duration, or is 0.
pub fn window(word: &str) -> Result<SimDuration, String> {
    let ns = quantity::duration_ns(word, quantity::SECOND_NS).filter(|&ns| ns > 0);
    ns.map(SimDuration).ok_or_else(|| format!("expected {WINDOW}"))
}

/// Parses a time such as `90s`; a bare number is seconds.
///
/// # Errors
///
/// A message for the user if `word` is not a time.
pub fn time(word: &str) -> Result<SimDuration, String> {
    let ns = quantity::duration_ns(word, quantity::SECOND_NS);
    ns.map(SimDuration).ok_or_else(|| format!("expected {TIME}"))
}

/// Parses the largest size of a file of events, in bytes.
///
/// # Errors
///
/// A message for the user if `word` is not a size, or is too small.
pub fn events_size(word: &str) -> Result<u64, String> {
    let bytes = quantity::bytes(word).filter(|&bytes| bytes >= EVENTS_BYTES_MIN);
    bytes.ok_or_else(|| format!("expected {EVENTS_SIZE}"))
}

impl SimulateOptions {
    /// Returns the names of all options, without leading dashes, in the order of the help text.
    pub fn names() -> impl Iterator<Item = &'static str> {
        OPTIONS.iter().map(|(name, ..)| *name)
    }

    /// Parses `word` and sets the option `name` to it, replacing an earlier value. `name` has no leading dashes; a flag
    /// accepts `true` or `false`.
    ///
    /// # Errors
    ///
    /// If no option has this name, or if the option does not accept the value.
    pub fn set(&mut self, name: &str, word: &str) -> Result<(), BadWord> {
        let bad = |expected: String| BadWord { name: name.into(), value: word.into(), expected };
        let Some((_, takes, set)) = OPTIONS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<_> = SimulateOptions::names().collect();
            return Err(bad(format!("the name of an option: {}", names.join(", "))));
        };
        set(self, word).ok_or_else(|| bad(takes.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_set_what_they_name() {
        let mut asked = SimulateOptions::default();
        let words = [
            ("queue", "7"),
            ("write-cache", "64MiB"),
            ("read-ahead", "off"),
            ("check", "true"),
            ("window", "100ms"),
            ("fit", "wrap"),
            ("limit", "12"),
            ("time-unit", "us"),
            ("no-baseline", "true"),
            ("action", "D"),
        ];
        for (name, word) in words {
            asked.set(name, word).unwrap_or_else(|bad| panic!("{bad:?}"));
        }
        let simulation = &asked.simulation;
        assert_eq!((simulation.queue, simulation.write_cache_bytes), (Some(7), Some(64 << 20)));
        assert_eq!((simulation.read_ahead_bytes, simulation.check), (Some(0), true));
        assert_eq!((simulation.window, simulation.fit), (SimDuration(100_000_000), FitChoice::Wrap));
        assert_eq!((asked.workload.limit, asked.baseline), (Some(12), Baseline::None));
        assert_eq!(asked.workload.trace.time_unit, Some(imbrex_trace::TimeUnit::Microseconds));
        assert_eq!(asked.workload.trace.action, Some('D'));
    }

    #[test]
    fn what_an_option_cannot_take_is_refused_with_what_it_takes() {
        let words = [
            ("queue", "0"),
            ("queue", "many"),
            ("write-cache", "big"),
            ("check", "1"),
            ("window", "0s"),
            ("fit", "x"),
            ("schedule", "lifo"),
            ("action", "QD"),
            ("read-flag", "2"),
            ("format", "nonsense"),
        ];
        for (name, word) in words {
            let bad = SimulateOptions::default().set(name, word).expect_err(word);
            assert_eq!((bad.name.as_str(), bad.value.as_str()), (name, word));
            assert!(!bad.expected.is_empty());
        }
        let unknown = SimulateOptions::default().set("que", "1").expect_err("there is none");
        assert!(unknown.expected.contains("queue"), "{unknown:?}");
    }
}
