//! What the kernel's ublk driver and a server say to each other: structures and numbers of `linux/ublk_cmd.h`.
//!
//! Invariants:
//! 1. Structures have the kernel's sizes; the driver takes nothing else.
//! 2. Sectors are 512 bytes here, whatever the drive's are.

/// Bytes of the sectors that the block layer counts in.
pub const KERNEL_SECTOR_BYTES: u64 = 512;

/// A command to `/dev/ublk-control`, as it lies in the request to io_uring.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct ControlCommand {
    /// Number of the device.
    pub device: u32,
    /// All ones where no queue is meant.
    pub queue: u16,
    /// Bytes at `address`.
    pub length: u16,
    /// Where what is sent or asked for lies.
    pub address: u64,
    /// What the command takes as a number.
    pub value: u64,
    /// Of devices for users without rights; unused.
    pub path_length: u16,
    /// Unused.
    pub pad: u16,
    /// Unused.
    pub reserved: u32,
}

/// What a device is, to be agreed on when it is made.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct DeviceInfo {
    /// Queues.
    pub queues: u16,
    /// Requests of a queue.
    pub queue_depth: u16,
    /// One of [`state`].
    pub state: u16,
    /// Unused.
    pub pad: u16,
    /// Bytes of a request at most.
    pub request_bytes_max: u32,
    /// Its number: all ones asks for a free one.
    pub device: u32,
    /// Of the server.
    pub process: i32,
    /// Unused.
    pub pad2: u32,
    /// Of [`feature`].
    pub features: u64,
    /// Not read by the driver.
    pub server_flags: u64,
    /// Set by the driver.
    pub owner: [u32; 2],
    /// Unused.
    pub reserved: [u64; 2],
}

/// What the block layer is told of the drive.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Parameters {
    /// Bytes of this structure.
    pub length: u32,
    /// Which parts are filled: of [`part`].
    pub parts: u32,
    /// Of [`attribute`].
    pub attributes: u32,
    /// Logical block, power of two of bytes.
    pub logical_shift: u8,
    /// Physical block.
    pub physical_shift: u8,
    /// Best size of a request.
    pub best_shift: u8,
    /// Least size that costs no more than itself.
    pub least_shift: u8,
    /// Sectors of a request at most.
    pub sectors_max: u32,
    /// Sectors of a zone.
    pub zone_sectors: u32,
    /// Sectors of the drive.
    pub sectors: u64,
    /// Unused.
    pub boundary_mask: u64,
    /// First sector that can be discarded.
    pub discard_alignment: u32,
    /// Bytes.
    pub discard_granularity: u32,
    /// Sectors of a discard at most.
    pub discard_sectors_max: u32,
    /// Sectors of a write of zeroes at most.
    pub zeroes_sectors_max: u32,
    /// One.
    pub discard_segments_max: u16,
    /// Unused.
    pub reserved: u16,
    /// Set by the driver.
    pub device_numbers: [u32; 4],
    /// Zones that may be open.
    pub open_zones_max: u32,
    /// Zones that may be open or closed.
    pub active_zones_max: u32,
    /// Sectors of an append at most.
    pub append_sectors_max: u32,
    /// Unused.
    pub reserved_zoned: [u8; 20],
}

/// A request of the block layer, in memory shared with the driver.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct Descriptor {
    /// The operation in the low eight bits, of [`operation`]; above it flags.
    pub operation_and_flags: u32,
    /// Sectors; of a report of zones: how many zones at most.
    pub sectors: u32,
    /// First sector.
    pub sector: u64,
    /// The server's buffer.
    pub address: u64,
}

/// A zone, as the block layer reports it: `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct KernelZone {
    /// First sector.
    pub start: u64,
    /// Sectors.
    pub length: u64,
    /// The sector that is to be written next.
    pub pointer: u64,
    /// One of [`zone_kind`].
    pub kind: u8,
    /// One of [`zone_condition`].
    pub condition: u8,
    /// Unused.
    pub flags: [u8; 2],
    /// Unused.
    pub reserved: [u8; 4],
    /// Sectors that can be written.
    pub capacity: u64,
    /// Unused.
    pub reserved_end: [u8; 24],
}

/// A server's word about one request of a queue: give me one, or take the answer and give me the next.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct QueueCommand {
    /// Number of the queue.
    pub queue: u16,
    /// Which request.
    pub tag: u16,
    /// Bytes, or an error below zero.
    pub result: i32,
    /// The server's buffer; of an answered append, the sector it went to.
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

/// Commands to the control device.
pub mod command {
    use super::*;

    /// What a device is.
    pub const GET_INFO: u32 = read(0x02, size_of::<ControlCommand>());
    /// Make a device.
    pub const ADD: u32 = read_write(0x04, size_of::<ControlCommand>());
    /// Forget a device.
    pub const DELETE: u32 = read_write(0x05, size_of::<ControlCommand>());
    /// Show the disk.
    pub const START: u32 = read_write(0x06, size_of::<ControlCommand>());
    /// Take the disk away.
    pub const STOP: u32 = read_write(0x07, size_of::<ControlCommand>());
    /// Say what the disk is like.
    pub const SET_PARAMETERS: u32 = read_write(0x08, size_of::<ControlCommand>());
    /// What the driver can do.
    pub const GET_FEATURES: u32 = read(0x13, size_of::<ControlCommand>());
    /// Give a queue's first request.
    pub const FETCH: u32 = read_write(0x20, size_of::<QueueCommand>());
    /// Take an answer, give the next request.
    pub const COMMIT_AND_FETCH: u32 = read_write(0x21, size_of::<QueueCommand>());
}

/// What a driver can do.
pub mod feature {
    /// The server moves the bytes itself, by reading and writing the character device.
    pub const USER_COPY: u64 = 1 << 7;
    /// Zones.
    pub const ZONED: u64 = 1 << 8;
}

/// States of a device.
pub mod state {
    /// Nobody serves it.
    pub const DEAD: u16 = 0;
}

/// Parts of [`Parameters`].
pub mod part {
    /// Sizes and attributes.
    pub const BASIC: u32 = 1 << 0;
    /// Discard and zeroes.
    pub const DISCARD: u32 = 1 << 1;
    /// Zones.
    pub const ZONED: u32 = 1 << 3;
}

/// Attributes of a disk.
pub mod attribute {
    /// Writes are refused.
    pub const READ_ONLY: u32 = 1 << 0;
    /// It turns.
    pub const ROTATIONAL: u32 = 1 << 1;
    /// Flushes are wanted.
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    /// Force unit access is known.
    pub const FUA: u32 = 1 << 3;
}

/// Operations of the block layer.
pub mod operation {
    /// Bytes to the host.
    pub const READ: u32 = 0;
    /// Bytes from the host.
    pub const WRITE: u32 = 1;
    /// Make durable.
    pub const FLUSH: u32 = 2;
    /// No longer needed.
    pub const DISCARD: u32 = 3;
    /// Zeroes.
    pub const WRITE_ZEROES: u32 = 5;
    /// Open a zone.
    pub const ZONE_OPEN: u32 = 10;
    /// Close a zone.
    pub const ZONE_CLOSE: u32 = 11;
    /// Make a zone full.
    pub const ZONE_FINISH: u32 = 12;
    /// Bytes from the host, to a zone's pointer.
    pub const ZONE_APPEND: u32 = 13;
    /// Empty all zones.
    pub const ZONE_RESET_ALL: u32 = 14;
    /// Empty a zone.
    pub const ZONE_RESET: u32 = 15;
    /// Zones to the host.
    pub const REPORT_ZONES: u32 = 18;
    /// Flag of a write: durable when answered.
    pub const FUA: u32 = 1 << 13;
    /// Flag of a write of zeroes: the place stays allocated.
    pub const NO_UNMAP: u32 = 1 << 15;
}

/// Kinds of zones.
pub mod zone_kind {
    /// It has no pointer.
    pub const CONVENTIONAL: u8 = 1;
    /// It is written at its pointer.
    pub const SEQUENTIAL: u8 = 2;
}

/// Conditions of zones.
pub mod zone_condition {
    /// It has no pointer.
    pub const NO_POINTER: u8 = 0;
    /// Nothing is written.
    pub const EMPTY: u8 = 1;
    /// A write opened it.
    pub const IMPLICITLY_OPEN: u8 = 2;
    /// The host opened it.
    pub const EXPLICITLY_OPEN: u8 = 3;
    /// Partly written.
    pub const CLOSED: u8 = 4;
    /// Readable only.
    pub const READ_ONLY: u8 = 0xd;
    /// Written, or finished.
    pub const FULL: u8 = 0xe;
    /// Nothing of it is left.
    pub const OFFLINE: u8 = 0xf;
}

/// Where the bytes of the request with `tag` lie in the character device, for servers that move them themselves.
pub const fn bytes_offset(tag: u16) -> u64 {
    0x8000_0000 + ((tag as u64) << 25)
}

/// Queue depth at most, which also fixes where the descriptors of each queue lie.
pub const QUEUE_DEPTH_MAX: usize = 4096;
/// What a command is answered with when the device goes away.
pub const ABORTED: i32 = -libc::ENODEV;
