//! The words of `imbrex fs`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::size;

/// `imbrex fs`.
#[derive(Subcommand, Debug)]
pub enum FsCommand {
    /// Make a file system on a drive, or on an array of drives; what was on them is lost.
    ///
    /// The drive is a host-managed one in zones or a caveat disk: an image of `imbrex drive create`, such as one of the
    /// profiles strict-append and caveat-1g, or a zoned block device. An array (store log) takes conventional drives and files
    /// too.
    Mkfs(MkfsArgs),
    /// Mount a file system on a directory; comes back when the directory is served.
    ///
    /// `imbrex fs umount DIR`, umount(8) or Ctrl-C end it in good order.
    Mount(MountArgs),
    /// Unmount a directory; comes back when everything is written.
    Umount {
        /// The directory.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Make everything durable that was written to a mounted file system before; the kernel does not pass on syncfs(2) and sync(2).
    Sync {
        /// The directory.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Check a file system that is not mounted: names, lists of blocks, and every block of every file against its checksum.
    /// Nothing is changed. Exit code 3 on damage.
    Check {
        /// Its devices; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Read every file of a mounted file system from the drive, and hold it against its checksums; others may go on
    /// working meanwhile. Of an array that is not mounted, or with --repair, every row that files use is read, on all
    /// drives, and held against its parity too; so is every copy of the metadata. What is damaged is named; exit code 3
    /// if anything is.
    Scrub {
        /// The directory, or the devices of an array that is not mounted.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        places: Vec<PathBuf>,
        /// Copy what lies in damaged rows to another place, made right by parity, and write metadata again that one copy has
        /// damaged. For arrays, mounted or not.
        #[arg(long)]
        repair: bool,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell how a file system is doing: room, fill of zones, metadata, cleaning.
    Stat {
        /// The directory that it is mounted on, or its devices where it is not mounted.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        places: Vec<PathBuf>,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Empty zones that hold much that is dead, by hand. A file system that is mounted does it by itself.
    Clean {
        /// The directory that it is mounted on, or its devices; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// How many zones to empty at most [default: all that gain anything].
        #[arg(long, value_name = "NUMBER")]
        zones: Option<u64>,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a drive in the place of one of an array, mounted or not: what files had on the one that leaves is made again. Or a
    /// device in the place of one with a copy of the metadata.
    ///
    /// What was on the new drive is lost. If it is stopped with Ctrl-C, or the power fails, the same command goes on with a drive;
    /// a copy of the metadata is copied anew. On a mounted one files are read and written meanwhile.
    Replace {
        /// The directory that it is mounted on, or the devices that are there; one is enough where the others lie in the same
        /// folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// The number of the drive that leaves, as `imbrex fs mount`, `check` and `stat` name it [default: the one that is
        /// missing].
        #[arg(long, value_name = "NUMBER", conflicts_with = "copy")]
        drive: Option<u8>,
        /// The number of the copy of the metadata in whose place the new device comes, as `imbrex fs stat` names it.
        #[arg(long, value_name = "NUMBER")]
        copy: Option<usize>,
        /// The drive that comes in its place.
        #[arg(long, value_name = "DEVICE")]
        with: PathBuf,
        /// Take it even if it holds a file system already, a partition table or other data, all of which is lost. What is
        /// mounted or otherwise in use is never erased.
        #[arg(long)]
        force: bool,
        /// Do not ask on a terminal before a block device is erased. Does not stand for --force.
        #[arg(long)]
        yes: bool,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Find files again where all metadata are lost, by the records that data carry in store log. Nothing is written to the
    /// drives.
    ///
    /// With --meta they are written to a new device, and the file system can be mounted again with it; with --to files
    /// are copied to a directory. Every drive is read from end to end. What has no data does not come back: empty
    /// files, symbolic links, further names, extended attributes; what was deleted may return. Exit code 3 if something
    /// is incomplete.
    Salvage(SalvageArgs),
    /// Add a drive to an array, mounted or not: what is written from then on lies on it too. Or a spare, which waits for one of
    /// its drives to fail. What was on it is lost.
    Add {
        /// The directory that it is mounted on, or its devices; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE|DIR", required = true)]
        devices: Vec<PathBuf>,
        /// The drive that is added.
        #[arg(long, value_name = "DEVICE", required_unless_present = "spare", conflicts_with = "spare")]
        drive: Option<PathBuf>,
        /// The drive that is added as a spare.
        #[arg(long, value_name = "DEVICE")]
        spare: Option<PathBuf>,
        /// Take it even if it holds a file system already, a partition table or other data, all of which is lost. What is
        /// mounted or otherwise in use is never erased.
        #[arg(long)]
        force: bool,
        /// Do not ask on a terminal before a block device is erased. Does not stand for --force.
        #[arg(long)]
        yes: bool,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Convert a file system of an older format; its files stay as they are.
    ///
    /// Older formats can be mounted read-only without it. Data are not touched: only metadata are written, in place, and
    /// those of the older format stay valid until the superblock that makes the file system one of the new format. It can
    /// be killed at any time, and run again.
    Upgrade {
        /// Its devices; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print what is on the devices: superblock, checkpoint, files and where they lie.
    Dump {
        /// Its devices; one is enough where the others lie in the same folder.
        #[arg(value_name = "DEVICE", required = true)]
        devices: Vec<PathBuf>,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Age a file system: create and delete files until free room is what long use leaves of it (Singh 2014 §5.3).
    ///
    /// Four files are created for each one deleted until a size is filled; then it is kept filled. Most files are of 4 and
    /// 8 KiB, the largest of 4 MiB, their mean 42 KiB. On devices that are not mounted it runs in virtual time, at the speed
    /// of the drive; in a mounted directory, of whatever file system, by the wall clock.
    Age(AgeArgs),
    /// Tell how much larger than what it holds a caveat disk must be: the smallest over-allocation with which ageing never
    /// finds it full (Singh 2014 tables 5.1 and 5.2).
    ///
    /// The disks are in memory and take no time. With the paper's size and operations a search takes minutes.
    Capacity(CapacityArgs),
    /// Measure a file system with a benchmark: lfs, smallfiles, postmark, compile (Singh 2014 §5.2), createfiles, varmail or
    /// fileserver (Jin 2014 §III). Without a name: list them, with their sizes.
    ///
    /// On devices that are not mounted it runs in virtual time: what it tells is the time of the drives, and takes no part of
    /// a processor. In a mounted directory, of whatever file system, it runs by the wall clock.
    Bench(BenchArgs),
}

/// `imbrex fs bench`.
#[derive(Args, Debug)]
pub struct BenchArgs {
    /// The benchmark.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// The devices of a file system that is not mounted, or a mounted directory.
    #[arg(value_name = "DEVICE|DIR")]
    pub places: Vec<PathBuf>,

    /// How many files [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub files: Option<u64>,

    /// Size of a file, or their mean [default: the benchmark's own].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub file_size: Option<u64>,

    /// How much is done with them: transactions, rounds, compiled sources [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub operations: Option<u64>,

    /// Applications that work at once [default: the benchmark's own].
    #[arg(long, value_name = "NUMBER")]
    pub threads: Option<u64>,

    /// Seed of all choices: the same seed does the same operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// The new directory that the files go into.
    #[arg(long, value_name = "NAME", default_value = "bench")]
    pub folder: String,

    /// In virtual time: what the kernel's page cache in front of the file system would hold.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "2GiB")]
    pub page_cache: u64,

    /// The address of the live page (`imbrex serve --window`) of the drive that the directory lies on: its simulated time is
    /// told beside the wall's.
    #[arg(long, value_name = "ADDRESS")]
    pub served: Option<String>,

    /// Print what was measured as JSON.
    #[arg(long)]
    pub json: bool,

    /// Write summary.json and a page, report.html, into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
}

/// `imbrex fs age`.
#[derive(Args, Debug)]
pub struct AgeArgs {
    /// The devices of a file system that is not mounted, or a mounted directory.
    #[arg(value_name = "DEVICE|DIR", required = true)]
    pub places: Vec<PathBuf>,

    /// The size that is filled and kept [default: three quarters of what is free].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub fill: Option<u64>,

    /// How many files to create and delete.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub operations: u64,

    /// Seed of all choices: the same seed does the same operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// The new directory that the files go into.
    #[arg(long, value_name = "NAME", default_value = "aged")]
    pub folder: String,

    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs capacity`.
#[derive(Args, Debug)]
pub struct CapacityArgs {
    /// Allocation algorithms, with commas between [default: all].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub fit: Vec<String>,

    /// DID of the disks in blocks of 4 KiB, with commas between.
    #[arg(long, value_name = "BLOCKS", value_delimiter = ',', default_values_t = [16, 512])]
    pub did: Vec<u64>,

    /// DNOR of the disks in blocks of 4 KiB.
    #[arg(long, value_name = "BLOCKS", default_value_t = 6)]
    pub dnor: u64,

    /// What the disks are to hold.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1GiB")]
    pub size: u64,

    /// How many files to create and delete in each run.
    #[arg(long, value_name = "NUMBER", default_value_t = 100_000)]
    pub operations: u64,

    /// Seed of all choices: the same seed does the same operations.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// How exact the answer is to be, in percent of the size.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1")]
    pub step: u64,

    /// The largest over-allocation to try, in percent of the size.
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "200")]
    pub most: u64,

    /// Let a file lie in several pieces.
    #[arg(long)]
    pub extents: bool,

    /// Print it as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A percentage with up to two decimals, in hundredths.
fn percent(text: &str) -> Result<u64, String> {
    let wrong = || format!("expected a percentage such as 0.5, not '{text}'");
    imbrex_units::quantity::fixed(text, 2).ok_or_else(wrong)
}

/// `imbrex fs mkfs`.
#[derive(Args, Debug)]
pub struct MkfsArgs {
    /// The drive that is to hold the data; for an array, all of them.
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<PathBuf>,

    /// Where data lie: strict-append for zones, caveat for caveat disks, log for arrays and for any drive but a caveat disk
    /// [default: the one for the drive, log for several].
    #[arg(long, value_name = "NAME")]
    pub store: Option<String>,

    /// Which free run a file gets on a caveat disk: best, worst, first, next or last-accessed [default: best].
    #[arg(long, value_name = "NAME")]
    pub fit: Option<String>,

    /// On a caveat disk, let a file lie in several pieces.
    #[arg(long)]
    pub extents: bool,

    /// Which zone the cleaner empties: greedy, cost-benefit or oldest; files: as greedy, and on log moves files that lie in
    /// pieces as a whole [default: cost-benefit on log, else greedy].
    #[arg(long, value_name = "NAME")]
    pub cleaner: Option<String>,

    /// How many drives of an array may be lost without loss of data: 0 to 3, and fewer than there are drives.
    #[arg(long, value_name = "DRIVES", default_value_t = 0)]
    pub parity: u8,

    /// A device for the metadata: another image, a file, a block device [default: the unshingled part of DEVICE]. Given twice,
    /// each is a copy of the other, and one of them may be lost.
    #[arg(long, value_name = "DEVICE")]
    pub meta: Vec<PathBuf>,

    /// A drive that takes the place of one of an array with parity that fails while it is mounted, by itself. May be given
    /// several times.
    #[arg(long, value_name = "DEVICE")]
    pub spare: Vec<PathBuf>,

    /// Bytes for metadata on DEVICE [default: a sixty-fourth of it]; with --meta FILE, how large a new file is made.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub meta_size: Option<u64>,

    /// Bytes for the hot zone of store log: files that are small or read often lie there, on the flash of --meta or in conventional
    /// zones [default: none].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub hot: Option<u64>,

    /// Where the hot zone lies: with the metadata, or on the drives of DEVICE, in their conventional zones or on the outer part of
    /// conventional disks; there it holds copies [default: meta].
    #[arg(long, value_name = "meta|drives", value_parser = ["meta", "drives"], requires = "hot")]
    pub hot_on: Option<String>,

    /// What of files in the hot zone is on the drives too: all (copies), or nothing (alone), which takes --meta twice
    /// [default: alone where --meta is given twice].
    #[arg(long, value_name = "copies|alone", value_parser = ["copies", "alone"], requires = "hot")]
    pub hot_files: Option<String>,

    /// Its name among file systems [default: a random one].
    #[arg(long, value_name = "UUID")]
    pub uuid: Option<uuid::Uuid>,

    /// Make it even where there is a file system already, a partition table or other data, all of which is lost. What is mounted
    /// or otherwise in use is never erased.
    #[arg(long)]
    pub force: bool,

    /// Do not ask on a terminal before a block device is erased. Does not stand for --force.
    #[arg(long)]
    pub yes: bool,

    /// Print what was made as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs salvage`.
#[derive(Args, Debug)]
pub struct SalvageArgs {
    /// The drives with the data; one is enough where the others lie in the same folder.
    #[arg(value_name = "DEVICE", required = true)]
    pub devices: Vec<PathBuf>,

    /// The device for new metadata: a file, an image, a block device; the drive itself where they lay on it.
    #[arg(long, value_name = "DEVICE", required_unless_present = "to", conflicts_with = "to")]
    pub meta: Option<PathBuf>,

    /// With --meta FILE, how large a new file is made.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "meta")]
    pub meta_size: Option<u64>,

    /// A directory that files are copied to: a new one, or one that is empty.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Do it even where the metadata can be read, or the new device holds a file system, a partition table or other data, all of
    /// which is lost. What is mounted or otherwise in use is never erased.
    #[arg(long)]
    pub force: bool,

    /// Do not ask on a terminal before a block device is erased. Does not stand for --force.
    #[arg(long, requires = "meta")]
    pub yes: bool,

    /// Print what came back as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `imbrex fs mount`.
#[derive(Args, Debug)]
#[command(override_usage = "imbrex fs mount [OPTIONS] <DEVICE>… <DIR>")]
pub struct MountArgs {
    /// Its devices (one is enough where the others lie in the same folder), then the directory, which must be empty.
    #[arg(value_name = "DEVICE… DIR", required = true, num_args = 2..)]
    pub places: Vec<PathBuf>,

    /// How, with commas between: ro; allow_other; fsname=NAME; time=none|real (answer at once, or as slowly as an emulated
    /// drive would); cache=SIZE; queue_depth=NUMBER and queue_deadline=MS (operations that a drive has at a
    /// time, and how long writes wait for reads); window=ADDRESS (its figures over HTTP: /stats, /state.json, /metrics for Prometheus);
    /// stats=PATH (the same text on a Unix socket); nonempty; fit=NAME, extents=on|off, cleaner=NAME, clean_below=PERCENT, open_groups=NUMBER, kept_back=NUMBER, hot_files=copies|alone; dev, suid, noexec
    /// and other flags of mount(8).
    #[arg(short = 'o', value_name = "OPTIONS", value_delimiter = ',')]
    pub options: Vec<String>,

    /// Stay in the foreground.
    #[arg(long, short = 'f')]
    pub foreground: bool,
}
