//! Goal: `docs/traces.md` lists every format with the options that apply to it, and no option is ignored. Method: the table
//! of the page against the registry; each format is opened with each option.

use std::collections::BTreeMap;

use imbrex_trace::options::{Decimal, TimeUnit, TraceOptions};
use imbrex_trace::{Input, formats, open};
use imbrex_units::Operation;

const PAGE: &str = include_str!("../../../../docs/traces.md");

/// Returns the options of each format in the page's table.
fn listed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let rows = PAGE.lines().skip_while(|line| *line != "| format | contents | options |").skip(2);
    let cells =
        rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let options = |cell: &'static str| {
        cell.split(',').map(str::trim).filter(|word| !word.is_empty()).map(|word| word.trim_matches('`')).collect()
    };
    cells.map(|cells| (cells[1].trim_matches('`'), options(cells[3]))).collect()
}

#[test]
fn the_page_lists_every_format_with_its_options() {
    let known: BTreeMap<&str, Vec<String>> = formats::all()
        .iter()
        .map(|format| (format.name, format.options.iter().map(|option| format!("--{option}")).collect()))
        .collect();
    let listed: BTreeMap<&str, Vec<String>> =
        listed().into_iter().map(|(name, options)| (name, options.into_iter().map(String::from).collect())).collect();
    assert_eq!(listed, known);
}

/// A name of an option, and options in which it alone is given.
fn each_option() -> Vec<(&'static str, TraceOptions)> {
    let none = TraceOptions::default;
    vec![
        ("columns", TraceOptions { columns: Some("op,offset,size".into()), ..none() }),
        ("units", TraceOptions { units: Some(",B,B".into()), ..none() }),
        ("action", TraceOptions { action: Some('Q'), ..none() }),
        ("read-flag", TraceOptions { read_flag: Some(0), ..none() }),
        ("time-unit", TraceOptions { time_unit: Some(TimeUnit::Seconds), ..none() }),
        ("decimal", TraceOptions { decimal: Some(Decimal::Comma), ..none() }),
        ("all", TraceOptions { all: Some(Operation::Read), ..none() }),
    ]
}

#[test]
fn every_format_honours_an_option_or_refuses_it_by_name() {
    for format in formats::all() {
        for (name, options) in each_option() {
            let options = TraceOptions { format: Some(format.name.into()), ..options };
            let error = open(Input::bytes("t", "x"), &options).map(drop).err().map(|error| error.to_string());
            let is_refused =
                error.is_some_and(|error| error.starts_with(&format!("t: --{name} does not apply to the format")));
            assert_eq!(is_refused, !format.options.contains(&name), "{} --{name}", format.name);
        }
    }
    let given: Vec<_> =
        each_option().into_iter().map(|(name, options)| (name, options.given().collect::<Vec<_>>())).collect();
    given.iter().for_each(|(name, given)| assert_eq!(given, &[*name], "the only option that is given"));
}
