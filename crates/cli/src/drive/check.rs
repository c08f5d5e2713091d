//! `imbrex drive check`: finds the damage of an image, and with `--repair` repairs it. A check replays and repairs the
//! image in memory first, as opening does, and does not write to the file.

use std::path::Path;

use imbrex_device::DeviceError;
use imbrex_device::check::{Finding, check_image};
use imbrex_device::image::scrub::Flaw;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::media::overlay::Overlay;
use imbrex_device::repair::{Repaired, repair_image};
use imbrex_disk::{Lba, Sectors};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use crate::error::ExitCode;
use crate::json;
use crate::output;
use imbrex::Failure;
use imbrex::Progress;

/// Checks the image. Prints the damage on standard output and returns [`ExitCode::Damage`] if there is any.
pub(super) fn run(image: &Path, repairs: bool, as_json: bool) -> Result<ExitCode, Failure> {
    if repairs {
        return repair(image, as_json);
    }
    let media = FileMedium::open(image, Mode::Read, false)?;
    let bar = Progress::on_terminal(as_json).bytes("checking");
    let checked = check_image(media, &place(image), &mut |done, all| tell(&bar, done, all))?;
    bar.finish_and_clear();
    let findings = &checked.findings;
    let tried = if findings.is_empty() { None } else { Some(tried(image, as_json)?) };
    if as_json {
        let document = json!({
            "schema": "imbrex.drive-check/1",
            "image": json::path(image),
            "is_whole": findings.is_empty(),
            "findings": listed(findings),
            "lost": runs(&checked.lost),
            "repair": tried.as_ref().and_then(|tried| tried.as_ref().ok()).map(|tried| json!({
                "is_emptied": tried.is_emptied,
                "lost": runs(&tried.lost),
            })),
        });
        output::json(&document)?;
    } else {
        for finding in findings {
            output::line(&format!("{}: {finding}", image.display()));
        }
        let words = match tried {
            None => format!("whole{}", known_lost(&checked.lost)),
            Some(Ok(tried)) => format!("damaged; {}", advice(image, &tried)),
            Some(Err(reason)) => format!("damaged, and cannot be repaired ({reason}): restore it from a copy"),
        };
        output::line(&format!("{}: {words}", image.display()));
    }
    Ok(if findings.is_empty() { ExitCode::Done } else { ExitCode::Damage })
}

/// Repairs the image in memory, and returns the result, or the reason why it cannot be repaired.
fn tried(image: &Path, is_silent: bool) -> Result<Result<Repaired, DeviceError>, Failure> {
    let media = Overlay::new(FileMedium::open(image, Mode::Read, false)?);
    let bar = Progress::on_terminal(is_silent).bytes("trying a repair in memory");
    let repaired = repair_image(media, &place(image), &mut |done, all| tell(&bar, done, all));
    bar.finish_and_clear();
    Ok(repaired.map(|(repaired, _)| repaired))
}

/// Returns the end of the message about a damaged image: the losses of a repair.
fn advice(image: &Path, tried: &Repaired) -> String {
    let repair = format!("`imbrex drive check {} --repair`", image.display());
    let sectors: u64 = tried.lost.iter().map(|(_, sectors)| sectors.0).sum();
    match (tried.is_emptied, sectors) {
        (true, _) => format!("{repair} would empty it, for its map is lost: restore it from a copy, or copy it first"),
        (false, 0) => format!("{repair} makes it whole again and loses nothing"),
        (false, 1) => format!("{repair} makes it usable again and gives up 1 sector as lost"),
        (false, sectors) => format!("{repair} makes it usable again and gives up {sectors} sectors as lost"),
    }
}

/// Repairs the image and prints the lost sectors.
fn repair(image: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let media = FileMedium::open(image, Mode::Write, true)?;
    let bar = Progress::on_terminal(as_json).bytes("repairing");
    let (repaired, _) = repair_image(media, &place(image), &mut |done, all| tell(&bar, done, all))?;
    bar.finish_and_clear();
    if as_json {
        let document = json!({
            "schema": "imbrex.drive-repair/1",
            "image": json::path(image),
            "findings": listed(&repaired.findings),
            "lost": runs(&repaired.lost),
            "is_emptied": repaired.is_emptied,
            "left": listed(&repaired.left),
        });
        output::json(&document)?;
    } else {
        let name = image.display();
        for finding in &repaired.findings {
            output::line(&format!("{name}: {finding}"));
        }
        if repaired.is_emptied {
            output::line(&format!("{name}: the map was lost, and with it every sector"));
        }
        for (lba, sectors) in &repaired.lost {
            let words = match sectors.0 {
                1 => format!("lost 1 sector at {lba}, until it is written"),
                count => format!("lost {count} sectors from {lba} on, until they are written"),
            };
            output::line(&format!("{name}: {words}"));
        }
        for finding in &repaired.left {
            output::line(&format!("{name}: still wrong: {finding}"));
        }
        let words = match (repaired.findings.is_empty(), repaired.lost.is_empty()) {
            (true, _) => "was whole",
            (false, true) => "repaired; nothing is lost",
            (false, false) => "repaired; the sectors named above are lost",
        };
        output::line(&format!("{name}: {words}"));
    }
    Ok(if repaired.left.is_empty() { ExitCode::Done } else { ExitCode::Damage })
}

fn place(image: &Path) -> String {
    image.display().to_string()
}

fn tell(bar: &ProgressBar, done: u64, all: u64) {
    bar.set_length(all);
    bar.set_position(done);
}

fn listed(findings: &[Finding]) -> Vec<Value> {
    let of = |finding: &Finding| {
        let mut value = json!({ "kind": kind(finding), "text": finding.to_string() });
        if let Some((lba, sectors)) = finding.lbas() {
            value["lba"] = json!(lba.0);
            value["sectors"] = json!(sectors.0);
        }
        value
    };
    findings.iter().map(of).collect()
}

fn runs(lost: &[(Lba, Sectors)]) -> Vec<Value> {
    lost.iter().map(|(lba, sectors)| json!({ "lba": lba.0, "sectors": sectors.0 })).collect()
}

/// Returns the end of the message about an image without damage: the number of sectors that an earlier repair declared
/// lost.
fn known_lost(lost: &[(Lba, Sectors)]) -> String {
    let sectors: u64 = lost.iter().map(|(_, sectors)| sectors.0).sum();
    match sectors {
        0 => String::new(),
        1 => "; 1 sector that was lost before cannot be read until it is written".into(),
        _ => format!("; {sectors} sectors that were lost before cannot be read until they are written"),
    }
}

/// Returns the name of a finding's kind in JSON.
fn kind(finding: &Finding) -> &'static str {
    match finding {
        Finding::Unopenable(_) => "unopenable",
        Finding::Layer(_) => "layer",
        Finding::Journal { .. } => "journal",
        Finding::Image(flaw) => match flaw {
            Flaw::Header { .. } => "header",
            Flaw::State { .. } => "state",
            Flaw::Entry { .. } => "directory",
            Flaw::SlotHeader { .. } => "slot-header",
            Flaw::Digests { .. } => "digests",
            Flaw::Orphans { .. } => "orphans",
            Flaw::CutShort { .. } => "cut-short",
            Flaw::Table { .. } => "sector-table",
            Flaw::Contents { .. } => "contents",
        },
        Finding::Map { .. } => "map",
        Finding::Shared { .. } => "shared",
        Finding::Destroyed { .. } => "destroyed",
        Finding::Unreadable { .. } => "unreadable",
    }
}
