//! A wrapper that stops writing to a medium after the first failed flush. A kernel that failed to write pages back
//! marks them clean and may drop them, so a second flush would succeed without them. After the first failure, every
//! write and flush fails; reads still work.
//!
//! Invariants:
//! 1. After a failed flush nothing reaches the wrapped medium, and nothing is retried.

use std::io;
use std::sync::Arc;

use super::Media;
use super::host_file::HostFile;

/// A wrapped medium, and the failure of its first failed flush or sync.
#[derive(Debug)]
pub(crate) struct FailStop<M> {
    below: M,
    /// Kind and message of the first failure of a flush.
    failed: Option<(io::ErrorKind, String)>,
}

impl<M> FailStop<M> {
    /// Wraps `below`, without a failure yet.
    pub(crate) fn new(below: M) -> FailStop<M> {
        FailStop { below, failed: None }
    }

    /// Returns the wrapped medium.
    pub(crate) fn below(&self) -> &M {
        &self.below
    }

    /// Returns the wrapped medium, for tests that cut or damage it.
    pub(crate) fn below_mut(&mut self) -> &mut M {
        &mut self.below
    }

    /// Unwraps the medium.
    pub(crate) fn into_below(self) -> M {
        self.below
    }

    /// Returns an error if a flush has failed.
    fn check(&self) -> io::Result<()> {
        match &self.failed {
            Some((kind, words)) => {
                Err(io::Error::new(*kind, format!("nothing is written since a flush failed: {words}")))
            }
            None => Ok(()),
        }
    }

    fn keep_failure(&mut self, outcome: io::Result<()>) -> io::Result<()> {
        outcome.inspect_err(|error| self.failed = Some((error.kind(), error.to_string())))
    }
}

impl<M: Media> Media for FailStop<M> {
    fn len(&self) -> u64 {
        self.below.len()
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, into)
    }

    fn will_read(&mut self, pieces: &mut dyn Iterator<Item = (u64, usize)>) {
        self.below.will_read(pieces);
    }

    fn lend(&mut self, blocks: &mut dyn Iterator<Item = Arc<Vec<u8>>>) {
        self.below.lend(blocks);
    }

    fn reclaim(&mut self) -> Option<Vec<u8>> {
        self.below.reclaim()
    }

    fn write_at(&mut self, offset: u64, from: &[u8]) -> io::Result<()> {
        self.check()?;
        self.below.write_at(offset, from)
    }

    fn write_together(&mut self, pieces: &[(u64, &[u8])]) -> io::Result<()> {
        self.check()?;
        self.below.write_together(pieces)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        let outcome = self.below.flush();
        self.keep_failure(outcome)
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.below.host_file()
    }

    fn tear_bytes(&self) -> u64 {
        self.below.tear_bytes()
    }

    fn flush_waits(&self) -> bool {
        self.below.flush_waits()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        let outcome = self.below.sync();
        self.keep_failure(outcome)
    }

    fn forget_cached(&mut self) -> io::Result<()> {
        self.below.forget_cached()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::faulty::{Failure, Faulty, Pages, When};
    use crate::media::memory::Memory;

    #[test]
    fn after_a_failed_flush_nothing_is_written_and_no_flush_succeeds() {
        let faulty = Faulty::new(Memory::new(), 1).with(Failure::FlushError(Pages::Kept), When::Operation(1));
        let mut media = FailStop::new(faulty);
        media.write_at(0, &[1; 512]).expect("nothing fails yet");
        media.flush().expect("nothing fails yet");
        media.write_at(512, &[2; 512]).expect("nothing fails yet");
        let failed = media.flush().expect_err("it was planned").to_string();
        for outcome in [media.write_at(0, &[3; 512]), media.write_together(&[(0, &[3])]), media.flush(), media.sync()] {
            let error = outcome.expect_err("a flush has failed").to_string();
            assert!(error.contains("nothing is written since a flush failed") && error.contains(&failed), "{error}");
        }
        let mut read = [0; 1024];
        media.read_at(0, &mut read).expect("reads go on");
        assert_eq!((read[0], read[512]), (1, 2));
    }
}
