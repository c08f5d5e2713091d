//! The context in which a layer is built: its disk and its parameters.

use imbrex_disk::SharedDisk;

use crate::parameters::Parameters;

/// The disk and the parameters from which a layer is built.
#[derive(Clone, Debug)]
pub struct Context {
    /// The disk under the layer.
    pub disk: SharedDisk,
    /// The values of the layer's parameters: the given ones, and defaults for the others.
    pub parameters: Parameters,
}
