//! Backend whose flushes and large operations are performed by a thread of its own, while tasks continue. A small
//! operation is performed at once by the calling thread, since a switch of threads takes longer.
//!
//! ```text
//!   submit ─► small: performed here
//!          ─► large: backend and operation ─► thread ─► backend and answers ─► Notify
//! ```
//!
//! Invariants:
//! 1. One thread at a time owns the backend. While the device's thread owns it, the backend takes no operation
//!    ([`Backend::is_busy`]), so operations are performed in the order in which they were submitted.
//! 2. Every answer of the device's thread comes with a notification.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use imbrex_device::media::host_file::HostFile;
use imbrex_safety::{Contents, Survey};

use super::{BLOCK_BYTES, Backend, DeviceFault, Geometry, Operation, Outcome};
use crate::executor::Notify;

/// Bytes from which on an operation is large: the switch of threads, some 20 us, is a tenth of its time.
const LARGE_BYTES: u64 = 256 << 10;

type Boxed = Box<dyn Backend + Send>;

/// Operation for the device's thread, with the backend that performs it.
struct Job {
    backend: Boxed,
    now_ns: u64,
    number: u64,
    operation: Operation,
}

/// Backend that the device's thread returns, with its answers.
struct Done {
    backend: Boxed,
    answers: Vec<(u64, Outcome)>,
}

/// Backend that performs flushes, and reads and writes of at least 256 KiB, in a thread of its own, and other
/// operations in the caller's thread. If no thread can be started, the caller's thread performs all.
pub struct Background {
    /// The backend; none while the thread owns it.
    here: Option<Boxed>,
    /// Channels to and from the thread; none until the first large operation, so that a device that is only surveyed
    /// has no thread.
    thread: Option<(Sender<Job>, Receiver<Done>)>,
    notify: Arc<Notify>,
    /// Answers that the thread has returned.
    answers: Vec<(u64, Outcome)>,
    geometry: Geometry,
    host_file: Option<Arc<HostFile>>,
    head: u64,
}

impl Background {
    /// Wraps `backend`, which must perform each operation within [`Backend::submit`]. The thread of the device calls
    /// `notify` after each operation, to wake the executor.
    pub fn new(backend: Boxed, notify: Arc<Notify>) -> Background {
        Background {
            geometry: backend.geometry(),
            host_file: backend.host_file(),
            head: backend.head_position(),
            here: Some(backend),
            thread: None,
            notify,
            answers: Vec::new(),
        }
    }

    /// Takes the backend from the channel if the thread has returned it.
    fn look(&mut self) {
        let (None, Some((_, done))) = (&self.here, &self.thread) else { return };
        match done.try_recv() {
            Ok(done) => self.take_back(done),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => panic!("the thread of a device has panicked"),
        }
    }

    fn take_back(&mut self, done: Done) {
        self.head = done.backend.head_position();
        self.answers.extend(done.answers);
        self.here = Some(done.backend);
    }

    /// Returns the backend, after waiting for the thread if the thread owns it.
    fn backend(&mut self) -> &mut Boxed {
        if let (None, Some((_, done))) = (&self.here, &self.thread) {
            let done = done.recv().expect("the thread of a device does not panic");
            self.take_back(done);
        }
        self.here.as_mut().expect("the backend is here unless the thread has it")
    }
}

/// Returns whether an operation takes much longer than a switch of threads.
fn is_large(operation: &Operation) -> bool {
    match operation {
        Operation::Read { blocks, .. } => blocks * BLOCK_BYTES as u64 >= LARGE_BYTES,
        Operation::Write { bytes, .. } => bytes.len() as u64 >= LARGE_BYTES,
        Operation::Flush => true,
        Operation::Reset(_) | Operation::Finish(_) | Operation::Report => false,
    }
}

/// Guard that wakes the executor when the device's thread ends. If the thread panicked, the executor then panics
/// instead of waiting forever.
struct NotifyAtEnd(Arc<Notify>);

impl Drop for NotifyAtEnd {
    fn drop(&mut self) {
        self.0.notify();
    }
}

fn begin_thread(notify: Arc<Notify>) -> io::Result<(Sender<Job>, Receiver<Done>)> {
    let ((jobs, to_do), (done, results)) = (channel::<Job>(), channel());
    std::thread::Builder::new().name("device".into()).spawn(move || {
        let notify = NotifyAtEnd(notify);
        // The channel is dropped before `notify`, so the executor's thread finds it closed when it wakes.
        let (to_do, done) = (to_do, done);
        for Job { mut backend, now_ns, number, operation } in to_do {
            let mut answers = Vec::new();
            backend.submit(now_ns, number, operation);
            backend.answers(now_ns, &mut answers);
            if done.send(Done { backend, answers }).is_err() {
                return;
            }
            notify.0.notify();
        }
    })?;
    Ok((jobs, results))
}

impl Backend for Background {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn submit(&mut self, now_ns: u64, number: u64, operation: Operation) {
        if is_large(&operation) && self.thread.is_none() {
            // If no thread can be started, every operation is performed by the calling thread.
            self.thread = begin_thread(self.notify.clone()).ok();
        }
        match (&self.thread, self.here.take()) {
            (Some((jobs, _)), Some(backend)) if is_large(&operation) => {
                let sent = jobs.send(Job { backend, now_ns, number, operation });
                sent.expect("the thread of a device does not panic");
            }
            (_, here) => {
                self.here = here;
                self.backend().submit(now_ns, number, operation);
            }
        }
    }

    fn is_busy(&mut self) -> bool {
        self.look();
        self.here.is_none()
    }

    fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.look();
        match &mut self.here {
            _ if !self.answers.is_empty() => Some(now_ns),
            // No time is known: the thread's notification ends the wait.
            None => Some(u64::MAX),
            Some(backend) => backend.next_event_ns(now_ns),
        }
    }

    fn answers(&mut self, now_ns: u64, answers: &mut Vec<(u64, Outcome)>) {
        self.look();
        answers.append(&mut self.answers);
        if let Some(backend) = &mut self.here {
            backend.answers(now_ns, answers);
        }
    }

    fn head_position(&self) -> u64 {
        self.here.as_ref().map_or(self.head, |backend| backend.head_position())
    }

    fn next_data(&mut self, block: u64) -> u64 {
        self.backend().next_data(block)
    }

    fn survey(&mut self, name: &str) -> io::Result<Survey> {
        self.backend().survey(name)
    }

    fn wipe_rest(&mut self, contents: &[Contents]) -> io::Result<()> {
        self.backend().wipe_rest(contents)
    }

    fn host_file(&self) -> Option<Arc<HostFile>> {
        self.host_file.clone()
    }

    fn shut_down(&mut self) -> Result<(), DeviceFault> {
        self.backend().shut_down()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::thread::ThreadId;
    use std::time::Duration;

    use super::super::{Answer, Device, Kind};
    use super::*;
    use crate::executor::Executor;

    /// Operations in the order in which they were performed, each with its thread.
    type Log = Arc<Mutex<Vec<(&'static str, ThreadId)>>>;

    /// Blocks in memory. The first write waits for a message on `may_write`, a few seconds at most.
    struct Slow {
        log: Log,
        may_write: Option<Receiver<()>>,
        blocks: BTreeMap<u64, Vec<u8>>,
        answers: Vec<(u64, Outcome)>,
        head: u64,
    }

    impl Slow {
        fn perform(&mut self, operation: Operation) -> Outcome {
            let note = |what| self.log.lock().unwrap().push((what, std::thread::current().id()));
            match operation {
                Operation::Read { block, blocks } => {
                    note("read");
                    let zeros = vec![0; BLOCK_BYTES];
                    let read = |at| self.blocks.get(&at).unwrap_or(&zeros).clone();
                    return Ok(Answer::Bytes((block..block + blocks).flat_map(read).collect()));
                }
                Operation::Write { block: 7_000, .. } => {
                    note("refused");
                    return Err(DeviceFault::new("refused"));
                }
                Operation::Write { block, bytes } => {
                    let waited = self.may_write.take().map(|may| may.recv_timeout(Duration::from_secs(9)));
                    note(if waited.is_some_and(|waited| waited.is_err()) { "write in vain" } else { "write" });
                    self.head = block + (bytes.len() / BLOCK_BYTES) as u64;
                    self.blocks.extend((block..).zip(bytes.chunks(BLOCK_BYTES).map(<[u8]>::to_vec)));
                }
                Operation::Flush => note("flush"),
                other => panic!("{other:?}"),
            }
            Ok(Answer::Done)
        }
    }

    impl Backend for Slow {
        fn geometry(&self) -> Geometry {
            Geometry { blocks: 10_000, kind: Kind::Plain }
        }

        fn submit(&mut self, _: u64, number: u64, operation: Operation) {
            let outcome = self.perform(operation);
            self.answers.push((number, outcome));
        }

        fn next_event_ns(&mut self, now_ns: u64) -> Option<u64> {
            (!self.answers.is_empty()).then_some(now_ns)
        }

        fn answers(&mut self, _: u64, answers: &mut Vec<(u64, Outcome)>) {
            answers.append(&mut self.answers);
        }

        fn head_position(&self) -> u64 {
            self.head
        }
    }

    fn slow() -> (Log, Box<Slow>) {
        let log = Log::default();
        (log.clone(), Box::new(Slow { log, may_write: None, blocks: BTreeMap::new(), answers: Vec::new(), head: 0 }))
    }

    const LARGE: usize = LARGE_BYTES as usize;

    /// Checks operations that are submitted while the thread owns the backend: a task sends the message only later.
    #[test]
    fn tasks_continue_while_a_large_write_is_performed_and_operations_keep_their_order() {
        let executor = Executor::on_the_wall();
        let (log, mut slow) = slow();
        let (let_write, may_write) = channel();
        slow.may_write = Some(may_write);
        let device = Device::new(&executor, "slow", Box::new(Background::new(slow, executor.notify())));
        let (large, small) = (device.clone(), device.clone());
        let writing = executor.spawn(async move { large.write(0, vec![1; LARGE]).await });
        let other = executor.spawn(async move { small.write(3, vec![2; BLOCK_BYTES]).await });
        let ticks = executor.clone();
        let read = executor.run(async move {
            ticks.sleep(1_000).await;
            let_write.send(()).unwrap();
            let read = device.read(2, 2).await?;
            device.flush().await?;
            Ok::<_, DeviceFault>((read, device.head_position()))
        });
        let (read, head) = read.unwrap().unwrap();
        assert_eq!((writing.take(), other.take()), (Some(Ok(())), Some(Ok(()))));
        assert_eq!((read[0], read[BLOCK_BYTES], head), (1, 2, 4));
        let log = log.lock().unwrap();
        let names: Vec<&str> = log.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["write", "write", "read", "flush"]);
        let here = std::thread::current().id();
        let are_here: Vec<bool> = log.iter().map(|(_, thread)| *thread == here).collect();
        assert_eq!(are_here, [false, true, true, false], "small operations are performed by the thread of the clock");
    }

    #[test]
    fn faults_of_the_thread_are_those_of_the_operation_and_the_next_one_is_performed() {
        let executor = Executor::on_the_wall();
        let device = Device::new(&executor, "slow", Box::new(Background::new(slow().1, executor.notify())));
        let outcomes = executor.run(async move {
            let refused = device.write(7_000, vec![1; LARGE]).await;
            (refused, device.write(9, vec![1; LARGE]).await, device.close())
        });
        assert_eq!(outcomes, Ok((Err(DeviceFault::new("refused")), Ok(()), Ok(()))));
    }

    #[test]
    #[should_panic(expected = "the thread of a device has panicked")]
    fn a_panic_of_the_thread_ends_the_wait() {
        let executor = Executor::on_the_wall();
        let mut slow = slow().1;
        slow.log = Log::default();
        let poisoned = slow.log.clone();
        let _ = std::thread::spawn(move || {
            let _held = poisoned.lock();
            panic!("on purpose");
        })
        .join();
        let device = Device::new(&executor, "slow", Box::new(Background::new(slow, executor.notify())));
        let _ = executor.run(async move { device.write(0, vec![1; LARGE]).await });
    }

    #[test]
    fn an_end_waits_for_the_operation_that_the_thread_performs() {
        let executor = Executor::in_virtual_time();
        let (log, slow) = slow();
        let mut background = Background::new(slow, executor.notify());
        background.submit(0, 1, Operation::Write { block: 5, bytes: vec![1; LARGE] });
        assert!(background.here.is_none());
        assert_eq!(background.shut_down(), Ok(()));
        assert_eq!(log.lock().unwrap().len(), 1);
        let mut answers = Vec::new();
        background.answers(0, &mut answers);
        assert_eq!(answers, [(1, Ok(Answer::Done))]);
        assert_eq!(background.head_position(), 5 + LARGE_BYTES / BLOCK_BYTES as u64);
    }
}
