//! Conditions of zones, zones as they are reported, and errors of zone operations.

use imbrex_disk::{Lba, Sectors};

/// The condition of a zone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// The zone has no write pointer: every sector can be rewritten.
    Conventional,
    /// Nothing is written to the zone.
    Empty,
    /// A write opened the zone.
    ImplicitlyOpen,
    /// The host opened the zone by a command.
    ExplicitlyOpen,
    /// Partly written, and not open.
    Closed,
    /// Written to its end, or finished.
    Full,
    /// The zone can only be read, because of a fault.
    ReadOnly,
    /// The zone can neither be read nor written, because of a fault.
    Offline,
}

impl Condition {
    /// Returns the condition's name in reports.
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

    /// Returns whether a zone in this condition is open.
    pub const fn is_open(self) -> bool {
        matches!(self, Condition::ImplicitlyOpen | Condition::ExplicitlyOpen)
    }

    /// Returns whether a zone in this condition counts towards the limit of active zones.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Condition::Closed)
    }
}

/// A zone, as reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Number of the zone.
    pub index: u32,
    /// First sector of the zone.
    pub start: Lba,
    /// Number of sectors of the zone.
    pub sectors: Sectors,
    /// Condition of the zone.
    pub condition: Condition,
    /// The write pointer, in sectors from the start of the zone: the zone's length if it is full; 0 if it has no
    /// pointer.
    pub pointer: Sectors,
}

/// Why an operation on a zone is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ZoneError {
    /// The zone does not exist.
    #[error("there is no zone {zone}: the drive has {zones}")]
    NoSuchZone {
        /// The number that was given.
        zone: u32,
        /// The number of zones.
        zones: u32,
    },
    /// The sectors reach past the last zone.
    #[error("{sectors} sectors from LBA {} reach past the end of the drive at {end}", .lba.0)]
    PastEnd {
        /// First sector of the request.
        lba: Lba,
        /// Number of sectors of the request.
        sectors: u64,
        /// One past the last sector of the last zone.
        end: u64,
    },
    /// The write is not at the write pointer.
    #[error("zone {zone} takes its next write at LBA {}, not at {}: a write elsewhere would destroy data", .pointer.0, .lba.0)]
    NotAtPointer {
        /// The number of the zone.
        zone: u32,
        /// The zone's write pointer.
        pointer: Lba,
        /// First sector of the write.
        lba: Lba,
    },
    /// The write reaches over the end of a zone.
    #[error("zone {zone} has room for {room} sectors more, not for {sectors}")]
    NoRoom {
        /// Number of the zone.
        zone: u32,
        /// Sectors that still fit.
        room: u64,
        /// Sectors of the write.
        sectors: u64,
    },
    /// The zone's condition does not allow the operation.
    #[error("zone {zone} is {}: it cannot be {what}", .condition.name())]
    Condition {
        /// Number of the zone.
        zone: u32,
        /// Condition of the zone.
        condition: Condition,
        /// The operation as a participle: "written", "reset", …
        what: &'static str,
    },
    /// The limit of explicitly open zones is reached.
    #[error("{limit} zones are explicitly open, the most there may be: close or finish one")]
    TooManyOpen {
        /// The limit.
        limit: u32,
    },
    /// The limit of active zones, which are open or closed, is reached.
    #[error("{limit} zones are open or closed, the most there may be: finish or reset one")]
    TooManyActive {
        /// The limit.
        limit: u32,
    },
    /// A write pointer cannot be set ahead.
    #[error("zone {zone} is written up to sector {pointer}: its pointer cannot be set ahead to {to}")]
    PointerAhead {
        /// Number of the zone.
        zone: u32,
        /// The write pointer, in sectors from the start of the zone.
        pointer: u64,
        /// The requested pointer, in sectors from the start of the zone.
        to: u64,
    },
}
