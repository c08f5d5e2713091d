//! Requests on their way from the session's thread to the core's.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::sync::Mutex;

use imbrex_fs::clock::{Bell, Clock, Source};
use imbrex_fs::Fs;

use super::Answers;

/// What a task of the core works with.
pub struct Context {
    /// The file system.
    pub fs: Fs,
    /// What is answered for it.
    pub answers: Rc<dyn Answers>,
}

type Task = Pin<Box<dyn Future<Output = ()>>>;
type Request = Box<dyn FnOnce(Rc<Context>) -> Task + Send>;

/// Where the session's thread puts requests.
pub struct Handover {
    sender: Mutex<Sender<Request>>,
    bell: Bell,
}

impl Handover {
    /// Hands a request over: `begin` makes its task, on the core's thread.
    pub fn give<T: Future<Output = ()> + 'static>(&self, begin: impl FnOnce(Rc<Context>) -> T + Send + 'static) {
        let request: Request = Box::new(move |context| Box::pin(begin(context)));
        let sender = self.sender.lock().expect("nothing that holds it panics");
        // Once the core has ended nobody answers; the kernel ends what waits itself.
        let _ = sender.send(request);
        drop(sender);
        self.bell.ring();
    }
}

/// Where the core takes them from: each becomes a task.
pub struct Requests {
    clock: Clock,
    context: Rc<Context>,
    receiver: Receiver<Request>,
    has_ended: Cell<bool>,
}

impl Requests {
    /// Both ends.
    pub fn new(clock: &Clock, context: Rc<Context>) -> (Rc<Requests>, Handover) {
        let (sender, receiver) = channel();
        let requests = Requests { clock: clock.clone(), context, receiver, has_ended: Cell::new(false) };
        (Rc::new(requests), Handover { sender: Mutex::new(sender), bell: clock.bell() })
    }

    /// Whether the session is over: no more will come.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}

impl Source for Requests {
    fn next_event_ns(&self, _now_ns: u64) -> Option<u64> {
        // The bell tells.
        None
    }

    fn deliver(&self, _now_ns: u64) {
        loop {
            match self.receiver.try_recv() {
                Ok(begin) => drop(self.clock.spawn(begin(self.context.clone()))),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => return self.has_ended.set(true),
            }
        }
    }
}
