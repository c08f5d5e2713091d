//! `--report`: the verdict as one page, each property with the measurements behind it.
//!
//! Invariants:
//! 1. The page references no other resource; its style, policy and script are those of the program's other reports.
//! 2. Every series of the verdict is drawn once; for an emulated drive the path of the head is drawn beside the series
//!    (Aghayev 2015 figs. 5, 9, 11, 16, 19).
//! 3. The page contains no wall-clock times: in virtual time two runs give the same bytes.

use std::fmt::Write as _;

use imbrex_probe::{Head, Property, Series as Measured, Verdict};

use super::table::{confidence, headline, name, parts, shown};
use imbrex::chart::{Axis, Chart, Series, Shape, Unit, escape, label};
use imbrex::report::figure::chart_html;
use imbrex::report::{charts_json, document, shell};

/// Maximum number of points of a chart; its pixels show no more.
const POINTS: usize = 1200;
const SIZE: (f64, f64) = (580.0, 300.0);
/// Largest number of points that are drawn as marks; more points are drawn as dots.
const MARKS_MAX: usize = 48;
/// Largest number of reversals for which the head's path is drawn as a line; a path with more is drawn as dots.
const TURNS_MAX: usize = 120;
/// Style of the head's path: a colour of its own, and a full line.
const HEAD_LOOK: usize = 10;
/// Style of the measurements of a conventional drive.
const CONVENTIONAL_LOOK: usize = 6;
/// Ratio of the largest value to the median from which on the axis is logarithmic.
const LOGARITHM_FROM: f64 = 200.0;

/// Returns the page. `conventional` has measurements of a conventional drive, which are drawn beside those of the same name.
/// `stated` sets a statement on the model beside the verdict. `command` is the command line.
pub(super) fn html(verdict: &Verdict, conventional: &Verdict, stated: Option<&str>, command: &[String]) -> String {
    let mut charts = Vec::new();
    let mut body = masthead(verdict, stated);
    body += "<main>";
    body += &properties(verdict);
    body += &left_out(verdict);
    body += &evidence(verdict, conventional, &mut charts);
    body += &made(verdict, command);
    body += &words();
    body += "</main>";
    let charts: Vec<&Chart> = charts.iter().collect();
    document(&format!("{} – imbrex probe", verdict.target), &body, &charts_json(&charts))
}

/// Returns the charts of the measurements, without those of the head.
pub(super) fn charts(verdict: &Verdict, conventional: &Verdict) -> Vec<Chart> {
    let measured = verdict.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty());
    measured
        .map(|(index, series)| Chart { id: series.name.to_string(), ..chart(index, series, conventional) })
        .collect()
}

fn masthead(verdict: &Verdict, stated: Option<&str>) -> String {
    let clock = if verdict.is_virtual { "of simulated time" } else { "of measuring" };
    let mut facts = vec![
        format!("<b>{}</b>", imbrex::human::bytes(verdict.size_bytes)),
        format!("<b>{}</b> {clock}", label::duration(verdict.target_ns as f64)),
    ];
    facts.extend(verdict.facts.iter().map(|fact| format!("{}: <b>{}</b>", escape(fact.name), escape(&fact.value))));
    let mut html = format!(
        "<header><p class=\"kind\">imbrex probe</p><h1>{}</h1><p class=\"verdict\">{}</p><p class=\"facts\">{}</p>",
        escape(&verdict.target),
        escape(&headline(verdict)),
        facts.join(" · ")
    );
    if let Some(stated) = stated {
        let _ = write!(html, "<p class=\"facts\">{}</p>", escape(stated));
    }
    for condition in &verdict.conditions {
        let _ = write!(html, "<p class=\"facts\">No answer has high confidence: {}</p>", escape(condition));
    }
    if !verdict.advice.is_empty() {
        html += "<ul class=\"advice\">";
        for advice in &verdict.advice {
            let _ = write!(html, "<li>{}</li>", escape(advice));
        }
        html += "</ul>";
    }
    html + "</header>"
}

fn properties(verdict: &Verdict) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"verdict\"><details class=\"more\"><summary><h2 id=\"verdict\">All properties</h2></summary>\
         <div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-labelledby=\"verdict\"><table class=\"properties\"><thead><tr>",
    );
    for title in ["Property", "Value", "Confidence", "Because", "Evidence"] {
        let _ = write!(html, "<th scope=\"col\">{title}</th>");
    }
    html += "</tr></thead>";
    let (writing, mechanics) = parts(verdict);
    for (title, properties) in [("How it takes writes", writing), ("The disk itself", mechanics)] {
        if !properties.is_empty() {
            html += &group(verdict, title, &properties);
        }
    }
    html + "</table></div></details></section>"
}

fn group(verdict: &Verdict, title: &str, properties: &[&Property]) -> String {
    let mut html =
        format!("<tbody><tr class=\"group\"><th scope=\"rowgroup\">{title}</th><td colspan=\"4\"></td></tr>");
    for property in properties {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&name(property)),
            escape(&shown(property)),
            confidence(property),
            escape(&property.because),
            links(verdict, property)
        );
    }
    html + "</tbody>"
}

/// Returns links to the series that a property is based on.
fn links(verdict: &Verdict, property: &Property) -> String {
    let drawn = property.evidence.iter().filter_map(|name| index_of(verdict, name));
    let links: Vec<_> = drawn.map(|index| format!("<a href=\"#series-{index}\">{}</a>", index + 1)).collect();
    links.join(", ")
}

fn index_of(verdict: &Verdict, name: &str) -> Option<usize> {
    verdict.series.iter().position(|series| series.name == name)
}

fn left_out(verdict: &Verdict) -> String {
    if verdict.left_out.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section aria-labelledby=\"left\"><h2 id=\"left\">Left out</h2><ul class=\"left\">");
    for line in &verdict.left_out {
        let (test, reason) = line.split_once(": ").unwrap_or((line, ""));
        let _ = write!(html, "<li><b>{}</b> {}</li>", escape(test), escape(reason));
    }
    html += "</ul>";
    if let Some(open) = super::table::left_open(verdict) {
        let _ = write!(html, "<p>{}</p>", escape(open));
    }
    html + "</section>"
}

/// Returns the section with the series, in the order of their measurement, each with the properties based on it.
fn evidence(verdict: &Verdict, conventional: &Verdict, charts: &mut Vec<Chart>) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"evidence\"><details class=\"more\" open><summary><h2 id=\"evidence\">Evidence</h2></summary>",
    );
    let _ = write!(html, "<div class=\"figures dense\">");
    for (index, measured) in verdict.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty()) {
        let chart = chart(index, measured, conventional);
        let head = verdict.heads.iter().find(|head| head.series == measured.name && !head.points.is_empty());
        let head = head.map(|head| head_chart(index, head));
        let wide = if head.is_some() { " wide" } else { "" };
        let _ = write!(
            html,
            "<figure class=\"chart{wide}\" id=\"series-{index}\"><h3>{}. {}</h3><div class=\"pair\">",
            index + 1,
            escape(measured.name)
        );
        for (what, chart) in std::iter::once(("measured", chart)).chain(head.map(|chart| ("the head meanwhile", chart)))
        {
            let named = if wide.is_empty() { String::new() } else { format!("<p class=\"name\">{what}</p>") };
            let _ = write!(html, "<div class=\"cell\">{named}{}</div>", chart_html(&chart));
            charts.push(chart);
        }
        let _ = write!(html, "</div><figcaption>{}</figcaption></figure>", caption(verdict, measured));
    }
    html + "</div></details></section>"
}

/// Returns the caption of a series: the properties based on it, and a note if its points are thinned.
fn caption(verdict: &Verdict, measured: &Measured) -> String {
    let rests: Vec<_> = verdict
        .properties
        .iter()
        .filter(|property| property.evidence.contains(&measured.name))
        .map(|property| format!("<b>{}</b>: {}", escape(&name(property)), escape(&shown(property))))
        .collect();
    let shown = if measured.points.len() > POINTS {
        format!(" {} points, thinned so that none that stands out is lost.", label::count(measured.points.len() as f64))
    } else {
        String::new()
    };
    let rests =
        if rests.is_empty() { "No property rests on this series alone.".to_string() } else { rests.join(" · ") };
    format!("{}<br>{rests}{shown}", meaning(measured))
}

/// Returns a line that says how to read the points of a series, and what they look like for a conventional drive.
fn meaning(measured: &Measured) -> &'static str {
    match measured.y {
        "latency_ms" => {
            "A flat line: each operation took equally long. A cloud: each waited for its place to come round, as on a \
             conventional drive. Levels and single high points: the drive did other work, such as cleaning."
        }
        "MB_per_s" => {
            "The rate falls in steps from the outer to the inner diameter, on a conventional drive too. Other steps show that \
             neighbouring addresses lie apart."
        }
        "share_moved" | "moved" | "head_moved" => {
            "Near 0: blocks are read where their addresses say, as on a conventional drive. Near 1: they are read from another \
             place, such as a cache."
        }
        "way_ms" => {
            "A smooth rise with the distance: seeks, as on a conventional drive. Jumps: the places of neighbouring addresses lie \
             apart."
        }
        "phase_ms" => "A saw-tooth: each step is a track further round. On a conventional drive it keeps one period.",
        "interval_ms" => "A flat line at one revolution: each block was read again as soon as it came round.",
        "packet_ms" => {
            "Steps: a packet of a journal grew by a unit, such as half a track. On a conventional drive the time follows the size \
             without steps."
        }
        "step" => "Peaks at equal distances: edges of bands. A conventional drive has none.",
        _ => "A flat line: nothing depends on the quantity across.",
    }
}

fn chart(index: usize, measured: &Measured, conventional: &Verdict) -> Chart {
    let (x, y) = (Quantity::of(measured.x), Quantity::of(measured.y));
    let points = |measured: &Measured| -> Vec<(f64, f64)> {
        measured.points.iter().map(|point| (point.0 * x.factor, point.1 * y.factor)).collect()
    };
    let shape = |count: usize| match (y.unit, count) {
        (Unit::BytesPerSecond, _) => Shape::Line,
        (_, count) if count <= MARKS_MAX => Shape::Marks,
        _ => Shape::Dots,
    };
    let like = |other: &&Measured| (other.name, other.x, other.y) == (measured.name, measured.x, measured.y);
    let beside = conventional.series.iter().find(like).map(points).unwrap_or_default();
    let points = points(measured);
    let axis = if spans_far(&points) { Axis::log10(y.label, y.unit) } else { Axis::linear(y.label, y.unit) };
    let own = Series::new(measured.name, shape(points.len()), 0, points);
    let chart = Chart::new(format!("chart-{index}"), measured.name, Axis::linear(x.label, x.unit), axis)
        .described(format!("{}: {} points, {} over {}.", measured.name, measured.points.len(), measured.y, measured.x))
        .sized(SIZE.0, SIZE.1)
        .with(own);
    let chart = match beside.len() {
        0 => chart,
        count => chart.with(Series::new(
            format!("{}, conventional", conventional.target),
            shape(count),
            CONVENTIONAL_LOOK,
            beside,
        )),
    };
    chart.thin(POINTS)
}

/// Returns whether a logarithmic axis suits the values: all are positive, and the largest exceeds [`LOGARITHM_FROM`]
/// times the median.
fn spans_far(points: &[(f64, f64)]) -> bool {
    let mut values: Vec<f64> = points.iter().map(|point| point.1).collect();
    values.sort_by(f64::total_cmp);
    let (Some(&least), Some(&most)) = (values.first(), values.last()) else { return false };
    least > 0.0 && most > LOGARITHM_FROM * values[values.len() / 2]
}

fn head_chart(index: usize, head: &Head) -> Chart {
    let points: Vec<(f64, f64)> = head.points.iter().map(|&(seconds, track)| (seconds * 1e9, track)).collect();
    let turns = points.windows(3).filter(|at| (at[1].1 - at[0].1) * (at[2].1 - at[1].1) < 0.0).count();
    // The line of a head that goes back and forth all the time would fill the chart.
    let shape = if turns > TURNS_MAX { Shape::Dots } else { Shape::Steps };
    Chart::new(
        format!("head-{index}"),
        format!("The head meanwhile: {}", head.series),
        Axis::linear("time", Unit::Nanoseconds),
        Axis::linear("track, from the outer diameter", Unit::Count).ranged(0.0, f64::from(head.tracks.max(1))),
    )
    .described("Which track the head is over, from the outermost (0), while the series beside was measured.")
    .sized(SIZE.0, SIZE.1)
    .with(Series::new("head", shape, HEAD_LOOK, points))
    .thin(POINTS)
}

/// Label, unit and scale of a column of a series.
struct Quantity {
    label: String,
    unit: Unit,
    /// Factor from the column's unit to the chart's.
    factor: f64,
}

impl Quantity {
    /// Returns the quantity of a column, whose name ends with its unit.
    fn of(column: &str) -> Quantity {
        let units = [
            ("MB_per_s", Unit::BytesPerSecond, 1e6),
            ("_ms", Unit::Nanoseconds, 1e6),
            ("_s", Unit::Nanoseconds, 1e9),
            ("_bytes", Unit::Bytes, 1.0),
            ("MiB", Unit::Bytes, 1024.0 * 1024.0),
        ];
        let found = units.into_iter().find_map(|(end, unit, factor)| Some((column.strip_suffix(end)?, unit, factor)));
        let (label, unit, factor) = match found {
            Some((label, unit, factor)) => (label, unit, factor),
            None if column.starts_with("share") => (column, Unit::Share, 1.0),
            None => (column, Unit::Count, 1.0),
        };
        let label = match label {
            "" if unit == Unit::BytesPerSecond => "rate".to_string(),
            "" => "offset".to_string(),
            label => label.replace('_', " "),
        };
        Quantity { label, unit, factor }
    }
}

fn made(verdict: &Verdict, command: &[String]) -> String {
    let facts = [
        ("Command", format!("<code>{}</code>", escape(&shell(command)))),
        ("Program", format!("imbrex {}, verdict {}", env!("CARGO_PKG_VERSION"), escape(verdict.schema))),
        ("Drive", escape(&verdict.target)),
    ];
    let mut html =
        String::from("<section aria-labelledby=\"made\"><h2 id=\"made\">How it was made</h2><dl class=\"made\">");
    for (name, value) in facts {
        let _ = write!(html, "<dt>{name}</dt><dd>{value}</dd>");
    }
    html += "</dl>";
    if verdict.is_virtual {
        html +=
            "<p>The drive is emulated, its clock simulated: the same command gives the same page, byte for byte.</p>";
    }
    html + "</section>"
}

/// Glossary of the page: terms and their meanings.
const WORDS: [(&str, &str); 10] = [
    (
        "Shingled (SMR)",
        "Tracks overlap like shingles: writing one destroys those after it, so the drive gathers writes in a \
         cache and rewrites whole bands later.",
    ),
    ("Conventional (CMR)", "Tracks lie side by side; each can be written by itself."),
    (
        "Persistent cache",
        "Where a shingled drive puts writes first: a part of its platters, or flash. It keeps them through a \
         power cut.",
    ),
    (
        "Cleaning",
        "Bringing writes from the cache to their place. Aggressive: whenever the drive is idle; late: after \
         hours; lazy: when the cache is full.",
    ),
    ("Band", "Tracks that are rewritten together."),
    (
        "Map",
        "Where the drive remembers which blocks are in the cache. When it is full the drive has to clean, \
         however much room the cache has.",
    ),
    ("Static, dynamic mapping", "Whether a band is always rewritten in its own place, or wherever there is room."),
    ("od, md, id", "The outer, middle and inner diameter of the platters."),
    ("Confidence", "High: nothing else known fits. Medium: it fits, and so might something else. Low: a guess."),
    ("Cannot tell", "The tests that ran do not say; the probe does not guess."),
];

fn words() -> String {
    let mut html = String::from("<section aria-labelledby=\"words\"><h2 id=\"words\">Words</h2><dl class=\"words\">");
    for (word, meaning) in WORDS {
        let _ = write!(html, "<div><dt>{word}</dt><dd>{meaning}</dd></div>");
    }
    html + "</dl><p class=\"sources\">The tests are those of A. Aghayev, M. Shafaei, P. Desnoyers: Skylight – A Window on \
            Shingled Disk Operation. ACM Transactions on Storage 11(4), 2015, §4.</p></section>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use imbrex_probe::{Confidence, Fact, Value};
    use imbrex_testkit::browser;

    /// Returns a verdict with a series of each kind, and texts that contain markup.
    fn verdict() -> Verdict {
        let points = |count: usize| (0..count).map(|index| (index as f64, 25.0 + (index % 7) as f64)).collect();
        let mut verdict = Verdict {
            schema: "imbrex.probe/1",
            target: "/dev/<script>alert(1)</script>".into(),
            size_bytes: 5_000_000_000_000,
            facts: vec![Fact { name: "model", value: "A&B \"C\"".into() }],
            advice: vec!["Leave it <alone>.".into()],
            left_out: vec!["zones: the budget was spent".into()],
            target_ns: 90_000_000_000,
            ..Verdict::default()
        };
        for (name, x, y, count) in [
            ("random writes", "operation", "latency_ms", 5000),
            ("rates", "offset_bytes", "MB_per_s", 200),
            ("moved", "pause_s", "share_moved", 12),
        ] {
            verdict.series.push(Measured { name, x, y, points: points(count) });
        }
        let path = (0..50).map(|index| (f64::from(index), f64::from(index % 9) * 100.0)).collect();
        verdict.heads.push(Head { series: "random writes", tracks: 1000, points: path });
        let because = "100 % of <writes> take 25 ms".to_string();
        verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, because, &["random writes"]);
        verdict.conclude("zones", Value::CannotTell, "", Confidence::Low, "not run".into(), &["rates", "missing"]);
        verdict
    }

    fn page() -> String {
        html(&verdict(), &Verdict::default(), None, &["imbrex".into(), "probe".into(), "/dev/<b>".into()])
    }

    #[test]
    fn the_page_names_nothing_outside_itself_and_takes_no_markup() {
        let page = page();
        let without_names = page.replace("http://www.w3.org/2000/svg", "");
        for word in ["http://", "https://", "src=", "url(http", "@import", "<link", "<img", "<iframe", "fetch("] {
            assert!(!without_names.contains(word), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
        assert!(!page.contains("<script>alert") && !page.contains("<alone>") && !page.contains("<writes>"));
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn every_series_is_drawn_once_and_the_head_beside_its_own() {
        let page = page();
        for index in 0..3 {
            assert_eq!(page.matches(&format!("id=\"chart-{index}\"")).count(), 1);
            assert!(page.contains(&format!("id=\"series-{index}\"")));
        }
        assert_eq!(page.matches("-narrow\" ").count(), 4, "three series and one path of the head");
        assert_eq!(page.matches("<svg ").count(), 2 * 4, "each for broad and for narrow screens");
        assert_eq!(page.matches(" id=\"head-0\" ").count(), 1);
        assert!(page.contains("This drive is shingled (SMR)."));
        assert!(page.contains("<a href=\"#series-1\">2</a></td>"), "a series that is not there has no link");
    }

    /// Returns measurements of another drive: the first series of [`verdict`], and one that it does not have.
    fn conventional() -> Verdict {
        let mut other = Verdict { target: "sim:plain".into(), ..Verdict::default() };
        let points = vec![(0.0, 8.0), (1.0, 9.0)];
        other.series.push(Measured { points: points.clone(), ..verdict().series[0].clone() });
        other.series.push(Measured { name: "of the other alone", points, ..verdict().series[0].clone() });
        other
    }

    #[test]
    fn a_conventional_drive_is_drawn_beside_the_series_of_the_same_name() {
        let page = html(&verdict(), &conventional(), Some("a <statement>"), &[]);
        assert!(page.contains("a &lt;statement&gt;</p>"));
        assert_eq!(page.matches("sim:plain, conventional</button>").count(), 1, "in the legend of the first chart");
        assert!(!page.contains("of the other alone"));
        assert!(!self::page().contains(", conventional</button>"));
    }

    #[test]
    fn a_condition_is_named_and_the_headline_says_how_sure_it_is() {
        let conditions = vec!["the clock advances in steps of 1.00 ms".to_string()];
        let mut verdict = Verdict { conditions, ..Verdict::default() };
        verdict.conclude("type", Value::Word("shingled"), "", Confidence::High, "it moved".into(), &[]);
        let page = html(&verdict, &Verdict::default(), None, &[]);
        assert!(page.contains("This drive is probably shingled (SMR)."));
        assert!(page.contains("No answer has high confidence: the clock advances in steps of 1.00 ms"));
        let mut guess = Verdict::default();
        guess.conclude("type", Value::Word("conventional"), "", Confidence::Low, "it seems so".into(), &[]);
        assert_eq!(headline(&guess), "This drive may be conventional (CMR): nothing shows that its tracks overlap.");
    }

    #[test]
    fn columns_are_read_with_their_units() {
        for (column, label, unit, factor) in [
            ("latency_ms", "latency", Unit::Nanoseconds, 1e6),
            ("pause_s", "pause", Unit::Nanoseconds, 1e9),
            ("MB_per_s", "rate", Unit::BytesPerSecond, 1e6),
            ("write_bytes", "write", Unit::Bytes, 1.0),
            ("MiB", "offset", Unit::Bytes, 1_048_576.0),
            ("share_moved", "share moved", Unit::Share, 1.0),
            ("operation", "operation", Unit::Count, 1.0),
        ] {
            let found = Quantity::of(column);
            assert_eq!((found.label.as_str(), found.unit, found.factor), (label, unit, factor), "{column}");
        }
    }

    #[test]
    fn the_page_works_in_a_browser_in_light_and_dark() {
        let Some(browser) = browser::chromium() else { return };
        for scheme in ["--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"] {
            let visit = browser::visit(browser, &page(), &[scheme]);
            assert_eq!(visit.console, Vec::<String>::new(), "the console is silent");
            assert_eq!(visit.fetched, Vec::<String>::new(), "nothing is fetched");
            browser::assert_charts_hold_the_data(&visit.document, 4);
        }
    }
}
