//! The drive of the paper and the layers that the paper compares on it. Where the paper gives no value, the value here
//! is our choice.
//!
//! A layer is named by a *label*:
//! - `track-map`: the paper's own algorithm;
//! - `track-map:hot_tracks=20`: the paper's algorithm with another value of a parameter;
//! - `track-map:ours`: our version of the layer, with its defaults.

/// Profile of the drive of §3.
pub(super) const PROFILE: &str = "imr-1t";
/// Model of the drive in the paper: a wait for the rotation counts as half a rotation (§3, eq. 2).
const MODEL: &str = "mechanics.rotation=half";
/// The paper has "a backup region" (§2.1).
const ONE_REGION: &str = "backup_regions=1";
/// Conventional drive ("CMR").
pub(super) const CONVENTIONAL: &str = "conventional";
/// Read-modify-write (§2.1).
pub(super) const RMW: &str = "imr-rmw";
/// Track flipping (§2.2).
pub(super) const FLIP: &str = "track-flip";
/// Selective track caching (§2.3).
pub(super) const CACHE: &str = "track-cache";
/// Dynamic track mapping (§2.4).
pub(super) const MAP: &str = "track-map";
/// Layers that the paper proposes.
pub(super) const PROPOSED: [&str; 3] = [FLIP, CACHE, MAP];
/// Layers that the paper compares.
pub(super) const COMPARED: [&str; 5] = [CONVENTIONAL, RMW, FLIP, CACHE, MAP];
/// Our versions of [`PROPOSED`]: power-safe, with counts that decay, and without moves that cost more than they save.
pub(super) const OURS: [&str; 3] = ["track-flip:ours", "track-cache:ours", "track-map:ours"];

/// Parameters for the steps of §2 and its choice of tracks: "the hottest k bottom tracks over the last interval", by the
/// number of writes, with counts reset after each interval.
const PAPERS_MOVES: &str =
    "safety=paper,interval=20000,heat=writes,hotness=reset,payback=0,watch=0,hot_tracks=100,hot_ratio=2";
/// The cache of §2.3 lies at the outer diameter.
const PAPERS_CACHE: &str = "cache_position=od";
/// Second values for two parameters that the paper does not give. The first is the largest number of tracks that an
/// interval moves: we chose 100, as many as the paper's cache holds. The other is how many times hotter a track must
/// be than the track that it displaces: we chose 2.
pub(super) const SECOND_VALUES: [&str; 6] =
    ["hot_tracks=20", "hot_tracks=500", "hot_ratio=1", "hot_ratio=4", "hot_ratio=8", "hot_ratio=16"];

/// Size of the drive's write cache in bytes. The paper's drive has one (§4), but its size is lost with table 2. We
/// chose 64 MiB, as desktop drives of 4 TB have (Seagate ST4000DM000 data sheet: 64 MB).
const WRITE_CACHE: &str = "host.write_cache_bytes=67108864";
/// Second value for the size of the write cache: 8 MiB.
pub(super) const SMALL_CACHE: &str = "host.write_cache_bytes=8388608";

/// Returns the drive with the layer called `label`, in the words of `--drive`.
pub(super) fn drive(label: &str) -> String {
    let (name, more) = label.split_once(':').unwrap_or((label, ""));
    let papers: &[&str] = match name {
        _ if more == "ours" => &[],
        RMW => &["safety=paper", ONE_REGION],
        FLIP | MAP => &[PAPERS_MOVES, ONE_REGION],
        CACHE => &[PAPERS_MOVES, PAPERS_CACHE, ONE_REGION],
        _ => &[],
    };
    // A later parameter replaces an earlier one.
    let mut parameters: Vec<(&str, &str)> = Vec::new();
    let words = [WRITE_CACHE, MODEL].iter().chain(papers).chain(std::iter::once(&more));
    for parameter in words.flat_map(|words| words.split(',')) {
        let Some((key, value)) = parameter.split_once('=') else { continue };
        parameters.retain(|(other, _)| *other != key);
        parameters.push((key, value));
    }
    let words: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!("{PROFILE}+{name}:{}", words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_drives() {
        assert_eq!(drive(CONVENTIONAL), "imr-1t+conventional:host.write_cache_bytes=67108864,mechanics.rotation=half");
        assert_eq!(
            drive("track-map:hot_tracks=20"),
            "imr-1t+track-map:host.write_cache_bytes=67108864,mechanics.rotation=half,safety=paper,interval=20000,\
             heat=writes,hotness=reset,payback=0,watch=0,hot_ratio=2,backup_regions=1,hot_tracks=20"
        );
        assert_eq!(
            drive("track-cache:ours"),
            "imr-1t+track-cache:host.write_cache_bytes=67108864,mechanics.rotation=half"
        );
        assert_eq!(
            drive(&format!("imr-rmw:{SMALL_CACHE}")),
            "imr-1t+imr-rmw:mechanics.rotation=half,safety=paper,backup_regions=1,host.write_cache_bytes=8388608"
        );
        for label in COMPARED.into_iter().chain(OURS) {
            assert!(imbrex::drives::fresh(&drive(label)).is_ok(), "{label}");
        }
    }
}
