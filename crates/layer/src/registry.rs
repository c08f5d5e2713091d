//! The registry of layers: one line each in [`all`]. Help, `imbrex list layers`, the documentation tables and the
//! all-layers tests follow from it.

use imbrex_disk::SharedDisk;

use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo, Parameters};

/// What a layer is built for.
#[derive(Clone, Debug)]
pub struct Context {
    /// The disk below.
    pub disk: SharedDisk,
    /// The layer's parameters.
    pub parameters: Parameters,
}

/// A layer, as the registry lists it.
pub struct LayerInfo {
    /// Its name.
    pub name: &'static str,
    /// One line of what it does.
    pub summary: &'static str,
    /// The recordings it can work on, by name.
    pub recordings: &'static [&'static str],
    /// Whether it leaves to the host what writes destroy: see [`Layer::is_host_managed`].
    pub host_managed: bool,
    /// What one mapping entry covers.
    pub mapping_unit: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// What it can be told.
    pub parameters: &'static [ParameterInfo],
    /// What its journal records say, in groups that layers may share.
    pub records: &'static [&'static [RecordInfo]],
    /// Parameters that suit a toy disk, as on the command line (`key=value,key=value`): each is tested by itself.
    pub toys: &'static [&'static str],
    /// Builds one.
    pub build: fn(&Context) -> Result<Box<dyn Layer>, ConfigError>,
}

/// What a kind of journal record says.
#[derive(Debug)]
pub struct RecordInfo {
    /// Its tag.
    pub tag: u8,
    /// In words.
    pub what: &'static str,
    /// Names of its operands; the others are zero.
    pub fields: &'static [&'static str],
}

impl LayerInfo {
    /// What a record with `tag` says, if this layer has such.
    pub fn record(&self, tag: u8) -> Option<&'static RecordInfo> {
        self.records.iter().copied().flatten().find(|record| record.tag == tag)
    }
}

/// Every layer.
pub fn all() -> &'static [&'static LayerInfo] {
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

/// The layer called `name`.
pub fn named(name: &str) -> Option<&'static LayerInfo> {
    all().iter().copied().find(|info| info.name == name)
}

/// Builds the layer called `name` over `disk` with `given` parameters.
pub fn build(name: &str, disk: &SharedDisk, given: &[(String, String)]) -> Result<Box<dyn Layer>, ConfigError> {
    let Some(info) = named(name) else {
        let names: Vec<_> = all().iter().map(|info| info.name).collect();
        return Err(ConfigError(format!("unknown layer '{name}'; there are: {}", names.join(", "))));
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
