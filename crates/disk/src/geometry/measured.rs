//! The `measured` geometry: a conventional drive as measured, zone by zone, including the places of the sectors that
//! hold no user data (spares, slipped defects, the drive's own sectors). Programs that extract the parameters of real
//! drives, such as DIXtrac (Schindler and Ganger 1999), report geometries in this form. The terms follow the DiskSim
//! 4.0 reference manual, B.4.2.
//!
//! Tracks are numbered cylinder by cylinder. A zone's sectors are counted from its first track on, spares and defects
//! included. These numbers are *zone addresses*; slips and remaps are given in them.
//!
//! Invariants:
//! 1. The user's sectors are in the order of their zone addresses; only remapped sectors lie elsewhere.
//! 2. The user's sectors of a zone are its sectors less spares, slips and reserved sectors, by its spare scheme.

use serde::{Deserialize, Serialize};

use super::cylinder::Cylinder;
use super::zone_config::ZoneConfig;
use super::{Spot, ZoneSkew};

/// The order in which PBAs run over the surfaces of a cylinder.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SurfaceOrder {
    /// From the first surface to the last on every cylinder.
    #[default]
    Forward,
    /// From first to last on a zone's first cylinder, from last to first on its second, and so on in turn.
    SerpentineInZone,
    /// From first to last on cylinders of even number, from last to first on those of odd number. Cylinders are counted
    /// from 0 at the outer diameter of the disk.
    Serpentine,
}

/// The places of spare sectors, and the effect of a slipped (skipped, defective) sector on the sectors behind it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpareScheme {
    /// No spares; slips are ignored.
    #[default]
    None,
    /// Spare tracks at the end of each zone; a slipped track uses one. Slips and remaps name whole tracks of the zone.
    ZoneTracks,
    /// Spare sectors at the end of each cylinder; a slip uses one.
    Cylinder,
    /// Spare sectors at the end of each track; a slip uses one.
    Track,
    /// Spare sectors at the end of each cylinder; a slip uses none, and shifts all sectors behind it up to the end of
    /// the zone.
    CylinderSlipToEnd,
    /// Spare sectors at the front of each cylinder; a slip uses one.
    CylinderFront,
    /// Spare sectors at the front of each cylinder; a slip uses none, and shifts all sectors behind it up to the end of
    /// the zone.
    CylinderFrontSlipToEnd,
    /// Spare sectors at the end of the disk, which the zones do not list; a slip shifts all sectors behind it up to the
    /// end of the zone.
    Disk,
    /// Spare sectors at the end of each range of `range_cylinders` cylinders; a slip uses one. A shorter range at the
    /// end of a zone has no spares.
    Range,
    /// Spare sectors at the end of each zone; a slip uses one.
    Zone,
    /// Spare sectors at the end of each zone; a slip uses none, and shifts all sectors behind it up to the end of the
    /// zone.
    ZoneSlipToEnd,
}

/// A recording zone as measured on a real drive.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredZone {
    /// Outermost cylinder of the zone, counted from 0 at the outer diameter of the disk; 0 in the first zone.
    pub first_cylinder: u32,
    /// Number of cylinders with user data. Further cylinders before the next zone hold none.
    pub cylinders: u32,
    /// Number of sectors for which a track has room, spares and defects included.
    pub track_sectors: u32,
    /// Angle after the index mark at which the zone's first sector begins, in nanoseconds of rotation; 0 unless given.
    #[serde(default)]
    pub start_ns: u32,
    /// Angle by which a track starts later than the one before on its cylinder, in nanoseconds of rotation; 0 unless
    /// given.
    #[serde(default)]
    pub track_skew_ns: u32,
    /// Angle by which the first track of a cylinder starts later than the last track of the cylinder before, in
    /// nanoseconds of rotation; 0 unless given.
    #[serde(default)]
    pub cylinder_skew_ns: u32,
    /// Number of sectors at the front of the zone that the drive keeps for itself; they hold no user data.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub reserved_sectors: u64,
    /// Number of spare sectors in each track, cylinder, range or zone, whichever the spare scheme names; with
    /// `zone-tracks`, the number of spare tracks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub spares: u64,
    /// Defective sectors that the numbering of user sectors skips, in rising order. Each is a sector number within the
    /// zone, counted from 0 with spares and defects included; with `zone-tracks`, a track number within the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
    /// Pairs of a defective sector and the sector used in its place. Each is a sector number within the zone, counted
    /// from 0 with spares and defects included; with `zone-tracks`, a track number within the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<[u64; 2]>,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A geometry measured on a real conventional drive, as stated in a profile.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredConfig {
    /// Order in which PBAs run over the surfaces of a cylinder; from the first to the last on every cylinder unless
    /// given.
    #[serde(default)]
    pub order: SurfaceOrder,
    /// Places of the spare sectors, and the effect of slips (defective sectors that the numbering skips); no spares
    /// unless given, and slips are then ignored.
    #[serde(default)]
    pub spares: SpareScheme,
    /// Number of cylinders of a range that shares spares; at least 1. Used and required with `spares = "range"` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_cylinders: Option<u32>,
    /// The zones, from the outer to the inner diameter.
    pub zones: Vec<MeasuredZone>,
}

/// A stretch of a zone's addresses that holds consecutive sectors of the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretch {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl MeasuredConfig {
    /// Returns the zones for the layout; each extends to the first cylinder of the next. Returns the reason if zones
    /// overlap or do not rise.
    pub(super) fn zones(&self) -> Result<Vec<ZoneConfig>, String> {
        let mut zones = Vec::with_capacity(self.zones.len());
        for (index, zone) in self.zones.iter().enumerate() {
            let end =
                self.zones.get(index + 1).map_or(zone.first_cylinder + zone.cylinders, |next| next.first_cylinder);
            if end < zone.first_cylinder.saturating_add(zone.cylinders) || (index == 0 && zone.first_cylinder != 0) {
                return Err(format!(
                    "measured zone {index} has cylinders {} to {}, the next begins at {end}: zones begin at 0, rise, and do not overlap",
                    zone.first_cylinder,
                    zone.first_cylinder as u64 + zone.cylinders as u64
                ));
            }
            zones.push(ZoneConfig { tracks: end - zone.first_cylinder, track_sectors: zone.track_sectors });
        }
        Ok(zones)
    }

    /// Returns whether slips of the scheme name tracks.
    fn counts_tracks(&self) -> bool {
        self.spares == SpareScheme::ZoneTracks
    }

    /// Returns an error for impossible values: angles of a rotation or more, slips and spares outside their zone.
    pub(super) fn check(&self, surfaces: u8, rotation_ns: u32) -> Result<(), String> {
        if self.zones.is_empty() {
            return Err("a measured geometry lists at least one zone".into());
        }
        if self.spares == SpareScheme::Range && self.range_cylinders.unwrap_or(0) == 0 {
            return Err("`range_cylinders` is missing: spares of ranges need the cylinders of a range".into());
        }
        for (index, zone) in self.zones.iter().enumerate() {
            let refuse = |what: String| Err(format!("measured zone {index}: {what}"));
            for (key, angle) in [
                ("start_ns", zone.start_ns),
                ("track_skew_ns", zone.track_skew_ns),
                ("cylinder_skew_ns", zone.cylinder_skew_ns),
            ] {
                if angle >= rotation_ns {
                    return refuse(format!("`{key}` {angle} is not below `rotation_ns` {rotation_ns}"));
                }
            }
            let places = zone.cylinders as u64
                * surfaces as u64
                * if self.counts_tracks() { 1 } else { zone.track_sectors as u64 };
            let named = zone.slips.iter().chain(zone.remaps.iter().flatten());
            if let Some(far) = named.copied().find(|&at| at >= places) {
                return refuse(format!("slip or remap {far} lies outside its {places} places"));
            }
            if !zone.slips.is_sorted_by(|a, b| a < b) {
                return refuse("`slips` must rise".into());
            }
            if self.stretches(zone, surfaces).is_empty() {
                return refuse("spares, slips and reserved sectors leave nothing to the user".into());
            }
        }
        Ok(())
    }

    /// Returns the stretches of `zone` that hold the user's sectors, in order.
    pub(super) fn stretches(&self, zone: &MeasuredZone, surfaces: u8) -> Vec<Stretch> {
        let track = zone.track_sectors as u64;
        let cylinder = track * surfaces as u64;
        let all = cylinder * zone.cylinders as u64;
        let (spares, unit) = (zone.spares, self.unit_sectors(zone, surfaces));
        let mut kept = Kept { stretches: Vec::new(), skip: zone.reserved_sectors };
        let mut slips = Slipped { slips: &zone.slips, size: if self.counts_tracks() { track } else { 1 }, next: 0 };
        let mut start = 0;
        while start < all {
            let end = (start + unit).min(all);
            let whole = end - start == unit;
            let slipped = if self.spares == SpareScheme::None { 0 } else { slips.within(start, end) };
            match self.spares {
                SpareScheme::None => kept.add(&mut Slipped { slips: &[], size: 1, next: 0 }, start, end, u64::MAX),
                SpareScheme::Disk => kept.add(&mut slips, start, end, u64::MAX),
                SpareScheme::CylinderSlipToEnd => {
                    let end = end.saturating_sub(spares).max(start);
                    kept.add(&mut slips, start, end, u64::MAX);
                }
                SpareScheme::CylinderFrontSlipToEnd => kept.add(&mut slips, (start + spares).min(end), end, u64::MAX),
                SpareScheme::CylinderFront => {
                    let front = spares.saturating_sub(slipped);
                    kept.add(&mut slips, (start + front).min(end), end, u64::MAX);
                }
                // A last, shorter range has no spares of its own.
                SpareScheme::Range if !whole => kept.add(&mut slips, start, end, u64::MAX),
                SpareScheme::ZoneTracks => kept.add(&mut slips, start, end, unit.saturating_sub(spares * track)),
                SpareScheme::ZoneSlipToEnd => {
                    kept.add(&mut slips, start, end, unit.saturating_sub(spares + slipped));
                }
                SpareScheme::Cylinder | SpareScheme::Track | SpareScheme::Range | SpareScheme::Zone => {
                    kept.add(&mut slips, start, end, unit.saturating_sub(spares));
                }
            }
            slips.pass(end);
            start = end;
        }
        kept.stretches
    }

    /// Returns the size of the unit, in sectors, in which the scheme shares spares: a track, a cylinder, a range or the
    /// zone.
    fn unit_sectors(&self, zone: &MeasuredZone, surfaces: u8) -> u64 {
        let track = zone.track_sectors as u64;
        let cylinder = track * surfaces as u64;
        match self.spares {
            SpareScheme::Track => track,
            SpareScheme::Cylinder
            | SpareScheme::CylinderSlipToEnd
            | SpareScheme::CylinderFront
            | SpareScheme::CylinderFrontSlipToEnd => cylinder,
            SpareScheme::Range => cylinder * self.range_cylinders.unwrap_or(1).max(1) as u64,
            SpareScheme::None
            | SpareScheme::Disk
            | SpareScheme::Zone
            | SpareScheme::ZoneSlipToEnd
            | SpareScheme::ZoneTracks => (cylinder * zone.cylinders as u64).max(1),
        }
    }

    /// Returns the remapped zone addresses, each with the address used in its place, sector by sector.
    pub(super) fn remapped<'a>(&'a self, zone: &'a MeasuredZone) -> impl Iterator<Item = (u64, u64)> + 'a {
        let size = if self.counts_tracks() { zone.track_sectors as u64 } else { 1 };
        let moved = zone.remaps.iter().filter(|[from, to]| from != to);
        moved.flat_map(move |&[from, to]| (0..size).map(move |sector| (from * size + sector, to * size + sector)))
    }

    /// Returns the zone addresses of the slips that increase the skew of later tracks: all slips if the scheme is by
    /// track or by cylinder, otherwise none.
    pub(super) fn pushing_slips(&self, zone: &MeasuredZone) -> Vec<u64> {
        match self.spares {
            SpareScheme::Cylinder
            | SpareScheme::Track
            | SpareScheme::CylinderSlipToEnd
            | SpareScheme::CylinderFront
            | SpareScheme::CylinderFrontSlipToEnd => zone.slips.clone(),
            _ => Vec::new(),
        }
    }
}

/// An iterator over the slips of a zone, in step with a walk over its sectors.
struct Slipped<'a> {
    slips: &'a [u64],
    size: u64,
    next: usize,
}

impl Slipped<'_> {
    /// Returns the number of slipped sectors from `start` up to `end`.
    fn within(&self, start: u64, end: u64) -> u64 {
        let rest = &self.slips[self.next..];
        let count = |limit: u64| rest.partition_point(|&slip| slip * self.size < limit) as u64;
        (count(end) - count(start)) * self.size
    }

    fn pass(&mut self, end: u64) {
        self.next += self.slips[self.next..].partition_point(|&slip| slip * self.size < end);
    }
}

/// The stretches found so far.
struct Kept {
    stretches: Vec<Stretch>,
    /// Number of reserved sectors still to be skipped.
    skip: u64,
}

impl Kept {
    /// Adds the sectors from `start` up to `end` that are not slipped, at most `limit` of them.
    fn add(&mut self, slips: &mut Slipped<'_>, start: u64, end: u64, mut limit: u64) {
        let mut at = start;
        slips.pass(start);
        while at < end && limit > 0 {
            let slip = slips.slips.get(slips.next).map(|slip| slip * slips.size);
            if slip.is_some_and(|slip| slip <= at) {
                at = slip.expect("it was looked at") + slips.size;
                slips.next += 1;
                continue;
            }
            let until = slip.unwrap_or(end).min(end).min(at.saturating_add(limit));
            limit -= until - at;
            self.push(at, until);
            at = until;
        }
    }

    fn push(&mut self, start: u64, end: u64) {
        let skipped = self.skip.min(end - start);
        self.skip -= skipped;
        let start = start + skipped;
        match self.stretches.last_mut() {
            _ if start == end => {}
            Some(last) if last.end == start => last.end = end,
            _ => self.stretches.push(Stretch { start, end }),
        }
    }
}

/// A measured zone as built.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    tracks: Cylinder,
    order: SurfaceOrder,
    first_cylinder: u32,
    surfaces: u8,
    /// Zone addresses of the slips that increase the skew of later tracks.
    pushing: Vec<u64>,
    by_track: bool,
    sector_ns: u64,
}

impl Measured {
    pub(super) fn new(config: &MeasuredConfig, zone: &MeasuredZone, surfaces: u8, rotation_ns: u32) -> Measured {
        let skew = ZoneSkew {
            base_ns: zone.start_ns as u64,
            track_ns: zone.cylinder_skew_ns as u64,
            head_ns: zone.track_skew_ns as u64,
        };
        Measured {
            tracks: Cylinder::new(zone.track_sectors, surfaces, skew),
            order: config.order,
            first_cylinder: zone.first_cylinder,
            surfaces,
            pushing: config.pushing_slips(zone),
            by_track: config.spares == SpareScheme::Track,
            sector_ns: rotation_ns as u64 / zone.track_sectors as u64,
        }
    }

    pub(super) fn spot(&self, offset: u64) -> Spot {
        self.turned(self.tracks.spot(offset))
    }

    pub(super) fn track(&self, radial_offset: u32, surface: u8) -> (u64, Spot) {
        let (offset, spot) = self.tracks.track(radial_offset, self.turn(radial_offset, surface));
        (offset, self.turned(spot))
    }

    /// Converts a position in the order of a cylinder's surfaces to the surface, or back.
    fn turn(&self, radial_offset: u32, surface: u8) -> u8 {
        let backward = match self.order {
            SurfaceOrder::Forward => false,
            SurfaceOrder::SerpentineInZone => radial_offset % 2 == 1,
            SurfaceOrder::Serpentine => (self.first_cylinder + radial_offset) % 2 == 1,
        };
        if backward { self.surfaces - 1 - surface } else { surface }
    }

    fn turned(&self, mut spot: Spot) -> Spot {
        if !self.pushing.is_empty() {
            let tracks =
                spot.radial_offset as u64 * self.surfaces as u64 + if self.by_track { spot.surface as u64 } else { 0 };
            let before = tracks * spot.length.divisor();
            spot.skew_ns += self.pushing.partition_point(|&slip| slip < before) as u64 * self.sector_ns;
        }
        spot.surface = self.turn(spot.radial_offset, spot.surface);
        spot
    }
}
