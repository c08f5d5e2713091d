//! What a command of the host destroys on a host-managed drive, sector by sector: the stupid twin, for toys.
//!
//! Invariants:
//! 1. A write that is torn destroys no more than its single sectors would, each written by itself.

use std::collections::BTreeSet;

use imbrex_disk::{Command, Extent, Lba, Operation, Pba, Sectors, SharedDisk};

use crate::layer::{Layer, Piece};
use crate::plan::Medium;

/// What becomes of logical sectors, beside those that a write gives new contents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Harm {
    /// Destroyed once the command is done.
    pub lost: BTreeSet<u64>,
    /// Destroyed by a part of the command and written by the rest of it: lost if it is cut short.
    pub endangered: BTreeSet<u64>,
}

/// What `command` destroys as `layer` lies on `disk`; nothing where that is the layer's business.
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
            // A later piece of the same write goes over what an earlier one destroyed.
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

/// The logical sectors that a write of `extent` destroys.
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
        // Of 20 sectors the first alone endangers the seventh and those after it; the whole loses only what follows.
        let harm = of(&toy.disk, layer.as_ref(), &Command::write(100, 20));
        assert_eq!(harm.lost, (120..=131).collect());
        assert_eq!(harm.endangered, (106..=119).collect());
    }
}
