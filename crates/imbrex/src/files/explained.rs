//! The parts of the longest latencies as a table: a row for each part.
//!
//! Columns of the request: `drive`, `rank` (0 is the request with the longest latency), `request`, `operation`, `lba`,
//! `sectors`, `device`, `arrival_ns`, `latency_ns`.
//!
//! Columns of the part: `cause`, `duration_ns`, `of` (the requests or the work, as text). `conventional` is 1 if a
//! conventional drive does this kind of work too, 0 if not, and null if the work is not known. `first_request` and
//! `last_request` are those that the part names, or that made its work necessary; null if it names none.
//!
//! Invariants:
//! 1. The durations of a request sum to its latency.

use parquet::data_type::ByteArray;

use super::table::{Column, append, long, writer};
use crate::explain::document::{ExplainDocument, ExplainedPart, ExplainedRequest, PartOf, Place};

const SCHEMA: &str = "message explained {
    required byte_array drive (string);
    required int64 rank;
    required int64 request;
    required byte_array operation (string);
    required int64 lba;
    required int64 sectors;
    required int64 device;
    required int64 arrival_ns;
    required int64 latency_ns;
    required byte_array cause (string);
    required int64 duration_ns;
    optional int64 conventional;
    required byte_array of (string);
    optional int64 first_request;
    optional int64 last_request;
}";

/// Texts of a column.
type Texts = Vec<ByteArray>;

/// A column with nulls: the values that are not null, and for each row 1 or 0.
type Optional = (Vec<i64>, Vec<i16>);

fn add((values, are_there): &mut Optional, value: Option<i64>) {
    are_there.push(i16::from(value.is_some()));
    values.extend(value);
}

#[derive(Default)]
struct Rows {
    texts: [Texts; 4],
    numbers: [Vec<i64>; 8],
    optional: [Optional; 3],
}

impl Rows {
    fn add(&mut self, drive: &str, rank: usize, request: &ExplainedRequest, part: &ExplainedPart) {
        let of = text_of(&part.of);
        for (column, text) in self.texts.iter_mut().zip([drive, &request.operation, &part.cause, &of]) {
            column.push(text.into());
        }
        let device = u64::from(request.device);
        let numbers = [
            rank as u64,
            request.number,
            request.lba,
            request.sectors,
            device,
            request.arrival_ns,
            request.latency_ns,
            part.duration_ns,
        ];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(long(number));
        }
        let named = part.of.requests.first().zip(part.of.requests.last()).map(|(first, last)| (first.0, last.1));
        let named = named.or_else(|| part.of.filled_by.as_ref().map(|filled| filled.requests));
        let optional =
            [part.conventional.map(i64::from), named.map(|(first, _)| long(first)), named.map(|(_, last)| long(last))];
        for (column, value) in self.optional.iter_mut().zip(optional) {
            add(column, value);
        }
    }

    fn columns(&self) -> [Column<'_>; 15] {
        let [drive, operation, cause, of] = &self.texts;
        let [rank, request, lba, sectors, device, arrival, latency, duration] = &self.numbers;
        let [conventional, first, last] = &self.optional;
        [
            Column::Text(drive),
            Column::Long(rank),
            Column::Long(request),
            Column::Text(operation),
            Column::Long(lba),
            Column::Long(sectors),
            Column::Long(device),
            Column::Long(arrival),
            Column::Long(latency),
            Column::Text(cause),
            Column::Long(duration),
            Column::OptionalLong(&conventional.0, &conventional.1),
            Column::Text(of),
            Column::OptionalLong(&first.0, &first.1),
            Column::OptionalLong(&last.0, &last.1),
        ]
    }
}

/// Returns the requests or the work of a part as text, such as `region 5: cache region 5 full`.
fn text_of(of: &PartOf) -> String {
    let place = |place: &Place| format!("{} {}", place.kind, place.number);
    match (&of.target, &of.due, &of.write_back) {
        (Some(target), Some(due), _) => match &of.store {
            Some(store) => format!("{}: {} {due}", place(target), place(store)),
            None => format!("{}: {due}", place(target)),
        },
        (_, _, Some(due)) => format!("volatile cache: {due}"),
        _ => {
            let ranges = of.requests.iter().map(|(first, last)| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            });
            ranges.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns a Parquet table of the parts of the `worst` requests of each drive with the longest latencies.
///
/// # Errors
///
/// If the Parquet library fails.
pub fn bytes(document: &ExplainDocument, worst: usize) -> parquet::errors::Result<Vec<u8>> {
    let mut table = writer(Vec::new(), SCHEMA)?;
    let mut rows = Rows::default();
    for drive in &document.drives {
        for (rank, request) in drive.requests.iter().take(worst).enumerate() {
            request.parts.iter().for_each(|part| rows.add(&drive.drive, rank, request, part));
        }
    }
    append(&mut table, &rows.columns())?;
    table.into_inner()
}
