//! Discrete-event simulation.
