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
    /// Names of the recordings that the layer can work on: `shingled`, `interlaced`, `block-interference`,
    /// `conventional`, `caveat`. The layer cannot be built over a disk with another recording.
    pub recordings: &'static [&'static str],
    /// Whether the layer is host-managed: a write may destroy other sectors, and the host has to avoid writes that
    /// destroy data which it still needs.
    pub host_managed: bool,
    /// The unit that one entry of the layer's map covers, as text for tables, such as `block`, `track` or `extent`;
    /// `none` if the layer has no map.
    pub mapping_unit: &'static str,
    /// The paper and section that the layer follows, as text for tables.
    pub source: &'static str,
    /// The parameters that a user may give to the layer, with their defaults.
    pub parameters: &'static [ParameterInfo],
    /// The kinds of record that the layer writes to the journal, in groups. Several layers share some groups, such as
    /// the records of the backup log of interlaced disks. The order of the groups has no meaning.
    pub records: &'static [&'static [RecordInfo]],
    /// Sets of parameters with which the layer fits a toy disk of about a thousand sectors. Each set is one text, such
    /// as `key=value,key=value`; an empty text means the defaults. The tests of all layers run once with each set; an
    /// empty list makes these tests fail.
    pub toys: &'static [&'static str],
    /// Builds the layer from a disk and parameters. Returns an error if the layer cannot work with these parameters on
    /// that disk. Does not check `recordings`: [`crate::registry::build`] does so before.
    pub build: fn(&Context) -> Result<Box<dyn Layer>, ConfigError>,
}

impl LayerInfo {
    /// Returns the description of the kind of journal record with this tag. Returns `None` if the layer has no such
    /// kind.
    pub fn record(&self, tag: u8) -> Option<&'static RecordInfo> {
        self.records.iter().copied().flatten().find(|record| record.tag == tag)
    }
}
