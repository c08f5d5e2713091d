//! Mounting: the superblocks, the newest checkpoint, the log behind it, the store; then the tasks that go on by
//! themselves.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use super::commit::Checkpoints;
use super::hot::claim_copies;
use super::make::bytes_in_slot;
use super::members::Members;
use super::parts::HotParts;
use super::releases::Releases;
use super::written::Written;
use super::{Bounds, Core, Fs, Owner, Sabotage, sound};
use crate::array::Data;
use crate::clock::{Cause, Clock, Gate, Signal};
use crate::device::Device;
use crate::error::FsError;
use crate::format::change::{Change, Extent, Inode};
use crate::format::superblock::{FORMAT, Superblock};
use crate::hot::{HotZone, Keeping};
use crate::journal::checkpoint::{self, Header};
use crate::journal::log::{Replayed, frame_blocks_max, replay};
use crate::journal::mirror::Mistake;
use crate::journal::{Checksums, Log, Mirror};
use crate::namespace::{Namespace, ROOT};
use crate::store::{self, Run, Store};

/// How a file system is mounted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountOptions {
    /// Change nothing on the devices.
    pub read_only: bool,
    /// Bounds other than the usual ones.
    pub bounds: Option<Bounds>,
    /// Options of the store, in place of those it was made with.
    pub options: Vec<(String, String)>,
    /// The time at which the clock began, in nanoseconds since 1970.
    pub epoch_ns: i64,
    /// Put spares in the place of drives that fail, and go on with replacements that were begun.
    pub replaces_by_itself: bool,
    /// Convert what is of an older format; without it such a file system is only read.
    pub upgrades: bool,
    /// A step left out on purpose; for tests.
    pub sabotage: Option<Sabotage>,
}

/// What mounting found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// The checkpoint that it began with.
    pub checkpoint: u64,
    /// Records of the log behind it.
    pub records: u64,
    /// Files that had neither a name nor a handle any more, and are gone now.
    pub unnamed: u64,
    /// The frame of the log that is damaged, if one is: what was committed with it and behind it is lost.
    pub lost_from: Option<u64>,
    /// Drives of the array that are not there, each by number and name: it is read and written without them.
    pub missing: Vec<String>,
    /// Devices that were members once and are none now; nothing was read of them.
    pub stale: Vec<String>,
    /// Copies of the metadata that are not there.
    pub missing_copies: Vec<String>,
    /// Spares that are not there.
    pub missing_spares: Vec<String>,
    /// Devices with copies of the metadata of an earlier time, of which nothing is read. Unless it is only read, they are brought
    /// up to date while it is mounted.
    pub outdated_copies: Vec<String>,
    /// Blocks of the metadata that were missing or damaged on one copy, and were written again from another.
    pub mended_blocks: u64,
    /// Devices that were given and of which nothing can be told, with why.
    pub unknown: Vec<String>,
    /// Drives of which the part of the hot zone is of another time: the copies there are dropped.
    pub doubted_parts: Vec<u8>,
}

/// What was read of a file system.
struct Found {
    namespace: Namespace,
    checksums: Checksums,
    header: Header,
    slot: usize,
    log: Replayed,
    records: u64,
    /// How hot files were when the checkpoint was taken.
    heat: BTreeMap<Inode, u32>,
}

/// Whether a checkpoint of a file system is there, by its header.
pub(crate) async fn has_checkpoint(area: &Mirror, superblock: &Superblock) -> bool {
    let mut is_there = false;
    for place in superblock.layout.checkpoints {
        is_there |= checkpoint::read_header(area, superblock.uuid.as_u128(), place).await.is_some();
    }
    is_there
}

async fn read_journal(area: &Mirror, superblock: &Superblock, bounds: &Bounds) -> Result<Found, FsError> {
    let (uuid, layout) = (superblock.uuid.as_u128(), superblock.layout);
    let mut newest: Option<(Header, usize)> = None;
    let mut headers = 0;
    for (slot, place) in layout.checkpoints.iter().enumerate() {
        let header = checkpoint::read_header(area, uuid, *place).await;
        headers += usize::from(header.is_some());
        if let Some(header) = header.filter(|header| newest.is_none_or(|(other, _)| other.number < header.number)) {
            newest = Some((header, slot));
        }
    }
    let Some((header, slot)) = newest else {
        return Err(FsError::format(&area.name(), "neither of its checkpoints can be read"));
    };
    sound::check_header(superblock, &header, &area.name())?;
    let mut namespace = Namespace::new(uuid);
    let checksums = Checksums::new(area.clone(), layout.checksums, bounds.checksum_pages);
    let mut heat = BTreeMap::new();
    let see = |change| match change {
        Change::Heat { files } => heat.extend(files),
        change => namespace.apply(&change),
    };
    checkpoint::load(area, uuid, layout.checkpoints[slot], &header, see).await?;
    let mut records = 0;
    // Two frames at most lie between the end of the log and one behind a damaged one. Where only one checkpoint can be read,
    // or the newest is not there, the log of another may be meant, and that is anywhere.
    let witness = area.witnessed();
    let is_newest = headers == 2 && header.number >= witness.checkpoint;
    let sought = if is_newest { 2 * frame_blocks_max(layout.log.1) } else { layout.log.1 };
    let mut log = replay(area, uuid, layout.log, header.place, sought, async |record| {
        records += 1;
        for change in &record.changes {
            match change {
                Change::Checksums { block, sums } => {
                    sound::check_sums(superblock, *block, sums.len(), &area.name())?;
                    checksums.set(*block, sums).await?;
                }
                change => {
                    if let Change::DropNode { inode } = change {
                        heat.remove(inode);
                    }
                    namespace.apply(change);
                }
            }
        }
        Ok(())
    })
    .await?;
    if log.head.frame < witness.frame {
        // The superblocks vouch for frames that are not there, nor a checkpoint behind them.
        log.behind_damage = log.behind_damage.or(Some(witness.frame - 1));
    }
    // A checkpoint whose header is not there has had its number.
    let header = Header { number: header.number.max(witness.checkpoint), ..header };
    Ok(Found { namespace, checksums, header, slot, log, records, heat })
}

impl Found {
    /// Refuses what would be made worse by being changed, and what cannot be used at all.
    fn check(&self, area: &Mirror, superblock: &Superblock, is_read_only: bool) -> Result<(), FsError> {
        if let Some(behind) = self.log.behind_damage.filter(|_| !is_read_only) {
            let reason = format!(
                "frame {} of its log is damaged, and {behind} was committed behind it: mount it read-only (-o ro), which shows it \
                 as it was before that frame, and copy what is needed",
                self.log.head.frame
            );
            return Err(FsError::format(&area.name(), reason));
        }
        if self.namespace.directory(ROOT).is_err() {
            return Err(FsError::format(&area.name(), "its uppermost directory is missing"));
        }
        sound::check_drives(superblock, self.namespace.groups(), &area.name())?;
        sound::check_apart(superblock, &self.namespace, &area.name())?;
        if is_read_only {
            return Ok(());
        }
        sound::check_counts(superblock, &self.header, self.namespace.groups(), &area.name())?;
        sound::check_namespace(&self.namespace, &area.name())
    }
}

impl Fs {
    /// Mounts the file system on `devices`, given in any order.
    pub async fn mount(clock: &Clock, devices: &[Device], options: &MountOptions) -> Result<(Fs, Mounted), FsError> {
        let members = Members::of(devices).await?;
        let bounds = options.bounds.unwrap_or_default();
        devices.iter().for_each(|device| device.set_queue_limits(bounds.queue));
        check_format(&members, options)?;
        let area = Mirror::new(&members.superblock, members.metadata.clone(), options.read_only);
        area.make_mistake(match options.sabotage {
            Some(Sabotage::CopyBeforeDurable) => Some(Mistake::FilesNotFlushed),
            Some(Sabotage::OneCopyWritten) => Some(Mistake::OneCopyWritten),
            Some(Sabotage::GenerationNotBegun) => Some(Mistake::GenerationNotBegun),
            Some(Sabotage::NoWitness) => Some(Mistake::NoWitness),
            _ => None,
        });
        // An older program refuses the devices from here on: what is written now it may not know.
        area.begin().await?;
        let mut found = read_journal(&area, &members.superblock, &bounds).await?;
        // Where nothing was on its way, no cut explains a page that is torn.
        found.checksums.may_be_torn(!members.superblock.witness.is_closed);
        found.check(&area, &members.superblock, options.read_only)?;
        found.namespace.begin_numbers();
        if members.superblock.shape.is_some() {
            found.namespace.know_places();
        }
        // What one copy was given of another is durable before anything is written behind it.
        area.flush().await?;
        let (data, stale) = members.data(found.namespace.groups(), options.read_only).await?;
        if let Some(array) = data.array().filter(|_| options.sabotage == Some(Sabotage::ParityLate)) {
            array.make_parity_late();
        }
        let missing = data.array().map(|array| array.missing()).unwrap_or_default();
        let store = store_on(&data, &members.superblock, options).await?;
        let mut mounted = Mounted {
            checkpoint: found.header.number,
            records: found.records,
            unnamed: 0,
            lost_from: found.log.behind_damage.map(|_| found.log.head.frame),
            missing: missing.iter().map(|(number, uuid)| format!("drive {number} ({uuid})")).collect(),
            stale,
            missing_copies: members.missing_copies(),
            missing_spares: members.missing_spares(found.namespace.groups()),
            outdated_copies: members.outdated_copies(),
            mended_blocks: 0,
            unknown: members.unknown.clone(),
            doubted_parts: Vec::new(),
        };
        let parts = HotParts::look(&members.superblock, found.namespace.groups(), &data, options.sabotage).await;
        mounted.doubted_parts = parts.doubted(|part| {
            let is_in = |extent: &Extent| (part.start..part.end()).contains(&extent.start);
            found.namespace.hot_copies().any(|(_, copy)| copy.iter().any(is_in))
        });
        let fs = Fs(Rc::new(core_of(clock, options, &members, (area, data, store, parts), found)?));
        fs.0.keep_all_preallocated();
        mounted.unnamed = fs.drop_unnamed();
        if !options.read_only {
            fs.cut_unfinished();
            fs.begin_tasks(options);
            if fs.has_to_settle() {
                fs.review_hot();
            }
        }
        mounted.mended_blocks = fs.0.metadata.mended_blocks();
        Ok((fs, mounted))
    }

    /// Whether files lie in the hot zone otherwise than is wanted now.
    fn has_to_settle(&self) -> bool {
        let core = &self.0;
        match core.keeping {
            Keeping::Copies => core.hot.borrow().alone_blocks > 0,
            Keeping::Alone => core.may_be_alone() && core.namespace.borrow().hot_copies().next().is_some(),
        }
    }

    /// Begins what goes on by itself while it is mounted.
    fn begin_tasks(&self, options: &MountOptions) {
        self.begin_task(Cause::Metadata, self.clone().take_checkpoints());
        self.begin_task(Cause::Data, self.clone().commit_on_time());
        self.begin_task(Cause::Cleaning, self.clone().clean_when_needed());
        self.begin_task(Cause::Metadata, self.clone().bring_copies_up_to_date());
        self.begin_task(Cause::Hot, self.clone().keep_hot_files());
        self.begin_task(Cause::Repair, self.clone().fail_covered_devices());
        if options.replaces_by_itself {
            self.begin_task(Cause::Repair, self.clone().replace_by_itself());
        }
    }

    fn begin_task(&self, cause: Cause, task: impl Future<Output = ()> + 'static) {
        let clock = self.0.clock.clone();
        self.0.clock.spawn(async move { clock.for_cause(cause, task).await });
    }

    /// Removes what lost its last name while it was open, before the power went.
    fn drop_unnamed(&self) -> u64 {
        let unnamed: Vec<Inode> = {
            let namespace = self.0.namespace.borrow();
            let nodes = namespace.nodes_from(0).filter(|(_, node)| node.attributes.links == 0);
            nodes.map(|(inode, _)| inode).collect()
        };
        unnamed.iter().for_each(|inode| self.drop_if_unused(*inode));
        unnamed.len() as u64
    }
}

/// Fails if what is of an older format would be written by a mount that is not to convert it.
fn check_format(members: &Members, options: &MountOptions) -> Result<(), FsError> {
    let format = members.superblock.format;
    if format == FORMAT || options.read_only || options.upgrades {
        return Ok(());
    }
    let reason = format!(
        "has format {format}, and this program writes format {FORMAT}: mount it read-only (-o ro), or convert it with `imbrex fs \
         upgrade`"
    );
    Err(FsError::format(members.name(), reason))
}

/// The store of the file system on its data devices.
async fn store_on(data: &Data, superblock: &Superblock, options: &MountOptions) -> Result<Box<dyn Store>, FsError> {
    let zones = data.zones().await?;
    let zones = Some(&zones[..]).filter(|zones| !zones.is_empty());
    let run = Run { start: superblock.data.0, blocks: superblock.data.1 };
    store::make(&superblock.store, data, run, zones, |key| option(options, superblock, key))
}

/// What was said of `key` when it was mounted, or else when it was made.
fn option(options: &MountOptions, superblock: &Superblock, key: &str) -> Option<String> {
    let mut given = options.options.iter().chain(&superblock.options);
    given.find(|(known, _)| known == key).map(|(_, value)| value.clone())
}

/// What is mounted: what was read, on the devices of its metadata and data, and with its store.
fn core_of(
    clock: &Clock,
    options: &MountOptions,
    members: &Members,
    (area, data, store, parts): (Mirror, Data, Box<dyn Store>, HotParts),
    found: Found,
) -> Result<Core, FsError> {
    let superblock = members.superblock.clone();
    let bounds = options.bounds.unwrap_or_default();
    let keeping = Keeping::named(option(options, &superblock, Keeping::OPTION).as_deref())
        .map_err(|reason| FsError::format("the hot zone", reason))?;
    let blocks: Vec<u64> = match superblock.layout.hot.1 {
        0 => superblock.hot_parts.iter().map(|part| part.blocks).collect(),
        blocks => vec![blocks],
    };
    if keeping == Keeping::Alone && !superblock.hot_parts.is_empty() {
        return Err(FsError::format("the hot zone", "hot_files is alone, and it lies on drives: there it has copies"));
    }
    let mut hot = HotZone::new(&blocks, bounds.hot);
    (0..superblock.hot_parts.len()).for_each(|part| hot.set_open(part, false));
    let zone_from = if superblock.layout.hot.1 > 0 { superblock.hot_base() } else { u64::MAX };
    let owners = claim(&found.namespace, store.as_ref(), (zone_from, &mut hot))?;
    claim_copies(&found.namespace, &mut hot)?;
    let is_there = |inode: Inode| found.namespace.get(inode).is_some_and(|node| node.is_regular());
    let mut known: Vec<(Inode, u32)> = found.heat.into_iter().filter(|(inode, _)| is_there(*inode)).collect();
    // Fewer may be known now than were then.
    known.sort_unstable_by_key(|(inode, units)| (std::cmp::Reverse(*units), *inode));
    known.iter().for_each(|(inode, units)| hot.warm(*inode, *units, clock.now_ns()));
    let uuid = superblock.uuid.as_u128();
    // The first is not 0, and each is even.
    let sequence = found.namespace.groups().sequence_below().max(1).next_multiple_of(2);
    Ok(Core {
        clock: clock.clone(),
        epoch_ns: options.epoch_ns,
        log: Log::new(area.clone(), uuid, superblock.layout.log, found.header.place, found.log.head),
        checkpoint_bytes_max: bytes_in_slot(superblock.layout.checkpoints[0].1),
        spares: RefCell::new(members.spares(found.namespace.groups())),
        spares_missing: members.missing_spares(found.namespace.groups()),
        superblock,
        data,
        metadata: area,
        bounds,
        is_read_only: options.read_only,
        namespace: RefCell::new(found.namespace),
        store,
        checksums: found.checksums,
        owners: RefCell::new(owners),
        cleaning: Gate::default(),
        replacing: Gate::default(),
        replaced: Cell::new(None),
        open: RefCell::default(),
        lookups: RefCell::default(),
        generations_below: Cell::new(0),
        staged_bytes: Cell::new(0),
        unwritten: RefCell::default(),
        staged_since: Cell::new(0),
        releases: RefCell::new(Releases::default()),
        preallocated: RefCell::default(),
        checkpoint: RefCell::new(Checkpoints { number: found.header.number, slot: found.slot, is_running: false }),
        checkpoint_over: Signal::default(),
        is_over: Cell::new(false),
        over: Signal::default(),
        counters: RefCell::default(),
        sabotage: options.sabotage,
        written: RefCell::new(Written::new(bounds.written_blocks)),
        wrote_ns: Cell::new(0),
        gain_ns: Cell::new(0),
        sequence: Cell::new(sequence),
        sequence_below: Cell::new(0),
        keeping,
        hot: RefCell::new(hot),
        parts,
        hot_wanted: Signal::default(),
        hint_taken: Signal::default(),
        late_writes: RefCell::default(),
    })
}

/// Tells the store what is live, and the hot zone what lies there alone: the blocks from `zone_from` on.
fn claim(
    namespace: &Namespace,
    store: &dyn store::Store,
    (zone_from, hot): (u64, &mut HotZone),
) -> Result<BTreeMap<u64, Owner>, FsError> {
    let mut owners = BTreeMap::new();
    for (inode, node) in namespace.nodes_from(0) {
        for extent in node.extents.as_slice() {
            if extent.start >= zone_from {
                let inside = Extent { start: extent.start - zone_from, ..*extent };
                hot.claim(&inside).map_err(|reason| FsError::format("the hot zone", reason))?;
                hot.alone_blocks += u64::from(extent.blocks);
            } else {
                store.claim(extent)?;
            }
            owners.insert(extent.start, Owner { inode, at: extent.at });
        }
    }
    store.claimed();
    Ok(owners)
}
