//! Tests of reading measurements and judging drives by them.

mod intervals;
mod judging;
mod reading;
