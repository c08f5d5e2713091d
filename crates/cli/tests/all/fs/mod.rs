//! File systems mounted with FUSE, seen from outside: the built program, the system's own tools and calls. Without
//! `/dev/fuse` these tests print that they are skipped.

mod arrays;
mod bench_page;
mod bench_seeds;
pub(crate) mod common;
mod copies;
mod crafted;
mod full_disk;
mod kills;
mod lifetimes;
mod loads;
mod mistakes;
mod mounted_arrays;
mod rules;
mod semantics;
mod trees;
