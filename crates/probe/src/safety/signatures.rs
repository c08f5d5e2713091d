//! What lies on a drive: partition tables, file systems, members of arrays and pools, by the signatures that their
//! makers put at fixed places.
//!
//! Invariants:
//! 1. Nothing is written.
//! 2. A place past the end of the drive is no error: then the signature is not there.

use std::io;

use super::{BLOCK_BYTES, Peek};

/// A signature: what it says, where it stands, its bytes.
struct Signature {
    says: &'static str,
    at: u64,
    bytes: &'static [u8],
}

const fn signature(says: &'static str, at: u64, bytes: &'static [u8]) -> Signature {
    Signature { says, at, bytes }
}

const KIB: u64 = 1024;

/// Signatures at places counted from the beginning.
const FROM_BEGIN: &[Signature] = &[
    signature("a GPT partition table", 512, b"EFI PART"),
    signature("a GPT partition table", 4096, b"EFI PART"),
    signature("an Apple partition table", 512, b"PM\0\0"),
    signature("an ext2, ext3 or ext4 file system", 1080, b"\x53\xef"),
    signature("an XFS file system", 0, b"XFSB"),
    signature("a Btrfs file system", 64 * KIB + 64, b"_BHRfS_M"),
    signature(
        "a Bcachefs or bcache device",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    signature("a Bcachefs file system", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    signature("an F2FS file system", 1024, b"\x10\x20\xf5\xf2"),
    signature("an NTFS file system", 3, b"NTFS    "),
    signature("an exFAT file system", 3, b"EXFAT   "),
    signature("a FAT file system", 82, b"FAT32   "),
    signature("a FAT file system", 54, b"FAT16   "),
    signature("a FAT file system", 54, b"FAT12   "),
    signature("an HFS+ file system", 1024, b"H+\0\x04"),
    signature("an HFS+ file system", 1024, b"HX\0\x05"),
    signature("an APFS container", 32, b"NXSB"),
    signature("a JFS file system", 32 * KIB, b"JFS1"),
    signature("a ReiserFS file system", 64 * KIB + 52, b"ReIsEr"),
    signature("a NILFS file system", 1024 + 6, b"\x34\x34"),
    signature("a GFS2 file system", 64 * KIB, b"\x01\x16\x19\x70"),
    signature("a SquashFS file system", 0, b"hsqs"),
    signature("an ISO 9660 file system", 32 * KIB + 1, b"CD001"),
    signature("an UDF file system", 32 * KIB + 1, b"BEA01"),
    signature("swap", 4086, b"SWAPSPACE2"),
    signature("swap", 4086, b"SWAP-SPACE"),
    signature("LUKS encryption", 0, b"LUKS\xba\xbe"),
    signature("an LVM physical volume", 0, b"LABELONE"),
    signature("an LVM physical volume", 512, b"LABELONE"),
    signature("an LVM physical volume", 1024, b"LABELONE"),
    signature("an LVM physical volume", 1536, b"LABELONE"),
    signature("a member of a Linux RAID", 0, b"\xfc\x4e\x2b\xa9"),
    signature("a member of a Linux RAID", 4096, b"\xfc\x4e\x2b\xa9"),
    signature("a Ceph store", 0, b"bluestore block device"),
    signature("a VMFS volume", 0x20_0000, b"\x0d\xd0\x01\xc0"),
    signature("an emulated drive of this program", 0, b"IMBREX\x1a\n"),
];

/// The number of a ZFS uberblock, in the byte order of the machine that wrote it.
const ZFS_NUMBER: u64 = 0x00ba_b10c;
/// Where the uberblocks of a ZFS label stand in it, and how long a label is; the last two stand at the end.
const ZFS_UBERBLOCKS: u64 = 128 * KIB;
const ZFS_LABEL: u64 = 256 * KIB;

/// What lies on `drive`, each once.
pub fn found(drive: &mut dyn Peek) -> io::Result<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |says: &str| {
        if !found.iter().any(|known| known == says) {
            found.push(says.to_string());
        }
    };
    for Signature { says, at, bytes } in FROM_BEGIN {
        if stands(drive, Some(*at), bytes)? {
            add(says);
        }
    }
    if let Some(says) = master_boot_record(drive)? {
        add(says);
    }
    let length = drive.len();
    for back in [512, 4096] {
        // The second copy of the table, which outlives a wiped first one.
        if stands(drive, length.checked_sub(back), b"EFI PART")? {
            add("a GPT partition table");
        }
    }
    // Old arrays keep their superblock near the end: 64 KiB from there in whole 64 KiB, or 8 KiB in whole 4 KiB.
    let old_raid = [(length & !(64 * KIB - 1)).checked_sub(64 * KIB), (length & !(4 * KIB - 1)).checked_sub(8 * KIB)];
    for at in old_raid {
        if stands(drive, at, b"\xfc\x4e\x2b\xa9")? || stands(drive, at, b"\xa9\x2b\x4e\xfc")? {
            add("a member of a Linux RAID");
        }
    }
    if has_zfs(drive)? {
        add("a member of a ZFS pool");
    }
    Ok(found)
}

fn stands(drive: &mut dyn Peek, at: Option<u64>, bytes: &[u8]) -> io::Result<bool> {
    let Some(at) = at else { return Ok(false) };
    if at + bytes.len() as u64 > drive.len() {
        return Ok(false);
    }
    let mut there = vec![0; bytes.len()];
    read(drive, at, &mut there)?;
    Ok(there == bytes)
}

/// Reads any bytes of `drive`, by the whole blocks that hold them.
fn read(drive: &mut dyn Peek, at: u64, into: &mut [u8]) -> io::Result<()> {
    let begin = at / BLOCK_BYTES * BLOCK_BYTES;
    let end = (at + into.len() as u64).next_multiple_of(BLOCK_BYTES).min(drive.len());
    let mut blocks = vec![0; (end - begin) as usize];
    drive.read_at(begin, &mut blocks)?;
    let from = (at - begin) as usize;
    into.copy_from_slice(&blocks[from..from + into.len()]);
    Ok(())
}

/// The table of a PC: its mark, and entries that are entries; boot sectors of file systems have the mark, too.
fn master_boot_record(drive: &mut dyn Peek) -> io::Result<Option<&'static str>> {
    if drive.len() < 512 {
        return Ok(None);
    }
    let mut sector = [0; 512];
    read(drive, 0, &mut sector)?;
    if sector[510..] != *b"\x55\xaa" {
        return Ok(None);
    }
    let entries = sector[446..510].chunks_exact(16);
    let are_entries = entries.clone().all(|entry| matches!(entry[0], 0 | 0x80));
    let are_any = entries.into_iter().any(|entry| entry[4] != 0);
    Ok(Some(if are_entries && are_any { "a PC partition table" } else { "a boot sector" }))
}

fn has_zfs(drive: &mut dyn Peek) -> io::Result<bool> {
    let whole = drive.len() / ZFS_LABEL * ZFS_LABEL;
    for label in [Some(0), Some(ZFS_LABEL), whole.checked_sub(2 * ZFS_LABEL), whole.checked_sub(ZFS_LABEL)] {
        let Some(label) = label.filter(|label| label + ZFS_LABEL <= whole) else { continue };
        let mut part = vec![0; 64 << 10];
        for half in 0..2 {
            read(drive, label + ZFS_UBERBLOCKS + half * part.len() as u64, &mut part)?;
            let numbers = part.chunks_exact(KIB as usize);
            let mut words = numbers.map(|block| u64::from_le_bytes(block[..8].try_into().expect("eight bytes")));
            if words.any(|word| word == ZFS_NUMBER || word == ZFS_NUMBER.swap_bytes()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(marks: &[(usize, &[u8])]) -> Vec<String> {
        let mut drive = vec![0u8; 4 << 20];
        for (at, bytes) in marks {
            drive[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        found(&mut drive).expect("memory does not fail")
    }

    #[test]
    fn every_signature_is_found_where_it_stands() {
        for Signature { says, at, bytes } in FROM_BEGIN {
            assert_eq!(of(&[(*at as usize, bytes)]), [*says]);
        }
    }

    #[test]
    fn an_empty_drive_has_none_and_neither_has_a_short_one() {
        assert_eq!(of(&[]), Vec::<String>::new());
        for length in [0, 1, 511, 512, 4097, 70_000] {
            assert_eq!(found(&mut vec![0u8; length]).expect("memory"), Vec::<String>::new(), "{length}");
        }
    }

    #[test]
    fn tables_and_labels_at_the_end_count() {
        let end = 4 << 20;
        assert_eq!(of(&[(end - 512, b"EFI PART")]), ["a GPT partition table"]);
        assert_eq!(of(&[(end - 65536, b"\xfc\x4e\x2b\xa9")]), ["a member of a Linux RAID"]);
        let number = ZFS_NUMBER.to_le_bytes();
        assert_eq!(of(&[(end - (256 << 10) + (128 << 10) + 5 * 1024, &number)]), ["a member of a ZFS pool"]);
    }

    #[test]
    fn a_pc_table_is_told_from_a_boot_sector() {
        let mark: &[u8] = b"\x55\xaa";
        assert_eq!(of(&[(510, mark), (446, b"\x80"), (450, b"\x83")]), ["a PC partition table"]);
        assert_eq!(of(&[(510, mark)]), ["a boot sector"]);
    }
}
