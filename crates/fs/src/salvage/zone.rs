//! A zone of an array without metadata, as its header and its write pointer describe it.

use uuid::Uuid;

use crate::array::zone_header::ZoneHeader;

/// A zone with a header.
pub(super) struct Zone {
    /// Header of the zone.
    pub header: ZoneHeader,
    /// UUID of the drive with the zone.
    pub uuid: Uuid,
    /// Number of the zone on the drive.
    pub zone: u32,
    /// Number of blocks that are written.
    pub written: u64,
    /// Whether `written` is a write pointer of the drive. If not, `written` is the size of the zone.
    pub has_pointer: bool,
}
