//! The file mark of an image: it identifies the host file in which the image was last opened for writing.
//!
//! If `cp` copies an image while a drive writes to it, the copy holds parts of different ages, yet may look like a
//! valid image. Three facts give the copy away: it has the mark of the original, its state says that it was not closed,
//! and it lies in another file than the mark names. The state of a closed image says that it was closed, so a copy of
//! such an image is valid, whatever its mark. The exception: if the image was opened for writing while `cp` read it,
//! the copy has sector tables that are newer than its state.
//!
//! The mark lies in one block after the states of the first head (the header and states at the start of the file).
//! Nothing proves that a mark must exist: an image without a valid mark, as older versions of this program leave it, is
//! accepted. A copy that overwrites the very file that the mark names cannot be detected.

use uuid::Uuid;

use super::checksum::{Salt, What};
use super::layout::DIGESTS_PER_BLOCK;
use super::opening::SlotHead;
use super::space::Space;
use crate::error::DeviceError;
use crate::media::Media;
use crate::media::host_file::FileIdentity;

/// Size of a mark in bytes.
const MARK_BYTES: usize = 24;
const MAGIC: u32 = 0x454c_4946;

/// Identity of a host file, as stored in a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FileMark {
    inode: u64,
    born_ns: u64,
}

impl FileMark {
    fn of(identity: &FileIdentity) -> FileMark {
        FileMark { inode: identity.inode, born_ns: identity.born_ns }
    }

    /// Returns whether both marks name the same file. A birth time of 0 is unknown and matches any other.
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
    /// Returns the file mark of the image, or `None` if there is no valid one.
    fn file_mark(&mut self) -> Result<Option<FileMark>, DeviceError> {
        let mut bytes = [0; MARK_BYTES];
        let failed = |cause| DeviceError::medium("reading the image's file mark", cause);
        self.media.read_at(self.layout.file_mark(), &mut bytes).map_err(failed)?;
        Ok(FileMark::parse(&bytes, self.uuid))
    }

    /// Returns whether the image lies in another file than the one in which it was last opened for writing.
    fn is_elsewhere(&mut self) -> Result<bool, DeviceError> {
        let Some(host) = self.media.host_file() else { return Ok(false) };
        let mark = self.file_mark()?;
        Ok(mark.is_some_and(|mark| !mark.names_same(&FileMark::of(&host.identity()))))
    }

    /// Returns whether the image is a copy that was begun while the original was open for writing. Tells this from two
    /// facts: the state says that the image was not closed, and the image lies in another file than the one in which it
    /// was last opened for writing. Returns false for a medium that is not in a file.
    ///
    /// # Errors
    /// The medium fails.
    pub fn is_copied_unclosed(&mut self) -> Result<bool, DeviceError> {
        Ok(!self.state.is_sealed && self.is_elsewhere()?)
    }

    /// Returns whether the image is a copy that was made while the original was open for writing, as far as can be
    /// detected. Unlike [`Space::is_copied_unclosed`], also detects an original that was opened during the copying:
    /// then some sector tables are newer than the state. Returns false for a medium that is not in a file.
    ///
    /// # Errors
    /// The medium fails.
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

    /// Returns an error if the image is a copy that was made while the original was written to
    /// ([`Space::is_copied_at_work`]).
    ///
    /// # Errors
    /// [`DeviceError::CopiedUnclosed`], with `place` as the name of the image.
    pub(crate) fn refuse_copied_at_work(&mut self, place: &str) -> Result<(), DeviceError> {
        match self.is_copied_at_work()? {
            true => Err(DeviceError::CopiedUnclosed { place: place.into() }),
            false => Ok(()),
        }
    }

    /// Accepts a copy that was made while the original was written to. The copy gets the mark of its own file, and its
    /// state says that it was not closed.
    pub(crate) fn adopt(&mut self) -> Result<(), DeviceError> {
        self.mark_file()?;
        if self.state.is_sealed {
            self.update(|state| state.is_sealed = false)?;
            self.sync()?;
        }
        Ok(())
    }

    /// Stores in the image the identity of the file in which it lies now, durably. Does nothing for a medium that is
    /// not in a file.
    ///
    /// # Errors
    /// The medium fails.
    pub fn mark_file(&mut self) -> Result<(), DeviceError> {
        let Some(host) = self.media.host_file() else { return Ok(()) };
        let mark = FileMark::of(&host.identity());
        if self.file_mark()? == Some(mark) {
            return Ok(());
        }
        let failed = |cause| DeviceError::medium("writing the image's file mark", cause);
        self.media.write_at(self.layout.file_mark(), &mark.bytes(self.uuid)).map_err(failed)?;
        // Synced even if flushes of the medium do not reach the disk: a state that says "not closed" must not outlive
        // its mark.
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
