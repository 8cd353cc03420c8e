//! The inside: the TUN device that packets of subscribers come out of, and go in by.

use std::io;

use anyhow::{Context, Result};
use forward::join::{Joiner, Options};
use reactor::netlink::Netlink;
use reactor::tun::{Tun, TunOptions};
use reactor::{Interest, Reactor, Token};
use wire::virtio;

use super::addresses::Addresses;
use super::source::Source;
use crate::config;

/// Packets read in a turn, before others have theirs.
const READS: usize = 256;

/// Octets of the largest packet, with the header before it.
const PACKET_MAX: usize = virtio::LENGTH + forward::join::PACKET_MAX;

/// The device, if there is one.
pub(super) struct Inside {
    device: Option<Device>,
    /// Packets for a device that is not there.
    pub(super) nowhere: u64,
    /// Those of our own clients, where they are kept on the device.
    pub(super) clients: Option<Addresses>,
}

struct Device {
    tun: Tun,
    token: Token,
    joiner: Joiner,
    buffer: Vec<u8>,
    written: Written,
}

/// What became of packets that were written.
#[derive(Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) read: u64,
    pub(super) calls: u64,
    pub(super) refused: u64,
}

impl Inside {
    /// Makes the device, gives it addresses and routes, and has it watched.
    pub(super) fn open(settings: &config::Subscribers, reactor: &mut Reactor) -> Result<Self> {
        let Some(wanted) = &settings.tun else {
            return Ok(Self {
                device: None,
                nowhere: 0,
                clients: None,
            });
        };
        let options = TunOptions {
            offloads: true,
            queues: 1,
        };
        let mut queues = Tun::open_queues(&wanted.name, &options)?;
        let tun = queues.remove(0);
        set_up(&tun, wanted, settings)
            .with_context(|| format!("cannot set up the device {}", tun.name()))?;
        let clients = settings.client.as_ref().filter(|client| client.addresses);
        let clients = clients.map(|_| Addresses::open(tun.name())).transpose()?;
        let source = Source::Tun(0).to_bits();
        let token = reactor.add(&tun, "tun", source, Interest::READ)?;
        let joiner = Joiner::new(Options {
            udp: tun.offloads().udp && wanted.offloads,
            ..Options::default()
        });
        tracing::info!(device = tun.name(), offloads = %tun.offloads(), "inside");
        Ok(Self {
            device: Some(Device {
                tun,
                token,
                joiner,
                buffer: vec![0; PACKET_MAX],
                written: Written::default(),
            }),
            nowhere: 0,
            clients,
        })
    }

    /// What was read and written.
    pub(super) fn written(&self) -> Written {
        let device = self.device.as_ref();
        device.map_or_else(Written::default, |device| device.written)
    }

    /// Writes what was held to be joined with more.
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
