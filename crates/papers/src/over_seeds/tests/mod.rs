//! Tests of experiments over several seeds.

mod merging;
mod running;
