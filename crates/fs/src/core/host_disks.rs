//! Full disks of the host. A device whose file lies on a full disk waits for space. If redundancy covers the loss of
//! the device, it fails instead, and no writer waits.
//!
//! Invariants:
//! 1. No more devices fail than redundancy still covers, counting those that are missing and those that have failed for
//!    this reason before.
//! 2. A device that shares its disk with another of its kind waits: the full disk would fail both.
//! 3. An operation that has changed nothing fails while a device waits. An operation that has begun continues.

use std::collections::BTreeMap;

use super::{Core, Fs};
use crate::device::Device;
use crate::error::FsError;

/// Time between two attempts of an operation that has begun.
const RETRY_NS: u64 = 100_000_000;

impl Core {
    /// Waits for `wait`, which changes nothing and can be dropped at any time.
    ///
    /// # Errors
    /// [`FsError::HostFull`] if `wait` is not ready while a device waits for space.
    pub(in crate::core) async fn wait_unless_full<T>(&self, wait: impl Future<Output = T>) -> Result<T, FsError> {
        self.executor.wait_unless_blocked(wait).await.map_err(FsError::HostFull)
    }

    /// Spawns `task` and waits for it.
    ///
    /// # Errors
    /// [`FsError::HostFull`] if a device waits for space. If `task` has begun, it then continues in the background.
    pub(in crate::core) async fn spawn_unless_full<T: 'static>(
        &self,
        task: impl Future<Output = T> + 'static,
    ) -> Result<T, FsError> {
        self.executor.unless_blocked(task).await.map_err(FsError::HostFull)
    }
}

impl Fs {
    /// Sleeps for 100 ms. A caller that got [`FsError::HostFull`] in the midst of an operation calls this before it
    /// tries again.
    pub async fn wait_for_space(&self) {
        self.0.executor.sleep(RETRY_NS).await;
    }

    /// Makes devices that wait for space fail if redundancy covers them, as long as the file system is mounted.
    pub(in crate::core) async fn fail_covered_devices(self) {
        loop {
            let blocked = self.0.executor.next_blocked();
            let core = &self.0;
            if let Some(array) = core.data.array() {
                let covered = usize::from(array.shape().parity).saturating_sub(array.missing().len());
                fail_blocked(&array.devices(), covered);
            }
            let copies = core.metadata.current_devices();
            fail_blocked(&copies, copies.len().saturating_sub(1));
            blocked.await;
        }
    }
}

/// Makes blocked devices fail: at most `covered`, including those of `devices` that were made to fail before.
fn fail_blocked(devices: &[Device], covered: usize) {
    let failing = devices.iter().filter(|device| device.fails_on_full_disk()).count();
    let blocked = alone_on_their_disks(devices).into_iter().filter(|device| device.is_blocked());
    blocked.take(covered.saturating_sub(failing)).for_each(Device::fail_on_full_disk);
}

/// Returns those of `devices` that share their disk with no other.
fn alone_on_their_disks(devices: &[Device]) -> Vec<&Device> {
    let mut on_disks: BTreeMap<u64, Vec<&Device>> = BTreeMap::new();
    for device in devices {
        if let Some(file) = device.host_file() {
            on_disks.entry(file.identity().device).or_default().push(device);
        }
    }
    on_disks.into_values().filter(|devices| devices.len() == 1).flatten().collect()
}
