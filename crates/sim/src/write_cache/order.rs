//! Ranges in order of address: a sorted list cut into short chunks, so that finding a position takes two short
//! searches, and neighbours lie side by side in memory.
//!
//! Invariants:
//! 1. Entries are sorted by start, and no two have equal starts.
//! 2. No chunk is empty or longer than [`CHUNK_ENTRIES`]; `firsts` holds the first start of each chunk.

/// Maximum number of entries of a chunk. Our own value: they fit in a few cache lines.
const CHUNK_ENTRIES: usize = 64;

/// Start of a range, and the slot that holds the whole range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub start: u64,
    pub slot: u32,
}

/// A position in the list: that of an entry, or the end.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Cursor {
    chunk: usize,
    index: usize,
}

/// The list of ranges in order of address.
#[derive(Clone, Default, Debug)]
pub(super) struct Order {
    firsts: Vec<u64>,
    chunks: Vec<Vec<Entry>>,
    /// Chunks that became empty, for reuse.
    spare: Vec<Vec<Entry>>,
}

impl Order {
    /// Returns the position of the first entry that starts at or after `start`, or the end.
    #[inline]
    pub(super) fn find(&self, start: u64) -> Cursor {
        self.find_before(self.firsts.partition_point(|&first| first < start), start)
    }

    /// Like [`Order::find`]; faster if the entry is in the chunk of `near`.
    #[inline]
    pub(super) fn find_near(&self, start: u64, near: Cursor) -> Cursor {
        let begins_before = |chunk: usize| self.firsts.get(chunk).is_some_and(|&first| first < start);
        if begins_before(near.chunk) && !begins_before(near.chunk + 1) {
            return self.find_before(near.chunk + 1, start);
        }
        self.find(start)
    }

    /// Returns the position of the first entry that starts at or after `start`. Chunk `after` is the first chunk whose
    /// first entry starts there or later.
    #[inline]
    fn find_before(&self, after: usize, start: u64) -> Cursor {
        let Some(chunk) = after.checked_sub(1) else { return Cursor { chunk: 0, index: 0 } };
        let entries = &self.chunks[chunk];
        let index = entries.partition_point(|entry| entry.start < start);
        if index == entries.len() {
            return Cursor { chunk: after, index: 0 };
        }
        Cursor { chunk, index }
    }

    /// Returns the entry at `cursor`, or `None` at the end.
    #[inline]
    pub(super) fn at(&self, cursor: Cursor) -> Option<Entry> {
        self.chunks.get(cursor.chunk)?.get(cursor.index).copied()
    }

    /// Returns the position before `cursor`.
    #[inline]
    pub(super) fn before(&self, cursor: Cursor) -> Option<Cursor> {
        if cursor.index > 0 {
            return Some(Cursor { index: cursor.index - 1, ..cursor });
        }
        let chunk = cursor.chunk.checked_sub(1)?;
        Some(Cursor { chunk, index: self.chunks[chunk].len() - 1 })
    }

    /// Inserts `entry` before the one at `cursor`.
    pub(super) fn insert(&mut self, cursor: Cursor, entry: Entry) {
        // Inserting at the end of a chunk is equivalent to inserting at the start of the next, and moves no entry.
        let (chunk, index) = match cursor {
            Cursor { chunk: 0, index: 0 } if self.chunks.is_empty() => {
                let empty = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_ENTRIES));
                self.chunks.push(empty);
                self.firsts.push(entry.start);
                (0, 0)
            }
            Cursor { chunk, index: 0 } if chunk > 0 => (chunk - 1, self.chunks[chunk - 1].len()),
            Cursor { chunk, index } => (chunk, index),
        };
        if self.chunks[chunk].len() == CHUNK_ENTRIES {
            return self.insert_into_full(chunk, index, entry);
        }
        self.chunks[chunk].insert(index, entry);
        self.firsts[chunk] = self.chunks[chunk][0].start;
    }

    /// Cuts the full chunk in two, and inserts into the half to which the entry belongs.
    fn insert_into_full(&mut self, chunk: usize, index: usize, entry: Entry) {
        let mut second = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK_ENTRIES));
        // A list that grows at its end leaves full chunks behind.
        let half = if index == CHUNK_ENTRIES { CHUNK_ENTRIES } else { CHUNK_ENTRIES / 2 };
        second.extend(self.chunks[chunk].drain(half..));
        match index.checked_sub(half) {
            Some(index) => second.insert(index, entry),
            None => self.chunks[chunk].insert(index, entry),
        }
        self.firsts[chunk] = self.chunks[chunk][0].start;
        self.firsts.insert(chunk + 1, second[0].start);
        self.chunks.insert(chunk + 1, second);
    }

    /// Removes the entry at `cursor`, and returns the position of the entry after it.
    pub(super) fn remove(&mut self, cursor: Cursor) -> Cursor {
        let entries = &mut self.chunks[cursor.chunk];
        entries.remove(cursor.index);
        if entries.is_empty() {
            self.firsts.remove(cursor.chunk);
            self.spare.push(self.chunks.remove(cursor.chunk));
            return cursor;
        }
        if cursor.index == 0 {
            self.firsts[cursor.chunk] = entries[0].start;
        }
        if cursor.index == entries.len() {
            return Cursor { chunk: cursor.chunk + 1, index: 0 };
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the list is equivalent to an ordered map. Method: random inserts and removals on both, dense enough to
    //! split and empty chunks.

    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_an_ordered_map(steps in prop::collection::vec((0u64..400, 0u8..5), 1..1500)) {
            let (mut order, mut map) = (Order::default(), BTreeMap::new());
            for (number, (start, what)) in steps.into_iter().enumerate() {
                let cursor = order.find(start);
                for chunk in 0..=order.chunks.len() {
                    prop_assert_eq!(order.find_near(start, Cursor { chunk, index: 0 }), cursor);
                }
                let ahead = map.range(start..).next().map(|(&start, &slot)| Entry { start, slot });
                prop_assert_eq!(order.at(cursor), ahead);
                let behind = map.range(..start).next_back().map(|(&start, &slot)| Entry { start, slot });
                prop_assert_eq!(order.before(cursor).and_then(|cursor| order.at(cursor)), behind);
                let entry = Entry { start, slot: number as u32 };
                match (what, ahead) {
                    (0, Some(next)) => {
                        let after = order.remove(cursor);
                        map.remove(&next.start);
                        let next = map.range(start..).next().map(|(&start, &slot)| Entry { start, slot });
                        prop_assert_eq!(order.at(after), next);
                    }
                    (_, next) if next.is_none_or(|next| next.start != start) => {
                        order.insert(cursor, entry);
                        map.insert(start, entry.slot);
                    }
                    _ => {}
                }
            }
            let listed: Vec<_> = order.chunks.iter().flatten().map(|entry| (entry.start, entry.slot)).collect();
            prop_assert_eq!(listed, map.into_iter().collect::<Vec<_>>());
            prop_assert!(order.chunks.iter().all(|chunk| (1..=CHUNK_ENTRIES).contains(&chunk.len())));
        }
    }
}
