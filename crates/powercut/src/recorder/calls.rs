//! Decodes system calls: determines the change of each call to the recorded files at its entry, and logs the change at
//! its exit.
//!
//! Invariants:
//! 1. A call that may change a recorded file in a way that is not logged is an error ([`unfit`]); it is never ignored.
//! 2. Calls that set up `io_uring` and asynchronous I/O contexts fail with `ENOSYS`, because their writes need no call
//!    that stops.

use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};

use libc::user_regs_struct;

use super::folder::{Folder, unfit};
use super::process::{self, OpenFile};
use super::sys::Tid;
use super::{Options, filter};
use crate::log::{Event, FileId};

const RWF_DSYNC: u64 = 2;
const RWF_SYNC: u64 = 4;
const RWF_APPEND: u64 = 16;
const RWF_NOAPPEND: u64 = 32;
/// Offset of a call that uses the file's own position.
const NO_OFFSET: u64 = u64::MAX;

/// The action for a call that is about to enter the kernel.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The call is irrelevant to the recorder and runs.
    Pass,
    /// The call is skipped and returns this value.
    Answer(i64),
    /// The call runs, and [`Calls::leave`] completes it.
    Watch(Watched),
}

/// A call that has entered the kernel and not left it.
#[derive(Debug)]
pub(super) struct Watched {
    call: &'static str,
    kind: Kind,
}

impl Watched {
    /// Returns whether the call may run concurrently with calls that change files.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.kind, Kind::Send { .. })
    }
}

#[derive(Debug)]
enum Kind {
    /// Writes bytes from memory; the kernel may write fewer.
    Write {
        file: FileId,
        offset: u64,
        bytes: Vec<u8>,
        is_durable: bool,
    },
    /// Writes bytes from another file or a pipe. They are read back from the written file.
    Copy {
        file: FileId,
        offset: u64,
        is_durable: bool,
    },
    /// May change lengths of files.
    Lengths,
    /// May change names, and also lengths (`O_TRUNC`).
    Names,
    /// Opens a file: may change names and lengths, and may create a file without a name.
    Open,
    Allocate {
        file: FileId,
        mode: i32,
        offset: u64,
        length: u64,
    },
    /// Changes contents in a way that is found by comparing the whole file.
    Contents {
        file: FileId,
    },
    Sync {
        events: Vec<Event>,
    },
    Map {
        file: FileId,
    },
    /// Sends bytes on a socket. `position` is that of the event in the log, `before` the number of bytes sent earlier
    /// on the socket.
    Send {
        position: usize,
        before: u64,
    },
    /// Sends several messages. The kernel writes their lengths to the address `messages`.
    SendMany {
        position: usize,
        before: u64,
        messages: u64,
    },
}

/// The decoder of system calls.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) folder: Folder,
    options: Options,
    syncs: u64,
    pub(super) refused: u64,
    sent: std::collections::BTreeMap<u64, u64>,
}

/// A call with its arguments.
#[derive(Clone, Copy)]
struct Call {
    tid: Tid,
    number: i64,
    name: &'static str,
    arguments: [u64; 6],
}

impl Calls {
    pub(super) fn new(folder: Folder, options: Options) -> Calls {
        Calls { folder, options, syncs: 0, refused: 0, sent: Default::default() }
    }

    /// Decodes the call that a thread is about to enter.
    pub(super) fn enter(&mut self, tid: Tid, registers: &user_regs_struct) -> io::Result<Verdict> {
        let r = registers;
        let (number, arguments) = (r.orig_rax as i64, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]);
        let name = name(number).ok_or_else(|| unfit(format!("system call {number}")))?;
        let call = Call { tid, number, name, arguments };
        match number {
            libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev | libc::SYS_pwritev2 => {
                self.write(call)
            }
            libc::SYS_sendto | libc::SYS_sendmsg | libc::SYS_sendmmsg => self.send(call),
            libc::SYS_sendfile | libc::SYS_splice | libc::SYS_copy_file_range => self.copy(call),
            libc::SYS_truncate | libc::SYS_ftruncate => Ok(watch(call, Kind::Lengths)),
            libc::SYS_fallocate => self.allocate(call),
            libc::SYS_open | libc::SYS_openat | libc::SYS_openat2 | libc::SYS_open_by_handle_at | libc::SYS_creat => {
                Ok(watch(call, Kind::Open))
            }
            libc::SYS_fsync | libc::SYS_fdatasync | libc::SYS_sync_file_range => self.sync_file(call),
            libc::SYS_syncfs | libc::SYS_sync => self.sync_all(call),
            libc::SYS_msync => self.sync_memory(call),
            libc::SYS_mmap => self.map(call),
            libc::SYS_ioctl => Ok(match self.tracked(call, 0) {
                Some(file) => watch(call, Kind::Contents { file }),
                None => Verdict::Pass,
            }),
            libc::SYS_io_uring_setup | libc::SYS_io_setup => {
                self.refused += 1;
                Ok(Verdict::Answer(-i64::from(libc::ENOSYS)))
            }
            _ => Ok(watch(call, Kind::Names)),
        }
    }

    /// Returns the recorded file of the descriptor in argument `index`.
    fn tracked(&self, call: Call, index: usize) -> Option<FileId> {
        self.folder.find(&process::facts(call.tid, call.arguments[index])?)
    }

    /// Decodes a write from memory to a recorded file or a socket.
    fn write(&mut self, call: Call) -> io::Result<Verdict> {
        let [descriptor, buffer, count, offset, _, flags] = call.arguments;
        let Some(facts) = process::facts(call.tid, descriptor) else { return Ok(Verdict::Pass) };
        if facts.file_type().is_socket() {
            return Ok(self.begin_send(call, facts.ino()));
        }
        let Some(file) = self.folder.find(&facts) else { return Ok(Verdict::Pass) };
        let open = process::open_file(call.tid, descriptor)?;
        let is_scattered = !matches!(call.number, libc::SYS_write | libc::SYS_pwrite64);
        let pieces = if is_scattered { process::pieces(call.tid, buffer, count)? } else { vec![(buffer, count)] };
        // If the recorder cannot read the buffer, the kernel cannot either: the call fails or writes less.
        let Ok(bytes) = process::gathered(call.tid, &pieces) else { return Ok(watch(call, Kind::Contents { file })) };
        let flags = if call.number == libc::SYS_pwritev2 { flags } else { 0 };
        let offset = match call.number {
            libc::SYS_write | libc::SYS_writev => NO_OFFSET,
            _ => offset,
        };
        let offset = self.place(file, open, offset, flags);
        let is_durable = is_durable(open, flags);
        Ok(watch(call, Kind::Write { file, offset, bytes, is_durable }))
    }

    /// Returns the offset in the file at which a write begins.
    fn place(&self, file: FileId, open: OpenFile, offset: u64, flags: u64) -> u64 {
        let appends = open.flags & libc::O_APPEND != 0 && flags & RWF_NOAPPEND == 0;
        match offset {
            _ if appends || flags & RWF_APPEND != 0 => self.folder.len(file),
            NO_OFFSET => open.position,
            offset => offset,
        }
    }

    /// Decodes a copy from another file or a pipe to a recorded file or a socket.
    fn copy(&mut self, call: Call) -> io::Result<Verdict> {
        let (to, offset_at) = match call.number {
            libc::SYS_sendfile => (0, 0),
            _ => (2, call.arguments[3]),
        };
        let descriptor = call.arguments[to];
        let Some(facts) = process::facts(call.tid, descriptor) else { return Ok(Verdict::Pass) };
        if facts.file_type().is_socket() {
            return Ok(self.begin_send(call, facts.ino()));
        }
        let Some(file) = self.folder.find(&facts) else { return Ok(Verdict::Pass) };
        let open = process::open_file(call.tid, descriptor)?;
        let offset = if offset_at == 0 { NO_OFFSET } else { process::words(call.tid, offset_at, 1)?[0] };
        let offset = self.place(file, open, offset, 0);
        Ok(watch(call, Kind::Copy { file, offset, is_durable: is_durable(open, 0) }))
    }

    fn send(&mut self, call: Call) -> io::Result<Verdict> {
        Ok(match process::facts(call.tid, call.arguments[0]) {
            Some(facts) if facts.file_type().is_socket() => self.begin_send(call, facts.ino()),
            _ => Verdict::Pass,
        })
    }

    /// Logs the position before bytes are sent: a client cannot have received them earlier.
    fn begin_send(&mut self, call: Call, socket: u64) -> Verdict {
        let before = self.sent.get(&socket).copied().unwrap_or(0);
        let position = self.folder.push(call.name, Event::Sent { socket, total: before });
        match call.number {
            libc::SYS_sendmmsg => watch(call, Kind::SendMany { position, before, messages: call.arguments[1] }),
            _ => watch(call, Kind::Send { position, before }),
        }
    }

    fn allocate(&mut self, call: Call) -> io::Result<Verdict> {
        let [_, mode, offset, length, ..] = call.arguments;
        Ok(match self.tracked(call, 0) {
            Some(file) => watch(call, Kind::Allocate { file, mode: mode as i32, offset, length }),
            None => Verdict::Pass,
        })
    }

    fn sync_file(&mut self, call: Call) -> io::Result<Verdict> {
        let Some(facts) = process::facts(call.tid, call.arguments[0]) else { return Ok(Verdict::Pass) };
        if call.number == libc::SYS_sync_file_range {
            // `sync_file_range` flushes neither the disk's cache nor the file's length, so it makes nothing durable.
            return Ok(Verdict::Pass);
        }
        if let Some(folder) = self.folder.find_folder(&facts) {
            let event = Event::SyncNames { folder: folder.into() };
            return self.sync(call, vec![event]);
        }
        let Some(file) = self.folder.find(&facts) else { return Ok(Verdict::Pass) };
        self.sync(call, vec![Event::Sync { file, range: None, has_failed: false }])
    }

    fn sync_all(&mut self, call: Call) -> io::Result<Verdict> {
        let is_ours = call.number == libc::SYS_sync
            || process::facts(call.tid, call.arguments[0]).is_some_and(|facts| self.folder.is_on(&facts));
        if is_ours { self.sync(call, vec![Event::SyncAll]) } else { Ok(Verdict::Pass) }
    }

    fn sync_memory(&mut self, call: Call) -> io::Result<Verdict> {
        let [address, length, flags, ..] = call.arguments;
        if flags as i32 & libc::MS_SYNC == 0 {
            return Ok(Verdict::Pass);
        }
        let mut events = Vec::new();
        for mapping in process::mappings(call.tid, address, length)? {
            let is_it = |file: &FileId| {
                let facts = self.folder.files[*file as usize].file.metadata();
                facts.is_ok_and(|facts| facts.ino() == mapping.inode)
            };
            let Some(file) = (0..self.folder.files.len() as FileId).find(is_it) else { continue };
            let range = Some(mapping.offset..mapping.offset + mapping.length);
            events.push(Event::Sync { file, range, has_failed: false });
        }
        if events.is_empty() { Ok(Verdict::Pass) } else { self.sync(call, events) }
    }

    /// Handles a sync of recorded files according to the options: the sync fails, is answered without being run, or
    /// runs.
    fn sync(&mut self, call: Call, mut events: Vec<Event>) -> io::Result<Verdict> {
        self.folder.mappings_changed()?;
        let is_of_file = |event: &Event| matches!(event, Event::Sync { .. } | Event::SyncAll);
        self.syncs += u64::from(events.iter().any(is_of_file));
        let fails = self.options.failing_sync == Some(self.syncs) && events.iter().any(is_of_file);
        if fails {
            events = failed(events, self.folder.files.len() as FileId);
        }
        if !fails && !self.options.answers_syncs {
            return Ok(watch(call, Kind::Sync { events }));
        }
        for event in events {
            self.folder.push(call.name, event);
        }
        Ok(Verdict::Answer(if fails { -i64::from(libc::EIO) } else { 0 }))
    }

    /// Handles a shared mapping: from now on, a recorded file mapped with write access may change without a call.
    fn map(&mut self, call: Call) -> io::Result<Verdict> {
        let [_, _, _, flags, descriptor, _] = call.arguments;
        if flags as i32 & libc::MAP_ANONYMOUS != 0 {
            return Ok(Verdict::Pass);
        }
        let Some(file) = self.tracked(call, 4) else { return Ok(Verdict::Pass) };
        let access = process::open_file(call.tid, descriptor)?.flags & libc::O_ACCMODE;
        Ok(if access == libc::O_RDWR { watch(call, Kind::Map { file }) } else { Verdict::Pass })
    }

    /// Completes a call that has left the kernel with `result`.
    pub(super) fn leave(&mut self, tid: Tid, watched: Watched, result: i64) -> io::Result<()> {
        let Watched { call, kind } = watched;
        let count = result.max(0) as u64;
        match kind {
            Kind::Send { position, before } => self.end_send(position, before, count),
            Kind::SendMany { position, before, messages } => {
                let total = sent_lengths(tid, messages, count)?;
                self.end_send(position, before, total);
            }
            Kind::Names => self.folder.names_changed(call)?,
            Kind::Open => self.opened(tid, call, result)?,
            Kind::Lengths => self.folder.lengths_changed(call)?,
            Kind::Write { file, offset, mut bytes, is_durable } if count > 0 => {
                bytes.truncate(count as usize);
                self.folder.push(call, Event::Write { file, offset, bytes: bytes.into(), is_durable });
            }
            Kind::Copy { file, offset, is_durable } if count > 0 => {
                let mut bytes = vec![0; count as usize];
                self.folder.files[file as usize].file.read_exact_at(&mut bytes, offset)?;
                self.folder.push(call, Event::Write { file, offset, bytes: bytes.into(), is_durable });
            }
            Kind::Contents { file } => self.folder.contents_changed(call, file)?,
            Kind::Allocate { file, mode, offset, length } if result == 0 => {
                self.allocated(call, file, mode, offset..offset + length)?;
            }
            Kind::Map { file } if result >= 0 => self.folder.files[file as usize].is_mapped = true,
            Kind::Sync { events } => {
                let events = if result == 0 { events } else { failed(events, self.folder.files.len() as FileId) };
                events.into_iter().for_each(|event| {
                    self.folder.push(call, event);
                });
            }
            Kind::Write { .. } | Kind::Copy { .. } | Kind::Allocate { .. } | Kind::Map { .. } => {}
        }
        Ok(())
    }

    /// Completes a call whose thread was killed before it left: the changes are found by comparing the files.
    pub(super) fn abandon(&mut self, watched: Watched) -> io::Result<()> {
        match watched.kind {
            Kind::Write { file, .. }
            | Kind::Copy { file, .. }
            | Kind::Contents { file }
            | Kind::Allocate { file, .. } => self.folder.contents_changed(watched.call, file),
            Kind::Lengths => self.folder.lengths_changed(watched.call),
            Kind::Names | Kind::Open => {
                self.folder.names_changed(watched.call)?;
                self.folder.lengths_changed(watched.call)
            }
            // A killed thread never saw the success of its sync, and mappings are compared at the end of the recording.
            Kind::Sync { .. } | Kind::Map { .. } | Kind::Send { .. } | Kind::SendMany { .. } => Ok(()),
        }
    }

    /// Finds the changes of a call that can no longer be decoded, by comparing all files.
    pub(super) fn find_all(&mut self) -> io::Result<()> {
        const CALL: &str = "a call of a killed thread";
        self.folder.names_changed(CALL)?;
        self.folder.lengths_changed(CALL)?;
        (0..self.folder.files.len() as FileId).try_for_each(|file| self.folder.contents_changed(CALL, file))
    }

    fn end_send(&mut self, position: usize, before: u64, count: u64) {
        let mut log = self.folder.log();
        let Event::Sent { socket, total } = &mut log.entries[position].event else { unreachable!("it is a send") };
        *total = before + count;
        let (socket, total) = (*socket, *total);
        drop(log);
        self.sent.insert(socket, total);
    }

    fn opened(&mut self, tid: Tid, call: &'static str, result: i64) -> io::Result<()> {
        self.folder.names_changed(call)?;
        self.folder.lengths_changed(call)?;
        if result < 0 {
            return Ok(());
        }
        let Some(facts) = process::facts(tid, result as u64) else { return Ok(()) };
        if !facts.is_file() || self.folder.find(&facts).is_some() {
            return Ok(());
        }
        let path = process::path(tid, result as u64)?;
        if self.folder.contains(&path) {
            // A file without a name; `linkat` may give it one later.
            self.folder.new_file(process::reopen(tid, result as u64)?, &path.display().to_string())?;
        }
        Ok(())
    }

    fn allocated(
        &mut self,
        call: &'static str,
        file: FileId,
        mode: i32,
        range: std::ops::Range<u64>,
    ) -> io::Result<()> {
        let len = self.folder.len(file);
        if mode & (libc::FALLOC_FL_COLLAPSE_RANGE | libc::FALLOC_FL_INSERT_RANGE) != 0 {
            return self.folder.contents_changed(call, file);
        }
        if mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0 && range.start < len {
            self.folder.push(call, Event::Zero { file, range: range.start..range.end.min(len) });
        }
        if mode & libc::FALLOC_FL_KEEP_SIZE == 0 && range.end > len {
            self.folder.push(call, Event::Resize { file, len: range.end });
        }
        Ok(())
    }
}

/// Returns `events` as failed syncs. A sync of everything becomes one sync of each file.
fn failed(events: Vec<Event>, files: FileId) -> Vec<Event> {
    let fail = |event: Event| match event {
        Event::Sync { file, range, .. } => vec![Event::Sync { file, range, has_failed: true }],
        Event::SyncAll => (0..files).map(|file| Event::Sync { file, range: None, has_failed: true }).collect(),
        // Unsynced names stay unsynced.
        _ => Vec::new(),
    };
    events.into_iter().flat_map(fail).collect()
}

/// Returns the number of bytes that the first `count` messages of a `sendmmsg` sent. The kernel writes each length
/// behind its header.
fn sent_lengths(tid: Tid, messages: u64, count: u64) -> io::Result<u64> {
    const HEADER_WORDS: u64 = 8;
    let words = process::words(tid, messages, count * HEADER_WORDS)?;
    Ok(words.chunks_exact(HEADER_WORDS as usize).map(|header| header[7] & 0xffff_ffff).sum())
}

fn watch(call: Call, kind: Kind) -> Verdict {
    Verdict::Watch(Watched { call: call.name, kind })
}

/// Returns whether a write is durable when the call returns, given the flags of the open file and of the call.
fn is_durable(open: OpenFile, flags: u64) -> bool {
    open.flags & libc::O_DSYNC != 0 || flags & (RWF_DSYNC | RWF_SYNC) != 0
}

/// Returns the name of a call that the filter stops.
fn name(number: i64) -> Option<&'static str> {
    let index = filter::NAMED.iter().position(|(named, _)| *named == number)?;
    Some(filter::NAMED[index].1)
}
