//! The values that a fit may change, each with its range, and the profile's overrides for a set of values.
//!
//! A table of seeks is changed by offsets at a few distances. Between two of them, the offset is interpolated in the
//! logarithm of the distance.

use imbrex_disk::Profile;

/// Distances at which a table of seeks has an offset, cylinders.
const KNOTS: [u32; 7] = [1, 4, 20, 100, 500, 2_500, 12_500];

/// Key of a table of seeks.
const POINTS: &str = "mechanics.seek.points";

/// Key of the period of rotation.
const ROTATION: &str = "geometry.rotation_ns";

/// Shortest and longest period of rotation that the search tries, ns: 18,000 and 3,000 rpm.
const ROTATION_RANGE_NS: (f64, f64) = (3_333_333.0, 20_000_000.0);

/// Share of the period of rotation by which the first step of a search changes it.
const ROTATION_STEP: f64 = 0.004;

/// Keys of the controller that a fit may change.
const CONTROLLER: [&str; 12] = [
    "read_hit_after_read_ns",
    "read_hit_after_write_ns",
    "read_miss_after_read_ns",
    "read_miss_after_write_ns",
    "write_hit_after_read_ns",
    "write_hit_after_write_ns",
    "write_miss_after_read_ns",
    "write_miss_after_write_ns",
    "read_complete_ns",
    "write_complete_ns",
    "bus_read_sector_ns",
    "bus_write_sector_ns",
];

/// A value during a search.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    /// Key of the value in the profile, such as `mechanics.settle_ns`.
    pub key: String,
    /// For an offset of a table of seeks, the seek distance to which it belongs, in cylinders; otherwise `None`.
    pub knot: Option<u32>,
    /// Value in the profile before the fit, in the unit of the key; a default if the profile lacks the key, and 0 for
    /// an offset of a table of seeks.
    pub before: f64,
    /// Value that the search has reached, in the unit of the key.
    pub now: f64,
    /// Size of the next step that the search tries, in the unit of the key.
    pub step: f64,
    /// Smallest value that the search tries, in the unit of the key.
    pub low: f64,
    /// Largest value that the search tries, in the unit of the key.
    pub high: f64,
}

impl Value {
    /// Returns a value between `low` and `high`; the range is widened to include the profile's value.
    fn new(key: &str, before: f64, low: f64, high: f64) -> Value {
        let (low, high) = (low.min(before), high.max(before));
        Value { key: key.into(), knot: None, before, now: before, step: (high - low) / 16.0, low, high }
    }

    fn knot(knot: u32) -> Value {
        let (step, low, high) = (250_000.0, -8e6, 8e6);
        Value { key: POINTS.into(), knot: Some(knot), before: 0.0, now: 0.0, step, low, high }
    }

    /// Returns whether distributions can distinguish this value from the others. They show only the sum of the
    /// processing before the medium and the reporting after it.
    pub(super) fn is_seen_by_distributions(&self) -> bool {
        !self.key.ends_with("_complete_ns")
    }

    /// Returns whether this is the period of rotation.
    pub(super) fn is_rotation(&self) -> bool {
        self.key == ROTATION
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> String {
        match self.knot {
            Some(knot) => format!("{} (offset at {knot} cylinders)", self.key),
            None => self.key.clone(),
        }
    }
}

/// Returns the values of this profile that can be fitted, each with its range.
pub(super) fn values(profile: &Profile, base: &toml::Table) -> Vec<Value> {
    let mut values = Vec::new();
    let mut add = |key: &str, default: f64, low: f64, high: f64| {
        values.push(Value::new(key, number(base, key).unwrap_or(default), low, high));
    };
    if profile.host.controller.is_some() {
        for key in CONTROLLER {
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
    let rotation = number(base, ROTATION).unwrap_or(8_333_333.0);
    add(ROTATION, rotation, ROTATION_RANGE_NS.0, ROTATION_RANGE_NS.1);
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
        _ => values.extend(KNOTS.map(Value::knot)),
    }
    for value in values.iter_mut().filter(|value| value.is_rotation()) {
        value.step = rotation * ROTATION_STEP;
    }
    values
}

/// Returns the overrides that set `values` in the profile with the table `base`.
pub(super) fn overrides(values: &[Value], base: &toml::Table) -> Vec<(String, String)> {
    let plain = values.iter().filter(|value| value.knot.is_none() && value.now != value.before);
    let mut overrides: Vec<(String, String)> =
        plain.map(|value| (value.key.clone(), format!("{}", value.now.round() as i64))).collect();
    if values.iter().any(|value| value.knot.is_some() && value.now != 0.0) {
        overrides.push((POINTS.into(), points(values, base)));
    }
    overrides
}

/// Returns the table of seeks with the interpolated offsets added, as TOML.
fn points(values: &[Value], base: &toml::Table) -> String {
    let knots: Vec<(f64, f64)> =
        values.iter().filter_map(|value| Some(((value.knot? as f64).ln(), value.now))).collect();
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
    let points = listed_points(base).into_iter().map(|(tracks, seek_ns)| {
        let moved = (seek_ns as f64 + offset(tracks)).max(0.0).round() as u64;
        format!("{{ tracks = {tracks}, seek_ns = {moved} }}")
    });
    format!("[{}]", points.collect::<Vec<_>>().join(", "))
}

/// Returns the value of a key with dots.
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
