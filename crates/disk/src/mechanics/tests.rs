//! Seek models compared with their formulas in floating point, and values that are refused.

use super::*;
use crate::geometry::{GeometryConfig, LayoutName};

fn mechanics(seek: SeekConfig) -> Result<Mechanics, String> {
    let zones = [(100_001, 10)];
    let geometry = Geometry::new(&GeometryConfig::listed(2, LayoutName::Cylinder, 10_000_000, &zones)).unwrap();
    Mechanics::new(&MechanicsConfig::plain(seek, Rotation::Exact), &geometry)
}

/// Hajkazemi 2019 §3: 2 ms at least, 20 ms over the whole radius, linear in between, and no time for no distance.
#[test]
fn linear_seeks_go_from_min_to_max_over_the_radius() {
    let mechanics = mechanics(SeekConfig::Linear { min_ns: 2_000_000, max_ns: 20_000_000 }).unwrap();
    for (distance, expected_ns) in [(0, 0), (1, 2_000_180), (50_000, 11_000_000), (100_000, 20_000_000)] {
        assert_eq!(mechanics.seek(distance), SimDuration(expected_ns), "over {distance} tracks");
    }
}

#[test]
fn curved_seeks_follow_root_then_line() {
    let mechanics = mechanics(SeekConfig::Curve {
        short_base_ns: 800_000,
        short_root_ns: 20_000,
        knee_tracks: 20_000,
        long_base_ns: 2_800_000,
        long_thousand_tracks_ns: 42_500,
    })
    .unwrap();
    for distance in [1u32, 2, 777, 19_999, 20_000] {
        let expected_ns = 800_000.0 + 20_000.0 * (distance as f64).sqrt();
        assert_eq!(mechanics.seek(distance).0, expected_ns as u64, "over {distance} tracks");
    }
    assert_eq!(mechanics.seek(20_001).0, 2_800_000 + 850_042);
    assert_eq!(mechanics.seek(100_000).0, 2_800_000 + 4_250_000);
}

#[test]
fn measured_seeks_are_interpolated() {
    let points = [(10, 1_000_000), (110, 2_000_000), (1110, 3_000_000)];
    let points = points.map(|(tracks, seek_ns)| SeekPoint { tracks, seek_ns }).to_vec();
    let mechanics = mechanics(SeekConfig::Table { points }).unwrap();
    let expected = [(0, 0), (3, 1_000_000), (10, 1_000_000), (60, 1_500_000), (110, 2_000_000), (610, 2_500_000)];
    for (distance, expected_ns) in expected.into_iter().chain([(1110, 3_000_000), (2110, 4_000_000)]) {
        assert_eq!(mechanics.seek(distance).0, expected_ns, "over {distance} tracks");
    }
}

#[test]
fn seek_and_head_switch_overlap_and_settling_follows() {
    let geometry = Geometry::new(&GeometryConfig::listed(2, LayoutName::Cylinder, 10_000_000, &[(101, 10)])).unwrap();
    let config = MechanicsConfig {
        settle_ns: 100,
        write_settle_ns: Some(500),
        head_switch_ns: 3_000,
        ..MechanicsConfig::plain(SeekConfig::Linear { min_ns: 1_000, max_ns: 11_000 }, Rotation::Exact)
    };
    let mechanics = Mechanics::new(&config, &geometry).unwrap();
    assert_eq!(mechanics.move_ns(0, false, Direction::Write), 0);
    assert_eq!(mechanics.move_ns(0, true, Direction::Read), 3_100);
    assert_eq!(mechanics.move_ns(10, true, Direction::Read), 3_100);
    assert_eq!(mechanics.move_ns(50, true, Direction::Write), 6_500);
}

/// A seek of 1,000 ns and its 500 ns of a negative settling time leave 500 ns. A change of heads alone takes 300 ns,
/// which the negative time uses up.
#[test]
fn a_negative_settling_time_shortens_moves_before_writes() {
    let geometry = Geometry::new(&GeometryConfig::listed(2, LayoutName::Cylinder, 10_000_000, &[(101, 10)])).unwrap();
    let config = |write_settle_ns| MechanicsConfig {
        settle_ns: 100,
        write_settle_ns: Some(write_settle_ns),
        head_switch_ns: 300,
        ..MechanicsConfig::plain(SeekConfig::Linear { min_ns: 1_000, max_ns: 11_000 }, Rotation::Exact)
    };
    let mechanics = Mechanics::new(&config(-500), &geometry).unwrap();
    let moves = [(0, false), (0, true), (50, false)].map(|(distance, changes)| {
        [Direction::Read, Direction::Write].map(|direction| mechanics.move_ns(distance, changes, direction))
    });
    assert_eq!(moves, [[0, 0], [400, 0], [6_100, 5_500]]);
    // Over one track the seek takes 1,000 + 10,000 / 100.
    assert!(Mechanics::new(&config(-1_100), &geometry).is_ok());
    let reason = Mechanics::new(&config(-1_101), &geometry).unwrap_err();
    assert!(reason.contains("`write_settle_ns` -1101: a seek over 1 track takes only 1100 ns"), "{reason}");
}

/// The shortest seek of this table is in its middle.
#[test]
fn every_distance_is_checked_against_a_negative_settling_time() {
    let points = [(1, 900), (50, 400), (100, 2_000)].map(|(tracks, seek_ns)| SeekPoint { tracks, seek_ns }).to_vec();
    let geometry = Geometry::new(&GeometryConfig::listed(1, LayoutName::Cylinder, 10_000_000, &[(101, 10)])).unwrap();
    let with = |write_settle_ns| {
        let seek = SeekConfig::Table { points: points.clone() };
        let config = MechanicsConfig { write_settle_ns, ..MechanicsConfig::plain(seek, Rotation::Exact) };
        Mechanics::new(&config, &geometry)
    };
    assert!(with(Some(-400)).is_ok());
    let reason = with(Some(-401)).unwrap_err();
    assert!(reason.contains("over 50 tracks takes only 400 ns"), "{reason}");
}

#[test]
fn impossible_mechanics_are_refused_with_the_reason() {
    let falling = [(20, 1), (10, 2)].map(|(tracks, seek_ns)| SeekPoint { tracks, seek_ns }).to_vec();
    let refused = [
        (SeekConfig::Linear { min_ns: 2, max_ns: 1 }, "min_ns"),
        (SeekConfig::Table { points: falling }, "must rise"),
        (SeekConfig::Table { points: vec![] }, "at least two"),
    ];
    for (seek, part) in refused {
        let reason = mechanics(seek).unwrap_err();
        assert!(reason.contains(part), "{reason} should name {part}");
    }
}

#[test]
fn a_media_rate_is_refused_where_the_platter_gives_it() {
    let geometry = Geometry::new(&GeometryConfig::listed(1, LayoutName::Cylinder, 10_000_000, &[(8, 10)])).unwrap();
    let seek = SeekConfig::Linear { min_ns: 0, max_ns: 0 };
    let config = |rotation| MechanicsConfig {
        media_bytes_per_second: Some(512 * 300_000),
        ..MechanicsConfig::plain(seek.clone(), rotation)
    };
    assert!(Mechanics::new(&config(Rotation::Exact), &geometry).unwrap_err().contains("media_bytes_per_second"));
    // 600,001 sectors of 512 bytes at 300,000 a second: two seconds and a third of 10 µs.
    let mechanics = Mechanics::new(&config(Rotation::None), &geometry).unwrap();
    assert_eq!(mechanics.transfer_at_rate(Sectors(600_001), 512), Some(2_000_003_333));
}

#[test]
fn profiles_write_mechanics_in_toml() {
    let text = r#"
        seek = { model = "linear", min_ns = 2_000_000, max_ns = 20_000_000 }
        rotation = "half"
    "#;
    let config: MechanicsConfig = toml::from_str(text).unwrap();
    let seek = SeekConfig::Linear { min_ns: 2_000_000, max_ns: 20_000_000 };
    assert_eq!(config, MechanicsConfig::plain(seek, Rotation::Half));
    let unknown = toml::from_str::<MechanicsConfig>(&text.replace("max_ns", "most_ns")).unwrap_err();
    assert!(unknown.to_string().contains("most_ns"), "{unknown}");
}
