//! The CSV of NetApp's hfplayer, with a header that names the columns. The reader uses `ELAPSED_USECS`, `CMD`, `LBA`,
//! `NBLKS`.
//!
//! Times are in microseconds since the start, LBA and NBLKS in sectors of 512 bytes. The commands `RD_IN` and `WR_IN`
//! are requests; other lines, such as those of completions, are not.

use imbrex_units::Operation;

use crate::admission::SECTOR_BYTES;
use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{Layout, Operations, Role, words::Meaning};

use super::format::{Confidence, Format, Head};
use super::headed;

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "netapp",
    summary: "CSV of NetApp's hfplayer",
    options: &[],
    detect: |head| if layout(head).is_some() { Confidence::Yes } else { Confidence::No },
    open: |input, options| {
        let layout = layout(&Head::of(&input)).ok_or_else(|| {
            headed::missing(&input, "a header with ELAPSED_USECS, CMD, LBA and NBLKS, and lines of those columns")
        })?;
        LineReader::open_table(input, options, layout, b',')
    },
};

/// Returns the columns that the header of `head` names, or `None` if it is not a header of this format.
fn layout(head: &Head<'_>) -> Option<Layout> {
    let names = headed::names(head, b',')?;
    let place = |name: &str| names.iter().position(|column| column.eq_ignore_ascii_case(name));
    let columns = [
        (place("ELAPSED_USECS")?, Role::Time),
        (place("CMD")?, Role::Operation),
        (place("LBA")?, Role::Offset),
        (place("NBLKS")?, Role::Size),
    ];
    let code = |code: &str, operation| (code.as_bytes().to_vec(), Meaning::of(operation));
    let operations = Operations::Column {
        codes: vec![code("RD_IN", Operation::Read), code("WR_IN", Operation::Write)],
        has_words: false,
        is_no_request: |word| !word.is_empty(),
    };
    let layout = headed::layout("netapp", &columns, operations, TimeUnit::Microseconds);
    Some(Layout { offset_unit: SECTOR_BYTES, size_unit: SECTOR_BYTES, ..layout })
}

#[cfg(test)]
mod tests {
    //! Goal: columns are found by their names, other commands are not requests. Method: cases worked out by hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::TraceOptions;

    const TRACE: &str = "ELAPSED_USECS,CMD,LBA,NBLKS\n10,WR_IN,4096,8\n15,RD_OUT,1,1\n25, RD_IN, 16, 2\n";

    #[test]
    fn columns_have_names() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("netapp"));
        let expected = [timed(0, 0, Command::write(4096, 8)), timed(15_000, 0, Command::read(16, 2))];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        assert_eq!(facts_of(TRACE, &TraceOptions::default()).not_requests, 1);
        let other = "FLAGS,NBLKS,LBA,CMD,ELAPSED_USECS\n0,8,4096,WR_IN,10\n0,2,16,RD_IN,25\n";
        assert_eq!(requests_of(other, &TraceOptions::default()), expected);
    }

    #[test]
    fn a_number_that_is_none_is_an_error() {
        let error = error_of(TRACE.replace("4096", "x"), &TraceOptions::default());
        assert_eq!(error, "t, line 2: column 3 (offset): «x» is not a number");
        let options = TraceOptions { format: Some("netapp".into()), ..TraceOptions::default() };
        assert!(error_of("a,b\n1,2\n", &options).starts_with("t: expected a header with ELAPSED_USECS"));
    }
}
