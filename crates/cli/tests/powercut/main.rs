//! The host's power cut under the built program, judged by what was acknowledged. `imbrex-powercut` records the program's
//! system calls on its image and replays them up to any point, torn at 512 bytes or at 4 KiB; each replay is an image
//! that is opened, read and checked. Nothing is cut for real, so a second tries hundreds of cuts.
//!
//! | environment | what it does |
//! |---|---|
//! | `IMBREX_POWERCUT_CARRIERS` | only these, with commas between |
//! | `IMBREX_POWERCUT_SEED` | another seed (1): of the work and of the cuts |
//! | `IMBREX_POWERCUT_ROUND` | only the cut of this number |
//! | `IMBREX_POWERCUT_SECONDS` | the long form goes on so long with each carrier (3600) |
//!
//! A round that fails is printed with the command that repeats it, and its image stays in the build folder's `tmp/powercut`.
//! Recordings of even seeds are the same each time; those of odd ones have several requests on their way, which the server may
//! take in another order.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod carriers;
mod cuts;
mod faults;
mod file_systems;
mod grade;
mod judge;
mod planted;
mod recorded;
mod rounds;
