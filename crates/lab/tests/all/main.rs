//! Goal: unmodified Linux runs in virtual time, equal in each run, and its clock is that of the drives. Method: a kernel
//! that `imbrex lab build` has built runs small programs; without one, the tests skip themselves aloud.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use imbrex_device::EmulatedDrive;
use imbrex_lab::{Disturbance, Ended, FileSystem, Kernel, LabDrive, Limits, Outcome, Task, is_installed, run};

/// A log that a test reads.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the kernel, or `None` after a line that says what the test skips.
fn kernel(what: &str) -> Option<Kernel> {
    let kernel = Kernel::cached();
    if kernel.is_err() {
        eprintln!("skipped: {what} (no kernel of the lab: imbrex lab build)");
    }
    kernel.ok()
}

/// A finished run.
struct Run {
    outcome: Outcome,
    log: String,
    output: String,
    errors: String,
    console: String,
}

/// A run in which all but the drive and the command has defaults.
struct Asked<'a> {
    drive: &'a str,
    script: &'a str,
    file_system: Option<FileSystem>,
    cut: Option<Duration>,
    limit: Duration,
    seed: u64,
    disturbance: Option<Disturbance>,
}

impl Asked<'_> {
    fn new<'a>(drive: &'a str, script: &'a str) -> Asked<'a> {
        let limit = Duration::from_secs(3_600_000);
        Asked { drive, script, file_system: None, cut: None, limit, seed: 1, disturbance: None }
    }

    fn run(&self, kernel: &Kernel) -> Run {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Written::default();
        let drive = imbrex::drives::emulated(self.drive).expect("a drive");
        let task = Task {
            command: ["sh", "-c", self.script].map(Into::into).to_vec(),
            file_system: self.file_system,
            makes_file_systems: true,
            folder: "/".into(),
            seed: self.seed,
            memory_bytes: 512 << 20,
            time_of_day_ns: imbrex_lab::TIME_OF_DAY_NS,
            disturbance: self.disturbance,
        };
        let limits = Limits { cut: self.cut, time: self.limit, busy: Duration::from_secs(300) };
        let drives = vec![LabDrive { drive, log: Some(Box::new(log.clone())) }];
        let outcome = run(kernel, &task, drives, &limits, folder.path(), &mut |_| false);
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        let read = |name: &str| text(&folder.path().join(name));
        let log = String::from_utf8(log.0.lock().expect("no thread panics").clone()).expect("text");
        Run { outcome, log, output: read("output.txt"), errors: read("errors.txt"), console: read("console.txt") }
    }
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).expect("a file of the run")).into_owned()
}

/// Returns (arrival, latency) in nanoseconds of each request of this operation in a log.
fn requests(log: &str, operation: &str) -> Vec<(u64, u64)> {
    let ns = |seconds: &str| {
        let (whole, below) = seconds.split_once('.').expect("nine decimals");
        whole.parse::<u64>().expect("a number") * 1_000_000_000 + below.parse::<u64>().expect("a number")
    };
    let rows = log.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.filter(|row| row[1] == operation).map(|row| (ns(row[0]), ns(row[5]))).collect()
}

#[test]
fn a_command_has_its_output_and_its_status() {
    let Some(kernel) = kernel("a command in the lab") else { return };
    let script = "echo out; echo err >&2; cat /sys/block/vda/queue/rotational; exit 7";
    let run = Asked::new("cmr-7200", script).run(&kernel);
    assert_eq!(run.outcome.ended, Ended::Command(7), "{}", run.console);
    assert_eq!((run.output.as_str(), run.errors.as_str()), ("out\n1\n", "err\n"));
}

#[test]
fn two_runs_are_equal_and_each_source_of_differences_is_noticed() {
    let Some(kernel) = kernel("equal runs in the lab") else { return };
    // Random numbers of the kernel and of programs, addresses of programs, the time of day, files with a time on a disk.
    let script = "od -An -N16 -tx1 /dev/urandom; cat /proc/sys/kernel/random/boot_id /proc/self/maps /proc/interrupts;
        date +%s.%N; cp -r /etc/init.d /mnt/vda/; sync; cat /proc/meminfo; stat /mnt/vda/init.d; ls -i /mnt/vda/init.d";
    let asked = || Asked { file_system: Some(FileSystem::Ext4), ..Asked::new("cmr-7200", script) };
    let seen = |run: Run| (run.log, run.output, run.errors, run.console);
    let first = asked().run(&kernel);
    assert_eq!(first.outcome.ended, Ended::Command(0), "{}{}", first.errors, first.console);
    let (times, counts) = ((first.outcome.begun, first.outcome.command), first.outcome.drives[0].1);
    let first = seen(first);
    let second = asked().run(&kernel);
    assert_eq!((times, counts), ((second.outcome.begun, second.outcome.command), second.outcome.drives[0].1));
    assert_eq!(first, seen(second));
    let other_seed = seen(Asked { seed: 2, ..asked() }.run(&kernel));
    assert_ne!(first, other_seed, "random numbers");
    for disturbance in [Disturbance::Addresses, Disturbance::Paths, Disturbance::TimeOfDay] {
        let disturbed = seen(Asked { disturbance: Some(disturbance), ..asked() }.run(&kernel));
        assert_ne!(first, disturbed, "{disturbance:?}");
    }
}

/// Returns the bytes that a drive holds, each run of them with its place.
fn contents(drive: &mut EmulatedDrive) -> Vec<(u64, Vec<u8>)> {
    let mut runs = Vec::new();
    drive.allocation(0, drive.capacity_bytes(), &mut runs).expect("the drive is whole");
    let mut place = 0;
    let mut held = Vec::new();
    for (length, is_held) in runs {
        if is_held {
            let mut bytes = vec![0; length as usize];
            drive.read(place, &mut bytes).expect("the drive is whole");
            held.push((place, bytes));
        }
        place += length;
    }
    held
}

#[test]
fn two_runs_are_equal_on_each_file_system() {
    let Some(kernel) = kernel("equal runs on each file system of the lab") else { return };
    // Directories, small and large files, renamed, removed and synced, by two processes at a time.
    let script = "cd /mnt/vda
        work() { for i in $(seq 60); do mkdir -p $1/$((i % 7)); head -c $((i * 3000)) /dev/urandom > $1/$((i % 7))/$i; sync $1/$((i % 7))/$i;
            if [ $((i % 3)) = 0 ]; then mv $1/$((i % 7))/$i $1/moved$i; fi; if [ $((i % 5)) = 0 ]; then rm -f $1/moved$((i - 3)); fi; done; }
        work a & work b; wait; head -c 8000000 /dev/urandom > large; sync; find . -printf '%p %s %T@ %i\n' | sort; df .";
    for (name, file_system) in FileSystem::ALL {
        if !is_installed(file_system.maker()[0]) {
            eprintln!("skipped: equal runs on {name} (no {})", file_system.maker()[0]);
            continue;
        }
        let asked = || Asked {
            file_system: Some(file_system),
            ..Asked::new("hm-zoned+set-associative:geometry.tracks=85", script)
        };
        let [(first, held), (second, held_again)] = [(), ()].map(|()| {
            let mut run = asked().run(&kernel);
            assert_eq!(run.outcome.ended, Ended::Command(0), "{name}: {}{}", run.errors, run.console);
            let held = contents(&mut run.outcome.drives[0].0);
            (run, held)
        });
        assert!(
            held.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > 8_000_000,
            "{name}: the drive has the files"
        );
        assert!(first.output.lines().count() > 100, "{name}: {}", first.output);
        let times = |run: &Run| (run.outcome.begun, run.outcome.command, run.outcome.total, run.outcome.drives[0].1);
        assert_eq!(times(&first), times(&second), "{name}");
        assert_eq!(
            (first.output, first.errors, first.console),
            (second.output, second.errors, second.console),
            "{name}"
        );
        assert!(first.log == second.log, "{name}: the requests of the drive");
        assert!(held == held_again, "{name}: the bytes on the drive");
    }
}

#[test]
fn the_clock_of_the_guest_is_that_of_the_drive() {
    let Some(kernel) = kernel("the clock of the lab") else { return };
    if !is_installed("python3") {
        eprintln!("skipped: the clock of the lab (no python3)");
        return;
    }
    // One request at a time, at places that are spread over the drive. A scheduler and the statistics of the block layer would
    // each read the clock once more.
    let script = "echo none > /sys/block/vda/queue/scheduler; echo 0 > /sys/block/vda/queue/iostats
python3 -c '
import mmap, os, time
disk = os.open(\"/dev/vda\", os.O_RDONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
size = os.lseek(disk, 0, os.SEEK_END) // 4096
place = 1
for _ in range(1000):
    place = place * 6364136223846793005 % size
    begun = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    os.preadv(disk, [page], place * 4096)
    print(begun, time.clock_gettime_ns(time.CLOCK_MONOTONIC) - begun)
'";
    let run = Asked::new("cmr-7200", script).run(&kernel);
    assert_eq!(run.outcome.ended, Ended::Command(0), "{}{}", run.errors, run.console);
    let seen: Vec<u64> = run
        .output
        .lines()
        .map(|line| line.split_once(' ').expect("two numbers").1.parse().expect("a number"))
        .collect();
    let reads = requests(&run.log, "read");
    let model = &reads[reads.len() - 1000..];
    assert_eq!(seen.len(), 1000);
    // The clock counts in units of this time, and each reading of it takes as long.
    const CLOCK_READ_NS: u64 = 256;
    for (index, (seen, (_, latency))) in seen.iter().zip(model).enumerate() {
        assert!(
            (*latency..=latency + 2 * CLOCK_READ_NS).contains(seen),
            "read {index} took {seen} ns for the guest, and {latency} ns for the drive"
        );
    }
    let [seen, model] = [seen.iter().sum::<u64>(), model.iter().map(|(_, latency)| latency).sum()];
    let expected = model + 1000 * CLOCK_READ_NS;
    assert!(seen.abs_diff(expected) <= CLOCK_READ_NS, "{seen} ns for the guest, {expected} ns expected");
}

#[test]
fn a_cut_loses_the_volatile_cache_and_ends_the_run_at_its_time() {
    let Some(kernel) = kernel("a power cut in the lab") else { return };
    let script = "echo begun; dd if=/dev/zero of=/dev/vda bs=4k count=1000 oflag=direct 2>/dev/null; sleep 100";
    let cut = Duration::from_millis(20);
    let run = Asked { cut: Some(cut), ..Asked::new("seagate-st8000as0022", script) }.run(&kernel);
    assert_eq!(run.outcome.ended, Ended::Cut, "{}", run.console);
    assert_eq!(run.output, "begun\n");
    let begun = run.outcome.begun.expect("the command was started");
    assert_eq!(run.outcome.total, begun + cut, "to the nanosecond");
    let (drive, counts) = run.outcome.drives.into_iter().next().expect("one drive");
    assert!(counts.writes > 0);
    let dirty: u64 = drive.dirty_ranges().iter().map(|(_, bytes)| bytes).sum();
    assert!(dirty > 0, "the volatile cache has data that the cut loses");
}

#[test]
fn a_guest_that_never_ends_is_ended() {
    let Some(kernel) = kernel("limits of the lab") else { return };
    let limit = Duration::from_secs(50);
    let run = Asked { limit, ..Asked::new("cmr-7200", "while :; do sleep 1; done") }.run(&kernel);
    assert_eq!(run.outcome.ended, Ended::Limit);
    assert!(
        run.outcome.total <= limit && run.outcome.total > limit - Duration::from_secs(2),
        "{:?}",
        run.outcome.total
    );
}

#[test]
fn the_guest_cannot_write_to_the_files_of_the_machine() {
    let Some(kernel) = kernel("files of the machine in the lab") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "before").expect("it is written");
    let path = file.display();
    // In the guest the change is visible; around the copy in memory, the file itself refuses it.
    let script = format!(
        "echo after > {path}; cat {path}; mkdir /mnt/real; mount -t hostfs none /mnt/real; echo foreign > /mnt/real{path} || echo refused"
    );
    let run = Asked::new("cmr-7200", &script).run(&kernel);
    assert_eq!(run.output, "after\nrefused\n", "{}{}", run.errors, run.console);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "before");
}
