//! Goal: a store executes any plan as defined, whatever layer made it. Method: random plans and transfers on a store
//! and on a naive model, an array of sectors with a map of staged sectors. Unreadable sectors are tested by hand-made
//! cases.

use std::collections::BTreeMap;

use imbrex_layer::Cause;
use imbrex_layer::verify::toy;
use imbrex_sim::DriveSpec;
use proptest::prelude::*;

use imbrex_disk::{Lba, Pba};
use imbrex_layer::{GroupKind, Kind, Plan, StepOp};

use super::*;
use crate::drive::{Making, header_of};
use crate::image::checksum;
use crate::image::transfer::{Given, Write};
use crate::media::memory::Memory;

/// Creates an image of a toy disk with this recording and layer.
pub(crate) fn made(recording: &str, layer: &str) -> (Drive, Store<Memory>) {
    let toy = toy::disks(recording).next().expect("there is one");
    let spec = DriveSpec::parse(&format!("toy+{layer}")).expect("a layer without parameters");
    let drive = Drive::assemble(layer, toy.profile, layer, &spec.parameters).expect("it takes the toy");
    let making = Making { uuid: uuid::Uuid::from_u128(7), chunk_bytes: 4096, journal_bytes: 256 << 10 };
    let header = header_of(&drive, &spec, &making).expect("toys are power-safe");
    Store::create(Memory::new(), header).expect("memory takes a toy")
}

const SECTOR: usize = 512;
/// Number of sectors of each medium, and of logical sectors, that random plans use.
const USED: u64 = 48;

type Bytes = [u8; SECTOR];

/// Returns, for each sector of `bytes`, the part of its checksum that depends on the contents.
fn parts_of(bytes: &[u8]) -> Vec<u32> {
    let mut parts = Vec::new();
    checksum::parts(bytes, SECTOR, &mut parts);
    parts
}

/// A step of a group in a plan.
#[derive(Clone, Copy, Debug)]
enum PlanStep {
    Read { flash: bool, pba: u64, lba: u64, sectors: u64 },
    Write { flash: bool, pba: u64, lba: u64, sectors: u64 },
    WriteMap { pba: u64, sectors: u64 },
    ReadMap { pba: u64, sectors: u64 },
    Drop { lba: u64, sectors: u64 },
    Barrier,
    NextPhase,
}

/// A request of the host.
#[derive(Clone, Copy, Debug)]
enum HostRequest {
    Read { lba: u64, sectors: u64 },
    Write { lba: u64, sectors: u64 },
    Trim { lba: u64, sectors: u64 },
}

fn run() -> impl Strategy<Value = (u64, u64)> {
    (0..USED, 1..12u64).prop_map(|(start, sectors)| (start, sectors.min(USED - start)))
}

/// Generates a run of sectors and its place, both within the used sectors.
fn placed() -> impl Strategy<Value = (bool, u64, u64, u64)> {
    (any::<bool>(), run(), 0..USED).prop_map(|(flash, (lba, sectors), pba)| {
        let sectors = sectors.min(USED - pba);
        (flash, pba, lba, sectors)
    })
}

fn read() -> impl Strategy<Value = PlanStep> {
    placed().prop_map(|(flash, pba, lba, sectors)| PlanStep::Read { flash, pba, lba, sectors })
}

fn steps() -> impl Strategy<Value = Vec<PlanStep>> {
    let any_step = prop_oneof![
        3 => read(),
        3 => placed().prop_map(|(flash, pba, lba, sectors)| PlanStep::Write { flash, pba, lba, sectors }),
        1 => run().prop_map(|(pba, sectors)| PlanStep::WriteMap { pba, sectors }),
        1 => run().prop_map(|(pba, sectors)| PlanStep::ReadMap { pba, sectors }),
        1 => run().prop_map(|(lba, sectors)| PlanStep::Drop { lba, sectors }),
        1 => Just(PlanStep::Barrier),
        1 => Just(PlanStep::NextPhase),
    ];
    let only_reads = prop_oneof![4 => read(), 1 => Just(PlanStep::Barrier), 1 => Just(PlanStep::NextPhase)];
    prop_oneof![
        prop::collection::vec(any_step, 1..8),
        prop::collection::vec(only_reads, 1..5),
        // A read that fills its transfer exactly, and reads that give a little more or less.
        run().prop_map(|(lba, sectors)| vec![PlanStep::Read { flash: false, pba: lba, lba, sectors }]),
    ]
}

fn requests() -> impl Strategy<Value = Vec<HostRequest>> {
    let request = (run(), 0..6u8).prop_map(|((lba, sectors), kind)| match kind {
        0 => HostRequest::Trim { lba, sectors },
        1 | 2 => HostRequest::Write { lba, sectors },
        _ => HostRequest::Read { lba, sectors },
    });
    prop::collection::vec(request, 1..4)
}

/// Model of a store, sector by sector.
#[derive(Default)]
struct Naive {
    /// Contents by medium and sector; absent sectors are zeros.
    media: BTreeMap<(bool, u64), Bytes>,
    /// Staged contents by whether the group is the host's, and sector.
    staged: BTreeMap<(bool, u64), Bytes>,
}

impl Naive {
    /// Executes one group. Returns the contents that the host's reads get.
    fn group(&mut self, is_host: bool, steps: &[PlanStep], given: &BTreeMap<u64, Bytes>) -> BTreeMap<u64, Bytes> {
        self.staged.retain(|&(of_host, _), _| of_host != is_host);
        for step in steps {
            match *step {
                PlanStep::Read { flash, pba, lba, sectors } => {
                    for offset in 0..sectors {
                        let found = self.media.get(&(flash, pba + offset)).copied().unwrap_or([0; SECTOR]);
                        self.staged.insert((is_host, lba + offset), found);
                    }
                }
                PlanStep::Write { flash, pba, lba, sectors } => {
                    for offset in 0..sectors {
                        let staged = self.staged.get(&(is_host, lba + offset));
                        let own = given.get(&(lba + offset)).filter(|_| is_host);
                        let bytes = own.or(staged).copied().unwrap_or([0; SECTOR]);
                        self.media.insert((flash, pba + offset), bytes);
                    }
                }
                PlanStep::WriteMap { pba, sectors } => {
                    (pba..pba + sectors).for_each(|pba| {
                        self.media.insert((false, pba), [0; SECTOR]);
                    });
                }
                PlanStep::Drop { lba, sectors } => {
                    (lba..lba + sectors).for_each(|lba| {
                        self.staged.insert((is_host, lba), [0; SECTOR]);
                    });
                }
                PlanStep::ReadMap { .. } | PlanStep::Barrier | PlanStep::NextPhase => {}
            }
        }
        let of_host = self.staged.iter().filter(|((of_host, _), _)| *of_host && is_host);
        of_host.map(|(&(_, lba), &bytes)| (lba, bytes)).collect()
    }
}

fn planned(plan: &mut Plan, kind: GroupKind, steps: &[PlanStep]) {
    plan.open(kind);
    let medium = |flash: bool| if flash { Medium::Flash } else { Medium::Disk };
    for step in steps {
        match *step {
            PlanStep::Read { flash, pba, lba, sectors } => {
                plan.access(StepOp::Read, medium(flash), Kind::Data, Cause::Host, Pba(pba), Lba(lba), Sectors(sectors));
            }
            PlanStep::Write { flash, pba, lba, sectors } => {
                plan.access(
                    StepOp::Write,
                    medium(flash),
                    Kind::Data,
                    Cause::Host,
                    Pba(pba),
                    Lba(lba),
                    Sectors(sectors),
                );
            }
            PlanStep::WriteMap { pba, sectors } => {
                plan.access(StepOp::Write, Medium::Disk, Kind::Map, Cause::Journal, Pba(pba), Lba(0), Sectors(sectors));
            }
            PlanStep::ReadMap { pba, sectors } => {
                plan.access(StepOp::Read, Medium::Disk, Kind::Map, Cause::Journal, Pba(pba), Lba(0), Sectors(sectors));
            }
            PlanStep::Drop { lba, sectors } => plan.drop_sectors(Cause::Host, Lba(lba), Sectors(sectors)),
            PlanStep::Barrier => plan.barrier(),
            PlanStep::NextPhase => plan.next_phase(kind),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_plan_moves_what_its_steps_say(
        plans in prop::collection::vec((steps(), requests(), prop::option::of(steps()), any::<bool>()), 1..6),
        keeps_trims: bool,
    ) {
        let (_, mut store) = made("conventional", "conventional");
        store.keeps_trims = keeps_trims;
        let mut naive = Naive::default();
        for (number, (host, requests, cleaning, cleans_first)) in plans.iter().enumerate() {
            let own = |request: usize, offset: u64| [(number * 37 + request * 11 + offset as usize) as u8 | 1; SECTOR];
            let mut given: BTreeMap<u64, Bytes> = BTreeMap::new();
            let mut buffers: Vec<Vec<u8>> = Vec::new();
            for (index, request) in requests.iter().enumerate() {
                let mut buffer = Vec::new();
                match *request {
                    HostRequest::Read { sectors, .. } => buffer.resize(sectors as usize * SECTOR, 0xee),
                    HostRequest::Write { lba, sectors } => {
                        (0..sectors).for_each(|offset| buffer.extend_from_slice(&own(index, offset)));
                        given.extend((0..sectors).map(|offset| (lba + offset, own(index, offset))));
                    }
                    HostRequest::Trim { lba, sectors } => {
                        given.extend((lba..lba + sectors).filter(|_| keeps_trims).map(|lba| (lba, [0; SECTOR])));
                    }
                }
                buffers.push(buffer);
            }
            let mut plan = Plan::new();
            let mut brought = BTreeMap::new();
            let groups: [Option<(bool, &Vec<PlanStep>)>; 3] = [
                cleaning.as_ref().filter(|_| *cleans_first).map(|steps| (false, steps)),
                Some((true, host)),
                cleaning.as_ref().filter(|_| !*cleans_first).map(|steps| (false, steps)),
            ];
            for (is_host, steps) in groups.into_iter().flatten() {
                planned(&mut plan, if is_host { GroupKind::Host } else { GroupKind::Cleaning }, steps);
                brought.extend(naive.group(is_host, steps, &given));
            }
            let parts: Vec<Vec<u32>> = buffers.iter().map(|buffer| parts_of(buffer)).collect();
            let mut transfers: Vec<Transfer<'_>> = requests.iter().zip(&mut buffers).zip(&parts).map(|((request, buffer), parts)| match *request {
                HostRequest::Read { lba, .. } => Transfer { lba, data: Data::Read(buffer) },
                // Half of the writes come with parts of their checksums.
                HostRequest::Write { lba, .. } if lba % 2 == 0 => {
                    Transfer { lba, data: Data::Summed(Given { bytes: buffer, parts: Some(parts) }) }
                }
                HostRequest::Write { lba, .. } => Transfer { lba, data: Data::Write(buffer) },
                HostRequest::Trim { lba, sectors } => Transfer { lba, data: Data::Trim(sectors) },
            }).collect();
            store.execute(&plan, &mut transfers).expect("memory fails nobody");
            for (request, buffer) in requests.iter().zip(&buffers) {
                let HostRequest::Read { lba, .. } = *request else { continue };
                for (offset, sector) in buffer.chunks(SECTOR).enumerate() {
                    let expected = brought.get(&(lba + offset as u64)).unwrap_or(&[0; SECTOR]);
                    prop_assert!(sector == expected, "sector {} is {}, not {}\n{:?}", lba + offset as u64, sector[0], expected[0], plan);
                }
            }
        }
        for (medium, flash) in [(Medium::Disk, false), (Medium::Flash, true)] {
            let mut found = vec![0xee; USED as usize * SECTOR];
            store.peek(medium, Pba(0), &mut found).expect("memory fails nobody");
            for (pba, sector) in found.chunks(SECTOR).enumerate() {
                let expected = naive.media.get(&(flash, pba as u64)).unwrap_or(&[0; SECTOR]);
                prop_assert!(sector == expected, "sector {} of the {:?}", pba, medium);
            }
        }
    }
}

/// Writes `byte` to sectors of the disk, with PBA equal to LBA.
fn fill(store: &mut Store<Memory>, start: u64, sectors: u64, byte: u8) {
    let (mut plan, bytes) = (Plan::new(), vec![byte; sectors as usize * SECTOR]);
    plan.open(GroupKind::Host);
    plan.write(Cause::Host, Pba(start), Lba(start), Sectors(sectors));
    store.execute(&plan, &mut [Transfer { lba: start, data: Data::Write(&bytes) }]).expect("memory fails nobody");
}

fn extent(start: u64, sectors: u64) -> Extent {
    Extent::new(Pba(start), Sectors(sectors))
}

fn read_of(pba: u64, lba: u64, sectors: u64, kind: GroupKind) -> Plan {
    let mut plan = Plan::new();
    plan.open(kind);
    plan.read(Cause::Host, Pba(pba), Lba(lba), Sectors(sectors));
    plan
}

/// Reads sectors for the host, with PBA different from LBA.
fn host_read(store: &mut Store<Memory>, pba: u64, lba: u64, sectors: u64) -> (Result<(), DeviceError>, Vec<u8>) {
    let mut into = vec![0xee; sectors as usize * SECTOR];
    let transfer = Transfer { lba, data: Data::Read(&mut into) };
    let outcome = store.execute(&read_of(pba, lba, sectors, GroupKind::Host), &mut [transfer]);
    (outcome, into.chunks(SECTOR).map(|sector| sector[0]).collect())
}

/// Creates an image with sectors 0 … 99 written. Sectors 55 … 57 are destroyed; 70 and 71 are damaged.
fn wounded() -> Store<Memory> {
    let (_, mut store) = made("conventional", "conventional");
    fill(&mut store, 0, 100, 5);
    let hit = [extent(55, 3)];
    let write = Write {
        region: Region::Disk,
        extent: extent(0, 1),
        contents: Some(&[[5; SECTOR][..].into()]),
        spoilt: &[],
        destroyed: &hit,
    };
    store.space.write(&write).expect("memory fails nobody");
    store.space.give_up(Region::Disk, extent(70, 2)).expect("memory fails nobody");
    store
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_is_given() {
    let mut store = wounded();
    let (outcome, bytes) = host_read(&mut store, 50, 20, 10);
    assert!(
        matches!(outcome, Err(DeviceError::Destroyed { lba: Lba(25), pba: Pba(55), medium: Medium::Disk })),
        "{outcome:?}"
    );
    assert_eq!(bytes, [5, 5, 5, 5, 5, 0, 0, 0, 5, 5]);
    let (outcome, bytes) = host_read(&mut store, 69, 200, 4);
    assert!(
        matches!(outcome, Err(DeviceError::Corrupt { lba: Lba(201), pba: Pba(70), medium: Medium::Disk })),
        "{outcome:?}"
    );
    assert_eq!(bytes, [5, 0, 0, 5]);
    // Unreadable sectors of a step that no transfer asks for do not matter.
    let mut into = [0xee; SECTOR];
    let transfer = Transfer { lba: 28, data: Data::Read(&mut into) };
    store.execute(&read_of(50, 20, 10, GroupKind::Host), &mut [transfer]).expect("sector 58 is whole");
    assert_eq!(into, [5; SECTOR]);
    assert_eq!(store.stopped(), None, "a read of the host stops nothing");
}

#[test]
fn a_failed_read_stops_the_store_unless_it_is_the_hosts_alone() {
    for (kind, stops) in [(GroupKind::Cleaning, true), (GroupKind::Recovery, true)] {
        let mut store = wounded();
        let outcome = store.execute(&read_of(54, 54, 3, kind), &mut []);
        assert!(matches!(outcome, Err(DeviceError::Destroyed { lba: Lba(55), .. })), "{outcome:?}");
        assert_eq!(store.stopped().is_some(), stops, "{kind:?}");
        assert!(matches!(store.execute(&Plan::new(), &mut []), Err(DeviceError::Stopped(_))));
        assert!(matches!(store.lose(Lba(1), Sectors(1)), Err(DeviceError::Stopped(_))));
        assert!(matches!(store.seal(), Err(DeviceError::Stopped(_))));
    }
    // If a host's plan also writes, the layer in memory has changed.
    let mut store = wounded();
    let mut plan = read_of(54, 54, 3, GroupKind::Host);
    plan.write(Cause::Host, Pba(200), Lba(54), Sectors(3));
    assert!(store.execute(&plan, &mut []).is_err());
    assert!(store.stopped().is_some_and(|reason| reason.contains("LBA 55")));
}

#[test]
fn damage_is_told_in_runs() {
    let mut store = wounded();
    let mut runs = Vec::new();
    store.for_each_damage(extent(50, 30), |run| runs.push(run)).expect("memory fails nobody");
    assert_eq!(runs, [extent(55, 3), extent(70, 2)]);
    let mut first = |start, sectors| store.first_damaged(extent(start, sectors)).expect("memory fails nobody");
    assert_eq!(first(0, 100), Some(Pba(55)));
    assert_eq!(first(56, 20), Some(Pba(56)));
    assert_eq!(first(58, 12), None);
    // Adjacent damage of two kinds is one run.
    store.space.give_up(Region::Disk, extent(58, 2)).expect("memory fails nobody");
    runs.clear();
    store.for_each_damage(extent(0, 65), |run| runs.push(run)).expect("memory fails nobody");
    assert_eq!(runs, [extent(55, 5)]);
}

#[test]
fn what_is_stored_is_told_in_bytes() {
    let mut store = wounded();
    fill(&mut store, 3, 2, 0);
    let mut runs = |medium, start, sectors| {
        let mut runs = Vec::new();
        let mut each = |bytes: u64, is_stored: bool| runs.push((bytes / SECTOR as u64, is_stored));
        store.for_each_stored(medium, Pba(start), Sectors(sectors), &mut each).expect("memory fails nobody");
        runs
    };
    assert_eq!(runs(Medium::Disk, 0, 8), [(3, true), (2, false), (3, true)]);
    assert_eq!(runs(Medium::Disk, 54, 5), [(1, true), (3, true), (1, true)], "what is destroyed is no hole");
    assert_eq!(runs(Medium::Flash, 0, 8), [(8, false)]);
    // On a caveat disk a sector of the platters that was never written may be damaged; a sector of the flash may not.
    let (_, mut store) = made("caveat", "caveat");
    let mut is_stored = |medium| {
        let mut stored = Vec::new();
        store.for_each_stored(medium, Pba(0), Sectors(4), &mut |_, is| stored.push(is)).expect("memory fails nobody");
        stored
    };
    assert_eq!((is_stored(Medium::Disk), is_stored(Medium::Flash)), (vec![true], vec![false]));
}

#[test]
fn a_copy_of_what_cannot_be_read_cannot_be_read_where_it_is_written() {
    let moved = |kind: GroupKind, transfers: &mut [Transfer<'_>], keeps_trims: bool| {
        let mut store = wounded();
        store.keeps_trims = keeps_trims;
        let mut plan = read_of(68, 168, 6, kind);
        plan.write(Cause::Cleaning, Pba(300), Lba(168), Sectors(6));
        store.execute(&plan, transfers).expect("what is spoilt is moved as such");
        let mut spoilt = Vec::new();
        store.for_each_damage(extent(290, 30), |run| spoilt.push(run)).expect("memory fails nobody");
        let mut bytes = vec![0xee; 6 * SECTOR];
        store.peek(Medium::Disk, Pba(300), &mut bytes).expect("memory fails nobody");
        (spoilt, bytes.chunks(SECTOR).map(|sector| sector[0]).collect::<Vec<u8>>())
    };
    let copied = [5, 5, 0, 0, 5, 5];
    assert_eq!(moved(GroupKind::Cleaning, &mut [], false), (vec![extent(302, 2)], copied.to_vec()));
    // Sectors that the host writes become readable. The host's data does not affect background groups.
    let given = [9; SECTOR];
    let write = || [Transfer { lba: 171, data: Data::Write(&given) }];
    assert_eq!(moved(GroupKind::Host, &mut write(), false), (vec![extent(302, 1)], vec![5, 5, 0, 9, 5, 5]));
    assert_eq!(moved(GroupKind::Cleaning, &mut write(), false), (vec![extent(302, 2)], copied.to_vec()));
    let trim = || [Transfer { lba: 170, data: Data::Trim(1) }];
    assert_eq!(moved(GroupKind::Host, &mut trim(), true), (vec![extent(303, 1)], copied.to_vec()));
    assert_eq!(moved(GroupKind::Host, &mut trim(), false), (vec![extent(302, 2)], copied.to_vec()));
    // If trims are kept, a trimmed sector reads as zeros, whatever was read.
    let first = || [Transfer { lba: 168, data: Data::Trim(1) }];
    assert_eq!(moved(GroupKind::Host, &mut first(), true).1, [0, 5, 0, 0, 5, 5]);
    assert_eq!(moved(GroupKind::Host, &mut first(), false).1, copied);
}

#[test]
fn a_read_joined_with_a_write_is_told_what_could_not_be_read() {
    let mut store = wounded();
    let (mut into, given) = ([0xee; 3 * SECTOR], [9; SECTOR]);
    let mut plan = read_of(68, 168, 6, GroupKind::Host);
    plan.write(Cause::Host, Pba(300), Lba(168), Sectors(6));
    let mut transfers =
        [Transfer { lba: 169, data: Data::Read(&mut into) }, Transfer { lba: 168, data: Data::Write(&given) }];
    let outcome = store.execute(&plan, &mut transfers);
    assert!(matches!(outcome, Err(DeviceError::Lost { lba: Lba(170) })), "{outcome:?}");
    assert_eq!((into[0], into[SECTOR]), (5, 0));
    assert_eq!(store.stopped(), None, "the plan was carried out");
    assert!(store.unserved.is_empty(), "it is told once");
}

#[test]
fn what_was_lost_is_found_when_it_is_written_and_trims_count_where_they_are_kept() {
    let lost_after = |data: Data<'_>, keeps_trims: bool| {
        let (_, mut store) = made("conventional", "conventional");
        store.keeps_trims = keeps_trims;
        store.lose(Lba(10), Sectors(4)).expect("memory fails nobody");
        let mut plan = Plan::new();
        plan.open(GroupKind::Host);
        plan.write(Cause::Host, Pba(11), Lba(11), Sectors(2));
        store.execute(&plan, &mut [Transfer { lba: 11, data }]).expect("memory fails nobody");
        let readable = |lba: u64| store.check_readable(Lba(lba), Sectors(1), |_, _| false).is_ok();
        let now: Vec<bool> = (9..15).map(readable).collect();
        // After the image is opened again, the journal gives the same result.
        let medium = store.into_media();
        let (_, store) = Store::open(medium, "image").expect("it is whole");
        let readable = |lba: u64| store.check_readable(Lba(lba), Sectors(1), |_, _| false).is_ok();
        assert_eq!(now, (9..15).map(readable).collect::<Vec<bool>>());
        now
    };
    let (some, none) = ([true, false, true, true, false, true], [true, false, false, false, false, true]);
    assert_eq!(lost_after(Data::Write(&[1; 2 * SECTOR]), false), some);
    assert_eq!(lost_after(Data::Trim(2), true), some);
    assert_eq!(lost_after(Data::Trim(2), false), none);
    assert_eq!(lost_after(Data::Read(&mut [0; 2 * SECTOR]), false), none);
}

#[test]
fn what_is_spared_can_be_read_though_it_is_lost() {
    let (_, mut store) = made("conventional", "conventional");
    store.lose(Lba(10), Sectors(4)).expect("memory fails nobody");
    let outcome = store.check_readable(Lba(8), Sectors(10), |start, _| start == 10);
    assert!(matches!(outcome, Err(DeviceError::Lost { lba: Lba(11) })), "{outcome:?}");
    store.check_readable(Lba(8), Sectors(10), |_, _| true).expect("all are spared");
    store.check_readable(Lba(14), Sectors(10), |_, _| false).expect("none of these is lost");
}

#[test]
fn what_a_plan_before_has_staged_is_given_to_nobody() {
    let (_, mut store) = made("conventional", "conventional");
    fill(&mut store, 10, 4, 5);
    let mut copied = read_of(10, 10, 4, GroupKind::Host);
    copied.write(Cause::Host, Pba(30), Lba(10), Sectors(4));
    store.execute(&copied, &mut []).expect("memory fails nobody");
    // The map has nothing for these reads, so they return zeros, although a background group precedes the host's.
    let mut plan = read_of(20, 20, 1, GroupKind::Cleaning);
    plan.open(GroupKind::Host);
    plan.write(Cause::Host, Pba(40), Lba(40), Sectors(1));
    let (mut into, given) = ([0xee; 4 * SECTOR], [9; SECTOR]);
    let mut transfers =
        [Transfer { lba: 10, data: Data::Read(&mut into) }, Transfer { lba: 40, data: Data::Write(&given) }];
    store.execute(&plan, &mut transfers).expect("memory fails nobody");
    assert!(into == [0; 4 * SECTOR], "it reads as {}", into[0]);
}

#[test]
fn what_a_write_destroys_cannot_be_read_any_more() {
    // DNOR 5 and DID 12: a write of 0 … 3 damages 6 … 15 (Singh 2014 §3.2).
    for (kind, expected) in [("conventional", vec![]), ("caveat", vec![extent(6, 10)])] {
        let (_, mut store) = made(kind, kind);
        fill(&mut store, 0, 100, 5);
        fill(&mut store, 0, 4, 6);
        let mut found = Vec::new();
        store.for_each_damage(extent(0, 100), |run| found.push(run)).expect("memory fails nobody");
        assert_eq!(found, expected, "{kind}");
    }
}
