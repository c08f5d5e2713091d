//! What the paper does not give and an experiment must have: chosen once, before the first run.

/// Of all choices of a load.
pub const SEED: u64 = 1;

/// Fig. 2: the numbers of files. Jin 2014 §II.B: "ranging from 50K to 800K"; the steps are ours.
pub const FILES: [u64; 5] = [50_000, 100_000, 200_000, 400_000, 800_000];
/// Fig. 2: bytes of a file. The paper gives none; a block of ext4 makes each file exactly one read of data.
pub const FILE_BYTES: usize = 4096;
/// Fig. 2: files and directories in a directory: `meandirwidth` of filebench 1.4.9, `fileserver.f`.
pub const WIDTH: u64 = 20;
/// Fig. 2: memory of the reader, page cache and inodes included; the second stands beside. The paper gives none. 128 MiB is to
/// the 3.3 GB of 800,000 files what 4 GB, the memory of table I, is to as many of `fileserver.f`'s 128 KiB.
pub const MEMORY_BYTES: [u64; 2] = [128 << 20, 256 << 20];
/// Fig. 2: files read before counting begins, so that the count does not begin with an empty cache.
pub const WARM_READS: usize = 10_000;
/// Fig. 2: files read while it counts.
pub const READS: usize = 10_000;
/// Fig. 2: the disk. The paper says "a hard disk drive"; what is counted does not depend on its speed.
pub const PC_DISK: &str = "cmr-7200";

/// Figs 6, 7: the disk. Theirs is a Seagate ST380013AS of 7200 rpm without shingles, on which bands are only kept apart
/// (§II.D.2); ours is the disk that the SMRfs of Singh 2014 has here, of 7200 rpm and with its unshingled partition. The second
/// is without a write cache, and stands beside.
pub const DISKS: [&str; 2] = ["strict-append-2t", "strict-append-2t:host.write_cache_bytes=0"];
/// Figs 6, 7: bytes of the unshingled partition: 32 bands of 1 GiB, as the profile has them.
pub const PARTITION_BYTES: u64 = 32 << 30;
/// Figs 6, 7: flash for metadata; theirs is a STEC ZeusIOPS of 73 GB (table I).
pub const FLASH: &str = "flash-2010";
/// Figs 6, 7: the page cache: all of the 4 GB of table I.
pub const PAGE_CACHE_BYTES: u64 = 4 << 30;
/// Figs 6, 7: filebench's personalities with their own sizes. The paper names the first two and no sizes; `fileserver` is fig. 9's and
/// stands beside.
pub const LOADS: [&str; 3] = ["createfiles", "varmail", "fileserver"];
