//! The inside: the TUN device that connects the subscribers with the host's network. Without a
//! device, the daemon counts and drops subscribers' packets.

use std::io;

use anyhow::{Context, Result};
use edge::Edge;
use forward::join::{Joiner, Options};
use reactor::netlink::Netlink;
use reactor::tun::{Tun, TunOptions};
use reactor::{Interest, Reactor, Token};
use wire::virtio;

use super::addresses::Addresses;
use super::source::Source;
use crate::config;

/// Packets read in a turn before other sources get theirs.
const READS: usize = 256;

/// Size in bytes of the largest packet, with the header in front of it.
const PACKET_MAX: usize = virtio::LENGTH + forward::join::PACKET_MAX;

/// The device, if there is one.
pub(super) struct Inside {
    device: Option<Device>,
    /// Packets that were dropped because there is no device.
    pub(super) nowhere: u64,
    /// Addresses of our own clients, if they are set on the device.
    pub(super) clients: Option<Addresses>,
}

/// A queue of the device, for another thread.
pub(super) struct Queue {
    tun: Tun,
    /// Whether UDP datagrams may be joined into one larger packet (GSO).
    udp: bool,
}

struct Device {
    tun: Tun,
    token: Token,
    joiner: Joiner,
    buffer: Vec<u8>,
    written: Written,
}

/// Counters of written packets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) read: u64,
    pub(super) calls: u64,
    pub(super) refused: u64,
}

impl Inside {
    /// Creates the device, sets its addresses and routes, and watches its first queue. Returns the
    /// other queues too, one for each further data path.
    pub(super) fn open(
        settings: &config::Subscribers,
        reactor: &mut Reactor,
    ) -> Result<(Self, Vec<Queue>)> {
        let Some(wanted) = &settings.tun else {
            return Ok((Self::nowhere(), Vec::new()));
        };
        let options = TunOptions {
            offloads: true,
            queues: usize::from(settings.edge.paths),
        };
        let mut queues = Tun::open_queues(&wanted.name, &options)?;
        let tun = queues.remove(0);
        set_up(&tun, wanted, settings)
            .with_context(|| format!("cannot set up the device {}", tun.name()))?;
        let clients = settings.client.as_ref().filter(|client| client.addresses);
        let clients = clients.map(|client| Addresses::open(tun.name(), client.default_route));
        let clients = clients.transpose()?;
        let udp = tun.offloads().udp && wanted.offloads;
        tracing::info!(
            device = tun.name(),
            offloads = %tun.offloads(),
            queues = queues.len() + 1,
            "inside"
        );
        let queues = queues.into_iter().map(|tun| Queue { tun, udp }).collect();
        let mut inside = Self::of_queue(Queue { tun, udp }, reactor)?;
        inside.clients = clients;
        Ok((inside, queues))
    }

    /// Wraps a queue of the device and watches it.
    pub(super) fn of_queue(queue: Queue, reactor: &mut Reactor) -> Result<Self> {
        let Queue { tun, udp } = queue;
        let token = reactor.add(&tun, "tun", Source::Tun(0).to_bits(), Interest::READ)?;
        let joiner = Joiner::new(Options {
            udp,
            ..Options::default()
        });
        Ok(Self {
            device: Some(Device {
                tun,
                token,
                joiner,
                buffer: vec![0; PACKET_MAX],
                written: Written::default(),
            }),
            ..Self::nowhere()
        })
    }

    /// An inside without a device.
    pub(super) fn nowhere() -> Self {
        Self {
            device: None,
            nowhere: 0,
            clients: None,
        }
    }

    /// Counters of packets read and written.
    pub(super) fn written(&self) -> Written {
        let device = self.device.as_ref();
        device.map_or_else(Written::default, |device| device.written)
    }

    /// Writes the edge's ICMP errors for the inside to the device.
    pub(super) fn tell(&mut self, edge: &mut Edge) {
        while let Some(packet) = edge.poll_inside() {
            edge::Inside::packet(self, &packet);
        }
    }

    /// Writes packets that were held to be joined with later ones.
    pub(super) fn flush(&mut self) -> bool {
        let Some(device) = &mut self.device else {
            return false;
        };
        let before = device.written.calls;
        let Device {
            tun,
            joiner,
            written,
            ..
        } = device;
        joiner.flush(&mut |octets| write(tun, octets, written));
        device.written.calls > before
    }

    /// Reads pending packets, up to one turn's share, and passes each to `take`. Returns how many.
    pub(super) fn read(
        &mut self,
        reactor: &mut Reactor,
        mut take: impl FnMut(&mut [u8], &mut Reactor),
    ) -> io::Result<u64> {
        let Some(device) = &mut self.device else {
            return Ok(0);
        };
        let mut count = 0;
        for _ in 0..READS {
            match device.tun.receive(&mut device.buffer)? {
                Some(length) => take(&mut device.buffer[..length], reactor),
                None => {
                    reactor.drained(device.token);
                    break;
                }
            }
            count += 1;
        }
        device.written.read += count;
        Ok(count)
    }
}

impl Written {
    /// The sum of two sets of counters.
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            calls: self.calls + other.calls,
            refused: self.refused + other.refused,
        }
    }
}

impl edge::Inside for Inside {
    #[inline]
    fn packet(&mut self, packet: &[u8]) {
        let Some(device) = &mut self.device else {
            self.nowhere += 1;
            return;
        };
        let Device {
            tun,
            joiner,
            written,
            ..
        } = device;
        joiner.push(packet, &mut |octets| write(tun, octets, written));
    }
}

fn write(tun: &Tun, octets: &[u8], written: &mut Written) {
    written.calls += 1;
    // The kernel refuses a packet when the device is down or its queue is full.
    written.refused += u64::from(tun.send(octets).is_err());
}

fn set_up(tun: &Tun, wanted: &config::Tun, settings: &config::Subscribers) -> Result<()> {
    let mut netlink = Netlink::open()?;
    let name = tun.name();
    netlink.set_mtu(name, u32::from(wanted.mtu))?;
    if settings.edge.terminate {
        take_errors(name);
    }
    netlink.set_up(name, true)?;
    if settings.edge.terminate {
        netlink.add_address(name, settings.edge.address.into(), 32)?;
        if !settings.edge.address_v6.is_unspecified() {
            netlink.add_address(name, settings.edge.address_v6.into(), 128)?;
        }
    }
    let pools = settings.pools.iter().flat_map(|pool| &pool.ranges);
    let pools = pools.flat_map(|range| range.networks());
    for network in pools.chain(wanted.routes.iter().copied()) {
        netlink
            .add_route(network.address(), network.length(), None, name)
            .with_context(|| format!("route to {network}"))?;
    }
    Ok(())
}

/// Lets the kernel accept ICMP errors from us. They arrive through the device with one of the
/// host's own addresses as source, which the kernel rejects by default.
fn take_errors(name: &str) {
    let key = format!("/proc/sys/net/ipv4/conf/{name}/accept_local");
    if let Err(error) = std::fs::write(&key, "1") {
        tracing::warn!(%key, %error, "senders will get no ICMP error for packets that are too large");
    }
}
