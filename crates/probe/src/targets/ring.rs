//! Reads and writes a file by io_uring, without the page cache. The data does not matter: all reads go to one buffer,
//! and all writes come from another.
//!
//! Invariants:
//! 1. The buffers live as long as the ring. When the ring is dropped, operations in flight are awaited. If that fails, the buffers are
//!    leaked, because the kernel may still use them.
//! 2. A write is durable when it is answered.

use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};
use memmap2::MmapMut;

use super::filler::fill;
use super::real_time::{Answer, Channel};
use crate::target::{Direction, OPERATION_BYTES_MAX, Operation};

/// Entries of the ring: the most operations in flight.
const ENTRIES: u32 = 256;
/// Bits of an operation's user data that hold its slot. The bits above hold its length in bytes.
const SLOT_BITS: u32 = 32;

/// A ring over a file.
pub(super) struct Ring {
    ring: IoUring,
    file: File,
    sink: ManuallyDrop<MmapMut>,
    source: ManuallyDrop<MmapMut>,
    under_way: usize,
}

impl Ring {
    /// Creates a ring over `file`, which must have been opened with `O_DIRECT`.
    pub(super) fn new(file: File, may_write: bool) -> io::Result<Ring> {
        let ring = IoUring::new(ENTRIES).map_err(|error| no_ring(&error))?;
        // Anonymous maps begin at a page, as direct access demands.
        let sink = MmapMut::map_anon(OPERATION_BYTES_MAX as usize)?;
        let mut source = MmapMut::map_anon(OPERATION_BYTES_MAX as usize)?;
        if may_write {
            fill(&mut source);
        }
        let (sink, source) = (ManuallyDrop::new(sink), ManuallyDrop::new(source));
        Ok(Ring { ring, file, sink, source, under_way: 0 })
    }
}

fn no_ring(error: &io::Error) -> io::Error {
    let words = match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => format!(
            "io_uring is not to be had ({error}): the kernel lacks it, or forbids it (sysctl kernel.io_uring_disabled, \
             or a container's rules); run outside of the container, or serve the drive by NBD and probe that"
        ),
        _ => format!("io_uring: {error}"),
    };
    io::Error::new(error.kind(), words)
}

impl Channel for Ring {
    fn submit(&mut self, slot: usize, operation: &Operation) -> io::Result<()> {
        if self.under_way >= ENTRIES as usize {
            return Err(io::Error::other(format!("more than {ENTRIES} operations at once")));
        }
        let (file, bytes) = (types::Fd(self.file.as_raw_fd()), operation.bytes as u32);
        let entry = match operation.direction {
            Direction::Read => opcode::Read::new(file, self.sink.as_mut_ptr(), bytes).offset(operation.offset).build(),
            Direction::Write => opcode::Write::new(file, self.source.as_ptr(), bytes)
                .offset(operation.offset)
                .rw_flags(libc::RWF_DSYNC)
                .build(),
        };
        // The caller limits an operation to `OPERATION_BYTES_MAX`, the length of the buffers.
        assert!(operation.bytes <= OPERATION_BYTES_MAX, "{} bytes at once", operation.bytes);
        // SAFETY: the file and the buffers belong to `self` and outlive the operation, by invariant 1. The bytes of the
        // read buffer are never examined, so that reads may overwrite each other's data.
        #[expect(unsafe_code, reason = "a request to io_uring is one by its nature")]
        let pushed =
            unsafe { self.ring.submission().push(&entry.user_data(slot as u64 | operation.bytes << SLOT_BITS)) };
        pushed.map_err(|_| io::Error::other("the ring is full"))?;
        // The operation counts as in flight even if the kernel does not take it now: `answer` submits it again.
        self.under_way += 1;
        match self.ring.submit() {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => Err(error),
            _ => Ok(()),
        }
    }

    fn answer(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(entry) = self.ring.completion().next() {
                self.under_way -= 1;
                let (slot, bytes) = (entry.user_data() & ((1 << SLOT_BITS) - 1), entry.user_data() >> SLOT_BITS);
                let outcome = match entry.result() {
                    error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                    0 => Err(io::Error::other("the drive ends before this place")),
                    done if done as u64 == bytes => Ok(()),
                    done => Err(io::Error::other(format!("only {done} of {bytes} bytes were transferred"))),
                };
                return Ok(Answer { slot: slot as usize, at: Instant::now(), outcome });
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EBUSY | libc::EINTR)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 && self.answer().is_ok() {}
        if self.under_way == 0 {
            // SAFETY: no operation uses the buffers, and this is the only place that drops them.
            #[expect(unsafe_code, reason = "buffers that the kernel may still write must not be unmapped")]
            unsafe {
                ManuallyDrop::drop(&mut self.sink);
                ManuallyDrop::drop(&mut self.source);
            }
        }
    }
}
