//! `postmark`: PostMark (Katcher 1997, NetApp TR3022), a model of a mail server. First files of 500 to 10,000 bytes are
//! created, with sizes of equal probability. Each transaction then reads a whole file or appends to one, and creates a
//! file or removes one, each with equal probability (its biases are 5). At the end all files are removed.

use super::super::random::Choices;
use super::super::{Files, LoadError};
use super::{Benchmark, Meter, Phase, Run, Sizes};

/// Registry entry of `postmark`.
pub(super) const POSTMARK: Benchmark = Benchmark {
    name: "postmark",
    about: "a mail server: small files made, read, appended to and removed in transactions",
    source: "Katcher 1997 (TR3022), its set of 20,000 files and 50,000 transactions; Singh 2014 §5.2.3",
    defaults: Sizes { files: Some(20_000), file_bytes: None, operations: Some(50_000), workers: None },
    file_bytes_least: 1,
};

const BYTES_MIN: u64 = 500;
const BYTES_MAX: u64 = 10_000;
/// PostMark's units of 512 bytes go through a buffered stream, so the file system sees the size of the stream's buffer:
/// 4 KiB.
const UNIT: usize = 4096;

/// The existing files.
struct Pool {
    live: Vec<(u64, u64)>,
    made: u64,
    choices: Choices,
    contents: Vec<u8>,
}

impl Pool {
    /// Returns the index in `live` of a random file.
    fn any(&mut self) -> usize {
        self.choices.below(self.live.len() as u64) as usize
    }

    async fn make<F: Files>(&mut self, meter: &Meter<F>) -> Result<(), LoadError> {
        let (number, bytes) = (self.made, BYTES_MIN + self.choices.below(BYTES_MAX - BYTES_MIN + 1));
        self.made += 1;
        let file = meter.create(&path_of(number)).await?;
        meter.write_pieces(&file, 0, bytes, UNIT, &self.contents).await?;
        meter.close(file).await?;
        self.live.push((number, bytes));
        Ok(())
    }

    async fn remove<F: Files>(&mut self, meter: &Meter<F>) -> Result<(), LoadError> {
        let place = self.any();
        let (number, _) = self.live.swap_remove(place);
        meter.remove(&path_of(number)).await
    }

    async fn read<F: Files>(&mut self, meter: &Meter<F>) -> Result<(), LoadError> {
        let place = self.any();
        let file = meter.open(&path_of(self.live[place].0)).await?;
        meter.read_whole(&file, UNIT).await?;
        meter.close(file).await
    }

    async fn append<F: Files>(&mut self, meter: &Meter<F>) -> Result<(), LoadError> {
        let place = self.any();
        let (number, bytes) = self.live[place];
        // PostMark never lets a file grow beyond the largest size.
        let more = self.choices.below(BYTES_MAX.saturating_sub(bytes).max(1));
        let file = meter.open(&path_of(number)).await?;
        meter.write_pieces(&file, bytes, more, UNIT, &self.contents).await?;
        self.live[place].1 += more;
        meter.close(file).await
    }

    async fn transaction<F: Files>(&mut self, meter: &Meter<F>) -> Result<(), LoadError> {
        if !self.live.is_empty() {
            match self.choices.below(2) {
                0 => self.read(meter).await?,
                _ => self.append(meter).await?,
            }
        }
        match self.choices.below(2) {
            0 if !self.live.is_empty() => self.remove(meter).await,
            _ => self.make(meter).await,
        }
    }
}

pub(super) async fn run<F: Files, E: FnMut(&Phase)>(run: &mut Run<'_, F, E>) -> Result<(), LoadError> {
    let files = run.sizes().files.unwrap_or(0);
    let transactions = run.sizes().operations.unwrap_or(0);
    let contents = run.choices().bytes(UNIT);
    let mut pool = Pool { live: Vec::new(), made: 0, choices: run.choices(), contents };
    run.phase("make", async |meter| {
        for _ in 0..files {
            pool.make(meter).await?;
        }
        Ok(files)
    })
    .await?;
    run.phase("transactions", async |meter| {
        for _ in 0..transactions {
            pool.transaction(meter).await?;
        }
        Ok(transactions)
    })
    .await?;
    run.phase("remove", async |meter| {
        let left = std::mem::take(&mut pool.live);
        for (number, _) in &left {
            meter.remove(&path_of(*number)).await?;
        }
        Ok(left.len() as u64)
    })
    .await
}

fn path_of(number: u64) -> String {
    format!("{number:08}")
}
