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

/// Fig. 9: what the paper has so many times as much of: files, bytes of flash, bytes of memory, and bytes of ext4's journal. So the
/// shares of the data that memory and flash hold are the paper's. The drives keep their size.
pub const SMALLER: u64 = 40;
/// Fig. 9: files; the paper says 200K (§III.B).
pub const SERVER_FILES: u64 = 200_000 / SMALLER;
/// Fig. 9: rounds of the load, half as many as files, so that the emulation comes to its end. The paper does not say how long it ran.
pub const SERVER_ROUNDS: u64 = SERVER_FILES / 2;
/// Fig. 9: flash that may be used; the paper says 1 GB of 16 (§III.B).
pub const FLASH_BYTES: u64 = (1 << 30) / SMALLER;
/// Fig. 9: memory; table II says 2 GB.
pub const SERVER_MEMORY_BYTES: u64 = (2 << 30) / SMALLER;
/// Fig. 9: memory of the load itself, which is no smaller: 82 MiB of a run in memory (50 threads have 1 MiB each that they write), and what
/// 50 threads wait for that they read.
pub const LOAD_BYTES: u64 = 96 << 20;
/// Fig. 9: of the memory, the share in percent of what is written and not yet on the drives: `vm.dirty_ratio`, as Linux has it.
pub const DIRTY_PERCENT: u64 = 20;
/// Fig. 9: of the memory, the share in percent of what HiSMRfs keeps of what it wrote; the rest is the page cache in front of it.
pub const WRITTEN_PERCENT: u64 = 10;
/// Fig. 9: ext4's journal: what `mke2fs` gives a file system of 1 TB, 1 GiB.
pub const JOURNAL_BYTES: u64 = (1 << 30) / SMALLER;
/// Fig. 9: the disks, by the name of table II's own.
pub const RAID_DISK: &str = "maxline-250g";
/// Fig. 9: how many there are (table II).
pub const RAID_DISKS: usize = 5;
/// Fig. 9: how many may be lost: "RAID 5" (table II).
pub const RAID_PARITY: u8 = 1;
/// Fig. 9: the flash, of 16 GB. Theirs is an MTRON MOBI 3500 of 2008 (table II), whose data sheet was not found; of the profiles
/// this is the one of its time and kind. Both systems have the same; HiSMRfs lays its table of checksums out for all of the array.
pub const CACHE_FLASH: &str = "flash-2010:geometry.tracks=15258";
/// Fig. 9: how fast the drives of the guest are, of their own speed. An emulated processor is too slow for drives as fast as they are.
pub const PACE: f64 = 0.1;
/// Fig. 9: what a processor may be busy at most, in percent, if what the guest's clock tells is to count.
pub const PROCESSOR_PERCENT: f64 = 30.0;
/// Fig. 9: memory of the guest; the load is bounded within it.
pub const GUEST_MEMORY: &str = "1G";
/// Fig. 9: how long a run of the guest may take on the wall clock.
pub const GUEST_SECONDS: u64 = 5400;
