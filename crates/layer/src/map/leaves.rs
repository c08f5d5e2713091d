//! Sorted runs, in leaves of fixed size under two levels of fences (first numbers): the storage of
//! [`super::extent_map`].
//!
//! ```text
//!   fences of branches ─► branch: fences of its leaves ─► leaf: firsts │ lengths │ places
//! ```
//!
//! A search compares only the first numbers of runs. A leaf keeps these side by side, apart from lengths and places, so
//! that the processor fetches their few cache lines in parallel. A look-up and an insertion descend once. An insertion
//! directly after the previous one does not descend.
//!
//! Invariants:
//! 1. Runs are ordered by first number. The caller ensures that they are disjoint.
//! 2. No leaf and no branch is empty, and a fence is the first number of the first run in its leaf or branch.
//! 3. After a removal, two neighbouring leaves that together fill at most half a leaf are merged; branches likewise.
//! 4. The remembered spot is right after the run that was inserted last, in the leaf of that run.

use super::prefetch::prefetch_all;

/// Maximum number of runs in a leaf.
const LEAF_RUNS: usize = 32;
/// Maximum number of leaves in a branch.
const BRANCH_LEAVES: usize = 64;

/// A run of consecutive numbers (LBAs), and the place of the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub first: u64,
    pub length: u32,
    pub place: u64,
}

impl Run {
    /// Returns one past the last number of the run.
    pub(super) fn end(&self) -> u64 {
        self.first + self.length as u64
    }
}

/// The position of a run, or of one to be inserted. The position after the last run of a leaf also stands for the first
/// run of the next leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    branch: usize,
    leaf: usize,
    slot: usize,
}

impl Spot {
    const FIRST: Spot = Spot { branch: 0, leaf: 0, slot: 0 };

    /// Returns the spot directly after the run at this spot, in the leaf of that run.
    pub(super) fn behind(self) -> Spot {
        Spot { slot: self.slot + 1, ..self }
    }

    /// Returns the spot of the run that [`Leaves::before`] returns for this spot. There must be such a run.
    pub(super) fn back(self) -> Spot {
        Spot { slot: self.slot - 1, ..self }
    }
}

/// A leaf of runs. `len` comes first, so that it lies in a cache line that a search reads anyway.
#[derive(Clone, Debug)]
#[repr(C)]
struct Leaf {
    len: usize,
    firsts: [u64; LEAF_RUNS],
    lengths: [u32; LEAF_RUNS],
    places: [u64; LEAF_RUNS],
}

impl Leaf {
    fn empty() -> Box<Leaf> {
        Box::new(Leaf { len: 0, firsts: [0; LEAF_RUNS], lengths: [0; LEAF_RUNS], places: [0; LEAF_RUNS] })
    }

    fn firsts(&self) -> &[u64] {
        &self.firsts[..self.len]
    }

    fn run(&self, slot: usize) -> Run {
        Run { first: self.firsts[slot], length: self.lengths[slot], place: self.places[slot] }
    }

    fn set(&mut self, slot: usize, run: Run) {
        (self.firsts[slot], self.lengths[slot], self.places[slot]) = (run.first, run.length, run.place);
    }

    #[inline]
    fn insert(&mut self, slot: usize, run: Run) {
        // In some maps most runs are inserted at the end.
        if slot < self.len {
            self.firsts.copy_within(slot..self.len, slot + 1);
            self.lengths.copy_within(slot..self.len, slot + 1);
            self.places.copy_within(slot..self.len, slot + 1);
        }
        self.len += 1;
        self.set(slot, run);
    }

    fn remove(&mut self, slots: std::ops::Range<usize>) {
        self.firsts.copy_within(slots.end..self.len, slots.start);
        self.lengths.copy_within(slots.end..self.len, slots.start);
        self.places.copy_within(slots.end..self.len, slots.start);
        self.len -= slots.len();
    }

    /// Appends the runs of `other` from index `from` on.
    fn take_from(&mut self, other: &Leaf, from: usize) {
        let (start, count) = (self.len, other.len - from);
        self.firsts[start..start + count].copy_from_slice(&other.firsts[from..other.len]);
        self.lengths[start..start + count].copy_from_slice(&other.lengths[from..other.len]);
        self.places[start..start + count].copy_from_slice(&other.places[from..other.len]);
        self.len += count;
    }
}

#[derive(Clone, Debug)]
struct Branch {
    fences: Vec<u64>,
    #[allow(clippy::vec_box)] // an insertion of a leaf moves the addresses of its neighbours, not their runs
    leaves: Vec<Box<Leaf>>,
}

impl Branch {
    fn of(leaf: Box<Leaf>) -> Branch {
        Branch { fences: vec![leaf.firsts[0]], leaves: vec![leaf] }
    }
}

/// A sorted collection of runs, in order of their first numbers, in leaves of up to 32 runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaves {
    fences: Vec<u64>,
    branches: Vec<Branch>,
    len: usize,
    /// Spot for a run that directly follows the run inserted last; `None` after any other change of the leaves.
    behind_last: Option<Spot>,
}

impl Leaves {
    /// Returns the number of runs.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of heap memory that leaves and branches take.
    pub(super) fn measured_bytes(&self) -> u64 {
        let leaves: usize = self.branches.iter().map(|branch| branch.leaves.len()).sum();
        let leaf = std::mem::size_of::<Leaf>() + std::mem::size_of::<(u64, Box<Leaf>)>();
        (leaves * leaf + self.branches.len() * std::mem::size_of::<(u64, Branch)>()) as u64
    }

    /// Returns the spot after the last run that begins at or before `number`; the first spot of all if there is no such
    /// run.
    #[inline]
    pub(super) fn after(&self, number: u64) -> Spot {
        let index = child(&self.fences, number);
        let Some(branch) = self.branches.get(index) else { return Spot::FIRST };
        let leaf = child(&branch.fences, number);
        let slot = branch.leaves[leaf].firsts().iter().map(|&first| usize::from(first <= number)).sum();
        Spot { branch: index, leaf, slot }
    }

    /// Like [`Leaves::after`], but tries the spot after the last insertion first: runs are often inserted one after the
    /// other.
    #[inline]
    pub(super) fn after_to_insert(&self, number: u64) -> Spot {
        let follows = |&spot: &Spot| {
            self.before(spot).is_some_and(|last| last.first <= number)
                && self.first_from(spot).is_none_or(|next| number < next)
        };
        self.behind_last.filter(follows).unwrap_or_else(|| self.after(number))
    }

    /// Makes the processor prefetch the leaf in which a search for `number` ends.
    #[inline]
    pub(super) fn prefetch(&self, number: u64) {
        if let Some(branch) = self.branches.get(child(&self.fences, number)) {
            prefetch_all(std::slice::from_ref(&*branch.leaves[child(&branch.fences, number)]));
        }
    }

    /// Returns the run before a spot that [`Leaves::after`] returned, or `None` if no run comes before it.
    #[inline]
    pub(super) fn before(&self, spot: Spot) -> Option<Run> {
        // A leaf begins at its fence. So only the very first run has no run before it in its leaf.
        let slot = spot.slot.checked_sub(1)?;
        Some(self.branches[spot.branch].leaves[spot.leaf].run(slot))
    }

    /// Returns the first number of the first run at or after a spot, or `None` if there is no such run.
    #[inline]
    pub(super) fn first_from(&self, spot: Spot) -> Option<u64> {
        let branch = self.branches.get(spot.branch)?;
        let within = branch.leaves[spot.leaf].firsts().get(spot.slot);
        let next = within.or_else(|| branch.fences.get(spot.leaf + 1)).or_else(|| self.fences.get(spot.branch + 1));
        next.copied()
    }

    /// Returns the runs at and after a spot, in order.
    pub(super) fn iter_from(&self, mut spot: Spot) -> impl Iterator<Item = Run> + '_ {
        std::iter::from_fn(move || {
            let (at, run) = self.at(spot)?;
            spot = at.behind();
            Some(run)
        })
    }

    /// Returns all runs, in order of first number.
    pub(super) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.iter_from(Spot::FIRST)
    }

    /// Returns the first run at or after a spot, and its spot in the leaf that contains it. Returns `None` if there is
    /// no such run.
    pub(super) fn at(&self, spot: Spot) -> Option<(Spot, Run)> {
        let branch = self.branches.get(spot.branch)?;
        let spot = match () {
            () if spot.slot < branch.leaves[spot.leaf].len => spot,
            () if spot.leaf + 1 < branch.leaves.len() => Spot { leaf: spot.leaf + 1, slot: 0, ..spot },
            () if spot.branch + 1 < self.branches.len() => Spot { branch: spot.branch + 1, leaf: 0, slot: 0 },
            () => return None,
        };
        Some((spot, self.branches[spot.branch].leaves[spot.leaf].run(spot.slot)))
    }

    /// Replaces the run at a spot, which must be in the leaf of that run. The new run must keep the order.
    pub(super) fn set(&mut self, spot: Spot, run: Run) {
        self.branches[spot.branch].leaves[spot.leaf].set(spot.slot, run);
        if spot.slot == 0 {
            self.mend_fences(spot);
        }
    }

    /// Inserts a run at `spot`, which [`Leaves::after`] returned for the run's first number.
    pub(super) fn insert(&mut self, spot: Spot, run: Run) {
        self.len += 1;
        self.behind_last = None;
        let Some(branch) = self.branches.get_mut(spot.branch) else {
            let mut leaf = Leaf::empty();
            leaf.insert(0, run);
            self.fences.push(run.first);
            return self.branches.push(Branch::of(leaf));
        };
        let leaf = &mut branch.leaves[spot.leaf];
        if leaf.len < LEAF_RUNS {
            leaf.insert(spot.slot, run);
            self.behind_last = Some(spot.behind());
            if spot.slot == 0 {
                self.mend_fences(spot);
            }
            return;
        }
        self.insert_in_full(spot, run);
    }

    /// Removes runs from `spot` on, as long as they lie in the leaf of `spot` and their exclusive end is at most `end`.
    /// Calls `removed` with each of them, in order.
    pub(super) fn remove_until(&mut self, spot: Spot, end: u64, mut removed: impl FnMut(Run)) {
        let leaf = &mut self.branches[spot.branch].leaves[spot.leaf];
        let ending = (spot.slot..leaf.len).take_while(|&slot| leaf.run(slot).end() <= end);
        let count = ending.inspect(|&slot| removed(leaf.run(slot))).count();
        leaf.remove(spot.slot..spot.slot + count);
        self.len -= count;
        self.behind_last = None;
        self.tidy(spot);
    }

    #[cold]
    fn insert_in_full(&mut self, spot: Spot, run: Run) {
        let branch = &mut self.branches[spot.branch];
        let leaf = &mut branch.leaves[spot.leaf];
        // Runs inserted at the end usually come in order, so the full leaf stays full and a new one begins.
        let kept = if spot.slot == LEAF_RUNS { LEAF_RUNS } else { LEAF_RUNS / 2 };
        let mut right = Leaf::empty();
        right.take_from(leaf, kept);
        leaf.len = kept;
        match spot.slot.checked_sub(kept) {
            Some(slot) if slot > 0 || kept == LEAF_RUNS => right.insert(slot, run),
            _ => leaf.insert(spot.slot, run),
        }
        let fence = right.firsts[0];
        branch.fences[spot.leaf] = leaf.firsts[0];
        branch.fences.insert(spot.leaf + 1, fence);
        branch.leaves.insert(spot.leaf + 1, right);
        self.fences[spot.branch] = branch.fences[0];
        if branch.leaves.len() > BRANCH_LEAVES {
            let half = branch.leaves.len() / 2;
            let right = Branch { fences: branch.fences.split_off(half), leaves: branch.leaves.split_off(half) };
            self.fences.insert(spot.branch + 1, right.fences[0]);
            self.branches.insert(spot.branch + 1, right);
        }
    }

    /// Updates the fences of a leaf after its first run has changed.
    fn mend_fences(&mut self, spot: Spot) {
        let branch = &mut self.branches[spot.branch];
        branch.fences[spot.leaf] = branch.leaves[spot.leaf].firsts[0];
        self.fences[spot.branch] = branch.fences[0];
    }

    /// Restores invariants 2 and 3 around a leaf that lost runs.
    fn tidy(&mut self, spot: Spot) {
        let branch = &mut self.branches[spot.branch];
        if branch.leaves[spot.leaf].len == 0 {
            branch.leaves.remove(spot.leaf);
            branch.fences.remove(spot.leaf);
        } else {
            branch.fences[spot.leaf] = branch.leaves[spot.leaf].firsts[0];
        }
        for left in [spot.leaf, spot.leaf.wrapping_sub(1)] {
            if let Some([one, other]) = branch
                .leaves
                .get_mut(left..left.wrapping_add(2))
                .map(|pair| <&mut [Box<Leaf>; 2]>::try_from(pair).expect("a range of two"))
                && one.len + other.len <= LEAF_RUNS / 2
            {
                one.take_from(other, 0);
                branch.leaves.remove(left + 1);
                branch.fences.remove(left + 1);
            }
        }
        self.tidy_branches(spot.branch);
    }

    fn tidy_branches(&mut self, index: usize) {
        if self.branches[index].leaves.is_empty() {
            self.branches.remove(index);
            self.fences.remove(index);
        } else {
            self.fences[index] = self.branches[index].fences[0];
        }
        for left in [index, index.wrapping_sub(1)] {
            let lens = [left, left.wrapping_add(1)].map(|at| self.branches.get(at).map(|branch| branch.leaves.len()));
            if let [Some(one), Some(other)] = lens
                && one + other <= BRANCH_LEAVES / 2
            {
                let mut right = self.branches.remove(left + 1);
                self.fences.remove(left + 1);
                self.branches[left].leaves.append(&mut right.leaves);
                self.branches[left].fences.append(&mut right.fences);
            }
        }
    }

    /// Returns a description of the first broken invariant.
    #[cfg(test)]
    pub(super) fn broken(&self) -> Option<String> {
        let mut last = None;
        for (index, branch) in self.branches.iter().enumerate() {
            if branch.leaves.is_empty() || branch.leaves.len() > BRANCH_LEAVES || self.fences[index] != branch.fences[0]
            {
                return Some(format!("branch {index}"));
            }
            for (leaf, fence) in branch.leaves.iter().zip(&branch.fences) {
                if leaf.len == 0 || leaf.firsts[0] != *fence || branch.fences.len() != branch.leaves.len() {
                    return Some(format!("leaf at fence {fence} of branch {index}"));
                }
                for &first in leaf.firsts() {
                    if last.is_some_and(|last| last >= first) {
                        return Some(format!("{first} after {last:?}"));
                    }
                    last = Some(first);
                }
            }
        }
        let is_behind = |&spot: &Spot| self.before(spot).is_some_and(|run| self.after(run.first) == spot);
        if let Some(spot) = self.behind_last.filter(|spot| !is_behind(spot)) {
            return Some(format!("{spot:?} is remembered"));
        }
        let counted = self.iter().count();
        (counted != self.len || self.fences.len() != self.branches.len()).then(|| format!("{counted} of {}", self.len))
    }
}

/// Maximum number of fences that are compared without a search.
const COMPARED_MAX: usize = 8;

/// Returns the index of the last fence that is not greater than `number`, or 0 if all are greater. Each step compares
/// three fences and waits for memory once; a binary search would take twice as many steps.
#[inline]
fn child(fences: &[u64], number: u64) -> usize {
    let (mut first, mut rest) = (0, fences);
    while rest.len() > COMPARED_MAX {
        let quarter = rest.len() / 4;
        let passed: usize = (1..4).map(|part| usize::from(rest[part * quarter] <= number)).sum();
        let end = if passed == 3 { rest.len() } else { (passed + 1) * quarter };
        first += passed * quarter;
        rest = &rest[passed * quarter..end];
    }
    let begun: usize = rest.iter().map(|&fence| usize::from(fence <= number)).sum();
    (first + begun).saturating_sub(1)
}
