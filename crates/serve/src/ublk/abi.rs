//! The interface between the kernel's ublk driver and a server: structures and numbers of `linux/ublk_cmd.h`.
//!
//! Invariants:
//! 1. Structures have the kernel's sizes; the driver takes nothing else.
//! 2. Sectors are 512 bytes here, whatever the drive's are.

/// Bytes of the sectors in which the block layer counts.
pub const KERNEL_SECTOR_BYTES: u64 = 512;

/// A command to `/dev/ublk-control`, as part of a request to io_uring.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct ControlCommand {
    /// Number of the device.
    pub device: u32,
    /// Number of the queue; all ones for commands to the device.
    pub queue: u16,
    /// Number of bytes at `address`.
    pub length: u16,
    /// Address of the data that are sent or requested.
    pub address: u64,
    /// Numeric argument of the command.
    pub value: u64,
    /// Length of the device path, for devices of users without privileges; unused.
    pub path_length: u16,
    /// Unused; always 0.
    pub pad: u16,
    /// Unused; always 0.
    pub reserved: u32,
}

/// Properties of a device, agreed on when it is added.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceInfo {
    /// Number of queues.
    pub queues: u16,
    /// Maximum number of requests in flight for each queue.
    pub queue_depth: u16,
    /// State of the device, one of [`state`].
    pub state: u16,
    /// Unused; always 0.
    pub pad: u16,
    /// Maximum number of bytes of a request.
    pub request_bytes_max: u32,
    /// Number of the device: all ones asks for a free one.
    pub device: u32,
    /// Process ID of the server.
    pub process: i32,
    /// Unused; always 0.
    pub pad2: u32,
    /// Bits of [`feature`].
    pub features: u64,
    /// Flags of the server, not read by the driver.
    pub server_flags: u64,
    /// User and group of the owner, set by the driver.
    pub owner: [u32; 2],
    /// Unused; always 0.
    pub reserved: [u64; 2],
}

/// Parameters that describe the drive to the block layer.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Parameters {
    /// Number of bytes of this structure.
    pub length: u32,
    /// Bits of [`part`]: the parts that are filled in.
    pub parts: u32,
    /// Bits of [`attribute`].
    pub attributes: u32,
    /// Size of a logical block, as a power of two in bytes.
    pub logical_shift: u8,
    /// Size of a physical block, as a power of two in bytes.
    pub physical_shift: u8,
    /// Best size of a request (`io_opt`), as a power of two in bytes.
    pub best_shift: u8,
    /// Smallest size of a request without a penalty (`io_min`), as a power of two in bytes.
    pub least_shift: u8,
    /// Maximum number of sectors of a request.
    pub sectors_max: u32,
    /// Number of sectors of a zone.
    pub zone_sectors: u32,
    /// Number of sectors of the drive.
    pub sectors: u64,
    /// Unused; always 0.
    pub boundary_mask: u64,
    /// First sector that can be discarded.
    pub discard_alignment: u32,
    /// Granularity of discards, in bytes.
    pub discard_granularity: u32,
    /// Maximum number of sectors of a discard.
    pub discard_sectors_max: u32,
    /// Maximum number of sectors of a write of zeroes.
    pub zeroes_sectors_max: u32,
    /// Maximum number of segments of a discard: one.
    pub discard_segments_max: u16,
    /// Unused; always 0.
    pub reserved: u16,
    /// Major and minor number of the character device, then of the block device; set by the driver.
    pub device_numbers: [u32; 4],
    /// Maximum number of open zones.
    pub open_zones_max: u32,
    /// Maximum number of open and closed zones together.
    pub active_zones_max: u32,
    /// Maximum number of sectors of an append.
    pub append_sectors_max: u32,
    /// Unused; always 0.
    pub reserved_zoned: [u8; 20],
}

/// A request of the block layer, in memory shared with the driver.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Descriptor {
    /// The operation in the low eight bits, one of [`operation`]; flags above.
    pub operation_and_flags: u32,
    /// Number of sectors; in a request for a report, the maximum number of zones.
    pub sectors: u32,
    /// First sector, counted from the start of the device.
    pub sector: u64,
    /// Address of the server's buffer.
    pub address: u64,
}

/// A zone, as the block layer reports it: `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct KernelZone {
    /// First sector of the zone.
    pub start: u64,
    /// Number of sectors of the zone.
    pub length: u64,
    /// Sector of the write pointer, counted from the start of the device.
    pub pointer: u64,
    /// One of [`zone_kind`].
    pub kind: u8,
    /// One of [`zone_condition`].
    pub condition: u8,
    /// Unused; always 0.
    pub flags: [u8; 2],
    /// Unused; always 0.
    pub reserved: [u8; 4],
    /// Number of sectors that can be written.
    pub capacity: u64,
    /// Unused; always 0.
    pub reserved_end: [u8; 24],
}

/// A command of a server about a request of a queue: fetch a first request, or commit an answer and fetch the next request.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct QueueCommand {
    /// Number of the queue.
    pub queue: u16,
    /// Tag of the request.
    pub tag: u16,
    /// Number of bytes, or a negative error number.
    pub result: i32,
    /// Address in the server's memory of the buffer for the request's bytes; 0 with [`feature::USER_COPY`]. In the
    /// answer to a zone append: the sector at which the data were written, of 512 bytes, counted from the start of the
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

/// Opcodes of a server's commands: `FETCH` and `COMMIT_AND_FETCH` go to the character device of a block device, all
/// others to the control device.
pub mod command {
    use super::*;

    /// Command that returns the properties of a device.
    pub const GET_INFO: u32 = read(0x02, size_of::<ControlCommand>());
    /// Command that adds a device.
    pub const ADD: u32 = read_write(0x04, size_of::<ControlCommand>());
    /// Command that deletes a device.
    pub const DELETE: u32 = read_write(0x05, size_of::<ControlCommand>());
    /// Command that makes the disk of a device visible.
    pub const START: u32 = read_write(0x06, size_of::<ControlCommand>());
    /// Command that removes the disk of a device.
    pub const STOP: u32 = read_write(0x07, size_of::<ControlCommand>());
    /// Command that sets the parameters of the disk.
    pub const SET_PARAMETERS: u32 = read_write(0x08, size_of::<ControlCommand>());
    /// Command that returns the driver's features, bits of [`feature`].
    pub const GET_FEATURES: u32 = read(0x13, size_of::<ControlCommand>());
    /// Command that fetches a first request of a queue.
    pub const FETCH: u32 = read_write(0x20, size_of::<QueueCommand>());
    /// Command that commits an answer and fetches the next request.
    pub const COMMIT_AND_FETCH: u32 = read_write(0x21, size_of::<QueueCommand>());
}

/// Features of a driver.
pub mod feature {
    /// The server moves the bytes itself, by reading and writing the character device.
    pub const USER_COPY: u64 = 1 << 7;
    /// The device may have zones.
    pub const ZONED: u64 = 1 << 8;
}

/// States of a device.
pub mod state {
    /// No server runs for the device.
    pub const DEAD: u16 = 0;
}

/// Parts of [`Parameters`].
pub mod part {
    /// The sizes and attributes.
    pub const BASIC: u32 = 1 << 0;
    /// The limits of discards and writes of zeroes.
    pub const DISCARD: u32 = 1 << 1;
    /// The sizes and limits of zones.
    pub const ZONED: u32 = 1 << 3;
}

/// Attributes of a disk.
pub mod attribute {
    /// The disk is read-only.
    pub const READ_ONLY: u32 = 1 << 0;
    /// The disk rotates.
    pub const ROTATIONAL: u32 = 1 << 1;
    /// The block layer must send flushes.
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    /// Force unit access is supported.
    pub const FUA: u32 = 1 << 3;
}

/// Operations of the block layer.
pub mod operation {
    /// Read.
    pub const READ: u32 = 0;
    /// Write.
    pub const WRITE: u32 = 1;
    /// Flush.
    pub const FLUSH: u32 = 2;
    /// Discard.
    pub const DISCARD: u32 = 3;
    /// Write zeroes.
    pub const WRITE_ZEROES: u32 = 5;
    /// Open a zone.
    pub const ZONE_OPEN: u32 = 10;
    /// Close a zone.
    pub const ZONE_CLOSE: u32 = 11;
    /// Finish a zone, which makes the zone full.
    pub const ZONE_FINISH: u32 = 12;
    /// Write at a zone's write pointer.
    pub const ZONE_APPEND: u32 = 13;
    /// Reset all zones.
    pub const ZONE_RESET_ALL: u32 = 14;
    /// Reset a zone.
    pub const ZONE_RESET: u32 = 15;
    /// Report zones.
    pub const REPORT_ZONES: u32 = 18;
    /// Flag of a write: durable when answered.
    pub const FUA: u32 = 1 << 13;
    /// Flag of a write of zeroes: the sectors stay allocated.
    pub const NO_UNMAP: u32 = 1 << 15;
}

/// Kinds of zones.
pub mod zone_kind {
    /// A zone without a write pointer.
    pub const CONVENTIONAL: u8 = 1;
    /// A zone that is written at its write pointer.
    pub const SEQUENTIAL: u8 = 2;
}

/// Conditions of zones.
pub mod zone_condition {
    /// The zone has no write pointer.
    pub const NO_POINTER: u8 = 0;
    /// No sector is written.
    pub const EMPTY: u8 = 1;
    /// The zone was opened by a write.
    pub const IMPLICITLY_OPEN: u8 = 2;
    /// The zone was opened by the host.
    pub const EXPLICITLY_OPEN: u8 = 3;
    /// The zone is partly written and not open.
    pub const CLOSED: u8 = 4;
    /// The zone can only be read.
    pub const READ_ONLY: u8 = 0xd;
    /// The zone is completely written, or was finished.
    pub const FULL: u8 = 0xe;
    /// The zone can be neither read nor written.
    pub const OFFLINE: u8 = 0xf;
}

/// Returns the offset in the character device of the bytes of the request with `tag`, for servers with [`feature::USER_COPY`].
pub const fn bytes_offset(tag: u16) -> u64 {
    0x8000_0000 + ((tag as u64) << 25)
}

/// Maximum queue depth, from which the offset of each queue's descriptors also follows.
pub const QUEUE_DEPTH_MAX: usize = 4096;
/// Result of a command when the device is removed.
pub const ABORTED: i32 = -libc::ENODEV;
