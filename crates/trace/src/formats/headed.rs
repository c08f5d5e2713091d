//! Tables whose columns are named by their first row, in any order.

use crate::input::Unpacked;
use crate::options::TimeUnit;
use crate::request::TraceError;
use crate::table::{self, Header, Layout, Operations, Role};

use super::format::Head;

/// Returns the names in the header of `head`, or `None` if the first row is not a header.
pub(super) fn names(head: &Head<'_>, delimiter: u8) -> Option<Vec<String>> {
    let rows = table::rows_of(head, delimiter, 1);
    let header = rows.first().filter(|row| table::is_header(row))?;
    Some(header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

/// Returns the layout of a table with these `columns`, in any order.
pub(super) fn layout(
    format: &'static str,
    columns: &[(usize, Role)],
    operations: Operations,
    time_unit: TimeUnit,
) -> Layout {
    let count = columns.iter().map(|(column, _)| column + 1).max().unwrap_or(0);
    let mut roles = vec![None; count];
    columns.iter().for_each(|(column, role)| roles[*column] = Some(*role));
    Layout { header: Header::Expected, ..Layout::of(format, &roles, operations, time_unit) }
}

/// Returns the error for an `input` without the header that its format needs.
pub(super) fn missing(input: &Unpacked, expected: &str) -> TraceError {
    let found = crate::fields::shown(Head::of(input).first_line());
    let reason = format!("expected {expected}; the first line is {found}");
    TraceError::new(input.name.clone(), reason)
}
