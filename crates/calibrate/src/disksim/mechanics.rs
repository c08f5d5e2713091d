//! Seek curve, settling, head switch and rotation of a DiskSim model (`dm_mech_g1`; reference manual B.4.3 and B.5).
//!
//! Every seek equation becomes a table of points: at each distance where it is curved, and at the ends of its straight
//! parts.

use imbrex_disk::mechanics::{MechanicsConfig, Rotation, SeekConfig, SeekPoint};

use super::ImportError;
use super::fields::{Fields, refuse};
use super::syntax::Read;

/// Longest distance up to which a curved equation has a point at every distance, cylinders; farther points are a
/// hundredth of the distance apart.
const EVERY_DISTANCE: u32 = 512;

/// The contents of the mechanical block.
pub(super) struct Mechanical {
    pub config: MechanicsConfig,
    pub rotation_ns: u32,
}

/// Reads the block for a disk of `cylinders` cylinders.
pub(super) fn read(
    fields: &Fields<'_>,
    cylinders: u32,
    read: Read<'_>,
    notes: &mut Vec<String>,
) -> Result<Mechanical, ImportError> {
    let rpm = fields.needed("Rotation speed (in rpms)")?;
    if !(1.0..1e6).contains(&rpm) {
        let parameter = fields.parameter("Rotation speed (in rpms)").expect("it has just been read");
        return Err(refuse(parameter, "expected 1 to 1,000,000 rotations a minute"));
    }
    if fields.number("Percent error in rpms")?.is_some_and(|error| error != 0.0) {
        notes.push("'Percent error in rpms': the stated speed is taken, not one drawn about it".into());
    }
    match fields.word("Access time type")? {
        None | Some("trackSwitchPlusRotation") => {}
        Some(other) => notes.push(format!(
            "'Access time type' {other}: seek and rotation are simulated instead, as trackSwitchPlusRotation"
        )),
    }
    let points = seek_points(fields, cylinders, read)?;
    let write_ns = fields.signed_ns("Add. write settling delay")?;
    let mut config = MechanicsConfig::plain(SeekConfig::Table { points }, Rotation::Exact);
    config.head_switch_ns = fields.ns("Head switch time")?;
    config.write_settle_ns = Some(write_ns);
    Ok(Mechanical { config, rotation_ns: (60e9 / rpm).round() as u32 })
}

fn seek_points(fields: &Fields<'_>, cylinders: u32, read: Read<'_>) -> Result<Vec<SeekPoint>, ImportError> {
    let kind = fields.word("Seek type")?.ok_or_else(|| fields.missing("Seek type"))?;
    let farthest = cylinders.saturating_sub(1).max(2);
    let three = |name: &str| fields.needed(name);
    let curve: Box<dyn Fn(f64) -> f64> = match kind {
        "extracted" => return extracted(fields, read),
        "constant" => {
            let ms = three("Constant seek time")?;
            Box::new(move |_| ms)
        }
        "linear" => {
            let (one, mean, full) =
                (three("Single cylinder seek time")?, three("Average seek time")?, three("Full strobe seek time")?);
            let third = farthest as f64 / 3.0;
            Box::new(move |distance| {
                if distance <= third {
                    one + (mean - one) * (distance - 1.0) / (third - 1.0).max(1.0)
                } else {
                    mean + (full - mean) * (distance - third) / (farthest as f64 - third)
                }
            })
        }
        "curve" => {
            let (one, mean, full) =
                (three("Single cylinder seek time")?, three("Average seek time")?, three("Full strobe seek time")?);
            let count = cylinders as f64;
            let a = (-10.0 * one + 15.0 * mean - 5.0 * full) / (3.0 * count.sqrt());
            let b = (7.0 * one - 15.0 * mean + 8.0 * full) / (3.0 * count);
            Box::new(move |distance| a * (distance - 1.0).sqrt() + b * (distance - 1.0) + one)
        }
        "hpl" | "hplplus10" => hpl(fields, kind)?,
        other => {
            let parameter = fields.parameter("Seek type").expect("it has just been read");
            let known = "constant, linear, curve, hpl, hplplus10 or extracted";
            return Err(refuse(parameter, &format!("expected {known}, found '{other}'")));
        }
    };
    Ok(sampled(&*curve, farthest, bends(fields, kind)?))
}

/// Returns the distance at which a curve of this kind may jump, cylinders; every distance up to it becomes a point.
/// Returns 0 if the curve does not jump.
fn bends(fields: &Fields<'_>, kind: &str) -> Result<u32, ImportError> {
    if kind.starts_with("hpl") {
        return Ok(fields.numbers("HPL seek equation values")?.first().copied().unwrap_or(0.0) as u32);
    }
    Ok(0)
}

/// Returns the equation of Ruemmler and Wilkes 1994, with separate values for the first ten distances if they are
/// given.
fn hpl(fields: &Fields<'_>, kind: &str) -> Result<Box<dyn Fn(f64) -> f64>, ImportError> {
    let values = fields.numbers("HPL seek equation values")?;
    let first: Vec<f64> = fields.numbers("First ten seek times")?;
    let Ok(v) = <[f64; 6]>::try_from(values) else {
        return Err(fields.missing("HPL seek equation values (six of them)"));
    };
    let with_ten = kind == "hplplus10";
    if with_ten && first.len() != 10 {
        return Err(fields.missing("First ten seek times (ten of them)"));
    }
    let one = fields.number("Single cylinder seek time")?;
    Ok(Box::new(move |distance| {
        if with_ten && distance <= 10.0 {
            first[distance as usize - 1]
        } else if !with_ten && distance == 1.0 && v[5] != -1.0 {
            one.filter(|_| v[5] == 0.0).unwrap_or(v[5])
        } else if distance < v[0] {
            v[1] + v[2] * distance.sqrt()
        } else {
            v[3] + v[4] * distance
        }
    }))
}

fn sampled(curve: &dyn Fn(f64) -> f64, farthest: u32, bend: u32) -> Vec<SeekPoint> {
    let mut distances = Vec::new();
    let mut distance = 1u32;
    while distance < farthest {
        distances.push(distance);
        let step = if distance < EVERY_DISTANCE.max(bend) { 1 } else { (distance / 100).max(1) };
        distance = distance.saturating_add(step);
    }
    distances.push(farthest);
    let point = |tracks: u32| SeekPoint { tracks, seek_ns: (curve(tracks as f64).max(0.0) * 1e6).round() as u64 };
    straightened(distances.into_iter().map(point).collect())
}

/// Returns the curve without the points that lie on the line between their neighbours.
fn straightened(points: Vec<SeekPoint>) -> Vec<SeekPoint> {
    let mut kept: Vec<SeekPoint> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if let (Some(last), Some(next)) = (kept.last(), points.get(index + 1)) {
            let share = (point.tracks - last.tracks) as f64 / (next.tracks - last.tracks) as f64;
            let between = last.seek_ns as f64 + share * (next.seek_ns as f64 - last.seek_ns as f64);
            if (between - point.seek_ns as f64).abs() < 1.0 {
                continue;
            }
        }
        kept.push(*point);
    }
    kept
}

/// Reads a measured curve: `Seek distances measured: N`, then lines of `distance, milliseconds`.
fn extracted(fields: &Fields<'_>, read: Read<'_>) -> Result<Vec<SeekPoint>, ImportError> {
    let file = fields.word("Full seek curve")?.ok_or_else(|| fields.missing("Full seek curve"))?;
    let text = read(file).map_err(|reason| ImportError::new(file, reason))?;
    let mut points: Vec<SeekPoint> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.contains("distances measured") {
            continue;
        }
        let mut parts = line.split([',', ' ', '\t']).filter(|part| !part.is_empty());
        let point = (|| {
            let tracks = parts.next()?.parse::<u32>().ok()?;
            let ms = parts.next()?.parse::<f64>().ok().filter(|ms| (0.0..4000.0).contains(ms))?;
            Some(SeekPoint { tracks, seek_ns: (ms * 1e6).round() as u64 })
        })();
        let place = format!("{file}, line {}", index + 1);
        let Some(point) = point else {
            return Err(ImportError { place, reason: format!("expected 'distance, milliseconds', found '{line}'") });
        };
        match points.last() {
            Some(last) if last.tracks >= point.tracks => {
                let reason = format!("distance {} follows {}: they have to rise", point.tracks, last.tracks);
                return Err(ImportError { place, reason });
            }
            _ if point.tracks == 0 => {}
            _ => points.push(point),
        }
    }
    if points.len() < 2 {
        return Err(ImportError::new(file, "a seek curve has at least two distances".into()));
    }
    Ok(points)
}
