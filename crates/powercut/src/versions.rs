//! The versions of one file at a position of the log: durable blocks, those written since, and older ones.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::sparse::Sparse;

/// Maximum number of older versions kept of a block: the first, and the latest of the others.
const OLDER_MAX: usize = 32;

/// A version of a block.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) bytes: Arc<[u8]>,
    /// Position of the event that made the version.
    pub(crate) position: usize,
}

/// The versions of a block that are not durable.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    pub(crate) versions: Vec<Version>,
    /// Whether a failed sync left the block clean, so that a later sync does not write it.
    pub(crate) is_clean: bool,
}

/// The versions of a file's blocks and length.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) durable: Sparse,
    pub(crate) pending: BTreeMap<u64, Pending>,
    /// Lengths since the durable one, oldest first.
    pub(crate) lens: Vec<u64>,
    /// Former durable versions of each block, oldest first.
    pub(crate) older: BTreeMap<u64, Vec<Arc<[u8]>>>,
    /// Position of the event that made a block's durable version. A block of the first contents has none.
    pub(crate) origins: BTreeMap<u64, usize>,
}

impl State {
    pub(crate) fn is_pending(&self, block: u64) -> bool {
        self.pending.contains_key(&block)
    }

    /// Makes the latest version of a block the durable one.
    fn settle(&mut self, block: u64, pending: Pending, block_bytes: u64) {
        let Some(Version { bytes, position }) = pending.versions.into_iter().next_back() else { return };
        let older = self.older.entry(block).or_default();
        older.push(read_block(&self.durable, block, block_bytes));
        if older.len() > OLDER_MAX {
            older.remove(1);
        }
        self.durable.put(block * block_bytes, &bytes);
        self.origins.insert(block, position);
    }

    /// Makes every block that `range` touches durable. Makes the length durable too if `range` is `None`, the whole
    /// file.
    pub(crate) fn sync(&mut self, range: Option<Range<u64>>, block_bytes: u64) {
        let blocks =
            range.clone().map_or(0..u64::MAX, |range| range.start / block_bytes..range.end.div_ceil(block_bytes));
        let dirty = self.pending.range(blocks).filter(|(_, pending)| !pending.is_clean);
        let dirty: Vec<u64> = dirty.map(|(&block, _)| block).collect();
        for block in dirty {
            let pending = self.pending.remove(&block).expect("it was just listed");
            self.settle(block, pending, block_bytes);
        }
        if range.is_none()
            && let Some(len) = std::mem::take(&mut self.lens).pop()
        {
            self.durable.set_len(len);
        }
    }

    /// Marks every block that `range` touches, or every block of the file, as clean after a failed sync.
    pub(crate) fn fail_sync(&mut self, range: Option<Range<u64>>, block_bytes: u64) {
        let blocks = range.map_or(0..u64::MAX, |range| range.start / block_bytes..range.end.div_ceil(block_bytes));
        self.pending.range_mut(blocks).for_each(|(_, pending)| pending.is_clean = true);
    }
}

/// Returns the contents of a block.
pub(crate) fn read_block(contents: &Sparse, block: u64, block_bytes: u64) -> Arc<[u8]> {
    let mut bytes = vec![0; block_bytes as usize];
    contents.read(block * block_bytes, &mut bytes);
    bytes.into()
}
