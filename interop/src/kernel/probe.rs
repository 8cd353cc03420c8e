//! The two ends of an experiment inside a guest: one sends packets on a schedule, one records arrivals.

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketType};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// `IPPROTO_RAW`: the packet includes its IP header.
const RAW: u32 = 255;

/// `ETH_P_ALL` in network order: every frame.
const ALL: u32 = 0x0300;

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Sends the packets in `schedule`, each line a time in microseconds and a packet's bytes, and logs the send
/// times.
///
/// # Errors
/// A file that cannot be read or written, or a refused socket.
pub(crate) fn send(schedule: &str, log: &str) -> Result<()> {
    let text = std::fs::read_to_string(schedule).context("schedule")?;
    let packets: Vec<(u64, Vec<u8>)> = text
        .lines()
        .enumerate()
        .map(|(number, line)| parse(number, line))
        .collect::<Result<_>>()?;
    let open = |family| {
        rustix::net::socket(
            family,
            SocketType::RAW,
            NonZeroU32::new(RAW).map(Protocol::from_raw),
        )
    };
    let (four, six) = (open(AddressFamily::INET)?, open(AddressFamily::INET6)?);
    let mut out = String::new();
    let start = now_ns() + 10_000_000;
    for (number, (at_us, packet)) in packets.iter().enumerate() {
        let due = start + at_us * 1_000;
        let early = due.saturating_sub(now_ns());
        if early > 0 {
            std::thread::sleep(Duration::from_nanos(early));
        }
        writeln!(out, "{number} {}", now_ns())?;
        send_one(&four, &six, packet).with_context(|| format!("packet {number}"))?;
    }
    Ok(std::fs::write(log, out)?)
}

fn send_one(four: &OwnedFd, six: &OwnedFd, packet: &[u8]) -> Result<()> {
    let sent = if packet[0] >> 4 == 4 {
        let to: [u8; 4] = packet[16..20].try_into()?;
        rustix::net::sendto(
            four,
            packet,
            SendFlags::empty(),
            &SocketAddrV4::new(Ipv4Addr::from(to), 0),
        )
    } else {
        let to: [u8; 16] = packet[24..40].try_into()?;
        rustix::net::sendto(
            six,
            packet,
            SendFlags::empty(),
            &SocketAddrV6::new(Ipv6Addr::from(to), 0, 0, 0),
        )
    };
    match sent {
        // A full queue reports an error here; the packet counts as not arrived.
        Ok(_) | Err(rustix::io::Errno::NOBUFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn parse(number: usize, line: &str) -> Result<(u64, Vec<u8>)> {
    let mut words = line.split(' ');
    let mut word = || words.next().context("a time, a length and octets");
    let (at, length, octets) = (word()?, word()?, word()?);
    let mut packet = vec![0; length.parse()?];
    for (index, octet) in packet.iter_mut().enumerate().take(octets.len() / 2) {
        *octet = u8::from_str_radix(&octets[2 * index..2 * index + 2], 16)?;
    }
    let end = packet.len() - 4;
    packet[end..].copy_from_slice(&u32::try_from(number)?.to_be_bytes());
    Ok((at.parse()?, packet))
}

/// Longest wait for the first packet, in nanoseconds.
const FIRST_MAX_NS: u64 = 60_000_000_000;

/// Logs each IP packet that arrives within `seconds` of the first: its number, time and traffic class.
///
/// # Errors
/// A refused socket, or a log that cannot be written.
pub(crate) fn listen(log: &str, seconds: &str) -> Result<()> {
    let span_ns = seconds.parse::<u64>()? * 1_000_000_000;
    let mut until = now_ns() + FIRST_MAX_NS;
    let socket = rustix::net::socket(
        AddressFamily::PACKET,
        SocketType::DGRAM,
        NonZeroU32::new(ALL).map(Protocol::from_raw),
    )?;
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 8 << 20)?;
    rustix::net::sockopt::set_socket_timeout(
        &socket,
        rustix::net::sockopt::Timeout::Recv,
        Some(Duration::from_millis(100)),
    )?;
    let mut buffer = vec![0; 1 << 16];
    let mut out = String::new();
    while now_ns() < until {
        let Ok((length, _)) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())
        else {
            continue;
        };
        let time = now_ns();
        let packet = &buffer[..length];
        let Some(traffic_class) = traffic_class(packet) else {
            continue;
        };
        if out.is_empty() {
            until = time + span_ns;
        }
        let number = u32::from_be_bytes([
            packet[length - 4],
            packet[length - 3],
            packet[length - 2],
            packet[length - 1],
        ]);
        writeln!(out, "{number} {time} {traffic_class}")?;
    }
    Ok(std::fs::write(log, out)?)
}

fn traffic_class(packet: &[u8]) -> Option<u8> {
    let ours = packet.len() >= 24 && !is_chatter(packet);
    match packet.first()? >> 4 {
        4 if ours => Some(packet[1]),
        6 if ours => Some(packet[0] << 4 | packet[1] >> 4),
        _ => None,
    }
}

/// Neighbour discovery and group membership, which a kernel sends by itself.
fn is_chatter(packet: &[u8]) -> bool {
    match packet[0] >> 4 {
        4 => packet[16] >= 224,
        6 => packet.len() < 40 || packet[24] == 0xff,
        _ => true,
    }
}
