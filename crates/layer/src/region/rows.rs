//! Regions in rows. A row is a sequence of regions of equal length at equal distances, stored as its first region and a
//! count. A drive of millions of regions has as many rows as strokes, so layout and look-up are fast.
//!
//! Invariants:
//! 1. Rows are ordered by PBA, and so are their regions, which share no sector.
//! 2. A row includes every region that continues it: regions added one by one and regions added at once make equal
//!    rows.

use std::ops::Range;

use imbrex_disk::{Extent, Pba, Sectors};

/// A sequence of regions of equal length, whose starts have equal distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// First sector of the row's first region.
    start: u64,
    /// Sectors from the start of one region to the start of the next; 0 if the row has only one region.
    step: u64,
    /// Number of sectors of each region of the row. A row is a sequence of regions of equal length at equal distances.
    pub sectors: u64,
    /// First LBA of the first region of the row, a sequence of regions of equal length.
    pub lba: u64,
    /// Number of the first region of the row, counted from 0 over the regions of all rows. A row is a sequence of
    /// regions of equal length.
    pub first: u32,
    /// Number of regions in the row, a sequence of regions of equal length; at least 1.
    pub count: u32,
}

impl Row {
    /// Returns the first physical sector of the region at `index` in the row, counted from 0.
    #[inline]
    pub(super) fn start(&self, index: u64) -> u64 {
        self.start + index * self.step
    }

    /// Returns the number of sectors from the start of one region of the row to the start of the next; the length of
    /// the region if the row has only one.
    pub(super) fn step(&self) -> u64 {
        self.step.max(self.sectors)
    }

    /// Returns one past the number of the row's last region.
    pub(super) fn end(&self) -> usize {
        self.first as usize + self.count as usize
    }

    /// Returns how many regions of the row begin at or before `position`.
    fn upper_bound(&self, position: u64) -> u64 {
        match (position.checked_sub(self.start), self.step) {
            (None, _) => 0,
            (Some(_), 0) => 1,
            (Some(distance), step) => (distance / step + 1).min(u64::from(self.count)),
        }
    }

    /// Returns whether a region of `sectors` at `start` continues the row.
    fn goes_on_with(&self, start: u64, sectors: u64) -> bool {
        sectors == self.sectors && (self.step == 0 || start == self.start(u64::from(self.count)))
    }
}

/// A list of regions in order of PBA, stored as rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    len: usize,
    capacity: u64,
}

impl Rows {
    /// Returns the number of regions.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the total number of sectors of all regions.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Appends a region, which must lie after all others.
    pub(super) fn push(&mut self, region: Extent) {
        let (start, sectors) = (region.start.0, region.sectors.0);
        match self.rows.last_mut() {
            Some(row) if row.goes_on_with(start, sectors) => {
                row.step = if row.step == 0 { start - row.start } else { row.step };
                row.count += 1;
            }
            _ => {
                let first = u32::try_from(self.len).expect("a disk has fewer than 2³² regions");
                self.rows.push(Row { start, step: 0, sectors, lba: self.capacity, first, count: 1 });
            }
        }
        self.len += 1;
        self.capacity += sectors;
    }

    /// Appends `count` regions as long as `first`. The first of them is `first`; each of the others begins `step`
    /// sectors after the start of the one before it.
    pub(super) fn push_many(&mut self, first: Extent, step: u64, count: u64) {
        let mut pushed = 0;
        while pushed < count {
            let next = Extent::new(first.start + Sectors(pushed * step), first.sectors);
            self.push(next);
            pushed += 1;
            let row = self.rows.last_mut().expect("it was just pushed");
            if row.count > 1 && row.step == step {
                let rest = count - pushed;
                row.count += u32::try_from(rest).expect("a disk has fewer than 2³² regions");
                self.len += rest as usize;
                self.capacity += rest * first.sectors.0;
                return;
            }
        }
    }

    /// Appends the regions of `others` whose numbers lie in `range`, which must lie after all regions of this list.
    pub(super) fn push_slice(&mut self, others: &Rows, range: Range<usize>) {
        let from = others.rows.partition_point(|row| row.end() <= range.start);
        for row in others.rows[from..].iter().take_while(|row| (row.first as usize) < range.end) {
            let skipped = range.start.saturating_sub(row.first as usize) as u64;
            let count = (range.end.min(row.end()) - row.first as usize) as u64 - skipped;
            self.push_many(Extent::new(Pba(row.start(skipped)), Sectors(row.sectors)), row.step, count);
        }
    }

    /// Returns how many regions begin at or before the physical sector `position`.
    pub(super) fn upper_bound(&self, position: u64) -> usize {
        let row = self.rows.partition_point(|row| row.start <= position);
        row.checked_sub(1)
            .map_or(0, |row| self.rows[row].first as usize + self.rows[row].upper_bound(position) as usize)
    }

    /// Returns the physical sectors of the region with the number `index`, counted from 0.
    pub(super) fn extent(&self, index: usize) -> Extent {
        let row = &self.rows[self.rows.partition_point(|row| row.end() <= index)];
        Extent::new(Pba(row.start((index - row.first as usize) as u64)), Sectors(row.sectors))
    }

    /// Returns the numbers of the regions that share a sector with `extent`, which must not be empty.
    pub(super) fn overlapping(&self, extent: Extent) -> Range<usize> {
        let begun = self.upper_bound(extent.start.0);
        let reaches_in = begun > 0 && self.extent(begun - 1).end() > extent.start;
        begun - usize::from(reaches_in)..self.upper_bound(extent.end().0 - 1)
    }

    /// Returns the bytes of heap memory that the rows take now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.rows.capacity() * size_of::<Row>()) as u64
    }
}

/// An index from keys (region numbers or LBAs) to rows: it narrows the search for the row that contains a key to few
/// rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Guesses {
    /// For bucket b, the index of the row that contains the key b · 2^shift.
    rows: Vec<u32>,
    shift: u32,
}

impl Guesses {
    /// Returns an index with about as many buckets as there are rows, for keys below `end`. `key` returns the key of a
    /// row's first region.
    pub(super) fn new(rows: &[Row], end: u64, key: impl Fn(&Row) -> u64) -> Guesses {
        let shift = (end / (rows.len() as u64).max(1)).max(1).ilog2();
        let mut row = 0;
        let holds = |position: u64| {
            while row + 1 < rows.len() && key(&rows[row + 1]) <= position {
                row += 1;
            }
            row as u32
        };
        let buckets = (end >> shift) + 2;
        Guesses { rows: (0..buckets).map(|bucket| bucket << shift).map(holds).collect(), shift }
    }

    /// Returns the row that contains the key `position`.
    #[inline]
    pub(super) fn row<'a>(&self, rows: &'a [Row], position: u64, key: impl Fn(&Row) -> u64) -> &'a Row {
        let bucket = (position >> self.shift) as usize;
        let (low, high) = (self.rows[bucket] as usize, self.rows[bucket + 1] as usize);
        let after = &rows[low + 1..=high];
        &rows[low + after.partition_point(|row| key(row) <= position)]
    }

    /// Returns the bytes of heap memory that the index takes now.
    pub(super) fn measured_bytes(&self) -> u64 {
        (self.rows.capacity() * size_of::<u32>()) as u64
    }
}

#[cfg(test)]
mod tests {
    //! Goal: rows equal a list of regions. Method: random stretches of regions, added one by one and at once, looked up
    //! both ways; slices of them likewise.

    use super::*;
    use proptest::prelude::*;

    fn listed(rows: &Rows) -> Vec<Extent> {
        (0..rows.len()).map(|index| rows.extent(index)).collect()
    }

    proptest! {
        #[test]
        fn rows_equal_a_list(
            stretches in prop::collection::vec((0u64..4, 1u64..4, 0u64..3, 1u64..6), 0..20),
            cut in (0usize..40, 0usize..40),
        ) {
            let (mut one_by_one, mut at_once, mut naive, mut next) = (Rows::default(), Rows::default(), Vec::new(), 0);
            for (gap, sectors, guard, count) in stretches {
                let first = Extent::new(Pba(next + gap), Sectors(sectors));
                at_once.push_many(first, sectors + guard, count);
                for number in 0..count {
                    let region = Extent::new(first.start + Sectors(number * (sectors + guard)), first.sectors);
                    one_by_one.push(region);
                    naive.push(region);
                    next = region.end().0;
                }
            }
            prop_assert_eq!(&one_by_one, &at_once, "invariant 2");
            prop_assert_eq!(&listed(&at_once), &naive);
            prop_assert_eq!(at_once.capacity(), naive.iter().map(|region| region.sectors.0).sum::<u64>());
            for start in 0..next {
                let extent = Extent::new(Pba(start), Sectors(5));
                let met: Vec<usize> = (0..naive.len()).filter(|&index| naive[index].intersection(extent).is_some()).collect();
                prop_assert_eq!(at_once.overlapping(extent).collect::<Vec<_>>(), met);
                let begun = naive.iter().filter(|region| region.start.0 <= start).count();
                prop_assert_eq!(at_once.upper_bound(start), begun);
            }
            let from = cut.0.min(naive.len());
            let to = cut.1.clamp(from, naive.len().max(from)).min(naive.len());
            let mut slice = Rows::default();
            slice.push_slice(&at_once, from..to);
            prop_assert_eq!(listed(&slice), &naive[from..to]);
            let guesses = Guesses::new(at_once.rows(), at_once.len() as u64, |row| u64::from(row.first));
            for index in 0..naive.len() {
                let row = guesses.row(at_once.rows(), index as u64, |row| u64::from(row.first));
                prop_assert!((row.first as usize..row.end()).contains(&index));
            }
        }
    }
}
