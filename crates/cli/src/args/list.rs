//! Arguments of `imbrex list`.

use clap::{Args, ValueEnum};

use super::TableArgs;

/// `imbrex list`.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Kind of entries to list [default: all].
    #[arg(value_enum)]
    pub what: Option<ListChoice>,
    /// One entry: a layer with every parameter, or a drive's profile as TOML.
    #[arg(add = crate::complete::layer_or_profile())]
    pub name: Option<String>,
    /// Print the list as JSON.
    #[arg(long)]
    pub json: bool,
    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Kinds of entries of `imbrex list`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ListChoice {
    /// Drive profiles.
    #[value(alias = "drives")]
    Profiles,
    /// Translation layers, with their parameters.
    Layers,
    /// Trace formats.
    Formats,
    /// Built-in workloads.
    Generators,
    /// The papers' experiments.
    Experiments,
}
