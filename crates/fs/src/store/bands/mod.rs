//! The table of the bands: how far each is written, how many of the written blocks are live, and whether a task writes
//! to it. Both stores that append have such a table. In `strict-append` a band is a zone of the drive. In `log` a band
//! is a stripe group of the array, which is opened and dropped again.

pub mod policy;

pub use self::policy::{ALL as POLICIES, Policy};
use crate::block_run::BlockRun;
use crate::device::{ZoneCondition, ZoneState};
use crate::format::shape::PARITY_MAX;
use crate::store::Victim;

/// A band: a zone of a drive or a stripe group of an array, written from its start to its end. Blocks have 4 KiB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Band {
    /// Number of data blocks of 4 KiB of the band; 0 if there is no band of this number now.
    pub capacity: u64,
    /// Smallest number of blocks of 4 KiB written together; writes are padded to a multiple of it. It is the number of
    /// data zones of a stripe group, and 1 for a zone of a single drive.
    pub row: u64,
    /// Number of data blocks of 4 KiB that the zones of this band could hold if they were part of wide stripe groups.
    /// It is more than `capacity` for a narrow group, which has a larger share of parity, and equal for other bands.
    pub worth: u64,
    /// Number of blocks of 4 KiB from the start of the band to its write pointer, those being written included. It is
    /// `capacity` for a band without a write pointer: full, conventional, read-only or offline.
    pub written: u64,
    /// Number of written blocks of 4 KiB that are live: a file uses them. Data blocks being written count as live;
    /// records and padding never do.
    pub live: u64,
    /// Whether the band accepts writes, now or after a reset. False for a conventional zone, and after a fault that
    /// left the zone read-only or offline.
    pub is_writable: bool,
    /// Whether a task writes to the band, or the cleaner empties it. No other task can allocate its blocks then.
    pub is_allocated: bool,
    /// Number of appends in flight to the band, all of the same writer.
    pub appends: u32,
    /// Number of pinned runs in the band: no file refers to them yet, so the band is not emptied.
    pub pins: u32,
    /// Whether the band is marked for copies by the cleaner. Copied data live longer than new data, so the store `log`
    /// keeps other writers from such a band while it has other space.
    pub is_for_cleaner: bool,
    /// Serial number of the last allocation in the band, counted over all bands of the store since the mount. A smaller
    /// number means older data. It is 0 if all data are from before the mount.
    pub age: u64,
    /// Number of attempts to empty this band that ended with a device error, since it was last emptied. Above
    /// [`PARITY_MAX`] (3), the band is not chosen; [`Bands::put_off_none`] lowers the number to that limit.
    pub failures: u8,
}

impl Band {
    /// Returns whether the cleaner does not choose this band for now, after more than [`PARITY_MAX`] failed attempts.
    /// An array tolerates [`PARITY_MAX`] failing drives, and each of them may spoil one attempt. After one more failure
    /// the band itself is unreadable.
    pub fn is_put_off(&self) -> bool {
        self.failures > PARITY_MAX
    }

    /// Returns the number of blocks of 4 KiB that a new writer could append now; 0 if a task writes to the band or
    /// empties it, or if the band is not writable.
    pub fn room(&self) -> u64 {
        if self.is_writable && !self.is_allocated { self.capacity - self.written } else { 0 }
    }

    /// Returns the number of blocks of 4 KiB that the present writer of the band can append after its appends in
    /// flight; 0 if no task writes to the band, or if the band is not writable.
    pub fn room_behind(&self) -> u64 {
        if self.is_writable && self.is_written_to() { self.capacity - self.written } else { 0 }
    }

    /// Returns whether an append to the band is in flight. The drive then has the zone open, even if the append fills
    /// it.
    pub fn is_written_to(&self) -> bool {
        self.appends > 0
    }

    /// Returns whether the band has space left or an append in flight, and is writable.
    pub fn is_open(&self) -> bool {
        self.is_writable && (self.written < self.capacity || self.is_written_to())
    }

    /// Counts the end of an append; the end of the last one releases the band.
    fn end_append(&mut self) {
        self.appends = self.appends.checked_sub(1).unwrap_or_else(|| panic!("nobody writes to it: {self:?}"));
        self.is_allocated = self.appends > 0;
    }

    /// Returns the number of blocks gained by emptying the band, 0 if none. The gain is its written blocks, times
    /// `worth` / `capacity`, less the space of the copies. The copies take the live blocks, `slack` blocks of padding,
    /// and `copied_with(live)` blocks of records.
    pub fn gain(&self, slack: u64, copied_with: fn(u64) -> u64) -> u64 {
        let written = (u128::from(self.written) * u128::from(self.worth)).checked_div(u128::from(self.capacity));
        (written.unwrap_or(0) as u64).saturating_sub(self.live + slack + copied_with(self.live))
    }
}

/// Table of all bands of a store, with the state of each. A band is a zone of a drive, or a stripe group of an array.
#[derive(Clone, Debug)]
pub struct Bands {
    band_blocks: u64,
    /// Number of the zone that is the first band.
    first: u32,
    bands: Vec<Band>,
    active_max: u64,
    takes: u64,
    /// Number of blocks that padding to rows may cost when the live blocks of a band are copied.
    slack: u64,
    /// Number of blocks of records that copying the given number of live blocks takes.
    copied_with: fn(u64) -> u64,
}

impl Bands {
    /// Creates the table of the zones of one drive, from the states `zones` that the drive reports for the zones from
    /// number `first` on. Each has `band_blocks` blocks, and no block is live yet. At most `active_max` zones may be
    /// partly written or written to at a time; `None` means no limit.
    pub fn new(band_blocks: u64, first: u32, zones: &[ZoneState], active_max: Option<u32>) -> Bands {
        let band = |zone: &ZoneState| Band {
            capacity: band_blocks,
            row: 1,
            worth: band_blocks,
            written: written_of(zone, band_blocks),
            is_writable: is_writable(zone),
            ..Band::default()
        };
        let active_max = active_max.map_or(u64::MAX, u64::from);
        Bands {
            band_blocks,
            first,
            bands: zones.iter().map(band).collect(),
            active_max,
            takes: 0,
            slack: 0,
            copied_with: |_| 0,
        }
    }

    /// Creates a table for `count` stripe groups of up to `band_blocks` blocks each, of which none exists yet. Copies
    /// of the live blocks of a group take up to `slack` blocks of padding and `copied_with(live)` blocks of records in
    /// addition.
    pub fn places(band_blocks: u64, count: u32, slack: u64, copied_with: fn(u64) -> u64) -> Bands {
        let bands = vec![Band::default(); count as usize];
        Bands { band_blocks, first: 0, bands, active_max: u64::MAX, takes: 0, slack, copied_with }
    }

    /// Adds stripe group `number`, or replaces it, with `capacity` data blocks in rows of `row` blocks. Its zones could
    /// hold `worth` data blocks in wide stripe groups. The reported state `zone` gives the write pointer. No block of
    /// the group is live yet. Only for a table made by [`Bands::places`].
    ///
    /// # Panics
    /// `number` is not below the number of groups of the table.
    pub fn put(&mut self, number: u32, (capacity, row, worth): (u64, u64, u64), zone: &ZoneState) {
        let (written, is_writable) = (written_of(zone, capacity), is_writable(zone));
        self.bands[number as usize] = Band { capacity, row, worth, written, is_writable, ..Band::default() };
    }

    /// Sets the worth of stripe group `number` to `worth`: the number of data blocks that groups of the usual width
    /// could hold on its zones ([`Band::worth`]). Only for a table made by [`Bands::places`].
    ///
    /// # Panics
    ///
    /// There is no band `number`.
    pub fn set_worth(&mut self, number: u32, worth: u64) {
        self.bands[number as usize].worth = worth;
    }

    /// Removes band `number` from the table.
    ///
    /// # Panics
    /// The band has live blocks, or `number` is not in the table.
    pub fn remove(&mut self, number: u32) {
        assert_eq!(self.bands[number as usize].live, 0, "band {number} is gone with live blocks");
        self.bands[number as usize] = Band::default();
    }

    /// Returns the entry of band `number`. A band that does not exist now has a capacity of 0.
    ///
    /// # Panics
    /// `number` is not in the table.
    pub fn band(&self, number: u32) -> &Band {
        &self.bands[(number - self.first) as usize]
    }

    /// Returns the number of blocks that copies of `live` blocks may take in addition: padding and records.
    pub fn slack(&self, live: u64) -> u64 {
        self.slack + (self.copied_with)(live)
    }

    /// Returns the number of blocks that are gained by emptying `band`, after the space for the copies of its live
    /// blocks is subtracted; 0 if none.
    pub fn gain(&self, band: &Band) -> u64 {
        band.gain(self.slack, self.copied_with)
    }

    /// Allocates `total` blocks at the write pointer of band `number`, for the cleaner or for a writer, and returns the
    /// first `blocks` of them, which are for data; the others are for records and padding. The band stays allocated to
    /// this writer until this append and all later ones by [`Bands::take_behind`] are committed or aborted. With
    /// `for_cleaner` the band is marked as the cleaner's until it is reset.
    ///
    /// # Panics
    /// The band has less space, another task uses it, `number` is not in the table, or `total` is 0 or below `blocks`.
    pub fn take_from(&mut self, number: u32, (blocks, total): (u64, u64), for_cleaner: bool) -> BlockRun {
        let band = &mut self.bands[(number - self.first) as usize];
        assert!(total <= band.room(), "{total} blocks of band {number}: {band:?}");
        band.is_for_cleaner |= for_cleaner;
        self.append_to(number, (blocks, total))
    }

    /// Allocates `total` more blocks at the write pointer of band `number` for its present writer, after the appends in
    /// flight. Returns the first `blocks` of them, which are for data; the others are for records and padding.
    ///
    /// # Panics
    /// The band has less space, no append to it is in flight, or `total` is 0 or below `blocks`.
    pub fn take_behind(&mut self, number: u32, (blocks, total): (u64, u64)) -> BlockRun {
        let band = self.band(number);
        assert!(total <= band.room_behind(), "{total} blocks more of band {number}: {band:?}");
        self.append_to(number, (blocks, total))
    }

    fn append_to(&mut self, number: u32, (blocks, total): (u64, u64)) -> BlockRun {
        self.takes += 1;
        let (takes, start) = (self.takes, u64::from(number) * self.band_blocks);
        let band = &mut self.bands[(number - self.first) as usize];
        let run = BlockRun { start: start + band.written, blocks };
        assert!(total > 0 && blocks <= total, "{blocks} of {total} blocks of band {number}: {band:?}");
        (band.is_allocated, band.appends, band.age) = (true, band.appends + 1, takes);
        band.written += total;
        band.live += run.blocks;
        run
    }

    /// Marks stripe group `number`, which must be in the table, as one to which only the cleaner should write.
    pub fn keep_for_cleaner(&mut self, number: u32) {
        self.bands[number as usize].is_for_cleaner = true;
    }

    /// Moves the write pointer of stripe group `number` to its end if the condition in the reported state `zone` is
    /// full. Does nothing in other conditions, or if the group does not exist now.
    pub fn seal_if_full(&mut self, number: u32, zone: &ZoneState) {
        let band = &mut self.bands[number as usize];
        if zone.condition == ZoneCondition::Full && band.capacity > 0 {
            band.written = band.capacity;
        }
    }

    /// Removes the cleaner's marks from all bands: any writer may append to them.
    pub fn share_with_all(&mut self) {
        self.bands.iter_mut().for_each(|band| band.is_for_cleaner = false);
    }

    /// Keeps the bands of these runs from being emptied until [`Bands::unpin`]. A band with several pinned runs is kept
    /// until the last one is unpinned. Each run must lie in one band of the table.
    pub fn pin(&mut self, runs: &[BlockRun]) {
        for run in runs {
            let index = self.index(run);
            self.bands[index].pins += 1;
        }
    }

    /// Undoes one call of [`Bands::pin`] with the same runs.
    pub fn unpin(&mut self, runs: &[BlockRun]) {
        for run in runs {
            let index = self.index(run);
            self.bands[index].pins -= 1;
        }
    }

    /// Returns the number of block numbers of each band: the size of a zone, or of the widest stripe group.
    pub fn band_blocks(&self) -> u64 {
        self.band_blocks
    }

    /// Returns all bands with their numbers, in ascending order. Bands that do not exist now have a capacity of 0.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Band)> {
        self.bands.iter().enumerate().map(|(index, band)| (self.first + index as u32, band))
    }

    /// Returns the serial number of the last allocation in any band, by which the age of data is measured. Before the
    /// first allocation it is 0, or 1 after [`Bands::claimed`].
    pub fn takes(&self) -> u64 {
        self.takes
    }

    /// Returns the number of blocks of 4 KiB of all writable bands, written or not, less the dead blocks in bands that
    /// are not emptied because of failures.
    pub fn usable(&self) -> u64 {
        let usable: u64 = self.bands.iter().filter(|band| band.is_writable).map(|band| band.capacity).sum();
        usable - self.stuck()
    }

    /// Returns the number of dead blocks in writable bands that the cleaner does not choose for now, because more than
    /// [`PARITY_MAX`] (3) attempts to empty them failed. No task can use these blocks.
    pub fn stuck(&self) -> u64 {
        let put_off = self.bands.iter().filter(|band| band.is_writable && band.is_put_off());
        put_off.map(|band| band.written - band.live).sum()
    }

    /// Returns the number of blocks in writable bands that are live or being written.
    pub fn live(&self) -> u64 {
        self.bands.iter().filter(|band| band.is_writable).map(|band| band.live).sum()
    }

    /// Returns the number of blocks in all bands that are live or being written, those in read-only and offline zones
    /// included.
    pub fn live_in_all(&self) -> u64 {
        self.bands.iter().map(|band| band.live).sum()
    }

    /// Returns the number of blocks in writable bands that are written and not live, so that cleaning can free them:
    /// dead data, records and padding. Bands that are not emptied because of failures count too.
    pub fn dead(&self) -> u64 {
        self.bands.iter().filter(|band| band.is_writable).map(|band| band.written - band.live).sum()
    }

    /// Returns the number of blocks after the write pointers of all writable bands.
    pub fn unwritten(&self) -> u64 {
        self.bands.iter().filter(|band| band.is_writable).map(|band| band.capacity - band.written).sum()
    }

    /// Returns the number of writable bands of which no block is written.
    pub fn empty(&self) -> u64 {
        self.bands.iter().filter(|band| band.is_writable && band.written == 0).count() as u64
    }

    /// Returns whether a task writes to any band, or the cleaner empties one.
    pub fn has_allocations(&self) -> bool {
        self.bands.iter().any(|band| band.is_allocated)
    }

    /// Returns whether an append to any band is in flight.
    pub fn has_writers(&self) -> bool {
        self.written_to() > 0
    }

    /// Returns the number of bands to which an append is in flight.
    pub fn written_to(&self) -> usize {
        self.bands.iter().filter(|band| band.is_written_to()).count()
    }

    /// Returns, for each band in order, its number of written blocks and its number of live blocks, of 4 KiB each. Both
    /// are 0 for a band that does not exist now.
    pub fn fill(&self) -> Vec<(u64, u64)> {
        self.bands.iter().map(|band| (band.written, band.live)).collect()
    }

    /// Returns the number of live blocks of 4 KiB of band `zone`; blocks being written count as live.
    ///
    /// # Panics
    /// `zone` is not in the table.
    pub fn live_in(&self, zone: u32) -> u64 {
        self.bands[(zone - self.first) as usize].live
    }

    /// Returns whether no append to band `zone` is in flight and no run in it is pinned: written, and not yet part of a
    /// file.
    ///
    /// # Panics
    /// `zone` is not in the table.
    pub fn is_quiet(&self, zone: u32) -> bool {
        let band = self.band(zone);
        !band.is_written_to() && band.pins == 0
    }

    /// Returns the number of bands that the drive counts as active.
    fn active(&self) -> u64 {
        let is_partly = |band: &Band| band.written > 0 && band.written < self.band_blocks;
        let is_active = |band: &&Band| band.is_writable && (is_partly(band) || band.is_written_to());
        self.bands.iter().filter(is_active).count() as u64
    }

    /// Allocates `blocks` blocks at the write pointers of one or more bands, and leaves `spare` of the empty bands
    /// untouched. Returns one run for each band. The bands stay allocated until the runs are committed or aborted.
    /// Returns `None`, and allocates nothing, if there is not enough space for all `blocks`, also because of the limit
    /// of active zones.
    pub fn take(&mut self, blocks: u64, spare: u32) -> Option<Vec<BlockRun>> {
        let chosen = self.choose(blocks, spare)?;
        self.takes += 1;
        let mut runs = Vec::with_capacity(chosen.len());
        for (index, count) in chosen {
            let start = (u64::from(self.first) + index as u64) * self.band_blocks + self.bands[index].written;
            let band = &mut self.bands[index];
            (band.is_allocated, band.appends, band.age) = (true, band.appends + 1, self.takes);
            band.written += count;
            band.live += count;
            runs.push(BlockRun { start, blocks: count });
        }
        Some(runs)
    }

    fn choose(&self, blocks: u64, spare: u32) -> Option<Vec<(usize, u64)>> {
        let is_partly = |band: &Band| band.written > 0;
        let fits = |(_, band): &(usize, &Band)| is_partly(band) && band.room() >= blocks;
        let fullest = self.bands.iter().enumerate().filter(fits).min_by_key(|(_, band)| band.room());
        if let Some((index, _)) = fullest {
            return Some(vec![(index, blocks)]);
        }
        let is_empty = |(_, band): &(usize, &Band)| !is_partly(band) && band.room() > 0;
        let mut empty: Vec<usize> = self.bands.iter().enumerate().filter(is_empty).map(|(index, _)| index).collect();
        empty.truncate(empty.len().saturating_sub(spare as usize));
        let mut may_open = self.active_max.saturating_sub(self.active()) as usize;
        let (mut chosen, mut left) = (Vec::new(), blocks);
        let mut partly: Vec<usize> = (0..self.bands.len()).filter(|&index| is_partly(&self.bands[index])).collect();
        partly.retain(|&index| self.bands[index].room() > 0);
        partly.sort_by_key(|&index| std::cmp::Reverse(self.bands[index].room()));
        // The limit of active bands is reached: fill up the fullest partly written band, so that another can be opened.
        while let Some(index) = partly.pop_if(|_| may_open == 0) {
            let count = left.min(self.bands[index].room());
            chosen.push((index, count));
            left -= count;
            may_open += usize::from(count == self.bands[index].room());
        }
        // Empty bands that the file fills do not stay partly written; the last of them may.
        let whole = (left / self.band_blocks) as usize;
        let empties = empty.len().min(if may_open == 0 { 0 } else { whole + 1 });
        for index in empty.into_iter().take(empties) {
            let count = left.min(self.band_blocks);
            if count > 0 {
                chosen.push((index, count));
                left -= count;
            }
        }
        for index in partly {
            let count = left.min(self.bands[index].room());
            if count > 0 {
                chosen.push((index, count));
                left -= count;
            }
        }
        (left == 0).then_some(chosen)
    }

    fn index(&self, run: &BlockRun) -> usize {
        (run.start / self.band_blocks) as usize - self.first as usize
    }

    /// Ends the appends of these runs after their writes succeeded. Their blocks stay live.
    pub fn commit(&mut self, runs: &[BlockRun]) {
        for run in runs {
            let index = self.index(run);
            self.bands[index].end_append();
        }
    }

    /// Ends the appends of these runs after a failed write: their blocks are not live. `zones`, if given, are the
    /// states of all zones of the drive, or of all stripe groups, from number 0 on. They give the new write pointers,
    /// and decide whether the bands are still writable. Without `zones` the write pointers stay behind the runs.
    pub fn abort(&mut self, runs: &[BlockRun], zones: Option<&[ZoneState]>) {
        for run in runs {
            let index = self.index(run);
            let zone = zones.and_then(|zones| zones.get(self.first as usize + index));
            let band = &mut self.bands[index];
            band.end_append();
            band.live -= run.blocks;
            if let Some(zone) = zone {
                band.is_writable = is_writable(zone);
                band.written = written_of(zone, band.capacity).max(band.live);
            }
        }
    }

    /// Marks the blocks of a run as live during the mount.
    ///
    /// # Errors
    /// The run is empty, is not within one band, is not all before the write pointer, or the band would have more live
    /// than written blocks. The error is a message for the user.
    pub fn claim(&mut self, run: BlockRun) -> Result<(), String> {
        let (first, end) = (run.start / self.band_blocks, run.end().div_ceil(self.band_blocks));
        let places = u64::from(self.first)..u64::from(self.first) + self.bands.len() as u64;
        if end != first + 1 || !places.contains(&first) || run.blocks == 0 {
            return Err(format!("blocks {} to {} are in no band", run.start, run.end()));
        }
        let index = self.index(&run);
        let band = &mut self.bands[index];
        if band.capacity == 0 {
            return Err(format!("blocks {} to {} are in no band", run.start, run.end()));
        }
        if run.end() - first * self.band_blocks > band.written {
            let pointer = first * self.band_blocks + band.written;
            return Err(format!(
                "blocks {} to {} are beyond the pointer of their zone at {pointer}",
                run.start,
                run.end()
            ));
        }
        band.live += run.blocks;
        if band.live > band.written {
            return Err(format!("blocks {} to {} belong to two files", run.start, run.end()));
        }
        Ok(())
    }

    /// Ends the marking of live runs by [`Bands::claim`]. Allocations from now on count as newer than the claimed runs.
    pub fn claimed(&mut self) {
        self.takes = 1;
    }

    /// Marks the blocks of a live run as dead.
    ///
    /// # Panics
    /// Its band has fewer live blocks.
    pub fn free(&mut self, run: BlockRun) {
        let index = self.index(&run);
        assert!(self.bands[index].live >= run.blocks, "{run:?} is freed twice: invariant 3 of stores");
        self.bands[index].live -= run.blocks;
    }

    /// Takes band `zone` out of use for writers until [`Bands::emptied`], and returns its written blocks and its number
    /// of live blocks for the cleaner. The caller has checked that no task uses the band.
    pub fn lease_victim(&mut self, zone: u32) -> Victim {
        let start = u64::from(zone) * self.band_blocks;
        let band = &mut self.bands[(zone - self.first) as usize];
        band.is_allocated = true;
        Victim { zone, run: BlockRun { start, blocks: band.written }, live: band.live }
    }

    /// Counts a failed attempt to empty band `zone`. After more than [`PARITY_MAX`] (3) failures the band is not chosen
    /// again before [`Bands::put_off_none`].
    pub fn put_off(&mut self, zone: u32) {
        let band = &mut self.bands[(zone - self.first) as usize];
        band.failures = band.failures.saturating_add(1);
    }

    /// Allows one more attempt for each band that is not chosen any more because of failures.
    pub fn put_off_none(&mut self) {
        self.bands.iter_mut().for_each(|band| band.failures = band.failures.min(PARITY_MAX));
    }

    /// Ends the emptying of band `zone`. If `was_reset`, all its blocks are unwritten now; if not, they are unchanged.
    ///
    /// # Panics
    /// The band was reset and has live blocks.
    pub fn emptied(&mut self, zone: u32, was_reset: bool) {
        let band = &mut self.bands[(zone - self.first) as usize];
        band.is_allocated = false;
        if was_reset {
            assert_eq!(band.live, 0, "band {zone} was reset with live blocks");
            band.written = 0;
            (band.is_for_cleaner, band.failures) = (false, 0);
        }
    }
}

fn is_writable(zone: &ZoneState) -> bool {
    matches!(zone.condition, ZoneCondition::Writable | ZoneCondition::Full)
}

fn written_of(zone: &ZoneState, band_blocks: u64) -> u64 {
    match zone.condition {
        ZoneCondition::Writable => zone.written.min(band_blocks),
        _ => band_blocks,
    }
}
