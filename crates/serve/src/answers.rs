//! Answers of a drive's pacer for a thread that also waits for other events.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use crate::drive_server::{Answer, Target};

/// The list of answers from the pacer, with the drive's numbers of their requests. The thread that takes them watches
/// [`Answers::woken`].
pub(crate) struct Answers {
    waiting: Mutex<VecDeque<(u64, Answer)>>,
    waker: UnixStream,
    /// Readable when there are answers.
    pub woken: UnixStream,
}

impl Answers {
    /// Creates an empty list.
    pub(crate) fn new() -> io::Result<Arc<Answers>> {
        let (waker, woken) = UnixStream::pair()?;
        waker.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Arc::new(Answers { waiting: Mutex::default(), waker, woken }))
    }

    /// Removes and returns all answers.
    pub(crate) fn take(&self) -> io::Result<VecDeque<(u64, Answer)>> {
        let mut bytes = [0; 64];
        // Draining the socket may stop at the last byte: the list of answers is read afterwards.
        while matches!((&self.woken).read(&mut bytes), Ok(read) if read == bytes.len()) {}
        Ok(std::mem::take(&mut *self.waiting.lock().map_err(|_| io::Error::other("the pacer died"))?))
    }
}

impl Target for Answers {
    fn answer(&self, number: u64, answer: Answer) {
        let mut waiting = self.waiting.lock().expect("no thread panics while it holds the answers");
        waiting.push_back((number, answer));
        if waiting.len() == 1 {
            // A full socket wakes the thread as well as one more byte would.
            let _ = (&self.waker).write(&[0]);
        }
    }
}
