//! Reading and changing the attributes and extended attributes of files.

use super::Files;
use crate::core::{CoreParts, Fs};
use crate::error::FsError;
use crate::format::change::{Attributes, Change, Inode, LIST_BYTES};
use crate::format::name::NAME_BYTES_MAX;

/// Largest value of an extended attribute, in bytes.
const VALUE_BYTES_MAX: usize = 64 << 10;

/// Attributes of a file as `stat` reports them, including changes that are only in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attr {
    /// Inode number of the file.
    pub inode: Inode,
    /// Attributes: mode, owner, links, size, times. The size of a directory is 32 bytes for each name, that of a
    /// symbolic link the length of its target.
    pub attributes: Attributes,
    /// Space that the file takes, in units of 512 bytes. Space that is reserved for unwritten or preallocated data is
    /// included; a copy in the hot zone is not.
    pub blocks: u64,
}

/// Changes of a file's attributes. An attribute that is `None` keeps its value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SetAttr {
    /// New permission bits, including set-user-ID, set-group-ID and sticky. The file type bits are ignored. `None`
    /// keeps the permissions.
    pub mode: Option<u32>,
    /// New user ID of the owner. `None` keeps the owner.
    pub uid: Option<u32>,
    /// New ID of the owning group. `None` keeps the group.
    pub gid: Option<u32>,
    /// New size of a regular file in bytes. A longer file ends in a hole that reads as zeros. `None` keeps the size.
    pub size: Option<u64>,
    /// New time of the last read (atime), in nanoseconds since 1970. `None` keeps the time.
    pub accessed_ns: Option<i64>,
    /// New time of the last change of the contents (mtime), in nanoseconds since 1970. `None` keeps the time, unless
    /// the size is set: then the time becomes now.
    pub modified_ns: Option<i64>,
    /// Whether to clear the set-user-ID bit, and the set-group-ID bit if the group may execute the file. The kernel
    /// asks for this when another user writes.
    pub drops_set_id: bool,
}

/// Condition under which an extended attribute is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetAttribute {
    /// The attribute is created if it is missing, and replaced if it exists.
    Any,
    /// The attribute is created. An existing one is an error (`XATTR_CREATE`).
    Create,
    /// The attribute is replaced. A missing one is an error (`XATTR_REPLACE`).
    Replace,
}

impl Files<'_> {
    /// Returns the attributes of a file, including changes that are not written yet.
    pub(crate) fn attr(self, inode: Inode) -> Result<Attr, FsError> {
        let namespace = self.0.namespace.borrow();
        let node = namespace.node(inode)?;
        let mut attributes = node.attributes;
        let mut blocks = node.extents.blocks();
        let preallocated = self.preallocated_unlent(inode);
        if let Some(open) = self.0.lifetimes.open_of(inode) {
            let (leaving, staged) = (open.in_flight.borrow(), open.staged.borrow());
            if let Some(leaving) = leaving.as_ref() {
                blocks += leaving.blocks.with_bytes();
            }
            if let Some(staged) = staged.as_ref() {
                attributes.size = staged.size;
                attributes.modified_ns = staged.modified_ns;
                attributes.changed_ns = attributes.changed_ns.max(staged.modified_ns);
                let held = staged.held.blocks;
                blocks = if staged.goes_on { blocks + held } else { blocks.max(held) };
            }
        }
        if let Some(directory) = node.directory() {
            attributes.size = directory.len() as u64 * 32;
        }
        if let Some(target) = node.target() {
            attributes.size = target.len() as u64;
        }
        Ok(Attr { inode, attributes, blocks: (blocks + preallocated) * 8 })
    }
}

impl Fs {
    /// Returns the attributes of file `inode`, including changes that are only in memory.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist.
    pub fn attr(&self, inode: Inode) -> Result<Attr, FsError> {
        self.0.files().attr(inode)
    }

    /// Changes attributes of file `inode`, sets its time of change (ctime) to now, and returns the new attributes. The
    /// size is changed first, because that may fail for lack of space. If it fails, no other attribute is changed.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist, [`FsError::ReadOnly`] on a read-only mount. With a size:
    /// [`FsError::IsDirectory`], [`FsError::Invalid`] for another file that is not regular, [`FsError::TooLarge`],
    /// [`FsError::NoSpace`].
    pub async fn set_attr(&self, inode: Inode, set: &SetAttr) -> Result<Attr, FsError> {
        let is_shorter = |size| self.0.files().size_recorded(inode) >= size;
        if set.size.is_some_and(is_shorter) {
            self.0.begin_to_free().await?
        } else {
            self.0.begin().await?
        }
        if let Some(size) = set.size {
            self.0.files().truncate(inode, size).await?;
        }
        let core = &self.0;
        let now = core.time_ns();
        let mut attributes = core.namespace.borrow().node(inode)?.attributes;
        if let Some(mode) = set.mode {
            attributes.mode = attributes.mode & !0o7777 | mode & 0o7777;
        }
        if set.drops_set_id {
            attributes.mode &= !dropped_by_write(attributes.mode);
        }
        attributes.uid = set.uid.unwrap_or(attributes.uid);
        attributes.gid = set.gid.unwrap_or(attributes.gid);
        attributes.accessed_ns = set.accessed_ns.unwrap_or(attributes.accessed_ns);
        if let Some(modified_ns) = set.modified_ns {
            attributes.modified_ns = modified_ns;
            if let Some(open) = self.0.files().open_of(inode) {
                for place in [&open.in_flight, &open.staged] {
                    if let Some(staged) = place.borrow_mut().as_mut() {
                        staged.modified_ns = modified_ns;
                    }
                }
            }
        }
        attributes.changed_ns = now;
        core.record(&[Change::Node { inode, attributes }]);
        self.0.committer().commit_if_much().await?;
        core.files().attr(inode)
    }

    /// Returns the value of the extended attribute `name` of file `inode`.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`] if the file has no such attribute, [`FsError::Stale`] if the file does not exist.
    pub fn attribute(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, FsError> {
        let namespace = self.0.namespace.borrow();
        namespace.node(inode)?.attribute(name).map(<[u8]>::to_vec).ok_or(FsError::NoAttribute)
    }

    /// Returns the names of all extended attributes of file `inode`, in byte order.
    ///
    /// # Errors
    /// [`FsError::Stale`] if the file does not exist.
    pub fn attributes(&self, inode: Inode) -> Result<Vec<Vec<u8>>, FsError> {
        let namespace = self.0.namespace.borrow();
        Ok(namespace.node(inode)?.attributes_extended().map(|(name, _)| name.to_vec()).collect())
    }

    /// Sets the extended attribute `name` of file `inode` to `value`, and its time of change (ctime) to now.
    ///
    /// # Errors
    /// [`FsError::Range`] if `name` is empty or has more than 255 bytes, [`FsError::NoSpace`] if `value` has more than
    /// 64 KiB, [`FsError::NoMetadataSpace`] if the metadata have no space for it. [`FsError::Exists`] or
    /// [`FsError::NoAttribute`] if `how` does not allow the operation. [`FsError::Stale`] if the file does not exist,
    /// [`FsError::ReadOnly`] on a read-only mount.
    pub async fn set_attribute(
        &self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        how: SetAttribute,
    ) -> Result<(), FsError> {
        self.0.begin().await?;
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(FsError::Range);
        }
        if value.len() > VALUE_BYTES_MAX {
            return Err(FsError::NoSpace);
        }
        let core = &self.0;
        core.check_metadata_room(LIST_BYTES + (name.len() + value.len()) as u64)?;
        let mut attributes = {
            let namespace = core.namespace.borrow();
            let node = namespace.node(inode)?;
            match (how, node.attribute(name).is_some()) {
                (SetAttribute::Create, true) => return Err(FsError::Exists),
                (SetAttribute::Replace, false) => return Err(FsError::NoAttribute),
                _ => node.attributes,
            }
        };
        attributes.changed_ns = core.time_ns();
        let change = Change::Attribute { inode, name: name.into(), value: value.into() };
        core.record(&[Change::Node { inode, attributes }, change]);
        self.0.hot_tier().attribute_changed(inode, name).await;
        self.0.committer().commit_if_much().await
    }

    /// Removes the extended attribute `name` of file `inode`, and sets the file's time of change (ctime) to now.
    ///
    /// # Errors
    /// [`FsError::NoAttribute`] if the file has no such attribute, [`FsError::Stale`] if the file does not exist,
    /// [`FsError::ReadOnly`] on a read-only mount.
    pub async fn remove_attribute(&self, inode: Inode, name: &[u8]) -> Result<(), FsError> {
        self.0.begin_to_free().await?;
        let core = &self.0;
        let mut attributes = {
            let namespace = core.namespace.borrow();
            let node = namespace.node(inode)?;
            node.attribute(name).ok_or(FsError::NoAttribute)?;
            node.attributes
        };
        attributes.changed_ns = core.time_ns();
        core.record(&[Change::Node { inode, attributes }, Change::DropAttribute { inode, name: name.into() }]);
        self.0.hot_tier().attribute_changed(inode, name).await;
        self.0.committer().commit_if_much().await
    }
}

/// Returns the mode bits that a write by another user clears: set-user-id, and set-group-id if the group may execute.
fn dropped_by_write(mode: u32) -> u32 {
    0o4000 | if mode & 0o010 != 0 { 0o2000 } else { 0 }
}
