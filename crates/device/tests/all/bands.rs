//! Goal: the states of bands are correct. Method: on small drives, a few writes whose dirty bands follow from the
//! geometry and the size of bands. Zones are compared with their own conditions. On every layer, states kept up to
//! date are compared with states from a scan of the whole map.

use imbrex_device::bands::{BandState, Bands};
use imbrex_device::{EmulatedDrive, Io, IoKind};
use imbrex_disk::{Lba, Sectors, SimTime};
use imbrex_layer::Plan;
use imbrex_layer::verify::toy::Commands;
use imbrex_sim::Drive;

use crate::common;

const SECTOR: u64 = 512;

/// Returns a watched drive of `layer` in memory.
fn watched(layer: &str) -> EmulatedDrive {
    let mut drive = EmulatedDrive::in_memory(common::first_subject_of(layer).header).expect("a toy");
    drive.set_caches(0, 0);
    drive.watch();
    drive
}

fn states(drive: &mut EmulatedDrive) -> Vec<BandState> {
    drive.bands().expect("it is watched").all().iter().map(|band| band.state).collect()
}

fn count(states: &[BandState], state: BandState) -> usize {
    states.iter().filter(|other| **other == state).count()
}

/// Returns the band in which `lba` lies on a new drive.
fn band_of(drive: &mut EmulatedDrive, lba: u64) -> usize {
    let mut pieces = Vec::new();
    drive.drive().layer.lookup(Lba(lba), Sectors(1), &mut pieces);
    let (_, pba) = pieces[0].at.expect("a new drive of this layer has all in its place");
    let bands = drive.bands().expect("it is watched");
    bands.places().iter().position(|place| place.contains(pba)).expect("it lies in a band")
}

#[test]
fn a_band_is_dirty_from_a_write_to_the_cache_until_it_has_been_cleaned() {
    let mut drive = watched("media-cache");
    let band = band_of(&mut drive, 0);
    let bands = drive.bands().expect("it is watched").all().len();
    assert!(bands > 3, "{bands} bands");
    assert_eq!(count(&states(&mut drive), BandState::Clean), bands, "a new drive is clean");
    drive.write(0, &[1; SECTOR as usize], false).expect("written");
    let found = drive.bands().expect("it is watched");
    let (dirty, sectors) = (found.all()[band], found.places()[band].sectors.0);
    assert_eq!((dirty.state, dirty.share), (BandState::Dirty, 1.0 / sectors as f64));
    assert_eq!(count(&states(&mut drive), BandState::Clean), bands - 1);

    // An hour without requests: the drive first cleans that band, and later the band is clean.
    let (begun, mut was_cleaning) = (drive.now(), false);
    for minute in 0..3600 {
        drive.advance(SimTime(begun.0 + minute * 1_000_000_000));
        was_cleaning |= states(&mut drive)[band] == BandState::Cleaning;
    }
    // A request makes the clock pass the idle time.
    let at = SimTime(begun.0 + 3_600_000_000_000);
    let read = Io { kind: IoKind::Read, offset: 0, length: SECTOR, buffer: Vec::new() };
    drive.submit(at, read).expect("taken");
    while drive.completions().count() == 0 {
        drive.step(SimTime(u64::MAX));
    }
    assert!(was_cleaning, "it was seen being cleaned");
    assert_eq!(count(&states(&mut drive), BandState::Clean), bands, "cleaned");
}

#[test]
fn zones_are_shown_as_they_are() {
    let mut drive = watched("zoned");
    let zones = drive.drive().layer.zones().expect("it has zones").clone();
    let conventional = zones.conventional() as usize;
    assert_eq!(count(&states(&mut drive), BandState::Empty), zones.len() as usize - conventional);
    let zone = zones.zone(zones.conventional()).expect("it has others");
    drive.write(zone.start.0 * SECTOR, &[1; SECTOR as usize], false).expect("at its pointer");
    let bands = drive.bands().expect("it is watched");
    assert!(bands.is_zoned());
    let band = bands.all()[conventional];
    assert_eq!((band.state, band.share), (BandState::Open, 1.0 / zone.sectors.0 as f64));
    let rest = vec![2; ((zone.sectors.0 - 1) * SECTOR) as usize];
    drive.write((zone.start.0 + 1) * SECTOR, &rest, false).expect("to its end");
    assert_eq!(drive.bands().expect("it is watched").all()[conventional].state, BandState::Full);
}

#[test]
fn tracks_that_interlace_make_no_bands() {
    for layer in ["conventional", "imr-rmw", "track-flip"] {
        let drive = common::first_subject_of(layer).header.drive().expect("a toy");
        assert!(Bands::new(&drive).all().is_empty(), "{layer}");
    }
}

#[test]
fn the_zones_of_a_log_are_its_bands() {
    let mut drive = watched("log-structured");
    let mut fills = Vec::new();
    drive.drive().layer.caches(&mut |zone| fills.push((zone.used.0, zone.size.0)));
    let shown = states(&mut drive);
    let expected = |&(used, size): &(u64, u64)| match used {
        0 => BandState::Empty,
        used if used < size => BandState::Open,
        _ => BandState::Full,
    };
    assert_eq!(shown, fills.iter().map(expected).collect::<Vec<_>>());
    assert!(count(&shown, BandState::Full) > 0 && count(&shown, BandState::Empty) > 0, "{shown:?}");
}

/// Invariant 2: states kept up to date equal those of a scan of the whole map.
#[test]
fn what_is_kept_up_to_date_is_what_all_of_the_map_says() {
    for (number, subject) in common::drive_managed_subjects().iter().enumerate() {
        let fresh = || subject.header.drive().expect("a toy");
        let mut drive: Drive = fresh();
        let mut kept = Bands::new(&fresh());
        let (mut plan, mut found) = (Plan::new(), 0);
        let mut commands = Commands::new(number as u64 + 1, drive.layer.capacity(), 16);
        for round in 0..400u64 {
            let served = commands.plan(drive.layer.as_mut(), &mut plan);
            // Actions are ten seconds apart, so the cleaning of the previous one has ended.
            let now = SimTime(round * 10_000_000_000);
            kept.see(&served, &plan, now);
            let later = SimTime(now.0 + 5_000_000_000);
            kept.refresh(drive.layer.as_ref(), later);
            kept.refresh(drive.layer.as_ref(), later);
            let mut looked = Bands::new(&fresh());
            looked.touch_all();
            looked.refresh(drive.layer.as_ref(), later);
            assert_eq!(kept.all(), looked.all(), "{}, round {round}", subject.what);
            found += kept.all().iter().filter(|band| band.state != BandState::Empty).count();
        }
        assert!(kept.all().is_empty() || found > 0, "{}: nothing but empty bands", subject.what);
        let places = kept.places();
        assert!(places.windows(2).all(|pair| pair[0].end() <= pair[1].start), "{}: invariant 1", subject.what);
    }
}
