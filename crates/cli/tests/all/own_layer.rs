//! Goal: a layer from outside the workspace gets the same features as the built-in layers. Method: the example
//! `examples/own-layer` is built as its author would build it; its own test runs (the verifier of all layers), then its
//! program lists the layer, simulates it under the checker, creates a drive with it, serves that drive, and checks it
//! after a kill.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use imbrex_testkit::{Client, Program, Server};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs cargo on the example, with the workspace's build artifacts, and without a network.
fn cargo(target: &Path, words: &[&str]) -> Output {
    let example = root().join("examples/own-layer");
    // The lock file of the workspace gives the same versions, so that nothing is downloaded and little is built.
    std::fs::copy(root().join("Cargo.lock"), example.join("Cargo.lock")).expect("the workspace has its lock");
    // To the example, the crates of Imbrex are dependencies, which its profile optimises. That takes minutes, and is not
    // needed here.
    let crates = std::fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let plain = crates.flat_map(|entry| {
        let manifest = std::fs::read_to_string(entry.expect("an entry").path().join("Cargo.toml")).expect("a manifest");
        let name = manifest.split('"').nth(1).expect("a name comes first");
        ["--config".to_string(), format!("profile.dev.package.{name}.opt-level=0")]
    });
    let output = Command::new(env!("CARGO"))
        .args(words)
        .args(plain)
        .args(["--offline", "--quiet", "--manifest-path"])
        .arg(example.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target)
        .output();
    let output = output.expect("cargo runs this test, so it is there");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_layer_of_somebody_else_gets_every_command_and_the_judge() {
    // The folder of the program under test is `TARGET/PROFILE`.
    let profile = Path::new(env!("CARGO_BIN_EXE_imbrex")).parent().expect("a program lies in a folder");
    let target = profile.parent().expect("a profile lies in the target folder");
    let judged = said(&cargo(target, &["test"]));
    assert!(judged.contains("1 passed"), "{judged}");
    cargo(target, &["build"]);
    let program = Program::new(target.join("debug/own-layer"));

    let listed = said(&program.run(&["list", "layers"]));
    assert!(listed.contains("inside-out") && listed.contains("chunk_size=1MiB"), "{listed}");
    let drive = "cmr-7200+inside-out:chunk_size=64KiB,geometry.tracks=20000";
    let words = "rw=randrw,bs=4k,size=1GiB,number_ios=2000";
    let simulated = said(&program.run(&["simulate", words, "--drive", drive, "--check"]));
    assert!(simulated.contains("no live sector was lost on any drive"), "{simulated}");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = folder.path().join("drive.img");
    program.create(&image, drive);
    let path = image.to_str().expect("plain words");
    let mut server = Server::start(&program, folder.path(), &[path, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for place in 0..40_u64 {
        assert_eq!(client.write(place * 65_536 * 7, &[place as u8 + 1; 8192]), 0);
    }
    assert_eq!(client.ask(imbrex_testkit::nbd_client::FLUSH, 0, 0, 0, &[]), 0);
    server.kill();
    assert_eq!(program.check(&image).code, 0);
    let server = Server::start(&program, folder.path(), &[path, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for place in 0..40_u64 {
        assert_eq!(client.read(place * 65_536 * 7, 8192), Ok(vec![place as u8 + 1; 8192]));
    }
    drop(client);
    server.stop().expect("it ends well");
}
