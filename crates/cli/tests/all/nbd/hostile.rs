//! Goal: a faulty or hostile client gets an error or is disconnected, and costs other clients nothing. Method: raw
//! messages over the socket; after each a good client, connected all the while, still writes and reads.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::common::*;

const PERMISSION: u32 = 1;
const INVALID: u32 = 22;
const NO_SPACE: u32 = 28;
const MIB: u32 = 1 << 20;

struct Bench {
    server: Server,
    good: Client,
    round: u8,
    _folder: tempfile::TempDir,
}

impl Bench {
    fn new(time: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let layer = imbrex_layer::registry::named("media-cache").expect("it is registered");
        let drive = small_drive(folder.path(), layer);
        let server = Server::start(folder.path(), &["--drive", &drive, "--time", time]);
        let good = Client::connect(&server.socket);
        Bench { server, good, round: 0, _folder: folder }
    }

    fn client(&self) -> Client {
        Client::connect(&self.server.socket)
    }

    fn greeted(&self) -> UnixStream {
        Client::greeted(&self.server.socket)
    }

    /// Asserts that the good client can still write and read.
    fn is_well(&mut self, after: &str) {
        self.round = self.round.wrapping_add(1);
        assert_eq!(self.good.write(4096, &[self.round; 4096]), 0, "after {after}");
        assert_eq!(self.good.read(4096, 4096), Ok(vec![self.round; 4096]), "after {after}");
    }
}

#[test]
fn broken_handshakes_end_alone() {
    let mut bench = Bench::new("none");
    let half_open: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&bench.server.socket).unwrap()).collect();
    bench.is_well("clients that say nothing");
    let mut stream = UnixStream::connect(&bench.server.socket).unwrap();
    stream.write_all(&0xffff_ffffu32.to_be_bytes()).unwrap();
    stream.read_exact(&mut [0; 18]).unwrap();
    assert!(is_closed(&mut stream), "unknown flags");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &b"IHAVEOPT\0\0\0\x07\xff\xff\xff\xff"[..]] {
        let mut stream = bench.greeted();
        stream.write_all(garbage).unwrap();
        assert!(is_closed(&mut stream), "{garbage:?}");
    }
    bench.is_well("garbage");
    let mut stream = bench.greeted();
    for (option, data, wanted) in [
        (99, vec![1; 10], 0x8000_0001),
        (3, vec![1], 0x8000_0003),
        (GO, vec![0, 0, 0, 9], 0x8000_0003),
        (GO, vec![0xff; 6], 0x8000_0003),
        (GO, b"\0\0\0\x05wrong\0\0".to_vec(), 0x8000_0006),
        (8, vec![1], 0x8000_0003),
        (10, vec![0; 8], 0x8000_0003),
        (9, vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff], 0x8000_0003),
        (5, vec![], 0x8000_0001),
        (99, vec![1; 100_000], 0x8000_0009),
    ] {
        send_option(&mut stream, option, &data);
        let (kind, _) = option_reply(&mut stream).expect("an answer");
        assert_eq!(kind, wanted, "option {option} with {} bytes", data.len());
    }
    bench.is_well("options that make no sense");
    drop(half_open);
    bench.is_well("clients that left");
}

#[test]
fn options_have_an_end() {
    let mut bench = Bench::new("none");
    let mut stream = bench.greeted();
    let mut answered = 0;
    for _ in 0..1100 {
        let mut option = b"IHAVEOPT".to_vec();
        option.extend_from_slice(&[0, 0, 0, 99, 0, 0, 0, 0]);
        if stream.write_all(&option).is_err() || option_reply(&mut stream).is_none() {
            break;
        }
        answered += 1;
    }
    assert_eq!(answered, 1000);
    bench.is_well("too many options");
}

#[test]
fn unfinished_handshakes_keep_nobody_out() {
    let mut bench = Bench::new("none");
    let crowd: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(&bench.server.socket).unwrap()).collect();
    let mut late = bench.client();
    assert_eq!(late.write(0, &[1; 512]), 0);
    bench.is_well("a crowd at the door");
    drop(crowd);
}

fn refuses_what_cannot_be(time: &str) {
    let mut bench = Bench::new(time);
    let mut client = bench.client();
    let capacity = client.capacity_bytes;
    let payload = vec![7; 4096];
    for (command, flags, offset, length, wanted) in [
        (READ, 0, capacity, 512, INVALID),
        (READ, 0, u64::MAX - 511, 512, INVALID),
        (READ, 0, 1, 512, INVALID),
        (READ, 0, 0, 511, INVALID),
        (READ, 0, 0, 0, INVALID),
        (READ, 1 << 15, 0, 512, INVALID),
        (WRITE, 0, capacity - 512, 4096, NO_SPACE),
        (WRITE, 0, 100, 4096, INVALID),
        (WRITE, 1 << 9, 0, 4096, INVALID),
        (TRIM, 0, capacity, 512, INVALID),
        (TRIM, 0, 0, 100, INVALID),
        (WRITE_ZEROES, 0, capacity - 512, 0xffff_fe00, NO_SPACE),
        (WRITE_ZEROES, 0, 0, 1000, INVALID),
        (FLUSH, 0, 512, 0, INVALID),
        (7, 0, 0, 512, INVALID),
        (99, 0, 0, 512, INVALID),
    ] {
        let payload = if command == WRITE { &payload[..] } else { &[] };
        assert_eq!(client.ask(command, flags, offset, length, payload), wanted, "{command} at {offset}: {length}");
    }
    assert_ne!(client.ask(READ, 0, 0, 0xffff_fe00, &[]), 0, "more than a reply takes");
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]), "nothing was changed");
    bench.is_well("requests that cannot be served");
}

#[test]
fn requests_that_cannot_be_served_are_refused() {
    refuses_what_cannot_be("none");
    refuses_what_cannot_be("1000x");
}

#[test]
fn a_lost_thread_ends_one_connection() {
    for time in ["none", "1000x"] {
        let mut bench = Bench::new(time);
        let mut client = bench.client();
        let mut wrong = request(READ, 0, 1, 0, 512);
        wrong[0] ^= 1;
        client.stream.write_all(&wrong).unwrap();
        assert!(is_closed(&mut client.stream), "a request without its magic");
        let mut client = bench.client();
        client.stream.write_all(&request(WRITE, 0, 1, 0, MIB)).unwrap();
        client.stream.write_all(&[9; 1000]).unwrap();
        drop(client);
        bench.is_well("a payload that ended in the middle");
        assert_eq!(bench.good.read(0, 512), Ok(vec![0; 512]), "a write that never came whole changed the drive");
        let mut client = bench.client();
        client.stream.write_all(&request(WRITE, 0, 1, 0, MIB)[..11]).unwrap();
        drop(client);
        let mut client = bench.client();
        client.stream.write_all(&request(DISCONNECT, 0, 1, 0, 0)).unwrap();
        assert!(is_closed(&mut client.stream), "good-bye");
        bench.is_well("good-bye");
    }
}

#[test]
fn who_does_not_read_replies_holds_up_nobody() {
    for time in ["none", "1000x"] {
        let mut bench = Bench::new(time);
        let mut deaf = bench.client();
        deaf.stream.set_write_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
        // More data than sockets hold: 400 MiB requested, none of them read.
        for cookie in 0..400 {
            if deaf.send(READ, 0, cookie, 0, MIB, &[]).is_err() {
                break;
            }
        }
        for _ in 0..20 {
            bench.is_well("a client that does not read");
        }
        // Ctrl-C does not wait for the client that does not read either.
        bench.server.stop();
        drop(deaf);
    }
}

#[test]
fn what_is_served_read_only_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let layer = imbrex_layer::registry::named("media-cache").expect("it is registered");
    let image = image(folder.path(), &small_drive(folder.path(), layer));
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for block in 0..200u64 {
        assert_eq!(client.write(block * 65_536, &[block as u8 + 1; 4096]), 0);
    }
    server.kill();
    let before = std::fs::read(&image).unwrap();
    // A minute of idle time passes, in which a drive that may write would clean its cache.
    let server = Server::start(folder.path(), &[&image, "--time", "1000x", "--read-only"]);
    let mut client = Client::connect(&server.socket);
    for (command, length) in [(WRITE, 512), (TRIM, 512), (WRITE_ZEROES, 512)] {
        let payload: &[u8] = if command == WRITE { &[1; 512] } else { &[] };
        assert_eq!(client.ask(command, 0, 0, length, payload), PERMISSION);
    }
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
    std::thread::sleep(std::time::Duration::from_millis(60));
    for block in 0..200u64 {
        assert_eq!(client.read(block * 65_536, 4096), Ok(vec![block as u8 + 1; 4096]), "block {block}");
    }
    // Two servers may read one image at once.
    let second = folder.path().join("second");
    std::fs::create_dir(&second).unwrap();
    Server::start(&second, &[&image, "--time", "none", "--read-only"]).stop();
    server.stop();
    assert!(before == std::fs::read(&image).unwrap(), "looking changed the image");
}

#[test]
fn an_image_is_served_once_and_by_its_own_version() {
    let folder = tempfile::tempdir().unwrap();
    let layer = imbrex_layer::registry::named("conventional").expect("it is registered");
    let image = image(folder.path(), &small_drive(folder.path(), layer));
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let refused = |words: &str| {
        let address = format!("unix:{}", folder.path().join("other").display());
        let output = imbrex(&["serve", &image, "--nbd", &address]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(words), "{said}");
    };
    refused("in use by another process");
    assert!(server.runs());
    server.stop();
    let mut bytes = std::fs::read(&image).unwrap();
    // All three copies of the header: a wrong version in one copy is damage that the others repair.
    for copy in 0..3 {
        bytes[(copy << 20) + 8] = 99;
    }
    std::fs::write(&image, &bytes).unwrap();
    refused("version 99");
    assert!(std::fs::read(&image).unwrap() == bytes, "a refused image was changed");
}
