//! The words of `imbrex list`.

use clap::{Args, ValueEnum};

/// `imbrex list`.
#[derive(Args, Debug)]
pub struct ListArgs {
    /// What to list [default: all].
    #[arg(value_enum)]
    pub what: Option<ListChoice>,
    /// One of them: of a layer every parameter, of a drive its profile as TOML.
    pub name: Option<String>,
    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What can be listed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListChoice {
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
