//! The file mark of an image: in which file of the host it was opened for work last.
//!
//! A copy that `cp` takes of an image at work holds parts of different ages, and may pass for a whole image. Such a copy has
//! the mark of its original, says that it was not closed, and lies in another file than the mark names. An image that was
//! closed says so in its state, and its copies are as good as the original whatever their mark says: unless it was opened for
//! work while `cp` read it. Then the copy has sector tables that are later than its state.
//!
//! The mark is one block behind the states of the first head. No checksum vouches for its presence: an image without a whole
//! mark, as older versions of this program leave it, is taken as it is. A copy that is written over the very file that the
//! mark names cannot be told from the original.

use uuid::Uuid;

use super::checksum::{Salt, What};
use super::layout::DIGESTS_PER_BLOCK;
use super::opening::SlotHead;
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;
use crate::media::host_file::FileIdentity;

/// Bytes of a mark.
const MARK_BYTES: usize = 24;
const MAGIC: u32 = 0x454c_4946;

/// A file of the host, as a mark names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileMark {
    inode: u64,
    born_ns: u64,
}

impl FileMark {
    fn of(identity: &FileIdentity) -> FileMark {
        FileMark { inode: identity.inode, born_ns: identity.born_ns }
    }

    /// Whether both name one file, as far as the host tells.
    fn names_same(&self, other: &FileMark) -> bool {
        let is_born_same = self.born_ns == other.born_ns || self.born_ns == 0 || other.born_ns == 0;
        self.inode == other.inode && is_born_same
    }

    fn bytes(&self, uuid: Uuid) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.inode.to_le_bytes());
        bytes[16..].copy_from_slice(&self.born_ns.to_le_bytes());
        let sum = Salt::new(uuid, What::FileMark).sum(0, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn parse(bytes: &[u8; MARK_BYTES], uuid: Uuid) -> Option<FileMark> {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let mark = FileMark { inode: long(8), born_ns: long(16) };
        (mark.bytes(uuid) == *bytes).then_some(mark)
    }
}

impl<M: Media> Space<M> {
    /// The mark of the image, where it has a whole one.
    fn file_mark(&mut self) -> Result<Option<FileMark>, DeviceError> {
        let mut bytes = [0; MARK_BYTES];
        let failed = |cause| DeviceError::medium("reading the image's file mark", cause);
        self.media.read_at(self.layout.file_mark(), &mut bytes).map_err(failed)?;
        Ok(FileMark::parse(&bytes, self.uuid))
    }

    /// Whether it lies in another file than the one it was opened for work in last.
    fn is_elsewhere(&mut self) -> Result<bool, DeviceError> {
        let Some(host) = self.media.host_file() else { return Ok(false) };
        let mark = self.file_mark()?;
        Ok(mark.is_some_and(|mark| !mark.names_same(&FileMark::of(&host.identity()))))
    }

    /// Whether it is a copy that was begun while it was not closed.
    pub fn is_copied_unclosed(&mut self) -> Result<bool, DeviceError> {
        Ok(!self.state.is_sealed && self.is_elsewhere()?)
    }

    /// Whether it is a copy of an image that somebody worked on meanwhile, as far as can be told. Reads the sector tables of a copy
    /// whose state says that it was closed: of such a one no block is as late as the state.
    pub fn is_copied_at_work(&mut self) -> Result<bool, DeviceError> {
        if !self.is_elsewhere()? {
            return Ok(false);
        }
        let closed = self.state.era;
        let mut is_later = !self.state.is_sealed || self.directory.given > self.state.slots_given;
        if !is_later {
            self.for_each_table(&mut |space, SlotHead { slot, bytes, .. }| {
                let (before, table) = bytes.split_at(space.layout.table_offset());
                let numbers = 0..space.layout.table_blocks;
                let blocks = numbers.zip(table.as_chunks().0);
                is_later = blocks
                    .filter_map(|(number, bytes)| space.seal.open(slot, number, bytes))
                    .any(|block| block.era() >= closed)
                    || space
                        .digests_in(slot, before)
                        .iter()
                        .flatten()
                        .any(|digests| (0..DIGESTS_PER_BLOCK).any(|index| digests.digest(index).era >= closed));
                !is_later
            })?;
        }
        Ok(is_later)
    }

    /// Refuses such a copy; `place` names it.
    pub(crate) fn refuse_copied_at_work(&mut self, place: &str) -> Result<(), DeviceError> {
        match self.is_copied_at_work()? {
            true => Err(DeviceError::CopiedUnclosed { place: place.into() }),
            false => Ok(()),
        }
    }

    /// Takes such a copy as it is: as one that was not closed, in this file.
    pub(crate) fn adopt(&mut self) -> Result<(), DeviceError> {
        self.mark_file()?;
        if self.state.is_sealed {
            self.update(|state| state.is_sealed = false)?;
            self.sync()?;
        }
        Ok(())
    }

    /// Marks the image as one that lies in the file in which it was opened. The mark is durable when this returns.
    pub fn mark_file(&mut self) -> Result<(), DeviceError> {
        let Some(host) = self.media.host_file() else { return Ok(()) };
        let mark = FileMark::of(&host.identity());
        if self.file_mark()? == Some(mark) {
            return Ok(());
        }
        let failed = |cause| DeviceError::medium("writing the image's file mark", cause);
        self.media.write_at(self.layout.file_mark(), &mark.bytes(self.uuid)).map_err(failed)?;
        // Whatever barriers reach: a state that says "not closed" must not outlive the mark that belongs to it.
        host.file().sync_data().map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_one_file_of_one_image() {
        let (uuid, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mark = FileMark { inode: 7, born_ns: 9 };
        assert_eq!(FileMark::parse(&mark.bytes(uuid), uuid), Some(mark));
        assert_eq!(FileMark::parse(&mark.bytes(uuid), other), None);
        assert_eq!(FileMark::parse(&[0; MARK_BYTES], uuid), None, "an image without a mark");
        for (inode, born_ns, is_same) in [(7, 9, true), (7, 0, true), (8, 9, false), (7, 10, false)] {
            assert_eq!(mark.names_same(&FileMark { inode, born_ns }), is_same, "inode {inode}, born at {born_ns}");
        }
    }
}
