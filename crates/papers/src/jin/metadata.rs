//! §II.D: the metadata of HiSMRfs over the data of its files, by the size of a file.
//!
//! The metadata are those that lie on the flash after the pre-allocation of `fileserver` and a checkpoint.

use imbrex::Failure;
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::OnCore;
use imbrex_fs::load::bench::{self, BenchOptions, Sizes};
use imbrex_fs::{Executor, MountOptions};

use super::choices::{DISKS, FLASH, METADATA_FILES, SEED};
use super::fig09::core::OnFlash;
use super::{device, each, made, mount_new, percent, watch};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/metadata", title: "metadata of HiSMRfs over the data of its files", run };

/// Name of the load.
const LOAD: &str = "fileserver";

/// Sizes of data and metadata of one file system.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Row {
    /// Mean size of a file in bytes.
    file_bytes: u64,
    /// Number of files, directories included.
    files: u64,
    /// Number of bytes of blocks of files.
    data: u64,
    metadata: OnFlash,
}

impl Row {
    /// Returns the metadata over the data.
    fn share(&self) -> f64 {
        self.metadata.all() as f64 / self.data as f64
    }

    /// Returns the metadata without the checksums of the data, which the paper does not mention, over the data.
    fn share_without_checksums(&self) -> f64 {
        (self.metadata.all() - self.metadata.checksums) as f64 / self.data as f64
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let seed = replication.seed(SEED);
    let name = |(files, file_bytes): &(u64, u64)| format!("{files} files of {} KiB", file_bytes >> 10);
    let rows = each(replication, METADATA_FILES, name, |(files, bytes), bar| row(files, bytes, seed, bar))?;
    judge(&mut report, &rows);
    report.tables.push(table(&rows));
    report.remarks.push(
        "§III.B of the paper has about 50 MB of metadata for 200,000 files. With the mean size of a file in \
         filebench's `fileserver`, 128 KiB, their data have 26 GB, and the metadata 0.2 % of that: less than its 1 to \
         2 % of §II.D."
            .into(),
    );
    Ok(report)
}

fn method() -> String {
    format!(
        "The experiment makes the files of filebench's `{LOAD}` (pre-allocation, seed {SEED}) with several mean sizes \
         on new file systems: store `log` on the disk `{}`, with its metadata on the flash `{FLASH}`. Then it takes a \
         checkpoint. Metadata are two checkpoints, the log, and the checksums of the data; data are the blocks of \
         files. The paper does not give the size of its files. The second size, that of `fileserver.f`, is judged. The \
         values were chosen before the first run (commit {}).",
        DISKS[0],
        super::CHOSEN_PARTS,
    )
}

fn row(files: u64, file_bytes: u64, seed: u64, bar: &indicatif::ProgressBar) -> Result<Row, Failure> {
    let executor = Executor::in_virtual_time();
    let (disk, flash) = (device(&executor, DISKS[0])?, device(&executor, FLASH)?);
    let (own, watch) = (executor.clone(), watch(bar));
    let work = async move {
        let (fs, _) = mount_new(&own, vec![disk], Some(flash), &made("log"), &MountOptions::default()).await?;
        let load = OnCore::new(&fs, "bench").await.map_err(Failure::failed)?;
        let benchmark = bench::named(LOAD).expect("it is a line of the registry of benchmarks");
        let sizes =
            Sizes { files: Some(files), file_bytes: Some(file_bytes), operations: Some(0), ..benchmark.defaults };
        bench::run(benchmark, &load, &BenchOptions { sizes, seed, watch }, |_| {}).await.map_err(Failure::failed)?;
        fs.checkpoint().await.map_err(Failure::failed)?;
        let status = fs.status();
        let data = status.usage.live * BLOCK_BYTES as u64;
        Ok::<_, Failure>(Row { file_bytes, files: status.files, data, metadata: OnFlash::of(&fs) })
    };
    let row = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    row
}

fn judge(report: &mut Report, rows: &[Row]) {
    let row = &rows[1];
    report.claim(
        ClaimKind::Shape,
        &format!("metadata over the data of files, files of {} KiB on average", row.file_bytes >> 10),
        "about 1 to 2 % (0.95 to 2.05 %)",
        percent(row.share(), 2),
        Some((0.0095..=0.0205).contains(&row.share())),
    );
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        "mean size of a file",
        "files and directories",
        "data",
        "two checkpoints",
        "log",
        "checksums",
        "metadata over data",
        "without checksums",
    ];
    let megabytes = |bytes: u64| format!("{:.2} MB", bytes as f64 / 1e6);
    let line = |row: &Row| {
        vec![
            format!("{} KiB", row.file_bytes >> 10),
            row.files.to_string(),
            megabytes(row.data),
            megabytes(row.metadata.checkpoints),
            megabytes(row.metadata.log),
            megabytes(row.metadata.checksums),
            percent(row.share(), 2),
            percent(row.share_without_checksums(), 2),
        ]
    };
    Table::new("Data and metadata", &columns, rows.iter().map(line))
}

#[cfg(test)]
mod tests {
    //! Goal: the claim can hold and fail, at both ends. Method: rows written here.

    use super::*;
    use crate::Verdict;

    #[test]
    fn the_share_is_bounded_at_both_ends() {
        let verdict = |metadata: u64| {
            let metadata = OnFlash { checkpoints: metadata, log: 0, checksums: 0 };
            let row = Row { file_bytes: 128 << 10, files: 1, data: 1_000_000, metadata };
            let mut report = Report::default();
            judge(&mut report, &[row, row, row]);
            report.claims[0].verdict
        };
        assert_eq!([9_400, 9_600, 20_400, 20_600].map(verdict), [Verdict::No, Verdict::Yes, Verdict::Yes, Verdict::No]);
    }
}
