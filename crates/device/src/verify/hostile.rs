//! Tests of the image readers on arbitrary bytes, as in images that no Imbrex program wrote. Each function here
//! accepts any bytes and panics only if a reader is wrong. A fuzzer calls these functions, and so do tests with tens
//! of thousands of cases.
//!
//! Readers refuse bytes with a wrong checksum early. So the header and the journal each have a second entry point
//! that corrects length and checksum, to reach the code behind these checks.
//!
//! Invariants:
//! 1. An accepted input has the same meaning after it is written and read again.
//! 2. A refused input is an error. Nothing here allocates more than the size of the image or its header justifies.

use imbrex_disk::Sectors;
use imbrex_layer::verify::toy;
use imbrex_layer::{Layer, Note, Plan, registry};
use imbrex_sim::{Drive, DriveSpec};
use uuid::Uuid;

use crate::image::checksum::{Salt, What};
use crate::image::header::{MAGIC, VERSION};
use crate::image::journal::{RECORD_BYTES, Record};
use crate::image::{Bounds, Header, Journal, Region, Space};
use crate::media::memory::Memory;

/// Bytes of the journal of the image in which journals are tried.
const JOURNAL_BYTES: u64 = 256 << 10;
const PLACE: &str = "a stranger's image";

/// Reads `data` as the start of an image. Returns the header, or `None` if the readers refuse it. Also opens the rest
/// of `data` as the image of this header.
///
/// # Panics
/// If an accepted header reads differently after it is written again: a bug of the reader.
pub fn header(data: &[u8]) -> Option<Header> {
    let mut media = Memory::with(data);
    let header = Header::read(&mut media, PLACE).ok()?;
    let mut again = Memory::new();
    // Another encoding of the same header may be longer than the space for it; this error is not a fault.
    if header.write(&mut again).is_ok() {
        assert_eq!(Header::read(&mut again, PLACE).ok().as_ref(), Some(&header), "it reads back as it was");
    }
    // The result must be an image or an error, whatever the state and the sector table contain.
    let _ = Space::open(media, &header, PLACE, Bounds::default());
    Some(header)
}

/// Reads `json` as the JSON text of an image header; magic number, version, length and checksum are added. Returns the
/// header, or `None` if the readers refuse it.
///
/// # Panics
/// If an accepted header reads differently after it is written again: a bug of the reader.
pub fn header_text(json: &[u8]) -> Option<Header> {
    let mut data = MAGIC.to_vec();
    data.extend_from_slice(&VERSION.to_le_bytes());
    data.extend_from_slice(&(json.len() as u32).to_le_bytes());
    data.extend_from_slice(&crc32c::crc32c(json).to_le_bytes());
    data.extend_from_slice(&[0; 4]);
    data.extend_from_slice(json);
    header(&data)
}

/// UUID of the image in which [`journal`] places its data. The checksums of journal records depend on it.
pub const UUID: Uuid = Uuid::from_u128(7);

/// Reads `data` as the contents of a journal, and returns the number of records accepted before the first invalid one.
/// Bytes past 256 KiB are ignored.
///
/// # Panics
/// If an accepted record differs after it is written again: a bug of the reader.
pub fn journal(data: &[u8]) -> u64 {
    // Bytes that were never written read as zeros, and a record may end with zeros.
    let mut data = data[..data.len().min(JOURNAL_BYTES as usize)].to_vec();
    data.resize(data.len().next_multiple_of(RECORD_BYTES), 0);
    let mut space = journal_space(&data);
    let salt = Salt::new(UUID, What::Journal);
    let mut accepted = 0;
    let replayed = Journal::replay(&mut space, JOURNAL_BYTES, PLACE, |note| {
        let from = accepted as usize * RECORD_BYTES;
        let found: &[u8; RECORD_BYTES] = data[from..].first_chunk().expect("a record that was read is there");
        let record = Record::decode(salt, found, accepted).expect("a record that was accepted is whole");
        let mut again = [0; RECORD_BYTES];
        record.encode(salt, accepted, &mut again);
        assert_eq!((record.note, &again), (*note, found), "record {accepted} is written as it was read");
        accepted += 1;
        Ok(())
    });
    if let Ok(journal) = replayed {
        assert_eq!(journal.records(), accepted);
    }
    accepted
}

/// Returns a small image whose valid journal contains `data`.
fn journal_space(data: &[u8]) -> Space<Memory> {
    let sizes = Header {
        uuid: UUID,
        snapshot: None,
        label: "toy".into(),
        profile_file: String::new(),
        profile_text: String::new(),
        profile_overrides: Vec::new(),
        layer: String::new(),
        parameters: Vec::new(),
        sector_bytes: 512,
        disk_sectors: 1000,
        flash_sectors: 0,
        chunk_bytes: 4096,
        journal_bytes: JOURNAL_BYTES,
        version: VERSION,
    };
    let mut space = Space::create(Memory::new(), &sizes, Bounds::default()).expect("memory takes it");
    if !data.is_empty() {
        space.write_raw(&[(Region::JournalA, 0, data)]).expect("memory takes it");
    }
    space
}

/// Returns a new small translation layer: number `index` of the registry of layers, modulo their number.
pub fn layer(index: usize) -> Box<dyn Layer> {
    let info = registry::all()[index % registry::all().len()];
    let build = |words: &&str| {
        let spec = DriveSpec::parse(&format!("toy+{}:{words}", info.name)).expect("toy parameters are key=value");
        let mut disks = info.recordings.iter().flat_map(|&name| toy::disks(name));
        disks.find_map(|disk| Drive::assemble(info.name, disk.profile.clone(), info.name, &spec.parameters).ok())
    };
    info.toys.iter().find_map(build).expect("every layer has a toy").layer
}

/// Returns `note` in the encoding that [`records`] reads: its tag, then its four fields, little-endian.
pub fn record_bytes(note: &Note) -> [u8; NOTE_BYTES] {
    let mut bytes = [0; NOTE_BYTES];
    bytes[0] = note.tag;
    for (index, field) in note.fields.iter().enumerate() {
        bytes[1 + index * 8..9 + index * 8].copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

/// Size in bytes of a journal note in the encoding that [`records`] reads.
pub const NOTE_BYTES: usize = 33;

/// Replays `data` as journal notes into a new layer; the first byte selects the layer, and [`NOTE_BYTES`] bytes follow
/// for each note. Returns the number of notes accepted before the first refused one.
///
/// # Panics
/// If the layer passes its self-check afterwards, and yet a lookup does not cover all sectors: a bug of the layer.
pub fn records(data: &[u8]) -> usize {
    let Some((&which, rest)) = data.split_first() else { return 0 };
    let mut layer = layer(usize::from(which));
    let mut taken = 0;
    for bytes in rest.chunks_exact(NOTE_BYTES) {
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let note = Note { tag: bytes[0], fields: [long(1), long(9), long(17), long(25)] };
        if layer.replay(&note).is_err() {
            return taken;
        }
        taken += 1;
    }
    layer.repair(&mut Plan::new());
    // Valid records may contradict each other; the layer's self-check reports that.
    if layer.self_check().is_ok() {
        let mut pieces = Vec::new();
        layer.lookup(imbrex_disk::Lba(0), layer.capacity(), &mut pieces);
        let covered: u64 = pieces.iter().map(|piece| piece.sectors.0).sum();
        assert_eq!(Sectors(covered), layer.capacity(), "{}: a lookup covers all sectors asked for", layer.name());
    }
    taken
}

/// Writes a valid `header` over its places in `data`, opens the result as an image, and reads the first 64 physical
/// sectors of the platters, or all if there are fewer. Errors are ignored: the test is that nothing panics.
///
/// # Panics
/// If `header` is too long to be written, or a reader has a bug.
pub fn image(header: &Header, data: &[u8]) {
    let mut media = Memory::with(data);
    header.write(&mut media).expect("a header that was written once fits");
    let Ok((drive, mut store)) = crate::Store::open(media, PLACE) else { return };
    let mut sector = vec![0; drive.disk.sector_bytes as usize];
    for pba in 0..drive.disk.geometry.sectors().0.min(64) {
        // Each read returns bytes or an error; a drive with a damaged sector table has both.
        let _ = store.peek(imbrex_layer::Medium::Disk, imbrex_disk::Pba(pba), &mut sector);
    }
}
