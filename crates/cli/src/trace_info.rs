//! `imbrex trace info`: what is in a workload.

use crate::args::WorkloadArgs;
use crate::error::{ExitCode, Failure};
use crate::progress::Bars;

/// Runs the command.
pub fn run(_args: &WorkloadArgs, _json: bool, _bars: &Bars) -> Result<ExitCode, Failure> {
    Err(Failure::failed("statistics are on their way"))
}
