//! Traces of Hajkazemi 2019's machines in a folder of the user's: the published set `2015_cloudphysics`, or a part of
//! it.
//!
//! Invariants:
//! 1. The beginning of each file has been read before the first run, so a file that is no trace is reported before
//!    runs of hours.
//! 2. A trace is read once for its extent, however many runs use it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use imbrex::{Failure, Progress, human};
use imbrex_disk::{Operation, SimTime};
use imbrex_trace::{Input, Source, TraceOptions};

use super::super::report::Report;
use super::workloads::MACHINES;

/// The user's traces, by the name of the machine.
pub struct Traces {
    folder: PathBuf,
    files: BTreeMap<&'static str, TraceFile>,
}

struct TraceFile {
    path: PathBuf,
    bytes: u64,
    /// Time of the last change, in ns since 1970.
    changed_ns: u128,
    extent: Mutex<Option<Extent>>,
}

/// Number of requests of a trace, and the space that they address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Number of all requests.
    pub requests: u64,
    /// End of the highest sector of 512 bytes that a request addresses.
    pub end_sectors: u64,
}

impl Traces {
    /// Finds the traces of the paper's machines in a folder: the files whose names begin with the name of a machine and a dot,
    /// such as `w106.csv.gz`, in a format and compression that `imbrex simulate` recognises.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, has no such file, has two files of one machine, or has one that is no trace.
    pub fn find(folder: &Path) -> Result<Traces, Failure> {
        let place = folder.display();
        let failed = |error: std::io::Error| Failure::failed(format!("--traces {place}: {error}"));
        let mut files: BTreeMap<&'static str, TraceFile> = BTreeMap::new();
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.sort();
        for path in paths {
            if !path.is_file() {
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            let machine = name.split_once('.').map(|(stem, _)| stem);
            let Some(machine) = MACHINES.iter().find(|known| Some(**known) == machine) else { continue };
            if let Some(other) = files.get(machine) {
                let (other, path) = (other.path.display(), path.display());
                return Err(Failure::usage(format!("--traces: {other} and {path} are both of {machine}"))
                    .or_try("keep one of them in the folder"));
            }
            let found = path.metadata().map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
            let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let (bytes, changed_ns) = (found.len(), changed.unwrap_or_default().as_nanos());
            let file = TraceFile { path, bytes, changed_ns, extent: Mutex::new(None) };
            file.open()?;
            files.insert(machine, file);
        }
        if files.is_empty() {
            let names = MACHINES.join(", ");
            return Err(Failure::usage(format!("--traces {place}: no file there is of a machine of Hajkazemi 2019"))
                .or_try(format!("names such as w106.csv.gz or w106.vscsi; the machines are {names}")));
        }
        Ok(Traces { folder: folder.into(), files })
    }

    /// Returns whether there is a trace of a machine.
    pub(crate) fn has(&self, machine: &str) -> bool {
        self.files.contains_key(machine)
    }

    /// Returns the names, lengths and times of all files, by which kept results of these traces are known.
    pub(crate) fn identity(&self) -> String {
        let files = self.files.keys().map(|machine| self.identity_of(machine));
        files.collect::<Vec<_>>().join(", ")
    }

    /// Returns the name, the length and the time of the last change of the file of a machine.
    ///
    /// # Panics
    ///
    /// There is no trace of the machine.
    pub(crate) fn identity_of(&self, machine: &str) -> String {
        let file = &self.files[machine];
        let name = file.path.file_name().unwrap_or_default().display();
        format!("{name} of {} bytes, changed {}", file.bytes, file.changed_ns)
    }

    /// Opens the trace of a machine.
    ///
    /// # Panics
    ///
    /// There is no trace of the machine.
    pub(crate) fn open(&self, machine: &str) -> Result<Box<dyn Source>, Failure> {
        self.files[machine].open()
    }

    /// Returns the extent of the trace of a machine. The first call reads the whole trace.
    ///
    /// # Panics
    ///
    /// There is no trace of the machine.
    pub(crate) fn extent(&self, machine: &str, progress: &Progress) -> Result<Extent, Failure> {
        let file = &self.files[machine];
        let mut known = file.extent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(extent) = *known {
            return Ok(extent);
        }
        let extent = file.read_extent(machine, progress)?;
        *known = Some(extent);
        Ok(extent)
    }

    /// Adds the names of these traces to the report of an experiment: in a remark, and in the first column of tables of
    /// machines.
    pub(crate) fn mark(&self, report: &mut Report) {
        for machine in self.files.keys() {
            let marked = format!("{machine} (trace)");
            let rows = report.tables.iter_mut().flat_map(|table| &mut table.rows);
            rows.filter_map(|row| row.first_mut())
                .filter(|cell| cell == machine)
                .for_each(|cell| cell.clone_from(&marked));
            for remark in &mut report.remarks {
                *remark = remark.replace(&format!("\n| {machine} |"), &format!("\n| {marked} |"));
            }
        }
        report.remarks.push(self.remark());
    }

    fn remark(&self) -> String {
        let files =
            self.files.values().map(|file| format!("`{}`", file.path.file_name().unwrap_or_default().display()));
        let (machines, files): (Vec<_>, Vec<_>) = (self.files.keys().copied().collect(), files.collect());
        format!(
            "The workloads of {} are the traces {} in `{}`. Rows of one of these machines say *(trace)*. The other machines are stand-ins. A trace \
             has its own times, so its results are equal with arrivals from each source. Variants of a workload, \
             such as other days, are always of the stand-in. Arrivals and seeds of stand-ins do not change a trace.",
            machines.join(", "),
            files.join(", "),
            self.folder.display()
        )
    }
}

impl TraceFile {
    fn open(&self) -> Result<Box<dyn Source>, Failure> {
        let name = self.path.display().to_string();
        let file = File::open(&self.path).map_err(|error| Failure::failed(format!("{name}: {error}")))?;
        let failed = |error: imbrex_trace::TraceError| {
            Failure::from(error)
                .or_try("`imbrex trace convert` with options for the format, to a file in format imbrex")
        };
        Ok(imbrex_trace::open(Input::file(&name, file), &TraceOptions::default()).map_err(failed)?.source)
    }

    fn read_extent(&self, machine: &str, progress: &Progress) -> Result<Extent, Failure> {
        let mut source = self.open()?;
        let bar = progress.requests(&format!("extent of {machine}"), source.expected_requests());
        let (mut extent, mut device) = (Extent { requests: 0, end_sectors: 0 }, None);
        while let Some(request) = source.next(SimTime::ZERO)? {
            if *device.get_or_insert(request.device) != request.device {
                return Err(Failure::failed(format!("{}: has requests of several devices", self.path.display()))
                    .or_try("`imbrex trace convert` with --device, which keeps those of one"));
            }
            extent.requests += 1;
            if extent.requests.is_multiple_of(1 << 16) {
                bar.set_position(extent.requests);
                if progress.should_stop() {
                    return Err(Failure::interrupted());
                }
            }
            if request.command.operation != Operation::Flush {
                extent.end_sectors = extent.end_sectors.max(request.command.end().0);
            }
        }
        bar.finish_and_clear();
        if extent.requests == 0 {
            return Err(Failure::failed(format!("{}: has no requests", self.path.display())));
        }
        progress.say(&format!("{machine}: {} requests in {}", human::count(extent.requests), self.path.display()));
        Ok(extent)
    }
}

#[cfg(test)]
mod tests {
    //! Goal: the files of a folder are found and read as the traces of machines, and a file that is no trace is refused
    //! at once. Method: files in the formats of the published set, made here.

    use imbrex_trace::generators::{Arrivals, Choices};

    use super::super::super::{Replication, Table};
    use super::super::workloads::Case;
    use super::*;

    /// Three requests in the published set's table: the operations are SCSI's WRITE (10) and READ (10).
    const ROWS: &str = "version,time,op,size,lbn\n1,0.5,2a,4096,800\n1,0.75,28,8192,16\n1,1.5,2a,512,100\n";

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, contents) in files {
            std::fs::write(folder.path().join(name), contents).expect("written");
        }
        folder
    }

    #[test]
    fn a_trace_takes_the_place_of_the_stand_in() {
        let folder = folder(&[("w106.csv", ROWS), ("W46.csv", ROWS), ("w107.csv", "of no machine"), ("README", "")]);
        let traces = Traces::find(folder.path()).expect("there are two");
        assert!(traces.has("w106") && traces.has("w46") && !traces.has("w08"));
        let progress = Progress::silent();
        let replication = Replication::new(&progress, 3).with_traces(Some(&traces));
        let of = |name: &'static str, arrivals: Arrivals| Case::of(name, arrivals).of_replication(&replication);
        let case = of("w106", Arrivals::ALL[1]);
        assert_eq!(case, of("w106", Arrivals::ALL[2]), "a trace has its own arrivals");
        let kept = case.kept_key(&replication);
        assert!(kept.starts_with(&format!("w106 trace w106.csv of {} bytes, changed ", ROWS.len())), "{kept}");
        assert_eq!(traces.extent("w106", &progress).expect("it is read"), Extent { requests: 3, end_sectors: 808 });
        assert_eq!(case.reach_sectors(&replication).expect("it is read"), Some(808));
        let mut source = case.open(&replication).expect("it opens");
        let first = source.next(SimTime::ZERO).expect("it is read").expect("it has requests").command;
        assert_eq!((first.operation, first.lba.0, first.sectors), (Operation::Write, 800, 8));
        assert!(!of("w08", Arrivals::default()).is_recorded);
        let days = Case { choices: Choices { days: 2, ..Choices::default() }, ..Case::of("w106", Arrivals::default()) };
        assert!(!days.of_replication(&replication).is_recorded, "a variant is of the stand-in");
    }

    #[test]
    fn a_folder_without_usable_traces_is_refused() {
        let cases: [(&[(&str, &str)], &str); 4] = [
            (&[], "no file there is of a machine"),
            (&[("notes.csv", ROWS)], "no file there is of a machine"),
            (&[("w106.csv", ROWS), ("w106.txt", ROWS)], "are both of w106"),
            (&[("w106.csv", "not a trace")], "w106.csv"),
        ];
        for (files, message) in cases {
            let folder = folder(files);
            let failure = Traces::find(folder.path()).err().expect("it is refused");
            assert!(failure.message.contains(message) && failure.remedy.is_some(), "{failure:?}");
        }
    }

    #[test]
    fn tables_and_a_remark_name_the_traces() {
        let folder = folder(&[("w106.csv", ROWS)]);
        let traces = Traces::find(folder.path()).expect("there is one");
        let rows = [["w106", "1"], ["w46", "2"], ["w106, altered", "3"]].map(|row| row.map(String::from).to_vec());
        let remarks = vec!["Means:\n\n| | a |\n|---|---|\n| w10 | 1 |\n| w106 | 2 |".to_string()];
        let tables = vec![Table { rows: rows.to_vec(), ..Table::default() }];
        let mut report = Report { tables, remarks, ..Report::default() };
        traces.mark(&mut report);
        let first: Vec<&str> = report.tables[0].rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(first, ["w106 (trace)", "w46", "w106, altered"]);
        assert!(report.remarks[0].ends_with("| w10 | 1 |\n| w106 (trace) | 2 |"), "{}", report.remarks[0]);
        assert!(report.remarks[1].contains("`w106.csv`"), "{}", report.remarks[1]);
    }

    #[test]
    fn a_trace_of_several_devices_is_refused() {
        let rows = "10,web,1,Read,512,512,7\n11,hm,1,Write,1024,4096,7\n";
        let folder = folder(&[("w106.csv", rows)]);
        let traces = Traces::find(folder.path()).expect("the format is known");
        let failure = traces.extent("w106", &Progress::silent()).expect_err("there are two devices");
        assert!(failure.message.contains("has requests of several devices"), "{failure:?}");
    }

    #[test]
    fn a_trace_without_requests_is_refused_before_its_runs() {
        let folder = folder(&[("w106.csv", "version,time,op,size,lbn\n")]);
        let traces = Traces::find(folder.path()).expect("it has a header");
        let failure = traces.extent("w106", &Progress::silent()).expect_err("there is nothing to run");
        assert!(failure.message.contains("has no requests"), "{failure:?}");
    }
}
