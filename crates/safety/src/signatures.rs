//! The signatures of partition tables, file systems, and members of arrays and pools: bytes at fixed offsets. The
//! offsets are those of util-linux's `libblkid`.
//!
//! Only signatures of at least two bytes at a fixed offset are listed. [`super::contents`] adds those that are harder
//! to recognise, and calls `wipefs` for the rest.

/// The place of a label on a target, and its encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LabelPlace {
    pub at: u64,
    pub bytes: usize,
    pub is_utf16: bool,
}

/// A signature at a fixed offset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signature {
    /// Name of the contents with this signature, with an article.
    pub what: &'static str,
    /// Offset in bytes; a negative offset counts from the end.
    pub at: i64,
    pub magic: &'static [u8],
    pub label: Option<LabelPlace>,
}

const fn signature(what: &'static str, at: i64, magic: &'static [u8]) -> Signature {
    Signature { what, at, magic, label: None }
}

const fn labelled(what: &'static str, at: i64, magic: &'static [u8], label_at: u64, bytes: usize) -> Signature {
    Signature { what, at, magic, label: Some(LabelPlace { at: label_at, bytes, is_utf16: false }) }
}

const KIB: i64 = 1024;
const K: u64 = 1024;

/// Magic number at offset 0 of the image file of an emulated drive (`imbrex drive`).
pub const IMAGE_MAGIC: &[u8; 8] = b"IMBREX\x1a\n";
/// Magic number at offset 0 of a device that holds a file system of `imbrex fs`.
pub const FS_MAGIC: &[u8; 8] = b"imbrexfs";

/// All signatures of this crate.
pub(crate) const SIGNATURES: &[Signature] = &[
    signature("an image of an emulated drive (imbrex drive)", 0, IMAGE_MAGIC),
    signature("a file system of imbrex fs", 0, FS_MAGIC),
    // Partition tables.
    signature("a GPT partition table", 512, b"EFI PART"),
    signature("a GPT partition table", 4096, b"EFI PART"),
    signature("a GPT partition table", -512, b"EFI PART"),
    signature("a GPT partition table", -4096, b"EFI PART"),
    signature("an Apple partition table", 512, b"PM\0\0"),
    signature("a BSD disk label", 512, b"\x57\x45\x56\x82"),
    signature("a Sun disk label", 508, b"\xda\xbe"),
    signature("an SGI disk label", 0, b"\x0b\xe5\xa9\x41"),
    // File systems.
    labelled("an ext2, ext3 or ext4 file system", 1080, b"\x53\xef", 1024 + 0x78, 16),
    labelled("an XFS file system", 0, b"XFSB", 108, 12),
    labelled("a Btrfs file system", 64 * KIB + 64, b"_BHRfS_M", 64 * K + 0x12b, 256),
    labelled(
        "a Bcachefs file system",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        4096 + 72,
        32,
    ),
    labelled(
        "a Bcachefs or bcache device",
        4096 + 24,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        4096 + 72,
        32,
    ),
    Signature {
        what: "an F2FS file system",
        at: 1024,
        magic: b"\x10\x20\xf5\xf2",
        label: Some(LabelPlace { at: 1024 + 0x7c, bytes: 1024, is_utf16: true }),
    },
    signature("an NTFS file system", 3, b"NTFS    "),
    signature("a ReFS file system", 0, b"\0\0\0ReFS\0"),
    signature("BitLocker encryption", 3, b"-FVE-FS-"),
    signature("an exFAT file system", 3, b"EXFAT   "),
    labelled("a FAT file system", 82, b"FAT32   ", 71, 11),
    labelled("a FAT file system", 54, b"FAT16   ", 43, 11),
    labelled("a FAT file system", 54, b"FAT12   ", 43, 11),
    signature("an HFS file system", 1024, b"BD"),
    signature("an HFS+ file system", 1024, b"H+\0\x04"),
    signature("an HFS+ file system", 1024, b"HX\0\x05"),
    signature("an APFS container", 32, b"NXSB"),
    signature("an HPFS file system", 8192, b"\x49\xe8\x95\xf9"),
    labelled("a JFS file system", 32 * KIB, b"JFS1", 32 * K + 152, 16),
    signature("a ReiserFS file system", 8 * KIB + 52, b"ReIsEr"),
    signature("a ReiserFS file system", 64 * KIB + 52, b"ReIsEr"),
    signature("a Reiser4 file system", 64 * KIB, b"ReIsEr4"),
    signature("a NILFS file system", 1024 + 6, b"\x34\x34"),
    signature("a GFS2 file system", 64 * KIB, b"\x01\x16\x19\x70"),
    signature("an OCFS2 file system", 1024, b"OCFSV2"),
    signature("an OCFS2 file system", 2048, b"OCFSV2"),
    signature("an OCFS2 file system", 4096, b"OCFSV2"),
    signature("an OCFS2 file system", 8192, b"OCFSV2"),
    signature("an Oracle ASM disk", 32, b"ORCLDISK"),
    signature("a UFS file system", 8 * KIB + 1372, b"\x54\x19\x01\x00"),
    signature("a UFS file system", 8 * KIB + 1372, b"\x19\x01\x54\x19"),
    signature("a UFS file system", 64 * KIB + 1372, b"\x54\x19\x01\x00"),
    signature("a UFS file system", 64 * KIB + 1372, b"\x19\x01\x54\x19"),
    signature("a Minix file system", 1024 + 16, b"\x7f\x13"),
    signature("a Minix file system", 1024 + 16, b"\x8f\x13"),
    signature("a Minix file system", 1024 + 16, b"\x68\x24"),
    signature("a Minix file system", 1024 + 16, b"\x78\x24"),
    signature("a Minix file system", 1024 + 24, b"\x5a\x4d"),
    signature("a VxFS file system", 1024, b"\xf5\xfc\x01\xa5"),
    signature("a BeFS file system", 512 + 32, b"1SFB"),
    signature("a BeFS file system", 512 + 32, b"BFS1"),
    signature("a zonefs file system", 0, b"SFOZ"),
    signature("a SquashFS file system", 0, b"hsqs"),
    signature("a SquashFS file system", 0, b"sqsh"),
    labelled("an EROFS file system", 1024, b"\xe2\xe1\xf5\xe0", 1024 + 64, 16),
    signature("a CramFS file system", 0, b"\x45\x3d\xcd\x28"),
    signature("a ROMFS file system", 0, b"-rom1fs-"),
    signature("a UBI volume", 0, b"UBI#"),
    signature("a UBIFS file system", 0, b"\x31\x18\x10\x06"),
    labelled("an ISO 9660 file system", 32 * KIB + 1, b"CD001", 32 * K + 40, 32),
    signature("a UDF file system", 32 * KIB + 1, b"BEA01"),
    signature("a UDF file system", 32 * KIB + 1, b"NSR02"),
    signature("a UDF file system", 32 * KIB + 1, b"NSR03"),
    signature("a VMFS volume", 0x20_0000, b"\x0d\xd0\x01\xc0"),
    signature("a VMFS volume", 0x10_0000, b"\x0d\xd0\x01\xc0"),
    // Swap: the signature is at the end of the first page.
    labelled("swap", 4096 - 10, b"SWAPSPACE2", 1052, 16),
    labelled("swap", 8192 - 10, b"SWAPSPACE2", 1052, 16),
    labelled("swap", 16 * KIB - 10, b"SWAPSPACE2", 1052, 16),
    labelled("swap", 64 * KIB - 10, b"SWAPSPACE2", 1052, 16),
    signature("swap", 4096 - 10, b"SWAP-SPACE"),
    signature("a hibernated system", 4096 - 10, b"S1SUSPEND\0"),
    signature("a hibernated system", 4096 - 10, b"S2SUSPEND\0"),
    signature("a hibernated system", 4096 - 10, b"ULSUSPEND\0"),
    signature("a hibernated system", 4096 - 10, b"LINHIB0001"),
    // Members of encrypted, stacked or pooled devices.
    labelled("LUKS encryption", 0, b"LUKS\xba\xbe", 24, 48),
    signature("LUKS encryption", 0x4000, b"SKUL\xba\xbe"),
    signature("LUKS encryption", 0x8000, b"SKUL\xba\xbe"),
    signature("LUKS encryption", 0x1_0000, b"SKUL\xba\xbe"),
    signature("LUKS encryption", 0x2_0000, b"SKUL\xba\xbe"),
    signature("LUKS encryption", 0x4_0000, b"SKUL\xba\xbe"),
    signature("an LVM physical volume", 0, b"LABELONE"),
    signature("an LVM physical volume", 512, b"LABELONE"),
    signature("an LVM physical volume", 1024, b"LABELONE"),
    signature("an LVM physical volume", 1536, b"LABELONE"),
    signature("an LVM physical volume", 0, b"HM\x01\0"),
    labelled("a member of a Linux RAID", 0, b"\xfc\x4e\x2b\xa9", 32, 32),
    labelled("a member of a Linux RAID", 4096, b"\xfc\x4e\x2b\xa9", 4096 + 32, 32),
    signature("a member of an Intel RAID", -1024, b"Intel Raid ISM Cfg Sig. "),
    signature("a member of a DDF RAID", -512, b"\xde\x11\xde\x11"),
    signature("a device-mapper snapshot", 0, b"SnAp"),
    signature("dm-verity hashes", 0, b"verity\0\0"),
    signature("a dm-integrity device", 0, b"integrt\0"),
    signature("a VDO device", 0, b"dmvdo001"),
    signature("a Stratis pool member", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    signature("a Stratis pool member", 9 * 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    signature("a Ceph store", 0, b"bluestore block device"),
];
