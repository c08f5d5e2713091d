//! The form of printed tables.

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use imbrex::table_form::TableForm;

/// Form of the table of a command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TableArgs {
    /// Print the table alone, for another program: `csv` has plain numbers in the units that its columns name, `latex` an
    /// environment for the package booktabs.
    #[arg(long, value_name = "FORM", value_parser = forms(), conflicts_with = "json")]
    pub table: Option<TableForm>,
}

fn forms() -> impl clap::builder::TypedValueParser<Value = TableForm> {
    let names = PossibleValuesParser::new(TableForm::ALL.map(TableForm::name));
    names.map(|name| TableForm::ALL.into_iter().find(|form| form.name() == name).expect("a possible value is a form"))
}
