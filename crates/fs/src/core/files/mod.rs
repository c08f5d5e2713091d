//! Files: their contents and attributes, names, lifetime, preallocated blocks and the records of their extents.

pub(in crate::core) mod attributes;
pub(in crate::core) mod data;
pub(in crate::core) mod extents;
pub(in crate::core) mod lifetime;
pub(in crate::core) mod names;
pub(in crate::core) mod preallocated;
