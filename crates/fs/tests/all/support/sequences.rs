//! Code shared by tests of power cuts: settings for longer runs, checks of short and long sequences of operations, and
//! a new file system to run a task on.

use imbrex_fs::verify::cuts::{fresh, judge};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Toy, scripts};
use imbrex_fs::{Bounds, Executor, Fs};

/// Returns a setting `IMBREX_FS_…` for longer runs.
pub(crate) fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Returns whether tests are to run in their long form.
pub(crate) fn is_long() -> bool {
    std::env::var_os("IMBREX_LONG").is_some()
}

/// Returns every second of `toys`, beginning with the one of number `first` (0 or 1), and all with `IMBREX_LONG=1`.
pub(crate) fn half(toys: Vec<Toy>, first: usize) -> Vec<Toy> {
    if is_long() {
        return toys;
    }
    toys.into_iter().skip(first).step_by(2).collect()
}

/// Returns every one of `toys`, by turns with the usual and with the smallest bounds, which are part of the name; with
/// `IMBREX_LONG=1`, each with both.
pub(crate) fn with_bounds(toys: Vec<Toy>) -> Vec<(String, Trial)> {
    let mut all = Vec::new();
    for (number, (name, usual)) in toys.into_iter().enumerate() {
        let smallest = Trial { bounds: Bounds::smallest(), ..usual.clone() };
        if is_long() || number % 2 == 0 {
            all.push((format!("{name}, usual bounds"), usual));
        }
        if is_long() || number % 2 == 1 {
            all.push((format!("{name}, smallest bounds"), smallest));
        }
    }
    all
}

/// Checks a part of all sequences of three operations on each of `toys` ([`with_bounds`]).
pub(crate) fn judge_sequences_of_three(toys: Vec<Toy>) {
    let every = setting("IMBREX_FS_EVERY", 397) as usize;
    for (name, trial) in with_bounds(toys) {
        for number in (0..scripts::KINDS.pow(3)).step_by(every) {
            let operations = scripts::short(number);
            judge(&trial, &operations)
                .unwrap_or_else(|why| panic!("{name}, sequence {number}: {why}\n{operations:#?}"));
        }
    }
}

/// Checks long sequences with reads, `IMBREX_FS_LONG` of them from seed `IMBREX_FS_SEED` on, on each of `toys`
/// ([`with_bounds`]).
pub(crate) fn judge_long_sequences_with_reads(toys: Vec<Toy>) {
    let (first, count) = (setting("IMBREX_FS_SEED", 1), setting("IMBREX_FS_LONG", 1));
    for (name, trial) in with_bounds(toys) {
        let trial = Trial { random_subsets: 2, ..trial };
        for seed in first..first + count {
            let operations = scripts::long_with_reads(seed, 140);
            let tally =
                judge(&trial, &operations).unwrap_or_else(|why| panic!("{name}, seed {seed}: {why}\n{operations:#?}"));
            println!("{name}: {tally:?}");
        }
    }
}

/// Runs `task` with a new file system on `trial`.
pub(crate) fn on<T: 'static>(trial: &Trial, task: impl AsyncFnOnce(Fs, Rig, Executor) -> T + 'static) -> T {
    let (executor, trial) = (Executor::in_virtual_time(), trial.clone());
    let own = executor.clone();
    let done = executor.run(async move {
        let (fs, rig) = fresh(&own, &trial).await.unwrap();
        task(fs, rig, own).await
    });
    executor.shut_down();
    done.unwrap()
}
