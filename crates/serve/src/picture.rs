//! The data that the live page draws of a drive: its surfaces with the latest writes and reads, caches, bands and
//! damage, and its bands one by one. If a drive has more bands than the page can show, neighbouring bands share a cell.

use std::time::Duration;

use imbrex_device::EmulatedDrive;
use imbrex_device::activity::{Activity, BINS};
use imbrex_device::bands::{Band, BandState, CountsBySurface};
use imbrex_disk::{Extent, Geometry, Pba, Sectors};
use imbrex_layer::{Cause, Medium};
use serde_json::{Value, json};

use crate::drive_server::DriveServer;

/// Maximum number of cells for bands on the page.
const CELLS_MAX: usize = 1440;

/// Pause between two parts of the picture, in which the drive serves requests.
const PAUSE: Duration = Duration::from_micros(500);
/// Number of slices in which the damage bitmap is read.
const DAMAGE_SLICES: u64 = 48;

/// Returns the bands and the surfaces, in JSON. Each part takes the lock of the drive separately, because requests wait
/// meanwhile. So one part of a picture may be a few milliseconds newer than another.
pub(crate) fn draw(front: &DriveServer) -> (Value, Value) {
    let count = front.with(|drive, _| drive.drive().disk.geometry.surfaces());
    let found = part(front, |drive| {
        let bands = drive.bands().filter(|bands| !bands.all().is_empty())?;
        Some((bands.all().to_vec(), bands.is_zoned(), bands.by_surface(count)))
    });
    let damaged = damage(front);
    let caches = part(front, |drive| caches(drive));
    let (all, by_surface) = match found {
        Some((all, is_zoned, by_surface)) => (bands(&all, is_zoned), Some(by_surface)),
        None => (Value::Null, None),
    };
    (all, part(front, |drive| surfaces(drive, damaged, caches, by_surface)))
}

/// Calls `ask` with the drive for one part of the picture, then pauses for requests.
fn part<T>(front: &DriveServer, ask: impl FnOnce(&mut EmulatedDrive) -> T) -> T {
    let answer = front.with(|drive, _| ask(drive));
    std::thread::sleep(PAUSE);
    answer
}

/// Returns the bands in the order of their places, with `cell_bands` neighbours to a cell. A cell has the number of its
/// bands in each state, and the mean share to which their states refer.
fn bands(bands: &[Band], is_zoned: bool) -> Value {
    let cell_bands = bands.len().div_ceil(CELLS_MAX);
    let mut counts = [0u32; BandState::ALL.len()];
    let cells: Vec<Value> = bands
        .chunks(cell_bands)
        .map(|cell| {
            let mut of_cell = [0u32; BandState::ALL.len()];
            cell.iter().for_each(|band| of_cell[band.state as usize] += 1);
            counts.iter_mut().zip(of_cell).for_each(|(sum, count)| *sum += count);
            let share = cell.iter().map(|band| band.share).sum::<f64>() / cell.len() as f64;
            json!([of_cell, (share * 1e4).round() / 1e4])
        })
        .collect();
    json!({
        "name": if is_zoned { "zone" } else { "band" },
        "states": BandState::ALL.map(BandState::name),
        "counts": counts,
        "cell_bands": cell_bands,
        "cells": cells,
    })
}

/// Returns for each surface, in lists by bin: causes of the latest writes, ages of the latest write and read, damage,
/// cache fill, and bands by state.
fn surfaces(
    drive: &mut EmulatedDrive,
    damaged: Vec<Vec<u64>>,
    caches: Vec<Vec<Option<f64>>>,
    bands: Option<CountsBySurface>,
) -> Value {
    let now = drive.now();
    let Some(activity) = drive.activity() else { return json!([]) };
    let surfaces = activity.surfaces().iter().zip(damaged).zip(caches).enumerate();
    let surfaces = surfaces.map(|(number, ((bins, damaged), caches))| {
        let causes: Vec<_> = bins.iter().map(|bin| bin.written.map(Cause::name)).collect();
        let age = |at: imbrex_disk::SimTime| (at.0 > 0).then(|| now.since(at).0);
        let written: Vec<_> = bins.iter().map(|bin| age(bin.written_at)).collect();
        let read: Vec<_> = bins.iter().map(|bin| age(bin.read_at)).collect();
        json!({
            "causes": causes,
            "written_age_ns": written,
            "read_age_ns": read,
            "damaged_sectors": damaged,
            "cache_fill": caches,
            "bands": bands.as_ref().map(|surfaces| &surfaces[number]),
        })
    });
    Value::Array(surfaces.collect())
}

/// Returns the number of damaged sectors by surface and bin. The bitmap of a large drive is long, so it is read in slices.
fn damage(front: &DriveServer) -> Vec<Vec<u64>> {
    let disk = front.with(|drive, _| drive.drive().disk.clone());
    let mut bins = vec![vec![0; BINS]; disk.geometry.surfaces() as usize];
    if disk.recording.leaves_damage_to_host() || disk.recording.is_harmless() {
        return bins;
    }
    let end = disk.geometry.sectors().0;
    let slice_sectors = end.div_ceil(DAMAGE_SLICES);
    for start in (0..end).step_by(slice_sectors as usize) {
        let slice = Extent::between(Pba(start), Pba(end.min(start + slice_sectors)));
        part(front, |drive| count_damage(drive, &disk.geometry, slice, &mut bins));
    }
    bins
}

fn count_damage(drive: &mut EmulatedDrive, geometry: &Geometry, slice: Extent, bins: &mut [Vec<u64>]) {
    // A page of the bitmap that cannot be read is drawn as undamaged: reads of its sectors will report the error.
    let _ = drive.store_mut().for_each_damage(slice, |run| {
        for piece in geometry.tracks(Extent::new(run.start, Sectors(run.sectors.0))) {
            let place = piece.place;
            bins[place.surface as usize][Activity::bin(geometry, place.radial_track)] += u64::from(piece.sectors);
        }
    });
}

/// Returns, for each surface and bin, the used share of the caches in that bin; `None` for a bin without caches.
fn caches(drive: &EmulatedDrive) -> Vec<Vec<Option<f64>>> {
    let geometry = &drive.drive().disk.geometry;
    let mut sums = vec![vec![(0, 0); BINS]; geometry.surfaces() as usize];
    drive.drive().layer.caches(&mut |cache| {
        if cache.medium == Medium::Flash {
            return;
        }
        // A cache may cover many bins and surfaces: sample each of its tracks, or a few thousand places.
        let stride = (cache.end.0 - cache.start.0) / 4096;
        let mut next = cache.start;
        while next < cache.end {
            let place = geometry.locate(next);
            next = geometry.track_of(next).end().max(Pba(next.0 + stride));
            let sum = &mut sums[place.surface as usize][Activity::bin(geometry, place.radial_track)];
            *sum = (sum.0 + cache.used.0, sum.1 + cache.size.0);
        }
    });
    let share = |(used, size): (u64, u64)| (size > 0).then(|| used as f64 / size as f64);
    sums.into_iter().map(|bins| bins.into_iter().map(share).collect()).collect()
}
