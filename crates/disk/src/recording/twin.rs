//! Goal: every recording destroys the sectors that its paper names, and no others. Method: the papers' own examples,
//! then random writes compared with a twin that goes over a toy disk sector by sector and checks every other sector for
//! damage.

use super::distances::CaveatDistances;
use super::*;
use crate::Geometry;
use crate::geometry::{GeometryConfig, HorizontalConfig, InterlacedConfig, LayoutName, Place, TopOrder};
use crate::units::Sectors;
use crate::units::{Extent, Pba};
use proptest::prelude::*;
use toml::Spanned;
use toml::de::DeValue;

const ROTATION_NS: u32 = 1000;

fn recording(text: &str) -> Box<dyn Recording> {
    try_recording(text).expect("a valid section")
}

fn try_recording(text: &str) -> Result<Box<dyn Recording>, BuildError> {
    let mut root = toml::de::DeTable::parse(text)?;
    let kind = root.get_mut().remove("kind").expect("tests name a kind").into_inner();
    let span = root.span();
    build(kind.as_str().expect("a string"), Spanned::new(span, DeValue::Table(root.into_inner())))
}

fn refusal(text: &str) -> Refusal {
    match try_recording(text) {
        Err(BuildError::Refused(refusal)) => refusal,
        other => panic!("{text} is not refused: {other:?}"),
    }
}

fn geometry(config: &GeometryConfig) -> Geometry {
    Geometry::new(config).expect("a valid toy")
}

/// Returns one surface of 30 tracks of ten sectors without skew: sector s of track t is PBA 10 t + s in any direction.
fn plain() -> Geometry {
    geometry(&GeometryConfig::listed(1, LayoutName::Cylinder, ROTATION_NS, &[(30, 10)]))
}

fn extent(start: u64, sectors: u64) -> Extent {
    Extent::new(Pba(start), Sectors(sectors))
}

fn destroyed(recording: &dyn Recording, geometry: &Geometry, written: Extent) -> Vec<Extent> {
    let mut destroyed = Vec::new();
    recording.destroys(geometry, written, &mut destroyed);
    destroyed
}

#[test]
fn an_interference_of_six_blocks_affects_the_written_one_and_five_more() {
    // Cassuto 2010 fig. 2.
    let six = recording("kind = 'block-interference'\ninterference_sectors = 6");
    assert_eq!(destroyed(&*six, &plain(), extent(10, 1)), [extent(11, 5)]);
    assert_eq!(destroyed(&*six, &plain(), extent(10, 7)), [extent(17, 5)]);
    assert_eq!(destroyed(&*six, &plain(), extent(297, 1)), [extent(298, 2)], "clipped to the disk");
    assert_eq!(destroyed(&*six, &plain(), extent(299, 1)), []);
}

#[test]
fn a_head_of_three_tracks_towards_the_outer_diameter_affects_the_two_tracks_outside() {
    // Cassuto 2010 fig. 1: [s_id, s_od] = [1, 3]. Written outward, track 29 comes first.
    let outward = HorizontalConfig { split: 0.0, ..HorizontalConfig::default() };
    let config = GeometryConfig::listed(1, LayoutName::Horizontal, ROTATION_NS, &[(30, 10)]);
    let geometry = geometry(&GeometryConfig { horizontal: Some(outward), ..config });
    let three = recording("kind = 'shingled'\ninterference = { s_id = 1, s_od = 3 }");
    let place = |track, sector| geometry.pba(track, 0, sector).0;
    three.check(&geometry).expect("the direction agrees");
    let lost = destroyed(&*three, &geometry, extent(place(12, 4), 2));
    assert_eq!(lost, [extent(place(11, 4), 2), extent(place(10, 4), 2)]);
    assert!(three.check(&plain()).unwrap_err().reason.contains("swap s_id and s_od"));
}

#[test]
fn widening_reaches_to_the_sectors_beside() {
    // A sector takes 100 ns; φ of 150 ns reaches into the second sector on its side.
    let clockwise = recording("kind = 'shingled'\ninterference = { s_id = 2, s_od = 1, phi_cw_ns = 150 }");
    assert_eq!(destroyed(&*clockwise, &plain(), extent(54, 1)), [extent(64, 3)]);
    let counter = recording("kind = 'shingled'\ninterference = { s_id = 2, s_od = 1, phi_ccw_ns = 150 }");
    assert_eq!(destroyed(&*counter, &plain(), extent(54, 1)), [extent(62, 3)]);
    let both = recording("kind = 'shingled'\nhead_tracks = 2\nwidening_sectors = 1");
    assert_eq!(destroyed(&*both, &plain(), extent(54, 1)), [extent(63, 3)]);
}

#[test]
fn a_band_and_its_guard_are_whole_tracks() {
    // Aghayev 2015 fig. 2: bands of 4 tracks and a guard of k − 1; with k = 3, two tracks after the band are destroyed.
    let three = recording("kind = 'shingled'\nhead_tracks = 3");
    assert_eq!(destroyed(&*three, &plain(), extent(90, 40)), [extent(130, 20)]);
    assert_eq!(destroyed(&*three, &plain(), extent(280, 20)), [], "beyond the last track there is nothing");
    assert_eq!(destroyed(&*three, &plain(), extent(280, 10)), [extent(290, 10)]);
    assert_eq!(three.stored_share(4), 4.0 / 6.0);
}

#[test]
fn a_narrower_head_further_inside_destroys_less() {
    let varying = recording("kind = 'shingled'\nhead_tracks = 3\nhead_steps = [{ from_share = 0.5, head_tracks = 2 }]");
    assert_eq!(destroyed(&*varying, &plain(), extent(140, 10)), [extent(150, 20)]);
    assert_eq!(destroyed(&*varying, &plain(), extent(150, 10)), [extent(160, 10)]);
}

#[test]
fn the_conventional_middle_is_rewritten_freely() {
    let middle = HorizontalConfig { split: 0.5, conventional_from: 0.4, conventional_to: 0.6 };
    let zones = [(10, 10), (10, 10), (10, 10)];
    let config = GeometryConfig::listed(1, LayoutName::Horizontal, ROTATION_NS, &zones);
    let geometry = geometry(&GeometryConfig { horizontal: Some(middle), ..config });
    let two = recording("kind = 'shingled'\nhead_tracks = 2");
    let lost = |track| destroyed(&*two, &geometry, geometry.track(track, 0));
    assert_eq!(lost(3), [geometry.track(4, 0)], "inward in the outer part");
    assert_eq!(lost(15), []);
    assert_eq!(lost(25), [geometry.track(24, 0)], "outward in the inner part");
}

#[test]
fn a_caveat_disk_damages_the_range_of_the_formula() {
    // Singh 2014 §5.2: DNOR 6 and DID 16 blocks. From max(i + 1 + 6, j + 1) to j + 16, both included.
    let caveat = recording("kind = 'caveat'\nno_overlap_sectors = 6\nisolation_sectors = 16");
    assert_eq!(destroyed(&*caveat, &plain(), extent(100, 1)), [extent(107, 10)]);
    assert_eq!(destroyed(&*caveat, &plain(), extent(100, 10)), [extent(110, 16)]);
    assert!(caveat.leaves_damage_to_host());
    // DNOR = DID: the formula's range for two sectors is i + 1 + DNOR … j + DID = 105 … 105.
    let equal = recording("kind = 'caveat'\nno_overlap_sectors = 4\nisolation_sectors = 4");
    assert_eq!(destroyed(&*equal, &plain(), extent(100, 1)), []);
    assert_eq!(destroyed(&*equal, &plain(), extent(100, 2)), [extent(105, 1)]);
}

fn interlaced_geometry(top_ratio: f64) -> Geometry {
    let config = GeometryConfig::listed(1, LayoutName::BottomThenTop, ROTATION_NS, &[(16, 10)]);
    let interlaced = InterlacedConfig { group_tracks: 4, order: TopOrder::ZigZag, top_ratio };
    geometry(&GeometryConfig { interlaced: Some(interlaced), ..config })
}

#[test]
fn a_bottom_write_destroys_both_neighbouring_tops_and_a_top_write_nothing() {
    // Groups of 4 + 4 tracks of ten sectors: bottoms 0 2 4 6 at PBA 0, 10, 20, 30; tops 1 3 5 7 at 40, 50, 60, 70.
    let (interlaced, geometry) = (recording("kind = 'interlaced'"), interlaced_geometry(1.0));
    let lost = |start, sectors| destroyed(&*interlaced, &geometry, extent(start, sectors));
    assert_eq!(lost(13, 2), [extent(43, 2), extent(53, 2)]);
    assert_eq!(lost(3, 2), [extent(43, 2)], "the outermost bottom has one neighbour");
    assert_eq!(lost(45, 3), []);
    assert_eq!(lost(0, 80), [], "bottoms, then tops: all whole");
    assert_eq!(lost(70, 20), [extent(70, 10), extent(120, 10)], "the next group's first bottom destroys the last top");
    assert_eq!(interlaced.check(&plain()).unwrap_err().key, "kind");
}

#[test]
fn tops_with_fewer_sectors_are_hit_by_angle() {
    // Nine sectors face ten: the bottom's sector 5, at 0.5 … 0.6 of a rotation, lies beside the tops' 4 and 5.
    let (interlaced, geometry) = (recording("kind = 'interlaced'"), interlaced_geometry(0.9));
    assert_eq!(destroyed(&*interlaced, &geometry, extent(15, 1)), [extent(44, 2), extent(53, 2)]);
}

#[test]
fn impossible_values_are_refused_with_a_remedy() {
    let caveat = refusal("kind = 'caveat'\nno_overlap_sectors = 17\nisolation_sectors = 16");
    assert_eq!(caveat.key, "no_overlap_sectors");
    assert!(caveat.reason.contains("no_overlap_sectors ≤ isolation_sectors"));
    assert_eq!(refusal("kind = 'block-interference'\ninterference_sectors = 0").key, "interference_sectors");
    assert!(
        refusal("kind = 'shingled'\ninterference = { s_id = 2, s_od = 2 }").reason.contains("set one of them to 1")
    );
    assert!(refusal("kind = 'shingled'").reason.contains("head_tracks = K"));
    assert!(refusal("kind = 'shingled'\nhead_tracks = 0").reason.contains("give 1"));
    assert!(
        refusal("kind = 'tiled'").reason.contains("conventional, shingled, block-interference, caveat, interlaced")
    );
    assert!(matches!(try_recording("kind = 'caveat'\nreach = 3"), Err(BuildError::Syntax(_))));
}

#[test]
fn every_kind_says_of_itself_what_its_keys_say() {
    // Name; harmless; damage left to the host; tracks of a band; DNOR and DID; stored share of bands of four tracks.
    type Said = (&'static str, bool, bool, Option<u32>, Option<(u64, u64)>, f64);
    let pair = |distances: CaveatDistances| (distances.no_overlap.0, distances.isolation.0);
    let said = |recording: &dyn Recording| -> Said {
        (
            recording.name(),
            recording.is_harmless(),
            recording.leaves_damage_to_host(),
            recording.band_tracks(),
            recording.caveat_distances().map(pair),
            recording.stored_share(4),
        )
    };
    let cases: [(&str, Said); 9] = [
        ("kind = 'conventional'", ("conventional", true, false, None, None, 1.0)),
        ("kind = 'shingled'\nhead_tracks = 1", ("shingled", true, false, None, None, 1.0)),
        ("kind = 'shingled'\nhead_tracks = 3\nband_tracks = 7", ("shingled", false, false, Some(7), None, 4.0 / 6.0)),
        ("kind = 'shingled'\ninterference = { s_id = 1, s_od = 2 }", ("shingled", false, false, None, None, 4.0 / 5.0)),
        ("kind = 'block-interference'\ninterference_sectors = 1", ("block-interference", true, false, None, None, 1.0)),
        (
            "kind = 'block-interference'\ninterference_sectors = 6",
            ("block-interference", false, false, None, None, 1.0),
        ),
        (
            "kind = 'caveat'\nno_overlap_sectors = 0\nisolation_sectors = 0",
            ("caveat", true, true, None, Some((0, 0)), 1.0),
        ),
        (
            "kind = 'caveat'\nno_overlap_sectors = 6\nisolation_sectors = 16",
            ("caveat", false, true, None, Some((6, 16)), 1.0),
        ),
        ("kind = 'interlaced'", ("interlaced", false, false, None, None, 1.0)),
    ];
    for (text, expected) in cases {
        let recording = recording(text);
        assert_eq!(said(&*recording), expected, "{text}");
        assert_eq!(said(&*recording.clone()), expected, "a copy of {text}");
    }
    for kind in KINDS {
        assert!(cases.iter().any(|(_, expected)| expected.0 == kind.name), "{} is not among them", kind.name);
    }
}

#[test]
fn what_is_as_large_as_the_disk_fits_and_what_is_larger_is_refused() {
    // Disk of thirty tracks of ten sectors. The first value of each case fits, the next one does not.
    let shingled = |words: &str| format!("kind = 'shingled'\n{words}");
    let cases = [
        ("interference_sectors", "kind = 'block-interference'\ninterference_sectors = ".to_string(), 300),
        ("isolation_sectors", "kind = 'caveat'\nno_overlap_sectors = 1\nisolation_sectors = ".into(), 299),
        ("head_tracks", shingled("head_tracks = "), 30),
        ("band_tracks", shingled("head_tracks = 3\nband_tracks = "), 28),
    ];
    for (key, words, largest) in cases {
        let fits = recording(&format!("{words}{largest}"));
        assert_eq!(fits.check(&plain()), Ok(()), "{key}");
        let refusal = recording(&format!("{words}{}", largest + 1)).check(&plain()).expect_err(key);
        assert_eq!(refusal.key, key);
    }
    let no_band = recording("kind = 'shingled'\nhead_tracks = 3\nband_tracks = 0").check(&plain());
    assert!(no_band.expect_err("a band of nothing").reason.contains("leave it out"));
    let tops = recording("kind = 'shingled'\nhead_tracks = 2").check(&interlaced_geometry(1.0));
    assert_eq!(tops.expect_err("tops lie between bottoms").key, "kind");
}

#[test]
fn a_head_wider_than_layers_look_is_refused() {
    let steps = |tracks: u32| format!("head_tracks = 2\nhead_steps = [{{ from_share = 0.5, head_tracks = {tracks} }}]");
    let cases = [
        ("head_tracks", "head_tracks = 33", (|tracks| format!("head_tracks = {tracks}")) as fn(u32) -> String),
        ("head_steps", "step from 0.5: head_tracks = 33", steps),
        ("interference", "s_id = 33", |tracks| format!("interference = {{ s_id = {tracks}, s_od = 1 }}")),
        ("interference", "s_od = 33", |tracks| format!("interference = {{ s_id = 1, s_od = {tracks} }}")),
    ];
    for (key, said, words) in cases {
        let kind = |tracks| format!("kind = 'shingled'\n{}", words(tracks));
        assert_eq!(recording(&kind(32)).stored_share(32), 32.0 / 63.0, "{key}");
        let refused = refusal(&kind(33));
        assert_eq!((refused.key, refused.reason), (key, format!("{said}: expected 1 to 32 tracks")));
    }
}

#[test]
fn steps_of_a_head_rise_from_the_outer_diameter_inwards() {
    let head = |steps: &str| format!("kind = 'shingled'\nhead_tracks = 4\nhead_steps = [{steps}]");
    let step = |share: &str, tracks: u32| format!("{{ from_share = {share}, head_tracks = {tracks} }}");
    for wrong in [
        step("0.0", 2),
        step("1.0", 2),
        step("-0.5", 2),
        step("0.5", 0),
        format!("{}, {}", step("0.5", 2), step("0.5", 3)),
        format!("{}, {}", step("0.5", 2), step("0.3", 3)),
    ] {
        assert_eq!(refusal(&head(&wrong)).key, "head_steps", "{wrong}");
    }
    let right = recording(&head(&format!("{}, {}", step("0.2", 2), step("0.6", 3))));
    let tracks_lost = |track: u64| -> u64 {
        destroyed(&*right, &plain(), extent(track * 10, 10)).iter().map(|lost| lost.sectors.0).sum::<u64>() / 10
    };
    assert_eq!([5, 6, 17, 18].map(tracks_lost), [3, 1, 1, 2], "0.2 and 0.6 of 30 tracks are 6 and 18");
    assert_eq!(right.stored_share(3), 3.0 / 6.0, "of the widest");
}

#[test]
fn an_interference_says_all_of_the_head() {
    let with = |rest: &str| format!("kind = 'shingled'\ninterference = {rest}");
    for wrong in [
        "{ s_id = 0, s_od = 1 }",
        "{ s_id = 1, s_od = 0 }",
        "{ s_id = 2, s_od = 1 }\nwidening_ns = 1",
        "{ s_id = 2, s_od = 1 }\nwidening_sectors = 1",
        "{ s_id = 2, s_od = 1 }\nhead_steps = [{ from_share = 0.5, head_tracks = 2 }]",
        "{ s_id = 2, s_od = 1 }\nhead_tracks = 2",
    ] {
        assert_eq!(refusal(&with(wrong)).key, "interference", "{wrong}");
    }
    let none = recording(&with("{ s_id = 1, s_od = 1 }"));
    assert!(none.is_harmless());
    assert_eq!(destroyed(&*none, &plain(), extent(54, 3)), []);
}

/// Returns whether two sectors share an angle, if the first is widened by `margin_ns` on both sides. They are compared
/// as intervals on a circle, in units of a nanosecond over the product of the sector counts.
fn faces(geometry: &Geometry, one: &Place, other: &Place, margin_ns: i64) -> bool {
    let interval = |place: &Place, beside: &Place, margin_ns: i64| {
        let unit = i64::from(place.track_sectors) * i64::from(beside.track_sectors);
        let width = i64::from(ROTATION_NS) * i64::from(beside.track_sectors);
        let skew_ns = i64::from(geometry.locate(place.track_start).angle_ns);
        ((skew_ns - margin_ns) * unit + i64::from(place.sector) * width, width + 2 * margin_ns * unit)
    };
    let circle = i64::from(ROTATION_NS) * i64::from(one.track_sectors) * i64::from(other.track_sectors);
    let (start, width) = interval(one, other, margin_ns);
    let (other_start, other_width) = interval(other, one, 0);
    (other_start - start).rem_euclid(circle) < width || (start - other_start).rem_euclid(circle) < other_width
}

/// Writes sector by sector in PBA order. `suffers` returns whether a write of its first place destroys the second.
fn twin(geometry: &Geometry, written: Extent, suffers: &dyn Fn(&Place, &Place) -> bool) -> Vec<bool> {
    let places: Vec<Place> = (0..geometry.sectors().0).map(|pba| geometry.locate(Pba(pba))).collect();
    let mut lost = vec![false; places.len()];
    for pba in written.start.0..written.end().0 {
        let one = &places[pba as usize];
        for (index, other) in places.iter().enumerate() {
            lost[index] |= suffers(one, other);
        }
        lost[pba as usize] = false;
    }
    lost
}

fn compare(
    recording: &dyn Recording,
    geometry: &Geometry,
    written: Extent,
    twin: &[bool],
) -> Result<(), TestCaseError> {
    recording.check(geometry).expect("fits the toy");
    let extents = destroyed(recording, geometry, written);
    let mut lost = vec![false; twin.len()];
    for extent in &extents {
        for pba in extent.start.0..extent.end().0 {
            lost[pba as usize] = true;
        }
    }
    prop_assert_eq!(&lost, twin, "{:?} wrote {:?} and destroyed {:?}", recording, written, extents);
    let ordered = extents.windows(2).all(|pair| pair[0].end() < pair[1].start);
    prop_assert!(ordered && extents.iter().all(|extent| !extent.is_empty()), "invariant 4: {:?}", extents);
    Ok(())
}

fn clip(geometry: &Geometry, start: u64, sectors: u64) -> Extent {
    let start = start % geometry.sectors().0;
    extent(start, sectors.min(geometry.sectors().0 - start))
}

proptest! {
    #[test]
    fn shingled_agrees_with_its_twin(
        head in 1..5u32, widening_ns in 0..250u64, start in 0..2000u64, sectors in 1..120u64,
        surfaces in 1..4u8, horizontal: bool, (track_skew_ns, head_skew_ns) in (0..1000u32, 0..1000u32),
        (split, conventional_to) in (0.0..1.0f64, 0.3..0.7f64),
    ) {
        let layout = if horizontal { LayoutName::Horizontal } else { LayoutName::Cylinder };
        let listed = GeometryConfig::listed(surfaces, layout, ROTATION_NS, &[(5, 12), (6, 11), (4, 7)]);
        let extras = HorizontalConfig { split, conventional_from: 0.3, conventional_to };
        let horizontal = horizontal.then_some(extras);
        let geometry = geometry(&GeometryConfig { track_skew_ns, head_skew_ns, horizontal, ..listed });
        let shingled = recording(&format!("kind = 'shingled'\nhead_tracks = {head}\nwidening_ns = {widening_ns}"));
        let written = clip(&geometry, start, sectors);
        let suffers = |one: &Place, other: &Place| {
            let inward = geometry.shingling_direction(one.radial_track) == crate::geometry::RadialDirection::Inward;
            let (first, second) = (one.radial_track as i64, other.radial_track as i64);
            let distance = if inward { second - first } else { first - second };
            one.surface == other.surface && !geometry.is_conventional(one.radial_track)
                && distance > 0 && distance < i64::from(head) && faces(&geometry, one, other, widening_ns as i64)
        };
        compare(&*shingled, &geometry, written, &twin(&geometry, written, &suffers))?;
    }

    #[test]
    fn interlaced_agrees_with_its_twin(
        start in 0..2000u64, sectors in 1..200u64, surfaces in 1..3u8, zig_zag: bool,
        ratio in prop_oneof![Just(1.0), Just(0.9), Just(0.5)], track_skew_ns in 0..1000u32,
    ) {
        let order = if zig_zag { TopOrder::ZigZag } else { TopOrder::Serpentine };
        let interlaced = Some(InterlacedConfig { group_tracks: 3, order, top_ratio: ratio });
        let listed = GeometryConfig::listed(surfaces, LayoutName::BottomThenTop, ROTATION_NS, &[(10, 12), (6, 10)]);
        let geometry = geometry(&GeometryConfig { interlaced, track_skew_ns, ..listed });
        let written = clip(&geometry, start, sectors);
        let suffers = |one: &Place, other: &Place| {
            one.surface == other.surface && one.radial_track.is_multiple_of(2)
                && one.radial_track.abs_diff(other.radial_track) == 1 && faces(&geometry, one, other, 0)
        };
        compare(&*recording("kind = 'interlaced'"), &geometry, written, &twin(&geometry, written, &suffers))?;
    }

    #[test]
    fn block_interference_agrees_with_its_twin(reach in 1..40u64, start in 0..300u64, sectors in 1..60u64) {
        let (geometry, own) = (plain(), format!("kind = 'block-interference'\ninterference_sectors = {reach}"));
        let written = clip(&geometry, start, sectors);
        let suffers = |one: &Place, other: &Place| other.pba() > one.pba() && (other.pba() - one.pba()).0 < reach;
        compare(&*recording(&own), &geometry, written, &twin(&geometry, written, &suffers))?;
    }

    #[test]
    fn caveat_agrees_with_its_twin(near in 0..20u64, more in 1..20u64, start in 0..300u64, sectors in 1..60u64) {
        let (geometry, far) = (plain(), near + more);
        let own = format!("kind = 'caveat'\nno_overlap_sectors = {near}\nisolation_sectors = {far}");
        let written = clip(&geometry, start, sectors);
        let suffers = |one: &Place, other: &Place| {
            other.pba() > one.pba() && (near + 1..=far).contains(&(other.pba() - one.pba()).0)
        };
        compare(&*recording(&own), &geometry, written, &twin(&geometry, written, &suffers))?;
    }
}
