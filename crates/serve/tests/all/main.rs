//! Tests of served drives against hostile clients, without the program.

mod hostile;
mod page;
