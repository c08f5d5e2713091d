//! The charts of the page: the run over time, and the device time by cause.
//!
//! Invariants:
//! 1. A step is the mean of its row in the timeline of summary.json; a step of the fill is the state at the end of its
//!    row.
//! 2. A cause has the same style in every chart. A chart without data is left out.

use imbrex::chart::{Axis, BarArrangement, BarChart, Chart, Series, Shape, Unit};
use imbrex::report::figure::{Drawing, Figure, Layout};
use imbrex::report::intervals::{self, Pane};
use imbrex_fs::device::{BLOCK_BYTES, Spent};
use imbrex_fs::executor::Cause;
use imbrex_fs::load::bench::timeline::{Pace, State};
use imbrex_fs::load::bench::{Kind, Phase};

use super::document::Stretch;
use super::table;
use super::{BenchOutput, Timed};

const SIZE: (f64, f64) = (580.0, 330.0);

/// Text in place of the charts of cleaning if nothing was cleaned.
pub(super) const NO_CLEANING: &str = "Nothing was cleaned.";

/// Returns whether zones were cleaned.
pub(super) fn has_cleaning(ran: &BenchOutput) -> bool {
    ran.stretches().iter().any(|stretch| stretch.grew(|state| state.zones_cleaned + state.blocks_cleaned) > Some(0))
}

/// Returns the name of a cause of device work on the page.
pub(super) fn in_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Data => "files",
        Cause::Hot => "hot copies",
        other => other.name(),
    }
}

/// Function that returns a value of a part of the run, if it is known.
type Of<'a> = Box<dyn Fn(&Stretch<'_>) -> Option<f64> + 'a>;

/// A line of a chart: name, style, values.
type Line<'a> = (String, usize, Of<'a>);

fn line<'a>(name: &str, look: usize, of: impl Fn(&Stretch<'_>) -> Option<f64> + 'a) -> Line<'a> {
    (name.to_string(), look, Box::new(of))
}

/// Returns `amount` per second of a part of the run.
fn a_second(stretch: &Stretch<'_>, amount: u64) -> f64 {
    table::rate(amount, stretch.row.end_ns - stretch.row.begin_ns)
}

/// Returns all figures that have data.
pub(super) fn all(ran: &BenchOutput) -> Vec<Figure> {
    let figures = [
        over_seeds(ran),
        rate(ran),
        latency(ran),
        busy(ran),
        totals(ran),
        written(ran),
        cleaning(ran),
        held_back(ran),
        fill(ran),
    ];
    figures.into_iter().flatten().collect()
}

/// Returns a chart of `lines` over time, with marks where phases begin.
fn over_time(ran: &BenchOutput, id: &str, title: &str, y: Axis, lines: Vec<Line<'_>>) -> Drawing {
    let mut chart = Chart::new(id, format!("{title} over time"), Axis::linear("time", Unit::Nanoseconds), y)
        .described(format!("{title} over the time of the run, in steps."))
        .sized(SIZE.0, SIZE.1);
    for (phase, ..) in ran.phases.iter().skip(1) {
        chart = chart.mark_x((phase.began_ns - ran.began_ns) as f64, phase.name);
    }
    let stretches = ran.stretches();
    for (name, look, of) in lines {
        let mut points: Vec<(f64, f64)> =
            stretches.iter().filter_map(|stretch| Some((stretch.row.begin_ns as f64, of(stretch)?))).collect();
        if points.iter().all(|(_, value)| *value == 0.0) {
            points.clear();
        }
        // A point is the start of a step; a further point ends the last step.
        let end = stretches.last().map(|stretch| stretch.row.end_ns as f64).zip(points.last().copied());
        points.extend(end.map(|(end, (_, value))| (end, value)));
        chart = chart.with(Series::new(name, Shape::Steps, look, points));
    }
    Drawing::Chart(chart)
}

fn figure(id: &'static str, title: &'static str, caption: &str, panes: Vec<(&str, Drawing)>) -> Option<Figure> {
    let has_points = |(_, drawing): &(&str, Drawing)| match drawing {
        Drawing::Chart(chart) => !chart.is_empty(),
        Drawing::Bars(_) => true,
    };
    let panes = panes.into_iter().filter(has_points).map(|(name, drawing)| (name.to_string(), drawing));
    let panes: Vec<_> = panes.collect();
    let caption = caption.to_string();
    (!panes.is_empty()).then_some(Figure { id, title, caption, layout: Layout::Tabs, is_wide: false, panes })
}

/// Returns the means and 95 % intervals over the seeds, by phase, without those that are always 0; `None` for one seed.
fn over_seeds(ran: &BenchOutput) -> Option<Figure> {
    let over = ran.over_seeds.as_ref()?;
    let of_phases = |id, name, path: &str, unit| {
        let of_phase = |(number, (phase, ..)): (usize, &Timed)| {
            (phase.name.to_string(), over.figures.get(&format!("phases.{number}.{path}")).copied())
        };
        Pane { id, name, unit, items: ran.phases.iter().enumerate().map(of_phase).collect() }
    };
    let mut panes = vec![
        of_phases("time", "time", "elapsed_ns", Unit::Nanoseconds),
        of_phases("rate", "items a second", "done_per_second", Unit::Count),
        of_phases("bytes", "bytes a second", "bytes_per_second", Unit::BytesPerSecond),
    ];
    let kinds: Vec<(Kind, String)> =
        ran.kinds().into_iter().map(|kind| (kind, format!("mean latency of {}", kind.name()))).collect();
    for (kind, name) in &kinds {
        panes.push(of_phases(kind.name(), name, &format!("kinds.{}.latency_ns.mean", kind.name()), Unit::Nanoseconds));
    }
    panes.retain(|pane| pane.items.iter().any(|(_, over)| over.is_some_and(|over| over.max > 0.0)));
    intervals::figure("phase", over.seeds.len(), panes)
}

fn rate(ran: &BenchOutput) -> Option<Figure> {
    let axis = |label: &str, unit, of_phase: fn(&Phase) -> u64, of_stretch: fn(&Stretch<'_>) -> u64| {
        let means = ran.phases.iter().map(|(phase, ..)| table::rate(of_phase(phase), phase.elapsed_ns));
        let stretches = ran.stretches();
        let highest = stretches.iter().map(|stretch| a_second(stretch, of_stretch(stretch))).fold(0.0, f64::max);
        Axis::of_rates(label, unit, means, highest)
    };
    let operations = || axis("operations/s", Unit::Count, Phase::operations, |stretch| stretch.pace().count);
    let all = vec![line("all", 0, |stretch| Some(a_second(stretch, stretch.pace().count)))];
    let kinds = ran.kinds();
    let by_kind = (0..)
        .zip(&kinds)
        .map(|(look, kind)| line(kind.name(), look, |stretch| Some(a_second(stretch, stretch.pace_of(*kind).count))));
    let bytes =
        |name, look, kind| line(name, look, move |stretch| Some(a_second(stretch, stretch.pace_of(kind).bytes)));
    let of_bytes = axis("bytes/s", Unit::BytesPerSecond, Phase::bytes, |stretch| {
        stretch.pace_of(Kind::Read).bytes.max(stretch.pace_of(Kind::Write).bytes)
    });
    let bytes = vec![bytes("read", 0, Kind::Read), bytes("written", 1, Kind::Write)];
    let panes = vec![
        ("operations", over_time(ran, "rate-all", "Operations a second", operations(), all)),
        ("by kind", over_time(ran, "rate-kinds", "Operations a second by kind", operations(), by_kind.collect())),
        ("bytes", over_time(ran, "rate-bytes", "Bytes a second", of_bytes, bytes)),
    ];
    figure(
        "rate",
        "Operations",
        "Operations that completed for applications; each step is the mean over its time.",
        panes,
    )
}

fn latency(ran: &BenchOutput) -> Option<Figure> {
    let shown = |ns: u64, pace: &Pace| (pace.count > 0).then_some(ns as f64);
    let pane = |id: &str, name: &str, of: &dyn Fn(&Stretch<'_>) -> Pace| {
        let axis = Axis::log10(format!("latency of {name}"), Unit::Nanoseconds);
        let mean = line("mean", 0, |stretch| shown(of(stretch).mean_ns(), &of(stretch)));
        let p99 = line("99 %", 1, |stretch| shown(of(stretch).quantile_ns(0.99), &of(stretch)));
        let longest = line("longest", 2, |stretch| shown(of(stretch).max_ns, &of(stretch)));
        over_time(ran, &format!("latency-{id}"), &format!("Latency of {name}"), axis, vec![mean, p99, longest])
    };
    let mut panes = vec![("all", pane("all", "all operations", &|stretch| stretch.pace()))];
    for kind in ran.kinds() {
        panes.push((kind.name(), pane(kind.name(), kind.name(), &|stretch| stretch.pace_of(kind))));
    }
    let caption = "Mean, 99th percentile (to a sixteenth) and maximum of each step; kinds that took no time are left \
                   out.";
    figure("latency", "Latency", caption, panes)
}

/// Returns a line for each cause.
fn by_cause<'a>(of: impl Fn(&Stretch<'_>, Spent) -> f64 + Copy + 'a) -> Vec<Line<'a>> {
    let one = |(look, cause): (usize, Cause)| {
        line(in_words(cause), look, move |stretch| stretch.spent().map(|spent| of(stretch, spent.of(cause))))
    };
    Cause::ALL.into_iter().enumerate().map(one).collect()
}

fn busy(ran: &BenchOutput) -> Option<Figure> {
    let devices = ran.on_devices.as_ref()?.devices.len() as f64;
    let lines = by_cause(move |stretch, spent| a_second(stretch, spent.busy_ns) / 1e9 / devices);
    // A request counts in the step in which it ends, so a step may have a little more than its own time.
    let axis = Axis::linear("share of the devices’ time", Unit::Share).ranged(0.0, 1.0);
    let panes = vec![("busy", over_time(ran, "busy-time", "Device time by cause", axis, lines))];
    let caption = "Share of the time of all devices together, by cause; in the remaining time they were idle.";
    figure("busy", "Device time by cause", caption, panes)
}

fn totals(ran: &BenchOutput) -> Option<Figure> {
    let devices = &ran.on_devices.as_ref()?.devices;
    let name = |name: &str| name.rsplit('/').next().unwrap_or_default().to_string();
    let groups: Vec<String> = devices.iter().map(|used| name(&used.name)).collect();
    let axis = Axis::linear("busy in the whole run", Unit::Nanoseconds);
    let mut chart = BarChart::new("totals-bars", "Device time by cause", axis, groups, BarArrangement::Stacked)
        .described("How long each device was busy in the whole run, split by cause.")
        .sized(SIZE.0, SIZE.1);
    for (look, cause) in Cause::ALL.into_iter().enumerate() {
        let values: Vec<f64> = devices.iter().map(|used| used.spent.of(cause).busy_ns as f64).collect();
        if values.iter().any(|value| *value > 0.0) {
            chart = chart.with(in_words(cause), look, values);
        }
    }
    figure("totals", "Device time by device", "How long each device was busy.", vec![("busy", Drawing::Bars(chart))])
}

fn written(ran: &BenchOutput) -> Option<Figure> {
    let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
    let written = by_cause(move |stretch, spent| a_second(stretch, bytes(spent.blocks_written)));
    let read = by_cause(move |stretch, spent| a_second(stretch, bytes(spent.blocks_read)));
    let axis = || Axis::linear("bytes/s", Unit::BytesPerSecond);
    let panes = vec![
        ("written", over_time(ran, "traffic-written", "Bytes written to devices by cause", axis(), written)),
        ("read", over_time(ran, "traffic-read", "Bytes read from devices by cause", axis(), read)),
    ];
    figure("traffic", "Bytes by cause", "Bytes that all devices together were asked to write or read.", panes)
}

fn cleaning(ran: &BenchOutput) -> Option<Figure> {
    let a_second_of =
        |of: fn(&State) -> u64| move |stretch: &Stretch<'_>| stretch.grew(of).map(|amount| a_second(stretch, amount));
    let bytes = a_second_of(|state| state.blocks_cleaned * BLOCK_BYTES as u64);
    let bytes = vec![line("moved", 4, bytes)];
    let zones = vec![line("emptied", 4, a_second_of(|state| state.zones_cleaned))];
    let panes = vec![
        (
            "bytes moved",
            over_time(
                ran,
                "cleaning-bytes",
                "Bytes that the cleaner moved a second",
                Axis::linear("bytes/s", Unit::BytesPerSecond),
                bytes,
            ),
        ),
        (
            "zones",
            over_time(ran, "cleaning-zones", "Zones emptied a second", Axis::linear("zones/s", Unit::Count), zones),
        ),
    ];
    figure(
        "cleaning",
        "Cleaning",
        "Bytes that the cleaner copied, and the zones or stripe groups that it freed.",
        panes,
    )
}

fn held_back(ran: &BenchOutput) -> Option<Figure> {
    let of = |of: fn(&State) -> u64| move |stretch: &Stretch<'_>| stretch.grew(of).map(|ns| a_second(stretch, ns));
    let lines = vec![
        line("slowed down", 0, of(|state| state.throttled_ns)),
        line("waited for a place", 1, of(|state| state.waited_ns)),
    ];
    let axis = Axis::linear("held back in a second", Unit::Nanoseconds);
    let panes =
        vec![("held back", over_time(ran, "held-back", "Time that writers were held back a second", axis, lines))];
    let caption = "Time for which all writers together were held back in each second: over a second if several were.";
    figure("throttling", "Throttling", caption, panes)
}

fn fill(ran: &BenchOutput) -> Option<Figure> {
    let share = |of: fn(&State) -> u64| {
        move |stretch: &Stretch<'_>| {
            let blocks = stretch.stands(|state| state.blocks)?.max(1);
            Some(stretch.stands(of)? as f64 / blocks as f64)
        }
    };
    let lines = vec![line("live", 0, share(|state| state.live)), line("dead", 1, share(|state| state.dead))];
    let staged = vec![line("not yet written", 0, |stretch| {
        stretch.stands(|state| state.staged_bytes).map(|bytes| bytes as f64)
    })];
    let panes = vec![
        ("room", over_time(ran, "fill-room", "Fill", Axis::linear("share of the room for files", Unit::Share), lines)),
        (
            "in memory",
            over_time(ran, "fill-memory", "Bytes not yet written", Axis::linear("bytes", Unit::Bytes), staged),
        ),
    ];
    figure("fill", "Fill", "State at the end of each step; dead data occupy space until they are cleaned.", panes)
}
