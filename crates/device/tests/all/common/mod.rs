//! Shared parts of the tests of this crate: every layer on every toy disk, as images of a few hundred kilobytes.

pub(crate) mod damage;
pub(crate) mod recorded;

use imbrex_device::drive::{Making, header_of};
use imbrex_device::image::Header;
use imbrex_device::media::memory::Memory;
/// A medium that outlives the drive that uses it, as a disk outlives a killed process.
pub(crate) use imbrex_device::media::shared::Shared;
use imbrex_device::store::{Data, Store, Transfer};
use imbrex_device::verify::workload::draw;
use imbrex_disk::Operation;
use imbrex_layer::verify::toy;
use imbrex_layer::{Plan, registry};
use imbrex_sim::{Drive, DriveSpec};

/// A layer on a toy disk with toy parameters.
#[derive(Clone)]
pub(crate) struct Subject {
    /// Description for messages.
    pub what: String,
    /// Header of the images.
    pub header: Header,
}

impl Subject {
    /// Returns this subject with a volatile cache of `bytes`.
    pub(crate) fn with_cache(&self, bytes: u64) -> Subject {
        self.with("host.write_cache_bytes", &bytes.to_string())
    }

    /// Returns this subject with another value of the profile.
    pub(crate) fn with(&self, key: &str, value: &str) -> Subject {
        let mut header = self.header.clone();
        header.profile_overrides.push((key.into(), value.into()));
        Subject { what: format!("{}, {key}={value}", self.what), header }
    }
}

/// Returns parameters of small images, so that every chunk can be tried.
pub(crate) fn making() -> Making {
    Making { uuid: uuid::Uuid::from_u128(7), chunk_bytes: 4096, journal_bytes: 256 << 10 }
}

/// Returns every layer on every suitable toy disk, with each of its toy parameters; `IMBREX_LAYER=name` selects one
/// layer.
pub(crate) fn subjects() -> Vec<Subject> {
    subjects_where(|name| std::env::var("IMBREX_LAYER").is_ok_and(|only| only != name))
}

/// Returns whether tests are to run in their long form.
pub(crate) fn is_long() -> bool {
    std::env::var_os("IMBREX_LONG").is_some()
}

/// Returns every third of the subjects of each layer, beginning with the one of number `first` (0, 1 or 2), and all of
/// them with `IMBREX_LONG=1`. A layer with fewer than three subjects has its first one.
pub(crate) fn a_third_of_subjects(first: usize) -> Vec<Subject> {
    let all = subjects();
    if is_long() {
        return all;
    }
    let mut third = Vec::new();
    for of_layer in all.chunk_by(|one, next| one.header.layer == next.header.layer) {
        let first = if of_layer.len() < 3 { 0 } else { first };
        third.extend(of_layer.iter().skip(first).step_by(3).cloned());
    }
    third
}

/// Returns the subjects with drive-managed layers. On a host-managed drive, writes of the host destroy other sectors.
/// So a test that writes anywhere and reads everything back is only valid for drive-managed layers; the others have
/// tests of their own.
pub(crate) fn drive_managed_subjects() -> Vec<Subject> {
    let skips = |name: &str| {
        let is_host_managed = registry::named(name).is_some_and(|info| info.host_managed);
        is_host_managed || std::env::var("IMBREX_LAYER").is_ok_and(|only| only != name)
    };
    subjects_where(skips)
}

/// Returns the subjects with `layer`.
pub(crate) fn subjects_of(layer: &str) -> Vec<Subject> {
    subjects_where(|name| name != layer)
}

fn subjects_where(skips: impl Fn(&str) -> bool) -> Vec<Subject> {
    let mut subjects = Vec::new();
    for info in registry::all() {
        if skips(info.name) {
            continue;
        }
        for disk in info.recordings.iter().flat_map(|&name| toy::disks(name)) {
            for words in info.toys {
                let label = format!("{}:{words}", info.name);
                let spec = DriveSpec::parse(&format!("toy+{label}")).expect("toy parameters are key=value");
                let Ok(drive) = Drive::assemble(&label, disk.profile.clone(), info.name, &spec.parameters) else {
                    continue;
                };
                let header = header_of(&drive, &spec, &making()).expect("toys are power-safe");
                subjects.push(Subject { what: format!("{label} on {}", disk.name), header });
            }
        }
    }
    assert!(!subjects.is_empty(), "no layer was found");
    subjects
}

/// Performs random actions on a new drive, and returns its image.
pub(crate) fn worked(subject: &Subject, seed: u64, actions: u32) -> Memory {
    let (mut drive, mut store) = Store::create(Memory::new(), subject.header.clone()).expect("memory takes it");
    let mut plan = Plan::new();
    for action in draw(seed, drive.layer.capacity(), 24, actions) {
        let Some(commands) = action.plan(drive.layer.as_mut(), &mut plan) else { continue };
        let buffers: Vec<_> =
            commands.iter().map(|command| vec![seed as u8 + 1; command.sectors as usize * 512]).collect();
        let mut transfers: Vec<_> = commands
            .iter()
            .zip(&buffers)
            .filter(|(command, _)| command.operation == Operation::Write)
            .map(|(command, buffer)| Transfer { lba: command.lba.0, data: Data::Write(buffer) })
            .collect();
        store.execute(&plan, &mut transfers).expect("memory takes it");
    }
    store.barrier().expect("memory takes it");
    store.space().media().clone()
}

/// Returns the first subject with `layer`.
pub(crate) fn first_subject_of(layer: &str) -> Subject {
    subjects_of(layer).swap_remove(0)
}
