//! The registry of layers: [`built_in`] lists the layers of this crate, and a program adds its own with [`register`].

use std::sync::RwLock;

use imbrex_disk::SharedDisk;

use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::{ConfigError, Parameters};
use imbrex_units::names::suggestion;

/// Returns the descriptions of the layers of this crate, without the layers that a program added with [`register`].
pub fn built_in() -> &'static [&'static LayerInfo] {
    use crate::layers::*;
    &[
        &block_swap::INFO,
        &caveat::INFO,
        &conventional::INFO,
        &flip_cache::INFO,
        &fully_associative::INFO,
        &imr_rmw::INFO,
        &log_structured::INFO,
        &media_cache::INFO,
        &region_rmw::INFO,
        &s_blocks::INFO,
        &set_associative::INFO,
        &top_buffer::INFO,
        &track_cache::INFO,
        &track_flip::INFO,
        &track_map::INFO,
        &zoned::INFO,
        &write_buffer::INFO,
    ]
}

/// Layers that a program added with [`register`].
static ADDED: RwLock<Vec<&'static LayerInfo>> = RwLock::new(Vec::new());

/// Adds a layer to the registry of this process. From now on drives, images, `imbrex list layers` and the tests of all
/// layers know its name. A program calls this before it builds a drive.
///
/// # Errors
///
/// A layer of this name is registered already, by this crate or by an earlier call.
pub fn register(info: &'static LayerInfo) -> Result<(), ConfigError> {
    let mut added = ADDED.write().expect("no thread panics while it adds a layer");
    if built_in().iter().chain(added.iter()).any(|other| other.name == info.name) {
        return Err(ConfigError(format!("a layer called '{}' is registered already", info.name)));
    }
    added.push(info);
    Ok(())
}

/// Returns the descriptions of all layers: the layers of this crate, then those that [`register`] added, in the order
/// in which they were added.
pub fn all() -> Vec<&'static LayerInfo> {
    let added = ADDED.read().expect("no thread panics while it adds a layer");
    built_in().iter().chain(added.iter()).copied().collect()
}

/// Returns the description of the layer called `name`, which may be a built-in or an added one. Upper and lower case
/// differ. Returns `None` if there is no such layer.
pub fn named(name: &str) -> Option<&'static LayerInfo> {
    all().into_iter().find(|info| info.name == name)
}

/// Builds the layer called `name` over `disk`. `given` is a list of parameters as pairs of key and value. A later pair
/// overrides an earlier one with the same key; a parameter that is not given has its default.
///
/// # Errors
///
/// No layer has this name, the layer does not work on the disk's recording, a key is unknown, a value has the wrong
/// form, or the layer cannot be built with these values on this disk.
pub fn build(name: &str, disk: &SharedDisk, given: &[(String, String)]) -> Result<Box<dyn Layer>, ConfigError> {
    let Some(info) = named(name) else {
        let names: Vec<_> = all().iter().map(|info| info.name).collect();
        let meant = suggestion(name, names.iter().copied());
        return Err(ConfigError(format!("unknown layer '{name}'{meant}; known layers: {}", names.join(", "))));
    };
    let recording = disk.recording.name();
    if !info.recordings.contains(&recording) {
        return Err(ConfigError(format!(
            "layer '{name}' does not work on {recording} recording (it takes: {})",
            info.recordings.join(", ")
        )));
    }
    let parameters = Parameters::new(info.parameters, given)?;
    (info.build)(&Context { disk: disk.clone(), parameters })
}
