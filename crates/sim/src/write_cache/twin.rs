//! Goal: the cache joins, splits and returns ranges exactly as its header says. Method: comparison with a plain list of
//! ranges that examines all of them each time.

use super::*;
use proptest::prelude::*;

/// A list of ranges: start, end, number of the oldest write.
#[derive(Clone, Default)]
struct Naive {
    ranges: Vec<(u64, u64, u64)>,
    sweep: u64,
}

impl Naive {
    fn insert(&mut self, start: u64, end: u64, sequence: u64) {
        let mut whole = (start, end, sequence);
        self.join(&mut whole, |range, whole| range.0 < whole.1 && whole.0 < range.1);
        self.join(&mut whole, |range, whole| range.1 == whole.0 && whole.1 - range.0 <= RANGE_SECTORS_MAX);
        self.join(&mut whole, |range, whole| range.0 == whole.1 && range.1 - whole.0 <= RANGE_SECTORS_MAX);
        self.ranges.push(whole);
        self.ranges.sort_unstable();
    }

    fn join(&mut self, whole: &mut (u64, u64, u64), joins: impl Fn(&(u64, u64, u64), &(u64, u64, u64)) -> bool) {
        let asked = *whole;
        self.ranges.retain(|range| {
            let is_joined = joins(range, &asked);
            if is_joined {
                *whole = (whole.0.min(range.0), whole.1.max(range.1), whole.2.min(range.2));
            }
            !is_joined
        });
    }

    fn discard(&mut self, start: u64, end: u64) {
        let cut = |&(from, to, sequence): &(u64, u64, u64)| {
            [(from, to.min(start), sequence), (from.max(end), to, sequence)].into_iter().filter(|part| part.0 < part.1)
        };
        self.ranges = self.ranges.iter().flat_map(cut).collect();
    }

    fn take(&mut self, command: &Command) -> bool {
        let (start, end) = (command.lba.0, command.end().0);
        let before = self.ranges.len();
        self.ranges.retain(|range| (range.0, range.1) != (start, end));
        self.sweep = end;
        before == self.ranges.len() + 1
    }

    fn commands(&self) -> Vec<Command> {
        self.ranges.iter().map(|&(start, end, _)| Command::write(start, (end - start) as u32)).collect()
    }

    fn used(&self) -> u64 {
        self.ranges.iter().map(|range| range.1 - range.0).sum()
    }

    fn sequence_of(&self, command: &Command) -> Option<u64> {
        self.ranges.iter().find(|range| range.0 == command.lba.0).map(|range| range.2)
    }
}

const CAPACITY: u64 = 30_000;

proptest! {
    #[test]
    fn joins_and_gives_out_what_a_plain_list_does(
        // A unit of 512 sectors reaches the longest range; a unit of one sector reaches all other cases.
        unit in prop_oneof![3 => Just(1u64), 1 => Just(512)],
        acts in prop::collection::vec((0u64..60, 1u64..9, 0u8..9), 1..80),
    ) {
        let (mut cache, mut naive) = (WriteCache::new(Sectors(CAPACITY)), Naive::default());
        for (number, (place, length, act)) in acts.into_iter().enumerate() {
            let (start, end) = (place * unit, (place + length) * unit);
            let command = Command::write(start, (end - start) as u32);
            match act {
                0 => {
                    cache.discard(&command);
                    naive.discard(start, end);
                }
                1 => {
                    let taken = cache.take_oldest().map(|(taken, _)| taken);
                    let oldest = naive.ranges.iter().map(|range| range.2).min();
                    prop_assert_eq!(taken.and_then(|taken| naive.sequence_of(&taken)), oldest);
                    prop_assert!(taken.is_none_or(|taken| naive.take(&taken)));
                }
                2 | 3 => {
                    let ahead = naive.ranges.iter().find(|range| range.0 >= naive.sweep).or(naive.ranges.first());
                    let expected = ahead.map(|&(start, end, _)| Command::write(start, (end - start) as u32));
                    match cache.take_next() {
                        None => prop_assert_eq!(expected, None),
                        Some((taken, mut gap)) => {
                            prop_assert_eq!(Some(taken), expected);
                            naive.take(&taken);
                            // The ranges on both sides of the gap, one after the other; a range that does not join
                            // stays.
                            let after = naive.commands().into_iter().find(|next| next.lba >= taken.end());
                            prop_assert_eq!(cache.take_after(&mut gap, |_| false), None);
                            prop_assert_eq!(cache.take_after(&mut gap, |_| true), after);
                            prop_assert!(after.is_none_or(|after| naive.take(&after)));
                            let before = naive.commands().into_iter().rfind(|previous| previous.end() <= taken.lba);
                            prop_assert_eq!(cache.take_before(&mut gap, |_| false), None);
                            prop_assert_eq!(cache.take_before(&mut gap, |previous| Some(*previous) == before), before);
                            prop_assert!(before.is_none_or(|before| naive.take(&before)));
                        }
                    }
                }
                4 => {
                    let within = Lba(start)..Lba(end);
                    let last = naive.commands().into_iter().rfind(|range| range.lba < within.end && within.start < range.end());
                    prop_assert_eq!(cache.holds_some_of(&within), last.is_some());
                    prop_assert_eq!(cache.take_within(&within).map(|(taken, _)| taken), last);
                    prop_assert!(last.is_none_or(|last| naive.take(&last)));
                }
                _ if naive.used() + end - start <= CAPACITY => {
                    cache.insert(&command, number as u64);
                    naive.insert(start, end, number as u64);
                }
                _ => {}
            }
            prop_assert_eq!(cache.ranges(), naive.commands());
            prop_assert_eq!((cache.used(), cache.is_empty()), (Sectors(naive.used()), naive.ranges.is_empty()));
            let holds = naive.ranges.iter().any(|range| range.0 <= start && end <= range.1);
            prop_assert_eq!(cache.holds(&Command::read(start, (end - start) as u32)), holds);
            let oldest = naive.ranges.iter().map(|range| range.2).min();
            for sequence in [oldest.unwrap_or(0), oldest.unwrap_or(0) + 1] {
                prop_assert_eq!(cache.has_older_than(sequence), oldest.is_some_and(|oldest| oldest < sequence));
            }
        }
    }
}

#[test]
fn a_cache_says_what_fits() {
    let none = WriteCache::new(Sectors(0));
    assert!(!none.is_on() && none.is_empty() && !none.is_filling());
    assert!(!none.could_hold(&Command::write(0, 1)));
    let mut cache = WriteCache::new(Sectors(8));
    assert!(cache.is_on() && cache.could_hold(&Command::write(0, 8)) && !cache.could_hold(&Command::write(0, 9)));
    cache.insert(&Command::write(0, 5), 1);
    assert!(!cache.is_filling(), "5 of 8");
    cache.insert(&Command::write(5, 1), 2);
    assert!(cache.is_filling(), "6 of 8 are three quarters");
    assert!(
        cache.has_room(&Command::write(50, 2), SimTime::ZERO) && !cache.has_room(&Command::write(50, 3), SimTime::ZERO)
    );
}

#[test]
fn room_that_comes_free_is_rounded_down() {
    let mut cache = WriteCache::new(Sectors(10));
    cache.leave(Sectors(3), SimTime(0), SimTime(10));
    // After 40 % of the time, one of three sectors has left, and not two.
    assert!(cache.has_room(&Command::write(0, 8), SimTime(4)) && !cache.has_room(&Command::write(0, 9), SimTime(4)));
    assert!(!cache.has_room(&Command::write(0, 8), SimTime(3)));
}
