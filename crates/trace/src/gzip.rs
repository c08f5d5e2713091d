//! The members of a gzip file, read one after another. Zeros behind the last one are padding, as gzip(1) has it; anything
//! else there is an error of its own, and not a file that was cut short.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

type Packed = BufReader<Box<dyn Read + Send>>;

/// What is behind the last member.
#[derive(Debug)]
struct Trailing;

impl fmt::Display for Trailing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("not of gzip: cut it off, or `zcat` the file first")
    }
}

impl std::error::Error for Trailing {}

/// Whether `error` says that something is behind the last member.
pub fn is_trailing(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Trailing>())
}

/// All members as one stream.
pub struct Members {
    /// None at the end.
    member: Option<GzDecoder<Packed>>,
}

impl Members {
    /// Those of `packed`.
    pub fn new(packed: Box<dyn Read + Send>) -> Members {
        Members { member: Some(GzDecoder::new(BufReader::new(packed))) }
    }
}

impl Read for Members {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            self.member = match self.member.take() {
                Some(ended) => next_member(ended.into_inner())?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// The member that begins where one has ended, if there is one.
fn next_member(mut packed: Packed) -> io::Result<Option<GzDecoder<Packed>>> {
    loop {
        let rest = packed.fill_buf()?;
        match rest.first() {
            None => return Ok(None),
            Some(0) => {
                let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                packed.consume(zeros);
            }
            Some(0x1f) => return Ok(Some(GzDecoder::new(packed))),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, Trailing)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn unpacked(behind: &[u8]) -> io::Result<Vec<u8>> {
        let mut packed = Vec::new();
        for part in [&b"one "[..], b"two"] {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part).expect("there is memory");
            packed.extend(encoder.finish().expect("there is memory"));
        }
        packed.extend_from_slice(behind);
        let mut bytes = Vec::new();
        Members::new(Box::new(io::Cursor::new(packed))).read_to_end(&mut bytes).map(|_| bytes)
    }

    #[test]
    fn members_follow_each_other_and_padding_is_none() {
        assert_eq!(unpacked(b"").expect("it is whole"), b"one two");
        assert_eq!(unpacked(&[0; 20_000]).expect("it is padded"), b"one two");
    }

    #[test]
    fn what_is_behind_is_told_from_a_file_cut_short() {
        for behind in [&b"junk\n"[..], b"\0\0junk", &[7; 20_000]] {
            assert!(is_trailing(&unpacked(behind).expect_err("it is no gzip")), "{behind:?}");
        }
        let cut = unpacked(&[0x1f, 0x8b, 0x08, 0, 0]).expect_err("a member's head is cut");
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        assert!(!is_trailing(&cut));
    }
}
