//! Goal: a header is accepted exactly if its sizes are possible. Method: sizes at their limits and just past them.

use super::super::Header;
use super::super::header::HEADER_BYTES;
use super::header;
use crate::media::Media;
use crate::media::memory::Memory;

/// Writes a header and reads it back.
fn read_back(header: &Header) -> Result<Header, String> {
    let mut media = Memory::new();
    header.write(&mut media).map_err(|error| error.to_string())?;
    Header::read(&mut media, "image").map_err(|error| error.to_string())
}

#[test]
fn sizes_are_taken_up_to_their_bounds() {
    const LIMIT: u64 = 1 << 48;
    const GIB: u64 = 1 << 30;
    // Sector bytes, sectors of platters, sectors of flash, chunk bytes, journal bytes.
    let right = [
        (512, 1, 0, 4096, 4096),
        (4096, 1, 1, 4096, 8192),
        (512, 1, 0, GIB, GIB),
        (512, LIMIT - 1, 0, GIB, GIB),
        (512, 0, LIMIT - 1, GIB, GIB),
        (512, 0, 0, GIB, LIMIT - 1),
        // The largest number of chunks: 2^30, four of them of journals.
        (512, (GIB - 4) * 8, 0, 4096, 4096),
        (4096, 4, GIB - 8, 4096, 4096),
    ];
    for (sector, disk, flash, chunk, journal) in right {
        let header = header(sector, disk, flash, chunk, journal);
        assert_eq!(read_back(&header).as_ref(), Ok(&header));
    }
    let wrong = [
        (1024, 1, 0, 4096, 4096),
        (512, 1, 0, 2048, 4096),
        (512, 1, 0, 5000, 8192),
        (512, 1, 0, 2 * GIB, 2 * GIB),
        (512, 1, 0, 8192, 4096),
        (512, LIMIT, 0, GIB, GIB),
        (512, 0, LIMIT, GIB, GIB),
        (512, 0, 0, GIB, LIMIT),
        (512, (GIB - 4) * 8 + 8, 0, 4096, 4096),
        (4096, 4, GIB - 7, 4096, 4096),
    ];
    for (sector, disk, flash, chunk, journal) in wrong {
        // There is no layout for such a header, so it is written to the place of the first copy.
        let json = serde_json::to_vec(&header(sector, disk, flash, chunk, journal)).expect("a header is plain data");
        let mut head = Vec::from(*b"IMBREX\x1a\n");
        head.extend_from_slice(&2u32.to_le_bytes());
        head.extend_from_slice(&(json.len() as u32).to_le_bytes());
        head.extend_from_slice(&crc32c::crc32c(&json).to_le_bytes());
        head.extend_from_slice(&[0; 4]);
        head.extend_from_slice(&json);
        let mut media = Memory::with(&head);
        media.write_at(4 << 20, &[0]).expect("memory takes it");
        let error = Header::read(&mut media, "image").expect_err("its sizes cannot be").to_string();
        assert!(error.contains("impossible sizes in its header"), "{sector} {disk} {flash} {chunk} {journal}: {error}");
    }
}

#[test]
fn a_header_fills_its_room_and_no_more() {
    let of_text = |bytes: usize| Header { profile_text: "x".repeat(bytes), ..header(512, 64, 0, 4096, 4096) };
    let room = HEADER_BYTES as usize - of_text(0).length() as usize;
    assert_eq!(of_text(room).length(), HEADER_BYTES);
    assert_eq!(read_back(&of_text(room)), Ok(of_text(room)));
    let error = read_back(&of_text(room + 1)).expect_err("it would reach into the state");
    assert!(error.contains("over the 65536 there are"), "{error}");
}

#[test]
fn a_spoilt_copy_is_named_and_another_is_read() {
    let whole = header(512, 64, 0, 4096, 4096);
    for copy in 0..3u64 {
        let mut media = Memory::new();
        whole.write(&mut media).expect("memory takes it");
        assert!(whole.spoilt_copies(&mut media, "image").expect("memory reads").is_empty());
        // The copies are 128 KiB apart.
        media.write_at(copy * (128 << 10) + 40, b"?").expect("memory takes it");
        assert_eq!(whole.spoilt_copies(&mut media, "image").expect("memory reads"), [copy]);
        assert_eq!(Header::read(&mut media, "image").expect("two are whole"), whole);
    }
}
