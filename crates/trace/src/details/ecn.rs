//! ECN: what the handshake negotiated (RFC 3168 6.1.1, RFC 9768 3.1), and the codepoints of packets (RFC 9331).

use crate::segment::{CWR, ECE, Segment};

/// The flag AE of Accurate ECN, formerly NS.
const AE: u16 = 0x100;

/// Codepoints of the packets that one end sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Codepoints {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1), which L4S senders use (RFC 9331).
    pub ect1: u64,
    /// Packets marked "congestion experienced".
    pub ce: u64,
}

impl Codepoints {
    pub(super) fn add(&mut self, codepoint: u8) {
        match codepoint {
            1 => self.ect1 += 1,
            2 => self.ect0 += 1,
            3 => self.ce += 1,
            _ => {}
        }
    }
}

/// ECN of a connection, as far as the capture has the handshake.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ecn {
    /// AE, CWR and ECE of the first SYN and of the first SYN-ACK.
    pub(super) syn: Option<u8>,
    pub(super) syn_ack: Option<u8>,
}

impl Ecn {
    pub(super) fn packet(&mut self, segment: &Segment) {
        if !segment.syn() {
            return;
        }
        let flags = u8::from(segment.flags & AE != 0) << 2
            | u8::from(segment.flags & CWR != 0) << 1
            | u8::from(segment.flags & ECE != 0);
        match segment.ack() {
            true => self.syn_ack.get_or_insert(flags),
            false => self.syn.get_or_insert(flags),
        };
    }

    /// What was negotiated: `accecn`, `classic` or `none`; `None` if the capture lacks either SYN.
    ///
    /// A client that asks for Accurate ECN sets AE, CWR and ECE. The SYN-ACK then has one of five combinations of these
    /// flags for Accurate ECN, and ECE alone for classic ECN (RFC 9768 3.1.1, table 2).
    #[must_use]
    pub fn negotiated(self) -> Option<&'static str> {
        let (syn, answer) = (self.syn?, self.syn_ack?);
        Some(match (syn, answer) {
            (0b111, 0b010 | 0b011 | 0b100 | 0b110) => "accecn",
            (0b111 | 0b011, 0b001) => "classic",
            // The flag AE was the nonce of RFC 3540, which is historic.
            (0b111, 0b101) => "classic",
            _ => "none",
        })
    }
}
