//! Creation of the image of a drive.

use std::io;
use std::path::Path;

use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

use crate::error::DeviceError;
use crate::image::Header;
use crate::image::header::VERSION;
use crate::media::file::FileMedium;
use crate::media::new_file::NewFile;
use crate::store::{Opened, Store};

/// Bytes of a chunk of a new image.
const CHUNK_BYTES: u64 = 1 << 20;
/// Bytes set aside for each journal of a new image; the space is allocated only when it is written.
const JOURNAL_BYTES: u64 = 64 << 30;

/// Parameters of a new image that do not follow from its drive.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// UUID of the drive; random by default.
    pub uuid: Uuid,
    /// Size in bytes of a chunk, the unit in which the image allocates space for contents: a power of two from 4 KiB to
    /// 1 GiB. The default is 1 MiB.
    pub chunk_bytes: u64,
    /// Largest size in bytes of each of the two journals; at least one chunk. The default is 64 GiB. The image stores
    /// two copies of each journal, so the journals take at most four times this size. The space is allocated only when
    /// it is written.
    pub journal_bytes: u64,
}

impl Default for Making {
    fn default() -> Making {
        Making { uuid: Uuid::new_v4(), chunk_bytes: CHUNK_BYTES, journal_bytes: JOURNAL_BYTES }
    }
}

/// Returns the header of a new image for `drive`, which was built from `spec`. `making` gives the UUID and the sizes of
/// chunks and journals.
///
/// # Errors
/// [`DeviceError::Refused`] if the translation layer of the drive loses data in a power cut.
pub fn header_of(drive: &Drive, spec: &DriveSpec, making: &Making) -> Result<Header, DeviceError> {
    if !drive.layer.is_power_safe() {
        return Err(DeviceError::Refused(format!(
            "drive '{}': safety=paper keeps to the paper's steps, which lose data in a power cut; leave it out",
            drive.label
        )));
    }
    let disk_sectors = drive.disk.geometry.sectors().0;
    Ok(Header {
        uuid: making.uuid,
        snapshot: None,
        label: drive.label.clone(),
        profile_file: drive.profile.source_file().into(),
        profile_text: drive.profile.source_text().into(),
        profile_overrides: spec.profile_overrides.clone(),
        layer: drive.layer.name().into(),
        parameters: drive.parameters.clone(),
        sector_bytes: drive.disk.sector_bytes,
        disk_sectors,
        flash_sectors: if drive.disk.flash.is_some() { disk_sectors } else { 0 },
        chunk_bytes: making.chunk_bytes,
        journal_bytes: making.journal_bytes,
        version: VERSION,
    })
}

/// Creates the image file `path` for the drive that `header` describes, and opens it for writing. The file and its
/// directory entry are durable on return. The file gets its name only when it is complete, so a failure or a killed
/// process leaves nothing behind.
///
/// # Errors
/// A file of that name exists, its folder is missing, the header does not describe a valid drive, or the host's file
/// system fails.
pub fn create_file(path: &Path, header: Header) -> Result<Opened<FileMedium>, DeviceError> {
    let drive = header.drive()?;
    create_file_of(path, header, drive)
}

/// Creates the image file `path` for `drive`, which was built from `header` and is in its initial state, and opens the
/// file for writing. The file is durable on return. A failure leaves nothing behind.
///
/// # Errors
/// A file of that name exists, its folder is missing, the header is too long, or the host's file system fails.
///
/// # Panics
/// If the drive has another number of physical sectors than `header` says.
pub fn create_file_of(path: &Path, header: Header, drive: Drive) -> Result<Opened<FileMedium>, DeviceError> {
    let failed = |cause| cannot_make(path, cause);
    let new = NewFile::create(path, 0o666).map_err(failed)?;
    let media = FileMedium::new(&new, true).map_err(failed)?;
    let (drive, mut store) = Store::create_of(media, header, drive)?;
    store.sync()?;
    new.finish().map_err(failed)?;
    Ok((drive, store))
}

/// Returns the error for a file `path` that cannot be created, with a remedy if one is known.
fn cannot_make(path: &Path, cause: io::Error) -> DeviceError {
    let reason = match cause.kind() {
        io::ErrorKind::AlreadyExists => "exists already, and was not changed: take another name, or remove it first",
        io::ErrorKind::NotFound if path.parent().is_some_and(Path::is_dir) => {
            "cannot be made: the file system of its folder takes no new files of this name"
        }
        io::ErrorKind::NotFound => "lies in a folder that is not there; make the folder first",
        _ => return DeviceError::medium(path.display().to_string(), cause),
    };
    DeviceError::image(&path.display().to_string(), reason)
}
