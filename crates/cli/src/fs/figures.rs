//! The figures of a mounted file system, over HTTP and on a Unix socket: those that `imbrex fs stat` prints.
//!
//! The threads that serve the figures read them like any other process, by the extended attribute of the directory. So
//! they share no state with the thread that serves the file system.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use imbrex::Failure;
use imbrex_serve::PageLimits;
use imbrex_serve::http::{self, Shown};
use serde_json::Value;

use super::options::Options;
use super::{stat, status};
use crate::serve::cannot_listen;

/// Metrics for Prometheus: name, kind, help, JSON pointer into the status, and the factor from the status' unit to the
/// one in the name.
const METRICS: [(&str, &str, &str, &str, f64); 24] = [
    ("imbrex_fs_bytes", "gauge", "Room for data.", "/blocks", 4096.0),
    ("imbrex_fs_live_bytes", "gauge", "Data of files.", "/live_blocks", 4096.0),
    ("imbrex_fs_dead_bytes", "gauge", "Dead until it is cleaned.", "/dead_blocks", 4096.0),
    ("imbrex_fs_free_bytes", "gauge", "Free, as df shows it.", "/free_blocks", 4096.0),
    ("imbrex_fs_unusable_bytes", "gauge", "Free in runs too short to be written.", "/unusable_blocks", 4096.0),
    ("imbrex_fs_files", "gauge", "Files.", "/files", 1.0),
    ("imbrex_fs_files_free", "gauge", "Files that could still be made.", "/files_free", 1.0),
    ("imbrex_fs_zones", "gauge", "Zones.", "/zones", 1.0),
    ("imbrex_fs_zones_empty", "gauge", "Zones with nothing written.", "/zones_empty", 1.0),
    ("imbrex_fs_log_used_blocks", "gauge", "Blocks of the log in use.", "/log_blocks/used", 1.0),
    ("imbrex_fs_staged_bytes", "gauge", "In memory and not yet written.", "/staged_bytes", 1.0),
    ("imbrex_fs_files_written_total", "counter", "Files written.", "/since_mounted/files_written", 1.0),
    ("imbrex_fs_checkpoints_total", "counter", "Checkpoints taken.", "/since_mounted/checkpoints", 1.0),
    ("imbrex_fs_cleaned_bytes_total", "counter", "Copied by the cleaner.", "/since_mounted/blocks_cleaned", 4096.0),
    (
        "imbrex_fs_devices_on_full_disks",
        "gauge",
        "Devices on a full disk of the host: writes wait.",
        "/devices_on_full_disks",
        1.0,
    ),
    ("imbrex_fs_devices_displaced", "gauge", "Devices whose file lost its path.", "/devices_displaced", 1.0),
    ("imbrex_fs_hot_zone_bytes", "gauge", "Room of the hot zone.", "/hot_zone/blocks", 4096.0),
    ("imbrex_fs_hot_zone_used_bytes", "gauge", "Files in the hot zone.", "/hot_zone/used_blocks", 4096.0),
    (
        "imbrex_fs_hot_zone_alone_bytes",
        "gauge",
        "Files that are only in the hot zone.",
        "/hot_zone/alone_blocks",
        4096.0,
    ),
    ("imbrex_fs_hot_zone_hits_total", "counter", "Reads from the hot zone.", "/hot_zone/hits", 1.0),
    ("imbrex_fs_hot_zone_misses_total", "counter", "Reads from the drives.", "/hot_zone/misses", 1.0),
    ("imbrex_fs_record_bytes_total", "counter", "Written because of records.", "/since_mounted/record_blocks", 4096.0),
    ("imbrex_fs_cleaned_zones_total", "counter", "Zones emptied.", "/since_mounted/zones_cleaned", 1.0),
    (
        "imbrex_fs_data_written_bytes_total",
        "counter",
        "Written to the drive.",
        "/since_mounted/data/blocks_written",
        4096.0,
    ),
];

/// A mounted directory whose figures are served.
struct Directory(PathBuf);

impl Directory {
    fn document(&self) -> Result<Value, Failure> {
        stat::ask(&self.0)
    }
}

impl Shown for Directory {
    fn page(&self) -> Option<&'static str> {
        None
    }

    fn state(&self) -> String {
        self.document().unwrap_or(Value::Null).to_string()
    }

    fn metrics(&self) -> String {
        self.document().map_or_else(|_| String::new(), |document| prometheus(&document))
    }

    fn text(&self) -> String {
        let Ok(document) = self.document() else { return "the file system is not served\n".into() };
        let lines = status::lines(&document);
        lines.into_iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
    }
}

fn prometheus(document: &Value) -> String {
    let mut out = String::new();
    for (name, kind, help, place, one) in METRICS {
        // The value of a list is its length.
        let number = |value: &Value| value.as_f64().or_else(|| value.as_array().map(|list| list.len() as f64));
        let Some(value) = document.pointer(place).and_then(number) else { continue };
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {}", value * one);
    }
    out
}

/// The threads that serve figures.
pub(super) struct Figures {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Figures {
    /// Starts the threads that serve the figures of the file system on `directory`, at the addresses in `options`.
    pub(super) fn serve(directory: &Path, options: &Options, quiet: bool) -> Result<Figures, Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let stop: http::Stop = Arc::new(move || told.load(Ordering::Relaxed));
        let shown: Arc<dyn Shown> = Arc::new(Directory(directory.to_path_buf()));
        let mut threads = Vec::new();
        if let Some(address) = &options.window {
            let (bound, thread) = http::start(address, &[], PageLimits::default(), shown.clone(), stop.clone())
                .map_err(|error| cannot_listen(address, "-o window=", "an address such as 127.0.0.1:8080", &error))?;
            if !quiet {
                message!("its figures: http://{bound}/");
            }
            threads.push(thread);
        }
        if let Some(path) = &options.stats {
            let thread = http::start_socket(path, shown, stop)
                .map_err(|error| cannot_listen(path.display(), "-o stats=", "another path", &error))?;
            threads.push(thread);
        }
        Ok(Figures { is_over, threads })
    }

    /// Ends the threads.
    pub(super) fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a thread that only looks does not panic");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_figure_is_told_in_its_unit() {
        let document = json!({ "blocks": 2, "files": 3, "devices_displaced": [{}, {}], "since_mounted": { "data": { "blocks_written": 5 } } });
        let text = prometheus(&document);
        for line in [
            "imbrex_fs_bytes 8192",
            "imbrex_fs_files 3",
            "imbrex_fs_devices_displaced 2",
            "imbrex_fs_data_written_bytes_total 20480",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
