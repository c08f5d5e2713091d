//! Goal: a host-managed drive enforces its rules over NBD, and reports violations. Method: a minimal client with many
//! requests in flight, at every pace, on a small drive in zones; the server's messages.

use std::io::Write;

use imbrex_layer::registry;

use super::common::*;

/// The protocol's number for an input/output error.
const EIO: u32 = 5;
const SECTOR: u64 = 512;

/// Zones of the served drive: two tracks each.
const ZONE_BYTES: u64 = 256 << 10;

fn zoned_drive(folder: &std::path::Path, more: &str) -> String {
    let layer = registry::named("zoned").expect("it is registered");
    let words = small_drive(folder, layer);
    let plain = words.split_once(":zone_size").expect("the toy's words begin with it").0;
    format!("{plain}:zone_size={ZONE_BYTES}{more}")
}

#[test]
fn writes_off_the_pointer_are_refused_and_trims_reset() {
    for time in ["none", "1000x"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let drive = zoned_drive(folder.path(), ",host.write_cache_bytes=1048576,host.schedule=elevator");
        let server = Server::start(folder.path(), &["--drive", &drive, "--time", time]);
        let mut client = Client::connect(&server.socket);
        // Sixteen writes at once, in order: each meets the pointer when it arrives.
        for number in 0..16u64 {
            client
                .send(WRITE, 0, number, ZONE_BYTES + number * 4096, 4096, &[number as u8 + 1; 4096])
                .expect("it is sent");
        }
        client.stream.flush().expect("a socket takes it");
        for _ in 0..16 {
            let (cookie, error) = client.reply().expect("every request is answered");
            assert_eq!(error, 0, "{time}: write {cookie}");
        }
        for offset in [ZONE_BYTES, ZONE_BYTES + 4096, ZONE_BYTES + 20 * 4096, SECTOR] {
            assert_eq!(client.write(offset, &[99; 4096]), EIO, "{time}: at byte {offset}");
        }
        assert_eq!(client.ask(WRITE_ZEROES, 0, ZONE_BYTES, 4096, &[]), EIO, "{time}: zeroes obey the pointer");
        let read = client.read(ZONE_BYTES, 20 * 4096).expect("it can be read");
        let expected: Vec<u8> = (1..=16u8).flat_map(|number| [number; 4096]).chain(vec![0; 4 * 4096]).collect();
        assert!(read == expected, "{time}: what was refused changed something, or past the pointer are no zeros");
        // A trim of a part of the zone resets nothing; a trim of the whole zone resets it.
        assert_eq!(client.ask(TRIM, 0, ZONE_BYTES, 64 << 10, &[]), 0);
        assert_eq!(client.write(ZONE_BYTES, &[50; 4096]), EIO, "{time}: a part of a zone was reset");
        assert_eq!(client.ask(TRIM, 0, 0, 2 * ZONE_BYTES as u32, &[]), 0);
        assert_eq!(client.write(ZONE_BYTES, &[50; 4096]), 0, "{time}: the zone was not reset");
        let read = client.read(ZONE_BYTES, 8192).expect("it can be read");
        assert!(read[..4096] == [50; 4096] && read[4096..] == [0; 4096], "{time}: a reset zone brings old bytes");
        let log = until("the refusal is told", || {
            let log = server.log();
            log.contains("against the rules of zones").then_some(log)
        });
        assert!(
            log.contains("this drive has zones of") && log.matches("against the rules of zones").count() == 1,
            "{log}"
        );
        server.stop();
    }
}

#[test]
fn a_caveat_disk_takes_writes_anywhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Server::start(folder.path(), &["--drive", "caveat-1g", "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for lba in [100u64, 50, 90] {
        assert_eq!(client.write(lba * 4096, &[1; 4096]), 0, "sector {lba}");
    }
    assert_eq!(client.read(100 * 4096, 4096), Err(EIO), "the write of sector 90 damaged 97 to 106");
    assert!(client.read(50 * 4096, 4096).is_ok_and(|bytes| bytes == [1; 4096]));
    assert!(server.log().contains("this drive takes writes anywhere"), "{}", server.log());
    server.stop();
}
