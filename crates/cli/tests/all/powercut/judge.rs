//! The judge of an image after a cut: it must open, pass the check, and read as promised. Most images are opened in
//! this process, by the crate that the program itself uses, since that takes a hundredth of the time; some by the built
//! program.

use std::fmt;
use std::io;

use imbrex_device::check::check_image;
use imbrex_device::image::regions::Use;
use imbrex_device::{DeviceError, EmulatedDrive, Media, Store};
use imbrex_powercut::{Disk, Sparse};
use imbrex_testkit::writer::{Verdict, look_by};
use imbrex_testkit::{Contents, Record};

use super::recorded::{IMAGE, program, with_served};

/// A medium in memory that begins as a replayed file.
#[derive(Clone, Debug)]
struct Replayed(Sparse);

impl Media for Replayed {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, into);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.0.write(offset, from);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of opening, checking and reading one image.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    /// The reason why the image does not open.
    pub refused: Option<String>,
    /// Findings of the check, or its failure.
    pub findings: Vec<String>,
    /// The judgement of the sectors that were read.
    pub verdict: Verdict,
}

impl Outcome {
    /// Returns whether the image is as a cut without other faults must leave it.
    pub(crate) fn is_good(&self) -> bool {
        self.refused.is_none() && self.findings.is_empty() && self.verdict.lost == 0
    }

    /// Returns the number of sectors that read, without an error, as another value than they may hold.
    pub(crate) fn wrong(&self) -> u64 {
        self.verdict.lost - self.verdict.unreadable
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refused {
            Some(reason) => write!(f, "does not open: {reason}")?,
            None => write!(f, "{}", self.verdict)?,
        }
        let findings = &self.findings[..self.findings.len().min(4)];
        write!(f, "\n  check: {}", if findings.is_empty() { "whole".into() } else { findings.join("; ") })
    }
}

/// Judges an image in this process.
pub(crate) fn judge(disk: &Disk, record: &Record, contents: &Contents) -> Outcome {
    let Some(image) = disk.named(IMAGE) else {
        return Outcome { refused: Some("it is not there".into()), ..Outcome::default() };
    };
    let medium = Replayed(image.clone());
    let findings = match check_image(medium.clone(), IMAGE, &mut |_, _| {}) {
        Ok(checked) => checked.findings.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    };
    match read_all(medium, record, contents) {
        Ok(verdict) => Outcome { refused: None, findings, verdict },
        Err(error) => Outcome { refused: Some(error.to_string()), findings, ..Outcome::default() },
    }
}

fn read_all(medium: Replayed, record: &Record, contents: &Contents) -> Result<Verdict, DeviceError> {
    let medium: Box<dyn Media> = Box::new(medium);
    let mut drive = EmulatedDrive::new(Store::open(medium, IMAGE)?);
    let sector_bytes = u64::from(contents.sector_bytes);
    Ok(look_by(record, contents, |sectors| {
        let mut bytes = vec![0; ((sectors.end - sectors.start) * sector_bytes) as usize];
        let outcome = drive.read(sectors.start * sector_bytes, &mut bytes);
        outcome.map(|()| bytes).map_err(|error| error.to_string())
    }))
}

/// Judges an image by the built program: `drive check`, then NBD.
pub(crate) fn judge_by_program(disk: &Disk, record: &Record, contents: &Contents) -> Outcome {
    let folder = tempfile::tempdir().expect("a temporary folder");
    disk.save(folder.path()).expect("there is room");
    let checked = program().check(&folder.path().join(IMAGE));
    let findings = match (checked.code, checked.findings.is_empty()) {
        (0, true) => Vec::new(),
        (code, true) => vec![format!("exit {code}: {}", checked.errors)],
        _ => checked.findings,
    };
    let sector_bytes = u64::from(contents.sector_bytes);
    let read = with_served(disk, |client| {
        look_by(record, contents, |sectors| {
            let bytes = (sectors.end - sectors.start) * sector_bytes;
            client.read(sectors.start * sector_bytes, bytes as u32).map_err(|error| format!("error {error}"))
        })
    });
    match read {
        Ok(verdict) => Outcome { refused: None, findings, verdict },
        Err(said) => Outcome { refused: Some(said), findings, ..Outcome::default() },
    }
}

/// Returns the uses of the bytes of these blocks in the image, in words.
pub(crate) fn hit(disk: &Disk, offsets: &[u64], block_bytes: u64) -> String {
    let medium = Replayed(disk.named(IMAGE).expect("it was recorded").clone());
    let Ok((_, mut store)) = Store::open_to_look(medium, IMAGE) else { return "an image that does not open".into() };
    let mut uses = Vec::new();
    let looked = store.for_each_used(&mut |used| {
        let is_hit = |&at: &u64| at < used.offset + used.bytes && used.offset < at + block_bytes;
        if offsets.iter().any(is_hit) {
            uses.push(used.what);
        }
    });
    looked.expect("the medium is memory");
    uses.sort_unstable();
    uses.dedup();
    let names: Vec<_> = uses.into_iter().map(Use::name).collect();
    if names.is_empty() { "nothing in use".into() } else { names.join(" and ") }
}
