//! `imbrex fs bench`: the loads of Singh 2014 §5.2 and Jin 2014 §III, on devices that are not mounted, in virtual time at
//! the speed of the drive; or in a mounted directory of whatever file system, by the wall clock.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use imbrex::{Failure, Progress, human};
use imbrex_fs::device::BLOCK_BYTES;
use imbrex_fs::load::bench::{self, Asked, Benchmark, Phase, Sizes};
use imbrex_fs::load::{InDirectory, LoadError, OnCore, run_now};
use imbrex_fs::{Clock, Fs};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::args::BenchArgs;
use super::devices::{self, Devices, Purpose};
use super::{Offline, print, status};
use crate::error::ExitCode;
use crate::interrupt;
use crate::output;

/// How long the live page of a served drive may take to answer.
const PAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs it, or lists what there is.
pub fn run(args: &BenchArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let Some(name) = &args.name else { return list() };
    let benchmark = bench::named(name).ok_or_else(|| {
        let known: Vec<&str> = bench::ALL.iter().map(|benchmark| benchmark.name).collect();
        Failure::usage(format!("there is no benchmark '{name}'")).or_try(known.join(", "))
    })?;
    if args.places.is_empty() {
        return Err(Failure::usage("no place to run it").or_try("the devices of a file system, or a mounted directory"));
    }
    let sizes = sizes(args, benchmark)?;
    let bar = Progress::on_terminal(quiet || args.json).steps(benchmark.name);
    let own = bar.clone();
    let watch: bench::Watch = Arc::new(move || {
        own.inc(1);
        !interrupt::requested()
    });
    let asked = Asked { sizes, seed: args.seed, watch };
    let (phases, found) = match &args.places[..] {
        [directory] if directory.is_dir() => (in_directory(args, benchmark, directory, &asked, &bar)?, Value::Null),
        _ if args.served.is_some() => {
            return Err(Failure::usage("--served is for a directory").or_try("without it: the time is the drive's own"));
        }
        _ => on_devices(args, benchmark, &asked, &bar)?,
    };
    bar.finish_and_clear();
    let document = document(args, benchmark, &asked, &phases, found);
    if args.json {
        print(&document)?;
    } else {
        output::line(&text(&document, &phases))?;
    }
    Ok(ExitCode::Done)
}

fn list() -> Result<ExitCode, Failure> {
    let mut lines = Vec::new();
    for benchmark in bench::ALL {
        lines.push(format!("{:<12} {}", benchmark.name, benchmark.about));
        lines.push(format!("{:<12} {}; {}", "", benchmark.source, sizes_in_words(&benchmark.defaults)));
    }
    output::line(&lines.join("\n"))?;
    Ok(ExitCode::Done)
}

fn sizes_in_words(sizes: &Sizes) -> String {
    let mut words = Vec::new();
    words.extend(sizes.files.map(|files| format!("--files {files}")));
    words.extend(sizes.file_bytes.map(|bytes| format!("--file-size {bytes}")));
    words.extend(sizes.operations.map(|operations| format!("--operations {operations}")));
    words.extend(sizes.workers.map(|workers| format!("--threads {workers}")));
    words.join(" ")
}

/// The sizes of the benchmark, with those that were chosen.
fn sizes(args: &BenchArgs, benchmark: &Benchmark) -> Result<Sizes, Failure> {
    let choose = |flag: &str, chosen: Option<u64>, own: Option<u64>| match (chosen, own) {
        (Some(_), None) => Err(Failure::usage(format!("{flag}: '{}' has no such size", benchmark.name))
            .or_try(sizes_in_words(&benchmark.defaults))),
        (Some(0), _) => Err(Failure::usage(format!("{flag} must not be 0"))),
        (chosen, own) => Ok(chosen.or(own)),
    };
    let own = benchmark.defaults;
    Ok(Sizes {
        files: choose("--files", args.files, own.files)?,
        file_bytes: choose("--file-size", args.file_size, own.file_bytes)?,
        operations: choose("--operations", args.operations, own.operations)?,
        workers: choose("--threads", args.threads, own.workers)?,
    })
}

/// A phase, with the simulated time of the served drive that the directory lies on, and what it cost besides on devices of ours.
type Timed = (Phase, Option<u64>, Option<Costs>);

/// What a phase cost, or was spared, besides its data.
#[derive(Clone, Copy, Default, Debug)]
struct Costs {
    /// Bytes written for the sake of records alone.
    record_bytes: u64,
    /// Pieces of files read from the hot zone, and all that were read; nothing where there is no zone.
    hot_reads: Option<(u64, u64)>,
}

impl Costs {
    /// Since the file system was mounted.
    fn so_far(fs: &Fs) -> Costs {
        let status = fs.status();
        let counters = status.hot.counters;
        Costs {
            record_bytes: status.usage.records.1 * BLOCK_BYTES as u64,
            hot_reads: (status.hot.blocks > 0).then_some((counters.hits, counters.hits + counters.misses)),
        }
    }

    fn since(self, before: Costs) -> Costs {
        let reads = |(hits, all): (u64, u64)| {
            let (hits_before, all_before) = before.hot_reads.unwrap_or_default();
            (hits - hits_before, all - all_before)
        };
        Costs { record_bytes: self.record_bytes - before.record_bytes, hot_reads: self.hot_reads.map(reads) }
    }
}

fn in_directory(
    args: &BenchArgs,
    benchmark: &Benchmark,
    directory: &Path,
    asked: &Asked,
    bar: &ProgressBar,
) -> Result<Vec<Timed>, Failure> {
    let files = InDirectory::new(directory, &args.folder).map_err(|error| failure(args, error))?;
    let simulated_ns = || args.served.as_deref().map(simulated_ns).transpose();
    let mut before_ns = simulated_ns()?;
    let mut disk = Vec::new();
    let ended = |phase: &Phase| {
        bar.set_message(phase.name);
        disk.push(simulated_ns().map(|now_ns| {
            let took_ns = now_ns.zip(before_ns).map(|(now_ns, before_ns)| now_ns - before_ns);
            before_ns = now_ns;
            took_ns
        }));
    };
    let phases = run_now(bench::run(benchmark, &files, asked, ended)).map_err(|error| failure(args, error))?;
    phases.into_iter().zip(disk).map(|(phase, disk)| Ok((phase, disk?, None))).collect()
}

/// The simulated time of the served drive whose live page is at `address`.
fn simulated_ns(address: &str) -> Result<u64, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("--served {address}: {error}"))
            .or_try("the address that `imbrex serve --window ADDRESS` printed")
    };
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(address).map_err(failed)?;
    stream.set_read_timeout(Some(PAGE_TIMEOUT)).map_err(failed)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(failed)?;
    let seconds = answer.lines().find_map(|line| line.strip_prefix("imbrex_simulated_seconds ")?.parse::<f64>().ok());
    let missing = || failed(std::io::Error::other("no figures of a served drive there"));
    Ok((seconds.ok_or_else(missing)? * 1e9) as u64)
}

fn on_devices(
    args: &BenchArgs,
    benchmark: &'static Benchmark,
    asked: &Asked,
    bar: &ProgressBar,
) -> Result<(Vec<Timed>, Value), Failure> {
    let clock = Clock::in_virtual_time();
    let devices = Devices::open(&clock, &args.places, Purpose::Work, true)?;
    let Offline { clock, devices, fs, .. } = Offline::mount(clock, devices, Purpose::Work)?;
    let (own, asked, bar) = (fs.clone(), asked.clone(), bar.clone());
    let (folder, page_cache) = (args.folder.clone(), args.page_cache);
    let work = async move {
        let files = OnCore::new(&own, &folder).await?.with_page_cache(page_cache);
        let (mut costs, mut before) = (Vec::new(), Costs::so_far(&own));
        let ended = |phase: &Phase| {
            bar.set_message(phase.name);
            let now = Costs::so_far(&own);
            costs.push(now.since(before));
            before = now;
        };
        let phases = bench::run(benchmark, &files, &asked, ended).await?;
        Ok::<_, LoadError>((phases, costs))
    };
    let outcome = clock.run(work).map_err(Failure::failed)?;
    let ending = fs.clone();
    devices::run(&clock, async move { ending.unmount().await })?;
    devices.shut_down()?;
    let (phases, costs) = outcome.map_err(|error| failure(args, error))?;
    let timed = phases.into_iter().zip(costs).map(|(phase, costs)| {
        let elapsed_ns = phase.elapsed_ns;
        (phase, Some(elapsed_ns), Some(costs))
    });
    Ok((timed.collect(), status::document(&fs, &devices.paths, None)))
}

/// The failure of a load; where its folder is there already, with what to do.
fn failure(args: &BenchArgs, error: LoadError) -> Failure {
    let failure = Failure::failed(&error);
    if error.operation == "mkdir" && error.path.ends_with(&args.folder) {
        return failure.or_try("--folder NAME with a name that is not taken");
    }
    if error.is_no_space {
        return failure.or_try("a larger drive, or fewer --files or --operations");
    }
    failure
}

fn document(args: &BenchArgs, benchmark: &Benchmark, asked: &Asked, phases: &[Timed], found: Value) -> Value {
    json!({
        "schema": "imbrex.fs-bench/1",
        "benchmark": benchmark.name,
        "source": benchmark.source,
        "places": args.places,
        "folder": args.folder,
        "seed": args.seed,
        "files": asked.sizes.files,
        "file_bytes": asked.sizes.file_bytes,
        "operations": asked.sizes.operations,
        "threads": asked.sizes.workers,
        "clock": if found.is_null() { "wall" } else { "virtual" },
        "page_cache_bytes": if found.is_null() { Value::Null } else { json!(args.page_cache) },
        "phases": phases.iter().map(phase_as_json).collect::<Vec<_>>(),
        "file_system": found,
    })
}

fn phase_as_json((phase, disk_ns, costs): &Timed) -> Value {
    let hot_reads = costs.and_then(|costs| costs.hot_reads);
    let kinds = phase.measured.iter().map(|(kind, figures)| {
        let latency = &figures.latency;
        let figures = json!({
            "count": latency.count(),
            "bytes": figures.bytes,
            "latency_ns": {
                "mean": latency.mean_ns(),
                "p50": latency.quantile_ns(0.5),
                "p99": latency.quantile_ns(0.99),
                "p999": latency.quantile_ns(0.999),
                "max": latency.max_ns(),
            },
        });
        (kind.name().to_string(), figures)
    });
    json!({
        "name": phase.name,
        "done": phase.done,
        "operations": phase.operations(),
        "bytes": phase.bytes(),
        "elapsed_ns": phase.elapsed_ns,
        "disk_ns": disk_ns,
        "record_bytes": costs.map(|costs| costs.record_bytes),
        "hot_zone": hot_reads.map(|(hits, reads)| json!({ "hits": hits, "reads": reads })),
        "kinds": kinds.collect::<serde_json::Map<_, _>>(),
    })
}

/// `amount` a second, of a time.
fn rate(amount: u64, ns: u64) -> f64 {
    amount as f64 * 1e9 / ns.max(1) as f64
}

fn text(document: &Value, phases: &[Timed]) -> String {
    let is_virtual = document["clock"] == "virtual";
    let has_disk = !is_virtual && phases.iter().any(|(_, disk_ns, _)| disk_ns.is_some());
    let costs = || phases.iter().filter_map(|(.., costs)| *costs);
    let has_records = costs().any(|costs| costs.record_bytes > 0);
    let has_hot_zone = costs().any(|costs| costs.hot_reads.is_some());
    let mut columns = vec!["phase", "done", "time", "a second", "MB/s"];
    columns.extend(has_disk.then_some("drive"));
    columns.extend(has_records.then_some("records"));
    columns.extend(has_hot_zone.then_some("hot reads"));
    columns.extend(["kind", "count", "mean", "p99", "longest"]);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled).set_header(columns);
    for (phase, disk_ns, costs) in phases {
        let costs = costs.unwrap_or_default();
        let mut head = vec![
            phase.name.to_string(),
            human::count(phase.done),
            human::duration_ns(phase.elapsed_ns),
            format!("{:.1}", rate(phase.done, phase.elapsed_ns)),
            format!("{:.2}", rate(phase.bytes(), phase.elapsed_ns) / 1e6),
        ];
        head.extend(has_disk.then(|| disk_ns.map_or_else(|| "–".into(), human::duration_ns)));
        head.extend(has_records.then(|| human::bytes(costs.record_bytes)));
        let (hits, reads) = costs.hot_reads.unwrap_or_default();
        head.extend(has_hot_zone.then(|| format!("{hits} of {reads}")));
        for (kind, figures) in &phase.measured {
            let latency = &figures.latency;
            let times = [latency.mean_ns(), latency.quantile_ns(0.99), latency.max_ns()];
            let mut row = head.clone();
            row.extend([kind.name().to_string(), human::count(latency.count())]);
            row.extend(times.map(human::duration_ns));
            table.add_row(row);
            head.iter_mut().for_each(String::clear);
        }
    }
    let numbers = table.column_count() - 4;
    for (number, column) in table.column_iter_mut().enumerate() {
        if number > 0 && number != numbers {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.push(match (is_virtual, has_disk) {
        (true, _) => "times: those of the drives, by the virtual clock; a processor takes none".into(),
        (false, true) => "times: by the wall clock; 'drive': simulated time of the served drive".into(),
        (false, false) => "times: by the wall clock".to_string(),
    });
    lines.join("\n")
}
