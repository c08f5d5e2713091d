//! The words of the command line. Help, completions and man pages follow from here and from the registries.

#![allow(rustdoc::broken_intra_doc_links)] // These comments are the words of the help: their brackets are no links.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use imbrex::{Failure, WorkloadOptions};
use imbrex_calibrate::readers::ReadOptions;
use imbrex_disk::SimDuration;

pub use crate::fs::args::FsCommand;

/// Simulate, characterise and emulate disks whose tracks overlap: shingled (SMR) and interlaced (IMR).
#[derive(Parser, Debug)]
#[command(name = "imbrex", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// Say nothing but results and errors.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run one workload on several drives, side by side.
    Simulate(SimulateArgs),
    /// Run workloads on drives with every value of their parameters, one row a point in one dataset.
    Sweep(SweepArgs),
    /// Look at traces and convert them.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Make, look at and check emulated drives that hold data in a file.
    #[command(subcommand)]
    Drive(DriveCommand),
    /// Serve an emulated drive as a block device.
    Serve(ServeArgs),
    /// Make, mount, check and look at file systems for raw shingled disks.
    #[command(subcommand)]
    Fs(FsCommand),
    /// Hold a simulated drive against a real one, by what was measured of it.
    Validate(ValidateArgs),
    /// Fit a profile to what was measured of a real drive.
    Fit(FitArgs),
    /// Find out what is inside a drive: shingled or not, its cache, how it cleans.
    Probe(ProbeArgs),
    /// List what there is: profiles, layers, formats, generators, experiments.
    List(ListArgs),
    /// Reproduce the papers' tables and figures, ours beside theirs.
    Reproduce(ReproduceArgs),
    /// Print shell completions.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a folder.
    Man {
        /// The folder; it is made if need be.
        folder: PathBuf,
    },
}

/// How to read a workload.
#[derive(Args, Debug, Clone, Default)]
pub struct WorkloadArgs {
    /// A trace file (.gz .zst .xz .bz2 are unpacked), `-` for standard input, a generator in fio's words
    /// (`rw=randwrite,bs=4k,size=10GiB,number_ios=100000`), a TOML file of the same, or a built-in workload
    /// (`imbrex list generators`).
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,

    /// The trace's format, where its contents do not tell (`imbrex list formats`).
    #[arg(long, value_name = "NAME")]
    pub format: Option<String>,

    /// The device to take from a trace of several [default: the busiest].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,

    /// Columns of a `csv` trace, in order: time,op,offset,size, `_` for one to skip.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,

    /// Units of those columns: s, ms, us, ns or 100ns for time; B or sectors for offset and size.
    #[arg(long, value_name = "LIST")]
    pub units: Option<String>,

    /// `blkparse`, `blktrace`: which action is the request (Q, D or C) [default: the first of these present].
    #[arg(long, value_name = "LETTER")]
    pub action: Option<char>,

    /// `disksim`: the value of the lowest flag bit that means a read.
    #[arg(long, value_name = "0|1")]
    pub read_flag: Option<u8>,

    /// Unit of the trace's times where converters disagree: s, ms, us, 100ns, ns.
    #[arg(long, value_name = "UNIT")]
    pub time_unit: Option<String>,

    /// Count malformed records and go on, instead of stopping at the first.
    #[arg(long)]
    pub skip_malformed: bool,

    /// Seed of a generator, over the one in its words.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,

    /// Take only the first requests.
    #[arg(long, value_name = "REQUESTS")]
    pub limit: Option<u64>,
}

impl WorkloadArgs {
    /// What they say of how to read the workload.
    pub fn options(&self) -> Result<WorkloadOptions, Failure> {
        let time_unit = match self.time_unit.as_deref() {
            Some(unit) => Some(unit.parse().map_err(|error| Failure::usage(format!("--time-unit: {error}")))?),
            None => None,
        };
        let trace = imbrex_trace::TraceOptions {
            format: self.format.clone(),
            device: self.device.as_ref().map(|device| device.parse().expect("any word names a device")),
            skip_malformed: self.skip_malformed,
            columns: self.columns.clone(),
            units: self.units.clone(),
            action: self.action,
            read_flag: self.read_flag,
            time_unit,
        };
        Ok(WorkloadOptions { trace, seed: self.seed, limit: self.limit })
    }
}

/// `imbrex simulate`.
#[derive(Args, Debug)]
pub struct SimulateArgs {
    /// The workload.
    #[command(flatten)]
    pub workload: WorkloadArgs,

    /// A drive: PROFILE[+LAYER][:key=value,…] or a TOML file. Give it again for more; without it, one of every kind.
    #[arg(long = "drive", short = 'd', value_name = "DRIVE")]
    pub drives: Vec<String>,

    /// What to compare with [default: for each drive the conventional one of like geometry].
    #[arg(long, value_name = "DRIVE")]
    pub baseline: Option<String>,

    /// Run no baseline.
    #[arg(long, conflicts_with = "baseline")]
    pub no_baseline: bool,

    /// What to do with a workload that reaches past the drive.
    #[arg(long, value_enum, default_value_t = FitChoice::Grow)]
    pub fit: FitChoice,

    /// How requests arrive [default: fixed-queue for traces, closed for generators].
    #[arg(long, value_name = "PROCESS", value_parser = ["fixed-queue", "closed", "open", "flat-out"])]
    pub arrival: Option<String>,

    /// Requests outstanding at most [default: 64 for traces, the generator's iodepth].
    #[arg(long, value_name = "DEPTH", value_parser = clap::value_parser!(u32).range(1..))]
    pub queue: Option<u32>,

    /// Which waiting request is served next [default: the profile's].
    #[arg(long, value_name = "SCHEDULER", value_parser = ["fifo", "elevator", "sptf"])]
    pub schedule: Option<String>,

    /// Volatile write cache: a size, or off [default: the profile's].
    #[arg(long, value_name = "SIZE")]
    pub write_cache: Option<String>,

    /// Read look-ahead: a size, or off [default: the profile's].
    #[arg(long, value_name = "SIZE")]
    pub read_ahead: Option<String>,

    /// Requests served before measuring begins.
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    pub warmup: u64,

    /// Width of the windows in which completions are counted.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub window: String,

    /// Track what every physical sector holds, and prove that nothing live is lost.
    #[arg(long)]
    pub check: bool,

    /// Print summary.json instead of the table.
    #[arg(long)]
    pub json: bool,

    /// Write summary.json, latency.parquet, timeline.parquet and report.html into this folder.
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// With --out: also ios.parquet, one row a request.
    #[arg(long, requires = "out")]
    pub per_io: bool,

    /// With --out: also plan.jsonl, every step on the medium (for small runs).
    #[arg(long, requires = "out")]
    pub plans: bool,

    /// Drives simulated at once [default: the cores there are].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

/// `imbrex sweep`.
#[derive(Args, Debug)]
pub struct SweepArgs {
    /// What to sweep, in TOML: workloads, drives, [parameters], [options].
    #[arg(value_name = "SPEC.toml")]
    pub spec: PathBuf,

    /// The folder that takes the dataset and the page; rows that are there are kept [default: named like the file].
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,

    /// Points run at once [default: the cores there are].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,

    /// Run the points again whose rows say that they failed.
    #[arg(long)]
    pub retry_failed: bool,

    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What to do with a workload that reaches past the drive.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum FitChoice {
    /// Give the same geometry more tracks (and say so).
    Grow,
    /// Take addresses modulo the capacity.
    Wrap,
    /// Scale addresses to the capacity.
    Scale,
    /// Refuse.
    Error,
}

impl FitChoice {
    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            FitChoice::Grow => "grow",
            FitChoice::Wrap => "wrap",
            FitChoice::Scale => "scale",
            FitChoice::Error => "error",
        }
    }
}

/// `imbrex trace`.
#[derive(Subcommand, Debug)]
pub enum TraceCommand {
    /// Print what is in a workload: counts, sizes, locality, gaps, devices.
    Info {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// Print it as JSON.
        #[arg(long)]
        json: bool,
        /// Draw where and when it reads and writes into this file (SVG).
        #[arg(long, value_name = "FILE")]
        plot: Option<PathBuf>,
    },
    /// Write a workload in another format.
    Convert {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// The file to write; it replaces one of that name only when it is whole.
        #[arg(value_name = "FILE")]
        output: PathBuf,
        /// The format to write [default: by the file's ending].
        #[arg(long, value_name = "FORMAT")]
        to: Option<String>,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the first requests.
    Head {
        /// The workload.
        #[command(flatten)]
        workload: WorkloadArgs,
        /// How many.
        #[arg(short = 'n', long, default_value_t = 10)]
        count: u64,
        /// Print them as JSON, one a line.
        #[arg(long)]
        json: bool,
    },
}

/// `imbrex drive`.
#[derive(Subcommand, Debug)]
pub enum DriveCommand {
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

/// `imbrex serve`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").args(["image", "drive"]).required(true))]
#[command(group = clap::ArgGroup::new("as").args(["nbd", "ublk"]).required(true))]
pub struct ServeArgs {
    /// The image to serve.
    #[arg(value_name = "FILE")]
    pub image: Option<PathBuf>,

    /// Serve a new drive held in memory instead: PROFILE[+LAYER][:key=value,…]. What is written is gone at the end.
    #[arg(long, short = 'd', value_name = "DRIVE")]
    pub drive: Option<String>,

    /// Where NBD clients connect: unix:PATH, tcp:PORT (this machine alone) or tcp:HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub nbd: Option<String>,

    /// Serve as the Linux block device /dev/ublkbID instead; without ID, the first that is free (Linux 6.0, as root).
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with = "tls_cert")]
    pub ublk: Option<Option<u32>>,

    /// How fast time passes: real, none (answer as fast as possible), or a factor such as 10x.
    #[arg(long, value_name = "PACE", default_value = "real", allow_hyphen_values = true)]
    pub time: String,

    /// Refuse writes; the image stays as it is.
    #[arg(long)]
    pub read_only: bool,

    /// Play the faults of this file in TOML (docs/drive.md) while serving, each at its time; they stay in an image.
    #[arg(long, value_name = "FILE", conflicts_with = "read_only")]
    pub faults: Option<PathBuf>,

    /// What barriers outlive: the death of this process (none), or of the host too (barrier).
    #[arg(long, value_name = "WHAT", default_value = "none", value_parser = ["none", "barrier"])]
    pub sync: String,

    /// Show the drive at work on a page at this address, such as 127.0.0.1:8080; /metrics there is for Prometheus.
    #[arg(long, value_name = "ADDRESS")]
    pub window: Option<String>,

    /// Give the drive's figures as text to whoever connects to this Unix socket.
    #[arg(long, value_name = "PATH")]
    pub stats: Option<PathBuf>,

    /// Certificate chain for TLS (PEM); then clients must speak it.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Clients must show a certificate signed by this one (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// What strangers may cost.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Bounds on the clients of a served drive. A peer is an address, a /64 network of IPv6, or a user at a Unix socket.
#[derive(Args, Debug)]
#[command(next_help_heading = "What strangers may cost")]
pub struct LimitArgs {
    /// NBD connections at once; each costs a thread, with a pace two, with TLS two more, and under a MiB. Where places run
    /// out, who never finished the handshake goes first, then the idle of the peer that holds most; no connection with a
    /// served request of a peer within its share.
    #[arg(long, value_name = "NUMBER", default_value = "256", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub connections: u32,

    /// Of them, from one peer.
    #[arg(long, value_name = "NUMBER", default_value = "128", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub peer_connections: u32,

    /// Memory for payloads that have come and for replies that have not gone yet, of all clients; 256 KiB of each
    /// connection do not count, and one request at a time may go over it by its 32 MiB.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size)]
    pub payload_memory: u64,

    /// Of it, for one peer.
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = size)]
    pub peer_payload_memory: u64,

    /// Bytes a second of such payloads for clients that never had a request served, all together.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub newcomer_rate: u64,

    /// While others wait for payload memory, a client may be busy so long with one payload or one reply.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = clap::value_parser!(u32).range(1..))]
    pub shortage_time: u32,

    /// A client has so long for its handshake, TLS included.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..))]
    pub handshake_time: u32,

    /// A request that has begun must arrive in this time, each further MiB of its payload in as long again. Between requests
    /// a client may be idle.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = clap::value_parser!(u32).range(1..))]
    pub request_time: u32,

    /// A client that takes nothing of its replies for so long is cut off.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..))]
    pub reply_time: u32,

    /// Connections to the live page at once, all on one thread; half of them from one peer.
    #[arg(long, value_name = "NUMBER", default_value = "64", value_parser = clap::value_parser!(u32).range(2..=4096))]
    pub page_connections: u32,

    /// Bytes of a request's head that the live page takes, 8 KiB at least.
    #[arg(long, value_name = "SIZE", default_value = "16KiB", value_parser = size)]
    pub page_header: u64,

    /// The live page waits so long for a request's head; a connection lasts for twelve times that at most.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub page_time: u32,

    /// A name that the live page answers to, beside localhost, 127.0.0.1, [::1] and the address it listens at; again for more.
    #[arg(long, value_name = "NAME")]
    pub http_host: Vec<String>,
}

/// `imbrex probe`.
#[derive(Args, Debug)]
pub struct ProbeArgs {
    /// What to probe: sim:DRIVE (a simulated drive in virtual time), an image of `imbrex drive create`, a served drive
    /// (nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH), a block device, or a plain file.
    #[arg(value_name = "TARGET")]
    pub target: String,

    /// Run only this test; give it again for more [default: all].
    #[arg(long = "test", value_name = "NAME")]
    pub tests: Vec<String>,

    /// Allow the tests that write: they destroy what the drive holds. A simulated drive needs no such leave.
    #[arg(long)]
    pub destroy_data: bool,

    /// With --destroy-data: also where the drive holds a partition table or a file system. One that is mounted or otherwise in
    /// use is never written.
    #[arg(long, requires = "destroy_data")]
    pub really: bool,

    /// Time on the drive's clock that the tests may take: what tells most for its time goes first, and what does not fit
    /// is left out and named.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,

    /// Seed of the random places.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,

    /// Print the verdict as JSON, with the measurements behind it.
    #[arg(long)]
    pub json: bool,

    /// Write the verdict with its evidence as a page for a browser; it replaces one of that name only when it is whole.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Write the drive's profile, ready for `--drive`: what was measured once can be simulated from then on.
    #[arg(long, value_name = "FILE.toml")]
    pub emit_profile: Option<PathBuf>,
}

/// What was measured, and how to read it.
#[derive(Args, Debug, Clone)]
pub struct MeasuredArgs {
    /// What a real drive did: DiskSim's validation format, blktrace or blkparse with issues and completions, fio's
    /// latency log with --log_offset=1, fio's json+ (as a distribution only), ios.parquet, or csv with a column `latency`.
    #[arg(value_name = "MEASURED")]
    pub measured: PathBuf,

    /// Columns of a csv, in order: time,op,offset,size,latency, `_` for one to skip.
    #[arg(long, value_name = "LIST")]
    pub columns: Option<String>,

    /// Units of those columns: s, ms, us, ns or 100ns for time and latency; B or sectors for offset and size.
    #[arg(long, value_name = "LIST")]
    pub units: Option<String>,

    /// The device to take from a record of several; the drive of an ios.parquet [default: all, of an ios.parquet the first].
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
}

impl MeasuredArgs {
    /// What they say of how to read it.
    pub fn options(&self) -> ReadOptions {
        ReadOptions { columns: self.columns.clone(), units: self.units.clone(), device: self.device.clone() }
    }
}

/// `imbrex validate`.
#[derive(Args, Debug)]
pub struct ValidateArgs {
    /// What was measured.
    #[command(flatten)]
    pub measured: MeasuredArgs,

    /// The drive to hold against it: PROFILE[+LAYER][:key=value,…] or a TOML file.
    #[arg(long, short = 'd', value_name = "DRIVE")]
    pub drive: String,

    /// Of fio's json+, which names no requests: those to issue, in the words of `imbrex simulate` [default: the
    /// job's own].
    #[arg(long, value_name = "WORDS")]
    pub workload: Option<String>,

    /// Print the judgement as JSON.
    #[arg(long)]
    pub json: bool,

    /// Write the judgement as a page for a browser.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// `imbrex fit`.
#[derive(Args, Debug)]
pub struct FitArgs {
    /// What was measured.
    #[command(flatten)]
    pub measured: MeasuredArgs,

    /// The profile to begin with: a name or a TOML file.
    #[arg(long, value_name = "PROFILE")]
    pub from: String,

    /// Where the fitted profile goes.
    #[arg(long, value_name = "FILE.toml")]
    pub out: Option<PathBuf>,

    /// Print what was found as JSON.
    #[arg(long)]
    pub json: bool,

    /// Write what was found as a page for a browser.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

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

/// `imbrex reproduce`.
#[derive(Args, Debug)]
pub struct ReproduceArgs {
    /// A paper (`cassuto`) or one of its experiments (`cassuto/fig12`) [default: all].
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    /// Where reproduction.md and the figures go.
    #[arg(long, value_name = "FOLDER", default_value = "docs")]
    pub out: PathBuf,
    /// Print the claims as JSON.
    #[arg(long)]
    pub json: bool,
}

/// A number of bytes, such as 64MiB.
pub fn size(text: &str) -> Result<u64, String> {
    imbrex_units::quantity::bytes(text).ok_or_else(|| format!("expected a size such as 64MiB, not '{text}'"))
}
