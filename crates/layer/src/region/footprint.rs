//! What a whole write of a region destroys, looked up once for all regions that lie alike: those of one size that begin at the same
//! sector of a track, in strokes of one recording zone.
//!
//! Invariants:
//! 1. What is answered is what the recording answers.

use imbrex_disk::{Disk, Extent, Pba, Sectors};

/// Tracks beside a written one that it could destroy: heads are narrower than this.
pub const HEAD_TRACKS_MAX: u32 = 32;

/// How many tracks from the one that begins at `track` on destroy, written whole, what it destroys, so much further on: those of its
/// stroke, but for the last, whose writes reach out of it.
pub fn alike_tracks(disk: &Disk, track: Pba) -> u64 {
    let stroke = disk.geometry.stroke_from(track);
    let alike = stroke.filter(|_| disk.recording.is_alike_in_stroke(&disk.geometry, track));
    alike.map_or(1, |(left, _)| left.saturating_sub(u64::from(HEAD_TRACKS_MAX)).max(1))
}

/// Whole tracks of one length, from the first that a region began in on.
#[derive(Clone, Copy)]
struct Stroke {
    extent: Extent,
    track_sectors: u64,
    is_alike: bool,
}

/// Answers for regions that mostly follow each other.
pub struct Footprints<'a> {
    disk: &'a Disk,
    stroke: Stroke,
    /// Where the zone begins whose answers are kept, and the sectors of the regions they are for.
    kept_for: (Pba, Sectors),
    /// By sector of the track that the region begins at, what it destroys, counted from where it begins.
    kept: Vec<Option<Box<[Extent]>>>,
    destroyed: Vec<Extent>,
}

impl<'a> Footprints<'a> {
    /// Nothing is known yet.
    pub fn new(disk: &'a Disk) -> Footprints<'a> {
        let stroke = Stroke { extent: Extent::new(Pba(0), Sectors::ZERO), track_sectors: 1, is_alike: false };
        Footprints { disk, stroke, kept_for: (Pba(0), Sectors::ZERO), kept: Vec::new(), destroyed: Vec::new() }
    }

    /// What a write of `region` destroys.
    pub fn of(&mut self, region: Extent) -> &[Extent] {
        self.destroyed.clear();
        let Some(sector) = self.sector_among_alike(region) else {
            self.disk.recording.destroys(&self.disk.geometry, region, &mut self.destroyed);
            return &self.destroyed;
        };
        if let Some(kept) = &self.kept[sector] {
            let moved = |lost: &Extent| Extent::new(region.start + Sectors(lost.start.0), lost.sectors);
            self.destroyed.extend(kept.iter().map(moved));
            return &self.destroyed;
        }
        self.disk.recording.destroys(&self.disk.geometry, region, &mut self.destroyed);
        let is_in_stroke = |lost: &Extent| lost.start >= region.start && lost.end() <= self.stroke.extent.end();
        if self.destroyed.iter().all(is_in_stroke) {
            let moved = |lost: &Extent| Extent::new(Pba(lost.start.0 - region.start.0), lost.sectors);
            self.kept[sector] = Some(self.destroyed.iter().map(moved).collect());
        }
        &self.destroyed
    }

    /// The sector of its track that `region` begins at, if all that it can destroy lies in a stroke of tracks that are alike.
    fn sector_among_alike(&mut self, region: Extent) -> Option<usize> {
        if !self.stroke.extent.contains(region.start) {
            self.enter_stroke(region.start);
        }
        let Stroke { extent, track_sectors, is_alike } = self.stroke;
        let reach = Sectors(u64::from(HEAD_TRACKS_MAX) * track_sectors);
        if !is_alike || region.end() + reach > extent.end() {
            return None;
        }
        if self.kept_for.1 != region.sectors {
            self.kept_for.1 = region.sectors;
            self.kept.clear();
        }
        self.kept.resize(track_sectors as usize, None);
        Some(((region.start - extent.start).0 % track_sectors) as usize)
    }

    fn enter_stroke(&mut self, start: Pba) {
        let (geometry, recording) = (&self.disk.geometry, &self.disk.recording);
        let place = geometry.locate(start);
        let own = place.track();
        let stroke = geometry.stroke_from(own.start).filter(|_| recording.is_alike_in_stroke(geometry, own.start));
        let (tracks, sectors) = stroke.unwrap_or((1, own.sectors));
        let extent = Extent::new(own.start, Sectors(tracks * sectors.0));
        self.stroke = Stroke { extent, track_sectors: sectors.0, is_alike: stroke.is_some() };
        let zone = geometry.zone_of(place.radial_track).extent.start;
        if zone != self.kept_for.0 {
            self.kept_for.0 = zone;
            self.kept.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: invariant 1, and that few answers are asked for. Method: regions of many sizes from every sector on, on disks in strokes
    //! whose tracks are skewed, against the recording.

    use super::*;
    use imbrex_disk::Profile;

    fn disk(recording: &str) -> imbrex_disk::SharedDisk {
        let text = format!(
            "name = \"drawn\"\nsummary = \"drawn\"\ndefault_layer = \"conventional\"\n[geometry]\nlayout = \"horizontal\"\n\
             surfaces = 3\nrotation_ns = 10000000\ntracks = 400\nstroke_tracks_od = 90\nstroke_tracks_id = 50\n\
             track_sectors_od = 16\ntrack_sectors_id = 7\ntrack_skew_ns = 1700000\nhead_skew_ns = 300000\n\
             [geometry.horizontal]\nsplit = 0.5\n[mechanics]\n[mechanics.seek]\nmodel = \"linear\"\nmin_ns = 1\nmax_ns = 2\n\
             [recording]\n{recording}\n"
        );
        Profile::parse("drawn.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}")).disk()
    }

    #[test]
    fn what_is_kept_is_what_the_recording_says() {
        for recording in [
            "kind = \"shingled\"\nhead_tracks = 2",
            "kind = \"shingled\"\nhead_tracks = 3\nwidening_ns = 900000",
            "kind = \"shingled\"\nhead_tracks = 3\nhead_steps = [{ from_share = 0.45, head_tracks = 1 }, { from_share = 0.8, head_tracks = 2 }]",
            "kind = \"block-interference\"\ninterference_sectors = 20",
        ] {
            let disk = disk(recording);
            let (mut footprints, mut kept) = (Footprints::new(&disk), 0);
            for sectors in [1, 5, 16, 39, 100] {
                for start in 0..disk.geometry.sectors().0 - sectors {
                    let region = Extent::new(Pba(start), Sectors(sectors));
                    let mut destroyed = Vec::new();
                    disk.recording.destroys(&disk.geometry, region, &mut destroyed);
                    assert_eq!(footprints.of(region), destroyed, "{recording}: {region:?}");
                    kept += footprints.kept.iter().flatten().count();
                }
            }
            assert!(kept > 0, "{recording}");
        }
    }
}
