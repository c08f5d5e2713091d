//! `set-associative`: a shingled disk with a cache of regions on the same disk, or on flash (Cassuto 2010 §IV, Aghayev
//! 2015 §3.1). There are N native regions and M cache regions; native region i uses cache region i mod M. With
//! `association=dynamic` (our rule; Cassuto 2010 §IV.D proposes a dynamic association), a native region uses, from its
//! first write on, the cache region that was filled least then, until the native region is merged or the cache region
//! is collected.
//!
//! - Write: appended to the cache region. A sector that is written again is appended again, and its older copy is dead.
//! - Collection: a write that finds its cache region full has it collected. Every native region with live sectors in
//!   the cache region is read, modified and written back. Each is a cleaning group of its own, so that no more than a
//!   region is ever staged. Then the cache region is empty.
//! - TRIM: kept in the map as absent, which takes no cache space. A trim is merged when its native region is merged.
//! - Read: each sector comes from the cache or from its native place.
//!
//! With `safety=power` a merge goes to a spare region first ([`crate::region::rewrite`]).
//!
//! Does not model: collection in idle time (the paper collects only when a write needs room), bypass of the cache by
//! sequential streams (§V.E says that a bypass requires S-blocks).
//!
//! Records: #1 lba sectors pba: appended. #2 lba sectors: trimmed. #3 lba sectors pba: the spare holds this run, whose
//! place begins at that PBA. #4 region: merged, the map has no runs of the region. #5 set sectors: number of sectors
//! filled in the cache region (0: collected).
//!
//! Invariants:
//! 1. Every mapped run lies within the native region in whose list it is.
//! 2. Cached runs lie in the filled part of their cache region and share no sector.
//! 3. A cache region is overwritten only when the records that emptied it are durable.
//! 4. No rewrite is open between plans.
//! 5. With `association=dynamic`, a native region with cached sectors uses exactly one cache region.

use imbrex_disk::{Command, Lba, Operation, Pba, Sectors};

use crate::context::Context;
use crate::info::LayerInfo;
use crate::journal_records;
use crate::layer::{Cache, Layer, MapMemory, Piece, PrefetchHint, StoreExtent};
use crate::map::run_list::RunList;
use crate::map::short_run::{ABSENT, ShortRun};
use crate::map::sparse::Sparse;
use crate::parameters::{ConfigError, ParameterInfo, ParameterKind};
use crate::plan::note::{Note, ReplayError};
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{Cause, GroupKind, Kind, Medium, Plan, StepOp};
use crate::region::rewrite::{Rewrite, Rewriter};
use crate::region::{Position, Regions};
use crate::violation::Violation;

/// Description of the layer `set-associative` for the registry: writes are appended to cache regions, and a full cache
/// region is merged into its native regions.
pub const INFO: LayerInfo = LayerInfo {
    name: "set-associative",
    summary: "writes are appended to cache regions; a full one is merged into its native regions",
    recordings: &["shingled", "block-interference", "conventional"],
    host_managed: false,
    mapping_unit: "extent of cached sectors",
    source: "Cassuto 2010 §IV, Aghayev 2015 §3.1",
    parameters: &[
        crate::region::REGION_SIZE,
        crate::region::REGION_TRACKS,
        ParameterInfo {
            key: "cache_share",
            kind: ParameterKind::Share,
            default: "1%",
            help: "cache regions as a share of all, native and cache",
        },
        ParameterInfo {
            key: "cache_size",
            kind: ParameterKind::Bytes,
            default: "0",
            help: "size of the cache, instead of cache_share; 0: use cache_share",
        },
        ParameterInfo {
            key: "cache_position",
            kind: ParameterKind::Choice(Position::WORDS),
            default: "id",
            help: "where on the disk the cache lies",
        },
        ParameterInfo {
            key: "cache_medium",
            kind: ParameterKind::Choice(&["disk", "flash"]),
            default: "disk",
            help: "what the cache is kept on",
        },
        ParameterInfo {
            key: "association",
            kind: ParameterKind::Choice(&["modulo", "dynamic"]),
            default: "modulo",
            help: "cache region of a native region: its number modulo the number of cache regions, or the one filled \
                   least at the first write since the native region was merged",
        },
        ParameterInfo {
            key: "rmw",
            kind: ParameterKind::Choice(&["whole", "tail"]),
            default: "whole",
            help: "range that a merge reads and rewrites: the whole region, or from the first modified sector on",
        },
        crate::region::rewrite::SAFETY,
    ],
    records: &[Record::INFO],
    toys: &[
        "region_size=8k,cache_share=20%",
        "region_size=5k,cache_share=10%,rmw=tail,cache_position=od",
        "region_tracks=2,cache_share=15%,cache_position=md",
        "region_size=8k,cache_share=10%,cache_medium=flash,rmw=tail",
        "region_size=5k,cache_share=25%,association=dynamic",
    ],
    build,
};

journal_records! {
    /// The journal of the cache regions and of merges.
    enum Record of "set-associative" {
        1 => Appended { lba: Lba, sectors: Sectors, pba: Pba } "written to a cache region",
        2 => Trimmed { lba: Lba, sectors: Sectors } "trimmed",
        3 => Begin { lba: Lba, sectors: Sectors, pba: Pba } "the spare holds this run",
        4 => Merged { region: u64 } "merged: nothing of the region is cached",
        5 => Filled { cache_region: u64, filled_sectors: u64 } "a cache region is filled up to filled_sectors",
    }
}

fn begin(target: Rewrite) -> Note {
    Record::Begin { lba: target.lba, sectors: target.sectors, pba: target.home }.encode()
}

/// A cache region, and the number of its sectors that are filled.
#[derive(Debug)]
struct Set {
    start: Pba,
    sectors: u64,
    fill: u64,
}

impl Set {
    fn empty(start: Pba, sectors: Sectors) -> Set {
        Set { start, sectors: sectors.0, fill: 0 }
    }
}

/// Stands for the cache region of a native region that uses none.
const NO_SET: u32 = u32::MAX;

/// The `set-associative` layer.
struct SetAssociative {
    natives: Regions,
    /// Runs of each native region that are cached (with their first sector in the cache region) or trimmed.
    lists: Sparse<RunList>,
    /// Empty list, which stands for the list of a region of which nothing was ever cached or trimmed.
    no_runs: RunList,
    sets: Vec<Set>,
    /// The cache region of each native region, or [`NO_SET`]; `None` if it follows from the number of the native
    /// region.
    assigned: Option<Vec<u32>>,
    medium: Medium,
    rewriter: Rewriter,
    whole: bool,
    /// Records of planned appends. They enter the plan after a barrier that follows their data.
    appended: Vec<Note>,
    /// Native regions that the current collection merges.
    present: Vec<usize>,
    /// Cached runs of the region that is being merged: place of the first sector in the cache region, offset in the
    /// native region, sectors.
    by_place: Vec<(u32, u32, u32)>,
}

fn build(context: &Context) -> Result<Box<dyn Layer>, ConfigError> {
    let parameters = &context.parameters;
    let mut regions = Regions::carve_for(context)?;
    let medium = if parameters.choice("cache_medium") == "flash" { Medium::Flash } else { Medium::Disk };
    if medium == Medium::Flash && context.disk.flash.is_none() {
        return Err(ConfigError("cache_medium=flash: this drive has no flash; give it a [flash] section".into()));
    }
    if regions.sectors_max().0 > u32::MAX as u64 {
        let sectors = regions.sectors_max().0;
        return Err(ConfigError(format!("regions of {sectors} sectors: expected fewer than 2³²; make them smaller")));
    }
    let mut spare = None;
    if parameters.choice("safety") == "power" {
        (spare, regions) = regions.take_spare(&context.disk)?;
    }
    let caches = cache_regions(context, &regions, medium)?;
    let (natives, sets) = match medium {
        Medium::Disk => {
            let position = Position::named(parameters.choice("cache_position")).expect("one of the words");
            let (cache, natives) = regions.take(&context.disk, caches, position);
            let set = |index| Set::empty(cache.extent(index).start, cache.sectors(index));
            (natives, (0..caches).map(set).collect::<Vec<Set>>())
        }
        Medium::Flash => {
            let sectors = regions.sectors_max();
            let set = |index| Set::empty(Pba(index as u64 * sectors.0), sectors);
            (regions, (0..caches).map(set).collect())
        }
    };
    debug_assert!(sets.is_sorted_by_key(|set| set.start), "cache regions are in the order of their PBAs");
    Ok(Box::new(SetAssociative {
        lists: Sparse::new(natives.len()),
        assigned: (parameters.choice("association") == "dynamic").then(|| vec![NO_SET; natives.len()]),
        no_runs: RunList::new(sets.iter().map(|set| set.sectors as u32).max().expect("there is a cache region")),
        natives,
        sets,
        medium,
        rewriter: Rewriter::new(spare, begin),
        whole: parameters.choice("rmw") == "whole",
        appended: Vec::new(),
        present: Vec::new(),
        by_place: Vec::new(),
    }))
}

/// Returns M, the number of cache regions. On the disk they are a part of `regions`; on flash they come in addition.
fn cache_regions(context: &Context, regions: &Regions, medium: Medium) -> Result<usize, ConfigError> {
    let share = context.parameters.share("cache_share");
    let bytes = context.parameters.bytes("cache_size");
    let region_bytes = regions.sectors_max().0 * context.disk.sector_bytes as u64;
    let count = match (bytes, medium) {
        (0, Medium::Disk) => (share * regions.len() as f64).round() as usize,
        (0, Medium::Flash) => (share / (1.0 - share) * regions.len() as f64).round() as usize,
        (bytes, _) => ((bytes + region_bytes / 2) / region_bytes) as usize,
    };
    let count = count.max(1);
    if count > regions.len() - (medium == Medium::Disk) as usize {
        let len = regions.len();
        return Err(ConfigError(format!("{count} cache regions out of {len}: make the cache or the regions smaller")));
    }
    Ok(count)
}

impl SetAssociative {
    /// Opens a host group in the plan, unless the last phase belongs to one.
    fn open_host(plan: &mut Plan) {
        if plan.phases.last().is_none_or(|phase| phase.kind != GroupKind::Host) {
            plan.open(GroupKind::Host);
        }
    }

    fn write(&mut self, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        let (mut next, end) = (lba, lba + sectors);
        let mut region = self.natives.locate(lba).region;
        while next < end {
            let region_end = self.natives.first_lba(region + 1);
            if next == region_end {
                region += 1;
                continue;
            }
            let index = self.assign(region);
            let set = &mut self.sets[index];
            let length = (region_end.min(end) - next).min(Sectors(set.sectors - set.fill));
            if length.is_zero() {
                self.record_appends(plan);
                self.collect(index, plan);
                continue;
            }
            let (at, place) = (set.start + Sectors(set.fill), set.fill);
            set.fill += length.0;
            self.map(region, next, length, place as u32);
            Self::open_host(plan);
            plan.access(StepOp::Write, self.medium, Kind::Data, Cause::Host, at, next, length);
            self.appended.push(Record::Appended { lba: next, sectors: length, pba: at }.encode());
            next += length;
        }
    }

    /// Appends a barrier to the plan, so that the appended data are durable, and then the records of these data.
    fn record_appends(&mut self, plan: &mut Plan) {
        if self.appended.is_empty() {
            return;
        }
        plan.barrier();
        for note in self.appended.drain(..) {
            plan.note(note);
        }
    }

    fn trim(&mut self, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        Self::open_host(plan);
        plan.note(Record::Trimmed { lba, sectors }.encode());
        self.map_absent(lba, sectors);
    }

    fn list(&self, region: usize) -> &RunList {
        self.lists.get(region).unwrap_or(&self.no_runs)
    }

    fn list_mut(&mut self, region: usize) -> &mut RunList {
        self.lists.change(region, |_| self.no_runs.clone())
    }

    /// Maps a run of one native region to sector `place` of its cache region.
    fn map(&mut self, region: usize, lba: Lba, sectors: Sectors, place: u32) {
        let offset = (lba - self.natives.first_lba(region)).0 as u32;
        self.list_mut(region).overlay(ShortRun { offset, length: sectors.0 as u32, place }, false, |_, _, _| {});
    }

    fn map_absent(&mut self, lba: Lba, sectors: Sectors) {
        let (natives, lists, no_runs) = (&self.natives, &mut self.lists, &self.no_runs);
        natives.split(lba, sectors, |region, lba, sectors| {
            let offset = (lba - natives.first_lba(region)).0 as u32;
            let run = ShortRun { offset, length: sectors.0 as u32, place: ABSENT };
            lists.change(region, |_| no_runs.clone()).overlay(run, false, |_, _, _| {});
        });
    }

    fn read(&self, lba: Lba, sectors: Sectors, plan: &mut Plan) {
        Self::open_host(plan);
        self.for_each_piece(lba, sectors, |piece| match piece.at {
            Some((medium, pba)) => {
                plan.access(StepOp::Read, medium, Kind::Data, Cause::Host, pba, piece.lba, piece.sectors);
            }
            None => plan.drop_sectors(Cause::Host, piece.lba, piece.sectors),
        });
    }

    fn for_each_piece(&self, lba: Lba, sectors: Sectors, mut visit: impl FnMut(Piece)) {
        self.natives.split(lba, sectors, |region, lba, sectors| {
            let first = self.natives.first_lba(region);
            let (home, cache) = (self.natives.extent(region).start, self.set_of(region).start);
            let from = (lba - first).0 as u32;
            self.list(region).cover(from, from + sectors.0 as u32, |offset, length, place| {
                let at = match place {
                    Some(ABSENT) => None,
                    Some(place) => Some((self.medium, cache + Sectors(place as u64))),
                    None => Some((Medium::Disk, home + Sectors(offset as u64))),
                };
                visit(Piece { lba: first + Sectors(offset as u64), sectors: Sectors(length as u64), at });
            });
        });
    }

    /// Returns the number of the cache region that `region` uses; `None` if it uses none.
    fn set_index(&self, region: usize) -> Option<usize> {
        match &self.assigned {
            None => Some(region % self.sets.len()),
            Some(assigned) => Some(assigned[region] as usize).filter(|&index| index < self.sets.len()),
        }
    }

    /// Returns the cache region that `region` uses; any if it uses none, and so has no cached sectors.
    fn set_of(&self, region: usize) -> &Set {
        &self.sets[self.set_index(region).unwrap_or(0)]
    }

    /// Returns the number of the cache region for a write to `region`. If it uses none, it uses the one filled least
    /// from now on; of several, the first.
    fn assign(&mut self, region: usize) -> usize {
        if let Some(index) = self.set_index(region) {
            return index;
        }
        let fill = |index: &usize| self.sets[*index].fill;
        let index = (0..self.sets.len()).min_by_key(fill).expect("there is a cache region");
        self.set_assigned(region, index as u32);
        index
    }

    fn set_assigned(&mut self, region: usize, index: u32) {
        if let Some(assigned) = &mut self.assigned {
            assigned[region] = index;
        }
    }

    /// Ends the use of cache region `index` by all native regions, none of which has sectors in it.
    fn release(&mut self, index: usize) {
        for assigned in self.assigned.iter_mut().flatten().filter(|assigned| **assigned == index as u32) {
            *assigned = NO_SET;
        }
    }

    /// Returns the native regions that use cache region `index`, in order.
    fn natives_of(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let (first, step) = if self.assigned.is_some() { (0, 1) } else { (index, self.sets.len()) };
        (first..self.natives.len()).step_by(step).filter(move |region| self.set_index(*region) == Some(index))
    }

    /// Returns the number of the cache region in which `pba` lies, if any. Cache regions are in the order of their
    /// PBAs.
    fn set_at(&self, pba: Pba) -> Option<usize> {
        let index = self.sets.partition_point(|set| set.start <= pba).checked_sub(1)?;
        (pba < self.sets[index].start + Sectors(self.sets[index].sectors)).then_some(index)
    }

    /// Frees cache region `index`: merges every native region that has live sectors in it (Cassuto 2010, algorithm
    /// IV.2).
    fn collect(&mut self, index: usize, plan: &mut Plan) {
        self.find_present(index);
        let mut present = std::mem::take(&mut self.present);
        for &region in &present {
            self.merge(region, index, plan);
        }
        present.clear();
        self.present = present;
        if plan.phases.last().is_none_or(|phase| phase.kind != GroupKind::Cleaning) {
            plan.open(GroupKind::Cleaning);
            let store = Self::store_of(index);
            plan.because(Reason { target: store, due: Due::Full, store: Some(store) });
        }
        plan.note(Record::Filled { cache_region: index as u64, filled_sectors: 0 }.encode());
        plan.barrier();
        self.sets[index].fill = 0;
        self.release(index);
    }

    /// Fills `present` with the native regions that have live sectors in cache region `index`. Native regions that have
    /// only trimmed sectors stay in the map: merging them would free nothing.
    fn find_present(&mut self, index: usize) {
        self.present.clear();
        let has_cached = |list: &RunList| list.runs().any(|run| !run.is_absent());
        let is_cached = |region: &usize| self.lists.get(*region).is_some_and(has_cached);
        let mut present = std::mem::take(&mut self.present);
        present.extend(self.natives_of(index).filter(is_cached));
        self.present = present;
    }

    fn store_of(index: usize) -> Area {
        Area::new(AreaKind::CacheRegion, index)
    }

    /// Plans the merge of a native region for the collection of cache region `index`: reads it, replaces its cached and trimmed sectors, and writes it back.
    /// Cached runs are read in the order of their PBAs; Cassuto 2010 leaves the order open, and this one is fastest.
    fn merge(&mut self, region: usize, index: usize, plan: &mut Plan) {
        let (extent, first) = (self.natives.extent(region), self.natives.first_lba(region));
        let list = self.list_mut(region).take();
        let first_mapped = list.runs().next().expect("a region present has runs").offset;
        let from = Sectors(if self.whole { 0 } else { first_mapped as u64 });
        let target = Rewrite { lba: first + from, sectors: extent.sectors - from, home: extent.start + from };
        plan.open(GroupKind::Cleaning);
        let area = Area::new(AreaKind::Region, region);
        plan.because(Reason { target: area, due: Due::Full, store: Some(Self::store_of(index)) });
        let mapped: Sectors = list.runs().map(|run| Sectors(run.length as u64)).sum();
        if mapped < target.sectors {
            plan.read(Cause::Cleaning, target.home, target.lba, target.sectors);
        }
        let cache = self.set_of(region).start;
        self.by_place.clear();
        for run in list.runs() {
            if run.is_absent() {
                let lba = first + Sectors(run.offset as u64);
                plan.drop_sectors(Cause::Cleaning, lba, Sectors(run.length as u64));
            } else {
                self.by_place.push((run.place, run.offset, run.length));
            }
        }
        self.by_place.sort_unstable();
        for &(place, offset, length) in &self.by_place {
            let (pba, lba) = (cache + Sectors(place as u64), first + Sectors(offset as u64));
            plan.access(StepOp::Read, self.medium, Kind::Data, Cause::Cleaning, pba, lba, Sectors(length as u64));
        }
        let merged = Record::Merged { region: region as u64 }.encode();
        self.rewriter.rewrite(plan, target, target.lba, Sectors::ZERO, merged);
    }

    fn replay_append(&mut self, lba: Lba, sectors: Sectors, pba: Pba) -> Result<(), &'static str> {
        if !self.holds(lba, sectors) {
            return Err("the run is empty or past the capacity");
        }
        let at = self.natives.locate(lba);
        let Some(index) = self.set_at(pba) else {
            return Err("the run does not lie in a cache region");
        };
        if self.set_index(at.region).is_some_and(|own| own != index) {
            return Err("the native region uses another cache region");
        }
        let set = &mut self.sets[index];
        if at.offset + sectors > self.natives.sectors(at.region) {
            return Err("the run crosses the end of a native region");
        }
        let end = set.start.0 + set.sectors;
        if pba.0.checked_add(sectors.0).is_none_or(|last| last > end) {
            return Err("the run crosses the end of its cache region");
        }
        set.fill = set.fill.max((pba + sectors - set.start).0);
        let place = (pba - set.start).0 as u32;
        self.set_assigned(at.region, index as u32);
        self.map(at.region, lba, sectors, place);
        Ok(())
    }

    fn replay_filled(&mut self, cache_region: u64, filled_sectors: u64) -> Result<(), &'static str> {
        match self.sets.get_mut(cache_region as usize) {
            Some(set) if filled_sectors <= set.sectors => set.fill = filled_sectors,
            Some(_) | None => return Err("there is no such cache region, or it is smaller"),
        }
        if filled_sectors == 0 {
            self.release(cache_region as usize);
        }
        Ok(())
    }

    fn replay_merged(&mut self, region: u64) -> Result<(), &'static str> {
        if region >= self.natives.len() as u64 {
            return Err("there is no such region");
        }
        self.forget(region as usize);
        Ok(())
    }

    fn replay_trimmed(&mut self, lba: Lba, sectors: Sectors) -> Result<(), &'static str> {
        if !self.holds(lba, sectors) {
            return Err("the run is empty or past the capacity");
        }
        self.map_absent(lba, sectors);
        Ok(())
    }

    /// Appends the records of all runs of `region`.
    fn checkpoint_region(&self, region: usize, notes: &mut Vec<Note>) {
        let (first, cache) = (self.natives.first_lba(region), self.set_of(region).start);
        notes.extend(self.list(region).runs().map(|run| {
            let (lba, sectors) = (first + Sectors(run.offset as u64), Sectors(run.length as u64));
            let record = match run.is_absent() {
                true => Record::Trimmed { lba, sectors },
                false => Record::Appended { lba, sectors, pba: cache + Sectors(run.place as u64) },
            };
            record.encode()
        }));
    }

    fn holds(&self, lba: Lba, sectors: Sectors) -> bool {
        !sectors.is_zero() && lba.0.checked_add(sectors.0).is_some_and(|end| end <= self.natives.capacity().0)
    }

    /// Removes the runs of `region` from the map, and closes the open rewrite.
    fn forget(&mut self, region: usize) {
        self.list_mut(region).clear();
        self.set_assigned(region, NO_SET);
        self.rewriter.ended();
    }

    fn check_set(&self, index: usize) -> Result<(), Violation> {
        let violation = |invariant, detail| Err(Violation { layer: INFO.name, invariant, detail });
        let set = &self.sets[index];
        let mut cached = Vec::new();
        for region in self.natives_of(index) {
            let mut free = 0;
            for run in self.list(region).runs() {
                if run.offset < free || run.length == 0 || u64::from(run.end()) > self.natives.sectors(region).0 {
                    return violation(1, format!("{run:?} of region {region}, where {free} come before"));
                }
                free = run.end();
                cached.extend((!run.is_absent()).then_some((u64::from(run.place), u64::from(run.length))));
            }
        }
        cached.sort_unstable();
        let mut free = 0;
        for &(place, sectors) in &cached {
            if place < free {
                return violation(2, format!("{sectors} sectors at {place} begin before {free} in set {index}"));
            }
            free = place + sectors;
        }
        if free > set.fill || set.fill > set.sectors {
            return violation(2, format!("runs reach {free} in set {index}, filled with {} sectors", set.fill));
        }
        Ok(())
    }
}

impl Layer for SetAssociative {
    fn name(&self) -> &'static str {
        INFO.name
    }

    fn is_power_safe(&self) -> bool {
        self.rewriter.has_spare()
    }

    fn capacity(&self) -> Sectors {
        self.natives.capacity()
    }

    fn plan(&mut self, commands: &[Command], plan: &mut Plan) {
        for command in commands {
            let sectors = Sectors(command.sectors as u64);
            match command.operation {
                Operation::Read => self.read(command.lba, sectors, plan),
                Operation::Write => self.write(command.lba, sectors, plan),
                Operation::Trim => self.trim(command.lba, sectors, plan),
                Operation::Flush => {
                    Self::open_host(plan);
                    plan.barrier();
                }
            }
        }
        self.record_appends(plan);
    }

    fn prefetch(&self, lba: Lba, coming: PrefetchHint) {
        if lba.0 < self.natives.capacity().0 {
            self.list(self.natives.locate(lba).region).foresee(coming);
        }
    }

    fn lookup(&self, lba: Lba, sectors: Sectors, pieces: &mut Vec<Piece>) {
        self.for_each_piece(lba, sectors, |piece| pieces.push(piece));
    }

    fn keeps_trims(&self) -> bool {
        true
    }

    fn caches(&self, each: &mut dyn FnMut(Cache)) {
        for set in &self.sets {
            let (start, size) = (set.start, Sectors(set.sectors));
            each(Cache { medium: self.medium, start, end: start + size, used: Sectors(set.fill), size });
        }
    }

    fn stores(&self, each: &mut dyn FnMut(StoreExtent)) {
        for (index, set) in self.sets.iter().enumerate() {
            let end = set.start + Sectors(set.sectors);
            each(StoreExtent { area: Self::store_of(index), medium: self.medium, start: set.start, end });
        }
    }

    fn self_check(&self) -> Result<(), Violation> {
        if let Some(target) = self.rewriter.open() {
            return Err(Violation { layer: INFO.name, invariant: 4, detail: format!("open: {target:?}") });
        }
        let has_cached = |region: &usize| self.list(*region).runs().any(|run| !run.is_absent());
        let uses_none = |region: &usize| self.set_index(*region).is_none();
        if let Some(region) = (0..self.natives.len()).filter(uses_none).find(has_cached) {
            let detail = format!("region {region} has cached sectors, and uses no cache region");
            return Err(Violation { layer: INFO.name, invariant: 5, detail });
        }
        (0..self.sets.len()).try_for_each(|index| self.check_set(index))
    }

    /// Returns the memory of the map. The formula is ours, because neither paper gives one: for each sector of the
    /// cache, the native region of the set that the sector belongs to, and its place in that region. With
    /// `association=dynamic` all native regions count as a set's, and each has the number of its cache region.
    fn memory(&self) -> MapMemory {
        let natives = self.natives.len();
        let natives_per_set = natives.div_ceil(if self.assigned.is_some() { 1 } else { self.sets.len() }) as u64;
        let association = self.assigned.as_ref().map_or(0, |_| natives as u64 * bits_for(self.sets.len() as u64 + 1));
        let bits = bits_for(natives_per_set) + bits_for(self.natives.sectors_max().0);
        let cache_sectors: u64 = self.sets.iter().map(|set| set.sectors).sum();
        let lists: u64 = self.lists.iter().map(|(_, list)| list.measured_bytes()).sum();
        let assigned = self.assigned.as_ref().map_or(0, |assigned| std::mem::size_of_val(&assigned[..]));
        let fixed = self.lists.measured_bytes() as usize + self.sets.len() * std::mem::size_of::<Set>() + assigned;
        MapMemory {
            formula_bytes: (cache_sectors * bits + association).div_ceil(8),
            measured_bytes: lists + fixed as u64 + self.natives.measured_bytes(),
        }
    }

    fn checkpoint(&self, notes: &mut Vec<Note>) {
        (0..self.natives.len()).for_each(|region| self.checkpoint_region(region, notes));
        notes.extend(
            self.sets
                .iter()
                .enumerate()
                .map(|(index, set)| Record::Filled { cache_region: index as u64, filled_sectors: set.fill }.encode()),
        );
        notes.extend(self.rewriter.open_note());
    }

    fn replay(&mut self, note: &Note) -> Result<(), ReplayError> {
        let taken = match Record::decode(note)? {
            Record::Appended { lba, sectors, pba } => self.replay_append(lba, sectors, pba),
            Record::Trimmed { lba, sectors } => self.replay_trimmed(lba, sectors),
            Record::Merged { region } => self.replay_merged(region),
            Record::Filled { cache_region, filled_sectors } => self.replay_filled(cache_region, filled_sectors),
            Record::Begin { lba, sectors, pba: home } => {
                let begun = self.rewriter.replay_begin(Rewrite { lba, sectors, home }, self.natives.capacity());
                return begun.map_err(|reason| note.refuse(reason));
            }
        };
        taken.map_err(|reason| note.refuse(reason))
    }

    fn repair(&mut self, plan: &mut Plan) {
        let natives = &self.natives;
        let mut merged = None;
        self.rewriter.repair(plan, |target| {
            let region = natives.locate(target.lba).region;
            merged = Some(region);
            Record::Merged { region: region as u64 }.encode()
        });
        if let Some(region) = merged {
            self.forget(region);
        }
    }
}

/// Returns the number of bits that distinguish `count` values.
fn bits_for(count: u64) -> u64 {
    (64 - count.saturating_sub(1).leading_zeros()) as u64
}

#[cfg(test)]
mod tests;
