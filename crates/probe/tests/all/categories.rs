//! Goal: the probe recognizes every drive profile that comes with the project without knowing the profile, and never
//! calls a drive shingled that is not. Truth: the papers about these drives, and their profiles.

use imbrex_probe::{Confidence, ProbeOptions, Simulated, Verdict, probe};
use imbrex_sim::{Drive, DriveSpec};

fn verdict(drive: &str, only: &[&str]) -> Verdict {
    let spec = DriveSpec::parse(drive).expect("the words are right");
    let profile = imbrex_disk::Profile::named(&spec.profile).expect("it comes with the project");
    let mut target = Simulated::new(Drive::build(&spec, &profile).expect("it can be built"));
    let mut options = ProbeOptions {
        may_write: true,
        only: only.iter().map(|name| name.to_string()).collect(),
        budget_ns: u64::MAX,
        seed: 3,
        progress: &mut |_| true,
    };
    probe(&mut target, &mut options)
}

const CHEAP: &[&str] = &["zones", "cache-place", "cleaning"];

fn near(found: Option<f64>, truth: f64) -> bool {
    found.is_some_and(|found| (found / truth - 1.0).abs() <= 0.05)
}

#[test]
fn bands_mapping_and_order_are_found() {
    const MIB: f64 = 1048576.0;
    for (drive, bands_mib, mapping, order, trigger_s) in [
        // Aghayev 2015 table 1, §4.5 and §4.7; table 3 for the larger drive.
        ("emulated-smr-1", [40.0; 3], "static", None, None),
        ("emulated-smr-2", [25.0; 3], "static", None, None),
        ("emulated-smr-3", [20.0; 3], "dynamic", Some("by address"), Some(1.0)),
        ("seagate-st5000as0011", [36.0, 29.8, 17.0], "static", Some("fifo"), Some(1.2)),
        ("seagate-st8000as0011", [40.0, 32.5, 15.0], "static", Some("fifo"), Some(1.2)),
    ] {
        let found = verdict(drive, &["band-size"]);
        for (name, truth) in ["band_bytes_od", "band_bytes_md", "band_bytes_id"].into_iter().zip(bands_mib) {
            assert!(near(found.number(name), truth * MIB), "{drive}, {name}: {:#?}", found.property(name));
        }
        assert_eq!(found.word("mapping"), Some(mapping), "{drive}: {:#?}", found.property("mapping"));
        assert_eq!(found.word("cleaning_order"), order, "{drive}: {:#?}", found.property("cleaning_order"));
        if let Some(seconds) = trigger_s {
            assert!(near(found.number("idle_trigger"), seconds), "{drive}: {:#?}", found.property("idle_trigger"));
        }
    }
}

/// Aghayev 2015 table 2, within 2 %, and §4.3.1: half tracks, two tracks of out-of-band data, merges every 240th
/// packet.
#[test]
fn the_seagates_cache_is_measured() {
    let found = verdict("seagate-st5000as0011", &["journal"]);
    let about = |name: &str, truth: f64, share: f64| {
        let number = found.number(name).expect("it is found");
        assert!((number / truth - 1.0).abs() <= share, "{name}: {number}, not {truth}");
    };
    about("cache_writes_4k_depth_1", 22_800.0, 0.02);
    about("map_entries", 182_270.0, 0.02);
    about("cache_bytes", 67_830.0 * 262_144.0, 0.02);
    about("cache_raw_bytes", 100.0 * 1073741824.0, 0.02);
    about("journal_quantum", 0.5, 0.03);
    about("journal_out_of_band", 2.0, 0.03);
    about("packet_writes", 31.0, 0.0);
    about("map_merge_every", 240.0, 0.0);
    about("map_merge_time", 325.0, 0.02);
}

/// Aghayev 2015 §4.9: strokes of 18 to 20 GiB at the outer and 4 GiB at the inner diameter. Conventional drives have
/// none.
#[test]
fn zones_are_told_apart() {
    const GIB: f64 = 1073741824.0;
    let found = verdict("seagate-st5000as0011", &["zones"]);
    let zone = |name: &str| found.number(name).expect("it is found") / GIB;
    assert_eq!(found.word("layout"), Some("horizontal"));
    assert!((18.0..20.5).contains(&zone("zone_bytes_od")) && (3.8..4.5).contains(&zone("zone_bytes_id")));
    for drive in ["cmr-5900", "emulated-smr-1", "emulated-smr-3"] {
        assert_eq!(verdict(drive, &["zones"]).word("layout"), Some("vertical"), "{drive}");
    }
}

#[test]
fn shingled_drives_are_told_apart() {
    for (drive, medium, place, cleaning) in [
        // Aghayev 2015 table 1 and §4.3 to §4.5.
        ("emulated-smr-1", "disk", Some("id"), "lazy"),
        ("emulated-smr-2", "flash", None, "lazy"),
        ("emulated-smr-3", "disk", Some("several"), "aggressive"),
        // Aghayev 2015 table 3.
        ("seagate-st5000as0011", "disk", Some("od"), "aggressive"),
        ("seagate-st8000as0011", "disk", Some("od"), "aggressive"),
        // Public measurements of 2026: the cache is at the inner diameter, and cleaned after hours.
        ("seagate-st8000as0022", "disk", Some("id"), "late"),
        ("seagate-st8000dm004", "disk", Some("id"), "late"),
    ] {
        let found = verdict(drive, CHEAP);
        let facts = (found.word("type"), found.word("cache_medium"), found.word("cache_place"), found.word("cleaning"));
        let expected = (Some("shingled"), Some(medium), place, Some(cleaning));
        assert_eq!(facts, expected, "{drive}: {:#?}", found.properties);
    }
}

#[test]
fn drives_without_overlap_are_conventional() {
    for drive in ["cmr-7200", "cmr-5900", "seagate-st5000as0011+conventional", "imr-1t+conventional"] {
        let found = verdict(drive, CHEAP);
        assert_eq!(found.word("type"), Some("conventional"), "{drive}: {:#?}", found.properties);
    }
}

/// A conventional drive that keeps one log has its blocks elsewhere once written, and cleans nothing. So the drive
/// answers like a shingled one with the same layer, of which nothing is known for sure.
#[test]
#[ignore = "takes a minute: `make test-long`"]
fn one_log_on_a_conventional_drive_is_not_surely_shingled() {
    let drive = "cmr-7200+log-structured:geometry.tracks=30000";
    let found = verdict(drive, &["cleaning", "band-size"]);
    let kind = found.property("type").expect("the type was looked for");
    assert!(kind.confidence < Confidence::High, "{drive}: {kind:#?}");
}

/// Hajkazemi 2019 §2.1: writes to bottom tracks rewrite their neighbours; §2.2 to §2.4 and §5: layers that move hot
/// tracks, or buffer.
#[test]
fn interlaced_drives_are_told_apart() {
    for (layer, bottoms, hot) in [
        ("imr-rmw", "rewritten in place", Some("left where they are")),
        ("track-flip", "rewritten in place", Some("moved")),
        ("track-cache", "rewritten in place", Some("moved")),
        ("track-map", "rewritten in place", Some("moved")),
        ("top-buffer", "buffered", None),
        ("write-buffer", "buffered", None),
    ] {
        let found = verdict(&format!("imr-1t+{layer}"), &[]);
        let facts = (found.word("type"), found.word("bottom_writes"), found.word("hot_tracks"));
        assert_eq!(facts, (Some("interlaced"), Some(bottoms), hot), "{layer}: {:#?}", found.properties);
        // Groups of 128 tracks of 2 MiB, bottom and top.
        let is_near = near(found.number("stretch_bytes"), 268_435_456.0);
        assert!(bottoms == "buffered" || is_near, "{layer}: {:#?}", found.property("stretch_bytes"));
    }
}

/// Cache regions are smaller than the stretch that the probe writes: no latency is fixed there, but blocks move.
#[test]
fn a_cache_of_small_parts_is_no_conventional_drive() {
    for size in ["1MiB", "4MiB", "5MiB"] {
        let found = verdict(&format!("emulated-smr-1:region_size={size}"), CHEAP);
        let facts = (found.word("type"), found.word("cache_medium"));
        assert_eq!(facts, (Some("shingled"), Some("disk")), "{size}: {:#?}", found.properties);
    }
}

/// In a cache that has just been filled, small regions are merged while copies are made: a block that was moved home is
/// no copy.
#[test]
#[ignore = "fills 37 GiB: `make test-long`"]
fn a_full_cache_of_small_regions_is_not_placed_where_its_blocks_went_home() {
    let found = verdict("emulated-smr-1:region_size=2MiB", &["cache-place", "cache-size"]);
    let place = found.property("cache_place").expect("it was asked");
    assert!(
        found.word("cache_place") == Some("id") || place.confidence != imbrex_probe::Confidence::High,
        "{place:#?}"
    );
}

/// The drive exploits unused neighbours: it writes in place until they hold data, and reads nothing from unused
/// sectors.
#[test]
fn an_empty_interlaced_drive_is_not_vouched_for() {
    let found = verdict("imr-1t+imr-rmw:skip_dead=on", &["type"]);
    assert!(!matches!(found.word("type"), Some("conventional" | "shingled")), "{:#?}", found.properties);
}

/// A cache in a thousand sets fills unevenly: its size must be found, or have a lower confidence.
#[test]
#[ignore = "takes a minute: `make test-long`"]
fn what_a_cache_in_many_sets_takes_is_not_said_for_sure() {
    let found = verdict("emulated-smr-1:region_size=1MiB,cache_size=1GiB", &[]);
    let size = found.property("cache_bytes").expect("it was asked");
    let is_right = near(found.number("cache_bytes"), 1_073_741_824.0);
    assert!(is_right || size.confidence != imbrex_probe::Confidence::High, "{size:#?}");
}
