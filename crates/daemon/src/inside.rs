//! The inside: the TUN device that connects the subscribers with the host's network. Without a
//! device, the daemon counts and drops subscribers' packets.

use std::io;

use crate::served::Edge;
use anyhow::Result;
use base::Instant;
use forward::join::{Joiner, Options};
use reactor::tun::Tun;
use reactor::{Interest, Reactor, Token};
use wire::virtio;

use super::addresses::Addresses;
use super::kernel::{Found, Keeper, Wanted};
use super::source::Source;
use super::uplinks::Uplinks;
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
    /// Counters of earlier devices.
    earlier: Written,
    /// Addresses of our own clients, if they are set on the device.
    pub(super) clients: Option<Addresses>,
    /// IPv6 of our own clients, if it is set on the host.
    pub(super) uplinks: Option<Uplinks>,
    /// Compares the device with what is wanted.
    pub(super) keeper: Option<Keeper>,
    /// Whether UDP datagrams may be joined, if the device can.
    joins_udp: bool,
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
        let (Some(tun), Some(mut wanted)) = (&settings.tun, Wanted::of(settings)) else {
            return Ok((Self::nowhere(), Vec::new()));
        };
        let mut queues = queues(wanted.make()?, tun.offloads);
        let mut inside = Self::of_queue(queues.remove(0), reactor)?;
        inside.joins_udp = tun.offloads;
        let clients = settings.client.as_ref().filter(|client| client.addresses);
        let with_prefix = clients.filter(|client| client.prefix);
        let uplinks = with_prefix.map(|client| {
            let lan = client.prefix_interface.clone();
            Uplinks::open(&wanted.name, client.default_route, lan)
        });
        inside.uplinks = uplinks.transpose()?;
        let clients = clients.map(|client| Addresses::open(&wanted.name, client.default_route));
        inside.clients = clients.transpose()?;
        inside.keeper = Some(Keeper::open(wanted)?);
        Ok((inside, queues))
    }

    /// Closes the device after a failure. Packets for it are dropped and counted until
    /// [`Inside::reopen`].
    pub(super) fn lose(&mut self, reactor: &mut Reactor) {
        if let Some(device) = self.device.take() {
            reactor.remove(device.token);
            self.earlier = self.earlier.with(device.written);
        }
    }

    /// Makes the device again, with its addresses and routes. Returns its other queues.
    pub(super) fn reopen(&mut self, reactor: &mut Reactor, now: Instant) -> Result<Vec<Queue>> {
        let Some(keeper) = &mut self.keeper else {
            return Ok(Vec::new());
        };
        let mut wanted = keeper.wanted.clone();
        let mut queues = queues(wanted.make()?, self.joins_udp);
        keeper.made(wanted, now)?;
        let index = keeper.index();
        self.put(queues.remove(0), reactor)?;
        if let Some(clients) = &mut self.clients {
            clients.again(index);
        }
        if let Some(uplinks) = &mut self.uplinks {
            uplinks.again(index);
        }
        Ok(queues)
    }

    /// Compares the device with what is wanted, if that is due. Returns whether it is lost although
    /// its descriptor still works: the device is in another network namespace then.
    #[must_use]
    pub(super) fn check(&mut self, now: Instant) -> bool {
        let Some(keeper) = &mut self.keeper else {
            return false;
        };
        match (keeper.check(now), &mut self.clients) {
            (Found::Gone, _) => return self.device.is_some(),
            (Found::CameBack, Some(clients)) => clients.again(keeper.index()),
            (Found::CameBack, None) | (Found::Same, _) => {}
        }
        false
    }

    /// The name of the device, if one is configured.
    pub(super) fn name(&self) -> &str {
        let keeper = self.keeper.as_ref();
        keeper.map_or("", |keeper| keeper.name())
    }

    /// Wraps a queue of the device and watches it.
    pub(super) fn of_queue(queue: Queue, reactor: &mut Reactor) -> Result<Self> {
        let mut inside = Self::nowhere();
        inside.put(queue, reactor)?;
        Ok(inside)
    }

    /// Takes a queue of the device in place of the present one, and watches it.
    pub(super) fn put(&mut self, queue: Queue, reactor: &mut Reactor) -> Result<()> {
        self.lose(reactor);
        let Queue { tun, udp } = queue;
        let token = reactor.add(&tun, "tun", Source::Tun(0).to_bits(), Interest::READ)?;
        let joiner = Joiner::new(Options {
            udp,
            ..Options::default()
        });
        self.device = Some(Device {
            tun,
            token,
            joiner,
            buffer: vec![0; PACKET_MAX],
            written: Written::default(),
        });
        Ok(())
    }

    /// An inside without a device.
    pub(super) fn nowhere() -> Self {
        Self {
            device: None,
            nowhere: 0,
            earlier: Written::default(),
            clients: None,
            uplinks: None,
            keeper: None,
            joins_udp: false,
        }
    }

    /// Counters of packets read and written.
    pub(super) fn written(&self) -> Written {
        let device = self.device.as_ref();
        let own = device.map_or_else(Written::default, |device| device.written);
        self.earlier.with(own)
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

/// The queues of a device that was just made.
fn queues(tuns: Vec<Tun>, joins_udp: bool) -> Vec<Queue> {
    let first = &tuns[0];
    let udp = first.offloads().udp && joins_udp;
    tracing::info!(
        device = first.name(),
        offloads = %first.offloads(),
        queues = tuns.len(),
        "inside"
    );
    tuns.into_iter().map(|tun| Queue { tun, udp }).collect()
}
