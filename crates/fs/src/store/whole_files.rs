//! Limits on moving whole files in order to empty a zone.

use super::Victim;

/// Limits on moving whole files in order to empty a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesBudget {
    /// Number of blocks that may be copied in total.
    pub blocks: u64,
    /// Number of pieces of a file: each piece costs a seek, and writers may have to wait for the seeks.
    pub pieces: usize,
}

/// A store whose cleaning policy moves files as a whole if a piece of them lies in the zone to be emptied (Jin 2014
/// §II.D.2, the file-based approach).
pub trait WholeFiles {
    /// Returns the limits on moving whole files that have pieces in `victim`. `None` means that only their pieces in
    /// `victim` are moved now. The limits change with the space that is left, so the cleaner asks before each file.
    fn budget(&self, victim: &Victim) -> Option<FilesBudget>;
}
