//! The kernel's tracing calls, each behind a safe function. No safe crate suffices: none offers a filter, the registers
//! and the memory of another process together.

#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

/// Identifier of a thread.
pub(super) type Tid = libc::pid_t;

/// The report of a thread that has stopped or ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Report {
    /// The thread is about to enter a system call that the filter stops.
    Enters,
    /// The thread has left a system call.
    Left,
    /// The thread stopped for a tracing event: a new thread, a new program.
    Paused,
    /// A signal is to be delivered to the thread.
    Signal(i32),
    /// The thread ended. The value is the process's status if the thread was the last of the process or its leader.
    Ended(i32),
}

fn outcome(result: libc::c_long) -> io::Result<libc::c_long> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Prepares a command so that this thread traces it. Its program begins with a stop.
///
/// `PTRACE_TRACEME` is used rather than `PTRACE_SEIZE`: the child is traced before it installs its filter, so no call
/// escapes. The disadvantage is that a program cannot stop itself with SIGSTOP.
pub(super) fn trace(command: &mut Command, mut filter: Vec<libc::sock_filter>) {
    // SAFETY: the closure makes system calls and allocates nothing, as is asked of code between fork and exec.
    unsafe { command.pre_exec(move || be_traced(&mut filter)) };
}

/// Asks, in the child, for tracing by the parent's thread, and installs the filter.
fn be_traced(filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the calls read `program` and the filter behind it, which outlive them; all are allowed between fork and
    // exec.
    unsafe {
        outcome(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0))?;
        outcome(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        outcome(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program).into())?;
    }
    Ok(())
}

/// Selects the events reported for a stopped thread and its children. The threads are killed when the tracer ends.
pub(super) fn set_options(tid: Tid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: the call accesses no memory.
    outcome(unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, tid, 0, libc::c_long::from(options)) }).map(|_| ())
}

/// Resumes a thread, with a signal or 0. If `to_exit` is set, the thread stops again when it leaves its system call.
pub(super) fn go_on(tid: Tid, signal: i32, to_exit: bool) -> io::Result<()> {
    let request = if to_exit { libc::PTRACE_SYSCALL } else { libc::PTRACE_CONT };
    // SAFETY: the call accesses no memory.
    outcome(unsafe { libc::ptrace(request, tid, 0, libc::c_long::from(signal)) }).map(|_| ())
}

/// Waits for the next report of a thread that this thread traces. Returns `None` if there are no such threads.
pub(super) fn wait() -> io::Result<Option<(Tid, Report)>> {
    loop {
        let mut status = 0;
        // Without `__WNOTHREAD` the call would consume the ends of children for which other threads of this process
        // wait.
        // SAFETY: the call writes `status`.
        let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if tid > 0 {
            return Ok(Some((tid, report(status))));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ECHILD) => return Ok(None),
            _ => return Err(error),
        }
    }
}

fn report(status: i32) -> Report {
    if !libc::WIFSTOPPED(status) {
        return Report::Ended(status);
    }
    match (libc::WSTOPSIG(status), status >> 16) {
        (libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP) => Report::Enters,
        (signal, 0) if signal == libc::SIGTRAP | 0x80 => Report::Left,
        (signal, 0) => Report::Signal(signal),
        _ => Report::Paused,
    }
}

/// Returns the number that the filter attached to the call at which a thread has stopped.
pub(super) fn message(tid: Tid) -> io::Result<u32> {
    let mut message: libc::c_ulong = 0;
    // SAFETY: the call writes `message`.
    outcome(unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message) })?;
    Ok(message as u32)
}

/// Returns the registers of a thread that has stopped.
pub(super) fn registers(tid: Tid) -> io::Result<libc::user_regs_struct> {
    // SAFETY: a `user_regs_struct` may be all zeros; the call fills the structure.
    unsafe {
        let mut registers: libc::user_regs_struct = std::mem::zeroed();
        outcome(libc::ptrace(libc::PTRACE_GETREGS, tid, 0, &raw mut registers))?;
        Ok(registers)
    }
}

/// Skips the system call that a thread is about to enter, and makes the call return `result`.
pub(super) fn answer(tid: Tid, mut registers: libc::user_regs_struct, result: i64) -> io::Result<()> {
    registers.orig_rax = u64::MAX;
    registers.rax = result as u64;
    // SAFETY: the call reads the registers.
    outcome(unsafe { libc::ptrace(libc::PTRACE_SETREGS, tid, 0, &raw const registers) }).map(|_| ())
}

/// Reads memory of another process.
pub(super) fn read_memory(tid: Tid, address: u64, into: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        let local = libc::iovec { iov_base: into[done..].as_mut_ptr().cast(), iov_len: into.len() - done };
        let remote =
            libc::iovec { iov_base: ptr::without_provenance_mut((address as usize) + done), iov_len: local.iov_len };
        // SAFETY: the call writes the rest of `into`, whose length is given; the other address belongs to the other
        // process.
        let count = unsafe { libc::process_vm_readv(tid, &raw const local, 1, &raw const remote, 1, 0) };
        match count {
            ..0 => return Err(io::Error::last_os_error()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => done += count as usize,
        }
    }
    Ok(())
}

/// Sends a signal to a process.
pub(super) fn kill(pid: Tid, signal: i32) {
    // SAFETY: the call accesses no memory. A process that has already ended is no error for the caller.
    unsafe { libc::kill(pid, signal) };
}
