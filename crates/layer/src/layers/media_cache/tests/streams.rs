//! Goal: bands that a stream covers are written in their own places, after the spare if live data lies there. Method:
//! golden plans on the toy of the other golden tests.

use imbrex_disk::Command;

use super::*;

const STREAMS: &str = "cache_size=8k,map_entries=12,out_of_band=1,half_track_payload=1k,map_merge_tracks=1,band_tracks=2,\
                       stream_size=1k";

#[test]
fn a_bare_band_takes_one_write_and_a_full_one_the_spare_first() {
    let mut layer = toy(CONVENTIONAL, STREAMS);
    let once = "\
group Host
  note #6 0 0 0 0
  barrier
  write host pba 24+8 lba 0
  barrier
  note #7 0 0 0 0
";
    assert_eq!(format!("{:?}", planned(&mut layer, &[Command::write(0, 8)])), once);
    let spared = "\
group Host
  barrier
  write backup pba 0+8 lba 0
  barrier
  note #3 0 0 0 0
  barrier
  write host pba 24+8 lba 0
  barrier
  note #4 0 0 0 0
";
    assert_eq!(format!("{:?}", planned(&mut layer, &[Command::write(0, 8)])), spared);
    let mut paper = toy(CONVENTIONAL, &format!("{STREAMS},safety=paper"));
    planned(&mut paper, &[Command::write(0, 8)]);
    let plan = format!("{:?}", planned(&mut paper, &[Command::write(0, 8)]));
    assert!(!plan.contains("backup"), "{plan}");
}

#[test]
fn a_trimmed_band_is_bare_again() {
    let mut layer = toy(CONVENTIONAL, STREAMS);
    planned(&mut layer, &[Command::write(0, 8)]);
    planned(&mut layer, &[Command::trim(0, 8)]);
    let plan = format!("{:?}", planned(&mut layer, &[Command::write(0, 8)]));
    assert!(!plan.contains("backup") && plan.contains("write host pba 24+8 lba 0"), "{plan}");
}

#[test]
fn commands_of_a_stream_join_and_what_is_left_beside_whole_bands_is_cached() {
    let mut layer = toy(CONVENTIONAL, STREAMS);
    let stream = [Command::write(6, 5), Command::write(11, 5), Command::write(3, 3), Command::write(16, 1)];
    assert_eq!(batch(&layer, &stream).len(), 4);
    let plan = planned(&mut layer, &stream);
    let host: Vec<_> = plan.steps.iter().filter(|step| step.cause == crate::Cause::Host).collect();
    let written: Vec<_> = host.iter().map(|step| (step.pba.0, step.lba.0, step.sectors)).collect();
    // LBAs 8 to 15 are band 1, at PBA 32; the five sectors before and the one after go into a packet.
    assert_eq!(written, [(32, 8, 8), (10, 3, 5), (15, 16, 1)]);
}

#[test]
fn small_commands_are_no_stream() {
    let layer = toy(CONVENTIONAL, &format!("{STREAMS},packet_writes=2"));
    let sequential: Vec<_> = (0..4).map(|number| Command::write(number, 1)).collect();
    assert_eq!(batch(&layer, &sequential).len(), 2);
}
