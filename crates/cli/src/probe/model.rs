//! Statements of makers and public lists on a drive's model, beside the measurements.

use imbrex::Failure;
use imbrex_probe::Verdict;
use imbrex_probe::models::{Statement, statement};
use serde_json::{Value, json};

use crate::output;

/// Prints the statement on `model`, for `imbrex probe --model` without a target.
pub(super) fn print(model: &str, as_json: bool) -> Result<(), Failure> {
    let found = statement(model);
    if as_json {
        return output::json(&json!({
            "schema": "imbrex.probe-model/1",
            "model": model,
            "statement": found,
        }));
    }
    match &found {
        Some(statement) => lines(statement).iter().for_each(|line| output::line(line)),
        None => {
            output::line(&format!("{model}: unknown. No statement of its maker or of a public list is known here."));
            output::line("Models with similar names may differ. To measure the drive: imbrex probe --file FOLDER");
        }
    }
    Ok(())
}

/// Returns the lines of a statement.
fn lines(statement: &Statement) -> Vec<String> {
    let Statement { model, says, source, note } = statement;
    let mut lines = vec![format!("{model}: {}, says {} ({})", says.in_words(), source.by.in_words(), source.date)];
    lines.push(format!("  source: {}", source.what));
    lines.extend(note.iter().map(|note| format!("  note: {note}")));
    lines
}

/// Returns the model of the target: that of the command line, or the one that the drive reports.
pub(super) fn model_of(given: Option<&str>, verdict: &Verdict) -> Option<String> {
    let reported = || verdict.facts.iter().find(|fact| fact.name == "model").map(|fact| fact.value.clone());
    given.map(str::to_string).or_else(reported)
}

/// Returns a line that sets the statement on the target's model beside the measured type; `None` if nothing is stated.
pub(super) fn beside(given: Option<&str>, verdict: &Verdict) -> Option<String> {
    let statement = statement(&model_of(given, verdict)?)?;
    let stated = format!(
        "{}, says {} ({}: {})",
        statement.says.in_words(),
        statement.source.by.in_words(),
        statement.source.date,
        statement.source.what
    );
    let measured = match verdict.word("type") {
        Some(measured) => {
            let agrees = (measured != "conventional") == statement.says.is_shingled();
            format!("{measured}, which {}", if agrees { "agrees" } else { "does not agree" })
        }
        None => "cannot tell".to_string(),
    };
    Some(format!("{}: stated: {stated}; measured: {measured}.", statement.model))
}

/// Returns the field `statement` of the JSON document; null if nothing is stated.
pub(super) fn field(given: Option<&str>, verdict: &Verdict) -> Value {
    json!(model_of(given, verdict).and_then(|model| statement(&model)))
}
