//! Requests of the kernel that take several operations of the core.

use imbrex_fs::core::{Allocate, Attr, Caller, SetAttr, SetAttribute};
use imbrex_fs::format::change::Inode;
use imbrex_fs::{Fs, FsError};

use crate::access_list::{ACCESS, AccessList, DEFAULT};
use crate::attribute_name;
use crate::groups::Asker;

const FORMAT: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;
const SET_GROUP_ID: u32 = 0o2000;
const SET_IDS: u32 = 0o6000;
const GROUP_EXECUTES: u32 = 0o010;
/// Maximum number of bytes copied in one piece, and in one request.
const COPY_PIECE_BYTES: u64 = 1 << 20;
const COPY_BYTES_MAX: u64 = 16 << 20;
/// The attribute with the capabilities of an executable file; a write removes them.
const CAPABILITY: &[u8] = b"security.capability";

/// A file to be created.
pub(crate) struct New {
    /// Inode of the directory in which the file is created.
    pub parent: Inode,
    /// Name of the new file in its directory.
    pub name: Vec<u8>,
    /// File type and permissions of the new file, in the encoding of `st_mode`, before the umask is applied.
    pub mode: u32,
    /// Mask of the permission bits that are removed from `mode`. Not used if the directory has a default access list.
    pub umask: u32,
    /// Device number (`st_rdev`) of a new device node; not used for other files.
    pub rdev: u32,
    /// User ID and group ID of the process that creates the file.
    pub caller: Caller,
}

/// Creates a file of any kind but a symbolic link, with the access list that follows from its directory's default list.
pub(crate) async fn make(fs: &Fs, new: &New) -> Result<Attr, FsError> {
    let default = fs.attribute(new.parent, DEFAULT).ok();
    let (list, mode) = match default.as_deref().and_then(AccessList::decode) {
        Some(list) => {
            let (list, mode) = list.for_new(new.mode);
            (Some(list).filter(|list| !list.is_minimal()), mode)
        }
        None => (None, new.mode & !new.umask),
    };
    let is_directory = mode & FORMAT == DIRECTORY;
    let attr = if is_directory {
        fs.make_directory(new.parent, &new.name, mode, new.caller).await?
    } else {
        fs.make_node(new.parent, &new.name, mode, new.rdev, new.caller).await?
    };
    if let Some(list) = list {
        later(fs, async || fs.set_attribute(attr.inode, ACCESS, &list.encode(), SetAttribute::Any).await).await?;
    }
    if let Some(default) = default.filter(|_| is_directory) {
        later(fs, async || fs.set_attribute(attr.inode, DEFAULT, &default, SetAttribute::Any).await).await?;
    }
    fs.attr(attr.inode)
}

/// Changes attributes for `asker`. A change of owner removes the set-id bits; so does a change of size by a user other
/// than root.
pub(crate) async fn set_attributes(fs: &Fs, inode: Inode, mut set: SetAttr, asker: Asker) -> Result<Attr, FsError> {
    let is_directory = fs.attr(inode)?.attributes.mode & FORMAT == DIRECTORY;
    let changes_owner = set.uid.is_some() || set.gid.is_some();
    set.drops_set_id = changes_owner && !is_directory;
    if changes_owner || set.size.is_some() {
        drop_capability(fs, inode).await?;
    }
    let mut attr = fs.set_attr(inode, &set).await?;
    if set.size.is_some() && set.mode.is_none() {
        let stranger = Some(asker).filter(Asker::is_stranger);
        later(fs, async || drop_privileges(fs, inode, stranger).await).await?;
        attr = fs.attr(inode)?;
    }
    if let Some(list) = set.mode.and_then(|_| access_list(fs, inode)) {
        let list = list.with_mode(attr.attributes.mode);
        later(fs, async || fs.set_attribute(inode, ACCESS, &list.encode(), SetAttribute::Any).await).await?;
    }
    Ok(attr)
}

/// Performs a later step of a request that has begun. If the host's disk has no space, waits, where the first step
/// would be refused: a delayed request is better than half a request.
pub(crate) async fn later<T>(fs: &Fs, mut step: impl AsyncFnMut() -> Result<T, FsError>) -> Result<T, FsError> {
    loop {
        match step().await {
            Err(FsError::HostFull(_)) => fs.wait_for_space().await,
            outcome => return outcome,
        }
    }
}

fn access_list(fs: &Fs, inode: Inode) -> Option<AccessList> {
    AccessList::decode(&fs.attribute(inode, ACCESS).ok()?)
}

async fn drop_capability(fs: &Fs, inode: Inode) -> Result<(), FsError> {
    match fs.attribute(inode, CAPABILITY) {
        Ok(_) => fs.remove_attribute(inode, CAPABILITY).await,
        Err(_) => Ok(()),
    }
}

/// Removes privileges from a file after a change of its contents, by Linux's rules. Capabilities are always removed. If
/// `stranger`, a user without root's rights, made the change, set-user-id is removed too. So is set-group-id if the
/// group may execute the file or the stranger is not in the group.
pub(crate) async fn drop_privileges(fs: &Fs, inode: Inode, stranger: Option<Asker>) -> Result<(), FsError> {
    drop_capability(fs, inode).await?;
    let (Some(stranger), before) = (stranger, fs.attr(inode)?.attributes) else { return Ok(()) };
    if before.mode & SET_IDS == 0 {
        return Ok(());
    }
    let keeps_group = before.mode & GROUP_EXECUTES == 0 && stranger.keeps_group_id(before.gid);
    let mode = before.mode & !if keeps_group { SET_IDS & !SET_GROUP_ID } else { SET_IDS };
    if mode != before.mode {
        fs.set_attr(inode, &SetAttr { mode: Some(mode), ..SetAttr::default() }).await?;
    }
    Ok(())
}

/// Sets an extended attribute. An access list also changes the mode; a list with no more information than a mode is not
/// stored. An access list removes set-group-id unless `keeps_group_id` returns true for the file's group, like
/// chmod(2).
pub(crate) async fn set_attribute(
    fs: &Fs,
    inode: Inode,
    (name, value): (&[u8], &[u8]),
    how: SetAttribute,
    keeps_group_id: impl FnOnce(u32) -> bool,
) -> Result<(), FsError> {
    let before = fs.attr(inode)?.attributes;
    attribute_name::check_change(name, before.mode)?;
    if name != ACCESS {
        return fs.set_attribute(inode, name, value, how).await;
    }
    let list = AccessList::decode(value).ok_or(FsError::Invalid("not an access list"))?;
    let lost = if before.mode & SET_GROUP_ID != 0 && !keeps_group_id(before.gid) { SET_GROUP_ID } else { 0 };
    let mode = before.mode & 0o7000 & !lost | list.mode();
    fs.set_attr(inode, &SetAttr { mode: Some(mode), ..SetAttr::default() }).await?;
    if !list.is_minimal() {
        return later(fs, async || fs.set_attribute(inode, name, value, how).await).await;
    }
    match later(fs, async || fs.remove_attribute(inode, name).await).await {
        Err(FsError::NoAttribute) => Ok(()),
        other => other,
    }
}

/// Removes an extended attribute of a file.
///
/// # Errors
/// The file cannot have an attribute of this name, or does not have it, or the removal failed.
pub(crate) async fn remove_attribute(fs: &Fs, inode: Inode, name: &[u8]) -> Result<(), FsError> {
    attribute_name::check_change(name, fs.attr(inode)?.attributes.mode)?;
    fs.remove_attribute(inode, name).await
}

/// Returns the allocation that a `mode` of fallocate(2) requests.
///
/// # Errors
/// [`FsError::NotSupported`] for a mode other than those of [`Allocate`].
pub(crate) fn allocation(mode: i32) -> Result<Allocate, FsError> {
    const KEEP: i32 = libc::FALLOC_FL_KEEP_SIZE;
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | KEEP;
    const ZERO: i32 = libc::FALLOC_FL_ZERO_RANGE;
    const ZERO_WITHIN: i32 = ZERO | KEEP;
    match mode {
        0 => Ok(Allocate::Room),
        KEEP => Ok(Allocate::RoomKeepingSize),
        PUNCH => Ok(Allocate::PunchHole),
        ZERO => Ok(Allocate::Zeros),
        ZERO_WITHIN => Ok(Allocate::ZerosWithin),
        _ => Err(FsError::NotSupported("this kind of allocation")),
    }
}

/// Copies up to `length` bytes, and at most 16 MiB, from one file to another. `from` and `to` are pairs of an inode and
/// a byte offset. Returns the number of bytes copied; fewer than asked at the end of the file or after an error.
///
/// # Errors
/// Nothing could be copied.
pub(crate) async fn copy(fs: &Fs, from: (Inode, u64), to: (Inode, u64), length: u64) -> Result<u64, FsError> {
    let mut done = 0;
    while done < length.min(COPY_BYTES_MAX) {
        let count = (length.min(COPY_BYTES_MAX) - done).min(COPY_PIECE_BYTES);
        let outcome = copy_piece(fs, (from.0, from.1 + done), (to.0, to.1 + done), count).await;
        match outcome {
            Ok(0) => break,
            Ok(copied) => done += copied,
            // A partial copy is a success.
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

async fn copy_piece(fs: &Fs, from: (Inode, u64), to: (Inode, u64), count: u64) -> Result<u64, FsError> {
    let bytes = fs.read(from.0, from.1, count as usize).await?;
    fs.write(to.0, to.1, &bytes).await?;
    Ok(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fallocate_is_told_by_its_mode() {
        assert_eq!(allocation(0), Ok(Allocate::Room));
        assert_eq!(allocation(1), Ok(Allocate::RoomKeepingSize));
        assert_eq!(allocation(3), Ok(Allocate::PunchHole));
        assert_eq!(allocation(0x10), Ok(Allocate::Zeros));
        assert_eq!(allocation(0x11), Ok(Allocate::ZerosWithin));
        for mode in [2, 8, 0x20, 0x40, 0x12] {
            assert!(matches!(allocation(mode), Err(FsError::NotSupported(_))), "{mode:#x}");
        }
    }
}
