//! Goal: a volatile cache is volatile at `--time none` as at `real`, since that is what hosts test their flushes with. Method: a hundred
//! scattered 4 KiB writes into a cache that holds far more, SIGKILL as soon as the last is answered; opened again, at
//! least 95 of them are gone. A flush before them shows that what is older is kept.

use imbrex_testkit::nbd_client::WRITE;
use imbrex_testkit::writer::Moment;
use imbrex_testkit::{Client, Contents, Server, Work, Writer};

use crate::drives::*;

const WRITES: u64 = 100;
const LOST_MIN: u64 = 95;
const CACHE: &str = "host.write_cache_bytes=67108864";

/// How many of the writes a kill at the last answer takes.
fn lost_at(drive: &str, time: &str) -> u64 {
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
    for number in 0..WRITES {
        writer.send(&mut client, WRITE, 0, place(number)).expect("the server takes writes");
        writer.drain(&mut client).unwrap_or_else(|ended| panic!("{drive} at {time}: {ended}; {}", server.log()));
    }
    server.kill();
    let server = Server::start(&program(), image.folder(), &[image.word(), "--time", "none"]);
    let mut client = Client::connect(&server.socket);
    let verdict = writer.look(&mut client, Moment::AfterCut).expect("it can be read");
    assert_eq!(verdict.lost, 0, "{drive} at {time}: {verdict}; {}", server.log());
    assert_eq!(verdict.reverted % block, 0, "{drive} at {time}: a write of {block} sectors was torn");
    verdict.reverted / block
}

fn is_lost_at(drives: &[&str], times: &[&str]) {
    let mut kept = Vec::new();
    for drive in drives {
        for time in times {
            let lost = lost_at(drive, time);
            eprintln!("{drive} at {time}: {lost} of {WRITES} unflushed writes lost");
            if lost < LOST_MIN {
                kept.push(format!("{drive} at {time}: only {lost} of {WRITES}"));
            }
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
