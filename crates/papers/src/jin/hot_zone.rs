//! §II.D: reads of files with and without a hot zone, in disk time.
//!
//! A single reader reads whole files, and nothing is cached in memory. The file system counts the reads that the hot
//! zone serves.

use imbrex::Failure;
use imbrex_fs::core::MakeOptions;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::random::Choices;
use imbrex_fs::load::{Files, OnCore};
use imbrex_fs::{Executor, MountOptions};

use super::choices::{DISKS, FLASH, HOT_FILE_BYTES, HOT_FILES, HOT_READS, HOT_SHARE, SEED, SKEWS};
use super::{device, each, made, mount_new, shown};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/hot-zone", title: "reads of files with and without a hot zone, in time of the disk", run };

/// Number and total time of some reads of whole files.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Reads {
    count: u64,
    ns: u64,
}

impl Reads {
    fn add(&mut self, ns: u64) {
        *self = Reads { count: self.count + 1, ns: self.ns + ns };
    }

    fn and(self, other: Reads) -> Reads {
        Reads { count: self.count + other.count, ns: self.ns + other.ns }
    }

    /// Returns the mean time of a read in milliseconds, or `None` if there was none.
    fn mean_ms(self) -> Option<f64> {
        (self.count > 0).then(|| self.ns as f64 / self.count as f64 / 1e6)
    }
}

/// Reads of one run, without those that warm up the hot zone.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Served {
    by_zone: Reads,
    by_disk: Reads,
}

impl Served {
    fn all(self) -> Reads {
        self.by_zone.and(self.by_disk)
    }
}

/// Reads at one skew, without and with a hot zone.
struct Row {
    /// Share of the reads, in percent, that go to a share of the files, in percent.
    skew: (u64, u64),
    without: Served,
    with: Served,
}

impl Row {
    /// Returns the mean time of a read with the hot zone over that without.
    fn gain(&self) -> Option<f64> {
        Some(self.with.all().mean_ms()? / self.without.all().mean_ms()?)
    }

    /// Returns the mean time of a read from the hot zone over that of a read from the disk in the same run.
    fn zone_over_disk(&self) -> Option<f64> {
        Some(self.with.by_zone.mean_ms()? / self.with.by_disk.mean_ms()?)
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let seed = replication.seed(SEED);
    let name = |(percent, share): &(u64, u64)| format!("{percent} % of the reads to {share} % of the files");
    let rows = each(replication, SKEWS, name, |skew, bar| {
        let without = reads(skew, 0, seed)?;
        bar.inc(1);
        Ok(Row { skew, without, with: reads(skew, zone_blocks(), seed)? })
    })?;
    judge(&mut report, &rows[0]);
    report.tables.push(table(&rows));
    Ok(report)
}

/// Returns the size of the hot zone in blocks.
fn zone_blocks() -> u64 {
    HOT_FILES * HOT_FILE_BYTES / BLOCK_BYTES as u64 * HOT_SHARE / 100
}

/// Makes the files on a new file system with a hot zone of `hot_blocks` blocks, reads some of them, and returns the
/// second half of the reads.
fn reads(skew: (u64, u64), hot_blocks: u64, seed: u64) -> Result<Served, Failure> {
    let executor = Executor::in_virtual_time();
    let (disk, flash) = (device(&executor, DISKS[0])?, device(&executor, FLASH)?);
    let own = executor.clone();
    let work = async move {
        let made = MakeOptions { hot_blocks, ..made("log") };
        let (fs, _) = mount_new(&own, vec![disk], Some(flash), &made, &MountOptions::default()).await?;
        let files = OnCore::new(&fs, "files").await.map_err(Failure::failed)?;
        make_files(&files).await.map_err(Failure::failed)?;
        let mut choices = Choices::new(seed);
        let mut served = Served::default();
        for number in 0..2 * HOT_READS {
            let file = files.open(&name(chosen(skew, &mut choices))).await.map_err(Failure::failed)?;
            let (before_ns, before) = (own.now_ns(), fs.status().hot.counters.hits);
            files.read(&file, 0, HOT_FILE_BYTES as usize).await.map_err(Failure::failed)?;
            let took_ns = own.now_ns() - before_ns;
            let is_from_zone = fs.status().hot.counters.hits > before;
            if number >= HOT_READS {
                if is_from_zone { &mut served.by_zone } else { &mut served.by_disk }.add(took_ns);
            }
            files.close(file).await.map_err(Failure::failed)?;
        }
        Ok::<_, Failure>(served)
    };
    let served = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    served
}

fn name(number: u64) -> String {
    format!("{number:06}")
}

/// Returns the number of a file to be read: a file of the first share with the probability of the skew, else another.
fn chosen((percent, share): (u64, u64), choices: &mut Choices) -> u64 {
    let hot = HOT_FILES * share / 100;
    let is_hot = hot == HOT_FILES || choices.below(100) < percent;
    let rank = if is_hot { choices.below(hot) } else { hot + choices.below(HOT_FILES - hot) };
    // A prime step scatters the hot files over the disk.
    rank * 7919 % HOT_FILES
}

async fn make_files(files: &OnCore) -> Result<(), imbrex_fs::load::LoadError> {
    let contents = Choices::new(1).bytes(HOT_FILE_BYTES as usize);
    for number in 0..HOT_FILES {
        let file = files.create(&name(number)).await?;
        files.write(&file, 0, &contents).await?;
        files.close(file).await?;
    }
    files.sync_all().await
}

fn method() -> String {
    let skews =
        SKEWS.map(|(percent, share)| format!("{percent} % of the reads go to {share} % of the files")).join("; ");
    format!(
        "{HOT_FILES} files of {} KiB lie on a new file system, store `log`, on the disk `{}`, with its metadata on the \
         flash `{FLASH}`. One reader reads whole files, {HOT_READS} to warm up and {HOT_READS} that count, without a \
         page cache (seed {SEED}). By row, {skews}. The hot zone is on the flash (`mkfs --hot`) and has room for \
         {HOT_SHARE} % of the data: with the first skew, the hot files just fit. So the mean time of all reads is by \
         construction, and not counted. Jin 2014 §II.D gives no load, no size of the zone and no figure. The first \
         skew is judged; the values were chosen before the first run (commit {}).",
        HOT_FILE_BYTES >> 10,
        DISKS[0],
        super::CHOSEN_PARTS,
    )
}

fn judge(report: &mut Report, row: &Row) {
    let (percent, share) = row.skew;
    let is_much_faster = |ratio: Option<f64>| Some(ratio.is_some_and(|ratio| ratio <= 0.5));
    report.claim(
        ClaimKind::Shape,
        "time to read a file from the hot zone, over that from the shingled part",
        "much faster (a half at most)",
        shown(row.zone_over_disk()),
        is_much_faster(row.zone_over_disk()),
    );
    report.claim(
        ClaimKind::ByConstruction,
        &format!(
            "{percent} % of the reads to {share} % of the files: time of a read with a hot zone over that without"
        ),
        "much faster (a half at most)",
        shown(row.gain()),
        is_much_faster(row.gain()),
    );
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "reads, % to % of the files",
        "without a hot zone, ms a read",
        "with it, ms a read",
        "with over without",
        "served by the zone",
        "from the zone, ms a read",
        "from the disk, ms a read",
    ];
    let line = |row: &Row| {
        let served = row.with.by_zone.count as f64 * 100.0 / row.with.all().count as f64;
        vec![
            format!("{} to {}", row.skew.0, row.skew.1),
            shown(row.without.all().mean_ms()),
            shown(row.with.all().mean_ms()),
            shown(row.gain()),
            format!("{served:.1} %"),
            shown(row.with.by_zone.mean_ms()),
            shown(row.with.by_disk.mean_ms()),
        ]
    };
    Table::new("Mean time of a read", &columns, rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail, and the choice of files has the shares of the skew. Method: reads written
    //! here; counts of choices beside the shares.

    use std::collections::BTreeSet;

    use super::*;
    use crate::Verdict;

    fn report(with: Served, without_ns: u64) -> Report {
        let mut report = Report::default();
        let without = Served { by_disk: Reads { count: 10, ns: without_ns }, ..Served::default() };
        judge(&mut report, &Row { skew: (80, 20), without, with });
        report
    }

    fn verdicts(with: Served, without_ns: u64) -> Vec<Verdict> {
        report(with, without_ns).claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_claim_can_hold_and_fail() {
        let of = |flash_ns, disk_ns| Served {
            by_zone: Reads { count: 5, ns: flash_ns },
            by_disk: Reads { count: 5, ns: disk_ns },
        };
        assert_eq!(verdicts(of(50, 100), 300), [Verdict::Yes; 2]);
        assert_eq!(verdicts(of(51, 100), 301), [Verdict::No, Verdict::No]);
        let none = Served { by_disk: Reads { count: 10, ns: 100 }, ..Served::default() };
        assert_eq!(verdicts(none, 100), [Verdict::No; 2], "the zone serves no read");
    }

    #[test]
    fn the_size_of_the_zone_decides_the_mean_of_all_reads_so_it_is_not_counted() {
        let (skew, share) = SKEWS[0];
        assert_eq!((share, skew), (HOT_SHARE, 80), "the hot files of the first skew just fit");
        let counted =
            report(Served::default(), 1).claims.iter().map(|claim| claim.kind.is_counted()).collect::<Vec<_>>();
        assert_eq!(counted, [true, false]);
    }

    #[test]
    fn files_are_chosen_by_the_skew() {
        let mut choices = Choices::new(1);
        let hot: BTreeSet<u64> = (0..HOT_FILES / 5).map(|rank| rank * 7919 % HOT_FILES).collect();
        assert_eq!(hot.len() as u64, HOT_FILES / 5, "the step has no factor in common with the number of files");
        let count = (0..10_000).filter(|_| hot.contains(&chosen((80, 20), &mut choices))).count();
        assert!((7_800..=8_200).contains(&count), "{count} of 10,000");
    }
}
