//! Parity of a row: computing the parity columns, and reconstructing lost columns from the others.
//!
//! One parity column is the XOR of the data (Jin 2014 §II.D.3). More columns are the recovery shards of the
//! Reed–Solomon code over GF(2¹⁶) of the crate `reed-solomon-simd` (that of Leopard-RS; Lin, Al-Naffouri, Han and Chung
//! 2016). It codes each piece of 64 bytes independently, so coding several rows at once gives the same result as coding
//! each row. The parity columns of a group with one data column are copies of it.
//!
//! Invariants:
//! 1. Any `width` columns of a row determine the others.
//! 2. The code is part of the on-disk format: a later version of the crate must give the same bytes, which a test
//!    checks.

use std::collections::BTreeMap;

use super::decoder;

/// Readable columns of a run of rows, by number, counted from 0: data columns first, then parity columns. Each has the
/// bytes of all rows, one block after the other. Unreadable columns are absent.
pub type Columns = BTreeMap<usize, Vec<u8>>;

/// Returns `parity` parity columns, computed from the data columns `data`. A column is the bytes of a run of rows on
/// one drive. All data columns have one length, a multiple of 64 bytes, and the parity columns have the same length.
///
/// # Panics
/// There is more than one parity column and more than one data column, and the lengths differ or are no multiple of 64.
pub fn parity_of(data: &[&[u8]], parity: usize) -> Vec<Vec<u8>> {
    match (data, parity) {
        (_, 0) => Vec::new(),
        ([only], _) => vec![only.to_vec(); parity],
        (_, 1) => vec![xor(data.iter().copied())],
        _ => {
            let coded = reed_solomon_simd::encode(data.len(), parity, data);
            coded.expect("counts and lengths are those of a stripe group")
        }
    }
}

fn xor<'a>(mut columns: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut sum = columns.next().map(<[u8]>::to_vec).unwrap_or_default();
    for column in columns {
        sum.iter_mut().zip(column).for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}

/// Returns all `width` data columns of a run of rows that has `parity` parity columns. A column is the blocks of the
/// rows on one drive. Columns that are absent in `there` are reconstructed from the others. Returns `None` if `there`
/// has fewer than `width` columns.
pub fn data_from(width: usize, parity: usize, there: &Columns) -> Option<Vec<Vec<u8>>> {
    if there.len() < width {
        return None;
    }
    if (0..width).all(|column| there.contains_key(&column)) {
        return Some((0..width).map(|column| there[&column].clone()).collect());
    }
    if width == 1 {
        return there.values().next().map(|copy| vec![copy.clone()]);
    }
    let lost = match parity {
        1 => {
            let missing = (0..width).find(|column| !there.contains_key(column))?;
            BTreeMap::from([(missing, xor(there.values().map(Vec::as_slice)))])
        }
        _ => {
            let data = there.range(..width).map(|(column, bytes)| (*column, bytes.as_slice()));
            let coded = there.range(width..).map(|(column, bytes)| (column - width, bytes.as_slice()));
            decoder::decoded(width, parity, data, coded).expect("counts and lengths are those of a stripe group")
        }
    };
    (0..width).map(|column| there.get(&column).or_else(|| lost.get(&column)).cloned()).collect()
}

/// Returns column `wanted`, counted from 0, of a run of rows that has `width` data columns, then `parity` parity
/// columns. A column is the blocks of the rows on one drive. A data column that is in `there` is returned as it is, any
/// other column is computed from `there`. Returns `None` if `there` has fewer than `width` columns, or if `wanted` is
/// not below `width` + `parity`.
pub fn column_from(width: usize, parity: usize, there: &Columns, wanted: usize) -> Option<Vec<u8>> {
    let data = data_from(width, parity, there)?;
    if wanted < width {
        return data.into_iter().nth(wanted);
    }
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    parity_of(&data, parity).into_iter().nth(wanted - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(width: usize, bytes: usize) -> Vec<Vec<u8>> {
        let byte = |column: usize, at: usize| (column * 89 + at * 7 + at / 251) as u8;
        (0..width).map(|column| (0..bytes).map(|at| byte(column, at)).collect()).collect()
    }

    fn whole(width: usize, parity: usize, bytes: usize) -> Vec<Vec<u8>> {
        let data = columns(width, bytes);
        let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let parity = parity_of(&slices, parity);
        data.into_iter().chain(parity).collect()
    }

    /// Tries every choice of lost columns, of widths up to 7 with up to three parity columns.
    #[test]
    fn any_width_columns_give_the_others() {
        for parity in 0..=3usize {
            for width in 1..=(16 - parity).min(7) {
                let all = whole(width, parity, 128);
                for lost in 0..1u32 << all.len() {
                    let is_there = |column: usize| lost >> column & 1 == 0;
                    let there: Columns = (0..all.len())
                        .filter(|&column| is_there(column))
                        .map(|column| (column, all[column].clone()))
                        .collect();
                    for (wanted, column) in all.iter().enumerate() {
                        let found = column_from(width, parity, &there, wanted);
                        let expected = (there.len() >= width).then_some(column);
                        assert_eq!(
                            found.as_ref(),
                            expected,
                            "{width}+{parity}, column {wanted} from {:?}",
                            there.keys()
                        );
                    }
                }
            }
        }
    }

    /// Checks one parity column against the definition of XOR, and one data column against that of a mirror.
    #[test]
    fn one_parity_is_the_xor_and_one_column_is_copied() {
        let all = whole(5, 1, 64);
        for at in 0..64 {
            assert_eq!(all.iter().fold(0, |sum, column| sum ^ column[at]), 0, "byte {at}");
        }
        let all = whole(1, 3, 64);
        assert!(all.iter().all(|column| *column == all[0]));
    }

    #[test]
    fn a_run_of_rows_is_coded_like_each_row_by_itself() {
        let (long, rows) = (whole(6, 2, 4096 * 3), 3);
        for row in 0..rows {
            let part = |column: &Vec<u8>| column[row * 4096..(row + 1) * 4096].to_vec();
            let data: Vec<Vec<u8>> = long[..6].iter().map(part).collect();
            let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
            assert_eq!(parity_of(&slices, 2), long[6..].iter().map(part).collect::<Vec<_>>(), "row {row}");
        }
    }

    /// Checks sums of parity on drives written by earlier versions: another code would be incompatible.
    #[test]
    fn the_code_stays_the_same() {
        let sums = |width, parity| {
            whole(width, parity, 4096)[width..].iter().map(|bytes| crc32c::crc32c(bytes)).collect::<Vec<_>>()
        };
        assert_eq!(sums(4, 2), [747_149_625, 1_899_885_679]);
        assert_eq!(sums(13, 3), [2_058_341_681, 652_749_855, 3_610_942_808]);
    }
}
