//! The verdict for a terminal: a table of properties, the tests that were left out, and the questions that remain open.

use comfy_table::{ContentArrangement, Table, presets};
use imbrex_probe::{Property, Value, Verdict, experiments};

use crate::output;
use imbrex::Failure;
use imbrex::human;
use imbrex::table_form::Cells;

/// Returns the properties as a table for other programs.
pub(super) fn cells(verdict: &Verdict) -> Cells {
    let (writing, mechanics) = parts(verdict);
    let row = |property: &Property| {
        vec![name(property), shown(property), confidence(property).to_string(), property.because.clone()]
    };
    Cells::of_texts(&COLUMNS, writing.into_iter().chain(mechanics).map(row))
}

/// Columns of the table.
const COLUMNS: [&str; 4] = ["property", "value", "confidence", "because"];

/// Prints `verdict` on standard output.
pub(super) fn print(verdict: &Verdict) -> Result<(), Failure> {
    let clock = if verdict.is_virtual { " on its clock" } else { "" };
    output::line(&format!(
        "{}: {}, {}{clock}",
        verdict.target,
        human::bytes(verdict.size_bytes),
        human::duration_ns(verdict.target_ns)
    ));
    for fact in verdict.facts.iter().filter(|_| !verdict.is_virtual) {
        output::line(&format!("{}: {}", fact.name, fact.value));
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(COLUMNS);
    let (writing, mechanics) = parts(verdict);
    for property in writing.into_iter().chain(mechanics) {
        table.add_row([name(property), shown(property), confidence(property).into(), property.because.clone()]);
    }
    if !verdict.properties.is_empty() {
        output::line(&table.to_string());
    }
    output::line(&headline(verdict));
    for condition in &verdict.conditions {
        output::line(&format!("  no answer has high confidence: {condition}"));
    }
    for advice in &verdict.advice {
        output::line(&format!("  {advice}"));
    }
    for left_out in &verdict.left_out {
        output::line(&format!("left out  {left_out}"));
    }
    if let Some(open) = left_open(verdict) {
        output::line(open);
    }
    Ok(())
}

/// Returns the verdict as a sentence, which says how sure it is.
pub(super) fn headline(verdict: &Verdict) -> String {
    let kind = match verdict.word("type") {
        Some("shingled") => "shingled (SMR)",
        Some("interlaced") => "interlaced (IMR): every other track is overlapped by those beside it",
        Some("conventional") => "conventional (CMR): nothing shows that its tracks overlap",
        _ => return "Whether this drive is shingled cannot be told from the tests that ran.".into(),
    };
    let is = match verdict.property("type").map(|property| property.confidence) {
        Some(imbrex_probe::Confidence::High) => "is",
        Some(imbrex_probe::Confidence::Medium) => "is probably",
        Some(imbrex_probe::Confidence::Low) | None => "may be",
    };
    format!("This drive {is} {kind}.")
}

/// Experiments that measure properties of any disk, whether its tracks overlap or not.
const OF_MECHANICS: [&str; 3] = ["rotation", "mechanics", "zones"];

/// Returns the properties in two groups, each in the order found: how the drive takes writes, and properties that every
/// disk has.
pub(super) fn parts(verdict: &Verdict) -> (Vec<&Property>, Vec<&Property>) {
    let asks = |property: &Property| {
        let of_mechanics = experiments::all().iter().filter(|experiment| OF_MECHANICS.contains(&experiment.name));
        of_mechanics.into_iter().any(|experiment| experiment.properties.contains(&property.name))
    };
    verdict.properties.iter().partition(|property| !asks(property))
}

/// Returns a note on the questions that remain open if the tests that write were not permitted.
pub(super) fn left_open(verdict: &Verdict) -> Option<&'static str> {
    let was_refused = verdict.left_out.iter().any(|line| line.starts_with("type: it writes"));
    was_refused.then_some(
        "Only tests that read were run. They cannot tell whether the drive is shingled, nor what its cache is like: for \
         that give --destroy-data, on a drive whose data nobody wants.",
    )
}

/// Returns a property's name in words.
pub(super) fn name(property: &Property) -> String {
    let places = [("_od", "outer edge"), ("_md", "middle"), ("_id", "inner edge")];
    match property.name {
        "cache_writes_4k_depth_1" => "writes of 4 KiB, one by one, until it is full".into(),
        "packet_writes" => "writes in a packet".into(),
        "journal_quantum" => "step of a packet's time (quantum)".into(),
        "journal_payload" => "payload of a quantum".into(),
        "journal_out_of_band" => "out-of-band data of a packet".into(),
        "cache_near" => "address nearest to the cache".into(),
        name => match places.iter().find_map(|(end, place)| Some((name.strip_suffix(end)?, place))) {
            Some((stem, place)) => format!("{}, {place}", size_word(stem)),
            None => size_word(name),
        },
    }
}

/// Returns a name without the unit, which the value carries.
fn size_word(name: &str) -> String {
    match name.strip_suffix("_bytes") {
        Some(stem) => format!("{} size", stem.replace('_', " ")),
        None => name.replace('_', " "),
    }
}

/// Returns a word for the probe's confidence.
pub(super) fn confidence(property: &Property) -> &'static str {
    match property.confidence {
        imbrex_probe::Confidence::Low => "low",
        imbrex_probe::Confidence::Medium => "medium",
        imbrex_probe::Confidence::High => "high",
    }
}

/// Returns a property's value with its unit.
pub(super) fn shown(property: &Property) -> String {
    let bound = if property.at_least { "at least " } else { "" };
    format!("{bound}{}", value(property))
}

fn value(property: &Property) -> String {
    match &property.value {
        Value::Word("od") => "outer edge (first addresses)".into(),
        Value::Word("md") => "middle".into(),
        Value::Word("id") => "inner edge (last addresses)".into(),
        Value::Word(word) => word.to_string(),
        Value::CannotTell => "cannot tell".into(),
        Value::Number(number) if property.unit == "B" => human::bytes(*number as u64),
        Value::Number(number) if number.fract() == 0.0 && *number >= 0.0 => {
            format!("{} {}", human::count(*number as u64), property.unit).trim_end().to_string()
        }
        Value::Number(number) => format!("{number:.2} {}", property.unit).trim_end().to_string(),
    }
}
