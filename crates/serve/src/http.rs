//! Figures of a drive or file system over HTTP: `/` is the live page, `/state.json` the data that the page draws,
//! `/metrics` the figures for Prometheus, and `/stats` the figures for people. A Unix socket offers the text of
//! `/stats` too. The HTTP implementation is hyper's; all of it runs in one thread.
//!
//! A web page of a stranger, run by a browser, could request these under a host name that resolves to this machine (DNS
//! rebinding). So requests are answered only under the names that the server knows as its own.
//!
//! Invariants:
//! 1. Only GET and HEAD have an effect, and neither changes the drive or file system.
//! 2. A client costs one connection with a buffer of [`PageLimits::header_bytes`] and one answer, and no thread.
//! 3. Requests take at most a fifth of a drive's time, however often clients ask.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::clients::{Client, Clients};
use crate::limits::PageLimits;
use crate::socket::{Access, Socket};

const TEXT: &str = "text/plain; charset=utf-8";

/// Interval at which `stop` is called.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Maximum number of headers of a request.
const HEADERS_MAX: usize = 64;
/// Rest between two looks at the drive: this many times the duration of the first look, and at least `REST_MIN`.
const REST_TIMES: u32 = 4;
const REST_MIN: Duration = Duration::from_millis(5);
/// Time within which a client of the statistics socket must take the text.
const SOCKET_TIME: Duration = Duration::from_secs(1);

/// A function that returns whether the server should end. The server calls it a few times a second.
pub type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// A source of the figures that are served over HTTP: a drive or a file system. The methods are called in the threads
/// of the HTTP server and of the statistics socket.
pub trait Shown: Send + Sync {
    /// Returns the HTML of the live page at `/`. With `None`, `/` shows [`Shown::text`].
    fn page(&self) -> Option<&'static str>;

    /// Returns the data that the live page draws, as JSON; served at `/state.json`.
    fn state(&self) -> String;

    /// Returns the figures in the Prometheus text format 0.0.4; served at `/metrics`.
    fn metrics(&self) -> String;

    /// Returns the figures as plain text for people; served at `/stats` and over the statistics socket.
    fn text(&self) -> String;
}

/// State shared by all connections.
struct Page {
    shown: Arc<dyn Shown>,
    limits: PageLimits,
    names: Vec<String>,
    clients: Arc<Clients>,
    /// Earliest time of the next look at the drive.
    next_look: tokio::sync::Mutex<Instant>,
}

/// Serves the figures of `shown` over HTTP at `address` (`HOST:PORT`), in one new thread, until `stop` returns true. A
/// request is answered only if its `Host` is `localhost`, `127.0.0.1`, `[::1]`, the host of `address`, the IP address
/// that the client connected to, or one of `names`; case and port are ignored. Other requests get an error. Returns the
/// bound address, in which port 0 is replaced by the port chosen, and the thread.
///
/// # Errors
///
/// The address cannot be bound, or the thread or its executor cannot be started.
pub fn start(
    address: &str,
    names: &[String],
    limits: PageLimits,
    shown: Arc<dyn Shown>,
    stop: Stop,
) -> io::Result<(String, JoinHandle<()>)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let own = ["localhost", "127.0.0.1", "[::1]", host_of(address)].map(str::to_string);
    let names = own.into_iter().chain([name_of(bound.ip())]).chain(names.iter().cloned());
    let page = Arc::new(Page {
        shown,
        names: names.map(|name| name.to_ascii_lowercase()).collect(),
        clients: Arc::new(Clients::new(limits.connections, limits.connections_per_peer, limits.connections)),
        limits,
        next_look: tokio::sync::Mutex::new(Instant::now()),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let thread = std::thread::Builder::new().name("http".into()).spawn(move || {
        runtime.block_on(async {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => page.run(&listener, &stop).await,
                Err(error) => {
                    // Nobody may be reading standard error any more; `eprintln!` would end the thread.
                    let _ = writeln!(std::io::stderr(), "the live page cannot be served: {error}");
                }
            }
        });
    })?;
    Ok((bound.to_string(), thread))
}

impl Page {
    async fn run(self: Arc<Page>, listener: &tokio::net::TcpListener, stop: &Stop) {
        let mut looked = Instant::now();
        while !stop() {
            match tokio::time::timeout(LOOK_EVERY, listener.accept()).await {
                Ok(Ok((stream, from))) => {
                    self.wait_for_leaving().await;
                    self.welcome(stream, from);
                }
                // The failure of one client, such as one that has disconnected already, must not end the server.
                Ok(Err(_)) => tokio::time::sleep(LOOK_EVERY).await,
                Err(_) => {}
            }
            if looked.elapsed() >= LOOK_EVERY {
                self.clients.cut_late();
                looked = Instant::now();
            }
        }
    }

    /// Yields until clients that were cut off have ended, before more are admitted: each needs one turn of the executor
    /// to end.
    async fn wait_for_leaving(&self) {
        for _ in 0..self.limits.connections {
            if !self.clients.is_crowded() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    fn welcome(self: &Arc<Page>, stream: TcpStream, from: SocketAddr) {
        let end = Arc::new(tokio::sync::Notify::new());
        let told = end.clone();
        let time = self.limits.header_time;
        let Some(client) = self.clients.admit(from.ip().into(), time, move || told.notify_one()) else { return };
        let page = self.clone();
        tokio::spawn(async move {
            page.converse(stream, &client, &end).await;
            page.clients.left(&client);
        });
    }

    /// Answers the requests of one connection until it ends, or its time is over.
    async fn converse(self: &Arc<Page>, stream: TcpStream, client: &Arc<Client>, end: &tokio::sync::Notify) {
        let came_to = stream.local_addr().ok().map(|address| address.ip());
        let service = service_fn(|request| self.serve(request, came_to, client));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.header_time)
            // hyper takes no smaller buffer.
            .max_buf_size(self.limits.header_bytes.max(8 << 10))
            .max_headers(HEADERS_MAX)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut cut = pin!(end.notified());
        let until_cut = std::future::poll_fn(|context| {
            let is_cut = cut.as_mut().poll(context).is_ready();
            // An error ends only this client's connection.
            if is_cut { std::task::Poll::Ready(true) } else { connection.as_mut().poll(context).map(|_| false) }
        });
        if tokio::time::timeout(self.limits.connection_time, until_cut).await.is_err() {
            // A request in progress is still answered.
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(self.limits.header_time, connection).await;
        }
    }

    async fn serve(
        self: &Arc<Page>,
        request: Request<Incoming>,
        came_to: Option<IpAddr>,
        client: &Arc<Client>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        client.finished_handshake();
        let answer = self.answer(&request, came_to).await;
        if answer.status() == StatusCode::OK {
            client.served();
        }
        Ok(answer)
    }

    async fn answer(&self, request: &Request<Incoming>, came_to: Option<IpAddr>) -> Response<Full<Bytes>> {
        if let Err((status, words)) = self.check_name(request, came_to) {
            return refusal(status, words);
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered here\n".into());
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return answer;
        }
        if !request.body().is_end_stream() {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "requests have no body here\n".into());
        }
        let shown = &self.shown;
        let (kind, body) = match (request.uri().path(), shown.page()) {
            ("/", Some(page)) => ("text/html; charset=utf-8", page.to_string()),
            ("/state.json", _) => ("application/json", self.look(|| shown.state()).await),
            ("/metrics", _) => ("text/plain; version=0.0.4; charset=utf-8", self.look(|| shown.metrics()).await),
            ("/" | "/stats", _) => (TEXT, self.look(|| shown.text()).await),
            _ => {
                return refusal(StatusCode::NOT_FOUND, "there are /, /state.json, /metrics and /stats\n".into());
            }
        };
        response(StatusCode::OK, kind, body)
    }

    /// Calls `look` as soon as the rest after the previous look is over.
    async fn look(&self, look: impl FnOnce() -> String) -> String {
        let mut next_look = self.next_look.lock().await;
        tokio::time::sleep_until((*next_look).into()).await;
        let begun = Instant::now();
        let seen = look();
        let rest = REST_MIN.max(begun.elapsed() * REST_TIMES);
        *next_look = Instant::now() + rest;
        seen
    }

    /// Checks that the request names a host that is served here.
    fn check_name(&self, request: &Request<Incoming>, came_to: Option<IpAddr>) -> Result<(), (StatusCode, String)> {
        let mut named = request.headers().get_all(HOST).iter();
        let (Some(name), None) = (named.next(), named.next()) else {
            return Err((StatusCode::BAD_REQUEST, "a request names its host once\n".into()));
        };
        let name = name.to_str().map(host_of).unwrap_or_default().to_ascii_lowercase();
        // A server at 0.0.0.0 is reached at any address of this machine.
        let is_own =
            |name: &str| self.names.iter().any(|own| own == name) || came_to.is_some_and(|ip| name_of(ip) == name);
        let target = request.uri().host().map(|host| host.to_ascii_lowercase());
        if is_own(&name) && target.is_none_or(|target| is_own(&target)) {
            return Ok(());
        }
        let words = format!(
            "the host that the request names is not this server, whose names are {}; `imbrex serve --http-host NAME` \
             adds another\n",
            self.names[..3].join(", ")
        );
        Err((StatusCode::MISDIRECTED_REQUEST, words))
    }
}

/// Returns the host of `host`, `host:port` or `[v6]:port`.
fn host_of(text: &str) -> &str {
    let end = match text.find(']') {
        Some(bracket) => bracket + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    text[..end].trim_end_matches('.')
}

/// Returns an address in the form in which browsers write it into `Host`.
fn name_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn response(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns an answer with an error; the client must connect again afterwards.
fn refusal(status: StatusCode, words: String) -> Response<Full<Bytes>> {
    let mut response = response(status, TEXT, words);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Serves [`Shown::text`] over a Unix socket at `path`, in one new thread, until `stop` returns true. Each client
/// receives the text once and is disconnected, one client after the other. A client that takes longer than a second may
/// get only a part.
///
/// # Errors
///
/// The socket cannot be created, or the thread cannot be started.
pub fn start_socket(path: &Path, shown: Arc<dyn Shown>, stop: Stop) -> io::Result<JoinHandle<()>> {
    let listener = Socket::bind(path, Access::Usual)?;
    listener.set_nonblocking(true)?;
    std::thread::Builder::new().name("stats".into()).spawn(move || {
        while !stop() {
            let Ok((mut stream, _)) = listener.accept() else {
                std::thread::sleep(LOOK_EVERY / 2);
                continue;
            };
            let begun = Instant::now();
            let text = shown.text();
            let rest = REST_MIN.max(begun.elapsed() * REST_TIMES);
            // A client that does not take the text in time gets only a part.
            let _ = stream.set_write_timeout(Some(SOCKET_TIME)).and_then(|()| stream.write_all(text.as_bytes()));
            std::thread::sleep(rest);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_without_its_port() {
        for (text, host) in [
            ("localhost", "localhost"),
            ("localhost:8080", "localhost"),
            ("localhost.:80", "localhost"),
            ("127.0.0.1:0", "127.0.0.1"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
            ("", ""),
            (":80", ""),
        ] {
            assert_eq!(host_of(text), host, "{text}");
        }
    }
}
