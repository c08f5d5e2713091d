//! Tests of every layer in the registry, and of the checker that judges layers.

mod all_layers;
mod laying_out;
mod mutants;
mod ranges;
