//! Expands a text that names several drives, because a parameter in it has several values.
//!
//! ```text
//!   cassuto-307g+s-blocks:cache_share=1%|2%|5%      three drives
//!   cassuto-307g+s-blocks:cache_share=1%..10%/1%    ten, from the first value to the last by steps
//!   emulated-smr-1:region_size=4m..64m/x2           five, each twice the one before
//!   emulated-smr-1:region_size=4m..64m/log4         four, each as many times the one before, rounded
//! ```
//!
//! If several parameters have several values, there is one drive for each combination, with the last parameter varying
//! fastest.
//!
//! Invariants:
//! 1. The text of each resulting drive names only that drive, and expands to itself.
//! 2. Values are exact: steps are computed with fixed-point numbers. The values of a `log` range are whole numbers if
//!    both ends are.

use imbrex_units::quantity;

use crate::drives::{ALL, one_of_every_kind};
use crate::error::Failure;

/// Largest number of drives of one text: more than anyone would compare.
const DRIVES_MAX: usize = 1000;
/// Number of decimals of a stepped value.
const PLACES: u32 = 6;
const ONE: u64 = 10u64.pow(PLACES);

/// Returns the texts of the drives that `text` names: one for each combination of the values of its parameters, the
/// last of which varies fastest. Values are separated by `|` or given as a range, such as `cache_share=1%..10%/1%`. A
/// text with single values only is returned unchanged, and so is the name of a TOML file. The word `all` stands for one
/// drive for each layer that is not host-managed.
///
/// # Errors
///
/// If a range is invalid, or if the text names more than 1000 drives.
pub fn expand(text: &str) -> Result<Vec<String>, Failure> {
    if text == ALL {
        return Ok(one_of_every_kind());
    }
    let Some((head, settings)) = text.split_once(':').filter(|_| !text.ends_with(".toml")) else {
        return Ok(vec![text.to_string()]);
    };
    let mut drives = vec![String::new()];
    for setting in settings.split(',') {
        let values = values_of(setting).map_err(|reason| {
            Failure::usage(format!("drive '{text}': {setting}: {reason}"))
                .or_try("values with | between them, or a range such as 1%..10%/1% or 4k..1m/x2")
        })?;
        let key = setting.split_once('=').map_or("", |(key, _)| key);
        drives = drives
            .iter()
            .flat_map(|before| {
                let join = if before.is_empty() { "" } else { "," };
                values.iter().map(move |value| match value {
                    Some(value) => format!("{before}{join}{key}={value}"),
                    None => format!("{before}{join}{setting}"),
                })
            })
            .collect();
        if drives.len() > DRIVES_MAX {
            return Err(Failure::usage(format!("drive '{text}' stands for more than {DRIVES_MAX} drives"))
                .or_try("fewer values, or a coarser step"));
        }
    }
    Ok(drives.iter().map(|settings| format!("{head}:{settings}")).collect())
}

/// Returns the values of a setting with several values, or a single `None` for a setting that is to stay unchanged.
fn values_of(setting: &str) -> Result<Vec<Option<String>>, String> {
    let Some((_, value)) = setting.split_once('=').filter(|(_, value)| value.contains('|') || value.contains(".."))
    else {
        return Ok(vec![None]);
    };
    let mut values = Vec::new();
    for part in value.split('|').map(str::trim) {
        match part.split_once("..") {
            Some((first, rest)) => values.extend(range(first.trim(), rest)?),
            None if part.is_empty() => return Err("a value is missing".into()),
            None => values.push(part.to_string()),
        }
    }
    if values.len() > DRIVES_MAX {
        return Err(format!("more than {DRIVES_MAX} values"));
    }
    Ok(values.into_iter().map(Some).collect())
}

/// Returns the values that `value` names: its parts between `|`, with each range such as `4k..1m/x2` replaced by its
/// values. A plain value is returned unchanged.
///
/// # Errors
///
/// A message for the user if a value is missing, a range is invalid, or there are more than 1000 values.
pub fn values(value: &str) -> Result<Vec<String>, String> {
    let setting = format!("={value}");
    let several = values_of(&setting)?;
    Ok(several.into_iter().map(|one| one.unwrap_or_else(|| value.to_string())).collect())
}

/// Returns `count` values from `from` to `to`, in millionths, at equal ratios. They are whole numbers if both ends are.
/// Values that are equal after rounding are returned once.
fn evenly_in_powers(from: u64, to: u64, count: &str) -> Result<Vec<u64>, String> {
    let count: u32 = count
        .parse()
        .ok()
        .filter(|&count| (2..=DRIVES_MAX as u32).contains(&count))
        .ok_or_else(|| format!("/log{count}: expected how many values, 2 to {DRIVES_MAX}, such as log5"))?;
    if from == 0 {
        return Err("a range by powers cannot begin at 0".into());
    }
    let is_whole = from.is_multiple_of(ONE) && to.is_multiple_of(ONE);
    let ratio = to as f64 / from as f64;
    let mut values: Vec<u64> = (0..count)
        .map(|index| {
            let exact = from as f64 * ratio.powf(f64::from(index) / f64::from(count - 1));
            let unit = if is_whole { ONE as f64 } else { 1.0 };
            ((exact / unit).round() * unit) as u64
        })
        .collect();
    // The last value is the exact end, whatever the rounding.
    values[count as usize - 1] = to;
    values.dedup();
    Ok(values)
}

/// Returns the values of the range `first..last/step`. `rest` is the text after the dots.
fn range(first: &str, rest: &str) -> Result<Vec<String>, String> {
    let (last, step) =
        rest.split_once('/').ok_or("a range needs a step: first..last/step, or /x2 for twice as much")?;
    let (last, step) = (last.trim(), step.trim());
    let by = (!step.starts_with('x') && !step.starts_with("log")).then_some(step);
    let scale = Scale::of(first, last, by)?;
    let (from, to) = (scale.read(first)?, scale.read(last)?);
    let show = |value: u64| scale.show(value);
    if from > to {
        return Err(format!("{first} is more than {last}"));
    }
    if let Some(count) = step.strip_prefix("log") {
        return Ok(evenly_in_powers(from, to, count)?.into_iter().map(show).collect());
    }
    let next: Box<dyn Fn(u64) -> Option<u64>> = match step.strip_prefix('x') {
        Some(factor) => {
            let factor = quantity::fixed(factor, PLACES).filter(|&factor| factor > ONE);
            let factor = factor.ok_or_else(|| format!("/{step}: a factor is a number above 1, such as x2"))?;
            if from == 0 {
                return Err("a range by a factor cannot begin at 0".into());
            }
            Box::new(move |value| u64::try_from(u128::from(value) * u128::from(factor) / u128::from(ONE)).ok())
        }
        None => {
            let by = scale.read(step)?;
            if by == 0 || by > u64::MAX / 2 {
                return Err(format!("/{step}: a step is more than 0"));
            }
            Box::new(move |value| value.checked_add(by))
        }
    };
    let mut values = Vec::new();
    let mut at = Some(from);
    while let Some(value) = at.filter(|&value| value <= to) {
        values.push(show(value));
        if values.len() > DRIVES_MAX {
            return Err(format!("more than {DRIVES_MAX} values"));
        }
        at = next(value).filter(|&next| next > value);
    }
    Ok(values)
}

/// The unit in which the values of a range are counted: the one that its ends and its step share, or bytes or nanoseconds
/// if they have several units of size or of time.
enum Scale<'a> {
    Unit(&'a str),
    Bytes,
    Nanoseconds,
}

impl Scale<'_> {
    /// Returns the scale of a range from `first` to `last`, with the step `by` if it has one.
    fn of<'a>(first: &'a str, last: &'a str, by: Option<&'a str>) -> Result<Scale<'a>, String> {
        let texts = || [first, last].into_iter().chain(by);
        let (_, unit) = parts(first)?;
        let mut is_shared = true;
        for text in texts() {
            is_shared &= parts(text)?.1 == unit;
        }
        // A number without a unit is no size beside one that has a unit: `1m..8m/1` may mean a byte or a mebibyte.
        let has_units = texts().all(|text| parts(text).is_ok_and(|(_, unit)| !unit.is_empty()));
        match () {
            () if is_shared => Ok(Scale::Unit(unit)),
            () if has_units && texts().all(|text| quantity::bytes(text).is_some()) => Ok(Scale::Bytes),
            () if has_units && texts().all(|text| quantity::duration_ns(text, 1).is_some()) => Ok(Scale::Nanoseconds),
            () => {
                let all: Vec<_> = texts().map(|text| format!("'{text}'")).collect();
                Err(format!("{} have different units: give both ends and the step the same unit", all.join(", ")))
            }
        }
    }

    /// Returns the value of `text` in millionths of the unit, of a byte or of a nanosecond.
    fn read(&self, text: &str) -> Result<u64, String> {
        let whole = match self {
            Scale::Unit(_) => return parts(text).map(|(value, _)| value),
            Scale::Bytes => quantity::bytes(text),
            Scale::Nanoseconds => quantity::duration_ns(text, 1),
        };
        whole.and_then(|whole| whole.checked_mul(ONE)).ok_or_else(|| format!("{text} is too large to step to"))
    }

    fn show(&self, value: u64) -> String {
        match self {
            Scale::Unit(unit) => {
                let fraction = format!("{:06}", value % ONE);
                let fraction = fraction.trim_end_matches('0');
                let dot = if fraction.is_empty() { "" } else { "." };
                format!("{}{dot}{fraction}{unit}", value / ONE)
            }
            Scale::Bytes => show_in(value / ONE, [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")], ""),
            Scale::Nanoseconds => show_in(value / ONE, [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")], "ns"),
        }
    }
}

/// Returns the number of a text, in millionths, and its unit.
fn parts(text: &str) -> Result<(u64, &str), String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let value = quantity::fixed(number, PLACES).ok_or_else(|| format!("'{text}' is no number with a unit"))?;
    Ok((value, unit.trim()))
}

/// Formats a value in the largest of `units` of which it is a whole multiple, or in the `smallest` unit.
fn show_in(value: u64, units: [(u64, &str); 3], smallest: &str) -> String {
    match units.iter().find(|(unit, _)| value >= *unit && value.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", value / unit),
        None => format!("{value}{smallest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(setting: &str) -> Vec<String> {
        let drives = expand(&format!("p+l:{setting}")).unwrap_or_else(|failure| panic!("{}", failure.message));
        let of_one = |text: &String| text.split_once('=').map(|(_, value)| value.to_string());
        drives.iter().filter_map(of_one).collect()
    }

    #[test]
    fn lists_and_ranges_are_one_drive_each() {
        assert_eq!(expand("cmr-7200").expect("it is one"), ["cmr-7200"]);
        assert_eq!(expand("p:a=1,b=x").expect("it is one"), ["p:a=1,b=x"]);
        assert_eq!(values("k=1%|2%|5%"), ["1%", "2%", "5%"]);
        assert_eq!(values("k=1%..3%/1%"), ["1%", "2%", "3%"]);
        assert_eq!(values("k=0.5%..2%/0.5%"), ["0.5%", "1%", "1.5%", "2%"]);
        assert_eq!(values("k=512k..4m/x2"), ["512KiB", "1MiB", "2MiB", "4MiB"]);
        assert_eq!(values("k=4m..64m/x4"), ["4m", "16m", "64m"]);
        assert_eq!(values("k=10..35/10"), ["10", "20", "30"]);
        assert_eq!(values("k=1|10..30/10|99"), ["1", "10", "20", "30", "99"]);
        assert_eq!(values("k=1..1000/log4"), ["1", "10", "100", "1000"]);
        assert_eq!(values("k=4k..64m/log3"), ["4KiB", "512KiB", "64MiB"]);
        assert_eq!(values("k=0.5..8/log3"), ["0.5", "2", "8"]);
        assert_eq!(values("k=1..3/log9"), ["1", "2", "3"]);
        // A step of another unit than the ends, or of the same unit in another spelling.
        assert_eq!(values("k=1GiB..2GiB/512MiB"), ["1GiB", "1536MiB", "2GiB"]);
        assert_eq!(values("k=2m..4m/1MiB"), ["2MiB", "3MiB", "4MiB"]);
        assert_eq!(values("k=2m..3mib/512k"), ["2MiB", "2560KiB", "3MiB"]);
        assert_eq!(values("k=1ms..2ms/500us"), ["1ms", "1500us", "2ms"]);
        assert_eq!(values("k=500ms..1s/x2"), ["500ms", "1s"]);
    }

    #[test]
    fn several_parameters_give_every_combination() {
        let drives = expand("p+l:a=1|2,c=9,b=x|y").expect("they are right");
        assert_eq!(drives, ["p+l:a=1,c=9,b=x", "p+l:a=1,c=9,b=y", "p+l:a=2,c=9,b=x", "p+l:a=2,c=9,b=y"]);
    }

    #[test]
    fn what_is_no_range_is_refused_with_the_setting() {
        for setting in [
            "k=1..2",
            "k=5..1/1",
            "k=1..9/0",
            "k=1..9/x1",
            "k=0..9/x2",
            "k=1||2",
            "k=a..b/c",
            "k=1..9999/1",
            "k=0..9/log3",
            "k=1..9/log1",
            "k=1%..5%/0.01",
            "k=0.01..0.05/2%",
            "k=1m..8m/1",
            "k=1m..8m/1ms",
            "k=1m..100000m/1k",
        ] {
            let failure = expand(&format!("p:{setting}")).expect_err(setting);
            assert!(failure.message.contains(setting), "{setting}: {}", failure.message);
        }
    }
}
