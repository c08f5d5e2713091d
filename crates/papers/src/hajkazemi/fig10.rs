//! Figs 2, 4, 10 and 11: how many tracks are hot, and whether their neighbours are.

use imbrex_disk::{Operation, SimTime};

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::timed_layer::TimedLayer;
use super::under_test::RMW;
use super::workloads::{Case, claim_kind};
use imbrex::chart::{Axis, BarArrangement, BarChart, Chart, Series, Shape, Unit};
use imbrex::error::Failure;
use imbrex_trace::generators::Arrivals;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "hajkazemi/fig10-11", title: "how many tracks are hot, and whether their neighbours are", run };

/// Number of sectors in a track of 2 MiB.
const TRACK_SECTORS: u64 = 4096;
/// Number of hottest tracks in fig. 2.
const SHOWN: usize = 3000;
/// Number of hottest tracks in fig. 4, where each is shown with its neighbours.
const HOTTEST: usize = 20;
/// Number of tracks that the cache of the paper holds.
const CACHED: usize = 100;
/// Cases: (machine, number of its hottest tracks, share of writes to these tracks in the paper's words, accepted range
/// of our share).
const SHARES: [(&str, usize, &str, std::ops::Range<f64>); 4] = [
    ("w106", CACHED, "80 % (§2.2)", 0.75..0.85),
    ("w39", 10, "half, to a handful of tracks", 0.4..0.6),
    ("w09", CACHED, "around 20 %", 0.15..0.25),
    ("w87", CACHED, "around 15 %", 0.1..0.2),
];

/// Returns whether few of the hottest tracks have neighbours on both sides that are as hot: at most a quarter.
fn is_few(crowded: usize) -> bool {
    crowded * 4 <= CACHED
}

/// Number of writes to each track of addresses: 2 MiB of consecutive LBAs.
struct Heat {
    writes: Vec<u64>,
    /// Tracks in the order of their writes, the hottest first; the lower of two equal tracks first.
    ranked: Vec<usize>,
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let names = ["w106", "w39", "w09", "w87", "w17"];
    let mut heats = Vec::new();
    for name in names {
        heats.push((name, Heat::of(name, replication)?));
    }
    let mut report = Report {
        method: "The experiment counts the writes of the stand-ins to each 2 MiB of addresses over the whole \
                 simulated week. The published shares of writes of w106, w39, w09 and w87, and the neighbours of the \
                 hot tracks of w17 and w87, were put into the stand-ins. So the results show only that the stand-ins \
                 are as intended. Neighbours are counted in two ways: by address, as the figures of Hajkazemi 2019 \
                 number tracks, and by place on the drive, which numbers 128 bottom tracks and then the 128 tops \
                 between them."
            .into(),
        ..Report::default()
    };
    for ((_, heat), (name, tracks, theirs, range)) in heats.iter().zip(SHARES) {
        let share = heat.share(tracks);
        report.claim(
            claim_kind(ClaimKind::Predicted, &[name], replication),
            &format!("{name}: share of writes to the {tracks} hottest tracks"),
            theirs,
            format!("{:.1} %", share * 100.0),
            Some(range.contains(&share)),
        );
    }
    report.figure(shares_chart(&heats));
    let drive = TimedLayer::new(RMW)?;
    for (name, theirs, friendly) in
        [("w17", "most hot tracks have a cold neighbour", true), ("w87", "many are surrounded by similar ones", false)]
    {
        let heat = &heats.iter().find(|(other, _)| *other == name).expect("it is one of the names").1;
        let crowded = heat.crowded(|track| [track.checked_sub(1), Some(track + 1)]);
        let on_drive = heat.crowded(|track| physical_neighbours(&drive, track));
        report.claim(
            claim_kind(ClaimKind::Shape, &[name], replication),
            &format!("{name}: of the {CACHED} hottest tracks, those with both neighbours over half as hot"),
            theirs,
            format!("{crowded} by address; {on_drive} as the drive lays tracks"),
            Some(if friendly { is_few(crowded) } else { !is_few(crowded) }),
        );
        let id = if friendly { "hajkazemi-fig04" } else { "hajkazemi-fig11" };
        report.figure(neighbours_chart(id, name, heat));
    }
    report.remarks.push(
        "On the simulated drive, the two tops beside a bottom track have addresses some 128 tracks away. So a run of \
         hot addresses of at most 128 tracks has cold tops beside it. Flipping therefore does better on w87 than the \
         paper's fig. 11 suggests."
            .into(),
    );
    Ok(report)
}

impl Heat {
    fn of(name: &'static str, replication: &Replication) -> Result<Heat, Failure> {
        let case = Case::of(name, Arrivals::default()).of_replication(replication);
        let sectors = case.reach_sectors(replication)?.expect("stand-ins and traces of machines have a reach");
        let mut source = case.open(replication)?;
        let bar = replication.progress.requests(name, source.expected_requests());
        let mut writes = vec![0; sectors.div_ceil(TRACK_SECTORS) as usize];
        let mut requests = 0u64;
        while let Some(request) = source.next(SimTime::ZERO)? {
            requests += 1;
            if requests.is_multiple_of(1 << 16) {
                bar.set_position(requests);
                if replication.progress.should_stop() {
                    return Err(Failure::interrupted());
                }
            }
            let command = request.command;
            if command.operation == Operation::Write {
                let tracks = command.lba.0 / TRACK_SECTORS..=(command.end().0 - 1) / TRACK_SECTORS;
                tracks.for_each(|track| writes[track as usize] += 1);
            }
        }
        bar.finish_and_clear();
        let mut ranked: Vec<usize> = (0..writes.len()).collect();
        ranked.sort_by_key(|&track| (std::cmp::Reverse(writes[track]), track));
        Ok(Heat { writes, ranked })
    }

    /// Returns the share of writes that go to the hottest `tracks`.
    fn share(&self, tracks: usize) -> f64 {
        let hot: u64 = self.ranked.iter().take(tracks).map(|&track| self.writes[track]).sum();
        hot as f64 / self.writes.iter().sum::<u64>() as f64
    }

    /// Returns how many of the hottest tracks have two neighbours that each took over half as many writes.
    fn crowded(&self, neighbours: impl Fn(usize) -> [Option<usize>; 2]) -> usize {
        let is_hot = |track: usize, neighbour: Option<usize>| {
            let writes = neighbour.and_then(|neighbour| self.writes.get(neighbour)).copied().unwrap_or(0);
            2 * writes > self.writes[track]
        };
        let hottest = self.ranked.iter().take(CACHED);
        hottest.filter(|&&track| neighbours(track).into_iter().all(|neighbour| is_hot(track, neighbour))).count()
    }
}

/// Returns the tracks of addresses that the drive places beside a track of addresses.
fn physical_neighbours(drive: &TimedLayer, track: usize) -> [Option<usize>; 2] {
    let (radial, _) = drive.track_of(track as u64 * TRACK_SECTORS);
    let at = |radial: Option<u32>| {
        let radial = radial.filter(|&radial| radial < drive.disk.geometry.radial_tracks())?;
        drive.lba_of_track(radial).map(|lba| (lba / TRACK_SECTORS) as usize)
    };
    [at(radial.checked_sub(1)), at(radial.checked_add(1))]
}

fn shares_chart(heats: &[(&str, Heat)]) -> Chart {
    let mut chart = Chart::new(
        "hajkazemi-fig10",
        "Share of writes to the hottest tracks",
        Axis::log10("hottest tracks", Unit::Count),
        Axis::linear("share of writes", Unit::Share).ranged(0.0, 1.0),
    );
    for (look, (name, heat)) in heats.iter().enumerate() {
        let total = heat.writes.iter().sum::<u64>() as f64;
        let mut sum = 0;
        let points = heat.ranked.iter().take(SHOWN).enumerate().map(|(index, &track)| {
            sum += heat.writes[track];
            ((index + 1) as f64, sum as f64 / total)
        });
        chart = chart.with(Series::new(*name, Shape::Line, look, points.collect()));
    }
    chart.thin(400)
}

fn neighbours_chart(id: &str, name: &str, heat: &Heat) -> BarChart {
    let hottest = &heat.ranked[..HOTTEST];
    let groups = hottest.iter().map(|track| track.to_string()).collect();
    let title = format!("The {HOTTEST} hottest tracks of {name}, by address, and their neighbours");
    let axis = Axis::linear("writes", Unit::Count);
    let mut chart = BarChart::new(id, title, axis, groups, BarArrangement::Grouped).sized(1080.0, 420.0);
    for (look, (part, offset)) in [("track before", -1i64), ("track", 0), ("track after", 1)].into_iter().enumerate() {
        let writes = |&track: &usize| {
            let at = usize::try_from(track as i64 + offset).ok();
            at.and_then(|at| heat.writes.get(at)).copied().unwrap_or(0) as f64
        };
        chart = chart.with(part, look, hottest.iter().map(writes).collect());
    }
    chart
}
