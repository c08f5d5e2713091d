//! Tests of the library on its built-in workloads.

mod demo;
