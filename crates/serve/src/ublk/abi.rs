//! The interface between the kernel's ublk driver and a server: structures and numbers of `linux/ublk_cmd.h`.
//!
//! Invariants:
//! 1. Structures have the kernel's sizes; the driver takes nothing else.
//! 2. Sectors are 512 bytes here, whatever the drive's are.

/// Size in bytes of the sectors in which the Linux block layer counts, whatever the sector size of the drive.
pub const KERNEL_SECTOR_BYTES: u64 = 512;

/// A command to `/dev/ublk-control`, as carried by an io_uring request: the kernel's `struct ublksrv_ctrl_cmd`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct ControlCommand {
    /// Number of the ublk device that the command concerns; all ones for none, or for a free one in ADD.
    pub device: u32,
    /// Number of the queue; all ones for commands that concern the whole device.
    pub queue: u16,
    /// Size in bytes of the data at `address`; 0 for a command without data.
    pub length: u16,
    /// Address in this process of the data that the command sends or receives; 0 for a command without data.
    pub address: u64,
    /// Numeric argument of the command, such as the process ID for START; 0 for a command without one.
    pub value: u64,
    /// Length of the device path, which only devices of users without privileges have; here always 0.
    pub path_length: u16,
    /// Unused; always 0.
    pub pad: u16,
    /// Unused; always 0.
    pub reserved: u32,
}

/// Properties of a ublk device: the kernel's `struct ublksrv_ctrl_dev_info`. The server proposes them in ADD, and the
/// driver returns the ones that it uses.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceInfo {
    /// Number of queues of the device.
    pub queues: u16,
    /// Depth of each queue: the maximum number of requests in flight in it.
    pub queue_depth: u16,
    /// State of the device, set by the driver: 0 ([`state::DEAD`]) if no server runs for it, otherwise another number.
    pub state: u16,
    /// Unused; always 0.
    pub pad: u16,
    /// Maximum number of data bytes of one request.
    pub request_bytes_max: u32,
    /// Number N of the device `/dev/ublkbN`. In ADD, all ones asks for a free number, which the driver returns here.
    pub device: u32,
    /// Process ID of the server of the device.
    pub process: i32,
    /// Unused; always 0.
    pub pad2: u32,
    /// Features that the device uses, as bits of [`feature`].
    pub features: u64,
    /// Flags for use by the server alone; the driver ignores them.
    pub server_flags: u64,
    /// User ID and group ID of the owner, set by the driver.
    pub owner: [u32; 2],
    /// Unused; always 0.
    pub reserved: [u64; 2],
}

/// Parameters that describe the drive to the block layer: the kernel's `struct ublk_params`. All sectors are of 512
/// bytes.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Parameters {
    /// Size of this structure in bytes.
    pub length: u32,
    /// Groups of fields of this structure that are filled in, as bits of [`part`]; the driver ignores the other fields.
    pub parts: u32,
    /// Attributes of the disk, as bits of [`attribute`].
    pub attributes: u32,
    /// Base-2 logarithm of the size of a logical block in bytes: 9 for 512 bytes.
    pub logical_shift: u8,
    /// Base-2 logarithm of the size of a physical block in bytes.
    pub physical_shift: u8,
    /// Base-2 logarithm of the best size of a request in bytes (`io_opt`).
    pub best_shift: u8,
    /// Base-2 logarithm of the smallest size of a request without a penalty, in bytes (`io_min`).
    pub least_shift: u8,
    /// Maximum length of a read or write request, in sectors of 512 bytes.
    pub sectors_max: u32,
    /// Size of a zone in sectors of 512 bytes; 0 for a disk without zones.
    pub zone_sectors: u32,
    /// Capacity of the disk in sectors of 512 bytes.
    pub sectors: u64,
    /// Mask of the address bits that the data of one request must not cross (`virt_boundary_mask`); here always 0.
    pub boundary_mask: u64,
    /// Offset of the first discardable unit from the start of the disk, in bytes (`discard_alignment`); here always 0.
    pub discard_alignment: u32,
    /// Size in bytes of the unit of discards.
    pub discard_granularity: u32,
    /// Maximum length of a discard, in sectors of 512 bytes; 0 if discards are not supported.
    pub discard_sectors_max: u32,
    /// Maximum length of a WRITE_ZEROES request, in sectors of 512 bytes. With 0, the block layer writes zeroes as
    /// data.
    pub zeroes_sectors_max: u32,
    /// Maximum number of separate ranges in one discard request.
    pub discard_segments_max: u16,
    /// Unused; always 0.
    pub reserved: u16,
    /// Major and minor number of the character device `/dev/ublkcN`, then those of the block device `/dev/ublkbN`; set
    /// by the driver.
    pub device_numbers: [u32; 4],
    /// Maximum number of open zones; 0 for no limit.
    pub open_zones_max: u32,
    /// Maximum number of active zones, which are the open and closed ones together; 0 for no limit.
    pub active_zones_max: u32,
    /// Maximum length of a zone append, in sectors of 512 bytes.
    pub append_sectors_max: u32,
    /// Unused; always 0.
    pub reserved_zoned: [u8; 20],
}

/// A request of the block layer to the server, in memory shared with the driver: the kernel's `struct ublksrv_io_desc`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Descriptor {
    /// The operation in the low 8 bits, such as [`operation::READ`], and flags in the other bits, such as
    /// [`operation::FUA`].
    pub operation_and_flags: u32,
    /// Length of the request in sectors of 512 bytes. For REPORT_ZONES, the maximum number of zones to report.
    pub sectors: u32,
    /// First sector of the request, in sectors of 512 bytes from the start of the device.
    pub sector: u64,
    /// Address of the server's buffer for the data of the request; unused with [`feature::USER_COPY`].
    pub address: u64,
}

/// A zone as the block layer reports it: the kernel's `struct blk_zone`. All sectors are of 512 bytes.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct KernelZone {
    /// First sector of the zone, in sectors of 512 bytes from the start of the device.
    pub start: u64,
    /// Size of the zone, in sectors of 512 bytes.
    pub length: u64,
    /// Sector of the write pointer, in sectors of 512 bytes from the start of the device. All ones for a conventional
    /// zone, which has none; the end of the zone if the zone is full.
    pub pointer: u64,
    /// Type of the zone, one of [`zone_kind`].
    pub kind: u8,
    /// Condition of the zone, one of [`zone_condition`].
    pub condition: u8,
    /// The kernel's flags `non_seq` and `reset` of the zone; here always 0.
    pub flags: [u8; 2],
    /// Unused; always 0.
    pub reserved: [u8; 4],
    /// Number of sectors of 512 bytes from the start of the zone that can be written; here always the size of the zone.
    pub capacity: u64,
    /// Unused; always 0.
    pub reserved_end: [u8; 24],
}

/// A command of the server about one request of a queue: the kernel's `struct ublksrv_io_cmd`. FETCH asks for the first
/// request of a tag. COMMIT_AND_FETCH returns the result of a request and asks for the tag's next one.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct QueueCommand {
    /// Number of the queue, counted from 0.
    pub queue: u16,
    /// Tag of the request: its slot in the queue, from 0 to the queue depth minus one.
    pub tag: u16,
    /// Result of the request: the number of bytes transferred, or a negative error number. Unused in FETCH.
    pub result: i32,
    /// Address of the server's buffer for the data of the tag's requests; 0 with [`feature::USER_COPY`]. In the answer
    /// to a zone append, instead the first sector that was written, in sectors of 512 bytes from the start of the
    /// device.
    pub address: u64,
}

const _: () = assert!(size_of::<ControlCommand>() == 32);
const _: () = assert!(size_of::<DeviceInfo>() == 64);
const _: () = assert!(size_of::<Parameters>() == 112);
const _: () = assert!(size_of::<Descriptor>() == 24);
const _: () = assert!(size_of::<QueueCommand>() == 16);
const _: () = assert!(size_of::<KernelZone>() == 64);

const fn read_write(number: u32, bytes: usize) -> u32 {
    3 << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}

const fn read(number: u32, bytes: usize) -> u32 {
    2 << 30 | (bytes as u32) << 16 | (b'u' as u32) << 8 | number
}

/// Opcodes of the commands of a server. `FETCH` and `COMMIT_AND_FETCH` go to the character device `/dev/ublkcN`, and
/// all others to the control device `/dev/ublk-control`.
pub mod command {
    use super::*;

    /// Command to the control device that returns the [`DeviceInfo`] of a device.
    pub const GET_INFO: u32 = read(0x02, size_of::<ControlCommand>());
    /// Command to the control device that creates a device from a [`DeviceInfo`], which the driver completes.
    pub const ADD: u32 = read_write(0x04, size_of::<ControlCommand>());
    /// Command to the control device that deletes a device, with its character device.
    pub const DELETE: u32 = read_write(0x05, size_of::<ControlCommand>());
    /// Command to the control device that makes the block device `/dev/ublkbN` appear. Its value is the process ID of
    /// the server.
    pub const START: u32 = read_write(0x06, size_of::<ControlCommand>());
    /// Command to the control device that removes the block device `/dev/ublkbN`. The device itself remains until
    /// DELETE.
    pub const STOP: u32 = read_write(0x07, size_of::<ControlCommand>());
    /// Command to the control device that sets the [`Parameters`] of a device, before START.
    pub const SET_PARAMETERS: u32 = read_write(0x08, size_of::<ControlCommand>());
    /// Command to the control device that returns the features of the driver, as bits of [`feature`] in 8 bytes.
    pub const GET_FEATURES: u32 = read(0x13, size_of::<ControlCommand>());
    /// Command to a character device that asks for the first request of a tag. It completes when a request arrives, or
    /// with the result [`ABORTED`] when the device is removed.
    pub const FETCH: u32 = read_write(0x20, size_of::<QueueCommand>());
    /// Command to a character device that returns the result of a tag's request and asks for the tag's next one. It
    /// completes when the next request arrives, or with the result [`ABORTED`] when the device is removed.
    pub const COMMIT_AND_FETCH: u32 = read_write(0x21, size_of::<QueueCommand>());
}

/// Features of the ublk driver, as bits of [`DeviceInfo::features`].
pub mod feature {
    /// Bit: the server transfers the data of requests itself, by reading and writing the character device. Without it,
    /// the driver copies them to and from the server's buffers.
    pub const USER_COPY: u64 = 1 << 7;
    /// Bit: the device may be a zoned block device. Requires [`USER_COPY`].
    pub const ZONED: u64 = 1 << 8;
}

/// States of a device, as values of [`DeviceInfo::state`].
pub mod state {
    /// The device exists and no server runs for it: its block device is gone.
    pub const DEAD: u16 = 0;
}

/// Groups of fields of [`Parameters`], as bits of [`Parameters::parts`].
pub mod part {
    /// Bit: the block sizes, the capacity and the attributes are filled in.
    pub const BASIC: u32 = 1 << 0;
    /// Bit: the limits of discards and of WRITE_ZEROES are filled in.
    pub const DISCARD: u32 = 1 << 1;
    /// Bit: the limits of zones are filled in.
    pub const ZONED: u32 = 1 << 3;
}

/// Attributes of a disk, as bits of [`Parameters::attributes`].
pub mod attribute {
    /// Bit: the disk is read-only.
    pub const READ_ONLY: u32 = 1 << 0;
    /// Bit: the disk is rotational, not solid-state.
    pub const ROTATIONAL: u32 = 1 << 1;
    /// Bit: the disk has a volatile write cache, so the block layer must send flushes.
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    /// Bit: the disk supports writes with force unit access.
    pub const FUA: u32 = 1 << 3;
}

/// Operations of the block layer, and flags of operations, in [`Descriptor::operation_and_flags`].
pub mod operation {
    /// Operation: read sectors.
    pub const READ: u32 = 0;
    /// Operation: write sectors. With the flag [`FUA`] they must be durable before the answer.
    pub const WRITE: u32 = 1;
    /// Operation: make all writes that were answered before durable. The sector number of the request is undefined.
    pub const FLUSH: u32 = 2;
    /// Operation: discard sectors, whose data the host no longer needs (a trim).
    pub const DISCARD: u32 = 3;
    /// Operation: fill sectors with zeroes, without data in the request.
    pub const WRITE_ZEROES: u32 = 5;
    /// Operation: open a zone explicitly.
    pub const ZONE_OPEN: u32 = 10;
    /// Operation: close a zone.
    pub const ZONE_CLOSE: u32 = 11;
    /// Operation: finish a zone, which makes the zone full.
    pub const ZONE_FINISH: u32 = 12;
    /// Operation: write at the write pointer of a zone. The answer returns the sector at which the data were written.
    pub const ZONE_APPEND: u32 = 13;
    /// Operation: reset all sequential zones, which makes them empty.
    pub const ZONE_RESET_ALL: u32 = 14;
    /// Operation: reset a zone, which makes the zone empty.
    pub const ZONE_RESET: u32 = 15;
    /// Operation: report zones, from the zone of the request's sector on.
    pub const REPORT_ZONES: u32 = 18;
    /// Flag of a write (force unit access): the data must be durable before the answer.
    pub const FUA: u32 = 1 << 13;
    /// Flag of WRITE_ZEROES: the sectors must stay allocated, so that no discard may replace the write.
    pub const NO_UNMAP: u32 = 1 << 15;
}

/// Types of zones, as values of [`KernelZone::kind`].
pub mod zone_kind {
    /// Type of a zone without a write pointer, which can be written anywhere.
    pub const CONVENTIONAL: u8 = 1;
    /// Type of a zone that must be written at its write pointer (sequential write required).
    pub const SEQUENTIAL: u8 = 2;
}

/// Conditions of zones, as values of [`KernelZone::condition`].
pub mod zone_condition {
    /// Condition of a conventional zone, which has no write pointer.
    pub const NO_POINTER: u8 = 0;
    /// Condition of a zone in which no sector is written.
    pub const EMPTY: u8 = 1;
    /// Condition of a zone that was opened by a write.
    pub const IMPLICITLY_OPEN: u8 = 2;
    /// Condition of a zone that the host opened with ZONE_OPEN.
    pub const EXPLICITLY_OPEN: u8 = 3;
    /// Condition of a zone that is partly written and not open.
    pub const CLOSED: u8 = 4;
    /// Condition of a zone that can only be read.
    pub const READ_ONLY: u8 = 0xd;
    /// Condition of a zone that is completely written, or was finished.
    pub const FULL: u8 = 0xe;
    /// Condition of a zone that can be neither read nor written.
    pub const OFFLINE: u8 = 0xf;
}

/// Returns the byte offset in the character device at which a server with [`feature::USER_COPY`] reads and writes the
/// data of the request with `tag`, for queue 0.
pub const fn bytes_offset(tag: u16) -> u64 {
    0x8000_0000 + ((tag as u64) << 25)
}

/// Maximum depth of a queue that the driver permits, in requests.
pub const QUEUE_DEPTH_MAX: usize = 4096;
/// Result with which a FETCH or COMMIT_AND_FETCH completes when the device is removed instead of a request arriving.
pub const ABORTED: i32 = -libc::ENODEV;
