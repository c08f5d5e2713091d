//! `imbrex fs age` (Singh 2014 §5.3): ages a file system. On devices that are not mounted it runs in virtual time at
//! the speed of the drive; in a mounted directory it runs by the wall clock.

use std::path::Path;

use imbrex::{Failure, Progress, human};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::age::{Age, Aged, age};
use imbrex_fs::load::{InDirectory, LoadError, OnCore, run_now};
use imbrex_fs::{Executor, Fs};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::args::AgeArgs;
use super::devices::{self, Devices, Purpose};
use super::{Offline, status};
use crate::error::ExitCode;
use crate::interrupt;
use crate::json;
use crate::output;

const BYTES: u64 = BLOCK_BYTES as u64;

/// Ages the file system and prints the result.
pub(super) fn run(args: &AgeArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let bar = Progress::on_terminal(quiet || args.json).requests("ageing", Some(args.ageing.operations));
    let (aged, fill_bytes, found) = match &args.places[..] {
        [directory] if directory.is_dir() => in_directory(args, directory, &bar)?,
        _ => on_devices(args, &bar)?,
    };
    bar.finish_and_clear();
    let document = document(args, &aged, fill_bytes, found);
    if args.json {
        output::json(&document)?;
    } else {
        output::line(&text(&document));
    }
    match aged.full_at {
        Some(operation) => {
            Err(Failure::failed(format!("no room for operation {operation} of {}", args.ageing.operations))
                .or_try(format!("--fill with less than {}", human::bytes(fill_bytes))))
        }
        None if aged.is_interrupted => Ok(ExitCode::Failed),
        None => Ok(ExitCode::Done),
    }
}

/// Returns the default size to fill: three quarters of the free space. On a caveat disk it is two fifths, because
/// there the ageing needs a disk of up to 2.5 times the size (tables 5.1 and 5.2, ours).
fn default_fill(free_bytes: u64, is_caveat: bool) -> u64 {
    if is_caveat { free_bytes / 5 * 2 } else { free_bytes / 4 * 3 }
}

/// Returns the parameters of the ageing. `default_fill` is the size to fill if the user gives none.
fn asked(args: &AgeArgs, default_fill: u64) -> Result<Age, Failure> {
    let fill_blocks = args.fill.unwrap_or(default_fill) / BYTES;
    if fill_blocks == 0 {
        return Err(Failure::usage("--fill: nothing is to be filled").or_try("a size of 4KiB at least"));
    }
    Ok(Age { fill_blocks, operations: args.ageing.operations, seed: args.ageing.seed, deletes: args.ageing.deletes })
}

fn in_directory(args: &AgeArgs, directory: &Path, bar: &ProgressBar) -> Result<(Aged, u64, Value), Failure> {
    let stat = rustix::fs::statvfs(directory);
    let stat = stat.map_err(|error| Failure::failed(format!("{}: {error}", directory.display())))?;
    let asked = asked(args, default_fill(stat.f_bavail * stat.f_frsize, false))?;
    let files = InDirectory::new(directory, &args.folder).map_err(|error| there_already(args, error))?;
    let aged = run_now(age(&files, &asked, |done| watch(bar, done))).map_err(Failure::failed)?;
    Ok((aged, asked.fill_blocks * BYTES, Value::Null))
}

fn on_devices(args: &AgeArgs, bar: &ProgressBar) -> Result<(Aged, u64, Value), Failure> {
    let executor = Executor::in_virtual_time();
    let devices = Devices::open(&executor, &args.places, Purpose::Work, true)?;
    let Offline { executor, devices, fs, .. } = Offline::mount(executor, devices, Purpose::Work)?;
    let asked = asked(args, default_fill(fs.statfs().free * BYTES, fs.status().store == "caveat"))?;
    let (own, own_bar, folder) = (fs.clone(), bar.clone(), args.folder.clone());
    let ageing = async move { aged(&own, &folder, &asked, &own_bar).await };
    let outcome = devices::complete(&executor, ageing)?;
    let ending = fs.clone();
    devices::run(&executor, async move { ending.unmount().await })?;
    devices.shut_down()?;
    let aged = outcome.map_err(|error| there_already(args, error))?;
    Ok((aged, asked.fill_blocks * BYTES, status::document(&fs, &devices.paths, None)))
}

async fn aged(fs: &Fs, folder: &str, asked: &Age, bar: &ProgressBar) -> Result<Aged, LoadError> {
    let files = OnCore::new(fs, folder).await?;
    age(&files, asked, |done| watch(bar, done)).await
}

fn watch(bar: &ProgressBar, done: u64) -> bool {
    bar.set_position(done);
    !interrupt::requested()
}

/// Returns the failure of a load, with a remedy if its folder exists already.
fn there_already(args: &AgeArgs, error: LoadError) -> Failure {
    let is_folder = error.operation == "mkdir" && error.path.ends_with(&args.folder);
    let failure = Failure::failed(&error);
    if is_folder { failure.or_try("--folder NAME with a name that is not taken") } else { failure }
}

fn document(args: &AgeArgs, aged: &Aged, fill_bytes: u64, found: Value) -> Value {
    let number = |key: &str| found.pointer(key).and_then(Value::as_u64);
    let written = number("/since_mounted/data/blocks_written");
    let is_virtual = !found.is_null();
    json!({
        "schema": "imbrex.fs-age/1",
        "places": json::paths(&args.places),
        "folder": json::path(&args.folder),
        "seed": args.ageing.seed,
        "order_of_deletes": args.ageing.deletes.to_string(),
        "fill_bytes": fill_bytes,
        "operations": aged.operations,
        "creates": aged.creates,
        "deletes": aged.deletes,
        "bytes_created": aged.blocks_created * BYTES,
        "bytes_deleted": aged.blocks_deleted * BYTES,
        "filled_after": aged.steady_after,
        "full_at": aged.full_at,
        "is_interrupted": aged.is_interrupted,
        "clock": if is_virtual { "virtual" } else { "wall" },
        "elapsed_ns": aged.elapsed_ns,
        "data_blocks_per_block": written.map(|written| written as f64 / aged.blocks_created.max(1) as f64),
        "file_system": found,
    })
}

fn text(document: &Value) -> String {
    let number = |key: &str| document.pointer(key).and_then(Value::as_u64).unwrap_or(0);
    let bytes = |key: &str| human::bytes(number(key));
    let filled = match document["filled_after"].as_u64() {
        Some(operations) => format!("after {operations} operations"),
        None => "not reached".into(),
    };
    let time = human::duration_ns(number("/elapsed_ns"));
    let mut lines = vec![
        format!(
            "operations  {}: {} creates, {} deletes",
            number("/operations"),
            number("/creates"),
            number("/deletes")
        ),
        format!("size        {}, {filled}", bytes("/fill_bytes")),
        format!("created     {}, of which {} deleted again", bytes("/bytes_created"), bytes("/bytes_deleted")),
        format!("time        {time} by the {} clock", document["clock"].as_str().unwrap_or_default()),
    ];
    if let Some(ratio) = document["data_blocks_per_block"].as_f64() {
        let blocks = |key: &str| human::bytes(number(&format!("/file_system/{key}")) * BYTES);
        lines.push(format!("written     {ratio:.3} blocks of data for each of a file"));
        let runs = number("/file_system/free_runs");
        lines.push(format!(
            "free        {} in {runs} runs, {} unusable",
            blocks("free_blocks"),
            blocks("unusable_blocks")
        ));
    }
    lines.join("\n")
}
