//! A schedule of faults, in TOML:
//!
//! ```toml
//! [[fault]]
//! kind = "unreadable"      # lba, sectors
//! lba = 4096
//! sectors = 8
//! after_requests = 1000    # or at = "10s" of the drive's time; neither: at once
//!
//! [[fault]]
//! kind = "slow"            # lba, sectors, by
//! lba = 0
//! sectors = 64
//! by = "200ms"
//!
//! [[fault]]
//! kind = "zone-read-only"  # or "zone-offline": zone
//! zone = 3
//!
//! [[fault]]
//! kind = "pointer"         # zone, to
//! zone = 4
//! to = 4096
//! ```
//!
//! Invariants:
//! 1. Every error names the line.

use imbrex_disk::{Lba, Sectors, SimDuration, SimTime};
use imbrex_layer::Condition;
use imbrex_sim::Drive;
use imbrex_units::quantity;
use serde::Deserialize;
use toml::Spanned;

use super::{Due, Fault, FaultKind, check_all};

/// An error in a schedule of faults, with its place in the text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}:{line}: {reason}")]
pub struct ScheduleError {
    /// Name of the schedule, as given to [`Schedule::parse`]; usually the path of its file.
    pub place: String,
    /// Number of the line in the text, from 1.
    pub line: usize,
    /// The error and its remedy.
    pub reason: String,
}

/// A list of faults to inject, each with the moment at which it occurs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    place: String,
    /// Line of each fault, and the fault.
    faults: Vec<(usize, Fault)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    fault: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: Spanned<String>,
    lba: Option<Spanned<u64>>,
    sectors: Option<Spanned<u64>>,
    by: Option<Spanned<String>>,
    zone: Option<Spanned<u32>>,
    to: Option<Spanned<u64>>,
    at: Option<Spanned<String>>,
    after_requests: Option<Spanned<u64>>,
}

/// The kinds of faults, each with the keys that it needs.
const KINDS: [(&str, &[&str]); 5] = [
    ("unreadable", &["lba", "sectors"]),
    ("slow", &["lba", "sectors", "by"]),
    ("zone-read-only", &["zone"]),
    ("zone-offline", &["zone"]),
    ("pointer", &["zone", "to"]),
];

/// Byte offset in the text, and reason of an error.
type Wrong = (usize, String);

impl Schedule {
    /// Parses the TOML text of a schedule. `place` names the schedule in errors. The faults are not compared with any
    /// drive; [`Schedule::check`] does that.
    ///
    /// # Errors
    /// The text is not valid TOML, has no fault, or a fault has an unknown kind, a missing or superfluous key, or a bad
    /// value.
    pub fn parse(place: &str, text: &str) -> Result<Schedule, ScheduleError> {
        let line = |at: usize| text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let wrong = |(at, reason): Wrong| ScheduleError { place: place.into(), line: line(at), reason };
        let document: Document = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong((at, error.message().lines().collect::<Vec<_>>().join(", ")))
        })?;
        if document.fault.is_empty() {
            return Err(wrong((0, "there is no fault in it; each begins with a line [[fault]]".into())));
        }
        let mut faults = Vec::new();
        for entry in document.fault {
            let start = entry.span().start;
            let fault = entry.into_inner().fault(start).map_err(wrong)?;
            faults.push((line(start), fault));
        }
        Ok(Schedule { place: place.into(), faults })
    }

    /// Checks that `drive` can have every fault of the schedule; and that its zones, as they are now, allow the faults
    /// without a moment, each after those before it.
    ///
    /// # Errors
    /// The reason for the first fault that the drive cannot have, with its line.
    pub fn check(&self, drive: &Drive) -> Result<(), ScheduleError> {
        for (line, fault) in &self.faults {
            fault.kind.check(drive).map_err(|reason| self.wrong(*line, reason))?;
        }
        let now = self.faults.iter().filter(|(_, fault)| fault.due == Due::Now);
        let (lines, kinds): (Vec<usize>, Vec<FaultKind>) = now.map(|(line, fault)| (*line, fault.kind)).unzip();
        check_all(&kinds, drive).map_err(|(index, reason)| self.wrong(lines[index], reason))
    }

    /// Returns the faults without their moments, in the order of the text, for a caller in which no simulated time
    /// passes.
    ///
    /// # Errors
    /// The first fault that has `at` or `after_requests`, with its line.
    pub fn at_once(&self) -> Result<Vec<FaultKind>, ScheduleError> {
        let at_once = |(line, fault): &(usize, Fault)| match fault.due {
            Due::Now => Ok(fault.kind),
            Due::At(_) | Due::AfterRequests(_) => {
                let reason = "this fault waits for its time: play it with `imbrex serve FILE --faults SCHEDULE`, or take \
                              `at` and `after_requests` out";
                Err(self.wrong(*line, reason.into()))
            }
        };
        self.faults.iter().map(at_once).collect()
    }

    /// Returns the faults with their moments, in the order of the text.
    pub fn faults(&self) -> impl Iterator<Item = Fault> + '_ {
        self.faults.iter().map(|(_, fault)| *fault)
    }

    fn wrong(&self, line: usize, reason: String) -> ScheduleError {
        ScheduleError { place: self.place.clone(), line, reason }
    }
}

impl Entry {
    fn fault(&self, start: usize) -> Result<Fault, Wrong> {
        let (kind, at) = (self.kind.get_ref().as_str(), self.kind.span().start);
        let Some((_, keys)) = KINDS.iter().find(|(name, _)| *name == kind) else {
            let names: Vec<_> = KINDS.iter().map(|(name, _)| *name).collect();
            return Err((at, format!("kind = \"{kind}\": expected one of {}", names.join(", "))));
        };
        self.check_keys(kind, keys, start)?;
        let number = |given: &Option<Spanned<u64>>| given.as_ref().map_or(0, |given| *given.get_ref());
        let (lba, sectors) = (Lba(number(&self.lba)), Sectors(number(&self.sectors)));
        let zone = self.zone.as_ref().map_or(0, |zone| *zone.get_ref());
        let kind = match kind {
            "unreadable" => FaultKind::Unreadable { lba, sectors },
            "slow" => FaultKind::Slow { lba, sectors, by: SimDuration(self.duration_ns("by", &self.by)?.unwrap_or(0)) },
            "zone-read-only" => FaultKind::Zone { zone, condition: Condition::ReadOnly },
            "zone-offline" => FaultKind::Zone { zone, condition: Condition::Offline },
            _ => FaultKind::Pointer { zone, to: Sectors(number(&self.to)) },
        };
        let due = match (self.duration_ns("at", &self.at)?, &self.after_requests) {
            (None, None) => Due::Now,
            (Some(ns), None) => Due::At(SimTime(ns)),
            (None, Some(count)) => Due::AfterRequests(*count.get_ref()),
            (Some(_), Some(count)) => {
                return Err((count.span().start, "`at` and `after_requests` exclude each other: keep one".into()));
            }
        };
        Ok(Fault { kind, due })
    }

    /// Checks that the entry has exactly the keys that its kind needs.
    fn check_keys(&self, kind: &str, keys: &[&str], start: usize) -> Result<(), Wrong> {
        fn place<T>(given: &Option<Spanned<T>>) -> Option<usize> {
            given.as_ref().map(|given| given.span().start)
        }
        let given = [
            ("lba", place(&self.lba)),
            ("sectors", place(&self.sectors)),
            ("by", place(&self.by)),
            ("zone", place(&self.zone)),
            ("to", place(&self.to)),
        ];
        for (key, at) in given {
            match (at, keys.contains(&key)) {
                (None, true) => return Err((start, format!("kind \"{kind}\" needs `{key}`"))),
                (Some(at), false) => {
                    return Err((at, format!("kind \"{kind}\" has no `{key}`: it takes {}", keys.join(", "))));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn duration_ns(&self, key: &str, given: &Option<Spanned<String>>) -> Result<Option<u64>, Wrong> {
        let Some(given) = given else { return Ok(None) };
        let text = given.get_ref();
        match quantity::duration_ns(text, quantity::SECOND_NS) {
            Some(ns) => Ok(Some(ns)),
            None => {
                Err((given.span().start, format!("{key} = \"{text}\": expected a time such as \"10s\" or \"200ms\"")))
            }
        }
    }
}
