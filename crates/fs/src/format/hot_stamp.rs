//! The stamp of a part of the hot zone on a drive of an array: a block before the part, which names the file system,
//! the drive, the part and its generation. Each writable mount begins a new generation of each part. The log records
//! the valid generation ([`Change::HotPart`](super::change::Change::HotPart)). So the part on a drive that was missing
//! for some mounts is recognized as outdated by its stamp, without a look at its contents.
//!
//! Invariants:
//! 1. A generation of a part is recorded in the log only after its stamp is durable, and before anything else is
//!    written to the part in that generation.
//! 2. A stamp continues an earlier generation only if the part still holds the contents of that generation. Otherwise
//!    the stamp continues none.

use uuid::Uuid;

use super::coding::{Decoder, Malformed, seal, unseal};
use super::limits::COUNT_FAR;

const MAGIC: &[u8; 8] = b"imbrexht";
const VERSION: u32 = 1;
/// Number of the block of a drive that holds the stamp, counted from 0: the one after the two superblocks.
pub const STAMP_BLOCK: u64 = 2;

/// Contents of the stamp of a part of the hot zone, a block before the part on its drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotStamp {
    /// UUID of the file system to which the part belongs.
    pub file_system: Uuid,
    /// UUID of the drive that holds the part.
    pub drive: Uuid,
    /// Number of the part of the hot zone, counted from 0.
    pub part: u8,
    /// Generation of the part: a number that grows at least with each mount for writing that uses the part.
    pub generation: u64,
    /// Earlier generation whose contents the part still held when this generation began; 0 if there is none.
    pub continues: u64,
}

impl HotStamp {
    /// Returns the stamp as a block of 4096 bytes with a checksum.
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, VERSION, |to| {
            to.u128(self.file_system.as_u128());
            to.u128(self.drive.as_u128());
            to.u8(self.part);
            to.u64(self.generation);
            to.u64(self.continues);
        })
    }

    /// Decodes a stamp from the first 4096 bytes of `block`. Returns `None` if they hold no stamp, a damaged one, or
    /// one of another version.
    pub fn decode(block: &[u8]) -> Option<HotStamp> {
        let (version, mut from) = unseal(MAGIC, block)?;
        (version == VERSION).then(|| decode_rest(&mut from).ok())?
    }

    /// Returns whether the part holds the contents of generation `generation`: the stamp has that generation or
    /// continues it. Generation 0 matches no stamp.
    pub fn is_of(&self, generation: u64) -> bool {
        generation > 0 && (self.generation == generation || self.continues == generation)
    }
}

fn decode_rest(from: &mut Decoder<'_>) -> Result<HotStamp, Malformed> {
    let (file_system, drive) = (Uuid::from_u128(from.u128()?), Uuid::from_u128(from.u128()?));
    let stamp = HotStamp { file_system, drive, part: from.u8()?, generation: from.u64()?, continues: from.u64()? };
    let is_sound = stamp.generation < COUNT_FAR && stamp.continues < COUNT_FAR;
    is_sound.then_some(stamp).ok_or(Malformed("the generation of a part of the hot zone"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::BLOCK_BYTES;

    #[test]
    fn it_is_read_as_it_was_written_and_every_altered_byte_is_noticed() {
        let (file_system, drive) = (Uuid::from_u128(5), Uuid::from_u128(6));
        let stamp = HotStamp { file_system, drive, part: 15, generation: 1 << 50, continues: (1 << 50) - 1 };
        let block = stamp.encode();
        assert_eq!(HotStamp::decode(&block), Some(stamp));
        for at in 0..BLOCK_BYTES {
            let mut altered = block.clone();
            altered[at] ^= 0x10;
            assert_eq!(HotStamp::decode(&altered), None, "byte {at}");
        }
    }

    #[test]
    fn it_is_of_its_generation_and_of_the_one_before_and_of_no_other() {
        let stamp = |generation, continues| HotStamp {
            file_system: Uuid::nil(),
            drive: Uuid::nil(),
            part: 0,
            generation,
            continues,
        };
        let is_of = |stamp: HotStamp| (0..9).filter(|generation| stamp.is_of(*generation)).collect::<Vec<u64>>();
        assert_eq!(is_of(stamp(5, 3)), [3, 5]);
        assert_eq!(is_of(stamp(1, 0)), [1], "no generation is 0");
    }
}
