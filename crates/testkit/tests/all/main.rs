//! Tests of the judge of drives.

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod judge;
mod toy;
