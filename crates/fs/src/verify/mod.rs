//! Judges of file systems: operations, a naive file system that does the same ([`naive`]), and the cutter of power that
//! looks at what is left after every write of a device ([`cuts`]).

pub mod cuts;
pub mod naive;
pub mod operation;
pub mod scripts;

pub use self::naive::Naive;
pub use self::operation::{perform, Operation};

use crate::device::{Geometry, Kind};

/// A name, a device, options of the store on it.
pub type Toy = (&'static str, Geometry, Vec<(String, String)>);

/// A small device for each store: enough to be cleaned and to overflow, little enough to be cut everywhere.
pub fn toys() -> Vec<Toy> {
    let zoned = |active_max| Kind::Zoned { zone_blocks: 8, zones: 20, conventional: 12, active_max };
    let option = |key: &str, value: &str| vec![(key.to_string(), value.to_string())];
    vec![
        ("strict-append", Geometry { blocks: 160, kind: zoned(None) }, Vec::new()),
        (
            "strict-append, two active zones",
            Geometry { blocks: 160, kind: zoned(Some(2)) },
            option("cleaner", "oldest"),
        ),
        ("caveat", Geometry { blocks: 500, kind: Kind::Caveat { isolation: 4, no_overlap: 1 } }, Vec::new()),
        (
            "caveat in pieces",
            Geometry { blocks: 500, kind: Kind::Caveat { isolation: 3, no_overlap: 3 } },
            [option("extents", "on"), option("fit", "next")].concat(),
        ),
    ]
}
