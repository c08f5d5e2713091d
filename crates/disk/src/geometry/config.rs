//! The geometry section of a drive profile: surfaces, recording zones, layout, skew.
//!
//! Zones are listed (`zones = [{ tracks = 1000, track_sectors = 4096 }, …]`) or follow a formula. The formula cuts the
//! `tracks` of a surface into `zone_count` equal zones, or into zones whose width goes from `stroke_tracks_od` to
//! `stroke_tracks_id`. Track lengths go from `track_sectors_od` to `track_sectors_id`, linear in between.
//!
//! Invariants:
//! 1. Only [`GeometryConfig::resolved_zones`] evaluates the formula; the zones that it returns are checked.
//! 2. A grown geometry has as many zones with more tracks, and the number of sectors grows at least by the requested
//!    ratio.

use serde::{Deserialize, Serialize};

use super::measured::MeasuredConfig;
use super::zone_config::ZoneConfig;

/// Maximum number of sectors of a disk: far above any drive, and low enough that no product of the address arithmetic
/// overflows.
const SECTORS_MAX: u64 = 1 << 48;

/// Maximum number of tracks of all surfaces. Skews are multiplied by track numbers before they are reduced modulo a
/// rotation.
const TRACKS_MAX: u64 = 1 << 30;

/// Number of parts into which a decimal ratio is rounded, so that 0.29 of 100 is exactly 29.
const PARTS: f64 = 1e9;

/// The order in which PBAs run over surfaces and tracks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayoutName {
    /// All surfaces of a cylinder, then those of the next cylinder inward.
    Cylinder,
    /// All tracks of a recording zone on one surface, then on the next surface; then the next zone (Aghayev 2015 §4.9).
    Horizontal,
    /// Interlaced tracks in groups: N bottom tracks, then the N top tracks that overlap them (Hajkazemi 2019 §2.1).
    BottomThenTop,
}

/// The order of PBAs over the top tracks of a group of an interlaced disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopOrder {
    /// From the innermost to the outermost top track: back over the bottom tracks.
    Serpentine,
    /// From the outermost to the innermost top track, like the bottom tracks.
    ZigZag,
}

/// Keys of the `horizontal` layout. Positions are fractions of the tracks of a surface, from 0 at the outer diameter to
/// 1 at the inner diameter.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct HorizontalConfig {
    /// Position that divides the zones: PBAs run inward in zones whose middle lies before it, outward in the others. A
    /// fraction of the tracks of a surface, from 0 at the outer to 1 at the inner diameter; 0.5 unless given.
    pub split: f64,
    /// Start of the conventional part: zones whose middle lies from here up to `conventional_to` are not shingled, and
    /// their PBAs run inward and outward in turn, surface by surface. A fraction of the tracks of a surface, from 0 at
    /// the outer to 1 at the inner diameter; 0.5 unless given.
    pub conventional_from: f64,
    /// End of the conventional part: a zone whose middle lies here or behind is not in it. A fraction of the tracks of
    /// a surface, from 0 at the outer to 1 at the inner diameter; 0.5 unless given. If it equals `conventional_from`,
    /// no zone is conventional.
    pub conventional_to: f64,
}

impl Default for HorizontalConfig {
    fn default() -> HorizontalConfig {
        HorizontalConfig { split: 0.5, conventional_from: 0.5, conventional_to: 0.5 }
    }
}

/// Keys of the `bottom-then-top` layout.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct InterlacedConfig {
    /// Number of bottom tracks of a group on one surface of an interlaced disk; a group has as many top tracks. At
    /// least 1; 128 unless given.
    pub group_tracks: u32,
    /// Order of PBAs over the top tracks of a group of an interlaced disk; `serpentine` (inner to outer) unless given.
    pub order: TopOrder,
    /// Sectors of a top track divided by those of a bottom track of its zone; above 0, at most 1; 0.9 unless given.
    pub top_ratio: f64,
}

impl Default for InterlacedConfig {
    fn default() -> InterlacedConfig {
        InterlacedConfig { group_tracks: 128, order: TopOrder::Serpentine, top_ratio: 0.9 }
    }
}

/// A track that holds fewer sectors than the others of its zone, because defective sectors were slipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SlipConfig {
    /// Radial position of the track, counted from 0 at the outer diameter.
    pub radial_track: u32,
    /// Surface of the track, counted from 0; 0 unless given.
    #[serde(default)]
    pub surface: u8,
    /// Number of sectors that the track lacks: at least 1, and fewer than the track has.
    pub sectors: u32,
}

/// Tracks with slipped sectors: some listed, some drawn at random.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlipsConfig {
    /// Slipped tracks listed one by one, each at most once.
    pub listed: Vec<SlipConfig>,
    /// Number of further tracks that are drawn at random. If any are, listed and drawn tracks together must be at most
    /// half of the disk's tracks.
    pub random_tracks: u32,
    /// Maximum number of sectors that a drawn track lacks; the minimum is 1. It must be lower than the number of
    /// sectors of the drawn tracks.
    pub random_sectors_max: u32,
    /// Seed of the random numbers; equal seeds give equal tracks.
    pub seed: u64,
}

/// The geometry of a disk, as stated in a profile.
#[derive(Clone, PartialEq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct GeometryConfig {
    /// Number of recording surfaces.
    pub surfaces: u8,
    /// Order in which PBAs run over surfaces and tracks.
    pub layout: LayoutName,
    /// Time of one rotation, in nanoseconds.
    pub rotation_ns: u32,
    /// Angle by which each track starts later than the one before it in PBA order, as nanoseconds of rotation; 0 unless
    /// given. In the `cylinder` layout the angle applies only from the last track of a cylinder to the first of the
    /// next.
    #[serde(default)]
    pub track_skew_ns: u32,
    /// Angle by which a track starts later after a change of surface, as nanoseconds of rotation; 0 unless given. In
    /// `cylinder` the angle applies from each track to the next within a cylinder, in place of `track_skew_ns`. In the
    /// other layouts it is added to `track_skew_ns`: in `horizontal` at the end of a zone's tracks on a surface, in
    /// `bottom-then-top` at the end of a group's tracks on a surface. There the angle is added even if the next track
    /// lies on the same surface, as between two zones in `horizontal`.
    #[serde(default)]
    pub head_skew_ns: u32,
    /// Recording zones from the outer to the inner diameter, listed one by one. If the list is empty, `tracks`,
    /// `track_sectors_od` and the keys that belong to them give the zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneConfig>,
    /// Number of tracks of a surface, in all zones together. Required if neither `zones` nor `measured` gives the
    /// zones, otherwise an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracks: Option<u32>,
    /// Number of zones, which have equally many tracks up to rounding; 1 unless given. Used with `tracks`; an error
    /// beside listed `zones` or `stroke_tracks_od`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_count: Option<u32>,
    /// Number of tracks of the outermost zone on a surface, from which the number of zones follows, in place of
    /// `zone_count`. Used with `tracks`; an error beside listed `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke_tracks_od: Option<u32>,
    /// Number of tracks on a surface of a zone at the inner diameter; zones in between change linearly with their
    /// position. Unless given, all zones are as wide as the outermost. An error without `stroke_tracks_od`, or beside
    /// listed `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stroke_tracks_id: Option<u32>,
    /// Number of sectors of a track in the outermost zone. Required if neither `zones` nor `measured` gives the zones,
    /// otherwise an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_sectors_od: Option<u32>,
    /// Number of sectors of a track in the innermost zone; zones in between change linearly with their number. Unless
    /// given, all zones have the number of the outermost. An error beside listed `zones`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub track_sectors_id: Option<u32>,
    /// Keys of the layout `horizontal`; an error with other layouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizontal: Option<HorizontalConfig>,
    /// Keys of the layout `bottom-then-top`; an error with other layouts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interlaced: Option<InterlacedConfig>,
    /// Tracks that lack sectors because defective sectors were slipped; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slips: Option<SlipsConfig>,
    /// Geometry measured on a real conventional drive, in place of zones, formula, skews and slips; `cylinder` layout
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredConfig>,
}

impl GeometryConfig {
    /// Returns the geometry of a disk whose `zones` are listed from the outer diameter as pairs: tracks on each
    /// surface, sectors of a track. It has no skew and no slipped sectors.
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

    /// Returns the recording zones from the outer to the inner diameter: as listed, as measured, or by the formula.
    ///
    /// # Errors
    ///
    /// Returns the reason, as text, if a value is impossible, a key is missing, or two keys exclude each other.
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

    /// Returns an error for a key that contradicts or repeats the measured geometry.
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
            // Zones of an interlaced disk end with a top track; the last one takes all tracks that are left.
            let end = if index + 1 == ends.len() { end } else { end / unit * unit };
            let track_sectors = between(od_sectors, id_sectors, index as u64, ends.len() as u64 - 1);
            zones.push(ZoneConfig { tracks: end - start, track_sectors });
            start = end;
        }
        Ok(zones)
    }

    /// Returns the number of which the tracks of a zone are a multiple: 2 on an interlaced disk, which has as many tops
    /// as bottoms.
    fn track_unit(&self) -> u32 {
        match self.layout {
            LayoutName::BottomThenTop => 2,
            LayoutName::Cylinder | LayoutName::Horizontal => 1,
        }
    }

    /// Returns the sectors of a top track in a zone whose bottom tracks hold `bottom_sectors`.
    pub(super) fn top_sectors(&self, bottom_sectors: u32) -> u32 {
        let ratio = self.interlaced.unwrap_or_default().top_ratio;
        let parts = (ratio * PARTS).round() as u64;
        (bottom_sectors as u64 * parts / PARTS as u64) as u32
    }

    /// Returns the number of sectors of an interlaced disk, divided by the number if each top track held as many
    /// sectors as the bottom tracks of its zone: above 0, at most 1. Returns 1 for other layouts. Slipped sectors count
    /// as present.
    ///
    /// # Errors
    ///
    /// Returns the reason, as text, if the zones of an interlaced disk are impossible.
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
                "`top_ratio` is {}: a top track holds at most as much as a bottom track",
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

    /// Returns this geometry with `numerator / denominator` times as many tracks in each zone, rounded up (to an even
    /// number on an interlaced disk). The number of zones and that of slipped tracks stay the same.
    ///
    /// # Errors
    ///
    /// Returns the reason, as text, if the geometry is measured, impossible, or would be too large.
    ///
    /// # Panics
    ///
    /// Panics if `denominator` is 0.
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

/// Interpolates linearly: returns `first` at step 0 and `last` at step `steps`.
fn between(first: u32, last: u32, step: u64, steps: u64) -> u32 {
    if steps == 0 {
        return first;
    }
    let (first, last) = (first as i128, last as i128);
    (first + (last - first) * step as i128 / steps as i128) as u32
}

/// Returns the ends of `count` zones of equal width.
fn equal_ends(tracks: u32, count: u32) -> Result<Vec<u32>, String> {
    if count == 0 || count > tracks {
        return Err(format!("{count} zones of {tracks} tracks: each zone needs a track"));
    }
    Ok((1..=count as u64).map(|zone| (tracks as u64 * zone / count as u64) as u32).collect())
}

/// Returns the ends of zones whose width goes from `od_tracks` to `id_tracks`, by the position of each zone. A rest of
/// less than half a zone at the end becomes part of the last zone.
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
