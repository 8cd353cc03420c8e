//! The analyser's result for one packet, for graphs and other observers of single packets.

use crate::connection::Connection;
use crate::segment::Segment;

/// The effect of an ACK on the other end's data, as tcptrace draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckKind {
    /// No ACK, or one that acknowledges nothing new and is no duplicate.
    #[default]
    None,
    /// It acknowledged a segment sent once.
    Normal,
    /// It acknowledged a segment that had been retransmitted.
    Ambiguous,
    /// It is a duplicate, or ended inside a segment.
    Cumulative,
    /// The third duplicate.
    Triple,
    /// It acknowledged a segment that was sent before a retransmission and had to wait for it.
    PostLoss,
}

/// A round trip measured by an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Sequence number of the segment's first octet.
    pub sequence: u32,
    /// Time until its acknowledgement, in nanoseconds.
    pub time: i64,
}

/// The analyser's result for one packet. Sequence numbers are as sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verdict {
    /// End `a`, which sent the connection's first packet, sent this one.
    pub from_a: bool,
    /// It is the connection's first packet.
    pub first: bool,
    /// Window it advertises, scaled, in bytes; 0 without ACK and SYN.
    pub window: u32,
    /// Retransmitted sequence space, including retransmissions that fill a gap in the capture; 0 if it is no
    /// retransmission.
    pub retransmitted: u32,
    /// Out of order.
    pub out_of_order: bool,
    /// A zero-window probe.
    pub probe: bool,
    /// A keep-alive.
    pub keep_alive: bool,
    /// An exact copy of an earlier packet.
    pub hardware_duplicate: bool,
    /// The effect of its ACK.
    pub ack: AckKind,
    /// The round trip that its ACK measured; with time 0 for a segment sent before a retransmission.
    pub sample: Option<Sample>,
    /// Last acknowledgement number this end had sent before; `None` before the first.
    pub ack_before: Option<u32>,
    /// When it had sent it.
    pub ack_time_before: Option<i64>,
    /// Its window's end before this packet.
    pub window_end_before: u32,
    /// Bytes in flight after this packet; `None` if there is no sample (SYN, RST, retransmitted, out of order).
    pub in_flight: Option<u64>,
}

/// Observes each packet after it was analysed.
pub trait Observer {
    /// Called once for each analysed TCP packet, after the connection's statistics include it.
    fn observe(&mut self, connection: &Connection, segment: &Segment, verdict: &Verdict);

    /// The captured payload of the packet that is being analysed, for [`crate::details`]; empty if it is not at hand.
    fn payload(&self) -> &[u8] {
        &[]
    }

    /// False if nothing is observed, so that nothing is prepared.
    const WANTED: bool = true;
}

/// An observer that does nothing, at no cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn observe(&mut self, _: &Connection, _: &Segment, _: &Verdict) {}
    const WANTED: bool = false;
}
