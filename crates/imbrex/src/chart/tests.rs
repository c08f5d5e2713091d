//! Drawn charts: the markup contains the given data.

use super::*;

fn sample() -> Chart {
    let line = |k: f64| (1..=50).map(|i| (i as f64 * 1e6, k * i as f64)).collect::<Vec<_>>();
    Chart::new("t", "A <title> & more", Axis::log10("latency", Unit::Nanoseconds), Axis::linear("count", Unit::Count))
        .with(Series::new("one", Shape::Line, 0, line(1.0)))
        .with(Series::new("two \"quoted\"", Shape::Steps, 1, line(2.0)))
        .with(Series::new("three", Shape::Dots, 2, line(3.0)))
        .with(Series::new("four", Shape::Marks, 3, vec![(5e6, 10.0), (6e6, 20.0)]))
        .with(Series::new("five", Shape::Bars, 4, vec![(1e6, 10.0), (2e6, 20.0), (4e6, 0.0)]))
        .mark_x(8.33e6, "one revolution")
        .mark_y(75.0, "bound")
        .described("What it shows.")
}

/// Returns the attribute `d` of the path of series `index`.
fn path(svg: &str, index: usize) -> &str {
    let from = svg.find(&format!("data-series=\"{index}\"")).expect("the series is drawn");
    let begin = from + svg[from..].find(" d=\"").expect("a path") + 4;
    &svg[begin..begin + svg[begin..].find('"').expect("its end")]
}

/// Checks that every opened element is closed, in order.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!rest[..start].contains(['>', '\u{0}']), "a bare bracket before <{tag}");
        assert_eq!(tag.matches('"').count() % 2, 0, "unpaired quotes in <{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn every_point_is_drawn_in_every_shape() {
    for style in [Style::Standalone, Style::Embedded] {
        let svg = sample().svg(style);
        assert_well_formed(&svg);
        assert_eq!(path(&svg, 0).matches(['M', 'L']).count(), 50);
        assert_eq!(path(&svg, 1).matches('H').count(), 49);
        assert_eq!(path(&svg, 2).matches("h0").count(), 50);
        assert_eq!(path(&svg, 3).matches('M').count(), 2);
        assert_eq!(path(&svg, 4).matches('M').count(), 2);
    }
}

#[test]
fn a_point_stands_where_its_scales_put_it() {
    let chart = Chart::new(
        "p",
        "p",
        Axis::log10("", Unit::Count).ranged(1.0, 100.0),
        Axis::linear("", Unit::Count).ranged(0.0, 8.0),
    )
    .with(Series::new("s", Shape::Line, 0, vec![(1.0, 0.0), (10.0, 2.0), (100.0, 8.0)]));
    let svg = chart.svg(Style::Embedded);
    let plot = svg.split("data-plot=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("the frame");
    let frame: Vec<f64> = plot.split(' ').map(|number| number.parse().expect("a number")).collect();
    let drawn: Vec<(f64, f64)> = path(&svg, 0)
        .split(['M', 'L'])
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once(' ').expect("two numbers"))
        .map(|(x, y)| (x.parse().expect("x"), y.parse().expect("y")))
        .collect();
    for ((x, y), (across, down)) in drawn.into_iter().zip([(0.0, 1.0), (0.5, 0.75), (1.0, 0.0)]) {
        assert!((x - (frame[0] + across * frame[2])).abs() < 0.11, "x {x}");
        assert!((y - (frame[1] + down * frame[3])).abs() < 0.11, "y {y}");
    }
}

#[test]
fn embedded_charts_take_their_colours_from_the_page_and_standalone_ones_bring_them() {
    let (embedded, standalone) = (sample().svg(Style::Embedded), sample().svg(Style::Standalone));
    assert!(embedded.contains("var(--series-0)") && !embedded.contains("#0072b2"));
    assert!(standalone.contains("#0072b2") && !standalone.contains("var("));
    assert!(standalone.contains(">two &quot;quoted&quot;</text>"), "the legend is inside");
    assert!(!embedded.contains(">two &quot;quoted&quot;</text>"));
}

#[test]
fn text_is_escaped_and_the_drawing_described() {
    let svg = sample().svg(Style::Standalone);
    assert!(svg.contains("<title id=\"t-title\">A &lt;title&gt; &amp; more</title>"));
    assert!(svg.contains("<desc id=\"t-description\">What it shows.</desc>"));
    assert_eq!(escape("a\u{7}\tb"), "a b");
}

#[test]
fn stacked_bars_end_at_their_sum_and_keep_proportion() {
    let chart = BarChart::new(
        "b",
        "Bars",
        Axis::linear("written", Unit::Ratio).ranged(0.0, 4.0),
        vec!["a".into(), "b".into()],
        BarArrangement::Stacked,
    )
    .with("host", 0, vec![1.0, 1.0])
    .with("cleaning", 1, vec![3.0, 0.0]);
    let svg = chart.svg(Style::Embedded);
    assert_well_formed(&svg);
    let widths: Vec<f64> = svg
        .split("<g class=\"bar\"")
        .skip(1)
        .map(|bar| bar.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a width"))
        .map(|width| width.parse().expect("a number"))
        .collect();
    assert_eq!(widths.len(), 3, "an empty part is not drawn");
    assert!((widths[1] / widths[0] - 3.0).abs() < 0.01 && (widths[2] - widths[0]).abs() < 0.11);
    assert!(svg.contains("a, cleaning: ×3.00"));
}

#[test]
fn grouped_bars_stand_on_the_ground_line() {
    let chart = BarChart::new(
        "g",
        "Grouped",
        Axis::linear("WAF", Unit::Ratio),
        vec!["w08".into(), "w09".into(), "w17".into()],
        BarArrangement::Grouped,
    )
    .with("rmw", 0, vec![2.0, 1.5, f64::NAN])
    .with("flip", 1, vec![1.0, 1.2, 1.1])
    .mark(1.0, "no amplification");
    let svg = chart.svg(Style::Standalone);
    assert_well_formed(&svg);
    assert_eq!(svg.matches("class=\"bar\"").count(), 5);
}

#[test]
fn a_figure_of_a_paper_stays_small() {
    let points: Vec<(f64, f64)> = (0..100_000).map(|i| (i as f64, (i * 7919 % 1000) as f64)).collect();
    let chart = Chart::new("f", "f", Axis::linear("", Unit::Count), Axis::linear("", Unit::Count))
        .with(Series::new("a", Shape::Line, 0, points.clone()))
        .with(Series::new("b", Shape::Line, 1, points))
        .thin(1000);
    assert!(chart.series.iter().all(|series| series.points.len() <= 1000 && series.points.len() > 900));
    assert!(chart.svg(Style::Standalone).len() < 100_000);
}

/// An error bar of which the axis shows both ends has two caps; one that begins below the axis has only the upper cap.
#[test]
fn an_error_bar_that_the_axis_cuts_has_no_lower_cap() {
    for (axis, low_of_bar) in
        [(Axis::log10("y", Unit::Count), -1.0), (Axis::linear("y", Unit::Count).ranged(3.0, 40.0), 2.0)]
    {
        let series = Series::new("one", Shape::Line, 0, vec![(1.0, 10.0), (2.0, 20.0)]);
        let series = series.with_error_bars(vec![10.0 - low_of_bar, 5.0]);
        let svg = Chart::new("t", "A title", Axis::linear("x", Unit::Count), axis).with(series).svg(Style::Embedded);
        let bars = svg.split("stroke-width:1.2\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("bars");
        assert_eq!((bars.matches('V').count(), bars.matches('H').count()), (2, 3), "{bars}");
        assert!(!bars.contains("NaN") && !bars.contains("inf"), "{bars}");
    }
}

#[test]
fn error_bars_of_no_length_are_none_and_others_keep_all_points() {
    let points: Vec<_> = (0..100).map(|at| (at as f64, 1.0)).collect();
    let thinned = |half: f64| {
        let series = Series::new("one", Shape::Line, 0, points.clone()).with_error_bars(vec![half; 100]);
        Chart::new("t", "A title", Axis::linear("x", Unit::Count), Axis::linear("y", Unit::Count)).with(series).thin(10)
    };
    assert!(thinned(0.0).series[0].half_widths.is_empty() && thinned(0.0).series[0].points.len() <= 10);
    assert_eq!((thinned(0.5).series[0].points.len(), thinned(0.5).series[0].half_widths.len()), (100, 100));
}

/// Goal: the height of steps and bars has its error bar in its middle, that of other shapes at the point. Method: two
/// points at the ends of the frame.
#[test]
fn error_bars_of_steps_and_bars_stand_in_their_middle() {
    for (shape, share) in [(Shape::Line, 0.0), (Shape::Marks, 0.0), (Shape::Steps, 0.5), (Shape::Bars, 0.5)] {
        let series = Series::new("one", shape, 0, vec![(0.0, 10.0), (4.0, 20.0)]).with_error_bars(vec![1.0, 0.0]);
        let x = Axis::linear("", Unit::Count).ranged(0.0, 4.0);
        let svg = Chart::new("t", "", x, Axis::linear("", Unit::Count)).with(series).svg(Style::Embedded);
        let frame: Vec<f64> =
            between(&svg, "data-plot=\"", "\"").split(' ').map(|n| n.parse().expect("a number")).collect();
        let upright = between(&svg, "stroke-width:1.2\" d=\"", "V").rsplit('M').next().expect("a line");
        let at: f64 = upright.split(' ').next().and_then(|x| x.parse().ok()).expect("its x");
        assert!((at - frame[0] - share * frame[2]).abs() < 0.11, "{shape:?}: {at}, {frame:?}");
    }
}

/// Goal: means of times have no axis of negative times. Method: an error bar from -5 to 25,
/// without and with a value below 0.
#[test]
fn an_error_bar_below_zero_does_not_extend_the_axis_of_values_from_zero_on() {
    for (value, begins_below) in [(0.0, false), (-1.0, true)] {
        let series = Series::new("one", Shape::Line, 0, vec![(1.0, 10.0), (2.0, value)]);
        let chart = Chart::new("t", "", Axis::linear("", Unit::Count), Axis::linear("", Unit::Count));
        let svg = chart.with(series.with_error_bars(vec![15.0, 0.0])).svg(Style::Standalone);
        assert_eq!(svg.contains("−"), begins_below, "{svg}");
    }
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    text.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or_else(|| panic!("{from} in {text}"))
}

#[test]
fn grouped_bars_have_error_bars_with_caps_and_stand_on_zero() {
    let groups = vec!["w08".into(), "w09".into()];
    let mut chart = BarChart::new("g", "Grouped", Axis::linear("", Unit::Count), groups, BarArrangement::Grouped)
        .with("rmw", 0, vec![10.0, 20.0])
        .with("flip", 1, vec![5.0, f64::NAN]);
    let without = chart.svg(Style::Standalone);
    assert!(!without.contains("stroke-width:1.2\" d="));
    // The error bar of the first value reaches from -2 to 22: it has no lower cap, and the axis still begins at 0.
    chart.parts[0] = chart.parts[0].clone().with_error_bars(vec![12.0, 5.0]);
    chart.parts[1] = chart.parts[1].clone().with_error_bars(vec![0.0, 0.0]);
    let svg = chart.svg(Style::Standalone);
    assert_well_formed(&svg);
    let paths: Vec<&str> =
        svg.split("stroke-width:1.2\" d=\"").skip(1).map(|rest| rest.split('"').next().expect("a path")).collect();
    let marks = |path: &str| (path.matches('V').count(), path.matches('H').count());
    assert_eq!(paths.iter().map(|path| marks(path)).collect::<Vec<_>>(), [(1, 1), (1, 2)], "{paths:?}");
    assert!(svg.contains(">0</text>") && !svg.contains("−"), "the axis begins at 0");
    assert_eq!(svg.matches("class=\"bar\"").count(), without.matches("class=\"bar\"").count());
    assert!(chart.parts[1].half_widths.is_empty());
}

#[test]
fn words_follow_a_title_if_both_fit() {
    let titled = |title: &str| Chart::new("t", title, Axis::linear("", Unit::Count), Axis::linear("", Unit::Count));
    assert_eq!(titled("Reads").with_in_title(", mean").title, "Reads, mean");
    assert_eq!(titled("Reads").sized(60.0, 60.0).with_in_title(", mean").title, "Reads");
}

#[test]
fn rates_far_apart_have_a_logarithmic_axis_with_nothing_at_its_lower_end() {
    let axis = |means: [f64; 3]| Axis::of_rates("", Unit::Count, means.into_iter(), 900.0);
    assert_eq!(axis([0.0, 30.0, 299.0]), Axis::linear("", Unit::Count));
    assert_eq!(axis([0.0; 3]), Axis::linear("", Unit::Count));
    assert_eq!(axis([0.0, 30.0, 300.0]), Axis::log10("", Unit::Count).ranged(1.0, 1000.0));
    let series = Series::new("a", Shape::Steps, 0, vec![(0.0, 300.0), (1.0, 0.0), (2.0, 300.0)]);
    let chart = Chart::new("t", "", Axis::linear("", Unit::Count), axis([0.0, 30.0, 300.0])).with(series);
    let svg = chart.svg(Style::Embedded);
    // The frame of the chart, in the order left, top, width, height: the stall reaches its lower edge.
    let frame: Vec<f64> = svg
        .split("data-plot=\"")
        .nth(1)
        .expect("a frame")
        .split('"')
        .next()
        .expect("numbers")
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect();
    let path = svg.split("class=\"series").nth(1).expect("a curve");
    assert!(
        path.contains(&format!("V{}", frame[1] + frame[3])) || path.contains(&format!(" {}", frame[1] + frame[3])),
        "{path}"
    );
}
