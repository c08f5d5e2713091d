//! Drives served over NBD, seen from outside: the built program, real clients, and clients that behave badly.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod clients;
mod common;
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
