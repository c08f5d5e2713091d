//! `compile`: a model of the file operations when a source tree is compiled. A compiler does not run in virtual time,
//! so the model uses the proportions of the kernel of Singh 2014 §5.2.4 (Linux 2.6.31: 30,000 files, 12 KB on average).
//! The tree is unpacked first. Then each source file is looked up and read with 40 headers, and an object of twice its
//! size is written; nearly all source files include the same few headers. At last all objects are read, and an image is
//! written. Processor time is left out.

use super::super::random::Choices;
use super::super::{Files, LoadError};
use super::sizes::gamma;
use super::{Benchmark, Meter, Phase, Run, Sizes, tree_directories, tree_path};

/// Registry entry of `compile`.
pub(super) const COMPILE: Benchmark = Benchmark {
    name: "compile",
    about: "a source tree unpacked, a part of it compiled, the objects linked: a model of it, without the processor",
    source: "ours, after Singh 2014 §5.2.4 (Linux 2.6.31)",
    defaults: Sizes { files: Some(30_000), file_bytes: Some(12_000), operations: Some(2_000), workers: None },
    file_bytes_least: 1,
};

const WIDTH: u64 = 20;
const HEADERS_A_UNIT: u64 = 40;
const PIECE: usize = 64 << 10;

/// The source tree: the first third of the files are headers, the others are source files.
struct Tree {
    files: u64,
    mean: u64,
    units: u64,
    contents: Vec<u8>,
}

impl Tree {
    async fn unpack<F: Files>(&self, meter: &Meter<F>, choices: &mut Choices) -> Result<u64, LoadError> {
        for directory in tree_directories(self.files, WIDTH) {
            meter.make_directory(&directory).await?;
        }
        for number in 0..self.files {
            self.write(meter, &tree_path(number, WIDTH), gamma(choices, self.mean)).await?;
        }
        Ok(self.files)
    }

    async fn write<F: Files>(&self, meter: &Meter<F>, path: &str, bytes: u64) -> Result<(), LoadError> {
        let file = meter.create(path).await?;
        meter.write_pieces(&file, 0, bytes, PIECE, &self.contents).await?;
        meter.close(file).await
    }

    async fn compile<F: Files>(&self, meter: &Meter<F>, choices: &mut Choices) -> Result<u64, LoadError> {
        let headers = (self.files / 3).max(1);
        for unit in 0..self.units {
            let number = (headers + unit).min(self.files - 1);
            let bytes = read(meter, &tree_path(number, WIDTH)).await?;
            for _ in 0..HEADERS_A_UNIT {
                // The smallest of three numbers: nearly all source files include the same few headers.
                let header = (0..3).map(|_| choices.below(headers)).min().expect("there are three");
                read(meter, &tree_path(header, WIDTH)).await?;
            }
            self.write(meter, &object(unit, number), 2 * bytes).await?;
        }
        Ok(self.units)
    }

    async fn link<F: Files>(&self, meter: &Meter<F>) -> Result<u64, LoadError> {
        let headers = (self.files / 3).max(1);
        let mut bytes = 0;
        for unit in 0..self.units {
            bytes += read(meter, &object(unit, (headers + unit).min(self.files - 1))).await?;
        }
        self.write(meter, "image", bytes).await?;
        Ok(self.units)
    }
}

/// Returns the path of a source file's object, in the directory of the source file.
fn object(unit: u64, number: u64) -> String {
    format!("{}.{unit}.o", tree_path(number, WIDTH))
}

async fn read<F: Files>(meter: &Meter<F>, path: &str) -> Result<u64, LoadError> {
    meter.size(path).await?;
    let file = meter.open(path).await?;
    let bytes = meter.read_whole(&file, PIECE).await?;
    meter.close(file).await?;
    Ok(bytes)
}

pub(super) async fn run<F: Files, E: FnMut(&Phase)>(run: &mut Run<'_, F, E>) -> Result<(), LoadError> {
    let sizes = run.sizes();
    let tree = Tree {
        files: sizes.files.unwrap_or(0),
        mean: sizes.file_bytes.unwrap_or(0),
        units: sizes.operations.unwrap_or(0),
        contents: run.choices().bytes(PIECE),
    };
    let mut choices = run.choices();
    run.phase("unpack", async |meter| tree.unpack(meter, &mut choices).await).await?;
    run.phase("compile", async |meter| tree.compile(meter, &mut choices).await).await?;
    run.phase("link", async |meter| tree.link(meter).await).await
}
