//! The drives that are cut, and the work that suits each: small, so that a recording takes a second, and with caches
//! that fill and are cleaned meanwhile.

use std::fs;
use std::path::Path;

use imbrex_testkit::Work;

/// A drive for recordings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    /// Name of the carrier.
    pub name: &'static str,
    /// Name of the layer.
    pub layer: &'static str,
    /// Parameters of the layer.
    parameters: &'static str,
    /// Recording section of the profile.
    recording: &'static str,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Bytes of the volatile cache; 0 for none: then every acknowledged write is durable.
    pub cache_bytes: u32,
    /// Name of a built-in profile that is used whole; without one the drive is a small one.
    built_in: Option<&'static str>,
}

const SHINGLED: &str = "kind = 'shingled'\nhead_tracks = 2";
const BANDS: &str = "kind = 'shingled'\nhead_tracks = 2\nband_tracks = 16";
const CAVEAT: &str = "kind = 'caveat'\nno_overlap_sectors = 6\nisolation_sectors = 64";
const MEDIA_CACHE: &str = "cache_size=6MiB,map_entries=300,band_tracks=4,out_of_band=1,half_track_payload=48k,packet_writes=16,\
                           large_write=64k,large_payload=96k,map_merge_every=20,map_merge_tracks=1,stream_size=256k";

const fn carrier(
    name: &'static str,
    layer: &'static str,
    parameters: &'static str,
    recording: &'static str,
    sector_bytes: u32,
) -> Carrier {
    Carrier { name, layer, parameters, recording, sector_bytes, cache_bytes: 0, built_in: None }
}

/// All carriers.
pub(crate) const CARRIERS: &[Carrier] = &[
    carrier("conventional", "conventional", "", "kind = 'conventional'", 512),
    carrier("conventional-4k", "conventional", "", "kind = 'conventional'", 4096),
    Carrier { cache_bytes: 1 << 20, ..carrier("cached", "conventional", "", "kind = 'conventional'", 512) },
    Carrier { cache_bytes: 1 << 20, ..carrier("cached-4k", "conventional", "", "kind = 'conventional'", 4096) },
    carrier("media-cache", "media-cache", MEDIA_CACHE, SHINGLED, 512),
    carrier("media-cache-4k", "media-cache", MEDIA_CACHE, SHINGLED, 4096),
    carrier("set-associative", "set-associative", "region_size=1MiB,cache_share=10%", SHINGLED, 512),
    carrier("set-associative-4k", "set-associative", "region_size=1MiB,cache_share=10%", SHINGLED, 4096),
    carrier("zoned", "zoned", "zone_size=1MiB,conventional_zones=0", "kind = 'conventional'", 512),
    carrier("zoned-4k", "zoned", "zone_size=1MiB,conventional_zones=0", "kind = 'conventional'", 4096),
    Carrier {
        cache_bytes: 1 << 20,
        ..carrier("zoned-cached", "zoned", "zone_size=1MiB,conventional_zones=0", "kind = 'conventional'", 512)
    },
    Carrier {
        cache_bytes: 1 << 20,
        ..carrier("zoned-cached-4k", "zoned", "zone_size=1MiB,conventional_zones=0", "kind = 'conventional'", 4096)
    },
    carrier("strict-append", "zoned", "zone_size=2MiB,conventional_zones=0", BANDS, 4096),
    Carrier { built_in: Some("hm-zoned"), ..carrier("hm-zoned", "zoned", "", "", 4096) },
    Carrier { built_in: Some("flash-2010"), ..carrier("flash-2010", "conventional", "", "", 4096) },
    carrier("caveat", "caveat", "", CAVEAT, 512),
    carrier("caveat-4k", "caveat", "", CAVEAT, 4096),
    Carrier { cache_bytes: 1 << 20, ..carrier("caveat-cached", "caveat", "", CAVEAT, 512) },
    Carrier { cache_bytes: 1 << 20, ..carrier("caveat-cached-4k", "caveat", "", CAVEAT, 4096) },
    carrier("track-flip", "track-flip", "interval=200,background_every=4,watch=0", "kind = 'interlaced'", 512),
    carrier("track-flip-4k", "track-flip", "interval=200,background_every=4,watch=0", "kind = 'interlaced'", 4096),
];

impl Carrier {
    /// Returns the carrier with this name.
    pub(crate) fn named(name: &str) -> Carrier {
        *CARRIERS.iter().find(|carrier| carrier.name == name).unwrap_or_else(|| panic!("no carrier {name}"))
    }

    /// Writes the drive's profile into `folder`; returns the drive as `--drive` takes it.
    pub(crate) fn profile(&self, folder: &Path) -> String {
        if let Some(name) = self.built_in {
            return name.into();
        }
        // Tracks of 128 KiB, some 50 MB of them.
        let track_sectors = (128 << 10) / self.sector_bytes;
        let geometry = match self.recording {
            interlaced if interlaced.contains("interlaced") => format!(
                "layout = 'bottom-then-top'\nsurfaces = 1\nzones = [{{ tracks = 384, track_sectors = {track_sectors} }}]\n\
                 interlaced = {{ group_tracks = 24 }}"
            ),
            _ => {
                format!(
                    "layout = 'cylinder'\nsurfaces = 1\nzones = [{{ tracks = 384, track_sectors = {track_sectors} }}]"
                )
            }
        };
        let text = format!(
            "name = 'small'\nsummary = 'a small drive'\ndefault_layer = 'conventional'\nsector_bytes = {}\n[geometry]\n\
             rotation_ns = 8_000_000\n{geometry}\n[mechanics]\nrotation = 'exact'\n\
             seek = {{ model = 'linear', min_ns = 100_000, max_ns = 1_000_000 }}\n[recording]\n{}\n\
             [host]\nwrite_cache_bytes = {}\n",
            self.sector_bytes, self.recording, self.cache_bytes
        );
        let path = folder.join(format!("{}.toml", self.name));
        fs::write(&path, text).expect("the folder is ours");
        let colon = if self.parameters.is_empty() { "" } else { ":" };
        format!("{}+{}{colon}{}", path.display(), self.layer, self.parameters)
    }

    /// Returns the number of rounds, out of `rounds`, that the carrier gets. Laying out a drive of 52,000 zones takes a
    /// hundred times as long as the other drives.
    pub(crate) fn share(&self, rounds: u64) -> u64 {
        if self.built_in == Some("hm-zoned") { rounds / 15 } else { rounds }
    }

    /// Returns whether the host must write each zone at its pointer.
    pub(crate) fn is_zoned(&self) -> bool {
        self.layer == "zoned"
    }

    /// Returns work on a drive of `capacity_bytes`, for a few hundred requests.
    pub(crate) fn work(&self, capacity_bytes: u64, depth: usize) -> Work {
        let sector_bytes = u64::from(self.sector_bytes);
        let place_sectors = (256 << 10) / sector_bytes;
        let work = Work {
            sectors: (1, (32 << 10) / sector_bytes),
            whole_in: 40,
            align_sectors: 1,
            places: (capacity_bytes / (4 << 20)).clamp(4, 16),
            place_sectors,
            depth,
            flush_in: 12,
            fua_in: 6,
            trim_in: if ["media-cache", "set-associative"].contains(&self.layer) { 25 } else { 0 },
            zeroes_in: 20,
            read_in: 0,
            is_volatile: self.cache_bytes > 0,
            cut_destroys: false,
        };
        match self.layer {
            // Places are further apart than the reach of a write, and are written whole.
            "caveat" => Work { whole_in: 1, sectors: (1, place_sectors), zeroes_in: 0, cut_destroys: true, ..work },
            _ => work,
        }
    }
}
