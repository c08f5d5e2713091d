//! A wrapper that keeps all writes in memory and leaves the wrapped medium unchanged. It shows the result of a repair
//! without changing the image, and lets several runs of a benchmark start from one image.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::Media;
use super::host_file::HostFile;

const PAGE_BYTES: u64 = 64 << 10;

/// A medium that keeps all writes in memory and reads everything else from a wrapped medium, which it never writes. A
/// flush does nothing.
#[derive(Debug)]
pub struct Overlay<M> {
    below: M,
    pages: BTreeMap<u64, Box<[u8]>>,
    len: u64,
}

impl<M: Media> Overlay<M> {
    /// Returns an overlay of `below` without any writes, so it reads like `below`.
    pub fn new(below: M) -> Overlay<M> {
        Overlay { len: below.len(), below, pages: BTreeMap::new() }
    }
}

/// Calls `each` for every page that the range touches, with the page number, the offset in the page and the range of
/// the buffer.
fn for_pages(
    offset: u64,
    length: usize,
    mut each: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES) as usize;
        let part = (PAGE_BYTES as usize - within).min(length - done);
        each(at / PAGE_BYTES, within, done..done + part)?;
        done += part;
    }
    Ok(())
}

impl<M: Media> Media for Overlay<M> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let (pages, below) = (&self.pages, &mut self.below);
        for_pages(offset, into.len(), |page, within, range| {
            let start = offset + range.start as u64;
            let part = &mut into[range];
            match pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + part.len()]),
                None => below.read_at(start, part)?,
            }
            Ok(())
        })
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        self.below.will_read(pieces);
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        let (pages, below) = (&mut self.pages, &mut self.below);
        for_pages(offset, from.len(), |page, within, range| {
            let bytes = match pages.entry(page) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
                    below.read_at(page * PAGE_BYTES, &mut bytes)?;
                    entry.insert(bytes)
                }
            };
            bytes[within..within + range.len()].copy_from_slice(&from[range]);
            Ok(())
        })?;
        self.len = self.len.max(offset + from.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        self.below.forget_cached()
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.below.host_file()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::memory::Memory;

    #[test]
    fn what_lies_below_is_read_and_never_written() {
        let mut overlay = Overlay::new(Memory::with(&[7; 100_000]));
        overlay.write_at(65_530, &[9; 20]).expect("it is memory");
        let mut read = [0; 40];
        overlay.read_at(65_520, &mut read).expect("it is memory");
        assert_eq!(read, [[7; 10].as_slice(), &[9; 20], &[7; 10]].concat()[..]);
        overlay.below.read_at(65_520, &mut read).expect("it is memory");
        assert_eq!(read, [7; 40]);
        assert_eq!(overlay.len(), 100_000);
    }
}
