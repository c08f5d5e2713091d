//! Goal: the figures of a served drive are right and can be seen. Method: a drive is served in memory, a few requests of
//! known number go to it over NBD, then its page is opened in headless Chromium and its texts are read over HTTP and
//! from the Unix socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A served drive, ended when the test is.
struct Served {
    child: Child,
    window: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has then found out.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(folder: &Path) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
        .args(["serve", "--drive", "cmr-7200", "--time", "none", "--window", "127.0.0.1:0"])
        .arg("--nbd")
        .arg(format!("unix:{}", folder.join("nbd").display()))
        .arg("--stats")
        .arg(folder.join("stats"))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let found = lines.map_while(Result::ok).find_map(|line| {
        line.strip_prefix("the drive at work: ").map(|address| address.trim_end_matches('/').to_string())
    });
    Served { child, window: found.expect("the address is printed") }
}

/// A dozen lines of NBD: the oldest handshake, then `count` writes of one page.
fn write_pages(socket: &Path, count: u64) {
    let mut stream = UnixStream::connect(socket).expect("the server listens");
    stream.read_exact(&mut [0; 18]).expect("the greeting");
    stream.write_all(&3u32.to_be_bytes()).expect("flags");
    stream.write_all(&[&b"IHAVEOPT"[..], &1u32.to_be_bytes(), &0u32.to_be_bytes()].concat()).expect("the option");
    stream.read_exact(&mut [0; 10]).expect("size and flags");
    for number in 0..count {
        let header = [
            &0x2560_9513u32.to_be_bytes()[..],
            &[0, 0, 0, 1],
            &number.to_be_bytes(),
            &(number * 8192).to_be_bytes(),
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
    let served = serve(folder.path());
    write_pages(&folder.path().join("nbd"), 37);

    let metrics = get(&served.window, "/metrics");
    assert!(metrics.contains("\nimbrex_requests_total{operation=\"write\"} 37\n"), "{metrics}");
    assert!(metrics.contains("\nimbrex_medium_written_bytes_total{cause=\"host\"} 151552\n"), "{metrics}");
    assert!(get(&served.window, "/nothing").starts_with("HTTP/1.1 404"));
    let mut text = String::new();
    let mut socket = UnixStream::connect(folder.path().join("stats")).expect("the socket is there");
    socket.read_to_string(&mut text).expect("it says something");
    assert!(text.contains("write: 37 requests, 0 errors, 151552 bytes"), "{text}");

    look(&served.window);
}

/// Opens the page in a browser.
fn look(address: &str) {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = names.into_iter().find(|name| Command::new(name).arg("--version").output().is_ok()) else {
        eprintln!("skipped: chromium is not installed (apt-get install chromium)");
        return;
    };
    let profile = tempfile::tempdir().expect("a temporary folder");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &format!("{address}/")])
        .output()
        .expect("the browser starts");
    let (page, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(page.contains("cmr-7200: a drive at work"), "the page does not name the drive:\n{page}");
    assert!(page.contains("<td>write</td><td>37</td>"), "the table lacks the writes:\n{page}");
    assert!(!log.contains("CONSOLE"), "the console is not silent:\n{log}");
}
