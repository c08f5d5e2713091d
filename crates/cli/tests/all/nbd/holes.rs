//! Goal: damaged sectors are never copied as zeros. Method: a caveat drive, whose writes destroy sectors behind them,
//! is damaged by writes at known places; then popular clients that copy images read it, and must fail.

use std::path::Path;

use super::common::*;

/// 1 GiB of 4 KiB sectors: a write destroys at most the 16 sectors that follow it, except the next 6 (DID 16, DNOR 6).
const CAVEAT: &str = "caveat-1g";
const SECTOR: u64 = 4096;

/// Returns `base:allocation` of `length` bytes at `offset`: the length of each run with its flags.
fn status(socket: &Path, offset: u64, length: u32) -> Vec<(u32, u32)> {
    use std::io::{Read, Write};
    let mut stream = Client::greeted(socket);
    send_option(&mut stream, 8, &[]);
    assert_eq!(option_reply(&mut stream).expect("an answer").0, 1, "structured replies");
    let query = [&0u32.to_be_bytes()[..], &1u32.to_be_bytes(), &15u32.to_be_bytes(), b"base:allocation"].concat();
    for (option, data) in [(10, &query[..]), (GO, &[0; 6])] {
        send_option(&mut stream, option, data);
        while option_reply(&mut stream).expect("an answer").0 != 1 {}
    }
    stream.write_all(&request(7, 0, 9, offset, length)).expect("it takes requests");
    let mut head = [0; 24];
    stream.read_exact(&mut head).expect("a chunk");
    assert_eq!(head[..8], [0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 5], "one chunk of extents");
    let bytes = u32::from_be_bytes(head[16..20].try_into().unwrap()) as usize - 4;
    let mut runs = vec![0; bytes];
    stream.read_exact(&mut runs).expect("the extents");
    let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    runs.chunks(8).map(|run| (word(&run[..4]), word(&run[4..]))).collect()
}

#[test]
fn what_a_caveat_drive_lost_or_never_had_is_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", CAVEAT, "--time", "none"]);
    assert!(server.log().contains("takes writes anywhere"), "{}", server.log());
    let mut client = Client::connect(&server.socket);
    for place in [0, 100] {
        assert_eq!(client.write(place * SECTOR, &[7; SECTOR as usize]), 0);
    }
    assert_eq!(client.read(0, SECTOR as u32), Ok(vec![7; SECTOR as usize]));
    assert_eq!(client.read(50 * SECTOR, SECTOR as u32), Err(5), "never written");
    for (offset, length) in [(0, 1 << 20), (50 * SECTOR, 4096), (512 << 20, 256 << 20)] {
        assert_eq!(status(&server.socket, offset, length), [(length, 0)], "neither hole nor zero, at {offset}");
    }
    server.stop();
}

#[test]
fn copies_of_a_damaged_image_fail() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", CAVEAT, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    // The front of the drive is intact, so that the copy starts without an error.
    for block in 0..16u64 {
        assert_eq!(client.write(block << 20, &vec![block as u8 + 1; 1 << 20]), 0);
    }
    let there = folder.path().join("there").display().to_string();
    if has(&["nbdcopy"], "nbdcopy of a damaged image") {
        for more in [&[][..], &["--synchronous"]] {
            let copied = output("nbdcopy", &[more, &[&server.uri(), &there]].concat());
            let said = String::from_utf8_lossy(&copied.stderr);
            assert!(!copied.status.success(), "damaged sectors were copied");
            assert!(said.contains("Input/output error"), "{said}");
        }
    }
    if has(&["qemu-img"], "qemu-img of a damaged image") {
        let copied = output("qemu-img", &["convert", "-f", "raw", "-O", "raw", &server.uri(), &there]);
        let said = String::from_utf8_lossy(&copied.stderr);
        assert!(!copied.status.success(), "damaged sectors were copied");
        assert!(said.contains("Input/output error"), "{said}");
    }
    server.stop();
}
