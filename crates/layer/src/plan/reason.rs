//! The reason of a layer's own work: the part of the drive that is cleaned, and the event that made the work necessary.
//! Each phase that serves no host command carries one.

use std::fmt;

/// The kind of a part of a drive, as the layer divides the drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AreaKind {
    /// A native region: a run of tracks that is rewritten as a whole, also called a band.
    Region,
    /// A region of the cache, which holds sectors of several native regions.
    CacheRegion,
    /// The persistent cache of the whole drive.
    Cache,
    /// The map of the whole drive, which has a maximum number of entries.
    Map,
    /// All zones of a log-structured drive together.
    Log,
    /// A zone: a run of bands or blocks with a log of its own, or that is freed as a whole.
    Zone,
    /// The circular buffer of a section that caches writes (Cassuto 2010 §V).
    CacheBuffer,
    /// The circular buffer of a section that holds its S-blocks (Cassuto 2010 §V).
    SBlockBuffer,
    /// An S-block (Cassuto 2010 §V).
    SBlock,
    /// A ring of reserved top tracks on an interlaced disk, to which writes are appended.
    Ring,
    /// A radial position: the tracks of all surfaces at one distance from the spindle, numbered from 0 at the outer
    /// diameter.
    Track,
}

impl AreaKind {
    /// Returns the name of the kind in results, such as `cache region`.
    pub const fn name(self) -> &'static str {
        match self {
            AreaKind::Region => "region",
            AreaKind::CacheRegion => "cache region",
            AreaKind::Cache => "cache",
            AreaKind::Map => "map",
            AreaKind::Log => "log",
            AreaKind::Zone => "zone",
            AreaKind::CacheBuffer => "cache buffer",
            AreaKind::SBlockBuffer => "S-block buffer",
            AreaKind::SBlock => "S-block",
            AreaKind::Ring => "ring",
            AreaKind::Track => "track",
        }
    }

    /// Returns whether a drive has one area of this kind at most, so that its number says nothing.
    pub const fn is_single(self) -> bool {
        matches!(self, AreaKind::Cache | AreaKind::Map | AreaKind::Log)
    }
}

/// A part of a drive: its kind and its number within the kind, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Area {
    /// The kind of the part.
    pub kind: AreaKind,
    /// Number of the part among those of its kind, counted from 0.
    pub number: u32,
}

impl Area {
    /// Returns the area of this kind and number.
    pub fn new(kind: AreaKind, number: usize) -> Area {
        Area { kind, number: number as u32 }
    }
}

impl fmt::Display for Area {
    /// Writes `region 17`, or `cache` if a drive has one at most.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.is_single() {
            true => write!(f, "{}", self.kind.name()),
            false => write!(f, "{} {}", self.kind.name(), self.number),
        }
    }
}

/// The event that made a piece of a layer's own work necessary.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Due {
    /// A write found no room in the store.
    Full,
    /// The drive was idle, and the store holds data to be written elsewhere.
    Idle,
    /// A command of the host touches data of an unfinished piece of work, so that piece had to be completed first.
    InTheWay,
    /// Work that was due in idle time was done between two requests, since the drive was not idle for long enough.
    NeverIdle,
    /// More streams of sequential writes came than can be open at once.
    Streams,
    /// A stream of sequential writes was recognised, and its beginning was copied to the place of the stream.
    NewStream,
}

impl Due {
    /// Returns the name of the event in results: `full`, `idle`, `in the way`, `never idle`, `streams` or `new stream`.
    pub const fn name(self) -> &'static str {
        match self {
            Due::Full => "full",
            Due::Idle => "idle",
            Due::InTheWay => "in the way",
            Due::NeverIdle => "never idle",
            Due::Streams => "streams",
            Due::NewStream => "new stream",
        }
    }
}

/// The reason of a phase of a layer's own work.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Reason {
    /// The part of the drive that the work cleans, or to which it moves data.
    pub target: Area,
    /// The event that made the work necessary.
    pub due: Due,
    /// The part of the drive that the work relieves, such as the cache region that was full. `None` if the work frees
    /// no space.
    pub store: Option<Area>,
}
