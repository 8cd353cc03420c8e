//! Joins consecutive packets of one flow: TCP segments (RFC 9293) and UDP datagrams (RFC 768), over IPv4 (RFC 791) and
//! IPv6 (RFC 8200). The kernel takes the joined packet from a TUN device in one call and handles it as one
//! (`linux/virtio_net.h`; GRO and GSO in Linux's `segmentation-offloads.rst`).
//!
//! Packets are joined only if [`split`](crate::split) or a network card would split the result into the same packets.
//! There is one exception. The identification of IPv4 packets with "don't fragment" counts up, even if the sender's was
//! constant; no receiver may use it (RFC 6864 4.1). Checksums are verified first, so that a joined packet's new
//! checksum hides no damage.
//!
//! Left out: IPv4 options, IPv6 extension headers, UDP without checksum, packets in tunnels. They pass as they are.

mod lane;
mod lanes;
mod packet;
#[cfg(test)]
mod tests;

use wire::virtio;

use lane::Lane;
use lanes::{LANES_MAX, Lanes};
use packet::{Addresses, Candidate};

/// Bytes of the largest IP packet: IPv6's header and its longest payload.
pub const PACKET_MAX: usize = 40 + 65_535;

/// How to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Flows held at a time, 1 to 64; each uses up to 64 KiB, from its first packet on.
    pub lanes: usize,
    /// Joins UDP too, which needs Linux 6.2 (`TUN_F_USO4`).
    pub udp: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            lanes: LANES_MAX,
            udp: true,
        }
    }
}

/// Counters of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JoinStats {
    /// Packets taken.
    pub packets: u64,
    /// Of those, the ones that became part of a larger packet.
    pub joined: u64,
    /// Packets emitted, joined or single.
    pub emitted: u64,
    /// Packets not joined because of a wrong checksum, theirs or the earlier packet's.
    pub bad_checksum: u64,
    /// Packets dropped because they are longer than any IP packet.
    pub too_long: u64,
}

/// Joins packets as they arrive. Holds those that others may follow until [`Joiner::flush`] at the end of each batch.
///
/// Packets of one flow keep their order; packets of different flows may overtake each other.
#[derive(Debug)]
pub struct Joiner {
    lanes: Lanes,
    /// Buffer for a packet that is not held.
    alone: Lane,
    udp: bool,
    stats: JoinStats,
}

impl Joiner {
    /// An empty joiner. Its buffers are allocated when they are first needed, and kept.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            lanes: Lanes::new(options.lanes),
            alone: Lane::new(),
            udp: options.udp,
            stats: JoinStats::default(),
        }
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> JoinStats {
        self.stats
    }

    /// Takes an IP packet without padding. Calls `emit` with each packet that is complete, this one or earlier ones,
    /// behind a [`virtio::Header`].
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
                    while let Some(at) = self.lanes.find_between(addresses) {
                        self.release(at, emit);
                    }
                }
                self.pass(packet, emit);
            }
        }
    }

    /// Emits all packets held.
    pub fn flush(&mut self, emit: &mut impl FnMut(&[u8])) {
        let Self { lanes, stats, .. } = self;
        lanes.drain(|lane| emit_lane(lane, stats, emit));
    }

    fn candidate(&mut self, packet: &[u8], candidate: &Candidate, emit: &mut impl FnMut(&[u8])) {
        if let Some(at) = self.lanes.find(&candidate.flow) {
            let lane = self.lanes.at(at);
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
            // No packet can follow it.
            return self.pass(packet, emit);
        }
        let at = self.lanes.choose();
        if self.lanes.is_used(at) {
            self.release(at, emit);
        }
        self.lanes.at(at).begin(packet, candidate);
        self.lanes.enter(at);
    }

    /// Emits the packet of a lane and frees the lane.
    fn release(&mut self, at: usize, emit: &mut impl FnMut(&[u8])) {
        self.lanes.leave(at);
        emit_lane(self.lanes.at(at), &mut self.stats, emit);
    }

    /// Emits a packet unchanged.
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

/// Bytes before an emitted packet.
const FRONT: usize = virtio::LENGTH;
