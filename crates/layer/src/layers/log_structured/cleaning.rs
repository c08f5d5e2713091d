//! Cleaning: the live blocks of a victim zone are moved, a step at a time, to the open zone for cleaned data. The
//! victim is free when its last live block has been moved or overwritten by the host.
//!
//! A step reads in the order of places and writes in the order of blocks, so that consecutive blocks end up together.
//!
//! Invariants:
//! 1. A zone is written again only after the records that freed it are durable.
//! 2. The last free zone is used only by cleaning.

use std::cmp::Reverse;

use imbrex_disk::{Lba, Sectors};

use super::state::{LogZone, Placed, Stream, Use, Victim};
use super::{LogStructured, Policy};
use crate::plan::reason::{Area, AreaKind, Due, Reason};
use crate::plan::{Cause, GroupKind, Plan};

impl LogStructured {
    /// Appends one step of cleaning to `plan`. Returns `false` if there is no zone to clean.
    pub(super) fn clean(&mut self, due: Due, plan: &mut Plan) -> bool {
        if self.state.victim.is_none() {
            self.state.victim = self.choose().map(|zone| Victim { zone, entry: 0, entry_start: 0, skip: 0 });
        }
        let Some(victim) = self.state.victim else { return false };
        let mut moves = std::mem::take(&mut self.moves);
        self.find_moves(&mut moves);
        plan.open(GroupKind::Cleaning);
        let target = Area::new(AreaKind::Zone, victim.zone);
        plan.because(Reason { target, due, store: Some(Area::new(AreaKind::Log, 0)) });
        let size = self.state.block_sectors;
        for run in &moves {
            let (lba, sectors) = (Lba(run.block as u64 * size), Sectors(run.blocks as u64 * size));
            plan.read(Cause::Cleaning, self.state.pba(run.place), lba, sectors);
        }
        moves.sort_unstable();
        join_neighbours(&mut moves);
        for run in &moves {
            self.move_run(*run, plan);
        }
        self.record_appends(plan);
        moves.clear();
        self.moves = moves;
        true
    }

    /// Appends one step of cleaning in idle time to `plan`, if too few zones are free. Returns whether a step was made.
    pub(super) fn clean_idly(&mut self, plan: &mut Plan) -> bool {
        self.state.free.len() < self.idle_zones && self.clean(Due::Idle, plan)
    }

    fn move_run(&mut self, run: Placed, plan: &mut Plan) {
        let mut done = 0;
        while done < run.blocks {
            let (place, room) = self.head_or_free_zone(self.cleaned, plan);
            let blocks = room.min(run.blocks - done);
            self.append(Cause::Cleaning, Placed { block: run.block + done, blocks, place }, self.cleaned, plan);
            done += blocks;
        }
    }

    /// Returns the place at which the next block of `stream` goes, and the number of blocks left in its zone from there
    /// on. If the stream has no open zone, these are of the next free zone; then a barrier is appended to `plan` if a
    /// zone became free since the last barrier.
    pub(super) fn head_or_free_zone(&mut self, stream: Stream, plan: &mut Plan) -> (u32, u32) {
        if let Some(head) = self.state.head(stream) {
            return head;
        }
        if std::mem::take(&mut self.state.freed) {
            // The data of freed zones may still be needed until the records of this plan, which are not yet appended,
            // are durable.
            self.record_appends(plan);
            plan.barrier();
        }
        let zone = *self.state.free.front().expect("invariant 4: cleaning finds a free zone");
        (self.state.first_place(zone), self.state.zone_blocks)
    }

    /// Returns the closed zone to clean: the first of those that the policy rates best. With no zone free, the policy
    /// is greedy: the live blocks of the zone with the fewest are sure to fit into the open zone. A victim whose
    /// cleaning was interrupted by a power cut left room for itself there.
    fn choose(&self) -> Option<usize> {
        let zone_blocks = self.state.zone_blocks;
        let zones = self.state.zones.iter().enumerate();
        let candidates = zones.filter(|(_, zone)| zone.holds == Use::Closed && zone.live < zone_blocks);
        let policy = if self.state.free.is_empty() { Policy::Greedy } else { self.policy };
        let best = match policy {
            Policy::Greedy => candidates.min_by_key(|(index, zone)| (zone.live, *index)),
            Policy::CostBenefit => candidates.max_by(|(left_index, left), (right_index, right)| {
                let left_wins = self.benefit_and_cost(left).0 * self.benefit_and_cost(right).1;
                let right_wins = self.benefit_and_cost(right).0 * self.benefit_and_cost(left).1;
                left_wins.cmp(&right_wins).then(Reverse(left_index).cmp(&Reverse(right_index)))
            }),
        };
        best.map(|(index, _)| index)
    }

    /// Returns the benefit and the cost of cleaning a zone. The benefit is the space gained, times the age of the data,
    /// which predicts how long the space stays usable. The cost is the number of blocks read and written.
    fn benefit_and_cost(&self, zone: &LogZone) -> (u128, u128) {
        let dead = (self.state.zone_blocks - zone.live) as u128;
        let age = (self.state.clock - zone.written_at) as u128 + 1;
        (dead * age, (self.state.zone_blocks + zone.live) as u128)
    }

    /// Collects the next live blocks of the victim, at most one step's worth, in the order of their places.
    fn find_moves(&mut self, moves: &mut Vec<Placed>) {
        let mut victim = self.state.victim.expect("a victim is chosen");
        let zone = &self.state.zones[victim.zone];
        let first_place = self.state.first_place(victim.zone);
        let mut wanted = self.step_blocks;
        while wanted > 0 {
            let Some(mut entry) = zone.summary.get(victim.entry) else { break };
            if victim.skip == entry.blocks {
                victim = Victim {
                    entry: victim.entry + 1,
                    entry_start: victim.entry_start + entry.blocks,
                    skip: 0,
                    ..victim
                };
                continue;
            }
            let place = first_place + victim.entry_start + victim.skip;
            let part = (entry.blocks - victim.skip).min(wanted);
            if entry.block != crate::map::short_run::ABSENT {
                entry.block += victim.skip;
            }
            entry.blocks = part;
            self.state.for_each_live(entry, place, |live| {
                moves.push(live);
                wanted -= live.blocks;
            });
            victim.skip += part;
        }
        self.state.victim = Some(victim);
    }
}

/// Joins moves whose blocks follow each other. Their old places no longer matter, because the blocks are staged by
/// then.
fn join_neighbours(moves: &mut Vec<Placed>) {
    moves.dedup_by(|next, before| {
        let follows = before.block + before.blocks == next.block;
        if follows {
            before.blocks += next.blocks;
        }
        follows
    });
}
