//! Goal: the closed forms of all layouts agree with a twin that walks over the disk track by track, in the order by
//! which the layouts are defined; and places are exact inverses of addresses. Method: random small disks, every sector;
//! large ones by sample.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A track as listed by the twin.
struct WalkedTrack {
    radial_track: u32,
    surface: u8,
    sectors: u32,
    skew_ns: u64,
}

/// Lists tracks in PBA order.
struct Walk<'a> {
    config: &'a GeometryConfig,
    skew_ns: u64,
    tracks: Vec<WalkedTrack>,
}

impl Walk<'_> {
    fn of(config: &GeometryConfig) -> Vec<WalkedTrack> {
        let zones = config.resolved_zones().unwrap();
        let radial_tracks: u32 = zones.iter().map(|zone| zone.tracks).sum();
        let mut walk = Walk { config, skew_ns: 0, tracks: Vec::new() };
        let mut radial_start = 0;
        for (index, zone) in zones.iter().enumerate() {
            match config.layout {
                LayoutName::Cylinder => walk.cylinders(radial_start, zone),
                LayoutName::Horizontal => walk.strokes(radial_start, zone, index, radial_tracks),
                LayoutName::BottomThenTop => walk.groups(radial_start, zone),
            }
            radial_start += zone.tracks;
        }
        if let Some(slips) = &config.slips {
            for slip in &slips.listed {
                let is_it =
                    |track: &&mut WalkedTrack| track.radial_track == slip.radial_track && track.surface == slip.surface;
                walk.tracks.iter_mut().find(is_it).unwrap().sectors -= slip.sectors;
            }
        }
        walk.tracks
    }

    fn track(&mut self, radial_track: u32, surface: u8, sectors: u32, then_ns: u32) {
        self.tracks.push(WalkedTrack { radial_track, surface, sectors, skew_ns: self.skew_ns });
        self.skew_ns += then_ns as u64;
    }

    fn cylinders(&mut self, radial_start: u32, zone: &ZoneConfig) {
        for radial_track in radial_start..radial_start + zone.tracks {
            for surface in 0..self.config.surfaces {
                let is_last = surface + 1 == self.config.surfaces;
                let then_ns = if is_last { self.config.track_skew_ns } else { self.config.head_skew_ns };
                self.track(radial_track, surface, zone.track_sectors, then_ns);
            }
        }
    }

    fn strokes(&mut self, radial_start: u32, zone: &ZoneConfig, index: usize, radial_tracks: u32) {
        let extras = self.config.horizontal.unwrap();
        let middle = (radial_start as f64 + zone.tracks as f64 / 2.0) / radial_tracks as f64;
        let serpentine = middle >= extras.conventional_from && middle < extras.conventional_to;
        let mut surfaces: Vec<u8> = (0..self.config.surfaces).collect();
        if index % 2 == 1 {
            surfaces.reverse();
        }
        for (stroke, &surface) in surfaces.iter().enumerate() {
            let mut tracks: Vec<u32> = (radial_start..radial_start + zone.tracks).collect();
            if (serpentine && stroke % 2 == 1) || (!serpentine && middle >= extras.split) {
                tracks.reverse();
            }
            for radial_track in tracks {
                self.track(radial_track, surface, zone.track_sectors, self.config.track_skew_ns);
            }
            self.skew_ns += self.config.head_skew_ns as u64;
        }
    }

    fn groups(&mut self, radial_start: u32, zone: &ZoneConfig) {
        let extras = self.config.interlaced.unwrap();
        let top_sectors = (zone.track_sectors as f64 * extras.top_ratio + 1e-6).floor() as u32;
        let all: Vec<u32> = (radial_start..radial_start + zone.tracks).collect();
        for group in all.chunks(2 * extras.group_tracks as usize) {
            for surface in 0..self.config.surfaces {
                for &bottom in group.iter().step_by(2) {
                    self.track(bottom, surface, zone.track_sectors, self.config.track_skew_ns);
                }
                let mut tops: Vec<u32> = group.iter().skip(1).step_by(2).copied().collect();
                if extras.order == TopOrder::Serpentine {
                    tops.reverse();
                }
                for top in tops {
                    self.track(top, surface, top_sectors, self.config.track_skew_ns);
                }
                self.skew_ns += self.config.head_skew_ns as u64;
            }
        }
    }
}

fn any_layout() -> impl Strategy<Value = LayoutName> {
    prop_oneof![Just(LayoutName::Cylinder), Just(LayoutName::Horizontal), Just(LayoutName::BottomThenTop)]
}

fn any_extras() -> impl Strategy<Value = (HorizontalConfig, InterlacedConfig)> {
    let horizontal = (0.0f64..=1.0, 0.0f64..=1.0, 0.0f64..=1.0).prop_map(|(split, a, b)| HorizontalConfig {
        split,
        conventional_from: a.min(b),
        conventional_to: a.max(b),
    });
    let ratios = prop_oneof![Just(1.0), Just(0.9), Just(0.7)];
    let interlaced = (1u32..6, ratios, any::<bool>()).prop_map(|(group_tracks, top_ratio, zig_zag)| InterlacedConfig {
        group_tracks,
        top_ratio,
        order: if zig_zag { TopOrder::ZigZag } else { TopOrder::Serpentine },
    });
    (horizontal, interlaced)
}

/// Generates small disks of every layout, with skews and a few slipped tracks.
fn any_config() -> impl Strategy<Value = GeometryConfig> {
    let zones = proptest::collection::vec((1u32..12, 2u32..20), 1..6);
    let skews = (0u32..10_000, 0u32..10_000);
    let slips = proptest::collection::vec((0u32..60, 0u8..4), 0..4);
    (1u8..5, any_layout(), zones, any_extras(), skews, slips).prop_map(
        |(surfaces, layout, mut zones, extras, skews, slips)| {
            if layout == LayoutName::BottomThenTop {
                zones.iter_mut().for_each(|zone| zone.0 *= 2);
            }
            let radial_tracks = zones.iter().map(|zone| zone.0).sum::<u32>();
            let places: BTreeSet<(u32, u8)> =
                slips.iter().map(|&(track, surface)| (track % radial_tracks, surface % surfaces)).collect();
            // A track of 2 sectors, whose top has 1, cannot lose a sector: zones of disks with slips get some more.
            zones.iter_mut().for_each(|zone| zone.1 += if places.is_empty() { 0 } else { 2 });
            let listed = places.iter().map(|&(radial_track, surface)| SlipConfig { radial_track, surface, sectors: 1 });
            let slips = SlipsConfig { listed: listed.collect(), ..SlipsConfig::default() };
            GeometryConfig {
                track_skew_ns: skews.0,
                head_skew_ns: skews.1,
                horizontal: (layout == LayoutName::Horizontal).then_some(extras.0),
                interlaced: (layout == LayoutName::BottomThenTop).then_some(extras.1),
                slips: (!places.is_empty()).then_some(slips),
                ..GeometryConfig::listed(surfaces, layout, 10_007, &zones)
            }
        },
    )
}

proptest! {
    #[test]
    fn every_sector_is_where_a_walk_over_the_disk_puts_it(config in any_config()) {
        let geometry = Geometry::new(&config).unwrap();
        let rotation_ns = config.rotation_ns as u64;
        let mut track_start = 0;
        for track in Walk::of(&config) {
            for sector in 0..track.sectors {
                let pba = Pba(track_start + sector as u64);
                let angle_ns = (sector as u64 * rotation_ns / track.sectors as u64 + track.skew_ns) % rotation_ns;
                let place = Place {
                    radial_track: track.radial_track,
                    surface: track.surface,
                    sector,
                    track_sectors: track.sectors,
                    angle_ns: angle_ns as u32,
                    track_start: Pba(track_start),
                };
                prop_assert_eq!(geometry.locate(pba), place);
                prop_assert_eq!(geometry.pba(track.radial_track, track.surface, sector), pba);
            }
            track_start += track.sectors as u64;
        }
        prop_assert_eq!(geometry.sectors(), Sectors(track_start));
    }

    #[test]
    fn pieces_cover_an_extent_track_by_track(config in any_config(), from in 0.0f64..1.0, share in 0.0f64..1.0) {
        let geometry = Geometry::new(&config).unwrap();
        let all = geometry.sectors().0;
        let start = (from * all as f64) as u64;
        let extent = Extent::new(Pba(start), Sectors(1 + (share * (all - start - 1) as f64) as u64));
        let mut next = extent.start;
        for piece in geometry.tracks(extent) {
            prop_assert_eq!(piece.extent().start, next);
            prop_assert!(piece.place.sector + piece.sectors <= piece.place.track_sectors);
            let track_sectors = piece.place.track_sectors as u64;
            let passed_ns = |sector: u32| sector as u64 * config.rotation_ns as u64 / track_sectors;
            let transfer_ns = passed_ns(piece.place.sector + piece.sectors) - passed_ns(piece.place.sector);
            prop_assert_eq!(piece.transfer_ns as u64, transfer_ns);
            next = piece.extent().end();
        }
        prop_assert_eq!(next, extent.end());
    }

    /// Goal: the tracks of a stroke lie side by side. Method: comparison with the walk.
    #[test]
    fn tracks_of_a_stroke_lie_side_by_side(config in any_config()) {
        let geometry = Geometry::new(&config).unwrap();
        let walked = Walk::of(&config);
        let mut start = 0;
        for (index, track) in walked.iter().enumerate() {
            let stroke = geometry.stroke_from(Pba(start));
            let has_strokes = config.layout == LayoutName::Horizontal && config.slips.is_none();
            prop_assert_eq!(stroke.is_some(), has_strokes);
            prop_assert!(track.sectors == 1 || geometry.stroke_from(Pba(start + 1)).is_none());
            let left = stroke.map_or(1, |(left, _)| left as usize);
            for pair in walked[index..index + left].windows(2) {
                prop_assert_eq!(pair[0].radial_track.abs_diff(pair[1].radial_track), 1);
                prop_assert_eq!((pair[0].surface, pair[0].sectors), (pair[1].surface, pair[1].sectors));
            }
            prop_assert!(stroke.is_none_or(|(_, sectors)| sectors.0 == track.sectors as u64));
            start += track.sectors as u64;
        }
    }

    /// Goal: a bottom track and its tops, found together, equal those found one by one. Method: every bottom of
    /// interlaced disks.
    #[test]
    fn tops_are_found_beside_their_bottom(config in any_config()) {
        prop_assume!(config.layout == LayoutName::BottomThenTop);
        let geometry = Geometry::new(&config).unwrap();
        for (radial_track, surface) in (0..geometry.radial_tracks()).step_by(2).flat_map(|track| {
            (0..geometry.surfaces()).map(move |surface| (track, surface))
        }) {
            let (own, tops) = geometry.bottom_and_tops(radial_track, surface);
            prop_assert_eq!(own, geometry.track_place(radial_track, surface));
            let inner = radial_track + 1;
            let inner = (inner < geometry.radial_tracks()).then(|| geometry.track_place(inner, surface));
            let outer = radial_track.checked_sub(1).map(|outer| geometry.track_place(outer, surface));
            prop_assert_eq!(tops, [outer, inner]);
        }
    }

    /// Goal: the tracks of a row follow each other in PBA order, have one length, and on an interlaced disk are all
    /// tops or all bottoms. Method: comparison with the walk.
    #[test]
    fn tracks_of_a_row_follow_each_other(config in any_config()) {
        let geometry = Geometry::new(&config).unwrap();
        let walked = Walk::of(&config);
        let mut start = 0;
        for (index, track) in walked.iter().enumerate() {
            let row = geometry.row_from(Pba(start));
            prop_assert_eq!(row.is_some(), config.slips.is_none());
            prop_assert!(track.sectors == 1 || geometry.row_from(Pba(start + 1)).is_none());
            let (left, sectors) = row.unwrap_or((1, Sectors(track.sectors as u64)));
            let (own, interlaced) = (&walked[index], geometry.is_interlaced());
            for next in &walked[index..index + left as usize] {
                prop_assert_eq!(next.sectors as u64, sectors.0);
                prop_assert!(!interlaced || (next.radial_track % 2, next.surface) == (own.radial_track % 2, own.surface));
            }
            start += track.sectors as u64;
        }
    }

    #[test]
    fn zones_cover_the_disk_and_name_their_tracks(config in any_config()) {
        let geometry = Geometry::new(&config).unwrap();
        let mut next = Pba(0);
        for zone in geometry.zones() {
            prop_assert_eq!(zone.extent.start, next);
            next = zone.extent.end();
            for pba in [zone.extent.start.0, next.0 - 1] {
                prop_assert_eq!(geometry.zone_of(geometry.locate(Pba(pba)).radial_track), zone);
            }
        }
        prop_assert_eq!(next, Pba(geometry.sectors().0));
    }

    /// Goal: a grown disk keeps its zones and has at least the requested sectors, slipped tracks or not.
    #[test]
    fn grown_disks_hold_at_least_what_was_asked(config in any_config(), sectors in 1u64..1_000_000) {
        let before = Geometry::new(&config).unwrap();
        let asked = before.sectors().0 + sectors;
        let grown = Geometry::new(&config.grown(asked, before.sectors().0).unwrap()).unwrap();
        prop_assert!(grown.sectors().0 >= asked, "{} of {asked}", grown.sectors().0);
        prop_assert_eq!(grown.zones().len(), before.zones().len());
    }
}

/// Track and surface of every track in PBA order, written out by hand from the layouts' descriptions.
#[test]
fn layouts_run_as_they_are_described() {
    let order = |config: &GeometryConfig| -> Vec<(u32, u8)> {
        let geometry = Geometry::new(config).unwrap();
        let all = Extent::new(Pba(0), geometry.sectors());
        geometry.tracks(all).map(|piece| (piece.place.radial_track, piece.place.surface)).collect()
    };
    let cylinder = GeometryConfig::listed(2, LayoutName::Cylinder, 10_000, &[(2, 10), (1, 8)]);
    assert_eq!(order(&cylinder), [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);

    // Inward from surface 0 to 1, then a serpentine zone from 1 to 0, then outward from 0 to 1.
    let mut horizontal = GeometryConfig::listed(2, LayoutName::Horizontal, 10_000, &[(2, 10); 3]);
    horizontal.horizontal = Some(HorizontalConfig { split: 0.5, conventional_from: 0.4, conventional_to: 0.6 });
    let strokes = [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1), (3, 1), (3, 0), (2, 0), (5, 0), (4, 0), (5, 1), (4, 1)];
    assert_eq!(order(&horizontal), strokes);

    // A group of three bottoms and three tops on each surface, then the rest: a bottom and a top.
    let mut interlaced = GeometryConfig::listed(2, LayoutName::BottomThenTop, 10_000, &[(8, 10)]);
    let extras = |order| Some(InterlacedConfig { group_tracks: 3, order, top_ratio: 0.9 });
    let on_both = |group: &[u32]| -> Vec<(u32, u8)> {
        (0..2).flat_map(|surface| group.iter().map(move |&track| (track, surface))).collect()
    };
    interlaced.interlaced = extras(TopOrder::Serpentine);
    assert_eq!(order(&interlaced), [on_both(&[0, 2, 4, 5, 3, 1]), on_both(&[6, 7])].concat());
    interlaced.interlaced = extras(TopOrder::ZigZag);
    assert_eq!(order(&interlaced), [on_both(&[0, 2, 4, 1, 3, 5]), on_both(&[6, 7])].concat());
}

/// Places of a disk of 20 TB in 30 zones are inverses of addresses, at both ends of every zone and at regular distances
/// between.
#[test]
fn large_disks_are_inverted_too() {
    let mut config = GeometryConfig::listed(8, LayoutName::Horizontal, 8_333_333, &[]);
    (config.tracks, config.zone_count) = (Some(400_000), Some(30));
    (config.track_sectors_od, config.track_sectors_id) = (Some(16_000), Some(8_000));
    let geometry = Geometry::new(&config).unwrap();
    let ends = geometry.zones().iter().flat_map(|zone| [zone.extent.start.0, zone.extent.end().0 - 1]);
    for pba in ends.chain((0..geometry.sectors().0).step_by(100_000_007)).map(Pba) {
        let place = geometry.locate(pba);
        assert_eq!(geometry.pba(place.radial_track, place.surface, place.sector), pba);
    }
}

#[test]
fn the_formula_goes_linearly_from_outer_to_inner_zone() {
    let mut config = GeometryConfig::listed(1, LayoutName::Cylinder, 10_000_000, &[]);
    (config.tracks, config.zone_count) = (Some(100), Some(5));
    (config.track_sectors_od, config.track_sectors_id) = (Some(4000), Some(2000));
    let lengths: Vec<_> =
        config.resolved_zones().unwrap().iter().map(|zone| (zone.tracks, zone.track_sectors)).collect();
    assert_eq!(lengths, [(20, 4000), (20, 3500), (20, 3000), (20, 2500), (20, 2000)]);
}

/// Strokes narrow from 100 to 50 tracks over 400: 100, then 100 − 50·100/400 = 88 (rounded towards the outer width),
/// and so on; the last takes the rest.
#[test]
fn strokes_narrow_towards_the_inner_diameter() {
    let mut config = GeometryConfig::listed(2, LayoutName::Horizontal, 10_000_000, &[]);
    config.tracks = Some(400);
    (config.stroke_tracks_od, config.stroke_tracks_id) = (Some(100), Some(50));
    config.track_sectors_od = Some(1000);
    let widths: Vec<_> = config.resolved_zones().unwrap().iter().map(|zone| zone.tracks).collect();
    assert_eq!(widths, [100, 88, 77, 67, 68]);
}

/// A full surface with a top ratio of 0.9 stores 95 % of the sectors that bottoms in all places would.
#[test]
fn tops_cost_their_share_of_the_capacity() {
    let config = GeometryConfig::listed(1, LayoutName::BottomThenTop, 10_000_000, &[(2560, 4000)]);
    assert_eq!(Geometry::new(&config).unwrap().sectors(), Sectors(1280 * (4000 + 3600)));
}

#[test]
fn parity_parts_tops_from_bottoms_only_on_interlaced_disks() {
    let interlaced = GeometryConfig::listed(1, LayoutName::BottomThenTop, 10_000, &[(8, 10)]);
    let geometry = Geometry::new(&interlaced).unwrap();
    assert!(geometry.is_interlaced() && geometry.is_bottom(0) && geometry.is_top(1) && !geometry.is_top(2));
    let plain = Geometry::new(&GeometryConfig::listed(1, LayoutName::Cylinder, 10_000, &[(8, 10)])).unwrap();
    assert!(!plain.is_interlaced() && !plain.is_bottom(0) && !plain.is_top(1));
}

/// Both parts of a shingled disk point at the middle, which is conventional (Aghayev 2015 fig. 19).
#[test]
fn shingles_point_at_the_middle() {
    let mut config = GeometryConfig::listed(2, LayoutName::Horizontal, 10_000_000, &[(10, 100); 5]);
    config.horizontal = Some(HorizontalConfig { split: 0.5, conventional_from: 0.4, conventional_to: 0.6 });
    let geometry = Geometry::new(&config).unwrap();
    assert_eq!(geometry.shingling_direction(19), RadialDirection::Inward);
    assert_eq!(geometry.shingling_direction(30), RadialDirection::Outward);
    let conventional: Vec<_> = (0..50).filter(|&track| geometry.is_conventional(track)).collect();
    assert_eq!(conventional, (20..30).collect::<Vec<_>>());
}

#[test]
fn drawn_slips_follow_the_seed() {
    let config = |seed| {
        let slips = SlipsConfig { random_tracks: 20, random_sectors_max: 3, seed, ..SlipsConfig::default() };
        let plain = GeometryConfig::listed(2, LayoutName::BottomThenTop, 10_000_000, &[(100, 64)]);
        GeometryConfig { slips: Some(slips), ..plain }
    };
    let lengths = |seed| -> Vec<u32> {
        let geometry = Geometry::new(&config(seed)).unwrap();
        (0..100).map(|track| geometry.track_place(track, 0).track_sectors).collect()
    };
    assert_eq!(lengths(1), lengths(1));
    assert_ne!(lengths(1), lengths(2));
    let geometry = Geometry::new(&config(1)).unwrap();
    let missing = 2 * 50 * (64 + 57) - geometry.sectors().0;
    assert!((20..=60).contains(&missing), "20 tracks lack 1 to 3 sectors each, not {missing} in all");
}

#[test]
fn impossible_geometries_are_refused_with_the_reason() {
    let base = GeometryConfig::listed(1, LayoutName::BottomThenTop, 10_000, &[(8, 10)]);
    let interlaced = |group_tracks, top_ratio| {
        let extras = InterlacedConfig { group_tracks, top_ratio, ..InterlacedConfig::default() };
        GeometryConfig { interlaced: Some(extras), ..base.clone() }
    };
    let refused = [
        (GeometryConfig { surfaces: 0, ..base.clone() }, "surfaces"),
        (GeometryConfig { zones: vec![], ..base.clone() }, "no zones"),
        (GeometryConfig { tracks: Some(8), ..base.clone() }, "`tracks`"),
        (GeometryConfig { track_skew_ns: 10_000, ..base.clone() }, "track_skew_ns"),
        (GeometryConfig { rotation_ns: 9, ..base.clone() }, "rotation_ns"),
        (GeometryConfig { horizontal: Some(HorizontalConfig::default()), ..base.clone() }, "horizontal"),
        (GeometryConfig::listed(1, LayoutName::BottomThenTop, 10_000, &[(7, 10)]), "multiple of 2"),
        (interlaced(0, 0.9), "group_tracks"),
        (interlaced(4, 1.1), "top_ratio"),
        (interlaced(4, 0.05), "no sector"),
    ];
    for (config, part) in refused {
        let reason = Geometry::new(&config).unwrap_err();
        assert!(reason.contains(part), "{reason} should name {part}");
    }
}

#[test]
fn profiles_write_a_geometry_in_toml() {
    let text = r#"
        surfaces = 2
        layout = "bottom-then-top"
        rotation_ns = 10_000_000
        tracks = 1024
        track_sectors_od = 4096
        interlaced = { order = "zig-zag", top_ratio = 1.0 }
    "#;
    let config: GeometryConfig = toml::from_str(text).unwrap();
    assert_eq!(Geometry::new(&config).unwrap().sectors(), Sectors(2 * 1024 * 4096));
    assert_eq!(toml::from_str::<GeometryConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
    let unknown = toml::from_str::<GeometryConfig>(&format!("{text}\nheads = 2")).unwrap_err();
    assert!(unknown.to_string().contains("heads"));
}
