//! State of one connection of the vhost-user protocol: features, the guest's memory, queues.
//!
//! Invariants:
//! 1. A queue is used only between the message that enables it and the message that disables or stops it, and only while
//!    its rings lie in the guest's memory.
//! 2. Requests taken from a queue keep the memory of the guest mapped, also if a message replaces it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use virtio_queue::{DescriptorChain, Queue, QueueT};
use vm_memory::{FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

use super::message::{FDS_MAX, Message, backend_request, invalid, request};

/// Memory of the guest. Requests keep it mapped.
pub(crate) type Memory = Arc<GuestMemoryMmap>;
/// The descriptors of one request of the guest.
pub(crate) type Chain = DescriptorChain<Memory>;

/// Largest number of requests in a queue.
const QUEUE_SIZE_MAX: u16 = 256;

/// Bits of the features of devices that this server uses.
pub mod feature {
    /// This connection has features of the protocol.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// Version 1 of virtio.
    pub const VERSION_1: u64 = 1 << 32;
    /// A descriptor may lead to a table of descriptors.
    pub const INDIRECT_DESCRIPTORS: u64 = 1 << 28;
}

/// Bits of the features of the protocol.
mod protocol_feature {
    pub(super) const SEVERAL_QUEUES: u64 = 1 << 0;
    pub(super) const REPLY_ACK: u64 = 1 << 3;
    pub(super) const BACKEND_REQUESTS: u64 = 1 << 5;
    pub(super) const CONFIG: u64 = 1 << 9;
    pub(super) const INBAND_NOTIFICATIONS: u64 = 1 << 14;
}

/// A region of the guest's memory, by the addresses of the front end's process.
#[derive(Clone, Copy, Debug)]
struct Region {
    user: u64,
    bytes: u64,
    guest: u64,
}

/// A queue of requests.
#[derive(Debug)]
struct Ring {
    queue: Queue,
    /// Tells this process that the queue has requests; `None` if messages do so.
    kick: Option<OwnedFd>,
    /// Tells the guest that requests are completed; `None` if messages do so.
    call: Option<OwnedFd>,
    is_enabled: bool,
}

/// The effect of a message that concerns the server, beside the session itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// None.
    None,
    /// A message said that this queue has requests. The answer to the message is to be sent after they were taken.
    Kicked(usize),
    /// The descriptor that tells of new requests in this queue is another, or the queue was enabled or disabled.
    Changed(usize),
    /// The front end stops this queue. The requests taken from it are to be completed before the answer is sent.
    Stopping(usize),
}

/// The state of one connection.
pub struct Session {
    offered: u64,
    config: Vec<u8>,
    is_inband: bool,
    features: u64,
    protocol: u64,
    memory: Memory,
    regions: Vec<Region>,
    rings: Vec<Ring>,
    /// Socket for requests of this process to the front end.
    backend: Option<UnixStream>,
}

impl Session {
    /// Creates the state of a new connection to a device with these features, this configuration space and this number
    /// of queues. With `is_inband`, messages tell of requests and completions instead of file descriptors.
    ///
    /// # Panics
    ///
    /// If `queues` is 0.
    pub fn new(features: u64, config: Vec<u8>, queues: usize, is_inband: bool) -> Session {
        assert!(queues > 0, "a device has a queue");
        let ring = || Ring {
            queue: Queue::new(QUEUE_SIZE_MAX).expect("the size is a power of two"),
            kick: None,
            call: None,
            is_enabled: false,
        };
        Session {
            offered: features | feature::PROTOCOL_FEATURES | feature::VERSION_1 | feature::INDIRECT_DESCRIPTORS,
            config,
            is_inband,
            features: 0,
            protocol: 0,
            memory: Arc::new(GuestMemoryMmap::new()),
            regions: Vec::new(),
            rings: (0..queues).map(|_| ring()).collect(),
            backend: None,
        }
    }

    /// Returns the number of queues that the device has.
    pub fn queues(&self) -> usize {
        self.rings.len()
    }

    /// Returns the descriptor that tells of new requests in a queue, if the queue is enabled and has one.
    pub fn kick(&self, queue: usize) -> Option<&OwnedFd> {
        let ring = &self.rings[queue];
        ring.kick.as_ref().filter(|_| ring.is_enabled)
    }

    /// Returns whether the front end accepted these features of the device.
    pub fn has(&self, features: u64) -> bool {
        self.features & features == features
    }

    /// Carries out a message of the front end. Returns the answer, if there is one to send, and the effect.
    ///
    /// # Errors
    ///
    /// `InvalidData` if the message breaks the protocol, or an error of the memory that it names. The connection cannot
    /// go on then.
    pub fn handle(&mut self, message: &mut Message) -> io::Result<(Option<Message>, Effect)> {
        let mut effect = Effect::None;
        let answer = match message.request {
            request::GET_FEATURES => Some(self.offered.to_ne_bytes().to_vec()),
            request::GET_PROTOCOL_FEATURES => Some(self.offered_protocol().to_ne_bytes().to_vec()),
            request::GET_QUEUE_NUM => Some((self.rings.len() as u64).to_ne_bytes().to_vec()),
            request::GET_CONFIG => Some(self.config(message)?),
            request::GET_VRING_BASE => {
                let (queue, _) = self.queue_state(message)?;
                effect = Effect::Stopping(queue);
                Some(self.stop(queue))
            }
            _ => {
                effect = self.change(message)?;
                message.needs_reply().then(|| 0_u64.to_ne_bytes().to_vec())
            }
        };
        Ok((answer.map(|payload| message.reply(payload)), effect))
    }

    fn offered_protocol(&self) -> u64 {
        use protocol_feature::*;
        let always = REPLY_ACK | CONFIG;
        let inband = if self.is_inband { BACKEND_REQUESTS | INBAND_NOTIFICATIONS } else { 0 };
        let several = if self.rings.len() > 1 { SEVERAL_QUEUES } else { 0 };
        always | inband | several
    }

    /// Carries out a message that has no answer by nature.
    fn change(&mut self, message: &mut Message) -> io::Result<Effect> {
        match message.request {
            request::SET_FEATURES => self.features = agreed(message.number()?, self.offered)?,
            request::SET_PROTOCOL_FEATURES => self.protocol = agreed(message.number()?, self.offered_protocol())?,
            request::SET_OWNER | request::RESET_OWNER | request::SET_VRING_ERR => {}
            // The guest may set the mode of the cache; the device offers no other mode.
            request::SET_CONFIG => {}
            request::SET_MEM_TABLE => self.set_memory(message)?,
            request::SET_VRING_NUM => {
                let (queue, size) = self.queue_state(message)?;
                let size = u16::try_from(size).map_err(|_| invalid(format!("a queue of {size} requests")))?;
                self.rings[queue].queue.try_set_size(size).map_err(|error| invalid(format!("a queue: {error}")))?;
            }
            request::SET_VRING_BASE => {
                let (queue, next) = self.queue_state(message)?;
                let next = u16::try_from(next).map_err(|_| invalid(format!("a queue that begins at {next}")))?;
                self.rings[queue].queue.set_next_avail(next);
                self.rings[queue].queue.set_next_used(next);
            }
            request::SET_VRING_ADDR => self.set_addresses(message)?,
            request::SET_VRING_KICK => {
                let queue = self.queue_with_descriptor(message)?;
                self.rings[queue].kick = message.fds.pop();
                // A queue of a front end without features of the protocol is enabled with its descriptor.
                self.rings[queue].is_enabled |= !self.has(feature::PROTOCOL_FEATURES);
                return self.changed(queue);
            }
            request::SET_VRING_CALL => {
                let queue = self.queue_with_descriptor(message)?;
                self.rings[queue].call = message.fds.pop();
            }
            request::SET_VRING_ENABLE => {
                let (queue, is_enabled) = self.queue_state(message)?;
                self.rings[queue].is_enabled = is_enabled != 0;
                return self.changed(queue);
            }
            request::SET_BACKEND_REQ_FD => self.backend = message.fds.pop().map(UnixStream::from),
            request::VRING_KICK => {
                let (queue, _) = self.queue_state(message)?;
                return Ok(Effect::Kicked(queue));
            }
            other => return Err(invalid(format!("an unknown vhost-user request: {other}"))),
        }
        Ok(Effect::None)
    }

    /// Makes a queue whose rings are known usable, or unusable after it was disabled.
    fn changed(&mut self, queue: usize) -> io::Result<Effect> {
        let ring = &mut self.rings[queue];
        ring.queue.set_ready(ring.is_enabled);
        if ring.is_enabled && !ring.queue.is_valid(&*self.memory) {
            return Err(invalid(format!("queue {queue} does not lie in the memory of the guest")));
        }
        Ok(Effect::Changed(queue))
    }

    fn queue_state(&self, message: &Message) -> io::Result<(usize, u32)> {
        let (queue, number) = message.state()?;
        Ok((self.checked(queue)?, number))
    }

    /// Returns the queue of a message that sets a file descriptor. One bit of the number says that none comes along.
    fn queue_with_descriptor(&self, message: &Message) -> io::Result<usize> {
        self.checked((message.number()? & 0xff) as usize)
    }

    fn checked(&self, queue: usize) -> io::Result<usize> {
        let queues = self.rings.len();
        if queue < queues { Ok(queue) } else { Err(invalid(format!("queue {queue} of a device with {queues}"))) }
    }

    /// Answers a read of the configuration space: offset, size and flags, with the bytes from there on.
    fn config(&self, message: &Message) -> io::Result<Vec<u8>> {
        let payload = &message.payload;
        let word = |index: usize| {
            let bytes = payload.get(4 * index..4 * index + 4).ok_or_else(|| message.wrong_size())?;
            Ok::<_, io::Error>(u32::from_ne_bytes(bytes.try_into().expect("four bytes")) as usize)
        };
        let (offset, size) = (word(0)?, word(1)?);
        let mut answer = payload.clone();
        let bytes = answer.get_mut(12..12 + size).ok_or_else(|| message.wrong_size())?;
        // A later version of the device may have more fields: they are zero here.
        bytes.fill(0);
        let known = self.config.get(offset..).unwrap_or_default();
        let count = known.len().min(size);
        bytes[..count].copy_from_slice(&known[..count]);
        Ok(answer)
    }

    fn set_memory(&mut self, message: &mut Message) -> io::Result<()> {
        let count = message.number_at(0, 0)? as u32 as usize;
        if count > FDS_MAX || count != message.fds.len() {
            let fds = message.fds.len();
            return Err(invalid(format!("{count} regions of memory with {fds} file descriptors")));
        }
        let mut regions = Vec::with_capacity(count);
        let mut maps = Vec::with_capacity(count);
        for (index, fd) in message.fds.drain(..).enumerate().collect::<Vec<_>>() {
            let number = |which: usize| message.number_at(8 + 32 * index, which);
            let (guest, bytes, user, offset) = (number(0)?, number(1)?, number(2)?, number(3)?);
            let size = usize::try_from(bytes).map_err(|_| invalid(format!("a region of {bytes} bytes")))?;
            let map = MmapRegion::from_file(FileOffset::new(File::from(fd), offset), size)
                .map_err(|error| io::Error::other(format!("the memory of the guest cannot be mapped: {error}")))?;
            maps.push(
                GuestRegionMmap::new(map, GuestAddress(guest)).ok_or_else(|| {
                    invalid(format!("a region of {bytes} bytes at {guest:#x} ends past all addresses"))
                })?,
            );
            regions.push(Region { user, bytes, guest });
        }
        maps.sort_by_key(vm_memory::GuestMemoryRegion::start_addr);
        let memory = GuestMemoryMmap::from_regions(maps)
            .map_err(|error| invalid(format!("the regions of the guest's memory: {error}")))?;
        (self.memory, self.regions) = (Arc::new(memory), regions);
        Ok(())
    }

    fn set_addresses(&mut self, message: &Message) -> io::Result<()> {
        let queue = self.checked(message.number_at(0, 0)? as u32 as usize)?;
        let [descriptors, used, available] =
            [0, 1, 2].map(|index| message.number_at(8, index).and_then(|user| self.guest_address(user)));
        let (descriptors, used, available) = (descriptors?, used?, available?);
        let ring = &mut self.rings[queue].queue;
        let set = ring.try_set_desc_table_address(descriptors);
        let set = set.and_then(|()| ring.try_set_avail_ring_address(available));
        let set = set.and_then(|()| ring.try_set_used_ring_address(used));
        set.map_err(|error| invalid(format!("the rings of queue {queue}: {error}")))
    }

    /// Returns the guest's address for an address in the front end's process.
    fn guest_address(&self, user: u64) -> io::Result<GuestAddress> {
        let region = self.regions.iter().find(|region| (region.user..region.user + region.bytes).contains(&user));
        let region = region.ok_or_else(|| invalid(format!("{user:#x} is no address in the memory of the guest")))?;
        Ok(GuestAddress(region.guest + (user - region.user)))
    }

    /// Stops a queue, and returns the answer: its index, and the position of the next request in its ring.
    fn stop(&mut self, queue: usize) -> Vec<u8> {
        let ring = &mut self.rings[queue];
        ring.is_enabled = false;
        ring.queue.set_ready(false);
        ring.kick = None;
        let position = u32::from(ring.queue.next_avail());
        [(queue as u32).to_ne_bytes(), position.to_ne_bytes()].concat()
    }

    /// Takes the next request from a queue; `None` if the queue is empty or not enabled.
    pub(crate) fn take(&mut self, queue: usize) -> Option<Chain> {
        let ring = &mut self.rings[queue];
        if !ring.is_enabled {
            return None;
        }
        ring.queue.pop_descriptor_chain(self.memory.clone())
    }

    /// Returns a request to the guest: `bytes` were written to its memory. A queue that has been stopped takes nothing.
    ///
    /// # Errors
    ///
    /// The used ring does not lie in the memory of the guest.
    pub(crate) fn give_back(&mut self, queue: usize, chain: &Chain, bytes: u32) -> io::Result<()> {
        let ring = &mut self.rings[queue];
        ring.queue
            .add_used(chain.memory(), chain.head_index(), bytes)
            .map_err(|error| invalid(format!("the used ring of queue {queue}: {error}")))
    }

    /// Tells the guest that requests of a queue are completed, through the queue's file descriptor. Does nothing if the
    /// guest wants no notice.
    ///
    /// # Errors
    ///
    /// The descriptor fails.
    pub fn notify(&mut self, queue: usize) -> io::Result<()> {
        let ring = &mut self.rings[queue];
        let is_wanted = ring.queue.needs_notification(&*self.memory).unwrap_or(true);
        match &ring.call {
            Some(call) if is_wanted => {
                rustix::io::retry_on_intr(|| rustix::io::write(call, &1_u64.to_ne_bytes()))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns the socket on which this process asks the front end, and the message that says that requests of `queue`
    /// are completed. Returns `None` if the front end gave no such socket.
    pub fn call(&self, queue: usize) -> Option<(&UnixStream, Message)> {
        let payload = [(queue as u32).to_ne_bytes(), 0_u32.to_ne_bytes()].concat();
        Some((self.backend.as_ref()?, Message::asking(backend_request::VRING_CALL, payload)))
    }
}

/// Returns the features that the front end chose.
fn agreed(chosen: u64, offered: u64) -> io::Result<u64> {
    let foreign = chosen & !offered;
    if foreign == 0 { Ok(chosen) } else { Err(invalid(format!("features that were not offered: {foreign:#x}"))) }
}
