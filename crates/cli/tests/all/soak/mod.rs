//! Served drives over a longer use than a toy allows, judged from outside by `imbrex-testkit`: the independent writer
//! records the contents that every sector may hold, and the drive is repeatedly killed, opened again and checked.
//!
//! | environment | effect |
//! |---|---|
//! | `IMBREX_SOAK_GIB` | platter to pass over, in GiB, of each drive in the long form (100) |
//! | `IMBREX_SOAK_DRIVES` | only these drives, `PROFILE[+LAYER]`, separated by commas |
//! | `IMBREX_SOAK_SEED` | seed (1) |
//! | `IMBREX_SOAK_LAYERS` | 1: the long form takes the other layers of the profiles too |
//! | `IMBREX_KILL_ROUNDS` | kills of each drive at each pace in the long form (20) |

mod drives;
mod fio;
mod kills;
mod rounds;
mod volatile;
