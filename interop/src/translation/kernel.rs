//! Linux's conntrack, in a guest: this program has a raw socket and a listener in the namespace of each side.

use super::{Line, Schedule, Side, Translator, run};
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use rustix::time::{ClockId, clock_gettime};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// `IPPROTO_RAW`: the packet includes its IP header.
const RAW: u32 = 255;

/// `ETH_P_IP` in network order: IPv4 packets that arrive.
const IPV4: u32 = 0x0008;

/// How long a packet may take through the guest's kernel, in nanoseconds of its clock.
const PASSES_NS: u64 = 10_000_000;

/// A side's namespace: a socket that sends, and one that receives every IPv4 packet.
struct Host {
    side: Side,
    sender: OwnedFd,
    listener: OwnedFd,
}

struct Kernel {
    hosts: [Host; 2],
    start_ns: u64,
}

/// Runs a schedule through the kernel of this machine, which a guest's script has prepared, and writes the lines to a
/// file.
///
/// # Errors
/// A schedule or namespace that is not there, a refused socket, or see [`run::run`].
pub(crate) fn play(name: &str, file: &str) -> Result<()> {
    let schedule = Schedule::of(name).with_context(|| format!("no schedule is {name}"))?;
    let hosts = [
        Host::new(Side::Inside, "/run/netns/inside")?,
        Host::new(Side::Outside, "/run/netns/outside")?,
    ];
    let mut kernel = Kernel {
        hosts,
        start_ns: now_ns() + 100_000_000,
    };
    let lines = run::run(schedule, &mut kernel)?;
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{}\t{}\t{}", line.step, line.difference, line.outcome)?;
    }
    Ok(std::fs::write(file, text)?)
}

/// Reads what [`play`] has written.
///
/// # Errors
/// A line without three parts.
pub(super) fn read(text: &str) -> Result<Vec<Line>> {
    let line = |line: &str| {
        let mut parts = line.split('\t').map(str::to_owned);
        let mut part = || {
            parts
                .next()
                .with_context(|| format!("'{line}' has no three parts"))
        };
        Ok(Line {
            step: part()?,
            difference: part()?,
            outcome: part()?,
        })
    };
    text.lines().map(line).collect()
}

fn now_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

impl Host {
    fn new(side: Side, namespace: &str) -> Result<Self> {
        let file = std::fs::File::open(namespace).context(namespace.to_owned())?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        let open = |family, kind, protocol| {
            let protocol = NonZeroU32::new(protocol).map(Protocol::from_raw);
            rustix::net::socket(family, kind, protocol)
        };
        Ok(Self {
            side,
            sender: open(AddressFamily::INET, SocketType::RAW, RAW)?,
            listener: open(AddressFamily::PACKET, SocketType::DGRAM, IPV4)?,
        })
    }

    /// The packets that have arrived.
    fn take(&self, out: &mut Vec<(Side, Vec<u8>)>) {
        let mut buffer = [0; 4_096];
        while let Ok((length, _)) =
            rustix::net::recv(&self.listener, &mut buffer[..], RecvFlags::DONTWAIT)
        {
            out.push((self.side, buffer[..length].to_vec()));
        }
    }
}

impl Translator for Kernel {
    fn pass(&mut self, at_us: u64, from: Side, packet: &[u8]) -> Result<Vec<(Side, Vec<u8>)>> {
        let early = (self.start_ns + at_us * 1_000).saturating_sub(now_ns());
        std::thread::sleep(Duration::from_nanos(early));
        let to: [u8; 4] = packet[16..20].try_into()?;
        let host = &self.hosts[usize::from(from == Side::Outside)];
        rustix::net::sendto(
            &host.sender,
            packet,
            SendFlags::empty(),
            &SocketAddrV4::new(Ipv4Addr::from(to), 0),
        )?;
        let until = now_ns() + PASSES_NS;
        let mut out = Vec::new();
        loop {
            let left = until.saturating_sub(now_ns());
            if left == 0 {
                return Ok(out);
            }
            let mut listeners = self
                .hosts
                .each_ref()
                .map(|host| PollFd::new(&host.listener, PollFlags::IN));
            let wait = Timespec {
                tv_sec: 0,
                tv_nsec: left as i64,
            };
            poll(&mut listeners, Some(&wait))?;
            for host in &self.hosts {
                host.take(&mut out);
            }
        }
    }
}

/// Connections of an inside host.
const OF_A_HOST: u32 = 250;

/// Sends a UDP datagram of 40 bytes from a side, of each of `sample` connections among `count`, and returns the
/// instructions of each: the guest's clock has two nanoseconds for one. conntrack keeps the ports, which are free, so the
/// answers need not be looked at.
///
/// # Errors
/// An unknown side, or a refused socket.
pub(crate) fn flood(side: &str, count: &str, sample: &str) -> Result<f64> {
    let (count, sample): (u32, u32) = (count.parse()?, sample.parse()?);
    let (side, namespace) = match side {
        "inside" => (Side::Inside, "/run/netns/inside"),
        "outside" => (Side::Outside, "/run/netns/outside"),
        other => anyhow::bail!("'{other}' is no side"),
    };
    let host = Host::new(side, namespace)?;
    let packets: Vec<_> = (0..count)
        .step_by((count / sample) as usize)
        .map(|number| {
            let near = super::End {
                address: (0x6440_0001 + number / OF_A_HOST).to_be_bytes(),
                port: 1_024 + (number % 60_000) as u16,
            };
            let far = super::outside(1 + (number / 60_000) as u8, 53);
            let external = super::End {
                address: super::EXTERNAL,
                port: near.port,
            };
            let (from, to) = match side {
                Side::Inside => (near, far),
                Side::Outside => (far, external),
            };
            let to_socket = SocketAddrV4::new(Ipv4Addr::from(to.address), 0);
            (to_socket, super::packet::udp(from, to, 7, 12, true))
        })
        .collect();
    let start_ns = now_ns();
    for (to, packet) in &packets {
        rustix::net::sendto(&host.sender, packet, SendFlags::empty(), to)?;
    }
    let spent_ns = now_ns() - start_ns;
    Ok(spent_ns as f64 / 2.0 / packets.len() as f64)
}
