//! Goal: a layer's caches lie in the places that it reports, so that a drawing of them is right. Method: random work on
//! every toy; the sectors that a lookup finds within a cache are no more than the cache reports as used.

use imbrex_layer::verify::toy::{self, Commands};
use imbrex_layer::{Cache, Layer, Medium, Piece, Plan, registry};
use imbrex_sim::{Drive, DriveSpec};

/// Layers that keep data away from home for some time.
const CACHING: [&str; 9] = [
    "flip-cache",
    "fully-associative",
    "log-structured",
    "media-cache",
    "s-blocks",
    "set-associative",
    "top-buffer",
    "track-cache",
    "write-buffer",
];

fn caches(layer: &dyn Layer) -> Vec<Cache> {
    let mut caches = Vec::new();
    layer.caches(&mut |cache| caches.push(cache));
    caches
}

/// Returns the number of the drive's sectors that lie within `cache` now.
fn held(pieces: &[Piece], cache: &Cache) -> u64 {
    let within = |piece: &Piece| match piece.at {
        Some((medium, pba)) if medium == cache.medium => {
            (pba.0 + piece.sectors.0).min(cache.end.0).saturating_sub(pba.0.max(cache.start.0))
        }
        _ => 0,
    };
    pieces.iter().map(within).sum()
}

#[test]
fn caches_hold_what_they_say() {
    let mut shown = Vec::new();
    for info in registry::all() {
        for disk in info.recordings.iter().flat_map(|&name| toy::disks(name)) {
            for words in info.toys {
                let spec = DriveSpec::parse(&format!("toy+{}:{words}", info.name)).expect("key=value");
                let Ok(drive) = Drive::assemble("toy", disk.profile.clone(), info.name, &spec.parameters) else {
                    continue;
                };
                let (mut layer, end) = (drive.layer, drive.disk.geometry.sectors().0);
                let mut commands = Commands::new(11, layer.capacity(), 24);
                let mut plan = Plan::new();
                let mut was_used = false;
                for _ in 0..150 {
                    commands.plan(layer.as_mut(), &mut plan);
                    let mut pieces = Vec::new();
                    layer.lookup(imbrex_disk::Lba(0), layer.capacity(), &mut pieces);
                    for cache in caches(layer.as_ref()) {
                        let words = format!("{}:{words} on {}: {cache:?}", info.name, disk.name);
                        assert!(cache.start < cache.end && cache.used <= cache.size, "{words}");
                        assert!(cache.medium == Medium::Flash || cache.end.0 <= end, "{words}");
                        let held = held(&pieces, &cache);
                        assert!(held <= cache.used.0, "{words} holds {held}");
                        was_used |= cache.used.0 > 0;
                    }
                }
                shown.extend((was_used && !shown.contains(&info.name)).then_some(info.name));
            }
        }
    }
    assert_eq!(shown, CACHING);
}
