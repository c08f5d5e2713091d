//! The devices of a trial: models of a drive or of the drives of an array, and of the devices for metadata.

use uuid::Uuid;

use super::trial::Trial;
use crate::core::{MakeOptions, Parts, make_on};
use crate::device::Device;
use crate::device::model::{Contents, Model, Snapshot};
use crate::error::FsError;
use crate::executor::Executor;

/// Number of metadata blocks on a toy drive that holds its own metadata.
const METADATA_BLOCKS: u64 = 86;

/// Model devices of a trial: the drives in order, then the devices for metadata. A clone has handles of the same
/// devices.
#[derive(Clone, Debug)]
pub struct Rig {
    models: Vec<Model>,
}

impl Rig {
    /// Creates empty models of the devices of `trial`.
    pub fn new(trial: &Trial) -> Rig {
        let drives = (0..trial.drives).map(|_| trial.geometry);
        Rig { models: drives.chain(trial.metadata.iter().copied()).map(Model::new).collect() }
    }

    /// Creates models with the given contents, one for each device in order, all of them durable.
    pub fn with(contents: Vec<Contents>) -> Rig {
        Rig { models: contents.into_iter().map(Model::with).collect() }
    }

    /// Returns all models: the drives in order, then the devices for metadata.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Returns devices on the models in order, without those whose numbers, counted from 0, are in `missing`.
    pub fn devices(&self, executor: &Executor, missing: &[usize]) -> Vec<Device> {
        let there = self.models.iter().enumerate().filter(|(number, _)| !missing.contains(number));
        there
            .map(|(number, model)| Device::new(executor, &format!("model {number}"), Box::new(model.clone())))
            .collect()
    }

    /// Makes the file system of `trial` on the models. The models must be new.
    ///
    /// # Errors
    /// The file system cannot be made, for example because a device is too small.
    pub async fn make(&self, executor: &Executor, trial: &Trial) -> Result<(), FsError> {
        let options = MakeOptions {
            uuid: Some(Uuid::from_u128(0x1234_5678_9abc)),
            store: trial.store.map(String::from),
            options: trial.options.clone(),
            metadata_blocks: Some(METADATA_BLOCKS + trial.hot_blocks),
            parity: trial.parity,
            hot_blocks: trial.hot_blocks,
            hot_on: trial.hot_on,
            overwrite: false,
        };
        let devices = self.devices(executor, &[]);
        let (drives, metadata) = devices.split_at(trial.drives);
        make_on(Parts { drives, metadata, spares: &[] }, &options, 1_400_000_000_000_000_000).await.map(drop)
    }

    /// Returns the present contents of all models, in order, unflushed writes included.
    pub fn contents(&self) -> Vec<Contents> {
        self.models.iter().map(Model::contents).collect()
    }

    /// Starts to record snapshots: a snapshot of all models after every later write, flush, reset and finish of one of
    /// them.
    pub fn keep_snapshots(&self) {
        Model::keep_snapshots(&self.models);
    }

    /// Stops recording snapshots, and returns the recorded ones. Each element has one snapshot per model, in order.
    pub fn take_snapshots(&self) -> Vec<Vec<Snapshot>> {
        Model::take_snapshots(&self.models)
    }

    /// Returns the number of writes, flushes, resets and finishes of all models so far.
    pub fn events(&self) -> u64 {
        self.models.iter().map(Model::events).sum()
    }

    /// Returns the number of operations so far, on all models, that violated the rules of their device.
    pub fn broken_rules(&self) -> u64 {
        self.models.iter().map(Model::broken_rules).sum()
    }
}
