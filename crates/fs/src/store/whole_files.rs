//! Limits on moving whole files in order to empty a zone.

use super::Victim;

/// Limits on moving whole files while the cleaner empties a zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FilesBudget {
    /// Maximum number of blocks of 4 KiB to copy in total while one zone is emptied.
    pub blocks: u64,
    /// Maximum number of extents of a file that is moved whole; a file with more extents is not moved whole. Each
    /// extent costs a seek, for which writers may have to wait.
    pub pieces: usize,
}

/// A store whose cleaning policy moves files as a whole if a piece of them lies in the zone to be emptied (Jin 2014
/// §II.D.2, the file-based approach).
pub trait WholeFiles {
    /// Returns the limits on moving whole files that have pieces in `victim`. `None` means that now only the pieces in
    /// `victim` are moved. The limits change with the free space, so the cleaner calls this before each file.
    fn budget(&self, victim: &Victim) -> Option<FilesBudget>;
}
