//! Files read back, with the Parquet library's own reader or as text, hold the values that were written.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use imbrex_disk::{Command, Lba, Pba, Sectors, SimDuration, SimTime};
use imbrex_layer::{Cause, GroupKind, Note, Plan};
use imbrex_sim::timing::PlanTime;
use imbrex_sim::{DriveSeries, IoRecord, Summary};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Row, RowAccessor};

use super::*;
use crate::sample;

fn rows(path: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(path).expect("it opens")).expect("it is Parquet");
    reader.get_row_iter(None).expect("it has rows").map(|row| row.expect("a row")).collect()
}

fn named<'a>(summary: &'a Summary, series: &'a [DriveSeries]) -> Vec<(&'a str, &'a DriveSeries)> {
    summary.drives.iter().map(|drive| drive.drive.as_str()).zip(series).collect()
}

fn record(sequence: u64, arrival: Option<SimTime>) -> IoRecord {
    let at = sequence * 1_000;
    IoRecord {
        sequence,
        command: if sequence.is_multiple_of(3) {
            Command::read(sequence * 8, 8)
        } else {
            Command::write(sequence * 8, 16)
        },
        arrival,
        due: SimTime(at + 1),
        entry: SimTime(at + 1),
        start: SimTime(at + 2),
        end: SimTime(at + 500),
        time: PlanTime {
            seek: SimDuration(10),
            rotation: SimDuration(20),
            transfer: SimDuration(30),
            cleaning: SimDuration(sequence),
            ..PlanTime::default()
        },
        from_cache: false,
        radial_track: sequence as u32 % 1000,
    }
}

#[test]
fn the_summary_reads_back_as_it_was() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let (summary, _) = sample::run(6);
    let path = folder.write_summary(&summary).expect("written");
    let text = std::fs::read_to_string(path).expect("read");
    assert!(serde_json::from_str::<Summary>(&text).expect("it is a summary") == summary, "{text}");
    assert!(text.starts_with("{\n  \"schema\": \"imbrex.simulate/2\",\n  \"imbrex\": "), "fields stand in order");
    assert!(text.ends_with("}\n"));
}

#[test]
fn histograms_sum_to_the_requests_of_each_drive_and_operation() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let (summary, series) = sample::run(3);
    let path = folder.write_latency(&named(&summary, &series)).expect("written");
    let mut counts: BTreeMap<(String, String), (i64, i64)> = BTreeMap::new();
    for row in rows(&path) {
        let key = (row.get_string(0).expect("drive").clone(), row.get_string(1).expect("operation").clone());
        let (sum, last_edge) = counts.entry(key).or_default();
        let edge = row.get_long(2).expect("edge");
        assert!(edge > *last_edge, "edges rise");
        (*sum, *last_edge) = (*sum + row.get_long(3).expect("count"), edge);
    }
    assert_eq!(counts.len(), 9);
    for ((_, operation), (sum, _)) in counts {
        let expected = match operation.as_str() {
            "read" => sample::REQUESTS * 3 / 10,
            "write" => sample::REQUESTS * 7 / 10,
            _ => sample::REQUESTS,
        };
        assert_eq!(sum as u64, expected, "{operation}");
    }
}

#[test]
fn the_timeline_has_every_window_in_order() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let (summary, series) = sample::run(2);
    let path = folder.write_timeline(&named(&summary, &series)).expect("written");
    let rows = rows(&path);
    let expected = series.iter().flat_map(|drive| drive.windows.iter().enumerate());
    assert_eq!(rows.len(), series[0].windows.len() + series[1].windows.len());
    for (row, (index, window)) in rows.iter().zip(expected) {
        assert_eq!(row.get_long(1).expect("begin"), index as i64 * 1_000_000_000);
        assert_eq!(row.get_long(2).expect("width"), 1_000_000_000);
        let values: Vec<i64> = (3..7).map(|column| row.get_long(column).expect("a number")).collect();
        let window = [window.reads, window.writes, window.read_bytes, window.write_bytes];
        assert_eq!(values, window.map(|value| value as i64));
    }
}

#[test]
fn requests_of_drives_that_run_at_once_stand_in_the_order_of_the_drives() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    // More than one row group each.
    let counts = [150_000u64, 140_000];
    let mut first = folder.io_spool("first").expect("begun");
    let mut second = folder.io_spool("second").expect("begun");
    for sequence in 0..counts[0] {
        if sequence < counts[1] {
            second.record(&record(sequence, None));
        }
        first.record(&record(sequence, sequence.is_multiple_of(2).then_some(SimTime(sequence))));
    }
    let parts = vec![first.finish().expect("whole"), second.finish().expect("whole")];
    let path = folder.join_ios(parts).expect("joined");
    let rows = rows(&path);
    assert_eq!(rows.len() as u64, counts[0] + counts[1]);
    for (index, row) in rows.iter().enumerate() {
        let is_first = (index as u64) < counts[0];
        let sequence = if is_first { index as u64 } else { index as u64 - counts[0] };
        let expected = record(sequence, None);
        assert_eq!(row.get_string(0).expect("drive"), if is_first { "first" } else { "second" });
        assert_eq!(row.get_long(1).expect("sequence"), sequence as i64);
        let arrival = row.get_long(2).ok();
        assert_eq!(arrival, (is_first && sequence.is_multiple_of(2)).then_some(sequence as i64));
        assert_eq!(row.get_long(5).expect("complete"), expected.end.0 as i64);
        assert_eq!(row.get_string(6).expect("op"), if sequence.is_multiple_of(3) { "read" } else { "write" });
        assert_eq!(row.get_long(7).expect("lba"), sequence as i64 * 8);
        assert_eq!(row.get_long(12).expect("cleaning"), sequence as i64);
        assert_eq!(row.get_int(13).expect("track"), (sequence % 1000) as i32);
    }
    let left = std::fs::read_dir(folder.path()).expect("read").count();
    assert_eq!(left, 1, "the parts are gone");
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let mut spool = folder.io_spool("d").expect("begun");
    (0..200_000).for_each(|sequence| spool.record(&record(sequence, None)));
    let plans = folder.plan_spool("d").expect("begun");
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 2);
    drop((spool, plans));
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 0);
}

#[test]
fn plans_are_a_line_each_with_every_step() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let mut plan = Plan::new();
    plan.open(GroupKind::Host);
    plan.read(Cause::Backup, Pba(100), Lba(40), Sectors(50));
    plan.note(Note::new(3, &[7, 8]));
    plan.barrier();
    plan.write(Cause::Host, Pba(0), Lba(0), Sectors(50));
    let mut spool = folder.plan_spool("x+y").expect("begun");
    spool.record(SimTime(5), &[Command::write(0, 50)], &plan);
    spool.record(SimTime(6), &[], &plan);
    let path = folder.join_plans(vec![spool.finish().expect("whole")]).expect("joined");
    let text = std::fs::read_to_string(path).expect("read");
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["drive"], "x+y");
    assert_eq!(lines[0]["commands"][0]["op"], "write");
    let steps = lines[0]["phases"][0]["steps"].as_array().expect("steps");
    let words: Vec<&str> = steps.iter().map(|step| step["op"].as_str().expect("op")).collect();
    assert_eq!(words, ["read", "note", "barrier", "write"]);
    assert_eq!(steps[0]["pba"], 100);
    assert_eq!(steps[0]["cause"], "backup");
    assert_eq!(steps[1]["note"]["fields"], serde_json::json!([7, 8, 0, 0]));
    assert_eq!((&lines[1]["at_ns"], lines[1]["commands"].as_array().map(Vec::len)), (&6.into(), Some(0)));
}

#[test]
fn the_parts_of_all_rows_sum_to_the_service_of_the_drive() {
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let folder = prepare(temporary.path()).expect("writable");
    let mut spool = folder.io_spool("d").expect("begun");
    (0..100).for_each(|sequence| spool.record(&record(sequence, None)));
    let borne: u64 = (0..100).map(|sequence| record(sequence, None).time.cleaning.0).sum();
    let service = imbrex_sim::results::ServiceTime { cleaning: borne + 77, ..Default::default() };
    spool.background(&service, 5_000_000);
    let path = folder.join_ios(vec![spool.finish().expect("whole")]).expect("joined");
    let rows = rows(&path);
    assert_eq!(rows.len(), 101);
    let last = &rows[100];
    assert_eq!((last.get_string(6).expect("op").as_str(), last.get_long(1).expect("sequence")), ("background", -1));
    assert_eq!(rows.iter().map(|row| row.get_long(12).expect("cleaning")).sum::<i64>() as u64, service.cleaning);
}
