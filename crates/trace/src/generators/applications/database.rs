//! A database: reads of pages, and commits. A commit appends to the log with forced unit access (FUA). It also writes
//! back one page, which stands for a page changed by an earlier commit. A checkpoint flushes after a fixed number of
//! commits.
//! Pages have 8 KiB and occupy a tenth of the drive; some are far hotter than others (zipf). The log is a ring of 4 GiB
//! at the front of the drive. All figures are our own choice.

use imbrex_units::Command;

use super::super::distribution::{Distribution, Sampler};
use super::super::error::WorkloadError;
use super::super::random::{Stream, mix};
use super::{Application, Ring, Transactions, check_room, percent, size};
use crate::request::Source;

/// Total number of requests.
const REQUESTS: u64 = 600_000;
/// Sectors of the log, at the front of the drive.
const LOG_SECTORS: u64 = 4 << 21;
const PAGE_SECTORS: u32 = 16;
/// Sizes of log appends in sectors, with shares in percent.
const APPEND_SECTORS: [(u64, u32); 3] = [(60, 8), (30, 16), (10, 64)];
/// Number of commits between two checkpoints.
const CHECKPOINT_COMMITS: u64 = 1000;

struct Database {
    stream: Stream,
    pages: Sampler,
    first_page: u64,
    log: Ring,
    commits: u64,
}

/// Returns the workload on a drive of `device_sectors` sectors.
pub(crate) fn build(device_sectors: u64, seed: u64) -> Result<Box<dyn Source>, WorkloadError> {
    check_room("database", device_sectors)?;
    let pages = device_sectors / 10 / PAGE_SECTORS as u64;
    let database = Database {
        stream: Stream::new(seed, 0),
        pages: Sampler::new(&Distribution::Zipf { theta: 0.9 }, pages, mix(seed)),
        first_page: LOG_SECTORS,
        log: Ring::new(0, LOG_SECTORS),
        commits: 0,
    };
    Ok(Box::new(Transactions::new(database, REQUESTS)))
}

impl Database {
    fn page(&mut self) -> u64 {
        self.first_page + self.pages.sample(&mut self.stream) * PAGE_SECTORS as u64
    }
}

impl Application for Database {
    fn transaction(&mut self, requests: &mut Vec<Command>) {
        if self.stream.chance(percent(70)) {
            let page = self.page();
            return requests.push(Command::read(page, PAGE_SECTORS));
        }
        let sectors = size(&mut self.stream, &APPEND_SECTORS);
        requests.push(Command { fua: true, ..Command::write(self.log.append(sectors), sectors) });
        let page = self.page();
        requests.push(Command::write(page, PAGE_SECTORS));
        self.commits += 1;
        if self.commits.is_multiple_of(CHECKPOINT_COMMITS) {
            requests.push(Command::flush());
        }
    }
}
