//! The description of a layer, available before the layer is built: its name, its parameters, its journal records, and
//! the function that builds it. The help text, `imbrex list layers`, the documentation tables and the tests of all
//! layers are derived from this description.

use crate::context::Context;
use crate::layer::Layer;
use crate::parameters::{ConfigError, ParameterInfo};
pub use crate::plan::record::RecordInfo;

/// The registry's entry for a layer.
pub struct LayerInfo {
    /// The layer's name, as `--drive PROFILE+NAME` takes it.
    pub name: &'static str,
    /// A one-line summary of the layer.
    pub summary: &'static str,
    /// Names of the recordings that the layer can work on.
    pub recordings: &'static [&'static str],
    /// Whether the layer is host-managed, so that the host has to avoid destructive writes: see
    /// [`Layer::is_host_managed`].
    pub host_managed: bool,
    /// The unit that one entry of the layer's map covers: `band`, `track`, `extent`.
    pub mapping_unit: &'static str,
    /// The paper and section that the layer follows.
    pub source: &'static str,
    /// The parameters that the layer takes.
    pub parameters: &'static [ParameterInfo],
    /// The layer's journal records. The records are grouped because several layers share some groups, such as the
    /// backup log of interlaced disks.
    pub records: &'static [&'static [RecordInfo]],
    /// Sets of parameters (`key=value,key=value`) with which the layer fits a toy disk of a few thousand sectors. The
    /// tests of all layers run once with each set.
    pub toys: &'static [&'static str],
    /// Builds the layer over a disk with the given parameters. An error names the parameter whose value is not
    /// possible.
    pub build: fn(&Context) -> Result<Box<dyn Layer>, ConfigError>,
}

impl LayerInfo {
    /// Returns the description of the record with this tag, or `None` if the layer has no record with the tag.
    pub fn record(&self, tag: u8) -> Option<&'static RecordInfo> {
        self.records.iter().copied().flatten().find(|record| record.tag == tag)
    }
}
