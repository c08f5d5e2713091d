//! Goal: the control socket answers every request and every malformed line with one line, bounds the cost of strangers,
//! and exists exactly as long as its server. Method: requests and malformed lines written out here.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use imbrex_layer::registry;
use imbrex_serve::control::{CONNECTIONS_MAX, LINE_BYTES_MAX, VERBS};
use serde_json::Value;

use super::common::*;
use super::snapshots::{check_is_whole, files_in, imbrex_in, said};

/// Returns the control socket of the server that was started in `folder`.
pub(crate) fn control_of(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder.join("imbrex")).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| UnixStream::connect(path).is_ok())
}

/// Sends `bytes` and returns the answer; `None` if the server is gone.
fn send(socket: &Path, bytes: &[u8]) -> Option<Value> {
    let mut stream = UnixStream::connect(socket).ok()?;
    // A server that refuses the connection, or has read enough, answers before all bytes are sent.
    let _ = stream.write_all(bytes);
    let answer = answer_of(stream)?;
    Some(serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer}: {error}")))
}

/// Reads a line up to the end of the connection. A connection that the server closed with unread bytes ends with an
/// error.
fn answer_of(mut stream: UnixStream) -> Option<String> {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    assert!(answer.is_empty() || answer.find('\n') == Some(answer.len() - 1), "{answer:?} is not one line");
    Some(answer).filter(|answer| !answer.is_empty())
}

/// Sends a line to the server that was started in `folder`.
pub(crate) fn ask(folder: &Path, line: &str) -> Option<Value> {
    send(&control_of(folder)?, format!("{line}\n").as_bytes())
}

fn small_image(folder: &Path) -> String {
    image(folder, &small_drive(folder, registry::named("conventional").expect("it is registered")))
}

#[test]
fn every_request_is_answered_with_a_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = small_image(folder.path());
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let socket = control_of(folder.path()).expect("it listens");
    let code = |bytes: &[u8]| {
        let answer = send(&socket, bytes).expect("it listens");
        assert_eq!((&answer["schema"], &answer["ok"]), (&"imbrex.control/1".into(), &false.into()), "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|words| words.len() > 5), "{answer}");
        answer["error"]["code"].as_str().expect("a code").to_string()
    };
    let huge = vec![b' '; LINE_BYTES_MAX + 1];
    for (bytes, expected) in [
        (&b"\n"[..], "malformed"),
        (b"stats\n", "malformed"),
        (b"{\"verb\":\"stats\"\n", "malformed"),
        (b"\xff\xfe\x00\n", "malformed"),
        (b"[1,2]\n", "malformed"),
        (b"{}\n", "malformed"),
        (b"{\"verb\":\"stats\",\"more\":1}\n", "malformed"),
        (b"{\"verb\":\"snapshot\"}\n", "malformed"),
        (b"{\"verb\":\"snapshot\",\"to\":\"relative\"}\n", "malformed"),
        (b"{\"verb\":\"snapshot\",\"to\":7}\n", "malformed"),
        (b"{\"verb\":\"sing\"}\n", "unknown-verb"),
        (b"{\"verb\":\"stats\",\"schema\":\"imbrex.control/2\"}\n", "schema"),
        (b"{\"verb\":\"snapshot\",\"to\":\"/\"}\n", "exists"),
        (b"{\"verb\":\"snapshot\",\"to\":\"/no/such/folder\"}\n", "target"),
        (b"{\"verb\":\"snapshot\",\"to\":\"/tmp/x\",\"image\":\"/tmp/y\"}\n", "other-image"),
        (b"{\"verb\":\"snapshot\",\"to\":\"/tmp/x\",\"image\":\"/y\",\"device\":1,\"inode\":2}\n", "other-image"),
        (&huge, "too-long"),
        (&[b'{'; 4000], "malformed"),
    ] {
        // Half-closed, so that a line without an end is complete.
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let answer = answer_of(stream).expect("it answers");
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{answer}: {error}"));
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert_eq!(answer["error"]["code"], expected, "{shown}: {answer}");
    }
    assert_eq!(code(b"{\"verb\":\"sing\"}\n"), "unknown-verb");
    let stats = ask(folder.path(), r#"{"schema":"imbrex.control/1","verb":"stats"}"#).expect("it listens");
    assert_eq!(
        (&stats["ok"], &stats["placement"], &stats["snapshot"]),
        (&true.into(), &"in-place".into(), &Value::Null)
    );
    assert_eq!(stats["image"], image);
    assert_eq!(stats["process"], server.process());
    server.stop();
}

#[test]
fn strangers_at_the_control_socket_cost_little() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = small_image(folder.path());
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let socket = control_of(folder.path()).expect("it listens");
    // More connections than are allowed, each with half a line.
    let half_open = (0..CONNECTIONS_MAX + 4).map(|_| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let _ = stream.write_all(b"{\"verb\":");
        stream
    });
    let half_open: Vec<UnixStream> = half_open.collect();
    let answers: Vec<String> = half_open.into_iter().filter_map(answer_of).collect();
    let count = |code: &str| answers.iter().filter(|answer| answer.contains(&format!("\"{code}\""))).count();
    // The connection by which the socket was found may still be counted.
    assert!((CONNECTIONS_MAX - 1..=CONNECTIONS_MAX).contains(&count("late")), "{answers:?}");
    assert_eq!(count("late") + count("busy"), CONNECTIONS_MAX + 4, "{answers:?}");
    assert_eq!(ask(folder.path(), r#"{"verb":"stats"}"#).expect("it listens")["ok"], true, "there is room again");
    // A client that sends a request and does not read the answer costs other clients nothing.
    for _ in 0..100 {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let _ = stream.write_all(b"{\"verb\":\"stats\"}\n");
    }
    until("room", || ask(folder.path(), r#"{"verb":"stats"}"#).filter(|stats| stats["ok"] == true));
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.write(0, &[1; 4096]), 0);
    assert!(server.runs());
    server.stop();
}

#[test]
fn a_shutdown_is_answered_when_the_image_is_closed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let drive = small_drive(folder.path(), registry::named("media-cache").expect("it is registered"));
    let image = image(folder.path(), &format!("{drive},host.write_cache_bytes=1048576"));
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.write(0, &[9; 65_536]), 0);
    let answer = ask(folder.path(), r#"{"verb":"shutdown"}"#).expect("it listens");
    assert_eq!((&answer["ok"], &answer["is_closed"]), (&true.into(), &true.into()), "{answer}");
    // Checked at once, without waiting for the end of the process.
    check_is_whole(folder.path(), "image");
    assert_eq!(server.wait(), Some(0), "{}", server.log());
    assert_eq!(files_in(&folder.path().join("imbrex")), [""; 0], "the socket is removed");
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    assert_eq!(Client::connect(&server.socket).read(0, 65_536), Ok(vec![9; 65_536]), "what was cached is there");
    server.stop();
}

#[test]
fn a_socket_of_the_dead_is_replaced_and_that_of_the_living_is_not() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = small_image(folder.path());
    let control = folder.path().join("control");
    let word = control.to_str().expect("a path");
    let mut server = Server::start(folder.path(), &[&image, "--control", word]);
    assert_eq!(fs::metadata(&control).expect("it is there").permissions().mode() & 0o777, 0o600);
    // The server is found by its image too.
    assert!(ask(folder.path(), r#"{"verb":"stats"}"#).is_some());
    let refused =
        imbrex_in(folder.path(), &["serve", "--drive", "imr-1t", "--nbd", "unix:other", "--control", "control"]);
    assert!(said(&refused).contains("cannot listen at control"), "{}", said(&refused));
    assert!(ask(folder.path(), r#"{"verb":"stats"}"#).is_some());
    server.kill();
    assert!(control.exists());
    let server = Server::start(folder.path(), &[&image, "--control", word]);
    assert_eq!(send(&control, b"{\"verb\":\"stats\"}\n").expect("it listens")["image"], image);
    server.stop();
    assert!(!control.exists() && files_in(&folder.path().join("imbrex")).is_empty(), "it goes with its server");
    // A file that is not a socket is left unchanged.
    fs::write(&control, "a letter").expect("it is written");
    let refused = imbrex_in(folder.path(), &["serve", "image", "--nbd", "unix:other", "--control", "control"]);
    assert!(said(&refused).contains("cannot listen at control"), "{}", said(&refused));
    assert_eq!(fs::read(&control).expect("it is there"), b"a letter");
}

/// For every socket of a server: it is replaced after a kill.
#[test]
fn a_killed_server_leaves_no_socket_in_the_way() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = small_image(folder.path());
    let stats = folder.path().join("stats");
    let words = [image.as_str(), "--stats", stats.to_str().expect("a path")];
    Server::start(folder.path(), &words).kill();
    assert!(stats.exists());
    let server = Server::start(folder.path(), &words);
    let mut text = String::new();
    UnixStream::connect(&stats).expect("it listens").read_to_string(&mut text).expect("it answers");
    assert!(text.contains("simulated time"), "{text}");
    server.stop();
    let _living = UnixListener::bind(&stats).expect("it was removed");
    let refused = imbrex_in(folder.path(), &["serve", "image", "--nbd", "unix:other", "--stats", "stats"]);
    assert!(said(&refused).contains("cannot listen at stats"), "{}", said(&refused));
}

#[test]
fn a_drive_in_memory_has_no_image_to_copy() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let control = folder.path().join("control");
    let server = Server::start(folder.path(), &["--drive", "imr-1t", "--control", control.to_str().expect("a path")]);
    let answer = send(&control, b"{\"verb\":\"snapshot\",\"to\":\"/tmp/never\"}\n").expect("it listens");
    assert_eq!(answer["error"]["code"], "no-image", "{answer}");
    let stats = send(&control, b"{\"verb\":\"stats\"}\n").expect("it listens");
    assert_eq!((&stats["image"], &stats["placement"]), (&Value::Null, &Value::Null));
    server.stop();
}

/// The page on serving names every verb, and every code of a refusal.
#[test]
fn the_page_on_serving_names_every_verb_and_every_error() {
    let page = include_str!("../../../../../docs/serve.md");
    for verb in &VERBS {
        assert!(page.contains(&format!("| `{}` |", verb.name)), "docs/serve.md has no verb {}", verb.name);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../serve/src/control");
    let mut codes = 0;
    for file in ["mod.rs", "shutdown.rs", "snapshot.rs", "stats.rs"] {
        let source = fs::read_to_string(folder.join(file)).expect("it is there");
        let source = source.split("#[cfg(test)]").next().expect("a beginning").to_string();
        let of_refusals = source.split("Refusal::new(").skip(1).filter_map(|rest| rest.trim().strip_prefix('"'));
        let of_arms =
            source.split("SnapshotError::").skip(1).filter_map(|rest| rest.split_once("=> \"").map(|(_, code)| code));
        for code in of_refusals.chain(of_arms).filter_map(|rest| rest.split('"').next()) {
            assert!(page.contains(&format!("| `{code}` |")), "docs/serve.md has no error {code}");
            codes += 1;
        }
    }
    assert!(codes > 12, "{codes} codes");
}
