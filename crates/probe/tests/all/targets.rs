//! Goal: targets in real time perform the requested operations at the requested offsets and depth. Method: a server in
//! the test that answers in reverse order, and only when enough requests have arrived; and a file whose bytes are
//! checked afterwards.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use imbrex_probe::targets::{Access, Block, Nbd};
use imbrex_probe::{Operation, Target, TargetError, Timed};

const DEPTH: usize = 8;
const SIZE: u64 = 256 << 20;
const BLOCK: u64 = 4096;

fn number(stream: &mut UnixStream, bytes: usize) -> Option<u64> {
    let mut word = [0; 8];
    stream.read_exact(&mut word[8 - bytes..]).ok()?;
    Some(u64::from_be_bytes(word))
}

fn shake_hands(stream: &mut UnixStream) {
    stream.write_all(b"NBDMAGICIHAVEOPT\0\x03").expect("sent");
    number(stream, 4).expect("flags");
    stream.read_exact(&mut [0; 12]).expect("an option");
    let length = number(stream, 4).expect("a length");
    stream.read_exact(&mut vec![0; length as usize]).expect("its data");
    let mut reply = |kind: u32, data: &[u8]| {
        let mut bytes = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
        bytes.extend_from_slice(&7u32.to_be_bytes());
        bytes.extend_from_slice(&kind.to_be_bytes());
        bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
        bytes.extend_from_slice(data);
        stream.write_all(&bytes).expect("sent");
    };
    // Facts about an export with FUA; then the end of the handshake.
    let facts = [&[0, 0][..], &SIZE.to_be_bytes(), &[0, 0b1001]].concat();
    reply(3, &facts);
    reply(1, &[]);
}

/// Answers requests in reverse order once there are `DEPTH` of them; a request at offset `bad` fails. Returns the
/// number of writes with FUA.
fn serve(mut stream: UnixStream, bad: u64) -> u64 {
    shake_hands(&mut stream);
    let (mut waiting, mut durable) = (Vec::new(), 0);
    while number(&mut stream, 4) == Some(0x2560_9513) {
        let [flags, command] = [2, 2].map(|bytes| number(&mut stream, bytes).expect("a word"));
        let [cookie, offset] = [8, 8].map(|bytes| number(&mut stream, bytes).expect("a word"));
        let length = number(&mut stream, 4).expect("a word");
        if command == 2 {
            break;
        }
        if command == 1 {
            stream.read_exact(&mut vec![0; length as usize]).expect("what is written");
            durable += flags & 1;
        }
        waiting.push((command, cookie, offset, length));
        if waiting.len() < DEPTH {
            continue;
        }
        for (command, cookie, offset, length) in waiting.drain(..).rev() {
            let error = if offset == bad { 5u32 } else { 0 };
            let mut reply = 0x6744_6698u32.to_be_bytes().to_vec();
            reply.extend_from_slice(&error.to_be_bytes());
            reply.extend_from_slice(&cookie.to_be_bytes());
            if command == 0 && error == 0 {
                reply.resize(reply.len() + length as usize, 7);
            }
            stream.write_all(&reply).expect("sent");
        }
    }
    durable
}

fn run(bad: u64) -> (Result<(), TargetError>, Vec<Timed>, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let server = std::thread::spawn(move || serve(listener.accept().expect("a client").0, bad));
    let mut target = Nbd::connect(&format!("nbd+unix:///?socket={}", path.display())).expect("it answers");
    assert_eq!((target.size_bytes(), target.is_read_only()), (SIZE, false));
    // Whole rounds of the server, so that it answers all requests.
    let mut operations = (0..4 * DEPTH as u64).map(|index| {
        let offset = index * 3 * BLOCK;
        if index % 2 == 0 { Operation::write(offset, BLOCK) } else { Operation::read(offset, BLOCK) }
    });
    let mut seen = Vec::new();
    let outcome = target.perform(DEPTH, &mut || operations.next(), &mut |timed| {
        seen.push(*timed);
        true
    });
    drop(target);
    (outcome, seen, server.join().expect("the server ends with its client"))
}

#[test]
fn nbd_requests_are_on_their_way_together_and_answered_in_any_order() {
    let (outcome, mut seen, durable) = run(u64::MAX);
    outcome.expect("all goes well");
    assert!(seen.iter().all(|timed| timed.end_ns >= timed.begin_ns));
    seen.sort_by_key(|timed| timed.operation.offset);
    let offsets: Vec<u64> = seen.iter().map(|timed| timed.operation.offset / BLOCK / 3).collect();
    assert_eq!(offsets, (0..4 * DEPTH as u64).collect::<Vec<_>>());
    assert_eq!(durable, 2 * DEPTH as u64, "every write is to be durable");
}

#[test]
fn an_error_of_the_server_is_told_with_its_place() {
    // The bad request is answered first, so that no other round has begun, which the server would not complete.
    let (outcome, seen, _) = run((DEPTH as u64 - 1) * 3 * BLOCK);
    let said = outcome.expect_err("one fails").to_string();
    assert!(said.contains("reading 4096 bytes at byte 86016") && said.contains("Input/output"), "{said}");
    assert_eq!(seen.len(), DEPTH - 1, "the others of its round were waited for");
}

#[test]
fn a_file_is_written_where_it_is_asked_and_nowhere_else() {
    // In a folder beside the program, because folders for temporary files may lie in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("file");
    std::fs::File::create(&path).and_then(|file| file.set_len(SIZE)).expect("made");
    let mut target = match Block::open(&path, Access { may_write: true }) {
        Ok(target) => target,
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("io_uring") || said.contains("O_DIRECT"), "{said}");
            eprintln!("skipped: direct access to a file ({said})");
            return;
        }
    };
    let places: Vec<u64> = (0..100).map(|index| index * 641 * BLOCK % (SIZE - 2 * BLOCK)).collect();
    let mut operations = places.iter().map(|&offset| Operation::write(offset, 2 * BLOCK));
    let mut deepest = 0;
    target
        .perform(DEPTH, &mut || operations.next(), &mut |_| {
            deepest += 1;
            true
        })
        .expect("a file takes writes");
    assert_eq!(deepest, 100);
    let survey = target.survey().expect("it can be looked into");
    assert_eq!(survey.size_bytes, SIZE);
    assert_eq!(survey.contents.iter().map(ToString::to_string).collect::<Vec<_>>(), ["data"]);
    drop(target);
    let bytes = std::fs::read(&path).expect("it is there");
    for (index, block) in bytes.chunks_exact(BLOCK as usize).enumerate() {
        let offset = index as u64 * BLOCK;
        let was_written = places.iter().any(|place| (*place..place + 2 * BLOCK).contains(&offset));
        assert_eq!(block.iter().any(|byte| *byte != 0), was_written, "at {offset}");
    }
}
