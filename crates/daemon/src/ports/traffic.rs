//! Reads and writes the frames of ports.

use edge::access::Either::Second;
use pppoe::Route;
use reactor::{Interest, Reactor};
use wire::pppoe::Code;

use super::{Port, Ports, ethernet};
use crate::served;

impl Ports {
    /// Reads a batch of frames of a port. Returns whether more may be waiting.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub(crate) fn receive(&mut self, number: u32) -> std::io::Result<bool> {
        let Some(port) = self.ports.get_mut(number as usize) else {
            return Ok(false);
        };
        if !port.is_bound {
            return Ok(false);
        }
        let received = port.socket.receive(&mut self.received);
        received.map_err(std::io::Error::other)?;
        Ok(self.received.is_full())
    }

    /// The packets of the batch that was read last, unchecked, with their routes.
    pub(crate) fn ahead(&self, number: u32) -> impl Iterator<Item = (served::Route, &[u8])> {
        let opened = self
            .received
            .iter()
            .filter_map(|frame| ethernet::open(&frame));
        opened.map(move |opened| {
            let route = Route {
                port: number as u16,
                peer: opened.source,
                vlans: opened.vlans,
            };
            (Second(route), opened.packet)
        })
    }

    /// Passes each PPPoE packet of the batch that was read last to `take`, with its route.
    pub(crate) fn each<'a>(
        &'a mut self,
        number: u32,
        mut take: impl FnMut(Route, &'a [u8]),
    ) -> u64 {
        let Self {
            ports, received, ..
        } = self;
        let Some(port) = ports.get_mut(number as usize) else {
            return 0;
        };
        let mut count = 0;
        for frame in received.iter() {
            count += 1;
            let Some(opened) = ethernet::open(&frame) else {
                port.counts.malformed += 1;
                continue;
            };
            if opened.source.0 == port.socket.mac() {
                if port.counts.own_mac == 0 {
                    tracing::warn!(
                        interface = port.socket.name(),
                        mac = %opened.source,
                        "a PPPoE frame came from the interface's own MAC address and is dropped: another station has this address, or the network has a loop"
                    );
                }
                port.counts.own_mac += 1;
                continue;
            }
            let code = Code(opened.packet[1]);
            // A host looks for access concentrators by broadcast; all else has one destination.
            if opened.is_group != (code == Code::PADI) {
                port.counts.malformed += 1;
                continue;
            }
            if code != Code::DATA && !port.vlans.iter().any(|range| range.contains(opened.vlans)) {
                port.counts.other_vlan += 1;
                continue;
            }
            if opened.packet.len() > port.socket.mtu() as usize {
                if port.counts.oversized == 0 {
                    tracing::warn!(
                        interface = port.socket.name(),
                        bytes = opened.packet.len(),
                        "a PPPoE packet is longer than the interface's MTU and is dropped: the kernel joins packets; turn that off by `ethtool -K` with the interface's name and `gro off`"
                    );
                }
                port.counts.oversized += 1;
                continue;
            }
            if let Some(outer) = opened.outer {
                port.outer_tag = outer;
            }
            let route = Route {
                port: number as u16,
                peer: opened.source,
                vlans: opened.vlans,
            };
            take(route, opened.packet);
        }
        count
    }

    /// Whether a send buffer is full, so that no more frames should be composed.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked > 0
    }

    /// Starts a frame. The caller appends a PPPoE packet. `None` if there is no room.
    #[inline]
    pub(crate) fn begin(&mut self, route: &Route, reactor: &mut Reactor) -> Option<&mut Vec<u8>> {
        let number = usize::from(route.port);
        let full = self.ports.get(number)?.out.is_full();
        if full {
            self.flush_port(number, reactor);
        }
        let port = &mut self.ports[number];
        if port.out.is_full() || !port.is_bound {
            port.counts.dropped += 1;
            return None;
        }
        let (own, outer) = (port.socket.mac(), port.outer_tag);
        let out = port.out.begin();
        ethernet::append(out, own, route.peer, route.vlans, outer);
        Some(out)
    }

    /// Finishes the frame that was started.
    #[inline]
    pub(crate) fn commit(&mut self, route: &Route) {
        if let Some(port) = self.ports.get_mut(usize::from(route.port)) {
            port.out.commit();
        }
    }

    /// Queues a packet of the endpoint; without room it is dropped, and counted.
    pub(crate) fn push(&mut self, route: &Route, packet: &[u8], reactor: &mut Reactor) {
        let Some(out) = self.begin(route, reactor) else {
            return;
        };
        let start = out.len();
        out.extend_from_slice(packet);
        ethernet::complete(out, start);
        self.commit(route);
    }

    /// Whether any queued frame could be sent now.
    pub(crate) fn has_queued(&self) -> bool {
        let waits = |port: &Port| !port.is_blocked && !port.out.is_empty();
        self.ports.iter().any(waits)
    }

    /// Sends queued frames on every port that is not blocked.
    pub(crate) fn flush(&mut self, reactor: &mut Reactor) {
        for number in 0..self.ports.len() {
            let port = &self.ports[number];
            if !port.out.is_empty() && !port.is_blocked {
                self.flush_port(number, reactor);
            }
        }
    }

    /// The send buffer of a port has room again.
    pub(crate) fn writable(&mut self, number: u32, reactor: &mut Reactor) {
        let port = self.ports.get(number as usize);
        if port.is_some_and(|port| port.is_blocked) {
            self.flush_port(number as usize, reactor);
        }
    }

    /// What a port is to be watched for.
    pub(crate) fn interest(&self, number: u32) -> Interest {
        let port = self.ports.get(number as usize);
        match port.is_some_and(|port| port.is_blocked) {
            true => Interest::BOTH,
            false => Interest::READ,
        }
    }

    /// The number of a port that cannot be watched any more, and why.
    pub(crate) fn take_failed(&mut self) -> Option<(u32, std::io::Error)> {
        self.failed.take()
    }

    fn flush_port(&mut self, number: usize, reactor: &mut Reactor) {
        let port = &mut self.ports[number];
        let outcome = port.socket.send(&mut port.out);
        if outcome.blocked == port.is_blocked {
            return;
        }
        port.is_blocked = outcome.blocked;
        let interest = match outcome.blocked {
            true => {
                self.blocked += 1;
                Interest::BOTH
            }
            false => {
                self.blocked -= 1;
                Interest::READ
            }
        };
        let watched = port
            .token
            .map(|token| reactor.set_interest(token, interest));
        if let Some(Err(error)) = watched {
            self.failed = Some((number as u32, error));
        }
    }
}
