//! An emulated drive as a disk of a virtual machine, over the vhost-user protocol (`imbrex serve --vhost-user PATH`).
//!
//! A hypervisor such as QEMU connects to a Unix socket, and passes the memory of its guest. The driver virtio-blk in the
//! guest puts requests into queues in that memory. So a request costs no copy through a socket, and a host-managed drive
//! keeps its zones. The crates `vhost` and `vhost-user-backend` have no notices by messages, which a kernel in virtual
//! time needs; so the protocol is ours.
//!
//! One front end is connected at a time; another waits until the first has ended its connection.
//!
//! The front end is trusted: it can end this process, for example by shortening the file of the guest's memory.

pub mod block;
pub mod message;
pub mod session;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use imbrex_device::{EmulatedDrive, Io};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::block::{Backend, BlockDevice, Submitted, device_of};
pub use self::message::Message;
pub use self::session::{Effect, Session};
use crate::answers::Answers;
use crate::drive_server::{DriveServer, Target, backdate};
use crate::socket::{Access, Socket};

/// Number of queues of a device: a guest uses one for each of its processors.
const QUEUES: u16 = 16;
/// Interval at which the server looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A drive that is served to virtual machines at a Unix socket. Dropping this value removes the socket.
pub struct VhostUserServer {
    socket: Socket,
    front: Arc<DriveServer>,
}

impl VhostUserServer {
    /// Creates the Unix socket `path`, to which only root and this user can connect. [`VhostUserServer::run`] serves
    /// the drive of `front` there.
    ///
    /// # Errors
    ///
    /// The path is in use, or the socket cannot be created.
    pub fn bind(path: &Path, front: Arc<DriveServer>) -> io::Result<VhostUserServer> {
        let socket = Socket::bind(path, Access::Owner)?;
        socket.set_nonblocking(true)?;
        Ok(VhostUserServer { socket, front })
    }

    /// Serves front ends one after the other, until `should_stop` returns true. `report` receives the reason if a
    /// connection ended because the front end broke the protocol.
    ///
    /// # Errors
    ///
    /// The socket fails.
    pub fn run(&self, should_stop: &dyn Fn() -> bool, mut report: impl FnMut(&io::Error)) -> io::Result<()> {
        while !should_stop() {
            if wait(&[self.socket.as_fd()], LOOK_EVERY)?.is_empty() {
                continue;
            }
            let stream = match self.socket.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(false)?;
            if let Err(error) = Connection::new(&self.front, stream)?.run(should_stop) {
                report(&error);
            }
        }
        Ok(())
    }
}

/// Waits until one of these descriptors can be read, and returns the indices of those that can: none after `longest`, or
/// after a signal.
///
/// # Errors
///
/// The system refuses to wait.
pub fn wait(fds: &[BorrowedFd<'_>], longest: Duration) -> io::Result<Vec<usize>> {
    let mut polled: Vec<PollFd<'_>> = fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let time = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
    match poll(&mut polled, Some(&time)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    }
    Ok(polled.iter().enumerate().filter(|(_, fd)| !fd.revents().is_empty()).map(|(index, _)| index).collect())
}

/// The drive, as the guest of one connection uses it.
struct Live {
    front: Arc<DriveServer>,
    target: Arc<dyn Target>,
    /// Lateness of the latest answer.
    late: Duration,
}

impl Backend for Live {
    fn with<T>(&mut self, look: impl FnOnce(&mut EmulatedDrive) -> T) -> T {
        self.front.with(|drive, _| look(drive))
    }

    fn submit(&mut self, io: Io) -> Submitted {
        if self.front.is_unpaced() {
            let answer = self.front.serve(io);
            return Submitted::Answered(answer.buffer, answer.outcome);
        }
        let mut accepted = None;
        let arrived = backdate(Instant::now(), self.late);
        // The answer comes over a list that this thread reads: the number is known by then.
        match self.front.submit(io, arrived, &self.target, |number| accepted = Some(number)) {
            Ok(()) => Submitted::Accepted(accepted.expect("an accepted request has a number")),
            Err(error) => Submitted::Answered(Vec::new(), Err(error)),
        }
    }
}

/// One connection of a front end.
struct Connection {
    stream: UnixStream,
    device: BlockDevice,
    backend: Live,
    answers: Arc<Answers>,
}

impl Connection {
    fn new(front: &Arc<DriveServer>, stream: UnixStream) -> io::Result<Connection> {
        // The guest must send flushes even if the drive has no volatile cache: they make its image durable.
        let (features, config) = device_of(front.facts(), QUEUES, true);
        let session = Session::new(features, config, usize::from(QUEUES), false);
        let answers = Answers::new()?;
        let backend = Live { front: front.clone(), target: answers.clone(), late: Duration::ZERO };
        Ok(Connection { stream, device: BlockDevice::new(session, front.facts()), backend, answers })
    }

    /// Serves the connection until the front end ends it, or until `should_stop`.
    fn run(&mut self, should_stop: &dyn Fn() -> bool) -> io::Result<()> {
        let served = self.serve(should_stop);
        // The drive completes all accepted requests: the answers have no reader any more.
        while self.device.outstanding() > 0 && served.is_ok() && !should_stop() {
            self.take_answers()?;
            wait(&[self.answers.woken.as_fd()], LOOK_EVERY)?;
        }
        served
    }

    fn serve(&mut self, should_stop: &dyn Fn() -> bool) -> io::Result<()> {
        while !should_stop() {
            let queues: Vec<usize> = (0..self.device.session().queues())
                .filter(|&queue| self.device.session().kick(queue).is_some())
                .collect();
            let ready = {
                let kicks = queues.iter().filter_map(|&queue| self.device.session().kick(queue)).map(AsFd::as_fd);
                let fds: Vec<_> = [self.stream.as_fd(), self.answers.woken.as_fd()].into_iter().chain(kicks).collect();
                wait(&fds, LOOK_EVERY)?
            };
            for index in ready {
                match index {
                    0 => {
                        let Some(message) = Message::receive(&self.stream)? else { return Ok(()) };
                        self.handle(message)?;
                    }
                    1 => self.take_answers()?,
                    // A message may have disabled the queue just now.
                    _ => self.kicked(queues[index - 2])?,
                }
            }
        }
        Ok(())
    }

    fn handle(&mut self, mut message: Message) -> io::Result<()> {
        let (answer, effect) = self.device.session_mut().handle(&mut message)?;
        if message.request == message::request::SET_FEATURES && self.device.lacks_zones() {
            return Err(message::invalid(
                "the virtual machine takes no zoned disk (VIRTIO_BLK_F_ZONED), and the drive has zones: use --ublk, or imbrex lab"
                    .into(),
            ));
        }
        match effect {
            Effect::None => {}
            Effect::Kicked(queue) | Effect::Changed(queue) => self.take_requests(queue)?,
            Effect::Stopping(_) => {
                while self.device.outstanding() > 0 {
                    wait(&[self.answers.woken.as_fd()], LOOK_EVERY)?;
                    self.take_answers()?;
                }
            }
        }
        match answer {
            Some(answer) => answer.send(&self.stream),
            None => Ok(()),
        }
    }

    fn kicked(&mut self, queue: usize) -> io::Result<()> {
        let Some(kick) = self.device.session().kick(queue) else { return Ok(()) };
        drain(kick)?;
        self.take_requests(queue)
    }

    fn take_requests(&mut self, queue: usize) -> io::Result<()> {
        self.device.kicked(queue, &mut self.backend)?;
        self.notify()
    }

    fn take_answers(&mut self) -> io::Result<()> {
        for (number, answer) in self.answers.take()? {
            self.backend.late = answer.due.elapsed();
            self.device.completed(number, &answer.buffer, &answer.outcome, &mut self.backend)?;
        }
        self.notify()
    }

    fn notify(&mut self) -> io::Result<()> {
        for queue in self.device.take_returned() {
            self.device.session_mut().notify(queue)?;
        }
        Ok(())
    }
}

/// Reads the count of an event descriptor, so that it is no longer readable.
fn drain(kick: &OwnedFd) -> io::Result<()> {
    match rustix::io::retry_on_intr(|| rustix::io::read(kick, &mut [0; 8])) {
        Ok(_) | Err(rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
