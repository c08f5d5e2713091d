//! What the live page draws of a drive: its surfaces with the latest writes and reads, caches, bands and damage; and its
//! bands one by one, or a few together where there are more of them than a page can show.

use imbrex_device::activity::{Activity, BINS};
use imbrex_device::bands::{BandState, Bands, CountsBySurface};
use imbrex_device::EmulatedDrive;
use imbrex_disk::{Extent, Pba, Sectors};
use imbrex_layer::{Cause, Medium};
use serde_json::{json, Value};

/// Cells of bands that the page has room for.
const CELLS_MAX: usize = 1440;

/// Both: the bands, and the surfaces.
pub fn draw(drive: &mut EmulatedDrive) -> (Value, Value) {
    let surfaces_count = drive.drive().disk.geometry.surfaces();
    let Some(found) = drive.bands().filter(|bands| !bands.all().is_empty()) else {
        return (Value::Null, surfaces(drive, None));
    };
    let (all, by_surface) = (bands(found), found.by_surface(surfaces_count));
    (all, surfaces(drive, Some(by_surface)))
}

/// The bands in the order of their places. A cell is as many neighbours as `cell_bands`: how
/// many of them are in each state, and of a cell of one band the share that its state is about.
fn bands(bands: &Bands) -> Value {
    let cell_bands = bands.all().len().div_ceil(CELLS_MAX);
    let mut counts = [0u32; BandState::ALL.len()];
    let cells: Vec<Value> = bands
        .all()
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
        "name": if bands.is_zoned() { "zone" } else { "band" },
        "states": BandState::ALL.map(BandState::name),
        "counts": counts,
        "cell_bands": cell_bands,
        "cells": cells,
    })
}

/// For each surface: causes of the latest writes, ages of the latest write and read, damage, bands by state; a list of bins
/// each.
fn surfaces(drive: &mut EmulatedDrive, bands: Option<CountsBySurface>) -> Value {
    let now = drive.now();
    let damaged = damage(drive);
    let caches = caches(drive);
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

/// Damaged sectors by surface and bin.
fn damage(drive: &mut EmulatedDrive) -> Vec<Vec<u64>> {
    let disk = drive.drive().disk.clone();
    let geometry = &disk.geometry;
    let mut bins = vec![vec![0; BINS]; geometry.surfaces() as usize];
    let all = Extent::new(Pba(0), geometry.sectors());
    if disk.recording.leaves_damage_to_host() || disk.recording.is_harmless() {
        return bins;
    }
    // A page of the bitmap that cannot be read is drawn as whole: reads of its sectors will say what is wrong.
    let _ = drive.store_mut().for_each_damage(all, |run| {
        for piece in geometry.tracks(Extent::new(run.start, Sectors(run.sectors.0))) {
            let place = piece.place;
            bins[place.surface as usize][Activity::bin(geometry, place.radial_track)] += u64::from(piece.sectors);
        }
    });
    bins
}

/// For each surface and bin the share in use of the caches that begin there; nothing where none does.
fn caches(drive: &EmulatedDrive) -> Vec<Vec<Option<f64>>> {
    let geometry = &drive.drive().disk.geometry;
    let mut sums = vec![vec![(0, 0); BINS]; geometry.surfaces() as usize];
    drive.drive().layer.caches(&mut |cache| {
        if cache.medium == Medium::Flash {
            return;
        }
        // A cache may cover many bins and surfaces: each of its tracks is looked at, or a few thousand places.
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
