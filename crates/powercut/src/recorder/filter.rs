//! The filter of system calls: calls that change files, make files durable, or send to clients stop. All others run at
//! full speed.
//!
//! Invariants:
//! 1. Each call that is decoded ([`super::calls`]) stops. Calls from the table of another architecture stop too, and
//!    are an error.

use libc::sock_filter;

/// The calls that stop, always or depending on an argument, with their names.
pub(super) const NAMED: &[(i64, &str)] = &[
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_pwritev, "pwritev"),
    (libc::SYS_pwritev2, "pwritev2"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_splice, "splice"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_link, "link"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_symlink, "symlink"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_mknod, "mknod"),
    (libc::SYS_mknodat, "mknodat"),
    (libc::SYS_creat, "creat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_syncfs, "syncfs"),
    (libc::SYS_sync, "sync"),
    (libc::SYS_msync, "msync"),
    (libc::SYS_io_uring_setup, "io_uring_setup"),
    (libc::SYS_io_setup, "io_setup"),
    (libc::SYS_open, "open"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_open_by_handle_at, "open_by_handle_at"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_mmap, "mmap"),
];

/// Number of calls at the start of [`NAMED`] that always stop. The calls after them stop depending on an argument.
const ALWAYS: usize = NAMED.len() - 5;

/// Flags with which an `open` stops: the call creates or truncates a file if one of them is set.
const OPENS: u32 = (libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
/// `ioctl` requests that share blocks between files: FICLONE and FICLONERANGE.
const CLONES: [u32; 2] = [0x4004_9409, 0x4020_940d];
const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// First number of the system call table x32.
const X32: u32 = 0x4000_0000;

/// Message of the filter for a call from the table of another architecture.
pub(super) const FOREIGN: u32 = 1;

/// Offsets in the filter's input, `seccomp_data`: call number, architecture, arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

fn load(offset: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: offset }
}

fn answer(action: u32) -> sock_filter {
    sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: action }
}

fn jump(test: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: (libc::BPF_JMP | test | libc::BPF_K) as u16, jt: if_true, jf: if_false, k: value }
}

/// Appends a rule: call `number` stops if `tests` on argument `index` succeed, and passes otherwise.
fn stop_if(program: &mut Vec<sock_filter>, number: i64, index: u32, tests: &[sock_filter]) {
    let length = tests.len() as u8;
    program.push(jump(libc::BPF_JEQ, number as u32, 0, length + 2));
    program.push(load(argument(index)));
    program.extend_from_slice(tests);
    program.push(answer(libc::SECCOMP_RET_ALLOW));
}

/// Returns the program of the filter.
pub(super) fn program() -> Vec<sock_filter> {
    let stop = answer(libc::SECCOMP_RET_TRACE);
    let foreign = answer(libc::SECCOMP_RET_TRACE | FOREIGN);
    let mut program = vec![
        load(ARCHITECTURE),
        jump(libc::BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
        foreign,
        load(NUMBER),
        jump(libc::BPF_JGE, X32, 0, 1),
        foreign,
    ];
    for &(number, _) in &NAMED[..ALWAYS] {
        program.extend([jump(libc::BPF_JEQ, number as u32, 0, 1), stop]);
    }
    for (number, index) in [(libc::SYS_open, 1), (libc::SYS_openat, 2), (libc::SYS_open_by_handle_at, 2)] {
        stop_if(&mut program, number, index, &[jump(libc::BPF_JSET, OPENS, 0, 1), stop]);
    }
    let clones = [jump(libc::BPF_JEQ, CLONES[0], 1, 0), jump(libc::BPF_JEQ, CLONES[1], 0, 1), stop];
    stop_if(&mut program, libc::SYS_ioctl, 1, &clones);
    // Shared mappings: the type in the flags is MAP_SHARED or MAP_SHARED_VALIDATE, and both have the lowest bit set.
    stop_if(&mut program, libc::SYS_mmap, 3, &[jump(libc::BPF_JSET, libc::MAP_SHARED as u32, 0, 1), stop]);
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    program
}
