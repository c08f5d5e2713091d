//! §III.B: the flash that HiSMRfs uses, with checkpoints at intervals (§II.D.1) and without, and with the flash cut to
//! 1 GB as for Flashcache.

use imbrex::Failure;

use super::choices::{
    CHECKPOINT_NS, CUT_FLASH, FASTER_FLASH, FLASH_BYTES, RAID_DISK, SEED, SERVER_FILES, SMALLER, USED_DISK,
};
use super::each;
use super::fig09::Outcome;
use super::fig09::core::{self, OnFlash, Setup, WHOLE};
use crate::report::Table;
use crate::{ClaimKind, Experiment, Replication, Report};

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "jin/flash", title: "flash that HiSMRfs uses for 200,000 files", run };

/// Setups with their names; the first is the paper's.
const SETUPS: [(&str, Setup); 3] = [
    (
        "flash of 1 GB, checkpoints at intervals",
        Setup { disk: USED_DISK, flash: CUT_FLASH, checkpoint_ns: Some(CHECKPOINT_NS) },
    ),
    ("flash of 1 GB, checkpoints when the log fills", Setup { disk: USED_DISK, flash: CUT_FLASH, checkpoint_ns: None }),
    ("whole flash and disks, checkpoints when the log fills", WHOLE),
];
/// Largest share that is "much less": about 50 MB of 1 GB (§III.B), with the upper bound of 55 MB.
const MUCH_LESS: f64 = 0.055;

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report { method: method(), ..Report::default() };
    let seed = replication.seed(SEED);
    let name = |(name, _): &(&str, Setup)| name.to_string();
    let found = each(replication, SETUPS, name, |(_, setup), bar| core::run(setup, seed, bar))?;
    let on_flash: Vec<OnFlash> = found.iter().map(|(_, on_flash)| *on_flash).collect();
    judge(&mut report, on_flash[0]);
    report.tables.push(flash_table(&on_flash));
    report.tables.push(speed_table(&found));
    Ok(report)
}

fn method() -> String {
    format!(
        "HiSMRfs runs the load of [jin/fig09](jin-fig09.md), `fileserver` with {SERVER_FILES} files, on five disks \
         with one parity, in virtual time (seed {SEED}). Files, flash and memory are a {SMALLER}th of those of Jin \
         2014; sizes on this page are those for 200,000 files, {SMALLER} times as large. The paper cuts the flash of \
         both systems to 1 GB. Our checksums for whole disks do not fit on that, so HiSMRfs has the outer 160th of \
         each disk (`{USED_DISK}`) with the flash `{CUT_FLASH}`. A checkpoint is taken each {:.1} s: the interval of \
         F2FS, which the paper cites, is 60 s, and we assume that a {SMALLER}th of the load takes a {SMALLER}th of the \
         time. The second run takes checkpoints when the log fills, as `imbrex fs` does by default. The third has \
         whole disks (`{RAID_DISK}`) and the whole flash (`{FASTER_FLASH}`), as on the page of fig. 9. Flash used is \
         two checkpoints, the log that is needed, and the checksums of all stored data, at the end of the load. The \
         values were chosen before the first run (commit {}). The outer 80th of each disk was tried before, and `mkfs` \
         refused it.",
        CHECKPOINT_NS as f64 / 1e9,
        super::CHOSEN_FLASH,
    )
}

/// Returns a number of bytes for all files of the paper, in MB.
fn for_all(bytes: u64) -> f64 {
    (bytes * SMALLER) as f64 / 1e6
}

fn judge(report: &mut Report, on_flash: OnFlash) {
    let megabytes = for_all(on_flash.all());
    report.claim(
        ClaimKind::Shape,
        "flash that HiSMRfs used, for 200,000 files",
        "about 50 MB (45 to 55)",
        format!("{megabytes:.0} MB"),
        Some((45.0..=55.0).contains(&megabytes)),
    );
    let share = on_flash.all() as f64 / FLASH_BYTES as f64;
    report.claim(
        ClaimKind::Shape,
        "flash used: HiSMRfs over the 1 GB that Flashcache fills",
        "much less (about 50 MB of 1 GB: 0.055 at most)",
        format!("{share:.3}"),
        Some(share <= MUCH_LESS),
    );
}

fn flash_table(found: &[OnFlash]) -> Table {
    let columns =
        ["HiSMRfs with", "two checkpoints, MB", "log, MB", "checksums, MB", "all, MB", "all without checksums"];
    let line = |((name, _), one): (&(&str, Setup), &OnFlash)| {
        let parts = [one.checkpoints, one.log, one.checksums, one.all(), one.all() - one.checksums];
        [name.to_string()].into_iter().chain(parts.map(|bytes| format!("{:.0}", for_all(bytes)))).collect()
    };
    Table::new("Flash used, for 200,000 files", &columns, SETUPS.iter().zip(found).map(line))
}

fn speed_table(found: &[(Outcome, OnFlash)]) -> Table {
    let columns = ["HiSMRfs with", "pre-allocate, s of the disks", "operations/s of the disks", "mean latency, ms"];
    let line = |((name, _), (outcome, _)): (&(&str, Setup), &(Outcome, OnFlash))| {
        let [before, run] = &outcome.phases;
        vec![
            name.to_string(),
            format!("{:.2}", before.disk_seconds()),
            format!("{:.0}", run.rate()),
            run.latency_ns.map_or("–".into(), |ns| format!("{:.2}", ns as f64 / 1e6)),
        ]
    };
    Table::new("Speed", &columns, SETUPS.iter().zip(found).map(line))
}

#[cfg(test)]
mod tests {
    //! Goal: each claim can hold and fail. Method: sizes written here, a fortieth of the paper's.

    use super::*;
    use crate::Verdict;

    fn verdicts(megabytes: u64) -> Vec<Verdict> {
        let mut report = Report::default();
        judge(&mut report, OnFlash { checkpoints: megabytes * 1_000_000 / SMALLER, log: 0, checksums: 0 });
        report.claims.iter().map(|claim| claim.verdict).collect()
    }

    #[test]
    fn each_claim_can_hold_and_fail() {
        assert_eq!(verdicts(50), [Verdict::Yes; 2]);
        assert_eq!(verdicts(44), [Verdict::No, Verdict::Yes], "less than about 50 MB");
        assert_eq!(verdicts(55), [Verdict::Yes; 2], "the upper bound of both");
        assert_eq!(verdicts(60), [Verdict::No; 2]);
    }
}
