//! What a zone is, as it is reported, and what it refuses.

use imbrex_disk::{Lba, Sectors};

/// The condition of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// It has no write pointer: every sector can be rewritten.
    Conventional,
    /// Nothing is written.
    Empty,
    /// A write opened it.
    ImplicitlyOpen,
    /// The host opened it.
    ExplicitlyOpen,
    /// Partly written, and not open.
    Closed,
    /// Written to its end, or finished.
    Full,
    /// A fault left it readable only.
    ReadOnly,
    /// A fault left nothing of it.
    Offline,
}

impl Condition {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Condition::Conventional => "conventional",
            Condition::Empty => "empty",
            Condition::ImplicitlyOpen => "implicitly-open",
            Condition::ExplicitlyOpen => "explicitly-open",
            Condition::Closed => "closed",
            Condition::Full => "full",
            Condition::ReadOnly => "read-only",
            Condition::Offline => "offline",
        }
    }

    /// Whether it is open.
    pub const fn is_open(self) -> bool {
        matches!(self, Condition::ImplicitlyOpen | Condition::ExplicitlyOpen)
    }

    /// Whether it counts towards the limit of active zones.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Condition::Closed)
    }
}

/// A zone, as reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Its number.
    pub index: u32,
    /// Its first sector.
    pub start: Lba,
    /// Its sectors.
    pub sectors: Sectors,
    /// Its condition.
    pub condition: Condition,
    /// Where the next write must go, in sectors from its start: its length once it is full; 0 where it has none.
    pub pointer: Sectors,
}

/// What a zone refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ZoneError {
    /// There is no such zone.
    #[error("there is no zone {zone}: the drive has {zones}")]
    NoSuchZone {
        /// The zone that was asked for.
        zone: u32,
        /// How many zones there are.
        zones: u32,
    },
    /// Sectors past the last zone.
    #[error("{sectors} sectors from LBA {} reach past the end of the drive at {end}", .lba.0)]
    PastEnd {
        /// First sector.
        lba: Lba,
        /// How many.
        sectors: u64,
        /// One past the last sector of the last zone.
        end: u64,
    },
    /// A write elsewhere than at the pointer.
    #[error("zone {zone} takes its next write at LBA {}, not at {}: a write elsewhere would destroy data", .pointer.0, .lba.0)]
    NotAtPointer {
        /// The number of the zone.
        zone: u32,
        /// Where its pointer is.
        pointer: Lba,
        /// Where the write was to go.
        lba: Lba,
    },
    /// A write over the end of a zone.
    #[error("zone {zone} has room for {room} sectors more, not for {sectors}")]
    NoRoom {
        /// Which zone.
        zone: u32,
        /// Sectors that still fit.
        room: u64,
        /// What was to be written.
        sectors: u64,
    },
    /// The zone's condition does not allow it.
    #[error("zone {zone} is {}: it cannot be {what}", .condition.name())]
    Condition {
        /// Which zone.
        zone: u32,
        /// Its condition.
        condition: Condition,
        /// What was asked: "written", "reset", …
        what: &'static str,
    },
    /// As many zones are explicitly open as may be.
    #[error("{limit} zones are explicitly open, the most there may be: close or finish one")]
    TooManyOpen {
        /// The limit.
        limit: u32,
    },
    /// As many zones are open or closed as may be.
    #[error("{limit} zones are open or closed, the most there may be: finish or reset one")]
    TooManyActive {
        /// The limit.
        limit: u32,
    },
    /// A pointer cannot be set ahead.
    #[error("zone {zone} is written up to sector {pointer}: its pointer cannot be set ahead to {to}")]
    PointerAhead {
        /// Which zone.
        zone: u32,
        /// Where the pointer is.
        pointer: u64,
        /// Where it was to be set.
        to: u64,
    },
}
