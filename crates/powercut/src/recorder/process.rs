//! Information about a traced thread from `/proc` and from its memory: its open files, and the buffers that its calls
//! name.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::sys::{Tid, read_memory};

/// Position and flags of an open file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OpenFile {
    /// Position of the next read or write without an offset.
    pub(super) position: u64,
    /// Flags in the form of `open`.
    pub(super) flags: i32,
}

fn place(tid: Tid, folder: &str, descriptor: u64) -> PathBuf {
    PathBuf::from(format!("/proc/{tid}/{folder}/{}", descriptor as i32))
}

/// Converts the error "not found" in `/proc` to `ESRCH`, the error for a thread that was killed meanwhile.
fn gone(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::NotFound { io::Error::from_raw_os_error(libc::ESRCH) } else { error }
}

/// Returns the metadata of an open file, or `None` if the descriptor is not open.
pub(super) fn facts(tid: Tid, descriptor: u64) -> Option<fs::Metadata> {
    fs::metadata(place(tid, "fd", descriptor)).ok()
}

/// Returns the current path of an open file.
pub(super) fn path(tid: Tid, descriptor: u64) -> io::Result<PathBuf> {
    fs::read_link(place(tid, "fd", descriptor)).map_err(gone)
}

/// Opens a thread's open file once more, for reading.
pub(super) fn reopen(tid: Tid, descriptor: u64) -> io::Result<fs::File> {
    fs::File::open(place(tid, "fd", descriptor)).map_err(gone)
}

/// Returns the position and the flags of an open file.
pub(super) fn open_file(tid: Tid, descriptor: u64) -> io::Result<OpenFile> {
    let text = fs::read_to_string(place(tid, "fdinfo", descriptor)).map_err(gone)?;
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let position = field("pos:").and_then(|word| word.parse().ok());
    let flags = field("flags:").and_then(|word| i32::from_str_radix(word, 8).ok());
    match (position, flags) {
        (Some(position), Some(flags)) => Ok(OpenFile { position, flags }),
        _ => Err(io::Error::other(format!("fdinfo of {descriptor} reads {text:?}"))),
    }
}

/// Returns `length` bytes of the thread's memory from `address` on.
pub(super) fn bytes(tid: Tid, address: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length as usize];
    read_memory(tid, address, &mut bytes)?;
    Ok(bytes)
}

/// Returns `count` 64-bit numbers of the thread's memory from `address` on.
pub(super) fn words(tid: Tid, address: u64, count: u64) -> io::Result<Vec<u64>> {
    let bytes = bytes(tid, address, count * 8)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Returns the address and the length of each piece of a scattered buffer (`iovec`).
pub(super) fn pieces(tid: Tid, vector: u64, count: u64) -> io::Result<Vec<(u64, u64)>> {
    let words = words(tid, vector, count.min(1024) * 2)?;
    Ok(words.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Returns the contents of a scattered buffer.
pub(super) fn gathered(tid: Tid, pieces: &[(u64, u64)]) -> io::Result<Vec<u8>> {
    let mut gathered = Vec::new();
    for &(address, length) in pieces {
        gathered.extend(bytes(tid, address, length)?);
    }
    Ok(gathered)
}

/// A part of a process's memory into which a file is mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mapping {
    /// Number of the file's inode.
    pub(super) inode: u64,
    /// First byte in the file.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) length: u64,
}

/// Returns the parts of files that are mapped within `length` bytes from `address` on.
pub(super) fn mappings(tid: Tid, address: u64, length: u64) -> io::Result<Vec<Mapping>> {
    let text = fs::read_to_string(format!("/proc/{tid}/maps")).map_err(gone)?;
    let mapping = |line: &str| {
        let mut words = line.split_whitespace();
        let (from, to) = words.next()?.split_once('-')?;
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        let (from, to, offset) = (hex(from)?, hex(to)?, hex(words.nth(1)?)?);
        let inode: u64 = words.nth(1)?.parse().ok()?;
        let (start, end) = (from.max(address), to.min(address + length));
        (inode > 0 && start < end).then(|| Mapping { inode, offset: offset + (start - from), length: end - start })
    };
    Ok(text.lines().filter_map(mapping).collect())
}
