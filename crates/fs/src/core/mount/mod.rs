//! Mounting: reads the superblocks, the newest checkpoint and the log behind it, opens the store, and starts the
//! background tasks.

pub(in crate::core) mod make;
mod make_hot;
pub(in crate::core) mod make_options;
pub(in crate::core) mod members;
pub(in crate::core) mod sound;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use self::make::bytes_in_slot;
use self::members::Members;
use crate::array::Data;
use crate::block_run::BlockRun;
use crate::core::cleaner::CleanerState;
use crate::core::commit::CommitterState;
use crate::core::commit::releases::Releases;
use crate::core::fault_injection::FaultInjection;
use crate::core::files::lifetime::LifetimesState;
use crate::core::files::preallocated::PreallocatedState;
use crate::core::hot::parts::HotParts;
use crate::core::hot::{HotState, claim_copies};
use crate::core::owners::{Owner, Owners};
use crate::core::repair::replace::ReplacementState;
use crate::core::repair::spares::SparesState;
use crate::core::shutdown::Shutdown;
use crate::core::state::Tally;
use crate::core::write_back::records::RecordNumbers;
use crate::core::write_back::staged::StagingState;
use crate::core::write_back::written::Written;
use crate::core::{Bounds, Core, CoreParts, Fs, Sabotage};
use crate::device::Device;
use crate::error::FsError;
use crate::executor::{Cause, Executor};
use crate::format::change::{Change, Extent, Inode};
use crate::format::superblock::{FORMAT, Superblock};
use crate::hot::{HotZone, Keeping};
use crate::journal::checkpoint::{self, Header};
use crate::journal::log::{Replayed, frame_blocks_max, replay};
use crate::journal::mirror::Mistake;
use crate::journal::{Checksums, Log, Mirror};
use crate::namespace::{Namespace, ROOT};
use crate::store::{self, Store};

/// Options with which a file system is mounted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MountOptions {
    /// Whether to mount read-only: nothing on the devices is written, and operations that change something fail.
    pub read_only: bool,
    /// Limits of memory, commands and intervals. `None` for the defaults.
    pub bounds: Option<Bounds>,
    /// Options of the store, and `hot_files` of the hot zone, as pairs of key and value. They override those that the
    /// file system was made with. Of several values for one key, the first counts.
    pub options: Vec<(String, String)>,
    /// Time of day, in nanoseconds since 1970, at which the clock of the executor was 0.
    pub epoch_ns: i64,
    /// Whether spares replace drives of an array that fail while mounted, and interrupted replacements continue,
    /// without a request.
    pub replaces_by_itself: bool,
    /// Whether to convert a file system of an older format to the present one. Otherwise it can only be mounted
    /// read-only.
    pub upgrades: bool,
    /// Deliberate mistake that the file system makes, for tests; `None` for no mistake.
    #[cfg(feature = "fault-injection")]
    pub sabotage: Option<Sabotage>,
}

impl MountOptions {
    /// Returns the deliberate mistake that the mount makes; none in a build without fault injection.
    fn mistake(&self) -> Option<Sabotage> {
        #[cfg(feature = "fault-injection")]
        return self.sabotage;
        #[cfg(not(feature = "fault-injection"))]
        None
    }
}

/// Findings of a mount: the metadata that were read, and the devices that are missing or outdated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mounted {
    /// Number of the newest checkpoint that was read, or that the superblocks name if it is a later one.
    pub checkpoint: u64,
    /// Number of records that the mount replayed from the log after it had loaded the newest checkpoint.
    pub records: u64,
    /// Number of files without a name that were found: they were open at a power cut. A mount for writing removes them.
    pub unnamed: u64,
    /// Number of the first damaged frame, or group of records, of the log, if later frames were written. All records
    /// from that frame on are lost, and the file system can only be mounted read-only. `None` if no frame is known to
    /// be lost.
    pub lost_from: Option<u64>,
    /// Missing drives of the array, as text with number and UUID. The array works without them.
    pub missing: Vec<String>,
    /// Names of given devices that once belonged to the file system, as drives or with a copy of the metadata, and were
    /// replaced. Only their superblocks are read. Always empty if the store is not `log`.
    pub stale: Vec<String>,
    /// Missing copies of the metadata, as text with number and UUID.
    pub missing_copies: Vec<String>,
    /// Missing spares, as text with their UUIDs.
    pub missing_spares: Vec<String>,
    /// Names of the devices with an outdated copy of the metadata, which is not read. A mount for writing brings these
    /// copies up to date in the background.
    pub outdated_copies: Vec<String>,
    /// Number of metadata blocks of 4 KiB that the mount overwrote with a better version from another copy, because
    /// they were missing, damaged or older.
    pub mended_blocks: u64,
    /// Given devices that could not be identified: for each the error, with the device name.
    pub unknown: Vec<String>,
    /// Numbers of the drives, counted from 0, whose part of the hot zone is outdated, although the metadata name copies
    /// there. These copies are dropped.
    pub doubted_parts: Vec<u8>,
}

/// Metadata of a file system, as read by a mount.
struct Found {
    namespace: Namespace,
    checksums: Checksums,
    header: Header,
    slot: usize,
    log: Replayed,
    records: u64,
    /// Heat of files when the checkpoint was taken.
    heat: BTreeMap<Inode, u32>,
}

/// Returns whether the file system has a checkpoint with a valid header.
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
    // At most two frames lie between the end of the log and a frame behind a damaged one. If only one checkpoint is
    // readable, or the newest is missing, the log of another checkpoint may follow. That log may begin anywhere.
    let last_durable = area.last_durable();
    let is_newest = headers == 2 && header.number >= last_durable.checkpoint;
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
    if log.head.frame < last_durable.frame {
        // The superblocks record frames that are missing, and no checkpoint covers them.
        log.behind_damage = log.behind_damage.or(Some(last_durable.frame - 1));
    }
    // The number of a checkpoint whose header is missing must not be used again.
    let header = Header { number: header.number.max(last_durable.checkpoint), ..header };
    Ok(Found { namespace, checksums, header, slot, log, records, heat })
}

impl Found {
    /// Fails if the file system is unusable, or if a mount for writing would make its damage worse.
    fn check(&self, area: &Mirror, superblock: &Superblock, is_read_only: bool) -> Result<(), FsError> {
        if let Some(behind) = self.log.behind_damage.filter(|_| !is_read_only) {
            let reason = format!(
                "frame {} of its log is damaged, and {behind} was committed behind it: mount it read-only (-o ro), \
                 which shows the state before that frame, and copy the files",
                self.log.head.frame
            );
            return Err(FsError::format(&area.name(), reason));
        }
        if self.namespace.directory(ROOT).is_err() {
            return Err(FsError::format(&area.name(), "its root directory is missing"));
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
    /// Mounts the file system on `devices`, given in any order, and starts its background tasks. Returns it with the
    /// findings of the mount. Missing drives and missing copies of the metadata are no error as far as redundancy
    /// covers them.
    ///
    /// # Errors
    /// [`FsError::Format`] if the devices do not belong together, too many are missing, the metadata are damaged beyond
    /// repair, or the format is older and neither a read-only mount nor [`MountOptions::upgrades`] was requested.
    /// [`FsError::Device`] if a device fails.
    pub async fn mount(
        executor: &Executor,
        devices: &[Device],
        options: &MountOptions,
    ) -> Result<(Fs, Mounted), FsError> {
        let members = Members::of(devices).await?;
        let bounds = options.bounds.unwrap_or_default();
        devices.iter().for_each(|device| device.set_queue_limits(bounds.queue));
        check_format(&members, options)?;
        let area = Mirror::new(&members.superblock, members.metadata.clone(), options.read_only);
        area.make_mistake(match options.mistake() {
            Some(Sabotage::CopyBeforeDurable) => Some(Mistake::FilesNotFlushed),
            Some(Sabotage::OneCopyWritten) => Some(Mistake::OneCopyWritten),
            Some(Sabotage::GenerationNotBegun) => Some(Mistake::GenerationNotBegun),
            Some(Sabotage::LastDurableNotRecorded) => Some(Mistake::LastDurableNotRecorded),
            _ => None,
        });
        // From here on an older program refuses the devices, since it may not know the records that are written now.
        area.begin().await?;
        let mut found = read_journal(&area, &members.superblock, &bounds).await?;
        // After a clean unmount no write was in flight, so no power cut explains a torn page.
        found.checksums.may_be_torn(!members.superblock.last_durable.is_closed);
        found.check(&area, &members.superblock, options.read_only)?;
        found.namespace.begin_numbers();
        if members.superblock.shape.is_some() {
            found.namespace.know_places();
        }
        // Blocks that were copied from one copy of the metadata to another must be durable before anything is written
        // behind them.
        area.flush().await?;
        let (data, stale) = members.data(found.namespace.groups(), options.read_only).await?;
        if let Some(array) = data.array().filter(|_| options.mistake() == Some(Sabotage::ParityLate)) {
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
        let parts = HotParts::look(&members.superblock, found.namespace.groups(), &data, options.mistake()).await;
        mounted.doubted_parts = parts.doubted(|part| {
            let is_in = |extent: &Extent| (part.start..part.end()).contains(&extent.start);
            found.namespace.hot_copies().any(|(_, copy)| copy.iter().any(is_in))
        });
        let fs = Fs(Rc::new(core_of(executor, options, &members, (area, data, store, parts), found)?));
        fs.0.files().keep_all_preallocated();
        mounted.unnamed = fs.drop_unnamed();
        if !options.read_only {
            fs.0.files().cut_unfinished();
            fs.begin_tasks(options);
            fs.0.hot_tier().review_misplaced();
        }
        mounted.mended_blocks = fs.0.metadata.mended_blocks();
        Ok((fs, mounted))
    }

    /// Starts the background tasks.
    fn begin_tasks(&self, options: &MountOptions) {
        self.begin_task(Cause::Metadata, |core| async move { core.committer().take_checkpoints().await });
        self.begin_task(Cause::Data, |core| async move { core.committer().commit_on_time().await });
        self.begin_task(Cause::Cleaning, |core| async move { core.cleaner().clean_when_needed().await });
        self.begin_task(Cause::Metadata, |core| async move { core.repair().bring_copies_up_to_date().await });
        self.begin_task(Cause::Hot, |core| async move { core.hot_tier().keep_hot_files().await });
        self.begin_task(Cause::Repair, |core| Fs(core).fail_covered_devices());
        if options.replaces_by_itself {
            self.begin_task(Cause::Repair, |core| async move { core.repair().replace_by_itself().await });
        }
    }

    fn begin_task<T: Future<Output = ()> + 'static>(&self, cause: Cause, task: impl FnOnce(Rc<Core>) -> T) {
        let (executor, task) = (self.0.executor.clone(), task(self.0.clone()));
        self.0.executor.spawn(async move { executor.for_cause(cause, task).await });
    }

    /// Removes files that have no name: a power cut came while they were still open. Returns their number.
    fn drop_unnamed(&self) -> u64 {
        let unnamed: Vec<Inode> = {
            let namespace = self.0.namespace.borrow();
            let nodes = namespace.nodes_from(0).filter(|(_, node)| node.attributes.links == 0);
            nodes.map(|(inode, _)| inode).collect()
        };
        unnamed.iter().for_each(|inode| self.0.files().drop_if_unused(*inode));
        unnamed.len() as u64
    }
}

/// Fails if the file system has an older format, and the mount is for writing and may not convert it.
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

/// Returns the store of the file system on its data devices.
async fn store_on(data: &Data, superblock: &Superblock, options: &MountOptions) -> Result<Box<dyn Store>, FsError> {
    let zones = data.zones().await?;
    let zones = Some(&zones[..]).filter(|zones| !zones.is_empty());
    let run = BlockRun { start: superblock.data.0, blocks: superblock.data.1 };
    for (key, _) in &options.options {
        let wrong = |reason: String| FsError::format("a mount option", reason);
        store::check_option(&superblock.store, key, key).map_err(wrong)?;
    }
    store::make(&superblock.store, data, run, zones, |key| option(options, superblock, key))
}

/// Returns the value of option `key`, as given for the mount, or else as given when the file system was made.
fn option(options: &MountOptions, superblock: &Superblock, key: &str) -> Option<String> {
    let mut given = options.options.iter().chain(&superblock.options);
    given.find(|(known, _)| known == key).map(|(_, value)| value.clone())
}

/// Returns the core of a mounted file system, made of the metadata that were read, the devices and the store.
fn core_of(
    executor: &Executor,
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
        let reason = "hot_files=alone needs --hot-on meta: a hot zone on drives holds copies";
        return Err(FsError::format("the hot zone", reason));
    }
    let mut hot = HotZone::new(&blocks, bounds.hot);
    (0..superblock.hot_parts.len()).for_each(|part| hot.set_open(part, false));
    let zone_from = if superblock.layout.hot.1 > 0 { superblock.hot_base() } else { u64::MAX };
    let owners = claim(&found.namespace, store.as_ref(), (zone_from, &mut hot))?;
    claim_copies(&found.namespace, &mut hot)?;
    let is_there = |inode: Inode| found.namespace.get(inode).is_some_and(|node| node.is_regular());
    let mut known: Vec<(Inode, u32)> = found.heat.into_iter().filter(|(inode, _)| is_there(*inode)).collect();
    // The limit on files with known heat may be lower than when the checkpoint was taken, so the hottest files come
    // first.
    known.sort_unstable_by_key(|(inode, units)| (std::cmp::Reverse(*units), *inode));
    known.iter().for_each(|(inode, units)| hot.warm(*inode, *units, executor.now_ns()));
    let uuid = superblock.uuid.as_u128();
    // Sequence numbers of writes are even, and the first is not 0.
    let first_number = found.namespace.groups().sequence_below().max(1).next_multiple_of(2);
    let groups = found.namespace.groups();
    Ok(Core {
        executor: executor.clone(),
        epoch_ns: options.epoch_ns,
        log: Log::new(area.clone(), uuid, superblock.layout.log, found.header.place, found.log.head),
        committer: CommitterState::new(
            (found.header.number, found.slot),
            bytes_in_slot(superblock.layout.checkpoints[0].1),
        ),
        spares: SparesState::new(members.spares(groups), members.missing_spares(groups)),
        superblock,
        data,
        metadata: area,
        bounds,
        is_read_only: options.read_only,
        namespace: RefCell::new(found.namespace),
        store,
        checksums: found.checksums,
        owners: Owners::new(owners),
        cleaner: CleanerState::default(),
        replacement: ReplacementState::default(),
        lifetimes: LifetimesState::default(),
        staging: StagingState::default(),
        releases: Releases::default(),
        preallocated: PreallocatedState::default(),
        shutdown: Shutdown::default(),
        counters: Tally::default(),
        faults: FaultInjection::new(options.mistake()),
        written: RefCell::new(Written::new(bounds.written_blocks)),
        record_numbers: RecordNumbers::new(first_number),
        hot: HotState::new(keeping, hot, parts),
    })
}

/// Marks the extents of files as live: in the hot zone from block `zone_from` on, and in the store before it. Returns
/// the owner of each extent, by its first block.
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
    if let Some(cleaning) = store.cleaning() {
        cleaning.claimed();
    }
    Ok(owners)
}
