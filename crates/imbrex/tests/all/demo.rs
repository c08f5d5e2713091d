//! Goal: the drives of the demo differ as their pages in docs/layers say. Method: compares the interlaced drives, whose
//! layers differ only if some tracks stay hot long enough.

use imbrex::{Baseline, Progress, Simulation, Workload};

#[test]
fn interlaced_layers_differ_in_the_demo() {
    const LAYERS: [&str; 5] = ["track-cache", "track-map", "track-flip", "imr-rmw", "block-swap"];
    let progress = Progress::silent();
    let workload = Workload::named("demo", &progress).expect("it is built in");
    let mut simulation = Simulation::new().baseline(Baseline::None);
    for layer in LAYERS {
        simulation = simulation.drive(&format!("imr-1t+{layer}")).expect("it can be built");
    }
    let drives = simulation.run(&workload, &progress).expect("it runs").summary.drives;
    let took: Vec<(&str, f64)> =
        LAYERS.iter().zip(&drives).map(|(layer, drive)| (*layer, drive.duration_ns as f64)).collect();
    // Expected order, from fastest to slowest. A hot track in the cache costs no more than on a conventional drive.
    // `track-map` moves a hot bottom track to any top of its zone, `track-flip` only to a neighbouring one. Moving
    // small blocks costs more than it saves.
    for pair in took.windows(2) {
        assert!(pair[1].1 > 1.01 * pair[0].1, "{took:?}");
    }
    assert!(took[3].1 > 1.3 * took[0].1, "{took:?}");
    let written: Vec<f64> = drives.iter().map(|drive| drive.write_amplification).collect();
    assert!(written.windows(2).all(|pair| (pair[1] / pair[0] - 1.0).abs() > 0.001), "{written:?}");
}
