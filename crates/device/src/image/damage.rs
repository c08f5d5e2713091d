//! The damage bitmap: a bit for every sector of the platters, set where a write beside it destroyed what it held. A read
//! of such a sector is an error, never silently old data (Singh 2014 §4.1).
//!
//! On a caveat disk every sector is maybe damaged until it is written: there the stored bits are inverted, so that a new
//! image is sparse all the same.
//!
//! Invariants:
//! 1. What is in memory is what the image holds: changes go out with the write that causes them, in one act.
//! 2. Pages without a slot hold the state of a new drive.

use std::collections::BTreeMap;

use imbrex_disk::{Extent, Pba};

use crate::error::DeviceError;
use crate::image::space::{Region, Space};
use crate::media::Media;

/// Bytes of a page of the bitmap: 16 MiB of sectors of 512 bytes.
const PAGE_BYTES: u64 = 4096;
const PAGE_BITS: u64 = PAGE_BYTES * 8;
/// Pages kept; more are read again when needed.
const PAGES_MAX: usize = 4096;

/// The bitmap.
#[derive(Debug)]
pub struct Damage {
    pages: BTreeMap<u64, Box<[u8]>>,
    inverted: bool,
}

/// Bytes of the bitmap that changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Where, in the region.
    pub offset: u64,
    /// What they are now.
    pub bytes: Vec<u8>,
}

impl Damage {
    /// A bitmap; `inverted` where a new sector counts as damaged.
    pub fn new(inverted: bool) -> Damage {
        Damage { pages: BTreeMap::new(), inverted }
    }

    /// The first damaged sector of `extent`, if any.
    pub fn first(&mut self, space: &mut Space<impl Media>, extent: Extent) -> Result<Option<Pba>, DeviceError> {
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let page = at / PAGE_BITS;
            let end = extent.end().0.min((page + 1) * PAGE_BITS);
            let blank = if self.inverted { 0xff } else { 0 };
            match self.page(space, page, false)? {
                Some(bytes) => {
                    if let Some(found) = find_set(bytes, at % PAGE_BITS, end - page * PAGE_BITS, blank) {
                        return Ok(Some(Pba(page * PAGE_BITS + found)));
                    }
                }
                None if blank == 0xff => return Ok(Some(Pba(at))),
                None => {}
            }
            at = end;
        }
        Ok(None)
    }

    /// Marks `extent` as damaged or whole; appends what changed to `changes`, which the caller writes out.
    pub fn mark(
        &mut self,
        space: &mut Space<impl Media>,
        extent: Extent,
        damaged: bool,
        changes: &mut Vec<Change>,
    ) -> Result<(), DeviceError> {
        let bit = damaged != self.inverted;
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let page = at / PAGE_BITS;
            let end = extent.end().0.min((page + 1) * PAGE_BITS);
            // A page that is not there is all zeros: to clear in it changes nothing.
            if let Some(bytes) = self.page(space, page, bit)? {
                if let Some((first, last)) = set_range(bytes, at % PAGE_BITS, end - page * PAGE_BITS, bit) {
                    changes
                        .push(Change { offset: page * PAGE_BYTES + first as u64, bytes: bytes[first..=last].to_vec() });
                }
            }
            at = end;
        }
        Ok(())
    }

    /// Calls `each` with every run of damaged sectors of `extent`, in order.
    pub fn for_each(
        &mut self,
        space: &mut Space<impl Media>,
        extent: Extent,
        mut each: impl FnMut(Extent),
    ) -> Result<(), DeviceError> {
        let mut open: Option<Extent> = None;
        let mut at = extent.start.0;
        while at < extent.end().0 {
            let page = at / PAGE_BITS;
            let end = extent.end().0.min((page + 1) * PAGE_BITS);
            let inverted = self.inverted;
            let bits = self.page(space, page, false)?;
            if bits.is_none() {
                // A page that is not there says the same of all its sectors.
                if inverted {
                    let run = open.get_or_insert(Extent::between(Pba(at), Pba(at)));
                    *run = Extent::between(run.start, Pba(end));
                } else {
                    open.take().into_iter().for_each(&mut each);
                }
                at = end;
                continue;
            }
            let mut sector = at;
            while sector < end {
                let within = sector % PAGE_BITS;
                let byte = bits.as_ref().map_or(0, |bytes| bytes[(within / 8) as usize]);
                let byte = if inverted { !byte } else { byte };
                // A whole byte at a time where it says nothing new.
                if byte == 0 && within.is_multiple_of(8) {
                    open.take().into_iter().for_each(&mut each);
                    sector = (sector + 8).min(end);
                    continue;
                }
                if byte >> (within % 8) & 1 == 1 {
                    let run = open.get_or_insert(Extent::between(Pba(sector), Pba(sector)));
                    *run = Extent::between(run.start, Pba(sector + 1));
                } else {
                    open.take().into_iter().for_each(&mut each);
                }
                sector += 1;
            }
            at = end;
        }
        open.into_iter().for_each(each);
        Ok(())
    }

    /// Page `page`; where the image has none, nothing, unless `needed`.
    fn page(
        &mut self,
        space: &mut Space<impl Media>,
        page: u64,
        needed: bool,
    ) -> Result<Option<&mut Box<[u8]>>, DeviceError> {
        if !self.pages.contains_key(&page) {
            let is_there = space.is_allocated(Region::Damage, page * PAGE_BYTES, 1)?;
            if !is_there && !needed {
                return Ok(None);
            }
            if self.pages.len() >= PAGES_MAX {
                self.pages.clear();
            }
            let mut bytes = vec![0; PAGE_BYTES as usize].into_boxed_slice();
            if is_there {
                space.read(Region::Damage, page * PAGE_BYTES, &mut bytes)?;
            }
            self.pages.insert(page, bytes);
        }
        Ok(self.pages.get_mut(&page))
    }
}

/// The first bit of [from, to) that differs from what bytes of `blank` hold.
fn find_set(bytes: &[u8], from: u64, to: u64, blank: u8) -> Option<u64> {
    let mut bit = from;
    while bit < to {
        let byte = bytes[(bit / 8) as usize] ^ blank;
        if byte == 0 {
            bit = (bit / 8 + 1) * 8;
        } else if byte >> (bit % 8) & 1 == 1 {
            return Some(bit);
        } else {
            bit += 1;
        }
    }
    None
}

/// Sets bits [from, to) to `value`; the first and the last byte that changed, if any did.
fn set_range(bytes: &mut [u8], from: u64, to: u64, value: bool) -> Option<(usize, usize)> {
    let mut changed: Option<(usize, usize)> = None;
    let first = (from / 8) as usize;
    for (index, byte) in bytes.iter_mut().enumerate().take(to.div_ceil(8) as usize).skip(first) {
        let low = from.saturating_sub(index as u64 * 8).min(8);
        let high = (to - index as u64 * 8).min(8);
        let mask = ((1u16 << high) - (1u16 << low)) as u8;
        let now = if value { *byte | mask } else { *byte & !mask };
        if now != *byte {
            *byte = now;
            changed = Some((changed.map_or(index, |(first, _)| first), index));
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_set_as_bit_by_bit(ranges in prop::collection::vec((0u64..200, 0u64..80, any::<bool>()), 1..20)) {
            let (mut bytes, mut naive) = (vec![0u8; 40], [false; 320]);
            for (from, length, value) in ranges {
                let before = bytes.clone();
                let changed = set_range(&mut bytes, from, from + length, value);
                naive[from as usize..(from + length) as usize].fill(value);
                for (bit, expected) in naive.iter().enumerate() {
                    prop_assert_eq!(bytes[bit / 8] >> (bit % 8) & 1 == 1, *expected, "bit {}", bit);
                }
                let differing: Vec<usize> = (0..40).filter(|&index| bytes[index] != before[index]).collect();
                prop_assert_eq!(changed, differing.first().map(|&first| (first, *differing.last().expect("one"))));
                let found = find_set(&bytes, from, 320, 0);
                prop_assert_eq!(found, (from..320).find(|&bit| naive[bit as usize]));
            }
        }
    }
}
