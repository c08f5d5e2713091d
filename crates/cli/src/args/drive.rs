//! The words of `imbrex drive`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use imbrex_disk::SimDuration;

/// `imbrex drive`.
#[derive(Subcommand, Debug)]
pub enum DriveCommand {
    /// Take a copy of an image that was not closed as it is.
    ///
    /// An image that a server works on, or that a killed one left, is refused if it lies in another file than the one it was
    /// opened in: a copy made by `cp` while a server worked on the original may hold other bytes than were written. Adopt a
    /// copy only if nobody wrote to the original meanwhile, as after the move of a killed server's image to another disk,
    /// or its restore from a backup of the whole machine at rest.
    Adopt {
        /// The copy.
        #[arg(value_name = "FILE")]
        image: PathBuf,
    },
    /// Make the image of a new drive.
    Create {
        /// The image to make; there must be no such file yet. It grows as it is written.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The drive: PROFILE[+LAYER][:key=value,…] or a TOML file.
        #[arg(long, short = 'd', value_name = "DRIVE")]
        drive: String,
        /// Print what was made as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check an image: every checksum and its witness, the layer's invariants, the journal, the map, that no live sector was
    /// destroyed. Exit code 3 on damage.
    Check {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Make a damaged image usable again: what another copy knows is written anew, what nobody knows any more becomes
        /// sectors that cannot be read until they are written, and is named.
        #[arg(long)]
        repair: bool,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Convert an image of an older version of the format to that of this program. It is written beside the old one, made durable,
    /// and renamed over it; what it holds, its identity and its damage stay.
    Upgrade {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print what is in an image: bands or zones, map, cache, journal, damage.
    Dump {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// What to print [default: all].
        #[command(flatten)]
        parts: DumpParts,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask for faults of a drive: unreadable or slow sectors, a zone that fails, a write pointer that moves.
    ///
    /// They are kept in the image until they are cleared; unreadable sectors until they are written. Sectors are those of
    /// the drive (`imbrex drive info` says how large), counted from 0.
    Fault {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The faults.
        #[command(subcommand)]
        fault: Option<FaultWords>,
        /// The faults of this file in TOML, all of which must come at once; `imbrex serve --faults` plays those with a time.
        #[arg(long, value_name = "FILE")]
        schedule: Option<PathBuf>,
        /// Print the drive's faults as JSON.
        #[arg(long, global = true)]
        json: bool,
    },
    /// Make a profile of DiskSim's description of a drive.
    Import {
        /// The description: FILE.parv, which has the bus too, or FILE.diskspecs. The files that it names lie beside it.
        #[arg(value_name = "FILE")]
        description: PathBuf,
        /// Where the profile goes [default: standard output].
        #[arg(long, value_name = "FILE.toml")]
        out: Option<PathBuf>,
    },
    /// Print what a drive is and what is in it: sector size, bands, layer, fill, damage.
    Info {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Make a consistent copy of an image, of one that is served too.
    ///
    /// Of a served image the copy has every write that was acknowledged before the command began: the server flushes the
    /// drive's volatile cache first. Requests wait only while the last of it is copied. The copy appears when it is whole
    /// and on the disk, and never in the place of another file. Where the file system shares blocks, both share them.
    Snapshot {
        /// The image.
        #[arg(value_name = "FILE")]
        image: PathBuf,
        /// The copy to make; there must be no such file yet.
        #[arg(value_name = "COPY")]
        copy: PathBuf,
        /// The control socket of the server that serves the image, as `imbrex serve --control` has it; needed only where
        /// it is not found by itself, as for a server of another user.
        #[arg(long, value_name = "PATH")]
        control: Option<PathBuf>,
        /// Print what was made as JSON.
        #[arg(long)]
        json: bool,
    },
}

/// A fault, or what is to be done about those there are.
#[derive(Subcommand, Clone, Debug)]
pub enum FaultWords {
    /// Reads of these sectors are errors until they are written.
    Unreadable {
        /// First sector.
        #[arg(long, value_name = "SECTOR")]
        lba: u64,
        /// How many.
        #[arg(long, value_name = "COUNT")]
        sectors: u64,
    },
    /// Every command that touches these sectors takes longer.
    Slow {
        /// First sector.
        #[arg(long, value_name = "SECTOR")]
        lba: u64,
        /// How many.
        #[arg(long, value_name = "COUNT")]
        sectors: u64,
        /// How much longer, such as 200ms.
        #[arg(long, value_name = "TIME", value_parser = duration)]
        by: SimDuration,
    },
    /// A zone of a host-managed drive fails.
    Zone {
        /// Its number, from 0.
        #[arg(long, value_name = "NUMBER")]
        zone: u32,
        /// What is left of it.
        #[arg(long, value_enum)]
        state: ZoneState,
    },
    /// The write pointer of a zone moves, ahead or back.
    Pointer {
        /// The zone's number, from 0.
        #[arg(long, value_name = "NUMBER")]
        zone: u32,
        /// Where to, in sectors from the start of the zone.
        #[arg(long, value_name = "SECTORS")]
        to: u64,
    },
    /// Print the faults there are.
    List,
    /// Take all faults away; pointers that were moved stay where they are.
    Clear,
    /// None of these.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

/// What is left of a zone that failed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneState {
    /// What was written can be read.
    ReadOnly,
    /// Nothing.
    Offline,
}

fn duration(text: &str) -> Result<SimDuration, String> {
    let ns = imbrex_units::quantity::duration_ns(text, imbrex_units::quantity::SECOND_NS);
    ns.map(SimDuration).ok_or_else(|| "expected a time such as 200ms or 2s".into())
}

/// The parts of a dump.
#[derive(Args, Clone, Copy, Debug)]
pub struct DumpParts {
    /// Bands, or zones with condition and write pointer, each with its destroyed sectors.
    #[arg(long)]
    pub bands: bool,
    /// The map: runs of logical sectors and where they lie.
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
    /// The bytes of the file that are in use, and for what; only if asked for.
    #[arg(long)]
    pub regions: bool,
}
