//! The parts of latencies as a table: one row per part.

use super::document::{ExplainDocument, ExplainedDrive, ExplainedPart, ExplainedRequest, Place};
use crate::human;
use crate::table_form::{Cell, Cells, Column};

/// Returns the parts of all chosen requests.
pub(super) fn of(document: &ExplainDocument) -> Cells {
    let columns = vec![
        Column::text("drive", "drive"),
        Column::numeric("request", "request"),
        Column::text("operation", "operation"),
        Column::numeric("lba", "LBA"),
        Column::numeric("latency_ns", "latency"),
        Column::text("cause", "cause"),
        Column::numeric("duration_ns", "time"),
        Column::text("conventional", "on a conventional drive too"),
        Column::text("target", "works on"),
        Column::text("due", "made necessary by"),
        Column::text("store", "relieves"),
    ];
    let requests = document.drives.iter().flat_map(|drive| drive.requests.iter().map(move |request| (drive, request)));
    let rows = requests.flat_map(|(drive, request)| request.parts.iter().map(move |part| row(drive, request, part)));
    Cells { columns, rows: rows.collect() }
}

fn row(drive: &ExplainedDrive, request: &ExplainedRequest, part: &ExplainedPart) -> Vec<Cell> {
    let count = |count: u64| Cell::number(count as f64, human::count(count));
    let time = |ns: u64| Cell::number(ns as f64, human::duration_ns(ns));
    let text = |text: Option<&str>| text.map_or_else(Cell::none, Cell::text);
    let place = |place: &Option<Place>| match place {
        Some(place) => Cell::text(format!("{} {}", place.kind, place.number)),
        None => Cell::none(),
    };
    let due = part.of.due.as_deref().or(part.of.write_back.as_deref());
    vec![
        Cell::text(&drive.drive),
        count(request.number),
        Cell::text(&request.operation),
        count(request.lba),
        time(request.latency_ns),
        Cell::text(&part.cause),
        time(part.duration_ns),
        text(part.conventional.map(|conventional| if conventional { "yes" } else { "no" })),
        place(&part.of.target),
        text(due),
        place(&part.of.store),
    ]
}
