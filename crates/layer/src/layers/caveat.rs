//! `caveat`: the [identity](super::identity) mapping on a caveat disk (Singh 2014 §3.2). The drive reports DID and DNOR
//! to the host, and the host is responsible for the sectors that its writes destroy.

use super::identity::Identity;
use crate::context::Context;
use crate::info::LayerInfo;
use crate::layer::Layer;
use crate::parameters::ConfigError;

/// Description of the layer `caveat` for the registry: an identity mapping on a caveat disk, where the host has to
/// avoid writes that destroy data.
pub const INFO: LayerInfo = LayerInfo {
    name: "caveat",
    summary: "identity mapping: the host keeps clear of what a write damages, by DID and DNOR",
    recordings: &["caveat"],
    host_managed: true,
    mapping_unit: "none",
    source: "Singh 2014 §3.2, §4.2",
    parameters: &[],
    records: &[],
    toys: &[""],
    build,
};

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    Ok(Box::new(Identity::new(&INFO, context)))
}
