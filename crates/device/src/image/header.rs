//! The header of an image: the description of the drive. It is written once, in three copies.
//!
//! A header is 24 bytes of magic, version, length and checksum, followed by JSON. The profile is stored as text, so the
//! image describes the same drive even after the program's own profiles have changed.
//!
//! Invariants:
//! 1. One valid copy is enough to open the image. Damaged copies are reported by the check and rewritten by the repair.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use imbrex_disk::Profile;
use imbrex_sim::Drive;

pub use super::layout::HEADER_BYTES;
use super::layout::{COPIES, Layout, Sizes, header_places};
use crate::error::DeviceError;
use crate::media::Media;

const FIXED_BYTES: usize = 24;
/// Largest number of chunks that is accepted: tables of more chunks would take gigabytes of memory before anything is
/// read.
const CHUNKS_MAX: u64 = 1 << 30;

/// First eight bytes of an image file.
pub const MAGIC: [u8; 8] = *b"IMBREX\x1a\n";
/// Format version of the images that this program creates; only these can be opened for writing.
pub const VERSION: u32 = 3;
/// Oldest format version that this program can read and upgrade to [`VERSION`].
pub const VERSION_MIN: u32 = 2;

/// The header of an image: the description of its drive, and the sizes that determine the layout of the image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// UUID of the drive. All checksums of the image depend on it. A snapshot keeps the UUID of the drive from which it
    /// was taken.
    pub uuid: Uuid,
    /// UUID of the snapshot, or `None` if the image is not a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Uuid>,
    /// Specification of the drive, as the user gave it: `PROFILE[+LAYER][:key=value,…]`.
    pub label: String,
    /// Name of the profile's file, for messages: NAME.toml for a built-in profile, otherwise the path as the user gave
    /// it.
    pub profile_file: String,
    /// Text of the disk profile, in TOML.
    pub profile_text: String,
    /// Values that override those of the profile, as (key, value), in the order given by the user.
    pub profile_overrides: Vec<(String, String)>,
    /// Name of the translation layer in the registry of layers.
    pub layer: String,
    /// All parameters of the layer, as (name, value): those that the user set, and those with default values.
    pub parameters: Vec<(String, String)>,
    /// Size of a sector in bytes: 512 or 4096.
    pub sector_bytes: u32,
    /// Number of physical sectors of the platters, each of `sector_bytes` bytes.
    pub disk_sectors: u64,
    /// Number of sectors of the flash, each of `sector_bytes` bytes; 0 if the drive has no flash.
    pub flash_sectors: u64,
    /// Size in bytes of a chunk, the unit in which space of the image is allocated; a power of two from 4 KiB to 1 GiB.
    pub chunk_bytes: u64,
    /// Largest size in bytes of each of the two journals. The image stores two copies of each journal.
    pub journal_bytes: u64,
    /// Format version of the image. It is stored in front of the JSON text of the header, not in it.
    #[serde(skip, default = "newest")]
    pub version: u32,
}

fn newest() -> u32 {
    VERSION
}

impl Header {
    /// Returns the offsets of all parts of the image.
    pub fn layout(&self) -> Layout {
        Layout::new(&Sizes {
            sector_bytes: u64::from(self.sector_bytes),
            chunk_bytes: self.chunk_bytes,
            disk_sectors: self.disk_sectors,
            flash_sectors: self.flash_sectors,
            journal_bytes: self.journal_bytes,
            version: self.version,
        })
    }

    /// Builds the drive that the header describes, in its initial state.
    ///
    /// # Errors
    /// [`DeviceError::Image`] if the profile or the layer is invalid, or if this program computes another number of
    /// physical sectors than the header says.
    pub fn drive(&self) -> Result<Drive, DeviceError> {
        let refused = |reason: String| DeviceError::image(&self.label, reason);
        let profile = Profile::parse(&self.profile_file, &self.profile_text, &self.profile_overrides)
            .map_err(|error| refused(error.to_string()))?;
        let profile = if self.layer == "conventional" { profile.conventional() } else { profile };
        let drive = Drive::assemble(&self.label, profile, &self.layer, &self.parameters)
            .map_err(|error| refused(error.to_string()))?;
        let sectors = drive.disk.geometry.sectors().0;
        if sectors != self.disk_sectors {
            return Err(refused(format!(
                "this program lays the drive out in {sectors} sectors, its image in {}; use the version that made it",
                self.disk_sectors
            )));
        }
        Ok(drive)
    }

    /// Writes the three copies of the header to `media`, without a flush.
    ///
    /// # Errors
    /// [`DeviceError::Refused`] if the header is longer than 64 KiB ([`HEADER_BYTES`]), or the medium fails.
    pub fn write(&self, media: &mut impl Media) -> Result<(), DeviceError> {
        let bytes = self.bytes()?;
        let layout = self.layout();
        let copies: Vec<(u64, &[u8])> = (0..COPIES).map(|copy| (layout.header(copy), &bytes[..])).collect();
        media.write_together(&copies).map_err(|cause| DeviceError::medium("writing the image's header", cause))
    }

    fn bytes(&self) -> Result<Vec<u8>, DeviceError> {
        let json = serde_json::to_vec(self).expect("a header is plain data");
        if json.len() + FIXED_BYTES > HEADER_BYTES as usize {
            return Err(DeviceError::Refused(format!(
                "the profile's text makes a header of {} bytes, over the {HEADER_BYTES} there are",
                json.len()
            )));
        }
        let mut bytes = Vec::with_capacity(FIXED_BYTES + json.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&json).to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&json);
        Ok(bytes)
    }

    /// Returns the size of one copy of the header in bytes, as written to the image; 64 KiB if the header is too long
    /// to be written.
    pub fn length(&self) -> u64 {
        self.bytes().map_or(HEADER_BYTES, |bytes| bytes.len() as u64)
    }

    /// Reads the header from the first valid copy on `media`; `place` names the image in errors.
    ///
    /// # Errors
    /// A failure of the medium. If no copy is valid, [`DeviceError::Image`] if the medium does not begin with a header
    /// of a supported version, or [`DeviceError::Damaged`] if it begins with a damaged one.
    pub fn read(media: &mut impl Media, place: &str) -> Result<Header, DeviceError> {
        let mut refused = None;
        for offset in header_places() {
            match Header::read_at(media, offset, place) {
                Ok(header) => return Ok(header),
                // The first place gives the best error: the other places may hold any data.
                Err(error @ DeviceError::Medium { .. }) => return Err(error),
                Err(error) => {
                    refused.get_or_insert(error);
                }
            }
        }
        Err(refused.expect("there is a place to look"))
    }

    /// Returns the numbers, from 0 to 2, of the copies on `media` that differ from this header; `place` names the image
    /// in errors.
    ///
    /// # Errors
    /// The medium fails.
    pub fn spoilt_copies(&self, media: &mut impl Media, place: &str) -> Result<Vec<u64>, DeviceError> {
        let (layout, bytes) = (self.layout(), self.bytes()?);
        let (mut spoilt, mut found) = (Vec::new(), vec![0; bytes.len()]);
        for copy in 0..COPIES {
            let failed = |cause| DeviceError::medium(format!("{place}: reading the header"), cause);
            media.read_at(layout.header(copy), &mut found).map_err(failed)?;
            if found != bytes {
                spoilt.push(copy);
            }
        }
        Ok(spoilt)
    }

    fn read_at(media: &mut impl Media, offset: u64, place: &str) -> Result<Header, DeviceError> {
        let failed = |cause| DeviceError::medium(format!("{place}: reading the header"), cause);
        let mut fixed = [0; FIXED_BYTES];
        media.read_at(offset, &mut fixed).map_err(failed)?;
        if fixed[..8] != MAGIC {
            return Err(DeviceError::image(
                place,
                "is not an Imbrex image (its first bytes are others); make one with `imbrex drive create`",
            ));
        }
        let word = |at: usize| u32::from_le_bytes(fixed[at..at + 4].try_into().expect("four bytes"));
        let (version, length, checksum) = (word(8), word(12) as usize, word(16));
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(DeviceError::image(
                place,
                format!(
                    "is an image of version {version}, this program reads versions {VERSION_MIN} to {VERSION}; use the one \
                     that made it"
                ),
            ));
        }
        if length > HEADER_BYTES as usize - FIXED_BYTES || media.len() < offset + (FIXED_BYTES + length) as u64 {
            return Err(DeviceError::damaged(place, "is cut short within its header; restore it from a copy"));
        }
        let mut json = vec![0; length];
        media.read_at(offset + FIXED_BYTES as u64, &mut json).map_err(failed)?;
        if crc32c::crc32c(&json) != checksum || word(20) != 0 {
            return Err(DeviceError::damaged(
                place,
                "has a damaged header (checksum) in all its copies; restore it from a copy",
            ));
        }
        let header: Header = serde_json::from_slice(&json)
            .map_err(|error| DeviceError::image(place, format!("has a header that makes no sense: {error}")))?;
        let header = Header { version, ..header };
        header.check().map_err(|reason| DeviceError::image(place, reason))?;
        Ok(header)
    }

    /// Returns the number of chunks of all regions.
    fn chunks(&self) -> u64 {
        let contents = (self.disk_sectors + self.flash_sectors) * u64::from(self.sector_bytes);
        (contents + 4 * self.journal_bytes) / self.chunk_bytes
    }

    /// Checks the sizes, which a damaged or forged header may have wrong.
    fn check(&self) -> Result<(), String> {
        let sizes_fit = self.chunk_bytes.is_power_of_two()
            && (4096..=1 << 30).contains(&self.chunk_bytes)
            && (self.sector_bytes == 512 || self.sector_bytes == 4096)
            && self.journal_bytes >= self.chunk_bytes
            && self.disk_sectors < 1 << 48
            && self.flash_sectors < 1 << 48
            && self.journal_bytes < 1 << 48
            && self.chunks() <= CHUNKS_MAX;
        sizes_fit.then_some(()).ok_or_else(|| "has impossible sizes in its header".into())
    }
}
