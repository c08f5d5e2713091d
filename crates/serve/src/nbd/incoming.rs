//! The bytes that a client sends, read with few system calls. One call reads many small requests. A large payload is
//! read straight into its buffer, together with the first bytes after it.
//!
//! Invariants:
//! 1. Every byte is returned once, in the order of arrival.
//! 2. At most [`READ_BUFFER_BYTES`] are read ahead.

use std::io::{self, IoSliceMut, Read};

/// Number of bytes read ahead for small requests: many of them with one call.
pub(super) const READ_BUFFER_BYTES: usize = 256 << 10;
/// Number of bytes read ahead if payloads are large: a part of a payload that was read ahead must be copied.
const AHEAD_OF_PAYLOADS_BYTES: usize = 4 << 10;
/// Number of bytes from which a payload counts as large.
const LARGE_PAYLOAD_BYTES: usize = 32 << 10;

/// A reader with a buffer.
pub(super) struct Incoming<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was read ahead and not yet returned.
    begin: usize,
    end: usize,
    /// Number of bytes that are read ahead now.
    ahead: usize,
}

impl<R: Read> Incoming<R> {
    /// Creates a reader with an empty buffer.
    pub(super) fn new(reader: R) -> Incoming<R> {
        Incoming { reader, buffer: vec![0; READ_BUFFER_BYTES], begin: 0, end: 0, ahead: READ_BUFFER_BYTES }
    }

    /// Returns the bytes that were read ahead.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer[self.begin..self.end]
    }

    /// Adapts the amount of read-ahead to a request with a payload of `bytes` bytes; the next requests may be like it.
    pub(super) fn expect_payload(&mut self, bytes: usize) {
        self.ahead = if bytes >= LARGE_PAYLOAD_BYTES { AHEAD_OF_PAYLOADS_BYTES } else { READ_BUFFER_BYTES };
    }

    /// Waits for input. Returns false at the end of the stream.
    pub(super) fn wait(&mut self) -> io::Result<bool> {
        while self.begin == self.end {
            match self.reader.read(&mut self.buffer[..self.ahead]) {
                Ok(0) => return Ok(false),
                Ok(length) => (self.begin, self.end) = (0, length),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for Incoming<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || !self.wait()? {
            return Ok(0);
        }
        let length = into.len().min(self.end - self.begin);
        into[..length].copy_from_slice(&self.buffer[self.begin..self.begin + length]);
        self.begin += length;
        Ok(length)
    }

    fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        let held = into.len().min(self.end - self.begin);
        into[..held].copy_from_slice(&self.buffer[self.begin..self.begin + held]);
        self.begin += held;
        let mut done = held;
        while done < into.len() {
            // All bytes read ahead have been returned.
            let (rest, ahead) = (&mut into[done..], &mut self.buffer[..self.ahead]);
            let room = rest.len();
            match self.reader.read_vectored(&mut [IoSliceMut::new(rest), IoSliceMut::new(ahead)]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => {
                    done += length.min(room);
                    (self.begin, self.end) = (0, length.saturating_sub(room));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Skips `length` bytes.
pub(super) fn read_past(reader: &mut impl Read, length: u32) -> io::Result<()> {
    let length = u64::from(length);
    let skipped = io::copy(&mut reader.take(length), &mut io::sink())?;
    if skipped < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1 at every boundary. Method: a stream of known bytes that comes in pieces of all sizes, taken in
    //! pieces of all sizes, with and without large payloads.

    use super::*;

    /// Returns at most `at_once` bytes per call, in any number of slices.
    struct Piecemeal {
        left: Vec<u8>,
        at_once: usize,
    }

    impl Read for Piecemeal {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.read_vectored(&mut [IoSliceMut::new(into)])
        }

        fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
            let mut left = self.at_once;
            for slice in into {
                let length = slice.len().min(left).min(self.left.len());
                slice[..length].copy_from_slice(&self.left.drain(..length).collect::<Vec<_>>());
                left -= length;
            }
            Ok(self.at_once - left)
        }
    }

    #[test]
    fn bytes_come_once_and_in_order() {
        let all: Vec<u8> = (0..100_000u32).map(|number| ((number * 31) >> 5) as u8).collect();
        for at_once in [1000, 4096, 5000, 40_000, 1 << 20] {
            for asked in [28, 4096, 33_000] {
                let mut incoming = Incoming::new(Piecemeal { left: all.clone(), at_once });
                let mut taken = Vec::new();
                while taken.len() + asked + 28 <= all.len() {
                    let mut head = [0; 28];
                    assert!(incoming.wait().expect("it does not fail"));
                    incoming.read_exact(&mut head).expect("there is more");
                    incoming.expect_payload(asked);
                    let mut payload = vec![0; asked];
                    incoming.read_exact(&mut payload).expect("there is more");
                    taken.extend_from_slice(&head);
                    taken.extend_from_slice(&payload);
                }
                incoming.read_to_end(&mut taken).expect("it does not fail");
                assert!(taken == all, "{asked} bytes at once, of which {at_once} arrive at a time");
                assert!(!incoming.wait().expect("it does not fail"));
                assert_eq!(
                    incoming.read_exact(&mut [0]).map_err(|error| error.kind()),
                    Err(io::ErrorKind::UnexpectedEof)
                );
            }
        }
    }
}
