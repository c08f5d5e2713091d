//! Checkpoint: the whole namespace, written beside the previous checkpoint while changes continue.
//!
//! ```text
//!   slot: header · chunk · chunk · …
//!   chunk: magic u32 · checksum u32 · file system u128 · checkpoint u64 · number u32 · bytes u32 · changes …
//!   header: the same with number 2³²−1 and, as its contents, the place in the log, chunks, files
//! ```
//!
//! The header is written last and makes the checkpoint valid. All else is durable then, including the records whose
//! changes the checkpoint may include (invariant 3 of the folder). While a slot is rewritten it still has the header of
//! the checkpoint before the last one. That header is the older of the two, so it is used only if the newer one is
//! damaged. The rewritten chunks then do not match its number.

use crate::device::BLOCK_BYTES;
use crate::device::area::Area;
use crate::error::FsError;
use crate::format::change::Change;
use crate::format::coding::{Decoder, Encoder, Malformed, checksum};
use crate::journal::log::LogPlace;
use crate::journal::mirror::Mirror;

const MAGIC: u32 = 0x6b68_6349; // "Ichk"
const HEAD_BYTES: usize = 40;
const HEADER: u32 = u32::MAX;
/// Number of bytes of encoded changes, 256 KiB, from which on a chunk of a checkpoint is written. Its last change may
/// exceed that number.
pub const CHUNK_BYTES: usize = 256 << 10;

/// Contents of the header of a checkpoint: its number, the place in the log where replay continues, and its numbers of
/// chunks and files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Number of the checkpoint. Each checkpoint has a higher number than those before it, usually by one.
    pub number: u64,
    /// Place in the log of the first group of records that replay must read after the checkpoint was loaded.
    pub place: LogPlace,
    /// Number of chunks, pieces of encoded changes of about 256 KiB, that follow the header.
    pub chunks: u32,
    /// Approximate number of files and directories in the checkpoint, for a display of progress.
    pub files: u64,
}

/// Writer of one checkpoint to one slot, a fixed run of blocks of the metadata area: first the chunks of changes with
/// [`Writer::add`] and [`Writer::finish`], then the header with [`Writer::validate`].
pub struct Writer {
    area: Mirror,
    uuid: u128,
    slot: (u64, u64),
    header: Header,
    next_block: u64,
    changes: Encoder,
}

impl Writer {
    /// Returns a writer of checkpoint `number` of file system `uuid`, from which replay of the log continues at
    /// `place`. `slot` is the first block of the slot in `area`, and its number of blocks. Nothing is written yet.
    pub fn new(area: Mirror, uuid: u128, slot: (u64, u64), number: u64, place: LogPlace) -> Writer {
        let header = Header { number, place, chunks: 0, files: 0 };
        Writer { area, uuid, slot, header, next_block: 1, changes: Encoder::default() }
    }

    /// Adds `changes` to the checkpoint. Writes a chunk whenever [`CHUNK_BYTES`] of encoded changes have accumulated.
    ///
    /// # Errors
    /// [`FsError::NoMetadataSpace`] if the slot, the blocks for the checkpoint, is too small, or the error of the
    /// write.
    pub async fn add(&mut self, changes: &[Change]) -> Result<(), FsError> {
        for change in changes {
            change.encode(&mut self.changes);
            if self.changes.bytes.len() >= CHUNK_BYTES {
                self.write_chunk().await?;
            }
        }
        Ok(())
    }

    async fn write_chunk(&mut self) -> Result<(), FsError> {
        let contents = std::mem::take(&mut self.changes.bytes);
        let bytes = sealed(self.uuid, self.header.number, self.header.chunks, &contents);
        let blocks = (bytes.len() / BLOCK_BYTES) as u64;
        if self.next_block + blocks > self.slot.1 {
            return Err(FsError::NoMetadataSpace);
        }
        self.area.write(self.slot.0 + self.next_block, &bytes).await?;
        self.next_block += blocks;
        self.header.chunks += 1;
        Ok(())
    }

    /// Writes the remaining changes as the last chunk, if there are any. `files` is the number of files and directories
    /// in the checkpoint, which the header gets. The chunks are durable only after a flush of the area.
    ///
    /// # Errors
    /// [`FsError::NoMetadataSpace`] if the slot, the blocks for the checkpoint, is too small, or the error of the
    /// write.
    pub async fn finish(&mut self, files: u64) -> Result<(), FsError> {
        self.header.files = files;
        if self.changes.bytes.is_empty() {
            return Ok(());
        }
        self.write_chunk().await
    }

    /// Writes the header and flushes the area, which makes the checkpoint valid. Returns the header. Before the call,
    /// all chunks must be durable, and all records whose changes the checkpoint may include.
    ///
    /// # Errors
    /// The write or the flush failed.
    pub async fn validate(self) -> Result<Header, FsError> {
        let mut contents = Encoder::default();
        contents.u64(self.header.place.block);
        contents.u64(self.header.place.frame);
        contents.u32(self.header.chunks);
        contents.u64(self.header.files);
        let bytes = sealed(self.uuid, self.header.number, HEADER, &contents.bytes);
        self.area.write(self.slot.0, &bytes).await?;
        self.area.flush().await?;
        Ok(self.header)
    }
}

/// Returns an upper bound of the number of blocks of 4 KiB, header included, of a checkpoint with `bytes` bytes of
/// encoded changes.
pub fn blocks_for(bytes: u64) -> u64 {
    let chunks = bytes.div_ceil(CHUNK_BYTES as u64) + 1;
    // Each chunk may exceed its size a little, has a header, and ends within a block.
    2 + bytes.div_ceil(BLOCK_BYTES as u64) + 2 * chunks
}

fn sealed(uuid: u128, checkpoint: u64, number: u32, contents: &[u8]) -> Vec<u8> {
    let mut to = Encoder::default();
    to.u32(MAGIC);
    to.u32(0);
    to.u128(uuid);
    to.u64(checkpoint);
    to.u32(number);
    to.bytes(contents);
    let sum = checksum(&[&to.bytes]);
    to.bytes[4..8].copy_from_slice(&sum.to_le_bytes());
    to.bytes.resize(to.bytes.len().next_multiple_of(BLOCK_BYTES), 0);
    to.bytes
}

/// Reads the whole blocks of the piece at `block` from one copy; `None` if there is no intact one.
async fn read_piece(area: &Area, uuid: u128, block: u64, end: u64, number: u32) -> Option<Vec<u8>> {
    let mut bytes = area.read(block, 1).await.ok()?;
    let mut head = Decoder::new(&bytes);
    let (magic, sum) = (head.u32().ok()?, head.u32().ok()?);
    let is_ours = magic == MAGIC && head.u128().ok()? == uuid;
    head.u64().ok()?;
    let is_ours = is_ours && head.u32().ok()? == number;
    let length = head.u32().ok()? as usize;
    let blocks = (HEAD_BYTES + length).div_ceil(BLOCK_BYTES) as u64;
    if !is_ours || block + blocks > end {
        return None;
    }
    if blocks > 1 {
        bytes.extend_from_slice(&area.read(block + 1, blocks - 1).await.ok()?);
    }
    let mut summed = bytes[..HEAD_BYTES + length].to_vec();
    summed[4..8].fill(0);
    (checksum(&[&summed]) == sum).then_some(bytes)
}

/// Returns the number of the checkpoint that a piece belongs to.
fn checkpoint_of(piece: &[u8]) -> u64 {
    u64::from_le_bytes(piece[24..32].try_into().expect("eight bytes"))
}

/// Returns the contents of a piece.
fn contents_of(piece: &[u8]) -> &[u8] {
    let length = u32::from_le_bytes(piece[36..HEAD_BYTES].try_into().expect("four bytes")) as usize;
    &piece[HEAD_BYTES..HEAD_BYTES + length]
}

/// Reads the header of the checkpoint in `slot`: its first block and number of blocks in `area`. Returns `None` if no
/// copy of the area has an intact header of file system `uuid` there. If copies differ, the header with the highest
/// number is returned, and the other copies are overwritten with it, unless the area is read-only.
pub async fn read_header(area: &Mirror, uuid: u128, slot: (u64, u64)) -> Option<Header> {
    let end = slot.0 + slot.1;
    let read = async |copy: &Area| read_piece(copy, uuid, slot.0, end, HEADER).await;
    let piece = area.agree(slot.0, checkpoint_of, read).await?;
    let mut from = Decoder::new(contents_of(&piece));
    let place = LogPlace { block: from.u64().ok()?, frame: from.u64().ok()? };
    let (chunks, files) = (from.u32().ok()?, from.u64().ok()?);
    Some(Header { number: checkpoint_of(&piece), place, chunks, files })
}

/// Reads the chunks of checkpoint `header` in `slot`, its first block and number of blocks in `area`, and passes their
/// changes to `see`, in order. Copies of `area` that were found damaged before an intact one are repaired, unless the
/// area is read-only.
///
/// # Errors
/// A chunk is intact on no copy, or its changes cannot be decoded. Earlier changes were passed to `see` by then.
pub async fn load(
    area: &Mirror,
    uuid: u128,
    slot: (u64, u64),
    header: &Header,
    mut see: impl FnMut(Change),
) -> Result<(), FsError> {
    let damaged = |what: &str| FsError::format(&area.name(), format!("checkpoint {}: {what}", header.number));
    let (mut block, end) = (slot.0 + 1, slot.0 + slot.1);
    for number in 0..header.chunks {
        let is_its_own = |piece: &Vec<u8>| checkpoint_of(piece) == header.number;
        let read = async |copy: &Area| read_piece(copy, uuid, block, end, number).await.filter(is_its_own);
        let Some(piece) = area.find_and_mend(block, read).await else {
            return Err(damaged(&format!("chunk {number} of {} is damaged", header.chunks)));
        };
        block += (piece.len() / BLOCK_BYTES) as u64;
        let mut from = Decoder::new(contents_of(&piece));
        while !from.is_done() {
            let change = Change::decode(&mut from).map_err(|Malformed(why)| damaged(why))?;
            see(change);
        }
    }
    Ok(())
}
