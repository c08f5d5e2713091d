//! Traces of the Storage Performance Council, in the form of the UMass repository: `ASU,LBA,Size,Opcode,Timestamp[,…]`.
//!
//! Each application storage unit (ASU) has its own address space, and so is a device here. The LBA is in blocks of 512
//! bytes within the ASU. The size is in bytes, the opcode is `r` or `w` in any case, the time is in seconds from the
//! start. A size of 0 is legal, but such a line is not a request.

use imbrex_units::Operation;

use crate::admission::SECTOR_BYTES;
use crate::lines::LineReader;
use crate::options::TimeUnit;
use crate::table::{self, Layout, Operations, Role};

use super::format::{Confidence, Format};

/// Entry of this format in the registry.
pub(super) const FORMAT: Format = Format {
    name: "spc",
    summary: "Storage Performance Council traces (UMass)",
    options: &[],
    detect: |head| if table::fits(layout(), b',', head, 1) { Confidence::Yes } else { Confidence::No },
    open: |input, options| LineReader::open_table(input, options, layout(), b','),
};

fn layout() -> Layout {
    use Role::{Device, Offset, Operation as Op, Size, Time};
    let operations = Operations::codes(&[("r", Operation::Read), ("w", Operation::Write)]);
    let roles = [Some(Device), Some(Offset), Some(Size), Some(Op), Some(Time)];
    let layout = Layout::of("spc", &roles, operations, TimeUnit::Seconds);
    Layout { offset_unit: SECTOR_BYTES, empty_is_no_request: true, ..layout }
}

#[cfg(test)]
mod tests {
    //! Goal: ASUs are devices, opcodes have any case, lines of size 0 are not requests. Method: cases worked out by
    //! hand.

    use imbrex_units::Command;

    use crate::formats::testing::{error_of, facts_of, format_of, requests_of, timed};
    use crate::options::{Device, TraceOptions};

    const TRACE: &str = "0,20941264,8192,W,0.551706,extra\n1,20939840,8192,r,0.554041\n0,5,0,W,0.6\n1,1,513,w,1.0\n";

    #[test]
    fn storage_units_are_devices() {
        assert_eq!(format_of(TRACE.as_bytes()), Some("spc"));
        let expected = [
            timed(0, 0, Command::write(20_941_264, 16)),
            timed(2_335_000, 1, Command::read(20_939_840, 16)),
            timed(448_294_000, 1, Command::write(1, 2)),
        ];
        assert_eq!(requests_of(TRACE, &TraceOptions::default()), expected);
        assert_eq!(facts_of(TRACE, &TraceOptions::default()).not_requests, 1);
        let options = TraceOptions { device: Some(Device::Number(0)), ..TraceOptions::default() };
        assert_eq!(requests_of(TRACE, &options), expected[..1]);
    }

    #[test]
    fn another_opcode_is_an_error() {
        let error = error_of(TRACE.replace("r,", "x,"), &TraceOptions::default());
        assert_eq!(error, "t, line 2: column 4 (op): found «x», expected r or w");
    }
}
