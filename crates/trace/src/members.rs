//! Reads the members of a gzip file, or the streams of an xz file, one after another. Zeros after the last member are
//! padding, as in gzip(1) and xz(1). Other bytes there are an error, distinct from the error for a file that was cut
//! short.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;

type Packed = BufReader<Box<dyn Read + Send>>;

/// The error for bytes after the last member that are not padding.
#[derive(Debug)]
struct Trailing {
    remedy: &'static str,
}

impl fmt::Display for Trailing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.remedy)
    }
}

impl std::error::Error for Trailing {}

/// Returns whether `error` reports bytes after the last member.
pub(crate) fn is_trailing(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Trailing>())
}

/// A decoder of one member.
pub(crate) trait Member: Read + Sized {
    /// First byte of every member.
    const FIRST_BYTE: u8;
    /// Text of the error for bytes after the last member, with the remedy.
    const REMEDY: &'static str;

    /// Returns a decoder for the member that begins at the position of `packed`.
    fn begin(packed: Packed) -> Self;

    /// Returns the input after the member. The member must have been read to its end.
    fn behind(self) -> Packed;
}

impl Member for GzDecoder<Packed> {
    const FIRST_BYTE: u8 = 0x1f;
    const REMEDY: &'static str = "not of gzip: remove those bytes, or `zcat` the file first";

    fn begin(packed: Packed) -> Self {
        GzDecoder::new(packed)
    }

    fn behind(self) -> Packed {
        self.into_inner()
    }
}

impl Member for XzDecoder<Packed> {
    const FIRST_BYTE: u8 = 0xfd;
    const REMEDY: &'static str = "not of xz: remove those bytes, or `xzcat` the file first";

    fn begin(packed: Packed) -> Self {
        XzDecoder::new(packed)
    }

    fn behind(self) -> Packed {
        self.into_inner()
    }
}

/// A reader of all members as one stream.
pub(crate) struct Members<M> {
    /// Decoder of the current member; `None` at the end of the file.
    member: Option<M>,
}

/// Reader of the members of a gzip file.
pub(crate) type GzipMembers = Members<GzDecoder<Packed>>;

/// Reader of the streams of an xz file.
pub(crate) type XzStreams = Members<XzDecoder<Packed>>;

impl<M: Member> Members<M> {
    /// Returns a reader of all members of `packed`.
    pub(crate) fn new(packed: Box<dyn Read + Send>) -> Members<M> {
        Members { member: Some(M::begin(BufReader::new(packed))) }
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            self.member = match self.member.take() {
                Some(ended) => next_member(ended.behind())?,
                None => None,
            };
        }
        Ok(0)
    }
}

/// Skips zeros and returns a decoder for the next member. Returns `None` at the end of the file.
fn next_member<M: Member>(mut packed: Packed) -> io::Result<Option<M>> {
    loop {
        let rest = packed.fill_buf()?;
        match rest.first() {
            None => return Ok(None),
            Some(0) => {
                let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                packed.consume(zeros);
            }
            Some(&byte) if byte == M::FIRST_BYTE => return Ok(Some(M::begin(packed))),
            Some(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, Trailing { remedy: M::REMEDY })),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(part: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(part).expect("there is memory");
        encoder.finish().expect("there is memory")
    }

    fn xz(part: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(part).expect("there is memory");
        encoder.finish().expect("there is memory")
    }

    fn unpacked(is_xz: bool, behind: &[u8]) -> io::Result<Vec<u8>> {
        let pack = if is_xz { xz } else { gzip };
        let packed = [pack(b"one "), pack(b"two"), behind.to_vec()].concat();
        let packed: Box<dyn Read + Send> = Box::new(io::Cursor::new(packed));
        let mut bytes = Vec::new();
        match is_xz {
            true => XzStreams::new(packed).read_to_end(&mut bytes),
            false => GzipMembers::new(packed).read_to_end(&mut bytes),
        }
        .map(|_| bytes)
    }

    #[test]
    fn members_follow_each_other_and_padding_is_none() {
        for is_xz in [false, true] {
            assert_eq!(unpacked(is_xz, b"").expect("it is whole"), b"one two");
            assert_eq!(unpacked(is_xz, &[0; 20_000]).expect("it is padded"), b"one two");
        }
    }

    #[test]
    fn what_is_behind_is_told_from_a_file_cut_short() {
        for is_xz in [false, true] {
            for behind in [&b"junk\n"[..], b"\0\0junk", &[7; 20_000]] {
                assert!(is_trailing(&unpacked(is_xz, behind).expect_err("it is no member")), "{behind:?}");
            }
        }
        for (is_xz, head) in [(false, &[0x1f, 0x8b, 0x08, 0, 0][..]), (true, &[0xfd, b'7', b'z', b'X', b'Z'])] {
            let cut = unpacked(is_xz, head).expect_err("a member's head is cut");
            assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
            assert!(!is_trailing(&cut));
        }
    }
}
