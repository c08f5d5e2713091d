//! Slow sectors: ranges in which every command takes additional time, as on a drive that retries reads. The time is
//! counted as overhead, not as seek, rotation or transfer.
//!
//! Invariants:
//! 1. A command takes the longest of the times of the ranges that it touches, once. If one operation serves several
//!    commands, their times add up.
//! 2. A command that is answered without an access to the medium takes no additional time.

use imbrex_disk::{Command, Lba, Operation, Sectors, SimDuration};
use imbrex_layer::map::run_map::{Along, RunMap};

/// Additional time of commands, constant within a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extra(SimDuration);

impl Along for Extra {
    fn along(self, _offset: u64) -> Extra {
        self
    }
}

/// The slow sectors of a drive: ranges of LBAs in which reads and writes take additional time.
#[derive(Clone, Debug, Default)]
pub struct Slow {
    ranges: RunMap<Extra>,
}

impl Slow {
    /// Returns whether there are no slow sectors.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Sets the additional time of reads and writes that touch any of the `sectors` sectors from `lba` on, in place of
    /// earlier settings for these sectors. A time of zero makes the sectors normal again.
    pub fn set(&mut self, lba: Lba, sectors: Sectors, extra: SimDuration) {
        if extra == SimDuration::ZERO {
            self.ranges.remove(lba.0, sectors.0);
        } else {
            self.ranges.insert(lba.0, sectors.0, Extra(extra));
        }
    }

    /// Returns the additional time of `commands`, which are served in one operation: the sum over its reads and writes.
    /// Each takes the longest of the times of the sectors that it touches, once.
    pub fn extra(&self, commands: &[Command]) -> SimDuration {
        let accesses =
            commands.iter().filter(|command| matches!(command.operation, Operation::Read | Operation::Write));
        SimDuration(accesses.map(|command| self.extra_of(command).0).sum())
    }

    fn extra_of(&self, command: &Command) -> SimDuration {
        let mut longest = SimDuration::ZERO;
        self.ranges.cover(command.lba.0, u64::from(command.sectors), |_, _, extra| {
            longest = longest.max(extra.map_or(SimDuration::ZERO, |Extra(time)| time));
        });
        longest
    }

    /// Returns the slow ranges in order of address: first sector, number of sectors, and the additional time of a
    /// command that touches the range.
    pub fn iter(&self) -> impl Iterator<Item = (Lba, Sectors, SimDuration)> + '_ {
        self.ranges.iter().map(|(start, length, Extra(time))| (Lba(start), Sectors(length), time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_takes_the_longest_time_of_what_it_touches_once() {
        let (ms, mut slow) = (SimDuration::from_millis, Slow::default());
        assert!(slow.is_empty() && slow.extra(&[Command::read(0, 100)]) == SimDuration::ZERO);
        slow.set(Lba(10), Sectors(10), ms(200));
        slow.set(Lba(15), Sectors(1), ms(300));
        for (command, expected) in [
            (Command::read(0, 10), 0),
            (Command::read(9, 2), 200),
            (Command::write(19, 5), 200),
            (Command::read(0, 100), 300),
            (Command::trim(15, 1), 0),
            (Command::flush(), 0),
        ] {
            assert_eq!(slow.extra(&[command]), ms(expected), "{command:?}");
        }
        assert_eq!(slow.extra(&[Command::read(15, 1), Command::write(10, 1)]), ms(500), "each takes its own");
        slow.set(Lba(0), Sectors(100), SimDuration::ZERO);
        assert!(slow.is_empty());
    }
}
