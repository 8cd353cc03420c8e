//! bpf(2): loads programs and runs them once on given bytes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PROG_LOAD: libc::c_int = 5;
const PROG_TEST_RUN: libc::c_int = 10;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;

/// The part of `union bpf_attr` that loads a program.
#[repr(C)]
#[derive(Default)]
struct Load {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_buf: u64,
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u8; 16],
}

/// The part of `union bpf_attr` that runs a program.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: u32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
}

/// What the verifier writes: each step, or only how many steps it took (since Linux 5.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Log {
    Steps = 1,
    Statistics = 4,
}

/// Loads a program; the kernel writes its verifier's text to `log` unless that is empty.
pub(crate) fn load(
    kind: u32,
    instructions: &[u64],
    name: &[u8; 16],
    level: Log,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    const LICENSE: &core::ffi::CStr = c"Dual MIT/GPL";
    let mut attr = Load {
        prog_type: kind,
        insn_cnt: instructions.len() as u32,
        insns: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        prog_name: *name,
        ..Load::default()
    };
    if !log.is_empty() {
        attr.log_level = level as u32;
        attr.log_size = log.len() as u32;
        attr.log_buf = log.as_mut_ptr() as u64;
    }
    // SAFETY: `attr` is a `bpf_attr` for this command. The kernel reads `insn_cnt` instructions of 8 bytes and a string
    // that ends in 0, and writes at most `log_size` bytes; all three live until the call returns.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, PROG_LOAD, &raw mut attr, size_of::<Load>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, which nothing else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Runs a program on `data` and `context`, which are a packet and a `struct __sk_buff`. Returns the program's value and
/// nanoseconds per run, and replaces the context.
pub(crate) fn test_run(
    program: BorrowedFd<'_>,
    data: &[u8],
    context: &mut [u8],
    repeat: u32,
) -> io::Result<(u32, u32)> {
    let size = context.len() as u32;
    let mut attr = TestRun {
        prog_fd: program.as_raw_fd() as u32,
        data_size_in: data.len() as u32,
        data_in: data.as_ptr() as u64,
        repeat,
        ctx_size_in: size,
        ctx_size_out: size,
        ctx_in: context.as_ptr() as u64,
        ctx_out: context.as_mut_ptr() as u64,
        ..TestRun::default()
    };
    let (command, length) = (PROG_TEST_RUN, size_of::<TestRun>());
    // SAFETY: `attr` is a `bpf_attr` for this command. The kernel reads `data_size_in` and `ctx_size_in` bytes and writes
    // at most `ctx_size_out` bytes; the buffers live until the call returns.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, length) };
    match done {
        0 => Ok((attr.retval, attr.duration)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The part of `struct bpf_prog_info` that names a program.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    tag: [u8; 8],
}

/// The part of `union bpf_attr` that asks for such a description.
#[repr(C)]
struct AskInfo {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// The program's number, and the kernel's hash of its instructions.
pub(crate) fn info(program: BorrowedFd<'_>) -> io::Result<(u32, [u8; 8])> {
    let mut info = Info::default();
    let mut attr = AskInfo {
        bpf_fd: program.as_raw_fd() as u32,
        info_len: size_of::<Info>() as u32,
        info: &raw mut info as u64,
    };
    let (command, length) = (OBJ_GET_INFO_BY_FD, size_of::<AskInfo>());
    // SAFETY: `attr` is a `bpf_attr` for this command. The kernel writes at most `info_len` bytes to `info`, which lives
    // until the call returns.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, length) };
    match done {
        0 => Ok((info.id, info.tag)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The part of `union bpf_attr` that finds a program by its number.
#[repr(C)]
#[derive(Default)]
struct ById {
    prog_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// A descriptor of the loaded program with this number.
pub(crate) fn by_id(id: u32) -> io::Result<OwnedFd> {
    let mut attr = ById {
        prog_id: id,
        ..ById::default()
    };
    let (command, length) = (PROG_GET_FD_BY_ID, size_of::<ById>());
    // SAFETY: `attr` is a `bpf_attr` for this command, which reads nothing else.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attr, length) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just returned this descriptor, which nothing else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}
