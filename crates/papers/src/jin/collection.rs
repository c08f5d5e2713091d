//! §II.D.2: garbage collection of HiSMRfs by files and by bands, in disk time.
//!
//! The load is filebench's `fileserver`, which writes more than the disk holds, so that bands are collected while it
//! runs. Afterwards all bands are collected that gain space, and all files are read in order.

use imbrex::Failure;
use imbrex_fs::core::MakeOptions;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::executor::Cause;
use imbrex_fs::format::change::Inode;
use imbrex_fs::load::bench::{self, BenchOptions, Sizes, tree_path};
use imbrex_fs::load::{Files, OnCore};
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Executor, Fs, MountOptions};
use indicatif::ProgressBar;

use super::choices::{COLLECTED_DISK, COLLECTED_FILES, COLLECTED_ROUNDS, FLASH, SEED, WIDTH};
use super::{device, each, made, mount_new, percent, watch};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/collection", title: "garbage collection of HiSMRfs by files and by bands", run };

/// Name of the load, and of its directory.
const LOAD: &str = "fileserver";
const FOLDER: &str = "bench";
/// Cleaners of store `log`: by files, and by bands. Both empty the band with the fewest valid blocks first.
const CLEANERS: [(&str, &str); 2] = [("by files", "files"), ("by bands", "greedy")];

/// Results with one cleaner.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Collected {
    /// Number of blocks that the collection copied.
    copied: u64,
    /// Number of blocks that it freed: those of the emptied bands, less the copies.
    freed: u64,
    /// Number of emptied bands.
    bands: u64,
    /// Number of files that it copied as a whole.
    moved: u64,
    /// Number of files at the end, and number of those that lie in one piece.
    files: u64,
    in_one_piece: u64,
    /// Number of pieces of all files.
    pieces: u64,
    /// Mean time to read a file at the end, in nanoseconds.
    read_ns: u64,
    /// Number of operations a second of the load.
    rate: f64,
    /// Number of blocks that the load wrote to the disk, and number of blocks of the disk.
    loaded: u64,
    disk: u64,
}

impl Collected {
    /// Returns the number of blocks copied for each block freed.
    fn cost(&self) -> f64 {
        self.copied as f64 / self.freed.max(1) as f64
    }

    fn share_in_one_piece(&self) -> f64 {
        self.in_one_piece as f64 / self.files.max(1) as f64
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let seed = replication.seed(SEED);
    let name = |(name, _): &(&str, &str)| name.to_string();
    let found = each(replication, CLEANERS, name, |(_, cleaner), bar| collected(cleaner, seed, bar))?;
    judge(&mut report, &found);
    report.tables.push(table(&found));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `{LOAD}` (seed {SEED}) with {COLLECTED_FILES} files and {COLLECTED_ROUNDS} \
         rounds on a new file system: store `log` on the disk `{COLLECTED_DISK}` of 1 GiB, with its metadata on the \
         flash `{FLASH}`. The load writes more than the disk holds, so bands are collected while it runs. Then all \
         bands are collected that gain space (`imbrex fs clean`), and all files are read in order. Collection by bands \
         (`cleaner=greedy`) moves the valid blocks of the band with the fewest of them. Collection by files \
         (`cleaner=files`) first moves the files as a whole that have a piece in this band, as far as space and time \
         allow. Jin 2014 §II.D.2 describes both kinds and gives no figure. Its collection by files copies all files, \
         ours those in the emptied bands. The values were chosen before the first run (commit {}).",
        super::CHOSEN_PARTS,
    )
}

fn collected(cleaner: &'static str, seed: u64, bar: &ProgressBar) -> Result<Collected, Failure> {
    let executor = Executor::in_virtual_time();
    let (disk, flash) = (device(&executor, COLLECTED_DISK)?, device(&executor, FLASH)?);
    let (own, watch) = (executor.clone(), watch(bar));
    let work = async move {
        let made = MakeOptions { options: vec![("cleaner".into(), cleaner.into())], ..made("log") };
        let (fs, devices) = mount_new(&own, vec![disk], Some(flash), &made, &MountOptions::default()).await?;
        let load = OnCore::new(&fs, FOLDER).await.map_err(Failure::failed)?;
        let benchmark = bench::named(LOAD).expect("it is a line of the registry of benchmarks");
        let sizes = Sizes { files: Some(COLLECTED_FILES), operations: Some(COLLECTED_ROUNDS), ..benchmark.defaults };
        let asked = BenchOptions { sizes, seed, watch };
        let phases = bench::run(benchmark, &load, &asked, |_| {}).await.map_err(Failure::failed)?;
        let rate = phases[1].operations() as f64 * 1e9 / phases[1].elapsed_ns as f64;
        let loaded = devices[0].spent().of(Cause::Data).blocks_written;
        fs.clean(u64::MAX).await.map_err(Failure::failed)?;
        let status = fs.status();
        let emptied = status.counters.zones_cleaned * band_blocks(&fs);
        let copied = status.counters.blocks_cleaned;
        let mut found = Collected {
            copied,
            freed: emptied.saturating_sub(copied),
            bands: status.counters.zones_cleaned,
            moved: status.counters.files_moved,
            files: 0,
            in_one_piece: 0,
            pieces: 0,
            read_ns: 0,
            rate,
            loaded,
            disk: devices[0].geometry().blocks,
        };
        let began_ns = own.now_ns();
        for number in 0..COLLECTED_FILES {
            let path = tree_path(number, WIDTH);
            let Some(inode) = find(&fs, &path) else { continue };
            let pieces = fs.extents(inode).map_err(Failure::failed)?.len() as u64;
            found.files += 1;
            found.pieces += pieces;
            found.in_one_piece += u64::from(pieces <= 1);
            let file = load.open(&path).await.map_err(Failure::failed)?;
            load.read(&file, 0, usize::MAX).await.map_err(Failure::failed)?;
            load.close(file).await.map_err(Failure::failed)?;
        }
        found.read_ns = (own.now_ns() - began_ns) / found.files.max(1);
        Ok::<_, Failure>(found)
    };
    let found = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    found
}

/// Returns the number of blocks of a band.
fn band_blocks(fs: &Fs) -> u64 {
    fs.superblock().shape.map_or(0, |shape| shape.zone_blocks)
}

/// Returns the inode of a file of the load, or `None` if the file does not exist now.
fn find(fs: &Fs, path: &str) -> Option<Inode> {
    let names = [FOLDER].into_iter().chain(path.split('/'));
    names.into_iter().try_fold(ROOT, |inode, name| Some(fs.lookup(inode, name.as_bytes()).ok()?.inode))
}

fn judge(report: &mut Report, found: &[Collected]) {
    let by_files = &found[0];
    report.claim(
        ClaimKind::Shape,
        "collection by files: files copied as a whole",
        "all the files are copied sequentially to a new place",
        format!("{} of {}", by_files.moved, by_files.files),
        Some(by_files.moved == by_files.files),
    );
}

fn table(found: &[Collected]) -> Table {
    let columns = [
        "collection",
        "written by the load",
        "over the disk's size",
        "operations/s of the load",
        "bands emptied",
        "copied",
        "freed",
        "copied for each block freed",
        "files moved whole",
        "files in one piece",
        "pieces of a file",
        "read of a file, ms",
    ];
    let megabytes = |blocks: u64| format!("{:.0} MB", (blocks * BLOCK_BYTES as u64) as f64 / 1e6);
    let line = |((name, _), one): (&(&str, &str), &Collected)| {
        vec![
            name.to_string(),
            megabytes(one.loaded),
            format!("{:.2}", one.loaded as f64 / one.disk as f64),
            format!("{:.0}", one.rate),
            one.bands.to_string(),
            megabytes(one.copied),
            megabytes(one.freed),
            format!("{:.3}", one.cost()),
            one.moved.to_string(),
            percent(one.share_in_one_piece(), 1),
            format!("{:.2}", one.pieces as f64 / one.files.max(1) as f64),
            format!("{:.2}", one.read_ns as f64 / 1e6),
        ]
    };
    Table::new("Collection during the load and after it", &columns, CLEANERS.iter().zip(found).map(line))
}

#[cfg(test)]
mod tests {
    //! Goal: the claim can hold and fail. Method: results written here.

    use super::*;
    use crate::Verdict;

    #[test]
    fn one_file_that_is_not_copied_decides() {
        let verdict = |moved: u64| {
            let one = Collected {
                copied: 1,
                freed: 100,
                bands: 2,
                moved,
                files: 100,
                in_one_piece: 100,
                pieces: 100,
                read_ns: 1,
                rate: 1.0,
                loaded: 1,
                disk: 1,
            };
            let mut report = Report::default();
            judge(&mut report, &[one, Collected { moved: 0, ..one }]);
            report.claims[0].verdict
        };
        assert_eq!([0, 99, 100].map(verdict), [Verdict::No, Verdict::No, Verdict::Yes]);
    }
}
