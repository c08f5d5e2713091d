//! Errors of file system operations, and of the devices below. [`FsError::errno`] maps each to the error number of
//! Linux.

use crate::device::DeviceFault;

/// Error of an operation. A failed operation changes nothing, unless its documentation says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FsError {
    /// No file or directory has this name or path (`ENOENT`).
    #[error("no such file or directory")]
    NotFound,
    /// The name, or the extended attribute to create, exists already (`EEXIST`).
    #[error("the name is taken")]
    Exists,
    /// The operation needs a directory, and the file is not one (`ENOTDIR`).
    #[error("not a directory")]
    NotDirectory,
    /// The operation does not apply to directories, and the file is one (`EISDIR`).
    #[error("is a directory")]
    IsDirectory,
    /// The directory to be removed or replaced is not empty (`ENOTEMPTY`).
    #[error("the directory is not empty")]
    NotEmpty,
    /// No space is left for data, or the value of an extended attribute is too long (`ENOSPC`).
    #[error("no space left for data")]
    NoSpace,
    /// No space is left for metadata (`ENOSPC`). `df -i` shows the free space for metadata.
    #[error(
        "no space left for metadata, which are names and where files lie (df -i shows it): remove files, or parts of files in many pieces"
    )]
    NoMetadataSpace,
    /// A device is stored in a file, and the host's file system with that file is full (`ENOSPC`). The text is a
    /// message for the user.
    #[error("{0}")]
    HostFull(String),
    /// The name has more than 255 bytes (`ENAMETOOLONG`).
    #[error("the name is longer than 255 bytes")]
    NameTooLong,
    /// The file would be larger than the maximum size of a file, 2³² − 1 blocks of 4 KiB (`EFBIG`).
    #[error("the file would be larger than this file system can hold in one file")]
    TooLarge,
    /// The arguments of the operation are invalid. The text says why.
    #[error("{0}")]
    Invalid(&'static str),
    /// The file has no extended attribute of this name (`ENODATA`).
    #[error("no such extended attribute")]
    NoAttribute,
    /// The buffer is too small for the value of an extended attribute, or the name of an extended attribute is empty or
    /// longer than 255 bytes (`ERANGE`).
    #[error("the buffer is too small for the value")]
    Range,
    /// The offset is not before the end of the file, or `SEEK_DATA` found no data at or after the offset (`ENXIO`).
    #[error("no data at or after this offset")]
    NoData,
    /// This file system, or its store, does not support the operation. The text names the operation or the reason.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    /// The operation is not permitted, for any user or for this one (`EPERM`). The text gives the rule.
    #[error("not permitted: {0}")]
    NotPermitted(&'static str),
    /// Access is denied (`EACCES`). The text gives the rule.
    #[error("access denied: {0}")]
    Access(&'static str),
    /// The file system is mounted read-only, and the operation would change it (`EROFS`).
    #[error("the file system is mounted read-only")]
    ReadOnly,
    /// The file has the maximum number of hard links already, or the directory the maximum number of subdirectories
    /// (`EMLINK`).
    #[error("the file has as many links as it can have")]
    TooManyLinks,
    /// The inode number names no existing file: the file was removed (`ESTALE`).
    #[error("the file is gone")]
    Stale,
    /// The caller stopped a long task, such as a scrub, before its end. The results of the task so far remain.
    #[error("stopped; the work done so far is kept")]
    Stopped,
    /// Another task that excludes this one is running, for example another repair (`EBUSY`).
    #[error("busy with another such task")]
    Busy,
    /// A block does not match its checksum and could not be reconstructed.
    #[error("block {block} of the data device is damaged: its contents do not match their checksum")]
    Damaged {
        /// Number of the block of 4 KiB on the data device, counted from 0. Blocks of an array have one numbering for
        /// all drives.
        block: u64,
    },
    /// A device failed an operation, or refused it.
    #[error("{0}")]
    Device(#[from] DeviceFault),
    /// A device, or a part of the file system, holds no file system of Imbrex, or one that cannot be used; or a device
    /// or option does not suit the request (`EIO`).
    #[error("{place}: {reason}")]
    Format {
        /// Name of the device, or of the part of the file system, as shown to the user.
        place: String,
        /// Description of the problem and of its remedy, as a message for the user.
        reason: String,
    },
}

impl FsError {
    /// Returns the error number of Linux (`errno`) for this error. It is positive. Damaged blocks, device faults and
    /// format errors are `EIO`.
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
