//! The host's power cut under the built program, judged by the acknowledged requests. `imbrex-powercut` records the
//! program's system calls on its image and replays them up to any point, torn at 512 bytes or at 4 KiB; each replay is
//! an image that is opened, read and checked. No power is cut, so hundreds of cuts are tried per second.
//!
//! | environment | effect |
//! |---|---|
//! | `IMBREX_POWERCUT_CARRIERS` | only these carriers, separated by commas |
//! | `IMBREX_POWERCUT_SEED` | seed of the work and of the cuts (1) |
//! | `IMBREX_POWERCUT_ROUND` | only the cut of this number |
//! | `IMBREX_POWERCUT_SECONDS` | time for each carrier in the long form (3600) |
//!
//! A round that fails is printed with the command that repeats it, and its image is kept in the build folder's
//! `tmp/powercut`. Recordings of even seeds are the same each time; those of odd ones have several requests in flight,
//! which the server may process in another order.

mod carriers;
mod cuts;
mod faults;
mod file_systems;
mod grade;
mod judge;
mod planted;
mod recorded;
mod rounds;
