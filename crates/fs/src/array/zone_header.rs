//! First block of every zone of an array: the group of the zone, and its column there. With it zones are recognized
//! without metadata, and a zone of an earlier time is not taken for a current one.

use uuid::Uuid;

use crate::format::change::GroupLayout;
use crate::format::coding::{Decoder, Malformed, seal, unseal};
use crate::format::limits::COUNT_FAR;

const MAGIC: &[u8; 8] = b"imbrexzn";
const VERSION: u32 = 1;

/// Contents of the header block, the first block of every zone of a stripe group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneHeader {
    /// UUID of the file system.
    pub file_system: Uuid,
    /// Number of the stripe group that the zone belongs to.
    pub group: u32,
    /// Index of this zone among the zones of its stripe group, counted from 0: zones with data first, then zones with
    /// parity.
    pub column: u8,
    /// Layout of the stripe group when the header was written: zones of all columns, this zone included, number of data
    /// columns, and sequence number of the group.
    pub layout: GroupLayout,
    /// UUIDs of the drives with the zones of the stripe group, in the order of the zones.
    pub drives: Vec<Uuid>,
    /// Numbers in the array of the drives that had been replaced when this header was written. They identify a replaced
    /// drive that is attached again after the metadata were lost. The list is empty in headers of earlier versions.
    pub gone: Vec<u8>,
}

impl ZoneHeader {
    /// Returns the encoded header as one block of 4 KiB, with a checksum.
    ///
    /// # Panics
    /// The header does not fit into a block.
    pub fn encode(&self) -> Vec<u8> {
        seal(MAGIC, VERSION, |to| {
            to.u128(self.file_system.as_u128());
            to.u32(self.group);
            to.u8(self.column);
            self.layout.encode(to);
            self.drives.iter().for_each(|drive| to.u128(drive.as_u128()));
            to.bytes(&self.gone);
        })
    }

    /// Decodes a header block of 4 KiB. Returns `None` if magic number, version or checksum is wrong, or a field has an
    /// impossible value.
    pub fn decode(block: &[u8]) -> Option<ZoneHeader> {
        let (version, mut from) = unseal(MAGIC, block)?;
        (version == VERSION).then(|| decode_rest(&mut from).ok())?
    }
}

fn decode_rest(from: &mut Decoder<'_>) -> Result<ZoneHeader, Malformed> {
    let file_system = Uuid::from_u128(from.u128()?);
    let (group, column) = (from.u32()?, from.u8()?);
    let layout = GroupLayout::decode(from)?;
    let drives = (0..layout.members.len()).map(|_| from.u128().map(Uuid::from_u128)).collect::<Result<_, _>>()?;
    let gone = from.bytes()?.to_vec();
    if layout.sequence >= COUNT_FAR || usize::from(column) >= layout.members.len() {
        return Err(Malformed("the column of a zone"));
    }
    // The last number of a byte stands for no drive: see `Change::Drive`.
    if layout.members.iter().any(|at| at.drive == u8::MAX) || gone.contains(&u8::MAX) {
        return Err(Malformed("the number of a drive"));
    }
    Ok(ZoneHeader { file_system, group, column, layout, drives, gone })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::BLOCK_BYTES;
    use crate::format::change::ZoneOf;

    #[test]
    fn it_is_read_as_it_was_written_and_every_altered_byte_is_noticed() {
        let members: Vec<ZoneOf> = (0..19).map(|drive| ZoneOf { drive, zone: 70_000 + u32::from(drive) }).collect();
        let drives = (0..19).map(|drive| Uuid::from_u128(900 + drive)).collect();
        let layout = GroupLayout { sequence: 1 << 50, width: 16, members };
        let header =
            ZoneHeader { file_system: Uuid::from_u128(5), group: 9, column: 18, layout, drives, gone: Vec::new() };
        // The largest possible list of replaced drives.
        let with_gone = ZoneHeader { gone: (0..=249).collect(), ..header.clone() };
        assert_eq!(ZoneHeader::decode(&with_gone.encode()), Some(with_gone));
        let block = header.encode();
        assert_eq!(ZoneHeader::decode(&block), Some(header));
        for at in 0..BLOCK_BYTES {
            let mut altered = block.clone();
            altered[at] ^= 0x10;
            assert_eq!(ZoneHeader::decode(&altered), None, "byte {at}");
        }
    }
}
