//! Goal: a nearly full drive or array accepts ten times its capacity in writes without a refusal while space is free,
//! and keeps the data. Method: files of several lengths are rewritten at random, in virtual time, and compared with a
//! list of seeds.

use imbrex_fs::device::{BLOCK_BYTES, Geometry, Kind};
use imbrex_fs::verify::cuts::fresh;
use imbrex_fs::verify::operation::{find, pattern};
use imbrex_fs::verify::trial::Trial;
use imbrex_fs::verify::{Operation, perform};
use imbrex_fs::{Bounds, Executor, Fs};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const ZONE_BLOCKS: u64 = 64;

fn trials() -> Vec<(&'static str, Trial)> {
    let array = |drives: usize, parity, kind| {
        let geometry = Geometry { blocks: 24 * ZONE_BLOCKS, kind };
        let metadata = Some(Geometry { blocks: 1_500, kind: Kind::Plain });
        let bounds = Bounds { cache_bytes: 256 << 10, ..Bounds::default() };
        Trial {
            drives,
            parity,
            metadata: metadata.into_iter().collect(),
            store: Some("log"),
            bounds,
            ..Trial::new(geometry, Vec::new())
        }
    };
    let zoned = |active_max| Kind::Zoned { zone_blocks: ZONE_BLOCKS, zones: 24, conventional: 0, active_max };
    let one_open = |trial: Trial| Trial { options: vec![("open_groups".into(), "1".into())], ..trial };
    vec![
        ("one drive", array(1, 0, zoned(None))),
        ("one drive, one open group", one_open(array(1, 0, zoned(Some(1))))),
        ("four and one parity", array(5, 1, zoned(None))),
        ("three and two parity, four active zones", array(5, 2, zoned(Some(4)))),
    ]
}

/// Files, each with the seed and the number of blocks of its last write.
struct Files {
    all: Vec<(u8, u64)>,
    random: Xoshiro256PlusPlus,
}

impl Files {
    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    /// Rewrites file `number` with `blocks` blocks.
    async fn write(&mut self, fs: &Fs, name: &str, number: usize, blocks: u64) {
        let (path, seed) = (format!("f{number}"), self.below(250) as u8);
        if number == self.all.len() {
            perform(fs, &Operation::Create(path.clone())).await.unwrap();
            self.all.push((seed, blocks));
        } else {
            perform(fs, &Operation::Truncate(path.clone(), 0)).await.unwrap();
        }
        let length = blocks as usize * BLOCK_BYTES;
        perform(fs, &Operation::WriteOut(path, 0, length, seed))
            .await
            .unwrap_or_else(|error| panic!("{name}: file {number}, {blocks} blocks: {error}; {:?}", fs.statfs()));
        self.all[number] = (seed, blocks);
    }

    async fn compare(&self, fs: &Fs, name: &str) {
        for (number, &(seed, blocks)) in self.all.iter().enumerate() {
            let read = fs.read(find(fs, &format!("f{number}")).unwrap(), 0, 1 << 20).await.unwrap();
            assert!(read == pattern(seed, 0, blocks as usize * BLOCK_BYTES), "{name}: file {number}");
        }
    }
}

#[test]
fn what_is_nearly_full_is_written_to_ten_times_over_without_a_refusal() {
    for (name, trial) in trials() {
        let executor = Executor::in_virtual_time();
        let own = executor.clone();
        let run = async move {
            let (fs, rig) = fresh(&own, &trial).await.unwrap();
            let (room, largest) = (fs.statfs().blocks, 12);
            let mut files = Files { all: Vec::new(), random: Xoshiro256PlusPlus::seed_from_u64(7) };
            while fs.statfs().free > room / 20 + largest {
                let (number, blocks) = (files.all.len(), 1 + files.below(largest));
                files.write(&fs, name, number, blocks).await;
            }
            let mut written = 0;
            while written < 10 * room {
                let number = files.below(files.all.len() as u64) as usize;
                // Each file keeps its length, so that the drive stays equally full.
                let blocks = files.all[number].1;
                files.write(&fs, name, number, blocks).await;
                written += blocks;
            }
            files.compare(&fs, name).await;
            let usage = fs.status().usage;
            assert!(fs.status().counters.zones_cleaned > 0, "{name}: it was never cleaned");
            println!("{name}: {written} blocks written, {} allocated, of {room}", usage.allocated);
            fs.unmount().await.unwrap();
            assert_eq!(rig.broken_rules(), 0, "{name}: rules of the drives were broken");
        };
        executor.run(run).unwrap();
        executor.shut_down();
    }
}
