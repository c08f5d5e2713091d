//! `conventional`: the [identity](super::identity) mapping on a drive whose tracks do not overlap. All comparisons use
//! this layer as the baseline.

use super::identity::Identity;
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::ConfigError;

/// Description of the layer `conventional` for the registry: an identity mapping on a disk whose tracks do not overlap.
pub const INFO: LayerInfo = LayerInfo {
    name: "conventional",
    summary: "identity mapping: every sector is rewritten in place",
    recordings: &["conventional"],
    host_managed: false,
    mapping_unit: "none",
    source: "baseline",
    parameters: &[],
    records: &[],
    toys: &[""],
    build,
};

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    Ok(Box::new(Identity::new(&INFO, context)))
}
