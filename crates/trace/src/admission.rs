//! Turns the records that a format parsed into the requests that a source yields. Filters by device, makes times
//! relative to the first request, and counts all records left out. Every reader shares this code, so a format's file
//! describes only its layout.
//!
//! Invariants:
//! 1. Every record parsed is yielded or counted in [`Facts`].
//! 2. The first request yielded is at time 0; later requests with an earlier time are at 0 too. The order of the file
//!    is kept.
//! 3. Each device that a format names gets one number. If the trace gives the device a number that is still free, the
//!    device keeps that number. Otherwise it gets one past the highest number so far.

use std::collections::BTreeMap;

use imbrex_units::{Command, Lba, Operation, SimTime};

use crate::facts::Facts;
use crate::options::{Device, SkipMalformed, TraceOptions};
use crate::request::{Request, TraceError, When};

/// Bytes of a sector, the unit of a request's length.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// A request as the format gives it, with its time since the trace's own epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceRecord {
    /// Time of the record in nanoseconds since the zero point of the trace's clock. The time of the first request has
    /// yet to be subtracted.
    pub time_ns: u64,
    /// Number of the device that the record is for.
    pub device: u32,
    /// Operation, first sector and length of the request, in sectors of 512 bytes.
    pub command: Command,
    /// Whether the offset or size in the record was not a multiple of 512 bytes, so that the request was widened to
    /// whole sectors.
    pub unaligned: bool,
}

/// The result of parsing a line or a binary record.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parsed {
    /// A request.
    Request(TraceRecord),
    /// A record other than a read, write, flush or trim.
    NotRequest,
    /// A header, a comment, a blank line.
    Nothing,
}

/// The fault of a line or a record. The reader adds the place.
#[derive(Debug)]
pub(crate) struct Malformed {
    reason: Box<str>,
}

impl Malformed {
    /// Returns the fault of a record that has `found` where the format needs `expected`.
    #[cold]
    pub(crate) fn new(expected: &str, found: &[u8]) -> Malformed {
        Malformed::of(format!("expected {expected}, found {}", crate::fields::shown(found)))
    }

    /// Returns the fault with this `reason`.
    #[cold]
    pub(crate) fn of(reason: String) -> Malformed {
        Malformed { reason: reason.into() }
    }
}

/// Returns the first sector and the number of sectors that `bytes` from `offset_bytes` touch, and whether the range had
/// to be widened to whole sectors. Returns `None` if the range has more sectors than one request may have, or ends past
/// 2^64 bytes.
#[inline]
pub fn sectors_of(offset_bytes: u64, bytes: u64) -> Option<(Lba, u32, bool)> {
    let end_bytes = offset_bytes.checked_add(bytes)?;
    let start = offset_bytes / SECTOR_BYTES;
    let sectors = if bytes == 0 { 0 } else { end_bytes.div_ceil(SECTOR_BYTES) - start };
    let unaligned = !(offset_bytes | bytes).is_multiple_of(SECTOR_BYTES);
    Some((Lba(start), u32::try_from(sectors).ok()?, unaligned))
}

/// Returns `sectors` as the length of a request from `lba`. Returns `None` if one request cannot have so many sectors,
/// or if the end lies past the last sector whose address in bytes has 64 bits.
#[inline]
pub(crate) fn reached(lba: u64, sectors: u64) -> Option<u32> {
    let end = lba.checked_add(sectors)?;
    u32::try_from(sectors).ok().filter(|_| end <= u64::MAX / SECTOR_BYTES)
}

/// Returns the fault of a record of `sectors` from `lba` for which [`reached`] returns `None`.
#[cold]
pub(crate) fn out_of_reach(lba: u64, sectors: u64) -> Malformed {
    if u32::try_from(sectors).is_err() {
        return Malformed::of(format!("{sectors} sectors from {lba} are too many for one request"));
    }
    let last = u64::MAX / SECTOR_BYTES;
    Malformed::of(format!("the address, sector {lba}, is past sector {last} (16 EiB), the last there can be"))
}

/// Returns the record of a read, write or trim of `bytes` from `offset_bytes`.
#[inline]
pub(crate) fn byte_record(
    time_ns: u64,
    device: u32,
    operation: Operation,
    offset_bytes: u64,
    bytes: u64,
) -> Result<Parsed, Malformed> {
    let Some((lba, sectors, unaligned)) = sectors_of(offset_bytes, bytes) else {
        return Err(Malformed::of(format!("{bytes} bytes from {offset_bytes} are too many for one request")));
    };
    let command = Command { operation, fua: false, sectors, lba };
    Ok(Parsed::Request(TraceRecord { time_ns, device, command, unaligned }))
}

/// Returns the record of a command for `sectors` from `lba`.
#[inline]
pub(crate) fn sector_record(
    time_ns: u64,
    device: u32,
    operation: Operation,
    lba: u64,
    sectors: u64,
) -> Result<Parsed, Malformed> {
    let Some(sectors) = reached(lba, sectors) else { return Err(out_of_reach(lba, sectors)) };
    let command = Command { operation, fua: false, sectors, lba: Lba(lba) };
    Ok(Parsed::Request(TraceRecord { time_ns, device, command, unaligned: false }))
}

/// The devices of a trace, and the device that the user chose.
#[derive(Debug)]
pub(crate) struct Devices {
    wanted: Option<Device>,
    chosen: Chosen,
    names: BTreeMap<u32, String>,
    numbers: BTreeMap<Vec<u8>, u32>,
}

/// The devices whose requests pass the filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chosen {
    All,
    One(u32),
    /// A device that the user chose by name and that no record has named yet.
    Unmet,
}

impl Devices {
    fn new(wanted: Option<Device>) -> Devices {
        let chosen = match &wanted {
            None => Chosen::All,
            Some(Device::Number(number)) => Chosen::One(*number),
            Some(Device::Name(_)) => Chosen::Unmet,
        };
        Devices { wanted, chosen, names: BTreeMap::new(), numbers: BTreeMap::new() }
    }

    /// Returns devices of which all pass the filter.
    pub(crate) fn all() -> Devices {
        Devices::new(None)
    }

    /// Returns the number of the device called `name`. On first use, this is `preferred` if that number is free, else
    /// one past the highest number so far.
    pub(crate) fn number(&mut self, name: &[u8], preferred: Option<u32>) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let past_highest = self.names.last_key_value().map_or(0, |(&highest, _)| highest.saturating_add(1));
        let number = preferred.filter(|number| !self.names.contains_key(number)).unwrap_or(past_highest);
        let shown = String::from_utf8_lossy(name).into_owned();
        if self.wanted.as_ref().is_some_and(|wanted| *wanted == Device::Name(shown.clone())) {
            self.chosen = Chosen::One(number);
        }
        self.names.insert(number, shown);
        self.numbers.insert(name.to_vec(), number);
        number
    }

    #[inline]
    fn admits(&self, device: u32) -> bool {
        match self.chosen {
            Chosen::All => true,
            Chosen::One(chosen) => chosen == device,
            Chosen::Unmet => false,
        }
    }
}

/// State that all readers share.
#[derive(Debug)]
pub(crate) struct Admission {
    /// Numbers of the devices that the trace has named so far, and the filter that passes only the device that the user
    /// chose.
    pub devices: Devices,
    name: String,
    skip_malformed: SkipMalformed,
    origin_ns: Option<u64>,
    previous_ns: u64,
    /// Latest time so far.
    latest_ns: u64,
    facts: Facts,
}

impl Admission {
    /// Returns the state for reading the trace called `name`.
    pub(crate) fn new(name: String, options: &TraceOptions) -> Admission {
        Admission {
            devices: Devices::new(options.device.clone()),
            name,
            skip_malformed: options.skip_malformed,
            origin_ns: None,
            previous_ns: 0,
            latest_ns: 0,
            facts: Facts::default(),
        }
    }

    /// Returns the request of `parsed` if it is one and the device filter passes it. Counts all other records.
    #[inline]
    pub(crate) fn admit(&mut self, parsed: Parsed) -> Option<Request> {
        match parsed {
            Parsed::Request(record) => self.admit_record(&record),
            Parsed::NotRequest => {
                self.facts.not_requests += 1;
                None
            }
            Parsed::Nothing => None,
        }
    }

    #[inline]
    fn admit_record(&mut self, record: &TraceRecord) -> Option<Request> {
        if !self.devices.admits(record.device) {
            self.facts.other_devices += 1;
            return None;
        }
        let origin_ns = *self.origin_ns.get_or_insert(record.time_ns);
        self.facts.requests += 1;
        self.facts.out_of_order += u64::from(record.time_ns < self.previous_ns);
        self.latest_ns = self.latest_ns.max(record.time_ns);
        let step_back_ns = self.latest_ns - record.time_ns;
        self.facts.longest_step_back_ns = self.facts.longest_step_back_ns.max(step_back_ns);
        self.facts.unaligned += u64::from(record.unaligned);
        self.previous_ns = record.time_ns;
        let when = When::At(SimTime(record.time_ns.saturating_sub(origin_ns)));
        Some(Request { when, device: record.device, command: record.command })
    }

    /// Counts a malformed record at `place` if the options say to skip malformed records. Otherwise returns the error
    /// that ends the reading.
    #[cold]
    pub(crate) fn malformed(&mut self, place: &str, malformed: Malformed) -> Result<(), TraceError> {
        let place = format!("{}, {place}", self.name);
        let error = TraceError::new(place, malformed.reason);
        if self.skip_malformed == SkipMalformed::No {
            return Err(error);
        }
        self.facts.malformed += 1;
        if self.facts.first_malformed.is_none() {
            self.facts.first_malformed = Some(error.to_string());
        }
        Ok(())
    }

    /// Ends the trace.
    ///
    /// # Errors
    ///
    /// If the user chose a device and the trace has no request for it, or if more than half of the records are
    /// malformed and the options do not say to skip all.
    pub(crate) fn finish(&self) -> Result<Option<Request>, TraceError> {
        let reason = self.facts.mostly_malformed().filter(|_| self.skip_malformed == SkipMalformed::Some);
        if let Some(reason) = reason {
            return Err(TraceError::new(&self.name, reason));
        }
        match &self.devices.wanted {
            Some(wanted) if self.facts.requests == 0 => {
                let known: Vec<&str> = self.devices.names.values().map(String::as_str).collect();
                let names = if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) };
                let reason = format!("no request is for device {wanted}{names}");
                Err(TraceError::new(self.name.clone(), reason))
            }
            _ => Ok(None),
        }
    }

    /// Keeps `note` as a message for the user.
    pub(crate) fn note(&mut self, note: String) {
        self.facts.notes.push(note);
    }

    /// Returns the facts counted so far.
    pub(crate) fn facts(&self) -> Facts {
        Facts { device_names: self.devices.names.clone(), origin_ns: self.origin_ns, ..self.facts.clone() }
    }
}

#[cfg(test)]
mod tests {
    //! Goal: a range of bytes becomes the sectors that it touches; devices keep the numbers that the trace gives them
    //! where those are free. Method: cases worked out by hand.

    use super::*;

    #[test]
    fn bytes_are_widened_to_whole_sectors() {
        assert_eq!(sectors_of(1024, 512), Some((Lba(2), 1, false)));
        assert_eq!(sectors_of(1023, 2), Some((Lba(1), 2, true)));
        assert_eq!(sectors_of(100, 0), Some((Lba(0), 0, true)));
        assert_eq!(sectors_of(u64::MAX, 1), None);
        assert_eq!(sectors_of(0, 512 << 32), None);
    }

    #[test]
    fn no_address_in_bytes_has_more_than_64_bits() {
        let last = (1u64 << 55) - 1;
        assert_eq!((reached(last - 8, 8), reached(last - 7, 8)), (Some(8), None));
        assert_eq!((reached(u64::MAX, 8), reached(0, 1 << 32)), (None, None));
        let of = |lba, sectors| sector_record(0, 0, Operation::Read, lba, sectors).expect_err("out of reach").reason;
        assert!(of(i64::MAX as u64, 8).starts_with("the address, sector 9223372036854775807, is past"));
        assert!(of(0, 1 << 32).contains("too many for one request"));
    }

    #[test]
    fn a_device_keeps_its_number_unless_another_has_it() {
        let mut devices = Devices::new(Some(Device::Name("usr.1".into())));
        assert_eq!(devices.number(b"hm.1", Some(1)), 1);
        assert_eq!(devices.number(b"hm.0", Some(0)), 0);
        assert!(!devices.admits(1));
        assert_eq!(devices.number(b"usr.1", Some(1)), 2);
        assert_eq!(devices.number(b"hm.1", Some(1)), 1);
        assert!(devices.admits(2) && !devices.admits(1));
    }
}
