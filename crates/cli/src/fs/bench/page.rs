//! `report.html` of `--out`: the parameters of a benchmark and its results, over time.
//!
//! Invariants:
//! 1. The page references no other resource; its style, policy and script are those of the program's other reports.
//! 2. Every number of its tables and charts is that of summary.json, which is in the page too, as `summary`. With
//!    several seeds, numbers of tables are means over the seeds. Charts other than `Over the seeds` are then of the
//!    first seed.
//! 3. The page of a run in virtual time contains no wall-clock times.

use std::fmt::Write as _;

use imbrex::chart::{Unit, escape, label};
use imbrex::report::figure::Figure;
use imbrex::report::{charts, document, intervals, json, result, shell, verdict};
use imbrex_fs::executor::Cause;
use imbrex_fs::load::bench::{Figures, Kind, Phase};
use serde_json::Value;

use super::charts::{NO_CLEANING, all, has_cleaning, in_words};
use super::table::rate;
use super::{BenchOutput, OnDevices, Used};

/// Returns the page for the document `summary`.
pub(super) fn html(summary: &Value, ran: &BenchOutput) -> String {
    let figures = all(ran);
    let mut body = masthead(summary, ran);
    // The chart of the pace, which the sentence names first, stands before all tables.
    let (first, others) = figures.iter().partition::<Vec<&Figure>, _>(|figure| figure.id == "rate");
    body += "<main>";
    body += &result(&first);
    body += &operations(ran);
    if let Some(on_devices) = &ran.on_devices {
        body += &devices(ran, on_devices);
    }
    body += &charts(&others);
    if ran.is_virtual() && !has_cleaning(ran) {
        let _ = write!(body, "<p class=\"muted\">{NO_CLEANING}</p>");
    }
    body += &made(summary, ran);
    body += &words();
    body += "</main>";
    let title = format!("{} – imbrex fs bench", text(summary, "benchmark"));
    document(&title, &body, &json(summary, &figures))
}

fn text<'a>(summary: &'a Value, key: &str) -> &'a str {
    summary[key].as_str().unwrap_or_default()
}

fn masthead(summary: &Value, ran: &BenchOutput) -> String {
    let sizes = [("files", "files"), ("operations", "rounds"), ("threads", "threads")];
    let count = |(key, name): (&str, &str)| {
        let count = summary[key].as_u64()?;
        Some(format!("<b>{}</b> {name}", label::count(count as f64)))
    };
    let mut facts: Vec<String> = sizes.into_iter().filter_map(count).collect();
    facts.extend(summary["file_bytes"].as_u64().map(|bytes| format!("<b>{}</b> a file", label::bytes(bytes as f64))));
    let clock = if ran.is_virtual() { "in virtual time" } else { "by the wall clock" };
    let elapsed = words_of(ran, "elapsed_ns", ran.elapsed_ns() as f64, Unit::Nanoseconds);
    facts.push(format!("<b>{elapsed}</b> {clock}"));
    format!(
        "<header><p class=\"kind\">imbrex fs bench</p><h1>{}</h1>{}<p class=\"facts\">{}</p><p class=\"facts\">{}</p>\
         <p class=\"facts\">{} · {} · version {}</p></header>",
        escape(text(summary, "benchmark")),
        sentence(ran).map_or(String::new(), |text| verdict(&text)),
        escape(text(summary, "about")),
        facts.join(" · "),
        system(summary, ran),
        seeds(summary, ran),
        escape(text(summary, "imbrex")),
    )
}

/// Returns a sentence on the phase that took longest: its pace, the kind of operation that took the most time in all, and the
/// longest operation. `None` if nothing was done.
fn sentence(ran: &BenchOutput) -> Option<String> {
    let phases = || ran.phases.iter().map(|(phase, ..)| phase).enumerate().filter(|(_, phase)| phase.done > 0);
    let (number, longest) = phases().max_by_key(|(_, phase)| phase.elapsed_ns)?;
    let spent = |figures: &Figures| u128::from(figures.latency.count()) * u128::from(figures.latency.mean_ns());
    let (kind, figures) = longest.measured.iter().max_by_key(|(_, figures)| spent(figures))?;
    let kinds = phases().flat_map(|(number, phase)| phase.measured.iter().map(move |kind| (number, phase, kind)));
    let (at, phase, (slowest, of_slowest)) = kinds.max_by_key(|(_, _, (_, figures))| figures.latency.max_ns())?;
    let figure =
        |number: usize, path: &str, value, unit| words_of(ran, &format!("phases.{number}.{path}"), value, unit);
    let time = |number: usize, kind: &Kind, name: &str, ns: u64| {
        figure(number, &format!("kinds.{}.latency_ns.{name}", kind.name()), ns as f64, Unit::Nanoseconds)
    };
    Some(format!(
        "In {}, {} operations are done a second, {}. The operation {} takes {} on average, and {} at the 99th percentile. The \
         longest operation is {} in {}: {}.",
        longest.name,
        figure(number, "done_per_second", rate(longest.done, longest.elapsed_ns), Unit::Count),
        figure(number, "bytes_per_second", rate(longest.bytes(), longest.elapsed_ns), Unit::BytesPerSecond),
        kind.name(),
        time(number, kind, "mean", figures.latency.mean_ns()),
        time(number, kind, "p99", figures.latency.quantile_ns(0.99)),
        slowest.name(),
        phase.name,
        time(at, slowest, "max", of_slowest.latency.max_ns()),
    ))
}

/// Returns the seed in words; with several, their number, the first and the last.
fn seeds(summary: &Value, ran: &BenchOutput) -> String {
    let seed = &summary["seed"];
    match ran.seeds_in_words() {
        Some(words) => format!("{words}; charts other than “Over the seeds” are of seed {seed}"),
        None => format!("seed {seed}"),
    }
}

/// Returns a description of the file system and its devices.
fn system(summary: &Value, ran: &BenchOutput) -> String {
    let Some(on_devices) = &ran.on_devices else {
        return escape(summary["places"][0].as_str().unwrap_or("a directory")).to_string();
    };
    let metadata_alone = |used: &&Used| used.has_metadata && on_devices.devices.len() > 1;
    let others = on_devices.devices.iter().filter(metadata_alone).count();
    let drives = on_devices.devices.len() - others;
    let mut words = vec![format!("store {}", escape(on_devices.found["store"].as_str().unwrap_or_default()))];
    words.push(format!("{drives} drive{}", if drives == 1 { "" } else { "s" }));
    words.extend(on_devices.parity.map(|parity| format!("m = {parity}")));
    words.push(match others {
        0 => "metadata on the drive".to_string(),
        1 => "metadata on a device of its own".to_string(),
        more => format!("metadata on {more} devices"),
    });
    let hot_blocks = on_devices.found["hot_zone"]["blocks"].as_u64().filter(|blocks| *blocks > 0);
    words.extend(hot_blocks.map(|blocks| format!("hot zone of {}", label::bytes(blocks as f64 * 4096.0))));
    words.join(" · ")
}

fn operations(ran: &BenchOutput) -> String {
    let mut html = String::from(
        "<section aria-labelledby=\"operations\"><h2 id=\"operations\">Operations</h2><div class=\"scroll\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"operations\"><table class=\"comparison\"><thead><tr>",
    );
    for title in ["Operation", "Count", "A second", "Mean", "Median", "99 %", "99.9 %", "Longest"] {
        let _ = write!(html, "<th scope=\"col\">{title}</th>");
    }
    html += "</tr></thead>";
    for (number, (phase, ..)) in ran.phases.iter().enumerate() {
        html += &phase_rows(ran, number, phase);
    }
    html += "</table></div>";
    if let Some(words) = ran.seeds_in_words() {
        let _ = write!(html, "<p>± is half of the 95 % interval of the mean over {words}.</p>");
    }
    html + "</section>"
}

fn phase_rows(ran: &BenchOutput, number: usize, phase: &Phase) -> String {
    let of_phase = |name: &str, value, unit| words_of(ran, &format!("phases.{number}.{name}"), value, unit);
    let mut html = format!(
        "<tbody><tr class=\"group\"><th scope=\"rowgroup\">{}</th><td colspan=\"7\">{} done in {}: {} a second, {}</td></tr>",
        escape(phase.name),
        of_phase("done", phase.done as f64, Unit::Count),
        of_phase("elapsed_ns", phase.elapsed_ns as f64, Unit::Nanoseconds),
        of_phase("done_per_second", rate(phase.done, phase.elapsed_ns), Unit::Count),
        of_phase("bytes_per_second", rate(phase.bytes(), phase.elapsed_ns), Unit::BytesPerSecond),
    );
    for (kind, figures) in &phase.measured {
        html += &kind_row(ran, &format!("phases.{number}.kinds.{}", kind.name()), phase, *kind, figures);
    }
    html + "</tbody>"
}

/// Returns the row of a kind of operation. `path` is the path of its figures.
fn kind_row(ran: &BenchOutput, path: &str, phase: &Phase, kind: Kind, figures: &Figures) -> String {
    let latency = &figures.latency;
    let mut html = format!("<tr><th scope=\"row\">{}</th>", kind.name());
    let count = latency.count();
    html += &cell(ran, &format!("{path}.count"), count, Unit::Count);
    let per_second = format!("{path}.per_second");
    html += &cell_over_seeds(ran, &per_second, Unit::Count)
        .unwrap_or_else(|| format!("<td>{}</td>", label::count(rate(count, phase.elapsed_ns))));
    for (name, ns) in [
        ("mean", latency.mean_ns()),
        ("p50", latency.quantile_ns(0.5)),
        ("p99", latency.quantile_ns(0.99)),
        ("p999", latency.quantile_ns(0.999)),
        ("max", latency.max_ns()),
    ] {
        html += &cell(ran, &format!("{path}.latency_ns.{name}"), ns, Unit::Nanoseconds);
    }
    html + "</tr>"
}

/// Returns a figure in words: `value` for one seed, with several the mean and half of the interval.
fn words_of(ran: &BenchOutput, path: &str, value: f64, unit: Unit) -> String {
    match &ran.over_seeds {
        None => unit.label(value),
        Some(over) => over
            .figures
            .get(path)
            .map_or_else(|| "–".into(), |over| unit.label(over.mean) + &intervals::half(unit, over)),
    }
}

/// Returns the cell of a figure of the summary: `value` for one seed, with several the mean and half of the interval.
fn cell(ran: &BenchOutput, path: &str, value: u64, unit: Unit) -> String {
    let of_one = || {
        let (at, shown) = (path.replace('.', "/"), unit.label(value as f64));
        format!("<td data-at=\"/{at}\" data-value=\"{value}\">{shown}</td>")
    };
    cell_over_seeds(ran, path, unit).unwrap_or_else(of_one)
}

/// Returns the cell of a figure with its mean and half of its interval; `None` for one seed. The cell has a dash if a
/// run with another seed does not have the figure.
fn cell_over_seeds(ran: &BenchOutput, path: &str, unit: Unit) -> Option<String> {
    let Some(over) = ran.over_seeds.as_ref()?.figures.get(path) else {
        return Some("<td class=\"muted\">–</td>".to_string());
    };
    let half = intervals::half(unit, over);
    let half = if half.is_empty() { half } else { format!("<small>{}</small>", half.trim_start()) };
    let (mean, shown) = (Value::from(over.mean), unit.label(over.mean));
    Some(format!("<td data-at=\"/over_seeds/{path}/mean\" data-value=\"{mean}\">{shown}{half}</td>"))
}

fn devices(ran: &BenchOutput, on_devices: &OnDevices) -> String {
    let elapsed_ns = ran.elapsed_ns();
    let mut html = String::from(
        "<section aria-labelledby=\"devices\"><h2 id=\"devices\">Devices</h2><div class=\"scroll\" tabindex=\"0\" \
         role=\"group\" aria-labelledby=\"devices\"><table class=\"comparison\"><thead><tr><th scope=\"col\">Device</th>\
         <th scope=\"col\">Size</th><th scope=\"col\">Busy</th>",
    );
    let has_any = |cause: &Cause| on_devices.devices.iter().any(|used| used.spent.of(*cause).busy_ns > 0);
    let causes: Vec<Cause> = Cause::ALL.into_iter().filter(has_any).collect();
    for cause in &causes {
        let _ = write!(html, "<th scope=\"col\">for {}</th>", in_words(*cause));
    }
    html += "</tr></thead><tbody>";
    for (number, used) in on_devices.devices.iter().enumerate() {
        let name = used.name.rsplit('/').next().unwrap_or_default();
        let busy_ns = used.spent.all().busy_ns;
        let metadata = if used.has_metadata { " · metadata" } else { "" };
        let busy = cell(ran, &format!("devices.{number}.busy_ns"), busy_ns, Unit::Nanoseconds);
        let share = busy_ns as f64 / elapsed_ns.max(1) as f64;
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}<small class=\"muted\"> {}{metadata}</small></th><td>{}</td>{}<small>{}</small></td>",
            escape(name),
            used.geometry.kind.name(),
            label::bytes(used.geometry.blocks as f64 * 4096.0),
            busy.trim_end_matches("</td>"),
            words_of(ran, &format!("devices.{number}.busy_share"), share, Unit::Share),
        );
        for cause in &causes {
            let path = format!("devices.{number}.by_cause.{}.busy_ns", cause.name());
            html += &cell(ran, &path, used.spent.of(*cause).busy_ns, Unit::Nanoseconds);
        }
        html += "</tr>";
    }
    html + "</tbody></table></div>" + &without_time(on_devices) + "</section>"
}

/// Returns a note on the devices that were used and have no time of their own, with the reason; empty if there are
/// none.
fn without_time(on_devices: &OnDevices) -> String {
    let is_untimed = |used: &&Used| {
        let spent = used.spent.all();
        spent.busy_ns == 0 && spent.blocks_read + spent.blocks_written > 0
    };
    let names: Vec<String> = (on_devices.devices.iter().filter(is_untimed))
        .map(|used| escape(used.name.rsplit('/').next().unwrap_or_default()))
        .collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "<p>{}: a plain file, without a drive whose time could be told; it takes none. The image of a drive, as \
         <code>imbrex drive create FILE --drive flash-2010</code> makes it, has one.</p>",
        names.join(", ")
    )
}

/// Returns the section with everything needed to repeat the run.
fn made(summary: &Value, ran: &BenchOutput) -> String {
    let command: Vec<String> = summary["command"].as_array().into_iter().flatten().map(word).collect();
    let mut facts = vec![
        ("Command", format!("<code>{}</code>", escape(&shell(&command)))),
        ("Program", format!("imbrex {}, results {}", escape(text(summary, "imbrex")), escape(text(summary, "schema")))),
        ("Seed", seeds(summary, ran).trim_start_matches("seed ").to_string()),
        ("Load", format!("{}: {}", escape(text(summary, "benchmark")), escape(text(summary, "source")))),
    ];
    if let Some(on_devices) = &ran.on_devices {
        let options: Vec<String> = on_devices.found["options"].as_array().into_iter().flatten().map(word).collect();
        let cache = summary["page_cache_bytes"].as_u64().unwrap_or_default();
        facts.push(("Page cache", label::bytes(cache as f64)));
        facts.push(("File system", format!("{} {}", system(summary, ran), escape(&options.join(" ")))));
    }
    let mut html =
        String::from("<section aria-labelledby=\"made\"><h2 id=\"made\">How it was made</h2><dl class=\"made\">");
    for (name, value) in facts {
        let _ = write!(html, "<dt>{name}</dt><dd>{value}</dd>");
    }
    html += "</dl>";
    if ran.over_seeds.is_some() {
        html += "<p>Each run started from the state found, and the file system stayed as it was.</p>";
    }
    if ran.is_virtual() {
        html += "<p>The same command on equal devices gives the same page, byte for byte.</p>";
    }
    html + "</section>"
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// Glossary of the page: terms and their meanings.
const WORDS: [(&str, &str); 7] = [
    ("Latency", "From asking the file system for an operation to its end, as an application sees it."),
    (
        "Busy",
        "The time in which a device had something to do. Each answer is charged with the time since the one before, a \
         flush to what was written since the last.",
    ),
    ("For files", "Data of files, read and written, with the records among them and what fills up rows."),
    ("For metadata", "The log, checkpoints and checksums."),
    ("For cleaning", "Emptying zones: copies of what is live, with their parity and records (Jin 2014 §II.D.2)."),
    ("Slowed down", "Writers are delayed before zones run short, down to the pace of the cleaner."),
    (
        "Waited",
        "Writers stand still until there is a place to write to: others have written theirs, or a zone is empty.",
    ),
];

fn words() -> String {
    let mut html = String::from("<section aria-labelledby=\"words\"><h2 id=\"words\">Words</h2><dl class=\"words\">");
    for (word, meaning) in WORDS {
        let _ = write!(html, "<div><dt>{word}</dt><dd>{meaning}</dd></div>");
    }
    html + "</dl></section>"
}
