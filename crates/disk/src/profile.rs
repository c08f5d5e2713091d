//! Drive profiles: named disks in TOML. See `crates/disk/profiles/`.

use std::sync::Arc;

use crate::{Disk, SharedDisk};

/// A flash cache beside the platters.
#[derive(Clone, Copy, PartialEq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Latency of a read, before the transfer.
    pub read_ns: u64,
    /// Latency of a write, before the transfer.
    pub write_ns: u64,
    /// Transfer rate.
    pub bytes_per_second: u64,
}

/// How the drive meets its host unless the user says otherwise.
#[derive(Clone, PartialEq, Debug, serde::Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Commands the drive takes at once.
    pub queue: u32,
    /// `fifo`, `elevator` or `sptf`.
    pub schedule: String,
    /// Bytes of volatile write cache; 0 is off.
    pub write_cache_bytes: u64,
    /// Bytes of read look-ahead; 0 is off.
    pub read_ahead_bytes: u64,
    /// Controller time of each command.
    pub overhead_ns: u64,
}

impl Default for Host {
    fn default() -> Host {
        Host { queue: 32, schedule: "fifo".into(), write_cache_bytes: 0, read_ahead_bytes: 0, overhead_ns: 100_000 }
    }
}

/// A drive profile, checked.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Name, as in `--drive NAME`.
    pub name: String,
    /// One line of what it is.
    pub summary: String,
    /// The layer used when none is named.
    pub default_layer: String,
    /// Parameters of that layer and of others, as the profile sets them: `[layer.NAME] key = value`.
    pub layer_parameters: toml::Table,
    /// The host side.
    pub host: Host,
    /// Areal density over a conventional disk of the same technology; 1 for a conventional disk.
    pub density_gain: f64,
}

/// Why a profile was refused: where, what, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ProfileError {
    /// File and line, or the key given on the command line.
    pub place: String,
    /// What is wrong and what would be right.
    pub reason: String,
}

impl Profile {
    /// The profile called `name` that comes with Imbrex.
    pub fn named(_name: &str) -> Option<Profile> {
        todo!()
    }
    /// Names of all profiles that come with Imbrex.
    pub fn names() -> Vec<&'static str> {
        todo!()
    }
    /// Parses TOML `text` from `file`, then sets each dotted `key=value` of `overrides`, then checks the whole.
    pub fn parse(_file: &str, _text: &str, _overrides: &[(String, String)]) -> Result<Profile, ProfileError> {
        todo!()
    }
    /// The same profile with `overrides` set.
    pub fn with(&self, _overrides: &[(String, String)]) -> Result<Profile, ProfileError> {
        todo!()
    }
    /// Builds the disk.
    pub fn disk(&self) -> SharedDisk {
        let _ = Arc::<Disk>::strong_count;
        todo!()
    }
    /// The same drive with at least `sectors` physical sectors: every recording zone gets more tracks in proportion.
    pub fn grown(&self, _sectors: crate::Sectors) -> Profile {
        todo!()
    }
    /// The conventional drive of like geometry and mechanics: recording and layer `conventional`, density gain 1.
    pub fn conventional(&self) -> Profile {
        todo!()
    }
}
