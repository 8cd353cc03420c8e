//! Composed datagrams that wait to be polled.

use std::collections::VecDeque;

/// Limit on queued bytes. Further datagrams are dropped; PPP retransmits them.
const OCTETS_MAX: usize = 16 << 20;

/// Length to which short Configure packets of LCP are padded, with the header before them. An LNS sends its
/// Configure-Request, a Configure-Ack and the acknowledgement of the ICCN at the same time. Datagrams of one length, and a
/// shorter one after them, leave as one message (`UDP_SEGMENT`, udp(7)). Receivers ignore the padding (RFC 1661, sections
/// 2 and 5).
const CONFIGURE_MIN: usize = 32;

/// A queue of datagrams in one buffer.
#[derive(Debug)]
pub(crate) struct Outgoing<R> {
    octets: Vec<u8>,
    /// The end of each datagram, and its route.
    ends: VecDeque<(u32, R)>,
    taken: usize,
}

impl<R> Default for Outgoing<R> {
    fn default() -> Self {
        Self {
            octets: Vec::new(),
            ends: VecDeque::new(),
            taken: 0,
        }
    }
}

impl<R> Outgoing<R> {
    /// Appends a datagram of two parts and returns it; `None` if there is no room.
    pub(crate) fn push(&mut self, route: R, head: &[u8], frame: &[u8]) -> Option<&mut [u8]> {
        if self.octets.len() + head.len() + frame.len() > OCTETS_MAX {
            return None;
        }
        let begun = self.octets.len();
        self.octets.extend_from_slice(head);
        self.octets.extend_from_slice(frame);
        self.ends.push_back((self.octets.len() as u32, route));
        Some(&mut self.octets[begun..])
    }

    /// Appends a frame of PPP's control protocols. A short Configure packet of LCP is padded.
    pub(crate) fn push_frame(&mut self, route: R, head: &[u8], frame: &[u8]) -> Option<&mut [u8]> {
        let begun = self.octets.len();
        self.push(route, head, frame)?;
        if is_configure(frame)
            && self.octets.len() < begun + CONFIGURE_MIN
            && let Some((end, _)) = self.ends.back_mut()
        {
            self.octets.resize(begun + CONFIGURE_MIN, 0);
            *end = self.octets.len() as u32;
        }
        Some(&mut self.octets[begun..])
    }

    /// Takes the oldest one.
    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<R> {
        let (end, route) = self.ends.pop_front()?;
        out.extend_from_slice(&self.octets[self.taken..end as usize]);
        self.taken = end as usize;
        if self.ends.is_empty() {
            self.octets.clear();
            self.taken = 0;
        }
        Some(route)
    }

    /// The oldest one.
    #[inline]
    pub(crate) fn front(&self) -> Option<(&R, &[u8])> {
        let (end, route) = self.ends.front()?;
        Some((route, &self.octets[self.taken..*end as usize]))
    }

    /// Removes the oldest one.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        if let Some((end, _)) = self.ends.pop_front() {
            self.taken = end as usize;
        }
        if self.ends.is_empty() {
            self.octets.clear();
            self.taken = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Whether a frame is a Configure-Request, -Ack, -Nak or -Reject of LCP (RFC 1661, section 5).
fn is_configure(frame: &[u8]) -> bool {
    let packet = frame.strip_prefix(&[0xff, 0x03]).unwrap_or(frame);
    matches!(packet, [0xc0, 0x21, 1..=4, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_configure_packets_are_padded_to_one_length_and_no_other_frames() {
        let mut outgoing = Outgoing::default();
        let head = [0, 2, 0, 1, 0, 1];
        let frames: [(&[u8], usize); 6] = [
            (&[0xff, 3, 0xc0, 0x21, 1, 1, 0, 4], 32),
            (&[0xc0, 0x21, 2, 1, 0, 4], 32),
            // An Echo-Request, a challenge, a packet of IPCP, and one that is long enough.
            (&[0xff, 3, 0xc0, 0x21, 9, 1, 0, 4], 14),
            (&[0xff, 3, 0xc2, 0x23, 1, 1, 0, 4], 14),
            (&[0xff, 3, 0x80, 0x21, 3, 1, 0, 4], 14),
            (
                &[[0xc0, 0x21, 4, 1, 0, 30].as_slice(), &[7; 26]].concat(),
                38,
            ),
        ];
        for (frame, length) in frames {
            let pushed = outgoing.push_frame(9, &head, frame).unwrap();
            assert_eq!(pushed.len(), length);
            let whole = [&head[..], frame].concat();
            let (start, padding) = pushed.split_at(whole.len());
            assert_eq!(start, whole);
            assert!(padding.iter().all(|&octet| octet == 0));
        }
        let mut out = Vec::new();
        for (_, length) in frames {
            out.clear();
            assert_eq!(outgoing.pop(&mut out), Some(9));
            assert_eq!(out.len(), length);
        }
        assert!(outgoing.is_empty());
    }
}
