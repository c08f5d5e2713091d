//! Errors of file system operations, and of the devices below. [`FsError::errno`] maps each to the error number of
//! Linux.

use crate::device::DeviceFault;

/// Error of an operation. A failed operation changes nothing, unless its documentation says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FsError {
    /// No such file or directory.
    #[error("no such file or directory")]
    NotFound,
    /// The name exists already.
    #[error("the name is taken")]
    Exists,
    /// The operation needs a directory, and the file is none.
    #[error("not a directory")]
    NotDirectory,
    /// The operation does not apply to directories.
    #[error("is a directory")]
    IsDirectory,
    /// The directory is not empty.
    #[error("the directory is not empty")]
    NotEmpty,
    /// No space left for data.
    #[error("no space left for data")]
    NoSpace,
    /// No space left for metadata. `df -i` shows the free space for metadata.
    #[error(
        "no space left for metadata, which are names and where files lie (df -i shows it): remove files, or parts of files in many pieces"
    )]
    NoMetadataSpace,
    /// The host's disk on which a device is stored is full.
    #[error("{0}")]
    HostFull(String),
    /// The name has more than 255 bytes.
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    /// The file would be larger than the maximum size of a file.
    #[error("the file would be larger than this file system can hold in one file")]
    TooLarge,
    /// The arguments of the operation are invalid.
    #[error("{0}")]
    Invalid(&'static str),
    /// No such extended attribute.
    #[error("no such extended attribute")]
    NoAttribute,
    /// The buffer is too small for the value.
    #[error("the buffer is too small for the value")]
    Range,
    /// No data at or after the offset (`SEEK_DATA`, `SEEK_HOLE`).
    #[error("no data at or after this offset")]
    NoData,
    /// The store does not support the operation.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    /// The caller is not permitted to perform the operation, or no caller is.
    #[error("not permitted: {0}")]
    NotPermitted(&'static str),
    /// Access is denied.
    #[error("access denied: {0}")]
    Access(&'static str),
    /// The file system is mounted read-only.
    #[error("the file system is mounted read-only")]
    ReadOnly,
    /// The file has the maximum number of links already.
    #[error("the file has as many links as it can have")]
    TooManyLinks,
    /// The inode was removed.
    #[error("the file is gone")]
    Stale,
    /// The caller stopped the task; its results so far remain.
    #[error("stopped; the work done so far is kept")]
    Stopped,
    /// Another task of this kind is running.
    #[error("busy with another such task")]
    Busy,
    /// A block does not match its checksum.
    #[error("block {block} of the data device is damaged: its contents do not match their checksum")]
    Damaged {
        /// Number of the block, in units of 4 KiB from the start of the device.
        block: u64,
    },
    /// A device failed.
    #[error("{0}")]
    Device(#[from] DeviceFault),
    /// A device holds no file system of Imbrex, or one that cannot be used.
    #[error("{place}: {reason}")]
    Format {
        /// Name of the device or part.
        place: String,
        /// Description of the problem and of its remedy.
        reason: String,
    },
}

impl FsError {
    /// Returns the error number of Linux (`errno`).
    pub fn errno(&self) -> i32 {
        match self {
            FsError::NotFound => 2,
            FsError::Exists => 17,
            FsError::NotDirectory => 20,
            FsError::IsDirectory => 21,
            FsError::NotEmpty => 39,
            FsError::NoSpace | FsError::NoMetadataSpace | FsError::HostFull(_) => 28,
            FsError::NameTooLong => 36,
            FsError::TooLarge => 27,
            FsError::Invalid(_) => 22,
            FsError::NoAttribute => 61,
            FsError::Range => 34,
            FsError::NoData => 6,
            FsError::NotSupported(_) => 95,
            FsError::NotPermitted(_) => 1,
            FsError::Access(_) => 13,
            FsError::ReadOnly => 30,
            FsError::TooManyLinks => 31,
            FsError::Stale => 116,
            FsError::Stopped => 4,
            FsError::Busy => 16,
            FsError::Damaged { .. } | FsError::Device(_) | FsError::Format { .. } => 5,
        }
    }

    pub(crate) fn format(place: &str, reason: impl Into<String>) -> FsError {
        FsError::Format { place: place.into(), reason: reason.into() }
    }
}
