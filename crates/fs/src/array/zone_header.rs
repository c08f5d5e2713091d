//! The first block of every zone of an array: which group the zone belongs to, and which part of it. So zones are known
//! without metadata, and one of an earlier time is not taken for one of now.

use uuid::Uuid;

use crate::device::BLOCK_BYTES;
use crate::format::change::GroupLayout;
use crate::format::coding::{Decoder, Encoder, Malformed, checksum};

const MAGIC: &[u8; 8] = b"imbrexzn";
const VERSION: u32 = 1;

/// What the block says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneHeader {
    /// The file system.
    pub file_system: Uuid,
    /// The group.
    pub group: u32,
    /// Which column of it this zone is: data first, then parity.
    pub column: u8,
    /// Where the group lies.
    pub layout: GroupLayout,
    /// The drives of its columns, by their names.
    pub drives: Vec<Uuid>,
}

impl ZoneHeader {
    /// Its block.
    pub fn encode(&self) -> Vec<u8> {
        let mut to = Encoder::default();
        to.bytes.extend_from_slice(MAGIC);
        to.u32(VERSION);
        to.u32(0); // the checksum
        to.u128(self.file_system.as_u128());
        to.u32(self.group);
        to.u8(self.column);
        self.layout.encode(&mut to);
        self.drives.iter().for_each(|drive| to.u128(drive.as_u128()));
        assert!(to.bytes.len() <= BLOCK_BYTES, "the header of a zone of {} bytes", to.bytes.len());
        to.bytes.resize(BLOCK_BYTES, 0);
        let sum = checksum(&[&to.bytes]);
        to.bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        to.bytes
    }

    /// Reads one; nothing where there is none, or a damaged one.
    pub fn decode(block: &[u8]) -> Option<ZoneHeader> {
        if block.len() < BLOCK_BYTES || &block[..8] != MAGIC {
            return None;
        }
        let mut bytes = block[..BLOCK_BYTES].to_vec();
        let sum = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        bytes[12..16].fill(0);
        let is_ours = checksum(&[&bytes]) == sum;
        let mut from = Decoder::new(&bytes[8..]);
        let is_known = from.u32().ok()? == VERSION;
        from.u32().ok()?;
        if is_ours && is_known { decode_rest(&mut from).ok() } else { None }
    }
}

fn decode_rest(from: &mut Decoder<'_>) -> Result<ZoneHeader, Malformed> {
    let file_system = Uuid::from_u128(from.u128()?);
    let (group, column) = (from.u32()?, from.u8()?);
    let layout = GroupLayout::decode(from)?;
    let drives = (0..layout.members.len()).map(|_| from.u128().map(Uuid::from_u128)).collect::<Result<_, _>>()?;
    Ok(ZoneHeader { file_system, group, column, layout, drives })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::change::ZoneOf;

    #[test]
    fn it_is_read_as_it_was_written_and_every_altered_byte_is_noticed() {
        let members: Vec<ZoneOf> = (0..19).map(|drive| ZoneOf { drive, zone: 70_000 + u32::from(drive) }).collect();
        let drives = (0..19).map(|drive| Uuid::from_u128(900 + drive)).collect();
        let layout = GroupLayout { sequence: 1 << 50, width: 16, members };
        let header = ZoneHeader { file_system: Uuid::from_u128(5), group: 9, column: 18, layout, drives };
        let block = header.encode();
        assert_eq!(ZoneHeader::decode(&block), Some(header));
        for at in 0..BLOCK_BYTES {
            let mut altered = block.clone();
            altered[at] ^= 0x10;
            assert_eq!(ZoneHeader::decode(&altered), None, "byte {at}");
        }
    }
}
