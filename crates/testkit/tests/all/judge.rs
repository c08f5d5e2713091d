//! Goal: the independent writer finds the faults that it is for. Method: a toy server has a medium, a volatile cache
//! and a "kill" that loses the cache. It must pass without a fault; then one fault at a time is added, and each must be
//! found.

use imbrex_testkit::writer::{Ended, Moment, Verdict};
use imbrex_testkit::{Client, Contents, Work, Writer};

use crate::toy::{Fault, Toy};

const WORK: Work = Work {
    sectors: (1, 12),
    whole_in: 8,
    align_sectors: 1,
    places: 30,
    place_sectors: 40,
    depth: 6,
    flush_in: 20,
    fua_in: 10,
    trim_in: 15,
    zeroes_in: 15,
    read_in: 10,
    is_volatile: true,
    cut_destroys: false,
};

/// Performs rounds of work, kill and comparison. The fault occurs in the third round.
fn judged(fault: Option<Fault>, work: Work, seed: u64) -> Result<Verdict, Ended> {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let contents = Contents { sector_bytes: 512, seed, stamped_in: 1, is_full: seed.is_multiple_of(2) };
    let mut toy = Toy::new(4000, work.is_volatile);
    let mut writer = Writer::new(contents, work);
    let mut all = Verdict::default();
    for round in 0..5 {
        toy.fault = fault.filter(|_| round == 2);
        let running = toy.serve(&socket);
        let mut client = Client::connect(&socket);
        all.add(writer.look(&mut client, Moment::AfterCut)?);
        for _ in 0..150 {
            writer.step(&mut client)?;
        }
        toy = running.kill();
        writer.after_kill(&mut client);
        toy.fault_after_kill();
    }
    let running = toy.serve(&socket);
    let mut client = Client::connect(&socket);
    all.add(writer.look(&mut client, Moment::AfterCut)?);
    all.add(std::mem::take(&mut writer.live));
    drop(client);
    running.kill();
    Ok(all)
}

#[test]
fn an_honest_drive_is_found_honest() {
    for seed in 0..20 {
        let verdict = judged(None, WORK, seed).expect("nothing is refused");
        assert_eq!(verdict.lost, 0, "seed {seed}: {verdict}");
        assert!(verdict.reverted > 0 && verdict.sectors > 500, "seed {seed}: the kills took nothing: {verdict:?}");
        let work = Work { is_volatile: false, ..WORK };
        let verdict = judged(None, work, seed).expect("nothing is refused");
        assert_eq!((verdict.lost, verdict.reverted), (0, 0), "seed {seed}: {verdict}");
    }
}

#[test]
fn every_falsification_is_caught() {
    for fault in Fault::ALL {
        let work = if fault == Fault::LoseAnswered { Work { is_volatile: false, ..WORK } } else { WORK };
        let caught = (0..20).filter(|&seed| match judged(Some(fault), work.clone(), seed) {
            Ok(verdict) => verdict.lost > 0,
            Err(Ended::Refused { error, .. }) => fault == Fault::Error && error == 5,
            Err(Ended::Gone(error)) => panic!("{fault:?}: {error}"),
        });
        // A single fault may be hidden by later writes; most are not.
        let caught = caught.count();
        eprintln!("{fault:?}: caught with {caught} of 20 seeds");
        assert!(caught >= 15, "{fault:?} is caught with {caught} of 20 seeds");
    }
}
