//! Goal: the live page costs a bounded number of connections, bytes and threads, and answers under its own names alone.
//! Method: a page with small limits in this process, and bare sockets; threads are counted in /proc.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use imbrex_device::pacing::Pace;
use imbrex_serve::observe::Observed;
use imbrex_serve::verify::small_drive;
use imbrex_serve::{DriveServer, PageLimits, http};

/// No bound on speed, only an end to hanging.
const PATIENCE: Duration = Duration::from_secs(60);

struct Page {
    address: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    front: Arc<DriveServer>,
    pacer: Option<JoinHandle<()>>,
}

impl Page {
    fn new(limits: PageLimits) -> Page {
        let (front, pacer) = DriveServer::start(small_drive("conventional"), Pace::None, false);
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let observed = Observed { front: front.clone(), visitors: None };
        let stops: http::Stop = Arc::new(move || told.load(Ordering::SeqCst));
        let names = ["Disk.example".to_string()];
        let (address, thread) =
            http::start("127.0.0.1:0", &names, limits, Arc::new(observed), stops).expect("a port is free");
        Page { address, stop, thread: Some(thread), front, pacer: Some(pacer) }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket has timeouts");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket has timeouts");
        stream
    }

    /// The answer to `head`, to its end.
    fn ask(&self, head: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(head.as_bytes()).expect("it takes a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers and closes");
        answer
    }

    fn get(&self, host: &str) -> String {
        self.ask(&format!("GET /stats HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the page does not panic");
        }
        if let Some(pacer) = self.pacer.take() {
            self.front.stop(pacer).expect("memory does not fail");
        }
    }
}

fn threads() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = text.lines().find_map(|line| line.strip_prefix("Threads:")).expect("it counts threads");
    line.trim().parse().expect("a number")
}

#[test]
fn only_its_own_names_are_answered_to() {
    let page = Page::new(PageLimits::default());
    for host in
        ["localhost", "LOCALHOST:80", "127.0.0.1", "[::1]:8080", &page.address, "disk.example", "disk.example.:1"]
    {
        let answer = page.get(host);
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("simulated time"), "{host}: {answer}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.2", ""] {
        let answer = page.get(host);
        assert!(answer.starts_with("HTTP/1.1 421") && answer.contains("--http-host"), "{host}: {answer}");
        assert!(!answer.contains("simulated time"), "{host}: {answer}");
    }
    for (head, status) in [
        ("GET http://evil.example/stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 421),
        ("GET /stats HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        ("GET /stats HTTP/1.0\r\n\r\n", 400),
        ("GET /stats HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        ("POST /stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 405),
        ("GET /stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413),
        ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ] {
        let answer = page.ask(head);
        // HTTP/1.0 is answered in kind.
        assert!(answer[8..].starts_with(&format!(" {status} ")), "{head}: {answer}");
    }
}

#[test]
fn a_head_without_an_end_is_cut_short() {
    let page = Page::new(PageLimits { header_bytes: 8 << 10, ..PageLimits::default() });
    let mut stream = page.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ").expect("it takes a beginning");
    let (piece, mut sent) = ([b'a'; 64 << 10], 0);
    while sent < 300 << 20 && stream.write_all(&piece).is_ok() {
        sent += piece.len();
    }
    // The buffers of the sockets take bytes that the server never reads.
    assert!(sent < 32 << 20, "{sent} bytes of a head were taken");
    assert!(page.get("localhost").starts_with("HTTP/1.1 200"));
}

/// Runs itself in a process of its own, because the threads of other tests count as well.
#[test]
fn half_a_request_has_no_thread_and_keeps_nobody_out() {
    const NAME: &str = "page::half_a_request_has_no_thread_and_keeps_nobody_out";
    const IS_CHILD: &str = "IMBREX_PAGE_CHILD";
    if std::env::var_os(IS_CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().expect("a program has a path"));
        child.args(["--exact", NAME, "--nocapture"]).env(IS_CHILD, "1");
        assert!(child.status().expect("it runs again").success(), "see above");
        return;
    }
    let page = Page::new(PageLimits { connections: 8, connections_per_peer: 6, ..PageLimits::default() });
    let before = threads();
    let mut crowd = Vec::new();
    for _ in 0..600 {
        let mut stream = page.connect();
        // It may have been turned away already.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: local");
        crowd.push(stream);
    }
    assert!(page.get("localhost").starts_with("HTTP/1.1 200"), "a whole request comes through");
    // A thread for each connection would be 600.
    assert!(threads() < before + 50, "{} threads, {before} before", threads());
    let open = crowd.iter().filter(|stream| {
        stream.set_nonblocking(true).expect("a socket can be asked");
        (&mut &**stream).read(&mut [0; 1]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    });
    assert!(open.count() <= 6, "places of one peer");
}

#[test]
fn who_takes_long_over_a_head_or_stays_too_long_is_cut_off() {
    let times = PageLimits {
        header_time: Duration::from_millis(100),
        connection_time: Duration::from_millis(300),
        ..PageLimits::default()
    };
    let page = Page::new(times);
    let mut slow = page.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: local").expect("it takes a beginning");
    let mut answer = String::new();
    let _ = slow.read_to_string(&mut answer);
    assert!(!answer.contains("200"), "{answer}");
    // One that asks again and again is answered until its time is over.
    let mut busy = page.connect();
    let mut heard = [0; 4096];
    loop {
        let asked = busy.write_all(b"GET /stats HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if asked.is_err() || busy.read(&mut heard).is_ok_and(|count| count == 0) {
            break;
        }
    }
}
