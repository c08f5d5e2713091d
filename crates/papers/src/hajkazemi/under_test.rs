//! The drive of the paper, and the layers that it compares on it: what the paper gives of them, and what is ours because
//! the paper gives none.
//!
//! A layer is named by a *label*: `track-map` is the paper's own algorithm, `track-map:hot_tracks=20` the same with another
//! value beside, `track-map:ours` what we made of it, with its defaults, `track-map:watched` that with moves that stop where they
//! do not pay.

/// The drive of §3.
pub(super) const PROFILE: &str = "imr-1t";
/// The conventional drive ("CMR").
pub(super) const CONVENTIONAL: &str = "conventional";
/// Read-modify-write (§2.1).
pub(super) const RMW: &str = "imr-rmw";
/// Track flipping (§2.2).
pub(super) const FLIP: &str = "track-flip";
/// Selective track caching (§2.3).
pub(super) const CACHE: &str = "track-cache";
/// Dynamic track mapping (§2.4).
pub(super) const MAP: &str = "track-map";
/// What the paper proposes.
pub(super) const PROPOSED: [&str; 3] = [FLIP, CACHE, MAP];
/// What the paper compares.
pub(super) const COMPARED: [&str; 5] = [CONVENTIONAL, RMW, FLIP, CACHE, MAP];
/// The same layers as we made them: power-safe, with counts that fade, and moves that pay.
pub(super) const OURS: [&str; 3] = ["track-flip:ours", "track-cache:ours", "track-map:ours"];

/// Ours, with moves that stop where they do not pay, and the cache where it moves no address.
pub(super) const WATCHED: &str = "track-cache:watched";

/// The steps of §2 and its choice of tracks: "the hottest k bottom tracks over the last interval", counts reset after each.
const PAPERS_MOVES: &str = "safety=paper,hotness=reset,payback=0,hot_tracks=100,hot_ratio=2";
/// How many tracks an interval moves at most is not given: 100 is ours, as many as its cache holds; these stand beside.
/// Nor is how much hotter a track must be than the one it displaces: 2 is ours.
pub(super) const SECOND_VALUES: [&str; 4] = ["hot_tracks=20", "hot_tracks=500", "hot_ratio=1", "hot_ratio=4"];

/// The write cache of the drive, which the paper has (§4) and whose size is lost with its table 2: 64 MiB, as desktop drives of
/// 4 TB are sold (Seagate ST4000DM000 data sheet: 64 MB); 8 MiB beside.
const WRITE_CACHE: &str = "host.write_cache_bytes=67108864";
/// Another value for it.
pub(super) const SMALL_CACHE: &str = "host.write_cache_bytes=8388608";

/// The drive with the layer called `label`, in the words of `--drive`.
pub(super) fn drive(label: &str) -> String {
    let (name, more) = label.split_once(':').unwrap_or((label, ""));
    let papers = match name {
        _ if more == "ours" => "",
        CACHE if more == "watched" => "watch=64,cache_position=id",
        _ if more == "watched" => "watch=64",
        RMW => "safety=paper",
        FLIP | CACHE | MAP => PAPERS_MOVES,
        _ => "",
    };
    // What comes later replaces what came before.
    let mut parameters: Vec<(&str, &str)> = Vec::new();
    for parameter in [WRITE_CACHE, papers, more].into_iter().flat_map(|words| words.split(',')) {
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
        assert_eq!(drive(CONVENTIONAL), "imr-1t+conventional:host.write_cache_bytes=67108864");
        assert_eq!(
            drive("track-map:hot_tracks=20"),
            "imr-1t+track-map:host.write_cache_bytes=67108864,safety=paper,hotness=reset,payback=0,hot_ratio=2,hot_tracks=20"
        );
        assert_eq!(drive("track-cache:ours"), "imr-1t+track-cache:host.write_cache_bytes=67108864");
        assert_eq!(
            drive(&format!("imr-rmw:{SMALL_CACHE}")),
            "imr-1t+imr-rmw:safety=paper,host.write_cache_bytes=8388608"
        );
        for label in COMPARED.into_iter().chain(OURS) {
            assert!(imbrex::drives::fresh(&drive(label)).is_ok(), "{label}");
        }
    }
}
