//! Served drives over a length of use that no toy sees, judged from outside by `imbrex-testkit`: the independent writer
//! remembers what every sector may hold, and the drive is killed, opened again and checked all along.
//!
//! | environment | what it does |
//! |---|---|
//! | `IMBREX_SOAK_GIB` | platter to pass over, in GiB, of each drive in the long form (100) |
//! | `IMBREX_SOAK_DRIVES` | only these, `PROFILE[+LAYER]`, with commas between |
//! | `IMBREX_SOAK_SEED` | another seed (1) |
//! | `IMBREX_SOAK_LAYERS` | 1: the long form takes the other layers of the profiles too |
//! | `IMBREX_KILL_ROUNDS` | kills of each drive at each pace in the long form (20) |

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod drives;
mod fio;
mod kills;
mod rounds;
mod volatile;
