//! An image of an older version becomes one of this version: written beside the old one, made durable, and renamed over it.
//!
//! ```text
//!  old image, locked ─► mended in memory as at any opening ─► copied into a hidden file ─► durable ─► renamed over the old one
//!                                                               └─ failed, or stopped ─► the hidden file is removed
//! ```
//!
//! Invariants:
//! 1. The old image is not written. It stands under its name until the new one is durable.
//! 2. Identity, contents, map and damage are the same in both.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::DeviceError;
use crate::image::header::VERSION;
use crate::image::{Bounds, Header, Space};
use crate::media::file::{FileMedium, Mode};
use crate::media::new_file::NewFile;
use crate::media::overlay::Overlay;
use crate::store::Store;

/// What an upgrade did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upgraded {
    /// The version that it had.
    pub from: u32,
    /// The version that it has.
    pub to: u32,
    /// The image's identity, which stays.
    pub uuid: uuid::Uuid,
}

/// Converts the image in the file `path`. `told` is called with the chunks copied and the chunks in all.
///
/// # Errors
///
/// The image is of this version already, in use, damaged so that it does not open, or the disk is full; then it is as it was.
pub fn upgrade_file(path: &Path, told: impl FnMut(u64, u64)) -> Result<Upgraded, DeviceError> {
    let place = path.display().to_string();
    let failed = |what: &str, cause: io::Error| DeviceError::medium(format!("{place}: {what}"), cause);
    // The file itself is replaced, not a link to it.
    let path = path.canonicalize().map_err(|cause| failed("following its links", cause))?;
    let mut medium = FileMedium::open(&path, Mode::Write, false)?;
    let header = Header::read(&mut medium, &place)?;
    if header.version == VERSION {
        return Err(DeviceError::image(&place, format!("is of version {VERSION} already; nothing was written")));
    }
    let (_, mut store) = Store::open(Overlay::new(medium), &place)?;
    store.seal()?;
    let new = Header { version: VERSION, ..header.clone() };
    let file = NewFile::create_over(&path, 0o600).map_err(|cause| failed("making a new image beside it", cause))?;
    take_over_access(&path, file.file()).map_err(|cause| failed("giving the new image its permissions", cause))?;
    let mut medium = FileMedium::new(&file, true).map_err(|cause| failed("making a new image beside it", cause))?;
    new.write(&mut medium)?;
    let mut space = Space::create(medium, &new, Bounds::default())?;
    space.copy_all(store.space_mut(), told)?;
    file.finish().map_err(|cause| failed("putting the new image in its place", cause))?;
    Ok(Upgraded { from: header.version, to: VERSION, uuid: header.uuid })
}

/// Gives the file `new` the permissions of `old`, and its owner where that is allowed.
fn take_over_access(old: &Path, new: &File) -> io::Result<()> {
    let facts = std::fs::metadata(old)?;
    // A user who is not root keeps the new image as his own.
    let _ = std::os::unix::fs::fchown(new, Some(facts.uid()), Some(facts.gid()));
    new.set_permissions(facts.permissions())
}
