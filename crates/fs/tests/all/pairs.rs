//! Goal: any two harms to an array, at rest, under load, while a drive is replaced or zones are emptied, give no wrong
//! byte and go unnoticed nowhere. They lose nothing as long as no stripe has more than m erasures and one copy of the
//! metadata is readable; otherwise, scrub names exactly the lost data. Method: small arrays with two copies of their
//! metadata. For each pair of harms and each phase, a writer whose files and versions are known works while the harm
//! occurs at moments chosen by a seed. `IMBREX_FS_PAIRS=N` runs N seeds.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use imbrex_fs::core::{HotOn, MountOptions};
use imbrex_fs::device::model::{Contents, Model, Snapshot};
use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::rig::Rig;
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, mirrored, perform};
use imbrex_fs::{Executor, Fs, FsError};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use uuid::Uuid;

const FILES: u8 = 6;
const NEW: Uuid = Uuid::from_u128(0xabc);
/// The drive that is replaced in the rebuild phase.
const OLD: usize = 1;
const COPIES: usize = 2;

/// A harm to an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Harm {
    /// The power is cut.
    Cut,
    /// A drive dies and is gone.
    Lost,
    /// Two drives die and are gone.
    LostTwo,
    /// A device with a copy of the metadata dies and is gone.
    CopyLost,
    /// A drive dies, and returns in its state at that time.
    Stale,
    /// A block is altered.
    Altered,
}

const HARMS: [Harm; 6] = [Harm::Cut, Harm::Lost, Harm::LostTwo, Harm::CopyLost, Harm::Stale, Harm::Altered];

/// The activity during the harm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Rest,
    Load,
    Rebuild,
    Cleaning,
}

const PHASES: [Phase; 4] = [Phase::Rest, Phase::Load, Phase::Rebuild, Phase::Cleaning];

struct Random(Xoshiro256PlusPlus);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end.max(1)
    }
}

/// The harms of a run, with their devices and moments.
#[derive(Default, Debug)]
struct Doom {
    /// Devices that die after this number of their events.
    die: Vec<(usize, u64)>,
    /// Devices among those in `die` that are absent afterwards.
    gone: BTreeSet<usize>,
    /// Drives with missing data.
    erased: BTreeSet<usize>,
    /// Copies of the metadata with missing data.
    copies: BTreeSet<usize>,
    /// Devices with an altered block, and whether it is altered before the activity or after it.
    altered: Vec<(usize, bool)>,
    altered_blocks: usize,
    is_cut: bool,
}

/// An array, with the places of its devices among the models: drives, then copies, then the replacement drive.
#[derive(Clone)]
struct Place {
    trial: Trial,
    new: usize,
}

impl Place {
    fn copies(&self) -> std::ops::Range<usize> {
        self.trial.drives..self.trial.drives + COPIES
    }

    fn parity(&self) -> usize {
        usize::from(self.trial.parity)
    }
}

fn doom_of(place: &Place, pair: [Harm; 2], random: &mut Random) -> Doom {
    let mut doom = Doom::default();
    for harm in pair {
        let drives = if harm == Harm::LostTwo { 2 } else { 1 };
        match harm {
            Harm::Cut => doom.is_cut = true,
            Harm::Lost | Harm::LostTwo | Harm::Stale => {
                for _ in 0..drives {
                    // A drive that has not been chosen yet.
                    let left: Vec<usize> = (0..place.trial.drives).filter(|it| !doom.erased.contains(it)).collect();
                    let drive = left[random.below(left.len() as u64) as usize];
                    doom.erased.insert(drive);
                    doom.die.push((drive, random.below(30)));
                    if harm != Harm::Stale {
                        doom.gone.insert(drive);
                    }
                }
            }
            Harm::CopyLost => {
                let copy = place.copies().start + random.below(COPIES as u64) as usize;
                doom.copies.insert(copy);
                doom.gone.insert(copy);
                doom.die.push((copy, random.below(30)));
            }
            Harm::Altered => {
                let device = random.below((place.trial.drives + COPIES) as u64) as usize;
                doom.altered.push((device, random.below(2) == 0));
                if place.copies().contains(&device) {
                    doom.copies.insert(device);
                } else {
                    doom.altered_blocks += 1;
                }
            }
        }
    }
    doom
}

impl Doom {
    /// Returns whether nothing may be lost.
    fn is_within(&self, place: &Place) -> bool {
        self.erased.len() + self.altered_blocks <= place.parity() && self.copies.len() < COPIES
    }
}

/// The versions of each file: its seed, and the number of events after which it was acknowledged as durable, if it was.
type Versions = BTreeMap<u8, Vec<(u8, Option<u64>)>>;

fn bytes_of(file: u8) -> usize {
    3_000 + 2_500 * usize::from(file)
}

struct Known {
    versions: RefCell<Versions>,
    seeds: Cell<u8>,
}

/// Writes a new version of a file, and makes it durable if `is_durable`. Returns the file system's error if it no
/// longer accepts writes.
async fn write(fs: &Fs, rig: &Rig, known: &Known, file: u8, is_durable: bool) -> Result<(), FsError> {
    let path = format!("f{file}");
    known.seeds.set(known.seeds.get().wrapping_add(1));
    let seed = known.seeds.get();
    if find(fs, &path).is_err() {
        perform(fs, &Operation::Create(path.clone())).await?;
    }
    known.versions.borrow_mut().entry(file).or_default().push((seed, None));
    perform(fs, &Operation::WriteOut(path.clone(), 0, bytes_of(file), seed)).await?;
    if is_durable {
        perform(fs, &Operation::Fsync(path)).await?;
        let events = rig.events();
        if let Some(version) =
            known.versions.borrow_mut().get_mut(&file).and_then(|all| all.iter_mut().rfind(|it| it.0 == seed))
        {
            version.1 = Some(events);
        }
    }
    Ok(())
}

/// Performs the activity of a phase, until it ends or the file system accepts no more.
async fn act(place: &Place, phase: Phase, fs: &Fs, rig: &Rc<Rig>, known: &Rc<Known>, seed: u64) -> Result<(), FsError> {
    let executor = fs.executor().clone();
    let (writer, own_rig, own_known) = (fs.clone(), rig.clone(), known.clone());
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed));
    let writing = executor.spawn(async move {
        let rounds = if phase == Phase::Rest { 0 } else { 14 };
        for _ in 0..rounds {
            let file = random.below(u64::from(FILES)) as u8;
            write(&writer, &own_rig, &own_known, file, random.below(2) == 0).await?;
        }
        Ok(())
    });
    let done = match phase {
        Phase::Rest | Phase::Load => Ok(()),
        Phase::Rebuild => {
            let new = rig.devices(&executor, &[]).swap_remove(place.new);
            fs.replace_drive(OLD as u8, Some((&new, NEW)), true, |_| true).await.map(drop)
        }
        Phase::Cleaning => fs.clean(u64::MAX).await.map(drop),
    };
    writing.await.and(done)
}

/// Alters the used block at `share` thousandths of all used blocks: on two drives, often blocks of one row.
fn alter(contents: &mut Contents, share: u64) {
    let blocks = contents.used_blocks();
    if !blocks.is_empty() {
        contents.corrupt(blocks[blocks.len() * share as usize / 1000], |bytes| bytes[100] ^= 64);
    }
}

/// Makes a file system with files and unmounts it; returns the devices' contents and the known versions.
async fn begun(executor: &Executor, place: &Place) -> (Vec<Contents>, Rc<Known>) {
    let known = Rc::new(Known { versions: RefCell::default(), seeds: Cell::new(0) });
    let (fs, rig) = fresh(executor, &place.trial).await.unwrap();
    for file in (0..FILES).chain(0..3) {
        write(&fs, &rig, &known, file, true).await.unwrap();
    }
    fs.unmount().await.unwrap();
    let new = Model::new(place.trial.geometry).contents();
    // All of it is durable from the beginning.
    known.versions.borrow_mut().values_mut().flatten().for_each(|version| version.1 = Some(0));
    (rig.contents().into_iter().chain([new]).collect(), known)
}

/// The contents of the devices after the harm, and the number of events until then.
struct Left {
    contents: Vec<Contents>,
    events: u64,
    known: Rc<Known>,
}

async fn harmed(executor: &Executor, place: &Place, phase: Phase, doom: &Doom, seed: u64) -> Left {
    let mut random = Random(Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x55));
    let share = random.below(1000);
    let (mut contents, known) = begun(executor, place).await;
    for (device, _) in doom.altered.iter().filter(|(_, is_early)| *is_early) {
        alter(&mut contents[*device], share);
    }
    let rig = Rc::new(Rig::with(contents));
    // At rest, nothing is mounted: a device that dies is gone, or stays as it is.
    if phase != Phase::Rest {
        let mounted = Fs::mount(executor, &rig.devices(executor, &[place.new]), &options(place)).await;
        let (fs, _) = mounted.unwrap_or_else(|error| panic!("{doom:?}: all are there: {error}"));
        rig.keep_snapshots();
        doom.die.iter().for_each(|(device, events)| rig.models()[*device].fail_after(*events));
        let outcome = act(place, phase, &fs, &rig, &known, seed).await;
        if doom.is_within(place) {
            outcome.unwrap_or_else(|error| {
                let status = fs.status();
                panic!("{phase:?}, {doom:?}: nobody is to hear of it: {error}: {:?}, {:?}", status.usage, status.zones)
            });
        }
        if !doom.is_cut {
            let ended = fs.unmount().await;
            assert!(ended.is_ok() || !doom.is_within(place), "{phase:?}, {doom:?}: {ended:?}");
        }
        assert_eq!(rig.broken_rules(), 0, "{phase:?}, {doom:?}");
    }
    let snapshots = rig.take_snapshots();
    let (mut left, events) = if doom.is_cut && !snapshots.is_empty() {
        let at = random.below(snapshots.len() as u64) as usize;
        let cut = |one: &Snapshot| one.cut(|_| random.below(2) == 0);
        (snapshots[at].iter().map(cut).collect(), at as u64 + 1)
    } else {
        (rig.contents(), u64::MAX)
    };
    for (device, _) in doom.altered.iter().filter(|(_, is_early)| !*is_early) {
        alter(&mut left[*device], share);
    }
    Left { contents: left, events, known }
}

fn options(place: &Place) -> MountOptions {
    MountOptions { bounds: Some(place.trial.bounds), ..MountOptions::default() }
}

/// Counts of states and files.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    states: u64,
    /// States with harms within the parity and the copies.
    within: u64,
    /// States beyond that: refused as a whole, and mounted.
    refused: u64,
    beyond: u64,
    files: u64,
    lost: u64,
    wrong: u64,
    unnoticed: u64,
    /// Files that were stored only in the hot zone at the new mount.
    alone: u64,
    /// Files with a copy in the hot zone.
    copies: u64,
}

/// Reads every file; returns the lost ones. Counts wrong bytes, and versions older than the acknowledged one.
async fn read_all(fs: &Fs, left: &Left, is_fresh: bool, tally: &mut Tally) -> BTreeSet<u8> {
    let mut lost = BTreeSet::new();
    for file in 0..FILES {
        tally.files += 1;
        let read = match find(fs, &format!("f{file}")) {
            Ok(inode) => fs.read(inode, 0, 1 << 20).await,
            Err(error) => Err(error),
        };
        let Ok(bytes) = read else {
            lost.insert(file);
            continue;
        };
        let versions = left.known.versions.borrow();
        let all = &versions[&file];
        let since = all.iter().rposition(|(_, events)| events.is_some_and(|events| events <= left.events)).unwrap_or(0);
        let may_be = &all[if is_fresh { since } else { 0 }..];
        let is_right = |(number, block): (usize, &[u8])| {
            may_be.iter().any(|(seed, _)| {
                let whole = pattern(*seed, 0, bytes_of(file));
                whole[number * BLOCK_BYTES..].starts_with(block)
            })
        };
        let is_whole = bytes.len() == bytes_of(file) && bytes.chunks(BLOCK_BYTES).enumerate().all(is_right);
        tally.wrong += u64::from(!is_whole);
    }
    lost
}

/// Returns the files that the drives with parity cannot give, whether the hot zone has a copy or not.
async fn gone_from_store(fs: &Fs) -> BTreeSet<u8> {
    let mut gone = BTreeSet::new();
    for file in 0..FILES {
        let read = match find(fs, &format!("f{file}")) {
            Ok(inode) => fs.read_stored_only(inode, 0, 1 << 20).await,
            Err(error) => Err(error),
        };
        gone.extend(read.is_err().then_some(file));
    }
    gone
}

/// Checks the harmed file system, continues to use it, and repairs it.
async fn judge(
    executor: &Executor,
    place: &Place,
    phase: Phase,
    doom: &Doom,
    left: &Left,
    tally: &mut Tally,
) -> Result<(), String> {
    let is_within = doom.is_within(place);
    let metadata_is_whole = doom.copies.len() < COPIES;
    tally.states += 1;
    tally.within += u64::from(is_within);
    let rig = Rig::with(left.contents.clone());
    let mut missing: Vec<usize> = doom.gone.iter().copied().collect();
    let new = rig.devices(executor, &[]).pop().unwrap();
    let has_new = imbrex_fs::core::look(&new).await.is_ok();
    missing.extend((!has_new).then_some(place.new));
    let mounted = Fs::mount(executor, &rig.devices(executor, &missing), &options(place)).await;
    let fs = match mounted {
        Ok((fs, _)) => fs,
        Err(error) if is_within => return Err(format!("mounting: {error}")),
        Err(_) => {
            tally.refused += 1;
            return Ok(());
        }
    };
    tally.beyond += u64::from(!is_within);
    tally.alone += fs.status().hot.alone_files;
    tally.copies += fs.status().hot.files - fs.status().hot.alone_files;
    let lost = read_all(&fs, left, metadata_is_whole, tally).await;
    if is_within && !lost.is_empty() {
        return Err(format!("files {lost:?} are lost"));
    }
    if is_within && phase == Phase::Rebuild {
        finish_rebuild(&fs, &new).await?;
        // The replacement may have begun only now.
        if imbrex_fs::core::look(&new).await.is_ok() {
            missing.retain(|device| *device != place.new);
        }
    }
    let gone = gone_from_store(&fs).await;
    if !lost.is_subset(&gone) {
        return Err(format!("{lost:?} cannot be read, and of the store {gone:?} cannot"));
    }
    scrub(&fs, &gone, metadata_is_whole, tally).await?;
    tally.lost += lost.len() as u64;
    if is_within {
        let after = read_all(&fs, left, true, tally).await;
        let goes_on = write(&fs, &rig, &left.known, 0, true).await;
        fs.unmount().await.map_err(|error| format!("unmounting: {error}"))?;
        if !after.is_empty() || !matches!(goes_on, Ok(()) | Err(FsError::NoSpace)) {
            return Err(format!("after the repair {after:?} are lost, and a write says {goes_on:?}"));
        }
        lose_another(executor, place, doom, left, &rig, &missing, tally).await?;
    }
    if rig.broken_rules() > 0 {
        return Err("rules of the devices were broken".into());
    }
    Ok(())
}

/// Completes a replacement that had begun.
async fn finish_rebuild(fs: &Fs, new: &imbrex_fs::Device) -> Result<(), String> {
    match fs.replace_drive(OLD as u8, None, false, |_| true).await {
        // The replacement was complete, or had not begun.
        Err(FsError::Invalid(why)) if why.contains("no drive of that number") => Ok(()),
        Err(FsError::Invalid(why)) if why.contains("is needed") => {
            let replaced = fs.replace_drive(OLD as u8, Some((new, NEW)), true, |_| true).await;
            replaced.map(drop).map_err(|error| format!("replacing: {error}"))
        }
        // The new drive is the one that died.
        Err(FsError::Invalid(why)) if why.contains("is missing") => Ok(()),
        outcome => outcome.map(drop).map_err(|error| format!("going on with a replacement: {error}")),
    }
}

/// Checks that scrub names exactly the unreadable files, and that its repairs last.
async fn scrub(fs: &Fs, lost: &BTreeSet<u8>, is_sure: bool, tally: &mut Tally) -> Result<(), String> {
    let scrubbed = match fs.scrub_array(true, |_, _| true).await {
        Ok(scrubbed) => scrubbed,
        Err(error) if is_sure && lost.is_empty() => return Err(format!("scrubbing: {error}")),
        // No copy of the metadata is whole, or the array no longer accepts writes.
        Err(_) => return Ok(()),
    };
    let all = scrubbed.lost.iter().chain(&scrubbed.held_by_copies);
    let named: BTreeSet<u32> = all.map(|(inode, _)| *inode).collect();
    let unreadable: BTreeSet<u32> = lost.iter().filter_map(|file| find(fs, &format!("f{file}")).ok()).collect();
    if is_sure && named != unreadable {
        return Err(format!("scrub names {named:?}, and {unreadable:?} cannot be read"));
    }
    let again = fs.scrub_array(false, |_, _| true).await.map_err(|error| format!("scrubbing again: {error}"))?;
    let is_left = again.wrong_rows > 0 || again.metadata_blocks > 0;
    tally.unnoticed += u64::from(is_left && lost.is_empty());
    Ok(())
}

/// Removes another drive and a copy: damage that went unnoticed shows if the redundancy is needed.
async fn lose_another(
    executor: &Executor,
    place: &Place,
    doom: &Doom,
    left: &Left,
    rig: &Rig,
    missing: &[usize],
    tally: &mut Tally,
) -> Result<(), String> {
    if !doom.erased.is_empty() || !doom.copies.iter().all(|copy| !missing.contains(copy)) {
        return Ok(());
    }
    for drive in 0..place.trial.drives {
        let copy = place.copies().start + drive % COPIES;
        let without = [missing, &[drive, copy]].concat();
        let (fs, _) = Fs::mount(executor, &rig_of(rig).devices(executor, &without), &options(place))
            .await
            .map_err(|error| format!("without {drive} and {copy} as well: {error}"))?;
        let lost = read_all(&fs, left, true, tally).await;
        if !lost.is_empty() {
            return Err(format!("without {drive} and {copy} as well {lost:?} are lost"));
        }
    }
    Ok(())
}

fn rig_of(rig: &Rig) -> Rig {
    Rig::with(rig.contents())
}

fn places() -> Vec<(&'static str, Place)> {
    let (_, one) = mirrored().remove(1);
    // The space suffices for all files twice, and for their records, also on three drives after the loss of two of
    // five.
    let kind = Kind::Zoned { zone_blocks: 8, zones: 14, conventional: 0, active_max: None };
    let geometry = Geometry { blocks: 112, kind };
    // A file of more than a row takes several appends, in flight together.
    let options = vec![("append_blocks".to_string(), "3".to_string())];
    let place = |drives, parity| {
        let trial = Trial { drives, parity, geometry, options: options.clone(), ..one.clone() };
        Place { new: trial.drives + COPIES, trial }
    };
    // The zone has space for some of the files, and for new versions of them.
    let with_zone = |place: Place| Place { trial: Trial { hot_blocks: 14, ..place.trial }, ..place };
    let on_drives = |place: Place| {
        let kind = Kind::Zoned { zone_blocks: 8, zones: 14, conventional: 1, active_max: None };
        let geometry = Geometry { blocks: 112, kind };
        let trial = Trial { hot_blocks: 20, hot_on: HotOn::Drives, geometry, ..place.trial };
        Place { trial, ..place }
    };
    vec![
        ("three and one parity, a hot zone on the drives", on_drives(place(4, 1))),
        ("three and one parity", place(4, 1)),
        ("three and two parity", place(5, 2)),
        ("three and one parity, hot files alone", with_zone(place(4, 1))),
    ]
}

#[test]
fn any_two_harms_at_any_time_give_no_wrong_byte_and_lose_nothing_within_parity() {
    let seeds: u64 = std::env::var("IMBREX_FS_PAIRS").ok().and_then(|text| text.parse().ok()).unwrap_or(3);
    let mut lost = 0;
    for (name, place) in places() {
        let mut tally = Tally::default();
        for phase in PHASES {
            for (one, other) in HARMS.iter().flat_map(|one| HARMS.iter().map(move |other| (*one, *other))) {
                for seed in 1..=seeds {
                    let mut random =
                        Random(Xoshiro256PlusPlus::seed_from_u64(seed * 1_000 + one as u64 * 10 + other as u64));
                    let doom = doom_of(&place, [one, other], &mut random);
                    let (executor, own) = (Executor::in_virtual_time(), place.clone());
                    let inner = executor.clone();
                    let when = format!("{name}, {phase:?}, {one:?} and {other:?}, seed {seed}: {doom:?}");
                    let run = async move {
                        let mut tally = Tally::default();
                        let left = harmed(&inner, &own, phase, &doom, seed).await;
                        let judged = judge(&inner, &own, phase, &doom, &left, &mut tally).await;
                        (judged, tally)
                    };
                    let (judged, one_tally) = executor.run(run).unwrap_or_else(|error| panic!("{when}: {error}"));
                    executor.shut_down();
                    judged.unwrap_or_else(|why| panic!("{when}: {why}"));
                    assert_eq!((one_tally.wrong, one_tally.unnoticed), (0, 0), "{when}: {one_tally:?}");
                    tally = tally.and(one_tally);
                }
            }
        }
        println!("{name}: {tally:?}");
        assert!(tally.within > tally.states / 5 && tally.beyond > 0, "{tally:?}");
        let has_alone = place.trial.hot_blocks > 0 && place.trial.hot_on == HotOn::Metadata;
        assert_eq!(tally.alone > tally.states, has_alone, "{tally:?}");
        assert_eq!(tally.copies > tally.states, place.trial.hot_on == HotOn::Drives, "{tally:?}");
        lost += tally.lost;
    }
    assert!(lost > 0, "two blocks of one row, on one parity, are lost");
}

impl Tally {
    fn and(self, other: Tally) -> Tally {
        Tally {
            states: self.states + other.states,
            within: self.within + other.within,
            refused: self.refused + other.refused,
            beyond: self.beyond + other.beyond,
            files: self.files + other.files,
            lost: self.lost + other.lost,
            wrong: self.wrong + other.wrong,
            unnoticed: self.unnoticed + other.unnoticed,
            alone: self.alone + other.alone,
            copies: self.copies + other.copies,
        }
    }
}
