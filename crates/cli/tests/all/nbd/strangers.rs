//! Goal: a crowd of strangers of every bad sort costs honest clients nothing but speed, and the server a bounded number
//! of bytes and threads. Method: the built program serves over TCP; the crowd connects from a few addresses of 127/8,
//! on one thread that is busy at most half the time. Meanwhile, from another address, one client writes and reads all
//! the time on one connection, others connect anew, and one loads the live page. All of the latter must be served. The
//! server's memory and threads are read from /proc.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use imbrex_testkit::patience::PATIENCE;

use super::common::*;

/// Every sort of stranger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sort {
    /// Connects, and sends nothing.
    Idle,
    /// Sends half of an option.
    HalfHandshake,
    /// Completes the handshake, and sends no request.
    IdleAfterHandshake,
    /// Announces 32 MiB, sends 31 as fast as they go, and stops.
    Promise,
    /// Sends its payload a byte at a time.
    Drip,
    /// Requests 32 MiB again and again, and reads none of it.
    Deaf,
    /// Sends nonsense in place of the greeting, of an option or of a request, in turn.
    Malformed,
    /// Sends a head of HTTP, a byte at a time.
    Slowloris,
    /// Sends a head of HTTP without an end.
    GiantHeader,
    /// Requests the page under a name that is not the server's.
    WrongHost,
}

const SORTS: [Sort; 10] = [
    Sort::Idle,
    Sort::HalfHandshake,
    Sort::IdleAfterHandshake,
    Sort::Promise,
    Sort::Drip,
    Sort::Deaf,
    Sort::Malformed,
    Sort::Slowloris,
    Sort::GiantHeader,
    Sort::WrongHost,
];
const MIB: usize = 1 << 20;
/// Number of newcomers, the last perhaps unfinished, after which a siege has shown that newcomers are served.
const NEWCOMERS_MIN: u64 = 3;
/// The smallest bound on a request that a test sets: only a client that takes longer may lose its place.
const LATE: Duration = Duration::from_secs(1);
/// Time after which a disconnected stranger connects again.
const COMES_AGAIN: Duration = Duration::from_millis(500);
const HONEST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);

fn hello() -> Vec<u8> {
    let mut bytes = 3u32.to_be_bytes().to_vec();
    send_option(&mut bytes, GO, &[0; 6]);
    bytes
}

/// Returns a socket at `from` that connects to `to`, blocking if `waits` is set.
fn connect(from: Ipv4Addr, to: SocketAddr, waits: bool) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    socket.set_nonblocking(!waits)?;
    match socket.connect(&to.into()) {
        Err(error) if waits || error.raw_os_error() != Some(115) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// One stranger.
struct Stranger {
    sort: Sort,
    from: Ipv4Addr,
    stream: Option<TcpStream>,
    /// Bytes sent on this connection.
    said: usize,
    /// Number of connections so far.
    came: usize,
    comes_at: Instant,
}

impl Stranger {
    fn new(number: usize) -> Stranger {
        let from = Ipv4Addr::new(127, 0, 1, 1 + (number / SORTS.len() % 8) as u8);
        let sort = SORTS[number % SORTS.len()];
        Stranger { sort, from, stream: None, said: 0, came: 0, comes_at: Instant::now() }
    }

    fn is_of_page(&self) -> bool {
        matches!(self.sort, Sort::Slowloris | Sort::GiantHeader | Sort::WrongHost)
    }

    /// Returns the bytes that the stranger will send, up to a length.
    fn words(&self) -> Vec<u8> {
        let write = |length: usize| [hello(), request(WRITE, 0, 1, 0, length as u32).to_vec()].concat();
        match self.sort {
            Sort::Idle => Vec::new(),
            Sort::HalfHandshake => hello()[..9].to_vec(),
            Sort::IdleAfterHandshake => hello(),
            Sort::Promise | Sort::Drip => write(32 * MIB),
            Sort::Deaf => {
                let reads = (0..4).flat_map(|cookie| request(READ, 0, cookie, 0, 32 * MIB as u32));
                hello().into_iter().chain(reads).collect()
            }
            Sort::Malformed => match self.came % 3 {
                0 => vec![0xff; 64],
                1 => [&3u32.to_be_bytes()[..], &[0xee; 64]].concat(),
                _ => [hello(), vec![0xdd; 64]].concat(),
            },
            Sort::Slowloris | Sort::GiantHeader => b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ".to_vec(),
            Sort::WrongHost => b"GET /stats HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
        }
    }

    /// Does one step. Returns whether the page gave an answer other than a refusal.
    fn step(&mut self, nbd: SocketAddr, page: SocketAddr) -> bool {
        let Some(stream) = &mut self.stream else {
            if Instant::now() >= self.comes_at {
                self.stream = connect(self.from, if self.is_of_page() { page } else { nbd }, false).ok();
                (self.said, self.came) = (0, self.came + 1);
            }
            return false;
        };
        let (mut is_gone, mut is_served) = (false, false);
        if self.sort != Sort::Deaf {
            let mut heard = [0; 4096];
            match stream.read(&mut heard) {
                Ok(0) => is_gone = true,
                Ok(count) if self.is_of_page() => {
                    let heard = String::from_utf8_lossy(&heard[..count]);
                    is_served = heard.contains("HTTP/1.1 200");
                }
                Ok(_) => {}
                Err(error) => is_gone = !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected),
            }
        }
        is_gone |=
            self.say().is_err_and(|error| !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected));
        if is_gone {
            self.stream = None;
            self.comes_at = Instant::now() + COMES_AGAIN;
        }
        is_served
    }

    fn say(&mut self) -> std::io::Result<()> {
        let words = self.words();
        let stream = self.stream.as_mut().expect("it is connected");
        if self.said < words.len() {
            self.said += stream.write(&words[self.said..])?;
            return Ok(());
        }
        let (most, step) = match self.sort {
            Sort::Promise => (words.len() + 31 * MIB, 256 << 10),
            Sort::GiantHeader => (usize::MAX, 64 << 10),
            Sort::Drip | Sort::Slowloris => (usize::MAX, 1),
            // A write shows the end of the connection as an error.
            Sort::Deaf => (usize::MAX, if self.said.is_multiple_of(64) { 1 } else { 0 }),
            _ => (0, 0),
        };
        let step = step.min(most.saturating_sub(self.said));
        if step > 0 {
            self.said += stream.write(&vec![b'a'; step])?;
        }
        Ok(())
    }
}

/// The program, serving a drive in memory over TCP, with its page.
struct Served {
    child: Child,
    nbd: SocketAddr,
    page: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Served {
    fn start(bounds: &[&str]) -> Served {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let child = Command::new(env!("CARGO_BIN_EXE_imbrex"))
            .args(["serve", "--drive", "cmr-7200", "--time", "none", "--nbd", "tcp:127.0.0.1:0"])
            .args(["--window", "127.0.0.1:0"])
            .args(bounds)
            .stdin(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .expect("the program starts");
        let address = |log: &str, before: &str| {
            let rest = log.split_once(before)?.1;
            rest.split([';', '/', '\n']).next()?.parse().ok()
        };
        let (nbd, page) = until("both addresses", || {
            let log = fs::read_to_string(&log).unwrap();
            Some((address(&log, " at nbd://")?, address(&log, "work: http://")?))
        });
        Served { child, nbd, page, _folder: folder }
    }

    /// Returns a value of /proc/PID/status, in the unit of its line.
    fn status(&self, name: &str) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel says it");
        line.trim_start_matches(':').split_whitespace().next().unwrap().parse().unwrap()
    }

    fn statistics(&self) -> String {
        let came = Instant::now();
        loop {
            assert!(came.elapsed() < PATIENCE, "the page is not given");
            let begun = Instant::now();
            match self.page("GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") {
                Ok(answer) if answer.starts_with("HTTP/1.1 200") => return answer,
                other => assert!(begun.elapsed() >= LATE, "the page is given at once: {other:?}"),
            }
        }
    }

    /// Returns the page's answer to `request`.
    fn page(&self, request: &str) -> io::Result<String> {
        let mut stream = connect(HONEST, self.page, true)?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Connects an honest client and does its handshake.
    fn client(&self) -> io::Result<TcpStream> {
        let mut stream = connect(HONEST, self.nbd, true)?;
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut [0; 18])?;
        stream.write_all(&hello())?;
        while option_reply(&mut stream).ok_or(ErrorKind::UnexpectedEof)?.0 != 1 {}
        Ok(stream)
    }

    /// Returns an honest client that has just written a block and read it back. A client that a busy machine made late
    /// lost its place to another, as intended, and connects again.
    fn newcomer(&self, offset: u64, bytes: &[u8]) -> TcpStream {
        let came = Instant::now();
        loop {
            assert!(came.elapsed() < PATIENCE, "an honest client is not served");
            let begun = Instant::now();
            let served = self.client().and_then(|mut stream| {
                write_and_read(&mut stream, offset, bytes)?;
                Ok(stream)
            });
            match served {
                Ok(stream) => return stream,
                Err(error) => assert!(begun.elapsed() >= LATE, "an honest client is served at once: {error}"),
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The process may have ended already, which the test has then found out.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes a block and reads it back. Errors are those of the connection.
fn write_and_read(stream: &mut TcpStream, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let length = bytes.len() as u32;
    let ask = |stream: &mut TcpStream, command, payload: &[u8]| {
        stream.write_all(&[&request(command, 0, 5, offset, length)[..], payload].concat())?;
        let mut reply = [0; 16];
        stream.read_exact(&mut reply)?;
        assert_eq!(reply[4..8], [0; 4], "an error");
        io::Result::Ok(())
    };
    ask(stream, WRITE, bytes)?;
    ask(stream, READ, &[])?;
    let mut back = vec![0; bytes.len()];
    stream.read_exact(&mut back)?;
    assert!(back == bytes, "other bytes at {offset}");
    Ok(())
}

/// Measurements of a siege.
struct Outcome {
    calm_bytes_per_s: f64,
    siege_bytes_per_s: f64,
    rss_bytes_max: u64,
    threads_max: u64,
    newcomers: u64,
    longest: Duration,
    crowd_cpu_share: f64,
    statistics: String,
}

/// Returns the bytes per second that the permanent connection writes and reads back, measured for `time`.
fn speed(moved: &AtomicU64, time: Duration) -> f64 {
    let (before, begun) = (moved.load(Ordering::Relaxed), Instant::now());
    std::thread::sleep(time);
    (moved.load(Ordering::Relaxed) - before) as f64 / begun.elapsed().as_secs_f64()
}

/// Returns the CPU time of this thread.
fn thread_cpu() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

fn besiege(strangers: usize, calm: Duration, siege: Duration, bounds: &[&str]) -> Outcome {
    let served = Served::start(bounds);
    let (ends, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let (newcomers, longest_ns) = (AtomicU64::new(0), AtomicU64::new(0));
    let goes_on = || !ends.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        // Ends the threads on every path out of this scope.
        let _ending = Ending(&ends);
        let steady = scope.spawn(|| {
            let mut stream = served.newcomer(64 << 20, &[0; 512]);
            for round in 0u64.. {
                if !goes_on() {
                    break;
                }
                let (offset, bytes) = ((64 << 20) + round % 64 * 65_536, vec![round as u8; 65_536]);
                let begun = Instant::now();
                if let Err(error) = write_and_read(&mut stream, offset, &bytes) {
                    assert!(begun.elapsed() >= LATE, "a client that is there is served: {error}");
                    stream = served.newcomer(offset, &bytes);
                }
                moved.fetch_add(2 * 65_536, Ordering::Relaxed);
            }
        });
        let calm_bytes_per_s = speed(&moved, calm);
        let coming = scope.spawn(|| {
            while goes_on() {
                let number = newcomers.load(Ordering::Relaxed);
                let begun = Instant::now();
                // Every fourth newcomer writes more than the 256 KiB of a connection that do not count as payload
                // memory.
                let length = if number % 4 == 3 { 4 * MIB } else { 4096 };
                drop(served.newcomer(128 << 20, &vec![number as u8; length]));
                newcomers.fetch_add(1, Ordering::Relaxed);
                longest_ns.fetch_max(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        let crowd = scope.spawn(|| {
            let mut crowd: Vec<Stranger> = (0..strangers).map(Stranger::new).collect();
            let (begun, cpu) = (Instant::now(), thread_cpu());
            while goes_on() {
                for part in crowd.chunks_mut(50) {
                    let at = Instant::now();
                    for stranger in part {
                        assert!(!stranger.step(served.nbd, served.page), "the page served {:?}", stranger.sort);
                    }
                    std::thread::sleep(at.elapsed());
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            (thread_cpu() - cpu).as_secs_f64() / begun.elapsed().as_secs_f64()
        });
        let begun = Instant::now();
        let (mut rss_bytes_max, mut threads_max, before) = (0, 0, moved.load(Ordering::Relaxed));
        // On a machine that is busy with other things newcomers take longer, and the siege lasts until enough have been
        // served.
        let is_over = || {
            let have_come = newcomers.load(Ordering::Relaxed) > NEWCOMERS_MIN;
            begun.elapsed() >= siege && (have_come || begun.elapsed() >= PATIENCE)
        };
        while !(is_over() || steady.is_finished() || coming.is_finished() || crowd.is_finished()) {
            rss_bytes_max = rss_bytes_max.max(served.status("VmHWM") << 10);
            threads_max = threads_max.max(served.status("Threads"));
            served.statistics();
            std::thread::sleep(Duration::from_millis(100));
        }
        let siege_bytes_per_s = (moved.load(Ordering::Relaxed) - before) as f64 / begun.elapsed().as_secs_f64();
        let statistics = served.statistics();
        ends.store(true, Ordering::Relaxed);
        steady.join().expect("who was there all the while is served");
        coming.join().expect("who comes anew is served");
        let crowd_cpu_share = crowd.join().expect("strangers get nothing from the page");
        let longest = Duration::from_nanos(longest_ns.load(Ordering::Relaxed));
        let newcomers = newcomers.load(Ordering::Relaxed);
        Outcome {
            calm_bytes_per_s,
            siege_bytes_per_s,
            rss_bytes_max,
            threads_max,
            newcomers,
            longest,
            crowd_cpu_share,
            statistics,
        }
    })
}

/// Ends the threads of a test that panics.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the number after `before` in the statistics.
fn figure(statistics: &str, before: &str) -> u64 {
    let rest = statistics.split_once(before).unwrap_or_else(|| panic!("no '{before}' in {statistics}")).1;
    rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
}

#[test]
fn a_hundred_strangers_cost_little() {
    let bounds = [
        "--connections=40",
        "--peer-connections=20",
        "--payload-memory=16MiB",
        "--peer-payload-memory=8MiB",
        "--handshake-time=1",
        "--request-time=1",
        "--reply-time=1",
        "--page-connections=16",
        "--page-header=8KiB",
        "--page-time=1",
    ];
    let outcome = besiege(100, Duration::from_millis(500), Duration::from_secs(6), &bounds);
    // One thread per connection, six more that are ending, and those of the program.
    assert!(outcome.threads_max <= 40 + 6 + 8, "{} threads", outcome.threads_max);
    // The drive's own memory, the payloads with one request beyond the bound, a MiB per connection.
    assert!(outcome.rss_bytes_max < (100 + 16 + 32 + 46) << 20, "{} bytes", outcome.rss_bytes_max);
    let statistics = &outcome.statistics;
    assert!(figure(statistics, "bytes held, ") <= (16 + 32) << 20, "{statistics}");
    assert!(figure(statistics, "another's place, ") > 0, "nobody was late: {statistics}");
    assert!(figure(statistics, "cut off: ") > 0, "there was a place for everybody: {statistics}");
    assert!(outcome.newcomers > NEWCOMERS_MIN, "{} newcomers", outcome.newcomers);
}

/// Runs with the default bounds for a minute, and prints the costs.
#[test]
#[ignore = "takes a minute"]
fn a_thousand_strangers_cost_little() {
    let outcome = besiege(1000, Duration::from_secs(10), Duration::from_secs(60), &[]);
    let mib = |bytes: f64| bytes / MIB as f64;
    println!("1,000 strangers for a minute, {:.2} of a core theirs", outcome.crowd_cpu_share);
    println!(
        "honest client: {:.0} MiB/s before, {:.0} MiB/s meanwhile: {:.0} % of it",
        mib(outcome.calm_bytes_per_s),
        mib(outcome.siege_bytes_per_s),
        100.0 * outcome.siege_bytes_per_s / outcome.calm_bytes_per_s,
    );
    println!("newcomers: {} served, the slowest in {:.1} s", outcome.newcomers, outcome.longest.as_secs_f64());
    println!("server: {:.0} MiB at most, {} threads", mib(outcome.rss_bytes_max as f64), outcome.threads_max);
    println!(
        "{}",
        outcome
            .statistics
            .lines()
            .filter(|line| line.contains("connections:") || line.contains("payload"))
            .collect::<Vec<_>>()
            .join("\n")
    );
    assert!(outcome.rss_bytes_max < 1 << 30, "{} bytes", outcome.rss_bytes_max);
    assert!(outcome.threads_max <= 256 + 33 + 8, "{} threads", outcome.threads_max);
    assert!(outcome.crowd_cpu_share <= 0.55, "the crowd was meant to have half a core");
}
