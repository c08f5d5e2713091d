//! Goal: a chart over several seeds shows means and 95 % intervals where means exist, and is named in a remark where
//! they do not. Method: charts written here; intervals in closed form by Student's t for one degree of freedom (12.706)
//! and for two (4.303); the JSON form of a kept report.

use imbrex::chart::{Axis, BarArrangement, BarChart, Chart, Series, Shape, Unit};

use super::super::kept::{Found, Place};
use super::super::merge::merged;
use crate::report::{Figure, Report};

fn axis() -> Axis {
    Axis::linear("ms", Unit::Count)
}

fn line(shape: Shape, points: &[(f64, f64)]) -> Chart {
    Chart::new("a", "Latency", axis(), axis()).with(Series::new("rmw", shape, 0, points.to_vec()))
}

fn bars(groups: [&str; 2], values: [f64; 2]) -> BarChart {
    let groups = groups.map(String::from).to_vec();
    BarChart::new("b", "Rates", axis(), groups, BarArrangement::Grouped).with("rmw", 0, values.to_vec())
}

fn report(figure: impl Into<Figure>) -> Report {
    let mut report = Report::default();
    report.figure(figure);
    report
}

fn merge(reports: &[Report]) -> Report {
    merged("paper/figure", reports).expect("the reports have equal claims")
}

/// Returns the merged chart, of which no remark says that it is of the first seed.
fn chart(merged: &Report) -> &Chart {
    assert_eq!(merged.remarks.len(), 1, "{:?}", merged.remarks);
    let Figure::Chart(chart) = &merged.figures[0] else { panic!("{:?}", merged.figures) };
    chart
}

fn assert_near(ours: &[f64], expected: &[f64]) {
    let is_near = ours.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-3 * other.abs().max(1.0));
    assert!(ours.len() == expected.len() && is_near, "{ours:?}, expected {expected:?}");
}

#[test]
fn a_chart_has_means_and_half_intervals() {
    // The values 1 and 3 deviate by √2 from each other's mean, so half of the interval is 12.706 · √2 / √2.
    let two = [line(Shape::Line, &[(0.0, 1.0), (5.0, 7.0)]), line(Shape::Line, &[(0.0, 3.0), (5.0, 7.0)])];
    let merged = merge(&two.map(report));
    let found = chart(&merged);
    assert_eq!(found.series[0].points, [(0.0, 2.0), (5.0, 7.0)]);
    assert_near(&found.series[0].half_widths, &[12.706, 0.0]);
    assert_eq!((found.title.as_str(), found.id.as_str()), ("Latency, mean of 2 seeds", "a"));
    assert!(found.description.contains("Means of 2 seeds"), "{}", found.description);
    // Half of the interval of 1, 2 and 3: 4.303 / √3.
    let merged = merge(&[1.0, 2.0, 3.0].map(|y| report(line(Shape::Marks, &[(0.0, y)]))));
    assert_eq!(chart(&merged).series[0].points, [(0.0, 2.0)]);
    assert_near(&chart(&merged).series[0].half_widths, &[2.484]);
}

#[test]
fn a_marker_moves_to_its_mean() {
    let with = |at: f64| report(line(Shape::Line, &[(0.0, 1.0)]).mark_x(at, "cliff"));
    let merged = merge(&[with(4.0), with(6.0)]);
    assert_eq!((chart(&merged).markers[0].at, chart(&merged).markers[0].label.as_str()), (5.0, "cliff"));
}

#[test]
fn an_equal_figure_stays() {
    for figure in [Figure::from(line(Shape::Dots, &[(0.0, 0.1)])), Figure::from(bars(["a", "b"], [1.0, 2.0]))] {
        let merged = merge(&[report(figure.clone()), report(figure.clone()), report(figure.clone())]);
        assert_eq!((&merged.figures[..], merged.remarks.len()), (&[figure][..], 1));
    }
}

#[test]
fn a_figure_without_means_is_of_the_first_seed_and_is_named() {
    let first = line(Shape::Line, &[(0.0, 1.0), (5.0, 7.0)]);
    let points = "The figure a.svg is of the first seed, since the series, x values or labels differ with the seed.";
    let of_kind = "The figure a.svg is of the first seed, since the kind of chart differs with the seed.";
    let more = first.clone().with(Series::new("flip", Shape::Line, 1, Vec::new()));
    let others = [
        (Figure::from(line(Shape::Line, &[(0.0, 1.0), (6.0, 7.0)])), points),
        (line(Shape::Line, &[(0.0, 1.0)]).into(), points),
        (line(Shape::Line, &[(0.0, 1.0), (5.0, f64::NAN)]).into(), points),
        (line(Shape::Steps, &[(0.0, 1.0), (5.0, 7.0)]).into(), points),
        (more.into(), points),
        (first.clone().mark_y(1.0, "bound").into(), points),
        (bars(["a", "b"], [1.0, 2.0]).into(), of_kind),
    ];
    for (other, remark) in others {
        let merged = merge(&[report(first.clone()), report(other)]);
        assert_eq!(merged.figures, [Figure::from(first.clone())]);
        assert_eq!(merged.remarks[1..], [remark]);
    }
    let merged = merge(&[report(first.clone()), Report::default()]);
    assert_eq!(merged.figures, [Figure::from(first)]);
    assert!(merged.remarks[1].starts_with("The number of figures differs"), "{:?}", merged.remarks);
}

#[test]
fn dots_are_not_averaged() {
    let merged = merge(&[1.0, 2.0].map(|y| report(line(Shape::Dots, &[(0.0, y)]))));
    assert_eq!(merged.figures, [Figure::from(line(Shape::Dots, &[(0.0, 1.0)]))]);
    assert!(merged.remarks[1].contains("a.svg is of the first seed, since each dot is"), "{:?}", merged.remarks);
}

#[test]
fn remarks_name_all_figures_with_one_reason() {
    let with_two = |groups: [&str; 2], y: f64| {
        let mut both = report(line(Shape::Dots, &[(0.0, y)]));
        both.figure(Chart { id: "c".into(), ..line(Shape::Dots, &[(0.0, y)]) });
        both.figure(bars(groups, [1.0, 2.0]));
        both
    };
    let merged = merge(&[with_two(["a", "b"], 1.0), with_two(["a", "c"], 2.0)]);
    let groups = "The figure b.svg is of the first seed, since the groups, parts or labels differ with the seed.";
    let dots = "The figures a.svg, c.svg are of the first seed, since each dot is a single observation.";
    assert_eq!(merged.remarks[1..], [groups, dots]);
}

#[test]
fn a_bar_chart_has_means_and_half_intervals() {
    let merged = merge(&[report(bars(["a", "b"], [1.0, f64::NAN])), report(bars(["a", "b"], [3.0, f64::NAN]))]);
    let Figure::Bars(found) = &merged.figures[0] else { panic!("{:?}", merged.figures) };
    assert_eq!((found.parts[0].values[0], found.parts[0].values[1].is_nan()), (2.0, true));
    assert_near(&found.parts[0].half_widths, &[12.706, 0.0]);
    assert_eq!(found.title, "Rates, mean of 2 seeds");
    assert_eq!(merged.remarks.len(), 1, "{:?}", merged.remarks);
    let missing = merge(&[report(bars(["a", "b"], [1.0, f64::NAN])), report(bars(["a", "b"], [3.0, 1.0]))]);
    assert!(missing.remarks[1].contains("b.svg is of the first seed"), "{:?}", missing.remarks);
}

#[test]
fn many_points_have_error_bars_at_some_and_each_series_at_others() {
    let two = |add: f64| {
        let points = |slope: f64| (0..100).map(|x| (f64::from(x), slope * f64::from(x) + add)).collect::<Vec<_>>();
        report(line(Shape::Line, &points(1.0)).with(Series::new("flip", Shape::Line, 1, points(2.0))))
    };
    let merged = merge(&[two(0.0), two(1.0)]);
    let at = |index: usize| {
        let halves = chart(&merged).series[index].half_widths.iter().enumerate();
        halves.filter(|(_, half)| **half > 0.0).map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!((at(0), at(1)), ((0..100).step_by(3).collect(), (2..100).step_by(3).collect()));
    assert_eq!(chart(&merged).series[1].points[99], (99.0, 198.5));
    assert_eq!(chart(&merged).y.label, "ms");
    let steps = |y: f64| report(line(Shape::Steps, &(0..100).map(|x| (f64::from(x), y)).collect::<Vec<_>>()));
    let merged = merge(&[steps(1.0), steps(2.0)]);
    assert!(chart(&merged).series[0].half_widths.is_empty(), "an error bar looks like a step");
    assert_eq!(chart(&merged).description, "Means of 2 seeds.");
}

#[test]
fn a_long_title_stays_and_the_axis_names_the_seeds() {
    let long = "Random writes on the set-associative cache, the low end, regions of 50,000 blocks";
    let with = |y: f64| report(Chart { title: long.into(), ..line(Shape::Line, &[(0.0, y)]) });
    let merged = merge(&[with(1.0), with(2.0)]);
    assert_eq!((&*chart(&merged).title, &*chart(&merged).y.label), (long, "ms, mean of 2 seeds"));
}

/// Goal: the report over seeds does not depend on whether a replication was found or made. Method: numbers that JSON
/// lacks, and those whose last digit a reader of JSON may change.
#[test]
fn a_kept_report_with_charts_is_read_as_it_was_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let numbers = (1..200).map(|n| (1.0 / f64::from(n), 1e9 * f64::from(n).sqrt())).chain([(7.0, f64::INFINITY)]);
    let drawn = line(Shape::Steps, &numbers.collect::<Vec<_>>()).mark_x(0.1 + 0.2, "cliff");
    let drawn = Chart { x: axis().ranged(0.1 + 0.2, 1e300), ..drawn };
    let mut written = report(drawn);
    written.figure(bars(["a", "b"], [1.0 / 3.0, f64::NAN]));
    let place = Place::new(folder.path(), "paper/figure", "program", 0);
    place.keep(written.clone(), true).expect("it is kept");
    let Found::Usable(read) = place.find() else { panic!("the report is not found") };
    assert_eq!(read.report.figures[0], written.figures[0]);
    // A NaN is equal to nothing, so the bar chart is compared in words.
    assert_eq!(format!("{:?}", read.report), format!("{written:?}"));
    assert!(read.report.figures.iter().zip(&written.figures).all(|(one, other)| one.svg() == other.svg()));
}
