//! The compiled program, executed to its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::zones::Zone;

/// Path of the program under test.
#[derive(Clone, Debug)]
pub struct Program(PathBuf);

/// Result of `imbrex drive check` on an image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// Exit code: 0 whole, 3 damage, 1 unusable.
    pub code: i32,
    /// Findings in words.
    pub findings: Vec<String>,
    /// Standard error of the program.
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

    /// Executes the program with the arguments `words` and waits for its end.
    pub fn run(&self, words: &[&str]) -> Output {
        let output = Command::new(&self.0).args(words).stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("{}: {error}", self.0.display()))
    }

    /// Creates an image of `drive` at `image` by `imbrex drive create`. Returns the drive's capacity in bytes.
    pub fn create(&self, image: &Path, drive: &str) -> u64 {
        let output = self.run(&["drive", "create", text(image), "--drive", drive, "--json"]);
        assert!(output.status.success(), "{drive}: {}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("drive create --json prints a document");
        document["capacity_bytes"].as_u64().expect("it has a capacity")
    }

    /// Returns the document that `imbrex drive info --json` prints.
    pub fn info(&self, image: &Path) -> Value {
        let output = self.run(&["drive", "info", text(image), "--json"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("drive info --json prints a document")
    }

    /// Returns the zones of a zoned drive, in order, as `imbrex drive dump --bands --json` lists them.
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

    /// Returns the result of `imbrex drive check --json`.
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

/// Returns a path as an argument of a command.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("tests make paths of plain words")
}

/// Returns the bytes that a file takes on its disk, as `du` shows them.
pub fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map_or(0, |facts| facts.blocks() * 512)
}
