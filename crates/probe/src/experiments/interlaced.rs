//! Detects interlaced drives by their writes (our own test). Every second track is a bottom track, overlapped by the
//! two top tracks beside it. A write to a bottom track destroys the data of both top tracks; a write to a top track
//! destroys nothing (Hajkazemi 2019 §2.1). The drive puts bottoms and tops at different addresses, group by group, so
//! that two kinds of stretches of addresses alternate. In one kind, a write takes a single rotational wait. In the
//! other, it takes several rotations, because the neighbours are read and rewritten too; or the drive writes to a
//! buffer elsewhere.
//!
//! The test tells the family of the translation layer: bottom tracks are rewritten in place, or buffered. It also tells
//! whether repeated writes to a block become cheap, because the drive moves hot tracks.
//!
//! Limit: interlaced drives that buffer writes to top tracks as well are not recognized; they answer like shingled
//! ones.
//!
//! Invariants:
//! 1. A drive is called interlaced only if at least [`CHANGES_MIN`] changes between the two kinds of stretches were
//!    seen, and the addresses showed the same kinds in a second measurement.

use super::experiment::Experiment;
use super::lost::read_after_writing;
use crate::bench::{Bench, MIB};
use crate::marks::{Marks, Times, by_chance, is_elsewhere, same};
use crate::statistics::{median, quantile};
use crate::target::{Operation, TargetError};
use crate::verdict::{Confidence, Value};

/// The experiment's entry in the registry.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "hot-tracks",
    question: "does an interlaced drive move what is written often?",
    source: "our own",
    writes: true,
    needs: &["rotation", "type"],
    properties: &["hot_tracks"],
    about_s: 3600,
    skip_reason: |verdict| match verdict.word("bottom_writes") {
        Some("rewritten in place") => None,
        Some(_) => Some("the drive buffers writes to bottom tracks"),
        None => Some("the drive is not known to be interlaced"),
    },
    run_after: |_| None,
    run,
};

/// Longest time of a write in place with a short seek, in rotations.
pub(super) const SEVERAL_ROTATIONS: f64 = 2.5;
/// Number of blocks written in a span, and the spans tried from the beginning of the drive, bytes: track groups may be
/// large.
const BLOCKS: usize = 160;
const SPANS: [u64; 3] = [1 << 30, 1 << 33, 1 << 36];
/// Smallest number of changes from one kind of stretch to the other.
const CHANGES_MIN: usize = 3;
/// Share of the blocks that must be of the same kind in the second measurement.
const SAME: f64 = 0.95;
/// Smallest share of the blocks for each kind.
const EACH: f64 = 0.25;
/// Largest share of writes that may take longer than a rotational wait but less than the rewriting of neighbours, or as
/// long as the rewriting of a band; and the bounds of these times, in rotations.
const BETWEEN_SHARE: f64 = 0.06;
const REWRITE_ROTATIONS: (f64, f64) = (2.2, 16.0);
/// Places that are tested to find whether all parts of the drive answer alike, as shares of the drive, and the number
/// of blocks at each.
const ELSEWHERE: [f64; 3] = [0.35, 0.65, 0.97];
const FEW: usize = 8;
/// Number of places that are written repeatedly, the most writes to them, and the writes in a round. Drives choose hot
/// tracks every thousands or ten thousands of writes.
const HOT: usize = 4;
const HOT_WRITES: usize = 60_000;
const ROUND: usize = 2_000;
/// Size of these writes, bytes. A drive moves a track once its writes have cost as many sectors as the move. With
/// writes of 4 KiB that would take hundreds of thousands of them, and each takes about as long as one of this size.
const HOT_BYTES: u64 = 64 << 10;

const BY_ADDRESS: &str = "writes by address";
const MOVED_BY_ADDRESS: &str = "blocks elsewhere once written, by address";
const HOT_SERIES: &str = "the same few places written again and again";

/// Blocks in the order of their addresses, and whether each is expensive to write, that is, lies on a bottom track.
struct Kinds {
    offsets: Vec<u64>,
    dear: Vec<bool>,
}

impl Kinds {
    fn changes(&self) -> usize {
        self.dear.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    fn share(&self) -> f64 {
        self.dear.iter().filter(|dear| **dear).count() as f64 / self.dear.len() as f64
    }

    fn alternate(&self) -> bool {
        self.changes() >= CHANGES_MIN && (EACH..=1.0 - EACH).contains(&self.share())
    }

    /// Returns whether `second`, measured at the same addresses, shows the same stretches. A single block that was late
    /// in the first measurement makes two spurious changes.
    fn is_shown_again_by(&self, second: &Kinds) -> bool {
        let same = self.dear.iter().zip(&second.dear).filter(|(one, other)| one == other).count();
        second.alternate() && same as f64 >= SAME * self.dear.len() as f64
    }

    /// Returns the median distance from one change of kind to the next, bytes.
    fn stretch_bytes(&self) -> u64 {
        let changed = |index: &usize| self.dear[*index] != self.dear[index - 1];
        let at = |index: usize| u64::midpoint(self.offsets[index - 1], self.offsets[index]);
        let changes: Vec<u64> = (1..self.dear.len()).filter(changed).map(at).collect();
        let apart: Vec<u64> = changes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        median(&apart)
    }
}

/// Returns the offsets of random blocks within a span, in ascending order.
fn chosen(bench: &mut Bench<'_>, span: u64) -> Vec<u64> {
    let mut offsets = bench.scattered(0, span, BLOCKS);
    offsets.sort_unstable();
    offsets
}

/// Returns the latency of a write to each of `offsets`, in the order of `offsets`. The writes are in random order,
/// after one whose latency is not returned because it includes a long seek.
fn write_latencies(bench: &mut Bench<'_>, offsets: &[u64]) -> Result<Vec<u64>, TargetError> {
    let mut order: Vec<usize> = (0..offsets.len()).collect();
    bench.shuffle(&mut order);
    let written: Vec<u64> = order.iter().map(|&index| offsets[index]).collect();
    bench.write_blocks(1, &written[..1])?;
    let timed = bench.write_blocks(1, &written)?;
    let mut latencies = vec![0; offsets.len()];
    for (&index, timed) in order.iter().zip(&timed) {
        latencies[index] = timed.latency_ns();
    }
    Ok(latencies)
}

/// Returns which of `offsets` are expensive because neighbours are rewritten; nothing if the times are not of two
/// kinds.
fn dear(bench: &mut Bench<'_>, offsets: &[u64]) -> Result<Option<Kinds>, TargetError> {
    let latencies = write_latencies(bench, offsets)?;
    let points = offsets.iter().zip(&latencies).map(|(&offset, &ns)| (offset as f64, ns as f64 / 1e6)).collect();
    bench.keep_points(BY_ADDRESS, "offset_bytes", "latency_ms", points);
    let rotation = bench.rotation_ns();
    let turns: Vec<f64> = latencies.iter().map(|&ns| ns as f64 / rotation).collect();
    // A seek within a wide span is added to the times of both kinds.
    let between = turns.iter().filter(|turns| (REWRITE_ROTATIONS.0..SEVERAL_ROTATIONS).contains(*turns)).count();
    let too_long = turns.iter().filter(|turns| **turns > REWRITE_ROTATIONS.1).count();
    if (between + too_long) as f64 > BETWEEN_SHARE * turns.len() as f64 {
        return Ok(None);
    }
    let dear = turns.iter().map(|&turns| turns >= SEVERAL_ROTATIONS).collect();
    Ok(Some(Kinds { offsets: offsets.to_vec(), dear }))
}

/// When a block is read again: after all were written, or right after its write, before the drive has time to move it
/// home.
#[derive(Clone, Copy)]
enum Reading {
    Together,
    OneByOne,
}

/// Returns the read times of `offsets` before and after they are written.
fn times(bench: &mut Bench<'_>, offsets: &[u64], reading: Reading) -> Result<(Times, Times), TargetError> {
    let marks = Marks::new(bench, offsets.to_vec());
    let before = marks.read(bench)?;
    let after = match reading {
        Reading::Together => {
            write_latencies(bench, offsets)?;
            read_after_writing(bench, &marks)?
        }
        Reading::OneByOne => read_each(bench, &marks)?,
    };
    Ok((before, after))
}

/// Returns which of `offsets` lie elsewhere after they were written.
fn moved(bench: &mut Bench<'_>, offsets: &[u64], reading: Reading) -> Result<Kinds, TargetError> {
    let (before, after) = times(bench, offsets, reading)?;
    let dear: Vec<bool> = before.iter().zip(&after).map(|(&one, &other)| is_elsewhere(bench, one, other)).collect();
    let points = offsets.iter().zip(&dear).map(|(&offset, &dear)| (offset as f64, f64::from(u8::from(dear)))).collect();
    bench.keep_points(MOVED_BY_ADDRESS, "offset_bytes", "share_moved", points);
    Ok(Kinds { offsets: offsets.to_vec(), dear })
}

/// Writes each block of `marks`, in random order, and reads it right after.
fn read_each(bench: &mut Bench<'_>, marks: &Marks) -> Result<Times, TargetError> {
    let mut order: Vec<usize> = (0..marks.blocks.len()).collect();
    bench.shuffle(&mut order);
    let mut times = vec![0; order.len()];
    for index in order {
        let block = vec![marks.blocks[index]];
        bench.write_blocks(1, &block)?;
        times[index] = read_after_writing(bench, &Marks { anchor: marks.anchor, blocks: block })?[0];
    }
    Ok(times)
}

/// Returns the spans, limited to half the drive.
fn spans(bench: &Bench<'_>) -> Vec<u64> {
    let size = bench.target.size_bytes() / 2;
    let mut spans: Vec<u64> = SPANS.iter().map(|&span| span.min(size)).collect();
    spans.dedup();
    spans
}

fn conclude(bench: &mut Bench<'_>, kinds: &Kinds, bottoms: &'static str, because: String, series: &'static str) {
    let stretch = kinds.stretch_bytes();
    bench.verdict.conclude("type", Value::Word("interlaced"), "", Confidence::High, because.clone(), &[series]);
    bench.verdict.conclude("bottom_writes", Value::Word(bottoms), "", Confidence::High, because, &[series]);
    let because = format!("the kind changes {} times over {} blocks", kinds.changes(), kinds.offsets.len());
    let stretch = Value::Number(stretch as f64);
    bench.verdict.conclude("stretch_bytes", stretch, "B", Confidence::Medium, because, &[series]);
}

/// Concludes that the drive is interlaced if writes take several rotations in every second stretch of addresses.
pub(super) fn conclude_rewriting(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    for span in spans(bench) {
        let offsets = chosen(bench, span);
        let Some(first) = dear(bench, &offsets)?.filter(Kinds::alternate) else { continue };
        let Some(second) = dear(bench, &offsets)?.filter(|second| first.is_shown_again_by(second)) else { continue };
        let because = format!(
            "in stretches of about {} MiB writes wait for the platter and take several of its turns alternately, as the neighbours \
             of a track are rewritten",
            second.stretch_bytes() / MIB
        );
        conclude(bench, &second, "rewritten in place", because, BY_ADDRESS);
        return Ok(());
    }
    Ok(())
}

/// Concludes that the drive is interlaced if blocks lie elsewhere after they were written in every second stretch of
/// addresses; otherwise that the type is unknown.
pub(super) fn conclude_buffered(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let manners = spans(bench).into_iter().flat_map(|span| [(span, Reading::Together), (span, Reading::OneByOne)]);
    for (span, reading) in manners.collect::<Vec<_>>() {
        let offsets = chosen(bench, span);
        let first = moved(bench, &offsets, reading)?;
        if !first.alternate() {
            continue;
        }
        let second = moved(bench, &offsets, reading)?;
        // On a drive that logs all writes, a few blocks of the second measurement would lie at their old angle by
        // chance.
        if first.is_shown_again_by(&second) {
            let because = format!(
                "in stretches of about {} MiB blocks are written in their place and elsewhere by turns",
                second.stretch_bytes() / MIB
            );
            conclude(bench, &second, "buffered", because, MOVED_BY_ADDRESS);
            return Ok(());
        }
    }
    let because = "some blocks lie elsewhere once they were written, and others where they lay".to_string();
    bench.verdict.conclude("type", Value::CannotTell, "", Confidence::Low, because, &[MOVED_BY_ADDRESS]);
    Ok(())
}

/// Checks blocks in other parts of the drive. If most of them stay in place when written, the drive is not shingled,
/// because a shingled drive logs all writes; the verdict is withdrawn.
pub(super) fn take_back_if_some_stay(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    for share in ELSEWHERE {
        let area = bench.at_share(share).min(bench.last_offset(8 * MIB));
        let offsets = bench.scattered(area, 8 * MIB, FEW);
        let (before, after) = times(bench, &offsets, Reading::Together)?;
        let stayed = same(bench, &before, &after).iter().filter(|stayed| **stayed).count();
        if stayed as f64 > FEW as f64 * (0.5 + by_chance(bench)) {
            for name in ["cache_medium", "write_latency"] {
                bench.verdict.properties.retain(|property| property.name != name);
            }
            return conclude_buffered(bench);
        }
    }
    Ok(())
}

/// Writes a few places on bottom tracks until the writes are as cheap as those to top tracks, or until a drive that
/// moves hot tracks would have moved them.
fn run(bench: &mut Bench<'_>) -> Result<(), TargetError> {
    let mut hot = Vec::new();
    for span in spans(bench) {
        let offsets = chosen(bench, span);
        let Some(kinds) = dear(bench, &offsets)? else { continue };
        let last = bench.last_offset(HOT_BYTES);
        let on_bottoms = kinds.offsets.iter().zip(&kinds.dear).filter(|(_, dear)| **dear);
        hot = on_bottoms.map(|(&offset, _)| offset).filter(|&offset| offset <= last).collect();
        if hot.len() >= HOT {
            break;
        }
    }
    if hot.len() < HOT {
        return Ok(());
    }
    bench.shuffle(&mut hot);
    hot.truncate(HOT);
    let (mut points, mut written) = (Vec::new(), 0);
    while written < HOT_WRITES {
        let offsets = hot.iter().copied().cycle().take(ROUND);
        let writes: Vec<_> = offsets.map(|offset| Operation::write(offset, HOT_BYTES)).collect();
        let timed = bench.one_by_one(&writes)?;
        written += ROUND;
        let latencies: Vec<u64> = timed.iter().map(|timed| timed.latency_ns()).collect();
        let usual = quantile(&latencies, 0.5);
        points.push((written as f64, usual as f64 / 1e6));
        if (usual as f64) < SEVERAL_ROTATIONS * bench.rotation_ns() {
            break;
        }
    }
    let usual_ms = points.last().map_or(0.0, |point| point.1);
    bench.keep_points(HOT_SERIES, "writes", "latency_ms", points);
    let (word, sure) = if usual_ms * 1e6 < SEVERAL_ROTATIONS * bench.rotation_ns() {
        ("moved", Confidence::High)
    } else {
        ("left where they are", Confidence::Medium)
    };
    let because = format!(
        "after {written} writes of {} KiB to {HOT} places on bottoms a write takes {usual_ms:.1} ms",
        HOT_BYTES >> 10
    );
    bench.verdict.conclude("hot_tracks", Value::Word(word), "", sure, because, &[HOT_SERIES]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(dear: &[u8]) -> Kinds {
        let offsets = (0..dear.len() as u64).map(|index| index * MIB).collect();
        Kinds { offsets, dear: dear.iter().map(|&dear| dear == 1).collect() }
    }

    #[test]
    fn stretches_alternate_or_they_do_not() {
        let groups = kinds(&[1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
        assert!(groups.alternate());
        assert_eq!(groups.stretch_bytes(), 3 * MIB);
        for other in [&[1, 1, 1, 1, 0, 0, 0, 0][..], &[1, 1, 1, 1, 1, 1, 1, 1], &[0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]] {
            assert!(!kinds(other).alternate(), "{other:?}");
        }
        assert!(!groups.is_shown_again_by(&kinds(&[1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0])));
    }

    #[test]
    fn a_block_that_was_late_once_makes_no_stretches() {
        let halves: Vec<u8> = (0..160).map(|index| u8::from(index < 80)).collect();
        let mut with_a_late_one = halves.clone();
        with_a_late_one[120] = 1;
        let (first, second) = (kinds(&with_a_late_one), kinds(&halves));
        assert!(first.alternate() && !first.is_shown_again_by(&second));
        assert!(first.is_shown_again_by(&first));
    }
}
