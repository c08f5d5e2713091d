//! Goal: a served drive is as slow as the drive it emulates. Method: synchronous writes over NBD to the drive that
//! Aghayev 2015 measured. The server's statistics of latencies, in the drive's time, are compared with the closed form.
//! The wall clock gives a lower bound: answers may be late on a busy machine, never early.

use std::time::Instant;

use super::common::*;

/// Returns the latency `which` (p50, p99, longest) of `kind`, as the server printed it, in milliseconds.
fn milliseconds(said: &str, kind: &str, which: &str) -> f64 {
    let line = said.lines().find(|line| line.starts_with(kind)).unwrap_or_else(|| panic!("no {kind} in {said}"));
    let (_, rest) = line.split_once(which).unwrap_or_else(|| panic!("no {which} in {line}"));
    let mut words = rest.split_whitespace();
    let value: f64 = words.next().expect("a number").trim_end_matches(',').parse().expect("a number");
    match words.next().expect("a unit").trim_end_matches(',') {
        "µs" | "us" => value / 1000.0,
        "ms" => value,
        "s" => value * 1000.0,
        unit => panic!("unit {unit} in {line}"),
    }
}

/// Aghayev 2015 §4.3: a synchronous write into the cache of this drive takes the time of two and a half tracks.
const WRITE_MS: f64 = 25.0;
/// One rotation: the time that a host loses if its request is a little too late for its place.
const TURN_MS: f64 = 10.0;

/// Without a pace a request arrives when the drive is free, so that every write takes the drive's time only.
#[test]
fn synchronous_writes_take_two_and_a_half_tracks() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", "seagate-st5000as0011", "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for number in 0..200u64 {
        assert_eq!(client.write(number * 7919 * 4096 % (1 << 40), &[1; 4096]), 0);
    }
    let said = server.stop();
    let p50 = milliseconds(&said, "write", "p50");
    assert!((p50 - WRITE_MS).abs() < 0.2, "{p50} ms: {said}");
}

/// In real time fio waits at least for the drive's time: a busy machine may add to it, and miss a rotation of the
/// drive.
#[test]
fn fio_waits_as_long_as_the_drive_takes() {
    if !has(&["fio"], "the latency that fio sees") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", "seagate-st5000as0011", "--time", "real"]);
    let uri = format!("--uri={}", server.uri());
    let said = run(
        "fio",
        &[
            "--name=a",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bs=4k",
            "--iodepth=1",
            "--size=1g",
            "--number_ios=60",
            "--output-format=json",
        ],
    );
    let json: serde_json::Value = serde_json::from_str(&said[said.find('{').expect("JSON")..]).expect("JSON");
    let seen_ms = json["jobs"][0]["write"]["clat_ns"]["percentile"]["50.000000"].as_f64().expect("a number") / 1e6;
    let said = server.stop();
    let p50 = milliseconds(&said, "write", "p50");
    // A client that is delayed for any reason waits for one rotation at most.
    assert!((WRITE_MS - 0.2..=WRITE_MS + TURN_MS + 0.2).contains(&p50), "{p50} ms: {said}");
    // fio's histogram is exact to three per cent.
    assert!(seen_ms > p50 * 0.97, "fio saw {seen_ms} ms, the drive took {p50} ms");
    assert!(said.contains("late by p50"), "{said}");
}

/// With a factor of ten no answer arrives before a tenth of the drive's time has passed.
#[test]
fn a_factor_divides_the_wait() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--drive", "seagate-st5000as0011", "--time", "10x"]);
    let mut client = Client::connect(&server.socket);
    let begun = Instant::now();
    let count = 20;
    for number in 0..count {
        assert_eq!(client.write(number * 7919 * 4096 % (1 << 40), &[1; 4096]), 0);
    }
    let wall = begun.elapsed();
    let said = server.stop();
    let p50 = milliseconds(&said, "write", "p50");
    assert!(p50 >= WRITE_MS - 0.2, "{p50} ms: {said}");
    assert!(
        wall.as_secs_f64() * 10.0 >= count as f64 * (WRITE_MS - 0.2) / 1000.0,
        "{wall:?} for {count} writes of {p50} ms"
    );
}

#[test]
fn a_full_cache_is_a_cliff() {
    let folder = tempfile::tempdir().unwrap();
    let layer = imbrex_layer::registry::named("media-cache").expect("it is registered");
    // No idle time occurs, however slow the machine is: one packet per write, and a cache of a few dozen packets.
    let drive = format!("{},idle=100000s", small_drive(folder.path(), layer));
    let p50_of = |writes: u64| {
        let server = Server::start(folder.path(), &["--drive", &drive, "--time", "none"]);
        let mut client = Client::connect(&server.socket);
        let blocks = client.capacity_bytes / 4096;
        for number in 0..writes {
            assert_eq!(client.write(number * 7919 % blocks * 4096, &[1; 4096]), 0);
        }
        milliseconds(&server.stop(), "write", "p50")
    };
    let (before, after) = (p50_of(10), p50_of(400));
    assert!(after > 5.0 * before, "{before} ms while the cache takes writes, {after} ms once it is full");
}
