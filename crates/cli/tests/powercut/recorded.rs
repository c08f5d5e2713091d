//! A served drive, recorded: its log, what its client was told, and how the two fit together.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use imbrex_powercut::{Disk, Log, Options, Recorder, Recording};
use imbrex_testkit::patience::until;
use imbrex_testkit::writer::Ended;
use imbrex_testkit::{Client, Contents, History, Program, Random, Record, Writer, ZoneWriter};

use crate::carriers::Carrier;

/// Name of the image in its folder.
pub const IMAGE: &str = "image";
/// Zones that are written of a zoned drive, and so many of them at a time.
const ZONES: usize = 12;
const ZONES_OPEN: usize = 4;

/// The built program.
pub fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_imbrex"))
}

/// What a served drive did, and what its client knows of it.
pub struct Story {
    pub carrier: Carrier,
    pub seed: u64,
    pub log: Log,
    pub history: History,
    pub contents: Contents,
    /// Bytes sent to the client, with the position in the log.
    sends: Vec<(u64, usize)>,
    /// What the client was told at last, if it was an error.
    pub ended: Option<String>,
}

/// `imbrex serve --sync barrier --time none` under the recorder.
struct Served {
    recorder: Recorder,
    socket: std::path::PathBuf,
    words: std::path::PathBuf,
}

impl Served {
    /// Serves the image in the folder `recorded` below `parent`.
    fn start(parent: &Path, options: Options) -> Result<Served, String> {
        let (folder, socket, words) = (parent.join("recorded"), parent.join("socket"), parent.join("words"));
        let _ = std::fs::remove_file(&socket);
        let mut command = Command::new(program().path());
        command.arg("serve").arg(folder.join(IMAGE)).args(["--sync", "barrier", "--time", "none", "--nbd"]);
        command.arg(format!("unix:{}", socket.display())).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&words).expect("the folder is ours"));
        let recorder = Recorder::start(command, &folder, options).expect("it was recorded before");
        let is_up = until("the server", || match recorder.has_ended() {
            true => Some(false),
            false => UnixStream::connect(&socket).ok().map(|_| true),
        });
        let served = Served { recorder, socket, words };
        if is_up { Ok(served) } else { Err(served.end(None).1) }
    }

    /// Ends it, by a signal or by itself; what it did, and what it said.
    fn end(self, signal: Option<i32>) -> (Recording, String) {
        signal.into_iter().for_each(|signal| self.recorder.signal(signal));
        let recording = self.recorder.finish().unwrap_or_else(|error| panic!("{error}"));
        (recording, std::fs::read_to_string(self.words).expect("it was made at the start"))
    }
}

enum Host {
    Free(Writer),
    Zoned(ZoneWriter),
}

impl Host {
    fn step(&mut self, client: &mut Client) -> Result<(), Ended> {
        match self {
            Host::Free(writer) => writer.step(client),
            Host::Zoned(zoned) => zoned.step(client),
        }
    }

    /// Goes on after a request that was refused.
    fn forgive(&mut self) {
        if let Host::Zoned(zoned) = self {
            zoned.forget_pointers();
        }
    }

    fn writer(self) -> Writer {
        match self {
            Host::Free(writer) => writer,
            Host::Zoned(zoned) => zoned.writer,
        }
    }
}

/// Records a new drive of `carrier` at some `requests` requests. Even seeds keep one request on its way, so that the same
/// seed makes the same log but for the image's identity; odd ones several. Every third recording ends in good order.
pub fn record(carrier: Carrier, seed: u64, requests: usize) -> Story {
    let story = record_failing(carrier, seed, requests, None);
    let story = story.unwrap_or_else(|said| panic!("{}: {said}", carrier.name));
    assert_eq!(story.ended, None, "{}", carrier.name);
    story
}

/// Like [`record`], with one sync that fails: the client asks again after errors. A server that ends before it listens
/// is an error, with what it said.
pub fn record_failing(
    carrier: Carrier,
    seed: u64,
    requests: usize,
    failing_sync: Option<u64>,
) -> Result<Story, String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    std::fs::create_dir(&folder).expect("a folder in it");
    let image = folder.join(IMAGE);
    let capacity_bytes = program().create(&image, &carrier.profile(parent.path()));
    let contents = Contents { sector_bytes: carrier.sector_bytes, seed, stamped_in: 1, is_full: true };
    let writer = Writer::new(contents, carrier.work(capacity_bytes, if seed.is_multiple_of(2) { 1 } else { 4 }));
    let mut host = if carrier.is_zoned() {
        let zones = program().zones(&image).into_iter().filter(|zone| zone.is_sequential).take(ZONES).collect();
        Host::Zoned(ZoneWriter::new(writer, zones, ZONES_OPEN))
    } else {
        Host::Free(writer)
    };
    let options = Options { failing_sync, answers_syncs: true };
    let served = Served::start(parent.path(), options)?;
    let mut client = Client::connect(&served.socket);
    let mut ended = None;
    for _ in 0..requests {
        match host.step(&mut client) {
            Ok(()) => {}
            // A client that is told of one error asks again, and believes what it is told then.
            Err(Ended::Refused { .. }) if failing_sync.is_some() => host.forgive(),
            Err(error) => {
                ended = Some(error);
                break;
            }
        }
    }
    let mut writer = host.writer();
    let is_good_end = Random::new(seed ^ 0xe4d).one_in(3) && ended.is_none();
    if is_good_end {
        ended = writer.drain(&mut client).and_then(|()| writer.flush(&mut client)).err();
    }
    let signal = if is_good_end { libc::SIGINT } else { libc::SIGKILL };
    let (recording, said) = served.end(Some(signal));
    writer.after_kill(&mut client);
    assert_eq!(recording.refused, 0, "{}: serving needs no ring", carrier.name);
    let sends = recording.log.sends();
    let told = |ended: Ended| format!("{ended}; {said}");
    Ok(Story { carrier, seed, history: writer.history, contents, sends, log: recording.log, ended: ended.map(told) })
}

/// Records the opening of the image that `disk` holds, and nothing else.
pub fn record_opening(disk: &Disk) -> Result<Log, String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    std::fs::create_dir(&folder).and_then(|()| disk.save(&folder)).expect("there is room");
    let served = Served::start(parent.path(), Options { answers_syncs: true, ..Options::default() })?;
    Ok(served.end(Some(libc::SIGKILL)).0.log)
}

/// Reads by the built program what `disk` holds.
pub fn with_served<T>(disk: &Disk, look: impl FnOnce(&mut Client) -> T) -> Result<T, String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    disk.save(parent.path()).expect("there is room");
    let image = parent.path().join(IMAGE);
    let image = image.to_str().expect("a plain name");
    let server = imbrex_testkit::Server::try_start(&program(), parent.path(), &[image, "--time", "none"])?;
    let mut client = Client::connect(&server.socket);
    let looked = look(&mut client);
    drop(client);
    server.stop().map(|_| looked)
}

/// What every sector may hold, as a story goes on.
pub struct Known<'a> {
    story: &'a Story,
    pub record: Record,
    next: usize,
}

impl Story {
    /// The same drive and client with another log: one in which a fault was planted.
    pub fn with_log(&self, log: Log) -> Story {
        let sends = log.sends();
        Story { log, sends, history: self.history.clone(), ended: self.ended.clone(), ..*self }
    }

    /// Before anything was written.
    pub fn known(&self) -> Known<'_> {
        Known { story: self, record: Record::new(), next: 0 }
    }
}

impl Known<'_> {
    /// Goes on to a position of the log, which is not before the last one.
    pub fn advance(&mut self, position: usize) {
        let before = self.story.sends.partition_point(|&(_, at)| at < position);
        let sent_bytes = before.checked_sub(1).map_or(0, |last| self.story.sends[last].0);
        self.next = self.story.history.advance(&mut self.record, self.next, sent_bytes);
    }
}
