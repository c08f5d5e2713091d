//! Random work for a toy drive: commands, background work, checkpoints and cuts. The work is drawn before it is done,
//! and each operation (one step of the work) has its own seed. So operations can be left out without a change to the
//! others.

use imbrex_disk::{Command, Sectors};
use imbrex_layer::verify::toy::{Commands, below};
use imbrex_layer::{Layer, Plan};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256StarStar;

/// Kind of one operation of the random work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// One phase of background work, if the layer has any to do.
    Idle,
    /// Three commands. The first is executed, together with those of the others that the layer can serve in one plan
    /// with it.
    Commands(Vec<Command>),
    /// Replacement of the journal by a checkpoint.
    Checkpoint,
}

/// One operation of the random work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    /// Kind of the operation.
    pub work: Work,
    /// Seed of the random choices made during the operation, such as the cut images that are tried.
    pub salt: u64,
    /// Whether the power is cut for good during the operation, so that the work continues with the recovered image.
    pub is_cut: bool,
}

/// Returns `count` random operations on a drive of `capacity` sectors, selected by `seed`. A command has at most
/// `sectors_max` sectors.
pub fn draw(seed: u64, capacity: Sectors, sectors_max: u32, count: u32) -> Vec<Action> {
    let mut random = Xoshiro256StarStar::seed_from_u64(seed);
    let mut commands = Commands::new(seed ^ 0x5eed, capacity, sectors_max);
    let mut action = |_| {
        let work = match below(&mut random, 20) {
            0 => Work::Checkpoint,
            1..=6 => Work::Idle,
            _ => Work::Commands((0..3).map(|_| commands.draw()).collect()),
        };
        Action { work, salt: random.next_u64(), is_cut: below(&mut random, 6) == 0 }
    };
    (0..count).map(&mut action).collect()
}

impl Action {
    /// Replaces the contents of `plan` by the layer's plan of the operation. Returns the commands that the plan serves,
    /// which are none for background work. Returns `None` for a checkpoint, and if there is no background work to do.
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
