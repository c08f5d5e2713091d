//! `imbrex fs mkfs`: makes a file system on a drive or an array.

use std::fs::File;
use std::path::{Path, PathBuf};

use imbrex::Failure;
use imbrex::human;
use imbrex_fs::core::{HotOn, Parts, Plan, make_on, plan};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::format::superblock::Superblock;
use imbrex_fs::store;
use imbrex_fs::store::bands::policy::Policy;
use imbrex_fs::store::caveat::fit;
use imbrex_fs::{Device, Executor, MakeOptions};
use serde_json::json;

use super::args::MkfsArgs;
use super::devices;
use crate::consent::Consent;
use crate::error::ExitCode;
use crate::json;
use crate::output;

/// Makes the file system.
pub(super) fn run(args: &MkfsArgs) -> Result<ExitCode, Failure> {
    check_words(args)?;
    let executor = Executor::in_virtual_time();
    check_meta_size(args.meta_size, &args.meta)?;
    let made =
        args.meta.iter().map(|path| make_file(path, args.meta_size)).collect::<Result<Vec<NewFile>, Failure>>()?;
    let paths: Vec<&Path> =
        [&args.devices, &args.meta, &args.spare].into_iter().flatten().map(PathBuf::as_path).collect();
    let consent = Consent { force: args.force, yes: args.yes };
    let numbers = (args.devices.len(), args.meta.len());
    // Wrong options are reported before the user is asked.
    let check = |all: &[Device]| plan(parts_of(numbers, all), &options(args, all)?).map(drop).map_err(Failure::failed);
    let all = devices::open_new(&executor, &paths, consent, check)?;
    let (options, devices) = (options(args, &all)?, all.clone());
    let making = async move { make_on(parts_of(numbers, &devices), &options, devices::now_ns()).await };
    let plan = devices::run(&executor, making);
    // Also after a failure: an image that was not shut down looks as if it were still in use.
    let shut_down: Vec<_> = all.iter().map(|device| (device, device.shut_down())).collect();
    let plan = plan?;
    for (device, outcome) in shut_down {
        outcome.map_err(|fault| Failure::failed(format!("{}: {fault}", device.name())))?;
    }
    made.into_iter().for_each(NewFile::keep);
    tell(args, &plan)?;
    Ok(ExitCode::Done)
}

/// Refuses names of stores, allocators and cleaners that do not exist, before a device is opened.
fn check_words(args: &MkfsArgs) -> Result<(), Failure> {
    if let Some(name) = &args.store
        && !store::NAMES.iter().any(|(known, _)| known == name)
    {
        return Err(Failure::usage(format!("--store: {}", store::unknown(name))));
    }
    if let Some(name) = &args.cleaner {
        Policy::named(name).map_err(|reason| Failure::usage(format!("--{reason}")))?;
    }
    if let Some(name) = &args.fit {
        fit::named(name).map_err(|reason| Failure::usage(format!("--{reason}")))?;
    }
    Ok(())
}

/// Returns the devices by purpose: first the drives, then the copies of the metadata, then the spares.
fn parts_of((drives, copies): (usize, usize), all: &[Device]) -> Parts<'_> {
    let (drives, others) = all.split_at(drives);
    let (metadata, spares) = others.split_at(copies);
    Parts { drives, metadata, spares }
}

/// A new file that is removed again unless the operation that needs it succeeds. Empty if the file existed before.
pub(super) struct NewFile(Option<PathBuf>);

impl NewFile {
    /// Keeps the file.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // An error is ignored: the failure that led here is reported.
        let _ = self.0.take().map(std::fs::remove_file);
    }
}

/// Refuses a size for new metadata files if all devices for metadata exist and one has another size.
pub(super) fn check_meta_size(bytes: Option<u64>, devices: &[PathBuf]) -> Result<(), Failure> {
    let Some(bytes) = bytes else { return Ok(()) };
    let found: Vec<_> = devices.iter().filter_map(|path| Some((path, path.metadata().ok()?))).collect();
    let other = found.iter().find(|(_, found)| !found.is_file() || found.len() != bytes);
    match other {
        Some((path, _)) if found.len() == devices.len() => Err(Failure::usage(format!(
            "--meta-size {bytes}: {} exists and keeps its size; the option is for a new file",
            path.display()
        ))
        .or_try("leave --meta-size out, or give the name of a new file with --meta")),
        Some(_) | None => Ok(()),
    }
}

/// Creates the file for metadata with the given size, if it does not exist yet.
///
/// # Errors
/// Fails if there is neither the file nor a size, or if the file cannot be examined or created.
pub(super) fn make_file(path: &Path, bytes: Option<u64>) -> Result<NewFile, Failure> {
    let place = path.display();
    match path.symlink_metadata() {
        // A link without a target is reported when the file is opened.
        Ok(_) => return Ok(NewFile(None)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Failure::failed(format!("--meta {place}: {error}"))),
    }
    let Some(bytes) = bytes else {
        return Err(Failure::failed(format!("--meta {place}: is not there"))
            .or_try("--meta-size SIZE as well, which makes a file of that size"));
    };
    let failed = |error: std::io::Error| Failure::failed(format!("--meta {place}: {error}"));
    let file = File::create_new(path).map_err(failed)?;
    let made = NewFile(Some(path.into()));
    file.set_len(bytes).map_err(failed)?;
    Ok(made)
}

fn options(args: &MkfsArgs, all: &[Device]) -> Result<MakeOptions, Failure> {
    let is_array = args.devices.len() > 1 || args.parity > 0;
    let default = all.first().and_then(|drive| store::default_for(&drive.geometry().kind));
    let default = if is_array { Some("log") } else { default };
    let chosen = args.store.as_deref().or(default).unwrap_or_default();
    let mut options = Vec::new();
    let mut add = |key: &str, value: Option<&str>| {
        let Some(value) = value else { return Ok::<(), Failure>(()) };
        // A wrong store is reported as such, later.
        if store::NAMES.iter().any(|(name, _)| *name == chosen) {
            let shown = format!("--{}", key.replace('_', "-"));
            store::check_option(chosen, key, &shown).map_err(Failure::usage)?;
        }
        options.push((key.to_string(), value.to_string()));
        Ok(())
    };
    add("fit", args.fit.as_deref())?;
    add("extents", args.extents.then_some("on"))?;
    add("cleaner", args.cleaner.as_deref())?;
    add("hot_files", args.hot_files.as_deref())?;
    let hot_on = match args.hot_on.as_deref() {
        Some("drives") => HotOn::Drives,
        _ => HotOn::Metadata,
    };
    if hot_on == HotOn::Drives && args.hot_files.as_deref() == Some("alone") {
        return Err(Failure::usage(
            "--hot-files alone is for a zone with the metadata: with --hot-on drives it holds copies",
        ));
    }
    let metadata_blocks = args.meta_size.filter(|_| args.meta.is_empty()).map(|bytes| bytes / BLOCK_BYTES as u64);
    Ok(MakeOptions {
        uuid: args.uuid,
        store: args.store.clone(),
        options,
        metadata_blocks,
        overwrite: args.force,
        parity: args.parity,
        hot_blocks: hot_blocks(args.hot)?,
        hot_on,
    })
}

/// Returns the size of the hot zone in blocks.
fn hot_blocks(bytes: Option<u64>) -> Result<u64, Failure> {
    match bytes.map(|bytes| bytes / BLOCK_BYTES as u64) {
        Some(0) => Err(Failure::usage(format!("--hot: a zone has {BLOCK_BYTES} bytes at least"))),
        blocks => Ok(blocks.unwrap_or(0)),
    }
}

/// Returns the number of blocks for data; of an array, the number that its zones could hold in the widest groups.
fn data_blocks(superblock: &Superblock) -> u64 {
    let Some(shape) = superblock.shape else { return superblock.data.1 };
    let columns = u64::from(shape.width) + u64::from(shape.parity);
    let zones = u64::from(shape.groups) * (1 + u64::from(shape.parity));
    zones * shape.stride() / columns
}

fn tell(args: &MkfsArgs, plan: &Plan) -> Result<(), Failure> {
    let superblock = &plan.superblock;
    let data_bytes = data_blocks(superblock) * BLOCK_BYTES as u64;
    let hot_bytes = superblock.hot_blocks() * BLOCK_BYTES as u64;
    let metadata_bytes = (superblock.layout.place.blocks - superblock.layout.hot.1) * BLOCK_BYTES as u64;
    let drives = superblock.hot_parts.len();
    let on = match drives {
        0 => String::new(),
        1 => " on one drive".to_string(),
        _ => format!(" on {drives} drives"),
    };
    if args.json {
        return output::json(&json!({
            "schema": "imbrex.fs-mkfs/1",
            "device": args.devices.first().map(json::path),
            "devices": json::paths(&args.devices),
            "parity": args.parity,
            "meta": json::paths(&args.meta),
            "spares": json::paths(&args.spare),
            "uuid": superblock.uuid,
            "store": superblock.store,
            "data_bytes": data_bytes,
            "metadata_bytes": metadata_bytes,
            "hot_bytes": hot_bytes,
            "hot_drives": superblock.hot_parts.iter().map(|part| json!({
                "drive": part.drive,
                "bytes": part.blocks * BLOCK_BYTES as u64,
            })).collect::<Vec<_>>(),
            "files": plan.files,
        }));
    }
    output::line(&format!(
        "{}: {}, {} for data, {} for metadata of about {} files{} ({})",
        args.devices.first().map(|path| path.display().to_string()).unwrap_or_default(),
        superblock.store,
        human::bytes(data_bytes),
        human::bytes(metadata_bytes),
        human::count(plan.files),
        if hot_bytes > 0 { format!(", {} for hot files{on}", human::bytes(hot_bytes)) } else { String::new() },
        superblock.uuid
    ));
    Ok(())
}
