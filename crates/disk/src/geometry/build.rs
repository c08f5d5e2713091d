//! Builds a [`Geometry`] from its configuration: zone by zone, each from the address, track and skew at which the zone
//! before it ended. Slipped tracks follow, because they can be placed only in the finished layout.

use std::collections::BTreeMap;

use super::bottom_then_top::BottomThenTop;
use super::config::{GeometryConfig, LayoutName, SlipConfig};
use super::cylinder::Cylinder;
use super::finder::Finder;
use super::gaps::Gaps;
use super::horizontal::{Horizontal, Strokes};
use super::measured::{Measured, MeasuredConfig, MeasuredZone};
use super::slips::{Slips, next_random};
use super::zone_config::ZoneConfig;
use super::{Divider, Geometry, Layout, RadialDirection, RecordingZone, Run, ZoneSkew};
use crate::units::{Extent, Pba, Sectors};

pub(super) fn build(config: &GeometryConfig) -> Result<Geometry, String> {
    let zone_configs = config.resolved_zones()?;
    let mut builder = Builder::new(config, &zone_configs);
    if let Some(measured) = &config.measured {
        for (zone, found) in zone_configs.iter().zip(&measured.zones) {
            builder.measured(measured, zone, found);
        }
        return Ok(with_gaps(builder.finish(), measured));
    }
    for zone in &zone_configs {
        builder.zone(zone);
    }
    let mut geometry = builder.finish();
    if let Some(slips) = &config.slips {
        let mut tracks = BTreeMap::new();
        for slip in &slips.listed {
            add_slip(&geometry, slip, &mut tracks)?;
        }
        if slips.random_tracks > 0 {
            draw_slips(&geometry, slips.random_tracks, slips.random_sectors_max, slips.seed, &mut tracks)?;
        }
        geometry = with_slips(geometry, &tracks);
    }
    Ok(geometry)
}

struct Builder<'a> {
    config: &'a GeometryConfig,
    radial_tracks: u32,
    runs: Vec<Run>,
    zones: Vec<RecordingZone>,
    /// Address at which the next run starts.
    address: u64,
    radial_track: u32,
    skew_ns: u64,
}

impl<'a> Builder<'a> {
    fn new(config: &'a GeometryConfig, zones: &[ZoneConfig]) -> Builder<'a> {
        let radial_tracks = zones.iter().map(|zone| zone.tracks).sum();
        Builder { config, radial_tracks, runs: Vec::new(), zones: Vec::new(), address: 0, radial_track: 0, skew_ns: 0 }
    }

    fn zone(&mut self, zone: &ZoneConfig) {
        let (start, radial_start) = (self.address, self.radial_track);
        let (mut shingling, mut conventional) = (RadialDirection::Inward, false);
        match self.config.layout {
            LayoutName::Cylinder => self.cylinder(zone),
            LayoutName::Horizontal => (shingling, conventional) = self.horizontal(zone),
            LayoutName::BottomThenTop => self.bottom_then_top(zone),
        }
        self.zones.push(RecordingZone {
            extent: Extent::between(Pba(start), Pba(self.address)),
            radial_start,
            tracks: zone.tracks,
            track_sectors: zone.track_sectors,
            shingling,
            conventional,
        });
    }

    fn measured(&mut self, config: &MeasuredConfig, zone: &ZoneConfig, found: &MeasuredZone) {
        let (start, radial_start) = (self.address, self.radial_track);
        let layout = Measured::new(config, found, self.config.surfaces, self.config.rotation_ns);
        self.push(Layout::Measured(layout), zone.tracks, plain_sectors(zone), 0);
        self.zones.push(RecordingZone {
            extent: Extent::between(Pba(start), Pba(self.address)),
            radial_start,
            tracks: zone.tracks,
            track_sectors: zone.track_sectors,
            shingling: RadialDirection::Inward,
            conventional: false,
        });
    }

    fn skew(&self) -> ZoneSkew {
        ZoneSkew {
            base_ns: self.skew_ns,
            track_ns: self.config.track_skew_ns as u64,
            head_ns: self.config.head_skew_ns as u64,
        }
    }

    fn push(&mut self, layout: Layout, tracks: u32, sectors: u64, skew_ns: u64) {
        self.runs.push(Run { start: self.address, radial_start: self.radial_track, layout });
        self.address += sectors * self.config.surfaces as u64;
        self.radial_track += tracks;
        self.skew_ns = skew_ns % self.config.rotation_ns as u64;
    }

    fn cylinder(&mut self, zone: &ZoneConfig) {
        let layout = Cylinder::new(zone.track_sectors, self.config.surfaces, self.skew());
        let skew_ns = layout.next_base_ns(zone.tracks);
        self.push(Layout::Cylinder(layout), zone.tracks, plain_sectors(zone), skew_ns);
    }

    fn horizontal(&mut self, zone: &ZoneConfig) -> (RadialDirection, bool) {
        let extras = self.config.horizontal.unwrap_or_default();
        let middle = (self.radial_track as f64 + zone.tracks as f64 / 2.0) / self.radial_tracks as f64;
        let conventional = extras.conventional_from <= middle && middle < extras.conventional_to;
        let shingling = if middle < extras.split { RadialDirection::Inward } else { RadialDirection::Outward };
        let strokes = match shingling {
            _ if conventional => Strokes::Serpentine,
            RadialDirection::Inward => Strokes::Inward,
            RadialDirection::Outward => Strokes::Outward,
        };
        let surfaces_fall = self.zones.len() % 2 == 1;
        let surfaces = self.config.surfaces;
        let layout = Horizontal::new(zone.track_sectors, zone.tracks, surfaces, strokes, surfaces_fall, self.skew());
        let skew_ns = layout.next_base_ns();
        self.push(Layout::Horizontal(layout), zone.tracks, plain_sectors(zone), skew_ns);
        (shingling, conventional)
    }

    /// Adds a zone of whole groups. The tracks left over at its end form a smaller group.
    fn bottom_then_top(&mut self, zone: &ZoneConfig) {
        let extras = self.config.interlaced.unwrap_or_default();
        let rest = zone.tracks % (2 * extras.group_tracks);
        for (half_tracks, tracks) in [(extras.group_tracks, zone.tracks - rest), (rest / 2, rest)] {
            if tracks == 0 {
                continue;
            }
            let (bottom, top) = (zone.track_sectors, self.config.top_sectors(zone.track_sectors));
            let layout = BottomThenTop::new(bottom, top, half_tracks, self.config.surfaces, extras.order, self.skew());
            let skew_ns = layout.next_base_ns(tracks);
            let sectors = (tracks / 2) as u64 * (bottom as u64 + top as u64);
            self.push(Layout::BottomThenTop(layout), tracks, sectors, skew_ns);
        }
    }

    fn finish(self) -> Geometry {
        let radial_tracks = self.radial_tracks as u64;
        let radial_starts = self.runs.iter().map(|run| run.radial_start as u64).collect();
        let zone_starts = self.zones.iter().map(|zone| zone.radial_start as u64).collect();
        Geometry {
            by_address: Finder::new(self.runs.iter().map(|run| run.start).collect(), self.address),
            by_radius: Finder::new(radial_starts, radial_tracks),
            zones_by_radius: Finder::new(zone_starts, radial_tracks),
            runs: self.runs,
            zones: self.zones,
            slips: None,
            gaps: None,
            irregular: false,
            sectors: self.address,
            radial_tracks: self.radial_tracks,
            surfaces: self.config.surfaces,
            interlaced: self.config.layout == LayoutName::BottomThenTop,
            rotation: Divider::new(self.config.rotation_ns as u64),
        }
    }
}

/// Returns the sectors of a zone of equal tracks, on one surface.
fn plain_sectors(zone: &ZoneConfig) -> u64 {
    zone.tracks as u64 * zone.track_sectors as u64
}

fn add_slip(geometry: &Geometry, slip: &SlipConfig, tracks: &mut BTreeMap<u64, (u32, u32)>) -> Result<(), String> {
    let place = format!("slipped track {} of surface {}", slip.radial_track, slip.surface);
    if slip.radial_track >= geometry.radial_tracks || slip.surface >= geometry.surfaces {
        return Err(format!("{place} is not on the disk"));
    }
    let track = geometry.track_place(slip.radial_track, slip.surface);
    if slip.sectors == 0 || slip.sectors >= track.track_sectors {
        return Err(format!("{place} lacks {} of {} sectors: some, not all", slip.sectors, track.track_sectors));
    }
    match tracks.insert(track.track_start.0, (track.track_sectors, slip.sectors)) {
        Some(_) => Err(format!("{place} is listed twice")),
        None => Ok(()),
    }
}

fn draw_slips(
    geometry: &Geometry,
    count: u32,
    sectors_max: u32,
    seed: u64,
    tracks: &mut BTreeMap<u64, (u32, u32)>,
) -> Result<(), String> {
    let all_tracks = geometry.radial_tracks as u64 * geometry.surfaces as u64;
    if tracks.len() as u64 + count as u64 > all_tracks / 2 {
        return Err(format!("{count} slipped tracks of {all_tracks}: at most half of them can be drawn"));
    }
    let wanted = tracks.len() + count as usize;
    let mut state = seed;
    while tracks.len() < wanted {
        let radial_track = (next_random(&mut state) % geometry.radial_tracks as u64) as u32;
        let surface = (next_random(&mut state) % geometry.surfaces as u64) as u8;
        let track = geometry.track_place(radial_track, surface);
        if sectors_max == 0 || sectors_max >= track.track_sectors {
            return Err(format!("`random_sectors_max` {sectors_max}: from 1 to a track's length less 1"));
        }
        let missing = 1 + (next_random(&mut state) % sectors_max as u64) as u32;
        tracks.entry(track.track_start.0).or_insert((track.track_sectors, missing));
    }
    Ok(())
}

/// Returns `geometry` with `tracks` slipped: each zone is smaller by the sectors that its tracks lack.
fn with_slips(mut geometry: Geometry, tracks: &BTreeMap<u64, (u32, u32)>) -> Geometry {
    let slips = Slips::new(tracks, geometry.sectors);
    geometry.sectors -= slips.missing_in_all();
    for zone in &mut geometry.zones {
        // The end of a zone is the start of the next zone's first track, or the end of the disk.
        let (start, end) = (slips.track_start(zone.extent.start.0), slips.track_start(zone.extent.end().0));
        zone.extent = Extent::new(Pba(start), Sectors(end - start));
    }
    geometry.slips = Some(slips);
    geometry.irregular = true;
    geometry
}

/// Returns `geometry` with PBAs for the user's sectors only.
fn with_gaps(mut geometry: Geometry, measured: &MeasuredConfig) -> Geometry {
    let (mut stretches, mut remaps) = (Vec::new(), Vec::new());
    for (zone, found) in geometry.zones.iter().zip(&measured.zones) {
        let start = zone.extent.start.0;
        let kept = measured.stretches(found, geometry.surfaces);
        stretches.extend(kept.iter().map(|stretch| (start + stretch.start, stretch.end - stretch.start)));
        remaps.extend(measured.remapped(found).map(|(from, to)| (start + from, start + to)));
    }
    let gaps = Gaps::new(&stretches, &remaps);
    geometry.sectors = gaps.sectors();
    for zone in &mut geometry.zones {
        let (start, end) = (gaps.rank(zone.extent.start.0), gaps.rank(zone.extent.end().0));
        zone.extent = Extent::new(Pba(start), Sectors(end - start));
    }
    geometry.gaps = Some(gaps);
    geometry.irregular = true;
    geometry
}
