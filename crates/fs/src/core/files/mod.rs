//! Files: their contents and attributes, names, lifetime, preallocated blocks and the records of their extents.

pub(in crate::core) mod attributes;
pub(in crate::core) mod data;
pub(in crate::core) mod extents;
pub(in crate::core) mod lifetime;
pub(in crate::core) mod names;
pub(in crate::core) mod preallocated;

use std::rc::Rc;

use crate::core::Core;

/// Operations on files, their names and their extents.
#[derive(Clone, Copy)]
pub(in crate::core) struct Files<'a>(&'a Rc<Core>);

impl<'a> Files<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> Files<'a> {
        Files(core)
    }
}
