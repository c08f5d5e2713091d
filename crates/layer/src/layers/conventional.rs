//! `conventional`: the [identity](super::identity) on a drive without overlap. The baseline of all comparisons.

use super::identity::Identity;
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::ConfigError;

/// Its line in the registry.
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
