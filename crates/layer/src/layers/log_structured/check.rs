//! Checks the numbered invariants of the layer's header, using only the map and the zones.

use super::INFO;
use super::state::{LogZone, Placed, State, Use};
use crate::violation::Violation;

type Broken = (u32, String);

pub(super) fn check(state: &State) -> Result<(), Violation> {
    check_places(state)
        .and_then(|()| {
            state.zones.iter().enumerate().try_for_each(|(index, zone)| {
                check_summary(state, index, zone).and_then(|()| check_use(state, index, zone))
            })
        })
        .map_err(|(invariant, detail)| Violation { layer: INFO.name, invariant, detail })
}

fn check_places(state: &State) -> Result<(), Broken> {
    let mut placed = Vec::new();
    state.cover(0, state.blocks, |block, blocks, place| {
        placed.extend(place.map(|place| Placed { block, blocks, place }));
    });
    placed.sort_unstable_by_key(|run| run.place);
    if let Some(pair) = placed.windows(2).find(|pair| pair[0].place + pair[0].blocks > pair[1].place) {
        return Err((1, format!("{pair:?} share a place")));
    }
    let mut live = vec![0; state.zones.len()];
    for run in &placed {
        live[(run.place / state.zone_blocks) as usize] += run.blocks;
    }
    match live.iter().zip(&state.zones).position(|(&live, zone)| live != zone.live) {
        Some(index) => {
            let counted = state.zones[index].live;
            Err((1, format!("zone {index} has {} live blocks, counted as {counted}", live[index])))
        }
        None => Ok(()),
    }
}

fn check_summary(state: &State, index: usize, zone: &LogZone) -> Result<(), Broken> {
    let mut place = state.first_place(index);
    let mut live = 0;
    for entry in zone.summary.iter() {
        state.for_each_live(entry, place, |run| live += run.blocks);
        place += entry.blocks;
    }
    let reached = place - state.first_place(index);
    if reached != zone.fill || live != zone.live || zone.fill > state.zone_blocks {
        return Err((2, format!("zone {index}: {live} live blocks in a summary that reaches {reached}: {zone:?}")));
    }
    Ok(())
}

fn check_use(state: &State, index: usize, zone: &LogZone) -> Result<(), Broken> {
    let is_listed = state.free.iter().filter(|&&free| free == index).count();
    let is_open = state.open.iter().filter(|&&open| open == Some(index)).count();
    let is_right = match zone.holds {
        Use::Free => (is_listed, is_open, zone.fill, zone.live) == (1, 0, 0, 0),
        Use::Open => (is_listed, is_open) == (0, 1) && zone.fill < state.zone_blocks,
        Use::Closed => (is_listed, is_open) == (0, 0) && zone.fill == state.zone_blocks && zone.live > 0,
    };
    if !is_right {
        return Err((3, format!("zone {index}, {is_listed} times free and {is_open} times open: {zone:?}")));
    }
    Ok(())
}
