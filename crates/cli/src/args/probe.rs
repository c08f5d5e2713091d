//! Arguments of `imbrex probe`.

use std::path::PathBuf;

use clap::Args;

use super::size::size;
use super::{ChartArgs, TableArgs};

/// `imbrex probe`.
#[derive(Args, Debug)]
pub(crate) struct ProbeArgs {
    /// The target: sim:DRIVE (a simulated drive in virtual time), an image of `imbrex drive create`, a served drive
    /// (nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH), a block device, or a plain file.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,

    /// Probe the drive below a mounted file system, by a new file there: a folder, or a name that does not exist. Nothing else
    /// is written. The file has no name in the folder, and is gone when the command ends.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "destroy_data", "tests", "emit_profile"])]
    pub file: Option<PathBuf>,

    /// With --file: size of the file.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4GiB", conflicts_with_all = ["target", "compare"])]
    pub size: u64,

    /// The model of the drive, such as `WDC WD40EFAX-68JH4N0`, if the drive does not report it. The statements of its maker and
    /// of public lists are printed beside the measurement; without a target and --file, they alone.
    #[arg(long, value_name = "MODEL", conflicts_with = "compare")]
    pub model: Option<String>,

    /// Write the measurement, without serial number and paths, into this file; an existing file of that name is replaced.
    #[arg(long, value_name = "FILE.json", conflicts_with = "compare")]
    pub share: Option<PathBuf>,

    /// Set measurements of --share or --json beside each other, and measure nothing.
    #[arg(long, value_name = "FILE.json", num_args = 1.., conflicts_with_all = ["target", "file"])]
    pub compare: Vec<PathBuf>,

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

    /// Seed of the random addresses [default: 1].
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

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

    /// Write the drive's profile, ready for `--drive` of `imbrex simulate`; an existing file of that name is replaced.
    #[arg(long, value_name = "FILE.toml")]
    pub emit_profile: Option<PathBuf>,
}

impl ProbeArgs {
    /// Returns the target; empty without one.
    pub(crate) fn target(&self) -> &str {
        self.target.as_deref().unwrap_or_default()
    }
}
