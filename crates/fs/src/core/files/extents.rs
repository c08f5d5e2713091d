//! Records of the extents of files. No record is larger than
//! [`Bounds::extent_record_bytes`](crate::core::Bounds::extent_record_bytes), nor than a frame of the log.
//!
//! If one record can hold all extents of a file, it does. Otherwise only the differences are recorded, as stretches of
//! the file, in as many records as they need. A stretch is a range of blocks together with the extents there.
//!
//! Invariants:
//! 1. If several records describe a change of a file, the last one changes the size. So after a power cut the file has
//!    its size from before or after the change. The next mount drops the extents behind the end
//!    ([`Files::cut_unfinished`]).
//! 2. A record frees only blocks of the stretches that it describes.

use super::Files;
use crate::block_run::BlockRun;
use crate::core::CoreParts;
use crate::core::owners::Owner;
use crate::core::write_back::pieces::subtract;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::{Attributes, Change, EXTENT_BYTES, Extent, Inode, LIST_BYTES, NODE_BYTES, STRETCH_BYTES};
use crate::namespace::Node;

/// Blocks `from` to `to` of a file, with its extents there before and after a change.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Stretch {
    from: u32,
    to: u32,
    before: Vec<Extent>,
    after: Vec<Extent>,
}

impl Stretch {
    const fn bytes(&self) -> u64 {
        STRETCH_BYTES + self.after.len() as u64 * EXTENT_BYTES
    }

    /// Splits the stretch into stretches of at most `pieces` extents each.
    fn split(self, pieces: usize) -> Vec<Stretch> {
        if self.after.len() <= pieces {
            return vec![self];
        }
        let chunks: Vec<&[Extent]> = self.after.chunks(pieces).collect();
        let first_of = |number: usize| chunks.get(number).and_then(|chunk| chunk.first()).map(|extent| extent.at);
        let part = |(number, after): (usize, &&[Extent])| {
            let from = first_of(number).filter(|_| number > 0).unwrap_or(self.from);
            let to = first_of(number + 1).unwrap_or(self.to);
            let before = self.before.iter().filter_map(|old| old.within(from.into(), to.into())).collect();
            Stretch { from, to, before, after: after.to_vec() }
        };
        chunks.iter().enumerate().map(part).collect()
    }

    /// Returns the runs of the old extents that are in no new extent.
    fn freed(&self) -> Vec<BlockRun> {
        let mut freed = Vec::new();
        for old in &self.before {
            subtract(BlockRun { start: old.start, blocks: u64::from(old.blocks) }, &self.after, &mut freed);
        }
        freed
    }
}

/// Returns the stretches in which the extents of a file before and after a change differ.
fn differing(before: &[Extent], after: &[Extent]) -> Vec<Stretch> {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    let mut stretches = Vec::new();
    loop {
        let (from, mut end) = match (old.peek(), new.peek()) {
            (None, None) => return stretches,
            (Some(one), Some(other)) if one == other => {
                old.next();
                new.next();
                continue;
            }
            (Some(one), Some(other)) if one.at <= other.at => (one.at, one.end()),
            (_, Some(first)) | (Some(first), None) => (first.at, first.end()),
        };
        let (mut of_old, mut of_new) = (Vec::new(), Vec::new());
        loop {
            if let Some(extent) = old.next_if(|extent| u64::from(extent.at) < end) {
                end = end.max(extent.end());
                of_old.push(*extent);
            } else if let Some(extent) = new.next_if(|extent| u64::from(extent.at) < end) {
                end = end.max(extent.end());
                of_new.push(*extent);
            } else {
                break;
            }
        }
        stretches.push(Stretch { from, to: end as u32, before: of_old, after: of_new });
    }
}

/// Distributes stretches over records of at most `bytes_max` bytes. Stretches with too many extents for a record are
/// split.
fn in_records(stretches: Vec<Stretch>, bytes_max: u64) -> Vec<Vec<Stretch>> {
    let pieces = (bytes_max.saturating_sub(STRETCH_BYTES) / EXTENT_BYTES).max(1) as usize;
    let (mut records, mut bytes): (Vec<Vec<Stretch>>, u64) = (Vec::new(), 0);
    for stretch in stretches.into_iter().flat_map(|stretch| stretch.split(pieces)) {
        bytes += stretch.bytes();
        match records.last_mut() {
            Some(record) if bytes <= bytes_max => record.push(stretch),
            _ => {
                bytes = stretch.bytes();
                records.push(vec![stretch]);
            }
        }
    }
    records
}

impl Files<'_> {
    /// Returns the extents of a file, or none if the file does not exist any more.
    pub(in crate::core) fn extents_of(self, inode: Inode) -> Vec<Extent> {
        self.0.namespace.borrow().get(inode).map(|node| node.extents.as_slice().to_vec()).unwrap_or_default()
    }

    /// Returns the extent of file `owner.inode` that begins at block `owner.at` of the file, if it begins at block
    /// `start` of the device.
    pub(in crate::core) fn extent_at(self, owner: Owner, start: u64) -> Option<Extent> {
        let namespace = self.0.namespace.borrow();
        let found = namespace.get(owner.inode)?.extents.beginning_at(owner.at).copied();
        found.filter(|extent| extent.start == start)
    }

    /// Returns the size of a file in bytes by its records, without staged changes.
    pub(in crate::core) fn size_recorded(self, inode: Inode) -> u64 {
        self.0.namespace.borrow().get(inode).map_or(0, |node| node.attributes.size)
    }

    fn extent_record_bytes(self) -> u64 {
        // The record also holds the attributes, and drops the file's copy in the hot zone. Half of a frame, so that
        // there is always room for the record and for a checkpoint behind it.
        let of_frame = (self.0.log.record_bytes_max() / 2).saturating_sub(NODE_BYTES + LIST_BYTES);
        self.0.bounds.extent_record_bytes.min(of_frame)
    }

    /// Fails if a checkpoint might have no room for a file with `pieces` extents.
    pub(in crate::core) fn check_pieces(self, inode: Inode, pieces: usize) -> Result<(), FsError> {
        match self.bytes_more_with(inode, pieces) {
            0 => Ok(()),
            more => self.0.check_metadata_room(more),
        }
    }

    /// Like [`Files::check_pieces`], but without keeping back room in the checkpoint for extents that are cut where
    /// zones end.
    pub(in crate::core) fn check_pieces_at_most(self, inode: Inode, pieces: usize) -> Result<(), FsError> {
        match self.bytes_more_with(inode, pieces) {
            0 => Ok(()),
            more => self.0.fits_checkpoint(self.0.namespace.borrow().encoded_bytes() + more),
        }
    }

    /// Returns the number of additional bytes in a checkpoint if a file has `pieces` extents.
    fn bytes_more_with(self, inode: Inode, pieces: usize) -> u64 {
        let before = self.0.namespace.borrow().get(inode).map_or(0, |node| node.extents.as_slice().len());
        let of_list = if before == 0 && pieces > 0 { LIST_BYTES } else { 0 };
        of_list + pieces.saturating_sub(before) as u64 * EXTENT_BYTES
    }

    /// Returns the largest number of extents of a file that one record can hold, at least 1.
    pub(in crate::core) fn pieces_in_record(self) -> usize {
        (self.extent_record_bytes().saturating_sub(LIST_BYTES) / EXTENT_BYTES).max(1) as usize
    }

    /// Returns the largest number of changed blocks or extents of a file that one record can hold if each lies
    /// elsewhere than its neighbours, at least 1.
    pub(in crate::core) fn changes_in_record(self) -> usize {
        // Each change may cut an old extent in two.
        (self.extent_record_bytes() / (STRETCH_BYTES + 3 * EXTENT_BYTES)).max(1) as usize
    }
}

impl Files<'_> {
    /// Records that a file lies at `after`, with attributes `now` if its contents have changed. Updates the owners of
    /// the blocks, and frees blocks that no file has any more once the record is durable.
    pub(in crate::core) fn record_extents(self, inode: Inode, now: Option<Attributes>, after: &[Extent]) {
        let core = &self.0;
        let before = core.files().extents_of(inode);
        let stretches = differing(&before, after);
        let mut copy = (now.is_some() && !stretches.is_empty()).then(|| core.hot_tier().copy_to_drop(inode)).flatten();
        self.put_owners(inode, &stretches);
        core.hot_tier().note_alone(&before, after);
        let is_told_whole = after.len() <= core.files().pieces_in_record();
        let mut records =
            if is_told_whole { vec![stretches] } else { in_records(stretches, core.files().extent_record_bytes()) };
        if records.is_empty() {
            records.push(Vec::new());
        }
        let last = records.len() - 1;
        for (number, stretches) in records.into_iter().enumerate() {
            let size = core.files().size_recorded(inode);
            let so_far = |now| if number < last { Attributes { size, ..now } } else { now };
            let node = now.map(|now| Change::Node { inode, attributes: so_far(now) });
            let mut changes = Vec::from_iter(node);
            if is_told_whole {
                let is_other = !stretches.is_empty();
                changes.extend(is_other.then(|| Change::Extents { inode, extents: after.to_vec() }));
            } else {
                changes.extend(stretches.iter().map(|stretch| Change::Stretch {
                    inode,
                    from: stretch.from,
                    to: stretch.to,
                    extents: stretch.after.clone(),
                }));
            }
            let mut freed: Vec<BlockRun> = stretches.iter().flat_map(Stretch::freed).collect();
            if let Some((change, runs)) = copy.take() {
                changes.push(change);
                freed.extend(runs);
            }
            if !changes.is_empty() {
                let record = core.record(&changes);
                self.0.write_back().release(record, freed);
            }
        }
    }

    /// Drops extents behind the ends of files, at a mount: a power cut came before the last record of their change.
    pub(in crate::core) fn cut_unfinished(self) {
        let end = |node: &Node| node.attributes.size.div_ceil(BLOCK_BYTES as u64);
        let cut = |(inode, node): (Inode, &Node)| {
            let is_longer = node.extents.as_slice().last().is_some_and(|last| last.end() > end(node));
            is_longer.then(|| (inode, node.attributes, node.extents.within(0, end(node)).collect::<Vec<Extent>>()))
        };
        let unfinished: Vec<_> = self.0.namespace.borrow().nodes_from(0).filter_map(cut).collect();
        // Passing the unchanged attributes also drops a copy in the hot zone.
        unfinished.iter().for_each(|(inode, now, kept)| self.record_extents(*inode, Some(*now), kept));
    }

    fn put_owners(self, inode: Inode, stretches: &[Stretch]) {
        let owners = &self.0.owners;
        owners.remove(stretches.iter().flat_map(|stretch| &stretch.before));
        owners.add(inode, stretches.iter().flat_map(|stretch| &stretch.after));
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the recorded stretches turn the old extents of a file into the new ones, however small a record is.
    //! Method: random files against a map of their blocks, which is the naive model.

    use std::collections::BTreeMap;

    use super::*;
    use crate::core::write_back::pieces::joined;
    use crate::load::random::Choices;

    type Map = BTreeMap<u32, u64>;

    fn map_of(extents: &[Extent]) -> Map {
        extents.iter().flat_map(|it| (0..it.blocks).map(|block| (it.at + block, it.start + u64::from(block)))).collect()
    }

    fn extents_of(map: &Map) -> Vec<Extent> {
        joined(map.iter().map(|(at, start)| Extent { at: *at, blocks: 1, start: *start }).collect(), 16)
    }

    /// Returns a random file, and a second version in which some blocks are moved, removed or new.
    fn pair(random: &mut Choices) -> (Map, Map) {
        let mut below = |most: u64| random.below(most);
        let before: Map = (0..60).filter(|_| below(3) > 0).map(|at| (at, 1000 + u64::from(at) / 7 * 100)).collect();
        let before: Map = before.into_iter().map(|(at, start)| (at, start + u64::from(at))).collect();
        let mut after = before.clone();
        for new in 0..below(30) {
            let at = below(60) as u32;
            match below(3) {
                0 => drop(after.remove(&at)),
                _ => drop(after.insert(at, 5000 + new)),
            }
        }
        (before, after)
    }

    #[test]
    fn stretches_make_of_the_old_pieces_the_new_ones() {
        let mut random = Choices::new(7);
        for bytes_max in [1, 33, 34, 50, 100, 1000].repeat(50) {
            let (before, after) = pair(&mut random);
            let records = in_records(differing(&extents_of(&before), &extents_of(&after)), bytes_max);
            let (mut now, mut freed, mut reached) = (before.clone(), Vec::new(), 0);
            for stretches in &records {
                let bytes: u64 = stretches.iter().map(Stretch::bytes).sum();
                assert!(bytes <= bytes_max.max(STRETCH_BYTES + EXTENT_BYTES), "{bytes} of {bytes_max}");
                for stretch in stretches {
                    assert!(reached <= stretch.from && stretch.from < stretch.to, "{stretch:?} behind {reached}");
                    reached = stretch.to;
                    now.retain(|at, _| !(stretch.from..stretch.to).contains(at));
                    now.extend(map_of(&stretch.after));
                    freed.extend(stretch.freed().iter().flat_map(|run| run.start..run.end()));
                }
            }
            assert_eq!(now, after);
            let kept: Vec<u64> = after.values().copied().collect();
            let mut gone: Vec<u64> = before.into_values().filter(|start| !kept.contains(start)).collect();
            gone.sort_unstable();
            freed.sort_unstable();
            assert_eq!(freed, gone);
        }
    }

    #[test]
    fn what_is_the_same_is_not_told() {
        let extent = |at, blocks, start| Extent { at, blocks, start };
        let before = [extent(0, 2, 10), extent(4, 4, 20), extent(9, 1, 40)];
        let after = [extent(0, 2, 10), extent(4, 1, 20), extent(5, 1, 70), extent(6, 2, 22), extent(9, 1, 40)];
        let expected = Stretch { from: 4, to: 8, before: before[1..2].to_vec(), after: after[1..4].to_vec() };
        assert_eq!(differing(&before, &after), [expected]);
        assert_eq!(differing(&before, &before), []);
    }
}
