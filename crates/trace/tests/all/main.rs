//! Tests of trace formats: written traces are read back, and published samples are counted.

mod round_trip;
mod samples;
