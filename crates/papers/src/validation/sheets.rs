//! The figures of data sheets beside those of the simulated drives, for every built-in profile of a drive whose data
//! sheet states its speed. Nothing is judged: a data sheet names neither a tolerance nor all its conditions.

use imbrex::drives::fresh;
use imbrex::{Failure, Run};
use imbrex_disk::{Command, SimDuration};
use imbrex_sim::{Arrival, Drive, Options};
use imbrex_trace::{Recorded, Request, When};

use super::super::aghayev::observed::Dice;
use super::super::{Experiment, Replication, Report, Table};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "validation/sheets", title: "simulated drives beside their data sheets", run };

/// Sectors of 512 bytes, in which requests are given on every drive.
const MIB_SECTORS: u64 = 2048;
const BLOCK_SECTORS: u64 = 8;
/// Requests of 1 MiB at the outer diameter: so many that a volatile write cache of 256 MiB changes the rate by little
/// more than a percent.
const SEQUENTIAL: u64 = 20_000;
/// Places over the whole drive at which the average rate is measured, and requests of 1 MiB at each.
const PLACES: u64 = 40;
const AT_EACH: u64 = 100;
const RANDOM: u64 = 6_000;
/// Waiting writes among which the Exos X18 must choose for the figure of its data sheet.
const CHOICE: u32 = 2_048;

/// A figure of a data sheet and its conditions.
enum Figure {
    /// Requests of 1 MiB in order, one at a time, from the first LBA on: the rate in MB/s.
    Sequential { is_write: bool },
    /// Reads of 1 MiB in order at 40 places over the whole drive: the mean rate in MB/s.
    Average,
    /// Requests of 4 KiB at random places of the whole drive: requests per second. The write cache is off.
    Random { is_write: bool, depth: u32 },
}

use Figure::{Average, Random, Sequential};

const READS: Figure = Sequential { is_write: false };
const WRITES: Figure = Sequential { is_write: true };

/// Profile, name of the data sheet, figure, and the value that the sheet states.
const SHEETS: &[(&str, &str, Figure, f64)] = &[
    ("exos-x18", "Exos X18", READS, 270.0),
    ("exos-x18", "Exos X18", WRITES, 270.0),
    ("exos-x18", "Exos X18", Random { is_write: false, depth: 16 }, 170.0),
    ("exos-x18", "Exos X18", Random { is_write: true, depth: 16 }, 550.0),
    ("exos-x18", "Exos X18", Random { is_write: true, depth: CHOICE }, 550.0),
    ("seagate-st5000as0011-as-sold", "Archive HDD", READS, 190.0),
    ("seagate-st5000as0011-as-sold", "Archive HDD", WRITES, 190.0),
    ("seagate-st5000as0011-as-sold", "Archive HDD", Average, 150.0),
    ("seagate-st8000as0011-as-sold", "Archive HDD", READS, 190.0),
    ("seagate-st8000as0011-as-sold", "Archive HDD", WRITES, 190.0),
    ("seagate-st8000as0011-as-sold", "Archive HDD", Average, 150.0),
    ("seagate-st8000as0022", "Archive HDD", READS, 190.0),
    ("seagate-st8000as0022", "Archive HDD", WRITES, 190.0),
    ("seagate-st8000as0022", "Archive HDD", Average, 150.0),
    ("seagate-st8000dm004", "BarraCuda", WRITES, 190.0),
    ("seagate-st8000dm004-as-sold", "BarraCuda", READS, 190.0),
    ("seagate-st8000dm004-as-sold", "BarraCuda", WRITES, 190.0),
    ("strict-append-2t", "Caviar Black", READS, 138.0),
    ("strict-append-2t", "Caviar Black", WRITES, 138.0),
    ("caveat-2t", "Caviar Black", READS, 138.0),
    ("caveat-2t", "Caviar Black", WRITES, 138.0),
    ("flash-2010", "X25-E", READS, 250.0),
    ("flash-2010", "X25-E", WRITES, 170.0),
    ("flash-2010", "X25-E", Random { is_write: false, depth: 32 }, 35_000.0),
    ("flash-2010", "X25-E", Random { is_write: true, depth: 32 }, 3_300.0),
];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut rows = Vec::new();
    let bar = replication.progress.points("data sheets", SHEETS.len() as u64);
    for (name, sheet, figure, stated) in SHEETS {
        let ours = measured(name, figure, replication)?;
        bar.inc(1);
        rows.push(vec![
            (*name).into(),
            (*sheet).into(),
            figure.conditions(),
            format!("{stated:.0} {}", figure.unit()),
            format!("{ours:.0} {}", figure.unit()),
            format!("{:.2}", ours / stated),
        ]);
    }
    bar.finish_and_clear();
    let columns = ["profile", "data sheet", "figure and conditions", "data sheet", "simulated", "ratio"];
    let heading = "Data sheets and simulated drives".into();
    let tables = vec![Table { heading, columns: columns.map(String::from).into(), rows }];
    let method = format!(
        "Each row is one figure of a data sheet, and the same figure of the simulated drive. A ratio above 1 means that \
         the simulated drive is faster. Sequential figures are {SEQUENTIAL} requests of 1 MiB in order from the first \
         LBA on, one at a time, with the caches as in the profile. The average is over {AT_EACH} sequential reads of 1 \
         MiB at each of {PLACES} places. Random figures are {RANDOM} requests of 4 KiB over the whole drive, with the \
         write cache and look-ahead off and without a limit to the waiting time of a request; at depth {CHOICE} the \
         number of requests is twelve times the depth."
    );
    let remarks = vec![
        format!(
            "The data sheet of the Exos X18 states 550 random writes a second at depth 16 with the write cache off, and \
             170 random reads. A drive that serves 16 waiting requests in the order of the shortest positioning time \
             serves nearly as many writes as reads, so seeks and rotation alone do not give 550. The simulated drive \
             reaches 550 if it chooses among {CHOICE} waiting writes, 8 MiB of data. So a drive with this figure holds \
             about as many writes in a cache that survives a power loss, and answers a write before it is on the disk. \
             This is not modelled with the write cache off; the seek curve of the profile is not fitted to the 550."
        ),
        "Profiles that are not in the table (cmr-7200, cmr-5900, cassuto-307g, emulated-smr-1 to 3, imr-1t, imr-20t, \
         hm-zoned, strict-append, caveat-1g, caveat-1g-512, maxline-250g) stand for no drive with a data sheet, or the \
         data sheet was not found; seagate-st5000as0011 and seagate-st8000as0011 have their caches off. The profile \
         flash-2010 has one latency and one rate for reads and writes and serves one request after the other; so it is \
         slower than the data sheet in sequential reads and faster in random writes."
            .into(),
    ];
    Ok(Report { method, tables, remarks, ..Report::default() })
}

impl Figure {
    fn unit(&self) -> &'static str {
        match self {
            Sequential { .. } | Average => "MB/s",
            Random { .. } => "/s",
        }
    }

    fn conditions(&self) -> String {
        match self {
            Sequential { is_write: false } => "sequential reads, outer diameter".into(),
            Sequential { is_write: true } => "sequential writes, outer diameter".into(),
            Average => "sequential reads, average over the drive".into(),
            Random { is_write, depth } => {
                let kind = if *is_write { "writes" } else { "reads" };
                format!("random {kind} of 4 KiB, depth {depth}")
            }
        }
    }
}

/// Returns the figure of the simulated drive: MB/s or requests per second.
fn measured(name: &str, figure: &Figure, replication: &Replication) -> Result<f64, Failure> {
    let mut drive = fresh(name)?;
    let sectors = drive.capacity_bytes() / 512;
    match *figure {
        Sequential { is_write } => {
            let command = |index| command(is_write, index * MIB_SECTORS, MIB_SECTORS);
            rate(drive, (0..SEQUENTIAL).map(command).collect())
        }
        Average => {
            let apart = (sectors - AT_EACH * MIB_SECTORS) / (PLACES - 1) / BLOCK_SECTORS * BLOCK_SECTORS;
            let lba = |index: u64| index / AT_EACH * apart + index % AT_EACH * MIB_SECTORS;
            rate(drive, (0..PLACES * AT_EACH).map(|index| command(false, lba(index), MIB_SECTORS)).collect())
        }
        Random { is_write, depth } => {
            let host = &mut drive.host;
            (host.write_cache_bytes, host.read_ahead_bytes, host.age_limit_ns) = (0, 0, 0);
            host.queue = host.queue.max(depth);
            let count = RANDOM.max(12 * u64::from(depth));
            let mut dice = Dice(replication.seed(7));
            let mut lba = || dice.below(sectors / BLOCK_SECTORS) * BLOCK_SECTORS;
            let commands = (0..count).map(|_| command(is_write, lba(), BLOCK_SECTORS)).collect();
            Ok(count as f64 / seconds(drive, depth, commands)?)
        }
    }
}

fn command(is_write: bool, lba: u64, sectors: u64) -> Command {
    let sectors = u32::try_from(sectors).expect("at most 1 MiB");
    if is_write { Command::write(lba, sectors) } else { Command::read(lba, sectors) }
}

/// Returns the rate at which the drive serves commands of 1 MiB one at a time, in MB/s.
fn rate(drive: Drive, commands: Vec<Command>) -> Result<f64, Failure> {
    let megabytes = commands.len() as f64 * f64::from(1 << 20) / 1e6;
    Ok(megabytes / seconds(drive, 1, commands)?)
}

/// Returns the simulated time in which the drive serves the commands, `depth` at a time, in seconds.
fn seconds(drive: Drive, depth: u32, commands: Vec<Command>) -> Result<f64, Failure> {
    let request = |command| Request { when: When::Free(SimDuration::ZERO), device: 0, command };
    let requests: Vec<Request> = commands.into_iter().map(request).collect();
    let options = Options { arrival: Arrival::Closed(depth), ..Options::live(&drive) };
    let metrics = Run::new(drive, options).of(&mut Recorded::new(requests))?.outcome.metrics;
    Ok(metrics.ended.0 as f64 / 1e9)
}
