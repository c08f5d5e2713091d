//! The commands of the requests in a phase: operation, size and position.
//!
//! Reads, writes and trims each traverse the region independently, as in fio: in a mixed sequential phase, reads and
//! writes both start at the beginning of the region. A sequential request that would cross the end of the region begins
//! again at the start. A random one is moved back into the region. If the region is not a multiple of the block size,
//! the rest at its end is not accessed.
//!
//! Invariants:
//! 1. Every request lies within the region, and is not empty.
//! 2. A walk allocates memory only while it is built.
//! 3. A walk yields at least one request.

use imbrex_units::{Command, Lba, Operation};

use super::distribution::Sampler;
use super::error::WordError;
use super::permutation::Permutation;
use super::quantity::Share;
use super::random::{Stream, mix};
use super::spec::{Job, SECTOR_BYTES};

/// The commands of a phase.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    stream: Stream,
    read_share: Share,
    /// One lane for each operation of the pattern, in the order of [`Job::operations`].
    lanes: Vec<Lane>,
    map: Option<RandomMap>,
    region_first: u64,
    region_sectors: u64,
    /// Sectors that a sequential lane skips after each request.
    stride_sectors: u64,
    /// Number of consecutive requests of a random lane at each random position.
    run_requests: u64,
    fua: bool,
    requests_left: u64,
    sectors_left: u64,
    ends_at_wrap: bool,
    flush_every: u64,
    writes_until_flush: u64,
    flush_due: bool,
}

/// The state of one operation in the walk.
#[derive(Clone, Debug)]
struct Lane {
    operation: Operation,
    /// Block sizes in sectors. The first number of each pair is the sum of the shares of this and all earlier sizes, in
    /// millionths.
    sizes: Vec<(u64, u32)>,
    align_sectors: u64,
    /// Sampler of random positions, and share of requests that go to them. `None` if the pattern is sequential.
    random: Option<(Sampler, Share)>,
    cursor: u64,
    run_left: u64,
}

/// The blocks of a region in a random order without repetition, pass after pass.
#[derive(Clone, Debug)]
struct RandomMap {
    order: Permutation,
    index: u64,
    seed: u64,
}

impl RandomMap {
    fn new(blocks: u64, seed: u64) -> RandomMap {
        RandomMap { order: Permutation::new(blocks, seed), index: 0, seed }
    }

    fn next(&mut self) -> u64 {
        if self.index == self.order.count() {
            self.seed = mix(self.seed);
            *self = RandomMap::new(self.order.count(), self.seed);
        }
        self.index += 1;
        self.order.apply(self.index - 1)
    }
}

impl Walk {
    /// Returns the commands of `job` on a drive of `device_sectors` sectors. `ordinal` is the number of the phase in
    /// the run.
    ///
    /// # Errors
    ///
    /// If the region does not fit on the drive, or a block does not fit in the region.
    pub(super) fn new(job: &Job, device_sectors: u64, seed: u64, ordinal: u64) -> Result<Walk, WordError> {
        let (region_first, region_sectors) = region(job, device_sectors)?;
        let blocks = |bytes: u64| region_sectors / (bytes / SECTOR_BYTES);
        let map = match job.single_size() {
            Some(bytes) if job.random_map && job.pattern.random => {
                Some(RandomMap::new(blocks(bytes), mix(seed).wrapping_add(ordinal)))
            }
            _ => None,
        };
        let bounded = if job.ends_with_region() { region_sectors } else { u64::MAX };
        let sectors_left = match (job.io_bytes, job.single_size()) {
            (0, Some(bytes)) if job.ends_with_region() => blocks(bytes) * (bytes / SECTOR_BYTES),
            (0, _) => bounded,
            (bytes, _) => bytes.div_ceil(SECTOR_BYTES),
        };
        Ok(Walk {
            stream: Stream::new(seed, ordinal),
            read_share: job.read_share,
            lanes: job.operations().iter().map(|&operation| Lane::new(job, operation, region_sectors, seed)).collect(),
            map,
            region_first,
            region_sectors,
            stride_sectors: if job.pattern.random { 0 } else { job.pattern.suffix / SECTOR_BYTES },
            run_requests: if job.pattern.random { job.pattern.suffix.max(1) } else { 1 },
            fua: job.fua,
            requests_left: if job.number_ios == 0 { u64::MAX } else { job.number_ios },
            sectors_left,
            ends_at_wrap: job.ends_with_region() && !job.pattern.random && job.operations().len() == 1,
            flush_every: job.flush_every,
            writes_until_flush: job.flush_every,
            flush_due: false,
        })
    }

    /// Returns whether a flush comes next. A due flush is made even if the phase is over.
    pub(super) fn flush_is_due(&self) -> bool {
        self.flush_due
    }

    /// Returns the next command, or `None` at the end of the phase.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Command> {
        if self.flush_due {
            self.flush_due = false;
            return Some(Command::flush());
        }
        if self.requests_left == 0 || self.sectors_left == 0 {
            return None;
        }
        let index = self.lane();
        let lane = &mut self.lanes[index];
        let (operation, sectors) = (lane.operation, lane.size(&mut self.stream));
        let start = self.start(index, sectors as u64)?;
        self.requests_left -= 1;
        self.sectors_left = self.sectors_left.saturating_sub(sectors as u64);
        let is_write = operation == Operation::Write;
        if is_write && self.flush_every > 0 {
            self.count_write();
        }
        let lba = Lba(self.region_first + start);
        Some(Command { operation, fua: self.fua && is_write, sectors, lba })
    }

    /// Draws the lane of the next request.
    #[inline]
    fn lane(&mut self) -> usize {
        usize::from(self.lanes.len() > 1 && !self.stream.chance(self.read_share))
    }

    fn count_write(&mut self) {
        self.writes_until_flush -= 1;
        if self.writes_until_flush == 0 {
            self.writes_until_flush = self.flush_every;
            self.flush_due = true;
        }
    }

    /// Returns the position in the region of the next request of a lane, or `None` at the end of the only pass.
    #[inline]
    fn start(&mut self, index: usize, sectors: u64) -> Option<u64> {
        let lane = &mut self.lanes[index];
        if let Some(map) = &mut self.map {
            return Some(map.next() * sectors);
        }
        let start = match lane.random_start(&mut self.stream, self.run_requests) {
            Some(start) => start.min(self.region_sectors - sectors),
            None if lane.cursor + sectors <= self.region_sectors => lane.cursor,
            None if self.ends_at_wrap => return None,
            None => 0,
        };
        lane.cursor = start + sectors + self.stride_sectors;
        debug_assert!(start + sectors <= self.region_sectors, "invariant 1: {start} + {sectors}");
        Some(start)
    }

    /// Returns the total number of requests, including flushes. Returns `None` where it is not known in advance.
    /// Ignores `runtime`.
    pub(super) fn expected_requests(&self) -> Option<u64> {
        let requests = self.expected_transfers()?;
        let flushes = match (self.flush_every, self.lanes.as_slice()) {
            (0, _) => 0,
            (every, [lane]) if lane.operation == Operation::Write => requests / every,
            (_, [_]) => 0,
            _ => return None,
        };
        Some(requests + flushes)
    }

    fn expected_transfers(&self) -> Option<u64> {
        if self.sectors_left == u64::MAX {
            return (self.requests_left < u64::MAX).then_some(self.requests_left);
        }
        let sectors = self.lanes[0].sizes[0].1 as u64;
        if self.lanes.iter().any(|lane| lane.sizes.len() > 1 || lane.sizes[0].1 as u64 != sectors) {
            return None;
        }
        let pass = match self.ends_at_wrap {
            true => (self.region_sectors - sectors) / (sectors + self.stride_sectors) + 1,
            false => u64::MAX,
        };
        Some(self.sectors_left.div_ceil(sectors).min(self.requests_left).min(pass))
    }
}

impl Lane {
    fn new(job: &Job, operation: Operation, region_sectors: u64, seed: u64) -> Lane {
        let mut shares_end = 0;
        let sizes = job.sizes.get(operation).iter().map(|size| {
            shares_end += size.share.millionths() as u64;
            (shares_end, (size.bytes / SECTOR_BYTES) as u32)
        });
        let sizes: Vec<(u64, u32)> = sizes.collect();
        let smallest = sizes.iter().map(|&(_, sectors)| sectors as u64).min().expect("a job has a block size");
        let align_sectors = if job.align_bytes == 0 { smallest } else { job.align_bytes / SECTOR_BYTES };
        let random = job.pattern.random.then(|| {
            let blocks = (region_sectors / align_sectors).max(1);
            (Sampler::new(&job.distribution, blocks, mix(seed)), *job.random_share.get(operation))
        });
        Lane { operation, sizes, align_sectors, random, cursor: 0, run_left: 0 }
    }

    #[inline]
    fn size(&self, stream: &mut Stream) -> u32 {
        if let [(_, sectors)] = self.sizes.as_slice() {
            return *sectors;
        }
        let draw = stream.below(Share::MILLIONTHS as u64);
        let chosen = self.sizes.iter().find(|&&(shares_end, _)| draw < shares_end);
        chosen.expect("the sizes' shares add up to the whole").1
    }

    /// Draws a random position, or returns `None` if the request follows its predecessor.
    #[inline]
    fn random_start(&mut self, stream: &mut Stream, run_requests: u64) -> Option<u64> {
        let (sampler, share) = self.random.as_ref()?;
        if self.run_left > 0 {
            self.run_left -= 1;
            return None;
        }
        if !stream.chance(*share) {
            return None;
        }
        self.run_left = run_requests - 1;
        Some(sampler.sample(stream) * self.align_sectors)
    }
}

/// Returns the first sector and the number of sectors of the job's region.
///
/// # Errors
///
/// If the region does not fit on the drive, or a block does not fit in the region.
fn region(job: &Job, device_sectors: u64) -> Result<(u64, u64), WordError> {
    let first = job.offset.sectors(device_sectors);
    let Some(behind) = device_sectors.checked_sub(first) else {
        return Err(WordError::new(
            format!("offset={} lies past the drive's {device_sectors} sectors", job.offset),
            "write a smaller one, or a share such as offset=50%",
        ));
    };
    let sectors = job.size.map_or(behind, |size| size.sectors(device_sectors));
    if sectors > behind {
        return Err(WordError::new(
            format!("its region of {sectors} sectors from {first} on reaches past the drive's {device_sectors}"),
            "write a smaller size, a share such as size=50%, or none for the rest of the drive",
        ));
    }
    let sizes = job.operations().iter().flat_map(|&operation| job.sizes.get(operation));
    let largest = sizes.map(|size| size.bytes).max().expect("a job has a block size") / SECTOR_BYTES;
    if largest > sectors {
        return Err(WordError::new(
            format!("its region of {sectors} sectors does not hold a block of {largest}"),
            "write a larger size or a smaller bs",
        ));
    }
    Ok((first, sectors))
}
