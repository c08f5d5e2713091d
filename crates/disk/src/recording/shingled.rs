//! `shingled`: the head writes several tracks wide, and tracks overlap like shingles. A write on track t destroys
//! sectors of the k − 1 tracks after it in the shingling direction: those at its own angles widened by φ.
//!
//! A profile describes the head in one of two forms. With `head_tracks` k, the geometry gives the shingling direction
//! of each part of a surface (Aghayev 2015 §2). With `interference`, the physical profile [s_id, s_od, φ_cw, φ_ccw]
//! (Cassuto 2010 §II.A, definition 1) itself gives the direction. Head widths count the written track, as the paper
//! does.
//!
//! φ_cw reaches towards the sectors that pass the head after the written ones, φ_ccw towards those before: the paper
//! leaves the sense of rotation open.
//!
//! Invariants:
//! 1. At most one of s_id and s_od is above 1: otherwise no order of writing could use all tracks.
//! 2. Beyond the last track of a surface nothing is destroyed.
//! 3. A write in the conventional part of a `horizontal` layout destroys nothing.
//! 4. The shingling direction is that in which tracks follow each other in PBA order.
//! 5. No head is wider than [`HEAD_TRACKS_MAX`]: layers look no further around a track.

use serde::Deserialize;

use super::angles::Margin;
use super::extents::normalize;
use super::kind::{self, BuildError, Keys, Kind, Recording, Refusal};
use super::tracks::push_facing;
use crate::geometry::{Geometry, RadialDirection, RecordingZone, TrackPiece};
use crate::units::{Extent, Pba, Sectors};

/// Registry entry of the recording kind `shingled`.
pub const KIND: Kind = Kind {
    name: "shingled",
    summary: "a write destroys the k − 1 tracks after it, at its angles widened by φ (Aghayev 2015 §2)",
    build,
};

/// Maximum width of a write head in tracks, the written track included. So a write destroys sectors of at most 31
/// tracks beside its own.
pub const HEAD_TRACKS_MAX: u32 = 32;

/// Number of parts of a surface, so that radial positions are compared as whole numbers.
const MILLION: u64 = 1_000_000;

/// A width of the head that holds from a radial position inwards.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadStep {
    /// Radial position at which the step begins, as a fraction of the tracks of a surface, from the outer diameter.
    from_share: f64,
    /// Width of the head in tracks, the written one included.
    head_tracks: u32,
}

/// Cassuto's physical interference profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Interference {
    s_id: u32,
    s_od: u32,
    #[serde(default)]
    phi_cw_ns: u64,
    #[serde(default)]
    phi_ccw_ns: u64,
}

/// The section `[recording]` of this kind.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    head_tracks: Option<u32>,
    #[serde(default)]
    head_steps: Vec<HeadStep>,
    #[serde(default)]
    widening_ns: u64,
    #[serde(default)]
    widening_sectors: u64,
    interference: Option<Interference>,
    /// Tracks of a band without its guard.
    band_tracks: Option<u32>,
}

/// Shingled recording: a write destroys sectors of the k − 1 tracks after its own in the shingling direction, at its
/// own angles widened by a margin. k is the width of the head in tracks, the written track included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shingled {
    /// Pairs of a radial position, in millionths of the tracks of a surface, and the head's width from there inwards,
    /// in tracks. They are ordered, and the first position is 0.
    heads: Vec<(u64, u32)>,
    /// The shingling direction stated by the profile; with `None` the geometry gives it.
    direction: Option<RadialDirection>,
    margin: Margin,
    band_tracks: Option<u32>,
}

fn build(keys: Keys<'_>) -> Result<Box<dyn Recording>, BuildError> {
    let section: Section = kind::read(keys)?;
    let recording = match (section.head_tracks, section.interference) {
        (Some(head_tracks), None) => from_head(head_tracks, &section)?,
        (None, Some(interference)) => from_interference(interference, &section)?,
        (Some(_), Some(_)) => {
            let reason = "give either head_tracks or interference, not both: they say the same";
            return Err(Refusal::new("interference", reason).into());
        }
        (None, None) => {
            let reason = "shingled recording needs head_tracks = K or interference = { s_id = …, s_od = … }";
            return Err(Refusal::new("head_tracks", reason).into());
        }
    };
    Ok(Box::new(recording))
}

fn from_head(head_tracks: u32, section: &Section) -> Result<Shingled, Refusal> {
    if head_tracks == 0 {
        let reason = "a head is at least one track wide; give 1 for no overlap";
        return Err(Refusal::new("head_tracks", reason));
    }
    check_width(head_tracks, "head_tracks", "head_tracks")?;
    let mut heads = vec![(0, head_tracks)];
    for step in &section.head_steps {
        let from = (step.from_share * MILLION as f64).round() as u64;
        let last = heads.last().expect("begins with one").0;
        if !(0.0..1.0).contains(&step.from_share) || from <= last || step.head_tracks == 0 {
            let reason = format!(
                "step from {} with {} tracks: shares must rise between 0 and 1, and a head is at least one track wide",
                step.from_share, step.head_tracks
            );
            return Err(Refusal::new("head_steps", reason));
        }
        check_width(step.head_tracks, "head_steps", &format!("step from {}: head_tracks", step.from_share))?;
        heads.push((from, step.head_tracks));
    }
    let (phi, sectors) = (section.widening_ns, section.widening_sectors);
    let margin = Margin { earlier_ns: phi, later_ns: phi, sectors };
    Ok(Shingled { heads, direction: None, margin, band_tracks: section.band_tracks })
}

/// Checks invariant 5; `name` is the profile's name for the width.
fn check_width(tracks: u32, key: &'static str, name: &str) -> Result<(), Refusal> {
    if tracks <= HEAD_TRACKS_MAX {
        return Ok(());
    }
    Err(Refusal::new(key, format!("{name} = {tracks}: expected 1 to {HEAD_TRACKS_MAX} tracks")))
}

fn from_interference(profile: Interference, section: &Section) -> Result<Shingled, Refusal> {
    if section.widening_ns + section.widening_sectors > 0 || !section.head_steps.is_empty() {
        let reason = "with interference the widening is phi_cw_ns and phi_ccw_ns, and there are no head_steps";
        return Err(Refusal::new("interference", reason));
    }
    if profile.s_id == 0 || profile.s_od == 0 {
        let reason = "s_id and s_od count the written track too, so they are at least 1";
        return Err(Refusal::new("interference", reason));
    }
    if profile.s_id > 1 && profile.s_od > 1 {
        let reason =
            "s_id and s_od are both above 1, and no order of writing uses all tracks then; set one of them to 1";
        return Err(Refusal::new("interference", reason));
    }
    check_width(profile.s_id, "interference", "s_id")?;
    check_width(profile.s_od, "interference", "s_od")?;
    let direction = if profile.s_od > 1 { RadialDirection::Outward } else { RadialDirection::Inward };
    let margin = Margin { earlier_ns: profile.phi_ccw_ns, later_ns: profile.phi_cw_ns, sectors: 0 };
    let heads = vec![(0, profile.s_id.max(profile.s_od))];
    Ok(Shingled { heads, direction: Some(direction), margin, band_tracks: section.band_tracks })
}

impl Shingled {
    /// Returns the head's width at a radial position, in tracks.
    fn head_tracks(&self, geometry: &Geometry, radial_track: u32) -> u32 {
        let share = u64::from(radial_track) * MILLION / u64::from(geometry.radial_tracks());
        let step = self.heads.partition_point(|&(from, _)| from <= share);
        self.heads[step - 1].1
    }

    fn widest(&self) -> u32 {
        self.heads.iter().map(|&(_, tracks)| tracks).max().expect("begins with one")
    }

    fn check_band(&self, geometry: &Geometry) -> Result<(), Refusal> {
        let Some(band_tracks) = self.band_tracks else { return Ok(()) };
        if band_tracks == 0 {
            return Err(Refusal::new("band_tracks", "a band has at least one track; leave it out for no bands"));
        }
        let with_guard = u64::from(band_tracks) + u64::from(self.widest() - 1);
        match geometry.zones().iter().find(|zone| u64::from(zone.tracks) < with_guard) {
            Some(zone) => Err(Refusal::new(
                "band_tracks",
                format!(
                    "a band of {band_tracks} tracks and its guard of {} is larger than the zone of {} tracks at track \
                     {}; give a smaller band or wider zones",
                    self.widest() - 1,
                    zone.tracks,
                    zone.radial_start
                ),
            )),
            None => Ok(()),
        }
    }

    /// Returns the last part of a write, which alone destroys sectors outside of the write. Tracks of one stroke follow
    /// each other in the shingling direction, so the part is the last k − 1 tracks, and a partly written track behind
    /// them. The sectors that earlier tracks destroy are written after them. Returns the whole write if it is not
    /// within one stroke or no longer than this part.
    fn reaching_out(&self, geometry: &Geometry, written: Extent) -> Extent {
        let Some((whole, left, track)) = whole_tracks_from(geometry, written.start) else { return written };
        if whole >= written.end() {
            return written;
        }
        let sectors = (written.end() - whole).0;
        let is_cut = !sectors.is_multiple_of(track.0);
        let (tracks, reaching) = (sectors.div_ceil(track.0), u64::from(self.widest() - 1) + u64::from(is_cut));
        if tracks <= left && reaching < tracks {
            return Extent::between(whole + Sectors((tracks - reaching) * track.0), written.end());
        }
        written
    }

    /// Appends the sectors that `piece`, the part of a write on one track, destroys.
    fn push_destroyed(&self, geometry: &Geometry, piece: &TrackPiece, written: Extent, destroyed: &mut Vec<Extent>) {
        let own = piece.place.radial_track;
        if geometry.is_conventional(own) {
            return;
        }
        let direction = self.direction.unwrap_or_else(|| geometry.shingling_direction(own));
        for step in 1..self.head_tracks(geometry, own) {
            let beside = match direction {
                RadialDirection::Inward => Some(own + step).filter(|&track| track < geometry.radial_tracks()),
                RadialDirection::Outward => own.checked_sub(step),
            };
            let Some(beside) = beside else { return };
            push_facing(geometry, piece, beside, self.margin, written, destroyed);
        }
    }
}

/// Returns the start of the first whole track at or after `start` in the stroke of `start`, the number of tracks left
/// in the stroke from there on, and the sectors of each. Returns `None` if there is no stroke, or no such track in it.
fn whole_tracks_from(geometry: &Geometry, start: Pba) -> Option<(Pba, u64, Sectors)> {
    let own = geometry.track_of(start);
    let (left, track) = geometry.stroke_from(own.start)?;
    if own.start == start {
        return Some((start, left, track));
    }
    (left > 1).then(|| (own.end(), left - 1, track))
}

impl Recording for Shingled {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn destroys(&self, geometry: &Geometry, written: Extent, destroyed: &mut Vec<Extent>) {
        let first = destroyed.len();
        for piece in geometry.tracks(self.reaching_out(geometry, written)) {
            self.push_destroyed(geometry, &piece, written, destroyed);
        }
        normalize(destroyed, first);
    }

    fn check(&self, geometry: &Geometry) -> Result<(), Refusal> {
        if geometry.is_interlaced() {
            let reason = "tracks in bottom-then-top order cannot be shingled; give [geometry] layout = \"cylinder\" or \
                          \"horizontal\"";
            return Err(Refusal::new("kind", reason));
        }
        let against = |zone: &&RecordingZone| !zone.conventional && self.direction.is_some_and(|d| d != zone.shingling);
        if let Some(zone) = geometry.zones().iter().find(against) {
            let reason = format!(
                "the tracks from {} on follow each other {} in PBA order, against the interference: every track would \
                 destroy the one before; swap s_id and s_od, or turn the strokes by [geometry.horizontal] split",
                zone.radial_start,
                if zone.shingling == RadialDirection::Inward { "inward" } else { "outward" }
            );
            return Err(Refusal::new("interference", reason));
        }
        if self.widest() > geometry.radial_tracks() {
            let reason = format!(
                "a head of {} tracks is wider than the surface of {}; give a narrower head or more tracks",
                self.widest(),
                geometry.radial_tracks()
            );
            return Err(Refusal::new("head_tracks", reason));
        }
        self.check_band(geometry)
    }

    fn boxed(&self) -> Box<dyn Recording> {
        Box::new(self.clone())
    }

    /// Returns whether `track` lies in a stroke and the head has one width in the whole zone. Then every whole track in
    /// the stroke destroys the same number of whole tracks after it. It suffices to compare the head steps at both ends
    /// of the zone.
    fn is_alike_in_stroke(&self, geometry: &Geometry, track: Pba) -> bool {
        let zone = geometry.zone_of(geometry.locate(track).radial_track);
        let share = |radial_track: u32| u64::from(radial_track) * MILLION / u64::from(geometry.radial_tracks());
        let step = |radial_track: u32| self.heads.partition_point(|&(from, _)| from <= share(radial_track));
        geometry.stroke_from(geometry.track_of(track).start).is_some()
            && step(zone.radial_start) == step(zone.radial_start + zone.tracks - 1)
    }

    fn is_harmless(&self) -> bool {
        self.widest() == 1
    }

    fn band_tracks(&self) -> Option<u32> {
        self.band_tracks
    }

    fn stored_share(&self, band_tracks: u32) -> f64 {
        f64::from(band_tracks) / f64::from(band_tracks + self.widest() - 1)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: only the end of a long write is examined, because only that part destroys sectors outside of it (invariant
    //! 3 of the folder: the cost depends on the tracks that matter). The twin's tests show that the part left out
    //! destroys nothing. And strokes count as alike only where they are. Method: toys whose tracks can be counted by
    //! hand.

    use super::*;
    use crate::geometry::{GeometryConfig, HorizontalConfig, LayoutName};

    /// Returns two surfaces of thirty tracks of ten sectors, each in one stroke inwards: sector s of track t of surface
    /// f is PBA 300 f + 10 t + s.
    fn strokes() -> Geometry {
        let inward = HorizontalConfig { split: 1.0, ..HorizontalConfig::default() };
        let config = GeometryConfig::listed(2, LayoutName::Horizontal, 1000, &[(30, 10)]);
        Geometry::new(&GeometryConfig { horizontal: Some(inward), ..config }).expect("a valid toy")
    }

    fn between(start: u64, end: u64) -> Extent {
        Extent::between(Pba(start), Pba(end))
    }

    #[test]
    fn whole_tracks_are_counted_to_the_end_of_their_stroke() {
        let geometry = strokes();
        let from = |start| whole_tracks_from(&geometry, Pba(start)).map(|(pba, left, track)| (pba.0, left, track.0));
        assert_eq!(from(0), Some((0, 30, 10)));
        assert_eq!(from(5), Some((10, 29, 10)), "the next track is the first whole one");
        assert_eq!(from(280), Some((280, 2, 10)));
        assert_eq!(from(285), Some((290, 1, 10)));
        assert_eq!(from(290), Some((290, 1, 10)));
        assert_eq!(from(295), None, "the stroke ends with this track");
        assert_eq!(from(300), Some((300, 30, 10)), "the next surface");
    }

    #[test]
    fn a_stroke_is_alike_unless_the_head_grows_within_its_zone() {
        // Thirty tracks in zones of fifteen: a share of x begins at the first track whose number is no less than 30 x.
        let inward = HorizontalConfig { split: 1.0, ..HorizontalConfig::default() };
        let config = GeometryConfig::listed(1, LayoutName::Horizontal, 1000, &[(15, 10), (15, 8)]);
        let geometry = Geometry::new(&GeometryConfig { horizontal: Some(inward), ..config }).expect("a valid toy");
        for (shares, alike, what) in [
            (&[0.2][..], [false, true], "within the first zone, from track 6 on"),
            (&[0.46], [false, true], "the last track of the first zone alone"),
            (&[0.49], [true, true], "from the second zone on, by rounding up"),
            (&[0.5], [true, true], "from the second zone on"),
            (&[0.7], [true, false], "within the second zone, from track 21 on"),
            (&[0.96], [true, false], "the last track of the second zone alone"),
            (&[0.98], [true, true], "behind the last track"),
            (&[0.2, 0.7], [false, false], "within each zone"),
            (&[0.5, 0.7], [true, false], "between the zones, and within the second"),
        ] {
            let stepped = Section {
                head_tracks: Some(2),
                head_steps: shares.iter().map(|&from_share| HeadStep { from_share, head_tracks: 3 }).collect(),
                widening_ns: 0,
                widening_sectors: 0,
                interference: None,
                band_tracks: None,
            };
            let stepped = from_head(2, &stepped).expect("a valid head");
            let seen = [0, 150].map(|first| stepped.is_alike_in_stroke(&geometry, Pba(first)));
            assert_eq!(seen, alike, "{shares:?}: {what}");
        }
    }

    #[test]
    fn only_the_last_tracks_of_a_stroke_reach_out() {
        let geometry = strokes();
        let three = from_head(
            3,
            &Section {
                head_tracks: Some(3),
                head_steps: Vec::new(),
                widening_ns: 0,
                widening_sectors: 0,
                interference: None,
                band_tracks: None,
            },
        )
        .expect("a valid head");
        let cases = [
            (between(0, 200), between(180, 200), "k − 1 tracks"),
            (between(0, 195), between(170, 195), "and the one behind them, of which the last covers a part"),
            (between(5, 200), between(180, 200), "from within a track"),
            (between(100, 300), between(280, 300), "to the very end of the stroke"),
            (between(105, 300), between(280, 300), "from within a track to the very end of the stroke"),
            (between(0, 30), between(10, 30), "one track more than reach out"),
            (between(0, 20), between(0, 20), "no more tracks than reach out"),
            (between(5, 30), between(5, 30), "the part before the first whole track"),
            (between(5, 8), between(5, 8), "less than a track"),
            (between(5, 10), between(5, 10), "to the end of a track"),
            (between(200, 310), between(200, 310), "over the end of a stroke"),
            (between(295, 500), between(295, 500), "from within the last track of a stroke"),
        ];
        for (written, reaching, what) in cases {
            assert_eq!(three.reaching_out(&geometry, written), reaching, "{written:?}: {what}");
        }
    }
}
