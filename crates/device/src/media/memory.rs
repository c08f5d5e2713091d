//! A medium in memory: pages that exist once they are written. A copy shares them until one of the two writes, so that
//! an image costs little to fork.

use std::io;
use std::sync::Arc;

use super::Media;

/// Bytes of a page.
const PAGE_BYTES: usize = 64 << 10;

/// Memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pages: Vec<Option<Arc<[u8]>>>,
    len: u64,
}

impl Memory {
    /// Nothing written yet.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// A copy of `bytes`.
    pub fn with(bytes: &[u8]) -> Memory {
        let mut memory = Memory::new();
        memory.write_at(0, bytes).expect("memory takes every write");
        memory
    }
}

/// Calls `each` with page, offset in the page and range of the buffer for every page that the range touches.
fn for_pages(offset: u64, length: usize, mut each: impl FnMut(usize, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < length {
        let at = offset as usize + done;
        let within = at % PAGE_BYTES;
        let part = (PAGE_BYTES - within).min(length - done);
        each(at / PAGE_BYTES, within, done..done + part);
        done += part;
    }
}

impl Media for Memory {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        for_pages(offset, into.len(), |page, within, range| {
            let part = &mut into[range];
            match self.pages.get(page) {
                Some(Some(bytes)) => part.copy_from_slice(&bytes[within..within + part.len()]),
                _ => part.fill(0),
            }
        });
        Ok(())
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        for_pages(offset, from.len(), |page, within, range| {
            if page >= self.pages.len() {
                self.pages.resize_with(page + 1, || None);
            }
            match &mut self.pages[page] {
                // A page written whole for the first time is never zeroed.
                empty @ None if range.len() == PAGE_BYTES => *empty = Some(from[range].into()),
                shared => {
                    let shared = shared.get_or_insert_with(|| std::iter::repeat_n(0, PAGE_BYTES).collect());
                    Arc::make_mut(shared)[within..within + range.len()].copy_from_slice(&from[range]);
                }
            }
        });
        self.len = self.len.max(offset + from.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
