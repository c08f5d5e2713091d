//! Opens the target of a probe, for writing where the user permits it.
//!
//! ```text
//!  --destroy-data ─► not in use ─┬─ yes ─► holds nothing ─┬─ yes ─► shown, asked once on a terminal ─► written
//!                                └─ no ──► refused        └─ no ──► refused, unless --force
//!  without ─► opened to be read
//! ```
//!
//! Invariants:
//! 1. Only a simulated drive, and a new file of `--file`, are opened for writing without `--destroy-data`.
//! 2. A target that is refused has not been written.
//! 3. A target in use is never written, whatever the options are.
//! 4. A block device and a plain file are checked through the descriptor by which they are written; an image is checked
//!    again once it is open for writing.

use std::path::Path;

use imbrex_probe::targets::{Access, Block, Image, Nbd, NewFile};
use imbrex_probe::{Simulated, Target, TargetError};
use imbrex_safety::{Peek, Survey, contents, usage};

use crate::args::ProbeArgs;
use crate::consent::{self, Consent};
use imbrex::Failure;
use imbrex::drives::DrivePlan;
use imbrex::human;

/// Minimum size of a target in bytes: the tests need this much space.
const SIZE_BYTES_MIN: u64 = 64 << 20;

/// An opened target of a probe.
pub(super) enum Opened {
    /// `sim:DRIVE`.
    Simulated(Box<Simulated>),
    /// An image of `imbrex drive create`.
    Image(Box<Image>),
    /// A drive served over NBD.
    Nbd(Box<Nbd>),
    /// A block device or a plain file.
    Block(Box<Block>),
    /// A new file on a mounted file system.
    File(Box<NewFile>),
}

impl Opened {
    /// Returns the target as the interface that the tests use.
    pub(super) fn target(&mut self) -> &mut dyn Target {
        match self {
            Opened::Simulated(target) => target.as_mut(),
            Opened::Image(target) => target.as_mut(),
            Opened::Nbd(target) => target.as_mut(),
            Opened::Block(target) => target.as_mut(),
            Opened::File(target) => target.as_mut(),
        }
    }
}

/// Returns whether the command line permits tests that write.
pub(super) fn may_write(args: &ProbeArgs) -> bool {
    args.destroy_data || args.file.is_some() || args.target().starts_with("sim:")
}

/// Returns the drive with this name as a target in simulated time.
pub(super) fn simulated(words: &str) -> Result<Simulated, Failure> {
    let drive = DrivePlan::parse(words)?.build()?;
    if drive.layer.is_host_managed() {
        return Err(host_managed(&format!("sim:{words}")));
    }
    Ok(Simulated::new(drive))
}

/// Opens the target read-only, or for writing if `--destroy-data` was given and the safety checks passed.
///
/// # Errors
/// A safety check failed, or the target cannot be opened.
pub(super) fn open(args: &ProbeArgs, quiet: bool) -> Result<Opened, Failure> {
    if args.file.is_some() {
        return Ok(Opened::File(Box::new(super::file::open(args, quiet)?)));
    }
    if let Some(words) = args.target().strip_prefix("sim:") {
        return Ok(Opened::Simulated(Box::new(simulated(words)?)));
    }
    if args.target().contains("://") {
        return open_nbd(args);
    }
    let path = Path::new(args.target());
    if Image::is_one(path) {
        return open_image(args, path);
    }
    open_block(args, path)
}

pub(super) fn failed(error: TargetError) -> Failure {
    match &error {
        TargetError::Refused(refusal) => consent::refused(refusal),
        _ => Failure::failed(error),
    }
}

fn open_nbd(args: &ProbeArgs) -> Result<Opened, Failure> {
    let url = args.target();
    Nbd::check_url(url).map_err(|reason| Failure::usage(format!("'{url}': {reason}")))?;
    let mut target = Nbd::connect(url).map_err(failed)?;
    has_room(&target)?;
    if args.destroy_data {
        if target.is_read_only() {
            return Err(Failure::failed(format!("{url}: the server refuses writes"))
                .or_try("leave --destroy-data out: then only tests that read are run"));
        }
        let contents = contents::found(&mut target).map_err(consent::not_surveyed(url))?;
        let size_bytes = target.len();
        ask(args, &target, Survey { name: url.to_string(), size_bytes, contents, ..Survey::default() })?;
    }
    Ok(Opened::Nbd(Box::new(target)))
}

fn open_image(args: &ProbeArgs, path: &Path) -> Result<Opened, Failure> {
    let mut target = Image::open(path, false).map_err(failed)?;
    has_room(&target)?;
    if args.destroy_data {
        if target.is_host_managed() {
            return Err(host_managed(args.target()));
        }
        let survey = target.survey().map_err(consent::not_surveyed(args.target()))?;
        ask(args, &target, survey.clone())?;
        drop(target);
        target = Image::open(path, true).map_err(failed)?;
        if target.survey().map_err(consent::not_surveyed(args.target()))? != survey {
            return Err(Failure::failed(format!("{}: changed while it was examined; no test was run", args.target())));
        }
    }
    Ok(Opened::Image(Box::new(target)))
}

fn open_block(args: &ProbeArgs, path: &Path) -> Result<Opened, Failure> {
    let mut target = Block::open(path, Access { may_write: args.destroy_data }).map_err(failed)?;
    has_room(&target)?;
    if args.destroy_data {
        if target.device().is_some_and(usage::Device::is_host_managed) {
            return Err(host_managed(args.target()));
        }
        let survey = target.survey().map_err(consent::not_surveyed(args.target()))?;
        ask(args, &target, survey)?;
        target.quieten();
    } else {
        // Nothing is set on the drive: others may be using it, and reads need neither setting.
        let users = target.users().map_err(consent::not_surveyed(args.target()))?;
        if !users.is_empty() {
            notice!("{}: {}; their requests will affect the measured times", args.target(), users.join(", "));
        }
    }
    Ok(Opened::Block(Box::new(target)))
}

/// Returns the failure for a host-managed drive. Such a drive reports that its tracks overlap, so a probe finds out
/// nothing. It also takes writes by its own rules only: a test that happens to keep those rules would classify the
/// drive as conventional.
fn host_managed(name: &str) -> Failure {
    Failure::failed(format!(
        "{name}: is host-managed: it reports overlapping tracks, and refuses writes against its rules"
    ))
    .or_try("tests that read, on an image or a device: leave --destroy-data out")
}

fn has_room(target: &dyn Target) -> Result<(), Failure> {
    if target.size_bytes() >= SIZE_BYTES_MIN {
        return Ok(());
    }
    let (size, least) = (human::bytes(target.size_bytes()), human::bytes(SIZE_BYTES_MIN));
    Err(Failure::failed(format!("{}: {size} are too small for the tests, which need {least}", target.name())))
}

/// Returns a failure for a target in use, or for one with contents and no `--force`. Otherwise shows the contents that
/// will be lost, and asks once on a terminal.
fn ask(args: &ProbeArgs, target: &dyn Target, survey: Survey) -> Result<(), Failure> {
    let consent = Consent { force: args.force || args.really, yes: args.yes };
    let survey = Survey { facts: target.facts(), ..survey };
    consent::check(std::slice::from_ref(&survey), consent)?;
    consent::show(&survey, "the tests overwrite it: all data on it are lost");
    consent::confirm(consent)
}
