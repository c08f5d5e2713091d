//! The stamp of a part of the hot zone on a drive of an array: a block before the part that says whose it is, and of which
//! generation. Each mount that may write begins a generation, and the log names the one that is to be believed
//! ([`Change::HotPart`](super::change::Change::HotPart)): so what a drive kept while it was away is known to be old, without a look
//! at what it holds.
//!
//! Invariants:
//! 1. A generation of a part is recorded only when its stamp is durable, and before anything is written to the part in it.
//! 2. A stamp goes on from a generation only where the part holds what it held in that one; else it goes on from none.

use uuid::Uuid;

use super::check_superblock::COUNT_FAR;
use super::coding::{Decoder, Malformed, seal, unseal};

const MAGIC: &[u8; 8] = b"imbrexht";
const VERSION: u32 = 1;
/// The block of the drive that bears it, behind the two superblocks.
pub const STAMP_BLOCK: u64 = 2;

/// What the block says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotStamp {
    /// The file system.
    pub file_system: Uuid,
    /// The drive, by its name.
    pub drive: Uuid,
    /// Which part of the zone.
    pub part: u8,
    /// Its generation.
    pub generation: u64,
    /// The generation whose contents it goes on with; 0 for none.
    pub continues: u64,
}

impl HotStamp {
    /// Its block.
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, VERSION, |to| {
            to.u128(self.file_system.as_u128());
            to.u128(self.drive.as_u128());
            to.u8(self.part);
            to.u64(self.generation);
            to.u64(self.continues);
        })
    }

    /// Reads one; nothing where there is none, or a damaged one.
    pub fn decode(block: &[u8]) -> Option<HotStamp> {
        let (version, mut from) = unseal(MAGIC, block)?;
        (version == VERSION).then(|| decode_rest(&mut from).ok())?
    }

    /// Whether what lies behind it is of the generation that the log names.
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
