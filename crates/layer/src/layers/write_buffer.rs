//! `write-buffer`: all writes to bottom tracks are appended to a log in reserved top tracks, and stay there until the
//! log fills. Sectors that are overwritten meanwhile become dead in the log. Most of the others are written to their
//! home in idle time, track by track. The layer is ours, not a paper's.
//!
//! It is the [`top_buffer`] with few long rings instead of one for each track group, so that appends follow each other
//! over the whole drive. Its map is small enough for a controller's memory.
//!
//! Invariants: those of its parts.

use super::interlaced::options::{BACKUP_REGIONS, IDLE, SAFETY};
use super::interlaced::record;
use super::top_buffer::{self, BUFFER_RUNS, CLEAN_ABOVE, FULL, TOPS};
use crate::info::LayerInfo;
use crate::parameters::{ParameterInfo, ParameterKind};

/// Description of the layer `write-buffer` for the registry: on an interlaced disk, writes to bottom tracks are
/// appended to a log in reserved top tracks. In idle time they are written to their home, if the log is fuller than
/// the parameter `clean_above`.
pub const INFO: LayerInfo = LayerInfo {
    name: "write-buffer",
    summary: "interlaced disk: writes to bottoms go to a log in reserved tops, and home when it fills and the drive is idle",
    recordings: &["interlaced"],
    host_managed: false,
    mapping_unit: "extent",
    source: "ours, after Wu et al. 2018 and Aghayev 2015 §3.1",
    parameters: &[
        ParameterInfo {
            key: "buffer_share",
            kind: ParameterKind::Share,
            default: "2%",
            help: "share of all tops that is reserved",
        },
        ParameterInfo {
            key: "buffer_rings",
            kind: ParameterKind::Count,
            default: "1",
            help: "rings into which the log is divided over the radius",
        },
        BUFFER_RUNS,
        CLEAN_ABOVE,
        FULL,
        TOPS,
        BACKUP_REGIONS,
        SAFETY,
        ParameterInfo { default: "500ms", ..IDLE },
    ],
    records: &[record::Record::INFO, top_buffer::Record::INFO],
    toys: &[
        "buffer_share=20%,clean_above=30%,tops=on",
        "buffer_share=10%,buffer_rings=2,buffer_runs=9,full=clean",
        "buffer_share=20%,backup_regions=1,tops=on",
    ],
    build: |context| top_buffer::build(context, INFO.name),
};
