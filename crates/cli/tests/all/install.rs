//! Goal: `make install` and `make uninstall` place and remove the program's files, and no others. Method: their script,
//! with the built program, on a temporary folder.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `scripts/place.sh VERB FOLDER`, where the built program is the one of the profile `release`.
fn place(target: &Path, verb: &str, folder: &Path) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/place.sh");
    let output = Command::new(script).arg(verb).arg(folder).env("CARGO_TARGET_DIR", target).output();
    output.expect("bash runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn what_is_installed_runs_and_is_removed_and_nothing_else_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (target, prefix) = (folder.path().join("target"), folder.path().join("prefix"));
    let none = place(&target, "install", &prefix);
    assert!(!none.status.success() && said(&none).contains("make build"), "{}", said(&none));
    std::fs::create_dir_all(target.join("release")).expect("a folder");
    std::fs::copy(env!("CARGO_BIN_EXE_imbrex"), target.join("release/imbrex")).expect("it was built");

    let pages = prefix.join("share/man/man1");
    std::fs::create_dir_all(&pages).expect("a folder");
    for page in ["other.1", "imbrex-former.1"] {
        std::fs::write(pages.join(page), "").expect("a page");
    }
    for _ in 0..2 {
        let installed = place(&target, "install", &prefix);
        assert!(installed.status.success(), "{}", said(&installed));
    }
    let program = prefix.join("bin/imbrex");
    let mode = program.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let version = Command::new(&program).arg("--version").output().expect("it runs");
    assert_eq!(said(&version).trim(), format!("imbrex {}", env!("CARGO_PKG_VERSION")));
    for file in [
        "share/man/man1/imbrex.1",
        "share/man/man1/imbrex-fs-mount.1",
        "share/bash-completion/completions/imbrex",
        "share/zsh/site-functions/_imbrex",
        "share/fish/vendor_completions.d/imbrex.fish",
    ] {
        let size = std::fs::metadata(prefix.join(file)).unwrap_or_else(|error| panic!("{file}: {error}")).len();
        assert!(size > 100, "{file}: {size} bytes");
    }
    assert!(!pages.join("imbrex-former.1").exists(), "a page of an older version");

    assert!(place(&target, "remove", &prefix).status.success());
    let left: Vec<_> = files(&prefix);
    assert_eq!(left, [pages.join("other.1")]);
    let again = place(&target, "remove", &prefix);
    assert!(!again.status.success() && said(&again).contains("nothing is removed"), "{}", said(&again));
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
