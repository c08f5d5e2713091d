//! A first pass over a trace, which lists its devices so that a user can choose one.

use std::collections::BTreeMap;

use imbrex_units::{Operation, SimTime};
use serde::Serialize;

use crate::facts::Facts;
use crate::formats::{Format, open};
use crate::input::Input;
use crate::options::TraceOptions;
use crate::request::{Request, Source, TraceError};

/// Counts of the requests of one device.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct DeviceSummary {
    /// Number of the device in the trace, as each of its requests gives it ([`Request::device`]).
    pub device: u32,
    /// Name of the device in the trace, or its number as text if the trace gives no name.
    pub name: String,
    /// Number of all requests of this device: reads, writes, flushes and trims.
    pub requests: u64,
    /// Number of reads of this device.
    pub reads: u64,
    /// Number of writes of this device.
    pub writes: u64,
    /// Sum of the lengths of all reads of this device, in bytes.
    pub read_bytes: u64,
    /// Sum of the lengths of all writes of this device, in bytes.
    pub write_bytes: u64,
    /// One past the highest sector of 512 bytes that a read, write or trim of this device addresses; 0 if there is
    /// none. A request of length 0 counts with its address.
    pub lba_end: u64,
}

impl DeviceSummary {
    /// Returns the summary of `device` before any request: all counts are 0, and the name is the number.
    pub fn new(device: u32) -> DeviceSummary {
        DeviceSummary { device, name: device.to_string(), ..DeviceSummary::default() }
    }

    /// Adds `request` to the counts, whatever its device. A flush counts in `requests` only, a trim in `requests` and
    /// `lba_end`.
    pub fn count(&mut self, request: &Request) {
        let command = request.command;
        let bytes = u64::from(command.sectors) * crate::admission::SECTOR_BYTES;
        self.requests += 1;
        match command.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += bytes;
            }
            Operation::Write => {
                self.writes += 1;
                self.write_bytes += bytes;
            }
            Operation::Flush => return,
            Operation::Trim => {}
        }
        self.lba_end = self.lba_end.max(command.end().0);
    }
}

/// The devices of a trace with counts of their requests: the result of [`survey`].
#[derive(Debug)]
pub struct Survey {
    /// Format in which the trace was read.
    pub format: &'static Format,
    /// Summary of each device that has a request, sorted by device number.
    pub devices: Vec<DeviceSummary>,
    /// Counts of malformed or other records left out, and decisions of the reader such as the unit of the times, for
    /// the whole trace.
    pub facts: Facts,
}

impl Survey {
    /// Returns the device with the most requests of all kinds; among equals, the one with the lowest number. Returns
    /// `None` if the trace has no requests.
    pub fn busiest(&self) -> Option<&DeviceSummary> {
        self.devices.iter().rev().max_by_key(|device| device.requests)
    }
}

/// Reads the whole trace `input` and counts the requests of each device. Ignores [`TraceOptions::device`]: all devices
/// are counted.
///
/// # Errors
///
/// If the trace cannot be opened (see [`open`]) or a record cannot be read.
pub fn survey(input: Input, options: &TraceOptions) -> Result<Survey, TraceError> {
    let options = TraceOptions { device: None, ..options.clone() };
    let mut opened = open(input, &options)?;
    let devices = devices_of(&mut *opened.source)?;
    let facts = opened.source.facts();
    Ok(Survey { format: opened.format, devices: named(devices, &facts), facts })
}

fn devices_of(source: &mut dyn Source) -> Result<BTreeMap<u32, DeviceSummary>, TraceError> {
    let mut devices = BTreeMap::new();
    while let Some(request) = source.next(SimTime::ZERO)? {
        devices.entry(request.device).or_insert_with(|| DeviceSummary::new(request.device)).count(&request);
    }
    Ok(devices)
}

/// Returns the figures of the devices in the order of their numbers, with the names that the trace gives.
pub(crate) fn named(devices: BTreeMap<u32, DeviceSummary>, facts: &Facts) -> Vec<DeviceSummary> {
    let mut devices: Vec<DeviceSummary> = devices.into_values().collect();
    for device in &mut devices {
        if let Some(name) = facts.device_names.get(&device.device) {
            device.name.clone_from(name);
        }
    }
    devices
}

#[cfg(test)]
mod tests {
    //! Goal: devices are counted separately and the busiest is found. Method: a small trace counted by hand.

    use super::*;

    #[test]
    fn the_busiest_device() {
        let trace = "10,web,1,Read,512,512,7\n11,hm,1,Write,1024,4096,7\n12,hm,1,Write,0,512,7\n13,hm,0,Read,0,512,7\n";
        let survey = survey(Input::bytes("t", trace), &TraceOptions::default()).unwrap();
        let names: Vec<(&str, u64)> =
            survey.devices.iter().map(|device| (device.name.as_str(), device.requests)).collect();
        assert_eq!(names, [("hm.0", 1), ("web.1", 1), ("hm.1", 2)]);
        let busiest = survey.busiest().unwrap();
        assert_eq!((busiest.name.as_str(), busiest.write_bytes, busiest.lba_end), ("hm.1", 4608, 10));
        assert_eq!(survey.format.name, "msr");
    }
}
