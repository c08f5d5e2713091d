//! What a layer is built over.

use imbrex_disk::SharedDisk;

use crate::parameters::Parameters;

/// What a layer is built for.
#[derive(Clone, Debug)]
pub struct Context {
    /// The disk that the layer is built on.
    pub disk: SharedDisk,
    /// The layer's parameters.
    pub parameters: Parameters,
}
