//! What a layer says of itself before it is built: its name, its parameters, its journal records, how to build it. Help,
//! `imbrex list layers`, the documentation tables and the all-layers tests follow from it.

use crate::context::Context;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo};
pub use crate::plan::record::RecordInfo;

/// A layer, as it is listed.
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

impl LayerInfo {
    /// What a record with `tag` says, if this layer has such.
    pub fn record(&self, tag: u8) -> Option<&'static RecordInfo> {
        self.records.iter().copied().flatten().find(|record| record.tag == tag)
    }
}
