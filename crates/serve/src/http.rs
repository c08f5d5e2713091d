//! The drive's figures over HTTP: `/` the live page, `/state.json` what it draws, `/metrics` for Prometheus, `/stats` for
//! people; and the same text to whoever connects to a Unix socket.
//!
//! Invariants:
//! 1. Only GET and HEAD do anything, and neither changes the drive.

use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tiny_http::{Header, Method, Request, Response};

use crate::front::Front;
use crate::observe;

const PAGE: &str = include_str!("window.html");

/// Whether the server should end, asked a few times a second.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// Serves HTTP at `address` until `stop`; gives the address in use, for a port of 0.
pub fn start(address: &str, front: Arc<Front>, stop: Stop) -> io::Result<(String, JoinHandle<()>)> {
    let server = tiny_http::Server::http(address).map_err(io::Error::other)?;
    let shown = server.server_addr().to_ip().map_or_else(|| address.to_string(), |address| address.to_string());
    let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
        while !stop() {
            if let Ok(Some(request)) = server.recv_timeout(Duration::from_millis(200)) {
                // A client that has gone away is no concern of ours.
                let _ = answer(request, &front);
            }
        }
    })?;
    Ok((shown, thread))
}

fn answer(request: Request, front: &Front) -> io::Result<()> {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return request.respond(Response::from_string("only GET is answered here\n").with_status_code(405));
    }
    let path = request.url().split('?').next().unwrap_or("/");
    let (kind, body) = match path {
        "/" => ("text/html; charset=utf-8", PAGE.to_string()),
        "/state.json" => ("application/json", observe::state(front).to_string()),
        "/metrics" => ("text/plain; version=0.0.4; charset=utf-8", observe::prometheus(front)),
        "/stats" => ("text/plain; charset=utf-8", observe::text(front)),
        _ => {
            let words = "there are /, /state.json, /metrics and /stats\n";
            return request.respond(Response::from_string(words).with_status_code(404));
        }
    };
    let kind = Header::from_bytes("Content-Type", kind).expect("a constant header is well-formed");
    let stale = Header::from_bytes("Cache-Control", "no-store").expect("a constant header is well-formed");
    request.respond(Response::from_string(body).with_header(kind).with_header(stale))
}

/// Gives the text of `/stats` to whoever connects to the Unix socket `path`, until `stop`.
pub fn start_socket(path: &Path, front: Arc<Front>, stop: Stop) -> io::Result<JoinHandle<()>> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let path: PathBuf = path.into();
    std::thread::Builder::new().name("stats".into()).spawn(move || {
        while !stop() {
            match listener.accept() {
                Ok((mut stream, _)) => {
                    let _ = stream.write_all(observe::text(&front).as_bytes());
                }
                Err(_) => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        let _ = std::fs::remove_file(path);
    })
}
