//! Goal: a service manager learns when a drive or a directory is served, and not before. Method: a datagram socket stands
//! for systemd's; when its message arrives, a client must find the server.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Starts `imbrex` with `words` in `folder`. Returns it with its first message to the service manager.
fn start(folder: &Path, words: &[&str]) -> (Child, String) {
    let manager = UnixDatagram::bind(folder.join("manager")).expect("a socket");
    manager.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.current_dir(folder).args(words).env("NOTIFY_SOCKET", folder.join("manager"));
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let mut bytes = [0; 64];
    let count = manager.recv(&mut bytes).expect("a message within a minute");
    (child, String::from_utf8_lossy(&bytes[..count]).into_owned())
}

fn end(mut child: Child) {
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn a_drive_is_reported_ready_when_clients_can_connect() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (child, message) = start(folder.path(), &["serve", "--drive", "caveat-1g", "--nbd", "unix:nbd", "--quiet"]);
    assert_eq!(message, "READY=1\n");
    UnixStream::connect(folder.path().join("nbd")).expect("the server listens");
    end(child);
}

#[test]
fn a_directory_is_reported_ready_when_it_is_mounted() {
    if !crate::fs::common::has_fuse() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let done = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_imbrex")).current_dir(&folder).args(words).output();
        assert!(output.expect("the program starts").status.success(), "{words:?}");
    };
    done(&["drive", "create", "disk.imbrex", "--drive", "caveat-1g"]);
    done(&["fs", "mkfs", "disk.imbrex"]);
    std::fs::create_dir(folder.path().join("files")).expect("a directory");
    let words = ["fs", "mount", "--foreground", "--quiet", "-o", "time=none", "disk.imbrex", "files"];
    let (child, message) = start(folder.path(), &words);
    assert_eq!(message, "READY=1\n");
    std::fs::write(folder.path().join("files/letter"), "to a friend").expect("it is mounted");
    end(child);
    assert!(!folder.path().join("files/letter").exists(), "it was written into the directory below");
}

#[test]
fn a_port_that_the_system_chose_is_named_with_quiet_too() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_imbrex"));
    command.args(["serve", "--drive", "caveat-1g", "--nbd", "tcp:0", "--window", "127.0.0.1:0", "--quiet"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    assert!(line().contains("http://127.0.0.1:"));
    let said = line();
    let port = said.split("nbd://").nth(1).and_then(|rest| rest.split([':', ';']).nth(1)).expect("an address");
    std::net::TcpStream::connect(format!("127.0.0.1:{port}")).unwrap_or_else(|error| panic!("{said}: {error}"));
    end(child);
}
