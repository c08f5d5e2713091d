//! Conversion of an image of an older version to this version. The new image is written beside the old one, made
//! durable, and renamed over it.
//!
//! ```text
//!  old image, locked ─► mended in memory as at any opening ─► copied into a hidden file ─► durable ─► renamed over the old one
//!                                                               └─ failed, or stopped ─► the hidden file is removed
//! ```
//!
//! Invariants:
//! 1. The old image is not written. It keeps its name until the new image is durable.
//! 2. Identity, contents, map and damage are equal in both images.

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

/// Result of the conversion of an image to the current format version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upgraded {
    /// Format version of the old image.
    pub from: u32,
    /// Format version of the new image.
    pub to: u32,
    /// UUID of the drive, which does not change.
    pub uuid: uuid::Uuid,
}

/// Converts the image file `path` to the current format version. The new image replaces the old file once it is
/// complete and durable. After each copied chunk, `told` receives the number of chunks copied and the total.
///
/// # Errors
/// The image already has this version, is in use, is too damaged to open, or the host's disk is full. The image is then
/// unchanged.
pub fn upgrade_file(path: &Path, told: impl FnMut(u64, u64)) -> Result<Upgraded, DeviceError> {
    let place = path.display().to_string();
    let failed = |what: &str, cause: io::Error| DeviceError::medium(format!("{place}: {what}"), cause);
    // The rename must replace the file itself, not a link to it.
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

/// Gives the file `new` the permissions of `old`, and its owner and group if that is allowed.
fn take_over_access(old: &Path, new: &File) -> io::Result<()> {
    let facts = std::fs::metadata(old)?;
    // A user other than root may not give the file away, so it keeps this user as its owner.
    let _ = std::os::unix::fs::fchown(new, Some(facts.uid()), Some(facts.gid()));
    new.set_permissions(facts.permissions())
}
