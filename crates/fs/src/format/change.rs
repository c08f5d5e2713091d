//! Changes: the only way in which the namespace is altered, both by operations and by the replay of the log.
//!
//! Every change is absolute: it states the new value of an item, not the difference from the old value. So a checkpoint
//! may be taken while changes are made. Replay applies every change since the beginning of the checkpoint, including
//! those that the checkpoint already contains, and the result is the same.
//!
//! A *record* holds the changes of one operation, and their time. After a power cut a record is found whole or not at
//! all. The encoding is in `change_coding`.

/// Number of an inode. The root directory has number 1, and no file has number 0.
pub type Inode = u32;

/// Exclusive upper bound of the generations of inodes, which have 32 bits.
pub const GENERATIONS_END: u64 = 1 << 32;

/// Attributes of a file, as the metadata record them: type and permissions, owner, group, links, size and times; also
/// its generation and, for a directory, its parent. Extended attributes, names and contents are not included.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attributes {
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// User ID of the owner of the file.
    pub uid: u32,
    /// ID of the group that owns the file.
    pub gid: u32,
    /// Number of hard links. A file has one for each of its names. A directory has 2, plus the number of its
    /// subdirectories. It is 0 for a file without a name, which exists only as long as it is open.
    pub links: u32,
    /// Generation: distinguishes files that had the same inode number one after the other.
    pub generation: u32,
    /// Device number of a device node (`st_rdev`); 0 for other files.
    pub rdev: u32,
    /// Inode of the parent of a directory; the root directory is its own parent. 0 for other files.
    pub parent: Inode,
    /// Size of a regular file in bytes. In the metadata it is 0 for directories and symbolic links; `Fs::attr` reports
    /// 32 bytes for each name of a directory, and the length of a link's target.
    pub size: u64,
    /// Access time (`st_atime`), in nanoseconds since 1970: the time of creation, or the time that was set last. Reads
    /// do not change it.
    pub accessed_ns: i64,
    /// Time of the last change of the contents (`st_mtime`), in nanoseconds since 1970; for a directory, of its names.
    /// It can be set to any value.
    pub modified_ns: i64,
    /// Time of the last change of contents or attributes (`st_ctime`), in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// Extent: consecutive blocks of 4 KiB of a file that are stored in consecutive blocks of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block of the extent, of 4 KiB, counted from 0 within the file.
    pub at: u32,
    /// Number of blocks of 4 KiB of the extent.
    pub blocks: u32,
    /// First block of the extent on the data device, counted from its start, or in the block numbers of the array. In
    /// [`Change::Hot`] it is counted from the start of the hot zone.
    pub start: u64,
}

impl Extent {
    /// Returns the first block of the file after the extent, counted from 0 within the file.
    pub fn end(&self) -> u64 {
        u64::from(self.at) + u64::from(self.blocks)
    }

    /// Returns the part of the extent that holds blocks `from` to `to` − 1 of the file. Returns `None` if the extent
    /// has none of these blocks.
    pub fn within(&self, from: u64, to: u64) -> Option<Extent> {
        let (first, end) = (u64::from(self.at).max(from), self.end().min(to));
        let skipped = first - u64::from(self.at).min(first);
        (first < end).then(|| Extent { at: first as u32, blocks: (end - first) as u32, start: self.start + skipped })
    }
}

/// Zone of an array: the number of a drive, and the number of a zone on that drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ZoneOf {
    /// Number of the drive in the array, counted from 0.
    pub drive: u8,
    /// Number of the zone on the drive, counted from 0.
    pub zone: u32,
}

/// Zones of a stripe group: first the zones with data, in the order of their columns, then the zones with parity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLayout {
    /// Sequence of the group: a number that grows with each group that is opened. No two groups ever have equal
    /// sequences.
    pub sequence: u64,
    /// Number of zones of the stripe group with data: the first `width` of `members`. The other members hold parity.
    pub width: u8,
    /// Zones of the stripe group, each on a different drive: first `width` zones with data in the order of their
    /// columns, then the zones with parity.
    pub members: Vec<ZoneOf>,
}

impl GroupLayout {
    /// Returns the number of zones with parity in the group.
    pub fn parity(&self) -> usize {
        self.members.len() - usize::from(self.width)
    }
}

/// One change of the metadata, such as new attributes of a file or a removed name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Sets all attributes of a file. The file is created if it does not exist.
    Node {
        /// Inode of the file.
        inode: Inode,
        /// Attributes of the file.
        attributes: Attributes,
    },
    /// Removes a file with everything stored for it: attributes, extents, extended attributes, copy in the hot zone,
    /// and preallocated blocks.
    DropNode {
        /// Inode of the file.
        inode: Inode,
    },
    /// Adds a name to a directory.
    Entry {
        /// Inode of the directory to which the name is added.
        directory: Inode,
        /// Cookie of the name: its position in the directory, from which `readdir` continues.
        cookie: u64,
        /// Inode of the file that gets the name.
        inode: Inode,
        /// Name to add.
        name: Box<[u8]>,
    },
    /// Removes a name from a directory.
    DropEntry {
        /// Inode of the directory that loses the name.
        directory: Inode,
        /// Cookie of the name to remove: its position in the directory.
        cookie: u64,
    },
    /// Sets all extents of a file.
    Extents {
        /// Inode of the file.
        inode: Inode,
        /// New extents, in the order of the file's blocks. They replace all earlier ones.
        extents: Vec<Extent>,
    },
    /// Sets the extents of a range of blocks of a file. All other blocks keep their extents.
    Stretch {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range, counted from 0 within the file.
        from: u32,
        /// First block of the file after the range.
        to: u32,
        /// New extents of the range, in the order of the file's blocks, all within the range. Other blocks of the range
        /// become holes.
        extents: Vec<Extent>,
    },
    /// Sets the target of a symbolic link.
    Target {
        /// Inode of the symbolic link.
        inode: Inode,
        /// Path that the link points to.
        target: Box<[u8]>,
    },
    /// Sets an extended attribute of a file.
    Attribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the extended attribute, such as `user.a`.
        name: Box<[u8]>,
        /// New value of the extended attribute.
        value: Box<[u8]>,
    },
    /// Removes an extended attribute of a file.
    DropAttribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the extended attribute to remove.
        name: Box<[u8]>,
    },
    /// Sets the checksums of consecutive blocks in the table of checksums.
    Checksums {
        /// First block, in the numbering of the data device; the blocks of the hot zone follow after all blocks of
        /// data.
        block: u64,
        /// Checksums (CRC-32C), one for each block from `block` on.
        sums: Vec<u32>,
    },
    /// Opens a stripe group of an array, or gives an existing group other zones.
    Group {
        /// Number of the group, counted from 0. Block numbers of the array follow from it.
        group: u32,
        /// Zones of the stripe group.
        layout: GroupLayout,
    },
    /// Removes a stripe group and frees its zones.
    DropGroup {
        /// Number of the stripe group, counted from 0.
        group: u32,
    },
    /// Adds a drive to the array that the array was not made with, or removes a drive.
    Drive {
        /// Number of the drive in the array, counted from 0. The drives that the array was made with have the first
        /// numbers. No number is given twice.
        number: u8,
        /// UUID of the drive; 0 removes the drive.
        uuid: u128,
        /// Number of the drive that this drive replaces; `None` if it replaces none.
        replaces: Option<u8>,
    },
    /// Sets all extents of a file's copy in the hot zone. An empty list means that the file has no copy.
    Hot {
        /// Inode of the file.
        inode: Inode,
        /// Extents in the order of the file's blocks. Their `start` is counted from the start of the hot zone.
        extents: Vec<Extent>,
    },
    /// Assigns a part of the hot zone to a drive of the array.
    HotPart {
        /// Number of the part, counted from 0.
        part: u8,
        /// Number of the drive in the array, counted from 0.
        drive: u8,
        /// Whether the drive has space for the part. If not, the part is not used.
        has_room: bool,
        /// Generation that the part's stamp must have or continue for the part to be valid
        /// ([`crate::format::hot_stamp`]).
        generation: u64,
    },
    /// Sets the numbers of rows written in stripe groups of which some drive reports no write pointer. The numbers of
    /// rows of groups that are not listed become unknown.
    Rows {
        /// Pairs of a group's number and the number of rows written in it.
        groups: Vec<(u32, u32)>,
    },
    /// Sets the preallocated blocks within a range of blocks of a file. Blocks outside of the range are unchanged.
    /// Space is reserved for preallocated blocks, and they read as zeros until they are written.
    Preallocated {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range, counted from 0 within the file.
        from: u32,
        /// First block of the file after the range.
        to: u32,
        /// Preallocated blocks within the range, in the order of the file. Their `start` is 0 if the store reserves no
        /// particular blocks for them.
        extents: Vec<Extent>,
    },
    /// Sets the exclusive upper bound of the sequences of all records among the data.
    Sequence {
        /// Exclusive upper bound: no record has this sequence or a larger one.
        below: u64,
    },
    /// Sets the exclusive upper bound of all generations that were ever given to files.
    Generations {
        /// Exclusive upper bound: neither this generation nor a larger one was given.
        below: u64,
    },
    /// Sets the heat of files: the measure of their recent reads by which the hot zone selects files. Only checkpoints
    /// contain this change, as many times as necessary.
    Heat {
        /// Pairs of an inode and its heat. One counted read of the file adds [`crate::hot::ACCESS_UNITS`]; heat decays
        /// with time.
        files: Vec<(Inode, u32)>,
    },
}

/// Encoded size in bytes of [`Change::Node`], which sets all attributes of a file: tag, inode number and attributes.
pub const NODE_BYTES: u64 = 65;
/// Encoded size in bytes of [`Change::Group`], which opens a stripe group, with its tag and without its zones.
pub const GROUP_BYTES: u64 = 18;
/// Encoded size in bytes of one zone in [`Change::Group`].
pub const GROUP_ZONE_BYTES: u64 = 5;
/// Encoded size in bytes of [`Change::Drive`], which adds or removes a drive of an array, with its tag.
pub const DRIVE_BYTES: u64 = 19;
/// Encoded size in bytes of [`Change::Sequence`], the bound of the sequences of records, with its tag.
pub const SEQUENCE_BYTES: u64 = 9;
/// Encoded size in bytes of [`Change::Generations`], the bound of the generations of files, with its tag.
pub const GENERATIONS_BYTES: u64 = 9;
/// Encoded size in bytes of [`Change::HotPart`], which assigns a part of the hot zone to a drive, with its tag.
pub const HOT_PART_BYTES: u64 = 12;
/// Encoded size in bytes of [`Change::Rows`], the numbers of rows written in stripe groups, with its tag and without
/// its pairs.
pub const ROWS_BYTES: u64 = 5;
/// Encoded size in bytes of one pair in [`Change::Rows`]: a stripe group and its number of rows written.
pub const ROWS_GROUP_BYTES: u64 = 8;
/// Encoded size in bytes of [`Change::Entry`], which adds a name to a directory, with its tag and without the bytes of
/// the name.
pub const ENTRY_BYTES: u64 = 21;
/// Encoded size in bytes of one [`Extent`] in a change.
pub const EXTENT_BYTES: u64 = 16;
/// Upper bound, in bytes, of the encoded size of [`Change::Extents`] and [`Change::Hot`] without their extents. It also
/// holds for [`Change::Target`] without the path, and for [`Change::Attribute`] without name and value.
pub const LIST_BYTES: u64 = 13;
/// Encoded size in bytes of one pair in [`Change::Heat`]: an inode and its heat.
pub const HEAT_BYTES: u64 = 8;
/// Encoded size in bytes of [`Change::Stretch`] or [`Change::Preallocated`], which set the blocks of a range of a file,
/// with tag and without the extents.
pub const STRETCH_BYTES: u64 = 17;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_extent_lies_where_it_lay() {
        let extent = Extent { at: 10, blocks: 5, start: 100 };
        assert_eq!(extent.within(0, 10), None);
        assert_eq!(extent.within(12, 99), Some(Extent { at: 12, blocks: 3, start: 102 }));
        assert_eq!(extent.within(0, 11), Some(Extent { at: 10, blocks: 1, start: 100 }));
    }
}
