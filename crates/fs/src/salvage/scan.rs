//! Scan of a stripe group from its beginning to its end, for units of records and for blocks that match them.

use super::{Everything, Found, Salvaged, Versions};
use crate::array::Array;
use crate::device::BLOCK_BYTES;
use crate::error::FsError;
use crate::format::change::GroupLayout;
use crate::format::record::{RunRecord, Unit};
use crate::journal::checksums::{Checksums, of_block};

/// Number of rows read at once.
const ROWS_AT_ONCE: u64 = 256;

/// State of a block of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Block {
    /// The block could not be read.
    Unreadable,
    /// The block has this checksum, and no unit has described it yet.
    Read(u32),
    /// The block is all zeros, with this checksum, and no unit has described it yet.
    Zeros(u32),
    /// A unit described the block. The value is true if the contents match the checksum in the unit.
    Told(bool),
}

/// Scan of one stripe group.
pub(super) struct Scan<'a> {
    array: &'a Array,
    start: u64,
    layout: GroupLayout,
    blocks: Vec<Block>,
    units: Vec<(u64, Unit)>,
    /// Places of blocks with the magic number of a unit that could not be decoded.
    strange: Vec<u64>,
}

impl<'a> Scan<'a> {
    /// Returns a scan of group `group` of `array`.
    pub(super) fn of(array: &'a Array, group: u32) -> Scan<'a> {
        let layout = array.layout(group).expect("it is one of the array's groups");
        let start = u64::from(group) * array.shape().stride();
        Scan { array, start, layout, blocks: Vec::new(), units: Vec::new(), strange: Vec::new() }
    }

    /// Reads the group, and adds everything found to `everything`. The checksums of valid blocks are written to
    /// `checksums`.
    pub(super) async fn read(
        mut self,
        checksums: &Checksums,
        everything: &mut Everything,
        salvaged: &mut Salvaged,
    ) -> Result<(), FsError> {
        let group = (self.start / self.array.shape().stride()) as u32;
        let rows = self.array.rows_readable(group);
        let mut row = 0;
        while row < rows {
            let count = ROWS_AT_ONCE.min(rows - row);
            self.read_rows(row, count).await;
            row += count;
        }
        // The last unit first: a block is no unit if a later unit describes it as data.
        while let Some((place, unit)) = self.units.pop() {
            if matches!(self.blocks[place as usize], Block::Told(true)) {
                salvaged.strange_units += 1;
                continue;
            }
            self.blocks[place as usize] = Block::Told(true);
            self.take(unit, checksums, everything, salvaged).await?;
        }
        self.mend_units(checksums, everything, salvaged).await
    }

    async fn read_rows(&mut self, row: u64, rows: u64) {
        let width = u64::from(self.layout.width);
        match self.array.read(self.start + row * width, rows * width).await {
            Ok(bytes) => bytes.chunks(BLOCK_BYTES).for_each(|block| self.see(block)),
            Err(_) if rows > 1 => {
                for one in row..row + rows {
                    Box::pin(self.read_rows(one, 1)).await;
                }
            }
            Err(_) => {
                for column in 0..width {
                    match self.array.read(self.start + row * width + column, 1).await {
                        Ok(block) => self.see(&block),
                        Err(_) => self.blocks.push(Block::Unreadable),
                    }
                }
            }
        }
    }

    fn see(&mut self, block: &[u8]) {
        let place = self.blocks.len() as u64;
        if Unit::is_named(block) {
            let file_system = self.array.file_system().as_u128();
            match Unit::decode(block, file_system, self.layout.sequence, place as u32) {
                Some(unit) => self.units.push((place, unit)),
                None => self.strange.push(place),
            }
        }
        let is_zero = block.iter().all(|byte| *byte == 0);
        self.blocks.push(if is_zero { Block::Zeros(of_block(block)) } else { Block::Read(of_block(block)) });
    }

    /// Adds the files, directories and valid blocks that a unit describes.
    async fn take(
        &mut self,
        unit: Unit,
        checksums: &Checksums,
        everything: &mut Everything,
        salvaged: &mut Salvaged,
    ) -> Result<(), FsError> {
        salvaged.units += 1;
        for directory in unit.directories {
            everything.sequence = everything.sequence.max(directory.sequence);
            let newest = everything.directories.entry(directory.inode).or_insert_with(|| directory.clone());
            if newest.sequence < directory.sequence {
                *newest = directory;
            }
        }
        for file in &unit.files {
            everything.sequence = everything.sequence.max(file.sequence);
            let versions = everything.files.entry((file.inode, file.generation)).or_default();
            // The record of a cleaner's copy may have no name, while the record of a write with an equal sequence has
            // one.
            let known = versions.records.entry(file.sequence).or_insert_with(|| file.clone());
            if known.name.is_empty() && !file.name.is_empty() {
                *known = file.clone();
            }
        }
        for run in &unit.runs {
            let file = &unit.files[usize::from(run.file)];
            let right = self.check(run, salvaged).await;
            let versions = everything.files.get_mut(&(file.inode, file.generation)).expect("it was added just now");
            self.add(run, &right, file.sequence, versions, checksums).await?;
        }
        Ok(())
    }

    /// Returns for each block of a run whether it matches its checksum, or was reconstructed from parity.
    async fn check(&mut self, run: &RunRecord, salvaged: &mut Salvaged) -> Vec<bool> {
        let mut right = Vec::with_capacity(run.sums.len());
        for (number, sum) in run.sums.iter().enumerate() {
            let place = run.place as usize + number;
            let is_right = match self.blocks.get(place) {
                // A block belongs to only one file.
                None | Some(Block::Told(_)) => false,
                Some(Block::Read(found) | Block::Zeros(found)) if found == sum => true,
                Some(_) => {
                    let recovered = self.array.recover(self.start + place as u64, *sum).await.is_some();
                    salvaged.damaged_blocks += u64::from(!recovered);
                    recovered
                }
            };
            if let Some(block) = self.blocks.get_mut(place).filter(|block| !matches!(block, Block::Told(_))) {
                *block = Block::Told(is_right);
            }
            right.push(is_right);
        }
        right
    }

    /// Adds the valid blocks of a run.
    async fn add(
        &self,
        run: &RunRecord,
        right: &[bool],
        sequence: u64,
        versions: &mut Versions,
        checksums: &Checksums,
    ) -> Result<(), FsError> {
        let mut from = 0;
        while from < right.len() {
            let length = right[from..].iter().take_while(|is_right| **is_right).count();
            if length == 0 {
                from += 1;
                continue;
            }
            let start = self.start + u64::from(run.place) + from as u64;
            versions.runs.push(Found { sequence, at: run.at + from as u32, blocks: length as u32, start });
            checksums.set(start, &run.sums[from..from + length]).await?;
            from += length;
        }
        Ok(())
    }

    /// Reconstructs units. A block that no unit describes may be a damaged unit; if parity gives a valid unit, its
    /// records are added.
    async fn mend_units(
        mut self,
        checksums: &Checksums,
        everything: &mut Everything,
        salvaged: &mut Salvaged,
    ) -> Result<(), FsError> {
        let (file_system, sequence) = (self.array.file_system().as_u128(), self.layout.sequence);
        for place in (0..self.blocks.len()).rev() {
            // Decoded units and reconstructed blocks are in state `Told(true)` already.
            if !matches!(self.blocks[place], Block::Read(_) | Block::Unreadable) || self.layout.parity() == 0 {
                continue;
            }
            let decode = |bytes: &[u8]| Unit::decode(bytes, file_system, sequence, place as u32);
            let made = self.array.recover_as(self.start + place as u64, |bytes| decode(bytes).is_some()).await;
            if let Some(unit) = made.as_deref().and_then(decode) {
                self.blocks[place] = Block::Told(true);
                self.take(unit, checksums, everything, salvaged).await?;
            }
        }
        let untold = self.blocks.iter().filter(|block| matches!(block, Block::Read(_) | Block::Unreadable));
        salvaged.untold_blocks += untold.count() as u64;
        let is_left = |place: &&u64| !matches!(self.blocks[**place as usize], Block::Told(true));
        salvaged.strange_units += self.strange.iter().filter(is_left).count() as u64;
        Ok(())
    }
}
