//! Zones, skews, spares and defects of a DiskSim model (`dm_layout_g1`; reference manual B.4.2).

use imbrex_disk::geometry::{MeasuredConfig, MeasuredZone, SpareScheme, SurfaceOrder};

use super::ImportError;
use super::fields::{Fields, refuse};
use super::syntax::Value;

const ORDERS: [SurfaceOrder; 3] = [SurfaceOrder::Forward, SurfaceOrder::SerpentineInZone, SurfaceOrder::Serpentine];

/// Schemes of spare sectors, by their numbers in the manual.
const SCHEMES: [SpareScheme; 11] = [
    SpareScheme::None,
    SpareScheme::ZoneTracks,
    SpareScheme::Cylinder,
    SpareScheme::Track,
    SpareScheme::CylinderSlipToEnd,
    SpareScheme::CylinderFront,
    SpareScheme::CylinderFrontSlipToEnd,
    SpareScheme::Disk,
    SpareScheme::Range,
    SpareScheme::Zone,
    SpareScheme::ZoneSlipToEnd,
];

/// Reads the block for a disk that rotates in `rotation_ns`.
pub(super) fn read(
    fields: &Fields<'_>,
    rotation_ns: u32,
    notes: &mut Vec<String>,
) -> Result<MeasuredConfig, ImportError> {
    let order = numbered(fields, "LBN-to-PBN mapping scheme", &ORDERS)?;
    let spares = numbered(fields, "Sparing scheme used", &SCHEMES)?;
    let range = fields.whole("Rangesize for sparing")?.map(|cylinders| cylinders.min(u32::MAX as u64) as u32);
    let units = fields.word("Skew units")?.unwrap_or("sectors").to_string();
    let mut zones = Vec::new();
    for value in fields.list("Zones")? {
        let Value::Block(block) = value else {
            let parameter = fields.parameter("Zones").expect("it has just been read");
            return Err(refuse(parameter, "expected blocks of kind dm_layout_g1_zone"));
        };
        let fields = Fields::new(block);
        zones.push(zone(&fields, rotation_ns, &units)?);
        notes.extend(super::unread(&fields));
    }
    if range.is_some() && spares != SpareScheme::Range {
        notes.push("'Rangesize for sparing' is not used: it belongs to 'Sparing scheme used' 8".into());
    }
    let range_cylinders = range.filter(|_| spares == SpareScheme::Range);
    Ok(MeasuredConfig { order, spares, range_cylinders, zones })
}

fn numbered<T: Copy>(fields: &Fields<'_>, name: &str, meanings: &[T]) -> Result<T, ImportError> {
    let number = fields.needed_whole(name)?;
    meanings.get(number as usize).copied().ok_or_else(|| {
        let parameter = fields.parameter(name).expect("it has just been read");
        refuse(parameter, &format!("{number} is none of 0 to {}", meanings.len() - 1))
    })
}

fn zone(fields: &Fields<'_>, rotation_ns: u32, units: &str) -> Result<MeasuredZone, ImportError> {
    let (first, last) = (small(fields, "First cylinder number")?, small(fields, "Last cylinder number")?);
    let track_sectors = small(fields, "Blocks per track")?;
    if last < first || track_sectors == 0 {
        let reason = format!("a zone of cylinders {first} to {last} with {track_sectors} sectors a track is none");
        return Err(ImportError { place: fields.place().into(), reason });
    }
    let units = fields.word("Skew units")?.unwrap_or(units);
    let rotation_share = if units == "revolutions" { 1.0 } else { 1.0 / track_sectors as f64 };
    let angle = |name: &str| -> Result<u32, ImportError> {
        let turns = fields.number(name)?.unwrap_or(0.0) * rotation_share;
        Ok((turns.rem_euclid(1.0) * rotation_ns as f64).round() as u32 % rotation_ns)
    };
    let remaps = fields.wholes("defects")?;
    if remaps.len() % 2 != 0 {
        let parameter = fields.parameter("defects").expect("it has just been read");
        return Err(refuse(parameter, "expected pairs: a defective place and the one that stands in for it"));
    }
    let mut slips = fields.wholes("slips")?;
    slips.sort_unstable();
    slips.dedup();
    Ok(MeasuredZone {
        first_cylinder: first,
        cylinders: last - first + 1,
        track_sectors,
        start_ns: angle("Offset of first block")?,
        track_skew_ns: angle("Skew for track switch")?,
        cylinder_skew_ns: angle("Skew for cylinder switch")?,
        reserved_sectors: fields.whole("Empty space at zone front")?.unwrap_or(0),
        spares: fields.whole("Number of spares")?.unwrap_or(0),
        slips,
        remaps: remaps.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect(),
    })
}

fn small(fields: &Fields<'_>, name: &str) -> Result<u32, ImportError> {
    let value = fields.needed_whole(name)?;
    u32::try_from(value).map_err(|_| {
        let parameter = fields.parameter(name).expect("it has just been read");
        refuse(parameter, &format!("{value} is beyond any drive"))
    })
}
