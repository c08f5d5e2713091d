//! The explanations as text for a terminal.

use std::collections::BTreeMap;

use super::document::{
    CauseTime, DeviceAmount, ExplainDocument, ExplainedDrive, ExplainedPart, ExplainedRequest, FilledBy, GroupShares,
    Involved, PartOf, Place,
};
use crate::human;

/// Largest number of areas that a line names.
const NAMED_MAX: usize = 4;

/// Largest number of pieces of the layer's own work that are listed below a line.
const PIECES_MAX: usize = 3;

/// Returns the text of all drives.
pub(super) fn of(document: &ExplainDocument) -> String {
    let texts: Vec<String> = document.drives.iter().map(|drive| drive_text(document, drive)).collect();
    texts.join("\n")
}

fn drive_text(document: &ExplainDocument, drive: &ExplainedDrive) -> String {
    let from = if drive.latency_from == "arrival" { "arrival" } else { "entry into the queue" };
    let mut text = format!("{} on {}: latencies from {from} to answer\n", document.workload, drive.drive);
    if drive.requests.is_empty() {
        text += "\nno request was chosen\n";
    }
    let mut shown: Vec<&ExplainedRequest> = Vec::new();
    let mut was_short = false;
    for request in &drive.requests {
        let like = shown.iter().find(|other| has_same_causes(request, other));
        text += if was_short && like.is_some() { "" } else { "\n" };
        text += &match like {
            Some(other) => same_text(drive, request, other),
            None => request_text(drive, request),
        };
        was_short = like.is_some();
        if !was_short {
            shown.push(request);
        }
    }
    text + "\n" + &summary_text(drive)
}

/// Returns the sums of all requests of a drive.
pub(super) fn summary_text(drive: &ExplainedDrive) -> String {
    let summary = &drive.summary;
    format!("{}\n{}", shares(&summary.shares), involved(&summary.waiting, &summary.causing))
}

/// Returns whether two requests waited for the same pieces of the layer's work, and for nothing else that differs by more
/// than a tenth.
fn has_same_causes(one: &ExplainedRequest, other: &ExplainedRequest) -> bool {
    let events = |request: &ExplainedRequest| -> Vec<Option<u64>> {
        let mut events: Vec<_> =
            request.parts.iter().filter(|part| is_own_work(part)).map(|part| part.of.event).collect();
        events.sort_unstable();
        events
    };
    let sum = |request: &ExplainedRequest, cause: &str| -> u64 {
        request.parts.iter().filter(|part| part.cause == cause).map(|part| part.duration_ns).sum()
    };
    let tenth = one.latency_ns.max(other.latency_ns) / 10;
    let causes = one.parts.iter().chain(&other.parts).map(|part| part.cause.as_str());
    one.replay.is_none()
        && events(one) == events(other)
        && causes.into_iter().all(|cause| sum(one, cause).abs_diff(sum(other, cause)) <= tenth)
}

/// Returns the line of a request that has the same causes as one above it.
fn same_text(drive: &ExplainedDrive, request: &ExplainedRequest, other: &ExplainedRequest) -> String {
    format!(
        "{}: {}, as request {}\n",
        head(drive, request),
        human::duration_ns(request.latency_ns),
        human::count(other.number)
    )
}

fn head(drive: &ExplainedDrive, request: &ExplainedRequest) -> String {
    let mut text = format!("request {}  {}", human::count(request.number), request.operation);
    if request.operation != "flush" {
        let bytes = request.sectors * u64::from(drive.sector_bytes);
        text += &format!(" of {} at LBA {}", human::bytes(bytes), human::count(request.lba));
    }
    if request.device != 0 {
        text += &format!(", device {}", request.device);
    }
    text
}

pub(super) fn request_text(drive: &ExplainedDrive, request: &ExplainedRequest) -> String {
    let mut text = format!(
        "{}\n  {}, from {} on\n",
        head(drive, request),
        human::duration_ns(request.latency_ns),
        human::duration_ns(request.arrival_ns)
    );
    let lines = lines_of(request, drive.sector_bytes);
    let width = lines.iter().map(|line| line.time.chars().count()).max().unwrap_or(0);
    let mut all: Vec<(bool, String)> = Vec::new();
    for line in lines {
        let mark = if line.conventional == Some(false) { "*" } else { " " };
        let padding = " ".repeat(width - line.time.chars().count());
        all.push((true, format!("{padding}{}{mark} {}", line.time, line.what)));
        all.extend(line.further.into_iter().map(|further| (false, format!("{}    {further}", " ".repeat(width)))));
    }
    let last = all.iter().rposition(|(is_part, _)| *is_part).unwrap_or(0);
    for (index, (is_part, line)) in all.iter().enumerate() {
        let branch = match (is_part, index.cmp(&last)) {
            (true, std::cmp::Ordering::Equal) => "└─ ",
            (true, _) => "├─ ",
            (false, std::cmp::Ordering::Less) => "│  ",
            (false, _) => "   ",
        };
        text += &format!("  {branch}{line}\n");
    }
    text += &verdict(drive, request);
    text
}

/// Returns the lines that compare a request with the baseline, and its replays.
fn verdict(drive: &ExplainedDrive, request: &ExplainedRequest) -> String {
    let mut text = String::new();
    let work = human::duration_ns(request.unconventional_ns);
    text += &format!("  * work that a conventional drive does not do: {work}");
    if let (Some(baseline), Some(excess), Some(name)) =
        (request.baseline_latency_ns, request.excess_ns, &drive.baseline)
    {
        let sign = if excess < 0 { "-" } else { "" };
        let (took, excess) = (human::duration_ns(baseline), human::duration_ns(excess.unsigned_abs()));
        text += &format!("\n  the same request on {name}: {took}; excess {sign}{excess}");
    }
    if let Some(replay) = &request.replay {
        let time = |latency: Option<u64>| latency.map_or("not completed".to_string(), human::duration_ns);
        text += &format!(
            "\n  replayed with that work in no time: {}; without the {} writes from the first to the last that filled those stores: {}",
            time(replay.without_blamed_time_ns),
            human::count(replay.writes_left_out),
            time(replay.without_blamed_writes_ns)
        );
    }
    text + "\n"
}

/// A line of a tree, with lines below it.
struct Line {
    time: String,
    conventional: Option<bool>,
    what: String,
    further: Vec<String>,
}

/// Pieces of the layer's own work that one line names together: those with one cause and one kind of reason.
#[derive(Default)]
struct Pieces<'a> {
    duration_ns: u64,
    parts: Vec<&'a ExplainedPart>,
}

/// Key of the pieces that one line names: cause, event and kind of the store.
type PiecesKey = (String, Option<String>, Option<String>);

fn is_own_work(part: &ExplainedPart) -> bool {
    matches!(part.cause.as_str(), "cleaning" | "migration" | "recovery")
}

fn lines_of(request: &ExplainedRequest, sector_bytes: u32) -> Vec<Line> {
    let mut lines: Vec<(u64, bool, Line)> = Vec::new();
    let mut pieces: BTreeMap<PiecesKey, Pieces<'_>> = BTreeMap::new();
    for part in &request.parts {
        if is_own_work(part) {
            let store = part.of.store.as_ref().map(|store| store.kind.clone());
            let piece = pieces.entry((part.cause.clone(), part.of.due.clone(), store)).or_default();
            piece.duration_ns += part.duration_ns;
            piece.parts.push(part);
            continue;
        }
        let (time, what) = (human::duration_ns(part.duration_ns), simple(part));
        let line = Line { time, conventional: part.conventional, what, further: Vec::new() };
        lines.push((part.duration_ns, part.cause.starts_with("own_"), line));
    }
    for piece in pieces.into_values() {
        let (what, further) = own_work(&piece.parts, sector_bytes);
        let time = human::duration_ns(piece.duration_ns);
        lines.push((piece.duration_ns, false, Line { time, conventional: piece.parts[0].conventional, what, further }));
    }
    lines.sort_by_key(|(time, is_own, _)| (!is_own, std::cmp::Reverse(*time)));
    lines.into_iter().map(|(_, _, line)| line).collect()
}

/// Returns the text of a part that is no work of the layer in groups of its own.
fn simple(part: &ExplainedPart) -> String {
    let of = &part.of;
    match part.cause.as_str() {
        "own_access" => "own service: access to the request's sectors".to_string(),
        "own_rewriting" => "own service: rewriting of sectors that this write destroys".to_string(),
        "own_bookkeeping" => "own service: records and map of the layer".to_string(),
        "own_cache" => "answered by the volatile cache".to_string(),
        "requests" => format!("behind {}", requests(of)),
        "rewriting" => format!("behind rewriting of sectors that {} destroy", requests(of)),
        "bookkeeping" => format!("behind records and map of the layer for {}", requests(of)),
        "idle" => "the drive did nothing".to_string(),
        "earlier" => "earlier: longer ago than the past that is kept".to_string(),
        cause => {
            let work = match cause {
                "write_back_rewriting" => "rewriting for the write-back",
                "write_back_bookkeeping" => "records and map of the layer for the write-back",
                _ => "the write-back",
            };
            let due = match of.write_back.as_deref() {
                Some("room") => "it had no room",
                Some("flush") => "a flush waited for it",
                Some("order") => "a later command must not overtake it",
                _ => "the drive was idle",
            };
            format!("behind {work} of the volatile cache, since {due}; its oldest writes: {}", requests(of))
        }
    }
}

/// Returns the text of pieces of the layer's own work with one kind of reason, and lines for the longest of them.
fn own_work(parts: &[&ExplainedPart], sector_bytes: u32) -> (String, Vec<String>) {
    let (cause, of) = (parts[0].cause.as_str(), &parts[0].of);
    let work = if cause == "migration" { "moves of data" } else { cause };
    let Some(due) = &of.due else {
        return (format!("behind {work} of the layer"), Vec::new());
    };
    let mut targets: Vec<&Place> = parts.iter().filter_map(|part| part.of.target.as_ref()).collect();
    targets.sort();
    targets.dedup();
    let mut stores: Vec<&Place> = parts.iter().filter_map(|part| part.of.store.as_ref()).collect();
    stores.sort();
    stores.dedup();
    let due = match (due.as_str(), stores.len()) {
        ("full", 1) => format!("{} was full", place(stores[0])),
        ("full", _) => format!("{} were full", places(&stores)),
        ("idle", _) => "begun while the drive was idle".to_string(),
        ("in the way", _) => "to be ended first, since the host touched its sectors".to_string(),
        ("never idle", _) => "due, and the drive was not idle for long enough".to_string(),
        ("streams", _) => "more sequential streams came than can be open at once".to_string(),
        ("new stream", _) => "a sequential stream was recognised".to_string(),
        (other, _) => other.to_string(),
    };
    let link = if matches!(of.due.as_deref(), Some("full" | "streams" | "new stream")) { "since " } else { "" };
    let to = if cause == "migration" { "at" } else { "of" };
    let what = format!("behind {work} {to} {}: {link}{due}", places(&targets));
    let mut longest: Vec<&&ExplainedPart> = parts.iter().filter(|part| part.of.filled_by.is_some()).collect();
    longest.sort_by_key(|part| std::cmp::Reverse(part.duration_ns));
    let mut lines: Vec<String> = Vec::new();
    for part in longest {
        let Some(filled) = &part.of.filled_by else { continue };
        let line = filled_by(filled, part.of.store.as_ref(), sector_bytes);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let further = lines.len().saturating_sub(PIECES_MAX);
    lines.truncate(PIECES_MAX);
    if further > 0 {
        lines.push(format!("and {} more", human::count(further as u64)));
    }
    (what, lines)
}

fn filled_by(filled: &FilledBy, store: Option<&Place>, sector_bytes: u32) -> String {
    let (first, last) = filled.requests;
    let bytes = human::bytes(filled.sectors * u64::from(sector_bytes));
    let what = store.map_or("since the work before it:".to_string(), |store| {
        let store = place(store);
        format!("{store}, since it was last cleaned:")
    });
    let mut text = match first == last {
        true => format!("{what} {bytes} of request {}", human::count(first)),
        false => format!("{what} {bytes} of requests {} to {}", human::count(first), human::count(last)),
    };
    text += &format!(", LBA {}", lbas(&filled.lba_ranges));
    if filled.devices.len() > 1 || filled.devices.iter().any(|device| device.device != Some(0)) {
        text += &format!("; {}", devices(&filled.devices));
    }
    text
}

fn place(place: &Place) -> String {
    match place.kind.as_str() {
        kind @ ("cache" | "map" | "log") => format!("the {kind}"),
        kind => format!("{kind} {}", human::count(place.number.into())),
    }
}

fn places(places_: &[&Place]) -> String {
    let names: Vec<String> = places_.iter().take(NAMED_MAX).map(|named| human::count(named.number.into())).collect();
    match places_ {
        [] => "the layer's data".to_string(),
        [one] => place(one),
        [first, ..] => {
            let rest = if places_.len() > NAMED_MAX { ", …" } else { "" };
            format!("{} {}s ({}{rest})", human::count(places_.len() as u64), first.kind, names.join(", "))
        }
    }
}

fn requests(of: &PartOf) -> String {
    let count: u64 = of.requests.iter().map(|(first, last)| last - first + 1).sum();
    let (Some(first), Some(last)) = (of.requests.first(), of.requests.last()) else {
        return "other requests".to_string();
    };
    let (first, last) = (human::count(first.0), human::count(last.1));
    let more = if of.further_ranges > 0 { "more than " } else { "" };
    match (count, of.requests.len()) {
        (1, _) => format!("request {first}"),
        (_, 1) => format!("{more}{} requests, {first} to {last}", human::count(count)),
        _ => format!("{more}{} requests between {first} and {last}", human::count(count)),
    }
}

fn lbas(ranges: &[(u64, u64)]) -> String {
    let name = |(first, last): (u64, u64)| format!("{} to {}", human::count(first), human::count(last));
    match ranges {
        [] => "none".to_string(),
        [first, .., last] if ranges.len() > 2 => format!("{} in {} ranges", name((first.0, last.1)), ranges.len()),
        _ => ranges.iter().map(|range| name(*range)).collect::<Vec<_>>().join(", "),
    }
}

fn devices(amounts: &[DeviceAmount]) -> String {
    let total: u64 = amounts.iter().map(|amount| amount.amount).sum();
    let names: Vec<String> = amounts
        .iter()
        .take(NAMED_MAX)
        .map(|amount| {
            let name = amount.device.map_or("other devices".to_string(), |device| format!("device {device}"));
            format!("{name} {}", percent(amount.amount, total))
        })
        .collect();
    names.join(", ")
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_string();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if share < 0.05 && part > 0 { "<0.1 %".to_string() } else { format!("{share:.1} %") }
}

/// Returns the table of causes by group of requests.
fn shares(groups: &[GroupShares]) -> String {
    let mut causes: Vec<&CauseTime> = Vec::new();
    for cause in groups.iter().flat_map(|group| &group.causes) {
        if !causes.iter().any(|known| known.cause == cause.cause) {
            causes.push(cause);
        }
    }
    let head: Vec<String> = groups.iter().map(|group| group_name(&group.group).to_string()).collect();
    let row = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>10}")).collect();
        format!("  {name:<26}{}\n", cells.join("  "))
    };
    let mut text = row("share of latency", &head);
    for cause in causes {
        let time = |group: &GroupShares| {
            let found = group.causes.iter().find(|other| other.cause == cause.cause);
            percent(found.map_or(0, |found| found.duration_ns), group.latency_ns)
        };
        let mark = if cause.conventional == Some(false) { " *" } else { "" };
        let cells: Vec<String> = groups.iter().map(time).collect();
        text += &row(&format!("{}{mark}", cause.cause.replace('_', " ")), &cells);
    }
    let counts: Vec<String> = groups.iter().map(|group| human::count(group.requests)).collect();
    text += &row("requests", &counts);
    let from: Vec<String> = groups.iter().map(|group| human::duration_ns(group.from_ns)).collect();
    text + &row("latency from", &from)
}

fn group_name(group: &str) -> &str {
    match group {
        "p999" => "p99.9",
        other => other,
    }
}

/// Returns the table of the addresses and devices that wait, and of those that make others wait.
fn involved(waiting: &Involved, causing: &Involved) -> String {
    let (waiting, causing) = (cells(waiting), cells(causing));
    if waiting.is_empty() && causing.is_empty() {
        return String::new();
    }
    let row = |left: &str, right: &str| format!("  {left:<42}{right}").trim_end().to_string() + "\n";
    let mut text = row("share of the time spent waiting, by LBA", "share of the time that others waited");
    for index in 0..waiting.len().max(causing.len()) {
        let cell = |cells: &[String]| cells.get(index).cloned().unwrap_or_default();
        text += &row(&cell(&waiting), &cell(&causing));
    }
    text
}

/// Returns the shares of the greatest LBA ranges, and of the devices if there are several.
fn cells(involved: &Involved) -> Vec<String> {
    let total: u64 = involved.devices.iter().map(|device| device.amount).sum();
    if total == 0 {
        return Vec::new();
    }
    let ranges = involved.lba_ranges.iter().take(NAMED_MAX).map(|range| {
        let (first, last) = (human::count(range.lbas.0), human::count(range.lbas.1));
        format!("{:>7}  {first} to {last}", percent(range.amount, total))
    });
    let are_several = involved.devices.len() > 1;
    let devices = involved.devices.iter().take(NAMED_MAX).filter(|_| are_several).map(|device| {
        let name = device.device.map_or("other devices".to_string(), |device| format!("device {device}"));
        format!("{:>7}  {name}", percent(device.amount, total))
    });
    ranges.chain(devices).collect()
}
