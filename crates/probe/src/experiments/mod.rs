//! The experiments, one file each, in the order in which they run: cheap ones before expensive ones, and each after the
//! experiments that it needs.

mod band_size;
mod band_sizes;
mod burst;
mod cache_fill;
mod cache_place;
pub(crate) mod cleaning_kind;
mod cleaning_order;
mod conditions;
pub(crate) mod drive_type;
mod experiment;
mod filling;
mod interlaced;
mod journal;
mod lost;
mod mechanics;
mod rotation;
mod stalls;
mod zones;

pub use experiment::Experiment;

/// Returns all experiments of the probe, in the order in which they run without a time budget.
pub fn all() -> &'static [&'static Experiment] {
    &[
        &rotation::EXPERIMENT,
        &mechanics::EXPERIMENT,
        &zones::EXPERIMENT,
        &drive_type::EXPERIMENT,
        &interlaced::EXPERIMENT,
        &cleaning_kind::EXPERIMENT,
        &cache_place::EXPERIMENT,
        &cache_fill::EXPERIMENT,
        &cleaning_order::EXPERIMENT,
        &band_size::EXPERIMENT,
        &journal::EXPERIMENT,
    ]
}

/// Names of the experiments of a probe by a file, which reaches a small part of the drive.
pub const OF_FILES: [&str; 3] = ["rotation", "type", "burst"];

/// Returns the experiments called `names`, and those whose results they need, directly or indirectly, in the order of
/// [`all`], the experiment `burst` last. Returns all experiments but that one if `names` is empty. Unknown names are ignored.
pub fn chosen(names: &[String]) -> Vec<&'static Experiment> {
    let mut wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let known = || all().iter().copied().chain([&burst::EXPERIMENT]);
    for experiment in known().collect::<Vec<_>>().into_iter().rev() {
        if wanted.contains(&experiment.name) {
            wanted.extend(experiment.needs);
        }
    }
    if names.is_empty() {
        return all().to_vec();
    }
    known().filter(|experiment| wanted.contains(&experiment.name)).collect()
}
