//! An overlap filter: tells quickly whether a waiting command may overlap another, or begin within certain sectors. A
//! small table counts the commands in each stretch of the drive. Most commands are the only ones in their stretches, so
//! they need not be compared with every other.
//!
//! Invariants:
//! 1. A command for which [`OverlapFilter::is_alone`] is true overlaps no other command that was added and not removed.
//! 2. None of those commands begins within sectors for which [`OverlapFilter::may_begin_within`] is false.

use std::ops::Range;

use imbrex_disk::{Command, Lba};

/// Number of sectors of a stretch, as a power of two.
const STRETCH_BITS: u32 = 13;
/// Number of entries of the table, as a power of two.
const TABLE_BITS: u32 = 12;
/// Maximum number of stretches of a command counted in the table. A longer command may overlap any other.
const STRETCHES_MAX: u64 = 4;
/// 2⁶⁴ divided by the golden ratio, as a factor that sends neighbouring stretches to entries far apart.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Counts of commands by stretch.
#[derive(Clone, Debug)]
pub(crate) struct OverlapFilter {
    counts: Box<[u32]>,
    /// Number of commands that are too long for the table.
    wide: usize,
}

impl OverlapFilter {
    /// Creates a filter without commands.
    pub(crate) fn new() -> OverlapFilter {
        OverlapFilter { counts: vec![0; 1 << TABLE_BITS].into(), wide: 0 }
    }

    /// Adds `command`.
    #[inline]
    pub(crate) fn add(&mut self, command: &Command) {
        match stretches(command) {
            (first, last) if first == last => self.counts[entry(first)] += 1,
            (first, last) if last - first < STRETCHES_MAX => (first..=last).for_each(|at| self.counts[entry(at)] += 1),
            _ => self.wide += 1,
        }
    }

    /// Removes `command`, which was added.
    #[inline]
    pub(crate) fn remove(&mut self, command: &Command) {
        match stretches(command) {
            (first, last) if first == last => self.counts[entry(first)] -= 1,
            (first, last) if last - first < STRETCHES_MAX => (first..=last).for_each(|at| self.counts[entry(at)] -= 1),
            _ => self.wide -= 1,
        }
    }

    /// Returns whether `command`, which was added, is sure to overlap no other.
    #[inline]
    pub(crate) fn is_alone(&self, command: &Command) -> bool {
        let (first, last) = stretches(command);
        if first == last {
            return self.wide == 0 && self.counts[entry(first)] == 1;
        }
        // Two stretches of the command may share an entry; then the result is false without need, which costs a
        // comparison.
        self.wide == 0 && last - first < STRETCHES_MAX && (first..=last).all(|at| self.counts[entry(at)] == 1)
    }

    /// Returns whether a command that was added may begin within `sectors`.
    #[inline]
    pub(crate) fn may_begin_within(&self, sectors: &Range<Lba>) -> bool {
        if sectors.is_empty() {
            return false;
        }
        let (first, last) = (sectors.start.0 >> STRETCH_BITS, (sectors.end.0 - 1) >> STRETCH_BITS);
        self.wide > 0 || last - first >= STRETCHES_MAX || (first..=last).any(|at| self.counts[entry(at)] > 0)
    }
}

/// Returns the first and the last stretch that `command` touches.
#[inline]
fn stretches(command: &Command) -> (u64, u64) {
    let last = command.lba.0 + u64::from(command.sectors.saturating_sub(1));
    (command.lba.0 >> STRETCH_BITS, last >> STRETCH_BITS)
}

/// Returns the table's entry for a stretch.
#[inline]
fn entry(stretch: u64) -> usize {
    (stretch.wrapping_mul(GOLDEN) >> (64 - TABLE_BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Checks the invariants. Method: commands of all sizes are added and removed, compared in all pairs and with
        /// random sectors.
        #[test]
        fn what_is_alone_overlaps_nothing_and_nothing_begins_where_none_may(
            drawn in prop::collection::vec((0u64..400_000, 0u32..60_000, any::<bool>(), any::<bool>()), 1..60),
            (from, length) in (0u64..400_000, 0u64..40_000),
        ) {
            let asked = Lba(from)..Lba(from + length);
            let (mut company, mut there) = (OverlapFilter::new(), Vec::new());
            for (lba, sectors, is_small, leaves) in drawn {
                let command = Command::write(lba, if is_small { sectors % 64 } else { sectors });
                company.add(&command);
                there.push(command);
                if leaves {
                    company.remove(&there.swap_remove(there.len() / 2));
                }
                for (index, one) in there.iter().enumerate() {
                    let overlaps = there.iter().enumerate().any(|(other, two)| other != index && one.overlaps(two));
                    prop_assert!(!(overlaps && company.is_alone(one)), "{:?} of {:?}", one, there);
                }
                let begins = there.iter().any(|command| asked.contains(&command.lba));
                prop_assert!(!begins || company.may_begin_within(&asked), "{:?} of {:?}", asked, there);
            }
            there.iter().for_each(|command| company.remove(command));
            prop_assert!(company.wide == 0 && company.counts.iter().all(|count| *count == 0));
        }
    }

    #[test]
    fn few_sectors_far_from_every_command_have_none() {
        let mut company = OverlapFilter::new();
        company.add(&Command::write(8190, 4));
        let may_begin = |from, to| company.may_begin_within(&(Lba(from)..Lba(to)));
        assert!(may_begin(8190, 8191) && may_begin(8192, 9000) && !may_begin(8190, 8190));
        assert!(!may_begin(1 << 30, (1 << 30) + 4096) && may_begin(0, u64::MAX));
    }

    #[test]
    fn a_small_command_is_alone_but_for_one_beside_it() {
        let mut company = OverlapFilter::new();
        let (one, far, near) = (Command::write(0, 8), Command::read(1 << 30, 8), Command::read(4, 8));
        company.add(&one);
        company.add(&far);
        assert!(company.is_alone(&one) && company.is_alone(&far));
        company.add(&near);
        assert!(!company.is_alone(&one) && !company.is_alone(&near) && company.is_alone(&far));
    }
}
