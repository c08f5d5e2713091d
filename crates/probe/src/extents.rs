//! Places of a file's bytes on a drive, as the kernel reports them (FIEMAP).
//!
//! Invariants:
//! 1. The extents are in the order of the file, begin at its byte 0, and leave no hole.

use std::fmt::Write as _;

/// A run of bytes of a file that lies in one piece on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileExtent {
    /// Offset of the first byte in the file.
    pub logical: u64,
    /// Offset of the first byte on the drive.
    pub physical: u64,
    /// Length in bytes, above 0.
    pub bytes: u64,
}

/// The extents of a file without holes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extents(Vec<FileExtent>);

impl Extents {
    /// Creates the list from the extents of a file, in the order of the file. Neighbours that continue each other on the drive
    /// become one.
    ///
    /// # Errors
    ///
    /// The list is empty, or the file has a hole or overlapping extents: the text says where.
    pub fn new(extents: impl IntoIterator<Item = FileExtent>) -> Result<Extents, String> {
        let mut joined: Vec<FileExtent> = Vec::new();
        let mut end = 0;
        for extent in extents.into_iter().filter(|extent| extent.bytes > 0) {
            if extent.logical != end {
                let what = if extent.logical > end { "has a hole" } else { "has overlapping extents" };
                return Err(format!("the file {what} at byte {}", end.min(extent.logical)));
            }
            let after = extent.logical.checked_add(extent.bytes).zip(extent.physical.checked_add(extent.bytes));
            let Some((after, _)) = after else { return Err(format!("the extent at byte {end} is too long")) };
            end = after;
            match joined.last_mut() {
                Some(last) if last.physical + last.bytes == extent.physical => last.bytes += extent.bytes,
                _ => joined.push(extent),
            }
        }
        if joined.is_empty() { Err("the file has no extents".into()) } else { Ok(Extents(joined)) }
    }

    /// Reads a list of extents: per line the offset in the file, the offset on the drive, and the length, in bytes, separated by
    /// blanks. Lines that begin with `#` are comments.
    ///
    /// # Errors
    ///
    /// A line has another form, or [`Extents::new`] refuses the list.
    pub fn parse(text: &str) -> Result<Extents, String> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
        let extent = |(index, line): (usize, &str)| {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            match numbers[..] {
                [logical, physical, bytes] if line.split_whitespace().count() == 3 => {
                    Ok(FileExtent { logical, physical, bytes })
                }
                _ => Err(format!("line {}: expected three numbers of bytes, not '{line}'", index + 1)),
            }
        };
        Extents::new(lines.map(extent).collect::<Result<Vec<_>, _>>()?)
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.last().map_or(0, |last| last.logical + last.bytes)
    }

    /// Returns the number of extents.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the end on the drive of the extent that lies farthest from its start, in bytes.
    pub fn reaches_to(&self) -> u64 {
        self.0.iter().map(|extent| extent.physical + extent.bytes).max().unwrap_or(0)
    }

    /// Returns the length of the longest extent in bytes.
    pub fn longest(&self) -> u64 {
        self.0.iter().map(|extent| extent.bytes).max().unwrap_or(0)
    }

    /// Returns the extents in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &FileExtent> {
        self.0.iter()
    }

    /// Calls `piece` for each piece of a range of the file that lies in one piece on the drive: with its offset on the drive and
    /// its length.
    ///
    /// # Panics
    ///
    /// If the range reaches past the end of the file.
    pub fn pieces(&self, offset: u64, bytes: u64, mut piece: impl FnMut(u64, u64)) {
        let end = offset + bytes;
        assert!(end <= self.bytes(), "{end} lies past the end of the file, {}", self.bytes());
        let first = self.0.partition_point(|extent| extent.logical + extent.bytes <= offset);
        for extent in self.0[first..].iter().take_while(|extent| extent.logical < end) {
            let (from, to) = (offset.max(extent.logical), end.min(extent.logical + extent.bytes));
            piece(extent.physical + (from - extent.logical), to - from);
        }
    }

    /// Returns the list in the form of [`Extents::parse`].
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for FileExtent { logical, physical, bytes } in &self.0 {
            let _ = writeln!(text, "{logical} {physical} {bytes}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# offset, place, length\n0 8192 4096\n4096 12288 4096\n\n8192 1048576 8192\n16384 0 4096\n";

    fn pieces(extents: &Extents, offset: u64, bytes: u64) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        extents.pieces(offset, bytes, |place, bytes| found.push((place, bytes)));
        found
    }

    #[test]
    fn pieces_follow_the_extents() {
        let extents = Extents::parse(TEXT).expect("a list");
        assert_eq!((extents.count(), extents.bytes(), extents.longest()), (3, 20_480, 8192));
        assert_eq!(extents.reaches_to(), 1_048_576 + 8192);
        assert_eq!(pieces(&extents, 0, 20_480), [(8192, 8192), (1_048_576, 8192), (0, 4096)]);
        assert_eq!(pieces(&extents, 4096, 8192), [(12_288, 4096), (1_048_576, 4096)]);
        assert_eq!(pieces(&extents, 12_288, 4096), [(1_052_672, 4096)]);
        assert_eq!(Extents::parse(&extents.to_text()), Ok(extents));
    }

    #[test]
    fn lists_that_are_no_whole_file_are_refused() {
        for (text, says) in [
            ("", "no extents"),
            ("# nothing\n", "no extents"),
            ("4096 0 4096\n", "has a hole at byte 0"),
            ("0 0 4096\n8192 8192 4096\n", "has a hole at byte 4096"),
            ("0 0 8192\n4096 8192 4096\n", "has overlapping extents at byte 4096"),
            ("0 0\n", "line 1: expected three numbers"),
            ("0 0 4096 4096\n", "line 1: expected three numbers"),
            ("0 x 4096\n", "line 1: expected three numbers"),
            ("0 18446744073709551615 4096\n", "too long"),
        ] {
            let refused = Extents::parse(text).expect_err("it is refused");
            assert!(refused.contains(says), "{text:?}: {refused}");
        }
    }
}
