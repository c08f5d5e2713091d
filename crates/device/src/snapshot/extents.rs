//! Copies the data of a file into another file and skips holes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, copy_file_range, seek};
use rustix::io::Errno;

/// Bytes per request to the kernel: between two requests the copying can be interrupted.
const PIECE_BYTES: u64 = 8 << 20;
/// Bytes copied through memory at once, if the kernel cannot copy.
const BUFFER_BYTES: usize = 1 << 20;

/// The file on which a copy failed.
#[derive(Debug)]
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Returns the next run of data at or after `at`, cut off at `end`, or `None` if there is none before `end`.
fn next_data(file: &File, at: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        // The file system does not know holes: everything may be data.
        Err(Errno::INVAL) => at,
        Err(error) => return Err(error.into()),
    };
    if start >= end {
        return Ok(None);
    }
    let hole = match seek(file, SeekFrom::Hole(start)) {
        Ok(hole) => hole,
        Err(Errno::INVAL) => file.metadata()?.len(),
        Err(error) => return Err(error.into()),
    };
    // The run is empty if the file was truncated meanwhile.
    Ok(Some(start..hole.min(end)).filter(|run| !run.is_empty()))
}

/// Returns the number of bytes of data in `file`, as reported by the file system.
pub(super) fn data_bytes(file: &File) -> io::Result<u64> {
    let (mut at, mut bytes) = (0, 0);
    while let Some(run) = next_data(file, at, u64::MAX)? {
        bytes += run.end - run.start;
        at = run.end;
    }
    Ok(bytes)
}

/// Copies the data of `source` in `range` to the same range of `target`. Calls `told` with the size of each copied
/// piece; `told` returns whether to continue. Returns false if `told` ended the copying.
pub(super) fn copy(
    source: &File,
    target: &File,
    range: Range<u64>,
    told: &mut dyn FnMut(u64) -> bool,
) -> Result<bool, CopyError> {
    let mut at = range.start;
    while let Some(run) = next_data(source, at, range.end).map_err(CopyError::Read)? {
        at = run.start;
        while at < run.end {
            let piece = copy_piece(source, target, at, (run.end - at).min(PIECE_BYTES))?;
            if piece == 0 {
                // The file was truncated meanwhile. The process that has it open for writing detects that.
                return Ok(true);
            }
            at += piece;
            if !told(piece) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Copies up to `length` bytes at `at`. Returns the number of bytes copied.
fn copy_piece(source: &File, target: &File, at: u64, length: u64) -> Result<u64, CopyError> {
    let (mut from, mut to) = (at, at);
    match copy_file_range(source, Some(&mut from), target, Some(&mut to), length as usize) {
        Ok(copied) => Ok(copied as u64),
        // The kernel cannot copy between these file systems, or the copy failed: copying through memory shows which
        // side fails.
        Err(_) => copy_through_memory(source, target, at, length),
    }
}

fn copy_through_memory(source: &File, target: &File, at: u64, length: u64) -> Result<u64, CopyError> {
    let mut buffer = vec![0; BUFFER_BYTES.min(length as usize)];
    let read = loop {
        match source.read_at(&mut buffer, at) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read.map_err(CopyError::Read)?,
        }
    };
    target.write_all_at(&buffer[..read], at).map_err(CopyError::Write)?;
    Ok(read as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn data_is_copied_and_holes_stay_holes() {
        let source = tempfile::tempfile().expect("a temporary file");
        let target = tempfile::tempfile().expect("a temporary file");
        source.set_len(64 << 20).expect("it grows");
        for (at, byte) in [(0, 1), (10 << 20, 2), (63 << 20, 3)] {
            source.write_all_at(&[byte; 4096], at).expect("it is written");
        }
        let mut told = 0;
        let is_whole = copy(&source, &target, 0..64 << 20, &mut |piece| {
            told += piece;
            true
        });
        assert!(is_whole.expect("both are files"));
        assert_eq!(told, data_bytes(&source).expect("it can be told"));
        assert_eq!(data_bytes(&target).expect("it can be told"), told);
        let mut byte = [0];
        for (at, expected) in [(4095, 1), (10 << 20, 2), (63 << 20, 3), (5 << 20, 0)] {
            target.read_at(&mut byte, at).expect("it can be read");
            assert_eq!(byte, [expected], "byte {at}");
        }
        assert!(target.metadata().expect("it is there").blocks() * 512 < 1 << 20);
    }

    #[test]
    fn the_kernel_and_memory_copy_the_same() {
        let source = tempfile::tempfile().expect("a temporary file");
        let bytes: Vec<u8> = (0..3 << 20).map(|at: u32| (at / 7) as u8).collect();
        source.write_all_at(&bytes, 0).expect("it is written");
        let target = tempfile::tempfile().expect("a temporary file");
        let mut at = 0;
        while at < bytes.len() as u64 {
            at += copy_through_memory(&source, &target, at, bytes.len() as u64 - at).expect("both are files");
        }
        let mut read = vec![0; bytes.len()];
        target.read_exact_at(&mut read, 0).expect("it can be read");
        assert!(read == bytes);
    }

    #[test]
    fn copying_stops_when_it_is_told_to() {
        let source = tempfile::tempfile().expect("a temporary file");
        source.write_all_at(&vec![1; 3 * PIECE_BYTES as usize], 0).expect("it is written");
        let target = tempfile::tempfile().expect("a temporary file");
        let mut pieces = 0;
        let is_whole = copy(&source, &target, 0..u64::MAX, &mut |_| {
            pieces += 1;
            pieces < 2
        });
        assert_eq!((is_whole.expect("both are files"), pieces), (false, 2));
    }
}
