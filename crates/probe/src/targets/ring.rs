//! Reads and writes a file by io_uring, without the page cache. The data does not matter: all reads go to one buffer,
//! and all writes come from another.
//!
//! Invariants:
//! 1. The buffers live as long as the ring, and no operation is in flight when the ring is dropped.
//! 2. A write is durable when it is answered.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Instant;

use io_uring::{IoUring, opcode, types};
use memmap2::MmapMut;

use super::filler::fill;
use super::real_time::{Answer, Channel};
use crate::target::{Direction, OPERATION_BYTES_MAX, Operation};

/// Entries of the ring: the most operations in flight.
const ENTRIES: u32 = 256;

/// A ring over a file.
pub(super) struct Ring {
    ring: IoUring,
    file: File,
    sink: MmapMut,
    source: MmapMut,
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
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) };
        pushed.map_err(|_| io::Error::other("the ring is full"))?;
        self.ring.submit()?;
        self.under_way += 1;
        Ok(())
    }

    fn answer(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(entry) = self.ring.completion().next() {
                self.under_way -= 1;
                let outcome = match entry.result() {
                    error if error < 0 => Err(io::Error::from_raw_os_error(-error)),
                    0 => Err(io::Error::other("the drive ends before this place")),
                    _ => Ok(()),
                };
                return Ok(Answer { slot: entry.user_data() as usize, at: Instant::now(), outcome });
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.under_way > 0 && self.answer().is_ok() {}
    }
}
