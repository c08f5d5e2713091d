//! Statements of makers and public lists on a drive's model, beside the measurements.

use imbrex::Failure;
use imbrex_probe::Verdict;
use imbrex_probe::models::{Statement, stated, statement};
use serde_json::json;

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

/// Returns a line that sets the statement on the target's model beside the measured type; `None` if nothing is stated.
pub(super) fn beside(given: Option<&str>, verdict: &Verdict) -> Option<String> {
    let statement = stated(given, verdict)?;
    let says = format!(
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
    Some(format!("{}: stated: {says}; measured: {measured}.", statement.model))
}
