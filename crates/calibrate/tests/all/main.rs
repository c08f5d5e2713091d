//! Tests of reading measurements and judging drives by them.

mod judging;
mod reading;
