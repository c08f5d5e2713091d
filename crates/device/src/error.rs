//! Errors of an emulated drive, and of single commands to a drive.

use std::io;

use imbrex_disk::{Lba, Pba};
use imbrex_layer::{Medium, ReplayError, ZoneError};

/// An unusable image, a failed medium, or a failed command.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// An operation of the medium failed.
    #[error("{what}: {cause}")]
    Medium {
        /// The operation that failed.
        what: String,
        /// Error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// A sector needed by a read was destroyed by a write to a track that overlaps it.
    #[error("LBA {} (physical sector {} of the {medium:?}) was destroyed by a write that overlaps it", .lba.0, .pba.0)]
    Destroyed {
        /// First such LBA.
        lba: Lba,
        /// Physical address of that sector.
        pba: Pba,
        /// Medium of that sector.
        medium: Medium,
    },
    /// The image is damaged where a read needs it: the stored contents do not match their checksum.
    #[error(
        "LBA {} (physical sector {} of the {medium:?}) is damaged in the image: its contents do not match their checksum; \
         `imbrex drive check` says what else is",
        .lba.0, .pba.0
    )]
    Corrupt {
        /// First such LBA.
        lba: Lba,
        /// Physical address of that sector.
        pba: Pba,
        /// Medium of that sector.
        medium: Medium,
    },
    /// A sector needed by a read was lost through damage to the image.
    #[error("LBA {} was lost by damage to the image; it can be read again once it is written", .lba.0)]
    Lost {
        /// First such LBA.
        lba: Lba,
    },
    /// A sector needed by a read is unreadable because of an injected fault.
    #[error("LBA {} is unreadable until it is written: a fault that was asked for", .lba.0)]
    Unreadable {
        /// First such LBA.
        lba: Lba,
    },
    /// The file is not an image, or not one that this program can use. The file was left unchanged.
    #[error("{place}: {reason}")]
    Image {
        /// Path of the file.
        place: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// Another process has the image open.
    #[error("{place}: is in use by another process{reason}")]
    InUse {
        /// Path of the file.
        place: String,
        /// Use by the other process, and what to do.
        reason: &'static str,
    },
    /// The file is a copy of an image that was open during the copying, or was opened for writing meanwhile.
    #[error(
        "{place} was copied from an image that was not closed all the while: if a server worked on that one, this copy may hold \
         other bytes than were written. `imbrex drive snapshot` copies an image that is served; `imbrex drive adopt {place}` \
         takes this copy as it is, if nobody wrote to its original while it was copied"
    )]
    CopiedUnclosed {
        /// Path of the file.
        place: String,
    },
    /// The image was valid once and is damaged now. The file was left unchanged.
    #[error("{place}: {reason}")]
    Damaged {
        /// Path of the file.
        place: String,
        /// The fault and its remedy.
        reason: String,
    },
    /// A journal record does not fit the layer.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The command violates the rules of a zone. The command had no effect.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The drive stopped after a failure. Acknowledged durable data is in its image; opening the image recovers it.
    #[error("the drive has stopped: {0}; open its image again to recover")]
    Stopped(String),
    /// The request is invalid.
    #[error("{0}")]
    Refused(String),
    /// The request reaches past the end of the drive.
    #[error("{length} bytes at byte {offset} reach past the end of the drive at {capacity}")]
    PastEnd {
        /// First byte of the request.
        offset: u64,
        /// Length of the request in bytes.
        length: u64,
        /// Capacity of the drive in bytes.
        capacity: u64,
    },
    /// The request would change a drive that is served read-only.
    #[error("the drive is served read-only")]
    ReadOnly,
}

impl DeviceError {
    /// Returns the error of a failed operation of the medium; `what` names the operation.
    pub fn medium(what: impl Into<String>, cause: io::Error) -> DeviceError {
        DeviceError::Medium { what: what.into(), cause }
    }

    /// Returns the error of a damaged image.
    pub fn damaged(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Damaged { place: place.into(), reason: reason.into() }
    }

    /// Returns the error of an unusable image.
    pub fn image(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Image { place: place.into(), reason: reason.into() }
    }
}
