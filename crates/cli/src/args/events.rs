//! Arguments of the commands that write a file of events.

use std::path::PathBuf;

use clap::Args;
use imbrex::simulate_options::{events_size, time};
use imbrex_disk::SimDuration;

/// The file of events, and the part of the simulated time that it covers.
#[derive(Args, Debug)]
pub(crate) struct EventArgs {
    /// Write the events of the simulated drives into this file, for the viewer of Perfetto (ui.perfetto.dev).
    #[arg(long, value_name = "FILE")]
    pub trace_events: Option<PathBuf>,

    /// With --trace-events: the simulated time from which on events are kept, such as 90s.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time, requires = "trace_events")]
    pub from: SimDuration,

    /// With --trace-events: the simulated time up to which events are kept [default: the end].
    #[arg(long, value_name = "TIME", value_parser = time, requires = "trace_events")]
    pub to: Option<SimDuration>,

    /// With --trace-events: the largest size of the file; events after it are left out.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = events_size, requires = "trace_events")]
    pub trace_events_size: u64,
}
