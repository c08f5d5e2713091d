//! Statements of makers, public lists and papers on the recording of drive models. Nothing is concluded from similar names:
//! a model without a statement is unknown.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;

/// The facts, in TOML.
const STATEMENTS: &str = include_str!("statements.toml");

/// A recording, as a source states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stated {
    /// Shingled; the drive translates addresses itself.
    DriveManaged,
    /// Shingled; the host keeps the rules of zones.
    HostManaged,
    /// Tracks do not overlap.
    Conventional,
}

impl Stated {
    /// Returns the recording in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Stated::DriveManaged => "shingled, drive-managed",
            Stated::HostManaged => "shingled, host-managed",
            Stated::Conventional => "conventional",
        }
    }

    /// Returns whether the tracks of such a drive overlap.
    pub fn is_shingled(self) -> bool {
        self != Stated::Conventional
    }
}

/// The author of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The maker of the drive.
    Maker,
    /// A public list, which cites the maker or tests.
    List,
    /// A paper with measurements.
    Paper,
}

impl By {
    /// Returns the author in words, as the subject of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            By::Maker => "the maker",
            By::List => "a public list",
            By::Paper => "a paper",
        }
    }
}

/// A source of statements.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
pub struct Source {
    /// Short name of the source.
    pub id: String,
    /// Description of the source.
    pub what: String,
    /// Author of the statements.
    pub by: By,
    /// Date of the source: a year, a month such as `2020-04`, or a day.
    pub date: String,
}

/// A statement on a drive.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Statement {
    /// Model or product line that the statement names.
    pub model: String,
    /// The recording.
    pub says: Stated,
    /// The source.
    pub source: Source,
    /// Limits of the statement; `None` without any.
    pub note: Option<String>,
}

#[derive(Deserialize)]
struct File {
    source: Vec<Source>,
    drive: Vec<Drive>,
    line: Vec<Line>,
}

#[derive(Deserialize)]
struct Drive {
    models: Vec<String>,
    says: Stated,
    source: String,
    note: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    names: Vec<String>,
    says: Stated,
    source: String,
    note: Option<String>,
}

fn file() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| toml::from_str(STATEMENTS).expect("the file of statements is valid: a test reads it"))
}

/// Returns the statement on a drive with this model, as the drive reports it (`WDC WD40EFAX-68JH4N0`), or on the product line
/// of this name (`Toshiba P300 4TB`). A model matches if one of its words, up to a hyphen, equals that of a statement. Returns
/// `None` if the recording is unknown.
pub fn statement(model: &str) -> Option<Statement> {
    let found = |model: &str, says, source: &str, note: &Option<String>| {
        let source = file().source.iter().find(|one| one.id == source).expect("a statement names a source of the file");
        Statement { model: model.into(), says, source: source.clone(), note: note.clone() }
    };
    let is_named = |name: &str| model.split([' ', '-', '_']).any(|word| word.eq_ignore_ascii_case(name));
    let of_drive = |drive: &Drive| {
        let name = drive.models.iter().find(|name| is_named(name))?;
        Some(found(name, drive.says, &drive.source, &drive.note))
    };
    let of_line = |line: &Line| {
        let name = line.names.iter().find(|name| without_blanks(name) == without_blanks(model))?;
        Some(found(name, line.says, &line.source, &line.note))
    };
    file().drive.iter().find_map(of_drive).or_else(|| file().line.iter().find_map(of_line))
}

/// Returns the statement on the model of a probed drive: on `given`, or on the model that the drive reports. `None` if nothing is
/// stated.
pub fn stated(given: Option<&str>, verdict: &Verdict) -> Option<Statement> {
    let reported = || verdict.facts.iter().find(|fact| fact.name == "model").map(|fact| fact.value.as_str());
    statement(given.or_else(reported)?)
}

/// Returns a name in lower case without blanks.
fn without_blanks(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Returns the number of models and product lines with a statement.
pub fn count() -> usize {
    let models = file().drive.iter().map(|drive| drive.models.len());
    models.chain(file().line.iter().map(|line| line.names.len())).sum()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_statement_has_a_source_and_no_model_has_two_statements() {
        let sources: BTreeSet<&str> = file().source.iter().map(|source| source.id.as_str()).collect();
        assert_eq!(sources.len(), file().source.len(), "names of sources differ");
        let drives = file().drive.iter().map(|drive| (&drive.models, &drive.source));
        let all = drives.chain(file().line.iter().map(|line| (&line.names, &line.source)));
        let mut names = BTreeSet::new();
        for (models, source) in all {
            assert!(sources.contains(source.as_str()), "{source}");
            for model in models {
                assert!(names.insert(model.to_lowercase()), "{model} has two statements");
            }
        }
        assert_eq!(names.len(), count());
        assert!(file().source.iter().all(|source| source.date.starts_with("20") && !source.what.is_empty()));
    }

    #[test]
    fn a_model_is_found_as_drives_report_it_and_no_neighbour_is_taken_for_it() {
        let says = |model: &str| statement(model).map(|found| (found.model, found.says, found.source.by));
        let shingled = Some(("WD40EFAX".to_string(), Stated::DriveManaged, By::Maker));
        assert_eq!(says("WDC WD40EFAX-68JH4N0"), shingled);
        assert_eq!(says("WD40EFAX"), shingled);
        assert_eq!(says("ATA      wd40efax-68JH"), shingled);
        assert_eq!(says("WDC WD80EFAX-68KNBN0").map(|(_, says, _)| says), Some(Stated::Conventional));
        assert_eq!(
            says("ST8000AS0022-1WL17Z").map(|(_, says, by)| (says, by)),
            Some((Stated::DriveManaged, By::Paper))
        );
        assert_eq!(says("Toshiba P300 4 TB").map(|(_, says, _)| says), Some(Stated::DriveManaged));
        for unknown in ["WDC WD40EFA-1", "WD40EFAXX", "WD50EFAX", "ST8000AS002", "", "Toshiba P300", "Samsung SSD 870"]
        {
            assert_eq!(says(unknown), None, "{unknown}");
        }
    }
}
