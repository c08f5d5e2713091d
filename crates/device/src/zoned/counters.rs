//! Counts that an emulated drive keeps about its zones.

/// Counts of effects of TRIMs on the zones of an emulated drive. Refused TRIMs are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZoneCounters {
    /// Number of zones that a TRIM emptied because it covers them completely, since the drive was opened. Zones that
    /// were empty already do not count.
    pub zones_reset_by_trim: u64,
    /// Number of TRIMs of which a part was ignored, since the drive was opened, because the TRIM covers only part of a
    /// zone with a write pointer.
    pub trims_ignored: u64,
}
