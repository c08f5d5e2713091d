//! What the tests of this crate share: every layer on every toy disk, as images of a few hundred kilobytes.

use imbrex_device::drive::{header_of, Making};
use imbrex_device::image::Header;
use imbrex_layer::registry;
use imbrex_layer::verify::toy;
use imbrex_sim::{Drive, DriveSpec};

/// A layer on a toy disk with toy parameters.
pub struct Subject {
    /// For messages.
    pub what: String,
    /// Of its images.
    pub header: Header,
}

/// Sizes that suit toys: every chunk can be tried.
pub fn making() -> Making {
    Making { uuid: uuid::Uuid::from_u128(7), chunk_bytes: 4096, journal_bytes: 256 << 10 }
}

/// Every layer on every toy disk that it takes, with each of its toy parameters; `IMBREX_LAYER=name` picks one layer.
#[allow(dead_code)] // each test file uses its own part of this
pub fn subjects() -> Vec<Subject> {
    subjects_where(|name| std::env::var("IMBREX_LAYER").is_ok_and(|only| only != name))
}

/// The same of one layer.
#[allow(dead_code)]
pub fn subjects_of(layer: &str) -> Vec<Subject> {
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
