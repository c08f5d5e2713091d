//! `imbrex fs sync`: makes everything durable that was written to a mounted file system.
//!
//! Linux sends a FUSE server neither sync(2) nor syncfs(2) unless it is mounted from a block device or by virtio-fs. So the process that
//! serves is asked by an extended attribute of the directory.

use std::path::Path;

use imbrex::Failure;
use imbrex_serve::fuse::SYNC_ATTRIBUTE;

use super::stat;
use crate::error::ExitCode;

/// Comes back when everything is durable.
pub fn run(directory: &Path) -> Result<ExitCode, Failure> {
    // Whether it is one of ours, and served, is told first.
    stat::ask(directory)?;
    everything(directory)
        .map_err(|error| Failure::failed(format!("{}: not everything can be written: {error}", directory.display())))?;
    Ok(ExitCode::Done)
}

/// Makes everything durable that lies on `directory`, which is served.
pub fn everything(directory: &Path) -> rustix::io::Result<()> {
    rustix::fs::getxattr(directory, SYNC_ATTRIBUTE, &mut [0u8; 16][..]).map(drop)
}
