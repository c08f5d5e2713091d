//! Tests of the file systems on models of devices and on emulated drives, without the kernel.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod ageing;
mod appending;
mod appends;
mod arrays;
mod behind;
mod beyond_parity;
mod checkpoints;
mod checksums;
mod churn;
mod cleaning;
mod crafted;
mod drives;
mod emulated;
mod five_drives;
mod full_and_damaged;
mod hot;
mod hot_alone;
mod hot_copies;
mod hot_drives;
mod hot_scrub;
mod lifetimes;
mod lost_writes;
mod mirrors;
mod open_groups;
mod operations;
mod pairs;
mod power_cuts;
mod preallocation;
mod queues;
mod rebuild;
mod salvage;
mod salvage_replaced;
mod scattered;
mod schedules;
mod support;
mod versions;
mod waiting;
