//! `plan.jsonl`: every plan of a run, one JSON object per line, for `--plans`.
//!
//! ```json
//! {"drive":"…","at_ns":0,"commands":[{"op":"write","lba":8,"sectors":8}],
//!  "phases":[{"group":"host","opens_group":true,
//!             "steps":[{"op":"write","medium":"disk","kind":"data","cause":"host","pba":8,"lba":8,"sectors":8}]}]}
//! ```
//!
//! A plan without commands is background work. A step that is a note has the field `note` (with `tag` and `fields`); a
//! barrier has no other fields.
//!
//! Invariants:
//! 1. A line is a complete JSON object. Plans of a drive are in the order in which they were made; drives are in the
//!    order in which they are joined.

use std::io::{self, Write};
use std::path::PathBuf;

use imbrex_disk::{Command, Operation, SimTime};
use imbrex_layer::{GroupKind, Kind, Medium, Plan, Step, StepOp};
use serde_json::{Value, json};

use super::{FilesError, Folder, WholeFile};

const NAME: &str = "plan.jsonl";

/// Temporary file with one drive's lines of `plan.jsonl`, while it is written.
#[derive(Debug)]
pub struct PlanSpool {
    file: WholeFile,
    drive: String,
    path: PathBuf,
    failed: Option<io::Error>,
}

/// Finished temporary file with one drive's lines of `plan.jsonl`.
#[derive(Debug)]
pub struct PlanPart {
    file: WholeFile,
}

impl Folder {
    /// Creates the temporary file for the lines of `plan.jsonl` of the drive called `drive`. Each line is a plan: the
    /// reads and writes of the medium that the layer makes for requests, for a cache write-back or as background work.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub fn plan_spool(&self, drive: &str) -> Result<PlanSpool, FilesError> {
        let path = self.file(NAME);
        let file = WholeFile::create(&path).map_err(|error| FilesError::file(&path, error))?;
        Ok(PlanSpool { file, drive: drive.to_string(), path, failed: None })
    }

    /// Joins the temporary files `parts`, in the given order, to `plan.jsonl`. Returns its path.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn join_plans(&self, parts: Vec<PlanPart>) -> Result<PathBuf, FilesError> {
        self.write(NAME, |mut out| {
            for mut part in parts {
                io::copy(&mut part.file.reread()?, &mut out)?;
            }
            Ok(())
        })
    }
}

impl PlanSpool {
    /// Writes a line for `plan`, which began at simulated time `now` and serves `commands`: requests, or the writes of
    /// a cache write-back; none means background work. [`PlanSpool::finish`] returns the first error of writing; later
    /// plans are then ignored.
    pub fn record(&mut self, now: SimTime, commands: &[Command], plan: &Plan) {
        if self.failed.is_none() {
            let line = plan_value(&self.drive, now, commands, plan).to_string();
            self.failed = writeln!(self.file, "{line}").err();
        }
    }

    /// Returns whether writing a line has failed, so that the run can end early.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes the buffered lines and returns the finished file.
    ///
    /// # Errors
    ///
    /// The first error of writing, including those of [`PlanSpool::record`].
    pub fn finish(mut self) -> Result<PlanPart, FilesError> {
        let flushed = self.failed.take().map_or_else(|| self.file.flush(), Err);
        flushed.map_err(|error| FilesError::file(&self.path, error))?;
        Ok(PlanPart { file: self.file })
    }
}

fn plan_value(drive: &str, now: SimTime, commands: &[Command], plan: &Plan) -> Value {
    let commands: Vec<Value> = commands.iter().map(command_value).collect();
    let phases = plan.phases.iter().enumerate().map(|(index, phase)| {
        let steps: Vec<Value> = plan.steps_of(index).iter().map(|step| step_value(plan, step)).collect();
        json!({"group": group_name(phase.kind), "opens_group": phase.opens_group, "steps": steps})
    });
    let phases: Vec<Value> = phases.collect();
    json!({"drive": drive, "at_ns": now.0, "commands": commands, "phases": phases})
}

fn command_value(command: &Command) -> Value {
    let op = match command.operation {
        Operation::Read => "read",
        Operation::Write => "write",
        Operation::Flush => "flush",
        Operation::Trim => "trim",
    };
    let mut value = json!({"op": op, "lba": command.lba.0, "sectors": command.sectors});
    if command.fua {
        value["fua"] = json!(true);
    }
    value
}

fn step_value(plan: &Plan, step: &Step) -> Value {
    let op = match step.op {
        StepOp::Read => "read",
        StepOp::Write => "write",
        StepOp::Drop => return json!({"op": "drop", "lba": step.lba.0, "sectors": step.sectors}),
        StepOp::Barrier => return json!({"op": "barrier"}),
        StepOp::Note => {
            let note = plan.note_of(step);
            return json!({"op": "note", "note": {"tag": note.tag, "fields": note.fields}});
        }
    };
    let medium = match step.medium {
        Medium::Disk => "disk",
        Medium::Flash => "flash",
    };
    let mut value = json!({
        "op": op, "medium": medium, "kind": kind_name(step.kind), "cause": step.cause.name(),
        "pba": step.pba.0, "sectors": step.sectors,
    });
    if step.kind == Kind::Data {
        value["lba"] = json!(step.lba.0);
    }
    value
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Data => "data",
        Kind::OutOfBand => "out-of-band",
        Kind::Padding => "padding",
        Kind::Map => "map",
        Kind::Checkpoint => "checkpoint",
    }
}

fn group_name(kind: GroupKind) -> &'static str {
    match kind {
        GroupKind::Host => "host",
        GroupKind::Cleaning => "cleaning",
        GroupKind::Migration => "migration",
        GroupKind::Recovery => "recovery",
    }
}
