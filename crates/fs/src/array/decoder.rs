//! The decoder of the Reed–Solomon code for the few columns of a stripe group.
//!
//! To reconstruct lost columns, the crate `reed-solomon-simd` evaluates a polynomial, which is zero at the lost columns, at
//! all 65,536 elements of GF(2¹⁶), by transforms of that length. This takes as long for a block as for a thousand blocks.
//! A stripe group has at most 19 columns, so the polynomial is evaluated here at the few elements that the decoder uses.

use std::collections::BTreeMap;

use reed_solomon_simd::Error;
use reed_solomon_simd::engine::tables::get_exp_log;
use reed_solomon_simd::engine::{DefaultEngine, Engine, GF_MODULUS, GF_ORDER, GfElement, ShardsRefMut};
use reed_solomon_simd::rate::{DefaultRateDecoder, RateDecoder};

/// Number of elements, from 0 on, at which the polynomial is evaluated. The decoder gives `c` columns elements below 4`c`.
const POINTS: usize = 128;

/// The crate's arithmetic, with the polynomial evaluated at [`POINTS`] elements only.
struct FewColumns(DefaultEngine);

impl Engine for FewColumns {
    fn fft(&self, data: &mut ShardsRefMut, pos: usize, size: usize, truncated_size: usize, skew_delta: usize) {
        self.0.fft(data, pos, size, truncated_size, skew_delta);
    }

    fn ifft(&self, data: &mut ShardsRefMut, pos: usize, size: usize, truncated_size: usize, skew_delta: usize) {
        self.0.ifft(data, pos, size, truncated_size, skew_delta);
    }

    fn mul(&self, x: &mut [[u8; 64]], log_m: GfElement) {
        self.0.mul(x, log_m);
    }

    /// Replaces `erasures`, 1 at the lost elements and 0 at the others, by the logarithm of the polynomial's value at the
    /// first [`POINTS`] elements.
    fn eval_poly(erasures: &mut [GfElement; GF_ORDER], truncated_size: usize) {
        let rest = &erasures[POINTS..];
        if rest[1..] != rest[..rest.len() - 1] {
            return DefaultEngine::eval_poly(erasures, truncated_size);
        }
        let all_others = rest[0];
        let log = &get_exp_log().log;
        // The logarithms of all elements but 0 sum to a multiple of the modulus. So the sum over the lost elements is the
        // negative sum over the others, and at most `POINTS` elements are added.
        let added: Vec<usize> = (0..POINTS).filter(|&element| erasures[element] != all_others).collect();
        let mut logs = [0; POINTS];
        for (point, value) in logs.iter_mut().enumerate() {
            // The logarithm of 0 counts as the modulus, which is 0: the value at a lost element leaves its own factor out.
            let logs = added.iter().map(|&element| u32::from(log[element ^ point]));
            let sum = logs.sum::<u32>() % u32::from(GF_MODULUS);
            let sum = if all_others == 0 { sum } else { u32::from(GF_MODULUS) - sum };
            *value = GfElement::try_from(sum).expect("at most the modulus");
        }
        erasures[..POINTS].copy_from_slice(&logs);
    }
}

/// Returns the lost data columns of a stripe group with `width` data columns and `parity` parity columns, from the readable
/// ones, `data` and `coded`, with their numbers, each counted from 0.
///
/// # Errors
///
/// The columns are too few, or differ in length, or their length is no multiple of 64.
///
/// # Panics
///
/// There are more columns than [`POINTS`] suffice for: 32.
pub(super) fn decoded<'a>(
    width: usize,
    parity: usize,
    data: impl Iterator<Item = (usize, &'a [u8])>,
    coded: impl Iterator<Item = (usize, &'a [u8])>,
) -> Result<BTreeMap<usize, Vec<u8>>, Error> {
    assert!(4 * (width + parity) <= POINTS, "{width} + {parity} columns");
    let (mut data, mut coded) = (data.peekable(), coded.peekable());
    let bytes = data.peek().or(coded.peek()).map_or(0, |(_, column)| column.len());
    let mut decoder = DefaultRateDecoder::new(width, parity, bytes, FewColumns(DefaultEngine::new()), None)?;
    for (column, bytes) in data {
        decoder.add_original_shard(column, bytes)?;
    }
    for (column, bytes) in coded {
        decoder.add_recovery_shard(column, bytes)?;
    }
    let result = decoder.decode()?;
    Ok(result.restored_original_iter().map(|(column, bytes)| (column, bytes.to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the crate's own decoder, for all losses that leave enough columns.
    #[test]
    fn equals_the_decoder_of_the_crate() {
        for (width, parity) in [(2, 2), (3, 3), (4, 2), (5, 3), (8, 3), (13, 3), (16, 3), (2, 3), (2, 7), (3, 12)] {
            let byte = |column: usize, at: usize| (column * 71 + at * 13 + at / 97) as u8;
            let data: Vec<Vec<u8>> = (0..width).map(|column| (0..192).map(|at| byte(column, at)).collect()).collect();
            let coded = reed_solomon_simd::encode(width, parity, &data).expect("counts are supported");
            let columns = width + parity;
            for first in 0..columns {
                for second in first..columns {
                    let is_there = |column: usize| column != first && column != second;
                    let data = || data.iter().map(Vec::as_slice).enumerate().filter(|(column, _)| is_there(*column));
                    let all = coded.iter().map(Vec::as_slice).enumerate();
                    let coded = || all.clone().filter(|(column, _)| is_there(width + column));
                    let theirs = reed_solomon_simd::decode(width, parity, data(), coded()).expect("two are lost");
                    let ours = decoded(width, parity, data(), coded()).expect("two are lost");
                    assert_eq!(ours, theirs.into_iter().collect(), "{width} + {parity} without {first} and {second}");
                }
            }
        }
    }
}
