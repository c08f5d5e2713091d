//! `top-buffer`: writes to bottom tracks are buffered in reserved top tracks of their track group, and later written to
//! their home together (the Top-Buffer of Wu et al., as Hajkazemi 2019 §5 describes it). A full drive has no
//! unallocated tops, so a share of the tops is reserved.
//!
//! ```text
//!   rings ── map ── driver ── top_buffer · write_buffer
//! ```
//!
//! The map has an entry for each buffered run, which can take more memory than a controller has. `buffer_runs=0` allows
//! as many runs as the buffer has room for, at 4 KiB each.
//!
//! The journal records are in [`record`]. A record that LBAs are at home ends the move. The header of an append, one
//! sector before its data, holds the append's records on the medium.
//!
//! Invariants: those of its parts.

pub mod driver;
pub mod map;
pub mod record;
pub mod rings;
#[cfg(test)]
mod tests;

use self::driver::{BufferOptions, WriteBuffer};
use self::map::BufferMap;
pub use self::record::Record;
use self::rings::Rings;
use super::interlaced::backup::BackupLog;
use super::interlaced::home::Planner;
use super::interlaced::host::Host;
use super::interlaced::options::{BACKUP_REGIONS, IDLE, SAFETY};
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};

/// Description of the layer `top-buffer` for the registry: on an interlaced disk, writes to bottom tracks are buffered
/// in reserved top tracks of their group, and later written to their home together.
pub const INFO: LayerInfo = LayerInfo {
    name: "top-buffer",
    summary: "interlaced disk: writes to bottoms are buffered in reserved tops of their group, and written home together",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "extent",
    source: "Wu et al. 2018, in Hajkazemi 2019 §5",
    parameters: &[
        ParameterInfo {
            key: "buffer_share",
            kind: ParameterKind::Share,
            default: "1%",
            help: "share of the tops of each group that is reserved, at least one track",
        },
        RINGS_OF_GROUPS,
        ParameterInfo { default: "0", ..BUFFER_RUNS },
        ParameterInfo { default: "0%", ..CLEAN_ABOVE },
        ParameterInfo { default: "clean", ..FULL },
        TOPS,
        BACKUP_REGIONS,
        SAFETY,
        IDLE,
    ],
    records: &[super::interlaced::record::Record::INFO, Record::INFO],
    toys: &[
        "buffer_share=20%",
        "buffer_share=30%,clean_above=40%,full=through,backup_regions=1",
        "buffer_share=20%,tops=on",
    ],
    build: |context| build(context, INFO.name),
};

/// Parameter: number of rings; by default one for each track group.
const RINGS_OF_GROUPS: ParameterInfo = ParameterInfo {
    key: "buffer_rings",
    kind: ParameterKind::Count,
    default: "1_000_000",
    help: "rings into which the buffer is divided over the radius, at most one for each track group",
};

/// The parameter `buffer_runs`: the maximum number of buffered runs in the map; 0 means one for each 4 KiB of the
/// buffer.
pub(super) const BUFFER_RUNS: ParameterInfo = ParameterInfo {
    key: "buffer_runs",
    kind: ParameterKind::Count,
    default: "800_000",
    help: "buffered runs that the map can hold; 0: one for each 4 KiB of the buffer",
};

/// The parameter `clean_above`: the share of a ring, or of the map's runs, above which buffered runs are written to
/// their home places in idle time.
pub(super) const CLEAN_ABOVE: ParameterInfo = ParameterInfo {
    key: "clean_above",
    kind: ParameterKind::Share,
    default: "50%",
    help: "share of a ring, or of the map, above which buffered runs are written home in idle time",
};

/// The parameter `tops`: whether writes to top tracks are buffered too.
pub(super) const TOPS: ParameterInfo = ParameterInfo {
    key: "tops",
    kind: ParameterKind::Switch,
    default: "off",
    help: "whether writes to tops are buffered as well, so that all writes follow each other",
};

/// The parameter `full`: the handling of a write for which the buffer has no room.
pub(super) const FULL: ParameterInfo = ParameterInfo {
    key: "full",
    kind: ParameterKind::Choice(&["clean", "through"]),
    default: "through",
    help: "a write that finds no room: clean writes the oldest home first; through writes in place, as imr-rmw does",
};

/// Builds a write-buffer layer called `name` from the disk and the parameters of `context`.
///
/// # Errors
///
/// A value is not possible, the disk has no interlaced tracks, or there is no room for the backup regions or the rings.
pub(super) fn build(context: &Context, name: &'static str) -> Result<Box<dyn Layer>, ConfigError> {
    let (disk, parameters) = (&context.disk, &context.parameters);
    let mut planner = Planner::new(disk)?;
    let (tracks, surfaces) = (disk.geometry.radial_tracks(), disk.geometry.surfaces());
    let log = BackupLog::set_aside(&mut planner, tracks, surfaces, parameters.count("backup_regions"))?;
    let share_millionths = (parameters.share("buffer_share") * 1e6).round() as u64;
    let rings = Rings::set_aside(&mut planner, parameters.count("buffer_rings"), share_millionths)?;
    let home = planner.finish();
    let runs_max = match parameters.count("buffer_runs") {
        0 => rings.sectors_of_all() * disk.sector_bytes as u64 / 4096,
        runs => runs,
    };
    let options = BufferOptions {
        clean_above_percent: (parameters.share("clean_above") * 100.0).round() as u64,
        cleans_when_full: parameters.choice("full") == "clean",
        idle_after_ns: parameters.duration_ns("idle"),
    };
    let map = BufferMap::new(name, rings, runs_max.max(1), parameters.switch("tops"));
    Ok(Box::new(WriteBuffer::new(Host::new(home, log, false), map, options)))
}
