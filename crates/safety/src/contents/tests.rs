//! Goal: contents that a user may want to keep are recognised, and nothing else is. Method: bytes written as the
//! formats' documentation defines them, and file systems made by their own tools where these are installed.

use super::*;

const LENGTH: usize = 4 << 20;

fn drive_with(marks: &[(usize, &[u8])]) -> Vec<u8> {
    let mut drive = vec![0u8; LENGTH];
    for (at, bytes) in marks {
        drive[*at..at + bytes.len()].copy_from_slice(bytes);
    }
    drive
}

fn of(marks: &[(usize, &[u8])]) -> Vec<String> {
    let contents = found(&mut drive_with(marks)).expect("memory does not fail");
    contents.iter().map(ToString::to_string).collect()
}

#[test]
fn every_signature_is_found_where_it_stands() {
    for Signature { what, at, magic, .. } in SIGNATURES {
        let place = if *at < 0 { LENGTH - at.unsigned_abs() as usize } else { *at as usize };
        let contents = found(&mut drive_with(&[(place, magic)])).expect("memory does not fail");
        let places: Vec<_> = contents.iter().map(|one| (one.what.as_str(), one.place)).collect();
        assert_eq!(places, [(*what, (place as u64, magic.len() as u64))]);
    }
}

#[test]
fn an_empty_drive_has_none_and_neither_has_a_short_one() {
    assert_eq!(of(&[]), Vec::<String>::new());
    for length in [0, 1, 511, 512, 4097, 70_000] {
        assert_eq!(found(&mut vec![0u8; length]).expect("memory"), [], "{length}");
    }
}

#[test]
fn labels_are_told_in_each_encoding() {
    assert_eq!(of(&[(0, b"XFSB"), (108, b"archive\0")]), ["an XFS file system (\"archive\")"]);
    assert_eq!(of(&[(54, b"FAT16   "), (43, b"CAMERA     ")]), ["a FAT file system (\"CAMERA\")"]);
    assert_eq!(of(&[(54, b"FAT16   "), (43, b"NO NAME    ")]), ["a FAT file system"]);
    assert_eq!(
        of(&[(1024, b"\x10\x20\xf5\xf2"), (1024 + 0x7c, b"p\0h\0o\0n\0e\0\0\0")]),
        ["an F2FS file system (\"phone\")"]
    );
}

#[test]
fn tables_and_superblocks_at_the_end_count() {
    assert_eq!(of(&[(LENGTH - 512, b"EFI PART")]), ["a GPT partition table"]);
    assert_eq!(of(&[(LENGTH - 65536, b"\xfc\x4e\x2b\xa9")]), ["a member of a Linux RAID"]);
    assert_eq!(of(&[(LENGTH - 8192, b"\xfc\x4e\x2b\xa9")]), ["a member of a Linux RAID"]);
}

#[test]
fn a_zfs_member_is_told_with_the_name_of_its_pool() {
    let number = ZFS_MAGIC.to_le_bytes();
    let uberblock: (usize, &[u8]) = (LENGTH - (256 << 10) + (128 << 10) + 5 * 1024, &number);
    assert_eq!(of(&[uberblock]), ["a member of a ZFS pool"]);
    let pairs: (usize, &[u8]) =
        (LENGTH - (256 << 10) + (16 << 10) + 44, b"\0\0\0\x04name\0\0\0\x09\0\0\0\x01\0\0\0\x04tank");
    assert_eq!(of(&[uberblock, pairs]), ["a member of a ZFS pool (\"tank\")"]);
}

#[test]
fn a_pc_table_is_told_from_a_boot_sector() {
    let mark: &[u8] = b"\x55\xaa";
    assert_eq!(of(&[(510, mark), (446, b"\x80"), (450, b"\x83")]), ["a PC partition table"]);
    assert_eq!(of(&[(510, mark)]), ["a boot sector"]);
    assert_eq!(of(&[(510, mark), (3, b"NTFS    ")]), ["an NTFS file system"], "its boot sector is part of it");
}

#[test]
fn wiped_contents_are_found_no_more_and_nothing_else_changes() {
    let mut drive =
        drive_with(&[(1080, b"\x53\xef"), (4094, b"keep"), (64 << 10, b"\x01\x16\x19\x70"), (300_000, b"x")]);
    let expected = drive_with(&[(4094, b"keep"), (300_000, b"x")]);
    let contents = found(&mut drive).expect("memory");
    assert_eq!(contents.len(), 2);
    let blocks = blocks_to_wipe(&contents);
    assert_eq!(blocks.iter().copied().collect::<Vec<u64>>(), [0, 16]);
    for block in blocks {
        wipe(&contents, block, &mut drive[(block * BLOCK_BYTES) as usize..][..BLOCK_BYTES as usize]);
    }
    assert!(drive == expected);
    let label = [Contents { what: "a label".into(), label: None, place: (4090, 20) }];
    assert_eq!(blocks_to_wipe(&label).len(), 2, "one that spans two blocks");
    let mut second = vec![7; 4096];
    wipe(&label, 1, &mut second);
    assert!(second[..14].iter().all(|byte| *byte == 0) && second[14..].iter().all(|byte| *byte == 7));
}

#[test]
fn a_file_is_blank_only_if_every_byte_is_zero() {
    let file = tempfile::tempfile().expect("a temporary file");
    let says =
        || -> Vec<String> { found_in_file(&file).expect("it is read").iter().map(ToString::to_string).collect() };
    assert_eq!(says(), Vec::<String>::new(), "empty");
    file.set_len(64 << 20).expect("it grows");
    assert_eq!(says(), Vec::<String>::new(), "a hole");
    file.write_all_at(&[0; 1 << 16], 5 << 20).expect("written");
    assert_eq!(says(), Vec::<String>::new(), "zeros that are stored");
    file.write_all_at(b"x", (40 << 20) + 77).expect("written");
    assert_eq!(says(), ["data"]);
    assert_eq!(found_in_file(&file).expect("it is read")[0].place, ((40 << 20) + 77, 0));
}

#[test]
fn what_wipefs_says_is_read() {
    let text = br#"{"signatures": [
        {"device":"x", "offset":"0x438", "length":2, "type":"ext4", "uuid":"8478", "label":"home"},
        {"device":"x", "offset":"0x1fe", "length":2, "type":"dos", "uuid":null, "label":null}]}"#;
    let says: Vec<String> = parse_wipefs(text).iter().map(ToString::to_string).collect();
    assert_eq!(says, ["a signature of ext4 (\"home\")", "a signature of dos"]);
    assert_eq!(parse_wipefs(text)[0].place, (0x438, 2));
    assert_eq!(parse_wipefs(b"wipefs: not found"), []);
}

/// Checks file systems made by their own tools, each with a label. A tool that is not installed is skipped with a
/// message.
#[test]
fn file_systems_made_by_their_own_tools_are_recognised_with_their_labels() {
    let tools: [(&str, &[&str], &str); 7] = [
        ("mkfs.ext4", &["-q", "-L", "imbrex"], "an ext2, ext3 or ext4 file system"),
        ("mkfs.xfs", &["-q", "-L", "imbrex"], "an XFS file system"),
        ("mkfs.btrfs", &["-q", "-L", "imbrex"], "a Btrfs file system"),
        ("mkfs.vfat", &["-F", "32", "-n", "IMBREX"], "a FAT file system"),
        ("mkfs.f2fs", &["-q", "-l", "imbrex"], "an F2FS file system"),
        ("mkswap", &["-q", "-L", "imbrex"], "swap"),
        ("mkfs.minix", &[], "a Minix file system"),
    ];
    for (tool, options, what) in tools {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(512 << 20).expect("it grows");
        let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let made = Command::new(tool).env("PATH", search).args(options).arg(file.path()).output();
        if made.is_err() {
            println!("skipped: {tool} is not installed");
            continue;
        }
        let contents = found(&mut file.reopen().expect("it opens")).expect("it is read");
        let one = contents.iter().find(|one| one.what == what).unwrap_or_else(|| panic!("{tool}: {contents:?}"));
        let label = one.label.as_deref().map(str::to_lowercase);
        assert!(options.is_empty() || label.as_deref() == Some("imbrex"), "{tool}: {contents:?}");
    }
}
