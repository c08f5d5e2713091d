//! Goal: the figures of a served drive are right and visible. Method: a drive is served in memory, a known number of
//! requests is sent over NBD, then its page is opened in headless Chromium and its texts are read over HTTP and from
//! the Unix socket. The bands that a few writes make dirty, and the zones that they open, follow from the addresses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A served drive, ended when the value is dropped.
struct Served {
    child: Child,
    window: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may have ended already, which the test has then found out.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small shingled drive with bands of 36 MiB and less, and a host-managed drive with zones of 4 MiB, 64 of them
/// conventional.
const BANDS: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/guest/inside/small.toml:host.write_cache_bytes=0");
const ZONES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/guest/inside/zoned.toml");
const CONVENTIONAL_ZONES: u64 = 64;
const ZONE_BYTES: u64 = 4 << 20;

fn serve(folder: &Path, drive: &str) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["serve", "--drive", drive, "--time", "none", "--window", "127.0.0.1:0"])
        .arg("--nbd")
        .arg(format!("unix:{}", folder.join("nbd").display()))
        .arg("--stats")
        .arg(folder.join("stats"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    // The line `serving …` is the last that the server prints at its start.
    let said: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.starts_with("serving ")).collect();
    let found = said.iter().find_map(|line| line.strip_prefix("the drive at work: "));
    let window = found.expect("the address is printed").trim_end_matches('/').to_string();
    Served { child, window }
}

/// Writes one page at each offset, by the oldest handshake of NBD.
fn write_pages(socket: &Path, offsets: impl IntoIterator<Item = u64>) {
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    stream.read_exact(&mut [0; 18]).expect("the greeting");
    stream.write_all(&3u32.to_be_bytes()).expect("flags");
    stream.write_all(&[&b"IHAVEOPT"[..], &1u32.to_be_bytes(), &0u32.to_be_bytes()].concat()).expect("the option");
    stream.read_exact(&mut [0; 10]).expect("size and flags");
    for (number, offset) in (0u64..).zip(offsets) {
        let header = [
            &0x2560_9513u32.to_be_bytes()[..],
            &[0, 0, 0, 1],
            &number.to_be_bytes(),
            &offset.to_be_bytes(),
            &4096u32.to_be_bytes(),
        ];
        stream.write_all(&header.concat()).expect("a request");
        stream.write_all(&[7; 4096]).expect("its payload");
        let mut reply = [0; 16];
        stream.read_exact(&mut reply).expect("a reply");
        assert_eq!(&reply[4..8], [0; 4], "request {number} was answered with an error");
    }
}

fn get(address: &str, path: &str) -> String {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).expect("the page's server listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").expect("asked");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

#[test]
fn a_served_drive_can_be_watched() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = serve(folder.path(), "cmr-7200:host.write_cache_bytes=0");
    write_pages(&folder.path().join("nbd"), (0..37).map(|number| number * 8192));

    let metrics = get(&served.window, "/metrics");
    assert!(metrics.contains("\nimbrex_requests_total{operation=\"write\"} 37\n"), "{metrics}");
    assert!(metrics.contains("\nimbrex_medium_written_bytes_total{cause=\"host\"} 151552\n"), "{metrics}");
    assert!(get(&served.window, "/nothing").starts_with("HTTP/1.1 404"));
    let mut text = String::new();
    let mut socket = UnixStream::connect(folder.path().join("stats")).expect("the socket is there");
    socket.read_to_string(&mut text).expect("it says something");
    assert!(text.contains("write: 37 requests, 0 errors, 151552 bytes"), "{text}");

    let Some(page) = look(&served.window) else { return };
    assert!(
        page.contains("cmr-7200:host.write_cache_bytes=0: a drive at work"),
        "the page does not name the drive:\n{page}"
    );
    assert!(page.contains("<td>write</td><td>37</td>"), "the table lacks the writes:\n{page}");
    // All 37 writes were answered within a minute, and a conventional drive cleans nothing.
    assert!(page.contains("In the last minute of simulated time, 37 requests took "), "{page}");
    assert!(page.contains("Since the start, no request has waited for cleaning."), "{page}");
    assert!(page.contains("this drive has none"), "a conventional drive has no bands:\n{page}");
}

/// Returns the number of bands in `state` that the page shows.
fn counted(page: &str, state: &str) -> u64 {
    let Some(at) = page.find(&format!("<span data-state=\"{state}\" data-count=\"")) else { return 0 };
    let digits = page[at..].split("data-count=\"").nth(1).and_then(|rest| rest.split('"').next());
    digits.and_then(|digits| digits.parse().ok()).expect("a count")
}

/// Returns the number of drawn items that the script records in the page.
fn drawn(page: &str, what: &str) -> u64 {
    let value = page.split(&format!("data-{what}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("the canvas lacks {what}:\n{page}"))
}

fn cells(page: &str, state: &str) -> usize {
    page.matches(&format!("<g class=\"cell\" data-state=\"{state}\">")).count()
}

#[test]
fn bands_are_drawn_in_their_states() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = serve(folder.path(), BANDS);
    // Offsets a gibibyte apart lie in different bands, which have at most 36 MiB.
    write_pages(&folder.path().join("nbd"), (0..7).map(|number| number << 30));
    let Some(page) = look(&served.window) else { return };
    // Without a pace the drive is idle between requests, and may have begun to clean: then some of the bands are being
    // cleaned.
    let (clean, dirty, cleaning) = (counted(&page, "clean"), counted(&page, "dirty"), counted(&page, "cleaning"));
    assert!(dirty + cleaning > 0 && dirty + cleaning <= 7, "{dirty} dirty, {cleaning} cleaning:\n{page}");
    assert!(clean > 1000, "{clean} clean bands of 42 GiB in at most 36 MiB each");
    assert!(cells(&page, "dirty") + cells(&page, "cleaning") > 0 && cells(&page, "clean") > 100, "{page}");
    // Bands cover nearly all of 8 surfaces of 240 bins.
    assert!(drawn(&page, "band-bins") > 8 * 200, "{page}");
    assert!(drawn(&page, "cache-bins") > 0, "{page}");
    drawn(&page, "head-bin");
}

#[test]
fn zones_are_drawn_with_their_pointers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = serve(folder.path(), ZONES);
    // Two zones with a pointer: one written to its half, which opens it, and one written to its end.
    let start = |zone| (CONVENTIONAL_ZONES + zone) * ZONE_BYTES;
    let half = (0..ZONE_BYTES / 8192).map(|page| start(1) + page * 4096);
    let whole = (0..ZONE_BYTES / 4096).map(|page| start(3) + page * 4096);
    write_pages(&folder.path().join("nbd"), half.chain(whole));
    let Some(page) = look(&served.window) else { return };
    assert_eq!(["conventional", "open", "full"].map(|state| counted(&page, state)), [64, 1, 1], "{page}");
    assert!(page.contains("zone 65: 1 open, 50.0 %"), "the pointer is half way:\n{page}");
    assert_eq!((cells(&page, "conventional"), cells(&page, "open"), cells(&page, "full")), (64, 1, 1));
    assert!(drawn(&page, "band-bins") > 0, "{page}");
}

/// Opens the page in a browser and returns the document after its script has run; `None` without a browser.
fn look(address: &str) -> Option<String> {
    let browser = imbrex_testkit::browser::chromium()?;
    let profile = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("{address}/")])
        .output()
        .expect("the browser starts");
    let (page, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!log.contains("CONSOLE"), "the console is not silent:\n{log}");
    Some(page.into_owned())
}
