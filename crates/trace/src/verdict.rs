//! What the analyser made of one packet: for graphs and all else that looks at packets rather than at sums.

use crate::connection::Connection;
use crate::segment::Segment;

/// What an ACK did for the other end's data, as tcptrace draws it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AckKind {
    /// No ACK, or one that says nothing new and is no duplicate.
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
    /// It acknowledged a segment sent before a retransmission it had waited for.
    PostLoss,
}

/// A round trip measured by an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Sequence number of the segment's first octet.
    pub sequence: u32,
    /// How long its acknowledgement took, in nanoseconds.
    pub time: i64,
}

/// One packet's part in its connection. Sequence numbers are as sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verdict {
    /// `a`, the end that sent the connection's first packet, sent this one.
    pub from_a: bool,
    /// It is the connection's first packet.
    pub first: bool,
    /// Window it advertises, scaled, in bytes; 0 without ACK and SYN.
    pub window: u32,
    /// Octets of sequence space in it that had been sent before, or that it sends again to fill a gap in the capture;
    /// 0 when it is no retransmission.
    pub retransmitted: u32,
    /// Out of order.
    pub out_of_order: bool,
    /// A zero-window probe.
    pub probe: bool,
    /// A keep-alive.
    pub keep_alive: bool,
    /// An exact copy of an earlier packet.
    pub hardware_duplicate: bool,
    /// What its ACK did.
    pub ack: AckKind,
    /// What its ACK measured: also for a segment sent before a retransmission, with time 0.
    pub sample: Option<Sample>,
    /// Last acknowledgement number this end had sent before; `None` before the first.
    pub ack_before: Option<u32>,
    /// When it had sent it.
    pub ack_time_before: Option<i64>,
    /// Its window's end before this packet.
    pub window_end_before: u32,
    /// Bytes in flight after this packet; `None` where no sample is taken (SYN, RST, retransmitted, out of order).
    pub in_flight: Option<u64>,
}

/// Looks at each packet as the analyser has dealt with it.
pub trait Observer {
    /// Called once for each TCP packet that was counted, after the connection took it in.
    fn observe(&mut self, connection: &Connection, segment: &Segment, verdict: &Verdict);

    /// False when nothing is observed, so that nothing is prepared for it.
    const WANTED: bool = true;
}

/// Observes nothing and costs nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn observe(&mut self, _: &Connection, _: &Segment, _: &Verdict) {}
    const WANTED: bool = false;
}
