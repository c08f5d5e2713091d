//! Division of the hot zone among the drives of an array. The part of a drive is in its conventional zones or on its
//! outer blocks ([`HotPart`]).

use crate::format::hot_part::HotPart;

/// Divides a hot zone of `blocks` blocks among the drives of an array, as evenly as possible. `rooms` is the number of
/// blocks that each drive can give, by drive number. Returns the parts in the order of the drives, without drives that
/// give nothing. Returns `None` if all drives together can give too few.
pub fn split(blocks: u64, rooms: &[u64]) -> Option<Vec<HotPart>> {
    let mut order: Vec<usize> = (0..rooms.len()).collect();
    order.sort_by_key(|&drive| (rooms[drive], drive));
    let (mut left, mut given) = (blocks, vec![0; rooms.len()]);
    for (number, &drive) in order.iter().enumerate() {
        given[drive] = rooms[drive].min(left.div_ceil((rooms.len() - number) as u64));
        left -= given[drive];
    }
    let part = |(drive, blocks): (usize, u64)| HotPart { drive: drive as u8, blocks };
    let parts = given.into_iter().enumerate().filter(|(_, blocks)| *blocks > 0).map(part).collect();
    (left == 0).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(blocks: u64, rooms: &[u64]) -> Option<Vec<(u8, u64)>> {
        split(blocks, rooms).map(|parts| parts.iter().map(|part| (part.drive, part.blocks)).collect())
    }

    #[test]
    fn it_is_split_evenly_as_far_as_drives_have_room() {
        assert_eq!(shares(30, &[100, 100, 100]), Some(vec![(0, 10), (1, 10), (2, 10)]));
        assert_eq!(shares(31, &[100, 4, 0, 100]), Some(vec![(0, 14), (1, 4), (3, 13)]));
        assert_eq!(shares(1, &[0, 9, 9]), Some(vec![(1, 1)]));
        assert_eq!(shares(24, &[10, 4, 10]), Some(vec![(0, 10), (1, 4), (2, 10)]), "all that there is");
        assert_eq!((shares(25, &[10, 4, 10]), shares(1, &[]), shares(1, &[0])), (None, None, None));
    }
}
