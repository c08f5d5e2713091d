//! A sorted array of runs that takes six, eight or twelve bytes a run: the storage of [`super::run_list`].
//!
//! ```text
//!   offsets ─►      room      ◄─ values, the last run's first
//!
//!   narrow   offset 16 bits │ length and place 32 bits together, as many of them for the place as the places need
//!   middle   offset 16 bits │ length 16 bits │ place 32 bits
//!   wide     offset 32 bits │ length 32 bits │ place 32 bits
//! ```
//!
//! All runs of an array have one form. An array begins narrow and becomes wider when a run is added that needs a wider
//! form. A search compares offsets that lie side by side, so the processor fetches their cache lines in parallel.
//!
//! Invariants:
//! 1. Every run fits the form of its array, and so does every part of the run.
//! 2. Lengths are stored minus one, because no run is empty.

use super::prefetch::{prefetch, prefetch_all};
use super::short_run::{ABSENT, ShortRun};

/// Number of offsets that a search compares at once, after it has halved the array down to that number.
const COMPARED: usize = 32;
/// Maximum length, in runs, of an array that is prefetched as a whole before a search.
const FETCHED_MAX: usize = 128;
/// One more than the largest 16-bit offset.
const SHORT_END: u32 = 1 << 16;
/// First capacity of an array, in runs. Capacities are this number plus a multiple of twice this number. With the
/// allocator's own 8 bytes, narrow runs then fill a multiple of 16 bytes.
const ROOM_MIN: usize = 4;
/// A full array grows by one part in this many. If it doubled instead, a third of the memory of thousands of arrays
/// would be empty.
const GROWTH_PART: usize = 8;

/// The format in which the runs of an array are stored, from the narrowest to the widest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
enum Form {
    Narrow,
    Middle,
    Wide,
}

impl Form {
    #[inline]
    fn offset_words(self) -> usize {
        1 + usize::from(self == Form::Wide)
    }

    #[inline]
    fn value_words(self) -> usize {
        2 + self as usize
    }

    #[inline]
    fn words(self) -> usize {
        self.offset_words() + self.value_words()
    }
}

/// A sorted array of runs, each packed in six, eight or twelve bytes; all runs of an array have one packed form.
#[derive(Clone, Debug)]
pub(super) struct PackedRuns {
    words: Box<[u16]>,
    len: u32,
    form: Form,
    /// Bits of a place in the narrow form.
    place_bits: u8,
}

fn joined(words: [u16; 2]) -> u32 {
    u32::from(words[0]) | u32::from(words[1]) << 16
}

fn split(value: u32) -> [u16; 2] {
    [value as u16, (value >> 16) as u16]
}

impl PackedRuns {
    /// Returns an empty array. Runs whose places are below `places` can have the narrow form of six bytes.
    pub(super) fn new(places: u32) -> PackedRuns {
        let place_bits = (u32::BITS - places.leading_zeros()) as u8;
        PackedRuns { words: Box::default(), len: 0, form: Form::Narrow, place_bits }
    }

    /// Empties the array and frees its memory.
    pub(super) fn clear(&mut self) {
        (self.words, self.len, self.form) = (Box::default(), 0, Form::Narrow);
    }

    /// Moves the contents to a new array, which is returned, and leaves this array empty.
    pub(super) fn take(&mut self) -> PackedRuns {
        let words = std::mem::take(&mut self.words);
        let taken = PackedRuns { words, ..*self };
        (self.len, self.form) = (0, Form::Narrow);
        taken
    }

    /// Returns the number of runs.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the bytes of heap memory that the array takes, unused capacity included.
    pub(super) fn measured_bytes(&self) -> u64 {
        size_of_val(&*self.words) as u64
    }

    /// Makes the processor prefetch memory that a search reads. For an array of up to 128 runs, also the memory that an
    /// insertion moves.
    #[inline]
    pub(super) fn foresee(&self) {
        let (offsets, values) = (self.len() * self.form.offset_words(), self.len() * self.form.value_words());
        if self.len() <= FETCHED_MAX {
            prefetch_all(&self.words[..offsets]);
            prefetch_all(&self.words[self.words.len() - values..]);
        } else {
            prefetch(&self.words[offsets / 2]);
        }
    }

    /// Returns the offset of the run at `index`, counted from 0.
    #[inline]
    pub(super) fn offset(&self, index: usize) -> u32 {
        match self.form {
            Form::Narrow | Form::Middle => u32::from(self.words[index]),
            Form::Wide => joined([self.words[2 * index], self.words[2 * index + 1]]),
        }
    }

    /// Returns the run at `index`, counted from 0.
    #[inline]
    pub(super) fn run(&self, index: usize) -> ShortRun {
        let offset = self.offset(index);
        if self.form == Form::Narrow {
            let (length, place) = self.unpacked(joined(*self.value(index)));
            return ShortRun { offset, length: length + 1, place };
        }
        if self.form == Form::Middle {
            let [length, low, high] = *self.value(index);
            return ShortRun { offset, length: u32::from(length) + 1, place: joined([low, high]) };
        }
        let [short, long, low, high] = *self.value(index);
        ShortRun { offset, length: joined([short, long]) + 1, place: joined([low, high]) }
    }

    /// Returns the number of runs that begin at or before `offset`.
    #[inline]
    pub(super) fn upper_bound(&self, offset: u32) -> usize {
        if self.form == Form::Wide {
            return self.wide_begun_by(offset);
        }
        let offset = offset.min(SHORT_END - 1) as u16;
        let offsets = &self.words[..self.len()];
        let (mut first, mut len) = (0, offsets.len());
        while len > COMPARED {
            let half = len / 2;
            // A mask of all ones or all zeros instead of a branch, which the processor might predict wrongly.
            first += half & usize::from(offsets[first + half] <= offset).wrapping_neg();
            len -= half;
        }
        // A window of fixed length needs no loop for a remainder. The runs before the window begin before those in it.
        let first = first.min(offsets.len().saturating_sub(COMPARED));
        match offsets[first..].first_chunk::<COMPARED>() {
            Some(window) => first + begun_of(window, offset),
            None => begun_of(offsets, offset),
        }
    }

    fn wide_begun_by(&self, offset: u32) -> usize {
        let (mut first, mut end) = (0, self.len());
        while first < end {
            let middle = first.midpoint(end);
            if self.offset(middle) <= offset {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        first
    }

    /// Replaces the run at `index`. The new run must keep the order.
    #[inline]
    pub(super) fn set(&mut self, index: usize, run: ShortRun) {
        self.make_room(self.len(), std::slice::from_ref(&run));
        self.put(index, run);
    }

    /// Inserts a run before the run at `index`, or after the last one if `index` is their number. The run must keep the
    /// order.
    #[inline]
    pub(super) fn insert(&mut self, index: usize, run: ShortRun) {
        self.make_room(self.len() + 1, std::slice::from_ref(&run));
        self.move_runs(index, index + 1);
        self.put(index, run);
    }

    /// Replaces the `met` runs from index `first` on by `parts`, which may be more or fewer. They must keep the order.
    pub(super) fn splice(&mut self, first: usize, met: usize, parts: &[ShortRun]) {
        self.make_room(self.len() - met + parts.len(), parts);
        self.move_runs(first + met, first + parts.len());
        (first..).zip(parts).for_each(|(index, &run)| self.put(index, run));
    }

    /// Moves the runs from index `from` on, so that the first of them gets index `to`.
    #[inline]
    fn move_runs(&mut self, from: usize, to: usize) {
        let (len, end) = (self.len(), self.words.len());
        let new_len = len - from + to;
        if from < len && from != to {
            let (per_offset, per_value) = (self.form.offset_words(), self.form.value_words());
            self.words.copy_within(from * per_offset..len * per_offset, to * per_offset);
            self.words.copy_within(end - len * per_value..end - from * per_value, end - new_len * per_value);
        }
        self.len = new_len as u32;
    }

    /// Returns the 16-bit words of the value of run number `index`. `WORDS` is the number that the array's form has.
    #[inline]
    fn value<const WORDS: usize>(&self, index: usize) -> &[u16; WORDS] {
        let at = self.words.len() - (index + 1) * WORDS;
        self.words[at..].first_chunk().expect("a run has room for its value")
    }

    #[inline]
    fn set_value<const WORDS: usize>(&mut self, index: usize, value: [u16; WORDS]) {
        let at = self.words.len() - (index + 1) * WORDS;
        *self.words[at..].first_chunk_mut().expect("a run has room for its value") = value;
    }

    /// Returns the code of a trimmed place in the narrow form: higher than every other place.
    #[inline]
    fn absent_code(&self) -> u32 {
        ((1_u64 << self.place_bits) - 1) as u32
    }

    /// Returns the length minus one and the place of a narrow run.
    #[inline]
    fn unpacked(&self, value: u32) -> (u32, u32) {
        let code = value & self.absent_code();
        let place = if code == self.absent_code() { ABSENT } else { code };
        ((u64::from(value) >> self.place_bits) as u32, place)
    }

    /// Returns the narrowest form that fits a run and every part of it.
    #[inline]
    fn form_of(&self, run: &ShortRun) -> Form {
        let (less_one, absent) = (run.length - 1, run.is_absent());
        let is_packed = u64::from(less_one) >> (u32::BITS - u32::from(self.place_bits)) == 0
            && (absent || u64::from(run.place) + u64::from(less_one) < u64::from(self.absent_code()));
        match u64::from(run.offset) + u64::from(run.length) <= u64::from(SHORT_END) {
            true if is_packed => Form::Narrow,
            true => Form::Middle,
            false => Form::Wide,
        }
    }

    #[inline]
    fn put(&mut self, index: usize, run: ShortRun) {
        let (length, [low, high]) = (run.length - 1, split(run.place));
        if self.form == Form::Wide {
            let [short, long] = split(length);
            self.words[2 * index..2 * index + 2].copy_from_slice(&split(run.offset));
            return self.set_value(index, [short, long, low, high]);
        }
        self.words[index] = run.offset as u16;
        if self.form == Form::Narrow {
            let code = run.place.min(self.absent_code());
            self.set_value(index, split((u64::from(length) << self.place_bits) as u32 | code));
        } else {
            self.set_value(index, [length as u16, low, high]);
        }
    }

    /// Makes room for a total of `runs`, which includes the runs in `coming`. Widens the form if one of `coming` needs
    /// that.
    #[inline]
    fn make_room(&mut self, runs: usize, coming: &[ShortRun]) {
        let form = coming.iter().map(|run| self.form_of(run)).fold(self.form, Form::max);
        if form != self.form || runs * form.words() > self.words.len() {
            self.remake(form, runs);
        }
    }

    #[cold]
    fn remake(&mut self, form: Form, runs: usize) {
        let room = self.words.len() / self.form.words();
        let room = if runs > room { room_for(runs.max(room + room / GROWTH_PART)) } else { room };
        let words = vec![0; room * form.words()].into_boxed_slice();
        let mut remade = PackedRuns { words, form, ..*self };
        if form == self.form {
            let (offsets, values) = (self.len() * form.offset_words(), self.len() * form.value_words());
            let (start, end) = (remade.words.len() - values, self.words.len() - values);
            remade.words[..offsets].copy_from_slice(&self.words[..offsets]);
            remade.words[start..].copy_from_slice(&self.words[end..]);
        } else {
            (0..self.len()).for_each(|index| remade.put(index, self.run(index)));
        }
        *self = remade;
    }
}

/// Returns the number of `offsets` that are at most `offset`.
#[inline]
fn begun_of(offsets: &[u16], offset: u16) -> usize {
    usize::from(offsets.iter().map(|&begin| u16::from(begin <= offset)).sum::<u16>())
}

/// Returns the capacity, in runs, of an array that must hold `runs`.
fn room_for(runs: usize) -> usize {
    (runs - ROOM_MIN.min(runs)).next_multiple_of(2 * ROOM_MIN) + ROOM_MIN
}

#[cfg(test)]
mod tests {
    //! Goal: an array equals a vector of runs, in every form and across changes of form. Method: random splices on
    //! both, with offsets, lengths and places on both sides of each form's limits. Also the bytes that each form takes.

    use super::*;
    use proptest::prelude::*;

    /// Bound on places, below 2²⁸: 4 bits are left for lengths in the narrow form.
    const PLACES: u32 = (1 << 28) - 1;

    fn any_run() -> impl Strategy<Value = ShortRun> {
        let offset = prop_oneof![40 => 0..1000_u32, 1 => 65_500..65_600_u32, 1 => u32::MAX - 99..u32::MAX - 40];
        let length = prop_oneof![40 => 1..=16_u32, 1 => 17..40_u32, 1 => 65_500..65_600_u32];
        let place = prop_oneof![40 => 0..PLACES - 16, 1 => PLACES - 16..PLACES, 4 => Just(ABSENT)];
        (offset, length, place).prop_map(|(offset, length, place)| {
            let length = length.min(u32::MAX - offset);
            ShortRun {
                offset,
                length,
                place: place.min(ABSENT - 1 - length).max(if place == ABSENT { ABSENT } else { 0 }),
            }
        })
    }

    proptest! {
        #[test]
        fn equals_a_vector(
            forms in 1usize..60,
            steps in prop::collection::vec((any::<u16>(), 0usize..3, prop::collection::vec(any_run(), 0..4)), 1..150),
        ) {
            let (mut array, mut twin) = (PackedRuns::new(PLACES), Vec::new());
            for (number, (at, met, parts)) in steps.into_iter().enumerate() {
                // Runs that need a wider form come late, so that every form is tested.
                let parts: Vec<_> = parts.into_iter().filter(|run| array.form_of(run) as usize <= number / forms).collect();
                let first = usize::from(at) % (twin.len() + 1);
                let met = met.min(twin.len() - first);
                twin.splice(first..first + met, parts.iter().copied());
                array.splice(first, met, &parts);
                if let (Some(run), Some(last)) = (parts.first(), twin.last_mut()) {
                    *last = *run;
                    array.set(twin.len() - 1, *run);
                }
                prop_assert_eq!((0..array.len()).map(|index| array.run(index)).collect::<Vec<_>>(), twin.clone());
                prop_assert!((0..array.len()).all(|index| array.offset(index) == twin[index].offset));
            }
            let taken = array.take();
            prop_assert_eq!((taken.len(), array.len(), array.measured_bytes()), (twin.len(), 0, 0));
        }

        #[test]
        fn a_search_equals_one_of_a_vector(first in prop_oneof![Just(0), Just(64_000), Just(1 << 31)], count in 0usize..700) {
            let mut array = PackedRuns::new(PLACES);
            let offsets: Vec<u32> = (0..count as u32).map(|index| first + index * 3).collect();
            for (index, &offset) in offsets.iter().enumerate() {
                array.splice(index, 0, &[ShortRun { offset, length: 2, place: 5 }]);
            }
            for offset in (first.saturating_sub(2)..first + 3 * count as u32 + 2).chain([u32::MAX]) {
                prop_assert_eq!(array.upper_bound(offset), offsets.partition_point(|&begin| begin <= offset));
            }
        }
    }

    #[test]
    fn a_run_takes_as_many_bytes_as_it_needs() {
        let narrow = ShortRun { offset: 65_520, length: 16, place: PLACES - 16 };
        let cases = [
            (narrow, 6),
            (ShortRun { place: ABSENT, ..narrow }, 6),
            (ShortRun { offset: 0, length: 17, place: 0 }, 8),
            (ShortRun { place: PLACES - 15, ..narrow }, 8),
            (ShortRun { offset: 65_521, ..narrow }, 12),
        ];
        for (run, bytes) in cases {
            let mut array = PackedRuns::new(PLACES);
            array.splice(0, 0, &[run]);
            assert_eq!((array.run(0), array.measured_bytes()), (run, 4 * bytes), "{run:?}");
        }
        // With the highest possible number of places no bit is left for lengths: only runs of length one are narrow.
        let mut array = PackedRuns::new(u32::MAX);
        for (length, bytes) in [(1, 24), (2, 32)] {
            let run = ShortRun { offset: 3, length, place: u32::MAX - 1 - length };
            array.splice(0, array.len(), &[run]);
            assert_eq!((array.run(0), array.measured_bytes()), (run, bytes));
        }
    }

    #[test]
    fn an_array_that_grows_has_an_eighth_of_room() {
        let mut array = PackedRuns::new(PLACES);
        for index in 0..5000_u32 {
            array.splice(index as usize, 0, &[ShortRun { offset: index, length: 1, place: index }]);
            let (room, len) = (array.measured_bytes() as usize / 6, array.len());
            assert!(room < len + len / 8 + 8, "{room} for {len}");
            // The allocator adds 8 bytes to each array: 20 narrow runs take 120 bytes and 8 more.
            assert_eq!((room * 6 + 8) % 16, 0);
        }
    }
}
