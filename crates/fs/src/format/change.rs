//! Changes: the only way in which the namespace is altered, both by operations and by the replay of the log.
//!
//! Every change is absolute: it states the new value of an item, not the difference from the old value. So a checkpoint
//! may be taken while changes are made. Replay applies every change since the beginning of the checkpoint, including
//! those that the checkpoint already contains, and the result is the same.
//!
//! A *record* holds the changes of one operation, and their time. After a power cut a record is found whole or not at
//! all. The encoding is in `change_coding`.

/// Number of an inode.
pub type Inode = u32;

/// One more than the largest generation of an inode.
pub const GENERATIONS_END: u64 = 1 << 32;

/// Attributes of a file: everything but its names and contents.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attributes {
    /// File type and permissions, in the encoding of `st_mode`.
    pub mode: u32,
    /// User ID of the owner.
    pub uid: u32,
    /// ID of the owning group.
    pub gid: u32,
    /// Number of links. A file has one for each name; a directory has 2, and one for each of its subdirectories.
    pub links: u32,
    /// Generation: distinguishes files that had the same inode number one after the other.
    pub generation: u32,
    /// Device number of a device node (`st_rdev`).
    pub rdev: u32,
    /// Parent of a directory; 0 for a file that is no directory.
    pub parent: Inode,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the last read, in nanoseconds since 1970.
    pub accessed_ns: i64,
    /// Time of the last change of the contents, in nanoseconds since 1970.
    pub modified_ns: i64,
    /// Time of the last change of contents or attributes, in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// Extent: consecutive blocks of a file that are stored one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// First block, counted within the file.
    pub at: u32,
    /// Number of blocks of the extent.
    pub blocks: u32,
    /// First block on the data device, unless the change that holds the extent says otherwise.
    pub start: u64,
}

impl Extent {
    /// Returns the block of the file behind the extent.
    pub fn end(&self) -> u64 {
        u64::from(self.at) + u64::from(self.blocks)
    }

    /// Returns the part of the extent from block `from` up to, and without, block `to` of the file. Returns `None` if
    /// there is none.
    pub fn within(&self, from: u64, to: u64) -> Option<Extent> {
        let (first, end) = (u64::from(self.at).max(from), self.end().min(to));
        let skipped = first - u64::from(self.at).min(first);
        (first < end).then(|| Extent { at: first as u32, blocks: (end - first) as u32, start: self.start + skipped })
    }
}

/// Zone of an array: a drive, and a zone of that drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ZoneOf {
    /// Number of the drive in the array.
    pub drive: u8,
    /// Number of the zone on the drive.
    pub zone: u32,
}

/// Zones of a stripe group: first the zones with data, in the order of their columns, then the zones with parity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupLayout {
    /// Sequence of the group: groups are counted as they are opened. No two groups have equal sequences.
    pub sequence: u64,
    /// Number of zones with data.
    pub width: u8,
    /// Zones of the columns, each on a different drive.
    pub members: Vec<ZoneOf>,
}

impl GroupLayout {
    /// Returns the number of zones with parity.
    pub fn parity(&self) -> usize {
        self.members.len() - usize::from(self.width)
    }
}

/// One change of the metadata, such as new attributes of a file or a removed name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Sets the attributes of a file. The file is created if it does not exist.
    Node {
        /// Inode of the file.
        inode: Inode,
        /// Attributes of the file.
        attributes: Attributes,
    },
    /// Removes a file with everything stored for it: attributes, extents, extended attributes, hot copy, preallocated
    /// blocks.
    DropNode {
        /// Inode of the file.
        inode: Inode,
    },
    /// Adds a name to a directory.
    Entry {
        /// Inode of the directory.
        directory: Inode,
        /// Cookie of the name: its position in the directory, from which `readdir` continues.
        cookie: u64,
        /// Inode of the file with this name.
        inode: Inode,
        /// Name to add.
        name: Box<[u8]>,
    },
    /// Removes a name from a directory.
    DropEntry {
        /// Inode of the directory.
        directory: Inode,
        /// Cookie of the name.
        cookie: u64,
    },
    /// Sets all extents of a file.
    Extents {
        /// Inode of the file.
        inode: Inode,
        /// Extents in the order of the file's blocks.
        extents: Vec<Extent>,
    },
    /// Sets the extents of a range of blocks of a file. All other blocks keep their extents.
    Stretch {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range.
        from: u32,
        /// Block behind the range.
        to: u32,
        /// Extents in the order of the file's blocks, all within the range.
        extents: Vec<Extent>,
    },
    /// Sets the target of a symbolic link.
    Target {
        /// Inode of the link.
        inode: Inode,
        /// Path that the link points to.
        target: Box<[u8]>,
    },
    /// Sets an extended attribute of a file.
    Attribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the attribute.
        name: Box<[u8]>,
        /// Value of the attribute.
        value: Box<[u8]>,
    },
    /// Removes an extended attribute of a file.
    DropAttribute {
        /// Inode of the file.
        inode: Inode,
        /// Name of the attribute.
        name: Box<[u8]>,
    },
    /// Sets the checksums of consecutive blocks of the data device.
    Checksums {
        /// First block.
        block: u64,
        /// Checksums, one for each block.
        sums: Vec<u32>,
    },
    /// Opens a stripe group of an array, or gives an open group other zones.
    Group {
        /// Number of the group, from which the numbers of its blocks follow.
        group: u32,
        /// Zones of the group.
        layout: GroupLayout,
    },
    /// Removes a stripe group and frees its zones.
    DropGroup {
        /// Number of the group.
        group: u32,
    },
    /// Adds a drive that the array was not made with, or removes a drive.
    Drive {
        /// Number of the drive in the array. The drives that the array was made with have the first numbers. No number
        /// is given twice.
        number: u8,
        /// UUID of the drive; 0 if the drive is removed.
        uuid: u128,
        /// Number of the drive that this drive replaces, if there is one.
        replaces: Option<u8>,
    },
    /// Sets all extents of a file's copy in the hot zone. No extents mean that the file has no copy.
    Hot {
        /// Inode of the file.
        inode: Inode,
        /// Extents in the order of the file's blocks. Their `start` is a block of the hot zone.
        extents: Vec<Extent>,
    },
    /// Places a part of the hot zone on a drive of the array.
    HotPart {
        /// Number of the part.
        part: u8,
        /// Number of the drive in the array.
        drive: u8,
        /// Whether the drive has space for the part.
        has_room: bool,
        /// Generation that the part's stamp must have or continue for the part to be valid
        /// ([`crate::format::hot_stamp`]).
        generation: u64,
    },
    /// Sets the numbers of rows written in stripe groups of which some drive has no write pointer. The numbers of rows
    /// of groups that are not listed are unknown.
    Rows {
        /// Pairs of a group's number and its number of rows.
        groups: Vec<(u32, u32)>,
    },
    /// Sets the preallocated blocks within a range of blocks of a file. Blocks outside of the range are unchanged.
    /// Space is reserved for preallocated blocks, and they read as zeros until they are written.
    Preallocated {
        /// Inode of the file.
        inode: Inode,
        /// First block of the range.
        from: u32,
        /// Block behind the range.
        to: u32,
        /// Preallocated blocks within the range, in the order of the file. Their `start` is 0 if the store reserves no
        /// particular blocks for them.
        extents: Vec<Extent>,
    },
    /// Sets the bound below which all sequences of records with the data lie.
    Sequence {
        /// The bound: no record has this sequence or a later one.
        below: u64,
    },
    /// Sets the bound below which all generations lie that were ever given to files.
    Generations {
        /// The bound: neither this generation nor a later one was given.
        below: u64,
    },
    /// Sets the heat of files, for the hot zone. Only checkpoints contain this change, as many times as necessary.
    Heat {
        /// Pairs of an inode and its heat. One read counts [`crate::hot::ACCESS_UNITS`].
        files: Vec<(Inode, u32)>,
    },
}

/// Encoded size of [`Change::Node`] in bytes, tag and inode number included.
pub const NODE_BYTES: u64 = 65;
/// Encoded size of [`Change::Group`] without its zones, in bytes.
pub const GROUP_BYTES: u64 = 18;
/// Encoded size of one zone of [`Change::Group`], in bytes.
pub const GROUP_ZONE_BYTES: u64 = 5;
/// Encoded size of [`Change::Drive`], in bytes.
pub const DRIVE_BYTES: u64 = 19;
/// Encoded size of [`Change::Sequence`], in bytes.
pub const SEQUENCE_BYTES: u64 = 9;
/// Encoded size of [`Change::Generations`], in bytes.
pub const GENERATIONS_BYTES: u64 = 9;
/// Encoded size of [`Change::HotPart`], in bytes.
pub const HOT_PART_BYTES: u64 = 12;
/// Encoded size of [`Change::Rows`] without its groups, in bytes.
pub const ROWS_BYTES: u64 = 5;
/// Encoded size of one group of [`Change::Rows`], in bytes.
pub const ROWS_GROUP_BYTES: u64 = 8;
/// Encoded size of [`Change::Entry`] without its name, in bytes.
pub const ENTRY_BYTES: u64 = 21;
/// Encoded size of an extent, in bytes.
pub const EXTENT_BYTES: u64 = 16;
/// Upper bound, in bytes, of the encoded size of a list of extents without the extents. The bound also holds for the
/// target of a link and for an extended attribute, without their bytes.
pub const LIST_BYTES: u64 = 13;
/// Encoded size of the heat of one file, in bytes.
pub const HEAT_BYTES: u64 = 8;
/// Encoded size of [`Change::Stretch`] or [`Change::Preallocated`] without the extents, in bytes.
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
