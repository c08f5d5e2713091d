//! The machine on which figures were measured: processor, cores, memory, kernel, version of Imbrex.

use std::time::Instant;

use serde::Serialize;

/// Processor time of this thread as Linux counts it, or the wall clock where Linux does not count it.
pub(crate) enum ProcessorTime {
    /// Time on a processor, in ns.
    Thread(u64),
    /// Moment of the wall clock.
    Wall(Instant),
}

impl ProcessorTime {
    /// Returns the time so far.
    pub(crate) fn now() -> ProcessorTime {
        thread_ns().map_or_else(|| ProcessorTime::Wall(Instant::now()), ProcessorTime::Thread)
    }

    /// Returns the seconds from an earlier moment to this one.
    pub(crate) fn seconds_since(&self, earlier: &ProcessorTime) -> f64 {
        match (earlier, self) {
            (ProcessorTime::Thread(begun_ns), ProcessorTime::Thread(ended_ns)) => (ended_ns - begun_ns) as f64 / 1e9,
            (ProcessorTime::Wall(begun), ProcessorTime::Wall(ended)) => (*ended - *begun).as_secs_f64(),
            _ => panic!("the two moments were measured with different clocks"),
        }
    }

    /// Returns the seconds from this moment to now.
    pub(crate) fn elapsed_seconds(&self) -> f64 {
        match self {
            ProcessorTime::Thread(begun_ns) => {
                let now_ns = thread_ns().expect("the kernel reports the processor time of a thread");
                (now_ns - begun_ns) as f64 / 1e9
            }
            ProcessorTime::Wall(begun) => begun.elapsed().as_secs_f64(),
        }
    }
}

fn thread_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Description of a machine.
#[derive(Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    memory_bytes: u64,
    kernel: String,
    version: &'static str,
}

impl Machine {
    /// Returns the description of this machine, from `/proc`.
    pub(crate) fn read() -> Machine {
        let field = |file: &str, key: &str| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let line = text.lines().find(|line| line.starts_with(key)).map(str::to_string);
            line.and_then(|line| line.split_once(':').map(|(_, value)| value.trim().to_string())).unwrap_or_default()
        };
        let memory = field("/proc/meminfo", "MemTotal");
        let kilobytes: u64 = memory.split_whitespace().next().and_then(|digits| digits.parse().ok()).unwrap_or(0);
        Machine {
            processor: field("/proc/cpuinfo", "model name"),
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_bytes: kilobytes * 1024,
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_string(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Returns a file name for the machine: processor and number of cores.
    pub(crate) fn slug(&self) -> String {
        let words: Vec<_> = self
            .processor
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        format!("{}-{}-cores", words.join("-"), self.cores)
    }
}
