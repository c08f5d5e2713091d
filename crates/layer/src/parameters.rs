//! Layer parameters: converts text to typed values. Errors name the key and the values that it accepts.

use imbrex_units::names::suggestion;
use imbrex_units::quantity;
use std::collections::BTreeMap;

/// The kind of value that a parameter takes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParameterKind {
    /// A size: `4k`, `25MiB`, `25MB`; a number without a unit is in bytes. Read with [`Parameters::bytes`].
    Bytes,
    /// A whole number, 0 or more.
    Count,
    /// A whole number that is not less than this one. [`Parameters::new`] does not check the minimum; the layer does
    /// when it is built.
    CountFrom(u64),
    /// A fraction from 0 to 1, both included: `1%` or `0.01`.
    Share,
    /// A fraction above 0 and up to 1. [`Parameters::new`] accepts 0 too; the layer refuses it when it is built.
    ShareAboveZero,
    /// A duration: `2ms`, `1.2s`, `3h`; a number without a unit is in seconds.
    Duration,
    /// One of the words `on` and `off`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl ParameterKind {
    /// Returns a description of the accepted values for help texts, with their range: "a whole number from 1".
    pub fn takes(&self) -> String {
        match self {
            ParameterKind::Bytes => "a size in bytes, such as 4k, 25MiB or 25MB".into(),
            ParameterKind::Count => "a whole number from 0".into(),
            ParameterKind::CountFrom(least) => format!("a whole number from {least}"),
            ParameterKind::Share => "a share from 0 to 1, such as 1% or 0.01".into(),
            ParameterKind::ShareAboveZero => "a share above 0, up to 1, such as 1% or 0.01".into(),
            ParameterKind::Duration => "a time from 0, such as 2ms, 1.2s or 3h".into(),
            ParameterKind::Switch => "on or off".into(),
            ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// Returns the kind's name in one word: `size`, `count`, `share`, `duration`, `switch` or `choice`. Kinds that
    /// differ only in their minimum have one name.
    pub fn name(&self) -> &'static str {
        match self {
            ParameterKind::Bytes => "size",
            ParameterKind::Count | ParameterKind::CountFrom(_) => "count",
            ParameterKind::Share | ParameterKind::ShareAboveZero => "share",
            ParameterKind::Duration => "duration",
            ParameterKind::Switch => "switch",
            ParameterKind::Choice(_) => "choice",
        }
    }
}

/// One parameter of a layer, as the registry lists it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ParameterInfo {
    /// The parameter's name: the word before `=` in `key=value`.
    pub key: &'static str,
    /// The kind of value that the parameter takes.
    pub kind: ParameterKind,
    /// The value that the parameter has if the user gives none, in the form in which a user would write it.
    pub default: &'static str,
    /// The parameter's meaning in one line, for help texts.
    pub help: &'static str,
}

/// Pairs of parameter keys that give one quantity in two forms: the first as a size or count, the second as a share or
/// in another unit. If the value of the first key is 0, the second key applies; otherwise the second key is ignored.
pub const FORMS: [(&str, &str); 3] =
    [("cache_size", "cache_share"), ("region_tracks", "region_size"), ("log_bands", "free_share")];

/// Returns the other key of the pair in [`FORMS`] that contains `key`, or `None` if no pair does.
pub fn other_form(key: &str) -> Option<&'static str> {
    FORMS.iter().find_map(|&(first, second)| match key {
        _ if key == first => Some(second),
        _ if key == second => Some(first),
        _ => None,
    })
}

/// The error that a layer cannot be built with the given name or parameters. The text says what is wrong and which
/// values are accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The values of a layer's parameters: the given ones, and defaults for the others.
#[derive(Clone, Debug)]
pub struct Parameters {
    values: BTreeMap<&'static str, (ParameterKind, String)>,
}

impl Parameters {
    /// Returns the defaults of `infos`, overridden by `given`, which holds pairs of key and value. A later value of a
    /// key overrides an earlier one.
    ///
    /// # Errors
    ///
    /// A key is not in `infos`, or a value does not have the form of its kind. The minimum of a
    /// [`ParameterKind::CountFrom`] or a [`ParameterKind::ShareAboveZero`] is not checked here.
    pub fn new(infos: &[ParameterInfo], given: &[(String, String)]) -> Result<Parameters, ConfigError> {
        let mut values: BTreeMap<_, _> =
            infos.iter().map(|info| (info.key, (info.kind, info.default.to_string()))).collect();
        for (key, value) in given {
            let Some((known, info)) = infos.iter().find(|info| info.key == key).map(|info| (info.key, info)) else {
                let keys: Vec<_> = infos.iter().map(|info| info.key).collect();
                let takes = if keys.is_empty() { "none".to_string() } else { keys.join(", ") };
                let meant = suggestion(key, keys.iter().copied());
                return Err(ConfigError(format!(
                    "unknown parameter '{key}'{meant}; this layer takes: {takes} (keys of the profile have a dot, as geometry.tracks)"
                )));
            };
            check(key, info.kind, value)?;
            values.insert(known, (info.kind, value.clone()));
        }
        Ok(Parameters { values })
    }

    fn text(&self, key: &str) -> &str {
        &self.values.get(key).unwrap_or_else(|| panic!("parameter '{key}' is not in the layer's list")).1
    }

    /// Returns the value of the parameter `key`, which is a size, in bytes.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`, or its value is not a size.
    pub fn bytes(&self, key: &str) -> u64 {
        quantity::bytes(self.text(key)).expect("checked when given")
    }

    /// Returns the value of the parameter `key`, which is a whole number.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`, or its value is not a whole number.
    pub fn count(&self, key: &str) -> u64 {
        quantity::count(self.text(key)).expect("checked when given")
    }

    /// Returns the value of the parameter `key`, which is a share: a fraction from 0 to 1, so that `1%` is 0.01.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`, or its value is not a share.
    pub fn share(&self, key: &str) -> f64 {
        parse_share(self.text(key)).expect("checked when given")
    }

    /// Returns the value of the parameter `key`, which is a duration, in nanoseconds.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`, or its value is not a duration.
    pub fn duration_ns(&self, key: &str) -> u64 {
        quantity::duration_ns(self.text(key), quantity::SECOND_NS).expect("checked when given")
    }

    /// Returns whether the value of the parameter `key`, which is a switch, is `on`.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`.
    pub fn switch(&self, key: &str) -> bool {
        self.text(key) == "on"
    }

    /// Returns the value of the parameter `key`, which is one of the words of its [`ParameterKind::Choice`]: the given
    /// word or the default.
    ///
    /// # Panics
    ///
    /// If the layer has no parameter `key`.
    pub fn choice(&self, key: &str) -> &str {
        self.text(key)
    }

    /// Returns all parameters as pairs of key and value, in alphabetical order of the keys, defaults included. The
    /// values are the texts that the user gave or the registry lists, unconverted.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(key, (_, value))| (*key, value.as_str()))
    }
}

fn check(key: &str, kind: ParameterKind, value: &str) -> Result<(), ConfigError> {
    let (ok, expected) = match kind {
        ParameterKind::Bytes => (quantity::bytes(value).is_some(), "a size such as 4k, 25MiB or 25MB".to_string()),
        ParameterKind::Count | ParameterKind::CountFrom(_) => {
            (quantity::count(value).is_some(), "a whole number".to_string())
        }
        ParameterKind::Share | ParameterKind::ShareAboveZero => {
            (parse_share(value).is_some(), "a share such as 1% or 0.01".to_string())
        }
        ParameterKind::Duration => {
            (quantity::duration_ns(value, quantity::SECOND_NS).is_some(), "a duration such as 2ms or 1.2s".to_string())
        }
        ParameterKind::Switch => (value == "on" || value == "off", "on or off".to_string()),
        ParameterKind::Choice(words) => (words.contains(&value), format!("one of {}", words.join(", "))),
    };
    if ok {
        return Ok(());
    }
    Err(ConfigError(format!("{key}={value}: expected {expected}")))
}

/// Parses `1%` or `0.01`; `None` if the text is no share from 0 to 1.
fn parse_share(text: &str) -> Option<f64> {
    let value = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
        None => text.parse::<f64>().ok()?,
    };
    (0.0..=1.0).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_parse_as_people_write_them() {
        assert_eq!(parse_share("1%"), Some(0.01));
        assert_eq!(parse_share("1.5"), None);
    }

    #[test]
    fn unknown_keys_and_wrong_kinds_are_refused() {
        let infos = [ParameterInfo { key: "share", kind: ParameterKind::Share, default: "1%", help: "" }];
        let given = |key: &str, value: &str| Parameters::new(&infos, &[(key.into(), value.into())]);
        assert_eq!(given("share", "10%").expect("is right").share("share"), 0.1);
        assert!(given("shore", "10%").unwrap_err().to_string().contains("this layer takes: share"));
        assert!(given("share", "ten").unwrap_err().to_string().contains("a share such as"));
    }
}
