//! Goal: a probe by a file tells the recording of a drive, and gives no wrong answer with high confidence. Method: drives
//! whose properties are known, with files whose extents are those of real file systems (`tests/extents`), filled in order as
//! the command does; some behind a bridge, some with the load of others beside.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use imbrex_probe::extents::{Extents, FileExtent};
use imbrex_probe::targets::Window;
use imbrex_probe::{Confidence, Operation, ProbeOptions, Target, Verdict, experiments, probe};

use crate::support::wrapped::{OneAtATime, Shared};
use crate::support::{Drawn, Limit, Size, build, draw, draw_with};

const MIB: u64 = 1 << 20;

/// Layers of the drives that are not of the papers' kinds.
const LAYERS: [&str; 8] = [
    "conventional",
    "media-cache",
    "imr-rmw",
    "set-associative",
    "conventional",
    "fully-associative",
    "track-flip",
    "write-buffer",
];

/// Returns the drive with this seed: of the papers' kinds for every fourth seed, of each layer in turn for the others.
fn drawn(seed: u64) -> Drawn {
    if seed.is_multiple_of(4) {
        return draw(seed, Size::Small);
    }
    draw_with(LAYERS[(seed - seed / 4) as usize % LAYERS.len()], seed, Size::Small)
}

/// Ways to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// The drive alone.
    Direct,
    /// A bridge without a queue.
    Bridged,
    /// Others use the drive, a little.
    Shared,
    /// Others use the drive, and the counters show it.
    Busy,
}

/// Returns the way to the drive with this seed: half of the drives are reached directly.
fn way(seed: u64) -> Way {
    match seed % 6 {
        1 => Way::Bridged,
        3 => Way::Shared,
        5 => Way::Busy,
        _ => Way::Direct,
    }
}

/// Returns the lists of extents of real files, by name.
fn lists() -> Vec<(String, Extents)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/extents");
    let mut lists: Vec<(String, Extents)> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a text");
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, Extents::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    lists.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(lists.len() >= 6, "{} lists", lists.len());
    lists
}

/// Returns a file of at most `bytes` with the extents of `list`, moved to a drive of `size_bytes`: places keep their share
/// of the file system's span.
fn moved(list: &Extents, bytes: u64, size_bytes: u64) -> Extents {
    let span = list.reaches_to();
    let room = size_bytes / 4096 * 4096;
    let mut used: Vec<(u64, u64)> = Vec::new();
    let mut left = bytes;
    let mut logical = 0;
    let mut extents = Vec::new();
    for extent in list.iter() {
        let length = extent.bytes.min(left);
        // The first place from its share on at which no other extent lies.
        let share = (u128::from(extent.physical) * u128::from(room) / u128::from(span)) as u64 / 4096 * 4096;
        let mut physical = share.min(room - length);
        used.sort_unstable();
        for &(from, to) in &used {
            if physical < to && from < physical + length {
                physical = to;
            }
        }
        if physical + length > room {
            continue;
        }
        used.push((physical, physical + length));
        extents.push(FileExtent { logical, physical, bytes: length });
        logical += length;
        left -= length;
        if left == 0 {
            break;
        }
    }
    Extents::new(extents).expect("it has no holes")
}

/// Writes the file in order, and waits, as the command does before it measures.
fn prepare(target: &mut dyn Target) {
    let bytes = target.size_bytes();
    let mut offset = 0;
    let mut next = || {
        let length = MIB.min(bytes - offset);
        let operation = (length > 0).then(|| Operation::write(offset, length));
        offset += length;
        operation
    };
    target.perform(4, &mut next, &mut |_| true).expect("a simulated drive takes writes");
    target.sleep(60_000_000_000).expect("it sleeps");
}

fn probed(drawn: &Drawn, extents: &Extents, way: Way) -> Verdict {
    let (drive, extents) = (imbrex_probe::Simulated::new(build(&drawn.text)), extents.clone());
    let mut target: Box<dyn Target> = match way {
        Way::Direct => Box::new(Window::new(drive, extents)),
        Way::Bridged => Box::new(Window::new(OneAtATime(drive), extents)),
        Way::Shared => Box::new(Window::new(Shared::new(drive, 0.03, drawn.seed), extents)),
        Way::Busy => Box::new(Window::new(Shared::new(drive, 0.25, drawn.seed), extents)),
    };
    prepare(&mut *target);
    let only = experiments::OF_FILES.iter().map(|name| (*name).to_string()).collect();
    let mut options = ProbeOptions { may_write: true, only, budget_ns: u64::MAX, seed: 5, progress: &mut |_| true };
    probe(&mut *target, &mut options)
}

/// Returns the numbers of a verdict that are wrong with high confidence, or that promise more than the drive holds.
fn wrong_numbers<'a>(drawn: &'a Drawn, verdict: &'a Verdict) -> impl Iterator<Item = String> + 'a {
    let rotation = verdict.property("rotation").filter(|found| found.confidence == Confidence::High);
    let rotation = rotation.and_then(|_| verdict.number("rotation"));
    let wrong = rotation.filter(|found| (found / drawn.truth.rotation_ms - 1.0).abs() > 0.001);
    let wrong = wrong.map(|found| format!("a rotation of {found} ms, not of {} ms", drawn.truth.rotation_ms));
    let holds = |limit: Option<Limit>, unit: f64| match limit {
        Some(Limit::Binds(most)) => most * unit,
        _ => f64::MAX,
    };
    let most = holds(drawn.truth.cache_bytes, 1.0).min(holds(drawn.truth.map_entries, 4096.0));
    // Some writes are cleaned meanwhile.
    let burst = verdict.number("burst_bytes").filter(|found| *found > 1.1 * most);
    wrong.into_iter().chain(burst.map(|found| format!("a burst of {found} bytes, though it holds {most}")))
}

/// Numbers of answers to the question of the type.
#[derive(Default, Debug)]
struct Found {
    right: usize,
    open: usize,
    wrong: usize,
    /// Drives of the two common kinds, and how many of them were right.
    common: usize,
    common_right: usize,
    /// Answers to the question whether the drive cleans when left alone, and how many of them were right.
    cleaning: usize,
    cleaning_right: usize,
    mistakes: Vec<String>,
}

fn found(seeds: std::ops::Range<u64>) -> Found {
    let lists = lists();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Found::default()));
    let seeds: Vec<u64> = seeds.collect();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let drawn = drawn(seed);
                    let (name, list) = &lists[seed as usize % lists.len()];
                    let size_bytes = imbrex_probe::Simulated::new(build(&drawn.text)).size_bytes();
                    let extents = moved(list, (4 << 30).min(size_bytes / 8), size_bytes);
                    let verdict = probed(&drawn, &extents, way(seed));
                    let mut found = found.lock().expect("no thread panics with it");
                    let is_common = ["shingled", "conventional"].contains(&drawn.truth.recording());
                    let answer = verdict.word("type");
                    let is_right = answer == Some(drawn.truth.recording());
                    found.common += usize::from(is_common);
                    found.common_right += usize::from(is_common && is_right);
                    if let Some(cleaning) = verdict.word("cleaning") {
                        found.cleaning += 1;
                        found.cleaning_right += usize::from(drawn.truth.cleaning == Some(cleaning));
                        if drawn.truth.cleaning != Some(cleaning) {
                            println!(
                                "cleaning: seed {seed}, {}: {cleaning}, in truth {:?}",
                                drawn.text, drawn.truth.cleaning
                            );
                        }
                    }
                    let said = verdict
                        .property("type")
                        .map(|property| format!("{:?} {:?} {}", property.value, property.confidence, property.because));
                    found.mistakes.extend(wrong_numbers(&drawn, &verdict).map(|line| format!("seed {seed}: {line}")));
                    match answer {
                        _ if is_right => found.right += 1,
                        None => {
                            found.open += 1;
                            println!(
                                "open: seed {seed}, {}, {name}, {} extents: {said:?}",
                                drawn.truth.kind,
                                extents.count()
                            );
                        }
                        Some(_) => {
                            found.wrong += 1;
                            let confidence = verdict.property("type").map(|property| property.confidence);
                            let line = format!(
                                "seed {seed}, {}, {name}, {} extents: {said:?}",
                                drawn.truth.kind,
                                extents.count()
                            );
                            println!("wrong: {line}");
                            if confidence == Some(Confidence::High) {
                                found.mistakes.push(line);
                            }
                        }
                    }
                }
            });
        }
    });
    found.into_inner().expect("no thread panics with it")
}

fn assert_sound(found: &Found) {
    println!(
        "right {}, cannot tell {}, wrong {}; of the common kinds {} of {}; of the ways to clean {} of {}",
        found.right, found.open, found.wrong, found.common_right, found.common, found.cleaning_right, found.cleaning
    );
    assert!(found.mistakes.is_empty(), "wrong with high confidence: {:#?}", found.mistakes);
    assert!(found.common_right * 10 >= found.common * 8, "{found:?}");
    assert!(found.cleaning > 0 && found.cleaning_right * 10 >= found.cleaning * 9, "{found:?}");
}

#[test]
fn files_on_forty_drives_tell_their_recording() {
    assert_sound(&found(0..40));
}

#[test]
#[ignore = "takes a minute without optimization; the test above has the first forty"]
fn files_on_two_hundred_drives_tell_their_recording() {
    assert_sound(&found(0..200));
}
