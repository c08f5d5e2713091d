//! Goal: places, states, owners of slots and records are stored as docs/image.md says.

use uuid::Uuid;

use super::super::checksum::{Salt, What};
use super::super::directory::{Directory, Owner};
use super::super::journal::{RECORD_BYTES, Record};
use super::super::layout::{BLOCK_BYTES, ENTRY_BYTES, Region};
use super::super::state::{STATE_BYTES, State};
use super::header;
use imbrex_layer::Note;

#[test]
fn everything_lies_where_the_page_says() {
    // Chunks of 1 MiB: heads 1 MiB apart, the directory at 3 MiB. There are 40 chunks of platters, 1 of flash and 4 × 1
    // of journals: 45 entries of 16 bytes, so slots begin at the next MiB. A chunk has 2048 sectors: 34 blocks of 62,
    // whose digests lie in two blocks of 31. The table begins at 4096 and ends at 21,504, so contents are at 24,576.
    const MIB: u64 = 1 << 20;
    let layout = header(512, 40 * 2048, 1, MIB, MIB).layout();
    assert_eq!([0, 1, 2].map(|copy| layout.header(copy)), [0, MIB, 2 * MIB]);
    assert_eq!([layout.state(0, 0), layout.state(0, 1)], [64 << 10, (64 << 10) + 4096]);
    assert_eq!(layout.state(2, 1), 2 * MIB + (64 << 10) + 4096);
    assert_eq!([layout.entry(0), layout.entry(3)], [3 * MIB, 3 * MIB + 48]);
    assert_eq!((layout.chunks(), layout.chunk_sectors(), layout.table_blocks), (45, 2048, 34));
    assert_eq!(layout.slot_bytes(), 24_576 + MIB);
    assert_eq!([layout.slot(0), layout.slot(2)], [4 * MIB, 6 * MIB + 49_152]);
    assert_eq!([layout.block(0, 0), layout.block(0, 2)], [4 * MIB + 4096, 4 * MIB + 5120]);
    assert_eq!([layout.digests(0, 0), layout.digests(0, 1)], [4 * MIB + 512, 4 * MIB + 1024]);
    assert_eq!(layout.content(1, 7), 5 * MIB + 24_576 + 24_576 + 7);
    assert_eq!(layout.slot_head_bytes(), 21_504);
    assert_eq!(layout.slot_at(5 * MIB + 24_576 + 24_576 + 7), Some((1, 7)));
    assert_eq!(layout.slot_at(5 * MIB + 24_576 + 24_575), None, "in the sector table");
    assert_eq!(layout.restore_bytes, 0, "no disk tears a sector of 512 bytes");
    assert_eq!(layout.slot_at(4 * MIB - 1), None, "before the slots");
    // Chunks of 4 KiB with sectors of 4 KiB: one block at 4096, contents at 8192. Heads are 128 KiB apart. There are 3
    // + 0 + 4 × 2 chunks. The restore area has four times 16 KiB, for four sectors each.
    let layout = header(4096, 3, 0, 4096, 8192).layout();
    assert_eq!([layout.header(1), layout.entry(0)], [128 << 10, 384 << 10]);
    assert_eq!((layout.chunks(), layout.chunk_sectors(), layout.table_blocks), (11, 1, 1));
    assert_eq!([layout.restored(0), layout.restore_bytes], [(384 << 10) + 4096, 64 << 10]);
    assert_eq!((layout.slot(0), layout.slot_bytes()), ((384 << 10) + 4096 + (64 << 10), 12_288));
}

#[test]
fn regions_follow_each_other_chunk_by_chunk() {
    // Four chunks of platters (the last one partly used), one of flash, two of each journal.
    let layout = header(512, 3 * 8 + 1, 8, 4096, 8192).layout();
    let ranges = Region::ALL.map(|region| layout.chunks_of(region));
    assert_eq!(ranges, [0..4, 4..5, 5..7, 7..9, 9..11, 11..13]);
    assert_eq!(Region::ALL.map(Region::has_sectors), [true, true, false, false, false, false]);
    assert_eq!(layout.chunk(Region::Disk, 3 * 4096 + 511), 3);
    assert_eq!(layout.chunk(Region::JournalB, 4095), 7);
    assert_eq!(layout.chunk(Region::MirrorB, 4096), 12);
    assert_eq!(layout.region_of(3), Some((Region::Disk, 3 * 4096)));
    assert_eq!(layout.region_of(6), Some((Region::JournalA, 4096)));
    assert_eq!(layout.region_of(12), Some((Region::MirrorB, 4096)));
    assert_eq!(layout.region_of(13), None);
}

#[test]
#[should_panic(expected = "lies past its end")]
fn no_region_reaches_into_the_next() {
    header(512, 24, 8, 4096, 8192).layout().chunk(Region::Disk, 3 * 4096);
}

const STATE: State = State {
    generation: 0x1111_0000_0000_0007,
    era: 0x2222_0000_0000_0003,
    journal: 1,
    journal_epoch: 0x3333_0004,
    epoch: 0x4444_0005,
    is_sealed: true,
    slot_mark: 0x5555_0000_0000_0006,
    slots_given: 0x6666_0000_0000_0008,
    journal_records: 0x7777_0000_0000_0009,
};

#[test]
fn a_state_is_read_in_its_place_and_whole() {
    let salt = Salt::new(Uuid::from_u128(7), What::State);
    let bytes = STATE.bytes(salt);
    assert_eq!(bytes[4..16], [0x54, 0x41, 0x54, 0x53, 7, 0, 0, 0, 0, 0, 0x11, 0x11]);
    assert_eq!(
        bytes[16..40],
        [3, 0, 0, 0, 0, 0, 0x22, 0x22, 1, 0, 0, 0, 4, 0, 0x33, 0x33, 5, 0, 0x44, 0x44, 1, 0, 0, 0]
    );
    assert_eq!((bytes[40], bytes[47], bytes[48], bytes[56], bytes[63]), (6, 0x55, 8, 9, 0x77));
    assert_eq!(State::parse(&bytes, salt, 1), Some(STATE));
    assert_eq!(State::parse(&bytes, salt, 0), None, "an odd generation lies in place 1");
    assert_eq!(State::parse(&bytes, Salt::new(Uuid::from_u128(8), What::State), 1), None, "another image");
    for at in 0..STATE_BYTES {
        let mut spoilt = bytes;
        spoilt[at] ^= 4;
        assert_eq!(State::parse(&spoilt, salt, 1), None, "byte {at}");
    }
    let even = State { generation: 8, is_sealed: false, journal: 0, ..STATE };
    assert_eq!(State::parse(&even.bytes(salt), salt, 0), Some(even));
}

/// States with a correct checksum and impossible values: of a later version, or forged.
#[test]
fn a_state_that_makes_no_sense_is_none_though_it_sums_up() {
    let salt = Salt::new(Uuid::from_u128(7), What::State);
    let with = |at: usize, byte: u8, place: u64| {
        let mut bytes = STATE.bytes(salt);
        bytes[at] = byte;
        let sum = salt.sum(place, &bytes[4..]);
        bytes[..4].copy_from_slice(&sum.to_le_bytes());
        State::parse(&bytes, salt, place)
    };
    assert_eq!(with(8, 9, 1).map(|state| state.generation & 0xff), Some(9), "another odd generation");
    assert_eq!(with(4, 0, 1), None, "another magic");
    assert_eq!([with(24, 2, 1), with(24, 3, 1)], [None, None], "a third journal");
    assert_eq!([with(36, 2, 1), with(36, 3, 1)], [None, None], "neither sealed nor not");
    assert_eq!(with(8, 8, 1), None, "an even generation in place 1");
}

#[test]
fn the_directory_knows_who_has_which_slot() {
    let mut directory = Directory::new(Uuid::from_u128(7), 3000);
    let chunks = [5, 1023, 1024, 2047, 2048, 2999, 0];
    for (slot, chunk) in (0..).zip(chunks) {
        assert_eq!((directory.slot(chunk), directory.end(), directory.given), (None, slot, slot));
        assert!(directory.set(slot, chunk));
        assert_eq!((directory.slot(chunk), directory.chunk(slot)), (Some(slot), Some(chunk)));
    }
    assert!(directory.set(2, 1024), "it is so already");
    assert!(!directory.set(9, 1024), "the chunk has another slot");
    assert_eq!((directory.end(), directory.given, directory.chunk(9)), (7, 7, None));
    // A slot that is skipped belongs to no chunk.
    assert!(directory.set(9, 77));
    assert_eq!((directory.chunk(8), directory.chunk(9), directory.end(), directory.given), (None, Some(77), 10, 8));
    let given: Vec<(u64, u64)> = directory.given_slots().collect();
    assert_eq!(given, (0..).zip(chunks).chain([(9, 77)]).collect::<Vec<_>>());
    let within = |range| directory.chunks_with_slot(range).collect::<Vec<u64>>();
    assert_eq!(within(0..3000), [0, 5, 77, 1023, 1024, 2047, 2048, 2999]);
    assert_eq!(within(5..1024), [5, 77, 1023]);
    assert_eq!(within(1024..2048), [1024, 2047]);
    assert_eq!(within(2047..2049), [2047, 2048]);
    assert_eq!(within(6..77), [0; 0]);
}

#[test]
fn entries_and_headers_of_slots_say_whose_they_are() {
    let directory = Directory::new(Uuid::from_u128(7), 1024);
    let (entry, header) = (directory.entry(3, 9), directory.header(3, Some(9)));
    // Checksum, four zero bytes, then the chunk's number + 1.
    assert_eq!(entry[4..], [0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(header[4..16], [0x54, 0x4f, 0x4c, 0x53, 10, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(directory.parse_entry(3, &entry), Owner::Chunk(9));
    assert_eq!(directory.parse_header(3, &header), Owner::Chunk(9));
    assert_eq!(directory.parse_entry(4, &entry), Owner::Spoilt, "of another slot");
    assert_eq!(directory.parse_header(4, &header), Owner::Spoilt, "of another slot");
    for at in 0..ENTRY_BYTES as usize {
        let mut spoilt = entry;
        spoilt[at] ^= 4;
        // Four bytes are unused, but the checksum covers them.
        let parsed = directory.parse_entry(3, &spoilt);
        assert_eq!(parsed, Owner::Spoilt, "byte {at} of an entry");
    }
    for at in 0..BLOCK_BYTES {
        let mut spoilt = header;
        spoilt[at] ^= 4;
        assert_eq!(directory.parse_header(3, &spoilt), Owner::Spoilt, "byte {at} of a header");
    }
    assert_eq!(directory.parse_entry(3, &[0; ENTRY_BYTES as usize]), Owner::Nobody);
    assert_eq!(directory.parse_header(3, &directory.header(3, None)), Owner::Nobody);
    assert_eq!(directory.parse_header(3, &[0; BLOCK_BYTES]), Owner::Spoilt, "a blank header was never prepared");
    // The image has one page of 1024 chunks.
    let last = |chunk| {
        let (entry, header) = (directory.entry(3, chunk), directory.header(3, Some(chunk)));
        (directory.parse_entry(3, &entry), directory.parse_header(3, &header))
    };
    assert_eq!(last(1023), (Owner::Chunk(1023), Owner::Chunk(1023)));
    assert_eq!(last(1024), (Owner::Spoilt, Owner::Spoilt));
    assert_eq!(last(5000), (Owner::Spoilt, Owner::Spoilt));
}

#[test]
fn a_header_of_a_slot_needs_its_magic_though_it_sums_up() {
    let directory = Directory::new(Uuid::from_u128(7), 1024);
    let mut bytes = directory.header(3, Some(9));
    bytes[4] ^= 1;
    let sum = Salt::new(Uuid::from_u128(7), What::SlotHeader).sum(3, &bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(directory.parse_header(3, &bytes), Owner::Spoilt);
}

#[test]
fn a_record_is_read_by_its_number_and_whole() {
    let salt = Salt::new(Uuid::from_u128(7), What::Journal);
    let note = Note { tag: 0x21, fields: [0x0102_0304, u64::MAX, 5, 0x0600_0000_0000_0007] };
    let record = Record { note, epoch: 0x0a0b_0c0d, durable: 0x0e0f, era: 0x0010_1112_1314_1516 };
    let encoded = |record: &Record| {
        let mut bytes = [0xee; RECORD_BYTES];
        record.encode(salt, 300, &mut bytes);
        bytes
    };
    let bytes = encoded(&record);
    assert_eq!(bytes[4..18], [0x0d, 0x0c, 0x0b, 0x0a, 0x2c, 1, 0, 0, 0, 0, 0, 0, 0x21, 0x16]);
    assert_eq!(bytes[17..24], [0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 0x10]);
    assert_eq!((&bytes[24..28], &bytes[32..40], bytes[40]), (&[4, 3, 2, 1][..], &[0xff; 8][..], 5));
    assert_eq!((bytes[48], bytes[55], &bytes[56..58]), (7, 6, &[0x0f, 0x0e][..]));
    assert_eq!(Record::decode(salt, &bytes, 300), Some(record));
    assert_eq!(Record::decode(salt, &bytes, 301), None, "of another place");
    for at in 0..RECORD_BYTES {
        let mut spoilt = bytes;
        spoilt[at] ^= 4;
        assert_eq!(Record::decode(salt, &spoilt, 300), None, "byte {at}");
    }
    let never = Record { epoch: 0, ..record };
    assert_eq!(Record::decode(salt, &encoded(&never), 300), None, "no epoch is 0");
}
