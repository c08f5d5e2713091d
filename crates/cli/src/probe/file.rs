//! `imbrex probe --file`: probes the drive below a mounted file system by a new file on it.

use imbrex::{Failure, Progress, human};
use imbrex_probe::targets::{NewFile, Place};

use super::leave::failed;
use crate::args::ProbeArgs;
use crate::interrupt;

/// Smallest size of the file in bytes.
const SIZE_BYTES_MIN: u64 = 64 << 20;

/// Time that the tests may take if the command line has no budget, in nanoseconds.
pub(super) const BUDGET_NS: u64 = 600_000_000_000;

/// Rate in bytes per second by which the time of writing is estimated: that of a slow disk.
const RATE: u64 = 80_000_000;

/// Makes the file and fills it, after a message that says so.
pub(super) fn open(args: &ProbeArgs, quiet: bool) -> Result<NewFile, Failure> {
    let path = args.file.as_ref().expect("the caller found it");
    if args.size < SIZE_BYTES_MIN {
        let least = human::bytes(SIZE_BYTES_MIN);
        return Err(Failure::usage(format!("--size {}: the tests need {least} at least", human::bytes(args.size))));
    }
    let size = args.size / 4096 * 4096;
    let place = Place::examine(path, size).map_err(failed)?;
    if !quiet {
        tell(args, &place);
    }
    let progress = Progress::on_terminal(quiet).stopping_when(interrupt::requested);
    let mut file = NewFile::make(place, interrupt::requested).map_err(failed)?;
    let bar = progress.bytes("writing the file");
    bar.set_length(size);
    let outcome = file.fill(&mut |written| {
        bar.set_position(written);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    outcome.map_err(failed)?;
    Ok(file)
}

/// Prints the size of the file, the room left and the time of writing.
fn tell(args: &ProbeArgs, place: &Place) {
    let through: String = place.through().iter().map(|device| format!(", {device}")).collect();
    message!(
        "imbrex: {} ({}{through}) lies on the drive /dev/{}",
        place.folder.display(),
        place.file_system,
        place.drive()
    );
    let left = place.free_bytes - place.file_bytes;
    message!(
        "imbrex: a new file of {} is written there, about {}; {} stay free",
        human::bytes(place.file_bytes),
        human::duration_ns(place.file_bytes * 1_000_000_000 / RATE),
        human::bytes(left)
    );
    let budget = args.budget.clone().unwrap_or_else(|| human::duration_ns(BUDGET_NS));
    message!(
        "imbrex: then tests read and rewrite that file, for {budget} at most. Nothing else is changed. The file has no name, and \
         is gone when the command ends"
    );
}
