//! Goal: injected faults occur at their time and last as documented, even after the drive was killed and reopened. A
//! fault that the drive cannot have is refused with its line and a remedy. Method: drives in memory and in files,
//! used through requests. The times of slow sectors are compared with those of a drive without faults.

use std::path::Path;

use imbrex_device::drive::{Making, create_file, header_of};
use imbrex_device::faults::{self, Due, Fault, FaultKind, Schedule};
use imbrex_device::image::Header;
use imbrex_device::media::file::{FileMedium, Mode};
use imbrex_device::media::memory::Memory;
use imbrex_device::{
    CaveatDevice, DeviceError, EmulatedCaveat, EmulatedDrive, EmulatedZoned, Io, IoKind, Store, ZonedDevice,
};
use imbrex_disk::{Lba, Profile, Sectors, SimDuration, SimTime};
use imbrex_layer::Condition;
use imbrex_sim::{Drive, DriveSpec};

fn drive(words: &str) -> (Drive, Header) {
    let spec = DriveSpec::parse(words).expect("right words");
    let profile = Profile::named(&spec.profile).expect("it is built in");
    let drive = Drive::build(&spec, &profile).expect("it can be built");
    let header = header_of(&drive, &spec, &Making::default()).expect("it may hold data");
    (drive, header)
}

fn in_memory(words: &str) -> EmulatedDrive {
    EmulatedDrive::in_memory(drive(words).1).expect("memory takes it")
}

const fn unreadable(lba: u64, sectors: u64) -> FaultKind {
    FaultKind::Unreadable { lba: Lba(lba), sectors: Sectors(sectors) }
}

fn now(kind: FaultKind) -> [Fault; 1] {
    [Fault { kind, due: Due::Now }]
}

/// Reads `sectors` from `lba` on. Returns the bytes, or the first unreadable sector.
fn read(drive: &mut EmulatedDrive, lba: u64, sectors: u64) -> Result<Vec<u8>, Lba> {
    let sector = u64::from(drive.sector_bytes());
    let mut bytes = vec![0xEE; (sectors * sector) as usize];
    match drive.read(lba * sector, &mut bytes) {
        Ok(()) => Ok(bytes),
        Err(DeviceError::Unreadable { lba }) => Err(lba),
        Err(other) => panic!("{other}"),
    }
}

fn write(drive: &mut EmulatedDrive, lba: u64, sectors: u64, byte: u8) {
    let sector = u64::from(drive.sector_bytes());
    drive.write(lba * sector, &vec![byte; (sectors * sector) as usize], false).expect("there is room");
}

fn is_all(bytes: Result<Vec<u8>, Lba>, byte: u8) -> bool {
    bytes.is_ok_and(|bytes| bytes.iter().all(|&found| found == byte))
}

fn reopened(path: &Path) -> EmulatedDrive {
    EmulatedDrive::open_file(path, false).expect("it opens")
}

#[test]
fn sectors_are_unreadable_until_they_are_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for words in ["cmr-7200:geometry.tracks=2000", "imr-1t:geometry.tracks=2000", "seagate-st8000as0011"] {
        let path = folder.path().join(words);
        create_file(&path, drive(words).1).map(drop).expect("there is room");
        let mut drive = reopened(&path);
        write(&mut drive, 96, 24, 1);
        drive.flush().expect("the file takes it");
        drive.play_faults(now(unreadable(100, 8))).expect("it lies on the drive");
        assert_eq!(read(&mut drive, 90, 40), Err(Lba(100)), "{words}");
        assert_eq!(read(&mut drive, 105, 1), Err(Lba(105)), "{words}");
        assert!(is_all(read(&mut drive, 96, 4), 1) && is_all(read(&mut drive, 108, 12), 1), "{words}");
        let mut runs = Vec::new();
        drive.allocation(0, 1 << 20, &mut runs).expect("it is asked in whole sectors");
        assert!(runs.iter().all(|&(_, is_stored)| is_stored), "{words}: an unreadable sector lies in no hole");
        write(&mut drive, 102, 2, 2);
        drive.flush().expect("the file takes it");
        for round in 0..3 {
            // The drive is killed and reopened, then its journal is replaced by a checkpoint.
            drop(drive);
            drive = reopened(&path);
            assert!(is_all(read(&mut drive, 102, 2), 2), "{words}, round {round}");
            assert_eq!(read(&mut drive, 102, 3), Err(Lba(104)), "{words}, round {round}");
            assert_eq!(read(&mut drive, 96, 10), Err(Lba(100)), "{words}, round {round}");
            drop(drive);
            let (whole, mut store) = Store::open(FileMedium::open(&path, Mode::Write, false).expect("free"), words)
                .unwrap_or_else(|error| panic!("{words}: {error}"));
            store.checkpoint(whole.layer.as_ref()).expect("the file takes it");
            drop(store);
            drive = reopened(&path);
        }
        drop(drive);
        let media = FileMedium::open(&path, Mode::Write, false).expect("free");
        let (mut whole, mut store) = Store::open(media, words).expect("it opens");
        faults::clear(&mut whole, &mut store).expect("the file takes it");
        drop(store);
        assert!(is_all(read(&mut reopened(&path), 104, 16), 1), "{words}: what was unreadable is as it lies");
    }
}

#[test]
fn what_the_volatile_cache_holds_can_be_read() {
    let mut drive = in_memory("cmr-7200:geometry.tracks=2000");
    drive.set_caches(1 << 20, 0);
    drive.play_faults(now(unreadable(100, 8))).expect("it lies on the drive");
    let sector = u64::from(drive.sector_bytes());
    // One microsecond per request, so that no write-back happens meanwhile.
    let mut serve = |kind, lba: u64, sectors: u64, buffer| {
        let at = drive.now();
        drive.submit(at, Io { kind, offset: lba * sector, length: sectors * sector, buffer }).expect("right");
        drive.advance(SimTime(at.0 + 1000));
        let completion = drive.completions().next().expect("it is answered by the cache, or planned at once");
        (completion.buffer, completion.outcome, drive.dirty())
    };
    let (_, outcome, dirty) = serve(IoKind::Write { fua: false }, 100, 6, vec![3; 6 * sector as usize]);
    assert!(outcome.is_ok() && dirty == Sectors(6), "the write waits in the cache");
    let (bytes, outcome, _) = serve(IoKind::Read, 101, 4, Vec::new());
    assert!(outcome.is_ok() && bytes == vec![3; 4 * sector as usize]);
    let (_, outcome, dirty) = serve(IoKind::Read, 101, 6, Vec::new());
    assert!(matches!(outcome, Err(DeviceError::Unreadable { lba: Lba(106) })), "{outcome:?}");
    assert_eq!(dirty, Sectors(6), "nothing was written back");
    let (_, outcome, _) = serve(IoKind::Read, 99, 7, Vec::new());
    assert!(outcome.is_ok(), "what the cache lacks of it can be read: {outcome:?}");
    drive.flush().expect("memory takes it");
    assert!(is_all(read(&mut drive, 100, 6), 3));
    assert_eq!(read(&mut drive, 106, 2), Err(Lba(106)));
}

#[test]
fn a_caveat_disk_has_unreadable_sectors_too() {
    let mut drive = in_memory("caveat-1g:geometry.tracks=8");
    drive.play_faults(now(unreadable(5, 1))).expect("it lies on the drive");
    let mut device = EmulatedCaveat::new(drive).expect("it is a caveat disk");
    device.write(Lba(4), &[1; 4096]).expect("it takes writes anywhere");
    device.read(Lba(4), &mut [0; 4096]).expect("it was written");
    device.write(Lba(5), &[1; 4096]).expect("it takes writes anywhere");
    device.read(Lba(5), &mut [0; 4096]).expect("it was written since");
}

/// Returns the latency of the first request to a new drive, and the time counted as overhead.
fn first_latency(slow: Option<FaultKind>, io: Io) -> (SimDuration, u64) {
    let mut drive = in_memory("cmr-7200:geometry.tracks=2000,host.write_cache_bytes=0");
    drive.play_faults(slow.map(|kind| Fault { kind, due: Due::Now })).expect("it lies on the drive");
    let completion = drive.serve(io).expect("it is right");
    completion.outcome.expect("slow is not broken");
    (completion.end.since(completion.entry), drive.metrics().parts.overhead)
}

#[test]
fn a_slow_sector_costs_each_command_its_time_and_no_other() {
    let by = SimDuration::from_millis(200);
    let slow = FaultKind::Slow { lba: Lba(1000), sectors: Sectors(8), by };
    let sector = u64::from(in_memory("cmr-7200:geometry.tracks=2000").sector_bytes());
    for kind in [IoKind::Read, IoKind::Write { fua: false }] {
        for (lba, sectors, extra) in
            [(1000, 8, by), (990, 11, by), (1007, 100, by), (992, 8, SimDuration(0)), (1008, 1, SimDuration(0))]
        {
            let length = sectors * sector;
            let io = || Io { kind, offset: lba * sector, length, buffer: vec![0; length as usize] };
            let ((as_new, overhead), (slowed, more)) = (first_latency(None, io()), first_latency(Some(slow), io()));
            assert_eq!(slowed, as_new + extra, "{kind:?} of {sectors} from {lba}");
            assert_eq!(more, overhead + extra.0, "{kind:?} of {sectors} from {lba}");
        }
    }
}

#[test]
fn slow_sectors_and_failed_zones_outlive_the_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("drive.imbrex");
    create_file(&path, drive("strict-append").1).map(drop).expect("there is room");
    let by = SimDuration::from_millis(3);
    let kinds = [
        FaultKind::Slow { lba: Lba(7), sectors: Sectors(2), by },
        FaultKind::Zone { zone: 5, condition: Condition::ReadOnly },
        FaultKind::Zone { zone: 6, condition: Condition::Offline },
        FaultKind::Pointer { zone: 7, to: Sectors(3) },
    ];
    let open = || Store::open(FileMedium::open(&path, Mode::Write, false).expect("free"), "image").expect("it opens");
    let view = || EmulatedZoned::new(reopened(&path)).expect("it has zones");
    let mut device = view();
    for zone in [5, 6, 7] {
        device.append(zone, &[9; 2 * 4096]).expect("an empty zone takes it");
    }
    device.flush().expect("the file takes it");
    drop(device);
    let (mut drive, mut store) = open();
    for kind in kinds {
        kind.apply(&mut drive, &mut store).unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    drop(store);
    let (drive, store) = open();
    assert_eq!(store.faults().slow().iter().collect::<Vec<_>>(), [(Lba(7), Sectors(2), by)]);
    assert_eq!(faults::failed_zones(&drive), [(5, Condition::ReadOnly), (6, Condition::Offline)]);
    drop(store);
    let mut device = view();
    let start = |zone| device.mode_sense().start(zone);
    let (fifth, sixth, seventh) = (start(5), start(6), start(7));
    let mut sector = [0; 4096];
    device.read(fifth, &mut sector).expect("a read-only zone can be read");
    assert_eq!(sector, [9; 4096]);
    assert!(device.append(5, &[1; 4096]).is_err() && device.reset(5).is_err(), "and nothing else");
    assert!(
        device.read(sixth, &mut sector).is_err() && device.append(6, &[1; 4096]).is_err(),
        "an offline zone is gone"
    );
    assert!(device.write(seventh + Sectors(2), &[1; 4096]).is_err(), "the pointer has gone ahead");
    device.write(seventh + Sectors(3), &[1; 4096]).expect("to here");
    // The pointer moves back, so the data behind its new position is dropped.
    device.flush().expect("the file takes it");
    drop(device);
    let (mut drive, mut store) = open();
    FaultKind::Pointer { zone: 7, to: Sectors(1) }.apply(&mut drive, &mut store).expect("back is as good");
    faults::clear(&mut drive, &mut store).expect("the file takes it");
    drop(store);
    let mut device = view();
    assert_eq!(device.append(7, &[1; 4096]).expect("it takes it"), seventh + Sectors(1));
    assert_eq!(device.append(5, &[1; 4096]).expect("it is mended"), fifth + Sectors(2));
    assert!(device.drive_mut().store_mut().faults().slow().is_empty());
}

#[test]
fn a_schedule_is_played_with_the_requests_that_find_it_due() {
    let text = "[[fault]]\nkind = \"unreadable\"\nlba = 8\nsectors = 1\nafter_requests = 3\n\n\
                [[fault]]\nkind = \"unreadable\"\nlba = 16\nsectors = 1\nat = \"10s\"\n";
    let schedule = Schedule::parse("faults.toml", text).expect("it is right");
    let mut drive = in_memory("cmr-7200:geometry.tracks=2000");
    schedule.check(drive.drive()).expect("it fits the drive");
    drive.play_faults(schedule.faults()).expect("it fits the drive");
    for request in 1..=3 {
        assert!(read(&mut drive, 8, 1).is_ok(), "request {request} comes before the fault");
    }
    assert!(drive.faults_played().is_empty());
    assert_eq!(read(&mut drive, 8, 1), Err(Lba(8)));
    assert_eq!(drive.faults_played().len(), 1);
    let sector = u64::from(drive.sector_bytes());
    let mut outcome_at = |at: SimTime| {
        let io = Io { kind: IoKind::Read, offset: 16 * sector, length: sector, buffer: Vec::new() };
        drive.submit(at, io).expect("it is right");
        drive.advance(SimTime(u64::MAX));
        let completion = drive.completions().next().expect("it was served");
        completion.outcome.is_ok()
    };
    let ten_seconds = 10_000_000_000;
    assert!(outcome_at(SimTime(ten_seconds - 1)) && !outcome_at(SimTime(ten_seconds)));
}

#[test]
fn a_served_drive_refuses_what_a_failed_zone_cannot_do() {
    let mut drive = in_memory("strict-append");
    let start = |zone: u64| zone * 4096;
    write(&mut drive, start(5), 2, 7);
    let failed = |zone, condition| now(FaultKind::Zone { zone, condition })[0];
    drive.play_faults([failed(5, Condition::ReadOnly), failed(6, Condition::Offline)]).expect("it has the zones");
    assert!(is_all(read(&mut drive, start(5), 2), 7));
    let mut refused = |lba: u64, sectors: usize, is_read: bool| {
        let mut bytes = vec![1; sectors * 4096];
        let outcome = match is_read {
            true => drive.read(lba * 4096, &mut bytes),
            false => drive.write(lba * 4096, &bytes, false),
        };
        match outcome {
            Ok(()) => None,
            Err(DeviceError::Zone(error)) => Some(error.to_string()),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(refused(start(5) + 2, 1, false).as_deref(), Some("zone 5 is read-only: it cannot be written"));
    assert_eq!(refused(start(6), 1, true).as_deref(), Some("zone 6 is offline: it cannot be read"));
    assert_eq!(refused(start(7) - 1, 2, true).as_deref(), Some("zone 6 is offline: it cannot be read"));
    assert_eq!(refused(start(6) - 1, 1, true), None);
    assert_eq!(refused(start(7), 1, false), None);
}

#[test]
fn a_wrong_schedule_is_refused_with_its_line() {
    let fault = |words: &str| format!("# what goes wrong\n\n[[fault]]\n{words}\n");
    for (text, line, says) in [
        (String::new(), 1, "there is no fault in it"),
        ("[[fault]\n".into(), 1, "unclosed array table"),
        ("[[faults]]\nkind = \"slow\"\n".into(), 1, "unknown field `faults`"),
        (fault("lba = 1"), 3, "missing field `kind`"),
        (fault("kind = \"broken\""), 4, "expected one of unreadable, slow, zone-read-only, zone-offline, pointer"),
        (fault("kind = \"unreadable\"\nlba = 5\nsectors = 1\nblocks = 2"), 7, "unknown field `blocks`"),
        (fault("kind = \"unreadable\"\nlba = 5"), 3, "needs `sectors`"),
        (fault("kind = \"unreadable\"\nlba = -5\nsectors = 1"), 5, "invalid value"),
        (fault("kind = \"unreadable\"\nlba = 5\nsectors = 1\nzone = 2"), 7, "has no `zone`: it takes lba, sectors"),
        (fault("kind = \"slow\"\nlba = 5\nsectors = 1\nby = \"soon\""), 7, "expected a time such as"),
        (fault("kind = \"slow\"\nlba = 5\nsectors = 1\nby = 200"), 7, "expected a string"),
        (fault("kind = \"zone-offline\"\nzone = 1\nat = \"1s\"\nafter_requests = 2"), 7, "exclude each other"),
    ] {
        let error = Schedule::parse("faults.toml", &text).expect_err(&text);
        assert_eq!((error.line, error.place.as_str()), (line, "faults.toml"), "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error} does not say {says}");
    }
    let timed =
        Schedule::parse("faults.toml", &fault("kind = \"zone-offline\"\nzone = 1\nat = \"1s\"")).expect("right");
    let error = timed.at_once().expect_err("it waits");
    assert!(error.line == 3 && error.to_string().contains("imbrex serve FILE --faults"), "{error}");
}

#[test]
fn what_a_drive_cannot_have_is_refused_and_changes_nothing() {
    let slow = |ns| FaultKind::Slow { lba: Lba(0), sectors: Sectors(1), by: SimDuration(ns) };
    let zone = |zone| FaultKind::Zone { zone, condition: Condition::Offline };
    let pointer = |zone, to| FaultKind::Pointer { zone, to: Sectors(to) };
    for (words, kind, says) in [
        (
            "strict-append",
            unreadable(262_140, 5),
            "reach past the end of the drive, which has 262144 sectors of 4096 bytes",
        ),
        ("strict-append", unreadable(u64::MAX, 2), "reach past the end"),
        ("strict-append", unreadable(4, 0), "give at least one"),
        ("strict-append", slow(0), "expected a time above zero"),
        ("strict-append", slow(u64::MAX), "at most"),
        ("strict-append", zone(64), "the drive has zones 0 to 63"),
        ("strict-append", pointer(64, 0), "the drive has zones 0 to 63"),
        ("strict-append", pointer(3, 0), "zone 3 is conventional and has no pointer; zones from 4 on have one"),
        ("strict-append", pointer(4, 4097), "a zone has 4096 sectors, so give 0 to 4096"),
        ("cmr-7200:geometry.tracks=2000", zone(0), "has no zones"),
        ("caveat-1g", pointer(0, 0), "has no zones"),
    ] {
        let (mut drive, mut store) = Store::create(Memory::new(), drive(words).1).expect("memory takes it");
        let records = store.journal().records();
        let said = kind.apply(&mut drive, &mut store).expect_err("it cannot be had").to_string();
        assert!(said.contains(says), "{words}, {kind}: {said}");
        assert_eq!(store.journal().records(), records, "{words}, {kind}");
        assert!(faults::failed_zones(&drive).is_empty() && store.stopped().is_none(), "{words}, {kind}");
    }
    // If one of several faults is impossible, none is applied.
    let mut drive = in_memory("cmr-7200:geometry.tracks=2000");
    let faults = [now(unreadable(0, 1))[0], now(zone(0))[0]];
    assert!(drive.play_faults(faults).is_err());
    assert!(read(&mut drive, 0, 1).is_ok());
}
