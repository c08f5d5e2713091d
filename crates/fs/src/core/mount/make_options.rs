//! The options and the devices with which a file system is made.

use imbrex_units::quantity::{Rounding, said_bytes};
use uuid::Uuid;

use crate::device::{BLOCK_BYTES, Device};
use crate::format::superblock::Role;

/// Place of the hot zone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum HotOn {
    /// The area of the metadata.
    #[default]
    Metadata,
    /// The drives that hold the data: their conventional zones, or the outer part of conventional disks.
    Drives,
}

/// Options for making a file system.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MakeOptions {
    /// UUID of the file system, from which the UUIDs of its devices are derived; a random one if not given.
    pub uuid: Option<Uuid>,
    /// Name of the store. If not given, `log` for an array, and otherwise the default for the kind of the drive.
    pub store: Option<String>,
    /// Options of the store. A mount uses them unless it is given others.
    pub options: Vec<(String, String)>,
    /// Blocks for metadata, including the hot zone. If not given: on a zoned drive all conventional zones; on another
    /// drive a sixty-fourth of its blocks, at least 256, plus the hot zone. Devices that hold only metadata are used
    /// whole.
    pub metadata_blocks: Option<u64>,
    /// Whether to make the file system even if the devices hold one already.
    pub overwrite: bool,
    /// Number of drives that an array can lose without loss of data.
    pub parity: u8,
    /// Blocks of the hot zone, which only store `log` has; 0 for none.
    pub hot_blocks: u64,
    /// Place of the hot zone.
    pub hot_on: HotOn,
}

/// The devices on which a file system is made.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// Drives that hold the data: one drive, or the drives of an array.
    pub drives: &'a [Device],
    /// Devices that hold one copy of the metadata each. If empty, the metadata are in the unshingled part of the one
    /// drive.
    pub metadata: &'a [Device],
    /// Spare drives, which replace drives of the array that fail.
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
