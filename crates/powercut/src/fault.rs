//! Faults of the host's disk in addition to a power cut: the disk holds an older version of something that was synced.

use std::collections::BTreeMap;
use std::fmt;

use imbrex_testkit::Random;

use crate::log::{Disk, FileId};
use crate::versions::{State, read_block};

/// A fault of the host's disk in addition to a power cut: data that was synced is not on the disk. The number is the
/// seed that selects the place of the fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A synced write never reached the disk: all its blocks that were not written since hold their previous durable
    /// contents. The number is the seed that selects the write.
    DropWrite(u64),
    /// One block of a synced write never reached the disk: the block holds its previous durable contents. The number is
    /// the seed that selects the block.
    DropBlock(u64),
    /// One block holds one of its older durable versions. The number is the seed that selects the block and the
    /// version.
    RollBack(u64),
}

/// Description of a fault that was applied to a disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// Number, in the log, of the file that has the fault.
    pub file: FileId,
    /// Offsets of the affected blocks from the start of the file, in bytes, ascending.
    pub offsets: Vec<u64>,
    /// Number of durable versions by which the selected block was set back: 1 for a lost write or block, at least 1 for
    /// a block that was rolled back. Counts only the versions that the replay keeps.
    pub ages: usize,
}

/// Maximum number of positions that are tried until a fault changes the contents.
const TRIES: u32 = 100;

impl Fault {
    /// Applies the fault to `disk`, which holds the durable contents of `files` in blocks of `block_bytes` bytes.
    /// Returns the affected blocks.
    pub(crate) fn apply(self, files: &BTreeMap<FileId, State>, block_bytes: u64, disk: &mut Disk) -> Option<Done> {
        let (Fault::DropWrite(seed) | Fault::DropBlock(seed) | Fault::RollBack(seed)) = self;
        let mut random = Random::new(seed ^ 0xfa17);
        let places = Places::of(files);
        (0..TRIES).find_map(|_| {
            let (file, block) = places.pick(&mut random)?;
            let state = &files[&file];
            let older = &state.older[&block];
            let age = match self {
                Fault::RollBack(_) => random.below(older.len() as u64) as usize,
                _ => older.len() - 1,
            };
            let mut hit = vec![block];
            if let Fault::DropWrite(_) = self {
                let origin = state.origins.get(&block);
                let same = |other: &u64| state.origins.get(other) == origin && !state.is_pending(*other);
                hit = state.older.keys().copied().filter(same).collect();
            }
            let contents = disk.files.get_mut(&file).expect("all are there");
            let mut is_changed = false;
            for &hit_block in &hit {
                let versions = &state.older[&hit_block];
                let version = versions.get(if hit_block == block { age } else { versions.len() - 1 })?;
                is_changed |= read_block(contents, hit_block, block_bytes) != *version;
                contents.put(hit_block * block_bytes, version);
            }
            let offsets = hit.iter().map(|block| block * block_bytes).collect();
            is_changed.then_some(Done { file, offsets, ages: older.len() - age })
        })
    }
}

/// Blocks of which older durable versions exist.
struct Places {
    all: Vec<(FileId, u64)>,
    /// Blocks of `all` that were written more than once; most belong to tables, states and journals.
    often: Vec<(FileId, u64)>,
}

impl Places {
    fn of(files: &BTreeMap<FileId, State>) -> Places {
        let mut places = Places { all: Vec::new(), often: Vec::new() };
        for (&file, state) in files {
            for (&block, older) in state.older.iter().filter(|(block, _)| !state.is_pending(**block)) {
                places.all.push((file, block));
                if older.len() > 1 {
                    places.often.push((file, block));
                }
            }
        }
        places
    }

    /// Returns a block: with probability one half, one that was written more than once.
    fn pick(&self, random: &mut Random) -> Option<(FileId, u64)> {
        let from = if random.one_in(2) && !self.often.is_empty() { &self.often } else { &self.all };
        (!from.is_empty()).then(|| from[random.below(from.len() as u64) as usize])
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (blocks, first) = (self.offsets.len(), self.offsets[0]);
        write!(f, "file {}: {blocks} blocks, the first at byte {first}, are {} versions old", self.file, self.ages)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::DropWrite(_) => write!(f, "a dropped write"),
            Fault::DropBlock(_) => write!(f, "a dropped block"),
            Fault::RollBack(_) => write!(f, "a block of an older age"),
        }
    }
}
