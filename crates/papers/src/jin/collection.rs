//! §II.D.2: garbage collection of HiSMRfs by files and by bands, in disk time.
//!
//! The load is filebench's `fileserver` on a disk that it fills several times, so that bands are collected while it
//! runs. Afterwards all bands are collected that gain space, and all files are read in order.

use std::sync::Arc;

use imbrex::Failure;
use imbrex_fs::core::{MakeOptions, make};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::format::change::Inode;
use imbrex_fs::load::bench::{self, BenchOptions, Sizes, tree_path};
use imbrex_fs::load::{Files, OnCore};
use imbrex_fs::namespace::ROOT;
use imbrex_fs::{Executor, Fs, MountOptions};
use indicatif::ProgressBar;
use uuid::Uuid;

use super::choices::{COLLECTED_DISK, COLLECTED_FILES, COLLECTED_ROUNDS, FLASH, SEED};
use super::device;
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/collection", title: "garbage collection of HiSMRfs by files and by bands", run };

/// Name of the load, and of its directory.
const LOAD: &str = "fileserver";
const FOLDER: &str = "bench";
/// Mean number of entries of a directory of the load: `meandirwidth` in `fileserver.f`.
const WIDTH: u64 = 20;
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
    let mut found = Vec::new();
    for (name, cleaner) in CLEANERS {
        let bar = replication.progress.steps(name);
        found.push(collected(cleaner, replication.seed(SEED), &bar)?);
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
    }
    judge(&mut report, &found);
    report.tables.push(table(&found));
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment runs filebench's `{LOAD}` (seed {SEED}) with {COLLECTED_FILES} files and {COLLECTED_ROUNDS} rounds \
         on a new file system: store `log` on the disk `{COLLECTED_DISK}` of 1 GiB, with its metadata on the flash \
         `{FLASH}`. The load writes the disk more than twice, so bands are collected while it runs. Then all bands are \
         collected that gain space (`imbrex fs clean`), and all files are read in order. Collection by bands \
         (`cleaner=greedy`) moves the valid blocks of the band with the fewest of them. Collection by files \
         (`cleaner=files`) first moves the files as a whole that have a piece in this band, as far as space and time \
         allow. Jin 2014 §II.D.2 describes both kinds and gives no figure. Its collection by files copies all files, ours \
         those in the emptied bands. The values were chosen before the first run (commit {}).",
        super::CHOSEN_SECTION2,
    )
}

fn collected(cleaner: &'static str, seed: u64, bar: &ProgressBar) -> Result<Collected, Failure> {
    let executor = Executor::in_virtual_time();
    let (disk, flash) = (device(&executor, COLLECTED_DISK)?, device(&executor, FLASH)?);
    let (own, bar) = (executor.clone(), bar.clone());
    let watch: bench::Watch = Arc::new(move |_| {
        bar.inc(1);
        true
    });
    let work = async move {
        let made = MakeOptions {
            uuid: Some(Uuid::from_u128(1)),
            store: Some("log".into()),
            options: vec![("cleaner".into(), cleaner.into())],
            ..MakeOptions::default()
        };
        make(&disk, Some(&flash), &made, 0).await.map_err(Failure::failed)?;
        let (fs, _) = Fs::mount(&own, &[disk, flash], &MountOptions::default()).await.map_err(Failure::failed)?;
        let load = OnCore::new(&fs, FOLDER).await.map_err(Failure::failed)?;
        let benchmark = bench::named(LOAD).expect("it is a line of the registry of benchmarks");
        let sizes = Sizes { files: Some(COLLECTED_FILES), operations: Some(COLLECTED_ROUNDS), ..benchmark.defaults };
        let asked = BenchOptions { sizes, seed, watch };
        let phases = bench::run(benchmark, &load, &asked, |_| {}).await.map_err(Failure::failed)?;
        let rate = phases[1].operations() as f64 * 1e9 / phases[1].elapsed_ns as f64;
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

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn judge(report: &mut Report, found: &[Collected]) {
    let [by_files, by_bands] = [&found[0], &found[1]];
    report.claim(
        ClaimKind::Shape,
        "collection by files: files that lie in one piece afterwards",
        "all the files are copied sequentially to a new place (99 % at least)",
        percent(by_files.share_in_one_piece()),
        Some(by_files.share_in_one_piece() >= 0.99),
    );
    report.claim(
        ClaimKind::Shape,
        "blocks copied for each block freed, by bands and by files",
        "by bands only the valid blocks of the bands are moved (fewer)",
        format!("{:.3}, {:.3}", by_bands.cost(), by_files.cost()),
        Some(by_bands.bands > 0 && by_bands.cost() < by_files.cost()),
    );
}

fn table(found: &[Collected]) -> Table {
    let columns = [
        "collection",
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
            format!("{:.0}", one.rate),
            one.bands.to_string(),
            megabytes(one.copied),
            megabytes(one.freed),
            format!("{:.3}", one.cost()),
            one.moved.to_string(),
            percent(one.share_in_one_piece()),
            format!("{:.2}", one.pieces as f64 / one.files.max(1) as f64),
            format!("{:.2}", one.read_ns as f64 / 1e6),
        ]
    };
    Table {
        heading: "Collection during the load and after it".into(),
        columns: columns.map(String::from).to_vec(),
        rows: CLEANERS.iter().zip(found).map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail. Method: results written here.

    use super::*;
    use crate::Verdict;

    fn one(copied: u64, in_one_piece: u64) -> Collected {
        Collected {
            copied,
            freed: 100,
            bands: 2,
            moved: 0,
            files: 100,
            in_one_piece,
            pieces: 200,
            read_ns: 1,
            rate: 1.0,
        }
    }

    fn verdicts(by_files: Collected, by_bands: Collected) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, &[by_files, by_bands]);
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_claim_can_hold_and_fail() {
        assert_eq!(verdicts(one(51, 99), one(50, 1)), [Verdict::Yes; 2]);
        assert_eq!(verdicts(one(50, 98), one(50, 100)), [Verdict::No; 2]);
        let nothing = Collected { bands: 0, ..one(0, 1) };
        assert_eq!(verdicts(one(50, 99), nothing), [Verdict::Yes, Verdict::No], "nothing was collected");
    }
}
