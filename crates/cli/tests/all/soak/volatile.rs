//! Goal: a volatile cache is as volatile at `--time none` as at `real`, since hosts test their flushes with it. Method:
//! a hundred scattered 4 KiB writes into a cache that holds far more, and SIGKILL as soon as the last is answered;
//! after reopening, at least 95 of the writes are lost. A flush before the writes shows that older data is kept.
//!
//! At `real` a drive writes back whenever its host pauses for a millisecond, so the number of lost writes depends on
//! the speed of this machine. So there the difference to the 95 must be explained by the writes that the engine without
//! data writes back, given the times at which the client sent, was answered and killed. `--time none` waits for a pause
//! of a tenth of a second; a run in which the machine itself paused as long is no run of writes in a row, and is
//! repeated.

use std::time::{Duration, Instant};

use imbrex_disk::{Command, Profile, SimDuration, SimTime};
use imbrex_sim::{Drive, DriveSpec, Engine, Inbox, Options, Stepped, Unobserved};
use imbrex_testkit::nbd_client::WRITE;
use imbrex_testkit::writer::Moment;
use imbrex_testkit::{Client, Contents, Server, Work, Writer};
use imbrex_trace::{Request, When};

use super::drives::*;

const WRITES: u64 = 100;
const LOST_MIN: u64 = 95;
const CACHE: &str = "host.write_cache_bytes=67108864";
/// Pauses of the client below this length do not count at `--time none`, which waits for a tenth of a second. Data
/// written before a longer pause may have been written back.
const PAUSE: Duration = Duration::from_millis(50);
/// Largest number of runs, on a machine that is busy with other things.
const RUNS: u32 = 8;

/// Result of a run.
struct Run {
    /// Number of writes that the kill lost.
    lost: u64,
    /// Times at which each write was sent and answered, and at which the server was gone, counted from the first.
    times: Vec<(Duration, Duration)>,
    gone: Duration,
    /// First sectors of the writes, and number of sectors of each.
    places: Vec<u64>,
    block: u64,
}

impl Run {
    /// Returns, for each write, an upper bound on the time without requests after it.
    fn pauses(&self) -> impl DoubleEndedIterator<Item = Duration> + ExactSizeIterator + '_ {
        let until = |index: usize| self.times.get(index + 1).map_or(self.gone, |&(_, answered)| answered);
        (0..self.times.len()).map(move |index| until(index) - self.times[index].0)
    }

    fn longest_pause(&self) -> Duration {
        self.pauses().max().expect("there are writes")
    }

    /// Returns the number of writes before the last pause in which they may have been written back.
    fn before_a_pause(&self) -> u64 {
        self.pauses().rposition(|pause| pause >= PAUSE).map_or(0, |last| last as u64 + 1)
    }

    /// Returns the number of writes that the engine would have written back by the end, if they arrived when they were
    /// sent, or when they were answered.
    fn written_back(&self, drive: &str) -> u64 {
        let dirty = [false, true].map(|is_late| {
            let at = |&(sent, answered): &(Duration, Duration)| if is_late { answered } else { sent };
            dirty_after(drive, &self.places, self.block, self.times.iter().map(at), self.gone)
        });
        WRITES - dirty[0].min(dirty[1])
    }
}

/// Returns how many of the writes that arrive at these times are dirty at the end, in an engine without data.
fn dirty_after(drive: &str, places: &[u64], block: u64, times: impl Iterator<Item = Duration>, end: Duration) -> u64 {
    let spec = DriveSpec::parse(&format!("{drive}:{CACHE}")).expect("words of a drive");
    let profile = Profile::named(&spec.profile).expect("a built-in profile");
    let plain = Drive::build(&spec, &profile).expect("it makes a drive");
    let options = Options::live(&plain);
    let mut engine = Engine::new(plain, options, Inbox::default(), Unobserved);
    let at = |wall: Duration| SimTime::ZERO + SimDuration(1_000_000 + wall.as_nanos() as u64);
    for (&place, time) in places.iter().zip(times) {
        let command = Command::write(place, block as u32);
        engine.submit(Request { when: When::At(at(time)), device: 0, command });
    }
    while engine.step(at(end)).expect("an inbox does not fail") == Stepped::Worked {}
    engine.dirty().0 / block
}

/// Writes, and kills the server at the last answer.
fn run_at(drive: &str, time: &str) -> Run {
    let image = Image::create(&format!("{drive}:{CACHE}"));
    let block = 4096 / u64::from(image.sector_bytes);
    let contents = Contents { stamped_in: 1, ..image.contents(seed()) };
    let work = Work { sectors: (block, block), place_sectors: block, ..image.work() };
    let mut writer = Writer::new(contents, work);
    let mut server = Server::start(&program(), image.folder(), &[image.word(), "--time", time]);
    let mut client = Client::connect(&server.socket);
    let gap = client.capacity_bytes / u64::from(image.sector_bytes) / WRITES / block * block;
    let place = |number: u64| number * gap..number * gap + block;
    for number in [0, WRITES / 2] {
        writer.send(&mut client, WRITE, 0, place(number)).expect("the server takes writes");
    }
    writer.flush(&mut client).expect("the server flushes");
    let (begun, mut times) = (Instant::now(), Vec::new());
    for number in 0..WRITES {
        let sent = begun.elapsed();
        writer.send(&mut client, WRITE, 0, place(number)).expect("the server takes writes");
        writer.drain(&mut client).unwrap_or_else(|ended| panic!("{drive} at {time}: {ended}; {}", server.log()));
        times.push((sent, begun.elapsed()));
    }
    server.kill();
    let gone = begun.elapsed();
    let server = Server::start(&program(), image.folder(), &[image.word(), "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let verdict = writer.look(&mut client, Moment::AfterCut).expect("it can be read");
    assert_eq!(verdict.lost, 0, "{drive} at {time}: {verdict}; {}", server.log());
    assert_eq!(verdict.reverted % block, 0, "{drive} at {time}: a write of {block} sectors was torn");
    let places = (0..WRITES).map(|number| place(number).start).collect();
    Run { lost: verdict.reverted / block, times, gone, places, block }
}

/// Runs until the machine let the writes arrive in a row. Returns the failure if too many writes were kept. A machine
/// that never does so is no failure: in each run at `none` only the writes after the last pause are judged.
fn judged_at(drive: &str, time: &str) -> Result<(), String> {
    let mut kept = String::new();
    for _ in 0..RUNS {
        let run = run_at(drive, time);
        let excused = if time == "real" { run.written_back(drive) } else { run.before_a_pause() };
        kept = format!("{drive} at {time}: {} of {WRITES} unflushed writes lost", run.lost);
        eprintln!(
            "{kept}, longest pause {:.1} ms, {excused} may have been written back",
            run.longest_pause().as_secs_f64() * 1e3
        );
        let is_right = run.lost + excused >= LOST_MIN;
        if time == "none" && !is_right {
            return Err(kept);
        }
        if is_right && (time == "real" || excused == 0) {
            return Ok(());
        }
    }
    if time == "none" {
        return Ok(());
    }
    Err(kept)
}

fn is_lost_at(drives: &[&str], times: &[&str]) {
    let mut kept = Vec::new();
    for drive in drives {
        for time in times {
            kept.extend(judged_at(drive, time).err());
        }
    }
    assert!(kept.is_empty(), "{}", kept.join("; "));
}

#[test]
fn a_kill_takes_what_the_volatile_cache_holds() {
    is_lost_at(&["imr-1t", "cmr-7200"], &["none", "real"]);
}

#[test]
#[ignore = "opens drives of terabytes again and again"]
fn long_soak_a_kill_takes_what_any_volatile_cache_holds() {
    is_lost_at(&["cassuto-307g", "emulated-smr-3", "seagate-st5000as0011", "imr-20t"], &["none", "real"]);
}
