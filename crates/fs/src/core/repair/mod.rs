//! Repair: scrubs, replacement of drives, spares and copies of the metadata.

pub(in crate::core) mod check_drive;
pub(in crate::core) mod copies;
pub(in crate::core) mod replace;
pub(in crate::core) mod scrub;
pub(in crate::core) mod spares;

use std::rc::Rc;

use crate::core::Core;

/// Scrubs, and replacements of drives and copies of the metadata.
#[derive(Clone, Copy)]
pub(in crate::core) struct Repair<'a>(&'a Rc<Core>);

impl<'a> Repair<'a> {
    pub(in crate::core) fn of(core: &'a Rc<Core>) -> Repair<'a> {
        Repair(core)
    }
}
