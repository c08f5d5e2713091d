//! A recorded served drive: its log, the answers to its client, and the positions of the answers in the log.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use imbrex_powercut::{Disk, Log, Options, Recorder, Recording};
use imbrex_testkit::patience::until;
use imbrex_testkit::writer::{Ended, Moment};
use imbrex_testkit::{Client, Contents, History, Program, Random, Record, Writer, ZoneWriter};

use super::carriers::Carrier;

/// Name of the image in its folder.
pub(crate) const IMAGE: &str = "image";
/// Number of zones of a zoned drive that are written, and number of zones that are open at a time.
const ZONES: usize = 12;
const ZONES_OPEN: usize = 4;

/// Returns the built program.
pub(crate) fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_imbrex"))
}

/// The recording of a served drive, and the client's knowledge of it.
pub(crate) struct Story {
    pub carrier: Carrier,
    pub seed: u64,
    pub log: Log,
    pub history: History,
    pub contents: Contents,
    /// Bytes sent to the client, with the position in the log.
    sends: Vec<(u64, usize)>,
    /// The last answer to the client, if it was an error.
    pub ended: Option<String>,
    /// Contents that every sector may have before the first request, and the first position of the log at which cuts
    /// are made.
    base: Record,
    pub from: usize,
    /// The client, which can continue the work.
    host: Option<Host>,
}

/// `imbrex serve --sync barrier --time none` under the recorder.
struct Served {
    recorder: Recorder,
    socket: std::path::PathBuf,
    words: std::path::PathBuf,
}

impl Served {
    /// Starts a server of the image in the folder `recorded` below `parent`.
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

    /// Waits for the end of the server, after a signal if one is given. Returns the recording and standard error.
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

    /// Prepares for the next request after one that was refused.
    fn forgive(&mut self) {
        if let Host::Zoned(zoned) = self {
            zoned.forget_pointers();
        }
    }

    fn writer(&mut self) -> &mut Writer {
        match self {
            Host::Free(writer) => writer,
            Host::Zoned(zoned) => &mut zoned.writer,
        }
    }

    fn after_kill(&mut self, client: &mut Client) {
        match self {
            Host::Free(writer) => writer.after_kill(client),
            Host::Zoned(zoned) => zoned.after_kill(client),
        }
    }

    /// Sends `requests` requests. With `forgives` it continues after errors, and trusts later answers.
    fn work(&mut self, client: &mut Client, requests: usize, forgives: bool) -> Option<Ended> {
        for _ in 0..requests {
            match self.step(client) {
                Ok(()) => {}
                Err(Ended::Refused { .. }) if forgives => self.forgive(),
                Err(error) => return Some(error),
            }
        }
        None
    }
}

/// Returns whether recordings of this seed give the same log each time, except for the image's identity: one request at
/// a time.
pub(crate) fn repeats_exactly(seed: u64) -> bool {
    seed.is_multiple_of(2)
}

/// Records a new drive of `carrier` under some `requests` requests, with one or several in flight. Every third
/// recording ends with a clean stop.
pub(crate) fn record(carrier: Carrier, seed: u64, requests: usize) -> Story {
    let story = record_failing(carrier, seed, requests, None);
    let story = story.unwrap_or_else(|said| panic!("{}: {said}", carrier.name));
    assert_eq!(story.ended, None, "{}", carrier.name);
    story
}

/// Records like [`record`], with one sync that fails; the client continues after errors.
///
/// # Errors
/// Standard error of a server that ended before it listened.
pub(crate) fn record_failing(
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
    let writer = Writer::new(contents, carrier.work(capacity_bytes, if repeats_exactly(seed) { 1 } else { 4 }));
    let host = if carrier.is_zoned() {
        let zones = program().zones(&image).into_iter().filter(|zone| zone.is_sequential).take(ZONES).collect();
        Host::Zoned(ZoneWriter::new(writer, zones, ZONES_OPEN))
    } else {
        Host::Free(writer)
    };
    let served = Served::start(parent.path(), Options { failing_sync, answers_syncs: true })?;
    let client = Client::connect(&served.socket);
    Ok(Telling { carrier, seed, host, base: Record::new() }.tell(served, client, requests, failing_sync.is_some()))
}

/// A client before its work.
struct Telling {
    carrier: Carrier,
    seed: u64,
    host: Host,
    base: Record,
}

impl Telling {
    /// Does the work and ends the server.
    fn tell(mut self, served: Served, mut client: Client, requests: usize, forgives: bool) -> Story {
        let mut ended = self.host.work(&mut client, requests, forgives);
        let is_good_end = Random::new(self.seed ^ 0xe4d).one_in(3) && ended.is_none();
        let writer = self.host.writer();
        if is_good_end {
            ended = writer.drain(&mut client).and_then(|()| writer.flush(&mut client)).err();
        }
        let (recording, said) = served.end(Some(if is_good_end { libc::SIGINT } else { libc::SIGKILL }));
        self.host.after_kill(&mut client);
        assert_eq!(recording.refused, 0, "{}: serving needs no ring", self.carrier.name);
        let Telling { carrier, seed, mut host, base } = self;
        let (history, contents) = (std::mem::take(&mut host.writer().history), host.writer().contents);
        let sends = recording.log.sends();
        let mut log = recording.log;
        if repeats_exactly(seed) && !is_good_end {
            // The progress of a killed server after its last answer is random.
            log.entries.truncate(sends.last().map_or(0, |&(_, position)| position + 1));
        }
        let ended = ended.map(|ended| format!("{ended}; {said}"));
        Story { carrier, seed, history, contents, sends, log, ended, base, from: 0, host: Some(host) }
    }
}

/// Records the opening of the image that `disk` holds, and nothing else.
pub(crate) fn record_opening(disk: &Disk) -> Result<Log, String> {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("recorded");
    std::fs::create_dir(&folder).and_then(|()| disk.save(&folder)).expect("there is room");
    let served = Served::start(parent.path(), Options { answers_syncs: true, ..Options::default() })?;
    Ok(served.end(Some(libc::SIGKILL)).0.log)
}

/// Serves the image on `disk` by the built program, and reads it by `look`.
pub(crate) fn with_served<T>(disk: &Disk, look: impl FnOnce(&mut Client) -> T) -> Result<T, String> {
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

/// Contents that every sector may hold, at a position of a story's log.
pub(crate) struct Known<'a> {
    story: &'a Story,
    pub record: Record,
    next: usize,
}

impl Story {
    /// Returns the story with another log: one in which a fault was planted.
    pub(crate) fn with_log(&self, log: Log) -> Story {
        let sends = log.sends();
        let (history, ended, base) = (self.history.clone(), self.ended.clone(), self.base.clone());
        Story { log, sends, history, ended, base, host: None, ..*self }
    }

    /// Opens the image that a cut left, reads all of it, and continues the work. Returns `None` if the image does not
    /// hold contents that `record` allows, or if the client was used for that before.
    pub(crate) fn go_on(&mut self, disk: &Disk, record: &Record, requests: usize) -> Option<Story> {
        let mut host = self.host.take()?;
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("recorded");
        std::fs::create_dir(&folder).and_then(|()| disk.save(&folder)).expect("there is room");
        let served = Served::start(parent.path(), Options { answers_syncs: true, ..Options::default() }).ok()?;
        let mut client = Client::connect(&served.socket);
        let writer = host.writer();
        writer.record = record.clone();
        let verdict = writer.look(&mut client, Moment::AfterCut).ok()?;
        if verdict.lost > 0 {
            return None;
        }
        let base = host.writer().record.clone();
        let telling = Telling { carrier: self.carrier, seed: self.seed, host, base };
        let mut story = telling.tell(served, client, requests, false);
        // The repairs of the opening were durable before the first answer.
        story.from = story.sends.first()?.1;
        Some(story)
    }

    /// Returns the contents of every sector before the first request.
    pub(crate) fn known(&self) -> Known<'_> {
        Known { story: self, record: self.base.clone(), next: 0 }
    }
}

impl Known<'_> {
    /// Advances to a position of the log, which is not before the last one.
    pub(crate) fn advance(&mut self, position: usize) {
        let before = self.story.sends.partition_point(|&(_, at)| at < position);
        let sent_bytes = before.checked_sub(1).map_or(0, |last| self.story.sends[last].0);
        self.next = self.story.history.advance(&mut self.record, self.next, sent_bytes);
    }
}
