//! Conditions of zones, zones as they are reported, and errors of zone operations.

use imbrex_disk::{Lba, Sectors};

/// The condition of a zone, as ZBC and ZAC define it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Condition {
    /// The zone has no write pointer: every sector can be rewritten.
    Conventional,
    /// Nothing is written to the zone, and it is not open.
    Empty,
    /// A write to the zone opened it. The drive may close it when another zone has to be opened.
    ImplicitlyOpen,
    /// The host opened the zone by an OPEN ZONE command. Only the host closes it.
    ExplicitlyOpen,
    /// Some sectors are written, but not all, and the zone is not open.
    Closed,
    /// The zone is written to its end, or the host finished it.
    Full,
    /// The zone can only be read, because of a fault.
    ReadOnly,
    /// The zone can neither be read nor written, because of a fault.
    Offline,
}

impl Condition {
    /// Returns the condition's name in reports, in lower case with hyphens, such as `implicitly-open`.
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

    /// Returns whether a zone in this condition is open, implicitly or explicitly.
    pub const fn is_open(self) -> bool {
        matches!(self, Condition::ImplicitlyOpen | Condition::ExplicitlyOpen)
    }

    /// Returns whether a zone in this condition counts towards the limit of active zones: whether it is open or closed.
    pub const fn is_active(self) -> bool {
        self.is_open() || matches!(self, Condition::Closed)
    }
}

/// The state of a zone, as the drive reports it to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Number of the zone, counted from 0.
    pub index: u32,
    /// First sector of the zone.
    pub start: Lba,
    /// Number of sectors of the zone.
    pub sectors: Sectors,
    /// Condition of the zone.
    pub condition: Condition,
    /// The write pointer, in sectors from the start of the zone; accepted writes in flight count as written. Equal to
    /// the zone's length if the zone is full; 0 if it is conventional or offline.
    pub pointer: Sectors,
}

/// The reason for which an operation on a zone is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ZoneError {
    /// The zone does not exist.
    #[error("there is no zone {zone}: the drive has {zones}")]
    NoSuchZone {
        /// The number that was given, counted from 0.
        zone: u32,
        /// The number of zones of the drive.
        zones: u32,
    },
    /// Sectors of the request lie past the end of the last zone.
    #[error("{sectors} sectors from LBA {} reach past the end of the drive at {end}", .lba.0)]
    PastEnd {
        /// First sector of the request.
        lba: Lba,
        /// Number of sectors of the request.
        sectors: u64,
        /// LBA one past the last sector of the last zone.
        end: u64,
    },
    /// A write to a sequential zone does not begin at the zone's write pointer.
    #[error("zone {zone} takes its next write at LBA {}, not at {}: a write elsewhere would destroy data", .pointer.0, .lba.0)]
    NotAtPointer {
        /// The number of the zone, counted from 0.
        zone: u32,
        /// The LBA of the zone's write pointer, at which the write has to begin.
        pointer: Lba,
        /// First sector of the write.
        lba: Lba,
    },
    /// The write reaches past the end of its zone; if the zone is conventional, past the end of the last conventional
    /// zone. Or a requested write pointer lies past the end of the zone.
    #[error("zone {zone} has room for {room} sectors more, not for {sectors}")]
    NoRoom {
        /// Number of the zone, counted from 0.
        zone: u32,
        /// Number of sectors from the start of the write to that end; for a requested pointer, the length of the zone.
        room: u64,
        /// Number of sectors of the write; for a requested pointer, its distance from the start of the zone in sectors.
        sectors: u64,
    },
    /// The zone's condition does not allow the operation.
    #[error("zone {zone} is {}: it cannot be {what}", .condition.name())]
    Condition {
        /// Number of the zone, counted from 0.
        zone: u32,
        /// Condition of the zone.
        condition: Condition,
        /// The refused operation as a participle for the message: "written", "reset".
        what: &'static str,
    },
    /// A zone cannot be opened: the limit of open zones is reached, and all open zones are explicitly open, so the
    /// drive closes none of them.
    #[error("{limit} zones are explicitly open, the most there may be: close or finish one")]
    TooManyOpen {
        /// The maximum number of zones of the drive that may be open at a time.
        limit: u32,
    },
    /// A zone cannot become open or closed: the limit of active zones (open and closed ones) is reached.
    #[error("{limit} zones are open or closed, the most there may be: finish or reset one")]
    TooManyActive {
        /// The maximum number of zones of the drive that may be open or closed at a time.
        limit: u32,
    },
    /// The requested write pointer lies past the present one; an operation can only set it back.
    #[error("zone {zone} is written up to sector {pointer}: its pointer cannot be set ahead to {to}")]
    PointerAhead {
        /// Number of the zone, counted from 0.
        zone: u32,
        /// The write pointer, in sectors from the start of the zone.
        pointer: u64,
        /// The requested pointer, in sectors from the start of the zone.
        to: u64,
    },
}
