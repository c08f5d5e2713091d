//! The simulated time of a served drive that a directory lies on, read from its live page.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use imbrex::Failure;

/// How long the live page of a served drive may take to answer.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the simulated time, in nanoseconds, of the served drive whose live page is at `address`.
pub(super) fn simulated_ns(address: &str) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("--served {address}: {error}"))
            .or_try("the address that `imbrex serve --window ADDRESS` printed")
    };
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(PAGE_TIMEOUT)).map_err(failed)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let seconds = answer.lines().find_map(|line| line.strip_prefix("imbrex_simulated_seconds ")?.parse::<f64>().ok());
    let missing = || failed(std::io::Error::other("no figures of a served drive there"));
    Ok((seconds.ok_or_else(missing)? * 1e9) as u64)
}
