//! The TUN device, through which the host exchanges packets with subscribers.

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

/// Packets read per turn, before other work.
const READS: usize = 256;

/// Octets of the largest packet, with the header before it.
const PACKET_MAX: usize = virtio::LENGTH + forward::join::PACKET_MAX;

/// The device, if there is one.
pub(super) struct Inside {
    device: Option<Device>,
    /// Packets for a device that is not there.
    pub(super) nowhere: u64,
    /// Addresses of our own clients, if they are kept on the device.
    pub(super) clients: Option<Addresses>,
}

/// A queue of the device, for another thread.
pub(super) struct Queue {
    tun: Tun,
    /// Whether UDP datagrams may be put together.
    udp: bool,
}

struct Device {
    tun: Tun,
    token: Token,
    joiner: Joiner,
    buffer: Vec<u8>,
    written: Written,
}

/// The result of packets that were written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    pub(super) read: u64,
    pub(super) calls: u64,
    pub(super) refused: u64,
}

impl Inside {
    /// Makes the device, gives it addresses and routes, and has its first queue watched. The other queues, one for each
    /// further path, come with it.
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

    /// A queue of the device, watched.
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

    /// Without a device.
    pub(super) fn nowhere() -> Self {
        Self {
            device: None,
            nowhere: 0,
            clients: None,
        }
    }

    /// What was read and written.
    pub(super) fn written(&self) -> Written {
        let device = self.device.as_ref();
        device.map_or_else(Written::default, |device| device.written)
    }

    /// Reports the result of each packet to the inside.
    pub(super) fn tell(&mut self, edge: &mut Edge) {
        while let Some(packet) = edge.poll_inside() {
            edge::Inside::packet(self, &packet);
        }
    }

    /// Writes packets that were held for joining.
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

    /// Reads packets that are there, up to a turn's share; each goes to `take`. Returns how many.
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
    /// With another's.
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
    // The kernel refuses when the device is down, or its queue is full.
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

/// ICMP errors of ours come in by the device from an address that is the host's own, which a kernel takes only where it
/// is told to.
fn take_errors(name: &str) {
    let key = format!("/proc/sys/net/ipv4/conf/{name}/accept_local");
    if let Err(error) = std::fs::write(&key, "1") {
        tracing::warn!(%key, %error, "senders will not be told of packets that are too large");
    }
}
