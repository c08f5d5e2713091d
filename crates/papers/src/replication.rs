//! A replication of an experiment: one of several runs that differ only in the seeds of their random choices.
//!
//! Invariants:
//! 1. Replication 0 uses the seeds that the experiment names, so it is the run of `imbrex reproduce` without `--seeds`.
//! 2. Every random choice of an experiment takes its seed from [`Replication::seed`]. An experiment that never calls it
//!    gives the same report in every replication.

use std::sync::atomic::{AtomicBool, Ordering};

use imbrex::Progress;
use imbrex_trace::generators::{Generator, WorkloadSpec};

use crate::hajkazemi::Traces;

/// One replication of an experiment: its number, and the progress of its work.
pub(crate) struct Replication<'a> {
    /// Progress of the work, through which the user can stop it.
    pub progress: &'a Progress,
    /// The user's traces of Hajkazemi 2019's machines, if there are any.
    pub traces: Option<&'a Traces>,
    number: u64,
    is_seeded: AtomicBool,
}

impl<'a> Replication<'a> {
    /// Returns replication `number` of an experiment, counted from 0.
    pub(crate) fn new(progress: &'a Progress, number: u64) -> Replication<'a> {
        Replication { progress, traces: None, number, is_seeded: AtomicBool::new(false) }
    }

    /// Returns this replication with the user's traces.
    pub(crate) fn with_traces(self, traces: Option<&'a Traces>) -> Replication<'a> {
        Replication { traces, ..self }
    }

    /// Returns the seed of this replication for a random choice whose seed is `base` in replication 0: each replication
    /// adds 1 to the seed of the one before. Records that the experiment depends on a seed.
    pub(crate) fn seed(&self, base: u64) -> u64 {
        self.is_seeded.store(true, Ordering::Relaxed);
        base.wrapping_add(self.number)
    }

    /// Returns whether the experiment has asked for a seed.
    pub(crate) fn is_seeded(&self) -> bool {
        self.is_seeded.load(Ordering::Relaxed)
    }

    /// Returns the generator of the workload `words` on a drive of `device_sectors` sectors of 512 bytes, with this
    /// replication's seed in place of the seed of the words.
    ///
    /// # Panics
    ///
    /// The words are not a workload, or the drive is too small for it.
    pub(crate) fn generator(&self, words: &str, device_sectors: u64) -> Generator {
        let spec = WorkloadSpec::parse(words).expect("experiments' words are right: a test runs them");
        let seed = self.seed(spec.seed());
        Generator::new(spec.with_seed(seed), device_sectors).expect("experiments' words are right: a test runs them")
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1, and the record of a seed. Method: a silent progress.

    use imbrex_disk::SimTime;
    use imbrex_trace::Source;

    use super::*;

    #[test]
    fn the_first_replication_has_the_seeds_of_the_experiment() {
        let progress = Progress::silent();
        let (first, third) = (Replication::new(&progress, 0), Replication::new(&progress, 2));
        assert!(!first.is_seeded() && !third.is_seeded());
        assert_eq!((first.seed(7), third.seed(7)), (7, 9));
        assert!(first.is_seeded() && third.is_seeded());
    }

    #[test]
    fn words_with_and_without_a_seed_take_that_of_the_replication() {
        let progress = Progress::silent();
        let first_lba = |words: &str, number: u64| {
            let mut generator = Replication::new(&progress, number).generator(words, 1 << 30);
            generator.next(SimTime::ZERO).expect("it has requests").expect("it has requests").command.lba
        };
        let words = "rw=randwrite,bs=4k,number_ios=10";
        assert_eq!(first_lba(words, 0), first_lba(&format!("{words},seed=1"), 0));
        assert_eq!(first_lba(words, 4), first_lba(&format!("{words},seed=5"), 0));
        assert_ne!(first_lba(words, 0), first_lba(words, 1));
    }
}
