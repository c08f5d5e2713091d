//! Tests of reading measurements and judging drives by them.

mod drives;
mod intervals;
mod judging;
mod reading;
