//! Checksums of data: CRC-32C of every block of 4 KiB, in a table indexed by block of the data device. A page of the
//! table is one block with a checksum of its own. A bounded number of pages is cached in memory.
//!
//! ```text
//!   page: number + 1, low half u32 · stamp, high half u32 · checksum u32 · stamp, low half u32 · sums u32 …
//! ```
//!
//! A record contains the checksums of the blocks that it names, so a page may be written at any time; a checkpoint
//! writes all dirty pages. The checksums of blocks that no file uses are undefined.
//!
//! A page bears a stamp: the generation of the mount that wrote it, and a count of page writes. Of several copies of
//! the metadata the page with the highest stamp is used. The other copies missed a write or are damaged, and are
//! overwritten with the next checkpoint. With a single copy, a page that missed a write does not match the data, and
//! reading the data is an error.
//!
//! A power cut may tear a page if the sectors of the host's disk are smaller than a block. In a torn page the checksum
//! of each block that was live at the last checkpoint is intact, for it has not changed since, and the log contains all
//! others. So if no copy is intact, a page that fails its own checksum is used, provided it has its page number or an
//! empty header. A damaged checksum in the page does not match the data.
//!
//! Invariants:
//! 1. At most `pages_max` pages are in memory, besides those that each task has just read.
//! 2. A page is evicted only when the medium has its present contents.
//! 3. Of two versions of a page the one that was written later has the higher stamp.
//! 4. A read of checksums writes no page: it need not wait for space on the host's disk.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::block_run::BlockRun;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::coding::checksum;
use crate::format::limits::PAGE_SUMS;
use crate::journal::mirror::Mirror;

const HEAD_BYTES: usize = 16;
/// Pages that one read of a scrub covers.
const SCRUB_PAGES: u64 = 256;
/// Largest number of pages in one read of a sequential access: those of 256 MiB of data.
const AHEAD_PAGES: u64 = 64;

/// Low bits of a stamp: the number of page writes since the mount. The other bits are the generation of the mount.
const STAMP_WRITES_BITS: u32 = 36;
/// Number of generations of the metadata, 2²⁸, that a stamp can hold; valid generations are below it. A generation
/// grows with each mount for writing. A stamp orders the versions of a page of the table of checksums.
pub const STAMP_GENERATIONS: u64 = 1 << (u64::BITS - STAMP_WRITES_BITS);

struct Page {
    sums: Box<[u8]>,
    is_dirty: bool,
    /// Whether checksums were set in the page since it was last written.
    is_changed: bool,
    /// Number of writes of the page in flight.
    writes: u32,
    used: u64,
}

impl Page {
    fn new(sums: Box<[u8]>, used: u64) -> Page {
        Page { sums, is_dirty: false, is_changed: false, writes: 0, used }
    }

    /// Returns whether the medium has the present contents of the page.
    const fn is_clean(&self) -> bool {
        !self.is_dirty && self.writes == 0
    }
}

/// Table with the CRC-32C of each block of 4 KiB of the data device, on the metadata area, with a cache of its pages.
pub struct Checksums {
    area: Mirror,
    first: u64,
    pages_on_medium: u64,
    pages: RefCell<BTreeMap<u64, Page>>,
    pages_max: usize,
    uses: Cell<u64>,
    /// Page writes since the mount.
    writes: Cell<u64>,
    /// Whether a power cut may have torn pages.
    tears: Cell<bool>,
}

/// State of a page on the medium.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Found {
    /// The page has another number, or could not be read.
    Wrong,
    /// The page does not match its checksum.
    Torn,
    /// The page was never written.
    Blank,
    /// The page is intact, with this stamp.
    Whole(u64),
}

/// Returns the CRC-32C of the bytes, usually a block of 4 KiB.
pub fn of_block(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

impl Checksums {
    /// Returns the number of blocks of 4 KiB that a table of checksums for `blocks` blocks of data takes.
    pub fn blocks_for(blocks: u64) -> u64 {
        blocks.div_ceil(PAGE_SUMS)
    }

    /// Returns the table of checksums that is stored in `pages_on_medium` blocks of 4 KiB of `area`, from block `first`
    /// on. Each block is a page of the table. At most `pages_max` pages are cached in memory; 0 counts as 1. Nothing is
    /// read yet.
    pub fn new(area: Mirror, (first, pages_on_medium): (u64, u64), pages_max: usize) -> Checksums {
        let pages_max = pages_max.max(1);
        Checksums {
            area,
            first,
            pages_on_medium,
            pages: RefCell::default(),
            pages_max,
            uses: Cell::new(0),
            writes: Cell::new(0),
            tears: Cell::new(false),
        }
    }

    /// Returns the stamp of the next page that is written (invariant 3).
    fn next_stamp(&self) -> u64 {
        self.writes.set(self.writes.get() + 1);
        (self.area.generation() << STAMP_WRITES_BITS) + self.writes.get()
    }

    /// Returns the checksums of `blocks` blocks of the data device, from block `block` on, in order. They are undefined
    /// for blocks that no file uses.
    ///
    /// # Errors
    /// A page is unreadable or damaged on all copies of the metadata.
    ///
    /// # Panics
    /// A block is behind the end of the table.
    pub async fn get(&self, block: u64, blocks: u64) -> Result<Vec<u32>, FsError> {
        let mut sums = Vec::with_capacity(blocks as usize);
        let (mut next, end) = (block, block + blocks);
        while next < end {
            let page = next / PAGE_SUMS;
            self.load(page).await?;
            let pages = self.pages.borrow();
            let bytes = &pages[&page].sums;
            while next < end && next / PAGE_SUMS == page {
                let at = HEAD_BYTES + (next % PAGE_SUMS) as usize * 4;
                sums.push(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")));
                next += 1;
            }
        }
        Ok(sums)
    }

    /// Sets the checksums of consecutive blocks of the data device, from block `block` on, in memory. They reach the
    /// medium when their page is evicted, or with [`Checksums::write_back`].
    ///
    /// # Errors
    /// A page must be read and is unreadable or damaged on all copies, or an evicted page cannot be written. Earlier
    /// checksums are set by then.
    ///
    /// # Panics
    /// A block is behind the end of the table.
    pub async fn set(&self, block: u64, sums: &[u32]) -> Result<(), FsError> {
        self.set_within(BlockRun { start: block, blocks: sums.len() as u64 }, block, sums).await
    }

    /// Sets the checksums of consecutive blocks of the data device, from block `block` on, in memory. The blocks lie in
    /// `fresh`, a run that no file uses yet. A page of the table that `fresh` covers as a whole is not read, as its old
    /// checksums are undefined. So the caller must set all checksums of `fresh`, in order, in one or several calls.
    ///
    /// # Errors
    /// A page must be read and is unreadable or damaged on all copies, or an evicted page cannot be written.
    ///
    /// # Panics
    /// A block is behind the end of the table.
    pub async fn set_within(&self, fresh: BlockRun, block: u64, sums: &[u32]) -> Result<(), FsError> {
        let (mut next, mut left) = (block, sums);
        while let Some((sum, rest)) = left.split_first() {
            let page = next / PAGE_SUMS;
            // The checksums are set in order, so none of this page is set yet.
            let is_fresh = next == page * PAGE_SUMS && next + PAGE_SUMS <= fresh.end();
            if !self.pages.borrow().contains_key(&page) {
                self.make_room(1).await?;
                if is_fresh {
                    // All checksums of the page will be overwritten, so the page need not be read.
                    self.begin_page(page);
                } else {
                    self.load(page).await?;
                }
            }
            let mut pages = self.pages.borrow_mut();
            let page = pages.get_mut(&page).expect("it was loaded just now");
            let at = HEAD_BYTES + (next % PAGE_SUMS) as usize * 4;
            page.sums[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            (page.is_dirty, page.is_changed) = (true, true);
            (next, left) = (next + 1, rest);
        }
        Ok(())
    }

    /// Ensures that page `number` is in memory; a missing page is added as a blank one.
    fn begin_page(&self, number: u64) {
        self.uses.set(self.uses.get() + 1);
        let blank = || Page::new(vec![0; BLOCK_BYTES].into(), self.uses.get());
        self.pages.borrow_mut().entry(number).or_insert_with(blank);
    }

    /// Sets whether a power cut may have torn pages, that is, whether the last unmount was not clean. If so,
    /// [`Checksums::scrub`] does not count pages as damaged that only fail their own checksum.
    pub fn may_be_torn(&self, may_be: bool) {
        self.tears.set(may_be);
    }

    /// Reads the pages of the table of checksums on every current copy of the metadata, without pages known to be
    /// zeros. Returns the number of pages that are damaged on some copy, or whose copies differ in a checksum of a
    /// block that a file uses. `live` returns the runs of such blocks within a given run. Pages that a power cut may
    /// have torn ([`Checksums::may_be_torn`]) do not count, nor do differences in pages with changes in memory. Counts
    /// the damaged and the older pages of each copy, too ([`Mirror::damage`]). If
    /// `repairs` is set, pages that are damaged or differ are marked, and the next checkpoint writes the newest version
    /// to all copies.
    ///
    /// # Errors
    /// With `repairs`: a page is unreadable or damaged on all copies.
    pub async fn scrub(&self, repairs: bool, live: impl Fn(BlockRun) -> Vec<BlockRun>) -> Result<u64, FsError> {
        let (mut next, mut damaged, mut different) = (0, 0, Vec::new());
        loop {
            // A page that was never written counts as intact.
            next = self.area.next_data(self.first + next) - self.first;
            if next >= self.pages_on_medium {
                break;
            }
            let count = SCRUB_PAGES.min(self.pages_on_medium - next);
            let copies = self.area.read_numbered_copies(self.first + next, count).await;
            for page in next..next + count {
                let offset = (page - next) as usize * BLOCK_BYTES;
                let part = |bytes: &Vec<u8>| bytes[offset..offset + BLOCK_BYTES].to_vec();
                let numbered = if copies.iter().all(|(_, bytes)| bytes.is_some()) {
                    copies.iter().map(|(number, bytes)| (*number, bytes.as_ref().map(part))).collect()
                } else {
                    self.area.read_numbered_copies(self.first + page, 1).await
                };
                let (numbers, each): (Vec<usize>, Vec<Option<Vec<u8>>>) = numbered.into_iter().unzip();
                let found: Vec<Found> =
                    each.iter().map(|bytes| bytes.as_ref().map_or(Found::Wrong, |bytes| look(page, bytes))).collect();
                if found.iter().all(|one| *one >= Found::Blank && *one == found[0]) {
                    continue;
                }
                different.push(page);
                if self.is_damaged(page, &each, &found, &live) {
                    damaged += 1;
                    // A page that is damaged on all copies is repaired on none: the scrub fails.
                    let newest = found.iter().max();
                    let is_worse = |one: &Found| *one == Found::Wrong || Some(one) != newest;
                    let worse = numbers.iter().zip(&found).filter(|(_, one)| is_worse(one));
                    worse.for_each(|(number, _)| self.area.note_damage(*number));
                }
            }
            next += count;
        }
        for page in different.iter().filter(|_| repairs) {
            self.load(*page).await?;
            if let Some(page) = self.pages.borrow_mut().get_mut(page) {
                page.is_dirty = true;
            }
        }
        Ok(damaged)
    }

    /// Returns whether differing copies of page `number` are damage. They are not if a power cut explains them: torn
    /// pages, and pages that differ only in checksums of blocks that no file uses.
    fn is_damaged(
        &self,
        number: u64,
        each: &[Option<Vec<u8>>],
        found: &[Found],
        live: &impl Fn(BlockRun) -> Vec<BlockRun>,
    ) -> bool {
        let least = if self.tears.get() { Found::Torn } else { Found::Blank };
        if found.iter().any(|one| *one < least) {
            return true;
        }
        // Changes in memory, and writes in flight, need not be on the medium yet.
        if self.pages.borrow().get(&number).is_some_and(|page| page.is_changed || page.writes > 0) {
            return false;
        }
        let run = BlockRun { start: number * PAGE_SUMS, blocks: PAGE_SUMS };
        let runs = live(run);
        let blocks = runs.iter().flat_map(|it| it.start.max(run.start)..it.end().min(run.end()));
        blocks.into_iter().any(|block| {
            let at = HEAD_BYTES + (block - run.start) as usize * 4;
            let mut sums = each.iter().flatten().map(|bytes| word(bytes, at));
            let first = sums.next();
            sums.any(|sum| Some(sum) != first)
        })
    }

    /// Writes all changed pages of the table of checksums to all copies of the metadata. They are durable after a flush
    /// of the area.
    ///
    /// # Errors
    /// A write fails on all copies. The page stays marked as changed.
    pub async fn write_back(&self) -> Result<(), FsError> {
        let dirty: Vec<u64> = self.pages.borrow().iter().filter(|(_, page)| page.is_dirty).map(|(at, _)| *at).collect();
        for page in dirty {
            self.write_page(page).await?;
        }
        Ok(())
    }

    async fn write_page(&self, number: u64) -> Result<(), FsError> {
        let bytes = {
            let mut pages = self.pages.borrow_mut();
            let Some(page) = pages.get_mut(&number).filter(|page| page.is_dirty) else { return Ok(()) };
            (page.is_dirty, page.is_changed, page.writes) = (false, false, page.writes + 1);
            sealed(number, self.next_stamp(), &page.sums)
        };
        let outcome = self.area.write(self.first + number, &bytes).await;
        let mut pages = self.pages.borrow_mut();
        let page = pages.get_mut(&number).expect("it stays while it is written");
        (page.is_dirty, page.writes) = (page.is_dirty || outcome.is_err(), page.writes - 1);
        Ok(outcome?)
    }

    /// Ensures that page `number` is in memory, by reading it if necessary.
    async fn load(&self, number: u64) -> Result<(), FsError> {
        assert!(number < self.pages_on_medium, "page {number} of a table of {}", self.pages_on_medium);
        self.uses.set(self.uses.get() + 1);
        if let Some(page) = self.pages.borrow_mut().get_mut(&number) {
            page.used = self.uses.get();
            return Ok(());
        }
        let mut count = self.pages_ahead(number);
        while !self.read_pages(number, count).await? {
            // One of the following pages may be the unreadable one.
            count = 1;
        }
        Ok(())
    }

    /// Returns how many pages to read at once from `number` on, which is not in memory. The number grows with the pages
    /// before it in memory, since they indicate a sequential access.
    fn pages_ahead(&self, number: u64) -> u64 {
        let pages = self.pages.borrow();
        let most = AHEAD_PAGES.min(self.pages_max as u64 / 4).min(self.pages_on_medium - number);
        let before = (1..=most.min(number)).take_while(|back| pages.contains_key(&(number - back))).count() as u64;
        (1..before.max(1)).take_while(|ahead| !pages.contains_key(&(number + ahead))).count() as u64 + 1
    }

    /// Reads `count` pages from `number` on, none of which is in memory, and keeps the usable ones. Returns false if
    /// the caller must try again with fewer pages.
    ///
    /// # Errors
    /// Page `number` is damaged on all copies.
    async fn read_pages(&self, number: u64, count: u64) -> Result<bool, FsError> {
        self.evict_clean(count);
        let copies = self.area.read_copies(self.first + number, count).await;
        // Another task may have loaded and changed the page meanwhile.
        if self.pages.borrow().contains_key(&number) {
            return Ok(true);
        }
        if count > 1 && copies.iter().any(Option::is_none) {
            return Ok(false);
        }
        for page in number..number + count {
            let offset = (page - number) as usize * BLOCK_BYTES;
            let each = copies.iter().map(|bytes| bytes.as_ref().map(|bytes| &bytes[offset..offset + BLOCK_BYTES]));
            let is_kept = self.keep_newest(page, &each.collect::<Vec<_>>());
            if page == number && !is_kept {
                // If the page is unreadable, the fault of this read is the better error.
                self.area.read(self.first + number, 1).await?;
                let place = self.area.name();
                return Err(FsError::format(&place, format!("page {number} of the checksums of data is damaged")));
            }
        }
        Ok(true)
    }

    /// Keeps the newest of the copies of a page, unless the page is in memory. If the copies differ, the page is
    /// written to all of them with the next checkpoint. Returns whether any copy is usable.
    fn keep_newest(&self, number: u64, copies: &[Option<&[u8]>]) -> bool {
        let found: Vec<Found> =
            copies.iter().map(|bytes| bytes.map_or(Found::Wrong, |bytes| look(number, bytes))).collect();
        let newest = found.iter().copied().max().unwrap_or(Found::Wrong);
        let at = found.iter().position(|one| *one == newest);
        let Some(sums) = at.and_then(|at| copies[at]).filter(|_| newest != Found::Wrong) else { return false };
        let mut pages = self.pages.borrow_mut();
        let page = pages.entry(number).or_insert_with(|| Page::new(sums.into(), self.uses.get()));
        page.is_dirty |= newest == Found::Torn || found.iter().any(|one| *one != newest);
        true
    }

    /// Evicts the least recently used pages until there is room for `count` more. Dirty pages are written first.
    async fn make_room(&self, count: u64) -> Result<(), FsError> {
        while self.pages_too_many(count) > 0 {
            let mut has_left = false;
            for number in self.oldest(count, |_| true) {
                self.write_page(number).await?;
                has_left |= self.evict(number);
            }
            if !has_left {
                // The remaining pages are evicted by the tasks that are writing them.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Evicts clean pages until there is room for `count` more or none is left (invariant 4).
    fn evict_clean(&self, count: u64) {
        if self.pages_too_many(count) > 0 {
            for number in self.oldest(count, Page::is_clean) {
                self.evict(number);
            }
        }
    }

    /// Returns how many pages must be evicted before there is room for `count` more.
    fn pages_too_many(&self, count: u64) -> usize {
        (self.pages.borrow().len() + count as usize).saturating_sub(self.pages_max)
    }

    /// Returns the least recently used pages that satisfy `may_leave`: a sixteenth of `pages_max`, or as many as must
    /// be evicted for `count` more.
    fn oldest(&self, count: u64, may_leave: impl Fn(&Page) -> bool) -> Vec<u64> {
        let pages = self.pages.borrow();
        let candidates = pages.iter().filter(|(_, page)| may_leave(page));
        let mut oldest: Vec<(u64, u64)> = candidates.map(|(number, page)| (page.used, *number)).collect();
        // Several at a time, because each search visits all pages.
        let some = (self.pages_max / 16).max(self.pages_too_many(count)).min(oldest.len());
        if some > 0 {
            oldest.select_nth_unstable(some - 1);
        }
        oldest.truncate(some);
        oldest.into_iter().map(|(_, number)| number).collect()
    }

    /// Evicts a page if it is clean, and returns whether it was. Another task may have changed it, or may be writing
    /// it.
    fn evict(&self, number: u64) -> bool {
        let mut pages = self.pages.borrow_mut();
        let is_clean = pages.get(&number).is_some_and(Page::is_clean);
        is_clean && pages.remove(&number).is_some()
    }
}

fn sealed(number: u64, stamp: u64, sums: &[u8]) -> Vec<u8> {
    let mut bytes = sums.to_vec();
    bytes[..4].copy_from_slice(&low_half(number + 1).to_le_bytes());
    bytes[4..8].copy_from_slice(&low_half(stamp >> 32).to_le_bytes());
    bytes[8..12].fill(0);
    bytes[12..HEAD_BYTES].copy_from_slice(&low_half(stamp).to_le_bytes());
    let sum = checksum(&[&bytes]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn low_half(number: u64) -> u32 {
    (number & u64::from(u32::MAX)) as u32
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Classifies `bytes`, read from the place of page `number`.
fn look(number: u64, bytes: &[u8]) -> Found {
    let stamp = u64::from(word(bytes, 4)) << 32 | u64::from(word(bytes, 12));
    let is_numbered = word(bytes, 0) == low_half(number + 1);
    if is_numbered && sealed(number, stamp, bytes) == bytes {
        return Found::Whole(stamp);
    }
    let is_headless = bytes[..HEAD_BYTES].iter().all(|byte| *byte == 0);
    match is_numbered || is_headless {
        true if is_headless && bytes.iter().all(|byte| *byte == 0) => Found::Blank,
        true => Found::Torn,
        false => Found::Wrong,
    }
}

const _: () = assert!(HEAD_BYTES + PAGE_SUMS as usize * 4 == BLOCK_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(seed: u8) -> Vec<u8> {
        (0..BLOCK_BYTES).map(|at| (at as u8).wrapping_mul(31) ^ seed).collect()
    }

    #[test]
    fn a_page_is_known_with_its_stamp_and_no_other_is() {
        let page = sealed(7, 5 << 36 | 9, &sums(1));
        assert_eq!(look(7, &page), Found::Whole(5 << 36 | 9));
        assert_eq!(look(8, &page), Found::Wrong, "it is another page");
        for at in 4..BLOCK_BYTES {
            let mut altered = page.clone();
            altered[at] ^= 0x10;
            assert_eq!(look(7, &altered), Found::Torn, "byte {at}");
        }
        assert_eq!(look(7, &vec![0; BLOCK_BYTES]), Found::Blank);
        // A page of format 8: the number takes eight bytes, and there is no stamp.
        let mut older = sums(2);
        older[..HEAD_BYTES].fill(0);
        older[0] = 8;
        let sum = checksum(&[&older]);
        older[8..12].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(look(7, &older), Found::Whole(0));
    }

    #[test]
    fn every_tear_of_a_page_is_known_as_one() {
        let (blank, one, other) = (vec![0; BLOCK_BYTES], sealed(7, 1, &sums(1)), sealed(7, 2, &sums(2)));
        for before in [blank, one] {
            for sectors in 1..255_u32 {
                let mut torn = before.clone();
                for sector in (0..8).filter(|sector| sectors >> sector & 1 == 1) {
                    torn[sector * 512..(sector + 1) * 512].copy_from_slice(&other[sector * 512..(sector + 1) * 512]);
                }
                assert_eq!(look(7, &torn), Found::Torn, "sectors {sectors:08b}");
            }
        }
    }

    #[test]
    fn what_was_written_later_counts() {
        assert!(Found::Whole(0) > Found::Blank && Found::Blank > Found::Torn && Found::Torn > Found::Wrong);
        assert!(Found::Whole(2 << STAMP_WRITES_BITS) > Found::Whole((1 << STAMP_WRITES_BITS) + 999));
    }
}
