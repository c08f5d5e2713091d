//! Charts as files.

use std::path::PathBuf;

use clap::Args;

/// Folder for the charts of a command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChartArgs {
    /// Write the charts of the report into this folder, each as SVG and as PNG, 88 mm wide: a column of a paper. A missing
    /// folder is created; files of these names are replaced.
    #[arg(long, value_name = "FOLDER")]
    pub charts: Option<PathBuf>,
}
