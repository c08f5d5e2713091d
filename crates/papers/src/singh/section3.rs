//! §3.2: the sectors that a write may damage, by DNOR and DID. A write of sector k may damage sectors k + 1 + DNOR to
//! k + DID.

use std::collections::BTreeSet;

use imbrex_disk::{Extent, Pba};

use super::super::aghayev::observed::Dice;
use super::super::{ClaimKind, Experiment, Replication, Report};
use imbrex::drives::fresh;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "singh/section3.2", title: "which sectors a write may damage, by DNOR and DID", run };

/// Number of writes tried on each disk.
const WRITES: u64 = 2_000;
/// Largest number of sectors in a write: more than either isolation distance.
const SECTORS_MAX: u64 = 1_024;
/// Disks: (DNOR, DID), with the two isolation distances of the paper.
const DISKS: [(u64, u64); 6] = [(0, 16), (6, 16), (15, 16), (0, 512), (6, 512), (511, 512)];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment makes {WRITES} random writes of 1 to {SECTORS_MAX} sectors on each disk. The sectors \
             that our model of the disk damages are compared with two results: those of the formula of Singh 2014 \
             §3.2, and those that follow from the paper's definitions of DNOR and DID for single sectors. By the \
             definitions, writing sector k may damage the sectors from k + 1 + DNOR to k + DID; a write does not \
             damage its own sectors."
        ),
        ..Report::default()
    };
    for (dnor, did) in DISKS {
        let (formula, sectors) = agreements(dnor, did, replication)?;
        report.claim(
            ClaimKind::Derived,
            &format!("DNOR {dnor}, DID {did}: sectors that a write of sectors i to j may damage"),
            "max(i + 1 + DNOR, j + 1) to j + DID",
            format!("equal in {formula} of {WRITES} writes; equal to the damage of its single sectors in {sectors}"),
            Some(formula == WRITES && sectors == WRITES),
        );
    }
    Ok(report)
}

/// Returns the number of writes in which the model agrees with the paper's formula, and with the union over the single
/// sectors.
fn agreements(dnor: u64, did: u64, replication: &Replication) -> Result<(u64, u64), Failure> {
    let drive = fresh(&format!("caveat-1g:recording.no_overlap_sectors={dnor},recording.isolation_sectors={did}"))?;
    let disk = &drive.disk;
    let mut dice = Dice(replication.seed(31));
    let (mut formula, mut singles) = (0, 0);
    for _ in 0..WRITES {
        if replication.progress.should_stop() {
            return Err(Failure::interrupted());
        }
        let first = dice.below(disk.geometry.sectors().0 - SECTORS_MAX - did);
        let last = first + dice.below(SECTORS_MAX);
        let mut damaged = Vec::new();
        disk.recording.destroys(&disk.geometry, Extent::between(Pba(first), Pba(last + 1)), &mut damaged);
        let damaged: BTreeSet<u64> = damaged.iter().flat_map(|extent| extent.start.0..extent.end().0).collect();
        let theirs: BTreeSet<u64> = ((first + 1 + dnor).max(last + 1)..=last + did).collect();
        let each = (first..=last).flat_map(|sector| sector + 1 + dnor..=sector + did);
        let each: BTreeSet<u64> = each.filter(|sector| !(first..=last).contains(sector)).collect();
        formula += u64::from(damaged == theirs);
        singles += u64::from(damaged == each);
    }
    Ok((formula, singles))
}
