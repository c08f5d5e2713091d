//! Fig. 14: three ways to make a toy drive clean: use up the raw space, the map, or the payload.

use super::super::{ClaimKind, Experiment, Replication, Report};
use super::observed::writes_until_cleaning;
use imbrex::error::Failure;

/// Registry entry of this experiment.
pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "aghayev/fig14",
    title: "a toy drive starts cleaning when raw space, map or payload run out",
    run,
};

/// A drive whose tracks hold four blocks of 4 KiB without skew, so a half track, by which a packet grows, is two
/// blocks. A packet has two blocks of out-of-band data and a payload of at most 16 blocks. The cache has 36 raw
/// blocks, the map 12 entries.
const TOY: &str = "seagate-st5000as0011:geometry.tracks=4000,geometry.stroke_tracks_od=400,geometry.stroke_tracks_id=400,\
                   geometry.track_sectors_od=32,geometry.track_sectors_id=32,geometry.track_skew_ns=0,\
                   geometry.head_skew_ns=0,cache_size=144KiB,map_entries=12,\
                   out_of_band=1,half_track_payload=8KiB,packet_writes=4,large_write=1MiB,map_merge_every=0,\
                   map_merge_tracks=1,collect_per_block=0,stream_size=1MiB";

/// Cases: (name, size of a write in KiB, depth, number of writes in the paper, resource that is used up).
const CASES: [(&str, u64, u32, u64, &str); 3] = [
    ("a: depth 1, writes of one block", 4, 1, 9, "raw space"),
    ("b: depth 4, writes of one block", 4, 4, 12, "the map"),
    ("c: depth 4, writes of four blocks", 16, 4, 8, "raw space"),
];

fn run(replication: &Replication) -> Result<Report, Failure> {
    let mut report = Report {
        method: format!(
            "The experiment makes random writes until a write has to wait for cleaning. The drive is a \
             toy disk, small enough to compute the results by hand: `{TOY}`."
        ),
        ..Report::default()
    };
    for (case, kib, depth, theirs, runs_out) in CASES {
        let words = format!("rw=randwrite,bs={kib}k,randommap,number_ios=100");
        let ours = writes_until_cleaning(TOY, depth, &words, replication)?;
        report.claim(
            ClaimKind::Derived,
            &format!("{case}: writes until {runs_out} runs out"),
            &theirs.to_string(),
            ours.map_or("none in 100".into(), |ours| ours.to_string()),
            Some(ours == Some(theirs)),
        );
    }
    Ok(report)
}
