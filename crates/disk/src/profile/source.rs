//! The source of a profile: its TOML text with the user's overrides, and the origin of each key. So an error names the
//! line of the file, or the key given on the command line.
//!
//! Positions are byte offsets into the text. An offset past the end of the text stands for the override of that number.
//!
//! Invariants:
//! 1. Every key and value of the tree carries its own position, overrides included.
//! 2. Later overrides win over earlier ones, and all of them over the text.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ProfileError;
use imbrex_units::names::suggestion;
use imbrex_units::quantity;

/// A value set by the user.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Override {
    /// The key as given.
    given: String,
    /// The key of the text that the override sets.
    path: String,
    /// The value, as TOML or as a bare word.
    value: String,
}

/// A profile's text, with the user's overrides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Source {
    file: String,
    text: String,
    overrides: Vec<Override>,
}

impl Source {
    /// Creates a source from the text of `file`; errors name `file` as the place.
    pub(super) fn new(file: &str, text: &str) -> Source {
        Source { file: file.into(), text: text.into(), overrides: Vec::new() }
    }

    /// Returns a copy with more overrides. Keys of times may be given in milliseconds or microseconds: `max_ms` sets
    /// `max_ns`. The values of times and sizes may have a unit.
    pub(super) fn with(&self, overrides: &[(String, String)]) -> Source {
        let mut source = self.clone();
        source.overrides.extend(overrides.iter().map(|(key, value)| {
            let (path, value) = in_base_units(key, value).unwrap_or_else(|| (key.clone(), value.clone()));
            Override { given: key.clone(), path, value }
        }));
        source
    }

    /// Returns the name of the file.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Returns the text, without overrides.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the number of overrides.
    pub(super) fn overrides(&self) -> usize {
        self.overrides.len()
    }

    /// Returns a copy with the first `count` overrides only.
    pub(super) fn with_first(&self, count: usize) -> Source {
        Source { overrides: self.overrides[..count].to_vec(), ..self.clone() }
    }

    /// Returns the key of override `index`, as given.
    pub(super) fn given(&self, index: usize) -> &str {
        &self.overrides[index].given
    }

    /// Parses the text and sets the overrides in it.
    pub(super) fn tree(&self) -> Result<(Spanned<DeTable<'_>>, Positions), ProfileError> {
        let parsed = DeTable::parse(&self.text).map_err(|error| self.syntax_error(&error))?;
        let span = parsed.span();
        let mut root = parsed.into_inner();
        self.stand_on_base(&mut root)?;
        for index in 0..self.overrides.len() {
            self.set(&mut root, index)?;
        }
        let mut positions = BTreeMap::new();
        note_positions(&root, "", &mut positions);
        Ok((Spanned::new(span, root), Positions(positions)))
    }

    /// Takes missing keys from the profile that the key `base` names, if the text has one. These keys have the position
    /// of the word `base`.
    fn stand_on_base(&self, root: &mut DeTable<'_>) -> Result<(), ProfileError> {
        let Some((key, value)) = root.remove_entry("base") else { return Ok(()) };
        let position = key.span();
        let refuse = |reason: String| {
            let mut positions = BTreeMap::new();
            positions.insert("base".to_string(), position.start);
            self.refuse(&Positions(positions), "base", reason)
        };
        let DeValue::String(name) = value.get_ref() else {
            return Err(refuse("give the name of a profile that comes with Imbrex, in quotes".into()));
        };
        let Some((name, text)) = super::BUILT_IN.iter().find(|(known, _)| *known == name.as_ref()) else {
            let names: Vec<&str> = super::BUILT_IN.iter().map(|(known, _)| *known).collect();
            let meant = suggestion(name, names.iter().copied());
            return Err(refuse(format!("no profile is called '{name}'{meant}; there are {}", names.join(", "))));
        };
        let parsed = DeTable::parse(text).map_err(|error| refuse(format!("{name}: {error}")))?;
        let mut base = parsed.into_inner();
        Source::new(name, text).stand_on_base(&mut base)?;
        fill_in(root, base, &position);
        Ok(())
    }

    /// Sets override number `index` in the tree.
    fn set<'a>(&'a self, root: &mut DeTable<'a>, index: usize) -> Result<(), ProfileError> {
        let Override { given, path, value: text } = &self.overrides[index];
        let position = self.text.len() + 1 + index;
        let position = position..position;
        let mut parts: Vec<&str> = path.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        if last.is_empty() || parts.iter().any(|part| part.is_empty()) {
            let reason = "a key is words with dots between them, such as mechanics.overhead_ns".to_string();
            return Err(ProfileError { place: given.clone(), reason });
        }
        let mut value = DeValue::parse(text)
            .map(Spanned::into_inner)
            .unwrap_or_else(|_| DeValue::String(Cow::Borrowed(text.as_str())));
        place_all(&mut value, &position);
        let value = Spanned::new(position.clone(), value);
        let refuse = |part: &str| ProfileError {
            place: given.clone(),
            reason: format!("'{part}' is a value, not a section; leave out the part after it"),
        };
        let mut table = root;
        for (depth, part) in parts.iter().enumerate() {
            let inner = entry(table, part, &position);
            table = match inner.get_mut() {
                DeValue::Table(inner) => inner,
                DeValue::Array(items) => {
                    return set_item(items.as_mut(), &parts[depth + 1..], last, value).ok_or_else(|| ProfileError {
                        place: given.clone(),
                        reason: format!("'{part}' is a list; go on with the number of an item, from 0, and its key"),
                    });
                }
                _ => return Err(refuse(part)),
            };
        }
        replace(table, last, value);
        Ok(())
    }

    /// Returns the place of an offset: `file:line`, or the key of an override.
    pub(super) fn place(&self, offset: usize) -> String {
        match offset.checked_sub(self.text.len() + 1) {
            Some(index) if index < self.overrides.len() => self.overrides[index].given.clone(),
            _ => {
                let before = &self.text.as_bytes()[..offset.min(self.text.len())];
                let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
                format!("{}:{line}", self.file)
            }
        }
    }

    /// Converts an error of the TOML library, with its place.
    pub(super) fn syntax_error(&self, error: &toml::de::Error) -> ProfileError {
        let place = match error.span() {
            Some(span) => self.place(span.start),
            None => self.file.clone(),
        };
        ProfileError { place, reason: numbers_in_words(&error.message().trim().replace('\n', "; ")) }
    }

    /// Returns an error about the value of the dotted `key`. If the text lacks the key, its place is the nearest
    /// section around the key, if any.
    pub(super) fn refuse(&self, positions: &Positions, key: &str, reason: impl Into<String>) -> ProfileError {
        let place = match positions.nearest(key) {
            Some(offset) => self.place(offset),
            None => self.file.clone(),
        };
        let reason = reason.into();
        let reason = if place == key { reason } else { format!("{key}: {reason}") };
        ProfileError { place, reason }
    }
}

/// Returns the message of the TOML library, with the name of a number's type replaced by the range of the type.
fn numbers_in_words(message: &str) -> String {
    const TYPES: [(&str, u64); 4] = [
        ("expected u8", u8::MAX as u64),
        ("expected u16", u16::MAX as u64),
        ("expected u32", u32::MAX as u64),
        // TOML's numbers go no further.
        ("expected u64", i64::MAX as u64),
    ];
    TYPES.into_iter().find_map(|(words, most)| Some((message.strip_suffix(words)?, most))).map_or_else(
        || message.to_owned(),
        |(before, most)| format!("{before}expected a whole number from 0 to {most}"),
    )
}

/// The positions of the dotted keys of a tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions(BTreeMap<String, usize>);

impl Positions {
    /// Returns the position of `key`, or else of the innermost section around it that has one.
    fn nearest(&self, key: &str) -> Option<usize> {
        let mut path = key;
        loop {
            if let Some(&offset) = self.0.get(path) {
                return Some(offset);
            }
            path = &path[..path.rfind('.')?];
        }
    }

    /// Returns the full key inside `section` whose last word is `word`, if there is one.
    pub(super) fn find(&self, section: &str, word: &str) -> Option<&str> {
        let inside = |key: &&String| key.starts_with(section) && key.rsplit('.').next() == Some(word);
        self.0.keys().find(inside).map(String::as_str)
    }
}

/// Converts `a.b_ms = 20`, and `a.b_ns = 20ms`, to `a.b_ns = 20000000`, and `a.b_bytes = 64MiB` to
/// `a.b_bytes = 67108864`. Returns `None` for all other pairs, which stay as they are.
fn in_base_units(key: &str, value: &str) -> Option<(String, String)> {
    let is_plain = value.parse::<f64>().is_ok();
    if key.ends_with("_bytes") && !is_plain {
        return quantity::exact_bytes(value).map(|bytes| (key.into(), bytes.to_string()));
    }
    if key.ends_with("_ns") && !is_plain {
        return quantity::exact_duration_ns(value, 1).map(|ns| (key.into(), ns.to_string()));
    }
    let (stem, factor) = match (key.strip_suffix("_ms"), key.strip_suffix("_us")) {
        (Some(stem), _) => (stem, 1e6),
        (_, Some(stem)) => (stem, 1e3),
        _ => return None,
    };
    let nanoseconds = value.parse::<f64>().ok()? * factor;
    (nanoseconds.abs() < 1e18).then(|| (format!("{stem}_ns"), format!("{}", nanoseconds.round() as i64)))
}

/// Returns the value of `key`; inserts an empty table if there is none.
fn entry<'t, 'a>(table: &'t mut DeTable<'a>, key: &'a str, position: &Range<usize>) -> &'t mut Spanned<DeValue<'a>> {
    if !table.contains_key(key) {
        let empty = Spanned::new(position.clone(), DeValue::Table(DeTable::new()));
        table.insert(Spanned::new(position.clone(), Cow::Borrowed(key)), empty);
    }
    table.get_mut(key).expect("inserted where it was missing")
}

/// Sets `key`, with the value's position for the key too.
fn replace<'a>(table: &mut DeTable<'a>, key: &'a str, value: Spanned<DeValue<'a>>) {
    table.remove(key);
    table.insert(Spanned::new(value.span(), Cow::Borrowed(key)), value);
}

/// Sets a key of one item of a list of tables, or a whole item.
fn set_item<'a>(
    items: &mut [Spanned<DeValue<'a>>],
    path: &[&'a str],
    last: &'a str,
    value: Spanned<DeValue<'a>>,
) -> Option<()> {
    let (number, inner) = match path {
        [] => (last, None),
        [number] => (*number, Some(last)),
        _ => return None,
    };
    let item = items.get_mut(number.parse::<usize>().ok()?)?;
    match (inner, item.get_mut()) {
        (None, _) => *item = value,
        (Some(key), DeValue::Table(table)) => replace(table, key, value),
        _ => return None,
    }
    Some(())
}

/// Adds the missing keys of `table` from `base`. Inner tables are merged key by key, except those with a key `kind` or
/// `model`, which are complete.
fn fill_in<'a>(table: &mut DeTable<'a>, base: DeTable<'a>, position: &Range<usize>) {
    for (key, mut value) in base {
        match (table.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.get_mut()) {
            (None, inner) => {
                place_all(inner, position);
                let key = Spanned::new(position.clone(), key.into_inner());
                table.insert(key, Spanned::new(position.clone(), value.into_inner()));
            }
            (Some(DeValue::Table(own)), DeValue::Table(inner)) if !says_all(own) => {
                fill_in(own, std::mem::take(inner), position);
            }
            _ => {}
        }
    }
}

fn says_all(table: &DeTable<'_>) -> bool {
    table.contains_key("kind") || table.contains_key("model")
}

/// Returns a profile's text as a table, with missing keys taken from its base.
pub(super) fn merged(text: &str) -> toml::Table {
    let mut table: toml::Table = text.parse().expect("checked when the profile was read");
    let Some(toml::Value::String(name)) = table.remove("base") else { return table };
    let known = super::BUILT_IN.iter().find(|(known, _)| *known == name);
    let (_, base) = known.expect("checked when the profile was read");
    fill_table(&mut table, merged(base));
    table
}

/// Adds missing keys like [`fill_in`], to tables without positions.
fn fill_table(table: &mut toml::Table, base: toml::Table) {
    for (key, value) in base {
        match (table.get_mut(&key), value) {
            (None, value) => {
                table.insert(key, value);
            }
            (Some(toml::Value::Table(own)), toml::Value::Table(inner))
                if !own.contains_key("kind") && !own.contains_key("model") =>
            {
                fill_table(own, inner);
            }
            _ => {}
        }
    }
}

/// Gives `position` to everything inside `value`.
fn place_all(value: &mut DeValue<'_>, position: &Range<usize>) {
    match value {
        DeValue::Array(items) => {
            for item in items.iter_mut() {
                place_all(item.get_mut(), position);
                *item = Spanned::new(position.clone(), std::mem::replace(item.get_mut(), DeValue::Boolean(false)));
            }
        }
        DeValue::Table(table) => {
            for (key, mut inner) in std::mem::take(table) {
                place_all(inner.get_mut(), position);
                let key = Spanned::new(position.clone(), key.into_inner());
                table.insert(key, Spanned::new(position.clone(), inner.into_inner()));
            }
        }
        _ => {}
    }
}

fn note_positions(table: &DeTable<'_>, prefix: &str, positions: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        note_value(value.get_ref(), &path, positions);
        positions.insert(path, key.span().start);
    }
}

fn note_value(value: &DeValue<'_>, path: &str, positions: &mut BTreeMap<String, usize>) {
    match value {
        DeValue::Table(inner) => note_positions(inner, path, positions),
        DeValue::Array(items) => {
            for (number, item) in items.iter().enumerate() {
                let path = format!("{path}.{number}");
                positions.insert(path.clone(), item.span().start);
                note_value(item.get_ref(), &path, positions);
            }
        }
        _ => {}
    }
}
