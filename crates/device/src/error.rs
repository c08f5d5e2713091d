//! What can go wrong with an emulated drive, and with one command to it.

use std::io;

use imbrex_disk::{Lba, Pba};
use imbrex_layer::{Medium, ReplayError, ZoneError};

/// An image that cannot be used, or a medium that fails.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The medium said no.
    #[error("{what}: {cause}")]
    Medium {
        /// What was being done.
        what: String,
        /// The system's word.
        #[source]
        cause: io::Error,
    },
    /// A sector that a read needs was destroyed by a write beside it.
    #[error("LBA {} (physical sector {} of the {medium:?}) was destroyed by a write that overlaps it", .lba.0, .pba.0)]
    Destroyed {
        /// The first such sector, as the host numbers it.
        lba: Lba,
        /// Where it lies.
        pba: Pba,
        /// On what.
        medium: Medium,
    },
    /// The image is damaged where a read needs it: what is stored there does not match its checksum.
    #[error(
        "LBA {} (physical sector {} of the {medium:?}) is damaged in the image: its contents do not match their checksum; \
         `imbrex drive check` says what else is",
        .lba.0, .pba.0
    )]
    Spoilt {
        /// The first such sector, as the host numbers it.
        lba: Lba,
        /// Where it lies.
        pba: Pba,
        /// On what.
        medium: Medium,
    },
    /// A sector that a read needs was lost by damage to the image.
    #[error("LBA {} was lost by damage to the image; it can be read again once it is written", .lba.0)]
    Lost {
        /// The first such sector.
        lba: Lba,
    },
    /// A sector that a read needs cannot be read: a fault that was asked for.
    #[error("LBA {} is unreadable until it is written: a fault that was asked for", .lba.0)]
    Unreadable {
        /// The first such sector, as the host numbers it.
        lba: Lba,
    },
    /// The file is no image, or not one that this program can use. It was left as it was.
    #[error("{place}: {reason}")]
    Image {
        /// The file.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Another process has the image open.
    #[error("{place}: is in use by another process{reason}")]
    InUse {
        /// The file.
        place: String,
        /// What that one does, and what to do.
        reason: &'static str,
    },
    /// The file is a copy of an image that was not closed, or was opened for work meanwhile.
    #[error(
        "{place} was copied from an image that was not closed all the while: if a server worked on that one, this copy may hold \
         other bytes than were written. `imbrex drive snapshot` copies an image that is served; `imbrex drive adopt {place}` \
         takes this copy as it is, if nobody wrote to its original while it was copied"
    )]
    CopiedUnclosed {
        /// The file.
        place: String,
    },
    /// The image was whole once and is so no longer. It was left as it was.
    #[error("{place}: {reason}")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A journal record does not fit the layer.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// A zone refuses: what was asked is against the rule of host-managed drives, and nothing happened.
    #[error(transparent)]
    Zone(#[from] ZoneError),
    /// The drive stopped after a failure: what it acknowledged is in its image, and opening that recovers it.
    #[error("the drive has stopped: {0}; open its image again to recover")]
    Stopped(String),
    /// The host asked for something that cannot be.
    #[error("{0}")]
    Refused(String),
    /// The host asked for what lies past the end of the drive.
    #[error("{length} bytes at byte {offset} reach past the end of the drive at {capacity}")]
    PastEnd {
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
        /// Bytes that there are.
        capacity: u64,
    },
    /// The host would change what is served read-only.
    #[error("the drive is served read-only")]
    ReadOnly,
}

impl DeviceError {
    /// A failed operation of the medium.
    pub fn medium(what: impl Into<String>, cause: io::Error) -> DeviceError {
        DeviceError::Medium { what: what.into(), cause }
    }

    /// An image that lost something.
    pub fn damaged(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Damaged { place: place.into(), reason: reason.into() }
    }

    /// An unusable image.
    pub fn image(place: &str, reason: impl Into<String>) -> DeviceError {
        DeviceError::Image { place: place.into(), reason: reason.into() }
    }
}
