//! Watching for a full cache: what the times say at which writes waited for cleaning.
//!
//! Merges of the map stall a write as well, but all alike and from the first on. So the cache was full at the first stall
//! that is longer than every one before it and has more after it before long, or that is longer than any merge can be. A cache
//! in parts is full part by part: what it takes follows from when each was.

use crate::statistics::is_near;

/// A stall: so many rotations without an answer, and so many times as long as usual.
const STALL_ROTATIONS: f64 = 14.0;
const STALL_TIMES: f64 = 3.0;
/// A stall is another kind than those before it if it is so many times as long.
const KIND: f64 = 1.5;
/// No merge of a map takes so many rotations.
const CLEANING_ROTATIONS: f64 = 400.0;
/// Where a cache takes no more, what other tests left in it counts.
const SMALL_WRITES: u64 = 130_000;
/// Times between answers from which it is learned what is usual.
const GAPS: usize = 64;
/// Stalls begin long after the first if that is more than this part of all writes before it.
const LATE_PART: u64 = 20;
/// So many sets are many. Each was full once if then no write waits for so many writes, as a part of those before the first wait,
/// and for so many times as many as between any two waits: waves of logs that free a band at a time are evenly apart.
const ROUND_MIN: usize = 16;
const QUIET_PART: u64 = 8;
const QUIET_TIMES: u64 = 2;
/// Waves are narrower than the one part of the first of many numbers, and farther apart than the other.
const WAVE_PART: u64 = 800;
const BETWEEN_PART: u64 = 80;
/// Two means of when sets were full that differ by less than this are one.
const MEANS_ALIKE: f64 = 0.02;

/// Stalls of a cache in many sets, of which each was full once.
#[derive(Debug)]
struct Round {
    /// Writes that the cache takes.
    count: u64,
    sets: usize,
}

/// A full cache, as in [`super::filling::Filled`].
#[derive(Debug)]
pub struct Full {
    pub count: u64,
    pub parts: usize,
    pub is_spread: bool,
}

/// Watches for the stall at which the cache was full. What counts is the time from one answer to the next, whatever the
/// depth.
pub struct Watch {
    limit: u64,
    certain: u64,
    /// Writes seen.
    pub count: u64,
    last_end: u64,
    /// Times between answers, for what is usual.
    gaps: Vec<u64>,
    usual: u64,
    longest: u64,
    candidate: Option<(u64, u64)>,
    /// Of how many writes which waited, and for how long.
    pub stalls: Vec<(u64, u64)>,
}

impl Watch {
    pub fn new(rotation: f64) -> Watch {
        Watch {
            limit: (STALL_ROTATIONS * rotation) as u64,
            certain: (CLEANING_ROTATIONS * rotation) as u64,
            count: 0,
            last_end: 0,
            gaps: Vec::new(),
            usual: 0,
            longest: 0,
            candidate: None,
            stalls: Vec::new(),
        }
    }

    /// Whether enough was seen after a cache was full at `at`: where what it held before counts, until its parts are full a
    /// second time; where sets are full one by one, until all were.
    pub fn is_enough(&self, at: u64) -> bool {
        if at > SMALL_WRITES {
            // A stall alone is that of a whole cache, or of the first of many sets: then the others' are to come.
            let others = self.stalls.iter().map(|(index, _)| *index).find(|&index| index > at + at / 50);
            let from = if self.is_alone(at) { others.unwrap_or(at + at) } else { at };
            let is_over = || self.count > at + at || self.round(at).is_some();
            return self.count > from + at / 8 && (is_over() || !self.is_spread(at, self.full_in_the_middle(at)));
        }
        let last = self.stalls.last().map_or(at, |(index, _)| *index);
        let is_second_over = last > at + 3 * at / 4 && self.count > last + at / 4;
        self.count > 3 * at || (self.goes_on(at) && self.count > at + 3 * at / 4) || is_second_over
    }

    /// Whether the stall after `at` writes had no other soon after it.
    fn is_alone(&self, at: u64) -> bool {
        self.stalls.iter().filter(|(index, _)| (at..=at + at / 50).contains(index)).count() == 1
    }

    /// Whether most stalls began long after the first, at `at`, so that what lies between, at `count`, is a guess.
    fn is_spread(&self, at: u64, count: u64) -> bool {
        (at > SMALL_WRITES || self.goes_on(at)) && count > at + at / LATE_PART
    }

    /// The sets that were full one by one from `at` on, if all were, and none twice. Alike sets take `s` writes each; the one
    /// that was full after `t` gets `s / t` of all writes, and all of them together get all: `s` is one by the sum of all `1 / t`,
    /// and the cache the harmonic mean of the `t`. If the sets differed in what they take, and not in what they get, it would be
    /// the arithmetic mean: only where these are alike is it known.
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

    /// Whether writes stall again when less was written than the cache takes: only a part was emptied then, as where a
    /// log is cleaned from its end; and not all of a part, as where each is a set.
    fn goes_on(&self, at: u64) -> bool {
        self.stalls.iter().any(|(index, _)| (at + at / 4..at + 7 * at / 10).contains(index))
    }

    /// What the stalls from `at` on say. Where they may be those of sets that were each full once, and that would be another size,
    /// it is a guess.
    pub fn full(&self, at: u64) -> Full {
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

    /// When all was full. A cache in sets is full set by set: half of them are at the middle one of the stalls, and from
    /// there to the middle the next time is what they take, whatever they held before. Logs of zones are full at one
    /// time, but for some that held something before.
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

    /// Takes a completed write; if the cache was full, how many writes before.
    pub fn see(&mut self, end: u64) -> Option<u64> {
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
            // An answer may be held up by something else, for any time: a little longer than another is no stall then.
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
/// Whether rising numbers come in waves, narrow and of as many each: logs of which each frees a band at a time are full
/// together again and again. Sets that are full one by one come in none.
fn come_in_waves(numbers: &[u64], narrow: u64) -> bool {
    let waves: Vec<&[u64]> = numbers.chunk_by(|one, next| next - one <= narrow).collect();
    let alike = |wave: &&[u64]| wave.len() == waves[0].len() && wave[wave.len() - 1] - wave[0] <= narrow;
    waves.len() > 1 && waves[0].len() > 2 && waves.iter().all(alike)
}

/// Whether rising numbers stand in waves with next to none between them: logs are full together, again and again.
fn are_waves(numbers: &[u64]) -> bool {
    let beside = |part: u64| -> usize {
        let reach = numbers[0] / part;
        let until = |bound: u64| numbers.partition_point(|&number| number <= bound);
        numbers.iter().map(|&number| until(number + reach) - until(number - reach - 1)).sum()
    };
    10 * beside(WAVE_PART) > 9 * beside(BETWEEN_PART)
}

/// Where the first of the densest stretches of rising numbers is, a few hundredths of the first number wide: wider ones
/// farther on would hold more of the same waves.
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

    /// Goal: what five logs take is told from the first wave of their stalls, though the second and the third come soon.
    #[test]
    fn logs_that_are_full_in_waves_take_what_lies_between_rounds() {
        let mut watch = Watch::new(10.0);
        let wave = |from: u64| (0..5).map(move |log| (from + 100 * log, 1_000));
        watch.stalls =
            [83_000, 87_400, 91_800, 166_000, 170_400, 174_800, 179_200].into_iter().flat_map(wave).collect();
        watch.count = 193_000;
        assert_eq!(watch.full_in_the_middle(83_000), 83_000);
        // Sets one by one: from the middle of one round to that of the next.
        watch.stalls = (0..15).flat_map(|set| [(80_000 + 800 * set, 1_000), (166_000 + 800 * set, 1_000)]).collect();
        watch.stalls.sort_unstable();
        assert_eq!(watch.full_in_the_middle(80_000), 86_000);
    }

    /// Goal: logs that free a band at a time are full at their first wave, however many come after it.
    #[test]
    fn the_first_of_many_even_waves_is_when_logs_were_full() {
        let mut watch = Watch::new(10.0);
        watch.stalls =
            (0..24).flat_map(|wave| (0..5).map(move |log| (42_077 + 1_310 * wave + 4 * log, 10_000))).collect();
        watch.count = 73_600;
        assert_eq!(watch.full_in_the_middle(42_077), 42_085);
    }

    /// Goal: a cache in many sets is not taken to be full when the first of them is, long before the others. Method: sets that were
    /// full late, and have not all been.
    #[test]
    fn the_first_of_many_sets_is_not_the_cache() {
        let mut watch = Watch::new(10.0);
        let at = 218_849;
        watch.stalls = vec![(at, 15_700)];
        watch.count = at + at / 4;
        assert!(!watch.is_enough(at), "others may be full soon");
        watch.stalls.extend((0..40).map(|set| (250_000 + 300 * set, 18_000)));
        watch.count = 280_000;
        assert!(!watch.is_enough(at) && watch.round(at).is_none(), "others may be full soon");
        assert!(watch.is_spread(at, watch.full_in_the_middle(at)), "so that it is not for sure");
        // A cache that is emptied as a whole is full again when as much was written once more.
        watch.stalls = vec![(at, 15_700)];
        watch.count = 3 * at;
        assert!(watch.is_enough(at) && !watch.is_spread(at, watch.full_in_the_middle(at)));
        // One that frees a band at a time stalls again and again: no more need be seen.
        watch.stalls = (0..54).map(|band| (at + 500 * band, 15_700)).collect();
        watch.count = at + at / 8 + 1;
        assert!(watch.is_enough(at) && !watch.is_spread(at, watch.full_in_the_middle(at)));
    }

    /// When writes all over a drive of so many regions wait, where it has so many sets of `blocks` blocks, some of which hold
    /// something.
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

    /// Goal: what a cache in many sets takes is told once each of them was full, and not before. Method: 600 sets of 256 blocks, half of
    /// which have a region more than others, so that they are full before them, and some of which hold something: 153,600 writes.
    #[test]
    fn what_many_sets_take_is_known_when_each_was_full() {
        for (regions, held) in [(12, &[][..]), (25, &[20, 5, 10])] {
            let mut watch = Watch::new(10.0);
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

    /// Goal: it is not ended before. Method: as many sets with 25 regions each or one more, which are full long after the first.
    #[test]
    fn sets_full_one_by_one_are_watched_until_all_are() {
        let mut watch = Watch::new(10.0);
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

    /// Goal: sets that were full twice tell nothing.
    #[test]
    fn a_set_that_was_full_twice_is_none_of_a_round() {
        let (mut watch, at) = (Watch::new(10.0), 200_000);
        watch.stalls = (0..40).map(|set| (at + 300 * set, 15_700)).collect();
        watch.count = 2 * at;
        assert_eq!(watch.round(at).expect("each was full once").sets, 40);
        watch.stalls.push((2 * at, 15_700));
        watch.count = 4 * at;
        assert!(watch.round(at).is_none());
    }

    /// Goal: logs that free a band at a time take what their first wave tells or nothing for sure, whenever one looks. Method: twenty
    /// logs of two to twelve bands, one of which held something, or each another amount.
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
                let (mut watch, at) = (Watch::new(10.0), all[0]);
                for count in (at + 1..2 * at).step_by(1_000) {
                    watch.count = count;
                    watch.stalls = all.iter().filter(|&&index| index < count).map(|&index| (index, 15_700)).collect();
                    let is_right = watch.round(at).is_none_or(|round| round.count.abs_diff(LOG) < LOG / 30);
                    assert!(is_right, "{bands} bands, {count} writes: {:?}", watch.round(at));
                }
            }
        }
    }

    /// Goal: of sets that take more or less than others it is not known what they take together. Method: from one to almost twice
    /// as much, all of which get as much.
    #[test]
    fn sets_of_many_sizes_are_no_round() {
        let mut watch = Watch::new(10.0);
        let at = 200_000;
        watch.stalls = (0..200).map(|set| (at + at * set * 7 / 2_000, 15_700)).collect();
        watch.count = 2 * at;
        assert!(watch.count - watch.stalls[199].0 > at / QUIET_PART && watch.round(at).is_none());
        watch.stalls.retain(|(index, _)| *index < at + at / 5);
        assert!(watch.round(at).is_some());
    }

    /// Goal: what may be sets that were each full once, or logs that free a band at a time, is a guess where those take other sizes.
    /// Method: stalls of a drive of 34 sets of 656 blocks, which are 22,304 writes, some of which held something.
    #[test]
    fn stalls_that_may_be_of_sets_or_of_logs_are_a_guess() {
        let mut watch = Watch::new(10.0);
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
        // Seven logs of eight bands that rest after their third wave.
        let waves =
            [0, 6_273, 12_530].into_iter().flat_map(|wave| (0..7).map(move |log| (50_109 + wave + 3 * log, 48_100)));
        watch.stalls = waves.collect();
        watch.count = 87_691;
        let full = watch.full(50_109);
        assert!(!full.is_spread && full.count.abs_diff(50_109) < 100, "{full:?}");
    }

    /// Goal: answers that something else holds up for any time now and then are no full cache.
    #[test]
    fn answers_held_up_for_any_time_are_not_taken_for_a_full_cache() {
        // For long less than a stall takes, then a little more.
        let longest = |index: u64| if index < 12_000 { 110 } else { 170 };
        let held = |index: u64| if index % 60 == 59 { 20 + index * 37 % longest(index) } else { 10 };
        assert_eq!(full_at((0..20_000).map(held)), None);
    }

    fn full_at(latencies: impl Iterator<Item = u64>) -> Option<u64> {
        let mut watch = Watch::new(10.0);
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
        // From the 3000th on every hundredth write waits for a band.
        let cleaned = |index: u64| if index >= 3000 && index.is_multiple_of(100) { 700 } else { merged(index) };
        assert_eq!(full_at((0..5000).map(cleaned)), Some(3000));
    }

    #[test]
    fn a_stall_that_no_merge_takes_needs_no_second() {
        assert_eq!(full_at((0..5000).map(|index| if index == 4000 { 90_000 } else { 10 })), Some(4000));
    }
}
