//! The checksums of data: CRC-32C of every block of 4 KiB, in a table by block of the data device. A page of the table is
//! a block of its own with a checksum; the pages in memory are few, and which ones does not matter.
//!
//! A record brings the checksums of the blocks it names, so a page may be written at any time; a checkpoint writes all
//! that are not. Blocks that no file uses have checksums that mean nothing.
//!
//! Invariants:
//! 1. At most `pages_max` pages are in memory, and those besides that each task has just read.
//! 2. A page leaves memory only when it is on the medium as it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::coding::checksum;
use crate::journal::mirror::Mirror;
use crate::store::Run;

/// Checksums in a page.
pub const PAGE_SUMS: u64 = 1020;
const HEAD_BYTES: usize = 16;
/// Pages that are read at once where all are looked at.
const SCRUB_PAGES: u64 = 256;
/// Pages that are read at once where they are needed one after the other, at most: those of 256 MiB of data.
const AHEAD_PAGES: u64 = 64;

struct Page {
    sums: Box<[u8]>,
    is_dirty: bool,
    /// How many writes of it are under way.
    writes: u32,
    used: u64,
}

impl Page {
    fn new(sums: Box<[u8]>, used: u64) -> Page {
        Page { sums, is_dirty: false, writes: 0, used }
    }

    /// Whether it is on the medium as it is.
    const fn is_clean(&self) -> bool {
        !self.is_dirty && self.writes == 0
    }
}

/// The table.
pub struct Checksums {
    area: Mirror,
    first: u64,
    pages_on_medium: u64,
    pages: RefCell<BTreeMap<u64, Page>>,
    pages_max: usize,
    uses: Cell<u64>,
}

/// The checksum of a block.
pub fn of_block(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

impl Checksums {
    /// Blocks that a table for `blocks` of data takes.
    pub fn blocks_for(blocks: u64) -> u64 {
        blocks.div_ceil(PAGE_SUMS)
    }

    /// The table in `pages_on_medium` blocks of `area`, from `first` on.
    pub fn new(area: Mirror, (first, pages_on_medium): (u64, u64), pages_max: usize) -> Checksums {
        let pages_max = pages_max.max(1);
        Checksums { area, first, pages_on_medium, pages: RefCell::default(), pages_max, uses: Cell::new(0) }
    }

    /// The checksums of `blocks` from `block` on.
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

    /// Sets the checksums of the blocks from `block` on.
    pub async fn set(&self, block: u64, sums: &[u32]) -> Result<(), FsError> {
        self.set_within(Run { start: block, blocks: sums.len() as u64 }, block, sums).await
    }

    /// The same, where what the table says of `fresh` means nothing, for no file uses these blocks yet; they are all set, in
    /// order.
    pub async fn set_within(&self, fresh: Run, block: u64, sums: &[u32]) -> Result<(), FsError> {
        let (mut next, mut left) = (block, sums);
        while let Some((sum, rest)) = left.split_first() {
            let page = next / PAGE_SUMS;
            // They are set in order: none of this page is set yet.
            let is_fresh = next == page * PAGE_SUMS && next + PAGE_SUMS <= fresh.end();
            if !self.pages.borrow().contains_key(&page) {
                if is_fresh {
                    // Nobody needs what the medium has of it.
                    self.begin_page(page).await?;
                } else {
                    self.load(page).await?;
                }
            }
            let mut pages = self.pages.borrow_mut();
            let page = pages.get_mut(&page).expect("it was loaded just now");
            let at = HEAD_BYTES + (next % PAGE_SUMS) as usize * 4;
            page.sums[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            page.is_dirty = true;
            (next, left) = (next + 1, rest);
        }
        Ok(())
    }

    /// Sees to it that page `number` is in memory, as one that was never written if it is not there.
    async fn begin_page(&self, number: u64) -> Result<(), FsError> {
        self.make_room(1).await?;
        self.uses.set(self.uses.get() + 1);
        let blank = || Page::new(vec![0; BLOCK_BYTES].into(), self.uses.get());
        self.pages.borrow_mut().entry(number).or_insert_with(blank);
        Ok(())
    }

    /// Reads every page of every copy of the metadata. Returns how many are damaged on some copy. If it `repairs`,
    /// these are written with the next checkpoint as another copy has them.
    pub async fn scrub(&self, repairs: bool) -> Result<u64, FsError> {
        let (mut next, mut damaged) = (0, Vec::new());
        loop {
            // A page that was never written is whole.
            next = self.area.next_data(self.first + next) - self.first;
            if next >= self.pages_on_medium {
                break;
            }
            let count = SCRUB_PAGES.min(self.pages_on_medium - next);
            let is_right = |at: u64, page: &[u8]| is_whole(next + at, page);
            let wrong = self.area.damaged_blocks(self.first + next, count, is_right).await;
            damaged.extend(wrong.into_iter().map(|at| next + at));
            next += count;
        }
        for page in damaged.iter().filter(|_| repairs) {
            self.load(*page).await?;
            if let Some(page) = self.pages.borrow_mut().get_mut(page) {
                page.is_dirty = true;
            }
        }
        Ok(damaged.len() as u64)
    }

    /// Writes every page that is not on the medium as it is. They are durable after a flush of the area.
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
            (page.is_dirty, page.writes) = (false, page.writes + 1);
            sealed(number, &page.sums)
        };
        let outcome = self.area.write(self.first + number, &bytes).await;
        let mut pages = self.pages.borrow_mut();
        let page = pages.get_mut(&number).expect("it stays while it is written");
        (page.is_dirty, page.writes) = (page.is_dirty || outcome.is_err(), page.writes - 1);
        Ok(outcome?)
    }

    /// Sees to it that page `number` is in memory.
    async fn load(&self, number: u64) -> Result<(), FsError> {
        assert!(number < self.pages_on_medium, "page {number} of a table of {}", self.pages_on_medium);
        self.uses.set(self.uses.get() + 1);
        if let Some(page) = self.pages.borrow_mut().get_mut(&number) {
            page.used = self.uses.get();
            return Ok(());
        }
        let mut count = self.pages_ahead(number);
        while !self.read_pages(number, count).await? {
            // One of those behind it may be why.
            count = 1;
        }
        Ok(())
    }

    /// How many pages to read at once from `number` on, which is not in memory: as many as lie before it in memory, since
    /// then somebody goes through them in order.
    fn pages_ahead(&self, number: u64) -> u64 {
        let pages = self.pages.borrow();
        let most = AHEAD_PAGES.min(self.pages_max as u64 / 4).min(self.pages_on_medium - number);
        let before = (1..=most.min(number)).take_while(|back| pages.contains_key(&(number - back))).count() as u64;
        (1..before.max(1)).take_while(|ahead| !pages.contains_key(&(number + ahead))).count() as u64 + 1
    }

    /// Reads `count` pages, none of which is in memory, from `number` on, and keeps those that are whole. False where that
    /// is to be tried again.
    async fn read_pages(&self, number: u64, count: u64) -> Result<bool, FsError> {
        self.make_room(count).await?;
        let at = self.first + number;
        let whole = |bytes: &Vec<u8>| is_whole(number, &bytes[..BLOCK_BYTES]);
        let found = self.area.find(async |copy| copy.read(at, count).await.ok().filter(whole)).await;
        // Another task may have loaded it meanwhile, and changed it.
        if self.pages.borrow().contains_key(&number) {
            return Ok(true);
        }
        let Some((bytes, is_damaged)) = found else {
            if count > 1 {
                return Ok(false);
            }
            // Why it cannot be read, if that is so.
            self.area.read(at, 1).await?;
            let place = self.area.name();
            return Err(FsError::format(&place, format!("page {number} of the checksums of data is damaged")));
        };
        let mut pages = self.pages.borrow_mut();
        for (number, sums) in (number..).zip(bytes.chunks(BLOCK_BYTES)) {
            if !pages.contains_key(&number) && is_whole(number, sums) {
                pages.insert(number, Page::new(sums.into(), self.uses.get()));
            }
        }
        // Where a copy has it damaged, it is written to all with the next checkpoint.
        pages.get_mut(&number).expect("it is whole").is_dirty |= is_damaged;
        Ok(true)
    }

    /// Lets those pages leave that were not used for longest, until there is room for `count` more.
    async fn make_room(&self, count: u64) -> Result<(), FsError> {
        while self.pages.borrow().len() + count as usize > self.pages_max {
            let mut oldest: Vec<(u64, u64)> =
                self.pages.borrow().iter().map(|(number, page)| (page.used, *number)).collect();
            let mut has_left = false;
            // Some at a time: to find the oldest all are looked at.
            let some = (self.pages_max / 16).max(count as usize).min(oldest.len());
            oldest.select_nth_unstable(some - 1);
            oldest.truncate(some);
            for (_, number) in oldest {
                self.write_page(number).await?;
                let mut pages = self.pages.borrow_mut();
                // It may have been changed again while it was written, or somebody else still writes it.
                if pages.get(&number).is_some_and(Page::is_clean) {
                    pages.remove(&number);
                    has_left = true;
                }
            }
            if !has_left {
                // Whoever writes them lets them leave.
                return Ok(());
            }
        }
        Ok(())
    }
}

fn sealed(number: u64, sums: &[u8]) -> Vec<u8> {
    let mut bytes = sums.to_vec();
    bytes[..8].copy_from_slice(&(number + 1).to_le_bytes());
    bytes[8..HEAD_BYTES].fill(0);
    let sum = checksum(&[&bytes]);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Whether a page is as it was written; one that never was is all zeros.
fn is_whole(number: u64, bytes: &[u8]) -> bool {
    let has_number = bytes[..8] == (number + 1).to_le_bytes();
    (has_number && sealed(number, bytes) == bytes) || bytes.iter().all(|byte| *byte == 0)
}

const _: () = assert!(HEAD_BYTES + PAGE_SUMS as usize * 4 == BLOCK_BYTES);
