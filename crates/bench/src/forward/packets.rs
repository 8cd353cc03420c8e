//! The packets that are measured, and their sender.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base::Duration;
use reactor::{SendBatch, UdpSocket, clock};
use wire::checksum;

/// Bytes of a packet, from its IP header on.
pub(crate) const LENGTH: usize = 100;

/// Bytes of its IPv4 and UDP headers.
pub(super) const HEADERS: usize = 28;

/// Packets sent together.
const BURST: u64 = 64;

/// An IPv4 UDP datagram of [`LENGTH`] bytes, with its checksums.
pub(crate) fn udp(source: Ipv4Addr, destination: Ipv4Addr, ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, LENGTH as u8, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let sum = !checksum::sum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    packet.extend([0, (LENGTH - 20) as u8, 0, 0]);
    packet.resize(LENGTH, 0x5a);
    let pseudo = checksum::pseudo_sum(&packet[12..20], 17, LENGTH - 20);
    let content = checksum::sum(&packet[20..]);
    let sum = !checksum::fold(u64::from(pseudo) + u64::from(content));
    packet[26..28].copy_from_slice(&sum.to_be_bytes());
    packet
}

/// A datagram that is sent repeatedly.
pub(super) struct Shot {
    pub(super) octets: Vec<u8>,
    pub(super) peer: SocketAddr,
    pub(super) local: Option<IpAddr>,
}

/// Sends datagrams in turn.
pub(super) struct Sender {
    socket: UdpSocket,
    batch: SendBatch,
    shots: Vec<Shot>,
    next: usize,
}

/// What was sent, and how long that took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) seconds: f64,
}

impl Sender {
    /// A sender of these datagrams over that socket.
    pub(super) fn new(socket: UdpSocket, shots: Vec<Shot>) -> Self {
        Self {
            socket,
            batch: SendBatch::new(BURST as usize),
            shots,
            next: 0,
        }
    }

    /// Sends `rate` packets a second, [`BURST`] at a time, for `span`, without pauses.
    pub(super) fn send(&mut self, rate: u64, span: Duration) -> Sent {
        let start = clock::now();
        let mut sent = 0;
        loop {
            let elapsed = clock::now().since(start);
            if elapsed >= span {
                return Sent {
                    packets: sent,
                    seconds: elapsed.as_secs_f64(),
                };
            }
            let due = (elapsed.as_secs_f64() * rate as f64) as u64;
            if sent + BURST > due {
                std::hint::spin_loop();
                continue;
            }
            for _ in 0..BURST {
                let shot = &self.shots[self.next];
                self.next = (self.next + 1) % self.shots.len();
                self.batch.push(&shot.octets, shot.peer, shot.local);
            }
            sent += self.socket.send(&mut self.batch).sent as u64;
            // Datagrams that the kernel did not take are dropped.
            self.batch.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_s_checksums_are_right() {
        let packet = udp(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(192, 0, 2, 1),
            (4_000, 9),
        );
        assert_eq!(packet.len(), LENGTH);
        assert_eq!(checksum::ip_ok(&packet), Some(true));
        let pseudo = checksum::pseudo_sum(&packet[12..20], 17, LENGTH - 20);
        let all = u64::from(pseudo) + u64::from(checksum::sum(&packet[20..]));
        assert_eq!(checksum::fold(all), 0xffff);
    }
}
