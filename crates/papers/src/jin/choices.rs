//! Values that an experiment needs and the paper does not give. All were chosen once, before the first run.

/// Seed of all random choices of a load.
pub(super) const SEED: u64 = 1;

/// Fig. 2: numbers of files. Jin 2014 §II.B: "ranging from 50K to 800K"; the steps are ours.
pub(super) const FILES: [u64; 5] = [50_000, 100_000, 200_000, 400_000, 800_000];
/// Fig. 2: size of a file in bytes. The paper gives none. With one block of ext4, each file is exactly one read of
/// data.
pub(super) const FILE_BYTES: usize = 4096;
/// Fig. 2: number of files and directories in a directory, `meandirwidth` in `fileserver.f` of filebench 1.4.9.
pub(super) const WIDTH: u64 = 20;
/// Fig. 2: memory of the reader in bytes, page cache and inodes included; the second is a variant. The paper gives
/// none. A file of `fileserver.f` has 128 KiB, 32 times as much as a file here. So 128 MiB here correspond to 4 GB, the
/// memory of table I: in both cases 800,000 files have 24 times as many bytes.
pub(super) const MEMORY_BYTES: [u64; 2] = [128 << 20, 256 << 20];
/// Fig. 2: number of files read before counting begins, so that the cache is not empty at first.
pub(super) const WARM_READS: usize = 10_000;
/// Fig. 2: number of files read while I/Os are counted.
pub(super) const READS: usize = 10_000;
/// Fig. 2: disk. The paper says "a hard disk drive"; the counts do not depend on its speed.
pub(super) const PC_DISK: &str = "cmr-7200";

/// Figs 6, 7: disk. The paper's is a Seagate ST380013AS of 7200 rpm, not shingled, on which bands are only kept apart
/// (§II.D.2). Ours is the disk of our SMRfs of Singh 2014, of 7200 rpm, with an unshingled partition. The second is a
/// variant without a write cache.
pub(super) const DISKS: [&str; 2] = ["strict-append-2t", "strict-append-2t:host.write_cache_bytes=0"];
/// Figs 6, 7: size of the unshingled partition in bytes: 32 bands of 1 GiB, as in the profile.
pub(super) const PARTITION_BYTES: u64 = 32 << 30;
/// Figs 6, 7: flash for metadata. The paper's is a STEC ZeusIOPS of 73 GB (table I).
pub(super) const FLASH: &str = "flash-2010";
/// Figs 6, 7: size of the page cache in bytes: all of the 4 GB of table I.
pub(super) const PAGE_CACHE_BYTES: u64 = 4 << 30;
/// Figs 6, 7: number of bands to which SMRfs writes files at a time. Singh 2014 §2.2.2: the buffer cache "identifies a
/// band to be written to" and data are written "in a strictly append manner"; no paper gives the number of bands that
/// are written at a time. SMRfs with a band for each file that is being written is a variant.
pub(super) const OPEN_BANDS: u32 = 1;
/// Fig. 7: numbers of threads; the paper does not give the number that it used.
pub(super) const THREADS: [u64; 6] = [1, 2, 4, 6, 8, JUDGED_THREADS];
/// Fig. 7: number of threads with which the claims are judged, that of `varmail.f` of filebench 1.4.9.
pub(super) const JUDGED_THREADS: u64 = 16;
/// Figs 6, 7: personalities of filebench with their own sizes. The paper names the first two and gives no sizes.
/// `fileserver` belongs to fig. 9 and is a variant here.
pub(super) const LOADS: [&str; 3] = ["createfiles", "varmail", "fileserver"];

/// Fig. 9: factor by which our run is smaller than the paper's in four numbers: files, bytes of flash, bytes of
/// memory, bytes of ext4's journal. So memory and flash hold the same shares of the data as in the paper. The drives
/// keep their size.
pub(super) const SMALLER: u64 = 40;
/// Fig. 9: number of files; the paper says 200K (§III.B).
pub(super) const SERVER_FILES: u64 = 200_000 / SMALLER;
/// Fig. 9: number of rounds of the load: half the number of files, so that the emulation ends in acceptable time. The
/// paper does not give the duration of its run.
pub(super) const SERVER_ROUNDS: u64 = SERVER_FILES / 2;
/// Fig. 9: flash that the cache may use, in bytes; the paper says 1 GB of 16 (§III.B).
pub(super) const FLASH_BYTES: u64 = (1 << 30) / SMALLER;
/// Fig. 9: memory in bytes; table II says 2 GB.
pub(super) const SERVER_MEMORY_BYTES: u64 = (2 << 30) / SMALLER;
/// Fig. 9: memory of the load's own process in bytes, which does not shrink with the files. A run took up to 106 MiB, since
/// each of 50 threads has 1 MiB to write. The rest is for the data that 50 threads wait to read. With 96 MiB, Linux ended
/// the load in two of 30 runs in the lab.
pub(super) const LOAD_BYTES: u64 = 128 << 20;
/// Fig. 9: largest share of the memory, in percent, that holds dirty data: `vm.dirty_ratio`, with the default of
/// Linux.
pub(super) const DIRTY_PERCENT: u64 = 20;
/// Fig. 9: share of the memory, in percent, in which HiSMRfs caches data that it has written. The remaining memory is
/// the page cache in front of HiSMRfs.
pub(super) const WRITTEN_PERCENT: u64 = 10;
/// Fig. 9: size of ext4's journal in bytes. `mke2fs` makes 1 GiB for a file system of 1 TB.
pub(super) const JOURNAL_BYTES: u64 = (1 << 30) / SMALLER;
/// Fig. 9: profile of the disks, after the model in table II.
pub(super) const RAID_DISK: &str = "maxline-250g";
/// Fig. 9: number of disks (table II).
pub(super) const RAID_DISKS: usize = 5;
/// Fig. 9: number of disks that may fail: "RAID 5" (table II).
pub(super) const RAID_PARITY: u8 = 1;
/// Fig. 9: flash of 16 GB that writes slowly at random, as that of the paper did: an MTRON MOBI 3500 of 2008 (table II).
/// Its data sheet was not found. The maker had announced writes at 90 MB/s and an access time of 0.1 ms for drives of the
/// year before. Such a drive rewrites a whole block of flash for each write at random. The size of the block is assumed,
/// so that 130 writes of 4 KiB at random take a second; writes in order pass through a buffer of 16 MiB at 83 MB/s.
pub(super) const CACHE_FLASH: &str = "flash-2010+region-rmw:geometry.tracks=15258,host.overhead_ns=100000,\
     mechanics.media_bytes_per_second=180000000,host.write_cache_bytes=16777216,rmw=whole,region_size=448KiB";
/// Fig. 9: flash of 16 GB that writes at random as fast as in order, a variant. HiSMRfs reserves a table of checksums on
/// the flash for all blocks of the array.
pub(super) const FASTER_FLASH: &str = "flash-2010:geometry.tracks=15258";
/// Fig. 9: memory of the guest in bytes, a little more than the load and the kernel need.
pub(super) const GUEST_BYTES: u64 = 256 << 20;

/// §III.B: interval of checkpoints in nanoseconds. Jin 2014 §II.D.1 says "periodically" and gives no interval. F2FS,
/// which the paper cites for metadata (its reference 20), takes a checkpoint each 60 s (`cp_interval`). The load here
/// has a fortieth of the files. We assume that the load takes a fortieth of the time, so the interval is
/// a fortieth, too.
pub(super) const CHECKPOINT_NS: u64 = 60_000_000_000 / SMALLER;
/// §III.B: disks of HiSMRfs with its flash cut: the outer 160th of [`RAID_DISK`]. The table of checksums for the whole
/// array would not fit on the flash of [`FLASH_BYTES`], to which the paper cuts both systems. On whole disks the data
/// begin at the outer diameter, too.
pub(super) const USED_DISK: &str =
    "maxline-250g:geometry.tracks=695,geometry.zone_count=1,geometry.track_sectors_id=976";
/// §III.B: flash of HiSMRfs: [`FLASH_BYTES`], rounded down to tracks of 1 MiB.
pub(super) const CUT_FLASH: &str = "flash-2010:geometry.tracks=25";

/// §II.D: numbers of files and mean sizes in bytes, with nominally 640 MiB each (four fifths of number times mean
/// size). The mean size of the second is that of fig. 9.
pub(super) const METADATA_FILES: [(u64, u64); 3] = [(51_200, 16 << 10), (6_400, 128 << 10), (800, 1 << 20)];

/// §II.D: number of files and their size in bytes, for reads with a hot zone. The files are larger than those that the
/// zone takes when they are written (32 KiB), so that only reads bring them there.
pub(super) const HOT_FILES: u64 = 4000;
pub(super) const HOT_FILE_BYTES: u64 = 64 << 10;
/// §II.D: size of the hot zone, in percent of the data: the hot files of the first skew just fit.
pub(super) const HOT_SHARE: u64 = 20;
/// §II.D: number of reads that warm up the zone, and number of those that count.
pub(super) const HOT_READS: u64 = 10_000;
/// §II.D: skews of the reads: share of the reads, and share of the files that they go to, in percent. The first is the
/// rule of 80 to 20 (Pareto); the paper gives none. The last has no skew.
pub(super) const SKEWS: [(u64, u64); 3] = [(80, 20), (90, 10), (100, 100)];

/// §II.D.2: zoned disk on which files are collected, of 1 GiB so that it fills.
pub(super) const COLLECTED_DISK: &str = "strict-append";
/// §II.D.2: sizes of `fileserver`: number of files, of which four fifths exist (500 MiB of 960), and number of rounds,
/// so that the load writes more than twice the size of the disk.
pub(super) const COLLECTED_FILES: u64 = 5_000;
pub(super) const COLLECTED_ROUNDS: u64 = 15_000;

/// §II.D.3: disks of the array that is rebuilt: fig. 9's with a hundredth of the tracks, 2.5 GB, so that they can be
/// filled.
pub(super) const REBUILD_DISK: &str = "maxline-250g:geometry.tracks=1113";
/// §II.D.3: size of a file in bytes, the mean of `fileserver`.
pub(super) const REBUILD_FILE_BYTES: u64 = 128 << 10;
/// §II.D.3: shares of the array, in percent, that files fill. The last was added after the first run.
pub(super) const FILLS: [u64; 4] = [10, 25, 50, 90];
/// §II.D.3: share of the array, in percent, that files fill in the run with invalid blocks, and share of these files,
/// in percent, that are removed.
pub(super) const REMOVED_FILL: u64 = 50;
pub(super) const REMOVED_PERCENT: u64 = 50;
/// §II.D.3: numbers of rows that a rebuild reads at a time: the default of a mount, and a variant with the rows of one
/// file, which was added after the first run.
pub(super) const PIECE_ROWS: [u64; 2] = [256, 8];
