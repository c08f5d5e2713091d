//! `imbrex-bench fuse OURS THEIRS` compares two mounted directories as applications see them. The parts are: making
//! files, reading their attributes, random reads, and writing and reading in order. Each part is measured in turn on
//! both, five times. The figure is the median of the ratios, which is over one where ours is faster.
//!
//! Data are read and written with direct I/O, past the page cache. The kernel's caches of names and attributes are
//! dropped before each part, which needs root.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use crate::Row;

const ROUNDS: usize = 5;
const FILES: u64 = 5_000;
const READS: u64 = 5_000;
const SMALL: usize = 4096;
const LARGE: usize = 1 << 20;
const MIBS: u64 = 256;

/// Part of the comparison: its name, the function that does it, and the target of the ratio.
type Part = (&'static str, fn(&Path, u64) -> io::Result<()>, Option<f64>);

/// Parts. Reading in order has no target, since ours is faster there.
const PARTS: [Part; 5] = [
    ("FUSE: files made, over passthrough_hp", make, Some(1.0)),
    ("FUSE: files looked at, over passthrough_hp", look, Some(1.0)),
    ("FUSE: 256 MiB written, over passthrough_hp", write, Some(0.8)),
    ("FUSE: 256 MiB read, over passthrough_hp", read, None),
    ("FUSE: random reads of 4 KiB, over passthrough_hp", read_at_random, Some(0.8)),
];

/// Measures `ours` and `theirs` in turn and reports the ratios.
pub(crate) fn measure(ours: &Path, theirs: &Path, report: &mut dyn FnMut(Row)) -> io::Result<()> {
    let mut ratios = vec![Vec::new(); PARTS.len()];
    for round in 0..ROUNDS as u64 {
        let folders = [ours, theirs].map(|place| place.join(format!("round-{round}")));
        folders.iter().try_for_each(fs::create_dir)?;
        for (number, (_, part, _)) in PARTS.iter().enumerate() {
            let mut seconds = [0.0; 2];
            // The first directory measured finds the machine as the second left it, so the two take turns in being
            // first.
            for place in [round as usize % 2, (round as usize + 1) % 2] {
                drop_caches()?;
                let began = Instant::now();
                part(&folders[place], round)?;
                seconds[place] = began.elapsed().as_secs_f64();
            }
            ratios[number].push(seconds[1] / seconds[0]);
        }
        folders.iter().try_for_each(fs::remove_dir_all)?;
    }
    for ((name, _, target), mut ratios) in PARTS.into_iter().zip(ratios) {
        ratios.sort_by(f64::total_cmp);
        report(Row { name: name.into(), value: ratios[ROUNDS / 2], unit: "times", target });
    }
    Ok(())
}

/// Drops the kernel's page cache and its caches of names and inodes.
fn drop_caches() -> io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "3")
}

fn make(folder: &Path, _: u64) -> io::Result<()> {
    (0..FILES).try_for_each(|number| File::create(folder.join(format!("{number:08}"))).map(drop))
}

fn look(folder: &Path, _: u64) -> io::Result<()> {
    (0..FILES).try_for_each(|number| fs::metadata(folder.join(format!("{number:08}"))).map(drop))
}

fn direct(folder: &Path, is_new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(is_new).custom_flags(libc::O_DIRECT);
    options.open(folder.join("large"))
}

/// Returns a buffer for direct I/O, which begins at a multiple of 4 KiB.
fn aligned(space: &mut Vec<u8>, length: usize) -> &mut [u8] {
    space.resize(length + SMALL, 7);
    let from = space.as_ptr().align_offset(SMALL);
    &mut space[from..from + length]
}

fn write(folder: &Path, _: u64) -> io::Result<()> {
    let (file, mut space) = (direct(folder, true)?, Vec::new());
    let bytes = aligned(&mut space, LARGE);
    (0..MIBS).try_for_each(|mib| file.write_all_at(bytes, mib * LARGE as u64))?;
    file.sync_all()
}

fn read(folder: &Path, _: u64) -> io::Result<()> {
    let (file, mut space) = (direct(folder, false)?, Vec::new());
    let bytes = aligned(&mut space, LARGE);
    (0..MIBS).try_for_each(|mib| file.read_exact_at(bytes, mib * LARGE as u64))
}

fn read_at_random(folder: &Path, round: u64) -> io::Result<()> {
    let (file, mut space) = (direct(folder, false)?, Vec::new());
    let bytes = aligned(&mut space, SMALL);
    let mut state = round + 1;
    (0..READS).try_for_each(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        file.read_exact_at(bytes, (state >> 33) % (MIBS * 256) * SMALL as u64)
    })
}
