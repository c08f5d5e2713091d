//! The options and the devices with which a file system is made.

use imbrex_units::quantity::{Rounding, said_bytes};
use uuid::Uuid;

use crate::device::{BLOCK_BYTES, Device};
use crate::format::superblock::Role;

/// Place of the hot zone of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HotOn {
    /// The metadata area, on each device with a copy of the metadata.
    #[default]
    Metadata,
    /// The drives of the array that hold the data: their conventional zones, or the first blocks of conventional disks.
    Drives,
}

/// Options with which a file system is made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MakeOptions {
    /// UUID of the file system, from which the UUIDs of its devices are derived. `None` for a random one.
    pub uuid: Option<Uuid>,
    /// Name of the store. If `None`: `log` for several drives or with parity, otherwise `strict-append` for a zoned
    /// drive and `caveat` for a caveat disk. A single conventional drive needs a name.
    pub store: Option<String>,
    /// Options of the store, and `hot_files` of the hot zone, as pairs of key and value. They are stored in the
    /// superblock, with `hot_files=alone` added if the metadata area with the hot zone is mirrored and the key is
    /// missing. A mount uses them, except for keys for which it is given other values.
    pub options: Vec<(String, String)>,
    /// Number of blocks of 4 KiB for metadata, hot zone included, if they are on the data drive. If `None`: on a zoned
    /// drive all conventional zones, which are also the maximum; on another drive a sixty-fourth of its blocks, at
    /// least 256, plus the hot zone. Ignored if the metadata have devices of their own: these are used up to the size
    /// of the smallest.
    pub metadata_blocks: Option<u64>,
    /// Whether to make the file system even if a device holds a file system of Imbrex already. If not set, such a
    /// device is refused.
    pub overwrite: bool,
    /// Number of parity blocks in each row of blocks across the drives of an array, 0 to 3: so many drives can be lost
    /// without loss of data. It must be less than the number of drives, so 0 for a single drive.
    pub parity: u8,
    /// Size of the hot zone in blocks of 4 KiB; 0 for none. Only store `log` has a hot zone.
    pub hot_blocks: u64,
    /// Place of the hot zone: the metadata area (the default), or the drives of the array.
    pub hot_on: HotOn,
}

/// The devices on which a file system is made, in the order of their member numbers.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Drives that hold the data: one drive, or the drives of an array in the order of their numbers.
    pub drives: &'a [Device],
    /// Devices that hold one copy of the metadata each, at most 4. If empty, the metadata are on the only data drive;
    /// an array needs at least one.
    pub metadata: &'a [Device],
    /// Spare drives, which replace drives of the array that fail. Only arrays with parity have them.
    pub spares: &'a [Device],
}

impl Parts<'_> {
    pub(in crate::core) fn all(&self) -> impl Iterator<Item = (&Device, Role)> {
        let role = if self.metadata.is_empty() { Role::Both } else { Role::Data };
        let drives = self.drives.iter().map(move |drive| (drive, role));
        let metadata = self.metadata.iter().map(|device| (device, Role::Metadata));
        drives.chain(metadata).chain(self.spares.iter().map(|drive| (drive, Role::Spare)))
    }
}

/// Returns the size of `blocks` blocks as text for an error message.
pub(super) fn size_of_blocks(blocks: u64, rounding: Rounding) -> String {
    said_bytes(blocks.saturating_mul(BLOCK_BYTES as u64), rounding)
}
