//! What a file system refuses, and what fails below it. One function maps each to the number that Linux has for it.

use crate::device::DeviceFault;

/// Why an operation was not done. Nothing of it was done then, unless its documentation says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FsError {
    /// No such file or directory.
    #[error("no such file or directory")]
    NotFound,
    /// The name is taken.
    #[error("the name is taken")]
    Exists,
    /// A directory was needed.
    #[error("not a directory")]
    NotDirectory,
    /// A directory is not what was needed.
    #[error("is a directory")]
    IsDirectory,
    /// The directory holds something.
    #[error("the directory is not empty")]
    NotEmpty,
    /// No room for data.
    #[error("no space left for data")]
    NoSpace,
    /// No room for metadata: `df -i` shows it.
    #[error(
        "no space left for metadata, which are names and where files lie (df -i shows it): remove files, or parts of files in many pieces"
    )]
    NoMetadataSpace,
    /// The disk of the host on which a device lies is full.
    #[error("{0}")]
    HostFull(String),
    /// A name of more than 255 bytes.
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    /// Larger than a file can be on this store.
    #[error("the file would be larger than this file system can hold in one file")]
    TooLarge,
    /// What is asked for makes no sense.
    #[error("{0}")]
    Invalid(&'static str),
    /// No such extended attribute.
    #[error("no such extended attribute")]
    NoAttribute,
    /// The buffer is too small.
    #[error("the buffer is too small for the value")]
    Range,
    /// Past the last data (`SEEK_DATA`, `SEEK_HOLE`).
    #[error("no data at or after this offset")]
    NoData,
    /// The store cannot do it.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    /// Who asks may not do it, or nobody may.
    #[error("not permitted: {0}")]
    NotPermitted(&'static str),
    /// Access is denied.
    #[error("access denied: {0}")]
    Access(&'static str),
    /// Mounted read-only.
    #[error("the file system is mounted read-only")]
    ReadOnly,
    /// As many names as a file can have.
    #[error("the file has as many links as it can have")]
    TooManyLinks,
    /// The inode is gone.
    #[error("the file is gone")]
    Stale,
    /// Whoever asked for it wants it no more.
    #[error("stopped; what was done so far stays")]
    Stopped,
    /// Something of the kind is being done.
    #[error("busy with another such task")]
    Busy,
    /// What is stored does not match its checksum.
    #[error("block {block} of the data device is damaged: its contents do not match their checksum")]
    Damaged {
        /// The block, in units of 4 KiB from the start of the device.
        block: u64,
    },
    /// A device failed.
    #[error("{0}")]
    Device(#[from] DeviceFault),
    /// A device holds no file system of ours, or one that cannot be used.
    #[error("{place}: {reason}")]
    Format {
        /// Which device.
        place: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl FsError {
    /// The number by which Linux knows it.
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
