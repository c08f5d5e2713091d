//! Requests from outside: readers of trace formats, generators, statistics. Knows neither disks nor layers.

pub mod request;

pub use request::{Request, Source, TraceError, When};
