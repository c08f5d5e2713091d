//! Tests of the recorder of system calls.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod recorder;
