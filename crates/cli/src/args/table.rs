//! The form of printed tables.

use std::path::Path;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use imbrex::Failure;
use imbrex::table_form::TableForm;

/// Form of the table of a command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TableArgs {
    /// Print the table alone, for another program: `csv` has plain numbers in the units that its columns name, `latex` an
    /// environment for the package booktabs.
    #[arg(long, value_name = "FORM", value_parser = forms(), conflicts_with = "json")]
    pub table: Option<TableForm>,
}

impl TableArgs {
    /// Returns an error if explanations of this many requests were asked for, and would be neither printed nor kept in the
    /// folder `out`.
    pub(crate) fn refuse_explanation(&self, requests: u32, out: Option<&Path>) -> Result<(), Failure> {
        match (self.table, out) {
            (Some(form), None) if requests > 0 => {
                let message =
                    format!("--table {} prints the table alone, without the causes of --explain", form.name());
                Err(Failure::usage(message).or_try("--json, or --out, which keeps them in explain.json"))
            }
            _ => Ok(()),
        }
    }
}

fn forms() -> impl clap::builder::TypedValueParser<Value = TableForm> {
    let names = PossibleValuesParser::new(TableForm::ALL.map(TableForm::name));
    names.map(|name| TableForm::ALL.into_iter().find(|form| form.name() == name).expect("a possible value is a form"))
}
