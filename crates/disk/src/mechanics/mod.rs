//! Mechanics: seek models and rotation models. See [`crate::actuator::Actuator`] for the moving part.

/// How rotational position is accounted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rotation {
    /// The platter has an angle at every nanosecond.
    Exact,
    /// Half a rotation for an access elsewhere, as Hajkazemi 2019 §3 counts.
    Half,
    /// No rotational wait, as Cassuto 2010 §III.B counts.
    None,
}

/// The immutable part of the mechanics of a disk.
#[derive(Clone, Debug)]
pub struct Mechanics {}
