//! Draws random drives, with the truth about each: observable properties that follow from its parameters by simple
//! arithmetic, and not from the code that simulates it.
//!
//! Invariants:
//! 1. A limit that a test checks is either reached by a good margin, or marked as beyond reach.

pub(crate) mod noisy;
pub(crate) mod wrapped;

use std::fmt::Write;

use imbrex_disk::Profile;
use imbrex_probe::{ProbeOptions, Simulated, Target, Verdict, probe};
use imbrex_sim::{Drive, DriveSpec};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

pub(crate) const MIB: u64 = 1 << 20;
const SECTOR: u64 = 512;

/// Range of the sizes of drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Like [`Size::Small`], but with caches of 16 to 64 MiB or of 90 to 300 packets. The drives clean within seconds
    /// or never when idle, so that they can be probed in real time.
    Tiny,
    /// At most 200 GB, with caches of 64 MiB to 1 GiB.
    Small,
    /// Like [`Size::Small`], but with regions of 1 to 10 MiB.
    Fine,
    /// Terabytes, with caches of 1 to 64 GiB, and maps of a thousand to a million entries.
    Full,
}

/// A number that a probe should find, exactly or as a lower bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Limit {
    /// The limit ends a test, and is found exactly.
    Binds(f64),
    /// No test reaches the limit, and the probe finds a lower bound.
    Beyond(f64),
}

/// The true properties of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    pub kind: &'static str,
    pub medium: Option<&'static str>,
    pub place: Option<&'static str>,
    pub cleaning: Option<&'static str>,
    pub order: Option<&'static str>,
    pub mapping: Option<&'static str>,
    pub layout: &'static str,
    pub rotation_ms: f64,
    pub trigger_s: Option<f64>,
    pub cache_bytes: Option<Limit>,
    pub map_entries: Option<Limit>,
    pub raw_bytes: Option<Limit>,
    pub singles: Option<f64>,
    pub merge_every: Option<f64>,
    /// How an interlaced drive writes to bottom tracks, and whether it moves hot tracks.
    pub bottoms: Option<&'static str>,
    pub hot_tracks: Option<&'static str>,
    /// Band sizes at the places where they are measured, bytes; there may be two sizes where zones meet.
    pub bands: Vec<(&'static str, Vec<f64>)>,
}

impl Truth {
    /// Returns the type of the drive, as the probe names it.
    pub(crate) fn recording(&self) -> &'static str {
        match self.kind {
            kind @ ("conventional" | "interlaced") => kind,
            _ => "shingled",
        }
    }
}

/// A random drive.
pub(crate) struct Drawn {
    pub seed: u64,
    pub text: String,
    pub truth: Truth,
}

struct Dice(Xoshiro256StarStar);

impl Dice {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Returns a random number between bounds, uniform on a logarithmic scale.
    fn broadly(&mut self, low: f64, high: f64) -> f64 {
        (low.ln() + (high / low).ln() * self.unit()).exp()
    }

    fn whole(&mut self, low: u64, high: u64) -> u64 {
        low + (self.0.next_u64() % (high - low + 1))
    }

    fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.whole(0, these.len() as u64 - 1) as usize]
    }
}

/// The geometry and mechanics of a drive.
struct Platters {
    rotation_ns: u64,
    skew_ns: u64,
    surfaces: u64,
    shortest_ns: f64,
    whole_ns: f64,
    settle_ns: u64,
    head_switch_ns: u64,
    horizontal: bool,
    /// Tracks of a surface and sectors of a track, zone by zone from the outer to the inner diameter.
    zones: Vec<(u64, u64)>,
}

impl Platters {
    fn draw(dice: &mut Dice, bytes: f64, may_be_horizontal: bool) -> Platters {
        let rotation_ns = dice.one_of(&[8_333_333, 10_000_000, 10_169_492, 11_111_111]);
        let outer = dice.whole(1800, 4400);
        let inner = (outer as f64 * dice.between(0.5, 0.9)) as u64;
        let horizontal = may_be_horizontal && dice.unit() < 0.5;
        let surfaces = if horizontal { dice.whole(2, 4) } else { dice.whole(1, 8) };
        let count = if horizontal { dice.whole(6, 10) } else { dice.whole(1, 12) };
        let zone = |index: u64| outer - (outer - inner) * index / count.max(2).saturating_sub(1).max(1);
        let mean: f64 = (0..count).map(|index| zone(index) as f64).sum::<f64>() / count as f64;
        let tracks = (bytes / (mean * SECTOR as f64 * surfaces as f64 * count as f64)).ceil() as u64;
        let zones = (0..count).map(|index| (tracks, zone(index))).collect();
        let (shortest_ns, whole_ns) = (dice.between(0.1e6, 0.7e6), dice.between(9e6, 18e6));
        let (settle_ns, head_switch_ns) = (dice.whole(30_000, 250_000), dice.whole(200_000, 700_000));
        // The next track begins when the head has arrived there.
        let root = (whole_ns - shortest_ns) / ((tracks * count) as f64).sqrt();
        let skew_ns = ((shortest_ns + 2.0 * root).max(head_switch_ns as f64) as u64) + settle_ns + 30_000;
        Platters { rotation_ns, skew_ns, surfaces, shortest_ns, whole_ns, settle_ns, head_switch_ns, horizontal, zones }
    }

    fn bytes(&self) -> u64 {
        self.zones.iter().map(|(tracks, sectors)| tracks * sectors * self.surfaces * SECTOR).sum()
    }

    fn radial_tracks(&self) -> u64 {
        self.zones.iter().map(|(tracks, _)| tracks).sum()
    }

    fn track_bytes_at(&self, place: &str) -> u64 {
        let zones = &self.zones;
        let index = match place {
            "od" => 0,
            "md" => self.middle(),
            _ => zones.len() - 1,
        };
        zones[index].1 * SECTOR
    }

    /// Makes all tracks equally long.
    fn flatten(&mut self) {
        let tracks = self.radial_tracks();
        self.zones = vec![(tracks, self.zones[0].1)];
        self.horizontal = false;
    }

    /// Returns the length of the tracks at a cache of `cache` bytes at `place`, bytes, if the cache and half as much
    /// again clearly lie in one zone.
    fn first_track(&self, place: &str, cache: u64) -> Option<u64> {
        let (all, middle) = (self.bytes() as f64, self.radial_tracks() / 2);
        let (mut tracks, mut before) = (0, 0.0);
        for (zone, sectors) in &self.zones {
            let within = middle.saturating_sub(tracks).min(*zone);
            before += (within * sectors * self.surfaces * SECTOR) as f64;
            tracks += zone;
        }
        let share =
            |bytes: f64| self.tracks_within((bytes / all).clamp(0.0, 0.9999), (bytes / all + 1e-6).clamp(0.0, 1.0))[0];
        let cache = 1.5 * cache as f64;
        let [first, last] = match place {
            "od" => [0.0, cache],
            "md" => [before - 0.5 * cache, before + 0.5 * cache],
            _ => [all - cache, all - 1.0],
        }
        .map(share);
        (first == last).then_some(first as u64)
    }

    /// Returns the index of the zone at the middle diameter.
    fn middle(&self) -> usize {
        let (half, mut before) = (self.radial_tracks() / 2, 0);
        for (index, (tracks, _)) in self.zones.iter().enumerate() {
            before += tracks;
            if before >= half {
                return index;
            }
        }
        self.zones.len() - 1
    }

    /// Returns the lengths of the tracks in the zones that a stretch of the drive touches, bytes.
    fn tracks_within(&self, low: f64, high: f64) -> Vec<f64> {
        let (all, mut before, mut found) = (self.bytes() as f64, 0.0, Vec::new());
        for (tracks, sectors) in &self.zones {
            let part = (tracks * sectors * self.surfaces * SECTOR) as f64 / all;
            if before < high && before + part > low {
                found.push((sectors * SECTOR) as f64);
            }
            before += part;
        }
        found
    }

    fn write(&self, dice: &mut Dice, text: &mut String, recording: &str) {
        let layout = if self.horizontal { "horizontal" } else { "cylinder" };
        let (rotation, skew, surfaces) = (self.rotation_ns, self.skew_ns, self.surfaces);
        writeln!(text, "[geometry]\nlayout = \"{layout}\"\nsurfaces = {surfaces}\nrotation_ns = {rotation}")
            .expect("a string takes all");
        writeln!(text, "track_skew_ns = {skew}\nhead_skew_ns = {skew}").expect("a string takes all");
        let zones: Vec<String> = self
            .zones
            .iter()
            .map(|(tracks, sectors)| format!("{{ tracks = {tracks}, track_sectors = {sectors} }}"))
            .collect();
        writeln!(text, "zones = [{}]", zones.join(", ")).expect("a string takes all");
        let (shortest, whole) = (self.shortest_ns, self.whole_ns);
        let root = (whole - shortest) / (self.radial_tracks() as f64).sqrt();
        let (settle, write_settle) = (self.settle_ns / 3, self.settle_ns);
        writeln!(text, "[mechanics]\nsettle_ns = {settle}\nwrite_settle_ns = {write_settle}")
            .expect("a string takes all");
        writeln!(text, "head_switch_ns = {}", self.head_switch_ns).expect("a string takes all");
        writeln!(text, "[mechanics.seek]\nmodel = \"curve\"\nshort_base_ns = {shortest:.0}\nshort_root_ns = {root:.0}")
            .expect("a string takes all");
        writeln!(text, "knee_tracks = 100000000\nlong_base_ns = {whole:.0}\nlong_thousand_tracks_ns = 0")
            .expect("a string takes all");
        writeln!(text, "[recording]\n{recording}").expect("a string takes all");
        let (overhead, schedule) = (dice.whole(30_000, 200_000), dice.one_of(&["fifo", "sptf"]));
        writeln!(text, "[host]\nqueue = 31\nschedule = \"{schedule}\"\noverhead_ns = {overhead}")
            .expect("a string takes all");
    }
}

/// Returns the random drive with this seed.
pub(crate) fn draw(seed: u64, size: Size) -> Drawn {
    let mut dice = Dice(Xoshiro256StarStar::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let bytes = match size {
        Size::Tiny | Size::Small | Size::Fine => dice.broadly(24e9, 190e9),
        Size::Full => dice.broadly(1e12, 8e12),
    };
    let (text, truth) = match dice.whole(0, 19) {
        0..=1 => conventional(&mut dice, bytes),
        2..=8 => journal(&mut dice, bytes, size),
        9..=11 => in_place(&mut dice, bytes, size),
        12..=15 => set_associative(&mut dice, bytes, size),
        _ => fully_associative(&mut dice, bytes, size),
    };
    Drawn { seed, text, truth }
}

/// Returns the random drive with this layer and seed. For layers with few known properties, the truth holds only the
/// kind.
pub(crate) fn draw_with(layer: &str, seed: u64, size: Size) -> Drawn {
    let mut dice = Dice(Xoshiro256StarStar::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let bytes = dice.broadly(24e9, 190e9);
    let (text, truth) = match layer {
        "conventional" => conventional(&mut dice, bytes),
        "media-cache" if seed.is_multiple_of(2) => journal(&mut dice, bytes, size),
        "media-cache" => in_place(&mut dice, bytes, size),
        "set-associative" => set_associative(&mut dice, bytes, size),
        "fully-associative" => fully_associative(&mut dice, bytes, size),
        "region-rmw" | "log-structured" | "s-blocks" => flat(layer, &mut dice, bytes),
        _ => interlaced(layer, &mut dice, bytes),
    };
    Drawn { seed, text, truth }
}

/// Returns a drive whose layer works without overlapping tracks; the truth says only that it is not conventional.
fn flat(layer: &str, dice: &mut Dice, bytes: f64) -> (String, Truth) {
    let platters = Platters::draw(dice, bytes, false);
    let mut text = head(layer);
    platters.write(dice, &mut text, "kind = \"conventional\"");
    writeln!(text, "[layer.{layer}]").expect("a string takes all");
    let mib = |dice: &mut Dice, low: f64, high: f64| (dice.broadly(low, high) * 256.0) as u64 * 4096;
    match layer {
        "region-rmw" => writeln!(text, "region_size = \"{}\"", mib(dice, 1.0, 64.0)),
        "log-structured" => writeln!(text, "zone_size = \"{}\"", mib(dice, 16.0, 256.0)),
        _ => writeln!(
            text,
            "sections = {}\ncache_share = \"{}%\"\nsblock_share = \"{}%\"",
            (bytes / dice.broadly(2e8, 6e8)) as u64,
            dice.whole(1, 4),
            dice.whole(2, 5)
        ),
    }
    .expect("a string takes all");
    (text, base(&platters, layer_kind(layer)))
}

fn layer_kind(layer: &str) -> &'static str {
    ["region-rmw", "log-structured", "s-blocks"].into_iter().find(|name| *name == layer).unwrap_or("interlaced")
}

/// Returns an interlaced drive that is full of data.
fn interlaced(layer: &str, dice: &mut Dice, bytes: f64) -> (String, Truth) {
    let rotation_ns = dice.one_of(&[8_333_333, 10_000_000, 10_169_492, 11_111_111]);
    let (surfaces, sectors) = (dice.whole(1, 4), dice.whole(1800, 4400));
    let group_tracks = dice.one_of(&[32, 64, 128, 256]);
    let groups = (bytes / (sectors * SECTOR * surfaces * 2 * group_tracks) as f64).ceil() as u64;
    let (order, zero_latency) = (dice.one_of(&["serpentine", "zig-zag"]), dice.unit() < 0.5);
    let mut text = head(layer);
    text += "fill = \"full\"\n";
    writeln!(text, "[geometry]\nlayout = \"bottom-then-top\"\nsurfaces = {surfaces}\nrotation_ns = {rotation_ns}")
        .expect("a string takes all");
    let skew = dice.whole(1_500_000, 2_500_000);
    writeln!(text, "tracks = {}\ntrack_sectors_od = {sectors}\ntrack_skew_ns = {skew}", groups * 2 * group_tracks)
        .expect("a string takes all");
    let top_ratio = dice.one_of(&[0.9, 1.0]);
    writeln!(
        text,
        "[geometry.interlaced]\ngroup_tracks = {group_tracks}\norder = \"{order}\"\ntop_ratio = {top_ratio:.1}"
    )
    .expect("a string takes all");
    writeln!(text, "[mechanics]\nzero_latency = {zero_latency}\n[mechanics.seek]\nmodel = \"linear\"")
        .expect("a string takes all");
    writeln!(text, "min_ns = {}\nmax_ns = {}", dice.whole(500_000, 1_400_000), dice.whole(9_000_000, 20_000_000))
        .expect("a string takes all");
    let overhead = dice.one_of(&[0, 50_000, 150_000]);
    writeln!(text, "[recording]\nkind = \"interlaced\"\n[host]\nqueue = 32\noverhead_ns = {overhead}")
        .expect("a string takes all");
    let truth = Truth {
        kind: "interlaced",
        layout: "vertical",
        rotation_ms: rotation_ns as f64 / 1e6,
        bottoms: Some(if layer.ends_with("-buffer") { "buffered" } else { "rewritten in place" }),
        hot_tracks: match layer {
            "imr-rmw" => Some("left where they are"),
            "top-buffer" | "write-buffer" => None,
            _ => Some("moved"),
        },
        ..Truth::default()
    };
    (text, truth)
}

fn head(layer: &str) -> String {
    format!("name = \"drawn\"\nsummary = \"drawn\"\ndefault_layer = \"{layer}\"\n")
}

fn base(platters: &Platters, kind: &'static str) -> Truth {
    Truth {
        kind,
        layout: if platters.horizontal { "horizontal" } else { "vertical" },
        rotation_ms: platters.rotation_ns as f64 / 1e6,
        ..Truth::default()
    }
}

fn conventional(dice: &mut Dice, bytes: f64) -> (String, Truth) {
    let platters = Platters::draw(dice, bytes, false);
    let mut text = head("conventional");
    platters.write(dice, &mut text, "kind = \"conventional\"");
    (text, base(&platters, "conventional"))
}

/// Returns the sizes of bands of `tracks` tracks, at the places where bands are measured, bytes.
fn bands_of(platters: &Platters, tracks: u64) -> Vec<(&'static str, Vec<f64>)> {
    [("band_bytes_od", 0.0, 0.08), ("band_bytes_md", 0.43, 0.57), ("band_bytes_id", 0.92, 1.0)]
        .into_iter()
        .map(|(name, low, high)| {
            (name, platters.tracks_within(low, high).into_iter().map(|track| track * tracks as f64).collect())
        })
        .collect()
}

fn same_bands(bytes: f64) -> Vec<(&'static str, Vec<f64>)> {
    ["band_bytes_od", "band_bytes_md", "band_bytes_id"].into_iter().map(|name| (name, vec![bytes])).collect()
}

fn idle(dice: &mut Dice, size: Size) -> (f64, &'static str) {
    if dice.unit() < 0.8 || size == Size::Tiny {
        (dice.broadly(0.25, 6.0), "aggressive")
    } else {
        (dice.broadly(1200.0, 14_000.0), "late")
    }
}

/// Returns the number of tracks of a band of 14 to 40 MiB at the outer diameter, or to 64 MiB for full sizes; at least
/// 8.
fn band_tracks(dice: &mut Dice, platters: &Platters, size: Size) -> u64 {
    let outer = (platters.zones[0].1 * SECTOR) as f64;
    let largest = if size == Size::Full { 64.0 } else { 40.0 };
    (dice.broadly(14.0, largest) * MIB as f64 / outer).round().max(8.0) as u64
}

/// Returns the random drive with this seed whose cache is a journal with this many half tracks of out-of-band data in
/// each packet.
pub(crate) fn draw_journal(seed: u64, size: Size, out_of_band: u64) -> Drawn {
    let mut dice = Dice(Xoshiro256StarStar::seed_from_u64(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let bytes = dice.broadly(24e9, 190e9);
    let (text, truth) = journal_with(&mut dice, bytes, size, Some(out_of_band));
    Drawn { seed, text, truth }
}

fn journal(dice: &mut Dice, bytes: f64, size: Size) -> (String, Truth) {
    journal_with(dice, bytes, size, None)
}

/// Draws a drive with a journal; `out_of_band` half tracks of each packet are out-of-band data, or a random number.
fn journal_with(dice: &mut Dice, bytes: f64, size: Size, out_of_band: Option<u64>) -> (String, Truth) {
    let mut platters = Platters::draw(dice, bytes, true);
    // In a horizontal layout, the middle diameter lies at an arbitrary point of a stroke.
    let place = if platters.horizontal { dice.one_of(&["od", "id"]) } else { dice.one_of(&["od", "md", "id"]) };
    let drawn = dice.whole(2, 6);
    let out_of_band = out_of_band.unwrap_or(drawn);
    let packets_wanted = match size {
        Size::Tiny => dice.broadly(90.0, 300.0),
        Size::Small | Size::Fine => dice.broadly(90.0, 1100.0),
        Size::Full => dice.broadly(2000.0, 40_000.0),
    };
    let raw = (packets_wanted as u64 + 1) * (out_of_band + 1);
    let about = raw * platters.track_bytes_at(place) / 2;
    if platters.first_track(place, about) != Some(platters.track_bytes_at(place)) {
        platters.flatten();
    }
    let track = platters.track_bytes_at(place);
    let tracks = band_tracks(dice, &platters, size);
    let cache_size = raw * track / 2 + track / 8;
    // The capacity that passes in half a rotation, without the skew and a gap.
    let passing = platters.rotation_ns as f64 / (platters.rotation_ns + platters.skew_ns) as f64;
    let inner = (platters.zones[platters.zones.len() - 1].1 * SECTOR) as f64;
    let payload = (inner / 2.0 * passing * dice.between(0.82, 0.93) / 4096.0) as u64 * 4096;
    let writes = dice.one_of(&[31, 31, 24, 16]);
    let large_writes = dice.whole(1, 4);
    let packets = |half_tracks: u64| raw / (out_of_band + half_tracks);
    let halves = |bytes: u64| bytes.div_ceil(payload);
    let deep_raw = packets(halves(writes * 4096)) * writes;
    let large_raw = packets(halves(large_writes * 262_144)) * large_writes;
    let singles_raw = packets(1);
    // The map ends the deep test, all three tests, or none.
    let (map, ends) = match dice.whole(0, 9) {
        0..=5 => (dice.between(1.3 * singles_raw.max(large_raw) as f64, 0.85 * deep_raw as f64) as u64, 1),
        6..=7 => (dice.between(0.5, 0.85).mul_add(singles_raw.min(large_raw) as f64, 0.0) as u64, 3),
        _ => (deep_raw * 5 / 4, 0),
    };
    let is_narrow = ends == 1 && (deep_raw as f64) < 1.6 * singles_raw.max(large_raw) as f64;
    let (map, ends) = if is_narrow || map < 1000 { (deep_raw * 5 / 4, 0) } else { (map, ends) };
    let (trigger, cleaning) = idle(dice, size);
    let merge_every = if singles_raw.min(map) > 150 { dice.whole(20, singles_raw.min(map) / 5) } else { 0 };
    let conventional = dice.unit() < 0.4 && !platters.horizontal;
    let recording = if conventional {
        "kind = \"conventional\"".to_string()
    } else {
        format!("kind = \"shingled\"\nhead_tracks = 2\nband_tracks = {tracks}")
    };
    let mut text = head("media-cache");
    platters.write(dice, &mut text, &recording);
    writeln!(text, "[layer.media-cache]\nplacement = \"journal\"\ncache_size = \"{cache_size}\"")
        .expect("a string takes all");
    writeln!(text, "cache_position = \"{place}\"\nmap_entries = {map}\nidle = \"{:.0}ms\"", trigger * 1e3)
        .expect("a string takes all");
    writeln!(text, "band_tracks = {tracks}\nout_of_band = {out_of_band}\nhalf_track_payload = \"{payload}\"")
        .expect("a string takes all");
    writeln!(text, "packet_writes = {writes}\nlarge_payload = \"{}\"", large_writes * 262_144)
        .expect("a string takes all");
    writeln!(text, "map_merge_every = {merge_every}\nmap_merge_tracks = {}", dice.whole(8, 14))
        .expect("a string takes all");
    let limit = |binds: bool, value: u64| if binds { Limit::Binds(value as f64) } else { Limit::Beyond(value as f64) };
    let truth = Truth {
        medium: Some("disk"),
        place: Some(place),
        cleaning: Some(cleaning),
        order: Some("fifo"),
        mapping: Some("static"),
        trigger_s: Some(trigger),
        cache_bytes: Some(limit(ends < 3, large_raw * 262_144)),
        map_entries: Some(limit(ends > 0, map)),
        raw_bytes: Some(limit(ends < 3, raw * track / 2)),
        singles: Some(singles_raw.min(map) as f64),
        merge_every: (merge_every > 0).then_some(merge_every as f64),
        bands: bands_of(&platters, tracks),
        ..base(&platters, "journal")
    };
    (text, truth)
}

fn cache_bytes(dice: &mut Dice, size: Size) -> u64 {
    let mib = match size {
        Size::Tiny => dice.broadly(16.0, 64.0),
        Size::Small | Size::Fine => dice.broadly(64.0, 1024.0),
        Size::Full => dice.broadly(1024.0, 65_536.0),
    };
    mib as u64 * MIB
}

fn in_place(dice: &mut Dice, bytes: f64, size: Size) -> (String, Truth) {
    let platters = Platters::draw(dice, bytes, false);
    let place = dice.one_of(&["od", "md", "id"]);
    let tracks = band_tracks(dice, &platters, size);
    let cache = cache_bytes(dice, size);
    let (small, large) = (cache / 4096, cache / 262_144);
    // The map ends the tests with small writes, all tests, or none.
    let (map, ends) = match dice.whole(0, 5) {
        0..=3 => (dice.broadly((1.5 * large as f64).max(1000.0), 0.8 * small as f64) as u64, 2),
        4 if large > 2600 => (dice.between(0.4, 0.8).mul_add(large as f64, 0.0) as u64, 3),
        _ => (small * 5 / 4, 0),
    };
    let (trigger, cleaning) = idle(dice, size);
    let mut text = head("media-cache");
    platters.write(dice, &mut text, "kind = \"conventional\"");
    writeln!(text, "[layer.media-cache]\nplacement = \"in-place\"\ncache_size = \"{cache}\"")
        .expect("a string takes all");
    writeln!(text, "cache_position = \"{place}\"\nmap_entries = {map}\nidle = \"{:.0}ms\"", trigger * 1e3)
        .expect("a string takes all");
    writeln!(text, "band_tracks = {tracks}").expect("a string takes all");
    let truth = Truth {
        medium: Some("disk"),
        place: Some(place),
        cleaning: Some(cleaning),
        mapping: Some("static"),
        trigger_s: Some(trigger),
        cache_bytes: Some(if ends < 3 { Limit::Binds(cache as f64) } else { Limit::Beyond(cache as f64) }),
        map_entries: Some(if ends > 0 { Limit::Binds(map as f64) } else { Limit::Beyond(map as f64) }),
        bands: bands_of(&platters, tracks),
        ..base(&platters, "in-place")
    };
    (text, truth)
}

/// Returns a recording without shingled tracks: conventional, or one in which a write destroys the sectors after it.
fn flat_recording(dice: &mut Dice) -> String {
    if dice.unit() < 0.5 {
        "kind = \"conventional\"".into()
    } else {
        format!("kind = \"block-interference\"\ninterference_sectors = {}", dice.whole(500, 4000))
    }
}

fn region_bytes(dice: &mut Dice, size: Size) -> u64 {
    let (least, largest) = match size {
        Size::Tiny => (10.0, 16.0),
        Size::Small => (10.0, 40.0),
        Size::Fine => (1.0, 10.0),
        Size::Full => (10.0, 64.0),
    };
    (dice.broadly(least, largest) * MIB as f64 / 4096.0) as u64 * 4096
}

fn set_associative(dice: &mut Dice, bytes: f64, size: Size) -> (String, Truth) {
    let platters = Platters::draw(dice, bytes, false);
    let is_flash = dice.unit() < 0.4;
    let place = dice.one_of(&["od", "md", "id"]);
    let region = region_bytes(dice, size);
    let sets = (cache_bytes(dice, size) / region).max(2);
    let mut text = head("set-associative");
    let recording = flat_recording(dice);
    platters.write(dice, &mut text, &recording);
    if is_flash {
        let (read, write) = (dice.whole(50_000, 200_000), dice.whole(50_000, 400_000));
        writeln!(text, "[flash]\nread_ns = {read}\nwrite_ns = {write}\nbytes_per_second = 400000000")
            .expect("a string takes all");
    }
    let medium = if is_flash { "flash" } else { "disk" };
    writeln!(text, "[layer.set-associative]\nregion_size = \"{region}\"\ncache_size = \"{}\"", sets * region)
        .expect("a string takes all");
    writeln!(text, "cache_position = \"{place}\"\ncache_medium = \"{medium}\"").expect("a string takes all");
    let truth = Truth {
        medium: Some(medium),
        place: (!is_flash).then_some(place),
        cleaning: Some("lazy"),
        mapping: Some("static"),
        cache_bytes: Some(Limit::Binds((sets * region) as f64)),
        bands: same_bands(region as f64),
        ..base(&platters, "set-associative")
    };
    (text, truth)
}

fn fully_associative(dice: &mut Dice, bytes: f64, size: Size) -> (String, Truth) {
    let band = region_bytes(dice, size);
    let zones = if size == Size::Full { dice.whole(8, 40) } else { dice.whole(4, 9) };
    let log_bands = (cache_bytes(dice, size) / zones / band).max(2);
    let data = (bytes / zones as f64 / band as f64) as u64;
    let guard = 4000 * SECTOR;
    // A third of a zone more, which is too little for another zone.
    let physical = (zones as f64 + 0.3) * (data + log_bands + 1) as f64 * (band + guard) as f64;
    let platters = Platters::draw(dice, physical, false);
    let is_lazy = dice.unit() < 0.4;
    let trigger = dice.broadly(0.25, 6.0);
    let mut text = head("fully-associative");
    let recording = "kind = \"block-interference\"\ninterference_sectors = 4001";
    platters.write(dice, &mut text, recording);
    let cleaning = if is_lazy { "lazy" } else { "aggressive" };
    writeln!(text, "[layer.fully-associative]\nband_size = \"{band}\"\nzone_size = \"{}\"", data * band)
        .expect("a string takes all");
    writeln!(text, "log_bands = {log_bands}\ncleaning = \"{cleaning}\"\nidle_after = \"{:.0}ms\"", trigger * 1e3)
        .expect("a string takes all");
    let truth = Truth {
        medium: Some("disk"),
        place: Some("several"),
        cleaning: Some(cleaning),
        order: (!is_lazy).then_some("by address"),
        mapping: Some("dynamic"),
        trigger_s: (!is_lazy).then_some(trigger),
        cache_bytes: Some(Limit::Binds((zones * log_bands * band) as f64)),
        bands: same_bands(band as f64),
        ..base(&platters, "fully-associative")
    };
    (text, truth)
}

/// Builds the drive that the text of a profile describes.
pub(crate) fn build(text: &str) -> Drive {
    let profile = Profile::parse("drawn.toml", text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let spec = DriveSpec::parse("drawn").expect("the words are right");
    Drive::build(&spec, &profile).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Probes `target` with all tests.
pub(crate) fn probed(target: &mut dyn Target) -> Verdict {
    probed_with(target, &[])
}

fn probed_with(target: &mut dyn Target, only: &[&str]) -> Verdict {
    let only = only.iter().map(|name| name.to_string()).collect();
    let mut options = ProbeOptions { may_write: true, only, budget_ns: u64::MAX, seed: 7, progress: &mut |_| true };
    probe(target, &mut options)
}

/// Probes the drive of a profile's text with these tests and those that they need; with all tests if `only` is empty.
pub(crate) fn probed_only(text: &str, only: &[&str]) -> Verdict {
    probed_with(&mut Simulated::new(build(text)), only)
}

/// Probes the drive of a profile's text with all tests.
pub(crate) fn probed_text(text: &str) -> Verdict {
    probed(&mut Simulated::new(build(text)))
}

/// The answer to a question about a drive, compared with the truth.
pub(crate) struct Answer {
    pub question: &'static str,
    pub is_right: bool,
    /// Whether the answer has high confidence.
    pub is_sure: bool,
    /// The answer and the truth, in words.
    pub text: String,
}

/// Returns the answer to each question with a known truth.
pub(crate) fn answers(truth: &Truth, verdict: &Verdict) -> Vec<Answer> {
    let mut answers = words(truth, verdict);
    answers.extend(numbers(truth, verdict));
    answers.extend(limits(truth, verdict));
    for (name, expected) in &truth.bands {
        let is_right = verdict.number(name).is_some_and(|found| expected.iter().any(|&band| near(found, band, 0.05)));
        answers.push(answer(verdict, name, is_right, format!("one of {expected:.0?}")));
    }
    answers
}

fn answer(verdict: &Verdict, question: &'static str, is_right: bool, expected: String) -> Answer {
    let property = verdict.property(question);
    let told = property.map_or("not told".into(), |property| {
        format!("{:?}{}: {}", property.value, if property.at_least { " or more" } else { "" }, property.because)
    });
    let is_sure = property.is_some_and(|property| {
        property.confidence == imbrex_probe::Confidence::High && property.value != imbrex_probe::Value::CannotTell
    });
    Answer { question, is_right, is_sure, text: format!("{question} is {told}, not {expected}") }
}

fn near(found: f64, expected: f64, share: f64) -> bool {
    (found / expected - 1.0).abs() <= share
}

fn words(truth: &Truth, verdict: &Verdict) -> Vec<Answer> {
    let kind = truth.recording();
    // The probe may leave the order open, but must not find a wrong one.
    let order = truth.order.filter(|_| verdict.word("cleaning_order").is_some());
    // In real time, the probe does not wait for cleaning that may begin after hours.
    let is_as_told = |found: Option<&str>, expected: &str| {
        found == Some(expected) || (!verdict.is_virtual && expected == "lazy" && found == Some("lazy or late"))
    };
    [
        ("type", Some(kind)),
        ("cache_medium", truth.medium),
        ("cache_place", truth.place),
        ("cleaning", truth.cleaning),
        ("mapping", truth.mapping),
        ("layout", Some(truth.layout)),
        ("cleaning_order", order),
        ("bottom_writes", truth.bottoms),
        ("hot_tracks", truth.hot_tracks),
    ]
    .into_iter()
    .filter_map(|(name, expected)| Some((name, expected?)))
    .map(|(name, expected)| answer(verdict, name, is_as_told(verdict.word(name), expected), expected.into()))
    .collect()
}

fn numbers(truth: &Truth, verdict: &Verdict) -> Vec<Answer> {
    [
        ("rotation", Some(truth.rotation_ms), 0.001),
        ("idle_trigger", truth.trigger_s, 0.05),
        ("cache_writes_4k_depth_1", truth.singles, 0.05),
        ("map_merge_every", truth.merge_every, 0.0),
    ]
    .into_iter()
    .filter_map(|(name, expected, share)| Some((name, expected?, share)))
    .map(|(name, expected, share)| {
        let is_right = verdict.number(name).is_some_and(|found| near(found, expected, share));
        answer(verdict, name, is_right, expected.to_string())
    })
    .collect()
}

fn limits(truth: &Truth, verdict: &Verdict) -> Vec<Answer> {
    [("cache_bytes", truth.cache_bytes), ("map_entries", truth.map_entries), ("cache_raw_bytes", truth.raw_bytes)]
        .into_iter()
        .filter_map(|(name, limit)| Some((name, limit?)))
        .map(|(name, limit)| {
            let found = verdict.property(name).zip(verdict.number(name));
            let is_right = found.is_some_and(|(property, found)| match limit {
                Limit::Binds(expected) => !property.at_least && near(found, expected, 0.05),
                Limit::Beyond(expected) => property.at_least && found <= 1.05 * expected,
            });
            answer(verdict, name, is_right, format!("{limit:?}"))
        })
        .collect()
}

/// Returns the wrong answers of `verdict`. Properties that the drive does not have, such as an order of cleaning or
/// bottom tracks, are not checked.
pub(crate) fn faults(truth: &Truth, verdict: &Verdict) -> Vec<String> {
    answers(truth, verdict).into_iter().filter(|answer| !answer.is_right).map(|answer| answer.text).collect()
}
