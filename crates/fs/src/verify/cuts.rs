//! The power-cut checker: performs operations on model devices, and examines the state that a power cut leaves after
//! each of their writes, flushes and resets.
//!
//! The state found after a cut must satisfy these rules. Some of the operations were acknowledged before the cut.
//! 1. Names, modes, links, link targets and attributes are those after some operation, and not older than the last
//!    acknowledged `fsync`. At most one operation, the one in progress, is newer than the acknowledged ones.
//! 2. Each block and the length of a file are those after some operation. They are not older than the file's last
//!    acknowledged `fsync`, nor older than a rename or link of the file that is found. An allocation lengthens a file
//!    step by step.
//! 3. No access returns an error, the self-check finds nothing, and the file system stays usable.
//! 4. The device has seen no violation of its rules.
//! 5. A copy in the hot zone equals the file in the store, and is undamaged unless the harm altered it.
//! 6. A zone of a stripe group is not overwritten while the group exists.
//!
//! All of this also holds after harm to an array within its parity: missing drives, a drive in an earlier state,
//! altered blocks, and blocks older than the data synced after them.

use std::collections::BTreeMap;

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::naive::{Naive, Shown};
use super::operation::{Operation, find, perform};
use super::rig::Rig;
use super::trial::{Harm, RANDOM_SUBSETS, Trial};
use crate::core::{Fs, HotOn, MountOptions, Sabotage};
use crate::device::BLOCK_BYTES;
use crate::device::model::{Contents, Snapshot};
use crate::error::FsError;
use crate::executor::Executor;
use crate::format::change::GroupLayout;

/// Up to this number of blocks that are not durable, every subset is tried.
const EVERY_SUBSET: usize = 6;

/// Counts of a power-cut check.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Number of power cuts: one after each write, flush, reset and finish of a device since the first mount.
    pub cuts: u64,
    /// Number of states examined after the cuts. Each cut gives one state for each tried subset of unflushed blocks.
    pub states: u64,
}

/// An operation that was performed, with the state that a cut after it may leave.
struct Step {
    /// Number of device events when the operation was acknowledged.
    events: u64,
    /// State of the naive file system after the operation.
    after: Naive,
    /// Files of the naive file system whose contents the operation made durable.
    durable: Vec<u32>,
    /// Whether the operation made names durable.
    names_durable: bool,
    /// Files that the operation gave a name.
    named: Vec<u32>,
    /// Whether the operation lengthens a file step by step.
    lengthens: bool,
}

fn mount_options(trial: &Trial, sabotage: Option<Sabotage>) -> MountOptions {
    MountOptions {
        bounds: Some(trial.bounds),
        epoch_ns: 1_400_000_000_000_000_000,
        sabotage,
        ..MountOptions::default()
    }
}

/// Makes the file system of `trial` on new model devices, and mounts it.
///
/// # Errors
/// The file system could not be made or mounted.
pub async fn fresh(executor: &Executor, trial: &Trial) -> Result<(Fs, Rig), FsError> {
    let rig = Rig::new(trial);
    rig.make(executor, trial).await?;
    let devices = rig.devices(executor, &[]);
    let (fs, _) = Fs::mount(executor, &devices, &mount_options(trial, trial.sabotage)).await?;
    Ok((fs, rig))
}

/// Unmounts the file system and mounts it again.
async fn remount(executor: &Executor, trial: &Trial, fs: &mut Fs, rig: &Rig) -> Result<(), FsError> {
    fs.unmount().await?;
    *fs = Fs::mount(executor, &rig.devices(executor, &[]), &mount_options(trial, trial.sabotage)).await?.0;
    Ok(())
}

/// Performs `operations` on a new file system and on the naive one. Returns the state after each operation, the
/// snapshots of the devices after each event, and the number of violated device rules.
async fn run(
    executor: Executor,
    trial: Trial,
    operations: Vec<Operation>,
) -> Result<(Vec<Step>, Vec<Vec<Snapshot>>, u64), String> {
    let (mut fs, rig) = fresh(&executor, &trial).await.map_err(|error| format!("making it: {error}"))?;
    rig.keep_snapshots();
    // mkfs and the first mount know nothing about the device, so their events and violations are not counted.
    let (first, broken) = (rig.events(), rig.broken_rules());
    if let Some((device, events)) = trial.dies {
        rig.models()[device].fail_after(events);
    }
    let mut naive = Naive::default();
    let mut steps = vec![Step {
        events: 0,
        after: naive.clone(),
        durable: Vec::new(),
        names_durable: true,
        named: Vec::new(),
        lengthens: false,
    }];
    for operation in &operations {
        let files: Vec<u32> = naive.paths().into_values().collect();
        let (mut durable, mut names_durable, mut named) = (Vec::new(), false, Vec::new());
        let several = if let Operation::Together(several) = operation { several } else { &vec![operation.clone()] };
        for operation in several {
            match operation {
                Operation::Fsync(path) => {
                    durable.extend(naive.find(path));
                    names_durable |= naive.find(path).is_ok();
                }
                Operation::Sync | Operation::Remount => (durable, names_durable) = (files.clone(), true),
                Operation::Rename(path, _) | Operation::Link(path, _) | Operation::Exchange(path, _) => {
                    named.extend(naive.find(path));
                }
                _ => {}
            }
        }
        let outcome = match operation {
            Operation::Remount => remount(&executor, &trial, &mut fs, &rig).await,
            operation => perform(&fs, operation).await,
        };
        let mut tried = naive.clone();
        let expected = tried.perform(operation);
        match (&outcome, &expected) {
            // The naive file system is never full; an operation refused for lack of space was not performed.
            (Err(FsError::NoSpace), _) => {}
            (Ok(()), Ok(())) => naive = tried,
            (Err(one), Err(other)) if one.errno() == other.errno() => {}
            _ => return Err(format!("{operation:?}: {outcome:?}, and the naive file system says {expected:?}")),
        }
        if outcome.is_err() {
            (durable, names_durable, named) = (Vec::new(), false, Vec::new());
        }
        let events = rig.events() - first;
        let lengthens = matches!(operation, Operation::Allocate(..));
        steps.push(Step { events, after: naive.clone(), durable, names_durable, named, lengthens });
    }
    let wrong = fs.self_check();
    if !wrong.is_empty() {
        return Err(wrong.join("; "));
    }
    compare_all(&fs, &naive).await?;
    Ok((steps, rig.take_snapshots(), rig.broken_rules() - broken))
}

/// Checks that the file system has the names and file contents of the naive one, and equal file types, permissions,
/// hard links, link targets and first bytes of extended attribute `user.a`. Other attributes, such as owners and times,
/// and the root directory's own attributes are not compared.
///
/// # Errors
/// The first difference, or an access that failed. The error is a message.
pub async fn compare_all(fs: &Fs, naive: &Naive) -> Result<(), String> {
    let found = shown(fs).await?;
    let expected = naive.shown();
    if found != expected {
        return Err(difference(&found, &expected));
    }
    for (path, number) in naive.paths() {
        let Some(bytes) = naive.bytes(number) else { continue };
        let inode = find(fs, &path).map_err(|error| format!("'{path}': {error}"))?;
        let read = fs.read(inode, 0, bytes.len() + 1).await.map_err(|error| format!("'{path}': {error}"))?;
        if read != bytes {
            let at = read.iter().zip(bytes).position(|(one, other)| one != other);
            return Err(format!(
                "'{path}': {} bytes, {} expected, the first difference at {at:?}",
                read.len(),
                bytes.len()
            ));
        }
    }
    Ok(())
}

fn difference(found: &BTreeMap<String, Shown>, expected: &BTreeMap<String, Shown>) -> String {
    for path in found.keys().chain(expected.keys()) {
        if found.get(path) != expected.get(path) {
            return format!("'{path}' shows {:?}, and should {:?}", found.get(path), expected.get(path));
        }
    }
    "no difference".into()
}

/// Returns the attributes that [`Shown`] has, by path, for every path of the file system but that of the root
/// directory: file type, permissions, links, link target, and the first byte of extended attribute `user.a`.
///
/// # Errors
/// A directory could not be listed, or a file's attributes could not be read. The error is a message.
pub async fn shown(fs: &Fs) -> Result<BTreeMap<String, Shown>, String> {
    let (mut shown, mut first_paths) = (BTreeMap::new(), BTreeMap::new());
    let mut left = vec![(String::new(), crate::namespace::ROOT)];
    while let Some((above, directory)) = left.pop() {
        let listed = fs.list(directory, 2, usize::MAX).map_err(|error| format!("'{above}': {error}"))?;
        for entry in listed {
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            let attr = fs.attr(entry.inode).map_err(|error| format!("'{path}': {error}"))?;
            let target = fs.read_link(entry.inode).ok().map(|target| String::from_utf8_lossy(&target).into_owned());
            let attribute = fs.attribute(entry.inode, b"user.a").ok().and_then(|value| value.first().copied());
            let (mode, links) = (attr.attributes.mode, attr.attributes.links);
            let first: &mut String = first_paths.entry(entry.inode).or_insert_with(|| path.clone());
            if path < *first {
                *first = path.clone();
            }
            shown.insert(
                path.clone(),
                (entry.inode, Shown { mode, links, target, attribute, first_path: String::new() }),
            );
            if mode & 0o170_000 == 0o040_000 {
                left.push((path, entry.inode));
            }
        }
    }
    let with_first = |(path, (inode, show)): (String, (u32, Shown))| {
        let first_path = first_paths[&inode].clone();
        (path, Shown { first_path, ..show })
    };
    Ok(shown.into_iter().map(with_first).collect())
}

/// Performs `operations` on a new file system, and examines states that a power cut can leave after each write, flush,
/// reset and finish of a device. Of more than 6 unflushed blocks not every surviving subset is tried, but none, all,
/// and some others. Each state suffers one of the harms of `trial`, in turn.
///
/// # Errors
/// The first cut after which synced data or names are lost or too old, an access fails, a check finds an error, or a
/// device saw a violation of its rules. Also an operation whose outcome differs from that of the naive file system. The
/// error is a message.
pub fn judge(trial: &Trial, operations: &[Operation]) -> Result<Tally, String> {
    let executor = Executor::in_virtual_time();
    let ran = executor.run(run(executor.clone(), trial.clone(), operations.to_vec()));
    executor.shut_down();
    let (steps, snapshots, broken) = ran.map_err(|stalled| stalled.to_string())??;
    if broken > 0 {
        return Err(format!("{broken} operations broke the rules of the device"));
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(trial.seed);
    let mut tally = Tally::default();
    for (number, snapshot) in snapshots.iter().enumerate() {
        tally.cuts += 1;
        let event = number as u64 + 1;
        let acknowledged = steps.iter().rposition(|step| step.events <= event).unwrap_or(0);
        let unflushed = snapshot.iter().map(Snapshot::unflushed).sum();
        for survivors in subsets(unflushed, trial.random_subsets, &mut random) {
            let harm = &trial.harms[tally.states as usize % trial.harms.len()];
            tally.states += 1;
            let mut left = cut(snapshot, &survivors);
            let missing = do_harm(harm, &mut left, &snapshots[..=number], trial, &mut random);
            // Altered blocks, and blocks put back during a mount, may belong to a copy in the hot zone.
            let is_on_drives = trial.hot_on == HotOn::Drives;
            let copies_are_whole = match harm {
                Harm::CopyAltered(_) | Harm::WriteLost(_) => false,
                Harm::Altered | Harm::Stale(_) => !is_on_drives,
                _ => true,
            };
            look(trial, &steps, acknowledged, left, &missing, copies_are_whole).map_err(|why| {
                format!("cut after event {event} of {}, survivors {survivors:?}, {harm:?}: {why}", snapshots.len())
            })?;
        }
    }
    Ok(tally)
}

/// Returns the contents of each device after a cut.
fn cut(snapshot: &[Snapshot], survivors: &[bool]) -> Vec<Contents> {
    let mut first = 0;
    let one = |snapshot: &Snapshot| {
        let left = snapshot.cut(|block| survivors[first + block]);
        first += snapshot.unflushed();
        left
    };
    snapshot.iter().map(one).collect()
}

/// Does `harm` to the contents `left` by a cut; `earlier` has the snapshots up to the cut. Returns the numbers of the
/// missing devices.
fn do_harm(
    harm: &Harm,
    left: &mut [Contents],
    earlier: &[Vec<Snapshot>],
    trial: &Trial,
    random: &mut Xoshiro256PlusPlus,
) -> Vec<usize> {
    match harm {
        Harm::None => Vec::new(),
        Harm::Lost(drives) => drives.clone(),
        Harm::Stale(drive) => {
            left[*drive] = earlier[(earlier.len() - 1) / 2][*drive].cut(|_| false);
            Vec::new()
        }
        Harm::Altered => {
            let drive = (random.next_u64() % trial.drives as u64) as usize;
            alter_some(&mut left[drive], random);
            Vec::new()
        }
        Harm::CopyLost(copy) => vec![trial.drives + copy],
        Harm::CopyAltered(copy) => {
            alter_some(&mut left[trial.drives + copy], random);
            Vec::new()
        }
        Harm::WriteLost(device) => {
            lose_write(&mut left[*device], (*device, earlier), random);
            Vec::new()
        }
    }
}

/// Number of bytes that a disk of the host writes atomically.
const SECTOR_BYTES: usize = 512;
/// Number of attempts to choose a block that has older contents.
const CHOICES: usize = 64;

/// Puts one block of a device, or one sector of 512 bytes of the block, back to its state in a random earlier snapshot,
/// as if the drive had dropped all later writes to it. `earlier` has the snapshots of all devices, of which `number` is
/// the index of this one. Returns the number of the block. Returns `None` and changes nothing if no block with older
/// contents is found in 64 attempts.
pub fn lose_write(
    contents: &mut Contents,
    (number, earlier): (usize, &[Vec<Snapshot>]),
    random: &mut Xoshiro256PlusPlus,
) -> Option<u64> {
    let mut below = |end: usize| (random.next_u64() % end.max(1) as u64) as usize;
    for _ in 0..CHOICES {
        let then = earlier.get(below(earlier.len()))?[number].cut(|_| true);
        let blocks = contents.used_blocks();
        let block = *blocks.get(below(blocks.len()))?;
        let Some(old) = then.block(block).map(<[u8]>::to_vec) else { continue };
        let sector = below(BLOCK_BYTES / SECTOR_BYTES) * SECTOR_BYTES;
        let range = if below(2) == 0 { 0..BLOCK_BYTES } else { sector..sector + SECTOR_BYTES };
        if contents.block(block).is_some_and(|now| now[range.clone()] != old[range.clone()]) {
            contents.corrupt(block, |bytes| bytes[range.clone()].copy_from_slice(&old[range.clone()]));
            return Some(block);
        }
    }
    None
}

/// Alters one of the blocks of a device that hold data.
fn alter_some(contents: &mut Contents, random: &mut Xoshiro256PlusPlus) {
    let blocks = contents.used_blocks();
    if let Some(block) = blocks.get((random.next_u64() % blocks.len().max(1) as u64) as usize) {
        contents.corrupt(*block, |bytes| bytes[100] ^= 64);
    }
}

/// Returns subsets of `blocks` that survive a cut: every subset of a small number. Of a larger number, none, all, all
/// but each one, and some random subsets. Fewer than [`RANDOM_SUBSETS`] random subsets leave out those with one block
/// missing.
fn subsets(blocks: usize, random_subsets: usize, random: &mut Xoshiro256PlusPlus) -> Vec<Vec<bool>> {
    if blocks <= EVERY_SUBSET {
        return (0..1u32 << blocks).map(|bits| (0..blocks).map(|block| bits >> block & 1 == 1).collect()).collect();
    }
    let mut subsets = vec![vec![false; blocks], vec![true; blocks]];
    let one_missing = |missing: usize| (0..blocks).map(|block| block != missing).collect();
    if random_subsets >= RANDOM_SUBSETS {
        subsets.extend((0..blocks).map(one_missing));
    }
    subsets.extend((0..random_subsets).map(|_| (0..blocks).map(|_| random.next_u32() & 1 == 1).collect::<Vec<bool>>()));
    subsets
}

/// Checks the state `left` by a cut against the rules of this module.
fn look(
    trial: &Trial,
    steps: &[Step],
    acknowledged: usize,
    left: Vec<Contents>,
    missing: &[usize],
    copies_are_whole: bool,
) -> Result<(), String> {
    let executor = Executor::in_virtual_time();
    let rig = Rig::with(left);
    let devices = rig.devices(&executor, missing);
    let options = mount_options(trial, None);
    let steps_seen = &steps[..(acknowledged + 2).min(steps.len())];
    let own_rig = rig.clone();
    // The task below must not borrow the steps, so its results are checked outside of it.
    let own = executor.clone();
    let found = executor.run(async move {
        let (fs, _) = Fs::mount(&own, &devices, &options).await.map_err(|error| format!("mounting: {error}"))?;
        let (groups, before) = (groups_of(&fs), own_rig.contents());
        let wrong = fs.self_check();
        if !wrong.is_empty() {
            return Err(wrong.join("; "));
        }
        let shown = shown(&fs).await?;
        let mut contents = BTreeMap::new();
        for (path, show) in shown.iter().filter(|(path, show)| show.first_path == **path && show.mode >> 12 == 0o10) {
            let inode = find(&fs, path).map_err(|error| format!("'{path}': {error}"))?;
            let size = fs.attr(inode).map_err(|error| format!("'{path}': {error}"))?.attributes.size;
            let bytes = fs.read(inode, 0, size as usize).await.map_err(|error| format!("'{path}': {error}"))?;
            let stored = fs.read_stored_only(inode, 0, size as usize).await;
            if stored.map_err(|error| format!("'{path}', not from its copy: {error}"))? != bytes {
                return Err(format!("'{path}' has a copy in the hot zone that differs from the store"));
            }
            contents.insert(show.first_path.clone(), bytes);
        }
        let damaged = fs.status().hot.counters.damaged;
        if damaged > 0 && copies_are_whole {
            return Err(format!("{damaged} reads found a copy in the hot zone damaged"));
        }
        goes_on(&fs).await?;
        is_not_written_over(&fs, &groups, (&before, &own_rig.contents()))?;
        Ok((shown, contents))
    });
    executor.shut_down();
    let (shown, contents) = found.map_err(|stalled| stalled.to_string())??;
    if rig.broken_rules() > 0 {
        return Err("the rules of the device were broken after mounting again".into());
    }
    judge_found(steps_seen, acknowledged, &shown, &contents)
}

/// Returns the stripe groups of the file system's array; none if it is on a single drive.
fn groups_of(fs: &Fs) -> Vec<(u32, GroupLayout)> {
    let groups = fs.0.data.array().map(|array| array.groups()).unwrap_or_default();
    groups.into_iter().map(|(number, layout, _)| (number, layout)).collect()
}

/// Checks that the zones of those `groups` that still exist hold the same blocks as before. A block without contents
/// before or after is not compared: the zone was just being emptied. Missing drives are never written, so their zones
/// pass.
fn is_not_written_over(
    fs: &Fs,
    groups: &[(u32, GroupLayout)],
    (before, after): (&[Contents], &[Contents]),
) -> Result<(), String> {
    let (Some(array), now) = (fs.0.data.array(), groups_of(fs)) else { return Ok(()) };
    let zone_blocks = array.shape().zone_blocks;
    for (number, layout) in groups.iter().filter(|group| now.contains(group)) {
        for at in &layout.members {
            let (Some(before), Some(after)) = (before.get(usize::from(at.drive)), after.get(usize::from(at.drive)))
            else {
                continue;
            };
            let first = u64::from(at.zone) * zone_blocks;
            let altered = (first..first + zone_blocks)
                .find(|block| before.block(*block).zip(after.block(*block)).is_some_and(|(one, other)| one != other));
            if let Some(block) = altered {
                return Err(format!("block {block} of drive {} is written over in stripe group {number}", at.drive));
            }
        }
    }
    Ok(())
}

/// Checks that the file system is still usable.
async fn goes_on(fs: &Fs) -> Result<(), String> {
    let operations = [Operation::Create("new".into()), Operation::Write("new".into(), 0, 100, 9), Operation::Sync];
    for operation in &operations {
        match perform(fs, operation).await {
            Ok(()) | Err(FsError::NoSpace) => {}
            Err(error) => return Err(format!("afterwards {operation:?}: {error}")),
        }
    }
    Ok(())
}

fn judge_found(
    steps: &[Step],
    acknowledged: usize,
    shown: &BTreeMap<String, Shown>,
    contents: &BTreeMap<String, Vec<u8>>,
) -> Result<(), String> {
    let names_since = (0..=acknowledged).rev().find(|step| steps[*step].names_durable).unwrap_or(0);
    let candidates: Vec<usize> =
        (names_since..steps.len()).filter(|step| steps[*step].after.shown() == *shown).collect();
    if candidates.is_empty() {
        let latest = &steps[acknowledged.min(steps.len() - 1)].after.shown();
        return Err(format!("names are of no time since the last fsync; {}", difference(shown, latest)));
    }
    let mut why = String::new();
    for structure in candidates {
        match judge_contents(steps, acknowledged, structure, contents) {
            Ok(()) => return Ok(()),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

fn judge_contents(
    steps: &[Step],
    acknowledged: usize,
    structure: usize,
    contents: &BTreeMap<String, Vec<u8>>,
) -> Result<(), String> {
    let paths = steps[structure].after.paths();
    for (path, found) in contents {
        let number = paths[path];
        let durable = (0..=acknowledged).rev().find(|step| steps[*step].durable.contains(&number)).unwrap_or(0);
        // The data were written before the record that gave the file its name.
        let named = (0..=structure).rev().find(|step| steps[*step].named.contains(&number)).unwrap_or(0);
        let since = durable.max(named.saturating_sub(1));
        let states: Vec<&[u8]> = (since..steps.len()).filter_map(|step| steps[step].after.bytes(number)).collect();
        let was_on_its_way = (since.max(1)..steps.len()).filter(|step| steps[*step].lengthens).any(|step| {
            let length = |step: usize| steps[step].after.bytes(number).map_or(0, <[u8]>::len);
            (length(step - 1)..=length(step)).contains(&found.len())
        });
        if !was_on_its_way && !states.iter().any(|state| state.len() == found.len()) {
            return Err(format!("'{path}' has {} bytes, and never had since step {since}", found.len()));
        }
        for (block, bytes) in found.chunks(BLOCK_BYTES).enumerate() {
            let is_some_state = states.iter().any(|state| is_block_of(state, block, bytes));
            if !is_some_state {
                return Err(format!("block {block} of '{path}' is of no time since step {since}"));
            }
        }
    }
    Ok(())
}

/// Returns whether `bytes` are block `block` of `state`, with zeros beyond the end of `state`.
fn is_block_of(state: &[u8], block: usize, bytes: &[u8]) -> bool {
    let at = block * BLOCK_BYTES;
    let there = &state[at.min(state.len())..(at + bytes.len()).min(state.len())];
    bytes[..there.len()] == *there && bytes[there.len()..].iter().all(|byte| *byte == 0)
}
