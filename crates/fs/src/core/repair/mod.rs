//! Repair: scrubs, replacement of drives, spares, copies of the metadata, and full disks of the host.

pub(in crate::core) mod check_drive;
pub(in crate::core) mod copies;
mod host_disks;
pub(in crate::core) mod replace;
pub(in crate::core) mod scrub;
pub(in crate::core) mod spares;
