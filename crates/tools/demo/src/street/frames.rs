//! Ethernet's header of the hosts' frames. The last two bytes of a host's MAC address are the number of its line.

use pppoe::Route;
use reactor::ether::{EtherSend, EtherSocket};
use wire::pppoe::{Code, ETHER_TYPE_SESSION, Mac};

/// The first bytes of the hosts' MAC addresses.
const HOST: [u8; 4] = [0x02, 0x00, 0x5e, 0x10];

/// Length of Ethernet's header.
const HEADER: usize = 14;

/// The MAC address of the host of a line.
fn host(line: u16) -> Mac {
    let ([a, b, c, d], [e, f]) = (HOST, line.to_be_bytes());
    Mac([a, b, c, d, e, f])
}

/// The line, the sender and the PPPoE packet of a frame; `None` if it is for no line.
pub(super) fn open(frame: &[u8]) -> Option<(u16, Mac, &[u8])> {
    let (head, packet) = frame.split_first_chunk::<HEADER>()?;
    let [a, b, c, d, e, f, from @ ..] = *head;
    let from = Mac(*from.first_chunk()?);
    ([a, b, c, d] == HOST).then_some((u16::from_be_bytes([e, f]), from, packet))
}

/// Starts a frame of the host of `route`.
fn begin(out: &mut Vec<u8>, route: &Route, ether_type: u16) {
    out.extend_from_slice(&route.peer.0);
    out.extend_from_slice(&host(route.port).0);
    out.extend_from_slice(&ether_type.to_be_bytes());
}

/// The frames that wait to be sent, and the socket that sends them.
pub(super) struct Outbound {
    pub(super) socket: EtherSocket,
    waiting: EtherSend,
}

impl Outbound {
    pub(super) fn new(socket: EtherSocket, limit: usize) -> Self {
        let waiting = EtherSend::new(limit);
        Self { socket, waiting }
    }

    /// Queues a whole PPPoE packet, or drops it if there is no room.
    pub(super) fn push(&mut self, route: &Route, packet: &[u8]) {
        if self.waiting.is_full() {
            return;
        }
        let code = Code(packet.get(1).copied().unwrap_or(0));
        let out = self.waiting.begin();
        begin(out, route, code.ether_type());
        out.extend_from_slice(packet);
        self.done();
    }

    fn done(&mut self) {
        self.waiting.commit();
        if self.waiting.is_full() {
            self.send();
        }
    }

    /// Sends what waits, as far as the wire has room.
    pub(super) fn send(&mut self) {
        self.socket.send(&mut self.waiting);
    }
}

impl edge::Outside<Route> for Outbound {
    fn begin(&mut self, route: &Route) -> Option<&mut Vec<u8>> {
        if self.waiting.is_full() {
            return None;
        }
        let out = self.waiting.begin();
        begin(out, route, ETHER_TYPE_SESSION);
        Some(out)
    }

    fn commit(&mut self, _: &Route) {
        self.done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_names_its_line_and_a_broadcast_names_none() {
        let mut frame = vec![];
        frame.extend_from_slice(&host(0x0102).0);
        frame.extend_from_slice(&[2, 0, 0, 0, 0, 9, 0x88, 0x64, 0x11, 0]);
        let (line, from, packet) = open(&frame).unwrap();
        assert_eq!((line, from), (0x0102, Mac([2, 0, 0, 0, 0, 9])));
        assert_eq!(packet, [0x11, 0]);
        assert!(open(&frame[..13]).is_none());
        frame[..6].fill(0xff);
        assert!(open(&frame).is_none());
    }
}
