//! Goal: after the first failed sync of the image, a served drive accepts no more writes, reports the reason, and ends
//! with an error. Method: `strace` makes one call of fdatasync fail, and lets all later ones succeed.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use imbrex_testkit::Program;

use super::common::*;

/// Number of the call that fails. The calls before it are those of the opening; a drive that is written to makes this
/// call soon.
const FAILS_AT: u32 = 40;
const BLOCK: u64 = 65_536;

/// Returns the program with call number `FAILS_AT` of fdatasync failing; `None` where strace is missing.
fn failing(folder: &Path) -> Option<Program> {
    if !has(&["strace"], "what a failed sync of the image does") {
        return None;
    }
    let path: PathBuf = folder.join("failing");
    let traced = format!(
        "#!/bin/sh\nexec strace -D -f -o '{}/trace' -e trace=fdatasync -e inject=fdatasync:error=EIO:when={FAILS_AT} '{}' \"$@\"\n",
        folder.display(),
        env!("CARGO_BIN_EXE_imbrex")
    );
    std::fs::write(&path, traced).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let can_trace = output(path.to_str().unwrap(), &["list", "layers"]).status.success();
    if !can_trace {
        eprintln!("skipped: what a failed sync of the image does (strace is not let trace here)");
    }
    can_trace.then(|| Program::new(path))
}

/// Returns the text that a served drive writes to its socket of figures.
fn figures(folder: &Path) -> String {
    let mut text = String::new();
    UnixStream::connect(folder.join("stats")).unwrap().read_to_string(&mut text).unwrap();
    text
}

fn takes_nothing_more(time: &str, drive: &str) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = failing(folder.path()) else { return };
    let image = image(folder.path(), drive);
    let stats = folder.path().join("stats").display().to_string();
    let words = [&image, "--time", time, "--sync", "barrier", "--stats", &stats];
    let server = imbrex_testkit::Server::start(&program, folder.path(), &words);
    let mut client = Client::connect(&server.socket);
    assert!(!figures(folder.path()).contains("stopped"));
    let mut flushed = 0;
    while client.write(flushed * BLOCK, &[flushed as u8 + 1; BLOCK as usize]) == 0
        && client.ask(FLUSH, 0, 0, 0, &[]) == 0
    {
        flushed += 1;
        assert!(flushed < 100, "no flush failed");
    }
    assert!(flushed > 0, "the opening failed: {}", server.log());
    // No other call would fail, but none is made: the server does not retry.
    for _ in 0..3 {
        assert_ne!(client.ask(FLUSH, 0, 0, 0, &[]), 0, "{drive}: a flush after the one that failed");
        assert_ne!(client.write(0, &[99; 4096]), 0, "{drive}: a write");
        assert_ne!(client.ask(WRITE, FUA, 0, 4096, &[99; 4096]), 0, "{drive}: a write with FUA");
        assert_ne!(client.ask(TRIM, 0, 0, 4096, &[]), 0, "{drive}: a trim");
        assert_ne!(client.ask(WRITE_ZEROES, 0, 0, 4096, &[]), 0, "{drive}: zeros");
    }
    let is_whole = |client: &mut Client| {
        (0..flushed).all(|block| client.read(block * BLOCK, BLOCK as u32) == Ok(vec![block as u8 + 1; BLOCK as usize]))
    };
    assert!(is_whole(&mut client), "{drive}: reads go on, and bring what was flushed");
    let reason = format!("{image} could not be synced to its disk: Input/output error");
    for said in [figures(folder.path()), server.log()] {
        assert!(said.contains(&reason) && said.contains("stopped"), "{drive}: {said}");
    }
    drop(client);
    let said = server.stop().expect_err("it ends with an error");
    assert!(said.starts_with("exit status: 1:") && said.matches(&reason).count() > 1, "{drive}: {said}");
    assert!(!said.contains("all acknowledged writes are in it"), "{drive}: {said}");
    let failed = std::fs::read_to_string(folder.path().join("trace")).unwrap();
    assert!(failed.lines().last().unwrap_or_default().contains("exited with 1"), "{drive}: {failed}");
    let after = failed.split("(INJECTED)").nth(1).expect("one call failed");
    assert!(!after.contains("fdatasync("), "{drive}: a sync was tried again: {after}");
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    assert!(is_whole(&mut Client::connect(&server.socket)), "{drive}: served again");
    server.stop();
}

#[test]
fn after_a_failed_sync_a_served_drive_takes_nothing_more() {
    for (time, drive) in [("none", "cmr-7200"), ("none", "seagate-st5000as0011"), ("1000x", "cmr-7200")] {
        takes_nothing_more(time, drive);
    }
}
