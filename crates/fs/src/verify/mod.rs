//! Checkers of file systems: operations, a naive reference file system ([`naive`]), and the power-cut checker, which
//! cuts the power after every write of a device and examines the remaining state ([`cuts`]).

pub mod cuts;
pub mod naive;
pub mod operation;
pub mod rig;
pub mod scripts;
pub mod trial;

pub use self::naive::Naive;
pub use self::operation::{Operation, perform};

use self::trial::{Harm, Trial};
use crate::core::HotOn;
use crate::device::{Geometry, Kind};

/// A test configuration of small devices and a store, as a pair: its name, and the parameters of the power-cut check.
pub type Toy = (&'static str, Trial);

/// Returns two configurations, a single drive and an array, with the store `log` whose cleaner moves whole files.
pub fn with_whole_files() -> Vec<Toy> {
    let with = |name, toy: &Toy| {
        let options = [toy.1.options.clone(), vec![("cleaner".to_string(), "files".to_string())]].concat();
        (name, Trial { options, ..toy.1.clone() })
    };
    vec![with("log, files moved as a whole", &toys()[4]), with("an array, files moved as a whole", &arrays()[2])]
}

/// Returns seven configurations of one drive each: two for each of the stores `strict-append`, `caveat` and `log`, and
/// a third for `strict-append`. The drives are large enough to be cleaned and to overflow, and small enough to try every power cut.
pub fn toys() -> Vec<Toy> {
    let zoned = |active_max| Kind::Zoned { zone_blocks: 8, zones: 20, conventional: 12, active_max };
    let option = |key: &str, value: &str| vec![(key.to_string(), value.to_string())];
    let trial = |blocks, kind, options| Trial::new(Geometry { blocks, kind }, options);
    let on_log = |active_max, options| Trial { store: Some("log"), ..trial(160, zoned(active_max), options) };
    vec![
        ("strict-append", trial(160, zoned(None), Vec::new())),
        ("strict-append, two active zones", trial(160, zoned(Some(2)), option("cleaner", "oldest"))),
        ("caveat", trial(500, Kind::Caveat { isolation: 4, no_overlap: 1 }, Vec::new())),
        (
            "caveat in pieces",
            trial(
                500,
                Kind::Caveat { isolation: 3, no_overlap: 3 },
                [option("extents", "on"), option("fit", "next")].concat(),
            ),
        ),
        ("log", on_log(None, Vec::new())),
        ("log, one open group", on_log(Some(1), option("open_groups", "1"))),
        ("strict-append, one open band", trial(160, zoned(None), option("open_bands", "1"))),
    ]
}

/// Returns two configurations, a single drive and an array, each with its metadata on two devices. The list of harms is
/// that of the configuration, extended by three for each copy of the metadata: it is lost, it is altered, or a write to
/// it is lost. Each examined state suffers one of these harms.
pub fn mirrored() -> Vec<Toy> {
    let (toys, arrays) = (toys(), arrays());
    vec![on_two(&toys[0]), on_two(&arrays[2])]
}

fn on_two(toy: &Toy) -> Toy {
    let two = vec![Geometry { blocks: 120, kind: Kind::Plain }, Geometry { blocks: 130, kind: Kind::Plain }];
    let lost = |copy| Harm::WriteLost(toy.1.drives + copy);
    let of_copies = (0..2).flat_map(|copy| [Harm::CopyLost(copy), Harm::CopyAltered(copy), lost(copy)]);
    let harms = of_copies.chain(toy.1.harms.iter().cloned()).collect();
    (toy.0, Trial { metadata: two, harms, ..toy.1.clone() })
}

/// Returns three configurations with a hot zone that holds the only copy of some files: two arrays and a single drive,
/// each with its metadata and the hot zone on two devices. One hot zone has space for most files, and one is the
/// smallest possible, a single block.
pub fn with_files_alone() -> Vec<Toy> {
    let with = |name, toy: &Toy, hot_blocks| (name, Trial { hot_blocks, ..toy.1.clone() });
    let (single, array) = (on_two(&toys()[4]), on_two(&arrays()[2]));
    vec![
        with("an array with hot files alone", &array, 12),
        with("an array with a block for hot files alone", &array, 1),
        with("log with hot files alone", &single, 6),
    ]
}

/// Returns four configurations with a hot zone beside the metadata that holds copies of files: two single drives and
/// two arrays. One hot zone is the smallest possible, a single block. One array has its metadata on two devices. Harm
/// to these devices also affects its copies of files.
pub fn with_hot_zones() -> Vec<Toy> {
    let with = |name, toy: &Toy, hot_blocks| {
        let copies = ("hot_files".to_string(), "copies".to_string());
        let options = toy.1.options.iter().cloned().chain([copies]).collect();
        (name, Trial { hot_blocks, options, ..toy.1.clone() })
    };
    let (toys, arrays, mirrored) = (toys(), arrays(), mirrored());
    vec![
        with("log with a hot zone of six blocks", &toys[4], 6),
        with("log with a hot zone of one block", &toys[5], 1),
        with("an array with a hot zone", &arrays[1], 4),
        with("an array with a hot zone on two devices", &mirrored[1], 8),
    ]
}

/// Returns three configurations of arrays with a hot zone on their drives: two in conventional zones, and one on the
/// outer part of conventional disks. One of the hot zones has a single block in total.
pub fn with_hot_zones_on_drives() -> Vec<Toy> {
    let (arrays, hot_on) = (arrays(), HotOn::Drives);
    let kind = Kind::Zoned { zone_blocks: 8, zones: 10, conventional: 2, active_max: None };
    let zoned = Trial { geometry: Geometry { blocks: 80, kind }, hot_on, ..arrays[2].1.clone() };
    vec![
        ("an array with a hot zone on its drives", Trial { hot_blocks: 22, ..zoned.clone() }),
        ("an array with a hot zone of a block on a drive", Trial { hot_blocks: 1, ..zoned }),
        ("drives without zones, and a hot zone on them", Trial { hot_blocks: 8, hot_on, ..arrays[4].1.clone() }),
    ]
}

/// Returns the five configurations of small arrays from [`arrays`], with appends limited to three blocks of 4 KiB, so
/// that several appends of a file are in flight.
pub fn in_short_appends() -> Vec<Toy> {
    let with = |(name, toy): Toy| {
        let options = [toy.options.clone(), vec![("append_blocks".to_string(), "3".to_string())]].concat();
        (name, Trial { options, ..toy })
    };
    arrays().into_iter().map(with).collect()
}

/// Returns five configurations of small arrays with the store `log`, each with the harms that its parity must tolerate.
/// The arrays have 2 to 5 drives, 0 to 2 parity zones in a stripe group, and their metadata on one separate device.
pub fn arrays() -> Vec<Toy> {
    let zoned = Kind::Zoned { zone_blocks: 8, zones: 9, conventional: 0, active_max: None };
    let array = |kind, drives: usize, parity, width: Option<&str>| {
        let one = (0..drives)
            .flat_map(|drive| [Harm::Lost(vec![drive]), Harm::Stale(drive), Harm::Altered, Harm::WriteLost(drive)]);
        let two = (0..drives).map(|drive| Harm::Lost(vec![drive, (drive + 1) % drives]));
        let harms =
            [Harm::None].into_iter().chain(one.filter(|_| parity > 0)).chain(two.filter(|_| parity > 1)).collect();
        let metadata = vec![Geometry { blocks: 120, kind: Kind::Plain }];
        let options = width.map(|groups| ("open_groups".to_string(), groups.to_string())).into_iter().collect();
        // A drive without zones is divided into zones of sixteen blocks.
        let blocks = if kind == Kind::Plain { 160 } else { 72 };
        let trial = Trial::new(Geometry { blocks, kind }, options);
        Trial { drives, metadata, store: Some("log"), parity, harms, ..trial }
    };
    let limited = Kind::Zoned { zone_blocks: 8, zones: 9, conventional: 0, active_max: Some(2) };
    vec![
        ("three drives without parity", array(zoned, 3, 0, None)),
        ("a mirror of two", array(limited, 2, 1, None)),
        ("three and one parity", array(zoned, 4, 1, Some("3"))),
        ("three and two parity", array(zoned, 5, 2, None)),
        ("drives without zones", array(Kind::Plain, 3, 1, None)),
    ]
}
