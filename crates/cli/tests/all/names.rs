//! Goal: a name that is not UTF-8 costs nobody a result. Method: the JSON output of each command on files and in folders
//! with such a name is JSON, and the exit code is that of success.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// The name of a file of which the last byte before the ending is no UTF-8, in `folder`.
fn odd(folder: &Path, name: &str, ending: &str) -> PathBuf {
    folder.join(OsStr::from_bytes(&[name.as_bytes(), b"\xff", ending.as_bytes()].concat()))
}

/// Runs the program with `--json` and returns the document.
fn json<const N: usize>(words: [&OsStr; N]) -> Value {
    let command = Command::new(env!("CARGO_BIN_EXE_imbrex")).args(words).arg("--json").stdin(Stdio::null()).output();
    let output = command.expect("the program starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {:?}: {told}", output.status.code());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}

fn shown(document: &Value, pointer: &str) -> String {
    let text = document.pointer(pointer).and_then(Value::as_str);
    text.unwrap_or_else(|| panic!("no text at {pointer}: {document}")).to_string()
}

#[test]
fn images_with_names_that_are_not_utf_8_have_json_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (image, copy) = (odd(folder.path(), "drive", ".img"), odd(folder.path(), "copy", ".img"));
    let [image, copy] = [image.as_os_str(), copy.as_os_str()];
    let [drive, create, check, fault, snapshot] = ["drive", "create", "check", "fault", "snapshot"].map(OsStr::new);
    let made = json([drive, create, image, OsStr::new("--drive"), OsStr::new("strict-append")]);
    assert!(shown(&made, "/image").ends_with("drive\u{fffd}.img"), "{made}");
    assert!(shown(&json([drive, check, image]), "/image").ends_with("drive\u{fffd}.img"));
    assert!(shown(&json([drive, fault, image, OsStr::new("list")]), "/image").ends_with("drive\u{fffd}.img"));
    assert!(shown(&json([drive, snapshot, image, copy]), "/copy").ends_with("copy\u{fffd}.img"));
    let [fs, mkfs, dump, stat, bench, age] = ["fs", "mkfs", "dump", "stat", "bench", "age"].map(OsStr::new);
    for words in [[fs, mkfs, image], [fs, check, image], [fs, dump, image], [fs, stat, image]] {
        assert!(shown(&json(words), "/devices/0").ends_with("drive\u{fffd}.img"));
    }
    let [files, five, operations] = ["--files", "5", "--operations"].map(OsStr::new);
    let benched = json([fs, bench, OsStr::new("createfiles"), image, files, five]);
    assert!(shown(&benched, "/places/0").ends_with("drive\u{fffd}.img"));
    let aged = json([fs, age, image, operations, five]);
    assert!(shown(&aged, "/places/0").ends_with("drive\u{fffd}.img"));
}

#[test]
fn a_sweep_into_a_folder_whose_name_is_not_utf_8_has_json_output() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let spec = folder.path().join("s.toml");
    let text = "workloads = [\"rw=randread,bs=4k,size=1MiB,number_ios=5\"]\ndrives = [\"imr-1t+conventional\"]\n";
    std::fs::write(&spec, text).expect("it is written");
    let out: OsString = odd(folder.path(), "out", "").into();
    let document = json([OsStr::new("sweep"), spec.as_os_str(), OsStr::new("--out"), &out]);
    assert!(shown(&document, "/table").ends_with("out\u{fffd}/sweep.parquet"), "{document}");
}
