//! Finds the numbers in a piece, and the bounds of its changes and entries: the grammar of the format, by widths only.
//! Unknown parts, such as those of a later format, are left out.

use std::ops::Range;

use super::pieces::{Kind, Piece};

/// A number in a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    /// Offset of the first byte.
    pub at: usize,
    /// Number of bytes.
    pub width: usize,
}

impl Field {
    /// Returns the value.
    pub(crate) fn get(&self, bytes: &[u8]) -> u64 {
        bytes[self.at..self.at + self.width].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Sets the value; one that is too large loses its high bytes.
    pub(crate) fn set(&self, bytes: &mut [u8], value: u64) {
        bytes[self.at..self.at + self.width].copy_from_slice(&value.to_le_bytes()[..self.width]);
    }
}

/// Contents of a piece.
#[derive(Clone, Default, Debug)]
pub(crate) struct Parsed {
    /// Numbers.
    pub fields: Vec<Field>,
    /// Changes, or entries of a unit.
    pub items: Vec<Range<usize>>,
    /// Records of a frame, each with the length before it.
    pub records: Vec<Range<usize>>,
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
    parsed: Parsed,
}

/// Returns the contents of `piece`, as far as they are known.
pub(crate) fn of(piece: &Piece) -> Parsed {
    let body = piece.body();
    let mut walk = Walk { bytes: &piece.bytes, at: body.start, end: body.end, parsed: Parsed::default() };
    let heads: &[(usize, usize)] = match piece.kind {
        Kind::Superblock | Kind::ZoneHeader | Kind::Stamp => &[(8, 4)],
        Kind::Header | Kind::Chunk | Kind::Frame => &[(24, 8), (32, 4), (36, 4)],
        Kind::Page => &[(0, 4), (4, 4), (12, 4)],
        Kind::Unit => &[(12, 4), (32, 8), (40, 4)],
    };
    walk.parsed.fields.extend(heads.iter().map(|&(at, width)| Field { at, width }));
    // If parsing ends early, the rest is unknown.
    let _ = match piece.kind {
        Kind::Superblock => walk.superblock(),
        Kind::Header => walk.numbers(&[8, 8, 4, 8]),
        Kind::Chunk => walk.changes(body.end),
        Kind::Frame => walk.records(),
        Kind::Page => walk.numbers(&[4; 40]),
        Kind::ZoneHeader => walk.zone_header(),
        Kind::Unit => walk.entries(),
        Kind::Stamp => walk.stamp(),
    };
    walk.parsed
}

impl Walk<'_> {
    fn number(&mut self, width: usize) -> Option<u64> {
        let field = Field { at: self.at, width };
        if self.at + width > self.end {
            return None;
        }
        self.parsed.fields.push(field);
        self.at += width;
        Some(field.get(self.bytes))
    }

    fn numbers(&mut self, widths: &[usize]) -> Option<()> {
        widths.iter().try_for_each(|width| self.number(*width).map(drop))
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes).filter(|at| *at <= self.end)?;
        Some(())
    }

    /// Parses a byte string; its first and last bytes count as numbers.
    fn text(&mut self, width: usize) -> Option<()> {
        let length = self.number(width)? as usize;
        let from = self.at;
        self.skip(length)?;
        if length > 0 {
            self.parsed.fields.extend([from, self.at - 1].map(|at| Field { at, width: 1 }));
        }
        Some(())
    }

    fn list(&mut self, count: u64, widths: &[usize]) -> Option<()> {
        (0..count).try_for_each(|_| self.numbers(widths))
    }

    fn superblock(&mut self) -> Option<()> {
        self.skip(16)?;
        self.number(4)?;
        self.text(4)?;
        for _ in 0..self.number(4)? {
            self.text(4)?;
            self.text(4)?;
        }
        self.numbers(&[8; 14])?;
        for _ in 0..self.number(4)? {
            self.numbers(&[8, 8, 1, 8])?;
            match self.number(1)? {
                1 => self.numbers(&[8, 4, 4, 4])?,
                2 => self.numbers(&[8, 8])?,
                _ => {}
            }
        }
        self.numbers(&[1, 1, 8, 4, 8])?;
        let known = self.number(4)?;
        self.list(known, &[8])?;
        self.numbers(&[8, 8])?;
        let parts = self.number(4)?;
        self.list(parts, &[1, 8])?;
        self.number(1)?;
        self.numbers(&[8, 8, 8, 1, 8])?;
        // Fields of a later format may follow.
        self.numbers(&[8; 8])
    }

    fn records(&mut self) -> Option<()> {
        while self.at < self.end {
            let from = self.at;
            let length = self.number(4)? as usize;
            let end = self.at.checked_add(length).filter(|end| *end <= self.end)?;
            self.number(8)?;
            self.changes(end)?;
            self.parsed.records.push(from..end);
        }
        Some(())
    }

    fn changes(&mut self, end: usize) -> Option<()> {
        while self.at < end {
            let from = self.at;
            self.change()?;
            self.parsed.items.push(from..self.at);
        }
        Some(())
    }

    fn change(&mut self) -> Option<()> {
        match self.number(1)? {
            1 => self.numbers(&[4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8]),
            2 | 11 => self.numbers(&[4]),
            3 => {
                self.numbers(&[4, 8, 4])?;
                self.text(4)
            }
            4 => self.numbers(&[4, 8]),
            tag @ (5 | 14 | 15 | 19) => {
                self.number(4)?;
                let count = self.number(4)?;
                self.list(count, &[4, 4, 8])?;
                if tag == 15 || tag == 19 { self.numbers(&[4, 4]) } else { Some(()) }
            }
            6 | 8 => {
                self.number(4)?;
                self.text(4)
            }
            7 => {
                self.number(4)?;
                self.text(4)?;
                self.text(4)
            }
            9 => {
                self.number(8)?;
                let count = self.number(4)?;
                self.skip(count as usize * 4)
            }
            10 => {
                self.number(4)?;
                self.layout()
            }
            12 => {
                self.number(1)?;
                self.numbers(&[8, 8, 1])
            }
            13 | 20 => self.numbers(&[8]),
            17 => self.numbers(&[1, 1, 1, 8]),
            16 | 18 => {
                let count = self.number(4)?;
                self.list(count, &[4, 4])
            }
            _ => None,
        }
    }

    fn layout(&mut self) -> Option<()> {
        self.numbers(&[8, 1])?;
        let count = self.number(4)?;
        self.list(count, &[1, 4])
    }

    fn zone_header(&mut self) -> Option<()> {
        self.skip(16)?;
        self.numbers(&[4, 1])?;
        self.numbers(&[8, 1])?;
        let count = self.number(4)?;
        self.list(count, &[1, 4])?;
        self.list(count, &[8, 8])?;
        self.text(4)
    }

    fn entries(&mut self) -> Option<()> {
        while self.at < self.end {
            let from = self.at;
            match self.number(1)? {
                1 => {
                    self.numbers(&[4, 4, 4, 4, 4, 8])?;
                    self.text(1)?;
                }
                2 => {
                    self.numbers(&[4, 4, 4, 4, 4, 4, 8, 8, 8, 1])?;
                    let count = self.number(1)?;
                    self.list(if count >= 254 { 0 } else { count }, &[4, 4])?;
                    self.text(1)?;
                }
                3 => {
                    self.numbers(&[2, 4, 4])?;
                    let count = self.number(2)?;
                    self.skip(count as usize * 4)?;
                }
                _ => return None,
            }
            self.parsed.items.push(from..self.at);
        }
        Some(())
    }

    fn stamp(&mut self) -> Option<()> {
        self.skip(32)?;
        self.numbers(&[1, 8, 8])
    }
}
