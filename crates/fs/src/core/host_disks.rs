//! Full disks of the host. A device waits for space on its disk, unless redundancy covers its loss.
//!
//! Invariants:
//! 1. A device that shares its disk with another of its kind waits: a full disk would fail both.

use std::collections::BTreeMap;

use super::Fs;
use crate::device::Device;

impl Fs {
    /// Lets a full disk fail the only device on it, where that is a drive of an array with parity or one of several copies of the
    /// metadata: then others take its place, and no writer waits.
    pub(super) fn fail_covered_devices_on_full_disks(&self) {
        let core = &self.0;
        let with_parity = core.data.array().filter(|array| array.shape().parity > 0);
        let drives = with_parity.map_or(Vec::new(), |array| array.devices());
        for devices in [drives, core.metadata.devices()] {
            alone_on_their_disks(&devices)
                .into_iter()
                .filter(|_| devices.len() > 1)
                .for_each(Device::fail_on_full_disk);
        }
    }
}

/// Returns the devices that share their disk with no other of `devices`.
fn alone_on_their_disks(devices: &[Device]) -> Vec<&Device> {
    let mut on_disks: BTreeMap<u64, Vec<&Device>> = BTreeMap::new();
    for device in devices {
        if let Some(file) = device.host_file() {
            on_disks.entry(file.identity().device).or_default().push(device);
        }
    }
    on_disks.into_values().filter(|devices| devices.len() == 1).flatten().collect()
}
