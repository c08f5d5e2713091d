//! Drives served over NBD, seen from outside: the built program, real clients, and clients that behave badly.

mod clients;
pub(crate) mod common;
mod control;
mod displaced;
mod failed_sync;
mod file_system;
mod full_disk;
mod holes;
mod hostile;
mod kills;
mod pacing;
mod snapshot_ends;
mod snapshots;
mod strangers;
mod sync;
mod tls;
mod zones;
