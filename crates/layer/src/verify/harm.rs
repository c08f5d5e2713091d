//! The logical sectors that a command of the host destroys on a host-managed drive, computed naively sector by sector,
//! for toys.
//!
//! Invariants:
//! 1. A torn write destroys no more than the writes of its single sectors, one by one, would destroy.

use std::collections::BTreeSet;

use imbrex_disk::{Command, Extent, Lba, Operation, Pba, Sectors, SharedDisk};

use crate::layer::{Layer, Piece};
use crate::plan::Medium;

/// The logical sectors that a write command of the host destroys on a host-managed drive. Sectors to which the command
/// itself then gives new contents are not in `lost`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Harm {
    /// LBAs of the sectors that are destroyed when the command is done.
    pub lost: BTreeSet<u64>,
    /// LBAs of the sectors that are not in `lost`, but may be destroyed if a power cut interrupts the command: one part
    /// of the command destroys them, and a later part writes them.
    pub endangered: BTreeSet<u64>,
}

/// Returns the logical sectors that `command` destroys on `disk`, if every sector lies where the map of `layer` says.
/// Sectors that the host never wrote are included. Returns no sectors if the layer is not host-managed or the command
/// is not a write.
pub fn of(disk: &SharedDisk, layer: &dyn Layer, command: &Command) -> Harm {
    let mut harm = Harm::default();
    if !layer.is_host_managed() || command.operation != Operation::Write {
        return harm;
    }
    let (mut all, mut written) = (Vec::new(), Vec::new());
    layer.lookup(Lba(0), layer.capacity(), &mut all);
    layer.lookup(command.lba, Sectors(command.sectors as u64), &mut written);
    for piece in &written {
        let Some((Medium::Disk, pba)) = piece.at else { continue };
        for lba in piece.lba.0..piece.lba.0 + piece.sectors.0 {
            // A later piece of the same write overwrites a sector that an earlier one destroyed.
            harm.lost.remove(&lba).then(|| harm.endangered.insert(lba));
        }
        for sector in pba.0..pba.0 + piece.sectors.0 {
            harm.endangered.extend(destroyed_by(disk, Extent::new(Pba(sector), Sectors(1)), &all));
        }
        harm.lost.extend(destroyed_by(disk, Extent::new(pba, piece.sectors), &all));
    }
    harm.endangered = harm.endangered.difference(&harm.lost).copied().collect();
    harm
}

/// Returns the logical sectors that a write of `extent` destroys. `all` is the layer's whole map.
fn destroyed_by(disk: &SharedDisk, extent: Extent, all: &[Piece]) -> Vec<u64> {
    let mut destroyed = Vec::new();
    disk.recording.destroys(&disk.geometry, extent, &mut destroyed);
    let is_lost = |at: u64| destroyed.iter().any(|lost| lost.contains(Pba(at)));
    let sectors = all.iter().filter_map(|piece| piece.at.map(|(_, pba)| (piece, pba.0)));
    let lbas = sectors.flat_map(|(piece, pba)| (0..piece.sectors.0).map(move |at| (piece.lba.0 + at, pba + at)));
    lbas.filter(|&(_, at)| is_lost(at)).map(|(lba, _)| lba).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry;
    use crate::verify::toy;

    #[test]
    fn a_caveat_disk_loses_what_the_paper_says() {
        // DNOR 5 and DID 12: a write of 100 … 103 damages max(100 + 1 + 5, 104) … 103 + 12 (Singh 2014 §3.2).
        let toy = toy::disks("caveat").next().expect("there is one");
        let layer = registry::build("caveat", &toy.disk, &[]).expect("it takes the toy");
        let harm = of(&toy.disk, layer.as_ref(), &Command::write(100, 4));
        assert_eq!(harm.lost, (106..=115).collect());
        assert!(harm.endangered.is_empty());
        // Of a write of 20 sectors, the first sector endangers the seventh and later ones; the whole write loses only
        // sectors behind it.
        let harm = of(&toy.disk, layer.as_ref(), &Command::write(100, 20));
        assert_eq!(harm.lost, (120..=131).collect());
        assert_eq!(harm.endangered, (106..=119).collect());
    }
}
