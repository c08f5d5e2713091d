//! Turns a verdict into a profile in TOML: a drive that answers like the probed one.
//!
//! A profile needs values that no probe can measure. These are chosen so that they do not matter: one surface, because
//! seek times were measured by distance in addresses; tracks that do not overlap, because the cost of a layer lies in
//! its steps. Properties that the verdict lacks keep their defaults, and a comment in the profile says so.

use std::fmt::Write;

use crate::verdict::{Value, Verdict};

/// Size of the sectors that a profile counts in, bytes.
const SECTOR_BYTES: f64 = 512.0;
/// Relative difference of track sizes below which two neighbouring stretches belong to one recording zone.
const ALIKE: f64 = 0.006;
/// Factor on the size of every zone: the space that a layer needs for itself, beyond the drive's capacity.
const MARGIN: f64 = 1.004;

/// A recording zone.
struct Zone {
    bytes: f64,
    track_sectors: f64,
}

impl Zone {
    fn tracks(&self) -> f64 {
        (self.bytes / (self.track_sectors * SECTOR_BYTES)).ceil().max(1.0)
    }
}

/// The geometry of the profile.
struct Platter {
    rotation_ns: f64,
    skew_ns: f64,
    zones: Vec<Zone>,
}

/// Returns a drive profile in TOML that behaves like the drive that `verdict` describes, for `--drive FILE`. Properties
/// that the verdict lacks get default values. Only the type `shingled` gets a translation layer; all other drives
/// become conventional ones. A comment at the top lists the properties of the verdict.
pub fn emit_profile(verdict: &Verdict) -> String {
    let platter = Platter::of(verdict);
    let (layer, parameters, cache_bytes) = layer_of(verdict, &platter);
    let mut text = String::new();
    line(
        &mut text,
        format!("# {}: as a probe found it. Properties that it could not determine are marked.", verdict.target),
    );
    for property in &verdict.properties {
        let value = match &property.value {
            Value::Number(number) => format!("{number} {}", property.unit),
            Value::Word(word) => (*word).to_string(),
            Value::CannotTell => "cannot tell".into(),
        };
        line(&mut text, format!("#   {}: {value}", property.name));
    }
    line(&mut text, "name = \"probed\"".into());
    line(&mut text, format!("summary = {:?}", format!("{}, as probed", verdict.target)));
    line(&mut text, format!("default_layer = \"{layer}\""));
    platter.write(&mut text, cache_bytes, verdict.word("cache_place"));
    write_mechanics(&mut text, verdict, &platter);
    line(&mut text, "\n[recording]\nkind = \"conventional\" # no time shows which tracks overlap".into());
    write_host(&mut text, verdict);
    if verdict.word("cache_medium") == Some("flash") {
        let write_ns =
            verdict.number("write_latency").unwrap_or(0.2) * 1e6 - verdict.number("overhead").unwrap_or(0.1) * 1e6;
        let access_ns = write_ns.max(10_000.0);
        line(
            &mut text,
            format!(
                "\n[flash]\nread_ns = {access_ns:.0}\nwrite_ns = {access_ns:.0}\nbytes_per_second = 400000000 # assumed"
            ),
        );
    }
    if !parameters.is_empty() {
        line(&mut text, format!("\n[layer.{layer}]"));
        for (key, value) in parameters {
            line(&mut text, format!("{key} = {value}"));
        }
    }
    text
}

fn line(text: &mut String, words: String) {
    writeln!(text, "{words}").expect("a string takes all");
}

impl Platter {
    fn of(verdict: &Verdict) -> Platter {
        let rotation_ns = verdict.number("rotation").unwrap_or(10.0) * 1e6;
        let skews: Vec<f64> = ["track_skew_od", "track_skew_md", "track_skew_id"]
            .iter()
            .filter_map(|name| verdict.number(name))
            .collect();
        let skew_ns = match skews.len() {
            0 => 0.05 * rotation_ns,
            count => skews.iter().sum::<f64>() / count as f64 * 1e6,
        };
        let mut zones: Vec<Zone> = Vec::new();
        let size = verdict.size_bytes as f64;
        let rates = series(verdict, "rate of sequential reads");
        for &(_, rate) in rates {
            let bytes = size / rates.len() as f64;
            // A sequential read takes a rotation and a skew for each track.
            let track_sectors = (rate * 1e6 * (rotation_ns + skew_ns) / 1e9 / SECTOR_BYTES).round().max(8.0);
            match zones.last_mut() {
                Some(zone) if (zone.track_sectors / track_sectors - 1.0).abs() < ALIKE => zone.bytes += bytes,
                _ => zones.push(Zone { bytes, track_sectors }),
            }
        }
        if zones.is_empty() {
            let track_sectors = (verdict.number("track_bytes_md").unwrap_or(1e6) / SECTOR_BYTES).round();
            zones.push(Zone { bytes: size, track_sectors });
        }
        Platter { rotation_ns, skew_ns, zones }
    }

    /// Returns the number of tracks from the beginning of the drive to an offset.
    fn tracks_to(&self, offset: f64) -> f64 {
        let (mut left, mut tracks) = (offset, 0.0);
        for zone in &self.zones {
            let within = left.min(zone.bytes);
            tracks += within / (zone.track_sectors * SECTOR_BYTES);
            left -= within;
        }
        tracks
    }

    /// Returns the index of the recording zone that holds the cache.
    fn cache_zone(&self, place: Option<&str>) -> usize {
        match place {
            Some("od") => 0,
            Some("md") => self.zones.len() / 2,
            _ => self.zones.len() - 1,
        }
    }

    fn track_sectors_at(&self, place: Option<&str>) -> f64 {
        self.zones[self.cache_zone(place)].track_sectors
    }

    fn write(&self, text: &mut String, cache_bytes: f64, place: Option<&str>) {
        line(
            text,
            "\n[geometry]\nlayout = \"cylinder\"\nsurfaces = 1 # ways were measured by distance in addresses".into(),
        );
        line(text, format!("rotation_ns = {:.0}", self.rotation_ns));
        line(text, format!("track_skew_ns = {:.0}", self.skew_ns));
        line(text, "zones = [".into());
        let cache_zone = self.cache_zone(place);
        for (index, zone) in self.zones.iter().enumerate() {
            let extra = if index == cache_zone { cache_bytes } else { 0.0 };
            let bytes = zone.bytes * MARGIN + extra;
            let tracks = Zone { bytes, track_sectors: zone.track_sectors }.tracks();
            line(text, format!("  {{ tracks = {tracks:.0}, track_sectors = {:.0} }},", zone.track_sectors));
        }
        line(text, "]".into());
    }
}

fn series<'a>(verdict: &'a Verdict, name: &str) -> &'a [(f64, f64)] {
    verdict.series.iter().find(|series| series.name == name).map_or(&[], |series| &series.points)
}

fn write_mechanics(text: &mut String, verdict: &Verdict, platter: &Platter) {
    line(text, "\n[mechanics]".into());
    line(text, "[mechanics.seek]\nmodel = \"table\"\npoints = [".into());
    let ways = series(verdict, "shortest way by distance");
    let near = ways.first().map_or(0.0, |point| point.1);
    let mut last = (0.0, 0.0);
    let mut written = 0;
    for &(distance, way) in ways.iter().skip(1) {
        let tracks = platter.tracks_to(distance).round().max(1.0);
        if tracks <= last.0 {
            continue;
        }
        last = (tracks, ((way - near) * 1e6).max(last.1));
        line(text, format!("  {{ tracks = {:.0}, seek_ns = {:.0} }},", last.0, last.1));
        written += 1;
    }
    for index in written..2 {
        line(text, format!("  {{ tracks = {:.0}, seek_ns = {:.0} }}, # assumed", last.0 + 1.0 + index as f64, last.1));
    }
    line(text, "]".into());
}

/// Returns the seek time over half the drive, milliseconds.
fn way_over_half(verdict: &Verdict) -> f64 {
    let half = verdict.size_bytes as f64 / 2.0;
    let ways = series(verdict, "shortest way by distance");
    let pair = ways.windows(2).find(|pair| pair[0].0 <= half && half <= pair[1].0);
    pair.map_or(8.0, |pair| {
        let part = (half - pair[0].0) / (pair[1].0 - pair[0].0);
        pair[0].1 + part * (pair[1].1 - pair[0].1) - ways[0].1
    })
}

fn write_host(text: &mut String, verdict: &Verdict) {
    let passing = 4096.0 / verdict.number("track_bytes_od").unwrap_or(1e6) * verdict.number("rotation").unwrap_or(10.0);
    let overhead = (verdict.number("overhead").unwrap_or(0.1) - passing).max(0.0);
    let schedule = if verdict.number("queue_gain").is_some_and(|gain| gain > 1.3) { "sptf" } else { "fifo" };
    line(text, format!("\n[host]\nqueue = 31\nschedule = \"{schedule}\"\noverhead_ns = {:.0}", overhead * 1e6));
}

/// Returns the layer's name, its parameters, and the bytes of the platter that the layer needs for itself.
fn layer_of(verdict: &Verdict, platter: &Platter) -> (&'static str, Vec<(&'static str, String)>, f64) {
    if verdict.word("type") != Some("shingled") {
        return ("conventional", Vec::new(), 0.0);
    }
    let latency = verdict.number("write_latency").unwrap_or(0.0) / verdict.number("rotation").unwrap_or(10.0);
    let is_several = verdict.word("cache_place") == Some("several");
    let cleans = matches!(verdict.word("cleaning"), Some("aggressive" | "late"));
    match (latency > 1.3, is_several, cleans) {
        (true, false, _) => journal(verdict, platter),
        (_, true, _) => fully_associative(verdict),
        (false, false, true) => in_place(verdict, platter),
        (false, false, false) => set_associative(verdict),
    }
}

fn band_bytes(verdict: &Verdict) -> f64 {
    let names = ["band_bytes_md", "band_bytes_od", "band_bytes_id"];
    names.iter().find_map(|name| verdict.number(name)).unwrap_or(25e6)
}

/// Returns the number of tracks in a band, from the first place where the sizes of both are known; 20 if there is none.
fn band_tracks(verdict: &Verdict) -> f64 {
    let places =
        [("band_bytes_md", "track_bytes_md"), ("band_bytes_od", "track_bytes_od"), ("band_bytes_id", "track_bytes_id")];
    let known = places.iter().find_map(|(band, track)| verdict.number(band).zip(verdict.number(track)));
    known.map_or(20.0, |(band, track)| (band / track).round().max(1.0))
}

fn words(text: &str) -> String {
    format!("\"{text}\"")
}

fn position(verdict: &Verdict) -> String {
    words(verdict.word("cache_place").unwrap_or("od"))
}

fn idle(verdict: &Verdict) -> String {
    match (verdict.number("idle_trigger"), verdict.word("cleaning")) {
        (Some(seconds), _) => words(&format!("{:.0}ms", seconds * 1e3)),
        (None, Some("lazy")) => words("100000h"),
        (None, _) => words("1s"),
    }
}

fn whole(number: f64) -> String {
    format!("{:.0}", number.max(1.0))
}

/// Returns the bytes of the platter for a cache of `cache_bytes` and the space that a layer keeps beside it: 6 % of the
/// cache, six bands, and 80 MB for tracks.
fn beside(verdict: &Verdict, cache_bytes: f64) -> f64 {
    cache_bytes * 1.06 + 6.0 * band_bytes(verdict) + 80e6
}

fn journal(verdict: &Verdict, platter: &Platter) -> (&'static str, Vec<(&'static str, String)>, f64) {
    let rotation_ms = platter.rotation_ns / 1e6;
    let half_tracks = (verdict.number("write_latency").unwrap_or(25.0) / rotation_ms * 2.0).round();
    let out_of_band = verdict.number("journal_out_of_band").map_or(half_tracks - 1.0, |beside| (beside * 2.0).round());
    let packets = verdict.number("cache_writes_4k_depth_1").unwrap_or(10_000.0);
    let half_track_bytes = platter.track_sectors_at(verdict.word("cache_place")) * SECTOR_BYTES / 2.0;
    let cache_bytes = ((packets * half_tracks + 0.5) * half_track_bytes).round();
    let mut parameters = vec![
        ("placement", words("journal")),
        ("cache_size", words(&format!("{cache_bytes:.0}"))),
        ("cache_position", position(verdict)),
        ("idle", idle(verdict)),
        ("band_tracks", whole(band_tracks(verdict))),
        ("out_of_band", whole(out_of_band)),
        ("map_entries", whole(verdict.number("map_entries").unwrap_or(200_000.0))),
    ];
    if let Some(payload) = verdict.number("journal_payload") {
        parameters.push(("half_track_payload", words(&whole((payload / SECTOR_BYTES).round() * SECTOR_BYTES))));
    }
    if let Some(writes) = verdict.number("packet_writes") {
        parameters.push(("packet_writes", whole(writes)));
    }
    if let Some(bytes) = verdict.number("cache_bytes") {
        // A packet holds a whole number of large writes of 256 KiB.
        let large = (bytes / 262_144.0 / packets).round().max(1.0) * 262_144.0;
        parameters.push(("large_payload", words(&whole(large))));
    }
    match verdict.number("map_merge_every").zip(verdict.number("map_merge_time")) {
        Some((every, time)) => {
            // A merge seeks to the map, half a drive away unless the cache lies in the middle as well, and back, and
            // waits for a rotation.
            let half = if verdict.word("cache_place") == Some("md") { 0.0 } else { way_over_half(verdict) };
            let rest = time - verdict.number("write_latency").unwrap_or(25.0) - 2.0 * half - rotation_ms;
            let turns = rest / (rotation_ms + platter.skew_ns / 1e6);
            parameters.push(("map_merge_every", whole(every)));
            parameters.push(("map_merge_tracks", whole(turns.round())));
        }
        None => parameters.push(("map_merge_every", "0".into())),
    }
    ("media-cache", parameters, beside(verdict, cache_bytes))
}

fn in_place(verdict: &Verdict, _platter: &Platter) -> (&'static str, Vec<(&'static str, String)>, f64) {
    let cache_bytes = (verdict.number("cache_bytes").unwrap_or(1e10) / 4096.0).round() * 4096.0;
    let parameters = vec![
        ("placement", words("in-place")),
        ("cache_size", words(&whole(cache_bytes))),
        ("cache_position", position(verdict)),
        ("idle", idle(verdict)),
        ("band_tracks", whole(band_tracks(verdict))),
        ("map_entries", whole(verdict.number("map_entries").unwrap_or(200_000.0))),
    ];
    ("media-cache", parameters, beside(verdict, cache_bytes))
}

fn set_associative(verdict: &Verdict) -> (&'static str, Vec<(&'static str, String)>, f64) {
    let region = (band_bytes(verdict) / SECTOR_BYTES).round() * SECTOR_BYTES;
    let cache_bytes = verdict.number("cache_bytes").unwrap_or(100.0 * region);
    let is_flash = verdict.word("cache_medium") == Some("flash");
    let parameters = vec![
        ("region_size", words(&whole(region))),
        ("cache_size", words(&whole(cache_bytes.max(region)))),
        ("cache_medium", words(if is_flash { "flash" } else { "disk" })),
        ("cache_position", position(verdict)),
    ];
    ("set-associative", parameters, if is_flash { 2.0 * region } else { beside(verdict, cache_bytes) })
}

fn fully_associative(verdict: &Verdict) -> (&'static str, Vec<(&'static str, String)>, f64) {
    let band = (band_bytes(verdict) / SECTOR_BYTES).round() * SECTOR_BYTES;
    // The logs of all zones fill up at the same time, so each has an equal part of the cache.
    let zones = verdict.number("cache_parts").unwrap_or(4.0).max(2.0);
    let zone = (verdict.size_bytes as f64 / zones / band).ceil() * band;
    let log_bands =
        (verdict.number("cache_bytes").unwrap_or(0.01 * verdict.size_bytes as f64) / zones / band).round().max(2.0);
    let cleans = matches!(verdict.word("cleaning"), Some("aggressive" | "late"));
    let parameters = vec![
        ("band_size", words(&whole(band))),
        ("zone_size", words(&whole(zone))),
        ("log_bands", whole(log_bands)),
        ("cleaning", words(if cleans { "aggressive" } else { "lazy" })),
        ("idle_after", idle(verdict)),
    ];
    ("fully-associative", parameters, zones * (log_bands + 3.0) * band)
}
