//! Goal: a guest that follows the virtio specification gets its data, and one that does not gets errors. Method: a front
//! end by hand, with rings in memory of its own, over drives in memory.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use imbrex_device::IoKind;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::message::{request, send_with_fds};
use super::*;
use crate::drive_server::Facts;
use crate::verify::small_drive;

/// Address of the memory in the guest, and in the process of the front end.
const GUEST: u64 = 0x10_0000;
const USER: u64 = 0x7000_0000;
const BYTES: u64 = 1 << 20;
/// Places of the rings and of buffers, from the start of the memory.
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const HEADER: u64 = 0x3000;
const DATA: u64 = 0x4000;
const STATUS: u64 = 0xf_0000;
const SIZE: u16 = 64;
/// Status of a request that was not answered.
const UNTOUCHED: u8 = 0xee;

/// A drive, and the operation of the latest request to it.
struct Local(EmulatedDrive, Option<IoKind>);

impl Backend for Local {
    fn with<T>(&mut self, look: impl FnOnce(&mut EmulatedDrive) -> T) -> T {
        look(&mut self.0)
    }

    fn submit(&mut self, io: Io) -> Submitted {
        self.1 = Some(io.kind);
        match self.0.serve(io) {
            Ok(completion) => Submitted::Answered(completion.buffer, completion.outcome),
            Err(error) => Submitted::Answered(Vec::new(), Err(error)),
        }
    }
}

/// The front end and its guest.
struct Front {
    memory: std::fs::File,
    front: UnixStream,
    back: UnixStream,
    device: BlockDevice,
    drive: Local,
    requests: u16,
}

/// Direction of a buffer of a request.
#[derive(Clone, Copy)]
enum For {
    Device,
    Guest,
}

impl Front {
    fn new(layer: &str) -> Front {
        let drive = small_drive(layer);
        let facts = Facts::of(&drive, false);
        let (features, config) = device_of(&facts, 1, true);
        let device = BlockDevice::new(Session::new(features, config, 1, true), &facts);
        let memory: OwnedFd = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&memory, BYTES).expect("it can grow");
        let (front, back) = UnixStream::pair().expect("sockets");
        let mut front = Front { memory: memory.into(), front, back, device, drive: Local(drive, None), requests: 0 };
        front.begin();
        front
    }

    /// Sends a message, and returns the payload of the answer.
    fn say(
        &mut self,
        request: u32,
        payload: &[u8],
        fds: &[std::os::fd::BorrowedFd<'_>],
    ) -> io::Result<Option<Vec<u8>>> {
        let mut bytes: Vec<u8> =
            [request, 1, payload.len() as u32].iter().flat_map(|number| number.to_ne_bytes()).collect();
        bytes.extend_from_slice(payload);
        send_with_fds(&self.front, &bytes, fds)?;
        let mut message = Message::receive(&self.back)?.expect("it was sent");
        let (answer, effect) = self.device.session_mut().handle(&mut message)?;
        if let Effect::Kicked(queue) = effect {
            self.device.kicked(queue, &mut self.drive)?;
        }
        Ok(answer.map(|answer| answer.payload))
    }

    fn begin(&mut self) {
        let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
        let state = |index: u32, number: u32| [index.to_ne_bytes(), number.to_ne_bytes()].concat();
        let memory = self.memory.try_clone().expect("a second descriptor");
        let offered = self.say(request::GET_FEATURES, &[], &[]).expect("features").expect("an answer");
        self.say(request::SET_FEATURES, &offered, &[]).expect("all of them");
        self.say(request::SET_MEM_TABLE, &numbers(&[1, GUEST, BYTES, USER, 0]), &[memory.as_fd()]).expect("memory");
        self.say(request::SET_VRING_NUM, &state(0, u32::from(SIZE)), &[]).expect("a size");
        self.say(request::SET_VRING_BASE, &state(0, 0), &[]).expect("a base");
        let rings = numbers(&[0, USER + DESCRIPTORS, USER + USED, USER + AVAILABLE, u64::MAX]);
        self.say(request::SET_VRING_ADDR, &rings, &[]).expect("rings");
        self.say(request::SET_VRING_ENABLE, &state(0, 1), &[]).expect("enabled");
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).expect("it lies in the memory");
    }

    fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        self.memory.read_exact_at(&mut read, at).expect("it lies in the memory");
        read
    }

    /// Offers a request with these buffers, kicks, and returns the status.
    fn offer(&mut self, buffers: &[(u64, u32, For)]) -> u8 {
        self.write(STATUS, &[UNTOUCHED]);
        for (index, (at, bytes, direction)) in buffers.iter().enumerate() {
            let is_last = index + 1 == buffers.len();
            let flags = u16::from(!is_last) | if matches!(direction, For::Guest) { 2 } else { 0 };
            let mut descriptor = (GUEST + at).to_le_bytes().to_vec();
            descriptor.extend_from_slice(&bytes.to_le_bytes());
            descriptor.extend_from_slice(&flags.to_le_bytes());
            descriptor.extend_from_slice(&(index as u16 + 1).to_le_bytes());
            self.write(DESCRIPTORS + 16 * index as u64, &descriptor);
        }
        let slot = u64::from(self.requests % SIZE);
        self.write(AVAILABLE + 4 + 2 * slot, &0_u16.to_le_bytes());
        self.requests += 1;
        self.write(AVAILABLE + 2, &self.requests.to_le_bytes());
        self.say(request::VRING_KICK, &[0; 8], &[]).expect("a kick");
        let used = u16::from_le_bytes(self.read(USED + 2, 2).try_into().expect("two bytes"));
        assert_eq!(used, self.requests, "each request comes back once");
        assert_eq!(self.device.take_returned(), [0]);
        self.read(STATUS, 1)[0]
    }

    fn header(&self, kind: u32, sector: u64) {
        self.write(HEADER, &[&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat());
    }

    /// Sends a request with `bytes` for the device.
    fn send(&mut self, kind: u32, sector: u64, bytes: &[u8]) -> u8 {
        self.header(kind, sector);
        self.write(DATA, bytes);
        let data = (DATA, bytes.len() as u32, For::Device);
        let all = [(HEADER, 16, For::Device), data, (STATUS, 1, For::Guest)];
        if bytes.is_empty() { self.offer(&[all[0], all[2]]) } else { self.offer(&all) }
    }

    /// Sends a request for `bytes` bytes.
    fn get(&mut self, kind: u32, sector: u64, bytes: u32) -> (u8, Vec<u8>) {
        self.header(kind, sector);
        let status = self.offer(&[(HEADER, 16, For::Device), (DATA, bytes, For::Guest), (STATUS, 1, For::Guest)]);
        (status, self.read(DATA, bytes as usize))
    }
}

fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
}

#[test]
fn data_come_back_and_zeros_after_a_discard() {
    let mut front = Front::new("conventional");
    let written: Vec<u8> = (0..8192_u32).map(|index| index as u8).collect();
    assert_eq!(front.send(1, 40, &written), 0);
    assert_eq!(front.send(4, 0, &[]), 0, "a flush");
    assert_eq!(front.get(0, 40, 8192), (0, written.clone()));
    assert_eq!(front.get(0, 48, 512), (0, written[4096..4608].to_vec()));
    assert_eq!(front.send(13, 0, &range(41, 2, 0)), 0, "zeros");
    let mut expected = written;
    expected[512..1536].fill(0);
    assert_eq!(front.get(0, 40, 8192), (0, expected));
    let (status, name) = front.get(8, 0, 20);
    assert_eq!((status, name.is_ascii()), (0, true), "a name");
}

#[test]
fn zeros_keep_their_room_unless_the_guest_permits_to_drop_it() {
    let layer = imbrex_layer::registry::all().into_iter().map(|info| info.name).find(|layer| {
        let drive = small_drive(layer);
        drive.drive().layer.keeps_trims() && drive.zoned_mode().is_none()
    });
    let mut front = Front::new(layer.expect("a layer remembers trims"));
    for (flags, expected) in [(0, IoKind::Write { fua: false }), (1, IoKind::Trim)] {
        assert_eq!(front.send(1, 0, &[7; 4096]), 0);
        assert_eq!(front.send(13, 0, &range(0, 8, flags)), 0);
        assert_eq!(front.drive.1, Some(expected), "flags {flags}");
        assert_eq!(front.get(0, 0, 4096), (0, vec![0; 4096]));
    }
    assert_eq!(front.send(1, 0, &[7; 4096]), 0);
    assert_eq!(front.send(11, 0, &range(0, 8, 0)), 0, "a discard");
    assert_eq!(front.get(0, 0, 4096), (0, vec![0; 4096]));
}

#[test]
fn requests_against_the_format_are_errors_and_change_nothing() {
    let mut front = Front::new("conventional");
    let capacity = front.drive.0.capacity_bytes() / 512;
    assert_eq!(front.send(1, 0, &[7; 512]), 0);
    assert_eq!(front.send(1, 0, &[9; 500]), 1, "a part of a sector");
    assert_eq!(front.send(1, capacity, &[9; 512]), 1, "past the end");
    assert_eq!(front.send(1, u64::MAX, &[9; 512]), 1, "past all addresses");
    assert_eq!(front.send(77, 0, &[]), 2, "an unknown type");
    assert_eq!(front.send(13, 0, &[1; 8]), 1, "half a range");
    assert_eq!(front.send(13, 0, &range(0, u32::MAX, 1)), 2, "too many zeros");
    assert_eq!(front.send(13, 0, &range(0, 1, 2)), 2, "an unknown flag");
    assert_eq!(front.send(11, 0, &range(0, 1, 1)), 2, "a flag that a discard has not");
    assert_eq!(front.send(15, 0, &[9; 512]), 2, "an append to a drive without zones");
    assert_eq!(front.get(0, 0, 512), (0, vec![7; 512]));
    front.header(1, 0);
    assert_eq!(front.offer(&[(HEADER, 8, For::Device), (STATUS, 1, For::Guest)]), 1, "half a header");
    assert_eq!(front.offer(&[(HEADER, 16, For::Device)]), UNTOUCHED, "no room for a status");
    assert_eq!(front.offer(&[(BYTES + 4096, 16, For::Device), (STATUS, 1, For::Guest)]), 1, "foreign memory");
    assert_eq!(front.offer(&[(HEADER, 16, For::Device), (BYTES, 1, For::Guest)]), UNTOUCHED, "a foreign status");
    assert_eq!(front.get(0, 0, 512), (0, vec![7; 512]), "the queue goes on");
}

#[test]
fn zones_are_written_at_their_pointers() {
    let mut front = Front::new("zoned");
    let zone = front.drive.0.zoned_mode().expect("it has zones").zone_sectors.0;
    let report = |front: &mut Front| {
        let (status, bytes) = front.get(16, 0, 64 * 4);
        let number = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().expect("eight bytes"));
        assert_eq!((status, number(0)), (0, 3), "as many zones as have room");
        // Of the second zone: capacity, start, pointer, type and state.
        (number(128), number(136), number(144), bytes[152], bytes[153])
    };
    assert_eq!(report(&mut front), (zone, zone, zone, 2, 1), "an empty zone");
    assert_eq!(front.send(1, zone, &[1; 4096]), 0);
    assert_eq!(front.send(1, zone, &[2; 4096]), 4, "off the pointer");
    front.header(15, zone);
    front.write(DATA, &[3; 4096]);
    let appended = [(HEADER, 16, For::Device), (DATA, 4096, For::Device), (DATA + 8192, 8, For::Guest)];
    assert_eq!(front.offer(&[&appended[..], &[(STATUS, 1, For::Guest)]].concat()), 0);
    assert_eq!(front.read(DATA + 8192, 8), (zone + 8).to_le_bytes(), "where the append went");
    assert_eq!(report(&mut front), (zone, zone, zone + 16, 2, 2), "open by writes");
    assert_eq!(front.get(0, zone, 8192), (0, [[1; 4096], [3; 4096]].concat()));
    assert_eq!(front.send(22, zone, &[]), 0, "a finish");
    assert_eq!(report(&mut front).4, 14, "full");
    assert_eq!(front.send(24, zone, &[]), 0, "a reset");
    assert_eq!(report(&mut front), (zone, zone, zone, 2, 1));
    assert_eq!(front.send(1, 2 * zone, &[1; 512]), 0);
    assert_eq!(front.send(26, 0, &[]), 0, "a reset of all zones");
    assert_eq!(front.send(1, 2 * zone, &[1; 512]), 0, "at the start again");
}

#[test]
fn messages_against_the_protocol_end_the_connection() {
    let numbers = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>();
    let cases: [(u32, Vec<u8>); 9] = [
        (99, vec![]),
        (request::SET_FEATURES, numbers(&[u64::MAX])),
        (request::SET_FEATURES, vec![1]),
        (request::SET_MEM_TABLE, numbers(&[1, GUEST, BYTES, USER, 0])),
        (request::SET_VRING_NUM, numbers(&[3 << 32])),
        (request::SET_VRING_NUM, numbers(&[64 << 32 | 1])),
        (request::SET_VRING_ADDR, numbers(&[0, USER - 1, USER, USER, 0])),
        (request::SET_VRING_ADDR, numbers(&[0, USER])),
        (request::GET_CONFIG, numbers(&[u64::MAX])),
    ];
    for (kind, payload) in cases {
        let mut front = Front::new("conventional");
        assert!(front.say(kind, &payload, &[]).is_err(), "request {kind} with {payload:?}");
    }
}

#[test]
fn the_configuration_says_what_the_drive_is() {
    let mut front = Front::new("zoned");
    let capacity = front.drive.0.capacity_bytes();
    let asked = [0_u32, 256, 0].iter().flat_map(|number| number.to_ne_bytes()).chain([0xff; 256]).collect::<Vec<_>>();
    let answer = front.say(request::GET_CONFIG, &asked, &[]).expect("a configuration").expect("an answer");
    let config = &answer[12..];
    let word = |from: usize| u32::from_le_bytes(config[from..from + 4].try_into().expect("four bytes"));
    assert_eq!(u64::from(word(0)) | u64::from(word(4)) << 32, capacity / 512);
    assert_eq!((word(20), config[92]), (512, 2 - 1), "the size of a block; host-managed");
    let mode = front.drive.0.zoned_mode().expect("it has zones");
    assert_eq!(u64::from(word(72)), mode.zone_sectors.0);
    assert!(config[96..].iter().all(|&byte| byte == 0), "later fields are zero");
}

#[test]
fn a_front_end_without_zones_is_noticed() {
    for (layer, expected) in [("zoned", true), ("conventional", false)] {
        let mut front = Front::new(layer);
        assert!(!front.device.lacks_zones(), "all features were accepted");
        front.say(request::SET_FEATURES, &(1_u64 << 32).to_ne_bytes(), &[]).expect("a part of them");
        assert_eq!(front.device.lacks_zones(), expected, "{layer}");
    }
}

#[test]
fn a_stopped_queue_says_where_it_was() {
    let mut front = Front::new("conventional");
    assert_eq!(front.send(1, 0, &[7; 512]), 0);
    let answer = front.say(request::GET_VRING_BASE, &[0; 8], &[]).expect("a base").expect("an answer");
    assert_eq!(answer, [0, 0, 0, 0, 1, 0, 0, 0], "one request was taken");
    assert!(front.device.session_mut().take(0).is_none());
}
