//! Consecutive packets of one flow as one: TCP segments (RFC 9293) and UDP datagrams (RFC 768), over IPv4 (RFC 791) and
//! IPv6 (RFC 8200), become one packet that the kernel takes through a TUN device by one call and treats as one
//! (`linux/virtio_net.h`; GRO and GSO in Linux's `segmentation-offloads.rst`).
//!
//! Only what [`split`](crate::split) or a network card would cut into the very same packets is joined. One thing
//! differs: the identification of IPv4 packets that must not be fragmented counts up, also where the sender's stood
//! still; nobody may look at it (RFC 6864 4.1). Checksums are verified first: a damaged packet is not mended by the
//! checksum of the one it would be part of.
//!
//! Left out: IPv4 options, IPv6 extension headers, UDP without checksum, packets in tunnels. They pass as they are.

mod lane;
mod packet;
#[cfg(test)]
mod tests;

use wire::virtio;

use lane::Lane;
use packet::{Addresses, Candidate};

/// Octets of the largest IP packet: IPv6's header and what its length can say.
pub const PACKET_MAX: usize = 40 + 65_535;

/// How to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Flows that are held at once, at least one and at most 64; each takes some 64 KiB as far as it is filled.
    pub lanes: usize,
    /// Joins UDP too, which the kernel must know how to cut (Linux 6.2, `TUN_F_USO4`).
    pub udp: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lanes: 8,
            udp: true,
        }
    }
}

/// What became of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinStats {
    /// Packets that came.
    pub packets: u64,
    /// Of those, how many went on as part of a larger one.
    pub joined: u64,
    /// What was emitted, each one or several packets.
    pub emitted: u64,
    /// Packets that would have been joined but for a wrong checksum, theirs or that of the one before.
    pub bad_checksum: u64,
    /// Packets that were dropped since they are longer than any IP packet.
    pub too_long: u64,
}

/// Joins packets as they come, holding those that may go on until [`Joiner::flush`], which ends each batch.
///
/// Packets of one flow leave in the order in which they came; those of different flows may overtake each other.
#[derive(Debug)]
pub struct Joiner {
    lanes: Vec<Lane>,
    /// Where a packet is put that is not held.
    alone: Lane,
    /// The lane that gives way next.
    victim: usize,
    /// Lanes from here on are empty.
    used: usize,
    udp: bool,
    stats: JoinStats,
}

impl Joiner {
    /// One that holds nothing. Nothing is allocated after this.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let lanes = options.lanes.clamp(1, 64);
        Self {
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            alone: Lane::new(),
            victim: 0,
            used: 0,
            udp: options.udp,
            stats: JoinStats::default(),
        }
    }

    /// What became of packets so far.
    #[must_use]
    pub fn stats(&self) -> JoinStats {
        self.stats
    }

    /// Takes an IP packet without padding. `emit` is given what is to be written, a [`virtio::Header`] and a packet, of
    /// this one, of earlier ones, or nothing.
    pub fn push(&mut self, packet: &[u8], emit: &mut impl FnMut(&[u8])) {
        self.stats.packets += 1;
        if packet.len() > PACKET_MAX {
            self.stats.too_long += 1;
            return;
        }
        match Candidate::read(packet, self.udp) {
            Some(candidate) => self.candidate(packet, &candidate, emit),
            None => {
                if let Some(addresses) = Addresses::read(packet) {
                    self.flush_where(|lane| lane.flow().addresses == addresses, emit);
                }
                self.pass(packet, emit);
            }
        }
    }

    /// Emits all that is held.
    pub fn flush(&mut self, emit: &mut impl FnMut(&[u8])) {
        for lane in &mut self.lanes[..self.used] {
            emit_lane(lane, &mut self.stats, emit);
        }
        self.used = 0;
    }

    fn candidate(&mut self, packet: &[u8], candidate: &Candidate, emit: &mut impl FnMut(&[u8])) {
        let held = &mut self.lanes[..self.used];
        let found = held.iter().position(|lane| *lane.flow() == candidate.flow);
        if let Some(at) = found {
            let lane = &mut self.lanes[at];
            if lane.is_continued_by(packet, candidate) {
                if lane.is_right() && packet::is_right(packet, candidate) {
                    lane.append(packet, candidate);
                    if lane.is_ended() {
                        self.release(at, emit);
                    }
                    return;
                }
                self.stats.bad_checksum += 1;
            }
            if candidate.ends {
                self.release(at, emit);
                self.pass(packet, emit);
            } else {
                emit_lane(lane, &mut self.stats, emit);
                lane.begin(packet, candidate);
            }
            return;
        }
        if candidate.ends {
            // Nothing can follow it.
            return self.pass(packet, emit);
        }
        let at = if self.used < self.lanes.len() {
            self.used += 1;
            self.used - 1
        } else {
            self.victim = (self.victim + 1) % self.lanes.len();
            emit_lane(&mut self.lanes[self.victim], &mut self.stats, emit);
            self.victim
        };
        self.lanes[at].begin(packet, candidate);
    }

    /// Emits what a lane holds and makes it free.
    fn release(&mut self, at: usize, emit: &mut impl FnMut(&[u8])) {
        emit_lane(&mut self.lanes[at], &mut self.stats, emit);
        self.used -= 1;
        self.lanes.swap(at, self.used);
    }

    fn flush_where(&mut self, is_meant: impl Fn(&Lane) -> bool, emit: &mut impl FnMut(&[u8])) {
        let mut at = 0;
        while at < self.used {
            if is_meant(&self.lanes[at]) {
                self.release(at, emit);
            } else {
                at += 1;
            }
        }
    }

    /// Emits a packet as it is.
    fn pass(&mut self, packet: &[u8], emit: &mut impl FnMut(&[u8])) {
        self.stats.emitted += 1;
        emit(self.alone.alone(packet));
    }
}

fn emit_lane(lane: &mut Lane, stats: &mut JoinStats, emit: &mut impl FnMut(&[u8])) {
    stats.emitted += 1;
    if lane.packets() > 1 {
        stats.joined += lane.packets() as u64;
    }
    emit(lane.finish());
}

/// Octets in front of a packet in what is emitted.
const FRONT: usize = virtio::LENGTH;
