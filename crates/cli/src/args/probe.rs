//! Arguments of `imbrex probe`.

use std::path::PathBuf;

use clap::Args;

use super::{ChartArgs, TableArgs};

/// `imbrex probe`.
#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// The target: sim:DRIVE (a simulated drive in virtual time), an image of `imbrex drive create`, a served drive
    /// (nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH), a block device, or a plain file.
    #[arg(value_name = "TARGET")]
    pub target: String,

    /// Run only this test and the tests that it needs; give it again for more [default: all].
    #[arg(long = "test", value_name = "NAME")]
    pub tests: Vec<String>,

    /// Allow the tests that write: they destroy the contents of the drive. A simulated drive needs no such permission.
    #[arg(long)]
    pub destroy_data: bool,

    /// With --destroy-data: also where the drive holds a partition table, a file system or other data. One that is mounted or
    /// otherwise in use is never written.
    #[arg(long, requires = "destroy_data")]
    pub force: bool,

    /// With --destroy-data: do not ask before the tests write. Without a terminal no question is asked. Does not imply
    /// --force.
    #[arg(long, requires = "destroy_data")]
    pub yes: bool,

    /// The former name of --force.
    #[arg(long, requires = "destroy_data", hide = true)]
    pub really: bool,

    /// Time on the drive's clock that the tests may take: the test that yields most for its time runs first, and tests
    /// that do not fit are left out and named.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,

    /// Seed of the random addresses.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Print the verdict as JSON, with the measurements behind it.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// Write the verdict with its evidence as a page for a browser; an existing file of that name is replaced only when
    /// the page is whole.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,

    /// Write the drive's profile, ready for `--drive` of `imbrex simulate`.
    #[arg(long, value_name = "FILE.toml")]
    pub emit_profile: Option<PathBuf>,
}
