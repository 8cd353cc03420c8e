//! Resources that this process or another has used so far.

use std::io;

use base::Duration;
use rustix::time::ClockId;

use crate::clock;
use crate::sys::process;

/// Resources that the process has used since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Processor time in user mode, of all threads.
    pub user: Duration,
    /// Processor time in the kernel, of all threads.
    pub system: Duration,
    /// How often it gave up the processor to wait.
    pub voluntary_switches: u64,
    /// How often the processor was taken from it.
    pub involuntary_switches: u64,
    /// The most memory it ever had resident, in bytes.
    pub resident_bytes_max: u64,
}

impl Usage {
    /// Processor time in both modes.
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// `getrusage` of this process.
pub fn of_this_process() -> Usage {
    booked(&process::usage())
}

/// `getrusage` of this process's children that have ended and were waited for, and of their children.
///
/// The memory is the largest resident size of any of them, and at least the size of the process that started it at
/// that time.
pub fn of_children() -> Usage {
    booked(&process::usage_of_children())
}

fn booked(usage: &libc::rusage) -> Usage {
    let span = |time: libc::timeval| {
        let (seconds, micros) = (time.tv_sec.cast_unsigned(), time.tv_usec.cast_unsigned());
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    Usage {
        user: span(usage.ru_utime),
        system: span(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw.cast_unsigned(),
        involuntary_switches: usage.ru_nivcsw.cast_unsigned(),
        resident_bytes_max: usage.ru_maxrss.cast_unsigned() * 1024,
    }
}

/// Processor time of this process, of all its threads, to the nanosecond.
pub fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    Duration::from_nanos(clock::nanos(time))
}

/// Processor time of this thread, to the nanosecond.
pub fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(clock::nanos(time))
}

/// This thread's id in the kernel.
pub fn this_thread() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Processor time of a thread of this process by its id, to the nanosecond (proc(5): `schedstat`).
///
/// # Errors
/// There is no such thread, or `/proc` cannot be read.
pub fn cpu_of(thread: i32) -> io::Result<Duration> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))?;
    let first = text.split_ascii_whitespace().next();
    let nanos = first.and_then(|first| first.parse().ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

/// What a thread does according to the kernel (proc(5)). What cannot be read is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// `R`: runs or could run; `S`: sleeps; `D`: waits for a disk or another device; others as in proc(5).
    pub state: Option<char>,
    /// The system call that it is in, by name or number.
    pub call: Option<String>,
    /// The kernel function in which it sleeps.
    pub place: Option<String>,
}

/// What a thread of this process does, by its id.
pub fn standing_of(thread: i32) -> Standing {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/task/{thread}/{name}"));
    let state = read("stat").ok().and_then(|stat| state_in(&stat));
    let call = read("syscall").ok().and_then(|line| call_in(&line));
    let place = read("wchan").ok();
    let place = place.filter(|place| !place.is_empty() && place != "0");
    Standing { state, call, place }
}

/// The third field of a `stat` file; the second, in parentheses, may contain anything.
fn state_in(stat: &str) -> Option<char> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

/// The call of a `syscall` file: `running`, or -1, if there is none.
fn call_in(line: &str) -> Option<String> {
    let number = line.split_ascii_whitespace().next()?;
    let number: libc::c_long = number.parse().ok()?;
    let known = CALLS.iter().find(|(known, _)| *known == number);
    let name = known.map(|(_, name)| (*name).to_owned());
    (number >= 0).then(|| name.unwrap_or_else(|| format!("system call {number}")))
}

/// Calls in which a thread may wait for long.
const CALLS: &[(libc::c_long, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_close, "close"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_futex, "futex"),
    (libc::SYS_clock_nanosleep, "clock_nanosleep"),
    (libc::SYS_sendmsg, "sendmsg"),
    (libc::SYS_sendto, "sendto"),
    (libc::SYS_sendmmsg, "sendmmsg"),
    (libc::SYS_recvmsg, "recvmsg"),
    (libc::SYS_recvfrom, "recvfrom"),
    (libc::SYS_recvmmsg, "recvmmsg"),
    (libc::SYS_connect, "connect"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_munmap, "munmap"),
];

/// Resident memory of this process now, in bytes.
///
/// # Errors
/// `/proc` cannot be read.
pub fn resident_bytes() -> io::Result<u64> {
    resident_in(&std::fs::read_to_string("/proc/self/status")?)
}

/// `VmRSS` of a `/proc` status file.
fn resident_in(status: &str) -> io::Result<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_booked_once_it_was_waited_for() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let usage = of_children();
        assert!(usage.cpu() > Duration::ZERO && usage.resident_bytes_max > 100_000);
    }

    #[test]
    fn a_thread_that_waits_says_in_which_call() {
        let (send, receive) = std::sync::mpsc::channel::<()>();
        let (name, named) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            name.send(this_thread()).unwrap();
            receive.recv()
        });
        let id = named.recv().unwrap();
        // It is on its way there.
        let standing = loop {
            let standing = standing_of(id);
            if standing.state == Some('S') {
                break standing;
            }
            std::thread::yield_now();
        };
        // A container may hide the call.
        let call = standing.call.as_deref();
        assert!(matches!(call, None | Some("futex")), "{standing:?}");
        drop(send);
        assert!(thread.join().unwrap().is_err());
        assert_eq!(standing_of(i32::MAX), Standing::default());
    }

    #[test]
    fn files_of_a_thread_are_read() {
        assert_eq!(state_in("7 (a) b) D 1 7 7"), Some('D'));
        assert_eq!(state_in(""), None);
        assert_eq!(call_in("running\n"), None);
        assert_eq!(call_in("-1 0x7ffc 0x7f\n"), None);
        let line = format!("{} 0x3 0x0", libc::SYS_fsync);
        assert_eq!(call_in(&line).as_deref(), Some("fsync"));
        assert_eq!(call_in("9999 0x0").as_deref(), Some("system call 9999"));
    }

    #[test]
    fn work_is_booked() {
        let before = (thread_cpu(), process_cpu());
        std::hint::black_box((0..1_000_000_u64).fold(0, |sum, n| sum ^ n.wrapping_mul(sum | 1)));
        assert!(thread_cpu() > before.0 && process_cpu() > before.1);
        assert!(cpu_of(this_thread()).unwrap() > before.0);
        assert!(cpu_of(i32::MAX).is_err());
        let usage = of_this_process();
        assert!(usage.cpu() > Duration::ZERO);
        assert!(resident_bytes().unwrap() > 100_000);
        assert!(usage.resident_bytes_max > 100_000);
    }
}
