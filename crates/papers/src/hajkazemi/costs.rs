//! §2: the cost of operations in seeks and rotations, and the size of the maps. Costs are counted as in the paper,
//! which charges half a rotation for each wait (`half`), and on mechanics that know the angle of the platter
//! (`exact`).

use imbrex_disk::Command;

use super::super::aghayev::observed::Dice;
use super::super::{ClaimKind, Experiment, Replication, Report};
use super::timed_layer::TimedLayer;
use super::under_test::{CACHE, CONVENTIONAL, FLIP, MAP, RMW};
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "hajkazemi/section2", title: "costs in seeks and rotations, and memory", run };

/// Number of writes at random places, for each cost.
const WRITES: usize = 10_000;
/// Number of moves, for each cost.
const MOVES: u32 = 100;
/// Number of tracks in a track group of the drive.
const GROUP_TRACKS: u32 = 256;
const TRACK_SECTORS: u64 = 4096;
/// Parameters for the paper's accounting. Every seek takes a second, so that seeks can be told from rotations in a
/// sum.
const HALF: &str = "mechanics.rotation=half,mechanics.seek.min_ns=1000000000,mechanics.seek.max_ns=1000000000";
const COUNTED_SEEK_NS: u64 = 1_000_000_000;
const ROTATION_NS: u64 = 10_000_000;
/// Largest transfer that the accounting leaves out, in rotations: eight sectors of a track of 4096.
const NEGLECTED: f64 = 8.0 / TRACK_SECTORS as f64;
/// Share of operations whose cost must be exact. The others differ for three reasons. A bottom track beside an empty
/// track has one neighbour to back up; sectors of the neighbours that lie across the end of a track make more pieces;
/// a random place next to the one before needs no seek.
const EXACT_SHARE: f64 = 0.998;
/// Parameters for intervals of eight host writes that move at most one track each.
const EAGER: &str = "interval=8,hot_tracks=1,hotness=reset,payback=0,watch=0";

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment measures the costs of operations on the profile `imr-1t`, one operation after the other, \
             without the host side of the drive. Rows with `half` use the accounting of Hajkazemi 2019: each wait \
             for the platter counts as half a rotation, and the time of the transfer, at most {NEGLECTED:.4} \
             rotations, is left out. Two operations in a thousand may have another cost there, for three reasons: a \
             bottom track at the end of the disk or of a reserved part has one neighbour; sectors of the neighbours \
             lie across the end of their track; or a random place is next to the one before. Rows with `exact` use \
             the angle of every sector. Costs of writes are from {WRITES} writes of a sector at random bottom (or \
             top) tracks, costs of moves from {MOVES} moves of random bottom tracks."
        ),
        ..Report::default()
    };
    host_costs(&mut report, replication)?;
    move_costs(&mut report, replication)?;
    exact_writes(&mut report, replication)?;
    exact_moves(&mut report, replication)?;
    memory(&mut report, replication)?;
    report.remarks.push(
        "In `imr-rmw`, k is the time of the trip to the backup region and back, in rotations. The trip takes two \
         seeks (t_seek is the seek to the region) and the wait for a place in the region, which may lie at any \
         angle. It ends at the angle of the write, so k is a whole number for each write. On average, k is 1 + 2 \
         t_seek/t_rot. The two rotations of Hajkazemi 2019 lie between our averages for one region in the middle of \
         the disk and for sixteen regions. On a drive with equal tracks, pseudo-tracks are tracks, and access to a \
         whole track begins at the sector at which the head arrives. So the four waits of half a rotation in §2.4 do \
         not arise in rows with `exact`: a swap takes 11 rotations, not 13."
            .into(),
    );
    Ok(report)
}

/// Costs of operations of one kind.
#[derive(Default)]
struct Costs {
    /// Cost of each operation in the paper's accounting: (seeks, rotations).
    each: Vec<(u64, f64)>,
}

impl Costs {
    fn see(&mut self, whole_ns: u64) {
        let rotations = (whole_ns % COUNTED_SEEK_NS) as f64 / ROTATION_NS as f64;
        self.each.push((whole_ns / COUNTED_SEEK_NS, rotations));
    }

    /// Returns the number of operations that cost `seeks` and `rotations`, with up to [`NEGLECTED`] rotations more for
    /// the transfer.
    fn exact(&self, seeks: u64, rotations: f64) -> usize {
        let range = rotations..=rotations + NEGLECTED;
        self.each.iter().filter(|cost| cost.0 == seeks && range.contains(&cost.1)).count()
    }

    fn claim(&self, report: &mut Report, name: &str, theirs: &str, seeks: u64, rotations: f64) {
        let (exact, all) = (self.exact(seeks, rotations), self.each.len());
        let ours = format!("{seeks} t_seek + {rotations} t_rot in {exact} of {all}");
        let holds = all > 0 && exact as f64 >= EXACT_SHARE * all as f64;
        // The mechanics count as the paper does: half a rotation a wait, and two for the trip to the backup region.
        report.claim(ClaimKind::ByConstruction, &format!("`half`: {name}"), theirs, ours, Some(holds));
    }
}

/// Kind of tracks in which places are chosen.
#[derive(Clone, Copy)]
enum Wanted {
    Any,
    Bottom,
    Top,
}

/// Returns `count` random LBAs on tracks of the kind `wanted`.
fn places(trial: &TimedLayer, dice: &mut Dice, count: usize, wanted: Wanted) -> Vec<u64> {
    let mut places = Vec::with_capacity(count);
    while places.len() < count {
        let lba = dice.below(trial.capacity());
        let suits = match wanted {
            Wanted::Any => true,
            Wanted::Bottom => trial.is_bottom(lba),
            Wanted::Top => !trial.is_bottom(lba),
        };
        if suits && lba + 1 < trial.capacity() {
            places.push(lba);
        }
    }
    places
}

fn host_costs(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    let mut dice = Dice(replication.seed(21));
    let mut random = |layer: &str, wanted: Wanted| -> Result<Costs, Failure> {
        let mut trial = TimedLayer::new(&format!("{layer}:{HALF}"))?;
        let mut costs = Costs::default();
        for lba in places(&trial, &mut dice, WRITES, wanted) {
            costs.see(trial.serve(Command::write(lba, 1)).whole_ns);
        }
        Ok(costs)
    };
    let write = "a random write of a sector";
    random(CONVENTIONAL, Wanted::Any)?.claim(report, &format!("conventional: {write}"), "t_seek + 0.5 t_rot", 1, 0.5);
    random(RMW, Wanted::Bottom)?.claim(
        report,
        &format!("RMW: {write} to a bottom track"),
        "t_seek + 5.5 t_rot",
        1,
        5.5,
    );
    random(RMW, Wanted::Top)?.claim(report, &format!("RMW: {write} to a top track"), "t_seek + 0.5 t_rot", 1, 0.5);
    let mut trial = TimedLayer::new(&format!("{RMW}:{HALF}"))?;
    let mut costs = Costs::default();
    for lba in places(&trial, &mut dice, WRITES, Wanted::Bottom) {
        if trial.track_of(lba).1 + 1 < TRACK_SECTORS {
            trial.serve(Command::write(lba, 1));
            costs.see(trial.serve(Command::write(lba + 1, 1)).whole_ns);
        }
    }
    costs.claim(report, "RMW: a write to the sector after the last one written", "6 t_rot", 0, 6.0);
    Ok(())
}

/// Returns bottom tracks in different track groups, not near the ends of a group and not reserved. Each is given as
/// three LBAs: outer neighbour, bottom track, inner neighbour.
fn hot_tracks(trial: &TimedLayer, dice: &mut Dice) -> Vec<[u64; 3]> {
    let groups = trial.disk.geometry.radial_tracks() / GROUP_TRACKS;
    let mut found = Vec::new();
    for index in 0..MOVES {
        let group = index * (groups / MOVES);
        let lbas = loop {
            let track = group * GROUP_TRACKS + 2 + dice.below(GROUP_TRACKS as u64 - 4) as u32;
            if trial.disk.geometry.is_bottom(track) {
                let lbas = [track - 1, track, track + 1].map(|track| trial.lba_of_track(track));
                if let [Some(outer), Some(bottom), Some(inner)] = lbas {
                    break [outer, bottom, inner];
                }
            }
        };
        found.push(lbas);
    }
    found
}

/// Serves an interval in which `hot` takes most writes and each of its neighbours one. A read at a far place then
/// moves the head away.
fn heat(trial: &mut TimedLayer, [outer, hot, inner]: [u64; 3]) {
    for lba in [outer, inner, hot, hot, hot, hot, hot, hot] {
        trial.serve(Command::write(lba, 1));
    }
    let far = trial.capacity() - 1 - hot;
    trial.serve(Command::read(far, 1));
}

/// Returns the costs of the phases of every move: a list for each move.
fn moves(layer: &str, dice: &mut Dice) -> Result<Vec<Vec<super::timed_layer::Cost>>, Failure> {
    let mut trial = TimedLayer::new(layer)?;
    let mut moves = Vec::new();
    for lbas in hot_tracks(&trial, dice) {
        heat(&mut trial, lbas);
        moves.push(std::iter::from_fn(|| trial.idle()).collect());
    }
    Ok(moves)
}

/// Kind of move: its layer, the paper's cost in seeks and rotations, and the phases that this cost covers.
struct Moved {
    layer: &'static str,
    parameters: &'static str,
    name: &'static str,
    /// Number of phases that a move of this kind has; then the first phase counted and the end of the counted range.
    phases: (usize, usize, usize),
    theirs: &'static str,
    seeks: u64,
    rotations: f64,
    /// Number of passes over whole tracks among the rotations.
    passes: f64,
}

const MOVED: [Moved; 5] = [
    Moved {
        layer: FLIP,
        parameters: "safety=paper",
        name: "flipping a track, as the paper does",
        phases: (2, 0, 2),
        theirs: "3 t_seek + 8 t_rot",
        seeks: 3,
        rotations: 8.0,
        passes: 8.0,
    },
    Moved {
        layer: FLIP,
        parameters: "safety=power",
        name: "flipping a track so that no cut loses data",
        phases: (2, 0, 2),
        theirs: "none (the third copy costs a rotation: 3 t_seek + 9 t_rot)",
        seeks: 3,
        rotations: 9.0,
        passes: 9.0,
    },
    Moved {
        layer: CACHE,
        parameters: "cache_tracks=1,cache_header=0,cache_position=od",
        name: "promoting a track into the cache",
        phases: (3, 2, 3),
        theirs: "2 t_seek + 2 t_rot",
        seeks: 2,
        rotations: 2.0,
        passes: 2.0,
    },
    Moved {
        layer: CACHE,
        parameters: "cache_tracks=1,cache_header=0,cache_position=od",
        name: "evicting a track from the cache",
        phases: (3, 0, 2),
        theirs: "4 t_seek + 8 t_rot",
        seeks: 4,
        rotations: 8.0,
        passes: 8.0,
    },
    Moved {
        layer: MAP,
        parameters: "safety=power",
        name: "swapping two pseudo-tracks of a zone",
        phases: (3, 0, 3),
        theirs: "5 t_seek + 13 t_rot",
        seeks: 5,
        rotations: 13.0,
        passes: 11.0,
    },
];

impl Moved {
    fn measured(&self, mechanics: &str, replication: &Replication) -> Result<Vec<super::timed_layer::Cost>, Failure> {
        let words = format!("{}:{EAGER},{},{mechanics}", self.layer, self.parameters);
        let (count, first, end) = self.phases;
        let moves = moves(&words, &mut Dice(replication.seed(22)))?;
        // The first promotion finds a free slot and evicts nothing, so it has fewer phases and is left out.
        let of_kind = moves.into_iter().filter(|phases| phases.len() == count);
        Ok(of_kind.map(|phases| phases[first..end].iter().fold(Default::default(), |sum, &cost| sum + cost)).collect())
    }
}

fn move_costs(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    for moved in &MOVED {
        let mut costs = Costs::default();
        moved.measured(HALF, replication)?.iter().for_each(|cost| costs.see(cost.whole_ns));
        costs.claim(report, moved.name, moved.theirs, moved.seeks, moved.rotations);
    }
    Ok(())
}

/// Adds the claims for whole moves under `exact`: seeks, passes over whole tracks, and switches.
fn exact_moves(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    for moved in &MOVED {
        let costs = moved.measured("mechanics.rotation=exact", replication)?;
        let count = costs.len() as f64;
        let sum = costs.iter().fold(super::timed_layer::Cost::default(), |sum, &cost| sum + cost);
        let rotations = (sum.whole_ns - sum.seek_ns - sum.switch_ns) as f64 / ROTATION_NS as f64 / count;
        let (seeks, switches) = (sum.seeks as f64 / count, sum.switches as f64 / count);
        let expected_ns = sum.seek_ns as f64 + sum.switch_ns as f64 + moved.passes * count * ROTATION_NS as f64;
        let difference = sum.whole_ns as f64 / expected_ns - 1.0;
        report.claim(
            ClaimKind::Derived,
            &format!("`exact`: {}", moved.name),
            &format!("{} t_seek + {} t_rot and switch times (within 2 %)", moved.seeks, moved.passes),
            format!(
                "{seeks:.2} t_seek + {rotations:.2} t_rot, and {switches:.2} switches of 2 ms; {:+.2} % in all",
                difference * 100.0
            ),
            Some(difference.abs() <= 0.02 && (seeks - moved.seeks as f64).abs() < 0.1),
        );
    }
    Ok(())
}

/// Adds the claims for random writes to bottom tracks under `exact`, with one backup region and with sixteen.
fn exact_writes(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    for regions in [1, 16] {
        let mut trial = TimedLayer::new(&format!("{RMW}:backup_regions={regions},mechanics.rotation=exact"))?;
        let (mut whole_ns, mut seek_ns, mut trips, mut away_ns) = (0.0, 0.0, 0.0, 0.0);
        let mut off_whole: f64 = 0.0;
        let mut at = 0;
        for lba in places(&trial, &mut Dice(replication.seed(23)), WRITES, Wanted::Bottom) {
            whole_ns += trial.serve(Command::write(lba, 1)).whole_ns as f64;
            let path = trial.path();
            let (first, second, backup, back) = (path[0], path[1], path[2], path[path.len() - 3]);
            seek_ns += trial.seek_ns(first.radial_track.abs_diff(at)) as f64;
            let trip = back.time.since(second.time).0 as f64 / ROTATION_NS as f64;
            trips += trip;
            off_whole = off_whole.max((trip - trip.round()).abs());
            away_ns += trial.seek_ns(second.radial_track.abs_diff(backup.radial_track)) as f64;
            at = path[path.len() - 1].radial_track;
        }
        let count = WRITES as f64;
        let k = trips / count;
        let mean_ns = whole_ns / count;
        let expected_ns = seek_ns / count + (3.5 + k) * ROTATION_NS as f64;
        let difference = mean_ns / expected_ns - 1.0;
        let seek_ms = seek_ns / count / 1e6;
        report.claim(
            ClaimKind::Derived,
            &format!("`exact`, {regions} backup region(s): a random write of a sector to a bottom track, k measured"),
            "t_seek + (3.5 + k) t_rot (within 2 %)",
            format!(
                "{:.2} ms = {seek_ms:.2} ms + {:.2} t_rot; k = {k:.2}, whole rotations to within {off_whole:.4}; {:+.2} %",
                mean_ns / 1e6,
                (mean_ns / 1e6 - seek_ms) / (ROTATION_NS as f64 / 1e6),
                difference * 100.0
            ),
            Some(difference.abs() <= 0.02 && off_whole < 0.01),
        );
        let closed = 1.0 + 2.0 * away_ns / count / ROTATION_NS as f64;
        report.claim(
            ClaimKind::Derived,
            &format!("`exact`, {regions} backup region(s): k, the trip to the backup region and back"),
            &format!("2 assumed; 1 + 2 t_seek/t_rot = {closed:.2} (within 2 %)"),
            format!("{k:.3}"),
            Some((k / closed - 1.0).abs() <= 0.02),
        );
    }
    Ok(())
}

/// Adds the claims for the maps of 20 TB in tracks of 1.5 MB, and for the log of an interval.
fn memory(report: &mut Report, replication: &Replication) -> Result<(), Failure> {
    /// Number of tracks: one more than 20 TB fill, since tracks come in pairs.
    const TRACKS: u64 = 13_333_334;
    for (layer, name, theirs, expected) in [
        (FLIP, "3 bits a bottom track", "about 2.5 MB", 2_500_000),
        (MAP, "8 bits a pseudo-track", "about 12.5 MB, for \"almost 13M\" tracks", 13_333_333u64),
    ] {
        let drive = imbrex::drives::fresh(&format!("imr-20t+{layer}:geometry.tracks={TRACKS}"))?;
        let bytes = drive.layer.memory().formula_bytes;
        report.claim(
            ClaimKind::Derived,
            &format!("{layer}: map of 20 TB in {TRACKS} tracks of 1.5 MB, {name}"),
            theirs,
            format!("{:.2} MB", bytes as f64 / 1e6),
            Some(bytes.abs_diff(expected) <= 1),
        );
    }
    let mut trial = TimedLayer::new(&format!("{FLIP}:interval=20000"))?;
    let before = trial.memory().measured_bytes;
    let mut dice = Dice(replication.seed(24));
    // One write fewer than an interval has. Each write lies across the end of a track, so it counts for two tracks.
    for _ in 0..19_999 {
        let track = dice.below(trial.capacity() / TRACK_SECTORS - 2) + 1;
        trial.serve(Command::write(track * TRACK_SECTORS - 1, 2));
    }
    let log = trial.memory().measured_bytes - before;
    report.claim(
        ClaimKind::Derived,
        "the log of an interval of 20,000 writes, each to two tracks",
        "less than 0.25 MB",
        format!("{:.3} MB", log as f64 / 1e6),
        Some(log > 0 && log < 250_000),
    );
    Ok(())
}
