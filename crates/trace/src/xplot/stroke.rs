//! Strokes: the drawing of a packet as a few numbers, so that it can be formatted later and on another thread.

use crate::verdict::AckKind;

/// The drawing of one packet in one file, or a part of that.
#[derive(Debug, Clone, Copy)]
pub struct Stroke {
    /// In microseconds.
    pub(super) time: i64,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
    /// Of [`bits`]; the number of a line, or of a SACK block and how many there are.
    pub(super) bits: u16,
    pub(super) what: What,
}

/// The kind of a stroke, and the meaning of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A segment in its sender's graph: sequence number, octets.
    Sent,
    /// An ACK: its number, window, and [`AckKind`].
    Ack,
    /// A SACK block: left and right edge, the highest right edge of all.
    Sack,
    /// A reset from the other end: where.
    ResetIn,
    /// Its sender's SYN, which counts as an ACK of everything before it: sequence number.
    Began,
    /// What sequence numbers count from.
    Base,
    /// The window's end moves without an ACK being drawn: where to.
    Moved,
    /// A line grows: to what y.
    Line,
    /// A dot: its y.
    Dot,
    /// An arrow: first and next sequence number, octets.
    Arrow,
    /// The rest of it: its time at the other end, number of the ACK, window.
    Head,
}

/// Bits of a stroke. The lowest are TCP's flags.
pub(super) mod bits {
    use crate::segment;

    pub(in super::super) const FIN: u16 = segment::FIN;
    pub(in super::super) const SYN: u16 = segment::SYN;
    pub(in super::super) const RST: u16 = segment::RST;
    pub(in super::super) const PSH: u16 = segment::PSH;
    pub(in super::super) const ACK: u16 = segment::ACK;
    pub(in super::super) const URG: u16 = segment::URG;
    pub(in super::super) const ECE: u16 = segment::ECE;
    pub(in super::super) const CWR: u16 = segment::CWR;
    /// All of them.
    pub(in super::super) const FLAGS: u16 = 0xff;
    /// The IP header is marked Congestion Experienced.
    pub(in super::super) const CE: u16 = 1 << 8;
    /// It was sent before.
    pub(in super::super) const AGAIN: u16 = 1 << 9;
    pub(in super::super) const OUT_OF_ORDER: u16 = 1 << 10;
    pub(in super::super) const PROBE: u16 = 1 << 11;
    /// A hardware duplicate.
    pub(in super::super) const COPY: u16 = 1 << 12;
    /// End `a` sent it.
    pub(in super::super) const FROM_A: u16 = 1 << 13;
}

impl Stroke {
    /// With one number.
    pub(super) fn one(what: What, time: i64, a: u32) -> Stroke {
        Stroke {
            time,
            a,
            b: 0,
            c: 0,
            bits: 0,
            what,
        }
    }

    /// Whether one of these bits is set.
    pub(super) fn has(&self, bits: u16) -> bool {
        self.bits & bits != 0
    }

    /// What an ACK did, as a number.
    pub(super) const fn number_of(ack: AckKind) -> u32 {
        ack as u32
    }

    /// Whether the ACK did that.
    pub(super) fn did(&self, ack: AckKind) -> bool {
        self.c == Stroke::number_of(ack)
    }
}
