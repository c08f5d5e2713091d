//! Goal: the profile equals the description. Method: a small drive in the syntax of DiskSim, whose places and times
//! follow from the reference manual by hand.

use std::collections::BTreeMap;

use imbrex_disk::Pba;

use super::*;

const MODEL: &str = "dm_disk TOY_model {
   Number of data surfaces = 2, Number of cylinders = 30, Block count = 4985,
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 0, Sparing scheme used = 9, Rangesize for sparing = 1,
      Zones = [ dm_layout_g1_zone {
         First cylinder number = 0, Last cylinder number = 19, Blocks per track = 100,
         Offset of first block = 0.000000, Empty space at zone front = 5,
         Skew for track switch = 10.0, Skew for cylinder switch = 20.0, Number of spares = 10,
         slips = [ 7, 150 ], defects = [ 40, 3990 ]
      }, dm_layout_g1_zone {
         First cylinder number = 20, Last cylinder number = 29, Blocks per track = 50,
         Offset of first block = 3, Empty space at zone front = 0,
         Skew for track switch = 5, Skew for cylinder switch = 10, Number of spares = 0, slips = [], defects = []
      } ]
   },
   Mechanical Model = dm_mech_g1 {
      Access time type = trackSwitchPlusRotation, Seek type = extracted, Full seek curve = toy.seek,
      Add. write settling delay = 0.5, Head switch time = 0.3, # a comment, with = and {
      Rotation speed (in rpms) = 6000, Percent error in rpms = 0.0
   }
} # end
";

const SPECS: &str = "disksim_disk TOY {
   Model = source toy.model, Scheduler = disksim_ioqueue { Scheduling policy = 1 },
   Per-request overhead time = 0.0, Time scale for overheads = 2.0, Bulk sector transfer time = 0.1,
   Number of buffer segments = 4, Segment size (in blks) = 64, Enable caching in buffer = 1,
   Buffer continuous read = 3, Fast write level = 2, Read hit over. after read = 0.05,
   Set watermark by reqsize = 1, Unheard-of parameter = 3
}
";

const PARV: &str = "disksim_bus BUS1 { type = 1, Read block transfer time = 0.2, Write block transfer time = 0.05 }
disksim_ctlr CTLR0 { type = 1, Bulk sector transfer time = 0.0 }
source toy.diskspecs
instantiate [ bus1 ] as BUS1
instantiate [ disk0, disk1 ] as TOY
topology disksim_iodriver driver0 [ disksim_bus bus0 [ disksim_ctlr ctlr0 [ disksim_bus bus1 [ disksim_disk disk0 [] ] ] ] ]
";

fn files() -> BTreeMap<&'static str, String> {
    let seek = "Seek distances measured: 3\n1,\t1.000\n2,\t1.500\n20,\t1.400\n";
    [("toy.parv", PARV), ("toy.diskspecs", SPECS), ("toy.model", MODEL), ("toy.seek", seek)]
        .map(|(name, text)| (name, text.to_string()))
        .into()
}

fn imported(file: &str, files: &BTreeMap<&'static str, String>) -> Result<Imported, ImportError> {
    import(file, &|name| files.get(name).cloned().ok_or(format!("there is no {name}")))
}

#[test]
fn sectors_lie_where_zones_spares_slips_and_remaps_put_them() {
    let drive = imported("toy.parv", &files()).expect("is right");
    let geometry = &drive.profile.disk().geometry;
    // 20 cylinders of 200 sectors less 5 reserved and 10 spares, and 10 cylinders of 100.
    assert_eq!(geometry.sectors().0, 3985 + 1000);
    let place = |pba: u64| {
        let place = geometry.locate(Pba(pba));
        (place.radial_track, place.surface, place.angle_ns)
    };
    let sector_ns = 100_000;
    // Five are reserved; 7 is slipped: user sector 2 is zone address 8.
    assert_eq!(place(0), (0, 0, 5 * sector_ns));
    assert_eq!(place(2), (0, 0, 8 * sector_ns));
    // Zone address 40 is user sector 34, and lies at 3990: cylinder 19, second surface, sector 90.
    let skew = 19 * (10 + 20) + 10;
    assert_eq!(place(34), (19, 1, (90 + skew) % 100 * sector_ns));
    assert_eq!(place(35), (0, 0, 41 * sector_ns));
    // The first sector of the second track, after a head skew of ten.
    assert_eq!(place(94), (0, 1, 10 * sector_ns));
    // The second zone, whose sectors are twice as wide, begins at an offset of three sectors.
    assert_eq!(place(3985), (20, 0, 3 * 2 * sector_ns));
    assert_eq!(geometry.piece(Pba(0), imbrex_disk::Sectors(50)).sectors, 2, "a piece ends at a slipped sector");
}

#[test]
fn bus_overheads_and_seeks_are_taken_over() {
    let drive = imported("toy.parv", &files()).expect("is right");
    let controller = drive.profile.host.controller.as_ref().expect("an imported drive has one");
    assert_eq!(
        (controller.bus_read_sector_ns, controller.bus_write_sector_ns),
        (200_000, 100_000),
        "the slowest counts"
    );
    assert_eq!(controller.read_hit_after_read_ns, 100_000, "overheads are scaled");
    let mechanics = &drive.profile.disk().mechanics;
    let seeks = [1, 2, 11, 20].map(|distance| mechanics.seek(distance).0);
    assert_eq!(seeks, [1_000_000, 1_500_000, 1_450_000, 1_400_000], "a measured curve may fall");
    assert!(drive.notes.iter().any(|note| note.contains("Unheard-of parameter")), "{:?}", drive.notes);
    assert!(drive.notes.iter().any(|note| note.contains("'Scheduler' is not used")));
}

/// Times of the reference manual (CMU-PDL-08-101, §3.4.5), each with the corresponding key of the profile, including
/// those of the extra disconnect.
const TIMES: [(&str, &str); 21] = [
    ("Per-request overhead time", "command_ns"),
    ("Read hit over. after write", "read_hit_after_write_ns"),
    ("Read miss over. after read", "read_miss_after_read_ns"),
    ("Read miss over. after write", "read_miss_after_write_ns"),
    ("Write hit over. after read", "write_hit_after_read_ns"),
    ("Write hit over. after write", "write_hit_after_write_ns"),
    ("Write miss over. after read", "write_miss_after_read_ns"),
    ("Write miss over. after write", "write_miss_after_write_ns"),
    ("Read completion overhead", "read_complete_ns"),
    ("Write completion overhead", "write_complete_ns"),
    ("Data preparation overhead", "data_prepare_ns"),
    ("First reselect overhead", "reselect_ns"),
    ("Other reselect overhead", "reselect_again_ns"),
    ("Read disconnect afterread", "read_disconnect_after_read_ns"),
    ("Read disconnect afterwrite", "read_disconnect_after_write_ns"),
    ("Write disconnect overhead", "write_disconnect_ns"),
    ("Extradisc command overhead", "extra_disconnect.command_ns"),
    ("Extradisc disconnect overhead", "extra_disconnect.disconnect_ns"),
    ("Extradisc inter-disconnect delay", "extra_disconnect.pause_ns"),
    ("Extradisc 2nd disconnect overhead", "extra_disconnect.second_disconnect_ns"),
    ("Extradisc seek delta", "extra_disconnect.seek_delay_ns"),
];

#[test]
fn every_time_has_a_place_of_its_own() {
    let mut files = files();
    let text = files.get_mut("toy.diskspecs").expect("is there");
    let mut block =
        String::from("Time scale for overheads = 1.0, Extra write disconnect = 1, Minimum seek delay = 7.0,\n");
    for (index, (parameter, _)) in TIMES.iter().enumerate() {
        block += &format!("   {parameter} = {}.{:02},\n", 1, index + 10);
    }
    *text = text.replace("Per-request overhead time = 0.0, Time scale for overheads = 2.0,", &block);
    let drive = imported("toy.parv", &files).expect("is right");
    let controller = drive.profile.host.controller.as_ref().expect("an imported drive has one");
    let table = toml::Table::try_from(controller).expect("numbers and words");
    for (index, (parameter, key)) in TIMES.iter().enumerate() {
        let found = key.split('.').try_fold(&toml::Value::Table(table.clone()), |value, part| value.get(part)).cloned();
        assert_eq!(found, Some(toml::Value::Integer(1_100_000 + 10_000 * index as i64)), "{parameter}: {key}");
    }
    assert_eq!(controller.write_seek_min_ns, 7_000_000);
    let mechanics = drive.profile.table()["mechanics"].clone();
    let time = |key: &str| mechanics.get(key).and_then(toml::Value::as_integer);
    assert_eq!((time("head_switch_ns"), time("write_settle_ns")), (Some(300_000), Some(500_000)));
}

/// The shortest seek of the curve takes 1.0 ms, over one cylinder.
#[test]
fn a_write_may_settle_faster_than_a_read() {
    let settled = |ms: &str| {
        let mut files = files();
        let text = files.get_mut("toy.model").expect("is there");
        *text = text.replace("write settling delay = 0.5", &format!("write settling delay = {ms}"));
        imported("toy.parv", &files)
    };
    let drive = settled("-0.25").expect("a negative delay is a delay");
    assert_eq!(drive.profile.table()["mechanics"]["write_settle_ns"], toml::Value::Integer(-250_000));
    let error = settled("-1.1").expect_err("a write cannot begin before its seek").to_string();
    assert!(error.contains("a seek over 1 track takes only 1000000 ns"), "{error}");
    let error = settled("-2e6").expect_err("no delay is as long").to_string();
    assert!(error.contains("'Add. write settling delay': -2000000 ms is no time"), "{error}");
}

/// Read-ahead of the file, and the keys of the profile: `read_on`, least, most, over requested, drops requested.
#[test]
fn read_ahead_is_taken_over_as_disksim_uses_it() {
    use imbrex_disk::profile::ReadOn;
    let ahead = |scheme: u32, least: u32, most: u32, over: &str| {
        let mut files = files();
        let text = files.get_mut("toy.diskspecs").expect("is there");
        let values = format!(
            "Buffer continuous read = {scheme}, Minimum read-ahead (blks) = {least}, Maximum read-ahead (blks) = {most}, \
             Read-ahead over requested = {over}"
        );
        *text = text.replace("Buffer continuous read = 3", &values);
        let drive = imported("toy.parv", &files)?;
        let is = drive.profile.host.controller.expect("an imported drive has one");
        let limits = (is.read_on_min_sectors, is.read_on_max_sectors);
        Ok::<_, ImportError>((is.read_on, limits, is.read_on_over_requested, is.drops_requested))
    };
    let expected = [
        // No read-ahead has no least read-ahead either.
        ((0, 8, 16, "1"), (ReadOn::None, (0, 0), true, false)),
        ((1, 0, 16, "0"), (ReadOn::Track, (0, 16), false, false)),
        // 0 is no limit, unless there is a least read-ahead: that is the limit then.
        ((3, 0, 0, "0"), (ReadOn::Segment, (0, 0), false, false)),
        ((3, 8, 0, "0"), (ReadOn::Segment, (8, 8), false, false)),
        // The end of a track is the only limit.
        ((4, 8, 16, "1"), (ReadOn::NextTrack, (8, 0), true, false)),
        ((3, 0, 16, "-1"), (ReadOn::Segment, (0, 16), true, true)),
    ];
    for ((scheme, least, most, over), keys) in expected {
        assert_eq!(ahead(scheme, least, most, over), Ok(keys), "{scheme}, {least} to {most}, {over}");
    }
    let error = ahead(3, 0, 0, "2").expect_err("2 is no such value").to_string();
    assert!(error.contains("'Read-ahead over requested': 2 is none of -1, 0 and 1"), "{error}");
}

/// The bus of the disk and the one above are exclusive: each takes its time for the command, and for taking the bus.
#[test]
fn arbitration_counts_for_the_command_and_for_taking_the_bus() {
    let mut files = files();
    let text = files.get_mut("toy.parv").expect("is there");
    *text = text.replace("{ type = 1, Read block", "{ type = 1, Arbitration time = 0.03, Read block")
        + "disksim_bus BUS0 { type = 1, Arbitration time = 0.01, Read block transfer time = 9.0 }\ninstantiate [ bus0 ] as BUS0\n";
    let drive = imported("toy.parv", &files).expect("is right");
    let controller = drive.profile.host.controller.as_ref().expect("an imported drive has one");
    let times = (controller.command_ns, controller.reselect_ns, controller.reselect_again_ns);
    assert_eq!(times, (40_000, 40_000, 40_000), "times of the bus are not scaled");
    assert_eq!(controller.bus_read_sector_ns, 200_000, "the bus at the drive counts");
    assert!(
        drive.notes.iter().any(|note| note.contains("of a bus above a controller is not used")),
        "{:?}",
        drive.notes
    );
    let shared = files.get_mut("toy.parv").expect("is there");
    *shared = shared.replace("type = 1", "type = 2");
    let drive = imported("toy.parv", &files).expect("is right");
    assert_eq!(drive.profile.host.controller.map(|controller| controller.command_ns), Some(0));
}

#[test]
fn unused_parameters_are_named_in_every_block() {
    let mut files = files();
    let text = files.get_mut("toy.model").expect("is there");
    *text = text
        .replace("Number of spares = 10,", "Number of spares = 10, Strange = 1,")
        .replace("Head switch time", "Average seek time = 3.0, First ten seek times = [ 1.0 ], Head switch time");
    let text = files.get_mut("toy.parv").expect("is there");
    text.push_str("disksim_iodriver DRIVER0 { type = 1 }\n");
    let notes = imported("toy.parv", &files).expect("is right").notes;
    for part in [
        "toy.model, line 8: 'Strange' is not known here",
        "'Average seek time', 'First ten seek times' are not used",
        "'Rangesize for sparing' is not used",
        "DiskSim's host and its output: disksim_iodriver",
        "'bus0' of the topology is not described",
    ] {
        assert!(notes.iter().any(|note| note.contains(part)), "{part} should be in {notes:?}");
    }
}

#[test]
fn the_text_is_the_profile() {
    let drive = imported("toy.parv", &files()).expect("is right");
    let again = Profile::parse("t.toml", &drive.toml, &[]).expect("it was parsed before");
    assert_eq!(again.disk().geometry.sectors(), drive.profile.disk().geometry.sectors());
    assert_eq!(again.host, drive.profile.host);
}

#[test]
fn a_specification_alone_warns_of_the_bus() {
    let drive = imported("toy.diskspecs", &files()).expect("is right");
    assert!(drive.notes[0].contains("describes no bus"), "{:?}", drive.notes);
    assert_eq!(drive.profile.host.controller.as_ref().map(|controller| controller.bus_read_sector_ns), Some(100_000));
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    for (file, from, to, told) in [
        (
            "toy.model",
            "Blocks per track = 50",
            "Blocks per track = fifty",
            "toy.model, line 11: 'Blocks per track': expected a number",
        ),
        ("toy.model", "dm_layout_g1 {", "dm_layout_g4 {", "layout model dm_layout_g4 is not read"),
        ("toy.model", "Sparing scheme used = 9", "Sparing scheme used = 11", "11 is none of 0 to 10"),
        ("toy.seek", "2,\t1.500", "1,\t1.500", "toy.seek, line 3: distance 1 follows 1"),
        ("toy.diskspecs", "Scheduler = ", "Scheduler ", "expected 'name = value'"),
        ("toy.diskspecs", "source toy.model", "source toy.diskspecs", "in a circle"),
        ("toy.diskspecs", "}\n", "\n", "a brace is missing"),
    ] {
        let mut files = files();
        let text = files.get_mut(file).expect("it is there");
        let at = text.rfind(from).expect("it is there");
        text.replace_range(at..at + from.len(), to);
        let error = imported("toy.parv", &files).expect_err(told).to_string();
        assert!(error.contains(told), "{error} should say {told}");
    }
}
