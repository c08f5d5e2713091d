//! Tests of reading measurements and judging drives by them.

mod drives;
mod judging;
mod reading;
