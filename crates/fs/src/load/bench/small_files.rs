//! `smallfiles`: the test of Singh 2014 §5.2.2 with vdbench: 110 directories with 10,000 small files, 1.2 GB in total.
//! The paper reports only "file operations per second". Here the files are created first. Then as many files are read
//! whole, chosen at random, without any of their pages in the page cache. At last all are removed.

use super::super::{Files, LoadError};
use super::{Benchmark, Phase, Run, Sizes};

/// Registry entry of `smallfiles`.
pub(super) const SMALL_FILES: Benchmark = Benchmark {
    name: "smallfiles",
    about: "small files in 110 directories: made, read in random order, removed",
    source: "Singh 2014 §5.2.2 (vdbench: 110 directories, 10,000 files, 1.2 GB)",
    defaults: Sizes { files: Some(10_000), file_bytes: Some(120_000), operations: None, workers: None },
    file_bytes_least: 1,
};

const DIRECTORIES: u64 = 110;
/// Bytes of a write or a read. The paper gives no value; this one is ours.
const PIECE: usize = 64 << 10;

pub(super) async fn run<F: Files, E: FnMut(&Phase)>(run: &mut Run<'_, F, E>) -> Result<(), LoadError> {
    let files = run.sizes().files.unwrap_or(0);
    let bytes = run.sizes().file_bytes.unwrap_or(0);
    let contents = run.choices().bytes(PIECE);
    let mut choices = run.choices();
    run.phase("make", async |meter| {
        for directory in 0..DIRECTORIES {
            meter.make_directory(&format!("{directory:03}")).await?;
        }
        for number in 0..files {
            let file = meter.create(&path_of(number)).await?;
            meter.write_pieces(&file, 0, bytes, PIECE, &contents).await?;
            meter.close(file).await?;
        }
        Ok(files)
    })
    .await?;
    run.phase("read", async |meter| {
        for _ in 0..files {
            let file = meter.open(&path_of(choices.below(files))).await?;
            meter.forget(&file)?;
            meter.read_whole(&file, PIECE).await?;
            meter.close(file).await?;
        }
        Ok(files)
    })
    .await?;
    run.phase("remove", async |meter| {
        for number in 0..files {
            meter.remove(&path_of(number)).await?;
        }
        Ok(files)
    })
    .await
}

fn path_of(number: u64) -> String {
    format!("{:03}/{number:07}", number % DIRECTORIES)
}
