//! Goal: an image is laid out byte by byte as docs/image.md says, and its space keeps its contents. A program that read
//! and wrote another layout would agree with itself. So the places and bytes here are worked out by hand from that
//! page.

mod facts;
mod heading;
mod journal;
mod older;
mod scrubs;
mod settling;
mod transfers;
mod witnesses;

use uuid::Uuid;

use super::header::VERSION;

use super::Header;

/// Returns a header in which only the sizes matter.
fn header(sector_bytes: u32, disk_sectors: u64, flash_sectors: u64, chunk_bytes: u64, journal_bytes: u64) -> Header {
    Header {
        uuid: Uuid::from_u128(7),
        snapshot: None,
        label: "image".into(),
        profile_file: "toy".into(),
        profile_text: String::new(),
        profile_overrides: Vec::new(),
        layer: "conventional".into(),
        parameters: Vec::new(),
        sector_bytes,
        disk_sectors,
        flash_sectors,
        chunk_bytes,
        journal_bytes,
        version: VERSION,
    }
}
