//! Counts that an emulated drive keeps about its zones.

/// Counts of effects of TRIMs on zones. Refused commands are not counted, because their senders get an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ZoneCounters {
    /// Zones emptied by a TRIM that covers them whole.
    pub zones_reset_by_trim: u64,
    /// TRIMs of which a part was ignored, because it covers only part of a zone, or a zone that cannot be reset.
    pub trims_ignored: u64,
}
