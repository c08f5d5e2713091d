//! Random damage to images, in bytes that are in use.

use imbrex_device::image::regions::{Use, Used};
use imbrex_device::media::memory::Memory;
use imbrex_layer::verify::toy::below;
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// Longest damaged run in bytes: shorter than the distance between two copies of metadata in the smallest image.
const RUN_MAX: u64 = 4096;
/// A damage to an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    /// Flips random bits of a run.
    Flip { offset: u64, bytes: u64, seed: u64 },
    /// Fills a run with zeros.
    Zero { offset: u64, bytes: u64 },
    /// Swaps two runs.
    Swap { first: u64, second: u64, bytes: u64 },
    /// Truncates the file.
    Truncate { at: u64 },
}

impl Damage {
    /// Draws a damage in a piece of kind `what`; a swap may involve pieces of any kind.
    pub(crate) fn draw(random: &mut impl RngCore, pieces: &[Used], what: Use, number: u64) -> Damage {
        let place = |random: &mut dyn RngCore, what: Option<Use>| {
            let chosen: Vec<&Used> = pieces.iter().filter(|used| what.is_none_or(|what| used.what == what)).collect();
            let piece = chosen[(random.next_u64() % chosen.len() as u64) as usize];
            piece.offset + random.next_u64() % piece.bytes
        };
        let offset = place(random, Some(what));
        // Log-uniform.
        let magnitude = below(random, u64::from(RUN_MAX.ilog2()) + 1);
        let bytes = 1 + below(random, 1 << magnitude);
        match number % 5 {
            0 => Damage::Flip { offset, bytes, seed: random.next_u64() },
            1 => Damage::Zero { offset, bytes },
            2 => Damage::Swap { first: offset, second: place(random, Some(what)), bytes },
            3 => Damage::Swap { first: offset, second: place(random, None), bytes },
            _ => Damage::Truncate { at: offset },
        }
    }

    /// Returns the image with this damage.
    pub(crate) fn applied(self, whole: &[u8]) -> Memory {
        let mut bytes = whole.to_vec();
        let run = |offset: u64, length: u64| offset as usize..whole.len().min((offset + length) as usize);
        match self {
            Damage::Flip { offset, bytes: length, seed } => {
                let mut random = Xoshiro256StarStar::seed_from_u64(seed);
                let run = &mut bytes[run(offset, length)];
                for byte in run.iter_mut() {
                    *byte ^= (random.next_u64() & random.next_u64()) as u8;
                }
                run[0] ^= 1;
            }
            Damage::Zero { offset, bytes: length } => bytes[run(offset, length)].fill(0),
            Damage::Swap { first, second, bytes: length } => {
                let (low, high) = (first.min(second), first.max(second));
                let length = length.min(high - low).min(whole.len() as u64 - high);
                let (before, after) = bytes.split_at_mut(high as usize);
                before[low as usize..(low + length) as usize].swap_with_slice(&mut after[..length as usize]);
            }
            Damage::Truncate { at } => bytes.truncate(at as usize),
        }
        Memory::with(&bytes)
    }
}
