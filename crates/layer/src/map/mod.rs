//! Maps from runs of sectors: of extents to places ([`extent_map`]) and back ([`place_map`]), of runs to values ([`run_map`]), of runs to few values
//! kept small ([`run_list`]); and how to have a part of one fetched before it is asked for ([`prefetch`]).

pub mod extent_map;
mod leaves;
mod packed_runs;
pub mod place_map;
pub mod prefetch;
pub mod run_list;
pub mod run_map;
pub mod sparse;
