//! Goal: a drive loses nothing in long use. Method: rounds of seeded work at `--time none` until a given amount of
//! platter was passed over, padding and cleaning counted, according to the server's own figures. Each round ends in
//! SIGKILL with requests in flight, or in an orderly stop, and the next begins by comparing all sectors ever written.
//! `drive check` must find no damage now and then and at the end, and the image must stay below 10 GB.
//!
//! The short form does a small part for three drives; the long one 100 GiB, or ten times the platters of a smaller
//! drive, for all.

use std::time::{Duration, Instant};

use imbrex_testkit::program::disk_bytes;
use imbrex_testkit::writer::{Ended, Moment, Verdict};
use imbrex_testkit::{Client, Random, Server, Writer, ZoneWriter};

use super::drives::*;

const GIB: f64 = (1u64 << 30) as f64;
/// Rounds in the whole.
const ROUNDS: u64 = 16;
/// Bound on the space of the image on the host's disk.
const IMAGE_BYTES_MAX: u64 = 10_000_000_000;
/// Number of zones of a zoned drive that are written, and number of zones that are open at a time.
const ZONES: usize = 16;
const ZONES_OPEN: usize = 6;
/// Interval at which the server is asked for its progress.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Results of a drive: a row of the table.
#[derive(Debug, Default)]
struct Row {
    drive: String,
    passed_bytes: u64,
    kills: u64,
    stops: u64,
    checks: u64,
    writes: u64,
    compared: Verdict,
    image_bytes_max: u64,
    seconds: f64,
    /// The reason for an early end.
    failure: Option<String>,
}

impl Row {
    fn told(&self) -> String {
        let outcome = self.failure.as_deref().unwrap_or("ok");
        format!(
            "| {} | {:.1} | {} | {} | {} | {} | {} | {} | {:.2} | {:.0} | {} |",
            self.drive,
            self.passed_bytes as f64 / GIB,
            self.kills,
            self.stops,
            self.checks,
            self.writes,
            self.compared.sectors,
            self.compared.lost,
            self.image_bytes_max as f64 / GIB,
            self.seconds,
            outcome.lines().next().unwrap_or_default(),
        )
    }
}

const HEAD: &str = "| drive | GiB passed | kills | stops | checks | writes | sectors compared | lost | image GiB | wall s | outcome |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|";

/// The writer: anywhere on the drive, or as the host of a zoned drive.
enum Host {
    Free(Writer),
    Zoned(ZoneWriter),
}

impl Host {
    fn new(image: &Image) -> Host {
        let writer = Writer::new(image.contents(seed()), image.work());
        if image.layer != "zoned" {
            return Host::Free(writer);
        }
        let zones = program().zones(&image.path);
        let sequential = zones.into_iter().filter(|zone| zone.is_sequential).take(ZONES).collect();
        Host::Zoned(ZoneWriter::new(writer, sequential, ZONES_OPEN))
    }

    fn step(&mut self, client: &mut Client) -> Result<(), Ended> {
        match self {
            Host::Free(writer) => writer.step(client),
            Host::Zoned(zoned) => zoned.step(client),
        }
    }

    fn after_kill(&mut self, client: &mut Client) {
        match self {
            Host::Free(writer) => writer.after_kill(client),
            Host::Zoned(zoned) => zoned.after_kill(client),
        }
    }

    fn writer(&mut self) -> &mut Writer {
        match self {
            Host::Free(writer) => writer,
            Host::Zoned(zoned) => &mut zoned.writer,
        }
    }
}

/// The test of one drive.
struct Soak {
    image: Image,
    host: Host,
    random: Random,
    row: Row,
    begun: Instant,
}

impl Soak {
    fn new(drive: &str) -> Soak {
        let image = Image::create(drive);
        let host = Host::new(&image);
        let row = Row { drive: drive.into(), ..Row::default() };
        Soak { image, host, random: Random::new(seed() ^ 0x50a4), row, begun: Instant::now() }
    }

    /// Runs all rounds and returns the results.
    fn run(mut self, goal_bytes: u64) -> Row {
        let outcome = self.rounds(goal_bytes);
        self.row.failure = outcome.err();
        self.row.writes = self.host.writer().tally.writes;
        self.row.compared.add(std::mem::take(&mut self.host.writer().live));
        self.row.seconds = self.begun.elapsed().as_secs_f64();
        eprintln!("{}", self.row.failure.as_deref().map_or(String::new(), |why| format!("{}: {why}", self.row.drive)));
        self.row
    }

    fn rounds(&mut self, goal_bytes: u64) -> Result<(), String> {
        let mut round = 0;
        while self.row.passed_bytes < goal_bytes {
            let share = goal_bytes / ROUNDS / 2 + self.random.below(goal_bytes / ROUNDS + 1);
            self.round(round, share)?;
            round += 1;
            if round % 4 == 0 {
                self.check()?;
            }
        }
        // The last opening recovers the image after the last kill; then the drive is closed cleanly and must be intact.
        let (server, _client) = self.open()?;
        server.stop()?;
        self.check()
    }

    /// Opens the drive, compares all sectors, works until `share_bytes` of platter were passed over, and ends the
    /// drive.
    fn round(&mut self, round: u64, share_bytes: u64) -> Result<(), String> {
        let begun = Instant::now();
        let (mut server, mut client) = self.open()?;
        let opened = begun.elapsed();
        let mut passed = 0;
        let mut asked = Instant::now();
        while passed < share_bytes {
            self.host.step(&mut client).map_err(|ended| told(ended, &server))?;
            if asked.elapsed() > ASK_EVERY {
                passed = server.platter_bytes();
                asked = Instant::now();
            }
        }
        self.row.passed_bytes += passed;
        let is_kill = round % 4 < 3;
        if is_kill {
            std::thread::sleep(Duration::from_micros(self.random.below(3000)));
            server.kill();
            self.host.after_kill(&mut client);
            self.row.kills += 1;
        } else {
            self.host.writer().drain(&mut client).map_err(|ended| told(ended, &server))?;
            self.host.writer().flush(&mut client).map_err(|ended| told(ended, &server))?;
            drop(client);
            server.stop()?;
            self.row.stops += 1;
        }
        let image_bytes = disk_bytes(&self.image.path);
        self.row.image_bytes_max = self.row.image_bytes_max.max(image_bytes);
        eprintln!(
            "{} round {round}: {:.2} GiB passed, {} writes in all, {} sectors compared in {:.1} s, image {:.2} GiB, {}, {:.1} s",
            self.row.drive,
            self.row.passed_bytes as f64 / GIB,
            self.host.writer().tally.writes,
            self.row.compared.sectors,
            opened.as_secs_f64(),
            image_bytes as f64 / GIB,
            if is_kill { "killed" } else { "stopped" },
            begun.elapsed().as_secs_f64(),
        );
        let live = &self.host.writer().live;
        if live.lost > 0 {
            return Err(format!("read while it ran: {live}"));
        }
        if image_bytes > IMAGE_BYTES_MAX {
            return Err(format!("the image takes {image_bytes} bytes"));
        }
        Ok(())
    }

    /// Starts the server, and compares all sectors ever written.
    fn open(&mut self) -> Result<(Server, Client), String> {
        let words = [self.image.word(), "--time", "none", "--window", "127.0.0.1:0"];
        let server = Server::try_start(&program(), self.image.folder(), &words)?;
        let mut client = Client::connect(&server.socket);
        let verdict = self.host.writer().look(&mut client, Moment::AfterCut).map_err(|ended| told(ended, &server))?;
        let outcome =
            if verdict.lost > 0 { Err(format!("after opening: {verdict}\n{}", server.log())) } else { Ok(()) };
        self.row.compared.add(verdict);
        outcome.map(|()| (server, client))
    }

    fn check(&mut self) -> Result<(), String> {
        let checked = program().check(&self.image.path);
        self.row.checks += 1;
        if checked.code == 0 {
            return Ok(());
        }
        Err(format!("drive check: exit {}, {:?} {}", checked.code, checked.findings, checked.errors))
    }
}

/// Returns the reason why the writer stopped, with the server's messages.
fn told(ended: Ended, server: &Server) -> String {
    let log = server.log();
    format!("{ended}; {}", log.lines().filter(|line| !line.starts_with("serving")).collect::<Vec<_>>().join("; "))
}

/// Tests each drive for its number of GiB, prints the table, and fails if any drive failed.
fn soak<'a>(drives: impl IntoIterator<Item = (&'a str, f64)>) {
    let mut rows: Vec<Row> = Vec::new();
    for (drive, gib) in drives.into_iter().filter(|(drive, _)| is_wanted(drive)) {
        let soak = Soak::new(drive);
        let goal_bytes = ((gib * GIB) as u64).min(soak.image.physical_bytes * 10);
        rows.push(soak.run(goal_bytes));
        eprintln!("{HEAD}\n{}", rows.last().expect("just pushed").told());
    }
    let table: Vec<String> = rows.iter().map(Row::told).collect();
    eprintln!("\n{HEAD}\n{}", table.join("\n"));
    let failed: Vec<&str> = rows.iter().filter(|row| row.failure.is_some()).map(|row| row.drive.as_str()).collect();
    assert!(failed.is_empty(), "lost or refused: {failed:?}");
}

#[test]
fn a_little_of_every_kind_loses_nothing() {
    // A write of the first takes four megabytes of platter.
    soak([("seagate-st5000as0011", 8.0), ("cassuto-307g", 0.5), ("imr-1t", 0.5)]);
}

#[test]
fn a_little_of_what_a_host_manages_loses_nothing() {
    soak([("strict-append", 0.5), ("caveat-1g", 0.5)]);
}

/// Returns each drive with its number of GiB in the long form.
fn long<'a>(drives: impl IntoIterator<Item = &'a &'a str>) -> impl Iterator<Item = (&'a str, f64)> {
    let gib = from_environment("IMBREX_SOAK_GIB", 100.0);
    drives.into_iter().map(move |&drive| (drive, gib))
}

#[test]
#[ignore = "takes minutes a drive: 100 GiB of platter each"]
fn long_soak_of_what_a_host_manages_loses_nothing() {
    soak(long(&HOST_MANAGED));
}

#[test]
#[ignore = "takes minutes a drive: 100 GiB of platter each"]
fn long_soak_a_hundred_gibibytes_lose_nothing() {
    let others = std::env::var("IMBREX_SOAK_LAYERS").is_ok_and(|word| word == "1");
    soak(long(PROFILES.iter().chain(LAYERS.iter().filter(|_| others))));
}
