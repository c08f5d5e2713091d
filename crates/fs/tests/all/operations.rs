//! Goal: docs/fs/operations.md lists every message of `imbrex fs check`, `scrub` and `salvage`, and of a mount that is
//! refused or continues without a device, and no message that is never printed. Method: the string literals of the
//! sources are compared with the rows of the page's tables. The text between a literal's placeholders must be in one
//! row, in order.

use std::collections::BTreeSet;
use std::path::Path;

use imbrex_fs::FsError;
use imbrex_fs::executor::Stalled;

/// The sources of messages, with the relevant functions if not all are.
const SOURCES: [(&str, &[&str]); 46] = [
    ("cli/src/fs/check.rs", &[]),
    ("cli/src/fs/scrub.rs", &[]),
    ("cli/src/fs/salvage.rs", &[]),
    ("cli/src/fs/devices.rs", &[]),
    ("cli/src/fs/mod.rs", &["tell_missing"]),
    ("cli/src/fs/mount.rs", &["open"]),
    ("cli/src/fs/asking.rs", &["ask", "give"]),
    ("cli/src/fs/stat.rs", &["ask"]),
    ("cli/src/fs/umount.rs", &["wait_for_end"]),
    ("cli/src/fs/mkfs.rs", &["check_meta_size", "make_file"]),
    ("cli/src/displaced.rs", &[]),
    ("cli/src/interrupt.rs", &[]),
    ("cli/src/output.rs", &[]),
    ("device/src/media/host_file.rs", &["warning", "full_disk_warning"]),
    ("safety/src/survey.rs", &[]),
    ("fs/src/core/mount/members.rs", &[]),
    ("fs/src/core/mount/mod.rs", &[]),
    ("fs/src/core/repair/scrub.rs", &[]),
    ("fs/src/core/mount/make.rs", &["refuse_used", "wipe_rest"]),
    ("fs/src/core/hot/mod.rs", &["claim_copies"]),
    ("fs/src/core/repair/replace.rs", &["array"]),
    ("fs/src/salvage/mod.rs", &[]),
    ("fs/src/salvage/drives.rs", &[]),
    ("fs/src/salvage/scan.rs", &[]),
    ("fs/src/format/superblock_coding.rs", &[]),
    ("fs/src/format/change_coding.rs", &[]),
    ("fs/src/format/coding.rs", &[]),
    ("fs/src/journal/checkpoint.rs", &[]),
    ("fs/src/journal/checksums.rs", &[]),
    ("fs/src/journal/log.rs", &[]),
    ("fs/src/array/mod.rs", &["claim"]),
    ("fs/src/array/rows.rs", &[]),
    ("fs/src/store/mod.rs", &["check_option", "make", "unfit", "unknown"]),
    ("fs/src/store/bands/mod.rs", &["claim"]),
    ("fs/src/store/caveat/mod.rs", &["claim"]),
    ("fs/src/store/strict_append/mod.rs", &["claim", "new"]),
    ("fs/src/hot/free_extents.rs", &["claim"]),
    ("fs/src/hot/mod.rs", &["named"]),
    ("fs/src/namespace/check.rs", &[]),
    ("fs/src/core/mount/sound.rs", &[]),
    ("fs/src/format/check_change.rs", &[]),
    ("fs/src/format/check_superblock.rs", &[]),
    ("fs/src/device/file.rs", &[]),
    ("fs/src/device/mod.rs", &["check"]),
    ("fs/src/device/linux.rs", &[]),
    ("fs/src/device/emulated.rs", &[]),
];

/// A message of `mkfs` and `mount -o` that stands in one of these functions.
const OF_OTHERS: &str = "cleaner=files is for store log";

/// Calls whose string literals no user sees, because they report our own mistakes.
const OWN_MISTAKES: [&str; 4] = ["assert", ".expect(", "panic!(", "unreachable!("];

/// Returns the text of function `name`, up to its closing brace.
fn function<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let start = source.find(&format!("fn {name}("))?;
    let line = source[..start].rfind('\n').map_or(0, |at| at + 1);
    let indent: String = source[line..].chars().take_while(|char| *char == ' ').collect();
    let end = source[start..].find(&format!("\n{indent}}}\n"))?;
    Some(&source[start..start + end])
}

/// Returns the string literals of a source that users see.
fn literals(source: &str) -> Vec<String> {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = code.join("\n").replace("'\"'", "' '");
    let (mut found, mut statement, mut rest) = (Vec::new(), String::new(), code.as_str());
    while let Some(start) = rest.find('"') {
        let before = &rest[..start];
        match before.rfind(';') {
            Some(at) => statement = before[at..].into(),
            None => statement.push_str(before),
        }
        let (mut text, mut end) = (String::new(), start + 1);
        let mut chars = rest[end..].char_indices();
        while let Some((at, char)) = chars.next() {
            end = start + 2 + at;
            match char {
                '"' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push(' '),
                    // A literal continues in the next line.
                    Some((_, '\n')) => text.push_str(" \n"),
                    Some((_, other)) => text.push(other),
                    None => {}
                },
                char => text.push(char),
            }
        }
        if !OWN_MISTAKES.iter().any(|own| statement.contains(own)) {
            found.push(text);
        }
        rest = &rest[end..];
    }
    found
}

/// Removes code marks from a text, and replaces runs of spaces by one.
fn plain(text: &str) -> String {
    text.replace('`', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the parts of a literal between its placeholders.
fn fixed_parts(literal: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_inside = false;
    for char in literal.trim_start_matches("imbrex: ").chars() {
        match char {
            '{' => is_inside = true,
            '}' if is_inside => {
                is_inside = false;
                parts.push(String::new());
            }
            char if !is_inside => parts.last_mut().expect("there is one").push(char),
            _ => {}
        }
    }
    let parts = parts.iter().map(|part| plain(part));
    parts.filter(|part| part.contains(|char: char| char.is_alphabetic())).collect()
}

/// Returns a word without the punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|char: char| !char.is_alphanumeric())
}

fn words(parts: &[String]) -> usize {
    parts.iter().map(|part| part.split(' ').count()).sum()
}

/// Returns all messages of the sources as lists of fixed parts, and their single words.
fn told() -> (Vec<Vec<String>>, BTreeSet<String>) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is one of several");
    let mut all: Vec<String> = Vec::new();
    for (file, functions) in SOURCES {
        let source = std::fs::read_to_string(crates.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let source = source.split("\n#[cfg(test)]\nmod tests {").next().expect("there is one");
        match functions {
            [] => all.extend(literals(source)),
            some => some.iter().for_each(|name| {
                all.extend(literals(function(source, name).unwrap_or_else(|| panic!("{file} has no function {name}"))));
            }),
        }
    }
    let of_values = [
        FsError::Damaged { block: 7 },
        FsError::Stopped,
        FsError::ReadOnly,
        FsError::NoSpace,
        FsError::NoMetadataSpace,
        FsError::NotSupported("{}"),
    ];
    all.extend(of_values.iter().map(|error| error.to_string().replace('7', "{}")));
    all.push(Stalled.to_string());
    all.retain(|literal| !literal.starts_with(OF_OTHERS));
    let singles = all.iter().flat_map(|literal| fixed_parts(literal)).filter(|part| !part.contains(' '));
    let singles = singles.map(|part| bare(&part).to_string()).collect();
    let is_text = |literal: &&String| plain(literal).contains(' ') && words(&fixed_parts(literal)) > 1;
    (all.iter().filter(is_text).map(|literal| fixed_parts(literal)).collect(), singles)
}

/// Returns the rows of the page's tables that have a message in their first cell.
fn rows() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/fs/operations.md");
    page.lines().filter(|line| line.starts_with("| `") && !line.starts_with("| `imbrex fs ")).collect()
}

fn has_in_order(row: &str, parts: &[String]) -> bool {
    let mut rest = row;
    parts.iter().all(|part| {
        let found = rest.find(part.as_str());
        rest = found.map_or(rest, |at| &rest[at + part.len()..]);
        found.is_some()
    })
}

#[test]
fn the_page_of_operations_has_every_message_and_no_other() {
    let ((told, singles), rows) = (told(), rows());
    assert!(told.len() > 100 && rows.len() > 90, "{} messages, {} rows", told.len(), rows.len());
    let plain_rows: Vec<String> = rows.iter().map(|row| plain(row)).collect();
    let missing: Vec<_> = told.iter().filter(|parts| !plain_rows.iter().any(|row| has_in_order(row, parts))).collect();
    assert!(missing.is_empty(), "docs/fs/operations.md does not have {missing:#?}");

    let mut parts: Vec<&String> = told.iter().flatten().filter(|part| part.contains(' ')).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
    for row in rows {
        let message = plain(row.trim_start_matches("| ").split(" | ").next().expect("there is one"));
        let left = parts.iter().fold(message.clone(), |left, part| left.replace(part.as_str(), " "));
        let strange = left.split_whitespace().map(bare);
        let is_strange = |word: &&str| word.contains(char::is_lowercase) && !singles.contains(*word);
        let strange: Vec<&str> = strange.filter(is_strange).collect();
        assert!(strange.is_empty(), "nobody prints '{message}': {strange:?} are in no message of the program");
        assert_eq!(row.matches(" | ").count(), 3, "four cells a row: {row}");
    }
}
