//! The compiled program, executed to its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::zones::Zone;

/// The program under test (`imbrex`), by its path.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

/// Result of `imbrex drive check --json` on an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Exit code: 0 for a whole image, 3 for damage, 1 for an unusable image; −1 if a signal ended the program.
    pub code: i32,
    /// Texts of the faults that the check found, in the order printed; empty if the program printed no JSON document.
    pub findings: Vec<String>,
    /// Text that the program wrote to standard error.
    pub errors: String,
}

impl Program {
    /// Returns the program at `path`; a test of the program's own crate has the path in `CARGO_BIN_EXE_imbrex`.
    pub fn new(path: impl Into<PathBuf>) -> Program {
        Program(path.into())
    }

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Executes the program with the arguments `words` and without standard input, waits for its end, and returns its
    /// exit status and output.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started.
    pub fn run(&self, words: &[&str]) -> Output {
        let output = Command::new(&self.0).args(words).stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("{}: {error}", self.0.display()))
    }

    /// Creates an image of the drive named by `drive` at the path `image`, by `imbrex drive create`. Returns the
    /// drive's capacity in bytes.
    ///
    /// # Panics
    ///
    /// Panics if the program fails.
    pub fn create(&self, image: &Path, drive: &str) -> u64 {
        let output = self.run(&["drive", "create", text(image), "--drive", drive, "--json"]);
        assert!(output.status.success(), "{drive}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("drive create --json prints a document");
        document["capacity_bytes"].as_u64().expect("it has a capacity")
    }

    /// Returns the JSON document that `imbrex drive info --json` prints for the image.
    ///
    /// # Panics
    ///
    /// Panics if the program fails.
    pub fn info(&self, image: &Path) -> Value {
        let output = self.run(&["drive", "info", text(image), "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("drive info --json prints a document")
    }

    /// Returns the zones of the zoned drive in `image`, in order of address, as `imbrex drive dump --bands --json`
    /// lists them.
    ///
    /// # Panics
    ///
    /// Panics if the program fails.
    pub fn zones(&self, image: &Path) -> Vec<Zone> {
        let output = self.run(&["drive", "dump", text(image), "--bands", "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("drive dump --json prints a document");
        let zone = |row: &Value| {
            let start = row["lba"].as_u64()?;
            Some(Zone {
                sectors: start..start + row["sectors"].as_u64()?,
                is_sequential: row["condition"] != "conventional",
            })
        };
        let rows = document["bands"].as_array().expect("a list of zones");
        rows.iter().map(|row| zone(row).expect("a zone has a place and a length")).collect()
    }

    /// Executes `imbrex drive check --json` on the image and returns the result. A failed check is no panic.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started.
    pub fn check(&self, image: &Path) -> Checked {
        let output = self.run(&["drive", "check", text(image), "--json"]);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
        let findings = document["findings"].as_array().cloned().unwrap_or_default();
        Checked {
            code: output.status.code().unwrap_or(-1),
            findings: findings.iter().map(|finding| finding["text"].as_str().unwrap_or("?").to_string()).collect(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Returns a path as text, for an argument of a command.
///
/// # Panics
///
/// Panics if the path is not UTF-8.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("tests make paths of plain words")
}

/// Returns the number of bytes that are allocated for a file on its file system, as `du` counts them; 0 if the file
/// cannot be examined.
pub fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(0, |facts| facts.blocks() * 512)
}
