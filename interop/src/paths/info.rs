//! Samples of the kernel's `tcp_info` for each TCP connection of a namespace, by netlink (`sock_diag(7)`).

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// `SOCK_DIAG_BY_FAMILY`, and the flags `NLM_F_REQUEST | NLM_F_DUMP`.
const BY_FAMILY: u16 = 20;
const REQUEST_DUMP: u16 = 0x301;

/// `NLMSG_DONE`, and the attribute `INET_DIAG_INFO`.
const DONE: u16 = 3;
const INFO: u16 = 2;

/// States with data in flight: all but LISTEN, CLOSE, TIME_WAIT and the SYN states.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

/// Bytes of a netlink header, and of `struct inet_diag_msg` behind it.
const HEADER: usize = 16;
const MESSAGE: usize = 72;

/// Time between samples.
const EVERY: Duration = Duration::from_millis(20);

/// Samples of a run, at most.
const SAMPLES_MAX: u32 = 20_000;

/// Logs a line for each connection and sample until the file `stop` exists: see `line`.
///
/// # Errors
/// Netlink is refused, or the log cannot be written.
pub(crate) fn watch(log: &str, stop: &str) -> Result<()> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )
    .context("sock_diag")?;
    let mut out = String::new();
    for _ in 0..SAMPLES_MAX {
        let over = std::path::Path::new(stop).exists();
        sample(&socket, &mut out)?;
        if over {
            break;
        }
        std::thread::sleep(EVERY);
    }
    Ok(std::fs::write(log, out)?)
}

fn sample(socket: &OwnedFd, out: &mut String) -> Result<()> {
    let mut request = vec![0; HEADER + 56];
    request[..4].copy_from_slice(&u32::try_from(HEADER + 56)?.to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    // The family (AF_INET), the protocol (TCP), the wanted attribute and states.
    (request[HEADER], request[HEADER + 1], request[HEADER + 2]) = (2, 6, 1 << (INFO - 1));
    request[HEADER + 4..HEADER + 8].copy_from_slice(&STATES.to_ne_bytes());
    rustix::net::send(socket, &request, SendFlags::empty())?;
    let time = clock_gettime(ClockId::Monotonic);
    let at_us = time.tv_sec * 1_000_000 + time.tv_nsec / 1_000;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..length];
        while let Some((kind, content, after)) = message(rest) {
            if kind == DONE {
                return Ok(());
            }
            line(at_us, content, out)?;
            rest = after;
        }
        if length == 0 {
            return Ok(());
        }
    }
}

/// The first netlink message: its type and content, and what follows it.
fn message(octets: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(octets, 0)?).ok()?;
    let kind = u16::from_ne_bytes([*octets.get(4)?, *octets.get(5)?]);
    let content = octets.get(HEADER..length)?;
    let after = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, content, after))
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    let octets = octets.get(at..at + 4)?;
    Some(u32::from_ne_bytes(octets.try_into().ok()?))
}

fn long(octets: &[u8], at: usize) -> u64 {
    let octets = octets
        .get(at..at + 8)
        .and_then(|octets| octets.try_into().ok());
    octets.map_or(0, u64::from_ne_bytes)
}

/// `TIME PORT PEER busy_time rwnd_limited sndbuf_limited unacked cwnd rtt total_retrans lost notsent reordering
/// dsack_dups reord_seen`: microseconds, ports, and the fields of `struct tcp_info` in `linux/tcp.h`.
fn line(at_us: i64, content: &[u8], out: &mut String) -> Result<()> {
    let port = |at: usize| {
        Some(u16::from_be_bytes([
            *content.get(at)?,
            *content.get(at + 1)?,
        ]))
    };
    let (Some(own), Some(peer)) = (port(4), port(6)) else {
        return Ok(());
    };
    let mut rest = content.get(MESSAGE..).unwrap_or_default();
    while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
        let length = usize::from(length);
        let value = rest.get(4..length).unwrap_or_default();
        if kind == INFO {
            write!(out, "{at_us} {own} {peer}")?;
            for at in [168, 176, 184] {
                write!(out, " {}", long(value, at))?;
            }
            for at in [24, 80, 68, 100, 32, 144, 88, 216, 220] {
                write!(out, " {}", word(value, at).unwrap_or(0))?;
            }
            out.push('\n');
        }
        rest = rest
            .get(length.max(4).next_multiple_of(4)..)
            .unwrap_or_default();
    }
    Ok(())
}

fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}
