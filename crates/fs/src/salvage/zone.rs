//! A zone of an array without metadata, as its header and its write pointer describe it.

use uuid::Uuid;

use crate::array::zone_header::ZoneHeader;

/// A zone with a header.
pub(super) struct Zone {
    /// Header of the zone, from its first block: names the stripe group to which the zone belongs.
    pub header: ZoneHeader,
    /// UUID of the drive with the zone.
    pub uuid: Uuid,
    /// Number of the zone on its drive, counted from 0.
    pub zone: u32,
    /// Number of blocks of 4 KiB of the zone that are written, from its start on. Without a write pointer it is the
    /// size of the zone.
    pub written: u64,
    /// Whether the drive reports a write pointer for the zone. If not, `written` is the size of the zone.
    pub has_pointer: bool,
}
