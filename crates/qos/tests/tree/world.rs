//! Runs a discipline in virtual time: the packets offered to it, and when each leaves.

use base::{Duration, Instant};
use qos::{Discipline, Packet, Pool};
use wire::flow::{Flow, Keys};

/// A packet that has left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) packet: Packet,
}

/// One discipline, its packets and its clock.
pub(crate) struct World<D> {
    pub(crate) pool: Pool,
    pub(crate) now: Instant,
    pub(crate) discipline: D,
    pub(crate) sent: Vec<Sent>,
    pub(crate) offered: u64,
    pub(crate) lost: u64,
}

impl<D: Discipline> World<D> {
    pub(crate) fn new(discipline: D) -> Self {
        Self {
            pool: Pool::new(100_000),
            now: Instant::ZERO,
            discipline,
            sent: Vec::new(),
            offered: 0,
            lost: 0,
        }
    }

    /// Offers a packet now; handles are consecutive.
    pub(crate) fn offer(&mut self, keys: Keys, length: u32) -> bool {
        let packet = Packet {
            handle: self.offered as u32,
            length,
            keys,
            arrived: self.now,
            marked: false,
        };
        let id = self.pool.insert(packet).expect("the pool has room");
        self.offered += 1;
        let taken = self.discipline.enqueue(&mut self.pool, id, self.now);
        self.count_lost();
        taken
    }

    fn count_lost(&mut self) {
        self.lost += self.pool.discarded().count() as u64;
    }

    /// Dequeues one packet now.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let id = self.discipline.dequeue(&mut self.pool, self.now);
        self.count_lost();
        let packet = self.pool.take(id?);
        self.sent.push(Sent {
            at: self.now,
            packet,
        });
        Some(packet)
    }

    /// Advances time to `end`, and dequeues each packet as soon as it may leave. Checks that `next_time` is right:
    /// nothing leaves before it, and something leaves at it.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let Some(next) = self.discipline.next_time(self.now) else {
                assert_eq!(self.discipline.backlog().packets, 0);
                break;
            };
            if next > end {
                break;
            }
            if next > self.now {
                let before = Instant::from_nanos(next.as_nanos() - 1);
                self.now = before.max(self.now);
                assert_eq!(self.take(), None, "nothing leaves before next_time");
                self.now = next;
            }
            assert!(self.take().is_some(), "a packet leaves at next_time");
        }
        self.now = self.now.max(end);
        self.check();
    }

    /// Lets a link of `rate_bps` dequeue packets until `end`.
    pub(crate) fn link_until(&mut self, rate_bps: u64, end: Instant) {
        while self.now < end {
            match self.take() {
                Some(packet) => self.now += time_of(packet.length, rate_bps),
                None => break,
            }
        }
        self.now = self.now.max(end);
        self.check();
    }

    /// Every packet offered has left, was dropped, or is waiting.
    pub(crate) fn check(&self) {
        let waits = u64::from(self.discipline.backlog().packets);
        assert_eq!(self.offered, self.sent.len() as u64 + self.lost + waits);
        assert_eq!(waits, u64::from(self.pool.len()));
    }

    /// Bytes sent from `start` to before `end` by packets that match `which`.
    pub(crate) fn bytes(
        &self,
        start: Instant,
        end: Instant,
        which: impl Fn(&Packet) -> bool,
    ) -> u64 {
        let among = self
            .sent
            .iter()
            .filter(|sent| (start..end).contains(&sent.at) && which(&sent.packet));
        among.map(|sent| u64::from(sent.packet.length)).sum()
    }
}

/// The transmission time of a packet on a link.
pub(crate) fn time_of(length: u32, rate_bps: u64) -> Duration {
    Duration::from_nanos((u64::from(length) * 8_000_000_000).div_ceil(rate_bps))
}

/// Asserts that every span that starts and ends with a packet carries at most `rate * span + burst`.
pub(crate) fn assert_ceiling<'s>(sent: impl Iterator<Item = &'s Sent>, rate_bps: u64, burst: u32) {
    let allowed = |at: Instant| u128::from(rate_bps) * u128::from(at.as_nanos());
    let unit = 8_000_000_000_u128;
    let mut total = 0_u128;
    // The maximum of "allowed minus sent" before a packet: a span that starts there is the strictest.
    let mut start = i128::MIN;
    for Sent { at, packet } in sent {
        start = start.max(allowed(*at) as i128 - (total * unit) as i128);
        total += u128::from(packet.length);
        let left = allowed(*at) as i128 - (total * unit) as i128;
        assert!(
            start - left <= (u128::from(burst) * unit) as i128,
            "{at:?}: {} octets too many",
            (start - left) / unit as i128 - i128::from(burst)
        );
    }
}

/// Keys of a UDP packet between numbered hosts.
pub(crate) fn keys(source: u32, destination: u32, port: u16) -> Keys {
    let address = |host: u32| {
        let mut address = [0; 16];
        address[10..12].fill(0xff);
        address[12..].copy_from_slice(&(0x0a00_0000 | host).to_be_bytes());
        address
    };
    Keys {
        outer: Flow {
            source: address(source),
            destination: address(destination),
            source_port: port,
            destination_port: 443,
            protocol: 17,
        },
        ..Keys::default()
    }
}
