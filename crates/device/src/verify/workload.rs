//! Random work for a toy drive: commands, background work, checkpoints and cuts. All of it is drawn before it is done,
//! each deed with its own seed, so that deeds can be left out and the others stay as they were.

use imbrex_disk::{Command, Sectors};
use imbrex_layer::verify::toy::{Commands, below};
use imbrex_layer::{Layer, Plan};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// What there is to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// A phase of background work, if the layer has any.
    Idle,
    /// The first command, with those of the others that the layer joins to it.
    Commands(Vec<Command>),
    /// The journal is replaced by a checkpoint.
    Checkpoint,
}

/// One deed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deed {
    /// What.
    pub work: Work,
    /// Seeds the images tried while it is done.
    pub salt: u64,
    /// Whether the power fails for good while it is done.
    pub is_cut: bool,
}

/// Draws `count` deeds on a drive of `capacity`.
pub fn draw(seed: u64, capacity: Sectors, sectors_max: u32, count: u32) -> Vec<Deed> {
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let mut commands = Commands::new(seed ^ 0x5eed, capacity, sectors_max);
    let mut deed = |_| {
        let work = match below(&mut random, 20) {
            0 => Work::Checkpoint,
            1..=6 => Work::Idle,
            _ => Work::Commands((0..3).map(|_| commands.draw()).collect()),
        };
        Deed { work, salt: random.next_u64(), is_cut: below(&mut random, 6) == 0 }
    };
    (0..count).map(&mut deed).collect()
}

impl Deed {
    /// Has `layer` plan it; says which commands the plan serves, or nothing if there is nothing to do.
    pub fn plan(&self, layer: &mut dyn Layer, plan: &mut Plan) -> Option<Vec<Command>> {
        plan.clear();
        match &self.work {
            Work::Checkpoint => None,
            Work::Idle => (layer.background().is_some() && layer.idle(plan)).then(Vec::new),
            Work::Commands(drawn) => {
                let mut chosen = vec![drawn[0]];
                for candidate in &drawn[1..] {
                    if layer.joinable(&chosen[0]).contains(&candidate.lba) && layer.joins(&chosen, candidate) {
                        chosen.push(*candidate);
                    }
                }
                layer.plan(&chosen, plan);
                Some(chosen)
            }
        }
    }
}
