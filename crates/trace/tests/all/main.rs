//! Tests of trace formats: written traces are read back, and published samples are counted.

mod docs;
mod round_trip;
mod samples;
