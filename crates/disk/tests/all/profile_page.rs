//! Goal: docs/profile.md has every key of a profile, no other, and the defaults of the code. Method: a section with an
//! unknown key is refused with the list of its known keys, which is compared with the tables of the page.

use std::collections::{BTreeMap, BTreeSet};

use imbrex_disk::Profile;
use imbrex_disk::profile::{Controller, Host};

const PAGE: &str = include_str!("../../../../docs/profile.md");

/// Heading of the page, with a setting (key and value) that puts an unknown key into that section.
const SECTIONS: [(&str, &str, &str); 24] = [
    ("## The drive as a whole", "zzz", "1"),
    ("## `geometry`", "geometry.zzz", "1"),
    ("### `geometry.zones`", "geometry.zones", "[{ zzz = 1 }]"),
    ("### `geometry.horizontal`", "geometry.horizontal", "{ zzz = 1 }"),
    ("### `geometry.interlaced`", "geometry.interlaced", "{ zzz = 1 }"),
    ("### `geometry.slips`", "geometry.slips", "{ zzz = 1 }"),
    ("### `geometry.slips.listed`", "geometry.slips", "{ listed = [{ zzz = 1 }] }"),
    ("### `geometry.measured`", "geometry.measured", "{ zzz = 1 }"),
    ("### `geometry.measured.zones`", "geometry.measured", "{ zones = [{ zzz = 1 }] }"),
    ("## `mechanics`", "mechanics.zzz", "1"),
    ("### `mechanics.seek`, model `linear`", "mechanics.seek", "{ model = 'linear', zzz = 1 }"),
    ("### `mechanics.seek`, model `curve`", "mechanics.seek", "{ model = 'curve', zzz = 1 }"),
    ("### `mechanics.seek`, model `table`", "mechanics.seek", "{ model = 'table', zzz = 1 }"),
    ("### `mechanics.seek.points`", "mechanics.seek", "{ model = 'table', points = [{ zzz = 1 }] }"),
    ("### `recording`, kind `shingled`", "recording", "{ kind = 'shingled', zzz = 1 }"),
    ("### `recording.head_steps`", "recording", "{ kind = 'shingled', head_steps = [{ zzz = 1 }] }"),
    ("### `recording.interference`", "recording", "{ kind = 'shingled', interference = { zzz = 1 } }"),
    ("### `recording`, kind `block-interference`", "recording", "{ kind = 'block-interference', zzz = 1 }"),
    ("### `recording`, kind `caveat`", "recording", "{ kind = 'caveat', zzz = 1 }"),
    ("## `host`", "host.zzz", "1"),
    ("### `host.controller`", "host.controller", "{ zzz = 1 }"),
    ("### `host.controller.extra_disconnect`", "host.controller", "{ extra_disconnect = { zzz = 1 } }"),
    ("## `flash`", "flash", "{ zzz = 1 }"),
    // The kinds `conventional` and `interlaced` have no keys of their own, and no table.
    ("## `recording`", "recording", "{ kind = 'interlaced', zzz = 1 }"),
];

/// Keys that are read before the sections are, and keys that choose a variant.
const APART: [(&str, &str); 4] = [
    ("## The drive as a whole", "base"),
    ("### `mechanics.seek`, model `linear`", "model"),
    ("### `mechanics.seek`, model `curve`", "model"),
    ("### `mechanics.seek`, model `table`", "model"),
];

/// Returns the rows of the table under `heading`: key and default.
fn rows(heading: &str) -> BTreeMap<String, String> {
    let lines = PAGE.lines().skip_while(|line| *line != heading).skip(1);
    let rows = lines.take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `"));
    let cell = |line: &str, index: usize| {
        line.split(" | ").nth(index).expect("five columns").trim_matches([' ', '|', '`']).to_string()
    };
    let rows: Vec<(String, String)> = rows.map(|line| (cell(line, 0), cell(line, 2))).collect();
    let count = rows.len();
    let rows: BTreeMap<String, String> = rows.into_iter().collect();
    assert_eq!(rows.len(), count, "{heading}: a key stands twice");
    rows
}

/// Returns the keys that the code accepts, from its error about an unknown one.
fn keys(key: &str, value: &str) -> BTreeSet<String> {
    let profile = Profile::named("cmr-7200").expect("built in");
    let refusal = profile.with(&[(key.into(), value.into())]).expect_err("there is no such key").reason;
    let (_, expected) = refusal.split_once("unknown field `zzz`, ").unwrap_or_else(|| panic!("{key}: {refusal}"));
    expected.split('`').skip(1).step_by(2).map(String::from).collect()
}

#[test]
fn the_page_has_every_key_and_no_other() {
    for (heading, key, value) in SECTIONS {
        let mut page: BTreeSet<String> = rows(heading).into_keys().collect();
        for (_, apart) in APART.iter().filter(|(section, _)| *section == heading) {
            assert!(page.remove(*apart), "{heading}: `{apart}` is missing");
        }
        assert_eq!(page, keys(key, value), "{heading}: the page, then the code");
    }
}

#[test]
fn the_page_has_no_section_that_is_none() {
    let headings = PAGE.lines().filter(|line| line.starts_with("##"));
    for heading in headings {
        assert!(SECTIONS.iter().any(|(section, ..)| *section == heading), "{heading} is no section of a profile");
    }
}

#[test]
fn the_page_has_the_defaults_of_the_code() {
    let host = toml::Table::try_from(Host::default()).expect("numbers and words");
    let controller = toml::Table::try_from(Controller::default()).expect("numbers and words");
    for (heading, defaults) in [("## `host`", host), ("### `host.controller`", controller)] {
        let rows = rows(heading);
        assert!(defaults.len() >= 8, "{heading}: {defaults:?}");
        for (key, value) in defaults {
            let text = value.as_str().map_or_else(|| value.to_string(), String::from);
            assert_eq!(rows.get(&key), Some(&text), "{heading}: `{key}`");
        }
    }
}
