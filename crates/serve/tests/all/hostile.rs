//! Goal: any bytes of a client get valid answers, or the connection is closed. Nothing panics, runs for ever, or allocates without
//! bound, and the drive executes the complete requests and nothing else. Method: the fuzzer's entry functions, over valid
//! conversations altered by a seed and over random bytes, compared with a naive model.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use imbrex_device::verify::allocation::Counting;
use imbrex_device::verify::mutation::{mutate, noise};
use imbrex_layer::verify::toy::below;
use imbrex_serve::nbd::handshake::{Ended, Session, Tls};
use imbrex_serve::nbd::protocol::command;
use imbrex_serve::verify::{Requests, handshake, request_bytes, valid_handshake};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A handshake keeps one option, and answers it.
const HANDSHAKE_PEAK_BYTES_MAX: u64 = 1 << 20;
/// A connection keeps its buffers, the drive one request.
const REQUESTS_PEAK_BYTES_MAX: u64 = 8 << 20;
const ALL_TLS: [Tls; 3] = [Tls::None, Tls::Required, Tls::On];
const SESSIONS: [Session; 3] = [
    Session { structured: false, allocation: false },
    Session { structured: true, allocation: false },
    Session { structured: true, allocation: true },
];

fn shake(said: &[u8], tls: Tls) -> (Vec<u8>, Option<Ended>) {
    let (outcome, peak_bytes) = Counting::peak_bytes(|| handshake(said, tls));
    assert!(peak_bytes <= HANDSHAKE_PEAK_BYTES_MAX, "{peak_bytes} bytes held for {said:?}");
    outcome
}

#[test]
fn handshakes_end_in_answers_or_at_once() {
    let options = valid_handshake();
    let mut random = Xoshiro256StarStar::seed_from_u64(1);
    let go = Ended::Go(Session { structured: true, allocation: true });
    assert_eq!(shake(&options.concat(), Tls::None).1, Some(go), "an honest client comes through");
    assert_eq!(shake(&options.concat(), Tls::Required).1, Some(Ended::StartTls));
    for case in 0..8_000 {
        let tls = ALL_TLS[case % 3];
        let whole = below(&mut random, options.len() as u64) as usize;
        let prefix = options[..whole].concat();
        let said = [prefix.clone(), mutate(&mut random, &options[whole..].concat())].concat();
        let (told, _) = shake(&said, tls);
        // Options and no flags before them are no prefix of a conversation.
        if whole > 0 {
            let (told_of_prefix, _) = shake(&prefix, tls);
            assert!(told.starts_with(&told_of_prefix), "what was right is answered as ever: {said:?}");
        }
        shake(&mutate(&mut random, &options.concat()), tls);
        shake(&[&options[0][..], &noise(&mut random, 120)].concat(), tls);
    }
}

#[test]
fn an_option_of_any_length_costs_little() {
    for length in [0u32, 1, 65_536, 65_537, 16 << 20, (16 << 20) + 1, u32::MAX] {
        for number in 0..16u32 {
            let said = [&3u32.to_be_bytes()[..], b"IHAVEOPT", &number.to_be_bytes(), &length.to_be_bytes()].concat();
            assert!(!matches!(shake(&said, Tls::None).1, Some(Ended::Go(_))) || length == 0, "option {number}");
        }
    }
}

/// A few requests as honest clients send them, one of them now and then with odd numbers.
fn requests(random: &mut Xoshiro256StarStar, capacity_bytes: u64) -> Vec<u8> {
    let mut said = Vec::new();
    for cookie in 0..=below(random, 8) {
        let sectors = 1 + below(random, 16);
        let offset = 512 * below(random, capacity_bytes / 512 - sectors + 1);
        let number = [0, 1, 1, 3, 4, 6, 7][below(random, 7) as usize];
        let flags = if below(random, 4) == 0 { 1 << below(random, 6) } else { 0 };
        let length = 512 * sectors as u32;
        let (offset, length) = if number == command::FLUSH { (0, 0) } else { (offset, length) };
        let mut payload = vec![0; if number == command::WRITE { length as usize } else { 0 }];
        random.fill_bytes(&mut payload);
        said.extend(request_bytes(flags, number, cookie, offset, length, &payload));
    }
    said
}

/// Serves `said`; it costs little, and the drive is as the model has it.
fn serve(drive: &mut Requests, said: &[u8], session: Session) -> usize {
    let (answered, peak_bytes) = Counting::peak_bytes(|| drive.serve(said, session));
    assert!(peak_bytes <= REQUESTS_PEAK_BYTES_MAX, "{peak_bytes} bytes held for {} of requests", said.len());
    answered
}

#[test]
fn requests_are_answered_or_end_the_connection() {
    let mut random = Xoshiro256StarStar::seed_from_u64(2);
    let mut answered = 0;
    for layer in ["conventional", "media-cache", "set-associative"] {
        let mut drive = Requests::new(layer);
        for case in 0..2_500 {
            let session = SESSIONS[case % 3];
            let good = requests(&mut random, drive.capacity_bytes());
            let more = requests(&mut random, drive.capacity_bytes());
            // The model answers the good ones first, whatever comes after them.
            answered += serve(&mut drive, &[good, mutate(&mut random, &more)].concat(), session);
            serve(&mut drive, &mutate(&mut random, &more), session);
            serve(&mut drive, &noise(&mut random, 200), session);
        }
    }
    assert!(answered > 20_000, "{answered} requests were answered");
}

/// With a pace a thread takes requests, another answers them, a third is the drive's, and idle time passes in between.
#[test]
fn a_paced_drive_answers_them_too() {
    let mut random = Xoshiro256StarStar::seed_from_u64(3);
    let mut answered = 0;
    for layer in ["conventional", "media-cache", "set-associative"] {
        let mut drive = Requests::paced(layer);
        for case in 0..600 {
            let session = SESSIONS[case % 3];
            let good = requests(&mut random, drive.capacity_bytes());
            let more = requests(&mut random, drive.capacity_bytes());
            answered += serve(&mut drive, &[good, mutate(&mut random, &more)].concat(), session);
            serve(&mut drive, &mutate(&mut random, &more), session);
            serve(&mut drive, &noise(&mut random, 200), session);
        }
    }
    assert!(answered > 5_000, "{answered} requests were answered");
}

#[test]
fn a_promise_of_bytes_costs_little() {
    for mut drive in [Requests::new("conventional"), Requests::paced("conventional")] {
        promise(&mut drive);
    }
}

fn promise(drive: &mut Requests) {
    for length in [1 << 20, 32 << 20, (32 << 20) + 1, u32::MAX] {
        let said = request_bytes(0, command::WRITE, 1, 0, length, &[0; 512]);
        assert_eq!(serve(drive, &said, SESSIONS[0]), 0, "the rest never comes");
    }
    for number in [command::READ, command::TRIM, command::WRITE_ZEROES, command::BLOCK_STATUS] {
        let said = request_bytes(0, number, 1, 0, u32::MAX, &[]);
        assert_eq!(serve(drive, &said, SESSIONS[2]), 1);
    }
}

#[test]
fn a_payload_that_does_not_come_holds_up_no_earlier_answer() {
    let (mut client, server) = UnixStream::pair().expect("a pair of sockets");
    let serving = std::thread::spawn(move || {
        let writer = server.try_clone().expect("a second handle");
        Requests::new("conventional").serve_live(server, writer);
    });
    let read = request_bytes(0, command::READ, 7, 0, 512, &[]);
    let promise = request_bytes(0, command::WRITE, 8, 0, 512, &[1; 100]);
    client.write_all(&[read, promise].concat()).expect("the server is there");
    let mut answer = [0; 16 + 512];
    client.read_exact(&mut answer).expect("the read is answered before the write has come");
    assert_eq!(answer[8..16], 7u64.to_be_bytes());
    drop(client);
    serving.join().expect("the connection ends with its client");
}
