//! Self-description of a store: name, layout rules and space usage.

/// Space usage of a store, in blocks of 4 KiB unless stated otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Number of blocks of 4 KiB that live data may occupy. Space kept back for the cleaner, and for records and
    /// padding on the store `log`, is not included.
    pub blocks: u64,
    /// Number of blocks of 4 KiB with live data. On a store that appends to zones, blocks being written count too.
    pub live: u64,
    /// Number of blocks of 4 KiB that new files could still allocate. Reserved blocks do not count; dead blocks count,
    /// for they can be cleaned. On the store `caveat`, each free run counts without the blocks of a footer.
    pub free: u64,
    /// Number of written blocks of 4 KiB that are not live and must be cleaned before they can be written: dead data,
    /// and on the store `log` also records and padding. 0 on a store without cleaning.
    pub dead: u64,
    /// Number of free blocks of 4 KiB in runs that are shorter than a footer: the blocks after data that a write of the
    /// data destroys (Singh 2014 §4.4.3). 0 on stores other than `caveat`.
    pub unusable: u64,
    /// Number of runs of free blocks. On stores that append, the number of empty zones, or of stripe groups that could
    /// be opened now, those kept back for the cleaner included.
    pub free_runs: u64,
    /// Number of blocks of 4 KiB of the largest file that could be written now; on the store `caveat`, in one piece.
    pub longest: u64,
    /// Number of data blocks of 4 KiB allocated since the mount, for files and for copies by the cleaner. Those of
    /// aborted allocations are subtracted.
    pub allocated: u64,
    /// Number of data blocks of 4 KiB freed since the mount, because a file gave them up or the cleaner moved them.
    pub freed: u64,
    /// Number of record units (blocks of 4 KiB with records) written since the mount, and number of blocks written only
    /// for records or to fill the end of a stripe group. A record in a block that would otherwise be filled with zeros
    /// adds no such block. Both are 0 on stores other than `log`.
    pub records: (u64, u64),
}

/// Name, layout rules and space usage of a store. All but [`Describe::row_blocks`] and [`Describe::usage`] are the same
/// for the lifetime of the store.
pub trait Describe {
    /// Returns the name of the store, such as `log`.
    fn name(&self) -> &'static str;

    /// Returns whether each file must be one extent. Holes of a file are then filled with zeros.
    fn is_contiguous(&self) -> bool;

    /// Returns the number of blocks of 4 KiB of a band, whose boundaries no extent crosses: a zone, or a stripe group
    /// of the greatest width. On a store without bands, returns `u64::MAX`.
    fn band_blocks(&self) -> u64;

    /// Returns the smallest number of blocks that can be written together at `block`; a shorter write is padded with
    /// zeros. It is 1 on a store that can write each block alone.
    fn row_blocks(&self, block: u64) -> u64;

    /// Returns the space usage of the store now.
    fn usage(&self) -> Usage;
}
