//! The child process `imbrex serve`: started, asked for its figures, killed, stopped.
//!
//! Invariants:
//! 1. A server does not outlive the test that started it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::patience::{PATIENCE, until};
use crate::program::Program;

/// A child process `imbrex serve` that serves NBD at a Unix socket; killed when dropped.
pub struct Server {
    child: Child,
    /// Path of the Unix socket at which the server listens for NBD clients.
    pub socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts `imbrex serve` with the arguments `words`, its socket and log in `folder`, and waits until it listens.
    ///
    /// # Errors
    ///
    /// The exit status and the messages of the server, if it ends before it listens.
    ///
    /// # Panics
    ///
    /// Panics if the program cannot be started, or neither listens nor ends within five minutes ([`PATIENCE`]).
    pub fn try_start(program: &Program, folder: &Path, words: &[&str]) -> Result<Server, String> {
        let (socket, log) = (folder.join("socket"), folder.join("log"));
        // The socket of a killed server would look as if the new one were listening already.
        let _ = fs::remove_file(&socket);
        let child = Command::new(program.path())
            .arg("serve")
            .args(words)
            .args(["--nbd", &format!("unix:{}", socket.display())])
            // The control socket goes into the folder; `imbrex drive snapshot` finds it by the same variable.
            .env("XDG_RUNTIME_DIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).expect("the folder is ours"))
            .spawn()
            .expect("the program starts");
        let mut server = Server { child, socket, log };
        let has_ended = until("the server", || match server.child.try_wait().expect("a child can be asked") {
            Some(status) => Some(Some(status)),
            None => UnixStream::connect(&server.socket).ok().map(|_| None),
        });
        match has_ended {
            None => Ok(server),
            Some(status) => Err(format!("{status}: {}", server.log())),
        }
    }

    /// Starts `imbrex serve` with the arguments `words`, its socket and log in `folder`, and waits until it listens.
    ///
    /// # Panics
    ///
    /// Panics if the server does not start.
    pub fn start(program: &Program, folder: &Path, words: &[&str]) -> Server {
        Server::try_start(program, folder, words).unwrap_or_else(|error| panic!("serve {words:?}: {error}"))
    }

    /// Returns the text that the server has written to standard error so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it was made at the start")
    }

    /// Returns the NBD URI of the server (`nbd+unix:///?socket=PATH`), for NBD tools.
    pub fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    /// Returns the process ID of the server.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the server's end, and returns its exit code, or `None` if a signal ended it. Panics if the server does
    /// not end within five minutes ([`PATIENCE`]).
    pub fn wait(&mut self) -> Option<i32> {
        until("the server's end", || self.child.try_wait().expect("a child can be asked")).code()
    }

    /// Kills the server by SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
    }

    /// Stops the server by SIGINT, as Ctrl-C does, waits for its end, and returns the text that it wrote to standard
    /// error.
    ///
    /// # Errors
    ///
    /// The exit status and that text, if the server did not end with exit code 0.
    ///
    /// # Panics
    ///
    /// Panics if the server does not end within five minutes ([`PATIENCE`]).
    pub fn stop(mut self) -> Result<String, String> {
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(asked.expect("there is a kill").success(), "it is ours");
        let status = until("the server's end", || self.child.try_wait().expect("a child can be asked"));
        if status.success() { Ok(self.log()) } else { Err(format!("{status}: {}", self.log())) }
    }

    /// Returns whether the server is still running.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Returns the address (HOST:PORT) of the server's live page, which the server has printed. Panics unless the
    /// server was started with `--window 127.0.0.1:0`.
    pub fn window(&self) -> String {
        let log = self.log();
        let address = log.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        address.expect("it shows a window").to_string()
    }

    /// Returns the number of bytes written to the drive's medium since the server's start, including padding and
    /// cleaning, from the server's metrics. Panics unless the server runs and was started with `--window 127.0.0.1:0`.
    pub fn platter_bytes(&self) -> u64 {
        let metrics = fetch(&self.window(), "/metrics");
        let values = metrics.lines().filter(|line| line.starts_with("imbrex_medium_written_bytes_total{"));
        values.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64
    }
}

/// Performs an HTTP GET request for `path` at `address` (HOST:PORT). Returns the whole answer, headers included.
///
/// # Panics
///
/// Panics if the connection fails or the status is not 200.
pub fn fetch(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the window is open");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the window takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the window answers in text");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
