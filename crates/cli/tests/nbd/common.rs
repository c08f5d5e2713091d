//! What the tests of served drives share: a server of the built program, small drives of every layer, a bare client.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use imbrex_layer::LayerInfo;

/// How long anything may take before a test gives up on it: no bound on speed, only an end to hanging.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Whether every program is installed; says aloud what is skipped without.
pub fn has(programs: &[&str], what: &str) -> bool {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").iter().flat_map(std::env::split_paths).chain([PathBuf::from("/usr/sbin")]).collect();
    let missing = programs.iter().find(|program| !folders.iter().any(|folder| folder.join(program).is_file()));
    if let Some(program) = missing {
        eprintln!("skipped: {what} (no {program}; scripts/install.sh test installs it)");
    }
    missing.is_none()
}

/// Runs a program to its end; it must succeed.
pub fn run(program: &str, words: &[&str]) -> String {
    let output = output(program, words);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program} {words:?}: {}\n{text}", output.status);
    text
}

/// Runs a program to its end.
pub fn output(program: &str, words: &[&str]) -> Output {
    Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// The built program.
pub fn imbrex(words: &[&str]) -> Output {
    output(env!("CARGO_BIN_EXE_imbrex"), words)
}

/// Waits until `happened` gives something.
pub fn until<T>(what: &str, mut happened: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = happened() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// `imbrex serve` at a Unix socket in `folder`.
pub struct Server {
    child: Child,
    pub socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts `imbrex serve` with `words`, and waits until it listens.
    pub fn start(folder: &Path, words: &[&str]) -> Server {
        let (socket, log) = (folder.join("socket"), folder.join("log"));
        // What a killed server left behind is no sign of this one.
        let _ = fs::remove_file(&socket);
        let child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .arg("serve")
            .args(words)
            .args(["--nbd", &format!("unix:{}", socket.display())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("the folder is ours"))
            .spawn()
            .expect("the program starts");
        let mut server = Server { child, socket, log };
        until("the server", || {
            let ended = server.child.try_wait().expect("a child can be asked");
            assert!(ended.is_none(), "{words:?}: {}", server.log());
            UnixStream::connect(&server.socket).ok()
        });
        server
    }

    /// What it has written to standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it was made at the start")
    }

    /// As tools want it.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// Ctrl-C, and what it said until its end.
    pub fn stop(mut self) -> String {
        run("kill", &["-INT", &self.child.id().to_string()]);
        let status = until("the server's end", || self.child.try_wait().expect("a child can be asked"));
        assert!(status.success(), "{status}: {}", self.log());
        self.log()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small drive for `layer`, as a profile file in `folder`: some 50 MB, so that caches fill and are cleaned.
pub fn small_drive(folder: &Path, layer: &LayerInfo) -> String {
    let recording = layer.recordings[0];
    let (geometry, section) = match recording {
        "interlaced" => (
            "layout = 'bottom-then-top'\nsurfaces = 1\nzones = [{ tracks = 384, track_sectors = 256 }]\n\
             interlaced = { group_tracks = 24 }",
            "kind = 'interlaced'".to_string(),
        ),
        "block-interference" => (ROUND, "kind = 'block-interference'\ninterference_sectors = 256".into()),
        "shingled" => (ROUND, "kind = 'shingled'\nhead_tracks = 2".into()),
        other => (ROUND, format!("kind = '{other}'")),
    };
    let text = format!(
        "name = 'small'\nsummary = 'a small drive'\ndefault_layer = 'conventional'\n[geometry]\nrotation_ns = 8_000_000\n\
         {geometry}\n[mechanics]\nrotation = 'exact'\nseek = {{ model = 'linear', min_ns = 100_000, max_ns = 1_000_000 }}\n\
         [recording]\n{section}\n"
    );
    let path = folder.join(format!("{}.toml", layer.name));
    fs::write(&path, text).expect("the folder is ours");
    let parameters = parameters(layer);
    let colon = if parameters.is_empty() { "" } else { ":" };
    format!("{}+{}{colon}{parameters}", path.display(), layer.name)
}

const ROUND: &str = "layout = 'cylinder'\nsurfaces = 2\nzones = [{ tracks = 384, track_sectors = 256 }]";

/// Parameters that suit a drive of 50 MB; a layer that is not named here takes those of its toys.
fn parameters(layer: &LayerInfo) -> &str {
    match layer.name {
        "block-swap" => "block_size=16k,interval=200,background_every=4",
        "flip-cache" | "track-cache" => "cache_tracks=8,interval=200,background_every=4",
        "track-flip" | "track-map" => "interval=200,background_every=4",
        "top-buffer" | "write-buffer" => "buffer_share=20%",
        "fully-associative" => "band_size=512k,zone_size=8MiB,log_bands=3",
        "log-structured" => "zone_size=1MiB,reserve=10%,clean_step=256k",
        "media-cache" => {
            "cache_size=6MiB,map_entries=300,band_tracks=4,out_of_band=1,half_track_payload=48k,packet_writes=16,\
             large_write=64k,large_payload=96k,map_merge_every=20,map_merge_tracks=1,stream_size=256k"
        }
        "region-rmw" => "region_size=1MiB",
        "set-associative" => "region_size=1MiB,cache_share=10%",
        "s-blocks" => "sections=2,sblock_size=256k,sblock_share=10%,cache_share=10%",
        _ => layer.toys[0],
    }
}

/// Makes the image of a small drive; its path.
pub fn image(folder: &Path, drive: &str) -> String {
    let path = folder.join("image").display().to_string();
    let made = imbrex(&["drive", "create", &path, "--drive", drive]);
    assert!(made.status.success(), "{drive}: {}", String::from_utf8_lossy(&made.stderr));
    path
}

/// Commands of the protocol.
pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const WRITE_ZEROES: u16 = 6;
/// Option: go.
pub const GO: u32 = 7;
/// What a server begins an answer to an option with.
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;

/// A bare client, written from the protocol alone: simple replies, any number of requests on their way.
pub struct Client {
    pub stream: UnixStream,
    pub capacity_bytes: u64,
}

impl Client {
    /// Connects and goes.
    pub fn connect(socket: &Path) -> Client {
        let mut stream = Client::greeted(socket);
        send_option(&mut stream, GO, &[0; 6]);
        let mut capacity_bytes = 0;
        loop {
            let (kind, data) = option_reply(&mut stream).expect("an answer to GO");
            match kind {
                1 => return Client { stream, capacity_bytes },
                3 if data[..2] == [0, 0] => capacity_bytes = u64::from_be_bytes(data[2..10].try_into().unwrap()),
                3 => {}
                other => panic!("GO was answered with {other:#x}"),
            }
        }
    }

    /// Connects, and answers the greeting.
    pub fn greeted(socket: &Path) -> UnixStream {
        let mut stream = UnixStream::connect(socket).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream
    }

    /// Sends a request; an error means that the server is gone.
    pub fn send(
        &mut self,
        command: u16,
        flags: u16,
        cookie: u64,
        offset: u64,
        length: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        let mut message = request(command, flags, cookie, offset, length).to_vec();
        message.extend_from_slice(payload);
        self.stream.write_all(&message)
    }

    /// Cookie and error of the next reply; the payload of a read is left to be read.
    pub fn reply(&mut self) -> std::io::Result<(u64, u32)> {
        let mut bytes = [0; 16];
        self.stream.read_exact(&mut bytes)?;
        assert_eq!(bytes[..4], 0x6744_6698u32.to_be_bytes(), "the magic of a simple reply");
        Ok((u64::from_be_bytes(bytes[8..].try_into().unwrap()), u32::from_be_bytes(bytes[4..8].try_into().unwrap())))
    }

    /// One request and its error.
    pub fn ask(&mut self, command: u16, flags: u16, offset: u64, length: u32, payload: &[u8]) -> u32 {
        self.send(command, flags, 77, offset, length, payload).expect("the server takes requests");
        let (cookie, error) = self.reply().expect("the server answers");
        assert_eq!(cookie, 77);
        error
    }

    /// Reads.
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.ask(READ, 0, offset, length, &[]) {
            0 => {
                let mut bytes = vec![0; length as usize];
                self.stream.read_exact(&mut bytes).expect("the data of a read");
                Ok(bytes)
            }
            error => Err(error),
        }
    }

    /// Writes.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> u32 {
        self.ask(WRITE, 0, offset, bytes.len() as u32, bytes)
    }
}

/// The bytes of a request.
pub fn request(command: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> [u8; 28] {
    let mut bytes = [0; 28];
    bytes[..4].copy_from_slice(&0x2560_9513u32.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&command.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    bytes[24..].copy_from_slice(&length.to_be_bytes());
    bytes
}

/// Sends an option.
pub fn send_option(stream: &mut impl Write, number: u32, data: &[u8]) {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    stream.write_all(&bytes).expect("the server takes options");
}

/// Kind and data of the next answer to an option; nothing when the server has closed.
pub fn option_reply(stream: &mut impl Read) -> Option<(u32, Vec<u8>)> {
    let mut head = [0; 20];
    stream.read_exact(&mut head).ok()?;
    assert_eq!(head[..8], OPTION_REPLY_MAGIC.to_be_bytes());
    let mut data = vec![0; u32::from_be_bytes(head[16..].try_into().unwrap()) as usize];
    stream.read_exact(&mut data).ok()?;
    Some((u32::from_be_bytes(head[12..16].try_into().unwrap()), data))
}

/// Whether the server has closed the connection, as seen by reading from it.
pub fn is_closed(stream: &mut impl Read) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}
