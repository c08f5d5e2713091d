//! Goal: the probe says of every drive that comes with the project what it is, without having seen its profile, and never
//! calls a drive shingled that is not. Truth: the papers' words on these drives, and their profiles.

use imbrex_probe::{probe, Options, Simulated, Value, Verdict};
use imbrex_sim::{Drive, DriveSpec};

fn verdict(drive: &str, only: &[&str]) -> Verdict {
    let spec = DriveSpec::parse(drive).expect("the words are right");
    let profile = imbrex_disk::Profile::named(&spec.profile).expect("it comes with the project");
    let mut target = Simulated::new(Drive::build(&spec, &profile).expect("it can be built"));
    let mut options = Options {
        may_write: true,
        only: only.iter().map(|name| name.to_string()).collect(),
        budget_ns: u64::MAX,
        seed: 3,
        progress: &mut |_| true,
    };
    probe(&mut target, &mut options)
}

const CHEAP: &[&str] = &["rotation", "type", "cache-place", "cleaning"];

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
        // Public measurements of 2026: the cache is at the inner diameter, cleaned after hours.
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
fn drives_without_overlap_are_never_called_shingled() {
    for drive in ["cmr-7200", "cmr-5900", "seagate-st5000as0011+conventional", "imr-1t", "imr-1t+track-map"] {
        let found = verdict(drive, CHEAP);
        let kind = found.property("type").map(|property| &property.value);
        let is_conventional = kind == Some(&Value::Word("conventional"));
        assert!(is_conventional || kind == Some(&Value::CannotTell), "{drive}: {:#?}", found.properties);
        assert!(is_conventional || drive.starts_with("imr"), "{drive}: {:#?}", found.properties);
    }
}
