//! The control device of the driver: adds, starts, stops and deletes block devices.
//!
//! Invariants:
//! 1. Each call waits for the answer to its command, so data to which the command points outlive the command.
//! 2. Error messages say how to fix the error.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, cqueue, opcode, squeue, types};

use super::abi::{ControlCommand, DeviceInfo, Parameters, command, feature, state};

/// Path of the control device.
const CONTROL: &str = "/dev/ublk-control";
/// Mask for opcodes of Linux before 6.3: the number without direction and size.
const OLD_OPCODE_MASK: u32 = 0xff;

/// A connection to the control device of the ublk driver, over which devices are added, started, stopped and deleted.
pub struct Control {
    file: File,
    ring: IoUring<squeue::Entry128, cqueue::Entry>,
    /// Whether the driver knows only the opcodes of Linux before 6.3.
    is_old: bool,
}

/// An error message for the user, which says how to fix the error where that is known.
pub type Words = String;

impl Control {
    /// Opens `/dev/ublk-control`, the control device of the driver, and an io_uring for its commands.
    ///
    /// # Errors
    ///
    /// The device cannot be opened, or the kernel permits no io_uring. The message says how to fix the error.
    pub fn open() -> Result<Control, Words> {
        let file = File::options().read(true).write(true).open(CONTROL).map_err(|error| cannot_open(&error))?;
        let ring = IoUring::builder().build(4).map_err(|error| no_ring(&error))?;
        Ok(Control { file, ring, is_old: false })
    }

    /// Returns the features of the ublk driver, as bits of [`feature`]. Returns 0 if the driver does not report them,
    /// as before Linux 6.5.
    pub fn features(&mut self) -> u64 {
        let mut features = 0u64;
        let asked = self.run(command::GET_FEATURES, u32::MAX, Argument::Data((&raw mut features).cast(), 8));
        if asked.is_err() { 0 } else { features }
    }

    /// Adds the device whose number is in `info`, or a device with a free number if that is all ones. The driver
    /// completes `info`. A device of that number without a running server is deleted first.
    ///
    /// # Errors
    ///
    /// A server runs for that number, or the kernel refuses the device.
    pub fn add(&mut self, info: &mut DeviceInfo) -> Result<(), Words> {
        let asked = info.device;
        for attempt in 0..3 {
            match self.command_with(command::ADD, asked, info) {
                Ok(()) => return Ok(()),
                Err(error) if attempt == 0 && !self.is_old && is(&error, libc::EOPNOTSUPP) => self.is_old = true,
                Err(error) if is(&error, libc::EEXIST) && self.is_dead(asked) => {
                    self.delete(asked).map_err(|error| format!("removing the dead device {asked}: {error}"))?;
                }
                Err(error) => return Err(cannot_add(asked, info, &error)),
            }
        }
        Err(format!("the kernel makes no device {asked}"))
    }

    fn is_dead(&mut self, device: u32) -> bool {
        let mut info = DeviceInfo::default();
        self.command_with(command::GET_INFO, device, &mut info).is_ok() && info.state == state::DEAD
    }

    /// Sets the parameters of the disk of `device`, before the device is started.
    ///
    /// # Errors
    ///
    /// The kernel refuses the parameters.
    pub fn set_parameters(&mut self, device: u32, parameters: &mut Parameters) -> Result<(), Words> {
        self.command_with(command::SET_PARAMETERS, device, parameters)
            .map_err(|error| format!("the kernel does not take the drive's sizes: {error}"))
    }

    /// Starts `device`: makes its block device appear, with this process as its server. Returns after the kernel has
    /// read the partition table, so another thread must serve the device's queue meanwhile.
    ///
    /// # Errors
    ///
    /// The kernel does not start the device.
    pub fn start(&mut self, device: u32) -> Result<(), Words> {
        let process = u64::from(std::process::id());
        self.run(command::START, device, Argument::Value(process))
            .map_err(|error| format!("the kernel does not start the device: {error}"))
    }

    /// Removes the block device of `device`. Returns after its requests have been answered, so another thread must
    /// serve the device's queue meanwhile.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn stop(&mut self, device: u32) -> io::Result<()> {
        self.run(command::STOP, device, Argument::Value(0))
    }

    /// Deletes `device`, with its character device.
    ///
    /// # Errors
    ///
    /// The driver's error.
    pub fn delete(&mut self, device: u32) -> io::Result<()> {
        self.run(command::DELETE, device, Argument::Value(0))
    }

    /// Returns the opcode of `command` that this driver understands: `command` itself, or only its low 8 bits for
    /// drivers before Linux 6.3. Which of the two applies is known after [`Control::add`].
    pub fn opcode(&self, command: u32) -> u32 {
        if self.is_old { command & OLD_OPCODE_MASK } else { command }
    }

    fn command_with<T>(&mut self, command: u32, device: u32, data: &mut T) -> io::Result<()> {
        self.run(command, device, Argument::Data((data as *mut T).cast(), size_of::<T>() as u16))
    }

    fn run(&mut self, command: u32, device: u32, argument: Argument) -> io::Result<()> {
        let mut words = ControlCommand { device, queue: u16::MAX, ..ControlCommand::default() };
        match argument {
            Argument::Data(at, bytes) => (words.address, words.length) = (at as u64, bytes),
            Argument::Value(value) => words.value = value,
        }
        let entry = opcode::UringCmd80::new(types::Fd(self.file.as_raw_fd()), self.opcode(command))
            .cmd(in_request(&words))
            .build();
        #[expect(unsafe_code, reason = "a request to io_uring is one by its nature")]
        // SAFETY: the data of the command are borrowed by the caller, and the answer is awaited before this returns.
        unsafe {
            self.ring.submission().push(&entry).expect("there is one command at a time");
        }
        let answer = loop {
            // A signal may end the wait early, even if the submission succeeded.
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            if let Some(answer) = self.ring.completion().next() {
                break answer;
            }
        };
        if answer.result() < 0 {
            return Err(io::Error::from_raw_os_error(-answer.result()));
        }
        Ok(())
    }
}

enum Argument {
    Data(*mut u8, u16),
    Value(u64),
}

/// Returns the bytes of a command structure in the 80 bytes of an io_uring request, followed by zeros.
///
/// # Panics
///
/// If `T` is larger than 80 bytes.
pub fn in_request<T: Copy>(words: &T) -> [u8; 80] {
    assert!(size_of::<T>() <= 80, "a command fits into a request");
    let mut bytes = [0; 80];
    #[expect(
        unsafe_code,
        reason = "the kernel's structures have no padding, and a dependency for one copy is too much"
    )]
    // SAFETY: both are valid for the bytes of `T`, do not overlap, and any bytes are valid as bytes.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *words).cast::<u8>(), bytes.as_mut_ptr(), size_of::<T>());
    }
    bytes
}

fn is(error: &io::Error, number: i32) -> bool {
    error.raw_os_error() == Some(number)
}

fn cannot_open(error: &io::Error) -> Words {
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "this kernel has no ublk driver loaded ({CONTROL} is missing): 'modprobe ublk_drv' on Linux 6.0 or newer \
             built with CONFIG_BLK_DEV_UBLK; elsewhere use --nbd"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("{CONTROL}: {error}: ublk devices are made by root; use --nbd otherwise")
        }
        _ => format!("{CONTROL}: {error}"),
    }
}

/// Returns the message for the user after io_uring failed with `error`. It says how to fix the error if the kernel
/// lacks or forbids io_uring.
pub fn no_ring(error: &io::Error) -> Words {
    if is(error, libc::ENOSYS) || is(error, libc::EPERM) {
        return format!(
            "io_uring is not to be had ({error}): the kernel lacks it, or forbids it (sysctl kernel.io_uring_disabled, or a \
             container); use --nbd otherwise"
        );
    }
    format!("io_uring: {error}")
}

fn cannot_add(asked: u32, info: &DeviceInfo, error: &io::Error) -> Words {
    if is(error, libc::EEXIST) {
        return format!("/dev/ublkb{asked} exists and is served: take another number, or none for a free one");
    }
    if is(error, libc::EPERM) || is(error, libc::EACCES) {
        return format!("the kernel makes no device ({error}): ublk devices are made by root; use --nbd otherwise");
    }
    if info.features & feature::ZONED != 0 {
        return format!("the kernel makes no zoned device ({error}): that takes Linux 6.6 with CONFIG_BLK_DEV_ZONED");
    }
    format!("the kernel makes no device: {error}")
}
