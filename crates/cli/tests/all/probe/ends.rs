//! Goal: at every end of a probe the known results are printed, cleanly, and with the right exit code. Method: Ctrl-C,
//! a budget, and a server killed in the middle of a test.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::{said, value, verdict};

use crate::nbd::common::*;

const SHINGLED: &str = "emulated-smr-1:geometry.surfaces=1";

/// Starts a probe of `server`, and waits for its first messages.
fn start(server: &Server) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["probe", &server.uri(), "--destroy-data", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The messages before the first test; then the test of rotation takes more than a second.
    let mut first = [0; 64];
    child.stderr.as_mut().unwrap().read_exact(&mut first).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it runs");
    child
}

#[test]
fn ctrl_c_ends_the_test_in_hand_and_tells_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", SHINGLED, "--time", "real"]);
    let child = start(&server);
    run("kill", &["-INT", &child.id().to_string()]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("interrupted: ending the running test"), "{}", said(&output));
    let found = verdict(&output);
    assert_eq!(found["ended"], "interrupted", "{found:#}");
    let left_out = found["left_out"].to_string();
    for experiment in imbrex_probe::experiments::all() {
        let is_told = experiment.properties.iter().any(|name| value(&found, name).is_some());
        assert!(is_told || left_out.contains(experiment.name), "{}: {found:#}", experiment.name);
    }
}

#[test]
fn a_server_that_dies_ends_the_probe_with_what_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path(), &["--drive", SHINGLED, "--time", "real"]);
    let child = start(&server);
    server.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("imbrex: nbd+unix:///"), "{}", said(&output));
    let found = verdict(&output);
    let ended = found["ended"].as_str().unwrap_or_else(|| panic!("{found:#}"));
    assert!(ended.contains("the server closed the connection"), "{ended}");
}

#[test]
fn a_budget_is_kept_and_what_it_leaves_out_is_named() {
    let output = imbrex(&["probe", "sim:seagate-st5000as0011", "--json", "--budget", "90s"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = verdict(&output);
    // One operation may be in progress when the time is over: at most some seconds.
    assert!(found["target_ns"].as_u64().unwrap() < 100_000_000_000, "{}", found["target_ns"]);
    assert_eq!(
        value(&found, "type"),
        Some(&Value::from("shingled")),
        "what tells most for its time was run: {found:#}"
    );
    let left_out = found["left_out"].to_string();
    assert!(left_out.contains("cache-size") && left_out.contains("of the budget were left"), "{left_out}");
}
