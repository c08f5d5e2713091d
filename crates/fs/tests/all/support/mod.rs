//! Parts that the tests of several files share.

pub(crate) mod devices;
pub(crate) mod sequences;
pub(crate) mod superblocks;
pub(crate) mod timed;
pub(crate) mod within;
