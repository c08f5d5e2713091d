//! Detects a full cache, by the writes that waited for cleaning.
//!
//! Merges of the map stall a write as well, but their stalls are alike and occur from the beginning. So the cache was
//! full at the first stall that is longer than every earlier one and is soon followed by another, or that is longer
//! than any merge. A cache in parts is full part by part; its size follows from the times of all of them.

use crate::statistics::is_near;

/// A stall: no answer for a time that no pause takes, and for this many times as long as usual.
const STALL_TIMES: f64 = 3.0;
/// Factor in duration from which a stall is of another kind than the earlier ones.
const KIND: f64 = 1.5;
/// Duration in rotations that no merge of a map reaches.
const CLEANING_ROTATIONS: f64 = 400.0;
/// Number of writes up to which a cache counts as small: the data that other tests left in it then matters.
const SMALL_WRITES: u64 = 130_000;
/// Number of times between answers from which the usual time is computed.
const GAPS: usize = 64;
/// Reciprocal of the part of all writes before the first stall after which another stall counts as long after it.
const LATE_PART: u64 = 20;
/// Smallest number of stalls for a round, in which each set of a cache was full once. After a round, no write waits for
/// this part of the writes before the first stall (as a reciprocal), and for this many times the longest distance
/// between two stalls. Logs that free a band at a time are full in waves at even distances, and have no such break.
const ROUND_MIN: usize = 16;
const QUIET_PART: u64 = 8;
const QUIET_TIMES: u64 = 2;
/// Widths of waves and of the breaks between them, as reciprocal parts of the first of many numbers: waves are
/// narrower, and breaks wider.
const WAVE_PART: u64 = 800;
const BETWEEN_PART: u64 = 80;
/// Relative difference below which two means of the sets' fill times are equal.
const MEANS_ALIKE: f64 = 0.02;

/// Stalls of a cache in many sets, each of which was full once.
#[derive(Debug)]
struct Round {
    /// Number of writes that the cache holds.
    count: u64,
    sets: usize,
}

/// Size of a full cache, as concluded from the stalls of writes.
#[derive(Debug)]
pub(super) struct Full {
    /// Size of the cache as a number of writes: the number that it held when it was full.
    pub count: u64,
    /// Estimated number of parts of the cache that are cleaned by themselves: sets or logs.
    pub parts: usize,
    /// Whether `count` is a guess, because stalls continued all the time, or fit another size too.
    pub is_spread: bool,
}

/// Watches for the stall at which the cache was full. It evaluates the time from one answer to the next, at any depth.
pub(super) struct Watch {
    limit: u64,
    certain: u64,
    /// Number of writes whose answers were seen so far.
    pub count: u64,
    last_end: u64,
    /// First times between answers, from which the usual one is computed.
    gaps: Vec<u64>,
    usual: u64,
    longest: u64,
    candidate: Option<(u64, u64)>,
    /// The stalls (unusually long waits for an answer) so far, in order: pairs of the number of writes before the stall
    /// and its duration in nanoseconds.
    pub stalls: Vec<(u64, u64)>,
}

impl Watch {
    /// Returns a watch for stalls of at least `stall_ns`, on a drive with this rotation, nanoseconds.
    pub(super) fn new(rotation: f64, stall_ns: f64) -> Watch {
        Watch {
            limit: stall_ns as u64,
            certain: (CLEANING_ROTATIONS * rotation).max(stall_ns) as u64,
            count: 0,
            last_end: 0,
            gaps: Vec::new(),
            usual: 0,
            longest: 0,
            candidate: None,
            stalls: Vec::new(),
        }
    }

    /// Returns whether enough was seen after a cache was full at `at`. If data from before counts, the parts of the
    /// cache must be full a second time. If sets are full one by one, all of them must be.
    pub(super) fn is_enough(&self, at: u64) -> bool {
        if at > SMALL_WRITES {
            // A single stall is that of a whole cache, or of the first of many sets; then the stalls of the others
            // follow.
            let others = self.stalls.iter().map(|(index, _)| *index).find(|&index| index > at + at / 50);
            let from = if self.is_alone(at) { others.unwrap_or(at + at) } else { at };
            let is_over = || self.count > at + at || self.round(at).is_some();
            return self.count > from + at / 8 && (is_over() || !self.is_spread(at, self.full_in_the_middle(at)));
        }
        let last = self.stalls.last().map_or(at, |(index, _)| *index);
        let is_second_over = last > at + 3 * at / 4 && self.count > last + at / 4;
        self.count > 3 * at || (self.goes_on(at) && self.count > at + 3 * at / 4) || is_second_over
    }

    /// Returns whether no other stall followed soon after the one at `at`.
    fn is_alone(&self, at: u64) -> bool {
        self.stalls.iter().filter(|(index, _)| (at..=at + at / 50).contains(index)).count() == 1
    }

    /// Returns whether most stalls began long after the first, at `at`, so that the size `count`, which lies between,
    /// is a guess.
    fn is_spread(&self, at: u64, count: u64) -> bool {
        (at > SMALL_WRITES || self.goes_on(at)) && count > at + at / LATE_PART
    }

    /// Returns the round of sets that were full one by one from `at` on, if all sets were full, and none twice. Equal
    /// sets hold `s` writes each. The set that was full after `t` writes gets the share `s / t` of all writes, and all
    /// shares add up to 1. So `s` is the reciprocal of the sum of all `1 / t`, and the cache holds the harmonic mean of
    /// the `t`. If the sets differed in size, and not in their shares, the cache would hold the arithmetic mean: the
    /// size is known only if both means agree.
    fn round(&self, at: u64) -> Option<Round> {
        let (last, _) = *self.stalls.last()?;
        let quiet = self.count - last;
        if last >= at + at || quiet < at / QUIET_PART {
            return None;
        }
        let full: Vec<u64> = self.stalls.iter().map(|(index, _)| *index).filter(|&index| index >= at).collect();
        let widest = full.windows(2).map(|pair| pair[1] - pair[0]).max()?;
        let sets = full.len() as f64;
        let harmonic = sets / full.iter().map(|&full| 1.0 / full as f64).sum::<f64>();
        let arithmetic = full.iter().sum::<u64>() as f64 / sets;
        let is_known = full.len() >= ROUND_MIN && !are_waves(&full) && is_near(harmonic, arithmetic, MEANS_ALIKE);
        (is_known && quiet >= QUIET_TIMES * widest)
            .then_some(Round { count: harmonic.round() as u64, sets: full.len() })
    }

    /// Returns whether writes stall again after clearly fewer writes than the cache holds. Then only a part was
    /// emptied, as when a log is cleaned from its end; a set is emptied as a whole.
    fn goes_on(&self, at: u64) -> bool {
        self.stalls.iter().any(|(index, _)| (at + at / 4..at + 7 * at / 10).contains(index))
    }

    /// Returns the conclusion from the stalls from `at` on. It is a guess if they may be a round of sets that implies
    /// another size.
    pub(super) fn full(&self, at: u64) -> Full {
        let count = self.full_in_the_middle(at);
        let is_spread = self.is_spread(at, count);
        let round = self.round(at);
        if let Some(round) = round.as_ref().filter(|_| is_spread) {
            return Full { count: round.count, parts: round.sets, is_spread: false };
        }
        let is_doubtful = round.is_some_and(|round| round.count > count + count / LATE_PART);
        let parts = self.stalls.iter().filter(|(index, _)| index.abs_diff(count) <= count / 50).count();
        Full { count, parts, is_spread: is_spread || is_doubtful }
    }

    /// Returns the number of writes when the whole cache was full. A cache in sets is full set by set, and half of them
    /// are full at the median stall. The distance to the median stall of the next round is the size, whatever the sets
    /// held before. Logs of zones are full at one time, except those that held data before.
    fn full_in_the_middle(&self, at: u64) -> u64 {
        let stalls: Vec<u64> = self.stalls.iter().map(|(index, _)| *index).filter(|&index| index >= at).collect();
        let (first, second): (Vec<u64>, Vec<u64>) = stalls.iter().partition(|&&index| index < at + at / 2);
        if at > SMALL_WRITES || self.goes_on(at) || first.is_empty() || second.is_empty() {
            return first_dense(&stalls).unwrap_or(at);
        }
        let is_near = |at: u64| first.iter().filter(|index| index.abs_diff(at) <= at / 80).count();
        let dense = first_dense(&first)
            .filter(|&at| first.len() >= 6 && (5 * is_near(at) >= 2 * first.len() || come_in_waves(&first, at / 80)));
        if let Some((first, second)) = dense.zip(first_dense(&second)) {
            return second - first;
        }
        let mean = |round: &[u64]| round.iter().sum::<u64>() / round.len() as u64;
        mean(&second) - mean(&first)
    }

    /// Records a write that completed at `end`; if the cache was full, returns the number of writes before that.
    pub(super) fn see(&mut self, end: u64) -> Option<u64> {
        let before = self.count;
        self.count += 1;
        let gap = if before == 0 { 0 } else { end.saturating_sub(self.last_end) };
        self.last_end = self.last_end.max(end);
        if gap == 0 {
            return None;
        }
        if self.gaps.len() < GAPS {
            self.gaps.push(gap);
            self.usual = crate::statistics::median(&self.gaps);
        }
        if gap < self.limit.max((self.usual as f64 * STALL_TIMES) as u64) {
            // Other causes delay answers by arbitrary times: a gap only a little longer than the longest so far is no
            // stall then.
            self.longest = self.longest.max(gap);
            return None;
        }
        self.stalls.push((before, gap));
        let follows = |at: u64| before - at <= at / 4;
        if gap >= self.certain {
            return Some(self.candidate.filter(|(at, _)| follows(*at)).map_or(before, |(at, _)| at));
        }
        let like = self.candidate.filter(|(_, like)| (gap as f64) < KIND * *like as f64);
        if let Some((at, _)) = like.filter(|(at, like)| gap as f64 > 0.4 * *like as f64 && follows(*at)) {
            return Some(at);
        }
        if like.is_none() && gap as f64 > KIND * self.longest as f64 {
            self.candidate = Some((before, gap));
        }
        self.longest = self.longest.max(gap);
        None
    }
}
/// Returns whether ascending numbers come in several narrow waves of equal size. Logs that free a band at a time are
/// full together repeatedly; sets that are full one by one form no waves.
fn come_in_waves(numbers: &[u64], narrow: u64) -> bool {
    let waves: Vec<&[u64]> = numbers.chunk_by(|one, next| next - one <= narrow).collect();
    let alike = |wave: &&[u64]| wave.len() == waves[0].len() && wave[wave.len() - 1] - wave[0] <= narrow;
    waves.len() > 1 && waves[0].len() > 2 && waves.iter().all(alike)
}

/// Returns whether ascending numbers form waves with few numbers between: logs that are full together repeatedly.
fn are_waves(numbers: &[u64]) -> bool {
    let beside = |part: u64| -> usize {
        let reach = numbers[0] / part;
        let until = |bound: u64| numbers.partition_point(|&number| number <= bound);
        numbers.iter().map(|&number| until(number + reach) - until(number - reach - 1)).sum()
    };
    10 * beside(WAVE_PART) > 9 * beside(BETWEEN_PART)
}

/// Returns the middle of the first of the densest stretches of ascending numbers. A stretch is a fortieth of the first
/// number wide, at every place: a width that grew with the numbers would hold more of the later waves.
fn first_dense(numbers: &[u64]) -> Option<u64> {
    let width = numbers.first()? / 40;
    let mut end = 0;
    let within = |from: usize| {
        end += numbers[end..].iter().take_while(|&&number| number <= numbers[from] + width).count();
        end - from
    };
    let counts: Vec<usize> = (0..numbers.len()).map(within).collect();
    let most = counts.iter().copied().max()?;
    let first = counts.iter().position(|&count| 2 * count > most)?;
    Some(numbers[first + counts[first] / 2])
}

#[cfg(test)]
mod tests {
    use super::super::filling::GOLDEN;
    use super::*;

    /// Checks that the size of five logs is that of the first wave of their stalls, though the second and third follow
    /// soon.
    #[test]
    fn logs_that_are_full_in_waves_take_what_lies_between_rounds() {
        let mut watch = Watch::new(10.0, 140.0);
        let wave = |from: u64| (0..5).map(move |log| (from + 100 * log, 1_000));
        watch.stalls =
            [83_000, 87_400, 91_800, 166_000, 170_400, 174_800, 179_200].into_iter().flat_map(wave).collect();
        watch.count = 193_000;
        assert_eq!(watch.full_in_the_middle(83_000), 83_000);
        // Sets that are full one by one: from the median of one round to that of the next.
        watch.stalls = (0..15).flat_map(|set| [(80_000 + 800 * set, 1_000), (166_000 + 800 * set, 1_000)]).collect();
        watch.stalls.sort_unstable();
        assert_eq!(watch.full_in_the_middle(80_000), 86_000);
    }

    /// Checks that logs that free a band at a time are full at their first wave, however many waves follow.
    #[test]
    fn the_first_of_many_even_waves_is_when_logs_were_full() {
        let mut watch = Watch::new(10.0, 140.0);
        watch.stalls =
            (0..24).flat_map(|wave| (0..5).map(move |log| (42_077 + 1_310 * wave + 4 * log, 10_000))).collect();
        watch.count = 73_600;
        assert_eq!(watch.full_in_the_middle(42_077), 42_085);
    }

    /// Checks that a cache in many sets does not count as full at its first full set, long before the others. The other
    /// sets are full late, and not all have been.
    #[test]
    fn the_first_of_many_sets_is_not_the_cache() {
        let mut watch = Watch::new(10.0, 140.0);
        let at = 218_849;
        watch.stalls = vec![(at, 15_700)];
        watch.count = at + at / 4;
        assert!(!watch.is_enough(at), "others may be full soon");
        watch.stalls.extend((0..40).map(|set| (250_000 + 300 * set, 18_000)));
        watch.count = 280_000;
        assert!(!watch.is_enough(at) && watch.round(at).is_none(), "others may be full soon");
        assert!(watch.is_spread(at, watch.full_in_the_middle(at)), "so that it is not for sure");
        // A cache that is emptied as a whole is full again after as many writes.
        watch.stalls = vec![(at, 15_700)];
        watch.count = 3 * at;
        assert!(watch.is_enough(at) && !watch.is_spread(at, watch.full_in_the_middle(at)));
        // A cache that frees a band at a time stalls repeatedly: no more need be seen.
        watch.stalls = (0..54).map(|band| (at + 500 * band, 15_700)).collect();
        watch.count = at + at / 8 + 1;
        assert!(watch.is_enough(at) && !watch.is_spread(at, watch.full_in_the_middle(at)));
    }

    /// Returns the stalls of writes all over a drive of `regions` regions, with a cache of `sets` sets of `blocks`
    /// blocks, some of which hold data at first.
    fn stalls_of_sets(sets: u64, blocks: u64, regions: u64, writes: u64, held: &[u64]) -> Vec<(u64, u64)> {
        let mut fills: Vec<u64> = (0..sets as usize).map(|set| held.get(set).copied().unwrap_or(0)).collect();
        let mut stalls = Vec::new();
        for index in 0..writes {
            let slot = (u128::from(GOLDEN.wrapping_mul(index)) * u128::from(regions * blocks)) >> 64;
            let set = (slot as u64 / blocks % sets) as usize;
            if fills[set] == blocks {
                stalls.push((index, 15_700));
                fills[set] = 0;
            }
            fills[set] += 1;
        }
        stalls
    }

    /// Checks that the size of a cache in many sets is known once each was full, and not before. There are 600 sets of
    /// 256 blocks; half have a region more and are full earlier, and some hold data at first. The cache holds 153,600
    /// writes.
    #[test]
    fn what_many_sets_take_is_known_when_each_was_full() {
        for (regions, held) in [(12, &[][..]), (25, &[20, 5, 10])] {
            let mut watch = Watch::new(10.0, 140.0);
            let all = stalls_of_sets(600, 256, 600 * regions + 300, 450_000, held);
            let (at, last) = (all[0].0, all[599].0);
            assert!(at > SMALL_WRITES, "{at}");
            let see = |watch: &mut Watch, count: u64| {
                watch.count = count;
                watch.stalls = all.iter().copied().filter(|(index, _)| *index < count).collect();
                watch.round(at)
            };
            for count in (at + 1..=last).step_by(100) {
                assert!(see(&mut watch, count).is_none(), "{regions} regions: {count} of {last} writes");
            }
            let round = (last..all[600].0).step_by(100).find_map(|count| see(&mut watch, count)).expect("it is over");
            assert_eq!(round.sets, 600);
            assert!(round.count.abs_diff(153_600) < 153_600 / 200, "{}", round.count);
        }
    }

    /// Checks that the watch does not end before all sets were full: 600 sets with 25 or 26 regions each are full long
    /// after the first.
    #[test]
    fn sets_full_one_by_one_are_watched_until_all_are() {
        let mut watch = Watch::new(10.0, 140.0);
        let all = stalls_of_sets(600, 256, 600 * 25 + 300, 450_000, &[20, 5, 10]);
        let at = all[0].0;
        let is_enough = |&count: &u64| {
            watch.count = count;
            watch.stalls = all.iter().copied().filter(|(index, _)| *index < count).collect();
            watch.is_enough(at)
        };
        let enough = (at + 1..).step_by(100).find(is_enough).expect("it comes");
        assert!(all[599].0 < enough && enough < all[600].0, "{enough}");
        let full = watch.full(at);
        assert!(!full.is_spread && full.parts == 600 && full.count.abs_diff(153_600) < 153_600 / 200, "{full:?}");
    }

    /// Checks that sets that were full twice give no round.
    #[test]
    fn a_set_that_was_full_twice_is_none_of_a_round() {
        let (mut watch, at) = (Watch::new(10.0, 140.0), 200_000);
        watch.stalls = (0..40).map(|set| (at + 300 * set, 15_700)).collect();
        watch.count = 2 * at;
        assert_eq!(watch.round(at).expect("each was full once").sets, 40);
        watch.stalls.push((2 * at, 15_700));
        watch.count = 4 * at;
        assert!(watch.round(at).is_none());
    }

    /// Checks that logs that free a band at a time never seem to hold another size than that of their first wave. There
    /// are twenty logs of two to twelve bands, of which one held data, or each another amount.
    #[test]
    fn waves_of_logs_that_free_a_band_at_a_time_are_not_taken_for_rounds() {
        const LOG: u64 = 240_000;
        let waves = |full: u64, bands: u64| (0..24).map(move |wave| full + wave * LOG / bands);
        for bands in 2..12 {
            let alike = (1..20).map(|nth| LOG + 10 * nth).chain([216_000]);
            let unequal = (0..20).map(|nth| 228_000 + 600 * nth);
            for full in [alike.collect::<Vec<u64>>(), unequal.collect()] {
                let mut all: Vec<u64> = full.iter().flat_map(|&full| waves(full, bands)).collect();
                all.sort_unstable();
                let (mut watch, at) = (Watch::new(10.0, 140.0), all[0]);
                for count in (at + 1..2 * at).step_by(1_000) {
                    watch.count = count;
                    watch.stalls = all.iter().filter(|&&index| index < count).map(|&index| (index, 15_700)).collect();
                    let is_right = watch.round(at).is_none_or(|round| round.count.abs_diff(LOG) < LOG / 30);
                    assert!(is_right, "{bands} bands, {count} writes: {:?}", watch.round(at));
                }
            }
        }
    }

    /// Checks that sets of unequal sizes give no round: their sizes vary up to a factor of almost 2, with equal shares
    /// of the writes.
    #[test]
    fn sets_of_many_sizes_are_no_round() {
        let mut watch = Watch::new(10.0, 140.0);
        let at = 200_000;
        watch.stalls = (0..200).map(|set| (at + at * set * 7 / 2_000, 15_700)).collect();
        watch.count = 2 * at;
        assert!(watch.count - watch.stalls[199].0 > at / QUIET_PART && watch.round(at).is_none());
        watch.stalls.retain(|(index, _)| *index < at + at / 5);
        assert!(watch.round(at).is_some());
    }

    /// Checks that stalls that may be a round of sets, or logs that free a band at a time, give a guess if the sizes
    /// differ. The stalls are of 34 sets of 656 blocks, or 22,304 writes, some of which held data.
    #[test]
    fn stalls_that_may_be_of_sets_or_of_logs_are_a_guess() {
        let mut watch = Watch::new(10.0, 140.0);
        let sets = [
            17_899, 18_427, 18_582, 18_618, 18_692, 18_727, 18_977, 19_253, 19_517, 19_603, 20_510, 20_583, 21_040,
            21_225, 21_699, 21_719, 22_168, 22_216, 22_972, 23_348, 23_567, 23_660, 24_398, 24_576, 24_603, 24_786,
            24_967, 25_057, 25_373, 25_630, 25_826, 25_880, 25_995, 26_038,
        ];
        watch.stalls = sets.map(|at| (at, 36_900)).to_vec();
        watch.count = 31_324;
        let round = watch.round(17_899).expect("each was full once");
        assert!(round.sets == 34 && round.count.abs_diff(22_304) < 22_304 / 40, "{round:?}");
        assert!(watch.full(17_899).is_spread);
        // Seven logs of eight bands, which stall no more after their third wave.
        let waves =
            [0, 6_273, 12_530].into_iter().flat_map(|wave| (0..7).map(move |log| (50_109 + wave + 3 * log, 48_100)));
        watch.stalls = waves.collect();
        watch.count = 87_691;
        let full = watch.full(50_109);
        assert!(!full.is_spread && full.count.abs_diff(50_109) < 100, "{full:?}");
    }

    /// Checks that answers that are delayed now and then by another cause are not taken for a full cache.
    #[test]
    fn answers_held_up_for_any_time_are_not_taken_for_a_full_cache() {
        // The delays are shorter than a stall for a long time, then a little longer.
        let longest = |index: u64| if index < 12_000 { 110 } else { 170 };
        let held = |index: u64| if index % 60 == 59 { 20 + index * 37 % longest(index) } else { 10 };
        assert_eq!(full_at((0..20_000).map(held)), None);
    }

    fn full_at(latencies: impl Iterator<Item = u64>) -> Option<u64> {
        let mut watch = Watch::new(10.0, 140.0);
        let (mut latencies, mut now) = (latencies, 0);
        latencies.find_map(|latency| {
            now += latency;
            watch.see(now)
        })
    }

    #[test]
    fn merges_of_the_map_are_not_taken_for_a_full_cache() {
        let merged = |index: u64| if index % 240 == 239 { 325 } else { 25 };
        assert_eq!(full_at((0..5000).map(merged)), None);
        // From the 3000th write on, every hundredth waits for the cleaning of a band.
        let cleaned = |index: u64| if index >= 3000 && index.is_multiple_of(100) { 700 } else { merged(index) };
        assert_eq!(full_at((0..5000).map(cleaned)), Some(3000));
    }

    #[test]
    fn a_stall_that_no_merge_takes_needs_no_second() {
        assert_eq!(full_at((0..5000).map(|index| if index == 4000 { 90_000 } else { 10 })), Some(4000));
    }
}
