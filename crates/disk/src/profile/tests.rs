//! Goal: every built-in profile is a drive of the capacity on its name plate, and impossible values are refused with
//! place, reason and remedy. Method: capacities by closed form from the profile's own format; errors by example.

use super::*;
use crate::units::Pba;

const TOY: &str = r#"name = "toy"
summary = "a toy"
default_layer = "conventional"

[geometry]
layout = "cylinder"
surfaces = 2
rotation_ns = 10_000_000
zones = [{ tracks = 30, track_sectors = 100 }, { tracks = 20, track_sectors = 80 }]

[mechanics.seek]
model = "linear"
min_ns = 1_000_000
max_ns = 10_000_000

[recording]
kind = "shingled"
head_tracks = 2

[host]
queue = 4

[layer.set-associative]
cache_share = "10%"
regions = 7
safe = true
"#;

fn set(overrides: &[(&str, &str)]) -> Result<Profile, ProfileError> {
    Profile::parse("toy.toml", TOY, &pairs(overrides))
}

fn pairs(overrides: &[(&str, &str)]) -> Vec<(String, String)> {
    overrides.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn toy() -> Profile {
    set(&[]).expect("valid")
}

/// Returns the error of the toy with `from` replaced by `to`.
fn error_with(from: &str, to: &str) -> ProfileError {
    assert!(TOY.contains(from), "the toy has no '{from}'");
    Profile::parse("toy.toml", &TOY.replace(from, to), &[]).expect_err(to)
}

fn assert_error(error: &ProfileError, place: &str, words: &[&str]) {
    assert_eq!(error.place, place, "{error}");
    for word in words {
        assert!(error.reason.contains(word), "'{word}' is missing in: {error}");
    }
}

#[test]
fn built_in_profiles_are_named_as_their_files_and_can_be_built() {
    for (name, text) in BUILT_IN {
        let profile = Profile::parse(name, text, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name, *name);
        assert_eq!(profile.default_layer == "conventional", profile.recording.is_harmless(), "{name}");
        assert_eq!(profile.density_gain == 1.0, profile.recording.is_harmless(), "{name}");
        assert!(profile.disk().geometry.sectors() > Sectors::ZERO);
        assert!(Profile::named(name).is_some());
    }
    assert!(Profile::named("no-such-drive").is_none());
}

/// Returns the bytes that a drive keeps from its user, and the share of the rest that the user gets: caches and guards
/// by the figures of the papers, worked out by hand.
fn reserved(name: &str) -> (f64, f64) {
    const GIB: f64 = (1u64 << 30) as f64;
    // Bands of 20 tracks with a guard of one track. Regions with a guard of 4095 sectors. On the drive of Cassuto,
    // 12,000 regions with a guard of 2999 sectors.
    let band = 20.0 / 21.0;
    let region = |mebibytes: f64| mebibytes * 2048.0 / (mebibytes * 2048.0 + 4095.0);
    match name {
        "seagate-st5000as0011" | "seagate-st5000as0011-as-sold" => (100.0 * GIB, band),
        "seagate-st8000as0011" | "seagate-st8000as0011-as-sold" => (125.0 * GIB, band),
        "seagate-st8000as0022" => (28.0 * GIB, 2.0 / 3.0),
        "seagate-st8000dm004" | "seagate-st8000dm004-as-sold" => (48.0 * GIB, 16.0 / 17.0),
        "emulated-smr-1" => (37.2 * GIB, region(40.0)),
        "emulated-smr-2" => (0.0, region(25.0)),
        "emulated-smr-3" => (37.2 * GIB, region(20.0)),
        // Zones of 65,536 sectors with a guard of one track, 365 sectors on average; 64 zones of 16 tracks out of 1084.
        "hm-zoned" => (0.0, 65_536.0 / 65_901.0),
        "strict-append" => (0.0, 1024.0 / 1084.0),
        "cassuto-307g" => (0.0, 50_000.0 / 52_999.0),
        _ => (0.0, 1.0),
    }
}

#[test]
fn built_in_profiles_hold_what_their_name_plates_say() {
    for (name, _) in BUILT_IN {
        let profile = Profile::named(name).expect("built in");
        let physical = profile.disk().geometry.sectors().0 as f64 * f64::from(profile.sector_bytes);
        let (cache, share) = reserved(name);
        let stated = profile.nameplate_bytes.expect("every built-in profile states it") as f64;
        let ratio = (physical * share - cache) / stated;
        assert!((0.99..=1.01).contains(&ratio), "{name}: {ratio} of what its name plate says");
    }
}

#[test]
fn the_drives_of_the_skylight_paper_have_its_bands_and_zones() {
    // Aghayev 2015 table 3 and §4.7: bands from the outer to the inner diameter; §4.9: zones on a surface.
    let cases = [
        ("seagate-st5000as0011", (36.0, 17.0), (18.0, 20.0), 4.0),
        ("seagate-st8000as0011", (40.0, 15.0), (38.0, 40.0), 5.0),
    ];
    for (name, (outer, inner), (widest_from, widest_to), narrowest) in cases {
        let disk = Profile::named(name).expect("built in").disk();
        let zones = disk.geometry.zones();
        let band_tracks = disk.recording.band_tracks().expect("a format with bands");
        let band_mebibytes = |zone: usize| f64::from(zones[zone].track_sectors * band_tracks) / 2048.0;
        assert!((band_mebibytes(0) / outer - 1.0).abs() < 0.01, "{name}: {}", band_mebibytes(0));
        assert!((band_mebibytes(zones.len() - 1) / inner - 1.0).abs() < 0.01, "{name}");
        let user_gibibytes: Vec<f64> = zones
            .iter()
            .map(|zone| f64::from(zone.tracks) * f64::from(zone.track_sectors) / 2_097_152.0 * 20.0 / 21.0)
            .collect();
        assert!(user_gibibytes[0] >= widest_from && user_gibibytes[0] <= widest_to, "{name}: {}", user_gibibytes[0]);
        let least = user_gibibytes.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((least / narrowest - 1.0).abs() < 0.12, "{name}: {least}");
    }
    // §4.7: 30 MiB at 2.5 TB of user data. Its physical position is 2.5 TB · 21/20 and the cache before it.
    let disk = Profile::named("seagate-st5000as0011").expect("built in").disk();
    let middle = crate::Pba((2.5e12 / 512.0 * 21.0 / 20.0) as u64 + 100 * 2_097_152);
    let band_mebibytes = f64::from(disk.geometry.locate(middle).track_sectors) * 20.0 / 2048.0;
    assert!((band_mebibytes / 30.0 - 1.0).abs() < 0.05, "{band_mebibytes}");
}

#[test]
fn whole_strokes_take_what_the_papers_say() {
    // Aghayev 2015 §4.3: 16 ms from the inner to the outer diameter; Hajkazemi 2019 §3: 2 to 20 ms.
    for (name, from_ms, to_ms) in [("seagate-st5000as0011", 15.5, 16.5), ("imr-20t", 20.0, 20.0)] {
        let disk = Profile::named(name).expect("built in").disk();
        let stroke_ms = disk.mechanics.seek(disk.geometry.radial_tracks() - 1).as_millis_f64();
        assert!(from_ms <= stroke_ms && stroke_ms <= to_ms, "{name}: {stroke_ms} ms");
    }
}

#[test]
fn a_longer_seek_takes_no_less_time() {
    for (name, _) in BUILT_IN {
        let disk = Profile::named(name).expect("built in").disk();
        let distances: Vec<u32> = (1..disk.geometry.radial_tracks()).step_by(97).collect();
        for pair in distances.windows(2) {
            let (short, long) = (disk.mechanics.seek(pair[0]), disk.mechanics.seek(pair[1]));
            assert!(short <= long, "{name}: {short} over {} tracks, {long} over {}", pair[0], pair[1]);
        }
    }
}

#[test]
fn skews_cover_track_switches() {
    // Otherwise sequential access would lose a rotation at every track.
    for (name, _) in BUILT_IN {
        let profile = Profile::named(name).expect("built in");
        let mechanics = profile.disk().mechanics.clone();
        if mechanics.rotation() == crate::mechanics::Rotation::None {
            continue;
        }
        let interlaced = profile.disk().geometry.is_interlaced();
        let track_ns = mechanics.move_ns(if interlaced { 2 } else { 1 }, false, crate::Direction::Write);
        assert!(track_ns <= u64::from(profile.geometry.track_skew_ns), "{name}: {track_ns} ns");
        if profile.geometry.surfaces > 1 {
            let head_ns = mechanics.move_ns(0, true, crate::Direction::Write);
            assert!(head_ns <= u64::from(profile.geometry.head_skew_ns), "{name}: {head_ns} ns");
        }
    }
}

#[test]
fn cached_writes_on_the_drive_of_cassuto_take_1_04_ms() {
    // Cassuto 2010 fig. 6: 750,000 writes in 780 s. Each goes to the fill point of one of the 120 cache regions at the
    // outer diameter, drawn uniformly; a region and its guard are 52,999 sectors.
    let mut actuator = crate::Actuator::new(Profile::named("cassuto-307g").expect("built in").disk());
    let mut fill = [0u64; 120];
    let mut random = 88_172_645_463_325_252u64;
    let mut now = crate::SimTime::ZERO;
    let writes = 100_000;
    for _ in 0..writes {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let region = (random % 120) as usize;
        let start = crate::Pba(region as u64 * 52_999 + fill[region] % 49_992);
        fill[region] += 8;
        let extent = crate::Extent::new(start, Sectors(8));
        let access = crate::Access { direction: crate::Direction::Write, extent, purpose: crate::Purpose::InPlace };
        now += actuator.access(now, &access).total();
    }
    let mean_ms = now.0 as f64 / 1e6 / f64::from(writes);
    assert!((mean_ms / 1.04 - 1.0).abs() < 0.01, "{mean_ms} ms");
}

#[test]
fn every_value_of_a_built_in_profile_has_its_source() {
    // A value has a comment on its line, or lies in a section or under a comment that covers it.
    for (name, text) in BUILT_IN {
        let mut covered = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            let is_assignment = line.contains('=') && !line.starts_with('#') && !line.starts_with('[');
            let names_itself = ["name", "summary", "default_layer", "density_gain", "density_source", "layout", "kind"];
            if line.is_empty() {
                covered = false;
            } else if line.contains('#') && !is_assignment {
                covered = true;
            } else if is_assignment && !names_itself.contains(&line.split(' ').next().expect("not empty")) {
                assert!(covered || line.contains('#'), "{name}.toml:{}: '{line}' has no source", index + 1);
            }
        }
    }
}

#[test]
fn errors_name_line_reason_and_remedy() {
    assert_error(&error_with("queue = 4", "queeu = 4"), "toy.toml:21", &["queeu", "expected one of", "queue"]);
    assert_error(&error_with("queue = 4", "queue = 0"), "toy.toml:21", &["host.queue", "give 1 or more"]);
    assert_error(
        &error_with("queue = 4", "queue = \"four\""),
        "toy.toml:21",
        &["expected a whole number from 0 to 4294967295"],
    );
    assert_error(&error_with("queue = 4", "write_cache_bytes = 100"), "toy.toml:21", &["0 sectors", "give 0 for off"]);
    assert_error(&error_with("queue = 4", "schedule = \"lifo\""), "toy.toml:21", &["fifo, elevator, sptf"]);
    assert_error(&error_with("surfaces = 2", "surfaces = 0"), "toy.toml:7", &["at least one"]);
    assert_error(&error_with("head_tracks = 2", "head_tracks = 0"), "toy.toml:18", &["give 1"]);
    assert_error(&error_with("head_tracks = 2", "heads = 2"), "toy.toml:18", &["heads", "head_tracks"]);
    assert_error(&error_with("kind = \"shingled\"", "kind = \"tiled\""), "toy.toml:17", &["known kinds: conventional"]);
    assert_error(&error_with("kind = \"shingled\"\n", ""), "toy.toml:16", &["give kind = one of"]);
    let band = error_with("head_tracks = 2", "head_tracks = 2\nband_tracks = 20");
    assert_error(&band, "toy.toml:19", &["band of 20 tracks", "zone of 20 tracks", "smaller band"]);
    assert_error(&error_with("queue = 4", "queue = 4 4"), "toy.toml:21", &["expected"]);
    assert_error(
        &error_with("regions = 7", "regions = [7]"),
        "toy.toml:25",
        &["layer.set-associative.regions", "quotes"],
    );
    let gain = error_with("\n[geometry]", "density_gain = 1.2\n[geometry]");
    assert_error(&gain, "toy.toml:4", &["density_source"]);
    let seek = error_with("min_ns = 1_000_000", "min_ns = 11_000_000");
    assert_error(&seek, "toy.toml:13", &["min_ns", "in order"]);
    let caveat_text = "kind = \"caveat\"\nno_overlap_sectors = 9\nisolation_sectors = 8";
    let text = TOY.replace("kind = \"shingled\"\nhead_tracks = 2", caveat_text);
    let caveat = Profile::parse("toy.toml", &text, &[]).expect_err("DNOR is above DID");
    assert_error(&caveat, "toy.toml:18", &["DNOR of 9", "DID of 8", "no_overlap_sectors ≤ isolation_sectors"]);
}

#[test]
fn a_top_track_holds_no_more_than_a_bottom_one() {
    let interlaced = &TOY
        .replace("\"cylinder\"", "\"bottom-then-top\"")
        .replace("kind = \"shingled\"\nhead_tracks = 2", "kind = \"interlaced\"")
        .replace("[host]", "[geometry.interlaced]\ntop_ratio = 1.1\n\n[host]");
    let error = Profile::parse("imr.toml", interlaced, &[]).expect_err("tops above bottoms");
    assert_error(&error, "imr.toml:20", &["top_ratio"]);
}

#[test]
fn overrides_are_set_before_the_check() {
    let profile = set(&[
        ("geometry.surfaces", "3"),
        ("geometry.zones.1.tracks", "10"),
        ("mechanics.seek.max_ms", "20"),
        ("host.write_cache_bytes", "4KiB"),
        ("host.age_limit_ns", "5us"),
        ("host.schedule", "sptf"),
        ("layer.set-associative.cache_share", "2%"),
        ("layer.s-blocks.sections", "5"),
    ]);
    let profile = profile.expect("all are right");
    assert_eq!(profile.disk().geometry.sectors(), Sectors(3 * (30 * 100 + 10 * 80)));
    // 20 ms over the 39 tracks from the outermost to the innermost.
    assert_eq!(profile.disk().mechanics.seek(39), crate::SimDuration::from_millis(20));
    assert_eq!((profile.host.write_cache_bytes, profile.host.schedule.as_str()), (4096, "sptf"));
    assert_eq!(profile.host.age_limit_ns, 5_000);
    assert_eq!(profile.parameters_for("set-associative")[0], ("cache_share".into(), "2%".into()));
    assert_eq!(profile.parameters_for("s-blocks"), pairs(&[("sections", "5")]));
}

#[test]
fn a_kind_and_its_keys_are_changed_together() {
    let keys = [("recording", "{ kind = 'block-interference', interference_sectors = 6 }")];
    assert_eq!(set(&keys).expect("a whole section").disk().recording.name(), "block-interference");
    let keys = [("recording.kind", "block-interference"), ("recording.interference_sectors", "6")];
    assert_error(&set(&keys).expect_err("head_tracks is left"), "recording.kind", &["head_tracks"]);
    let unknown = set(&[("recording.kind", "wavy")]).expect_err("there is none");
    assert!(unknown.to_string().starts_with("recording.kind: unknown kind"), "the key is said once: {unknown}");
}

#[test]
fn errors_of_overrides_name_the_key() {
    let error = |key: &str, value: &str| set(&[("host.queue", "8"), (key, value)]).expect_err(key);
    assert_error(&error("host.quue", "9"), "host.quue", &["unknown field `quue`", "`queue`", "`schedule`"]);
    assert_error(&error("mechanics.seek.top_ms", "9"), "mechanics.seek.top_ms", &["top_ns", "max_ns"]);
    assert_error(&error("mechanic.settle_ns", "9"), "mechanic.settle_ns", &["`mechanics`", "`geometry`", "`host`"]);
    assert_error(&error("recording.heads", "9"), "recording.heads", &["`head_tracks`"]);
    assert_error(&error("host.queue", "many"), "host.queue", &["expected a whole number from 0 to 4294967295"]);
    assert_error(&error("geometry.surfaces", "0"), "geometry.surfaces", &["at least one"]);
    assert_error(&error("mechanics.seek.max_ms", "0.5"), "mechanics.seek.max_ms", &["max_ns"]);
    assert_error(&error("host.write_cache_bytes", "4 apples"), "host.write_cache_bytes", &["expected a whole number"]);
    assert_error(&error("host.queue.depth", "9"), "host.queue.depth", &["is a value, not a section"]);
    assert_error(&error("geometry.zones.7.tracks", "9"), "geometry.zones.7.tracks", &["number of an item"]);
    assert_error(&error("host.", "9"), "host.", &["words with dots"]);
}

#[test]
fn parameters_are_text_as_a_user_would_write_it() {
    let expected = pairs(&[("cache_share", "10%"), ("regions", "7"), ("safe", "on")]);
    assert_eq!(toy().parameters_for("set-associative"), expected);
    assert_eq!(toy().parameters_for("conventional"), []);
}

#[test]
fn a_grown_drive_holds_what_is_asked_with_zones_in_proportion() {
    let (small, wanted) = (toy(), Sectors(92_001));
    assert_eq!(small.disk().geometry.sectors(), Sectors(2 * (3000 + 1600)));
    let grown = small.grown(wanted);
    let sectors = grown.disk().geometry.sectors();
    // Ten times, rounded up by at most a track on each surface of each zone.
    assert!(sectors >= wanted && sectors.0 <= 92_001 + 2 * (100 + 80), "{sectors:?}");
    assert_eq!(small.grown(Sectors(100)).disk().geometry.sectors(), small.disk().geometry.sectors());
    let wider = grown.with(&pairs(&[("geometry.surfaces", "1")])).expect("valid");
    assert!(wider.disk().geometry.sectors() >= wanted, "growth is kept over later overrides");
}

/// Every second track is a bottom; 90 % and 50 % of 4096 sectors are 3686 and 2048.
#[test]
fn the_gain_of_an_interlaced_drive_follows_from_what_its_tops_hold() {
    let imr = Profile::named("imr-1t").expect("built in");
    for (ratio, top_sectors) in [("1.0", 4096.0), ("0.9", 3686.0), ("0.5", 2048.0)] {
        let set = imr.with(&pairs(&[("geometry.interlaced.top_ratio", ratio)])).expect("valid");
        let gain = 1.4 * (4096.0 + top_sectors) / (2.0 * 4096.0);
        assert!((set.density_gain - gain).abs() < 1e-12, "{ratio}: {}", set.density_gain);
        let sectors = |profile: &Profile| profile.disk().geometry.sectors().0 as f64;
        let share = sectors(&set) / sectors(&imr);
        assert!((set.density_gain / imr.density_gain - share).abs() < 1e-12, "capacity and gain fall alike");
        assert_eq!(set.conventional().density_gain, 1.0);
    }
    let slipped =
        imr.with(&pairs(&[("geometry.slips.random_tracks", "100"), ("geometry.slips.random_sectors_max", "9")]));
    assert_eq!(slipped.expect("valid").density_gain, 1.4, "its conventional twin lacks them too");
}

/// A baseline differs from its drive in recording alone, so every sector lies where it does on the drive.
#[test]
fn the_conventional_twin_keeps_layout_skews_and_mechanics() {
    for name in Profile::names() {
        let profile = Profile::named(name).expect("built in");
        let twin = profile.conventional();
        let (disk, twin_disk) = (profile.disk(), twin.disk());
        assert!(twin_disk.recording.is_harmless(), "{name}");
        assert_eq!((twin.default_layer.as_str(), twin.density_gain), ("conventional", 1.0), "{name}");
        let sectors = disk.geometry.sectors();
        assert_eq!(twin_disk.geometry.sectors(), sectors, "{name}");
        for part in 0..1000 {
            let pba = Pba(sectors.0 * part / 1000);
            assert_eq!(twin_disk.geometry.locate(pba), disk.geometry.locate(pba), "{name}: {pba:?}");
        }
        assert_eq!(twin_disk.mechanics.seek(1000), disk.mechanics.seek(1000), "{name}");
    }
    let twin = Profile::named("imr-1t").expect("built in").conventional();
    let slower = twin.with(&pairs(&[("mechanics.seek.max_ms", "30")])).expect("valid");
    assert!(slower.disk().recording.is_harmless(), "it stays conventional over later overrides");
}
