//! Goal: the probe recognizes a drive in real time within hours, although schedulers delay the answers. Method: random
//! drives, small enough for real time, on a virtual clock that claims to be the wall clock.

use imbrex_probe::Simulated;

use crate::support::noisy::{Noise, Noisy};
use crate::support::{Size, build, draw, faults, probed};

/// Delays that a machine with other work adds to an answer passed between two processes.
const SCHEDULER: Noise = Noise { share: 0.0, held: 0.004, held_ns: 6e6, late_ns: 80_000.0 };

#[test]
fn tiny_drives_are_known_in_real_time() {
    let mut wrong = Vec::new();
    for seed in 1..=60 {
        let drawn = draw(seed, Size::Tiny);
        let mut target = Noisy::new(Simulated::new(build(&drawn.text)), SCHEDULER, seed).in_real_time();
        let verdict = probed(&mut target);
        let mut faults = faults(&drawn.truth, &verdict);
        // The layout shows in seeks that are little longer than others, which delays may hide.
        faults.retain(|fault| !fault.starts_with("layout is CannotTell"));
        // The machine that runs this test may be busy, and then no drive is called conventional.
        faults.retain(|fault| !(fault.starts_with("type is CannotTell") && fault.contains("this machine was busy")));
        if !faults.is_empty() {
            wrong.push(format!("seed {seed}, {}:\n  {}\n", drawn.truth.kind, faults.join("\n  ")));
        }
        // At most an hour and a half if the drive cleans when idle; one that does not is filled whole, at its own pace.
        if matches!(verdict.word("cleaning"), None | Some("aggressive")) && drawn.truth.place != Some("several") {
            assert!(verdict.target_ns < 5_400_000_000_000, "seed {seed}: {} s", verdict.target_ns / 1_000_000_000);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.concat());
}
