//! Checks the numbered invariants of the layer's header in each zone, using only the zone's lists.

use super::INFO;
use super::zone::BandZone;
use crate::violation::Violation;

pub(super) fn check_zone(index: usize, zone: &BandZone) -> Result<(), Violation> {
    check_bands(zone)
        .and_then(|()| check_runs(zone))
        .and_then(|()| check_streams(zone))
        .and_then(|()| check_next_merge(zone))
        .map_err(|(invariant, detail)| Violation {
            layer: INFO.name,
            invariant,
            detail: format!("zone {index}: {detail}"),
        })
}

type Broken = (u32, String);

fn check_bands(zone: &BandZone) -> Result<(), Broken> {
    let mut uses = vec![0; zone.live.len()];
    let streams = zone.streams.iter().map(|stream| &stream.band);
    for &band in zone.homes.iter().chain(&zone.free).chain(&zone.logs).chain(streams) {
        *uses.get_mut(band as usize).ok_or_else(|| (1, format!("there is no band {band}")))? += 1;
    }
    match uses.iter().position(|&count| count != 1) {
        Some(band) => Err((1, format!("band {band} has {} uses", uses[band]))),
        None => Ok(()),
    }
}

fn check_runs(zone: &BandZone) -> Result<(), Broken> {
    let mut logged = Vec::new();
    for (logical, list) in zone.runs.iter().enumerate() {
        let mut free = 0;
        for run in list.runs() {
            if run.offset < free || run.length == 0 || run.end() > zone.band_sectors {
                return Err((2, format!("{run:?} of logical band {logical}, where {free} come before")));
            }
            free = run.end();
            logged.extend((!run.is_absent()).then_some((run.place, run.length)));
        }
    }
    logged.sort_unstable();
    let mut live = vec![0; zone.live.len()];
    let mut free = 0;
    for &(place, length) in &logged {
        let band = place / zone.band_sectors;
        let filled = match zone.logs.iter().position(|&log| log == band) {
            Some(age) if age + 1 == zone.logs.len() => zone.head,
            Some(_) => zone.band_sectors,
            None => 0,
        };
        if place < free || place % zone.band_sectors + length > filled {
            return Err((2, format!("{length} sectors at {place}: {free} is free, band {band} filled to {filled}")));
        }
        free = place + length;
        live[band as usize] += length;
    }
    if live != zone.live || zone.logs.iter().any(|&band| live[band as usize] == 0) {
        return Err((3, format!("live sectors are {live:?}, counted as {:?}, in {:?}", zone.live, zone.logs)));
    }
    Ok(())
}

fn check_streams(zone: &BandZone) -> Result<(), Broken> {
    for (index, stream) in zone.streams.iter().enumerate() {
        let is_twice = zone.streams[..index].iter().any(|other| other.logical == stream.logical);
        if is_twice || stream.filled == 0 || stream.filled >= zone.band_sectors {
            return Err((4, format!("{stream:?} among {:?}", zone.streams)));
        }
    }
    Ok(())
}

fn check_next_merge(zone: &BandZone) -> Result<(), Broken> {
    let Some(&oldest) = zone.logs.front() else { return Ok(()) };
    let passed = &zone.runs[..zone.next_merge as usize];
    let is_there = |list: &crate::map::run_list::RunList| {
        list.runs().any(|run| !run.is_absent() && run.place / zone.band_sectors == oldest)
    };
    match passed.iter().position(is_there) {
        Some(logical) => Err((5, format!("logical band {logical} has a run in the oldest log band {oldest}"))),
        None => Ok(()),
    }
}
