//! `lfs`: the large-file benchmark of the log-structured file system (Rosenblum and Ousterhout 1992 §5.1, fig. 9).
//! Singh 2014 §5.2.1 runs it with files of 100 and 500 MB. A file is written in order, read in order, written in random
//! order, read in random order, and read in order again, in units of 8 KiB. At the beginning of each phase no page of
//! the file is in the page cache.

use super::super::random::Choices;
use super::super::{Files, LoadError};
use super::{Benchmark, Meter, Phase, Run, Sizes};

/// Registry entry of `lfs`.
pub(super) const LFS: Benchmark = Benchmark {
    name: "lfs",
    about: "a large file written and read in order, then in random order, in units of 8 KiB",
    source: "Rosenblum and Ousterhout 1992 §5.1, fig. 9; Singh 2014 figs 5.1 to 5.4",
    defaults: Sizes { files: None, file_bytes: Some(100_000_000), operations: None, workers: None },
    file_bytes_least: UNIT as u64,
};

const UNIT: usize = 8192;
const PATH: &str = "large";

pub(super) async fn run<F: Files, E: FnMut(&Phase)>(run: &mut Run<'_, F, E>) -> Result<(), LoadError> {
    let units = run.sizes().file_bytes.unwrap_or(0) / UNIT as u64;
    let contents = run.choices().bytes(UNIT);
    let in_order: Vec<u64> = (0..units).collect();
    let at_random = shuffled(&in_order, &mut run.choices());
    let again = shuffled(&at_random, &mut Choices::new(run.asked.seed + 1));
    run.phase("write in order", async |meter| {
        let file = meter.create(PATH).await?;
        write(meter, &file, &in_order, &contents).await?;
        meter.close(file).await?;
        Ok(units)
    })
    .await?;
    run.phase("read in order", async |meter| read(meter, &in_order).await).await?;
    run.phase("write at random", async |meter| {
        let file = meter.open(PATH).await?;
        meter.forget(&file)?;
        write(meter, &file, &at_random, &contents).await?;
        meter.close(file).await?;
        Ok(units)
    })
    .await?;
    run.phase("read at random", async |meter| read(meter, &again).await).await?;
    run.phase("read in order again", async |meter| read(meter, &in_order).await).await
}

async fn write<F: Files>(meter: &Meter<F>, file: &F::Open, units: &[u64], contents: &[u8]) -> Result<(), LoadError> {
    for unit in units {
        meter.write(file, unit * UNIT as u64, contents).await?;
    }
    meter.sync(file).await
}

async fn read<F: Files>(meter: &Meter<F>, units: &[u64]) -> Result<u64, LoadError> {
    let file = meter.open(PATH).await?;
    meter.forget(&file)?;
    for unit in units {
        meter.read(&file, unit * UNIT as u64, UNIT).await?;
    }
    meter.close(file).await?;
    Ok(units.len() as u64)
}

fn shuffled(units: &[u64], choices: &mut Choices) -> Vec<u64> {
    let mut units = units.to_vec();
    for end in (1..units.len()).rev() {
        units.swap(end, choices.below(end as u64 + 1) as usize);
    }
    units
}
