//! The FUSE adapter: makes each request of the kernel a task of the core.

use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

use fuser::{
    BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use imbrex_fs::FsError;
use imbrex_fs::core::{Attr, Caller, Contents, Listed, Rename, Seek, SetAttr, SetAttribute};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::format::change::Inode;
use imbrex_fs::format::name::NAME_BYTES_MAX;
use imbrex_fs::namespace::ROOT;

use crate::attribute_name;
use crate::context::{Context, ORDER_ATTRIBUTE, OUTCOME_ATTRIBUTE, STATUS_ATTRIBUTE, SYNC_ATTRIBUTE};
use crate::convert::{errno, file_attr, file_type, generation, kept, kept_name, nanoseconds, number};
use crate::groups::Asker;
use crate::operations::{self, New};
use crate::requests::Core;

/// Maximum number of bytes of a request.
const REQUEST_BYTES: u32 = 1 << 20;
/// Number of directory entries that are listed by one call of the core.
const NAMES_AT_ONCE: usize = 256;
/// Maximum number of background requests (read-ahead, closing) that the kernel may have in flight.
const BACKGROUND_MAX: u16 = 64;

const WANTED: [InitFlags; 10] = [
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_CACHE_SYMLINKS,
    InitFlags::FUSE_EXPORT_SUPPORT,
    InitFlags::FUSE_HANDLE_KILLPRIV_V2,
    InitFlags::FUSE_DONT_MASK,
    InitFlags::FUSE_POSIX_ACL,
    InitFlags::FUSE_BIG_WRITES,
];

/// The FUSE adapter of a file system.
pub(crate) struct FuseAdapter(Arc<Core<Context>>);

impl FuseAdapter {
    /// Creates an adapter that passes its requests to `core`.
    pub(crate) fn new(core: Arc<Core<Context>>) -> FuseAdapter {
        FuseAdapter(core)
    }

    fn give<T: Future<Output = ()> + 'static>(&self, begin: impl FnOnce(Rc<Context>) -> T + Send + 'static) {
        self.0.give(begin);
    }
}

fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid() }
}

/// Replies with an inode, and counts the lookup that the kernel then holds.
fn reply_entry(context: &Context, reply: ReplyEntry, result: Result<Attr, FsError>) {
    match result {
        Ok(attr) => {
            context.fs.add_lookup(attr.inode);
            reply.entry_with_ttls(&kept(&attr), &kept_name(), &file_attr(&attr), generation(&attr));
        }
        Err(error) => reply.error(errno(&error)),
    }
}

fn reply_attr(reply: ReplyAttr, result: Result<Attr, FsError>) {
    match result {
        Ok(attr) => reply.attr(&kept(&attr), &file_attr(&attr)),
        Err(error) => reply.error(errno(&error)),
    }
}

fn reply_done(reply: ReplyEmpty, result: Result<(), FsError>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

fn reply_bytes(reply: ReplyData, result: Result<Vec<u8>, FsError>) {
    match result {
        Ok(bytes) => reply.data(&bytes),
        Err(error) => reply.error(errno(&error)),
    }
}

fn reply_written(reply: ReplyWrite, result: Result<u64, FsError>) {
    match result {
        Ok(bytes) => reply.written(u32::try_from(bytes).expect("a request is shorter")),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Replies with a value. If `size` is 0, replies with the length of the value; if `size` is too small, with an error.
fn reply_value(reply: ReplyXattr, size: u32, result: Result<Vec<u8>, FsError>) {
    match result {
        Ok(value) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > size as usize => reply.error(errno(&FsError::Range)),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Flags of opened files: the kernel keeps its cached pages, because no other program changes a file, and sends no
/// flush on close.
const OPENED: FopenFlags = FopenFlags::FOPEN_KEEP_CACHE.union(FopenFlags::FOPEN_NOFLUSH);

impl Filesystem for FuseAdapter {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in WANTED {
            // An older kernel works without the capability.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(REQUEST_BYTES);
        if let Err(most) = config.set_max_readahead(REQUEST_BYTES) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let is_long = name.len() > NAME_BYTES_MAX;
            let found = if is_long { Err(FsError::NameTooLong) } else { context.fs.lookup(number(parent), &name) };
            reply_entry(&context, reply, found);
        });
    }

    fn forget(&self, _request: &Request, inode: INodeNo, lookups: u64) {
        self.give(move |context| async move { context.fs.forget(number(inode), lookups) });
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        self.give(move |context| async move { reply_attr(reply, context.fs.attr(number(inode))) });
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _change_time: Option<SystemTime>,
        _backup: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let asker = Asker::of(request);
        self.give(move |context| async move {
            let now_ns = context.fs.time_ns();
            let at = |time: TimeOrNow| match time {
                TimeOrNow::SpecificTime(time) => nanoseconds(time),
                TimeOrNow::Now => now_ns,
            };
            let (accessed_ns, modified_ns) = (accessed.map(at), modified.map(at));
            let set = SetAttr { mode, uid, gid, size, accessed_ns, modified_ns, drops_set_id: false };
            let set = operations::set_attributes(&context.fs, number(inode), set, asker).await;
            reply_attr(reply, context.settle(set).await);
        });
    }

    fn readlink(&self, _request: &Request, inode: INodeNo, reply: ReplyData) {
        self.give(move |context| async move { reply_bytes(reply, context.fs.read_link(number(inode))) });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let name = name.as_bytes().to_vec();
        let new = New { parent: number(parent), name, mode, umask, rdev, caller: caller(request) };
        self.give(move |context| async move {
            let made = context.settle(operations::make(&context.fs, &new).await).await;
            reply_entry(&context, reply, made);
        });
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let name = name.as_bytes().to_vec();
        let mode = mode | 0o040_000;
        let new = New { parent: number(parent), name, mode, umask, rdev: 0, caller: caller(request) };
        self.give(move |context| async move {
            let made = context.settle(operations::make(&context.fs, &new).await).await;
            reply_entry(&context, reply, made);
        });
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let done = context.fs.unlink(number(parent), &name).await;
            reply_done(reply, context.settle(done).await);
        });
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let done = context.fs.remove_directory(number(parent), &name).await;
            reply_done(reply, context.settle(done).await);
        });
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (name, caller) = (name.as_bytes().to_vec(), caller(request));
        let target = target.as_os_str().as_bytes().to_vec();
        self.give(move |context| async move {
            let made = context.fs.make_symlink(number(parent), &name, &target, caller).await;
            let made = context.settle(made).await;
            reply_entry(&context, reply, made);
        });
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let how = match flags {
            RenameFlags::RENAME_NOREPLACE => Rename::NoReplace,
            RenameFlags::RENAME_EXCHANGE => Rename::Exchange,
            RenameFlags::RENAME_WHITEOUT => Rename::Whiteout(caller(request)),
            flags if flags.is_empty() => Rename::Replace,
            _ => return reply.error(Errno::EINVAL),
        };
        let (name, new_name) = (name.as_bytes().to_vec(), new_name.as_bytes().to_vec());
        self.give(move |context| async move {
            let done = context.fs.rename(number(parent), &name, number(new_parent), &new_name, how).await;
            reply_done(reply, context.settle(done).await);
        });
    }

    fn link(&self, _request: &Request, inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let linked = context.fs.link(number(inode), number(parent), &name).await;
            let linked = context.settle(linked).await;
            reply_entry(&context, reply, linked);
        });
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        self.give(move |context| async move {
            match context.fs.open(number(inode)) {
                Ok(()) => reply.opened(FileHandle(0), OPENED),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let name = name.as_bytes().to_vec();
        let mode = mode & 0o7777 | 0o100_000;
        let new = New { parent: number(parent), name, mode, umask, rdev: 0, caller: caller(request) };
        self.give(move |context| async move {
            let made = operations::make(&context.fs, &new).await;
            let made = context.settle(made).await;
            match made.and_then(|attr| context.fs.open(attr.inode).map(|()| attr)) {
                Ok(attr) => {
                    context.fs.add_lookup(attr.inode);
                    reply.created(&kept(&attr), &file_attr(&attr), generation(&attr), FileHandle(0), OPENED);
                }
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn read(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.give(move |context| async move {
            reply_bytes(reply, context.fs.read(number(inode), offset, size as usize).await);
        });
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let blocks = Contents::blocks_of(offset, bytes);
        let (length, bytes) = (bytes.len() as u64, if blocks.is_some() { Vec::new() } else { bytes.to_vec() });
        let is_stranger = write_flags.contains(WriteFlags::FUSE_WRITE_KILL_SUIDGID);
        let stranger = Some(Asker::of(request)).filter(|_| is_stranger);
        self.give(move |context| async move {
            let written = async {
                let contents = blocks.unwrap_or(Contents::Bytes(&bytes));
                context.fs.write_contents(number(inode), offset, contents).await?;
                let fs = &context.fs;
                operations::later(fs, async || operations::drop_privileges(fs, number(inode), stranger).await).await?;
                Ok(length)
            };
            reply_written(reply, context.settle(written.await).await);
        });
    }

    fn flush(&self, _: &Request, _inode: INodeNo, _handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        // Cached data are written after the last close (Singh 2014 §2.2.2), on the kernel's release request.
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.give(move |context| async move {
            // The kernel keeps the inode and its lookups until this answer. It reports errors of a release to no
            // program.
            reply.ok();
            let _ = context.fs.close(number(inode)).await;
        });
    }

    fn fsync(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        self.give(move |context| async move { reply_done(reply, context.fs.fsync(number(inode)).await) });
    }

    fn fsyncdir(&self, _request: &Request, inode: INodeNo, _handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        self.give(move |context| async move { reply_done(reply, context.fs.fsync(number(inode)).await) });
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        self.give(move |context| async move {
            let listed = list(&context, number(inode), offset, |name| {
                let kind = file_type(name.mode);
                reply.add(INodeNo(u64::from(name.inode)), name.next, kind, OsStr::from_bytes(&name.name))
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn readdirplus(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        self.give(move |context| async move {
            let listed = list(&context, number(inode), offset, |name| {
                let Ok(attr) = context.fs.attr(name.inode) else { return false };
                let (number, bytes) = (INodeNo(u64::from(name.inode)), OsStr::from_bytes(&name.name));
                let is_full = reply.add(number, name.next, bytes, &kept(&attr), &file_attr(&attr), generation(&attr));
                // The kernel counts no lookup for these two.
                if !is_full && !matches!(&name.name[..], b"." | b"..") {
                    context.fs.add_lookup(name.inode);
                }
                is_full
            });
            match listed {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn statfs(&self, _request: &Request, _inode: INodeNo, reply: ReplyStatfs) {
        self.give(move |context| async move {
            let stat = context.fs.statfs();
            let (bytes, name) = (BLOCK_BYTES as u32, NAME_BYTES_MAX as u32);
            reply.statfs(stat.blocks, stat.free, stat.free, stat.files, stat.files_free, bytes, name, bytes);
        });
    }

    fn setxattr(
        &self,
        request: &Request,
        inode: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (name.as_bytes().to_vec(), value.to_vec());
        let how = match flags {
            libc::XATTR_CREATE => SetAttribute::Create,
            libc::XATTR_REPLACE => SetAttribute::Replace,
            0 => SetAttribute::Any,
            _ => return reply.error(Errno::EINVAL),
        };
        if number(inode) == ROOT && name == ORDER_ATTRIBUTE.as_bytes() {
            // Commands act on the devices with the server's rights, so only its user and root may send them.
            if ![0, rustix::process::getuid().as_raw()].contains(&request.uid()) {
                return reply.error(Errno::EPERM);
            }
            return self.give(move |context| async move {
                reply_done(reply, context.answers.order(&context.fs, &value));
            });
        }
        let asker = Asker::of(request);
        self.give(move |context| async move {
            let keeps_group_id = |gid| asker.keeps_group_id(gid);
            let set = (&name[..], &value[..]);
            let done = operations::set_attribute(&context.fs, number(inode), set, how, keeps_group_id).await;
            reply_done(reply, context.settle(done).await);
        });
    }

    fn getxattr(&self, _request: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let outcome = name.strip_prefix(OUTCOME_ATTRIBUTE.as_bytes()).filter(|_| number(inode) == ROOT);
            let value = if let Some(which) = outcome {
                context.answers.outcome(which).ok_or(FsError::NoAttribute)
            } else if number(inode) == ROOT && name == STATUS_ATTRIBUTE.as_bytes() {
                Ok(context.answers.status(&context.fs).into_bytes())
            } else if number(inode) == ROOT && name == SYNC_ATTRIBUTE.as_bytes() {
                context.fs.sync().await.map(|()| b"done".to_vec())
            } else {
                attribute_name::check(&name).and_then(|()| context.fs.attribute(number(inode), &name))
            };
            reply_value(reply, size, value);
        });
    }

    fn listxattr(&self, request: &Request, inode: INodeNo, size: u32, reply: ReplyXattr) {
        let caller = request.uid();
        self.give(move |context| async move {
            let with_end = |mut name: Vec<u8>| {
                name.push(0);
                name
            };
            let names = context.fs.attributes(number(inode));
            let listed = names.map(|names| names.into_iter().filter(|name| attribute_name::is_listed(name, caller)));
            reply_value(reply, size, listed.map(|names| names.flat_map(with_end).collect()));
        });
    }

    fn removexattr(&self, _request: &Request, inode: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = name.as_bytes().to_vec();
        self.give(move |context| async move {
            let done = operations::remove_attribute(&context.fs, number(inode), &name).await;
            reply_done(reply, context.settle(done).await);
        });
    }

    fn fallocate(
        &self,
        request: &Request,
        inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let stranger = Some(Asker::of(request)).filter(Asker::is_stranger);
        self.give(move |context| async move {
            let allocated = async {
                let what = operations::allocation(mode)?;
                context.fs.allocate(number(inode), offset, length, what).await?;
                operations::drop_privileges(&context.fs, number(inode), stranger).await
            };
            reply_done(reply, context.settle(allocated.await).await);
        });
    }

    fn lseek(&self, _: &Request, inode: INodeNo, _handle: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let what = match whence {
            libc::SEEK_DATA => Seek::Data,
            libc::SEEK_HOLE => Seek::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(offset) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        self.give(move |context| async move {
            match context.fs.seek(number(inode), offset, what) {
                Ok(found) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn copy_file_range(
        &self,
        request: &Request,
        from: INodeNo,
        _from_handle: FileHandle,
        from_offset: u64,
        to: INodeNo,
        _to_handle: FileHandle,
        to_offset: u64,
        length: u64,
        flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        if !flags.is_empty() {
            return reply.error(Errno::EINVAL);
        }
        let stranger = Some(Asker::of(request)).filter(Asker::is_stranger);
        self.give(move |context| async move {
            let copied = async {
                let fs = &context.fs;
                let copied = operations::copy(fs, (number(from), from_offset), (number(to), to_offset), length).await?;
                operations::drop_privileges(fs, number(to), stranger).await?;
                Ok(copied)
            };
            reply_written(reply, context.settle(copied.await).await);
        });
    }
}

/// Passes the entries of a directory from `offset` on to `add`, until `add` returns true because the reply is full.
fn list(context: &Context, inode: Inode, offset: u64, mut add: impl FnMut(&Listed) -> bool) -> Result<(), FsError> {
    let mut from = offset;
    loop {
        let names = context.fs.list(inode, from, NAMES_AT_ONCE)?;
        let Some(last) = names.last() else { return Ok(()) };
        from = last.next;
        if names.iter().any(&mut add) {
            return Ok(());
        }
    }
}
