//! Nearly valid bytes: valid ones, altered at random from a seed. Purely random bytes seldom pass the check of a
//! magic number.
//!
//! Invariants:
//! 1. The same seed alters the same bytes in the same way.

use imbrex_layer::verify::toy::below;
use rand_core::RngCore;

/// Numbers that often break the handling of sizes and counts.
const AWKWARD: [u64; 14] = [
    0,
    1,
    2,
    7,
    511,
    513,
    4096,
    1 << 20,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 48,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Returns random bytes; their number is random, from 0 to `bytes_max`.
pub fn noise(random: &mut impl RngCore, bytes_max: usize) -> Vec<u8> {
    let mut bytes = vec![0; below(random, bytes_max as u64 + 1) as usize];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Returns `valid` with one to four random alterations: flipped bits, other bytes, numbers of several widths and byte
/// orders, and pieces removed, duplicated, inserted or cut off at the end.
pub fn mutate(random: &mut impl RngCore, valid: &[u8]) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=below(random, 4) {
        alter(random, &mut bytes);
    }
    bytes
}

fn alter(random: &mut impl RngCore, bytes: &mut Vec<u8>) {
    let length = bytes.len() as u64;
    let at = below(random, length + 1) as usize;
    let rest = bytes.len() - at;
    match below(random, 8) {
        0 if rest > 0 => bytes[at] ^= 1 << below(random, 8),
        1 if rest > 0 => bytes[at] = random.next_u64() as u8,
        2 | 3 => {
            let number = AWKWARD[below(random, AWKWARD.len() as u64) as usize];
            let width = (1usize << below(random, 4)).min(rest);
            let little = number.to_le_bytes();
            let big = number.to_be_bytes();
            let from = if below(random, 2) == 0 { &little[..width] } else { &big[8 - width..] };
            bytes[at..at + width].copy_from_slice(from);
        }
        4 => {
            let piece = below(random, rest as u64 + 1).min(64) as usize;
            bytes.drain(at..at + piece);
        }
        5 => {
            let piece = bytes[at..at + rest.min(64)].to_vec();
            let to = below(random, length + 1) as usize;
            bytes.splice(to..to, piece);
        }
        6 => {
            let piece = noise(random, 32);
            bytes.splice(at..at, piece);
        }
        _ => bytes.truncate(at),
    }
}
