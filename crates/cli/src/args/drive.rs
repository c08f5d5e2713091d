//! Arguments of `imbrex drive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use imbrex_disk::SimDuration;

use super::TableArgs;

/// `imbrex drive`.
#[derive(Subcommand, Debug)]
pub(crate) enum DriveCommand {
    /// Accept, unchanged, a copy of an image that was not closed.
    ///
    /// An image that a server has open, or that a killed server left, is refused if it lies in another file than the
    /// one it was opened in: a copy made by `cp` while a server wrote to the original may hold other bytes than were
    /// written. Adopt a copy only if nobody wrote to the original meanwhile, as after the move of a killed server's
    /// image to another disk, or its restore from a backup of the whole machine at rest.
    Adopt {
        /// The copy.
        #[arg(value_name = "FILE")]
        image: PathBuf,
    },
    /// Make the image of a new drive.
    Create {
        /// The image to create; there must be no such file yet. It grows as it is written.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The drive: PROFILE[+LAYER][:key=value,…] or a TOML file.
        #[arg(long, short = 'd', value_name = "DRIVE", add = crate::complete::drive())]
        drive: String,
        /// Print a description of the new image as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check an image: every checksum and its witness, the layer's invariants, the journal, the map, and that no live
    /// sector was destroyed. Exit code 3 on damage.
    Check {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Make a damaged image usable again: damaged parts that have an intact copy are rewritten from it; sectors
        /// without one become unreadable until they are written, and are listed.
        #[arg(long)]
        repair: bool,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Convert an image of an older version of the format to that of this program. The new image is written beside the
    /// old one, made durable, and renamed over it; contents, identity and damage are kept.
    Upgrade {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the contents of an image: bands or zones, map, cache, journal, damage.
    Dump {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Parts to print [default: all].
        #[command(flatten)]
        parts: DumpParts,
        /// Print the parts as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Inject faults into a drive: unreadable or slow sectors, a zone that fails, a write pointer that moves.
    ///
    /// Faults are kept in the image until they are cleared; unreadable sectors until they are written. Sectors are
    /// those of the drive (`imbrex drive info` says how large), counted from 0.
    Fault {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The faults.
        #[command(subcommand)]
        fault: Option<FaultWords>,
        /// A file of faults in TOML, all of which occur at once; for faults with a time use `imbrex serve --faults`.
        #[arg(long, value_name = "FILE")]
        schedule: Option<PathBuf>,
        /// Print the drive's faults as JSON.
        #[arg(long, global = true)]
        json: bool,
    },
    /// Make a profile from DiskSim's description of a drive.
    Import {
        /// The description: FILE.parv, which describes the bus too, or FILE.diskspecs. The files that it names lie
        /// beside it.
        #[arg(value_name = "FILE")]
        description: PathBuf,
        /// The file for the profile; an existing file of that name is replaced [default: standard output].
        #[arg(long, value_name = "FILE.toml")]
        out: Option<PathBuf>,
    },
    /// Print a summary of a drive and its contents: sector size, bands, layer, fill, damage. Of a real drive, print the
    /// properties that the kernel and smartctl tell, and statements on its model.
    Info {
        /// The image, or a block device such as /dev/sdX.
        #[arg(value_name = "FILE|DEVICE")]
        image: PathBuf,
        /// Print the summary as JSON.
        #[arg(long)]
        json: bool,
        /// Form of the table.
        #[command(flatten)]
        table: TableArgs,
    },
    /// Make a consistent copy of an image, even while it is served.
    ///
    /// The copy of a served image has every write that was acknowledged before the command began: the server flushes
    /// the drive's volatile cache first. Requests wait only while the last part is copied. The copy appears when it is
    /// whole and durable, and never replaces another file. Where the file system shares blocks, image and copy share
    /// them.
    Snapshot {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The copy to create; there must be no such file yet.
        #[arg(value_name = "COPY")]
        copy: PathBuf,
        /// The control socket of the server that serves the image, as given to `imbrex serve --control`; needed only
        /// where it is not found by itself, as for a server of another user.
        #[arg(long, value_name = "PATH")]
        control: Option<PathBuf>,
        /// Print the result as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// A fault to inject, or an operation on the faults of the drive.
#[derive(Subcommand, Clone, Debug)]
pub(crate) enum FaultWords {
    /// Reads of these sectors are errors until they are written.
    Unreadable {
        /// First sector.
        #[arg(long, value_name = "SECTOR")]
        lba: u64,
        /// Number of sectors.
        #[arg(long, value_name = "COUNT")]
        sectors: u64,
    },
    /// Every command that touches these sectors takes longer.
    Slow {
        /// First sector.
        #[arg(long, value_name = "SECTOR")]
        lba: u64,
        /// Number of sectors.
        #[arg(long, value_name = "COUNT")]
        sectors: u64,
        /// Additional time per command, such as 200ms.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        by: SimDuration,
    },
    /// A zone of a host-managed drive fails.
    Zone {
        /// The zone's number, from 0.
        #[arg(long, value_name = "NUMBER")]
        zone: u32,
        /// State of the zone after the failure.
        #[arg(long, value_enum)]
        state: ZoneState,
    },
    /// The write pointer of a zone moves, forward or back.
    Pointer {
        /// The zone's number, from 0.
        #[arg(long, value_name = "NUMBER")]
        zone: u32,
        /// New position of the pointer, in sectors from the start of the zone.
        #[arg(long, value_name = "SECTORS")]
        to: u64,
    },
    /// Print the faults of the drive.
    List,
    /// Remove all faults; pointers that were moved stay where they are.
    Clear,
    /// Any other word: no fault has that name.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// State of a zone that failed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ZoneState {
    /// Written sectors can be read; writes fail.
    ReadOnly,
    /// Reads and writes fail.
    Offline,
}

fn duration(text: &str) -> Result<SimDuration, String> {
    let ns = imbrex_units::quantity::duration_ns(text, imbrex_units::quantity::SECOND_NS);
    ns.map(SimDuration).ok_or_else(|| "expected a time such as 200ms or 2s".into())
}

/// Parts of an image that `imbrex drive dump` can print.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DumpParts {
    /// Bands, or zones with condition and write pointer, each with its destroyed sectors.
    #[arg(long)]
    pub bands: bool,
    /// Print the map: runs of logical sectors with their places on the media.
    #[arg(long)]
    pub map: bool,
    /// The runs of the map that lie elsewhere than on a new drive: in a cache, in flash, moved.
    #[arg(long)]
    pub cache: bool,
    /// The records of the journal.
    #[arg(long)]
    pub journal: bool,
    /// The runs of destroyed sectors.
    #[arg(long)]
    pub damage: bool,
    /// The bytes of the file that are in use, each with its purpose; only if asked for.
    #[arg(long)]
    pub regions: bool,
}
