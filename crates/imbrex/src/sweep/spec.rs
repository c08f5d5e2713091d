//! Specification of a sweep, and the TOML file that contains it.
//!
//! ```toml
//! workloads = ["pc-day", "rw=randwrite,bs={bs},size=10GiB,number_ios=10000"]
//! drives = ["seagate-st5000as0011", "imr-1t+track-map"]
//!
//! [parameters]                       # a drive's, or those that stand in braces in a workload
//! bs = ["4k", "64k"]
//! cache_share = "1%..5%/2%"          # a range; /x2 for twice as much each, /log5 for five evenly in powers
//!
//! [options]                          # those of `imbrex simulate`; each may take several values
//! queue = [1, 32]
//! ```

use std::path::Path;

use toml::{Table, Value};

use super::texts;
use crate::error::Failure;
use crate::simulate_options::{BadWord, SimulateOptions};

/// The name of a parameter or option, and its values in order.
pub type Several = (String, Vec<String>);

/// Specification of a sweep: lists of workloads, drives, parameters and options, whose combinations are simulated.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spec {
    /// Workloads, as the user names them for `imbrex simulate`. A parameter's name in braces, such as `{bs}`, stands
    /// for its value.
    pub workloads: Vec<String>,
    /// Drive texts, as for `imbrex simulate`. A text may list several values of a parameter, and then names several
    /// drives.
    pub drives: Vec<String>,
    /// Parameters with their values; the last parameter varies fastest. A parameter whose name is in braces in a
    /// workload is replaced there; any other is set on every drive.
    pub parameters: Vec<Several>,
    /// Options of `imbrex simulate`, without leading dashes, with their values; the last option varies fastest.
    pub options: Vec<Several>,
}

/// Options of `imbrex simulate` that a sweep refuses: a sweep writes its own files, distributes its points over the
/// cores, and has no baseline unless the option `baseline` names one.
const NO_OPTIONS: [&str; 10] =
    ["out", "per-io", "plans", "jobs", "no-baseline", "explain", "trace-events", "from", "to", "trace-events-size"];

const KEYS: [&str; 4] = ["workloads", "drives", "parameters", "options"];

impl Spec {
    /// Parses the TOML text `text` and replaces ranges by their values. Parameters and options are sorted by name;
    /// workloads, drives and values keep their order. `place` is the name of the file in error messages.
    ///
    /// # Errors
    ///
    /// If `text` is not TOML, has an unknown key or a value of the wrong type, or names no drive. If a name has no
    /// values, a range is invalid, or an option is unknown, has a wrong value or is not allowed in a sweep.
    pub fn parse(place: &str, text: &str) -> Result<Spec, Failure> {
        let refused = |reason: String| Failure::usage(format!("{place}: {reason}"));
        let table: Table = text.parse().map_err(|error| refused(format!("{error}")))?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(refused(format!("'{key}' is not known")).or_try(KEYS.join(", ")));
        }
        let several = |name: &str| -> Result<Vec<Several>, Failure> {
            let Some(value) = table.get(name) else { return Ok(Vec::new()) };
            let inner =
                value.as_table().ok_or_else(|| refused(format!("{name}: expected a table of names and values")))?;
            let of_one = |(key, value): (&String, &Value)| {
                let words =
                    words(value).ok_or_else(|| refused(format!("{name}.{key}: expected a value or a list of them")))?;
                Ok((key.clone(), words))
            };
            inner.iter().map(of_one).collect()
        };
        let list = |name: &str| -> Result<Vec<String>, Failure> {
            let Some(value) = table.get(name) else { return Ok(Vec::new()) };
            words(value).ok_or_else(|| refused(format!("{name}: expected a text or a list of them")))
        };
        let spec = Spec {
            workloads: list("workloads")?,
            drives: list("drives")?,
            parameters: several("parameters")?,
            options: several("options")?,
        };
        spec.with_ranges().map_err(|failure| Failure { message: format!("{place}: {}", failure.message), ..failure })
    }

    /// Makes the paths of traces and profiles relative to `folder`, the folder of the file that names them.
    ///
    /// # Errors
    ///
    /// If a path names a file in the current directory and none in `folder`.
    pub fn in_folder(mut self, folder: &Path) -> Result<Spec, Failure> {
        if folder.as_os_str().is_empty() || folder == Path::new(".") {
            return Ok(self);
        }
        for text in self.workloads.iter_mut().chain(&mut self.drives) {
            // The path of a profile ends in .toml; parameters may follow it.
            let end = text.find(".toml").map_or(text.len(), |at| at + ".toml".len());
            let (path, rest) = text.split_at(end);
            let joined = folder.join(path);
            if joined.is_file() {
                *text = format!("{}{rest}", joined.display());
            } else if Path::new(path).is_relative() && Path::new(path).is_file() {
                return Err(Failure::usage(format!(
                    "{path}: paths in a sweep are relative to its file: no {}",
                    joined.display()
                ))
                .or_try("a path from the folder of the sweep's file, or an absolute path"));
            }
        }
        Ok(self)
    }

    /// Returns the specification with each range of a parameter or option replaced by its values, and checks it. Ranges
    /// in drive texts stay.
    ///
    /// # Errors
    ///
    /// If there is no drive, a name has no values, a range is invalid, or an option is unknown, has a wrong value or is
    /// not allowed in a sweep.
    pub fn with_ranges(mut self) -> Result<Spec, Failure> {
        if self.drives.is_empty() {
            return Err(Failure::usage("no drives").or_try("drives = [\"imr-1t+track-map\"]"));
        }
        for (name, values) in self.parameters.iter_mut().chain(&mut self.options) {
            let mut all = Vec::new();
            for value in values.iter() {
                let reason = |reason| Failure::usage(format!("{name} = {value}: {reason}"));
                all.extend(texts::values(value).map_err(reason)?);
            }
            if all.is_empty() {
                return Err(Failure::usage(format!("{name}: no values")).or_try("one at least, or leave it out"));
            }
            *values = all;
        }
        for (name, values) in &self.options {
            if NO_OPTIONS.contains(&name.as_str()) {
                return Err(Failure::usage(format!("option {name}: has no place in a sweep")).or_try("leaving it out"));
            }
            for value in values {
                SimulateOptions::default().set(name, value).map_err(BadWord::in_assignment)?;
            }
        }
        Ok(self)
    }
}

/// Returns a value as text, or each element of an array as text. Returns `None` for other types of values.
fn words(value: &Value) -> Option<Vec<String>> {
    let word = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Array(_) | Value::Table(_) | Value::Datetime(_) => None,
    };
    match value {
        Value::Array(parts) => parts.iter().map(word).collect(),
        one => Some(vec![word(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_lists_and_ranges() {
        let text = "workloads = 'demo'\ndrives = ['a', 'b+c']\n[parameters]\nk = '1%..3%/1%'\nn = [1, 2.5]\n\
                    [options]\nqueue = [1, 32]\ncheck = true\n";
        let spec = Spec::parse("s.toml", text).expect("it is right");
        assert_eq!((spec.workloads, spec.drives.len()), (vec!["demo".to_string()], 2));
        let several =
            |name: &str, values: &[&str]| (name.to_string(), values.iter().map(ToString::to_string).collect());
        assert_eq!(spec.parameters, [several("k", &["1%", "2%", "3%"]), several("n", &["1", "2.5"])]);
        assert_eq!(spec.options, [several("check", &["true"]), several("queue", &["1", "32"])]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name() {
        let cases = [
            ("workload = 'a'", "'workload' is not known"),
            ("drives = ['a']\n[options]\nqeue = 1", "qeue = 1"),
            ("drives = ['a']\n[options]\nqueue = 0", "queue = 0"),
            ("drives = ['a']\n[options]\nout = 'x'", "option out"),
            ("drives = ['a']\n[parameters]\nk = []", "k: no values"),
            ("drives = ['a']\n[parameters]\nk = '5..1/1'", "k = 5..1/1"),
            ("drives = ['a']\n[parameters]\nk = { a = 1 }", "parameters.k"),
            ("workloads = 'a'", "no drives"),
            ("drives = [", "s.toml"),
        ];
        for (text, said) in cases {
            let failure = Spec::parse("s.toml", text).expect_err(text);
            assert!(failure.message.contains(said), "{text}: {}", failure.message);
        }
    }
}
