//! Goal: on a full disk of the host a served drive loses nothing: writes are refused, reads and flushes succeed, and
//! writes succeed again once there is space; no acknowledged write is lost. Method: on every layer an image on a file
//! system of 24 MiB is written to until that is full, space is freed, the image is written to again, the server is
//! killed, and everything is read.

use std::fs;
use std::path::Path;

use imbrex_layer::registry;
use imbrex_testkit::fill::numbered_words;
use imbrex_testkit::server::fetch;
use imbrex_testkit::tmpfs::Tmpfs;

use super::common::*;
use super::control::ask;

const PIECE: u64 = 64 << 10;
const ENOSPC: u32 = 28;

fn piece(number: u64) -> Vec<u8> {
    numbered_words(number, PIECE as usize)
}

/// Reads the first `pieces` pieces of the drive and compares them.
fn compare(client: &mut Client, pieces: u64, drive: &str) {
    for number in 0..pieces {
        let read = client.read(number * PIECE, PIECE as u32);
        assert!(read == Ok(piece(number)), "{drive}: piece {number} of {pieces} holds other bytes, or none");
    }
}

fn fills_and_goes_on(drive: &str, folder: &Path) {
    let filler = folder.join("filler");
    fs::write(&filler, vec![1; 6 << 20]).expect("there is room yet");
    let image = image(folder, drive);
    let mut server = Server::start(folder, &[&image, "--time", "none", "--window", "127.0.0.1:0"]);
    let is_full = || ask(folder, r#"{"verb":"stats"}"#).expect("it listens")["is_disk_full"].clone();
    let mut client = Client::connect(&server.socket);
    let mut pieces = 0;
    let write = |client: &mut Client, number: u64| client.write(number * PIECE, &piece(number));
    loop {
        match write(&mut client, pieces) {
            0 => pieces += 1,
            error => {
                assert_eq!(error, ENOSPC, "{drive}: after {pieces} pieces; {}", server.log());
                break;
            }
        }
        assert!(pieces * PIECE < 24 << 20, "{drive}: a disk of 24 MiB never filled");
    }
    assert_eq!(is_full(), true);
    assert_eq!(write(&mut client, pieces), ENOSPC, "{drive}: there is no more room than before");
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0, "{drive}: {}", server.log());
    compare(&mut client, pieces, drive);
    let metrics = fetch(&server.window(), "/metrics");
    assert!(metrics.contains("imbrex_image_disk_full 1"), "{drive}");
    let errors = "imbrex_request_errors_total{operation=\"write\"} 2\n";
    assert!(metrics.contains(errors), "{drive}: two writes were answered with an error: {metrics}");
    // The server checks once a second: one drive is enough for this part.
    let is_told = drive.contains("media-cache");
    let is_said = |words: &str| (!is_told || server.log().contains(words)).then_some(());
    until("a word on standard error", || is_said("nothing more is written until"));

    fs::remove_file(&filler).expect("it is ours");
    until("room", || (write(&mut client, pieces) == 0).then_some(()));
    pieces += 1;
    for _ in 0..16 {
        assert_eq!(write(&mut client, pieces), 0, "{drive}: {}", server.log());
        pieces += 1;
    }
    assert_eq!(is_full(), false);
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0, "{drive}: {}", server.log());
    until("a better word", || is_said("has room again"));
    compare(&mut client, pieces, drive);
    server.kill();
    let server = Server::start(folder, &[&image, "--time", "none"]);
    compare(&mut Client::connect(&server.socket), pieces, drive);
    server.stop();
    let files: Vec<_> =
        fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("read").file_name()).collect();
    assert!(files.len() <= 6, "{drive}: what was kept back has no name: {files:?}");
}

#[test]
fn on_a_full_disk_every_drive_refuses_writes_and_goes_on_once_there_is_room() {
    for layer in registry::all() {
        // Drives without a volatile cache too: one layer of each way to place writes.
        let writes_through = ["caveat", "log-structured", "media-cache", "track-map", "zoned"].contains(&layer.name);
        for cache_bytes in [0, 1 << 20] {
            if cache_bytes == 0 && !writes_through {
                continue;
            }
            let Some(tiny) = Tmpfs::mounted(24 << 10, "a full disk of the host") else { return };
            let folder = tiny.path();
            // A drive of 50 MB; a caveat disk needs distances of its own, and a piece must lie in one zone.
            let drive = if layer.name == "caveat" { "caveat-1g".into() } else { small_drive(folder, layer) };
            let drive = drive.replace("zone_size=20000", "zone_size=1MiB");
            let separator = if drive.contains(':') { ',' } else { ':' };
            fills_and_goes_on(&format!("{drive}{separator}host.write_cache_bytes={cache_bytes}"), folder);
        }
    }
}
