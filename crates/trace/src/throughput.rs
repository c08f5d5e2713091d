//! Measurement of how fast traces are read: makes a trace and reads it to its end. The caller measures the time.

use imbrex_units::{Operation, SimTime};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::request::{Source, TraceError};

/// Totals of the requests that [`drain`] read. They depend on every request, so that a compiler cannot optimise the
/// reading away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Number of requests of all kinds, including flushes and trims.
    pub requests: u64,
    /// Number of writes among the requests read, with or without forced unit access.
    pub writes: u64,
    /// Total length of all requests read, including trims, in sectors of 512 bytes.
    pub sectors: u64,
}

/// Reads `source` to its end and returns the totals of its requests. Passes the time 0 to every call of
/// [`Source::next`].
///
/// # Errors
///
/// The first error of `source`.
pub fn drain(source: &mut dyn Source) -> Result<Drained, TraceError> {
    let mut drained = Drained::default();
    while let Some(request) = source.next(SimTime::ZERO)? {
        drained.requests += 1;
        drained.writes += u64::from(request.command.operation == Operation::Write);
        drained.sectors += u64::from(request.command.sectors);
    }
    Ok(drained)
}

/// Returns the text of a made-up trace in the MSR Cambridge format: `lines` lines of reads and writes on one device,
/// whose times never decrease. About five eighths are writes; sizes are 512 bytes to 64 KiB. Equal seeds give equal
/// text.
pub fn msr_lines(lines: usize, seed: u64) -> Vec<u8> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut ticks = 128_166_372_003_061_629u64;
    let mut text = Vec::with_capacity(lines * 56);
    for _ in 0..lines {
        let bits = random.next_u64();
        ticks += bits % 100_000;
        let word = if bits >> 20 & 7 < 5 { "Write" } else { "Read" };
        let offset = (bits >> 24) % (1 << 28) * 512;
        let size = [512, 4096, 4096, 4096, 8192, 16_384, 32_768, 65_536][(bits >> 60 & 7) as usize];
        let response = (bits >> 30) % 100_000;
        text.extend_from_slice(format!("{ticks},hm,0,{word},{offset},{size},{response}\n").as_bytes());
    }
    text
}

#[cfg(test)]
mod tests {
    //! Goal: the trace used for measurements is well-formed. Method: read it and compare with a parse by the standard
    //! library.

    use super::*;
    use crate::{Input, TraceOptions, open};

    #[test]
    fn measured_lines_are_read_in_full() {
        let text = msr_lines(5000, 1);
        let drained =
            drain(&mut *open(Input::bytes("t", text.clone()), &TraceOptions::default()).unwrap().source).unwrap();
        let text = String::from_utf8(text).unwrap();
        let field = |line: &str, place: usize| line.split(',').nth(place).unwrap().to_string();
        let sectors = text.lines().map(|line| field(line, 5).parse::<u64>().unwrap() / 512).sum();
        let writes = text.lines().filter(|line| field(line, 3) == "Write").count() as u64;
        assert_eq!(drained, Drained { requests: 5000, writes, sectors });
    }
}
