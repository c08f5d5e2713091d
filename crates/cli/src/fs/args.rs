//! Arguments of `imbrex fs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use imbrex_fs::load::age::DeleteOrder;

use crate::args::size::size;
use crate::args::{ChartArgs, EventArgs, TableArgs};

/// `imbrex fs`.
#[derive(Subcommand, Debug)]
pub(crate) enum FsCommand {
    /// Make a file system on a drive, or on an array of drives; the contents of the drives are lost.
    ///
    /// The drive is host-managed with zones, or a caveat disk: an image of `imbrex drive create`, such as one of the
    /// profiles strict-append and caveat-1g, or a zoned block device. An array (store log) takes conventional drives
    /// and files too.
    Mkfs(MkfsArgs),
    /// Mount a file system on a directory; returns when the directory is served.
    ///
    /// `imbrex fs umount DIR`, umount(8) or Ctrl-C end the mount cleanly.
    Mount(MountArgs),
    /// Unmount a directory; returns when everything is written.
    Umount {
        /// The directory.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Make all earlier writes to a mounted file system durable; the kernel does not pass on syncfs(2) and sync(2).
    Sync {
        /// The directory.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Check a file system that is not mounted: names, lists of blocks, and every block of every file against its
    /// checksum. Nothing is changed. Exit code 3 on damage.
    Check {
        /// Devices of the file system; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read every file of a mounted file system from the drive, and compare it with its checksums; programs may
    /// continue to use the file system. Of an array that is not mounted, or with --repair, every row that files use is
    /// read, on all drives, and compared with its parity too; so is every copy of the metadata. Damage is listed; exit
    /// code 3 if there is any.
    Scrub {
        /// The mounted directory, or the devices of an array that is not mounted.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        places: Vec<PathBuf>,
        /// Copy the blocks of damaged rows to another place, reconstructed by parity, and rewrite metadata that is
        /// damaged in one copy. For arrays, mounted or not.
        #[arg(long)]
        repair: bool,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the state of a file system: space, fill of zones, metadata, cleaning.
    Stat {
        /// The mounted directory, or the devices of a file system that is not mounted.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        places: Vec<PathBuf>,
        /// Print the state as JSON.
        #[arg(long)]
        json: bool,
        /// Form of the table.
        #[command(flatten)]
        table: TableArgs,
    },
    /// Empty zones with many dead blocks now. A mounted file system does this by itself.
    Clean {
        /// The mounted directory, or the devices of the file system; one is enough where the others lie in the same
        /// folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// Largest number of zones to empty [default: all that free space].
        #[arg(long, value_name = "NUMBER")]
        zones: Option<u64>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Replace a drive of an array, mounted or not: the files' blocks on the old drive are reconstructed on the new
    /// one. Or replace a device with a copy of the metadata.
    ///
    /// The contents of the new drive are lost. After Ctrl-C or a power cut the same command continues the replacement
    /// of a drive; a copy of the metadata is copied from the beginning. Files of a mounted file system are read and
    /// written meanwhile.
    Replace {
        /// The mounted directory, or the present devices of the file system; one is enough where the others lie in the
        /// same folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// The number of the drive to replace, as `imbrex fs mount`, `check` and `stat` name it [default: the one that
        /// is missing].
        #[arg(long, value_name = "NUMBER", conflicts_with = "copy")]
        drive: Option<u8>,
        /// The number of the copy of the metadata to replace, as `imbrex fs stat` names it.
        #[arg(long, value_name = "NUMBER")]
        copy: Option<usize>,
        /// The new drive.
        #[arg(long, value_name = "DEVICE")]
        with: PathBuf,
        /// Take the new drive even if it holds a file system already, a partition table or other data, all of which is
        /// lost. A device that is mounted or otherwise in use is never erased.
        #[arg(long)]
        force: bool,
        /// Do not ask before the drive is erased. Without a terminal no question is asked. Does not imply --force.
        #[arg(long)]
        yes: bool,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Recover files after the loss of all metadata, from the records that store log writes with the data. Nothing is
    /// written to the drives.
    ///
    /// With --meta new metadata is written to a device, and the file system can be mounted again with it; with --to
    /// files are copied to a directory. Every drive is read from end to end. Items without data are not recovered:
    /// empty files, symbolic links, further names, extended attributes; deleted files may return. Exit code 3 if
    /// something is incomplete.
    Salvage(SalvageArgs),
    /// Add a drive to an array, mounted or not: later writes use it too. Or add a spare, which waits for a drive of the
    /// array to fail. The contents of the added drive are lost.
    Add {
        /// The mounted directory, or the devices of the file system; one is enough where the others lie in the same
        /// folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// The drive that is added.
        #[arg(long, value_name = "DEVICE", required_unless_present = "spare", conflicts_with = "spare")]
        drive: Option<PathBuf>,
        /// The drive that is added as a spare.
        #[arg(long, value_name = "DEVICE")]
        spare: Option<PathBuf>,
        /// Take the drive even if it holds a file system already, a partition table or other data, all of which is
        /// lost. A device that is mounted or otherwise in use is never erased.
        #[arg(long)]
        force: bool,
        /// Do not ask before the drive is erased. Without a terminal no question is asked. Does not imply --force.
        #[arg(long)]
        yes: bool,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Convert a file system of an older format; its files stay as they are.
    ///
    /// Older formats can be mounted read-only without conversion. Data is not touched: only metadata is written, in
    /// place, and the metadata of the older format stays valid until the first superblock of the new format is written.
    /// The command can be killed at any time, and run again.
    Upgrade {
        /// Devices of the file system; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the contents of the devices: superblock, checkpoint, files and their extents.
    Dump {
        /// Devices of the file system; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print the contents as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Age a file system: create and delete files until free space is as fragmented as after long use (Singh 2014
    /// §5.3).
    ///
    /// Four files are created for each one deleted until a given size is filled; then the fill is kept. Most files are
    /// of 4 and 8 KiB, the largest of 4 MiB, their mean 42 KiB. On devices that are not mounted the command runs in
    /// virtual time, at the speed of the drive; in a mounted directory, of any file system, by the wall clock.
    Age(AgeArgs),
    /// Find out how much larger than its contents a caveat disk must be: the smallest over-allocation with which ageing
    /// never fills the disk (Singh 2014 tables 5.1 and 5.2).
    ///
    /// Contiguous files are placed by the allocation algorithm alone. With --extents the whole file system runs on disks
    /// in memory; with the paper's size and operations a search then takes minutes.
    Capacity(CapacityArgs),
    /// Measure a file system with a benchmark: lfs, smallfiles, postmark, compile (Singh 2014 §5.2), createfiles,
    /// varmail or fileserver (Jin 2014 §III). Without a name: list the benchmarks, with their sizes.
    ///
    /// On devices that are not mounted the benchmark runs in virtual time: the times are those of the drives, and
    /// processor time is not counted. In a mounted directory, of any file system, it runs by the wall clock.
    Bench(BenchArgs),
}

/// Default size of the page cache of `fs bench`: 2 GiB.
const PAGE_CACHE_BYTES: u64 = 2 << 30;

/// Returns the parser of a distance on a caveat disk in blocks: 0 to 2^32 − 1.
fn isolation() -> clap::builder::RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(0..=u64::from(u32::MAX))
}

/// `imbrex fs bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// The benchmark.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// The devices of a file system that is not mounted, or one directory of a mounted file system.
    #[arg(value_name = "DEVICE|DIR")]
    pub places: Vec<PathBuf>,

    /// Number of files [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub files: Option<u64>,

    /// Size of a file, or mean size of the files [default: the benchmark's own].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub file_size: Option<u64>,

    /// Number of operations: transactions, rounds, compiled sources [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub operations: Option<u64>,

    /// Number of concurrent applications [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<u64>,

    /// Seed of all choices: equal seeds give equal operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// On devices: run with this many seeds, from --seed on: mean and 95 % interval of each figure. With several seeds,
    /// each run starts from the state found, and the file system stays as it was.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub seeds: u32,

    /// The new directory for the files.
    #[arg(long, value_name = "NAME", default_value = "bench")]
    pub folder: String,

    /// On devices: size of the kernel's page cache in front of the file system [default: 2GiB].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub page_cache: Option<u64>,

    /// The address of the live page (`imbrex serve --window`) of the drive that the directory lies on: its simulated
    /// time is printed beside the wall-clock time.
    #[arg(long, value_name = "ADDRESS")]
    pub served: Option<String>,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,

    /// Write summary.json and a page, report.html, into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Folder for the charts.
    #[command(flatten)]
    pub charts: ChartArgs,

    /// The file of events.
    #[command(flatten)]
    pub events: EventArgs,
}

impl BenchArgs {
    /// Returns the size of the page cache in bytes, which only a run on devices has.
    pub(crate) fn page_cache_bytes(&self) -> u64 {
        self.page_cache.unwrap_or(PAGE_CACHE_BYTES)
    }
}

/// The options of ageing that `fs age` and `fs capacity` have in common.
#[derive(Args, Debug)]
pub(crate) struct AgeingArgs {
    /// Number of operations of a run: creations and deletions of files.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub operations: u64,

    /// Seed of all choices: equal seeds give equal operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Order of deletes: weighted, random, oldest, directory or runs=FILES.
    ///
    /// With weighted, a size is chosen by the weights of sizes, and then a file of this size by chance. With random,
    /// every file has an equal chance. With directory, whole directories are emptied, chosen by chance. With runs=500,
    /// a file is chosen by chance, and 500 neighbours from it on are deleted, in the order of creation.
    #[arg(long, value_name = "ORDER", default_value_t)]
    pub deletes: DeleteOrder,
}

/// `imbrex fs age`.
#[derive(Args, Debug)]
pub(crate) struct AgeArgs {
    /// The devices of a file system that is not mounted, or one directory of a mounted file system.
    #[arg(value_name = "DEVICE|DIR", required = true)]
    pub places: Vec<PathBuf>,

    /// Amount of data that the files of the ageing reach and keep, without earlier files [default: three quarters of the
    /// free space; two fifths on a caveat disk that is not mounted].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub fill: Option<u64>,

    #[command(flatten)]
    pub ageing: AgeingArgs,

    /// The new directory for the files.
    #[arg(long, value_name = "NAME", default_value = "aged")]
    pub folder: String,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs capacity`.
#[derive(Args, Debug)]
pub(crate) struct CapacityArgs {
    /// Allocation algorithms, separated by commas [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub fit: Vec<String>,

    /// DID of the disks in blocks of 4 KiB, separated by commas.
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', default_values_t = [16, 512], value_parser = isolation())]
    pub did: Vec<u64>,

    /// DNOR of the disks in blocks of 4 KiB. It matters only to the file system of --extents.
    #[arg(long, value_name = "BLOCKS", default_value_t = 6, value_parser = isolation(), requires = "extents")]
    pub dnor: u64,

    /// Amount of data that the disks must hold.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB")]
    pub size: u64,

    #[command(flatten)]
    pub ageing: AgeingArgs,

    /// Precision of the answer, in percent of the size.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1")]
    pub step: u64,

    /// The largest over-allocation to try, in percent of the size.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "200")]
    pub most: u64,

    /// Allow a file to lie in several pieces.
    #[arg(long)]
    pub extents: bool,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,

    /// Form of the table.
    #[command(flatten)]
    pub table: TableArgs,
}

/// Returns a percentage with up to two decimals, in hundredths of a percent.
fn percent(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a percentage such as 0.5, not '{text}'");
    imbrex_units::quantity::fixed(text, 2).ok_or_else(wrong)
}

/// `imbrex fs mkfs`.
#[derive(Args, Debug)]
pub(crate) struct MkfsArgs {
    /// The drive for the data; for an array, all its drives.
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<PathBuf>,

    /// Layout of the data: strict-append for zones, caveat for caveat disks, log for arrays and for any drive but a
    /// caveat disk [default: log for several drives or with --parity, otherwise the one for zones or for caveat disks;
    /// a single conventional drive has no default].
    #[arg(long, value_name = "NAME")]
    pub store: Option<String>,

    /// Choice of the free run for a file on a caveat disk: best, worst, first, next or last-accessed [default: best].
    #[arg(long, value_name = "NAME")]
    pub fit: Option<String>,

    /// On a caveat disk, allow a file to lie in several pieces.
    #[arg(long)]
    pub extents: bool,

    /// Choice of the zone that the cleaner empties: greedy, cost-benefit, oldest or files. The last chooses like
    /// greedy, and on log moves files that lie in pieces as a whole [default: cost-benefit on log, else greedy].
    #[arg(long, value_name = "NAME")]
    pub cleaner: Option<String>,

    /// Number of drives of an array that may be lost without loss of data: 0 to 3, and less than the number of drives.
    #[arg(long, value_name = "DRIVES", default_value_t = 0)]
    pub parity: u8,

    /// A device for the metadata: another image, a file, a block device [default: the unshingled part of DEVICE]. An
    /// array requires this option. If it is given several times, each device holds a copy of all metadata, and one of
    /// them may be lost.
    #[arg(long, value_name = "DEVICE")]
    pub meta: Vec<PathBuf>,

    /// A spare drive: while an array with parity is mounted, it replaces a drive that fails, without a command. May be
    /// given several times.
    #[arg(long, value_name = "DEVICE")]
    pub spare: Vec<PathBuf>,

    /// Bytes for metadata on DEVICE [default: its conventional zones; without zones a sixty-fourth of it, at least 1
    /// MiB, plus the hot zone]. With --meta FILE, size of a new file.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub meta_size: Option<u64>,

    /// Total size of the hot zone of store log, which holds files that are small or read often. --hot-on says where the
    /// zone lies [default: none].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub hot: Option<u64>,

    /// Place of the hot zone: with the metadata, or on the drives of DEVICE, in their conventional zones or on the
    /// outer part of conventional disks; on drives it holds copies [default: meta].
    #[arg(long, value_name = "meta|drives", value_parser = ["meta", "drives"], requires = "hot")]
    pub hot_on: Option<String>,

    /// Whether files in the hot zone are on the drives too: all their data (copies), or none (alone), which takes
    /// --meta twice [default: alone where --meta is given twice].
    #[arg(long, value_name = "copies|alone", value_parser = ["copies", "alone"], requires = "hot")]
    pub hot_files: Option<String>,

    /// UUID of the file system [default: a random one].
    #[arg(long, value_name = "UUID")]
    pub uuid: Option<uuid::Uuid>,

    /// Make the file system even where there is one already, a partition table or other data, all of which is lost. A
    /// device that is mounted or otherwise in use is never erased.
    #[arg(long)]
    pub force: bool,

    /// Do not ask before the devices are erased. Without a terminal no question is asked. Does not imply --force.
    #[arg(long)]
    pub yes: bool,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs salvage`.
#[derive(Args, Debug)]
pub(crate) struct SalvageArgs {
    /// The drives with the data; one is enough where the others lie in the same folder.
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<PathBuf>,

    /// The device to write new metadata to: a file, an image, a block device; the drive itself if the old metadata lay
    /// on it. Either this or --to is required.
    #[arg(long, value_name = "DEVICE", required_unless_present = "to", conflicts_with = "to")]
    pub meta: Option<PathBuf>,

    /// With --meta FILE, size of a new file.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "meta")]
    pub meta_size: Option<u64>,

    /// Instead of --meta: copy the files to this directory, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Proceed even if the metadata can still be read, or if the device for new metadata holds a file system, a
    /// partition table or other data. The contents of that device are lost. A device that is mounted or otherwise in
    /// use is never erased.
    #[arg(long)]
    pub force: bool,

    /// Do not ask before the device for new metadata is erased. Without a terminal no question is asked. Does not imply
    /// --force.
    #[arg(long, requires = "meta")]
    pub yes: bool,

    /// Print the result as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs mount`.
#[derive(Args, Debug)]
#[command(override_usage = "imbrex fs mount [OPTIONS] <DEVICE>… <DIR>")]
pub(crate) struct MountArgs {
    /// Devices of the file system (one is enough where the others lie in the same folder), then the directory, which
    /// must be empty.
    #[arg(value_name = "DEVICE… DIR", required = true, num_args = 2..)]
    pub places: Vec<PathBuf>,

    /// Mount options, separated by commas: ro; allow_other; fsname=NAME; time=none|real (answer at once, or as slowly
    /// as an emulated drive would); cache=SIZE; queue_depth=NUMBER and queue_deadline=MS (number of operations that a
    /// drive has at a time, and longest time that writes wait for reads); window=ADDRESS (figures over HTTP: /stats,
    /// /state.json, /metrics for Prometheus); stats=PATH (the text of /stats on a Unix socket); nonempty; fit=NAME,
    /// extents=on|off, cleaner=NAME, clean_below=PERCENT, open_bands=NUMBER, open_groups=NUMBER, kept_back=NUMBER,
    /// hot_files=copies|alone; dev, suid, noexec and other flags of mount(8).
    #[arg(short = 'o', value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,

    /// Stay in the foreground.
    #[arg(long, short = 'f')]
    pub foreground: bool,
}
