//! Maps from runs of sectors. [`extent_map`] maps logical extents to places, and [`place_map`] maps places back to
//! logical sectors. [`run_map`] maps runs to values, and [`run_list`] is a small map of the runs of one unit;
//! [`short_run`] is one of these runs. [`sparse`] is a table of which only changed pages take memory. [`prefetch`]
//! fetches a part of a map before it is needed.

pub mod extent_map;
mod leaves;
mod packed_runs;
pub mod place_map;
pub mod prefetch;
pub mod run_list;
pub mod run_map;
pub mod short_run;
pub mod sparse;
