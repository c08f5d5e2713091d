//! The values that a logical sector may have after a power cut: its last durable value, or one written since.
//!
//! A value is a version number. Version 0 is zeros. Any other version fills a sector with the version and the
//! sector's own LBA, so that a sector in a wrong place is detected.
//!
//! Invariants:
//! 1. A sector is in `open` if and only if it has values that are not known to be durable.

/// Version number that stands for an unreadable sector of a drive whose host manages damage: destroyed by the host's
/// own writes or, on a caveat disk, never written.
pub const LOST: u64 = u64::MAX;

/// The versions (numbered contents) that one sector may have after a power cut: the last durable one, and those written
/// since.
#[derive(Clone, Debug, Default)]
pub struct Values {
    durable: u64,
    /// Values written by commands that have been answered.
    done: Vec<u64>,
    /// Values written by the commands in flight.
    flying: Vec<u64>,
}

impl Values {
    /// Returns whether the sector may hold version `version` of its contents after a power cut.
    pub fn allow(&self, version: u64) -> bool {
        self.durable == version || self.done.contains(&version) || self.flying.contains(&version)
    }

    /// Returns the version that a read must return while the power is on and no command is in flight.
    pub fn newest(&self) -> u64 {
        self.done.last().copied().unwrap_or(self.durable)
    }
}

/// The possible versions of all sectors of a drive. Version 0 stands for a sector of zeros.
#[derive(Clone, Debug)]
pub struct Ledger {
    values: Vec<Values>,
    open: Vec<u64>,
    next_version: u64,
}

impl Ledger {
    /// Returns the ledger of a drive of `sectors` sectors, all of which durably have version 0.
    pub fn new(sectors: u64) -> Ledger {
        Ledger { values: vec![Values::default(); sectors as usize], open: Vec::new(), next_version: 1 }
    }

    /// Returns the possible versions of sector `lba`.
    ///
    /// # Panics
    /// If the drive has no such sector.
    pub fn of(&self, lba: u64) -> &Values {
        &self.values[lba as usize]
    }

    /// Returns a number for a new version of contents, which this ledger has not returned before: 1, 2, and so on.
    pub fn fresh_version(&mut self) -> u64 {
        self.next_version += 1;
        self.next_version - 1
    }

    /// Records that a command in flight writes version `version` to the `sectors` sectors from `lba` on.
    ///
    /// # Panics
    /// If the drive has no such sectors.
    pub fn give(&mut self, lba: u64, sectors: u64, version: u64) {
        for lba in lba..lba + sectors {
            let values = &mut self.values[lba as usize];
            if values.done.is_empty() && values.flying.is_empty() {
                self.open.push(lba);
            }
            values.flying.push(version);
        }
    }

    /// Records that all commands in flight have been answered.
    pub fn answer(&mut self) {
        for &lba in &self.open {
            let values = &mut self.values[lba as usize];
            values.done.append(&mut values.flying);
        }
    }

    /// Records a flush of the medium: for each sector, the version of the latest answered command is durable, and older
    /// versions are impossible. Versions of commands in flight stay possible.
    pub fn settle(&mut self) {
        let values = &mut self.values;
        self.open.retain(|&lba| {
            let values = &mut values[lba as usize];
            if let Some(last) = values.done.pop() {
                values.durable = last;
                values.done.clear();
            }
            !values.flying.is_empty()
        });
    }

    /// Replaces all possible versions by those found after a power cut: sector number i durably has version
    /// `versions[i]`.
    pub fn adopt(&mut self, versions: &[u64]) {
        self.open.clear();
        for (values, &durable) in self.values.iter_mut().zip(versions) {
            *values = Values { durable, ..Values::default() };
        }
    }

    /// Returns the first sector whose version in `versions` is not possible, or `None` if all are. `versions` has one
    /// entry for each sector of the drive.
    ///
    /// # Panics
    /// If `versions` has another length.
    pub fn first_forbidden(&self, versions: &[u64]) -> Option<u64> {
        assert_eq!(versions.len(), self.values.len(), "one version a sector");
        let allowed = |(values, version): (&Values, &u64)| values.allow(*version);
        self.values.iter().zip(versions).position(|pair| !allowed(pair)).map(|lba| lba as u64)
    }
}

/// Fills `bytes`, whole sectors from `lba` on, with the pattern of `version`: the version and the LBA of the sector,
/// repeated. Version 0 is zeros.
pub fn fill(bytes: &mut [u8], lba: u64, version: u64, sector_bytes: usize) {
    for (index, sector) in bytes.chunks_exact_mut(sector_bytes).enumerate() {
        for words in sector.chunks_exact_mut(16) {
            words[..8].copy_from_slice(&version.to_le_bytes());
            words[8..].copy_from_slice(&(if version == 0 { 0 } else { lba + index as u64 }).to_le_bytes());
        }
    }
}

/// Returns the version whose pattern fills `sector`, the contents read from sector `lba`.
///
/// # Errors
/// A message, if the bytes mix several versions or hold the pattern of another LBA.
pub fn version_in(sector: &[u8], lba: u64) -> Result<u64, String> {
    let word = |at: usize| u64::from_le_bytes(sector[at..at + 8].try_into().expect("eight bytes"));
    let (version, owner) = (word(0), word(8));
    if sector[16..] != sector[..sector.len() - 16] {
        return Err(format!("LBA {lba} holds parts of different versions"));
    }
    if (version == 0 && owner == 0) || (version != 0 && owner == lba) {
        Ok(version)
    } else {
        Err(format!("LBA {lba} holds version {version} of LBA {owner}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_not_to_be_undone() {
        let mut ledger = Ledger::new(4);
        let (first, second) = (ledger.fresh_version(), ledger.fresh_version());
        ledger.give(1, 2, first);
        assert!([0, first].iter().all(|&version| ledger.of(1).allow(version)));
        ledger.settle();
        assert!(ledger.of(1).allow(0), "a flush promises nothing to a command that it did not follow");
        ledger.answer();
        ledger.give(2, 1, second);
        ledger.settle();
        assert!(!ledger.of(1).allow(0) && ledger.of(1).allow(first));
        assert!(ledger.of(2).allow(first) && ledger.of(2).allow(second) && !ledger.of(2).allow(0));
        assert_eq!(ledger.first_forbidden(&[0, first, first, 0]), None);
        assert_eq!(ledger.first_forbidden(&[0, first, second, second]), Some(3));
    }

    #[test]
    fn a_sector_in_a_wrong_place_shows() {
        let mut bytes = [0; 1024];
        fill(&mut bytes, 7, 3, 512);
        assert_eq!(version_in(&bytes[..512], 7), Ok(3));
        assert_eq!(version_in(&bytes[512..], 8), Ok(3));
        assert!(version_in(&bytes[512..], 7).is_err());
        assert!(version_in(&bytes[256..768], 7).is_err(), "torn");
        assert_eq!(version_in(&[0; 512], 7), Ok(0));
    }
}
