//! Judges of file systems: a naive model, and the cutter of power.
