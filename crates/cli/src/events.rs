//! `--trace-events FILE` of `imbrex fs bench` and `imbrex lab run`: the events of the emulated drives, for the viewer of
//! Perfetto.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufWriter, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbrex::Failure;
use imbrex::files::WholeFile;
use imbrex::files::ours::refuse_unmarked;
use imbrex_device::EmulatedDrive;
use imbrex_disk::SimTime;
use imbrex_sim::events::EventOptions;

use crate::args::EventArgs;
use crate::probe::check_writable;

/// The file of events, and a temporary file for each drive during the run.
pub(crate) struct EventsFile {
    path: PathBuf,
    from: SimTime,
    to: SimTime,
    bytes_max: u64,
    parts: RefCell<Vec<Part>>,
}

/// The events of one drive.
struct Part {
    drive: String,
    file: File,
    /// Number of operations and requests that did not fit.
    left_out: Arc<AtomicU64>,
}

impl EventsFile {
    /// Returns the file that the user asked for, if any, before it is written.
    ///
    /// # Errors
    ///
    /// The part of the time is empty, the file exists and is no file of events, or it cannot be written.
    pub(crate) fn of(events: &EventArgs) -> Result<Option<EventsFile>, Failure> {
        let Some(path) = &events.trace_events else { return Ok(None) };
        let to = events.to.map_or(SimTime(u64::MAX), |to| SimTime(to.0));
        if to.0 < events.from.0 {
            return Err(Failure::usage("--to lies before --from").or_try("a later --to, or an earlier --from"));
        }
        refuse_unmarked(path, b"imbrex ").map_err(Failure::failed)?;
        check_writable(path, "--trace-events", &[])?;
        let (from, bytes_max) = (SimTime(events.from.0), events.trace_events_size);
        Ok(Some(EventsFile { path: path.clone(), from, to, bytes_max, parts: RefCell::default() }))
    }

    /// Lets a drive record its events. Each drive may use a share of the largest size, by the number of `places`.
    pub(crate) fn record(&self, drive: &mut EmulatedDrive, places: usize) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::failed(format!("no temporary file for events: {error}"));
        let file = tempfile::tempfile().map_err(failed)?;
        let number = self.parts.borrow().len();
        let name = format!("drive {number}: {}", drive.drive().label);
        let options = EventOptions {
            name: format!("imbrex {name}"),
            drive: number as u32,
            from: self.from,
            to: self.to,
            bytes_max: self.bytes_max / places.max(1) as u64,
        };
        let left_out = drive.record_events(options, Box::new(BufWriter::new(file.try_clone().map_err(failed)?)));
        self.parts.borrow_mut().push(Part { drive: name, file, left_out });
        Ok(())
    }

    /// Joins the events of all drives, which have been dropped, to the file. Says so if some did not fit.
    pub(crate) fn join(self) -> Result<(), Failure> {
        for Part { drive, left_out, .. } in self.parts.borrow().iter() {
            let left_out = left_out.load(Ordering::Relaxed);
            if left_out > 0 {
                notice!("{}", imbrex::run::sinks::events_left_out(drive, self.bytes_max, left_out, &self.path));
            }
        }
        let joined = WholeFile::create(&self.path).and_then(|mut whole| {
            for Part { mut file, .. } in self.parts.into_inner() {
                file.rewind()?;
                io::copy(&mut file, &mut whole)?;
            }
            whole.finish()
        });
        joined.map_err(|error| Failure::failed(format!("cannot write {}: {error}", self.path.display())))
    }
}
