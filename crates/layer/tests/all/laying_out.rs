//! Goal: a drive is laid out quickly whatever its parameters. Method: a recording that counts the calls of `destroys`,
//! which dominate the cost of laying out a drive; a clock would measure the machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbrex_disk::geometry::Geometry;
use imbrex_disk::recording::{Recording, Refusal};
use imbrex_disk::{Disk, Extent, Pba, Profile};
use imbrex_layer::registry;

/// A recording that counts the calls of `destroys` and passes them to another recording.
#[derive(Debug)]
struct Counting {
    inner: Box<dyn Recording>,
    asked: Arc<AtomicU64>,
}

impl Recording for Counting {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.inner.destroys(geometry, written, destroyed);
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Refusal> {
        self.inner.check(geometry)
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(Counting { inner: self.inner.boxed(), asked: self.asked.clone() })
    }

    fn is_harmless(&self) -> bool {
        self.inner.is_harmless()
    }

    fn is_alike_in_stroke(&self, geometry: &Geometry, track: Pba) -> bool {
        self.inner.is_alike_in_stroke(geometry, track)
    }

    fn band_tracks(&self) -> Option<u32> {
        self.inner.band_tracks()
    }
}

/// Lays out `layer` on the drive `profile`. Returns the number of calls of `destroys`, the number of tracks, and the
/// layer's capacity in sectors.
fn asked(profile: &str, layer: &str, parameters: &[(&str, &str)]) -> (u64, u64, u64) {
    let profile = Profile::named(profile).expect("it comes with the project");
    let (disk, asked) = (profile.disk(), Arc::new(AtomicU64::new(0)));
    let recording = Box::new(Counting { inner: disk.recording.boxed(), asked: asked.clone() });
    let counted = Arc::new(Disk {
        geometry: disk.geometry.clone(),
        mechanics: disk.mechanics.clone(),
        recording,
        flash: disk.flash,
        sector_bytes: disk.sector_bytes,
    });
    let mut given = profile.parameters_for(layer);
    given.extend(parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())));
    let layer = registry::build(layer, &counted, &given).unwrap_or_else(|error| panic!("{error}"));
    let tracks = counted.geometry.sectors().0 / counted.geometry.track_of(Pba(0)).sectors.0;
    (asked.load(Ordering::Relaxed), tracks, layer.capacity().0)
}

/// Checks that there is at most one call for 50 tracks of the outermost length. With a call for every track there would
/// be at least 0.6 million calls. The cache of 1 TB would take 8 million, and zones of 2 MiB 2.5 million.
#[test]
fn few_writes_are_asked_about_whatever_the_parameters() {
    for (layer, parameters) in [
        ("media-cache", &[][..]),
        ("media-cache", &[("placement", "in-place")]),
        ("media-cache", &[("band_tracks", "1")]),
        ("media-cache", &[("placement", "in-place"), ("band_tracks", "1")]),
        ("media-cache", &[("cache_size", "1TB")]),
        ("set-associative", &[("region_tracks", "1")]),
        ("s-blocks", &[]),
        ("zoned", &[("zone_size", "2MiB")]),
        ("log-structured", &[("zone_size", "2MiB")]),
    ] {
        let (asked, tracks, capacity) = asked("seagate-st5000as0011", layer, parameters);
        assert!(asked < tracks / 50, "{layer} {parameters:?}: {asked} times, of {tracks} tracks");
        assert!(capacity > 1 << 31, "{layer} {parameters:?}: {capacity} sectors");
    }
}

/// Goal: the memory of a layer on a new drive does not grow with the number of its parts. Method: measured bytes of
/// drives that are cut as finely as possible; a table with an entry for each part would take 60 to 1200 MB.
#[test]
fn a_new_drive_takes_little_memory_however_finely_it_is_cut() {
    for (profile, layer, parameters) in [
        ("seagate-st5000as0011", "media-cache", &[("band_tracks", "1")][..]),
        ("seagate-st8000as0022", "media-cache", &[("band_tracks", "1")]),
        ("seagate-st5000as0011", "set-associative", &[("region_tracks", "1")]),
        ("emulated-smr-1", "set-associative", &[("region_size", "1MiB")]),
        ("exos-x18", "s-blocks", &[]),
        ("imr-20t", "block-swap", &[]),
        ("hm-zoned", "zoned", &[("zone_size", "4MiB")]),
    ] {
        let profile = Profile::named(profile).expect("it comes with the project");
        let mut given = profile.parameters_for(layer);
        given.extend(parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())));
        let built = registry::build(layer, &profile.disk(), &given).unwrap_or_else(|error| panic!("{error}"));
        let bytes = built.memory().measured_bytes;
        assert!(bytes < 8_000_000, "{layer} {parameters:?}: {bytes} bytes");
    }
}
