//! Goal: at every pace a kill loses only the contents of the volatile cache: data that was flushed, or written with
//! FUA, is present. Method: rounds of seeded small writes into few places, so that each is overwritten again and again,
//! with flushes and FUA between, at `--time none`, `10x` and `real`; SIGKILL with requests in flight; then all sectors
//! are compared. The comparison runs at `none`, since reading takes simulated time.

use imbrex_testkit::writer::{Moment, Verdict};
use imbrex_testkit::{Client, Contents, Random, Server, Work, Writer};

use super::drives::*;

/// Drives with a volatile cache: one that has it by its profile, others that are given one.
const DRIVES: [&str; 4] = [
    "imr-1t",
    "cmr-7200:host.write_cache_bytes=67108864",
    "cassuto-307g:host.write_cache_bytes=67108864",
    "seagate-st5000as0011:host.write_cache_bytes=67108864",
];

/// Kills the drive `rounds` times at the pace. Returns the verdict of the comparisons.
fn kill_at(drive: &str, time: &str, rounds: u64) -> (Verdict, u64) {
    let image = Image::create(drive);
    let contents = Contents { stamped_in: 1, ..image.contents(seed()) };
    let block = 4096 / u64::from(image.sector_bytes);
    let work = Work {
        sectors: (block, 4 * block),
        whole_in: 0,
        places: 48,
        place_sectors: 8 * block,
        depth: 8,
        flush_in: 30,
        fua_in: 20,
        zeroes_in: 20,
        read_in: 0,
        ..image.work()
    };
    let mut writer = Writer::new(contents, work);
    let mut random = Random::new(seed() ^ 0x4b11);
    let mut all = Verdict::default();
    for _ in 0..rounds {
        let mut server = Server::start(&program(), image.folder(), &[image.word(), "--time", time]);
        let mut client = Client::connect(&server.socket);
        for _ in 0..50 + random.below(250) {
            writer.step(&mut client).unwrap_or_else(|ended| panic!("{drive} at {time}: {ended}; {}", server.log()));
        }
        std::thread::sleep(std::time::Duration::from_micros(random.below(5000)));
        server.kill();
        writer.after_kill(&mut client);
        let mut server = Server::start(&program(), image.folder(), &[image.word(), "--time", "none"]);
        let mut client = Client::connect(&server.socket);
        let verdict = writer.look(&mut client, Moment::AfterCut);
        all.add(verdict.unwrap_or_else(|ended| panic!("{drive} at {time}: {ended}; {}", server.log())));
        server.kill();
    }
    (all, writer.tally.writes)
}

fn kill_rounds(drives: &[&str], rounds: u64) {
    let mut lost = Vec::new();
    eprintln!(
        "| drive | time | kills | writes | sectors compared | durable lost | volatile lost |\n|---|---|---|---|---|---|---|"
    );
    for drive in drives.iter().filter(|drive| is_wanted(drive)) {
        for time in ["none", "10x", "real"] {
            let (verdict, writes) = kill_at(drive, time, rounds);
            let Verdict { sectors, lost: durable, reverted, .. } = &verdict;
            eprintln!("| {drive} | {time} | {rounds} | {writes} | {sectors} | {durable} | {reverted} |");
            if verdict.lost > 0 {
                lost.push(format!("{drive} at {time}: {verdict}"));
            }
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn what_was_flushed_outlives_kills_at_every_pace() {
    kill_rounds(&DRIVES[..1], 2);
}

#[test]
#[ignore = "takes minutes: twenty kills of each drive at each pace"]
fn long_soak_what_was_flushed_outlives_kills_at_every_pace() {
    kill_rounds(&DRIVES, from_environment("IMBREX_KILL_ROUNDS", 20.0) as u64);
}
