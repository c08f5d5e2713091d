//! Errors of an emulated drive, and of single commands to a drive.

use std::io;

use imbrex_disk::{Lba, Pba};
use imbrex_layer::{Medium, ReplayError, ZoneError};

/// Error of an image, of the medium on which the image lies, or of one command to a drive.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An operation of the medium on which the image lies failed.
    #[error("{what}: {cause}")]
    Medium {
        /// The operation that failed, or the path of the file on which it failed; for error messages.
        what: String,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A sector needed by a read was destroyed by a write to a track that overlaps it. On a caveat disk, also a sector
    /// that may be destroyed or was never written.
    #[error("LBA {} (physical sector {} of the {medium:?}) was destroyed by a write that overlaps it", .lba.0, .pba.0)]
    Destroyed {
        /// LBA of the first destroyed sector that the read met.
        lba: Lba,
        /// Physical sector to which that LBA is mapped.
        pba: Pba,
        /// Medium of the destroyed physical sector: platters or flash.
        medium: Medium,
    },
    /// The stored contents of a sector needed by a read do not match their checksum: the image is damaged there.
    #[error(
        "LBA {} (physical sector {} of the {medium:?}) is damaged in the image: its contents do not match their checksum; \
         `imbrex drive check` says what else is",
        .lba.0, .pba.0
    )]
    Corrupt {
        /// LBA of the first damaged sector that the read met.
        lba: Lba,
        /// Physical sector to which that LBA is mapped.
        pba: Pba,
        /// Medium of the damaged physical sector: platters or flash.
        medium: Medium,
    },
    /// A sector needed by a read was lost through damage to the image. Reads of the sector fail until it is written.
    #[error("LBA {} was lost by damage to the image; it can be read again once it is written", .lba.0)]
    Lost {
        /// LBA of the first lost sector of the read.
        lba: Lba,
    },
    /// A sector needed by a read is unreadable because of an injected fault. Reads of the sector fail until it is
    /// written or the fault is cleared.
    #[error("LBA {} is unreadable until it is written: a fault that was asked for", .lba.0)]
    Unreadable {
        /// LBA of the first unreadable sector of the read.
        lba: Lba,
    },
    /// The file is not an image, cannot be opened or created as one, or is an image that this program cannot use. The
    /// file was left unchanged.
    #[error("{place}: {reason}")]
    Image {
        /// Path of the file, or the name of an image that is not in a file.
        place: String,
        /// The fault, and the remedy if there is one.
        reason: String,
    },
    /// Another process holds a lock on the image that excludes this one.
    #[error("{place}: is in use by another process{reason}")]
    InUse {
        /// Path of the file.
        place: String,
        /// End of the message: the kind of use by the other process, and the remedy.
        reason: &'static str,
    },
    /// The file is a copy of an image whose drive was open during the copying, so the copy may mix data of different
    /// ages.
    #[error(
        "{place} was copied from an image that was not closed all the while: if a server worked on that one, this copy may hold \
         other bytes than were written. `imbrex drive snapshot` copies an image that is served; `imbrex drive adopt {place}` \
         takes this copy as it is, if nobody wrote to its original while it was copied"
    )]
    CopiedUnclosed {
        /// Path of the copy.
        place: String,
    },
    /// The file is an image that is damaged now.
    #[error("{place}: {reason}")]
    Damaged {
        /// Path of the file, or the name of an image that is not in a file.
        place: String,
        /// The damage and its remedy.
        reason: String,
    },
    /// A record of the image's journal cannot be applied to the state of the drive's layer or to the list of faults.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The command violates the rules of a zone, such as a write that does not start at the write pointer. The command
    /// had no effect.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The drive stopped after an earlier failure, for this reason. Acknowledged durable data is in its image; opening
    /// the image recovers the data.
    #[error("the drive has stopped: {0}; open its image again to recover")]
    Stopped(String),
    /// The operation was refused, for this reason: an invalid request, an unsuitable drive, a file in use by the host,
    /// or a full journal.
    #[error("{0}")]
    Refused(String),
    /// The request reaches past the end of the drive.
    #[error("{length} bytes at byte {offset} reach past the end of the drive at {capacity}")]
    PastEnd {
        /// Offset of the first byte of the request, from the start of the drive.
        offset: u64,
        /// Length of the request in bytes.
        length: u64,
        /// Capacity of the drive in bytes.
        capacity: u64,
    },
    /// The request would change a drive that is served read-only. The request had no effect.
    #[error("the drive is served read-only")]
    ReadOnly,
}

impl DeviceError {
    /// Returns [`DeviceError::Medium`] with the operating system's error `cause`; `what` names the failed operation.
    pub fn medium(what: impl Into<String>, cause: io::Error) -> DeviceError {
        DeviceError::Medium { what: what.into(), cause }
    }

    /// Returns [`DeviceError::Damaged`] for the image `place`; `reason` says what is damaged and what to do.
    pub fn damaged(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Damaged { place: place.into(), reason: reason.into() }
    }

    /// Returns [`DeviceError::Image`] for the file `place`; `reason` says why it is unusable and what to do.
    pub fn image(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Image { place: place.into(), reason: reason.into() }
    }
}
