//! Detection of a target's contents: signatures of file systems, partition tables, arrays and pools; in a regular file
//! also any byte that is not zero.
//!
//! Invariants:
//! 1. Nothing is written.
//! 2. A signature that would lie past the end of the target is absent; that is no error.
//! 3. Each signature is reported once, with its place on the target.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

use super::signatures::{LabelPlace, SIGNATURES, Signature};
use super::{BLOCK_BYTES, Peek};

/// One signature found on a target, or data without a signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contents {
    /// Name of the contents for messages, such as "an XFS file system". It has an article, except "data", which stands
    /// for data without a signature.
    pub what: String,
    /// Label of the file system, or name of the pool or array; `None` if there is none.
    pub label: Option<String>,
    /// Offset and length of the signature, in bytes. For data without a signature: the offset of the first byte that is
    /// not zero, and length 0.
    pub place: (u64, u64),
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.what)?;
        match &self.label {
            Some(label) => write!(f, " ({label:?})"),
            None => Ok(()),
        }
    }
}

const KIB: u64 = 1024;
/// The magic number of a ZFS uberblock, in the byte order of the machine that wrote it.
const ZFS_MAGIC: u64 = 0x00ba_b10c;
/// Offset of the uberblocks in a ZFS label, and the size of a label; the last two labels are at the end of the target.
const ZFS_UBERBLOCKS: u64 = 128 * KIB;
const ZFS_LABEL: u64 = 256 * KIB;
/// Offset of the name-value list in a ZFS label, and its size.
const ZFS_PAIRS: u64 = 16 * KIB;
const ZFS_PAIRS_BYTES: usize = 112 << 10;
/// The bytes that begin the pool's name in the list: the key, its type (a string), one value.
const ZFS_NAME: &[u8] = b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01";

/// Returns the contents of `target` that this crate's own signatures recognise; empty if there are none. `wipefs` is
/// not called, and data without a signature do not count.
///
/// # Errors
///
/// The error of the first failed read.
pub fn found(target: &mut dyn Peek) -> io::Result<Vec<Contents>> {
    let target = &mut Cached { target, blocks: BTreeMap::new() };
    let mut found: Vec<Contents> = Vec::new();
    for signature in SIGNATURES {
        if let Some(at) = place_of(signature, target)? {
            let label = signature.label.map(|place| label(target, place)).transpose()?.flatten();
            add(&mut found, signature.what, label, (at, signature.magic.len() as u64));
        }
    }
    let boot_record = master_boot_record(target)?;
    // The boot sector of a recognised file system is part of that file system.
    if let Some(what) = boot_record.filter(|what| *what != "a boot sector" || found.is_empty()) {
        add(&mut found, what, None, (510, 2));
    }
    // Version 0.90 has its superblock in the last whole 64 KiB. Version 1.0 has its superblock 8 to 12 KiB before the
    // end, at a multiple of 4 KiB.
    let length = target.len();
    let old_raid = [(length & !(64 * KIB - 1)).checked_sub(64 * KIB), (length & !(4 * KIB - 1)).checked_sub(8 * KIB)];
    for at in old_raid.into_iter().flatten() {
        if stands(target, at, b"\xfc\x4e\x2b\xa9")? || stands(target, at, b"\xa9\x2b\x4e\xfc")? {
            add(&mut found, "a member of a Linux RAID", None, (at, 4));
        }
    }
    for (at, pool) in zfs_labels(target)? {
        add(&mut found, "a member of a ZFS pool", pool, (at, ZFS_LABEL));
    }
    Ok(found)
}

fn add(found: &mut Vec<Contents>, what: &str, label: Option<String>, place: (u64, u64)) {
    if found.iter().all(|known| known.place != place) {
        found.push(Contents { what: what.to_string(), label, place });
    }
}

/// Returns the contents of the file or block device open as `file`: those of [`found`], and those that the program
/// `wipefs` recognises if it is installed. If a regular file has no signature, its first byte other than zero is
/// returned as contents "data".
///
/// # Errors
///
/// The error of the first failed read or of `fstat`. A failure of `wipefs` is no error.
pub fn found_in_file(file: &File) -> io::Result<Vec<Contents>> {
    let mut reader = reopened(file)?;
    let mut contents = found(&mut reader)?;
    if Peek::len(&reader) == 0 {
        return Ok(contents);
    }
    for other in recognised_by_wipefs(file) {
        match contents.iter_mut().find(|known| known.place.0 == other.place.0) {
            Some(known) => known.label = known.label.take().or(other.label),
            None => contents.push(other),
        }
    }
    if contents.is_empty() && file.metadata()?.is_file() {
        contents.extend(first_data(&reader)?.map(|at| Contents {
            what: "data".to_string(),
            label: None,
            place: (at, 0),
        }));
    }
    Ok(contents)
}

/// Opens the file behind `file` again, to read it through the page cache: `file` may require aligned buffers
/// (`O_DIRECT`).
fn reopened(file: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| file.try_clone())
}

/// Returns the offset of the first byte that is not zero.
fn first_data(file: &File) -> io::Result<Option<u64>> {
    let mut buffer = vec![0; 1 << 20];
    let length = file.metadata()?.len();
    let mut at = 0;
    while at < length {
        at = match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => return Ok(None),
            // The file system does not report holes, so everything is read.
            Err(_) => at,
        };
        let wanted = buffer.len().min((length - at) as usize);
        let count = file.read_at(&mut buffer[..wanted], at)?;
        if count == 0 {
            return Ok(None);
        }
        if let Some(offset) = buffer[..count].iter().position(|byte| *byte != 0) {
            return Ok(Some(at + offset as u64));
        }
        at += count as u64;
    }
    Ok(None)
}

/// Returns the contents that `wipefs` of util-linux recognises; none if it is not installed.
fn recognised_by_wipefs(file: &File) -> Vec<Contents> {
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new("wipefs")
        .env("PATH", search)
        .args(["--no-act", "--json", "--output", "OFFSET,LENGTH,TYPE,LABEL", &path])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output.ok().map(|output| parse_wipefs(&output.stdout)).unwrap_or_default()
}

fn parse_wipefs(json: &[u8]) -> Vec<Contents> {
    let Ok(document) = serde_json::from_slice::<serde_json::Value>(json) else { return Vec::new() };
    let number = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        },
        value => value.as_u64(),
    };
    let one = |entry: &serde_json::Value| {
        let place = (number(&entry["offset"])?, number(&entry["length"])?);
        let label = entry["label"].as_str().map(str::to_string).filter(|label| !label.is_empty());
        Some(Contents { what: format!("a signature of {}", entry["type"].as_str()?), label, place })
    };
    document["signatures"].as_array().into_iter().flatten().filter_map(one).collect()
}

/// Returns the numbers of the blocks, counted from 0 in units of [`BLOCK_BYTES`] (4096 bytes), that the signatures of
/// `contents` overlap. Contents without a signature, whose length is 0, may add the block of their offset.
pub fn blocks_to_wipe(contents: &[Contents]) -> BTreeSet<u64> {
    let blocks = |&(at, length): &(u64, u64)| at / BLOCK_BYTES..(at + length).div_ceil(BLOCK_BYTES);
    contents.iter().flat_map(|one| blocks(&one.place)).collect()
}

/// Overwrites with zeros, in `bytes`, the parts of the signatures of `contents` that lie in block number `block`,
/// counted from 0, so that no tool recognises them. `bytes` are the contents of that block of [`BLOCK_BYTES`] (4096
/// bytes); the caller writes them back. Contents without a signature change nothing.
///
/// # Panics
///
/// If `bytes` is shorter than a block, and one of `contents` ends behind it.
pub fn wipe(contents: &[Contents], block: u64, bytes: &mut [u8]) {
    let begin = block * BLOCK_BYTES;
    for Contents { place: (at, length), .. } in contents {
        let [from, to] = [*at, at + length].map(|place| place.clamp(begin, begin + BLOCK_BYTES) - begin);
        bytes[from as usize..to as usize].fill(0);
    }
}

/// A reader of a target that reads each block only once.
struct Cached<'a> {
    target: &'a mut dyn Peek,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl Cached<'_> {
    fn block(&mut self, number: u64) -> io::Result<&[u8]> {
        let begin = number * BLOCK_BYTES;
        let length = BLOCK_BYTES.min(self.target.len() - begin) as usize;
        Ok(match self.blocks.entry(number) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let mut bytes = vec![0; length];
                self.target.read_at(begin, &mut bytes)?;
                place.insert(bytes)
            }
        })
    }

    fn len(&self) -> u64 {
        self.target.len()
    }

    /// Reads bytes at any offset and of any length.
    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            let place = at + done as u64;
            let block = self.block(place / BLOCK_BYTES)?;
            let from = (place % BLOCK_BYTES) as usize;
            let count = (block.len() - from).min(into.len() - done);
            into[done..done + count].copy_from_slice(&block[from..from + count]);
            done += count;
        }
        Ok(())
    }
}

fn place_of(signature: &Signature, target: &mut Cached<'_>) -> io::Result<Option<u64>> {
    let at = match u64::try_from(signature.at) {
        Ok(at) => Some(at),
        Err(_) => target.len().checked_sub(signature.at.unsigned_abs()),
    };
    match at {
        Some(at) if stands(target, at, signature.magic)? => Ok(Some(at)),
        _ => Ok(None),
    }
}

fn label(target: &mut Cached<'_>, place: LabelPlace) -> io::Result<Option<String>> {
    if place.at + place.bytes as u64 > target.len() {
        return Ok(None);
    }
    let mut bytes = vec![0; place.bytes];
    target.read(place.at, &mut bytes)?;
    let text = if place.is_utf16 {
        let units = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        String::from_utf16_lossy(&units.take_while(|unit| *unit != 0).collect::<Vec<u16>>())
    } else {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    let text = text.trim();
    Ok((!text.is_empty() && text != "NO NAME").then(|| text.to_string()))
}

fn stands(target: &mut Cached<'_>, at: u64, magic: &[u8]) -> io::Result<bool> {
    if at + magic.len() as u64 > target.len() {
        return Ok(false);
    }
    let mut there = vec![0; magic.len()];
    target.read(at, &mut there)?;
    Ok(there == magic)
}

/// Recognises the partition table of a PC by its mark and its entries. The boot sectors of file systems have the mark
/// too, but other bytes in place of the entries.
fn master_boot_record(target: &mut Cached<'_>) -> io::Result<Option<&'static str>> {
    if target.len() < 512 {
        return Ok(None);
    }
    let mut sector = [0; 512];
    target.read(0, &mut sector)?;
    if sector[510..] != *b"\x55\xaa" {
        return Ok(None);
    }
    let entries = sector[446..510].chunks_exact(16);
    let are_entries = entries.clone().all(|entry| matches!(entry[0], 0 | 0x80));
    let are_any = entries.into_iter().any(|entry| entry[4] != 0);
    Ok(Some(if are_entries && are_any { "a PC partition table" } else { "a boot sector" }))
}

/// Returns the offset of each ZFS label that has an uberblock, and the pool's name if the label contains it.
fn zfs_labels(target: &mut Cached<'_>) -> io::Result<Vec<(u64, Option<String>)>> {
    let whole = target.len() / ZFS_LABEL * ZFS_LABEL;
    let places = [Some(0), Some(ZFS_LABEL), whole.checked_sub(2 * ZFS_LABEL), whole.checked_sub(ZFS_LABEL)];
    let mut labels = Vec::new();
    for at in places.into_iter().flatten().filter(|at| at + ZFS_LABEL <= whole) {
        if has_uberblock(target, at)? && labels.iter().all(|(known, _)| *known != at) {
            labels.push((at, pool_name(target, at)?));
        }
    }
    Ok(labels)
}

fn has_uberblock(target: &mut Cached<'_>, label: u64) -> io::Result<bool> {
    let mut part = vec![0; 64 << 10];
    for half in 0..2 {
        target.read(label + ZFS_UBERBLOCKS + half * part.len() as u64, &mut part)?;
        let blocks = part.chunks_exact(KIB as usize);
        let mut words = blocks.map(|block| u64::from_le_bytes(block[..8].try_into().expect("eight bytes")));
        if words.any(|word| word == ZFS_MAGIC || word == ZFS_MAGIC.swap_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn pool_name(target: &mut Cached<'_>, label: u64) -> io::Result<Option<String>> {
    let mut pairs = vec![0; ZFS_PAIRS_BYTES];
    target.read(label + ZFS_PAIRS, &mut pairs)?;
    let Some(key) = pairs.windows(ZFS_NAME.len()).position(|window| window == ZFS_NAME) else { return Ok(None) };
    let value = &pairs[key + ZFS_NAME.len()..];
    let Some((length, rest)) = value.split_first_chunk::<4>() else { return Ok(None) };
    let name = rest.get(..u32::from_be_bytes(*length) as usize);
    Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests;
