//! Goal: on every layer, no acknowledged write is lost when the server is killed. Method: a client with many writes in
//! flight stamps every sector and records the acknowledged stamps. Repeatedly the server is killed with SIGKILL during
//! the work and started again, and every sector must hold the last acknowledged stamp or one in flight. Then fio writes
//! with checksums from two jobs at once, the server is killed, and fio verifies.
//!
//! Five kills and 64 MiB per layer; the variant with ten kills and 10 GiB is `long_`, for `make test-long`.

use std::collections::BTreeMap;

use imbrex_layer::verify::toy::below;
use imbrex_layer::{LayerInfo, registry};
use imbrex_testkit::fill::{fill_with, is_filled_with};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256StarStar;

use super::common::*;

const SECTOR: u64 = 512;
/// Number of requests in flight at once.
const WINDOW: usize = 16;

/// Stamps that each sector may hold.
struct Expected {
    /// The stamp acknowledged last; 0 is zeros.
    durable: Vec<u64>,
    /// Writes in flight by cookie: first sector, sectors and stamp.
    in_flight: BTreeMap<u64, (u64, u64, u64)>,
}

impl Expected {
    fn overlaps(&self, first: u64, sectors: u64) -> bool {
        self.in_flight.values().any(|&(other, length, _)| first < other + length && other < first + sectors)
    }

    fn acknowledged(&mut self, cookie: u64) {
        let (first, sectors, stamp) = self.in_flight.remove(&cookie).expect("it was on its way");
        self.durable[first as usize..(first + sectors) as usize].fill(stamp);
    }

    /// Reads the whole drive and asserts that every sector holds an acknowledged stamp or one in flight.
    fn check(&mut self, client: &mut Client, what: &str) {
        for first in (0..self.durable.len() as u64).step_by(2048) {
            let sectors = 2048.min(self.durable.len() as u64 - first);
            let bytes = client
                .read(first * SECTOR, (sectors * SECTOR) as u32)
                .unwrap_or_else(|error| panic!("{what}: reading {sectors} sectors at {first}: error {error}"));
            for (sector, found) in (first..).zip(bytes.chunks_exact(SECTOR as usize)) {
                let durable = self.durable[sector as usize];
                if is_stamped(found, durable, sector) {
                    continue;
                }
                let flying = self.in_flight.values().find(|&&(start, length, stamp)| {
                    (start..start + length).contains(&sector) && is_stamped(found, stamp, sector)
                });
                let Some(&(_, _, stamp)) = flying else {
                    let holds: Vec<u64> = found.chunks_exact(8).take(2).map(word).collect();
                    panic!("{what}: sector {sector} holds {holds:?}, and stamp {durable} was acknowledged");
                };
                self.durable[sector as usize] = stamp;
            }
        }
        self.in_flight.clear();
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

fn is_stamped(bytes: &[u8], stamp: u64, sector: u64) -> bool {
    let sector = if stamp == 0 { 0 } else { sector };
    is_filled_with(bytes, stamp, sector)
}

/// Writes at random, and kills the server once `bytes` were acknowledged; answers sent before its end count too.
fn write_and_kill(
    server: &mut Server,
    client: &mut Client,
    expected: &mut Expected,
    random: &mut Xoshiro256StarStar,
    next_stamp: &mut u64,
    bytes: u64,
    sectors_max: u64,
) {
    let capacity = expected.durable.len() as u64;
    let mut acknowledged_sectors = 0;
    let mut payload = Vec::new();
    let mut is_killed = false;
    loop {
        while !is_killed && expected.in_flight.len() < WINDOW {
            let sectors = if sectors_max >= 2048 { sectors_max } else { 1 + below(random, sectors_max) };
            let reach = if below(random, 3) == 0 { capacity / 16 } else { capacity - sectors };
            let first = below(random, reach + 1);
            if expected.overlaps(first, sectors) {
                break;
            }
            let (is_zero, cookie) = (below(random, 16) == 0, *next_stamp);
            *next_stamp += 1;
            payload.clear();
            payload.resize(if is_zero { 0 } else { (sectors * SECTOR) as usize }, 0);
            for (sector, into) in (first..).zip(payload.chunks_exact_mut(SECTOR as usize)) {
                fill_with(into, cookie, sector);
            }
            expected.in_flight.insert(cookie, (first, sectors, if is_zero { 0 } else { cookie }));
            let command = if is_zero { WRITE_ZEROES } else { WRITE };
            client
                .send(command, 0, cookie, first * SECTOR, (sectors * SECTOR) as u32, &payload)
                .expect("the server takes requests");
        }
        let Ok((cookie, error)) = client.reply() else {
            assert!(is_killed, "the server closed: {}", server.log());
            return;
        };
        assert_eq!(error, 0, "{}", server.log());
        acknowledged_sectors += expected.in_flight[&cookie].1;
        expected.acknowledged(cookie);
        if !is_killed && acknowledged_sectors * SECTOR >= bytes {
            server.kill();
            is_killed = true;
        } else if is_killed && expected.in_flight.is_empty() {
            return;
        }
    }
}

fn survives(layer: &LayerInfo, kills: u64, bytes: u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let image = image(folder.path(), &small_drive(folder.path(), layer));
    let sectors_max = match layer.name {
        "region-rmw" | "set-associative" => 2048,
        // The layer writes fifty times the data it gets in pieces of up to 64 KiB: 10 GB of those take half an hour or
        // more.
        "s-blocks" if bytes > 1 << 30 => 2048,
        _ => 128,
    };
    let mut random = Xoshiro256StarStar::seed_from_u64(21);
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let sectors = (client.capacity_bytes / SECTOR) as usize;
    let mut expected = Expected { durable: vec![0; sectors], in_flight: BTreeMap::new() };
    let mut next_stamp = 1;
    for kill in 0..kills {
        let share = bytes / kills;
        write_and_kill(&mut server, &mut client, &mut expected, &mut random, &mut next_stamp, share, sectors_max);
        server = Server::start(folder.path(), &[&image, "--time", "none"]);
        client = Client::connect(&server.socket);
        expected.check(&mut client, &format!("{} after kill {kill}", layer.name));
    }
    drop(client);
    fio_survives(layer, &mut server, || Server::start(folder.path(), &[&image, "--time", "none"]));
}

/// Runs fio with two jobs, each on its own connection and its own part of the drive; then kills the server, and runs
/// fio's own verification.
fn fio_survives(layer: &LayerInfo, server: &mut Server, start: impl Fn() -> Server) {
    if !has(&["fio"], "fio's verification after a kill") {
        return;
    }
    let block = if matches!(layer.name, "region-rmw" | "set-associative") { "256k" } else { "4k" };
    let fio = |server: &Server, more: &[&str]| {
        let (uri, block) = (format!("--uri={}", server.uri()), format!("--bs={block}"));
        let mut words = vec![
            "--name=a",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            &block,
            "--iodepth=8",
            "--numjobs=2",
            "--size=6m",
            "--offset_increment=8m",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--verify_state_save=0",
            "--randseed=5",
            "--group_reporting",
        ];
        words.extend(more);
        run("fio", &words);
    };
    fio(server, &["--do_verify=1"]);
    server.kill();
    let server = start();
    fio(&server, &["--verify_only=1"]);
    server.stop();
}

fn every_layer_survives(kills: u64, bytes: u64) {
    let only = std::env::var("IMBREX_LAYER").ok();
    // Losses of a host-managed drive are the host's responsibility, and fio does not keep the rules of zones.
    let drive_managed = registry::all().into_iter().filter(|layer| !layer.host_managed);
    for layer in drive_managed.filter(|layer| only.as_deref().is_none_or(|only| only == layer.name)) {
        survives(layer, kills, bytes);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    every_layer_survives(5, 64 << 20);
}

#[test]
#[ignore = "takes minutes: 10 GB a layer"]
fn long_nothing_acknowledged_is_lost_in_ten_gigabytes() {
    every_layer_survives(10, 10 << 30);
}

/// A drive in zones without a volatile cache makes each answer durable without a flush, the moved pointer included.
#[test]
fn zones_keep_every_answer_when_the_server_is_killed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let layer = registry::named("zoned").expect("it is registered");
    let image = image(folder.path(), &small_drive(folder.path(), layer));
    const BYTES: u64 = 4096;
    let mut written: Vec<u8> = Vec::new();
    for round in 0..3u8 {
        let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
        let mut client = Client::connect(&server.socket);
        if let Some(last) = written.len().checked_sub(1) {
            assert_eq!(client.read(0, written.len() as u32), Ok(written.clone()), "of {last} bytes, round {round}");
        }
        // Zones are of 20,000 bytes, less a part of a sector: a write ends at the end of its zone.
        for number in 0..10 {
            let at = written.len() as u64;
            let zone_bytes = 39 * SECTOR;
            let bytes = BYTES.min(zone_bytes - at % zone_bytes);
            let contents = vec![round * 10 + number + 1; bytes as usize];
            assert_eq!(client.write(at, &contents), 0, "{}", server.log());
            written.extend(contents);
        }
        server.kill();
    }
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    assert_eq!(client.read(0, written.len() as u32), Ok(written), "what was answered is gone");
    server.stop();
}

/// With a volatile cache acknowledged flushes are durable, and nothing else need be.
#[test]
fn what_was_flushed_outlives_the_server_behind_a_volatile_cache() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let layer = registry::named("media-cache").expect("it is registered");
    let drive = format!("{},host.write_cache_bytes=1048576", small_drive(folder.path(), layer));
    let image = image(folder.path(), &drive);
    let mut random = Xoshiro256StarStar::seed_from_u64(22);
    let mut flushed: BTreeMap<u64, u64> = BTreeMap::new();
    for round in 1..6u64 {
        let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
        let mut client = Client::connect(&server.socket);
        for (&sector, &expected) in &flushed {
            let bytes = client.read(sector * SECTOR, SECTOR as u32).expect("it can be read");
            // Data written after the last flush may have been kept.
            assert!(word(&bytes[..8]) >= expected, "sector {sector}: {} of {expected}", word(&bytes[..8]));
            assert!(is_stamped(&bytes, word(&bytes[..8]), sector), "sector {sector} is mixed");
        }
        for half in 0..2 {
            for number in 0..100 {
                let (sector, value) = (below(&mut random, 1000), round * 1000 + half * 500 + number);
                let mut bytes = vec![0; SECTOR as usize];
                fill_with(&mut bytes, value, sector);
                assert_eq!(client.write(sector * SECTOR, &bytes), 0);
                if half == 0 {
                    flushed.insert(sector, value);
                }
            }
            if half == 0 {
                assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
            }
        }
        server.kill();
    }
}

/// The contents of a volatile cache are in memory only. Of a hundred scattered writes without a flush, at most five
/// survive the server: as many as a drive could have written back during the test.
#[test]
fn what_was_not_flushed_dies_with_the_server() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let layer = registry::named("media-cache").expect("it is registered");
    let drive = format!("{},host.write_cache_bytes=4194304", small_drive(folder.path(), layer));
    let image = image(folder.path(), &drive);
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    const BYTES: usize = 4096;
    // Far enough apart that no two are merged; every block had other contents before.
    let places: Vec<u64> = (0..100).map(|number| number * 37 % 100 * 5 * BYTES as u64).collect();
    for &place in &places {
        assert_eq!(client.write(place, &[1; BYTES]), 0);
    }
    assert_eq!(client.ask(FLUSH, 0, 0, 0, &[]), 0);
    for &place in &places {
        assert_eq!(client.write(place, &[2; BYTES]), 0);
    }
    server.kill();
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let mut outlived = 0;
    for &place in &places {
        let bytes = client.read(place, BYTES as u32).expect("it can be read");
        assert!(bytes.iter().all(|&byte| byte == bytes[0]) && [1, 2].contains(&bytes[0]), "byte {place} is mixed");
        outlived += usize::from(bytes[0] == 2);
    }
    assert!(outlived <= 5, "{outlived} of 100 unflushed writes outlived the process that alone had them");
    server.stop();
}

/// A flush on one connection makes durable the writes that the drive had acknowledged on others; each FUA write makes
/// itself durable.
#[test]
fn a_flush_covers_what_other_connections_were_answered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let layer = registry::named("media-cache").expect("it is registered");
    let drive = format!("{},host.write_cache_bytes=4194304", small_drive(folder.path(), layer));
    let image = image(folder.path(), &drive);
    let mut server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(&server.socket)).collect();
    const BYTES: u64 = 4096;
    for number in 0..60 {
        assert_eq!(clients[number as usize % 2].write(number * 5 * BYTES, &[7; BYTES as usize]), 0);
    }
    // The third connection wrote nothing itself.
    assert_eq!(clients[2].ask(FLUSH, 0, 0, 0, &[]), 0);
    assert_eq!(clients[0].ask(WRITE, FUA, 400 * BYTES, BYTES as u32, &[7; BYTES as usize]), 0);
    server.kill();
    let server = Server::start(folder.path(), &[&image, "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    for place in (0..60).map(|number| number * 5).chain([400]) {
        let bytes = client.read(place * BYTES, BYTES as u32).expect("it can be read");
        assert!(bytes.iter().all(|&byte| byte == 7), "block {place} was flushed, and is gone");
    }
    server.stop();
}
