//! One run of a unit, with its place: the element of a [`super::run_list`].

/// The value of [`ShortRun::place`] that marks a trimmed run.
pub const ABSENT: u32 = u32::MAX;

/// A run of consecutive sectors or blocks of one unit (a band or a stretch of blocks), with the place where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortRun {
    /// First sector or block, counted from the start of the unit.
    pub offset: u32,
    /// Number of sectors or blocks of the run; which of the two, the layer defines.
    pub length: u32,
    /// Place of the run's first sector or block, in a numbering that the layer defines; the next ones follow it.
    /// [`ABSENT`] if the run is trimmed.
    pub place: u32,
}

impl ShortRun {
    /// Returns one past the run's last offset within the unit.
    #[inline]
    pub fn end(&self) -> u32 {
        self.offset + self.length
    }

    /// Returns whether the run is trimmed.
    #[inline]
    pub fn is_absent(&self) -> bool {
        self.place == ABSENT
    }

    /// Returns the part of the run within the offsets `from..to`, with the place of that part. The run must overlap
    /// that range.
    #[inline]
    pub fn clipped(&self, from: u32, to: u32) -> ShortRun {
        let offset = self.offset.max(from);
        let place = if self.is_absent() { ABSENT } else { self.place + (offset - self.offset) };
        ShortRun { offset, length: self.end().min(to) - offset, place }
    }

    /// Returns whether the run begins where `before` ends, in offset and in place. Of two trimmed runs, only the
    /// offsets have to follow each other.
    #[inline]
    pub(super) fn continues(&self, before: &ShortRun) -> bool {
        let place_continues = match (before.is_absent(), self.is_absent()) {
            (true, true) => true,
            (false, false) => before.place + before.length == self.place,
            (true, false) | (false, true) => false,
        };
        place_continues && before.end() == self.offset
    }
}
