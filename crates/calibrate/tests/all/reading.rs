//! Goal: measurements are read correctly: the request, its time of issue, and its duration. Method: records of a few
//! lines written by hand, whose times can be worked out on paper.

use imbrex_calibrate::distribution::{self, Distribution};
use imbrex_calibrate::measured::Measured;
use imbrex_calibrate::readers::{ReadOptions, Reading, read};
use imbrex_disk::Operation;

fn requests(bytes: &[u8]) -> Measured {
    requests_by(bytes, &ReadOptions::default())
}

fn requests_by(bytes: &[u8], options: &ReadOptions) -> Measured {
    match read("t", bytes, options).expect("is known") {
        Reading::Requests(measured) => measured,
        Reading::Distribution(_) => panic!("requests were asked for"),
    }
}

fn refusal(bytes: &[u8], options: &ReadOptions) -> String {
    read("t", bytes, options).expect_err("is wrong").to_string()
}

/// Returns the first sector, the number of sectors, the issue and duration in microseconds, and whether the request is
/// a read.
fn seen(measured: &Measured) -> Vec<(u64, u32, u64, u64, bool)> {
    let one = |request: &imbrex_calibrate::measured::MeasuredRequest| {
        let command = &request.command;
        let is_read = command.operation == Operation::Read;
        (command.lba.0, command.sectors, request.issued.0 / 1000, request.taken.0 / 1000, is_read)
    };
    measured.requests.iter().map(one).collect()
}

/// Output of blkparse: two outstanding reads that end in reverse order, a write, and an issue without completion.
const BLKPARSE: &str = "\
  8,0    1        1     1.000000000   100  D   R 1000 + 8 [fio]
  8,0    1        2     1.000100000   100  D   R 2000 + 16 [fio]
  8,0    1        3     1.004000000     0  C   R 2000 + 16 [0]
  8,0    1        4     1.009000000     0  C   R 1000 + 8 [0]
  8,0    1        5     1.010000000   100  D   W 3000 + 8 [fio]
  8,0    1        6     1.012500000     0  C   W 3000 + 8 [0]
  8,0    1        7     1.013000000   100  D   R 9000 + 8 [fio]
";

#[test]
fn issues_and_completions_of_blkparse_are_paired_by_what_they_are_of() {
    let measured = requests(BLKPARSE.as_bytes());
    let expected = [(1000, 8, 0, 9_000, true), (2000, 16, 100, 3_900, true), (3000, 8, 10_000, 2_500, false)];
    assert_eq!(seen(&measured), expected);
    assert_eq!((measured.depth(), measured.format.as_str()), (2, "blkparse"));
    assert!(measured.notes.iter().any(|note| note.starts_with("1 issues have no completion")), "{:?}", measured.notes);
}

/// Returns a record of blktrace's own: `struct blk_io_trace` of linux/blktrace_api.h.
fn record(ns: u64, sector: u64, sectors: u32, action: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(0x6561_7407u32.to_le_bytes());
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(ns.to_le_bytes());
    bytes.extend(sector.to_le_bytes());
    bytes.extend((sectors * 512).to_le_bytes());
    bytes.extend(action.to_le_bytes());
    bytes.extend(100u32.to_le_bytes());
    bytes.extend(((8u32 << 20) | 16).to_le_bytes());
    bytes.extend(0u32.to_le_bytes());
    bytes.extend([0; 4]);
    assert_eq!(bytes.len(), 48);
    bytes
}

#[test]
fn blktrace_is_read_as_blkparse_would_print_it() {
    // __BLK_TA_ISSUE 7 and __BLK_TA_COMPLETE 8; above bit 16 the kinds: read 1, write 2, issue 64, complete 128.
    let (read, write, issue, complete) = (1 << 16, 2 << 16, 7 | (64 << 16), 8 | (128 << 16));
    let mut bytes = record(5_000_000, 700, 8, issue | read);
    bytes.extend(record(11_000_000, 700, 8, complete | read));
    bytes.extend(record(12_000_000, 900, 24, issue | write));
    bytes.extend(record(12_300_000, 900, 24, complete | write));
    let measured = requests(&bytes);
    assert_eq!(seen(&measured), [(700, 8, 0, 6_000, true), (900, 24, 7_000, 300, false)]);
    assert_eq!((measured.depth(), measured.format.as_str()), (1, "blktrace"));
}

#[test]
fn issues_without_completions_are_refused() {
    let issues: String = BLKPARSE.lines().filter(|line| line.contains(" D ")).map(|line| format!("{line}\n")).collect();
    assert!(refusal(issues.as_bytes(), &ReadOptions::default()).contains("trace both actions"));
}

#[test]
fn a_log_of_fio_has_completions_in_milliseconds_and_times_in_nanoseconds() {
    // One at a time: each follows the one before. A pause counts only if the clock of a millisecond shows it.
    let log = "10, 10000000, 0, 4096, 512000, 0\n21, 10500000, 1, 4096, 1024000, 0\n71, 20000000, 0, 8192, 0, 0\n";
    let measured = requests(log.as_bytes());
    let expected = [(1000, 8, 0, 10_000, true), (2000, 8, 10_000, 10_500, false), (0, 16, 51_000, 20_000, true)];
    assert_eq!(seen(&measured), expected);
    // Two requests that overlap are issued at their times.
    let log = "10, 10000000, 0, 4096, 512000, 0\n12, 11000000, 0, 4096, 1024000, 0\n";
    assert_eq!(seen(&requests(log.as_bytes())), [(1000, 8, 0, 10_000, true), (2000, 8, 1_000, 11_000, true)]);
    let short = "10, 10000000, 0, 4096, 512000, 0\n21, 10500000, 1, 4096\n";
    assert!(refusal(short.as_bytes(), &ReadOptions::default()).contains("line 2"));
}

fn options_of_all() -> ReadOptions {
    ReadOptions { columns: Some("time,op,offset,size,latency".into()), units: None, device: None }
}

#[test]
fn a_csv_is_read_by_its_columns_and_units() {
    let columns =
        |names: &str, units: &str| ReadOptions { columns: Some(names.into()), units: Some(units.into()), device: None };
    let csv = "when,what,_,lba,bytes,us\n2.0,read,x,100,4096,1500\n2.5,w,x,200,512,700\n";
    let options = columns("time,op,_,offset,size,latency", "s,,,sectors,B,us");
    assert_eq!(seen(&requests_by(csv.as_bytes(), &options)), [(100, 8, 0, 1_500, true), (200, 1, 500_000, 700, false)]);
    assert!(refusal(csv.as_bytes(), &columns("time,op,_,offset,size", "")).contains("`latency`"));
    assert!(refusal(csv.as_bytes(), &columns("op,offset,size,latency", "h,,,h")).contains("no unit of time"));
    // Without units, times are in seconds and sizes in bytes. A flush and a request without an answer are left out.
    let log = "time,op,offset,size,latency\n1,flush,0,0,0.1\n1,read,4096,512,0.0015\n2,write-fua,0,512,\n3,write,0,512,0.002\n";
    let read = requests_by(log.as_bytes(), &columns("time,op,offset,size,latency", ""));
    assert_eq!(seen(&read), [(8, 1, 0, 1_500, true), (0, 1, 2_000_000, 2_000, false)]);
    let header = "the first line has no number, so it holds the names of the columns";
    assert_eq!(read.notes, [header, "2 flushes and requests without an answer are left out"]);
    // A mark of the byte order is no part of the first row, and a row with numbers is no header.
    let read = requests_by("\u{feff}1,read,4096,512,0.0015\r\n2,write,0,512,0.002\r\n".as_bytes(), &options_of_all());
    assert_eq!(seen(&read), [(8, 1, 0, 1_500, true), (0, 1, 1_000_000, 2_000, false)]);
    assert!(read.notes.is_empty());
    // Bytes 100 to 4196 lie in nine sectors.
    let read = requests_by(b"1,read,100,4096,0.0015\n2,write,512,512,0.002\n", &options_of_all());
    assert_eq!(seen(&read), [(0, 9, 0, 1_500, true), (1, 1, 1_000_000, 2_000, false)]);
    assert_eq!(read.notes, ["requests widened to whole sectors of 512 bytes: 1"]);
    let refused = [
        ("1,read,0,512,2000000\n", "time,op,offset,size,latency", "", "--units names the unit"),
        ("1,read,0,512,0.2\n", "time,op,offset,size,latency", "s,,,,ns", "all latencies are 0"),
        ("1,read,0,512,0.2\n", "tiem,op,offset,size,latency", "", "_ (did you mean 'time'?)"),
        ("1,read,0,512,0.2\n", "time,op,offset,size,latency,op", "", "'op' twice"),
        ("1,read,0,512,0.2\n", "op,offset,size,latency", "s,,B,B,s", "--units has 5 units"),
        ("h\n1,read,0,x,0.2\n", "time,op,offset,size,latency", "", "expected a size, found"),
        ("h\n1,read,0,512\n", "time,op,offset,size,latency", "", "expected a column with the latency"),
        ("1,Wriet,0,512,0.2\n", "time,op,offset,size,latency", "", "line 1: expected an operation"),
        ("1,read,0,512,-0.2\n", "time,op,offset,size,latency", "", "line 1: expected a latency"),
        ("x,read,0,512,0.2\n", "time,op,offset,size,latency", "", "line 1: expected a time"),
    ];
    for (csv, names, units, expected) in refused {
        let said = refusal(csv.as_bytes(), &columns(names, units));
        assert!(said.contains(expected), "{csv:?}, {names}: {said}");
    }
}

/// Output of fio 3 with `--output-format=json+`, reduced to the relevant parts.
const JSON: &str = r#"{ "fio version": "fio-3.33", "global options": { "bs": "4k", "size": "1g" }, "jobs": [ {
    "job options": { "rw": "randrw", "iodepth": "1" },
    "read":  { "clat_ns": { "bins": { "1000": 3, "9000": 1 } } },
    "write": { "clat_ns": { "bins": { "2000": 2 } } } } ] }"#;

fn distribution(json: &str) -> Distribution {
    match read("t", json.as_bytes(), &ReadOptions::default()).expect("is known") {
        Reading::Distribution(distribution) => distribution,
        Reading::Requests(_) => panic!("a distribution was asked for"),
    }
}

#[test]
fn the_json_of_fio_is_a_distribution_with_the_words_of_its_job() {
    let found = distribution(JSON);
    assert_eq!(found.words.as_deref(), Some("rw=randrw,bs=4k,iodepth=1,size=1g,number_ios=6"));
    assert_eq!(found.times_ns(None), [1000, 1000, 1000, 9000, 2000, 2000]);
    assert_eq!(found.times_ns(Some(Operation::Write)), [2000, 2000]);
    let several = JSON.replace("\"iodepth\": \"1\"", "\"numjobs\": \"4\"");
    assert_eq!(distribution(&several).words, None, "four at once are no one job");
    assert!(refusal(JSON.replace("bins", "none").as_bytes(), &ReadOptions::default()).contains("json+"));
}

#[test]
fn a_distribution_is_compared_by_kind() {
    let found = distribution(JSON);
    let same = [1000, 1000, 9000, 1000].map(|ns| (Operation::Read, ns));
    let same: Vec<_> = same.into_iter().chain([(Operation::Write, 2000), (Operation::Write, 2000)]).collect();
    let judged = distribution::validate(&found, &same).expect("both have requests");
    assert_eq!((judged.whole.rms_ns, judged.suspect.part.as_str()), (0, "nothing"));
    let later: Vec<_> = same.iter().map(|&(operation, ns)| (operation, ns + 500)).collect();
    let judged = distribution::validate(&found, &later).expect("both have requests");
    assert_eq!((judged.whole.rms_ns, judged.mean_difference_ns), (500, 500));
    assert_eq!(judged.classes.iter().map(|class| class.comparison.requests).collect::<Vec<_>>(), [4, 2]);
}
