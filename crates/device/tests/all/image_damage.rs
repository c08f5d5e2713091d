//! Goal: a damaged image never returns wrong bytes, and its damage is reported. A repair makes the image usable again
//! and loses only the sectors that it lists. Method: images of every layer with known contents are damaged at random,
//! in bytes that are in use. Each is opened, read, checked, repaired, read, rewritten and read again. The expected
//! contents come from a host that has no access to the image.
//!
//! A short form runs with the other tests; `IMBREX_DAMAGES=n` asks for `n` damages per layer.

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

use imbrex_device::DeviceError;
use imbrex_device::check::check_image;
use imbrex_device::image::Bounds;
use imbrex_device::image::regions::{Use, Used};
use imbrex_device::media::memory::Memory;
use imbrex_device::repair::repair_image;
use imbrex_layer::registry;
use imbrex_layer::verify::toy::below;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use crate::common;
use crate::common::Subject;
use crate::common::damage::Damage;
use crate::common::recorded::{Host, Readings, Recorded, bytes_of, open, read_all, recorded, used};

/// Damages applied to copies of one image before another image is made.
const DAMAGES_AN_IMAGE: u64 = 100;

/// The bytes in use that a damage changed.
struct Changed {
    kinds: BTreeSet<Use>,
    /// Most sectors that the damage may lose, as long as one valid copy of all metadata remains.
    sectors: u64,
    is_truncated: bool,
}

impl Changed {
    fn of(pieces: &[Used], whole: &[u8], damaged: &Memory) -> Changed {
        let after = bytes_of(damaged.clone());
        let mut changed = Changed { kinds: BTreeSet::new(), sectors: 0, is_truncated: after.len() < whole.len() };
        let differs = |range: std::ops::Range<usize>| {
            let there = after.get(range.start.min(after.len())..range.end.min(after.len())).unwrap_or(&[]);
            // Bytes past the end of the file are missing, even if they were zeros.
            there.len() < range.len() || there != &whole[range]
        };
        for piece in pieces {
            let range = piece.offset as usize..(piece.offset + piece.bytes) as usize;
            if !differs(range.clone()) {
                continue;
            }
            changed.kinds.insert(piece.what);
            changed.sectors += match piece.what {
                Use::Contents => range.step_by(512).filter(|&at| differs(at..at + 512)).count() as u64,
                Use::SectorTable => 62,
                _ => 0,
            };
        }
        changed
    }
}

/// Counts of the outcomes for a layer.
#[derive(Default)]
struct Tally {
    damages: u64,
    changed: u64,
    opened: u64,
    refused: u64,
    unreadable: u64,
    named_lost: u64,
    beyond_repair: u64,
    /// Failures, which must all be zero: wrong data, panics, damage that no check reports, images unusable after a
    /// repair.
    wrong: u64,
    panics: u64,
    unnamed: u64,
    unusable: u64,
    complaints: Vec<String>,
}

impl Tally {
    fn complain(&mut self, what: String) {
        if self.complaints.len() < 20 {
            self.complaints.push(what);
        }
    }
}

/// One damaged image, from its opening to its rewriting.
struct Trial<'a> {
    subject: &'a Subject,
    right: &'a [u64],
    bounds: Bounds,
    damage: Damage,
    changed: Changed,
}

impl Trial<'_> {
    fn run(&self, damaged: &Memory, tally: &mut Tally) {
        let is_open = self.open_and_read(damaged, tally);
        self.check(damaged, tally);
        self.repair(damaged, is_open, tally);
    }

    fn complain(&self, tally: &mut Tally, what: String) {
        tally.complain(format!("{}, {:?}, {:?}: {what}", self.subject.what, self.damage, self.changed.kinds));
    }

    /// Returns whether the image must open: a damaged run in one place is too short to hit both copies of any
    /// metadata.
    fn must_open(&self) -> bool {
        matches!(self.damage, Damage::Flip { .. } | Damage::Zero { .. })
    }

    fn open_and_read(&self, damaged: &Memory, tally: &mut Tally) -> bool {
        match open(damaged.clone(), self.bounds) {
            Ok(mut drive) => {
                tally.opened += 1;
                let readings = read_all(&mut drive, self.right);
                tally.unreadable += readings.errors.len() as u64;
                self.judge(&readings, self.changed.sectors, tally);
                if let Err(error) = drive.shut_down() {
                    self.complain(tally, format!("it cannot be switched off: {error}"));
                    tally.unusable += 1;
                }
                true
            }
            Err(error @ (DeviceError::Image { .. } | DeviceError::Damaged { .. })) if !self.must_open() => {
                tally.refused += 1;
                let said = error.to_string();
                if !["--repair", "restore it", "drive create", "use the one that made it"]
                    .iter()
                    .any(|way| said.contains(way))
                {
                    self.complain(tally, format!("says not what to do: {said}"));
                    tally.unnamed += 1;
                }
                false
            }
            Err(error) => {
                self.complain(tally, format!("does not open: {error}"));
                tally.unusable += 1;
                false
            }
        }
    }

    fn judge(&self, readings: &Readings, sectors_max: u64, tally: &mut Tally) {
        tally.wrong += readings.wrong.len() as u64;
        if !readings.wrong.is_empty() {
            self.complain(tally, format!("wrong data in sectors {:?}", readings.wrong));
        }
        if !self.changed.is_truncated && readings.errors.len() as u64 > sectors_max {
            let count = readings.errors.len();
            self.complain(tally, format!("{count} sectors are errors, of {sectors_max} damaged ones at most"));
            tally.unusable += 1;
        }
    }

    fn check(&self, damaged: &Memory, tally: &mut Tally) {
        let named = match check_image(damaged.clone(), "image", &mut |_, _| {}) {
            Ok(checked) => !checked.findings.is_empty(),
            // The first bytes are damaged in all copies, so the file is not recognized as an image.
            Err(DeviceError::Image { .. }) => true,
            Err(error) => {
                self.complain(tally, format!("the check fails: {error}"));
                false
            }
        };
        let is_damaged = !self.changed.kinds.is_empty();
        if is_damaged && !named {
            tally.unnamed += 1;
            self.complain(tally, "the check finds nothing".into());
        }
    }

    fn repair(&self, damaged: &Memory, was_open: bool, tally: &mut Tally) {
        let (repaired, image) = match repair_image(damaged.clone(), "image", &mut |_, _| {}) {
            Ok(done) => done,
            Err(DeviceError::Image { .. } | DeviceError::Damaged { .. }) if self.changed.is_truncated && !was_open => {
                tally.beyond_repair += 1;
                return;
            }
            Err(error) => {
                tally.unusable += 1;
                return self.complain(tally, format!("cannot be repaired: {error}"));
            }
        };
        let lost: BTreeSet<u64> = repaired.lost.iter().flat_map(|(lba, sectors)| lba.0..lba.0 + sectors.0).collect();
        tally.named_lost += lost.len() as u64;
        let is_too_much = was_open && !self.changed.is_truncated && lost.len() as u64 > self.changed.sectors;
        let is_unnamed = !self.changed.kinds.is_empty() && repaired.findings.is_empty();
        let after = check_image(image.clone(), "image", &mut |_, _| {}).map(|checked| checked.findings);
        if !matches!(&after, Ok(findings) if findings.is_empty()) || !repaired.left.is_empty() {
            self.complain(tally, format!("after the repair: {after:?}, left {:?}", repaired.left));
            tally.unusable += 1;
        }
        if is_too_much || is_unnamed {
            self.complain(tally, format!("lost {lost:?}, findings {:?}", repaired.findings));
            tally.unnamed += u64::from(is_unnamed);
            tally.unusable += u64::from(is_too_much);
        }
        self.use_again(image, &lost, tally);
    }

    /// Checks a repaired image: sectors not listed keep their contents, and listed ones fail. After rewriting, all
    /// sectors read as written.
    fn use_again(&self, image: Memory, lost: &BTreeSet<u64>, tally: &mut Tally) {
        let outcome = open(image, self.bounds).and_then(|mut drive| {
            let readings = read_all(&mut drive, self.right);
            self.judge(&readings, u64::MAX, tally);
            let errors: BTreeSet<u64> = readings.errors.iter().copied().collect();
            if !errors.is_subset(lost) {
                self.complain(tally, format!("errors {errors:?} after a repair that named {lost:?}"));
                tally.unnamed += 1;
            }
            for &lba in lost {
                let mut sector = [0; 512];
                if drive.read(lba * 512, &mut sector).is_ok() {
                    self.complain(tally, format!("LBA {lba} was named as lost, and can be read"));
                    tally.wrong += 1;
                }
            }
            let mut host = Host::of(self.right.to_vec(), 3);
            let mut drive = host.write_all(drive)?;
            drive.flush()?;
            let readings = read_all(&mut drive, &host.right);
            if !readings.errors.is_empty() {
                self.complain(tally, format!("errors {:?} after all was written anew", readings.errors));
                tally.unusable += 1;
            }
            self.judge(&readings, u64::MAX, tally);
            drive.shut_down()
        });
        if let Err(error) = outcome {
            self.complain(tally, format!("after the repair: {error}"));
            tally.unusable += 1;
        }
    }
}

/// Returns the number of damages for each layer.
fn damages() -> u64 {
    std::env::var("IMBREX_DAMAGES").map_or(70, |count| count.parse().expect("IMBREX_DAMAGES is a number"))
}

/// Damages images of `subjects` in turn, `damages_an_image` times each.
fn damaged(subjects: &[Subject], numbers: Range<u64>, damages_an_image: u64, tally: &mut Tally) {
    let mut image: Option<(usize, Recorded, Vec<Used>, Vec<u8>)> = None;
    for number in numbers {
        if number.is_multiple_of(damages_an_image) || image.is_none() {
            let round = number / damages_an_image;
            let which = round as usize % subjects.len();
            let bounds = if round.is_multiple_of(2) { Bounds::default() } else { Bounds::SMALLEST };
            let recorded = recorded(&subjects[which], round, 120, bounds);
            let (pieces, bytes) = (used(&recorded.image), bytes_of(recorded.image.clone()));
            image = Some((which, recorded, pieces, bytes));
        }
        let (which, recorded, pieces, whole) = image.as_ref().expect("one was made");
        let mut random = Xoshiro256StarStar::seed_from_u64(number ^ 0xda4a6e);
        let there: Vec<Use> =
            Use::ALL.into_iter().filter(|what| pieces.iter().any(|used| used.what == *what)).collect();
        let what = there[(number / 5) as usize % there.len()];
        let damage = Damage::draw(&mut random, pieces, what, number);
        let image = damage.applied(whole);
        let bounds = if below(&mut random, 2) == 0 { Bounds::default() } else { Bounds::SMALLEST };
        let trial = Trial {
            subject: &subjects[*which],
            right: &recorded.right,
            bounds,
            damage,
            changed: Changed::of(pieces, whole, &image),
        };
        tally.damages += 1;
        tally.changed += u64::from(!trial.changed.kinds.is_empty());
        if catch_unwind(AssertUnwindSafe(|| trial.run(&image, tally))).is_err() {
            tally.panics += 1;
            trial.complain(tally, "a panic".into());
        }
    }
}

#[test]
fn no_damage_passes_for_data() {
    println!(
        "{:<16}{:>8}{:>8}{:>8}{:>8}{:>11}{:>8}{:>8}{:>6}{:>7}{:>8}{:>9}",
        "layer",
        "damages",
        "changed",
        "opened",
        "refused",
        "unreadable",
        "lost",
        "beyond",
        "wrong",
        "panics",
        "unnamed",
        "unusable"
    );
    let mut complaints = Vec::new();
    for info in registry::all() {
        if std::env::var("IMBREX_LAYER").is_ok_and(|only| only != info.name) {
            continue;
        }
        let mut tally = Tally::default();
        damaged(&common::subjects_of(info.name), 0..damages(), DAMAGES_AN_IMAGE.min(damages().div_ceil(2)), &mut tally);
        println!(
            "{:<16}{:>8}{:>8}{:>8}{:>8}{:>11}{:>8}{:>8}{:>6}{:>7}{:>8}{:>9}",
            info.name,
            tally.damages,
            tally.changed,
            tally.opened,
            tally.refused,
            tally.unreadable,
            tally.named_lost,
            tally.beyond_repair,
            tally.wrong,
            tally.panics,
            tally.unnamed,
            tally.unusable
        );
        assert!(tally.opened > 0 && tally.refused > 0 && tally.unreadable > 0, "{}: damage does nothing", info.name);
        complaints.append(&mut tally.complaints);
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Damages that once caused a failure: layer, number, and description of the failure.
const KEPT: [(&str, u64, &str); 2] = [
    (
        "s-blocks",
        948,
        "cleaning read a damaged copy that nobody needed, and the sector was lost although its live copy was whole",
    ),
    ("top-buffer", 9953, "work half done was mended with zeros where the owner of a slot was lost"),
];

#[test]
fn damages_that_did_harm_once_do_none() {
    for (layer, number, once) in KEPT {
        let mut tally = Tally::default();
        damaged(&common::subjects_of(layer), number..number + 1, DAMAGES_AN_IMAGE, &mut tally);
        assert!(tally.complaints.is_empty(), "{layer}, damage {number} ({once}):\n{}", tally.complaints.join("\n"));
    }
}
