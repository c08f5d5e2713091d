//! Tests of experiments over several seeds.

mod figures;
mod merging;
mod running;
