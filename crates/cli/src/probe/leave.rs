//! Opening what is to be probed, and the leave to write to it.
//!
//! ```text
//!  --destroy-data ─► nobody uses it ─┬─ yes ─► nothing lies in it ─┬─ yes ─► shown, asked once on a terminal ─► opened to be written
//!                                    └─ no ──► refused             └─ no ──► refused, unless --really
//!  without ─► opened to be read
//! ```
//!
//! Invariants:
//! 1. Nothing but a simulated drive is opened to be written without `--destroy-data`.
//! 2. What is refused has not been opened to be written.
//! 3. What is mounted, or used in another way, is never written, whatever the words of the command line are.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use imbrex_probe::safety::{Peek, signatures, usage};
use imbrex_probe::targets::{Access, Block, Image, Nbd};
use imbrex_probe::{Simulated, Target, TargetError};

use crate::args::ProbeArgs;
use imbrex::Failure;
use imbrex::drives::DrivePlan;
use imbrex::human;

/// Below this the tests have no room.
const SIZE_BYTES_MIN: u64 = 64 << 20;

/// What is probed.
pub enum Opened {
    /// `sim:DRIVE`.
    Simulated(Box<Simulated>),
    /// An image of ours.
    Image(Box<Image>),
    /// A served drive.
    Nbd(Box<Nbd>),
    /// A block device or a plain file.
    Block(Box<Block>),
}

impl Opened {
    /// As the tests see it.
    pub fn target(&mut self) -> &mut dyn Target {
        match self {
            Opened::Simulated(target) => target.as_mut(),
            Opened::Image(target) => target.as_mut(),
            Opened::Nbd(target) => target.as_mut(),
            Opened::Block(target) => target.as_mut(),
        }
    }
}

/// Whether tests may write, by the words of the command line.
pub fn may_write(args: &ProbeArgs) -> bool {
    args.destroy_data || args.target.starts_with("sim:")
}

/// Opens the target, with leave to write if it was given and stands.
pub fn open(args: &ProbeArgs) -> Result<Opened, Failure> {
    if let Some(words) = args.target.strip_prefix("sim:") {
        let drive = DrivePlan::parse(words)?.build()?;
        if drive.layer.is_host_managed() {
            return Err(host_managed(&args.target));
        }
        return Ok(Opened::Simulated(Box::new(Simulated::new(drive))));
    }
    if args.target.contains("://") {
        return open_nbd(args);
    }
    let path = Path::new(&args.target);
    if Image::is_one(path) {
        return open_image(args, path);
    }
    open_block(args, path)
}

fn failed(error: TargetError) -> Failure {
    Failure::failed(error)
}

fn open_nbd(args: &ProbeArgs) -> Result<Opened, Failure> {
    let url = &args.target;
    Nbd::check_url(url).map_err(|reason| Failure::usage(format!("'{url}': {reason}")))?;
    let mut target = Nbd::connect(url).map_err(failed)?;
    has_room(&target)?;
    if args.destroy_data {
        if target.is_read_only() {
            return Err(Failure::failed(format!("{url}: the server refuses writes"))
                .or_try("leave --destroy-data out: then only tests that read are run"));
        }
        let lies_there = found(&args.target, &mut target)?;
        ask(args, &target, Vec::new(), lies_there)?;
    }
    Ok(Opened::Nbd(Box::new(target)))
}

fn open_image(args: &ProbeArgs, path: &Path) -> Result<Opened, Failure> {
    let mut target = Image::open(path, false).map_err(failed)?;
    has_room(&target)?;
    if args.destroy_data {
        if target.is_host_managed() {
            return Err(host_managed(&args.target));
        }
        let lies_there = found(&args.target, &mut target)?;
        ask(args, &target, usage::users(path), lies_there)?;
        drop(target);
        target = Image::open(path, true).map_err(failed)?;
    }
    Ok(Opened::Image(Box::new(target)))
}

fn open_block(args: &ProbeArgs, path: &Path) -> Result<Opened, Failure> {
    let to_look = Access { may_write: false };
    let mut target = Block::open(path, to_look).map_err(failed)?;
    has_room(&target)?;
    let users = usage::users(path);
    if args.destroy_data {
        if target.device().is_some_and(usage::Device::is_host_managed) {
            return Err(host_managed(&args.target));
        }
        let lies_there = found(&args.target, &mut target)?;
        ask(args, &target, users, lies_there)?;
        drop(target);
        let access = Access { may_write: true };
        target = Block::open(path, access).map_err(failed)?;
    } else if !users.is_empty() {
        eprintln!("{}: {}; what others do with it will show in the times", args.target, users.join(", "));
    }
    target.quieten();
    Ok(Opened::Block(Box::new(target)))
}

/// There is nothing to find out about a drive that says what it is, and it takes writes by its own rules only: a test
/// that happens to keep them would take it for a conventional one.
fn host_managed(name: &str) -> Failure {
    Failure::failed(format!(
        "{name}: is host-managed: it says itself that its tracks overlap, and takes writes by its own rules only"
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

fn found(name: &str, target: &mut dyn Peek) -> Result<Vec<String>, Failure> {
    signatures::found(target).map_err(|error| Failure::failed(format!("{name}: looking for what lies there: {error}")))
}

/// Refuses what is in use or holds something, shows what will be lost, and asks once on a terminal.
fn ask(args: &ProbeArgs, target: &dyn Target, users: Vec<String>, lies_there: Vec<String>) -> Result<(), Failure> {
    if !users.is_empty() {
        return Err(Failure::failed(format!("{}: refused, for it is in use: {}", args.target, users.join("; ")))
            .or_try("unmount it, or take it out of what uses it, first: --really does not help here"));
    }
    let reasons: Vec<String> = lies_there.iter().map(|what| format!("it holds {what}")).collect();
    if !reasons.is_empty() && !args.really {
        return Err(Failure::failed(format!("{}: refused: {}", args.target, reasons.join("; ")))
            .or_try("another drive; or --really, if all of that may go"));
    }
    eprintln!(
        "{}: the tests write all over its {}; what it holds is lost",
        args.target,
        human::bytes(target.size_bytes())
    );
    for (name, value) in target.facts() {
        eprintln!("  {name}: {value}");
    }
    for reason in &reasons {
        eprintln!("  {reason} (--really was given)");
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        eprintln!("  standard input is no terminal, so nobody is asked: --destroy-data is leave enough");
        return Ok(());
    }
    eprint!("Type yes to go on: ");
    let mut answer = String::new();
    let told = std::io::stderr().flush().and_then(|()| stdin.lock().read_line(&mut answer));
    if told.is_err() || answer.trim() != "yes" {
        return Err(Failure::failed("not confirmed; nothing was written"));
    }
    Ok(())
}
