//! What a layer says of itself before it is built: its name, its parameters, its journal records, how to build it. Help,
//! `imbrex list layers`, the documentation tables and the all-layers tests follow from it.

use crate::context::Context;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo};
pub use crate::plan::record::RecordInfo;

/// What the registry knows of a layer.
pub struct LayerInfo {
    /// Its name, as `--drive PROFILE+NAME` takes it.
    pub name: &'static str,
    /// One line of what it does.
    pub summary: &'static str,
    /// The recordings it can work on, by name.
    pub recordings: &'static [&'static str],
    /// Whether it leaves to the host what writes destroy: see [`Layer::is_host_managed`].
    pub host_managed: bool,
    /// What one entry of its map covers, in words: `band`, `track`, `extent`.
    pub mapping_unit: &'static str,
    /// The paper and section that it follows.
    pub source: &'static str,
    /// The parameters that it takes.
    pub parameters: &'static [ParameterInfo],
    /// Its journal records. They come in groups, because several layers share some: the backup log of interlaced disks, say.
    pub records: &'static [&'static [RecordInfo]],
    /// Sets of parameters (`key=value,key=value`) with which the layer fits a toy disk of a few thousand sectors. The tests of all
    /// layers run once with each.
    pub toys: &'static [&'static str],
    /// Builds the layer over a disk, with parameters; an error says which of them cannot be.
    pub build: fn(&Context) -> Result<Box<dyn Layer>, ConfigError>,
}

impl LayerInfo {
    /// What a record with `tag` says, if this layer has such.
    pub fn record(&self, tag: u8) -> Option<&'static RecordInfo> {
        self.records.iter().copied().flatten().find(|record| record.tag == tag)
    }
}
