//! The inputs that a trace is read from: a stream, a file or bytes in memory. They are decompressed while they are
//! read.
//!
//! The crate opens no files: the caller passes a reader, and a name for error messages.
//!
//! Invariants:
//! 1. Compression is recognised by magic numbers, never by the name. The members of a gzip file, the frames of a zstd
//!    file, and the streams of an xz or bzip2 file are read one after another as one trace.
//! 2. Memory is constant: [`HEAD_BYTES`] to recognise the format by, and the buffers of the decompressor.
//! 3. A read that ends inside a compressed stream is an error, never the end of the trace.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use bytes::Bytes;

use crate::members;
use crate::request::TraceError;

/// Maximum number of bytes at the start of the decompressed trace that are inspected to recognise its format.
pub const HEAD_BYTES: usize = 64 * 1024;

/// Bytes of the longest magic number of a compression.
const MAGIC_BYTES: usize = 6;

/// A trace before its format is known: a name for error messages, and the bytes, which may be compressed.
pub struct Input {
    name: String,
    body: Body,
}

enum Body {
    Stream(Box<dyn Read + Send>),
    File(File),
    Bytes(Bytes),
}

/// Input that can be read at any offset, as Parquet needs: an uncompressed regular file, or bytes that the caller holds
/// in memory. A pipe or a compressed trace has no random access.
pub enum RandomAccess {
    /// An open, uncompressed regular file.
    File(File),
    /// Uncompressed bytes in memory.
    Bytes(Bytes),
}

/// A trace that is decompressed while it is read, and whose head has been read.
pub struct Unpacked {
    /// Name of the trace for error messages.
    pub name: String,
    /// The first 64 KiB after decompression ([`HEAD_BYTES`]), or the whole trace if it is shorter.
    pub head: Vec<u8>,
    /// Whether the head is the whole trace: the decompressed trace is shorter than 64 KiB. `false` at exactly that
    /// length.
    pub whole: bool,
    /// Length of the trace in bytes if it is an uncompressed regular file or uncompressed bytes in memory. `None` for a
    /// compressed trace and for a stream.
    pub length_bytes: Option<u64>,
    /// The whole decompressed trace from its first byte, including the head.
    pub contents: Contents,
}

/// The bytes of a decompressed trace.
pub enum Contents {
    /// A stream that can be read once, from front to back.
    Stream(Box<dyn Read + Send>),
    /// An uncompressed file or memory with random access. Used only if the trace begins with Parquet's magic number;
    /// all other traces are streams.
    Random(RandomAccess),
}

impl Input {
    /// Returns the input for a trace that can be read only once, such as standard input or a socket. `name` is the
    /// trace's name in error messages.
    pub fn stream(name: impl Into<String>, reader: impl Read + Send + 'static) -> Input {
        Input { name: name.into(), body: Body::Stream(Box::new(reader)) }
    }

    /// Returns the input for a trace in an open file. A regular file is read from its start, whatever its position. A
    /// pipe or a device opened as a file is read as a stream from its position. `name` is the trace's name in error
    /// messages.
    pub fn file(name: impl Into<String>, file: File) -> Input {
        let regular = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let body = if regular { Body::File(file) } else { Body::Stream(Box::new(file)) };
        Input { name: name.into(), body }
    }

    /// Returns the input for a trace in memory. `name` is the trace's name in error messages.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Bytes>) -> Input {
        Input { name: name.into(), body: Body::Bytes(bytes.into()) }
    }

    /// Returns the name of the trace for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Recognises the compression (gzip, zstd, xz, bzip2 or none) by its magic number, reads and decompresses the head,
    /// and prepares the whole trace for reading. An empty input is an empty trace.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or if the compressed data of the head are damaged or cut short.
    pub fn unpack(self) -> Result<Unpacked, TraceError> {
        let name = self.name;
        let failed = |cause| TraceError::caused(name.clone(), "cannot be read", cause);
        let (mut reader, random) = self.body.split().map_err(failed)?;
        let magic = read_up_to(&mut reader, MAGIC_BYTES).map_err(failed)?;
        let compression = compression_of(&magic);
        let length_bytes = random.as_ref().filter(|_| compression.is_none()).map(RandomAccess::length_bytes);
        let mut reader = compression.unpacker(Box::new(Cursor::new(magic).chain(reader))).map_err(failed)?;
        let head = read_up_to(&mut reader, HEAD_BYTES).map_err(|cause| unpacking_failed(&name, 0, cause))?;
        let whole = head.len() < HEAD_BYTES;
        let contents = match random {
            Some(random) if compression.is_none() && head.starts_with(b"PAR1") => Contents::Random(random),
            _ => Contents::Stream(Box::new(Cursor::new(head.clone()).chain(reader))),
        };
        Ok(Unpacked { name, head, whole, length_bytes, contents })
    }
}

impl Body {
    /// Returns a reader of the whole trace from the front, and the random access to it where the input has one.
    fn split(self) -> io::Result<(Box<dyn Read + Send>, Option<RandomAccess>)> {
        match self {
            Body::Stream(reader) => Ok((reader, None)),
            Body::File(file) => {
                let mut reader = file.try_clone()?;
                reader.seek(SeekFrom::Start(0))?;
                Ok((Box::new(reader), Some(RandomAccess::File(file))))
            }
            Body::Bytes(bytes) => Ok((Box::new(Cursor::new(bytes.clone())), Some(RandomAccess::Bytes(bytes)))),
        }
    }
}

impl RandomAccess {
    fn length_bytes(&self) -> u64 {
        match self {
            RandomAccess::File(file) => file.metadata().map_or(0, |metadata| metadata.len()),
            RandomAccess::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// A compression that this module can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compression {
    None,
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    fn is_none(self) -> bool {
        self == Compression::None
    }

    fn unpacker(self, packed: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::None => packed,
            Compression::Gzip => Box::new(members::GzipMembers::new(packed)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
            Compression::Xz => Box::new(members::XzStreams::new(packed)),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(packed)),
        })
    }
}

fn compression_of(magic: &[u8]) -> Compression {
    match magic {
        [0x1f, 0x8b, 0x08, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Compression::Bzip2,
        _ => Compression::None,
    }
}

/// Reads the next `length` bytes, or fewer where the stream ends.
fn read_up_to(reader: &mut impl Read, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(length as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the error for a read that failed `offset` bytes into the decompressed trace.
pub(crate) fn unpacking_failed(name: &str, offset: u64, cause: io::Error) -> TraceError {
    let reason = match cause.kind() {
        io::ErrorKind::UnexpectedEof => "the compressed stream ends too early: the file is cut short",
        io::ErrorKind::InvalidData if members::is_trailing(&cause) => {
            "there is more behind the end of the compressed stream"
        }
        _ => "cannot be read further",
    };
    TraceError::caused(format!("{name}, byte {offset} (unpacked)"), reason, cause)
}

#[cfg(test)]
mod tests {
    //! Goal: every compression yields the bytes that were packed; a cut stream is an error. Method: pack with the
    //! libraries' own encoders, in several members, and compare bytes.

    use std::io::Write;

    use super::*;

    const TEXT: &[u8] = b"a trace of several lines\nand another\n";

    fn packed(compression: Compression) -> Vec<u8> {
        match compression {
            Compression::None => TEXT.to_vec(),
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(TEXT).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Zstd => zstd::encode_all(TEXT, 1).unwrap(),
            Compression::Xz => {
                let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
                encoder.write_all(TEXT).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(TEXT).unwrap();
                encoder.finish().unwrap()
            }
        }
    }

    const PACKED: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

    #[test]
    fn members_follow_one_another() {
        for compression in PACKED {
            let twice = packed(compression).repeat(2);
            let unpacked = Input::bytes("twice", twice).unpack().unwrap();
            assert_eq!(unpacked.head, TEXT.repeat(2), "{compression:?}");
            assert!(unpacked.whole);
        }
    }

    #[test]
    fn a_cut_stream_is_an_error() {
        for compression in PACKED {
            let mut bytes = packed(compression);
            bytes.truncate(bytes.len() - 9);
            let error = Input::bytes("cut", bytes).unpack().map(|unpacked| unpacked.head).unwrap_err();
            assert!(error.to_string().starts_with("cut, byte 0"), "{compression:?}: {error}");
        }
    }
}
