//! Tests of the engine, its caches and its carriers through the public interface.

mod caches;
mod carrier;
mod cleaning;
mod controller;
mod depth;
mod engine;
mod explain;
mod records;
