//! Goal: a damaged image served by the real program yields errors and never wrong bytes, its damage is reported with
//! exit code 3, and `--repair` makes it usable again. Method: an image is written over NBD and its server ended; then
//! it is damaged at places that `drive dump --regions` lists, served again and read, checked, repaired, checked and
//! read.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 96;

fn imbrex(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_imbrex")).current_dir(folder).args(words).output().expect("it runs")
}

fn json(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// `imbrex serve` of an image, and an NBD connection to the server.
struct Served {
    server: Child,
    stream: UnixStream,
    next: u64,
}

impl Served {
    /// Starts the server. Returns its error messages if it refuses the image.
    fn begin(folder: &Path) -> Result<Served, String> {
        let socket = folder.join("socket");
        let _ = fs::remove_file(&socket);
        let mut server = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .current_dir(folder)
            .args(["serve", "disk.imbrex", "--nbd", "unix:socket", "--time", "none"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(server.stderr.take().expect("it is piped")).lines();
        let mut said = String::new();
        // The socket is there a moment before the server listens on it.
        let stream = loop {
            if let Ok(stream) = UnixStream::connect(&socket) {
                break stream;
            }
            match lines.next() {
                Some(line) => said += &line.expect("text"),
                None => {
                    server.wait().expect("it ends");
                    return Err(said);
                }
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        let mut served = Served { server, stream, next: 0 };
        served.shake_hands();
        Ok(served)
    }

    /// Does the handshake: fixed newstyle, without zeroes, NBD_OPT_EXPORT_NAME.
    fn shake_hands(&mut self) {
        let mut greeting = [0; 18];
        self.stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let mut answer = 3u32.to_be_bytes().to_vec();
        answer.extend(b"IHAVEOPT");
        answer.extend(1u32.to_be_bytes());
        answer.extend(0u32.to_be_bytes());
        self.stream.write_all(&answer).expect("it listens");
        self.stream.read_exact(&mut [0; 10]).expect("size and flags");
    }

    /// Sends a request and receives its simple reply. Returns the error number.
    fn ask(&mut self, kind: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        self.next += 1;
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend(0u16.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(self.next.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(payload);
        self.stream.write_all(&request).expect("it listens");
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).expect("it answers");
        assert_eq!(&reply[..4], 0x6744_6698u32.to_be_bytes());
        u32::from_be_bytes(reply[4..8].try_into().expect("four bytes"))
    }

    fn read(&mut self, block: u64) -> Option<Vec<u8>> {
        if self.ask(0, block * BLOCK as u64, BLOCK as u32, &[]) != 0 {
            return None;
        }
        let mut bytes = vec![0; BLOCK];
        self.stream.read_exact(&mut bytes).expect("it sends what it read");
        Some(bytes)
    }

    fn write(&mut self, block: u64, stamp: u8) {
        let error = self.ask(1, block * BLOCK as u64, BLOCK as u32, &contents(block, stamp));
        assert_eq!(error, 0, "block {block}");
    }

    /// Flushes, disconnects, and ends the server, which closes the drive.
    fn end(mut self) {
        assert_eq!(self.ask(3, 0, 0, &[]), 0, "a flush");
        drop(self.stream);
        let id = self.server.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().expect("there is a kill");
        self.server.wait().expect("it ends");
    }
}

/// Returns the contents of block `block` after write number `stamp`.
fn contents(block: u64, stamp: u8) -> Vec<u8> {
    (0..BLOCK).map(|at| stamp ^ (block as u8).wrapping_mul(31) ^ (at as u8) ^ ((at >> 8) as u8) | 1).collect()
}

/// Reads all blocks. Returns the blocks with wrong contents, and the blocks with read errors.
fn read_all(served: &mut Served, stamp: u8) -> (Vec<u64>, Vec<u64>) {
    let (mut wrong, mut errors) = (Vec::new(), Vec::new());
    for block in 0..BLOCKS {
        match served.read(block) {
            Some(bytes) if bytes == contents(block, stamp) => {}
            Some(_) => wrong.push(block),
            None => errors.push(block),
        }
    }
    (wrong, errors)
}

/// Flips bits in the piece that `number` picks, inverts the piece, or cuts the file there, in turn.
fn damage(path: &Path, pieces: &[Value], number: usize) -> String {
    let kinds = ["header", "state", "directory", "slot-header", "sector-table", "contents", "journal"];
    let kind = kinds[number % kinds.len()];
    let chosen: Vec<&Value> = pieces.iter().filter(|piece| piece["region"] == kind).collect();
    assert!(!chosen.is_empty(), "no {kind} among {} pieces", pieces.len());
    let piece = chosen[(number * 7919) % chosen.len()];
    let number_of = |key: &str| piece[key].as_u64().expect("a number") as usize;
    let (offset, bytes) = (number_of("offset"), number_of("bytes"));
    let mut image = fs::read(path).expect("it is there");
    let at = offset + (number * 101) % bytes;
    let end = (at + 1 + number % 97).min(offset + bytes);
    match number % 3 {
        0 => image[at..end].iter_mut().for_each(|byte| *byte ^= 0x55),
        // Inverted, since some bytes of the piece are zeros already.
        1 => image[at..end].iter_mut().for_each(|byte| *byte = !*byte),
        _ => image.truncate(at),
    }
    fs::write(path, image).expect("there is room");
    format!("{kind}, damage {number} at byte {at}")
}

/// Returns the blocks that the runs of `lost` touch.
fn blocks_of(lost: &Value, sector_bytes: u64) -> Vec<u64> {
    let mut blocks = Vec::new();
    for run in lost.as_array().expect("a list") {
        let (lba, sectors) = (run["lba"].as_u64().expect("a number"), run["sectors"].as_u64().expect("a number"));
        let (begin, end) = (lba * sector_bytes, (lba + sectors) * sector_bytes);
        blocks.extend((begin / BLOCK as u64..end.div_ceil(BLOCK as u64)).filter(|&block| block < BLOCKS));
    }
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

fn made(folder: &Path, drive: &str) -> PathBuf {
    let output = imbrex(folder, &["drive", "create", "disk.imbrex", "--drive", drive]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut served = Served::begin(folder).expect("it is new");
    (0..BLOCKS).for_each(|block| served.write(block, 1));
    (0..BLOCKS).for_each(|block| served.write(block, 2));
    served.end();
    folder.join("disk.imbrex")
}

#[test]
fn damage_is_told_and_repaired_by_the_program() {
    for drive in ["imr-1t:geometry.tracks=2000", "cassuto-307g+set-associative:geometry.tracks=4000"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = made(folder.path(), drive);
        let kept = folder.path().join("kept");
        fs::copy(&path, &kept).expect("there is room");
        let dump = json(&imbrex(folder.path(), &["drive", "dump", "disk.imbrex", "--regions", "--json"]));
        let pieces = dump["regions"].as_array().unwrap_or_else(|| panic!("no regions: {dump}")).clone();
        let info = json(&imbrex(folder.path(), &["drive", "info", "disk.imbrex", "--json"]));
        let sector_bytes = info["sector_bytes"].as_u64().unwrap_or_else(|| panic!("no size of sectors: {info}"));
        let (mut refused, mut errors) = (0, 0);
        for number in 0..24 {
            fs::copy(&kept, &path).expect("there is room");
            let what = format!("{drive}: {}", damage(&path, &pieces, number));
            let damaged = fs::read(&path).expect("it is there");
            let checked = imbrex(folder.path(), &["drive", "check", "disk.imbrex", "--json"]);
            let is_image = checked.status.code() == Some(3);
            assert!(is_image || what.contains("header, damage"), "{what}: {checked:?}");
            assert!(fs::read(&path).expect("it is there") == damaged, "{what}: the check wrote");
            if is_image {
                let document = json(&checked);
                assert_eq!(document["is_whole"], false, "{what}");
                assert!(document["findings"].as_array().is_some_and(|findings| !findings.is_empty()), "{what}");
            }
            match Served::begin(folder.path()) {
                Ok(mut served) => {
                    let (wrong, failed) = read_all(&mut served, 2);
                    assert_eq!(wrong, [0; 0], "{what}");
                    errors += failed.len();
                    served.server.kill().expect("it runs");
                    served.server.wait().expect("it ends");
                }
                Err(said) => {
                    assert!(said.contains("disk.imbrex"), "{what}: {said}");
                    refused += 1;
                }
            }
            fs::write(&path, &damaged).expect("there is room");
            let repaired = imbrex(folder.path(), &["drive", "check", "disk.imbrex", "--repair", "--json"]);
            if repaired.status.code() == Some(1) {
                // Header or state is cut off completely: only a backup helps.
                assert!(number % 3 == 2, "{what}: {repaired:?}");
                continue;
            }
            let document = json(&repaired);
            let again = imbrex(folder.path(), &["drive", "check", "disk.imbrex", "--json"]);
            assert_eq!(again.status.code(), Some(0), "{what}: {again:?}");

            let lost = blocks_of(&document["lost"], sector_bytes);
            let mut served = Served::begin(folder.path()).unwrap_or_else(|said| panic!("{what}: {said}"));
            assert_eq!(read_all(&mut served, 2), (Vec::new(), lost), "{what}: {document}");
            (0..BLOCKS).for_each(|block| served.write(block, 3));
            assert_eq!(read_all(&mut served, 3), (Vec::new(), Vec::new()), "{what}");
            served.end();
        }
        assert!(refused > 0 && errors > 0, "{drive}: {refused} refused, {errors} blocks were errors");
    }
}
