//! Tests of the probe on emulated drives whose properties are known.

mod categories;
mod conditions;
mod emitted;
mod files;
mod host_managed;
mod layers;
mod noise;
mod random_drives;
mod real_time;
mod run;
#[allow(dead_code)] // the tests of the program use the rest
mod support;
mod targets;
