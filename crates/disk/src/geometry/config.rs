//! The geometry section of a drive profile: surfaces, recording zones, layout, skew.
//!
//! Zones are listed (`zones = [{ tracks = 1000, track_sectors = 4096 }, …]`) or follow a formula: `tracks` of a surface cut
//! into `zone_count` equal zones, or into zones whose width goes from `stroke_tracks_od` to `stroke_tracks_id`, with track
//! lengths from `track_sectors_od` to `track_sectors_id`, linear in between.
//!
//! Invariants:
//! 1. [`GeometryConfig::resolved_zones`] is the only reading of the formula; what it returns is checked.
//! 2. A grown geometry has the same zones with more tracks, and at least the asked share more sectors.

use serde::{Deserialize, Serialize};

use super::measured::MeasuredConfig;
use super::zone_config::ZoneConfig;

/// Sectors of a disk: 2⁴⁸, far above any drive, low enough that no product of the address arithmetic overflows.
const SECTORS_MAX: u64 = 1 << 48;

/// Tracks of all surfaces: skews are multiplied by it before they are reduced to a rotation.
const TRACKS_MAX: u64 = 1 << 30;

/// Parts in which a share given as a decimal is counted, so that 0.29 of 100 is 29.
const PARTS: f64 = 1e9;

/// The order in which PBAs run over surfaces and tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutName {
    /// All surfaces of a cylinder, then the next.
    Cylinder,
    /// One wide stroke per surface and zone (Aghayev 2015 §4.9).
    Horizontal,
    /// Groups of N bottom, then N top tracks (Hajkazemi 2019 §2.1).
    BottomThenTop,
}

/// The order of the top tracks of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopOrder {
    /// Back over the bottoms, from the last to the first.
    Serpentine,
    /// From the first again.
    ZigZag,
}

/// What only the `horizontal` layout has. Places are shares of the radial tracks, 0 at the outer diameter.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HorizontalConfig {
    /// Zones whose middle lies before this place are written inward, those behind it outward.
    pub split: f64,
    /// Zones whose middle lies from here …
    pub conventional_from: f64,
    /// … up to here are conventional and serpentine. Equal bounds: none.
    pub conventional_to: f64,
}

impl Default for HorizontalConfig {
    fn default() -> HorizontalConfig {
        HorizontalConfig { split: 0.5, conventional_from: 0.5, conventional_to: 0.5 }
    }
}

/// What only the `bottom-then-top` layout has.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct InterlacedConfig {
    /// Bottom tracks of a group, and as many tops.
    pub group_tracks: u32,
    /// The order of the tops.
    pub order: TopOrder,
    /// Sectors of a top track in those of a bottom one.
    pub top_ratio: f64,
}

impl Default for InterlacedConfig {
    fn default() -> InterlacedConfig {
        InterlacedConfig { group_tracks: 128, order: TopOrder::Serpentine, top_ratio: 0.9 }
    }
}

/// A track that holds fewer sectors than its zone's others, because defects were slipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SlipConfig {
    /// Radial position of the track.
    pub radial_track: u32,
    /// Its surface.
    #[serde(default)]
    pub surface: u8,
    /// How many sectors fewer.
    pub sectors: u32,
}

/// Tracks with slipped sectors: some listed, some drawn.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlipsConfig {
    /// Tracks named one by one.
    pub listed: Vec<SlipConfig>,
    /// How many more are drawn at random.
    pub random_tracks: u32,
    /// A drawn track lacks 1 to this many sectors.
    pub random_sectors_max: u32,
    /// What the draw starts from.
    pub seed: u64,
}

/// The geometry of a disk as a profile states it.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryConfig {
    /// Recording surfaces.
    pub surfaces: u8,
    /// The order of PBAs.
    pub layout: LayoutName,
    /// Time of one rotation.
    pub rotation_ns: u32,
    /// Angle by which each track starts later than the one before.
    #[serde(default)]
    pub track_skew_ns: u32,
    /// Angle by which the first track of a surface starts later than the last one of the surface before.
    #[serde(default)]
    pub head_skew_ns: u32,
    /// Zones from the outer to the inner diameter, one by one; or else the formula below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneConfig>,
    /// Formula: tracks of a surface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracks: Option<u32>,
    /// Formula: zones of equal width; 1 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_count: Option<u32>,
    /// Formula: width of the outermost zone, in place of `zone_count`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke_tracks_od: Option<u32>,
    /// Formula: width towards the inner diameter; that of the outermost zone unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke_tracks_id: Option<u32>,
    /// Formula: sectors of a track in the outermost zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_sectors_od: Option<u32>,
    /// Formula: sectors of a track in the innermost zone; those of the outermost unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_sectors_id: Option<u32>,
    /// Only with layout `horizontal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizontal: Option<HorizontalConfig>,
    /// Only with layout `bottom-then-top`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlaced: Option<InterlacedConfig>,
    /// Slipped sectors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slips: Option<SlipsConfig>,
    /// A conventional drive as it was measured, in place of zones, formula, skews and slips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredConfig>,
}

impl GeometryConfig {
    /// A disk of listed zones without skew: what tests begin with.
    pub fn listed(surfaces: u8, layout: LayoutName, rotation_ns: u32, zones: &[(u32, u32)]) -> GeometryConfig {
        let zones = zones.iter().map(|&(tracks, track_sectors)| ZoneConfig { tracks, track_sectors }).collect();
        GeometryConfig {
            surfaces,
            layout,
            rotation_ns,
            track_skew_ns: 0,
            head_skew_ns: 0,
            zones,
            tracks: None,
            zone_count: None,
            stroke_tracks_od: None,
            stroke_tracks_id: None,
            track_sectors_od: None,
            track_sectors_id: None,
            horizontal: None,
            interlaced: None,
            slips: None,
            measured: None,
        }
    }

    /// The recording zones from the outer to the inner diameter, or why there are none.
    pub fn resolved_zones(&self) -> Result<Vec<ZoneConfig>, String> {
        if let Some(measured) = &self.measured {
            self.check_measured(measured)?;
            let zones = measured.zones()?;
            self.check(&zones)?;
            measured.check(self.surfaces, self.rotation_ns)?;
            return Ok(zones);
        }
        let zones = if self.zones.is_empty() { self.zones_by_formula()? } else { self.zones_as_listed()? };
        self.check(&zones)?;
        Ok(zones)
    }

    /// Refuses keys that a measured geometry already answers.
    fn check_measured(&self, measured: &MeasuredConfig) -> Result<(), String> {
        if self.layout != LayoutName::Cylinder {
            return Err(
                "`measured` needs layout `cylinder`: other layouts have no spares and defects of their own".into()
            );
        }
        let beside = [
            ("zones", !self.zones.is_empty()),
            ("tracks", self.tracks.is_some()),
            ("track_sectors_od", self.track_sectors_od.is_some()),
            ("track_skew_ns", self.track_skew_ns != 0),
            ("head_skew_ns", self.head_skew_ns != 0),
            ("slips", self.slips.is_some()),
        ];
        if let Some((key, _)) = beside.iter().find(|(_, given)| *given) {
            return Err(format!("`{key}` is given beside `measured`, which says it zone by zone: drop one of them"));
        }
        if measured.zones.is_empty() {
            return Err("a measured geometry lists at least one zone".into());
        }
        Ok(())
    }

    fn zones_as_listed(&self) -> Result<Vec<ZoneConfig>, String> {
        let formula = [
            ("tracks", self.tracks),
            ("zone_count", self.zone_count),
            ("stroke_tracks_od", self.stroke_tracks_od),
            ("stroke_tracks_id", self.stroke_tracks_id),
            ("track_sectors_od", self.track_sectors_od),
            ("track_sectors_id", self.track_sectors_id),
        ];
        match formula.iter().find(|(_, value)| value.is_some()) {
            Some((key, _)) => Err(format!("`{key}` belongs to the formula, but `zones` are listed: drop one of them")),
            None => Ok(self.zones.clone()),
        }
    }

    fn zones_by_formula(&self) -> Result<Vec<ZoneConfig>, String> {
        let (Some(tracks), Some(od_sectors)) = (self.tracks, self.track_sectors_od) else {
            return Err("no zones: list them in `zones`, or give `tracks` and `track_sectors_od`".into());
        };
        let id_sectors = self.track_sectors_id.unwrap_or(od_sectors);
        let ends = match (self.stroke_tracks_od, self.zone_count) {
            (Some(_), Some(_)) => return Err("`zone_count` and `stroke_tracks_od` exclude each other: drop one".into()),
            (Some(od_tracks), None) => stroke_ends(tracks, od_tracks, self.stroke_tracks_id.unwrap_or(od_tracks))?,
            (None, _) if self.stroke_tracks_id.is_some() => {
                return Err("`stroke_tracks_id` needs `stroke_tracks_od`".into());
            }
            (None, count) => equal_ends(tracks, count.unwrap_or(1))?,
        };
        let unit = self.track_unit();
        let mut zones = Vec::with_capacity(ends.len());
        let mut start = 0;
        for (index, &end) in ends.iter().enumerate() {
            // Zones of an interlaced disk end with a top track; the last one takes all that is left.
            let end = if index + 1 == ends.len() { end } else { end / unit * unit };
            let track_sectors = between(od_sectors, id_sectors, index as u64, ends.len() as u64 - 1);
            zones.push(ZoneConfig { tracks: end - start, track_sectors });
            start = end;
        }
        Ok(zones)
    }

    /// Tracks come in multiples of this: an interlaced zone has as many tops as bottoms.
    fn track_unit(&self) -> u32 {
        match self.layout {
            LayoutName::BottomThenTop => 2,
            LayoutName::Cylinder | LayoutName::Horizontal => 1,
        }
    }

    /// Sectors of a top track where a bottom one holds `bottom_sectors`.
    pub(super) fn top_sectors(&self, bottom_sectors: u32) -> u32 {
        let ratio = self.interlaced.unwrap_or_default().top_ratio;
        let parts = (ratio * PARTS).round() as u64;
        (bottom_sectors as u64 * parts / PARTS as u64) as u32
    }

    /// How full tracks are: what they hold, over what they would if every one held what the bottoms of its zone do. 1 on a
    /// disk without tops. Slipped sectors count as there: a conventional disk lacks them too.
    pub fn fullness(&self) -> Result<f64, String> {
        if self.layout != LayoutName::BottomThenTop {
            return Ok(1.0);
        }
        let (mut held, mut most) = (0, 0);
        for zone in self.resolved_zones()? {
            let (pairs, bottom) = (zone.tracks as u64 / 2, zone.track_sectors as u64);
            held += pairs * (bottom + self.top_sectors(zone.track_sectors) as u64);
            most += pairs * 2 * bottom;
        }
        Ok(held as f64 / most as f64)
    }

    fn check(&self, zones: &[ZoneConfig]) -> Result<(), String> {
        if self.surfaces == 0 {
            return Err("`surfaces` is 0: a disk has at least one".into());
        }
        for (key, skew_ns) in [("track_skew_ns", self.track_skew_ns), ("head_skew_ns", self.head_skew_ns)] {
            if skew_ns >= self.rotation_ns {
                return Err(format!("`{key}` {skew_ns} is not below `rotation_ns` {}", self.rotation_ns));
            }
        }
        if zones.is_empty() {
            return Err("`tracks` leaves no zone: a disk has at least one track on each surface".into());
        }
        self.check_extras()?;
        for (index, zone) in zones.iter().enumerate() {
            self.check_zone(zone).map_err(|reason| format!("zone {index}: {reason}"))?;
        }
        let tracks = zones.iter().map(|zone| zone.tracks as u64).sum::<u64>() * self.surfaces as u64;
        let sectors = zones.iter().map(|zone| zone.tracks as u128 * zone.track_sectors as u128).sum::<u128>()
            * self.surfaces as u128;
        if tracks > TRACKS_MAX || sectors > SECTORS_MAX as u128 {
            return Err(format!(
                "{tracks} tracks of {sectors} sectors in all: at most {TRACKS_MAX} and {SECTORS_MAX} are supported"
            ));
        }
        Ok(())
    }

    fn check_zone(&self, zone: &ZoneConfig) -> Result<(), String> {
        let unit = self.track_unit();
        if zone.tracks == 0 || !zone.tracks.is_multiple_of(unit) {
            return Err(format!("{} tracks: a positive multiple of {unit} is needed", zone.tracks));
        }
        if zone.track_sectors == 0 || zone.track_sectors > self.rotation_ns {
            return Err(format!(
                "tracks of {} sectors: from 1 to one a nanosecond of `rotation_ns` {} are supported",
                zone.track_sectors, self.rotation_ns
            ));
        }
        if self.layout == LayoutName::BottomThenTop && self.top_sectors(zone.track_sectors) == 0 {
            return Err(format!("a top track would hold no sector where a bottom one holds {}", zone.track_sectors));
        }
        Ok(())
    }

    fn check_extras(&self) -> Result<(), String> {
        if self.horizontal.is_some() && self.layout != LayoutName::Horizontal {
            return Err("`horizontal` is given, but the layout is another: drop it or set `layout`".into());
        }
        if self.interlaced.is_some() && self.layout != LayoutName::BottomThenTop {
            return Err("`interlaced` is given, but the layout is another: drop it or set `layout`".into());
        }
        let interlaced = self.interlaced.unwrap_or_default();
        if interlaced.group_tracks == 0 || interlaced.group_tracks > i32::MAX as u32 {
            return Err(format!(
                "`group_tracks` is {}: a group has at least one bottom track",
                interlaced.group_tracks
            ));
        }
        if !(interlaced.top_ratio > 0.0 && interlaced.top_ratio <= 1.0) {
            return Err(format!(
                "`top_ratio` is {}: a top track holds at most what a bottom one does",
                interlaced.top_ratio
            ));
        }
        let horizontal = self.horizontal.unwrap_or_default();
        let (from, to) = (horizontal.conventional_from, horizontal.conventional_to);
        let in_order = 0.0 <= from && from <= to && to <= 1.0;
        if !in_order || !(0.0..=1.0).contains(&horizontal.split) {
            return Err(format!(
                "`split` {} and conventional part {from} to {to} must lie between 0 and 1, in order",
                horizontal.split
            ));
        }
        Ok(())
    }

    /// The same zones with `numerator / denominator` times the tracks, rounded up. Slipped tracks stay as many.
    pub fn grown(&self, numerator: u64, denominator: u64) -> Result<GeometryConfig, String> {
        assert!(denominator > 0, "a share has a denominator");
        if self.measured.is_some() {
            return Err("a measured drive is as large as it was found to be".into());
        }
        let unit = self.track_unit() as u128;
        let mut zones = self.resolved_zones()?;
        for zone in &mut zones {
            let tracks = (zone.tracks as u128 * numerator as u128).div_ceil(denominator as u128 * unit) * unit;
            zone.tracks = u32::try_from(tracks).map_err(|_| format!("a zone of {tracks} tracks is too wide"))?;
        }
        let (tracks, zone_count, stroke_tracks_od, stroke_tracks_id) = (None, None, None, None);
        let (track_sectors_od, track_sectors_id) = (None, None);
        let formula_less = GeometryConfig {
            zones,
            tracks,
            zone_count,
            stroke_tracks_od,
            stroke_tracks_id,
            track_sectors_od,
            track_sectors_id,
            ..self.clone()
        };
        formula_less.resolved_zones()?;
        Ok(formula_less)
    }
}

/// `first` at step 0, `last` at step `steps`, linear in between.
fn between(first: u32, last: u32, step: u64, steps: u64) -> u32 {
    if steps == 0 {
        return first;
    }
    let (first, last) = (first as i128, last as i128);
    (first + (last - first) * step as i128 / steps as i128) as u32
}

/// Ends of `count` zones of equal width.
fn equal_ends(tracks: u32, count: u32) -> Result<Vec<u32>, String> {
    if count == 0 || count > tracks {
        return Err(format!("{count} zones of {tracks} tracks: each zone needs a track"));
    }
    Ok((1..=count as u64).map(|zone| (tracks as u64 * zone / count as u64) as u32).collect())
}

/// Ends of zones whose width goes from `od_tracks` to `id_tracks` with their place. What is left over at the end, less
/// than half a zone, goes to the last.
fn stroke_ends(tracks: u32, od_tracks: u32, id_tracks: u32) -> Result<Vec<u32>, String> {
    if od_tracks == 0 || id_tracks == 0 {
        return Err("a stroke has at least one track".into());
    }
    let (mut ends, mut start) = (Vec::new(), 0u32);
    while start < tracks {
        let width = between(od_tracks, id_tracks, start as u64, tracks as u64);
        let is_last = ((tracks - start) as u64) < width as u64 + (width as u64).div_ceil(2);
        start = if is_last { tracks } else { start + width };
        ends.push(start);
    }
    Ok(ends)
}
