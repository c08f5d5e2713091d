//! §II.D.3: the rebuild of a lost drive by HiSMRfs, which knows the blocks of files, against that of a RAID at the
//! level of blocks, which does not.
//!
//! HiSMRfs runs in virtual time. A RAID at the level of blocks reads every block of all other drives and writes every
//! block of the new one: its counts are in closed form, and its time is that of one write of a whole drive in order.

use imbrex::Failure;
use imbrex_fs::core::{MakeOptions, Parts, make_on};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::random::Choices;
use imbrex_fs::load::{Files, LoadError, OnCore};
use imbrex_fs::{Device, Executor, Fs, MountOptions};
use uuid::Uuid;

use super::choices::{
    CACHE_FLASH, FILLS, RAID_DISKS, RAID_PARITY, REBUILD_DISK, REBUILD_FILE_BYTES, REMOVED_PERCENT, SEED,
};
use super::device;
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/rebuild", title: "rebuild of a drive at the level of files and of blocks", run };

const BYTES: u64 = BLOCK_BYTES as u64;
/// Number of the drive that is lost.
const LOST: u8 = 1;
/// Number of blocks of one write of the whole drive.
const PIECE_BLOCKS: u64 = 256;
/// Time that the file system gets after a mount, so that its search for blocks without records is not measured.
const SETTLE_NS: u64 = 1_000_000_000;

/// State of the array before the drive is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    /// Share of the array, in percent, that files fill.
    fill: u64,
    /// Share of these files, in percent, that are removed before the drive is lost.
    removed: u64,
}

/// Counts and times of a rebuild.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Rebuilt {
    state: State,
    /// Number of blocks of files when the drive was lost.
    live: u64,
    /// Number of blocks read from the other drives, all together.
    read: u64,
    /// Number of blocks written to the new drive.
    written: u64,
    elapsed_ns: u64,
}

/// Size and time of a rebuild at the level of blocks.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Whole {
    /// Number of blocks of a drive.
    blocks: u64,
    elapsed_ns: u64,
}

impl Rebuilt {
    /// Returns the blocks reconstructed, as a share of those of a drive: one block is read from each other drive for
    /// each.
    fn reconstructed(&self, whole: Whole) -> f64 {
        self.read as f64 / (RAID_DISKS as u64 - 1) as f64 / whole.blocks as f64
    }

    /// Returns the blocks of files on a drive, parity included, as a share of those of a drive.
    fn used(&self, whole: Whole) -> f64 {
        self.live as f64 / (RAID_DISKS as u64 - u64::from(RAID_PARITY)) as f64 / whole.blocks as f64
    }

    fn seconds(&self) -> f64 {
        self.elapsed_ns as f64 / 1e9
    }
}

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let whole = whole()?;
    let states = FILLS.iter().map(|fill| State { fill: *fill, removed: 0 });
    let last = FILLS[FILLS.len() - 1];
    let mut all = Vec::new();
    for state in states.chain([State { fill: last, removed: REMOVED_PERCENT }]) {
        let bar = replication.progress.steps(&format!("{} % filled, {} % removed", state.fill, state.removed));
        all.push(rebuilt(state, whole, replication.seed(SEED))?);
        bar.finish_and_clear();
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
    }
    judge(&mut report, &all, whole);
    report.tables.push(table(&all, whole));
    Ok(report)
}

fn method() -> String {
    format!(
        "{RAID_DISKS} disks `{REBUILD_DISK}`, a hundredth of those of Jin 2014 table II, and a flash `{CACHE_FLASH}` for the \
         metadata are an array of store `log` with one parity. Files of {} KiB fill a share of it. Drive {LOST} is lost, \
         and an empty drive takes its place (`imbrex fs replace`), in virtual time. In the last row, {REMOVED_PERCENT} % \
         of the files, drawn at random (seed {SEED}), were removed before. A RAID at the level of blocks does not know \
         the files: it reads all blocks of the other drives and writes all of the new one. Its blocks follow from the \
         size of the drive, and its time is that of a write of the whole drive in order, by the same model of the disk. \
         The paper gives no figure. The values were chosen before the first run (commit {}).",
        REBUILD_FILE_BYTES >> 10,
        super::CHOSEN_SECTION2,
    )
}

/// Measures a write of a whole drive in order.
fn whole() -> Result<Whole, Failure> {
    let executor = Executor::in_virtual_time();
    let drive = device(&executor, REBUILD_DISK)?;
    let blocks = drive.geometry().blocks;
    let own = executor.clone();
    let work = async move {
        let mut block = 0;
        while block < blocks {
            let count = PIECE_BLOCKS.min(blocks - block);
            drive.write(block, vec![1; count as usize * BLOCK_BYTES]).await.map_err(Failure::failed)?;
            block += count;
        }
        drive.flush().await.map_err(Failure::failed)?;
        Ok::<_, Failure>(own.now_ns())
    };
    let elapsed_ns = executor.run(work).map_err(Failure::failed)??;
    executor.shut_down();
    Ok(Whole { blocks, elapsed_ns })
}

fn rebuilt(state: State, whole: Whole, seed: u64) -> Result<Rebuilt, Failure> {
    let executor = Executor::in_virtual_time();
    let drives = (0..RAID_DISKS).map(|_| device(&executor, REBUILD_DISK)).collect::<Result<Vec<_>, _>>()?;
    let (flash, new) = (device(&executor, CACHE_FLASH)?, device(&executor, REBUILD_DISK)?);
    let own = executor.clone();
    let work = async move {
        let made = MakeOptions {
            uuid: Some(Uuid::from_u128(1)),
            store: Some("log".into()),
            parity: RAID_PARITY,
            ..MakeOptions::default()
        };
        let metadata = std::slice::from_ref(&flash);
        make_on(Parts { drives: &drives, metadata, spares: &[] }, &made, 0).await.map_err(Failure::failed)?;
        let devices: Vec<Device> = drives.into_iter().chain([flash]).collect();
        let mount = async |devices: &[Device]| Fs::mount(&own, devices, &MountOptions::default()).await;
        let (fs, _) = mount(&devices).await.map_err(Failure::failed)?;
        let count =
            whole.blocks * (RAID_DISKS as u64 - u64::from(RAID_PARITY)) * BYTES * state.fill / 100 / REBUILD_FILE_BYTES;
        fill(&fs, count, state.removed, seed).await.map_err(Failure::failed)?;
        fs.unmount().await.map_err(Failure::failed)?;
        let left: Vec<Device> = devices
            .into_iter()
            .enumerate()
            .filter(|(number, _)| *number != usize::from(LOST))
            .map(|(_, device)| device)
            .collect();
        let (fs, _) = mount(&left).await.map_err(Failure::failed)?;
        own.sleep(SETTLE_NS).await;
        let live = fs.status().usage.live;
        let others = &left[..RAID_DISKS - 1];
        let read = || others.iter().map(|drive| drive.traffic().blocks_read).sum::<u64>();
        let (began_ns, before) = (own.now_ns(), read());
        let uuid = Uuid::from_u128(99);
        fs.replace_drive(LOST, Some((&new, uuid)), false, |_| true).await.map_err(Failure::failed)?;
        let (elapsed_ns, written) = (own.now_ns() - began_ns, new.traffic().blocks_written);
        Ok::<_, Failure>(Rebuilt { state, live, read: read() - before, written, elapsed_ns })
    };
    let done = executor.run(work).map_err(Failure::failed)?;
    executor.shut_down();
    done
}

/// Makes `count` files, and removes a share of them at random.
async fn fill(fs: &Fs, count: u64, removed_percent: u64, seed: u64) -> Result<(), LoadError> {
    let files = OnCore::new(fs, "files").await?;
    let contents = Choices::new(1).bytes(REBUILD_FILE_BYTES as usize);
    for number in 0..count {
        let file = files.create(&number.to_string()).await?;
        files.write(&file, 0, &contents).await?;
        files.close(file).await?;
    }
    files.sync_all().await?;
    let mut choices = Choices::new(seed);
    for number in 0..count {
        if choices.below(100) < removed_percent {
            files.remove(&number.to_string()).await?;
        }
    }
    files.sync_all().await
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn judge(report: &mut Report, all: &[Rebuilt], whole: Whole) {
    let shares = |all: &[Rebuilt]| {
        let each =
            all.iter().map(|one| format!("{} of {}", percent(one.reconstructed(whole)), percent(one.used(whole))));
        each.collect::<Vec<_>>().join(", ")
    };
    // Records among the data, and the last rows of files, are a few blocks in a hundred.
    let are_only_used = |all: &[Rebuilt]| all.iter().all(|one| one.reconstructed(whole) <= 1.1 * one.used(whole));
    let (removed, full): (Vec<Rebuilt>, Vec<Rebuilt>) = all.iter().partition(|one| one.state.removed > 0);
    report.claim(
        ClaimKind::Shape,
        "free blocks: share of a drive that is reconstructed, of the share that files use",
        "only blocks of files are reconstructed (within a tenth)",
        shares(&full),
        Some(are_only_used(&full)),
    );
    report.claim(
        ClaimKind::Shape,
        "invalid blocks: share of a drive that is reconstructed, of the share that files use",
        "only blocks of files are reconstructed (within a tenth)",
        shares(&removed),
        Some(are_only_used(&removed)),
    );
    let times: Vec<f64> = all.iter().map(|one| one.elapsed_ns as f64 / whole.elapsed_ns as f64).collect();
    report.claim(
        ClaimKind::Shape,
        "time of a rebuild, at the level of files over that of blocks",
        "optimised with the information of the file system (under 1)",
        times.iter().map(|time| format!("{time:.2}")).collect::<Vec<_>>().join(", "),
        Some(times.iter().all(|time| *time < 1.0)),
    );
}

fn table(all: &[Rebuilt], whole: Whole) -> Table {
    let columns = ["filled", "files removed", "files use", "reconstructed", "blocks read", "blocks written", "time, s"];
    let megabytes = |blocks: u64| format!("{:.0} MB", (blocks * BYTES) as f64 / 1e6);
    let line = |one: &Rebuilt| {
        vec![
            format!("{} %", one.state.fill),
            format!("{} %", one.state.removed),
            percent(one.used(whole)),
            percent(one.reconstructed(whole)),
            megabytes(one.read),
            megabytes(one.written),
            format!("{:.2}", one.seconds()),
        ]
    };
    let others = RAID_DISKS as u64 - 1;
    let blocks = [
        "RAID of blocks, any fill".into(),
        "–".into(),
        "–".into(),
        percent(1.0),
        megabytes(others * whole.blocks),
        megabytes(whole.blocks),
        format!("{:.2}", whole.elapsed_ns as f64 / 1e9),
    ];
    Table {
        heading: "Rebuild of a drive".into(),
        columns: columns.map(String::from).to_vec(),
        rows: all.iter().map(line).chain([blocks.to_vec()]).collect(),
    }
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail. Method: rebuilds written here.

    use super::*;
    use crate::Verdict;

    const WHOLE: Whole = Whole { blocks: 1000, elapsed_ns: 100 };

    /// Returns a rebuild in which files use `used` blocks of a drive, and `reconstructed` are reconstructed.
    fn one(removed: u64, used: u64, reconstructed: u64, elapsed_ns: u64) -> Rebuilt {
        let state = State { fill: 50, removed };
        Rebuilt { state, live: 4 * used, read: 4 * reconstructed, written: reconstructed, elapsed_ns }
    }

    fn verdicts(all: &[Rebuilt]) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, all, WHOLE);
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_claim_can_hold_and_fail() {
        assert_eq!(verdicts(&[one(0, 100, 110, 99), one(50, 50, 55, 50)]), [Verdict::Yes; 3]);
        assert_eq!(verdicts(&[one(0, 100, 111, 100), one(50, 50, 56, 50)]), [Verdict::No; 3]);
        assert_eq!(verdicts(&[one(0, 100, 100, 99), one(50, 50, 100, 50)])[..2], [Verdict::Yes, Verdict::No]);
    }
}
