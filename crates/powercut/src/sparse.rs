//! The contents of a file in memory; missing pages are zeros. A copy shares its pages with the original until either is
//! written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

const PAGE_BYTES: u64 = 4096;
type Page = [u8; PAGE_BYTES as usize];
const ZEROS: Page = [0; PAGE_BYTES as usize];

/// Contents and length of a file in memory. Ranges that were never written are holes and read as zeros.
#[derive(Clone, Default)]
pub struct Sparse {
    pages: BTreeMap<u64, Arc<Page>>,
    len: u64,
}

impl fmt::Debug for Sparse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {} pages", self.len, self.pages.len())
    }
}

impl Sparse {
    /// Returns an empty file of length 0.
    pub fn new() -> Sparse {
        Sparse::default()
    }

    /// Reads the contents and the length of a file of the host. Its holes become holes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn load(file: &File) -> io::Result<Sparse> {
        let len = file.metadata()?.len();
        let mut sparse = Sparse { pages: BTreeMap::new(), len };
        let mut buffer = vec![0; 1 << 20];
        let mut next = 0;
        while let Some(data) = next_data(file, next, len)? {
            let mut at = data.start;
            while at < data.end {
                let part = (data.end - at).min(buffer.len() as u64) as usize;
                file.read_exact_at(&mut buffer[..part], at)?;
                sparse.put(at, &buffer[..part]);
                at += part as u64;
            }
            next = data.end;
        }
        Ok(sparse)
    }

    /// Writes the contents and the length to `file`, which must be empty. Holes become holes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, file: &File) -> io::Result<()> {
        file.set_len(self.len)?;
        for (&page, bytes) in &self.pages {
            let at = page * PAGE_BYTES;
            let part = (self.len.saturating_sub(at)).min(PAGE_BYTES) as usize;
            file.write_all_at(&bytes[..part], at)?;
        }
        Ok(())
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the length in bytes. A shorter file loses the bytes past its end: they are zeros if the file grows again.
    pub fn set_len(&mut self, len: u64) {
        if len < self.len {
            let first_whole = len.div_ceil(PAGE_BYTES);
            self.pages.split_off(&first_whole);
            if let Some(page) = self.pages.get_mut(&(len / PAGE_BYTES)) {
                Arc::make_mut(page)[(len % PAGE_BYTES) as usize..].fill(0);
            }
        }
        self.len = len;
    }

    /// Fills `into` with the bytes from byte `offset` on. Holes and bytes past the end read as zeros.
    pub fn read(&self, offset: u64, into: &mut [u8]) {
        for_pages(offset, into.len(), |page, within, range| {
            let part = &mut into[range];
            match self.pages.get(&page) {
                Some(bytes) => part.copy_from_slice(&bytes[within..within + part.len()]),
                None => part.fill(0),
            }
        });
    }

    /// Writes `bytes` at byte `offset`; the file grows if they reach past its end. Writing no bytes changes nothing.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.put(offset, bytes);
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    /// Writes `bytes` at byte `offset` without changing the length. Nonzero bytes past the end become visible when the
    /// file grows, so a call of [`Sparse::set_len`] must follow them.
    pub fn put(&mut self, offset: u64, bytes: &[u8]) {
        for_pages(offset, bytes.len(), |page, within, range| {
            let part = &bytes[range];
            if !self.pages.contains_key(&page) && part.iter().all(|&byte| byte == 0) {
                return;
            }
            let page = self.pages.entry(page).or_insert_with(|| Arc::new(ZEROS));
            Arc::make_mut(page)[within..within + part.len()].copy_from_slice(part);
        });
    }

    /// Fills the bytes of `range` with zeros; the length stays. Whole pages of 4096 bytes become holes.
    pub fn zero(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / PAGE_BYTES + 1) * PAGE_BYTES);
            if end - at == PAGE_BYTES {
                self.pages.remove(&(at / PAGE_BYTES));
            } else {
                self.put(at, &ZEROS[..(end - at) as usize]);
            }
            at = end;
        }
    }

    /// Returns the parts of `range` that lie in stored pages of 4096 bytes, one part for each page, in ascending order.
    /// The rest are holes.
    pub fn stored(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let pages = self.pages.range(range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES));
        pages.map(move |(&page, _)| {
            let start = page * PAGE_BYTES;
            start.max(range.start)..(start + PAGE_BYTES).min(range.end)
        })
    }

    /// Returns the byte ranges of the pages of 4096 bytes in which two files differ, one range for each page, in
    /// ascending order. The shorter file counts as zeros past its end; lengths are not compared.
    pub fn differences(&self, other: &Sparse) -> Vec<Range<u64>> {
        let pages: BTreeSet<u64> = self.pages.keys().chain(other.pages.keys()).copied().collect();
        let page_of = |sparse: &Sparse, page| sparse.pages.get(&page).map_or(ZEROS, |bytes| **bytes);
        let differ = pages.into_iter().filter(|&page| match (self.pages.get(&page), other.pages.get(&page)) {
            (Some(one), Some(two)) if Arc::ptr_eq(one, two) => false,
            _ => page_of(self, page) != page_of(other, page),
        });
        differ.map(|page| page * PAGE_BYTES..(page + 1) * PAGE_BYTES).collect()
    }
}

/// Calls `each` with page, offset in the page and range of the buffer for every page that the range touches.
fn for_pages(offset: u64, length: usize, mut each: impl FnMut(u64, usize, Range<usize>)) {
    let mut done = 0;
    while done < length {
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES) as usize;
        let part = (PAGE_BYTES as usize - within).min(length - done);
        each(at / PAGE_BYTES, within, done..done + part);
        done += part;
    }
}

/// Returns the next range of `file` from `offset` on that is not a hole.
fn next_data(file: &File, offset: u64, len: u64) -> io::Result<Option<Range<u64>>> {
    let seek = |offset: u64, whence| {
        // SAFETY: the call accesses no memory; the descriptor is open as long as `file` is. The call moves the file's
        // position, which no code uses: all reads here pass an offset.
        #[allow(unsafe_code)]
        let at = unsafe { libc::lseek(file.as_raw_fd(), offset as i64, whence) };
        u64::try_from(at).map_err(|_| io::Error::last_os_error())
    };
    if offset >= len {
        return Ok(None);
    }
    let start = match seek(offset, libc::SEEK_DATA) {
        Ok(start) => start,
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(None),
        Err(error) => return Err(error),
    };
    let end = seek(start, libc::SEEK_HOLE)?;
    Ok(Some(start..end.min(len)))
}

#[cfg(test)]
mod tests {
    //! Goal: a sparse file reads like a plain one. Method: equal random calls to both.

    use super::*;
    use imbrex_testkit::Random;

    #[test]
    fn it_reads_as_plain_bytes_do() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let (mut sparse, mut plain) = (Sparse::new(), Vec::new());
            for _ in 0..60 {
                let (offset, length) = (random.below(20_000), random.below(9000));
                match random.below(4) {
                    0 => {
                        plain.resize(offset as usize, 0);
                        sparse.set_len(offset);
                    }
                    1 => {
                        let end = (offset + length).min(plain.len() as u64);
                        let range = offset.min(end)..end;
                        plain[range.start as usize..range.end as usize].fill(0);
                        sparse.zero(range);
                    }
                    _ => {
                        let bytes = vec![random.below(3) as u8; length as usize];
                        let end = if length == 0 { 0 } else { (offset + length) as usize };
                        plain.resize(plain.len().max(end), 0);
                        plain[offset.min(end as u64) as usize..end].copy_from_slice(&bytes);
                        sparse.write(offset, &bytes);
                    }
                }
                let mut read = vec![9; plain.len() + 100];
                sparse.read(0, &mut read);
                assert_eq!(sparse.len(), plain.len() as u64, "seed {seed}");
                assert!(read[..plain.len()] == plain && read[plain.len()..] == [0; 100], "seed {seed}");
            }
        }
    }

    #[test]
    fn a_file_comes_back_as_it_was_saved() {
        let mut sparse = Sparse::new();
        sparse.write(5000, &[7; 9000]);
        sparse.write(3 << 20, &[8; 10]);
        sparse.set_len(5 << 20);
        let file = tempfile::tempfile().unwrap();
        sparse.save(&file).unwrap();
        let loaded = Sparse::load(&file).unwrap();
        assert!(loaded.differences(&sparse).is_empty() && loaded.len() == sparse.len());
        sparse.write(3 << 20, &[9]);
        assert_eq!(loaded.differences(&sparse).first(), Some(&(3 << 20..(3 << 20) + 4096)));
    }
}
