//! Tests of the parts of this crate that need no Python interpreter.

mod border;
