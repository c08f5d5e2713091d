//! A toy NBD server of a drive in memory, in which faults can be injected.
//!
//! Writes go into a volatile cache; a flush or FUA moves them to the medium. A kill loses the cache, except for a
//! random share of its sectors, because a drive may have destaged any of them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use imbrex_testkit::Random;
use imbrex_testkit::nbd_client::{DISCONNECT, FLUSH, FUA, READ, TRIM, WRITE, WRITE_ZEROES};

const SECTOR: usize = 512;

/// A fault of the drive. It occurs once, except for [`Fault::ForgetTrim`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// Acknowledges a flush without executing it, and loses the cache.
    LieAboutFlush,
    /// Puts a write with FUA only into the cache, and loses it.
    LieAboutFua,
    /// Swaps two written sectors of the medium.
    SwapSectors,
    /// Gives a sector the value before its last durable one.
    OldValue,
    /// Copies half of one sector's bytes to another.
    TornSector,
    /// Writes zeros over a sector.
    ZeroedSector,
    /// Flips one bit.
    FlippedBit,
    /// Answers a read with an I/O error.
    Error,
    /// Ignores all trims of a round.
    ForgetTrim,
    /// Writes to the sector after the right one.
    Misplaced,
    /// Loses the last acknowledged writes of a drive without a volatile cache.
    LoseAnswered,
}

impl Fault {
    /// All faults.
    pub(crate) const ALL: [Fault; 11] = [
        Fault::LieAboutFlush,
        Fault::LieAboutFua,
        Fault::SwapSectors,
        Fault::OldValue,
        Fault::TornSector,
        Fault::ZeroedSector,
        Fault::FlippedBit,
        Fault::Error,
        Fault::ForgetTrim,
        Fault::Misplaced,
        Fault::LoseAnswered,
    ];
}

/// A drive in memory.
pub(crate) struct Toy {
    sectors: u64,
    is_volatile: bool,
    medium: BTreeMap<u64, Vec<u8>>,
    /// Older contents of the medium's sectors.
    before: BTreeMap<u64, Vec<u8>>,
    cache: BTreeMap<u64, Vec<u8>>,
    random: Random,
    /// The fault to inject, if any.
    pub fault: Option<Fault>,
    /// Number of requests until the fault occurs.
    countdown: u32,
    loses_cache: bool,
}

/// A toy with a running server.
pub(crate) struct Running {
    toy: Arc<Mutex<Toy>>,
    stream: Arc<Mutex<Option<UnixStream>>>,
    thread: JoinHandle<()>,
    socket: PathBuf,
}

impl Toy {
    /// Returns a new drive.
    pub(crate) fn new(sectors: u64, is_volatile: bool) -> Toy {
        Toy {
            sectors,
            is_volatile,
            medium: BTreeMap::new(),
            before: BTreeMap::new(),
            cache: BTreeMap::new(),
            random: Random::new(99),
            fault: None,
            countdown: 60,
            loses_cache: false,
        }
    }

    /// Serves one client at `socket`.
    pub(crate) fn serve(self, socket: &Path) -> Running {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).unwrap();
        let (toy, stream) = (Arc::new(Mutex::new(self)), Arc::new(Mutex::new(None)));
        let (its_toy, its_stream) = (toy.clone(), stream.clone());
        let thread = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            *its_stream.lock().unwrap() = Some(client.try_clone().unwrap());
            // The thread ends when the client disconnects or the server is killed.
            let _ = talk(&mut client, &its_toy);
        });
        Running { toy, stream, thread, socket: socket.into() }
    }

    /// Injects the faults that change the medium while the server is not running.
    pub(crate) fn fault_after_kill(&mut self) {
        let keys: Vec<u64> = self.medium.keys().copied().collect();
        let fault = self.fault.take();
        let one = keys[self.random.below(keys.len() as u64) as usize];
        let is_other = |key: &&u64| self.medium[*key] != self.medium[&one];
        let other = keys.iter().find(is_other).copied();
        match (fault, other) {
            (Some(Fault::SwapSectors), Some(other)) => {
                let (first, second) = (self.medium[&one].clone(), self.medium[&other].clone());
                self.medium.insert(one, second);
                self.medium.insert(other, first);
            }
            (Some(Fault::OldValue), _) => {
                let changed = self.before.iter().find(|(key, bytes)| self.medium.get(*key) != Some(*bytes));
                let (key, bytes) = changed.map(|(&key, bytes)| (key, bytes.clone())).unwrap();
                self.medium.insert(key, bytes);
            }
            (Some(Fault::TornSector), Some(other)) => {
                let half = self.medium[&other][..SECTOR / 2].to_vec();
                self.medium.get_mut(&one).unwrap()[..SECTOR / 2].copy_from_slice(&half);
            }
            (Some(Fault::ZeroedSector), _) => {
                let stamped = keys.iter().find(|key| self.medium[*key].iter().any(|&byte| byte != 0)).unwrap();
                self.medium.insert(*stamped, vec![0; SECTOR]);
            }
            (Some(Fault::FlippedBit), _) => self.medium.get_mut(&one).unwrap()[300] ^= 4,
            _ => {}
        }
    }

    fn put(&mut self, sector: u64, bytes: &[u8]) {
        self.cache.insert(sector, bytes.to_vec());
        if !self.is_volatile {
            self.destage();
        }
    }

    fn destage(&mut self) {
        for (sector, bytes) in std::mem::take(&mut self.cache) {
            if let Some(before) = self.medium.insert(sector, bytes) {
                self.before.insert(sector, before);
            }
        }
    }

    fn get(&self, sector: u64) -> Vec<u8> {
        let held = self.cache.get(&sector).or_else(|| self.medium.get(&sector));
        held.cloned().unwrap_or_else(|| vec![0; SECTOR])
    }

    /// Counts a request that can have `fault`, and returns whether the fault occurs now.
    fn strikes(&mut self, fault: Fault) -> bool {
        if self.fault != Some(fault) {
            return false;
        }
        self.countdown = self.countdown.saturating_sub(1);
        let strikes = self.countdown == 0;
        if strikes {
            self.fault = None;
        }
        strikes
    }

    /// Simulates a power cut: a part of the cache reaches the medium, the rest is lost.
    fn lose_power(&mut self) {
        for (sector, bytes) in std::mem::take(&mut self.cache) {
            if !self.loses_cache && self.random.one_in(3) {
                self.medium.insert(sector, bytes);
            }
        }
        self.loses_cache = false;
    }

    /// Executes a request. Returns the error number and the data of a read.
    fn serve_one(&mut self, command: u16, flags: u16, sectors: std::ops::Range<u64>, data: &[u8]) -> (u32, Vec<u8>) {
        let is_durable = flags & FUA != 0;
        match command {
            READ => {
                if self.strikes_soon(Fault::Error, 8) {
                    return (5, Vec::new());
                }
                return (0, sectors.flat_map(|sector| self.get(sector)).collect());
            }
            FLUSH => {
                if self.strikes_soon(Fault::LieAboutFlush, 3) {
                    self.loses_cache = true;
                } else if !self.loses_cache {
                    self.destage();
                }
            }
            _ => self.change(command, is_durable, sectors, data),
        }
        (0, Vec::new())
    }

    fn change(&mut self, command: u16, is_durable: bool, sectors: std::ops::Range<u64>, data: &[u8]) {
        if command == TRIM && self.fault == Some(Fault::ForgetTrim) {
            return;
        }
        if command == WRITE && self.strikes_soon(Fault::LoseAnswered, 100) {
            self.is_volatile = true;
            self.loses_cache = true;
        }
        let shift = u64::from(command == WRITE && self.strikes(Fault::Misplaced));
        let lies = is_durable && self.strikes_soon(Fault::LieAboutFua, 4);
        self.loses_cache |= lies;
        for (index, sector) in sectors.enumerate() {
            let zeros = [0; SECTOR];
            let bytes = data.get(index * SECTOR..(index + 1) * SECTOR).unwrap_or(&zeros).to_vec();
            self.put(sector + shift, &bytes);
            if is_durable && !lies {
                let bytes = self.cache.remove(&sector).unwrap_or(bytes);
                self.medium.insert(sector, bytes);
            }
        }
    }

    /// Like [`Toy::strikes`], but the fault occurs after at most `after` requests that can have it.
    fn strikes_soon(&mut self, fault: Fault, after: u32) -> bool {
        if self.fault == Some(fault) {
            self.countdown = self.countdown.min(after);
        }
        self.strikes(fault)
    }
}

impl Running {
    /// Kills the server and returns the drive, whose medium is kept.
    pub(crate) fn kill(self) -> Toy {
        if let Some(stream) = self.stream.lock().unwrap().as_ref() {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        self.thread.join().unwrap();
        let _ = std::fs::remove_file(&self.socket);
        let toy = Arc::into_inner(self.toy).expect("the thread has ended").into_inner().unwrap();
        let mut toy = Toy { countdown: 60, ..toy };
        toy.lose_power();
        toy
    }
}

/// Performs the part of the handshake that the client uses, and then serves requests.
fn talk(client: &mut UnixStream, toy: &Mutex<Toy>) -> std::io::Result<()> {
    client.write_all(b"NBDMAGICIHAVEOPT\0\x03")?;
    let mut option = [0; 4 + 16 + 6];
    client.read_exact(&mut option)?;
    let answer = |kind: u32, data: &[u8]| {
        let mut bytes = 0x0003_e889_0455_65a9u64.to_be_bytes().to_vec();
        bytes.extend(7u32.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    };
    let mut export = vec![0, 0];
    export.extend((toy.lock().unwrap().sectors * SECTOR as u64).to_be_bytes());
    export.extend(0x6du16.to_be_bytes());
    client.write_all(&answer(3, &export))?;
    client.write_all(&answer(1, &[]))?;
    loop {
        let mut head = [0; 28];
        client.read_exact(&mut head)?;
        let (flags, command) = (u16::from_be_bytes([head[4], head[5]]), u16::from_be_bytes([head[6], head[7]]));
        let offset = u64::from_be_bytes(head[16..24].try_into().unwrap());
        let length = u32::from_be_bytes(head[24..].try_into().unwrap());
        if command == DISCONNECT {
            return Ok(());
        }
        let mut data = vec![0; if command == WRITE { length as usize } else { 0 }];
        client.read_exact(&mut data)?;
        assert!(matches!(command, READ | WRITE | FLUSH | TRIM | WRITE_ZEROES));
        let first = offset / SECTOR as u64;
        let sectors = first..first + u64::from(length) / SECTOR as u64;
        let (error, read) = toy.lock().unwrap().serve_one(command, flags, sectors, &data);
        let mut reply = 0x6744_6698u32.to_be_bytes().to_vec();
        reply.extend(error.to_be_bytes());
        reply.extend(&head[8..16]);
        reply.extend(read);
        client.write_all(&reply)?;
    }
}
