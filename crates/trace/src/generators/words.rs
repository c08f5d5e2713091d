//! The words that describe a workload. Parsing, printing and help all use one table with an entry for each word.
//!
//! Invariants:
//! 1. The function `set` of an entry reads the output of its `print` back as an equal value.
//! 2. Words that set the same field have equal `field` names, so that the parser can refuse two of them in one phase.

use std::fmt;

use imbrex_units::SimDuration;

use super::distribution::{AccessZone, Distribution};
use super::error::WordError;
use super::quantity as read;
use super::quantity::{Share, print_bytes, print_duration, print_rate};
use super::spec::{Job, Mode, Pattern, PerOperation, Phase, SECTOR_BYTES, SizeShare, Whole, WorkloadSpec};

/// The help entry of a word: a key that a description in fio's words may contain, in the form `key=value`.
pub struct WordInfo {
    /// Name of the word: the part before `=` in `key=value`.
    pub key: &'static str,
    /// Form of the value, such as `SIZE|PERCENT%`; empty if the word needs no value.
    pub takes: &'static str,
    /// Value that applies if neither this phase nor an earlier one has the word; empty if there is none.
    pub default: &'static str,
    /// Meaning of the word, as one line for the user.
    pub help: &'static str,
    /// Field that the word sets. Words with the same field exclude each other in a phase.
    pub(super) field: &'static str,
    /// Whether the word may occur without a value.
    pub(super) bare: bool,
    /// Whether the value may contain commas.
    pub(super) list: bool,
    pub(super) effect: Effect,
}

/// The effect of a word.
pub(super) enum Effect {
    /// The word sets a field of its phase and of the later phases.
    Job { set: fn(&mut Job, &str) -> Result<(), WordError>, print: fn(&Job) -> Option<String> },
    /// The word sets a field of the whole workload.
    Whole { set: fn(&mut Whole, &str) -> Result<(), WordError>, print: fn(&Whole) -> String },
    /// The word is an idle phase.
    Idle,
    /// The word is one of fio's that changes nothing here. The function refuses a value that would.
    Nothing(fn(&str) -> Result<(), WordError>),
}

/// Engines of fio that have one request outstanding, whatever `iodepth` is.
pub(super) const SYNCHRONOUS_ENGINES: [&str; 5] = ["sync", "psync", "vsync", "pvsync", "pvsync2"];
/// Engines of fio that have `iodepth` requests outstanding.
const ASYNCHRONOUS_ENGINES: [&str; 6] = ["libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "nbd"];

/// Returns the entry of a word of fio that changes nothing here.
const fn nothing(
    key: &'static str,
    takes: &'static str,
    help: &'static str,
    check: fn(&str) -> Result<(), WordError>,
) -> WordInfo {
    WordInfo { key, takes, default: "", help, field: key, bare: true, list: false, effect: Effect::Nothing(check) }
}

/// Checks a switch of which only one position can be honoured: `honoured` is it, and `why` the reason.
fn only(text: &str, honoured: bool, why: &str) -> Result<(), WordError> {
    if read::switch(text)? == honoured {
        return Ok(());
    }
    Err(WordError::new(why, format!("leave it out, or write {}", print_switch(honoured))))
}

fn engine(text: &str) -> Result<(), WordError> {
    if SYNCHRONOUS_ENGINES.contains(&text) || ASYNCHRONOUS_ENGINES.contains(&text) {
        return Ok(());
    }
    Err(WordError::new(
        format!("the engine '{text}' has no meaning here"),
        format!(
            "leave it out, or write one of {}, {}",
            ASYNCHRONOUS_ENGINES.join(", "),
            SYNCHRONOUS_ENGINES.join(", ")
        ),
    ))
}

fn one_job(text: &str) -> Result<(), WordError> {
    match read::count(text)? {
        1 => Ok(()),
        jobs => Err(WordError::new(
            format!("{jobs} jobs at once cannot be honoured: a workload is one job"),
            format!("write iodepth={jobs} for as many requests outstanding, or the jobs as phases"),
        )),
    }
}

const fn job(
    key: &'static str,
    takes: &'static str,
    default: &'static str,
    help: &'static str,
    set: fn(&mut Job, &str) -> Result<(), WordError>,
    print: fn(&Job) -> Option<String>,
) -> WordInfo {
    WordInfo { key, takes, default, help, field: key, bare: false, list: false, effect: Effect::Job { set, print } }
}

/// Returns the entry of another word for `field`. It is never printed.
const fn alias(
    key: &'static str,
    field: &'static str,
    takes: &'static str,
    help: &'static str,
    set: fn(&mut Job, &str) -> Result<(), WordError>,
) -> WordInfo {
    let effect = Effect::Job { set, print: |_| None };
    WordInfo { key, takes, default: "", help, field, bare: false, list: false, effect }
}

const fn whole(
    key: &'static str,
    default: &'static str,
    help: &'static str,
    set: fn(&mut Whole, &str) -> Result<(), WordError>,
    print: fn(&Whole) -> String,
) -> WordInfo {
    let effect = Effect::Whole { set, print };
    WordInfo { key, takes: "COUNT", default, help, field: key, bare: false, list: false, effect }
}

/// Returns the help entries of all words, in the order of the help text.
pub fn words() -> &'static [WordInfo] {
    WORDS
}

/// Returns the word called `key`, if there is one.
pub(super) fn named(key: &str) -> Option<&'static WordInfo> {
    WORDS.iter().find(|word| word.key == key)
}

const WORDS: &[WordInfo] = &[
    job(
        "rw",
        "PATTERN[:N]",
        "read",
        "read, write, rw, trim, randread, randwrite, randrw or randtrim; after a colon the bytes a sequential pattern \
         skips after each request, or the requests a random one makes in sequence at each place",
        |job, text| set(&mut job.pattern, pattern(text)),
        |job| Some(print_pattern(job.pattern)),
    ),
    WordInfo {
        field: "sizes",
        list: true,
        ..job(
            "bs",
            "SIZE[,SIZE[,SIZE]]",
            "4k",
            "block size of reads, writes and trims",
            |job, text| set(&mut job.sizes, per_operation(text, single_size)),
            |job| print_sizes(job, true),
        )
    },
    WordInfo {
        field: "sizes",
        list: true,
        ..job(
            "bssplit",
            "SIZE/PERCENT:…[,…]",
            "",
            "block sizes and their shares of the requests; sizes without a percentage divide the rest",
            |job, text| set(&mut job.sizes, per_operation(text, split_sizes)),
            |job| print_sizes(job, false),
        )
    },
    job(
        "blockalign",
        "SIZE",
        "the smallest block size",
        "alignment of random places; 0 sets the default",
        |job, text| set(&mut job.align_bytes, sector_bytes(text)),
        |job| Some(print_bytes(job.align_bytes)),
    ),
    job(
        "size",
        "SIZE|PERCENT%",
        "the drive, from offset on",
        "size of the region; if no other word ends the phase, it ends after one pass or this many bytes",
        |job, text| set(&mut job.size, read::span(text).map(Some)),
        |job| job.size.map(|size| size.to_string()),
    ),
    job(
        "offset",
        "SIZE|PERCENT%",
        "0",
        "where the region begins",
        |job, text| set(&mut job.offset, read::span(text)),
        |job| Some(job.offset.to_string()),
    ),
    job(
        "io_size",
        "SIZE",
        "",
        "bytes after which the phase ends, however large the region; 0 sets no such limit",
        |job, text| set(&mut job.io_bytes, read::bytes(text)),
        |job| Some(print_bytes(job.io_bytes)),
    ),
    job(
        "number_ios",
        "COUNT",
        "",
        "reads, writes and trims after which the phase ends (flushes come on top); 0 sets no such limit",
        |job, text| set(&mut job.number_ios, read::count(text)),
        |job| Some(job.number_ios.to_string()),
    ),
    job(
        "runtime",
        "DURATION",
        "",
        "simulated time after which the phase ends; a bare number is seconds, 0 sets no such limit",
        |job, text| set(&mut job.runtime, read::duration(text, 1_000_000_000)),
        |job| Some(print_duration(job.runtime)),
    ),
    job(
        "random_distribution",
        "DISTRIBUTION",
        "random",
        "random, zipf:THETA, pareto:SHARE, normal:PERCENT or zoned:REQUESTS/REGION:… (percent, from the region's start)",
        |job, text| set(&mut job.distribution, distribution(text)),
        |job| Some(print_distribution(&job.distribution)),
    ),
    WordInfo {
        bare: true,
        ..job(
            "randommap",
            "on|off",
            "off",
            "every block of the region is drawn once before any is drawn again",
            |job, text| set(&mut job.random_map, read::switch(text)),
            |job| Some(print_switch(job.random_map)),
        )
    },
    WordInfo {
        bare: true,
        ..alias("norandommap", "randommap", "", "the default: a block may be drawn again at any time", |job, text| {
            set(&mut job.random_map, read::switch(text).map(|off| !off))
        })
    },
    WordInfo {
        list: true,
        ..job(
            "percentage_random",
            "PERCENT[,PERCENT[,PERCENT]]",
            "100",
            "share of a random pattern's requests at a random place; the others begin where the previous one ended",
            |job, text| set(&mut job.random_share, per_operation(text, read::share)),
            |job| Some(print_list(&job.random_share, |share| share.to_string())),
        )
    },
    job(
        "rwmixread",
        "PERCENT",
        "50",
        "share of reads among the requests of rw and randrw",
        |job, text| set(&mut job.read_share, read::share(text)),
        |job| Some(job.read_share.to_string()),
    ),
    alias("rwmixwrite", "rwmixread", "PERCENT", "share of writes; the reads are the rest", |job, text| {
        set(&mut job.read_share, read::share(text).map(Share::rest))
    }),
    job(
        "thinktime",
        "DURATION",
        "0",
        "pause before a request once the queue has a free place; a bare number is microseconds",
        |job, text| set(&mut job.thinktime, read::duration(text, 1_000)),
        |job| Some(print_duration(job.thinktime)),
    ),
    job(
        "thinktime_blocks",
        "COUNT",
        "1",
        "requests between two thinktimes",
        |job, text| set(&mut job.thinktime_blocks, positive(text)),
        |job| Some(job.thinktime_blocks.to_string()),
    ),
    job(
        "rate_iops",
        "RATE",
        "",
        "requests per second in all, made on time whether or not the drive keeps up; 0 sets no rate",
        |job, text| set(&mut job.rate_thousandths, read::rate(text)),
        |job| Some(print_rate(job.rate_thousandths)),
    ),
    job(
        "rate_process",
        "linear|poisson",
        "linear",
        "whether the requests of rate_iops come evenly or at random",
        |job, text| set(&mut job.poisson, rate_process(text)),
        |job| Some(if job.poisson { "poisson" } else { "linear" }.into()),
    ),
    job(
        "fsync",
        "COUNT",
        "0",
        "writes between two flushes; 0 is none",
        |job, text| set(&mut job.flush_every, read::count(text)),
        |job| Some(job.flush_every.to_string()),
    ),
    alias("fdatasync", "fsync", "COUNT", "the same as fsync, on a drive", |job, text| {
        set(&mut job.flush_every, read::count(text))
    }),
    WordInfo {
        bare: true,
        ..job(
            "fua",
            "on|off",
            "off",
            "writes are acknowledged only when on the medium",
            |job, text| set(&mut job.fua, read::switch(text)),
            |job| Some(print_switch(job.fua)),
        )
    },
    alias("sync", "fua", "on|off", "the same as fua, on a drive", |job, text| set(&mut job.fua, read::switch(text))),
    WordInfo {
        key: "idle",
        takes: "DURATION",
        default: "",
        help: "a phase of its own: a pause of this length after all earlier requests have completed",
        field: "idle",
        bare: false,
        list: false,
        effect: Effect::Idle,
    },
    WordInfo {
        list: true,
        ..alias("blocksize", "sizes", "SIZE[,SIZE[,SIZE]]", "fio's other name of bs", |job, text| {
            set(&mut job.sizes, per_operation(text, single_size))
        })
    },
    alias("readwrite", "rw", "PATTERN[:N]", "fio's other name of rw", |job, text| set(&mut job.pattern, pattern(text))),
    alias("io_limit", "io_size", "SIZE", "fio's other name of io_size", |job, text| {
        set(&mut job.io_bytes, read::bytes(text))
    }),
    nothing(
        "time_based",
        "on",
        "fio's word for a phase that lasts its runtime, as every phase with a runtime does",
        |text| only(text, true, "a phase with a runtime lasts that long, even if it passes its region several times"),
    ),
    nothing("numjobs", "1", "fio's word for the number of jobs; a workload is one", one_job),
    nothing("direct", "on", "fio's word for requests past the page cache; a drive has none", |text| {
        only(text, true, "requests reach the drive directly: there is no page cache here")
    }),
    nothing("buffered", "off", "fio's word for requests through the page cache; a drive has none", |text| {
        only(text, false, "requests reach the drive directly: there is no page cache here")
    }),
    nothing(
        "ioengine",
        "ENGINE",
        "fio's word for the interface to the kernel: libaio, io_uring, psync and the like",
        engine,
    ),
    nothing("group_reporting", "on|off", "fio's word for its report", |text| read::switch(text).map(drop)),
    nothing("thread", "on|off", "fio's word for threads instead of processes", |text| read::switch(text).map(drop)),
    nothing("invalidate", "on|off", "fio's word for an empty page cache; a drive has none", |text| {
        read::switch(text).map(drop)
    }),
    nothing("randrepeat", "on", "fio's word for the same random numbers in each run, as they are here", |text| {
        only(text, true, "the random numbers of a seed are the same in each run")
    }),
    nothing("name", "TEXT", "fio's word for the name of a job", |_| Ok(())),
    whole(
        "iodepth",
        "1",
        "requests outstanding, in the workload as a whole",
        |whole, text| set(&mut whole.iodepth, depth(text)),
        |whole| whole.iodepth.to_string(),
    ),
    whole(
        "seed",
        "1",
        "seed of the workload's random numbers",
        |whole, text| set(&mut whole.seed, read::count(text)),
        |whole| whole.seed.to_string(),
    ),
    whole(
        "loops",
        "1",
        "number of passes through all phases, each with other random numbers",
        |whole, text| set(&mut whole.loops, positive(text)),
        |whole| whole.loops.to_string(),
    ),
];

/// Prints the words in which `job` differs from `inherited`. Always prints `rw`, because a phase has at least one word.
fn print_job(job: &Job, inherited: &Job) -> String {
    let mut printed = Vec::new();
    for word in WORDS {
        let Effect::Job { print, .. } = word.effect else { continue };
        let value = print(job);
        if let Some(value) = value.filter(|value| word.key == "rw" || print(inherited).as_ref() != Some(value)) {
            printed.push(format!("{}={value}", word.key));
        }
    }
    printed.join(",")
}

/// Prints the words of the whole workload that are not at their defaults, each after a comma.
fn print_whole(given: &Whole) -> String {
    let mut printed = String::new();
    for word in WORDS {
        let Effect::Whole { print, .. } = word.effect else { continue };
        if print(given) != print(&Whole::DEFAULT) {
            printed.push_str(&format!(",{}={}", word.key, print(given)));
        }
    }
    printed
}

impl fmt::Display for WorkloadSpec {
    /// Prints the canonical text: for each phase, the words in which it differs from the previous one. Words of the
    /// whole workload are in the first phase with requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut inherited: Option<&Job> = None;
        for (index, phase) in self.phases.iter().enumerate() {
            f.write_str(if index > 0 { ";" } else { "" })?;
            match phase {
                Phase::Idle(duration) => write!(f, "idle={}", print_duration(*duration))?,
                Phase::Run(job) => {
                    f.write_str(&print_job(job, inherited.unwrap_or(&Job::default())))?;
                    if inherited.is_none() {
                        f.write_str(&print_whole(&self.whole))?;
                    }
                    inherited = Some(job);
                }
            }
        }
        Ok(())
    }
}

fn set<T>(field: &mut T, value: Result<T, WordError>) -> Result<(), WordError> {
    *field = value?;
    Ok(())
}

fn positive(text: &str) -> Result<u64, WordError> {
    match read::count(text)? {
        0 => Err(WordError::new("it cannot be 0", "write 1 or more")),
        count => Ok(count),
    }
}

fn depth(text: &str) -> Result<u32, WordError> {
    u32::try_from(positive(text)?).map_err(|_| WordError::new(format!("'{text}' is too deep"), "write less than 2^32"))
}

fn sector_bytes(text: &str) -> Result<u64, WordError> {
    let bytes = read::bytes(text)?;
    if bytes % SECTOR_BYTES != 0 {
        return Err(WordError::new(format!("{text} is not whole sectors"), "write a multiple of 512"));
    }
    Ok(bytes)
}

fn block_bytes(text: &str) -> Result<u64, WordError> {
    let bytes = sector_bytes(text)?;
    if bytes == 0 || bytes / SECTOR_BYTES > u32::MAX as u64 {
        return Err(WordError::new(format!("a block of {text} is not possible"), "write 512 to 1T"));
    }
    Ok(bytes)
}

fn rate_process(text: &str) -> Result<bool, WordError> {
    match text {
        "linear" => Ok(false),
        "poisson" => Ok(true),
        _ => Err(WordError::new(format!("'{text}' is no rate_process"), "write linear or poisson")),
    }
}

fn print_switch(on: bool) -> String {
    if on { "on" } else { "off" }.into()
}

const PATTERNS: [(&str, Mode, bool); 8] = [
    ("read", Mode::Read, false),
    ("write", Mode::Write, false),
    ("rw", Mode::ReadWrite, false),
    ("trim", Mode::Trim, false),
    ("randread", Mode::Read, true),
    ("randwrite", Mode::Write, true),
    ("randrw", Mode::ReadWrite, true),
    ("randtrim", Mode::Trim, true),
];

fn pattern(text: &str) -> Result<Pattern, WordError> {
    let (name, suffix) = text.split_once(':').map_or((text, None), |(name, suffix)| (name, Some(suffix)));
    let known = if name == "readwrite" { "rw" } else { name };
    let Some(&(_, mode, random)) = PATTERNS.iter().find(|(pattern, ..)| *pattern == known) else {
        let names: Vec<_> = PATTERNS.iter().map(|(name, ..)| *name).collect();
        return Err(WordError::new(format!("'{name}' is no pattern"), format!("write one of {}", names.join(", "))));
    };
    let suffix = match suffix {
        None => 0,
        Some(suffix) if random => positive(suffix)?,
        Some(suffix) => read::bytes(suffix)?,
    };
    Ok(Pattern { mode, random, suffix })
}

fn print_pattern(pattern: Pattern) -> String {
    let named = |(_, mode, random): &&(&str, Mode, bool)| *mode == pattern.mode && *random == pattern.random;
    let (name, ..) = PATTERNS.iter().find(named).expect("every mode has a name, sequential and random");
    match (pattern.suffix, pattern.random) {
        (0, _) => name.to_string(),
        (count, true) => format!("{name}:{count}"),
        (bytes, false) => format!("{name}:{}", print_bytes(bytes)),
    }
}

/// Parses one value, or two or three separated by commas, each with `one`.
fn per_operation<T: Clone + PartialEq>(
    text: &str,
    one: fn(&str) -> Result<T, WordError>,
) -> Result<PerOperation<T>, WordError> {
    let values = text.split(',').map(|part| one(part.trim())).collect::<Result<Vec<_>, _>>()?;
    PerOperation::from_list(values)
        .ok_or_else(|| WordError::new("more than three values", "give one each for reads, writes and trims"))
}

fn print_list<T: Clone + PartialEq>(values: &PerOperation<T>, one: impl Fn(&T) -> String) -> String {
    values.to_list().into_iter().map(one).collect::<Vec<_>>().join(",")
}

fn single_size(text: &str) -> Result<Vec<SizeShare>, WordError> {
    Ok(vec![SizeShare { bytes: block_bytes(text)?, share: Share::ALL }])
}

/// Parses `4k/60:64k/40`. Sizes without a percentage divide the rest equally.
fn split_sizes(text: &str) -> Result<Vec<SizeShare>, WordError> {
    let mut sizes = Vec::new();
    for part in text.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let share = if percent.is_empty() { None } else { Some(read::share(percent)?) };
        sizes.push((block_bytes(size)?, share));
    }
    let given: u64 = sizes.iter().filter_map(|(_, share)| *share).map(|share| share.millionths() as u64).sum();
    let open = sizes.iter().filter(|(_, share)| share.is_none()).count() as u64;
    let left = (Share::MILLIONTHS as u64).checked_sub(given).filter(|&left| open > 0 || left == 0);
    let Some(left) = left else {
        return Err(WordError::new(
            "the percentages do not add up to 100",
            "make them, or leave one empty: 4k/60:64k/",
        ));
    };
    let mut open_index = 0;
    let filled = sizes.into_iter().map(|(bytes, share)| {
        let share = share.unwrap_or_else(|| {
            open_index += 1;
            // Differences of rounded sums, so that the parts add up exactly to the rest.
            Share::from_millionths((left * open_index / open - left * (open_index - 1) / open) as u32)
        });
        SizeShare { bytes, share }
    });
    Ok(filled.collect())
}

/// Prints the block sizes as `bs` if each operation has one size. Otherwise prints them as `bssplit`. Returns `None`
/// for the other word.
fn print_sizes(job: &Job, as_single: bool) -> Option<String> {
    let sizes = &job.sizes;
    let single = [&sizes.read, &sizes.write, &sizes.trim].iter().all(|list| list.len() == 1);
    if single != as_single {
        return None;
    }
    let one = |size: &SizeShare| match single {
        true => print_bytes(size.bytes),
        false => format!("{}/{}", print_bytes(size.bytes), size.share),
    };
    Some(print_list(sizes, |list| list.iter().map(one).collect::<Vec<_>>().join(":")))
}

fn distribution(text: &str) -> Result<Distribution, WordError> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "random" if argument.is_empty() => Ok(Distribution::Uniform),
        "zipf" => Ok(Distribution::Zipf { theta: between(argument, 0.0, 100.0, "zipf:1.1")? }),
        "pareto" => Ok(Distribution::Pareto { power: between(argument, 0.0, 1.0, "pareto:0.2")? }),
        "normal" => match read::share(argument)? {
            Share::NONE => Err(WordError::new("a deviation of 0 leaves one block", "write one such as normal:10")),
            deviation => Ok(Distribution::Normal { deviation }),
        },
        "zoned" => zones(argument),
        _ => Err(WordError::new(
            format!("'{text}' is no distribution"),
            "write random, zipf:1.1, pareto:0.2, normal:10 or zoned:60/10:40/90",
        )),
    }
}

/// Parses a number strictly between `low` and `high`.
fn between(text: &str, low: f64, high: f64, example: &str) -> Result<f64, WordError> {
    let value = read::real(text).ok().filter(|&value| low < value && value < high);
    value.ok_or_else(|| {
        WordError::new(format!("'{text}' is not between {low} and {high}"), format!("write one such as {example}"))
    })
}

fn zones(text: &str) -> Result<Distribution, WordError> {
    const REMEDY: &str = "write requests/region in percent, such as zoned:60/10:30/20:10/70";
    let mut zones = Vec::new();
    for part in text.split(':') {
        let Some((requests, region)) = part.split_once('/') else {
            return Err(WordError::new(format!("'{part}' is no zone"), REMEDY));
        };
        zones.push(AccessZone { requests: read::share(requests)?, region: read::share(region)? });
    }
    let sum = |of: fn(&AccessZone) -> Share| zones.iter().map(|zone| of(zone).millionths() as u64).sum::<u64>();
    let whole = Share::MILLIONTHS as u64;
    if sum(|zone| zone.requests) != whole || sum(|zone| zone.region) != whole {
        return Err(WordError::new("the zones' requests and their regions must each add up to 100 percent", REMEDY));
    }
    if zones.iter().any(|zone| zone.region == Share::NONE && zone.requests != Share::NONE) {
        return Err(WordError::new("a zone has requests but no place", REMEDY));
    }
    Ok(Distribution::Zoned(zones))
}

fn print_distribution(distribution: &Distribution) -> String {
    match distribution {
        Distribution::Uniform => "random".into(),
        Distribution::Zipf { theta } => format!("zipf:{theta}"),
        Distribution::Pareto { power } => format!("pareto:{power}"),
        Distribution::Normal { deviation } => format!("normal:{deviation}"),
        Distribution::Zoned(zones) => {
            let zones: Vec<_> = zones.iter().map(|zone| format!("{}/{}", zone.requests, zone.region)).collect();
            format!("zoned:{}", zones.join(":"))
        }
    }
}

/// Parses the length of an idle phase.
pub(super) fn idle(text: &str) -> Result<SimDuration, WordError> {
    read::duration(text, 1_000_000_000)
}
