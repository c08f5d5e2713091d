//! The running program, named by its contents. Results that only the program that made them may reuse have this name
//! in their key.

use std::fs::File;

use crate::Failure;
use crate::workload::hash;

/// Returns the SHA-256, in hexadecimal, of the file of the running program.
///
/// # Errors
///
/// The file cannot be found or read.
pub fn sha256() -> Result<String, Failure> {
    let failed = |error| Failure::failed(format!("cannot read the file of the running program: {error}"));
    let path = std::env::current_exe().map_err(failed)?;
    hash(File::open(path).map_err(failed)?).map_err(failed)
}
