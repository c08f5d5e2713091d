//! Properties of a drive, as lines, as a table and as JSON.

use imbrex::Failure;
use imbrex::human;
use imbrex::table_form::{Cells, TableForm};
use serde_json::{Map, Value, json};

use crate::output;

/// A property of a drive.
pub(super) struct Fact {
    /// Field of the JSON document.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Value in the JSON document; null if it is not known.
    pub value: Value,
    /// Value for people.
    pub words: String,
}

impl Fact {
    pub(super) fn new(key: &'static str, name: &'static str, value: impl Into<Value>, words: impl ToString) -> Fact {
        Fact { key, name, value: value.into(), words: words.to_string() }
    }

    /// Returns a size in bytes.
    pub(super) fn size(key: &'static str, name: &'static str, bytes: u64) -> Fact {
        Fact::new(key, name, bytes, human::bytes(bytes))
    }
}

/// Prints properties: those that are known as lines, or all in a document called `schema`.
pub(super) fn print(schema: &str, facts: &[Fact], as_json: bool, table: Option<TableForm>) -> Result<(), Failure> {
    if as_json || table.is_some() {
        let mut document = Map::new();
        document.insert("schema".into(), json!(schema));
        document.extend(facts.iter().map(|fact| (fact.key.to_string(), fact.value.clone())));
        match table {
            Some(form) => output::part(&Cells::of_document(&document.into()).in_form(form)),
            None => output::json(&document)?,
        }
        return Ok(());
    }
    let known = || facts.iter().filter(|fact| !fact.words.is_empty());
    let width = known().map(|fact| fact.name.len()).max().unwrap_or(0);
    for fact in known() {
        output::line(&format!("{:width$}  {}", fact.name, fact.words));
    }
    Ok(())
}
