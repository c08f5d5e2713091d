//! Goal: a drive described for DiskSim takes the times that its description says. Method: two small drives in DiskSim's
//! syntax, with negative settling delays and with read buffers, requests one at a time, and sums worked out by hand.
//!
//! Both drives rotate in 10 ms and have 100 sectors a track, so sector s of a track begins to pass at s / 10 ms of a
//! rotation. A cylinder has two tracks, LBA 0 to 99 and 100 to 199, and every seek takes 2 ms. Times are in
//! milliseconds, from the start of the simulation.

use imbrex_calibrate::disksim::import;
use imbrex_calibrate::measured::{Measured, MeasuredRequest};
use imbrex_calibrate::replay::replay;
use imbrex_disk::{Command, SimDuration, SimTime};
use imbrex_sim::Drive;

/// A drive that reads on to the end of the track, with segments that are shorter than a track.
const NIMBLE: &str = "
disksim_bus BUS1 { type = 1, Arbitration type = 1, Arbitration time = 0.01, Read block transfer time = 0.02,
   Write block transfer time = 0.05, Print stats = 0 }
disksim_ctlr CTLR0 { type = 1, Scale for delays = 0.0, Bulk sector transfer time = 0.0, Maximum queue length = 0,
   Print stats = 0 }
disksim_disk NIMBLE {
   Model = dm_disk NIMBLE_model {
      Block count = 2000, Number of data surfaces = 2, Number of cylinders = 10,
      Mechanical Model = dm_mech_g1 {
         Access time type = trackSwitchPlusRotation, Seek type = constant, Constant seek time = 2.0,
         Add. write settling delay = -0.75, Head switch time = 0.9, Rotation speed (in rpms) = 6000,
         Percent error in rpms = 0.0 },
      Layout Model = dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Rangesize for sparing = 1,
         Zones = [ dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 9, Blocks per track = 100,
            Offset of first block = 0.0, Empty space at zone front = 0, Skew for track switch = 0.0,
            Skew for cylinder switch = 0.0, Number of spares = 0, slips = [], defects = [] } ] } },
   Scheduler = disksim_ioqueue { Scheduling policy = 1 }, Max queue length = 1, Bulk sector transfer time = 0.0,
   Segment size (in blks) = 40, Number of buffer segments = 2, Maximum number of write segments = 1,
   Use separate write segment = 0, Print stats = 0, Per-request overhead time = 0.0, Time scale for overheads = 1.0,
   Hold bus entire read xfer = 0, Hold bus entire write xfer = 0, Allow almost read hits = 0,
   Allow sneaky full read hits = 0, Allow sneaky partial read hits = 0, Allow sneaky intermediate read hits = 0,
   Allow read hits on write data = 0, Allow write prebuffering = 0, Preseeking level = 0, Never disconnect = 0,
   Avg sectors per cylinder = 200, Low (write) water mark = 0.0, High (read) water mark = 0.0,
   Set watermark by reqsize = 1, Calc sector by sector = 1, Enable caching in buffer = 1, Buffer continuous read = 4,
   Minimum read-ahead (blks) = 0, Maximum read-ahead (blks) = 40, Read-ahead over requested = 1,
   Read-ahead on idle hit = 0, Read any free blocks = 0, Fast write level = 0, Immediate buffer read = 1,
   Immediate buffer write = 0, Combine seq writes = 1, Stop prefetch in sector = 1, Disconnect write if seek = 0,
   Write hit stop prefetch = 1, Read directly to buffer = 1, Immed transfer partial hit = 1,
   Read hit over. after read = 0.1, Read hit over. after write = 0.15, Read miss over. after read = 0.2,
   Read miss over. after write = 0.3, Write hit over. after read = 0.0, Write hit over. after write = 0.0,
   Write miss over. after read = 0.4, Write miss over. after write = 0.5, Read completion overhead = 0.05,
   Write completion overhead = 0.02, Data preparation overhead = 0.0, First reselect overhead = 0.0,
   Other reselect overhead = 0.0, Read disconnect afterread = 0.0, Read disconnect afterwrite = 0.0,
   Write disconnect overhead = 0.0, Extra write disconnect = 0, Extradisc command overhead = 0.0,
   Extradisc disconnect overhead = 0.0, Extradisc inter-disconnect delay = 0.0,
   Extradisc 2nd disconnect overhead = 0.0, Extradisc seek delta = 0.0, Minimum seek delay = 0.0
}
instantiate [ bus1 ] as BUS1
instantiate [ ctlr0 ] as CTLR0
instantiate [ disk0 ] as NIMBLE
topology disksim_iodriver driver0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_disk disk0 [] ] ] ]
";

/// Returns a drive with one segment for reads, a least read-ahead, a bus slower than the medium that is held while a
/// read waits, and requested sectors that leave the segment once they are sent.
fn stubborn() -> String {
    let changes = [
        ("NIMBLE", "STUBBORN"),
        ("Arbitration time = 0.01", "Arbitration time = 0.0"),
        ("Read block transfer time = 0.02", "Read block transfer time = 0.05"),
        ("Bulk sector transfer time = 0.0, Maximum queue", "Bulk sector transfer time = 0.25, Maximum queue"),
        ("Write block transfer time = 0.05", "Write block transfer time = 0.2"),
        (
            "Add. write settling delay = -0.75, Head switch time = 0.9",
            "Add. write settling delay = -0.2, Head switch time = 0.1",
        ),
        ("Segment size (in blks) = 40", "Segment size (in blks) = 64"),
        ("Use separate write segment = 0", "Use separate write segment = 1"),
        ("Per-request overhead time = 0.0", "Per-request overhead time = 0.1"),
        ("Hold bus entire read xfer = 0", "Hold bus entire read xfer = 1"),
        ("Buffer continuous read = 4", "Buffer continuous read = 3"),
        (
            "Minimum read-ahead (blks) = 0, Maximum read-ahead (blks) = 40",
            "Minimum read-ahead (blks) = 20, Maximum read-ahead (blks) = 30",
        ),
        ("Read-ahead over requested = 1", "Read-ahead over requested = -1"),
        ("Read hit over. after read = 0.1", "Read hit over. after read = 0.3"),
        ("Read miss over. after read = 0.2", "Read miss over. after read = 0.4"),
        ("Read miss over. after write = 0.3", "Read miss over. after write = 0.45"),
        ("Write miss over. after read = 0.4", "Write miss over. after read = 0.2"),
        ("Write miss over. after write = 0.5", "Write miss over. after write = 0.2"),
    ];
    changes.iter().fold(NIMBLE.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// A request: its command, the pause before it and the time that it is expected to take, in microseconds.
type Step = (Command, u64, u64);

fn read(lba: u64, sectors: u32, pause_us: u64, taken_us: u64) -> Step {
    (Command::read(lba, sectors), pause_us, taken_us)
}

fn write(lba: u64, sectors: u32, pause_us: u64, taken_us: u64) -> Step {
    (Command::write(lba, sectors), pause_us, taken_us)
}

/// Asserts that the requests of `steps`, one at a time, take their expected times on the drive that `text` describes.
fn assert_times(text: &str, steps: &[Step]) {
    let imported = import("drive.parv", &|_| Ok(text.to_string())).expect("the description is right");
    let mut measured = Measured::default();
    let mut at = SimTime::ZERO;
    for &(command, pause_us, taken_us) in steps {
        let (issued, taken) = (at + SimDuration(pause_us * 1000), SimDuration(taken_us * 1000));
        measured.requests.push(MeasuredRequest { command, issued, taken, hit: None });
        at = issued + taken;
    }
    let drive = Drive::assemble("t", imported.profile, "conventional", &[]).expect("it can be built");
    let times = replay(&measured, drive).expect("nothing is read from outside");
    let taken: Vec<u64> = times.iter().map(|time| time.taken.0).collect();
    let expected: Vec<u64> = steps.iter().map(|(.., taken_us)| taken_us * 1000).collect();
    assert_eq!(taken, expected);
}

#[test]
fn a_buffer_shorter_than_a_track_holds_its_end() {
    assert_times(
        NIMBLE,
        &[
            // The bus is won by 0.01, the command processed by 0.41. The seek of 2.0 less 0.75 of settling ends at
            // 1.66, just before sector 17, which with its neighbour has passed at 1.9. The bus is won once more (0.01),
            // and the report takes 0.02. Without the negative delay, sector 17 would pass a rotation later.
            write(217, 2, 0, 1_930),
            // From 10.00: 0.01 and 0.3, seek to 12.31; sector 10 begins at 21.0. Each sector takes the bus anew, 0.01
            // and 0.02, after it has passed; the last one at 21.4. The report takes 0.05. The drive reads on to the end
            // of the track, LBA 599, at 30.0. The segment keeps the last 40 sectors, from LBA 560 on.
            read(510, 4, 8_070, 11_480),
            // From 41.48: not in the buffer. 0.01 and 0.2; sector 14 has just passed, and passes again by 51.6, with
            // 0.01, 0.02 and 0.05 to follow. This was found in the buffer when read-ahead ended after 40 sectors.
            read(514, 2, 20_000, 10_200),
            // Found: 0.01 and 0.1, three sectors of 0.02, 0.05.
            read(570, 3, 20_000, 220),
            // From 80.00: 0.01 and 0.2; sectors 20 and 21 have passed at 82.2; 0.01, 0.02, 0.05.
            read(520, 2, 8_100, 2_280),
            // From 82.40: sectors 22 and 23 are in the buffer at 82.41, and another one at 82.51, after 0.1. These
            // three are sent by 82.57. Each further sector is sent 0.03 after it has passed, the last one of LBA 531 at
            // 83.2. The report takes 0.05.
            read(522, 10, 120, 880),
            // From 90.00: 0.01 and 0.2, seek to 92.21. The next whole sector is 23 of the requested 10 to 29. So 23 to
            // 29 pass first, and 10 to 22 from 101.0 to 102.3. Sector 10 is sent by 101.13, and so on until sector 22
            // has passed; then the last eight sectors go together: 102.3, 0.01, 8 × 0.02, and 0.05.
            read(310, 20, 6_720, 12_520),
        ],
    );
}

#[test]
fn sectors_read_on_are_sent_once_they_are_in_the_buffer() {
    assert_times(
        &stubborn(),
        &[
            // 0.1 and 0.4; sector 10 has passed at 1.1. A sector takes 0.25 on the bus, for which the controller is the
            // slowest: four of them, and 0.05. The drive reads on to LBA 43, which passes by 4.4.
            read(10, 4, 0, 1_100 + 1_000 + 50),
            // From 12.15: the sectors that were sent are no longer in the buffer. Sector 10 has passed at 21.1.
            read(10, 4, 10_000, 10_000),
            // From 22.60: at 22.70 the drive has read on to LBA 26. It reads at least 20 sectors, to LBA 33, at 23.4,
            // before it serves another read. Sector 40 passes by 24.1; then four times 0.25, and 0.05.
            read(40, 4, 450, 2_550),
            // From 40.00: 0.1 and 0.2, then a seek of 2.0 less 0.2. Sector 21 begins at that moment, 42.1. The data
            // have arrived by 40.8, at 0.25 a sector. The report takes 0.02.
            write(221, 2, 14_850, 2_320),
            // From 50.00: the change of heads takes 0.1, which the negative delay uses up: the arm is ready at 50.3.
            // The data arrive by 50.55; sector 6 has passed at 50.7.
            write(306, 1, 7_680, 720),
            // From 60.00: 0.1 and 0.45, seek to 62.55; sector 20 has passed at 72.1. Two times 0.25, and 0.05.
            read(520, 2, 9_280, 12_650),
            // From 72.65: at 72.75 the drive has read on to LBA 526, and goes on. It does not complete the least
            // read-ahead first: 0.1, 0.3, two times 0.25, and 0.05.
            read(522, 2, 0, 950),
            // From 73.60: the least read-ahead to LBA 543 is complete at 74.4. The seek ends at 76.4, after sector 62
            // has begun; so it has passed at 86.3. Then 0.25 and 0.05.
            read(62, 1, 0, 13_000),
        ],
    );
}

/// Every parameter of the two descriptions is used, or named in a note.
#[test]
fn no_parameter_is_unknown() {
    for text in [NIMBLE.to_string(), stubborn()] {
        let notes = import("drive.parv", &|_| Ok(text.clone())).expect("the description is right").notes;
        assert!(notes.iter().all(|note| !note.contains("is not known here")), "{notes:?}");
        let named = |part: &str| notes.iter().any(|note| note.contains(part));
        for part in ["BUS1: 'Arbitration type'", "CTLR0: 'Scale for delays'", "'Rangesize for sparing'", "'Scheduler'"]
        {
            assert!(named(part), "{part} should be in {notes:?}");
        }
    }
}
