//! The check of an image: conditions that must hold beyond those for opening the image. [`crate::repair`] can repair
//! the findings.
//!
//! A drive whose process was killed is consistent after crash recovery. So [`check_image`] runs this recovery in
//! memory, leaves the medium unchanged, and checks the result. The space of the image is checked before the recovery,
//! because the recovery rewrites states and sectors and so hides damage there.
//!
//! Invariants:
//! 1. Memory is bounded: the check holds a limited number of runs of the map at a time.
//! 2. Nothing is written to the image.

use std::fmt;

use imbrex_disk::{Extent, Lba, Pba, Sectors};
use imbrex_layer::{Condition, Layer, Medium, Piece, Violation};

use crate::error::DeviceError;
use crate::image::Region;
use crate::image::scrub::Flaw;
use crate::media::Media;
use crate::media::overlay::Overlay;
use crate::store::Store;

/// Most findings of one kind that are listed. An image with more is beyond repair in any case.
const FINDINGS_MAX: usize = 10_000;
/// Logical sectors looked up at once.
const WINDOW_SECTORS: u64 = 1 << 20;
/// Number of runs of the map held at once; twice as many while they are collected.
const RUNS_MAX: usize = 1 << 20;

/// A fault found by a check of an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// The image cannot be opened, for this reason.
    Unopenable(String),
    /// An invariant of the translation layer does not hold.
    Layer(Violation),
    /// One of the two copies of a journal record is damaged.
    Journal {
        /// Number of the record, from 0.
        record: u64,
        /// Which of the two copies is damaged: 0 or 1.
        copy: usize,
    },
    /// Metadata or contents in the image are damaged.
    Image(Flaw),
    /// The map from logical to physical sectors leaves sectors out, repeats sectors, or points past the end of a
    /// medium.
    Map {
        /// First logical sector of the fault.
        lba: Lba,
        /// Description of the fault, such as "repeats sectors".
        what: &'static str,
    },
    /// The map assigns physical sectors to two runs of logical sectors.
    Shared {
        /// Medium of the physical sectors.
        medium: Medium,
        /// First of the shared physical sectors.
        pba: Pba,
        /// Number of shared physical sectors.
        sectors: Sectors,
        /// The two LBAs to which the first shared sector is assigned.
        lbas: [Lba; 2],
    },
    /// Logical sectors whose physical sectors were destroyed by a write to a track that overlaps them.
    Destroyed {
        /// First logical sector of the run.
        lba: Lba,
        /// Physical sector of `lba`.
        pba: Pba,
        /// Number of destroyed sectors in the run.
        sectors: Sectors,
    },
    /// Logical sectors whose physical sectors cannot be read, because the image is damaged there.
    Unreadable {
        /// First logical sector of the run.
        lba: Lba,
        /// Medium of the physical sectors.
        medium: Medium,
        /// Physical sector of `lba`.
        pba: Pba,
        /// Number of unreadable sectors in the run.
        sectors: Sectors,
    },
}

impl Finding {
    /// Returns the run of logical sectors that the fault makes unreadable, as first LBA and length. Returns `None` for
    /// findings other than [`Finding::Destroyed`] and [`Finding::Unreadable`].
    pub fn lbas(&self) -> Option<(Lba, Sectors)> {
        match self {
            Finding::Destroyed { lba, sectors, .. } | Finding::Unreadable { lba, sectors, .. } => {
                Some((*lba, *sectors))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Unopenable(reason) => write!(f, "the image does not open: {reason}"),
            Finding::Layer(violation) => violation.fmt(f),
            Finding::Journal { record, copy } => write!(f, "copy {copy} of journal record {record} is damaged"),
            Finding::Image(flaw) => flaw.fmt(f),
            Finding::Map { lba, what } => write!(f, "the map {what} at {lba}"),
            Finding::Shared { medium, pba, sectors, lbas: [first, second] } => {
                write!(f, "{} sectors from {pba} of the {medium:?} serve both {first} and {second}", sectors.0)
            }
            Finding::Destroyed { lba, pba, sectors } => {
                write!(f, "{} live sectors from {lba} on were destroyed at {pba}", sectors.0)
            }
            Finding::Unreadable { lba, medium, pba, sectors } => {
                let count = sectors.0;
                write!(f, "{count} live sectors from {lba} on cannot be read: damage at {pba} of the {medium:?}")
            }
        }
    }
}

/// Result of a check of an image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Faults found. Beyond 10,000 faults, further ones may be left out.
    pub findings: Vec<Finding>,
    /// Runs of logical sectors that the image records as lost by earlier damage: first LBA and length. They are not
    /// among the findings.
    pub lost: Vec<(Lba, Sectors)>,
}

/// Callback for the progress of a check. It receives the bytes checked so far and their total, which is the size of the
/// allocated part of the image.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Checks the image on `media` as it would be after recovery from a power cut. The medium is not written: all changes
/// of the recovery stay in memory. `place` names the image in errors. Damage that keeps the image from opening is a
/// finding, not an error.
///
/// # Errors
/// The file is not an image, has an unsupported version or is a copy of an image in use, or the medium fails.
pub fn check_image<M: Media>(media: M, place: &str, progress: Progress<'_>) -> Result<Checked, DeviceError> {
    let mut checked = Checked::default();
    match check_opened(Overlay::new(media), place, progress, &mut checked) {
        Err(error) if is_damage(&error) => checked.findings.push(Finding::Unopenable(error.to_string())),
        outcome => outcome?,
    }
    Ok(checked)
}

fn check_opened<M: Media>(
    media: M,
    place: &str,
    progress: Progress<'_>,
    checked: &mut Checked,
) -> Result<(), DeviceError> {
    let (mut drive, mut store) = Store::open_to_look(media, place)?;
    store.space.refuse_copied_at_work(place)?;
    checked.lost = store.lost().runs().collect();
    store.settle()?;
    store.check_space(place, progress, &mut checked.findings)?;
    store.begin_work(drive.layer.as_mut())?;
    store.check_map(drive.layer.as_ref(), &mut checked.findings)
}

/// Returns whether `error` means that the image was valid once and is damaged now.
pub(crate) fn is_damage(error: &DeviceError) -> bool {
    use DeviceError::{Corrupt, Damaged, Destroyed, Lost, Replay};
    matches!(error, Damaged { .. } | Replay(_) | Destroyed { .. } | Corrupt { .. } | Lost { .. })
}

impl<M: Media> Store<M> {
    /// Checks the journal, the image's metadata and contents, and the map of `layer`, which must be the layer of this
    /// image, and returns the faults found. `place` names the image in errors. Sectors whose contents do not match
    /// their checksums, or whose checksums are damaged, are marked as unreadable in the image. To be called only
    /// between plans.
    ///
    /// # Errors
    /// The medium fails.
    pub fn check(
        &mut self,
        layer: &dyn Layer,
        place: &str,
        progress: Progress<'_>,
    ) -> Result<Vec<Finding>, DeviceError> {
        let mut findings = Vec::new();
        self.check_space(place, progress, &mut findings)?;
        self.check_map(layer, &mut findings)?;
        Ok(findings)
    }

    /// Checks the journal and the space of the image as stored.
    pub(crate) fn check_space(
        &mut self,
        place: &str,
        progress: Progress<'_>,
        findings: &mut Vec<Finding>,
    ) -> Result<(), DeviceError> {
        self.journal.for_each_spoilt(&mut self.space, |record, copy| {
            push(findings, Finding::Journal { record, copy });
        })?;
        let flaws = self.flaws(place, progress)?;
        flaws.into_iter().for_each(|flaw| push(findings, Finding::Image(flaw)));
        Ok(())
    }

    /// Checks the map of `layer`, and that the sectors to which the map points can be read.
    fn check_map(&mut self, layer: &dyn Layer, findings: &mut Vec<Finding>) -> Result<(), DeviceError> {
        findings.extend(layer.self_check().err().map(Finding::Layer));
        let limits = [Sectors(self.header().disk_sectors), Sectors(self.header().flash_sectors)];
        findings.extend(check_coverage(layer, limits));
        for medium in [Medium::Disk, Medium::Flash] {
            findings.extend(check_sharing(layer, medium, RUNS_MAX));
        }
        self.for_each_unreadable(layer, |finding| push(findings, finding))
    }

    /// Returns the faults in the space of the image. Marks sectors whose contents do not match their checksums as
    /// unreadable in the sector tables, so that a later check of the map reports them.
    fn flaws(&mut self, place: &str, progress: Progress<'_>) -> Result<Vec<Flaw>, DeviceError> {
        let (header, mut flaws) = (self.header().clone(), Vec::new());
        self.space.scrub(&header, place, &mut |flaw| flaws.push(flaw), progress)?;
        for flaw in &flaws {
            if let Flaw::Table { region, extent } | Flaw::Contents { region, extent } = flaw {
                self.space.give_up(*region, *extent)?;
            }
        }
        Ok(flaws)
    }

    /// Calls `each` with the live sectors that cannot be read. In zones, the sectors below the write pointer are
    /// live. On a caveat disk only the host knows the live sectors, so only damage to the image counts there.
    pub(crate) fn for_each_unreadable(
        &mut self,
        layer: &dyn Layer,
        mut each: impl FnMut(Finding),
    ) -> Result<(), DeviceError> {
        use crate::image::transfer::Class;
        let limits = [self.header().disk_sectors, self.header().flash_sectors];
        let host_knows = layer.is_host_managed() && layer.zones().is_none();
        let mut outcome = Ok(());
        for_each_piece(layer, |piece| {
            let piece = &below_pointer(layer, piece);
            let Some((medium, pba)) = piece.at.filter(|_| !piece.sectors.is_zero()) else { return };
            if outcome.is_err() || pba.0 + piece.sectors.0 > limits[medium as usize] {
                return;
            }
            let region = if medium == Medium::Disk { Region::Disk } else { Region::Flash };
            let extent = Extent::new(pba, piece.sectors);
            outcome = self.space.for_each_class(region, extent, |run, class| {
                let (lba, sectors) = (piece.lba + (run.start - pba), run.sectors);
                match class {
                    Class::Destroyed if !host_knows => each(Finding::Destroyed { lba, pba: run.start, sectors }),
                    Class::Spoilt => each(Finding::Unreadable { lba, medium, pba: run.start, sectors }),
                    _ => {}
                }
            });
        });
        outcome
    }
}

fn push(findings: &mut Vec<Finding>, finding: Finding) {
    if findings.len() < FINDINGS_MAX {
        findings.push(finding);
    }
}

/// Returns the part of `piece` below the write pointer of its zone, which is the part that the host has written.
/// Returns all of `piece` for a conventional zone or a drive without zones. The piece must lie in one zone.
pub(crate) fn below_pointer(layer: &dyn Layer, piece: &Piece) -> Piece {
    let Some(zones) = layer.zones() else { return *piece };
    let written_end = zones.index_of(piece.lba).and_then(|index| {
        let zone = zones.zone(index)?;
        let is_kept = zone.condition != Condition::Conventional;
        Ok(if is_kept { zone.start + zones.written(index)? } else { zone.start + zone.sectors })
    });
    // An offline zone holds no data.
    let written_end = written_end.unwrap_or(piece.lba);
    let end = (piece.lba + piece.sectors).min(written_end.max(piece.lba));
    Piece { sectors: end - piece.lba, ..*piece }
}

/// Calls `each` with every piece of the map, in order of LBA.
fn for_each_piece(layer: &dyn Layer, mut each: impl FnMut(&Piece)) {
    let (mut pieces, mut start) = (Vec::new(), 0);
    while start < layer.capacity().0 {
        let sectors = WINDOW_SECTORS.min(layer.capacity().0 - start);
        pieces.clear();
        layer.lookup(Lba(start), Sectors(sectors), &mut pieces);
        pieces.iter().for_each(&mut each);
        start += sectors;
    }
}

/// Returns a finding for each place where the map leaves out or repeats sectors or points past the end of a medium.
fn check_coverage(layer: &dyn Layer, limits: [Sectors; 2]) -> Vec<Finding> {
    let (mut findings, mut next) = (Vec::new(), 0);
    let mut found = |lba, what| {
        if findings.len() < FINDINGS_MAX {
            findings.push(Finding::Map { lba, what });
        }
    };
    for_each_piece(layer, |piece| {
        if piece.lba.0 != next {
            found(
                Lba(next.min(piece.lba.0)),
                if piece.lba.0 > next { "leaves sectors out" } else { "repeats sectors" },
            );
        }
        next = piece.lba.0 + piece.sectors.0;
        let is_there = |(medium, pba): (Medium, Pba)| pba.0 + piece.sectors.0 <= limits[medium as usize].0;
        if !piece.at.is_none_or(is_there) {
            found(piece.lba, "points past the medium");
        }
    });
    if next != layer.capacity().0 {
        found(Lba(next), "ends too early or too late");
    }
    findings
}

/// A run of the map: physical sectors `start..end` of a medium, of which the first serves `lba`.
#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    end: u64,
    lba: u64,
}

/// Returns a finding for each run of physical sectors that serves two logical runs. Goes through the runs of the map
/// in order of PBA and compares each with the run before it that reaches furthest. Holds at most twice `runs_max`
/// runs at a time.
fn check_sharing(layer: &dyn Layer, medium: Medium, runs_max: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut reach: Option<Run> = None;
    let mut low = Some(0);
    while let Some(from) = low {
        let (runs, next) = runs_from(layer, medium, from, runs_max);
        for run in runs {
            if let Some(before) = reach.filter(|before| before.end > run.start && findings.len() < FINDINGS_MAX) {
                let first = Lba(before.lba + run.start - before.start);
                let sectors = Sectors(run.end.min(before.end) - run.start);
                findings.push(Finding::Shared { medium, pba: Pba(run.start), sectors, lbas: [first, Lba(run.lba)] });
            }
            if reach.is_none_or(|before| run.end > before.end) {
                reach = Some(run);
            }
        }
        low = next;
    }
    findings
}

/// The runs of the map that begin in `low..high` of a medium.
struct Stretch {
    low: u64,
    /// End of the stretch, if there are more runs than are kept.
    high: Option<u64>,
    runs: Vec<Run>,
    runs_max: usize,
}

impl Stretch {
    fn take_in(&mut self, run: Run) {
        if run.start < self.low || self.high.is_some_and(|high| run.start >= high) {
            return;
        }
        self.runs.push(run);
        if self.runs.len() < self.runs_max * 2 {
            return;
        }
        self.runs.sort_unstable_by_key(|run| (run.start, run.lba));
        // If very many runs begin at one sector, the first few are enough for findings, so the others are dropped.
        let high = self.runs[self.runs_max].start.max(self.runs[0].start + 1);
        self.runs.truncate(self.runs_max.max(2));
        self.runs.retain(|run| run.start < high);
        self.high = Some(high);
    }
}

/// Returns the runs of the map that begin at or after `low`, in order, as many as fit. Also returns the sector at
/// which the remaining runs begin, if there are any.
fn runs_from(layer: &dyn Layer, medium: Medium, low: u64, runs_max: usize) -> (Vec<Run>, Option<u64>) {
    let mut stretch = Stretch { low, high: None, runs: Vec::new(), runs_max };
    let mut open: Option<Run> = None;
    for_each_piece(layer, |piece| {
        let Some((_, pba)) = piece.at.filter(|(on, _)| *on == medium) else { return };
        let run = Run { start: pba.0, end: pba.0 + piece.sectors.0, lba: piece.lba.0 };
        match &mut open {
            Some(last) if last.end == run.start && last.lba + (last.end - last.start) == run.lba => last.end = run.end,
            _ => open.replace(run).into_iter().for_each(|whole| stretch.take_in(whole)),
        }
    });
    open.into_iter().for_each(|whole| stretch.take_in(whole));
    stretch.runs.sort_unstable_by_key(|run| (run.start, run.lba));
    (stretch.runs, stretch.high)
}

#[cfg(test)]
mod tests;
