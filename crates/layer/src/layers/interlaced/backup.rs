//! The backup log (Hajkazemi 2019 §2.1). Copies of the sectors that a rewrite endangers are kept in regions of bottom
//! tracks without tops, and records map the copied sectors to their copies.
//!
//! There are two records: that of the latest host read-modify-write, and that of the current background move. The host
//! record is cleared lazily: the next operation replaces it. Anything else that would make the record stale clears it
//! first.
//!
//! ```text
//!              copies written · barrier · note · barrier
//!   cleared ────────────────────────────────────────────► active ──┐ replaced by the next operation's note
//!      ▲                                                    │      │
//!      └──── barrier · clear note · barrier ◄───────────────┘ ◄────┘
//! ```
//!
//! Invariants:
//! 1. While a record is active, its copies are intact: nothing is written over them before the clear is durable.
//! 2. While the host record is active, none of its logical sectors has been written, moved or trimmed since the
//!    operation.
//! 3. A record is replaced or cleared only after a barrier, so the sectors that its operation rewrote are durable by
//!    then.

use imbrex_disk::{Extent, Lba, Pba, Sectors};

use super::home::{Area, Planner};
use super::record::{FIRST_LAYER_TAG, Record};
use super::run::TrackRun;
use crate::parameters::ConfigError;
use crate::plan::Plan;
use crate::plan::note::Note;

/// Minimum number of tracks per surface for each backup region. Small disks get fewer regions, and so keep most of
/// their tracks.
const TRACKS_PER_REGION: u32 = 32;
/// Maximum number of regions: the search for the nearest one goes through all.
const REGIONS_MAX: u64 = 1024;

/// A run of logical sectors of which a backup region holds a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// First logical sector of the run of which a backup region holds a copy.
    pub lba: Lba,
    /// Number of logical sectors of the run that was copied, which is also the length of the copy in physical sectors.
    pub sectors: u32,
    /// First physical sector of the copy, which lies in a backup region. The rest of the copy follows it.
    pub backup: Pba,
}

/// A backup region.
#[derive(Clone, Copy, Debug)]
struct Region {
    area: Area,
    /// Offset in the region, in sectors, at which the next copies go.
    next: u64,
}

/// Operation for which copies are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum For {
    /// The latest read-modify-write of the host.
    Host,
    /// The background move in progress.
    Move,
}

/// The copies made for one operation.
#[derive(Clone, Default, Debug)]
struct Backup {
    parts: Vec<Part>,
    /// The smallest extent that holds all the copies.
    copies: Extent,
    /// The smallest extents that hold the copied sectors of the outer and of the inner neighbour. A write there would
    /// make the copies stale, so the record is cleared before the write.
    homes: [Extent; 2],
}

impl Backup {
    fn is_active(&self) -> bool {
        !self.parts.is_empty()
    }

    fn clear(&mut self) {
        self.parts.clear();
        self.copies = Extent::default();
        self.homes = [Extent::default(); 2];
    }
}

/// The backup log of an interlaced drive: its regions, and the copies in them. Two backups can be active at a time:
/// that of the host's latest read-modify-write (the host record), and that of the current background move (the record
/// of the move).
#[derive(Clone, Debug)]
pub struct BackupLog {
    regions: Vec<Region>,
    /// Radial positions halfway from each region to the next.
    borders: Vec<u32>,
    host: Backup,
    job: Backup,
    /// The region that the current move uses.
    job_region: Option<usize>,
    /// Parts of an incomplete record during replay.
    replayed: Vec<Part>,
}

impl BackupLog {
    /// Sets aside up to `count` backup regions (bottom tracks for copies of sectors that a rewrite could lose), evenly
    /// over the `tracks` radial positions, on the surfaces in turn. Each region has room for three of the longest
    /// tracks, which may take more than three tracks. A `count` above one region for every 32 radial positions is
    /// lowered; 0 counts as 1. A region for which there is no room is left out.
    ///
    /// # Errors
    ///
    /// `count` is more than 1,024, or there is no room for any region.
    pub fn set_aside(
        planner: &mut Planner<'_>,
        tracks: u32,
        surfaces: u8,
        count: u64,
    ) -> Result<BackupLog, ConfigError> {
        if count > REGIONS_MAX {
            return Err(ConfigError(format!(
                "backup_regions={count}: give at most {REGIONS_MAX}; then the nearest is less than a thousandth of a stroke away"
            )));
        }
        let count = count.clamp(1, (tracks / TRACKS_PER_REGION).max(1) as u64) as u32;
        let sectors = 3 * planner.track_sectors_max();
        let mut areas: Vec<Area> = Vec::new();
        for index in 0..count {
            let middle = ((2 * index as u64 + 1) * tracks as u64 / (2 * count as u64)) as u32;
            areas.extend(planner.set_aside(middle, (index % surfaces as u32) as u8, sectors));
        }
        if areas.is_empty() {
            return Err(ConfigError(
                "no group has three bottom tracks in a row for a backup region: make group_tracks larger".into(),
            ));
        }
        areas.sort_unstable_by_key(|area| (area.radial_start, area.surface));
        let borders = areas.windows(2).map(|pair| pair[0].middle() / 2 + pair[1].middle() / 2).collect();
        let region = |area: &Area| Region { area: *area, next: 0 };
        Ok(BackupLog {
            regions: areas.iter().map(region).collect(),
            borders,
            host: Backup::default(),
            job: Backup::default(),
            job_region: None,
            replayed: Vec::new(),
        })
    }

    /// Returns the number of backup regions (areas of bottom tracks for copies of sectors that a rewrite could lose),
    /// which is at least 1.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns the physical sectors of each backup region, without the top tracks beside it, in order of radial
    /// position from the outside.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        self.regions.iter().map(|region| region.area.extent)
    }

    /// Returns the maximum number of sectors that the backup copies of one host operation or one background move may
    /// take: the length of the smallest backup region.
    pub fn region_sectors(&self) -> u64 {
        self.extents().map(|extent| extent.sectors.0).min().expect("there is a region")
    }

    /// Returns the tracks of the backup region that is reserved for the current background move; `None` if no move has
    /// reserved one.
    pub fn area_of_move(&self) -> Option<Area> {
        self.job_region.map(|region| self.regions[region].area)
    }

    #[inline]
    fn nearest(&self, radial_track: u32) -> usize {
        self.borders.iter().map(|&border| usize::from(radial_track > border)).sum()
    }

    /// Returns the index of the nearest region that no move uses.
    #[inline]
    fn nearest_free(&self, radial_track: u32) -> usize {
        let nearest = self.nearest(radial_track);
        if self.job_region != Some(nearest) {
            return nearest;
        }
        let beside = [nearest.checked_sub(1), Some(nearest + 1).filter(|&next| next < self.regions.len())];
        let distance = |&region: &usize| self.regions[region].area.middle().abs_diff(radial_track);
        beside.into_iter().flatten().min_by_key(distance).expect("with one region the move is completed before")
    }

    /// Returns the first physical sector to which the copies of a host operation at `radial_track` go, `sectors` in
    /// total. They go to the nearest region that no move uses, behind the copies before them, or to the region's start
    /// if there is no room. If they would overwrite copies of the active host record, appends to `plan` the steps that
    /// clear that record.
    ///
    /// # Panics
    ///
    /// If `sectors` exceeds the length of the region, or a move uses the only region.
    #[inline]
    pub fn place_host(&mut self, radial_track: u32, sectors: u64, plan: &mut Plan) -> Pba {
        let region = self.nearest_free(radial_track);
        self.place(region, sectors, plan)
    }

    /// Reserves the backup region nearest to `radial_track` for a background move, until [`BackupLog::end_move`].
    /// Returns the first physical sector of the region, to which the copies of the move go, `sectors` in total. If the
    /// copies would overwrite those of the active host record, appends to `plan` the steps that clear that record. No
    /// other move may have reserved a region.
    ///
    /// # Panics
    ///
    /// If `sectors` exceeds the length of the region.
    pub fn place_move(&mut self, radial_track: u32, sectors: u64, plan: &mut Plan) -> Pba {
        debug_assert!(self.job_region.is_none(), "one move at a time");
        let region = self.nearest(radial_track);
        self.job_region = Some(region);
        // Copies begin at the region's start, so that whole tracks are copied to whole tracks.
        self.regions[region].next = 0;
        self.place(region, sectors, plan)
    }

    #[inline]
    fn place(&mut self, index: usize, sectors: u64, plan: &mut Plan) -> Pba {
        let region = &mut self.regions[index];
        assert!(sectors <= region.area.extent.sectors.0, "{sectors} sectors do not fit into {:?}", region.area);
        if region.next + sectors > region.area.extent.sectors.0 {
            region.next = 0;
        }
        let copies = Extent::new(region.area.extent.start + Sectors(region.next), Sectors(sectors));
        region.next += sectors;
        if self.host.is_active() && self.host.copies.intersection(copies).is_some() {
            self.clear_host(plan);
        }
        copies.start
    }

    /// Records that copies of `runs` lie in a backup region from `backup` on, one after the other, for a host operation
    /// that writes the bottom track at `radial_track`. Appends a barrier, the journal records and another barrier to
    /// `plan`: the copies are durable before the records. The new host record replaces the one before.
    #[inline]
    pub fn record_host(&mut self, radial_track: u32, backup: Pba, runs: &[TrackRun], plan: &mut Plan) {
        plan.barrier();
        self.host.clear();
        for run in runs {
            let bounds = &mut self.host.homes[usize::from(run.radial_track > radial_track)];
            *bounds = around(*bounds, run.extent());
        }
        fill(&mut self.host, backup, runs);
        note_parts(&self.host.parts, For::Host, |note| plan.note(note));
        plan.barrier();
    }

    /// Records that copies of `runs` lie in a backup region from `backup` on, one after the other, for the current
    /// background move. Appends a barrier, the journal records and another barrier to `plan`: the copies are durable
    /// before the records. The new record replaces that of an earlier move.
    pub fn record_move(&mut self, backup: Pba, runs: &[TrackRun], plan: &mut Plan) {
        plan.barrier();
        self.job.clear();
        fill(&mut self.job, backup, runs);
        note_parts(&self.job.parts, For::Move, |note| plan.note(note));
        plan.barrier();
    }

    /// Clears the active host record, by journal records between barriers that it appends to `plan`, if the physical
    /// sectors `written` may overlap sectors that the record has copied. Otherwise has no effect. The caller calls this
    /// before it writes, moves or trims `written`, because that would make the copies stale.
    #[inline]
    pub fn before_writing(&mut self, written: Extent, plan: &mut Plan) {
        if self.host.is_active() && self.host.homes.iter().any(|homes| homes.intersection(written).is_some()) {
            self.clear_host(plan);
        }
    }

    fn clear_host(&mut self, plan: &mut Plan) {
        plan.barrier();
        plan.note(Record::HostCleared {}.encode());
        plan.barrier();
        self.host.clear();
    }

    /// Clears the record of the current move in memory and frees the move's region. A durable journal record of the
    /// layer must already say that the move has ended.
    pub fn end_move(&mut self) {
        self.job.clear();
        self.job_region = None;
    }

    /// Appends to `notes` the journal records that restore the active backups (at most one of the host and one of a
    /// move) in a new backup log. Appends none if no backup is active.
    pub fn checkpoint(&self, notes: &mut Vec<Note>) {
        note_parts(&self.host.parts, For::Host, |note| notes.push(note));
        note_parts(&self.job.parts, For::Move, |note| notes.push(note));
    }

    /// Returns whether the tag of `note`, the number of its kind of record, is below [`FIRST_LAYER_TAG`] (16). Such a
    /// record is one that all layers of interlaced disks share: of the backup log, or of live sectors.
    pub fn takes(note: &Note) -> bool {
        note.tag < FIRST_LAYER_TAG
    }

    /// Replays a journal record of the backup log on a drive of `capacity` logical sectors. A backup of several records
    /// becomes active with its last record.
    ///
    /// # Errors
    ///
    /// The copies lie in no backup region, the copied sectors lie past the capacity, or the record is one of live or
    /// dead sectors. The error is a text with the reason.
    pub fn replay(&mut self, record: Record, capacity: Sectors) -> Result<(), String> {
        match record {
            Record::First { backup_pba, lba, second_lba, sectors_of_both }
            | Record::Middle { backup_pba, lba, second_lba, sectors_of_both }
            | Record::HostOnly { backup_pba, lba, second_lba, sectors_of_both }
            | Record::HostLast { backup_pba, lba, second_lba, sectors_of_both }
            | Record::MoveOnly { backup_pba, lba, second_lba, sectors_of_both }
            | Record::MoveLast { backup_pba, lba, second_lba, sectors_of_both } => {
                let runs = [(lba, sectors_of_both.0), (second_lba, sectors_of_both.1)];
                self.check_parts(backup_pba, runs, capacity)?;
                self.replay_parts(record, backup_pba, runs);
            }
            Record::HostCleared {} => self.host.clear(),
            Record::MoveCleared {} => self.job.clear(),
            Record::Live { .. } | Record::Dead { .. } => {
                return Err("which sectors are live is not kept: the layer has no skip_dead=on".into());
            }
        }
        Ok(())
    }

    fn check_parts(&self, backup: Pba, runs: [(Lba, u32); 2], capacity: Sectors) -> Result<(), String> {
        let sectors = runs.iter().map(|(_, sectors)| u64::from(*sectors)).sum::<u64>();
        let lies_in = |region: Extent| {
            let within = |end: u64| region.start <= backup && end <= region.end().0;
            backup.0.checked_add(sectors).is_some_and(within)
        };
        if !self.extents().any(lies_in) {
            return Err(format!("{sectors} sectors from {backup} lie in no backup region"));
        }
        let is_there = |(lba, sectors): (Lba, u32)| {
            sectors == 0 || lba.0.checked_add(u64::from(sectors)).is_some_and(|end| end <= capacity.0)
        };
        if !runs.into_iter().all(is_there) {
            return Err("the copy is of sectors past the capacity".into());
        }
        Ok(())
    }

    fn replay_parts(&mut self, record: Record, backup: Pba, runs: [(Lba, u32); 2]) {
        let goes_on = matches!(record, Record::Middle { .. } | Record::HostLast { .. } | Record::MoveLast { .. });
        if !goes_on {
            // A cut may have left the first records of a backup without the last.
            self.replayed.clear();
        }
        let mut at = backup;
        for (lba, sectors) in runs.into_iter().filter(|(_, sectors)| *sectors > 0) {
            self.replayed.push(Part { lba, sectors, backup: at });
            at += Sectors(u64::from(sectors));
        }
        let completed = match record {
            Record::HostOnly { .. } | Record::HostLast { .. } => &mut self.host,
            Record::MoveOnly { .. } | Record::MoveLast { .. } => &mut self.job,
            _ => return,
        };
        completed.clear();
        completed.parts.append(&mut self.replayed);
    }

    /// Returns the runs whose copies have to be written back to the runs' places after a power cut: first those of the
    /// current move, then those of the host's operation. A list is empty if that record is not active.
    pub fn active_parts(&self) -> [&[Part]; 2] {
        [&self.job.parts, &self.host.parts]
    }

    /// Clears both records, in memory and by journal records between barriers that it appends to `plan`. The caller has
    /// written back the copies of [`BackupLog::active_parts`].
    pub fn clear_repaired(&mut self, plan: &mut Plan) {
        plan.barrier();
        if self.job.is_active() {
            plan.note(Record::MoveCleared {}.encode());
        }
        if self.host.is_active() {
            plan.note(Record::HostCleared {}.encode());
        }
        plan.barrier();
        self.host.clear();
        self.end_move();
    }

    /// Returns the bytes of heap memory that the log's structures take in this program now.
    pub fn measured_bytes(&self) -> u64 {
        let parts = self.host.parts.capacity() + self.job.parts.capacity() + self.replayed.capacity();
        let regions = self.regions.capacity() * size_of::<Region>() + self.borders.capacity() * size_of::<u32>();
        (parts * size_of::<Part>() + regions) as u64
    }
}

/// Returns the smallest extent that holds both `bounds` and `extent`; `extent` if `bounds` is empty.
#[inline]
fn around(bounds: Extent, extent: Extent) -> Extent {
    if bounds.is_empty() {
        return extent;
    }
    Extent::between(bounds.start.min(extent.start), bounds.end().max(extent.end()))
}

#[inline]
fn fill(record: &mut Backup, backup: Pba, runs: &[TrackRun]) {
    let mut at = backup;
    for run in runs {
        record.parts.push(Part { lba: run.lba, sectors: run.sectors, backup: at });
        at += Sectors(run.sectors as u64);
    }
    record.copies = Extent::between(backup, at);
}

/// Pushes the records of a backup, two parts in each. The last record names the operation that the backup is for. The
/// copies of one backup follow each other on the medium.
#[inline]
fn note_parts(parts: &[Part], whose: For, mut push: impl FnMut(Note)) {
    let notes = parts.len().div_ceil(2);
    for (index, pair) in parts.chunks(2).enumerate() {
        let (second_lba, second) = pair.get(1).map_or((Lba(0), 0), |part| (part.lba, part.sectors));
        let (backup_pba, lba, sectors_of_both) = (pair[0].backup, pair[0].lba, (pair[0].sectors, second));
        let record = match (index == 0, index + 1 == notes, whose) {
            (true, false, _) => Record::First { backup_pba, lba, second_lba, sectors_of_both },
            (false, false, _) => Record::Middle { backup_pba, lba, second_lba, sectors_of_both },
            (true, true, For::Host) => Record::HostOnly { backup_pba, lba, second_lba, sectors_of_both },
            (false, true, For::Host) => Record::HostLast { backup_pba, lba, second_lba, sectors_of_both },
            (true, true, For::Move) => Record::MoveOnly { backup_pba, lba, second_lba, sectors_of_both },
            (false, true, For::Move) => Record::MoveLast { backup_pba, lba, second_lba, sectors_of_both },
        };
        push(record.encode());
    }
}
