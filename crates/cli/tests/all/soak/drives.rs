//! The drives of the soak tests, and the work that suits each: work that makes a drive pass over its platters in
//! minutes without filling the host's disk.

use std::path::{Path, PathBuf};

use imbrex_testkit::{Contents, Program, Work};

/// Returns the built program.
pub(crate) fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_imbrex"))
}

/// Returns a number from the environment.
pub(crate) fn from_environment(name: &str, otherwise: f64) -> f64 {
    let Ok(words) = std::env::var(name) else { return otherwise };
    words.parse().unwrap_or_else(|_| panic!("{name}={words}: not a number"))
}

/// Returns the seed of the run.
pub(crate) fn seed() -> u64 {
    from_environment("IMBREX_SOAK_SEED", 1.0) as u64
}

/// Returns whether the environment names `drive`, or no drive at all.
pub(crate) fn is_wanted(drive: &str) -> bool {
    let Ok(words) = std::env::var("IMBREX_SOAK_DRIVES") else { return true };
    words.split(',').any(|word| word == drive)
}

/// Every built-in profile that is not host-managed, with its default layer.
pub(crate) const PROFILES: [&str; 17] = [
    "cmr-5900",
    "cmr-7200",
    "exos-x18",
    "cassuto-307g",
    "emulated-smr-1",
    "emulated-smr-2",
    "emulated-smr-3",
    "imr-1t",
    "imr-20t",
    "seagate-st5000as0011",
    "seagate-st5000as0011-as-sold",
    "seagate-st8000as0011",
    "seagate-st8000as0011-as-sold",
    "seagate-st8000as0022",
    "seagate-st8000dm004",
    "seagate-st8000dm004-as-sold",
    "imr-1t:host.write_cache_bytes=0",
];

/// Host-managed profiles.
pub(crate) const HOST_MANAGED: [&str; 4] = ["hm-zoned", "strict-append", "caveat-1g", "caveat-1g-512"];

/// Other layers, each on the smallest profile that takes it.
pub(crate) const LAYERS: [&str; 11] = [
    "cassuto-307g+region-rmw",
    "cassuto-307g+s-blocks",
    "cassuto-307g+log-structured",
    "cassuto-307g+fully-associative",
    "imr-1t+block-swap",
    "imr-1t+flip-cache",
    "imr-1t+top-buffer",
    "imr-1t+track-cache",
    "imr-1t+track-flip",
    "imr-1t+track-map",
    "imr-1t+write-buffer",
];

/// The parameter of media-cache with which a packet of small writes fills whole tracks.
const PADS_WRITES: &str = "placement=journal";

/// An image of a drive in a folder of its own.
pub(crate) struct Image {
    /// The folder, removed at the end.
    pub folder: tempfile::TempDir,
    /// Path of the image.
    pub path: PathBuf,
    /// Name of the layer.
    pub layer: String,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of the platters.
    pub physical_bytes: u64,
    /// Whether the drive has a volatile cache.
    pub is_volatile: bool,
    /// Whether every small write takes whole tracks of the drive's cache.
    pub pads_writes: bool,
}

impl Image {
    /// Creates the image.
    pub(crate) fn create(drive: &str) -> Image {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("image");
        program().create(&path, drive);
        let info = program().info(&path);
        Image {
            path,
            folder,
            layer: info["layer"].as_str().expect("a layer").into(),
            sector_bytes: info["sector_bytes"].as_u64().expect("bytes of a sector") as u32,
            physical_bytes: info["physical_bytes"].as_u64().expect("bytes of the platters"),
            is_volatile: has_write_cache(drive),
            pads_writes: info["parameters"].as_array().is_some_and(|all| all.iter().any(|word| word == PADS_WRITES)),
        }
    }

    /// Returns the folder's path.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the image's path as an argument.
    pub(crate) fn word(&self) -> &str {
        self.path.to_str().expect("a temporary folder has a plain name")
    }

    /// Returns how the sectors are stamped: sparsely, where the drive gets large writes.
    pub(crate) fn contents(&self, seed: u64) -> Contents {
        let stamped_in = if self.pads_writes { 1 } else { 32 };
        Contents { sector_bytes: self.sector_bytes, seed, stamped_in, is_full: false }
    }

    /// Returns work that passes over much platter in little time.
    pub(crate) fn work(&self) -> Work {
        let block = 4096 / u64::from(self.sector_bytes);
        let mebibyte = (1 << 20) / u64::from(self.sector_bytes);
        let keeps_trims = ["media-cache", "fully-associative", "set-associative", "log-structured", "s-blocks"];
        let trim_in = if keeps_trims.contains(&self.layer.as_str()) { 40 } else { 0 };
        let work = Work {
            sectors: (block, mebibyte),
            whole_in: 2,
            align_sectors: block,
            places: 2000,
            place_sectors: mebibyte,
            depth: 4,
            flush_in: 100,
            fua_in: 50,
            trim_in,
            zeroes_in: 40,
            read_in: 20,
            is_volatile: self.is_volatile,
            cut_destroys: false,
        };
        match self.layer.as_str() {
            "media-cache" if self.pads_writes => Work { sectors: (block, block), whole_in: 400, places: 400, ..work },
            // Places are further apart than the reach of a write, and are written whole, since each write destroys
            // sectors behind it. Sectors that were never written give errors when read.
            "caveat" => Work { whole_in: 1, places: 300, zeroes_in: 0, read_in: 0, cut_destroys: true, ..work },
            "zoned" => Work { flush_in: 60, ..work },
            _ => work,
        }
    }
}

/// Returns whether the drive has a volatile cache, whose contents a kill destroys: conventional and interlaced profiles
/// and those of real drives have one by default, others by a parameter.
fn has_write_cache(drive: &str) -> bool {
    let profile = drive.split(['+', ':']).next().unwrap_or_default();
    match drive.split("host.write_cache_bytes=").nth(1) {
        Some(bytes) => !bytes.starts_with('0'),
        None => {
            let is_kind = ["cmr-", "exos-", "imr-"].iter().any(|kind| profile.starts_with(kind));
            is_kind || ["seagate-st8000as0022", "strict-append-2t"].contains(&profile) || profile.ends_with("-as-sold")
        }
    }
}
