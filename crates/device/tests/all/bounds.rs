//! Goal: the documentation of bounds names every bound in the code, and nothing else. Method: searches the sources
//! for the names of constants and fields that are bounds, and compares names, files and values with the lines of the
//! page.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const CRATES: [&str; 5] = ["device", "serve", "sim", "fuse", "fs"];
/// Suffixes of the names of constants that are bounds.
const ENDS: [&str; 12] = [
    "_MAX",
    "_KEPT",
    "_AT_ONCE",
    "_EXHAUSTED",
    "_BATCH",
    "_AT_FIRST",
    "SERIES_CAPACITY",
    "_IN_ALL",
    "_READ_PAST",
    "_STEP_BYTES",
    "_ENTRIES",
    "_SLICES",
];
/// Prefixes of the names of constants that are bounds.
const BEGINNINGS: [&str; 6] = ["WINDOW_", "SEND_AT_", "READ_BUFFER_", "GAP_", "OVERDRAFT_", "JOURNAL_BYTES"];
/// Structs in which every field is a bound.
const STRUCTURES: [&str; 4] = ["Bounds", "Limits", "PageLimits", "QueueLimits"];

/// Value of each constant that is a bound, by file and name; `None` for a field.
type Bounds = BTreeMap<(String, String), Option<String>>;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Collects the sources below `folder`, except tests, load generators and the kernel's interface.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be listed").path();
        let exempt =
            ["device/src/verify", "fs/src/verify", "fs/src/load", "zoned/trial.rs", "ublk/abi.rs", "tests", "tests.rs"];
        let is_exempt = exempt.iter().any(|end| path.ends_with(end));
        if path.is_dir() && !is_exempt {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !is_exempt {
            found.push(path);
        }
    }
}

/// Collects the bounds of one file.
fn bounds_of(file: &str, text: &str, bounds: &mut Bounds) {
    let mut structure: Option<&str> = None;
    let code = text.split("#[cfg(test)]").next().expect("there is a first part");
    for line in code.lines() {
        let words = line.trim_start().trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
        let words = words.trim_start_matches("pub ");
        if let Some((name, rest)) = words.strip_prefix("const ").and_then(|rest| rest.split_once(": ")) {
            let bounds_something = ENDS.iter().any(|end| name.ends_with(end))
                || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
            if let Some((_, value)) = rest.split_once(" = ").filter(|_| bounds_something) {
                bounds.insert((file.into(), name.into()), Some(value.trim_end_matches(';').into()));
            }
        }
        if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            structure = STRUCTURES.into_iter().find(|known| *known == name);
        } else if line == "}" {
            structure = None;
        } else if let (Some(structure), true) = (structure, line.starts_with("    pub ")) {
            let field = words.split(':').next().expect("a field has a name");
            bounds.insert((file.into(), format!("{structure}::{field}")), None);
        }
    }
}

fn in_the_code() -> Bounds {
    let mut bounds = Bounds::new();
    let crates = workspace().join("crates");
    for name in CRATES {
        let mut files = Vec::new();
        sources(&crates.join(name).join("src"), &mut files);
        for path in files {
            let file = path.strip_prefix(&crates).expect("it lies there").to_str().expect("plain names");
            bounds_of(file, &std::fs::read_to_string(&path).expect("it can be read"), &mut bounds);
        }
    }
    bounds
}

fn on_the_page() -> Bounds {
    let page = std::fs::read_to_string(workspace().join("docs/bounds.md")).expect("the page is there");
    let mut bounds = Bounds::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect();
        let [name, file, value, smallest, reason] = cells[..] else { panic!("five cells a line: {line}") };
        assert!(!smallest.is_empty() && !reason.is_empty(), "no smallest size, or no reason: {line}");
        let value = (!name.contains("::")).then(|| value.into());
        assert!(bounds.insert((file.into(), name.into()), value).is_none(), "twice: {line}");
    }
    bounds
}

#[test]
fn the_page_names_every_bound_and_no_other() {
    let (code, page) = (in_the_code(), on_the_page());
    assert!(code.len() > 50, "only {} bounds were found: {code:?}", code.len());
    let missing: Vec<_> = code.iter().filter(|(place, value)| page.get(*place) != Some(*value)).collect();
    let surplus: Vec<_> = page.iter().filter(|(place, value)| code.get(*place) != Some(*value)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "not on the page: {missing:#?}\nnot in the code: {surplus:#?}");
}
