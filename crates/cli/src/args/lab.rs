//! Arguments of `imbrex lab`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Subcommand};
use imbrex::simulate_options::time;
use imbrex_disk::SimDuration;
use imbrex_lab::FileSystem;

use super::size::size;
use super::{EventArgs, TableArgs};

/// `imbrex lab`.
#[derive(Subcommand, Debug)]
pub(crate) enum LabCommand {
    /// Build the kernel of the lab, once: Debian's source of Linux 6.12, for user mode (some ten minutes).
    Build(LabBuildArgs),
    /// Run a command in an unmodified Linux kernel in virtual time, on emulated drives.
    Run(Box<LabRunArgs>),
}

/// `imbrex lab build`.
#[derive(Args, Debug)]
pub(crate) struct LabBuildArgs {
    /// The source: Debian's package linux-source-6.12 (.deb) or its archive (.tar.xz). Without it, `apt-get download`
    /// fetches the package, 150 MB.
    #[arg(long, value_name = "FILE")]
    pub source: Option<PathBuf>,

    /// Compilers that run at once; without it, one for each processor.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,

    /// Print the options of the kernel, beyond those of `make ARCH=um defconfig`, and build nothing.
    #[arg(long)]
    pub print_config: bool,
}

/// `imbrex lab run`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("disks").args(["drives", "images"]).required(true).multiple(true))]
pub(crate) struct LabRunArgs {
    /// A new drive for the guest: PROFILE[+LAYER][:key=value,…]. May be given several times: the first is /dev/vda, the
    /// second /dev/vdb. With --out its image is in that folder, otherwise in memory.
    #[arg(long = "drive", short = 'd', value_name = "DRIVE", add = crate::complete::drive())]
    pub drives: Vec<String>,

    /// An image whose drive the guest gets, after those of --drive. The guest's writes change it. May be given several
    /// times.
    #[arg(long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,

    /// Make this file system on each drive, and mount it at /mnt/vda, /mnt/vdb and so on. An image that holds something is
    /// refused.
    #[arg(long = "fs", value_name = "NAME", value_parser = file_systems())]
    pub file_system: Option<FileSystem>,

    /// With --fs: mount the file systems that the drives have, and make none.
    #[arg(long, requires = "file_system")]
    pub keep_fs: bool,

    /// Cut the power of all drives this long after the start of the command, in virtual time. The run then ends.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub cut: Option<SimDuration>,

    /// Seed of the guest's random numbers. Two runs with one seed are equal.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// End the run at this virtual time after the start of the kernel.
    #[arg(long, value_name = "TIME", default_value = "1000h", value_parser = time)]
    pub limit: SimDuration,

    /// End the run when the guest has computed for this long on the wall clock without a wait. For a program that waits
    /// busily, no time passes.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = time)]
    pub busy_limit: SimDuration,

    /// Memory of the guest.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    pub memory: u64,

    /// Another kernel, built for user mode with the options of `imbrex lab build --print-config`.
    #[arg(long, value_name = "FILE")]
    pub kernel: Option<PathBuf>,

    /// Keep the run in this new folder: images (vda.img), logs of requests (vda.csv), a page with charts of each new drive
    /// (vda.html), the command's output (output.txt, errors.txt), the kernel's console (console.txt), and summary.json.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// State the causes of this many requests with the longest latencies, for each drive. With --out also in explain.json.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub explain: u32,

    /// File of events. The time of a drive begins with its first request.
    #[command(flatten)]
    pub events: EventArgs,

    /// Print summary.json instead of the command's output and the table.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// The command, and its arguments, after `--`.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Returns the memory of a guest in bytes.
fn memory(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 128 << 20;
    const MOST: u64 = 1 << 40;
    match size(text)? {
        bytes if bytes < LEAST => Err(format!("the guest needs at least 128MiB, not {text}")),
        bytes if bytes > MOST => Err(format!("the guest takes at most 1TiB, not {text}")),
        bytes => Ok(bytes),
    }
}

fn file_systems() -> impl clap::builder::TypedValueParser<Value = FileSystem> {
    let names = PossibleValuesParser::new(FileSystem::ALL.map(|(name, _)| name));
    names.map(|name| {
        let found = FileSystem::ALL.into_iter().find(|(each, _)| *each == name);
        found.expect("a possible value is a file system").1
    })
}
