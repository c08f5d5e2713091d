//! Operations on names: look up, create, link, rename, remove, list.
//!
//! The kernel checks permissions (`default_permissions`). The functions here check only whether an operation is
//! possible.

use super::Files;
use crate::core::Attr;
use crate::core::{CoreParts, Fs};
use crate::error::FsError;
use crate::format::change::{Attributes, Change, ENTRY_BYTES, Inode, LIST_BYTES, NODE_BYTES};
use crate::format::file_type::FORMAT;
use crate::namespace::{Namespace, ROOT};

/// Upper bound of a file's link count.
const LINKS_MAX: u32 = 65_000;
/// Upper bound of the length of a symbolic link's target, in bytes.
const TARGET_BYTES_MAX: usize = 4095;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const SET_GROUP_ID: u32 = 0o2000;

/// User and group that create a file. They become its owner, unless the directory has the set-group-ID bit: then the
/// file gets the group of the directory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Caller {
    /// User ID of the process that creates the file.
    pub uid: u32,
    /// Group ID of the process that creates the file.
    pub gid: u32,
}

/// Mode of [`Fs::rename`], with the flag of `renameat2` in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rename {
    /// A file or an empty directory that has the new name loses it (no flag).
    Replace,
    /// The rename fails with [`FsError::Exists`] if a file has the new name (`RENAME_NOREPLACE`).
    NoReplace,
    /// The two files exchange their names (`RENAME_EXCHANGE`). Both must exist.
    Exchange,
    /// Like [`Rename::Replace`]; a new whiteout, a character device 0:0 that this caller owns, gets the old name
    /// (`RENAME_WHITEOUT`).
    Whiteout(Caller),
}

/// Entry of a directory listing ([`Fs::list`]).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Offset to pass to [`Fs::list`] to continue behind this entry.
    pub next: u64,
    /// Name of the entry, as bytes; `.` and `..` included.
    pub name: Vec<u8>,
    /// Inode number of the file with this name.
    pub inode: Inode,
    /// File type and permissions of the file, in the encoding of `st_mode`.
    pub mode: u32,
}

impl Files<'_> {
    fn found(self, directory: Inode, name: &[u8]) -> Result<(u64, Inode), FsError> {
        self.0.namespace.borrow().lookup(directory, name)?.ok_or(FsError::NotFound)
    }

    /// Returns the change of directory `inode` after a change of its entries: new times, and `more_links` added to its
    /// link count.
    fn touched(self, namespace: &Namespace, inode: Inode, more_links: i32) -> Result<Change, FsError> {
        let mut attributes = namespace.node(inode)?.attributes;
        if attributes.links == 0 {
            return Err(FsError::NotFound);
        }
        attributes.links = attributes.links.saturating_add_signed(more_links);
        (attributes.modified_ns, attributes.changed_ns) = (self.0.time_ns(), self.0.time_ns());
        Ok(Change::Node { inode, attributes })
    }

    /// Returns the change of file `inode` when it loses one name, and whether that name was the last.
    fn unlinked(self, namespace: &Namespace, inode: Inode) -> Result<(Change, bool), FsError> {
        let node = namespace.node(inode)?;
        let mut attributes = node.attributes;
        attributes.links = if node.is_directory() { 0 } else { attributes.links - 1 };
        attributes.changed_ns = self.0.time_ns();
        Ok((Change::Node { inode, attributes }, attributes.links == 0))
    }
}

fn check_name(name: &[u8]) -> Result<(), FsError> {
    match name {
        b"" => Err(FsError::NotFound),
        b"." | b".." => Err(FsError::Exists),
        _ if name.contains(&b'/') || name.contains(&0) => Err(FsError::Invalid("a name with '/' or NUL in it")),
        _ => Ok(()),
    }
}

impl Fs {
    /// Returns the attributes of the file called `name` in `directory`. The names `.` and `..` are found, too. The
    /// lookup count of the kernel is not changed ([`Fs::add_lookup`]).
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there is no such name, [`FsError::NameTooLong`] if it has more than 255 bytes,
    /// [`FsError::NotDirectory`] if `directory` is none, [`FsError::Stale`] if it does not exist.
    pub fn lookup(&self, directory: Inode, name: &[u8]) -> Result<Attr, FsError> {
        let inode = match name {
            b"." => directory,
            b".." => self.0.namespace.borrow().node(directory)?.attributes.parent,
            _ => self.0.files().found(directory, name)?.1,
        };
        self.0.files().attr(inode)
    }

    /// Creates a regular file, a device node, a pipe or a socket called `name` in `directory`, and returns its
    /// attributes. `mode` has the encoding of `st_mode`, with the file type; `rdev` is the device number of a device
    /// node. The change is durable with the next commit.
    ///
    /// # Errors
    /// [`FsError::Exists`] if the name exists, also for `.` and `..`. [`FsError::NotFound`] if it is empty or the
    /// directory was removed, [`FsError::NameTooLong`] if it has more than 255 bytes, [`FsError::Invalid`] if it
    /// contains `/` or NUL. [`FsError::NotDirectory`] or [`FsError::Stale`] for a wrong `directory`.
    /// [`FsError::NoMetadataSpace`] if the metadata have no space, [`FsError::HostFull`] if a device waits for space,
    /// [`FsError::ReadOnly`] on a read-only mount.
    pub async fn make_node(
        &self,
        directory: Inode,
        name: &[u8],
        mode: u32,
        rdev: u32,
        caller: Caller,
    ) -> Result<Attr, FsError> {
        self.0.files().add(directory, name, mode, rdev, caller, None).await
    }

    /// Creates the directory `name` in directory `parent`, and returns its attributes. Only the lower 12 bits of
    /// `mode`, the permissions, are used. The new directory inherits the set-group-ID bit and the group of a `parent`
    /// that has this bit.
    ///
    /// # Errors
    /// [`FsError::Exists`] if the name exists, also for `.` and `..`; [`FsError::NotFound`], [`FsError::NameTooLong`]
    /// or [`FsError::Invalid`] for a name that is not allowed. [`FsError::TooManyLinks`] if `parent` has 65,000 links,
    /// two and one for each subdirectory. Otherwise as for [`Fs::make_node`]: a wrong name or directory, no space for
    /// metadata, a device that waits for space, or a read-only mount.
    pub async fn make_directory(&self, parent: Inode, name: &[u8], mode: u32, caller: Caller) -> Result<Attr, FsError> {
        self.0.files().add(parent, name, DIRECTORY | mode & 0o7777, 0, caller, None).await
    }

    /// Creates the symbolic link `name` to the path `target` in `directory`, and returns its attributes. The path is
    /// not checked.
    ///
    /// # Errors
    /// [`FsError::Exists`] if the name exists. [`FsError::NotFound`] if `target` is empty, [`FsError::NameTooLong`] if
    /// it has more than 4,095 bytes. Otherwise as for [`Fs::make_node`]: a wrong name or directory, no space for
    /// metadata, a device that waits for space, or a read-only mount.
    pub async fn make_symlink(
        &self,
        directory: Inode,
        name: &[u8],
        target: &[u8],
        caller: Caller,
    ) -> Result<Attr, FsError> {
        match target.len() {
            0 => Err(FsError::NotFound),
            1..=TARGET_BYTES_MAX => self.0.files().add(directory, name, SYMLINK | 0o777, 0, caller, Some(target)).await,
            _ => Err(FsError::NameTooLong),
        }
    }

    /// Gives file `inode` the additional name `name` in `directory` (a hard link), and returns its attributes. Writes
    /// back the file's data first, so that a name that is found after a power cut belongs to a whole file.
    ///
    /// # Errors
    /// [`FsError::Invalid`] for a directory or a name with `/` or NUL, [`FsError::Exists`] if the name exists,
    /// [`FsError::TooManyLinks`] if the file has 65,000 names. Otherwise as for [`Fs::make_node`]: a wrong name or
    /// directory, no space for metadata, a device that waits for space, or a read-only mount. Or the error of the
    /// write-back.
    pub async fn link(&self, inode: Inode, directory: Inode, name: &[u8]) -> Result<Attr, FsError> {
        self.0.begin().await?;
        check_name(name)?;
        self.0.write_back().write_back_unless_full(inode).await?;
        let core = &self.0;
        core.check_metadata_room(ENTRY_BYTES + name.len() as u64)?;
        let changes = {
            let namespace = core.namespace.borrow();
            let node = namespace.node(inode)?;
            if node.is_directory() {
                return Err(FsError::Invalid("a directory has one name only"));
            }
            if namespace.lookup(directory, name)?.is_some() {
                return Err(FsError::Exists);
            }
            let mut attributes = node.attributes;
            if attributes.links >= LINKS_MAX {
                return Err(FsError::TooManyLinks);
            }
            attributes.links += 1;
            attributes.changed_ns = core.time_ns();
            let cookie = namespace.new_cookie(directory, name)?;
            let entry = Change::Entry { directory, cookie, inode, name: name.into() };
            [core.files().touched(&namespace, directory, 0)?, Change::Node { inode, attributes }, entry]
        };
        let hint = core.hot_tier().hint_of(inode);
        core.record(&changes);
        self.0.hot_tier().hint_may_differ(inode, hint).await;
        self.0.committer().commit_if_much().await?;
        core.files().attr(inode)
    }

    /// Removes the name `name` of a file in `directory`. The file itself is removed once it has no name, no open handle
    /// and no lookup count of the kernel.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there is no such name, [`FsError::IsDirectory`] if it is a directory,
    /// [`FsError::NotDirectory`] or [`FsError::Stale`] for a wrong `directory`, [`FsError::NameTooLong`] if `name` has
    /// more than 255 bytes. [`FsError::HostFull`] if a device waits for space and the log has no room,
    /// [`FsError::ReadOnly`] on a read-only mount.
    pub async fn unlink(&self, directory: Inode, name: &[u8]) -> Result<(), FsError> {
        self.0.begin_to_free().await?;
        let core = &self.0;
        let (inode, changes, was_last) = {
            let namespace = core.namespace.borrow();
            let (cookie, inode) = core.files().found(directory, name)?;
            if namespace.node(inode)?.is_directory() {
                return Err(FsError::IsDirectory);
            }
            let (unlinked, was_last) = core.files().unlinked(&namespace, inode)?;
            let changes =
                [Change::DropEntry { directory, cookie }, core.files().touched(&namespace, directory, 0)?, unlinked];
            (inode, changes, was_last)
        };
        let hint = core.hot_tier().hint_of(inode);
        core.record(&changes);
        if was_last {
            self.0.files().drop_if_unused(inode);
        } else {
            self.0.hot_tier().hint_may_differ(inode, hint).await;
        }
        self.0.committer().commit_if_much().await
    }

    /// Removes the empty directory called `name` in directory `parent`.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there is no such name, [`FsError::NotDirectory`] if it is no directory,
    /// [`FsError::NotEmpty`] if the directory has names, or for the name `..`, [`FsError::Invalid`] for the name `.`.
    /// Otherwise as for [`Fs::unlink`]: a wrong `parent`, a name that is too long, a device that waits for space, or a
    /// read-only mount.
    pub async fn remove_directory(&self, parent: Inode, name: &[u8]) -> Result<(), FsError> {
        self.0.begin_to_free().await?;
        if name == b"." {
            return Err(FsError::Invalid("a directory cannot be removed as '.'"));
        }
        if name == b".." {
            return Err(FsError::NotEmpty);
        }
        let core = &self.0;
        let (inode, changes) = {
            let namespace = core.namespace.borrow();
            let (cookie, inode) = core.files().found(parent, name)?;
            if !namespace.directory(inode)?.is_empty() {
                return Err(FsError::NotEmpty);
            }
            let (unlinked, _) = core.files().unlinked(&namespace, inode)?;
            let entry = Change::DropEntry { directory: parent, cookie };
            (inode, [entry, core.files().touched(&namespace, parent, -1)?, unlinked])
        };
        core.record(&changes);
        self.0.files().drop_if_unused(inode);
        self.0.committer().commit_if_much().await
    }

    /// Renames the file or directory `name` in directory `from` to `new_name` in directory `to`. Writes back the file's
    /// data first. If both names belong to the same file, nothing is changed.
    ///
    /// # Errors
    /// [`FsError::NotFound`] if there is no `name`, or no `new_name` to exchange with; [`FsError::Exists`] with
    /// [`Rename::NoReplace`] if `new_name` exists. [`FsError::NotDirectory`], [`FsError::IsDirectory`] or
    /// [`FsError::NotEmpty`] if the new name belongs to a file that cannot be replaced. [`FsError::Invalid`] for `.`
    /// and `..`, or if a directory would move below itself. [`FsError::TooManyLinks`] if `to` has 65,000 links.
    /// Otherwise as for [`Fs::make_node`]: a wrong name or directory, no space for metadata, a device that waits for
    /// space, or a read-only mount. Or the error of the write-back.
    pub async fn rename(
        &self,
        from: Inode,
        name: &[u8],
        to: Inode,
        new_name: &[u8],
        how: Rename,
    ) -> Result<(), FsError> {
        self.0.begin().await?;
        for name in [name, new_name] {
            if matches!(name, b"." | b"..") {
                return Err(FsError::Invalid("'.' and '..' cannot be renamed"));
            }
        }
        check_name(new_name)?;
        self.0.write_back().write_back_unless_full(self.0.files().found(from, name)?.1).await?;
        let core = &self.0;
        let mut bytes = ENTRY_BYTES + new_name.len() as u64;
        if let Rename::Whiteout(_) = how {
            bytes += NODE_BYTES;
            self.0.files().reserve_generations().await?;
        }
        core.check_metadata_room(bytes)?;
        let (changes, gone, named) = {
            let namespace = core.namespace.borrow();
            let (cookie, inode) = core.files().found(from, name)?;
            let other = namespace.lookup(to, new_name)?;
            match (how, other) {
                (Rename::NoReplace, Some(_)) => return Err(FsError::Exists),
                (Rename::Exchange, None) => return Err(FsError::NotFound),
                _ => {}
            }
            if other.is_some_and(|(_, other)| other == inode) {
                return Ok(());
            }
            check_tree(&namespace, inode, from, to, other.map(|(_, other)| other), how)?;
            let moving = Moving { from, cookie, inode, to, new_name, name };
            let exchanged = other.filter(|_| how == Rename::Exchange);
            let (changes, gone) = match exchanged {
                Some(other) => (core.files().exchanged(&namespace, &moving, other)?, None),
                None => core.files().moved(&namespace, &moving, other, how)?,
            };
            // The hint of the file that had the new name may change, too: it has another name, one less, or is gone.
            (changes, gone, [Some(inode), other.map(|(_, other)| other)])
        };
        let hints = named.map(|inode| inode.map(|inode| (inode, core.hot_tier().hint_of(inode))));
        core.record(&changes);
        for (inode, before) in hints.into_iter().flatten() {
            self.0.hot_tier().hint_may_differ(inode, before).await;
        }
        if let Some(gone) = gone {
            self.0.files().drop_if_unused(gone);
        }
        self.0.committer().commit_if_much().await
    }

    /// Returns up to `count` entries of a directory from offset `from` on: 0 for the first entries, or the
    /// [`Listed::next`] of an entry. The entries `.` and `..` come first, the others in the order of hashes of their
    /// names. Returns none at the end.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`] if the file is no directory, [`FsError::Stale`] if it does not exist.
    pub fn list(&self, directory: Inode, from: u64, count: usize) -> Result<Vec<Listed>, FsError> {
        self.0.files().list(directory, from, count)
    }

    /// Returns the target path of symbolic link `inode`.
    ///
    /// # Errors
    /// [`FsError::Invalid`] if the file is no symbolic link, [`FsError::Stale`] if it does not exist.
    pub fn read_link(&self, inode: Inode) -> Result<Vec<u8>, FsError> {
        let namespace = self.0.namespace.borrow();
        let target = namespace.node(inode)?.target().map(<[u8]>::to_vec);
        target.ok_or(FsError::Invalid("not a symbolic link"))
    }
}

impl Files<'_> {
    async fn add(
        self,
        directory: Inode,
        name: &[u8],
        mode: u32,
        rdev: u32,
        caller: Caller,
        target: Option<&[u8]>,
    ) -> Result<Attr, FsError> {
        self.0.begin().await?;
        check_name(name)?;
        let core = &self.0;
        let bytes = NODE_BYTES + ENTRY_BYTES + LIST_BYTES + (name.len() + target.map_or(0, <[u8]>::len)) as u64;
        core.check_metadata_room(bytes)?;
        self.reserve_generations().await?;
        let (inode, changes) = {
            let namespace = core.namespace.borrow();
            if namespace.lookup(directory, name)?.is_some() {
                return Err(FsError::Exists);
            }
            let (inode, generation) = namespace.next_number()?;
            let is_directory = mode & FORMAT == DIRECTORY;
            let above = namespace.node(directory)?.attributes;
            if is_directory && above.links >= LINKS_MAX {
                return Err(FsError::TooManyLinks);
            }
            let touched = core.files().touched(&namespace, directory, i32::from(is_directory))?;
            let mut attributes = new_attributes(core.time_ns(), mode, rdev, caller, &above);
            attributes.generation = generation;
            attributes.links = if is_directory { 2 } else { 1 };
            attributes.parent = if is_directory { directory } else { 0 };
            let cookie = namespace.new_cookie(directory, name)?;
            let entry = Change::Entry { directory, cookie, inode, name: name.into() };
            let mut changes = vec![touched, Change::Node { inode, attributes }, entry];
            changes.extend(target.map(|target| Change::Target { inode, target: target.into() }));
            (inode, changes)
        };
        core.record(&changes);
        self.0.committer().commit_if_much().await?;
        core.files().attr(inode)
    }

    /// Returns up to `count` entries of a directory, from offset `from` on. The offset is 0 or a [`Listed::next`].
    pub(in crate::core) fn list(self, directory: Inode, from: u64, count: usize) -> Result<Vec<Listed>, FsError> {
        let namespace = self.0.namespace.borrow();
        let node = namespace.node(directory)?;
        let entries = node.directory().ok_or(FsError::NotDirectory)?;
        let mut listed = Vec::new();
        for (place, name, inode) in [(0, ".", directory), (1, "..", node.attributes.parent)] {
            if from <= place {
                let mode = namespace.get(inode).map_or(DIRECTORY, |node| node.attributes.mode);
                listed.push(Listed { next: place + 1, name: name.into(), inode, mode });
            }
        }
        for (cookie, entry) in entries.entries_from(from) {
            if listed.len() >= count {
                break;
            }
            let mode = namespace.get(entry.inode).map_or(0, |node| node.attributes.mode);
            listed.push(Listed { next: cookie + 1, name: entry.name.to_vec(), inode: entry.inode, mode });
        }
        listed.truncate(count);
        Ok(listed)
    }
}

/// The old and the new place of a name that is being moved.
struct Moving<'a> {
    from: Inode,
    cookie: u64,
    inode: Inode,
    name: &'a [u8],
    to: Inode,
    new_name: &'a [u8],
}

impl Files<'_> {
    /// Returns the changes of a rename, and the file that loses its last name by it, if there is one.
    fn moved(
        self,
        namespace: &Namespace,
        moving: &Moving<'_>,
        other: Option<(u64, Inode)>,
        how: Rename,
    ) -> Result<(Vec<Change>, Option<Inode>), FsError> {
        let &Moving { from, cookie, inode, to, new_name, name } = moving;
        let is_directory = namespace.node(inode)?.is_directory();
        let mut changes = match how {
            Rename::Whiteout(caller) => self.whiteout(namespace, (from, cookie, name), caller)?,
            _ => vec![Change::DropEntry { directory: from, cookie }],
        };
        let mut gone = None;
        let mut links = [0, 0];
        if let Some((_, replaced)) = other {
            let (unlinked, was_last) = self.unlinked(namespace, replaced)?;
            changes.push(unlinked);
            gone = Some(replaced).filter(|_| was_last);
            links[1] -= i32::from(namespace.node(replaced)?.is_directory());
        }
        if is_directory {
            (links[0], links[1]) = (links[0] - 1, links[1] + 1);
        }
        self.push_directories(namespace, (from, links[0]), (to, links[1]), &mut changes)?;
        changes.push(self.changed(namespace, inode, to)?);
        let cookie = match other {
            Some((cookie, _)) => cookie,
            None => namespace.new_cookie(to, new_name)?,
        };
        changes.push(Change::Entry { directory: to, cookie, inode, name: new_name.into() });
        Ok((changes, gone))
    }

    /// Returns the changes that put a new whiteout in the place of a name.
    fn whiteout(
        self,
        namespace: &Namespace,
        (directory, cookie, name): (Inode, u64, &[u8]),
        caller: Caller,
    ) -> Result<Vec<Change>, FsError> {
        let (inode, generation) = namespace.next_number()?;
        let above = namespace.node(directory)?.attributes;
        let made = new_attributes(self.0.time_ns(), CHARACTER_DEVICE, 0, caller, &above);
        let attributes = Attributes { generation, links: 1, ..made };
        let entry = Change::Entry { directory, cookie, inode, name: name.into() };
        Ok(vec![Change::Node { inode, attributes }, entry])
    }

    fn exchanged(
        self,
        namespace: &Namespace,
        moving: &Moving<'_>,
        (other_cookie, other): (u64, Inode),
    ) -> Result<Vec<Change>, FsError> {
        let &Moving { from, cookie, inode, to, new_name, name } = moving;
        let is_directory = |inode| namespace.node(inode).map(|node| i32::from(node.is_directory()));
        let gained = is_directory(inode)? - is_directory(other)?;
        let mut changes = Vec::new();
        self.push_directories(namespace, (from, -gained), (to, gained), &mut changes)?;
        changes.push(self.changed(namespace, inode, to)?);
        changes.push(self.changed(namespace, other, from)?);
        changes.push(Change::Entry { directory: to, cookie: other_cookie, inode, name: new_name.into() });
        changes.push(Change::Entry { directory: from, cookie, inode: other, name: name.into() });
        Ok(changes)
    }

    fn push_directories(
        self,
        namespace: &Namespace,
        (from, from_links): (Inode, i32),
        (to, to_links): (Inode, i32),
        changes: &mut Vec<Change>,
    ) -> Result<(), FsError> {
        if from == to {
            changes.push(self.touched(namespace, from, from_links + to_links)?);
        } else {
            changes.push(self.touched(namespace, from, from_links)?);
            changes.push(self.touched(namespace, to, to_links)?);
        }
        Ok(())
    }

    /// Returns the change of a file whose name moved to `directory`: new time, and new parent if the file is a
    /// directory.
    fn changed(self, namespace: &Namespace, inode: Inode, directory: Inode) -> Result<Change, FsError> {
        let node = namespace.node(inode)?;
        let mut attributes = node.attributes;
        attributes.changed_ns = self.0.time_ns();
        if node.is_directory() {
            attributes.parent = directory;
        }
        Ok(Change::Node { inode, attributes })
    }
}

/// Checks that a rename keeps the directories a tree, and replaces only files by files and empty directories by
/// directories.
fn check_tree(
    namespace: &Namespace,
    inode: Inode,
    from: Inode,
    to: Inode,
    other: Option<Inode>,
    how: Rename,
) -> Result<(), FsError> {
    let is_directory = namespace.node(inode)?.is_directory();
    if is_directory && namespace.is_within(to, inode) {
        return Err(FsError::Invalid("a directory cannot be moved into itself"));
    }
    let Some(other) = other else {
        let is_full = is_directory && from != to && namespace.node(to)?.attributes.links >= LINKS_MAX;
        return if is_full { Err(FsError::TooManyLinks) } else { Ok(()) };
    };
    let other_node = namespace.node(other)?;
    if how == Rename::Exchange {
        let loops = other_node.is_directory() && namespace.is_within(from, other);
        return if loops { Err(FsError::Invalid("a directory cannot be moved into itself")) } else { Ok(()) };
    }
    match (is_directory, other_node.directory()) {
        (true, None) => Err(FsError::NotDirectory),
        (false, Some(_)) => Err(FsError::IsDirectory),
        (true, Some(directory)) if !directory.is_empty() => Err(FsError::NotEmpty),
        _ => Ok(()),
    }
}

fn new_attributes(now_ns: i64, mode: u32, rdev: u32, caller: Caller, above: &Attributes) -> Attributes {
    let inherits = above.mode & SET_GROUP_ID != 0;
    let is_directory = mode & FORMAT == DIRECTORY;
    Attributes {
        mode: if inherits && is_directory { mode | SET_GROUP_ID } else { mode },
        uid: caller.uid,
        gid: if inherits { above.gid } else { caller.gid },
        rdev,
        accessed_ns: now_ns,
        modified_ns: now_ns,
        changed_ns: now_ns,
        ..Attributes::default()
    }
}

/// Returns the attributes of the root directory of a new file system.
pub(in crate::core) fn root_attributes(now_ns: i64) -> Attributes {
    let caller = Caller::default();
    let attributes = new_attributes(now_ns, DIRECTORY | 0o755, 0, caller, &Attributes::default());
    Attributes { links: 2, parent: ROOT, ..attributes }
}
