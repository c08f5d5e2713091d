//! Fitting: overheads, settle times, seek curve, rotation and skews that bring a profile closest to a measurement.
//!
//! The search goes along one value after the other, in steps that grow while they help and shrink while they do not. What it
//! makes small is the square of the demerit figure over classes of requests (reads and writes, by how far they lie from
//! the one before), so that an error in one class is not hidden by the opposite one in another. It fits the first half
//! of the measurement; the second judges.
//!
//! Invariants:
//! 1. The result on the first half is never worse than what it began with.
//! 2. The same measurement and profile give the same result: nothing is drawn.

use std::collections::BTreeMap;

use imbrex_disk::{Operation, Profile, ProfileError};
use imbrex_sim::{Drive, DriveError};
use imbrex_trace::TraceError;
use serde::Serialize;

use crate::compare::{compare, Comparison};
use crate::measured::Measured;
use crate::replay::replay;

/// What `imbrex fit --json` prints begins with.
pub const SCHEMA: &str = "imbrex.fit/1";

/// Passes over all values.
const ROUNDS: usize = 14;

/// A step is taken where the square of the figure falls by this much at least: less is chance.
const WORTH: f64 = 0.999;

/// A value counts as determined where moving it makes the figure this much larger.
const RISE: f64 = 1.05;

/// Cylinders at which a table of seeks is moved up and down.
const KNOTS: [u32; 7] = [1, 4, 20, 100, 500, 2_500, 12_500];

/// Why a fit failed.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The profile with a value tried.
    #[error("{0}")]
    Profile(#[from] ProfileError),
    /// The drive made of it.
    #[error("{0}")]
    Drive(#[from] DriveError),
    /// The measurement played to it.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// The measurement is too short, or lies past the drive.
    #[error("{0}")]
    Measurement(String),
}

/// A value that was fitted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Fitted {
    /// The key in the profile; of a table of seeks, with the distance.
    pub key: String,
    /// Before.
    pub before: f64,
    /// After.
    pub after: f64,
    /// How far it can be moved until the figure is a twentieth larger; none where nothing shows it.
    pub within: Option<f64>,
}

/// What a fit came to.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The values.
    pub fitted: Vec<Fitted>,
    /// The first half, before and after.
    pub first: (Comparison, Comparison),
    /// The second half, before and after.
    pub second: (Comparison, Comparison),
    /// The profile with the values.
    pub profile: Profile,
    /// Its text, the values marked.
    pub toml: String,
}

/// A value on its way.
#[derive(Clone, Debug)]
struct Value {
    key: String,
    knot: Option<u32>,
    before: f64,
    now: f64,
    step: f64,
    low: f64,
    high: f64,
}

/// Fits `profile` to the first half of `measured`, which lies in the file `name`; `progress` is told the round.
pub fn fit(
    measured: &Measured,
    profile: &Profile,
    name: &str,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Fit, FitError> {
    if measured.requests.len() < 100 {
        let reason = format!("{} requests are too few to fit and to judge: 100 are needed", measured.requests.len());
        return Err(FitError::Measurement(reason));
    }
    let (first, second) = measured.halves();
    let base = profile.table();
    let mut search = Search { profile, base: &base, measured: &first, values: values(profile, &base) };
    let (mut best, before_first) = search.judge()?;
    let before_second = judge_on(profile, &second)?;
    for round in 0..ROUNDS {
        progress(round, ROUNDS);
        for index in 0..search.values.len() {
            best = search.improve(index, best)?;
        }
    }
    let within = (0..search.values.len()).map(|index| search.within(index, best)).collect::<Result<Vec<_>, _>>()?;
    let (_, after_first) = search.judge()?;
    let fitted = search.values.iter().zip(within).map(|(value, within)| Fitted {
        key: value.knot.map_or_else(|| value.key.clone(), |knot| format!("{} (offset at {knot} cylinders)", value.key)),
        before: value.before,
        after: value.now,
        within,
    });
    let fitted: Vec<Fitted> = fitted.collect();
    let profile = search.profile()?;
    let toml = written(&base, &search.overrides(), profile.name.as_str(), name);
    let after_second = judge_on(&profile, &second)?;
    Ok(Fit { fitted, first: (before_first, after_first), second: (before_second, after_second), profile, toml })
}

/// The figure over all requests of `measured`.
fn judge_on(profile: &Profile, measured: &Measured) -> Result<Comparison, FitError> {
    let (_, whole) = figures(profile, measured)?;
    Ok(whole)
}

/// The mean square over classes, and the figure over all.
fn figures(profile: &Profile, measured: &Measured) -> Result<(f64, Comparison), FitError> {
    let drive = Drive::assemble(&profile.name, profile.clone(), &profile.default_layer, &[])?;
    let simulated = replay(measured, drive)?;
    let mut classes: BTreeMap<(bool, u32), (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    let (mut all_measured, mut all_simulated) = (Vec::new(), Vec::new());
    let mut before = 0u64;
    for (request, simulated) in measured.requests.iter().zip(&simulated) {
        let distance = request.command.lba.0.abs_diff(before);
        before = request.command.end().0;
        if !simulated.served {
            continue;
        }
        // Eight times as far each time.
        let class = (request.command.operation == Operation::Read, (64 - distance.leading_zeros()).div_ceil(3));
        let (measured_ns, simulated_ns) = classes.entry(class).or_default();
        measured_ns.push(request.taken.0);
        simulated_ns.push(simulated.taken.0);
        all_measured.push(request.taken.0);
        all_simulated.push(simulated.taken.0);
    }
    let whole = compare(&mut all_measured, &mut all_simulated)
        .ok_or_else(|| FitError::Measurement("every request lies past the end of the drive".into()))?;
    let mut squares = 0.0;
    for (measured_ns, simulated_ns) in classes.values_mut() {
        if let Some(class) = compare(measured_ns, simulated_ns) {
            squares += class.requests as f64 * (class.rms_ns as f64).powi(2);
        }
    }
    Ok((squares / whole.requests as f64 + (whole.rms_ns as f64).powi(2), whole))
}

struct Search<'a> {
    profile: &'a Profile,
    base: &'a toml::Table,
    measured: &'a Measured,
    values: Vec<Value>,
}

impl Search<'_> {
    fn judge(&self) -> Result<(f64, Comparison), FitError> {
        figures(&self.profile()?, self.measured)
    }

    fn profile(&self) -> Result<Profile, FitError> {
        Ok(self.profile.with(&self.overrides())?)
    }

    /// What the values set.
    fn overrides(&self) -> Vec<(String, String)> {
        let mut overrides: Vec<(String, String)> = Vec::new();
        let plain = self.values.iter().filter(|value| value.knot.is_none() && value.now != value.before);
        overrides.extend(plain.map(|value| (value.key.clone(), format!("{}", value.now.round() as u64))));
        if self.values.iter().any(|value| value.knot.is_some() && value.now != 0.0) {
            overrides.push(("mechanics.seek.points".into(), self.points()));
        }
        overrides
    }

    /// The table of seeks, moved by the offsets at the knots; between knots by their mean, in the logarithm of distance.
    fn points(&self) -> String {
        let knots: Vec<(f64, f64)> =
            self.values.iter().filter_map(|value| Some(((value.knot? as f64).ln(), value.now))).collect();
        let offset = |tracks: u32| {
            let at = (tracks.max(1) as f64).ln();
            let after = knots.partition_point(|(knot, _)| *knot <= at);
            match (knots.get(after.wrapping_sub(1)), knots.get(after)) {
                (Some(&(from, low)), Some(&(to, high))) => low + (high - low) * (at - from) / (to - from),
                (Some(&(_, low)), None) => low,
                (None, Some(&(_, high))) => high,
                (None, None) => 0.0,
            }
        };
        let points = listed_points(self.base).into_iter().map(|(tracks, seek_ns)| {
            let moved = (seek_ns as f64 + offset(tracks)).max(0.0).round() as u64;
            format!("{{ tracks = {tracks}, seek_ns = {moved} }}")
        });
        format!("[{}]", points.collect::<Vec<_>>().join(", "))
    }

    /// Moves value `index` to where it helps; the figure then.
    fn improve(&mut self, index: usize, best: f64) -> Result<f64, FitError> {
        let start = self.values[index].now;
        let step = self.values[index].step;
        for direction in [1.0, -1.0] {
            let tried = (start + direction * step).clamp(self.values[index].low, self.values[index].high);
            if tried == start {
                continue;
            }
            self.values[index].now = tried;
            let figure = self.try_it()?;
            if figure < best * WORTH {
                self.values[index].step = step * 1.5;
                return Ok(figure);
            }
        }
        self.values[index].now = start;
        self.values[index].step = (step / 2.0).max(1.0);
        Ok(best)
    }

    /// The figure with the values as they are; endless where no such drive can be.
    fn try_it(&self) -> Result<f64, FitError> {
        match self.judge() {
            Ok((figure, _)) => Ok(figure),
            Err(FitError::Profile(_)) => Ok(f64::INFINITY),
            Err(error) => Err(error),
        }
    }

    /// How far value `index` can be moved until the figure is a twentieth larger.
    fn within(&mut self, index: usize, best: f64) -> Result<Option<f64>, FitError> {
        let value = self.values[index].clone();
        let mut width = (value.high - value.low) / 4096.0;
        let limit = best * RISE * RISE;
        while width < value.high - value.low {
            let mut rises = true;
            for direction in [1.0, -1.0] {
                let moved = value.now + direction * width;
                if moved < value.low || moved > value.high {
                    continue;
                }
                self.values[index].now = moved;
                rises &= self.try_it()? > limit;
            }
            self.values[index].now = value.now;
            if rises {
                return Ok(Some(width));
            }
            width *= 2.0;
        }
        Ok(None)
    }
}

/// What is fitted of this profile, each with its range.
fn values(profile: &Profile, base: &toml::Table) -> Vec<Value> {
    let mut values = Vec::new();
    let mut add = |key: &str, default: f64, low: f64, high: f64| {
        let before = number(base, key).unwrap_or(default);
        let (low, high) = (low.min(before), high.max(before));
        values.push(Value { key: key.into(), knot: None, before, now: before, step: (high - low) / 16.0, low, high });
    };
    if profile.host.controller.is_some() {
        for key in [
            "read_hit_after_read_ns",
            "read_hit_after_write_ns",
            "read_miss_after_read_ns",
            "read_miss_after_write_ns",
            "write_hit_after_read_ns",
            "write_hit_after_write_ns",
            "write_miss_after_read_ns",
            "write_miss_after_write_ns",
            "bus_read_sector_ns",
            "bus_write_sector_ns",
        ] {
            add(&format!("host.controller.{key}"), 0.0, 0.0, 2e6);
        }
    } else {
        add("host.overhead_ns", 100_000.0, 0.0, 2e6);
        if profile.host.write_cache_bytes > 0 {
            add("host.write_cache_acknowledge_ns", 100_000.0, 0.0, 2e6);
        }
    }
    add("mechanics.settle_ns", 0.0, 0.0, 2e6);
    let settle = number(base, "mechanics.settle_ns").unwrap_or(0.0);
    add("mechanics.write_settle_ns", settle, 0.0, 3e6);
    add("mechanics.head_switch_ns", 0.0, 0.0, 3e6);
    let rotation = number(base, "geometry.rotation_ns").unwrap_or(8_333_333.0);
    add("geometry.rotation_ns", rotation, rotation * 0.97, rotation * 1.03);
    if lookup(base, "geometry.measured").is_none() {
        add("geometry.track_skew_ns", 0.0, 0.0, rotation / 2.0);
        add("geometry.head_skew_ns", 0.0, 0.0, rotation / 2.0);
    }
    match lookup(base, "mechanics.seek.model").and_then(toml::Value::as_str) {
        Some("linear") => {
            add("mechanics.seek.min_ns", 1e6, 0.0, 1e7);
            add("mechanics.seek.max_ns", 2e7, 0.0, 4e7);
        }
        Some("curve") => {
            add("mechanics.seek.short_base_ns", 1e6, 0.0, 5e6);
            add("mechanics.seek.short_root_ns", 1e4, 0.0, 1e6);
            add("mechanics.seek.long_base_ns", 5e6, 0.0, 2e7);
            add("mechanics.seek.long_thousand_tracks_ns", 1e5, 0.0, 5e6);
        }
        _ => values.extend(KNOTS.map(|knot| Value {
            key: "mechanics.seek.points".into(),
            knot: Some(knot),
            before: 0.0,
            now: 0.0,
            step: 250_000.0,
            low: -8e6,
            high: 8e6,
        })),
    }
    values
}

/// The value of a key with dots.
fn lookup<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    let (mut parts, mut table) = (key.split('.').peekable(), table);
    while let Some(part) = parts.next() {
        let value = table.get(part)?;
        if parts.peek().is_none() {
            return Some(value);
        }
        table = value.as_table()?;
    }
    None
}

fn number(table: &toml::Table, key: &str) -> Option<f64> {
    match lookup(table, key)? {
        toml::Value::Integer(value) => Some(*value as f64),
        toml::Value::Float(value) => Some(*value),
        _ => None,
    }
}

fn listed_points(table: &toml::Table) -> Vec<(u32, u64)> {
    let points = lookup(table, "mechanics.seek.points").and_then(toml::Value::as_array);
    let point = |value: &toml::Value| {
        let of = |key: &str| value.get(key).and_then(toml::Value::as_integer);
        Some((u32::try_from(of("tracks")?).ok()?, u64::try_from(of("seek_ns")?).ok()?))
    };
    points.into_iter().flatten().filter_map(point).collect()
}

/// The profile's text with the values set, each marked as fitted.
fn written(base: &toml::Table, overrides: &[(String, String)], name: &str, file: &str) -> String {
    let mut table = base.clone();
    for (key, value) in overrides {
        let value: toml::Table = format!("value = {value}").parse().expect("a fitted value is a number or a list");
        set(&mut table, key, value["value"].clone());
    }
    let body = toml::to_string(&table).expect("it is the table of a profile");
    let mut text = format!("# {name}, fitted by `imbrex fit` to {file}: the values so marked are not the maker's.\n");
    let mut section = String::new();
    for line in body.lines() {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_matches(['[', ']']).to_string();
        }
        let key = line.split(" = ").next().unwrap_or("");
        let whole = if section.is_empty() { key.to_string() } else { format!("{section}.{key}") };
        let marked =
            overrides.iter().any(|(fitted, _)| *fitted == whole || (*fitted == section && line.starts_with('[')));
        text.push_str(line);
        text.push_str(if marked { " # fitted\n" } else { "\n" });
    }
    text
}

fn set(table: &mut toml::Table, key: &str, value: toml::Value) {
    match key.split_once('.') {
        None => {
            table.insert(key.into(), value);
        }
        Some((head, rest)) => {
            let inner = table.entry(head).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                set(inner, rest, value);
            }
        }
    }
}
