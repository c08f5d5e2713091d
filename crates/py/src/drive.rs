//! `imbrex.Drive`: an emulated drive with bytes, in this process. Its clock advances only with its requests and with
//! calls of its owner.
//!
//! Invariants:
//! 1. A power cut does not reset the clock.
//! 2. A request that fails by the host's fault changes nothing.
//! 3. A drive in which a panic occurred is closed, because the panic may have left its state inconsistent.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use imbrex::{Failure, drives};
use imbrex_device::drive::{Making, create_file_of, header_of};
use imbrex_device::faults::Schedule;
use imbrex_device::zoned::ZoneAction;
use imbrex_device::{DeviceError, EmulatedDrive, Io, IoKind, Store};
use imbrex_disk::{Sectors, SimTime};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::errors::{ImbrexError, guarded};

/// Largest size of one request in bytes, so that a wrong number is an error rather than memory exhaustion.
const REQUEST_BYTES_MAX: u64 = 1 << 30;

/// Message for operations on a closed drive.
const CLOSED: &str = "the drive is closed: Drive.open its image, or Drive.create another";

/// A zone: index, start, length, write pointer (in bytes), condition.
type ZoneRow = (u32, u64, u64, u64, String);

/// An open drive and its settings.
struct Open {
    drive: EmulatedDrive,
    /// Simulated time of the last request in ns.
    latency_ns: u64,
    /// Sizes of the write cache and the read look-ahead in bytes, if they were set.
    caches: Option<(u64, u64)>,
}

/// An emulated drive that stores data, in an image file or in memory. Its clock advances only with its requests and
/// with calls of its owner. After it was closed, or a panic occurred in it, every operation but `close` is an error.
#[pyclass(frozen, module = "imbrex._imbrex")]
pub struct Drive {
    open: Mutex<Option<Open>>,
    path: Option<PathBuf>,
}

fn exception(error: DeviceError) -> PyErr {
    match error {
        DeviceError::Refused(_) | DeviceError::PastEnd { .. } | DeviceError::Zone(_) => {
            PyValueError::new_err(error.to_string())
        }
        error => ImbrexError::new_err(error.to_string()),
    }
}

impl Drive {
    fn holding(drive: EmulatedDrive, path: Option<PathBuf>) -> Drive {
        let open = Open { drive, latency_ns: 0, caches: None };
        Drive { open: Mutex::new(Some(open)), path }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` with the drive, if it is open. The interpreter lock is released meanwhile.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Open) -> Result<T, DeviceError> + Send,
    ) -> PyResult<T> {
        let outcome = py.detach(|| {
            guarded(|| {
                let mut held = self.lock();
                let Some(mut open) = held.take() else { return Ok(None) };
                let outcome = work(&mut open);
                *held = Some(open);
                Ok(Some(outcome))
            })
        })?;
        let outcome = outcome.ok_or_else(|| PyValueError::new_err(CLOSED))?;
        outcome.map_err(exception)
    }

    fn serve(
        &self,
        py: Python<'_>,
        kind: IoKind,
        offset: u64,
        length: u64,
        buffer: Vec<u8>,
    ) -> PyResult<(u64, Vec<u8>)> {
        self.with(py, move |open| {
            let completion = open.drive.serve(Io { kind, offset, length, buffer })?;
            open.latency_ns = completion.end.since(completion.entry).0;
            completion.outcome?;
            Ok((open.latency_ns, completion.buffer))
        })
    }
}

#[pymethods]
impl Drive {
    /// Creates a new drive: in memory, or in the image file `path`.
    #[staticmethod]
    #[pyo3(signature = (drive, path=None))]
    fn create(py: Python<'_>, drive: String, path: Option<PathBuf>) -> PyResult<Drive> {
        py.detach(|| {
            guarded(|| {
                let Some(path) = path else { return Ok(Drive::holding(drives::emulated(&drive)?, None)) };
                if path.exists() {
                    return Err(Failure::failed(format!("{} exists already, and was not changed", path.display()))
                        .or_try("another name, or Drive.open"));
                }
                let (simulated, spec) = drives::build(&drive)?;
                let header = header_of(&simulated, &spec, &Making::default())?;
                drop(create_file_of(&path, header, simulated)?);
                Ok(Drive::holding(EmulatedDrive::open_file(&path, true)?, Some(path)))
            })
        })
    }

    /// Opens the drive in the image file `path`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Drive> {
        py.detach(|| guarded(|| Ok(Drive::holding(EmulatedDrive::open_file(&path, true)?, Some(path)))))
    }

    /// Reads `length` bytes from byte `offset` on.
    fn read<'py>(&self, py: Python<'py>, offset: u64, length: u64) -> PyResult<Bound<'py, PyBytes>> {
        if length > REQUEST_BYTES_MAX {
            return Err(PyValueError::new_err(format!("{length} bytes: a request takes {REQUEST_BYTES_MAX} at most")));
        }
        let (_, buffer) = self.serve(py, IoKind::Read, offset, length, Vec::new())?;
        Ok(PyBytes::new(py, &buffer))
    }

    /// Writes `data` from byte `offset` on. Returns the simulated time of the write in nanoseconds.
    #[pyo3(signature = (offset, data, fua=false))]
    fn write(&self, py: Python<'_>, offset: u64, data: &Bound<'_, PyAny>, fua: bool) -> PyResult<u64> {
        let bytes = PyBuffer::<u8>::get(data).map_err(|_| {
            let found = data.get_type();
            PyTypeError::new_err(format!("data is a {found}: expected bytes, a bytearray or another buffer of bytes"))
        })?;
        let bytes = bytes.to_vec(py)?;
        Ok(self.serve(py, IoKind::Write { fua }, offset, bytes.len() as u64, bytes)?.0)
    }

    /// Makes all acknowledged writes durable. Returns the simulated time of the flush in nanoseconds.
    fn flush(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.serve(py, IoKind::Flush, 0, 0, Vec::new())?.0)
    }

    /// Discards `length` bytes from byte `offset` on. Returns the simulated time of the trim in nanoseconds.
    fn trim(&self, py: Python<'_>, offset: u64, length: u64) -> PyResult<u64> {
        Ok(self.serve(py, IoKind::Trim, offset, length, Vec::new())?.0)
    }

    /// Lets `ns` nanoseconds of simulated time pass, in which the drive writes back and cleans as it would.
    fn sleep(&self, py: Python<'_>, ns: u64) -> PyResult<()> {
        self.with(py, move |open| {
            let until = open.drive.now().0.checked_add(ns).filter(|&until| until < u64::MAX / 2);
            let until = until.ok_or_else(|| DeviceError::Refused(format!("{ns} ns: the clock ends before that")))?;
            open.drive.advance(SimTime(until));
            Ok(())
        })
    }

    /// Cuts the power and switches it on again. Without a `seed`, all data in the volatile cache is lost; with a
    /// `seed`, sectors of the cache survive at random. Returns whether the cache held unwritten data.
    #[pyo3(signature = (seed=None))]
    fn power_cut(&self, py: Python<'_>, seed: Option<u64>) -> PyResult<bool> {
        py.detach(|| {
            guarded(|| {
                let mut held = self.lock();
                let closed = || Failure::usage(CLOSED);
                let open = held.take().ok_or_else(closed)?;
                let (now, caches, was_dirty) = (open.drive.now(), open.caches, !open.drive.dirty().is_zero());
                let media = match seed {
                    None => open.drive.power_cut(),
                    Some(seed) => {
                        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
                        open.drive.power_cut_keeping(|_| random.next_u32() & 1 == 1)?
                    }
                };
                let place = self.path.as_deref().unwrap_or(Path::new("memory")).display().to_string();
                let mut drive = EmulatedDrive::new(Store::open(media, &place)?);
                if let Some((write_cache, read_ahead)) = caches {
                    drive.set_caches(write_cache, read_ahead);
                }
                drive.pass_until(now);
                *held = Some(Open { drive, latency_ns: 0, caches });
                Ok(was_dirty)
            })
        })
    }

    /// Sets the sizes of the volatile caches in bytes, 0 for none. Unwritten data in the cache is written back first.
    fn set_caches(&self, py: Python<'_>, write_cache: u64, read_ahead: u64) -> PyResult<()> {
        self.with(py, move |open| {
            if !open.drive.dirty().is_zero() {
                open.drive.flush()?;
            }
            open.drive.set_caches(write_cache, read_ahead);
            open.caches = Some((write_cache, read_ahead));
            Ok(())
        })
    }

    /// Applies the faults of a schedule in TOML.
    fn play_faults(&self, py: Python<'_>, schedule: String) -> PyResult<()> {
        let schedule = guarded(|| Schedule::parse("faults", &schedule).map_err(Failure::usage))?;
        self.with(py, move |open| open.drive.play_faults(schedule.faults()))
    }

    /// Returns the zones, each as (index, start, length, pointer, condition) in bytes; none if the drive has no zones.
    fn zones(&self, py: Python<'_>) -> PyResult<Vec<ZoneRow>> {
        self.with(py, |open| {
            let (mut zones, sector) = (Vec::new(), u64::from(open.drive.sector_bytes()));
            open.drive.report_zones(0, u32::MAX, &mut zones);
            let row = |zone: &imbrex_layer::Zone| {
                let (start, length) = (zone.start.0 * sector, zone.sectors.0 * sector);
                (zone.index, start, length, zone.pointer.0 * sector, zone.condition.name().to_string())
            };
            Ok(zones.iter().map(row).collect())
        })
    }

    /// Applies `action` to zone `index`: open, close, finish or reset.
    fn change_zone(&self, py: Python<'_>, action: String, index: u32) -> PyResult<()> {
        self.with(py, move |open| {
            let action = match action.as_str() {
                "open" => ZoneAction::Open(index),
                "close" => ZoneAction::Close(index),
                "finish" => ZoneAction::Finish(index),
                "reset" => ZoneAction::Reset(index),
                other => {
                    let reason = format!("'{other}' is not an action on a zone: open, close, finish or reset");
                    return Err(DeviceError::Refused(reason));
                }
            };
            open.drive.change_zone(action)
        })
    }

    /// Returns DNOR and DID of a host-managed caveat disk in bytes, or None for other drives (Singh 2014 §3.2). A
    /// written sector damages no sector within DNOR after it, and none beyond DID.
    fn caveat(&self, py: Python<'_>) -> PyResult<Option<(u64, u64)>> {
        self.with(py, |open| {
            let (drive, sector) = (open.drive.drive(), u64::from(open.drive.sector_bytes()));
            let bytes = |sectors: Sectors| sectors.0 * sector;
            Ok(drive.caveat_distances().map(|is| (bytes(is.no_overlap), bytes(is.isolation))))
        })
    }

    /// Returns figures of the drive, by name.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (numbers, words) = self.with(py, |open| {
            let drive = &open.drive;
            let dirty: u64 = drive.dirty_ranges().iter().map(|range| range.1).sum();
            let simulated = drive.drive();
            let numbers = [
                ("capacity_bytes", drive.capacity_bytes()),
                ("sector_bytes", u64::from(drive.sector_bytes())),
                ("now_ns", drive.host_time().0),
                ("latency_ns", open.latency_ns),
                ("dirty_bytes", dirty),
                ("write_cache_bytes", open.caches.map_or(simulated.host.write_cache_bytes, |caches| caches.0)),
                ("read_ahead_bytes", open.caches.map_or(simulated.host.read_ahead_bytes, |caches| caches.1)),
            ];
            Ok((numbers, [("drive", simulated.label.clone()), ("layer", simulated.layer.name().to_string())]))
        })?;
        let facts = PyDict::new(py);
        for (name, number) in numbers {
            facts.set_item(name, number)?;
        }
        for (name, word) in words {
            facts.set_item(name, word)?;
        }
        Ok(facts)
    }

    /// Shuts the drive down in good order. A drive in memory is lost then.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            guarded(|| {
                let Some(mut open) = self.lock().take() else { return Ok(()) };
                Ok(open.drive.shut_down()?)
            })
        })
    }
}
