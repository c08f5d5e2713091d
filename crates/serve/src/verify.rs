//! Checks of the NBD server against faulty and malicious clients, which send arbitrary bytes. Each function takes all
//! bytes that a client ever sends, and panics only over a fault of the server. A fuzzer calls these functions, and so
//! do tests with tens of thousands of cases.
//!
//! The answers are compared with those of a deliberately simple model, which parses the same bytes independently.
//!
//! Invariants:
//! 1. Every whole request is answered once, as the model says, and in order if the drive has no pace. Requests after a
//!    malformed one are not answered.
//! 2. At the end the drive and the model hold the same data.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use imbrex_device::EmulatedDrive;
use imbrex_device::drive::{Making, header_of};
use imbrex_device::pacing::Pace;
use imbrex_layer::registry;
use imbrex_layer::verify::toy;
use imbrex_sim::{Drive, DriveSpec};

use crate::drive_server::{DriveServer, Facts};
use crate::nbd::handshake::{Ended, Session, Tls, greet, options};
use crate::nbd::protocol::{OPTION_REPLY_MAGIC, REQUEST_BYTES, REQUEST_MAGIC, SIMPLE_REPLY_MAGIC};
use crate::nbd::protocol::{STRUCTURED_REPLY_MAGIC, chunk, command, option};
use crate::nbd::transmission;
use crate::payload::Account;

/// Number of reads after the end of the stream before the check fails: more of them look like an endless loop.
const READS_PAST_END_MAX: u32 = 4;

/// A conversation: the bytes that a client sends, and the bytes that it receives.
struct Conversation<'a> {
    said: &'a [u8],
    told: Vec<u8>,
    reads_past_end: u32,
}

impl<'a> Conversation<'a> {
    fn new(said: &'a [u8]) -> Conversation<'a> {
        Conversation { said, told: Vec::new(), reads_past_end: 0 }
    }
}

impl Read for Conversation<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.said.is_empty() {
            self.reads_past_end += 1;
            assert!(self.reads_past_end <= READS_PAST_END_MAX, "the server reads on after the client's end");
        }
        self.said.read(into)
    }
}

impl Write for Conversation<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.told.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the properties of the drive that [`handshake`] offers: 1 GiB in sectors of 512 bytes, writable, without
/// zones.
pub fn facts() -> Facts {
    Facts {
        label: "a drive".into(),
        capacity_bytes: 1 << 30,
        sector_bytes: 512,
        read_only: false,
        trims_to_zeros: true,
        has_volatile_cache: false,
        zones: None,
        leaves_damage_to_host: false,
    }
}

/// Performs the NBD handshake with a client that sends the bytes `said` and then ends. Returns the bytes that the
/// client received after the greeting, and the outcome of the option negotiation. The outcome is `None` if the client's
/// flags are wrong, or its bytes end too early.
///
/// # Panics
///
/// If the server misbehaves: a reply is cut short or answers no option of the client, TLS starts although `tls` is not
/// [`Tls::Required`], or requests begin without a required TLS.
pub fn handshake(said: &[u8], tls: Tls) -> (Vec<u8>, Option<Ended>) {
    let mut conversation = Conversation::new(said);
    let greeted = greet(&mut conversation);
    conversation.told.clear();
    let Ok(Some(no_zeroes)) = greeted else { return (conversation.told, None) };
    let ended = options(&mut conversation, &facts(), no_zeroes, tls).ok();
    assert!(tls == Tls::Required || ended != Some(Ended::StartTls), "TLS begins only where it is on offer");
    assert!(tls != Tls::Required || !matches!(ended, Some(Ended::Go(_))), "nobody goes on without TLS");
    check_option_replies(&conversation.told, said, ended);
    (conversation.told, ended)
}

/// Checks that every reply is whole and answers an option that the client sent. Only the export's facts may follow the
/// last reply.
fn check_option_replies(told: &[u8], said: &[u8], ended: Option<Ended>) {
    let mut rest = told;
    while rest.len() >= 20 && rest[..8] == OPTION_REPLY_MAGIC.to_be_bytes() {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four bytes"));
        let (asked, length) = (word(8), word(16) as usize);
        assert!(said.windows(4).any(|window| window == asked.to_be_bytes()), "nobody sent option {asked}");
        assert!(rest.len() >= 20 + length, "a reply to option {asked} is cut short");
        rest = &rest[20 + length..];
    }
    let is_export_name = matches!(ended, Some(Ended::Go(_))) && (rest.len() == 10 || rest.len() == 134);
    assert!(rest.is_empty() || is_export_name, "{rest:?} is no reply");
}

/// Returns the bytes of an NBD handshake option with `number` and `data`, in the form in which a client sends it: the
/// magic number `IHAVEOPT`, the option's number, the length of `data`, and `data`.
pub fn option_bytes(number: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Returns the bytes of a correct NBD client's handshake: first the client's flags, then one element for each option
/// that clients use. Option GO is the last.
pub fn valid_handshake() -> Vec<Vec<u8>> {
    let named = |rest: &[u8]| [&0u32.to_be_bytes(), rest].concat();
    let context = [&1u32.to_be_bytes()[..], &15u32.to_be_bytes(), b"base:allocation"].concat();
    vec![
        3u32.to_be_bytes().to_vec(),
        option_bytes(option::STARTTLS, &[]),
        option_bytes(option::STRUCTURED_REPLY, &[]),
        option_bytes(option::LIST, &[]),
        option_bytes(option::LIST_META_CONTEXT, &named(&0u32.to_be_bytes())),
        option_bytes(option::SET_META_CONTEXT, &named(&context)),
        option_bytes(option::INFO, &named(&[0, 2, 0, 1, 0, 3])),
        option_bytes(option::GO, &named(&[0, 1, 0, 2])),
    ]
}

/// A writer whose bytes can be read through any of its clones.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<u8>>>);

impl Write for Told {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a small empty drive in memory: the translation layer `layer` on a toy disk.
///
/// # Panics
///
/// If no layer has this name.
pub fn small_drive(layer: &str) -> EmulatedDrive {
    let info = registry::named(layer).expect("it is registered");
    let build = |words: &&str| {
        let spec = DriveSpec::parse(&format!("toy+{layer}:{words}")).expect("toy parameters are key=value");
        let mut disks = info.recordings.iter().flat_map(|&name| toy::disks(name));
        let drive =
            disks.find_map(|disk| Drive::assemble(layer, disk.profile.clone(), layer, &spec.parameters).ok())?;
        Some((drive, spec))
    };
    let (drive, spec) = info.toys.iter().find_map(build).expect("every layer has a toy");
    let making = Making { uuid: Default::default(), chunk_bytes: 4096, journal_bytes: 1 << 20 };
    EmulatedDrive::in_memory(header_of(&drive, &spec, &making).expect("toys are power-safe")).expect("memory takes it")
}

/// The model's answer to a request.
#[derive(PartialEq, Eq, Debug)]
enum Expected {
    /// The request is carried out.
    Done,
    /// The read returns these bytes.
    Bytes(Vec<u8>),
    /// The request returns the allocation status of up to this number of bytes.
    Allocation(u64),
    /// The request is refused.
    Refused,
}

/// The model of a drive: an array of bytes, and the rules of the protocol one by one.
struct Model {
    bytes: Vec<u8>,
    sector_bytes: u64,
    trims_to_zeros: bool,
    session: Session,
}

impl Model {
    /// Returns the answer to a request; `payload` is empty unless the request is a write.
    fn serve(&mut self, flags: u16, number: u16, offset: u64, length: u64, payload: &[u8]) -> Expected {
        let allowed = match number {
            command::WRITE_ZEROES => 0b10011,
            command::READ => 0b101,
            command::BLOCK_STATUS => 0b1001,
            _ => 1,
        };
        if flags & !allowed != 0 || (number == command::BLOCK_STATUS && !self.session.allocation) {
            return Expected::Refused;
        }
        if number == command::FLUSH {
            return if offset == 0 && length == 0 { Expected::Done } else { Expected::Refused };
        }
        let in_sectors =
            offset.is_multiple_of(self.sector_bytes) && length.is_multiple_of(self.sector_bytes) && length > 0;
        if !in_sectors || u128::from(offset) + u128::from(length) > self.bytes.len() as u128 {
            return Expected::Refused;
        }
        let range = offset as usize..(offset + length) as usize;
        match number {
            command::READ => return Expected::Bytes(self.bytes[range].to_vec()),
            command::WRITE => self.bytes[range].copy_from_slice(payload),
            command::TRIM if self.trims_to_zeros => self.bytes[range].fill(0),
            command::TRIM => {}
            // Zeroes are cheap only if they can be a trim.
            command::WRITE_ZEROES if flags & 0b10000 != 0 && (!self.trims_to_zeros || flags & 0b10 != 0) => {
                return Expected::Refused;
            }
            command::WRITE_ZEROES => self.bytes[range].fill(0),
            command::BLOCK_STATUS => return Expected::Allocation(length),
            _ => return Expected::Refused,
        }
        Expected::Done
    }
}

/// A pace so fast that answers are due at once, and that an idle second of the drive passes between two answers.
const FAST: Pace = Pace::Times(1e6);

/// A small drive that is served over NBD to one client after the other, with a simple model of the drive for
/// comparison.
pub struct Requests {
    front: Arc<DriveServer>,
    model: Model,
}

impl Requests {
    /// Creates an empty drive with the translation layer `layer`. It answers requests as fast as possible, without
    /// regard to simulated time. One thread reads the requests of a client and answers them.
    ///
    /// # Panics
    ///
    /// If no layer has this name.
    pub fn new(layer: &str) -> Requests {
        Requests::at(layer, Pace::None)
    }

    /// Creates an empty drive with the translation layer `layer`, served a million times as fast as real time. Requests
    /// and replies then use several threads, and replies may come in any order.
    ///
    /// # Panics
    ///
    /// If no layer has this name.
    pub fn paced(layer: &str) -> Requests {
        Requests::at(layer, FAST)
    }

    fn at(layer: &str, pace: Pace) -> Requests {
        let (front, _) = DriveServer::start(small_drive(layer), pace, false);
        let facts = front.facts();
        let model = Model {
            bytes: vec![0; facts.capacity_bytes as usize],
            sector_bytes: u64::from(facts.sector_bytes),
            trims_to_zeros: facts.trims_to_zeros,
            session: Session::default(),
        };
        Requests { front, model }
    }

    /// Returns the capacity of the served drive, in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.front.facts().capacity_bytes
    }

    /// Serves a client that sends the bytes `said` after its handshake, with the options in `session`, and then ends.
    /// Compares the replies, and afterwards the contents of the drive, with the model. Returns the number of requests
    /// that were answered.
    ///
    /// # Panics
    ///
    /// If a reply or the contents differ from the model.
    pub fn serve(&mut self, said: &[u8], session: Session) -> usize {
        let told = self.told(said, session);
        self.model.session = session;
        let answered = self.compare(said, &told);
        self.compare_contents();
        answered
    }

    /// Returns all bytes that a client receives when it sends `said`.
    fn told(&self, said: &[u8], session: Session) -> Vec<u8> {
        let told = Told::default();
        let mut conversation = Conversation::new(said);
        // How the connection ends is not checked.
        let _ = transmission::run(&self.front, &Arc::new(Account::alone()), session, &mut conversation, told.clone());
        let mut bytes = told.0.lock().expect("nobody panics with it");
        std::mem::take(&mut *bytes)
    }

    /// Serves a client that sends over `reader` and receives over `writer`, until it disconnects. The replies are not
    /// compared with the model, and changes of the drive make later comparisons fail.
    pub fn serve_live(&self, reader: impl Read, writer: impl Write + Send + 'static) {
        // How the connection ends is not checked.
        let _ = transmission::run(&self.front, &Arc::new(Account::alone()), Session::default(), reader, writer);
    }

    /// Checks that there is exactly one right reply for each request. Returns the number of replies.
    fn compare(&mut self, said: &[u8], told: &[u8]) -> usize {
        let (mut owed, mut told) = (self.owed(said), told);
        let answered = owed.len();
        while !told.is_empty() {
            // With a pace the drive answers in any order.
            let among = if self.front.is_unpaced() { owed.len().min(1) } else { owed.len() };
            let fits = |owed: &Owed| length_of_reply(told, owed, self.model.session);
            let found = owed[..among].iter().enumerate().find_map(|(index, owed)| Some((index, fits(owed)?)));
            let Some((index, length)) = found else {
                panic!("{:?} answers none of {:?}", &told[..told.len().min(64)], &owed[..among]);
            };
            owed.remove(index);
            told = &told[length..];
        }
        assert!(owed.is_empty(), "no answer to {owed:?}");
        answered
    }

    /// Returns the model's answer to each whole request, up to the first one that is malformed.
    fn owed(&mut self, said: &[u8]) -> Vec<Owed> {
        let (mut rest, mut owed) = (said, Vec::new());
        while let Some((header, after)) = rest.split_at_checked(REQUEST_BYTES) {
            let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
            let long = |at: usize| u64::from_be_bytes(header[at..at + 8].try_into().expect("eight bytes"));
            let length = u32::from_be_bytes(header[24..28].try_into().expect("four bytes")) as usize;
            let (flags, number, cookie, offset) = (half(4), half(6), long(8), long(16));
            if header[..4] != REQUEST_MAGIC.to_be_bytes() || number == command::DISCONNECT {
                break;
            }
            let Some((payload, after)) = after.split_at_checked(if number == command::WRITE { length } else { 0 })
            else {
                break;
            };
            rest = after;
            owed.push(Owed { cookie, expected: self.model.serve(flags, number, offset, length as u64, payload) });
        }
        owed
    }

    fn compare_contents(&self) {
        let length = self.model.bytes.len();
        let told = self.told(&request_bytes(0, command::READ, 0, 0, length as u32, &[]), Session::default());
        assert_eq!(told[..8], [SIMPLE_REPLY_MAGIC.to_be_bytes(), [0; 4]].concat(), "the drive is well");
        assert!(told[16..] == self.model.bytes, "the contents of the drive differ from the model");
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.front.begin_stop();
    }
}

/// An answer that the client must receive.
#[derive(Debug)]
struct Owed {
    cookie: u64,
    expected: Expected,
}

/// Returns the length of the reply to `owed` at the start of `told`, in bytes; `None` if `told` starts with another
/// reply.
fn length_of_reply(told: &[u8], owed: &Owed, session: Session) -> Option<usize> {
    let word = |at: usize| u32::from_be_bytes(told[at..at + 4].try_into().expect("four bytes"));
    assert!(told.len() >= 16, "{told:?} is no whole reply");
    if told[8..16] != owed.cookie.to_be_bytes() {
        return None;
    }
    if word(0) == SIMPLE_REPLY_MAGIC {
        return match &owed.expected {
            Expected::Refused => (word(4) != 0).then_some(16),
            Expected::Done => (word(4) == 0).then_some(16),
            Expected::Bytes(bytes) => {
                let is_it = !session.structured && word(4) == 0 && told[16..].starts_with(bytes);
                is_it.then_some(16 + bytes.len())
            }
            Expected::Allocation(_) => None,
        };
    }
    assert!(word(0) == STRUCTURED_REPLY_MAGIC && session.structured, "{:x} begins no reply", word(0));
    let (kind, length) = (u16::from_be_bytes([told[6], told[7]]), word(16) as usize);
    let data = told[20..].get(..length).expect("a chunk is whole");
    let is_it = match (kind, &owed.expected) {
        (chunk::ERROR, Expected::Refused) => data[..4] != [0; 4],
        (chunk::OFFSET_DATA, Expected::Bytes(bytes)) => data[8..] == bytes[..],
        (chunk::BLOCK_STATUS, Expected::Allocation(length)) => {
            let bytes = |run: &[u8]| u64::from(u32::from_be_bytes(run[..4].try_into().expect("four bytes")));
            (1..=*length).contains(&data[4..].chunks_exact(8).map(bytes).sum())
        }
        _ => false,
    };
    is_it.then_some(20 + length)
}

/// Returns an NBD request, followed by its payload, in the form in which a client sends it. `number` is that of the
/// command; `offset` and `length` are in bytes. `length` need not equal the size of `payload`, so that faulty requests
/// can be built.
pub fn request_bytes(flags: u16, number: u16, cookie: u64, offset: u64, length: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.extend_from_slice(&cookie.to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}
